"""Randomness of trials, and points that are new."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sumbo import Categorical, Optimizer
from sumbo.errors import SettingError
from sumbo.methods import randomness
from sumbo.space import Float, Int, Space
from sumbo.space.region import Region

GRID = Space({"i": Int(0, 3), "j": Int(0, 2)})


def test_a_trials_randomness_depends_on_seed_and_number_alone():
    first = randomness.trial_rng(1, 5).random(3)
    randomness.trial_rng(1, 4).random(100)
    np.testing.assert_array_equal(randomness.trial_rng(1, 5).random(3), first)
    for other in (
        randomness.trial_rng(2, 5),
        randomness.trial_rng(1, 6),
        randomness.trial_rng(1, 5, 0),
        randomness.study_rng(1),
    ):
        assert not np.array_equal(other.random(3), first)


def test_a_new_point_stays_where_it_is():
    space = Space({"x": Float(0, 2), "i": Int(0, 3)})
    params, unit = randomness.nearest_untried(Region(space), np.array([0.25, 0.4]), set(), np.random.default_rng(0))
    assert params == {"x": 0.5, "i": 1}
    np.testing.assert_allclose(unit, [0.25, 0.375])


def test_all_points_of_a_grid_come_before_one_comes_again():
    rng, seen = np.random.default_rng(0), set()
    for _ in range(GRID.size):
        _, unit = randomness.nearest_untried(Region(GRID), np.array([0.5, 0.5]), seen, rng)
        assert unit.tobytes() not in seen
        seen.add(unit.tobytes())
    params, _ = randomness.nearest_untried(Region(GRID), np.array([0.5, 0.5]), seen, rng)
    assert params == GRID.from_unit([0.5, 0.5])


@st.composite
def discrete(draw, most=60):
    """A space of few points."""
    parameters, size = {}, 1
    for i in range(draw(st.integers(1, 3))):
        levels = draw(st.integers(1, max(most // size, 1)))
        low, kind = draw(st.integers(1, 1000)), draw(st.sampled_from(["int", "log", "category"]))
        number = Int(low, low + levels - 1, log=kind == "log")
        parameters[f"x{i}"] = Categorical(list(range(levels))) if kind == "category" else number
        size *= levels
    return parameters


@settings(max_examples=40, deadline=None, derandomize=True)
@given(discrete(), st.integers(0, 3))
def test_every_point_of_a_small_space_comes_before_one_comes_again(space, seed):
    size = math.prod(parameter.levels for parameter in space.values())
    trials = Optimizer(space, "random", seed=seed).ask(size)
    assert len({tuple(trial.params.values()) for trial in trials}) == size


@pytest.mark.parametrize(
    "space", [{"i": Int(1, 30, log=True)}, {"i": Int(1, 7, log=True), "c": Categorical(["u", "v"])}]
)
def test_so_it_is_with_the_default_method(space):
    size = math.prod(parameter.levels for parameter in space.values())
    opt = Optimizer(space, seed=0)
    for _ in range(size):
        trial = opt.ask()
        opt.tell(trial, float(trial.x.sum()))
    assert len({tuple(trial.params.values()) for trial in opt.trials}) == size


def test_seeds():
    assert randomness.checked_seed(np.int64(3)) == 3
    assert randomness.checked_seed(None) != randomness.checked_seed(None)
    for wrong in (-1, 1.0, True, "1"):
        with pytest.raises(SettingError, match="seed must be a whole number"):
            randomness.checked_seed(wrong)
