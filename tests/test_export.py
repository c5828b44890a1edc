"""Exports are what their names say, and nothing in them is run by a spreadsheet."""

import csv
import importlib
import io
import json
import shutil
import sys
from pathlib import Path

import optuna
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from studies import write_study
from tables import NASTY, NO_SHRINK, accepted, answer, kinds, write_space

import sumbo

ODD = "bad \udcff byte, \x1b[31mred"  # undecodable bytes of an argument or a file name come so


SPACE = {"state": {"type": "int", "low": -9, "high": -1}, "=k": {"type": "categorical", "choices": ["=1+1"]}}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Three trials: done, failed in odd words, open."""
    path = write_space(tmp_path_factory.mktemp("study"), SPACE)
    answer("ask", path, "-n", 3)
    answer("tell", path, "--trial", 0, "-1.5")
    answer("tell", path, "--trial", 1, "--failed", f"=cmd {ODD}")
    return path


def test_json_is_a_list_of_objects_and_json_lines_are_one_each(study, tmp_path):
    for ending in ("json", "jsonl", "JSON"):
        assert answer("export", study, "--out", tmp_path / f"all.{ending}")["trials"] == 3
    trials = answer("export", study)["trials"]
    assert json.loads((tmp_path / "all.json").read_bytes()) == trials
    assert [json.loads(line) for line in (tmp_path / "all.jsonl").read_bytes().splitlines()] == trials
    assert [trial["value"] for trial in trials] == [-1.5, None, None]
    assert json.loads((tmp_path / "all.JSON").read_bytes()) == trials


@pytest.mark.parametrize("name", ["all.tsv", "all.ods", "all.xls", "all"])
def test_unknown_endings_are_refused(name, study, tmp_path):
    error = answer("export", study, "--out", tmp_path / name, code=1)["error"]
    for word in (name, ".csv, .json, .jsonl, .parquet, .xlsx"):
        assert word in error
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("typed", ["1.25", "1.2.5", "failed: it broke"])
def test_results_that_were_typed_and_not_told_are_not_written_over(typed, study, tmp_path):
    table = tmp_path / "table.csv"
    answer("ask", study, "--open", "--csv", table)
    table.write_text(table.read_text().rstrip("\n") + f"{typed}\n")
    before = table.read_bytes()
    error = answer("export", study, "--out", table, code=1)["error"]
    assert "results were typed into it that have not been told" in error
    assert table.read_bytes() == before


def test_an_export_may_take_the_place_of_another(study, tmp_path):
    for _ in range(2):
        assert answer("export", study, "--out", tmp_path / "all.csv")["trials"] == 3


def test_a_workbook_has_types_and_no_formulas(study, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    answer("export", study, "--out", tmp_path / "all.xlsx")
    header, *rows = openpyxl.load_workbook(tmp_path / "all.xlsx").active.iter_rows()
    names = [cell.value for cell in header]
    assert names[:4] == ["trial", "state", "=k", "value to minimize"]
    assert len(set(names)) == len(names), "a parameter and another column have the same name"
    assert [row[3].value for row in rows] == [-1.5, None, None]
    assert all(isinstance(row[1].value, int) for row in rows)
    assert {row[2].value for row in rows} == {"=1+1"}
    cells = [cell for row in (header, *rows) for cell in row]
    assert {cell.data_type for cell in cells} == {"s", "n"}
    assert all(cell.quotePrefix for cell in cells if cell.data_type == "s")
    assert any(str(cell.value).startswith("=cmd bad") for cell in cells)


def test_a_workbook_needs_a_package(study, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    error = answer("export", study, "--out", tmp_path / "all.xlsx", code=1)["error"]
    assert "pip install 'sumbo[xlsx]'" in error


def test_a_parameter_may_be_called_as_another_column(study, tmp_path):
    answer("export", study, "--out", tmp_path / "all.csv")
    (header, *_) = csv.reader(io.StringIO((tmp_path / "all.csv").read_text("utf-8")))
    assert len(set(header)) == len(header)
    other = write_space(tmp_path, SPACE, name="other.toml")
    assert len(answer("tell", other, tmp_path / "all.csv", "--own")["added"]) == 2
    a, b = (answer("export", path)["trials"] for path in (study, other))
    assert [trial["params"] for trial in a[:2]] == [trial["params"] for trial in b]


def test_parquet_keeps_a_parameter_that_is_called_as_another_column(study, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    answer("export", study, "--out", tmp_path / "all.parquet")
    rows = parquet.read_table(tmp_path / "all.parquet").to_pylist()
    assert [row["state"] for row in rows] == [t["params"]["state"] for t in answer("export", study)["trials"]]


def runs(cell):
    """Would a spreadsheet take it for a formula? Negative numbers are numbers."""
    try:
        float(cell)
    except ValueError:
        return cell[:1] in ("=", "+", "-", "@", "\t", "\r", "\n")
    return False


def is_safe(text):
    assert not [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row if runs(cell)]


RISKY = st.sampled_from(NASTY) | st.text(st.sampled_from("=+-@\t\r\n' a1\0"), max_size=4)


@settings(max_examples=2, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), phases=NO_SHRINK)
@given(texts=st.lists(RISKY, min_size=40, max_size=40))
def test_no_table_holds_a_formula_and_all_of_it_comes_back(texts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    choices = [texts[i : i + 3] for i in range(0, len(texts), 3)]
    space = {
        name: {"type": "categorical", "choices": three}
        for name, three in zip(dict.fromkeys(texts[::-1]), choices, strict=False)
    }
    space = accepted(folder, space | {"n": {"type": "int", "low": -9, "high": -1}})
    study, other = write_space(folder, space), write_space(folder, space, name="other.toml")
    table = folder / "batch.csv"
    trials = answer("ask", study, "-n", 4, "--csv", table)["trials"]
    is_safe(table.read_text("utf-8"))
    for trial, reason in zip(range(3), texts, strict=False):
        answer("tell", study, "--trial", trial, f"--failed={reason}")
    answer("tell", study, "--trial", 3, "-2.5")
    answer("export", study, "--out", folder / "all.csv")
    text = Path(folder, "all.csv").read_text("utf-8")
    is_safe(text)
    assert ",-2.5," in text, "a number is a number"
    answer("tell", other, folder / "all.csv", "--own")
    found = answer("export", other)["trials"]
    assert [kinds(trial["params"]) for trial in found] == [kinds(trial["params"]) for trial in trials]


# --- words that are hard to write -----------------------------------------------------------------------------


def test_bytes_that_are_no_text_can_be_exported(tmp_path):
    path = write_study(tmp_path)
    answer("ask", path)
    answer("tell", path, "--trial", 0, "--failed", ODD)
    for ending in ("csv", "json", "jsonl"):
        answer("export", path, "--out", tmp_path / f"all.{ending}")
        assert b"udcff" in (tmp_path / f"all.{ending}").read_bytes()


# --- to Optuna ---


def test_optuna_reads_what_was_exported(tmp_path):
    space = {
        "x": {"type": "float", "low": 0.0, "high": 2.0},
        "log": {"type": "float", "low": 1e-3, "high": 1.0, "log": True},
        "n": {"type": "int", "low": 1, "high": 9},
        "k": {"type": "categorical", "choices": ["a", 2, True]},
    }
    path, out = write_space(tmp_path, space), tmp_path / "for {optuna}?.db"
    answer("ask", path, "-n", 5)
    answer("tell", path, "--trial", 3, "-1.5")
    answer("tell", path, "--trial", 1, "--failed", f"no power {ODD}")
    answer("cancel", path, 4)
    trials = answer("export", path)["trials"]
    assert answer("export", path, "--optuna", out) == {"trials": 5, "out": str(out)}
    shutil.copy(out, tmp_path / "plain.db")
    storage = f"sqlite:///{tmp_path / 'plain.db'}"
    study = optuna.load_study(study_name="study", storage=storage)
    assert [t.params for t in study.trials] == [t["params"] for t in trials]
    assert [t.value for t in study.trials] == [t["value"] for t in trials] == [None, None, None, -1.5, None]
    assert [t.state.name for t in study.trials] == ["RUNNING", "FAIL", "RUNNING", "COMPLETE", "FAIL"]
    assert [t.user_attrs for t in study.trials if t.state.name == "FAIL"] == [
        {"sumbo:reason": trials[1]["reason"]},
        {"sumbo:reason": "cancelled"},
    ]
    assert [t.datetime_start.isoformat() for t in study.trials] == [t["started"] for t in trials]
    assert study.trials[3].distributions == {
        "x": optuna.distributions.FloatDistribution(0.0, 2.0),
        "log": optuna.distributions.FloatDistribution(1e-3, 1.0, log=True),
        "n": optuna.distributions.IntDistribution(1, 9),
        "k": optuna.distributions.CategoricalDistribution(["a", 2, True]),
    }
    view = sumbo.report.from_optuna(study)
    assert [row.reason for row in view.in_state("failed")] == [trials[1]["reason"], "cancelled"]
    study.optimize(lambda trial: trial.suggest_float("x", 0, 2), n_trials=1)  # it can go on there
    assert len(study.trials) == 6


@pytest.mark.parametrize("goal", ["minimize", "maximize"])
def test_an_exported_study_has_its_goal_and_what_its_range_was(goal, tmp_path):
    path = write_study(tmp_path, goal=goal)
    table = tmp_path / "mine.csv"
    table.write_text(f"a,n,c,value to {goal}\n2.0,9,plain,5\n0.5,1,plain,4\n")
    answer("tell", path, table, "--own")
    text = path.read_text().replace("high = 2.0", "high = 1.0").replace("high = 9", "high = 4")
    path.write_text(text)
    answer("export", path, "--optuna", tmp_path / "o.db")
    study = optuna.load_study(study_name="study", storage=f"sqlite:///{tmp_path / 'o.db'}")
    assert study.direction.name.lower() == goal
    assert study.best_value == (5 if goal == "maximize" else 4)
    assert [t.params["a"] for t in study.trials] == [2.0, 0.5]
    assert [t.distributions["n"].high for t in study.trials] == [9, 4]


def test_an_export_to_optuna_writes_over_nothing(study, tmp_path):
    target = tmp_path / "o.db"
    target.write_text("mine")
    assert "expected a new file" in answer("export", study, "--optuna", target, code=1)["error"]
    assert target.read_text() == "mine"
    assert "folder that exists" in answer("export", study, "--optuna", tmp_path / "x" / "o.db", code=1)["error"]


@pytest.mark.parametrize(
    "arguments", [["export", "{study}", "--optuna", "o.db"], ["report", "--storage", "sqlite:///o.db", "x"]]
)
def test_what_needs_optuna_says_so(study, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    hide_optuna(monkeypatch)
    arguments = [str(study) if word == "{study}" else word for word in arguments]
    assert "pip install 'sumbo[optuna]'" in answer(*arguments, code=1)["error"]
    assert list(tmp_path.iterdir()) == []


def test_python_that_needs_optuna_says_so(monkeypatch):
    hide_optuna(monkeypatch)
    with pytest.raises(sumbo.errors.MissingPackageError, match=r"pip install 'sumbo\[optuna\]'"):
        importlib.import_module("sumbo.integrations.optuna")
    with pytest.raises(sumbo.errors.MissingPackageError, match=r"pip install 'sumbo\[optuna\]'"):
        sumbo.report.from_optuna(object())


def hide_optuna(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("sumbo.integrations.optuna")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "optuna", None)
