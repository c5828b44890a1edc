"""Optuna studies with sumbo's suggestions: `optuna.create_study(sampler=SumboSampler(seed=0))`."""

import inspect
import threading
import warnings
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

try:
    import optuna
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler
    from optuna.study import Study
    from optuna.trial import FrozenTrial, TrialState
except ImportError as error:
    from sumbo.errors import MissingPackageError

    raise MissingPackageError(
        f"sumbo.integrations.optuna needs Optuna ({error}); install it with: pip install 'sumbo[optuna]'"
    ) from None

from sumbo import methods
from sumbo._typing import Array
from sumbo.errors import SettingError, SumboError
from sumbo.integrations.optuna.ledger import Attributes, StudyLedger, Translation, common_distributions, direction_of
from sumbo.methods import Deadline, Method, randomness
from sumbo.study.optimizer import Optimizer

__all__ = ["SumboSampler"]

_ROUNDS = 20  # at finding a point that no other worker took at the same moment


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
        _refuse_several_objectives(study)
        return common_distributions(study.get_trials(deepcopy=False))

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Values for all parameters of the search space."""
        _refuse_several_objectives(study)
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
        attributes = Attributes(study, self._spare.setdefault((study.study_name, trials[0].number), {}))
        ledger.read(trials, attributes.refresh(), trial.number)
        proposal = optimizer._proposed(Deadline())
        answer, fixed = proposal.suggestion, trial.system_attrs.get("fixed_params", {})
        unit = _claimed(ledger, answer.point, proposal.context.rng, fixed)
        if answer.candidate_metadata is not None and not fixed:  # else it is not the point that the note is about
            ledger.keep_note(unit, answer.candidate_metadata)
        if answer.state != proposal.context.state:
            ledger.keep_state(answer.state)
        return translation.params(unit)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A value for a parameter that is not modelled."""
        _refuse_several_objectives(study)
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
        warnings.warn(
            f"only some trials ask for {name!r}, and sumbo models parameters that all trials have in common: Optuna's "
            "TPE draws this one and others like it. Ask for the same parameters in every trial if you can, or choose "
            "with independent_sampler=... what draws them",
            RuntimeWarning,
            stacklevel=_level_of_objective(),
        )

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Let the independent sampler prepare."""
        if self._independent is not None:
            self._independent.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Let the independent sampler take note."""
        if self._independent is not None:
            self._independent.after_trial(study, trial, state, values)


def _level_of_objective() -> int:
    """How far above the caller the code is that calls suggest_float or the like: Optuna wraps these in part."""
    modules = [str(frame.frame.f_globals.get("__name__")) for frame in inspect.stack(0)]
    return next((i for i, name in enumerate(modules) if name.split(".")[0] not in ("sumbo", "optuna")), 1)


def _claimed(ledger: StudyLedger, point: Array, rng: np.random.Generator, fixed: dict[str, Any]) -> Array:
    """A point that is this trial's alone, near the one suggested; an enqueued trial has some of its values already.

    It is written where all workers see it, and then looked for among theirs: of two that write the same point at the
    same moment, at least one finds the other's and moves on.
    """
    translation, taken = ledger.translation, ledger.taken_by_others()
    for _ in range(_ROUNDS):
        _, unit = randomness.nearest_untried(translation.space, point, taken, rng)
        held = translation.units([translation.params(unit) | fixed])[0] if fixed else None
        unit = unit if held is None else held
        ledger.keep_point(unit)
        taken = ledger.taken_by_others()
        used_up = translation.space.size is not None and len(taken) >= translation.space.size
        if unit.tobytes() not in taken or held is not None or used_up:
            break
    return unit


def _refuse_several_objectives(study: Study) -> None:
    if len(study.directions) > 1:
        raise SettingError(
            f"SumboSampler optimises one objective, and this study has {len(study.directions)}. Combine them into one "
            "value, or use a sampler for several, such as optuna.samplers.NSGAIISampler"
        )
