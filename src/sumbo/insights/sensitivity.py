"""How much of a model's variance over the cube each dimension and each group accounts for.

For f = sum_j f_j, a sum over groups and perhaps one term f_D of all dimensions, points uniform in the space:

    total effect of dimension i    T_i = E[(f(a) - f(a with b's i))^2] / (2 Var f)                (Jansen's estimator)
    share of group g               S_g = Cov(f_g + E[f_D | x_g], f) / Var f
    all together                   1 - sum_g S_g: what no sum over the groups can express

The groups' own functions are told apart by the model, exactly; only the term of all dimensions, whose kernel is not a
product, needs Monte Carlo, and there Cov(E[f_D | x_g], f) = Cov(f_D(b with a's g) - f_D(b), f(a)). Both estimators are
built from differences, which vanish with the effect: a dimension that does not matter shows 0, not sampling noise. For
separate groups S_g is Var E[f | x_g] / Var f, Sobol's closed index, however the model has shared f out between its
terms; for overlapping ones the shares still add up to 1.

Changing some columns of a point changes its distances by these columns alone, and the kernel does not depend on the
path: so the posterior mean and all paths are done together, in O(D N n) instead of O(D^2 N n) for each.

| symbol | shape      | meaning                                                          |
|--------|------------|------------------------------------------------------------------|
| A, B   | (N, D)     | two independent samples of the space, quasi-random               |
| V      | (n, 1 + S) | weights of the kernel, of the posterior mean and of S paths      |
| f      | (1 + S, N) | values, of the posterior mean and of S paths                     |
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sumbo._typing import Array
from sumbo.gp import kernels
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.kernels import Terms
from sumbo.gp.sample_paths import PriorDraw, SamplePath
from sumbo.gp.threads import on_one_thread
from sumbo.space import Space

PATHS = 8  # draws that show how sure the shares are
_FEATURES = 128  # of a path: enough to see how shares vary
_WORK = 25_000  # points times dimensions


@dataclass(frozen=True)
class Shares:
    """Shares of the posterior mean, in row 0, and of functions drawn from the posterior, in the others.

    Attributes:
        parameters: (1 + S, D), total effects; they add up to more than 1 where parameters interact.
        groups: (1 + S, M), shares of the groups of the decomposition.
        rest: (1 + S,), what they leave to all dimensions together.
        variance: (1 + S,), variance over the space, in the units of the model's values.
    """

    parameters: Array
    groups: Array
    rest: Array
    variance: Array


@on_one_thread
def shares(model: AdditiveGP, space: Space, rng: np.random.Generator, *, paths: int = PATHS) -> Shares:
    """Shares of a model with data; uniform points of the space, in the scale of each parameter."""
    A, B = _samples(space, rng)
    drawn = [model.sample_path(rng, features=_FEATURES) for _ in range(paths)]
    V = np.stack([model.weights, *(path.v for path in drawn)], axis=1)
    of_A = [_Component(drawn, j, V, A, B) for j in range(len(model.groups))]
    at_A, at_B = (np.array([component.values(()) for component in parts]) for parts in (of_A, _swapped(of_A)))
    f_A, f_B = at_A.sum(axis=0), at_B.sum(axis=0)
    variance = 0.5 * (f_A.var(axis=1) + f_B.var(axis=1))

    parameters = np.empty((1 + paths, space.dim))
    for i in range(space.dim):
        holding = [j for j, group in enumerate(model.groups) if i in group]
        change = sum(at_A[j] - of_A[j].values((i,)) for j in holding)
        parameters[:, i] = 0.5 * np.mean(np.square(change), axis=1)

    M = len(model.decomposition)
    groups = np.array([0.5 * (_cov(at_A[j], f_A) + _cov(at_B[j], f_B)) for j in range(M)])
    if model.full_order:
        of_B = of_A[-1].swapped()
        for j, group in enumerate(model.decomposition.groups):
            groups[j] += _cov(of_B.values(group) - at_B[-1], f_A)
    scale = np.where(variance > 0.0, variance, 1.0)
    return _proper(parameters / scale[:, None], (groups / scale).T, variance)


def _proper(parameters: Array, groups: Array, variance: Array) -> Shares:
    """Shares from 0 up that add up to 1: Monte Carlo leaves them a little off."""
    rest = 1.0 - groups.sum(axis=1)
    positive = np.maximum(np.column_stack([groups, rest]), 0.0)
    positive /= positive.sum(axis=1, keepdims=True)
    return Shares(parameters, positive[:, :-1], positive[:, -1], variance)


class _Component:
    """One component of the mean and of the paths, at the points Z, some of whose columns may come from W."""

    def __init__(self, paths: Sequence[SamplePath], j: int, V: Array, Z: Array, W: Array) -> None:
        path = paths[0]
        self.paths, self.j, self.V, self.Z, self.W = paths, j, V, Z, W
        self.terms, self.XT = path.terms.only(j), path.XT
        self.group = path.groups[j]
        self.r2 = sum((self._distances(i, Z) for i in self.group), np.zeros((len(Z), self.XT.shape[1])))
        self.angles = [self._prior(p).angle(Z[:, self.group]) for p in range(len(paths))]

    def swapped(self) -> "_Component":
        return _Component(self.paths, self.j, self.V, self.W, self.Z)

    def values(self, columns: Sequence[int]) -> Array:
        """(1 + S, N), with these columns, all of this component, from W."""
        r2 = self.r2 + sum(self._distances(i, self.W) - self._distances(i, self.Z) for i in columns)
        values = (radial(r2, self.terms) @ self.V).T
        for p, angle in enumerate(self.angles):
            prior, moved = self._prior(p), angle.copy()
            for i in columns:
                moved += prior.turn(self.group.index(i), self.Z[:, i], self.W[:, i])
            values[1 + p] += prior.at_angle(moved)
        return values

    def _prior(self, p: int) -> PriorDraw:
        return self.paths[p].priors[self.j]

    def _distances(self, i: int, Z: Array) -> Array:
        """The part of dimension i in the squared scaled distances to the data, (N, n)."""
        difference = Z[:, i, None] - self.XT[i]
        squared = difference != 0.0 if self.terms.nominal[i] else np.square(difference)
        return self.terms.inv_l2[self.group.index(i)] * squared


def _swapped(components: Sequence[_Component]) -> list[_Component]:
    return [component.swapped() for component in components]


def radial(r2: Array, terms: Terms) -> Array:
    """The kernel of one group at squared scaled distances: that of one dimension, at points so far from the origin."""
    line = Terms(np.zeros(1, np.int64), np.array([0, 1]), np.ones(1), terms.s2, np.zeros(1, bool), terms.family)
    # Differences of large numbers may fall below zero by rounding.
    r = np.sqrt(np.maximum(r2, 0.0)).reshape(1, -1)
    return kernels.cross(np.zeros((1, 1)), r, line).reshape(r2.shape)


def _samples(space: Space, rng: np.random.Generator) -> tuple[Array, Array]:
    from scipy.stats import qmc  # half a second to import

    N = int(2 ** np.clip(np.floor(np.log2(_WORK / space.dim)), 6, 10))
    unit = qmc.Sobol(2 * space.dim, scramble=True, rng=rng).random(N)
    return space.snap(unit[:, : space.dim]), space.snap(unit[:, space.dim :])


def _cov(a: Array, b: Array) -> Array:
    """Covariance of rows, (1 + S,)."""
    return np.mean((a - a.mean(axis=1, keepdims=True)) * (b - b.mean(axis=1, keepdims=True)), axis=1)
