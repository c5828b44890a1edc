"""Optuna's distributions as a sumbo space, and values of the one as points of the other.

FloatDistribution              Float
FloatDistribution with step    Int, which counts the steps from low
IntDistribution                Int, which counts the steps from low; with log, the values themselves
CategoricalDistribution        Categorical over the indices, so that a choice may be any object
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
)
from optuna.trial import FrozenTrial, TrialState

from sumbo._typing import Array
from sumbo.errors import SpaceError
from sumbo.space import Categorical, Float, Int, Parameter, Space
from sumbo.study.ledger import digest

_OFF_GRID = 1e-6  # steps; rounding is far below, and a value of another grid far above


@dataclass(frozen=True, slots=True)
class Translation:
    """A search space in both languages.

    Attributes:
        distributions: what Optuna calls it; only those that sumbo can search.
        space: the same for sumbo.
        place: names the space. Points recorded under another name are of no use here.
    """

    distributions: dict[str, BaseDistribution]
    space: Space
    place: str

    @classmethod
    def of(cls, distributions: Mapping[str, BaseDistribution]) -> "Translation | None":
        """The translation; None if nothing is left to search."""
        parameters = {name: parameter(d) for name, d in sorted(distributions.items())}
        known = {name: p for name, p in parameters.items() if p is not None}
        if not known:
            return None
        kept = {name: distributions[name] for name in known}
        return cls(kept, Space(known), digest([[name, distribution_to_json(d)] for name, d in kept.items()]))

    def point(self, params: Mapping[str, Any]) -> tuple[dict[str, int | float], Array] | None:
        """The point as sumbo's params and in the unit cube; None where a value is missing or not in its range now."""
        try:
            numbers = {name: _to_number(d, params[name]) for name, d in self.distributions.items()}
            return numbers, self.space.to_unit(numbers)
        except (KeyError, ValueError, TypeError):
            return None

    def filled(self, params: Mapping[str, Any], number: int) -> dict[str, Any]:
        """The parameters of a trial that ended before it asked for all of them, the others at random.

        What came of it does not depend on those, so any values are right; these are the same at every look.
        """
        if params.keys().isdisjoint(self.distributions):
            return dict(params)  # it says nothing of any place in the space
        return self.params(np.random.default_rng(number).random(self.space.dim)) | dict(params)

    def unit(self, params: Mapping[str, Any]) -> Array | None:
        """The point in the unit cube alone, (D,)."""
        point = self.point(params)
        return None if point is None else point[1]

    def params(self, unit: Array) -> dict[str, Any]:
        """The point as Optuna's parameters."""
        numbers = self.space.from_unit(unit)
        return {name: _to_value(d, numbers[name]) for name, d in self.distributions.items()}


def parameter(distribution: BaseDistribution) -> Parameter | None:
    """The sumbo parameter for a distribution; None if it has a single value or is beyond what sumbo can tell apart."""
    if distribution.single():
        return None
    try:
        if isinstance(distribution, CategoricalDistribution):
            return Categorical(list(range(len(distribution.choices))))
        if isinstance(distribution, FloatDistribution) and distribution.step is None:
            return Float(distribution.low, distribution.high, log=distribution.log)
        if isinstance(distribution, IntDistribution) and distribution.log:
            return Int(distribution.low, distribution.high, log=True)
        if isinstance(distribution, IntDistribution | FloatDistribution) and distribution.step is not None:
            return Int(0, round((distribution.high - distribution.low) / distribution.step))
    except SpaceError:
        return None
    return None  # a kind of distribution that came after this was written


def distribution(parameter: Parameter, value: Any) -> BaseDistribution:
    """What Optuna calls a parameter of sumbo's; wider, if the value is of a time at which the range was."""
    if isinstance(parameter, Categorical):
        return CategoricalDistribution(parameter.choices)
    kind = IntDistribution if isinstance(parameter, Int) else FloatDistribution
    return kind(min(parameter.low, value), max(parameter.high, value), log=parameter.log)


def common_distributions(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    """The parameters that every trial of the study will have, as far as one can tell, by name.

    Those are the parameters of all completed trials, each with its latest range: a study that goes on with another
    range is searched in that one, where Optuna's own intersection would leave the parameter to chance from then on. A
    range that changed between the last two trials may depend on other parameters: it is left out until it settles.
    So is a category that decides which other parameters a trial has: how good it is depends on them, and they are not
    modelled.

    Before the first trial completes, whatever running or unsuccessful trials asked for serves: a parameter too many
    does no harm, and the first trials of many workers are spread evenly.
    """
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    if not complete:
        asked = {name: d for trial in trials for name, d in trial.distributions.items()}
        return {name: d for name, d in sorted(asked.items()) if not d.single()}
    names = set(complete[-1].distributions)
    for trial in complete:
        names.intersection_update(trial.distributions)
    names -= _choices(complete, names)
    last, before = complete[-1].distributions, complete[-2 if len(complete) > 1 else -1].distributions
    return {name: last[name] for name in sorted(names) if last[name] == before[name] and not last[name].single()}


def _choices(complete: Sequence[FrozenTrial], common: set[str]) -> set[str]:
    """The categories among the common parameters that some other parameter depends on, as far as one can tell."""
    others = {name for trial in complete for name in trial.distributions} - common
    found = set()
    for name in common if others else ():
        distribution = complete[-1].distributions[name]
        if isinstance(distribution, CategoricalDistribution):
            asked: dict[str, list[Any]] = {}  # for each choice, what its trials asked for
            for trial in complete:
                asked.setdefault(repr(trial.params[name]), []).append(trial.distributions)
            if any(all(len({x in d for d in every}) == 1 for every in asked.values()) for x in others):
                found.add(name)
    return found


def _to_number(distribution: BaseDistribution, value: Any) -> int | float:
    """The value of the sumbo parameter. Raises a ValueError where there is none."""
    number = distribution.to_internal_repr(value)
    if isinstance(distribution, CategoricalDistribution):
        return int(number)
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    if distribution.log or distribution.step is None:
        return number
    steps = (number - distribution.low) / distribution.step
    if abs(steps - round(steps)) > _OFF_GRID:
        raise ValueError(f"{value!r} is between two steps")
    return round(steps)


def _to_value(distribution: BaseDistribution, number: Any) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[number]
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    if distribution.log or distribution.step is None:
        return number
    # Not beyond high by a rounding.
    return type(distribution.low)(np.minimum(distribution.low + number * distribution.step, distribution.high))
