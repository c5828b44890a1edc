"""Stored records that make no sense: found when a study is opened, before anything is added to it.

A database may be cut, restored in part or edited by hand. The libraries below then raise whatever a missing key or a
text in place of a number raises; a user is to hear what is wrong and what to do.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from optuna.distributions import CategoricalDistribution
from optuna.trial import FrozenTrial, TrialState

from sumbo.errors import StoreError, SumboError
from sumbo.parameters import show
from sumbo.space import Space

# What SQLite and PostgreSQL say, and what to do about it.
_REMEDIES = {
    "disk is full": "free some space and run the command again; what was told before is safe",
    "disk I/O error": "look after the disk, and run the command again; what was told before is safe",
    "unable to open database file": "its folder must be one that can be written, to read it too; is it read-only?",
    "readonly database": "it and its folder must be such that they can be written; are they read-only?",
    "database is locked": "another program keeps it locked for long; end that, or try again",
    "not a database": "correct storage, or restore a backup of the database",
    "malformed": "restore a backup of the database",
    "onnection refused": "is the server running, and are host and port right?",
    "authentication failed": "correct user or password in the URL",
}

_ADVICE = "restore a backup of the database, or begin a new study under another name"


@contextmanager
def reading(place: str, without_secrets: Callable[[str], str]) -> Iterator[str]:
    """Around calls that read records: what they raise over nonsense becomes a StoreError that names the place."""
    try:
        yield place
    except SumboError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        what = without_secrets(f"{type(error).__name__}: {error}")
        raise StoreError(f"{place}: what is stored cannot be read ({what:.200}); {_ADVICE}") from None


def remedy(text: str) -> str:
    """What to do about something that a database said; empty where nothing is known."""
    return next((f"; {advice}" for words, advice in _REMEDIES.items() if words in text), "")


def check_trials(place: str, space: Space, trials: Sequence[FrozenTrial]) -> None:
    """Raise a StoreError if a trial could be read but cannot be as it is."""
    for i, trial in enumerate(trials):
        problem = _problem(space, trial) if trial.number == i else f"expected the number {i}, got {trial.number!r}"
        if problem:
            raise StoreError(f"{place}: trial {i}: {problem}; {_ADVICE}")


def _problem(space: Space, trial: FrozenTrial) -> str:
    if trial.state == TrialState.COMPLETE and not isinstance(trial.value, int | float):
        return f"it is done, and expected to have a number as its value, got {show(trial.value)}"
    for name, value in trial.params.items():
        nominal = isinstance(trial.distributions[name], CategoricalDistribution)
        if not nominal and not isinstance(value, int | float):
            return f"expected a number as its {name!r}, got {show(value)}"
    ours = {key: value for key, value in trial.user_attrs.items() if key.startswith("sumbo:")}
    lacking = [name for name in space if name not in trial.params]
    if ours and trial.params and lacking:  # an Optuna script may leave parameters out; we never do
        return f"expected all parameters, got none for {lacking[0]!r}"
    for key, value in ours.items():
        kinds = _KINDS.get(key)
        if kinds is not None and value is not None and not isinstance(value, kinds):
            return f"its record {key!r} makes no sense: {show(value)}"
    return ""


_KINDS: dict[str, type[object]] = {
    "sumbo:reason": str,
    "sumbo:detail": str,
    "sumbo:lost": int,
    "sumbo:replaced": list,
    "sumbo:owner": dict,
}
