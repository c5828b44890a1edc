"""Randomness of trials, and points that are new."""

import numpy as np
import pytest

from sumbo import asking
from sumbo.errors import SettingError
from sumbo.space import Float, Int, Space

GRID = Space({"i": Int(0, 3), "j": Int(0, 2)})


def test_a_trials_randomness_depends_on_seed_and_number_alone():
    first = asking.trial_rng(1, 5).random(3)
    asking.trial_rng(1, 4).random(100)
    np.testing.assert_array_equal(asking.trial_rng(1, 5).random(3), first)
    for other in (asking.trial_rng(2, 5), asking.trial_rng(1, 6), asking.trial_rng(1, 5, 0), asking.study_rng(1)):
        assert not np.array_equal(other.random(3), first)


def test_a_new_point_stays_where_it_is():
    space = Space({"x": Float(0, 2), "i": Int(0, 3)})
    params, unit = asking.unseen(space, np.array([0.25, 0.4]), set(), np.random.default_rng(0))
    assert params == {"x": 0.5, "i": 1}
    np.testing.assert_allclose(unit, [0.25, 0.375])


def test_all_points_of_a_grid_come_before_one_comes_again():
    rng, seen = np.random.default_rng(0), set()
    for _ in range(GRID.size):
        _, unit = asking.unseen(GRID, np.array([0.5, 0.5]), seen, rng)
        assert unit.tobytes() not in seen
        seen.add(unit.tobytes())
    params, _ = asking.unseen(GRID, np.array([0.5, 0.5]), seen, rng)
    assert params == GRID.from_unit([0.5, 0.5])


def test_seeds():
    assert asking.checked_seed(np.int64(3)) == 3
    assert asking.checked_seed(None) != asking.checked_seed(None)
    for wrong in (-1, 1.0, True, "1"):
        with pytest.raises(SettingError, match="seed must be a whole number"):
            asking.checked_seed(wrong)
