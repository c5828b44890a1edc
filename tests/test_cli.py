"""The command line: exit codes, help, and the demonstration on a small budget."""

import subprocess
import sys

import pytest

import sumbo
from sumbo.cli import main


def test_the_demonstration_shows_values_and_groups(capsys):
    assert main(["demo", "--budget", "40", "--seed", "1"]) == 0
    out = capsys.readouterr().out
    for word in ("20 parameters", "the true maximum", "sumbo", "random search", "hidden groups", "40 evaluations"):
        assert word in out
    groups = sumbo.problems.additive(20, 2, 9, 1).groups
    assert groups is not None
    for group in groups:
        assert str(tuple(sorted(group))) in out


@pytest.mark.parametrize("arguments", [[], ["fly"], ["demo", "--budget", "many"]])
def test_arguments_that_make_no_sense_exit_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert "usage: sumbo" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["demo", "--budget", "0"], ["demo", "--seed", "-1"]])
def test_what_cannot_be_done_is_said_without_a_traceback(arguments, capsys):
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("sumbo: ")
    assert "Traceback" not in error


def test_help_and_version_answer_at_once():
    for option, word in (("--help", "demo"), ("--version", sumbo.__version__)):
        run = subprocess.run([sys.executable, "-m", "sumbo", option], capture_output=True, text=True, check=True)
        assert word in run.stdout


def test_an_interrupted_demonstration_says_so(monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("sumbo.cli.demo.run", interrupted)
    assert main(["demo"]) == 130
    assert "interrupted" in capsys.readouterr().err
