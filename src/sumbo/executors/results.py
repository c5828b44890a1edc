"""What came of an evaluation: a number, or why there is none. Imports nothing heavy: every worker does."""

import contextlib
import math
import numbers
import reprlib
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

from sumbo._redaction import safe
from sumbo.errors import TellError

_MAX_REASON = 500  # characters
_MAX_DETAIL = 40  # lines
NO_VALUE = "value was"  # how the reason begins where the objective answered, but with NaN or the like


@dataclass(frozen=True)
class EvaluationResult:
    """What came of an evaluation.

    Attributes:
        value: a finite number; None where there is a reason.
        reason: why there is no value, in words.
        kind: what failures of one cause have in common, where their reasons differ, say by the parameters.
        detail: the end of the traceback, or of what a program said.
        seconds: how long it took, as seen by the process that waited for it.
        error: the exception itself, with its traceback; in this process only, as not everything can be sent.
    """

    value: float | None = None
    reason: str | None = None
    kind: str = ""
    detail: str = ""
    seconds: float | None = None
    error: BaseException | None = field(default=None, compare=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"error": None}


class Evaluator(Protocol):
    """Takes arguments of one function and answers for each. Closing it waits for nothing that still runs."""

    def submit(self, argument: Any) -> "Future[EvaluationResult]": ...

    def close(self) -> None: ...


def evaluate(
    f: Callable[[Any], Any],
    argument: Any,
    errors: tuple[type[BaseException], ...] = (Exception, SystemExit),
) -> EvaluationResult:
    """Call it. Whatever the user's code raises is a result too: a failed evaluation is not the end of the search."""
    try:
        value = f(argument)
        return value if isinstance(value, EvaluationResult) else result_of(value)
    except errors as error:
        lines = _words(error, _formatted).rstrip().splitlines()
        *_, (frame, line) = traceback.walk_tb(error.__traceback__)
        kind = f"{type(error).__name__} at {frame.f_code.co_filename}:{line}"
        detail = safe("\n".join(lines[-_MAX_DETAIL:]))
        return EvaluationResult(reason=described(error), kind=kind, detail=detail, error=error)


def result_of(value: Any) -> EvaluationResult:
    """The result of an objective that answered: a finite number, or the reason why it counts as failed."""
    try:
        return EvaluationResult(*measured(value))
    except TellError as error:
        return EvaluationResult(reason=str(error), kind=type(value).__name__)


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
        with contextlib.suppress(Exception):  # __float__ may be the user's, and raise anything
            number = _float(element)
    if number is None:
        raise TellError(
            f"{expected} a single real number; got {type(value).__name__} {reprlib.repr(value)}. "
            "Convert it with float(...) first"
        )
    return (number, None) if math.isfinite(number) else (None, f"{NO_VALUE} {number}")


def _float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _is_masked(value: Any) -> bool:
    numpy = sys.modules.get("numpy")  # where it was never imported, nothing is of its types
    return (
        numpy is not None and isinstance(value, numpy.ma.MaskedArray) and value.size == 1 and numpy.ma.is_masked(value)
    )


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


def _formatted(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


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
