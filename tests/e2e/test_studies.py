"""`sumbo run` as people and machines treat it: killed, interrupted, shared, with programs that misbehave."""

import os
import random
import signal
import time

import pytest
from studies import call, is_running, kill, lines_of, start, states, until, write_program, write_study

from sumbo.cli.show import record
from sumbo.study.files.toml import load
from sumbo.study.run import run_stored
from sumbo.study.stored import StoredStudy

# Writes down each evaluation before it answers, so that a test can tell what was evaluated from what was stored.
SIM = """
echo "$SUMBO_TRIAL" >> begun
sleep DELAY
echo "$SUMBO_TRIAL $a" >> evaluated
echo "$a"
"""
PROGRAM = 'command = ["./sim"]\nparameters = "environment"'


# Goes on when the file `go` is there.
WAITS = SIM.replace("sleep DELAY", "while [ ! -e go ]; do sleep 0.05; done")


def said(process, words):
    """What a run writes to standard error, up to the line with these words."""
    lines = []
    while words not in "".join(lines[-1:]):
        lines.append(process.stderr.readline())
        assert lines[-1], "".join(lines)
    return "".join(lines)


def begin(folder, text="", delay=0.05):
    write_program(folder, SIM.replace("DELAY", str(delay)))
    return write_study(folder, f"{PROGRAM}\n{text}")


def records(path):
    study = StoredStudy.open(load(path), create=False)
    return [record(study.file, trial) for trial in study.records]


def check_whole(path, folder, budget):
    """Every evaluation that was told is stored once with its own value; nothing runs, nothing waits."""
    trials = records(path)
    assert [t["state"] for t in trials] == ["done"] * budget
    assert [t["trial"] for t in trials] == list(range(budget))
    evaluated = {}
    for line in lines_of(folder / "evaluated"):
        number, _, value = line.partition(" ")
        evaluated.setdefault(int(number), set()).add(float(value))
    for trial in trials:
        assert trial["value"] == trial["params"]["a"]
        assert evaluated[trial["trial"]] == {trial["value"]}  # run again, if at all, with the same parameters


def test_killed_again_and_again_nothing_told_is_lost(tmp_path):
    path = begin(tmp_path, "budget = 24\nworkers = 3", delay=0.15)
    rng = random.Random(0)
    told = {}
    for _ in range(3):
        process = start("run", path)
        more = len(lines_of(tmp_path / "evaluated")) + 1
        # On a busy machine all may be evaluated before the last kill: then a run ends by itself.
        until(lambda p=process, more=more: p.poll() is not None or len(lines_of(tmp_path / "evaluated")) >= more)
        time.sleep(rng.uniform(0.0, 0.3))
        if process.poll() is None:
            kill(process.pid)
        process.communicate()
        stored = {t["trial"]: t["value"] for t in records(path) if t["state"] == "done"}
        assert told.items() <= stored.items()
        told = stored
    answer = call("run", path)
    assert answer["counts"] == {"done": 24, "failed": 0, "running": 0, "open": 0, "waiting": 0, "cancelled": 0}
    check_whole(path, tmp_path, 24)


def test_a_killed_run_leaves_no_program_behind(tmp_path):
    write_program(tmp_path, "echo $$ >> pids; sleep 100")
    process = start("run", write_study(tmp_path, f"{PROGRAM}\nbudget = 4\nworkers = 2"))
    until(lambda: len(lines_of(tmp_path / "pids")) == 2)
    kill(process.pid)
    process.communicate()
    for pid in lines_of(tmp_path / "pids"):
        until(lambda pid=pid: not is_running(int(pid)), 60)


def test_ctrl_c_once_finishes_what_runs(tmp_path):
    write_program(tmp_path, WAITS)
    path = write_study(tmp_path, f"{PROGRAM}\nbudget = 100\nworkers = 2")
    process = start("run", path)
    until(lambda: len(lines_of(tmp_path / "begun")) == 2)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    err = said(process, "finishing the trials that run")
    assert states(tmp_path / "study.db") == {"running": 2}
    (tmp_path / "go").touch()
    err += process.communicate(timeout=60)[1]
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert states(tmp_path / "study.db") == {"done": 2}
    assert len(lines_of(tmp_path / "evaluated")) == 2
    assert call("run", path, "--budget", 4)["counts"]["done"] == 4
    check_whole(path, tmp_path, 4)


@pytest.mark.parametrize("signals", [[signal.SIGINT, signal.SIGINT], [signal.SIGTERM]], ids=["twice", "terminated"])
def test_ctrl_c_twice_stops_now_and_the_trials_can_be_run_again(signals, tmp_path):
    path = begin(tmp_path, "budget = 100\nworkers = 2", delay=100)
    process = start("run", path)
    until(lambda: len(lines_of(tmp_path / "begun")) == 2)
    err = ""
    for number in signals[:-1]:
        os.killpg(process.pid, number)
        err += said(process, "finishing the trials that run")
    os.killpg(process.pid, signals[-1])
    began = time.monotonic()
    err += process.communicate(timeout=60)[1]
    assert time.monotonic() - began < 20
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert states(tmp_path / "study.db") == {"waiting": 2}
    write_program(tmp_path, SIM.replace("DELAY", "0"))
    assert call("run", path, "--budget", 3)["counts"]["done"] == 3
    check_whole(path, tmp_path, 3)


def test_a_run_that_is_terminated_keeps_every_value_that_it_has(tmp_path):
    path = begin(tmp_path, "budget = 100\nworkers = 2", delay=0)
    told = []

    def ended(trial, result):
        told.append(trial.number)
        until(lambda: len(lines_of(tmp_path / "evaluated")) >= 2)
        time.sleep(1)  # the other worker's value arrives here
        os.kill(os.getpid(), signal.SIGTERM)

    finished = run_stored(StoredStudy.open(load(path), create=True), 2, 2, ended, print)
    assert (finished, len(told)) == (False, 1)
    check_whole(path, tmp_path, 2)


def test_two_runs_share_a_study(tmp_path):
    path = begin(tmp_path, "budget = 20\nworkers = 2")
    runs = [start("run", path, "--json") for _ in range(2)]
    for process in runs:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    check_whole(path, tmp_path, 20)
    evaluated = [line.split()[0] for line in lines_of(tmp_path / "evaluated")]
    assert sorted(map(int, evaluated)) == list(range(20))  # each once, by one of the two


def test_one_of_two_runs_is_killed_and_the_other_does_its_part(tmp_path):
    path = begin(tmp_path, "budget = 16\nworkers = 2", delay=0.3)
    victim, survivor = start("run", path), start("run", path)
    until(lambda: len(lines_of(tmp_path / "begun")) >= 4)
    kill(victim.pid)
    victim.communicate()
    survivor.communicate(timeout=120)
    assert call("run", path)["counts"]["done"] == 16
    check_whole(path, tmp_path, 16)


def test_a_category_with_blanks_and_metacharacters(tmp_path):
    write_program(tmp_path, 'printf "%s\\n" "$2" >> seen; echo "$1"')
    path = write_study(tmp_path, 'command = ["./sim", "{a}", "{c}", "{n}"]\nbudget = 12')
    call("run", path)
    trials = records(path)
    assert lines_of(tmp_path / "seen") == [t["params"]["c"] for t in trials]
    assert len(set(lines_of(tmp_path / "seen"))) == 3
    assert not (tmp_path / "hacked").exists()
    assert not (tmp_path / "out").exists()


def test_a_program_that_sometimes_hangs_or_fails(tmp_path):
    body = """
case "$n" in
  1|2|3) sleep 100 ;;
  4|5) echo "mesh is bad" >&2; exit 3 ;;
  6) echo nan ;;
  *) echo "$a" ;;
esac
"""
    write_program(tmp_path, body)
    path = write_study(tmp_path, f"{PROGRAM}\nbudget = 20\nworkers = 4\ntimeout = 0.5")
    counts = call("run", path)["counts"]
    trials = records(path)
    assert counts["done"] + counts["failed"] == 20
    assert counts["failed"] > 3
    for trial in trials:
        n = trial["params"]["n"]
        expected = "took longer than timeout = 0.5 seconds" if n <= 3 else "exit code 3" if n <= 5 else "value was nan"
        assert trial["reason"] == (expected if n <= 6 else None)
        assert trial["detail"] == ("mesh is bad" if n in (4, 5) else None)


def test_retries(tmp_path):
    write_program(tmp_path, 'if [ -e "t$SUMBO_TRIAL" ]; then echo 1; else touch "t$SUMBO_TRIAL"; exit 1; fi')
    path = write_study(tmp_path, f"{PROGRAM}\nbudget = 3\nretries = 1")
    assert call("run", path)["counts"]["done"] == 3


def test_the_same_error_everywhere_ends_the_run(tmp_path):
    write_program(tmp_path, "echo 'no licence' >&2; exit 7")
    path = write_study(tmp_path, f"{PROGRAM}\nbudget = 50\nworkers = 2")
    answer = call("run", path, code=3)
    assert "all failed with: exit code 7" in answer["error"]
    assert "no licence" in answer["error"]
    assert states(tmp_path / "study.db")["failed"] in (10, 11)


def test_a_python_function_with_the_default_method(tmp_path):
    (tmp_path / "wing.py").write_text("def drag(p):\n    print('noise')\n    return (p['a'] - 0.7) ** 2 + p['n']\n")
    path = write_study(tmp_path, 'objective = "wing:drag"\nbudget = 16\nworkers = 2', method='"auto"')
    answer = call("run", path)
    assert answer["value"] == answer["params"]["n"] + (answer["params"]["a"] - 0.7) ** 2
    assert answer["value"] < 1.6
