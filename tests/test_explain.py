"""What the model tells: tables by name, honest where there is little to tell."""

import builtins
import json
from functools import cache

import numpy as np
import pytest

import sumbo
from sumbo import AddGPUCB, Auto, Categorical, CyclicGroups, Float, Int, Optimizer, Space, SumboError, problems
from sumbo.errors import NotFittedError, SettingError
from sumbo.gp.additive import AdditiveGP

MIXED = Space(
    {
        "rate": Float(1e-4, 1.0, log=True),
        "width": Int(1, 64, log=True),
        "kind": Categorical(["plain", "deep", "wide"]),
        "drop": Float(0, 1),
        "idle": Float(0, 1),
    }
)


def mixed_value(p):
    """`kind` says which way `rate` counts: an interaction. `drop` adds to it, `width` a little, `idle` nothing."""
    way = {"plain": -1.0, "deep": 0.2, "wide": 1.0}[p["kind"]]
    return way * (np.log10(p["rate"]) + 2) + 1.5 * np.cos(6 * p["drop"]) + 0.02 * np.log2(p["width"])


def observed(space, value, n, method="auto", seed=0):
    opt = Optimizer(space, method, seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(n):
        params = opt.space.from_unit(rng.random(opt.space.dim))
        opt.observe(params, float(value(params)))
    return opt


@cache
def mixed_study(method="auto"):
    return observed(MIXED, mixed_value, 120, method)


def table(rows):
    return {frozenset((row.first, row.second)): row.probability for row in rows}


# --- interactions -----------------------------------------------------------------------------------------------------


def test_interacting_parameters_of_a_mixed_space_are_found():
    rows = mixed_study().interactions()
    assert len(rows) == 10
    assert {rows.rows[0].first, rows.rows[0].second} == {"rate", "kind"}
    assert rows.rows[0].probability > 0.9
    assert table(rows)[frozenset(("rate", "drop"))] < 0.5
    probabilities = [row.probability for row in rows]
    assert probabilities == sorted(probabilities, reverse=True)
    assert rows.observations == 120


def test_few_values_of_a_steep_sum_make_nobody_sure():
    # A search sees a few huge values and many near the best: no draw of a Gaussian process looks like that.
    found = sumbo.minimize(lambda x: float(((3 * x - 1) ** 4).sum()), [(0.0, 1.0)] * 6, 30, seed=1, progress=False)
    assert max(table(found.optimizer.interactions()).values()) < 0.9


@pytest.mark.parametrize("seed", range(3))
def test_with_few_values_nothing_is_sure(seed):
    f = AdditiveGP([(0, 1, 2), (3, 4, 5), (6, 7)], lengthscales=0.5).sample_path(np.random.default_rng(seed))
    opt = observed([(0, 1)] * 8, lambda p: f(np.array([list(p.values())]))[0], 15, seed=seed)
    assert max(row.probability for row in opt.interactions()) < 0.8


def test_noise_seldom_looks_like_an_interaction():
    rng = np.random.default_rng(0)
    studies = [observed([(0, 1)] * 8, lambda p: rng.standard_normal(), 40, seed=seed) for seed in range(4)]
    sure = [row for opt in studies for row in opt.interactions() if row.probability >= 0.9]
    assert len(sure) <= 2  # of 112 pairs


def test_what_was_declared_is_kept_to():
    found = table(
        mixed_study(Auto(together=[("width", "idle")], apart=[("rate", "kind")])).interactions(evaluations=2000)
    )
    assert found[frozenset(("width", "idle"))] == 1.0
    assert found[frozenset(("rate", "kind"))] == 0.0
    assert 0.0 < max(p for pair, p in found.items() if p < 1.0) < 1.0
    known = table(mixed_study(AddGPUCB(groups=[("rate", "drop")])).interactions())
    assert known.pop(frozenset(("rate", "drop"))) == 1.0
    assert set(known.values()) == {0.0}


def test_no_group_is_no_interaction():
    rows = mixed_study(Auto(max_group_size=1)).interactions()
    assert {row.probability for row in rows} == {0.0}
    assert len(observed([(0, 1)], lambda p: p["x0"], 12).interactions()) == 0


def test_the_answer_depends_on_the_values_only_and_comes_at_once_the_second_time():
    opt = observed(MIXED, mixed_value, 30)
    first = opt.interactions(evaluations=2000)
    assert opt.interactions(evaluations=2000) is first
    again = Optimizer.from_dict(json.loads(json.dumps(opt.to_dict())))
    again.ask()  # learns, and makes a point that is running
    assert again.interactions(evaluations=2000) == first
    opt.observe(MIXED.from_unit(np.full(5, 0.5)), 1.0)
    assert opt.interactions(evaluations=2000).observations == 31


@pytest.mark.parametrize("evaluations", [0, -5, 2.5, "many"])
def test_budgets_that_make_no_sense_are_refused(evaluations):
    with pytest.raises(SettingError, match="evaluations must be a whole number from 1 up"):
        mixed_study().interactions(evaluations=evaluations)


# --- importance -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "add-gp-ucb", "gp-ei", "gp-ucb", "cyclic-groups"])
def test_every_method_with_a_model_tells(method):
    found = mixed_study(method).importance()
    share = {row.parameters[0]: row.share for row in found.parameters}
    assert set(share) == set(MIXED.names)
    assert list(share)[:3] == sorted(list(share)[:3], key=lambda name: -share[name])
    assert {"drop", "kind", "rate"} == set(list(share)[:3])
    assert share["idle"] < 0.03
    assert share["width"] < 0.03
    assert sum(row.share for row in found.groups) + found.all_together.share == pytest.approx(1.0)
    assert found.all_together.parameters == MIXED.names
    assert 0.0 <= found.noise.share < 0.1
    assert all(row.std >= 0 for row in found)
    assert len(list(found)) == len(found)


def test_groups_go_by_name():
    found = mixed_study(AddGPUCB(groups=[("kind", "rate")])).importance()
    groups = {row.parameters: row.share for row in found.groups}
    assert set(groups) == {("kind", "rate"), ("drop",), ("width",), ("idle",)}
    # Var over the space: E[way^2] Var(log10 rate) = 0.68 * 4/3, and Var of 1.5 cos(6 u), plus a trace of `width`
    parts = np.array([(1 + 0.04 + 1) / 3 * 16 / 12, 2.25 * (0.5 + np.sin(12) / 24 - (np.sin(6) / 6) ** 2)])
    np.testing.assert_allclose([groups["kind", "rate"], groups["drop",]], parts / parts.sum(), atol=0.03)


def test_six_of_twelve_parameters_matter():
    problem = problems.get("hartmann6-12")
    opt = Optimizer(problem.space, direction=problem.direction, seed=0)
    for _ in range(80):  # with 60 there is a trace of the others in some runs
        trial = opt.ask()
        opt.tell(trial, float(problem(trial.params)))
    relevant = {problem.space.names[i] for i in problem.groups[0]}
    found = opt.importance().parameters
    assert {row.parameters[0] for row in found[:5]} <= relevant
    assert sum(row.share for row in found if row.parameters[0] not in relevant) < 0.1


def test_dummy_dimensions_do_not_matter():
    inner = problems.get("styblinski-tang-4")
    space = Space.from_bounds([(-5, 5)] * 16)
    names = [f"x{4 * i}" for i in range(4)]
    opt = observed(space, lambda p: inner({f"x{i}": p[name] for i, name in enumerate(names)}), 120)
    found = opt.importance()
    share = {row.parameters[0]: row for row in found.parameters}
    assert sum(row.share for name, row in share.items() if name not in names) < 0.02
    # the true shares, one dimension after the other: the function is a sum over these
    line = np.linspace(-5, 5, 2001)
    scans = [[inner({f"x{k}": float(x) if k == i else 0.0 for k in range(4)}) for x in line] for i in range(4)]
    expected = np.var(scans, axis=1) / np.sum(np.var(scans, axis=1))
    np.testing.assert_allclose([share[name].share for name in names], expected, atol=0.02)
    assert found.all_together.share < 0.05


# --- what cannot be told ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ask", [Optimizer.interactions, Optimizer.importance])
def test_too_few_values_are_said(ask):
    with pytest.raises(NotFittedError, match="There are 9 values so far, and at least 10 are needed"):
        ask(observed(MIXED, mixed_value, 9))


def test_a_search_without_a_model_is_explained_by_that_of_auto():
    opt = observed(MIXED, mixed_value, 12, "random")
    assert {row.parameters[0] for row in opt.importance().parameters} == set(MIXED.names)


def test_failed_trials_are_no_values():
    opt = observed(MIXED, mixed_value, 9)
    opt.observe(MIXED.from_unit(np.full(5, 0.5)), failed=True)
    with pytest.raises(NotFittedError, match="There are 9 values so far"):
        opt.importance()


def test_constant_values_have_nothing_to_explain():
    opt = observed(MIXED, lambda p: 3.0, 15)
    for ask in (opt.importance, opt.interactions):
        with pytest.raises(NotFittedError, match="All values are the same, so there is nothing to explain"):
            ask()


# --- tables -----------------------------------------------------------------------------------------------------------


def test_frames_have_the_rows():
    opt = mixed_study()
    frame = opt.interactions().to_frame()
    assert list(frame.columns) == ["first", "second", "probability"]
    assert frame.probability.tolist() == [row.probability for row in opt.interactions()]
    frame = opt.importance().to_frame()
    assert list(frame.columns) == ["kind", "parameters", "share", "std"]
    assert frame.kind.tolist().count("parameter") == 5
    assert frame.kind.tolist()[-2:] == ["all together", "noise"]
    assert frame.share.tolist() == [row.share for row in opt.importance()]


def test_without_pandas_there_is_a_clear_error(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "pandas":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    tables = mixed_study().interactions(), mixed_study().importance()
    monkeypatch.setattr(builtins, "__import__", without)
    for one in tables:
        with pytest.raises(SumboError, match="to_frame needs pandas, which is not installed; run pip install pandas"):
            one.to_frame()


def test_tables_print():
    lines = str(mixed_study().interactions()).splitlines()
    assert lines[0].split() == ["interacting", "probability"]
    assert lines[1].split() == ["rate,", "kind", "1.00"]
    assert len(lines[0]) == len(lines[1])  # columns line up
    assert lines[2:] == ["... and 9 more"]  # that would show as 0.00
    text = str(mixed_study().importance())
    assert "all together" in text
    assert "±" in text
    assert text.splitlines()[-1].startswith("noise: 0.0")
    many = observed([(0, 1)] * 30, lambda p: p["x3"], 12).importance()
    assert str(many).count("... and 10 more") == 2  # parameters, and groups


def test_wishes_inside_cyclic_groups_are_kept_to():
    opt = mixed_study(CyclicGroups(AddGPUCB(together=[("width", "idle")])))
    assert table(opt.interactions(evaluations=2000))[frozenset(("width", "idle"))] == 1.0


def test_a_sum_whose_values_are_warped_has_no_interactions():
    space = {"chord": sumbo.Float(1.0, 8.0, log=True), "a": sumbo.Float(0.0, 1.0)}
    result = sumbo.minimize(lambda p: (p["chord"] - 3.0) ** 2 + p["a"], space, 40, seed=0, progress=False)
    states = [trial["method_state"] or {} for trial in result.optimizer.to_dict()["trials"]]
    assert any(state.get("warped") for state in states)  # at some time; how long hangs on the last digits
    # Values as they were told, not warped ones, of which it was sure (1.0). The prior is about a half.
    assert next(iter(result.optimizer.interactions())).probability < 0.75
