"""Groups that change step by step: moves, swaps, splits and merges.

| symbol | shape | meaning                                                                                 |
|--------|-------|-----------------------------------------------------------------------------------------|
| u, v   |       | units: dimensions, or sets of dimensions that must stay together                        |
| k      | (N,)  | covariance of the sum, lower half, without noise                                        |
"""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from sumbo._typing import Array
from sumbo.structure.group_constraints import Group
from sumbo.structure.score import Scorer

_GAIN = 1e-6  # nats; less is rounding
SHORTLIST = 4  # moves whose evidence is computed, of those that the score test ranks highest
_FAR = 64  # groups that one dimension is tried in; more are drawn from at random
_SPLITS = 64  # ways to split a group that are tried; more are drawn from at random

Change = tuple[tuple[Group, ...], tuple[Group, ...]]  # groups that go, groups that come


class PartitionMoves:
    """Groups that change step by step, with their covariance and score."""

    def __init__(self, scorer: Scorer, groups: Iterable[Group], rng: np.random.Generator) -> None:
        self.scorer, self.rules, self.rng = scorer, scorer.problem.rules, rng
        self.groups = list(groups)
        self.k = scorer.total(self.groups)
        self.score = scorer.score(self.k, len(self.groups))
        self._slopes: Array | None = None
        self._first_order: dict[Group, float] = {}  # of adding one group's kernel

    def sweep(self, temperature: float, *, swaps: bool, limit: int) -> int:
        """Try every unit, every split and the merges once; the number of changes made."""
        changes = 0
        for candidates in self._neighbours(swaps):
            if self.scorer.problem.spent >= limit:
                break
            changes += self.step(self.shortlisted(candidates), temperature)
        return changes

    def _neighbours(self, swaps: bool) -> Iterator[list[Change]]:
        """Candidates of a kind, made only when it is their turn: earlier steps change them."""
        for u in self.rng.permutation(len(self.rules.units)).tolist():
            yield self.moves(u, swaps)
        for group in list(self.groups):
            yield self.splits(group)
        yield self.merges()

    def step(self, candidates: list[Change], temperature: float) -> bool:
        """Go to one of the candidates or stay: to the best at temperature 0, else drawn by score / temperature."""
        tried = []
        for gone, come in candidates:
            k = self.k.copy()
            for group in come:
                k += self.scorer.kernel(group)
            for group in gone:
                k -= self.scorer.kernel(group)
            tried.append((self.scorer.score(k, len(self.groups) + len(come) - len(gone)), k, gone, come))
        scores = np.array([self.score] + [entry[0] for entry in tried])
        # The largest of score / T + Gumbel noise is a draw with probabilities in proportion to exp(score / T).
        noise = self.rng.gumbel(size=len(scores)) if temperature else 0.0
        chosen = int(np.argmax(scores + temperature * noise))
        if chosen == 0 or (temperature == 0.0 and scores[chosen] <= self.score + _GAIN):
            return False
        self.score, self.k, gone, come = tried[chosen - 1]
        self.groups = [group for group in self.groups if group not in gone] + list(come)
        self._slopes, self._first_order = None, {}
        return True

    def shortlisted(self, candidates: list[Change]) -> list[Change]:
        """The few of largest first-order change.

        It is comparable within a kind only: the more a candidate changes, the more it promises.
        """
        if len(candidates) <= SHORTLIST:
            return candidates
        return sorted(candidates, key=self.first_order, reverse=True)[:SHORTLIST]

    def first_order(self, change: Change) -> float:
        """The score test: change of score to first order, O(n^2) for each group not met before."""
        if self._slopes is None:
            self._slopes = self.scorer.slopes(self.k)
        for group in itertools.chain(*change):
            if group not in self._first_order:
                self._first_order[group] = float(self._slopes @ self.scorer.kernel(group))
        gone, come = change
        prior = self.scorer.problem.log_prior(len(come)) - self.scorer.problem.log_prior(len(gone))
        return sum(self._first_order[g] for g in come) - sum(self._first_order[g] for g in gone) + prior

    def moves(self, u: int, swaps: bool) -> list[Change]:
        """Unit u alone, in another group, or in the place of a unit there. Of very many groups, some."""
        changes = self._some(self.places(u), _FAR)
        return changes + self.exchanges(u, least=2) if swaps and len(self._own(u)) > 1 else changes

    def exchanges(self, u: int, least: int = 1) -> list[Change]:
        """Unit u in the place of a unit of another group that has at least so many: sizes stay as they are."""
        own = self._own(u)
        rest = _without(own, u)
        changes: list[Change] = []
        for other in self._some([group for group in self.groups if group != own and len(group) >= least], _FAR):
            changes += [((own, other), (_with(rest, v), _with(_without(other, v), u))) for v in other]
        return self._allowed(changes)

    def places(self, u: int) -> list[Change]:
        """Everywhere else that unit u can be: alone, or in another group."""
        own = self._own(u)
        rest = _without(own, u)
        left = (rest,) if rest else ()
        changes: list[Change] = [((own,), (rest, (u,)))] if rest else []
        changes += [((own, other), (*left, _with(other, u))) for other in self.groups if other != own]
        return self._allowed(changes)

    def splits(self, group: Group) -> list[Change]:
        """Ways to cut a group in two, single units aside."""
        if group not in self.groups:  # an earlier step of the sweep took it apart
            return []
        if 2 ** (len(group) - 1) <= 4 * _SPLITS:
            first, others = group[0], group[1:]
            sizes = range(1, len(others) - 1)
            parts = [(first, *c) for size in sizes for c in itertools.combinations(others, size)]
        else:
            parts = [tuple(u for u in group if self.rng.random() < 0.5) for _ in range(_SPLITS)]
        cuts = [(part, tuple(u for u in group if u not in part)) for part in self._some(parts, _SPLITS)]
        return self._allowed([((group,), cut) for cut in cuts if all(cut)])

    def merges(self) -> list[Change]:
        """Pairs of groups of several units; single units join by `moves`."""
        several = [group for group in self.groups if len(group) > 1]
        pairs = self._some(list(itertools.combinations(several, 2)), _FAR)
        return self._allowed([((g, h), (tuple(sorted(g + h)),)) for g, h in pairs])

    def _own(self, u: int) -> Group:
        return next(group for group in self.groups if u in group)

    def _some(self, items: list[Any], limit: int) -> list[Any]:
        if len(items) <= limit:
            return items
        return [items[j] for j in self.rng.choice(len(items), limit, replace=False).tolist()]

    def _allowed(self, changes: list[Change]) -> list[Change]:
        return [change for change in changes if all(self.rules.allows(group) for group in change[1])]


def _with(group: Group, u: int) -> Group:
    return tuple(sorted((*group, u)))


def _without(group: Group, u: int) -> Group:
    return tuple(v for v in group if v != u)
