"""Searches that end in one process and go on in another."""

import json
import os
import signal
import subprocess
import sys

import pytest
from saved import forgotten, latest_state

import sumbo
from sumbo.errors import StateError

# Goes on with a saved search for some evaluations, and saves it again.
GO_ON = """
import json, sys
import numpy as np
import sumbo

path, evaluations = sys.argv[1], int(sys.argv[2])
with open(path) as file:
    opt = sumbo.Optimizer.from_dict(json.load(file))
for _ in range(evaluations):
    trial = opt.ask()
    opt.tell(trial, float(np.cos(3 * trial.x).sum() + trial.x[0] * trial.x[1]))
with open(path, "w") as file:
    json.dump(opt.to_dict(), file)
"""

SPACE = {
    "a": sumbo.Float(0, 2),
    "b": sumbo.Float(1e-3, 1, log=True),
    "n": sumbo.Int(1, 9),
    "c": sumbo.Categorical(["p", "q", "r"]),
}


def go_on(path, evaluations):
    subprocess.run([sys.executable, "-W", "error", "-c", GO_ON, str(path), str(evaluations)], check=True, timeout=300)


@pytest.mark.parametrize("method", ["auto", "add-gp-ucb"])
def test_a_search_in_pieces_is_the_search_in_one(method, tmp_path):
    start = json.dumps(sumbo.Optimizer(SPACE, method, "maximize", seed=11).to_dict())
    whole, pieces = tmp_path / "whole.json", tmp_path / "pieces.json"
    whole.write_text(start)
    pieces.write_text(start)
    go_on(whole, 19)
    go_on(pieces, 13)
    go_on(pieces, 6)
    a, b = (json.loads(path.read_text()) for path in (whole, pieces))
    for trial in a["trials"] + b["trials"]:
        for key in ("seconds", "suggest_seconds", "started", "ended"):  # all that is not repeated
            del trial[key]
    assert a == b


def test_a_search_resumed_here_goes_on_as_there(tmp_path):
    path = tmp_path / "study.json"
    opt = sumbo.Optimizer(SPACE, "add-gp-ucb", seed=5)
    opt.observe({"a": 1.0, "b": 0.1, "n": 4, "c": "q"}, 1.5)
    waiting, lost = opt.ask(2)
    path.write_text(json.dumps(opt.to_dict()))
    go_on(path, 11)
    resumed = sumbo.Optimizer.from_dict(json.loads(path.read_text()))
    assert [t.state for t in resumed.trials[:3]] == ["done", "running", "running"]
    resumed.tell(waiting, 0.5)  # trials of the first process, told after two restarts
    resumed.tell(lost.number, failed=True, reason="the machine was switched off")
    assert len(resumed.trials) == 14
    assert resumed.best.value <= 0.5
    assert resumed.ask().number == 14


INTERRUPTED = """
import json, os, signal, sys, time
import sumbo

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background

def f(params):
    os.write(1, b"evaluating\\n")  # at once: what workers print may be mixed
    time.sleep(0.05)
    return params["a"]

space = {"a": sumbo.Float(0, 1)}
result = sumbo.minimize(f, space, 10_000, method="random", seed=0, progress=False, workers=WORKERS)
done = [t for t in result.trials if t.state == "done"]
assert result.interrupted and result.value == min(t.value for t in done), result
with open(sys.argv[1], "w") as file:
    json.dump(result.optimizer.to_dict(), file)
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_keeps_everything_and_the_search_can_go_on(workers, tmp_path):
    path = tmp_path / "study.json"
    code = INTERRUPTED.replace("WORKERS", str(workers))
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        for _ in range(6):
            assert process.stdout.readline() == "evaluating\n"
        os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to the workers too
        _, err = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert process.returncode == 0, err
    opt = sumbo.Optimizer.from_dict(json.loads(path.read_text()))
    done = [t for t in opt.trials if t.state == "done"]
    assert len(done) >= 6 - workers
    assert len(opt.trials) - len(done) <= (1 if workers == 1 else 2 * workers)  # those running, and those asked ahead
    assert opt.ask().number == len(opt.trials) - 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda state: state.pop("lengthscales"),
        lambda state: state.update(scales="wide"),
        lambda state: state.update(groups=[[0]]),
        lambda state: state.update(groups=[[0, 0]]),
        lambda state: state.update(noise_variance=-1.0),
        lambda state: state.update(learned_at="long ago"),
        lambda state: state.update(scaled_at="long ago"),
        lambda state: state.update(freed_at=None),
    ],
)
def test_a_damaged_model_is_named_and_can_be_learned_anew(damage):
    opt = sumbo.Optimizer([(0, 1)] * 3, seed=0)
    for _ in range(14):
        trial = opt.ask()
        opt.tell(trial, float(trial.x.sum()))
    saved = opt.to_dict()
    damage(latest_state(saved))
    with pytest.raises(StateError, match=r"the saved (model cannot be read|state of the method makes no sense)"):
        sumbo.Optimizer.from_dict(saved).ask()
    assert sumbo.Optimizer.from_dict(forgotten(saved)).ask().number == 14
