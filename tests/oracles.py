"""Naive dense formulas, as the textbook writes them: loops, full matrices, no import of sumbo.

| symbol  | shape  | meaning                                                                   |
|---------|--------|---------------------------------------------------------------------------|
| X, Z    | (n, D), (m, D) | points, one row each; a category c of k stands at (c + 1/2) / k   |
| l       | (P,)   | lengthscales, group after group; groups may overlap                       |
| s       | (M,)   | standard deviation of each component                                      |
"""

import math
from dataclasses import dataclass, replace

import numpy as np

KERNELS = ("se", "matern32", "matern52")


def phi(kernel, r):
    """Covariance at scaled distance r, unit variance."""
    if kernel == "se":
        return math.exp(-(r**2) / 2)
    if kernel == "matern32":
        return (1 + math.sqrt(3) * r) * math.exp(-math.sqrt(3) * r)
    return (1 + math.sqrt(5) * r + 5 * r**2 / 3) * math.exp(-math.sqrt(5) * r)


def phi_by_log_lengthscale(kernel, r, share):
    """d phi / d log l_i, where share = (x_i - x'_i)^2 / l_i^2 is the part of r^2 that dimension i has."""
    if kernel == "se":
        return share * math.exp(-(r**2) / 2)
    if kernel == "matern32":
        return 3 * share * math.exp(-math.sqrt(3) * r)
    return 5 / 3 * share * (1 + math.sqrt(5) * r) * math.exp(-math.sqrt(5) * r)


@dataclass(frozen=True)
class Additive:
    """k(x, x') = sum_j s_j^2 phi(r_j), observed with noise."""

    kernel: str
    groups: tuple
    lengthscales: np.ndarray  # (P,)
    scales: np.ndarray  # (M,)
    categories: np.ndarray  # (D,): 0 for a number
    noise_variance: float
    known_variance: np.ndarray | float = 0.0  # (n,): of single values, beside the noise

    @property
    def D(self):
        return len(self.categories)

    def group_lengthscales(self, j):
        start = sum(len(group) for group in self.groups[:j])
        return self.lengthscales[start : start + len(self.groups[j])]

    def shares(self, j, x, z):
        """(x_i - z_i)^2 / l_i^2 of each dimension i of group j; 1 / l_i^2 where categories differ."""
        shares = []
        for i, length in zip(self.groups[j], self.group_lengthscales(j), strict=True):
            square = float(x[i] != z[i]) if self.categories[i] else float(x[i] - z[i]) ** 2
            shares.append(square / length**2)
        return shares

    def k_group(self, j, A, B):
        K = np.zeros((len(A), len(B)))
        for a in range(len(A)):
            for b in range(len(B)):
                r = math.sqrt(sum(self.shares(j, A[a], B[b])))
                K[a, b] = self.scales[j] ** 2 * phi(self.kernel, r)
        return K

    def k(self, A, B):
        return sum((self.k_group(j, A, B) for j in range(len(self.groups))), np.zeros((len(A), len(B))))

    def K(self, X):
        """Covariance of the observations."""
        return self.k(X, X) + np.eye(len(X)) * (self.noise_variance + self.known_variance)

    def dK_by_log_lengthscales(self, X):
        """One (n, n) matrix for each of the P lengthscales."""
        matrices = []
        for j, group in enumerate(self.groups):
            for position in range(len(group)):
                dK = np.zeros((len(X), len(X)))
                for a in range(len(X)):
                    for b in range(len(X)):
                        shares = self.shares(j, X[a], X[b])
                        slope = phi_by_log_lengthscale(self.kernel, math.sqrt(sum(shares)), shares[position])
                        dK[a, b] = self.scales[j] ** 2 * slope
                matrices.append(dK)
        return matrices

    def dK_by_log_variances(self, X):
        """One (n, n) matrix for each of the M groups."""
        return [self.k_group(j, X, X) for j in range(len(self.groups))]

    def log_evidence(self, X, y):
        K = self.K(X)
        _, log_det = np.linalg.slogdet(K)
        return -0.5 * y @ np.linalg.solve(K, y) - 0.5 * log_det - 0.5 * len(y) * math.log(2 * math.pi)

    def posterior(self, X, y, Z):
        """Mean (m,) and covariance (m, m) of the sum."""
        K_inv = np.linalg.inv(self.K(X))
        k = self.k(Z, X)
        return k @ K_inv @ y, self.k(Z, Z) - k @ K_inv @ k.T

    def group_posterior(self, X, y, j, Z):
        """Mean (m,) and covariance (m, m) of component j: equation `addPosterior`."""
        K_inv = np.linalg.inv(self.K(X))
        k = self.k_group(j, Z, X)
        return k @ K_inv @ y, self.k_group(j, Z, Z) - k @ K_inv @ k.T

    def posterior_variance_with_cross_terms(self, X, Z):
        """Variance of the sum (m,) as the double sum of covariances of components, prior and posterior."""
        K_inv = np.linalg.inv(self.K(X))
        M = len(self.groups)
        variance = np.zeros(len(Z))
        for i in range(M):
            for j in range(M):
                prior = self.k_group(i, Z, Z) if i == j else np.zeros((len(Z), len(Z)))
                variance += np.diag(prior - self.k_group(i, Z, X) @ K_inv @ self.k_group(j, Z, X).T)
        return variance

    def with_logs(self, log_lengthscales=None, log_variances=None, log_noise=None):
        """The same model with some hyperparameters given by their logs."""
        changes = {}
        if log_lengthscales is not None:
            changes["lengthscales"] = np.exp(log_lengthscales)
        if log_variances is not None:
            changes["scales"] = np.exp(0.5 * np.asarray(log_variances))
        if log_noise is not None:
            changes["noise_variance"] = float(np.exp(log_noise))
        return replace(self, **changes)


def random_additive(rng, *, kernel, D, overlapping=False, nominal=False, full_order=False, noise_variance=1e-2):
    """A model with uneven groups: a random partition, or groups that share dimensions and leave some out."""
    if overlapping:
        sizes = rng.integers(1, D + 1, size=rng.integers(1, 5))
        groups = tuple(tuple(rng.permutation(D)[:size].tolist()) for size in sizes)
    else:
        labels = rng.integers(0, D, size=D)
        groups = tuple(tuple(np.flatnonzero(labels == j).tolist()) for j in rng.permutation(np.unique(labels)))
    if full_order:
        groups = (*groups, tuple(range(D)))
    categories = rng.integers(2, 5, size=D) * (rng.random(D) < 0.5) if nominal else np.zeros(D, int)
    P = sum(map(len, groups))
    return Additive(
        kernel=kernel,
        groups=groups,
        lengthscales=np.exp(rng.uniform(math.log(0.2), math.log(2.0), P)),
        scales=rng.uniform(0.3, 2.0, len(groups)),
        categories=categories,
        noise_variance=noise_variance,
    )


def random_points(rng, n, categories):
    """Uniform in the unit cube, categories at their middles."""
    X = rng.random((n, len(categories)))
    for i, count in enumerate(categories):
        if count:
            X[:, i] = (rng.integers(0, count, n) + 0.5) / count
    return X


def central_differences(f, x, step=1e-5):
    """Gradient of a scalar function of an array, element by element, in the array's shape."""
    x = np.asarray(x, dtype=float)
    gradient = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        ahead, behind = x.copy(), x.copy()
        ahead[index] += step
        behind[index] -= step
        gradient[index] = (f(ahead) - f(behind)) / (2 * step)
    return gradient


def partitions(units):
    """All partitions of a list."""
    if not units:
        yield []
        return
    for smaller in partitions(units[1:]):
        yield [(units[0],), *smaller]
        for j, group in enumerate(smaller):
            yield [*smaller[:j], tuple(sorted((units[0], *group))), *smaller[j + 1 :]]
