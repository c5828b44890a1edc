"""Maximisers: against scipy and brute force, inside the cube, each search by itself."""

import numpy as np
import pytest
from scipy import optimize as scipy_optimize

from sumbo.acquisition import optimize


def quadratic(A, centre):
    """-(x - c)^T A (x - c) and its gradient, by rows."""

    def function(Z):
        step = Z - centre
        return -np.einsum("sd,de,se->s", step, A, step), -2.0 * step @ A

    return function


def random_quadratic(seed, D, *, outside):
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(D, D))
    A = B @ B.T / D + 0.1 * np.eye(D)
    centre = rng.uniform(-0.6, 1.6, D) if outside else rng.uniform(0.2, 0.8, D)
    return quadratic(A, centre), rng.random((5, D))


def rosenbrock(Z):
    """-Rosenbrock on [-2, 2]^D, seen from the unit cube."""
    x = 4.0 * Z - 2.0
    a, b = x[:, :-1], x[:, 1:]
    value = -np.sum(100.0 * (b - a**2) ** 2 + (1.0 - a) ** 2, axis=1)
    gradient = np.zeros_like(x)
    gradient[:, :-1] += 400.0 * a * (b - a**2) + 2.0 * (1.0 - a)
    gradient[:, 1:] -= 200.0 * (b - a**2)
    return value, 4.0 * gradient


def bumpy(Z):
    """A sum of sines with several tops, so that starts end in different places."""
    w = np.array([9.0, 7.0, 11.0])
    return np.sin(w * Z).sum(axis=1), w * np.cos(w * Z)


def watched(function):
    """The function, and the list of every point it was called with."""
    calls = []

    def inner(Z):
        calls.append(Z.copy())
        return function(Z)

    return inner, calls


# --- ascend -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("D", [1, 2, 5, 20])
@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_ascend_finds_what_scipy_finds_on_quadratics(seed, D, outside):
    function, starts = random_quadratic(seed, D, outside=outside)
    points, values = optimize.ascend(function, starts, rounds=300, tolerance=1e-10)

    def negative(x):
        f, g = function(x[None])
        return -f[0], -g[0]

    best = scipy_optimize.minimize(
        negative,
        starts[0],
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, 1)] * D,
        options={"ftol": 1e-15, "gtol": 1e-10},
    )
    # concave: every start climbs the same top
    np.testing.assert_allclose(values, -best.fun, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(points, np.tile(best.x, (5, 1)), atol=5e-3)
    np.testing.assert_allclose(values, function(points)[0], rtol=1e-12)


def test_ascend_goes_to_the_corner_of_a_linear_function():
    slope = np.array([1.0, -2.0, 0.5])
    points, _ = optimize.ascend(lambda Z: (Z @ slope, np.tile(slope, (len(Z), 1))), np.full((1, 3), 0.4))
    assert points.tolist() == [[1.0, 0.0, 1.0]]


@pytest.mark.parametrize("D", [2, 5])
def test_ascend_follows_the_valley_of_rosenbrock(D):
    starts = np.random.default_rng(D).random((4, D))
    points, values = optimize.ascend(rosenbrock, starts, rounds=2000, tolerance=1e-12)
    assert values.max() > -1e-4  # in 5 dimensions there is a second, lower top
    np.testing.assert_allclose(points[values.argmax()], 0.75, atol=0.01)


def test_ascend_never_goes_down():
    starts = np.random.default_rng(3).random((30, 3))
    for rounds in (0, 1, 5, 60):
        _, values = optimize.ascend(bumpy, starts, rounds=rounds)
        assert (values >= bumpy(starts)[0]).all()


@pytest.mark.parametrize("function", [bumpy, rosenbrock, random_quadratic(5, 3, outside=True)[0]])
def test_ascend_never_leaves_the_cube(function):
    inner, calls = watched(function)
    starts = np.random.default_rng(4).uniform(-0.5, 1.5, (20, 3))
    points, _ = optimize.ascend(inner, starts)
    visited = np.vstack([*calls, points])
    assert visited.min() >= 0.0
    assert visited.max() <= 1.0


def test_searches_do_not_influence_each_other():
    starts = np.random.default_rng(6).random((12, 3))
    points, values = optimize.ascend(bumpy, starts)
    for i, start in enumerate(starts):
        alone, value = optimize.ascend(bumpy, start[None])
        np.testing.assert_allclose(alone[0], points[i], rtol=0, atol=1e-12)
        np.testing.assert_allclose(value[0], values[i], rtol=0, atol=1e-12)


def test_searches_do_not_influence_each_other_when_one_takes_long():
    centre = np.array([0.3, 0.6])
    easy = quadratic(np.eye(2), centre)

    def function(Z):  # a quadratic on the left, Rosenbrock on the right
        f, g = easy(Z)
        hard, hard_g = rosenbrock(Z)
        right = Z[:, 0] > 0.5
        return np.where(right, hard, f), np.where(right[:, None], hard_g, g)

    starts = np.array([[0.2, 0.2], [0.9, 0.2], [0.35, 0.55], [0.6, 0.9]])
    points, _ = optimize.ascend(function, starts)
    for i, start in enumerate(starts):
        np.testing.assert_allclose(optimize.ascend(function, start[None])[0][0], points[i], rtol=0, atol=1e-12)


@pytest.mark.parametrize("hole", [np.nan, np.inf, -np.inf])
def test_regions_without_a_value_do_no_harm(hole):
    function, _ = random_quadratic(7, 2, outside=False)

    def holed(Z):
        f, g = function(Z)
        bad = Z[:, 0] > 0.9
        return np.where(bad, hole, f), np.where(bad[:, None], np.nan, g)

    starts = np.array([[0.1, 0.5], [0.95, 0.5], [0.85, 0.1]])  # the second has no value to begin with
    points, values = optimize.ascend(holed, starts)
    top = optimize.ascend(function, starts[:1], tolerance=1e-10)[1][0]
    assert values[[0, 2]] == pytest.approx(top, abs=1e-4)
    assert points[1].tolist() == [0.95, 0.5]


def test_ascend_leaves_starts_alone():
    starts = np.random.default_rng(8).random((3, 3))
    kept = starts.copy()
    points, _ = optimize.ascend(bumpy, starts)
    assert np.array_equal(starts, kept)
    assert not np.shares_memory(points, starts)


def test_ascend_stops_when_told():
    inner, calls = watched(bumpy)
    answers = iter([False, False, True])
    starts = np.random.default_rng(9).random((3, 3))
    _, values = optimize.ascend(inner, starts, stop=lambda: next(answers))
    assert len(calls) == 3  # the starts and two rounds
    assert (values >= bumpy(starts)[0]).all()


def test_ascend_spends_at_most_its_rounds():
    inner, calls = watched(rosenbrock)
    optimize.ascend(inner, np.full((2, 4), 0.1), rounds=7)
    assert len(calls) == 8


def test_ascend_is_content_at_a_flat_place():
    points, values = optimize.ascend(lambda Z: (np.zeros(len(Z)), np.zeros_like(Z)), np.full((2, 3), 0.4))
    assert points.tolist() == [[0.4] * 3] * 2
    assert values.tolist() == [0.0, 0.0]


# --- direct -------------------------------------------------------------------------------------------------


def smooth(Z):
    return np.cos(Z - np.array([0.23, 0.71, 0.52])[: Z.shape[1]]).sum(axis=1)


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("budget", [1, 2, 10, 99, 500, 2000])
def test_direct_spends_exactly_its_budget(dim, budget):
    inner, calls = watched(lambda Z: -np.square(Z - 0.3).sum(axis=1))
    optimize.direct(inner, dim, budget)
    assert len(calls) == budget
    assert {c.shape for c in calls} == {(1, dim)}


def test_direct_returns_the_best_point_it_saw():
    inner, calls = watched(smooth)
    x, value = optimize.direct(inner, 3, 77)
    values = smooth(np.vstack(calls))
    assert value == values.max()
    assert x.tolist() == np.vstack(calls)[values.argmax()].tolist()


def test_direct_begins_at_the_centre():
    inner, calls = watched(smooth)
    x, value = optimize.direct(inner, 3, 1)
    assert x.tolist() == calls[0][0].tolist() == [0.5, 0.5, 0.5]
    assert value == smooth(np.full((1, 3), 0.5))[0]


def test_direct_finds_a_smooth_maximum():
    x, value = optimize.direct(smooth, 3, 2000)
    np.testing.assert_allclose(x, [0.23, 0.71, 0.52], atol=0.01)
    assert value == pytest.approx(3.0, abs=1e-4)


def test_direct_stops_when_told():
    inner, calls = watched(smooth)
    _, value = optimize.direct(inner, 3, 1000, stop=lambda: len(calls) >= 12)
    assert len(calls) == 12
    assert value == smooth(np.vstack(calls)).max()


def test_direct_told_to_stop_at_once_still_answers():
    x, _ = optimize.direct(smooth, 3, 1000, stop=lambda: True)
    assert x.shape == (3,)
    assert ((x >= 0) & (x <= 1)).all()


def test_errors_of_the_function_come_through_direct():
    def broken(Z):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        optimize.direct(broken, 2, 10)


# --- best_of, polish ----------------------------------------------------------------------------------------


def test_best_of():
    candidates = np.random.default_rng(0).random((50, 3))
    x, value = optimize.best_of(smooth, candidates)
    assert value == smooth(candidates).max()
    assert x.tolist() == candidates[smooth(candidates).argmax()].tolist()


def test_best_of_takes_the_first_of_equals():
    x, value = optimize.best_of(lambda Z: np.zeros(len(Z)), np.array([[0.1], [0.2]]))
    assert (x.tolist(), value) == ([0.1], 0.0)


def test_best_of_passes_over_what_has_no_value():
    x, value = optimize.best_of(lambda Z: np.array([0.5, np.nan, 0.7]), np.array([[0.1], [0.2], [0.3]]))
    assert (x.tolist(), value) == ([0.3], 0.7)


GRIDS = [(0, (np.arange(4) + 0.5) / 4), (2, (np.arange(7) + 0.5) / 7)]


@pytest.mark.parametrize("seed", range(5))
def test_polish_ends_where_no_single_change_helps(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(3, 3))

    def value(Z):
        return np.sin(8.0 * Z @ A).sum(axis=1)

    start = np.array([GRIDS[0][1][0], 0.37, GRIDS[1][1][3]])
    x = optimize.polish(value, start, GRIDS, rounds=100)
    best = value(x[None])[0]
    assert best >= value(start[None])[0]
    assert x[1] == 0.37  # not a discrete dimension
    for i, grid in GRIDS:
        assert x[i] in grid
        neighbours = np.tile(x, (len(grid), 1))
        neighbours[:, i] = grid
        assert value(neighbours).max() <= best + 1e-12  # sums of many rows round differently from those of one


def test_polish_leaves_its_point_alone_and_works_without_choices():
    start = np.array([0.125, 0.3, 0.5])
    optimize.polish(smooth, start, GRIDS)
    assert start.tolist() == [0.125, 0.3, 0.5]
    assert optimize.polish(smooth, start, []).tolist() == start.tolist()
    assert optimize.polish(smooth, start, [(0, np.array([0.125]))]).tolist() == start.tolist()


def test_polish_keeps_to_its_rounds():
    changes = np.tile(np.array([0.9, 0.1, 0.9]), (1, 1))
    start = changes[0]
    one = optimize.polish(smooth, start, GRIDS, rounds=1)
    assert np.sum(one != start) == 1
