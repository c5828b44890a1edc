"""What a report computes, against what it stands for: refitting without a point, averaging over the space, units."""

import numpy as np
import pytest
from reports import constrained, contextual

import sumbo
from sumbo.insights.analysis import analysis_of, leave_one_out
from sumbo.insights.effects import Effect, EffectWithin, Pool, background, shares, weighted_sum
from sumbo.plot.style import number
from sumbo.space import Space
from sumbo.space.region import Region

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


# --- points that exist and are allowed -----------------------------------------------------------------------


def test_a_weighted_sum_of_values_is_that_of_the_dense_formula():
    model = fitted()
    Z, w = SPACE.snap(np.random.default_rng(5).random((4, 3))), np.array([0.5, 0.5, -2.0, 1.0])
    mean, std = weighted_sum(model, Z, w)
    assert mean == pytest.approx(w @ model.posterior(Z)[0], abs=1e-9)
    assert std == pytest.approx(np.sqrt(w @ dense_covariance(model, Z) @ w), rel=1e-6)


TREE = Space(
    {
        "kind": sumbo.Categorical(["x", "y"]),
        "depth": sumbo.Float(0, 1, when={"kind": "x"}),
        "rate": sumbo.Float(0, 1),
    }
)
TRIANGLE = Space({n: sumbo.Float(0, 1) for n in "abc"}, constraints=[sumbo.Linear({"a": 1, "b": 1}, upper=1.0)])
SHARES = Space({n: sumbo.Float(0, 1) for n in "abc"}, constraints=[sumbo.SumTo(["a", "b", "c"], 1.0)])


def within(space, f, groups, n=60):
    """A model of a function of points of the cube, at allowed points."""
    X = Region(space, space.constraints).sample(n, np.random.default_rng(0))
    y = np.array([f(space.from_unit(x)) for x in X])
    return sumbo.AdditiveGP(groups, categories=np.where(space.nominal, space.levels, 0)).fit(X, y - y.mean())


def of_tree(p):
    return (2.0 if p["kind"] == "y" else 0.0) + 3.0 * p.get("depth", 0.0) + p["rate"]


def test_shares_where_a_parameter_does_not_always_exist():
    """Against the function itself: to change `kind` brings `depth` with it, which changes nothing where it is not."""
    model = within(TREE, of_tree, [(0,), (1,), (2,)])
    found = shares(model, TREE, np.random.default_rng(0))
    A, B = np.random.default_rng(1).random((2, 4000, 3))
    f = np.array([of_tree(TREE.from_unit(a)) for a in A])
    for i in range(3):
        moved = np.where(np.arange(3) == i, B, A)
        change = f - [of_tree(TREE.from_unit(a)) for a in moved]
        assert found.parameters[0, i] == pytest.approx(np.mean(change**2) / (2 * f.var()), abs=0.04)
    # Var f = 1/4 (2 - 3/2)^2 + 1/2 (9/12) + 1/12; what `depth` adds by existing, 3/2, is of `kind`.
    parts = np.array([1 / 16, 3 / 8, 1 / 12])
    assert found.groups[0] == pytest.approx(parts / parts.sum(), abs=0.04)


def test_effects_where_a_parameter_does_not_always_exist():
    model = within(TREE, of_tree, [(0,), (1,), (2,)])
    pool = Pool(TREE, np.random.default_rng(0))
    places = np.array([[0.0], [0.5], [1.0]])
    mean, _ = EffectWithin(model, 1, pool, [1])(places)
    assert np.diff(mean) == pytest.approx([1.5, 1.5], abs=0.1)
    mean, _ = EffectWithin(model, 0, pool, [0])(np.array([[0.25], [0.75]]))
    assert mean[1] - mean[0] == pytest.approx(2.0 - 1.5, abs=0.2)  # a typical depth is part of what the kind does


def test_effects_are_averages_over_allowed_points_with_these_values():
    model = within(TRIANGLE, lambda p: p["a"] * p["b"] + p["c"], [(0, 1, 2)])
    region, pool = Region(TRIANGLE, TRIANGLE.constraints), Pool(TRIANGLE, np.random.default_rng(0))
    effect = EffectWithin(model, 0, pool, [0, 1])
    Z = np.array([[0.2, 0.3], [0.8, 0.1], [0.8, 0.4]])
    mean, std = effect(Z)
    assert np.isnan(mean).tolist() == np.isnan(std).tolist() == [False, False, True]
    for z, m in zip(Z[:2], mean[:2], strict=True):
        points = pool.having([0, 1], z)
        assert region.contains(points).all()
        assert (points[:, :2] == z).all()
        assert m == pytest.approx(model.posterior(points)[0].mean() - model.posterior(effect._B)[0].mean(), abs=1e-9)


def test_what_is_tied_moves_with_what_it_is_tied_to():
    pool = Pool(SHARES, np.random.default_rng(0))
    points = pool.having([0], np.array([0.7]))
    assert points[:, 0] == pytest.approx(0.7)
    assert points.sum(axis=1) == pytest.approx(1.0)
    assert np.ptp(points[:, 1]) > 0.1
    assert len(pool.having([0, 1], np.array([0.7, 0.6]))) == 0
    model = within(SHARES, lambda p: 5.0 * p["a"], [(0, 1, 2)])
    found = shares(model, SHARES, np.random.default_rng(0)).parameters[0]
    assert found[0] > 2 * max(found[1:])  # b and c count by what a does for them


def test_shares_are_over_allowed_points_only():
    """Outside there is a cliff that nobody can fall off."""
    space = Space({n: sumbo.Float(0, 1) for n in "ab"}, constraints=[sumbo.Linear({"a": 1}, upper=0.5)])
    model = within(space, lambda p: p["a"] + p["b"], [(0,), (1,)])
    found = shares(model, space, np.random.default_rng(0)).parameters[0]
    assert found == pytest.approx([0.2, 0.8], abs=0.03)  # variances of [0, 1/2] and [0, 1]


# --- constraints told with the values --------------------------------------------------------------------------


def told(f, c, n=25, **settings):
    opt = sumbo.Optimizer([(0, 1)] * 2, seed=0, constraints=["c"], **settings)
    for x in np.random.default_rng(0).random((n, 2)):
        opt.observe(x, f(x), constraints={"c": c(x)})
    return analysis_of(opt)


def test_a_constraint_that_forbids_what_is_better_binds():
    (row,) = told(lambda x: x[0] + 0.1 * x[1], lambda x: 0.5 - x[0]).constraint_rows
    assert row.binds > 0.95
    assert row.without < 0.1
    assert row.holds > 0.9
    (row,) = told(lambda x: -x[0] - 0.1 * x[1], lambda x: 0.5 - x[0], direction="maximize").constraint_rows
    assert row.binds > 0.95  # the same, upside down
    (row,) = told(lambda x: -x[0], lambda x: 0.5 - x[0]).constraint_rows
    assert row.binds < 0.05


def test_a_constraint_on_what_does_not_matter_does_not_bind():
    (row,) = told(lambda x: x[0], lambda x: x[1] - 0.5).constraint_rows
    assert row.binds < 0.05


def test_facts_of_constraints_need_no_model():
    view = told(lambda x: x[0], lambda x: x[1] - 0.5, n=6)
    (row,) = view.constraint_rows
    assert row.kept == np.mean([t.constraints["c"] <= 0 for t in view.rows])
    assert row.at_best == view.best.constraints["c"]
    assert (row.holds, row.binds, row.without) == (None, None, None)


def test_the_report_recommends_what_the_optimizer_does():
    opt = constrained()
    view, found = analysis_of(opt), opt.recommend()
    assert view.recommendation == found
    assert np.array_equal(view.recommendation.x, found.x)
    mean, std = opt.predict([view.best.params])
    assert (view.best_value.mean, view.best_value.std) == (mean[0], std[0])
    opt = contextual()
    latest = {"ambient": opt.trials[-1].params["ambient"]}
    assert analysis_of(opt).recommendation == opt.recommend(context=latest)


def test_lucky_values_are_not_trusted():
    rng = np.random.default_rng(0)
    opt = sumbo.Optimizer([(0, 1)], seed=0)
    for x in rng.random(40):
        opt.observe([x], (x - 0.5) ** 2 + rng.normal(0, 0.3))
    opt.observe([0.5], -2.0)
    found = analysis_of(opt).best_value
    assert not found.trusted
    assert "luck" in str(found)
    opt.observe([0.9], -5.0, std=10.0)  # as bad as its own noise
    assert analysis_of(opt).best_value.trusted
    exact = sumbo.Optimizer([(0, 1)], seed=0)
    for x in rng.random(15):
        exact.observe([x], (x - 0.5) ** 2)
    assert "next to no noise" in str(analysis_of(exact).best_value)


def test_many_values_with_constraints_are_thinned_together():
    view = told(lambda x: x[0], lambda x: x[1] - 0.5, n=600)
    assert view.model.n == 500
    assert view.values[view.best_observation] == view.best.value
    assert len(view.constraint_rows) == 1


def test_numbers_have_the_digits_of_their_step():
    space = Space(
        {"s": sumbo.Float(1000, 2000, step=0.001), "h": sumbo.Float(0.5, 10.5, step=10), "f": sumbo.Float(0, 1)}
    )
    view = analysis_of(sumbo.Optimizer(space, seed=0))
    shown = [number(view.in_digits(name, value)) for name, value in (("s", 1234.5), ("h", 10.5), ("f", 1 / 3))]
    assert shown == ["1234.500", "10.5", "0.333333"]


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
