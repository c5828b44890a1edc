"""Groups that may share dimensions: which pairs interact, and which of them belong to larger groups.

Pairs are found in a `Spectral` model, each worth its evidence less a charge for the choice among so many: first
those that pay at once, then, as long as that raises the score, several that may pay together. (Weak ones hide each
other: each is noise to the others.) A clique of pairs becomes one group where the evidence is for it.
"""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sumbo._typing import Array
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.decomposition import Decomposition
from sumbo.gp.threads import on_one_thread
from sumbo.structure.group_constraints import Group, Rules, Wishes
from sumbo.structure.relaxation import Pair, Spectral, State
from sumbo.structure.score import QUICK, Problem, sorted_problem

_DEGREE = 6  # to begin with; lowered where the data need less
_POINTS = 500  # observations that are looked at, at most
_TOGETHER = (10, 20, 40)  # pairs that are tried at once when no single one pays
_DEPTH = 3  # how often in a row
_SMOOTH = -3.0  # their first s: weak terms are most likely simple ones
_GAIN = 0.5  # nats; less is no progress


@on_one_thread
def search_overlapping(
    X: Array,
    y: Array,
    model: AdditiveGP,
    rng: np.random.Generator,
    *,
    max_group_size: int = 2,
    evaluations: int = 2000,
    together: Wishes = (),
    apart: Wishes = (),
) -> Decomposition:
    """Groups that may overlap: the pairs that interact, cliques of them, and every dimension that is in none alone.

    Args:
        X, y: observations, values standardised.
        model: gives the kernel and the categories.
        rng: chooses among observations where there are more than 500.
        max_group_size: no group grows beyond this.
        evaluations: about so many evidence evaluations, each O(n^2) a function and O(n^3).
        together: sets of dimensions that share a group.
        apart: sets of dimensions of which no two share a group.

    Raises:
        DecompositionError: the wishes contradict each other, or the limit.
    """
    order, problem, _ = sorted_problem(X, y, model, max_group_size, together, apart)
    units = [unit for unit in problem.rules.units if len(unit) > 1]
    problem = problem.on_some(_POINTS, rng)
    groups: list[Group] = list(units)
    if len(problem.y) > 2 and max_group_size > 1:
        pairs = _Pairs(problem, evaluations).search()
        groups += [pair for pair in pairs if not any({*pair} <= {*unit} for unit in units)]
        groups = _with_cliques(problem, groups)
    return order.named(Decomposition(_with_the_rest(groups, X.shape[1])))


def _with_the_rest(groups: list[Group], D: int) -> list[Group]:
    """And every dimension that is in none of them alone."""
    covered = set(itertools.chain(*groups))
    return groups + [(i,) for i in range(D) if i not in covered]


class _Pairs:
    """The search for pairs. A pair costs the log of how many there are to choose from."""

    def __init__(self, problem: Problem, evaluations: int) -> None:
        self.data, self.limit = (problem.XT.T, problem.y, problem.nominal), evaluations
        self.spent = 0  # by models of other degrees
        self.model = Spectral(*self.data, _DEGREE)
        rules = problem.rules
        unit_of = {i: u for u, unit in enumerate(rules.units) for i in unit}
        pairs = list(itertools.combinations(range(self.model.D), 2))
        self.known = tuple(pair for pair in pairs if unit_of[pair[0]] == unit_of[pair[1]])
        self.open = [(i, k) for i, k in pairs if rules.allows((unit_of[i], unit_of[k]))]
        self.open = [pair for pair in self.open if pair not in self.known]
        self.charge = float(np.log(max(2, len(pairs))))

    def search(self) -> tuple[Pair, ...]:
        E = len(self.known)
        empty = State((), self.model.start(), -np.inf)
        best = self._fitted(self.model.added(empty, self.known, np.zeros(E), np.zeros(E)), 60)
        best = self._simplest(self._one_by_one(best))
        while self._left and not self.model.is_exact(best):
            better = self._several(best)
            if better is None:
                break
            best = self._one_by_one(better)
        return best.pairs

    def score(self, state: State) -> float:
        return state.value - self.charge * len(state.pairs)

    @property
    def _left(self) -> int:
        """Evidence evaluations that may still be made."""
        return max(0, self.limit - self.spent - self.model.evaluations)

    def _fitted(self, state: State, steps: int) -> State:
        return self.model.fitted(state, max(1, min(steps, self._left // 2)))  # a step takes one or two

    def _candidates(self, state: State) -> tuple[list[Pair], Array, Array, Array]:
        """All pairs that are not there yet, the most promising first: gains, and first parameters."""
        missing = [pair for pair in self.open if pair not in set(state.pairs)]
        gain, v, s = self.model.gains(state, missing)
        order = np.argsort(-gain, kind="stable")
        return [missing[k] for k in order], gain[order], v[order], s[order]

    def _one_by_one(self, state: State) -> State:
        """Add what pays at once, a few at a time, and take out what no longer does, until the score rests."""
        while self._left:
            pairs, gain, v, s = self._candidates(state)
            bar = max(self.charge, 0.4 * gain[0]) if pairs else np.inf
            count = min(int((gain > bar).sum()), max(4, len(state.pairs) // 2))
            if count == 0:
                break
            more = self._fitted(self.model.added(state, pairs[:count], v[:count], s[:count]), 40)
            more = self._pruned(more, self.charge)
            if self.score(more) <= self.score(state) + _GAIN:
                break
            state = more
        return state

    def _several(self, state: State) -> State | None:
        """Add many at once, and as many again, before asking which of them pay; None where the score never rises.

        On the way half of the charge is enough: what is a little too weak to pay now may pay once others are there.
        """
        for count in _TOGETHER:
            at = state
            for _ in range(_DEPTH):
                pairs, _, v, _ = self._candidates(at)
                if not pairs or not self._left:
                    break
                first = v[:count]
                at = self.model.added(at, pairs[:count], first, np.full(len(first), _SMOOTH))
                at.theta[-1] -= np.log(10.0)  # with the noise of before, they would not be needed
                at = self._pruned(self._fitted(at, 60), 0.5 * self.charge)
                found = self._pruned(at, self.charge)
                if self.score(found) > self.score(state) + _GAIN:
                    return found
        return None

    def _pruned(self, state: State, charge: float) -> State:
        """Take out pairs that are not worth the charge, the least first, and fit again in between."""
        while True:
            losses = self.model.losses(state)
            removable = [e for e in np.argsort(losses).tolist() if state.pairs[e] not in self.known]
            gone = [e for e in removable[: max(1, len(removable) // 8)] if losses[e] < charge]
            if not gone:
                return state
            state = self._fitted(self.model.without(state, gone), 15)

    def _simplest(self, state: State) -> State:
        """The degree with the highest evidence for these pairs; the search goes on with it."""
        if not self._left:
            return state
        steps = max(1, min(40, self._left // 8))
        models = [self.model] + [Spectral(*self.data, p) for p in range(2, _DEGREE)]
        states = [state] + [m.fitted(self.model.of_lower_degree(state, m.p), steps) for m in models[1:]]
        best = max(range(len(states)), key=lambda k: states[k].value)
        self.spent = sum(model.evaluations for model in models) - models[best].evaluations
        self.model = models[best]
        return states[best]


def _with_cliques(problem: Problem, groups: list[Group]) -> list[Group]:
    """Replace the pairs of a clique by one group, where that raises the evidence of the model's own kernel."""
    D, largest = len(problem.XT), problem.rules.max_group_size
    problem = replace(problem, rules=Rules.of(D, largest))

    def evidence(candidate: list[Group]) -> float:
        candidate = _with_the_rest(candidate, D)
        return problem.fitted(candidate, settings=QUICK).score - problem.log_prior(len(candidate))

    cliques = _cliques([set(group) for group in groups], D, largest)
    if not cliques:
        return groups
    value = evidence(groups)
    for clique in cliques:
        joined = [group for group in groups if not set(group) <= set(clique)] + [clique]
        if (found := evidence(joined)) > value:
            groups, value = joined, found
    return groups


def _cliques(groups: Sequence[set[int]], D: int, largest: int) -> list[Group]:
    """Sets of 3 to `largest` dimensions all of whose pairs are in some group, the largest first."""
    linked = np.zeros((D, D), dtype=bool)
    for group in groups:
        linked[np.ix_(list(group), list(group))] = True
    grown: list[Group] = [(i,) for i in range(D)]
    found: list[Group] = []
    for size in range(2, largest + 1):
        grown = [(*g, k) for g in grown for k in range(g[-1] + 1, D) if linked[list(g), k].all()]
        found = (grown if size > 2 else []) + found
    return [clique for clique in found if not any(set(clique) <= group for group in groups)]
