"""Where evaluations run: processes of our own (`processes.py`), or any executor of the user's; and what came of one.

That is a number, or why there is none. Nothing here imports anything heavy: every worker does.
"""

import contextlib
import math
import numbers
import queue
import reprlib
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Protocol

from sumbo._redaction import safe
from sumbo.errors import TellError

_MAX_REASON = 500  # characters
_MAX_DETAIL = 40  # lines
NO_VALUE = "value was"  # how the reason begins where the objective answered, but with NaN or the like


@dataclass(frozen=True)
class Evaluation:
    """What an objective returns that has more to say than a value.

    Attributes:
        value: of the objective.
        constraints: what it measured for each of the study's constraints, by name.
        std: known standard deviation of the value's noise.

    Example:
        >>> Evaluation(0.31, constraints={"stress": -0.2}, std=0.05).value
        0.31
    """

    value: Any
    constraints: Mapping[str, Any] | None = field(default=None, kw_only=True)
    std: Any = field(default=None, kw_only=True)


@dataclass(frozen=True)
class EvaluationResult:
    """What came of an evaluation."""

    value: float | None = None  # a finite number; None where there is a reason
    reason: str | None = None  # why there is no value, in words
    constraints: dict[str, float] | None = None  # measured beside the value
    std: float | None = None  # known noise of the value
    kind: str = ""  # what failures of one cause have in common, where their reasons differ, say by the parameters
    detail: str = ""  # the end of the traceback, or of what a program said
    seconds: float | None = None  # how long it took, as seen by the process that waited for it
    # The exception itself, with its traceback; in this process only, as not everything can be sent.
    error: BaseException | None = field(default=None, compare=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"error": None}


class Evaluator(Protocol):
    """Takes arguments of one function and answers for each. Closing it waits for nothing that still runs."""

    def submit(self, argument: Any) -> "Future[EvaluationResult]": ...

    def close(self) -> None: ...


def evaluate(
    f: Callable[[Any], Any], argument: Any, errors: tuple[type[BaseException], ...] = (Exception, SystemExit)
) -> EvaluationResult:
    """Call it. Whatever the user's code raises is a result too: a failed evaluation is not the end of the search."""
    try:
        value = f(argument)
        return value if isinstance(value, EvaluationResult) else result_of(value)
    except errors as error:
        lines = _words(error, lambda error: "".join(traceback.format_exception(error))).rstrip().splitlines()
        *_, (frame, line) = traceback.walk_tb(error.__traceback__)
        kind = f"{type(error).__name__} at {frame.f_code.co_filename}:{line}"
        detail = safe("\n".join(lines[-_MAX_DETAIL:]))
        return EvaluationResult(reason=described(error), kind=kind, detail=detail, error=error)


def result_of(value: Any) -> EvaluationResult:
    """The result of an objective that answered: a finite number, or the reason why it counts as failed."""
    try:
        if isinstance(value, Evaluation):
            return complete(*measured(value.value), value.constraints, value.std)
        return EvaluationResult(*measured(value))
    except TellError as error:
        answer = value.value if isinstance(value, Evaluation) else value
        return EvaluationResult(reason=str(error), kind=type(answer).__name__)


def complete(number: float | None, reason: str | None, constraints: Any, std: Any) -> EvaluationResult:
    """The result with what else was measured, checked.

    Raises:
        TellError: something that is no single real number, or a negative standard deviation.
    """
    found = dict[str, float]()
    if constraints is not None and not isinstance(constraints, Mapping):
        raise TellError(f'constraints must be a dict such as {{"stress": -0.2}}; got {reprlib.repr(constraints)}')
    for name, amount in (constraints or {}).items():
        measure, problem = measured(amount, f"the constraint {name!r} must be")
        if measure is None:
            number, reason = None, reason or f"the constraint {name!r}: {problem}"
        else:
            found[str(name)] = measure
    noise = None if std is None else measured(std, "std must be")[0]
    if std is not None and (noise is None or noise < 0.0):
        raise TellError(f"std must be a number from 0 up, or None where it is not known; got {reprlib.repr(std)}")
    if number is None:
        return EvaluationResult(None, reason)
    return EvaluationResult(number, reason, found or None, noise)


def measured(value: Any, expected: str = "the objective must return") -> tuple[float | None, str | None]:
    """The value as a finite number; None and the reason where it is NaN, infinite or masked.

    Arrays of one element, of any library, are numbers as well.

    Raises:
        TellError: it is no single real number.
    """
    if value is None:
        raise TellError("the objective returned None; it must return a number")
    if type(value) is not float and _is_masked(value):
        return None, f"{NO_VALUE} masked"  # what lies below the mask is anything
    element, number = _element(value), None
    if isinstance(element, numbers.Real | Decimal) and type(element).__name__ not in ("bool", "bool_"):
        try:
            number = float(element)
        except OverflowError:
            number = math.inf
        except Exception:  # __float__ may be the user's, and raise anything
            number = None
    if number is None and isinstance(value, list | tuple) and len(value) > 1:
        advice = "several objectives are not built. Weigh them in one value, or make all but one a constraint"
        raise TellError(f"{expected} a single real number; got {type(value).__name__} {reprlib.repr(value)}: {advice}")
    if number is None:
        raise TellError(
            f"{expected} a single real number; got {type(value).__name__} {reprlib.repr(value)}. "
            "Convert it with float(...) first"
        )
    return (number, None) if math.isfinite(number) else (None, f"{NO_VALUE} {number}")


def _is_masked(value: Any) -> bool:
    numpy = sys.modules.get("numpy")  # where it was never imported, nothing is of its types
    if numpy is None or not isinstance(value, numpy.ma.MaskedArray):
        return False
    return value.size == 1 and bool(numpy.ma.is_masked(value))


def _element(value: Any) -> Any:
    """The only element of an array; anything else as it is."""
    if isinstance(value, numbers.Real):
        return value
    with contextlib.suppress(Exception):  # it has several, or none: the value is not a number
        return value.item()
    with contextlib.suppress(Exception):  # tables and tensors without item()
        return value.__array__().item()
    with contextlib.suppress(Exception):  # sparse ones, and those that know no more than the standard of arrays
        if all(n == 1 for n in value.shape) and "bool" not in str(value.dtype):
            return float(value[(0,) * len(value.shape)] if value.shape else value)
    return value


def described(error: BaseException) -> str:
    """An exception in a line."""
    return safe(f"{type(error).__name__}: {_words(error)}")[:_MAX_REASON]


def _words(error: BaseException, words: Callable[[BaseException], str] = str) -> str:
    """A text of an exception of the user's, which may raise another one when asked for it."""
    try:
        return words(error)
    except Exception as another:
        return f"<no words: its text raised {type(another).__name__}>"


def too_long(timeout: float) -> str:
    """The reason of an evaluation that was given up."""
    return f"took longer than timeout = {timeout:g} seconds"


class ExecutorGoneError(Exception):
    """The executor takes no more work."""


_Job = tuple[Any, "Future[EvaluationResult]"]  # an argument, and where to answer


class ExecutorAdapter:
    """At most `workers` evaluations of f at a time in the executor, which stays the user's to shut down.

    The rest wait here, and a thread hands on the next one as soon as one ends, whatever else the program is doing.
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
        self._running: dict[Future[Any], tuple[Future[EvaluationResult], float]] = {}  # with when they began
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def submit(self, argument: Any) -> "Future[EvaluationResult]":
        """Evaluate at this argument as soon as there is a place."""
        answer: Future[EvaluationResult] = Future()
        self._news.put((argument, answer))
        return answer

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
                if isinstance(news, tuple):
                    self._waiting.append(news)
                else:
                    self._end(news)
            except queue.Empty:
                self._give_up()
            while self._waiting and len(self._running) < self._workers:
                self._begin(*self._waiting.popleft())
        for future in self._running:
            future.cancel()

    def _begin(self, argument: Any, answer: "Future[EvaluationResult]") -> None:
        if not answer.set_running_or_notify_cancel():
            return
        # Dask's takes work after it gave up its scheduler, and never answers: that would be waited for without end.
        if getattr(getattr(self._executor, "_client", None), "status", None) in ("closing", "closed"):
            answer.set_exception(ExecutorGoneError("the connection to Dask's scheduler is closed"))
            return
        try:
            future = self._executor.submit(evaluate, self._f, argument)
        except Exception as error:  # broken, or shut down; each executor has errors of its own
            answer.set_exception(ExecutorGoneError(described(error)))
            return
        self._running[future] = answer, time.monotonic()
        future.add_done_callback(self._news.put)

    def _end(self, future: "Future[Any]") -> None:
        if future not in self._running:  # given up before
            return
        answer, began = self._running.pop(future)
        seconds = time.monotonic() - began
        if future.cancelled():
            result = EvaluationResult(reason="the executor cancelled it")
        elif (error := future.exception()) is not None:  # a dead worker; an objective or a value that cannot be sent
            result = EvaluationResult(reason=described(error))
        else:
            result = future.result()
        answer.set_result(replace(result, seconds=seconds))

    def _patience(self) -> float | None:
        if self._timeout is None or not self._running:
            return None
        first = min(began for _, began in self._running.values())
        return min(max(first + self._timeout - time.monotonic(), 0.0), threading.TIMEOUT_MAX)

    def _give_up(self) -> None:
        assert self._timeout is not None
        now = time.monotonic()
        for future in [f for f, (_, began) in self._running.items() if now - began >= self._timeout]:
            answer, began = self._running.pop(future)
            future.cancel()
            answer.set_result(EvaluationResult(reason=too_long(self._timeout), seconds=now - began))
