"""What an evaluation answered, wherever it ran. Imports nothing heavy: every worker does."""

import traceback
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

_MAX_REASON = 500  # characters
_MAX_DETAIL = 40  # lines


@dataclass(frozen=True)
class Answer:
    """What the function returned, or why it returned nothing; `detail` is the end of the traceback.

    Attributes:
        value: what was returned; None where there is a reason.
        reason: why there is no value, in words.
        detail: the end of the traceback, where there is one.
        seconds: how long it took, as seen by the process that waited for it.
    """

    value: Any = None
    reason: str | None = None
    detail: str = ""
    seconds: float = 0.0


class Place(Protocol):
    """Takes arguments of one function and answers for each. Closing it waits for nothing that still runs."""

    def submit(self, argument: Any) -> "Future[Answer]": ...

    def close(self) -> None: ...


def called(
    f: Callable[[Any], Any],
    argument: Any,
    errors: tuple[type[BaseException], ...] = (Exception, SystemExit),
) -> Answer:
    """Call it. Whatever the user's code raises is an answer too: a failed evaluation is not the end of the search."""
    try:
        return Answer(f(argument))
    except errors as error:
        lines = "".join(traceback.format_exception(error)).rstrip().splitlines()
        return Answer(reason=described(error), detail="\n".join(lines[-_MAX_DETAIL:]))


def described(error: BaseException) -> str:
    """An exception in a line."""
    return f"{type(error).__name__}: {error}"[:_MAX_REASON]


def too_long(timeout: float) -> str:
    """The reason of an evaluation that was given up."""
    return f"took longer than timeout = {timeout:g} seconds"
