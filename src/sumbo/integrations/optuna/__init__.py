"""Optuna studies with sumbo's suggestions: `optuna.create_study(sampler=SumboSampler(seed=0))`.

Also whole studies: Optuna's as views, whatever sampler made them, and those of sumbo's as Optuna's.
"""

import contextlib
import sqlite3
import threading
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

try:
    import optuna
    from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
    from optuna.samplers import BaseSampler
    from optuna.study import Study
    from optuna.trial import FrozenTrial, TrialState
except ImportError as error:
    from sumbo.errors import MissingPackageError

    raise MissingPackageError(
        f"sumbo.integrations.optuna needs Optuna ({error}); install it with: pip install 'sumbo[optuna]'"
    ) from None

from sqlalchemy.pool import StaticPool

from sumbo import methods
from sumbo._redaction import safe, shown
from sumbo.errors import SettingError, SpaceError, StoreError, SumboError
from sumbo.insights.analysis import StudyAnalysis, presentable
from sumbo.integrations.optuna.ledger import (
    REASON,
    STATE,
    Attributes,
    StudyLedger,
    direction_of,
    outcomes_of,
    record_of,
)
from sumbo.integrations.optuna.translation import Translation, searched_distributions
from sumbo.methods import Deadline, Method, randomness
from sumbo.space import Space
from sumbo.study.files.toml import StudyFile
from sumbo.study.optimizer import Optimizer, Trial
from sumbo.study.storage import check_url

__all__ = ["SumboSampler"]

_STATES = {"done": TrialState.COMPLETE, "running": TrialState.RUNNING, "open": TrialState.RUNNING}  # others failed


class SumboSampler(BaseSampler):
    """Suggests parameters of an Optuna study by sumbo's methods.

    All parameters are modelled together. One that only some trials have is taken to exist for those values of another
    with which it was seen. What is asked for the first time, or has another range each time, gets a model of its own.
    Failed and pruned trials are data too: the search keeps away from where evaluations fail.

    Constraints are learned from what was recorded with the trials: by `trial.set_constraint`, or by `constraints_func`
    here or in another sampler. Where a trial has none, it is unknown whether it is feasible.

    A suggestion depends on the seed, the trial's number and the study so far. What a method must remember is in the
    study's user attributes (`sumbo:...`): a study that is loaded again with the same seed goes on as if it had never
    stopped. With Optuna's Hyperband it goes on well, not identically: parts of a study have no attributes.

    Running trials are taken into account. Threads of a study that share this object never get the same point, as long
    as there are others. Nor do processes that share a storage, as long as no more than 64 trials at a time lack some of
    their parameters: the latest suggestions are in the study's attributes too.

    Args:
        method: a name such as "auto" or "add-gp-ucb", or a method object with settings.
        seed: an integer for a study that can be repeated exactly.
        budget: how many trials there will be, if known: the last few then look for the best value, not for news.
        constraints_func: called with each trial that has a value; returns a sequence of numbers, at most 0 where a
            constraint holds. They are recorded as by Optuna's own samplers, so that `study.best_trial` is feasible.
        independent_sampler: draws parameters that are asked for the first time, or have another range each time.

    Example:
        >>> import optuna
        >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
        >>> study = optuna.create_study(sampler=SumboSampler(seed=0))
        >>> study.optimize(lambda trial: (trial.suggest_float("x", -5, 5) - 2) ** 2, n_trials=15)
        >>> study.best_value < 0.1
        True

    Raises:
        SettingError: an argument makes no sense; when sampling, the study has several objectives.
    """

    def __init__(
        self,
        *,
        method: str | Method = "auto",
        seed: int | None = None,
        budget: int | None = None,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
        independent_sampler: BaseSampler | None = None,
    ) -> None:
        if constraints_func is not None and not callable(constraints_func):
            raise SettingError(f"constraints_func must be a function of a trial, or None; got {constraints_func!r}")
        if independent_sampler is not None and not isinstance(independent_sampler, BaseSampler):
            raise SettingError(f"independent_sampler must be an Optuna sampler or None; got {independent_sampler!r}")
        self.method = methods.resolve(method)
        self.seed = randomness.checked_seed(seed)
        self.budget = None if budget is None else methods.check_count("budget", budget)
        self._independent = independent_sampler
        self._recorder: BaseSampler | None = None
        if constraints_func is not None:
            # Only samplers of Optuna's own can record constraints after a trial; this one does nothing else.
            with warnings.catch_warnings(action="ignore"):  # experimental in Optuna 4, deprecated in 5
                self._recorder = optuna.samplers.TPESampler(constraints_func=constraints_func)
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._last: tuple[Any, Optimizer, StudyLedger] | None = None
        self._spare: dict[Any, dict[str, Any]] = {}  # attributes of studies that take none

    def __getstate__(self) -> dict[str, Any]:
        """The settings alone: Optuna users pickle their samplers, and locks and caches stay at home."""
        return {name: self.__dict__[name] for name in ("method", "seed", "budget", "_independent", "_recorder")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def reseed_rng(self) -> None:
        """Reseed the independent sampler. Here every trial has randomness of its own, so no two workers share any."""
        if self._independent is not None:
            self._independent.reseed_rng()

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The parameters to be modelled: all whose range is known."""
        _check_objectives(study)
        return searched_distributions(study.get_trials(deepcopy=False))

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Values for all parameters of the search space that exist with each other."""
        with self._lock:  # one at a time: the next thread shall see what this one suggests
            trials = study.get_trials(deepcopy=False)
            translation = Translation.of(search_space, trials, only_boxes=self.method.only_boxes)
            return {} if translation is None else self._suggested(study, trial, trials, translation)

    def _suggested(
        self, study: Study, trial: FrozenTrial, trials: Sequence[FrozenTrial], translation: Translation
    ) -> dict[str, Any]:
        try:
            self.method.check(translation.space)
        except SumboError:
            if any(other.state == TrialState.COMPLETE for other in trials):
                raise
            return {}  # not all parameters are known as yet
        # Those of the last suggestion, if it was for this study in this space; else new ones, which takes longer.
        direction, outcomes = direction_of(study), outcomes_of(trials, self.method)
        key = study.study_name, translation.place, translation.conditions, outcomes
        if self._last is None or self._last[0] != key or not self._last[2].continued_by(trials):
            ledger = StudyLedger(translation, self.method, direction, outcomes)
            self._last = key, Optimizer._on(ledger, self.method, direction, self.seed, self.budget), ledger
        _, optimizer, ledger = self._last
        spare = self._spare.setdefault((study.study_name, trials[0].number), {})
        ledger.read(trials, Attributes(study, spare), trial.number)
        enqueued = translation.given(trial.system_attrs.get("fixed_params", {}))
        given = enqueued or translation.untried(trials) or None
        context, answer, _ = optimizer._proposed(Deadline(), None if self.method.only_boxes else given)
        unit = ledger.claimed(answer.point, optimizer._region(given), context.rng)
        if answer.candidate_metadata is not None and not given:  # else it is not the point that the note is about
            ledger.keep_note(unit, answer.candidate_metadata)
        if answer.state != context.state:
            ledger.keep_state(answer.state)
        return translation.params(unit)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A value for a parameter that is not modelled with the others: by a model of its own, first points spread."""
        _check_objectives(study)
        if self._independent is not None:
            return self._independent.sample_independent(study, trial, param_name, param_distribution)
        # What is drawn depends on the study and the trial, on no draw before.
        key, translation = zlib.crc32(param_name.encode()), Translation.of({param_name: param_distribution})
        if translation is None:  # beyond a double's digits
            seed = int(randomness.trial_rng(self.seed, trial.number, key).integers(2**32))
            return optuna.samplers.RandomSampler(seed).sample_independent(study, trial, param_name, param_distribution)
        trials, method, direction = study.get_trials(deepcopy=False), methods.resolve("auto"), direction_of(study)
        ledger = StudyLedger(translation, method, direction)
        ledger.expect([t.number for t in trials if t.state == TrialState.RUNNING], np.array([0.5]))
        ledger.read(trials, Attributes(study, {}), trial.number)
        seed = int(randomness.trial_rng(self.seed, 0, key).integers(2**32))  # a sequence of first points of its own
        _, answer, _ = Optimizer._on(ledger, method, direction, seed, None)._proposed(Deadline(), None)
        return translation.params(answer.point)[param_name]

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Let the independent sampler prepare."""
        if self._independent is not None:
            self._independent.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Record constraints, and let the independent sampler take note."""
        if self._recorder is not None:
            self._recorder.after_trial(study, trial, state, values)
        if self._independent is not None:
            self._independent.after_trial(study, trial, state, values)


def _check_objectives(
    study: Study,
    what: str = "SumboSampler optimises",
    advice: str = "combine them into one value, or use a sampler for several, such as optuna.samplers.NSGAIISampler",
) -> None:
    if len(study.directions) > 1:
        several = f"this study has {len(study.directions)}: several are not built"
        raise SettingError(f"{what} one objective, and {several}; {advice}")


def from_optuna(
    study: Study, *, name: str | None = None, say: Callable[[str], None] = lambda text: None
) -> StudyAnalysis:
    """A view of an Optuna study, as `sumbo.report.from_optuna` explains; `say` is told what takes long."""
    if not isinstance(study, Study):
        raise SettingError(f"expected an Optuna study; got {type(study).__name__}. Load one with optuna.load_study")
    _check_objectives(study, "a report is about", "make one for each")
    trials, direction = study.get_trials(deepcopy=False), direction_of(study)
    ours = study.sampler if isinstance(study.sampler, SumboSampler) else None
    method, seed = (ours.method, ours.seed) if ours else (methods.resolve("auto"), 0)
    # A study that is merely loaded has a sampler that never sampled; what sumbo left in it tells.
    is_ours = ours is not None or any(key.startswith(STATE) for key in study.user_attrs)
    translation = Translation.of(searched_distributions(trials), trials, only_boxes=method.only_boxes)
    modelled, context = ([] if translation is None else list(translation.distributions)), None
    outcomes = outcomes_of(trials, method)
    left = len({name for trial in trials for name in trial.distributions} - set(modelled))
    said = f"{left} parameters are left out of the model: they never change, or have another range each time."
    if translation is not None:
        ledger = StudyLedger(translation, method, direction, outcomes)
        ledger.read(trials, Attributes(study, {}))
        context = Optimizer._on(ledger, method, direction, seed, None)._context_now()
    return StudyAnalysis(
        name=study.study_name if name is None else name,
        direction=direction,
        method=method.name if is_ours else "of another sampler",
        rows=tuple(_row(trial, modelled, [outcome.name for outcome in outcomes]) for trial in trials),
        space=None if translation is None else translation.space,
        context=context,
        model_by=method,
        constraints=outcomes,
        decode=(lambda unit: {}) if translation is None else translation.params,
        seed=seed,
        notes=(said,) if left else (),
        say=say,
    )


def _row(trial: FrozenTrial, first: list[str], learned: list[str]) -> Trial:
    """With Optuna's own values: the parameters that are modelled, then those that only some trials have."""
    names = dict.fromkeys([name for name in first if name in trial.params] + list(trial.params))
    record = record_of(trial.number, trial, learned)
    params, result = {name: trial.params[name] for name in names}, (record.value, record.state, record.reason)
    return presentable(
        Trial(trial.number, params, np.empty(0), *result, record.seconds, constraints=record.constraints)
    )


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
        distributions={name: _distribution(study.space, name, value) for name, value in params.items()},
        user_attrs={REASON: row["reason"] or row["state"]} if state == TrialState.FAIL else {},
    )
    if row["started"] is not None:
        trial.datetime_start = datetime.fromisoformat(row["started"])
        if state.is_finished():
            trial.datetime_complete = trial.datetime_start + timedelta(seconds=row["seconds"] or 0.0)
    return trial


def _distribution(space: Space, name: str, value: Any) -> BaseDistribution:
    """What Optuna calls a parameter of sumbo's; wider, if the value is of a time at which the range was."""
    parameter, step = space[name], {}
    if parameter.choices:
        return CategoricalDistribution(parameter.choices)
    if parameter.step is not None:
        with contextlib.suppress(SpaceError):
            space.unit(name, value)  # raises if it is between two steps, or out of the range
            step = {"step": parameter.step}
    kind: type[Any] = IntDistribution if parameter.kind == "int" else FloatDistribution
    return kind(min(parameter.low, value), max(parameter.high, value), log=parameter.log, **step)
