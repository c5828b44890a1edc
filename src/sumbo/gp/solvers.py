"""What is computed from the observations once and shared by all groups: exactly, or through some of them where many.

`AdditiveGP` has the one or the other and does not ask which. `Exact`: K = L L^T is the covariance of all points with
noise, of the values in general and of each one by itself, and alpha = K^-1 y.

`Sparse`: a model on some observations, the support, that still learns from all, at a cost linear in n. It is the fully
independent training conditional (FITC) approximation: the function is what the kernel at m support points U spans, and
beside it each observation has a part of its own, as large as what the support leaves unexplained there:

    mean(z)     = k(z, U) a,                 a = L^-T B^-1 sum_i a_i y_i / lambda_i
    variance(z) = k(z, z) - |k(z, U) L^-T C|^2
    L L^T = K(U, U),   a_i = L^-1 k(U, x_i),   lambda_i = noise + v_i + k(x_i, x_i) - |a_i|^2
    B = I + sum_i a_i a_i^T / lambda_i,        C C^T = I - B^-1

Both have the form of the exact posterior with U in place of X, `a` for alpha and C^T L^-1 for the inverse factor, so
all that predicts and differentiates is shared, the components' posteriors included. The lambda_i are why it is used in
place of the simpler rule with the noise alone: a point far from the support, which it cannot represent, then does not
bend the model near the best points, which are support.

| symbol | shape            | meaning                                                  |
|--------|------------------|----------------------------------------------------------|
| XT     | (D, n) or (D, m) | points that predictions refer to: all, or the support U  |
| points | (D, n)           | all points                                               |
| v      | (n,)             | known variance of each value beside the noise; often 0   |
| alpha  | (n,) or (m,)     | K^-1 y, or a                                             |
| L_inv  | (n, n) or (m, m) | inverse of the Cholesky factor, or C^T L^-1              |
| A      | (n, m)           | one row a_i / sqrt(lambda_i) per observation             |
| B      | (m, m)           | what all observations together say                       |
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sumbo._typing import Array
from sumbo.gp import kernels, linalg
from sumbo.gp.kernels import Terms

EXACT_LIMIT = 2000  # observations up to which the model is exact
FIT_POINTS = 1000  # observations from which hyperparameters are learned, at most
_WORK = 1e10  # n m^2, multiplications that conditioning may take
_BLOCK = 2000  # observations taken in at a time, to bound memory


@dataclass(frozen=True)
class Exact:
    """n observations and the factor of their covariance. Immutable."""

    terms: Terms
    noise_variance: float
    XT: Array
    y: Array
    known_variance: Array  # v
    factor: linalg.Factor

    @classmethod
    def condition(
        cls, terms: Terms, noise_variance: float, X: Array, y: Array, known_variance: Array, jitter: float = 0.0
    ) -> "Exact":
        """From scratch: O(n^3). The jitter is added to the diagonal, and more where it takes more."""
        XT = np.array(X.T, order="C")  # a copy: what the caller does to X later is none of our business
        K = linalg.add_noise(kernels.gram(XT, terms), noise_variance + jitter, known_variance)
        L, more = linalg.cholesky_in_place(K)
        return cls(terms, noise_variance, XT, y, known_variance, linalg.Factor(L, len(y), jitter + more, [len(y)]))

    @property
    def points(self) -> Array:
        return self.XT

    @property
    def jitter(self) -> float:
        return self.factor.jitter

    def append(self, z: Array, value: float, known_variance: float = 0.0) -> "Exact":
        """One more observation: O(n^2), z as a column (D, 1)."""
        k = kernels.cross(z, self.XT, self.terms)[0]
        diagonal = float(self.terms.s2.sum()) + self.noise_variance + known_variance
        XT, y, v = np.hstack([self.XT, z]), np.append(self.y, value), np.append(self.known_variance, known_variance)
        factor = self.factor.append(k, diagonal)
        if factor is None:
            return Exact.condition(self.terms, self.noise_variance, XT.T, y, v, linalg.SMALLEST_PIVOT * diagonal)
        return replace(self, XT=XT, y=y, known_variance=v, factor=factor)

    def hallucinate(self, ZT: Array) -> "Exact":
        """p more observations at ZT (D, p) that are just what was predicted there: O(n^2 p).

        K bordered by these points has the factor [[L, 0], [B, S]] with B = k(Z, X) L^-T and S S^T = K(Z, Z) - B B^T.
        Nothing surprises the model, so alpha gets zeros for them and the mean stays as it is, to the last bit.
        """
        k = kernels.cross(ZT, self.XT, self.terms)
        B = self.factor.solve_lower_rows(k)
        S = kernels.gram(ZT, self.terms) - B @ B.T
        S.flat[:: len(S) + 1] += self.noise_variance + self.factor.jitter
        y, v = np.append(self.y, k @ self.alpha), np.append(self.known_variance, np.zeros(len(S)))
        XT, factor = np.hstack([self.XT, ZT]), self.factor.bordered(B, S)
        there = replace(self, XT=XT, y=y, known_variance=v, factor=factor)
        there.__dict__["alpha"] = np.append(self.alpha, np.zeros(len(S)))
        return there

    @cached_property
    def alpha(self) -> Array:
        return self.factor.solve(self.y)

    @cached_property
    def L_inv(self) -> Array:
        return self.factor.inverse_lower()

    def precise_weights(self) -> tuple[Array, Array]:
        """K^-1 y and the diagonal of K^-1: without observation i, it is predicted off by their ratio."""
        return self.alpha, np.einsum("qi,qi->i", self.L_inv, self.L_inv)

    def log_evidence(self) -> float:
        """log p(y | X)."""
        fit, log_det = float(self.y @ self.alpha), self.factor.log_determinant()
        return -0.5 * fit - 0.5 * log_det - 0.5 * len(self.y) * linalg.LOG_2PI


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
    XT: Array
    y: Array
    known_variance: Array  # v
    points: Array
    L_inv_U: Array  # L^-1
    rows: Array  # (capacity, m), rows 0 to n - 1 valid
    used: list[int]  # one cell shared by all models on this buffer: how many rows are taken
    deviations: Array  # sqrt(lambda_i) (n,)
    B: Array
    jitter: float

    @classmethod
    def condition(cls, terms: Terms, noise_variance: float, X: Array, y: Array, known_variance: Array) -> "Sparse":
        """From scratch: O(n m^2)."""
        points = np.array(X.T, order="C")
        n, m = len(y), support_size(len(y))
        UT = np.ascontiguousarray(points[:, chosen(y, m)])
        K = kernels.gram(UT, terms)
        # Support points may be close to each other: some jitter from the start keeps L^-1 within reason.
        K.flat[:: len(K) + 1] += 1e-8 * float(K.diagonal().mean())
        factor = linalg.cholesky(K)
        L_inv = factor.inverse_lower()
        rows = np.empty((n + n // 8, m))
        none, no_points = y[:0], points[:, :0]
        known = cls(terms, noise_variance, UT, none, none, no_points, L_inv, rows, [0], none, np.eye(m), factor.jitter)
        for a in range(0, n, _BLOCK):
            some = slice(a, a + _BLOCK)
            block = np.ascontiguousarray(points[:, some])
            known = known._grown(block, kernels.cross(block, UT, terms), y[some], known_variance[some])
        return known

    def append(self, z: Array, value: float, known_variance: float = 0.0) -> "Sparse":
        """One more observation: O(m^2), z as a column (D, 1)."""
        return self._grown(z, kernels.cross(z, self.XT, self.terms), np.array([value]), np.array([known_variance]))

    def hallucinate(self, ZT: Array) -> "Sparse":
        """p more observations at ZT (D, p) that are what was predicted there: O(m^2 p). The mean does not change."""
        k = kernels.cross(ZT, self.XT, self.terms)
        there = self._grown(ZT, k, k @ self.alpha, np.zeros(len(k)))
        there.__dict__["alpha"] = self.alpha
        return there

    def _grown(self, ZT: Array, k: Array, values: Array, known_variance: Array) -> "Sparse":
        n, end = len(self.y), len(self.y) + len(k)
        A = k @ self.L_inv_U.T
        unexplained = float(self.terms.s2.sum()) - np.einsum("im,im->i", A, A)
        deviations = np.sqrt(self.noise_variance + known_variance + np.maximum(unexplained, 0.0))
        A /= deviations[:, None]
        rows, used = self.rows, self.used
        if used[0] != n or end > len(rows):  # another branch grew here already, or there is no room
            rows, used = np.empty((end + n // 8, rows.shape[1])), [n]
            rows[:n] = self.rows[:n]
        rows[n:end] = A
        used[0] = end
        return replace(
            self,
            points=np.hstack([self.points, ZT]),
            y=np.append(self.y, values),
            known_variance=np.append(self.known_variance, known_variance),
            rows=rows,
            used=used,
            deviations=np.append(self.deviations, deviations),
            B=self.B + A.T @ A,
        )

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
        A = self.rows[: len(self.y)]
        AB = A @ self._B_inv
        weights = (self.y / self.deviations - AB @ self._told()) / self.deviations
        return weights, (1.0 - np.einsum("im,im->i", AB, A)) / np.square(self.deviations)

    def log_evidence(self) -> float:
        """The log evidence of the approximation: y ~ N(0, lambda^1/2 (I + A A^T) lambda^1/2)."""
        L, _ = linalg.cholesky_in_place(self.B.copy())
        told = self._told()
        fit = float(np.square(self.y / self.deviations).sum()) - float(told @ self._B_inv @ told)
        log_det = 2.0 * float(np.log(L.diagonal()).sum()) + 2.0 * float(np.log(self.deviations).sum())
        return -0.5 * (fit + log_det + len(self.y) * linalg.LOG_2PI)

    def _told(self) -> Array:
        """sum_i a_i y_i / lambda_i (m,)."""
        return self.rows[: len(self.y)].T @ (self.y / self.deviations)


Solver = Exact | Sparse
