"""A study file and the ledger that its database keeps: opened or begun, checked before anything is added to it."""

import json
import secrets
import time
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine, make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, OperationalError, ProgrammingError, SQLAlchemyError

from sumbo._redaction import safe, shown
from sumbo.errors import StateError, StoreError
from sumbo.study.files.compatibility import check_changes
from sumbo.study.files.toml import StudyFile
from sumbo.study.ledger import Record
from sumbo.study.storage import sql
from sumbo.study.storage.integrity import reading, remedy

if TYPE_CHECKING:
    from sumbo.study.optimizer import Optimizer
    from sumbo.study.replay import Replay


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
    """One study. Every change is on the disk when the call that makes it returns.

    Attributes:
        file: the study file.
        ledger: what was asked and told.
        seed: the file's, or the one that was drawn when the study began.
        notes: what changed in the file since, and goes on.
    """

    def __init__(self, file: StudyFile, ledger: sql.SqlLedger, seed: int, notes: list[str]) -> None:
        self.file = file
        self.ledger = ledger
        self.seed = seed
        self.notes = notes
        weakref.finalize(self, ledger.engine.dispose)  # connections are closed with the study

    @classmethod
    def open(cls, file: StudyFile, *, create: bool) -> "StoredStudy":
        """The study as stored, begun if `create` says so.

        Raises:
            StoreError: there is none, it cannot be reached, or it does not fit the file.
        """
        place = f"storage {shown(file.storage)}"
        with storage_errors(file), reading(place, file.storage):
            _check_place(file, create)
            engine = _opened(file)
            row = _begun(engine, file, create)
            if row is None:
                what = f"study {file.name!r} has no trials yet"
                raise StoreError(f"{place}: {what}; `sumbo run` or `sumbo ask` begins it")
            if row.version != sql.VERSION:
                came = f"expected a study of version {sql.VERSION}, got {row.version!r}"
                raise StoreError(f"{place}: {came}; go on with the sumbo that began it, or give the study another name")
            notes = check_changes(file, row.direction, json.loads(row.space))
            seed = int(row.seed) if file.seed is None else file.seed
            now = {"space": json.dumps(file.space.to_dict()), "seed": str(seed)}
            if create and now != {"space": row.space, "seed": row.seed}:
                with engine.begin() as connection:
                    connection.execute(sa.update(sql.studies).where(sql.studies.c.id == row.id).values(now))
            return cls(file, sql.SqlLedger(engine, row.id, file.space), seed, notes)

    @cached_property
    def optimizer(self) -> "Optimizer":
        """Who suggests this study's points. Imports compiled code: only those who ask need it.

        Raises:
            StudyFileError: the file names no such method, or settings that make no sense.
        """
        from sumbo.study.files.method import method_of
        from sumbo.study.optimizer import Optimizer

        return Optimizer._on(self.ledger, method_of(self.file), self.file.goal, self.seed, self.file.budget)

    def hand_out(self) -> Record:
        """The next point for a person to evaluate."""
        from sumbo.methods import Deadline

        record = self.optimizer._ask(Deadline(), state="open")
        assert record is not None  # no limit
        return record

    def replay(self) -> "Replay":
        """Make every suggestion again that has a record.

        Raises:
            StoreError: there is none; the message says why.
        """
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
        """The best trial; of equals the first."""
        return self.ledger.best(1.0 if self.file.goal == "maximize" else -1.0)


@contextmanager
def storage_errors(file: StudyFile) -> Iterator[None]:
    """Turn what databases raise into a StoreError that names the place and never the password."""
    try:
        yield
    except SQLAlchemyError as error:
        text = " ".join(str(getattr(error, "orig", None) or error).split())
        raise StoreError(f"storage {shown(file.storage)}: {safe(text, file.storage):.500}{remedy(text)}") from None


def _begun(engine: Engine, file: StudyFile, create: bool) -> Any:
    """The study's row; None if there is none."""
    query = sa.select(sql.studies).where(sql.studies.c.name == file.name)
    with engine.begin() as connection:
        row = connection.execute(query).first()
    if row is not None or not create:
        return row
    seed = file.seed if file.seed is not None else secrets.randbelow(2**31)
    values = {
        "name": file.name,
        "version": sql.VERSION,
        "direction": file.goal,
        "space": json.dumps(file.space.to_dict()),
        "seed": str(seed),
        "sequence": 0,
    }
    try:
        with engine.begin() as connection:
            connection.execute(sa.insert(sql.studies).values(values))
    except IntegrityError:  # another process was faster
        pass
    with engine.begin() as connection:
        return connection.execute(query).first()


def _opened(file: StudyFile) -> Engine:
    """The database; of several processes that make its tables at the same moment all but one must look again."""
    url = file.storage
    for _ in range(5):
        try:
            return sql.open_engine(url)
        except (OperationalError, ProgrammingError, IntegrityError) as error:
            if not any(word in str(error).lower() for word in ("already exists", "unique", "duplicate")):
                raise
            time.sleep(0.2)
        except ImportError as error:  # no driver for this database
            what = safe(str(error), url).rstrip(".")
            raise StoreError(f"storage {shown(url)}: {what}; pip install 'sumbo[postgresql]'") from None
    return sql.open_engine(url)


def check_url(url: str) -> None:
    """Raise a StoreError if a part of the password would be taken for the host, and looked up in the network."""
    try:
        read = make_url(url)
    except (ArgumentError, ValueError):
        read = None
    if read is None or "@" in (read.host or ""):
        form = "sqlite:///FILE.db or postgresql://USER@HOST:PORT/DATABASE, USER:PASSWORD if there is one"
        raise StoreError(f"storage {shown(url)}: expected {form}; correct it, with %40 for an @ in the password")


def _check_place(study: StudyFile, create: bool) -> None:
    url = study.storage
    check_url(url)
    if not url.startswith("sqlite"):
        return
    file = Path(url.removeprefix("sqlite:///"))
    if not file.exists() and not create:
        raise StoreError(f"{safe(file, url)}: there is no such study yet; `sumbo run` or `sumbo ask` begins it")
    if not file.parent.is_dir():
        what = "expected a folder for the study's database"
        raise StoreError(f"{safe(file.parent, url)}: {what}; make it, or correct storage")
