"""Where a ledger is kept so that it outlives a process, SQLite or PostgreSQL: the tables, and how they are opened."""

import re
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine, make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, OperationalError, ProgrammingError

from sumbo._redaction import safe, shown
from sumbo.errors import StoreError, SumboError

VERSION = 1  # of the tables; raised when an older sumbo would misunderstand them

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
    sa.Column("value", sa.Double),
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
    """The database, with our tables in it; `create` says whether there may be none yet.

    A commit is on the disk when it returns (synchronous=FULL). SQLite's write-ahead log makes that one flush instead of
    three or four, and readers do not wait for writers.
    """
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


def study_row(engine: Engine, name: str, begin: dict[str, Any] | None) -> Any:
    """The study of this name; None if there is none, and no values to begin it with."""
    query = sa.select(studies).where(studies.c.name == name)
    with engine.begin() as connection:
        row = connection.execute(query).first()
    if row is not None or begin is None:
        return row
    seed = secrets.randbelow(2**31) if begin["seed"] is None else begin["seed"]
    try:
        with engine.begin() as connection:
            values = {**begin, "name": name, "version": VERSION, "seed": str(seed), "sequence": 0}
            connection.execute(sa.insert(studies).values(values))
    except IntegrityError:  # another process was faster
        pass
    return study_row(engine, name, None)


# --- what databases say, in words ---


@contextmanager
def reading(place: str, url: str) -> Iterator[None]:
    """Around calls that read records: what they raise over nonsense becomes a StoreError that names the place.

    A database may be cut, restored in part or edited by hand. The libraries below then raise whatever a missing key or
    a text in place of a number raises; a user is to hear what is wrong and what to do.
    """
    try:
        yield
    except SumboError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        what = safe(f"{type(error).__name__}: {error}", url)
        advice = "restore a backup of the database, or begin a new study under another name"
        raise StoreError(f"{place}: what is stored cannot be read ({what:.200}); {advice}") from None


def remedy(text: str) -> str:
    """What to do about something that a database said; empty where nothing is known."""
    return next((f"; {advice}" for words, advice in _REMEDIES.items() if words in text), "")
