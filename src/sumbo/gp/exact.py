"""The exact posterior's ingredients: what is computed from the observations once and shared by all groups.

| symbol | shape  | meaning                                                  |
|--------|--------|----------------------------------------------------------|
| XT     | (D, n) | points                                                   |
| K      | (n, n) | their covariance with noise, L L^T                       |
| alpha  | (n,)   | K^-1 y                                                   |
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sumbo._typing import Array
from sumbo.gp import kernels, linalg
from sumbo.gp.evidence import LOG_2PI
from sumbo.gp.kernels import Terms


@dataclass(frozen=True)
class Exact:
    """n observations and the factor of their covariance. Immutable."""

    terms: Terms
    noise_variance: float
    XT: Array
    y: Array
    factor: linalg.Factor

    @classmethod
    def condition(cls, terms: Terms, noise_variance: float, X: Array, y: Array, jitter: float = 0.0) -> "Exact":
        """From scratch: O(n^3). The jitter is added to the diagonal, and more where it takes more."""
        XT = np.array(X.T, order="C")  # a copy: what the caller does to X later is none of our business
        K = kernels.gram(XT, terms)
        K.flat[:: len(K) + 1] += noise_variance + jitter
        L, more = linalg.cholesky_in_place(K)
        return cls(terms, noise_variance, XT, y, linalg.Factor(L, len(y), jitter + more, [len(y)]))

    @property
    def points(self) -> Array:
        """All points (D, n); here the same as those that predictions refer to."""
        return self.XT

    @property
    def n(self) -> int:
        return self.factor.n

    @property
    def jitter(self) -> float:
        return self.factor.jitter

    def append(self, z: Array, value: float) -> "Exact":
        """One more observation: O(n^2), z as a column (D, 1)."""
        k = kernels.cross(z, self.XT, self.terms)[0]
        diagonal = float(self.terms.s2.sum()) + self.noise_variance
        XT, y = np.hstack([self.XT, z]), np.append(self.y, value)
        factor = self.factor.append(k, diagonal)
        if factor is None:
            return Exact.condition(self.terms, self.noise_variance, XT.T, y, linalg.SMALLEST_PIVOT * diagonal)
        return replace(self, XT=XT, y=y, factor=factor)

    def hallucinate(self, ZT: Array) -> "Exact":
        """p more observations at ZT (D, p) that are just what was predicted there: O(n^2 p).

        K bordered by these points has the factor [[L, 0], [B, S]] with B = k(Z, X) L^-T and S S^T = K(Z, Z) - B B^T.
        Nothing surprises the model, so alpha gets zeros for them and the mean stays as it is, to the last bit.
        """
        k = kernels.cross(ZT, self.XT, self.terms)
        B = self.factor.solve_lower_rows(k)
        S = kernels.gram(ZT, self.terms) - B @ B.T
        S.flat[:: len(S) + 1] += self.noise_variance + self.factor.jitter
        y = np.append(self.y, k @ self.alpha)
        there = replace(self, XT=np.hstack([self.XT, ZT]), y=y, factor=self.factor.bordered(B, S))
        there.__dict__["alpha"] = np.append(self.alpha, np.zeros(len(S)))
        return there

    def with_values(self, y: Array) -> "Exact":
        return replace(self, y=y)

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
        return float(-0.5 * (self.y @ self.alpha) - 0.5 * self.factor.log_determinant() - 0.5 * self.n * LOG_2PI)
