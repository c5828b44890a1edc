"""Many runs, in parallel and over several sittings.

A finished run is one line of JSON. The same command goes on where it was stopped, by Ctrl-C, `kill` or a crash.
"""

import json
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from sumbo.errors import SettingError, StoreError
from sumbo.paper.tasks import Line, Task, line_of, task_of

_ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL", "NUMBA")}

Run = Callable[[Task], Line]


class Ended(NamedTuple):
    """One task more: its line, or why there is none."""

    task: Task
    line: Line | None
    reason: str = ""


def complete(run: Run, tasks: Sequence[Task], path: Path, jobs: int, ended: Callable[[Ended], None]) -> int:
    """Do tasks in processes of their own, append each line to the file, and tell the listener.

    Args:
        run: Does a task and returns its result; importable, for it goes to other processes.
        tasks: What is left to do.
        path: The file of lines.
        jobs: How many at a time.
        ended: Called with every task that has ended.

    Returns:
        How many failed and left no line.

    Raises:
        KeyboardInterrupt: Ctrl-C or `kill`; finished runs are in the file.
        StoreError: The file cannot be written, or a process died.
    """
    if not tasks:
        return 0
    failed = 0
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that `kill` takes the processes along
    try:
        mend(path)
        with path.open("a", encoding="utf-8") as file, _started(run, tasks, jobs) as futures:
            for future in as_completed(futures):
                end = _outcome(futures[future], future)
                if end.line is None:
                    failed += 1
                else:
                    file.write(json.dumps(end.line) + "\n")
                    file.flush()
                ended(end)
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


def _outcome(task: Task, future: Future[Line]) -> Ended:
    try:
        return Ended(task, line_of(task, future.result()))
    except BrokenProcessPool:
        raise
    except Exception as error:  # one run that fails does not end the others
        return Ended(task, None, f"{type(error).__name__}: {error}")


@contextmanager
def _started(run: Run, tasks: Sequence[Task], jobs: int) -> Iterator[dict[Future[Line], Task]]:
    """The tasks, running in processes of one thread each, which end with the block."""
    # Fresh interpreters inherit both: the variables must be there before NumPy is imported, and Ctrl-C be ignored from
    # the first moment, for `sumbo.maximize` would take it as the wish for an early result.
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(_ONE_THREAD)
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(min(jobs, len(tasks)), context)
        futures = {pool.submit(run, task): task for task in tasks}
    finally:
        signal.signal(signal.SIGINT, handler)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    try:
        yield futures
    except BaseException:
        for process in list(pool._processes.values()):
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


# --- the file ---


def read_lines(path: Path) -> dict[Task, Line]:
    """The finished runs of a file. A last line that was cut off, as by a crash, is left out.

    Raises:
        SettingError: Another line is not a run; the message says which.
    """
    lines = {}
    for number, text in enumerate(_texts(path), start=1):
        if _cut_off(text):
            break
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
    texts = _texts(path)
    if texts and _cut_off(texts[-1]):
        os.truncate(path, sum(len(text.encode()) for text in texts[:-1]))
    elif texts and not texts[-1].endswith("\n"):
        with path.open("a", encoding="utf-8") as file:
            file.write("\n")


def _texts(path: Path) -> list[str]:
    if not path.exists():
        return []
    try:
        return path.read_text(encoding="utf-8").splitlines(keepends=True)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{path}: expected a file of runs; it cannot be read: {error}") from None


def _cut_off(text: str) -> bool:
    """Is this the beginning of a line that was never finished?"""
    if text.endswith("\n"):
        return False
    try:
        json.loads(text)
    except ValueError:
        return True
    return False
