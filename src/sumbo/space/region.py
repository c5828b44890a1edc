"""The part of the unit cube that known constraints and fixed values leave.

| symbol | shape  | meaning                                                                                  |
|--------|--------|------------------------------------------------------------------------------------------|
| U, V   | (m, D) | points of the unit cube; V are snapped: they stand for params                            |
| x      | (m, D) | numbers in the user's units, of the parameters that a Linear names: a + b u or exp(a + b u) |
| w      | (m, D) | the same between 0 (lowest) and 1 (highest); every Linear is linear in w                  |
| Z      | (m, k) | the coordinates of U that are free to move: equalities give the pivots, the others are loose |

Inside, points are drawn by rejection where the region is large, else by hit-and-run: every chain moves along a random
line to a uniform place on the part of it that is inside. Directions have the covariance of the region, so that a thin
one is no harder than a round one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize

from sumbo import _interrupts
from sumbo._typing import Array
from sumbo.errors import SpaceError
from sumbo.space.constraints import Constraint, Known, Linear, check_constraints, conditional, show_constraint
from sumbo.space.parameters import Float, Parameter
from sumbo.space.space import Space

TOLERANCE = 1e-11  # of a Linear, relative to the size of its terms
_NARROW = 1e-8  # a range of sums or values narrower than this counts as one value
_ACCEPTED = 0.05  # a larger share of the cube is sampled by rejection
_POOL = 1024  # chains that stand for the region
_VERTICES = 256  # corners from which chains start, at most
_LEVELS = 80  # of violation, on the way to the first allowed points
_TRIES = 8  # draws of so many points as are needed, before some are taken twice
_TRIED = 4096  # points that say how thin a region is

ValueAndGradient = Callable[[Array], tuple[Array, Array]]


def _affine(p: Parameter) -> tuple[float, float]:
    """(a, b) with x = a + b u, or x = exp(a + b u) with log; between its values, an Int is as a Float."""
    if p.levels and not p.log:
        step = (p.high - p.low) / max(p.levels - 1, 1) or 1.0
        return p.low - step / 2.0, p.levels * step
    low, high = (p.low - 0.5, p.high + 0.5) if p.levels else (p.low, p.high)
    return (np.log(low), np.log(high) - np.log(low)) if p.log else (low, high - low)


@dataclass(frozen=True)
class _Frame:
    """Which coordinates move, and how the others follow: w[pivots] = level - slopes @ w[free]."""

    pivots: NDArray[np.intp]
    free: NDArray[np.intp]  # of those in a Linear
    walked: NDArray[np.intp]  # the coordinates Z: free, and all others if a Known may look at them
    slopes: Array
    level: Array
    G: Array  # G z <= h is what the linear constraints say of Z
    h: Array
    curved: bool  # is there more than G z <= h?


class Region:
    """Where suggestions may lie: points of the cube that keep all constraints and the fixed values. Immutable.

    Args:
        space: the space.
        constraints: `Linear` (also from `SumTo`) and `Known`.
        fixed: unit coordinates of dimensions whose value is given, by their index.

    Raises:
        SpaceError: Constraints that do not fit the space. That nothing is allowed, `check` says.
    """

    def __init__(
        self, space: Space, constraints: Iterable[Constraint] = (), fixed: Mapping[int, float] | None = None
    ) -> None:
        self.space = space
        self.constraints = check_constraints(space, constraints)
        self.trivial = not self.constraints
        self._linear, self._known = list[Linear](), list[Known]()
        for c in self.constraints:
            if isinstance(c, Known):
                self._known.append(c)
            elif any(space[name].when for name in c.coefficients):
                self._known.append(conditional(space, c))
            else:
                self._linear.append(c)
        self._fixed = np.array(sorted(fixed or {}), dtype=np.intp)
        point = np.full(space.dim, 0.5)
        point[self._fixed] = [(fixed or {})[int(i)] for i in self._fixed]
        self._values = space.snap(point)[self._fixed]
        self._levels = space.levels
        self._free = self._levels != 1
        self._free[self._fixed] = False
        self._rows = np.zeros((len(self._linear), space.dim))
        for row, c in zip(self._rows, self._linear, strict=True):
            row[[space.names.index(name) for name in c.coefficients]] = list(c.coefficients.values())
        self._used = (self._rows != 0.0).any(axis=0)
        numeric = [p if used else Float(0.0, 1.0) for p, used in zip(space.parameters, self._used, strict=True)]
        self._a, self._b = np.array([_affine(p) for p in numeric]).T
        self._log = np.array([p.log for p in numeric])
        self._low, self._high = (np.array([getattr(p, end) for p in numeric], dtype=float) for end in ("low", "high"))
        self._size = np.abs(self._rows) @ np.maximum(np.abs(self._low), np.abs(self._high))
        self._size[self._size == 0.0] = 1.0
        if self._fixed.size:
            self._low[self._fixed] = self._high[self._fixed] = self._numbers(point[None])[0, self._fixed]
            self._low[self._fixed] = self._high[self._fixed] = self._numbers(self.snap(point)[None])[0, self._fixed]
        self._width = self._high - self._low
        self._A = self._rows * self._width / self._size[:, None]
        offset = self._rows @ self._low
        ends = [(-np.inf if c.lower is None else c.lower, np.inf if c.upper is None else c.upper) for c in self._linear]
        self._lower, self._upper = np.array(ends).reshape(-1, 2).T
        self._l, self._h = (self._lower - offset) / self._size, (self._upper - offset) / self._size
        self._narrow = self._h - self._l <= _NARROW

    # Membership

    def snap(self, U: Array) -> Array:
        """`Space.snap`, with the fixed values put in."""
        V = self.space.snap(U)
        V[..., self._fixed] = self._values
        return V

    def violations(self, U: Array) -> Array:
        """By how much points break the worst constraint, (m,): 0 where they are allowed.

        A Linear counts relative to the size of its terms, a Known as its value. Known ones are asked only where the
        linear ones hold, as their formula may make no sense elsewhere.
        """
        V = self.space.snap(U)
        off = np.abs(V[:, self._fixed] - self._values).max(axis=1, initial=0.0)
        linear = np.maximum(self._linear_violations(V), np.where(off > 1e-12, off, 0.0))
        rows = np.flatnonzero(linear == 0.0)
        linear[rows] = self._known_violations(V[rows])
        return linear

    def contains(self, U: Array) -> NDArray[np.bool_]:
        """Which points are allowed, (m,)."""
        return self.violations(U) == 0.0

    @property
    def fixed(self) -> bool:
        """Are any values given?"""
        return self._fixed.size > 0

    @property
    def is_fixed(self) -> NDArray[np.bool_]:
        """Which dimensions' values are given, (D,)."""
        return np.isin(np.arange(self.space.dim), self._fixed)

    @property
    def costly(self) -> bool:
        """Does it take functions of the user's to tell what is inside?"""
        return len(self._known) > 0

    @property
    def open(self) -> bool:
        """Is it the whole space?"""
        return self.trivial and not self.fixed

    @property
    def plain(self) -> bool:
        """Is it the whole of a space without conditions?"""
        return self.open and not self.space.conditional

    def moving(self, U: Array) -> NDArray[np.bool_]:
        """Which coordinates of points stand for a value that may change, (m, D)."""
        moving = self.space.active(U)
        moving[:, self._fixed] = False
        return moving

    def grid(self) -> Array:
        """All allowed points, of a space without Floats."""
        points = self.space.grid()
        return points[self.contains(points)]

    def _linear_violations(self, V: Array) -> Array:
        sums = self._numbers(V) @ self._rows.T
        excess = np.maximum(self._lower - sums, sums - self._upper) / self._size
        worst = excess.max(axis=1, initial=0.0)
        return np.where(worst > TOLERANCE, worst, 0.0)

    def _known_violations(self, V: Array) -> Array:
        return np.maximum(self._known_values(V), 0.0).max(axis=1, initial=0.0)

    def _known_values(self, V: Array) -> Array:
        if not self._known or not len(V):
            return np.zeros((len(V), len(self._known)))
        columns = [p._decode(np.ascontiguousarray(V[:, i])) for i, p in enumerate(self.space.parameters)]
        values = np.empty((len(V), len(self._known)))
        for out, numbers, active in zip(values, np.stack(columns, axis=1).tolist(), self.space.active(V), strict=True):
            params = self.space._params(numbers)
            if not active.all():
                params = {name: v for (name, v), a in zip(params.items(), active, strict=True) if a}
            out[:] = [known(params) for known in self._known]
        return np.clip(values, -1e100, 1e100)  # what is infinite breaks solvers

    def _key(self, V: Array) -> Array:
        """A violation to compare, (m,): 0 inside, below 1 where the linear constraints hold."""
        v = self.violations(V)
        key = v / (1.0 + v)
        return np.where(self._linear_violations(V) > 0.0, 1.0 + key, key) if self._linear and self._known else key

    # Coordinates

    def _numbers(self, U: Array) -> Array:
        x = self._a + self._b * U
        if self._log.any():
            x[:, self._log] = np.exp(x[:, self._log])
        return x

    def _units(self, x: Array, dims: NDArray[np.intp]) -> Array:
        log = self._log[dims]
        x = np.where(log, np.log(np.maximum(x, 1e-300), where=log, out=x.copy()), x)
        return (x - self._a[dims]) / self._b[dims]

    @cached_property
    def _frame(self) -> _Frame | None:
        """None where the linear constraints leave nothing."""
        moving = np.flatnonzero(self._used & self._free)
        equalities = self._equalities()
        if equalities is None:
            return None
        pivots: list[int] = []
        rows: list[Array] = []
        values: list[float] = []
        for row, value in sorted(equalities, key=lambda e: bool((e[0][self._log] != 0.0).any())):
            row = row.copy()
            for p, known, v in zip(pivots, rows, values, strict=True):
                row, value = row - row[p] * known, value - row[p] * v
            size = np.where(self._levels > 0, 1e-6, 1.0) * np.abs(row)  # rather not one that has to be rounded
            pivot = int(np.argmax(size))
            if abs(row[pivot]) < 1e-9:
                continue  # said already
            row, value = row / row[pivot], value / row[pivot]
            for i, known in enumerate(rows):
                rows[i], values[i] = known - known[pivot] * row, values[i] - known[pivot] * value
            pivots, rows, values = [*pivots, pivot], [*rows, row], [*values, value]
        free = np.setdiff1d(moving, pivots)
        slopes, level = np.array(rows).reshape(-1, self.space.dim)[:, free], np.array(values)
        walked = np.setdiff1d(np.flatnonzero(self._free), pivots) if self._known else free
        P = np.array(pivots, dtype=np.intp)
        # What is left to keep, as rows Q w[free] <= q: the ends of the pivots, and the inequalities.
        ends = (self._numbers(np.array([[0.0], [1.0]]) * np.ones(self.space.dim)) - self._low) / np.where(
            self._width, self._width, 1.0
        )
        Q = [-slopes, slopes]
        q = [ends[1, P] - level, level - ends[0, P]]
        for sign, bound in ((1.0, self._h), (-1.0, -self._l)):
            some = np.isfinite(bound)
            Q.append(sign * (self._A[some][:, free] - self._A[some][:, P] @ slopes))
            q.append(bound[some] - sign * self._A[some][:, P] @ level)
        Qs, qs = np.vstack(Q), np.concatenate(q)
        matters = np.abs(Qs).max(axis=1, initial=0.0) > 1e-12
        straight = ~(np.abs(Qs[:, self._log[free]]) > 1e-12).any(axis=1)
        alpha, beta = (
            (self._a - self._low)[free] / self._width[free],
            (self._b / np.where(self._width, self._width, 1))[free],
        )
        keep = matters & straight
        G = np.zeros((int(keep.sum()), len(walked)))
        G[:, np.searchsorted(walked, free)] = Qs[keep] * beta
        h = qs[keep] - Qs[keep] @ np.where(self._log[free], 0.0, alpha)
        return _Frame(P, free, walked, slopes, level, G, h, bool(self._known) or bool((matters & ~straight).any()))

    def _equalities(self) -> list[tuple[Array, float]] | None:
        """Rows and values in w, also of inequalities that leave one value only; None where there is no point."""
        narrow = self._narrow
        found = [(self._A[i], (self._l[i] + self._h[i]) / 2.0) for i in np.flatnonzero(narrow)]
        if self._linear and self._program(np.zeros(self.space.dim)) is None:
            return None
        if not self._linear or self._inner_radius() > 1e-7:
            return found
        single = np.eye(self.space.dim)[self._used & self._free]
        for row in np.vstack([self._A[~narrow], single]):
            if not row.any():
                continue
            ends = [self._program(sign * row) for sign in (1.0, -1.0)]
            low, high = (float(row @ w) if w is not None else np.nan for w in ends)
            if high - low <= _NARROW:
                found.append((row, (low + high) / 2.0))
        return found

    def _program(self, cost: Array, *, rows: NDArray[np.bool_] | None = None) -> Array | None:
        """The w in the linear constraints (or only these rows of them) where the cost is least, or None."""
        keep = np.ones(len(self._A), dtype=bool) if rows is None else rows
        equal = keep & (self._l == self._h)
        up, down = keep & ~equal & np.isfinite(self._h), keep & ~equal & np.isfinite(self._l)
        used = np.flatnonzero(self._used)
        A, b = np.vstack([self._A[up], -self._A[down]]), np.concatenate([self._h[up], -self._l[down]])
        return _solve(cost, A, b, self._A[equal], self._l[equal], used)

    def _inner_radius(self) -> float:
        """How far inside all inequalities one can be, measured in w."""
        D, some, narrow = self.space.dim, np.flatnonzero(self._used & self._free), self._narrow
        up, down = ~narrow & np.isfinite(self._h), ~narrow & np.isfinite(self._l)
        box = np.eye(D)[some]
        A = np.vstack([self._A[up], -self._A[down], box, -box])
        b = np.concatenate([self._h[up], -self._l[down], np.ones(len(some)), np.zeros(len(some))])
        A = np.column_stack([A, np.where(A.any(axis=1), 1.0, 0.0)])
        E = np.column_stack([self._A[narrow], np.zeros(int(narrow.sum()))])
        used = np.append(np.flatnonzero(self._used), D)
        found = _solve(-np.eye(D + 1)[D], A, b, E, (self._l[narrow] + self._h[narrow]) / 2.0, used)
        return 0.0 if found is None else float(found[D])

    def _complete(self, V: Array, *, whole: bool = True) -> Array:
        """Points whose pivots are as the equalities want them; those that are rounded only if `whole`."""
        f = self._frame
        if f is None or not f.pivots.size:
            return V
        w = (self._numbers(V)[:, f.free] - self._low[f.free]) / self._width[f.free]
        x = self._low[f.pivots] + self._width[f.pivots] * (f.level - w @ f.slopes.T)
        some = whole | (self._levels[f.pivots] == 0)
        V = V.copy()
        V[:, f.pivots[some]] = self._units(x, f.pivots)[:, some]
        return V

    def _settle(self, U: Array, *, repair: bool = True) -> Array:
        """Snapped points near U, nearly always in the linear constraints if U was."""
        if not self._linear:
            return self.snap(U)
        if not repair or not self._whole_dims.size:
            return self.snap(self._complete(self.snap(U)))
        U = self._complete(U)
        V = self.snap(self._complete(self.snap(U), whole=False))
        bad = np.flatnonzero(self._linear_violations(V) > 0.0)
        if bad.size:
            V[bad] = self.snap(self._complete(self._repair(U[bad], V[bad]), whole=False))
        return V

    @cached_property
    def _whole_dims(self) -> NDArray[np.intp]:
        """Dimensions in a Linear that have to be rounded."""
        return np.flatnonzero(self._used & self._free & (self._levels > 0))

    def _repair(self, U: Array, V: Array) -> Array:
        """Move rounded coordinates by one step at a time, as long as that takes sums nearer to where they may be."""
        whole = self._whole_dims
        others = np.setdiff1d(np.flatnonzero(self._used), whole)
        room = self._A[:, others]
        lowest, highest = np.minimum(room, 0.0).sum(axis=1), np.maximum(room, 0.0).sum(axis=1)
        low, high = self._l - highest - TOLERANCE / 2, self._h - lowest + TOLERANCE / 2
        steps = 1.0 / (self._levels[whole] - 1)  # in w
        k = np.rint((self._numbers(V)[:, whole] - self._low[whole]) / self._width[whole] / steps)
        wish = (self._numbers(U)[:, whole] - self._low[whole]) / self._width[whole] / steps
        delta = np.vstack([np.eye(len(whole)), -np.eye(len(whole))])
        change = delta * steps @ self._A[:, whole].T  # (2K, r)
        rows = np.arange(len(k))
        for _ in range(2 * len(whole) + 8):
            sums = (k[rows] * steps) @ self._A[:, whole].T
            now = np.maximum(np.maximum(low - sums, sums - high), 0.0).sum(axis=1)
            rows, sums, now = rows[now > 0.0], sums[now > 0.0], now[now > 0.0]
            if not rows.size:
                break
            after = sums[:, None] + change
            broken = np.maximum(np.maximum(low - after, after - high), 0.0).sum(axis=2)
            moved = np.concatenate([k[rows] + 1, k[rows] - 1], axis=1)
            allowed = (moved >= 0) & (moved <= np.tile(self._levels[whole] - 1, 2))
            away = np.abs(moved - np.tile(wish[rows], 2))
            least = np.where(allowed, broken, np.inf).min(axis=1)
            choice = np.argmin(np.where(allowed & (broken <= least[:, None] + 1e-12), away, np.inf), axis=1)
            better = least < now
            rows, choice = rows[better], choice[better]
            k[rows] += delta[choice]
        V = V.copy()
        V[:, whole] = self._units(self._low[whole] + self._width[whole] * steps * k, whole)
        return V

    # Sampling

    def sample(self, m: int, rng: np.random.Generator) -> Array:
        """Allowed points spread evenly over the region, (m, D).

        Raises:
            SpaceError: No allowed point was found.
        """
        if self.trivial:
            return self.snap(rng.random((m, self.space.dim)))
        found: list[Array] = []
        if self._accepted >= _ACCEPTED:
            while (missing := m - sum(map(len, found))) > 0:
                U = rng.random((int(1.2 * missing / self._accepted) + 16, self.space.dim))
                V = self._settle(U, repair=False)
                found.append(V[self.contains(V)][:missing])
            return np.vstack([np.empty((0, self.space.dim)), *found])
        f, (pool, spread) = self._frame, self._pool
        if f is None or not len(pool):
            self._explain()
        steps = 8 if f.curved else 10 + 2 * min(pool.shape[1], 40)
        for _ in range(_TRIES):
            Z = self._walk(pool[rng.integers(len(pool), size=m)], steps, rng, spread)
            V = self._settle(self._lift(Z, rng))
            found.append(V[self.contains(V)])
            if sum(map(len, found)) >= m:
                return np.vstack(found)[:m]
        inside = np.vstack(found)
        if not len(inside):
            inside = self._inside
        if not len(inside):
            self._explain()
        again = inside[rng.integers(len(inside), size=m - min(m, len(inside)))]
        loose = np.setdiff1d(np.flatnonzero(self._free & ~self._used), f.walked)
        again[:, loose] = rng.random((len(again), len(loose)))
        return np.vstack([inside[:m], self.snap(again)])

    @cached_property
    def _accepted(self) -> float:
        """The share of the cube, seen along the equalities, that is inside."""
        if self._frame is None:
            return 0.0
        V = self._settle(np.random.default_rng(0).random((1024, self.space.dim)), repair=False)
        return float(self.contains(V).mean())

    def _lift(self, Z: Array, rng: np.random.Generator | None = None) -> Array:
        """Points U with these coordinates Z, and random loose ones."""
        assert self._frame is not None
        U = np.full((len(Z), self.space.dim), 0.5) if rng is None else rng.random((len(Z), self.space.dim))
        U[:, self._frame.walked] = Z
        return U

    @cached_property
    def _pool(self) -> tuple[Array, Array]:
        """Coordinates Z of points spread over the region, (C, k), and a root of their covariance, (k, k)."""
        f, rng = self._frame, np.random.default_rng(0)
        if f is None:
            return np.empty((0, 0)), np.empty((0, 0))
        k = len(f.walked)
        C = max(2 * k + 64, _POOL // 4 if f.curved else _POOL)
        U = rng.random((C, self.space.dim))
        if self._linear:
            q = int((self._used & self._free).sum())
            costs = rng.standard_normal((min(4 * q + 4, _VERTICES), self.space.dim))
            corners = np.array([w for cost in costs if (w := self._program(cost)) is not None])
            corners = np.unique(corners.round(9), axis=0) if len(corners) else corners
            if not len(corners):
                return np.empty((0, k)), np.empty((k, k))
            some = np.flatnonzero(self._used & self._free)
            w = np.clip(rng.dirichlet(np.ones(len(corners)), C) @ corners, 0.0, 1.0)[:, some]
            U[:, some] = np.clip(self._units(self._low[some] + self._width[some] * w, some), 0.0, 1.0)
        Z = U[:, f.walked]
        if f.curved:
            Z = self._descend(Z, rng)
        for _ in range((4 if f.curved else 16) if len(Z) else 0):
            Z = self._walk(Z, 4 if f.curved else 12, rng, _root(Z))
        return Z, _root(Z)

    def _descend(self, Z: Array, rng: np.random.Generator) -> Array:
        """From anywhere in the linear constraints to allowed points: levels of violation, each less than the last.

        At each level the better part goes on in several copies, and moves about below that level. What is found is
        spread over all parts of the region, as far as they are wide.
        """
        key, stuck, last = self._key(self._settle(self._lift(Z))), 0, np.inf
        for _ in range(_LEVELS):
            level = float(np.quantile(key, 0.3, method="lower"))
            if level == 0.0 or stuck >= 10:
                break
            stuck, last = (stuck + 1, last) if level > 0.98 * last else (0, level)
            Z = Z[np.resize(rng.permutation(np.flatnonzero(key <= level)), len(Z))]  # each as often as the others
            Z = self._walk(Z, 4, rng, _root(Z), level)
            key = self._key(self._settle(self._lift(Z)))
        inside = np.flatnonzero(key == 0.0)
        return Z[np.resize(rng.permutation(inside), len(Z))] if inside.size else Z[:0]

    def _walk(self, Z: Array, steps: int, rng: np.random.Generator, root: Array, level: float = 0.0) -> Array:
        """Hit-and-run of all chains at once. Where a constraint is no line, intervals shrink to the present point."""
        f = self._frame
        assert f is not None
        if not Z.shape[1]:
            return Z
        for i in range(steps):
            _interrupts.poll()
            d = rng.standard_normal(Z.shape)
            if i % 4 < 3:
                d = d @ root.T
            else:
                d[rng.random(Z.shape) < 0.5] = 0.0
            with np.errstate(divide="ignore", invalid="ignore"):
                rate = d @ f.G.T
                room = np.maximum(f.h - Z @ f.G.T, 0.0) / rate
                to_zero, to_one = -Z / d, (1.0 - Z) / d
            high = np.fmin.reduce(np.maximum(to_zero, to_one), axis=1, initial=1e9)
            low = np.fmax.reduce(np.minimum(to_zero, to_one), axis=1, initial=-1e9)
            high = np.maximum(np.minimum(high, np.where(rate > 0.0, room, np.inf).min(axis=1, initial=np.inf)), 0.0)
            low = np.minimum(np.maximum(low, np.where(rate < 0.0, room, -np.inf).max(axis=1, initial=-np.inf)), 0.0)
            t = low + (high - low) * rng.random(len(Z))
            if not f.curved:
                Z = np.clip(Z + t[:, None] * d, 0.0, 1.0)
                continue
            rows = np.arange(len(Z))
            out = Z.copy()
            for _ in range(24):
                trial = np.clip(Z[rows] + t[rows, None] * d[rows], 0.0, 1.0)
                good = self._key(self._settle(self._lift(trial))) <= level
                out[rows[good]] = trial[good]
                rows = rows[~good]
                if not rows.size:
                    break
                low[rows] = np.where(t[rows] < 0.0, t[rows], low[rows])
                high[rows] = np.where(t[rows] < 0.0, high[rows], t[rows])
                t[rows] = low[rows] + (high[rows] - low[rows]) * rng.random(len(rows))
            Z = out
        return Z

    @cached_property
    def _inside(self) -> Array:
        """Some allowed points, (n, D); none where none were found."""
        Z = self._pool[0]
        if not len(Z):
            return np.empty((0, self.space.dim))
        U = self._lift(Z, np.random.default_rng(1))
        V = self._settle(U)
        V = V[self.contains(V)]
        if not len(V):
            nearest = [v for u in U[:16] if (v := self._whole(u)) is not None]
            V = np.array(nearest).reshape(-1, self.space.dim)
        return V

    # The nearest point

    def nearest(self, u: Array) -> Array:
        """The (nearly) nearest allowed point, (D,): u itself, snapped, where it is allowed.

        Raises:
            SpaceError: No allowed point was found.
        """
        v = self.snap(np.asarray(u, dtype=float))
        if self.trivial or self.contains(v[None])[0]:
            return v
        found = []
        if self._linear and (p := self._project(v, self._free)) is not None:
            found.append(p)
            whole = self._settle(p[None])[0]
            if self._whole_dims.size:
                whole = np.where(self._levels > 0, whole, v)
                if (p := self._project(whole, self._free & (self._levels == 0))) is not None:
                    found.append(p)
        found = [w for w in (self._settle(p[None])[0] for p in found) if self.contains(w[None])[0]]
        if not found:
            inside = self._inside
            if not len(inside):
                self._explain()
            if not self._known:
                inside = np.where(self._used | ~self._free, inside, v)
            elif self.space.nominal.any():
                same = self.snap(np.where(self.space.nominal, v, inside))
                inside = np.vstack([inside, same[self.contains(same)]])
            near = self._settle(self._restored(v)[None])
            inside = np.vstack([inside, near[self.contains(near)]])
            order = np.argsort(np.square(inside - v).sum(axis=1), kind="stable")[:6]
            found = [w for i in order for w in (inside[i], self._towards(inside[i], v))]
            found.sort(key=lambda w: float(np.square(w - v).sum()))

            def closeness(V: Array) -> tuple[Array, Array]:
                return -np.square(V - v).sum(axis=1), -2.0 * (V - v)

            bounds = np.zeros(len(v)), np.ones(len(v))
            found.append(self.climb(closeness, found[0][None], *bounds, stop=lambda: False)[0][0])
        return min(found, key=lambda w: float(np.square(w - v).sum()))

    def _project(self, v: Array, moving: NDArray[np.bool_]) -> Array | None:
        """The nearest u in the linear constraints, integers being as Floats; None if there is none or a log scale.

        A least distance programme, solved as Lawson and Hanson's (1974, chapter 23) non-negative least squares.
        """
        J = np.flatnonzero(self._used & moving)
        if self._log[self._used & self._free].any() or not J.size:
            return None
        width = np.where(self._width, self._width, 1.0)
        A = self._A[:, J] * (self._b / width)[J]
        at_v = self._A @ ((self._numbers(v[None])[0] - self._low) / width) - A @ v[J]
        least, most = self._l - at_v, self._h - at_v
        equal = most - least <= _NARROW
        if equal.any():
            E, e = A[equal], (least[equal] + most[equal]) / 2.0
            start, N = v[J] + np.linalg.pinv(E) @ (e - E @ v[J]), linalg.null_space(E)
        else:
            start, N = v[J], np.eye(len(J))
        up, down, box = ~equal & np.isfinite(most), ~equal & np.isfinite(least), np.eye(len(J))
        low, high = self._units(self._low[J], J), self._units(self._high[J], J)
        G = np.vstack([-A[up], A[down], box, -box])  # G u >= g
        g = np.concatenate([-most[up], least[down], low, -high]) - G @ start
        y = _least_distance(G @ N, g)
        if y is None:
            return None
        u = v.copy()
        u[J] = np.clip(start + N @ y, 0.0, 1.0)
        return u

    def _towards(self, inside: Array, v: Array) -> Array:
        """The allowed point next to v that is seen on the way from an allowed one."""
        low, high, best = 0.0, 1.0, inside
        for _ in range(8):
            t = np.linspace(low, high, 24)[1:]
            V = self._settle(inside + t[:, None] * (v - inside))
            good = np.flatnonzero(self.contains(V))
            if good.size:
                best, low, high = V[good[-1]], t[good[-1]], t[min(good[-1] + 1, len(t) - 1)]
            else:
                high = t[0]
        return best

    def _whole(self, v: Array) -> Array | None:
        """The allowed point nearest to v by the sum of differences, where whole numbers make it hard; or None."""
        J = np.flatnonzero(self._used & self._free)
        if self._frame is None or self._known or not (self._levels[J] > 0).any():
            return None
        n, whole = len(J), self._levels[J] > 0
        steps = np.where(whole, 1.0 / np.maximum(self._levels[J] - 1, 1), 1.0)
        w0 = (self._numbers(v[None])[0, J] - self._low[J]) / self._width[J]
        A = np.column_stack([self._A[:, J] * steps, np.zeros((len(self._A), n))])
        near = np.block([[np.diag(steps), -np.eye(n)], [-np.diag(steps), -np.eye(n)]])
        result = optimize.milp(
            np.append(np.zeros(n), np.ones(n)),
            constraints=[
                optimize.LinearConstraint(A, self._l, self._h),
                optimize.LinearConstraint(near, -np.inf, np.append(w0, -w0)),
            ],
            integrality=np.append(whole, np.zeros(n)),
            bounds=optimize.Bounds(np.zeros(2 * n), np.append(1.0 / steps, np.full(n, np.inf))),
            options={"node_limit": 5000},
        )
        if result.x is None:
            return None
        k = np.where(whole, np.rint(result.x[:n]), result.x[:n])
        u = v.copy()
        u[J] = np.clip(self._units(self._low[J] + self._width[J] * steps * k, J), 0.0, 1.0)
        for p in (self._project(np.where(self._levels > 0, u, v), self._free & (self._levels == 0)), u):
            if p is not None and self.contains(w := self.snap(self._complete(p[None])))[0]:
                return w[0]
        return None

    # Climbing

    def climb(
        self,
        function: ValueAndGradient,
        starts: Array,
        low: Array,
        high: Array,
        *,
        stop: Callable[[], bool],
        rounds: int = 60,
    ) -> tuple[Array, Array]:
        """Maximise a smooth function inside the region and the box, from each start. Returns points and values.

        Categories stay. Whole numbers move as if there were values between them, are rounded, and stay while the
        others move on. Points are allowed, those of starts that are not become so first.
        """
        points = []
        for start in np.asarray(starts, dtype=float):
            best = self.nearest(start)
            if stop():
                points.append(best)
                continue
            moving = self._free & ~self.space.nominal
            best = self._better(function, best, self._ascend(function, best, low, high, moving, stop, rounds))
            if (self._levels[moving] > 0).any() and not stop():
                moving &= self._levels == 0
                best = self._better(function, best, self._ascend(function, best, low, high, moving, stop, rounds))
            points.append(best)
        P = np.array(points).reshape(-1, self.space.dim)
        return P, function(P)[0]

    def _better(self, function: ValueAndGradient, start: Array, end: Array) -> Array:
        candidates = np.vstack([start, self._settle(self._restored(end)[None])])
        if not self.contains(candidates[1:])[0]:
            candidates[1] = self._towards(start, end)
        values = function(candidates)[0]
        return candidates[1] if values[1] > values[0] else candidates[0]

    def _ascend(
        self,
        function: ValueAndGradient,
        start: Array,
        low: Array,
        high: Array,
        moving: NDArray[np.bool_],
        stop: Callable[[], bool],
        rounds: int,
    ) -> Array:
        J = np.flatnonzero(moving)
        if not J.size:
            return start
        lowest = np.where(self._levels > 0, 0.5 / np.maximum(self._levels, 1), 0.0)
        bounds = np.stack(
            [np.minimum(np.maximum(low, lowest), start), np.maximum(np.minimum(high, 1.0 - lowest), start)]
        )
        latest = start

        def full(y: Array) -> Array:
            u = start.copy()
            u[J] = np.clip(y, bounds[0, J], bounds[1, J])
            return u[None]

        def negative(y: Array) -> tuple[float, Array]:
            _interrupts.poll()
            value, gradient = function(full(y))
            return -float(value[0]), -gradient[0, J]

        def slopes(y: Array) -> Array:
            x = self._numbers(full(y))[0]
            return (self._rows * np.where(self._log, self._b * x, self._b))[:, J]

        # Rows as steep as the cube is wide: one that is flatter would count as kept before it is.
        steepest = np.abs(slopes(start[J])).max(axis=1, initial=0.0)
        size = np.where(steepest > 0.0, steepest, 1.0)

        def sums(y: Array) -> Array:
            return self._numbers(full(y))[0] @ self._rows.T / size

        def after(y: Array) -> None:
            nonlocal latest
            latest = full(y)[0]
            if stop():
                raise StopIteration

        lower, upper, some = self._lower / size, self._upper / size, steepest > 0.0
        equal = self._narrow & some
        up, down = ~equal & some & np.isfinite(upper), ~equal & some & np.isfinite(lower)
        middle = np.where(equal, (self._lower + self._upper) / 2.0 / size, 0.0)
        rules: list[dict[str, object]] = []
        for kind, rows, sign, bound in (
            ("eq", equal, 1.0, middle),
            ("ineq", down, 1.0, lower),
            ("ineq", up, -1.0, upper),
        ):
            if rows.any():
                rules.append(
                    {
                        "type": kind,
                        "fun": lambda y, r=rows, s=sign, b=bound: s * (sums(y)[r] - b[r]),
                        "jac": lambda y, r=rows, s=sign: s * slopes(y)[r] / size[r, None],
                    }
                )
        if self._known:
            rules.append(
                {
                    "type": "ineq",
                    "fun": lambda y: -self._known_values(self.snap(full(y)))[0],
                    "jac": lambda y: -self._known_slopes(full(y)[0], J),
                }
            )
        try:
            result = optimize.minimize(
                negative,
                start[J],
                jac=True,
                method="SLSQP",
                bounds=bounds[:, J].T,
                constraints=rules,
                callback=after,
                options={"maxiter": rounds, "ftol": 1e-12},
            )
        except StopIteration:
            return latest
        return full(result.x)[0] if np.isfinite(result.x).all() else latest

    def _restored(self, u: Array) -> Array:
        """A point near u that keeps the Known constraints too, by Newton's steps to where they are 0."""
        f = self._frame
        if not self._known or f is None or not (J := f.walked[self._levels[f.walked] == 0]).size:
            return u
        for _ in range(12):
            V = self._settle(u[None])
            if self._linear_violations(V)[0] > 0.0 or not ((g := self._known_values(V)[0]) > 0.0).any():
                break
            slopes = self._known_slopes(V[0], J)[g > 0.0]
            u = V[0]
            u[J] = np.clip(u[J] - np.linalg.pinv(slopes) @ (g[g > 0.0] * (1.0 + 1e-6)), 0.0, 1.0)
        return u

    def _known_slopes(self, u: Array, J: NDArray[np.intp]) -> Array:
        """By finite differences, those of whole numbers from one to the next."""
        step = np.where(self._levels[J] > 0, 1.0 / np.maximum(self._levels[J], 1), 1e-6)
        step = np.where(u[J] + step > 1.0, -step, step)
        U = np.tile(u, (len(J) + 1, 1))
        U[np.arange(len(J)), J] += step
        V = self.snap(U)
        values = self._known_values(V)
        moved = V[np.arange(len(J)), J] - V[-1, J]
        with np.errstate(invalid="ignore"):  # a Known may be infinite
            return np.nan_to_num(
                (values[:-1] - values[-1]) / np.where(moved, moved, 1.0)[:, None], posinf=0, neginf=0
            ).T

    # Checks

    def check(self, rng: np.random.Generator) -> None:
        """Is there anything to search?

        Raises:
            SpaceError: No point is allowed; the message names the constraints that contradict each other.

        Warns:
            RuntimeWarning: The region is so thin that random points do not find it.
        """
        if self.trivial:
            return
        if self._accepted < _ACCEPTED and not len(self._inside):
            self._explain()
        equalities = [c for c in self._linear if c.equality]
        if self._accepted >= _ACCEPTED or len(equalities) == len(self.constraints):
            return
        fixed = dict(zip(self._fixed.tolist(), self._values.tolist(), strict=True))
        around = Region(self.space, equalities, fixed)
        if not self.contains(around.sample(_TRIED, rng)).any():
            warnings.warn(
                f"none of {_TRIED} random points keeps the constraints {self._named(self.constraints)}: they allow "
                f"roughly {self._share():.0e} of the space. The search goes on inside; widen them if that is a mistake",
                RuntimeWarning,
                stacklevel=2,
            )

    def _share(self) -> float:
        """Roughly which part of the cube, seen along the equalities, is inside: by the spread of points there."""
        assert self._frame is not None
        Z = self._lift(self._pool[0])[:, self._frame.walked]
        return float(np.exp(0.5 * np.linalg.slogdet(12.0 * np.cov(Z.T).reshape(Z.shape[1], -1))[1]))

    def _explain(self) -> NoReturn:
        """Raise what says why no point was found."""
        if self._fixed.size:
            open_region = Region(self.space, self.constraints)
            if open_region._accepted >= _ACCEPTED or len(open_region._inside):
                point = np.full(self.space.dim, 0.5)
                point[self._fixed] = self._values
                params = self.space.from_unit(point)
                values = {self.space.names[i]: params[self.space.names[i]] for i in self._fixed}
                raise SpaceError(
                    f"no allowed point has the fixed values {values}: they break {self._named(self.constraints)} "
                    "whatever the others are; fix other values"
                )
            open_region._explain()
        rows = np.ones(len(self._linear), dtype=bool)
        nothing = np.zeros(self.space.dim)
        if self._linear and self._program(nothing, rows=rows) is None:
            for i in range(len(rows)):
                rows[i] = False
                rows[i] = self._program(nothing, rows=rows) is not None
            named = [c for c, kept in zip(self._linear, rows, strict=True) if kept]
            which = "cannot hold within the ranges" if len(named) == 1 else "contradict each other within the ranges"
            raise SpaceError(
                f"no point is allowed: {self._named(named)} {which} of their parameters; widen a bound or a range"
            )
        if not self._known:
            raise SpaceError(
                f"no allowed point was found: {self._named(self.constraints)} leave none with values that the "
                "parameters take; allow a range in place of an equality, or more values"
            )
        raise SpaceError(
            f"no allowed point was found in {_LEVELS} rounds of {2 * self.space.dim + 64} tries: "
            f"{self._named(self.constraints)}; check the signs (at most 0 is allowed), or widen them"
        )

    @staticmethod
    def _named(constraints: Sequence[Constraint]) -> str:
        shown = [show_constraint(c) for c in constraints[:8]]
        more = f" and {len(constraints) - 8} more" if len(constraints) > 8 else ""
        return " and ".join(shown) + more


def _solve(cost: Array, A: Array, b: Array, E: Array, e: Array, used: NDArray[np.intp]) -> Array | None:
    """The least cost with A w <= b, E w = e and 0 <= w <= 1; None if there is no such w."""
    result = optimize.linprog(
        cost[used],
        A[:, used],
        b,
        E[:, used],
        e,
        bounds=(0.0, 1.0),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if result.x is None:
        return None
    w = np.zeros(len(cost))
    w[used] = result.x
    return w


def _least_distance(G: Array, g: Array) -> Array | None:
    """The shortest y with G y >= g, or None."""
    E = np.vstack([G.T, g])
    f = np.append(np.zeros(G.shape[1]), 1.0)
    try:
        r = E @ optimize.nnls(E, f, maxiter=20 * len(g))[0] - f
    except RuntimeError:  # too many rounds
        return None
    return -r[:-1] / r[-1] if np.linalg.norm(r) > 1e-9 else None


def _root(Z: Array) -> Array:
    """A matrix whose square is the covariance of the points."""
    centred = Z - Z.mean(axis=0) if len(Z) else Z
    values, vectors = np.linalg.eigh(centred.T @ centred / max(len(Z), 1))
    return vectors * np.sqrt(np.maximum(values, 0.0))
