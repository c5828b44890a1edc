"""What is measured of the theorems, against naive formulas."""

import numpy as np
import pytest

from sumbo.gp.kernels import cross, cross_groups
from sumbo.paper import rates
from sumbo.paper.runs import Task


def measure(problem, method, budget, seed=0):
    return rates.run(Task("rates", problem, method, seed, budget))


@pytest.mark.parametrize("structure", ["additive", "full"])
def test_the_gain_is_that_of_the_points_chosen(structure, monkeypatch):
    T = 12
    monkeypatch.setattr(rates, "_POOL", T)  # then all points are chosen, in some order
    terms = rates.terms_of(structure, "se", 4)
    gains = rates.greedy_gain(terms, 4, T, np.random.default_rng(0))
    ZT = np.ascontiguousarray(np.random.default_rng(0).random((T, 4)).T)
    K = cross(ZT, ZT, terms)
    np.testing.assert_allclose(np.diag(K), 1.0)
    assert gains[-1] == pytest.approx(0.5 * np.linalg.slogdet(np.eye(T) + K / rates.ETA2)[1], rel=1e-5)


def test_the_most_uncertain_point_comes_next():
    gains = np.diff([0.0, *measure(rates.GAIN, "additive, SE, D = 4", 30)["gain"]])
    assert (np.diff(gains) <= 1e-9).all()


def test_additive_kernels_have_less_to_tell():
    for kernel in rates.KERNELS:
        alone, full = (measure(rates.GAIN, f"{s}, {kernel}, D = 6", 60)["gain"][-1] for s in ("additive", "full"))
        assert alone < full


def test_rates_are_the_theorems():
    T = 100
    assert rates.bound("additive", "SE", 6, T) == pytest.approx(6 * 2**2 * np.log(T) ** 3)
    assert rates.bound("full", "SE", 3, T) == pytest.approx(3**3 * np.log(T) ** 4)
    assert rates.bound("additive", "Matern-5/2", 6, T) == pytest.approx(6 * 4 * T ** (6 / 11) * np.log(T))


def test_variances_are_those_of_the_dense_formula():
    rng = np.random.default_rng(1)
    terms = rates.terms_of("additive", "se", 6)
    XT, ZT = rng.random((6, 9)), rng.random((6, 5))
    joint, parts = rates._posterior_variances(ZT, XT, terms)
    K_inv = np.linalg.inv(cross(XT, XT, terms) + rates.ETA2 * np.eye(9))
    k = cross_groups(np.ascontiguousarray(ZT), np.ascontiguousarray(XT), terms)  # (M, m, n)
    np.testing.assert_allclose(parts, 1 / 3 - np.einsum("jmn,np,jmp->jm", k, K_inv, k), atol=1e-10)
    np.testing.assert_allclose(joint, 1.0 - np.einsum("mn,np,mp->m", k.sum(0), K_inv, k.sum(0)), atol=1e-10)


def test_variances_of_components_exceed_that_of_the_sum():
    line = measure(rates.PROOF, "M = 3", 60)
    assert line["squares"][0] == pytest.approx(1.0)  # the prior's add up
    assert line["squares"][-1] > 2.0
    assert line["seen"][-1] > line["sums"][0]


def test_the_sum_on_a_grid_has_the_variance_of_all_components_together():
    rng = np.random.default_rng(2)
    M, m = 3, 4
    A = rng.standard_normal((M * m, M * m))
    cov = (A @ A.T).reshape(M, m, M, m)
    total = rates._variance_of_sum(cov)
    for point in ((0, 1, 2), (3, 3, 3), (2, 0, 1)):
        flat = [j * m + i for j, i in enumerate(point)]
        assert total[point] == pytest.approx((A @ A.T)[np.ix_(flat, flat)].sum())


def test_the_credible_interval_holds_and_is_wide():
    lines = [measure(rates.INTERVAL, "SE, 4 groups", 12, seed) for seed in range(5)]
    assert all(line["within_sum"] for line in lines)
    assert all(0.0 < line["used"] < 1.0 for line in lines)
    assert all(line["ratio"][-1] > 1.5 for line in lines)


def test_the_mixture_has_three_modes():
    assert measure(rates.MODES, "f_2", 1) == {"modes": 3}


def test_costs_are_measured():
    line = measure(rates.COST, "D = 40", 30)
    assert set(line) == {f"{what}, {of}" for what in ("factorise", "maximise") for of in ("full", "additive")}
    assert all(seconds > 0.0 for seconds in line.values())
