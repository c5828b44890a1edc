"""Regret of a history of values: how far a search stayed from a known optimum.

    y_t    value of evaluation t, t = 1 .. T      shape (T,)
    r_t    instantaneous regret: y_t - optimum when minimising, optimum - y_t when maximising
    S_t    simple regret,     min_{i <= t} r_i
    R_t    cumulative regret, sum_{i <= t} r_i

Values better than the stated optimum give negative regret. That is left as it is: clipping it would hide
a wrong optimum. A value that is not finite (NaN, infinite, or None in a list) is a failed evaluation.
All functions here take what `simple_regret` takes, refuse what it refuses, and return an array of shape (T,).

    >>> simple_regret([3.0, None, 1.5], 1.0, direction="minimize").tolist()
    [2.0, 2.0, 0.5]
    >>> cumulative_regret([3.0, 2.0, 1.5], 1.0, direction="minimize").tolist()
    [2.0, 3.0, 3.5]
"""

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from sumbo.errors import SettingError

Direction = Literal["minimize", "maximize"]
FloatArray = npt.NDArray[np.float64]


def simple_regret(values: npt.ArrayLike, optimum: float, *, direction: Direction) -> FloatArray:
    """Simple regret S_t after each evaluation: the regret of the best value so far.

    A failed evaluation brings no improvement; before the first finite value the regret is infinite.

    Args:
        values: The history, in order of evaluation, shape (T,).
        optimum: The best possible value.
        direction: Whether smaller or larger values are better.

    Returns:
        S_t for t = 1 .. T, never increasing.

    Raises:
        SettingError: If the history is not a flat list of numbers, the optimum is not finite or the
            direction is unknown.
    """
    gaps = instantaneous_regret(values, optimum, direction=direction)
    return np.minimum.accumulate(np.where(np.isnan(gaps), np.inf, gaps))


def cumulative_regret(values: npt.ArrayLike, optimum: float, *, direction: Direction) -> FloatArray:
    """Cumulative regret R_t after each evaluation: the sum of all regrets so far.

    A failed evaluation counts as the worst finite value of the whole history. Leaving it out would reward
    methods that fail often, and the worst value *so far* does not exist when the first evaluation fails.

    Raises:
        SettingError: As for `simple_regret`, and if every evaluation failed.
    """
    gaps = instantaneous_regret(values, optimum, direction=direction)
    failed = np.isnan(gaps)
    if failed.size and failed.all():
        raise SettingError(
            f"expected at least one finite value, got {gaps.size} failed ones; "
            "cumulative regret is undefined for such a run, leave it out"
        )
    if failed.any():
        gaps[failed] = gaps[~failed].max()
    return np.cumsum(gaps)


def average_regret(values: npt.ArrayLike, optimum: float, *, direction: Direction) -> FloatArray:
    """Average regret R_t / t after each evaluation, by `cumulative_regret`; a no-regret method drives it to zero."""
    total = cumulative_regret(values, optimum, direction=direction)
    return total / np.arange(1, total.size + 1)


def instantaneous_regret(values: npt.ArrayLike, optimum: float, *, direction: Direction) -> FloatArray:
    """Instantaneous regret r_t of each evaluation, NaN where it failed; a new array."""
    check_direction(direction)
    if not math.isfinite(optimum):
        raise SettingError(f"optimum must be a finite number, got {optimum!r}; give the known best value")
    try:
        y = np.array(values, dtype=np.float64)  # a copy: the caller's stays untouched
    except (TypeError, ValueError) as error:
        raise SettingError(f"values must be a flat sequence of numbers: {error}") from error
    if y.ndim != 1:
        raise SettingError(
            f"values must have shape (T,), got {y.shape}; pass one run at a time, in order of evaluation"
        )
    y[~np.isfinite(y)] = np.nan
    return y - optimum if direction == "minimize" else optimum - y


def check_direction(direction: str) -> None:
    """Refuse any direction but "minimize" and "maximize" with a SettingError."""
    if isinstance(direction, list | tuple):
        one = "weigh them in one value, or make all but one a constraint"
        raise SettingError(f"several objectives are not built, got direction={direction!r}; {one}")
    if direction not in ("minimize", "maximize"):
        raise SettingError(f'direction must be "minimize" or "maximize", got {direction!r}')
