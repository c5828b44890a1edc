"""The loop that asks, evaluates and tells, for `Optimizer.run`, `minimize` and `sumbo run` alike.

With one worker each point is asked for when all others are told, so a run is the same wherever it runs. With more, a
worker that ends gets its next point at once, and points are asked for ahead where suggestions take long.
"""

import math
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

from sumbo import _interrupts
from sumbo._redaction import safe
from sumbo.errors import ObjectiveError
from sumbo.executors import NO_VALUE, EvaluationResult, Evaluator
from sumbo.methods import Deadline
from sumbo.study.ledger import Record
from sumbo.study.optimizer import Optimizer

_TICK = 0.5  # seconds after which we look whether there is something else to do
_HEARTBEAT = 30.0  # seconds between two signs of life to other processes
_HOPELESS = 10  # give up when so many evaluations failed alike and none has succeeded
_LATEST = 30  # suggestions and evaluations that count for what is asked ahead
_WORTHWHILE = 1.02  # times as many evaluations in the same time, at least, for points to be asked ahead


@dataclass(eq=False)
class Runner:
    """Evaluates until the study has as many trials as the limit allows."""

    opt: Optimizer
    evaluator: Evaluator
    workers: int  # evaluations at a time
    limit: int  # trials in all, those of other processes included
    argument: Callable[[Record], Any]  # what is evaluated of a trial
    ended: Callable[[Record, EvaluationResult], bool]  # told of each result; the run ends early if it returns True
    say: Callable[[str], None] = lambda text: None  # told of what else happens
    winding_down: Callable[[], bool] = lambda: False  # no new trials? Those that run are waited for
    retries: int = 0  # of a failed evaluation
    until: Deadline = field(default_factory=Deadline)  # after it no trial begins; those that run are waited for

    def __post_init__(self) -> None:
        self._ledger = self.opt._ledger
        self._prefetcher = Prefetcher(self.workers)
        self._first: list[tuple[str, str | None]] = []  # kinds and reasons of the first results
        states = [record.state for record in self._ledger.records]
        self._worked = states.count("done") > states.count("failed")  # before this run: it may be broken now
        self._running: dict[Future[EvaluationResult], Record] = {}
        self._tries: dict[int, int] = {}
        self._ended: SimpleQueue[Future[EvaluationResult]] = SimpleQueue()
        self._maintained = -math.inf
        self._began = time.monotonic()

    def run(self) -> bool:
        """Go on until the limit, and close the evaluator; False if it ended early.

        What had ended is told even if this is left by an exception.

        Raises:
            ObjectiveError: the first evaluations all failed alike.
            ExecutorGoneError: the executor takes no more work.
        """
        try:
            with closing(self.evaluator):
                self._run()
                spent = self._ledger.counted >= self.limit or self.until.passed()
                return not self._ledger.live and spent
        finally:
            self._close()

    def _run(self) -> None:
        while True:
            self._maintain()
            if self._is_over():  # what was asked for ahead and has not begun is for others
                for future in [future for future in self._running if future.cancel()]:
                    self._ledger.withdraw(self._running.pop(future).number)
            ended = _interrupts.taken(self._ended, 0 if self._wants_more() else _TICK)
            still = [future for future in ended if future in self._running]  # not taken back
            for future in sorted(still, key=lambda future: self._running[future].number):
                if self._end(future):
                    return
            if not (self._wants_more() and self._begin()) and not self._running:
                return

    def _close(self) -> None:
        """Tell what was evaluated and not told yet, and let others have the rest, now that the workers have ended."""
        for future in list(self._running):
            if future.done() and not future.cancelled() and future.exception() is None and not future.result().reason:
                self._tell(future, future.result())
        for record in self._running.values():
            self._ledger.release(record.number)
        self._running.clear()

    def _is_over(self) -> bool:
        return self.winding_down() or self.until.passed()

    def _wants_more(self) -> bool:
        if self._is_over() or len(self._running) >= self.workers + self._prefetcher.wanted:
            return False
        waiting = any(record.state == "waiting" for record in self._ledger.live)
        return waiting or self._ledger.counted < self.limit

    def _begin(self) -> bool:
        """Start a trial; False if there is none to start."""
        began = time.monotonic()
        record = self._ledger.claim(self.limit)
        if record is None:
            self._estimate_budget()
        record = record or self.opt._ask(Deadline(), lease=self._ledger.lease, limit=self.limit)
        if record is None:
            return False
        self._prefetcher.suggestions.append(time.monotonic() - began)
        self._tries[record.number] = 1
        self._submit(record)
        return True

    def _estimate_budget(self) -> None:
        """How many evaluations the time left allows, at the speed so far: for methods that spend the last ones well."""
        if self.until.moment is None:
            return
        ended, took = self._prefetcher.ended, time.monotonic() - self._began
        more = self.limit - self._ledger.counted
        if ended:
            more = min(more, int(max(self.until.left, 0.0) * ended / took))
        self.opt.budget = self._ledger.counted + max(more, 1)

    def _submit(self, record: Record) -> None:
        future = self.evaluator.submit(self.argument(record))
        self._running[future] = record
        future.add_done_callback(self._ended.put)

    def _end(self, future: "Future[EvaluationResult]") -> bool:
        """Tell a result, or try again; is it enough?"""
        record, result = self._running[future], future.result()
        self._prefetcher.evaluations.append(result.seconds or 0.0)
        self._prefetcher.ended += 1
        if problem := self.opt._misreported(result):
            self._tell(future, EvaluationResult(reason=problem))
            raise ObjectiveError(
                f"trial {record.number}: {problem}. Return sumbo.Evaluation(value, constraints={{...}})"
            )
        if result.reason is not None and self._tries[record.number] <= self.retries and not self._is_over():
            self._tries[record.number] += 1
            self.say(f"trial {record.number}: {result.reason}; trying again")
            del self._running[future]
            self._submit(record)
            return False
        self._tell(future, result)
        enough = self.ended(record, result)
        if len(self._first) < _HOPELESS:
            self._first.append((result.kind, result.reason))
            if len(self._first) == _HOPELESS and (self._worked or self.opt._best is None):
                check_first(self._first, record.params, result, " of this run" if self._worked else "")
        return enough

    def _tell(self, future: "Future[EvaluationResult]", result: EvaluationResult) -> None:
        record = self._running[future]
        if not self.opt._tell(record.number, result, self._ledger.lease):
            # Another process took it over, because this one seemed dead. The value is true all the same.
            self._ledger.observe(record.params, result)
        del self._running[future], self._tries[record.number]  # only now: it is on record

    def _maintain(self) -> None:
        now = time.monotonic()
        if now - self._maintained < _HEARTBEAT:
            return
        self._maintained = now
        if found := self._ledger.maintain():
            self.say(f"trials of a process that ended will be run again: {', '.join(map(str, found))}")


def check_first(
    results: list[tuple[str, str | None]], params: dict[str, Any], last: EvaluationResult, of: str = ""
) -> None:
    """Raise an ObjectiveError for a bug of the objective, which fails alike everywhere.

    A hard problem has different errors, or NaN. Results are given by kind and reason; `last` came with these params.
    """
    reasons = {reason for _, reason in results}
    kinds = {kind or reason for kind, reason in results}
    if len(kinds) > 1 or None in reasons or str(last.reason).startswith(NO_VALUE):
        return
    cause = last.error
    alike = "" if len(reasons) == 1 else " errors like"
    text = f"the first {len(results)} evaluations{of} all failed with{alike}: {last.reason}"
    if cause is not None:
        place = traceback.extract_tb(cause.__traceback__)[-1]
        text += f" ({place.filename}, line {place.lineno}, in {place.name}: {safe(place.line)})"
    text += f". Try the objective by hand at {params}"
    if cause is None and last.detail:
        text += f"\nIts last words were:\n{last.detail}"
    raise ObjectiveError(text) from cause


class Prefetcher:
    """How many points to have ready for workers that are about to be free, which must not wait for a suggestion.

    A point asked for ahead does without what the evaluations that run will tell. So there are no more of them than the
    speed of both sides asks for, and none where they would bring next to nothing: beside long evaluations, or where
    suggestions take longer than all workers need to use them up. A worker alone gets each point when all others are
    told: such a run is the same on every machine.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self.suggestions: deque[float] = deque(maxlen=_LATEST)  # seconds that the latest took
        self.evaluations: deque[float] = deque(maxlen=_LATEST)
        self.ended = 0  # evaluations

    @property
    def wanted(self) -> int:
        """As many points as workers end during the slowest of the latest suggestions; never more than workers."""
        if self._workers == 1 or not self.suggestions or not self.evaluations:
            return 0
        suggestion = sum(self.suggestions) / len(self.suggestions)
        evaluation = max(sum(self.evaluations) / len(self.evaluations), 1e-6)
        # Seconds from one evaluation's end to the next one's: one driver suggests, all workers evaluate.
        waiting = max(suggestion, (evaluation + suggestion) / self._workers)
        ready = max(suggestion, evaluation / self._workers)
        if waiting <= _WORTHWHILE * ready:
            return 0
        return min(self._workers, math.ceil(max(self.suggestions) * self._workers / evaluation))


class Progress:
    """The best value, the trial and the time left on standard error: a bar on a terminal, a few lines in a log.

    Where that is gone, closed or full, nothing is shown any more: what was found is worth more than words about it.
    `done` and `failed` count trials from before, where a search goes on.
    """

    def __init__(self, budget: int | None, *, enabled: bool, done: int = 0, failed: int = 0) -> None:
        self.budget = budget
        self._enabled = enabled and sys.stderr is not None
        self.on_terminal = False
        with self._as_far_as_possible():
            self.on_terminal = self._enabled and sys.stderr.isatty()
        self._before, self._done, self._failed = done, done, failed
        self._started = time.monotonic()
        self._bar: Any = None

    @contextmanager
    def _as_far_as_possible(self) -> Iterator[None]:
        try:
            yield
        except Exception:  # anyone may have put anything in the place of standard error
            self._enabled = False

    def __enter__(self) -> "Progress":
        if self.on_terminal:
            with self._as_far_as_possible():
                from rich import progress
                from rich.console import Console

                columns = (progress.BarColumn(), progress.MofNCompleteColumn(), progress.TimeRemainingColumn())
                words = ("best {task.fields[best]}", "{task.fields[failed]}")
                self._bar = progress.Progress(words[0], *columns, words[1], console=Console(stderr=True))
                self._bar.add_task("", total=self.budget, completed=self._done, best="-", failed=self._failures)
                self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        with self._as_far_as_possible():
            if self._bar is not None:
                self._bar.stop()

    def say(self, text: str) -> None:
        """A line that stays, above the bar if there is one."""
        with self._as_far_as_possible():
            if self._enabled and self._bar is not None:
                self._bar.console.print(text, markup=False, highlight=False)
            elif self._enabled and sys.stderr is not None:
                print(f"sumbo: {text}", file=sys.stderr, flush=True)  # noqa: T201

    def update(self, best: Record | None, *, failed: bool) -> None:
        """One more trial is finished."""
        if not self._enabled:
            return
        self._done += 1
        self._failed += failed
        value, done, budget = "-" if best is None else f"{best.value:.6g}", self._done, self.budget
        if self._bar is not None:
            with self._as_far_as_possible():
                self._bar.update(self._bar.task_ids[0], completed=done, best=value, failed=self._failures)
        elif budget is None:
            if str(done).rstrip("0") in ("1", "2", "5"):
                self.say(f"{done} best {value} {self._failures}".rstrip())
        elif done in (1, budget) or done * 10 // budget > (done - 1) * 10 // budget:
            seconds = (time.monotonic() - self._started) / (done - self._before)
            left = max(seconds * (budget - done), 0.0)
            self.say(f"{done}/{budget} best {value} {left:.0f} s left {self._failures}".rstrip())

    @property
    def _failures(self) -> str:
        return f"{self._failed} failed" if self._failed else ""
