"""Optuna studies with sumbo's suggestions: `optuna.create_study(sampler=SumboSampler(seed=0))`.

Also whole studies: Optuna's as views, whatever sampler made them, and those of sumbo's as Optuna's.
"""

import contextlib
import sqlite3
import threading
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
from sumbo.errors import SettingError, StoreError, SumboError
from sumbo.insights.analysis import StudyAnalysis, presentable
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
from sumbo.methods import Deadline, Method, randomness
from sumbo.space import Parameter
from sumbo.study.files.toml import StudyFile
from sumbo.study.optimizer import Optimizer, Trial
from sumbo.study.run import warn_user
from sumbo.study.storage import check_url

__all__ = ["SumboSampler"]

_STATES = {"done": TrialState.COMPLETE, "running": TrialState.RUNNING, "open": TrialState.RUNNING}  # others failed


class SumboSampler(BaseSampler):
    """Suggests parameters of an Optuna study by sumbo's methods.

    The parameters that all trials have in common are modelled together; those that only some trials ask for are drawn
    one by one, by Optuna's TPE, of which a warning is given. Failed and pruned trials are data too: the search keeps
    away from where evaluations fail.

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
        independent_sampler: draws parameters that are not modelled, instead of TPE.

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
        independent_sampler: BaseSampler | None = None,
    ) -> None:
        if independent_sampler is not None and not isinstance(independent_sampler, BaseSampler):
            raise SettingError(f"independent_sampler must be an Optuna sampler or None; got {independent_sampler!r}")
        self.method = methods.resolve(method)
        self.seed = randomness.checked_seed(seed)
        self.budget = None if budget is None else methods.check_count("budget", budget)
        self._independent = independent_sampler
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._last: tuple[Any, Optimizer, StudyLedger] | None = None
        self._spare: dict[Any, dict[str, Any]] = {}  # attributes of studies that take none
        self._warned: set[str] = set()  # studies with parameters that are not modelled

    def __getstate__(self) -> dict[str, Any]:
        """The settings alone: Optuna users pickle their samplers, and locks and caches stay at home."""
        return {name: self.__dict__[name] for name in ("method", "seed", "budget", "_independent")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def reseed_rng(self) -> None:
        """Reseed the independent sampler. Here every trial has randomness of its own, so no two workers share any."""
        if self._independent is not None:
            self._independent.reseed_rng()

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The parameters to be modelled: those that all completed trials have in common."""
        _check_objectives(study)
        return common_distributions(study.get_trials(deepcopy=False))

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Values for all parameters of the search space."""
        translation = Translation.of(search_space)
        with self._lock:  # one at a time: the next thread shall see what this one suggests
            return {} if translation is None else self._suggested(study, trial, translation)

    def _suggested(self, study: Study, trial: FrozenTrial, translation: Translation) -> dict[str, Any]:
        trials = study.get_trials(deepcopy=False)
        try:
            self.method.check(translation.space)
        except SumboError:
            if any(other.state == TrialState.COMPLETE for other in trials):
                raise
            return {}  # not all parameters are known as yet
        # Those of the last suggestion, if it was for this study in this space; else new ones, which takes longer.
        key, direction = (study.study_name, translation.place), direction_of(study)
        if self._last is None or self._last[0] != key or not self._last[2].continued_by(trials):
            ledger = StudyLedger(translation, self.method, direction)
            self._last = key, Optimizer._on(ledger, self.method, direction, self.seed, self.budget), ledger
        _, optimizer, ledger = self._last
        spare = self._spare.setdefault((study.study_name, trials[0].number), {})
        ledger.read(trials, Attributes(study, spare), trial.number)
        context, answer, _ = optimizer._proposed(Deadline())
        fixed = trial.system_attrs.get("fixed_params", {})
        unit = ledger.claimed(answer.point, context.rng, fixed)
        if answer.candidate_metadata is not None and not fixed:  # else it is not the point that the note is about
            ledger.keep_note(unit, answer.candidate_metadata)
        if answer.state != context.state:
            ledger.keep_state(answer.state)
        return translation.params(unit)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A value for a parameter that is not modelled."""
        _check_objectives(study)
        if self._independent is not None:
            return self._independent.sample_independent(study, trial, param_name, param_distribution)
        self._warn_of_conditions(study, param_name)
        # A sampler for this draw alone: what it draws depends on the study and the trial, on no draw before.
        rng = randomness.trial_rng(self.seed, trial.number, zlib.crc32(param_name.encode()))
        # Ranges that sumbo cannot search, beyond a double's digits, are beyond TPE as well.
        searched = Translation.of({param_name: param_distribution}) is not None
        kind = optuna.samplers.TPESampler if searched else optuna.samplers.RandomSampler
        sampler = kind(seed=int(rng.integers(2**32)))
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def _warn_of_conditions(self, study: Study, name: str) -> None:
        """Say once of a study that it has parameters which are not modelled, nor will be."""
        if study.study_name in self._warned:
            return
        complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        # One that all have is modelled as well, but this trial began when there was none, or had another range.
        if all(name in other.distributions for other in complete):
            return
        self._warned.add(study.study_name)
        warn_user(
            f"only some trials ask for {name!r}, and sumbo models parameters that all trials have in common: Optuna's "
            "TPE draws this one and others like it. Ask for the same parameters in every trial if you can, or choose "
            "with independent_sampler=... what draws them",
            "optuna",
        )

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Let the independent sampler prepare."""
        if self._independent is not None:
            self._independent.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Let the independent sampler take note."""
        if self._independent is not None:
            self._independent.after_trial(study, trial, state, values)


def _check_objectives(
    study: Study,
    what: str = "SumboSampler optimises",
    advice: str = "combine them into one value, or use a sampler for several, such as optuna.samplers.NSGAIISampler",
) -> None:
    if len(study.directions) > 1:
        raise SettingError(f"{what} one objective, and this study has {len(study.directions)}; {advice}")


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
    common = common_distributions(trials)
    left = len({name for trial in trials for name in trial.distributions} - set(common))
    said = f"{left} parameters are left out of the model: not all trials have them, or they never change."
    translation, context = Translation.of(common), None
    if translation is not None:
        ledger = StudyLedger(translation, method, direction)
        ledger.read(trials, Attributes(study, {}))
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
