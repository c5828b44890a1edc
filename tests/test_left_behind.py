"""Whatever an evaluation starts ends with it when it is stopped, and with the run at the latest."""

import contextlib
import os
import signal
import subprocess
import sys

import pytest
from studies import call, is_running, kill, lines_of, start, until, write_program, write_study

import sumbo

# In some of these no evaluation succeeds, and a run says so.
pytestmark = pytest.mark.filterwarnings("ignore:none of .* evaluations succeeded")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="found by their environment, which Linux shows")

# An objective that starts processes in many ways and then does as SUMBO_TEST_THEN says.
MODEL = """
import multiprocessing, os, signal, subprocess, time

KINDS = {
    "child": dict(args=["sleep", "1000"]),
    "grandchild": dict(args=["sh", "-c", "sleep 1000 & echo $! >> pids; wait"]),
    "deaf": dict(args=["sh", "-c", "trap '' TERM; sleep 1000; sleep 1000"]),
    "group": dict(args=["sleep", "1000"], process_group=0),
    "session": dict(args=["sh", "-c", "(sleep 1000 & echo $! >> pids)"], start_new_session=True),
}
kept = []

def started():
    if os.name == "posix" and os.uname().sysname != "Linux":
        del KINDS["group"], KINDS["session"]
    for kind in KINDS.values():
        kept.append(subprocess.Popen(**kind))
    process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(1000,))
    process.start()
    forked = os.fork()
    if forked == 0:
        time.sleep(1000)
        os._exit(0)
    with open("pids", "a") as file:
        file.write("".join(f"{pid}\\n" for pid in [process.pid, forked, *(p.pid for p in kept)]))
    while len(open("pids").readlines()) < len(KINDS) + 2 + ("session" in KINDS) + 1:
        time.sleep(0.01)
    with open("ready", "a") as file:
        file.write("ready\\n")

def f(params):
    if not kept:
        started()
    then = os.environ["SUMBO_TEST_THEN"]
    if then == "hang":
        time.sleep(1000)
    if then == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if then == "exit":
        os._exit(3)
    return 1.0
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the objective; what its processes write to `pids` is ended after the test, whatever it found."""
    (tmp_path / "model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "model", raising=False)
    yield tmp_path
    for pid in map(int, lines_of(tmp_path / "pids")):
        with contextlib.suppress(ProcessLookupError):
            kill(pid)


def imported(folder):
    import model

    assert model.__file__ == str(folder / "model.py")
    return model.f


def check_gone(folder, *, at_least=8):
    pids = [int(line) for line in lines_of(folder / "pids")]
    assert len(pids) >= at_least
    until(lambda: not [pid for pid in pids if is_running(pid)], 20)


@pytest.mark.parametrize(
    ("then", "timeout", "reason"),
    [
        ("hang", 2, "took longer than timeout = 2 seconds"),
        ("die", 600, "the worker process died (signal 9, SIGKILL)"),
        ("exit", 600, "the worker process died (exit code 3)"),
        ("return", 600, None),
    ],
)
def test_minimize_leaves_no_process_behind(then, timeout, reason, folder, monkeypatch):
    monkeypatch.setenv("SUMBO_TEST_THEN", then)
    result = sumbo.minimize(imported(folder), [(0, 1)], 1, timeout=timeout, method="random", progress=False)
    assert result.trials[0].reason == reason
    check_gone(folder, at_least=1 if then == "hang" else 8)


def test_what_an_evaluation_leaves_is_there_for_the_next_one(folder):
    def f(x):
        import model

        if not model.kept:
            model.kept.append(subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            (folder / "pids").write_text(str(model.kept[0].pid))
        model.kept[0].stdin.write(b"1\n")
        model.kept[0].stdin.flush()
        return float(model.kept[0].stdout.readline())

    imported(folder)
    result = sumbo.minimize(f, [(0, 1)], 3, timeout=600, method="random", progress=False)
    assert [t.value for t in result.trials] == [1.0] * 3
    check_gone(folder, at_least=1)


SCRIPT = """
import signal, sys
sys.path.insert(0, ".")
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
import model, sumbo

sumbo.minimize(model.f, [(0, 1)], 1, timeout=600, method="random", progress=False)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_minimize_that_is_stopped_leaves_no_process_behind(number, folder, monkeypatch):
    monkeypatch.setenv("SUMBO_TEST_THEN", "hang")
    with subprocess.Popen([sys.executable, "-c", SCRIPT], start_new_session=True) as process:
        until(lambda: lines_of(folder / "ready") or process.poll() is not None, 60)
        os.killpg(process.pid, number)
        assert process.wait(60) == (-number if number == signal.SIGKILL else 0)
    check_gone(folder)


# --- sumbo run ----------------------------------------------------------------------------------------------


def study(folder, text):
    return write_study(folder, text, space="[space.a]\ntype = 'float'\nlow = 0\nhigh = 1")


def test_a_timeout_of_a_study_leaves_no_process_behind(folder, monkeypatch):
    monkeypatch.setenv("SUMBO_TEST_THEN", "hang")
    call("run", study(folder, 'objective = "model:f"\ntimeout = 2\nbudget = 1'), cwd=folder, code=3)
    check_gone(folder, at_least=1)


def test_a_study_that_is_stopped_leaves_no_process_behind(folder, monkeypatch):
    monkeypatch.setenv("SUMBO_TEST_THEN", "hang")
    with start("run", study(folder, 'objective = "model:f"\nbudget = 1'), cwd=folder) as process:
        until(lambda: lines_of(folder / "ready") or process.poll() is not None, 60)
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)
    check_gone(folder)


@linux
def test_a_program_does_not_outlive_its_worker(folder):
    write_program(folder, "echo $$ >> pids; echo $PPID > worker; sleep 1000")
    with start("run", study(folder, 'command = ["./sim", "{a}"]\nbudget = 1'), cwd=folder) as process:
        until(lambda: lines_of(folder / "worker") or process.poll() is not None, 60)
        kill(int(lines_of(folder / "worker")[0]))
        process.communicate(timeout=60)
    check_gone(folder, at_least=1)


@linux
def test_what_a_program_leaves_ends_with_the_run(folder):
    write_program(folder, "sleep 1000 & echo $! >> pids; setsid sleep 1000 & echo $! >> pids; echo 1")
    found = call("run", study(folder, 'command = ["./sim", "{a}"]\nbudget = 2'), cwd=folder)
    assert found["value"] == 1.0
    check_gone(folder, at_least=4)


# --- a fork that comes back ---------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["sys.exit(7)", "raise ValueError('in the child')", "return -1.0"])
def test_a_forked_child_that_comes_back_answers_nothing(ending, capfd):
    def f(x):
        if os.fork() == 0:
            if ending == "sys.exit(7)":
                sys.exit(7)
            if ending == "return -1.0":
                return -1.0
            raise ValueError("in the child")
        code = os.waitstatus_to_exitcode(os.wait()[1])
        return float(x[0]) + code

    result = sumbo.minimize(f, [(0.0, 1.0)], 4, workers=2, method="random", seed=0, progress=False)
    code = {"sys.exit(7)": 7, "return -1.0": 0}.get(ending, 1)
    assert [t.value for t in result.trials] == [t.x[0] + code for t in result.trials]
    assert ("in the child" in capfd.readouterr().err) == ending.startswith("raise")
