"""The additive GP against dense formulas and scikit-learn, its invariances, and that nothing changes it."""

import contextlib
import dataclasses

import numpy as np
import oracles
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from sumbo.errors import DataError, DecompositionError, NotFittedError, SettingError
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.decomposition import Decomposition
from sumbo.gp.fit import FitSettings, Hyperparameters

CASES = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "kernel": st.sampled_from(oracles.KERNELS),
        "D": st.integers(1, 6),
        "nominal": st.booleans(),
        "full_order": st.booleans(),
    }
)
EXAMPLE = {"seed": 0, "kernel": "matern52", "D": 5, "nominal": False, "full_order": False}
quick = settings(max_examples=25, deadline=None)
close = {"rtol": 1e-8, "atol": 1e-8}


def model_of(oracle, full_order=False):
    groups = oracle.groups[:-1] if full_order else oracle.groups
    return AdditiveGP(
        groups,
        kernel=oracle.kernel,
        lengthscales=oracle.lengthscales,
        scales=oracle.scales,
        noise_variance=oracle.noise_variance,
        categories=oracle.categories,
        full_order=full_order,
    )


def drawn(case, n=8, m=5):
    """An oracle, the library's model with no data, and data."""
    rng = np.random.default_rng(case["seed"])
    oracle = oracles.random_additive(rng, **{key: value for key, value in case.items() if key != "seed"})
    X, Z = (oracles.random_points(rng, size, oracle.categories) for size in (n, m))
    return oracle, model_of(oracle, case["full_order"]), X, rng.standard_normal(n), Z


def example(n=8, m=5, **changes):
    _, gp, X, y, Z = drawn({**EXAMPLE, **changes}, n, m)
    return gp.condition(X, y), X, y, Z


# --- predictions ----------------------------------------------------------------------------------


@given(CASES)
@quick
def test_posterior_against_the_dense_formula(case):
    oracle, gp, X, y, Z = drawn(case)
    mean, std = gp.condition(X, y).posterior(Z)
    expected_mean, covariance = oracle.posterior(X, y, Z)
    np.testing.assert_allclose(mean, expected_mean, **close)
    np.testing.assert_allclose(np.square(std), covariance.diagonal(), **close)


@given(CASES)
@quick
def test_variance_against_the_double_sum_with_cross_terms(case):
    oracle, gp, X, y, Z = drawn(case)
    _, std = gp.condition(X, y).posterior(Z)
    np.testing.assert_allclose(np.square(std), oracle.posterior_variance_with_cross_terms(X, Z), **close)


@given(CASES)
@quick
def test_group_posterior_against_the_dense_formula(case):
    oracle, gp, X, y, Z = drawn(case)
    gp = gp.condition(X, y)
    assert gp.groups == oracle.groups
    for j, group in enumerate(gp.groups):
        mean, std = gp.group_posterior(j, Z[:, list(group)])
        expected_mean, covariance = oracle.group_posterior(X, y, j, Z)
        np.testing.assert_allclose(mean, expected_mean, **close)
        np.testing.assert_allclose(np.square(std), covariance.diagonal(), **close)


@given(CASES)
@quick
def test_mean_is_the_sum_of_group_means(case):
    _, gp, X, y, Z = drawn(case)
    gp = gp.condition(X, y)
    parts = [gp.group_posterior(j, Z[:, list(group)])[0] for j, group in enumerate(gp.groups)]
    np.testing.assert_allclose(np.sum(parts, axis=0), gp.posterior(Z)[0], **close)


@given(CASES)
@quick
def test_moments_are_the_posteriors(case):
    _, gp, X, y, Z = drawn(case)
    gp = gp.condition(X, y)
    mean, std = gp.posterior(Z)
    moments, parts = gp.moments(Z), gp.group_moments(Z)
    np.testing.assert_allclose(moments.mean, mean, **close)
    np.testing.assert_allclose(np.sqrt(moments.variance), std, **close)
    assert parts.mean.shape == parts.variance.shape == (len(gp.groups), len(Z))
    for j, group in enumerate(gp.groups):
        mean_j, std_j = gp.group_posterior(j, Z[:, list(group)])
        np.testing.assert_allclose(parts.mean[j], mean_j, **close)
        np.testing.assert_allclose(np.sqrt(parts.variance[j]), std_j, **close)


def test_a_negative_group_number_counts_from_the_end():
    gp, _, _, Z = example()
    Z_j = Z[:, list(gp.groups[-1])]
    np.testing.assert_array_equal(gp.group_posterior(-1, Z_j), gp.group_posterior(len(gp.groups) - 1, Z_j))


@given(CASES)
@quick
def test_log_marginal_likelihood_against_the_dense_formula(case):
    oracle, gp, X, y, _ = drawn(case)
    expected = oracle.log_evidence(X, y)
    assert gp.condition(X, y).log_marginal_likelihood() == pytest.approx(expected, rel=1e-8, abs=1e-8)


@given(CASES)
@quick
def test_leaving_one_out_is_conditioning_on_the_others(case):
    _, gp, X, y, _ = drawn(case)
    means, stds = gp.condition(X, y).leave_one_out()
    for i in range(len(y)):
        others = np.delete(np.arange(len(y)), i)
        mean, std = gp.condition(X[others], y[others]).posterior(X[i : i + 1])
        np.testing.assert_allclose(means[i], mean[0], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(stds[i] ** 2, std[0] ** 2 + gp.noise_variance, rtol=1e-6, atol=1e-6)


@given(CASES)
@settings(max_examples=15, deadline=None)
def test_evidence_gradient_is_by_log_lengthscales_log_scales_and_log_noise(case):
    oracle, gp, X, y, _ = drawn(case)
    y = np.linalg.cholesky(oracle.K(X)) @ y
    by_l, by_s, by_noise = gp.condition(X, y).evidence_gradient()
    expected_l = oracles.central_differences(
        lambda logs: oracle.with_logs(log_lengthscales=logs).log_evidence(X, y), np.log(oracle.lengthscales)
    )
    expected_s = oracles.central_differences(
        lambda logs: oracle.with_logs(log_variances=2 * logs).log_evidence(X, y), np.log(oracle.scales)
    )
    expected_noise = oracles.central_differences(
        lambda log: oracle.with_logs(log_noise=log).log_evidence(X, y), np.log(oracle.noise_variance)
    )
    np.testing.assert_allclose(by_l, expected_l, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(by_s, expected_s, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(by_noise, expected_noise, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("ard", [False, True])
@pytest.mark.parametrize(
    ("kernel", "of"),
    [
        ("se", RBF),
        ("matern32", lambda length: Matern(length, nu=1.5)),
        ("matern52", lambda length: Matern(length, nu=2.5)),
    ],
)
def test_one_group_equals_scikit_learn(kernel, of, ard):
    rng = np.random.default_rng(0)
    X, Z, y = rng.random((15, 3)), rng.random((20, 3)), rng.standard_normal(15)
    lengthscales = [0.3, 0.7, 1.5] if ard else 0.6
    gp = AdditiveGP([(0, 1, 2)], kernel=kernel, lengthscales=lengthscales, scales=1.3, noise_variance=1e-2)
    gp = gp.condition(X, y)
    peer = GaussianProcessRegressor(ConstantKernel(1.3**2) * of(lengthscales), alpha=1e-2, optimizer=None)
    expected_mean, expected_std = peer.fit(X, y).predict(Z, return_std=True)
    mean, std = gp.posterior(Z)
    np.testing.assert_allclose(mean, expected_mean, **close)
    np.testing.assert_allclose(std, expected_std, **close)
    assert gp.log_marginal_likelihood() == pytest.approx(peer.log_marginal_likelihood(), rel=1e-9)
    np.testing.assert_allclose(gp.group_posterior(0, Z), (mean, std), **close)


# --- the paper's claim ----------------------------------------------------------------------------


def test_group_variances_can_sum_to_more_than_the_variance_of_the_sum():
    """The paper's `varTermBound` claims sum_j sigma_j^2 <= sigma^2; one observation refutes it.

    There sigma^2 = 2 - 4 / (2 + e), next to nothing, while sigma_j^2 = 1 - 1 / (2 + e), about a half.
    """
    noise = 1e-4
    gp = AdditiveGP([(0,), (1,)], noise_variance=noise).condition([[0.5, 0.5]], [1.0])
    parts, whole = (
        gp.group_moments(np.array([[0.5, 0.5]])).variance,
        gp.moments(np.array([[0.5, 0.5]])).variance,
    )
    np.testing.assert_allclose(parts[:, 0], 1 - 1 / (2 + noise))
    np.testing.assert_allclose(whole, 2 - 4 / (2 + noise))
    assert parts.sum() > 1000 * whole[0]


def test_group_variances_can_sum_to_less_as_well():
    """Nor is the opposite inequality a law: components can be positively correlated between the data."""
    X = [[0.03, 0.83], [0.39, 0.96], [0.48, 0.40], [0.0, 0.49], [0.69, 0.66]]
    gp = AdditiveGP([(0,), (1,)], kernel="se", lengthscales=0.28, noise_variance=1e-3)
    gp, Z = gp.condition(X, np.zeros(5)), np.array([[0.98, 0.11]])
    assert gp.group_moments(Z).variance.sum() < gp.moments(Z).variance[0] - 0.1


def test_group_variances_sum_to_the_variance_before_data():
    _, gp, _, _, Z = drawn(EXAMPLE)
    np.testing.assert_allclose(gp.group_moments(Z).variance.sum(axis=0), gp.moments(Z).variance)


# --- invariances ----------------------------------------------------------------------------------


@given(CASES)
@quick
def test_permuting_dimensions_changes_nothing(case):
    oracle, gp, X, y, Z = drawn(case)
    assume(not case["full_order"])
    order = np.random.default_rng(case["seed"]).permutation(oracle.D)  # new dimension p was dimension order[p]
    place = np.argsort(order)
    permuted = AdditiveGP(
        [[int(place[i]) for i in group] for group in gp.groups],
        kernel=gp.kernel,
        lengthscales=gp.lengthscales,
        scales=gp.scales,
        noise_variance=gp.noise_variance,
        categories=oracle.categories[order],
    ).condition(X[:, order], y)
    gp = gp.condition(X, y)
    np.testing.assert_allclose(permuted.posterior(Z[:, order]), gp.posterior(Z), **close)
    np.testing.assert_allclose(permuted.log_marginal_likelihood(), gp.log_marginal_likelihood(), rtol=1e-8, atol=1e-8)


@given(CASES)
@quick
def test_permuting_groups_and_dimensions_inside_them_changes_nothing(case):
    oracle, gp, X, y, Z = drawn(case)
    assume(not case["full_order"])
    rng = np.random.default_rng(case["seed"])
    order = rng.permutation(len(oracle.groups))
    inside = [rng.permutation(len(oracle.groups[j])) for j in order]
    permuted = AdditiveGP(
        [[oracle.groups[j][p] for p in positions] for j, positions in zip(order, inside, strict=True)],
        kernel=gp.kernel,
        lengthscales=np.concatenate(
            [oracle.group_lengthscales(j)[positions] for j, positions in zip(order, inside, strict=True)]
        ),
        scales=oracle.scales[order],
        noise_variance=gp.noise_variance,
        categories=oracle.categories,
    ).condition(X, y)
    gp = gp.condition(X, y)
    np.testing.assert_allclose(permuted.posterior(Z), gp.posterior(Z), **close)
    np.testing.assert_allclose(permuted.group_moments(Z).mean, gp.group_moments(Z).mean[order], **close)
    np.testing.assert_allclose(permuted.group_moments(Z).variance, gp.group_moments(Z).variance[order], **close)


@given(CASES)
@quick
def test_order_of_the_data_changes_nothing(case):
    _, gp, X, y, Z = drawn(case)
    order = np.random.default_rng(case["seed"]).permutation(len(y))
    np.testing.assert_allclose(gp.condition(X[order], y[order]).posterior(Z), gp.condition(X, y).posterior(Z), **close)


# --- growing --------------------------------------------------------------------------------------


@given(CASES)
@quick
def test_appending_equals_conditioning(case):
    _, gp, X, y, Z = drawn(case)
    grown = gp.condition(X[:2], y[:2])
    for x, value in zip(X[2:], y[2:], strict=True):
        grown = grown.append(x, value)
    whole = gp.condition(X, y)
    assert grown.n == len(y)
    np.testing.assert_array_equal(grown.X, X)
    np.testing.assert_array_equal(grown.y, y)
    np.testing.assert_allclose(grown.posterior(Z), whole.posterior(Z), **close)
    np.testing.assert_allclose(grown.group_moments(Z).variance, whole.group_moments(Z).variance, **close)
    assert grown.log_marginal_likelihood() == pytest.approx(whole.log_marginal_likelihood(), rel=1e-8, abs=1e-8)


def test_appending_to_nothing():
    gp, X, y, Z = example()
    empty = gp.with_hyperparameters(gp.hyperparameters)
    np.testing.assert_allclose(empty.append(X[0], y[0]).posterior(Z), gp.condition(X[:1], y[:1]).posterior(Z), **close)


def test_branches_of_one_model_do_not_disturb_each_other():
    _, gp, X, y, Z = drawn(EXAMPLE, n=8)
    parent = gp.condition(X[:4], y[:4]).append(X[4], y[4])
    before = parent.posterior(Z)
    children = [parent.append(X[i], y[i]) for i in (5, 6, 7)]
    grandchild = children[0].append(X[6], y[6])
    np.testing.assert_array_equal(parent.posterior(Z), before)
    for i, child in zip((5, 6, 7), children, strict=True):
        kept = [0, 1, 2, 3, 4, i]
        np.testing.assert_allclose(child.posterior(Z), gp.condition(X[kept], y[kept]).posterior(Z), **close)
    np.testing.assert_allclose(grandchild.posterior(Z), gp.condition(X[:7], y[:7]).posterior(Z), **close)


@given(CASES)
@quick
def test_with_values_equals_conditioning(case):
    _, gp, X, y, Z = drawn(case)
    other = np.cos(y)
    np.testing.assert_allclose(
        gp.condition(X, y).with_values(other).posterior(Z), gp.condition(X, other).posterior(Z), **close
    )


@given(CASES)
@quick
def test_hallucinating_keeps_the_mean_and_shrinks_the_uncertainty(case):
    oracle, gp, X, y, Z = drawn(case)
    gp = gp.condition(X, y)
    pending = oracles.random_points(np.random.default_rng(case["seed"] + 1), 3, oracle.categories)
    there = gp.hallucinate(pending)
    assert there.n == gp.n + 3
    points = np.vstack([Z, pending])
    for before, after in (
        (gp.moments(points), there.moments(points)),
        (gp.group_moments(points), there.group_moments(points)),
    ):
        np.testing.assert_allclose(after.mean, before.mean, rtol=1e-7, atol=1e-7)
        assert (after.variance <= before.variance + 1e-9).all()
    new, old = there.moments(pending).variance, gp.moments(pending).variance
    assert (new < old).all()
    assert (new <= gp.noise_variance + 1e-9).all()


def test_hallucinating_before_data():
    _, gp, _, _, Z = drawn(EXAMPLE)
    there = gp.hallucinate(Z[:2])
    np.testing.assert_allclose(there.posterior(Z)[0], 0, atol=1e-12)
    assert (there.posterior(Z)[1] <= gp.posterior(Z)[1]).all()


def test_hallucinating_one_point_given_as_a_vector():
    gp, _, _, Z = example()
    np.testing.assert_array_equal(gp.hallucinate(Z[0]).posterior(Z), gp.hallucinate(Z[:1]).posterior(Z))


@pytest.mark.parametrize("nothing", [[], np.empty((0, 5))], ids=["list", "array"])
def test_hallucinating_nothing(nothing):
    gp, _, _, Z = example()
    np.testing.assert_array_equal(gp.hallucinate(nothing).posterior(Z), gp.posterior(Z))


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", oracles.KERNELS)
def test_interpolates_at_tiny_noise(kernel):
    rng = np.random.default_rng(0)
    X = rng.random((10, 3))
    y = np.sin(6 * X[:, 0]) + X[:, 1] * X[:, 2]
    gp = AdditiveGP([(0,), (1, 2)], kernel=kernel, noise_variance=1e-10).condition(X, y)
    mean, std = gp.posterior(X)
    np.testing.assert_allclose(mean, y, atol=1e-4)
    assert (std < 1e-4).all()
    assert (std > 0).all()


@given(CASES)
@quick
def test_prior_before_data(case):
    oracle, gp, _, _, Z = drawn(case)
    mean, std = gp.posterior(Z)
    np.testing.assert_array_equal(mean, 0)
    np.testing.assert_allclose(std, np.sqrt(np.sum(oracle.scales**2)))
    for j, group in enumerate(gp.groups):
        mean, std = gp.group_posterior(j, Z[:, list(group)])
        np.testing.assert_array_equal(mean, 0)
        np.testing.assert_allclose(std, oracle.scales[j])
    assert gp.n == 0
    assert gp.X.shape == (0, oracle.D)
    assert gp.y.shape == (0,)
    assert gp.jitter == 0


def test_conditioning_on_nothing_is_the_prior(capfd):
    _, gp, _, _, Z = drawn(EXAMPLE)
    empty = gp.condition(np.empty((0, 5)), [])
    np.testing.assert_allclose(empty.posterior(Z), gp.posterior(Z))
    np.testing.assert_allclose(empty.group_moments(Z).variance, gp.group_moments(Z).variance)
    np.testing.assert_allclose(gp.fit(np.empty((0, 5)), []).posterior(Z), gp.posterior(Z))
    assert "".join(capfd.readouterr()) == ""  # LAPACK has nothing to complain of


def test_far_from_the_data_the_prior_returns():
    gp = AdditiveGP([(0,), (1,)], kernel="se", lengthscales=0.01).condition([[0.0, 0.0]], [5.0])
    np.testing.assert_allclose(gp.posterior([[1.0, 1.0]]), [[0.0], [np.sqrt(2)]], atol=1e-12)


def test_points_seen_twice_without_noise_need_jitter_and_get_it():
    X = np.repeat(np.linspace(0, 1, 5), 4)[:, None]
    gp = AdditiveGP([(0,)], kernel="se", noise_variance=1e-30).condition(X, np.sin(X[:, 0]))
    assert gp.jitter > 0
    mean, std = gp.posterior(X)
    np.testing.assert_allclose(mean, np.sin(X[:, 0]), atol=1e-3)
    assert np.isfinite(std).all()


def test_no_points_asked_for():
    gp, _, _, _ = example()
    mean, std = gp.posterior(np.empty((0, 5)))
    assert mean.shape == std.shape == (0,)


# --- gradients ------------------------------------------------------------------------------------


@given(CASES)
@settings(max_examples=15, deadline=None)
def test_gradient_of_moments_against_central_differences(case):
    oracle, gp, X, y, Z = drawn(case, m=3)
    gp = gp.condition(X, y)
    by_mean, by_variance = np.random.default_rng(1).standard_normal((2, len(Z)))

    def weighed(Z):
        moments = gp.moments(Z)
        return moments.mean @ by_mean + moments.variance @ by_variance

    gradient = gp.moments(Z).gradient(by_mean, by_variance)
    numbers = oracle.categories == 0
    expected = oracles.central_differences(weighed, Z)[:, numbers]
    np.testing.assert_allclose(gradient[:, numbers], expected, rtol=1e-4, atol=1e-5)
    assert (gradient[:, ~numbers] == 0).all()


@given(CASES)
@settings(max_examples=15, deadline=None)
def test_gradient_of_group_moments_against_central_differences(case):
    oracle, gp, X, y, Z = drawn(case, m=3)
    gp = gp.condition(X, y)
    by_mean, by_variance = np.random.default_rng(1).standard_normal((2, len(gp.groups), len(Z)))

    def weighed(Z):
        moments = gp.group_moments(Z)
        return np.sum(moments.mean * by_mean) + np.sum(moments.variance * by_variance)

    gradient = gp.group_moments(Z).gradient(by_mean, by_variance)
    numbers = oracle.categories == 0
    expected = oracles.central_differences(weighed, Z)[:, numbers]
    np.testing.assert_allclose(gradient[:, numbers], expected, rtol=1e-4, atol=1e-5)
    assert (gradient[:, ~numbers] == 0).all()


def test_there_is_no_gradient_before_data():
    _, gp, _, _, Z = drawn(EXAMPLE)
    with pytest.raises(NotFittedError, match="a model with no data is flat"):
        gp.moments(Z).gradient(np.ones(len(Z)), np.ones(len(Z)))
    with pytest.raises(NotFittedError, match="a model with no data is flat"):
        gp.group_moments(Z).gradient(np.ones((len(gp.groups), len(Z))), np.ones((len(gp.groups), len(Z))))


# --- terms ----------------------------------------------------------------------------------------


def test_full_order_term_is_one_more_group():
    rng = np.random.default_rng(0)
    X, y = rng.random((10, 2)), rng.standard_normal(10)
    gp = AdditiveGP([(1,), (0,)], full_order=True, lengthscales=[0.3, 0.4, 0.5, 0.6], scales=[1, 2, 3])
    assert gp.groups == ((1,), (0,), (0, 1))
    assert gp.decomposition.groups == ((1,), (0,))
    assert gp.condition(X, y).group_posterior(2, X)[0].shape == (10,)
    assert AdditiveGP([(1,), (0,)], full_order=True).lengthscales.shape == (4,)


def test_categories_are_alike_or_not_and_have_no_order():
    X = np.array([[0.5 / 3], [1.5 / 3], [2.5 / 3]])
    gp = AdditiveGP([(0,)], categories=[3], noise_variance=1e-6).condition(X[:1], [1.0])
    mean, std = gp.posterior(X)
    assert mean[0] == pytest.approx(1, abs=1e-5)
    assert mean[1] == mean[2] < mean[0]
    assert std[1] == std[2] > std[0]


def test_hyperparameters_round_trip():
    gp, X, y, Z = example()
    h = Hyperparameters(2 * gp.lengthscales, 3 * gp.scales, 0.5)
    other = gp.with_hyperparameters(h)
    assert other.n == 0
    np.testing.assert_array_equal(other.hyperparameters.lengthscales, h.lengthscales)
    np.testing.assert_array_equal(other.scales, h.scales)
    assert other.noise_variance == 0.5
    np.testing.assert_array_equal(
        other.with_hyperparameters(gp.hyperparameters).condition(X, y).posterior(Z), gp.posterior(Z)
    )


def test_one_number_stands_for_all():
    gp = AdditiveGP([(0, 1), (2,)], lengthscales=0.3, scales=2)
    np.testing.assert_array_equal(gp.lengthscales, [0.3, 0.3, 0.3])
    np.testing.assert_array_equal(gp.scales, [2.0, 2.0])


def test_takes_a_decomposition_or_its_groups():
    assert AdditiveGP([(0,), (1,)]).decomposition == AdditiveGP(Decomposition.apart(2)).decomposition


# --- fitting --------------------------------------------------------------------------------------


def test_fit_raises_the_evidence_and_predicts_held_out_values():
    rng = np.random.default_rng(0)
    X = rng.random((90, 4))
    y = np.sin(6 * X[:, 0]) + 3 * X[:, 1] * X[:, 2]
    y = y - y.mean()
    start = AdditiveGP([(0,), (1, 2), (3,)], lengthscales=0.05, noise_variance=0.5)
    gp = start.fit(X[:60], y[:60])
    assert gp.n == 60
    assert start.n == 0
    assert gp.log_marginal_likelihood() > start.condition(X[:60], y[:60]).log_marginal_likelihood()
    residual = gp.posterior(X[60:])[0] - y[60:]
    assert np.mean(residual**2) < 0.01 * np.var(y)


def test_fit_hands_its_settings_on():
    gp, X, y, _ = example(n=12)
    plain = FitSettings(ard=False, group_scales=False, dimension_scaled=False, noise=0.01, noise_sd=None)
    fitted = gp.fit(X, y, settings=plain)
    assert np.ptp(fitted.lengthscales) == np.ptp(fitted.scales) == 0
    assert fitted.noise_variance == pytest.approx(0.01 * np.mean(y**2))


def test_a_warm_fit_starts_from_the_present_hyperparameters():
    gp, X, y, _ = example(n=20)
    fitted = gp.fit(X, y)
    warm = fitted.fit(X, y, warm=True, settings=FitSettings(starts=0))
    np.testing.assert_allclose(warm.lengthscales, fitted.lengthscales, rtol=0.05)


@pytest.mark.parametrize("y", [np.zeros(6), np.full(6, 3.0), np.array([1.0, -1.0] * 3)])
@pytest.mark.parametrize("X", [np.full((6, 2), 0.5), np.linspace(0, 1, 12).reshape(6, 2)])
def test_fit_of_degenerate_data_predicts_finite_values(X, y):
    mean, std = AdditiveGP([(0,), (1,)]).fit(X, y).posterior(np.random.default_rng(0).random((5, 2)))
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()


# --- immutable ------------------------------------------------------------------------------------


def asarrays(n, D, layout):
    X = np.random.default_rng(0).random((n, D))
    return np.asfortranarray(X) if layout == "F" else X


LAYOUTS = pytest.mark.parametrize(
    ("n", "D", "layout"),
    [(6, 3, "C"), (6, 3, "F"), (1, 3, "C"), (6, 1, "C")],
    ids=["rows", "columns", "one point", "one dimension"],
)
MAKERS = {
    "condition": lambda gp, X, y: gp.condition(X, y),
    "fit": lambda gp, X, y: gp.fit(X, y),
    "with_values": lambda gp, X, y: gp.condition(X.copy(), 0 * y).with_values(y),
    "append": lambda gp, X, y: gp.append(X[0], y[0]),
    "append after": lambda gp, X, y: gp.condition(X.copy(), y.copy()).append(X[0], y[0]),
    "hallucinate": lambda gp, X, y: gp.hallucinate(X),
}


@LAYOUTS
@pytest.mark.parametrize("make", MAKERS)
def test_later_changes_of_the_arguments_do_not_reach_the_model(n, D, layout, make):
    X = asarrays(n, D, layout)
    y = np.sin(X.sum(axis=1))
    X_before, y_before = X.copy(), y.copy()
    gp = MAKERS[make](AdditiveGP(Decomposition.apart(D)), X, y)
    np.testing.assert_array_equal(X, X_before)
    np.testing.assert_array_equal(y, y_before)
    Z = np.full((4, D), 0.3)
    seen, before = gp.X.copy(), gp.posterior(Z)
    X[:] = 0.9
    y[:] = -7.0
    np.testing.assert_array_equal(gp.X, seen)
    np.testing.assert_array_equal(gp.posterior(Z), before)


@pytest.mark.parametrize("name", ["lengthscales", "scales", "categories"])
def test_later_changes_of_settings_do_not_reach_the_model(name):
    given_arrays = {
        "lengthscales": np.array([0.3, 0.4]),
        "scales": np.array([1.0, 2.0]),
        "categories": np.array([0, 2]),
    }
    gp = AdditiveGP([(0,), (1,)], **given_arrays)
    before = np.array(getattr(gp, name))
    given_arrays[name][:] = 3
    np.testing.assert_array_equal(getattr(gp, name), before)


@pytest.mark.parametrize("name", ["X", "y", "lengthscales", "scales", "categories"])
def test_arrays_shown_cannot_be_used_to_change_the_model(name):
    gp, _, _, Z = example(nominal=True, seed=1)
    before = gp.posterior(Z)
    with contextlib.suppress(ValueError):  # read-only
        getattr(gp, name)[...] = 1
    np.testing.assert_array_equal(
        gp.with_hyperparameters(gp.hyperparameters).condition(gp.X, gp.y).posterior(Z), before
    )
    np.testing.assert_array_equal(gp.posterior(Z), before)


def test_predicting_leaves_points_as_they_are():
    gp, _, _, Z = example()
    before = Z.copy()
    gp.posterior(Z)
    gp.group_posterior(0, Z[:, list(gp.groups[0])])
    gp.moments(Z).gradient(np.ones(len(Z)), np.ones(len(Z)))
    gp.hallucinate(Z)
    gp.sample_path(np.random.default_rng(0), features=16)(Z)
    np.testing.assert_array_equal(Z, before)


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(AdditiveGP)])
def test_fields_are_frozen(name):
    gp, _, _, _ = example()
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(gp, name, None)


def test_new_models_leave_the_old_one_as_it_was():
    gp, X, y, Z = example()
    before = gp.posterior(Z), gp.log_marginal_likelihood()
    gp.append(Z[0], 3.0)
    gp.hallucinate(Z)
    gp.with_values(-y)
    gp.fit(X, -y)
    gp.condition(Z, np.ones(len(Z)))
    gp.sample_path(np.random.default_rng(0), features=16)
    np.testing.assert_array_equal(gp.posterior(Z), before[0])
    assert gp.log_marginal_likelihood() == before[1]


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "rbf"}, "kernel must be one of se, matern32, matern52; got 'rbf'"),
        ({"lengthscales": [0.1, 0.2]}, r"lengthscales must be one number or 3 numbers; got shape \(2,\)"),
        ({"lengthscales": [[0.1, 0.2, 0.3]]}, r"lengthscales must be one number or 3 numbers; got shape"),
        ({"lengthscales": 0.0}, "lengthscales must be positive and finite; got 0.0"),
        ({"lengthscales": [0.1, -0.2, 0.3]}, "lengthscales must be positive and finite"),
        ({"lengthscales": np.nan}, "lengthscales must be positive and finite; got nan"),
        ({"lengthscales": "long"}, "lengthscales must be a number or 3 numbers; got 'long'"),
        ({"lengthscales": None}, "lengthscales must be"),
        ({"lengthscales": [[0.1], [0.2, 0.3]]}, "lengthscales must be a number or 3 numbers"),
        ({"scales": [1.0, 1.0, 1.0]}, r"scales must be one number or 2 numbers; got shape \(3,\)"),
        ({"scales": np.inf}, "scales must be positive and finite; got inf"),
        ({"scales": {}}, "scales must be a number or 2 numbers"),
        ({"noise_variance": 0.0}, "noise_variance must be positive and finite; got 0.0"),
        ({"noise_variance": [1.0, 2.0]}, "noise_variance must be one number or 1 numbers"),
        ({"noise_variance": "low"}, "noise_variance must be a number"),
        ({"categories": [0, 2]}, r"categories needs one number for each of 3 dimensions; got \(2,\)"),
        ({"categories": 2}, "categories needs one number for each of 3 dimensions"),
        ({"categories": ["red", "green", "blue"]}, "categories"),
        ({"categories": [0, -2, 0]}, "categories"),
        ({"categories": [0, 2.5, 0]}, "categories"),
        (
            {"full_order": True, "lengthscales": [0.1, 0.2, 0.3]},
            "lengthscales must be one number or 6 numbers",
        ),
        ({"full_order": True, "scales": [1.0, 1.0]}, "scales must be one number or 3 numbers"),
    ],
)
def test_settings_out_of_range(options, message):
    with pytest.raises(SettingError, match=message):
        AdditiveGP([(0, 2), (1,)], **options)


def test_invalid_groups():
    with pytest.raises(DecompositionError, match="given more than once"):
        AdditiveGP([(0,), (0,)])


@pytest.mark.parametrize("method", ["condition", "fit"])
@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[0.1, 0.2]], [1.0], r"points must have shape \(n, 3\), one row per point; got \(1, 2\)"),
        ([0.1, 0.2, 0.3], [1.0], r"points must have shape \(n, 3\)"),
        ([[[0.1, 0.2, 0.3]]], [1.0], r"points must have shape \(n, 3\)"),
        ([[0.1, 0.2, 0.3]], [1.0, 2.0], r"values must have shape \(1,\), one per point; got \(2,\)"),
        ([[0.1, 0.2, 0.3]], [[1.0]], r"values must have shape \(1,\)"),
        ([[0.1, 0.2, 0.3]], 1.0, r"values must have shape \(1,\)"),
        ([[0.1, 0.2, np.nan]], [1.0], "points and values must be finite; leave out or replace"),
        ([[0.1, 0.2, np.inf]], [1.0], "points and values must be finite"),
        ([[0.1, 0.2, 0.3]], [np.nan], "points and values must be finite"),
        ([[0.1, 0.2, 0.3]], [-np.inf], "points and values must be finite"),
        ([["a", "b", "c"]], [1.0], "points and values must be arrays of numbers"),
        ([[0.1, 0.2, 0.3], [0.1]], [1.0, 2.0], "points and values must be arrays of numbers"),
        ([[0.1, 0.2, 0.3]], ["high"], "points and values must be arrays of numbers"),
        ([[0.1, 0.2, 0.3]], [{}], "points and values must be arrays of numbers"),
        (None, [1.0], r"points must have shape|must be arrays of numbers"),
    ],
)
def test_data_of_the_wrong_kind(method, X, y, message):
    with pytest.raises(DataError, match=message):
        getattr(AdditiveGP([(0, 2), (1,)]), method)(X, y)


def test_points_and_values_of_the_wrong_kind_elsewhere():
    gp, X, y, _ = example()
    with pytest.raises(DataError, match=r"points must have shape \(n, 5\), one row per point; got \(1, 2\)"):
        gp.posterior([[0.1, 0.2]])
    with pytest.raises(DataError, match="points and values must be finite"):
        gp.posterior([[np.nan] * 5])
    with pytest.raises(DataError, match=r"points must have shape \(n, 5\), one row per point; got \(\)"):
        gp.posterior(0.5)
    with pytest.raises(DataError, match=r"points must have shape \(n, 5\)"):
        gp.append([0.1, 0.2], 1.0)
    with pytest.raises(DataError, match="points and values must be finite"):
        gp.append(X[0], np.nan)
    with pytest.raises(DataError, match=r"values must have shape \(8,\), one per point; got \(7,\)"):
        gp.with_values(y[:-1])
    with pytest.raises(DataError, match=r"points must have shape \(n, 5\)"):
        gp.hallucinate([[0.1, 0.2]])


def test_group_posterior_of_the_wrong_kind():
    gp = AdditiveGP([(0, 2), (1,)])
    for j in (2, -3):
        with pytest.raises(SettingError, match=f"there are 2 groups, numbered from 0; got {j}"):
            gp.group_posterior(j, [[0.1]])
    message = r"group 0 has 2 dimensions: expected shape \(m, 2\), got \(1, 1\)"
    with pytest.raises(DataError, match=message):
        gp.group_posterior(0, [[0.1]])
    with pytest.raises(DataError, match=r"group 1 has 1 dimensions: expected shape \(m, 1\), got \(1,\)"):
        gp.group_posterior(1, [0.1])
    with pytest.raises(DataError, match="must be finite"):
        gp.group_posterior(1, [[np.nan]])


@pytest.mark.parametrize(
    "ask",
    [
        lambda gp: gp.group_posterior(0, [["a"]]),
        lambda gp: gp.group_posterior(0, [[0.1], [0.1, 0.2]]),
        lambda gp: gp.hallucinate([["a", "b"]]),
    ],
    ids=["group_posterior", "group_posterior ragged", "hallucinate"],
)
def test_what_is_no_number_is_a_data_error_everywhere(ask):
    with pytest.raises(DataError):
        ask(AdditiveGP([(0,), (1,)]))


@pytest.mark.parametrize(
    "ask",
    [
        lambda gp: gp.log_marginal_likelihood(),
        lambda gp: gp.evidence_gradient(),
        lambda gp: gp.with_values([]),
    ],
    ids=["log_marginal_likelihood", "evidence_gradient", "with_values"],
)
def test_what_needs_data_says_so(ask):
    with pytest.raises(NotFittedError, match="the model has no data yet: call fit or condition first"):
        ask(AdditiveGP([(0,)]))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_covariance_that_is_not_finite_is_an_error():
    """1 / lengthscale^2 overflows: zero times infinity must not come out as a prediction."""
    with pytest.raises(DataError, match="NaN or infinite"):
        AdditiveGP([(0,)], lengthscales=1e-160).condition([[0.1], [0.2]], [1.0, 2.0])


def test_group_means_are_those_of_the_components():
    gp, _, _, Z = example()
    np.testing.assert_allclose(gp.group_means(Z), gp.group_moments(Z).mean, atol=1e-10)


@pytest.mark.parametrize("n", [1, 40])
@pytest.mark.parametrize("p", [1, 7])
def test_hallucinating_all_at_once_is_hallucinating_one_by_one(n, p):
    """The oracle: each pending point in turn appended with the mean that is predicted there."""
    rng = np.random.default_rng(n + p)
    X, y, Z, Q = rng.random((n, 4)), rng.standard_normal(n), rng.random((p, 4)), rng.random((30, 4))
    Z[-1] = X[0]  # where it is known already, too
    gp = AdditiveGP([(0, 1), (2,), (3,)], full_order=True, noise_variance=1e-3).condition(X, y)
    one_by_one = gp
    for z in Z:
        one_by_one = one_by_one.append(z, float(one_by_one.posterior([z])[0][0]))
    at_once = gp.hallucinate(Z)
    np.testing.assert_allclose(at_once.posterior(Q), one_by_one.posterior(Q), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(at_once.y, one_by_one.y, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(at_once.posterior(Q)[0], gp.posterior(Q)[0])
    np.testing.assert_array_equal(at_once.X, np.vstack([X, Z]))
    after = at_once.append(Q[0], 0.5).posterior(Q)
    np.testing.assert_allclose(after, one_by_one.append(Q[0], 0.5).posterior(Q), rtol=1e-6, atol=1e-8)
