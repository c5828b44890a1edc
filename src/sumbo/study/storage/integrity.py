"""Stored records that make no sense: found when a study is opened, before anything is added to it.

A database may be cut, restored in part or edited by hand. The libraries below then raise whatever a missing key or a
text in place of a number raises; a user is to hear what is wrong and what to do.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import get_args

from sumbo._redaction import safe
from sumbo.errors import StoreError, SumboError
from sumbo.space.parameters import show
from sumbo.study.ledger import ENDED, Record, State

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

_STATES = get_args(State)
_ADVICE = "restore a backup of the database, or begin a new study under another name"


@contextmanager
def reading(place: str, url: str) -> Iterator[None]:
    """Around calls that read records: what they raise over nonsense becomes a StoreError that names the place."""
    try:
        yield
    except SumboError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        what = safe(f"{type(error).__name__}: {error}", url)
        raise StoreError(f"{place}: what is stored cannot be read ({what:.200}); {_ADVICE}") from None


def remedy(text: str) -> str:
    """What to do about something that a database said; empty where nothing is known."""
    return next((f"; {advice}" for words, advice in _REMEDIES.items() if words in text), "")


def check_records(records: Sequence[Record], known: int) -> None:
    """Raise a ValueError if a trial could be read but cannot be as it is; so many are known already."""
    for record in records:
        known += record.number == known
        problem = _problem(record) if record.number < known else f"there is no trial {known}"
        if problem:
            raise ValueError(f"trial {record.number}: {problem}")


def _problem(record: Record) -> str:
    if record.state not in _STATES:
        return f"expected one of {', '.join(_STATES)} as its state, got {show(record.state)}"
    if (record.state == "done") != isinstance(record.value, int | float):
        return f"it is {record.state}, and its value is {show(record.value)}"
    if (record.state in ENDED) != isinstance(record.told, int):
        return f"it is {record.state}, and when it was told is {show(record.told)}"
    if not isinstance(record.started, float | int | None) or not isinstance(record.seconds, float | int | None):
        return f"expected times in seconds, got {show(record.started)} and {show(record.seconds)}"
    return ""
