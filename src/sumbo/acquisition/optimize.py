"""Find where a function on the unit cube is largest. Knows no GP: a callable, a budget, starts.

Functions take many points at once, (m, D) -> (m,), because that is what makes them fast.

| symbol | shape   | meaning                                          |
|--------|---------|--------------------------------------------------|
| x      | (S, D)  | S searches side by side                          |
| f, g   | (S,), (S, D) | values and gradients there                  |
| steps, bends | (memory, S, D) | last changes of x, and of -g            |
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import optimize

from sumbo import _interrupts
from sumbo._typing import Array

Value = Callable[[Array], Array]
ValueAndGradient = Callable[[Array], tuple[Array, Array]]
Stop = Callable[[], bool]  # asked between steps; by default a search goes on until its budget is spent
Choices = Sequence[tuple[int, Array]]  # dimensions, and the values that may be tried there


def direct(value: Value, dim: int, budget: int, *, stop: Stop = lambda: False) -> tuple[Array, float]:
    """The best of exactly `budget` points (fewer if `stop` says so) that DIRECT visits in the unit cube."""
    best_x, best_value, worst_value, calls = np.full(dim, 0.5), -np.inf, 0.0, 0

    def negative(x: Array) -> float:
        nonlocal best_x, best_value, worst_value, calls
        _interrupts.poll()
        if calls >= budget or stop():
            # SciPy looks at its limit between rounds only, and leaks memory if it is left by an exception: the rest
            # of the round is answered without asking.
            return -worst_value
        calls += 1
        v = float(value(x[None])[0])
        worst_value = v if calls == 1 else min(worst_value, v)
        if v > best_value:
            best_x, best_value = x.copy(), v
        return -v

    # Tolerances 0: by default SciPy gives up on volumes under 1e-16, which in 40 dimensions is a few thirds each.
    exhaustive: dict[str, Any] = {"maxiter": 10**4, "vol_tol": 0.0, "len_tol": 0.0, "locally_biased": False}
    optimize.direct(negative, [(0.0, 1.0)] * dim, maxfun=max(budget, 1), **exhaustive)
    return best_x, best_value


def best_of(value: Value, candidates: Array) -> tuple[Array, float]:
    """The best of given candidates; NaN is never the best."""
    values = np.nan_to_num(value(candidates), nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    best = int(np.argmax(values))
    return candidates[best], float(values[best])


def ascend(
    function: ValueAndGradient,
    starts: Array,
    *,
    rounds: int = 60,
    memory: int = 8,
    tolerance: float = 1e-7,
    stop: Stop = lambda: False,
) -> tuple[Array, Array]:
    """Climb from every start at once: L-BFGS projected onto the unit cube. Returns points and values.

    Every round evaluates one trial point of each search that is not done; a search whose trial is not good enough
    halves its step, the others move on. Searches do not influence each other.
    """
    from sumbo._loops import quasi_newton  # compiled code, which takes a third of a second to import

    x = np.clip(np.array(starts, dtype=float), 0.0, 1.0)
    f, g = function(x)
    S = len(x)
    steps, bends = np.zeros((memory, S, x.shape[1])), np.zeros((memory, S, x.shape[1]))
    kept = np.zeros(S, dtype=int)
    active = np.isfinite(f) & np.isfinite(g).all(axis=1)
    direction, t = quasi_newton(x, g, steps, bends, kept), np.ones(S)
    for _ in range(rounds):
        _interrupts.poll()
        rows = np.flatnonzero(active)
        if len(rows) == 0 or stop():
            break
        trial = np.clip(x[rows] + t[rows, None] * direction[rows], 0.0, 1.0)
        f_new, g_new = function(trial)
        move = trial - x[rows]
        gain = np.einsum("sd,sd->s", g[rows], move)
        good = np.isfinite(f_new) & np.isfinite(g_new).all(axis=1) & (f_new >= f[rows] + 1e-4 * gain)
        t[rows[~good]] *= 0.3
        active[rows[~good]] = t[rows[~good]] > 1e-6
        won = rows[good]
        if len(won) == 0:
            continue
        step, bend = move[good], g[won] - g_new[good]
        improved = f_new[good] - f[won]
        x[won], f[won], g[won], t[won] = trial[good], f_new[good], g_new[good], 1.0
        curved = np.einsum("sd,sd->s", step, bend) > 1e-10 * np.einsum("sd,sd->s", bend, bend)
        slot = kept[won[curved]] % memory
        steps[slot, won[curved]], bends[slot, won[curved]] = step[curved], bend[curved]
        kept[won[curved]] += 1
        direction[won] = quasi_newton(x[won], g[won], steps[:, won], bends[:, won], kept[won])
        still = np.abs(np.clip(x[won] + g[won], 0.0, 1.0) - x[won]).max(axis=1) > tolerance
        active[won] = still & (improved > tolerance * np.maximum(np.abs(f[won]), 1e-3))
    return x, f


def neighbours(x: Array, choices: Choices) -> Array:
    """All points that differ from x, (D,), in one of these dimensions, where they have one of these values: (k, D)."""
    changes = [(i, v) for i, values in choices for v in values[values != x[i]]]
    Z = np.tile(x, (len(changes), 1))
    for row, (i, v) in zip(Z, changes, strict=True):
        row[i] = v
    return Z


def polish(value: Value, x: Array, choices: Choices, *, rounds: int = 20, stop: Stop = lambda: False) -> Array:
    """Improve the discrete coordinates of one point (D,), one change a round, for as long as some change helps."""
    best = float(value(x[None])[0])
    for _ in range(rounds):
        Z = neighbours(x, choices)
        if not len(Z) or stop():
            return x
        candidate, found = best_of(value, Z)
        if not found > best:
            return x
        x, best = candidate, found
    return x
