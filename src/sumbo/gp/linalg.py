"""Cholesky factors that never raise, and that grow by a row in O(n^2).

| symbol | shape  | meaning                                                            |
|--------|--------|--------------------------------------------------------------------|
| K      | (n, n) | symmetric; only the lower half is read                             |
| L      | (n, n) | lower triangular, L L^T = K + jitter I                             |
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from sumbo import _interrupts
from sumbo._typing import Array
from sumbo.errors import DataError
from sumbo.gp import loops

_FIRST_JITTER = 1e-12  # relative to the mean of the diagonal; grows tenfold until LAPACK is content
LOG_2PI = float(np.log(2.0 * np.pi))
SMALLEST_PIVOT = 1e-12  # relative to the new diagonal element, when a row is appended


@dataclass(frozen=True, slots=True)
class Factor:
    """Cholesky factor L with the jitter that it took.

    The rows live in a buffer with room to grow. Appending writes behind the last row of the newest factor, which older
    factors on the same buffer do not look at, so each of them stays what it was.
    """

    buffer: Array  # (capacity, capacity), rows 0 to n - 1 valid
    n: int
    jitter: float
    used: list[int]  # one cell shared by all factors on this buffer: how many rows are taken

    def lower(self) -> Array:
        """L as an array of its own."""
        return np.tril(self.buffer[: self.n, : self.n])

    def inverse_lower(self) -> Array:
        """L^-1, lower triangular."""
        if self.n == 0:
            return np.empty((0, 0))
        U_inv, _ = lapack.dtrtri(self.lower().T, lower=0, overwrite_c=1)
        return np.ascontiguousarray(U_inv.T)

    def solve_lower_rows(self, B: Array) -> Array:
        """(L^-1 B^T)^T for many right-hand sides, the rows of B (p, n)."""
        # A C-ordered lower half is a Fortran-ordered upper half, here U = L^T, and so is B^T: no copy of either.
        X, _ = lapack.dtrtrs(self.buffer[: self.n, : self.n].T, B.T, lower=0, trans=1)
        return np.ascontiguousarray(X.T)

    def solve(self, b: Array) -> Array:
        """K^-1 b for one right-hand side."""
        return loops().backward(self.buffer, self.n, loops().forward(self.buffer, self.n, b))

    def log_determinant(self) -> float:
        """log |K|."""
        return 2.0 * float(np.log(self.buffer.diagonal()[: self.n]).sum())

    def append(self, k: Array, diagonal: float) -> "Factor | None":
        """The factor of K bordered by covariances k (n,) and a new diagonal element: O(n^2).

        None where the bordered matrix seems indefinite by more than such a row itself brings about: rounding has
        spoiled this factor. To go on would square the error with every row.
        """
        row = loops().forward(self.buffer, self.n, k)
        pivot = diagonal + self.jitter - float(row @ row)
        least = SMALLEST_PIVOT * diagonal
        if not pivot >= -least:  # NaN as well
            return None
        n, buffer, used = self.n, self.buffer, self.used
        if used[0] != n or n == len(buffer):  # another branch grew here already, or there is no room
            buffer = np.empty((max(16, n + n // 4 + 1),) * 2)
            buffer[:n, :n] = self.buffer[:n, :n]
            used = [n]
        buffer[n, :n] = row
        buffer[n, n] = np.sqrt(max(pivot, least))
        used[0] = n + 1
        return Factor(buffer, n + 1, self.jitter, used)

    def bordered(self, B: Array, S: Array) -> "Factor":
        """The factor of K bordered by many rows at once, given B = k L^-T (p, n) and what it leaves over, S (p, p)."""
        p, n = B.shape
        buffer = np.empty((n + p, n + p))
        buffer[:n, :n] = self.buffer[:n, :n]
        buffer[n:, :n] = B
        buffer[n:, n:], jitter = cholesky_in_place(S)
        return Factor(buffer, n + p, self.jitter + jitter, [n + p])


def cholesky(K: Array) -> Factor:
    """Factor of K, which is left as it is; see `cholesky_in_place`."""
    L, jitter = cholesky_in_place(K.copy())
    return Factor(L, len(K), jitter, [len(K)])


def cholesky_in_place(K: Array, again: Callable[[], Array] | None = None) -> tuple[Array, float]:
    """L in the lower half of K's own memory, where no jitter is needed, and the jitter.

    That is the least of 0, 1e-12, 1e-11, ... times the mean diagonal that is enough. A matrix that is symmetric and
    finite always has a factor: once the jitter outweighs the rest, it is diagonally dominant. K is lost: for the rare
    case that it needs jitter, `again` makes it once more; without that a copy is kept. NaN or infinity: a DataError.
    """
    _interrupts.poll()  # every step of a fit or of a search for groups passes here
    again = again or K.copy().copy
    jitter = 0.0
    while True:
        # A C-ordered lower half is a Fortran-ordered upper half: LAPACK reads it with no copy.
        U, info = lapack.dpotrf(K.T, lower=0, overwrite_a=1, clean=0)
        # LAPACK may well call a matrix with a NaN in it factorised.
        if info == 0 and np.isfinite(U.diagonal()).all():
            return U.T, jitter
        K = again()
        if not np.isfinite(np.tril(K)).all():
            raise DataError("the covariance matrix has NaN or infinite elements; check lengthscales, scales and points")
        jitter = max(10.0 * jitter, _FIRST_JITTER * max(float(np.mean(np.abs(K.diagonal()))), 1e-300))
        K.flat[:: len(K) + 1] += jitter


def add_noise(K: Array, noise_variance: float, known_variance: Array | None = None) -> Array:
    """K, to whose diagonal the noise was added: the same for all values, and what is known of each, (n,)."""
    K.flat[:: len(K) + 1] += noise_variance if known_variance is None else noise_variance + known_variance
    return K


def inverse_in_place(L: Array) -> Array:
    """(L L^T)^-1 in the lower half of L's own memory."""
    U, _ = lapack.dpotri(L.T, lower=0, overwrite_c=1)
    return U.T


def solved(K: Array, y: Array, again: Callable[[], Array] | None = None) -> tuple[Array, Array, float]:
    """L as by `cholesky_in_place`, alpha = K^-1 y, and log N(y | 0, K) but for its constant, -n/2 log 2 pi."""
    L, _ = cholesky_in_place(K, again)
    alpha, _ = lapack.dpotrs(L.T, y, lower=0)
    return L, alpha, float(-0.5 * (y @ alpha) - np.log(L.diagonal()).sum())
