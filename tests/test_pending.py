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


def told(method, name="additive-40-5-8", *, seed=0, n=14):
    """An optimizer of one of the paper's problems with n values: all at random but for the last four."""
    problem = sumbo.problems.get(name, seed=seed)
    opt = Optimizer(problem.space, method, problem.direction, seed=seed, budget=200)
    rng = np.random.default_rng(seed)
    for _ in range(n - 4):
        params = opt.space.from_unit(rng.random(opt.space.dim))
        opt.observe(params, problem(params))
    for _ in range(4):
        trial = opt.ask()
        opt.tell(trial, problem(trial.x))
    return opt


def distances(trials):
    X = np.array([trial.x for trial in trials])
    apart = np.linalg.norm(X[:, None] - X[None], axis=2)
    return apart[np.triu_indices(len(X), 1)]


@pytest.mark.parametrize("name", METHODS)
def test_a_batch_in_forty_dimensions_has_no_point_twice(name):
    batch = told(METHODS[name]).ask(BATCH)
    assert len({trial.x.tobytes() for trial in batch}) == BATCH
    assert distances(batch).min() > 1e-3


def one_by_one(opt):
    """As many points, one at a time, each told what the model expects of it, as a batch cannot be."""
    sign = 1.0 if opt.direction == "maximize" else -1.0
    trials = []
    for _ in range(BATCH):
        trial = opt.ask()
        trials.append(trial)
        mean = float(opt.model.posterior(opt.space.encode(trial.x)[None])[0][0])
        values = [t.value for t in opt.trials if t.value is not None]
        opt.tell(trial, float(np.mean(values) + sign * np.std(values) * mean))
    return trials


@pytest.mark.parametrize("name", ["auto", "gp-ucb", "gp-ei", "thompson", "joint-ucb", "add-gp-ucb"])
def test_a_batch_is_as_spread_out_as_points_that_know_of_each_other(name):
    """Without pending points in the model the batch of an acquisition maximised exactly is eight times one point.

    One search alone may be about to close in on an optimum, or not: the middle one of five is told by.
    """
    spread, closest = [], []
    for seed in range(5):
        opt = told(METHODS[name], "additive-10-3-3", seed=seed, n=20)
        again = Optimizer.from_dict(opt.to_dict())
        batch, reference = distances(opt.ask(BATCH)), np.median(distances(one_by_one(again)))
        assert batch.min() > 1e-3
        spread.append(np.median(batch) / reference)
        closest.append(np.quantile(batch, 0.1) / reference)  # not the closest pair, which hangs on the last digits
    assert np.median(spread) > 0.4
    assert np.median(closest) > 0.1


@pytest.mark.xfail(reason="the paper's bound, group by group, moves less than 0.001 between late points of a batch")
def test_late_points_of_a_batch_by_the_papers_bound_are_apart():
    problem = sumbo.problems.get("additive-40-5-8", seed=0)
    opt = Optimizer(problem.space, AddGPUCB(), problem.direction, seed=0, budget=200)
    for _ in range(40):
        trial = opt.ask()
        opt.tell(trial, problem(trial.x))
    assert distances(opt.ask(BATCH)).min() > 1e-3


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
