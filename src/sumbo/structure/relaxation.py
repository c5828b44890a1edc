"""Smooth stand-ins for the choice of groups: pairs of dimensions, each with a weight that is climbed.

`Relaxation` has all pairs at once, as products of kernels: it shows where a search for disjoint groups may start.
`Spectral` has some pairs, as sums of polynomials: it tells what one more is worth, to find groups that overlap.

| symbol | shape     | meaning                                                                         |
|--------|-----------|---------------------------------------------------------------------------------|
| A      | (D, N)    | one-dimensional kernels, lower halves                                           |
| Theta  | (D, D)    | weights of products of two of them, upper half; on the diagonal, of single ones |
| w      | (N,)      | slopes of the log evidence by the elements of the covariance                    |
| phi    | (D, p, n) | one-dimensional functions at the points                                         |
| F      | (f, n)    | all functions of a spectral model, of dimensions and then of pairs              |
| lam    | (f,)      | variances of their coefficients                                                 |
| theta  | (Q,)      | u (D,), t (p,), r (p - 1,), v (E,), s (E,), log noise                           |
| L_inv  | (n, n)    | inverse of the Cholesky factor of K = F^T lam F + 1 + noise I                   |
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.legendre import legvander
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

from sumbo._typing import Array
from sumbo.gp import linalg, loops
from sumbo.structure.group_constraints import Group, Rules

Pair = tuple[int, int]

_STEPS, _LENGTHSCALE = 25, 0.5  # of the relaxation

_DECAY = 1.0  # expected fall of log variance for each degree
_SD_DIMENSION, _SD_DEGREE, _SD_PAIR, _SD_SLOPE, _SD_NOISE = 2.0, 4.0, 6.0, 3.0, 5.0  # log-sds of the priors
_NOISE = 1e-4  # expected
_LEAST_NOISE = 1e-9
_GRID = np.linspace(-14.0, 4.0, 19)  # log weights v that are tried for a new pair
_SLOPES = (0.0, -3.0)  # and its s: like the others, or smooth
_CHUNK = 64  # pairs looked at together


def _climbed(
    function: Callable[[Array], tuple[float, Array]],
    start: Array,
    bounds: list[tuple[float, float]],
    steps: int,
    calls: int,
) -> tuple[Array, float]:
    """Where L-BFGS gets from the start in so many steps and calls, and the value there."""

    def negative(theta: Array) -> tuple[float, Array]:
        value, gradient = function(theta)
        return -value, -gradient

    options = {"maxiter": steps, "maxfun": calls}
    found = minimize(negative, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return found.x, -float(found.fun)


def joined(weights: Array, rules: Rules) -> Iterator[list[Group]]:
    """From all apart, join the two groups with the largest average weight between them, as long as rules allow."""
    D, U = len(weights), len(rules.units)
    member = np.zeros((U, D))
    for u, unit in enumerate(rules.units):
        member[u, list(unit)] = 1.0
    groups: list[Group] = [(u,) for u in range(U)]
    banned = np.eye(U, dtype=bool)
    while True:
        yield list(groups)
        sizes = member.sum(axis=1)
        link = np.where(banned, -1.0, member @ weights @ member.T / np.outer(sizes, sizes))
        g, h = divmod(int(np.argmax(link)), len(groups))
        while link[g, h] >= 0.0 and not rules.allows(tuple(sorted(groups[g] + groups[h]))):
            link[g, h] = link[h, g] = -1.0
            banned[g, h] = banned[h, g] = True
            g, h = divmod(int(np.argmax(link)), len(groups))
        if link[g, h] < 0.0:
            return
        groups[g] = tuple(sorted(groups[g] + groups[h]))
        member[g] += member[h]
        banned[g] |= banned[h]
        banned[:, g] |= banned[:, h]
        del groups[h]
        member = np.delete(member, h, axis=0)
        banned = np.delete(np.delete(banned, h, axis=0), h, axis=1)


class Relaxation:
    """The evidence of a sum over all dimensions and all pairs of them, each with a weight of its own.

        K = sum_i theta_ii k_i + sum_{i<k} theta_ik k_i k_k + noise I

    Smooth in all D (D + 1) / 2 weights, and two matrix products give its value and whole gradient.
    """

    def __init__(self, XT: Array, y: Array, nominal: NDArray[np.bool_], family: int) -> None:
        self.y, self.D = y, len(XT)
        XT, one = np.ascontiguousarray(XT), np.array([1.0 / _LENGTHSCALE**2])
        self.A = np.array([loops().packed_kernel(XT, nominal, np.array([i]), one, 1.0, family) for i in range(self.D)])
        self.upper = np.triu_indices(self.D)
        self.single = self.upper[0] == self.upper[1]
        self.scale = float(np.mean(np.square(y))) or 1.0
        self.evaluations = 0

    def start(self) -> Array:
        """Logs of all weights, half of the variance on pairs, and of the noise variance."""
        D, pairs = self.D, max(1, self.D * (self.D - 1) // 2)
        theta = np.where(self.single, 0.5 / D, 0.5 / pairs)
        return np.log(self.scale * np.append(theta, 1e-3))

    def evidence(self, log_theta: Array) -> tuple[float, Array]:
        """log p(y | X), but for its constant, plus a prior on the noise; and the gradient."""
        self.evaluations += 1
        theta, noise = np.exp(log_theta[:-1]), float(np.exp(log_theta[-1]))
        A = self.A
        k = np.einsum("ip,ip->p", A, self._pairs(theta) @ A) + theta[self.single] @ A
        L, _ = linalg.cholesky_in_place(loops().unpacked(k, len(self.y), noise))
        alpha = linalg.solve_factored(L, self.y)
        excess = (log_theta[-1] - np.log(1e-3 * self.scale)) / 1.5
        value = float(-0.5 * self.y @ alpha - np.log(L.diagonal()).sum() - 0.5 * excess**2)
        K_inv = linalg.inverse_in_place(L)
        w = loops().packed_slopes(alpha, K_inv)
        by_pair = ((A * w) @ A.T)[self.upper]
        by_pair[self.single] = A @ w
        by_noise = 0.5 * noise * float(alpha @ alpha - K_inv.trace()) - excess / 1.5
        return value, np.append(by_pair * theta, by_noise)

    def weights(self) -> Array:
        """Theta after some steps uphill, symmetric, zero on the diagonal.

        Stopped early on purpose: from equal weights, the first steps raise those that matter.
        """
        start = self.start()
        low, high = np.log(self.scale) - 25.0, np.log(self.scale) + 8.0
        bounds = [(low, high)] * (len(start) - 1) + [(np.log(1e-6 * self.scale), np.log(self.scale))]
        log_theta, _ = _climbed(self.evidence, start, bounds, _STEPS, _STEPS + 20)
        Theta = self._pairs(np.exp(log_theta[:-1]))
        return Theta + Theta.T

    def _pairs(self, theta: Array) -> Array:
        """Theta but for its diagonal."""
        Theta = np.zeros((self.D, self.D))
        Theta[self.upper] = np.where(self.single, 0.0, theta)
        return Theta


@dataclass(frozen=True)
class State:
    """Pairs with the parameters fitted to them, and the log posterior density these reach."""

    pairs: tuple[Pair, ...]
    theta: Array
    value: float


class Spectral:
    """Main effects and pairs of dimensions as sums of polynomials, whose decay with the degree is itself learned.

        y = c + sum_i sum_a w_ia phi_a(x_i) + sum_{pairs i,k} sum_{a,b} w_ikab phi_a(x_i) phi_b(x_k) + noise

    with phi_a of degree a, orthonormal over the points seen, so that pairs say nothing of main effects; a + b is at
    most p. All coefficients w are normal, with log variances

        log var w_ia   = u_i + t_a                               a dimension's own weight, a common decay
        log var w_ikab = v_ik + r_{a+b} + s_ik (a + b - 2)       a pair's own weight and own decay beside the common one

    A kernel of fixed family spends its freedom on all degrees; here what the data do not need is learned to be nothing.
    That shows terms a thousand times weaker than others: once the strong ones are exact, there is no noise.

    Counts its evidence evaluations; else unchanging.
    """

    def __init__(self, X: Array, y: Array, nominal: NDArray[np.bool_], degree: int) -> None:
        (self.n, self.D), self.y, self.p = X.shape, y, degree
        self.phi = np.array([one_dimensional(x, bool(c), degree) for x, c in zip(X.T, nominal, strict=True)])
        products = [(a, total - a) for total in range(2, degree + 1) for a in range(1, total)]
        self.a, self.b = np.array(products).T - 1
        self.above = self.a + self.b  # the total degree less 2
        self.scale = float(np.mean(np.square(y))) or 1.0
        self.head = self.D + 2 * degree - 1
        self.evaluations = 0

    # --- parameters ----------------------------------------------------------------------------------------------

    def start(self) -> Array:
        """Parameters of the model with no pairs, to begin a fit at: the priors' means, and much noise."""
        return np.append(self._prior(0)[0][:-1], np.log(0.1 * self.scale))

    def _prior(self, E: int) -> tuple[Array, Array]:
        """Means and standard deviations of theta."""
        degrees = np.concatenate([np.arange(self.p), np.arange(self.p - 1)])
        of_degree = np.log(0.5 * self.scale / self.D) - _DECAY * degrees
        mean = np.concatenate([np.zeros(self.D), of_degree, np.zeros(2 * E), [np.log(_NOISE * self.scale)]])
        sds = (_SD_DIMENSION, _SD_DEGREE, _SD_PAIR, _SD_SLOPE, _SD_NOISE)
        return mean, np.repeat(sds, (self.D, len(degrees), E, E, 1))

    def _variances(self, theta: Array, E: int) -> Array:
        u, t, r = np.split(theta[: self.head], (self.D, self.D + self.p))
        v, s = theta[self.head : self.head + E], theta[self.head + E : -1]
        of_pairs = v[:, None] + r[self.above] + s[:, None] * self.above
        return np.exp(np.concatenate([(u[:, None] + t).ravel(), of_pairs.ravel()]))

    def added(self, state: State, pairs: Sequence[Pair], v: Array, s: Array) -> State:
        """More pairs with these parameters, not yet fitted."""
        end = self.head + len(state.pairs)
        theta = np.concatenate([state.theta[:end], v, state.theta[end:-1], s, state.theta[-1:]])
        return State((*state.pairs, *pairs), theta, -np.inf)

    def without(self, state: State, positions: Sequence[int]) -> State:
        """Without the pairs at these positions, not yet fitted again."""
        gone, E = np.array(positions) + self.head, len(state.pairs)
        pairs = tuple(pair for e, pair in enumerate(state.pairs) if e not in positions)
        return State(pairs, np.delete(state.theta, np.concatenate([gone, gone + E])), -np.inf)

    def of_lower_degree(self, state: State, p: int) -> State:
        """The same for a model of the lower degree p."""
        D, theta = self.D, state.theta
        return State(
            state.pairs,
            np.concatenate([theta[: D + p], theta[D + self.p : D + self.p + p - 1], theta[self.head :]]),
            -np.inf,
        )

    def is_exact(self, state: State) -> bool:
        """Is the noise at its lower limit, so that there is nothing left to explain?"""
        return float(np.exp(state.theta[-1])) < 10.0 * _LEAST_NOISE * self.scale

    # --- evidence ------------------------------------------------------------------------------------------------

    def functions(self, pairs: Sequence[Pair]) -> Array:
        """The products of all pairs, one pair after the other, (E m, n)."""
        first, second = np.array(pairs, dtype=int).reshape(-1, 2).T
        return (self.phi[first][:, self.a] * self.phi[second][:, self.b]).reshape(-1, self.n)

    def _all_functions(self, pairs: Sequence[Pair]) -> Array:
        return np.vstack([self.phi.reshape(-1, self.n), self.functions(pairs)])

    def _solved(self, F: Array, lam: Array, noise: float) -> tuple[Array, Array, float]:
        """alpha = K^-1 y, L^-1, and the log evidence but for its constant."""
        self.evaluations += 1
        K = (F.T * lam) @ F + self.scale
        K.flat[:: self.n + 1] += noise
        L, _ = linalg.cholesky_in_place(K)
        alpha = linalg.solve_factored(L, self.y)
        value = float(-0.5 * self.y @ alpha - np.log(L.diagonal()).sum())
        return alpha, solve_triangular(L, np.eye(self.n), lower=True, check_finite=False), value

    def log_posterior(self, theta: Array, F: Array) -> tuple[float, Array]:
        """Log evidence but for its constant, plus log prior of theta; and the gradient."""
        E, noise = (len(theta) - self.head - 1) // 2, float(np.exp(theta[-1]))
        lam = self._variances(theta, E)
        alpha, L_inv, value = self._solved(F, lam, noise)
        W = L_inv @ F.T
        slopes = 0.5 * lam * (np.square(F @ alpha) - np.einsum("qf,qf->f", W, W))
        of_dims = slopes[: self.D * self.p].reshape(self.D, self.p)
        of_pairs = slopes[self.D * self.p :].reshape(E, len(self.above))
        by_r = np.bincount(self.above, of_pairs.sum(axis=0), self.p - 1)
        by_noise = 0.5 * noise * (alpha @ alpha - np.square(L_inv).sum())
        gradient = [of_dims.sum(axis=1), of_dims.sum(axis=0), by_r, of_pairs.sum(axis=1), of_pairs @ self.above]
        mean, sd = self._prior(E)
        z = (theta - mean) / sd
        return value - 0.5 * float(z @ z), np.append(np.concatenate(gradient), by_noise) - z / sd

    def fitted(self, state: State, steps: int) -> State:
        """Parameters after so many steps uphill."""
        F = self._all_functions(state.pairs)
        log_scale = float(np.log(self.scale))
        bounds = [(log_scale - 25.0, log_scale + 12.0)] * (len(state.theta) - 1)
        bounds += [(log_scale + np.log(_LEAST_NOISE), log_scale)]
        found = _climbed(lambda theta: self.log_posterior(theta, F), state.theta, bounds, steps, 2 * steps)
        return State(state.pairs, *found)

    # --- one pair more or less -----------------------------------------------------------------------------------

    def gains(self, state: State, pairs: Sequence[Pair]) -> tuple[Array, Array, Array]:
        """For each pair, by how much the log posterior would rise with it, and its best v and s; all else kept.

        Exact, though nothing of size n x n is factorised for a pair: adding F^T F to K changes the evidence by

            1/2 q^T (1 + S)^-1 q - 1/2 log |1 + S|,    S = F K^-1 F^T,  q = F alpha
        """
        alpha, L_inv = self._at(state)
        r = state.theta[self.D + self.p : self.head][self.above]
        best = [np.empty((3, 0))]
        for a in range(0, len(pairs), _CHUNK):
            F = self.functions(pairs[a : a + _CHUNK])
            S, q = self._overlap(F, L_inv), (F @ alpha).reshape(-1, len(r))
            options = [self._best_weight(S, q, np.exp(0.5 * (r + s * self.above)), s) for s in _SLOPES]
            best.append(np.where(options[0][0] >= options[1][0], *options))
        gain, v, s = np.hstack(best)
        return gain, v, s

    def _best_weight(self, S: Array, q: Array, scales: Array, s: float) -> Array:
        """Gain, v and s of every pair, v the best of the grid."""
        eigenvalues, U = np.linalg.eigh(S * scales[:, None] * scales)
        squares = np.square(np.einsum("eij,ei->ej", U, q * scales))
        v = np.exp(_GRID)[:, None, None]
        shrunk = 1.0 + v * np.maximum(eigenvalues, 0.0)
        gain = 0.5 * (v * squares / shrunk - np.log(shrunk)).sum(axis=2)
        gain -= 0.5 * np.square(_GRID / _SD_PAIR)[:, None] + 0.5 * (s / _SD_SLOPE) ** 2
        k = gain.argmax(axis=0)
        return np.array([gain[k, np.arange(len(k))], _GRID[k], np.full(len(k), s)])

    def losses(self, state: State) -> Array:
        """By how much the log evidence would fall without each pair; all else kept."""
        E = len(state.pairs)
        if E == 0:
            return np.empty(0)
        alpha, L_inv = self._at(state)
        lam = self._variances(state.theta, E)[self.D * self.p :]
        F = self.functions(state.pairs) * np.sqrt(lam)[:, None]
        q = (F @ alpha).reshape(E, -1)
        left = np.eye(q.shape[1]) * (1.0 + 1e-12) - self._overlap(F, L_inv)
        quadratic = np.einsum("ei,ei->e", q, np.linalg.solve(left, q[:, :, None])[:, :, 0])
        return 0.5 * quadratic + 0.5 * np.linalg.slogdet(left)[1]

    def _at(self, state: State) -> tuple[Array, Array]:
        lam = self._variances(state.theta, len(state.pairs))
        return self._solved(self._all_functions(state.pairs), lam, float(np.exp(state.theta[-1])))[:2]

    def _overlap(self, F: Array, L_inv: Array) -> Array:
        """F_e K^-1 F_e^T of every pair e, (E, m, m)."""
        W = (L_inv @ F.T).reshape(self.n, -1, len(self.above))
        return np.matmul(W.transpose(1, 2, 0), W.transpose(1, 0, 2))


def one_dimensional(x: Array, nominal: bool, degree: int) -> Array:
    """phi of one dimension, (p, n): orthonormal over the points, and to the constant; zero where values are too few.

    Polynomials of numbers; of categories, the first contrasts.
    """
    values, code = np.unique(x, return_inverse=True)
    q = min(degree, len(values) - 1)
    if nominal:
        columns = np.column_stack([np.ones(len(x)), np.eye(len(values))[code][:, :q]])
    else:
        low, high = values[0], values[-1]
        columns = legvander(2.0 * (x - low) / (high - low) - 1.0, q) if q else np.ones((len(x), 1))
    Q = np.linalg.qr(columns)[0]
    phi = np.zeros((degree, len(x)))
    phi[:q] = np.sqrt(len(x)) * Q[:, 1 : q + 1].T
    return phi
