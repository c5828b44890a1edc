"""A ledger in a database, SQLite or PostgreSQL: a row for each study, each trial, each process that evaluates.

A process keeps a copy of the ledger in memory. To write, it takes the study's next sequence number, which locks the
study's row until the transaction ends: one writes at a time, commits come in the order of the numbers, and a row whose
`changed` is above the last number seen is all there is to read again. No order goes by a clock.

ask     UPDATE study, [SELECT what others wrote], INSERT trial; before a slow suggestion a SELECT more
tell    UPDATE study, [SELECT what others wrote], UPDATE trial
"""

import gc
import json
import os
import re
import socket
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, OperationalError, ProgrammingError

from sumbo._redaction import safe, shown
from sumbo._typing import Array
from sumbo.errors import SpaceError, StoreError
from sumbo.executors import EvaluationResult
from sumbo.space import Space
from sumbo.space.constraints import OutcomeConstraint
from sumbo.study.ledger import Ledger, Record, check_record, digest, told

VERSION = 2  # of the tables; raised when an older sumbo would misunderstand them
_GRACE = 300.0  # seconds of silence after which a process of another machine counts as dead
_MAX_LOST = 10  # an objective that crashes ends its worker only; but one may bring the machine down, again and again

_tables = sa.MetaData()

studies = sa.Table(
    "sumbo_studies",
    _tables,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(500), nullable=False, unique=True),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("direction", sa.String(20), nullable=False),
    sa.Column("space", sa.Text, nullable=False),  # JSON
    sa.Column("seed", sa.Text, nullable=False),  # larger than any integer of SQL
    sa.Column("sequence", sa.BigInteger, nullable=False),
)

trials = sa.Table(
    "sumbo_trials",
    _tables,
    sa.Column("study_id", sa.ForeignKey(studies.c.id), primary_key=True, autoincrement=False),
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("changed", sa.BigInteger, nullable=False),  # sequence number of the last event
    sa.Column("asked", sa.BigInteger, nullable=False),
    sa.Column("seen", sa.BigInteger),
    sa.Column("told", sa.BigInteger),
    sa.Column("state", sa.String(10), nullable=False),
    sa.Column("params", sa.Text, nullable=False),  # JSON
    sa.Column("unit", sa.LargeBinary),  # doubles: to compute 100,000 points from their params takes seconds
    sa.Column("fixed", sa.Text),  # JSON
    sa.Column("value", sa.Double),
    sa.Column("constraints", sa.Text),  # JSON
    sa.Column("std", sa.Double),
    sa.Column("reason", sa.Text),
    sa.Column("detail", sa.Text),
    sa.Column("earlier", sa.Text),  # JSON
    sa.Column("signature", sa.String(20)),
    sa.Column("budget", sa.BigInteger),
    sa.Column("metadata", sa.Text),  # JSON
    sa.Column("method_state", sa.Text),  # JSON
    sa.Column("lease", sa.Integer),
    sa.Column("lost", sa.Integer, nullable=False),
    sa.Column("suggest_seconds", sa.Double),
    sa.Column("seconds", sa.Double),
    sa.Column("started", sa.Double),
    sa.Column("ended", sa.Double),
    sa.Index("sumbo_trials_changed", "study_id", "changed"),
)

leases = sa.Table(
    "sumbo_leases",
    _tables,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("study_id", sa.ForeignKey(studies.c.id), nullable=False),
    sa.Column("holder", sa.Text, nullable=False),  # JSON: which process
    sa.Column("beat", sa.Double, nullable=False),  # its last sign of life, by the database's clock
)


def check_url(url: str) -> None:
    """Raise a StoreError if a part of the password would be taken for the host, and looked up in the network."""
    try:
        read = make_url(url)
    except (ArgumentError, ValueError):
        read = None
    if read is None or "@" in (read.host or ""):
        form = "sqlite:///FILE.db or postgresql://USER@HOST:PORT/DATABASE, USER:PASSWORD if there is one"
        raise StoreError(f"storage {shown(url)}: expected {form}; correct it, with %40 for an @ in the password")


def open_engine(url: str, *, create: bool = True) -> Engine:
    """The database, with our tables in it; `create` says whether there may be none yet."""
    check_url(url)
    if url.startswith("sqlite"):
        file = Path(url.removeprefix("sqlite:///"))
        if not file.exists() and not create:
            raise StoreError(f"{safe(file, url)}: there is no such study yet; `sumbo run` or `sumbo ask` begins it")
        if not file.parent.is_dir():
            what = "expected a folder for the study's database"
            raise StoreError(f"{safe(file.parent, url)}: {what}; make it, or correct storage")
        engine = sa.create_engine(url, connect_args={"timeout": 60})
        sa.event.listen(engine, "connect", _configure)
    else:
        try:  # the driver by name: which one "postgresql:" stands for depends on SQLAlchemy's version
            engine = sa.create_engine(re.sub("^postgresql:", "postgresql+psycopg:", url), pool_pre_ping=True)
        except ImportError as error:
            what = safe(str(error), url).rstrip(".")
            raise StoreError(f"storage {shown(url)}: {what}; pip install 'sumbo[postgresql]'") from None
    for attempt in range(6):
        try:
            _tables.create_all(engine)
            break
        except (OperationalError, ProgrammingError, IntegrityError) as error:
            # Of several processes that make the tables at the same moment all but one must look again.
            if attempt == 5 or not re.search("already exists|unique|duplicate", str(error).lower()):
                raise
            time.sleep(0.2)
    return engine


def _configure(connection: Any, record: object) -> None:
    """A commit is on the disk when it returns. The log (WAL) makes that one flush, and readers wait for no writer."""
    for pragma in ("busy_timeout=60000", "journal_mode=WAL", "synchronous=FULL"):
        try:
            connection.execute(f"PRAGMA {pragma}").close()
        except sqlite3.Error:  # a folder or disk that does not allow it: SQLite's defaults are as safe, only slower
            continue


def clock(engine: Engine) -> sa.ColumnElement[float]:
    """The database's own time in seconds."""
    if engine.dialect.name == "sqlite":
        return sa.literal_column("(julianday('now') - 2440587.5) * 86400.0")
    return sa.literal_column("extract(epoch from clock_timestamp())")


# In the order of a Record's fields, which are built by the hundred thousand.
_READ = ["params" if field.name == "text" else field.name for field in fields(Record)]
# What an event can change; the rest is written when a trial is asked for.
_CHANGING = (
    *("changed", "state", "told", "value", "constraints", "std", "reason", "detail", "lease", "lost"),
    *("seconds", "ended", "earlier"),
)

_study = trials.c.study_id == sa.bindparam("study")

# Statements are made once: to put one together takes as long as the database takes for it.
_NEXT = (
    sa.update(studies)
    .where(studies.c.id == sa.bindparam("study"))
    .values(sequence=studies.c.sequence + 1)
    .returning(studies.c.sequence)
)


def _reading(method_state: Any) -> "sa.Select[Any]":
    columns = (method_state if name == "method_state" else trials.c[name] for name in _READ)
    return sa.select(trials.c.changed, *columns).where(_study)


# Methods may leave large states behind. Of a long study only the latest are read, and of a known trial none again.
_ALL = _reading(sa.null())
_since: sa.BindParameter[int] = sa.bindparam("since")
_NEW = _reading(sa.case((trials.c.asked > _since, trials.c.method_state))).where(trials.c.changed > _since)
_left = sa.and_(_study, trials.c.method_state.is_not(None))
_STATES = sa.select(trials.c.number, trials.c.signature, trials.c.method_state).where(_left)
_LATEST_STATES = _STATES.where(
    trials.c.number.in_(sa.select(sa.func.max(trials.c.number)).where(_left).group_by(trials.c.signature))
)
_INSERT = sa.insert(trials)
_CHANGE = sa.update(trials).where(_study, trials.c.number == sa.bindparam("trial"))


class SqlLedger(Ledger):
    """The ledger of one study. Trials that are not in the space, as it is now, are kept and guide no search."""

    def __init__(self, engine: Engine, study_id: int, space: Space, outcomes: Sequence[OutcomeConstraint] = ()) -> None:
        super().__init__(space, outcomes)
        self.engine = engine
        self.study_id = study_id
        self._digest = digest(space.to_dict())
        self._lease: int | None = None
        self._connection: Connection | None = None
        self._uncommitted: list[Record] = []
        self.refresh()

    def refresh(self) -> None:
        with self.engine.connect() as connection:
            self._read(connection)

    def _read(self, connection: Connection) -> None:
        first = self.sequence == 0
        which = {"study": self.study_id, "since": self.sequence}
        with _uncollected():
            rows = connection.execute(_ALL if first else _NEW, which).all()
            if not rows:
                return
            records = sorted((self._record(*row) for row in rows), key=lambda record: record.number)
            known, last = len(self.records), self.records[-1].asked if self.records else 0
            for record in records:
                if record.number > known:
                    raise ValueError(f"trial {record.number}: there is no trial {known}")
                check_record(record)
                if record.number == known:
                    if record.asked < last:
                        raise ValueError(f"trial {known}: it was asked for before trial {known - 1}")
                    known, last = known + 1, record.asked
                elif record.asked != self.records[record.number].asked:
                    raise ValueError(f"trial {record.number}: its place in the order of asking has changed")
            self._apply(records)
            self.sequence = max(row[0] for row in rows)
        if first:
            for row in connection.execute(_LATEST_STATES, which):
                self._states[row.signature] = json.loads(row.method_state)

    def read_all_states(self) -> None:
        """Those of earlier suggestions as well, to make these again."""
        with self.engine.connect() as connection:
            for row in connection.execute(_STATES, {"study": self.study_id}):
                if row.number < len(self.records):
                    self.records[row.number].method_state = json.loads(row.method_state)

    def _record(
        self, changed: int, number: int, text: str, unit: bytes | None, asked: int, signature: str | None, *rest: Any
    ) -> Record:
        metadata, method_state, earlier, fixed, constraints, *plain = rest
        return Record(
            number,
            text,
            np.frombuffer(unit) if unit and signature and signature[:8] == self._digest else self._unit(text),
            asked,
            signature,
            None if metadata is None else json.loads(metadata),
            None if method_state is None else json.loads(method_state),
            () if earlier is None else tuple(map(tuple, json.loads(earlier))),
            None if fixed is None else json.loads(fixed),
            None if constraints is None else json.loads(constraints),
            *plain,
        )

    def _unit(self, text: str) -> Array | None:
        params = json.loads(text)
        names = set(self.space.names)
        if not isinstance(params, dict) or not (
            params.keys() <= names if self.space.conditional else params.keys() == names
        ):
            raise ValueError(f"expected params of {', '.join(self.space.names)}, got {text:.80}")
        try:
            return self.space.to_unit(params)
        except SpaceError:
            return None

    @contextmanager
    def writing(self) -> Iterator[int]:
        with self.engine.begin() as connection:
            sequence = int(connection.execute(_NEXT, {"study": self.study_id}).scalar_one())  # locked until we commit
            if sequence > self.sequence + 1:
                self._read(connection)
            self._connection, self._uncommitted = connection, []
            try:
                yield sequence
            finally:
                self._connection = None
            if not self._uncommitted:  # no event after all
                connection.rollback()
        if self._uncommitted:  # it is on the disk now
            self._apply(self._uncommitted)
            self.sequence = sequence

    def put(self, record: Record, sequence: int) -> None:
        assert self._connection is not None, "inside of writing()"
        row = self._row(record, sequence)
        if record.number == len(self.records):
            self._connection.execute(_INSERT, row)
        else:
            values = {name: row[name] for name in _CHANGING}
            self._connection.execute(_CHANGE, {"study": self.study_id, "trial": record.number, **values})
        self._uncommitted.append(record)

    @property
    def lease(self) -> int | None:
        if self._lease is None:
            row = {"study_id": self.study_id, "holder": json.dumps(this_process()), "beat": clock(self.engine)}
            with self.engine.begin() as connection:
                made = connection.execute(sa.insert(leases).values(row).returning(leases.c.id))
                self._lease = int(made.scalar_one())
        return self._lease

    def release(self, number: int) -> None:
        self._give_back(number, self.lease, lost=0)

    withdraw = release

    def _give_back(self, number: int, lease: int | None, *, lost: int) -> bool:
        """Let a trial that somebody holds wait for another; False if that is over."""
        with self.writing() as sequence:
            record = self.records[number]
            if record.state != "running" or record.lease != lease:
                return False
            back = replace(record, state="waiting", lease=None, lost=record.lost + lost)
            if back.lost >= _MAX_LOST:
                reason = f"its process died {back.lost} times while evaluating it"
                back = told(back, EvaluationResult(reason=reason, kind="lost"), sequence)
            self.put(back, sequence)
        return True

    def maintain(self) -> list[int]:
        now = clock(self.engine)
        if self._lease is not None:
            with self.engine.begin() as connection:
                connection.execute(sa.update(leases).where(leases.c.id == self._lease).values(beat=now))
        self.refresh()
        others = [r for r in self.live if r.state == "running" and r.lease not in (None, self._lease)]
        if not others:
            return []
        held = sa.select(leases.c.id, leases.c.holder, now - leases.c.beat)
        with self.engine.connect() as connection:
            rows = connection.execute(held.where(leases.c.id.in_({record.lease for record in others}))).all()
        dead = {key for key, holder, silent in rows if is_gone(json.loads(holder)) or silent > _GRACE}
        return [r.number for r in others if r.lease in dead and self._give_back(r.number, r.lease, lost=1)]

    def holder(self, record: Record) -> dict[str, Any] | None:
        """The process that evaluates the trial, or did; None if none has it."""
        if record.lease is None:
            return None
        with self.engine.connect() as connection:
            text = connection.execute(sa.select(leases.c.holder).where(leases.c.id == record.lease)).scalar()
        return None if text is None else json.loads(text)

    def _row(self, record: Record, sequence: int) -> dict[str, Any]:
        return {name: getattr(record, name) for name in _READ if name != "params"} | {
            "study_id": self.study_id,
            "changed": sequence,
            "params": record.text,
            "unit": None if record.unit is None else record.unit.tobytes(),
            "reason": _storable(record.reason),
            "detail": _storable(record.detail),
            "earlier": json.dumps(record.earlier) if record.earlier else None,
            "fixed": None if record.fixed is None else json.dumps(record.fixed),
            "constraints": None if record.constraints is None else json.dumps(record.constraints),
            "metadata": None if record.metadata is None else json.dumps(record.metadata),
            "method_state": None if record.method_state is None else json.dumps(record.method_state),
        }


@contextmanager
def _uncollected() -> Iterator[None]:
    """While so much is made that stays, looking for what does not takes a third of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _storable(text: str | None) -> str | None:
    """What a database takes as text: not half of a character, nor (PostgreSQL) a NUL."""
    return None if text is None else text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode("utf-8")


_PROC = Path("/proc")


def this_process() -> dict[str, Any]:
    """The holder of a lease; no restarted machine, no container beside this one and no reused id is taken for it."""
    pid = os.getpid()
    return {"host": socket.gethostname(), "place": _place(), "pid": pid, "started": _started(pid)}


def is_gone(holder: dict[str, Any]) -> bool:
    """Has the process ended for certain? False also where this cannot be told: its heartbeat decides then."""
    pid = holder.get("pid")
    if holder.get("place") != _place() or not isinstance(pid, int) or os.name != "posix":
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # it is there, and somebody else's
        pass
    return holder.get("started") != _started(pid)


def _place() -> str:
    """Where process ids mean the same as here."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink(_PROC / 'self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _started(pid: int) -> str | None:
    """When the process started, in the machine's own count; None where it does not say, or the process has ended."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # from field 3 on; the name, field 2, may hold blanks and brackets
    return None if fields[0] in "ZX" else fields[19]  # Z: its parent, in a container, may never collect it
