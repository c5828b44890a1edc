"""`sumbo run`: ask, evaluate in workers, tell, until the budget is spent. Any number of these can share a study."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from types import FrameType

from sumbo.errors import ObjectiveError, SettingError, StoreError
from sumbo.executors.ahead import Ahead
from sumbo.executors.answers import Answer, Place
from sumbo.executors.borrowed import ExecutorGoneError
from sumbo.studies import owners
from sumbo.studies.evaluating import outcome as outcome_of_answer
from sumbo.studies.evaluating import place_of
from sumbo.studies.file import StudyFile
from sumbo.studies.objectives import Job, Objective, Outcome, Program
from sumbo.studies.programs import check_program
from sumbo.studies.store import HEARTBEAT, Asked, Store

_HOPELESS = 10  # give up when so many evaluations failed alike and none has succeeded
_TICK = 0.5  # seconds after which we look whether there is something else to do


@dataclass(frozen=True)
class Ended:
    """A trial that has just been told."""

    number: int
    outcome: Outcome


@dataclass(frozen=True)
class Listener:
    """Whom to tell what happens: a trial has ended; a remark."""

    ended: Callable[[Ended], None]
    say: Callable[[str], None]


class Stopping:
    """Ctrl-C once: no new trials. Twice, or SIGTERM: stop now, but for a value that is just being stored."""

    def __init__(self) -> None:
        self.wanted = False
        self._now = False
        self._shielded = False

    @contextmanager
    def on_signals(self) -> Iterator["Stopping"]:
        before = {number: signal.signal(number, self._handle) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def shield(self) -> None:
        """Nothing interrupts what is done from here on."""
        self._shielded = True

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Nothing interrupts what is done in here."""
        self.shield()
        try:
            yield
        finally:
            self._shielded = False
        if self._now:
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if not self.wanted and number == signal.SIGINT:
            self.wanted = True
            # Not through Python's buffers, which may be in use at this moment.
            os.write(2, b"sumbo: finishing the trials that run; Ctrl-C again to stop now\n")
            return
        self.wanted = self._now = True
        if not self._shielded:
            raise KeyboardInterrupt


def run(study: StudyFile, store: Store, budget: int, workers: int | None, listener: Listener) -> bool:
    """Evaluate until so many trials of the study are finished.

    Args:
        study: the study.
        store: where it is kept.
        budget: how many trials.
        workers: evaluations at a time; None for one, or as many as the study's executor has.
        listener: whom to tell.

    Returns:
        Whether it came to its end; False if it was interrupted.

    Raises:
        ObjectiveError: the first ten evaluations all failed with the same reason.
        SettingError, StudyFileError: there is nothing to evaluate, or a program that is not there.
        StoreError: the study's executor takes no more work.
    """
    objective = checked_objective(study)
    store.prepare()
    stopping = Stopping()
    loop = _Loop(study, store, budget, stopping, listener)
    with stopping.on_signals():
        try:
            with ExitStack() as stack:
                place, workers, afterwards = place_of(study, objective, workers)
                stack.callback(afterwards)
                stack.enter_context(closing(place))
                loop.go_on(place, workers)
        except KeyboardInterrupt:
            stopping.wanted = True
        except ExecutorGoneError as error:
            raise StoreError(f"executor {study.executor} takes no more work: {error}; start it and run again") from None
        finally:  # the workers have ended
            stopping.shield()
            loop.let_go()
    return not stopping.wanted


def checked_objective(study: StudyFile) -> Objective:
    """What is to be evaluated.

    Raises:
        SettingError, StudyFileError: there is nothing, or a program that is not there.
    """
    if study.objective is None:
        raise SettingError(
            f'{study.path}: sumbo run needs objective = "module:function" or command = [...]; '
            "to run experiments by hand, use sumbo ask and sumbo tell"
        )
    if isinstance(study.objective, Program):
        check_program(study.objective)
    return study.objective


class _Loop:
    def __init__(self, study: StudyFile, store: Store, budget: int, stopping: Stopping, listener: Listener) -> None:
        self._study = study
        self._store = store
        self._budget = budget
        self._stopping = stopping
        self._listener = listener
        self._running: dict[int, Asked] = {}
        self._futures: dict[Future[Answer], Job] = {}
        self._tries: dict[int, int] = {}
        self._first_reasons: list[str | None] = []
        self._looked_after = float("-inf")

    def go_on(self, place: Place, workers: int) -> None:
        ahead = Ahead(workers)
        try:
            while True:
                self._look_after()
                if self._stopping.wanted:
                    self._take_back()
                more = not self._stopping.wanted and len(self._futures) < workers + ahead.wanted
                began = more and self._begin(place, ahead)
                if not self._futures:
                    return
                for future in wait(self._futures, 0 if began else _TICK, FIRST_COMPLETED).done:
                    ahead.evaluated(future.result().seconds)
                    self._end(future, place)
        finally:
            self._keep_values()

    def _take_back(self) -> None:
        """What was asked for ahead and has not begun."""
        for future in [future for future in self._futures if future.cancel()]:
            job = self._futures.pop(future)
            self._store.release(self._running.pop(job.number))

    def _look_after(self) -> None:
        """Show that we live, and see who does not."""
        now = time.monotonic()
        if now - self._looked_after < HEARTBEAT:
            return
        self._looked_after = now
        self._store.beat([asked.trial_id for asked in self._running.values()])
        found = self._store.recover()
        if found:
            self._listener.say(f"trials of a process that ended will be run again: {', '.join(map(str, found))}")

    def _begin(self, place: Place, ahead: Ahead) -> bool:
        """Start a trial; False if the budget allows no more."""
        counts = self._store.counts()
        if counts.finished + counts.running >= self._budget:
            return False
        since = time.monotonic()
        asked = self._store.ask(owners.RUN, self._budget)
        if asked is None:
            return False
        ahead.suggested(time.monotonic() - since)
        self._running[asked.number] = asked
        self._tries[asked.number] = 1
        self._submit(place, Job(self._study.name, asked.number, asked.params))
        return True

    def _submit(self, place: Place, job: Job) -> None:
        self._futures[place.submit(job)] = job

    def _end(self, future: Future[Answer], place: Place) -> None:
        job, outcome = self._futures[future], outcome_of_answer(future.result())
        again = self._tries[job.number] <= self._study.retries and not self._stopping.wanted
        if outcome.reason is not None and again:
            self._tries[job.number] += 1
            self._listener.say(f"trial {job.number}: {outcome.reason}; trying again")
            del self._futures[future]
            self._submit(place, job)
            return
        with self._stopping.shielded():
            self._tell(future, job, outcome)
        self._give_up_if_hopeless(job, outcome)

    def _tell(self, future: Future[Answer], job: Job, outcome: Outcome) -> None:
        self._store.tell(job.number, job.params, outcome)
        del self._futures[future], self._running[job.number], self._tries[job.number]
        self._listener.ended(Ended(job.number, outcome))

    def _keep_values(self) -> None:
        """Store what was evaluated before all was stopped, and not told yet."""
        with self._stopping.shielded():
            for future, job in list(self._futures.items()):
                if future.done() and not future.cancelled() and future.exception() is None:
                    outcome = outcome_of_answer(future.result())
                    if outcome.reason is None:
                        self._tell(future, job, outcome)

    def _give_up_if_hopeless(self, job: Job, outcome: Outcome) -> None:
        """The same error everywhere is a bug of the objective; different ones, and NaN, are a hard problem: go on."""
        if len(self._first_reasons) == _HOPELESS:
            return
        self._first_reasons.append(outcome.reason)
        reason = outcome.reason
        if len(self._first_reasons) < _HOPELESS or set(self._first_reasons) != {reason} or reason is None:
            return
        if not reason.startswith("value was") and self._store.best() is None:
            words = f"\nIts last words were:\n{outcome.detail}" if outcome.detail else ""
            raise ObjectiveError(
                f"the first {_HOPELESS} evaluations all failed with: {reason}. "
                f"Try the objective by hand with {job.params}{words}"
            )

    def let_go(self) -> None:
        """Trials that were stopped can be run by the next `sumbo run`."""
        for asked in self._running.values():
            self._store.release(asked)
        self._running.clear()
