"""Files that were cut, edited or garbled: an error with place and remedy, no traceback, nothing half written."""

import contextlib
import copy
import io
import json
import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from saved import forgotten, latest_state
from studies import write_study

import sumbo
from sumbo.cli import main
from sumbo.errors import StateError

FEW = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
JUNK = (None, "", "x", -1, 3.5, [], [1], {}, {"a": 1}, True, 10**400, float("nan"), [[0, 0]], "\0", "é" * 300)


def sumbo_says(*arguments):
    """Exit code and what was said on standard output and error; a command that raises fails the test."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([str(a) for a in arguments])
        except SystemExit as ending:  # how argparse refuses
            code = ending.code
    return code, out.getvalue(), err.getvalue()


def explained(code, err, *words):
    """Refused, in so many words and without a traceback."""
    assert code in (1, 2), (code, err)
    assert err.startswith("sumbo: "), err
    assert "Traceback" not in err
    for word in words:
        assert str(word) in err, err


@st.composite
def damaged(draw, whole: bytes):
    """A file after one to three accidents."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, max(len(data) - 1, 0)))
        length = draw(st.integers(0, 40))
        kind = draw(st.sampled_from(("cut", "remove", "overwrite", "insert", "repeat", "digits")))
        if kind == "cut":
            del data[start:]
        elif kind == "remove":
            del data[start : start + length]
        elif kind == "repeat":
            data[start:start] = data[start : start + length]
        elif kind == "digits":
            data[start : start + 1] = draw(st.sampled_from((b"9" * 400, b"-", b"1e999", b"nan", b"0x7", b'"', b"[")))
        else:
            junk = draw(st.binary(max_size=length))
            data[start : start + (len(junk) if kind == "overwrite" else 0)] = junk
    return bytes(data)


# --- study files --------------------------------------------------------------------------------------------

STUDY = b"""name = "wing"
goal = "minimize"
command = ["false", "{angle}", "{ribs}", "{foil}"]
timeout = 2.5
retries = 1
budget = 30
seed = 1
method = {name = "add-gp-ucb", group_size = 2}
storage = "sqlite:///wing.db"
workers = 2
together = [["angle", "ribs"]]
[space.angle]
type = "float"
low = 1e-3
high = 15.0
log = true
[space.ribs]
type = "int"
low = 3
high = 40
[space.foil]
type = "categorical"
choices = ["naca0012", 2, true]
"""


SHAPED = b"""goal = "maximize"
command = ["false", "{angle}", "{sweep}", "{foil}", "{flap}"]
value = "json:loss"
max_seconds = 5
constraints = ["stress <= 250", "mass >= 1e1", "slack"]
known = ["angle + 2*sweep <= 40", "0 <= (angle - sweep)/2 <= 10"]
[space.angle]
type = "float"
low = 0
high = 15.0
step = 0.5
[space.sweep]
type = "int"
low = 0
high = 30
[space.foil]
type = "ordinal"
choices = ["naca0012", "naca2412", 3]
[space.flap]
type = "float"
low = 0.0
high = 1.0
when = {foil = ["naca2412", 3], sweep = 4}
"""
ASKS = (("best",), ("ask", "-n", "2"), ("show",), ("run", "--budget", "1"), ("ask", "--context", "sweep=3"))


@FEW
@given(st.one_of(damaged(STUDY), damaged(SHAPED), damaged(b'context = ["sweep"]\n' + SHAPED)), st.sampled_from(ASKS))
@example(b"", ("ask",))
@example(b"\xff\xfe\0", ("ask",))
def test_study_files(data, command):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "study.toml")
        path.write_bytes(data)
        code, _, err = sumbo_says(command[0], path, *command[1:])
        if code not in (0, 3):  # 3: it was run, and its objective fails
            explained(code, err)
            assert [p.name for p in Path(folder).iterdir()] == ["study.toml"], "a study was begun all the same"


# --- tables -------------------------------------------------------------------------------------------------

TABLE = b"""trial,a,n,c,value to minimize
0,1.25,3,plain,0.5
1,0.75,9,two words,failed: no power
,0.1,1,plain,-1e-3
,2.0,4,plain,17
"""


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A folder with a study: told, failed and open trials."""
    folder = tmp_path_factory.mktemp("begun")
    study = write_study(folder)
    assert sumbo_says("ask", study, "-n", "6")[0] == 0
    assert sumbo_says("tell", study, "--trial", "0", "0.5")[0] == 0
    assert sumbo_says("tell", study, "--trial", "1", "--failed", "no power")[0] == 0
    # A copy in one file, without a log beside it, so that damage meets all of it.
    whole = tmp_path_factory.mktemp("whole")
    change(folder / "study.db", f"VACUUM INTO '{whole / 'study.db'}'")
    shutil.copy(study, whole)
    return whole


def contents(database):
    connection = sqlite3.connect(database)
    with contextlib.closing(connection):
        return [
            connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()
            for table in ("sumbo_studies", "sumbo_trials", "sumbo_leases")
        ]


@FEW
@given(data=damaged(TABLE), options=st.sampled_from(((), ("--own",), ("--replace",))))
@example(data=b"", options=())
@example(data=b"PK\x03\x04 workbook", options=())
def test_tables(begun, data, options):
    with tempfile.TemporaryDirectory() as folder:
        study = Path(shutil.copytree(begun, folder, dirs_exist_ok=True), "study.toml")
        before = contents(study.with_suffix(".db"))
        table = Path(folder, "table.csv")
        table.write_bytes(data)
        code, _, err = sumbo_says("tell", study, table, *options)
        if code != 0:
            explained(code, err, table)
            assert contents(study.with_suffix(".db")) == before, "part of a table that was refused is recorded"


# --- states -------------------------------------------------------------------------------------------------

SPACE = {
    "lr": sumbo.Float(1e-5, 1e-1, log=True),
    "layers": sumbo.Int(1, 8),
    "act": sumbo.Categorical(["relu", "gelu"]),
}


def state_of(method):
    opt = sumbo.Optimizer(SPACE, method, seed=0)
    for i in range(13):
        opt.tell(opt.ask(), float(i * i % 7))
    opt.tell(opt.ask(), failed=True, reason="no power")
    opt.ask()
    return json.loads(json.dumps(opt.to_dict()))


@pytest.fixture(scope="module")
def states():
    return [state_of(method) for method in ("auto", "add-gp-ucb", "seq-groups", "rembo")]


def places(node, path=()):
    """The paths of all nodes of a JSON document."""
    yield path
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in items:
        yield from places(child, (*path, key))


@settings(FEW, max_examples=250)
@given(data=st.data())
def test_states(states, data):
    state = copy.deepcopy(data.draw(st.sampled_from(states)))
    for _ in range(data.draw(st.integers(1, 2))):
        *path, last = data.draw(st.sampled_from([path for path in places(state) if path]))
        node = state
        for key in path:
            node = node[key]
        if data.draw(st.booleans()):
            del node[last]
        else:
            node[last] = copy.deepcopy(data.draw(st.sampled_from(JUNK)))
    with contextlib.suppress(sumbo.SumboError):  # what else is raised fails the test
        opt = sumbo.Optimizer.from_dict(state)
        opt.ask()
        assert opt.to_dict()["sumbo"] == 3


@pytest.mark.parametrize("version", [0, 1, 2, "3", None, 1.5, [], True])
def test_states_of_other_versions_are_refused(version, states):
    with pytest.raises(StateError, match="format"):
        sumbo.Optimizer.from_dict({**states[0], "sumbo": version})


# --- databases ----------------------------------------------------------------------------------------------

LOOKING = (("show",), ("best",), ("export",), ("ask", "--open"))
CHANGING = (("ask",), ("tell", "--trial", "2", "0.25"))
SOME = (LOOKING[0], LOOKING[3], *CHANGING)


def on_a_copy(begun, damage, *commands):
    """What each command says of a damaged copy of the study; it must say it without a traceback."""
    for command, *rest in commands:
        with tempfile.TemporaryDirectory() as folder:
            study = Path(shutil.copytree(begun, folder, dirs_exist_ok=True), "study.toml")
            damage(study.with_suffix(".db"))
            code, _, err = sumbo_says(command, study, *rest)
            if code != 0 and not (command == "best" and not err):  # there is no best trial
                explained(code, err)
            yield command, code, err


@settings(FEW, max_examples=30)
@given(data=st.data(), command=st.sampled_from(LOOKING + CHANGING))
def test_databases_with_wrong_bytes(begun, data, command):
    whole = (begun / "study.db").read_bytes()
    garbled = data.draw(damaged(whole))
    list(on_a_copy(begun, lambda path: path.write_bytes(garbled), command))


@pytest.mark.parametrize("size", [99, 100, 4096, 8192, 12_288, 20_000])
def test_databases_that_were_cut(size, begun):
    whole = (begun / "study.db").read_bytes()
    for command, code, err in on_a_copy(begun, lambda path: path.write_bytes(whole[:size]), *SOME):
        assert code == 1, (command, err)
        assert "study.db" in err


@pytest.mark.parametrize("data", [b"\0" * 8192, b"this is a letter to a friend\n" * 300], ids=["zeros", "text"])
def test_files_that_are_no_databases(data, begun):
    for command, code, err in on_a_copy(begun, lambda path: path.write_bytes(data), *LOOKING, *CHANGING):
        assert code == 1, (command, err)
        assert "study.db" in err


TABLES = ("sumbo_studies", "sumbo_trials", "sumbo_leases")


@pytest.mark.parametrize("table", TABLES)
def test_databases_without_a_table(table, begun):
    def drop(path):
        change(path, f"DROP TABLE {table}")

    list(on_a_copy(begun, drop, LOOKING[0], *CHANGING))


def change(path, *statements):
    connection = sqlite3.connect(path)
    connection.isolation_level = None  # VACUUM is not for transactions
    with contextlib.closing(connection):
        for statement in statements:
            connection.execute(statement)


GARBLED = {
    "params that are no JSON": "UPDATE sumbo_trials SET params = '{\"by', unit = NULL",
    "params of another kind": "UPDATE sumbo_trials SET params = '[1, 2]', unit = NULL",
    "params out of range": 'UPDATE sumbo_trials SET params = \'{"a": 1e9, "n": 1, "c": "plain"}\', unit = NULL',
    "params missing": "UPDATE sumbo_trials SET params = '{\"a\": 1}', unit = NULL",
    "points that are too short": "UPDATE sumbo_trials SET unit = x'00'",
    "points that are too long": "UPDATE sumbo_trials SET unit = zeroblob(80)",
    "values missing": "UPDATE sumbo_trials SET value = NULL",
    "values that are text": "UPDATE sumbo_trials SET value = 'good'",
    "values that are infinite": "UPDATE sumbo_trials SET value = 9e999",
    "states unknown": "UPDATE sumbo_trials SET state = 'LOST'",
    "numbers that are others": "UPDATE sumbo_trials SET number = number + 7",
    "a trial missing": "DELETE FROM sumbo_trials WHERE number = 0",
    "signatures missing": "UPDATE sumbo_trials SET signature = NULL",
    "sequence numbers that are text": "UPDATE sumbo_trials SET told = 'late', changed = 'now'",
    "nothing told": "UPDATE sumbo_trials SET told = NULL",
    "corrections that are no JSON": "UPDATE sumbo_trials SET earlier = '{'",
    "corrections of another kind": "UPDATE sumbo_trials SET earlier = '3'",
    "metadata that are no JSON": "UPDATE sumbo_trials SET metadata = 'no'",
    "method states that are no JSON": "UPDATE sumbo_trials SET method_state = 'no'",
    "leases of nobody": "UPDATE sumbo_trials SET lease = 99",
    "holders that are no JSON": "UPDATE sumbo_leases SET holder = 'no'",
    "beats that are none": "UPDATE sumbo_leases SET beat = 'now and then'",
    "times that are none": "UPDATE sumbo_trials SET started = 'yesterday'",
    "a space that is no JSON": "UPDATE sumbo_studies SET space = 'no'",
    "a space of another kind": "UPDATE sumbo_studies SET space = '3'",
    "a direction unknown": "UPDATE sumbo_studies SET direction = 'SIDEWAYS'",
    "another version": "UPDATE sumbo_studies SET version = 99",
    "a seed that is none": "UPDATE sumbo_studies SET seed = 'x'",
    "a sequence that is behind": "UPDATE sumbo_studies SET sequence = 0",
}


@pytest.mark.parametrize("statement", GARBLED.values(), ids=GARBLED)
def test_databases_with_wrong_contents(statement, begun):
    list(on_a_copy(begun, lambda path: change(path, statement), *SOME))


def test_a_state_that_only_its_method_can_judge():
    # The optimizer cannot know what a method keeps; the method finds out when it is asked.
    whole = state_of("cyclic-groups")
    edited = copy.deepcopy(whole)
    latest_state(edited)["previous"] = "near the wall"
    opt = sumbo.Optimizer.from_dict(edited)
    with pytest.raises(StateError, match="learns anew"):
        opt.ask()
    assert sumbo.Optimizer.from_dict(forgotten(edited)).ask().number == len(edited["trials"])
