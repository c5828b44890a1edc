"""What is known about groups: what the user wrote, by parameter name, and the rules for a search that follow from it.

Parameters that are to be together form a unit, through others too: a with b and b with c make one unit of three. What
contradicts is refused by name, before the first evaluation.
"""

import itertools
import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sumbo.errors import DecompositionError
from sumbo.gp.decomposition import Decomposition
from sumbo.space import Space
from sumbo.space.parameters import hinted, listed, show

Named = tuple[tuple[str | int, ...], ...]
Group = tuple[int, ...]
Wishes = Iterable[Sequence[int]]


def freeze(method: Any) -> None:
    """Turn the fields groups, together and apart of a frozen dataclass into tuples, whatever lists they came as."""
    for field in ("groups", "together", "apart"):
        value = getattr(method, field)
        if field != "groups" or value is not None:
            object.__setattr__(method, field, _as_named(field, value))
    if method.groups == ():
        raise DecompositionError("groups: expected at least one group; leave it out to have groups learned")


def _as_named(field: str, value: Any) -> Named:
    def listing(value: Any, hint: str = "") -> Iterable[Any]:
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise DecompositionError(
                f"{field}: expected lists of parameter names or dimension numbers, "
                f'such as [("lr", "batch")]; got {show(value)}{hint}'
            )
        return value

    hint = ", which is not in a list of its own"
    named = tuple(tuple(_name(field, item) for item in listing(entry, hint)) for entry in listing(value))
    if not all(named):
        raise DecompositionError(f"{field}: every entry needs at least one parameter; remove the empty one")
    return named


def _name(field: str, item: Any) -> str | int:
    if isinstance(item, str):
        return str(item)
    if isinstance(item, bool) or not isinstance(item, numbers.Integral):
        raise DecompositionError(f"{field}: expected parameter names or dimension numbers; got {show(item)}")
    if item < 0:
        raise DecompositionError(f"{field}: dimensions are numbered from 0; got {item}")
    return int(item)


@dataclass(frozen=True)
class GroupConstraints:
    """What is known of the groups of a space, in dimension numbers, free of contradictions.

    Attributes:
        units: dimensions that share a group, whatever else is learned; every dimension is in one unit.
        together: sets of dimensions that share a group, as they were given.
        apart: sets of dimensions of which no two share a group.
        max_group_size: no group that is learned grows beyond this.
        groups: the decomposition, where it is known: then there is nothing to learn.
    """

    units: tuple[Group, ...]
    together: tuple[Group, ...] = ()
    apart: tuple[Group, ...] = ()
    max_group_size: int = 6
    groups: Decomposition | None = None

    @classmethod
    def of(
        cls,
        space: Space,
        groups: Named | None = None,
        together: Named = (),
        apart: Named = (),
        *,
        max_group_size: int = 6,
        limit: str = "max_group_size",
    ) -> "GroupConstraints":
        """What was written of a space, where `max_group_size` goes by the name `limit`. Errors say what to remove."""
        wishes = _Wishes(space.names, _resolved(space, "together", together), _resolved(space, "apart", apart))
        units = wishes.checked_units(max_group_size if groups is None else space.dim, limit)
        known = None if groups is None else wishes.checked_groups(_resolved(space, "groups", groups))
        return cls(units, wishes.together, wishes.apart, max_group_size, known)

    @property
    def start(self) -> Decomposition:
        """The groups before anything is learned: the known ones, or those that are together, the rest apart."""
        return Decomposition(self.units).canonical() if self.groups is None else self.groups

    def random(self, rng: np.random.Generator) -> Decomposition:
        """Random groups, as large as may be, that keep to what is known: with nothing known, `Decomposition.random`."""
        rules = Rules.of(self.start.dim, self.max_group_size, self.together, self.apart)
        groups: list[Group] = []
        for u in rng.permutation(len(rules.units)).tolist():
            for g, group in enumerate(groups):
                if len(group) < self.max_group_size and rules.allows((*group, u)):
                    groups[g] = (*group, u)
                    break
            else:
                groups.append((u,))
        return rules.decomposition(groups)


@dataclass(frozen=True)
class _Wishes:
    """Wishes in dimension numbers, and what is wrong with them."""

    names: Sequence[str | int]
    together: tuple[Group, ...]
    apart: tuple[Group, ...]

    def checked_units(self, most: int, limit: str) -> tuple[Group, ...]:
        for wish in self.apart:
            for a, b in itertools.combinations(wish, 2):
                if chain := self._chain(a, b):
                    raise DecompositionError(
                        f"{self._pair(a, b)} are to be apart by apart={self._names(wish)}, and together by "
                        f"{' and '.join(f'together={self._names(link)}' for link in chain)}; remove one of these"
                    )
        unit_of: dict[int, Group] = {i: (i,) for i in range(len(self.names))}
        for wish in self.together:
            joined = tuple(sorted({k for i in wish for k in unit_of[i]}))
            unit_of |= dict.fromkeys(joined, joined)
        units = sorted(set(unit_of.values()))
        largest = max(units, key=len)
        if len(largest) > most:
            wishes = [self._names(wish) for wish in self.together if wish[0] in largest]
            raise DecompositionError(
                f"{', '.join(map(repr, self._names(largest)))} are together by together={listed(wishes)}, which makes "
                f"a group of {len(largest)}, but {limit} is {most}; raise {limit} to {len(largest)} or remove a wish"
            )
        return tuple(units)

    def checked_groups(self, groups: tuple[Group, ...]) -> Decomposition:
        named = {i for group in groups for i in group}
        every = [*groups, *((i,) for i in range(len(self.names)) if i not in named)]
        for wish in self.together:
            for a, b in itertools.pairwise(wish):
                if not any({a, b} <= {*group} for group in every):
                    first, second = (next(group for group in every if i in group) for i in (a, b))
                    raise DecompositionError(
                        f"{self._pair(a, b)} are together by together={self._names(wish)}, but groups has them in "
                        f"{self._names(first)} and {self._names(second)}; remove the wish or join these groups"
                    )
        for wish, group in itertools.product(self.apart, every):
            if len(both := [i for i in wish if i in group]) > 1:
                raise DecompositionError(
                    f"{self._pair(*both[:2])} are apart by apart={self._names(wish)}, but groups has both in "
                    f"{self._names(group)}; remove the wish or split this group"
                )
        return Decomposition(every)

    def _chain(self, a: int, b: int) -> list[Group]:
        """The fewest `together` wishes that link two dimensions; none if nothing does."""
        reached: dict[int, list[Group]] = {a: []}
        for i in (queue := [a]):  # which grows on the way
            for wish in self.together:
                for k in wish if i in wish else ():
                    if k not in reached:
                        reached[k] = [*reached[i], wish]
                        queue.append(k)
        return reached.get(b, [])

    def _names(self, dims: Iterable[int]) -> tuple[str | int, ...]:
        return tuple(self.names[i] for i in dims)

    def _pair(self, a: int, b: int) -> str:
        return " and ".join(map(repr, self._names((a, b))))


def _resolved(space: Space, field: str, named: Named) -> tuple[Group, ...]:
    """Dimension numbers, each once in an entry."""
    resolved = tuple(tuple(_index(space, field, item) for item in entry) for entry in named)
    for dims, entry in zip(resolved, named, strict=True):
        if twice := [i for i in dims if dims.count(i) > 1]:
            raise DecompositionError(
                f"{field}: {space.names[twice[0]]!r} is there more than once in {entry}; name it once"
            )
        if field != "groups" and len(dims) < 2:
            raise DecompositionError(f"{field}: a wish needs two parameters or more; got {entry}")
    return resolved


def _index(space: Space, field: str, item: str | int) -> int:
    if isinstance(item, int):
        if item >= space.dim:
            raise DecompositionError(f"{field}: dimensions go from 0 to {space.dim - 1}; got {item}")
        return item
    if item not in space.names:
        unknown = hinted(item, space.names)
        raise DecompositionError(f"{field}: there is no parameter {unknown}; the space has {listed(space.names)}")
    return space.names.index(item)


@dataclass(frozen=True)
class Rules:
    """Which groups are allowed. Dimensions that must stay together form a unit; groups are sorted tuples of units."""

    units: tuple[Group, ...]
    apart: frozenset[tuple[int, int]]  # pairs of units, both ways round
    max_group_size: int

    @classmethod
    def of(cls, D: int, max_group_size: int, together: Wishes = (), apart: Wishes = ()) -> "Rules":
        wishes = _Wishes(range(D), tuple(map(tuple, together)), tuple(map(tuple, apart)))
        for name, wish in [("together", wish) for wish in wishes.together] + [("apart", wish) for wish in wishes.apart]:
            if wrong := [i for i in wish if not 0 <= i < D]:
                raise DecompositionError(f"{name}={wish}: dimensions go from 0 to {D - 1}; got {wrong[0]}")
        units = wishes.checked_units(max(1, max_group_size), "max_group_size")
        number = {i: u for u, unit in enumerate(units) for i in unit}
        banned = {(number[i], number[k]) for wish in wishes.apart for i, k in itertools.permutations(wish, 2)}
        return cls(units, frozenset(banned), max(1, max_group_size))

    def allows(self, group: Group) -> bool:
        if sum(len(self.units[u]) for u in group) > self.max_group_size:
            return False
        return not self.apart or not any(pair in self.apart for pair in itertools.combinations(group, 2))

    def dims(self, group: Group) -> Group:
        return tuple(sorted(i for u in group for i in self.units[u]))

    def decomposition(self, groups: Iterable[Group]) -> Decomposition:
        return Decomposition(self.dims(group) for group in groups).canonical()

    def nearest(self, decomposition: Decomposition) -> list[Group]:
        """The allowed groups of a decomposition; the units of all others stand alone."""
        label: dict[int, int] = {}  # where groups overlap, a dimension counts for the first that has it
        for j, group in enumerate(decomposition.groups):
            label |= {i: j for i in group if i not in label}
        whole = [{label[i] for i in unit} for unit in self.units]
        groups: list[Group] = []
        for j in range(len(decomposition)):
            units = tuple(u for u in range(len(self.units)) if whole[u] == {j})
            groups += [units] if units and self.allows(units) else [(u,) for u in units]
        return groups + [(u,) for u in range(len(self.units)) if len(whole[u]) > 1]

    def extremes(self) -> list[list[Group]]:
        """All apart, and all in one where that is allowed."""
        one = tuple(range(len(self.units)))
        apart: list[Group] = [(u,) for u in one]
        return [apart, [one]] if self.allows(one) and len(one) > 1 else [apart]
