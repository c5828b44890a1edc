"""Test functions: each claim a `Problem` makes about itself is checked against the function."""

import math
import pickle

import numpy as np
import pytest
from scipy.optimize import minimize

from sumbo import problems
from sumbo.errors import SettingError
from sumbo.problems import Problem
from sumbo.space import Space

# Every problem with the bounds of its box, small enough to search, plain and shifted.
CASES = [
    (problems.additive(5, 1, 3, seed=1), (-1, 1)),
    (problems.additive(7, 2, 3), (-1, 1)),
    (problems.additive(10, 3, 3, seed=2), (-1, 1)),
    (problems.additive(24, 11, 2), (-1, 1)),
    (problems.styblinski_tang(5), (-5, 5)),
    (problems.styblinski_tang(12, shift_seed=3), (-5, 5)),
    (problems.levy(1), (-10, 10)),
    (problems.levy(6), (-10, 10)),
    (problems.levy(8, shift_seed=1), (-10, 10)),
    (problems.rosenbrock(2), (-2, 2)),
    (problems.rosenbrock(6, shift_seed=4), (-2, 2)),
    (problems.rosenbrock(5, log=True, shift_seed=0), (-2, 2)),
    (problems.ackley(4), (-15, 15)),
    (problems.ackley(9, shift_seed=2), (-15, 15)),
    (problems.hartmann6(6), (0, 1)),
    (problems.hartmann6(11, seed=5), (0, 1)),
    (problems.powell(4), (-4, 5)),
    (problems.powell(12, shift_seed=1), (-4, 5)),
]
every_problem = pytest.mark.parametrize(
    ("problem", "box"), CASES, ids=[f"{i}-{problem.name}" for i, (problem, _) in enumerate(CASES)]
)


def uniform(problem, box, n, seed=0):
    return np.random.default_rng(seed).uniform(*box, (n, problem.dim))


def signed_gap(problem, value):
    """Positive where the value is worse than the optimum; unlike `regret`, not clipped."""
    return value - problem.optimum if problem.direction == "minimize" else problem.optimum - value


# --- what a problem claims


@every_problem
def test_the_optimiser_attains_the_optimum_inside_the_box(problem, box):
    assert problem(problem.optimiser) == pytest.approx(problem.optimum, abs=1e-9)
    assert np.all((box[0] <= problem.optimiser) & (problem.optimiser <= box[1]))


@every_problem
def test_no_random_point_is_better(problem, box):
    assert signed_gap(problem, problem.values(uniform(problem, box, 20_000))).min() >= -1e-9


@every_problem
def test_no_local_search_finds_better(problem, box):
    rng = np.random.default_rng(7)
    near = np.clip(problem.optimiser + 0.02 * (box[1] - box[0]) * rng.normal(size=(2, problem.dim)), *box)
    starts = [problem.optimiser, *near, *uniform(problem, box, 3, seed=8)]
    for start in starts:
        found = minimize(
            lambda x: signed_gap(problem, problem(x)),
            start,
            method="L-BFGS-B",
            bounds=[box] * problem.dim,
            options={"maxiter": 60},
        )
        assert found.fun >= -1e-9


@every_problem
def test_groups_and_irrelevant_dimensions_share_out_the_dimensions(problem, box):
    if problem.groups is None:
        assert problem.irrelevant == ()
        return
    listed = [i for group in problem.groups for i in group] + list(problem.irrelevant)
    assert sorted(listed) == list(range(problem.dim))
    assert all(type(i) is int for i in listed)


@every_problem
def test_swapping_one_group_keeps_the_sum(problem, box):
    """f(x) + f(y) stays the same if x and y exchange a whole group: f is additive over them."""
    x, y = uniform(problem, box, 200, seed=1), uniform(problem, box, 200, seed=2)
    before = problem.values(x) + problem.values(y)
    for group in problem.groups or ():
        one, other = x.copy(), y.copy()
        one[:, group], other[:, group] = y[:, group], x[:, group]
        np.testing.assert_allclose(problem.values(one) + problem.values(other), before, rtol=1e-10, atol=1e-9)


@every_problem
def test_splitting_a_true_group_breaks_the_sum(problem, box):
    """The groups are the finest possible: exchanging a part of one changes the sum."""
    x, y = uniform(problem, box, 200, seed=1), uniform(problem, box, 200, seed=2)
    before = problem.values(x) + problem.values(y)
    for group in problem.groups or (tuple(range(problem.dim)),):
        if len(group) == 1:
            continue
        one, other = x.copy(), y.copy()
        one[:, group[0]], other[:, group[0]] = y[:, group[0]], x[:, group[0]]
        assert np.abs(problem.values(one) + problem.values(other) - before).max() > 1e-6


@every_problem
def test_irrelevant_dimensions_do_nothing_and_all_others_matter(problem, box):
    x, fresh = uniform(problem, box, 200, seed=3), uniform(problem, box, 200, seed=4)
    before = problem.values(x)
    for i in range(problem.dim):
        moved = x.copy()
        moved[:, i] = fresh[:, i]
        assert np.array_equal(problem.values(moved), before) == (i in problem.irrelevant)


# --- formulas, once more as naive loops over plain floats


def naive_additive(x, groups_in_order):
    total = 0.0
    for group in groups_in_order:
        d = len(group)
        variance = 0.01 * d**0.1
        density = 0.0
        for weight, c1, c2, c in [
            (0.1, 0.62, -0.38, -0.66),
            (0.8, 0.18, 0.58, -0.19),
            (0.1, -0.58, -0.56, 0.62),
        ]:
            factor = weight
            for position, i in enumerate(group):
                centre = c1 if position == 0 else c2 if position == 1 else c
                step = x[i] - centre
                factor *= math.exp(-step * step / (2 * variance)) / math.sqrt(2 * math.pi * variance)
            density += factor
        total += max(-700.0, math.log(density)) if density > 0 else -700.0
    return total


def naive_styblinski_tang(x):
    return sum(v**4 - 16 * v**2 + 5 * v for v in x) / 2


def naive_levy(x):
    w = [1 + (v - 1) / 4 for v in x]
    total = math.sin(math.pi * w[0]) ** 2
    for v in w[:-1]:
        total += (v - 1) ** 2 * (1 + 10 * math.sin(math.pi * v + 1) ** 2)
    return total + (w[-1] - 1) ** 2 * (1 + math.sin(2 * math.pi * w[-1]) ** 2)


def naive_rosenbrock(x):
    return sum(100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2 for i in range(len(x) - 1))


def naive_ackley(x):
    n = len(x)
    radius = math.sqrt(sum(v * v for v in x) / n)
    waves = sum(math.cos(2 * math.pi * v) for v in x) / n
    return -20 * math.exp(-0.2 * radius) - math.exp(waves) + 20 + math.e


def naive_powell(x):
    total = 0.0
    for k in range(0, len(x), 4):
        a, b, c, d = x[k : k + 4]
        total += (a + 10 * b) ** 2 + 5 * (c - d) ** 2 + (b - 2 * c) ** 4 + 10 * (a - d) ** 4
    return total


CLASSICS = [  # constructor, naive formula, box, largest shift as a fraction of the box's width
    (problems.styblinski_tang, naive_styblinski_tang, (-5, 5), 0.1),
    (problems.levy, naive_levy, (-10, 10), 0.15),
    (problems.rosenbrock, naive_rosenbrock, (-2, 2), 0.1),
    (problems.ackley, naive_ackley, (-15, 15), 0.15),
    (problems.powell, naive_powell, (-4, 5), 0.1),
]


@pytest.mark.parametrize(("D", "d", "M", "seed"), [(5, 1, 3, 0), (10, 3, 3, 4), (24, 6, 4, 0), (9, 2, 4, 2)])
def test_additive_agrees_with_the_formula(D, d, M, seed):
    problem = problems.additive(D, d, M, seed)
    order = np.random.default_rng(1000 + seed).permutation(D)[: d * M].reshape(M, d)
    # Near the modes: further out the naive density underflows before its log reaches the floor.
    X = np.random.default_rng(0).uniform(-0.6, 0.6, (40, D))
    np.testing.assert_allclose(problem.values(X), [naive_additive(x, order) for x in X], rtol=1e-10)


def test_additive_is_floored_at_minus_700_per_group():
    problem = problems.additive(60, 30, 2)
    corner = np.where(np.arange(60) % 2, 1.0, -1.0)  # far from all three modes
    assert problem(corner) == -1400.0


@pytest.mark.parametrize("d", [1, 2, 3, 6, 18, 55])
def test_additive_optimum_is_the_second_centre_but_for_the_tails(d):
    problem = problems.additive(d, d, 1)
    order = np.random.default_rng(1000).permutation(d)
    centre = np.empty(d)
    centre[order] = [0.18, 0.58, *[-0.19] * d][:d]
    np.testing.assert_allclose(problem.optimiser, centre, atol=1e-5)
    assert 0 <= problem.optimum - problem(centre) < 1e-9
    if d > 1:
        assert problem.optimum - problem(centre) < 1e-12


@pytest.mark.parametrize(("make", "naive", "box", "fraction"), CLASSICS)
def test_classics_agree_with_their_formulas(make, naive, box, fraction):
    problem = make(8)
    X = uniform(problem, box, 40)
    np.testing.assert_allclose(problem.values(X), [naive(list(x)) for x in X], rtol=1e-10)


@pytest.mark.parametrize(("make", "naive", "box", "fraction"), CLASSICS)
def test_shifted_classics_agree_with_their_formulas(make, naive, box, fraction):
    seed, width = 6, box[1] - box[0]
    problem = make(8, shift_seed=seed)
    shift = np.random.default_rng(2000 + seed).uniform(-fraction, fraction, 8) * width
    order = np.random.default_rng(5000 + seed).permutation(8) if make is problems.powell else np.arange(8)
    X = uniform(problem, box, 40)
    np.testing.assert_allclose(problem.values(X), [naive(list((x - shift)[order])) for x in X], rtol=1e-9)
    np.testing.assert_allclose(problem.optimiser, make(8).optimiser + shift)
    assert problem.optimum == make(8).optimum


def test_log_rosenbrock():
    plain, logged = problems.rosenbrock(6, shift_seed=1), problems.rosenbrock(6, log=True, shift_seed=1)
    X = uniform(plain, (-2, 2), 40)
    np.testing.assert_allclose(logged.values(X), np.log(1 + plain.values(X)), rtol=1e-12)


def test_hartmann6_against_published_values():
    problem = problems.hartmann6(9, seed=2)
    active = np.random.default_rng(3002).permutation(9)[:6]
    x = np.full(9, 0.123)
    x[active] = [0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573]
    assert problem(x) == pytest.approx(-3.32237, abs=1e-5)
    assert problem.groups == (tuple(sorted(active)),)


def test_true_groups():
    assert problems.levy(3).groups == ((0,), (1,), (2,))
    assert problems.styblinski_tang(2).groups == ((0,), (1,))
    assert problems.powell(8).groups == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert problems.powell(8, shift_seed=0).groups != problems.powell(8).groups
    assert problems.rosenbrock(3).groups is None
    assert problems.ackley(3).groups is None
    assert [len(group) for group in problems.additive(10, 3, 3).groups] == [3, 3, 3]
    assert len(problems.additive(10, 3, 3).irrelevant) == 1


def test_seeds_fix_the_groups():
    assert problems.additive(24, 6, 4, seed=1).groups == problems.additive(24, 6, 4, seed=1).groups
    assert problems.additive(24, 6, 4, seed=1).groups != problems.additive(24, 6, 4, seed=2).groups


# --- how a problem is called


def test_one_point_as_array_list_and_dict():
    problem = problems.levy(3, shift_seed=0)
    x = [1.0, -2.0, 3.0]
    value = problem(np.array(x))
    assert type(value) is float
    assert problem(x) == value
    assert problem(dict(zip(problem.space.names, x, strict=True))) == value
    assert problem.dim == 3


@every_problem
def test_values_agree_with_single_calls_and_mutate_nothing(problem, box):
    X = uniform(problem, box, 5)
    kept = X.copy()
    values = problem.values(X)
    assert values.shape == (5,)
    assert values.dtype == np.float64
    np.testing.assert_allclose([problem(x) for x in X], values, rtol=1e-12)
    np.testing.assert_array_equal(X, kept)


@every_problem
def test_pickles(problem, box):
    X = uniform(problem, box, 3)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(problem)).values(X), problem.values(X))


def test_wrong_shapes():
    problem = problems.levy(3)
    with pytest.raises(SettingError, match=r"levy-3 expects one point of shape \(3,\), got shape \(2,\)"):
        problem([1.0, 2.0])
    with pytest.raises(SettingError, match=r"for many points call \.values"):
        problem(np.zeros((2, 3)))
    with pytest.raises(SettingError, match=r"points of shape \(n, 3\), got shape \(3,\)"):
        problem.values(np.zeros(3))
    with pytest.raises(SettingError, match="numbers in a sequence"):
        problem(["a", "b", "c"])
    with pytest.raises(ValueError, match="x2"):
        problem({"x0": 0.0, "x1": 0.0})


def test_regret_looks_the_right_way():
    low, high = problems.levy(3), problems.additive(4, 2, 2)
    assert low.regret(2.5) == 2.5
    assert high.regret(high.optimum - 2.5) == 2.5
    assert low.regret(-1e-12) == 0.0
    assert high.regret(high.optimum + 1e-12) == 0.0
    assert math.isnan(low.regret(math.nan))


def test_the_optimiser_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        problems.levy(3).optimiser[0] = 0.0


def test_a_problem_of_ones_own_is_checked():
    space = Space.from_bounds([(0.0, 1.0)] * 2)
    fields = {"name": "mine", "space": space, "optimum": 0.0, "evaluate": lambda X: X.sum(axis=1)}
    assert Problem(**fields, direction="minimize", optimiser=np.zeros(2))([0.25, 0.5]) == 0.75
    with pytest.raises(SettingError, match=r"optimiser must have shape \(2,\)"):
        Problem(**fields, direction="minimize", optimiser=np.zeros(3))
    with pytest.raises(SettingError, match="direction must be"):
        Problem(**fields, direction="down", optimiser=np.zeros(2))


# --- noise


def test_noise_is_on_calls_only():
    problem = problems.levy(4, shift_seed=0)
    noisy = problem.noisy(0.5, seed=3)
    x = np.zeros(4)
    draws = np.random.default_rng(3).normal(0.0, 0.5, 5)
    np.testing.assert_allclose([noisy(x) - problem(x) for _ in range(5)], draws, atol=1e-12)
    assert noisy.values(x[None])[0] == problem(x)
    assert (noisy.name, noisy.optimum, noisy.groups) == (problem.name, problem.optimum, problem.groups)
    assert problem.noise is None


def test_noise_repeats_with_its_seed():
    problem = problems.additive(6, 2, 3)
    x = np.zeros(6)

    def three_calls(seed):
        noisy = problem.noisy(1.0, seed)
        return [noisy(x) for _ in range(3)]

    assert three_calls(1) == three_calls(1)
    assert three_calls(1) != three_calls(2)
    assert len(set(three_calls(1))) == 3
    assert problem.noisy(0.0)(x) == problem(x)


@pytest.mark.parametrize("std", [-1.0, np.nan, np.inf])
def test_noise_needs_a_proper_std(std):
    with pytest.raises(SettingError, match="std must be a finite number >= 0"):
        problems.levy(2).noisy(std)


# --- sizes and names


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: problems.additive(10, 3, 4), r"4 x 3 = 12 > 10; use at least D = 12"),
        (lambda: problems.additive(0, 1, 1), "D must be a whole number of at least 1, got 0"),
        (lambda: problems.additive(4, -2, 1), "d must be a whole number of at least 1, got -2"),
        (lambda: problems.additive(4, 2, 1.5), "M must be a whole number of at least 1, got 1.5"),
        (lambda: problems.additive(4, 2, 1, seed=-1), "seed must be a whole number of at least 0"),
        (lambda: problems.levy(0), "at least 1"),
        (lambda: problems.styblinski_tang(0), "at least 1"),
        (lambda: problems.ackley(0), "at least 1"),
        (lambda: problems.rosenbrock(1), "at least 2"),
        (lambda: problems.hartmann6(5), "at least 6"),
        (lambda: problems.powell(3), "at least 4"),
        (lambda: problems.powell(10), "multiple of 4.*got 10, use 8"),
        (lambda: problems.levy(2, shift_seed=-1), "shift_seed must be a whole number of at least 0"),
    ],
)
def test_bad_sizes(make, message):
    with pytest.raises(SettingError, match=message):
        make()


@pytest.mark.parametrize("name", problems.names())
def test_every_name_is_found(name):
    problem = problems.get(name, seed=1)
    assert problem.name == name
    assert problem(problem.optimiser) == pytest.approx(problem.optimum, abs=1e-9)


def test_get_passes_sizes_and_seed():
    assert problems.get("additive-40-5-8", seed=3).groups == problems.additive(40, 5, 8, seed=3).groups
    assert problems.get("hartmann6-20", seed=3).groups == problems.hartmann6(20, seed=3).groups
    x = np.full(12, 0.3)
    assert problems.get("levy-12", seed=3)(x) == problems.levy(12, shift_seed=3)(x)
    assert problems.get("rosenbrock-12", seed=3)(x) == problems.rosenbrock(12, shift_seed=3)(x)
    assert problems.get("rosenbrock-log-12")(x) == problems.rosenbrock(12, log=True, shift_seed=0)(x)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("levi-30", "unknown problem 'levi-30'; did you mean 'levy-30'"),
        ("styblinski_tang-12", "did you mean 'styblinski-tang-12'"),
        ("aditive-24", "did you mean 'additive-24-6-4'"),
        ("levy-x", "did you mean 'levy-30'"),
        ("zzz", "known are, in any size: additive-24-6-4, levy-30"),
        ("", "known are"),
        ("levy", "needs 1 size.*got 0.*write it as 'levy-30'"),
        ("additive-24-6", "needs 3 size.*got 2.*write it as 'additive-24-6-4'"),
        ("levy-0", "D must be a whole number of at least 1"),
    ],
)
def test_unknown_names(name, message):
    with pytest.raises(SettingError, match=message):
        problems.get(name)
