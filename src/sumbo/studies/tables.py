"""Steps on Optuna's tables that must happen whole or not at all; Optuna's own methods take several transactions.

With SQLite, Optuna reads a trial's state outside the transaction that changes it, so that two processes can both take
the same trial, and it stores parameters one by one: 40 of them took 0.8 s and a process killed in between left half a
point. Here a condition and its change are one statement, and the rest of the step is in the same transaction.
"""

import json
import re
import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import sqlalchemy
from optuna.distributions import BaseDistribution, distribution_to_json
from optuna.storages import RDBStorage
from optuna.storages._rdb import models
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.engine import Connection

from sumbo.studies import owners
from sumbo.studies.rows import Rows, local

OWNER = "sumbo:owner"

_Trial, _Attribute, _Param = models.TrialModel, models.TrialUserAttributeModel, models.TrialParamModel
_Value, _Heartbeat = models.TrialValueModel, models.TrialHeartbeatModel


def open_tables(url: str) -> RDBStorage:
    """The tables, made if they are not there.

    A commit is on the disk when it returns (synchronous=FULL). SQLite's write-ahead log makes that one flush instead of
    three or four, and readers do not wait for writers.
    """
    if not url.startswith("sqlite"):
        # The driver by name: which one "postgresql:" stands for depends on SQLAlchemy's version.
        return Rows(re.sub("^postgresql:", "postgresql+psycopg:", url), engine_kwargs={"pool_pre_ping": True})
    storage = Rows(url, engine_kwargs={"connect_args": {"timeout": 60}})

    @sqlalchemy.event.listens_for(storage.engine, "connect")
    def configure(connection: Any, record: object) -> None:
        for pragma in ("busy_timeout=60000", "journal_mode=WAL", "synchronous=FULL"):
            try:
                connection.execute(f"PRAGMA {pragma}").close()
            except sqlite3.Error:  # a folder or disk that does not allow it: SQLite's defaults are as safe, only slower
                continue

    storage.engine.dispose()  # connections from before the listener
    return storage


def write_params(
    storage: RDBStorage, trial_id: int, params: Mapping[str, Any], distributions: Mapping[str, BaseDistribution]
) -> None:
    """Give a trial all of its parameters."""
    rows = [
        {
            "trial_id": trial_id,
            "param_name": name,
            "param_value": distributions[name].to_internal_repr(value),
            "distribution_json": distribution_to_json(distributions[name]),
        }
        for name, value in params.items()
    ]
    with storage.engine.begin() as connection:
        connection.execute(sqlalchemy.insert(_Param), rows)


def create(storage: RDBStorage, study_id: int, owner: dict[str, Any], budget: int | None) -> FrozenTrial | None:
    """A new running trial of that owner; None if the budget is taken by those that ended, run or wait."""
    with storage.engine.begin() as connection:
        _lock(connection, study_id)
        # As Optuna numbers them. The study's row is locked, so that no other trial comes in between.
        number = _counted(connection, study_id)
        if budget is not None and number >= budget and number - _in_hand(connection, study_id) >= budget:
            return None
        start = _utc()
        row = {"study_id": study_id, "state": TrialState.RUNNING, "datetime_start": start, "number": number}
        made = connection.execute(sqlalchemy.insert(_Trial.__table__).values(row)).inserted_primary_key
        assert made is not None
        connection.execute(sqlalchemy.insert(_Attribute), [_attribute_row(made[0], OWNER, owner)])
        _beat(connection, made[0], owner)
    return FrozenTrial(
        number=number,
        state=TrialState.RUNNING,
        value=None,
        datetime_start=local(start),
        datetime_complete=None,
        params={},
        distributions={},
        user_attrs={OWNER: owner},
        system_attrs={},
        intermediate_values={},
        trial_id=made[0],
    )


def waiting(storage: RDBStorage, study_id: int) -> list[int]:
    """The keys of trials that wait for somebody, in the order of their numbers."""
    where = sqlalchemy.and_(_Trial.study_id == study_id, _Trial.state == TrialState.WAITING)
    with storage.engine.connect() as connection:
        return list(
            connection.execute(sqlalchemy.select(_Trial.trial_id).where(where).order_by(_Trial.number)).scalars()
        )


def claim(
    storage: RDBStorage, trial_id: int, owner: dict[str, Any], *, study_id: int = 0, budget: int | None = None
) -> bool:
    """Make a waiting trial one's own; False if somebody else was faster, or the study's budget is taken."""
    with storage.engine.begin() as connection:
        if budget is not None:
            _lock(connection, study_id)
            taken = _counted(connection, study_id, waiting=False) - _in_hand(connection, study_id)
            if taken >= budget:
                return False
        values = {_Trial.state: TrialState.RUNNING, _Trial._datetime_start_utc: _utc()}
        if not _changed(connection, trial_id, TrialState.WAITING, values):
            return False
        _set_attribute(connection, trial_id, OWNER, owner)
        connection.execute(sqlalchemy.delete(_Heartbeat).where(_Heartbeat.trial_id == trial_id))
        _beat(connection, trial_id, owner)
        return True


def finish(storage: RDBStorage, trial_id: int, value: float | None, attributes: Mapping[str, Any]) -> bool:
    """Record what came of a running trial, None for a failure; False if it does not run (any more)."""
    state = TrialState.FAIL if value is None else TrialState.COMPLETE
    with storage.engine.begin() as connection:
        values = {_Trial.state: state, _Trial._datetime_complete_utc: _utc()}
        if not _changed(connection, trial_id, TrialState.RUNNING, values):
            return False
        if value is not None:
            connection.execute(sqlalchemy.insert(_Value), [_value_row(trial_id, value)])
        for key, attribute in attributes.items():
            _set_attribute(connection, trial_id, key, attribute)
        return True


def release(storage: RDBStorage, trial_id: int, owner: dict[str, Any], attributes: Mapping[str, Any]) -> bool:
    """Let a running trial of that owner wait for another; False if it is no longer that owner's, or has ended."""
    mine = sqlalchemy.and_(
        _Attribute.trial_id == trial_id, _Attribute.key == OWNER, _Attribute.value_json == json.dumps(owner)
    )
    with storage.engine.begin() as connection:
        # This first, and by its value: of two processes that do so at the same time, one changes nothing.
        taken = connection.execute(sqlalchemy.update(_Attribute).where(mine).values(value_json="null"))
        if taken.rowcount != 1 or not _changed(
            connection, trial_id, TrialState.RUNNING, {_Trial.state: TrialState.WAITING}
        ):
            connection.rollback()
            return False
        connection.execute(sqlalchemy.delete(_Heartbeat).where(_Heartbeat.trial_id == trial_id))
        for key, value in attributes.items():
            _set_attribute(connection, trial_id, key, value)
        return True


def replace(storage: RDBStorage, trial_id: int, value: float | None, attributes: Mapping[str, Any]) -> None:
    """Correct what a finished trial was told; None for a failure. Optuna knows no way to do that."""
    state = TrialState.FAIL if value is None else TrialState.COMPLETE
    with storage.engine.begin() as connection:
        connection.execute(sqlalchemy.update(_Trial).where(_Trial.trial_id == trial_id).values({_Trial.state: state}))
        connection.execute(sqlalchemy.delete(_Value).where(_Value.trial_id == trial_id))
        if value is not None:
            connection.execute(sqlalchemy.insert(_Value), [_value_row(trial_id, value)])
        for key, attribute in attributes.items():
            _set_attribute(connection, trial_id, key, attribute)


def silent_for(storage: RDBStorage) -> dict[int, float]:
    """Seconds since the last heartbeat of each running trial that had one, by the database's own clock."""
    with storage.engine.connect() as connection:
        now = connection.execute(sqlalchemy.select(sqlalchemy.func.now())).scalar_one().replace(tzinfo=None)
        beats = sqlalchemy.select(_Heartbeat.trial_id, _Heartbeat.heartbeat).join(_Trial)
        rows = connection.execute(beats.where(_Trial.state == TrialState.RUNNING)).all()
    return {trial_id: (now - beat).total_seconds() for trial_id, beat in rows}


def _lock(connection: Connection, study_id: int) -> None:
    """Keep others from adding trials until the transaction ends. Optuna locks the same row for that."""
    study = sqlalchemy.update(models.StudyModel).where(models.StudyModel.study_id == study_id)
    connection.execute(study.values(study_name=models.StudyModel.study_name))


def _counted(connection: Connection, study_id: int, *, waiting: bool = True) -> int:
    """How many trials the study has."""
    where = [_Trial.study_id == study_id] + ([] if waiting else [_Trial.state != TrialState.WAITING])
    return int(connection.execute(sqlalchemy.select(sqlalchemy.func.count(_Trial.trial_id)).where(*where)).scalar_one())


def _in_hand(connection: Connection, study_id: int) -> int:
    """How many of them people have in hand: those the budget does not pay for."""
    query = sqlalchemy.select(sqlalchemy.func.count(_Trial.trial_id)).join(
        _Attribute, sqlalchemy.and_(_Attribute.trial_id == _Trial.trial_id, _Attribute.key == OWNER)
    )
    running = sqlalchemy.and_(_Trial.study_id == study_id, _Trial.state == TrialState.RUNNING)
    by_hand = _Attribute.value_json.like('%"by": "hand"%')
    return int(connection.execute(query.where(running, by_hand)).scalar_one())


def _changed(connection: Connection, trial_id: int, state: TrialState, values: dict[Any, Any]) -> bool:
    """Change a trial if it is in that state still."""
    where = sqlalchemy.and_(_Trial.trial_id == trial_id, _Trial.state == state)
    return connection.execute(sqlalchemy.update(_Trial).where(where).values(values)).rowcount == 1


def _set_attribute(connection: Connection, trial_id: int, key: str, value: Any) -> None:
    where = sqlalchemy.and_(_Attribute.trial_id == trial_id, _Attribute.key == key)
    row = _attribute_row(trial_id, key, value)
    changed = sqlalchemy.update(_Attribute).where(where).values(value_json=row["value_json"])
    if connection.execute(changed).rowcount == 0:
        connection.execute(sqlalchemy.insert(_Attribute), [row])


def _attribute_row(trial_id: int, key: str, value: Any) -> dict[str, Any]:
    return {"trial_id": trial_id, "key": key, "value_json": json.dumps(value)}


def _value_row(trial_id: int, value: float) -> dict[str, Any]:
    return {"trial_id": trial_id, "objective": 0, "value": value, "value_type": _Value.TrialValueType.FINITE}


def _beat(connection: Connection, trial_id: int, owner: dict[str, Any]) -> None:
    """The first sign of life of a trial's process, with the trial itself. People give none."""
    if owner["by"] != owners.HAND:
        connection.execute(sqlalchemy.insert(_Heartbeat), [{"trial_id": trial_id}])


def _utc() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)  # as Optuna keeps its times
