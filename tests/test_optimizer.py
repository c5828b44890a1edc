"""Ask and tell: in any order, through JSON, with failures, and never losing anything to a bad argument."""

import copy
import json
import math
import time
from contextlib import contextmanager, suppress
from dataclasses import FrozenInstanceError, dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from saved import forgotten, latest_state

from sumbo import (
    AddGPUCB,
    AdditiveGP,
    Auto,
    Categorical,
    Decomposition,
    Float,
    Int,
    Optimizer,
    Space,
    Trial,
    acquisition,
)
from sumbo.errors import SettingError, SpaceError, StateError, SumboError, TellError
from sumbo.methods import METHODS, Method, Suggestion

BOX = [(0.0, 1.0)] * 3
MIXED = Space(
    {
        "lr": Float(1e-5, 1e-1, log=True),
        "layers": Int(1, 8),
        "act": Categorical(["relu", "gelu"]),
    }
)
MODELLED = [name for name in METHODS if name not in ("random", "direct", "rembo", "seq-groups")]


def value(trial):
    return float(np.sin(5.0 * trial.x).sum() + trial.x[0])


def play(opt, n, value=value):
    for _ in range(n):
        trial = opt.ask()
        opt.tell(trial, value(trial))
    return opt


def through_json(opt):
    return Optimizer.from_dict(json.loads(json.dumps(opt.to_dict())))


@contextmanager
def unchanged(opt):
    """Nothing that is saved differs afterwards."""
    before = json.dumps(opt.to_dict())
    yield
    assert json.dumps(opt.to_dict()) == before


# --- asking -------------------------------------------------------------------------------------------------


def test_ask_returns_a_running_trial_in_the_users_units():
    opt = Optimizer(MIXED, seed=0)
    trial = opt.ask()
    assert isinstance(trial, Trial)
    assert (trial.number, trial.state, trial.value, trial.reason) == (0, "running", None, None)
    assert list(trial.params) == ["lr", "layers", "act"]
    assert 1e-5 <= trial.params["lr"] <= 1e-1
    assert type(trial.params["layers"]) is int
    assert trial.params["act"] in ("relu", "gelu")
    assert trial.x.tolist() == [
        trial.params["lr"],
        trial.params["layers"],
        ["relu", "gelu"].index(trial.params["act"]),
    ]
    with pytest.raises(FrozenInstanceError):
        trial.number = 7


def test_bounds_name_their_parameters():
    opt = Optimizer([(-1.0, 2.0), (5.0, 6.0)], seed=0)
    trial = opt.ask()
    assert list(trial.params) == ["x0", "x1"]
    assert list(trial.params.values()) == trial.x.tolist()


def test_a_dict_of_parameters_will_do():
    assert Optimizer({"a": Float(0, 1)}, seed=0).space == Space({"a": Float(0, 1)})


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("told", [0, 12])
def test_ask_for_several_gives_different_ones(method, told):
    opt = play(Optimizer(BOX, method, seed=0), told)
    batch = opt.ask(5)
    assert [trial.number for trial in batch] == list(range(told, told + 5))
    assert len({trial.x.tobytes() for trial in batch}) == 5


@pytest.mark.parametrize("method", MODELLED)
def test_a_batch_is_spread_out(method):
    opt = play(Optimizer(BOX, method, seed=1), 10)
    X = np.array([trial.x for trial in opt.ask(5)])
    gaps = np.linalg.norm(X[:, None] - X[None], axis=2)[np.triu_indices(5, 1)]
    assert gaps.max() > 0.1  # five times the same place would be within the optimiser's tolerance


def test_ask_for_one_in_a_list():
    assert len(Optimizer(BOX, seed=0).ask(1)) == 1


@pytest.mark.parametrize("n", [0, -1, 1.5, "3", [2], math.nan])
def test_ask_takes_a_whole_number(n):
    opt = Optimizer(BOX, seed=0)
    with unchanged(opt), pytest.raises(SettingError, match="n must be a whole number from 1 up; got "):
        opt.ask(n)


@pytest.mark.parametrize("deadline", [0, -1.0, math.nan, math.inf, "soon", True, [1.0]])
def test_a_deadline_is_a_positive_number(deadline):
    opt = Optimizer(BOX, seed=0)
    with (
        unchanged(opt),
        pytest.raises(SettingError, match="deadline must be a positive number of seconds; got "),
    ):
        opt.ask(deadline=deadline)


@pytest.mark.parametrize("method", METHODS)
def test_a_deadline_that_is_over_at_once_still_gives_a_point(method):
    opt = play(Optimizer(BOX, method, seed=0), 14)
    for trial in [opt.ask(deadline=1e-9), *opt.ask(3, deadline=1e-9)]:
        assert ((trial.x >= 0.0) & (trial.x <= 1.0)).all()
    assert len({trial.x.tobytes() for trial in opt.trials}) == len(opt.trials)


@pytest.mark.parametrize("method", ["auto", "add-gp-ucb"])
def test_a_deadline_is_kept(method):
    D = 10
    opt = Optimizer([(0.0, 1.0)] * D, method, seed=0)
    for x in np.random.default_rng(0).random((150, D)):
        opt.observe(x, float(np.sin(5 * x).sum()))
    opt.ask(deadline=0.05)  # learns, for there is nothing yet to fall back on
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        trial = opt.ask(deadline=0.05)
        seconds.append(time.perf_counter() - start)
        assert ((trial.x >= 0.0) & (trial.x <= 1.0)).all()
        opt.tell(trial, value(trial))
    assert np.median(seconds) < 1.0  # 0.15 on a quiet machine


def test_a_deadline_is_kept_with_many_parameters_and_observations():
    D, n = 100, 1500
    X = np.random.default_rng(0).random((n, D))
    y = np.cos(6 * X).sum(axis=1)
    opt = Optimizer([(0.0, 1.0)] * D, Auto(n_init=2), seed=0)
    for x, v in zip(X[:4], y, strict=False):
        opt.observe(x, v)
    opt.ask()  # learns from four, and of all the others when there is no time for it
    for x, v in zip(X[4:], y[4:], strict=True):
        opt.observe(x, v)
    while not acquisition.ready():
        time.sleep(0.05)
    # In processor time, and in units of what this machine needs for a model of some of them.
    model = AdditiveGP([(i,) for i in range(D)], full_order=True)
    units = [processor_seconds(lambda: model.condition(X[:150], y[:150]).posterior(X[:150])) for _ in range(5)]
    deadline = 5.0 * min(units)
    for known in (opt, Optimizer.from_dict(forgotten(opt.to_dict()))):  # the other one has learned nothing
        seconds = [processor_seconds(lambda known=known: known.ask(deadline=deadline)) for _ in range(5)]
        assert np.median(seconds) < 1.2 * deadline


def processor_seconds(call):
    began = time.thread_time()
    call()
    return time.thread_time() - began


def test_a_generous_deadline_changes_nothing():
    a, b = Optimizer(BOX, seed=0), Optimizer(BOX, seed=0)
    for _ in range(13):
        trial, same = a.ask(), b.ask(deadline=600.0)
        assert trial.x.tobytes() == same.x.tobytes()
        a.tell(trial, value(trial))
        b.tell(same, value(same))


# --- never twice --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stubborn(Method):
    """Always suggests the same point."""

    name: ClassVar[str] = "stubborn"

    def suggest(self, query):
        return Suggestion(query.space.snap(np.full(query.D, 0.3)))


@pytest.mark.parametrize("method", [*METHODS, Stubborn()])
def test_small_spaces_are_visited_completely_before_anything_repeats(method):
    opt = Optimizer({"a": Int(0, 2), "b": Categorical(["x", "y"])}, method, seed=0)
    for i in range(6):
        trial = opt.ask()
        opt.tell(trial, float(i % 3))
    assert len({tuple(t.params.values()) for t in opt.trials}) == 6
    assert opt.ask().params in [t.params for t in opt.trials[:6]]  # the seventh has no choice, and no hang
    assert len(opt.ask(2)) == 2


@pytest.mark.parametrize("method", METHODS)
def test_small_spaces_batch_by_batch(method):
    opt = Optimizer({"a": Int(0, 2), "b": Categorical(["x", "y"])}, method, seed=0)
    opt.observe({"a": 1, "b": "y"}, 1.0)
    opt.ask(3)
    opt.ask(2)
    assert len({tuple(t.params.values()) for t in opt.trials}) == 6


def test_points_of_ones_own_are_not_asked_again():
    opt = Optimizer(BOX, Stubborn(), seed=0)
    opt.observe([0.3, 0.3, 0.3], 1.0)
    trials = opt.ask(20)
    X = np.array([t.x for t in trials])
    assert len({x.tobytes() for x in X}) == 20
    assert not (X == 0.3).all(axis=1).any()
    assert np.abs(X[0] - 0.3).max() < 0.01  # the nearest neighbour rather than anywhere


def test_a_space_of_one_point():
    opt = Optimizer({"a": Int(3, 3)}, "auto", seed=0)
    play(opt, 12)
    assert {t.params["a"] for t in opt.trials} == {3}


def test_a_float_of_two_values_does_not_hang():
    # Between these two there is no other double: a third ask has to repeat one.
    opt = Optimizer([(1.0, math.nextafter(1.0, 2.0))], Limited(), seed=0)
    assert {opt.ask().x[0] for _ in range(4)} == {1.0, math.nextafter(1.0, 2.0)}


@dataclass(frozen=True)
class Limited(Method):
    """Suggests 0, and makes endless redrawing an error rather than an endless test."""

    name: ClassVar[str] = "limited"

    def suggest(self, query):
        object.__setattr__(query, "rng", LimitedRng(query.rng))
        return Suggestion(np.zeros(query.D))


class LimitedRng:
    def __init__(self, rng):
        self._rng = rng
        self._left = 10_000

    def __getattr__(self, name):
        self._left -= 1
        assert self._left > 0, "ask draws for ever"
        return getattr(self._rng, name)


# --- telling ------------------------------------------------------------------------------------------------


def test_tell_by_trial_and_by_number():
    opt = Optimizer(BOX, seed=0)
    a, b, c = opt.ask(3)
    opt.tell(c, 3.0)
    opt.tell(0, 1.0)
    opt.tell(np.int64(b.number), 2)
    assert [t.value for t in opt.trials] == [1.0, 2.0, 3.0]
    assert [t.state for t in opt.trials] == ["done"] * 3
    assert all(isinstance(t.value, float) for t in opt.trials)
    assert (a.value, a.state) == (None, "running")  # what ask returned is as it was
    assert opt.trials[0].params == a.params


@pytest.mark.parametrize(
    "number", [1, 2.5, np.float32(0.5), np.float64(2), np.int32(-4), np.array(3.5), Fraction(1, 4)]
)
def test_values_may_be_any_real_number(number):
    opt = Optimizer(BOX, seed=0)
    opt.tell(opt.ask(), number)
    assert opt.best.value == float(number)
    assert type(opt.best.value) is float


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, np.float64("nan"), np.float32("inf"), 10**400])
def test_values_that_are_not_finite_are_failures(bad):
    opt = Optimizer(BOX, seed=0)
    opt.tell(opt.ask(), bad)
    trial = opt.trials[0]
    assert (trial.state, trial.value) == ("failed", None)
    assert trial.reason in ("value was nan", "value was inf", "value was -inf")
    assert opt.best is None


def test_failed_trials_say_why():
    opt = Optimizer(BOX, seed=0)
    opt.tell(opt.ask(), failed=True)
    opt.tell(opt.ask(), failed=True, reason="out of memory")
    opt.tell(opt.ask(), math.nan, reason="diverged")
    assert [t.reason for t in opt.trials] == ["failed", "out of memory", "diverged"]
    assert {t.state for t in opt.trials} == {"failed"}


def test_seconds_are_those_from_asking_to_telling():
    opt = Optimizer(BOX, seed=0)
    trial = opt.ask()
    time.sleep(0.02)
    opt.tell(trial, 1.0)
    assert 0.015 < opt.trials[0].seconds < 10
    assert opt.observe([0.5] * 3, 1.0).seconds is None


def started():
    """One trial told, one failed, one running."""
    opt = Optimizer(BOX, seed=0)
    opt.tell(opt.ask(), 1.0)
    opt.tell(opt.ask(), failed=True)
    opt.ask()
    return opt


@pytest.mark.parametrize("number", [3, -1, 10**30])
def test_tell_of_an_unknown_trial(number):
    opt = started()
    with (
        unchanged(opt),
        pytest.raises(TellError, match=rf"there is no trial {number} \(known: 0 to 2\); use observe"),
    ):
        opt.tell(number, 1.0)


def test_tell_before_any_ask():
    opt = Optimizer(BOX, seed=0)
    with unchanged(opt), pytest.raises(TellError, match=r"there is no trial 0 \(known: none yet\)"):
        opt.tell(0, 1.0)


@pytest.mark.parametrize("number", [0, 1])
def test_tell_twice(number):
    opt = started()
    with unchanged(opt), pytest.raises(TellError, match=f"trial {number} has been told already; use observe"):
        opt.tell(number, 2.0)
    with unchanged(opt), pytest.raises(TellError, match=f"trial {number} has been told already"):
        opt.tell(opt.trials[number], failed=True)


@pytest.mark.parametrize("what", ["0", 0.0, None, True, [0], {"x0": 0.5}])
def test_tell_of_something_else(what):
    opt = started()
    with unchanged(opt), pytest.raises(TellError, match="tell takes a trial or its number; got "):
        opt.tell(what, 1.0)


def test_tell_of_another_optimizers_trial():
    opt, other = Optimizer(BOX, seed=0), Optimizer(BOX, seed=1)
    opt.ask(2)
    _, trial = other.ask(2)
    with (
        unchanged(opt),
        pytest.raises(TellError, match="trial 1 here has other parameters: it was asked of another"),
    ):
        opt.tell(trial, 1.0)


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        ("0.3", "str"),
        (1 + 2j, "complex"),
        (np.complex128(1.0), "complex128"),
        ([1.0], "list"),
        (np.array([1.0, 2.0]), "ndarray"),
        (np.zeros((0,)), "ndarray"),
        (np.array(["x"]), "ndarray"),
        (np.array([True]), "ndarray"),
        (True, "bool"),
        (np.bool_(False), "bool"),
        ({"loss": 1.0}, "dict"),
        (b"1", "bytes"),
        (object(), "object"),
    ],
)
def test_values_that_are_no_number(bad, kind):
    opt = started()
    with unchanged(opt), pytest.raises(TellError, match=f"a value must be a single real number; got {kind}"):
        opt.tell(2, bad)
    with unchanged(opt), pytest.raises(TellError, match=f"a value must be a single real number; got {kind}"):
        opt.observe([0.1, 0.2, 0.3], bad)
    opt.tell(2, 0.5)  # the trial is still there


def test_neither_or_both():
    opt = started()
    with (
        unchanged(opt),
        pytest.raises(TellError, match="tell needs a value, or failed=True if there is none"),
    ):
        opt.tell(2)
    with (
        unchanged(opt),
        pytest.raises(TellError, match=r"a failed trial has no value; got failed=True with 1\.0"),
    ):
        opt.tell(2, 1.0, failed=True)
    with unchanged(opt), pytest.raises(TellError, match="tell needs a value"):
        opt.observe([0.1, 0.2, 0.3])


def test_the_order_of_tells_is_free_and_counts():
    # The same points and values told in another order are the same data.
    a, b = (Optimizer(BOX, "gp-ei", seed=0) for _ in range(2))
    for opt, order in ((a, range(12)), (b, reversed(range(12)))):
        trials = opt.ask(12)
        for i in order:
            opt.tell(trials[i], value(trials[i]))
    assert [t.value for t in a.trials] == [t.value for t in b.trials]
    np.testing.assert_allclose(a.model.posterior([[0.5] * 3]), b.model.posterior([[0.5] * 3]), atol=0.02)


# --- observing ----------------------------------------------------------------------------------------------


def test_observe_by_name_and_by_array():
    opt = Optimizer(MIXED, seed=0)
    a = opt.observe({"act": "gelu", "layers": np.int64(3), "lr": 1e-3}, 0.4)
    b = opt.observe(np.array([1e-2, 8, 0]), 0.3)
    c = opt.observe([1e-4, 1, 1], failed=True, reason="too hot")
    assert a.params == {"lr": 1e-3, "layers": 3, "act": "gelu"}
    assert list(a.params) == ["lr", "layers", "act"]
    assert b.params == {"lr": 1e-2, "layers": 8, "act": "relu"}
    assert (c.state, c.reason) == ("failed", "too hot")
    assert [t.number for t in opt.trials] == [0, 1, 2]
    assert opt.best.number == 1
    json.dumps(opt.to_dict())


def test_observed_digits_are_kept():
    opt = Optimizer(MIXED, seed=0)
    lr = 0.012345678901234567
    assert opt.observe({"lr": lr, "layers": 1, "act": "relu"}, 1.0).params["lr"] == lr
    assert through_json(opt).trials[0].params["lr"] == lr


def test_the_same_point_may_be_observed_again():
    opt = Optimizer(BOX, seed=0)
    for y in (1.0, 1.1, 0.9):
        opt.observe([0.5] * 3, y)
    assert len(opt.trials) == 3


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"lr": 1e-3, "layers": 3}, "missing 'act'"),
        ({"lr": 1e-3, "layers": 3, "act": "relu", "lrr": 1}, "unknown 'lrr'"),
        ({"lr": 1e-3, "layers": 3, "act": "rleu"}, "did you mean 'relu'"),
        ({"lr": 1.0, "layers": 3, "act": "relu"}, "from 1e-05 to 0.1"),
        ({"lr": 1e-3, "layers": 3.5, "act": "relu"}, "whole number"),
        ({"lr": "1e-3", "layers": 3, "act": "relu"}, "expected a number"),
        ([1e-3, 3], "shape"),
        ([1e-3, 3, math.nan], "finite"),
        (None, "point"),
        ("lr=1", "point"),
    ],
)
def test_observing_what_is_not_in_the_space(params, match):
    opt = Optimizer(MIXED, seed=0)
    opt.ask()
    with unchanged(opt), pytest.raises(SpaceError, match=match):
        opt.observe(params, 1.0)


def test_observe_leaves_its_argument_alone():
    opt = Optimizer(BOX, seed=0)
    x, params = np.array([0.1, 0.2, 0.3]), {"x2": 0.3, "x1": 0.2, "x0": 0.1}
    opt.observe(x, 1.0)
    opt.observe(params, 1.0)
    assert x.tolist() == [0.1, 0.2, 0.3]
    assert params == {"x2": 0.3, "x1": 0.2, "x0": 0.1}
    x[:] = 9.0
    params["x0"] = 9.0
    assert opt.trials[0].x.tolist() == [0.1, 0.2, 0.3]
    assert opt.trials[1].params["x0"] == 0.1


# --- what is known ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("direction", "best"), [("minimize", -3.0), ("maximize", 7.0)])
def test_best(direction, best):
    opt = Optimizer(BOX, "random", direction, seed=0)
    assert opt.best is None
    for y in (1.0, math.nan, 7.0, -3.0, 7.0, -3.0):
        opt.tell(opt.ask(), y)
    opt.ask()
    assert opt.best.value == best
    assert opt.best.number == [1.0, None, 7.0, -3.0].index(best)  # the first of equals


def test_trials_are_a_record_of_everything():
    opt = started()
    assert isinstance(opt.trials, tuple)
    assert [t.state for t in opt.trials] == ["done", "failed", "running"]
    assert [t.number for t in opt.trials] == [0, 1, 2]


def test_what_callers_do_to_a_trial_does_not_reach_the_optimizer():
    opt = Optimizer(MIXED, seed=0)
    trial = opt.ask()
    before = copy.deepcopy(opt.to_dict()["trials"])
    x = trial.x.copy()
    with suppress(ValueError):  # read-only would do as well
        trial.x[:] = 0.0
    with suppress(TypeError, AttributeError):
        trial.params.pop("lr")
    assert opt.to_dict()["trials"] == before
    assert opt.trials[0].x.tolist() == x.tolist()
    opt.tell(trial.number, 1.0)
    through_json(opt)


def test_what_callers_do_to_a_saved_state_does_not_reach_the_optimizer():
    opt = play(Optimizer(BOX, "gp-ei", seed=0), 11)
    before = json.dumps(opt.to_dict())
    saved = opt.to_dict()
    saved["trials"][0]["params"]["x0"] = 99.0
    latest_state(saved).clear()
    saved["trials"][3].clear()
    assert json.dumps(opt.to_dict()) == before


@pytest.mark.parametrize("method", MODELLED)
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_model_predicts_what_was_told(method, direction):
    opt = Optimizer(BOX, method, direction, seed=0)
    assert opt.model is None
    assert opt.decomposition is None
    play(opt, 14)
    opt.ask()
    model = opt.model
    assert isinstance(model, AdditiveGP)
    assert model.n == 14  # running points are not data
    mean, std = model.posterior(np.random.default_rng(0).random((7, 3)))
    assert mean.shape == std.shape == (7,)
    assert (std > 0).all()
    # on the unit cube, standardised, larger is better
    y = np.array([t.value for t in opt.trials if t.value is not None])
    fitted = model.posterior(model.X)[0]
    assert np.corrcoef(fitted, y)[0, 1] * (1 if direction == "maximize" else -1) > 0.8
    assert abs(model.y.mean()) < 1e-12
    assert model.y.std() == pytest.approx(1.0)
    assert isinstance(opt.decomposition, Decomposition)
    assert opt.decomposition == model.decomposition
    assert sorted(i for group in opt.decomposition.groups for i in group) == [0, 1, 2]


@pytest.mark.parametrize("method", ["random", "direct"])
def test_some_methods_have_no_model(method):
    opt = play(Optimizer(BOX, method, seed=0), 3)
    assert opt.model is None
    assert opt.decomposition is None


def test_looking_changes_nothing():
    opt = play(Optimizer(BOX, "add-gp-ucb", seed=0), 12)
    with unchanged(opt):
        _ = opt.model, opt.decomposition, opt.best, opt.trials, opt.to_dict()


# --- settings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [-1, 1.5, "0", True, [1], math.nan])
def test_seeds_are_whole_numbers(seed):
    with pytest.raises(SettingError, match="seed must be a whole number from 0 up, or None; got "):
        Optimizer(BOX, seed=seed)


def test_without_a_seed_runs_differ_but_can_be_saved():
    a, b = Optimizer(BOX), Optimizer(BOX)
    assert a.seed != b.seed
    c = through_json(a)
    x, y, z = (opt.ask(2)[1].x.tobytes() for opt in (a, b, c))  # the first may be the middle
    assert x != y
    assert x == z


@pytest.mark.parametrize("direction", ["min", "maximise", "", None, 1])
def test_directions(direction):
    with pytest.raises(SettingError, match="direction"):
        Optimizer(BOX, direction=direction)


@pytest.mark.parametrize("method", ["bayes", "", None, 3, AddGPUCB])
def test_methods(method):
    with pytest.raises(SettingError, match="method must be one of auto, "):
        Optimizer(BOX, method)


@pytest.mark.parametrize("budget", [0, -3, 1.5, "100", True])
def test_budgets_are_whole_numbers(budget):
    with pytest.raises(SettingError, match="budget"):
        Optimizer(BOX, budget=budget)


@pytest.mark.parametrize("space", [[], {}, None, "x", 3, [(0.0,)], [(1.0, 0.0)], {"a": (0, 1)}])
def test_spaces(space):
    with pytest.raises(SpaceError):
        Optimizer(space)


# --- saving -------------------------------------------------------------------------------------------------

STAGES = (0, 1, 5, 12, 40)


@pytest.mark.parametrize("space", [BOX, MIXED], ids=["box", "mixed"])
@pytest.mark.parametrize("method", METHODS)
def test_a_saved_optimizer_goes_on_with_identical_suggestions(method, space):
    opt, saved = Optimizer(space, method, seed=7, budget=45), {}
    for n in range(max(STAGES) + 2):
        if n in STAGES:
            saved[n] = json.dumps(opt.to_dict())
        trial = opt.ask()
        opt.tell(trial, value(trial))
    for n, text in saved.items():
        again = Optimizer.from_dict(json.loads(text))
        assert json.dumps(again.to_dict()) == text
        for expected in opt.trials[n : n + 2]:
            trial = again.ask()
            assert (trial.number, trial.params) == (expected.number, expected.params)
            assert trial.x.tobytes() == expected.x.tobytes()
            again.tell(trial, value(trial))


@pytest.mark.parametrize("method", METHODS)
def test_a_saved_optimizer_remembers_running_failed_and_own_points(method):
    opt = Optimizer(BOX, method, seed=8)
    for k in range(4):
        opt.observe(np.random.default_rng(k).random(3), float(k))
        a, b, _, d = opt.ask(4)
        opt.tell(d, failed=True, reason="no light")
        opt.tell(b, value(b))
        opt.tell(a, value(a))
    again = through_json(opt)
    assert [(t.number, t.params, t.value, t.state, t.reason) for t in again.trials] == [
        (t.number, t.params, t.value, t.state, t.reason) for t in opt.trials
    ]
    assert again.best.number == opt.best.number
    last = [t for t in opt.trials if t.state == "running"][-1]
    again.tell(last.number, 0.25)  # a trial that ran through the restart
    opt.tell(last, 0.25)
    for _ in range(3):
        x, y = opt.ask(), again.ask()
        assert x.x.tobytes() == y.x.tobytes()
        opt.tell(x, value(x))
        again.tell(y, value(y))


def test_settings_are_saved():
    method = AddGPUCB(group_size=2, n_init=3, beta=1.5)
    opt = Optimizer(MIXED, method, "maximize", seed=2**70, budget=50)
    again = through_json(opt)
    assert (again.method, again.direction, again.seed, again.budget, again.space) == (
        method,
        "maximize",
        2**70,
        50,
        MIXED,
    )


def damaged(**changes):
    data = json.loads(json.dumps(started().to_dict()))
    return {**data, **changes}


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (None, "expected a state of format 3 made by Optimizer.to_dict; got format None"),
        ([], "got format None"),
        ("{}", "got format None"),
        ({}, "got format None"),
        ({"sumbo": 999}, "got format 999"),
        ({"sumbo": 3}, "is missing"),
        (damaged(method={"type": "Magic"}), "expected settings of one of"),
        (damaged(method={"type": "FitSettings"}), "FitSettings is not a method"),
        (damaged(direction="up"), "direction"),
        (damaged(seed=-1), "seed must be"),
        (damaged(space={"params": []}), "saved space"),
    ],
)
def test_states_that_cannot_be_read(data, match):
    with pytest.raises(StateError, match=match):
        Optimizer.from_dict(data)


@pytest.mark.parametrize(
    ("number", "changes", "match"),
    [
        (0, {"value": None}, "trial 0: state 'done' does not go with value None"),
        (0, {"value": "1.0"}, "trial 0: state 'done' does not go with value '1.0'"),
        (0, {"value": math.nan}, "trial 0: state 'done' does not go with value nan"),
        (0, {"state": "lost"}, "trial 0: state 'lost' does not go with value 1.0"),
        (1, {"value": 3.0}, "trial 1: state 'failed' does not go with value 3.0"),
        (2, {"value": 3.0}, "trial 2: state 'running' does not go with value 3.0"),
        (2, {"params": {"x0": 0.5}}, "missing 'x1'"),
        (2, {"params": {"x0": 0.5, "x1": 0.5, "x2": 5.0}}, "from 0.0 to 1.0"),
        (0, {"told": None}, "trial 0: state 'done' does not go with its place in the order"),
        (2, {"told": 9}, "trial 2: state 'running' does not go with its place in the order"),
        (1, {"told": 1}, "the order of asks and tells makes no sense"),
        (1, {"asked": 1}, "the order of asks and tells makes no sense"),
        (0, {"asked": None}, "trial 0: state 'done' does not go with its place in the order"),
        (0, {"asked": 1.0}, "trial 0: asked must be a whole number"),
        (0, {"told": True}, "trial 0: told must be a whole number"),
        (0, {"method_state": [1]}, "trial 0: method_state must be an object or null"),
    ],
)
def test_trials_that_cannot_be_read(number, changes, match):
    data = damaged()
    data["trials"][number].update(changes)
    with pytest.raises(StateError, match=match):
        Optimizer.from_dict(data)


JUNK = [None, "x", -1, 3.5, [], [1], {}, {"a": 1}, True, 10**400]


def test_no_damage_gives_anything_but_a_state_error():
    whole = json.loads(json.dumps(play(Optimizer(MIXED, "gp-ei", seed=0), 11).to_dict()))
    surprises = []

    def attempt(where, data):
        try:
            Optimizer.from_dict(data)
        except StateError:
            pass
        except Exception as error:
            surprises.append(f"{where}: {type(error).__name__}: {error}")

    for key in whole:
        attempt(f"without {key}", {k: v for k, v in whole.items() if k != key})
        for junk in JUNK:
            attempt(f"{key}={junk!r:.20}", {**whole, key: junk})
    for key in whole["trials"][0]:
        for junk in JUNK:
            data = copy.deepcopy(whole)
            data["trials"][0][key] = junk
            attempt(f"trial {key}={junk!r:.20}", data)
        data = copy.deepcopy(whole)
        del data["trials"][0][key]
        attempt(f"trial without {key}", data)
    assert not surprises, "\n".join(surprises)


def test_from_dict_leaves_its_argument_alone():
    data = json.loads(json.dumps(play(Optimizer(BOX, "gp-ei", seed=0), 11).to_dict()))
    before = copy.deepcopy(data)
    play(Optimizer.from_dict(data), 3)
    assert data == before


# --- hard data ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "values",
    [
        [1e300],
        [1e300, -1e300, 1e299],
        [1.7e308, -1.7e308, 0.0],
        [1e-300, 2e-300, 0.0],
        [5e-324, 0.0],
        [3.0],
        [0.0],
        [1e300, 1e-300, 0.0, 1.0],
        [1.0, 1.0 + 1e-15],
    ],
    ids=str,
)
def test_any_values_can_be_told(method, values):
    opt = Optimizer([(0.0, 1.0)] * 2, method, seed=0)
    for i in range(12):
        opt.tell(opt.ask(), values[i % len(values)])
    for _ in range(2):
        trial = opt.ask()
        assert np.isfinite(trial.x).all()
        opt.tell(trial, values[0])
    assert np.isfinite(through_json(opt).ask().x).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0, -5.0], [1e300, -1e300]], ids=str)
def test_all_points_may_be_the_same(method, values):
    opt = Optimizer([(0.0, 1.0)] * 2, method, seed=0)
    for i in range(12):
        opt.observe([0.5, 0.5], values[i % len(values)])
    X = np.array([t.x for t in opt.ask(3)])
    assert np.isfinite(X).all()
    assert len({x.tobytes() for x in X}) == 3
    assert not (X == 0.5).all(axis=1).any() or method == "direct"


@pytest.mark.parametrize("method", METHODS)
def test_one_point_only(method):
    opt = Optimizer([(0.0, 1.0)] * 2, method, seed=0)
    opt.observe([0.2, 0.8], 1.0)
    model = opt.model
    assert model is None or model.n == 1
    assert np.isfinite(opt.ask().x).all()


@pytest.mark.parametrize("make", [AddGPUCB, lambda n_init: METHODS["gp-ei"](n_init=n_init)])
def test_a_model_of_one_point_only(make):
    opt = Optimizer([(0.0, 1.0)] * 2, make(n_init=1), seed=0)
    opt.observe([0.2, 0.8], 1.0)
    X = np.array([opt.ask().x for _ in range(3)])
    assert len({x.tobytes() for x in X}) == 3


def test_values_in_other_units_give_the_same_search():
    # powers of two are exact, so the suggestions are the same to the last bit
    a, b = (play(Optimizer(BOX, "auto", seed=0), 14, lambda t, s=s: s * value(t)) for s in (1.0, 2.0**40))
    assert [t.x.tobytes() for t in a.trials] == [t.x.tobytes() for t in b.trials]


@pytest.mark.parametrize("method", METHODS)
def test_maximising_is_minimising_the_negative(method):
    a = play(Optimizer(BOX, method, "minimize", seed=0), 12)
    b = play(Optimizer(BOX, method, "maximize", seed=0), 12, lambda t: -value(t))
    assert [t.x.tobytes() for t in a.trials] == [t.x.tobytes() for t in b.trials]


def test_a_failing_region_is_avoided():
    def half(trial):
        return math.nan if trial.x[0] > 0.5 else float((trial.x[0] - 0.3) ** 2)

    opt = play(Optimizer([(0.0, 1.0)], "auto", seed=0), 24, half)
    late = [t.state for t in opt.trials[14:]]
    assert late.count("failed") <= 4


def test_errors_are_sumbo_errors_and_value_errors():
    opt = Optimizer(BOX, seed=0)
    with pytest.raises(SumboError):
        opt.tell(3, 1.0)
    with pytest.raises(ValueError, match="no trial 3"):
        opt.tell(3, 1.0)


def test_a_trial_may_be_told_after_it_went_through_a_copy():
    opt = Optimizer(MIXED, seed=0)
    trial = opt.ask()
    opt.tell(replace(trial, params=dict(trial.params)), 1.0)
    assert opt.best.number == 0
