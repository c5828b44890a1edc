"""Optimise one group and proceed: the first sequential approach of the paper's appendix (`seqgpbalgo1`).

| symbol | meaning                                                                    |
|--------|----------------------------------------------------------------------------|
| T      | the whole budget; each of M groups gets T / M queries                      |
| theta  | the point whose groups are replaced one after the other, random at first   |
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from sumbo.gp.decomposition import Decomposition
from sumbo.methods.base import Method, SuggestContext, Suggestion, check_count, check_groups
from sumbo.methods.gp_ucb import GPUCB
from sumbo.space import Space


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
        check_groups(self.groups, space)

    def suggest(self, query: SuggestContext) -> Suggestion:
        theta = query.study_rng.random(query.D)
        groups = self._decomposition(query).groups
        each = self.queries_per_group or (max(1, query.budget // len(groups)) if query.budget else 20)
        j = min(query.number // each, len(groups) - 1)
        # theta^(k) <- the last query of every group that is done
        for k in range(j):
            done = [x for x, note in zip(query.X, query.notes, strict=True) if note == k]
            if done:
                theta[list(groups[k])] = done[-1][list(groups[k])]
        answer = self.inner.suggest(self._restricted(query, groups[j], j))
        theta[list(groups[j])] = answer.point
        # The model of a group that is done is of no use for the next one.
        return Suggestion(query.space.snap(theta), {"group": j, "inner": answer.state}, answer.cache, j)

    def _restricted(self, query: SuggestContext, group: tuple[int, ...], j: int) -> SuggestContext:
        """What was asked about group j, in its own dimensions."""
        columns = list(group)
        told = np.array([note == j for note in query.notes], dtype=bool)
        running = np.array([note == j for note in query.pending_metadata], dtype=bool)
        names = [query.space.names[i] for i in columns]
        return replace(
            query,
            space=Space({name: query.space[name] for name in names}),
            X=query.X[told][:, columns],
            y=query.y[told],
            pending=query.pending[running][:, columns],
            state=query.state.get("inner", {}) if query.state.get("group") == j else {},
        )

    def _decomposition(self, query: SuggestContext) -> Decomposition:
        if self.groups is None:
            return Decomposition.random(query.D, self.group_size, query.study_rng)
        return Decomposition(self.groups)
