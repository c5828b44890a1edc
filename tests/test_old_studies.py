"""Databases of other versions: an old study goes on, one that is too new is refused and left as it is."""

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest
from studies import write_study

from sumbo.cli import main

# Made by sumbo 0.1.0 and never to be made anew: whatever changes, this study goes on.
OLD = (Path(__file__).parent / "data" / "study_version_1.sql").read_text()
COMMANDS = (("show",), ("best",), ("export",), ("replay",), ("ask",), ("ask", "--open"), ("tell", "--trial", "3", "1"))


@pytest.fixture
def old(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "old.db")) as connection:
        connection.executescript(OLD)
    return write_study(tmp_path, 'name = "old"\nstorage = "sqlite:///old.db"', method='"seq-groups"')


def changed(study, statement):
    with contextlib.closing(sqlite3.connect(study.with_name("old.db"))) as connection:
        connection.execute(statement)
        connection.commit()


def contents(study):
    with contextlib.closing(sqlite3.connect(study.with_name("old.db"))) as connection:
        return list(connection.iterdump())


def answer(capsys, command, study, *rest):
    assert main([command, str(study), *rest, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_study_of_version_1_goes_on_for_ever(old, capsys):
    shown = answer(capsys, "show", old)
    assert shown["counts"] == {"done": 2, "failed": 1, "running": 0, "open": 1, "waiting": 0}
    best = answer(capsys, "best", old)
    assert (best["trial"], best["value"], best["params"]["n"]) == (0, 0.5, 6)
    assert answer(capsys, "tell", old, "--trial", "3", "0.25")["told"] == [3]
    assert answer(capsys, "best", old)["trial"] == 3
    assert main(["ask", str(old)]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("4,")


TOO_NEW = {
    "a later sumbo": (
        """UPDATE study_user_attributes SET value_json = replace(value_json, '"version": 1', '"version": 2')""",
        ("expected a study of version 1, got 2", "the sumbo that began it"),
    ),
    "a later Optuna": (
        "UPDATE alembic_version SET version_num = 'v99'",
        ("no longer compatible", "use the versions of sumbo and Optuna that made it"),
    ),
}


@pytest.mark.parametrize("kind", TOO_NEW)
def test_a_study_that_is_too_new_is_refused_and_left_alone(kind, old, capsys):
    statement, words = TOO_NEW[kind]
    changed(old, statement)
    before = contents(old)
    for command, *rest in COMMANDS:
        assert main([command, str(old), *rest]) == 1, command
        said = capsys.readouterr().err
        assert said.startswith("sumbo: "), said
        assert "old.db" in said, said
        for word in words:
            assert word in said, said
    assert contents(old) == before
