"""Space: round trips and other properties first, then every message it can raise."""

from __future__ import annotations

import copy
import json
import math
import pickle
import sys
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sumbo.errors import SpaceError
from sumbo.space import Categorical, Float, Int, Parameter, Space

thorough = settings(max_examples=150, deadline=None)

MIXED = Space(
    {
        "lr": Float(1e-5, 1e-1, log=True),
        "layers": Int(1, 8),
        "act": Categorical(["relu", "gelu", "tanh"]),
        "width": Int(1, 10**6, log=True),
        "angle": Float(-3, 5),
    }
)
POINT = {"lr": 1e-3, "layers": 3, "act": "gelu", "width": 512, "angle": 0.5}

unit = st.floats(0.0, 1.0) | st.floats(1e-20, 1e-3) | st.integers(0, 64).map(lambda i: 1.0 - i * 2.0**-53)
finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def floats(draw: st.DrawFn) -> Float:
    if draw(st.booleans()):
        low = 10.0 ** draw(st.floats(-20, 10))
        return Float(low, low * 10.0 ** draw(st.floats(1e-3, 30)), log=True)
    low, high = sorted((draw(finite), draw(finite)))
    assume(low < high)
    return Float(low, high)


@st.composite
def ints(draw: st.DrawFn) -> Int:
    log = draw(st.booleans())
    low = draw(st.integers(1, 10**6) if log else st.integers(-(10**15), 10**15))
    width = draw(st.integers(0, 100) | st.integers(0, 9 * 10**12 if log else 10**15))
    return Int(low, low + width, log=log)


scalars = st.text(max_size=5) | st.integers() | finite | st.booleans() | st.none()
categoricals = st.lists(scalars, min_size=1, max_size=8, unique_by=lambda c: c).map(Categorical)
parameters = floats() | ints() | categoricals
spaces = st.dictionaries(st.text(min_size=1, max_size=6), parameters, min_size=1, max_size=5).map(Space)


@st.composite
def spaces_with_points(draw: st.DrawFn) -> tuple[Space, np.ndarray]:
    space = draw(spaces)
    return space, np.array(draw(st.lists(unit, min_size=space.dim, max_size=space.dim)))


# Properties


@thorough
@given(spaces_with_points())
def test_params_survive_the_cube_and_the_array(case: tuple[Space, np.ndarray]) -> None:
    space, u = case
    params = space.from_unit(u)
    assert space.from_unit(space.to_unit(params)) == params
    assert space.from_array(space.array(params)) == params
    assert np.array_equal(space.array(params), space.array(space.from_array(space.array(params))))


@thorough
@given(spaces_with_points())
def test_snap_is_the_way_there_and_back(case: tuple[Space, np.ndarray]) -> None:
    space, u = case
    snapped, there_and_back = space.snap(u), space.to_unit(space.from_unit(u))
    discrete = space.levels > 0
    assert np.array_equal(snapped[discrete], there_and_back[discrete])
    assert np.array_equal(snapped[~discrete], u[~discrete])
    for i in np.flatnonzero(~discrete):
        parameter = space.parameters[i]
        assert abs(there_and_back[i] - u[i]) <= 1e-12 + _resolution(parameter)


def _resolution(parameter: Parameter) -> float:
    """How far apart in the cube neighbouring doubles of a range lie at most."""
    assert isinstance(parameter, Float)
    low, high = parameter.low, parameter.high
    if parameter.log:
        return 4 * sys.float_info.epsilon / math.log(high / low)
    return min(1.0, 4 * math.ulp(max(-low, high) / 2) / (high / 2 - low / 2 or 5e-324))


@thorough
@given(spaces_with_points())
def test_snap_is_idempotent_and_alike_for_one_and_many(case: tuple[Space, np.ndarray]) -> None:
    space, u = case
    once = space.snap(u)
    assert np.array_equal(space.snap(once), once)
    many = np.asfortranarray(np.stack([u, once, u[::-1], 1.0 - u, u]))
    assert np.array_equal(space.snap(many), [space.snap(row) for row in many])


@thorough
@given(spaces_with_points())
def test_many_points_are_encoded_as_each_alone(case: tuple[Space, np.ndarray]) -> None:
    space, u = case
    arrays = [space.array(space.from_unit(point)) for point in (u, u[::-1], 1.0 - u, u, 0.3 * u)]
    alone = [space.encode(x) for x in arrays]
    for many in (np.array(arrays), np.asfortranarray(arrays)):
        assert np.array_equal(space.encode(many), alone)
    assert [row.tobytes() for row in space.encode(np.array(arrays))] == [x.tobytes() for x in alone]


@thorough
@given(spaces_with_points(), st.floats(-5, 5))
def test_every_value_is_plain_and_within_its_range(case: tuple[Space, np.ndarray], shift: float) -> None:
    space, u = case
    for name, value in space.from_unit(u + shift).items():
        parameter = space[name]
        if isinstance(parameter, Categorical):
            assert any(value is choice for choice in parameter.choices)
        else:
            assert type(value) is (float if isinstance(parameter, Float) else int)
            assert parameter.low <= value <= parameter.high


@thorough
@given(spaces)
def test_corners_of_the_cube_are_the_ends(space: Space) -> None:
    for u, end in ((np.zeros(space.dim), 0), (np.ones(space.dim), -1)):
        for name, value in space.from_unit(u).items():
            p = space[name]
            ends = p.choices if isinstance(p, Categorical) else (p.low, p.high)
            assert value == ends[end]


@thorough
@given(ints(), st.data())
def test_every_integer_survives(parameter: Int, data: st.DataObject) -> None:
    space = Space({"n": parameter})
    ends = st.sampled_from([parameter.low, parameter.high, max(parameter.high - 1, parameter.low)])
    n = data.draw(ends | st.integers(parameter.low, parameter.high))
    assert space.from_unit(space.to_unit({"n": n})) == {"n": n}


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("high", [1, 2, 1000, 10**6, 10**13])
def test_long_integer_ranges_survive_at_their_crowded_end(high: int, log: bool) -> None:
    parameter = Int(1, high, log=log)
    values = np.unique(np.clip(np.arange(high - 5000, high + 1), 1, high)).astype(float)
    u = parameter._encode(values)
    assert np.array_equal(parameter._decode(u), values)
    assert np.all((u > 0) & (u < 1))
    assert values.size == 1 or np.all(np.diff(u) > 0)


def test_a_range_of_a_thousand_million_million_integers_survives() -> None:
    space = Space({"n": Int(1, 10**15)})
    for n in (1, 2, 10**14 + 7, 5 * 10**14, 10**15 - 1, 10**15):
        assert space.from_unit(space.to_unit({"n": n})) == {"n": n}


@thorough
@given(spaces)
def test_json_keeps_the_space(space: Space) -> None:
    again = Space.from_dict(json.loads(json.dumps(space.to_dict(), allow_nan=False)))
    assert again == space
    assert hash(again) == hash(space)
    assert again.names == space.names
    assert repr(again) == repr(space)


@thorough
@given(spaces_with_points())
def test_inputs_are_not_mutated(case: tuple[Space, np.ndarray]) -> None:
    space, u = case
    u.setflags(write=False)
    params = space.from_unit(u)
    before = copy.deepcopy(params)
    space.snap(u)
    space.to_unit(params)
    space.from_array(space.array(params))
    assert params == before


@thorough
@given(st.floats(-2.0, 2.0))
def test_user_floats_come_back_within_rounding(value: float) -> None:
    space = Space({"x": Float(-2, 2)})
    back = space.from_unit(space.to_unit({"x": value}))["x"]
    assert isinstance(back, float)
    assert abs(back - value) <= 4 * sys.float_info.epsilon


@pytest.mark.parametrize("value", [0.1, 0.2, 0.3, 0.7, 1.1, 3.3, 9.9])
def test_common_floats_come_back_exactly(value: float) -> None:
    space = Space.from_bounds([(0, 10)])
    assert space.from_unit(space.to_unit({"x0": value})) == {"x0": value}


# Examples


def test_encoding_follows_the_formulas() -> None:
    u = MIXED.to_unit(POINT)
    edges = math.log(1e6 + 0.5) - math.log(0.5)
    assert u == pytest.approx([0.5, 2.5 / 8, 0.5, math.log(512 / 0.5) / edges, 3.5 / 8], abs=1e-14)
    assert np.array_equal(MIXED.array(POINT), [1e-3, 3, 1, 512, 0.5])


def test_attributes() -> None:
    assert MIXED.names == tuple(MIXED) == ("lr", "layers", "act", "width", "angle")
    assert len(MIXED) == MIXED.dim == 5
    assert MIXED["layers"] == MIXED.parameters[1] == Int(1, 8)
    assert "act" in MIXED
    assert "none" not in MIXED
    assert MIXED.nominal.tolist() == [False, False, True, False, False]
    assert MIXED.nominal.dtype == bool
    assert MIXED.levels.tolist() == [0, 8, 3, 10**6, 0]
    assert MIXED.size is None
    huge = Space({f"n{i}": Int(0, 9) for i in range(40)})
    assert huge.size == 10**40
    assert repr(Space({"a": Int(1, 2)})) == "Space({'a': Int(low=1, high=2, log=False)})"
    assert pickle.loads(pickle.dumps(MIXED)) == MIXED
    assert Space.from_dict(MIXED.to_dict()) != Space.from_bounds([(0, 1)])


def test_saved_form() -> None:
    space = Space({"a": Float(0, 1), "c": Categorical(("x", None))})
    assert space.to_dict() == {
        "params": [
            {"name": "a", "type": "float", "low": 0.0, "high": 1.0, "log": False},
            {"name": "c", "type": "categorical", "choices": ["x", None]},
        ]
    }
    assert Space.from_dict({"params": [{"name": "n", "type": "int", "low": 1, "high": 2}]})["n"] == Int(1, 2)


def test_everything_is_immutable() -> None:
    with pytest.raises(FrozenInstanceError):
        MIXED.names = ("a",)  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        Float(0, 1).low = 3.0  # type: ignore[misc]
    choices = ["a", "b"]
    parameter = Categorical(choices)
    choices.append("c")
    assert parameter.choices == ("a", "b")
    with pytest.raises(TypeError):
        Float(0, 1, True)  # type: ignore[misc]


def test_numpy_scalars_become_plain() -> None:
    parameter = Float(np.float32(0.5), np.int64(2))
    assert (type(parameter.low), type(parameter.high)) == (float, float)
    whole = Int(np.int8(1), np.float64(4.0))  # type: ignore[arg-type]
    assert (whole, type(whole.low), type(whole.high)) == (Int(1, 4), int, int)
    choices = Categorical([np.str_("a"), np.float64(0.5), np.int64(3), np.bool_(False)]).choices
    assert [type(c) for c in choices] == [str, float, int, bool]
    params = {"lr": np.float32(0.01), "layers": np.float64(3.0), "act": np.str_("tanh"), "width": np.int64(7)}
    assert MIXED.array({**params, "angle": 1})[1:].tolist() == [3, 2, 7, 1]
    assert math.copysign(1, Float(-0.0, 1).low) == 1


def test_bounds_of_any_usual_form() -> None:
    expected = Space({"x0": Float(0, 1), "x1": Float(-2, 3)})
    for bounds in (
        [(0, 1), (-2, 3)],
        ((0, 1), [-2, 3]),
        np.array([[0, 1], [-2, 3]]),
        [np.array([0, 1]), (-2, 3)],
    ):
        assert Space.from_bounds(bounds) == Space.coerce(bounds) == expected
    assert Space.coerce(expected) is expected
    assert Space.coerce({"x0": Float(0, 1), "x1": Float(-2, 3)}) == expected


def test_ranges_at_the_edge_of_the_doubles() -> None:
    top = sys.float_info.max
    wide = Space({"x": Float(-top, top), "y": Float(sys.float_info.min, top, log=True), "z": Float(0, 5e-324)})
    assert wide.from_unit([0.5, 1.0, 0.9]) == {"x": 0.0, "y": top, "z": 5e-324}
    for u in np.random.default_rng(0).random((200, 3)):
        params = wide.from_unit(u)
        assert wide.from_unit(wide.to_unit(params)) == params


def test_small_and_large_choices() -> None:
    one = Space({"c": Categorical([None]), "n": Int(4, 4), "m": Int(4, 4, log=True)})
    assert one.size == 1
    for u in (0.0, 0.3, 1.0):
        assert one.from_unit([u, u, u]) == {"c": None, "n": 4, "m": 4}
    many = Space({"c": Categorical([f"c{i}" for i in range(500)])})
    assert all(many.from_unit(many.to_unit({"c": c})) == {"c": c} for c in (f"c{i}" for i in range(500)))


def test_equal_looking_choices_are_told_apart() -> None:
    assert Categorical([0, 1]) != Categorical([False, True])
    assert Categorical([0, 1]) != Categorical([0.0, 1.0])
    assert Categorical([0, 1]) != (0, 1)
    assert Space({"c": Categorical(["a", 1])}).array({"c": 1.0}).tolist() == [1.0]


def test_snap_takes_no_points_and_clips() -> None:
    assert MIXED.snap(np.empty((0, 5))).shape == (0, 5)
    assert MIXED.snap([-1.0, 2.0, 0.4, 0.0, 1.5])[[0, 4]].tolist() == [0.0, 1.0]


# Errors


@pytest.mark.parametrize("kind", [Float, Int])
@pytest.mark.parametrize("bad", [math.nan, math.inf, True, "1", 1j, None, np.bool_(True), [1], 10**400])
def test_bounds_that_are_no_numbers(kind: Any, bad: object) -> None:
    for bounds in ((bad, 2), (0, bad)):
        with pytest.raises(SpaceError, match=rf"{kind.__name__}\(.*\): bounds must be finite numbers; give"):
            kind(*bounds)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Float(0, 10**5000), r"Float\(0, a very long int\): bounds must be"),
        (lambda: Float(1, 0), r"Float\(1, 0\): low must not be above high; swap"),
        (lambda: Int(1, 0), r"Int\(1, 0\): low must not be above high; swap"),
        (lambda: Float(0, 1, step=2), r"Float\(0, 1\): step 2 is larger than the range; widen"),
        (lambda: Float(0, 1, step=0), r"Float\(0, 1\): step must be a number above 0, got 0; say"),
        (lambda: Int(0, 9, step=0.5), r"Int\(0, 9\): step must be a whole number, got 0.5; round it, or use Float"),
        (lambda: Float(1, 9, step=1, log=True), r"Float\(1, 9\): step and log=True do not go together; .* Ordinal"),
        (lambda: Float(0, 1, log=True), r"Float\(0, 1\): log=True needs low > 0 .*; raise low"),
        (lambda: Int(-1, 1, log=True), r"Int\(-1, 1\): log=True needs low > 0 .*; raise low"),
        (lambda: Float(1, 2, log="yes"), r"log must be True or False, got 'yes'"),  # type: ignore[arg-type]
        (lambda: Int(0.5, 2), r"Int\(0.5, 2\): bounds must be whole numbers; round"),  # type: ignore[arg-type]
        (lambda: Int(0, 2**50), r"at most 2\*\*50 values .* use Float and round"),
        (lambda: Int(2**60, 2**60 + 1), r"at most 2\*\*50 values within \+-2\*\*53"),
        (lambda: Int(1, 10**15, log=True), r"with log=True .* up to 10\*\*13; use Float"),
        (lambda: Categorical([]), r"expected a list of one or more choices, got \[\]"),
        (lambda: Categorical("abc"), r"expected a list of one or more choices, got 'abc'"),
        (
            lambda: Categorical([1, "a", True]),
            r"choices must differ, got 1 and True; drop one or use strings",
        ),
        (lambda: Categorical([0.0, 0]), r"choices must differ, got 0.0 and 0"),
        (lambda: Categorical(["a", "a"]), r"choices must differ, got 'a' and 'a'"),
        (lambda: Categorical([math.nan]), r"a choice must be .* got nan; use a string"),
        (lambda: Categorical([math.inf]), r"a choice must be .* got inf; use a string"),
        (lambda: Categorical([(1, 2)]), r"a choice must be .* got \(1, 2\); use a string"),  # type: ignore[list-item]
        (lambda: Space({}), r"Space: expected a dict such as .* got \{\}"),
        (lambda: Space([Float(0, 1)]), r"Space: expected a dict such as"),  # type: ignore[arg-type]
        (lambda: Space({"": Float(0, 1)}), r"names must be non-empty strings, got ''; rename"),
        (lambda: Space({3: Float(0, 1)}), r"names must be non-empty strings, got 3"),  # type: ignore[dict-item]
        (
            lambda: Space({"a": (0, 1)}),
            r"parameter 'a': expected a Float, Int, Ordinal or Cat.* got \(0, 1\) \(tuple\); write",
        ),  # type: ignore[dict-item]
        (lambda: MIXED["layer"], r"no parameter 'layer' \(did you mean 'layers'\?\); the space has \['lr', "),
    ],
)
def test_spaces_that_cannot_be(make: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        make()


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ([], r"bounds: expected a list of \(low, high\) pairs, got \[\]"),
        ("ab", r"bounds: expected a list of \(low, high\) pairs, got 'ab'"),
        (None, r"bounds: expected a list of \(low, high\) pairs, got None"),
        (np.array(3.0), r"bounds: expected a list of \(low, high\) pairs"),
        ((0, 1), r"bounds\[0\]: expected a \(low, high\) pair .* got 0"),
        ([(0, 1), (0, 1, 2)], r"bounds\[1\]: expected a \(low, high\) pair .* got \(0, 1, 2\)"),
        (np.zeros((2, 5)), r"bounds\[0\]: expected a \(low, high\) pair \(or a row of a \(D, 2\) array\)"),
        ([(0, 1), (3, 2)], r"bounds\[1\]: Float\(3, 2\): low must not be above high"),
        ([(0, 1), (0, "b")], r"bounds\[1\]: Float\(0, 'b'\): bounds must be finite numbers"),
    ],
)
def test_bounds_that_make_no_space(bounds: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        Space.coerce(bounds)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"lr": "a"},
            r"parameter 'lr': expected a number from 1e-05 to 0.1, got 'a' \(str\); give a plain number",
        ),
        ({"lr": True}, r"parameter 'lr': expected a number .* got True \(bool\)"),
        ({"lr": math.nan}, r"parameter 'lr': expected a number .* got nan \(float\)"),
        ({"lr": math.inf}, r"parameter 'lr': expected a number .* got inf"),
        ({"lr": None}, r"parameter 'lr': expected a number .* got None"),
        ({"lr": 10**5000}, r"parameter 'lr': expected a number .* got a very long int"),
        (
            {"lr": 0.2},
            r"parameter 'lr': expected a number from 1e-05 to 0.1, got 0.2 \(float\); move it inside",
        ),
        (
            {"layers": 2.5},
            r"parameter 'layers': expected a whole number from 1 to 8, got 2.5 \(float\); round it",
        ),
        (
            {"layers": 9},
            r"parameter 'layers': expected a whole number from 1 to 8, got 9 \(int\); move it inside",
        ),
        ({"layers": np.bool_(True)}, r"parameter 'layers': expected a whole number"),
        (
            {"act": "rellu"},
            r"expected one of \['relu', 'gelu', 'tanh'\], got 'rellu' \(str\); did you mean 'relu'\?",
        ),
        ({"act": 7}, r"'act': expected one of .* got 7 \(int\); give a choice as it was written"),
        ({"act": np.zeros(2)}, r"'act': expected one of .* \(ndarray\)"),
        ({"lrr": 1, "foo": 2}, r"unknown 'lrr' \(did you mean 'lr'\?\), unknown 'foo'; give exactly \['lr'"),
        ({3: 1}, r"params: unknown 3; give exactly"),
    ],
)
def test_params_that_do_not_fit(change: dict[Any, object], message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        MIXED.to_unit({**POINT, **change})


def test_missing_params_are_all_named() -> None:
    with pytest.raises(SpaceError, match=r"params: unknown 'layer' .*, missing 'layers', missing 'width'; give"):
        MIXED.to_unit({"lr": 1e-3, "act": "relu", "angle": 0, "layer": 2})
    with pytest.raises(SpaceError, match=r"params: expected a dict of \['lr', .* got \[1, 2\]"):
        MIXED.to_unit([1, 2])  # type: ignore[arg-type]


def test_choices_of_another_type_are_refused() -> None:
    space = Space({"c": Categorical([1, "b"]), "d": Categorical([f"c{i}" for i in range(500)])})
    with pytest.raises(SpaceError, match=r"parameter 'c': expected one of \[1, 'b'\], got True \(bool\)"):
        space.array({"c": True, "d": "c1"})
    with pytest.raises(SpaceError, match=r"got '1' \(str\); did you mean 1\?"):
        space.array({"c": "1", "d": "c1"})
    with pytest.raises(SpaceError, match=r"'c9', \.\.\. 490 more\]"):
        space.array({"c": 1, "d": "zzz"})


@pytest.mark.parametrize("method", ["from_unit", "from_array", "snap"])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([0.5] * 4, r"point: expected an array of numbers of shape \(5,\).*, got shape \(4,\)"),
        (0.5, r"got shape \(\)"),
        (np.zeros((2, 2, 5)), r"got shape \(2, 2, 5\)"),
        ([[0.5], [0.5, 0.5]], r"got \[\[0.5\], \[0.5, 0.5\]\]"),
        (["a"] * 5, r"got \['a', "),
        ([1j] * 5, r"got \[1j, "),
        ([True] * 5, r"got \[True, "),
        (None, r"got None"),
        ([0.5, math.nan, 0.5, 0.5, math.inf], r"got NaN, infinity or a mask in \['layers', 'angle'\]; correct it"),
        (np.ma.array([0.5] * 5, mask=[0, 0, 1, 0, 0]), r"got NaN, infinity or a mask in \['\w+'\]; correct it"),
    ],
)
def test_points_that_are_no_points(method: str, bad: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        getattr(MIXED, method)(bad)


def test_from_unit_takes_one_point_and_snap_says_it_takes_many() -> None:
    with pytest.raises(SpaceError, match=r"of shape \(5,\), got shape \(1, 5\)"):
        MIXED.from_unit(np.zeros((1, 5)))
    with pytest.raises(SpaceError, match=r"of shape \(5,\) or \(n, 5\), got shape \(1, 4\)"):
        MIXED.snap(np.zeros((1, 4)))


@pytest.mark.parametrize(
    ("i", "value", "message"),
    [
        (0, 1.0, r"parameter 'lr': expected a number from 1e-05 to 0.1, got 1.0"),
        (1, 2.5, r"parameter 'layers': expected a whole number from 1 to 8, got 2.5"),
        (2, 3.0, r"parameter 'act': expected a whole number from 0 to 2, got 3.0"),
        (2, 0.5, r"parameter 'act': expected a whole number from 0 to 2, got 0.5"),
    ],
)
def test_arrays_out_of_range(i: int, value: float, message: str) -> None:
    x = MIXED.array(POINT)
    x[i] = value
    with pytest.raises(SpaceError, match=message):
        MIXED.from_array(x)


ENTRY = {"name": "a", "type": "float", "low": 0, "high": 1, "log": False}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, r"saved space: expected .* got None"),
        ([], r"saved space: expected .* got \[\]"),
        ({}, r"saved space: expected .* got \{\}"),
        ({"params": []}, r"saved space: expected .* with an entry"),
        ({"params": {"a": 1}}, r"saved space: expected"),
        ({"params": [ENTRY, 3]}, r"params\[1\]: expected a dict, got 3"),
        (
            {"params": [{**ENTRY, "name": ["a"]}]},
            r"""params\[0\]: expected a non-empty string as "name", got \['a'\]""",
        ),
        (
            {"params": [{"type": "float"}]},
            r"""params\[0\]: expected a non-empty string as "name", got None""",
        ),
        (
            {"params": [{**ENTRY, "type": "real"}]},
            r"""expected one of \['float', .*\] as "type", got 'real'""",
        ),
        ({"params": [{**ENTRY, "type": []}]}, r"""expected one of \['float', .*\] as "type", got \[\]"""),
        (
            {"params": [{"name": "a", "type": "int"}]},
            r"params\[0\] \('a'\): missing 'low', missing 'high'; the keys of int",
        ),
        ({"params": [{"name": "a", "type": "categorical"}]}, r"missing 'choices'; the keys of cat"),
        (
            {"params": [{**ENTRY, "logg": True}]},
            r"unknown 'logg' \(did you mean 'log'\?\); the keys of float",
        ),
        ({"params": [{**ENTRY, 3: True}]}, r"unknown 3; the keys of float"),
        ({"params": [{**ENTRY, "low": "x"}]}, r"params\[0\] \('a'\): Float\('x', 1\): bounds must be finite"),
        ({"params": [{**ENTRY, "log": 1}]}, r"params\[0\] \('a'\): .* log must be True or False, got 1"),
        ({"params": [ENTRY, ENTRY]}, r"params\[1\]: the name 'a' is taken; rename one"),
    ],
)
def test_saved_spaces_that_cannot_be_read(data: object, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        Space.from_dict(data)
