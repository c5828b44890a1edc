"""What counts as a value, what is said of evaluations that fail, and when a run is given up."""

import math
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from studies import command, says, write_program, write_study

import sumbo
from sumbo.errors import ObjectiveError, SettingError, TellError

BOX = [(0.0, 1.0)] * 2


def quiet(f, budget=40, space=BOX, **options):
    return sumbo.minimize(f, space, budget, **{"method": "random", "seed": 0, "progress": False, **options})


class Tensor:
    """As PyTorch's: an array that NumPy may not look into."""

    def __init__(self, *values):
        self._values = values

    def item(self):
        (value,) = self._values
        return value


class Eager:
    """As TensorFlow's: an array without item()."""

    def __init__(self, *values):
        self._values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self._values, dtype=dtype)


class Standard:
    """An array with no more than the standard of arrays asks for: neither item() nor __array__."""

    def __init__(self, value, shape=(), dtype="float64"):
        self.shape, self.dtype, self._value = shape, dtype, value

    def __getitem__(self, place):
        assert len(place) == len(self.shape)
        return Standard(self._value, (), self.dtype)

    def __float__(self):
        if self.shape:
            raise TypeError("only arrays without dimensions are numbers")
        return float(self._value)


class Refuses(float):
    def __float__(self):
        raise RuntimeError("not today")


# --- values ---------------------------------------------------------------------------------------------------------

NUMBERS = [
    np.array(0.25),
    np.array([0.25]),
    np.array([[0.25]], dtype=np.float32),
    np.array([Fraction(1, 4)]),
    np.ma.array([0.25]),
    np.longdouble(0.25),
    Tensor(0.25),
    Eager(0.25),
    pd.Series([0.25]),
    pd.DataFrame({"loss": [0.25]}),
    Decimal("0.25"),
    Fraction(1, 4),
    Standard(0.25),
    Standard(0.25, shape=(1, 1)),
    scipy.sparse.csr_array([[0.25]]),
]
NO_NUMBERS = [
    "0.25",
    (0.25,),
    [0.25],
    {"loss": 0.25},
    1j,
    True,
    np.array([True]),
    np.array(["0.25"]),
    np.zeros(2),
    np.zeros(0),
    np.timedelta64(5, "s"),
    np.ma.array([0.25, 0.5], mask=[True, False]),
    Tensor(0.25, 0.5),
    Tensor("0.25"),
    Eager(0.25, 0.5),
    pd.Series([0.25, 0.5]),
    pd.NA,
    Refuses(0.25),
    Standard(True, dtype="bool"),
    Standard(0.25, shape=(2,)),
    scipy.sparse.csr_array([[0.25, 0.5]]),
    object(),
]


def names(values):
    return [f"{type(value).__name__}-{i}" for i, value in enumerate(values)]


@pytest.mark.parametrize("value", NUMBERS, ids=names(NUMBERS))
def test_numbers_of_any_library(value):
    opt = sumbo.Optimizer(BOX, seed=0)
    opt.tell(opt.ask(), value)
    assert opt.best.value == 0.25
    assert quiet(lambda x: value, budget=1).value == 0.25


@pytest.mark.parametrize("value", NO_NUMBERS, ids=names(NO_NUMBERS))
def test_no_numbers(value):
    opt = sumbo.Optimizer(BOX, seed=0)
    trial = opt.ask()
    with pytest.raises(TellError, match=f"a value must be a single real number; got {type(value).__name__} "):
        opt.tell(trial, value)
    assert opt.trials[0].state == "running"
    calls = []
    wanted = f"the objective must return a single real number; got {type(value).__name__} "
    with pytest.raises(ObjectiveError, match=wanted):
        quiet(lambda x: [calls.append(x), value][1])
    assert len(calls) == 10


@pytest.mark.parametrize("value", [np.ma.masked, np.ma.array([0.25], mask=[True])])
def test_a_masked_value_is_a_failure(value):
    opt = sumbo.Optimizer(BOX, seed=0)
    opt.tell(opt.ask(), value)
    assert (opt.trials[0].state, opt.trials[0].value, opt.trials[0].reason) == ("failed", None, "value was masked")
    assert opt.best is None


# --- hopeless runs --------------------------------------------------------------------------------------------------


def bad_mesh(x):
    raise ValueError(f"bad mesh at {x[0]}")


def text_of(x):
    return f"{x[0]}"


@pytest.mark.parametrize("place", ["here", "processes", "threads"])
@pytest.mark.parametrize("f", [bad_mesh, text_of, lambda x: x, lambda x: {"loss": x[0]}])
def test_failures_of_one_kind_end_the_run_whatever_their_words(f, place):
    with ThreadPoolExecutor(1) as pool:
        options = {"here": {}, "processes": {"timeout": 60}, "threads": {"executor": pool}}[place]
        with pytest.raises(ObjectiveError, match="the first 10 evaluations all failed with errors like: "):
            quiet(f, **options)


@pytest.mark.parametrize("place", ["here", "threads"])
def test_the_line_that_failed_is_named_and_its_error_kept(place):
    with ThreadPoolExecutor(1) as pool, pytest.raises(ObjectiveError) as caught:
        quiet(bad_mesh, **({"executor": pool} if place == "threads" else {}))
    line = bad_mesh.__code__.co_firstlineno + 1
    assert f'{__file__}, line {line}, in bad_mesh: raise ValueError(f"bad mesh at {{x[0]}}")' in str(caught.value)
    assert isinstance(caught.value.__cause__, ValueError)
    assert caught.value.__cause__.__traceback__ is not None


def test_the_line_that_failed_in_another_process_is_named():
    with pytest.raises(ObjectiveError) as caught:
        quiet(bad_mesh, timeout=60)
    line = bad_mesh.__code__.co_firstlineno + 1
    assert f'File "{__file__}", line {line}, in bad_mesh' in str(caught.value)
    assert 'raise ValueError(f"bad mesh at {x[0]}")' in str(caught.value)


@pytest.mark.parametrize("kinds", ["types", "places", "values"])
def test_different_failures_are_a_hard_problem(kinds):
    calls = []

    def f(x):
        calls.append(x)
        if kinds == "types":
            raise (ValueError, ArithmeticError)[len(calls) % 2]("no")
        if kinds == "values":
            return ("no", None)[len(calls) % 2]
        if len(calls) % 2:
            raise ValueError("no")
        raise ValueError("no")

    with pytest.warns(RuntimeWarning, match="none of 15 evaluations succeeded; the last failed: "):
        result = quiet(f, budget=15)
    assert len(calls) == 15
    assert result.value is None


def test_what_worked_before_and_fails_alike_now_is_given_up():
    opt = quiet(lambda x: x[0], budget=5).optimizer
    with pytest.raises(ObjectiveError, match="the first 10 evaluations of this run all failed with errors like: "):
        opt.run(bad_mesh, 30, progress=False)
    assert len(opt.trials) == 15


def test_a_hard_problem_may_go_on_with_failures():
    opt = sumbo.Optimizer(BOX, method="random", seed=0)
    for k in range(12):
        opt.tell(opt.ask(), 1.0 if k == 0 else math.nan)
    assert len(opt.run(bad_mesh, 15, progress=False).trials) == 27


@pytest.mark.parametrize("value", [math.nan, math.inf, np.ma.masked])
def test_no_value_anywhere_is_a_hard_problem_of_which_one_is_told(value):
    with pytest.warns(RuntimeWarning, match="none of 15 evaluations succeeded; the last failed: value was ") as told:
        assert quiet(lambda x: value, budget=15).value is None
    assert told[0].filename == __file__


def test_a_run_that_found_something_says_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert quiet(lambda x: math.nan if x[0] < 0.5 else x[0], budget=15).value is not None


@pytest.mark.parametrize("callback", [[print], lambda: None, lambda trial: None, lambda a, b, c: None])
def test_a_callback_that_is_none_is_refused_before_an_evaluation_is_spent(callback):
    calls = []
    with pytest.raises(SettingError, match="callback must be a function of the optimizer and a trial, or None; got "):
        quiet(calls.append, callback=callback)
    assert calls == []


@pytest.mark.parametrize("callback", [print, lambda *both: None, lambda opt, trial, more=0: None, Mock()])
def test_callbacks_of_all_kinds(callback):
    assert len(quiet(lambda x: x[0], budget=2, callback=callback).trials) == 2


# --- the same by sumbo run ------------------------------------------------------------------------------------------

OBJECTIVES = """
import numpy as np
def mesh(params): raise ValueError(f"bad mesh at {params['a']}")
def pair(params): return params["a"], 1.0
def array(params): return np.array([params["a"]])
def nothing(params): return float("nan")
"""
SPACE = '[space.a]\ntype = "float"\nlow = 0.0\nhigh = 2.0\n'


def ran(folder, text, code):
    return says("run", write_study(folder, text, space=SPACE), code=code)


@pytest.mark.parametrize("name", ["mesh", "pair"])
def test_sumbo_run_gives_up_a_function_that_always_fails(name, tmp_path):
    (tmp_path / "objectives.py").write_text(OBJECTIVES)
    answer, _ = ran(tmp_path, f'objective = "objectives:{name}"\nbudget = 40', 3)
    assert "the first 10 evaluations all failed with errors like: " in answer["error"]
    if name == "mesh":
        assert "objectives.py" in answer["error"]
        assert """def mesh(params): raise ValueError(f"bad mesh at {params['a']}")""" in answer["error"]


def test_sumbo_run_gives_up_what_was_broken_since(tmp_path):
    (tmp_path / "objectives.py").write_text(OBJECTIVES)
    ran(tmp_path, 'objective = "objectives:array"\nbudget = 4', 0)
    answer, _ = ran(tmp_path, 'objective = "objectives:mesh"\nbudget = 40', 3)
    assert "the first 10 evaluations of this run all failed with errors like: " in answer["error"]


def test_sumbo_run_gives_up_a_program_that_never_prints_a_number(tmp_path):
    write_program(tmp_path, 'echo "it is $a"')
    text = 'command = ["./sim"]\nparameters = "environment"\nbudget = 40'
    answer, _ = ran(tmp_path, text, 3)
    assert "the last line of the output must be a number; got 'it is " in answer["error"]


def test_sumbo_run_takes_an_array_of_one(tmp_path):
    (tmp_path / "objectives.py").write_text(OBJECTIVES)
    answer, _ = ran(tmp_path, 'objective = "objectives:array"\nbudget = 3', 0)
    assert answer["value"] == answer["params"]["a"]


def test_sumbo_run_exits_with_3_when_nothing_succeeded(tmp_path):
    (tmp_path / "objectives.py").write_text(OBJECTIVES)
    answer, said = ran(tmp_path, 'objective = "objectives:nothing"\nbudget = 12', 3)
    assert answer["counts"]["failed"] == 12
    assert answer["exit_code"] == 3
    assert "none of 12 evaluations succeeded; the last failed: value was nan" in answer["error"]
    assert answer["error"] in said


def test_exit_code_3_is_explained():
    text = subprocess.run(command("--help"), capture_output=True, text=True, check=True).stdout
    assert "3 no evaluation succeeded" in text


# --- names ----------------------------------------------------------------------------------------------------------


def test_threads_are_at_hand_after_import_sumbo():
    code = "import sys, sumbo; sumbo.threads.use(2); print(sumbo.threads.count(), 'numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "False"]
