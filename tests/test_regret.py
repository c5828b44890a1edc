"""Regret: hand-worked histories, failures, and properties that hold for any history."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sumbo import regret
from sumbo.errors import SettingError

ALL = [
    regret.instantaneous_regret,
    regret.simple_regret,
    regret.cumulative_regret,
    regret.average_regret,
]
NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


def test_minimising_by_hand():
    values = [5.0, 3.0, 4.0, 1.0]
    np.testing.assert_array_equal(regret.instantaneous_regret(values, 1.0, direction="minimize"), [4, 2, 3, 0])
    np.testing.assert_array_equal(regret.simple_regret(values, 1.0, direction="minimize"), [4, 2, 2, 0])
    np.testing.assert_array_equal(regret.cumulative_regret(values, 1.0, direction="minimize"), [4, 6, 9, 9])
    np.testing.assert_array_equal(regret.average_regret(values, 1.0, direction="minimize"), [4, 3, 3, 2.25])


@given(NUMBERS, st.floats(-1e6, 1e6))
def test_maximising_mirrors_minimising(values, optimum):
    for function in ALL:
        mirrored = function([-v for v in values], -optimum, direction="maximize")
        np.testing.assert_array_equal(function(values, optimum, direction="minimize"), mirrored)


@given(NUMBERS)
def test_agrees_with_naive_loops(values):
    optimum = min(values)
    best, total = [], []
    for t in range(1, len(values) + 1):
        best.append(min(values[:t]) - optimum)
        total.append(sum(v - optimum for v in values[:t]))
    average = [R / (t + 1) for t, R in enumerate(total)]
    np.testing.assert_allclose(regret.simple_regret(values, optimum, direction="minimize"), best)
    np.testing.assert_allclose(regret.cumulative_regret(values, optimum, direction="minimize"), total)
    np.testing.assert_allclose(regret.average_regret(values, optimum, direction="minimize"), average)


@given(st.lists(st.floats(-1e6, 1e6) | st.just(np.nan), min_size=1, max_size=30), st.floats(-1e6, 1e6))
def test_simple_regret_never_increases(values, optimum):
    simple = regret.simple_regret(values, optimum, direction="maximize")
    assert simple.shape == (len(values),)
    assert all(later <= earlier for earlier, later in pairwise(simple))


@pytest.mark.parametrize("failure", [np.nan, np.inf, -np.inf, None])
def test_failures(failure):
    values = [failure, 3.0, failure, 2.0, 7.0]
    simple = regret.simple_regret(values, 1.0, direction="minimize")
    np.testing.assert_array_equal(simple, [np.inf, 2, 2, 1, 1])
    # A failure counts as the worst of the whole history, 7, although that comes last.
    cumulative = regret.cumulative_regret(values, 1.0, direction="minimize")
    np.testing.assert_array_equal(cumulative, [6, 8, 14, 15, 21])
    # When maximising, the worst is the smallest.
    cumulative = regret.cumulative_regret(values, 10.0, direction="maximize")
    np.testing.assert_array_equal(cumulative, [8, 15, 23, 31, 34])


def test_all_failed():
    values = [np.nan, np.nan]
    np.testing.assert_array_equal(regret.simple_regret(values, 0.0, direction="minimize"), [np.inf, np.inf])
    for function in (regret.cumulative_regret, regret.average_regret):
        with pytest.raises(SettingError, match="at least one finite value, got 2 failed"):
            function(values, 0.0, direction="minimize")


def test_a_value_beyond_the_optimum_shows_as_negative():
    values = [2.0, -1.0]
    np.testing.assert_array_equal(regret.simple_regret(values, 0.0, direction="minimize"), [2, -1])
    np.testing.assert_array_equal(regret.cumulative_regret(values, 0.0, direction="minimize"), [2, 1])


@pytest.mark.parametrize("function", ALL)
def test_inputs_are_never_mutated(function):
    values = np.array([3.0, np.nan, np.inf, 1.0])
    kept = values.copy()
    result = function(values, 0.0, direction="minimize")
    result[:] = 99.0
    np.testing.assert_array_equal(values, kept)


@pytest.mark.parametrize("function", ALL)
def test_empty_history(function):
    assert function([], 0.0, direction="minimize").shape == (0,)


@pytest.mark.parametrize("function", ALL)
def test_bad_arguments(function):
    with pytest.raises(SettingError, match='"minimize" or "maximize", got \'min\''):
        function([1.0], 0.0, direction="min")
    with pytest.raises(SettingError, match="optimum must be a finite number, got nan"):
        function([1.0], np.nan, direction="minimize")
    with pytest.raises(SettingError, match=r"shape \(T,\), got \(1, 2\)"):
        function([[1.0, 2.0]], 0.0, direction="minimize")
    with pytest.raises(SettingError, match="flat sequence of numbers"):
        function(["low"], 0.0, direction="minimize")
