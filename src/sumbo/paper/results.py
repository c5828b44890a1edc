"""Runs in the order that figures, tables and claims ask for."""

import math
import statistics
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from sumbo.paper.tasks import Line, Task
from sumbo.regret import FloatArray, average_regret, simple_regret


class Curve(NamedTuple):
    """Mean over runs with its standard error, after each evaluation; (T,) both."""

    mean: FloatArray
    error: FloatArray


class Results:
    """Finished runs, by experiment and problem."""

    def __init__(self, lines: Mapping[Task, Line]) -> None:
        self._lines: dict[tuple[str, str], dict[str, dict[int, Line]]] = {}
        for task, line in lines.items():
            of_problem = self._lines.setdefault((task.experiment, task.problem), {})
            of_problem.setdefault(task.method, {})[task.seed] = line

    def problems(self, experiment: str) -> list[str]:
        """Problems of an experiment that have runs."""
        return [problem for of, problem in self._lines if of == experiment]

    def methods(self, experiment: str, problem: str) -> list[str]:
        """Methods that have runs on a problem."""
        return list(self._lines.get((experiment, problem), {}))

    def lines(self, experiment: str, problem: str, method: str) -> dict[int, Line]:
        """The runs of a method, by seed."""
        return self._lines.get((experiment, problem), {}).get(method, {})

    def simple(self, experiment: str, problem: str, method: str) -> dict[int, float]:
        """Simple regret at the end of each run."""
        runs = self.lines(experiment, problem, method)
        return {seed: float(simple_curve(line)[-1]) for seed, line in runs.items()}

    def average(self, experiment: str, problem: str, method: str) -> dict[int, float]:
        """R_T / T of each run."""
        runs = self.lines(experiment, problem, method)
        return {seed: float(average_curve(line)[-1]) for seed, line in runs.items()}


def simple_curve(line: Line) -> FloatArray:
    """S_t of a run. Before the first evaluation that succeeds it is that one's: infinity cannot be drawn."""
    curve = simple_regret(line["values"], line["optimum"], direction="maximize")
    finite = np.isfinite(curve)
    return np.where(finite, curve, curve[finite].max() if finite.any() else np.nan)


def average_curve(line: Line) -> FloatArray:
    """R_t / t of a run."""
    return average_regret(line["values"], line["optimum"], direction="maximize")


def curve(curves: Iterable[FloatArray]) -> Curve:
    """Mean and standard error of several runs; of one run the error is 0."""
    rows = np.array(list(curves))
    error = rows.std(axis=0, ddof=1) / math.sqrt(len(rows)) if len(rows) > 1 else np.zeros(rows.shape[1])
    return Curve(rows.mean(axis=0), error)


def mean_and_error(values: Iterable[float]) -> str:
    """Mean and standard error in digits that fit them; of a single value there is no error to tell."""
    known = list(values)
    mean = statistics.fmean(known)
    if len(known) == 1:
        return f"{mean:.4g}"
    return f"{mean:.4g} ± {statistics.stdev(known) / math.sqrt(len(known)):.2g}"


def advantage(mine: Mapping[int, float], other: Mapping[int, float]) -> int | None:
    """Whose regret is smaller, over the seeds that both have: 1 mine, -1 the other's, 0 if it cannot be told.

    It can be told if the mean difference is larger than its standard error. None if there are not two seeds.
    """
    gaps = [other[seed] - mine[seed] for seed in mine if seed in other]
    if len(gaps) < 2:
        return None
    mean, error = statistics.fmean(gaps), statistics.stdev(gaps) / math.sqrt(len(gaps))
    if abs(mean) <= error:
        return 0
    return 1 if mean > 0 else -1
