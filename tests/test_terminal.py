"""What is shown on a terminal, by processes that have one."""

import os
import pty
import re
import subprocess
import sys

import pytest
from studies import command, write_program, write_study

from sumbo.executors import EvaluationResult
from sumbo.study.files.toml import load
from sumbo.study.stored import StoredStudy

if sys.platform != "linux":
    pytest.skip("reads a terminal as Linux has it", allow_module_level=True)


def on_a_terminal(arguments, cwd):
    """What a process writes to standard error when that is a terminal; escape sequences are kept."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=theirs, cwd=cwd, env=environment)
    os.close(theirs)
    pieces = []
    try:
        while piece := os.read(ours, 4096):
            pieces.append(piece)
    except OSError:  # how Linux says that nobody has the other end any more
        pass
    finally:
        os.close(ours)
    assert process.wait() == 0, b"".join(pieces)
    return b"".join(pieces).decode()


def plain(text):
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)


def test_a_run_has_a_bar_with_the_best_value_and_failures(tmp_path):
    code = (
        "import sumbo\n"
        "def f(x):\n"
        "    if x[0] > 0.5:\n"
        "        raise ArithmeticError('too far')\n"
        "    return 2.0\n"
        "sumbo.minimize(f, [(0, 1)], 12, method='random', seed=0)\n"
    )
    shown = plain(on_a_terminal([sys.executable, "-c", code], tmp_path))
    assert "12/12" in shown
    assert "best 2" in shown
    assert re.search(r"[1-9] failed", shown)


def test_a_report_says_what_it_does_and_leaves_no_trace(tmp_path):
    study = write_study(tmp_path)
    stored = StoredStudy.open(load(study), create=True)
    for i in range(12):
        stored.ledger.tell(stored.hand_out().number, EvaluationResult(float(i * i % 7)))
    shown = on_a_terminal(command("report", study, "-o", tmp_path / "r.html"), tmp_path)
    assert "\r\x1b[Ksumbo: " in shown
    assert "sumbo: " not in shown.rpartition("\r\x1b[K")[2]
    assert (tmp_path / "r.html").exists()


def test_reproducing_has_a_bar_and_lines_that_stay(tmp_path):
    code = (
        "from sumbo.cli.reproducing import _Bar\n"
        "from sumbo.paper.runs import Ended, Task\n"
        "with _Bar(3, 1) as bar:\n"
        "    bar.say('one of three runs is here')\n"
        "    bar.ended(Ended(Task('synthetic', 'additive-10-3-3', 'RAND', 0, 3), None, 'no luck'))\n"
        "    bar.ended(Ended(Task('synthetic', 'additive-10-3-3', 'RAND', 1, 3), {}))\n"
    )
    shown = plain(on_a_terminal([sys.executable, "-c", code], tmp_path))
    assert "one of three runs is here" in shown
    assert "failed: no luck" in shown
    assert "3/3" in shown


def test_a_study_that_is_run_has_a_bar_and_a_line_for_each_failure(tmp_path):
    write_program(tmp_path, '[ "$2" -gt 4 ] && { echo "too many" >&2; exit 3; }; echo 1.5')
    study = write_study(tmp_path, 'command = ["./sim", "{a}", "{n}", "{c}"]\nbudget = 8')
    shown = plain(on_a_terminal(command("run", study), tmp_path))
    assert "8/8" in shown
    assert "best 1.5" in shown
    assert re.search(r"trial \d failed: .*3", shown)
