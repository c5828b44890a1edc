"""What groups are worth, evidence under tied hyperparameters and a prior, and the steps from groups to better ones.

Hyperparameters are tied across groups: a common lengthscale l sqrt(d_j), a total variance split in proportion to d_j,
one noise. (Free ones would let a wrong decomposition win by fitting the data harder.) The prior charges half of log D
for every dimension that is not the first of its group, for there are many more ways to join dimensions than to leave
them alone. (All of log D would be the price if 'all apart' were as likely as all other decompositions together.)

Searches draw random orders of the dimensions and break ties by place. So these are sorted by what was observed first:
the same data give the same groups in whatever order the parameters were listed.

| symbol | shape        | meaning                                                                          |
|--------|--------------|----------------------------------------------------------------------------------|
| XT, y  | (D, n), (n,) | observations, one row per dimension; values standardised                         |
| v      | (n,)         | variances of single values that are known beside the noise, if any are           |
| N      |              | n (n + 1) / 2, the elements of a lower half, row after row in one vector         |
| k      | (N,)         | covariance of one group or of the sum, without noise                             |
| w      | (N,)         | slopes: w @ dk is the first-order change of the log evidence when k changes by dk |
| u, v   |              | units: dimensions, or sets of dimensions that must stay together                 |
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import lgamma, log
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from sumbo._typing import Array
from sumbo.gp import linalg, loops
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.decomposition import Decomposition
from sumbo.gp.fit import FitSettings, Hyperparameters, fit_hyperparameters
from sumbo.gp.kernels import Terms, family_index
from sumbo.structure.group_constraints import Group, Rules, Wishes

TIED = FitSettings(ard=False, group_scales=False, starts=0, evaluations=16)
QUICK = replace(TIED, evaluations=8)  # on the way

_KEPT = 250e6  # bytes of kernels kept
_GAIN = 1e-6  # nats; less is rounding
SHORTLIST = 4  # moves whose evidence is computed, of those that the score test ranks highest
_FAR = 64  # groups that one dimension is tried in; more are drawn from at random
_SPLITS = 64  # ways to split a group that are tried; more are drawn from at random

Change = tuple[tuple[Group, ...], tuple[Group, ...]]  # groups that go, groups that come


@dataclass(frozen=True, slots=True)
class Tied:
    """Hyperparameters common to all groups."""

    lengthscale: float  # of a group of one; a group of d has sqrt(d) times that
    variance: float  # of the sum
    noise_variance: float

    @classmethod
    def of(cls, h: Hyperparameters, groups: Sequence[Group]) -> "Tied":
        lengthscale = float(h.lengthscales[0] / np.sqrt(len(groups[0])))
        return cls(lengthscale, float(np.square(h.scales).sum()), h.noise_variance)

    def spread(self, groups: Sequence[Group]) -> Hyperparameters:
        """The same written out for every group."""
        sizes = np.array([len(group) for group in groups])
        lengthscales = self.lengthscale * np.sqrt(np.repeat(sizes, sizes))
        return Hyperparameters(lengthscales, np.sqrt(self.variance * sizes / sizes.sum()), self.noise_variance)


@dataclass(frozen=True)
class Fitted:
    """Groups with hyperparameters of their own, and what both together are worth."""

    groups: list[Group]
    tied: Tied
    score: float


@dataclass
class Problem:
    """The data, the rules, and how many evidence evaluations were spent on them."""

    XT: Array
    y: Array
    nominal: NDArray[np.bool_]
    family: int
    rules: Rules
    known_variance: Array | None = None  # v
    spent: int = 0

    def log_prior(self, M: int) -> float:
        return -0.5 * float(np.log(len(self.XT))) * (len(self.rules.units) - M)

    def first_guess(self) -> Tied:
        """Little noise, short lengthscales: fitted with all apart, interactions would pass for noise."""
        scale = float(np.mean(np.square(self.y))) or 1.0
        return Tied(0.35, 1.8 * scale, 1e-4 * scale)

    def fitted(self, groups: list[Group], tied: Tied | None = None, settings: FitSettings = TIED) -> Fitted:
        dims = [self.rules.dims(group) for group in groups]
        start = (tied or self.first_guess()).spread(dims)
        terms = Terms.build(dims, start.lengthscales, start.scales, nominal=self.nominal, family=self.family)
        found = fit_hyperparameters(self.XT, self.y, terms, settings, start, self.known_variance)
        self.spent += found.evaluations
        score = found.log_posterior + self.log_prior(len(groups))
        return Fitted(groups, Tied.of(found.hyperparameters, dims), score)

    def on_some(self, count: int, rng: np.random.Generator) -> "Problem":
        """The same with so many of the points, drawn at random; itself where there are no more."""
        n = len(self.y)
        if n <= count:
            return self
        some = np.sort(rng.choice(n, count, replace=False))
        v = None if self.known_variance is None else self.known_variance[some]
        return replace(self, XT=np.ascontiguousarray(self.XT[:, some]), y=self.y[some], known_variance=v, spent=0)


def sorted_problem(
    X: Array,
    y: Array,
    model: AdditiveGP,
    max_group_size: int,
    together: Wishes,
    apart: Wishes,
    known_variance: Array | None = None,
) -> tuple[Callable[[Wishes], Decomposition], Problem, list[Group]]:
    """The problem and the present groups, in the data's own order of dimensions, and a map from its to the caller's."""
    D, wishes = X.shape[1], [list(together), list(apart)]
    dims = np.lexsort(X[::-1]) if len(X) else np.arange(D)  # by the first point, then by the second, and so on
    place = np.argsort(dims)

    def places(groups: Wishes) -> list[Group]:
        return [tuple(place[list(group)].tolist()) for group in groups]

    def named(groups: Wishes) -> Decomposition:
        return Decomposition(dims[list(group)].tolist() for group in groups).canonical()

    Rules.of(D, max_group_size, *wishes)  # complains of dimensions as the caller numbers them
    rules = Rules.of(D, max_group_size, *map(places, wishes))
    present = rules.nearest(Decomposition(places(model.decomposition.groups)).canonical())
    XT, nominal = np.ascontiguousarray(X[:, dims].T), model.categories[dims] > 0
    return named, Problem(XT, y, nominal, family_index(model.kernel), rules, known_variance), present


@dataclass
class Scorer:
    """Evidence and prior of groups under tied hyperparameters. Keeps the kernels of groups it has met."""

    problem: Problem
    tied: Tied
    trust: float = 1.0  # what the log evidence is multiplied by before it meets the prior; 1 is Bayes' rule
    _kernels: dict[Group, Array] = field(default_factory=dict)

    def kernel(self, group: Group) -> Array:
        """k of one group."""
        k = self._kernels.get(group)
        if k is None:
            p, dims = self.problem, np.array(self.problem.rules.dims(group), dtype=np.int64)
            inv_l2 = np.full(len(dims), 1.0 / (self.tied.lengthscale**2 * len(dims)))
            s2 = self.tied.variance * len(dims) / len(p.XT)
            k = self._kernels[group] = loops().packed_kernel(p.XT, p.nominal, dims, inv_l2, s2, p.family)
            if len(self._kernels) * k.nbytes > _KEPT:
                del self._kernels[next(iter(self._kernels))]  # the oldest
        return k

    def total(self, groups: Iterable[Group]) -> Array:
        n = len(self.problem.y)
        return sum(map(self.kernel, groups), np.zeros(n * (n + 1) // 2))

    def score(self, k: Array, M: int) -> float:
        """Log evidence, but for its constant, plus log prior of M groups whose kernels add up to k."""
        self.problem.spent += 1
        return self.trust * self.solved(k)[2] + self.problem.log_prior(M)

    def justified_trust(self, groups: Iterable[Group]) -> float:
        """How far the evidence can be trusted, by the model's own predictions: 1 at most.

        Differences of log evidence are made of z_i^2, z_i being how far value i is from its prediction by all others,
        in standard deviations. Where the model is right, z^2 has mean 1 and variance 2. Where a few values are far off
        whatever the groups, its variance is larger than twice its mean, and luck weighs so many times more.
        """
        L, alpha, _ = self.solved(self.total(groups))
        z2 = np.square(alpha) / linalg.inverse_in_place(L).diagonal()
        return min(1.0, float(2.0 * z2.mean() / z2.var())) if z2.var() > 0.0 else 1.0

    def slopes(self, k: Array) -> Array:
        L, alpha, _ = self.solved(k)
        return self.trust * loops().packed_slopes(alpha, linalg.inverse_in_place(L))

    def solved(self, k: Array) -> tuple[Array, Array, float]:
        """What `linalg.solved` says of k with noise."""
        y, v = self.problem.y, self.problem.known_variance
        return linalg.solved(linalg.add_noise(loops().unpacked(k, len(y)), self.tied.noise_variance, v), y)


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
        """The few of largest first-order change, which is comparable within a kind only: large changes promise more."""
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


def log_prior(sizes: Sequence[int], largest: int) -> float:
    """Log probability of one decomposition into groups of these sizes, where none may be larger than `largest`.

    Groups of one size are the paper's own family, and far fewer than groups of any sizes, so less evidence is enough to
    believe in them. Half of this prior belongs to them, every size d from 2 to the limit as likely as the others; where
    d does not divide D, one group is smaller. The other half belongs to all decompositions, each with the weight that a
    `Problem` gives it. Both halves add up to one, so results of either kind can be compared.
    """
    D, M, d = sum(sizes), len(sizes), max(sizes)
    any_sizes = -0.5 * log(D) * (D - M) - log_normaliser(D, largest)
    if d == 1 or any(size < d for size in sorted(sizes)[1:]):
        return any_sizes - log(2.0)
    full, rest = divmod(D, d)
    log_count = lgamma(D + 1) - full * lgamma(d + 1) - lgamma(full + 1) - lgamma(rest + 1)
    one_size = -log(min(D, largest) - 1) - log_count
    return float(np.logaddexp(any_sizes, one_size)) - log(2.0)


def log_normaliser(D: int, largest: int) -> float:
    """Log of the sum of D^(-(D - M) / 2) over all decompositions, which is what a `Problem` takes them to weigh."""
    logs = [0.0]
    for n in range(1, D + 1):
        # The group of the last of n dimensions has j - 1 of the n - 1 others; what is left is a smaller case.
        sizes = range(1, min(n, largest) + 1)
        terms = [lgamma(n) - lgamma(j) - lgamma(n - j + 1) - 0.5 * log(D) * (j - 1) + logs[n - j] for j in sizes]
        logs.append(float(np.logaddexp.reduce(terms)))
    return logs[D]


def worth(problem: Problem, at: Fitted) -> float:
    """Evidence and `log_prior`, in place of the prior that favours no sizes."""
    prior = log_prior([len(group) for group in at.groups], problem.rules.max_group_size)
    return at.score - problem.log_prior(len(at.groups)) + prior


def climbed(function: Callable[[Array], Any], start: Array, bounds: Any, **limits: int) -> tuple[Array, float]:
    """Where L-BFGS gets from the start within its limits, given value and gradient, and the value there."""
    found = minimize(
        lambda theta: [-part for part in function(theta)],
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options=limits,
    )
    return found.x, -float(found.fun)
