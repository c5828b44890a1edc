"""Suggestions made again from the record, of an optimizer and of a stored study."""

import json
import sqlite3

import pytest
from studies import call, write_study

import sumbo
from sumbo import Optimizer, replay
from sumbo.errors import StateError
from sumbo.executors import EvaluationResult

SPACE = {"a": sumbo.Float(0, 1), "n": sumbo.Int(1, 5), "c": sumbo.Categorical(["u", "v"])}


def value(trial):
    return trial.params["a"] + trial.params["n"] + (trial.params["c"] == "u")


def disorderly(method="auto", seed=1):
    """Asked and told out of order, with failures, points of one's own, and some that still run."""
    opt = Optimizer(SPACE, method, seed=seed)
    opt.observe({"a": 0.5, "n": 3, "c": "u"}, 4.5)
    waiting = opt.ask(4)
    for i in range(18):
        trial = waiting.pop((5 * i) % len(waiting))
        if i % 5 == 3:
            opt.tell(trial, failed=True, reason="no mesh")
        else:
            opt.tell(trial, value(trial))
        if i == 9:
            opt.observe({"a": 0.1, "n": 1, "c": "v"}, failed=True)
        waiting.append(opt.ask())
    return opt


@pytest.mark.parametrize("method", ["auto", "add-gp-ucb", "gp-ei", "cyclic-groups", "rembo", "random"])
def test_an_optimizer_is_replayed_to_the_last_bit(method):
    opt = disorderly(method)
    for source in (opt, Optimizer.from_dict(json.loads(json.dumps(opt.to_dict())))):
        found = replay(source)
        assert (found.suggestions, found.agreed, found.others, found.first) == (22, 22, 2, None)


def test_the_order_of_tells_is_what_makes_the_difference():
    """The record is needed: with the same values told in another order the search is another one."""
    data = disorderly().to_dict()
    for entry in data["trials"]:
        entry["seen"] = None if entry["seen"] is None else max(entry["seen"] - 2, 0)
    found = replay(Optimizer.from_dict(data))
    assert not found.exact
    assert found.first.recorded != found.first.recomputed


def test_a_changed_value_shows_from_the_next_suggestion_on():
    data = disorderly().to_dict()
    told = sorted((trial for trial in data["trials"] if trial["state"] == "done"), key=lambda trial: trial["told"])
    told[10]["value"] = -100.0
    changed = replay(Optimizer.from_dict(data))
    assert not changed.exact
    assert data["trials"][changed.first.number]["seen"] >= told[10]["told"]
    assert changed.agreed >= changed.first.number - 2


def test_a_corrected_value_changes_no_suggestion_that_was_made_before():
    opt = disorderly()
    before = len(opt.trials)
    opt._ledger.correct(0, EvaluationResult(-100.0))
    opt.ask()
    again = Optimizer.from_dict(json.loads(json.dumps(opt.to_dict())))
    assert again.trials[0].value == -100.0
    for source in (opt, again):
        found = replay(source)
        assert (found.suggestions, found.agreed) == (before - 1, before - 1)


def test_cancelled_trials_are_part_of_the_record():
    opt = disorderly()
    for trial in [trial for trial in opt.trials if trial.state == "running"][:2]:
        opt.cancel(trial)
    opt.ask(3)
    for source in (opt, Optimizer.from_dict(json.loads(json.dumps(opt.to_dict())))):
        assert replay(source).exact
        assert [trial.state for trial in source.trials].count("cancelled") == 2


def test_points_of_ones_own_are_no_suggestions():
    opt = Optimizer(SPACE, "random")
    opt.observe({"a": 0.5, "n": 3, "c": "u"}, 4.5)
    with pytest.raises(StateError, match="no suggestions are on record"):
        replay(opt)


@pytest.mark.parametrize("seen", [-1, 1.5, "3", True])
def test_records_are_checked(seen):
    data = disorderly("random").to_dict()
    data["trials"][3]["seen"] = seen
    with pytest.raises(StateError, match="trial 3: seen must be a whole number"):
        Optimizer.from_dict(data)


# --- stored studies -----------------------------------------------------------------------------------------

OBJECTIVE = """
import random, time

def f(p):
    time.sleep(0.1 * random.random())
    if p["a"] > 1.9:
        raise ValueError("no mesh")
    return p["a"] + p["n"] + len(p["c"])
"""


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("replay")
    (folder / "model.py").write_text(OBJECTIVE)
    path = write_study(folder, 'objective = "model:f"\nbudget = 20\nworkers = 3', method='"auto"')
    call("run", path)
    call("ask", path, "-n", "2")
    call("run", path, "--budget", "24")
    return path


def test_a_stored_study_is_replayed_to_the_last_bit(stored):
    found = call("replay", stored)
    assert (found["suggestions"], found["agreed"], found["others"], found["exact"]) == (26, 26, 0, True)


def test_a_stored_study_that_was_tampered_with_differs(stored, tmp_path):
    for suffix in ("", "-wal", "-shm"):
        source = stored.with_name(f"study.db{suffix}")
        if source.exists():
            (tmp_path / source.name).write_bytes(source.read_bytes())
    path = tmp_path / "study.toml"
    path.write_text(stored.read_text())
    with sqlite3.connect(tmp_path / "study.db") as connection:
        connection.execute("UPDATE sumbo_trials SET value = value - 50 WHERE number = 2")
    found = call("replay", path, code=1)
    first = sumbo.Auto().n_init  # until then nothing is learned from values
    assert first <= found["first"]["number"] <= first + 4
    assert first <= found["agreed"] < 26


def test_a_study_without_a_record_is_said_so(tmp_path):
    path = write_study(tmp_path)
    table = tmp_path / "own.csv"
    table.write_text("a,n,c,value to minimize\n0.5,3,plain,1.5\n")
    call("tell", path, table)
    assert "no suggestion that can be made again" in call("replay", path, code=1)["error"]
