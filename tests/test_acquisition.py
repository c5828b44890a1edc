"""Acquisitions: values against integrals, slopes against central differences, schedules as printed."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr, ndtr

from sumbo.acquisition.functions import (
    additive_theorem_beta,
    check_beta,
    full_theorem_beta,
    log_expected_improvement,
    log_improvement,
    practical_beta,
    ucb,
)
from sumbo.errors import SettingError

LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)


def log_improvement_by_quadrature(u):
    """log int_0^inf s phi(s - u) ds. The integrand is positive, so nothing cancels."""
    if u > -1:
        value, _ = quad(lambda s: s * math.exp(-0.5 * (s - u) ** 2), 0, abs(u) + 40, epsrel=1e-12, points=[max(u, 0.1)])
        return math.log(value) - LOG_SQRT_2PI
    # s = v / |u|: phi(u) / u^2 int v exp(-v - v^2 / (2 u^2)) dv
    value, _ = quad(lambda v: v * math.exp(-v - 0.5 * (v / u) ** 2), 0, 60, epsrel=1e-12)
    return -0.5 * u * u - LOG_SQRT_2PI - 2 * math.log(-u) + math.log(value)


# --- log_improvement ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "u",
    [
        30.0,
        5.0,
        1.0,
        0.3,
        0.0,
        -0.3,
        -0.99,
        -1.0,
        -1.01,
        -2.0,
        -5.0,
        -20.0,
        -40.0,
        -1e3,
        -3e4,
        -9e4,
        -1.1e5,
        -1e8,
    ],
)
def test_log_improvement_is_the_integral(u):
    reference = log_improvement_by_quadrature(u)
    assert float(log_improvement(np.array(u))[0]) == pytest.approx(reference, rel=1e-12, abs=1e-12)


def test_log_improvement_as_written_where_nothing_cancels():
    u = np.linspace(0, 10, 101)
    expected = np.log(np.exp(-0.5 * u * u - LOG_SQRT_2PI) + u * ndtr(u))
    np.testing.assert_allclose(log_improvement(u)[0], expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("border", [-1.0, -1e5])
def test_log_improvement_does_not_jump_where_its_formula_changes(border):
    below, at, above = np.nextafter(border, -np.inf), border, np.nextafter(border, np.inf)
    values = log_improvement(np.array([below, at, above]))[0]
    # d log h / du is at most about |u| + 1 here, and one step of u is about |u| eps
    allowed = 16 * np.spacing(abs(values[1])) + 4 * (abs(border) + 1) * abs(border) * np.finfo(float).eps
    assert np.abs(np.diff(values)).max() <= allowed


def test_log_improvement_grows():
    u = -np.concatenate([np.geomspace(1e8, 1e-3, 4000), -np.geomspace(1e-3, 1e6, 1000)])
    values = log_improvement(u)[0]
    assert np.isfinite(values).all()
    assert (np.diff(values) > 0).all()


def test_improvement_of_a_certain_gain_is_that_gain():
    assert float(log_improvement(np.array(1e6))[0]) == pytest.approx(math.log(1e6), rel=1e-15)


# --- partial derivatives ------------------------------------------------------------------------------------


def central(function, x, h):
    return (function(x + h) - function(x - h)) / (2 * h)


def check_partials(acquisition, mu, s2, rtol, atol=1e-12):
    value, by_mean, by_variance = acquisition(mu, s2)
    assert value.shape == by_mean.shape == by_variance.shape == mu.shape
    numeric = central(lambda m: acquisition(m, s2)[0], mu, 1e-5 * np.sqrt(s2))
    np.testing.assert_allclose(by_mean, numeric, rtol=rtol, atol=atol)
    numeric = central(lambda v: acquisition(mu, v)[0], s2, 1e-5 * s2)
    np.testing.assert_allclose(by_variance, numeric, rtol=rtol, atol=atol)


@pytest.mark.parametrize("shape", [(40,), (3, 40)])
def test_partials_of_ucb(shape):
    rng = np.random.default_rng(0)
    check_partials(ucb(2.7), rng.normal(size=shape), rng.uniform(1e-3, 4, shape), 1e-6)


@pytest.mark.parametrize("spread", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("incumbent", [-2.0, 0.0, 1.5])
def test_partials_of_log_expected_improvement(incumbent, spread):
    rng = np.random.default_rng(1)
    mu = rng.normal(size=60)
    s2 = 10.0 ** rng.uniform(-3, 1, 60)  # u from -100 to 100
    acquisition = log_expected_improvement(incumbent, spread)
    check_partials(acquisition, mu, s2, 1e-4, 1e-7)  # a difference cannot see less than that
    np.testing.assert_allclose(acquisition(mu, s2)[0], log_expected_improvement(incumbent)(mu, spread**2 * s2)[0])


@pytest.mark.parametrize("far", [1e3, 1e5, 1e7, 1e9])
def test_log_expected_improvement_keeps_its_slope_far_away(far):
    # log h(u) = -u^2/2 - 2 log|u| + const there: its slope by u is -u - 2/u
    value, by_mean, by_variance = log_expected_improvement(far)(np.zeros(1), np.ones(1))
    assert np.isfinite(value).all()
    assert by_mean[0] == pytest.approx(far, rel=0.02)
    assert by_variance[0] == pytest.approx(0.5 * far**2, rel=0.02)


def test_ucb_is_mean_plus_root_beta_deviations():
    value, by_mean, by_variance = ucb(4.0)(np.array([1.0]), np.array([9.0]))
    assert (value[0], by_mean[0], by_variance[0]) == (7.0, 1.0, pytest.approx(1 / 3))


def test_ucb_without_exploration_is_the_mean():
    value, _, by_variance = ucb(0.0)(np.array([0.3, -0.4]), np.array([1.0, 2.0]))
    assert value.tolist() == [0.3, -0.4]
    assert by_variance.tolist() == [0.0, 0.0]


def test_expected_improvement_is_right_where_it_can_be_computed_plainly():
    mu, s2, best = np.array([0.2, -0.5]), np.array([0.5, 2.0]), 0.1
    sigma = np.sqrt(s2)
    u = (mu - best) / sigma
    plain = sigma * (np.exp(-0.5 * u**2) / math.sqrt(2 * math.pi) + u * np.exp(log_ndtr(u)))
    np.testing.assert_allclose(np.exp(log_expected_improvement(best)(mu, s2)[0]), plain, rtol=1e-12)


def test_acquisitions_leave_their_arguments_alone():
    mu, s2 = np.array([0.1, 0.2]), np.array([0.3, 0.4])
    for acquisition in (ucb(2.0), log_expected_improvement(0.5)):
        acquisition(mu, s2)
    assert mu.tolist() == [0.1, 0.2]
    assert s2.tolist() == [0.3, 0.4]


# --- schedules ----------------------------------------------------------------------------------------------


def test_practical_beta_as_printed():
    assert practical_beta(t=1, d=10) == pytest.approx(2 * math.log(2), rel=1e-15)
    assert practical_beta(t=50, d=4) == pytest.approx(0.8 * math.log(100), rel=1e-15)


def test_additive_theorem_beta_as_printed():
    # 2 log(M pi^2 t^2 / (2 delta)) + 2 d log(D t^3)
    expected = 2 * math.log(4 * math.pi**2 * 9 / 0.2) + 2 * 6 * math.log(24 * 27)
    assert additive_theorem_beta(3, d=6, D=24, M=4) == pytest.approx(expected, rel=1e-15)
    expected = 2 * math.log(2 * math.pi**2 / 0.04)
    assert additive_theorem_beta(1, d=3, D=1, M=2, delta=0.02) == pytest.approx(expected, rel=1e-15)


def test_full_theorem_beta_as_printed():
    # 2 log(2 t^2 pi^2 / delta) + 2 D log(D t^3)
    expected = 2 * math.log(2 * 4 * math.pi**2 / 0.1) + 2 * 10 * math.log(10 * 8)
    assert full_theorem_beta(2, D=10) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    "schedule",
    [
        lambda t: practical_beta(t, 5),
        lambda t: additive_theorem_beta(t, d=3, D=9, M=3),
        lambda t: full_theorem_beta(t, D=9),
    ],
)
def test_schedules_grow_and_are_not_negative(schedule):
    betas = [schedule(t) for t in range(1, 200)]
    assert betas[0] >= 0
    assert all(a < b for a, b in pairwise(betas))


@pytest.mark.parametrize("beta", ["practical", "theorem", 0, 0.0, 2.5, 10])
def test_check_beta_lets_good_ones_pass(beta):
    check_beta(beta)


@pytest.mark.parametrize("beta", ["theorm", "", -1.0, math.nan, math.inf, -math.inf, None, [1.0], 1j])
def test_check_beta_says_what_it_takes(beta):
    with pytest.raises(SettingError, match=r'beta must be "practical", "theorem" or a number from 0 up; got '):
        check_beta(beta)
