"""Kernels: the fused loops against textbook formulas, derivatives against central differences."""

import math

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sumbo import _loops
from sumbo.errors import SettingError
from sumbo.gp import kernels
from sumbo.gp.kernels import Terms

CASES = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "kernel": st.sampled_from(oracles.KERNELS),
        "D": st.integers(1, 6),
        "overlapping": st.booleans(),
        "nominal": st.booleans(),
    }
)
quick = settings(max_examples=30, deadline=None)


def drawn(case, n=5, m=4):
    """An oracle, the same kernel as the loops read it, and points."""
    rng = np.random.default_rng(case["seed"])
    options = {key: value for key, value in case.items() if key != "seed"}
    oracle = oracles.random_additive(rng, **options)
    X = oracles.random_points(rng, n, oracle.categories)
    Z = oracles.random_points(rng, m, oracle.categories)
    return oracle, terms_of(oracle), X, Z, rng


def terms_of(oracle):
    return Terms.build(
        oracle.groups,
        oracle.lengthscales,
        np.square(oracle.scales),
        nominal=oracle.categories > 0,
        family=kernels.family_index(oracle.kernel),
    )


def transposed(X):
    return np.ascontiguousarray(X.T)


# --- exp ------------------------------------------------------------------------------------------


def test_exp_agrees_with_the_library_everywhere():
    rng = np.random.default_rng(0)
    near_zero = -np.exp(rng.uniform(-40, 0, 5000))
    ties = -(np.arange(1, 1020) + 0.5) * math.log(2)  # where the rounding of x / ln 2 changes
    around_ties = np.concatenate([ties, np.nextafter(ties, 0), np.nextafter(ties, -np.inf)])
    x = np.concatenate([np.linspace(-708, 0, 40_001), rng.uniform(-708, 0, 20_000), near_zero, around_ties])
    got = np.array([_loops.exp_negative(v) for v in x])
    expected = np.array([math.exp(v) for v in x])
    assert np.max(np.abs(got / expected - 1)) < 1e-14


@given(st.floats(-708, 0))
@settings(max_examples=300, deadline=None)
def test_exp_agrees_with_the_library_at_any_float(x):
    assert _loops.exp_negative(x) == pytest.approx(math.exp(x), rel=1e-14, abs=0)


def test_exp_is_one_at_zero():
    assert _loops.exp_negative(0.0) == 1.0
    assert _loops.exp_negative(-0.0) == 1.0


def test_exp_never_rises_as_its_argument_falls():
    x = np.concatenate([np.linspace(0, -720, 50_001), [-1e3, -1e9, -1e300, -np.inf]])
    values = np.array([_loops.exp_negative(v) for v in x])
    assert (np.diff(values) <= 0).all()
    assert (values > 0).all()


@given(st.floats(max_value=-708))
@settings(deadline=None)
def test_exp_is_clamped_below(x):
    assert _loops.exp_negative(x) == _loops.exp_negative(-708.0) < 1e-307


# --- values ---------------------------------------------------------------------------------------


@given(CASES)
@quick
def test_gram_against_textbook(case):
    oracle, terms, X, _, _ = drawn(case)
    X = np.vstack([X, X[:1]])  # a point seen twice
    K = kernels.gram(transposed(X), terms)
    np.testing.assert_allclose(K, np.tril(oracle.k(X, X)), rtol=1e-12, atol=1e-13)


@given(CASES)
@quick
def test_cross_against_textbook(case):
    oracle, terms, X, Z, _ = drawn(case)
    Z[0] = X[0]
    K = kernels.cross(transposed(Z), transposed(X), terms)
    np.testing.assert_allclose(K, oracle.k(Z, X), rtol=1e-12, atol=1e-13)


@given(CASES)
@quick
def test_cross_groups_against_textbook(case):
    oracle, terms, X, Z, _ = drawn(case)
    K = kernels.cross_groups(transposed(Z), transposed(X), terms)
    expected = [oracle.k_group(j, Z, X) for j in range(len(oracle.groups))]
    np.testing.assert_allclose(K, expected, rtol=1e-12, atol=1e-13)


@given(CASES)
@quick
def test_only_is_the_kernel_of_one_group(case):
    oracle, terms, X, Z, _ = drawn(case)
    for j in range(len(oracle.groups)):
        K = kernels.cross(transposed(Z), transposed(X), terms.only(j))
        np.testing.assert_allclose(K, oracle.k_group(j, Z, X), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kernel", oracles.KERNELS)
def test_rows_longer_than_any_vector_register(kernel):
    case = {"seed": 3, "kernel": kernel, "D": 5, "overlapping": False, "nominal": True}
    oracle, terms, X, Z, _ = drawn(case, n=67, m=3)
    np.testing.assert_allclose(kernels.gram(transposed(X), terms), np.tril(oracle.k(X, X)), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(
        kernels.cross(transposed(Z), transposed(X), terms), oracle.k(Z, X), rtol=1e-12, atol=1e-13
    )


@pytest.mark.parametrize("kernel", oracles.KERNELS)
def test_short_lengthscales_leave_only_the_diagonal(kernel):
    family = kernels.family_index(kernel)
    terms = Terms.build([(0,)], np.array([1e-6]), np.ones(1), nominal=np.zeros(1, bool), family=family)
    K = kernels.gram(np.linspace(0, 1, 9)[None, :].copy(), terms)
    np.testing.assert_allclose(K, np.eye(9), atol=1e-290)


@pytest.mark.parametrize(("n", "m"), [(0, 3), (3, 0), (0, 0)])
def test_no_points(n, m):
    case = {"seed": 0, "kernel": "matern52", "D": 3, "overlapping": False, "nominal": False}
    _, terms, X, Z, _ = drawn(case, n=n, m=m)
    assert kernels.gram(transposed(X), terms).shape == (n, n)
    assert kernels.cross(transposed(Z), transposed(X), terms).shape == (m, n)
    assert kernels.cross_groups(transposed(Z), transposed(X), terms).shape == (len(terms.s2), m, n)
    assert (kernels.cross_gradient(transposed(Z), transposed(X), terms, np.ones((m, n))) == 0).all()


# --- derivatives ----------------------------------------------------------------------------------


@given(CASES)
@quick
def test_oracle_derivatives_against_central_differences(case):
    """The oracle of the next test needs a check of its own."""
    oracle, _, X, _, rng = drawn(case)
    W = rng.standard_normal((len(X), len(X)))
    by_l = oracles.central_differences(
        lambda logs: np.sum(W * oracle.with_logs(log_lengthscales=logs).K(X)), np.log(oracle.lengthscales)
    )
    by_s2 = oracles.central_differences(
        lambda logs: np.sum(W * oracle.with_logs(log_variances=logs).K(X)), 2 * np.log(oracle.scales)
    )
    np.testing.assert_allclose([np.sum(W * dK) for dK in oracle.dK_by_log_lengthscales(X)], by_l, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose([np.sum(W * dK) for dK in oracle.dK_by_log_variances(X)], by_s2, rtol=1e-6, atol=1e-7)


@given(CASES)
@quick
def test_evidence_traces_against_textbook(case):
    oracle, terms, X, _, rng = drawn(case)
    X = np.vstack([X, X[:1]])  # slopes at distance zero are finite
    alpha = rng.standard_normal(len(X))
    B = rng.standard_normal((len(X), len(X)))
    K_inv = B @ B.T
    W = np.outer(alpha, alpha) - K_inv
    by_l, by_s2 = kernels.evidence_traces(transposed(X), terms, alpha, K_inv)
    expected_l = [0.5 * np.trace(W @ dK) for dK in oracle.dK_by_log_lengthscales(X)]
    expected_s2 = [0.5 * np.trace(W @ dK) for dK in oracle.dK_by_log_variances(X)]
    np.testing.assert_allclose(by_l, expected_l, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(by_s2, expected_s2, rtol=1e-11, atol=1e-11)


def test_evidence_traces_read_only_the_lower_half():
    case = {"seed": 1, "kernel": "matern32", "D": 3, "overlapping": True, "nominal": True}
    _, terms, X, _, rng = drawn(case)
    alpha, K_inv = rng.standard_normal(len(X)), rng.standard_normal((len(X), len(X)))
    spoiled = K_inv.copy()
    spoiled[np.triu_indices(len(X), 1)] = np.nan
    for whole, half in zip(
        kernels.evidence_traces(transposed(X), terms, alpha, K_inv),
        kernels.evidence_traces(transposed(X), terms, alpha, spoiled),
        strict=True,
    ):
        np.testing.assert_array_equal(whole, half)


@given(CASES)
@quick
def test_cross_gradient_against_central_differences(case):
    oracle, terms, X, Z, rng = drawn(case)
    A = rng.standard_normal((len(Z), len(X)))
    G = kernels.cross_gradient(transposed(Z), transposed(X), terms, A)
    expected = oracles.central_differences(lambda Z: np.sum(A * oracle.k(Z, X)), Z)
    numbers = oracle.categories == 0
    np.testing.assert_allclose(G[:, numbers], expected[:, numbers], rtol=1e-5, atol=1e-6)
    assert (G[:, ~numbers] == 0).all()


@given(CASES)
@quick
def test_cross_gradient_of_groups_against_central_differences(case):
    oracle, terms, X, Z, rng = drawn(case)
    A = rng.standard_normal((len(oracle.groups), len(Z), len(X)))
    G = kernels.cross_gradient(transposed(Z), transposed(X), terms, A)
    expected = oracles.central_differences(
        lambda Z: sum(np.sum(A[j] * oracle.k_group(j, Z, X)) for j in range(len(A))), Z
    )
    numbers = oracle.categories == 0
    np.testing.assert_allclose(G[:, numbers], expected[:, numbers], rtol=1e-5, atol=1e-6)
    assert (G[:, ~numbers] == 0).all()


@pytest.mark.parametrize("kernel", oracles.KERNELS)
def test_gradient_vanishes_at_a_point_of_the_data(kernel):
    case = {"seed": 5, "kernel": kernel, "D": 4, "overlapping": False, "nominal": False}
    _, terms, X, _, _ = drawn(case)
    G = kernels.cross_gradient(transposed(X[:1]), transposed(X[:1]), terms, np.ones((1, 1)))
    assert (G == 0).all()


@given(CASES)
@quick
def test_arguments_are_left_as_they_are(case):
    oracle, terms, X, Z, rng = drawn(case)
    arguments = [
        transposed(Z),
        transposed(X),
        rng.standard_normal((len(Z), len(X))),
        rng.standard_normal((len(oracle.groups), len(Z), len(X))),
        rng.standard_normal(len(X)),
        rng.standard_normal((len(X), len(X))),
    ]
    before = [a.copy() for a in arguments]
    ZT, XT, A, A_groups, alpha, K_inv = arguments
    kernels.gram(XT, terms)
    kernels.cross_gradient(ZT, XT, terms, A)
    kernels.cross_gradient(ZT, XT, terms, A_groups)
    kernels.evidence_traces(XT, terms, alpha, K_inv)
    for a, b in zip(arguments, before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_unknown_kernel():
    with pytest.raises(SettingError, match="kernel must be one of se, matern32, matern52; got 'rbf'"):
        kernels.family_index("rbf")
