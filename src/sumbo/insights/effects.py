"""What parameters and groups do to the value: how much of its variance, and by what function.

For f = sum_j f_j, a sum over groups and perhaps one term f_D of all dimensions, points uniform in the space:

    total effect of dimension i    T_i = E[(f(a) - f(a with b's i))^2] / (2 Var f)                (Jansen's estimator)
    share of group g               S_g = Cov(f_g + E[f_D | x_g], f) / Var f
    all together                   1 - sum_g S_g: what no sum over the groups can express
    function of group g            e_g(z) = f_g(z) + E[f_D | x_g = z] - (its mean over the space)

**Shares.** The groups' own functions are told apart by the model, exactly; only the term of all dimensions, whose
kernel is not a product, needs Monte Carlo, and there Cov(E[f_D | x_g], f) = Cov(f_D(b with a's g) - f_D(b), f(a)). Both
estimators are built from differences, which vanish with the effect: a dimension that does not matter shows 0, not
sampling noise. For separate groups S_g is Var E[f | x_g] / Var f, Sobol's closed index, however the model has shared f
out between its terms; for overlapping ones the shares still add up to 1.

Changing some columns of a point changes its distances by these columns alone, and the kernel does not depend on the
path: so the posterior mean and all paths are done together, in O(D N n) instead of O(D^2 N n) for each.

**Functions.** The expectations are means over S points b_s of the space. So e_g is a linear functional of a Gaussian
process, and its posterior is exact: with c the same functional of the kernel,

    mean(z)     = c(z, X) alpha
    variance(z) = c(z, z) - c(z, X) K^-1 c(X, z)

Where the space has conditions or known constraints, "uniform in the space" is over the points that it allows:

- Shares: a parameter that does not exist changes nothing; one that turns others on or off changes these with it, and
  what these add on average by existing is its own. Where constraints allow it, a and b are such that a with b's i is
  allowed as well; where i is tied to others, these make up for its change by as little as possible.
- Functions: the average is over allowed points that have the values z; NaN where there are none.
  What depends on a parameter of the group belongs to its effect. Where z makes a parameter of the group itself vanish,
  the effect is that of the others.

Their variances are the groups' shares. The mean is taken off because the level of a single component cannot be told
from that of the others; what is left is its shape. Distances add up over dimensions, so those of the averaged ones are
found once: O(S G n), whatever D.

| symbol | shape      | meaning                                                                           |
|--------|------------|-----------------------------------------------------------------------------------|
| A, B   | (N, D)     | two independent samples of the space, quasi-random; of a function, S to average over |
| V      | (n, 1 + S) | weights of the kernel, of the posterior mean and of S paths                       |
| f      | (1 + S, N) | values, of the posterior mean and of S paths                                      |
| Z      | (G, d)     | points of the group's dimensions                                                  |
| X      | (n, D)     | observations, or the support that stands for them                                 |
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sumbo._typing import Array
from sumbo.errors import SpaceError
from sumbo.gp import kernels
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.kernels import Terms
from sumbo.gp.sample_paths import PriorDraw, SamplePath
from sumbo.gp.threads import on_one_thread
from sumbo.space import Known, Space
from sumbo.space.region import Region

_PATHS = 8  # draws that show how sure the shares are
_FEATURES = 128  # of a path: enough to see how shares vary
_WORK = 25_000  # points times dimensions
_AVERAGED = 16  # points that a function is averaged over, a power of two
_BLOCK = 1000  # points at a time, to bound memory
_WITHIN = 32  # allowed points that a function is averaged over
_POOL, _KNOWN_POOL = 256, 64  # from which these are taken; fewer where each has to be asked for
_ENOUGH = 1 / 16  # share of the samples from which those that are allowed stand for all
_TIED = 64  # samples for a parameter that cannot change alone


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
def shares(model: AdditiveGP, space: Space, rng: np.random.Generator, *, paths: int = _PATHS) -> Shares:
    """Shares of a model with data; uniform points of the space, in the scale of each parameter."""
    A, B = raw = _samples(space, rng)
    if space.conditional:
        A, B = map(space.snap, raw)
    drawn = [model.sample_path(rng, features=_FEATURES) for _ in range(paths)]
    V = np.stack([model.weights, *(path.v for path in drawn)], axis=1)
    of_A, of_B = ([_Component(drawn, j, V, *ends) for j in range(len(model.groups))] for ends in ((A, B), (B, A)))
    at_A, at_B = (np.array([component.values(()) for component in parts]) for parts in (of_A, of_B))
    f_A, f_B = at_A.sum(axis=0), at_B.sum(axis=0)
    variance = 0.5 * (f_A.var(axis=1) + f_B.var(axis=1))

    parameters, region = np.empty((1 + paths, space.dim)), Region(space, space.constraints)
    for i in range(space.dim):
        if region.plain:
            holding = [j for j, group in enumerate(model.groups) if i in group]
            change = sum(at_A[j] - of_A[j].values((i,)) for j in holding)
        else:
            moved, rows = _changed(region, *raw, i)
            change = f_A[:, rows] - sum(part.at(moved) for part in of_A)
        parameters[:, i] = 0.5 * np.mean(np.square(change), axis=1)

    if space.conditional:
        at_A, at_B = np.split(_at_home(space, model, np.dstack([at_A, at_B]), np.vstack([A, B])), 2, axis=2)
    M = len(model.decomposition)
    groups = np.array([0.5 * (_cov(at_A[j], f_A) + _cov(at_B[j], f_B)) for j in range(M)])
    if model.full_order:
        for j, group in enumerate(model.decomposition.groups):
            moved = of_B[-1].at(_moved(space, *raw[::-1], group)) if space.conditional else of_B[-1].values(group)
            groups[j] += _cov(moved - at_B[-1], f_A)
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
        self.V, self.Z, self.W = V, Z, W
        self.terms, self.X, self.group = paths[0].terms.only(j), paths[0].XT.T, paths[0].groups[j]
        self.priors: list[PriorDraw] = [path.priors[j] for path in paths]
        self.r2 = _squared(Z, self.X, self.terms, self.group)
        self.angles = [prior.angle(Z[:, self.group]) for prior in self.priors]

    def values(self, columns: Sequence[int]) -> Array:
        """(1 + S, N), with these columns, all of this component, from W."""
        old, new = ([_squared(points, self.X, self.terms, (i,)) for i in columns] for points in (self.Z, self.W))
        r2 = self.r2 + sum(b - a for a, b in zip(old, new, strict=True))
        values = (_radial(r2, self.terms) @ self.V).T
        for p, (prior, angle) in enumerate(zip(self.priors, self.angles, strict=True)):
            turns = (prior.turn(self.group.index(i), self.Z[:, i], self.W[:, i]) for i in columns)
            values[1 + p] += prior.at_angle(sum(turns, angle))
        return values

    def at(self, points: Array) -> Array:
        """(1 + S, N), at other points."""
        values = (_radial(_squared(points, self.X, self.terms, self.group), self.terms) @ self.V).T
        for p, prior in enumerate(self.priors):
            values[1 + p] += prior.at_angle(prior.angle(points[:, self.group]))
        return values


def _samples(space: Space, rng: np.random.Generator) -> tuple[Array, Array]:
    """A and B; parameters that do not exist have a value as well, for when another one brings them about."""
    N = int(2 ** np.clip(np.floor(np.log2(_WORK / space.dim)), 6, 10))
    if space.constraints:
        region = Region(space, space.constraints)
        return _open(space, region.sample(N, rng), rng), _open(space, region.sample(N, rng), rng)
    if space.conditional:
        first, second = np.hsplit(_spread(N, 2 * space.dim, rng), 2)
        return first, second
    first, second = np.hsplit(_spread(N, 2 * space.dim, rng), 2)
    return space.snap(first), space.snap(second)


def _open(space: Space, Z: Array, rng: np.random.Generator) -> Array:
    """The points with random values for what does not exist there."""
    return np.where(space.active(Z), Z, rng.random(Z.shape)) if space.conditional else Z


def _moved(space: Space, Z: Array, W: Array, columns: Sequence[int]) -> Array:
    """The points Z with these columns from W."""
    points = Z.copy()
    points[:, list(columns)] = W[:, list(columns)]
    return space.snap(points)


def _changed(region: Region, Z: Array, W: Array, i: int) -> tuple[Array, NDArray[np.intp]]:
    """Allowed points that are Z with another value of dimension i, from W, and of which rows of Z they are."""
    moved = _moved(region.space, Z, W, (i,))
    rows = np.flatnonzero(region.contains(moved))
    if len(rows) > _ENOUGH * len(Z):
        return moved[rows], rows
    rows, space = np.arange(min(len(Z), _TIED)), region.space
    near = [Region(space, space.constraints, {i: W[n, i]}).nearest(space.snap(Z[n])) for n in rows]
    return np.array(near), rows


def _at_home(space: Space, model: AdditiveGP, values: Array, Z: Array) -> Array:
    """Values of the groups, (M, 1 + S, N), where what one adds on average by existing is that of whom it depends on."""
    values, groups, exists = values.copy(), model.decomposition.groups, space.active(Z)
    for j, group in enumerate(groups):
        needs = [other for i in group for other in space.needs(space.names[i]) if space.names.index(other) not in group]
        if needs:
            patterns, which = np.unique(exists[:, group], axis=0, return_inverse=True)
            levels = np.stack([values[j][:, which == k].mean(axis=1) for k in range(len(patterns))], axis=1)[:, which]
            values[j] -= levels
            values[next(k for k, home in enumerate(groups) if space.names.index(needs[0]) in home)] += levels
    return values


def _cov(a: Array, b: Array) -> Array:
    """Covariance of rows, (1 + S,)."""
    return np.mean((a - a.mean(axis=1, keepdims=True)) * (b - b.mean(axis=1, keepdims=True)), axis=1)


def background(space: Space, rng: np.random.Generator) -> Array:
    """B: points spread evenly over the space."""
    return space.snap(_spread(_AVERAGED, space.dim, rng))


class Effect:
    """e_g of group j, averaged over B: call it with points of the group's dimensions."""

    def __init__(self, model: AdditiveGP, j: int, B: Array) -> None:
        self._data, self._group, self._B = model._observed(), list(model.decomposition.groups[j]), B
        # Of each term: squared distances in the dimensions averaged out, from B to X, (S, n), and within B, (S S, 1).
        self._terms: list[tuple[Terms, Array, Array]] = []
        for k in [j, len(model.groups) - 1] if model.full_order else [j]:
            terms, rest = model.terms.only(k), [i for i in model.groups[k] if i not in self._group]
            points = B if rest else B[:1]  # nothing to average: one point says it
            to_data, between = (_squared(points, W, terms, rest) for W in (self._data.XT.T, points))
            self._terms.append((terms, to_data, between.reshape(-1, 1)))

    @on_one_thread
    def __call__(self, Z: Array) -> tuple[Array, Array]:
        """Mean and standard deviation at each row of Z (G, d), on the model's scale."""
        B = self._B
        points = np.zeros((len(Z), B.shape[1]))
        points[:, self._group] = Z
        centre, level = self._kernel(B).mean(axis=0), self._kernel(B, B).mean()
        same = float(self._kernel(B[:1], B[:1])[0, 0])  # c(z, z) before the mean is taken off, wherever z is
        means, variances = [], []
        for block in np.split(points, range(_BLOCK, len(Z), _BLOCK)):
            c = self._kernel(block) - centre
            V = c @ self._data.L_inv.T
            prior = same - 2.0 * self._kernel(block, B).mean(axis=1) + level
            means.append(c @ self._data.alpha)
            variances.append(np.maximum(prior - np.einsum("gq,gq->g", V, V), 0.0))
        return np.concatenate(means), np.sqrt(np.concatenate(variances))

    def _kernel(self, Z: Array, W: Array | None = None) -> Array:
        """c(z, x) before the mean is taken off, (G, n); with W that of points of the group, both averaged, (G, R)."""
        ends = self._data.XT.T if W is None else W
        total = np.zeros((len(Z), len(ends)))
        for terms, to_data, between in self._terms:
            r2, others = _squared(Z, ends, terms, self._group), to_data if W is None else between
            total += sum((_radial(r2 + row, terms) for row in others), np.zeros_like(r2)) / len(others)
        return total


class Pool:
    """Allowed points of a space with conditions or known constraints, from which averages are made."""

    def __init__(self, space: Space, rng: np.random.Generator) -> None:
        self.space, self.region = space, Region(space, space.constraints)
        self._linear = [c for c in space.constraints if not isinstance(c, Known)]
        size = _POOL if len(self._linear) == len(space.constraints) else _KNOWN_POOL
        self.points = _open(space, self.region.sample(size, rng), rng)

    def outer(self, group: Sequence[int]) -> list[int]:
        """Parameters of the group that depend on others outside of it: these must let them exist."""
        inside = {self.space.names[i] for i in group}
        return [i for i in group if not dict(self.space.parameters[i].when or ()).keys() <= inside]

    def having(self, group: Sequence[int], z: Array) -> Array:
        """Points with these values of the group, (S, D); none where nothing allowed has them."""
        U = self.points.copy()
        U[:, list(group)] = z
        U = self.space.snap(U)
        U = U[self.space.active(U)[:, self.outer(group)].all(axis=1)]
        found = U[self.region.contains(U)][:_WITHIN]
        if len(found) or not len(U) or not self._linear:
            return found
        try:  # what is tied cannot be changed alone
            fixed = dict(zip(group, z.tolist(), strict=True))
            U = Region(self.space, self._linear, fixed).sample(2 * _WITHIN, np.random.default_rng(0))
        except SpaceError:
            return found
        return U[self.region.contains(U)][:_WITHIN]


class EffectWithin:
    """e_g of group j over the points that a space with conditions or known constraints allows.

    Called with points of some of the group's dimensions, it averages over the others too.
    """

    def __init__(self, model: AdditiveGP, j: int, pool: Pool, dims: Sequence[int]) -> None:
        self._model, self._group, self._pool, space = model, list(dims), pool, pool.space
        names = {space.names[i] for i in self._group}
        after = {i for i, name in enumerate(space.names) if names & space.needs(name).keys()}
        others = (k for k, group in enumerate(model.decomposition.groups) if after & set(group))
        self._components = sorted({j, *others, *([len(model.groups) - 1] if model.full_order else [])})
        B = space.snap(pool.points)
        self._B = B[space.active(B)[:, pool.outer(self._group)].all(axis=1)][:_WITHIN]
        self.exists = len(self._B) > 0  # are there points that have all of these parameters?

    @on_one_thread
    def __call__(self, Z: Array) -> tuple[Array, Array]:
        """Mean and standard deviation at each row of Z (G, d), on the model's scale; NaN where it does not exist."""
        found = np.full((2, len(Z)), np.nan)
        for g, z in enumerate(Z):
            if self.exists and len(points := self._pool.having(self._group, z)):
                weights = np.repeat([1.0 / len(points), -1.0 / len(self._B)], [len(points), len(self._B)])
                found[:, g] = weighted_sum(self._model, np.vstack([points, self._B]), weights, self._components)
        return found[0], found[1]


def weighted_sum(
    model: AdditiveGP, Z: Array, weights: Array, components: Sequence[int] | None = None
) -> tuple[float, float]:
    """Mean and standard deviation of sum_i weights_i f(Z_i), f the sum of some components, or of all."""
    data, ZT = model._observed(), np.ascontiguousarray(Z.T)
    parts = [model.terms.only(j) for j in (range(len(model.groups)) if components is None else components)]
    c, prior = (weights @ sum(kernels.cross(ZT, ends, part) for part in parts) for ends in (data.XT, ZT))
    variance = float(prior @ weights - np.square(data.L_inv @ c).sum())
    return float(c @ data.alpha), math.sqrt(max(variance, 0.0))


def _spread(count: int, dim: int, rng: np.random.Generator) -> Array:
    from scipy.stats import qmc  # half a second to import

    return qmc.Sobol(dim, scramble=True, rng=rng).random(count)


def _squared(Z: Array, W: Array, terms: Terms, dims: Sequence[int]) -> Array:
    """The part of these dimensions in a term's squared scaled distances between rows, (m, p)."""
    r2 = np.zeros((len(Z), len(W)))
    for i in dims:
        difference = Z[:, i, None] - W[:, i]
        r2 += terms.inv_l2[terms.dims == i] * (difference != 0.0 if terms.nominal[i] else np.square(difference))
    return r2


def _radial(r2: Array, terms: Terms) -> Array:
    """The kernel of one group at squared scaled distances: that of one dimension, at points so far from the origin."""
    line = Terms(np.zeros(1, np.int64), np.array([0, 1]), np.ones(1), terms.s2, np.zeros(1, bool), terms.family)
    # Differences of large numbers may fall below zero by rounding.
    r = np.sqrt(np.maximum(r2, 0.0)).reshape(1, -1)
    return kernels.cross(np.zeros((1, 1)), r, line).reshape(r2.shape)
