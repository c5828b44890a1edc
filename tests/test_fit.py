"""Fitting: the objective against a naive log posterior, its gradient, and what the optimum should be."""

import itertools
import math
from dataclasses import replace

import numpy as np
import oracles
import pytest

from sumbo.gp import fit as fit_module
from sumbo.gp import kernels
from sumbo.gp.fit import FitSettings, Hyperparameters, fit_hyperparameters
from sumbo.gp.kernels import Terms

GROUPS = ((0, 2, 3), (1,), (4, 5))
CATEGORIES = np.array([0, 0, 3, 0, 0, 2])
COMBINATIONS = [
    FitSettings(ard=ard, group_scales=group_scales, dimension_scaled=dimension_scaled, noise_sd=noise_sd)
    for ard, group_scales, dimension_scaled in itertools.product([True, False], repeat=3)
    for noise_sd in (2.0, None)
]
FLAT = FitSettings(lengthscale_sd=None, scale_sd=None)


def name(settings):
    on = [key for key in ("ard", "group_scales", "dimension_scaled") if getattr(settings, key)]
    return "-".join([*on, "noise" if settings.noise_sd else "fixed"])


def data(n=12, seed=0):
    rng = np.random.default_rng(seed)
    X = oracles.random_points(rng, n, CATEGORIES)
    y = 3 * np.sin(5 * X[:, 0]) + X[:, 2] + X[:, 1] ** 2 + 0.1 * rng.standard_normal(n)
    return X, y - y.mean()


def posterior(settings, kernel="matern52", X=None, y=None, groups=GROUPS, categories=CATEGORIES):
    if X is None:
        X, y = data()
    return fit_module._Posterior(np.ascontiguousarray(X.T), y, terms(groups, categories, kernel), settings)


def terms(groups, categories, kernel="matern52"):
    family, sizes = kernels.family_index(kernel), [*map(len, groups)]
    return Terms.build(groups, np.ones(sum(sizes)), np.ones(len(sizes)), nominal=categories > 0, family=family)


def fitted(X, y, groups, settings=FitSettings(), *, categories=None, kernel="matern52", previous=None):  # noqa: B008
    categories = np.zeros(X.shape[1], int) if categories is None else categories
    return fit_hyperparameters(np.ascontiguousarray(X.T), y, terms(groups, categories, kernel), settings, previous)


def random_theta(problem, seed=1):
    """Near the prior's mean, every element moved."""
    return problem.mean + 0.2 * np.random.default_rng(seed).standard_normal(len(problem.mean))


# --- the objective --------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", oracles.KERNELS)
@pytest.mark.parametrize("settings", [*COMBINATIONS, FLAT], ids=[*map(name, COMBINATIONS), "flat"])
def test_gradient_against_central_differences(settings, kernel):
    problem = posterior(settings, kernel)
    theta = random_theta(problem)
    value, gradient = problem.negative_with_gradient(theta)
    assert value == pytest.approx(problem.negative(theta), rel=1e-12)
    expected = oracles.central_differences(problem.negative, theta)
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6)


def naive_log_prior(settings, theta, y_variance):
    """Normal log densities without their constants, theta read by the table at the head of fit.py."""
    P, M = sum(map(len, GROUPS)), len(GROUPS)
    theta = list(theta)
    total = 0.0

    def add(value, mean, sd):
        nonlocal total
        total -= 0.0 if sd is None else 0.5 * ((value - mean) / sd) ** 2

    add(theta.pop(0), math.log(settings.lengthscale), settings.lengthscale_sd)
    add(theta.pop(0), math.log(y_variance), settings.scale_sd)
    if settings.noise_sd is not None:
        add(theta.pop(0), math.log(settings.noise * y_variance), settings.noise_sd)
    if settings.ard:
        for _ in range(P):
            add(theta.pop(0), 0.0, settings.deviation_sd)
    if settings.group_scales:
        for _ in range(M):
            add(theta.pop(0), 0.0, settings.scale_sd or 1.0)
    assert theta == []
    return total


@pytest.mark.parametrize("settings", [*COMBINATIONS, FLAT], ids=[*map(name, COMBINATIONS), "flat"])
def test_value_against_a_naive_log_posterior(settings):
    X, y = data()
    problem = posterior(settings)
    theta = random_theta(problem)
    h = problem.hyperparameters(theta)
    model = oracles.Additive("matern52", GROUPS, h.lengthscales, h.scales, CATEGORIES, h.noise_variance)
    expected = model.log_evidence(X, y) + naive_log_prior(settings, theta, np.mean(y**2))
    assert -problem.negative(theta) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("settings", COMBINATIONS, ids=name)
def test_hyperparameters_at_the_prior_mean(settings):
    _, y = data()
    y_variance = np.mean(y**2)
    problem = posterior(settings)
    h = problem.hyperparameters(problem.mean)
    sizes = np.array([3, 1, 2])
    growth = np.sqrt(np.repeat(sizes, sizes)) if settings.dimension_scaled else np.ones(6)
    np.testing.assert_allclose(h.lengthscales, 0.5 * growth)
    share = sizes / 6 if settings.dimension_scaled else np.ones(3)
    np.testing.assert_allclose(np.square(h.scales), y_variance * share)
    assert h.noise_variance == pytest.approx(1e-4 * y_variance)


@pytest.mark.parametrize("settings", COMBINATIONS, ids=name)
def test_theta_of_inverts_hyperparameters(settings):
    problem = posterior(settings)
    for seed in range(5):
        h = problem.hyperparameters(random_theta(problem, seed))
        theta = problem.theta_of(h)
        back = problem.hyperparameters(theta)
        np.testing.assert_allclose(back.lengthscales, h.lengthscales, rtol=1e-10)
        np.testing.assert_allclose(back.scales, h.scales, rtol=1e-10)
        assert back.noise_variance == pytest.approx(h.noise_variance, rel=1e-10)
        np.testing.assert_allclose(problem.theta_of(back), theta, atol=1e-10)


@pytest.mark.parametrize("settings", COMBINATIONS, ids=name)
def test_starts_are_inside_the_bounds(settings):
    problem = posterior(settings)
    low, high = np.array(problem.bounds).T
    far = Hyperparameters(np.array([1e-9, 1e9, 1, 1, 1, 1e-9]), np.array([1e-9, 1.0, 1e9]), 1e9)
    starts = [*problem.cold_starts(), problem.theta_of(far)]
    assert len(starts) > 3
    for theta in starts:
        assert ((low <= theta) & (theta <= high)).all()


# --- the optimum ----------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", COMBINATIONS, ids=name)
def test_the_fit_is_no_worse_than_its_starts(settings):
    X, y = data(30)
    previous = Hyperparameters(np.full(6, 0.8), np.full(3, 1.1), 1e-2)
    fit = fitted(X, y, GROUPS, settings, categories=CATEGORIES, previous=previous)
    problem = posterior(settings, X=X, y=y)
    at_starts = [-problem.negative(theta) for theta in [*problem.cold_starts(), problem.theta_of(previous)]]
    assert fit.log_posterior >= max(at_starts)


@pytest.mark.parametrize("settings", COMBINATIONS, ids=name)
def test_the_log_posterior_reported_is_that_of_the_hyperparameters(settings):
    X, y = data(20)
    fit = fitted(X, y, GROUPS, settings, categories=CATEGORIES)
    problem = posterior(settings, X=X, y=y)
    h = fit.hyperparameters
    model = oracles.Additive("matern52", GROUPS, h.lengthscales, h.scales, CATEGORIES, h.noise_variance)
    # theta_of centres the deviations, which the fit need not: the prior there is at most that at the fit.
    log_prior = naive_log_prior(settings, problem.theta_of(h), np.mean(y**2))
    evidence = model.log_evidence(X, y)
    assert fit.log_posterior <= evidence + 1e-8
    assert fit.log_posterior >= evidence + log_prior - 0.5


@pytest.mark.parametrize("kernel", oracles.KERNELS)
@pytest.mark.parametrize("lengthscale", [0.1, 0.3])
def test_recovers_the_lengthscale_of_a_known_process(kernel, lengthscale):
    rng = np.random.default_rng(3)
    X = rng.random((80, 1))
    truth = oracles.Additive(kernel, ((0,),), np.array([lengthscale]), np.ones(1), np.zeros(1, int), 1e-3)
    y = np.linalg.cholesky(truth.K(X)) @ rng.standard_normal(len(X))
    h = fitted(X, y, ((0,),), kernel=kernel).hyperparameters
    assert lengthscale / 2 < h.lengthscales[0] < 2 * lengthscale
    assert 1e-4 < h.noise_variance < 1e-2


def test_recovers_which_dimension_matters():
    rng = np.random.default_rng(0)
    X = rng.random((60, 3))
    y = np.sin(8 * X[:, 1])
    h = fitted(X, y - y.mean(), ((0,), (1,), (2,))).hyperparameters
    assert h.scales.argmax() == 1
    h = fitted(X, y - y.mean(), ((0, 1, 2),)).hyperparameters
    assert h.lengthscales.argmin() == 1


def test_recovers_noise():
    rng = np.random.default_rng(0)
    X = rng.random((150, 1))
    y = np.sin(6 * X[:, 0]) + 0.3 * rng.standard_normal(150)
    h = fitted(X, y - y.mean(), ((0,),)).hyperparameters
    assert 0.2 < math.sqrt(h.noise_variance) < 0.4


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_values_in_other_units_scale_the_fit_and_nothing_else(factor):
    X, y = data(25)
    one, other = (fitted(X, c * y, GROUPS, categories=CATEGORIES).hyperparameters for c in (1.0, factor))
    np.testing.assert_allclose(other.lengthscales, one.lengthscales, rtol=1e-3)
    np.testing.assert_allclose(other.scales, factor * one.scales, rtol=1e-3)
    assert other.noise_variance == pytest.approx(factor**2 * one.noise_variance, rel=1e-2)


def test_shared_settings_give_shared_hyperparameters():
    X, y = data(25)
    plain = FitSettings(ard=False, group_scales=False, dimension_scaled=False, noise_sd=None, noise=1e-3)
    h = fitted(X, y, GROUPS, plain, categories=CATEGORIES).hyperparameters
    assert np.ptp(h.lengthscales) == 0
    assert np.ptp(h.scales) == 0
    assert h.noise_variance == pytest.approx(1e-3 * np.mean(y**2))
    grown = fitted(X, y, GROUPS, replace(plain, dimension_scaled=True), categories=CATEGORIES).hyperparameters
    per_root = grown.lengthscales / np.sqrt([3, 3, 3, 1, 2, 2])
    assert np.ptp(per_root) < 1e-12


def test_the_same_data_give_the_same_fit():
    X, y = data(20)
    one, other = (fitted(X, y, GROUPS, categories=CATEGORIES) for _ in range(2))
    assert one.log_posterior == other.log_posterior
    np.testing.assert_array_equal(one.hyperparameters.lengthscales, other.hyperparameters.lengthscales)


@pytest.mark.parametrize("kernel", oracles.KERNELS)
@pytest.mark.parametrize("settings", [FitSettings(), FLAT, COMBINATIONS[-1]], ids=["default", "flat", "plain"])
@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.random.default_rng(0).random((10, 3)), np.zeros(10)),
        (np.random.default_rng(0).random((10, 3)), np.full(10, 7.0)),
        (np.array([[0.1, 0.2, 0.3]]), np.array([0.0])),
        (np.array([[0.1, 0.2, 0.3]]), np.array([-2.0])),
        (np.full((12, 3), 0.5), np.zeros(12)),
        (np.full((12, 3), 0.5), np.linspace(-1, 1, 12)),
        (np.repeat(np.random.default_rng(0).random((5, 3)), 2, axis=0), np.tile([1.0, -1.0], 5)),
        (np.random.default_rng(0).random((10, 3)), 1e-12 * np.arange(10) - 4.5e-12),
        (np.random.default_rng(0).random((10, 3)), 1e12 * np.arange(10) - 4.5e12),
    ],
    ids=["zero", "constant", "one-zero", "one", "same", "same-noisy", "contradicting", "tiny", "huge"],
)
def test_degenerate_data_give_positive_finite_hyperparameters(X, y, settings, kernel):
    fit = fitted(X, y, ((0, 2), (1,)), settings, kernel=kernel)
    h = fit.hyperparameters
    for values in (h.lengthscales, h.scales, [h.noise_variance]):
        assert np.isfinite(values).all()
        assert (np.asarray(values) > 0).all()
    assert np.isfinite(fit.log_posterior)


def evaluations_beside_choosing_starts(settings):
    X, y = data(25)
    fit = fitted(X, y, GROUPS, settings, categories=CATEGORIES)
    return fit.evaluations - len(posterior(settings).cold_starts())


@pytest.mark.parametrize(("limit", "starts"), [(3, 1), (25, 3)])
def test_evaluations_are_limited(limit, starts):
    assert evaluations_beside_choosing_starts(FitSettings(starts=starts, evaluations=limit)) <= starts * limit


@pytest.mark.parametrize(("limit", "starts"), [(3, 1), (25, 3)])
def test_evaluations_exceed_their_limit_by_a_line_search_at_most(limit, starts):
    """SciPy looks at its limit between line searches only, each of at most 20 steps."""
    used = evaluations_beside_choosing_starts(FitSettings(starts=starts, evaluations=limit))
    assert starts <= used <= starts * (limit + 20)


def test_evaluations_are_counted(monkeypatch):
    calls = []
    for function in ("log_evidence", "evidence_with_gradient"):
        real = getattr(fit_module, function)
        monkeypatch.setattr(fit_module, function, lambda *args, real=real: calls.append(1) or real(*args))
    X, y = data()
    fit = fitted(X, y, GROUPS, categories=CATEGORIES)
    assert fit.evaluations == len(calls)


def test_more_starts_are_never_worse():
    X, y = data(30)
    reached = [
        fitted(X, y, GROUPS, FitSettings(starts=starts), categories=CATEGORIES).log_posterior for starts in (1, 2, 3, 6)
    ]
    assert (np.diff(reached) >= 0).all()


def test_the_previous_optimum_is_one_of_the_starts():
    """Too few evaluations to find it again: it must have been given."""
    X, y = data(30)
    long = fitted(X, y, GROUPS, categories=CATEGORIES)
    brief = FitSettings(starts=1, evaluations=1)
    warm = fitted(X, y, GROUPS, brief, categories=CATEGORIES, previous=long.hyperparameters)
    cold = fitted(X, y, GROUPS, brief, categories=CATEGORIES)
    # Not exactly: theta_of centres the deviations, where the optimum leaves a little in their mean.
    assert warm.log_posterior > long.log_posterior - 0.1 > cold.log_posterior


def test_the_previous_optimum_alone_is_enough():
    X, y = data(20)
    first = fitted(X, y, GROUPS, categories=CATEGORIES)
    again = fitted(X, y, GROUPS, FitSettings(starts=0), categories=CATEGORIES, previous=first.hyperparameters)
    assert again.log_posterior >= first.log_posterior - 1e-3
    assert again.evaluations < first.evaluations


def test_data_are_left_as_they_are():
    X, y = data(15)
    XT = np.ascontiguousarray(X.T)
    before = XT.copy(), y.copy()
    fit_hyperparameters(XT, y, terms(GROUPS, CATEGORIES), FitSettings())
    np.testing.assert_array_equal(XT, before[0])
    np.testing.assert_array_equal(y, before[1])
