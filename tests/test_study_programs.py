"""Programs as objectives, with real programs."""

import json
import os
import sys

import pytest
from studies import is_running, lines_of, until, write_program

from sumbo.errors import StudyFileError
from sumbo.executors import EvaluationResult, result_of
from sumbo.executors.objectives import Job, Program, check_program, filled, placeholders, read_value, run_program

NASTY = "$(touch hacked); `id` 'single' \"double\" * & | > out \\ {a}"


def program(folder, *command, parameters="arguments", value="last-line", timeout=None):
    return Program(command, parameters, value, str(folder), timeout)


def job(**params):
    return Job("wing", 7, params)


def test_arguments_get_values_and_braces_can_be_meant():
    params = {"a": 0.1, "n": 3, "on": True, "c": "x {n} y"}
    assert filled("--a={a} {n} {on}", params) == "--a=0.1 3 true"
    assert filled("{c}", params) == "x {n} y"  # a value is not looked into
    assert filled("{{a}} {{", params) == "{a} {"
    assert placeholders("{{a}} {n}{c}") == ["n", "c"]


def test_every_digit_arrives(tmp_path):
    sim = program(tmp_path, sys.executable, "-c", "import sys; print(sys.argv[1])", "{a}")
    for value in (0.1 + 0.2, 1e-300, -5e300, 1 / 3):
        assert run_program(sim, job(a=value)).value == value


@pytest.mark.parametrize("parameters", ["arguments", "environment", "stdin"])
def test_blanks_and_metacharacters_stay_what_they_are(parameters, tmp_path):
    code = {
        "arguments": "import sys; text = sys.argv[1]",
        "environment": "import os; text = os.environ['c']",
        "stdin": "import sys, json; text = json.load(sys.stdin)['c']",
    }[parameters]
    code += "\nopen('seen', 'w').write(text); print(1.5)"
    extra = ["{c}"] if parameters == "arguments" else []
    sim = program(
        tmp_path, sys.executable, "-c", code.replace("{", "{{").replace("}", "}}"), *extra, parameters=parameters
    )
    assert run_program(sim, job(c=NASTY)) == EvaluationResult(1.5)
    assert (tmp_path / "seen").read_text() == NASTY
    assert sorted(os.listdir(tmp_path)) == ["seen"]  # nothing was touched, nothing redirected


def test_the_program_knows_its_trial_and_its_folder(tmp_path):
    write_program(tmp_path, 'echo "$SUMBO_STUDY $SUMBO_TRIAL $PWD" > seen; echo 2')
    assert run_program(program(tmp_path, "./sim"), job()).value == 2.0
    assert (tmp_path / "seen").read_text() == f"wing 7 {tmp_path.resolve()}\n"


@pytest.mark.parametrize(
    ("output", "where", "expected"),
    [
        ("warming up\n 0.25 \n\n", "last-line", 0.25),
        ("1e-3", "last-line", 1e-3),
        ('{"loss": 2}', "json:loss", 2.0),
        ('{\n "test": {"loss": 2.5}\n}', "json:test.loss", 2.5),
        ('epoch 1\n{"loss": 3}\n', "json:loss", 3.0),
        ("", "last-line", "printed nothing"),
        ("done", "last-line", "must be a number; got 'done'"),
        ("0.5 mm", "last-line", "must be a number"),
        ("nan", "last-line", "value was nan"),
        ("-inf", "last-line", "value was -inf"),
        ('{"loss": 2}', "json:los", "the key 'los'"),
        ('{"loss": "2"}', "json:loss", "must return a single real number; got str '2'"),
        ('{"loss": true}', "json:loss", "must return a single real number"),
        ('{"loss": NaN}', "json:loss", "value was nan"),
        ("[1]", "json:loss", "the key 'loss'"),
        ("[" * 100_000, "json:loss", "the key 'loss'"),
        ('{"loss": 1' + "0" * 400 + "}", "json:loss", "value was inf"),
    ],
)
def test_values_from_output(output, where, expected):
    outcome = read_value(output, where)
    if isinstance(expected, float):
        assert outcome == EvaluationResult(expected)
    else:
        assert outcome.value is None
        assert expected in outcome.reason


BOTH = '{"loss": 0.5, "stress": 240, "out": {"mass": 12.5}, "std": 0.1}'


@pytest.mark.parametrize(
    ("output", "where", "constraints", "expected"),
    [
        (BOTH, "json:loss", (), EvaluationResult(0.5, std=0.1)),
        (f"talk\n{BOTH}\n", "json:loss", ("stress", "out.mass"), ({"stress": 240.0, "out.mass": 12.5}, 0.1)),
        (BOTH.replace("0.1", "null"), "json:loss", ("stress",), ({"stress": 240.0}, None)),
        (BOTH, "json:std", ("stress",), ({"stress": 240.0}, None)),  # what is minimised is no noise
        (BOTH, "json:loss", ("std",), ({"std": 0.1}, None)),
        (BOTH, "json:loss", ("stress", "mass"), "the key 'mass'"),
        (BOTH.replace("240", "NaN"), "json:loss", ("stress",), "the constraint 'stress': value was nan"),
        (BOTH.replace("240", '"high"'), "json:loss", ("stress",), "the constraint 'stress' must be a single real"),
        (BOTH.replace("0.1", "-1"), "json:loss", ("stress",), "std must be a number from 0 up"),
    ],
)
def test_constraints_and_noise_from_output(output, where, constraints, expected):
    outcome = read_value(output, where, constraints)
    if isinstance(expected, str):
        assert outcome.value is None
        assert expected in outcome.reason
    elif isinstance(expected, tuple):
        assert outcome.value is not None
        assert (outcome.constraints, outcome.std) == expected
    else:
        assert outcome == expected


def test_a_parameter_that_does_not_exist_is_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("flap", "somebody else's")
    assert filled("--flap={flap} {a}", {"a": 1}) == "--flap= 1"
    write_program(tmp_path, 'echo "[$flap]" >&2; [ -z "${flap+x}" ] || exit 3; echo 1')
    sim = Program(("./sim",), "environment", "last-line", str(tmp_path), None, (), ("flap",))
    assert run_program(sim, job(a=0.5)).value == 1.0
    assert run_program(sim, job(a=0.5, flap=0.25)).reason == "exit code 3"


@pytest.mark.parametrize("value", [None, "x", 1j, [1.0], True])
def test_answers_that_are_no_numbers(value):
    assert "must return a " in result_of(value).reason


def test_exit_codes_and_signals_are_reasons_with_the_last_words(tmp_path):
    write_program(tmp_path, "seq 100 >&2; echo 'mesh is bad' >&2; echo 0.5; exit 3", "bad")
    outcome = run_program(program(tmp_path, "./bad"), job())
    assert (outcome.value, outcome.reason) == (None, "exit code 3")
    assert outcome.detail.splitlines() == [*map(str, range(92, 101)), "mesh is bad"]
    write_program(tmp_path, "kill -SEGV $$", "crash")
    assert run_program(program(tmp_path, "./crash"), job()).reason == "ended by signal 11 (SIGSEGV)"


def test_a_program_that_hangs_is_killed_with_its_children(tmp_path):
    write_program(tmp_path, "sleep 100 & echo $! > child; echo started >&2; sleep 100")
    outcome = run_program(program(tmp_path, "./sim", timeout=0.5), job())
    assert outcome == EvaluationResult(reason="took longer than timeout = 0.5 seconds", detail="started")
    child = int((tmp_path / "child").read_text())
    until(lambda: not is_running(child), 5)


def test_a_child_left_behind_does_not_keep_us_waiting(tmp_path):
    write_program(tmp_path, "sleep 30 & echo 4")
    assert run_program(program(tmp_path, "./sim", timeout=10.0), job()).value == 4.0


def test_programs_that_cannot_be_started(tmp_path):
    (tmp_path / "data").write_text("1")
    for name in ("./nothing", "./data", "no-such-program-anywhere", str(tmp_path)):
        with pytest.raises(StudyFileError, match="expected a program that can be run"):
            check_program(program(tmp_path, name))
        assert run_program(program(tmp_path, name), job()).reason.startswith("the program could not be started")
    assert "could not be started" in run_program(program(tmp_path, "echo", "{c}"), job(c="a\0b")).reason
    check_program(program(tmp_path, "sh"))


def test_stdin_is_json(tmp_path):
    write_program(tmp_path, "cat > seen; echo 1")
    run_program(program(tmp_path, "./sim", parameters="stdin"), job(a=0.5, c="ä"))
    assert json.loads("\n".join(lines_of(tmp_path / "seen"))) == {"a": 0.5, "c": "ä"}
