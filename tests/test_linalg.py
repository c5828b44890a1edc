"""Cholesky factors: they exist for every finite matrix, and they grow without disturbing each other."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sumbo import AdditiveGP
from sumbo.errors import DataError
from sumbo.gp import linalg
from sumbo.gp.solvers import Exact

quick = settings(max_examples=40, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)


def positive_definite(rng, n):
    B = rng.standard_normal((n, n + 2))
    return B @ B.T + 0.1 * np.eye(n)


def duplicated_rows():
    x = np.repeat(np.linspace(0, 1, 6), 3)
    return np.exp(-0.5 * np.square((x[:, None] - x) / 0.5))


def slightly_indefinite():
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.standard_normal((6, 6)))
    K = Q @ np.diag([3.0, 2.0, 1.0, 0.5, 1e-9, -1e-9]) @ Q.T
    return 0.5 * (K + K.T)


GOOD = positive_definite(np.random.default_rng(1), 5)
HARD = {
    "good": GOOD,
    "singular": np.ones((4, 4)),
    "rank one": np.outer([1.0, -2.0, 3.0], [1.0, -2.0, 3.0]),
    "duplicated rows": duplicated_rows(),
    "slightly indefinite": slightly_indefinite(),
    "very indefinite": np.array([[1.0, 5.0], [5.0, 1.0]]),
    "negative": -np.eye(3),
    "zero": np.zeros((3, 3)),
    "zero diagonal": np.array([[0.0, 1.0], [1.0, 0.0]]),
    "huge": 1e300 * GOOD / GOOD.max(),
    "huge singular": np.full((5, 5), 1e300),
    "tiny": 1e-300 * GOOD,
    "tiny singular": np.full((5, 5), 1e-300),
    "one": np.array([[4.0]]),
    "one zero": np.array([[0.0]]),
    "none": np.zeros((0, 0)),
}


@pytest.mark.parametrize("name", HARD)
def test_every_finite_matrix_has_a_factor(name):
    K = HARD[name]
    before = K.copy()
    factor = linalg.cholesky(K)
    L = factor.lower()
    np.testing.assert_array_equal(K, before)
    assert L.shape == K.shape
    assert (np.triu(L, 1) == 0).all()
    assert (L.diagonal() > 0).all()
    assert np.isfinite(factor.jitter)
    assert factor.jitter >= 0
    scale = max(np.abs(K).max(initial=0.0), factor.jitter)
    np.testing.assert_allclose(L @ L.T, K + factor.jitter * np.eye(len(K)), rtol=0, atol=1e-11 * scale)


@pytest.mark.parametrize("name", ["good", "huge", "tiny", "one", "none"])
def test_no_jitter_where_none_is_needed(name):
    assert linalg.cholesky(HARD[name]).jitter == 0


@pytest.mark.parametrize("name", ["slightly indefinite", "very indefinite", "negative", "zero", "zero diagonal"])
def test_jitter_is_reported_and_the_least_of_its_ladder(name):
    K = HARD[name]
    jitter = linalg.cholesky(K).jitter
    assert jitter > 0
    lowest_eigenvalue = np.linalg.eigvalsh(K)[0]
    assert jitter <= max(1e-312, 1e-12 * np.abs(K.diagonal()).mean(), -100 * lowest_eigenvalue)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_jitter_grows_with_the_matrix(scale):
    K = slightly_indefinite()
    assert linalg.cholesky(scale * K).jitter == pytest.approx(scale * linalg.cholesky(K).jitter, rel=1e-6)


@given(SEEDS, st.integers(1, 12), st.integers(0, 12), st.floats(-280, 280))
@quick
def test_any_rank_and_any_scale(seed, n, rank, exponent):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((n, rank))
    K = 10.0**exponent * (B @ B.T)
    factor = linalg.cholesky(K)
    L = factor.lower()
    scale = max(np.abs(K).max(), factor.jitter)
    np.testing.assert_allclose(L @ L.T, K + factor.jitter * np.eye(n), rtol=0, atol=1e-12 * scale * n)


@pytest.mark.parametrize("place", [(0, 0), (2, 0), (2, 1), (2, 2)])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_an_error(value, place):
    K = np.eye(3)
    K[place] = value
    with pytest.raises(DataError, match="NaN or infinite"):
        linalg.cholesky(K)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_one_element_that_is_not_finite_is_an_error(value):
    with pytest.raises(DataError, match="NaN or infinite"):
        linalg.cholesky(np.array([[value]]))


@pytest.mark.parametrize("name", ["good", "slightly indefinite"])
def test_only_the_lower_half_is_read(name):
    K = HARD[name]
    spoiled = K.copy()
    spoiled[np.triu_indices(len(K), 1)] = np.nan
    np.testing.assert_array_equal(linalg.cholesky(spoiled).lower(), linalg.cholesky(K).lower())


@given(SEEDS, st.integers(1, 12))
@quick
def test_solves_against_numpy(seed, n):
    rng = np.random.default_rng(seed)
    K, b = positive_definite(rng, n), rng.standard_normal(n)
    factor = linalg.cholesky(K)
    L = np.linalg.cholesky(K)
    close = {"rtol": 1e-8, "atol": 1e-9}
    np.testing.assert_allclose(factor.lower(), L, **close)
    np.testing.assert_allclose(factor.solve(b), np.linalg.solve(K, b), **close)
    np.testing.assert_allclose(factor.solve_lower_rows(b[None])[0], np.linalg.solve(L, b), **close)
    np.testing.assert_allclose(factor.inverse_lower(), np.linalg.inv(L), **close)
    assert (np.triu(factor.inverse_lower(), 1) == 0).all()
    assert factor.log_determinant() == pytest.approx(np.linalg.slogdet(K)[1], rel=1e-9, abs=1e-9)
    np.testing.assert_array_equal(factor.lower(), linalg.cholesky(K).lower())  # none of these wrote to it


@given(SEEDS, st.integers(1, 12))
@quick
def test_in_place_variants_against_numpy(seed, n):
    rng = np.random.default_rng(seed)
    K, b = positive_definite(rng, n), rng.standard_normal(n)
    L, jitter = linalg.cholesky_in_place(K.copy())
    assert jitter == 0
    np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(K), rtol=1e-8, atol=1e-9)
    before = b.copy()
    again, alpha, value = linalg.solved(K.copy(), b)
    np.testing.assert_array_equal(np.tril(again), np.tril(L))
    np.testing.assert_allclose(alpha, np.linalg.solve(K, b), rtol=1e-8, atol=1e-9)
    density = -0.5 * b @ np.linalg.solve(K, b) - 0.5 * np.linalg.slogdet(K)[1]
    assert value == pytest.approx(density, rel=1e-8, abs=1e-8)
    np.testing.assert_array_equal(b, before)
    K_inv = linalg.inverse_in_place(L)
    np.testing.assert_allclose(np.tril(K_inv), np.tril(np.linalg.inv(K)), rtol=1e-8, atol=1e-9)


def test_no_rows(capfd):
    factor = linalg.cholesky(np.zeros((0, 0)))
    assert factor.log_determinant() == 0
    assert factor.solve(np.empty(0)).shape == (0,)
    assert factor.inverse_lower().shape == (0, 0)
    np.testing.assert_array_equal(factor.append(np.empty(0), 4.0).lower(), [[2.0]])
    assert "".join(capfd.readouterr()) == ""  # LAPACK has nothing to complain of


# --- growing --------------------------------------------------------------------------------------


@given(SEEDS, st.integers(0, 8), st.integers(1, 30))
@quick
def test_appending_equals_factorising_the_bordered_matrix(seed, n, more):
    K = positive_definite(np.random.default_rng(seed), n + more)
    factor = linalg.cholesky(K[:n, :n])
    for size in range(n, n + more):
        factor = factor.append(K[size, :size], float(K[size, size]))
    whole = linalg.cholesky(K)
    assert factor.n == n + more
    np.testing.assert_allclose(factor.lower(), whole.lower(), rtol=1e-8, atol=1e-8)
    assert factor.log_determinant() == pytest.approx(whole.log_determinant(), rel=1e-8, abs=1e-8)
    b = np.arange(n + more, dtype=float)
    np.testing.assert_allclose(factor.solve(b), whole.solve(b), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(factor.inverse_lower(), whole.inverse_lower(), rtol=1e-7, atol=1e-8)


def test_appending_keeps_the_jitter():
    K = np.ones((3, 3)) - 1e-9 * np.eye(3)
    factor = linalg.cholesky(K)
    grown = factor.append(np.zeros(3), 1.0)
    assert grown.jitter == factor.jitter > 0
    expected = np.eye(4)
    expected[:3, :3] = K
    np.testing.assert_allclose(
        grown.lower() @ grown.lower().T, expected + factor.jitter * np.eye(4), rtol=0, atol=1e-12
    )


def test_appending_a_row_seen_before_stays_finite():
    factor = linalg.cholesky(np.array([[1.0]]))
    for _ in range(20):
        factor = factor.append(np.ones(factor.n), 1.0)
    assert np.isfinite(factor.lower()).all()
    assert (factor.lower().diagonal() > 0).all()
    assert np.isfinite(factor.solve(np.ones(21))).all()


def spoiled_by_rounding():
    """The factor of a matrix of ones, but for a last pivot that is all rounding."""
    return linalg.Factor(np.array([[1.0, 0.0], [1.0, 1e-9]]), 2, 0.0, [2])


def test_a_factor_spoiled_by_rounding_does_not_grow():
    assert spoiled_by_rounding().append(np.array([1.0, 1.0]), 1.0) is not None
    assert spoiled_by_rounding().append(np.array([1.0, 1.0 - 1e-13]), 1.0) is None
    assert spoiled_by_rounding().append(np.array([1.0, np.nan]), 1.0) is None


def test_observations_are_factorised_anew_where_the_factor_is_spoiled():
    X, y = np.array([[0.5], [0.5 + 2e-7], [0.5 - 1e-7]]), np.array([1.0, 1.0, 1.0])
    terms = AdditiveGP([(0,)], kernel="se", lengthscales=0.3).terms
    data = replace(Exact.condition(terms, 1e-18, X[:2], y[:2], np.zeros(2)), factor=spoiled_by_rounding())
    grown = data.append(X[2:].T, 1.0)
    assert 1e-12 <= grown.jitter < 1e-9
    np.testing.assert_allclose(grown.alpha.sum(), 1.0, rtol=1e-6)  # f is 1 there, and prior variance is 1
    np.testing.assert_allclose(grown.append(X[:1].T, 1.0).alpha.sum(), 1.0, rtol=1e-6)


@given(SEEDS, st.integers(0, 5), st.lists(st.integers(0, 10**6), min_size=1, max_size=40))
@quick
def test_branches_disturb_neither_each_other_nor_their_parents(seed, n, parents):
    """A tree of factors: each new one grows from any of those before it, most of them on shared buffers."""
    rng = np.random.default_rng(seed)
    K = positive_definite(rng, n) if n else np.zeros((0, 0))
    tree = [(K, linalg.cholesky(K))]
    for choice in parents:
        K, factor = tree[choice % len(tree)]
        k, diagonal = rng.standard_normal(len(K)), 10.0 * (len(K) + 1)
        child = factor.append(k, diagonal + float(k @ k) * 10)
        tree.append((np.block([[K, k[:, None]], [k[None, :], diagonal + float(k @ k) * 10]]), child))
    for K, factor in tree:
        L = factor.lower()
        np.testing.assert_allclose(L @ L.T, K, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(K).max(initial=0)))


def test_two_children_of_one_parent_on_one_buffer():
    parent = linalg.cholesky(np.eye(2)).append(np.zeros(2), 1.0)  # has a buffer with room
    before = parent.lower()
    first = parent.append(np.array([0.1, 0.2, 0.3]), 4.0)
    first_before = first.lower()
    second = parent.append(np.array([-0.5, 0.0, 0.5]), 9.0)
    third = first.append(np.array([0.7, 0.7, 0.7, 0.7]), 16.0)
    assert first.buffer is parent.buffer  # else this shows nothing
    assert second.buffer is not parent.buffer
    np.testing.assert_array_equal(parent.lower(), before)
    np.testing.assert_array_equal(first.lower(), first_before)
    np.testing.assert_allclose((second.lower() @ second.lower().T)[3], [-0.5, 0.0, 0.5, 9.0], atol=1e-12)
    np.testing.assert_allclose((third.lower() @ third.lower().T)[3], [0.1, 0.2, 0.3, 4.0, 0.7], atol=1e-12)
