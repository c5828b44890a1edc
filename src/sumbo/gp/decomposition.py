"""Which dimensions form which group."""

import itertools
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from sumbo.errors import DecompositionError

_SHOWN = 8  # dimensions named in an error

_T = TypeVar("_T", int, tuple[int, ...])


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Groups of dimensions that together cover 0, 1, ..., D - 1. They may share dimensions: see `disjoint`.

    Groups keep the order in which they are given; `canonical` sorts them.

    Example:
        >>> Decomposition([(0, 2), (1,)]).groups
        ((0, 2), (1,))
        >>> Decomposition([(0, 1), (1, 2)]).disjoint
        False

    Raises:
        DecompositionError: a group is empty, given twice, or repeats a dimension; a dimension is in no group, negative
            or not an integer.
    """

    groups: tuple[tuple[int, ...], ...]

    def __init__(self, groups: Iterable[Iterable[int]]) -> None:
        object.__setattr__(self, "groups", _validated(groups))

    @classmethod
    def random(cls, D: int, group_size: int, rng: np.random.Generator) -> "Decomposition":
        """Random groups of `group_size` dimensions each; the last is smaller where the size does not divide D."""
        if D < 1 or group_size < 1:
            raise DecompositionError(f"D and group_size must be at least 1; got D={D}, group_size={group_size}")
        order = rng.permutation(D).tolist()
        return cls(sorted(order[a : a + group_size]) for a in range(0, D, group_size)).canonical()

    @classmethod
    def apart(cls, D: int) -> "Decomposition":
        """Every dimension a group of its own."""
        return cls((i,) for i in range(D))

    @classmethod
    def whole(cls, D: int) -> "Decomposition":
        """All dimensions in one group: an ordinary, non-additive model."""
        return cls([range(D)])

    @property
    def dim(self) -> int:
        """D, the number of dimensions."""
        return 1 + max(max(group) for group in self.groups)

    @property
    def disjoint(self) -> bool:
        """Is every dimension in one group only? What splits by group, such as group-wise acquisitions, needs that."""
        return sum(len(group) for group in self.groups) == self.dim

    @property
    def labels(self) -> tuple[int, ...]:
        """The group number of each dimension.

        Raises:
            DecompositionError: groups overlap, so that a dimension has several.
        """
        if not self.disjoint:
            shared = _repeated(i for group in self.groups for i in group)
            raise DecompositionError(
                f"dimension(s) {_listed(shared)} are in several groups, so they have no single label; "
                "use groups, or give disjoint ones"
            )
        label = {i: j for j, group in enumerate(self.groups) for i in group}
        return tuple(label[i] for i in range(len(label)))

    def canonical(self) -> "Decomposition":
        """The same groups, sorted inside and among each other."""
        return Decomposition(sorted(sorted(group) for group in self.groups))

    def __len__(self) -> int:
        return len(self.groups)


def _validated(groups: Iterable[Iterable[int]]) -> tuple[tuple[int, ...], ...]:
    try:
        tuples = tuple(tuple(operator.index(i) for i in group) for group in groups)
    except TypeError as error:
        raise DecompositionError(
            f"groups must be lists of dimension numbers, such as [(0, 2), (1,)]; {error}"
        ) from None
    if not tuples or not all(tuples):
        raise DecompositionError(f"every group needs at least one dimension; got {tuples}")
    for group in tuples:
        if len(set(group)) < len(group):
            twice = _listed(_repeated(group))
            raise DecompositionError(f"group {group} has dimension(s) {twice} more than once; name each once")
    if len({frozenset(group) for group in tuples}) < len(tuples):
        same = _repeated(tuple(sorted(group)) for group in tuples)
        raise DecompositionError(f"group {same[0]} is given more than once: groups may overlap, but not be the same")
    flat = sorted({i for group in tuples for i in group})
    if flat[0] < 0:
        raise DecompositionError(f"dimensions are numbered from 0; got {flat[0]}")
    if len(flat) != flat[-1] + 1:
        present = set(flat)
        missing = itertools.islice((i for i in range(flat[-1]) if i not in present), _SHOWN + 1)
        raise DecompositionError(
            f"dimension(s) {_listed(list(missing))} of 0 to {flat[-1]} are in no group: every dimension needs one"
        )
    return tuples


def _repeated(items: Iterable[_T]) -> list[_T]:
    """What comes more than once, sorted."""
    return sorted({a for a, b in itertools.pairwise(sorted(items)) if a == b})


def _listed(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:_SHOWN]))
    return shown + (", ..." if len(numbers) > _SHOWN else "")
