"""The commands on studies: what they print, and their exit codes."""

import csv
import io
import json
import subprocess
import sys

import pytest
from studies import call, command, write_program, write_study

import sumbo
from sumbo.cli import main
from sumbo.cli.parser import make_parser


@pytest.fixture
def study(tmp_path):
    return write_study(tmp_path)


def answer(capsys, *arguments, code=0):
    assert main([*map(str, arguments), "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_by_hand_from_ask_to_best(study, tmp_path, capsys):
    batch = tmp_path / "batch.csv"
    assert main(["ask", str(study), "-n", "4", "--csv", str(batch)]) == 0
    assert "sumbo tell" in capsys.readouterr().out
    rows = list(csv.DictReader(batch.read_text().splitlines()))
    assert [row["trial"] for row in rows] == ["0", "1", "2", "3"]
    for row, value in zip(rows, ("3.5", "1.5", "", "failed spilled"), strict=True):
        row["value to minimize"] = value
    with batch.open("w") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)
    assert main(["tell", str(study), str(batch)]) == 0
    assert capsys.readouterr().out == "3 told, 0 of your own, 0 corrected, 0 known\nnote: 1 rows have no result yet\n"
    best = answer(capsys, "best", study)
    assert (best["trial"], best["value"], best["params"]["c"]) == (1, 1.5, rows[1]["c"])
    assert best["counts"] == {"done": 2, "failed": 1, "running": 0, "open": 1, "waiting": 0, "cancelled": 0}
    assert main(["show", str(study)]) == 0
    out = capsys.readouterr().out
    for words in ("3 of any number of trials finished", "1 x spilled", "open, to be told: 2", "3  failed (spilled)"):
        assert words in out
    again = answer(capsys, "ask", study, "--open")
    assert [trial["trial"] for trial in again["trials"]] == [2]
    assert answer(capsys, "tell", study, "--trial", 2, "0.5")["told"] == [2]
    assert main(["best", str(study)]) == 0
    assert "trial 2: 0.5\n  a = " in capsys.readouterr().out


def test_ask_prints_a_table(study, capsys):
    assert main(["ask", str(study)]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert list(row) == ["trial", "a", "n", "c", "value to minimize"]
    assert len(answer(capsys, "ask", study, "-n", 3)["trials"]) == 3


def test_one_trial_told_failed_and_corrected(study, capsys):
    answer(capsys, "ask", study, "-n", 2)
    assert answer(capsys, "tell", study, "--trial", 0, "--failed", "no glue")["told"] == [0]
    assert answer(capsys, "tell", study, "--trial", 1, "--failed")["told"] == [1]
    assert "--replace" in answer(capsys, "tell", study, "--trial", 0, "2.5", code=1)["error"]
    assert answer(capsys, "tell", study, "--trial", 0, "2.5", "--replace")["replaced"] == [0]
    assert answer(capsys, "best", study)["value"] == 2.5


@pytest.mark.parametrize("value", ["1,5", "12 mm", "nan", "one"])
def test_values_that_are_none(value, study, capsys):
    answer(capsys, "ask", study)
    assert "value" in answer(capsys, "tell", study, "--trial", 0, value, code=1)["error"]
    assert answer(capsys, "show", study)["counts"]["open"] == 1


def test_an_export_can_be_told_to_another_study(study, tmp_path, capsys):
    answer(capsys, "ask", study, "-n", 3)
    for trial, value in ((0, "1.5"), (1, "0.1")):
        answer(capsys, "tell", study, "--trial", trial, value)
    answer(capsys, "tell", study, "--trial", 2, "--failed")
    out = tmp_path / "all.csv"
    assert answer(capsys, "export", study, "--out", out) == {"trials": 3, "out": str(out)}
    assert main(["export", str(study)]) == 0
    assert capsys.readouterr().out == out.read_text()
    other = write_study(tmp_path, 'name = "other"', name="other.toml")
    told = answer(capsys, "tell", other, out, "--own")
    assert (told["added"], told["counts"]["done"], told["counts"]["failed"]) == ([0, 1, 2], 2, 1)
    assert "columns left alone: state, reason, started, seconds" in told["notes"]
    a, b = (answer(capsys, "export", path)["trials"] for path in (study, other))
    assert [(t["params"], t["value"]) for t in a] == [(t["params"], t["value"]) for t in b]


def test_parquet(study, tmp_path, capsys):
    parquet = pytest.importorskip("pyarrow.parquet")
    answer(capsys, "ask", study, "-n", 2)
    answer(capsys, "tell", study, "--trial", 0, "1.5")
    answer(capsys, "export", study, "--out", tmp_path / "all.parquet")
    rows = parquet.read_table(tmp_path / "all.parquet").to_pylist()
    assert [(row["trial"], row["value to minimize"], row["state"]) for row in rows] == [
        (0, 1.5, "done"),
        (1, None, "open"),
    ]
    assert isinstance(rows[0]["n"], int)


def test_parquet_without_pyarrow_says_so(study, tmp_path, capsys, monkeypatch):
    answer(capsys, "ask", study)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "pip install pyarrow" in answer(capsys, "export", study, "--out", tmp_path / "x.parquet", code=1)["error"]


WRONG = {
    "no file": (["run", "nothing.toml"], "no such file"),
    "no objective": (["run", "study.toml", "--budget", "3"], "sumbo ask"),
    "no budget": (["run", "study.toml"], "budget is missing"),
    "no study yet": (["best", "study.toml"], "no such study yet"),
    "no table": (["tell", "study.toml"], "expected a table"),
    "no value": (["tell", "study.toml", "--trial", "0"], "either a value or --failed"),
    "value and failed": (["tell", "study.toml", "3", "--trial", "0", "--failed", "x"], "either a value or --failed"),
    "own trial": (["tell", "study.toml", "3", "--trial", "0", "--own"], "--own is for tables"),
    "folder for a table": (["ask", "study.toml", "--csv", "."], "expected a file"),
    "no such folder": (["export", "study.toml", "--out", "x/y.csv"], "folder that exists"),
    "open and new": (["ask", "study.toml", "--open", "-n", "2"], "give one of them"),
}


@pytest.mark.parametrize(("arguments", "words"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_done(arguments, words, study, capsys, monkeypatch):
    monkeypatch.chdir(study.parent)
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("sumbo: ")
    assert words in captured.err
    assert captured.out == ""
    assert words in answer(capsys, *arguments, code=1)["error"]
    assert not (study.parent / "study.db").exists()


def test_a_missing_program_is_said_before_a_trial_is_spent(tmp_path, capsys):
    path = write_study(tmp_path, 'command = ["./sim", "{a}{n}{c}"]\nbudget = 5')
    assert "chmod +x" in answer(capsys, "run", path, code=1)["error"]
    write_program(tmp_path, "echo 1")
    assert answer(capsys, "run", path)["counts"]["done"] == 5


def test_best_of_nothing_is_1(study, capsys):
    answer(capsys, "ask", study)
    assert answer(capsys, "best", study, code=1)["value"] is None


def test_lines_in_a_log_and_a_second_run_with_nothing_to_do(tmp_path):
    write_program(tmp_path, '[ "$n" -gt 4 ] && echo "$a"')
    path = write_study(tmp_path, 'command = ["./sim"]\nparameters = "environment"\nbudget = 12')
    done = subprocess.run(command("run", path), capture_output=True, text=True, timeout=120, check=True)
    lines = done.stderr.splitlines()
    assert sum("failed: exit code 1" in line for line in lines) == done.stderr.count("failed") > 0
    assert any(line.startswith("sumbo: trial ") and line.endswith("12/12)") for line in lines)
    assert done.stdout.startswith("trial ")
    assert call("run", path)["counts"]["done"] == call("best", path)["counts"]["done"]


# --- contexts, fixed values, constraints, noise ---

WING = """
[space.angle]
type = "float"
low = 0.0
high = 15.0
step = 0.5
[space."a=b"]
type = "float"
low = 0.0
high = 1.0
[space.foil]
type = "categorical"
choices = ["naca0012", "naca2412", "12, flat"]
[space.flap]
type = "float"
low = 0.0
high = 1.0
when = {foil = "naca2412"}
[space.wind]
type = "float"
low = 0.0
high = 30.0
"""
KEYS = 'context = ["wind"]\nconstraints = ["stress <= 250", "mass >= 12"]\nknown = ["angle + wind <= 40"]'


@pytest.fixture
def wing(tmp_path):
    return write_study(tmp_path, KEYS, space=WING, method='"auto"')


def test_asking_with_a_context_and_fixed_values(wing, capsys):
    fixed = ["--fix", "foil=12, FLAT", "--fix", "angle=3", "--fix", "a=b=0.25"]
    asked = answer(capsys, "ask", wing, "-n", 3, "--context", "wind=12", *fixed)["trials"]
    for trial in asked:
        assert trial["params"] == {"angle": 3.0, "a=b": 0.25, "foil": "12, flat", "wind": 12.0} | trial["params"]
        assert ("flap" in trial["params"], trial["context"]) == (False, {"wind": 12.0})
    (trial,) = answer(capsys, "ask", wing, "--context", "wind=3", "--fix", "flap=0.5")["trials"]
    assert (trial["params"]["foil"], trial["params"]["flap"]) == ("naca2412", 0.5)
    assert len(answer(capsys, "ask", wing, "--open")["trials"]) == 4


ASKED = ["ask", "study.toml"]
TOLD = ["tell", "study.toml", "--trial", "0"]
MEASURED = ["--constraint", "stress=240", "--constraint", "mass=13"]
NOT_SO = {
    "no context": (
        ASKED,
        "missing ['wind']; every ask says its value: context={...}; here: --context wind=",
    ),
    "another context": ([*ASKED, "--context", "wnd=3"], "did you mean 'wind'"),
    "no value": ([*ASKED, "--context", "wind"], "expected NAME=VALUE, got 'wind'"),
    "out of range": ([*ASKED, "--context", "wind=99"], "--context wind: expected a number from 0.0 to 30.0"),
    "twice": ([*ASKED, "--context", "wind=9", "--context", "wind=8"], "'wind' is given twice"),
    "off the grid": ([*ASKED, "--context", "wind=9", "--fix", "angle=3.3"], "the nearest is 3.5"),
    "no choice": ([*ASKED, "--context", "wind=9", "--fix", "foil=naca"], "--fix foil: expected one of"),
    "fixed context": ([*ASKED, "--context", "wind=9", "--fix", "wind=8"], "'wind' is of the context"),
    "nowhere": ([*ASKED, "--context", "wind=9", "--fix", "flap=1", "--fix", "foil=naca0012"], "does not exist where"),
    "open": ([*ASKED, "--open", "--context", "wind=9"], "--context and --fix are for new ones"),
    "run": (["run", "study.toml", "--budget", "3"], "use sumbo ask --context wind=VALUE"),
    "best of a context": (["best", "study.toml", "--context", "wind=9"], "--context is for --denoised"),
    "unknown constraint": ([*TOLD, "1", "--constraint", "stres=3"], "did you mean 'stress'"),
    "constraint of a table": (["tell", "study.toml", "t.csv", *MEASURED], "a table has columns for them"),
    "constraint of a failure": ([*TOLD, "--failed", "x", *MEASURED], "leave them out with --failed"),
}


@pytest.mark.parametrize(("arguments", "words"), NOT_SO.values(), ids=NOT_SO)
def test_what_cannot_be_asked_or_told(arguments, words, wing, capsys, monkeypatch):
    if arguments[0] == "tell":
        answer(capsys, "ask", wing, "--context", "wind=3")
        (wing.parent / "t.csv").write_text("trial,value\n")
        monkeypatch.chdir(wing.parent)
        assert words in answer(capsys, *arguments, code=1)["error"]
    else:
        test_what_cannot_be_done(arguments, words, wing, capsys, monkeypatch)


def test_telling_constraints_and_noise(wing, capsys):
    answer(capsys, "ask", wing, "-n", 4, "--context", "wind=12", "--fix", "foil=naca0012")
    assert "missing 'mass'" in answer(capsys, *("tell", wing, "--trial", 0, "1", *MEASURED[:2]), code=1)["error"]
    for wrong in (
        ["--constraint", "stress=1 MPa", *MEASURED[2:]],
        [*MEASURED, "--std", "-1"],
        [*MEASURED, "--std", "x"],
    ):
        assert answer(capsys, "tell", wing, "--trial", 0, "1", *wrong, code=1)["error"]
    answer(capsys, "tell", wing, "--trial", 0, "0.5", "--constraint", "stress=260", "--constraint", "mass=13")
    assert main(["best", str(wing)]) == 1
    assert capsys.readouterr().out == "no trial keeps all constraints yet: stress <= 250, mass >= 12\n"
    answer(capsys, "tell", wing, "--trial", 1, "0.75", *MEASURED, "--std", "0.05")
    answer(capsys, "tell", wing, "--trial", 2, "--failed")
    best = answer(capsys, "best", wing)
    assert (best["trial"], best["value"], best["std"], best["context"]) == (1, 0.75, 0.05, {"wind": 12.0})
    assert best["constraints"] == {"stress": 240.0, "mass": 13.0}
    assert main(["show", str(wing)]) == 0
    out = capsys.readouterr().out
    for line in (
        "1 of 2 keep stress <= 250, mass >= 12",
        "best trial 1: 0.75 (std 0.05)",
        "  stress = 240 (stress <= 250)",
        "  trial       value      stress        mass",
        "      0         0.5         260          13  infeasible",
        "      1        0.75         240          13",
        "      3  open",
    ):
        assert line in out.splitlines()
    assert "flap" not in out
    same = ["tell", wing, "--trial", 0, "0.5"]
    assert answer(capsys, *same, "--constraint", "stress=260", "--constraint", "mass=13")["known"] == 1
    assert "--replace" in answer(capsys, *same, *MEASURED, code=1)["error"]
    assert answer(capsys, *same, *MEASURED, "--replace")["replaced"] == [0]
    assert answer(capsys, "best", wing)["trial"] == 0
    told = answer(capsys, "show", wing)["trials"]
    assert [trial["feasible"] for trial in told] == [True, True, None, None]


def test_shapes_are_exported_and_told_again(wing, tmp_path, capsys):
    for i, foil in enumerate(("naca0012", "naca2412", "naca0012")):
        answer(capsys, "ask", wing, "--context", f"wind={i}", "--fix", f"foil={foil}")
    answer(capsys, "tell", wing, "--trial", 0, "0.5", *MEASURED)
    answer(capsys, "tell", wing, "--trial", 1, "0.25", *MEASURED, "--std", "0.1")
    answer(capsys, "tell", wing, "--trial", 2, "--failed")
    out = tmp_path / "all.csv"
    answer(capsys, "export", wing, "--out", out)
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert list(rows[0])[5:10] == ["wind", "value to minimize", "stress", "mass", "std"]
    assert [(row["flap"] == "", row["stress"], row["std"]) for row in rows] == [
        (True, "240.0", ""),
        (False, "240.0", "0.1"),
        (True, "", ""),
    ]
    other = write_study(tmp_path, KEYS + '\nname = "other"', space=WING, method='"auto"', name="other.toml")
    assert answer(capsys, "tell", other, out, "--own")["added"] == [0, 1, 2]
    a, b = (answer(capsys, "export", path)["trials"] for path in (wing, other))
    for key in ("params", "value", "constraints", "std", "feasible", "context"):
        assert [trial[key] for trial in a] == [trial[key] for trial in b]
    assert answer(capsys, "tell", other, out, "--own")["known"] == 3
    for ending in ("json", "jsonl", "xlsx"):
        answer(capsys, "export", wing, "--out", tmp_path / f"all.{ending}")


def test_the_point_to_use(wing, capsys):
    for wind in range(12):
        (trial,) = answer(capsys, "ask", wing, "--context", f"wind={wind}")["trials"]
        value = abs(trial["params"]["angle"] - wind) + trial["params"]["a=b"]
        stress = 100 + 200 * trial["params"]["a=b"]
        measured = ["--constraint", f"stress={stress}", "--constraint", "mass=13", "--std", "0.01"]
        answer(capsys, "tell", wing, "--trial", trial["trial"], value, *measured)
    found = answer(capsys, "best", wing, "--denoised", "--context", "wind=5")
    assert found["params"]["wind"] == 5.0
    assert found["std"] >= 0.0 <= found["probability_feasible"] <= 1.0
    assert main(["best", str(wing), "--denoised", "--context", "wind=5"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"expected: {found['value']:.6g}, plus or minus ")
    assert "\n  wind " in out
    assert "--context wind=VALUE" in answer(capsys, "best", wing, "--denoised", code=1)["error"]


def test_numbers_for_people_have_the_digits_that_matter(study, capsys):
    params = {"a": 1.0 / 3.0, "n": 3, "c": "plain"}
    table = study.parent / "own.csv"
    table.write_text("a,n,c,value\n" + ",".join(map(str, params.values())) + ",0.30000000000000004\n")
    answer(capsys, "tell", study, table)
    assert main(["best", str(study)]) == 0
    assert capsys.readouterr().out == "trial 0: 0.3\n  a = 0.333333\n  n = 3\n  c = plain\n"
    assert answer(capsys, "best", study)["params"] == params


MODEL = """
import sumbo

def drag(params):
    stress = 200 + 10 * params["angle"]
    return sumbo.Evaluation(params["angle"] + params.get("flap", 0.0), constraints={"stress": stress}, std=0.1)
"""
SIM = """
import json, sys
params = json.load(sys.stdin)
print(json.dumps({"loss": params["angle"], "out": {"stress": 200 + 10 * params["angle"]}, "std": 0.1}))
"""


@pytest.mark.parametrize("by", ["function", "program"])
def test_running_with_constraints(by, tmp_path, capsys):
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "sim.py").write_text(SIM)
    name = "stress" if by == "function" else "out.stress"
    text = f'budget = 8\nconstraints = ["{name} <= 250"]\n'
    program = f'command = ["{sys.executable}", "sim.py"]\nparameters = "stdin"\nvalue = "json:loss"'
    text += 'objective = "model:drag"' if by == "function" else program
    path = write_study(tmp_path, text, space=WING, goal="maximize", method='"auto"')
    assert main(["run", str(path), "--json"]) == 0
    captured = capsys.readouterr()
    best = json.loads(captured.out)
    assert best["counts"]["done"] == 8
    assert (best["std"], best["constraints"][name] <= 250) == (0.1, True)
    trials = answer(capsys, "export", path)["trials"]
    assert [t["feasible"] for t in trials] == [t["params"]["angle"] <= 5.0 for t in trials]
    assert best["value"] == max(t["value"] for t in trials if t["feasible"])
    assert captured.err.count(", infeasible (best ") == sum(not t["feasible"] for t in trials) > 0


def test_a_program_that_leaves_out_a_constraint_fails_with_its_name(tmp_path, capsys):
    write_program(tmp_path, """echo '{"loss": 1}'""")
    text = 'command = ["./sim"]\nparameters = "stdin"\nvalue = "json:loss"\nconstraints = ["stress"]\nbudget = 3'
    path = write_study(tmp_path, text)
    assert "the key 'stress'" in answer(capsys, "run", path, code=3)["error"]


# --- help, completion, speed ---


def test_every_command_has_help_with_examples(capsys):
    for name in ("run", "ask", "tell", "best", "show", "export", "demo", "completion"):
        with pytest.raises(SystemExit) as exit_:
            main([name, "--help"])
        assert exit_.value.code == 0
        out = capsys.readouterr().out
        assert f"examples:\n  sumbo {name}" in out
        assert "--json" in out
    assert "exit codes:" in make_parser().format_help()


@pytest.mark.parametrize(
    "arguments", [["run"], ["ask", "s.toml", "-n", "0"], ["tell", "s.toml", "--trial", "-1"], ["completion"]]
)
def test_usage(arguments, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert "usage: sumbo" in capsys.readouterr().err


BASH = """
source /dev/stdin <<'SCRIPT'
%s
SCRIPT
complete_() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sumbo; echo "${COMPREPLY[@]}"; }
complete_ sumbo ru
complete_ sumbo run --b
complete_ sumbo run st
complete_ sumbo completion f
"""


def test_bash_completes(study, capsys):
    assert main(["completion", "bash"]) == 0
    script = BASH % capsys.readouterr().out
    run = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd=study.parent)
    assert (run.stdout.splitlines(), run.stderr) == (["run", "--budget", "study.toml", "fish"], "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_accept_their_script(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in ("ask", "export", "replace"):
        assert word in script
    try:
        run = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip(f"{shell} is not installed")
    assert (run.returncode, run.stderr) == (0, "")


def test_looking_needs_no_compiled_code(study, capsys):
    answer(capsys, "ask", study)
    answer(capsys, "tell", study, "--trial", 0, "1.5")
    code = "import sys; from sumbo.cli import main; assert main(sys.argv[1:]) == 0\n"
    code += "assert not {'numba', 'optuna'} & set(sys.modules)"
    for arguments in (["best", study], ["show", study], ["export", study], ["tell", study, "--trial", "0", "1.5"]):
        subprocess.run([sys.executable, "-c", code, *map(str, arguments)], check=True, capture_output=True)
    code = "import sys\ntry:\n    import sumbo.cli; sumbo.cli.main(['--help'])\nexcept SystemExit:\n    pass\n"
    code += "assert not {'numba', 'optuna', 'numpy', 'rich'} & set(sys.modules), sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert sumbo.__version__
