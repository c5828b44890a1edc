"""Bad input gets a clear error and loses nothing: the checklist, from the user's side."""

import json
import math

import numpy as np
import pytest

import sumbo

GOOD = {"lr": 1e-3, "layers": 2, "act": "relu"}


def study():
    """A search under way: told, failed, observed and running trials."""
    space = sumbo.Space(
        {
            "lr": sumbo.Float(1e-5, 1e-1, log=True),
            "layers": sumbo.Int(1, 8),
            "act": sumbo.Categorical(["relu", "gelu"]),
        }
    )
    opt = sumbo.Optimizer(space, seed=0)
    for i in range(4):
        opt.tell(opt.ask(), float(i))
    opt.tell(opt.ask(), failed=True)
    opt.observe(GOOD, 0.7)
    opt.ask()
    return opt


def helpful(error, *words):
    """A sumbo error that is a ValueError or RuntimeError too, and whose message has the words."""
    text = str(error)
    assert isinstance(error, sumbo.SumboError)
    assert isinstance(error, ValueError | RuntimeError)
    assert len(text) > 15
    for word in words:
        assert word in text


# --- spaces -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (1.0, 0.0, "swap"),
        (0.0, math.inf, "finite"),
        (-math.inf, 0.0, "finite"),
        (math.nan, 1.0, "finite"),
        (0.0, math.nan, "finite"),
        ("0", 1.0, "finite"),
        (None, 1.0, "finite"),
        (0.0, 1j, "finite"),
        (0.0, 10**400, "finite"),
    ],
)
def test_bounds(low, high, word):
    evaluated = []
    for attempt in (
        lambda: sumbo.Float(low, high),
        lambda: sumbo.minimize(evaluated.append, [(0.0, 1.0), (low, high)], 10, progress=False),
        lambda: sumbo.Optimizer([(low, high)]),
    ):
        with pytest.raises(sumbo.SumboError) as caught:
            attempt()
        helpful(caught.value, word)
    assert not evaluated


def test_bounds_say_which_dimension():
    with pytest.raises(sumbo.SumboError) as caught:
        sumbo.Optimizer([(0.0, 1.0), (0.0, 1.0), (5.0, 2.0)])
    helpful(caught.value, "bounds[2]", "swap")


def test_log_bounds():
    with pytest.raises(sumbo.SumboError) as caught:
        sumbo.Float(0.0, 1.0, log=True)
    helpful(caught.value, "low > 0")


@pytest.mark.parametrize(
    ("params", "word"),
    [
        ({**GOOD, "momentum": 0.9}, "momentum"),
        ({**GOOD, "layer": 1}, "did you mean 'layers'"),
        ({"lr": 1e-3, "layers": 2}, "act"),
        ({**GOOD, "act": "rilu"}, "did you mean 'relu'"),
        ({**GOOD, "layers": 99}, "from 1 to 8"),
        ({**GOOD, "lr": 0.0}, "from 1e-05 to 0.1"),
        ({**GOOD, "lr": math.nan}, "nan"),
        ({**GOOD, "lr": [1e-3]}, "list"),
    ],
)
def test_points_outside_the_space(params, word):
    opt = study()
    before = json.dumps(opt.to_dict())
    with pytest.raises(sumbo.SumboError) as caught:
        opt.observe(params, 1.0)
    helpful(caught.value, word)
    assert json.dumps(opt.to_dict()) == before


# --- groups, settings ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "word"),
    [
        ([(0, 1), (2,), (1, 0)], "more than once"),
        ([(0, 0), (1, 2)], "more than once"),
        ([(0,), (2,)], "no group"),
        ([], "at least one"),
        ([(0, 1), ()], "at least one"),
        ([(0, 1.5)], "dimension numbers"),
        (3, "dimension numbers"),
    ],
)
def test_groups(groups, word):
    for make in (sumbo.Decomposition, sumbo.AdditiveGP):
        with pytest.raises(sumbo.SumboError) as caught:
            make(groups)
        helpful(caught.value, word)


WRONG = {
    "groups of 4 dimensions in 3": lambda: sumbo.AddGPUCB(groups=[(0, 1), (2, 3)]),
    "a group given twice": lambda: sumbo.AddGPUCB(groups=[(0, 1), (1, 0), (2,)]),
    "the same by name": lambda: sumbo.Auto(groups=[(0, 1), ("x1", "x0"), (2,)]),
    "groups that overlap, one after the other": lambda: sumbo.SequentialGroups(groups=[(0, 1), (1, 2)]),
    "no groups at all": lambda: sumbo.AddGPUCB(groups=[]),
    "an empty group": lambda: sumbo.AddGPUCB(groups=[(0, 1), ()]),
    "half a dimension": lambda: sumbo.AddGPUCB(groups=[(0, 1.5)]),
    "a number of groups": lambda: sumbo.Auto(groups=3),
    "cyclic groups of 4 dimensions in 3": lambda: sumbo.CyclicGroups(sumbo.AddGPUCB(groups=[(2, 3)])),
    "a pair that is no list of pairs": lambda: sumbo.Auto(together=("x0", "x1")),
    "together and apart": lambda: sumbo.Auto(together=[("x0", "x1")], apart=[(1, 0)]),
    "an unknown name": lambda: sumbo.Auto(apart=[("x0", "y1")]),
    "an unknown acquisition": lambda: sumbo.AddGPUCB(acquisition="ei"),
    "direct and thompson": lambda: sumbo.AddGPUCB(maximiser="direct", acquisition="thompson"),
    "sequential groups of 2 dimensions in 3": lambda: sumbo.SequentialGroups(groups=[(0, 1)]),
    "unknown kernel": lambda: sumbo.AddGPUCB(kernel="rbf"),
    "unknown kernel of a full model": lambda: sumbo.GPEI(kernel="rbf"),
    "delta 0": lambda: sumbo.GPUCB(beta="theorem", delta=0.0),
    "negative delta": lambda: sumbo.AddGPUCB(beta="theorem", delta=-1.0),
    "group_size as text": lambda: sumbo.AddGPUCB(group_size="3"),
    "group_size 2.5": lambda: sumbo.AddGPUCB(group_size=2.5),
    "n_init as text": lambda: sumbo.GPEI(n_init="10"),
    "dim 2.5": lambda: sumbo.REMBO(dim=2.5),
    "dim as text": lambda: sumbo.REMBO(dim="5"),
}


@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG)
def test_wrong_settings_are_refused_before_the_first_evaluation(make):
    # An evaluation may have cost a day: nobody wants to hear of a typing error after ten of them.
    evaluated = []

    def f(x):
        evaluated.append(x)
        return float(x.sum())

    with pytest.raises(sumbo.SumboError) as caught:
        sumbo.minimize(f, [(0.0, 1.0)] * 3, 12, method=make(), seed=0, progress=False)
    helpful(caught.value)
    assert not evaluated


# --- tells --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trial", "value", "word"),
    [
        (99, 1.0, "99"),
        (-1, 1.0, "-1"),
        (0, 1.0, "already"),
        (4, 1.0, "already"),
        (5, 1.0, "already"),
        ("6", 1.0, "number"),
        (None, 1.0, "number"),
        (6, "0.3", "str"),
        (6, 1 + 2j, "complex"),
        (6, [0.3], "list"),
        (6, np.zeros((2, 2)), "ndarray"),
        (6, None, "value"),
        (6, True, "bool"),
    ],
)
def test_tells(trial, value, word):
    opt = study()
    before = json.dumps(opt.to_dict())
    with pytest.raises(sumbo.SumboError) as caught:
        opt.tell(trial, value)
    helpful(caught.value, word)
    assert json.dumps(opt.to_dict()) == before
    opt.tell(6, 0.5)  # the running trial is still there, and the search goes on
    assert opt.ask().number == 7


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite_are_failed_trials(value):
    opt = study()
    opt.tell(6, value)
    assert opt.trials[6].state == "failed"
    assert str(value) in opt.trials[6].reason
    assert opt.best.value == 0.0
    assert opt.ask().number == 7


# --- data that are hard to learn from -----------------------------------------------------------------------


def search(values, points, **options):
    """A whole search in which every evaluation answers with the next of the values."""
    opt = sumbo.Optimizer([(-5.0, 5.0)] * 3, seed=0, **options)
    for i in range(points):
        opt.tell(opt.ask(), values[i % len(values)])
    return opt


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("values", [[1e300, -1e300, 3.0], [1e300, 1.1e300], [4.2], [0.0], [1e-320, 0.0]], ids=str)
def test_hard_values(values, direction):
    opt = search(values, 16, direction=direction)
    assert np.isfinite(opt.ask().x).all()
    assert opt.best.value == (min(values) if direction == "minimize" else max(values))
    mean, std = opt.model.posterior([[0.5] * 3])
    assert np.isfinite([mean, std]).all()
    assert opt.decomposition.dim == 3


def test_all_points_equal():
    opt = sumbo.Optimizer([(0.0, 1.0)] * 3, seed=0)
    for i in range(20):
        opt.observe([0.25, 0.5, 0.75], float(i))
    assert np.isfinite(opt.ask().x).all()
    assert np.isfinite(opt.model.posterior([[0.5] * 3])).all()


@pytest.mark.parametrize("value", [0.0, 1e300, -1e-300])
def test_one_point_only(value):
    opt = sumbo.Optimizer([(0.0, 1.0)] * 3, seed=0)
    opt.observe([0.25, 0.5, 0.75], value)
    assert opt.best.value == value
    assert np.isfinite(opt.model.posterior([[0.5] * 3])).all()
    assert np.isfinite(opt.ask().x).all()


def test_an_objective_that_fails_in_every_way_there_is_loses_nothing():
    answers = iter([0.5, "x", None, math.nan, 1j, np.ones(3), RuntimeError("no"), 10**400, [], 0.25])

    def f(x):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    result = sumbo.minimize(f, [(0.0, 1.0)] * 2, 10, seed=0, progress=False)
    assert [t.state for t in result.trials].count("failed") == 8
    assert all(t.reason for t in result.trials if t.state == "failed")
    assert result.value == 0.25


def test_saved_states_that_were_cut_or_edited():
    text = json.dumps(study().to_dict())
    for data in ({}, {"sumbo": 3}, {**json.loads(text), "trials": [{}]}, {**json.loads(text), "trials": [0]}):
        with pytest.raises(sumbo.SumboError) as caught:
            sumbo.Optimizer.from_dict(data)
        helpful(caught.value)
