"""Problems that fail in a part of their box: a fifth of it, never the optimum."""

import pickle

import numpy as np
import pytest
from scipy.optimize import minimize

from sumbo import Optimizer, problems
from sumbo.errors import SettingError

SHAPES = ("corner", "band", "cells")
CASES = [problems.cosmology(8), problems.cosmology(12), problems.cosmology(20)]
CASES += [problems.with_failures(problems.levy(12, shift_seed=s), shape, s) for shape in SHAPES for s in (0, 1, 2)]
every_case = pytest.mark.parametrize("problem", CASES, ids=[f"{i}-{problem.name}" for i, problem in enumerate(CASES)])


def bounds(problem):
    return np.array([(p.low, p.high) for p in problem.space.parameters])


def uniform(problem, n, seed=0):
    low, high = bounds(problem).T
    return np.random.default_rng(seed).uniform(low, high, (n, problem.dim))


@every_case
def test_a_fifth_fails(problem):
    failed = np.isnan(problem.values(uniform(problem, 20_000)))
    assert 0.17 < failed.mean() < 0.24


@every_case
def test_the_optimum_succeeds_and_is_the_best(problem):
    assert problem(problem.optimiser) == pytest.approx(problem.optimum, abs=1e-9)
    values = problem.values(uniform(problem, 20_000))
    sign = 1.0 if problem.direction == "maximize" else -1.0
    assert np.nanmax(sign * values) < sign * problem.optimum
    low, high = bounds(problem).T
    near = np.clip(problem.optimiser + 0.01 * (high - low) * np.random.default_rng(1).normal(size=low.shape), low, high)
    found = minimize(lambda x: -sign * problem(x), near, method="Nelder-Mead", options={"maxiter": 500})
    assert -found.fun <= sign * problem.optimum + 1e-9


@every_case
def test_it_pickles(problem):
    points = uniform(problem, 50)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(problem)).values(points), problem.values(points))


def test_the_universe_fails_where_matter_is_negative():
    problem = problems.cosmology(10)
    points = uniform(problem, 2000)
    matter = 1.0 - points[:, 1] - points[:, 2]
    np.testing.assert_array_equal(np.isnan(problem.values(points)), matter <= 0)


def test_the_likelihood_spans_orders_of_magnitude_and_every_parameter_matters():
    problem = problems.cosmology(12)
    values = -problem.values(uniform(problem, 5000))
    assert np.nanquantile(values, 0.99) > 100 * np.nanquantile(values, 0.01)
    for i, (low, high) in enumerate(bounds(problem)):
        moved = problem.optimiser.copy()
        moved[i] += 0.05 * (high - low) * (1 if moved[i] < 0.5 * (low + high) else -1)
        assert problem(moved) < -0.1


def test_other_values_are_those_of_the_whole_problem():
    whole = problems.levy(6, shift_seed=0)
    for shape in SHAPES:
        holed = problems.with_failures(whole, shape)
        points = uniform(holed, 500)
        values = holed.values(points)
        np.testing.assert_array_equal(values[~np.isnan(values)], whole.values(points)[~np.isnan(values)])


def test_mistakes():
    with pytest.raises(SettingError, match="shape must be one of corner, band, cells; got 'hole'"):
        problems.with_failures(problems.levy(3), "hole")
    with pytest.raises(SettingError, match="at least 8"):
        problems.cosmology(7)


SMALL = {
    "cosmology": problems.cosmology(8),
    "corner": problems.with_failures(problems.levy(6, shift_seed=1), "corner", 1),
}


@pytest.mark.parametrize("problem", SMALL.values(), ids=SMALL)
def test_the_search_learns_to_avoid_failures(problem):
    """Short runs; benchmarks/failures.py has the long ones. Three of them: a single one depends on the last digits."""
    failures = []
    for seed in range(3):
        opt = Optimizer(problem.space, direction=problem.direction, seed=seed)
        for _ in range(40):
            trial = opt.ask()
            opt.tell(trial, problem(trial.x))
        failures.append(sum(trial.state == "failed" for trial in opt.trials[20:]))
    assert sorted(failures)[1] <= 2  # of 20; chance: 4
