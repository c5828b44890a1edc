"""The values as a model sees them: standardised, failures filled in, and perhaps with the bad half compressed.

| symbol | shape | meaning                                        |
|--------|-------|------------------------------------------------|
| y      | (n,)  | values, larger is better, NaN where one failed |
| z      | (n,)  | the same on a model's scale                    |
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sumbo._typing import Array

_CHARGE = 0.15  # nats for each value: heavy tails pay several times that, sums of functions of groups half


def standardise(y: Array) -> Array:
    """Values with mean 0 and standard deviation 1; constants become zeros; 1e300 and 1e-300 are as good as 1.

    Values in another unit, times a power of two, give the very same result, and so do values to which a constant was
    added without rounding: they are taken relative to the first one, and scaled by powers of two only.
    """
    if len(y) == 0:
        return y
    scaled = np.ldexp(y, -np.frexp(np.abs(y).max())[1])
    apart = scaled - scaled[0]
    if _spread(apart) <= 1e-14:
        return np.zeros_like(apart)
    apart = np.ldexp(apart, -np.frexp(np.abs(apart).max())[1])
    return (apart - apart.mean()) / _spread(apart)


def _spread(y: Array) -> float:
    return float(np.sqrt(np.mean(np.square(y - y.mean()))))


def observed_values(y: Array) -> Array:
    """Standardised values; a failed point counts as the worst value seen, so that it repels the search."""
    failed = ~np.isfinite(y)
    if failed.all():
        return np.zeros(len(y))
    return standardise(np.where(failed, y[~failed].min(), y))


@dataclass(frozen=True)
class OutcomeTransform:
    """Standardised values, as they are and with the worse half compressed."""

    plain: Array

    def on(self, compressed: bool) -> tuple[Array, float]:
        """The values on a scale, and what to add to the evidence there to compare it with that on the other.

        These are the logs of the slopes, p(y) = p(z) |dz/dy|, and a charge for compressing: a compressed sum is no sum
        any more, so what groups could bring is given up.
        """
        if not compressed:
            return self.plain, 0.0
        z, log_slopes, _ = self._compressed
        return z, log_slopes - _CHARGE * len(z)

    def error_above(self, predicted: Array, compressed: bool) -> float:
        """How far predictions on a scale are off, on average over the values above the median, in units of `plain`."""
        above = self.plain > np.median(self.plain)
        unit = self._compressed[2] if compressed else 1.0
        return unit * float(np.abs(predicted - self.on(compressed)[0])[above].mean()) if above.any() else 0.0

    @cached_property
    def _compressed(self) -> tuple[Array, float, float]:
        """Below the median m values become m - s log(1 + (m - y) / s), s being how far the best is above m.

        Whether a bad point is ten or a thousand times worse than the median does not tell where the best one is, but
        would dominate the fit. Also the log of the slopes, and what the new unit is on the old scale, above m.
        """
        y = self.plain
        if len(y) == 0:
            return y, 0.0, 1.0
        median = float(np.median(y))
        span = max(float(y.max()) - median, 1e-3)  # many values may be the best one
        below = np.log1p(np.maximum(median - y, 0.0) / span)
        z = np.where(y < median, median - span * below, y)
        spread = float(z.std())
        if spread < 1e-14:
            return y, 0.0, 1.0
        return standardise(z), -float(below.sum()) - len(y) * float(np.log(spread)), spread
