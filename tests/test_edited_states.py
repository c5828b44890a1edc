"""Saved states that people edited: refused with a StateError, at once or when they are used, or good to go on with."""

import copy
import functools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from saved import forgotten, latest_state

from sumbo import Categorical, Float, Int, Optimizer
from sumbo.errors import StateError

SPACE = {"a": Float(0, 1), "b": Float(1e-3, 1, log=True), "n": Int(1, 8), "c": Categorical(["u", "v"])}
METHODS = ["auto", "add-gp-ucb", "cyclic-groups", "seq-groups", "rembo", "direct"]


def go_on(opt, count):
    for _ in range(count):
        trial = opt.ask()
        opt.tell(trial, float(trial.x.sum()))


@functools.cache
def saved(method, told=11):
    """What a run left: with a model, where that many were told, and a point that runs."""
    opt = Optimizer(SPACE, method, seed=0, budget=24)
    go_on(opt, told)
    opt.ask()
    return json.dumps(opt.to_dict())


def nested(depth):
    text = "[" * depth + "]" * depth
    return json.loads(text)


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 30),
    st.sampled_from([10**400, 1e300, 0.5, -0.5, 1e-300]),
    st.sampled_from(["", "x", "auto", "done"]),
    st.sampled_from([[], [1], [[0, 1], [2]], [0.5] * 4, {}, {"a": 1}]),
    st.sampled_from([30, 500]).map(nested),
)


def places(data, path=()):
    """The paths to all that is in there."""
    pairs = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, part in pairs:
        yield (*path, key)
        yield from places(part, (*path, key))


@st.composite
def edits(draw):
    method = draw(st.sampled_from(METHODS))
    data = json.loads(saved(method))
    for _ in range(draw(st.integers(1, 2))):
        # The method's own state half of the time: it is read last.
        inside = [path for path in places(data) if "method_state" in path or path[-1] == "metadata"]
        path = draw(st.sampled_from(inside if inside and draw(st.booleans()) else list(places(data))))
        whole = functools.reduce(lambda part, key: part[key], path[:-1], data)
        if draw(st.integers(0, 3)) == 0:
            del whole[path[-1]]
        else:
            whole[path[-1]] = copy.deepcopy(draw(JUNK))
    return data


@settings(max_examples=80, deadline=None, derandomize=True)
@given(edits())
def test_an_edited_state_is_refused_or_good(data):
    try:
        opt = Optimizer.from_dict(data)
        go_on(opt, 3)
        Optimizer.from_dict(opt.to_dict())
    except StateError:
        pass


@pytest.mark.parametrize("depth", [21, 100, 500, 900])
@pytest.mark.parametrize("place", ["method_state", "metadata", "space"])
def test_deep_nests_are_refused_with_advice(depth, place):
    data = json.loads(saved("cyclic-groups"))
    if place == "method_state":
        latest_state(data)["inner"] = nested(depth)
    elif place == "metadata":
        data["trials"][0]["metadata"] = nested(depth)
    else:
        data["space"] = nested(depth)
    with pytest.raises(StateError, match="nested more than 20 deep; give a state as"):
        Optimizer.from_dict(data)


def test_what_is_wrong_further_in_is_said_when_it_is_reached():
    data = json.loads(saved("cyclic-groups", told=2))
    latest_state(data)["inner"] = "x"
    opt = Optimizer.from_dict(data)
    opt.ask()  # as yet there are too few values for a model
    with pytest.raises(StateError, match='set each "method_state" to null, and it learns anew'):
        go_on(opt, 24)
    go_on(Optimizer.from_dict(forgotten(data)), 24)
