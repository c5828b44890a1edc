"""Whole studies: Optuna's as views, whatever sampler made them, and those of sumbo's as Optuna's."""

import contextlib
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.pool import StaticPool

from sumbo._redaction import safe, shown
from sumbo.errors import SettingError, StoreError
from sumbo.insights.analysis import StudyAnalysis, presentable
from sumbo.integrations.optuna import SumboSampler
from sumbo.integrations.optuna.ledger import (
    REASON,
    STATE,
    Attributes,
    StudyLedger,
    Translation,
    common_distributions,
    direction_of,
    record_of,
)
from sumbo.methods import resolve
from sumbo.space import Parameter
from sumbo.study.files.toml import StudyFile
from sumbo.study.optimizer import Optimizer, Trial
from sumbo.study.storage import check_url

_STATES = {"done": TrialState.COMPLETE, "running": TrialState.RUNNING, "open": TrialState.RUNNING}  # others failed


def from_optuna(
    study: Study, *, name: str | None = None, say: Callable[[str], None] = lambda text: None
) -> StudyAnalysis:
    """A view of an Optuna study, as `sumbo.report.from_optuna` explains; `say` is told what takes long."""
    if not isinstance(study, Study):
        raise SettingError(f"expected an Optuna study; got {type(study).__name__}. Load one with optuna.load_study")
    if len(study.directions) > 1:
        raise SettingError(
            f"a report is about one objective, and this study has {len(study.directions)}; make one for each"
        )
    trials, direction = study.get_trials(deepcopy=False), direction_of(study)
    ours = study.sampler if isinstance(study.sampler, SumboSampler) else None
    method, seed = (ours.method, ours.seed) if ours else (resolve("auto"), 0)
    # A study that is merely loaded has a sampler that never sampled; what sumbo left in it tells.
    is_ours = ours is not None or any(key.startswith(STATE) for key in study.user_attrs)
    common = common_distributions(trials)
    left = len({name for trial in trials for name in trial.distributions} - set(common))
    said = f"{left} parameters are left out of the model: not all trials have them, or they never change."
    translation, context = Translation.of(common), None
    if translation is not None:
        ledger = StudyLedger(translation, method, direction)
        ledger.read(trials, Attributes(study, {}).refresh())
        context = Optimizer._on(ledger, method, direction, seed, None)._context_now()
    return StudyAnalysis(
        name=study.study_name if name is None else name,
        direction=direction,
        method=method.name if is_ours else "of another sampler",
        rows=tuple(_row(trial, list(common)) for trial in trials),
        space=None if translation is None else translation.space,
        context=context,
        model_by=method,
        decode=(lambda unit: {}) if translation is None else translation.params,
        seed=seed,
        notes=(said,) if left else (),
        say=say,
    )


def _row(trial: FrozenTrial, first: list[str]) -> Trial:
    """With Optuna's own values: the parameters that are modelled, then those that only some trials have."""
    names = dict.fromkeys([name for name in first if name in trial.params] + list(trial.params))
    record = record_of(trial.number, trial)
    params, result = {name: trial.params[name] for name in names}, (record.value, record.state, record.reason)
    return presentable(Trial(trial.number, params, np.empty(0), *result, record.seconds))


def open_view(url: str, name: str, say: Callable[[str], None]) -> StudyAnalysis:
    """A view of a study in an Optuna storage.

    Raises:
        StoreError: the storage cannot be read, or has no such study.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    file = Path(url.removeprefix("sqlite:///"))
    if url.startswith("sqlite:///") and not file.is_file():  # Optuna would make one
        expected = "expected a database that Optuna made, and there is no such file; correct --storage"
        raise StoreError(f"{safe(file, url)}: {expected}")
    check_url(url)
    try:
        return from_optuna(optuna.load_study(study_name=name, storage=url), say=say)
    except SettingError:
        raise
    except Exception as error:  # whatever a driver raises; it may repeat the password
        if isinstance(error, KeyError):
            with contextlib.suppress(KeyError):  # of a template: Optuna takes braces in a URL for one
                known = ", ".join(optuna.get_all_study_names(url)) or "none"
                raise StoreError(f"storage {shown(url)} has no study {name!r}; it has: {known}") from None
        text = " ".join(str(error).split())
        raise StoreError(f"storage {shown(url)}: {safe(text, url):.500}") from None


def as_optuna(study: StudyFile, records: Sequence[Mapping[str, Any]]) -> bytes:
    """The contents of an SQLite file with an Optuna study of the same name; trials keep their numbers."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    with contextlib.closing(connection):
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


def _trial(study: StudyFile, row: Mapping[str, Any]) -> FrozenTrial:
    state, params = _STATES.get(row["state"], TrialState.FAIL), row["params"]
    trial = optuna.create_trial(
        state=state,
        value=row["value"],
        params=params,
        distributions={name: _distribution(study.space[name], value) for name, value in params.items()},
        user_attrs={REASON: row["reason"] or row["state"]} if state == TrialState.FAIL else {},
    )
    if row["started"] is not None:
        trial.datetime_start = datetime.fromisoformat(row["started"])
        if state.is_finished():
            trial.datetime_complete = trial.datetime_start + timedelta(seconds=row["seconds"] or 0.0)
    return trial


def _distribution(parameter: Parameter, value: Any) -> BaseDistribution:
    """What Optuna calls a parameter of sumbo's; wider, if the value is of a time at which the range was."""
    if parameter.choices:
        return CategoricalDistribution(parameter.choices)
    kind: type[Any] = IntDistribution if parameter.kind == "int" else FloatDistribution
    return kind(min(parameter.low, value), max(parameter.high, value), log=parameter.log)
