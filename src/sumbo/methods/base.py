"""What a method is asked, and what it answers.

A method is a frozen dataclass of settings. It keeps nothing: what it must remember from one suggestion to the next is
in `state`, which is JSON; what merely saves time is in `cache`, and may be lost.
"""

import numbers
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sumbo._typing import Array
from sumbo.acquisition.functions import Satisfied
from sumbo.errors import SettingError
from sumbo.gp.additive import AdditiveGP
from sumbo.space import Space
from sumbo.space.region import Region
from sumbo.structure.group_constraints import GroupConstraints

State = dict[str, Any]

_FIRST_ROWS = 16  # points for which something is computed before anyone looks at the clock


def check_count(name: str, value: Any, least: int = 1, otherwise: str = "") -> int:
    """The value as an int; a SettingError unless it is a whole number from `least` up, or what stands `otherwise`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise SettingError(f"{name} must be a whole number from {least} up{otherwise}; got {value!r}")
    return int(value)


def check_choice(name: str, value: Any, allowed: Collection[str]) -> None:
    """Raise a SettingError unless the value is one of those allowed."""
    if value not in allowed:
        raise SettingError(f"{name} must be one of {', '.join(allowed)}; got {value!r}")


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment by which an answer is wanted; None is never."""

    moment: float | None = None

    @classmethod
    def after(cls, seconds: float | None) -> "Deadline":
        return cls(None if seconds is None else time.monotonic() + seconds)

    @property
    def left(self) -> float:
        """Seconds left, infinite where there is no deadline."""
        return float("inf") if self.moment is None else self.moment - time.monotonic()

    def passed(self) -> bool:
        return self.left <= 0.0

    def sooner(self, seconds: float) -> "Deadline":
        """A moment before, to have that time left for something else."""
        return self if self.moment is None else Deadline(self.moment - seconds)

    def stops(self) -> Callable[[], bool]:
        """To be called between steps: stop now? Yes if another two like the last would be too late."""
        before = time.monotonic()

        def stop() -> bool:
            nonlocal before
            took, before = time.monotonic() - before, time.monotonic()
            return self.left < 2.0 * took

        return stop

    def evaluated(self, function: Callable[[Array], Array], Z: Array, share: float) -> Array:
        """function(Z), (.., m), of as many of the first rows as that share of the time left allows, and of a few."""
        if self.moment is None:
            return function(Z)
        until, size, found = (1.0 - share) * self.left, _FIRST_ROWS, []
        while len(Z):
            began = time.monotonic()
            found.append(function(Z[:size]))
            Z = Z[size:]
            size *= 2
            if self.left - 2.0 * (time.monotonic() - began) < until:
                break
        return np.concatenate(found, axis=-1)


@dataclass(frozen=True, slots=True)
class SuggestContext:
    """Everything that a suggestion may depend on. Points are in the unit cube; larger values are better.

    Attributes:
        space: what is searched.
        X, y: points told (n, D) and their values (n,), in the order in which they were told; NaN where one failed.
        pending: points still running, (p, D).
        candidate_metadata, pending_metadata: what the method wrote beside each suggestion, told or pending; None for
            points of the user's own.
        number: how many suggestions were made before this one.
        rng: randomness of this suggestion alone.
        study_rng: the same for every suggestion of the study.
        state: what the method left at its last suggestion; empty at first.
        cache: a model the method made before; it may be of use or not.
        deadline: when the answer is wanted.
        budget: how many evaluations there will be, where that is known.
        region: where in the cube the suggestion may lie, by known constraints and fixed values; by default anywhere.
        constraints: what was told beside each value, (n, K), feasible up to 0; NaN where the evaluation failed. None
            where the study has no such constraints.
        std: known standard deviations of the values (n,), 0 where none was told; None where that is so for all.
    """

    space: Space
    X: Array
    y: Array
    pending: Array
    candidate_metadata: Sequence[Any]
    pending_metadata: Sequence[Any]
    number: int
    rng: np.random.Generator
    study_rng: np.random.Generator
    state: State = field(default_factory=dict)
    cache: AdditiveGP | None = None
    deadline: Deadline = field(default_factory=Deadline)
    budget: int | None = None
    region: Region = None  # type: ignore[assignment]  # set below
    constraints: Array | None = None
    std: Array | None = None

    def __post_init__(self) -> None:
        if self.region is None:
            object.__setattr__(self, "region", Region(self.space))

    @property
    def D(self) -> int:
        return self.space.dim

    @property
    def categories(self) -> NDArray[np.int64]:
        """Number of categories of each nominal dimension, 0 for numbers."""
        return np.where(self.space.nominal, self.space.levels, 0)

    @property
    def taken(self) -> int:
        """How many points are told or running."""
        return len(self.X) + len(self.pending)

    @property
    def has_values(self) -> bool:
        """Has any evaluation succeeded, and told all constraints?"""
        told = np.isfinite(self.y)
        return bool((told if self.constraints is None else told & np.isfinite(self.constraints).all(axis=1)).any())

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Which points kept all constraints told, (n,); failed ones did not."""
        kept = np.isfinite(self.y)
        return kept if self.constraints is None else kept & (self.constraints <= 0.0).all(axis=1)

    def uniform(self, m: int) -> Array:
        """Random points of the region, (m, D); a quarter of them where functions of the user's say what is in it."""
        return self.region.sample(max(m // 4, 1) if self.region.costly else m, self.rng)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """The next point (D,), with what the method wants to find again."""

    point: Array
    state: State = field(default_factory=dict)
    cache: AdditiveGP | None = None
    candidate_metadata: Any = None


class Method(ABC):
    """Turns what is known into the next point. Subclasses are frozen dataclasses and are not subclassed further."""

    name: ClassVar[str]
    models_constraints: ClassVar[bool] = False  # does it learn which points keep to constraints told with values?
    only_boxes: ClassVar[bool] = False  # must every point of the cube be allowed, and every parameter its own to set?

    def check(self, space: Space) -> None:
        """Raise a SettingError or DecompositionError if the settings do not fit the space."""
        self.group_constraints(space)

    def group_constraints(self, space: Space) -> GroupConstraints:
        """What the user has told the method about groups, checked; by default nothing."""
        return GroupConstraints.of(space)

    @abstractmethod
    def suggest(self, context: SuggestContext) -> Suggestion:
        """The next point to evaluate."""

    def model(self, context: SuggestContext) -> AdditiveGP | None:
        """The model of the data as they are now, where the method has one."""
        return None

    def constraint_models(self, context: SuggestContext) -> list[Satisfied]:
        """What is known of each constraint that is told with the values, where the method learns it."""
        return []
