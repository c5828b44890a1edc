"""A study file against the study that is stored: what fits goes on, what does not is said plainly."""

import difflib
from typing import Any

from sumbo.errors import SpaceError, StoreError
from sumbo.space import Space
from sumbo.space.parameters import Parameter, listed
from sumbo.study.files.toml import StudyFile


def check_changes(study: StudyFile, goal: str, stored: Any) -> list[str]:
    """Notes on what changed and goes on. `stored` is the space as it was kept, None where nothing was.

    Raises:
        StoreError: what is stored does not fit the file; the message says what to do.
    """
    if goal != study.goal:
        raise _unfit(study, f"goal is {study.goal!r}, and the stored study is to {goal}")
    if stored is None:
        return []
    try:
        old = Space.from_dict(stored)
    except SpaceError as error:
        raise StoreError(
            f"study {study.name!r}: what is stored about its space cannot be read: {error}. Restore a backup of the "
            "database, or give the study another name"
        ) from None
    gone = [name for name in old if name not in study.space.names]
    new = [name for name in study.space if name not in old.names]
    if gone or new:
        raise _unfit(study, _renamed(gone, new))
    notes = [_change(study, name, old[name], study.space[name]) for name in old]
    return [note for note in notes if note]


def _renamed(gone: list[str], new: list[str]) -> str:
    near = difflib.get_close_matches(gone[0], new, n=1, cutoff=0.5) if gone and new else []
    if near:
        return f"the stored study has a parameter {gone[0]!r}, the file has {near[0]!r}, as if it was renamed"
    parts = [f"the stored trials have {listed(gone)}, which the file lacks"] if gone else []
    parts += [f"the file has {listed(new)}, which the stored trials lack"] if new else []
    return ", and ".join(parts)


def _change(study: StudyFile, name: str, old: Parameter, new: Parameter) -> str:
    if old == new:
        return ""
    if old.kind != new.kind:
        raise _unfit(study, f"space.{name} is {new.kind!r}, and was {old.kind!r}")
    if old.choices:
        raise _unfit(study, f"space.{name} has other choices than the stored {listed(old.choices)}")
    if old.log != new.log:
        raise _unfit(study, f"space.{name} has log = {_toml(new.log)}, and had {_toml(old.log)}")
    note = f"{name} now goes from {new.low} to {new.high} (before: {old.low} to {old.high})"
    if new.low > old.low or new.high < old.high:
        note += "; trials outside of it are kept, and no longer guide the search"
    return note


def _toml(value: bool) -> str:
    return "true" if value else "false"


def _unfit(study: StudyFile, problem: str) -> StoreError:
    return StoreError(
        f"{study.path}: {problem}. Put it back as it was; or give the study another name to start anew, "
        f"bringing results along with `sumbo export` (before the change) and `sumbo tell --own` (after it)"
    )
