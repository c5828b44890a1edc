"""What the user knows about groups, by parameter name: checked, and turned into dimension numbers.

Parameters that are to be together form a unit, through others too: a with b and b with c make one unit of three. What
contradicts is refused by name, before the first evaluation.
"""

import itertools
import numbers
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from sumbo.errors import DecompositionError
from sumbo.gp.decomposition import Decomposition
from sumbo.space import Space
from sumbo.space.parameters import closest, listed, show

Named = tuple[tuple[str | int, ...], ...]
Dims = tuple[int, ...]


def as_named(field: str, value: Any) -> Named:
    """What the user wrote, as tuples of names and dimension numbers; whether the space has them is seen later.

    Raises:
        DecompositionError: it is not a list of lists of names or numbers, a list is empty, or says something twice.
    """
    example = 'such as [("lr", "batch")]'
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise DecompositionError(
            f"{field}: expected lists of parameter names or dimension numbers, {example}; got {show(value)}"
        )
    named = []
    for entry in value:
        if isinstance(entry, str) or not isinstance(entry, Iterable):
            raise DecompositionError(
                f"{field}: expected lists of parameter names or dimension numbers, {example}; "
                f"got {show(entry)}, which is not in a list of its own"
            )
        named.append(tuple(_name(field, item) for item in entry))
        if not named[-1]:
            raise DecompositionError(f"{field}: every entry needs at least one parameter; remove the empty one")
        twice = [item for item in named[-1] if named[-1].count(item) > 1]
        if twice:
            raise DecompositionError(f"{field}: {twice[0]!r} is there more than once in {named[-1]}; name it once")
    return tuple(named)


def as_named_groups(value: Any) -> Named | None:
    """The same for known groups, of which there is at least one; None where none are known."""
    groups = None if value is None else as_named("groups", value)
    if groups == ():
        raise DecompositionError("groups: expected at least one group; leave it out to have groups learned")
    return groups


def freeze(method: Any) -> None:
    """Turn the fields groups, together and apart of a frozen dataclass into tuples, whatever lists they came as."""
    object.__setattr__(method, "groups", as_named_groups(method.groups))
    object.__setattr__(method, "together", as_named("together", method.together))
    object.__setattr__(method, "apart", as_named("apart", method.apart))


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

    units: tuple[Dims, ...]
    together: tuple[Dims, ...] = ()
    apart: tuple[Dims, ...] = ()
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
        """What was written of this space.

        Args:
            space: has the names.
            groups: known groups; a parameter in none of them stands alone.
            together, apart: sets of parameters that share a group, or of which no two do.
            max_group_size: the largest group that may be learned.
            limit: what the method calls that, for its user to find it.

        Raises:
            DecompositionError: a parameter that the space does not have, or wishes that contradict each other, the
                groups or the limit. The message names the parameters and what to remove.
        """
        wishes = _Wishes(space, _resolved(space, "together", together), _resolved(space, "apart", apart))
        units = wishes.units()
        wishes.check_apart()
        if groups is not None:
            known = wishes.checked_groups(_resolved(space, "groups", groups))
            return cls(units, wishes.together, wishes.apart, max_group_size, known)
        largest = max(units, key=len)
        if len(largest) > max_group_size:
            wishes.too_large(largest, max_group_size, limit)
        return cls(units, wishes.together, wishes.apart, max_group_size)

    @property
    def start(self) -> Decomposition:
        """The groups before anything is learned: the known ones, or those that are together, the rest apart."""
        return Decomposition(self.units).canonical() if self.groups is None else self.groups

    def random(self, rng: np.random.Generator) -> Decomposition:
        """Random groups of the largest size that keep to what is known; the last may be smaller, and others must.

        With nothing known, the same as `Decomposition.random`.
        """
        banned = {pair for wish in self.apart for pair in itertools.permutations(wish, 2)}
        groups: list[list[int]] = []
        for u in rng.permutation(len(self.units)).tolist():
            unit = self.units[u]
            for group in groups:
                fits = len(group) + len(unit) <= self.max_group_size
                if fits and not any(pair in banned for pair in itertools.product(group, unit)):
                    group.extend(unit)
                    break
            else:
                groups.append(list(unit))
        return Decomposition(sorted(map(sorted, groups)))


@dataclass(frozen=True)
class _Wishes:
    """Wishes in dimension numbers, and what is wrong with them."""

    space: Space
    together: tuple[Dims, ...]
    apart: tuple[Dims, ...]

    def units(self) -> tuple[Dims, ...]:
        label = list(range(self.space.dim))
        for wish in self.together:
            old = {label[i] for i in wish}
            label = [min(old) if own in old else own for own in label]
        members: dict[int, list[int]] = {}
        for i, own in enumerate(label):
            members.setdefault(own, []).append(i)
        return tuple(map(tuple, members.values()))

    def check_apart(self) -> None:
        for wish in self.apart:
            for a, b in itertools.combinations(wish, 2):
                chain = self._chain(a, b)
                if chain:
                    raise DecompositionError(
                        f"{self._pair(a, b)} are to be apart by apart={self._names(wish)}, and together by "
                        f"{' and '.join(f'together={self._names(link)}' for link in chain)}; remove one of these"
                    )

    def checked_groups(self, groups: tuple[Dims, ...]) -> Decomposition:
        named = {i for group in groups for i in group}
        every = [*groups, *((i,) for i in range(self.space.dim) if i not in named)]
        for wish in self.together:
            for a, b in itertools.pairwise(wish):
                if not any({a, b} <= {*group} for group in every):
                    first, second = (next(group for group in every if i in group) for i in (a, b))
                    raise DecompositionError(
                        f"{self._pair(a, b)} are together by together={self._names(wish)}, but groups has them in "
                        f"{self._names(first)} and {self._names(second)}; remove the wish or join these groups"
                    )
        for wish in self.apart:
            for a, b in itertools.combinations(wish, 2):
                for group in every:
                    if {a, b} <= {*group}:
                        raise DecompositionError(
                            f"{self._pair(a, b)} are apart by apart={self._names(wish)}, but groups has both in "
                            f"{self._names(group)}; remove the wish or split this group"
                        )
        return Decomposition(every)

    def too_large(self, unit: Dims, most: int, limit: str) -> NoReturn:
        wishes = [self._names(wish) for wish in self.together if wish[0] in unit]
        raise DecompositionError(
            f"{', '.join(repr(self.space.names[i]) for i in unit)} are together by together={listed(wishes)}, which "
            f"makes a group of {len(unit)}, but {limit} is {most}; raise {limit} to {len(unit)} or remove a wish"
        )

    def _chain(self, a: int, b: int) -> list[Dims]:
        """The fewest `together` wishes that link two dimensions; none if nothing does."""
        reached: dict[int, list[Dims]] = {a: []}
        queue = deque([a])
        while queue:
            i = queue.popleft()
            for wish in self.together:
                for k in wish if i in wish else ():
                    if k not in reached:
                        reached[k] = [*reached[i], wish]
                        queue.append(k)
        return reached.get(b, [])

    def _names(self, dims: Iterable[int]) -> tuple[str, ...]:
        return tuple(self.space.names[i] for i in dims)

    def _pair(self, a: int, b: int) -> str:
        return f"{self.space.names[a]!r} and {self.space.names[b]!r}"


def _name(field: str, item: Any) -> str | int:
    if isinstance(item, str):
        return str(item)
    if isinstance(item, bool) or not isinstance(item, numbers.Integral):
        raise DecompositionError(f"{field}: expected parameter names or dimension numbers; got {show(item)}")
    if item < 0:
        raise DecompositionError(f"{field}: dimensions are numbered from 0; got {item}")
    return int(item)


def _resolved(space: Space, field: str, named: Named) -> tuple[Dims, ...]:
    """Dimension numbers, each once in an entry."""
    resolved = tuple(tuple(_index(space, field, item) for item in entry) for entry in named)
    for dims, entry in zip(resolved, named, strict=True):
        twice = [i for i in dims if dims.count(i) > 1]
        if twice:
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
        near = closest(item, space.names)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise DecompositionError(f"{field}: there is no parameter {item!r}{hint}; the space has {listed(space.names)}")
    return space.names.index(item)
