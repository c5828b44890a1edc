"""The guides for users of other tools: their code runs, and says what they say."""

import re
from pathlib import Path

import optuna
import pytest

GUIDES = Path(__file__).parents[1] / "docs" / "guides"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs all Python blocks of a guide one after the other, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def _run(name):
        names = {}
        for block in re.findall(r"```python\n(.*?)```", (GUIDES / name).read_text(encoding="utf-8"), re.DOTALL):
            exec(compile(block, name, "exec"), names)
        return names

    return _run


def test_optuna(run, tmp_path):
    names = run("optuna.md")
    assert names["branches"].best_value < 0
    feasible = [trial.value for trial in names["constrained"].trials if names["at_least_four"](trial)[0] <= 0]
    assert min(feasible) <= 8.01
    assert len(names["study"].trials) == 15
    assert (tmp_path / "tuning.db").exists()
    whole = optuna.create_study(sampler=names["sampler"]())
    whole.optimize(names["objective"], n_trials=15)
    assert [trial.params for trial in whole.trials] == [trial.params for trial in names["study"].trials]


def test_sklearn(run):
    assert run("sklearn.md")["search"].best_score_ > 0.97


def test_report(run, tmp_path):
    names = run("report.md")
    for page in ("report.html", "study.html"):
        assert (tmp_path / page).read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert names["view"].best.value == names["result"].value
