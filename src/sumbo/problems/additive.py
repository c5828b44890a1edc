"""The additive family of the Add-GP-UCB paper: a sum of log mixtures of three Gaussians.

D, d, M    dimensions, group size, number of groups; D - d M dimensions do nothing
x_j        the coordinates of group j, in [-1, 1]                              (n, d)
c_k, w_k   centre (d,) and weight of mode k = 1 .. 3
v          isotropic variance of every mode, 0.01 d^0.1

f(x) = sum_j max(-700, log sum_k w_k N(x_j; c_k, v I))
"""

from functools import partial

import numpy as np
import numpy.typing as npt

from sumbo.errors import SettingError
from sumbo.problems.base import Problem, canonical, others, whole_number
from sumbo.regret import FloatArray
from sumbo.space import Space

_WEIGHTS = np.array([0.1, 0.8, 0.1])
_FIRST_TWO = np.array([[0.62, -0.38], [0.18, 0.58], [-0.58, -0.56]])  # (3, 2)
_FURTHER = np.array([-0.66, -0.19, 0.62])  # (3,), the same for the third and every later coordinate
_HIGHEST = 1  # index of the mode with the largest weight
_FLOOR = -700.0


def additive(D: int, d: int, M: int, seed: int = 0) -> Problem:
    """The paper's synthetic function on [-1, 1]^D, to be maximised.

    M groups of d coordinates each contribute the log of a mixture of three Gaussians, with most weight on the
    second. The paper's figures give two coordinates of each centre and a value for all further ones; for
    d = 1, which they leave open, the centres are their first coordinates: 0.62, 0.18 and -0.58.

    The optimum is the exact mode of the mixture. It lies within 1e-5 of the second centre, and higher by less
    than 1e-9 than the value there, for the tails of the other two modes pull it aside (notably if d = 1).

    Args:
        D: Number of dimensions.
        d: Size of every group.
        M: Number of groups.
        seed: Fixes which coordinates form which group.

    Raises:
        SettingError: If a size is not positive or the groups need more than D dimensions.
    """
    D, d, M = (whole_number(name, size, at_least=1) for name, size in (("D", D), ("d", d), ("M", M)))
    seed = whole_number("seed", seed, at_least=0)
    if d * M > D:
        raise SettingError(
            f"M groups of d dimensions must fit into D: got {M} x {d} = {d * M} > {D}; "
            f"use at least D = {d * M}, or smaller or fewer groups"
        )
    order = np.random.default_rng(1000 + seed).permutation(D)[: d * M].reshape(M, d)
    mode = _mode(d)
    optimiser = np.zeros(D)
    optimiser[order] = mode
    groups = canonical(order)
    return Problem(
        name=f"additive-{D}-{d}-{M}",
        space=Space.from_bounds([(-1.0, 1.0)] * D),
        direction="maximize",
        optimum=M * float(_log_mixture(mode[None, :])[0]),
        optimiser=optimiser,
        evaluate=partial(_sum_over_groups, order=order),
        groups=groups,
        irrelevant=others(D, groups),
    )


def _sum_over_groups(X: FloatArray, *, order: npt.NDArray[np.intp]) -> FloatArray:  # (n, D), (M, d) -> (n,)
    total = np.zeros(len(X))
    for group in order:
        total += np.maximum(_log_mixture(X[:, group]), _FLOOR)
    return total


def _log_mixture(x: FloatArray) -> FloatArray:  # (n, d) -> (n,)
    return np.asarray(np.logaddexp.reduce(_log_terms(x), axis=1))


def _log_terms(x: FloatArray) -> FloatArray:  # (n, d) -> (n, 3), log w_k N(x; c_k, v I)
    d = x.shape[1]
    v = 0.01 * d**0.1
    distances = np.square(x[:, None, :] - _centres(d)).sum(axis=2)
    return np.asarray(np.log(_WEIGHTS) - distances / (2 * v) - 0.5 * d * np.log(2 * np.pi * v))


def _centres(d: int) -> FloatArray:  # (3, d)
    further = np.repeat(_FURTHER[:, None], max(d - 2, 0), axis=1)
    return np.hstack([_FIRST_TWO[:, :d], further])


def _mode(d: int) -> FloatArray:  # (d,)
    """The mixture's highest point, by the fixed point x = sum_k c_k P(k | x).

    Each step shrinks the error by more than a factor of 1000, since the modes hardly overlap: eight reach
    rounding.
    """
    centres = _centres(d)
    x: FloatArray = centres[_HIGHEST]
    for _ in range(8):
        terms = _log_terms(x[None, :])[0]
        x = np.exp(terms - np.logaddexp.reduce(terms)) @ centres
    return x
