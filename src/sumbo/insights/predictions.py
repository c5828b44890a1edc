"""Leave-one-out predictions: what the model would have said of each value, had it not seen it.

With K the covariance of the values, noise included (Rasmussen & Williams, equation 5.12):

    mu_i      = y_i - [K^-1 y]_i / [K^-1]_ii
    sigma_i^2 = 1 / [K^-1]_ii                      of the value, noise included

Hyperparameters and groups stay those of all values: learning them again n times would take hours and change little.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sumbo._typing import Array
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.solvers import Exact, chosen
from sumbo.gp.threads import on_one_thread

_MOST = 1000  # observations that stand for all where the model is not exact


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
