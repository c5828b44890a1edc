"""Trials read in plain queries are those that Optuna reads."""

import math
import random

import optuna
import pytest
from optuna.trial import TrialState

from sumbo.studies import rows
from sumbo.studies.rows import Rows


def filled(url, count):
    """Trials of all kinds, and some of another study between them."""
    study = optuna.create_study(storage=url, study_name="mine")
    other = optuna.create_study(storage=url, study_name="other")
    rng = random.Random(0)
    for i in range(count):
        state = rng.choice([TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED, TrialState.WAITING])
        distributions = {
            "x": optuna.distributions.FloatDistribution(1e-3, 1.0, log=True),
            "c": optuna.distributions.CategoricalDistribution([None, "a", 2.5, True]),
        }
        value = rng.choice([1.0, -0.0, 1e300, math.inf, -math.inf]) if state == TrialState.COMPLETE else None
        trial = optuna.create_trial(
            state=state,
            value=value,
            params={} if state == TrialState.WAITING else {"x": rng.uniform(0.01, 1.0), "c": rng.choice([None, "a"])},
            distributions={} if state == TrialState.WAITING else distributions,
            user_attrs={"note": {"i": i}},
            system_attrs={"some": [i]},
            intermediate_values={3: math.inf, 1: -1.0, 2: -math.inf} if state == TrialState.PRUNED else {},
        )
        study.add_trial(trial)
        if i % 3 == 0:
            other.add_trial(trial)
    return study


@pytest.mark.parametrize("few", [500, 2])
def test_the_same_as_optuna_reads(few, tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "_FEW", few)  # by their keys, and all from a key on
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    url = f"sqlite:///{tmp_path}/study.db"
    study = filled(url, 24)
    theirs, ours = optuna.storages.RDBStorage(url), Rows(url)
    every = [trial._trial_id for trial in study.trials]
    cases = [(None, set(), -1), ((TrialState.FAIL,), set(), -1), (None, set(every[2:9:2]), every[12])]
    cases += [(None, set(every), every[-1]), (None, set(), every[-1]), (None, {every[1]}, every[20])]
    for states, included, after in cases:
        expected = theirs._get_trials(study._study_id, states, included, after)
        found = ours._get_trials(study._study_id, states, included, after)
        assert found == expected
        assert [list(t.params) for t in found] == [list(t.params) for t in expected]
    assert len(cases) == 6
    theirs.engine.dispose()
    ours.engine.dispose()
    study._storage._backend.engine.dispose()


def test_distributions_are_shared(tmp_path):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    url = f"sqlite:///{tmp_path}/study.db"
    study = filled(url, 8)
    ours = Rows(url)
    trials = [trial for trial in ours.get_all_trials(study._study_id, deepcopy=False) if trial.params]
    assert len({id(trial.distributions["x"]) for trial in trials}) == 1
    ours.engine.dispose()
    study._storage._backend.engine.dispose()
