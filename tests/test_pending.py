"""Running trials are in the model: what is asked while they run is spread out, and never the same point."""

import time

import numpy as np
import pytest

import sumbo
from sumbo import (
    GPEI,
    GPUCB,
    REMBO,
    AddGPUCB,
    Auto,
    Categorical,
    CyclicGroups,
    Direct,
    Int,
    Optimizer,
    SequentialGroups,
)

METHODS = {
    "auto": Auto(),
    "add-gp-ucb": AddGPUCB(),
    "joint-ucb": AddGPUCB(acquisition="joint-ucb"),
    "log-ei": AddGPUCB(acquisition="log-ei"),
    "thompson": AddGPUCB(acquisition="thompson"),
    "gp-ucb": GPUCB(),
    "gp-ei": GPEI(),
    "rembo": REMBO(),
    "seq-groups": SequentialGroups(),
    "cyclic-groups": CyclicGroups(),
    "direct": Direct(),
}
BATCH = 8


def told(method, n=40):
    """An optimizer of the paper's (40, 5, 8) with n values."""
    problem = sumbo.problems.get("additive-40-5-8", seed=0)
    opt = Optimizer(problem.space, method, problem.direction, seed=0, budget=200)
    for _ in range(n):
        trial = opt.ask()
        opt.tell(trial, problem(trial.x))
    return opt


def distances(trials):
    X = np.array([trial.x for trial in trials])
    apart = np.linalg.norm(X[:, None] - X[None], axis=2)
    return apart[np.triu_indices(len(X), 1)]


@pytest.mark.parametrize("name", METHODS)
def test_a_batch_in_forty_dimensions_has_no_point_twice(name):
    batch = told(METHODS[name], 14).ask(BATCH)
    assert len({trial.x.tobytes() for trial in batch}) == BATCH
    assert distances(batch).min() > 1e-3


TIGHT = pytest.mark.xfail(
    reason="the paper's bound, group by group, moves less than 0.001 between late points of a batch"
)


@pytest.mark.parametrize(
    "name", ["auto", "gp-ucb", "gp-ei", "thompson", "joint-ucb", pytest.param("add-gp-ucb", marks=TIGHT)]
)
def test_a_batch_is_as_spread_out_as_points_that_know_of_each_other(name):
    """Against the same search one at a time, each told what the model expects of it, as a batch cannot be.

    Without pending points in the model the batch of an acquisition that is maximised exactly is eight times one point.
    """
    opt = told(METHODS[name])
    state = opt.to_dict()
    batch = distances(opt.ask(BATCH))
    alone = Optimizer.from_dict(state)
    one_by_one = []
    for _ in range(BATCH):
        trial = alone.ask()
        one_by_one.append(trial)
        model = alone.model
        mean = float(model.posterior(alone.space.encode(trial.x)[None])[0][0])
        values = [t.value for t in alone.trials if t.value is not None]
        sign = 1.0 if alone.direction == "maximize" else -1.0
        alone.tell(trial, float(np.mean(values) + sign * np.std(values) * mean))
    reference = distances(one_by_one)
    assert np.median(batch) > 0.5 * np.median(reference)
    # Not the closest pair alone, which hangs on the last digits.
    assert np.quantile(batch, 0.1) > 0.1 * np.median(reference)
    assert batch.min() > 1e-3


@pytest.mark.parametrize("name", METHODS)
def test_running_points_never_coincide_in_a_discrete_space(name):
    """48 points, 40 of them running at once or told: all different, to the last one."""
    space = {"a": Int(0, 3), "b": Int(0, 3), "c": Categorical(["u", "v", "w"])}
    opt = Optimizer(space, METHODS[name], seed=1, budget=48)
    running = opt.ask(BATCH)
    for i in range(32):
        trial = running.pop((3 * i) % len(running))
        opt.tell(trial, float(trial.params["a"] + trial.params["b"]))
        running.append(opt.ask())
    points = [tuple(trial.params.values()) for trial in opt.trials]
    assert len(set(points)) == len(points) == 40


def test_a_thousand_running_points_cost_one_factorisation_not_a_thousand():
    """Hallucinating one by one took a matrix inversion for each point: minutes where this takes a second."""
    rng = np.random.default_rng(0)
    X = rng.random((200, 20))
    gp = sumbo.AdditiveGP([(i,) for i in range(20)]).condition(X, rng.standard_normal(200))
    Z = rng.random((1000, 20))
    began = time.process_time()
    gp.hallucinate(Z).posterior(Z[:10])
    assert time.process_time() - began < 10.0
