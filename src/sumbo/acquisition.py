"""What a point is worth: schedules for beta, upper confidence bounds, expected improvement.

An acquisition turns posterior moments into a value and its partial derivatives by mean and variance; `value_at` and
`value_and_gradient_at` carry them to points of the cube.

| symbol   | shape            | meaning                                                      |
|----------|------------------|--------------------------------------------------------------|
| mu, s2   | (m,) or (M, m)   | posterior mean and variance, of the sum or of each component |
| beta_t   | scalar           | weight of exploration at query t; sqrt(beta_t) multiplies sigma |
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import erfcx, log_ndtr

from sumbo.errors import SettingError
from sumbo.kernels import Array

# (value, d value / d mean, d value / d variance)
Partials = tuple[Array, Array, Array]
Acquisition = Callable[[Array, Array], Partials]

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


def practical_beta(t: int, d: int) -> float:
    """0.2 d log 2t, the paper's choice in practice; d is the size of the largest group (D for GP-UCB)."""
    return 0.2 * d * math.log(2.0 * t)


def additive_theorem_beta(t: int, *, d: int, D: int, M: int, delta: float = 0.1) -> float:
    """2 log(M pi^2 t^2 / (2 delta)) + 2 d log(D t^3): theorem `addGPBthm`, for Add-GP-UCB."""
    return 2.0 * math.log(M * math.pi**2 * t**2 / (2.0 * delta)) + 2.0 * d * math.log(D * t**3)


def full_theorem_beta(t: int, *, D: int, delta: float = 0.1) -> float:
    """2 log(2 pi^2 t^2 / delta) + 2 D log(D t^3): theorem `GPBthm`, for GP-UCB."""
    return 2.0 * math.log(2.0 * t**2 * math.pi**2 / delta) + 2.0 * D * math.log(D * t**3)


def ucb(beta_t: float) -> Acquisition:
    """mu + sqrt(beta_t) sigma. On components and summed over them, this is equation `addgpbutility`."""
    root = math.sqrt(max(beta_t, 0.0))

    def acquisition(mu: Array, s2: Array) -> Partials:
        sigma = np.sqrt(s2)
        return mu + root * sigma, np.ones_like(mu), 0.5 * root / sigma

    return acquisition


def log_expected_improvement(incumbent: float) -> Acquisition:
    """log E[max(f - incumbent, 0)], finite and with a useful slope far away from any hope of improvement."""

    def acquisition(mu: Array, s2: Array) -> Partials:
        sigma = np.sqrt(s2)
        u = (mu - incumbent) / sigma
        log_h = log_improvement(u)
        by_mu = np.exp(log_ndtr(u) - log_h) / sigma  # EI' by mean is Phi(u)
        by_sigma = np.exp(-0.5 * u * u - _LOG_SQRT_2PI - log_h) / sigma  # and by sigma it is phi(u)
        return np.log(sigma) + log_h, by_mu, by_sigma / (2.0 * sigma)

    return acquisition


def log_improvement(u: Array) -> Array:
    """log(phi(u) + u Phi(u)) with full relative accuracy for every u.

    Above -1 as written. Below, phi(u) (1 - |u| R) with R = Phi(u)/phi(u) the Mills ratio by erfcx; under -1e5, where
    1 - |u| R loses its digits, its asymptotic value 1/u^2.
    """
    u = np.asarray(u, dtype=float)
    log_phi = -0.5 * u * u - _LOG_SQRT_2PI
    near = np.maximum(u, -1.0)
    above = np.log(np.exp(-0.5 * near * near - _LOG_SQRT_2PI) + near * np.exp(log_ndtr(near)))
    far = np.minimum(u, -1.0)
    mills = math.sqrt(math.pi / 2.0) * erfcx(-far / math.sqrt(2.0))
    middle = np.log(np.maximum(1.0 + far * mills, 1e-300))
    tail = -2.0 * np.log(-far)
    return np.where(u > -1.0, above, log_phi + np.where(far < -1e5, tail, middle))


def check_beta(beta: str | float) -> None:
    """Raise a SettingError unless beta is "practical", "theorem" or a number that is not negative."""
    named = beta in ("practical", "theorem") if isinstance(beta, str) else math.isfinite(beta) and beta >= 0.0
    if not named:
        raise SettingError(f'beta must be "practical", "theorem" or a number from 0 up; got {beta!r}')
