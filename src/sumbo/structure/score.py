"""What groups are worth: evidence under tied hyperparameters, and a prior on decompositions.

Hyperparameters are tied across groups: a common lengthscale l sqrt(d_j), a total variance split in proportion to d_j,
one noise. (Free ones would let a wrong decomposition win by fitting the data harder.) The prior charges half of log D
for every dimension that is not the first of its group, for there are many more ways to join dimensions than to leave
them alone. (All of log D would be the price if 'all apart' were as likely as all other decompositions together.)

| symbol | shape        | meaning                                                                          |
|--------|--------------|----------------------------------------------------------------------------------|
| XT, y  | (D, n), (n,) | observations, one row per dimension; values standardised                         |
| N      |              | n (n + 1) / 2, the elements of a lower half, row after row in one vector         |
| k      | (N,)         | covariance of one group or of the sum, without noise                             |
| w      | (N,)         | slopes: w @ dk is the first-order change of the log evidence when k changes by dk |
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from sumbo._typing import Array
from sumbo.gp import linalg, loops
from sumbo.gp.fit import FitSettings, Hyperparameters, fit_hyperparameters
from sumbo.structure.rules import Group, Rules

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


def score_of(fitted: Fitted) -> float:
    return fitted.score


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
        found = fit_hyperparameters(
            self.XT,
            self.y,
            dims,
            settings,
            nominal=self.nominal,
            family=self.family,
            previous=(tied or self.first_guess()).spread(dims),
        )
        self.spent += found.evaluations
        score = found.log_posterior + self.log_prior(len(groups))
        return Fitted(groups, Tied.of(found.hyperparameters, dims), score)


@dataclass
class Scorer:
    """Evidence and prior of groups under tied hyperparameters. Keeps the kernels of groups it has met.

    Attributes:
        trust: what the log evidence is multiplied by before it meets the prior; 1 is Bayes' rule.
    """

    problem: Problem
    tied: Tied
    trust: float = 1.0
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
