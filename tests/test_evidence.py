"""The evidence against dense formula and SciPy's normal density; its gradient against central differences."""

from dataclasses import replace

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from sumbo.gp import kernels
from sumbo.gp.fit import evidence_with_gradient, log_evidence
from sumbo.gp.kernels import Terms

CASES = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "kernel": st.sampled_from(oracles.KERNELS),
        "D": st.integers(1, 6),
        "overlapping": st.booleans(),
        "nominal": st.booleans(),
        "noise_variance": st.sampled_from([1e-3, 1e-2, 0.5]),
    }
)
quick = settings(max_examples=25, deadline=None)


def drawn(case, n=8):
    rng = np.random.default_rng(case["seed"])
    oracle = oracles.random_additive(rng, **{key: value for key, value in case.items() if key != "seed"})
    X = oracles.random_points(rng, n, oracle.categories)
    # Drawn from the model itself: wild values would make the differences below subtract large numbers.
    return oracle, X, np.linalg.cholesky(oracle.K(X)) @ rng.standard_normal(n)


def arguments(oracle, X, y):
    terms = Terms.build(
        oracle.groups,
        oracle.lengthscales,
        np.square(oracle.scales),
        nominal=oracle.categories > 0,
        family=kernels.family_index(oracle.kernel),
    )
    return np.ascontiguousarray(X.T), y, terms, oracle.noise_variance


@given(CASES)
@quick
def test_value_against_the_dense_formula(case):
    oracle, X, y = drawn(case)
    expected = oracle.log_evidence(X, y)
    assert log_evidence(*arguments(oracle, X, y)) == pytest.approx(expected, rel=1e-8, abs=1e-8)
    assert evidence_with_gradient(*arguments(oracle, X, y)).value == pytest.approx(expected, rel=1e-8, abs=1e-8)


@given(CASES)
@quick
def test_value_against_scipy(case):
    oracle, X, y = drawn(case)
    expected = multivariate_normal(np.zeros(len(y)), oracle.K(X)).logpdf(y)
    assert log_evidence(*arguments(oracle, X, y)) == pytest.approx(expected, rel=1e-8, abs=1e-8)


@given(CASES)
@quick
def test_gradient_against_central_differences_of_the_dense_formula(case):
    oracle, X, y = drawn(case)
    e = evidence_with_gradient(*arguments(oracle, X, y))
    by_l = oracles.central_differences(
        lambda logs: oracle.with_logs(log_lengthscales=logs).log_evidence(X, y), np.log(oracle.lengthscales)
    )
    by_s2 = oracles.central_differences(
        lambda logs: oracle.with_logs(log_variances=logs).log_evidence(X, y), 2 * np.log(oracle.scales)
    )
    by_noise = oracles.central_differences(
        lambda log: oracle.with_logs(log_noise=log).log_evidence(X, y), np.log(oracle.noise_variance)
    )
    close = {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(e.by_log_lengthscale, by_l, **close)
    np.testing.assert_allclose(e.by_log_variance, by_s2, **close)
    np.testing.assert_allclose(e.by_log_noise, by_noise, **close)


@given(CASES)
@quick
def test_derivatives_add_up_when_hyperparameters_are_shared(case):
    """One lengthscale and one variance for all: the chain rule sums over what they stand for."""
    oracle, X, y = drawn(case)
    P, M = len(oracle.lengthscales), len(oracle.scales)
    shared = oracle.with_logs(np.full(P, np.log(0.6)), np.full(M, 0.3))
    e = evidence_with_gradient(*arguments(shared, X, y))
    by_l = oracles.central_differences(
        lambda log: shared.with_logs(log_lengthscales=np.full(P, log)).log_evidence(X, y), np.log(0.6)
    )
    by_s2 = oracles.central_differences(
        lambda log: shared.with_logs(log_variances=np.full(M, log)).log_evidence(X, y), 0.3
    )
    np.testing.assert_allclose(e.by_log_lengthscale.sum(), by_l, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(e.by_log_variance.sum(), by_s2, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kernel", oracles.KERNELS)
def test_one_observation_by_hand(kernel):
    oracle = oracles.Additive(kernel, ((0,),), np.array([0.5]), np.array([2.0]), np.zeros(1, int), 1.0)
    e = evidence_with_gradient(*arguments(oracle, np.array([[0.3]]), np.array([3.0])))
    assert e.value == pytest.approx(-0.5 * 9 / 5 - 0.5 * np.log(2 * np.pi * 5))
    assert e.by_log_lengthscale == pytest.approx([0.0])
    assert e.by_log_variance == pytest.approx([0.5 * 4 * (9 / 25 - 1 / 5)])
    assert e.by_log_noise == pytest.approx(0.5 * 1 * (9 / 25 - 1 / 5))


def test_no_observations():
    """The density of nothing is one, and flat."""
    oracle, _, _ = drawn({"seed": 0, "kernel": "matern52", "D": 3})
    X, y = np.empty((0, 3)), np.empty(0)
    assert log_evidence(*arguments(oracle, X, y)) == 0
    e = evidence_with_gradient(*arguments(oracle, X, y))
    assert e.value == e.by_log_noise == 0
    assert (e.by_log_lengthscale == 0).all()
    assert (e.by_log_variance == 0).all()


def test_data_are_left_as_they_are():
    oracle, X, y = drawn({"seed": 0, "kernel": "matern52", "D": 3})
    XT, y, terms, noise = arguments(oracle, X, y)
    before = XT.copy(), y.copy()
    log_evidence(XT, y, terms, noise)
    evidence_with_gradient(XT, y, terms, noise)
    np.testing.assert_array_equal(XT, before[0])
    np.testing.assert_array_equal(y, before[1])


def test_points_seen_twice_without_noise_give_a_finite_value():
    oracle, X, y = drawn({"seed": 0, "kernel": "se", "D": 2, "noise_variance": 1e-9})
    oracle = replace(oracle, noise_variance=1e-300)
    e = evidence_with_gradient(*arguments(oracle, np.vstack([X, X]), np.concatenate([y, y])))
    assert np.isfinite(e.value)
    assert np.isfinite(e.by_log_lengthscale).all()


@pytest.mark.parametrize("n", [8, 9, 10, 11, 17, 64])
def test_the_same_data_give_the_same_bits_wherever_they_lie_in_memory(n):
    rng = np.random.default_rng(n)
    X, y = rng.random((n, 3)), rng.standard_normal(n)
    oracle, _, _ = drawn({"seed": 0, "kernel": "matern52", "D": 3})
    seen = set()
    for _ in range(60):
        clutter = [np.empty(int(size)) for size in rng.integers(1, 400, 20)]  # moves the next arrays about
        e = evidence_with_gradient(*arguments(oracle, X.copy(), y.copy()))
        seen.add((e.value, e.by_log_noise, e.by_log_lengthscale.tobytes(), e.by_log_variance.tobytes()))
        del clutter
    assert len(seen) == 1
