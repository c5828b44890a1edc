"""One run to do, and the line of JSON that it leaves."""

from collections.abc import Mapping
from typing import Any, NamedTuple

Line = dict[str, Any]


class Sources(NamedTuple):
    """Data of the user's own, as paths; empty for what sumbo brings along or makes."""

    lrg: str = ""
    faces: str = ""
    nonfaces: str = ""
    cascade: str = ""

    def of(self, experiment: str) -> "Sources":
        """Those that matter for an experiment, so that a run of another one is found again whatever they are."""
        if experiment == "astro":
            return Sources(lrg=self.lrg)
        if experiment == "faces":
            return self._replace(lrg="")
        return Sources()


class Task(NamedTuple):
    """One run to do; also the key under which a finished one is found again.

    Attributes:
        experiment: "synthetic", "astro", "faces" or "rates".
        problem: What is optimised or measured.
        method: By the name it has in figures and tables.
        seed: Of the problem and of the run.
        budget: Evaluations.
        sources: Data of the user's own.
    """

    experiment: str
    problem: str
    method: str
    seed: int
    budget: int
    sources: Sources = Sources()

    @property
    def title(self) -> str:
        """The task in words."""
        return f"{self.experiment}, {self.problem}, {self.method}, seed {self.seed}"


def line_of(task: Task, result: Mapping[str, Any]) -> Line:
    """The task and its result as JSON."""
    return {**task._asdict(), "sources": task.sources._asdict(), **result}


def task_of(line: Line) -> Task:
    """The task of a line.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    sources = Sources(**line["sources"])
    experiment, problem, method = (str(line[key]) for key in ("experiment", "problem", "method"))
    return Task(experiment, problem, method, int(line["seed"]), int(line["budget"]), sources)
