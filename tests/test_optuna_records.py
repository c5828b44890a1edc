"""A history that is read step by step is the one that is read at once."""

import random
from datetime import datetime, timedelta

import numpy as np
import optuna
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState

from sumbo import methods
from sumbo.integrations.optuna.records import STATE, Reader
from sumbo.integrations.optuna.translation import Translation

SPACE = {"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(0.0, 1.0)}
NOON = datetime(2020, 1, 1, 12)


def trial_of(number, rng, state):
    trial = optuna.create_trial(
        state=state,
        value=rng.random() if state == TrialState.COMPLETE else None,
        params={name: rng.uniform(0.0, 1.1) for name in SPACE},  # now and then beyond the present range
        distributions={name: FloatDistribution(0.0, 2.0) for name in SPACE},
        system_attrs={f"{STATE}:0": [1, "{}"]} if number % 7 == 0 else {},
    )
    trial.number = number
    trial._trial_id = number
    if state.is_finished():
        trial.datetime_complete = NOON + timedelta(seconds=number + rng.choice([0, 0, 0, 5]))  # not always in order
    return trial


def assert_same(reader, translation, trials, own):
    with_state = [t.number for t in trials if f"{STATE}:0" in t.system_attrs]
    assert [t.number for t in reader.stateful(trials) if f"{STATE}:0" in t.system_attrs] == with_state
    found, expected = reader.history(trials, own, -1.0), Reader(translation).history(trials, own, -1.0)
    for name in ("X", "y", "pending"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for name in ("notes", "pending_notes", "told", "running", "moves"):
        assert getattr(found, name) == getattr(expected, name)
    assert reader.taken(trials, own) == Reader(translation).taken(trials, own)
    by_hand = sorted((t for t in trials if t.number in found.told), key=lambda t: (t.datetime_complete, t.number))
    np.testing.assert_array_equal(found.X, [[t.params["x"], t.params["y"]] for t in by_hand] or np.empty((0, 2)))


def test_step_by_step_as_at_once():
    translation = Translation.of(SPACE, methods.resolve("random"))
    assert translation is not None
    for seed in range(5):
        rng = random.Random(seed)
        reader, trials = Reader(translation), []
        for step in range(60):
            for i, trial in enumerate(trials):
                if not trial.state.is_finished() and rng.random() < 0.4:
                    trials[i] = trial_of(i, rng, rng.choice([TrialState.COMPLETE, TrialState.FAIL]))
            if step in (30, 40):  # a value was corrected; the storage hands out other objects
                trials[step // 2] = trial_of(step // 2, rng, TrialState.COMPLETE)
            trials.append(trial_of(len(trials), rng, rng.choice([TrialState.COMPLETE, TrialState.RUNNING])))
            assert_same(reader, translation, list(trials), own=rng.choice([len(trials) - 1, len(trials), 0]))
        assert len(reader._settled) > 30


def test_a_running_trial_that_changes_in_place_is_seen_where_it_is_now():
    # With Optuna's storage in memory, a trial and its storage share objects that are changed as the trial goes on.
    translation = Translation.of(SPACE, methods.resolve("random"))
    reader, study = Reader(translation), optuna.create_study()
    running, own = study.ask(), study.ask()

    def pending():
        return reader.history(study.get_trials(deepcopy=False), own.number, -1.0).pending

    assert len(pending()) == 0  # it has no parameters yet
    x = running.suggest_float("x", 0.0, 1.0)
    assert len(pending()) == 0
    y = running.suggest_float("y", 0.0, 1.0)
    np.testing.assert_array_equal(pending(), [[x, y]])
    shared = study.get_trials(deepcopy=False)
    shared[0].params["x"] = 0.125  # as no storage should
    np.testing.assert_array_equal(reader.history(shared, own.number, -1.0).pending, [[0.125, y]])
    study.tell(running, 1.0)
    assert len(pending()) == 0
