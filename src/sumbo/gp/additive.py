"""AdditiveGP: a Gaussian process that is a sum of independent ones, each over a small group of dimensions.

With K = sum_j K_j + noise I + diag(v) = L L^T and alpha = K^-1 y, shared by all groups:

    mu_j(z)      = k_j(z, X) alpha                                         (equation `addPosterior`)
    sigma_j^2(z) = k_j(z, z) - k_j(z, X) K^-1 k_j(X, z)
    mu(x)        = sum_j mu_j(x_j)
    sigma^2(x)   = k(x, x) - k(x, X) K^-1 k(X, x)                           k = sum_j k_j

The components are correlated once they have seen data: sigma^2 is not the sum of the sigma_j^2, and often far smaller.

| symbol | shape    | meaning                                                |
|--------|----------|--------------------------------------------------------|
| X, XT  | (n, D)   | points and their transpose, contiguous                  |
| v      | (n,)     | variances of single values known beside the noise, if any |
| Z      | (m, D)   | points to predict at                                    |
| L_inv  | (n, n)   | inverse of the Cholesky factor                          |
| V      | (.., n)  | k(z, X) L^-T: the part of the prior that the data explain |
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sumbo._typing import Array
from sumbo.errors import DataError, NotFittedError, SettingError
from sumbo.gp import kernels
from sumbo.gp.decomposition import Decomposition
from sumbo.gp.fit import FitSettings, Hyperparameters, evidence_with_gradient, fit_hyperparameters
from sumbo.gp.kernels import Terms
from sumbo.gp.outcome_transforms import OutcomeTransform
from sumbo.gp.sample_paths import SamplePath, draw_prior
from sumbo.gp.solvers import EXACT_LIMIT, FIT_POINTS, Exact, Solver, Sparse
from sumbo.gp.threads import on_one_thread


@dataclass(frozen=True, eq=False)
class AdditiveGP:
    """A sum of zero-mean Gaussian processes over groups of dimensions, plus noise. Immutable.

    `fit` learns hyperparameters, `condition` keeps them, `append` adds one observation in O(n^2); each returns a new
    model. Values should be centred: the prior mean is zero.

    Args:
        decomposition: the groups, which may overlap, or anything `Decomposition` takes.
        kernel: "se", "matern32" or "matern52".
        lengthscales: one for all, or one for each dimension of each group, group after group.
        scales: standard deviation of each component, or one for all.
        noise_variance: variance of the observation noise.
        categories: for each dimension the number of its categories, 0 where it is a number. None: all are numbers.
        full_order: add one more term, over all dimensions, for what the groups cannot express.
        outcome_transform: how the values observed were made from those told; `untransform` undoes it.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.random((50, 3))
        >>> y = np.sin(6 * X[:, 0]) + X[:, 1] * X[:, 2]
        >>> gp = AdditiveGP([(0,), (1, 2)]).fit(X, y - y.mean())
        >>> mean, std = gp.posterior(X[:2])
        >>> part, part_std = gp.group_posterior(0, [[0.5]])

    Raises:
        SettingError: a hyperparameter is not positive and finite, or has the wrong number of elements.
        DecompositionError: a group is empty, comes twice or repeats a dimension, or a dimension is in no group.
    """

    decomposition: Decomposition
    kernel: str = field(default="matern52", kw_only=True)
    lengthscales: Any = field(default=0.5, kw_only=True)
    scales: Any = field(default=1.0, kw_only=True)
    noise_variance: float = field(default=1e-4, kw_only=True)
    categories: Any = field(default=None, kw_only=True)
    full_order: bool = field(default=False, kw_only=True)
    outcome_transform: OutcomeTransform = field(default=OutcomeTransform(np.empty(0)), repr=False, kw_only=True)
    _data: Solver | None = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        put = partial(object.__setattr__, self)
        if not isinstance(self.decomposition, Decomposition):
            put("decomposition", Decomposition(self.decomposition))
        kernels.family_index(self.kernel)
        put("lengthscales", _positive("lengthscales", self.lengthscales, sum(map(len, self.groups))))
        put("scales", _positive("scales", self.scales, len(self.groups)))
        put("noise_variance", float(_positive("noise_variance", self.noise_variance, 1)[0]))
        put("categories", _counts(self.categories, self.decomposition.dim))

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The groups of the decomposition, and behind them all dimensions where there is a full-order term."""
        groups = self.decomposition.groups
        return (*groups, tuple(range(self.decomposition.dim))) if self.full_order else groups

    @property
    def n(self) -> int:
        """Number of observations."""
        return len(self.y)

    @property
    def X(self) -> Array:
        """The points observed, (n, D)."""
        return np.empty((0, self.decomposition.dim)) if self._data is None else _read_only(self._data.points.T)

    @property
    def y(self) -> Array:
        """The values observed, (n,)."""
        return np.empty(0) if self._data is None else _read_only(self._data.y)

    @property
    def known_variance(self) -> Array | None:
        """The variance that each value is known to have beside the noise, (n,); None where all are 0."""
        known = None if self._data is None else self._data.known_variance
        return None if known is None or not known.any() else _read_only(known)

    @property
    def weights(self) -> Array:
        """alpha = K^-1 y: the posterior mean is k(z, X) alpha; one weight per support point past 2000 observations."""
        return _read_only(self._observed().alpha)

    @property
    def jitter(self) -> float:
        """What had to be added to the covariance's diagonal to factorise it; 0 in ordinary times."""
        return 0.0 if self._data is None else self._data.jitter

    @cached_property
    def terms(self) -> Terms:
        """The kernel in the form that compiled loops read."""
        nominal, family = self.categories > 0, kernels.family_index(self.kernel)
        return Terms.build(self.groups, self.lengthscales, np.square(self.scales), nominal=nominal, family=family)

    @property
    def hyperparameters(self) -> Hyperparameters:
        """Lengthscales, scales and noise variance together."""
        return Hyperparameters(self.lengthscales, self.scales, self.noise_variance)

    @on_one_thread
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        settings: FitSettings | None = None,
        warm: bool = False,
        known_variance: ArrayLike | None = None,
    ) -> Self:
        """Learn the hyperparameters by evidence and prior, then condition on the data.

        They are learned from 1000 observations at most, evenly spread over all: more cost much and change them little.

        Args:
            X: points in the unit cube, (n, D).
            y: centred values, (n,).
            settings: what to learn and the priors; `FitSettings()` by default.
            warm: start from the present hyperparameters too.
            known_variance: what each value is known to vary by beside the noise, (n,); the noise is learned on top.
        """
        X, y = self._checked(X, y)
        v = _variances(known_variance, len(y))
        if len(y) == 0:
            return self.condition(X, y)
        some = np.linspace(0, len(y) - 1, min(len(y), FIT_POINTS)).astype(int)
        XT, previous = np.ascontiguousarray(X[some].T), self.hyperparameters if warm else None
        learned = fit_hyperparameters(XT, y[some], self.terms, settings or FitSettings(), previous, v[some])
        return self.with_hyperparameters(learned.hyperparameters).condition(X, y, known_variance=v)

    def with_hyperparameters(self, h: Hyperparameters) -> Self:
        """The same model with other hyperparameters, and no data."""
        return replace(self, lengthscales=h.lengthscales, scales=h.scales, noise_variance=h.noise_variance, _data=None)

    def condition(self, X: ArrayLike, y: ArrayLike, *, known_variance: ArrayLike | None = None) -> Self:
        """The posterior given these data alone, hyperparameters kept: O(n^3), and O(n) past 2000 observations.

        Value i has noise of variance `noise_variance + known_variance[i]`.
        """
        X, y = self._checked(X, y)
        v = _variances(known_variance, len(y))
        if len(y) == 0:
            return replace(self, _data=None)
        kind = Exact if len(y) <= EXACT_LIMIT else Sparse
        return replace(self, _data=kind.condition(self.terms, self.noise_variance, X, y, v))

    def append(self, x: ArrayLike, y: float, *, known_variance: float = 0.0) -> Self:
        """The posterior given one more observation: O(n^2)."""
        X, values = self._checked(_numbers(x)[None], [y])
        v = _variances([known_variance], 1)
        if self._data is None:
            return self.condition(X, values, known_variance=v)
        return replace(self, _data=self._data.append(np.ascontiguousarray(X.T), float(values[0]), float(v[0])))

    def with_values(self, y: ArrayLike) -> Self:
        """The same points with other values, whose known variances are the same: O(n^2)."""
        data, (_, y) = self._observed(), self._checked(self.X, y)
        return replace(self, _data=replace(data, y=y))

    def hallucinate(self, X: ArrayLike) -> Self:
        """Pretend to have seen the predicted mean at points that are still running.

        The mean stays as it is and the uncertainty shrinks near them, in each component too, as if they were seen with
        noise of variance `noise_variance`. All p points at once: O(n^2 p), so that a thousand workers are no trouble.
        """
        points = np.atleast_2d(_numbers(X))
        if points.size == 0:
            return self
        points, nothing = self._checked(points)
        if self._data is None:
            return self.condition(points, nothing)
        return replace(self, _data=self._data.hallucinate(np.array(points.T, order="C")))

    def posterior(self, X: ArrayLike) -> tuple[Array, Array]:
        """Mean and standard deviation of the sum at each row of X."""
        moments = self.moments(self._checked(X)[0])
        return moments.mean, np.sqrt(moments.variance)

    def group_posterior(self, j: int, X_j: ArrayLike) -> tuple[Array, Array]:
        """Mean and standard deviation of component j at points of its own dimensions, (m, d_j)."""
        if not -len(self.groups) <= j < len(self.groups):
            raise SettingError(f"there are {len(self.groups)} groups, numbered from 0; got {j}")
        group = list(self.groups[j])
        Z_j = _numbers(X_j)
        if Z_j.ndim != 2 or Z_j.shape[1] != len(group):
            raise DataError(f"group {j} has {len(group)} dimensions: expected shape (m, {len(group)}), got {Z_j.shape}")
        Z = np.zeros((len(Z_j), self.decomposition.dim))
        Z[:, group] = Z_j
        terms = self.terms.only(j % len(self.groups))
        moments = self._moments(self._checked(Z)[0], terms, kernels.cross, np.full(len(Z), terms.s2[0]))
        return moments.mean, np.sqrt(moments.variance)

    def untransform(self, z: ArrayLike) -> Array:
        """Values as they were told, but for their sign, from those on the model's scale."""
        return self.outcome_transform.untransform(_numbers(z))

    def moments(self, Z: Array) -> "Moments":
        """Mean and variance of the sum at each row, with their gradients on demand."""
        return self._moments(Z, self.terms, kernels.cross, np.full(len(Z), self.terms.s2.sum()))

    def group_moments(self, Z: Array) -> "Moments":
        """Mean and variance of every component at each row: arrays (M, m)."""
        return self._moments(Z, self.terms, kernels.cross_groups, np.repeat(self.terms.s2[:, None], len(Z), axis=1))

    def group_means(self, Z: Array) -> Array:
        """The mean of every component at each row, (M, m): a fraction of the cost of `group_moments`."""
        data = self._observed()
        return kernels.group_means(np.ascontiguousarray(Z.T), data.XT, self.terms, data.alpha)

    def log_marginal_likelihood(self) -> float:
        """log p(y | X) under the present hyperparameters."""
        return self._observed().log_evidence()

    def leave_one_out(self) -> tuple[Array, Array]:
        """Mean and standard deviation of each observation as all the others predict it.

        The deviation is that of the value told: it includes `noise_variance` and the value's own `known_variance`.
        """
        data = self._observed()
        weights, precisions = data.precise_weights()
        return data.y - weights / precisions, 1.0 / np.sqrt(precisions)

    def evidence_gradient(self) -> tuple[Array, Array, float]:
        """Derivatives of the log evidence by log lengthscales (P,), log scales (M,) and log noise variance."""
        data = self._observed()
        e = evidence_with_gradient(data.points, data.y, self.terms, self.noise_variance, data.known_variance)
        return e.by_log_lengthscale, 2.0 * e.by_log_variance, e.by_log_noise

    def sample_path(self, rng: np.random.Generator, *, features: int = 1024) -> SamplePath:
        """One function drawn from the posterior: a sum of functions of the groups, to be called anywhere."""
        groups = [list(group) for group in self.groups]
        lengthscales = np.split(self.lengthscales, self.terms.offsets[1:-1])
        priors = tuple(
            draw_prior(self.kernel, lengthscale, float(scale), self.categories[group], rng, features)
            for group, lengthscale, scale in zip(groups, lengthscales, self.scales, strict=True)
        )
        XT, v = np.empty((self.decomposition.dim, 0)), np.empty(0)
        if self._data is not None:
            at_data = np.sum([g(self.X[:, group]) for g, group in zip(priors, groups, strict=True)], axis=0)
            noise = np.sqrt(self.noise_variance + self._data.known_variance) * rng.standard_normal(self.n)
            XT, v = self._data.XT, replace(self._data, y=self.y - at_data - noise).alpha
        return SamplePath(self.groups, self.terms, priors, XT, v)

    def _moments(self, Z: Array, terms: Terms, cross: Callable[..., Array], prior: Array) -> "Moments":
        if self._data is None:
            return Moments(np.zeros_like(prior), prior)
        data, ZT = self._data, np.ascontiguousarray(Z.T)
        k = cross(ZT, data.XT, terms)
        V = k @ data.L_inv.T
        variance = prior - np.einsum("...q,...q->...", V, V)
        # Rounding can take the variance of a point observed without noise below zero.
        return Moments(k @ data.alpha, np.maximum(variance, 1e-14 * prior), (ZT, V, terms, data))

    def _observed(self) -> Solver:
        if self._data is None:
            raise NotFittedError("the model has no data yet: call fit or condition first")
        return self._data

    def _checked(self, X: ArrayLike, y: ArrayLike | None = None) -> tuple[Array, Array]:
        X, D = _numbers(X), self.decomposition.dim
        y = np.zeros(X.shape[:1]) if y is None else _numbers(y).copy()
        if X.ndim != 2 or X.shape[1] != D:
            raise DataError(f"points must have shape (n, {D}), one row per point; got {X.shape}")
        if y.shape != (len(X),):
            raise DataError(f"values must have shape ({len(X)},), one per point; got {y.shape}")
        if not (np.isfinite(X).all() and np.isfinite(y).all()):
            raise DataError("points and values must be finite; leave out or replace NaN and infinity")
        return X, y


@dataclass(frozen=True)
class Moments:
    """Posterior mean and variance at m points, of the sum (m,) or of every component (M, m)."""

    mean: Array
    variance: Array
    _explained: tuple[Array, Array, Terms, Solver] | None = None  # ZT, V, the kernel and the data

    def gradient(self, by_mean: Array, by_variance: Array) -> Array:
        """Gradient by each point (m, D) of a function with these partial derivatives by mean and variance."""
        if self._explained is None:
            raise NotFittedError("a model with no data is flat: there is no gradient to follow")
        ZT, V, terms, data = self._explained
        # d mean = sum_q alpha_q dk_q and d variance = -2 sum_q (K^-1 k)_q dk_q: one pass over the kernel for both
        A = by_mean[..., None] * data.alpha - 2.0 * by_variance[..., None] * (V @ data.L_inv)
        return kernels.cross_gradient(ZT, data.XT, terms, A)


def _numbers(values: Any) -> Array:
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError(f"points and values must be arrays of numbers: {error}") from None


def _variances(values: Any, n: int) -> Array:
    """Known variances of n values, checked and copied; zeros for None."""
    known = np.zeros(n) if values is None else _numbers(values).copy()
    if known.shape != (n,) or not (np.isfinite(known) & (known >= 0.0)).all():
        raise DataError(f"known_variance must be {n} finite numbers from 0 up, one for each value; got {values!r:.80}")
    return known


def _read_only(array: Any) -> Any:
    view = array.view()
    view.flags.writeable = False
    return view


def _counts(categories: Any, D: int) -> NDArray[np.int64]:
    """The number of categories of each dimension, checked and copied."""
    given = np.zeros(D) if categories is None else _setting(f"categories must be {D} whole numbers", categories)
    if given.shape != (D,):
        raise SettingError(f"categories needs one number for each of {D} dimensions; got {given.shape}")
    if not ((given >= 0) & (given == np.rint(given))).all():
        raise SettingError(f"categories must be whole numbers from 0 up; got {categories!r}")
    return _read_only(given.astype(np.int64))


def _positive(name: str, value: Any, size: int) -> Array:
    array = _setting(f"{name} must be a number or {size} numbers", value)
    array = np.full(size, float(array)) if array.ndim == 0 else array
    if array.shape != (size,):
        raise SettingError(f"{name} must be one number or {size} numbers; got shape {array.shape}")
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise SettingError(f"{name} must be positive and finite; got {value!r}")
    return _read_only(array)


def _setting(wanted: str, value: Any) -> Array:
    try:
        return np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise SettingError(f"{wanted}; got {value!r}") from None
