"""Many runs, in parallel and over several sittings: what the benchmarks with a results file share.

A finished run is one line of JSON. The same command goes on where it was stopped, by Ctrl-C, `kill` or a crash.
"""

import json
import math
import multiprocessing
import os
import signal
import statistics
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import sumbo
from sumbo.problems import Problem

EVERY = 10  # evaluations between two points of a regret curve
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL", "NUMBA")}
STOPPED = 130  # what a shell reports of a command that Ctrl-C ended

Run = dict[str, Any]  # a line of the file
Task = TypeVar("Task", bound=Hashable)  # one run to do; also the key under which a finished run is found again


class Work(NamedTuple, Generic[Task]):
    """What a benchmark says of its runs. The first two must be importable: they go to worker processes.

    Attributes:
        run: Does a task and returns its line.
        warm_up: Called once in each process before its first run, so that no run's clock counts imports.
        task_of: The task of a line; raises KeyError, TypeError or ValueError where it is none.
        title, news: A task and its line, in the words of the progress report.
    """

    run: Callable[[Task], Run]
    warm_up: Callable[[], None]
    task_of: Callable[[Run], Task]
    title: Callable[[Task], str]
    news: Callable[[Run], str]


# --- doing what is left ---


def complete(work: Work[Task], wanted: Sequence[Task], done: Mapping[Task, Run], out: Path, jobs: int) -> int:
    """Do the wanted tasks that are not done, and append their lines to the file.

    Returns:
        How many failed and left no line.

    Raises:
        KeyboardInterrupt: Stopped by Ctrl-C or `kill`; this has been said.
    """
    left = [task for task in wanted if task not in done]
    print(f"{len(wanted) - len(left)} of {len(wanted)} runs are in {out}", file=sys.stderr)
    if not left:
        return 0
    mend(out)
    handler = signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that `kill` takes the workers along
    try:
        return run_all(work, left, out, jobs)
    except KeyboardInterrupt:
        print(f"stopped; finished runs are in {out}, the same command goes on", file=sys.stderr)
        raise
    finally:
        signal.signal(signal.SIGTERM, handler)


def run_all(work: Work[Task], tasks: Sequence[Task], out: Path, jobs: int) -> int:
    """Do the tasks in parallel and append each to the file as it ends; the number that failed."""
    failed = 0
    with out.open("a", encoding="utf-8") as file, started(work, tasks, jobs) as futures:
        for i, future in enumerate(as_completed(futures), start=1):
            task = futures[future]
            try:
                result = future.result()
            except BrokenProcessPool:  # a worker was killed, and with it all that is left
                raise
            except Exception as error:
                failed += 1
                news = f"failed with {type(error).__name__}: {error}\n{error.__cause__ or ''}"
            else:
                file.write(json.dumps(result) + "\n")
                file.flush()
                news = work.news(result)
            print(f"[{i}/{len(tasks)}] {work.title(task)}: {news}", file=sys.stderr, flush=True)
    return failed


@contextmanager
def started(work: Work[Task], tasks: Sequence[Task], jobs: int) -> Iterator[dict[Future[Run], Task]]:
    """The tasks, running in processes of one thread each, which end with the block."""
    # Fresh interpreters inherit both: the variables must be there before NumPy is imported, and Ctrl-C be
    # ignored from the first moment, for `sumbo.maximize` would take it as the wish for an early result.
    # All are started by the time the tasks are submitted, and this process gets its own settings back.
    before = os.environ.copy()
    os.environ.update(ONE_THREAD)
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(min(jobs, len(tasks)), context, initializer=work.warm_up)
        futures = {pool.submit(work.run, task): task for task in tasks}
    finally:
        signal.signal(signal.SIGINT, handler)
        for name in ONE_THREAD:
            if name in before:
                os.environ[name] = before[name]
            else:
                del os.environ[name]
    try:
        yield futures
    except BaseException:
        for worker in multiprocessing.active_children():
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def command(file: str) -> Iterator[None]:
    """What ends a benchmark's command early becomes a sentence and a status; `file` is the command's."""
    name = Path(file).name
    try:
        yield
    except KeyboardInterrupt:
        sys.exit(STOPPED)
    except BrokenExecutor:
        # Its own words, if it had any, are above.
        sys.exit(f"{name}: a worker process died (killed, or out of memory?); the same command goes on")
    except (OSError, ValueError) as error:
        sys.exit(f"{name}: {error}")


# --- the file ---


def read_lines(path: Path, task_of: Callable[[Run], Task]) -> dict[Task, Run]:
    """The finished runs of a file. A last line that was cut off, as by a crash, is left out.

    Raises:
        ValueError: Another line is not a run; the message says which.
    """
    runs = {}
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    for number, line in enumerate(lines, start=1):
        if cut_off(line):
            break
        try:
            record = json.loads(line)
            runs[task_of(record)] = record
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path}, line {number} is not a run of this benchmark: {line[:60]!r}") from error
    return runs


def mend(path: Path) -> None:
    """End the file after its last whole line, so that the next one starts on a line of its own."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    if lines and cut_off(lines[-1]):
        os.truncate(path, sum(len(line.encode()) for line in lines[:-1]))
    elif lines and not lines[-1].endswith("\n"):
        with path.open("a", encoding="utf-8") as file:
            file.write("\n")


def cut_off(line: str) -> bool:
    """Is this the beginning of a line that was never finished?"""
    if line.endswith("\n") or not line.startswith("{"):
        return False
    try:
        json.loads(line)
    except ValueError:
        return True
    return False


# --- what runs measure ---


class Timed:
    """An objective that counts the seconds spent in it."""

    def __init__(self, f: Callable[[Any], float]) -> None:
        self.f = f
        self.seconds = 0.0

    def __call__(self, point: Any) -> float:
        start = time.perf_counter()
        value = self.f(point)
        self.seconds += time.perf_counter() - start
        return value


def attempt(search: Callable[[Timed], None], f: Any, budget: int) -> tuple[float, str | None]:
    """Let a search spend a budget on an objective, which keeps its `values`.

    Returns:
        The seconds that were not the objective's, and what went wrong, if anything did.
    """
    timed, error = Timed(f), None
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            search(timed)
        if len(f.values) != budget:
            raise RuntimeError(f"{len(f.values)} evaluations were made instead of {budget}")
    except Exception as raised:
        where = traceback.extract_tb(raised.__traceback__)[-1]
        what = f"{type(raised).__name__}: {raised}"[:300]
        error = f"{what} ({where.name}, after {len(f.values)} evaluations)"
    return time.perf_counter() - start - timed.seconds, error


def measured(values: Sequence[float], problem: Problem, seconds: float) -> Run:
    """The figures of a run: its noise-free values in order, and the seconds that all its suggestions took."""
    simple = sumbo.regret.simple_regret(values, problem.optimum, direction=problem.direction)
    average = sumbo.regret.average_regret(values, problem.optimum, direction=problem.direction)
    evaluations = checkpoints(len(values))
    return {
        "evaluations": evaluations,
        "simple_regret": [float(simple[t - 1]) for t in evaluations],
        "average_regret": float(average[-1]),
        "seconds_per_suggestion": seconds / len(values),
    }


def news(record: Run) -> str:
    """The figures of a finished run in a few words."""
    final, seconds = record["simple_regret"][-1], record["seconds_per_suggestion"]
    return f"simple regret {final:.3g}, {seconds:.2g} s per suggestion"


def checkpoints(budget: int) -> list[int]:
    """The numbers of evaluations at which a curve has a point."""
    return sorted({*range(EVERY, budget + 1, EVERY), budget})


def standard_error(values: Sequence[float]) -> float:
    """Standard error of the mean; NaN for a single value, which has none to tell."""
    return statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else math.nan


def default_jobs() -> int:
    """Runs at a time: as many as there are cores, for each keeps to one."""
    return os.cpu_count() or 1
