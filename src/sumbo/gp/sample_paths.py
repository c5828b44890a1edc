"""Functions drawn from the posterior of an additive GP: Matheron's rule, group by group.

A draw of the posterior is a draw of the prior, corrected by what it got wrong about the data:

    f_j(z) = g_j(z) + k_j(z, X) K^-1 (y - g(X) - eps),    g_j ~ GP(0, k_j) by random Fourier features

The correction splits by group as the prior does, so f is a sum of functions of the groups, exactly; its maximiser can
be found group by group.

| symbol | shape     | meaning                                                        |
|--------|-----------|----------------------------------------------------------------|
| omega  | (d_j, F)  | frequencies of the features of one group                       |
| w      | (F,)      | their weights                                                  |
| v      | (n,)      | K^-1 (y - g(X) - eps), shared by all groups                    |
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sumbo._typing import Array
from sumbo.errors import DataError, SettingError
from sumbo.gp import kernels
from sumbo.gp.kernels import Terms


@dataclass(frozen=True)
class SamplePath:
    """One function drawn from a model. Call it at points (m, D), or `group(j, X_j)` for one component."""

    groups: tuple[tuple[int, ...], ...]
    terms: Terms
    priors: "tuple[PriorDraw, ...]"
    XT: Array  # (D, n)
    v: Array  # (n,)

    def __call__(self, X: ArrayLike) -> Array:
        """Values of the sum at each row of X."""
        Z = self._points(X, len(self.XT))
        return np.sum([self.group(j, Z[:, group]) for j, group in enumerate(self.groups)], axis=0)

    def group(self, j: int, X_j: ArrayLike) -> Array:
        """Values of component j at points of its own dimensions, (m, d_j)."""
        if not -len(self.groups) <= j < len(self.groups):
            raise SettingError(f"there are {len(self.groups)} groups, numbered from 0; got {j}")
        j %= len(self.groups)
        group = list(self.groups[j])
        Z_j = self._points(X_j, len(group))
        ZT = np.zeros((len(self.XT), len(Z_j)))
        ZT[group] = Z_j.T
        return self.priors[j](Z_j) + kernels.cross(ZT, self.XT, self.terms.only(j)) @ self.v

    def parts(self, Z: Array) -> Array:
        """Values of every component at each row, (M, m)."""
        drawn = np.array([g(Z[:, group]) for g, group in zip(self.priors, self.groups, strict=True)])
        return drawn + kernels.group_means(np.ascontiguousarray(Z.T), self.XT, self.terms, self.v)

    def with_gradient(self, Z: Array) -> tuple[Array, Array]:
        """Values of the sum (m,) and its gradient at each row, (m, D); along a category there is none."""
        ZT = np.ascontiguousarray(Z.T)
        values = kernels.cross(ZT, self.XT, self.terms) @ self.v
        gradient = kernels.cross_gradient(ZT, self.XT, self.terms, np.tile(self.v, (len(Z), 1)))
        for g, group in zip(self.priors, self.groups, strict=True):
            drawn, slopes = g.with_gradient(Z[:, group])
            values += drawn
            gradient[:, group] += slopes
        return values, gradient

    @staticmethod
    def _points(X: ArrayLike, width: int) -> Array:
        Z = np.asarray(X, dtype=float)
        if Z.ndim != 2 or Z.shape[1] != width:
            raise DataError(f"expected points of shape (m, {width}); got {Z.shape}")
        return Z


@dataclass(frozen=True)
class PriorDraw:
    """g_j(z) = s sqrt(2 / F) sum_f w_f cos(omega_f . z + phase_f), category by category on nominal dimensions."""

    amplitude: float  # s sqrt(2 / F)
    omega: Array  # (d_j, F), rows of nominal dimensions zero
    phase: Array  # (F,)
    weights: Array  # (F,)
    tables: dict[int, Array]  # position in the group -> (categories, F): what each category adds to the angle

    def __call__(self, Z_j: Array) -> Array:
        return self.at_angle(self.angle(Z_j))

    def with_gradient(self, Z_j: Array) -> tuple[Array, Array]:
        """Values (m,) and gradient (m, d_j)."""
        angle = self.angle(Z_j)
        return self.at_angle(angle), -self.amplitude * (np.sin(angle) * self.weights) @ self.omega.T

    def at_angle(self, angle: Array) -> Array:
        """Values where the features have these angles, (m, F)."""
        return self.amplitude * (np.cos(angle) @ self.weights)

    def angle(self, Z_j: Array) -> Array:
        """The angle of every feature, (m, F)."""
        angle = Z_j @ self.omega + self.phase
        for position in self.tables:
            angle += self._table_rows(position, Z_j[:, position])
        return angle

    def turn(self, position: int, old: Array, new: Array) -> Array:
        """What the angles gain when one dimension goes from old to new values (m,): (m, F)."""
        if position in self.tables:
            return self._table_rows(position, new) - self._table_rows(position, old)
        return np.outer(new - old, self.omega[position])

    def _table_rows(self, position: int, z: Array) -> Array:
        table = self.tables[position]
        return table[np.clip((z * len(table)).astype(int), 0, len(table) - 1)]


def draw_prior(
    kernel: str,
    lengthscales: Array,
    scale: float,
    categories: NDArray[np.int64],
    rng: np.random.Generator,
    features: int,
) -> PriorDraw:
    """Draw g_j from the prior of one group, its dimensions' numbers of categories given (0 for a number)."""
    # Student's t with p degrees of freedom is a normal divided by the root of a chi-squared over p, common to all
    # dimensions of a feature.
    p = kernels.FAMILIES[kernel]
    spread = np.ones(features) if p is None else np.sqrt(p / rng.chisquare(p, features))
    omega = rng.standard_normal((len(lengthscales), features)) * spread / lengthscales[:, None]
    tables = {}
    for position, count in enumerate(categories):
        if count > 0:
            # A one-hot code scaled by 1/(l sqrt 2) has squared distance 1/l^2 between any two categories.
            tables[position] = rng.standard_normal((count, features)) * spread / (lengthscales[position] * np.sqrt(2.0))
            omega[position] = 0.0
    phase, weights = rng.uniform(0.0, 2.0 * np.pi, features), rng.standard_normal(features)
    return PriorDraw(scale * float(np.sqrt(2.0 / features)), omega, phase, weights, tables)
