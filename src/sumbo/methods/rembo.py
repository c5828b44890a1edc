"""REMBO: Bayesian optimisation in a random low-dimensional subspace (Wang et al. 2013), a baseline of the paper.

| symbol | shape  | meaning                                                       |
|--------|--------|---------------------------------------------------------------|
| A      | (D, d) | random embedding, standard normal                             |
| z      | (d,)   | point of the subspace, in [-sqrt(d), sqrt(d)]^d, here scaled to the unit cube |
| x      | (D,)   | clip(A z) in [-1, 1]^D, here scaled to the unit cube          |
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from sumbo._typing import Array
from sumbo.errors import SettingError, StateError
from sumbo.methods.base import Method, SuggestContext, Suggestion, check_count
from sumbo.methods.full_gp import GPEI
from sumbo.space import Space

_LARGEST = 1000  # dimensions of a subspace; a matrix of them is in memory


@dataclass(frozen=True)
class REMBO(Method):
    """Search a random subspace of a given dimension by expected improvement.

    Attributes:
        dim: dimension of the subspace.
        inner: the method used in it.

    Example:
        >>> sumbo.Optimizer([(0, 1)] * 4, sumbo.REMBO(dim=2), seed=0).ask().number
        0
    """

    dim: int = 5
    inner: GPEI = GPEI()

    name: ClassVar[str] = "rembo"

    def __post_init__(self) -> None:
        check_count("dim", self.dim)
        if self.dim > _LARGEST:
            got = f"{self.dim!r:.20}"
            raise SettingError(f"dim must be at most {_LARGEST}: the subspace is meant to be small; got {got}")

    def suggest(self, context: SuggestContext) -> Suggestion:
        A = context.study_rng.standard_normal((context.D, self.dim))
        low = replace(
            context,
            space=Space.from_bounds([(0.0, 1.0)] * self.dim),
            X=self._embedded(context.X, context.candidate_metadata, A),
            pending=self._embedded(context.pending, context.pending_metadata, A),
        )
        answer = self.inner.suggest(low)
        z = np.sqrt(self.dim) * (2.0 * answer.point - 1.0)
        x = np.clip(A @ z, -1.0, 1.0)
        return Suggestion(context.space.snap(0.5 * (x + 1.0)), answer.state, answer.cache, answer.point.tolist())

    def _embedded(self, X: Array, notes: Any, A: Array) -> Array:
        """The subspace's points: as suggested, or for the user's own points those that come nearest."""
        nearest = np.linalg.pinv(A) @ (2.0 * X.T - 1.0)  # (d, n)
        unit = np.clip(0.5 * (nearest.T / np.sqrt(self.dim) + 1.0), 0.0, 1.0)
        rows = [unit[i] if note is None else self._noted(note) for i, note in enumerate(notes)]
        return np.array(rows).reshape(len(X), self.dim)

    def _noted(self, note: Any) -> Array:
        """The subspace's point that was written beside a suggestion; a saved state may have been edited."""
        numbers = note if isinstance(note, list) and len(note) == self.dim else [None]
        if not all(isinstance(z, float | int) and 0.0 <= z <= 1.0 for z in numbers):
            expected = f"{self.dim} numbers in [0, 1]"
            raise StateError(f"a trial's metadata: expected {expected}, got {note!r:.80}; was it edited?")
        return np.array(numbers, dtype=float)
