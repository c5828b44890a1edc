"""A study file and the ledger that its database keeps: opened or begun, checked before anything is added to it."""

import difflib
import json
import secrets
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from sumbo._redaction import safe, shown
from sumbo.errors import SpaceError, StateError, StoreError, SumboError
from sumbo.space import Space
from sumbo.space.constraints import parse_outcomes
from sumbo.space.parameters import Parameter, listed
from sumbo.study.files.toml import StudyFile, method_of
from sumbo.study.ledger import Record
from sumbo.study.storage import VERSION, SqlLedger, open_engine, studies

if TYPE_CHECKING:
    from sumbo.study.optimizer import Optimizer
    from sumbo.study.replay import Replay

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


@dataclass(frozen=True)
class Counts:
    """How many trials there are of each kind. Running: by programs; open: handed out to people."""

    done: int
    failed: int
    running: int
    open: int
    waiting: int
    cancelled: int

    @property
    def finished(self) -> int:
        return self.done + self.failed


class StoredStudy:
    """One study. Every change is on the disk when the call that makes it returns."""

    def __init__(self, file: StudyFile, ledger: SqlLedger, seed: int, notes: list[str]) -> None:
        self.file = file
        self.ledger = ledger
        self.seed = seed  # the file's, or the one that was drawn when the study began
        self.notes = notes  # what changed in the file since, and goes on
        weakref.finalize(self, ledger.engine.dispose)  # connections are closed with the study

    @classmethod
    def open(cls, file: StudyFile, *, create: bool) -> "StoredStudy":
        """The study as stored, begun if `create` says so; a StoreError if there is none, or if it does not fit."""
        place, space = f"storage {shown(file.storage)}", _described(file)
        with storage_errors(file), _nonsense_explained(file, place):
            engine = open_engine(file.storage, create=create)
            row = _row(engine, file, create=create)
            if row is None:
                what = f"study {file.name!r} has no trials yet"
                raise StoreError(f"{place}: {what}; `sumbo run` or `sumbo ask` begins it")
            if row.version != VERSION:
                came = f"expected a study of version {VERSION}, got {row.version!r}"
                raise StoreError(f"{place}: {came}; go on with the sumbo that began it, or give the study another name")
            notes = check_compatible(file, row.direction, json.loads(row.space))
            seed = int(row.seed) if file.seed is None else file.seed
            if create and (space, str(seed)) != (row.space, row.seed):
                change = sa.update(studies).where(studies.c.id == row.id)
                with engine.begin() as connection:
                    connection.execute(change.values(space=space, seed=str(seed)))
            return cls(file, SqlLedger(engine, row.id, file.space, file.constraints), seed, notes)

    @cached_property
    def optimizer(self) -> "Optimizer":
        """Who suggests this study's points. Imports compiled code: only those who ask need it."""
        from sumbo.study.optimizer import Optimizer

        return Optimizer._on(self.ledger, method_of(self.file), self.file.goal, self.seed, self.file.budget)

    def hand_out(self, context: Mapping[str, Any] | None = None, fixed: Mapping[str, Any] | None = None) -> Record:
        """The next point for a person to evaluate, with these values; see `Optimizer.ask`."""
        from sumbo.methods import Deadline

        return self.optimizer._asked(Deadline(), "open", self.optimizer._given(context, fixed))

    def replay(self) -> "Replay":
        """Make every suggestion again that has a record; a StoreError if there is none."""
        from sumbo.study.replay import replay

        self.ledger.read_all_states()
        try:
            return replay(self.optimizer)
        except StateError:
            raise StoreError(
                f"study {self.file.name!r} has no suggestion that can be made again: its {len(self.records)} trials "
                "were told by hand, or asked for with another space, method or settings than the file has now; put "
                "these back"
            ) from None

    @property
    def records(self) -> list[Record]:
        """All trials by number, as of the last look."""
        return self.ledger.records

    def counts(self) -> Counts:
        found = Counter(record.state for record in self.ledger.records)
        return Counts(**{name: found[name] for name in Counts.__dataclass_fields__})  # type: ignore[index]

    def best(self) -> Record | None:
        """The best feasible trial; of equals the first."""
        return self.ledger.best(1.0 if self.file.goal == "maximize" else -1.0)


def _row(engine: Engine, file: StudyFile, *, create: bool) -> Any:
    """The study's; None if there is none, and none to be made."""
    with engine.begin() as connection:
        row = connection.execute(sa.select(studies).where(studies.c.name == file.name)).first()
    if row is not None or not create:
        return row
    seed = secrets.randbelow(2**31) if file.seed is None else file.seed
    values = {"name": file.name, "direction": file.goal, "space": _described(file), "seed": str(seed)}
    with suppress(IntegrityError), engine.begin() as connection:  # another process may be faster
        connection.execute(sa.insert(studies).values(**values, version=VERSION, sequence=0))
    return _row(engine, file, create=False)


def _described(file: StudyFile) -> str:
    """The space and the constraints that are told with values, as the database keeps them."""
    told = {"outcomes": list(map(str, file.constraints))} if file.constraints else {}
    return json.dumps(file.space.to_dict() | told)


@contextmanager
def storage_errors(file: StudyFile) -> Iterator[None]:
    """Turn what databases raise into a StoreError that names the place and never the password."""
    try:
        yield
    except SQLAlchemyError as error:
        text = " ".join(str(getattr(error, "orig", None) or error).split())
        remedy = next((f"; {advice}" for words, advice in _REMEDIES.items() if words in text), "")
        raise StoreError(f"storage {shown(file.storage)}: {safe(text, file.storage):.500}{remedy}") from None


@contextmanager
def _nonsense_explained(file: StudyFile, place: str) -> Iterator[None]:
    """A database may be cut, restored in part or edited by hand: a user is to hear what is wrong and what to do."""
    try:
        yield
    except SumboError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        what = safe(f"{type(error).__name__}: {error}", file.storage)
        advice = "restore a backup of the database, or begin a new study under another name"
        raise StoreError(f"{place}: what is stored cannot be read ({what:.200}); {advice}") from None


def check_compatible(study: StudyFile, goal: str, stored: Any) -> list[str]:
    """Notes on what changed and goes on; a StoreError if what is stored, `stored` being its space, does not fit."""
    if goal != study.goal:
        raise _unfit(study, f"goal is {study.goal!r}, and the stored study is to {goal}")
    try:
        old = Space.from_dict(stored)
        outcomes = parse_outcomes(stored.get("outcomes", []))
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
    for key, was, now in (
        ("context", old.context, study.space.context),
        ("known", [str(c) for c in old.constraints], [str(c) for c in study.space.constraints]),
        ("constraints", [str(c) for c in outcomes], [str(c) for c in study.constraints]),
    ):
        if sorted(was) != sorted(now):
            notes.append(f"{key} is now {listed(now)} (before: {listed(was)})")
    added = [name for name in study.measured if name not in [outcome.name for outcome in outcomes]]
    if added:
        how = "say it with sumbo tell --replace for those that shall"
        notes.append(f"trials told before do not say {listed(added)}, so none of them counts as feasible; {how}")
    return [note for note in notes if note]


def _renamed(gone: list[str], new: list[str]) -> str:
    near = difflib.get_close_matches(gone[0], new, n=1, cutoff=0.5) if gone and new else []
    if near:
        return f"the stored study has a parameter {gone[0]!r}, the file has {near[0]!r}, as if it was renamed"
    parts = [f"the stored trials have {listed(gone)}, which the file lacks"] if gone else []
    parts += [f"the file has {listed(new)}, which the stored trials lack"] if new else []
    return ", and ".join(parts)


def _change(study: StudyFile, name: str, old: Parameter, new: Parameter) -> str:
    if old.kind != new.kind:
        raise _unfit(study, f"space.{name} is {new.kind!r}, and was {old.kind!r}")
    if _when(old) != _when(new):
        raise _unfit(study, f"space.{name} exists {_when(new)}, and existed {_when(old)}")
    if replace(old, when=()) == replace(new, when=()):  # type: ignore[type-var]
        return ""
    if old.choices:
        raise _unfit(study, f"space.{name} has other choices than the stored {listed(old.choices)}")
    if old.log != new.log:
        raise _unfit(study, f"space.{name} has log = {json.dumps(new.log)}, and had {json.dumps(old.log)}")
    note = f"{name} now goes from {_range(new)} (before: {_range(old)})"
    if new.low > old.low or new.high < old.high or (new.step is not None and new.step != old.step):
        note += "; trials outside of it are kept, and no longer guide the search"
    return note


def _range(parameter: Parameter) -> str:
    return f"{parameter.low} to {parameter.high}" + (f" in steps of {parameter.step}" if parameter.step else "")


def _when(parameter: Parameter) -> str:
    """For which values of others it exists, whatever the order in which they are listed."""
    needs = parameter._to_dict().get("when", {}).items()
    each = sorted(f"{name} is {' or '.join(sorted(map(repr, values)))}" for name, values in needs)
    return f"when {' and '.join(each)}" if each else "always"


def _unfit(study: StudyFile, problem: str) -> StoreError:
    return StoreError(
        f"{study.path}: {problem}. Put it back as it was; or give the study another name to start anew, "
        f"bringing results along with `sumbo export` (before the change) and `sumbo tell --own` (after it)"
    )
