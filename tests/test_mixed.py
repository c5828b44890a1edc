"""The mixed problem: every claim it makes about itself is checked against the function."""

import math
import pickle

import numpy as np
import pytest

from sumbo import problems
from sumbo.errors import SettingError
from sumbo.space import Categorical, Float, Int

CASES = [problems.mixed(5), problems.mixed(20), problems.mixed(20, seed=3), problems.mixed(35, seed=1)]
every_case = pytest.mark.parametrize("problem", CASES, ids=[f"{i}-{p.name}" for i, p in enumerate(CASES)])


def points(problem, n, seed=0):
    cube = np.random.default_rng(seed).random((n, problem.dim))
    return np.array([problem.space.array(problem.space.from_unit(u)) for u in cube])


@every_case
def test_the_optimiser_is_a_point_of_the_space_and_attains_the_optimum(problem):
    params = problem.space.from_array(problem.optimiser)
    assert problem.optimum == 0.0
    assert problem(params) == pytest.approx(0.0, abs=1e-20)


@every_case
def test_no_random_point_and_no_change_of_one_parameter_is_better(problem):
    assert problem.values(points(problem, 5000)).min() > 0.0
    for i, parameter in enumerate(problem.space.parameters):
        levels = np.linspace(parameter.low, parameter.high, 100) if isinstance(parameter, Float) else None
        if isinstance(parameter, Int):
            levels = np.arange(parameter.low, parameter.high + 1)
        if isinstance(parameter, Categorical):
            levels = np.arange(len(parameter.choices))
        around = np.repeat(problem.optimiser[None, :], len(levels), axis=0)
        around[:, i] = levels
        values = problem.values(around)
        assert values.min() >= 0.0
        assert values.max() > 0.1  # every parameter matters


@every_case
def test_groups_are_exact(problem):
    """f(x) + f(y) stays when x and y exchange a whole group, and changes when they exchange any one member."""
    x, y = points(problem, 100, seed=1), points(problem, 100, seed=2)
    before = problem.values(x) + problem.values(y)

    def exchanged(dims):
        one, other = x.copy(), y.copy()
        one[:, dims], other[:, dims] = y[:, dims], x[:, dims]
        return problem.values(one) + problem.values(other)

    assert sorted(i for group in problem.groups for i in group) == list(range(problem.dim))
    assert problem.irrelevant == ()
    for group in problem.groups:
        np.testing.assert_allclose(exchanged(list(group)), before, rtol=1e-10)
        for i in group:
            assert np.abs(exchanged([i]) - before).max() > 1e-3


@every_case
def test_groups_mix_kinds(problem):
    kinds = [sorted(type(problem.space.parameters[i]).__name__ for i in group) for group in problem.groups]
    assert kinds.count(["Float", "Int"]) == problem.dim // 5
    assert kinds.count(["Categorical", "Float", "Int"]) == problem.dim // 5
    assert sum(isinstance(p, Float) and p.log for p in problem.space.parameters) == 1


def naive(p, q):
    """The formula of a group without its weight."""
    dents = 2 - math.cos(4 * math.pi * p) - math.cos(4 * math.pi * q)
    return 4 * (p + q) ** 2 + (p - q) ** 2 + dents / 4


@every_case
def test_around_the_optimum_a_group_follows_its_formula(problem):
    """Up to a weight from 1 to 4, which a single step tells."""
    best = problem.space.encode(problem.optimiser)
    for group in problem.groups:
        the_float, the_int = (
            next(i for i in group if isinstance(problem.space.parameters[i], kind)) for kind in (Float, Int)
        )
        step = 1 if problem.optimiser[the_int] < 12 else -1

        def value(p, whole, the_float=the_float, the_int=the_int):
            u = best.copy()
            u[the_float] += p
            params = problem.space.from_unit(u)
            params[problem.space.names[the_int]] += whole
            return problem(params)

        weight = value(0.05, 0) / naive(0.05, 0.0)
        assert 1.0 <= weight <= 4.0
        for p, whole in ((-0.08, 0), (0.0, step), (0.07, step), (-0.03, step)):
            assert value(p, whole) == pytest.approx(weight * naive(p, whole / 11), rel=1e-9)


def test_seeds_move_groups_and_optimum():
    one, other = problems.mixed(20, seed=1), problems.mixed(20, seed=2)
    assert one.groups != other.groups
    assert not np.array_equal(one.optimiser, other.optimiser)
    assert problems.get("mixed-20", seed=1).groups == one.groups


def test_pickles():
    problem = problems.mixed(20)
    X = points(problem, 3)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(problem)).values(X), problem.values(X))


@pytest.mark.parametrize(
    ("D", "message"), [(12, "multiple of 5; got 12, use 10"), (0, "at least 5"), (2.5, "whole number")]
)
def test_bad_sizes(D, message):
    with pytest.raises(SettingError, match=message):
        problems.mixed(D)
