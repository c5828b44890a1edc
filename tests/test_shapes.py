"""Problems as they are: every combination of constraints, conditions, contexts, steps and noise in one space."""

import json
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sumbo
from sumbo.errors import NotFittedError, ObjectiveError, SettingError, SpaceError, StateError, TellError
from sumbo.space.region import Region

SLOW = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])


# --- every combination -----------------------------------------------------------------------------------------------


def heat(p):
    return p["x"] - p["n"] - 0.5  # n = 0 allows x up to 0.5


HEAT = sumbo.Known(heat, name="heat")


@st.composite
def problems(draw: Any) -> dict[str, Any]:
    """A space with some of all that there is, and what to do with it."""
    parts = draw(st.sets(st.sampled_from(["step", "ordinal", "when", "deep", "context", "mixture", "linear", "known"])))
    parameters: dict[str, Any] = {"x": sumbo.Float(0, 1), "n": sumbo.Int(0, 4)}
    constraints: list[Any] = []
    if "step" in parts:
        parameters |= {"s": sumbo.Float(-1, 1, step=0.1), "m": sumbo.Int(0, 64, step=16)}
    if "ordinal" in parts:
        parameters["o"] = sumbo.Ordinal(["low", "middle", "high"])
    if "when" in parts or "deep" in parts:
        parameters["kind"] = sumbo.Categorical(["p", "q", "r"])
        parameters["of p"] = sumbo.Float(1e-3, 1, log=True, when={"kind": "p"})
        parameters["of q"] = sumbo.Int(1, 3, when={"kind": ["q", "r"]})
    if "deep" in parts:
        parameters["of q 2"] = sumbo.Float(0, 1, when={"of q": 2})
    if "context" in parts:
        parameters |= {"wind": sumbo.Float(0, 30), "soil": sumbo.Categorical(["clay", "sand"])}
    if "mixture" in parts:
        parameters |= {name: sumbo.Float(0, 1) for name in "abc"}
        constraints.append(sumbo.SumTo(["a", "b", "c"], 1.0))
    if "linear" in parts:
        constraints.append(sumbo.Linear({"x": 1, "n": 0.2}, upper=1.1, lower=0.1))
    if "known" in parts:
        constraints.append(HEAT)
    context = ["wind", "soil"] if "context" in parts else []
    return {
        "space": sumbo.Space(parameters, context=context, constraints=constraints),
        "outcomes": draw(st.sampled_from([(), ("g",), ("g", "h <= 3")])),
        "std": draw(st.booleans()),
        "fixed": draw(st.sampled_from([{}, {"n": 0}, {"x": 0.25}])),
        "method": draw(st.sampled_from(["auto", "auto", "random"])),
        "seed": draw(st.integers(0, 99)),
    }


def world(space, number):
    """The context of a round."""
    return {"wind": 3.0 * number % 30, "soil": "clay" if number % 2 else "sand"} if space.context else None


def value(params):
    numbers = [v for v in params.values() if not isinstance(v, str)]
    return float(sum((v - 0.3) ** 2 for v in numbers)) + 0.1 * len(params)


def play(opt, problem, rounds, first=0):
    trials = []
    for number in range(first, first + rounds):
        fixed = problem["fixed"] if number % 3 == 0 else None
        context = world(opt.space, number)
        asked = opt.ask(2, context=context, fixed=fixed) if number % 4 == 3 else [opt.ask(context=context, fixed=fixed)]
        for trial in asked:
            assert trial.params.items() >= {**(fixed or {}), **(context or {})}.items()
            measured = {"g": trial.params["x"] - 0.6, "h": float(trial.params["n"])}
            told = {c.name: measured[c.name] for c in opt.constraints}
            std = 0.1 if problem["std"] and number % 2 else None
            if number == 5:
                opt.tell(trial, failed=True)
            else:
                opt.tell(trial, value(trial.params), constraints=told or None, std=std)
        trials += asked
    return trials


@SLOW
@given(problems())
def test_every_combination_keeps_inside_resumes_identically_and_replays(problem):
    space = problem["space"]
    opt = sumbo.Optimizer(space, problem["method"], seed=problem["seed"], budget=16, constraints=problem["outcomes"])
    trials = play(opt, problem, 11)
    units = np.array([space.to_unit(trial.params) for trial in trials])
    assert Region(space, space.constraints).contains(units).all()
    for trial in trials:
        assert space.from_unit(space.to_unit(trial.params)) == trial.params
        np.testing.assert_array_equal(np.isnan(trial.x), [name not in trial.params for name in space.names])
    again = sumbo.Optimizer.from_dict(json.loads(json.dumps(opt.to_dict())), known=[HEAT])
    later = [play(which, problem, 3, first=11) for which in (opt, again)]
    assert [trial.params for trial in later[0]] == [trial.params for trial in later[1]]
    assert sumbo.replay(opt).exact
    best = opt.recommend(context=world(space, 0))
    assert Region(space, space.constraints).contains(space.to_unit(best.params)[None]).all()
    assert 0.0 <= best.probability_feasible <= 1.0
    assert np.isfinite([best.value, best.std]).all()


def test_steps_come_back_as_typed():
    space = sumbo.Space({"t": sumbo.Float(20, 80, step=0.1), "n": sumbo.Int(0, 256, step=64)})
    grid = {round(20 + k / 10, 1) for k in range(601)}
    opt = sumbo.Optimizer(space, "random", seed=0)
    for trial in opt.ask(200):
        assert trial.params["t"] in grid
        assert trial.params["n"] in (0, 64, 128, 192, 256)
    assert space.array({"t": 20.3, "n": 64})[0] == 20.3


# --- constraints that evaluations tell -------------------------------------------------------------------------------


def test_the_best_is_the_best_feasible():
    opt = sumbo.Optimizer([(0, 1)], seed=0, constraints=["stress <= 250", "lift >= 1"])
    for stress, lift, height in ((300, 2, 0.1), (250, 1, 0.5), (200, 0.9, 0.2), (100, 3, 0.7)):
        opt.tell(opt.ask(), height, constraints={"stress": stress, "lift": lift})
    assert opt.best.value == 0.5
    assert opt.best.constraints == {"stress": 250.0, "lift": 1.0}
    none = sumbo.Optimizer([(0, 1)], constraints=["g"])
    none.tell(none.ask(), 1.0, constraints={"g": 0.1})
    assert none.best is None


@pytest.mark.parametrize("seed", range(3))
def test_a_constraint_that_binds_is_found_to_five_digits(seed):
    opt = sumbo.Optimizer([(0, 5), (0, 5)], seed=seed, budget=30, constraints=["g"])
    for _ in range(30):
        trial = opt.ask()
        x, y = trial.x
        opt.tell(trial, x * x + y * y, constraints={"g": 4 - x * y})
    assert 8.0 <= opt.best.value < 8.001


def test_what_is_feasible_is_found_where_little_is():
    opt = sumbo.Optimizer([(0, 1)] * 4, seed=0, budget=40, constraints=["ball"])
    for _ in range(40):
        trial = opt.ask()
        away = float(np.square(trial.x - np.array([0.8, 0.2, 0.9, 0.15])).sum())
        opt.tell(trial, float(trial.x.sum()), constraints={"ball": away - 0.01})  # 0.0005 of the cube
    assert opt.best is not None
    assert opt.recommend().probability_feasible > 0.4


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({}, r"constraints: missing 'stress'; every value comes with \['stress'\]"),
        ({"constraints": {"stres": 1.0}}, r"unknown 'stres' \(did you mean 'stress'\?\) and missing 'stress'"),
        ({"constraints": {"stress": "high"}}, "the constraint 'stress' must be a single real number"),
        ({"constraints": [1.0]}, "constraints must be a dict"),
        ({"constraints": {"stress": 1.0}, "std": -0.1}, "std must be a number from 0 up"),
        ({"constraints": {"stress": 1.0}, "std": float("nan")}, "std must be a number from 0 up"),
    ],
)
def test_what_is_told_wrongly_changes_nothing(told, message):
    opt = sumbo.Optimizer([(0, 1)], seed=0, constraints=["stress"])
    trial = opt.ask()
    with pytest.raises(TellError, match=message):
        opt.tell(trial, 1.0, **told)
    assert opt.trials[0].state == "running"
    opt.tell(trial, 1.0, constraints={"stress": 0.0}, std=0.0)


def test_a_constraint_that_is_no_number_makes_a_failed_trial():
    opt = sumbo.Optimizer([(0, 1)], seed=0, constraints=["stress"])
    opt.tell(opt.ask(), 1.0, constraints={"stress": float("nan")})
    assert opt.trials[0].state == "failed"
    assert opt.trials[0].reason == "the constraint 'stress': value was nan"


@pytest.mark.parametrize("constraints", ["stress", [3], [""], ["a < 3"], ["a <= b"], ["1 <= a <= 2"], ["a", "a <= 3"]])
def test_constraints_that_make_no_sense(constraints):
    with pytest.raises(SpaceError, match=r"^constraints: "):
        sumbo.Optimizer([(0, 1)], constraints=constraints)


def test_methods_say_what_they_cannot_do():
    mixture = sumbo.Space({"a": sumbo.Float(0, 1), "b": sumbo.Float(0, 1)}, constraints=[sumbo.SumTo(["a", "b"], 1)])
    with pytest.raises(SettingError, match='method "add-gp-ucb" learns no constraints; use method="auto"'):
        sumbo.Optimizer([(0, 1)], "add-gp-ucb", constraints=["g"])
    for method in ("direct", "rembo", "seq-groups", "cyclic-groups"):
        with pytest.raises(SettingError, match="searches plain boxes, and the space has known constraints"):
            sumbo.Optimizer(mixture, method)
        with pytest.raises(SettingError, match="cannot keep values fixed"):
            sumbo.Optimizer([(0, 1)] * 3, method).ask(fixed={"x0": 0.5})
    for method in ("add-gp-ucb", "gp-ei", "gp-ucb"):
        opt = sumbo.Optimizer(mixture, method, seed=0)
        for _ in range(14):
            trial = opt.ask()
            assert abs(sum(trial.x) - 1.0) < 1e-9
            opt.tell(trial, float(trial.x[0]))


# --- fixed values and contexts ---------------------------------------------------------------------------------------

KERNELS = sumbo.Space(
    {
        "C": sumbo.Float(0, 1),
        "kernel": sumbo.Categorical(["linear", "rbf", "poly"]),
        "gamma": sumbo.Float(0, 1, when={"kernel": ["rbf", "poly"]}),
        "degree": sumbo.Int(2, 5, when={"kernel": "poly"}),
        "wind": sumbo.Float(0, 30),
    },
    context=["wind"],
)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, r"context: missing \['wind'\]; every ask says its value"),
        ({"context": {"wnd": 1}}, r"context: unknown 'wnd' \(did you mean 'wind'\?\); the space has \['wind'\]"),
        ({"context": {"wind": 31}}, "parameter 'wind': expected a number from 0.0 to 30.0"),
        ({"context": {"wind": "calm"}}, "parameter 'wind': expected a number"),
        ({"context": 3}, "context: expected a dict"),
        ({"context": {"wind": 1}, "fixed": {"D": 1}}, "fixed: unknown 'D'"),
        ({"context": {"wind": 1}, "fixed": {"wind": 1}}, "fixed: 'wind' is of the context"),
        (
            {"context": {"wind": 1}, "fixed": {"gamma": 0.5}},
            r"'gamma' exists for 'kernel' in \['rbf', 'poly'\]; fix 'ke",
        ),
        (
            {"context": {"wind": 1}, "fixed": {"degree": 3, "kernel": "rbf"}},
            "'degree' does not exist where 'kernel' is",
        ),
    ],
)
def test_values_that_an_ask_cannot_have(given, message):
    opt = sumbo.Optimizer(KERNELS, seed=0)
    with pytest.raises(SpaceError, match=message):
        opt.ask(**given)
    assert not opt.trials


def test_a_fixed_child_brings_its_parent():
    trial = sumbo.Optimizer(KERNELS, seed=0).ask(context={"wind": 3}, fixed={"degree": 4})
    assert trial.params["kernel"] == "poly"
    assert trial.params["degree"] == 4


def test_fixed_values_that_no_allowed_point_has():
    space = sumbo.Space({"a": sumbo.Float(0, 1), "b": sumbo.Float(0, 1)}, constraints=[sumbo.SumTo(["a", "b"], 1.5)])
    opt = sumbo.Optimizer(space, seed=0)
    with pytest.raises(SpaceError, match="no allowed point has the fixed values"):
        opt.ask(fixed={"a": 0.2})
    assert opt.ask(fixed={"a": 0.75}).params == {"a": 0.75, "b": 0.75}


def test_the_model_learns_what_depends_on_the_context():
    space = sumbo.Space({"x": sumbo.Float(0, 1), "w": sumbo.Float(0, 1)}, context=["w"])
    opt, rng = sumbo.Optimizer(space, seed=0), np.random.default_rng(0)
    for _ in range(40):
        trial = opt.ask(context={"w": float(rng.random())})
        x, w = trial.x
        opt.tell(trial, (x - 0.2 - 0.6 * w) ** 2 + 3 * w)
    for w in (0.1, 0.5, 0.9):  # held out
        found = opt.recommend(context={"w": w})
        assert found.params["x"] == pytest.approx(0.2 + 0.6 * w, abs=0.05)
        assert found.value == pytest.approx(3 * w, abs=0.05)


# --- noise -----------------------------------------------------------------------------------------------------------


def test_the_recommended_point_is_no_lucky_draw():
    opt, rng = sumbo.Optimizer([(0, 1)], seed=0, budget=40), np.random.default_rng(3)
    for _ in range(40):
        trial = opt.ask()
        opt.tell(trial, (float(trial.x[0]) - 0.4) ** 2 * 20 + rng.normal(), std=1.0)
    found = opt.recommend()
    assert found.params["x0"] == pytest.approx(0.4, abs=0.15)
    assert abs(found.value) < 1.0 < abs(opt.best.value)
    mean, std = opt.predict([{"x0": 0.4}, {"x0": 1.0}])
    assert mean[0] < mean[1]
    assert (std > 0).all()


def test_there_is_nothing_to_recommend_before_a_value():
    opt = sumbo.Optimizer([(0, 1)])
    for ask in (opt.recommend, lambda: opt.predict([{"x0": 0.5}])):
        with pytest.raises(NotFittedError, match="no value was told yet"):
            ask()


# --- spaces that cannot be --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sumbo.Space({"a": sumbo.Float(0, 1, when={"b": 1})}), "'a': when is on an unknown 'b'"),
        (
            lambda: sumbo.Space({"k": sumbo.Categorical(["p"]), "a": sumbo.Float(0, 1, when={"k": "q"})}),
            "parameter 'a': when: parameter 'k': expected one of",
        ),
        (
            lambda: sumbo.Space({"a": sumbo.Int(0, 1, when={"b": 1}), "b": sumbo.Int(0, 1, when={"a": 1})}),
            "conditions in a circle, a -> b -> a",
        ),
        (
            lambda: sumbo.Space({"a": sumbo.Float(0, 1), "b": sumbo.Float(0, 1, when={"a": 0.5})}),
            "whose values cannot be counted; give it a step",
        ),
        (lambda: sumbo.Float(0, 1, when="poly"), "when must be a dict"),
        (lambda: sumbo.Space({"a": sumbo.Float(0, 1)}, context=["b"]), "context: unknown 'b'"),
        (lambda: sumbo.Space({"a": sumbo.Float(0, 1)}, context=["a"]), "names every parameter"),
        (
            lambda: sumbo.Optimizer(
                sumbo.Space({"a": sumbo.Float(0, 1)}, constraints=[sumbo.Linear({"a": 1}, lower=2)])
            ),
            r"no point is allowed: \(2 <= a\) cannot hold within the ranges",
        ),
        (lambda: sumbo.minimize(lambda p: 1.0, KERNELS, 5), "a space with a context is not run by itself"),
        (lambda: sumbo.Optimizer([(0, 1)], direction=["minimize", "maximize"]), "several objectives are not built"),
    ],
)
def test_errors_come_before_an_evaluation(make, message):
    with pytest.raises((SpaceError, SettingError), match=message):
        make()


def test_a_thin_region_is_named():
    thin = sumbo.Linear({"a": 1, "b": -1}, lower=0, upper=1e-7)
    space = sumbo.Space({name: sumbo.Float(0, 1) for name in "abcd"}, constraints=[thin])
    with pytest.warns(RuntimeWarning, match="none of 4096 random points keeps"):
        opt = sumbo.Optimizer(space, seed=0)
    for trial in opt.ask(10):
        assert 0 <= trial.params["a"] - trial.params["b"] <= 1e-7


def test_functions_are_given_again():
    space = sumbo.Space({"x": sumbo.Float(0, 1), "n": sumbo.Int(0, 4)}, constraints=[HEAT])
    state = sumbo.Optimizer(space, seed=0).to_dict()
    with pytest.raises(StateError, match="the function of the known constraint 'heat' is needed"):
        sumbo.Optimizer.from_dict(state)
    assert sumbo.Optimizer.from_dict(state, known=[HEAT]).space == space


# --- running ---------------------------------------------------------------------------------------------------------


def well(p):
    return sumbo.Evaluation((p["x"] - 0.3) ** 2 + p["y"], constraints={"g": 0.2 - p["y"]})


WELL = {"x": sumbo.Float(0, 1, step=0.01), "y": sumbo.Float(0, 1)}


def test_a_run_with_all_of_it():
    known = ({"x": 0.2, "y": 0.9}, sumbo.Evaluation(0.91, constraints={"g": -0.7}))
    first = {"x": 0.1, "y": 0.5}
    seen = []
    result = sumbo.minimize(
        well, WELL, 20, seed=0, constraints=["g"], initial=[first], observed=[known], progress=False,
        stop=lambda opt, trial: seen.append(trial.number),
    )  # fmt: skip
    assert [trial.params for trial in result.trials[:2]] == [known[0], first]
    assert len(result.trials) == 21
    assert not result.interrupted
    assert result.value == pytest.approx(0.2, abs=1e-3)
    assert result.params["x"] == 0.3
    assert seen == list(range(1, 21))
    assert len(result.optimizer.run(well, 3, progress=False).trials) == 24


def test_a_run_ends_by_time_or_when_it_is_told_to(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("sumbo.methods.base.time.monotonic", lambda: clock[0])

    def slow(x):
        clock[0] += 1.0
        return float(x[0])

    result = sumbo.minimize(slow, [(0, 1)], max_seconds=12.5, seed=0, progress=False)
    assert len(result.trials) == 13
    assert not result.interrupted
    budgets = [record.budget for record in result.optimizer._ledger.records]
    assert budgets[-1] == 13  # the last are known to be the last
    assert sumbo.replay(result.optimizer).exact
    stopped = sumbo.minimize(slow, [(0, 1)], 20, progress=False, stop=lambda opt, trial: trial.number == 4)
    assert (len(stopped.trials), stopped.interrupted) == (5, False)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"budget": None}, SettingError, "say how long to go on"),
        ({"max_seconds": 0}, SettingError, "max_seconds must be a number of seconds above 0"),
        ({"initial": [{"x": 0.1}]}, SpaceError, r"initial\[0\]: params: missing 'y'"),
        ({"initial": [{"x": 0.1, "y": 0.1}] * 6}, SettingError, "initial has 6 points, and the budget is 5"),
        ({"observed": [3]}, SettingError, r"observed\[0\]: expected a pair"),
        ({"observed": [({"x": 0.1, "y": 0.1}, 1.0)]}, SettingError, r"observed\[0\]: constraints: missing 'g'"),
        ({"stop": 3}, SettingError, "stop must be a function of the optimizer and a trial"),
    ],
)
def test_runs_that_make_no_sense(arguments, error, message):
    calls = []

    def f(p):
        calls.append(p)
        return well(p)

    with pytest.raises(error, match=message):
        sumbo.minimize(f, WELL, **{"budget": 5, "constraints": ["g"], "progress": False, **arguments})
    assert not calls


def test_an_objective_that_reports_no_constraint_is_stopped_at_once():
    with pytest.raises(ObjectiveError, match=r"trial 0: constraints: missing 'g'; .* Return sumbo.Evaluation"):
        sumbo.minimize(lambda p: 1.0, WELL, 20, constraints=["g"], progress=False)
    with pytest.raises(ObjectiveError, match="several objectives are not built"), warnings.catch_warnings():
        sumbo.minimize(lambda p: (1.0, 2.0), WELL, 20, progress=False)
