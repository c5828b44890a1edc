"""The sparse model against the naive dense formula of its approximation, and against the exact model."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sumbo.gp.additive
import sumbo.gp.solvers
from sumbo import AdditiveGP, Optimizer
from sumbo.gp.solvers import Exact, Sparse, chosen, support_size

GROUPS = [(0,), (1, 2)]


@pytest.fixture
def small(monkeypatch):
    """Sparse from 30 observations on, with 20 support points."""
    monkeypatch.setattr(sumbo.gp.additive, "EXACT_LIMIT", 30)
    monkeypatch.setattr(sumbo.gp.additive, "FIT_POINTS", 25)
    monkeypatch.setattr(sumbo.gp.solvers, "support_size", lambda n: 20)
    monkeypatch.setattr(sumbo.gp.solvers, "_BLOCK", 7)


def data(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    y = np.sin(5 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)
    return X, y - y.mean(), rng.random((15, 3))


def model(**settings):
    return AdditiveGP(GROUPS, lengthscales=0.7, scales=[1.0, 0.6], noise_variance=0.02, **settings)


def naive(gp, X, y, Z, U):
    """Equations (24) of Quinonero-Candela and Rasmussen (2005): the fully independent training conditional."""

    def k(A, B):
        a = gp.with_hyperparameters(gp.hyperparameters)
        joint = np.vstack([A, B])
        prior = sum(s**2 * matern(joint[:, list(g)] / 0.7) for g, s in zip(a.groups, a.scales, strict=True))
        return prior[: len(A), len(A) :]

    def matern(points):
        r = np.sqrt(5 * np.square(points[:, None] - points[None]).sum(-1))
        return (1 + r + r**2 / 3) * np.exp(-r)

    prior = np.square(gp.scales).sum()
    K_uu = k(U, U) + 1e-8 * prior * np.eye(len(U))
    Q_xx, Q_zx = (k(A, U) @ np.linalg.solve(K_uu, k(U, X)) for A in (X, Z))
    S = np.linalg.inv(Q_xx + np.diag(prior - np.diag(Q_xx)) + gp.noise_variance * np.eye(len(X)))
    return Q_zx @ S @ y, prior - np.diag(Q_zx @ S @ Q_zx.T)


@pytest.mark.usefixtures("small")
def test_it_is_the_fully_independent_training_conditional():
    X, y, Z = data(80)
    gp = model().condition(X, y)
    assert isinstance(gp._data, Sparse)
    mean, variance = naive(gp, X, y, Z, X[chosen(y, 20)])
    assert_allclose(gp.posterior(Z)[0], mean, atol=1e-6)
    assert_allclose(gp.posterior(Z)[1] ** 2, variance, atol=1e-6)
    assert (gp.n, gp.X.shape, gp.y.shape) == (80, (80, 3), (80,))


@pytest.mark.usefixtures("small")
def test_components_add_up_and_gradients_hold():
    X, y, Z = data(60)
    gp = model().condition(X, y)
    parts = sum(gp.group_posterior(j, Z[:, list(g)])[0] for j, g in enumerate(gp.groups))
    assert_allclose(parts, gp.posterior(Z)[0], atol=1e-10)
    a, b = np.full(len(Z), 0.3), np.full(len(Z), -0.7)
    slope = gp.moments(Z).gradient(a, b)
    for i in range(3):
        step = 1e-5 * np.eye(3)[i]
        up, down = gp.moments(Z + step), gp.moments(Z - step)
        change = (a * (up.mean - down.mean) + b * (up.variance - down.variance)) / 2e-5
        assert_allclose(slope[:, i], change, atol=1e-5)


@pytest.mark.usefixtures("small")
def test_appending_is_conditioning_with_the_same_support():
    X, y, Z = data(60)
    grown = model().condition(X[:50], y[:50])
    for x, value in zip(X[50:], y[50:], strict=True):
        grown = grown.append(x, value)
    U = X[:50][chosen(y[:50], 20)]
    mean, variance = naive(grown, X, y, Z, U)
    assert_allclose(grown.posterior(Z)[0], mean, atol=1e-6)
    assert_allclose(grown.posterior(Z)[1] ** 2, variance, atol=1e-6)
    assert_allclose(grown.X, X)


@pytest.mark.usefixtures("small")
def test_leaving_one_out_is_the_approximation_without_it():
    X, y, _ = data(60)
    gp = model().condition(X, y)
    means, stds = gp.leave_one_out()
    for i in (0, 17, 59):
        others = np.delete(np.arange(60), i)
        mean, variance = naive(gp, X[others], y[others], X[i : i + 1], X[chosen(y, 20)])
        assert_allclose(means[i], mean[0], atol=1e-6)
        assert_allclose(stds[i] ** 2, variance[0] + gp.noise_variance, atol=1e-6)


@pytest.mark.usefixtures("small")
def test_branches_do_not_disturb_each_other():
    X, y, Z = data(50)
    parent = model().condition(X, y)
    before = parent.posterior(Z)
    one, two = parent.append([0.1, 0.2, 0.3], 5.0), parent.append([0.9, 0.8, 0.7], -5.0)
    again = parent.append([0.1, 0.2, 0.3], 5.0)
    assert_allclose(one.posterior(Z), again.posterior(Z), rtol=1e-12)
    assert not np.allclose(one.posterior(Z)[0], two.posterior(Z)[0])
    assert_allclose(parent.posterior(Z), before, rtol=0)


@pytest.mark.usefixtures("small")
def test_the_evidence_is_that_of_the_approximation():
    X, y, _ = data(40)
    gp = model().condition(X, y)
    A = gp._data.rows[:40]
    root = gp._data.deviations
    assert (root**2 >= gp.noise_variance).all()
    C = root[:, None] * (np.eye(40) + A @ A.T) * root
    expected = -0.5 * (y @ np.linalg.solve(C, y) + np.linalg.slogdet(2 * np.pi * C)[1])
    assert gp.log_marginal_likelihood() == pytest.approx(expected, rel=1e-9)


@pytest.mark.usefixtures("small")
def test_sample_paths_and_fit_and_hallucination_go_on():
    X, y, Z = data(45)
    gp = AdditiveGP(GROUPS).fit(X, y)
    assert isinstance(gp._data, Sparse)
    path = gp.sample_path(np.random.default_rng(0))
    assert np.isfinite(path(Z)).all()
    mean, std = gp.posterior(Z)
    seen = gp.hallucinate(Z[:2])
    assert_allclose(seen.posterior(Z)[0], mean, atol=1e-6)
    assert (seen.posterior(Z)[1] <= std + 1e-9).all()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("method", ["auto", "add-gp-ucb", "gp-ei"])
def test_a_search_crosses_the_limit_and_can_be_saved_beyond_it(method):
    opt = Optimizer([(0, 1)] * 3, method, seed=0)
    for i in range(36):
        trial = opt.ask()
        opt.tell(trial, float(np.square(trial.x - 0.3).sum()))
        if i == 33:
            saved = Optimizer.from_dict(opt.to_dict())
    trial = opt.trials[34]
    assert saved.ask().params == trial.params


def both(monkeypatch, gp, X, y, m):
    """The model given 2000 observations, exact and with m support points."""
    exact = gp.condition(X, y)
    monkeypatch.setattr(sumbo.gp.additive, "EXACT_LIMIT", len(y) - 1)
    monkeypatch.setattr(sumbo.gp.solvers, "support_size", lambda n: m)
    sparse = gp.condition(X, y)
    assert isinstance(exact._data, Exact)
    assert sparse._data.XT.shape[1] == m
    return exact, sparse


@pytest.mark.parametrize(
    ("groups", "m"), [([(i,) for i in range(12)], 400), ([(i, i + 1) for i in range(0, 8, 2)], 700)]
)
def test_low_dimensional_groups_at_2000_points_are_within_two_percent_of_exact(monkeypatch, groups, m):
    rng = np.random.default_rng(0)
    D = max(map(max, groups)) + 1
    X, Z = rng.random((2000, D)), rng.random((300, D))
    y = np.sum([np.prod(np.sin(4 * X[:, g]), axis=1) for g in groups], axis=0)
    y = (y - y.mean()) / y.std()
    gp = AdditiveGP(groups, lengthscales=0.5, scales=0.3, noise_variance=1e-4)
    exact, sparse = both(monkeypatch, gp, X, y, m)
    assert np.abs(sparse.posterior(Z)[0] - exact.posterior(Z)[0]).max() < 0.02


def test_where_a_search_goes_on_it_is_within_two_percent_of_exact(monkeypatch):
    """Half of 2000 observations as support, with a term over all of 20 dimensions, which no few features can span."""
    rng = np.random.default_rng(0)
    near = rng.random(20)
    X = np.clip(near + rng.permutation(np.geomspace(0.01, 1, 2000))[:, None] * rng.standard_normal((2000, 20)), 0, 1)
    Z = np.clip(near + 0.05 * rng.standard_normal((300, 20)), 0, 1)
    y = -(100 * np.square(X[:, 1:] - X[:, :-1] ** 2) + np.square(1 - X[:, :-1] - 0.3 * near[:-1])).sum(axis=1)
    y = (y - y.mean()) / y.std()
    gp = AdditiveGP([(i,) for i in range(20)], full_order=True).fit(X[::5], y[::5])
    exact, sparse = both(monkeypatch, gp, X, y, 1000)
    assert np.sqrt(np.mean(np.square(sparse.posterior(Z)[0] - exact.posterior(Z)[0]))) < 0.02


def test_the_support_shrinks_so_that_the_work_does_not_grow():
    assert support_size(2001) == 2001
    assert support_size(20_000) == 707
    sizes = [n * support_size(n) ** 2 for n in range(2200, 100_000, 500)]
    assert max(sizes) <= 1e10


def test_the_support_holds_the_best_and_is_spread_over_the_rest():
    y = np.random.default_rng(0).standard_normal(500)
    some = chosen(y, 100)
    assert len(set(some.tolist())) == 100
    assert set(np.argsort(-y)[:50]) <= set(some.tolist())
    assert np.histogram(some, 5, (0, 500))[0].min() >= 10
    assert chosen(y[:7], 7).tolist() == list(range(7))
