"""Test functions given by a formula: the classics, the paper's additive family, and one of mixed parameters."""

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from sumbo.errors import SettingError
from sumbo.problems.base import Groups, Problem, Which, whole_number
from sumbo.regret import Direction, FloatArray
from sumbo.space import Categorical, Float, Int, Parameter, Space


def _on_box(
    name: str,
    function: Callable[[FloatArray], FloatArray],
    box: tuple[float, float],
    at: FloatArray,
    *,
    optimum: float,
    groups: Iterable[Iterable[int]] | None,
    direction: Direction = "minimize",
) -> Problem:
    """A function of numbers that all have the same range. It must pickle, for worker processes: no closure."""
    groups = None if groups is None else _canonical(groups)
    used = {i for group in groups or () for i in group}
    return Problem(
        name=name,
        space=Space.from_bounds([box] * len(at)),
        direction=direction,
        optimum=optimum,
        optimiser=at,
        evaluate=function,
        groups=groups,
        irrelevant=() if groups is None else tuple(i for i in range(len(at)) if i not in used),
    )


def _canonical(groups: Iterable[Iterable[int]]) -> Groups:
    """Groups as plain tuples, sorted within and by their first dimension."""
    return tuple(sorted(tuple(sorted(int(i) for i in group)) for group in groups))


# --- the classics ---------------------------------------------------------------------------------------------
#
# All are minimised, in their textbook form, of x: the user's point minus the shift, (n, D). The box stays where it is,
# and so does the optimum's value.


def _classic(
    name: str,
    function: Callable[[FloatArray], FloatArray],
    D: int,
    shift_seed: int | None,
    *,
    box: tuple[float, float],
    fraction: float = 0.1,
    at: float = 0.0,
    best: float = 0.0,
    least: int = 1,
    groups: Iterable[Iterable[int]] | None = None,
    apart: bool = False,
) -> Problem:
    """A function whose lowest value is `best` for each dimension, with `at` in every coordinate, before the shift."""
    D = whole_number("D", D, at_least=least)
    groups = [[i] for i in range(D)] if apart else groups
    shift = np.zeros(D)
    if shift_seed is not None:
        rng = np.random.default_rng(2000 + whole_number("shift_seed", shift_seed, at_least=0))
        shift = (box[1] - box[0]) * rng.uniform(-fraction, fraction, D)
    moved = partial(_shifted, function=function, shift=shift)
    return _on_box(f"{name}-{D}", moved, box, at + shift, optimum=D * best, groups=groups)


def _shifted(X: FloatArray, *, function: Callable[[FloatArray], FloatArray], shift: FloatArray) -> FloatArray:
    return function(X - shift)


def styblinski_tang(D: int, *, shift_seed: int | None = None) -> Problem:
    """Styblinski-Tang on [-5, 5]^D: 1/2 sum_i (x_i^4 - 16 x_i^2 + 5 x_i), a sum over single dimensions.

    `shift_seed` moves the optimum by up to 10% of the box's width in every coordinate; None leaves it.
    """
    at = -2.903534027771177  # the lowest root of the derivative 2 x^3 - 16 x + 2.5
    best, box = -39.16616570377141, (-5.0, 5.0)
    return _classic("styblinski-tang", _styblinski_tang, D, shift_seed, box=box, at=at, best=best, apart=True)


def _styblinski_tang(x: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (x**4 - 16 * x**2 + 5 * x).sum(axis=1))


def levy(D: int, *, shift_seed: int | None = None) -> Problem:
    """Levy on [-10, 10]^D, a sum over single dimensions, each with many local minima.

    With w_i = 1 + (x_i - 1) / 4: sin^2(pi w_1) + sum_{i<D} (w_i - 1)^2 (1 + 10 sin^2(pi w_i + 1))
    + (w_D - 1)^2 (1 + sin^2(2 pi w_D)).

    `shift_seed` moves the optimum by up to 15% of the box's width in every coordinate; None leaves it.
    """
    return _classic("levy", _levy, D, shift_seed, box=(-10.0, 10.0), fraction=0.15, at=1.0, apart=True)


def _levy(x: FloatArray) -> FloatArray:
    w = 1 + (x - 1) / 4
    inner, last = w[:, :-1], w[:, -1]
    first = np.sin(np.pi * w[:, 0]) ** 2
    middle = ((inner - 1) ** 2 * (1 + 10 * np.sin(np.pi * inner + 1) ** 2)).sum(axis=1)
    return np.asarray(first + middle + (last - 1) ** 2 * (1 + np.sin(2 * np.pi * last) ** 2))


def rosenbrock(D: int, *, log: bool = False, shift_seed: int | None = None) -> Problem:
    """Rosenbrock on [-2, 2]^D: sum_{i<D} 100 (x_{i+1} - x_i^2)^2 + (1 - x_i)^2.

    Its terms chain neighbours into overlapping pairs, so it has no true groups. The box is the narrow one of
    those in use; the wide one, [-5, 10]^D, mostly shows how large x^4 can get.

    `log` takes log(1 + f) instead of f, which tames its range of several orders of magnitude.
    `shift_seed` moves the optimum by up to 10% of the box's width in every coordinate; None leaves it.
    """
    name, function = ("rosenbrock-log", _log_rosenbrock) if log else ("rosenbrock", _rosenbrock)
    return _classic(name, function, D, shift_seed, box=(-2.0, 2.0), at=1.0, least=2)


def _rosenbrock(x: FloatArray) -> FloatArray:
    here, following = x[:, :-1], x[:, 1:]
    return np.asarray((100 * (following - here**2) ** 2 + (1 - here) ** 2).sum(axis=1))


def _log_rosenbrock(x: FloatArray) -> FloatArray:
    return np.log1p(_rosenbrock(x))


def ackley(D: int, *, shift_seed: int | None = None) -> Problem:
    """Ackley on [-15, 15]^D: a funnel with many dents, of all coordinates at once.

    -20 exp(-0.2 sqrt(mean x_i^2)) - exp(mean cos(2 pi x_i)) + 20 + e. The box is narrower than the
    also usual [-32.768, 32.768]^D, whose outer part is all but flat.

    `shift_seed` moves the optimum by up to 15% of the box's width in every coordinate; None leaves it.
    """
    return _classic("ackley", _ackley, D, shift_seed, box=(-15.0, 15.0), fraction=0.15)


def _ackley(x: FloatArray) -> FloatArray:
    funnel = 20 * (1 - np.exp(-0.2 * np.sqrt((x**2).mean(axis=1))))
    dents = np.e - np.exp(np.cos(2 * np.pi * x).mean(axis=1))
    return np.asarray(funnel + dents)


def powell(D: int, *, shift_seed: int | None = None) -> Problem:
    """Powell's singular function on [-4, 5]^D, a sum over groups of four.

    Per group (a, b, c, d): (a + 10 b)^2 + 5 (c - d)^2 + (b - 2 c)^4 + 10 (a - d)^4.

    `shift_seed` moves the optimum by up to 10% of the box's width in every coordinate, and puts random coordinates
    together; None leaves the optimum at zero and groups consecutive coordinates. D must be a multiple of four.
    """
    D = whole_number("D", D, at_least=4)
    if D % 4:
        raise SettingError(
            f"powell needs D to be a multiple of 4, for it sums over groups of four; got {D}, use {D - D % 4}"
        )
    dims = np.arange(D)
    if shift_seed is not None:
        dims = np.random.default_rng(5000 + whole_number("shift_seed", shift_seed, at_least=0)).permutation(D)
    order = dims.reshape(-1, 4)
    return _classic("powell", partial(_powell, order=order), D, shift_seed, box=(-4.0, 5.0), groups=order)


def _powell(x: FloatArray, *, order: Which) -> FloatArray:
    a, b, c, d = (x[:, order[:, k]] for k in range(4))  # each (n, D / 4)
    terms = (a + 10 * b) ** 2 + 5 * (c - d) ** 2 + (b - 2 * c) ** 4 + 10 * (a - d) ** 4
    return np.asarray(terms.sum(axis=1))


# Of each term: weight, six rates, six coordinates of its centre.
_HARTMANN = np.array(
    [
        [1.0, 10.0, 3.0, 17.0, 3.5, 1.7, 8.0, 0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
        [1.2, 0.05, 10.0, 17.0, 0.1, 8.0, 14.0, 0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
        [3.0, 3.0, 3.5, 1.7, 10.0, 17.0, 8.0, 0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
        [3.2, 17.0, 8.0, 0.05, 10.0, 0.1, 14.0, 0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
    ]
)
# From Newton's method on the formula: tables give six digits only.
_HARTMANN_AT = np.array([0.20168951, 0.15001069, 0.47687397, 0.27533243, 0.31165162, 0.65730053])
_HARTMANN_BEST = -3.322368011415515


def hartmann6(D: int, seed: int = 0) -> Problem:
    """Hartmann's six-dimensional function in [0, 1]^D, of which six coordinates matter.

    -sum_k a_k exp(-sum_i A_ki (x_i - P_ki)^2) with four terms k. `seed` chooses the six coordinates and their order.
    """
    D = whole_number("D", D, at_least=6)
    active = np.random.default_rng(3000 + whole_number("seed", seed, at_least=0)).permutation(D)[:6]
    at = np.full(D, 0.5)
    at[active] = _HARTMANN_AT
    function = partial(_hartmann6, active=active)
    return _on_box(f"hartmann6-{D}", function, (0.0, 1.0), at, optimum=_HARTMANN_BEST, groups=[active])


def _hartmann6(x: FloatArray, *, active: Which) -> FloatArray:
    weights, rates, centres = _HARTMANN[:, 0], _HARTMANN[:, 1:7], _HARTMANN[:, 7:]
    offsets = x[:, None, active] - centres  # (n, 4, 6)
    bumps = np.exp(-(rates * offsets**2).sum(axis=2))
    return np.asarray(-(bumps @ weights))


# --- the additive family of the Add-GP-UCB paper: a sum of log mixtures of three Gaussians ---------------------
#
# D, d, M    dimensions, group size, number of groups; D - d M dimensions do nothing
# x_j        the coordinates of group j, in [-1, 1]                              (n, d)
# c_k, w_k   centre (d,) and weight of mode k = 1 .. 3
# v          isotropic variance of every mode, 0.01 d^0.1
#
# f(x) = sum_j max(-700, log sum_k w_k N(x_j; c_k, v I))

_WEIGHTS = np.array([0.1, 0.8, 0.1])
_FIRST_TWO = np.array([[0.62, -0.38], [0.18, 0.58], [-0.58, -0.56]])  # (3, 2)
_FURTHER = np.array([-0.66, -0.19, 0.62])  # (3,), the same for the third and every later coordinate
_FLOOR = -700.0


def additive(D: int, d: int, M: int, seed: int = 0) -> Problem:
    """The paper's synthetic function on [-1, 1]^D, to be maximised.

    M groups of d coordinates each contribute the log of a mixture of three Gaussians, with most weight on the
    second. The paper's figures give two coordinates of each centre and a value for all further ones; for
    d = 1, which they leave open, the centres are their first coordinates: 0.62, 0.18 and -0.58.

    The optimum is the exact mode of the mixture. It lies within 1e-5 of the second centre, and higher by less
    than 1e-9 than the value there, for the tails of the other two modes pull it aside (notably if d = 1).

    `seed` fixes which coordinates form which group. D must be at least d M; coordinates that are left over do nothing.
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
    at = np.zeros(D)
    at[order] = mode
    best = M * float(_log_mixture(mode[None, :])[0])
    function = partial(_sum_over_groups, order=order)
    name = f"additive-{D}-{d}-{M}"
    return _on_box(name, function, (-1.0, 1.0), at, optimum=best, groups=order, direction="maximize")


def _sum_over_groups(X: FloatArray, *, order: Which) -> FloatArray:  # (n, D), (M, d) -> (n,)
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
    """The mixture's highest point, by the fixed point x = sum_k c_k P(k | x)."""
    centres = _centres(d)
    x: FloatArray = centres[1]  # of the largest weight
    for _ in range(8):  # each shrinks the error by more than a factor of 1000, since the modes hardly overlap
        terms = _log_terms(x[None, :])[0]
        x = np.exp(terms - np.logaddexp.reduce(terms)) @ centres
    return x


# --- floats, whole numbers and categories: a sum over small groups that mix them ------------------------------
#
# Blocks of five parameters make two groups: a float with an int, and a float with an int and a category.
#
# | symbol | shape  | meaning                                                                          |
# |--------|--------|----------------------------------------------------------------------------------|
# | t      | (n, G) | where the groups' float or int lies in its range, from 0 to 1                    |
# | c      | (n, G) | the groups' category; 0 in groups that have none                                 |
# | a      | (G, C) | where t of the float is best, given the category; b likewise for the int         |
# | p, q   | (n, G) | distances t - a of the float, t - b of the int                                   |
# | h, w   | (G, C), (G,) | what a category costs at its best, 0 for one of them; weight of a group    |
#
# f(x) = sum_g w_g (h_gc + 4 (p + q)^2 + (p - q)^2 + (2 - cos(4 pi p) - cos(4 pi q)) / 4)
#
# The squares are a valley in which float and int must move together, and the cosines dents in it. At p = q = 0 both are
# lowest: the optimum is 0, with the category that costs nothing.

_BLOCK = 5  # float, int | float, int, category
_LOG = Float(1e-4, 1.0, log=True)  # the first group's float
_FLOAT = Float(-2.0, 3.0)
_INT = Int(1, 12)
_CHOICES = Categorical(["plain", "round", "sharp", "twisted"])
_C = len(_CHOICES.choices)


def mixed(D: int = 20, seed: int = 0) -> Problem:
    """Floats, one of them on a log scale, whole numbers and categories in groups of two and three, to be minimised.

    Two fifths of the parameters are floats, two fifths ints from 1 to 12, one fifth categories of four choices. In a
    group with a category, each choice has its own best float and int, and all but one cost something besides.

    D must be a multiple of five. `seed` fixes which dimensions form which group, and where the optimum is.
    """
    D = whole_number("D", D, at_least=_BLOCK)
    if D % _BLOCK:
        raise SettingError(f"mixed needs D to be a multiple of {_BLOCK}; got {D}, use {D - D % _BLOCK}")
    rng = np.random.default_rng(7000 + whole_number("seed", seed, at_least=0))
    blocks = rng.permutation(D).reshape(-1, _BLOCK)
    # Pairs first, then triples: the dimension of each group's float, int and category, (3, G); -1 for no category.
    parts = np.hstack([blocks[:, :2].T, blocks[:, 2:4].T])
    parts = np.vstack([parts, np.append(np.full(len(blocks), -1), blocks[:, 4])])
    G = 2 * len(blocks)
    a = rng.uniform(0.1, 0.9, (G, _C))
    b = rng.integers(1, _INT.levels - 1, (G, _C)) / (_INT.levels - 1)  # on the grid, where an int can be
    h = rng.uniform(0.3, 1.0, (G, _C))
    h[np.arange(G), rng.integers(0, _C, G)] = 0.0
    h[: len(blocks), 0] = 0.0  # they have no category, which counts as the first
    w = rng.uniform(1.0, 4.0, G)
    kinds: dict[int, Parameter] = {}
    for dims, kind in zip(parts, (_FLOAT, _INT, _CHOICES), strict=True):
        kinds |= dict.fromkeys(dims.tolist(), kind)
    kinds[int(parts[0, 0])] = _LOG
    floats, ints, categories = parts
    rows, choice = np.arange(G), np.where(categories < 0, 0, h.argmin(axis=1))
    best = np.zeros(D)
    best[floats] = _FLOAT.low + a[rows, choice] * (_FLOAT.high - _FLOAT.low)
    best[floats[0]] = _LOG.low * (_LOG.high / _LOG.low) ** a[0, choice[0]]
    best[ints] = np.rint(_INT.low + b[rows, choice] * (_INT.high - _INT.low))
    best[categories[categories >= 0]] = choice[categories >= 0]
    return Problem(
        name=f"mixed-{D}",
        space=Space({f"x{i}": kinds[i] for i in range(D)}),
        direction="minimize",
        optimum=0.0,
        optimiser=best,
        evaluate=partial(_mixed, parts=parts, a=a, b=b, h=h, w=w),
        groups=_canonical([i for i in group if i >= 0] for group in parts.T),
    )


def _mixed(X: FloatArray, *, parts: Which, a: FloatArray, b: FloatArray, h: FloatArray, w: FloatArray) -> FloatArray:
    floats, ints, categories = parts
    t_float = (X[:, floats] - _FLOAT.low) / (_FLOAT.high - _FLOAT.low)  # (n, G)
    t_float[:, 0] = np.log(np.maximum(X[:, floats[0]], 1e-300) / _LOG.low) / np.log(_LOG.high / _LOG.low)
    t_int = (np.rint(X[:, ints]) - _INT.low) / (_INT.high - _INT.low)
    c = np.where(categories < 0, 0, np.clip(np.rint(X[:, categories]), 0, _C - 1)).astype(np.intp)
    rows = np.arange(len(w))
    p, q = t_float - a[rows, c], t_int - b[rows, c]
    valley = 4.0 * np.square(p + q) + np.square(p - q)
    dents = 0.25 * (2.0 - np.cos(4.0 * np.pi * p) - np.cos(4.0 * np.pi * q))
    return np.asarray((h[rows, c] + valley + dents) @ w)
