"""The suite's synthetic problems: their optimum is known, lies anywhere in the box, and groups are hidden.

In a textbook the optimum is at the centre or in a corner, at the same place in every coordinate, and neighbours belong
together. Here each coordinate of the optimum is uniform in the inner 80% of its range, and random parameters take the
places of the textbook's.
"""

import zlib
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from suite_task import Task

import sumbo
from sumbo.problems import Problem

Array = NDArray[np.float64]
Which = NDArray[np.intp]

INNER = (0.1, 0.9)  # of each range: where an optimum may be


def _rng(name: str, seed: int) -> np.random.Generator:
    """Problems of one seed have nothing in common."""
    return np.random.default_rng([zlib.crc32(name.encode()), seed])


def _at(function: Callable[[Array], float], names: tuple[str, ...]) -> Callable[[Mapping[str, Any]], float]:
    """A function of an array as one of parameters by name."""

    def value(params: Mapping[str, Any]) -> float:
        return float(function(np.array([params[name] for name in names], dtype=float)))

    return value


def _sorted(groups: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(sorted(tuple(sorted(int(i) for i in group)) for group in groups))


# --- functions of textbooks, moved ---


class Textbook(NamedTuple):
    """A function to be minimised, as textbooks have it.

    Attributes:
        values: (n, d) -> (n,).
        box: The range of each of its d parameters.
        at, optimum: The lowest point, (d,), and the value there.
        groups: Of its own parameters; None where there are none.
    """

    values: Callable[[Array], Array]
    box: tuple[float, float]
    at: Array
    optimum: float
    groups: tuple[tuple[int, ...], ...] | None


def ours(make: Callable[..., Problem], d: int, **settings: bool) -> Textbook:
    """One of `sumbo.problems`, which has numbers of one range."""
    problem = make(d, **settings)
    low, high = (getattr(problem.space.parameters[0], end) for end in ("low", "high"))
    return Textbook(problem.values, (low, high), problem.optimiser, problem.optimum, problem.groups)


def moved(
    name: str,
    textbook: Callable[[], Textbook],
    seed: int,
    *,
    D: int | None = None,
    by: Literal["shift", "bend"] = "shift",
    noise: float = 0.0,
) -> Task:
    """A textbook's function with its optimum anywhere, in D parameters of which it has some; all, if not told.

    With t the optimum's place in [0, 1] and a that of the textbook, a parameter's place u becomes

    - "shift": u + a - t. What is beyond the textbook's box comes into view, so only for functions that are defined
      there, have no lower value there, and do not explode;
    - "bend": the place whose odds u / (1 - u) are multiplied by those of a over those of t. It is smooth and keeps
      the ends of the range. Where a and t are on different sides of the middle, the range is mirrored first, lest it
      be bent too much.
    """
    base = textbook()
    d = len(base.at)
    D = D or d
    rng = _rng(name, seed)
    dims = rng.permutation(D)[:d]
    target = rng.uniform(*INNER, d)
    low, high = base.box
    width = high - low
    place = (base.at - low) / width
    mirror = (place > 0.5) != (target > 0.5) if by == "bend" else np.zeros(d, dtype=bool)
    aim = np.where(mirror, 1 - target, target)
    odds = place / (1 - place) * (1 - aim) / aim

    def function(x: Array) -> float:
        u = (x[dims] - low) / width
        if by == "shift":
            z = base.at + width * (u - target)
        else:
            u = np.where(mirror, 1 - u, u)
            z = low + width * odds * u / (odds * u + 1 - u)
        return float(base.values(z[None])[0])

    space = sumbo.Space.from_bounds([base.box] * D)
    groups = None if base.groups is None else _sorted([dims[list(group)] for group in base.groups])
    return Task(space, _at(function, space.names), "minimize", base.optimum, noise, groups)


def rotated(name: str, block: Callable[[], Textbook], D: int, seed: int) -> Task:
    """A sum of rotated copies of a function of four parameters, over D / 4 hidden blocks with weights 1 to 4."""
    base = block()
    d = len(base.at)
    rng = _rng(name, seed)
    dims = rng.permutation(D).reshape(-1, d)
    target = rng.uniform(*INNER, dims.shape)
    turns = np.linalg.qr(rng.normal(size=(len(dims), d, d)))[0]
    weights = rng.uniform(1, 4, len(dims))
    low, high = base.box

    def function(x: Array) -> float:
        z = base.at + np.einsum("gij,gj->gi", turns, x[dims] - low - (high - low) * target)
        return float(weights @ base.values(z))

    space = sumbo.Space.from_bounds([base.box] * D)
    return Task(space, _at(function, space.names), "minimize", float(weights.sum() * base.optimum), 0.0, _sorted(dims))


def _apart(d: int) -> tuple[tuple[int, ...], ...]:
    return tuple((i,) for i in range(d))


def _together(d: int) -> tuple[tuple[int, ...], ...]:
    return (tuple(range(d)),)


def rastrigin(d: int) -> Textbook:
    """sum_i x_i^2 + 10 - 10 cos(2 pi x_i)."""
    return Textbook(
        lambda x: (x**2 + 10 - 10 * np.cos(2 * np.pi * x)).sum(axis=1), (-5.12, 5.12), np.zeros(d), 0.0, _apart(d)
    )


def griewank(d: int) -> Textbook:
    """sum_i x_i^2 / 4000 + 1 - prod_i cos(x_i / sqrt(i)); on [-50, 50], for on [-600, 600] it is a bowl."""
    roots = np.sqrt(np.arange(1, d + 1))
    return Textbook(
        lambda x: (x**2).sum(axis=1) / 4000 + 1 - np.cos(x / roots).prod(axis=1),
        (-50.0, 50.0), np.zeros(d), 0.0, _together(d),
    )  # fmt: skip


def dixon_price(d: int) -> Textbook:
    """log(1 + (x_1 - 1)^2 + sum_{i>1} i (2 x_i^2 - x_{i-1})^2)."""
    i = np.arange(2, d + 1)

    def values(x: Array) -> Array:
        chain = i * (2 * x[:, 1:] ** 2 - x[:, :-1]) ** 2
        return np.log1p((x[:, 0] - 1) ** 2 + chain.sum(axis=1))

    exponent = 1.0 - np.exp2(-np.arange(d, dtype=np.float64))  # x_1 = 1, and x_i^2 = x_{i-1} / 2
    return Textbook(values, (-10.0, 10.0), np.exp2(-exponent), 0.0, _together(d))


def ellipsoid(d: int) -> Textbook:
    """sum_i w_i x_i^2, with weights from 1 to 100."""
    weights = 100.0 ** (np.arange(d) / (d - 1))
    return Textbook(lambda x: x**2 @ weights, (-5.0, 5.0), np.zeros(d), 0.0, _apart(d))


def _pairs(d: int) -> tuple[tuple[int, ...], ...]:
    return tuple((i, i + 1) for i in range(0, d, 2))


def branin_pairs(d: int) -> Textbook:
    """Branin's function over pairs: each has three optima that are equally good."""

    def values(z: Array) -> Array:
        x, y = -5 + 15 * z[:, ::2], 15 * z[:, 1::2]
        bowl = (y - 5.1 * x**2 / (4 * np.pi**2) + 5 * x / np.pi - 6) ** 2
        return (bowl + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10).sum(axis=1)

    at = np.tile([(np.pi + 5) / 15, 2.275 / 15], d // 2)
    return Textbook(values, (0.0, 1.0), at, d // 2 * 10 / (8 * np.pi), _pairs(d))


def himmelblau_pairs(d: int) -> Textbook:
    """(x^2 + y - 11)^2 + (x + y^2 - 7)^2 over pairs: each has four optima that are equally good."""

    def values(z: Array) -> Array:
        x, y = z[:, ::2], z[:, 1::2]
        return ((x**2 + y - 11) ** 2 + (x + y**2 - 7) ** 2).sum(axis=1)

    return Textbook(values, (-5.0, 5.0), np.tile([3.0, 2.0], d // 2), 0.0, _pairs(d))


def camel_pairs(d: int) -> Textbook:
    """The six-hump camel over pairs, each on [-2, 2] x [-1, 1]."""

    def values(z: Array) -> Array:
        x, y = 2 * z[:, ::2], z[:, 1::2]
        return ((4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + 4 * (y**2 - 1) * y**2).sum(axis=1)

    at = np.array([0.08984201310031806, -0.7126564030207396])  # by Newton's method
    return Textbook(values, (-1.0, 1.0), np.tile(at / [2, 1], d // 2), d // 2 * -1.0316284534898774, _pairs(d))


_SHEKEL_AT = np.array(
    [[4, 4, 4, 4], [1, 1, 1, 1], [8, 8, 8, 8], [6, 6, 6, 6], [3, 7, 3, 7],
     [2, 9, 2, 9], [5, 5, 3, 3], [8, 1, 8, 1], [6, 2, 6, 2], [7, 3.6, 7, 3.6]]
)  # fmt: skip
_SHEKEL_WIDTH = np.array([1, 2, 2, 4, 4, 6, 3, 7, 5, 5]) / 10


def shekel() -> Textbook:
    """Shekel's ten foxholes: -sum_k 1 / (|x - a_k|^2 + c_k), of four parameters."""

    def values(x: Array) -> Array:
        distance = ((x[:, None, :] - _SHEKEL_AT) ** 2).sum(axis=2)
        return -(1 / (distance + _SHEKEL_WIDTH)).sum(axis=1)

    at = np.array([4.000746531592147, 4.000592934138629, 3.9996633980404135, 3.9995098005868956])  # by Newton's method
    return Textbook(values, (0.0, 10.0), at, float(values(at[None])[0]), _together(4))


# --- sums over hidden groups ---


def modes(name: str, D: int, d: int, M: int, seed: int) -> Task:
    """The paper's additive family with the three modes of each group drawn anew, to be maximised.

    Weights and width are the paper's, and the sum is over M groups of d among D parameters on [-1, 1].
    """
    rng = _rng(name, seed)
    dims = rng.permutation(D)[: d * M].reshape(M, d)
    centres = -1 + 2 * rng.uniform(*INNER, (M, 3, d))
    v = 0.01 * d**0.1
    logs = np.log([0.1, 0.8, 0.1]) - 0.5 * d * np.log(2 * np.pi * v)

    def terms(x: Array) -> Array:  # (M, d) -> (M, 3)
        return np.asarray(logs - ((x[:, None, :] - centres) ** 2).sum(axis=2) / (2 * v))

    def function(x: Array) -> float:
        return float(np.maximum(np.logaddexp.reduce(terms(x[dims]), axis=1), -700).sum())

    # A mode is a fixed point of x = sum_k c_k P(k | x); from each centre, which may be near another one.
    best = np.full(M, -np.inf)
    for k in range(3):
        x = centres[:, k].copy()
        for _ in range(2000):
            found = terms(x)
            weights = np.exp(found - np.logaddexp.reduce(found, axis=1, keepdims=True))
            x = np.einsum("gk,gkd->gd", weights, centres)
        best = np.maximum(best, np.logaddexp.reduce(terms(x), axis=1))
    space = sumbo.Space.from_bounds([(-1.0, 1.0)] * D)
    return Task(space, _at(function, space.names), "maximize", float(best.sum()), 0.0, _sorted(dims))


def peaks(name: str, D: int, d: int, count: int, seed: int) -> Task:
    """A sum over groups of d: in each the highest of `count` stretched Gaussian peaks, to be maximised.

    The highest one has height 1, the others 0.5 to 0.95, and the optimum is D / d, for a group's value is that of
    one peak. After Gallagher's functions of the COCO platform (Hansen et al., 2009).
    """
    rng = _rng(name, seed)
    dims = rng.permutation(D).reshape(-1, d)
    M = len(dims)
    centres = rng.uniform(*INNER, (M, count, d))
    heights = rng.uniform(0.5, 0.95, (M, count))
    heights[:, 0] = 1.0
    widths = rng.uniform(0.15, 0.45, (M, count, d))
    turns = np.linalg.qr(rng.normal(size=(M, count, d, d)))[0]

    def function(x: Array) -> float:
        offset = np.einsum("gkij,gkj->gki", turns, x[dims][:, None, :] - centres) / widths
        return float((heights * np.exp(-0.5 * (offset**2).sum(axis=2))).max(axis=1).sum())

    space = sumbo.Space.from_bounds([(0.0, 1.0)] * D)
    return Task(space, _at(function, space.names), "maximize", float(M), 0.0, _sorted(dims))


_FEATURES = 300


class Draw(NamedTuple):
    """A draw of a Gaussian process by random features: sum_k a_k cos(w_k x + b_k)."""

    waves: Array  # (d, F)
    phases: Array  # (F,)
    sizes: Array  # (F,)

    def values(self, X: Array) -> Array:
        return np.asarray(np.cos(X @ self.waves + self.phases) @ self.sizes)

    def negative(self, x: Array) -> tuple[float, Array]:
        """-f and its gradient."""
        angles = x @ self.waves + self.phases
        return -float(np.cos(angles) @ self.sizes), self.waves @ (np.sin(angles) * self.sizes)

    def highest(self) -> float:
        """The maximum over the unit cube: the best of 40 climbs, from the highest of many points that are apart."""
        from scipy.optimize import minimize
        from scipy.stats import qmc

        d = len(self.waves)
        X = qmc.Sobol(d, scramble=False).random_base2(10 + d)
        X = X[np.argsort(-self.values(X))]
        starts: list[Array] = []
        while len(starts) < 40 and len(X):
            starts.append(X[0])
            X = X[((X - X[0]) ** 2).sum(axis=1) > 0.08**2]
        tight = {"ftol": 1e-13, "gtol": 1e-7}
        ends = [
            minimize(self.negative, x, jac=True, method="L-BFGS-B", bounds=[(0, 1)] * d, options=tight) for x in starts
        ]
        return max(-float(end.fun) for end in ends)


def gp_sum(name: str, D: int, smooth: bool, seed: int) -> Task:
    """A sum of draws of Gaussian processes over hidden groups of two to four, to be maximised on the unit cube.

    The kernel is a squared exponential one, or Matern 5/2 where it is not smooth; lengthscales are about 0.14 sqrt(d)
    for a group of d, so that there are several maxima in each.
    """
    rng = _rng(name, seed)
    sizes: list[int] = []
    while sum(sizes) < D:
        left = D - sum(sizes)
        sizes.append(left if left <= 4 else int(rng.integers(2, min(4, left - 2) + 1)))
    dims = np.split(rng.permutation(D), np.cumsum(sizes)[:-1])
    draws = []
    for d in sizes:
        waves = rng.normal(size=(d, _FEATURES)) / (rng.uniform(0.1, 0.18, (d, 1)) * np.sqrt(d))
        if not smooth:  # a Student's t of 2 nu degrees of freedom is the spectrum of a Matern kernel
            waves /= np.sqrt(rng.chisquare(5, _FEATURES) / 5)
        amplitudes = rng.normal(size=_FEATURES) * np.sqrt(2 / _FEATURES) * rng.uniform(0.7, 1.4)
        draws.append(Draw(waves, rng.uniform(0, 2 * np.pi, _FEATURES), amplitudes))

    def function(x: Array) -> float:
        return sum(float(draw.values(x[group])) for draw, group in zip(draws, dims, strict=True))

    best = sum(draw.highest() for draw in draws)
    space = sumbo.Space.from_bounds([(0.0, 1.0)] * D)
    return Task(space, _at(function, space.names), "maximize", best, 0.0, _sorted(dims))


def mixed(name: str, D: int, seed: int) -> Task:
    """Floats, ints and categories, as `sumbo.problems.mixed`, whose optimum is anywhere."""
    problem = sumbo.problems.mixed(D, int(_rng(name, seed).integers(2**31)))

    def value(params: Mapping[str, Any]) -> float:
        return float(problem.values(problem.space.array(params)[None])[0])

    return Task(problem.space, value, "minimize", problem.optimum, 0.0, problem.groups)


# --- plateaus ---


def stumps(name: str, D: int, seed: int) -> Task:
    """The accuracy of a weighted vote of D stumps on 300 examples, in their thresholds: steps of 1/300; maximised.

    Labels are the vote at thresholds anywhere, so that the best accuracy is 1. No two parameters are apart.
    """
    rng = _rng(name, seed)
    thresholds = rng.uniform(*INNER, D)
    features = rng.random((300, D))
    signs = rng.choice([-1.0, 1.0], D) * rng.uniform(0.3, 1.0, D)

    def votes(x: Array) -> NDArray[np.bool_]:
        return np.asarray(np.where(features > x, signs, -signs).sum(axis=1) > 0)

    labels = votes(thresholds)
    space = sumbo.Space.from_bounds([(0.0, 1.0)] * D)
    return Task(space, _at(lambda x: float((votes(x) == labels).mean()), space.names), "maximize", 1.0)


def rounded(name: str, D: int, seed: int) -> Task:
    """An accuracy in steps of 1/200 that drops from 1 to 1/2 away from a point anywhere, to be maximised.

    Parameters count in pairs, with weights from 1 down to 1/30, and each has 25 levels.
    """
    rng = _rng(name, seed)
    dims = rng.permutation(D).reshape(-1, 2)
    best = (np.floor(25 * rng.uniform(*INNER, D)) + 0.5) / 25
    weights = 30.0 ** -rng.permutation(np.linspace(0, 1, len(dims)))
    slopes = rng.uniform(-0.8, 0.8, len(dims))

    def function(x: Array) -> float:
        z = (np.minimum(np.floor(25 * x), 24) + 0.5) / 25 - best
        a, b = z[dims[:, 0]], z[dims[:, 1]]
        loss = weights @ (a**2 + b**2 + 2 * slopes * a * b) / weights.sum()
        return float(np.round(200 * (0.5 + 0.5 * np.exp(-6 * loss))) / 200)

    space = sumbo.Space.from_bounds([(0.0, 1.0)] * D)
    return Task(space, _at(function, space.names), "maximize", 1.0)
