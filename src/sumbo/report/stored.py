"""Views of studies that are stored: sumbo's own, and anybody's made with Optuna."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from sumbo.errors import SettingError
from sumbo.integrations.optuna import SumboSampler, records
from sumbo.integrations.optuna.sampler import query_of
from sumbo.integrations.optuna.translation import Translation, common_distributions
from sumbo.methods import Method, resolve
from sumbo.regret import Direction
from sumbo.studies.method import method_of
from sumbo.studies.store import REASON, Store, distributions_of
from sumbo.views.view import Row, State, View

_STATES: dict[TrialState, State] = {
    TrialState.COMPLETE: "done",
    TrialState.FAIL: "failed",
    TrialState.PRUNED: "failed",
    TrialState.RUNNING: "running",
    TrialState.WAITING: "waiting",
}


def from_optuna(study: Study, *, name: str | None = None, say: Callable[[str], None] = lambda text: None) -> View:
    """A view of an Optuna study, whatever sampler made it: for `write`, and for the figures of `sumbo.plot`.

    Args:
        study: with one objective.
        name: a heading other than the study's name.
        say: told what is being done when it takes long.

    Raises:
        SettingError: it is no Optuna study, or has several objectives.
    """
    if not isinstance(study, Study):
        raise SettingError(f"expected an Optuna study; got {type(study).__name__}. Load one with optuna.load_study")
    if len(study.directions) > 1:
        raise SettingError(
            f"a report is about one objective, and this study has {len(study.directions)}; make one for each"
        )
    sampler, trials = study.sampler, study.get_trials(deepcopy=False)
    direction: Direction = "maximize" if study.direction == StudyDirection.MAXIMIZE else "minimize"
    ours = isinstance(sampler, SumboSampler)
    by = sampler.method if isinstance(sampler, SumboSampler) else resolve("auto")
    common = common_distributions(trials)
    asked = {n for trial in trials for n in trial.distributions}
    left = len(asked - set(common))
    notes = (
        (f"{left} parameters are left out of the model: not all trials have them, or they never change.",)
        if left
        else ()
    )
    # A study that is merely loaded has a sampler that never sampled; what sumbo left beside the trials tells.
    shown = by.name if ours or _is_ours(trials) else "of another sampler"
    heading = study.study_name if name is None else name
    seed = sampler.seed if isinstance(sampler, SumboSampler) else 0
    return _view(trials, common, heading, direction, by, shown, seed, notes, say)


def from_store(store: Store, *, say: Callable[[str], None] = lambda text: None) -> View:
    """A view of one of sumbo's own studies."""
    study = store.study
    method, distributions = method_of(study), distributions_of(study.space)
    notes = tuple(store.notes)
    return _view(store.trials(), distributions, study.name, study.goal, method, method.name, store.seed, notes, say)


def _view(
    trials: Sequence[FrozenTrial],
    distributions: Mapping[str, BaseDistribution],
    name: str,
    direction: Direction,
    method: Method,
    shown: str,
    seed: int,
    notes: tuple[str, ...],
    say: Callable[[str], None],
) -> View:
    translation = Translation.of(distributions, method)
    rows = tuple(_row(trial, distributions, translation) for trial in trials)
    if translation is None:
        return View(name, direction, shown, rows, None, None, method, lambda unit: {}, seed, notes, say)
    history = records.Reader(translation).history(trials, -1, 1.0 if direction == "maximize" else -1.0)
    # With what the method left beside the latest trial.
    state = records.last_state(trials, -1, translation.signature, len(history.y))
    query = query_of(len(trials), translation, history, state, seed)
    return View(name, direction, shown, rows, translation.space, query, method, translation.params, seed, notes, say)


def _row(trial: FrozenTrial, distributions: Mapping[str, BaseDistribution], translation: Translation | None) -> Row:
    value, state = trial.value if trial.state == TrialState.COMPLETE else None, _STATES[trial.state]
    reason = trial.user_attrs.get(REASON)
    if value is not None and not math.isfinite(value):
        value, state, reason = None, "failed", f"value was {value}"
    elif value is not None and any(constraint > 0.0 for constraint in trial.constraints.values()):
        value, state, reason = None, "failed", "breaks a constraint"
    elif trial.state == TrialState.PRUNED:
        reason = reason or "pruned"
    record = None if translation is None else records.read(trial, records.POINT, translation.place)
    thinking = None if record is None else record.get("seconds")
    return Row(
        trial.number,
        _ordered(trial.params, distributions),
        value,
        state,
        None if reason is None else str(reason),
        _seconds(trial, thinking),
        thinking,
    )


def _ordered(params: Mapping[str, Any], distributions: Mapping[str, BaseDistribution]) -> dict[str, Any]:
    """Parameters in the study's order, then those that only some trials have."""
    names = [name for name in distributions if name in params]
    return {name: params[name] for name in [*names, *(n for n in params if n not in distributions)]}


def _seconds(trial: FrozenTrial, thinking: float | None) -> float | None:
    """In the objective: a trial starts before its parameters are chosen."""
    if trial.datetime_complete is None or trial.datetime_start is None:
        return None
    return max((trial.datetime_complete - trial.datetime_start).total_seconds() - (thinking or 0.0), 0.0)


def _is_ours(trials: Sequence[FrozenTrial]) -> bool:
    return any(f"{records.STATE}:0" in trial.system_attrs for trial in trials)
