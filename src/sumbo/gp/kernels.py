"""One group's kernel and its derivatives, and the fused sums over groups.

The covariance is a sum over groups, equation `sumKernel` of the paper:

    k(x, x') = sum_j s_j^2 phi(r2_j),      r2_j = sum_{i in group j} (x_i - x'_i)^2 / l_{j,i}^2

with phi the squared exponential, Matern-3/2 or Matern-5/2 of unit variance. On a nominal (categorical) dimension
the difference (x_i - x'_i)^2 is 1 where the categories differ and 0 where they agree.

| symbol    | shape        | meaning                                                                      |
|-----------|--------------|------------------------------------------------------------------------------|
| XT, ZT    | (D, n), (D, m) | points, one row per dimension, so that the loop over points is contiguous   |
| dims      | (P,)         | dimensions of all groups, one group after the other; P = sum_j d_j           |
| offsets   | (M + 1,)     | group j owns dims[offsets[j]:offsets[j + 1]]                                 |
| inv_l2    | (P,)         | 1 / lengthscale^2                                                            |
| s2        | (M,)         | variance of each group                                                       |
| K, W      | (n, n)       | symmetric; only the lower half is written and read                           |

Nothing of size n x n is made per group: rows are built in a buffer of length n that stays in the first-level cache.
The loops themselves are in `_loops`. Threads, where the user wants them (`threads.use`), share rows or groups,
never a sum: results have the same bits with any number of threads.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sumbo._typing import Array
from sumbo.errors import SettingError
from sumbo.gp import loops, threads

# Families by name, in the order of their numbers in `_loops`, where their formulas are. Beside each, the degrees of
# freedom of Student's t, its spectral density: 2 nu for Matern; none for the normal density of the squared exponential.
FAMILIES: dict[str, int | None] = {"se": None, "matern32": 3, "matern52": 5}


def family_index(kernel: str) -> int:
    """Number of a kernel family, as the compiled loops want it."""
    if kernel not in FAMILIES:
        raise SettingError(f"kernel must be one of {', '.join(FAMILIES)}; got {kernel!r}")
    return list(FAMILIES).index(kernel)


class Terms(NamedTuple):
    """The groups as flat arrays with their hyperparameters: what the compiled loops read, in this order."""

    dims: NDArray[np.int64]
    offsets: NDArray[np.int64]
    inv_l2: Array
    s2: Array
    nominal: NDArray[np.bool_]
    family: int

    @classmethod
    def build(
        cls,
        groups: Sequence[Sequence[int]],
        lengthscales: Array,
        variances: Array,
        *,
        nominal: NDArray[np.bool_],
        family: int,
    ) -> "Terms":
        dims = np.array([i for group in groups for i in group], dtype=np.int64)
        offsets = np.concatenate([[0], np.cumsum([len(group) for group in groups])]).astype(np.int64)
        return cls(dims, offsets, 1.0 / np.square(lengthscales), np.asarray(variances), nominal, family)

    def with_values(self, lengthscales: Array, variances: Array) -> "Terms":
        """The same groups with other hyperparameters."""
        return self._replace(inv_l2=1.0 / np.square(lengthscales), s2=variances)

    def only(self, j: int) -> "Terms":
        """The kernel of group j alone."""
        return self.between(j, j + 1)

    def between(self, first: int, end: int) -> "Terms":
        """The sum of the kernels of groups first to end - 1."""
        a, b = self.offsets[first], self.offsets[end]
        offsets = self.offsets[first : end + 1] - a
        return Terms(self.dims[a:b], offsets, self.inv_l2[a:b], self.s2[first:end], self.nominal, self.family)


def gram(XT: Array, terms: Terms) -> Array:
    """K(X, X), lower half; the upper half is zero."""
    # Row p costs p + 1: equal work lies between roots of equal steps.
    return _cross(XT, XT, terms, 1, lower=True, power=0.5)[0]


def cross(ZT: Array, XT: Array, terms: Terms) -> Array:
    """k(Z, X) of the sum: (m, n)."""
    return _cross(ZT, XT, terms, 1)[0]


def cross_groups(ZT: Array, XT: Array, terms: Terms) -> Array:
    """k_j(Z_j, X_j) of every group: (M, m, n)."""
    return _cross(ZT, XT, terms, len(terms.s2))


def _cross(ZT: Array, XT: Array, terms: Terms, layers: int, lower: bool = False, power: float = 1.0) -> Array:
    K = np.zeros((layers, ZT.shape[1], XT.shape[1]))
    threads.spread(lambda a, b: loops().cross(ZT, XT, *terms, lower, a, b, K), _rows(ZT.shape[1], power))
    return K


def group_means(ZT: Array, XT: Array, terms: Terms, alpha: Array) -> Array:
    """k_j(Z_j, X_j) alpha of every group: (M, m), without the (M, m, n) in between."""
    return loops().group_means(ZT, XT, *terms, alpha)


def evidence_traces(XT: Array, terms: Terms, alpha: Array, K_inv: Array) -> tuple[Array, Array]:
    """tr(W dK)/2 with W = alpha alpha^T - K^-1, by log lengthscale (P,) and by log variance of a group (M,)."""
    # Groups are shared among threads by their dimensions; within a group the sum is one thread's.
    bounds = sorted({int(np.searchsorted(terms.offsets, share * len(terms.dims))) for share in _shares(XT.shape[1])})
    parts = threads.spread(lambda a, b: loops().evidence_traces(XT, *terms.between(a, b), alpha, K_inv), bounds)
    by_l, by_s2 = map(np.concatenate, zip(*parts, strict=True))
    return by_l, by_s2


def cross_gradient(ZT: Array, XT: Array, terms: Terms, A: Array) -> Array:
    """d/dz_a of sum_q A[a, q] k(z_a, x_q), or of sum_j sum_q A[j, a, q] k_j(z_a, x_q): (m, D).

    Nominal dimensions have no gradient.
    """
    A, G = A if A.ndim == 3 else A[None], np.zeros((ZT.shape[1], len(ZT)))
    threads.spread(lambda a, b: loops().cross_gradient(ZT, XT, *terms, A, a, b, G), _rows(ZT.shape[1]))
    return G


def _shares(rows: int) -> list[float]:
    """0 to 1 in as many steps as there are threads for so many rows."""
    pieces = threads.pieces(rows)
    return [i / pieces for i in range(pieces + 1)]


def _rows(m: int, power: float = 1.0) -> list[int]:
    """Bounds of the rows that each thread works on."""
    return [round(m * share**power) for share in _shares(m)]
