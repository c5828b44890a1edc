"""Values as models see them and back: standardised, and warped where that is monotone and its slopes are known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sumbo.gp.outcome_transforms import OutcomeTransform, standardise

# --- standardise --------------------------------------------------------------------------------------------


def test_standardised_values_have_mean_0_and_deviation_1():
    y = np.random.default_rng(0).normal(3.0, 7.0, 50)
    s = standardise(y)
    assert s.mean() == pytest.approx(0.0, abs=1e-12)
    assert s.std() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(s, (y - y.mean()) / y.std(), rtol=1e-10)
    assert np.array_equal(np.argsort(s), np.argsort(y))


@pytest.mark.parametrize("scale", [1e300, 1e-300, 1e308, 1e-308, 5e-324, 1.0])
def test_any_magnitude_is_as_good_as_another(scale):
    y = np.array([1.0, -1.0, 1.0, -1.0]) * scale
    assert standardise(y).tolist() == [1.0, -1.0, 1.0, -1.0]


@pytest.mark.parametrize("power", [-900, -40, -1, 1, 3, 900])
def test_other_units_by_a_power_of_two_give_the_same_bits(power):
    y = np.random.default_rng(1).normal(2.0, 1.0, 31)
    assert standardise(np.ldexp(y, power)).tobytes() == standardise(y).tobytes()


def test_the_sign_is_kept_exactly():
    y = np.random.default_rng(2).normal(size=31)
    assert standardise(-y).tolist() == (-standardise(y)).tolist()


@pytest.mark.parametrize("value", [0.0, 1.0, -3.7, 1e300, 1e-300, 0.1])
@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_constants_become_zeros(value, n):
    assert standardise(np.full(n, value)).tolist() == [0.0] * n


def test_no_values_stay_no_values():
    assert standardise(np.empty(0)).shape == (0,)


def test_standardise_leaves_its_argument_alone():
    y = np.array([1.0, 2.0, 4.0])
    standardise(y)
    assert y.tolist() == [1.0, 2.0, 4.0]


# --- warped -------------------------------------------------------------------------------------------------

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40)


@given(VALUES)
@settings(max_examples=200, deadline=None)
def test_warping_keeps_the_order(values):
    y = standardise(np.array(values))
    transform = OutcomeTransform(y, warped=True)
    z, slopes = transform.z, transform.log_slope
    assert np.isfinite(z).all()
    assert np.isfinite(slopes)
    order = np.argsort(y, kind="stable")
    assert (np.diff(z[order]) >= -1e-12).all()


def test_the_better_half_keeps_its_shape_and_the_tail_shrinks():
    y = standardise(np.array([-1000.0, -100.0, -10.0, 0.0, 1.0, 2.0, 3.0]))
    z = OutcomeTransform(y, warped=True).z
    assert np.diff(z[3:]) == pytest.approx(np.full(3, z[4] - z[3]))
    assert (z[3] - z[0]) / (z[6] - z[3]) < 10 < (y[3] - y[0]) / (y[6] - y[3])
    assert z.mean() == pytest.approx(0.0, abs=1e-12)
    assert z.std() == pytest.approx(1.0)


def test_the_slopes_are_those_of_the_map():
    """Between the points of a fine grid the map is nearly linear; median, best and spread are those of the whole."""
    y = standardise(-np.random.default_rng(0).lognormal(0.0, 1.5, 4001))
    transform = OutcomeTransform(y, warped=True)
    z, slopes = transform.z, transform.log_slope
    order = np.argsort(y)
    steps = np.log(np.diff(z[order]) / np.diff(y[order]))
    assert slopes / len(y) == pytest.approx(steps.mean() - 0.15, abs=2e-3)  # less the charge


def test_errors_are_told_in_the_same_unit_on_both_scales():
    y = standardise(-np.random.default_rng(0).lognormal(0.0, 1.5, 41))
    plain, warped, above = OutcomeTransform(y), OutcomeTransform(y, warped=True), y > np.median(y)
    errors = np.random.default_rng(1).standard_normal(41)
    assert plain.error_above_median(y + errors) == pytest.approx(np.abs(errors[above]).mean())
    unit = np.ptp(y[above]) / np.ptp(warped.z[above])
    assert warped.error_above_median(warped.z + errors / unit) == pytest.approx(np.abs(errors[above]).mean())


@pytest.mark.parametrize("values", [[2.0], [2.0, 2.0, 2.0], [0.0, 1.0, 1.0, 1.0, 1.0]])
def test_where_no_value_is_above_the_median_there_is_no_error(values):
    transforms = [OutcomeTransform.of(np.array(values), warped=warped) for warped in (False, True)]
    assert [transform.error_above_median(np.ones(len(values))) for transform in transforms] == [0.0, 0.0]


@pytest.mark.parametrize("values", [[], [1.0], [2.0, 2.0, 2.0], [0.0, 1.0, 1.0, 1.0, 1.0]])
def test_few_and_equal_values(values):
    y = np.array(values)
    for warped in (False, True):
        transform = OutcomeTransform.of(y, warped=warped)
        assert transform.z.shape == y.shape
        assert np.isfinite(transform.z).all()
        assert np.isfinite(transform.log_slope)
        np.testing.assert_allclose(transform.untransform(transform.z), y, atol=1e-9)


def test_plain_values_are_untouched():
    transform = OutcomeTransform.of(np.array([1.0, 2.0, 4.0]))
    assert transform.z.tobytes() == standardise(np.array([1.0, 2.0, 4.0])).tobytes()
    assert transform.log_slope == 0.0


# --- and back -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("warped", [False, True])
@given(values=VALUES)
@settings(max_examples=200, deadline=None)
def test_values_come_back(warped, values):
    y = np.array(values)
    transform = OutcomeTransform.of(y, warped=warped)
    smallest = 2.0 * np.nextafter(0.0, 1.0)  # halves of such numbers cannot be written
    np.testing.assert_allclose(transform.untransform(transform.z), y, atol=1e-9 * np.abs(y).max() + smallest)


@pytest.mark.parametrize("warped", [False, True])
def test_the_largest_values_come_back(warped):
    y = np.array([1.7e308, -1.7e308, 0.0, 1e308])
    transform = OutcomeTransform.of(y, warped=warped)
    np.testing.assert_allclose(transform.untransform(transform.z), y, atol=1e299)


@pytest.mark.parametrize("warped", [False, True])
def test_the_way_back_grows_everywhere_and_goes_on_straight_beyond_the_worst(warped):
    transform = OutcomeTransform.of(-np.random.default_rng(0).lognormal(0.0, 2.0, 60), warped=warped)
    z = np.linspace(transform.z.min() - 9.0, transform.z.max() + 3.0, 500)
    y = transform.untransform(z)
    assert (np.diff(y) > 0.0).all()
    assert np.diff(y, 2)[z[2:] < transform.z.min()] == pytest.approx(0.0, abs=1e-9)


def test_standardised_values_go_on_beyond_what_was_observed():
    y = np.random.default_rng(6).normal(300.0, 7.0, 40)
    transform = OutcomeTransform.of(y)
    assert transform.unit == pytest.approx(y.std())
    assert transform.untransform(np.array([10.0]))[0] == pytest.approx(y.mean() + 10.0 * y.std())


def test_constant_values_have_no_unit():
    transform = OutcomeTransform.of(np.full(5, 3.0))
    assert transform.unit == 0.0
    assert transform.untransform(np.array([1.0]))[0] == 3.0


def test_failed_values_come_back_as_the_worst():
    transform = OutcomeTransform.of(np.array([1.0, np.nan, 3.0]), warped=True)
    assert transform.untransform(transform.z) == pytest.approx([1.0, 1.0, 3.0])
