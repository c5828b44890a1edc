"""When so many failures are no accident: a bug of the objective, not a hard problem."""

import traceback
from typing import Any, NoReturn

from sumbo._redaction import safe
from sumbo.errors import ObjectiveError
from sumbo.executors.results import NO_VALUE, EvaluationResult

_HOPELESS = 10  # give up when so many evaluations failed alike and none has succeeded


class FirstEvaluations:
    """Tells a bug of the objective, which fails alike everywhere, from a hard problem: different errors, and NaN."""

    def __init__(self, done: int = 0, failed: int = 0) -> None:
        """`done` and `failed` count trials from before the run: what worked then may be broken now."""
        self.known_to_work = done > failed
        self._reasons: list[str | None] = []
        self._kinds: set[str | None] = set()

    def are_hopeless(self, result: EvaluationResult) -> bool:
        """Add one; is it the last of the first few, and did all of them fail alike?"""
        if len(self._reasons) == _HOPELESS:
            return False
        self._reasons.append(result.reason)
        self._kinds.add(result.kind or result.reason)
        alike = len(self._kinds) == 1 and None not in self._reasons
        return alike and len(self._reasons) == _HOPELESS and not str(result.reason).startswith(NO_VALUE)

    def give_up(self, params: dict[str, Any], last: EvaluationResult) -> NoReturn:
        """Raise what says so; the last of them was evaluated with these params."""
        cause = last.error
        alike = "" if len(set(self._reasons)) == 1 else " errors like"
        run = " of this run" if self.known_to_work else ""
        text = f"the first {_HOPELESS} evaluations{run} all failed with{alike}: {self._reasons[-1]}"
        if cause is not None:
            place = traceback.extract_tb(cause.__traceback__)[-1]
            text += f" ({place.filename}, line {place.lineno}, in {place.name}: {safe(place.line)})"
        text += f". Try the objective by hand at {params}"
        if cause is None and last.detail:
            text += f"\nIts last words were:\n{last.detail}"
        raise ObjectiveError(text) from cause
