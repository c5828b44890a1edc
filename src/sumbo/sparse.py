"""Many observations: a model on some of them, the support, that still learns from all. Cost linear in n.

The deterministic training conditional (projected process) approximation: the function is taken to be spanned by the
kernel at m support points U, and every observation informs it:

    mean(z)     = k(z, U) a,                 a = L^-T B^-1 A y / sigma
    variance(z) = k(z, z) - |k(z, U) L^-T C|^2
    L L^T = K(U, U),   A = L^-1 K(U, X) / sigma,   B = I + A A^T,   C C^T = I - B^-1

Both have the form of the exact posterior with U in place of X, `a` for alpha and C^T L^-1 for the inverse factor, so
all that predicts and differentiates is shared, the components' posteriors included.

| symbol | shape  | meaning                                        |
|--------|--------|------------------------------------------------|
| UT     | (D, m) | support points                                 |
| A      | (n, m) | one row per observation (the A above, transposed) |
| B      | (m, m) | what all observations together say             |
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sumbo import kernels, linalg
from sumbo.kernels import Array, Terms

EXACT_LIMIT = 2000  # observations up to which the model is exact
FIT_POINTS = 500  # observations from which hyperparameters are then learned
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
        rows, B = np.empty((len(y) + len(y) // 8, m)), np.eye(m)
        for a in range(0, len(y), _BLOCK):
            block = np.ascontiguousarray(points[:, a : a + _BLOCK])
            A = kernels.cross(block, UT, terms) @ L_inv.T / np.sqrt(noise_variance)
            rows[a : a + len(A)] = A
            B += A.T @ A
        return cls(terms, noise_variance, UT, points, y, L_inv, rows, [len(y)], B, factor.jitter)

    @property
    def n(self) -> int:
        return len(self.y)

    def append(self, z: Array, value: float) -> "Sparse":
        """One more observation: O(m^2), z as a column (D, 1)."""
        n = self.n
        a = self.L_inv_U @ kernels.cross(z, self.XT, self.terms)[0] / np.sqrt(self.noise_variance)
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
            B=self.B + np.outer(a, a),
        )

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
        told = self.rows[: self.n].T @ self.y / np.sqrt(self.noise_variance)
        return self.L_inv_U.T @ (self._B_inv @ told)

    @cached_property
    def L_inv(self) -> Array:
        """C^T L^-1 (m, m)."""
        C, _ = linalg.cholesky_in_place(np.eye(len(self.B)) - self._B_inv)
        return np.tril(C).T @ self.L_inv_U

    def log_evidence(self) -> float:
        """The log evidence of the approximation: y ~ N(0, sigma^2 (I + A^T A))."""
        L, _ = linalg.cholesky_in_place(self.B.copy())
        told = self.rows[: self.n].T @ self.y
        fit = (float(self.y @ self.y) - float(told @ self._B_inv @ told)) / self.noise_variance
        log_det = 2.0 * float(np.log(L.diagonal()).sum()) + self.n * float(np.log(self.noise_variance))
        return -0.5 * (fit + log_det + self.n * float(np.log(2.0 * np.pi)))
