"""minimize and maximize: the loop, its ways to end, and what objectives do wrong."""

import io
import math
import os
import re
import sys
import threading
import time
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sumbo import Categorical, Float, Int, Optimizer, Random, Result, Space, maximize, minimize
from sumbo.errors import ObjectiveError, SettingError, SpaceError

BOX = [(-1.0, 1.0)] * 2
MIXED = {"a": Float(0, 1), "b": Int(1, 3), "c": Categorical(["u", "v"])}


def bowl(x):
    return float(((x - 0.3) ** 2).sum())


def quiet(f=bowl, space=BOX, budget=6, **options):
    return minimize(f, space, budget, **{"method": "random", "seed": 0, "progress": False, **options})


# Module-level, so that worker processes can import them.
def bowl_in_a_process(x):
    return bowl(x) + 0.0 * os.getpid()


def process_id(x):
    return float(os.getpid())


def fails_on_the_left(x):
    if x[0] < 0:
        raise ValueError("left")
    return float(x[0])


def dies_on_the_left(x):
    if x[0] < 0:
        os._exit(3)
    return float(x[0])


# --- what comes back ----------------------------------------------------------------------------------------


def test_minimize_with_bounds_calls_with_arrays():
    seen = []

    def f(x):
        seen.append(x)
        return bowl(x)

    result = quiet(f, budget=7)
    assert len(seen) == len(result.trials) == 7
    assert all(isinstance(x, np.ndarray) and x.shape == (2,) for x in seen)
    assert isinstance(result, Result)
    assert result.value == min(bowl(x) for x in seen)
    assert result.x.tolist() == min(seen, key=bowl).tolist()
    assert list(result.params.values()) == result.x.tolist()
    assert isinstance(result.optimizer, Optimizer)
    assert result.optimizer.trials == result.trials
    assert result.interrupted is False
    assert {t.state for t in result.trials} == {"done"}


@pytest.mark.parametrize(
    "space", [Space(MIXED), MIXED, types.MappingProxyType(MIXED)], ids=["space", "dict", "mapping"]
)
def test_named_parameters_come_as_a_dict(space):
    seen = []

    def f(params):
        seen.append(params)
        return float(params["a"]) + params["b"]

    result = quiet(f, space, budget=5)
    assert all(list(p) == ["a", "b", "c"] for p in seen)
    assert result.value == min(p["a"] + p["b"] for p in seen)
    assert result.params["c"] in ("u", "v")
    assert result.x[2] in (0.0, 1.0)


def test_bounds_may_be_an_array():
    assert quiet(space=np.array(BOX)).x.shape == (2,)


def test_maximize_looks_for_the_largest():
    values = []

    def f(x):
        values.append(float(x[0]))
        return values[-1]

    result = maximize(f, BOX, 8, method="random", seed=0, progress=False)
    assert result.value == max(values)
    assert result.optimizer.direction == "maximize"


def test_auto_finds_the_bottom_of_a_bowl():
    result = minimize(bowl, BOX, 25, seed=0, progress=False)
    assert result.value < 1e-3
    assert maximize(lambda x: -bowl(x), BOX, 25, seed=0, progress=False).value == -result.value


def test_a_seed_repeats_the_run():
    a, b, c = (minimize(bowl, BOX, 14, seed=seed, progress=False) for seed in (3, 3, 4))
    assert [t.params for t in a.trials] == [t.params for t in b.trials]
    assert [t.params for t in a.trials] != [t.params for t in c.trials]


def test_method_objects_and_the_budget_reach_the_optimizer():
    result = quiet(method=Random(), budget=5)
    assert result.optimizer.method == Random()
    assert result.optimizer.budget == 5


def test_a_run_can_be_gone_on_with():
    opt = quiet().optimizer
    trial = opt.ask()
    opt.tell(trial, 0.0)
    assert len(opt.trials) == 7


def test_objectives_may_change_what_they_get():
    def greedy(params):
        return params.pop("a") + params.pop("b") + len(params.pop("c"))

    def shifting(x):
        x -= 0.3
        return float((x**2).sum())

    result = quiet(greedy, MIXED)
    assert sorted(result.params) == ["a", "b", "c"]
    Optimizer.from_dict(result.optimizer.to_dict())
    result = quiet(shifting)
    assert result.x.tolist() == list(result.params.values())
    assert result.value == pytest.approx(bowl(result.x))


# --- callbacks, Ctrl-C --------------------------------------------------------------------------------------


def test_the_callback_sees_every_trial():
    seen = []

    def callback(opt, trial):
        assert opt.trials[trial.number] == trial
        seen.append((trial.number, trial.state))

    def f(x):
        return bowl(x) if x[0] > 0 else math.nan

    result = quiet(f, callback=callback)
    assert seen == [(t.number, t.state) for t in result.trials]


def test_the_callback_ends_the_run_with_true():
    result = quiet(callback=lambda opt, trial: trial.number == 2, budget=100)
    assert len(result.trials) == 3
    assert result.interrupted is True
    assert result.value is not None


def test_the_callback_ends_the_run_with_true_only():
    assert len(quiet(callback=lambda opt, trial: "yes please").trials) == 6


def test_a_callback_that_says_stop_at_the_end_interrupts_nothing():
    assert quiet(callback=lambda opt, trial: trial.number == 5).interrupted is False


def test_errors_of_the_callback_come_through():
    def callback(opt, trial):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        quiet(callback=callback)


@pytest.mark.parametrize("k", [0, 1, 4])
def test_ctrl_c_returns_what_was_found(k):
    calls = []

    def f(x):
        if len(calls) == k:
            raise KeyboardInterrupt
        calls.append(x)
        return bowl(x)

    result = quiet(f, budget=50)
    assert result.interrupted is True
    assert [t.state for t in result.trials] == ["done"] * k + ["running"]
    assert result.value == (min(map(bowl, calls)) if calls else None)
    again = result.optimizer
    again.tell(k, 0.0)  # the interrupted one may still be told
    assert again.best.value == 0.0


def test_ctrl_c_in_the_middle_of_a_parallel_run():
    def callback(opt, trial):
        if trial.number >= 3:
            raise KeyboardInterrupt  # as if pressed just then

    with ThreadPoolExecutor(2) as pool:
        result = quiet(executor=pool, workers=2, callback=callback, budget=50)
    assert result.interrupted is True
    assert result.value is not None


def test_ctrl_c_loses_no_value_of_an_evaluation_that_has_ended():
    both = threading.Barrier(2)
    ended = []

    def f(x):
        both.wait(60)
        ended.append(float(x[0]))
        return ended[-1]

    def callback(opt, trial):
        while len(ended) < 2:
            time.sleep(0.01)
        time.sleep(0.5)  # the second value arrives here
        raise KeyboardInterrupt  # as if pressed before the second value was told

    with ThreadPoolExecutor(2) as pool:
        result = quiet(f, executor=pool, workers=2, callback=callback, budget=2)
    assert [t.state for t in result.trials] == ["done", "done"]
    assert sorted(t.value for t in result.trials) == sorted(ended)


# --- failing objectives -------------------------------------------------------------------------------------


def answering(answers):
    it = iter(answers)

    def f(x):
        answer = next(it)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return f


def test_failures_are_kept_with_their_reason():
    answers = [
        1.0,
        ValueError("no mesh"),
        math.nan,
        math.inf,
        "0.3",
        None,
        1 + 1j,
        np.ones(2),
        np.float32(0.5),
        7,
    ]
    result = quiet(answering(answers), budget=10)
    assert [t.state for t in result.trials] == ["done", *["failed"] * 7, "done", "done"]
    reasons = [t.reason for t in result.trials]
    assert reasons[1] == "ValueError: no mesh"
    assert reasons[2:4] == ["value was nan", "value was inf"]
    assert "single real number; got str '0.3'" in reasons[4]
    assert reasons[5] == "the objective returned None; it must return a number"
    assert "got complex" in reasons[6]
    assert "got ndarray" in reasons[7]
    assert result.value == 0.5


def test_failures_do_not_end_the_run_once_something_worked():
    result = quiet(answering([1.0, *[OSError("disk")] * 30]), budget=31)
    assert len(result.trials) == 31
    assert result.value == 1.0


def test_an_objective_that_always_fails_is_given_up_with_its_reason():
    calls = []

    def f(x):
        calls.append(x)
        raise FileNotFoundError("mesh.dat")

    with pytest.raises(
        ObjectiveError,
        match=r"the first 10 evaluations all failed with: FileNotFoundError: mesh.dat",
    ):
        quiet(f, budget=1000)
    assert len(calls) == 10
    with pytest.raises(RuntimeError, match=r"Try the objective by hand at \{'x0'"):
        quiet(f, budget=1000)


def test_a_short_run_that_always_fails_has_no_result():
    with pytest.warns(RuntimeWarning, match="none of 4 evaluations succeeded; the last failed: value was nan"):
        result = quiet(answering([math.nan] * 4), budget=4)
    assert (result.value, result.params, result.x) == (None, None, None)
    assert len(result.trials) == 4


def test_an_objective_that_forgets_its_return():
    with pytest.raises(ObjectiveError, match="the objective returned None; it must return a number"):
        quiet(lambda x: None, budget=20)


# --- workers ------------------------------------------------------------------------------------------------


def test_worker_processes():
    result = minimize(bowl_in_a_process, BOX, 9, method="random", seed=0, workers=2, progress=False)
    assert len(result.trials) == 9
    assert {t.state for t in result.trials} == {"done"}
    # random points depend on their number alone
    assert [t.params for t in result.trials] == [t.params for t in quiet(budget=9).trials]
    assert result.value == min(bowl(t.x) for t in result.trials)


def test_evaluations_run_outside_this_process():
    result = quiet(process_id, budget=4, workers=2)
    assert os.getpid() not in {int(t.value) for t in result.trials}


def test_failures_in_worker_processes():
    result = quiet(fails_on_the_left, budget=8, workers=2)
    for trial in result.trials:
        assert trial.reason == ("ValueError: left" if trial.x[0] < 0 else None)


def test_a_worker_that_dies_loses_its_own_trial_only():
    result = quiet(dies_on_the_left, budget=8, workers=2)
    for trial in result.trials:
        assert trial.reason == ("the worker process died (exit code 3)" if trial.x[0] < 0 else None)
    assert len({trial.state for trial in result.trials}) == 2


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_any_executor_will_do(workers):
    lock, now, most = threading.Lock(), 0, 0

    def f(x):
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.1)
        with lock:
            now -= 1
        return bowl(x)

    with ThreadPoolExecutor(4) as pool:
        result = quiet(f, executor=pool, workers=workers, budget=12)
        assert pool.submit(int, 3).result() == 3  # left open: it is the user's
    assert len(result.trials) == 12
    assert {t.state for t in result.trials} == {"done"}
    assert most <= workers
    assert workers == 1 or most > 1


def test_an_executor_alone_is_enough():
    with ThreadPoolExecutor(2) as pool:
        assert quiet(executor=pool).value == quiet().value


def test_points_asked_while_others_run_are_all_different():
    with ThreadPoolExecutor(3) as pool:
        result = minimize(bowl, BOX, 16, seed=0, executor=pool, workers=3, progress=False)
    assert len({t.x.tobytes() for t in result.trials}) == 16


def test_a_stop_with_workers_begins_nothing_more():
    seen = []
    with ThreadPoolExecutor(2) as pool:
        result = quiet(executor=pool, workers=2, callback=lambda opt, trial: not seen.append(trial), budget=40)
    assert len(seen) == 1
    assert len(result.trials) <= 2
    assert result.interrupted is True


# --- progress -----------------------------------------------------------------------------------------------


def test_progress_in_a_log(capsys):
    minimize(bowl, BOX, 40, method="random", seed=0)
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert 3 <= len(lines) <= 12
    assert all(re.fullmatch(r"sumbo: \d+/40 best \S+ \d+ s left", line) for line in lines)
    assert lines[0].startswith("sumbo: 1/40 ")
    assert lines[-1].startswith("sumbo: 40/40 ")
    assert lines[-1].endswith(" 0 s left")


def test_progress_counts_failures(capsys):
    minimize(lambda x: bowl(x) if x[0] > 0 else math.nan, BOX, 9, method="random", seed=0)
    last = capsys.readouterr().err.splitlines()[-1]
    assert re.search(r" [1-8] failed$", last)


def test_progress_before_any_value(capsys):
    minimize(answering([math.nan, 1.0]), BOX, 2, method="random", seed=0)
    assert "best - " in capsys.readouterr().err


def test_no_progress_when_not_wanted(capsys):
    quiet()
    assert capsys.readouterr() == ("", "")


def test_progress_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    result = minimize(bowl, BOX, 5, method="random", seed=0)
    assert f"best {result.value:.6g}" in screen.getvalue()
    assert "5/5" in screen.getvalue()


# --- bad arguments ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["budget", "workers"])
@pytest.mark.parametrize("number", [0, -1, 1.5, "10", None, True, math.nan])
def test_counts_are_whole_numbers(name, number):
    no_end = (name, number) == ("budget", None)
    message = "say how long to go on" if no_end else f"{name} must be a whole number from 1 up; got "
    with pytest.raises(SettingError, match=message):
        quiet(never_called, **{name: number})


def never_called(x):
    raise AssertionError("the arguments are checked first")


@pytest.mark.parametrize("f", [None, 3.0, "bowl", [bowl]])
def test_the_objective_is_a_function(f):
    with pytest.raises(SettingError, match="the objective must be a function; got "):
        quiet(f)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"method": "magic"}, SettingError),
        ({"seed": -1}, SettingError),
        ({"callback": [print]}, SettingError),
        ({"space": [(1, 0)]}, SpaceError),
        ({"space": None}, SpaceError),
    ],
)
def test_the_rest_is_checked_before_the_first_evaluation(options, error):
    with pytest.raises(error):
        quiet(never_called, **options)


def test_options_are_keywords():
    with pytest.raises(TypeError):
        minimize(bowl, BOX, 5, "random")


@pytest.mark.parametrize("failure", ["nan", "different errors"])
def test_a_hard_problem_is_not_given_up(failure):
    calls = []

    def f(x):
        calls.append(1)
        if len(calls) > 14:
            return bowl(x)
        if failure == "nan":
            return math.nan
        raise (ValueError, ArithmeticError)[len(calls) % 2]("no solution")

    result = quiet(f, budget=16)
    assert len(result.trials) == 16
    assert result.value is not None
