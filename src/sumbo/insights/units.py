"""From a model's scale to the user's: there values are standardised, larger is better, and bad ones may be compressed.

| symbol | shape | meaning                                              |
|--------|-------|------------------------------------------------------|
| z      | (n,)  | values as the model sees them                        |
| y      | (n,)  | the same in the user's units and sign                |
"""

from dataclasses import dataclass

import numpy as np

from sumbo._typing import Array

_STRAIGHT = 1e-6  # of the range: a straight line may be off by so much


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
