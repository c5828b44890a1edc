"""What groups are worth: evidence under tied hyperparameters, and a prior on decompositions.

Hyperparameters are tied across groups: a common lengthscale l sqrt(d_j), a total variance split in proportion to d_j,
one noise. (Free ones would let a wrong decomposition win by fitting the data harder.) The prior charges half of log D
for every dimension that is not the first of its group, for there are many more ways to join dimensions than to leave
them alone. (All of log D would be the price if 'all apart' were as likely as all other decompositions together.)

Searches draw random orders of the dimensions and break ties by place. So these are sorted by what was observed first:
the same data give the same groups in whatever order the parameters were listed.

| symbol | shape        | meaning                                                                          |
|--------|--------------|----------------------------------------------------------------------------------|
| XT, y  | (D, n), (n,) | observations, one row per dimension; values standardised                         |
| N      |              | n (n + 1) / 2, the elements of a lower half, row after row in one vector         |
| k      | (N,)         | covariance of one group or of the sum, without noise                             |
| w      | (N,)         | slopes: w @ dk is the first-order change of the log evidence when k changes by dk |
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import lgamma, log
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

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


score_of = attrgetter("score")


@dataclass
class Problem:
    """The data, the rules, and how many evidence evaluations were spent on them."""

    XT: Array
    y: Array
    nominal: NDArray[np.bool_]
    family: int
    rules: Rules
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
        found = fit_hyperparameters(self.XT, self.y, terms, settings, start)
        self.spent += found.evaluations
        score = found.log_posterior + self.log_prior(len(groups))
        return Fitted(groups, Tied.of(found.hyperparameters, dims), score)

    def on_some(self, count: int, rng: np.random.Generator) -> "Problem":
        """The same with so many of the points, drawn at random; itself where there are no more."""
        n = len(self.y)
        if n <= count:
            return self
        some = np.sort(rng.choice(n, count, replace=False))
        return replace(self, XT=np.ascontiguousarray(self.XT[:, some]), y=self.y[some], spent=0)


@dataclass(frozen=True)
class Order:
    """Places of dimensions, sorted by their coordinates in the first point, then in the second, and so on."""

    dims: NDArray[np.intp]  # (D,), the dimension at a place

    def places(self, groups: Wishes) -> list[Group]:
        """Groups of places, from groups of dimensions."""
        place = np.argsort(self.dims)
        return [tuple(place[list(group)].tolist()) for group in groups]

    def named(self, groups: Decomposition) -> Decomposition:
        """Groups of dimensions, from groups of places."""
        return Decomposition(self.dims[list(group)].tolist() for group in groups.groups).canonical()


def sorted_problem(
    X: Array, y: Array, model: AdditiveGP, max_group_size: int, together: Wishes, apart: Wishes
) -> tuple[Order, Problem, list[Group]]:
    """The data's own order of dimensions, and in that order the problem and the present groups."""
    D, wishes = X.shape[1], [list(together), list(apart)]
    order = Order(np.lexsort(X[::-1]) if len(X) else np.arange(D))
    Rules.of(D, max_group_size, *wishes)  # complains of dimensions as the caller numbers them
    rules = Rules.of(D, max_group_size, *map(order.places, wishes))
    present = rules.nearest(Decomposition(order.places(model.decomposition.groups)).canonical())
    XT, nominal = np.ascontiguousarray(X[:, order.dims].T), model.categories[order.dims] > 0
    return order, Problem(XT, y, nominal, family_index(model.kernel), rules), present


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
        k = np.zeros(n * (n + 1) // 2)
        for group in groups:
            k += self.kernel(group)
        return k

    def factor(self, k: Array) -> Array:
        L, _ = linalg.cholesky_in_place(loops().unpacked(k, len(self.problem.y), self.tied.noise_variance))
        return L

    def score(self, k: Array, M: int) -> float:
        """Log evidence, but for its constant, plus log prior of M groups whose kernels add up to k."""
        self.problem.spent += 1
        y, L = self.problem.y, self.factor(k)
        quadratic = float(y @ linalg.solve_factored(L, y))
        evidence = -0.5 * quadratic - float(np.log(L.diagonal()).sum())
        return self.trust * evidence + self.problem.log_prior(M)

    def justified_trust(self, groups: Iterable[Group]) -> float:
        """How far the evidence can be trusted, by the model's own predictions: 1 at most.

        Differences of log evidence are made of z_i^2, z_i being how far value i is from its prediction by all others,
        in standard deviations. Where the model is right, z^2 has mean 1 and variance 2. Where a few values are far off
        whatever the groups, its variance is larger than twice its mean, and luck weighs so many times more.
        """
        alpha, K_inv = self.solved(self.total(groups))
        z2 = np.square(alpha) / K_inv.diagonal()
        return min(1.0, float(2.0 * z2.mean() / z2.var())) if z2.var() > 0.0 else 1.0

    def slopes(self, k: Array) -> Array:
        return self.trust * loops().packed_slopes(*self.solved(k))

    def solved(self, k: Array) -> tuple[Array, Array]:
        """K^-1 y, and the lower half of K^-1, where K is k with noise."""
        L = self.factor(k)
        return linalg.solve_factored(L, self.problem.y), linalg.inverse_in_place(L)


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
