"""Study files for tests, and `sumbo` in this process or as one of its own."""

import contextlib
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

from sumbo.cli import main

SPACE = """
[space.a]
type = "float"
low = 0.0
high = 2.0
[space.n]
type = "int"
low = 1
high = 9
[space.c]
type = "categorical"
choices = ["plain", "two words", "$(touch hacked); `x` 'q' \\"d\\" * & | > out"]
"""


def write_study(folder, text="", *, space=SPACE, goal="minimize", method='"random"', name="study.toml"):
    """A study file; `text` holds further keys."""
    path = folder / name
    path.write_text(f'goal = "{goal}"\nseed = 1\nmethod = {method}\n{text}\n{space}', encoding="utf-8")
    return path


def write_program(folder, body, name="sim"):
    """An executable shell script."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def command(*arguments):
    return [sys.executable, "-W", "error::DeprecationWarning", "-m", "sumbo", *map(str, arguments)]


def start(*arguments, cwd=None):
    """`sumbo` in a session of its own, so that a signal to its group reaches it alone."""

    def listen():  # Ctrl-C is ignored in what runs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)

    return subprocess.Popen(
        command(*arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        start_new_session=True,
        preexec_fn=listen,
    )


def says(*arguments, code=0, cwd=None):
    """Run `sumbo ... --json` to its end, here; its answer, and what went to standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(cwd or "."), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        found = main([*map(str, arguments), "--json"])
    assert found == code, (found, out.getvalue(), err.getvalue())
    return json.loads(out.getvalue()), err.getvalue()


def call(*arguments, code=0, cwd=None):
    """The answer alone; a traceback is an error."""
    answer, err = says(*arguments, code=code, cwd=cwd)
    assert "Traceback" not in err, err
    return answer


def until(condition, seconds=180.0):
    """Wait for something to be so."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
    return found


def lines_of(path):
    return path.read_text().splitlines() if path.exists() else []


def is_running(pid):
    """Is there such a process, that is not merely waiting to be collected?"""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kill(pid):
    os.kill(pid, signal.SIGKILL)


def states(database):
    """How many trials are in each state, straight from the tables."""
    with sqlite3.connect(database) as connection:
        return dict(connection.execute("SELECT state, count(*) FROM sumbo_trials GROUP BY state").fetchall())
