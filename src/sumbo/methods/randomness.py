"""What everyone who asks a method for points needs: its randomness, and a point that nobody has had before."""

import numbers
from collections.abc import Collection
from typing import Any

import numpy as np

from sumbo._typing import Array
from sumbo.errors import SettingError
from sumbo.space import Region

_TRIES = 100  # at finding a point that has not been asked before
_ENUMERABLE = 100_000  # points of a space that may be gone through one by one


def checked_seed(seed: Any) -> int:
    """The seed as an int; None is drawn by the operating system.

    Raises:
        SettingError: it is not a whole number from 0 up.
    """
    if seed is None:
        return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral) or seed < 0:
        raise SettingError(f"seed must be a whole number from 0 up, or None; got {seed!r}")
    return int(seed)


def trial_rng(seed: int, number: int, *parts: int) -> np.random.Generator:
    """The randomness of one trial, or of a part of it: the same whatever other trials drew before."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number, *parts)))


def study_rng(seed: int) -> np.random.Generator:
    """The randomness that all trials of a study have in common."""
    return np.random.default_rng(np.random.SeedSequence(seed))


def nearest_untried(
    region: Region, point: Array, seen: Collection[bytes], rng: np.random.Generator
) -> tuple[dict[str, Any], Array]:
    """The suggestion, or its nearest neighbour that has not been asked before, as long as there is one.

    Args:
        region: where it may lie.
        point: the suggestion in the unit cube, (D,).
        seen: the bytes of the unit-cube points asked before; a set, as there are many.
        rng: where neighbours are drawn from.

    Returns:
        The point as params, and in the unit cube.
    """
    space = region.space
    exhausted = region.trivial and space.size is not None and len(seen) >= space.size
    params, unit = _params_and_unit(region, point)
    for spread in () if exhausted else np.geomspace(1e-3, 1.0, _TRIES):
        if unit.tobytes() not in seen:
            break
        shifted = point + spread * rng.standard_normal(space.dim)
        params, unit = _params_and_unit(region, shifted if spread < 0.5 else region.sample(1, rng)[0])
    if unit.tobytes() in seen and not exhausted and space.size is not None and space.size <= _ENUMERABLE:
        params = _last_ones(region, point, seen)
        unit = space.to_unit(params)
    return params, unit


def _params_and_unit(region: Region, point: Array) -> tuple[dict[str, Any], Array]:
    params = dict(region.space.from_unit(region.nearest(point)))
    return params, region.space.to_unit(params)


def _last_ones(region: Region, point: Array, seen: Collection[bytes]) -> dict[str, Any]:
    """The nearest of the few points that are left: chance may miss them for long."""
    grid = region.grid()
    for i in np.argsort(np.square(grid - point).sum(axis=1), kind="stable"):
        params = dict(region.space.from_unit(grid[i]))
        if region.space.to_unit(params).tobytes() not in seen:
            break
    return params
