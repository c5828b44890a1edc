"""How methods get their model: caches change its speed, never its values."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from sumbo import Optimizer, Space
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.decomposition import Decomposition
from sumbo.gp.fit import FitSettings
from sumbo.gp.outcome_transforms import OutcomeTransform
from sumbo.methods.base import Deadline, SuggestContext
from sumbo.methods.surrogate import (
    SurrogateSettings,
    is_better,
    learned_every,
    learned_geometrically,
    update_surrogate,
)

# --- queries made by hand -----------------------------------------------------------------------------------


def query(X, y, **changes):
    D = X.shape[1]
    made = SuggestContext(
        space=Space.from_bounds([(0.0, 1.0)] * D),
        X=X,
        y=y,
        pending=np.empty((0, D)),
        candidate_metadata=[None] * len(y),
        pending_metadata=[],
        number=len(y),
        rng=np.random.default_rng(0),
        study_rng=np.random.default_rng(1),
    )
    return replace(made, **changes)


def data(n, D=3, seed=0):
    X = np.random.default_rng(seed).random((n, D))
    return X, np.sin(5.0 * X).sum(axis=1)


def learning(due, D=3, **changes):
    settings = FitSettings(starts=1, evaluations=20)
    return replace(SurrogateSettings("matern52", settings, Decomposition.whole(D), None, due), **changes)


def same_model(a, b):
    grid = np.random.default_rng(9).random((20, a.decomposition.dim))
    return a.decomposition == b.decomposition and all(
        p.tobytes() == q.tobytes() for p, q in zip(a.posterior(grid), b.posterior(grid), strict=True)
    )


def test_a_failed_point_counts_as_the_worst():
    _X, y = data(4)
    y[2] = math.nan
    values = OutcomeTransform.of(y).s
    assert values[2] == values.min()
    assert np.isfinite(values).all()


def test_where_all_failed_there_is_nothing_to_learn():
    _X, _ = data(3)
    assert OutcomeTransform.of(np.full(3, math.nan)).s.tolist() == [0.0] * 3


# --- when ---------------------------------------------------------------------------------------------------


def test_learned_every():
    due = learned_every(5)
    assert [n for n in range(10, 30) if due(n, 10)] == list(range(15, 30))


def test_learned_geometrically():
    due = learned_geometrically(0.1, 2)
    assert not due(11, 10)
    assert due(12, 10)
    assert not due(109, 100)
    assert due(110, 100)


def test_hyperparameters_are_kept_until_learning_is_due():
    X, y = data(12)
    first, state = update_surrogate(query(X[:8], y[:8]), learning(learned_every(3)))
    second, kept = update_surrogate(query(X[:10], y[:10], state=state), learning(learned_every(3)))
    assert kept == state
    assert second.lengthscales.tolist() == first.lengthscales.tolist()
    third, changed = update_surrogate(query(X[:11], y[:11], state=state), learning(learned_every(3)))
    assert changed["learned_at"] == 11
    assert third.n == 11


def test_learning_is_put_off_when_a_deadline_is_near():
    X, y = data(12)
    _, state = update_surrogate(query(X[:8], y[:8]), learning(learned_every(1)))
    model, kept = update_surrogate(query(X, y, state=state, deadline=Deadline.after(0.0)), learning(learned_every(1)))
    assert kept == state
    assert model.n == 12


def test_the_search_spreads_out_until_there_are_enough_points():
    X, y = data(6)
    model, state = update_surrogate(query(X, y), learning(learned_every(3), explore_until=10))
    assert set(model.lengthscales.tolist()) == {1e-5}
    assert state == {}
    model, state = update_surrogate(query(*data(10)), learning(learned_every(3), explore_until=10))
    assert model.lengthscales.min() > 1e-4


@pytest.mark.parametrize("uneven", [True, False])
def test_lengthscales_are_freed_where_the_evidence_pays_for_them(uneven):
    X = np.random.default_rng(0).random((121, 6))
    weights = np.array([3.0, 0.3, 0.02, 0.02, 0.02, 0.02]) if uneven else np.ones(6)
    y = np.sin(4.0 * X @ weights)
    shrunk = FitSettings(starts=1, noise=1e-6)
    plan = learning(learned_every(10), D=6, fit=shrunk, free_fit=replace(shrunk, deviation_sd=1.0))
    _, state = update_surrogate(query(X[:120], y[:120]), plan)
    assert state["free_considered_at"] == 0  # a fit and a choice are no work for one suggestion
    second, state = update_surrogate(query(X, y, state=state), plan)
    assert state["free"] is uneven
    assert state["free_considered_at"] == 121
    spread = second.lengthscales.max() / second.lengthscales.min()
    assert spread > 10 if uneven else spread < 3
    again, kept = update_surrogate(query(X, y, state=state), plan)
    assert kept == state
    assert same_model(again, second)
    if uneven:  # and bound again where they bring nothing any more
        X, y = data(121, D=6, seed=1)
        _, state = update_surrogate(query(X, y, state={**state, "learned_at": 120, "free_considered_at": 50}), plan)
        assert not state["free"]


TAILS = {
    "heavy": lambda X: -np.exp(16.0 * np.abs(X - 0.5).mean(axis=1)),
    "kinked": lambda X: np.minimum(-np.square(X - 0.5).sum(axis=1), -3.0 * np.abs(X - 0.5).max(axis=1)),
    "smooth": lambda X: -np.square(X - 0.5).sum(axis=1),
}


@pytest.mark.parametrize(
    ("shape", "modest", "speaks_for_it", "predicts_better"),
    [
        ("heavy", 1.0, True, True),
        ("smooth", 1.0, False, False),
        ("kinked", 1.0, False, True),
        ("smooth", 1e-3, True, False),
    ],
)
def test_values_are_warped_where_evidence_and_prediction_both_speak_for_it(
    shape, modest, speaks_for_it, predicts_better
):
    X = np.random.default_rng(0).random((64, 2))
    X[32:] = 0.5 + 0.2 * (X[32:] - 0.5)
    transforms = [OutcomeTransform.of(TAILS[shape](X), warped=warped) for warped in (False, True)]
    blank = AdditiveGP([(0,), (1,)], full_order=True)
    settings = FitSettings(noise=1e-6, noise_sd=3.0, noise_bounds=(1e-12, 1.0))
    plain, warped = (replace(blank, outcome_transform=t).fit(X, t.z, settings=settings) for t in transforms)
    h = plain.hyperparameters  # a model that is too sure of itself predicts the same, but the evidence is against it
    h = replace(h, scales=modest * h.scales, noise_variance=modest**2 * h.noise_variance)
    plain = plain.with_hyperparameters(h).condition(X, plain.y)
    evidence = warped.log_marginal_likelihood() + transforms[1].log_slope - plain.log_marginal_likelihood()
    errors = [gp.outcome_transform.error_above_median(gp.leave_one_out()[0]) for gp in (plain, warped)]
    assert (evidence > 0.0, errors[1] < errors[0]) == (speaks_for_it, predicts_better)
    both = speaks_for_it and predicts_better
    assert is_better(warped, plain) is both
    assert is_better(plain, warped) is not both


def test_the_state_is_json():
    _, state = update_surrogate(query(*data(8)), learning(learned_every(3)))
    assert json.loads(json.dumps(state)) == state


def test_the_groups_chosen_are_those_of_the_model():
    wanted = Decomposition([(0,), (1, 2)])
    seen = []

    def choose(X, y, v, model, rng):
        assert v is None
        seen.append((X.shape, y.shape, model.n, rng.random()))
        return wanted

    model, state = update_surrogate(query(*data(9)), learning(learned_every(3), choose=choose))
    assert model.decomposition == wanted
    assert state["groups"] == [[0], [1, 2]]
    assert seen[0][:3] == ((9, 3), (9,), 9)


# --- caches -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learned_at", [1, 5, 8])
def test_a_model_grown_in_the_cache_is_the_one_rebuilt_from_the_state(learned_at):
    X, y = data(20)
    plan = learning(learned_every(100))
    cache, state = update_surrogate(query(X[:learned_at], y[:learned_at]), plan)
    for n in range(learned_at + 1, 21):
        q = query(X[:n], y[:n], state=json.loads(json.dumps(state)))
        cache, _ = update_surrogate(replace(q, cache=cache), plan)
        rebuilt, _ = update_surrogate(q, plan)
        assert same_model(cache, rebuilt)


def test_a_cache_of_other_data_is_not_used():
    X, y = data(15)
    plan = learning(learned_every(100))
    _, state = update_surrogate(query(X[:8], y[:8]), plan)
    other, _ = update_surrogate(query(X[::-1], y[::-1], state=state), plan)
    longer, _ = update_surrogate(query(X, y, state=state), plan)
    right, _ = update_surrogate(query(X[:12], y[:12], state=state), plan)
    regrouped, _ = update_surrogate(query(X[:12], y[:12]), learning(learned_every(100), start=Decomposition.apart(3)))
    for cache in (other, longer, regrouped):
        again, _ = update_surrogate(query(X[:12], y[:12], state=state, cache=cache), plan)
        assert same_model(again, right)


def test_a_late_change_of_an_early_value_is_seen():
    # A failed point counts as the worst value, which every new value may change.
    X, y = data(10)
    y[3] = math.nan
    y[9] = -50.0
    plan = learning(learned_every(100))
    cache, state = update_surrogate(query(X[:9], y[:9]), plan)
    again, _ = update_surrogate(query(X, y, state=state, cache=cache), plan)
    rebuilt, _ = update_surrogate(query(X, y, state=state), plan)
    assert same_model(again, rebuilt)
    assert again.y[3] == again.y[9] == again.y.min()


def test_running_points_change_the_uncertainty_but_not_the_mean():
    X, y = data(10)
    model, _ = update_surrogate(query(X, y), learning(learned_every(3)))
    point = np.array([[0.11, 0.93, 0.4]])
    both = model.hallucinate(point)
    assert model.hallucinate(query(X, y).pending) is model
    assert both.posterior(point)[0] == pytest.approx(model.posterior(point)[0], abs=1e-6)
    assert both.posterior(point)[1] < model.posterior(point)[1]


@pytest.mark.parametrize("method", ["auto", "add-gp-ucb"])
def test_suggestions_do_not_depend_on_the_cache(method):
    def value(trial):
        return float(np.cos(4.0 * trial.x).sum())

    warm = Optimizer([(0.0, 1.0)] * 4, method, seed=5)
    for _ in range(18):
        cold = Optimizer.from_dict(json.loads(json.dumps(warm.to_dict())))
        trial = warm.ask()
        assert cold.ask().x.tobytes() == trial.x.tobytes()
        warm.tell(trial, value(trial))


def test_looking_at_the_model_does_not_change_the_search():
    plain, watched = (Optimizer([(0.0, 1.0)] * 3, "auto", seed=2) for _ in range(2))
    for _ in range(15):
        _ = watched.model, watched.decomposition, watched.best
        a, b = plain.ask(), watched.ask()
        assert a.x.tobytes() == b.x.tobytes()
        plain.tell(a, float(a.x.sum()))
        watched.tell(b, float(b.x.sum()))
