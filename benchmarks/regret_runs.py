"""What the regret benchmark runs: its problems, its methods, and one run of one on the other."""

import importlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import version
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from peers import PEERS, Objective
from plain import Plain
from runs import Run, Work, attempt, measured, news

import sumbo
from sumbo.gp.fit import FitSettings
from sumbo.methods import Auto, Method
from sumbo.methods.surrogate import SurrogateSettings, worth
from sumbo.problems import Problem

# D, d, M of the paper's synthetic functions
CONFIGURATIONS = (
    (10, 3, 3), (24, 6, 4), (24, 11, 2), (40, 5, 8), (40, 18, 2), (40, 35, 1), (96, 5, 19), (96, 29, 3), (120, 55, 2),
)  # fmt: skip


class Case(NamedTuple):
    """A problem by the name that `sumbo.problems.get` knows, and the standard deviation of its noise."""

    problem: str
    noise: float = 0.0


PAPER = {"additive-{}-{}-{}".format(*sizes): sizes for sizes in CONFIGURATIONS}
PROBLEMS = {name: Case(name) for name in PAPER} | {
    "levy-30": Case("levy-30"),
    "styblinski-tang-40": Case("styblinski-tang-40"),
    "rosenbrock-log-30": Case("rosenbrock-log-30"),
    "hartmann6-50": Case("hartmann6-50"),
    "powell-40": Case("powell-40"),
    "additive-24-6-4-noisy": Case("additive-24-6-4", noise=1.0),
    "levy-30-noisy": Case("levy-30", noise=5.0),
    "mixed-20": Case("mixed-20"),
}


class Changed(NamedTuple):
    """`auto` with other settings, or with other things under some names of a module: its own, if not told."""

    method: Method = Auto()
    names: Mapping[str, Any] = {}
    module: str = "sumbo.methods.auto"


def _learning(**changed: Any) -> Callable[..., SurrogateSettings]:
    """`SurrogateSettings` that is told otherwise."""
    return lambda *values, **settings: SurrogateSettings(*values, **{**settings, **changed})


_SOME_NOISE = FitSettings(noise=1e-6, noise_sd=3.0, noise_bounds=(1e-9, 1.0))


# `auto` with each of its parts switched off or changed in turn, for `--ablation`: a new part needs a line here only.
ABLATION = {
    "auto-no-groups": Changed(Auto(max_group_size=1)),
    "auto-no-full-order-term": Changed(names={"SurrogateSettings": _learning(full_order=False)}),
    "auto-no-compressing": Changed(names={"SurrogateSettings": _learning(warp=False)}),
    "auto-compressing-by-evidence-alone": Changed(
        names={"is_better": lambda other, present: worth(other) > worth(present)}, module="sumbo.methods.surrogate"
    ),
    "auto-lengthscales-never-free": Changed(names={"_FREE_FIT": None}),
    "auto-no-box": Changed(names={"trust_region": lambda seen, space: None}),
    "auto-whole-cube-start": Changed(names={"_INSET": 1.0}),
    "auto-no-group-starts": Changed(names={"group_starts": lambda model, query, seen: np.empty((0, query.D))}),
    "auto-more-noise-expected": Changed(names={"_FIT": FitSettings()}),
    "auto-some-noise-always": Changed(names={"_FIT": _SOME_NOISE, "_FREE_FIT": replace(_SOME_NOISE, deviation_sd=1.0)}),
    "auto-explores-to-the-end": Changed(names={"_LAST": 0.0}),
    "auto-spread-as-predicted": Changed(names={"_SCARCE": 0.0}),
    "auto-5-initial-points": Changed(Auto(n_init=5)),
    "auto-10-initial-points": Changed(Auto(n_init=10)),
}
OURS: dict[str, str | Method] = {"auto": "auto", "plain": Plain()} | {m: c.method for m, c in ABLATION.items()}
PAPER_METHOD, RANDOM = "add-gp-ucb-paper", "random"
COMPARED = ("auto", "plain", *PEERS, PAPER_METHOD, RANDOM)  # the columns of the report
RIVALS = (*PEERS, PAPER_METHOD, RANDOM)  # without our own
METHODS = (*COMPARED, *ABLATION)
SEEDS, RIVAL_SEEDS = 5, 3
_DEFAULT_GROUP_SIZE = 4  # the paper's method must be told one, also where there are no groups


class Task(NamedTuple):
    """One run to do; also the key under which a finished run is found again."""

    method: str
    problem: str
    seed: int
    budget: int


def wanted(methods: Iterable[str], problems: Iterable[str], budget: int, seeds: int | None = None) -> list[Task]:
    """The runs of these methods on these problems: seeds 0 to `seeds` - 1, or as many as the benchmark has."""
    names, methods = list(problems), list(methods)
    dims = {name: problem_of(name, 0).dim for name in names}
    tasks = [
        Task(method, name, seed, budget)
        for name in names
        for method in methods
        if method not in PEERS or dims[name] <= (PEERS[method].largest or dims[name])
        for seed in range(seeds or (RIVAL_SEEDS if method in RIVALS else SEEDS))
    ]
    return sorted(tasks, key=lambda task: task.seed)  # so that an unfinished file has something of everything


def problem_of(name: str, seed: int) -> Problem:
    """The problem that a seed makes of a name: groups, optimum and noise are the seed's."""
    case = PROBLEMS[name]
    problem = sumbo.problems.get(case.problem, seed=seed)
    return problem.noisy(case.noise, seed) if case.noise else problem


# --- one run, in a process of its own ---


def run(task: Task) -> Run:
    """The line of a finished run; of one that failed, the error is the result."""
    needs = PEERS[task.method].needs if task.method in PEERS else ()
    for package in needs:
        importlib.import_module(package)  # before the clock starts
    line = {**task._asdict(), "versions": {p: version(p) for p in ("sumbo", *needs)}}
    problem = problem_of(task.problem, task.seed)
    observed = Observed(problem)
    seconds, error = attempt(lambda f: search(task, problem, f), observed, task.budget)
    return {**line, **({"error": error} if error else measured(observed.values, problem, seconds))}


def search(task: Task, problem: Problem, f: Objective) -> None:
    """Let the task's method spend its budget."""
    if task.method in PEERS:
        PEERS[task.method].search(f, problem.space, problem.direction, task.budget, task.seed)
        return
    optimise = sumbo.minimize if problem.direction == "minimize" else sumbo.maximize
    method = method_of(task.method, problem)
    changed = ABLATION.get(task.method, Changed())
    with patch.multiple(changed.module, **changed.names) if changed.names else nullcontext():
        optimise(f, problem.space, task.budget, method=method, seed=task.seed, progress=False)


def method_of(name: str, problem: Problem) -> str | Method:
    """One of sumbo's methods; the paper's is told the size of the largest true group."""
    if name == PAPER_METHOD:
        return sumbo.AddGPUCB.paper(max(map(len, problem.groups or ()), default=_DEFAULT_GROUP_SIZE))
    return RANDOM if name == RANDOM else OURS[name]


class Observed:
    """An objective that keeps the noise-free values of the points that it was asked for."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.values: list[float] = []

    def __call__(self, params: Mapping[str, Any]) -> float:
        x = self.problem.space.array(params)
        self.values.append(float(self.problem.values(x[None, :])[0]))
        return self.problem(x)


def warm_up(methods: Iterable[str | Method] = ("auto", Plain(), sumbo.AddGPUCB.paper(2))) -> None:
    """Import and compile what sumbo's methods use, so that no run's clock counts it."""
    for method in methods:
        sumbo.maximize(sum, [(0.0, 1.0)] * 4, 34, method=method, seed=0, progress=False)


# --- lines ---


def task_of(record: Run) -> Task:
    """The task that a line is the result of.

    Raises:
        KeyError, TypeError: The line lacks something.
    """
    task = Task(record["method"], record["problem"], record["seed"], record["budget"])
    if "error" not in record:
        _ = record["simple_regret"][-1], record["evaluations"][-1], record["average_regret"]
    return task


def title(task: Task) -> str:
    return f"{task.method} on {task.problem}, seed {task.seed}"


def in_short(record: Run) -> str:
    return f"failed: {record['error']}" if "error" in record else news(record)


WORK = Work(run, warm_up, task_of, title, in_short)
