"""The probability of success: what it says near failures, and its gradient."""

import numpy as np
import pytest

from sumbo.acquisition.functions import Feasibility
from sumbo.gp.additive import AdditiveGP


@pytest.fixture
def model():
    rng = np.random.default_rng(0)
    X = rng.random((60, 4))
    gp = AdditiveGP([(0, 1), (2,), (3,)], lengthscales=0.6, scales=[1.5, 0.7, 0.4, 0.9], full_order=True)
    return gp.condition(X, np.sin(5 * X[:, 0]) + X[:, 1] - X[:, 1].mean())


def test_no_failures_no_opinion(model):
    assert Feasibility.of(model, np.zeros(model.n, dtype=bool)) is None


def test_failures_are_unlikely_to_succeed_and_successes_likely(model):
    failed = model.X[:, 0] > 0.7
    probability = np.exp(Feasibility.of(model, failed).value(model.X))
    assert probability[failed].max() < 0.1
    assert probability[~failed].min() > 0.9


def test_it_generalises_to_points_never_seen(model):
    feasibility = Feasibility.of(model, model.X[:, 0] > 0.7)
    Z = np.random.default_rng(1).random((500, 4))
    clear = np.abs(Z[:, 0] - 0.7) > 0.1
    guessed = feasibility.value(Z) < np.log(0.5)
    assert (guessed == (Z[:, 0] > 0.7))[clear].mean() > 0.95


def test_nothing_known_is_rather_a_success():
    far = AdditiveGP([(0,)], lengthscales=1e-3, scales=3.0).condition([[0.0], [0.1]], [1.0, -1.0])
    p = np.exp(Feasibility.of(far, np.array([True, False])).value(np.array([[0.9]])))
    assert p[0] == pytest.approx(0.83, abs=0.01)


def test_the_unit_of_the_objective_does_not_matter(model):
    failed = model.X[:, 2] > 0.8
    scaled = AdditiveGP(
        model.decomposition,
        lengthscales=model.lengthscales,
        scales=10.0 * model.scales,
        noise_variance=100.0 * model.noise_variance,
        full_order=True,
    ).condition(model.X, 10.0 * model.y)
    Z = np.random.default_rng(2).random((20, 4))
    one, other = Feasibility.of(model, failed), Feasibility.of(scaled, failed)
    np.testing.assert_allclose(one.value(Z), other.value(Z), rtol=1e-6, atol=1e-9)


def test_gradient_against_central_differences(model):
    feasibility = Feasibility.of(model, model.X[:, 0] + model.X[:, 3] > 1.2)
    Z, h = np.random.default_rng(3).random((10, 4)), 1e-6
    value, gradient = feasibility.value_and_gradient(Z)
    np.testing.assert_array_equal(value, feasibility.value(Z))
    for i in range(4):
        step = np.zeros(4)
        step[i] = h
        slope = (feasibility.value(Z + step) - feasibility.value(Z - step)) / (2 * h)
        np.testing.assert_allclose(gradient[:, i], slope, rtol=1e-4, atol=1e-6)
