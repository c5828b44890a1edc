"""The optimisers of the suite: each spends its budget exactly, repeats itself, and beats random points on a bowl."""

import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import turbo
from suite_peers import HEBO_PYTHON, PEERS
from suite_stand_in import DEVELOPMENT

CENTRE = 0.3
# Where the bowl needs more than the first 15 points: the model with all pairs of parameters explores longer.
BUDGETS = dict.fromkeys(PEERS, 15) | {"orthogonal-additive": 22}


def values_of(method, problem, budget, value=None):
    """The values of a search with seed 1."""
    peer, found = PEERS[method], []
    if method == "hebo" and not os.environ.get(HEBO_PYTHON):
        pytest.skip(f"{HEBO_PYTHON} does not name a Python that has HEBO")
    for package in peer.needs:
        pytest.importorskip(package)

    def f(params):
        assert list(params) == list(problem.space.names)
        assert all(problem.space.from_array(problem.space.array(params))[name] == params[name] for name in params)
        found.append(float((value or problem.value)(params)))
        return found[-1]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer.search(f, problem.space, problem.direction, budget, 1)
    return found


@pytest.mark.parametrize("method", PEERS)
def test_a_budget_is_spent_on_a_mixed_space_and_the_seed_decides(method):
    problem = DEVELOPMENT["mixed"].make(0)
    values = values_of(method, problem, 12)
    assert len(values) == 12
    assert values == values_of(method, problem, 12)


@pytest.mark.parametrize("method", PEERS)
def test_a_bowl_is_searched_better_than_by_chance(method):
    bowl = lambda params: sum((x - CENTRE) ** 2 for x in params.values())  # noqa: E731
    values = values_of(method, DEVELOPMENT["bowl"].make(0), BUDGETS[method], bowl)
    assert len(values) == BUDGETS[method]
    points = np.random.default_rng(0).random((1000, len(values), 5))
    by_chance = np.min(np.sum((points - CENTRE) ** 2, axis=2), axis=1)
    assert min(values) < np.median(by_chance)


# --- TuRBO


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    X = rng.random((20, 4))
    return X, turbo._standardised(list(np.sin(5 * X[:, 0]) + X[:, 1])), np.log([0.5, 0.3, 0.8, 1.2, 1.3, 0.01])


def test_turbos_evidence_is_that_of_a_normal_distribution_and_its_gradient_right(data):
    X, y, theta = data
    from sklearn.gaussian_process.kernels import Matern, WhiteKernel

    K = 1.3 * Matern(np.exp(theta[:4]), nu=2.5)(X) + WhiteKernel(0.01)(X)
    white = np.linalg.solve(np.linalg.cholesky(K), y)
    expected = -np.sum(norm.logpdf(white)) + 0.5 * np.linalg.slogdet(K)[1] - 0.5 * len(y) * np.log(2 * np.pi)
    value, gradient = turbo.surprise(theta, X, y)
    assert value == pytest.approx(expected)
    steps = 1e-5 * np.eye(len(theta))
    numeric = [(turbo.surprise(theta + h, X, y)[0] - turbo.surprise(theta - h, X, y)[0]) / 2e-5 for h in steps]
    assert gradient == pytest.approx(numeric, abs=1e-6)


def test_turbos_samples_have_the_posteriors_moments(data):
    X, y, theta = data
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern

    kernel = ConstantKernel(1.3) * Matern(np.exp(theta[:4]), nu=2.5)
    reference = GaussianProcessRegressor(kernel, alpha=0.01, optimizer=None).fit(X, y)
    Z, rng = np.random.default_rng(4).random((5, 4)), np.random.default_rng(5)
    mean, covariance = reference.predict(Z, return_cov=True)
    samples = np.array([turbo.posterior_sample(Z, X, y, theta, rng) for _ in range(4000)])
    assert samples.mean(axis=0) == pytest.approx(mean, abs=0.06)
    assert np.cov(samples.T) == pytest.approx(covariance, abs=0.06)


def test_turbos_region_is_shaped_by_lengthscales_and_few_coordinates_move():
    rng, D = np.random.default_rng(0), 50
    centre, lengthscales = np.full(D, 0.5), np.r_[4.0, np.full(D - 2, 1.0), 0.25]  # of product 1
    points = turbo.candidates_of(centre, lengthscales, 0.1, rng)
    assert points.shape == (2000, D)
    moved = points != centre
    assert moved.any(axis=1).all()
    assert 17 < moved.sum(axis=1).mean() < 24
    reach = np.abs(points - centre).max(axis=0)
    assert reach[[0, 1, -1]] == pytest.approx([0.2, 0.05, 0.0125], rel=0.02)


def test_turbo_begins_again_when_its_region_has_shrunk_away(monkeypatch):
    starts = []
    monkeypatch.setattr(turbo, "fit", lambda X, y, start: starts.append(start is None) or np.zeros(X.shape[1] + 2))
    monkeypatch.setattr(turbo, "suggestion", lambda X, *_: X[0])
    values = iter(range(100))
    space = DEVELOPMENT["noisy-bowl"].make(0).space
    turbo.turbo(lambda params: next(values), space, "minimize", 60, 0)  # no value is better than the first
    # 8 first points; from 0.8 it takes 7 halvings, each after 4 failures, to fall below 2^-7; then the same again
    assert [i for i, first in enumerate(starts) if first] == [0, 28]
    assert next(values) == 60
