"""A smooth stand-in for the choice of groups: all pairs of dimensions at once, each with a weight.

| symbol | shape  | meaning                                                                         |
|--------|--------|---------------------------------------------------------------------------------|
| A      | (D, N) | one-dimensional kernels, lower halves                                           |
| Theta  | (D, D) | weights of products of two of them, upper half; on the diagonal, of single ones |
| w      | (N,)   | slopes of the log evidence by the elements of the covariance                    |
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from sumbo._typing import Array
from sumbo.gp import linalg, loops
from sumbo.structure.rules import Group, Rules

_STEPS = 25


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

    def __init__(self, XT: Array, y: Array, nominal: NDArray[np.bool_], family: int, lengthscale: float = 0.5) -> None:
        self.y, self.D = y, len(XT)
        one = np.array([1.0 / lengthscale**2])
        XT = np.ascontiguousarray(XT)
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
        A, Theta = self.A, np.zeros((self.D, self.D))
        Theta[self.upper] = np.where(self.single, 0.0, theta)
        k = np.einsum("ip,ip->p", A, Theta @ A) + theta[self.single] @ A
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

        def negative(log_theta: Array) -> tuple[float, Array]:
            value, gradient = self.evidence(log_theta)
            return -value, -gradient

        start = self.start()
        low, high = np.log(self.scale) - 25.0, np.log(self.scale) + 8.0
        bounds = [(low, high)] * (len(start) - 1) + [(np.log(1e-6 * self.scale), np.log(self.scale))]
        options = {"maxiter": _STEPS, "maxfun": _STEPS + 20}
        found = minimize(negative, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        Theta = np.zeros((self.D, self.D))
        Theta[self.upper] = np.where(self.single, 0.0, np.exp(found.x[:-1]))
        return Theta + Theta.T
