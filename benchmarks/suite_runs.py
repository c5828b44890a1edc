"""What the suite runs: who is run on what and how often, and one run of a method on a problem."""

import importlib
from collections.abc import Iterable, Mapping
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
import regret_runs
from peers import Objective
from regret_runs import ABLATION, Task, title, warm_up
from runs import Run, Work, attempt, checkpoints
from suite_peers import PEERS

_NOISE_STREAM = 21  # keeps a problem's noise apart from what else its seed makes
LONG_BUDGET = 1000


class Plan(NamedTuple):
    """How often a method is run.

    Attributes:
        seeds: Seeds of a problem.
        long: Seeds of a problem with many evaluations.
        largest: The dimension above which it is too slow.
        problems: How many it is run on, half of them synthetic and half of them real; all, if not told.
    """

    seeds: int
    long: int = 0
    largest: int | None = None
    problems: int | None = None

    def chosen(self, entries: Mapping[str, Any]) -> set[str]:
        """The problems of a set that it is run on: where not all, of dimensions from the least to the largest."""
        there = {name: e for name, e in entries.items() if e.dim <= (self.largest or e.dim)}
        if self.problems is None:
            return set(there)
        found = set()
        for real in (False, True):
            by_size = sorted((n for n in there if there[n].real is real), key=lambda name: there[name].dim)
            count = min(self.problems // 2, len(by_size))
            found |= {by_size[i] for i in np.linspace(0, len(by_size) - 1, count).round().astype(int)}
        return found


# From cheap to slow, which is also the order of work.
PLANS = {
    "auto": Plan(10, long=5),
    "random": Plan(10, long=5),
    "cma-es": Plan(10, long=5),
    "optuna-tpe": Plan(10, long=5),
    "turbo": Plan(10, long=5),
    "optuna-gp": Plan(5, long=2),
    **dict.fromkeys(("hebo", "botorch-raasp", "msr", "spherical-linear"), Plan(3, largest=100, problems=12)),
    **dict.fromkeys(("orthogonal-additive", "saasbo"), Plan(2, largest=25, problems=4)),
}
PLAN_OF = PLANS | dict.fromkeys(ABLATION, PLANS["auto"]._replace(long=0))


def sets() -> dict[str, dict[str, Any]]:
    """The problems of both sets, by name. Importing them takes packages and time, so it is not done at once."""
    problems = importlib.import_module("suite_problems")
    return {"development": problems.DEVELOPMENT, "test": problems.TEST}


def entry(problem: str) -> Any:
    """The problem of a name."""
    return next(found[problem] for found in sets().values() if problem in found)


def wanted(
    entries: Mapping[str, Any],
    methods: Iterable[str],
    problems: Iterable[str],
    seeds: int | None = None,
    budget: int | None = None,
) -> list[Task]:
    """The runs of methods on problems of a set: seed by seed, the cheap methods first, many evaluations last.

    Seeds and budget are the plan's; given, they are those of every run, and none is repeated with many evaluations.
    """
    problems = list(problems)
    long = set() if budget else set(importlib.import_module("suite_problems").LONG)
    tasks = []
    for method in methods:
        plan = PLAN_OF[method]
        chosen = plan.chosen(entries)
        for name in [name for name in problems if name in chosen]:
            own = budget or entries[name].budget
            tasks += [Task(method, name, seed, own) for seed in range(seeds or plan.seeds)]
            if name in long:
                tasks += [Task(method, name, seed, LONG_BUDGET) for seed in range(min(seeds or plan.long, plan.long))]
    order = list(PLAN_OF)
    return sorted(tasks, key=lambda task: (task.budget, task.seed, order.index(task.method)))


# --- one run, in a process of its own ---


def run(task: Task) -> Run:
    """The line of a run. One that failed tells why, and has what it had found by then."""
    peer = PEERS.get(task.method)
    for package in peer.needs if peer else ():
        importlib.import_module(package)  # before the clock starts
    line = {**task._asdict(), "versions": {"sumbo": version("sumbo"), **(peer.versions() if peer else {})}}
    problem = entry(task.problem).make(task.seed)
    observed = Observed(problem, task.seed)
    seconds, error = attempt(partial(search, task, problem), observed, task.budget)
    failed = {"error": error} if error else {}
    return {**line, **failed, **figures(observed.values, problem, task.budget, seconds)}


def search(task: Task, problem: Any, f: Objective) -> None:
    """Let the task's method spend its budget."""
    if task.method in PEERS:
        known = {"deterministic": problem.noise == 0.0} if task.method == "optuna-gp" else {}
        PEERS[task.method].search(f, problem.space, problem.direction, task.budget, task.seed, **known)
    else:
        regret_runs.search(task, problem, f)


class Observed:
    """An objective that keeps the noise-free values of the points that it was asked for, and adds noise to them."""

    def __init__(self, problem: Any, seed: int) -> None:
        self.problem = problem
        self.values: list[float] = []
        self._rng = np.random.default_rng([_NOISE_STREAM, seed])

    def __call__(self, params: Mapping[str, Any]) -> float:
        self.values.append(float(self.problem.value(params)))
        return self.values[-1] + self.problem.noise * float(self._rng.standard_normal())


def figures(values: list[float], problem: Any, budget: int, seconds: float) -> Run:
    """What a line tells of the noise-free values of a run; none where there is no value."""
    if not values:
        return {}
    better = np.minimum if problem.direction == "minimize" else np.maximum
    best = better.accumulate(values[:budget])
    at = [min(t, len(best)) - 1 for t in checkpoints(budget)]
    return {
        "direction": problem.direction,
        "optimum": problem.optimum,
        "evaluations": checkpoints(budget),
        "best": [float(best[i]) for i in at],
        "mean": float(np.mean(values[:budget])),
        "seconds_per_suggestion": seconds / len(values),
    }


# --- lines ---


def task_of(record: Run) -> Task:
    """The task that a line is the result of.

    Raises:
        KeyError, TypeError: The line lacks something.
    """
    if "error" not in record:
        _ = record["best"][-1], record["evaluations"][-1], record["mean"], record["optimum"], record["direction"]
    return Task(record["method"], record["problem"], record["seed"], record["budget"])


def news(record: Run) -> str:
    if "error" in record:
        return f"failed: {record['error']}"
    return f"best {record['best'][-1]:.4g}, {record['seconds_per_suggestion']:.2g} s per suggestion"


WORK = Work(run, partial(warm_up, ["auto"]), task_of, title, news)
