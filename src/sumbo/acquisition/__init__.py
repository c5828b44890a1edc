"""What a point is worth, and where that is largest.

The first use of a compiled loop loads its machine code from disk, or compiles it: seconds that an `ask(deadline=0.05)`
does not have. So `ready` does that in the background, and until it is done such questions are answered without a model.
"""

import functools
from threading import Thread

import numpy as np

from sumbo.acquisition import optimize
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.decomposition import Decomposition


def ready() -> bool:
    """Are the compiled loops loaded? Starts loading them on the first call."""
    return not _started().is_alive()


@functools.cache
def _started() -> Thread:
    thread = Thread(target=_exercise, name="sumbo-warmup", daemon=True)
    thread.start()
    return thread


def _exercise() -> None:
    """Use every compiled function once, on next to nothing."""
    rng = np.random.default_rng(0)
    X, y = rng.random((6, 3)), rng.standard_normal(6)
    gp = AdditiveGP(Decomposition([(0,), (1, 2)])).fit(X, y).append(X[0], 0.0)
    gp.group_means(X)
    for moments in (gp.moments(X), gp.group_moments(X)):
        moments.gradient(np.ones_like(moments.mean), np.ones_like(moments.mean))
    optimize.ascend(lambda Z: (-np.square(Z - 0.5).sum(axis=1), 1.0 - 2.0 * Z), X)
