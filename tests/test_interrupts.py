"""Ctrl-C and SIGTERM at any moment: nothing that was told is lost, and what follows works."""

import json
import os
import random
import signal
import sqlite3
import sys
import threading
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor

import numpy as np
import pytest
from studies import until, write_study

import sumbo
from sumbo.cli import main

BOX = [(0.0, 1.0)] * 20  # where most of the time goes into compiled code
N_INIT = 20
EARLY = sumbo.Auto(n_init=N_INIT)
ENDLESS = 100_000


class Presser:
    """Sends a signal from another thread, in the midst of what the main thread does.

    Threads take turns where one lets the others in, and compiled code does: with a long switch interval the signal
    comes there, with a short one between any two steps of Python.
    """

    def __init__(self, rng, number=signal.SIGINT, turns=60):
        self._turns = rng.randrange(turns)
        self._interval = rng.choice([100.0, 100.0, 100.0, 1e-6])
        self._number = number
        self._thread = threading.Thread(target=self._press, daemon=True)
        self._go = threading.Event()

    def start(self):
        self._go.set()

    def __enter__(self):
        self._thread.start()
        self._before = sys.getswitchinterval()
        sys.setswitchinterval(self._interval)
        return self

    def __exit__(self, *_):
        sys.setswitchinterval(self._before)
        self._thread.join(60)

    def _press(self):
        assert self._go.wait(600)
        for _ in range(self._turns):
            time.sleep(0.0)  # lets the others in, and waits for its turn
        os.kill(os.getpid(), self._number)


@pytest.fixture(autouse=True)
def ctrl_c_is_python_s():
    """A suite that a script starts in the background ignores Ctrl-C, and would never end here."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def hills(x):
    return float(np.cos(6.0 * x).sum() + x[0] * x[1])


def told(result):
    return [t.value for t in result.trials if t.state == "done"]


# --- minimize -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_at_any_moment_returns_what_was_found(workers):
    rng = random.Random(0)
    for seed in range(10):
        seen, returned = [], []

        def f(x, returned=returned):
            returned.append(hills(x))
            return returned[-1]

        with Presser(rng) as presser, ThreadPoolExecutor(workers) as pool:

            def callback(opt, trial, seen=seen, presser=presser):
                seen.append(trial.value)
                if len(seen) == N_INIT - 1:
                    presser.start()

            executor = None if workers == 1 else pool
            options = {"workers": workers, "executor": executor, "callback": callback, "progress": False}
            result = sumbo.minimize(f, BOX, ENDLESS, method=EARLY, seed=seed, **options)
        assert result.interrupted is True
        assert set(seen) <= set(told(result))
        if workers == 1:  # it may come between the last line of the objective and its return
            assert set(returned[:-1]) <= set(told(result))
        assert result.value == min(told(result))
        assert sumbo.Optimizer.from_dict(json.loads(json.dumps(result.optimizer.to_dict()))).trials == result.trials
    assert result.optimizer.ask().number == len(result.trials)


def test_an_objective_may_take_ctrl_c_upon_itself():
    stopped = []

    def f(x):
        try:
            signal.raise_signal(signal.SIGINT)
            stopped.append("too late")
        except KeyboardInterrupt:  # raised in here, at once
            stopped.append("in time")
        return hills(x)

    result = sumbo.minimize(f, BOX, 3, method="random", seed=0, progress=False)
    assert stopped == ["in time"] * 3
    assert (len(told(result)), result.interrupted) == (3, False)


def test_ctrl_c_in_compiled_code_of_the_objective_is_no_failed_trial():
    def f(x):
        raise SystemError("returned a result with an exception set") from KeyboardInterrupt()

    result = sumbo.minimize(f, BOX, 3, method="random", seed=0, progress=False)
    assert [t.state for t in result.trials] == ["running"]
    assert result.interrupted is True


class Slow(Executor):
    """Answers the first evaluations, runs the others for ever, and presses Ctrl-C when asked to cancel one."""

    def __init__(self, answers):
        self.answers = answers

    def submit(self, function, /, *args, **kwargs):
        future = Pressing()
        if self.answers:
            self.answers -= 1
            future.set_result(function(*args, **kwargs))
        return future


class Pressing(Future):
    def cancel(self):
        os.kill(os.getpid(), signal.SIGINT)
        return False


def test_ctrl_c_again_while_the_run_is_ending_loses_nothing():
    def callback(opt, trial):
        if trial.number == 2:
            signal.raise_signal(signal.SIGINT)

    options = {"executor": Slow(3), "workers": 2, "callback": callback, "method": "random", "progress": False}
    result = sumbo.minimize(hills, BOX, 50, seed=0, **options)
    assert result.interrupted is True
    assert len(told(result)) == 3


def test_handlers_of_the_user_are_called_and_stay():
    before, calls = signal.getsignal(signal.SIGINT), []

    def mine(number, frame):
        calls.append(number)

    def another(number, frame):
        raise AssertionError("nobody calls it")

    def f(x):
        assert signal.getsignal(signal.SIGINT) is mine
        presser.start()
        return hills(x)

    def replaces(x):
        signal.signal(signal.SIGINT, another)
        return hills(x)

    try:
        signal.signal(signal.SIGINT, mine)
        with Presser(random.Random(0)) as presser:
            options = {"method": EARLY, "seed": 0, "progress": False, "callback": lambda *_: bool(calls)}
            result = sumbo.minimize(f, BOX, ENDLESS, **options)
        assert calls == [signal.SIGINT]
        assert len(told(result)) == len(result.trials)  # ended by the callback: nothing was cut short
        assert signal.getsignal(signal.SIGINT) is mine
        sumbo.minimize(replaces, BOX, 3, method="random", seed=0, progress=False)
        assert signal.getsignal(signal.SIGINT) is another
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_have_no_signals_to_care_for():
    before = signal.getsignal(signal.SIGINT)
    found = []

    def search():
        found.append(sumbo.minimize(hills, BOX, 4, method="random", seed=0, progress=False))

    thread = threading.Thread(target=search)
    thread.start()
    thread.join(120)
    assert len(told(found[0])) == 4
    assert signal.getsignal(signal.SIGINT) is before


# --- asking and telling by hand -----------------------------------------------------------------------------


def ask_and_wait(opt):
    """Ask; should that be faster than the signal, wait for it."""
    opt.ask()
    for _ in range(60_000):
        time.sleep(0.01)  # short: a signal that comes just before a wait is acted upon after it


def test_ctrl_c_while_asking_leaves_the_optimizer_as_it_was_or_with_the_trial():
    n, rng = 30, random.Random(0)
    opt = sumbo.Optimizer(BOX, EARLY, seed=0)
    for x in np.random.default_rng(0).random((n, len(BOX))):
        opt.observe(x, hills(x))
    state = opt.to_dict()
    expected = opt.ask().x
    for _ in range(8):
        opt = sumbo.Optimizer.from_dict(state)
        with Presser(rng) as presser:
            presser.start()
            with pytest.raises(KeyboardInterrupt):
                ask_and_wait(opt)
        kept = opt.to_dict()
        if len(opt.trials) == n:
            assert kept == state
        else:
            assert [t.state for t in opt.trials[n:]] == ["running"]
            assert opt.trials[n].x.tobytes() == expected.tobytes()
        sumbo.Optimizer.from_dict(json.loads(json.dumps(kept)))
    opt = sumbo.Optimizer.from_dict(state)
    assert opt.ask().x.tobytes() == expected.tobytes()


# --- sumbo run ----------------------------------------------------------------------------------------------

WING = """
def drag(p):
    value = sum(v**2 for v in p.values()) + p["x0"] * p["x1"]
    with open("evaluated", "a") as file:
        file.write(f"{value!r}\\n")
    return value
"""


def test_a_run_that_is_terminated_at_any_moment_keeps_all_values_and_goes_on(tmp_path, capfd):
    (tmp_path / "wing.py").write_text(WING)
    space = "".join(f'[space.x{i}]\ntype = "float"\nlow = 0.0\nhigh = 1.0\n' for i in range(8))
    path = write_study(tmp_path, 'objective = "wing:drag"', method='{name = "auto", n_init = 2}', space=space)
    log, before, rng = tmp_path / "evaluated", signal.getsignal(signal.SIGTERM), random.Random(0)

    def start_after(presser, size, seconds):
        until(lambda: log.exists() and log.stat().st_size > size)
        time.sleep(seconds)
        presser.start()

    for _ in range(3):
        with Presser(rng, signal.SIGTERM, turns=2) as presser:
            size, seconds = log.stat().st_size if log.exists() else 0, rng.uniform(0.0, 0.3)
            threading.Thread(target=start_after, args=(presser, size, seconds), daemon=True).start()
            try:
                signal.signal(signal.SIGTERM, lambda *_: None)
                assert main(["run", str(path), "--budget", str(ENDLESS)]) == 130
            finally:
                signal.signal(signal.SIGTERM, before)
    assert "Traceback" not in capfd.readouterr().err
    evaluated = {float(line) for line in log.read_text().splitlines()}
    with sqlite3.connect(tmp_path / "study.db") as database:
        stored = {value for (value,) in database.execute("SELECT value FROM sumbo_trials WHERE state = 'done'")}
        states = {state for (state,) in database.execute("SELECT DISTINCT state FROM sumbo_trials")}
    assert stored <= evaluated
    assert len(evaluated - stored) <= 3  # on its way from the worker, once in a run at most
    assert states <= {"done", "waiting"}
