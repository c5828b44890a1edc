"""What the paper compares: its methods and settings, by the names in its figures, and `auto` beside them."""

import math
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from sumbo import problems
from sumbo.methods import GPEI, GPUCB, REMBO, AddGPUCB, Auto, Direct, Method, Random
from sumbo.paper.tasks import Line, Sources, Task
from sumbo.problems import Problem
from sumbo.study.run import maximize

CONFIGURATIONS = (
    (10, 3, 3), (24, 6, 4), (24, 11, 2), (40, 5, 8), (40, 18, 2), (40, 35, 1), (96, 5, 19), (96, 29, 3), (120, 55, 2),
)  # fmt: skip
STAR = "Add-*"
AUTO = "sumbo auto"
FIXED = ", fixed groups"
# Other ways to do it that the paper speaks of: Add-d/M for one d, with something changed.
NEW_GROUPS, LARGE_BETA, SMALL_BETA = ", new groups at each step", ", the theorem's beta", ", beta 0.1"
_VARIANTS: dict[str, dict[str, Any]] = {
    FIXED: {"learn": "none"},
    NEW_GROUPS: {"trials": 1, "n_cyc": 1},
    LARGE_BETA: {"beta": "theorem"},
    SMALL_BETA: {"beta": 0.1},
}
_LARGEST_VARIED = 24  # D up to which all of these are run; for larger ones, the first
# The paper names 3/4, 5/2, 1/10 and 2/5 for D = 10; others are of like spread, d' among them where it is small.
_GROUP_SIZES = {10: (1, 2, 3, 5), 24: (1, 3, 6, 12), 40: (1, 5, 10, 20), 96: (1, 5, 12, 32), 120: (1, 5, 15, 40)}
_VARIED_SIZES = {10: 3, 24: 6, 40: 5, 96: 5, 120: 15}
_ASTRO_SIZES = (1, 2, 5, 10)  # 5/4 is the paper's
_FACES_SIZES = (1, 3, 6, 11)  # 1/22 and 6/4 are the paper's
# DIRECT evaluations of the acquisition: of full and of additive models.
_ASTRO_DIRECT, _FACES_DIRECT = (500, 450), (1000, 900)


def add_name(D: int, d: int) -> str:
    """Add-d/M, M groups of at most d dimensions."""
    return f"Add-{d}/{math.ceil(D / d)}"


def variant(D: int, change: str = "") -> str:
    """Add-d/M for the one d that is also run with changes, and with that change."""
    return f"{add_name(D, _VARIED_SIZES[D])}{change}"


def is_variant(name: str) -> bool:
    """Is something changed in this method, so that it is in tables and claims but not in the figures?"""
    return name.endswith(tuple(_VARIANTS))


def group_sizes(experiment: str, D: int) -> tuple[int, ...]:
    """The group sizes d that are tried on a problem."""
    return {"astro": _ASTRO_SIZES, "faces": _FACES_SIZES}.get(experiment) or _GROUP_SIZES[D]


def method_names(experiment: str, D: int) -> tuple[str, ...]:
    """The methods compared on a problem of D dimensions, in the order of figures and tables."""
    adds = tuple(add_name(D, d) for d in group_sizes(experiment, D))
    if experiment == "synthetic":
        changes = list(_VARIANTS) if D <= _LARGEST_VARIED else [FIXED]
        return (STAR, *adds, "GP-UCB", "RAND", "DIRECT", AUTO, *(variant(D, change) for change in changes))
    return (*adds, "GP-UCB", "GP-EI", "REMBO", "RAND", "DIRECT", AUTO)


def method_of(name: str, experiment: str, problem: Problem) -> Method:
    """A method with the paper's settings; `auto` with its own."""
    full, additive = {"astro": _ASTRO_DIRECT, "faces": _FACES_DIRECT}.get(experiment, (None, None))
    plain: dict[str, Method] = {
        "RAND": Random(),
        "DIRECT": Direct(),
        AUTO: Auto(),
        "GP-UCB": replace(GPUCB.paper(), direct_evaluations=full),
        "GP-EI": replace(GPEI.paper(), direct_evaluations=full),
        "REMBO": REMBO(9 if experiment == "astro" else 5, replace(GPEI.paper(), direct_evaluations=full)),
    }
    if name in plain:
        return plain[name]
    if name == STAR:
        # Dimensions that do nothing form one group more: alone, each would take a share of DIRECT's budget.
        groups = (*(problem.groups or ()), *([problem.irrelevant] if problem.irrelevant else []))
        return AddGPUCB.paper(max(map(len, groups)), groups=groups)
    d = int(name.removeprefix("Add-").partition("/")[0])
    changes = next((changes for ending, changes in _VARIANTS.items() if name.endswith(ending)), {})
    return replace(AddGPUCB.paper(d), direct_evaluations=additive, **changes)


@cache
def problem_of(experiment: str, name: str, seed: int, sources: Sources, held_out: bool = False) -> Problem:
    """The problem of a task. Kept in the process: some take seconds to make."""
    if experiment == "astro":
        return problems.astro(seed, data=sources.lrg or None)
    if experiment == "faces":
        folders = {key: Path(path) for key, path in sources._asdict().items() if path}
        return problems.faces(seed, part="held-out" if held_out else "train", **folders)
    return problems.get(name, seed=seed)


def run(task: Task) -> Line:
    """Optimise; the values in their order, None where an evaluation failed, and seconds of a suggestion."""
    problem = problem_of(task.experiment, task.problem, task.seed, task.sources)
    method = method_of(task.method, task.experiment, problem)
    spent = 0.0

    def timed(point: Any) -> float:
        nonlocal spent
        start = time.perf_counter()
        try:
            return problem(point)
        finally:
            spent += time.perf_counter() - start

    start = time.perf_counter()
    found = maximize(timed, problem.space, task.budget, method=method, seed=task.seed, progress=False)
    seconds = time.perf_counter() - start - spent
    line: Line = {
        "values": [None if trial.value is None else float(f"{trial.value:.7g}") for trial in found.trials],
        "optimum": problem.optimum,
        "seconds_per_suggestion": round(seconds / task.budget, 5),
        "seconds_per_evaluation": round(spent / task.budget, 5),
    }
    if task.experiment == "faces":
        other = problem_of(task.experiment, task.problem, task.seed, task.sources, held_out=True)
        held_out = None if found.x is None else other(found.x)
        line |= {"held_out": held_out, "opencv": [part(part.optimiser) for part in (problem, other)]}
    return line
