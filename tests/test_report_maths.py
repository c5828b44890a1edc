"""What a report computes, against what it stands for: refitting without a point, averaging over the space, units."""

import numpy as np
import pytest

import sumbo
from sumbo.insights.analysis import analysis_of, leave_one_out
from sumbo.insights.effects import Effect, background
from sumbo.space import Space

SPACE = Space({"a": sumbo.Float(0, 1), "b": sumbo.Float(0, 1), "c": sumbo.Categorical(["x", "y", "z"])})


def fitted(n=25, *, full_order=True, seed=0):
    rng = np.random.default_rng(seed)
    X = SPACE.snap(rng.random((n, 3)))
    y = np.sin(5 * X[:, 0]) * X[:, 1] + X[:, 2] + 0.1 * rng.standard_normal(n)
    return sumbo.AdditiveGP(
        [(0, 1), (2,)],
        lengthscales=[0.4, 0.6, 0.9, 1.0, 1.2, 0.8] if full_order else [0.4, 0.6, 0.9],
        scales=[1.0, 0.7, 0.5] if full_order else [1.0, 0.7],
        noise_variance=0.02,
        categories=[0, 0, 3],
        full_order=full_order,
    ).condition(X, y - y.mean())


# --- leave one out -------------------------------------------------------------------------------------------


def test_leaving_one_out_is_conditioning_on_the_others():
    model = fitted()
    found = leave_one_out(model)
    for i in range(model.n):
        others = np.arange(model.n) != i
        mean, std = model.condition(model.X[others], model.y[others]).posterior(model.X[i : i + 1])
        assert found.mean[i] == pytest.approx(mean[0], abs=1e-9)
        assert found.std[i] == pytest.approx(np.sqrt(std[0] ** 2 + model.noise_variance), rel=1e-8)


def test_values_drawn_from_the_model_are_calibrated():
    rng = np.random.default_rng(1)
    X = rng.random((400, 2))
    gp = sumbo.AdditiveGP([(0,), (1,)], lengthscales=0.3, noise_variance=0.05)
    y = gp.sample_path(rng)(X) + np.sqrt(0.05) * rng.standard_normal(400)
    found = leave_one_out(gp.condition(X, y))
    levels = np.array([0.2, 0.5, 0.8, 0.95])
    assert found.coverage(levels) == pytest.approx(levels, abs=0.08)
    sure = leave_one_out(sumbo.AdditiveGP([(0,), (1,)], lengthscales=0.3, noise_variance=1e-4).condition(X, y))
    assert sure.coverage(levels)[-1] < 0.8  # a model that takes noise for signal is found out


def test_past_the_exact_limit_some_stand_for_all():
    rng = np.random.default_rng(2)
    X = rng.random((2001, 1))
    y = np.sin(6 * X[:, 0]) + 0.1 * rng.standard_normal(2001)
    model = sumbo.AdditiveGP([(0,)], lengthscales=0.4, noise_variance=0.01).condition(X, y)
    found = leave_one_out(model)
    assert len(found.index) == 1000
    assert np.array_equal(found.y, y[found.index])
    assert np.std(found.y - found.mean) == pytest.approx(0.1, rel=0.1)


# --- effects -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("full_order", [False, True])
@pytest.mark.parametrize("j", [0, 1])
def test_effect_is_the_model_averaged_over_the_other_parameters(full_order, j):
    model = fitted(full_order=full_order)
    B = background(SPACE, np.random.default_rng(3))
    group = list(model.decomposition.groups[j])
    Z = SPACE.snap(np.random.default_rng(4).random((6, 3)))[:, group]
    mean, std = Effect(model, j, B)(Z)

    def averaged(z):
        """Points whose mean is the functional before centring: z in the group, the background elsewhere."""
        points = B.copy()
        points[:, group] = z
        return points

    others = np.vstack([averaged(b) for b in B[:, group]])
    for z, m, s in zip(Z, mean, std, strict=True):
        points = np.vstack([averaged(z), others])
        weights = np.concatenate([np.full(len(B), 1 / len(B)), np.full(len(others), -1 / len(others))])
        assert m == pytest.approx(weights @ model.posterior(points)[0], abs=1e-9)
        # Other groups are the same in all these points, so they cancel out of the covariance too.
        covariance = dense_covariance(model, points)
        assert s == pytest.approx(np.sqrt(weights @ covariance @ weights), rel=1e-6)


def dense_covariance(model, Z):
    """Posterior covariance of the sum at Z, by the formula."""

    def k(A, B):
        total = np.zeros((len(A), len(B)))
        parts = np.split(model.lengthscales, np.cumsum([len(g) for g in model.groups])[:-1])
        for group, lengthscale, scale in zip(model.groups, parts, model.scales, strict=True):
            r2 = np.zeros_like(total)
            for i, length in zip(group, lengthscale, strict=True):
                difference = A[:, i, None] - B[:, i]
                r2 += (difference != 0 if model.categories[i] else difference**2) / length**2
            r = np.sqrt(5 * r2)
            total += scale**2 * (1 + r + r**2 / 3) * np.exp(-r)
        return total

    K = k(model.X, model.X) + model.noise_variance * np.eye(model.n)
    cross = k(Z, model.X)
    return k(Z, Z) - cross @ np.linalg.solve(K, cross.T)


def test_the_dense_covariance_of_this_test_is_the_models():
    model = fitted()
    Z = SPACE.snap(np.random.default_rng(5).random((4, 3)))
    assert np.sqrt(np.diag(dense_covariance(model, Z))) == pytest.approx(model.posterior(Z)[1], rel=1e-6)


# --- a whole study ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def views():
    """The same objective minimised, and its negative maximised, on the same points."""
    rng = np.random.default_rng(0)
    points = rng.random((40, 3))

    def f(x):
        return 100.0 + 20.0 * (x[0] - 0.3) ** 2 + 5.0 * x[1]

    made = []
    for sign, direction in ((1.0, "minimize"), (-1.0, "maximize")):
        opt = sumbo.Optimizer([(0, 1)] * 3, direction=direction, seed=0)
        for x in points:
            opt.observe(x, sign * f(x))
        made.append(analysis_of(opt))
    return made


def test_effects_are_in_the_users_units_and_sign(views):
    low, high = np.array([[0.0]]), np.array([[1.0]])
    for view, sign in zip(views, (1.0, -1.0), strict=True):
        j = view.model.decomposition.groups.index((1,))
        rise = view.effect_unit * (view.effect(j)(high)[0][0] - view.effect(j)(low)[0][0])
        assert rise == pytest.approx(sign * 5.0, rel=0.1)


def test_predictions_are_in_the_users_units(views):
    for view in views:
        found = view.left_out
        predicted, observed = view.untransform(found.mean), view.values[found.index]
        assert np.corrcoef(predicted, observed)[0, 1] > 0.95
        assert np.abs(predicted - observed).mean() < 1.0


def test_a_search_that_never_asked_still_has_its_groups_learned():
    rng = np.random.default_rng(0)
    opt = sumbo.Optimizer([(0, 1)] * 4, seed=0)
    for _ in range(60):
        x = rng.random(4)
        opt.observe(x, float(np.sin(6 * x[0] * x[1]) + x[2]))
    assert (0, 1) in analysis_of(opt).model.decomposition.groups


def test_many_values_are_thinned_when_a_model_is_made_afterwards():
    rng = np.random.default_rng(0)
    opt = sumbo.Optimizer([(0, 1)] * 2, method="random", seed=0)
    for n in range(700):
        x = rng.random(2)
        if n % 10:
            opt.observe(x, float(x[0]))
        else:
            opt.observe(x, failed=True)
    view = analysis_of(opt)
    assert view.model.n == 500
    assert np.nanmin(view.values) == min(row.value for row in view.in_state("done"))
    assert view.untransform(view.model.y)[np.isfinite(view.values)] == pytest.approx(
        view.values[np.isfinite(view.values)]
    )
