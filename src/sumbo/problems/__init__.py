"""Test functions with a known optimum and known groups, and the paper's two real experiments.

Each is a function that returns a `Problem`; `get("levy-30", seed=3)` finds one by name. `astro` and `faces` need the
extras of these names. `D` is the number of dimensions; sizes and seeds that do not fit are a `SettingError`.

    >>> problem = get("levy-30", seed=3)
    >>> problem.dim, problem.direction, problem.optimum
    (30, 'minimize', 0.0)
"""

import difflib
import re
from collections.abc import Callable
from functools import partial

from sumbo.errors import SettingError
from sumbo.problems.astro import astro, cosmology
from sumbo.problems.base import GaussianNoise, Problem, with_failures
from sumbo.problems.faces import faces
from sumbo.problems.functions import ackley, additive, hartmann6, levy, mixed, powell, rosenbrock, styblinski_tang

__all__ = [
    "GaussianNoise",
    "Problem",
    "ackley",
    "additive",
    "astro",
    "cosmology",
    "faces",
    "get",
    "hartmann6",
    "levy",
    "mixed",
    "names",
    "powell",
    "rosenbrock",
    "styblinski_tang",
    "with_failures",
]


# Of each kind that `get` makes: the sizes of the example in `names`, the function, and what that calls its seed.
_KINDS: dict[str, tuple[str, Callable[..., Problem], str]] = {
    "additive": ("24-6-4", additive, "seed"),
    "levy": ("30", levy, "shift_seed"),
    "styblinski-tang": ("40", styblinski_tang, "shift_seed"),
    "rosenbrock": ("30", rosenbrock, "shift_seed"),
    "rosenbrock-log": ("30", partial(rosenbrock, log=True), "shift_seed"),
    "hartmann6": ("50", hartmann6, "seed"),
    "powell": ("40", powell, "shift_seed"),
    "ackley": ("20", ackley, "shift_seed"),
    "mixed": ("20", mixed, "seed"),
}
# These need packages of their own, so they are not among the names that always work.
_REAL: dict[str, Callable[..., Problem]] = {"astro": astro, "faces": faces}


def names() -> tuple[str, ...]:
    """One example name of each kind that `get` knows; other sizes work alike."""
    return tuple(f"{kind}-{sizes}" for kind, (sizes, *_) in _KINDS.items())


def get(name: str, *, seed: int = 0) -> Problem:
    """The problem of a name such as "levy-30" or "additive-24-6-4" (D, d, M).

    Args:
        name: A kind and its sizes, joined by hyphens; see `names`. Also "astro" and "faces", which have no sizes.
        seed: Fixes groups, active coordinates and shifts. Classic functions are always shifted here, so that
            no method profits from an optimum at the centre of the box.

    Raises:
        SettingError: If the kind is unknown, or the sizes do not fit it.
        MissingPackageError: If "astro" or "faces" lacks its extra.
    """
    if name in _REAL:
        return _REAL[name](seed=seed)
    kind = re.sub(r"(-[0-9]+)*\Z", "", name)
    sizes = name[len(kind) :].split("-")[1:]
    if kind not in _KINDS:
        near = difflib.get_close_matches(kind, _KINDS, n=1)
        if not near:
            raise SettingError(f"unknown problem {name!r}; known are, in any size: {', '.join(names())}")
        example = _KINDS[near[0]][0].split("-")
        fitting = sizes if len(sizes) == len(example) else example
        raise SettingError(f"unknown problem {name!r}; did you mean {'-'.join([*near, *fitting])!r}?")
    usual, make, seeded = _KINDS[kind]
    needed = len(usual.split("-"))
    if len(sizes) != needed:
        raise SettingError(
            f"a {kind!r} name needs {needed} size(s), got {len(sizes)} in {name!r}; write it as '{kind}-{usual}'"
        )
    return make(*map(int, sizes), **{seeded: seed})
