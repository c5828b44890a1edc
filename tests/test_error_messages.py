"""Errors: all are of our own kind, and messages that no other test has a reason to bring about."""

import ast
import contextlib
import importlib
import json
import os
import re
import sqlite3
import sys

import optuna
import pytest
from errors import HOME, OURS, OUT_OF_REACH, all_raised, raised
from studies import write_study

import sumbo
from sumbo.acquisition.functions import check_beta
from sumbo.cli import main
from sumbo.errors import MissingPackageError, SettingError, StateError, StoreError
from sumbo.gp import threads
from sumbo.methods import method_to_dict
from sumbo.paper import experiments, runs
from sumbo.paper.runs import Task

# What is meant for Python, for argparse, or for the caller a few lines above; a user never sees these.
INNER = {
    ("__init__.py", "AttributeError"),
    ("cli/parser.py", "argparse.ArgumentTypeError"),
    ("executors/worker.py", "problem"),
    ("gp/fit.py", "_Spent"),
    ("_interrupts.py", "cause"),
    ("methods/surrogate.py", "ValueError"),
    ("problems/faces.py", "ValueError"),
    ("study/ledger.py", "ValueError"),
    ("study/storage.py", "ValueError"),
    ("space/constraints.py", "TypeError"),
    ("space/constraints.py", "self._failed"),  # a SpaceError
    ("space/region.py", "StopIteration"),
    ("study/run.py", "KeyboardInterrupt"),
}


def others(source):
    """What a source raises that is not of ours, but for what it passes on."""
    ours = {line for line, _ in raised(source)}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise) and node.exc is not None and node.lineno not in ours:
            yield ast.unparse(node.exc.func if isinstance(node.exc, ast.Call) else node.exc)


def test_every_error_is_of_our_own_kind():
    found = {(p.relative_to(HOME).as_posix(), name) for p in HOME.rglob("*.py") for name in others(p.read_text())}
    assert found <= INNER, f"raise a child of SumboError, or catch it near by: {sorted(found - INNER)}"


def test_errors_are_found_in_a_source():
    source = (
        "def unfit(x) -> StoreError:\n    return StoreError(x)\n"
        "def f(x):\n    if x:\n        raise StoreError(f'{x} is no')\n    raise unfit(x)\n    raise ValueError(x)\n"
    )
    assert [line for line, _ in raised(source)] == [5, 6]
    assert list(others(source)) == ["ValueError"]
    assert {"StoreError", "SumboError"} <= OURS


def test_what_is_out_of_reach_is_still_there():
    for where, part in OUT_OF_REACH:
        assert any(file == where and part in text for (file, _), text in all_raised().items()), (where, part)


# --- saved states -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved():
    opt = sumbo.Optimizer({"x": sumbo.Float(0, 1)}, "random", seed=0)
    for value in (1.0, 2.0):
        opt.tell(opt.ask(), value)
    return opt.to_dict()


EDITS = {
    "trial 1: seen must be a whole number": lambda state: state["trials"][1].update(seen=-1),
    "trial 0: state 'lost' does not go with": lambda state: state["trials"][0].update(state="lost"),
    "trial 0: state 'done' does not go with value 'high'": lambda state: state["trials"][0].update(value="high"),
    "trial 1: the order of asks and tells makes no": lambda state: state["trials"][1].update(asked=1),
    "'budget' is missing": lambda state: state.pop("budget"),
    "FitSettings is not a method": lambda state: state.update(method=method_to_dict(sumbo.gp.fit.FitSettings())),
    "'type': 'Magic'": lambda state: state.update(method={"type": "Magic"}),
    "has no setting speed; was it saved by a newer": lambda state: state["method"].update(speed=3),
    "a state of another format needs": lambda state: state.update(sumbo=2),
}


@pytest.mark.parametrize("message", EDITS)
def test_an_edited_state_says_where_and_what_to_do(message, saved):
    state = json.loads(json.dumps(saved))
    EDITS[message](state)
    with pytest.raises(StateError, match=re.escape(message)) as caught:
        sumbo.Optimizer.from_dict(state)
    assert "to_dict" in str(caught.value) or "method:" in str(caught.value)


@pytest.mark.parametrize("delta", [0.0, 1.0, "small", None])
def test_delta_is_a_probability(delta):
    with pytest.raises(SettingError, match="between 0 and 1; got"):
        check_beta("theorem", delta)


# --- settings -----------------------------------------------------------------------------------------------


SETTINGS = {
    "subspace is meant to be small": lambda: sumbo.REMBO(dim=10**9),
    "starts must be from 0 up, evaluations from 1 up; got -1, 5": lambda: sumbo.gp.fit.FitSettings(
        starts=-1, evaluations=5
    ),
    "groups cover 2 dimensions, the space has 3": lambda: sumbo.Optimizer(
        [(0, 1)] * 3, sumbo.SequentialGroups(groups=[(0, 1)])
    ),
    "threads must be a whole number from 1 up; got 0": lambda: threads.use(0),
}


@pytest.mark.parametrize("message", SETTINGS)
def test_a_setting_says_what_it_may_be(message):
    with pytest.raises(sumbo.SumboError, match=re.escape(message)):
        SETTINGS[message]()


def test_a_note_that_was_edited():
    opt = sumbo.Optimizer([(0, 1)] * 4, "rembo", seed=0)
    for i in range(12):
        opt.tell(opt.ask(), float(i))
    state = json.loads(json.dumps(opt.to_dict()))
    state["trials"][0]["metadata"] = "north"
    with pytest.raises(StateError, match=r"a trial's metadata: expected .* numbers in .*, got 'north'; was it edited"):
        sumbo.Optimizer.from_dict(state).ask()


# --- commands -----------------------------------------------------------------------------------------------


def refused(capsys, *arguments, code=1):
    """What a command says that ends with this exit code."""
    assert main([str(a) for a in arguments]) == code
    said = capsys.readouterr().err
    assert said.startswith("sumbo: "), said
    return said


def test_a_study_that_an_optuna_storage_lacks(tmp_path, capsys):
    url = f"sqlite:///{tmp_path}/all.db"
    for name in ("wing", "tail"):
        optuna.create_study(storage=url, study_name=name)
    said = refused(capsys, "report", "--storage", url, "fin", "-o", tmp_path / "r.html")
    assert "has no study 'fin'; it has: " in said
    assert {"wing", "tail"} <= set(re.findall("[a-z]+", said))


def test_a_report_that_cannot_be_written(tmp_path, capsys):
    study = write_study(tmp_path)
    assert main(["ask", str(study)]) == 0
    page = tmp_path / "page.html"
    page.symlink_to(tmp_path / "nowhere" / "page.html")
    assert "choose another path" in refused(capsys, "report", study, "-o", page)
    assert page.is_symlink()


def test_a_file_that_is_a_folder(tmp_path, capsys):
    assert "give a file that you may read" in refused(capsys, "show", tmp_path)
    study = write_study(tmp_path)
    assert "give a file that you may read" in refused(capsys, "tell", study, tmp_path)


def test_what_is_stored_about_a_space_makes_no_sense(tmp_path, capsys):
    study = write_study(tmp_path)
    assert main(["ask", str(study)]) == 0
    with contextlib.closing(sqlite3.connect(tmp_path / "study.db")) as database:
        database.execute("UPDATE sumbo_studies SET space = replace(space, 'float', 'flute')")
        database.commit()
    said = refused(capsys, "show", study)
    assert "what is stored about its space cannot be read" in said
    assert "Restore a backup" in said


def test_a_database_without_its_driver(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    study = write_study(tmp_path, 'storage = "postgresql://me@localhost:1/x"')
    assert "pip install 'sumbo[postgresql]'" in refused(capsys, "show", study)


def test_a_cluster_without_dask(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    study = write_study(tmp_path, 'executor = "dask://localhost:1"\ncommand = ["true", "{a}{n}{c}"]\nbudget = 1')
    assert "needs Dask; pip install 'sumbo[dask]', or say workers = N" in refused(capsys, "run", study)


# --- packages that are not there ----------------------------------------------------------------------------


def test_tables_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    opt = sumbo.Optimizer([(0, 1)] * 2, seed=0)
    for i in range(12):
        opt.tell(opt.ask(), float(i % 5))
    with pytest.raises(MissingPackageError, match="pip install pandas, or iterate"):
        opt.importance().to_frame()


def test_figures_of_the_paper_without_matplotlib(monkeypatch):
    from sumbo.paper.page import matplotlib

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingPackageError, match="pip install 'sumbo"):
        matplotlib()


def test_ray_without_ray(monkeypatch):
    monkeypatch.delitem(sys.modules, "sumbo.integrations.ray", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setitem(sys.modules, "ray.tune.search", None)
    with pytest.raises(MissingPackageError, match="pip install 'sumbo"):
        importlib.import_module("sumbo.integrations.ray")


def test_pictures_without_their_packages(monkeypatch):
    faces = importlib.import_module("sumbo.problems.faces")
    with pytest.raises(MissingPackageError, match=r"nosuchpackage/x comes with a package"):
        faces._packaged("nosuchpackage/x")
    monkeypatch.setitem(sys.modules, "cv2", type(sys)("cv2"))
    sys.modules["cv2"].__version__ = "9.9"
    with pytest.raises(MissingPackageError, match=r"OpenCV 9.9 has no cascades"):
        faces._opencv()


def test_a_folder_with_too_few_pictures(tmp_path):
    pytest.importorskip("cv2")
    with pytest.raises(SettingError, match="expected at least two pictures that OpenCV can read, found 0"):
        sumbo.problems.faces(faces=tmp_path, nonfaces=tmp_path)


# --- the paper's runs ---------------------------------------------------------------------------------------


def dies(task):
    """A run whose process is ended from outside, as for lack of memory."""
    os._exit(9)


def test_runs_that_cannot_be_kept(tmp_path):
    task = Task("synthetic", "additive-10-3-3", "RAND", 0, 3)
    with pytest.raises(StoreError, match=r"cannot be written: .*; choose another --out"):
        runs.complete(experiments.run, [task], tmp_path / "nowhere" / "runs.jsonl", 1, print)
    with pytest.raises(StoreError, match=r"ended from outside.*run the same command again"):
        runs.complete(dies, [task], tmp_path / "runs.jsonl", 1, print)
    with pytest.raises(SettingError, match="expected a file of runs; it cannot be read"):
        runs.read_lines(tmp_path)


def test_runs_that_all_fail(tmp_path, capsys):
    (tmp_path / "bands.txt").write_text("no numbers\n")
    said = refused(
        capsys,
        *("reproduce", "astro", "--lrg-data", tmp_path / "bands.txt", "--runs", 1, "--budget", 2, "--jobs", 1),
        *("--out", tmp_path / "out"),
        code=3,
    )
    assert re.search("all [1-9][0-9]* runs failed, the last with: SettingError: .*bands.txt", said)


def test_a_study_of_two_objectives_has_no_report(tmp_path, capsys):
    url = f"sqlite:///{tmp_path}/all.db"
    optuna.create_study(storage=url, study_name="two", directions=["minimize", "maximize"])
    said = refused(capsys, "report", "--storage", url, "two", "-o", tmp_path / "r.html")
    assert "about one objective, and this study has 2: several are not built; make one for each" in said
