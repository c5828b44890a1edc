"""What the command line says: no traceback, no letters that a terminal lacks, no stray punctuation."""

import contextlib
import io
import os
import re
import subprocess

import pytest
from studies import command, write_program, write_study
from tables import TYPED_FLOAT, answer, says, write_space

import sumbo
from sumbo.cli import main

SPACE = {"größe": {"type": "categorical", "choices": ["ä", "ł"]}, "a": TYPED_FLOAT}


def printed(encoding, *arguments, code=0):
    """The bytes that a command writes to a standard output of this encoding, and what it writes to errors."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            came = main([str(argument) for argument in arguments])
        except SystemExit as ending:
            came = ending.code
        out.flush()
        err.flush()
    assert came == code, err.buffer.getvalue()
    return out.buffer.getvalue(), err.buffer.getvalue()


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A study with names and choices beyond ASCII: two trials with values that are far apart, and a failed one."""
    folder = tmp_path_factory.mktemp("begun")
    study = write_space(folder, SPACE)
    answer("ask", study, "-n", 4)
    answer("tell", study, "--trial", 0, "1.7e308")
    answer("tell", study, "--trial", 1, "-1.7e308")
    answer("tell", study, "--trial", 2, "--failed", "größer \udcff\n\x1b[31m")
    return study


@pytest.mark.parametrize("encoding", ["ascii", "utf-8", "cp1252"])
@pytest.mark.parametrize("arguments", [["show"], ["show", "--learned"], ["best"], ["replay"]], ids=" ".join)
def test_every_terminal_can_show_a_study(arguments, encoding, begun):
    out, _ = printed(encoding, arguments[0], begun, *arguments[1:])
    text = out.decode(encoding)
    assert text
    assert "\x1b" not in text
    if arguments == ["best"]:
        assert ("größe" in text) == (encoding != "ascii")
        assert ("\\xf6" in text) == (encoding == "ascii")


@pytest.mark.parametrize("encoding", ["ascii", "utf-8", "cp1252"])
@pytest.mark.parametrize("arguments", [["ask", "--open"], ["export"]], ids=" ".join)
def test_a_table_on_standard_output_is_whole(arguments, encoding, begun, tmp_path):
    out, _ = printed(encoding, arguments[0], begun, *arguments[1:])
    (tmp_path / "table.csv").write_bytes(out)
    text = out.decode() if encoding != "cp1252" or "ł".encode() in out else out.decode("cp1252")
    assert "größe" in text
    if arguments == ["export"]:
        other = write_space(tmp_path, SPACE, name="other.toml")
        assert len(answer("tell", other, tmp_path / "table.csv", "--own")["added"]) == 3


def test_help_and_errors_on_a_terminal_of_ascii(begun, tmp_path):
    for arguments in (["--help"], *([name, "--help"] for name in ("run", "ask", "tell", "export", "report"))):
        assert b"usage" in printed("ascii", *arguments)[0]
    (tmp_path / "table.csv").write_text("größe,a,value\nö,0.5,1\n", encoding="utf-8")
    assert rb"\xf6" in printed("ascii", "tell", begun, tmp_path / "table.csv", code=1)[1]


def test_a_run_on_a_terminal_of_ascii(tmp_path):
    write_program(tmp_path, 'case "$1" in ä*) echo 1.5 ;; *) exit 3 ;; esac')
    study = write_space(tmp_path, SPACE, text='command = ["./sim", "{größe}{a}"]\nbudget = 3')
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command("run", study), capture_output=True, env=environment, timeout=300)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr
    assert rb"gr\xf6\xdfe" in done.stdout


def test_values_that_are_far_apart_are_shown(begun):
    out = printed("utf-8", "show", begun)[0].decode()
    assert "best so far, the lower the better: █▁" in out
    assert r"1 x größer \udcff\n\x1b[31m" in out


# --- telling ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["1.5", "-2", "1,5", "12 mm", "batch.csv"])
def test_a_value_without_its_trial(value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = write_study(tmp_path)
    error = answer("tell", study, value, code=1)["error"]
    for word in ("expected a table", "--trial N", repr(value)):
        assert word in error
    assert not study.with_suffix(".db").exists()


def test_a_trial_and_its_value_without_the_option(tmp_path):
    code, _, err = says("tell", write_study(tmp_path), "0", "1.5")
    assert code == 2
    assert "--trial N" in err


def test_an_empty_value(tmp_path):
    study = write_study(tmp_path)
    answer("ask", study)
    assert "expected a number, got ''" in answer("tell", study, "--trial", 0, "", code=1)["error"]


def test_a_failure_without_a_reason(tmp_path):
    study = write_study(tmp_path)
    answer("ask", study)
    answer("tell", study, "--trial", 0, "--failed", "")
    (trial,) = answer("export", study)["trials"]
    assert (trial["state"], trial["reason"]) == ("failed", "failed, as told by hand")


# --- hints --------------------------------------------------------------------------------------------------

FLOAT = '[space.angle]\ntype = "float"\nlow = 0\nhigh = 1\n'
HINTS = {
    "a key": f'goal = "minimize"\nbudgte = 3\n{FLOAT}',
    "a key of a parameter": f'goal = "minimize"\n{FLOAT}lgo = true\n',
    "a goal": f'goal = "minimise"\n{FLOAT}',
    "a type": f'goal = "minimize"\n{FLOAT}'.replace("float", "flaot"),
    "a method": f'goal = "minimize"\nmethod = "add-gp-ubc"\n{FLOAT}',
    "a setting": f'goal = "minimize"\nmethod = {{name = "add-gp-ucb", group_sizes = 2}}\n{FLOAT}',
    "a name in a group": f'goal = "minimize"\ntogether = [["angel", "angle"]]\n{FLOAT}',
    "a name in braces": f'goal = "minimize"\ncommand = ["true", "{{angel}}"]\n{FLOAT}',
}


def well_put(text, hint):
    assert hint in text
    assert not re.search(r"\?(?!\)|\s*$)|[.;:,]\s*[.;,]", text), text  # a question ends a message, or is in brackets


@pytest.mark.parametrize("text", HINTS.values(), ids=HINTS)
def test_hints_in_study_files(text, tmp_path):
    path = tmp_path / "wing.toml"
    path.write_text(text)
    code, _, err = says("ask", path)
    assert code == 1
    well_put(err, "id you mean '")


def test_hints_about_tables(tmp_path):
    study = write_study(tmp_path, space=FLOAT + '[space.c]\ntype = "categorical"\nchoices = ["plain"]\n')
    for table, hint in (
        ("angel,c,value\n0.5,plain,1\n", "is it 'angel'?"),
        ("angle,c,value to minimise\n0.5,plain,1\n", "is it 'value to minimise'?"),
        ("angle,c,value\n0.5,plian,1\n", "did you mean 'plain'?"),
    ):
        (tmp_path / "table.csv").write_text(table)
        well_put(says("tell", study, tmp_path / "table.csv")[2], hint)


def test_a_hint_about_a_renamed_parameter(tmp_path):
    answer("ask", write_study(tmp_path, space=FLOAT))
    well_put(says("ask", write_study(tmp_path, space=FLOAT.replace("angle", "angles")))[2], "renamed")


HINTS_IN_PYTHON = {
    "a name": lambda: sumbo.Space({"angle": sumbo.Float(0, 1)})["angel"],
    "a point": lambda: sumbo.Space({"angle": sumbo.Float(0, 1)}).array({"angel": 0.5}),
    "a choice": lambda: sumbo.Space({"c": sumbo.Categorical(["plain"])}).array({"c": "plian"}),
    "a method": lambda: sumbo.minimize(lambda x: 0.0, [(0, 1)], 1, method="add-gp-ubc"),
    "a problem": lambda: sumbo.problems.get("aditive-10-3-3"),
}


@pytest.mark.parametrize("call", HINTS_IN_PYTHON.values(), ids=HINTS_IN_PYTHON)
def test_hints_in_python(call):
    with pytest.raises(sumbo.SumboError) as caught:
        call()
    well_put(str(caught.value), "id you mean '")
