"""What a point is worth: schedules for beta, upper confidence bounds, expected improvement, feasibility.

An acquisition turns posterior moments into a value and its partial derivatives by mean and variance.

| symbol   | shape            | meaning                                                      |
|----------|------------------|--------------------------------------------------------------|
| mu, s2   | (m,) or (M, m)   | posterior mean and variance, of the sum or of each component |
| beta_t   | scalar           | weight of exploration at query t; sqrt(beta_t) multiplies sigma |
| Z        | (m, D)           | candidate points of the unit cube                            |
| c        | (n,)             | labels: 1 where the evaluation succeeded, -1 where it failed |
"""

import math
import numbers
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr, ndtr

from sumbo._typing import Array
from sumbo.errors import SettingError
from sumbo.gp.additive import AdditiveGP, Moments

# (value, d value / d mean, d value / d variance)
Partials = tuple[Array, Array, Array]
Acquisition = Callable[[Array, Array], Partials]

_LABEL_NOISE = 0.1  # variance; how far a single failure may be a matter of luck
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


def additive_beta(rule: str | float, t: int, sizes: Sequence[int], delta: float = 0.1) -> float:
    """beta_t of Add-GP-UCB for groups of these sizes: "practical", "theorem", or a constant."""
    if rule == "practical":
        return practical_beta(t, max(sizes))
    if rule == "theorem":
        return additive_theorem_beta(t, d=max(sizes), D=sum(sizes), M=len(sizes), delta=delta)
    return float(rule)


def full_beta(rule: str | float, t: int, D: int, delta: float = 0.1) -> float:
    """beta_t of GP-UCB: the same rules."""
    return full_theorem_beta(t, D=D, delta=delta) if rule == "theorem" else additive_beta(rule, t, [D])


def ucb(beta_t: float) -> Acquisition:
    """mu + sqrt(beta_t) sigma. On components and summed over them, this is equation `addgpbutility`."""
    root = math.sqrt(max(beta_t, 0.0))

    def acquisition(mu: Array, s2: Array) -> Partials:
        sigma = np.sqrt(s2)
        return mu + root * sigma, np.ones_like(mu), 0.5 * root / sigma

    return acquisition


def log_expected_improvement(incumbent: float, spread: float = 1.0) -> Acquisition:
    """log E[max(f - incumbent, 0)], finite and with a useful slope far away from any hope of improvement.

    Standard deviations are multiplied by `spread`, where they are known to be too large or too small.
    """

    def acquisition(mu: Array, s2: Array) -> Partials:
        sigma = spread * np.sqrt(s2)
        log_h, by_u, phi_over_h = log_improvement((mu - incumbent) / sigma)
        # EI = sigma h(u) has derivatives Phi(u) by the mean and phi(u) by sigma.
        return np.log(sigma) + log_h, by_u / sigma, phi_over_h / (2.0 * s2)

    return acquisition


def nothing(mu: Array, s2: Array) -> Partials:
    """The same everywhere: for a search for what is feasible, before anything is."""
    return np.zeros_like(mu), np.zeros_like(mu), np.zeros_like(mu)


def log_improvement(u: Array) -> Partials:
    """log h(u), Phi(u)/h(u) = d log h / du and phi(u)/h(u), where h(u) = phi(u) + u Phi(u), accurate for every u.

    Above -1 as written. Below, h = phi q with q = 1 - |u| R and R = Phi(u)/phi(u) the Mills ratio by erfcx; under -1e3,
    where q loses its digits, by its asymptotic series.
    """
    u = np.asarray(u, dtype=float)
    near = np.maximum(u, -1.0)
    phi, Phi = np.exp(-0.5 * near * near - _LOG_SQRT_2PI), ndtr(near)
    h = phi + near * Phi
    far = np.minimum(u, -1.0)
    mills = math.sqrt(math.pi / 2.0) * erfcx(-far / math.sqrt(2.0))
    inverse = 1.0 / np.square(far)
    q = np.where(far < -1e3, inverse * (1.0 - 3.0 * inverse * (1.0 - 5.0 * inverse)), 1.0 + far * mills)
    above = u > -1.0
    log_h = np.where(above, np.log(h), -0.5 * far * far - _LOG_SQRT_2PI + np.log(q))
    return log_h, np.where(above, Phi / h, mills / q), np.where(above, phi / h, 1.0 / q)


class LogProbability(Protocol):
    """The logarithm of a probability at points of the cube, to be added to that of an expected improvement."""

    def value(self, Z: Array) -> Array:
        """log P, (m,)."""

    def value_and_gradient(self, Z: Array) -> tuple[Array, Array]:
        """log P, (m,), and its gradient, (m, D)."""


@dataclass(frozen=True, slots=True)
class Satisfied:
    """The logarithm of the probability that a constraint holds, by a model of it: that its value is above a limit.

    log P(g(z) >= limit) = log Phi((mu - limit) / sigma). With an expected improvement's logarithm it makes the
    constrained expected improvement (Gardner et al. 2014), as logarithms (Ament et al. 2023).
    """

    model: AdditiveGP
    limit: float  # on the model's scale

    def value(self, Z: Array) -> Array:
        moments = self.model.moments(Z)
        return log_ndtr((moments.mean - self.limit) / np.sqrt(moments.variance))

    def value_and_gradient(self, Z: Array) -> tuple[Array, Array]:
        moments = self.model.moments(Z)
        sigma = np.sqrt(moments.variance)
        u = (moments.mean - self.limit) / sigma
        value = log_ndtr(u)
        slope = np.exp(-0.5 * u * u - _LOG_SQRT_2PI - value)  # d log Phi / du
        return value, moments.gradient(slope / sigma, -0.5 * slope * u / moments.variance)

    def shortfall(self, Z: Array) -> Array:
        """How far the predicted value is below the limit, (m,); 0 where the constraint is expected to hold."""
        return np.maximum(self.limit - self.model.moments(Z).mean, 0.0)


@dataclass(frozen=True, slots=True)
class Feasibility:
    """The logarithm of the probability that an evaluation succeeds, to be added to that of an expected improvement.

    It is learned from those that failed. Whether a point failed is a second set of values at the same points, so the
    model of the objective serves once more: the same covariance, already factorised, with labels in place of values.
    That costs next to nothing, needs no fit when failures are still few, and takes parameters that do not matter for
    the objective to matter little for failure as well. With mu and s2 of the label, of prior mean 1 and variance 1,

        P(success at z) = Phi(mu / sqrt(s2 + noise))

    is 0.83 where nothing is known, towards 1 among successes, 0 among failures.
    """

    _labels: AdditiveGP  # of c - 1
    _prior: float  # variance of the model's prior, by which the label's is scaled to 1

    @classmethod
    def of(cls, model: AdditiveGP, failed: NDArray[np.bool_]) -> "Feasibility | None":
        """From the model of the objective and which of its observations failed, (n,); None if none did."""
        if not failed.any():
            return None
        labels, prior = np.where(failed, -2.0, 0.0), float(np.square(model.scales).sum())
        if model.known_variance is not None:  # of the values: however they vary, that they succeeded is certain
            return cls(model.condition(model.X, labels), prior)
        return cls(model.with_values(labels), prior)

    def value(self, Z: Array) -> Array:
        """log P(success), (m,)."""
        return log_ndtr(self._standardised(Z)[0])

    def value_and_gradient(self, Z: Array) -> tuple[Array, Array]:
        """log P(success), (m,), and its gradient, (m, D)."""
        u, s2, moments = self._standardised(Z)
        value = log_ndtr(u)
        slope = np.exp(-0.5 * u * u - _LOG_SQRT_2PI - value)  # d log Phi / du
        by_mean, by_variance = slope / np.sqrt(s2), -0.5 * slope * u / s2
        return value, moments.gradient(by_mean, by_variance / self._prior)

    def _standardised(self, Z: Array) -> tuple[Array, Array, Moments]:
        moments = self._labels.moments(Z)
        s2 = moments.variance / self._prior + _LABEL_NOISE
        return (1.0 + moments.mean) / np.sqrt(s2), s2, moments


def check_beta(beta: str | float, delta: float = 0.1) -> None:
    """Raise a SettingError unless beta is "practical", "theorem" or a number from 0 up, and delta a probability."""
    # Compared, not converted: an integer of 400 digits is no float.
    is_number = isinstance(beta, numbers.Real) and 0.0 <= beta <= sys.float_info.max
    is_rule = isinstance(beta, str) and beta in ("practical", "theorem")
    if not is_number and not is_rule:
        raise SettingError(f'beta must be "practical", "theorem" or a number from 0 up; got {beta!r}')
    if not isinstance(delta, numbers.Real) or not 0.0 < delta < 1.0:
        raise SettingError(f"delta must be between 0 and 1; got {delta!r}")
