"""Nothing is let in and nothing let out: no code from data, no shell, no password shown, files as private as asked."""

import ast
import os
import stat
import traceback
from pathlib import Path

import pytest
from studies import SPACE, call, write_program, write_study

import sumbo
from sumbo.cli import main
from sumbo.errors import StoreError
from sumbo.study.files.toml import load
from sumbo.study.stored import StoredStudy

SOURCES = sorted(Path(sumbo.__file__).parent.rglob("*.py"))

# What runs code, or makes objects of any kind, out of data.
DANGEROUS = {
    *("eval", "exec", "compile", "__import__", "os.system", "os.popen", "pty.spawn", "yaml.load", "yaml.unsafe_load"),
    *("pickle.load", "pickle.loads", "cloudpickle.load", "cloudpickle.loads", "marshal.load", "marshal.loads"),
    *("shelve.open", "dill.load", "dill.loads", "joblib.load", "pandas.read_pickle", "torch.load"),
}
# Pipes between a process and the workers that it started itself: nobody else can write to them.
ALLOWED = {
    ("executors/worker.py", "pickle.loads"),
    ("executors/processes.py", "pickle.loads"),
}


def calls(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), {k.arg: ast.unparse(k.value) for k in node.keywords}


def test_nothing_is_evaluated_or_unpickled_but_between_our_own_processes():
    home = Path(sumbo.__file__).parent
    used = {(path.relative_to(home).as_posix(), name) for path in SOURCES for name, _ in calls(path)}
    found = {(path, name) for path, name in used if name in DANGEROUS}
    assert found <= ALLOWED, f"look at these, and read data as JSON or TOML: {sorted(found - ALLOWED)}"


def test_no_shell_and_no_arrays_of_objects():
    for path in SOURCES:
        for name, options in calls(path):
            assert options.get("shell", "False") == "False", f"{path}: {name} with a shell"
            assert options.get("allow_pickle", "False") == "False", f"{path}: {name} with pickles"


@pytest.mark.parametrize("text", ["1); import os; os.abort()", "__import__('os').abort()", "!!python/name:os.abort"])
def test_texts_that_look_like_code_stay_texts(text, tmp_path, capsys):
    study = write_study(tmp_path)
    assert main(["ask", str(study)]) == 0
    (tmp_path / "t.csv").write_text(f'trial,a,n,c,value to minimize\n0,,,,"{text}"\n')
    assert main(["tell", str(study), str(tmp_path / "t.csv")]) == 1
    assert "expected a number" in capsys.readouterr().err


def test_a_program_never_meets_a_shell(tmp_path):
    # Its own name, its arguments and the values are all things that a shell would act on.
    write_program(tmp_path, 'printf "%s\\n" "$@" >> seen; echo 1', name="sim; touch hacked")
    study = write_study(
        tmp_path,
        'command = ["./sim; touch hacked", "$(touch hacked)", "; rm -rf .", "{a} {n}", "{c}"]\nbudget = 3',
        space=SPACE.replace('["plain", "two words", ', "["),
    )
    assert call("run", study)["counts"]["done"] == 3
    assert not (tmp_path / "hacked").exists()
    seen = (tmp_path / "seen").read_text()
    assert seen.count("$(touch hacked)\n; rm -rf .\n") == 3
    assert "$(touch hacked); `x` 'q'" in seen


# --- passwords ----------------------------------------------------------------------------------------------

SECRETS = ("hunter2", "s%3Cc%40r%2Ft", "s<c@r/t")
URLS = (
    "postgresql://me:hunter2@localhost:1/x",
    "postgresql+psycopg://me:hunter2@localhost:1/x",
    "postgresql://me:s%3Cc%40r%2Ft@localhost:1/x",
    "postgresql://me@localhost:1/x?password=hunter2",
    "postgresql://me@localhost:1/x?sslmode=disable&password=s%3Cc%40r%2Ft",
    "postgresql://me:s<c@r/t@localhost:1/x",
    "postgresql://me:hunter2@localhost:port/x",
    "postgresql://:hunter2@localhost:1/x",
    "mysql://me:hunter2@localhost:1/x",
    "me:hunter2@localhost",
)
COMMANDS = (
    ("run",),
    ("ask",),
    ("ask", "--open"),
    ("tell", "--trial", "0", "1"),
    ("best",),
    ("show",),
    ("export",),
    ("replay",),
    ("report",),
)


@pytest.mark.parametrize("url", URLS)
def test_no_command_shows_a_password(url, tmp_path, capfd):
    study = write_study(tmp_path, f'storage = "{url}"\ncommand = ["true", "{{a}}", "{{n}}", "{{c}}"]\nbudget = 2')
    for command, *rest in COMMANDS:
        for form in ((), ("--json",)):
            assert main([command, str(study), *rest, *form]) == 1, command
            said = "".join(capfd.readouterr())
            assert "storage" in said
            for secret in SECRETS:
                assert secret not in said, (command, said)


@pytest.mark.parametrize("url", URLS[:6])
def test_no_traceback_shows_a_password(url, tmp_path):
    # Users of the library may log an error with all that led to it.
    study = load(write_study(tmp_path, f'storage = "{url}"'))
    with pytest.raises(StoreError) as caught:
        StoredStudy.open(study, create=True)
    text = "".join(traceback.format_exception(caught.value))
    text += repr(study)
    for secret in SECRETS:
        assert secret not in text.replace(f'storage = "{url}"', "")


# --- files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mask", "wanted"), [(0o077, 0o600), (0o027, 0o640)])
def test_files_are_as_private_as_the_user_asks(mask, wanted, tmp_path, capsys):
    study = write_study(tmp_path)
    before = os.umask(mask)
    try:
        assert main(["ask", str(study), "--csv", str(tmp_path / "sheet.csv")]) == 0
        assert main(["tell", str(study), "--trial", "0", "1.5"]) == 0
        for name in ("all.csv", "all.parquet"):
            assert main(["export", str(study), "--out", str(tmp_path / name)]) == 0
        assert main(["report", str(study), "-o", str(tmp_path / "all.html")]) == 0
    finally:
        os.umask(before)
    made = [p for p in tmp_path.iterdir() if p != study]
    assert {p.name for p in made} >= {"study.db", "sheet.csv", "all.csv", "all.parquet", "all.html"}
    assert {p.name: stat.S_IMODE(p.stat().st_mode) for p in made} == {p.name: wanted for p in made}


def test_a_file_that_is_written_again_stays_private(tmp_path, capsys):
    study, out, page = write_study(tmp_path), tmp_path / "all.csv", tmp_path / "all.html"
    assert main(["ask", str(study)]) == 0
    for path in (out, page):
        path.write_text("")
        path.chmod(0o600)
    assert main(["export", str(study), "--out", str(out)]) == 0
    assert main(["report", str(study), "-o", str(page)]) == 0
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
