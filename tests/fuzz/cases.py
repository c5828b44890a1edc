"""Searches that are hard on a numerical library, drawn by hypothesis.

Only the kind of trouble is drawn number by number, so that a failure shrinks to the kind that matters; the points and
values themselves come from a seeded generator, which keeps a thousand dimensions as cheap to draw as one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from sumbo import Categorical, Float, Int, Optimizer, Space
from sumbo.space.parameters import Parameter

Array = np.ndarray[Any, Any]

# What a space repeats until it has its dimensions.
_PARAMETERS: dict[str, tuple[Parameter, ...]] = {
    "cube": (Float(0.0, 1.0),),
    "30 decades": (Float(1e-15, 1e15, log=True),),
    "600 decades": (Float(1e-300, 1e300, log=True),),
    "tiny": (Float(1.0, 1.0 + 1e-9),),
    "huge": (Float(-1e308, 1e308),),
    "500 categories": (Categorical([f"c{k}" for k in range(500)]),),
    "integers of one value": (Float(0.0, 1.0), Int(3, 3)),
    "integers": (Int(0, 1), Int(-(2**49), 2**49 - 1)),
    "mixed": (
        Float(-3.0, 7.0),
        Int(1, 8),
        Categorical(["relu", "gelu", None]),
        Float(1e-15, 1e15, log=True),
        Int(5, 5),
        Int(1, 10**6, log=True),
    ),
}
SPACES = tuple(_PARAMETERS)
POINTS = ("anywhere", "one place", "1e-15 apart", "corners", "a line", "a hundred copies")
VALUES = (
    *("smooth", "constant", "zero", "1e-300", "1e300", "subnormal", "heavy tails", "one outlier", "two values"),
    *("the largest", "1e-15 apart", "99% failed", "all failed", "half failed", "huge and tiny", "integers"),
)
CHEAP = ("random", "direct")
COSTLY = ("auto", "add-gp-ucb", "gp-ucb", "gp-ei", "rembo", "seq-groups", "cyclic-groups")


@dataclass(frozen=True)
class Case:
    """A search: its space, what was told, and who is asked next."""

    method: str = "random"
    space: str = "cube"
    dim: int = 1
    points: str = "anywhere"
    values: str = "smooth"
    n: int = 0
    pending: int = 0
    steps: int = 1
    direction: str = "minimize"
    seed: int = 0

    def make_space(self) -> Space:
        kinds = _PARAMETERS[self.space]
        return Space({f"p{i}": kinds[i % len(kinds)] for i in range(self.dim)})

    def history(self) -> tuple[Array, Array]:
        """Points of the unit cube (n, D) that stand for points of the space, and values (n,), NaN for a failure."""
        rng = np.random.default_rng(self.seed)
        U = self.make_space().snap(_units(self.points, self.n, self.dim, rng))
        return U, _told(self.values, U, rng)

    def optimizer(self, y: Array | None = None, **options: Any) -> Optimizer:
        """The optimizer with its history; `y` in place of the case's own values."""
        U, own = self.history()
        space = self.make_space()
        opt = Optimizer(space, options.get("method", self.method), options.get("direction", self.direction), self.seed)
        for u, value in zip(U, own if y is None else y, strict=True):
            tell(opt, opt.observe, space.from_unit(u), float(value))
        return opt


def tell(opt: Optimizer, how: Callable[..., Any], what: Any, value: float) -> None:
    """Tell a value, or a failure for NaN."""
    if np.isnan(value):
        how(what, failed=True)
    else:
        how(what, value)


def _units(kind: str, n: int, D: int, rng: np.random.Generator) -> Array:
    U = rng.random((n, D))
    centre = rng.random(D)
    if kind == "one place":
        return np.tile(centre, (n, 1))
    if kind == "a hundred copies":  # of each of a few points
        return U[np.arange(n) % max(n // 100, 3)] if n else U
    if kind == "1e-15 apart":
        return centre + 1e-15 * rng.integers(-5, 6, (n, D))
    if kind == "corners":
        return np.round(U)
    if kind == "a line":
        return np.tile(U[:, :1], (1, D))
    return U


def _told(kind: str, U: Array, rng: np.random.Generator) -> Array:
    n = len(U)
    smooth = np.cos(4.0 * U[:, :10]).sum(axis=1)
    failing = np.where(rng.random(n) < {"99% failed": 0.99, "all failed": 2.0}.get(kind, 0.5), np.nan, smooth)
    if kind == "99% failed" and n:
        failing[n // 2] = 1.0  # one that succeeded
    kinds: dict[str, Callable[[], Array]] = {
        "constant": lambda: np.full(n, 4.2),
        "zero": lambda: np.zeros(n),
        "1e-300": lambda: 1e-300 * smooth,
        "1e300": lambda: 1e300 * smooth,
        "subnormal": lambda: 5e-324 * np.arange(n),
        "heavy tails": lambda: np.sinh(rng.standard_cauchy(n).clip(-700, 700)),
        "one outlier": lambda: np.where(np.arange(n) == n // 2, 1e100, smooth),
        "two values": lambda: np.where(smooth > 0, 1.0, -1.0),
        "the largest": lambda: np.where(smooth > 0, 1.0, -1.0) * np.finfo(float).max,
        "1e-15 apart": lambda: 1.0 + 2.0**-52 * rng.integers(0, 5, n),
        "99% failed": lambda: failing,
        "all failed": lambda: failing,
        "half failed": lambda: failing,
        "huge and tiny": lambda: np.where(rng.random(n) < 0.5, 1e300, 1e-300) * smooth,
        "integers": lambda: np.round(8.0 * smooth),
    }
    return kinds.get(kind, lambda: smooth)()


def cases(methods: tuple[str, ...], most: int, **fixed: Any) -> st.SearchStrategy[Case]:
    """Cases of these methods. `most` bounds n * D, which is what a case costs; `fixed` fields are not drawn freely."""

    def within(case: Case) -> Case:
        dim = min(case.dim, 30) if case.space == "500 categories" else case.dim  # 500 names for each are slow to check
        return replace(case, dim=dim, n=min(case.n, max(most // dim, 12)))

    small, large = st.integers(1, 12), st.sampled_from((20, 50, 100, 300, 1000))
    fields: dict[str, st.SearchStrategy[Any]] = {
        "method": st.sampled_from(methods),
        "space": st.sampled_from(SPACES),
        "dim": st.integers(0, 9).flatmap(lambda k: large if k == 9 else small),
        "points": st.sampled_from(POINTS),
        "values": st.sampled_from(VALUES),
        "n": st.integers(0, 9).flatmap(lambda k: st.integers(100, 200) if k == 9 else st.integers(0, 24)),
        "pending": st.integers(0, 3),
        "steps": st.integers(1, 5),
        "direction": st.sampled_from(("minimize", "maximize")),
        "seed": st.integers(0, 2**32 - 1),
    }
    return st.builds(Case, **(fields | fixed)).map(within)
