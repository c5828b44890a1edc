"""Groups that share dimensions: the model against dense formulas, and how they are found."""

import numpy as np
import pytest
from oracles import KERNELS, central_differences, random_additive, random_points

from sumbo.errors import DecompositionError
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.decomposition import Decomposition
from sumbo.structure import random_trials, search, search_overlapping
from sumbo.structure.group_constraints import Rules
from sumbo.structure.overlaps import Spectral, State, _cliques, one_dimensional

D = 6
PAIRS = ((0, 1), (1, 2), (3, 4))


def covering(rng, kernel, *, nominal=False):
    """A dense model whose groups overlap, differ and leave no dimension out."""
    while True:
        dense = random_additive(rng, kernel=kernel, D=4, overlapping=True, nominal=nominal)
        sets = {frozenset(group) for group in dense.groups}
        if len(sets) == len(dense.groups) > 1 and len(frozenset().union(*sets)) == 4 < sum(map(len, sets)):
            return dense


def fast(dense):
    return AdditiveGP(
        dense.groups,
        kernel=dense.kernel,
        lengthscales=dense.lengthscales,
        scales=dense.scales,
        noise_variance=dense.noise_variance,
        categories=dense.categories,
    )


def spectral(rng, n=30, degree=4, pairs=PAIRS):
    """A model with random values and parameters."""
    X, y = rng.random((n, D)), rng.standard_normal(n)
    model = Spectral(X, y, np.zeros(D, bool), degree)
    state = State((), model.start() + 0.5 * rng.standard_normal(model.head + 1), 0.0)
    return model, model.added(state, pairs, rng.standard_normal(len(pairs)), 0.3 * rng.standard_normal(len(pairs)))


def interacting(n, seed=0):
    """Chained pairs, one of them far weaker than the others."""
    X = np.random.default_rng(seed).random((n, D))
    y = np.sin(3 * X[:, 0] * X[:, 1]) + 4 * (X[:, 1] - 0.5) ** 2 * X[:, 2] + 0.05 * X[:, 3] * X[:, 4] + X[:, 5] ** 2
    return X, (y - y.mean()) / y.std()


# --- the model ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("nominal", [False, True])
def test_overlapping_model_is_the_dense_one(kernel, nominal):
    rng = np.random.default_rng(KERNELS.index(kernel))
    dense = covering(rng, kernel, nominal=nominal)
    X, Z = random_points(rng, 15, dense.categories), random_points(rng, 7, dense.categories)
    y = rng.standard_normal(15)
    gp = fast(dense).condition(X, y)
    assert not gp.decomposition.disjoint
    assert gp.log_marginal_likelihood() == pytest.approx(dense.log_evidence(X, y), rel=1e-9)
    mean, std = gp.posterior(Z)
    np.testing.assert_allclose(mean, dense.posterior(X, y, Z)[0], atol=1e-8)
    np.testing.assert_allclose(std**2, dense.posterior_variance_with_cross_terms(X, Z), atol=1e-8)
    for j, group in enumerate(dense.groups):
        mean, std = gp.group_posterior(j, Z[:, list(group)])
        expected, covariance = dense.group_posterior(X, y, j, Z)
        np.testing.assert_allclose(mean, expected, atol=1e-8)
        np.testing.assert_allclose(std**2, np.diag(covariance), atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
def test_overlapping_evidence_gradient(kernel):
    rng = np.random.default_rng(3)
    dense = covering(rng, kernel)
    X, y = rng.random((12, 4)), rng.standard_normal(12)
    by_l, by_s, by_noise = fast(dense).condition(X, y).evidence_gradient()
    logs = np.log(dense.lengthscales)
    numeric = central_differences(lambda t: dense.with_logs(log_lengthscales=t).log_evidence(X, y), logs)
    np.testing.assert_allclose(by_l, numeric, rtol=1e-5, atol=1e-7)
    logs = 2.0 * np.log(dense.scales)
    numeric = central_differences(lambda t: dense.with_logs(log_variances=t).log_evidence(X, y), logs)
    np.testing.assert_allclose(by_s, 2.0 * numeric, rtol=1e-5, atol=1e-7)
    log_noise = np.array([np.log(dense.noise_variance)])
    numeric = central_differences(lambda t: dense.with_logs(log_noise=t[0]).log_evidence(X, y), log_noise)
    assert by_noise == pytest.approx(numeric[0], rel=1e-5)


def test_overlapping_model_learns_predicts_and_draws():
    X, y = interacting(80)
    gp = AdditiveGP([(0, 1), (1, 2), (3, 4), (5,)], full_order=True).fit(X[:60], y[:60])
    alone = AdditiveGP(Decomposition.apart(D)).fit(X[:60], y[:60])
    errors = [np.mean((model.posterior(X[60:])[0] - y[60:]) ** 2) for model in (gp, alone)]
    assert errors[0] < 0.2 * errors[1]
    path = gp.sample_path(np.random.default_rng(0))
    parts = [path.group(j, X[:5, list(group)]) for j, group in enumerate(gp.groups)]
    np.testing.assert_allclose(path(X[:5]), np.sum(parts, axis=0))


def test_searches_for_disjoint_groups_start_from_overlapping_ones():
    X, y = interacting(60)
    model = AdditiveGP([(0, 1), (1, 2), (3, 4), (5,)])
    assert search(X, y, model, np.random.default_rng(0), max_group_size=3, evaluations=50).disjoint
    tried = random_trials(X, y, model.fit(X, y), np.random.default_rng(0), group_size=2, trials=2)
    assert tried.dim == D


def test_nearest_gives_a_shared_dimension_to_the_first_group():
    rules = Rules.of(4, 2)
    assert rules.nearest(Decomposition([(0, 1), (1, 2), (2, 3)])) == [(0, 1), (2,), (3,)]


# --- the spectral model ---------------------------------------------------------------------------------------------


def test_functions_are_orthonormal_over_the_points():
    rng = np.random.default_rng(0)
    for x, nominal, rank in [
        (rng.random(40), False, 5),
        (rng.integers(0, 3, 40) / 3, False, 2),  # three values carry two functions
        ((rng.integers(0, 4, 40) + 0.5) / 4, True, 3),
        (np.full(40, 0.7), False, 0),
    ]:
        phi = one_dimensional(x, nominal, 5)
        np.testing.assert_allclose(phi @ phi.T / 40, np.diag(np.arange(5) < rank), atol=1e-10)
        np.testing.assert_allclose(phi.sum(axis=1), 0.0, atol=1e-9)


def dense_evidence(model, state):
    """The log posterior of a state, coefficient by coefficient."""
    theta, E = state.theta, len(state.pairs)
    u, t, r = theta[:D], theta[D : D + model.p], theta[D + model.p : model.head]
    v, s = theta[model.head : model.head + E], theta[model.head + E : -1]
    K = model.scale * np.ones((model.n, model.n)) + np.exp(theta[-1]) * np.eye(model.n)
    for i in range(D):
        for a in range(model.p):
            K += np.exp(u[i] + t[a]) * np.outer(model.phi[i, a], model.phi[i, a])
    for e, (i, k) in enumerate(state.pairs):
        for a in range(1, model.p):
            for b in range(1, model.p - a + 1):
                f = model.phi[i, a - 1] * model.phi[k, b - 1]
                K += np.exp(v[e] + r[a + b - 2] + s[e] * (a + b - 2)) * np.outer(f, f)
    return -0.5 * model.y @ np.linalg.solve(K, model.y) - 0.5 * np.linalg.slogdet(K)[1]


def test_spectral_evidence_and_gradient():
    model, state = spectral(np.random.default_rng(1))
    F = model._all_functions(state.pairs)
    mean, sd = model._prior(len(state.pairs))
    value, gradient = model.log_posterior(state.theta, F)
    assert value == pytest.approx(dense_evidence(model, state) - 0.5 * (((state.theta - mean) / sd) ** 2).sum())
    numeric = central_differences(lambda theta: model.log_posterior(theta, F)[0], state.theta)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-6)


def test_gain_of_a_pair_is_what_adding_it_brings():
    model, state = spectral(np.random.default_rng(2))
    new = [(0, 3), (2, 5)]
    gain, v, s = model.gains(state, new)
    for k, pair in enumerate(new):
        added = model.added(state, [pair], v[k : k + 1], s[k : k + 1])
        prior = -0.5 * (v[k] / 6.0) ** 2 - 0.5 * (s[k] / 3.0) ** 2
        assert gain[k] == pytest.approx(dense_evidence(model, added) - dense_evidence(model, state) + prior, abs=1e-6)


def test_loss_of_a_pair_is_what_removing_it_costs():
    model, state = spectral(np.random.default_rng(3))
    losses = model.losses(state)
    for e in range(len(PAIRS)):
        without = model.without(state, [e])
        assert PAIRS[e] not in without.pairs
        assert losses[e] == pytest.approx(dense_evidence(model, state) - dense_evidence(model, without), abs=1e-6)


def test_a_lower_degree_keeps_the_parameters_of_lower_degrees():
    rng = np.random.default_rng(4)
    model, state = spectral(rng)
    theta = state.theta.copy()
    theta[D + 3] = theta[D + 4 + 2] = -80.0  # degree 4 has no weight, so leaving it out changes nothing
    lower = Spectral(rng.random((2, D)), np.zeros(2), np.zeros(D, bool), 3)
    lower.__dict__.update(n=model.n, y=model.y, scale=model.scale, phi=model.phi[:, :3])
    same = model.of_lower_degree(State(state.pairs, theta, 0.0), 3)
    assert dense_evidence(lower, same) == pytest.approx(dense_evidence(model, State(state.pairs, theta, 0.0)))


# --- search ---------------------------------------------------------------------------------------------------------


def find(X, y, **options):
    model = AdditiveGP(Decomposition.apart(X.shape[1]))
    return search_overlapping(X, y, model, np.random.default_rng(0), **options).groups


def test_finds_pairs_that_share_dimensions_and_a_weak_one():
    assert find(*interacting(120)) == ((0, 1), (1, 2), (3, 4), (5,))


def test_finds_no_pair_where_there_is_none():
    X, _ = interacting(120)
    y = np.sin(4 * X).sum(axis=1) + 0.1 * np.random.default_rng(1).standard_normal(120)
    assert find(X, (y - y.mean()) / y.std()) == Decomposition.apart(D).groups


def test_a_clique_that_is_more_than_its_pairs_becomes_a_group():
    X = np.random.default_rng(0).random((200, 4))
    y = np.sin(5 * X[:, 0] + 4 * X[:, 1] * X[:, 2]) + X[:, 3]
    y = (y - y.mean()) / y.std()
    assert find(X, y, max_group_size=3) == ((0, 1, 2), (3,))
    assert find(X, y, max_group_size=2) == ((0, 1), (0, 2), (1, 2), (3,))


def test_cliques():
    linked = [{0, 1}, {1, 2}, {0, 2}, {2, 3}, {3, 4, 5}]
    assert _cliques(linked, 6, 4) == [(0, 1, 2)]
    assert _cliques(linked, 6, 2) == []
    assert _cliques([{i, k} for i in range(4) for k in range(i)], 4, 4)[0] == (0, 1, 2, 3)


def test_wishes_are_kept():
    X, y = interacting(120)
    groups = find(X, y, max_group_size=3, together=[(0, 5), (5, 3)], apart=[(1, 2)])
    assert (0, 3, 5) in groups
    assert not any({1, 2} <= set(group) for group in groups)
    with pytest.raises(DecompositionError, match=r"to be apart by apart=\(0, 1\), and together by together=\(0, 1\)"):
        find(X, y, together=[(0, 1)], apart=[(0, 1)])


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5])
def test_hardly_any_data(n):
    X = np.random.default_rng(0).random((n, D))
    assert Decomposition(find(X, np.zeros(n))).dim == D


def test_one_dimension_and_pairs_that_are_not_allowed():
    X, y = interacting(20)
    assert find(X[:, :1], y) == ((0,),)
    assert find(X, y, max_group_size=1) == Decomposition.apart(D).groups


def test_categories_and_repeated_points():
    rng = np.random.default_rng(0)
    categories = np.array([3, 0, 0, 2])
    X = random_points(rng, 150, categories)
    X[100:110] = X[:10]
    y = np.where(X[:, 0] > 0.5, 2.0, -1.0) * (X[:, 1] - 0.5) + X[:, 2]
    model = AdditiveGP(Decomposition.apart(4), categories=categories)
    found = search_overlapping(X, (y - y.mean()) / y.std(), model, rng)
    assert found.groups == ((0, 1), (2,), (3,))


def test_repeats_exactly_and_leaves_its_input_alone():
    X, y = interacting(60)
    kept = X.copy(), y.copy()
    assert find(X, y) == find(X, y)
    np.testing.assert_array_equal(X, kept[0])
    np.testing.assert_array_equal(y, kept[1])


def test_many_points_are_thinned():
    X, y = interacting(600)
    assert find(X, y, evaluations=300)[:2] == ((0, 1), (1, 2))


@pytest.mark.parametrize("evaluations", [1, 50, 200])
def test_budget_is_kept(evaluations, monkeypatch):
    X, y = interacting(100)
    calls = []
    solved = Spectral._solved

    def counted(self, *args):
        calls.append(1)
        return solved(self, *args)

    monkeypatch.setattr(Spectral, "_solved", counted)
    find(X, y, evaluations=evaluations)
    assert len(calls) < 1.2 * evaluations + 30  # to take out what does not pay may go beyond
