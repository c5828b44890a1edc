"""Objectives that close their streams or have no words for what went wrong; limits that no machine has."""

import asyncio
import contextlib
import os
import resource
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from studies import call, write_program, write_study

import sumbo
from sumbo import Optimizer
from sumbo.errors import SettingError, TellError

# In some of these no evaluation succeeds, and a run says so.
pytestmark = pytest.mark.filterwarnings("ignore:none of .* evaluations succeeded")

BOX = [(0.0, 1.0)]
SPACE = "[space.a]\ntype = 'float'\nlow = 0\nhigh = 1"


def quiet(f, budget=4, **options):
    return sumbo.minimize(f, BOX, budget, method="random", seed=0, progress=False, **options)


# --- streams ------------------------------------------------------------------------------------------------

CLOSED = {
    "stdout closed": lambda: sys.stdout.close(),
    "stdout's descriptor closed": lambda: os.close(1),
    "stderr closed": lambda: sys.stderr.close(),
    "stderr's descriptor closed": lambda: os.close(2),
    "stdout of no kind": lambda: setattr(sys, "stdout", object()),
    "no stdout": lambda: setattr(sys, "stdout", None),
    "no stderr": lambda: setattr(sys, "stderr", None),
}


@pytest.mark.parametrize("what", CLOSED)
def test_a_worker_outlives_its_streams(what, capfd):
    close = CLOSED[what]
    stream = "stderr" if "stderr" in what else "stdout"

    def f(x):
        if getattr(sys, stream) is None or hasattr(getattr(sys, stream), "write"):
            print("seen", file=getattr(sys, stream))
        close()
        return os.getpid()

    result = quiet(f, timeout=600)
    assert len({t.value for t in result.trials}) == 1
    assert result.trials[0].value not in (None, os.getpid())
    printed = getattr(capfd.readouterr(), {"stdout": "out", "stderr": "err"}[stream])
    assert printed.count("seen\n") == (4 if "closed" in what else 1)  # None is a way to be silent: it is left


GONE = {
    "closed by the objective": ("", "sys.stderr.close()"),
    "its descriptor closed": ("", "os.closerange(2, 3)"),
    "no stream": ("", "sys.stderr = object()"),
    "none from the beginning": ("sys.stderr = None", ""),
    "closed from the beginning": ("sys.stderr.close()", ""),
}


@pytest.mark.parametrize("what", GONE)
@pytest.mark.parametrize("options", ["", ", workers=2"])
def test_a_run_outlives_what_shows_its_progress(what, options):
    before, during = GONE[what]
    code = f"""
import os, sys, sumbo
def callback(opt, trial):
    {during or "pass"}
{before}
run = sumbo.minimize(lambda x: x[0], [(0, 1)], 4, method="random", callback=callback{options})
print(len(run.trials), run.interrupted)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout == "4 False\n", done.stderr  # nor is the progress shown there instead


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_run_outlives_a_log_on_a_full_disk():
    code = 'import sumbo; print(len(sumbo.minimize(lambda x: x[0], [(0, 1)], 4, method="random").trials))'
    with open("/dev/full", "w") as log:
        done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=log, text=True, timeout=300)
    assert done.stdout == "4\n"


# --- ends ---------------------------------------------------------------------------------------------------


def test_the_end_of_a_run_may_come_while_a_worker_ends_by_itself(monkeypatch):
    """Two threads then close one pipe at once, of which Python says ValueError: rare, and the whole run was lost."""

    class Closing:
        def __init__(self, stream):
            self._stream = stream

        def __getattr__(self, name):
            return getattr(self._stream, name)

        def close(self):
            self._stream.close()
            raise ValueError("PyMemoryView_FromBuffer(): info->buf must not be NULL")

    class Process(subprocess.Popen):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            self.stdin = Closing(self.stdin)

    monkeypatch.setattr(subprocess, "Popen", Process)
    assert [t.state for t in quiet(lambda x: float(x[0]), workers=2).trials] == ["done"] * 4


# --- no words -----------------------------------------------------------------------------------------------


class MuteError(Exception):
    def __str__(self):
        raise ValueError("no words")


class EndlessError(Exception):
    def __str__(self):
        return str(self)


class NoText:
    def __repr__(self):
        raise ZeroDivisionError

    __str__ = __repr__


class EndlessText:
    def __repr__(self):
        return repr(self)


class NoNumber(float):
    def __float__(self):
        raise KeyError("not today")


def raises(error):
    raise error


PLACES = {
    "here": lambda pool: {},
    "worker": lambda pool: {"timeout": 600},
    "executor": lambda pool: {"executor": pool},
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("f", "reason"),
    [
        (lambda x: raises(MuteError()), "MuteError: "),
        (lambda x: raises(EndlessError()), "EndlessError: "),
        (lambda x: raises(RecursionError("deep")), "RecursionError: deep"),
        (lambda x: NoText(), "NoText"),
        (lambda x: EndlessText(), "EndlessText"),
        (lambda x: NoNumber(1.0), "NoNumber"),
    ],
    ids=["mute", "endless", "deep", "no text", "endless text", "no number"],
)
def test_what_has_no_words_is_a_failed_trial_with_a_reason(f, reason, place):
    with ThreadPoolExecutor(1) as pool:
        result = quiet(f, **PLACES[place](pool))
    assert [t.state for t in result.trials] == ["failed"] * 4
    assert all(reason in t.reason for t in result.trials)


def test_any_kind_of_exception_leaves_a_worker_alive():
    def f(x):
        raise asyncio.CancelledError(os.getpid())

    result = quiet(f, timeout=600)
    assert {t.reason for t in result.trials} == {result.trials[0].reason}
    assert result.trials[0].reason.startswith("CancelledError: ")


@pytest.mark.parametrize("value", [NoText(), EndlessText(), NoNumber(1.0)])
def test_telling_a_value_without_words(value):
    opt = Optimizer(BOX, "random", seed=0)
    trial = opt.ask()
    with pytest.raises(TellError, match=f"must be a single real number; .*{type(value).__name__}"):
        opt.tell(trial, value)
    opt.tell(trial, 1.0)


# --- large numbers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("timeout", [1e10, sys.float_info.max, 10**300])
@pytest.mark.parametrize("place", ["executor", "worker"])
def test_a_timeout_may_be_as_long_as_you_like(timeout, place):
    found = []

    def search():
        with ThreadPoolExecutor(1) as pool:
            options = {"executor": pool} if place == "executor" else {}
            found.append(quiet(lambda x: float(x[0]), timeout=timeout, **options))

    thread = threading.Thread(target=search, daemon=True)
    thread.start()
    thread.join(60)
    assert [t.value for t in found[0].trials] == [t.x[0] for t in found[0].trials]


def test_a_timeout_beyond_all_numbers_is_refused():
    with pytest.raises(SettingError, match="timeout must be a number of seconds"):
        quiet(lambda x: 0.0, timeout=10**400)


def test_a_study_with_a_long_timeout_and_many_workers(tmp_path):
    write_program(tmp_path, "echo 1")
    study = write_study(tmp_path, 'command = ["./sim", "{a}"]\ntimeout = 1e300', space=SPACE)
    assert call("run", study, "--workers", 20000, "--budget", 2)["counts"]["done"] == 2


@pytest.fixture
def limit_of_files():
    """Sets how many files this process may have open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield lambda most: resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_of_many_workers_no_more_are_started_than_have_something_to_do(limit_of_files):
    limit_of_files(256)
    threads = []
    result = quiet(
        lambda x: float(x[0]), workers=20000, callback=lambda opt, trial: threads.append(threading.active_count())
    )
    assert max(threads) < 100
    assert [t.value for t in result.trials] == [t.x[0] for t in result.trials]


def test_more_workers_than_files_are_refused_before_anything_is_evaluated(limit_of_files, tmp_path):
    limit_of_files(256)
    with pytest.raises(SettingError, match=r"20000 workers .* this process may have 256; say workers = 96 or fewer"):
        quiet(lambda x: (tmp_path / "called").touch(), 20000, workers=20000)
    assert list(tmp_path.iterdir()) == []


def test_a_system_that_refuses_workers(limit_of_files, tmp_path):
    """Nobody can start a process once all files are in use: the run goes on with fewer workers, until none is left."""

    def f(x):
        if (tmp_path / "full").exists():
            os._exit(1)
        return float(x[0])

    def fill(opt, trial):
        if not (tmp_path / "full").exists():
            (tmp_path / "full").touch()
            with contextlib.suppress(OSError):
                while True:
                    files.callback(os.close, os.dup(0))

    limit_of_files(256)
    with (
        contextlib.ExitStack() as files,
        pytest.warns(RuntimeWarning, match="refuses another worker .* as many as there are, 1"),
        pytest.raises(SettingError, match="refuses to start a worker process"),
    ):
        quiet(f, 50, workers=2, callback=fill)
