"""Methods that ask another one a smaller question: baselines of the paper.

`REMBO` searches a random low-dimensional subspace (Wang et al. 2013). Of the two sequential approaches of the paper's
appendix, `SequentialGroups` optimises one group and proceeds (`seqgpbalgo1`); `CyclicGroups` changes one group per
query (`seqgpbalgo2`).

| symbol | shape  | meaning                                                                    |
|--------|--------|----------------------------------------------------------------------------|
| A      | (D, d) | random embedding, standard normal                                          |
| z      | (d,)   | point of the subspace, in [-sqrt(d), sqrt(d)]^d, here scaled to the unit cube |
| x      | (D,)   | clip(A z) in [-1, 1]^D, here scaled to the unit cube                       |
| T      | scalar | the whole budget; each of M groups gets T / M queries                      |
| theta  | (D,)   | the point whose groups are replaced one after the other, random at first   |
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from sumbo._typing import Array
from sumbo.errors import DecompositionError, SettingError, StateError
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.decomposition import Decomposition
from sumbo.methods.add_gp_ucb import AddGPUCB
from sumbo.methods.base import Method, SuggestContext, Suggestion, check_count
from sumbo.methods.full_gp import GPEI, GPUCB
from sumbo.space import Space
from sumbo.structure.group_constraints import GroupConstraints

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


@dataclass(frozen=True)
class SequentialGroups(Method):
    """GP-UCB on the first group with the others held, then on the second, and so on. Never comes back to a group.

    Attributes:
        group_size: size of random groups, where none are given.
        groups: the decomposition, where it is known.
        queries_per_group: T / M; by default from the run's budget, or 20 where there is none.
        inner: the method used within a group.

    Example:
        >>> sumbo.Optimizer([(0, 1)] * 4, sumbo.SequentialGroups(group_size=2), seed=0).ask().number
        0
    """

    group_size: int = 4
    groups: tuple[tuple[int, ...], ...] | None = None
    queries_per_group: int | None = None
    inner: GPUCB = GPUCB(n_init=2, n_cyc=5)

    name: ClassVar[str] = "seq-groups"

    def __post_init__(self) -> None:
        if self.groups is not None:
            known = Decomposition(self.groups)
            known.labels  # noqa: B018 - raises where groups overlap: each is searched on its own
            object.__setattr__(self, "groups", known.groups)
        check_count("group_size", self.group_size)
        if self.queries_per_group is not None:
            check_count("queries_per_group", self.queries_per_group)

    def check(self, space: Space) -> None:
        covered = space.dim if self.groups is None else Decomposition(self.groups).dim
        if covered != space.dim:
            raise DecompositionError(f"groups cover {covered} dimensions, the space has {space.dim}")

    def suggest(self, context: SuggestContext) -> Suggestion:
        theta = context.study_rng.random(context.D)
        groups = self.groups or Decomposition.random(context.D, self.group_size, context.study_rng).groups
        each = self.queries_per_group or (max(1, context.budget // len(groups)) if context.budget else 20)
        j = min(context.number // each, len(groups) - 1)
        # theta^(k) <- the last query of every group that is done
        for k in range(j):
            done = [x for x, note in zip(context.X, context.candidate_metadata, strict=True) if note == k]
            if done:
                theta[list(groups[k])] = done[-1][list(groups[k])]
        columns = list(groups[j])
        answer = self.inner.suggest(self._restricted(context, columns, j))
        theta[columns] = answer.point
        # The model of a group that is done is of no use for the next one.
        return Suggestion(context.space.snap(theta), {"group": j, "inner": answer.state}, answer.cache, j)

    def _restricted(self, context: SuggestContext, columns: list[int], j: int) -> SuggestContext:
        """What was asked about group j, in its own dimensions."""
        told = np.array([note == j for note in context.candidate_metadata], dtype=bool)
        running = np.array([note == j for note in context.pending_metadata], dtype=bool)
        names = [context.space.names[i] for i in columns]
        return replace(
            context,
            space=Space({name: context.space[name] for name in names}),
            X=context.X[told][:, columns],
            y=context.y[told],
            std=None if context.std is None else context.std[told],
            pending=context.pending[running][:, columns],
            state=context.state.get("inner", {}) if context.state.get("group") == j else {},
        )


@dataclass(frozen=True)
class CyclicGroups(Method):
    """Add-GP-UCB in which query t moves group t mod M only; the others stay where the last query had them.

    Attributes:
        inner: settings of the underlying Add-GP-UCB, its groups among them.

    Example:
        >>> sumbo.Optimizer([(0, 1)] * 4, sumbo.CyclicGroups(), seed=0).ask().number
        0
    """

    inner: AddGPUCB = AddGPUCB()

    name: ClassVar[str] = "cyclic-groups"

    def group_constraints(self, space: Space) -> GroupConstraints:
        return self.inner.group_constraints(space)

    def suggest(self, context: SuggestContext) -> Suggestion:
        answer = self.inner.suggest(replace(context, state=context.state.get("inner", {})))
        x_t = answer.point
        if answer.cache is not None and "previous" in context.state:
            k = context.number % len(answer.cache.groups)
            moved = list(answer.cache.groups[k])
            x_t = np.array(context.state["previous"])
            x_t[moved] = answer.point[moved]
        return Suggestion(x_t, {"inner": answer.state, "previous": x_t.tolist()}, answer.cache)

    def model(self, context: SuggestContext) -> AdditiveGP | None:
        return self.inner.model(replace(context, state=context.state.get("inner", {})))
