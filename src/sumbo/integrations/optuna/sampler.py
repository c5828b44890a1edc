"""The sampler: sumbo's methods behind Optuna's interface."""

import threading
import time
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from sumbo import asking, methods
from sumbo.errors import SettingError, SumboError
from sumbo.gp import AdditiveGP
from sumbo.integrations.optuna import records
from sumbo.integrations.optuna.translation import Translation, common_distributions
from sumbo.kernels import Array
from sumbo.methods import Method, Query, Suggestion
from sumbo.threads import one_thread

_ROUNDS = 20  # at finding a point that no other worker took at the same moment


class SumboSampler(BaseSampler):
    """Suggests parameters of an Optuna study by sumbo's methods.

    The parameters that all trials have in common are modelled together; those that only some trials ask for are drawn
    one by one. Failed and pruned trials are data too: the search keeps away from where evaluations fail. Running
    trials of any thread, process or machine are taken into account, and no two trials get the same point.

    A suggestion depends on the seed, the trial's number and the study so far, and on nothing that this object has in
    memory: a study that is loaded again with the same seed goes on as if it had never stopped.

    Args:
        method: a name such as "auto" or "add-gp-ucb", or a method object with settings.
        seed: an integer for a study that can be repeated exactly.
        budget: how many trials there will be, if known: the last few then look for the best value, not for news.
        independent_sampler: draws parameters that are not modelled. By default they are uniform.

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
        self.seed = asking.checked_seed(seed)
        self.budget = None if budget is None else methods.check_count("budget", budget)
        self._independent = independent_sampler
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._reader: records.Reader | None = None
        self._cache: AdditiveGP | None = None

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

    # --- modelled together -------------------------------------------------------------------------------------

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The parameters to be modelled: those that all completed trials have in common."""
        _refuse_several_objectives(study)
        return common_distributions(study.get_trials(deepcopy=False))

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Values for all parameters of the search space."""
        _refuse_several_objectives(study)
        translation = Translation.of(search_space, self.method)
        if translation is None:
            return {}
        # One at a time: the next thread shall see what this one suggests.
        with self._lock, one_thread():
            if self._reader is None or self._reader.translation.signature != translation.signature:
                self._reader, self._cache = records.Reader(translation), None
            unit = self._suggested(study, trial, self._reader)
        return {} if unit is None else translation.params(unit)

    def _suggested(self, study: Study, trial: FrozenTrial, reader: records.Reader) -> Array | None:
        began = time.monotonic()
        space, signature = reader.translation.space, reader.translation.signature
        trials = study.get_trials(deepcopy=False)
        history = reader.history(trials, trial.number, _sign(study))
        try:
            self.method.check(space)
        except SumboError:
            if any(other.state == TrialState.COMPLETE for other in trials):
                raise
            return None  # not all parameters are known as yet
        source, state = records.latest_state(reader.stateful(trials), trial.number, signature, len(history.y))
        query, answer = self._asked(trial.number, reader.translation, history, state, self.budget)
        if answer.state != state:
            kept = {"signature": signature, "told": len(history.y), "state": answer.state}
            records.write(study._storage, trial, records.STATE, kept)
        seen = reader.taken(trials, trial.number)
        # What the suggestion depends on: with it, `sumbo replay` can make it again.
        basis: dict[str, Any] = {
            "told": records.ranges(history.told),
            "running": records.ranges(history.running),
            "state": source,
            "budget": self.budget,
            "moves": history.moves,
        }
        return self._claimed(study, trial, reader, answer, seen, query.rng, began, basis)

    def _asked(
        self,
        number: int,
        translation: Translation,
        history: records.History,
        state: dict[str, Any],
        budget: int | None,
    ) -> tuple[Query, Suggestion]:
        """What the method says. A function of these and of nothing else, but for its speed."""
        query = query_of(number, translation, history, state, self.seed, budget=budget, cache=self._cache)
        answer = self.method.suggest(query)
        self._cache = answer.cache if answer.cache is not None else self._cache
        return query, answer

    def _claimed(
        self,
        study: Study,
        trial: FrozenTrial,
        reader: records.Reader,
        answer: Suggestion,
        seen: set[bytes],
        rng: np.random.Generator,
        began: float,
        basis: dict[str, Any],
    ) -> Array:
        """A point that is this trial's alone.

        It is written where all workers see it, and then looked for among theirs: of two that write the same point at
        the same moment, at least one finds the other's and moves on.
        """
        translation, space = reader.translation, reader.translation.space
        fixed = trial.system_attrs.get("fixed_params", {})
        earlier: list[list[float]] = []
        for _ in range(_ROUNDS):
            unit = new_point(translation, answer.point, seen, rng, fixed)
            record: dict[str, Any] = {"signature": translation.place, "x": translation.numbers(unit)}
            seconds = round(time.monotonic() - began, 4)  # for whoever asks where the time went
            record |= {"by": translation.signature, "note": answer.note, "seconds": seconds, "basis": basis}
            record["earlier"] = list(earlier)
            records.write(study._storage, trial, records.POINT, record)
            seen = reader.taken(study.get_trials(deepcopy=False), trial.number)
            if unit.tobytes() not in seen or (space.size is not None and len(seen) >= space.size):
                break
            earlier.append(record["x"])
        return unit

    # --- the others --------------------------------------------------------------------------------------------

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A value for a parameter that is not modelled."""
        _refuse_several_objectives(study)
        if self._independent is not None:
            return self._independent.sample_independent(study, trial, param_name, param_distribution)
        rng = asking.trial_rng(self.seed, trial.number, zlib.crc32(param_name.encode()))
        uniform = RandomSampler(seed=int(rng.integers(2**32)))
        return uniform.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Let the independent sampler prepare."""
        if self._independent is not None:
            self._independent.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Let the independent sampler take note."""
        if self._independent is not None:
            self._independent.after_trial(study, trial, state, values)


def query_of(
    number: int,
    translation: Translation,
    history: records.History,
    state: dict[str, Any],
    seed: int,
    *,
    budget: int | None = None,
    cache: AdditiveGP | None = None,
) -> Query:
    """The study as a method sees it."""
    return Query(
        space=translation.space,
        X=history.X,
        y=history.y,
        pending=history.pending,
        notes=history.notes,
        pending_notes=history.pending_notes,
        number=number,
        rng=asking.trial_rng(seed, number),
        study_rng=asking.study_rng(seed),
        state=state,
        budget=budget,
        cache=cache,
    )


def new_point(
    translation: Translation, point: Array, seen: set[bytes], rng: np.random.Generator, fixed: dict[str, Any]
) -> Array:
    """The suggestion as a point that nobody had before; an enqueued trial has some of its values already."""
    _, unit = asking.unseen(translation.space, point, seen, rng)
    held = translation.unit(translation.params(unit) | fixed) if fixed else None
    return unit if held is None else held


def _sign(study: Study) -> float:
    return 1.0 if study.direction == StudyDirection.MAXIMIZE else -1.0


def _refuse_several_objectives(study: Study) -> None:
    if len(study.directions) > 1:
        raise SettingError(
            f"SumboSampler optimises one objective, and this study has {len(study.directions)}. Combine them into one "
            "value, or use a sampler for several, such as optuna.samplers.NSGAIISampler"
        )
