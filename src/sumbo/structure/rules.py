"""Which groups are allowed: the largest size, and what the user knows."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sumbo.errors import DecompositionError
from sumbo.gp.decomposition import Decomposition

Group = tuple[int, ...]
Wishes = Iterable[Sequence[int]]


@dataclass(frozen=True)
class Rules:
    """Which groups are allowed. Dimensions that must stay together form a unit; groups are sorted tuples of units."""

    units: tuple[Group, ...]
    apart: frozenset[tuple[int, int]]  # pairs of units, both ways round
    max_group_size: int

    @classmethod
    def of(cls, D: int, max_group_size: int, together: Wishes = (), apart: Wishes = ()) -> "Rules":
        linked = [_known(D, wish, "together") for wish in together]
        label = list(range(D))
        for wish in linked:
            old = {label[i] for i in wish}
            label = [min(old) if own in old else own for own in label]
        units = tuple(tuple(i for i in range(D) if label[i] == own) for own in sorted(set(label)))
        for unit in units:
            if len(unit) > max(1, max_group_size):
                raise DecompositionError(
                    f"dimensions {unit} are to be together, but no group may have more than {max_group_size}: "
                    "raise max_group_size or drop a wish"
                )
        number = {i: u for u, unit in enumerate(units) for i in unit}
        banned = set()
        for wish in (_known(D, wish, "apart") for wish in apart):
            for i, k in itertools.permutations(wish, 2):
                if number[i] == number[k]:
                    raise DecompositionError(
                        f"dimensions {i} and {k} are to be apart, and together by {units[number[i]]}: drop one wish"
                    )
                banned.add((number[i], number[k]))
        return cls(units, frozenset(banned), max(1, max_group_size))

    @property
    def wishes(self) -> bool:
        """Whether anything but the largest size limits the groups."""
        return bool(self.apart) or any(len(unit) > 1 for unit in self.units)

    def allows(self, group: Group) -> bool:
        if sum(len(self.units[u]) for u in group) > self.max_group_size:
            return False
        return not self.apart or not any(pair in self.apart for pair in itertools.combinations(group, 2))

    def dims(self, group: Group) -> Group:
        return tuple(sorted(i for u in group for i in self.units[u]))

    def decomposition(self, groups: Iterable[Group]) -> Decomposition:
        return Decomposition(self.dims(group) for group in groups).canonical()

    def nearest(self, decomposition: Decomposition) -> list[Group]:
        """The allowed groups of a decomposition; the units of all others stand alone.

        Where groups overlap, a dimension counts for the first that has it.
        """
        label: dict[int, int] = {}
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


def _known(D: int, wish: Sequence[int], name: str) -> Sequence[int]:
    wrong = [i for i in wish if not 0 <= i < D]
    if wrong:
        raise DecompositionError(f"{name}={tuple(wish)}: dimensions go from 0 to {D - 1}; got {wrong[0]}")
    return wish
