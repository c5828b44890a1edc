"""SumboSampler: Optuna's own test-suite for samplers, and what sumbo promises beyond it."""

import ast
import json
import pickle
import random
import subprocess
import sys
import threading
import warnings
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

import sumbo
from sumbo.errors import SettingError, SumboError
from sumbo.integrations.optuna import SumboSampler
from sumbo.integrations.optuna.ledger import Attributes, StudyLedger
from sumbo.integrations.optuna.translation import Translation, parameter, searched_distributions

optuna.logging.set_verbosity(optuna.logging.ERROR)

MIXED = {
    "a": FloatDistribution(-1.0, 1.0),
    "b": FloatDistribution(1e-5, 1e-1, log=True),
    "c": FloatDistribution(0.0, 1.0, step=0.1),
    "d": IntDistribution(0, 7),
    "e": IntDistribution(1, 100, log=True),
    "f": IntDistribution(-4, 8, step=3),
    "g": CategoricalDistribution(("relu", None, 3, 2.5, True)),
}


try:
    from optuna.testing import pytest_samplers as theirs
except ImportError:  # an older Optuna
    pass
else:

    class TestOptunasOwn(theirs.BasicSamplerTestCase, theirs.RelativeSamplerTestCase, theirs.SingleOnlySamplerTestCase):
        @pytest.fixture
        def sampler(self):
            return SumboSampler


def mixed(trial):
    a, b = trial.suggest_float("a", -1, 1), trial.suggest_float("b", 1e-5, 1e-1, log=True)
    c, d = trial.suggest_float("c", 0, 1, step=0.1), trial.suggest_int("d", 0, 7)
    e, f = trial.suggest_int("e", 1, 100, log=True), trial.suggest_int("f", -4, 8, step=3)
    g = trial.suggest_categorical("g", ["relu", None, 3, 2.5, True])
    return (
        (a - 0.3) ** 2 + (np.log10(b) + 3) ** 2 + (c - 0.7) ** 2 + abs(d - 5) + abs(e - 10) / 10 + abs(f - 2) + (g != 3)
    )


def bowl(trial):
    return sum((trial.suggest_float(f"x{i}", -5, 5) - i) ** 2 for i in range(3))


def study_of(sampler=None, **kwargs):
    return optuna.create_study(sampler=sampler or SumboSampler(seed=0), **kwargs)


def points(study):
    return [tuple(trial.params.items()) for trial in study.trials]


# --- does it optimise? ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_one_line_makes_an_optuna_script_better(direction):
    sign = 1.0 if direction == "minimize" else -1.0
    found = {}
    for name, sampler in [("sumbo", SumboSampler(seed=1)), ("random", optuna.samplers.RandomSampler(seed=1))]:
        study = study_of(sampler, direction=direction)
        study.optimize(lambda trial: sign * mixed(trial), n_trials=45)
        found[name] = sign * study.best_value
    assert found["sumbo"] < 0.5 * found["random"]


def test_every_value_is_one_that_the_distribution_allows():
    study = study_of()
    study.optimize(mixed, n_trials=25)
    for trial in study.trials:
        for name, distribution in MIXED.items():
            create_trial(params={name: trial.params[name]}, distributions={name: distribution}, value=0.0)  # or raises
        assert type(trial.params["d"]) is int
        assert type(trial.params["c"]) is float
        assert trial.params["c"] == round(trial.params["c"], 1)  # as one writes it: 0.3, never 0.30000000000000004


@pytest.mark.parametrize("method", sorted(sumbo.methods.METHODS))
def test_every_method_runs_and_resumes(method):
    """What a method must remember, its notes included, is in the study and not in the sampler."""
    whole, part = study_of(SumboSampler(method=method, seed=2)), study_of()
    whole.optimize(bowl, n_trials=16)
    for _ in range(4):
        part.sampler = SumboSampler(method=method, seed=2)
        part.optimize(bowl, n_trials=4)
    assert points(part) == points(whole)


def test_methods_are_objects_too():
    study = study_of(SumboSampler(method=sumbo.AddGPUCB(group_size=2, n_init=4), seed=0))
    study.optimize(bowl, n_trials=8)
    assert len(study.trials) == 8


# --- the same again ---------------------------------------------------------------------------------------------

_CONTINUE = """
import optuna, sys
from sumbo.integrations.optuna import SumboSampler
optuna.logging.set_verbosity(optuna.logging.ERROR)
sys.path.insert(0, {here!r})
from test_optuna import mixed
study = optuna.load_study(study_name="s", storage={path!r}, sampler=SumboSampler(seed=3))
study.optimize(mixed, n_trials=12)
"""


def test_a_new_process_goes_on_exactly_as_the_old_one_would_have(tmp_path):
    whole = study_of(SumboSampler(seed=3))
    whole.optimize(mixed, n_trials=36)
    path = f"sqlite:///{tmp_path / 'study.db'}"
    part = study_of(SumboSampler(seed=3), storage=path, study_name="s")
    part.optimize(mixed, n_trials=24)
    here = str(Path(__file__).parent)
    subprocess.run([sys.executable, "-c", _CONTINUE.format(here=here, path=path)], check=True)
    assert points(part) == points(whole)


def conditional(trial):
    x = trial.suggest_float("x", 0, 1)
    if trial.suggest_categorical("kind", ["p", "q"]) == "p":
        return x + 10 * (trial.suggest_float("p", 0, 1) - 0.3) ** 2
    return x + trial.suggest_int("q", 0, 5)


def conditions_of(study):
    return Translation.of(searched_distributions(study.trials), study.trials).conditions


def test_conditional_parameters_resume_too(tmp_path):
    objective = conditional
    whole = study_of(SumboSampler(seed=4))
    whole.optimize(objective, n_trials=20)
    path = f"sqlite:///{tmp_path / 'study.db'}"
    for _ in range(2):
        part = study_of(SumboSampler(seed=4), storage=path, study_name="s", load_if_exists=True)
        part.optimize(objective, n_trials=10)
    assert points(part) == points(whole)
    assert conditions_of(part) == {"p": ("kind", [0]), "q": ("kind", [1])}


def test_conditional_parameters_are_learned():
    study = study_of()
    study.optimize(conditional, n_trials=40)
    assert study.best_value < 0.01
    errors = [abs(trial.params["p"] - 0.3) for trial in study.trials[20:] if "p" in trial.params]
    assert np.mean(errors) < 0.1  # 0.29 by chance


MODELS = {"a": (2, 0.6), "b": (3, 0.33), "c": (4, 0.07)}  # the more parameters, the better, once they are set right


def model(trial):
    name = trial.suggest_categorical("model", list(MODELS))
    size, least = MODELS[name]
    values = [trial.suggest_float(f"{name}{i}", 0, 1) for i in range(size)]
    return least + sum(2.2 * (value - 0.2 - 0.15 * i) ** 2 for i, value in enumerate(values))


@pytest.mark.parametrize("seed", range(3))
def test_the_best_of_three_models_is_found_and_set_right(seed):
    study = study_of(SumboSampler(seed=seed))
    study.optimize(model, n_trials=40)
    assert study.best_value < 0.08  # TPE has 0.13 after 60, on average
    tried = [trial.params["model"] for trial in study.trials]
    assert min(tried.count(name) for name in MODELS) >= 3  # none was given up before anything was learned of it


def deep(trial):
    """Conditions on conditions, on whole numbers, and on what no single parameter tells."""
    x, n = trial.suggest_float("x", 0, 1), trial.suggest_int("n", 1, 4)
    value = x + sum(trial.suggest_float(f"unit{i}", 0, 1) for i in range(n))
    if trial.suggest_categorical("kind", ["p", "q", "r"]) != "r":
        value += trial.suggest_float("rate", 1e-3, 1, log=True)
        if trial.suggest_categorical("deep", [False, True]):
            value += trial.suggest_float("deeper", 0.1, 0.7, step=0.1)
    return value + (trial.suggest_float("y", 0, 1) if x > 0.5 else 0.0)


def test_conditions_are_inferred_from_trials():
    study = study_of(optuna.samplers.RandomSampler(seed=0))
    study.optimize(deep, n_trials=60)
    units = {"unit1": ("n", [2, 3, 4]), "unit2": ("n", [3, 4]), "unit3": ("n", [4])}
    kinds = {"rate": ("kind", [0, 1]), "deep": ("kind", [0, 1]), "deeper": ("deep", [1])}
    assert conditions_of(study) == units | kinds | {"y": None}
    translation = Translation.of(searched_distributions(study.trials), study.trials)
    units = translation.units([trial.params for trial in study.trials])
    for trial, unit in zip(study.trials, units, strict=True):
        assert translation.params(unit) == pytest.approx({"y": 0.5} | trial.params)
    boxes = Translation.of(searched_distributions(study.trials), study.trials, only_boxes=True)
    assert set(boxes.conditions.values()) == {None}
    assert not boxes.space.conditional


@pytest.mark.parametrize("method", sorted(sumbo.methods.METHODS))
def test_every_method_takes_conditions_and_resumes(method):
    whole, part = study_of(SumboSampler(method=method, seed=2)), study_of()
    whole.optimize(deep, n_trials=14)
    for _ in range(2):
        part.sampler = SumboSampler(method=method, seed=2)
        part.optimize(deep, n_trials=7)
    assert points(part) == points(whole)


def test_a_suggestion_has_all_parameters_of_its_branch():
    study = study_of()
    study.optimize(model, n_trials=8)
    alone = []

    class Spy(SumboSampler):
        def sample_independent(self, study, trial, param_name, param_distribution):
            alone.append(param_name)
            return super().sample_independent(study, trial, param_name, param_distribution)

    study.sampler = Spy(seed=0)
    study.optimize(model, n_trials=10)
    assert alone == []


@pytest.mark.parametrize("seed", range(5))
def test_every_branch_is_tried_soon_and_begins_in_the_middle(seed):
    study = study_of(SumboSampler(seed=seed))
    study.optimize(model, n_trials=6)
    first = {}
    for trial in study.trials:
        first.setdefault(trial.params["model"], [value for name, value in trial.params.items() if name != "model"])
    assert first == {name: [0.5] * size for name, (size, _) in MODELS.items()}


def test_workers_that_begin_at_once_are_spread_though_nothing_is_known():
    study = study_of()
    trials = [study.ask() for _ in range(6)]
    assert len({trial.suggest_float("x", 0, 1) for trial in trials}) == 6


def test_an_enqueued_branch_gets_its_other_parameters_from_the_model():
    study = study_of()
    study.optimize(model, n_trials=10)
    study.enqueue_trial({"model": "a", "a1": 0.125})
    study.enqueue_trial({"b2": 0.25})  # implies the model
    first, second = study.ask(), study.ask()
    assert first.relative_params.keys() == {"model", "a0", "a1"}
    assert first.relative_params["a1"] == 0.125
    assert second.relative_params.keys() == {"model", "b0", "b1", "b2"}


def test_a_branch_that_always_fails_is_left():
    def objective(trial):
        if trial.suggest_categorical("kind", ["p", "q"]) == "q":
            trial.suggest_float("q", 0, 1)
            raise ValueError
        return trial.suggest_float("p", 0, 1)

    study = study_of()
    study.optimize(objective, n_trials=30, catch=ValueError)
    assert conditions_of(study) == {"q": ("kind", [1])}  # no completed trial shows that p may lack
    assert sum(trial.state == TrialState.FAIL for trial in study.trials[10:]) <= 6


def test_parameters_that_come_and_go_break_nothing():
    study = study_of()
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1) + trial.suggest_float("old", 0, 1), n_trials=10)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 2) + trial.suggest_float("new", 0, 1), n_trials=14)
    translation = Translation.of(searched_distributions(study.trials), study.trials)
    assert translation.space.names == ("new", "x")
    assert study.best_value < 0.05


def ordinary(trial):
    x = trial.suggest_float("x", 0, 1)
    if trial.number % 5 == 1:
        raise ValueError("early")
    y = trial.suggest_float("y", 0, 1)
    if trial.number % 5 == 2:
        raise optuna.TrialPruned
    return x + y + trial.suggest_int("n", 1, 3)


@pytest.mark.parametrize("jobs", [1, 3])
def test_parameters_that_trials_end_before_have_no_condition(jobs):
    study = study_of(SumboSampler(method="random", seed=0))
    study.enqueue_trial({"y": 0.5})
    study.optimize(ordinary, n_trials=20, n_jobs=jobs, catch=ValueError)
    assert study.best_value < 3
    assert conditions_of(study) == {}


def test_seeds_differ():
    first, second = study_of(SumboSampler(seed=0)), study_of(SumboSampler(seed=1))
    for study in (first, second):
        study.optimize(bowl, n_trials=4)
    assert not set(points(first)[1:]) & set(points(second)[1:])
    assert points(first)[0] == points(second)[0] == (("x0", 0.0), ("x1", 0.0), ("x2", 0.0))  # the middle


def test_a_pickled_sampler_goes_on():
    study, twin = study_of(), study_of()
    study.optimize(bowl, n_trials=14)
    twin.optimize(bowl, n_trials=12)
    twin.sampler = pickle.loads(pickle.dumps(twin.sampler))
    twin.optimize(bowl, n_trials=2)
    assert points(study) == points(twin)


def waves(trial):
    """Four parameters with two bottoms each: after twenty trials there is still much to explore."""
    x = [trial.suggest_float(f"x{i}", 0, 1) for i in range(4)]
    return sum(np.sin(9 * value + i) + value for i, value in enumerate(x))


def test_the_last_trials_of_a_known_budget_are_asked_as_by_an_optimizer():
    sampler = pickle.loads(pickle.dumps(SumboSampler(seed=0, budget=20)))
    study = study_of(sampler)
    study.optimize(waves, n_trials=20)
    other = study_of(SumboSampler(seed=0))
    other.optimize(waves, n_trials=20)
    assert points(study)[:19] == points(other)[:19]  # up to the last twentieth
    assert points(study)[19:] != points(other)[19:]  # in a search that has found its bottom they may be the same


def test_one_sampler_serves_two_studies():
    sampler = SumboSampler(seed=0)
    first, second = study_of(sampler), study_of(sampler)
    for _ in range(13):
        first.optimize(bowl, n_trials=1)
        second.optimize(lambda trial: -bowl(trial), n_trials=1)
    alone = study_of(SumboSampler(seed=0))
    alone.optimize(bowl, n_trials=13)
    assert points(first) == points(alone)


# --- trials that are not ordinary ones --------------------------------------------------------------------------


def query_of(study, of=sumbo.Random):
    """What the method is asked at the next trial."""
    asked = []

    class Spy(of):
        def suggest(self, query):
            asked.append(query)
            return super().suggest(query)

    study.sampler = SumboSampler(method=Spy(), seed=0)
    study.ask(searched_distributions(study.trials))
    return asked[0]


UNIT = {"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(0.0, 1.0)}


def add(study, x, y, value=None, state=TrialState.COMPLETE, space=UNIT, **kwargs):
    study.add_trial(create_trial(params={"x": x, "y": y}, distributions=space, value=value, state=state, **kwargs))


def constrained(value):
    """As Optuna keeps it since version 5, and before."""
    if hasattr(FrozenTrial, "constraints"):
        return {"constraints": {"weight": value}}
    return {"system_attrs": {"constraints": [value]}}


def test_enqueued_trials_are_data():
    study = study_of()
    study.enqueue_trial({"x0": 1.0, "x1": 2.0, "x2": 3.0})
    study.optimize(bowl, n_trials=2)
    assert study.trials[0].params == {"x0": 1.0, "x1": 2.0, "x2": 3.0}
    np.testing.assert_allclose(query_of(study).X[0], [0.6, 0.7, 0.8])


def test_what_an_enqueued_trial_leaves_open_is_suggested_and_its_place_is_known():
    study = study_of()
    study.optimize(bowl, n_trials=12)
    study.enqueue_trial({"x1": -5.0})
    trial = study.ask()
    trial.suggest_float("x0", -5, 5)  # the others are not stored as yet
    query = query_of(study)
    assert query.pending.shape == (1, 3)
    assert query.pending[0, 1] == 0.0
    assert query.pending[0, 0] == pytest.approx((trial.params["x0"] + 5) / 10)


def test_failed_trials_are_told_as_failures():
    study = study_of(direction="maximize")
    add(study, 0.1, 0.2, 3.0)
    add(study, 0.5, 0.5, None, TrialState.FAIL)
    add(study, 0.6, 0.6, float("inf"))
    add(study, 0.7, 0.7, 5.0, **constrained(0.1))
    add(study, 0.8, 0.8, 5.0, **constrained(-0.1))
    query = query_of(study)
    np.testing.assert_allclose(query.X[:, 0], [0.1, 0.5, 0.6, 0.7, 0.8])
    np.testing.assert_array_equal(query.y, [3.0, np.nan, np.nan, 5.0, 5.0])
    np.testing.assert_array_equal(query.constraints, [[np.nan], [np.nan], [np.nan], [0.1], [-0.1]])
    query = query_of(study, of=sumbo.GPEI)  # which learns no constraints
    np.testing.assert_array_equal(query.y, [3.0, np.nan, np.nan, np.nan, 5.0])
    assert query.constraints is None


def test_failures_keep_the_search_away():
    def objective(trial):
        x = [trial.suggest_float(f"x{i}", 0, 1) for i in range(3)]
        if x[0] > 0.7:
            raise RuntimeError("the simulator crashed")
        return -sum(x)

    study = study_of()
    study.optimize(objective, n_trials=50, catch=RuntimeError)
    failed = [trial.state == TrialState.FAIL for trial in study.trials]
    assert sum(failed[:25]) > 0
    assert sum(failed[25:]) <= 5  # the optimum is at the edge of where it fails
    assert study.best_value < -2.6


@pytest.mark.parametrize("error", [ValueError, optuna.TrialPruned])
def test_trials_that_fail_before_they_ask_for_everything_keep_the_search_away_too(error):
    def f(trial):
        x = trial.suggest_float("x", 0, 1)
        if x < 0.2:
            raise error
        return x + trial.suggest_float("y", 0, 1)

    study = study_of(SumboSampler(seed=0))
    study.optimize(f, n_trials=40, catch=ValueError)
    ended = [trial.state == TrialState.COMPLETE for trial in study.trials]
    assert sum(ended) > 20  # before: 7, all others failed close to x = 0


def test_a_study_with_trials_that_failed_early_goes_on_as_it_would_have():
    def f(trial):
        if trial.suggest_float("x", 0, 1) < 0.3:
            raise ValueError
        return trial.params["x"] + trial.suggest_int("n", 1, 30) + len(trial.suggest_categorical("c", ["a", "bb"]))

    whole, parts = study_of(SumboSampler(seed=1)), study_of(SumboSampler(seed=1))
    whole.optimize(f, n_trials=24, catch=ValueError)
    for _ in range(2):
        parts.sampler = SumboSampler(seed=1)
        parts.optimize(f, n_trials=12, catch=ValueError)
    assert [trial.params for trial in parts.trials] == [trial.params for trial in whole.trials]


def test_pruned_trials_count_as_no_better_than_the_median():
    study = study_of()
    for i, value in enumerate([1.0, 2.0, 3.0]):
        add(study, 0.1 * i, 0.5, value)
    add(study, 0.5, 0.5, 9.0, TrialState.PRUNED, intermediate_values={1: 9.0})
    add(study, 0.6, 0.5, 0.5, TrialState.PRUNED, intermediate_values={1: 0.5})  # flattering
    add(study, 0.7, 0.5, None, TrialState.PRUNED)
    np.testing.assert_array_equal(query_of(study).y, [-1.0, -2.0, -3.0, -9.0, -2.0, np.nan])


def test_pruning_in_a_study():
    def objective(trial):
        value = bowl(trial)
        for step in range(3):
            trial.report(value + 3 - step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    study = study_of(pruner=optuna.pruners.MedianPruner(n_startup_trials=3))
    study.optimize(objective, n_trials=30)
    assert any(trial.state == TrialState.PRUNED for trial in study.trials)
    assert study.best_value < 2.0


def test_hyperband_shows_the_sampler_parts_of_the_study():
    def objective(trial):
        value = bowl(trial)
        for step in range(9):
            trial.report(value + 1.0 / (step + 1), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    study = study_of(pruner=optuna.pruners.HyperbandPruner(max_resource=9))
    study.optimize(objective, n_trials=25)
    assert len(study.trials) == 25


# --- constraints ------------------------------------------------------------------------------------------------


def product(trial):
    x, y = trial.suggest_float("x", 0, 5), trial.suggest_float("y", 0, 5)
    trial.set_user_attr("product", x * y)
    return x**2 + y**2


def at_least_four(trial):
    return [4 - trial.user_attrs["product"]]


@pytest.mark.parametrize("seed", range(2))
def test_constraints_are_learned(seed):
    study = study_of(pickle.loads(pickle.dumps(SumboSampler(seed=seed, constraints_func=at_least_four))))
    study.optimize(product, n_trials=40)
    feasible = [trial for trial in study.trials if at_least_four(trial)[0] <= 0]
    assert min(trial.value for trial in feasible) <= 8.01
    view = sumbo.report.from_optuna(study)
    best = min(feasible, key=lambda trial: trial.value)
    assert (view.best.number, view.best.constraints) == (best.number, {"c0": at_least_four(best)[0]})


@pytest.mark.skipif(not hasattr(FrozenTrial, "constraints"), reason="of Optuna 5")
def test_constraints_by_whatever_means_are_the_same():
    def objective(trial):
        value = product(trial)
        trial.set_constraint("product", 4 - trial.user_attrs["product"])
        return value

    one, other = study_of(), study_of(SumboSampler(seed=0, constraints_func=at_least_four))
    one.optimize(objective, n_trials=16)
    other.optimize(product, n_trials=16)
    assert points(one) == points(other)
    assert one.best_value == other.best_value
    with warnings.catch_warnings(action="ignore"):  # constraints_func is deprecated there
        theirs = optuna.samplers.TPESampler(seed=0, constraints_func=at_least_four)
    study = study_of(theirs)
    study.optimize(product, n_trials=5)
    amounts = [at_least_four(trial) for trial in study.trials]
    np.testing.assert_array_equal(query_of(study).constraints, amounts)


def test_constraints_resume(tmp_path):
    whole = study_of(SumboSampler(seed=1, constraints_func=at_least_four))
    whole.optimize(product, n_trials=20)
    path = f"sqlite:///{tmp_path / 'study.db'}"
    for _ in range(2):
        sampler = SumboSampler(seed=1, constraints_func=at_least_four)
        part = study_of(sampler, storage=path, study_name="s", load_if_exists=True)
        part.optimize(product, n_trials=10)
    assert points(part) == points(whole)


@pytest.mark.skipif(not hasattr(FrozenTrial, "constraints"), reason="of Optuna 5")
def test_constraints_that_come_late_are_missing_or_infinite_are_unknown():
    def objective(trial):
        value = product(trial)
        if trial.number % 3 != 1:
            trial.set_constraint("product", np.inf if trial.number == 9 else 4 - trial.user_attrs["product"])
        if trial.number > 15:
            trial.set_constraint("late", trial.params["x"] - 4)
        return value

    study = study_of()
    study.optimize(objective, n_trials=20)
    (amounts,) = query_of(study).constraints.T
    assert np.isnan(amounts).tolist() == [n % 3 == 1 or n == 9 for n in range(20)]
    add(study, 4.5, 1.0, 1.0, space={"x": FloatDistribution(0, 5), "y": FloatDistribution(0, 5)}, **constrained(0.5))
    assert np.isnan(query_of(study).y[-1])  # it breaks one that few trials have


@pytest.mark.skipif(not hasattr(FrozenTrial, "constraints"), reason="of Optuna 5")
def test_constraints_of_running_trials_alone_are_not_learned_yet():
    study = study_of()
    study.optimize(product, n_trials=9)
    running = study.ask()
    running.set_constraint("late", 1.0)
    assert query_of(study).constraints is None
    study.sampler = SumboSampler(seed=0)
    study.optimize(product, n_trials=1)


def test_every_method_takes_constraints():
    for method in sorted(sumbo.methods.METHODS):
        study = study_of(SumboSampler(method=method, seed=0, constraints_func=at_least_four))
        study.optimize(product, n_trials=10)
        assert len(study.trials) == 10


# --- spaces that change -----------------------------------------------------------------------------------------


def test_a_new_range_is_searched_and_values_outside_it_are_left_out():
    study = study_of()
    for x in (0.1, 0.5, 0.9):
        add(study, x, x, x)
    narrow = UNIT | {"x": FloatDistribution(0.4, 1.0)}
    for x in (0.6, 0.7):
        add(study, x, x, x, space=narrow)
    assert searched_distributions(study.trials) == narrow
    query = query_of(study)
    np.testing.assert_allclose(query.y, [-0.5, -0.9, -0.6, -0.7])
    np.testing.assert_allclose(query.X[:, 0], (np.array([0.5, 0.9, 0.6, 0.7]) - 0.4) / 0.6)


def test_a_range_that_keeps_changing_is_not_modelled():
    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        return x + trial.suggest_float("y", 0, 1 + x)

    study = study_of()
    study.optimize(objective, n_trials=15)
    assert set(searched_distributions(study.trials)) == {"x"}


def test_a_resumed_study_with_a_wider_range_finds_what_is_there():
    study = study_of()
    study.optimize(lambda trial: -trial.suggest_float("x", 0, 1) - trial.suggest_float("y", 0, 1), n_trials=15)
    study.optimize(lambda trial: -trial.suggest_float("x", 0, 4) - trial.suggest_float("y", 0, 1), n_trials=15)
    assert study.best_value < -4.9


def test_ranges_beyond_sumbo_are_left_to_chance():
    huge = IntDistribution(0, 2**60)
    assert parameter(huge) is None
    study = study_of()
    study.optimize(lambda trial: trial.suggest_int("n", 0, 2**60) / 2**60 + trial.suggest_float("x", 0, 1), n_trials=13)
    assert len({trial.params["n"] for trial in study.trials}) == 13


@pytest.mark.parametrize("name", MIXED)
def test_translation_goes_both_ways(name):
    translation = Translation.of({name: MIXED[name]})
    for u in np.linspace(0.0, 1.0, 41):
        params = translation.params(np.array([u]))
        (unit,) = translation.units([params])
        assert translation.params(unit) == params
        numbers = translation.space.from_array(translation.array(params))
        np.testing.assert_array_equal(translation.space.to_unit(numbers), unit)


def test_translation_refuses_what_is_outside():
    translation = Translation.of(MIXED)
    inside = {"a": 0.0, "b": 1e-3, "c": 0.3, "d": 3, "e": 10, "f": 2, "g": None}
    outside = [inside | value for value in ({"a": 1.5}, {"c": 0.35}, {"d": 8}, {"f": 3}, {"g": "tanh"}, {"b": 1.0})]
    units = translation.units([*outside, inside, {"a": 0.0}, inside])
    assert [unit is None for unit in units] == [True] * 6 + [False, True, False]
    np.testing.assert_array_equal(units[6], units[8])


# --- many at once -----------------------------------------------------------------------------------------------


def test_asking_ahead_gives_points_that_differ_and_are_taken_into_account():
    study = study_of()
    study.optimize(lambda trial: trial.suggest_int("i", 0, 30) + trial.suggest_int("j", 0, 1), n_trials=12)
    space = {"i": IntDistribution(0, 30), "j": IntDistribution(0, 1)}
    for _ in range(20):
        study.ask(space)
    assert len(set(points(study)[12:])) == 20
    assert not set(points(study)[1:12]) & set(points(study)[12:])


def test_the_first_trials_of_many_workers_are_spread():
    study = study_of()
    space = {"x": FloatDistribution(0, 1), "y": FloatDistribution(0, 1)}
    for _ in range(9):
        study.ask(space)
    later = np.array([[trial.params["x"], trial.params["y"]] for trial in study.trials[1:]])
    for column in later.T:  # Sobol, clear of the faces: one of eight in every quarter but for its start
        assert np.histogram(column, bins=4, range=(0.2, 0.8))[0].min() >= 1


def test_threads_share_a_sampler():
    running, most = [0, 0], threading.Lock()

    def objective(trial):
        with most:
            running[0] += 1
            running[1] = max(running)
        value = mixed(trial)
        threading.Event().wait(0.01)
        with most:
            running[0] -= 1
        return value

    study = study_of()
    study.optimize(objective, n_trials=32, n_jobs=4)
    assert running[1] > 1
    assert all(trial.state == TrialState.COMPLETE for trial in study.trials)
    assert len(set(points(study))) == 32


_WORKER = """
import optuna, sys
from sumbo.integrations.optuna import SumboSampler
optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.load_study(study_name="s", storage=sys.argv[1], sampler=SumboSampler(seed=0))
study.optimize(lambda t: abs(t.suggest_int("i", 0, 4) - 2) + abs(t.suggest_int("j", 0, 4) - 2), n_trials=10)
"""


def test_two_processes_never_get_the_same_point(tmp_path):
    """There are 25 points in all: two workers that know nothing of each other would collide at once."""
    path = f"sqlite:///{tmp_path / 'study.db'}"
    study = study_of(storage=path, study_name="s")
    study.ask({"i": IntDistribution(0, 4), "j": IntDistribution(0, 4)})
    workers = [subprocess.Popen([sys.executable, "-c", _WORKER, path]) for _ in range(2)]
    assert [worker.wait(timeout=300) for worker in workers] == [0, 0]
    assert len(study.trials) == len(set(points(study))) == 21


class Centre(sumbo.Random):
    def suggest(self, query):
        return sumbo.methods.Suggestion(query.space.to_unit({"i": 4, "j": 4}))


def test_of_two_that_choose_the_same_point_one_moves_on():
    """The other worker writes its point between this one's look at the study and its own claim."""
    storage = optuna.storages.InMemoryStorage()
    study = study_of(storage=storage, study_name="s")
    space = {"i": IntDistribution(0, 9), "j": IntDistribution(0, 9)}
    for _ in range(3):
        study.tell(study.ask(space), 1.0)
    other = optuna.load_study(study_name="s", storage=storage, sampler=SumboSampler(method=Centre(), seed=0))

    class Late(Centre):
        def suggest(self, query):
            theirs.append(other.ask(space).params)
            return super().suggest(query)

    theirs = []
    study.sampler = SumboSampler(method=Late(), seed=0)
    assert study.ask(space).params != {"i": 4, "j": 4}
    assert theirs == [{"i": 4, "j": 4}]


def test_a_point_is_taken_before_its_parameters_are_stored():
    """Of 70 trials that have asked for one parameter only, for this sampler and for another worker's."""
    storage = optuna.storages.InMemoryStorage()
    study = study_of(SumboSampler(method=Centre(), seed=0), storage=storage, study_name="s")
    space = {"i": IntDistribution(0, 9), "j": IntDistribution(0, 9)}
    for _ in range(2):
        study.tell(study.ask(space), 1.0)
    trials = [study.ask() for _ in range(70)]
    for trial in trials:
        trial.suggest_int("i", 0, 9)
    other = optuna.load_study(study_name="s", storage=storage, sampler=SumboSampler(method=Centre(), seed=0))
    trials += [other.ask() for _ in range(10)]
    for trial in trials:
        trial.suggest_int("i", 0, 9)
        trial.suggest_int("j", 0, 9)
    here = [tuple(trial.params.values()) for trial in trials]
    assert len(set(here[:70])) == 70
    assert len(set(here[6:])) == 74  # the attributes have the last 64 of them


def test_a_space_that_is_used_up_repeats_rather_than_stops():
    study = study_of()
    study.optimize(lambda trial: trial.suggest_int("i", 0, 2), n_trials=8)
    assert {trial.params["i"] for trial in study.trials} == {0, 1, 2}


# --- what is kept -----------------------------------------------------------------------------------------------


def kept_by(study):
    """The attributes and how many bytes each takes as JSON."""
    return {key: len(json.dumps(value)) for key, value in study.user_attrs.items()}


def test_large_records_are_cut_into_pieces_that_mysql_takes():
    study = study_of()
    data = ['"\\' * 10, *np.random.default_rng(0).random(5000).tolist()]
    attributes = Attributes(study, {})
    attributes.write("key", data)
    assert attributes.read("key") is None  # as of the last look
    attributes.refresh()
    assert attributes.read("key") == data
    assert len(kept_by(study)) > 2
    assert max(kept_by(study).values()) < 65_535


@pytest.mark.parametrize("change", [None, [1], ["digest", 3, "text"], "edited"])
def test_a_record_that_is_being_written_is_not_read(change):
    study = study_of()
    attributes = Attributes(study, {})
    attributes.write("key", ["x" * 70_000])
    study.set_user_attr("key:1", change)
    attributes.refresh()
    assert attributes.read("key") is None


def test_a_thousand_parameters():
    """Their model is more than MySQL takes in one attribute."""
    study = study_of(SumboSampler(method=sumbo.Auto(n_init=3), seed=0))
    space = {f"x{i:04}": FloatDistribution(0, 1) for i in range(1000)}
    for i in range(4):
        study.add_trial(create_trial(params=dict.fromkeys(space, 0.1 * i), distributions=space, value=float(i)))
    assert study.ask(space).params.keys() == space.keys()
    assert sum(size for key, size in kept_by(study).items() if key.startswith("sumbo:state")) > 65_535
    assert max(kept_by(study).values()) < 65_535


def test_attributes_do_not_grow_with_the_study():
    study = study_of(SumboSampler(method=sumbo.Auto(n_init=4), seed=0))
    sizes = []
    for n_trials in (70, 8):
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1) + trial.suggest_int("i", 0, 200), n_trials=n_trials)
        sizes.append(len(study.user_attrs))
    assert sizes[0] == sizes[1] <= 64 + 4


NOON = datetime(2020, 1, 1, 12)


def trial_of(rng, state):
    trial = create_trial(
        state=state,
        value=rng.random() if state == TrialState.COMPLETE else None,
        params={name: rng.uniform(0.0, 1.1) for name in UNIT},  # now and then beyond the present range
        distributions={name: FloatDistribution(0.0, 2.0) for name in UNIT},
    )
    if state == TrialState.PRUNED:
        trial.value = rng.random()
    return trial


def test_a_study_that_is_read_step_by_step_is_the_one_that_is_read_at_once():
    states = (TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED, TrialState.RUNNING)
    for seed in range(5):
        rng = random.Random(seed)
        trials, reader = [], ledger_of()
        for _ in range(60):
            for i, trial in enumerate(trials):
                if trial.state == TrialState.RUNNING and rng.random() < 0.4:
                    trials[i] = finished(trial, trial_of(rng, rng.choice(states[:3])), i, rng)
            trials.append(finished(None, trial_of(rng, rng.choice(states)), len(trials), rng))
            own = rng.choice([None, len(trials) - 1, 0])
            assert reader.continued_by(trials)
            assert_same(reader, list(trials), own)
        other = [*trials[:20], finished(trials[20], trial_of(rng, TrialState.COMPLETE), 20, rng), *trials[21:]]
        assert not reader.continued_by(other)
        assert not reader.continued_by(trials[:-1])


def finished(before, trial, number, rng):
    trial.number = number
    trial.datetime_start = NOON if before is None else before.datetime_start
    if trial.state.is_finished():
        trial.datetime_complete = NOON + timedelta(seconds=number + rng.choice([0, 0, 0, 5]))  # not always in order
    return trial


def ledger_of():
    return StudyLedger(Translation.of(UNIT), sumbo.Random(), "minimize")


def assert_same(reader, trials, own):
    nothing, at_once = Attributes(study_of(), {}), ledger_of()
    for ledger in (reader, at_once):
        ledger.read(trials, nothing, own)
    found, expected = reader.history(None), at_once.history(None)
    for name in ("X", "y", "pending"):
        np.testing.assert_array_equal(found[name], expected[name])
    for name in ("candidate_metadata", "pending_metadata", "number", "state"):
        assert found[name] == expected[name]
    assert reader.taken_by_others() == at_once.taken_by_others()
    inside = [t for t in trials if max(t.params.values()) <= 1.0]
    told = sorted((t for t in inside if t.state.is_finished()), key=lambda t: (t.datetime_complete, t.number))
    running = [t for t in inside if not t.state.is_finished() and t.number != own]
    for X, of in ((found["X"], told), (found["pending"], running)):
        np.testing.assert_array_equal(X, [[t.params["x"], t.params["y"]] for t in of] or np.empty((0, 2)))


def test_a_running_trial_that_changes_is_seen_where_it_is_now():
    ledger, study = ledger_of(), optuna.create_study()
    running, own = study.ask(), study.ask()

    def pending():
        ledger.read(study.get_trials(deepcopy=False), Attributes(study, {}), own.number)
        return ledger.history(None)["pending"]

    assert len(pending()) == 0  # it has no parameters yet
    x = running.suggest_float("x", 0.0, 1.0)
    assert len(pending()) == 0
    y = running.suggest_float("y", 0.0, 1.0)
    np.testing.assert_array_equal(pending(), [[x, y]])
    study.tell(running, 1.0)
    assert len(pending()) == 0


# --- the user's mistakes ----------------------------------------------------------------------------------------


def test_several_objectives_are_refused_with_advice():
    study = study_of(directions=["minimize", "maximize"])
    with pytest.raises(
        SettingError, match=r"one objective, and this study has 2: several are not built; .*NSGAIISampler"
    ):
        study.ask({"x": FloatDistribution(0, 1)})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "autoo"}, "Did you mean 'auto'"),
        ({"seed": -1}, "seed must be"),
        ({"seed": 1.5}, "seed must be"),
        ({"budget": 0}, "budget must be"),
        ({"constraints_func": [0.0]}, "constraints_func must be a function of a trial"),
        ({"independent_sampler": "tpe"}, "independent_sampler must be an Optuna sampler"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(SettingError, match=message):
        SumboSampler(**arguments)


def test_settings_that_do_not_fit_the_study_are_named():
    study = study_of(SumboSampler(method=sumbo.AddGPUCB(groups=((0, 1), (2, 3))), seed=0))
    with pytest.raises(SumboError, match="3"):
        study.optimize(bowl, n_trials=3)


def test_an_independent_sampler_of_ones_own():
    class Ones(optuna.samplers.RandomSampler):
        calls = 0

        def sample_independent(self, study, trial, param_name, param_distribution):
            return 1.0

        def reseed_rng(self):
            Ones.calls += 1

    study = study_of(SumboSampler(seed=0, independent_sampler=Ones()))
    study.optimize(bowl, n_trials=1)
    assert set(study.trials[0].params.values()) == {1.0}
    study.sampler.reseed_rng()
    assert Ones.calls == 1


def test_partial_fixed_sampling_still_models_the_rest():
    study = study_of()
    study.optimize(bowl, n_trials=12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study.sampler = optuna.samplers.PartialFixedSampler({"x0": 4.0}, study.sampler)
    study.optimize(bowl, n_trials=10)
    rest = [trial.value - 16.0 for trial in study.trials[12:]]
    assert {trial.params["x0"] for trial in study.trials[12:]} == {4.0}
    assert min(rest) < 1.0


# --- the interface ----------------------------------------------------------------------------------------------


def test_only_the_integration_knows_optuna_and_of_it_only_what_is_public():
    """Optuna is an extra, and its private modules and attributes may change with any version."""
    root = Path(sumbo.__file__).parent
    for path in root.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        named = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                named += [f"{node.module}.{alias.name}" for alias in node.names]
        theirs = [name.split(".") for name in named if name.split(".")[0] == "optuna"]
        inside = path.is_relative_to(root / "integrations" / "optuna")
        assert inside or not theirs, path
        assert not [name for name in theirs if any(part.startswith("_") for part in name)], path
        names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert not (inside and names & {"_storage", "_trial_id", "_study_id", "_cached_frozen_trial"}), path
