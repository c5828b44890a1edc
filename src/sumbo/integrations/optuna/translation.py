"""Optuna's distributions as a sumbo space, and values of the one as points of the other.

FloatDistribution              Float
FloatDistribution with step    Int, which counts the steps from low
IntDistribution                Int, which counts the steps from low; with log, the values themselves
CategoricalDistribution        Categorical over the indices, so that a choice may be any object
"""

import hashlib
import json
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

from sumbo.errors import SpaceError
from sumbo.kernels import Array
from sumbo.methods import Method, method_to_dict
from sumbo.space import Categorical, Float, Int, Parameter, Space

_OFF_GRID = 1e-6  # steps; rounding is far below, and a value of another grid far above


@dataclass(frozen=True, slots=True)
class Translation:
    """A search space in both languages.

    Attributes:
        distributions: what Optuna calls it; only those that sumbo can search.
        space: the same for sumbo.
        place: names the space. Points recorded under another name are of no use here.
        signature: names the space and the method. So it is with what a method left behind.
    """

    distributions: dict[str, BaseDistribution]
    space: Space
    place: str
    signature: str

    @classmethod
    def of(cls, distributions: Mapping[str, BaseDistribution], method: Method) -> "Translation | None":
        """The translation; None if nothing is left to search."""
        parameters = {name: parameter(d) for name, d in sorted(distributions.items())}
        known = {name: p for name, p in parameters.items() if p is not None}
        if not known:
            return None
        kept = {name: distributions[name] for name in known}
        place = _digest([[name, distribution_to_json(d)] for name, d in kept.items()])
        return cls(kept, Space(known), place, _digest([place, method_to_dict(method)]))

    def unit(self, params: Mapping[str, Any]) -> Array | None:
        """The point of the unit cube, (D,); None where a value is missing or not in the present range."""
        try:
            return self.space.to_unit({name: _to_number(d, params[name]) for name, d in self.distributions.items()})
        except (KeyError, ValueError, TypeError):
            return None

    def from_numbers(self, x: Any) -> Array | None:
        """The point of the unit cube for numbers that `numbers` returned; None if they are none of this space."""
        try:
            return self.space.encode(self.space.array(self.space.from_array(x)))
        except SpaceError:
            return None

    def numbers(self, unit: Array) -> list[float]:
        """The point as numbers in the order of the space; shorter to keep than a dict."""
        return self.space.array(self.space.from_unit(unit)).tolist()

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


def common_distributions(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    """The parameters that every trial of the study will have, as far as one can tell, by name.

    Those are the parameters of all completed trials, each with its latest range: a study that goes on with another
    range is searched in that one, where Optuna's own intersection would leave the parameter to chance from then on. A
    range that changed between the last two trials may depend on other parameters: it is left out until it settles.

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
    last, before = complete[-1].distributions, complete[-2 if len(complete) > 1 else -1].distributions
    return {name: last[name] for name in sorted(names) if last[name] == before[name] and not last[name].single()}


def _digest(data: Any) -> str:
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()[:16]


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
