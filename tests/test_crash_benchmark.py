"""The crash and load benchmarks on a small scale: nothing is lost, and what would be is noticed."""

import importlib
import sqlite3
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture(scope="module", autouse=True)
def in_path():
    sys.path.insert(0, str(BENCHMARKS))
    yield
    sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def crash(in_path):
    return importlib.import_module("crash")


@pytest.fixture(scope="module")
def load(in_path):
    return importlib.import_module("load")


@pytest.mark.parametrize("storage", ["sqlite", "postgresql"])
def test_nothing_is_lost_by_a_few_kills(crash, storage):
    if storage == "postgresql" and not crash.is_installed():
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    line = crash.run(crash.Task(storage, "random", 3, 3))
    assert sum(line["victims"].values()) == 3
    assert {name: line[name] for name in crash.FAULTS} == dict.fromkeys(crash.FAULTS, 0), line["remarks"]
    assert line["evaluated"] >= line["told"] >= crash.GO_ON


def test_what_is_wrong_is_noticed(crash, tmp_path):
    found = crash.Crash(tmp_path, crash.Task("sqlite", "random", 0, 0), None)
    found.begin("--budget", "6")
    assert found.until(found.has_ended, "it did not end")
    assert found.check() == ["done"] * 6
    assert found.counts.total() == 0
    with sqlite3.connect(tmp_path / "study.db") as database:
        database.execute("UPDATE sumbo_trials SET value = 123.0 WHERE number = 1")
        left = "state = 'running', told = NULL, value = NULL, lease = 1"
        database.execute(f"UPDATE sumbo_trials SET {left} WHERE number = 3")
        same = "(SELECT params FROM sumbo_trials WHERE number = 4)"
        database.execute(f"UPDATE sumbo_trials SET params = {same} WHERE number = 5")
    database.close()
    found.process.pid = 1  # so that the trial belongs to a run before this one
    found.check(running=True)
    assert found.counts["lost"] == 2
    assert found.counts["doubled"] == 1
    assert found.counts["stuck"] == 1
    assert found.counts["invented"] == 2
    seen = found.counts.copy()
    found.check(running=True)
    assert found.counts == seen  # each once


def test_processes_that_share_a_study_spend_its_budget_once(load):
    line = load.run(load.Task("shared", "sqlite", 3, 30))
    assert (line["told"], line["lost"], line["doubled"], line["unfinished"], line["beyond_budget"]) == (30, 0, 0, 0, 0)
    assert line["errors"] == []


def test_a_filled_study_can_be_asked(load):
    line = load.stored(600)
    assert line["median_ask"] > 0.0
    text = load.tables([{**load.Task("stored", "sqlite", 1, 600)._asdict(), **line}])
    assert "| 600 |" in text


def test_tables_go_between_their_marks(crash, load, tmp_path):
    pages = importlib.import_module("pages")
    page = tmp_path / "page.md"
    page.write_text(f"before\n{crash.BEGIN}\nold\n{crash.END}\nafter\n")
    pages.put_between(page, crash.BEGIN, crash.END, "new")
    assert page.read_text() == f"before\n{crash.BEGIN}\n\nnew\n\n{crash.END}\nafter\n"
    with pytest.raises(ValueError, match="add them"):
        pages.put_between(page, load.BEGIN, load.END, "new")
