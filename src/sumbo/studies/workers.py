"""Worker processes: each evaluates one job at a time, can be killed alone, and dies with the process that started it.

`concurrent.futures` has pools, but one killed or hanging worker ends the whole pool there, and workers whose parent was
killed wait for ever.
"""

import contextlib
import importlib
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from sumbo.studies.objectives import Function, Job, Objective, Outcome, outcome_of
from sumbo.studies.programs import Group, kill_group, last_lines, run_program

_EXTRA = 5.0  # seconds that a worker gets beyond a program's timeout, which it enforces itself
_FAREWELL = 2.0  # seconds in which a worker can end its program before it is killed


class Workers:
    """A fixed number of them. Use as a context manager: none is left behind."""

    def __init__(self, objective: Objective, workers: int, timeout: float | None) -> None:
        self._objective = objective
        self._timeout = timeout
        self._slots = [_Slot(objective) for _ in range(workers)]

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *error: object) -> None:
        for slot in self._slots:
            slot.dismiss()
        for slot in self._slots:
            slot.bury()

    @property
    def free(self) -> int:
        """How many have nothing to do."""
        return sum(slot.job is None for slot in self._slots)

    def start(self, job: Job) -> None:
        """Give a job to a worker that is free."""
        slot = next(slot for slot in self._slots if slot.job is None)
        limit = None
        if self._timeout is not None:
            limit = self._timeout + (0.0 if isinstance(self._objective, Function) else _EXTRA)
        slot.start(job, limit)

    def finished(self, seconds: float) -> list[tuple[Job, Outcome]]:
        """Jobs that end within so many seconds, as soon as there is one; hanging and dead workers count."""
        busy = [slot for slot in self._slots if slot.job is not None]
        moment = min([time.monotonic() + seconds, *(slot.deadline for slot in busy)])
        wait([handle for slot in busy for handle in slot.handles], max(moment - time.monotonic(), 0.0))
        return [ended for slot in busy for ended in slot.ended(self._timeout)]


class _Slot:
    """A place for one worker process, which is started when first needed and replaced when it is gone."""

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None
        self._lifeline: Connection | None = None
        self._limit = float("inf")
        self.job: Job | None = None
        self.deadline = float("inf")

    @property
    def handles(self) -> list[Any]:
        """What shows that something happened."""
        return [self._pipe] if self._process is None else [self._pipe, self._process.sentinel]

    def start(self, job: Job, limit: float | None) -> None:
        if self._process is None or not self._process.is_alive():
            self._hire()
        assert self._pipe is not None
        self.job = job
        self._limit = float("inf") if limit is None else limit
        with contextlib.suppress(OSError):  # it died this moment: `ended` says so
            self._pipe.send(job)

    def ended(self, timeout: float | None) -> list[tuple[Job, Outcome]]:
        job, pipe, process = self.job, self._pipe, self._process
        assert job is not None
        assert pipe is not None
        assert process is not None
        try:
            if pipe.poll():
                outcome = pipe.recv()
                if outcome is None:  # it begins: the time that a new process takes to start is not the objective's
                    self.deadline = time.monotonic() + self._limit
                    return []
                self.job, self.deadline = None, float("inf")
                return [(job, outcome)]
        except (EOFError, OSError):
            process.join(_FAREWELL)
        if not process.is_alive():
            outcome = Outcome(reason=f"the worker process died ({_ending(process.exitcode)})")
        elif time.monotonic() >= self.deadline:
            outcome = Outcome(reason=f"took longer than timeout = {timeout:g} seconds")
        else:
            return []
        self.dismiss()
        self.bury()
        return [(job, outcome)]

    def _hire(self) -> None:
        self.bury()
        # Spawned, not forked: this process has threads, and locks that a fork would copy in whatever state they are.
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        end, self._lifeline = context.Pipe(duplex=False)
        self._process = context.Process(target=_serve, args=(self._objective, theirs, end), name="sumbo worker")
        with _interrupts_blocked():
            self._process.start()
        theirs.close()
        end.close()

    def dismiss(self) -> None:
        """Ask it to end, with what it runs."""
        if self._lifeline is not None:
            self._lifeline.close()
            self._lifeline = None

    def bury(self) -> None:
        """See to it that it has ended."""
        if self._process is None:
            return
        self.dismiss()
        self._process.join(_FAREWELL)
        if self._process.is_alive() and self._process.pid is not None:
            self._process.kill()
            kill_group(self._process.pid)
            self._process.join()
        self._process.close()
        if self._pipe is not None:
            self._pipe.close()
        self._process, self._pipe, self.job, self.deadline = None, None, None, float("inf")


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """A new process is to have Ctrl-C blocked until it has left the terminal's group; it inherits that from here."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _ending(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {-code}, {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"


# --- in the worker -----------------------------------------------------------------------------------------


def _serve(objective: Objective, jobs: Connection, lifeline: Connection) -> None:
    """Evaluate job after job. The parent's end of the lifeline closes when it wants us gone, and when it dies."""
    group = Group()
    _leave_the_terminal()
    threading.Thread(target=_end_with_parent, args=(lifeline, group), daemon=True).start()
    while True:
        try:
            job = jobs.recv()
        except (EOFError, OSError):
            return
        jobs.send(None)
        jobs.send(_evaluated(objective, job, group))


def _leave_the_terminal() -> None:
    """Ctrl-C is the parent's to handle, and standard output for its answer: what objectives print goes to errors."""
    if hasattr(os, "setsid"):
        os.setsid()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    else:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)


def _end_with_parent(lifeline: Connection, group: Group) -> None:
    with contextlib.suppress(EOFError, OSError):
        lifeline.recv_bytes()
    group.end()
    os._exit(1)


def _evaluated(objective: Objective, job: Job, group: Group) -> Outcome:
    if not isinstance(objective, Function):
        return run_program(objective, job, group)
    try:
        return outcome_of(_found(objective)(dict(job.params)))
    except (Exception, SystemExit) as error:  # whatever the user's code raises is a failed trial
        lines = "".join(traceback.format_exception(error)).splitlines()
        return Outcome(reason=f"{type(error).__name__}: {error}"[:500], detail=last_lines(lines))


def _found(function: Function) -> Any:
    """The function; imported at the first call, so that a mistake in its module is a failed trial with a reason."""
    if sys.path[0] != function.folder:
        sys.path.insert(0, function.folder)
        os.chdir(function.folder)
    return getattr(importlib.import_module(function.module), function.name)
