"""The acquisitions of Add-GP-UCB beside the paper's: each at the top of what it maximises."""

import numpy as np
import pytest

from sumbo import AddGPUCB, Categorical, Float, Int, Optimizer, Space
from sumbo.acquisition.functions import additive_beta, log_expected_improvement, ucb
from sumbo.errors import SettingError
from sumbo.gp.additive import AdditiveGP
from sumbo.methods.base import Deadline, SuggestContext
from sumbo.methods.candidates import Seen, best_seen, maximise_groups, maximise_joint, maximise_path

GROUPS = ((0, 3), (1, 4), (2, 5))
BOX = Space.from_bounds([(0.0, 1.0)] * 6)
MIXED = Space(
    {
        "a": Float(0, 1),
        "b": Int(1, 9),
        "c": Categorical(list("uvwx")),
        "d": Float(0, 1),
        "e": Categorical(list("pq")),
        "f": Float(0, 1),
    }
)


def posterior(space, *, seed=0, n=40):
    rng = np.random.default_rng(seed)
    categories = np.where(space.nominal, space.levels, 0)
    X = space.snap(rng.random((n, 6)))
    y = np.sin(7 * X).sum(axis=1) + X[:, 0] * X[:, 3]
    return AdditiveGP(GROUPS, lengthscales=0.4, scales=0.6, categories=categories).condition(
        X, (y - y.mean()) / y.std()
    )


def query_of(space, model, seed=0):
    rng = np.random.default_rng(seed)
    nothing = np.empty((0, 6))
    return SuggestContext(
        space, model.X, model.y, nothing, [None] * model.n, [], model.n, rng, np.random.default_rng(1)
    )


def joint_value(model, acquisition, Z):
    moments = model.moments(np.atleast_2d(Z))
    return acquisition(moments.mean, moments.variance)[0]


# --- Thompson ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [BOX, MIXED], ids=["box", "mixed"])
@pytest.mark.parametrize("seed", range(3))
def test_the_top_of_a_path_is_the_sum_of_its_groups_tops(space, seed):
    model = posterior(space)
    path = model.sample_path(np.random.default_rng(seed), features=512)
    query = query_of(space, model, seed)
    x = maximise_path(path, query, Seen.of(model, query).best(10))
    dense = path.parts(space.snap(np.random.default_rng(99).random((10_000, 6))))
    tops = dense.max(axis=1)  # of every group by itself, over a fine cloud in its two dimensions
    rounding = 1e-9
    assert (path.parts(x[None])[:, 0] >= tops - rounding).all()
    assert path(x[None])[0] >= dense.sum(axis=0).max() - rounding
    assert path(x[None])[0] == pytest.approx(path.parts(x[None]).sum(), rel=1e-12)
    np.testing.assert_array_equal(x, space.snap(x))


@pytest.mark.parametrize("space", [BOX, MIXED], ids=["box", "mixed"])
def test_points_running_side_by_side_are_all_different(space):
    opt = Optimizer(space, AddGPUCB(groups=GROUPS, acquisition="thompson", n_init=6), seed=0)
    for _ in range(20):
        trial = opt.ask()
        opt.tell(trial, float(np.sum((space.to_unit(trial.params) - 0.3) ** 2)))
    batch = opt.ask(8)
    assert len({trial.x.tobytes() for trial in batch}) == 8


def test_draws_differ_between_trials_and_repeat_with_the_seed():
    def run(seed):
        opt = Optimizer(BOX, AddGPUCB(groups=GROUPS, acquisition="thompson", n_init=6), seed=seed)
        for _ in range(10):
            trial = opt.ask()
            opt.tell(trial, float(np.sin(5 * trial.x).sum()))
        return np.array([trial.x for trial in opt.ask(3)])

    a, same, other = run(0), run(0), run(1)
    np.testing.assert_array_equal(a, same)
    assert not np.isclose(a, other).all(axis=1).any()
    assert np.abs(a[0] - a[1]).max() > 1e-2  # of two draws, not one point and its shifted copy


# --- the exact joint ones --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [BOX, MIXED], ids=["box", "mixed"])
@pytest.mark.parametrize("acquisition", ["joint-ucb", "log-ei"])
@pytest.mark.parametrize("seed", range(3))
def test_the_joint_value_is_at_least_that_of_the_group_wise_point(space, acquisition, seed):
    model = posterior(space, seed=seed)
    bound = ucb(additive_beta("practical", model.n + 1, [2, 2, 2]))
    joint = (
        bound
        if acquisition == "joint-ucb"
        else log_expected_improvement(best_seen(model, Seen.of(model, query_of(space, model)), Deadline()))
    )
    groupwise = maximise_groups(model, bound, query_of(space, model, seed))
    x = maximise_joint(model, joint, query_of(space, model, seed), groupwise[None])
    at = joint_value(model, joint, x)[0]
    assert at >= joint_value(model, joint, groupwise)[0]
    dense = space.snap(np.random.default_rng(9).random((5000, 6)))
    assert at >= joint_value(model, joint, dense).max()


@pytest.mark.parametrize("acquisition", ["joint-ucb", "log-ei"])
def test_the_method_suggests_such_a_point(acquisition):
    method = AddGPUCB(groups=GROUPS, acquisition=acquisition, n_init=5, beta=3.0)
    opt = Optimizer(BOX, method, "maximize", seed=1)
    for _ in range(25):
        trial = opt.ask()
        opt.tell(trial, float(np.sin(7 * trial.x).sum()))
    model = opt.model
    joint = (
        ucb(3.0)
        if acquisition == "joint-ucb"
        else log_expected_improvement(best_seen(model, Seen.of(model, query_of(BOX, model)), Deadline()))
    )
    groupwise = maximise_groups(model, ucb(3.0), query_of(BOX, model))
    dense = np.random.default_rng(9).random((5000, 6))
    at = joint_value(model, joint, opt.ask().x)[0]
    assert at >= joint_value(model, joint, groupwise)[0] - 1e-9
    assert at >= joint_value(model, joint, dense).max()


@pytest.mark.parametrize("acquisition", ["ucb", "joint-ucb", "log-ei", "thompson"])
def test_running_points_do_not_coincide_even_when_the_top_is_known(acquisition):
    opt = Optimizer([(0.0, 1.0)] * 2, AddGPUCB(groups=((0,), (1,)), acquisition=acquisition, n_init=6), seed=0)
    for _ in range(12):
        trial = opt.ask()
        opt.tell(trial, float(((trial.x - 0.4) ** 2).sum()))
    batch = np.array([trial.x for trial in opt.ask(4)])
    apart = [np.abs(a - b).max() for i, a in enumerate(batch) for b in batch[:i]]
    assert min(apart) > 1e-6


def test_what_does_not_go_together_is_refused():
    with pytest.raises(SettingError, match="acquisition must be one of ucb, joint-ucb, log-ei, thompson; got 'ei'"):
        AddGPUCB(acquisition="ei")
    with pytest.raises(SettingError, match='maximiser "direct" goes with acquisition "ucb" only; got \'log-ei\''):
        AddGPUCB(acquisition="log-ei", maximiser="direct")


def test_beta_of_groups():
    assert additive_beta(2, 10, [1, 3]) == 2.0
    assert additive_beta("practical", 10, [1, 3]) == pytest.approx(0.6 * np.log(20))
    expected = 2 * np.log(2 * np.pi**2 * 100 / 0.2) + 6 * np.log(4 * 1000)
    assert additive_beta("theorem", 10, [1, 3], 0.1) == pytest.approx(expected)
