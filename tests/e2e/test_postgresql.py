"""Studies in PostgreSQL, on a server that these tests start themselves."""

import getpass
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest
from studies import call, kill, lines_of, start, until, write_program, write_study

from sumbo.errors import StoreError
from sumbo.studies import owners, tables
from sumbo.studies.file import load
from sumbo.studies.objectives import Outcome
from sumbo.studies.store import Store

PASSWORD = "correct horse"


def tool(name):
    """A program of PostgreSQL, which Debian keeps out of the path."""
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)
    return shutil.which(name) or (str(places[0]) if places else None)


def server_user():
    """Whom the server runs as: it refuses to be root."""
    if os.geteuid() != 0:
        return getpass.getuser()
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    return None


@pytest.fixture(scope="module")
def server():
    """A server on a free port; its URL without a database."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    initdb, postgres, user = tool("initdb"), tool("postgres"), server_user()
    if initdb is None or postgres is None or user is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    as_user = {"user": user} if os.geteuid() == 0 else {}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="sumbo-pg-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.joinpath("password").write_text(PASSWORD)
        folder.chmod(0o755)
        data = folder / "data"
        data.mkdir(mode=0o700)
        if as_user:
            shutil.chown(data, user)
        make = [initdb, "-D", data, "-U", "sumbo", "-A", "scram-sha-256", f"--pwfile={folder / 'password'}", "-N"]
        subprocess.run(make, check=True, capture_output=True, cwd="/", **as_user)
        run = [postgres, "-D", data, "-p", str(port), "-c", "listen_addresses=127.0.0.1", "-k", data, "-c", "fsync=off"]
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(run, stdout=log, stderr=log, cwd="/", **as_user)
        try:
            until(lambda: "ready to accept connections" in (folder / "log").read_text())
            yield f"postgresql://sumbo:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGINT)  # does not wait for its clients
            process.wait(30)


def study_of(server, folder, name, text=""):
    return write_study(folder, f'name = "{name}"\nstorage = "{server}/postgres"\n{text}')


def test_ask_tell_recover_and_correct(server, tmp_path):
    store = Store.open(load(study_of(server, tmp_path, "basics")), create=True)
    first, second = store.ask(owners.RUN), store.ask(owners.HAND)
    assert store.recover() == []
    assert store.counts().open == 1
    store.beat([first.trial_id])
    assert 0.0 <= tables.silent_for(store._rdb)[first.trial_id] < 60.0
    store.tell(second.number, second.params, Outcome(1 / 3))
    store.replace(store.trials()[1], Outcome(0.1 + 0.2))
    store.release(first)
    assert store.ask(owners.RUN) == first
    store.tell(first.number, first.params, Outcome(reason="exit code 3"))
    again = Store.open(store.study, create=False)
    assert (again.best().value, again.counts().failed) == (0.1 + 0.2, 1)


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
    assert answer["counts"] == {"done": 30, "failed": 0, "running": 0, "open": 0, "waiting": 0}
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
    with pytest.raises(StoreError, match="does not exist"):
        Store.open(load(write_study(tmp_path, f'storage = "{server}/nowhere"')), create=True)


def test_eight_machines_write_at_once_and_the_search_can_be_replayed(server, tmp_path):
    """Eight processes that know of each other through the database alone, as on eight machines."""
    write_program(tmp_path, 'sleep 0.1; echo "$a"')
    text = (
        f'name = "eight"\nstorage = "{server}/postgres"\ncommand = ["./sim"]\nparameters = "environment"\nbudget = 32'
    )
    path = write_study(tmp_path, text, method='"auto"')
    runs = [start("run", path) for _ in range(8)]
    for process in runs:
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
    trials = call("export", path)["trials"]
    assert [t["trial"] for t in trials] == list(range(32))
    assert all(t["value"] == t["params"]["a"] for t in trials)
    points = [tuple(t["params"].values()) for t in trials]
    assert len(set(points)) == 32
    found = call("replay", path)
    assert (found["suggestions"], found["agreed"]) == (32, 32)
