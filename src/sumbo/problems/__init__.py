"""Test functions with a known optimum and known groups, and the paper's two real experiments.

Each is a function that returns a `Problem`; `get("levy-30", seed=3)` finds one by name. `astro` and `faces` need the
extras of these names.

    >>> problem = get("levy-30", seed=3)
    >>> problem.dim, problem.direction, problem.optimum
    (30, 'minimize', 0.0)
"""

import difflib
import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from sumbo.errors import SettingError
from sumbo.problems.additive import additive
from sumbo.problems.astro import astro
from sumbo.problems.base import GaussianNoise, Problem
from sumbo.problems.classic import ackley, hartmann6, levy, powell, rosenbrock, styblinski_tang
from sumbo.problems.faces import faces
from sumbo.problems.failing import cosmology, with_failures
from sumbo.problems.mixed import mixed

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


class _Kind(NamedTuple):
    """How `get` makes one kind of problem: from the sizes in its name, and the seed."""

    sizes: tuple[int, ...]  # those of the example in `names`
    make: Callable[[tuple[int, ...], int], Problem]


def _moved(make: Callable[..., Problem]) -> Callable[[tuple[int, ...], int], Problem]:
    return lambda sizes, seed: make(*sizes, shift_seed=seed)


def _seeded(make: Callable[..., Problem]) -> Callable[[tuple[int, ...], int], Problem]:
    return lambda sizes, seed: make(*sizes, seed=seed)


_KINDS = {
    "additive": _Kind((24, 6, 4), _seeded(additive)),
    "levy": _Kind((30,), _moved(levy)),
    "styblinski-tang": _Kind((40,), _moved(styblinski_tang)),
    "rosenbrock": _Kind((30,), _moved(rosenbrock)),
    "rosenbrock-log": _Kind((30,), _moved(partial(rosenbrock, log=True))),
    "hartmann6": _Kind((50,), _seeded(hartmann6)),
    "powell": _Kind((40,), _moved(powell)),
    "ackley": _Kind((20,), _moved(ackley)),
    "mixed": _Kind((20,), _seeded(mixed)),
}
# These need packages of their own, so they are not among the names that always work.
_REAL: dict[str, Callable[..., Problem]] = {"astro": astro, "faces": faces}


def names() -> tuple[str, ...]:
    """One example name of each kind that `get` knows; other sizes work alike."""
    return tuple(_name(kind, known.sizes) for kind, known in _KINDS.items())


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
    kind, sizes = _parse(name)
    if name in _REAL:
        return _REAL[name](seed=seed)
    if kind not in _KINDS:
        raise SettingError(f"unknown problem {name!r}; {_advice(kind, sizes)}")
    known = _KINDS[kind]
    if len(sizes) != len(known.sizes):
        raise SettingError(
            f"a {kind!r} name needs {len(known.sizes)} size(s), got {len(sizes)} in {name!r}; "
            f"write it as {_name(kind, known.sizes)!r}"
        )
    return known.make(sizes, seed)


def _parse(name: str) -> tuple[str, tuple[int, ...]]:
    match = re.fullmatch(r"(.*?)((?:-[0-9]+)*)", name, re.DOTALL)
    assert match is not None  # every string matches
    kind, tail = match.groups()
    return kind, tuple(int(size) for size in tail.split("-")[1:])


def _name(kind: str, sizes: tuple[int, ...]) -> str:
    return "-".join([kind, *map(str, sizes)])


def _advice(kind: str, sizes: tuple[int, ...]) -> str:
    near = difflib.get_close_matches(kind, _KINDS, n=1)
    if not near:
        return f"known are, in any size: {', '.join(names())}"
    example = _KINDS[near[0]].sizes
    fitting = sizes if len(sizes) == len(example) else example
    return f"did you mean {_name(near[0], fitting)!r}?"
