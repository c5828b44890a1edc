"""Threads for the kernel loops: another speed, the same bits."""

import multiprocessing
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from sumbo import AdditiveGP, Optimizer, minimize
from sumbo.errors import SettingError
from sumbo.gp import threads


@pytest.fixture(autouse=True)
def one_afterwards():
    yield
    threads.use(1)


def fitted():
    rng = np.random.default_rng(0)
    X = rng.random((400, 9))
    y = np.sin(5 * X[:, :6]).sum(axis=1) + X[:, 6] * X[:, 7]
    gp = AdditiveGP([(0,), (1, 2, 3), (4,), (5,), (6, 7), (8,)], full_order=True).fit(X, y - y.mean())
    return gp, rng.random((300, 9))


def test_any_number_of_threads_gives_the_same_bits():
    one, Z = fitted()
    slope = one.moments(Z).gradient(np.ones(300), np.ones(300))
    for count in (2, 3, 50):
        threads.use(count)
        gp, _ = fitted()
        assert np.array_equal(gp.lengthscales, one.lengthscales)
        assert np.array_equal(gp.posterior(Z), one.posterior(Z))
        assert np.array_equal(gp.moments(Z).gradient(np.ones(300), np.ones(300)), slope)


def test_the_work_is_on_several_threads():
    threads.use(2)
    meet = threading.Barrier(2)
    assert threads.spread(lambda a, b: meet.wait(10) is not None, [0, 1, 2]) == [True, True]


def test_a_search_is_the_same_on_two_threads():
    def points():
        opt = Optimizer([(0, 1)] * 4, seed=1)
        for x in np.random.default_rng(0).random((180, 4)):
            opt.observe(x, float(np.square(x - 0.4).sum()))
        return [opt.ask().params for _ in range(3)]

    before = points()
    threads.use(2)
    assert points() == before


@pytest.mark.parametrize("count", [0, -1, 1.5, "2", True])
def test_a_number_that_makes_no_sense_is_refused(count):
    with pytest.raises(SettingError, match="whole number"):
        threads.use(count)


def environment(value):
    code = "from sumbo import threads; print(threads.pieces(1000), threads.pieces(10))"
    env = os.environ | ({} if value is None else {"SUMBO_THREADS": value})
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)


def test_the_environment_sets_it_and_one_is_the_default():
    assert environment(None).stdout == "1 1\n"
    assert environment("3").stdout == "3 1\n"
    assert "SUMBO_THREADS must be a whole number" in environment("many").stderr


def in_worker(x):
    return float(threads.count())


def test_workers_keep_to_one():
    threads.use(4)
    result = minimize(in_worker, [(0, 1)], 3, method="random", workers=2, progress=False)
    assert [trial.value for trial in result.trials] == [1.0, 1.0, 1.0]


def test_a_forked_process_makes_threads_of_its_own():
    threads.use(2)
    threads.spread(lambda a, b: None, [0, 1, 2])
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(_spread_here).get(timeout=20) == [0, 1]


def _spread_here():
    return threads.spread(lambda a, b: a, [0, 1, 2])
