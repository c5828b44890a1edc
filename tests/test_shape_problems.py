"""Problems with constraints, contexts and noise: the claimed optima, and the formulas there."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import shape_problems
from shape_problems import CONSTRAINED, Contexts, Noisy


@pytest.mark.parametrize("name", CONSTRAINED)
def test_the_published_best_point_has_its_value_and_is_feasible(name):
    problem = CONSTRAINED[name]()
    assert problem.value(problem.best) == pytest.approx(problem.optimum, rel=1e-6)
    constraints = problem.constraints(problem.best)
    assert tuple(constraints) == problem.names
    assert max(constraints.values()) <= 1e-6  # the literature gives about ten digits
    assert max(constraints.values()) > -1e-3  # what is best is at an edge of what is allowed
    problem.space.array(problem.best)  # raises where it is outside of the bounds


@pytest.mark.parametrize("name", CONSTRAINED)
def test_no_feasible_random_point_is_better(name):
    problem = CONSTRAINED[name]()
    rng = np.random.default_rng(0)
    points = [problem.space.from_unit(u) for u in rng.random((5000, problem.space.dim))]
    values = [problem.value(p) for p in points if max(problem.constraints(p).values()) <= 0]
    assert values
    assert min(values) > problem.optimum


def test_without_its_constraints_the_plant_would_be_better():
    centres = shape_problems._CENTRES
    assert shape_problems._plant_value(centres) == 0.0
    assert (shape_problems._plant_constraints(centres) > 0).all()


def test_the_best_mixture_is_below_all_random_ones():
    problem = shape_problems.mixture()
    rng = np.random.default_rng(0)
    low, high = np.array(list(problem.bounds.values())).T
    shares = low + (1 - low.sum()) * rng.dirichlet(np.ones(8), size=20_000)
    values = [shape_problems._blended(x) for x in shares if (x <= high).all()]
    assert problem.optimum < min(values)
    assert abs(problem.optimum) > 0.5  # so that a relative gap means something


@pytest.mark.parametrize("seed", range(5))
def test_no_action_is_better_than_the_best_of_its_context(seed):
    problem = Contexts(seed)
    rng = np.random.default_rng(seed)
    for _ in range(200):
        context = problem.context()
        best = problem.best_action(context)
        assert problem.value(best, context) == problem.best_value(context)
        problem.space(context=False).array(best)
        near = {name: value + rng.normal(0, 0.1) for name, value in best.items()}
        assert problem.value(near, context) > problem.best_value(context)


def test_the_well_is_three_deep_and_its_noise_has_the_stated_deviation():
    problem = Noisy(0)
    centre = dict(zip(problem.space.names, problem.centre.tolist(), strict=True))
    assert problem.true(centre) == problem.optimum
    values = [problem(centre) for _ in range(2000)]
    assert np.mean(values) == pytest.approx(problem.optimum, abs=0.1)
    assert np.std(values) == pytest.approx(problem.std, abs=0.1)
