"""Dimensions in an order of the data's own.

Searches for groups draw random orders and break ties by place. With the dimensions sorted by what was observed, the
same data give the same groups in whatever order the parameters were listed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sumbo._typing import Array
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.decomposition import Decomposition
from sumbo.structure.rules import Group, Rules, Wishes


@dataclass(frozen=True)
class Order:
    """Places of dimensions, sorted by their coordinates in the first point, then in the second, and so on."""

    dims: NDArray[np.intp]  # (D,), the dimension at a place

    @classmethod
    def of(cls, X: Array) -> "Order":
        return cls(np.lexsort(X[::-1]) if len(X) else np.arange(X.shape[1]))

    def points(self, X: Array) -> Array:
        return np.ascontiguousarray(X[:, self.dims])

    def model(self, model: AdditiveGP) -> AdditiveGP:
        """A model with the same groups, kernel and categories; hyperparameters are left behind."""
        groups = Decomposition(self.places(model.decomposition.groups)).canonical()
        return AdditiveGP(groups, kernel=model.kernel, categories=model.categories[self.dims])

    def rules(self, max_group_size: int, together: Wishes, apart: Wishes) -> Rules:
        """Rules for places, from wishes about dimensions."""
        wishes = [list(together), list(apart)]
        Rules.of(len(self.dims), max_group_size, *wishes)  # complains of dimensions as the caller numbers them
        return Rules.of(len(self.dims), max_group_size, *map(self.places, wishes))

    def places(self, groups: Iterable[Sequence[int]]) -> list[Group]:
        """Groups of places, from groups of dimensions."""
        place = np.argsort(self.dims)
        return [tuple(place[list(group)].tolist()) for group in groups]

    def named(self, groups: Decomposition) -> Decomposition:
        """Groups of dimensions, from groups of places."""
        return Decomposition(self.dims[list(group)].tolist() for group in groups.groups).canonical()
