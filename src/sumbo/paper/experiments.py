"""What is run: the paper's problems and methods, named as in its figures, `auto` beside them, and how much of it."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from sumbo import problems
from sumbo.methods import GPEI, GPUCB, REMBO, AddGPUCB, Auto, Direct, Method, Random
from sumbo.paper import rates
from sumbo.paper.runs import Line, Sources, Task
from sumbo.problems import Problem
from sumbo.study.run import maximize

EXPERIMENTS = ("synthetic", "astro", "faces", "rates")
Configuration = tuple[int, int, int]

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
GROUP_SIZES = {
    10: (1, 2, 3, 5),
    20: (1, 2, 5, 10),  # astro; 5/4 is the paper's
    22: (1, 3, 6, 11),  # faces; 1/22 and 6/4 are the paper's
    24: (1, 3, 6, 12),
    40: (1, 5, 10, 20),
    96: (1, 5, 12, 32),
    120: (1, 5, 15, 40),
}
_VARIED_SIZES = {10: 3, 24: 6, 40: 5, 96: 5, 120: 15}
_REAL = {"astro": 20, "faces": 22}  # D
_DIRECT = {"astro": (500, 450), "faces": (1000, 900)}  # DIRECT's calls of the acquisition: full and additive models


def name_of(configuration: Configuration) -> str:
    """The problem of a configuration."""
    return "additive-{}-{}-{}".format(*configuration)


def add_name(D: int, d: int) -> str:
    """Add-d/M, M groups of at most d dimensions."""
    return f"Add-{d}/{math.ceil(D / d)}"


def variant(D: int, change: str = "") -> str:
    """Add-d/M for the one d that is also run with changes, and with that change."""
    return f"{add_name(D, _VARIED_SIZES[D])}{change}"


def is_variant(name: str) -> bool:
    """Is something changed in this method, so that it is in tables and claims but not in the figures?"""
    return name.endswith(tuple(_VARIANTS))


def method_names(D: int) -> tuple[str, ...]:
    """The methods compared on a problem of D dimensions, in the order of figures and tables."""
    adds = tuple(add_name(D, d) for d in GROUP_SIZES[D])
    if D in _REAL.values():
        return (*adds, "GP-UCB", "GP-EI", "REMBO", "RAND", "DIRECT", AUTO)
    changes = list(_VARIANTS) if D <= _LARGEST_VARIED else [FIXED]
    return (STAR, *adds, "GP-UCB", "RAND", "DIRECT", AUTO, *(variant(D, change) for change in changes))


def method_of(name: str, experiment: str, problem: Problem) -> Method:
    """A method with the paper's settings; `auto` with its own."""
    full, additive = _DIRECT.get(experiment, (None, None))
    ei = replace(GPEI.paper(), direct_evaluations=full)
    plain: dict[str, Method] = {
        "RAND": Random(),
        "DIRECT": Direct(),
        AUTO: Auto(),
        "GP-UCB": replace(GPUCB.paper(), direct_evaluations=full),
        "GP-EI": ei,
        "REMBO": REMBO(9 if experiment == "astro" else 5, ei),
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
    """Do a task: measure, or optimise and tell the values in their order, None for a failure, and seconds."""
    if task.experiment == "rates":
        return rates.run(task)
    problem = problem_of(task.experiment, task.problem, task.seed, task.sources)
    method = method_of(task.method, task.experiment, problem)
    start = time.perf_counter()
    found = maximize(problem, problem.space, task.budget, method=method, seed=task.seed, progress=False)
    total, spent = time.perf_counter() - start, sum(trial.seconds or 0.0 for trial in found.trials)
    line: Line = {
        "values": [None if trial.value is None else float(f"{trial.value:.7g}") for trial in found.trials],
        "optimum": problem.optimum,
        "seconds_per_suggestion": round((total - spent) / task.budget, 5),
        "seconds_per_evaluation": round(spent / task.budget, 5),
    }
    if task.experiment == "faces":
        other = problem_of(task.experiment, task.problem, task.seed, task.sources, held_out=True)
        held_out = None if found.x is None else other(found.x)
        line |= {"held_out": held_out, "opencv": [part(part.optimiser) for part in (problem, other)]}
    return line


@dataclass(frozen=True)
class Size:
    """How much of everything."""

    configurations: tuple[Configuration, ...]  # (D, d', M') of the synthetic functions
    runs: dict[str, int]  # of the synthetic, astro and faces experiments
    budgets: dict[str, int]  # evaluations of a run, likewise
    dimensions: tuple[int, ...]  # D of the information gain
    observations: int  # T of the information gain
    simulations: int  # of the credible interval


QUICK = Size(
    configurations=((10, 3, 3), (24, 11, 2), (40, 5, 8)),
    runs=dict.fromkeys(EXPERIMENTS[:3], 2),
    budgets=dict.fromkeys(EXPERIMENTS[:3], 80),
    dimensions=(2, 4, 8),
    observations=100,
    simulations=20,
)
# Runs are the paper's. Its text tells the number of evaluations for the astrophysics only, 400; that is taken for all.
FULL = Size(
    configurations=CONFIGURATIONS,
    runs={"synthetic": 20, "astro": 20, "faces": 11},
    budgets=dict.fromkeys(EXPERIMENTS[:3], 400),
    dimensions=(2, 4, 6, 8, 12),
    observations=400,
    simulations=200,
)


def plan(experiments: Sequence[str], size: Size, seed: int, sources: Sources) -> list[Task]:
    """What is to be run: everything with one seed before the next seed, so that what there is can be compared."""
    tasks = _rates(size, seed) if "rates" in experiments else []
    synthetic = {name_of(c): c[0] for c in size.configurations}
    for i in range(max(size.runs.values())):
        for experiment in experiments:
            if i >= size.runs.get(experiment, 0):
                continue
            known = {experiment: _REAL[experiment]} if experiment in _REAL else synthetic
            tasks += [
                Task(experiment, problem, method, seed + i, size.budgets[experiment], sources.of(experiment))
                for problem, D in known.items()
                for method in method_names(D)
            ]
    return tasks


def _rates(size: Size, seed: int) -> list[Task]:
    T = size.observations
    measurements = [
        (rates.GAIN, f"{structure}, {kernel}, D = {D}", T)
        for structure in ("additive", "full")
        for kernel in rates.KERNELS
        for D in size.dimensions
    ]
    measurements += [(rates.PROOF, f"M = {M}", T) for M in (2, 5, 10)]
    measurements += [(rates.COST, "D = 40", T), (rates.MODES, "f_2", 1)]
    tasks = [Task("rates", problem, method, seed, budget) for problem, method, budget in measurements]
    return tasks + [Task("rates", rates.INTERVAL, "SE, 4 groups", seed + i, 30) for i in range(size.simulations)]
