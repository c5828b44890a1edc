"""The values as a model sees them, and back: standardised, failures filled in, and perhaps the worse half warped.

| symbol | shape | meaning                                                               |
|--------|-------|-----------------------------------------------------------------------|
| y      | (n,)  | values, larger is better, NaN where one failed                        |
| s      | (n,)  | the same, standardised                                                |
| z      | (n,)  | the same on the model's scale: s, or s warped and standardised again  |
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sumbo._typing import Array

_LARGEST = 1e3  # standard deviation of s that is used; such a value says nothing, and more would spoil the arithmetic
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
    if apart.std() <= 1e-14:
        return np.zeros_like(apart)
    apart = np.ldexp(apart, -np.frexp(np.abs(apart).max())[1])
    return (apart - apart.mean()) / apart.std()


@dataclass(frozen=True, eq=False)
class OutcomeTransform:
    """An increasing map from values to those of a model, made from the values themselves.

    Attributes:
        s: standardised values.
        centre, unit: y = centre + unit * s.
        std: standard deviations of s that are known; None where none is above 0.
        warped: is the worse half of the values warped on the model's scale?
    """

    s: Array
    centre: float = 0.0
    unit: float = 1.0
    warped: bool = False
    std: Array | None = None

    @classmethod
    def of(cls, y: Array, std: Array | None = None, *, warped: bool = False) -> "OutcomeTransform":
        """From all values told, and what is known of their standard deviations, NaN where that is nothing.

        A failed one counts as the worst seen, so that it repels the search; its deviation is of no value.
        """
        failed = ~np.isfinite(y)
        y = np.zeros(len(y)) if failed.all() else np.where(failed, y[~failed].min(), y)
        s = standardise(y)
        if len(y) == 0 or np.ptp(s) == 0.0:
            return cls(s, float(y[0]) if len(y) else 0.0, 0.0, warped)
        low, high = np.argmin(s), np.argmax(s)
        half = (y[high] / 2.0 - y[low] / 2.0) / (s[high] - s[low])  # of the unit: the range itself may be infinite
        if std is not None:
            with np.errstate(over="ignore"):
                std = np.where(failed | ~(std > 0.0), 0.0, np.minimum(std / 2.0 / half, _LARGEST))
            std = std if std.any() else None
        return cls(s, float(2.0 * (y[low] / 2.0 - half * s[low])), float(2.0 * half), warped, std)

    @property
    def z(self) -> Array:
        """The values on the model's scale."""
        return self._warp.z if self.warped else self.s

    @property
    def known_variance(self) -> Array | None:
        """The known variances of z, to first order: the square of the map's slope times that of s (delta method)."""
        if self.std is None:
            return None
        return np.square(self.std * self._warp.slopes(self.s) if self.warped else self.std)

    @property
    def log_slope(self) -> float:
        """What to add to the evidence on this scale to compare it with that on the other.

        These are the logs of the slopes, p(s) = p(z) |dz/ds|, and a charge for warping: a warped sum is no sum any
        more, so what groups could bring is given up.
        """
        return self._warp.log_slopes - _CHARGE * len(self.s) if self.warped else 0.0

    def error_above_median(self, predicted: Array) -> float:
        """How far predictions of z are off, on average over the values above the median, in units of s."""
        above = self.s > np.median(self.s)
        unit = self._warp.spread if self.warped else 1.0
        return unit * float(np.abs(predicted - self.z)[above].mean()) if above.any() else 0.0

    def transform(self, y: float) -> float:
        """A value on the model's scale; where all are equal, infinity if it is above them, or else minus that."""
        if self.unit == 0.0:
            return math.inf if y > self.centre else -math.inf
        s = (y / 2.0 - self.centre / 2.0) / (self.unit / 2.0)
        return self._warp.do(s) if self.warped else s

    def untransform(self, z: Array) -> Array:
        """Values y for those of the model; beyond the worst one seen the map goes on straight."""
        if self.warped and len(self.s):
            z = self._warp.undo(z)
        with np.errstate(over="ignore"):
            return 2.0 * (self.centre / 2.0 + self.unit / 2.0 * z)

    @cached_property
    def _warp(self) -> "_Warp":
        """Below the median m values become m - c log(1 + (m - s) / c), c being how far the best is above m.

        Whether a bad point is ten or a thousand times worse than the median does not tell where the best one is, but
        would dominate the fit.
        """
        s = self.s
        if len(s) == 0:
            return _Warp(s, 0.0, 1.0, 0.0, 0.0, 1.0)
        median = float(np.median(s))
        span = max(float(s.max()) - median, 1e-3)  # many values may be the best one
        below = np.log1p(np.maximum(median - s, 0.0) / span)
        z = np.where(s < median, median - span * below, s)
        spread = float(z.std())
        if spread < 1e-14:
            return _Warp(s, 0.0, 1.0, 0.0, -np.inf, 1.0)
        log_slopes = -float(below.sum()) - len(s) * float(np.log(spread))
        return _Warp(standardise(z), float(z.mean()), spread, log_slopes, median, span)


@dataclass(frozen=True, slots=True)
class _Warp:
    """Warped values z, their mean and spread before they were standardised again, and what the map is made of."""

    z: Array
    mean: float
    spread: float
    log_slopes: float
    median: float
    span: float

    def slopes(self, s: Array) -> Array:
        """dz / ds."""
        return 1.0 / (self.spread * (1.0 + np.maximum(self.median - s, 0.0) / self.span))

    def do(self, s: float) -> float:
        """z of a standardised value."""
        below = max(self.median - s, 0.0)
        w = s if below == 0.0 else self.median - self.span * math.log1p(below / self.span)
        return (w - self.mean) / self.spread

    def undo(self, z: Array) -> Array:
        """s = w - c (exp(d) - 1 - d) with w = mean + spread * z, and d how many spans c it is below the median."""
        worst = float(self.z.min())
        inside = np.maximum(z, worst)
        w = self.mean + self.spread * inside
        depth = np.maximum(self.median - w, 0.0) / self.span
        deepest = max(self.median - self.mean - self.spread * worst, 0.0) / self.span
        straight = self.spread * np.exp(deepest) * (z - inside)
        return w - self.span * (np.expm1(depth) - depth) + straight
