"""What everyone who asks a method for points needs: its randomness, and a point that nobody has had before."""

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from sumbo._typing import Array
from sumbo.methods.base import check_count
from sumbo.space.region import Region

_TRIES = 100  # at finding a point that has not been asked before
_ENUMERABLE = 100_000  # points of a space that may be gone through one by one


def checked_seed(seed: Any) -> int:
    """The seed as an int; None is drawn by the operating system, anything else is a SettingError."""
    if seed is None:
        return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
    return check_count("seed", seed, 0, ", or None")


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

    The suggestion is a point of the unit cube, (D,), and so are the ones asked before, of which `seen` has the bytes.
    Returns the point as params, and in the unit cube.
    """
    space = region.space
    exhausted = region.trivial and space.size is not None and len(seen) >= space.size
    for neighbour in _nearer_first(region, point, rng):
        params = dict(space.from_unit(region.nearest(neighbour)))
        unit = space.to_unit(params)
        if exhausted or unit.tobytes() not in seen:
            break
    return params, unit


def _nearer_first(region: Region, point: Array, rng: np.random.Generator) -> Iterator[Array]:
    yield point
    space = region.space
    for spread in np.geomspace(1e-3, 1.0, _TRIES):
        shifted = point + spread * rng.standard_normal(space.dim)
        yield shifted if spread < 0.5 else region.sample(1, rng)[0]
    if space.size is not None and space.size <= _ENUMERABLE:  # chance may miss the few that are left for long
        grid = region.grid()
        yield from grid[np.argsort(np.square(grid - point).sum(axis=1), kind="stable")]
