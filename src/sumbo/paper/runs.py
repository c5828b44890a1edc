"""Runs: what one is, doing many in parallel and over several sittings, and what they tell.

A finished run is one line of JSON. The same command goes on where it was stopped, by Ctrl-C, `kill` or a crash.
"""

import json
import math
import multiprocessing
import os
import signal
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sumbo._files import write_whole
from sumbo.errors import SettingError, StoreError
from sumbo.regret import FloatArray, average_regret, simple_regret

_ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL", "NUMBA")}

Line = dict[str, Any]
Curve = Callable[[Line], FloatArray]  # a regret of a run, after each evaluation


class Sources(NamedTuple):
    """Data of the user's own, as paths; empty for what sumbo brings along or makes."""

    lrg: str = ""
    faces: str = ""
    nonfaces: str = ""
    cascade: str = ""

    def of(self, experiment: str) -> "Sources":
        """Those that matter for an experiment, so that a run of another one is found again whatever they are."""
        known = {"astro": Sources(lrg=self.lrg), "faces": self._replace(lrg="")}
        return known.get(experiment, Sources())


class Task(NamedTuple):
    """One run to do; also the key under which a finished one is found again."""

    experiment: str
    problem: str  # what is optimised or measured
    method: str  # by the name it has in figures and tables
    seed: int  # of the problem and of the run
    budget: int  # evaluations
    sources: Sources = Sources()

    @property
    def title(self) -> str:
        """The task in words."""
        return f"{self.experiment}, {self.problem}, {self.method}, seed {self.seed}"


def line_of(task: Task, result: Mapping[str, Any]) -> Line:
    """The task and its result as JSON."""
    return {**task._asdict(), "sources": task.sources._asdict(), **result}


def task_of(line: Line) -> Task:
    """The task of a line; a KeyError, TypeError or ValueError if it is none."""
    experiment, problem, method = (str(line[key]) for key in ("experiment", "problem", "method"))
    return Task(experiment, problem, method, int(line["seed"]), int(line["budget"]), Sources(**line["sources"]))


class Ended(NamedTuple):
    """One task more: its line, or why there is none."""

    task: Task
    line: Line | None
    reason: str = ""


def complete(
    run: Callable[[Task], Line], tasks: Sequence[Task], path: Path, jobs: int, ended: Callable[[Ended], None]
) -> int:
    """Do tasks, so many at a time, append each line to the file, and tell the listener; how many failed.

    `run` must be importable, for it goes to other processes. Ctrl-C and `kill` are a KeyboardInterrupt; finished runs
    are in the file then.
    """
    if not tasks:
        return 0
    failed = 0
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that `kill` takes the processes along
    try:
        mend(path)
        with path.open("a", encoding="utf-8") as file, _started(run, tasks, jobs) as futures:
            for future in as_completed(futures):
                task, error = futures[future], future.exception()
                if error is not None and not isinstance(error, BrokenProcessPool):
                    failed += 1
                    ended(Ended(task, None, f"{type(error).__name__}: {error}"))
                    continue  # one run that fails does not end the others
                line = line_of(task, future.result())
                file.write(json.dumps(line) + "\n")
                file.flush()
                ended(Ended(task, line))
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror or error}; choose another --out") from None
    except BrokenProcessPool:
        raise StoreError(
            "a process of the run was ended from outside, perhaps for lack of memory; finished runs are kept: "
            "run the same command again, with a smaller --jobs"
        ) from None
    finally:
        signal.signal(signal.SIGTERM, before)
    return failed


@contextmanager
def _started(run: Callable[[Task], Line], tasks: Sequence[Task], jobs: int) -> Iterator[dict[Future[Line], Task]]:
    """The tasks, running in processes of one thread each, which end with the block."""
    # Fresh interpreters inherit both: the variables must be there before NumPy is imported, and Ctrl-C be ignored from
    # the first moment, for `sumbo.maximize` would take it as the wish for an early result.
    before = {name: os.environ[name] for name in _ONE_THREAD if name in os.environ}
    os.environ.update(_ONE_THREAD)
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        pool = ProcessPoolExecutor(min(jobs, len(tasks)), multiprocessing.get_context("spawn"))
        futures = {pool.submit(run, task): task for task in tasks}
    finally:
        signal.signal(signal.SIGINT, handler)
        for name in _ONE_THREAD:
            del os.environ[name]
        os.environ.update(before)
    try:
        yield futures
    except BaseException:
        for process in list(pool._processes.values()):
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def read_lines(path: Path) -> dict[Task, Line]:
    """The finished runs of a file."""
    lines = {}
    for number, text in enumerate(_texts(path), start=1):
        try:
            line = json.loads(text)
            lines[task_of(line)] = line
        except (ValueError, KeyError, TypeError):
            raise SettingError(
                f"{path}, line {number}: expected a run of `sumbo reproduce`, got {text[:60]!r}; "
                "remove the line, or choose another --out"
            ) from None
    return lines


def mend(path: Path) -> None:
    """End the file after its last whole line, so that the next one starts on a line of its own."""
    if path.exists() and not path.read_bytes().endswith(b"\n"):
        write_whole(path, "".join(f"{text}\n" for text in _texts(path)).encode())


def _texts(path: Path) -> list[str]:
    """The lines of a file. A last one that was cut off, as by a crash, is left out."""
    if not path.exists():
        return []
    try:
        *texts, rest = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{path}: expected a file of runs; it cannot be read: {error}") from None
    with suppress(ValueError):
        json.loads(rest)
        texts.append(rest)  # all of it is there but its end of line
    return texts


def simple_curve(line: Line) -> FloatArray:
    """S_t of a run. Before the first evaluation that succeeds it is that one's: infinity cannot be drawn."""
    curve = simple_regret(line["values"], line["optimum"], direction="maximize")
    finite = np.isfinite(curve)
    return np.where(finite, curve, curve[finite].max() if finite.any() else np.nan)


def average_curve(line: Line) -> FloatArray:
    """R_t / t of a run."""
    return average_regret(line["values"], line["optimum"], direction="maximize")


class Results:
    """Finished runs, by problem: no two experiments share one."""

    def __init__(self, lines: Mapping[Task, Line]) -> None:
        self._lines: dict[str, dict[str, dict[int, Line]]] = {}
        self._experiments: dict[str, str] = {}
        for task, line in lines.items():
            self._experiments[task.problem] = task.experiment
            self._lines.setdefault(task.problem, {}).setdefault(task.method, {})[task.seed] = line

    def problems(self, experiment: str) -> list[str]:
        """Problems of an experiment that have runs."""
        return [problem for problem, of in self._experiments.items() if of == experiment]

    def of(self, problem: str) -> dict[str, dict[int, Line]]:
        """The runs on a problem, by method and seed."""
        return self._lines.get(problem, {})

    def all(self, problem: str) -> list[Line]:
        """The runs of all methods."""
        return [line for by_seed in self.of(problem).values() for line in by_seed.values()]

    def first(self, problem: str) -> dict[str, Line]:
        """The first run of each method."""
        return {method: next(iter(by_seed.values())) for method, by_seed in self.of(problem).items()}

    def last(self, problem: str, method: str, curve: Curve = simple_curve) -> dict[int, float]:
        """Simple regret, or another one, at the end of each run."""
        return {seed: float(curve(line)[-1]) for seed, line in self.of(problem).get(method, {}).items()}


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
    return 0 if abs(mean) <= error else 1 if mean > 0 else -1


HELD, NOT, OPEN, MISSING = "held", "did not hold", "cannot be told", "not measured"


class Finding(NamedTuple):
    """What was measured of a claim, one of the four verdicts above, and why we think it did not hold."""

    measured: str = ""
    verdict: str = MISSING
    why: str = ""


def finding(told: Sequence[str], verdict: str, *, of: str = "", between: str = "; ") -> Finding:
    """What was measured, piece by piece, and what follows; "not measured" if nothing was."""
    return Finding(of + between.join(told), verdict) if told else Finding()
