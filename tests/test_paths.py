"""Sample paths: sums of their groups, exact at the data, and distributed as the posterior."""

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sumbo.errors import DataError, SettingError, SumboError
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.sample_paths import draw_prior

CASES = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "kernel": st.sampled_from(oracles.KERNELS),
        "D": st.integers(1, 6),
        "nominal": st.booleans(),
        "full_order": st.booleans(),
    }
)
DRAWS = 400


def conditioned(case, n=8, m=5):
    rng = np.random.default_rng(case["seed"])
    oracle = oracles.random_additive(rng, **{key: value for key, value in case.items() if key != "seed"})
    X, Z = (oracles.random_points(rng, size, oracle.categories) for size in (n, m))
    gp = AdditiveGP(
        oracle.groups[:-1] if case["full_order"] else oracle.groups,
        kernel=oracle.kernel,
        lengthscales=oracle.lengthscales,
        scales=oracle.scales,
        noise_variance=oracle.noise_variance,
        categories=oracle.categories,
        full_order=case["full_order"],
    )
    return gp.condition(X, rng.standard_normal(n)) if n else gp, Z


@given(CASES, st.sampled_from([0, 1, 8]))
@settings(max_examples=25, deadline=None)
def test_a_path_is_the_sum_of_its_groups(case, n):
    gp, Z = conditioned(case, n)
    path = gp.sample_path(np.random.default_rng(1), features=32)
    assert path.groups == gp.groups
    parts = [path.group(j, Z[:, list(group)]) for j, group in enumerate(gp.groups)]
    np.testing.assert_allclose(path(Z), np.sum(parts, axis=0), rtol=1e-12, atol=1e-12)


@given(CASES)
@settings(max_examples=15, deadline=None)
def test_a_group_of_a_path_depends_on_its_own_dimensions_only(case):
    gp, Z = conditioned(case)
    path = gp.sample_path(np.random.default_rng(1), features=32)
    for j, group in enumerate(gp.groups):
        mixed = np.tile(Z[:1], (len(Z), 1))
        mixed[:, list(group)] = Z[:, list(group)]
        others = path(mixed) - path.group(j, Z[:, list(group)])
        if not gp.full_order:
            np.testing.assert_allclose(others, others[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", oracles.KERNELS)
def test_a_path_interpolates_at_tiny_noise(kernel):
    rng = np.random.default_rng(0)
    categories = [0, 0, 3]
    X = oracles.random_points(rng, 12, categories)
    y = rng.standard_normal(12)
    gp = AdditiveGP([(0,), (1, 2)], kernel=kernel, lengthscales=0.3, noise_variance=1e-8, categories=categories)
    for seed in range(3):
        path = gp.condition(X, y).sample_path(np.random.default_rng(seed), features=256)
        np.testing.assert_allclose(path(X), y, atol=2e-3)


def test_the_same_seed_gives_the_same_path_and_another_another():
    gp, Z = conditioned({"seed": 0, "kernel": "matern52", "D": 4, "nominal": True, "full_order": True})
    one, same, other = (gp.sample_path(np.random.default_rng(seed), features=32)(Z) for seed in (7, 7, 8))
    np.testing.assert_array_equal(one, same)
    assert (np.abs(one - other) > 1e-6).all()


def test_a_group_that_is_not_there():
    path = AdditiveGP([(0,), (1,)]).sample_path(np.random.default_rng(0), features=8)
    with pytest.raises(SettingError, match="there are 2 groups, numbered from 0; got 2"):
        path.group(2, np.zeros((1, 1)))


def test_a_path_is_a_function():
    """Asked twice, or point by point, it answers alike."""
    gp, Z = conditioned({"seed": 0, "kernel": "matern52", "D": 4, "nominal": True, "full_order": False})
    path = gp.sample_path(np.random.default_rng(0), features=32)
    np.testing.assert_array_equal(path(Z), path(Z))
    np.testing.assert_allclose(np.concatenate([path(z[None, :]) for z in Z]), path(Z), rtol=1e-10, atol=1e-10)


def within_standard_errors(draws, mean, covariance, errors=5.0):
    """Sample mean and covariance of draws (draws, m) where the law of large numbers wants them."""
    variance = covariance.diagonal()
    mean_error = np.sqrt(variance / len(draws))
    assert (np.abs(draws.mean(axis=0) - mean) < errors * mean_error).all()
    # Var of a sample covariance of normals: (c_ii c_jj + c_ij^2) / n; features make tails a bit heavier.
    covariance_error = np.sqrt((np.outer(variance, variance) + covariance**2) / len(draws))
    assert (np.abs(np.cov(draws.T) - covariance) < errors * covariance_error).all()


SETTINGS = [
    ("se", [0, 0, 0], False),
    ("matern32", [0, 0, 0], False),
    ("matern52", [0, 0, 0], True),
    ("se", [0, 3, 2], False),
    ("matern32", [3, 2, 0], False),
    ("matern52", [0, 3, 4], True),
]


@pytest.mark.parametrize(("kernel", "categories", "full_order"), SETTINGS)
def test_draws_have_the_mean_and_covariance_of_the_posterior(kernel, categories, full_order):
    rng = np.random.default_rng(0)
    groups = ((0,), (1, 2), (0, 1, 2)) if full_order else ((0,), (1, 2))
    P, M = sum(map(len, groups)), len(groups)
    oracle = oracles.Additive(kernel, groups, np.full(P, 0.7), np.ones(M), np.array(categories), 0.05)
    X, Z = (oracles.random_points(rng, size, categories) for size in (6, 4))
    y = rng.standard_normal(6)
    gp = AdditiveGP(
        groups[:2],
        kernel=kernel,
        lengthscales=0.7,
        scales=1.0,
        noise_variance=0.05,
        categories=categories,
        full_order=full_order,
    ).condition(X, y)
    paths = [gp.sample_path(rng, features=2048) for _ in range(DRAWS)]
    points = np.vstack([Z, X[:2]])  # beside the data and on them
    within_standard_errors(np.array([path(points) for path in paths]), *oracle.posterior(X, y, points))
    for j, group in enumerate(groups):
        draws = np.array([path.group(j, Z[:, list(group)]) for path in paths])
        within_standard_errors(draws, *oracle.group_posterior(X, y, j, Z))


@pytest.mark.parametrize(("kernel", "categories", "full_order"), SETTINGS)
def test_draws_of_the_prior_before_data(kernel, categories, full_order):
    rng = np.random.default_rng(1)
    groups = ((0,), (1, 2), (0, 1, 2)) if full_order else ((0,), (1, 2))
    scales = np.array([1.0, 2.0, 0.5])[: len(groups)]
    P = sum(map(len, groups))
    oracle = oracles.Additive(kernel, groups, np.full(P, 0.7), scales, np.array(categories), 0.05)
    Z = oracles.random_points(rng, 4, categories)
    gp = AdditiveGP(
        groups[:2],
        kernel=kernel,
        lengthscales=0.7,
        scales=scales,
        categories=categories,
        full_order=full_order,
    )
    draws = np.array([gp.sample_path(rng, features=512)(Z) for _ in range(DRAWS)])
    within_standard_errors(draws, np.zeros(4), oracle.k(Z, Z))


@pytest.mark.parametrize("kernel", oracles.KERNELS)
@pytest.mark.parametrize("categories", [[0, 0], [0, 3], [2, 3]])
def test_features_of_one_draw_have_the_kernel_as_their_mean(kernel, categories):
    """mean_f cos(angle_f(z) - angle_f(z')) is phi up to 1 / sqrt(2 F): that tells the kernels apart."""
    rng = np.random.default_rng(0)
    F = 100_000
    draw = draw_prior(kernel, np.array([0.5, 0.8]), 1.0, np.array(categories), rng, F)
    oracle = oracles.Additive(kernel, ((0, 1),), np.array([0.5, 0.8]), np.ones(1), np.array(categories), 1e-4)
    Z = oracles.random_points(rng, 8, categories)
    angles = Z @ draw.omega
    for position, table in draw.tables.items():
        angles = angles + table[np.floor(Z[:, position] * categories[position]).astype(int)]
    estimate = [[np.cos(a - b).mean() for b in angles] for a in angles]
    np.testing.assert_allclose(estimate, oracle.k(Z, Z), rtol=0, atol=5 / np.sqrt(2 * F))


def test_few_features_are_unbiased_too():
    """Features are drawn anew for each path, so the covariance over paths is exact however few there are."""
    gp = AdditiveGP([(0,)], lengthscales=0.4)
    oracle = oracles.Additive("matern52", ((0,),), np.array([0.4]), np.ones(1), np.zeros(1, int), 1e-4)
    Z, rng = np.array([[0.1], [0.4], [0.9]]), np.random.default_rng(0)
    draws = np.array([gp.sample_path(rng, features=64)(Z) for _ in range(2000)])
    within_standard_errors(draws, np.zeros(3), oracle.k(Z, Z))


def test_components_of_a_draw_are_correlated_as_the_posterior_wants():
    """After an observation of the sum, its two components are nearly each other's complement."""
    gp = AdditiveGP([(0,), (1,)], noise_variance=1e-4).condition([[0.5, 0.5]], [1.0])
    rng = np.random.default_rng(0)
    paths = [gp.sample_path(rng, features=256) for _ in range(200)]
    parts = np.array([[path.group(j, [[0.5]])[0] for j in range(2)] for path in paths])
    assert np.corrcoef(parts.T)[0, 1] < -0.99
    assert (parts.std(axis=0) > 0.5).all()


def test_negative_group_numbers_count_from_the_end_or_are_refused():
    """`AdditiveGP.group_posterior` takes them; a wrong value in unavailable_reason is the one thing not allowed."""
    gp, Z = conditioned({"seed": 0, "kernel": "matern52", "D": 4, "nominal": False, "full_order": False})
    path = gp.sample_path(np.random.default_rng(0), features=32)
    Z_j = Z[:, list(gp.groups[-1])]
    try:
        last = path.group(-1, Z_j)
    except SumboError:
        return
    np.testing.assert_array_equal(last, path.group(len(gp.groups) - 1, Z_j))


def test_points_of_the_wrong_shape():
    path = AdditiveGP([(0, 2), (1,)]).sample_path(np.random.default_rng(0), features=8)
    with pytest.raises(DataError, match=r"expected points of shape \(m, 3\); got \(2, 2\)"):
        path([[0.1, 0.2], [0.3, 0.4]])
    with pytest.raises(DataError, match=r"expected points of shape \(m, 2\); got \(1, 1\)"):
        path.group(0, [[0.1]])
    with pytest.raises(DataError, match=r"expected points of shape \(m, 1\); got \(1,\)"):
        path.group(1, [0.1])


def test_later_data_do_not_change_a_path():
    gp, Z = conditioned({"seed": 0, "kernel": "matern52", "D": 4, "nominal": False, "full_order": False})
    path = gp.sample_path(np.random.default_rng(0), features=32)
    before = path(Z)
    gp.append(Z[0], 9.0)
    gp.with_values(np.zeros(gp.n))
    np.testing.assert_array_equal(path(Z), before)


def test_points_are_left_as_they_are():
    gp, Z = conditioned({"seed": 0, "kernel": "matern52", "D": 4, "nominal": True, "full_order": False})
    before = Z.copy()
    gp.sample_path(np.random.default_rng(0), features=32)(Z)
    np.testing.assert_array_equal(Z, before)


@given(CASES, st.sampled_from([0, 8]))
@settings(max_examples=25, deadline=None)
def test_parts_and_gradient_of_a_path(case, n):
    gp, Z = conditioned(case, n)
    path = gp.sample_path(np.random.default_rng(1), features=32)
    parts = [path.group(j, Z[:, list(group)]) for j, group in enumerate(gp.groups)]
    np.testing.assert_allclose(path.parts(Z), parts, rtol=1e-10, atol=1e-12)
    values, gradient = path.with_gradient(Z)
    np.testing.assert_allclose(values, path(Z), rtol=1e-10, atol=1e-12)
    numeric = np.zeros_like(Z)
    h = 1e-6
    for i in np.flatnonzero(gp.categories == 0):
        step = h * np.eye(Z.shape[1])[i]
        numeric[:, i] = (path(Z + step) - path(Z - step)) / (2 * h)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-5)


@given(CASES)
@settings(max_examples=15, deadline=None)
def test_turning_the_angles_is_moving_the_point(case):
    gp, Z = conditioned(case)
    prior = gp.sample_path(np.random.default_rng(1), features=16).priors[0]
    old, new = Z[:-1, gp.groups[0]], Z[1:, gp.groups[0]]
    angle = prior.angle(old) + sum(prior.turn(p, old[:, p], new[:, p]) for p in range(old.shape[1]))
    np.testing.assert_allclose(prior.at_angle(angle), prior(new), rtol=1e-9, atol=1e-9)
