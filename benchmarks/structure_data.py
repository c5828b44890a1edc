"""Functions whose groups or interacting pairs are known, observed at random points.

| symbol | shape        | meaning                                             |
|--------|--------------|-----------------------------------------------------|
| X, y   | (n, D), (n,) | random points in the unit cube, standardised values |
"""

from collections.abc import Callable
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import sumbo
from sumbo.gp import kernels
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.decomposition import Decomposition

Array = NDArray[np.float64]
Pairs = set[tuple[int, int]]


class Data(NamedTuple):
    """Observations of a function whose groups are known."""

    X: Array
    y: Array
    groups: Decomposition
    kernel: str

    @property
    def pairs(self) -> Pairs:
        """The pairs of dimensions that share a group."""
        return pairs_of(self.groups)


def pairs_of(groups: Decomposition) -> Pairs:
    return {pair for group in groups.groups for pair in combinations(sorted(group), 2)}


def drawn(groups: Decomposition, n: int, rng: np.random.Generator, **model: Any) -> Data:
    """A function drawn from an additive GP."""
    gp = AdditiveGP(groups, **model)
    X = rng.random((n, groups.dim))
    K = kernels.gram(np.ascontiguousarray(X.T), gp.terms)
    K += np.tril(K, -1).T + 1e-6 * np.eye(n)
    return Data(X, standardised(np.linalg.cholesky(K) @ rng.standard_normal(n)), groups, gp.kernel)


def threes(kernel: str) -> Callable[[int, int], Data]:
    """Hidden groups of 3 of 24 dimensions, lengthscale 0.5."""

    def make(n: int, seed: int) -> Data:
        rng = np.random.default_rng(seed)
        return drawn(Decomposition.random(24, 3, rng), n, rng, kernel=kernel, lengthscales=0.5)

    return make


def paper_function(n: int, seed: int) -> Data:
    problem = sumbo.problems.additive(24, 6, 4, seed)
    X = np.random.default_rng(seed).random((n, 24))
    assert problem.groups is not None
    return Data(X, standardised(problem.values(2.0 * X - 1.0)), Decomposition(problem.groups), "matern52")


def anything(n: int, seed: int) -> Data:
    """Random dimension, groups of 1 to 5, kernel, lengthscale and scales; the model's kernel is Matern-5/2."""
    rng = np.random.default_rng(100 + seed)
    order = rng.permutation(int(rng.integers(10, 25))).tolist()
    groups = []
    while order:
        size = int(rng.integers(1, 6))
        groups.append(order[:size])
        order = order[size:]
    kernel = ("se", "matern32", "matern52")[seed % 3]
    lengthscale, scales = rng.uniform(0.3, 1.0), rng.uniform(0.5, 1.5, len(groups))
    data = drawn(Decomposition(groups), n, rng, kernel=kernel, lengthscales=lengthscale, scales=scales)
    return data._replace(kernel="matern52")


def steep(n: int, seed: int) -> Data:
    """What a search saw of a sum of steep terms: exponentials, fourth powers and poles of groups of 1 to 3.

    No Gaussian process draws such functions, and no search spreads its points evenly.
    """
    rng = np.random.default_rng(200 + seed)
    order = rng.permutation(int(rng.integers(6, 13))).tolist()
    terms = []
    while order:
        size = min(int(rng.integers(1, 4)), len(order))
        term = (_exponential, _fourth_power, _pole)[int(rng.integers(3))]
        terms.append((term, order[:size], rng.uniform(0.5, 2.0, size), rng.uniform(0.2, 0.8, size)))
        order = order[size:]
    groups = Decomposition([group for _, group, _, _ in terms])

    def values(X: Array) -> Array:
        return np.sum([term(X[:, group], weights, at) for term, group, weights, at in terms], axis=0)

    found = sumbo.minimize(lambda x: float(values(x[None])[0]), [(0.0, 1.0)] * groups.dim, n, seed=seed, progress=False)
    X = np.array([trial.x for trial in found.optimizer.trials])
    return Data(X, standardised(values(X)), groups, "matern52")


def _exponential(Z: Array, weights: Array, at: Array) -> Array:
    return np.exp(2.0 * (Z - at) @ weights)


def _fourth_power(Z: Array, weights: Array, at: Array) -> Array:
    return (3.0 * (Z - at) @ weights) ** 4 + np.square(Z - at) @ weights


def _pole(Z: Array, weights: Array, at: Array) -> Array:
    return 1.0 / (0.05 + np.square(Z - at) @ weights)


def powell(n: int, seed: int) -> Data:
    """Powell-40: its groups of four are themselves sums over four pairs, which form a ring."""
    problem = sumbo.problems.get("powell-40", seed=seed)
    X, y = observed(problem, n, seed)
    assert problem.groups is not None
    rings = [ring for group in problem.groups if (ring := _ring(problem, group))]
    return Data(X, y, Decomposition(pair for ring in rings for pair in ring), "matern52")


def _ring(problem: sumbo.problems.Problem, group: tuple[int, ...]) -> list[tuple[int, int]]:
    """The pairs of a group that interact: those whose mixed difference is not zero."""
    rng = np.random.default_rng(0)
    low, high = problem_points(problem, rng.random((2, problem.dim)))
    found = []
    for i, k in combinations(group, 2):
        corners = np.tile(low, (4, 1))
        corners[[1, 3], i] = high[i]
        corners[[2, 3], k] = high[k]
        f = problem.values(corners)
        if abs(f[3] - f[2] - f[1] + f[0]) > 1e-9 * np.abs(f).max():
            found.append((i, k))
    return found


def chain(n: int, seed: int) -> Data:
    """Rosenbrock-20: neighbours interact."""
    X, y = observed(sumbo.problems.get("rosenbrock-20", seed=seed), n, seed)
    return Data(X, y, Decomposition(pairwise(range(20))), "matern52")


def graph(kernel: str) -> Callable[[int, int], Data]:
    """A draw from a GP over 15 random pairs of 20 dimensions, lengthscale 0.5; the rest alone."""

    def make(n: int, seed: int) -> Data:
        rng = np.random.default_rng(1000 + seed)
        everything = list(combinations(range(20), 2))
        groups: list[tuple[int, ...]] = [everything[k] for k in rng.choice(len(everything), 15, replace=False)]
        covered = {i for group in groups for i in group}
        groups += [(i,) for i in range(20) if i not in covered]
        return drawn(Decomposition(groups), n, rng, kernel=kernel, lengthscales=0.5)

    return make


def observed(problem: sumbo.problems.Problem, n: int, seed: int) -> tuple[Array, Array]:
    """Random points of the unit cube, and the standardised values of a problem there."""
    X = np.random.default_rng(seed).random((n, problem.dim))
    return X, standardised(problem.values(problem_points(problem, X)))


def problem_points(problem: sumbo.problems.Problem, X: Array) -> Array:
    """Points of the unit cube in the problem's own units."""
    return np.array([problem.space.array(problem.space.from_unit(x)) for x in X])


def standardised(y: Array) -> Array:
    return (y - y.mean()) / y.std()
