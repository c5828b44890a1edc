"""Evaluations in an executor that is the user's: threads, processes, Dask.

It gets at most so many at a time. The rest wait here, and a thread hands on the next one as soon as one ends, whatever
the rest of the program is doing.
"""

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from typing import Any

from sumbo.executors import EvaluationResult, described, evaluate, too_long


class ExecutorGoneError(Exception):
    """The executor takes no more work."""


@dataclass(frozen=True, eq=False)
class _Job:
    argument: Any
    answer: "Future[EvaluationResult]"


class ExecutorAdapter:
    """At most `workers` evaluations of f at a time in the executor, which stays the user's to shut down.

    With a timeout, an evaluation that takes longer is given up: it counts as failed and its place as free. Whether it
    is stopped is the executor's affair; threads cannot be.
    """

    def __init__(self, executor: Executor, f: Callable[[Any], Any], workers: int, timeout: float | None) -> None:
        self._executor = executor
        self._f = f
        self._workers = workers
        self._timeout = timeout
        self._news: queue.SimpleQueue[_Job | Future[Any] | None] = queue.SimpleQueue()
        self._waiting: deque[_Job] = deque()
        self._running: dict[Future[Any], tuple[_Job, float]] = {}
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def submit(self, argument: Any) -> "Future[EvaluationResult]":
        """Evaluate at this argument as soon as there is a place."""
        job = _Job(argument, Future())
        self._news.put(job)
        return job.answer

    def close(self) -> None:
        """Take back what has not begun, and wait for nothing."""
        self._news.put(None)
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                news = self._news.get(timeout=self._patience())
                if news is None:
                    break
                if isinstance(news, _Job):
                    self._waiting.append(news)
                else:
                    self._end(news)
            except queue.Empty:
                self._give_up()
            while self._waiting and len(self._running) < self._workers:
                self._begin(self._waiting.popleft())
        for future in self._running:
            future.cancel()

    def _begin(self, job: _Job) -> None:
        if not job.answer.set_running_or_notify_cancel():
            return
        # Dask's takes work after it gave up its scheduler, and never answers: that would be waited for without end.
        if getattr(getattr(self._executor, "_client", None), "status", None) in ("closing", "closed"):
            job.answer.set_exception(ExecutorGoneError("the connection to Dask's scheduler is closed"))
            return
        try:
            future = self._executor.submit(evaluate, self._f, job.argument)
        except Exception as error:  # broken, or shut down; each executor has errors of its own
            job.answer.set_exception(ExecutorGoneError(described(error)))
            return
        self._running[future] = job, time.monotonic()
        future.add_done_callback(self._news.put)

    def _end(self, future: "Future[Any]") -> None:
        if future not in self._running:  # given up before
            return
        job, began = self._running.pop(future)
        seconds = time.monotonic() - began
        error = None if future.cancelled() else future.exception()
        if future.cancelled():
            answer = EvaluationResult(reason="the executor cancelled it")
        elif error is not None:  # a dead worker; an objective or a value that cannot be sent
            answer = EvaluationResult(reason=described(error))
        else:
            answer = future.result()
        job.answer.set_result(replace(answer, seconds=seconds))

    def _patience(self) -> float | None:
        if self._timeout is None or not self._running:
            return None
        first = min(began for _, began in self._running.values())
        return min(max(first + self._timeout - time.monotonic(), 0.0), threading.TIMEOUT_MAX)

    def _give_up(self) -> None:
        assert self._timeout is not None
        now = time.monotonic()
        for future in [f for f, (_, began) in self._running.items() if now - began >= self._timeout]:
            job, began = self._running.pop(future)
            future.cancel()
            job.answer.set_result(EvaluationResult(reason=too_long(self._timeout), seconds=now - began))
