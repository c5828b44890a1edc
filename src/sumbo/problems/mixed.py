"""A test function of floats, whole numbers and categories, a sum over small groups that mix them.

Blocks of five parameters make two groups: a float with an int, and a float with an int and a category.

| symbol | shape  | meaning                                                                          |
|--------|--------|----------------------------------------------------------------------------------|
| t      | (n, G) | where the groups' float or int lies in its range, from 0 to 1                    |
| c      | (n, G) | the groups' category; 0 in groups that have none                                 |
| a      | (G, C) | where t of the float is best, given the category; b likewise for the int         |
| p, q   | (n, G) | distances t - a of the float, t - b of the int                                   |
| h, w   | (G, C), (G,) | what a category costs at its best, 0 for one of them; weight of a group    |

f(x) = sum_g w_g (h_gc + 4 (p + q)^2 + (p - q)^2 + (2 - cos(4 pi p) - cos(4 pi q)) / 4)

The squares are a valley in which float and int must move together, and the cosines dents in it. At p = q = 0 both are
lowest: the optimum is 0, with the category that costs nothing.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from sumbo.errors import SettingError
from sumbo.problems.base import Problem, canonical, whole_number
from sumbo.regret import FloatArray
from sumbo.space import Categorical, Float, Int, Parameter, Space

_BLOCK = 5  # float, int | float, int, category
_LOG = Float(1e-4, 1.0, log=True)  # the first group's float
_FLOAT = Float(-2.0, 3.0)
_INT = Int(1, 12)
_CHOICES = Categorical(["plain", "round", "sharp", "twisted"])
_C = len(_CHOICES.choices)


@dataclass(frozen=True, eq=False)
class _Groups:
    """The symbols above that a seed fixes, and which dimensions the groups' parts are: `category` is -1 for none."""

    float_: npt.NDArray[np.intp]  # (G,)
    int_: npt.NDArray[np.intp]  # (G,)
    category: npt.NDArray[np.intp]  # (G,)
    a: FloatArray
    b: FloatArray
    h: FloatArray
    w: FloatArray


def mixed(D: int = 20, seed: int = 0) -> Problem:
    """Floats, one of them on a log scale, whole numbers and categories in groups of two and three, to be minimised.

    Two fifths of the parameters are floats, two fifths ints from 1 to 12, one fifth categories of four choices. In a
    group with a category, each choice has its own best float and int, and all but one cost something besides.

    Args:
        D: Number of dimensions, a multiple of five.
        seed: Fixes which dimensions form which group, and where the optimum is.

    Raises:
        SettingError: If D is not a positive multiple of five.
    """
    D = whole_number("D", D, at_least=_BLOCK)
    if D % _BLOCK:
        raise SettingError(f"mixed needs D to be a multiple of {_BLOCK}; got {D}, use {D - D % _BLOCK}")
    rng = np.random.default_rng(7000 + whole_number("seed", seed, at_least=0))
    groups = _drawn(rng.permutation(D).reshape(-1, _BLOCK), rng)
    space = _space(D, groups)
    parts = [groups.float_, groups.int_, groups.category]
    return Problem(
        name=f"mixed-{D}",
        space=space,
        direction="minimize",
        optimum=0.0,
        optimiser=_best(space, groups),
        evaluate=partial(_values, groups=groups),
        groups=canonical([i for i in group if i >= 0] for group in zip(*parts, strict=True)),
    )


def _drawn(blocks: npt.NDArray[np.intp], rng: np.random.Generator) -> _Groups:
    """Pairs first, then triples, from the dimensions of each block, (D / 5, 5)."""
    pairs, triples = blocks[:, :2], blocks[:, 2:]
    G = 2 * len(blocks)
    a = rng.uniform(0.1, 0.9, (G, _C))
    b = rng.integers(1, _INT.levels - 1, (G, _C)) / (_INT.levels - 1)  # on the grid, where an int can be
    h = rng.uniform(0.3, 1.0, (G, _C))
    h[np.arange(G), rng.integers(0, _C, G)] = 0.0
    h[: len(pairs), 0] = 0.0  # they have no category, which counts as the first
    w = rng.uniform(1.0, 4.0, G)
    return _Groups(
        float_=np.append(pairs[:, 0], triples[:, 0]),
        int_=np.append(pairs[:, 1], triples[:, 1]),
        category=np.append(np.full(len(pairs), -1), triples[:, 2]),
        a=a,
        b=b,
        h=h,
        w=w,
    )


def _space(D: int, groups: _Groups) -> Space:
    kinds: dict[int, Parameter] = dict.fromkeys(groups.float_.tolist(), _FLOAT)
    kinds |= dict.fromkeys(groups.int_.tolist(), _INT)
    kinds |= dict.fromkeys(groups.category[groups.category >= 0].tolist(), _CHOICES)
    kinds[int(groups.float_[0])] = _LOG
    return Space({f"x{i}": kinds[i] for i in range(D)})


def _best(space: Space, groups: _Groups) -> FloatArray:
    """The optimiser in the user's units."""
    x = np.zeros(space.dim)
    choice = np.where(groups.category < 0, 0, groups.h.argmin(axis=1))
    rows = np.arange(len(choice))
    x[groups.float_] = _FLOAT.low + groups.a[rows, choice] * (_FLOAT.high - _FLOAT.low)
    x[groups.float_[0]] = _LOG.low * (_LOG.high / _LOG.low) ** groups.a[0, choice[0]]
    x[groups.int_] = np.rint(_INT.low + groups.b[rows, choice] * (_INT.high - _INT.low))
    x[groups.category[groups.category >= 0]] = choice[groups.category >= 0]
    return x


def _values(X: FloatArray, *, groups: _Groups) -> FloatArray:  # (n, D) -> (n,)
    t_float = (X[:, groups.float_] - _FLOAT.low) / (_FLOAT.high - _FLOAT.low)  # (n, G)
    t_float[:, 0] = np.log(np.maximum(X[:, groups.float_[0]], 1e-300) / _LOG.low) / np.log(_LOG.high / _LOG.low)
    t_int = (np.rint(X[:, groups.int_]) - _INT.low) / (_INT.high - _INT.low)
    c = np.where(groups.category < 0, 0, np.clip(np.rint(X[:, groups.category]), 0, _C - 1)).astype(np.intp)
    rows = np.arange(len(groups.w))
    p, q = t_float - groups.a[rows, c], t_int - groups.b[rows, c]
    valley = 4.0 * np.square(p + q) + np.square(p - q)
    dents = 0.25 * (2.0 - np.cos(4.0 * np.pi * p) - np.cos(4.0 * np.pi * q))
    return np.asarray((groups.h[rows, c] + valley + dents) @ groups.w)
