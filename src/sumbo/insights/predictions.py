"""What the model says of each value: had it not seen it, and in the user's units.

Leave-one-out, with K the covariance of the values, noise included (Rasmussen & Williams, equation 5.12):

    mu_i      = y_i - [K^-1 y]_i / [K^-1]_ii
    sigma_i^2 = 1 / [K^-1]_ii                      of the value, noise included

Hyperparameters and groups stay those of all values: learning them again n times would take hours and change little.

On the model's scale values are standardised, larger is better, and bad ones may be compressed.

| symbol | shape | meaning                                              |
|--------|-------|------------------------------------------------------|
| z      | (n,)  | values as the model sees them                        |
| y      | (n,)  | the same in the user's units and sign                |
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sumbo._typing import Array
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.exact import Exact
from sumbo.gp.sparse import chosen
from sumbo.gp.threads import on_one_thread

_MOST = 1000  # observations that stand for all where the model is not exact
_STRAIGHT = 1e-6  # of the range: a straight line may be off by so much


@dataclass(frozen=True)
class LeftOut:
    """Predictions of some values from all others.

    Attributes:
        index: which observations of the model.
        y, mean, std: the value, and its prediction with noise, on the model's scale.
    """

    index: NDArray[np.int64]
    y: Array
    mean: Array
    std: Array

    @property
    def errors(self) -> Array:
        """How many standard deviations each value is off."""
        return (self.y - self.mean) / self.std

    @property
    def explained(self) -> float:
        """The share of the variance of values that is predicted, R^2; 0 where there is none."""
        return max(1.0 - float(np.mean((self.y - self.mean) ** 2)) / max(float(np.var(self.y)), 1e-300), 0.0)

    def coverage(self, levels: Array) -> Array:
        """The share of values inside the central interval of each level: the level, if the model is calibrated."""
        from scipy.special import ndtr

        distance = np.abs(2.0 * ndtr(self.errors) - 1.0)
        return np.array([np.mean(distance <= level) for level in levels])


@on_one_thread
def leave_one_out(model: AdditiveGP) -> LeftOut:
    """Predictions of every value from the others; past 2000 observations, of a thousand from each other."""
    index: NDArray[np.int64] = np.arange(model.n)
    if not isinstance(model._observed(), Exact):
        index = chosen(model.y, _MOST).astype(np.int64)
        model = model.condition(model.X[index], model.y[index])
    return LeftOut(index, model.y.copy(), *model.leave_one_out())


@dataclass(frozen=True)
class Units:
    """The monotone map from z to y, known at what was observed.

    Attributes:
        z, y: places that it goes through, z growing.
        slope: user's units for one of the model's, where the map is straight.
        straight: is it a straight line? If not, a sum on the model's scale is no sum in the user's units.
        sign: 1 where larger is better, -1 where smaller is.
    """

    z: Array
    y: Array
    slope: float
    straight: bool
    sign: float

    @classmethod
    def of(cls, z: Array, y: Array, sign: float) -> "Units":
        """From observed pairs, all finite; constants have no scale and get the slope 0."""
        z, first = np.unique(z, return_index=True)
        y = y[first]
        if len(z) < 2:
            return cls(np.zeros(1), y[:1] if len(y) else np.zeros(1), 0.0, True, sign)
        slope = float((y[-1] - y[0]) / (z[-1] - z[0]))
        off = np.abs(y - (y[0] + slope * (z - z[0]))).max()
        return cls(z, y, slope, bool(off <= _STRAIGHT * abs(y[-1] - y[0])), sign)

    def values(self, z: Array) -> Array:
        """Values in the user's units; beyond what was observed the map goes on straight."""
        if self.straight:
            return self.y[0] + self.slope * (z - self.z[0])
        low = (self.y[1] - self.y[0]) / (self.z[1] - self.z[0])
        high = (self.y[-1] - self.y[-2]) / (self.z[-1] - self.z[-2])
        inside = np.interp(z, self.z, self.y)
        below = np.minimum(z - self.z[0], 0.0) * low
        return inside + below + np.maximum(z - self.z[-1], 0.0) * high

    @property
    def effect(self) -> float:
        """What to multiply a component by: user's units where there are any, the user's sign in any case."""
        return self.slope if self.straight else self.sign
