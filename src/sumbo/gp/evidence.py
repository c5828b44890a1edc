"""The marginal likelihood of an additive GP and its exact gradient.

    log p(y | X) = -1/2 y^T K^-1 y - 1/2 log |K| - n/2 log 2 pi,     K = sum_j K_j + noise I
    d log p / d theta = 1/2 tr((alpha alpha^T - K^-1) dK / d theta),  alpha = K^-1 y

| symbol | shape  | meaning                                   |
|--------|--------|-------------------------------------------|
| XT     | (D, n) | points, one row per dimension             |
| y      | (n,)   | values                                    |
| by_l   | (P,)   | derivative by each log lengthscale        |
| by_s2  | (M,)   | derivative by each group's log variance   |
"""

from dataclasses import dataclass

import numpy as np

from sumbo._typing import Array
from sumbo.gp import kernels, linalg
from sumbo.gp.kernels import Terms

LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True, slots=True)
class Evidence:
    """log p(y | X) with its gradient."""

    value: float
    by_log_lengthscale: Array
    by_log_variance: Array
    by_log_noise: float


def log_evidence(XT: Array, y: Array, terms: Terms, noise_variance: float) -> float:
    """log p(y | X)."""
    if len(y) == 0:
        return 0.0
    L = _factor(XT, terms, noise_variance)
    return _value(y, linalg.solve_factored(L, y), L)


def evidence_with_gradient(XT: Array, y: Array, terms: Terms, noise_variance: float) -> Evidence:
    """log p(y | X) and its gradient by the logs of lengthscales, variances and noise variance."""
    if len(y) == 0:  # LAPACK refuses empty matrices
        return Evidence(0.0, np.zeros(len(terms.dims)), np.zeros(len(terms.s2)), 0.0)
    L = _factor(XT, terms, noise_variance)
    alpha = linalg.solve_factored(L, y)
    value = _value(y, alpha, L)
    K_inv = linalg.inverse_in_place(L)
    by_l, by_s2 = kernels.evidence_traces(XT, terms, alpha, K_inv)
    by_noise = 0.5 * noise_variance * float(alpha @ alpha - K_inv.trace())
    return Evidence(value, by_l, by_s2, by_noise)


def _factor(XT: Array, terms: Terms, noise_variance: float) -> Array:
    def covariance() -> Array:
        K = kernels.gram(XT, terms)
        K.flat[:: len(K) + 1] += noise_variance
        return K

    return linalg.cholesky_in_place(covariance(), covariance)[0]


def _value(y: Array, alpha: Array, L: Array) -> float:
    return float(-0.5 * (y @ alpha) - np.log(L.diagonal()).sum() - 0.5 * len(y) * LOG_2PI)
