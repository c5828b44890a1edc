"""Many observations: a model on some of them, the support, that still learns from all. Cost linear in n.

The fully independent training conditional (FITC) approximation: the function is what the kernel at m support points U
spans, and beside it each observation has a part of its own, as large as what the support leaves unexplained there:

    mean(z)     = k(z, U) a,                 a = L^-T B^-1 sum_i a_i y_i / lambda_i
    variance(z) = k(z, z) - |k(z, U) L^-T C|^2
    L L^T = K(U, U),   a_i = L^-1 k(U, x_i),   lambda_i = noise + k(x_i, x_i) - |a_i|^2
    B = I + sum_i a_i a_i^T / lambda_i,        C C^T = I - B^-1

Both have the form of the exact posterior with U in place of X, `a` for alpha and C^T L^-1 for the inverse factor, so
all that predicts and differentiates is shared, the components' posteriors included. The lambda_i are why it is used in
place of the simpler rule with the noise alone: a point far from the support, which it cannot represent, then does not
bend the model near the best points, which are support.

| symbol | shape  | meaning                                             |
|--------|--------|-----------------------------------------------------|
| UT     | (D, m) | support points                                      |
| A      | (n, m) | one row a_i / sqrt(lambda_i) per observation        |
| B      | (m, m) | what all observations together say                  |
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sumbo._typing import Array
from sumbo.gp import kernels, linalg
from sumbo.gp.evidence import LOG_2PI
from sumbo.gp.kernels import Terms

EXACT_LIMIT = 2000  # observations up to which the model is exact
FIT_POINTS = 1000  # observations from which hyperparameters are learned, at most
_WORK = 1e10  # n m^2, multiplications that conditioning may take
_BLOCK = 2000  # observations taken in at a time, to bound memory


def support_size(n: int) -> int:
    """m: all points just past the limit, where the model is still as good as exact, and fewer the more there are."""
    return min(n, int(np.sqrt(_WORK / n)))


def chosen(y: Array, count: int) -> Array:
    """Indices of `count` observations: half of them the best, where the search goes on, half evenly over time."""
    best = np.argsort(-y, kind="stable")[: count // 2]
    others = np.setdiff1d(np.arange(len(y)), best)
    spread = others[np.linspace(0, len(others) - 1, count - len(best)).round().astype(int)]
    return np.sort(np.concatenate([best, spread]))


@dataclass(frozen=True)
class Sparse:
    """What is known of n observations through m support points. Immutable; rows live in a buffer with room to grow."""

    terms: Terms
    noise_variance: float
    XT: Array  # (D, m): the support, where an exact model has all points
    points: Array  # (D, n)
    y: Array
    L_inv_U: Array  # L^-1
    rows: Array  # (capacity, m), rows 0 to n - 1 valid
    used: list[int]  # one cell shared by all models on this buffer: how many rows are taken
    deviations: Array  # sqrt(lambda_i) (n,)
    B: Array
    jitter: float

    @classmethod
    def condition(cls, terms: Terms, noise_variance: float, X: Array, y: Array) -> "Sparse":
        """From scratch: O(n m^2)."""
        points = np.array(X.T, order="C")
        m = support_size(len(y))
        UT = np.ascontiguousarray(points[:, chosen(y, m)])
        K = kernels.gram(UT, terms)
        # Support points may be close to each other: some jitter from the start keeps L^-1 within reason.
        K.flat[:: len(K) + 1] += 1e-8 * float(K.diagonal().mean())
        factor = linalg.cholesky(K)
        L_inv = factor.inverse_lower()
        rows, B, deviations = np.empty((len(y) + len(y) // 8, m)), np.eye(m), np.empty(len(y))
        for a in range(0, len(y), _BLOCK):
            block = np.ascontiguousarray(points[:, a : a + _BLOCK])
            A = kernels.cross(block, UT, terms) @ L_inv.T
            deviations[a : a + len(A)] = _deviations(A, terms, noise_variance)
            A /= deviations[a : a + len(A), None]
            rows[a : a + len(A)] = A
            B += A.T @ A
        return cls(terms, noise_variance, UT, points, y, L_inv, rows, [len(y)], deviations, B, factor.jitter)

    @property
    def n(self) -> int:
        return len(self.y)

    def append(self, z: Array, value: float) -> "Sparse":
        """One more observation: O(m^2), z as a column (D, 1)."""
        n = self.n
        a = kernels.cross(z, self.XT, self.terms) @ self.L_inv_U.T
        deviation = _deviations(a, self.terms, self.noise_variance)
        a = a[0] / deviation
        rows, used = self.rows, self.used
        if used[0] != n or n == len(rows):  # another branch grew here already, or there is no room
            rows, used = np.empty((n + n // 8, rows.shape[1])), [n]
            rows[:n] = self.rows[:n]
        rows[n] = a
        used[0] = n + 1
        return replace(
            self,
            points=np.hstack([self.points, z]),
            y=np.append(self.y, value),
            rows=rows,
            used=used,
            deviations=np.append(self.deviations, deviation),
            B=self.B + np.outer(a, a),
        )

    def hallucinate(self, ZT: Array) -> "Sparse":
        """p more observations at ZT (D, p) that are what was predicted there: O(m^2 p). The mean does not change."""
        k = kernels.cross(ZT, self.XT, self.terms)
        A = k @ self.L_inv_U.T
        deviations = _deviations(A, self.terms, self.noise_variance)
        A /= deviations[:, None]
        there = replace(
            self,
            points=np.hstack([self.points, ZT]),
            y=np.append(self.y, k @ self.alpha),
            rows=np.vstack([self.rows[: self.n], A]),
            used=[self.n + len(A)],
            deviations=np.append(self.deviations, deviations),
            B=self.B + A.T @ A,
        )
        there.__dict__["alpha"] = self.alpha
        return there

    def with_values(self, y: Array) -> "Sparse":
        return replace(self, y=y)

    @cached_property
    def _B_inv(self) -> Array:
        L, _ = linalg.cholesky_in_place(self.B.copy())
        inverse = linalg.inverse_in_place(L)
        return np.tril(inverse) + np.tril(inverse, -1).T

    @cached_property
    def alpha(self) -> Array:
        """a (m,)."""
        return self.L_inv_U.T @ (self._B_inv @ self._told())

    @cached_property
    def L_inv(self) -> Array:
        """C^T L^-1 (m, m)."""
        C, _ = linalg.cholesky_in_place(np.eye(len(self.B)) - self._B_inv)
        return np.tril(C).T @ self.L_inv_U

    def precise_weights(self) -> tuple[Array, Array]:
        """S^-1 y and the diagonal of S^-1, S = lambda^1/2 (I + A A^T) lambda^1/2 being y's covariance: O(n m^2)."""
        A = self.rows[: self.n]
        AB = A @ self._B_inv
        weights = (self.y / self.deviations - AB @ self._told()) / self.deviations
        return weights, (1.0 - np.einsum("im,im->i", AB, A)) / np.square(self.deviations)

    def log_evidence(self) -> float:
        """The log evidence of the approximation: y ~ N(0, lambda^1/2 (I + A A^T) lambda^1/2)."""
        L, _ = linalg.cholesky_in_place(self.B.copy())
        told = self._told()
        fit = float(np.square(self.y / self.deviations).sum()) - float(told @ self._B_inv @ told)
        log_det = 2.0 * float(np.log(L.diagonal()).sum()) + 2.0 * float(np.log(self.deviations).sum())
        return -0.5 * (fit + log_det + self.n * LOG_2PI)

    def _told(self) -> Array:
        """sum_i a_i y_i / lambda_i (m,)."""
        return self.rows[: self.n].T @ (self.y / self.deviations)


def _deviations(A: Array, terms: Terms, noise_variance: float) -> Array:
    """sqrt(lambda_i) for rows a_i."""
    unexplained = float(terms.s2.sum()) - np.einsum("im,im->i", A, A)
    return np.sqrt(noise_variance + np.maximum(unexplained, 0.0))
