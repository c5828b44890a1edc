"""What the paper's theorems speak of, measured and judged: information gain, credible interval, a step that is wrong.

| symbol       | meaning                                                                                         |
|--------------|-------------------------------------------------------------------------------------------------|
| gamma_T      | largest information that T observations can have of f                                           |
| eta          | standard deviation of the noise                                                                 |
| sigma, sigma_j | posterior standard deviation of f, and of its component j                                     |
| omega_m      | points of the grid in one group                                                                 |

All kernels have k(x, x) = 1, as in the theorem: M components of variance 1 / M each.
"""

import math
import statistics
import time
from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
from scipy import linalg, ndimage

from sumbo._typing import Array
from sumbo.acquisition import optimize
from sumbo.acquisition.functions import practical_beta, ucb
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.decomposition import Decomposition
from sumbo.gp.kernels import Terms, cross, cross_groups, family_index
from sumbo.paper.runs import HELD, NOT, OPEN, Finding, Line, Results, Task, finding
from sumbo.problems import additive

GROUP_SIZE = 2
KERNELS = {"SE": "se", "Matern-5/2": "matern52"}
_NU = 2.5
_LENGTHSCALE = 0.3
ETA2 = 0.01
_POOL = 2000  # random points among which each next one is chosen
_DELTA = 0.1
_REPEATS = 3
_CALLS = 4000  # of the acquisition, the paper's number for 40 dimensions
_GROUPS, _GRID = 4, 15  # of the simulated credible interval

GAIN, INTERVAL, PROOF, COST, MODES = "information gain", "credible interval", "sum of variances", "cost", "modes"


def run(task: Task) -> Line:
    """Measure what the task names."""
    rng = np.random.default_rng(task.seed)
    if task.problem == GAIN:
        structure, kernel, dims = task.method.split(", ")
        D = int(dims.removeprefix("D = "))
        return {"gain": greedy_gain(terms_of(structure, KERNELS[kernel], D), D, task.budget, rng)}
    if task.problem == INTERVAL:
        return interval(task.budget, rng)
    if task.problem == PROOF:
        return variances(int(task.method.removeprefix("M = ")), task.budget, rng)
    if task.problem == COST:
        return cost(task.budget, rng)
    return {"modes": modes()}


def bound(structure: str, kernel: str, D: int, T: int) -> float:
    """The theorem's rate without its constant: equation by equation those of `infGainBounds`, with d = D if full."""
    d = GROUP_SIZE if structure == "additive" else D
    front = D if structure == "additive" else 1
    if kernel == "SE":
        return front * float(d) ** d * math.log(T) ** (d + 1)
    power = d * (d + 1) / (2.0 * _NU + d * (d + 1))
    return front * 2.0**d * T**power * math.log(T)


def terms_of(structure: str, family: str, D: int, group_size: int = GROUP_SIZE) -> Terms:
    """A kernel of variance 1: groups of equal size, or one of all dimensions."""
    size = group_size if structure == "additive" else D
    groups = [range(i, min(i + size, D)) for i in range(0, D, size)]
    weights, nominal = np.full(len(groups), 1.0 / len(groups)), np.zeros(D, dtype=bool)
    return Terms.build(groups, np.full(D, _LENGTHSCALE), weights, nominal=nominal, family=family_index(family))


def greedy_gain(terms: Terms, D: int, T: int, rng: np.random.Generator) -> list[float]:
    """1/2 sum_t log(1 + sigma_{t-1}^2(x_t) / eta^2), each x_t the most uncertain of a pool; for t = 1 .. T.

    Information is submodular, so the greedy choice has at least 1 - 1/e of the most that the pool allows.
    """
    ZT = np.ascontiguousarray(rng.random((_POOL, D)).T)
    variance = np.ones(_POOL)
    rows = np.zeros((T, _POOL))  # of the Cholesky factor, continued to the whole pool
    gain, gains = 0.0, []
    for t in range(T):
        best = int(np.argmax(variance))
        gain += 0.5 * math.log1p(variance[best] / ETA2)
        gains.append(round(gain, 6))
        k = cross(ZT, np.ascontiguousarray(ZT[:, best : best + 1]), terms)[:, 0]
        rows[t] = (k - rows[:t, best] @ rows[:t]) / math.sqrt(variance[best] + ETA2)
        variance = np.maximum(variance - np.square(rows[t]), 0.0)
    return gains


def interval(T: int, rng: np.random.Generator) -> Line:
    """Lemma `discBound` on a grid: is f within sqrt(beta_t) sum_j sigma_j of its mean, at every point and time?

    The points are those of Algorithm 1, and the function is drawn from the prior. Beside it, the share of the interval
    that is used, and how often the narrower one with sigma in place of the sum holds.
    """
    terms = terms_of("additive", "se", _GROUPS, group_size=1)
    ZT = np.tile(np.linspace(0.0, 1.0, _GRID), (_GROUPS, 1))  # every group has the same grid
    prior = cross_groups(ZT, ZT, terms)  # (M, grid, grid)
    roots = [linalg.cholesky(K + 1e-10 * np.eye(_GRID), lower=True) for K in prior]
    f = np.array([L @ rng.standard_normal(_GRID) for L in roots])  # (M, grid)
    chosen: list[Any] = []
    y: list[float] = []
    used, ratio, within_sum, within_sigma = 0.0, [], True, True
    for t in range(1, T + 1):
        beta_t = 2.0 * math.log(_GRID * _GROUPS * math.pi**2 * t**2 / 6.0 / _DELTA)
        mean, cov = _grid_posterior(prior, np.array(chosen, dtype=int).reshape(-1, _GROUPS), np.array(y))
        std = np.sqrt(np.maximum(np.einsum("jaja->ja", cov), 0.0))  # (M, grid)
        error, total = np.abs(_sums(f) - _sums(mean)), _sums(std)
        sigma = np.sqrt(np.maximum(_variance_of_sum(cov), 1e-12))
        used = max(used, float((error / (math.sqrt(beta_t) * total)).max()))
        within_sum &= bool((error <= math.sqrt(beta_t) * total).all())
        within_sigma &= bool((error <= math.sqrt(beta_t) * sigma).all())
        ratio.append(float((total / sigma).mean()))
        point = np.argmax(mean + math.sqrt(beta_t) * std, axis=1)  # Algorithm 1
        chosen.append(point)
        y.append(float(f[np.arange(_GROUPS), point].sum() + math.sqrt(ETA2) * rng.standard_normal()))
    return {"within_sum": within_sum, "within_sigma": within_sigma, "used": used, "ratio": ratio}


def _grid_posterior(prior: Array, chosen: Any, y: Array) -> tuple[Array, Array]:
    """Means (M, grid) and covariances (M, grid, M, grid) of all components together."""
    M, m, _ = prior.shape
    cov = linalg.block_diag(*prior).reshape(M, m, M, m)
    k = np.concatenate([prior[j][:, chosen[:, j]] for j in range(M)])  # (M grid, n)
    K = sum(prior[j][np.ix_(chosen[:, j], chosen[:, j])] for j in range(M)) + ETA2 * np.eye(len(y))
    solved = linalg.solve(K, k.T, assume_a="pos")  # (n, M grid)
    return (y @ solved).reshape(M, m), cov - (k @ solved).reshape(M, m, M, m)


def _sums(parts: Array) -> Array:
    """What components (M, grid) add up to at every combination of their grids, (grid,) * M."""
    return reduce(np.add.outer, parts)


def _variance_of_sum(cov: Array) -> Array:
    """sigma^2 of the sum at every combination of the grids, cross terms included."""
    M, m = cov.shape[:2]
    at = np.ogrid[(slice(m),) * M]
    return reduce(np.add, (cov[i, at[i], j, at[j]] for i in range(M) for j in range(M)))


def variances(M: int, T: int, rng: np.random.Generator) -> Line:
    """sum_j sigma_j^2 beside sigma^2, and both sides of equation `varTermBound`, with random observations.

    For each t: the mean over random points of sum_j sigma_j^2 / sigma^2 and of sum_j sigma_j / sigma, and of the latter
    over points already observed; at the end, the two sides of the inequality, summed over t.
    """
    D = M * GROUP_SIZE
    terms = terms_of("additive", "se", D)
    XT, ZT = (np.ascontiguousarray(rng.random((D, n))) for n in (T, 100))
    new = ZT.shape[1]
    squares, sums, seen, left, right = [], [], [], 0.0, 0.0
    for t in range(T):
        joint, parts = _posterior_variances(np.hstack([ZT, XT[:, : t + 1]]), XT[:, :t], terms)
        ratios = np.sqrt(parts).sum(axis=0) / np.sqrt(joint)
        squares.append(float((parts.sum(axis=0) / joint)[:new].mean()))
        sums.append(float(ratios[:new].mean()))
        if t:
            seen.append(float(ratios[new : new + t].mean()))
        left += float(parts[:, -1].sum())  # at the point that comes next
        right += math.log1p(joint[-1] / ETA2) / math.log1p(1.0 / ETA2)
    return {"squares": squares, "sums": sums, "seen": seen, "left": left, "right": right}


def _posterior_variances(ZT: Array, XT: Array, terms: Terms) -> tuple[Array, Array]:
    """sigma^2 (m,) and sigma_j^2 (M, m) at Z after observing X."""
    ZT, XT = np.ascontiguousarray(ZT), np.ascontiguousarray(XT)
    L = linalg.cholesky(cross(XT, XT, terms) + ETA2 * np.eye(XT.shape[1]), lower=True)
    whitened = [linalg.solve_triangular(L, k.T, lower=True) for k in cross_groups(ZT, XT, terms)]  # (n, m) each
    joint = 1.0 - np.square(np.sum(whitened, axis=0)).sum(axis=0)
    parts = terms.s2[:, None] - np.array([np.square(w).sum(axis=0) for w in whitened])
    return np.maximum(joint, 1e-12), np.maximum(parts, 1e-12)


def cost(n: int, rng: np.random.Generator) -> Line:
    """Seconds of computing to factorise the covariance of n points in 40 dimensions, and to maximise by DIRECT.

    The least of several times: the first one compiles. Seconds of this process, whatever else the machine does.
    """
    D, line = 40, Line()
    X, y = rng.random((n, D)), rng.standard_normal(n)
    for name, size in (("full", D), ("additive", 5)):
        groups = Decomposition([tuple(range(i, i + size)) for i in range(0, D, size)])
        times = []
        for _ in range(_REPEATS):
            start = time.process_time()
            gp = AdditiveGP(groups, kernel="se").condition(X, y)
            gp.group_posterior(0, X[:1, :size])
            between = time.process_time()
            for j in range(len(groups)):
                optimize.direct(partial(_bound, gp, j, practical_beta(n, size)), size, _CALLS // len(groups))
            times.append((between - start, time.process_time() - between))
        line[f"factorise, {name}"], line[f"maximise, {name}"] = np.min(times, axis=0).tolist()
    return line


def _bound(gp: AdditiveGP, j: int, beta_t: float, Z: Array) -> Array:
    mean, std = gp.group_posterior(j, Z)
    return ucb(beta_t)(mean, np.square(std))[0]


def modes() -> int:
    """How many local maxima f_d' has for d' = 2, on a fine grid."""
    axis = np.linspace(-1.0, 1.0, 401)
    X = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    values = additive(2, 2, 1).values(X).reshape(401, 401)
    around = np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]])
    return int((values > ndimage.maximum_filter(values, footprint=around, mode="constant", cval=-np.inf)).sum())


def gains(results: Results, structure: str, kernel: str) -> dict[int, list[float]]:
    """gamma_t for t = 1 .. T of every D that was measured, the first seed's."""
    found = {}
    for method, line in results.first(GAIN).items():
        if method.startswith(f"{structure}, {kernel}, D = "):
            found[int(method.rpartition(" ")[2])] = line["gain"]
    return dict(sorted(found.items()))


def gain_by_dimension(results: Results, structure: str) -> Finding:
    """gamma_T against D: the slope of its logarithm, which is 1 for a linear dependence."""
    told, slopes = [], []
    for kernel in KERNELS:
        known = gains(results, structure, kernel)
        if len(known) < 2:
            return Finding()
        last = {D: gain[-1] for D, gain in known.items()}
        slopes.append(float(np.polyfit(np.log(list(last)), np.log(list(last.values())), 1)[0]))
        values = ", ".join(f"{gain:.0f} (D = {D})" for D, gain in last.items())
        told.append(f"{kernel}: gamma_T {values}, power of D {slopes[-1]:.2f}")
    if structure == "additive":
        return Finding("<br>".join(told), HELD if max(slopes) <= 1.0 else NOT)
    # However many dimensions, T observations have no more information than this: growth in D ends there.
    most = 0.5 * len(next(iter(known.values()))) * math.log1p(1.0 / ETA2)
    told.append(f"the most that T observations can have is {most:.0f}")
    return Finding("<br>".join(told), HELD if min(slopes) > 1.0 else OPEN)


def additive_easier(results: Results) -> Finding:
    """gamma_T of the full kernel over that of the additive one."""
    ratios: dict[tuple[str, int], float] = {}
    for kernel in KERNELS:
        alone, full = (gains(results, structure, kernel) for structure in ("additive", "full"))
        ratios |= {(kernel, D): full[D][-1] / alone[D][-1] for D in full if D in alone and D > GROUP_SIZE}
    told = [f"{ratio:.1f} ({kernel}, D = {D})" for (kernel, D), ratio in ratios.items()]
    verdict = HELD if all(ratio > 1.0 for ratio in ratios.values()) else NOT
    return finding(told, verdict, of="gamma_T, full over additive: ", between=", ")


def gain_by_time(results: Results) -> Finding:
    """gamma_t over the theorem's rate must not grow with t, if the rate is right.

    That is for large t: as long as every observation tells something new, gamma_t is linear in t, and nothing is shown.
    """
    told, grows = [], False
    for kernel in KERNELS:
        for D, gain in gains(results, "additive", kernel).items():
            T = len(gain)
            early, late = (gain[t - 1] / bound("additive", kernel, D, t) for t in (T // 4, T))
            grows |= late > early
            told.append(f"{kernel}, D = {D}: {late / early:.2f}")
    return finding(told, OPEN if grows else HELD, of="gamma_t / rate, at T over at T / 4: ")


def interval_holds(results: Results) -> Finding:
    """In how many simulations did f stay inside?"""
    lines = results.all(INTERVAL)
    if not lines:
        return Finding()
    inside, narrow = (statistics.fmean(line[key] for line in lines) for key in ("within_sum", "within_sigma"))
    text = (
        f"f stayed inside at all points and times in {inside:.0%} of {len(lines)} simulations "
        f"(promised: {1 - _DELTA:.0%}), and used at most {max(line['used'] for line in lines):.0%} of the width; "
        f"with sigma in place of the sum: {narrow:.0%}"
    )
    return Finding(text, HELD if inside >= 1.0 - _DELTA else NOT)


def squares_bounded(results: Results) -> Finding:
    """Is sum_j sigma_j^2 below sigma^2?"""
    lines = results.first(PROOF)
    told = [
        f"{method}: sum_j sigma_j^2 / sigma^2 = {line['squares'][-1]:.1f} at new points; both ends of the "
        f"inequality, summed over t: {line['left']:.1f} and {line['right']:.1f}"
        for method, line in lines.items()
    ]
    broken = any(line["squares"][-1] > 1.0 for line in lines.values())
    return finding(told, NOT if broken else HELD, between="<br>")


def sum_is_uncertainty(results: Results) -> Finding:
    """Is sum_j sigma_j about as large as sigma, where f was observed?"""
    lines = results.first(PROOF)
    told = [
        f"{method}: {line['sums'][-1]:.1f} at new points, {line['seen'][-1]:.1f} at points observed"
        for method, line in lines.items()
    ]
    large = any(line["seen"][-1] > 2.0 for line in lines.values())
    return finding(told, NOT if large else OPEN, of="sum_j sigma_j / sigma: ")


def costs(results: Results, pairs: Sequence[tuple[str, str]], most: float) -> Finding:
    """Is the first of each pair of times at most so many times the second?"""
    line = results.first(COST).get("D = 40")
    if line is None:
        return Finding()
    told = [f"{a} {line[a]:.2g} s, {b} {line[b]:.2g} s" for a, b in pairs]
    return finding(told, HELD if all(line[a] <= most * line[b] for a, b in pairs) else NOT)


def three_modes(results: Results) -> Finding:
    """Has f_2 three local maxima?"""
    line = results.first(MODES).get("f_2")
    if line is None:
        return Finding()
    return Finding(f"{line['modes']} local maxima of f_2 on a grid of 401 x 401", HELD if line["modes"] == 3 else NOT)
