"""Studies in PostgreSQL, on a server that these tests start themselves."""

import signal
import sys
import tempfile
from pathlib import Path

import pytest
from studies import call, kill, lines_of, start, until, write_program, write_study

from sumbo.errors import StoreError
from sumbo.executors import EvaluationResult
from sumbo.methods import Deadline
from sumbo.study.files.toml import load
from sumbo.study.stored import StoredStudy

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from postgresql import Server, is_installed  # the benchmarks need a server too


@pytest.fixture(scope="module")
def server():
    """A server on a free port; its URL."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    if not is_installed():
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    with tempfile.TemporaryDirectory(prefix="sumbo-pg-", ignore_cleanup_errors=True) as name:
        found = Server(Path(name), "fsync=off")
        found.start()
        try:
            yield found.url
        finally:
            found.end(signal.SIGINT)  # does not wait for its clients


def study_of(server, folder, name, text=""):
    return write_study(folder, f'name = "{name}"\nstorage = "{server}"\n{text}')


def ask(study, limit=None):
    return study.ledger.claim(limit) or study.optimizer._ask(Deadline(), lease=study.ledger.lease, limit=limit)


def test_ask_tell_recover_and_correct(server, tmp_path):
    study = StoredStudy.open(load(study_of(server, tmp_path, "basics")), create=True)
    first, second = ask(study), study.hand_out()
    other = StoredStudy.open(study.file, create=True)
    assert study.ledger.maintain() == other.ledger.maintain() == []  # its holder shows signs of life
    assert study.ledger.tell(second.number, EvaluationResult(1 / 3))
    study.ledger.correct(second.number, EvaluationResult(0.1 + 0.2))
    study.ledger.release(first.number)
    other.ledger.refresh()
    taken = ask(other)
    assert (taken.number, taken.text) == (first.number, first.text)
    assert not study.ledger.tell(first.number, EvaluationResult(5.0), study.ledger.lease)  # another's by now
    assert other.ledger.tell(taken.number, EvaluationResult(reason="exit code 3"), other.ledger.lease)
    again = StoredStudy.open(study.file, create=False)
    assert (again.best().value, again.counts().failed) == (0.1 + 0.2, 1)


def test_contexts_constraints_and_noise(server, tmp_path):
    text = 'context = ["n"]\nconstraints = ["stress <= 250"]\nknown = ["a + n <= 10"]'
    study = StoredStudy.open(load(study_of(server, tmp_path, "shapes", text)), create=True)
    record = study.hand_out({"n": 3}, {"c": "plain"})
    study.ledger.tell(record.number, EvaluationResult(1.0, constraints={"stress": 1 / 3}, std=0.1))
    study.ledger.correct(record.number, EvaluationResult(2.0, constraints={"stress": 251.0}))
    again = StoredStudy.open(study.file, create=True)
    assert again.notes == []
    (read,) = again.records
    assert (read.fixed, read.constraints, read.std) == ({"n": 3, "c": "plain"}, {"stress": 251.0}, None)
    assert read.earlier[0][1:] == (1.0, None, {"stress": 1 / 3}, 0.1)
    assert again.best() is None


def test_three_runs_share_a_study_and_one_is_killed(server, tmp_path):
    write_program(tmp_path, 'echo "$SUMBO_TRIAL" >> begun; sleep 0.2; echo "$a"')
    text = 'command = ["./sim"]\nparameters = "environment"\nbudget = 30\nworkers = 2'
    path = study_of(server, tmp_path, "shared", text)
    runs = [start("run", path) for _ in range(3)]
    until(lambda: len(lines_of(tmp_path / "begun")) >= 8)
    kill(runs[0].pid)
    for process in runs:
        _, err = process.communicate(timeout=120)
        assert "correct" not in err
    answer = call("run", path)
    assert answer["counts"] == {"done": 30, "failed": 0, "running": 0, "open": 0, "waiting": 0, "cancelled": 0}
    trials = call("export", path)["trials"]
    assert [t["trial"] for t in trials] == list(range(30))
    assert all(t["value"] == t["params"]["a"] for t in trials)


def test_the_password_stays_secret(server, tmp_path):
    path = study_of(server, tmp_path, "secret")
    call("ask", path)
    shown = call("show", path)
    assert "correct" not in str(shown)
    path.write_text(path.read_text().replace("correct", "wrong"))
    error = call("best", path, code=1)["error"]
    assert "password authentication failed" in error
    assert "horse" not in error
    nowhere = server.removesuffix("postgres") + "nowhere"
    with pytest.raises(StoreError, match="does not exist"):
        StoredStudy.open(load(write_study(tmp_path, f'storage = "{nowhere}"')), create=True)


def test_four_machines_write_at_once_and_the_search_can_be_replayed(server, tmp_path):
    """Four processes that know of each other through the database alone, as on four machines."""
    write_program(tmp_path, 'sleep 0.1; echo "$a"')
    text = f'name = "four"\nstorage = "{server}"\ncommand = ["./sim"]\nparameters = "environment"\nbudget = 24'
    path = write_study(tmp_path, text, method='"auto"')
    runs = [start("run", path) for _ in range(4)]
    for process in runs:
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
    trials = call("export", path)["trials"]
    assert [t["trial"] for t in trials] == list(range(24))
    assert all(t["value"] == t["params"]["a"] for t in trials)
    points = [tuple(t["params"].values()) for t in trials]
    assert len(set(points)) == 24
    found = call("replay", path)
    assert (found["suggestions"], found["agreed"]) == (24, 24)
