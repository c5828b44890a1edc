"""Where evaluations run: processes of our own, executors of the user's, and points asked for ahead."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing

import pytest
from studies import is_running, until

from sumbo import maximize, minimize, replay
from sumbo.errors import ObjectiveError, SettingError
from sumbo.executors import ExecutorAdapter, ExecutorGoneError
from sumbo.executors.processes import Processes, portable
from sumbo.executors.worker import send
from sumbo.study.runner import Prefetcher

BOX = [(0.0, 1.0)] * 2
BASE = 1.0


def quiet(f, budget=8, **options):
    return minimize(f, BOX, budget, **{"method": "random", "seed": 0, "progress": False, **options})


# --- processes ----------------------------------------------------------------------------------------------


def test_lambdas_and_closures_reach_worker_processes():
    shift = 0.25
    result = quiet(lambda x: float(x[0]) + shift + 0.0 * os.getpid(), workers=2)
    assert [t.value for t in result.trials] == [t.x[0] + shift for t in result.trials]


def test_a_worker_whose_answer_nobody_reads_any_more_says_nothing():
    start = "import sys; from sumbo.executors.worker import main; main(2, 'not a mark of anything')"
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", start], stdin=pipe, stdout=pipe, stderr=pipe)
    process.stdout.close()
    for data in (len, "argument"):
        send(process.stdin, pickle.dumps(data))
    with pytest.raises(subprocess.TimeoutExpired):  # it waits to be told, in case there is something to clean up
        process.wait(2.0)
    process.stdin.close()
    assert process.wait(30.0) == 1
    assert process.stderr.read() == b""
    process.stderr.close()


def test_what_cannot_be_sent_is_said_before_anything_is_evaluated():
    lock, calls = threading.Lock(), []

    def f(x):
        calls.append(x)
        with lock:
            return 0.0

    with pytest.raises(SettingError, match=r"cannot be sent to worker processes: .*lock.*ThreadPoolExecutor"):
        quiet(f, workers=2)
    assert calls == []


def test_a_killed_worker_loses_its_own_trial_only():
    def f(x):
        if x[0] < 0.2:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.02)
        return float(x[0])

    result = quiet(f, 24, workers=3)
    left = [t for t in result.trials if t.x[0] < 0.2]
    assert 0 < len(left) < 24
    assert {t.reason for t in left} == {"the worker process died (signal 9, SIGKILL)"}
    assert all(t.value == t.x[0] for t in result.trials if t.x[0] >= 0.2)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_hanging_worker_is_killed_and_replaced(workers):
    def f(x):
        if x[0] < 0.3:
            time.sleep(1000)
        return float(x[0])

    began = time.monotonic()
    result = quiet(f, 8, workers=workers, timeout=1.0)
    for trial in result.trials:
        assert trial.reason == ("took longer than timeout = 1 seconds" if trial.x[0] < 0.3 else None)
    assert any(t.reason for t in result.trials)
    assert time.monotonic() - began < 60


def returns_a_generator(x):
    return (i for i in range(3))


class Awkward(Exception):
    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")


def test_answers_that_cannot_be_sent_back_are_reasons():
    with closing(Processes(portable(returns_a_generator), 1, None)) as place:
        assert "must return a single real number; got generator" in place.submit(0).result(60).reason

    def f(x):
        raise Awkward(1, 2)

    with closing(Processes(portable(f), 1, None)) as place:
        answer = place.submit(0).result(60)
    assert answer.reason == "Awkward: 1 and 2"
    assert "test_executors.py" in answer.detail


def test_a_module_that_is_not_there_is_a_reason(tmp_path, monkeypatch):
    (tmp_path / "vanishing.py").write_text("def f(x):\n    return x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    from vanishing import f

    data = portable(f)
    monkeypatch.undo()
    with closing(Processes(data, 1, None)) as place:
        assert "No module named 'vanishing'" in place.submit(0).result(60).reason


def test_closing_ends_what_runs_at_once():
    def f(x):
        time.sleep(1000)

    place = Processes(portable(lambda x: os.getpid() if x else f(x)), 2, None)
    pids = {place.submit(1).result(60).value for _ in range(4)}
    running = [place.submit(0) for _ in range(4)]
    until(lambda: sum(future.running() for future in running) == 2)
    began = time.monotonic()
    place.close()
    assert time.monotonic() - began < 30
    assert not any(is_running(pid) for pid in pids)


SCRIPT = """
import os
import sumbo

def f(x):
    print("here", flush=True)
    return float(x[0]) + HIDDEN

HIDDEN = 1.0
result = sumbo.minimize(f, [(0, 1)], 4, workers=2, seed=0, progress=False, method="random")
assert all(t.value == t.x[0] + 1.0 for t in result.trials), result
"""


def test_a_script_needs_no_main_guard_and_its_prints_are_seen(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120)
    # Two workers may print at the same moment, a line's end after another's beginning.
    assert (done.returncode, sorted(done.stdout)) == (0, sorted("here\n" * 4)), done.stderr


IN_A_CHILD = """
import multiprocessing
import sumbo

def f(x):
    return float(x[0])

def search(_):
    return sumbo.minimize(f, [(0, 1)], 4, workers=2, seed=0, progress=False, method="random").value

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(search, [0])[0] < 1.0)
"""


def test_functions_of_a_script_in_a_process_that_multiprocessing_started(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(IN_A_CHILD)
    # A pool's processes may have no children of multiprocessing's; ours are none.
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


# --- executors ----------------------------------------------------------------------------------------------


def slow_identity(x):
    time.sleep(0.02)
    return float(x[0])


def dies(x):
    os.kill(os.getpid(), signal.SIGKILL)


def test_an_executor_that_breaks_ends_the_run_with_what_was_found():
    def executor_breaks(opt, trial):
        if trial.number == 3:
            pool.shutdown(wait=False, cancel_futures=True)

    pool = ThreadPoolExecutor(2)
    with pytest.warns(RuntimeWarning, match="the executor takes no more work"):
        result = quiet(slow_identity, 50, executor=pool, workers=2, callback=executor_breaks)
    assert result.interrupted is True
    assert result.value is not None
    assert 4 <= len(result.trials) < 50


def test_a_broken_process_pool_is_no_endless_loop():
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn) as pool, pytest.warns(RuntimeWarning, match="takes no more work"):
        result = quiet(dies, 50, executor=pool, workers=1)
    assert result.interrupted is True
    assert "terminated abruptly" in result.trials[0].reason


def test_hanging_threads_are_given_up():
    gate = threading.Event()

    def f(x):
        if x[0] < 0.3:
            gate.wait(60)
        return float(x[0])

    with ThreadPoolExecutor(8) as pool:
        result = quiet(f, 8, executor=pool, workers=2, timeout=0.5)
        gate.set()
    for trial in result.trials:
        assert trial.reason == ("took longer than timeout = 0.5 seconds" if trial.x[0] < 0.3 else None)
    assert any(t.reason for t in result.trials)


def test_a_free_place_is_filled_while_this_thread_is_busy():
    """The next point starts without the thread that submitted it: that one may be computing a suggestion."""
    with ThreadPoolExecutor(2) as pool, closing(ExecutorAdapter(pool, lambda x: x, 1, None)) as place:
        futures = [place.submit(i) for i in range(5)]
        until(lambda: all(future.done() for future in futures), 30)
        assert [future.result().value for future in futures] == [0, 1, 2, 3, 4]


def test_work_for_an_executor_that_is_shut_down():
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with closing(ExecutorAdapter(pool, abs, 1, None)) as place, pytest.raises(ExecutorGoneError, match="shutdown"):
        place.submit(1).result(30)


@pytest.mark.parametrize("executor", ["threads", 8, object()])
def test_executors_are_checked(executor):
    with pytest.raises(SettingError, match=r"executor must be a concurrent.futures.Executor"):
        quiet(slow_identity, executor=executor)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), "3", True])
def test_timeouts_are_checked(timeout):
    with pytest.raises(SettingError, match="timeout must be a number of seconds above 0"):
        quiet(slow_identity, timeout=timeout)


def test_an_objective_that_always_dies_is_given_up():
    with pytest.raises(ObjectiveError, match=r"the worker process died \(exit code 7\)"):
        quiet(lambda x: os._exit(7), 50, workers=2)


# --- points asked for ahead ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workers", "suggestion", "evaluation", "wanted"),
    [
        (8, 0.1, 4.0, 1),  # a worker ends every half second
        (8, 0.5, 60.0, 0),  # waiting half a second costs less than a percent
        (8, 1.0, 2.0, 0),  # suggestions are what everybody waits for, ahead or not
        (8, 0.1, 1.0, 1),
        (1, 0.5, 1.0, 0),
        (1, 1.0, 0.0, 0),
    ],
)
def test_no_more_points_are_asked_ahead_than_bring_something(workers, suggestion, evaluation, wanted):
    ahead = Prefetcher(workers)
    assert ahead.wanted == 0
    for _ in range(5):
        ahead.suggestions.append(suggestion)
        ahead.evaluations.append(evaluation)
    assert ahead.wanted == wanted


def test_a_rare_slow_suggestion_is_provided_for():
    ahead = Prefetcher(8)
    for seconds in (0.1, 0.1, 2.0, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1):
        ahead.suggestions.append(seconds)
        ahead.evaluations.append(4.0)
    assert ahead.wanted == 4


# --- replay -------------------------------------------------------------------------------------------------


def uneven(x):
    time.sleep(0.05 * float(x[0]))
    if x[1] > 0.9:
        raise ValueError("high")
    return float(((x - 0.3) ** 2).sum())


@pytest.mark.parametrize("method", ["auto", "add-gp-ucb", "direct"])
def test_a_parallel_run_is_replayed_to_the_last_bit(method):
    with ThreadPoolExecutor(4) as pool:
        result = maximize(uneven, BOX, 30, method=method, seed=5, executor=pool, workers=4, progress=False)
    found = replay(result.optimizer)
    assert (found.suggestions, found.agreed, found.first, found.others) == (30, 30, None, 0)
    assert found.exact
