"""`Problem`: a test function that knows its domain, its optimum and its true groups; and holes in one."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from sumbo.errors import SettingError
from sumbo.regret import Direction, FloatArray, check_direction
from sumbo.space import Space

Groups = tuple[tuple[int, ...], ...]
Which = npt.NDArray[np.intp]
Fails = Callable[[FloatArray], npt.NDArray[np.bool_]]  # which points of the unit cube, (n, D), fail


@dataclass(frozen=True, eq=False)
class GaussianNoise:
    """A stream of Gaussian draws of standard deviation `std`, each one new: drawing advances `rng`."""

    std: float
    rng: np.random.Generator

    def __call__(self) -> float:
        """Draw the next value."""
        return float(self.rng.normal(0.0, self.std))


# eq=False: two problems are compared by identity, for arrays and callables have no useful equality.
@dataclass(frozen=True, eq=False)
class Problem:
    """A test function with a known optimum.

    Call it with one point for one value, as an optimiser does; `values` evaluates many points and never
    adds noise, so that regret can be measured on it. Arrays outside the domain are evaluated, not refused.

    Attributes:
        name: Short name, as `sumbo.problems.get` understands it.
        space: The domain, one parameter per dimension.
        direction: "minimize" or "maximize".
        optimum: The best noise-free value, in the problem's own direction; where it is not known, a bound, and the
            problem's own docstring says so.
        optimiser: A point in the user's units, a category as its index, that attains it; shape (D,), read-only.
        evaluate: The function itself: (n, D) -> (n,), without noise.
        groups: The true groups of the dimensions that matter; None if the function is no sum over disjoint
            groups.
        irrelevant: The dimensions that do nothing.
        noise: Added to every call, but not to `values`; see `noisy`.
    """

    name: str
    space: Space = field(repr=False)
    direction: Direction
    optimum: float
    optimiser: FloatArray = field(repr=False)
    evaluate: Callable[[FloatArray], FloatArray] = field(repr=False)
    groups: Groups | None = None
    irrelevant: tuple[int, ...] = ()
    noise: GaussianNoise | None = None

    def __post_init__(self) -> None:
        """Check the direction and keep a read-only copy of the optimiser."""
        check_direction(self.direction)
        best = np.array(self.optimiser, dtype=np.float64)
        if best.shape != (self.dim,):
            raise SettingError(f"optimiser must have shape ({self.dim},) as the space has, got {best.shape}")
        best.setflags(write=False)
        object.__setattr__(self, "optimiser", best)

    @property
    def dim(self) -> int:
        """Number of dimensions D."""
        return self.space.dim

    def __call__(self, x: npt.ArrayLike | Mapping[str, Any]) -> float:
        """Value at one point in the user's units, (D,) or a dict by name; with noise if the problem is noisy.

        Raises:
            SettingError: If x is not one point with D numbers.
            SpaceError: If a dict does not fit the space.
        """
        point = _floats(self.space.array(x) if isinstance(x, Mapping) else x)
        if point.shape != (self.dim,):
            raise SettingError(
                f"{self.name} expects one point of shape ({self.dim},), got shape {point.shape}; "
                "for many points call .values(X)"
            )
        value = float(self.values(point[None, :])[0])
        return value if self.noise is None else value + self.noise()

    def values(self, X: npt.ArrayLike) -> FloatArray:
        """Noise-free values (n,) at many points in the user's units, one per row, (n, D).

        Raises:
            SettingError: If X has another shape or is not numeric.
        """
        points = _floats(X)
        if points.ndim != 2 or points.shape[1] != self.dim:
            raise SettingError(
                f"{self.name} expects points of shape (n, {self.dim}), got shape {points.shape}; "
                "for one point call the problem itself"
            )
        return self.evaluate(points)

    def regret(self, value: float) -> float:
        """Instantaneous regret of a value: its distance from the optimum, never below zero.

        The optimum is exact, so what lies beyond it is rounding or noise and counts as zero; NaN stays NaN.
        `sumbo.regret` keeps the sign and covers whole histories.
        """
        gap = value - self.optimum if self.direction == "minimize" else self.optimum - value
        # np.maximum rather than max: the latter's answer to NaN depends on the order of its arguments.
        return float(np.maximum(gap, 0.0))

    def noisy(self, std: float, seed: int = 0) -> Problem:
        """The same problem, whose calls add Gaussian noise of this standard deviation, in units of the value.

        The k-th call adds the k-th draw of the seed's stream, wherever it evaluates: a run in one process
        repeats exactly. `values`, `optimum` and `regret` stay noise-free. Each pickled copy goes on with the
        stream from where it was copied, so worker processes that get a fresh copy per call repeat a draw.

        Raises:
            SettingError: If std is negative or not finite, or the seed is not a whole number >= 0.
        """
        if not (np.isfinite(std) and std >= 0):
            raise SettingError(f"std must be a finite number >= 0, got {std!r}; 0 means no noise")
        rng = np.random.default_rng(whole_number("seed", seed, at_least=0))
        return replace(self, noise=GaussianNoise(std=float(std), rng=rng))


def whole_number(name: str, value: int, *, at_least: int) -> int:
    """The value as a plain int; a SettingError if it is not a whole number of at least `at_least`."""
    try:
        number = operator.index(value)
    except TypeError:
        number = at_least - 1
    if number < at_least:
        raise SettingError(f"{name} must be a whole number of at least {at_least}, got {value!r}")
    return number


def _floats(x: npt.ArrayLike) -> FloatArray:
    try:
        return np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise SettingError(f"a point must be numbers in a sequence or a dict: {error}") from error


_SHARE = 0.2  # of the box that fails
_CELLS = 60
_CORNER = 3.0 - (6.0 * _SHARE) ** (1.0 / 3.0)  # three uniform numbers have a larger sum with probability _SHARE


def with_failures(problem: Problem, shape: str, seed: int = 0) -> Problem:
    """The problem with 20% of its box cut out, never its optimum.

    Args:
        problem: Any problem of float parameters.
        shape: "corner": where three parameters are large together. "band": a slab across the box next to the
            optimum. "cells": patches all over the box, a fifth of those around 60 random centres.
        seed: Fixes which parameters, or where the cells are.

    Raises:
        SettingError: If there is no such shape.
    """
    if shape not in ("corner", "band", "cells"):
        raise SettingError(f"shape must be one of corner, band, cells; got {shape!r}")
    lows, highs = (np.array([getattr(p, end) for p in problem.space.parameters]) for end in ("low", "high"))
    best = (problem.optimiser - lows) / (highs - lows)
    rng = np.random.default_rng(whole_number("seed", seed, at_least=0))
    if shape == "corner":
        dims = rng.choice(len(best), size=3, replace=False)
        fails: Fails = partial(_in_slab, dims=dims, flipped=best[dims] > 0.5, low=_CORNER, high=np.inf)
    elif shape == "band":
        i = int(rng.integers(len(best)))
        start = best[i] + 0.05 if best[i] < 0.5 else best[i] - 0.05 - _SHARE
        fails = partial(_in_slab, dims=[i], flipped=False, low=start, high=start + _SHARE)
    else:
        fails = _cells(best, rng)
    cut = partial(_with_holes, whole=problem, fails=fails, lows=lows, widths=highs - lows)
    return replace(problem, name=f"{problem.name}, {shape} fails", evaluate=cut, groups=None, irrelevant=())


def _with_holes(X: FloatArray, whole: Problem, fails: Fails, lows: FloatArray, widths: FloatArray) -> FloatArray:
    return np.where(fails((X - lows) / widths), np.nan, whole.evaluate(X))


def _in_slab(U: FloatArray, dims: Any, flipped: Any, low: float, high: float) -> npt.NDArray[np.bool_]:
    """Where some coordinates, each perhaps seen from its other end, have a sum between two numbers."""
    total = np.where(flipped, 1.0 - U[:, dims], U[:, dims]).sum(axis=1)
    return (low < total) & (total < high)


def _cells(best: FloatArray, rng: np.random.Generator) -> Fails:
    centres = rng.random((_CELLS, len(best)))
    # Cells differ in size, and the optimum's own must not fail: add others until they are a fifth of the box.
    share = np.bincount(_nearest(rng.random((20_000, len(best))), centres), minlength=_CELLS) / 20_000
    order = rng.permutation(_CELLS)
    order = order[order != _nearest(best[None, :], centres)[0]]
    return partial(_in_cells, centres=centres, failing=order[: np.searchsorted(np.cumsum(share[order]), _SHARE) + 1])


def _in_cells(U: FloatArray, centres: FloatArray, failing: Which) -> npt.NDArray[np.bool_]:
    return np.isin(_nearest(U, centres), failing)


def _nearest(U: FloatArray, centres: FloatArray) -> Which:
    return (np.square(centres).sum(axis=1)[None, :] - 2.0 * U @ centres.T).argmin(axis=1)
