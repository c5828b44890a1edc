"""The loop that asks, evaluates and tells, for `Optimizer.run`, `minimize` and `sumbo run` alike.

With one worker each point is asked for when all others are told, so a run is the same wherever it runs. With more, a
worker that ends gets its next point at once, and points are asked for ahead where suggestions take long.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

from sumbo import _interrupts
from sumbo.executors.prefetch import Prefetcher
from sumbo.executors.results import EvaluationResult, Evaluator
from sumbo.methods import Deadline
from sumbo.study.hopeless import FirstEvaluations
from sumbo.study.ledger import Record
from sumbo.study.optimizer import Optimizer

_TICK = 0.5  # seconds after which we look whether there is something else to do


class Runner:
    """Evaluates until the study has as many trials as the limit allows.

    Args:
        opt: whom to ask and tell.
        evaluator: where evaluations run.
        workers: evaluations at a time.
        limit: trials in all, those of other processes included.
        argument: what is evaluated of a trial.
        ended: told of each result; the run ends early if it returns True.
        say: told of what else happens.
        winding_down: are there to be no new trials? Those that run are waited for.
        retries: how often a failed evaluation is tried again.
        heartbeat: seconds between two signs of life to other processes.
    """

    def __init__(
        self,
        opt: Optimizer,
        evaluator: Evaluator,
        workers: int,
        limit: int,
        *,
        argument: Callable[[Record], Any],
        ended: Callable[[Record, EvaluationResult], bool],
        say: Callable[[str], None] = lambda text: None,
        winding_down: Callable[[], bool] = lambda: False,
        retries: int = 0,
        heartbeat: float = 30.0,
    ) -> None:
        self._opt, self._ledger = opt, opt._ledger
        self._evaluator = evaluator
        self._workers = workers
        self._limit = limit
        self._argument = argument
        self._listener = ended
        self._say = say
        self._winding_down = winding_down
        self._retries = retries
        self._heartbeat = heartbeat
        self._prefetcher = Prefetcher(workers)
        states = [record.state for record in self._ledger.records]
        self._first = FirstEvaluations(states.count("done"), states.count("failed"))
        self._running: dict[Future[EvaluationResult], Record] = {}
        self._tries: dict[int, int] = {}
        self._ended: SimpleQueue[Future[EvaluationResult]] = SimpleQueue()
        self._maintained = float("-inf")

    def run(self) -> None:
        """Go on until the limit. What had ended is told even if this is left by an exception.

        Raises:
            ObjectiveError: the first evaluations all failed alike.
            ExecutorGoneError: the executor takes no more work.
        """
        while True:
            self._maintain()
            if self._winding_down():
                self._take_back()
            ended = _interrupts.taken(self._ended, 0 if self._wants_more() else _TICK)
            still = [future for future in ended if future in self._running]  # not taken back
            for future in sorted(still, key=lambda future: self._running[future].number):
                if self._end(future):
                    return
            if not (self._wants_more() and self._begin()) and not self._running:
                return

    def close(self) -> None:
        """Tell what was evaluated and not told yet, and let others have the rest. For when the workers have ended."""
        for future in list(self._running):
            if future.done() and not future.cancelled() and future.exception() is None and not future.result().reason:
                self._tell(future, future.result())
        for record in self._running.values():
            self._ledger.release(record.number)
        self._running.clear()

    def _wants_more(self) -> bool:
        if self._winding_down() or len(self._running) >= self._workers + self._prefetcher.wanted:
            return False
        waiting = any(record.state == "waiting" for record in self._ledger.live)
        return waiting or self._ledger.counted < self._limit

    def _begin(self) -> bool:
        """Start a trial; False if there is none to start."""
        began = time.monotonic()
        record = self._ledger.claim(self._limit)
        if record is None:
            record = self._opt._ask(Deadline(), lease=self._ledger.lease, limit=self._limit)
        if record is None:
            return False
        self._prefetcher.suggested(time.monotonic() - began)
        self._tries[record.number] = 1
        self._submit(record)
        return True

    def _submit(self, record: Record) -> None:
        future = self._evaluator.submit(self._argument(record))
        self._running[future] = record
        future.add_done_callback(self._ended.put)

    def _end(self, future: "Future[EvaluationResult]") -> bool:
        """Tell a result, or try again; is it enough?"""
        record, result = self._running[future], future.result()
        self._prefetcher.evaluated(result.seconds or 0.0)
        if result.reason is not None and self._tries[record.number] <= self._retries and not self._winding_down():
            self._tries[record.number] += 1
            self._say(f"trial {record.number}: {result.reason}; trying again")
            del self._running[future]
            self._submit(record)
            return False
        self._tell(future, result)
        enough = self._listener(record, result)
        if self._first.are_hopeless(result) and (self._opt._best is None or self._first.known_to_work):
            self._first.give_up(record.params, result)
        return enough

    def _tell(self, future: "Future[EvaluationResult]", result: EvaluationResult) -> None:
        record = self._running[future]
        if not self._opt._tell(record.number, result, self._ledger.lease):
            # Another process took it over, because this one seemed dead. The value is true all the same.
            self._ledger.observe(record.params, result)
        del self._running[future], self._tries[record.number]  # only now: it is on record

    def _take_back(self) -> None:
        """What was asked for ahead and has not begun."""
        for future in [future for future in self._running if future.cancel()]:
            self._ledger.release(self._running.pop(future).number)

    def _maintain(self) -> None:
        now = time.monotonic()
        if now - self._maintained < self._heartbeat:
            return
        self._maintained = now
        found = self._ledger.maintain()
        if found:
            self._say(f"trials of a process that ended will be run again: {', '.join(map(str, found))}")
