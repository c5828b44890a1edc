"""Shares of variance: against brute force on the same points, and against functions whose shares are known."""

import numpy as np
import pytest

from sumbo.gp.additive import AdditiveGP
from sumbo.insights import effects
from sumbo.insights.effects import shares
from sumbo.space import Categorical, Float, Int, Space

SPACE = Space(
    {"a": Float(0, 1), "b": Int(1, 5), "c": Categorical(list("uvw")), "d": Float(1, 10, log=True), "e": Float(0, 1)}
)
CATEGORIES = [0, 0, 3, 0, 0]


def mixed_model(groups, *, full_order, seed=0, n=40):
    rng = np.random.default_rng(seed)
    gp = AdditiveGP(groups, categories=CATEGORIES, lengthscales=0.6, scales=0.9, full_order=full_order)
    X = SPACE.snap(rng.random((n, 5)))
    return gp.condition(X, rng.standard_normal(n))


def brute_force(model, function, part, A, B):
    """Total effects and the groups' shares, each by calling the function at whole points."""
    f = function(A)
    variance = 0.5 * (f.var() + function(B).var())
    total = []
    for i in range(A.shape[1]):
        Z = A.copy()
        Z[:, i] = B[:, i]
        total.append(0.5 * np.mean((f - function(Z)) ** 2) / variance)
    groups = []
    for j, group in enumerate(model.decomposition.groups):
        own = [np.cov(part(j, P), function(P), bias=True)[0, 1] for P in (A, B)]
        share = 0.5 * sum(own)
        if model.full_order:
            Z = B.copy()
            Z[:, list(group)] = A[:, list(group)]
            last = len(model.groups) - 1
            share += np.cov(part(last, Z) - part(last, B), f, bias=True)[0, 1]
        groups.append(share / variance)
    return np.array(total), np.array(groups), variance


@pytest.mark.parametrize("full_order", [False, True])
@pytest.mark.parametrize("groups", [[(0, 2), (1,), (3, 4)], [(0, 1, 2, 3, 4)], [(0,), (1,), (2,), (3,), (4,)]])
def test_shares_are_those_of_brute_force_on_the_same_points(monkeypatch, groups, full_order):
    model = mixed_model(groups, full_order=full_order)
    samples = effects._samples(SPACE, np.random.default_rng(5))
    monkeypatch.setattr(effects, "_samples", lambda space, rng: samples)
    # What is clipped and scaled to add up to 1 is compared before that.
    monkeypatch.setattr(effects, "_proper", lambda parameters, groups, v: effects.Shares(parameters, groups, 0, v))
    found = shares(model, SPACE, np.random.default_rng(6), paths=2)

    def mean_part(j, Z):
        return model.group_means(Z)[j]

    rng = np.random.default_rng(6)
    paths = [model.sample_path(rng, features=effects._FEATURES) for _ in range(2)]
    functions = [(lambda Z: model.posterior(Z)[0], mean_part)]
    functions += [(path, lambda j, Z, path=path: path.group(j, Z[:, list(model.groups[j])])) for path in paths]
    for s, (function, part) in enumerate(functions):
        total, of_groups, variance = brute_force(model, function, part, *samples)
        np.testing.assert_allclose(found.parameters[s], total, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(found.groups[s], of_groups, rtol=1e-7, atol=1e-9)
        assert found.variance[s] == pytest.approx(variance, rel=1e-9)


def test_shares_are_from_0_up_and_add_up_to_1():
    found = shares(mixed_model([(0, 1), (2,), (3, 4)], full_order=True), SPACE, np.random.default_rng(0))
    assert (found.groups >= 0).all()
    assert (found.rest >= 0).all()
    np.testing.assert_allclose(found.groups.sum(axis=1) + found.rest, 1.0, rtol=1e-12)
    assert (found.parameters >= 0).all()


# --- functions whose shares are known ------------------------------------------------------------------------------

WEIGHTS = np.array([3.0, 2.0, 1.0, 0.0, 0.0, 0.0])


def learned(function, groups, n=150, D=6, **settings):
    rng = np.random.default_rng(3)
    X = rng.random((n, D))
    y = function(X)
    gp = AdditiveGP(groups, **settings).fit(X, (y - y.mean()) / y.std())
    return shares(gp, Space.from_bounds([(0, 1)] * D), np.random.default_rng(0)), gp


@pytest.mark.parametrize("full_order", [False, True])
def test_an_additive_function_has_the_shares_of_its_terms(full_order):
    # sum_i w_i cos(2 pi x_i): Var = sum_i w_i^2 / 2
    found, _ = learned(lambda X: np.cos(2 * np.pi * X) @ WEIGHTS, [(i,) for i in range(6)], full_order=full_order)
    expected = WEIGHTS**2 / np.sum(WEIGHTS**2)
    np.testing.assert_allclose(found.parameters[0], expected, atol=0.02)
    np.testing.assert_allclose(found.groups[0], expected, atol=0.02)
    assert found.rest[0] < 0.02
    # what is not there is seen not to be, and the draws say so too
    assert found.parameters[0, 3:].max() < 1e-3
    assert np.abs(found.parameters[1:] - found.parameters[0]).max() < 0.05


def test_an_interaction_counts_for_both_sides():
    # u v with u, v uniform on [-1, 1]: all variance is in the product; total effects are 1 each
    found, _ = learned(
        lambda X: (2 * X[:, 0] - 1) * (2 * X[:, 1] - 1), [(0, 1), *((i,) for i in range(2, 6))], kernel="se"
    )
    np.testing.assert_allclose(found.parameters[0, :2], 1.0, atol=0.03)
    assert found.groups[0, 0] == pytest.approx(1.0, abs=0.01)


def test_what_no_sum_over_the_groups_can_express_is_all_together():
    # x0 apart from x1, and their product: 16/25 of the variance of 4 p + 3 r with Var p = Var r
    def function(X):
        product = 3 * (2 * X[:, 0] - 1) * (2 * X[:, 1] - 1)
        return 4 * product + 3 * np.sqrt(12) * (X[:, 2] - 0.5)

    found, _ = learned(function, [(i,) for i in range(4)], n=250, D=4, full_order=True, kernel="se")
    assert found.rest[0] == pytest.approx(16 / 25, abs=0.03)
    assert found.groups[0, 2] == pytest.approx(9 / 25, abs=0.03)
    np.testing.assert_allclose(found.parameters[0], [16 / 25, 16 / 25, 9 / 25, 0], atol=0.03)


def test_uncertainty_shrinks_with_data():
    def spread(n):
        found, _ = learned(lambda X: np.cos(2 * np.pi * X) @ WEIGHTS, [(i,) for i in range(6)], n=n)
        return np.sqrt(np.mean((found.parameters[1:] - found.parameters[0]) ** 2))

    assert spread(150) < 0.3 * spread(15)


def test_many_parameters_get_fewer_points():
    few, many = (effects._samples(Space.from_bounds([(0, 1)] * D), np.random.default_rng(0)) for D in (5, 1000))
    assert len(few[0]) == 1024
    assert len(many[0]) == 64
    assert not np.array_equal(*few)
