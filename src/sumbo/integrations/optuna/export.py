"""A study of sumbo's as an Optuna study, for optuna-dashboard and whatever else reads those."""

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.pool import StaticPool

from sumbo.integrations.optuna.ledger import REASON
from sumbo.integrations.optuna.translation import distribution
from sumbo.study.files.toml import StudyFile

_STATES = {"done": TrialState.COMPLETE, "running": TrialState.RUNNING, "open": TrialState.RUNNING}  # others failed


def as_optuna(study: StudyFile, records: Sequence[Mapping[str, Any]]) -> bytes:
    """The contents of an SQLite file with an Optuna study of the same name; trials keep their numbers."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    try:
        engine = {"creator": lambda: connection, "poolclass": StaticPool}
        storage = optuna.storages.RDBStorage("sqlite://", engine_kwargs=engine)
        copy = optuna.create_study(storage=storage, study_name=study.name, direction=study.goal)
        for row in records:
            if row["state"] == "waiting":
                copy.enqueue_trial(row["params"])
            else:
                copy.add_trial(_trial(study, row))
        storage.remove_session()
        return connection.serialize()
    finally:
        connection.close()


def _trial(study: StudyFile, row: Mapping[str, Any]) -> FrozenTrial:
    state, params = _STATES.get(row["state"], TrialState.FAIL), row["params"]
    trial = optuna.create_trial(
        state=state,
        value=row["value"],
        params=params,
        distributions={name: distribution(study.space[name], value) for name, value in params.items()},
        user_attrs={REASON: row["reason"] or row["state"]} if state == TrialState.FAIL else {},
    )
    if row["started"] is not None:
        trial.datetime_start = datetime.fromisoformat(row["started"])
        if state.is_finished():
            trial.datetime_complete = trial.datetime_start + timedelta(seconds=row["seconds"] or 0.0)
    return trial
