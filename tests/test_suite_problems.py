"""The suite's problems: values are numbers, optima are not beaten, groups are true, and the two sets are apart."""

import sys
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import suite_synthetic as synthetic
from suite_problems import DEVELOPMENT, LONG, TEST

from sumbo.problems import ackley, hartmann6, levy, powell, rosenbrock, styblinski_tang

ALL = DEVELOPMENT | TEST
SYNTHETIC = [name for name, entry in ALL.items() if not entry.real]
REAL = [name for name, entry in ALL.items() if entry.real]


@cache
def made(name):
    return ALL[name].make(0)


def points(space, count, seed=0):
    """Random points, some corners and the centre."""
    rng = np.random.default_rng(seed)
    ends = [np.zeros(space.dim), np.ones(space.dim), np.full(space.dim, 0.5)]
    corners = rng.integers(0, 2, (3, space.dim)).astype(float)
    return [space.from_unit(u) for u in [*rng.random((count, space.dim)), *ends, *corners]]


def worse(task, value):
    """How much worse than the optimum."""
    return value - task.optimum if task.direction == "minimize" else task.optimum - value


# --- the sets ---


@pytest.mark.parametrize("problems", [DEVELOPMENT, TEST])
def test_a_set_has_twelve_real_and_twelve_synthetic_problems_of_8_to_1000_parameters(problems):
    assert sum(entry.real for entry in problems.values()) >= 12
    assert sum(not entry.real for entry in problems.values()) >= 12
    dims = [entry.dim for entry in problems.values()]
    assert min(dims) <= 9
    assert max(dims) == 1000
    assert {entry.budget for entry in problems.values()} == {200}
    assert sum(name in problems for name in LONG) == 4


def test_the_sets_have_no_problem_in_common():
    assert not DEVELOPMENT.keys() & TEST.keys()
    assert set(LONG) <= ALL.keys()
    real = [{repr(entry.make) for entry in problems.values() if entry.real} for problems in (DEVELOPMENT, TEST)]
    assert not real[0] & real[1]


def test_nothing_but_sumbo_is_needed_for_synthetic_ones():
    assert all(not ALL[name].needs for name in SYNTHETIC)
    assert all(ALL[name].needs for name in REAL)


# --- synthetic ones ---


@pytest.mark.parametrize("name", SYNTHETIC)
def test_values_are_numbers_that_depend_on_the_seed_alone(name):
    entry = ALL[name]
    first, again, other = made(name), entry.make(0), entry.make(1)
    assert first.space.dim == entry.dim
    tried = points(first.space, 20)
    values = [first.value(p) for p in tried]
    assert np.isfinite(values).all()
    assert values == [again.value(p) for p in tried]
    if other.space == first.space:  # of `mixed`, the seed fixes which parameter is what
        assert values != [other.value(p) for p in tried]


@pytest.mark.parametrize("name", SYNTHETIC)
def test_the_optimum_is_not_beaten(name):
    task = made(name)
    tried = points(task.space, 200 if task.space.dim <= 100 else 20)
    values = [worse(task, task.value(p)) for p in tried]
    assert min(values) >= 0
    if task.space.levels.any() or task.space.dim > 60:
        return
    start = task.space.to_unit(tried[int(np.argmin(values))])
    end = minimize(
        lambda u: worse(task, task.value(task.space.from_unit(u))),
        start,
        method="L-BFGS-B",
        bounds=[(0, 1)] * len(start),
        options={"maxfun": 300},
    )
    assert end.fun >= -1e-9 * max(1.0, abs(task.optimum))


@pytest.mark.parametrize("name", SYNTHETIC)
def test_parameters_interact_within_groups_alone(name):
    task = made(name)
    if task.groups is None:
        return
    group = {i: g for g, dims in enumerate(task.groups) for i in dims}
    assert sum(map(len, task.groups)) == len(group)  # disjoint
    rng = np.random.default_rng(0)

    def interaction(i, j):
        """The mixed second difference, of random steps, relative to the values."""
        u, v = rng.random((2, task.space.dim))
        values = []
        for changed in ((), (i,), (j,), (i, j)):
            x = u.copy()
            x[list(changed)] = v[list(changed)]
            values.append(task.value(task.space.from_unit(x)))
        return abs(values[0] - values[1] - values[2] + values[3]) / max(map(abs, values))

    for _ in range(40):
        i, j = rng.choice(task.space.dim, 2, replace=False)
        if i not in group or group.get(i) != group.get(j):
            assert interaction(i, j) < 1e-11
    for dims in task.groups[:5]:
        for i in dims if len(dims) > 1 else ():
            assert max(interaction(i, j) for j in dims if j != i for _ in range(3)) > 1e-11


TEXTBOOKS = {
    "rastrigin": (partial(synthetic.rastrigin, 6), "shift"),
    "griewank": (partial(synthetic.griewank, 6), "shift"),
    "dixon-price": (partial(synthetic.dixon_price, 6), "shift"),
    "ellipsoid": (partial(synthetic.ellipsoid, 6), "shift"),
    "branin": (partial(synthetic.branin_pairs, 6), "bend"),
    "himmelblau": (partial(synthetic.himmelblau_pairs, 6), "bend"),
    "camel": (partial(synthetic.camel_pairs, 6), "bend"),
    "shekel": (synthetic.shekel, "bend"),
    "levy": (partial(synthetic.ours, levy, 6), "shift"),
    "powell": (partial(synthetic.ours, powell, 8), "shift"),
    "rosenbrock": (partial(synthetic.ours, rosenbrock, 6, log=True), "shift"),
    "ackley": (partial(synthetic.ours, ackley, 6), "shift"),
    "hartmann6": (partial(synthetic.ours, hartmann6, 6), "bend"),
    "styblinski-tang": (partial(synthetic.ours, styblinski_tang, 6), "bend"),
}


@pytest.mark.parametrize("name", TEXTBOOKS)
def test_the_optimum_is_where_it_was_moved(name):
    textbook, by = TEXTBOOKS[name]
    base = textbook()
    assert base.values(base.at[None])[0] == pytest.approx(base.optimum, abs=1e-11)
    d, D = len(base.at), 20
    task = synthetic.moved(name, textbook, 3, D=D, by=by)
    rng = synthetic._rng(name, 3)
    u = np.full(D, 0.5)
    dims = rng.permutation(D)[:d]
    u[dims] = rng.uniform(0.1, 0.9, d)
    assert task.value(task.space.from_unit(u)) == pytest.approx(base.optimum, abs=1e-8)
    u[dims[0]] += 0.05
    assert task.value(task.space.from_unit(u)) > base.optimum + 1e-6


def test_one_peak_is_highest_at_its_centre():
    task = synthetic.peaks("one", 2, 2, 1, 0)
    best = minimize(
        lambda u: -task.value({"x0": u[0], "x1": u[1]}), [0.5, 0.5], bounds=[(0, 1)] * 2, method="Nelder-Mead"
    )
    assert -best.fun == pytest.approx(task.optimum, abs=1e-6)
    assert best.x.min() >= 0.1 - 1e-3
    assert best.x.max() <= 0.9 + 1e-3


@pytest.mark.parametrize("make", [synthetic.stumps, synthetic.rounded])
def test_a_plateau_has_few_values_and_its_optimum_is_reached(make):
    task = make("plateau", 4, 0)
    rng = np.random.default_rng(0)
    values = {task.value(task.space.from_unit(u)) for u in rng.random((3000, 4))}
    assert len(values) <= 301
    assert max(values) > 0.98


def test_a_draw_is_highest_where_a_fine_grid_says():
    rng = np.random.default_rng(0)
    draw = synthetic.Draw(rng.normal(size=(2, 100)) / 0.2, rng.uniform(0, 6, 100), rng.normal(size=100) / 10)
    axis = np.linspace(0, 1, 301)
    grid = draw.values(np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)).max()
    assert grid <= draw.highest() <= grid + 1e-3


# --- real ones, where their packages are installed ---


@pytest.mark.filterwarnings("ignore")  # of their packages
@pytest.mark.parametrize("name", REAL)
def test_real_values_are_numbers_that_depend_on_the_seed_alone(name):
    entry = ALL[name]
    for package in entry.needs:
        pytest.importorskip(package)
    task = entry.make(1)
    assert task.space.dim == entry.dim
    assert not task.space.conditional
    tried = points(task.space, 1, seed=1)[:4]
    values = [task.value(p) for p in tried]
    assert np.isfinite(values).all()
    again = entry.make(1)
    assert values[::-1] == [again.value(p) for p in tried[::-1]]  # in another order: nothing is kept from before
    if task.optimum is not None:
        assert min(worse(task, value) for value in values) >= 0
