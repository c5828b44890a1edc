"""TuRBO-1, written from its paper: Eriksson, Pearce, Gardner, Turner, Poloczek, "Scalable global optimization via local
Bayesian optimization" (NeurIPS 2019), section 2 and its supplement.

One trust region around the best point, a box of base side L whose sides are shaped by the model's lengthscales. A point
of a Thompson sample's minimum in it is evaluated next. L doubles after 3 successes in a row, halves after D failures in
a row, and below 2^-7 everything starts again from new points, the old ones forgotten.

    X   points of this start, n x D, in the unit cube      y   their values, standardised; lower is better
    ls  lengthscales, D                                    s2  signal variance        v2  noise variance
"""

import numpy as np
from peers import Objective
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.stats import qmc

from sumbo._typing import Array
from sumbo.regret import Direction
from sumbo.space import Space

_SIDE, _LEAST, _LARGEST = 0.8, 2.0**-7, 1.6
_SUCCESSES = 3
_INITIAL = 40  # at most: the paper's 2 D would spend a budget of hundreds where D is large
_CANDIDATES = 2000  # the paper's is min(100 D, 5000); a joint sample costs the cube of it
_PERTURBED = 20  # coordinates of a candidate that leave the centre, on average
_BOUNDS = {"lengthscale": (0.005, 2.0), "signal": (0.05, 20.0), "noise": (5e-4, 0.2)}  # the supplement's
_STEPS = 30  # of the fit, which begins where the last one ended
_JITTER = 1e-6


def turbo(f: Objective, space: Space, direction: Direction, budget: int, seed: int) -> None:
    """TuRBO-1 with batches of one."""
    sign, rng, D = (1.0 if direction == "minimize" else -1.0), np.random.default_rng(seed), space.dim
    left = budget
    while left:
        X = space.snap(_sobol(min(2 * D, _INITIAL, left), D, rng))
        losses = [sign * f(space.from_unit(u)) for u in X]
        left -= len(X)
        side, successes, failures, theta = _SIDE, 0, 0, None
        while left and side >= _LEAST:
            y = _standardised(losses)
            theta = fit(X, y, theta)
            u = space.snap(suggestion(X, y, theta, side, rng)[None, :])
            loss = sign * f(space.from_unit(u[0]))
            left -= 1
            better = loss < min(losses)
            X, losses = np.vstack([X, u]), [*losses, loss]
            successes, failures = (successes + 1, 0) if better else (0, failures + 1)
            if successes == _SUCCESSES:
                side, successes = min(2.0 * side, _LARGEST), 0
            elif failures == D:
                side, failures = side / 2.0, 0


def _sobol(n: int, D: int, rng: np.random.Generator) -> Array:
    """The first n scrambled Sobol points."""
    return qmc.Sobol(D, rng=rng).random_base2((n - 1).bit_length())[:n]


def _standardised(losses: list[float]) -> Array:
    y = np.asarray(losses)
    return (y - y.mean()) / (y.std() or 1.0)


# --- the trust region ---


def suggestion(X: Array, y: Array, theta: Array, side: float, rng: np.random.Generator) -> Array:
    """The lowest of the candidates in a sample of the posterior."""
    candidates = candidates_of(X[np.argmin(y)], _unpacked(theta)[0], side, rng)
    return candidates[np.argmin(posterior_sample(candidates, X, y, theta, rng))]


def candidates_of(centre: Array, lengthscales: Array, side: float, rng: np.random.Generator) -> Array:
    """Sobol points of the region, of whose coordinates some 20 are kept and the others are the centre's."""
    D = len(centre)
    sides = side * lengthscales / np.exp(np.mean(np.log(lengthscales)))  # their product is side^D
    low, high = np.clip(centre - sides / 2, 0.0, 1.0), np.clip(centre + sides / 2, 0.0, 1.0)
    n = min(100 * D, _CANDIDATES)
    points = low + (high - low) * _sobol(n, D, rng)
    moved = rng.random((n, D)) < min(1.0, _PERTURBED / D)
    moved[np.arange(n), rng.integers(D, size=n)] = True  # at least one of each
    return np.where(moved, points, centre)


def posterior_sample(Z: Array, X: Array, y: Array, theta: Array, rng: np.random.Generator) -> Array:
    """A joint sample of the function at Z."""
    ls, s2, v2 = _unpacked(theta)
    factor = cholesky(s2 * matern(X / ls, X / ls) + v2 * np.eye(len(X)), lower=True)
    cross = solve_triangular(factor, s2 * matern(X / ls, Z / ls), lower=True)
    covariance = s2 * matern(Z / ls, Z / ls)
    covariance -= cross.T @ cross
    covariance.flat[:: len(Z) + 1] += _JITTER
    mean = cross.T @ solve_triangular(factor, y, lower=True)
    return mean + cholesky(covariance, lower=True, overwrite_a=True, check_finite=False) @ rng.standard_normal(len(Z))


# --- its model: a Gaussian process with a Matern-5/2 kernel ---


def matern(A: Array, B: Array) -> Array:
    """The kernel of scaled points: (1 + r + r^2 / 3) exp(-r), where r is sqrt(5) times their distance."""
    r = _distances(A, B)
    K = np.exp(-r)
    K *= 1.0 + r * (1.0 + r / 3.0)
    return K


def _distances(A: Array, B: Array) -> Array:
    squared = A @ B.T
    squared *= -2.0
    squared += np.sum(A**2, axis=1)[:, None]
    squared += np.sum(B**2, axis=1)
    np.maximum(squared, 0.0, out=squared)
    squared *= 5.0
    return np.sqrt(squared, out=squared)


def _unpacked(theta: Array) -> tuple[Array, float, float]:
    return np.exp(theta[:-2]), float(np.exp(theta[-2])), float(np.exp(theta[-1]))


def fit(X: Array, y: Array, start: Array | None) -> Array:
    """The logs of ls, s2 and v2 that make the data most likely."""
    bounds = np.log([_BOUNDS["lengthscale"]] * X.shape[1] + [_BOUNDS["signal"], _BOUNDS["noise"]])
    first = np.log([0.5] * X.shape[1] + [1.0, 5e-3]) if start is None else start
    found = minimize(surprise, first, (X, y), "L-BFGS-B", jac=True, bounds=bounds, options={"maxiter": _STEPS})
    return np.clip(found.x, *bounds.T)


def surprise(theta: Array, X: Array, y: Array) -> tuple[float, Array]:
    """The negative log evidence, without its constant, and its gradient by theta."""
    ls, s2, v2 = _unpacked(theta)
    A = X / ls
    K, r = matern(A, A), _distances(A, A)
    factor = cho_factor(s2 * K + v2 * np.eye(len(y)), lower=True)
    alpha = cho_solve(factor, y)
    value = 0.5 * y @ alpha + np.sum(np.log(np.diag(factor[0])))
    # d value / d K_ab = W_ab / 2 and d K_ab / d log ls_i = s2 (5/3) (1 + r) exp(-r) (A_ai - A_bi)^2, summed at once
    W = cho_solve(factor, np.eye(len(y))) - np.outer(alpha, alpha)
    M = s2 * W * (5.0 / 3.0) * (1.0 + r) * np.exp(-r)
    by_l = np.sum(M, axis=1) @ A**2 - np.sum(A * (M @ A), axis=0)
    return value, np.append(by_l, [0.5 * s2 * np.sum(W * K), 0.5 * v2 * np.trace(W)])
