"""Known constraints as the user states them: what they say, how they are saved and read, every refusal."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import pickle
import warnings
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sumbo.errors import SpaceError
from sumbo.space import Categorical, Float, Int, Space
from sumbo.space.constraints import Known, Linear, SumTo, check_constraints, from_dict, parse_linear

NAMES = ["a", "b", "c", "x y", "lambda", "µ"]
numbers = st.floats(-1e6, 1e6).map(lambda x: x + 0.0)


@st.composite
def linears(draw: st.DrawFn) -> Linear:
    some = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    coefficients = {name: draw(numbers.filter(bool)) for name in some}
    bounds = sorted([draw(numbers), draw(numbers)])
    side = draw(st.sampled_from(["lower", "upper", "both", "equal"]))
    lower = bounds[0] if side != "upper" else None
    upper = {"lower": None, "equal": bounds[0]}.get(side, bounds[1])
    return Linear(coefficients, lower=lower, upper=upper, name=draw(st.none() | st.just("n")))


@settings(deadline=None)
@given(linears())
def test_linear_survives_json_copies_and_its_own_text(linear: Linear) -> None:
    assert from_dict(json.loads(json.dumps(linear.to_dict()))) == linear
    for twin in (pickle.loads(pickle.dumps(linear)), copy.deepcopy(linear), copy.copy(linear)):
        assert twin == linear
        assert hash(twin) == hash(linear)
    read = parse_linear(str(linear), NAMES)
    assert (read.coefficients, read.lower, read.upper) == (linear.coefficients, linear.lower, linear.upper)


def test_linear_is_frozen_and_keeps_its_own_coefficients() -> None:
    given_ = {"a": 1, "b": np.float64(2)}
    linear = Linear(given_, upper=np.int64(3))
    given_["a"] = 5
    assert linear == Linear({"a": 1.0, "b": 2.0}, upper=3.0)
    assert repr(linear) == "Linear(coefficients={'a': 1.0, 'b': 2.0}, lower=None, upper=3.0, name=None)"
    with pytest.raises(FrozenInstanceError):
        linear.upper = 1.0  # type: ignore[misc]
    with pytest.raises(TypeError, match="make another"):
        linear.coefficients["a"] = 3.0  # type: ignore[index]


def test_sum_to_is_an_equality() -> None:
    mixture = SumTo(["a", "b", "c"], 1)
    assert mixture == Linear({"a": 1, "b": 1, "c": 1}, lower=1, upper=1)
    assert mixture.equality
    assert not Linear({"a": 1}, lower=1).equality
    assert str(mixture) == "a + b + c == 1"
    assert SumTo(("a",), 0.5, name="share").name == "share"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Linear({}, upper=1), "with an entry"),
        (lambda: Linear(["a"], upper=1), "expected a dict"),  # type: ignore[arg-type]
        (lambda: Linear({"": 1}, upper=1), "non-empty"),
        (lambda: Linear({1: 1}, upper=1), "non-empty"),  # type: ignore[dict-item]
        (lambda: Linear({"a": math.nan}, upper=1), "coefficient of 'a' must be a finite"),
        (lambda: Linear({"a": "1"}, upper=1), "finite"),  # type: ignore[dict-item]
        (lambda: Linear({"a": True}, upper=1), "finite"),
        (lambda: Linear({"a": 0, "b": 0.0}, upper=1), "are 0"),
        (lambda: Linear({"a": 1}), "neither lower nor upper"),
        (lambda: Linear({"a": 1}, lower=math.inf), "lower must be a finite"),
        (lambda: Linear({"a": 1}, lower=2, upper=1), "swap"),
        (lambda: Linear({"a": 1}, lower=2, name=""), "name must be"),
        (lambda: SumTo("ab", 1), "expected a list of names"),
        (lambda: SumTo([], 1), "expected a list of names"),
        (lambda: SumTo(["a", "a"], 1), "different names"),
        (lambda: SumTo(["a"], math.nan), "total must be"),
        (lambda: Known(3, name="k"), "expected a function"),  # type: ignore[arg-type]
        (lambda: Known(len, name=""), "non-empty string"),
        (lambda: from_dict({"type": "linear"}), "the keys of linear"),
        (lambda: from_dict({"type": "linear", "coefficients": {"a": 1}, "up": 1}), "the keys of linear"),
        (lambda: from_dict({"type": "cone"}), "linear or known"),
        (lambda: from_dict([]), "linear or known"),
        (lambda: from_dict({"type": "known", "name": "heat"}), "function of the known constraint 'heat'"),
        (lambda: from_dict({"type": "known", "name": []}, {"heat": len}), "function of the known constraint"),
    ],
)
def test_refusals(make: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        make()


def test_known_names_itself_and_the_params_when_it_fails() -> None:
    def bad(params: dict[str, Any]) -> float:
        params["a"] = 9  # its own copy
        return 1 / params["b"]

    params = {"a": 1.0, "b": 0.0}
    with pytest.raises(SpaceError, match=r"'heat' at \{'a': 1.0, 'b': 0.0\}.*ZeroDivisionError") as caught:
        Known(bad, name="heat")(params)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert params == {"a": 1.0, "b": 0.0}
    for answer in (math.nan, None, "x", [1, 2]):
        with pytest.raises(SpaceError, match=r"'k' at .*expected a number"):
            Known(lambda _, answer=answer: answer, name="k")(params)
    assert Known(lambda p: np.float64(2), name="k")(params) == 2.0
    known = Known(bad, name="heat")
    assert known.to_dict() == {"type": "known", "name": "heat"}
    assert from_dict(known.to_dict(), {"heat": bad}) == known


def test_constraints_must_fit_the_space() -> None:
    space = Space({"alpha": Float(0, 1), "n": Int(1, 3), "kind": Categorical([1, 2]), "wide": Float(-1e308, 1e308)})
    fine = [Linear({"alpha": 1, "n": 2}, upper=3), Known(lambda p: 0.0, name="k")]
    assert check_constraints(space, fine) == tuple(fine)
    for wrong, message in [
        (Linear({"alhpa": 1}, upper=1), "did you mean 'alpha'"),
        (Linear({"kind": 1}, upper=1), "'kind', which is Categorical; use Known"),
        (Linear({"wide": 10}, upper=1), "overflow"),
        (fine[1], "two Known are named 'k'"),
        ("alpha <= 1", "expected Linear, SumTo or Known"),
    ]:
        with pytest.raises(SpaceError, match=message):
            check_constraints(space, [*fine, wrong])


@pytest.mark.parametrize(
    ("text", "linear"),
    [
        ("a + 2*b <= 1", Linear({"a": 1, "b": 2}, upper=1)),
        ("3 >= 2*(a - b) + 0.5*c", Linear({"a": 2, "b": -2, "c": 0.5}, upper=3)),
        ("a + b + c == 1", SumTo(["a", "b", "c"], 1)),
        ("a + b + c = 1", SumTo(["a", "b", "c"], 1)),
        ("0 <= a/2 - 1 <= 1", Linear({"a": 0.5}, lower=1, upper=2)),
        ("1 >= -a >= -2", Linear({"a": -1}, lower=-2, upper=1)),
        ("2*a + 1 <= b + 3", Linear({"a": 2, "b": -1}, upper=2)),
        ("a\n + +b\t>= 1e-3", Linear({"a": 1, "b": 1}, lower=1e-3)),
        ("`x y` - `lambda`*3 <= 0", Linear({"x y": 1, "lambda": -3}, upper=0)),
        ("µ <= 1", Linear({"µ": 1}, upper=1)),
        ("a + b - b <= 1", Linear({"a": 1}, upper=1)),
    ],
)
def test_text_is_read(text: str, linear: Linear) -> None:
    assert parse_linear(text, NAMES) == linear


def test_a_sum_of_hundreds_is_read() -> None:
    names = [f"p{i}" for i in range(400)]
    assert parse_linear(" + ".join(names) + " == 1", names) == SumTo(names, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a*b <= 1", "not linear"),
        ("a**2 <= 1", "only names"),
        ("__import__('os').system('true') <= 1", "only names"),
        ("a.real <= 1", "only names"),
        ("abs(a) <= 1", "only names"),
        ("a[0] <= 1", "only names"),
        ("'a' <= 1", "finite number"),
        ("a <= True", "finite number"),
        ("1e400*a <= 1", "finite number"),
        ("a <= 1e308*10", "finite number"),
        ("aa <= 1", "did you mean 'a'"),
        ("zebra <= 1", "the space has"),
        ("a + b", "expected a comparison"),
        ("1 <= 2", "no parameter left"),
        ("a - a <= 2", "no parameter left"),
        ("a < 1", "compare with"),
        ("a != 1", "compare with"),
        ("a <= b <= c", "low <= expression <= high"),
        ("0 <= a >= 1", "low <= expression <= high"),
        ("0 <= a <= 1 <= 2", "low <= expression <= high"),
        ("1 == a == 1", "low <= expression <= high"),
        ("2 <= a <= 1", "swap"),
        ("a / 0 <= 1", "division"),
        ("1 / a <= 1", "division"),
        ("x y <= 1", "cannot be read"),
        ("a := 1", "cannot be read"),
        ("", "cannot be read"),
        ("\0", "cannot be read"),
        ("(" * 5000 + "a" + ")" * 5000 + "<= 1", "condition"),
        ("-" * 9000 + "a <= 1", "too deep or large"),
        ("a <= 1" + " " * 20_000, "characters"),
        (None, "expected text"),
    ],
)
def test_text_is_refused(text: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        parse_linear(text, NAMES)


pieces = st.sampled_from(
    [*NAMES, "`x y`", "`", *"+-*/()<>=.,[]:1", "<=", "==", ">=", " ", "2.5", "1e999", "**", "if", "\n"]
)


@settings(max_examples=400, deadline=None)
@given(st.text(max_size=40) | st.lists(pieces, max_size=15).map("".join))
def test_any_text_gives_a_linear_or_a_space_error(text: str) -> None:
    with warnings.catch_warnings(action="error"), contextlib.suppress(SpaceError):
        assert set(parse_linear(text, NAMES).coefficients) <= set(NAMES)
