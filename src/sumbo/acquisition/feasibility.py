"""How likely an evaluation succeeds at a point, learned from those that failed.

Whether a point failed is a second set of values at the same points, so the model of the objective serves once more: the
same covariance, already factorised, with labels in place of values. That costs next to nothing, needs no fit when
failures are still few, and takes parameters that do not matter for the objective to matter little for failure as well.

| symbol | shape  | meaning                                                               |
|--------|--------|-----------------------------------------------------------------------|
| Z      | (m, D) | candidate points of the unit cube                                     |
| c      | (n,)   | labels: 1 where the evaluation succeeded, -1 where it failed          |
| mu, s2 | (m,)   | posterior mean and variance of the label, of prior mean 1, variance 1 |

P(success at z) = Phi(mu / sqrt(s2 + noise)): 0.83 where nothing is known, towards 1 among successes, 0 among failures.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from sumbo._typing import Array
from sumbo.gp.additive import AdditiveGP, Moments

_NOISE = 0.1  # variance; how far a single failure may be a matter of luck
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True, slots=True)
class Feasibility:
    """The logarithm of the probability that an evaluation succeeds, to be added to that of an expected improvement."""

    _labels: AdditiveGP  # of c - 1
    _prior: float  # variance of the model's prior, by which the label's is scaled to 1

    @classmethod
    def of(cls, model: AdditiveGP, failed: NDArray[np.bool_]) -> "Feasibility | None":
        """From the model of the objective and which of its observations failed, (n,); None if none did."""
        if not failed.any():
            return None
        return cls(model.with_values(np.where(failed, -2.0, 0.0)), float(np.square(model.scales).sum()))

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
        s2 = moments.variance / self._prior + _NOISE
        return (1.0 + moments.mean) / np.sqrt(s2), s2, moments
