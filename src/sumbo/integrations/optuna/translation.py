"""Distributions of an Optuna study as a space, and its points in both languages.

| distribution        | parameter of the space                                                                    |
|---------------------|-------------------------------------------------------------------------------------------|
| Float, Int          | Float, Int                                                                                |
| Categorical         | Categorical over the indices, so that a choice may be any object                          |

A parameter that only some trials have gets the condition that explains which: see `_conditions`.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
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

_FEW = 32  # values of a number that decides which parameters there are, at most
_CHOICES = 8  # of a category that decides so, at most, for all to be tried at once
_RECENT = 10  # completed trials; a parameter that none of them has, nobody knows why, is asked for no more


@dataclass(frozen=True, slots=True)
class Translation:
    """A search space in both languages."""

    distributions: dict[str, BaseDistribution]  # only those that sumbo can search
    space: Space
    place: str  # names the space: points recorded under another name are of no use here
    # Of parameters that only some trials have: the one that decides, and its values for which they do; None if unknown.
    conditions: dict[str, tuple[str, list[int]] | None]

    @classmethod
    def of(
        cls,
        distributions: Mapping[str, BaseDistribution],
        trials: Sequence[FrozenTrial] = (),
        *,
        only_boxes: bool = False,
    ) -> "Translation | None":
        """The translation, with the conditions that trials show, if wanted; None if nothing is left to search."""
        known = {name: p for name, d in sorted(distributions.items()) if (p := parameter(d)) is not None}
        found = _conditions(known, distributions, trials)
        recent = [trial.params for trial in trials if trial.state == TrialState.COMPLETE][-_RECENT:]
        gone = {name for name, when in found.items() if when is None and not any(name in asked for asked in recent)}
        known = {name: p for name, p in known.items() if name not in gone}
        if not known:
            return None
        found = {name: None if only_boxes else when for name, when in found.items() if name in known}
        for name, when in found.items():
            if when is not None:
                known[name] = replace(known[name], when=dict([when]))  # type: ignore[type-var]
        kept = {name: distributions[name] for name in known}
        place = digest([[name, distribution_to_json(d)] for name, d in kept.items()])
        return cls(kept, Space(known), place, found)

    def array(self, params: Mapping[str, Any]) -> Array | None:
        """The point as the space's numbers, (D,); None where a value is missing or not in its range now."""
        optional = {name: self.space[name].low for name in self._missing(params)}
        try:
            return self.space.array(optional | self._numbers(params))
        except (ValueError, TypeError):
            return None

    def _missing(self, params: Mapping[str, Any]) -> list[str]:
        """The parameters that it lacks, and nobody knows why."""
        return [name for name, when in self.conditions.items() if when is None and name not in params]

    def _numbers(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Raises a ValueError where a value is not Optuna's either."""
        return {name: d.to_internal_repr(params[name]) for name, d in self.distributions.items() if name in params}

    def units(self, params: Sequence[Mapping[str, Any]]) -> list[Array | None]:
        """Points in the unit cube, (D,) each; None where `array` says so. What one lacks is in the middle."""
        arrays = [self.array(point) for point in params]
        known = [x for x in arrays if x is not None]
        units = iter(self.space.encode(np.array(known)) if known else ())
        found: list[Array | None] = [None if x is None else next(units) for x in arrays]
        for point, unit in zip(params, found, strict=True):
            if unit is not None and self.conditions:
                unit[[self.space.names.index(name) for name in self._missing(point)]] = 0.5
        return found

    def completed(self, params: Mapping[str, Any], unit: Array) -> Array | None:
        """The point with these values and others from the unit cube; None where one is not in its range now."""
        unit = unit.copy()
        try:
            for name, number in self._numbers(params).items():
                unit[self.space.names.index(name)] = self.space.unit(name, number)
        except (ValueError, TypeError):
            return None
        return self.space.to_unit(self.space.from_unit(unit))

    def given(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Values that are fixed, in the space's words, with what they imply; none where they do not go together."""
        try:
            return self.space.given(None, self._numbers(params))
        except (ValueError, TypeError):
            return {}

    def untried(self, trials: Sequence[FrozenTrial]) -> dict[str, Any]:
        """As `given`: a choice that no trial has made, of a category that decides what other parameters there are."""
        for name in sorted({when[0] for when in self.conditions.values() if when is not None}):
            d = self.distributions[name]
            if isinstance(d, CategoricalDistribution) and len(d.choices) <= _CHOICES:
                made = {d.to_internal_repr(trial.params[name]) for trial in trials if name in trial.params}
                for choice in d.choices:
                    if d.to_internal_repr(choice) not in made and (found := self.given({name: choice})):
                        return found
        return {}

    def params(self, unit: Array) -> dict[str, Any]:
        """The point as Optuna's parameters."""
        numbers: dict[str, Any] = dict(self.space.from_unit(unit))
        return {
            name: d.choices[number] if isinstance(d := self.distributions[name], CategoricalDistribution) else number
            for name, number in numbers.items()
        }


def parameter(distribution: BaseDistribution) -> Parameter | None:
    """The sumbo parameter for a distribution; None if it has a single value or is beyond what sumbo can tell apart."""
    if distribution.single():
        return None
    with suppress(SpaceError):
        if isinstance(distribution, CategoricalDistribution):
            return Categorical(list(range(len(distribution.choices))))
        if isinstance(distribution, FloatDistribution | IntDistribution):
            kind: Any = Int if isinstance(distribution, IntDistribution) else Float
            step = None if distribution.log or (kind is Int and distribution.step == 1) else distribution.step
            return kind(distribution.low, distribution.high, log=distribution.log, step=step)
    return None  # also for a kind of distribution that came after this was written


def searched_distributions(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    """The parameters that trials of the study have, as far as one can tell, by name.

    Each has its latest range, where Optuna's own intersection would leave one whose range changed to chance from then
    on. A range that changed between the last two trials that have it may depend on other parameters: it is left out
    until it settles.
    """
    latest: dict[str, BaseDistribution] = {}
    before: dict[str, BaseDistribution] = {}
    for trial in trials:
        for name, distribution in trial.distributions.items():
            before[name] = latest.get(name, distribution)
            latest[name] = distribution
    return {name: d for name, d in sorted(latest.items()) if d == before[name] and not d.single()}


def _conditions(
    parameters: Mapping[str, Parameter], distributions: Mapping[str, BaseDistribution], trials: Sequence[FrozenTrial]
) -> dict[str, tuple[str, list[int]] | None]:
    """Why only some trials have a parameter: the name of one that decides and its values, or None; by name.

    One decides if every trial with the parameter has it, and no value of it is found both with the parameter and
    without. Only completed trials show that there is none: others may have ended before they asked. Of several, a
    category goes before a number, and few values before many. A number decides by the nearest value that was seen.
    """
    asked = [trial.params for trial in trials]
    complete = {i for i, trial in enumerate(trials) if trial.state == TrialState.COMPLETE}
    partial = [name for name in parameters if any(name not in asked[i] for i in complete)]
    having = {name: frozenset(i for i, params in enumerate(asked) if name in params) for name in partial}
    deciders = dict[str, dict[int, int]]()  # their values, by trial
    order = sorted(parameters, key=lambda name: (not parameters[name].nominal, parameters[name].levels, name))
    for name in order if partial else ():
        if parameters[name].kind in ("categorical", "int") and parameters[name].levels <= _FEW:
            d = distributions[name]
            deciders[name] = {i: int(d.to_internal_repr(p[name])) for i, p in enumerate(asked) if name in p}

    def decided(inside: frozenset[int]) -> tuple[str, list[int]] | None:
        for name, values in deciders.items():
            if inside <= values.keys() and (outside := complete & values.keys() - inside):
                yes, no = {values[i] for i in inside}, {values[i] for i in outside}
                if yes.isdisjoint(no):
                    p = parameters[name]
                    among = yes if p.nominal else range(int(p.low), int(p.high) + 1, int(p.step or 1))
                    near = [v for v in among if _distance(v, yes) <= _distance(v, no)]
                    return (name, sorted(near)) if near else None
        return None

    found: dict[frozenset[int], tuple[str, list[int]] | None] = {}
    for name in sorted(partial, key=lambda name: -len(having[name])):  # what decides is there more often
        if having[name] not in found:
            found[having[name]] = decided(having[name])
        if found[having[name]] is None:  # of a trial without it, nobody could tell what it decides
            deciders.pop(name, None)
    return {name: found[having[name]] for name in partial}


def _distance(value: int, others: set[int]) -> int:
    return min(abs(value - other) for other in others)
