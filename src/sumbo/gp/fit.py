"""Hyperparameters: marginal likelihood and its exact gradient, priors, multi-start L-BFGS-B.

    log p(y | X) = -1/2 y^T K^-1 y - 1/2 log |K| - n/2 log 2 pi,     K = sum_j K_j + noise I + diag(v)
    d log p / d theta = 1/2 tr((alpha alpha^T - K^-1) dK / d theta),  alpha = K^-1 y

The logs of the hyperparameters are an affine map of a vector theta whose blocks are

    log l_{j,i} = c + (1/2) log d_j + delta_{j,i}        common value, the group's size, a deviation
    log s_j^2   = v + log(d_j / sum d) + epsilon_j       total variance, the group's share, a deviation
    log noise   = e

`c`, `v` and `e` have wide priors, the deviations tight ones around zero: lengthscales are shrunk hard to a common value
which is itself learned, and leave it only as far as the evidence pays for it. (Free lengthscales overfit for as long as
there are fewer than ten points per dimension, which is most of a search.)

| symbol | shape  | meaning                                      |
|--------|--------|----------------------------------------------|
| XT     | (D, n) | points, one row per dimension                |
| y      | (n,)   | values, mean about zero                      |
| v      | (n,)   | variances known beside the noise, if any are |
| theta  | (Q,)   | c, v, [e], [delta (P,)], [epsilon (M,)]      |
| by_l   | (P,)   | derivative by each log lengthscale           |
| by_s2  | (M,)   | derivative by each group's log variance      |
"""

import contextlib
import itertools
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from sumbo._typing import Array
from sumbo.errors import SettingError
from sumbo.gp import kernels, linalg
from sumbo.gp.kernels import Terms

_STEPS_TIMES_N = 6_000  # a thrifty refit: 30 evaluations at n = 200, 12 at n = 500, 5 from n = 1200 on
_LEAST_STEPS = 5
_COLD = 5  # a first fit is thrifty from five times as many observations on


@dataclass(frozen=True, slots=True)
class Evidence:
    """log p(y | X) with its gradient."""

    value: float
    by_log_lengthscale: Array
    by_log_variance: Array
    by_log_noise: float


def log_evidence(
    XT: Array, y: Array, terms: Terms, noise_variance: float, known_variance: Array | None = None
) -> float:
    """log p(y | X)."""
    if len(y) == 0:
        return 0.0
    return _solved(XT, y, terms, noise_variance, known_variance)[2] - 0.5 * len(y) * linalg.LOG_2PI


def evidence_with_gradient(
    XT: Array, y: Array, terms: Terms, noise_variance: float, known_variance: Array | None = None
) -> Evidence:
    """log p(y | X) and its gradient by the logs of lengthscales, variances and noise variance."""
    if len(y) == 0:  # LAPACK refuses empty matrices
        return Evidence(0.0, np.zeros(len(terms.dims)), np.zeros(len(terms.s2)), 0.0)
    L, alpha, value = _solved(XT, y, terms, noise_variance, known_variance)
    K_inv = linalg.inverse_in_place(L)
    by_l, by_s2 = kernels.evidence_traces(XT, terms, alpha, K_inv)
    by_noise = 0.5 * noise_variance * float(alpha @ alpha - K_inv.trace())
    return Evidence(value - 0.5 * len(y) * linalg.LOG_2PI, by_l, by_s2, by_noise)


def _solved(
    XT: Array, y: Array, terms: Terms, noise_variance: float, known_variance: Array | None
) -> tuple[Array, Array, float]:
    def covariance() -> Array:
        return linalg.add_noise(kernels.gram(XT, terms), noise_variance, known_variance)

    return linalg.solved(covariance(), y, covariance)


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """Lengthscales (P,) group after group, scales (M,) as standard deviations, and the noise variance."""

    lengthscales: Array
    scales: Array
    noise_variance: float


@dataclass(frozen=True, slots=True)
class FitSettings:
    """What is learned, and where it is expected to be. Values are relative to the variance of y.

    Attributes:
        ard: a lengthscale for each dimension of each group, or one for all.
        group_scales: a scale for each group, or one for all.
        dimension_scaled: lengthscales grow with the square root of the group's size, variances with the size.
        lengthscale, lengthscale_sd: median and log-sd of the common lengthscale; sd None for a flat prior.
        deviation_sd: log-sd of each lengthscale around the common one.
        scale_sd: log-sd of the variances, of their total and of each group's share alike.
        noise, noise_sd: median and log-sd of the noise variance; sd None holds it fixed.
        lengthscale_bounds, variance_bounds, noise_bounds: hard limits.
        starts: how many cold starts are followed to the end, beside the previous hyperparameters.
        evaluations: limit of evidence evaluations for each of them.
        thrifty_from: from so many observations on, a refit follows the previous hyperparameters only, and the fewer
            steps the more there are: they move little, and each step costs O(n^3). None for never.

    Example:
        >>> FitSettings(ard=False, noise=1e-4).lengthscale
        0.5
    """

    ard: bool = True
    group_scales: bool = True
    dimension_scaled: bool = True
    lengthscale: float = 0.5
    lengthscale_sd: float | None = 0.7
    deviation_sd: float = 0.3
    scale_sd: float | None = 1.0
    noise: float = 1e-4
    noise_sd: float | None = 2.0
    lengthscale_bounds: tuple[float, float] = (1e-3, 1e2)
    variance_bounds: tuple[float, float] = (1e-3, 1e3)
    noise_bounds: tuple[float, float] = (1e-7, 1.0)
    starts: int = 2
    evaluations: int = 60
    thrifty_from: int | None = 100

    def __post_init__(self) -> None:
        if self.starts < 0 or self.evaluations < 1:
            raise SettingError(
                f"starts must be from 0 up, evaluations from 1 up; got {self.starts}, {self.evaluations}"
            )

    @classmethod
    def paper(cls) -> "FitSettings":
        """Those of the paper's experiments: one bandwidth and one scale for all groups, no priors, noise held fixed."""
        return cls(
            ard=False,
            group_scales=False,
            dimension_scaled=False,
            lengthscale_sd=None,
            scale_sd=None,
            noise=1e-4,  # 1% of the standard deviation
            noise_sd=None,
            lengthscale_bounds=(1e-5, 5.0),
            variance_bounds=(0.03**2, 30.0**2),
            thrifty_from=None,
        )


@dataclass(frozen=True, slots=True)
class Fit:
    """Learned hyperparameters, the log posterior reached, and how many evidence evaluations it took."""

    hyperparameters: Hyperparameters
    log_posterior: float
    evaluations: int


def fit_hyperparameters(
    XT: Array,
    y: Array,
    terms: Terms,
    settings: FitSettings,
    previous: Hyperparameters | None = None,
    known_variance: Array | None = None,
) -> Fit:
    """Maximise evidence times prior from several starts, the previous optimum among them.

    The terms give the groups and the kernel; their own hyperparameters count for nothing.
    """
    if settings.thrifty_from is not None and len(y) >= settings.thrifty_from * (1 if previous else _COLD):
        steps = min(settings.evaluations, max(_LEAST_STEPS, _STEPS_TIMES_N // len(y)))
        settings = replace(settings, starts=0, evaluations=steps)
    problem = _Posterior(XT, y, terms, settings, known_variance)
    starts = [] if previous is None else [problem.theta_of(previous)]
    cold = max(settings.starts, not starts)
    if cold:
        starts += sorted(problem.cold_starts(), key=problem.negative)[:cold]
    followed = [_follow(problem, theta, settings.evaluations) for theta in starts]
    theta, value = min(followed, key=lambda end: end[1])
    return Fit(problem.hyperparameters(theta), -value, problem.evaluations)


class _Spent(Exception):
    """Raised out of L-BFGS-B, which looks at its limit between line searches only."""


def _follow(problem: "_Posterior", start: Array, evaluations: int) -> tuple[Array, float]:
    """The best theta met by L-BFGS-B from one start in at most so many evaluations, and its negative log posterior."""
    best, best_value, calls = start, np.inf, 0

    def function(theta: Array) -> tuple[float, Array]:
        nonlocal best, best_value, calls
        if calls == evaluations:
            raise _Spent
        calls += 1
        value, gradient = problem.negative_with_gradient(theta)
        if value < best_value:
            best, best_value = theta.copy(), value
        return value, gradient

    options = {"maxiter": evaluations, "ftol": 1e-7}
    with contextlib.suppress(_Spent):
        minimize(function, start, jac=True, method="L-BFGS-B", bounds=problem.bounds, options=options)
    return best, best_value


class _Posterior:
    """log p(y | X, theta) + log p(theta) as a function of theta. Counts its calls; else unchanging."""

    def __init__(
        self, XT: Array, y: Array, terms: Terms, settings: FitSettings, known_variance: Array | None = None
    ) -> None:
        self.XT, self.y, self.terms, self.settings, self.known_variance = XT, y, terms, settings, known_variance
        sizes = np.diff(terms.offsets)
        self.P, self.M = int(sizes.sum()), len(sizes)
        self.y_variance = float(np.mean(np.square(y))) or 1.0
        self.log_size = 0.5 * np.log(np.repeat(sizes, sizes)) * settings.dimension_scaled
        self.log_share = np.log(sizes / sizes.sum()) if settings.dimension_scaled else np.zeros(self.M)
        self.evaluations = 0
        # Prior means, precisions and bounds of theta, block by block.
        s, log_variance = settings, np.log(self.y_variance)
        mean = [np.log(s.lengthscale), log_variance]
        sd = [s.lengthscale_sd, s.scale_sd]
        bounds = [np.log(s.lengthscale_bounds), log_variance + np.log(s.variance_bounds)]
        self.fits_noise = s.noise_sd is not None
        if self.fits_noise:
            mean.append(np.log(s.noise) + log_variance)
            sd.append(s.noise_sd)
            bounds.append(log_variance + np.log(s.noise_bounds))
        extra = [s.deviation_sd] * self.P * s.ard + [s.scale_sd or 1.0] * self.M * s.group_scales
        self.head = len(mean)
        self.mean = np.array(mean + [0.0] * len(extra))
        self.precision = np.array([0.0 if value is None else value**-2 for value in sd + extra])
        self.bounds = [tuple(b) for b in bounds] + [(-4.0 * value, 4.0 * value) for value in extra]

    def hyperparameters(self, theta: Array) -> Hyperparameters:
        log_l = theta[0] + self.log_size
        log_s2 = theta[1] + self.log_share
        if self.settings.ard:
            log_l = log_l + theta[self.head : self.head + self.P]
        if self.settings.group_scales:
            log_s2 = log_s2 + theta[len(theta) - self.M :]
        noise = np.exp(theta[2]) if self.fits_noise else self.settings.noise * self.y_variance
        return Hyperparameters(np.exp(log_l), np.exp(0.5 * log_s2), float(noise))

    def theta_of(self, hyperparameters: Hyperparameters) -> Array:
        """The theta nearest to given hyperparameters, inside the bounds."""
        log_l = np.log(hyperparameters.lengthscales) - self.log_size
        log_s2 = 2.0 * np.log(hyperparameters.scales) - self.log_share
        theta = [log_l.mean(), log_s2.mean()] + [np.log(hyperparameters.noise_variance)] * self.fits_noise
        extra = [*(log_l - log_l.mean())] * self.settings.ard + [*(log_s2 - log_s2.mean())] * self.settings.group_scales
        return np.clip(np.array(theta + extra), *np.array(self.bounds).T)

    def cold_starts(self) -> list[Array]:
        """Common lengthscales from short to long, little and more noise: far starts fall into 'all is noise'."""
        starts = []
        for factor, noise_factor in itertools.product((0.3, 1.0, 2.0), (1.0, 30.0) if self.fits_noise else (1.0,)):
            theta = self.mean.copy()
            theta[0] += np.log(factor)
            theta[2 : self.head] += np.log(noise_factor)  # if it is learned
            starts.append(np.clip(theta, *np.array(self.bounds).T))
        return starts

    def _at(self, theta: Array) -> tuple[Terms, float, float]:
        """The kernel, the noise variance and the log prior, for one evaluation of the evidence."""
        self.evaluations += 1
        h = self.hyperparameters(theta)
        terms = self.terms.with_values(h.lengthscales, np.square(h.scales))
        return terms, h.noise_variance, float(-0.5 * (self.precision * np.square(theta - self.mean)).sum())

    def negative(self, theta: Array) -> float:
        terms, noise, log_prior = self._at(theta)
        return -log_evidence(self.XT, self.y, terms, noise, self.known_variance) - log_prior

    def negative_with_gradient(self, theta: Array) -> tuple[float, Array]:
        terms, noise, log_prior = self._at(theta)
        e = evidence_with_gradient(self.XT, self.y, terms, noise, self.known_variance)
        head = [e.by_log_lengthscale.sum(), e.by_log_variance.sum()] + [e.by_log_noise] * self.fits_noise
        extra = [e.by_log_lengthscale] * self.settings.ard + [e.by_log_variance] * self.settings.group_scales
        gradient = np.concatenate([head, *extra]) - self.precision * (theta - self.mean)
        return -e.value - log_prior, -gradient
