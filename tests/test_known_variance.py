"""Values whose noise is known one by one: K + diag(noise + v), against dense formulas wherever a model uses it."""

from dataclasses import replace

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from test_gp import CASES, EXAMPLE, close, drawn, quick
from test_learning import learning, query, same_model
from test_overlaps import spectral
from test_paths import within_standard_errors
from test_structure import TIED, constant, dense, random_problem
from test_structure import draw as draw_values

import sumbo.gp.additive
import sumbo.gp.solvers
from sumbo import AdditiveGP, Space, structure
from sumbo.acquisition.functions import Feasibility
from sumbo.errors import DataError
from sumbo.gp import fit as fit_module
from sumbo.gp.fit import FitSettings
from sumbo.gp.outcome_transforms import OutcomeTransform
from sumbo.gp.solvers import Sparse, chosen
from sumbo.insights import analysis
from sumbo.insights.tables import importance, interactions
from sumbo.methods import METHODS, Auto, Deadline, SequentialGroups
from sumbo.methods.surrogate import learned_every, update_surrogate
from sumbo.structure.partition_search import Relaxation
from sumbo.structure.score import Scorer


def known(case, n=8, m=5):
    """An oracle with known variances, the model without data, data, and the variances, some of them 0."""
    oracle, gp, X, y, Z = drawn(case, n, m)
    v = np.random.default_rng(case["seed"] + 1).uniform(-0.5, 2.0, n).clip(0.0)
    return replace(oracle, known_variance=v), gp, X, y, Z, v


# --- predictions ----------------------------------------------------------------------------------


@given(CASES)
@quick
def test_posteriors_and_evidence_against_the_dense_formulas(case):
    oracle, gp, X, y, Z, v = known(case)
    gp = gp.condition(X, y, known_variance=v)
    assert_array_equal(gp.known_variance, v)
    mean, covariance = oracle.posterior(X, y, Z)
    moments, parts = gp.moments(Z), gp.group_moments(Z)
    assert_allclose(gp.posterior(Z), (mean, np.sqrt(covariance.diagonal())), **close)
    assert_allclose((moments.mean, moments.variance), (mean, covariance.diagonal()), **close)
    for j, group in enumerate(gp.groups):
        mean, covariance = oracle.group_posterior(X, y, j, Z)
        variance = covariance.diagonal()
        assert_allclose(gp.group_posterior(j, Z[:, list(group)]), (mean, np.sqrt(variance)), **close)
        assert_allclose((parts.mean[j], parts.variance[j]), (mean, variance), **close)
        assert_allclose(gp.group_means(Z)[j], mean, **close)
    assert gp.log_marginal_likelihood() == pytest.approx(oracle.log_evidence(X, y), rel=1e-8, abs=1e-8)


@given(CASES)
@settings(max_examples=15, deadline=None)
def test_evidence_gradient_against_central_differences(case):
    oracle, gp, X, y, _, v = known(case)
    by_l, by_s, by_noise = gp.condition(X, y, known_variance=v).evidence_gradient()
    logs = np.log(oracle.lengthscales), 2.0 * np.log(oracle.scales), np.log(oracle.noise_variance)
    names = "log_lengthscales", "log_variances", "log_noise"
    by_log_l, by_log_s2, by_log_noise = (
        oracles.central_differences(lambda log, name=name: oracle.with_logs(**{name: log}).log_evidence(X, y), log)
        for name, log in zip(names, logs, strict=True)
    )
    for found, expected in ((by_l, by_log_l), (by_s, 2.0 * by_log_s2), (by_noise, by_log_noise)):
        assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@given(CASES)
@quick
def test_leaving_one_out_is_conditioning_on_the_others(case):
    _, gp, X, y, _, v = known(case)
    means, stds = gp.condition(X, y, known_variance=v).leave_one_out()
    for i in range(len(y)):
        others = np.delete(np.arange(len(y)), i)
        mean, std = gp.condition(X[others], y[others], known_variance=v[others]).posterior(X[i : i + 1])
        assert_allclose(means[i], mean[0], rtol=1e-6, atol=1e-6)
        assert_allclose(stds[i] ** 2, std[0] ** 2 + gp.noise_variance + v[i], rtol=1e-6, atol=1e-6)


@given(CASES, st.floats(1e-6, 10.0))
@quick
def test_the_same_variance_everywhere_is_more_noise(case, c):
    _, gp, X, y, Z = drawn(case)
    noisy = replace(gp, noise_variance=gp.noise_variance + c).condition(X, y)
    same = gp.condition(X[:5], y[:5], known_variance=np.full(5, c))
    for x, value in zip(X[5:], y[5:], strict=True):
        same = same.append(x, value, known_variance=c)
    for ask in (
        lambda gp: gp.posterior(Z),
        lambda gp: gp.group_moments(Z).mean,
        lambda gp: gp.group_moments(Z).variance,
        lambda gp: gp.moments(Z).gradient(np.ones(len(Z)), np.ones(len(Z))),
        lambda gp: gp.leave_one_out(),
        lambda gp: gp.weights,
        lambda gp: gp.log_marginal_likelihood(),
        lambda gp: gp.evidence_gradient()[0],
        lambda gp: gp.with_values(np.cos(y)).posterior(Z),
        lambda gp: gp.sample_path(np.random.default_rng(0), features=16)(Z),
    ):
        assert_allclose(ask(same), ask(noisy), rtol=1e-7, atol=1e-7)


@given(CASES)
@quick
def test_zeros_are_nothing_to_the_last_bit(case):
    _, gp, X, y, Z = drawn(case)
    none = gp.condition(X[:6], y[:6]).append(X[6], y[6]).append(X[7], y[7])
    zeros = gp.condition(X[:6], y[:6], known_variance=np.zeros(6)).append(X[6], y[6], known_variance=0.0)
    zeros = zeros.append(X[7], y[7])
    assert none.known_variance is None
    assert zeros.known_variance is None
    assert_array_equal(zeros.hallucinate(Z[:2]).posterior(Z), none.hallucinate(Z[:2]).posterior(Z))
    quick_fit = FitSettings(evaluations=5)
    fitted = gp.fit(X, y, settings=quick_fit, known_variance=np.zeros(8))
    assert_array_equal(fitted.posterior(Z), gp.fit(X, y, settings=quick_fit).posterior(Z))


# --- growing --------------------------------------------------------------------------------------


@given(CASES, st.integers(0, 7))
@quick
def test_appending_equals_conditioning(case, n):
    _, gp, X, y, Z, v = known(case)
    v[:3] = 0.0
    grown = gp.condition(X[:n], y[:n], known_variance=v[:n])
    for i in range(n, len(y)):
        grown = grown.append(X[i], y[i], known_variance=v[i])
    whole = gp.condition(X, y, known_variance=v)
    assert_array_equal(grown.known_variance, v)
    assert_allclose(grown.posterior(Z), whole.posterior(Z), **close)
    assert_allclose(grown.leave_one_out(), whole.leave_one_out(), rtol=1e-7, atol=1e-7)


@given(CASES)
@quick
def test_running_points_have_the_common_noise_alone(case):
    oracle, gp, X, y, Z, v = known(case)
    pending = oracles.random_points(np.random.default_rng(case["seed"] + 2), 3, oracle.categories)
    gp = gp.condition(X, y, known_variance=v)
    there = gp.hallucinate(pending)
    values = np.append(y, gp.posterior(pending)[0])
    expected = gp.condition(np.vstack([X, pending]), values, known_variance=np.append(v, np.zeros(3)))
    assert_array_equal(there.known_variance, np.append(v, np.zeros(3)))
    assert_allclose(there.posterior(Z), expected.posterior(Z), rtol=1e-6, atol=1e-6)
    assert_array_equal(gp.with_values(values[:8]).known_variance, v)


@pytest.mark.parametrize("noise", [1e-12, 1e-2])
@pytest.mark.parametrize("append", [False, True])
def test_a_point_measured_again_counts_as_one_of_the_weighted_mean(noise, append):
    rng = np.random.default_rng(0)
    X, y, v, Z = rng.random((6, 2)), rng.standard_normal(6), rng.uniform(0.1, 1.0, 6), rng.random((5, 2))
    gp = AdditiveGP([(0,), (1,)], noise_variance=noise)
    again, value, variance = X[[0, 0, 3]], np.array([2.0, -1.0, 0.5]), np.array([0.3, 0.01, 0.2])
    both = gp.condition(X, y, known_variance=v)
    if append:
        for i in range(3):
            both = both.append(again[i], value[i], known_variance=variance[i])
    else:
        both = gp.condition(np.vstack([X, again]), np.append(y, value), known_variance=np.append(v, variance))
    assert both.jitter == 0.0
    told, weights = y.copy(), 1.0 / (v + noise)
    for i, value_i, variance_i in zip((0, 0, 3), value, variance, strict=True):
        more = 1.0 / (variance_i + noise)
        told[i] = (weights[i] * told[i] + more * value_i) / (weights[i] + more)
        weights[i] += more
    one = gp.condition(X, told, known_variance=1.0 / weights - noise)
    assert_allclose(both.posterior(Z), one.posterior(Z), rtol=1e-7, atol=1e-7)


def test_a_point_measured_exactly_and_again_with_noise():
    gp = AdditiveGP([(0,)], noise_variance=1e-12)
    gp = gp.condition([[0.5], [0.5], [0.2]], [1.0, 3.0, 0.0], known_variance=[0.0, 1.0, 0.0])
    assert gp.posterior([[0.5]])[0][0] == pytest.approx(1.0, abs=1e-6)
    mean, std = gp.leave_one_out()
    assert (mean[1], std[1]) == pytest.approx((1.0, 1.0), abs=1e-5)


# --- fitting --------------------------------------------------------------------------------------


def test_the_fit_maximises_the_evidence_with_known_variances():
    oracle, gp, X, y, _, v = known(EXAMPLE, n=15)
    XT = np.ascontiguousarray(X.T)
    problem = fit_module._Posterior(XT, y, gp.terms, FitSettings(), v)
    theta = problem.mean + 0.2 * np.random.default_rng(1).standard_normal(len(problem.mean))
    value, gradient = problem.negative_with_gradient(theta)
    assert_allclose(gradient, oracles.central_differences(problem.negative, theta), rtol=1e-5, atol=1e-6)
    h = problem.hyperparameters(theta)
    there = replace(oracle, lengthscales=h.lengthscales, scales=h.scales, noise_variance=h.noise_variance)
    log_prior = -0.5 * (problem.precision * np.square(theta - problem.mean)).sum()
    assert -value == pytest.approx(there.log_evidence(X, y) + log_prior, rel=1e-8)


def uneven(n=80, seed=0):
    """A smooth function, half of whose values have much noise; the truth, and the variances."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    truth = np.sin(4 * X[:, 0]) + X[:, 1] ** 2
    v = np.where(rng.random(n) < 0.5, 0.5, 1e-4)
    y = truth + np.sqrt(v) * rng.standard_normal(n)
    return X, y - truth.mean(), truth - truth.mean(), v


def test_what_is_known_is_not_learned_as_noise_and_predictions_are_better_for_it():
    X, y, truth, v = uneven()
    gp = AdditiveGP([(0,), (1,)])
    plain, told = gp.fit(X, y), gp.fit(X, y, known_variance=v)
    assert plain.noise_variance > 0.1
    assert told.noise_variance < 1e-3
    errors = [np.sqrt(np.mean((model.posterior(X)[0] - truth) ** 2)) for model in (plain, told)]
    assert errors[1] < 0.5 * errors[0]
    assert np.abs((told.posterior(X)[0] - truth) / told.posterior(X)[1]).max() < 4


def test_a_fit_to_some_of_the_values_takes_their_variances(monkeypatch):
    monkeypatch.setattr(sumbo.gp.additive, "FIT_POINTS", 40)
    X, y, _, v = uneven()
    some = np.linspace(0, 79, 40).astype(int)
    gp = AdditiveGP([(0,), (1,)])
    fitted, expected = gp.fit(X, y, known_variance=v), gp.fit(X[some], y[some], known_variance=v[some])
    assert_array_equal(fitted.lengthscales, expected.lengthscales)
    assert_array_equal(fitted.known_variance, v)


# --- sample paths ---------------------------------------------------------------------------------


def test_draws_have_the_mean_and_covariance_of_the_posterior():
    rng = np.random.default_rng(0)
    X, Z, y = rng.random((6, 3)), rng.random((4, 3)), rng.standard_normal(6)
    v = np.array([0.0, 3.0, 0.0, 0.5, 0.1, 1.0])
    groups = ((0,), (1, 2))
    oracle = oracles.Additive("matern52", groups, np.full(3, 0.7), np.ones(2), np.zeros(3, int), 0.05, v)
    gp = AdditiveGP(groups, lengthscales=0.7, noise_variance=0.05).condition(X, y, known_variance=v)
    points = np.vstack([Z, X[:2]])
    draws = np.array([gp.sample_path(rng, features=1024)(points) for _ in range(400)])
    within_standard_errors(draws, *oracle.posterior(X, y, points))


# --- many observations ----------------------------------------------------------------------------


def sparse(monkeypatch, support, gp, X, y, v):
    monkeypatch.setattr(sumbo.gp.additive, "EXACT_LIMIT", 30)
    monkeypatch.setattr(sumbo.gp.solvers, "support_size", lambda n: support)
    monkeypatch.setattr(sumbo.gp.solvers, "_BLOCK", 7)
    found = gp.condition(X, y, known_variance=v)
    assert isinstance(found._data, Sparse)
    return found


def test_the_sparse_model_is_the_fully_independent_training_conditional(monkeypatch):
    """Equations (24) of Quinonero-Candela and Rasmussen (2005), with a diagonal of noise."""
    oracle, gp, X, y, Z, v = known(EXAMPLE, n=50)
    grown = sparse(monkeypatch, 20, gp, X[:45], y[:45], v[:45])
    for i in range(45, 50):
        grown = grown.append(X[i], y[i], known_variance=v[i])
    U = X[chosen(y[:45], 20)]
    prior = np.square(oracle.scales).sum()
    K_uu = oracle.k(U, U) + 1e-8 * prior * np.eye(20)
    Q_xx, Q_zx = (oracle.k(A, U) @ np.linalg.solve(K_uu, oracle.k(U, X)) for A in (X, Z))
    S = Q_xx + np.diag(prior - np.diag(Q_xx) + gp.noise_variance + v)
    assert_array_equal(grown.known_variance, v)
    assert_allclose(grown.posterior(Z)[0], Q_zx @ np.linalg.solve(S, y), atol=1e-6)
    assert_allclose(grown.posterior(Z)[1] ** 2, prior - np.diag(Q_zx @ np.linalg.solve(S, Q_zx.T)), atol=1e-6)
    evidence = -0.5 * (y @ np.linalg.solve(S, y) + np.linalg.slogdet(2 * np.pi * S)[1])
    assert grown.log_marginal_likelihood() == pytest.approx(evidence, rel=1e-6)
    means, stds = grown.leave_one_out()
    assert_allclose(stds**-2.0, np.diag(np.linalg.inv(S)), rtol=1e-5)
    assert_allclose(y - means, np.linalg.solve(S, y) * stds**2, atol=1e-5)


def test_the_sparse_model_on_all_points_is_the_exact_one(monkeypatch):
    _, gp, X, y, Z, v = known(EXAMPLE, n=40)
    exact = gp.condition(X, y, known_variance=v)
    close_to_it = sparse(monkeypatch, 40, gp, X, y, v)
    assert_allclose(close_to_it.posterior(Z), exact.posterior(Z), atol=1e-5)
    assert_allclose(close_to_it.leave_one_out(), exact.leave_one_out(), atol=1e-4)
    assert_allclose(close_to_it.hallucinate(X[:2]).posterior(Z), exact.hallucinate(X[:2]).posterior(Z), atol=1e-4)
    paths = [model.sample_path(np.random.default_rng(3), features=64)(Z) for model in (close_to_it, exact)]
    assert_allclose(*paths, atol=1e-4)


def test_the_sparse_model_takes_the_same_variance_everywhere_as_more_noise(monkeypatch):
    _, gp, X, y, Z, _ = known(EXAMPLE, n=40)
    same = sparse(monkeypatch, 15, gp, X, y, np.full(40, 0.3))
    noisy = replace(gp, noise_variance=gp.noise_variance + 0.3).condition(X, y)
    assert_allclose(same.posterior(Z), noisy.posterior(Z), **close)
    assert same.log_marginal_likelihood() == pytest.approx(noisy.log_marginal_likelihood())


def test_predictions_left_out_of_many_values_keep_their_variances(monkeypatch):
    monkeypatch.setattr(analysis, "_MOST", 20)
    _, gp, X, y, _, v = known(EXAMPLE, n=40)
    found = analysis.leave_one_out(sparse(monkeypatch, 15, gp, X, y, v))
    some = found.index
    expected = gp.condition(X[some], y[some], known_variance=v[some]).leave_one_out()
    assert_array_equal((found.mean, found.std), expected)


# --- what is not accepted -------------------------------------------------------------------------


@pytest.mark.parametrize("v", [[0.1], np.full((8, 1), 0.1), np.full(8, -1e-9), np.full(8, np.nan), np.full(8, np.inf)])
@pytest.mark.parametrize("method", ["fit", "condition"])
def test_variances_of_the_wrong_kind(method, v):
    _, gp, X, y, _ = drawn(EXAMPLE)
    with pytest.raises(DataError, match="known_variance must be 8 finite numbers from 0 up, one for each value; got"):
        getattr(gp, method)(X, y, known_variance=v)


@pytest.mark.parametrize("v", [-1.0, np.nan, [0.1, 0.2], "a"])
def test_a_variance_of_the_wrong_kind(v):
    _, gp, X, y, _ = drawn(EXAMPLE)
    with pytest.raises(DataError):
        gp.append(X[0], y[0], known_variance=v)


def test_variances_are_copied_and_cannot_be_changed():
    _, gp, X, y, Z, v = known(EXAMPLE)
    gp = gp.condition(X, y, known_variance=v)
    before, kept = gp.posterior(Z), v.copy()
    v[:] = 9.0
    assert_array_equal(gp.known_variance, kept)
    assert_array_equal(gp.with_values(y).posterior(Z), before)
    with pytest.raises(ValueError, match="read-only"):
        gp.known_variance[0] = 1.0


# --- groups ---------------------------------------------------------------------------------------


def test_groups_are_scored_with_known_variances():
    rng = np.random.default_rng(0)
    problem, categories = random_problem(rng, nominal=True)
    v = rng.uniform(0.0, 1.0, 25)
    problem, groups = replace(problem, known_variance=v), [(0, 3), (1,), (2, 4, 5)]
    model = replace(dense(problem, categories, TIED, groups), known_variance=v)
    scorer = Scorer(problem, TIED)
    k, dk = scorer.total(groups), scorer.kernel((1, 4))
    expected = model.log_evidence(problem.XT.T, problem.y) + constant(problem)
    assert scorer.score(k, 3) == pytest.approx(expected + problem.log_prior(3), rel=1e-10)
    ahead, behind = (scorer.score(k + step * dk, 3) for step in (1e-5, -1e-5))
    assert scorer.slopes(k) @ dk == pytest.approx((ahead - behind) / 2e-5, rel=1e-6)
    some = problem.on_some(10, np.random.default_rng(1))
    rows = [np.flatnonzero(problem.y == value)[0] for value in some.y]
    assert_array_equal(some.known_variance, v[rows])
    found = problem.fitted(groups, TIED)
    fitted = replace(dense(problem, categories, found.tied, groups), known_variance=v)
    assert found.score <= fitted.log_evidence(problem.XT.T, problem.y) + problem.log_prior(3) + 1e-6


def test_the_relaxation_has_known_variances():
    rng = np.random.default_rng(1)
    problem, _ = random_problem(rng, 12)
    v = rng.uniform(0.0, 1.0, 12)
    relaxation = Relaxation(problem.XT, problem.y, problem.nominal, problem.family, v)
    theta = relaxation.start() + rng.standard_normal(len(relaxation.start()))
    value, gradient = relaxation.evidence(theta)
    assert_allclose(gradient, oracles.central_differences(lambda t: relaxation.evidence(t)[0], theta), atol=1e-6)
    one = [oracles.Additive("matern52", ((i,),), np.array([0.5]), np.ones(1), np.zeros(6, int), 1.0) for i in range(6)]
    k = [model.k(problem.XT.T, problem.XT.T) for model in one]
    K = np.diag(np.exp(theta[-1]) + v)
    for weight, i, j in zip(np.exp(theta), *np.triu_indices(6), strict=False):
        K += weight * (k[i] if i == j else k[i] * k[j])
    prior = -0.5 * ((theta[-1] - np.log(1e-3 * np.mean(problem.y**2))) / 1.5) ** 2
    expected = -0.5 * problem.y @ np.linalg.solve(K, problem.y) - 0.5 * np.linalg.slogdet(K)[1] + prior
    assert value == pytest.approx(expected, rel=1e-8)


def test_the_spectral_model_has_known_variances():
    model, state = spectral(np.random.default_rng(1))
    F, v = model._all_functions(state.pairs), np.random.default_rng(2).uniform(0.0, 1.0, model.n)
    lam, noise = model._variances(state.theta, len(state.pairs)), float(np.exp(state.theta[-1]))
    model.known_variance = v
    K = (F.T * lam) @ F + model.scale + np.diag(noise + v)
    expected = -0.5 * model.y @ np.linalg.solve(K, model.y) - 0.5 * np.linalg.slogdet(K)[1]
    assert model._solved(F, lam, noise)[2] == pytest.approx(expected, rel=1e-8)
    gradient = oracles.central_differences(lambda theta: model.log_posterior(theta, F)[0], state.theta)
    assert_allclose(model.log_posterior(state.theta, F)[1], gradient, rtol=1e-5, atol=1e-6)


def with_wild_values(seed=0):
    """Values of a function of (0, 1) and (2, 3), every third of them with ten times its spread in noise."""
    groups = ((0, 1), (2, 3))
    X, y = draw_values(groups, 150, seed=seed)
    v = np.where(np.arange(150) % 3 == 0, 100.0, 0.0)
    return groups, X, y + np.sqrt(v) * np.random.default_rng(seed).standard_normal(150), v


@pytest.mark.parametrize("find", ["search", "search_overlapping", "posterior", "random_trials"])
def test_groups_are_found_among_wild_values_that_are_known_to_be(find):
    groups, X, y, v = with_wild_values()
    scale = y.std()
    y, v = y / scale, v / scale**2
    rng, apart = np.random.default_rng(0), AdditiveGP([(0,), (1,), (2,), (3,)], kernel="se")
    options = {"max_group_size": 2} if find != "random_trials" else {"group_size": 2, "trials": 20}
    if find == "posterior":
        options["evaluations"] = 500
    if find == "random_trials":
        apart = AdditiveGP([(0, 2), (1, 3)], kernel="se").fit(X, y, known_variance=v)
    found = getattr(structure, find)(X, y, apart, rng, known_variance=v, **options)
    assert (found.best if find == "posterior" else found).canonical().groups == groups


# --- the scale of the model -----------------------------------------------------------------------


@pytest.mark.parametrize("warped", [False, True])
def test_variances_are_those_of_small_changes_of_the_values(warped):
    rng = np.random.default_rng(0)
    y, std = 50.0 + 7.0 * rng.standard_t(2, 21), rng.uniform(0.0, 5.0, 21)
    transform = OutcomeTransform.of(y, std, warped=warped)
    step = 1e-6
    ahead, behind = (transform.untransform(transform.z + sign * step) for sign in (1, -1))
    slopes = 2 * step / (ahead - behind)
    inside = np.arange(21) != np.argmin(y)  # beyond the worst, the map is straight, with the slope there
    assert_allclose(transform.known_variance[inside], np.square(std * slopes)[inside], rtol=1e-4)
    other = OutcomeTransform.of(1024.0 * y, 1024.0 * std, warped=warped)
    assert_array_equal(other.known_variance, transform.known_variance)


@pytest.mark.parametrize("warped", [False, True])
def test_variances_of_what_is_not_known_are_zero(warped):
    y, std = np.array([1.0, np.nan, 3.0, 2.0, 7.0]), np.array([0.5, 0.5, np.nan, 0.0, np.inf])
    v = OutcomeTransform.of(y, std, warped=warped).known_variance
    assert (v > 0).tolist() == [True, False, False, False, True]
    assert np.isfinite(v).all()
    for nothing in (None, np.zeros(5), np.full(5, np.nan)):
        assert OutcomeTransform.of(y, nothing, warped=warped).known_variance is None
    for same in (np.ones(5), np.empty(0), np.full(5, np.nan)):
        assert OutcomeTransform.of(same, np.ones(len(same)), warped=warped).known_variance is None


@pytest.mark.parametrize("changes", [{}, {"explore_until": 99}, {"warp": True}])
def test_a_surrogate_knows_the_deviations_of_its_values(changes):
    X, y, _, v = uneven(30)
    model, _ = update_surrogate(query(X, 40.0 * y, std=40.0 * np.sqrt(v)), learning(learned_every(3), D=2, **changes))
    assert_allclose(model.known_variance, model.outcome_transform.known_variance)
    if not model.outcome_transform.warped:
        assert_allclose(model.known_variance, v / y.var())


def test_groups_are_chosen_with_the_deviations():
    X, y, _, v = uneven(20)
    seen = []

    def choose(X, y, v, model, rng):
        seen.append(v)
        return model.decomposition

    update_surrogate(query(X, y, std=np.sqrt(v)), learning(learned_every(3), D=2, choose=choose))
    assert_allclose(seen[0], v / y.var())


def test_a_cache_changes_nothing_where_deviations_are_known():
    X, y, _, v = uneven(20)
    std, plan = np.sqrt(v), learning(learned_every(100), D=2)
    cache, state = update_surrogate(query(X[:8], y[:8], std=std[:8]), plan)
    for n in [8, 9, 9, 14, 20, 20]:
        q = query(X[:n], y[:n], std=std[:n], state=state)
        cache, _ = update_surrogate(replace(q, cache=cache), plan)
        assert same_model(cache, update_surrogate(q, plan)[0])
    assert_allclose(cache.known_variance, v / y.var())
    others = [query(X, y, std=given, state=state) for given in (None, np.zeros(20), 2.0 * std, std[::-1])]
    models = [update_surrogate(replace(q, cache=cache), plan)[0] for q in others]
    for q, model in zip(others, models, strict=True):
        assert same_model(model, update_surrogate(q, plan)[0])
        assert same_model(cache, update_surrogate(query(X, y, std=std, state=state, cache=model), plan)[0])
    assert same_model(models[0], models[1])


@pytest.mark.parametrize("seconds", [0.0, 0.05])
def test_a_model_made_in_a_hurry_knows_the_deviations(seconds):
    X, y, _, v = uneven(120)
    q = query(X, y, std=np.sqrt(v), deadline=Deadline.after(seconds))
    model, _ = update_surrogate(q, learning(learned_every(3), D=2))
    rows = [np.flatnonzero((x == X).all(axis=1))[0] for x in model.X]
    assert_allclose(model.known_variance, v[rows] / y.var())


def test_a_success_with_an_uncertain_value_is_a_success():
    _, gp, X, y, Z, v = known(EXAMPLE)
    failed = np.arange(8) < 2
    told = Feasibility.of(gp.condition(X, y, known_variance=v), failed)
    assert_allclose(told.value(Z), Feasibility.of(gp.condition(X, y), failed).value(Z), **close)


def test_tables_of_what_was_learned_know_the_deviations(monkeypatch):
    X, y, _, v = uneven(40)
    q = query(X, y, std=np.sqrt(v))
    model, _ = update_surrogate(q, learning(learned_every(3), D=2))
    share = importance(model, q.space, np.random.default_rng(0)).noise.share
    plain = importance(model.condition(model.X, model.y), q.space, np.random.default_rng(0)).noise.share
    assert 0.2 < share < 0.6
    assert plain < 0.1
    seen = []
    posterior = structure.posterior
    monkeypatch.setattr(structure, "posterior", lambda *a, **k: seen.append(k["known_variance"]) or posterior(*a, **k))
    interactions(q, model, Auto().group_constraints(q.space), q.rng, among=q.space.names, evaluations=50)
    assert_allclose(seen[0], v / y.var())


@pytest.mark.parametrize("name", METHODS)
def test_every_method_takes_deviations(name):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.random((12, 4)), np.full((3, 4), 0.5)])  # one point is measured three times
    y = np.sin(3.0 * X).sum(axis=1) + 0.1 * rng.standard_normal(15)
    y[4] = np.nan
    std = np.full(15, 0.1)
    std[4:6] = np.nan
    q = query(X, y, std=std, space=Space.from_bounds([(0.0, 1.0)] * 4))
    answer = METHODS[name]().suggest(q)
    assert answer.point.shape == (4,)
    assert ((answer.point >= 0.0) & (answer.point <= 1.0)).all()


def test_a_group_in_turn_takes_the_deviations_of_its_own_values():
    X, y, _, v = uneven(6)
    q = query(X, y, std=np.sqrt(v), candidate_metadata=[0, 1, 1, 0, None, 1])
    inner = SequentialGroups(groups=((0,), (1,)))._restricted(q, [1], 1)
    assert_array_equal(inner.std, np.sqrt(v)[[1, 2, 5]])
