"""Every method on every problem, and what each algorithm promises."""

import dataclasses
import itertools
import json
from functools import cache

import numpy as np
import pytest
from scipy import optimize

from sumbo import (
    GPEI,
    GPUCB,
    REMBO,
    AddGPUCB,
    AdditiveGP,
    Auto,
    Categorical,
    CyclicGroups,
    Decomposition,
    Direct,
    FitSettings,
    Float,
    Int,
    Optimizer,
    Random,
    SequentialGroups,
    Space,
    problems,
)
from sumbo.errors import DecompositionError, SettingError, StateError
from sumbo.methods import METHODS, Method, Suggestion, method_from_dict, method_to_dict, resolve
from sumbo.methods.candidates import Seen, loo_calibration, trust_region

MIXED = Space(
    {
        "rate": Float(1e-5, 1e-1, log=True),
        "width": Int(1, 1000, log=True),
        "depth": Int(1, 6),
        "shape": Categorical(["round", "square", "flat"]),
        "angle": Float(-3, 5),
    }
)


def mixed_value(params):
    penalty = {"round": 0.0, "square": 0.5, "flat": 1.0}[params["shape"]]
    return (
        (np.log10(params["rate"]) + 3) ** 2
        + (params["depth"] - 4) ** 2 / 4
        + penalty
        + abs(params["angle"]) / params["width"]
    )


def problem_and_value(name):
    if name == "mixed":
        return MIXED, "minimize", mixed_value
    problem = problems.get(name)
    return problem.space, problem.direction, problem


PROBLEMS = ["ackley-2", "hartmann6-7", "additive-12-3-4", "mixed"]


@cache
def played(method, problem, *, seed=0, n=25):
    """The trials of a run with the defaults of a method."""
    space, direction, value = problem_and_value(problem)
    opt = Optimizer(space, method, direction, seed)
    for _ in range(n):
        trial = opt.ask()
        opt.tell(trial, float(value(trial.params)))
    return opt.trials


def inside(space, trial):
    """Would the space accept the point as one of the user's own, and are x and params the same?"""
    np.testing.assert_array_equal(space.array(trial.params), trial.x)
    unit = space.to_unit(trial.params)
    return bool(((unit >= 0) & (unit <= 1)).all())


def told(opt, n, value):
    for _ in range(n):
        trial = opt.ask()
        opt.tell(trial, value(trial.x))
    return opt


def wavy(x):
    return float(np.sin(7.0 * x).sum() + x[0] * x[1])


# --- every method on every problem --------------------------------------------------------------------------


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("method", METHODS)
def test_every_suggestion_is_a_new_point_of_the_space(method, problem):
    space, _, _ = problem_and_value(problem)
    trials = played(method, problem)
    assert all(inside(space, trial) for trial in trials)
    assert len({trial.x.tobytes() for trial in trials}) == len(trials)


@pytest.mark.parametrize("problem", ["ackley-2", "mixed"])
@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_run(method, problem):
    again = played.__wrapped__(method, problem, n=13)
    assert [t.params for t in again] == [t.params for t in played(method, problem)][:13]


@pytest.mark.parametrize("method", [name for name in METHODS if name != "direct"])
def test_another_seed_gives_another_run(method):
    a, b = (np.array([t.x for t in played(method, "ackley-2", seed=seed, n=5)]) for seed in (1, 2))
    assert not np.isclose(a, b).all(axis=1)[1:].any()  # some begin in the middle, whatever the seed


def test_direct_needs_no_seed():
    a, b = (np.array([t.x for t in played("direct", "ackley-2", seed=seed, n=5)]) for seed in (1, 2))
    assert np.array_equal(a, b)


@pytest.mark.parametrize("space", [[(0.0, 1.0)] * 3, MIXED], ids=["box", "mixed"])
@pytest.mark.parametrize("method", METHODS)
def test_failed_running_and_own_points_are_coped_with(method, space):
    opt = Optimizer(space, method, seed=3)
    rng = np.random.default_rng(0)
    for _ in range(2):
        own = opt.space.from_unit(rng.random(opt.space.dim))
        opt.observe(own, float(rng.normal()))
    opt.observe(opt.space.from_unit(rng.random(opt.space.dim)), failed=True)
    for _ in range(4):
        batch = opt.ask(4)
        opt.tell(batch[2], float(rng.normal()))
        opt.tell(batch[0], failed=True)
        opt.tell(batch[1], float(rng.normal()))  # batch[3] never comes back
    assert all(inside(opt.space, trial) for trial in opt.trials)
    assert len({trial.x.tobytes() for trial in opt.trials}) == len(opt.trials)
    assert [t.state for t in opt.trials].count("running") == 4


@pytest.mark.parametrize("method", METHODS)
def test_a_search_where_everything_failed_goes_on(method):
    opt = Optimizer([(0.0, 1.0)] * 2, method, seed=0)
    for _ in range(14):
        opt.tell(opt.ask(), failed=True)
    assert opt.best is None
    assert len({t.x.tobytes() for t in opt.trials}) == 14


@pytest.mark.parametrize("method", METHODS)
def test_one_dimension_is_enough(method):
    opt = told(Optimizer([(-2.0, 3.0)], method, seed=0), 14, lambda x: float((x[0] - 1) ** 2))
    assert len({t.x.tobytes() for t in opt.trials}) == 14


@pytest.mark.parametrize("method", [name for name in METHODS if name not in ("random", "direct", "rembo")])
def test_the_model_is_of_use(method):
    # 25 points of a smooth function: anything that learns gets below what the first ten had by chance.
    opt = told(Optimizer([(0.0, 1.0)] * 2, method, seed=1), 25, lambda x: float(((x - 0.37) ** 2).sum()))
    values = [t.value for t in opt.trials]
    assert min(values[10:]) < min(values[:10])


# --- settings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_a_name_is_the_method_with_its_defaults(name):
    assert resolve(name) == METHODS[name]()
    assert resolve(name).name == name
    assert resolve(METHODS[name]()) == METHODS[name]()


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_frozen(name):
    method = resolve(name)
    for field in dataclasses.fields(method):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(method, field.name, None)


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(
        SettingError, match=r"method must be one of auto, .*; got 'add-gp-ucp'. Did you mean 'add-gp-ucb'\?"
    ):
        resolve("add-gp-ucp")
    with pytest.raises(SettingError, match="or a method object; got 17"):
        resolve(17)
    with pytest.raises(SettingError, match="or a method object; got <class"):
        resolve(AddGPUCB)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: AddGPUCB(learn="magic"), "learn must be one of .*random.*; got 'magic'"),
        (lambda: AddGPUCB(maximiser="hope"), "maximiser must be one of gradient, direct; got 'hope'"),
        (lambda: AddGPUCB(group_size=0), "group_size must be a whole number from 1 up; got 0"),
        (lambda: AddGPUCB(n_init=0), "n_init must be a whole number from 1 up; got 0"),
        (lambda: AddGPUCB(n_cyc=-3), "n_cyc must be a whole number from 1 up; got -3"),
        (lambda: AddGPUCB(beta=-1.0), "beta must be"),
        (lambda: AddGPUCB(beta="theory"), "beta must be"),
        (lambda: GPUCB(beta=float("nan")), "beta must be"),
        (lambda: GPUCB(maximiser="hope"), "maximiser must be .*; got 'hope'"),
        (lambda: GPEI(maximiser="hope"), "maximiser must be .*; got 'hope'"),
        (lambda: GPEI(n_init=0), "n_init must be a whole number from 1 up; got 0"),
        (lambda: GPUCB(n_cyc=0), "n_cyc must be a whole number from 1 up; got 0"),
        (lambda: REMBO(dim=0), "dim must be a whole number from 1 up; got 0"),
        (lambda: REMBO(dim=10**9), "dim must be at most 1000"),
        (lambda: SequentialGroups(group_size=0), "must be a whole number from 1 up"),
        (lambda: SequentialGroups(queries_per_group=0), "must be a whole number from 1 up"),
    ],
)
def test_settings_out_of_range_are_refused(make, match):
    with pytest.raises(SettingError, match=match):
        make()


@pytest.mark.parametrize(
    ("groups", "match"),
    [
        (((0, 1), (1, 0)), "given more than once"),
        (((0, 1), (3,)), "in no group"),
        (((0, 1), ()), "at least one dimension"),
        (((0, "a"),), "lists of dimension numbers"),
        (((-1, 0),), "numbered from 0"),
    ],
)
def test_groups_that_are_no_decomposition_are_refused(groups, match):
    with pytest.raises(DecompositionError, match=match):
        SequentialGroups(groups=groups)


def test_groups_may_come_as_lists():
    assert AddGPUCB(groups=[[0, 2], [1]]).groups == ((0, 2), (1,))


CUSTOM = [
    AddGPUCB(group_size=3, learn="none", trials=5, beta=2.5, kernel="se", n_init=4, n_cyc=7),
    AddGPUCB(groups=((0, 2), (1,)), beta="theorem", delta=0.05, maximiser="direct", explore_until=12),
    AddGPUCB(fit=FitSettings(ard=False, noise_sd=None, lengthscale_bounds=(1e-4, 7.0), starts=3)),
    AddGPUCB(acquisition="thompson", together=(("a", "b"), (2, "c")), apart=(("a", 2),)),
    Auto(groups=(("a", 1), ("b",)), max_group_size=3),
    AddGPUCB.paper(5),
    AddGPUCB.paper(groups=((0,), (1,))),
    GPUCB.paper(),
    GPUCB(beta=0.5, kernel="matern32"),
    GPEI.paper(),
    GPEI(n_init=3),
    REMBO(dim=3, inner=GPEI(kernel="se", fit=FitSettings(scale_sd=None))),
    SequentialGroups(groups=((1,), (0, 2)), queries_per_group=9, inner=GPUCB(beta="theorem")),
    CyclicGroups(AddGPUCB(groups=((0,), (1, 2)), fit=FitSettings(starts=1))),
]


@pytest.mark.parametrize("method", [*(make() for make in METHODS.values()), *CUSTOM])
def test_settings_survive_json(method):
    data = method_to_dict(method)
    again = method_from_dict(json.loads(json.dumps(data)))
    assert again == method
    assert type(again) is type(method)
    assert hash(again) == hash(method)
    assert method_to_dict(again) == data


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (None, "expected settings of one of Auto, "),
        ("auto", "expected settings of one of Auto, "),
        ({}, "expected settings of one of Auto, "),
        ({"type": "Magic"}, "expected settings of one of .*Magic"),
        ({"type": "AddGPUCB", "gruop_size": 3, "zeal": 1}, "AddGPUCB has no setting gruop_size, zeal"),
        (
            {"type": "AddGPUCB", "group_size": 0},
            "AddGPUCB cannot be restored: group_size must be a whole",
        ),
        ({"type": "AddGPUCB", "groups": [[0], []]}, "AddGPUCB cannot be restored: .*at least one parameter"),
        ({"type": "REMBO", "inner": {"type": "GPEI", "n_init": -1}}, "GPEI cannot be restored"),
        ({"type": "REMBO", "inner": {"n_init": 1}}, "expected settings of one of"),
        ({"type": "REMBO", "dim": "many"}, "REMBO cannot be restored"),
    ],
)
def test_settings_that_cannot_be_read_are_refused(data, match):
    with pytest.raises(StateError, match=match):
        method_from_dict(data)


def test_settings_left_out_have_their_defaults():
    assert method_from_dict({"type": "AddGPUCB", "group_size": 2}) == AddGPUCB(group_size=2)


# --- Add-GP-UCB ---------------------------------------------------------------------------------------------

GROUPS = ((0, 3), (1, 4), (2, 5))


def exploring(**settings):
    """Few points at first, few restarts: tests of the algorithm need no good fit."""
    return AddGPUCB(**{"n_init": 5, "fit": FitSettings(starts=1, evaluations=25), **settings})


@pytest.mark.parametrize("kernel", ["se", "matern52"])
@pytest.mark.parametrize("maximiser", ["gradient", "direct"])
def test_every_group_is_at_the_top_of_its_own_bound(maximiser, kernel):
    beta = 3.0
    method = exploring(groups=GROUPS, beta=beta, maximiser=maximiser, kernel=kernel)
    opt = told(Optimizer([(0.0, 1.0)] * 6, method, "maximize", seed=4), 20, wavy)
    model = opt.model
    x = opt.ask().x
    for j, group in enumerate(GROUPS):
        mean, std = model.group_posterior(j, np.random.default_rng(j).random((2000, 2)))
        others = mean + np.sqrt(beta) * std
        mean, std = model.group_posterior(j, x[None, list(group)])
        assert mean[0] + np.sqrt(beta) * std[0] >= others.max() - 0.02 * np.ptp(others)


def test_known_groups_are_the_ones_in_use():
    opt = told(Optimizer([(0.0, 1.0)] * 6, exploring(groups=GROUPS), seed=0), 8, wavy)
    assert opt.decomposition.groups == GROUPS
    assert opt.model.groups[:3] == GROUPS


@pytest.mark.parametrize("learn", ["search", "random", "none"])
@pytest.mark.parametrize(("D", "size"), [(7, 3), (5, 4), (3, 8), (4, 1)])
def test_sizes_need_not_divide_the_dimensions(D, size, learn):
    opt = told(Optimizer([(0.0, 1.0)] * D, exploring(group_size=size, learn=learn), seed=0), 8, wavy)
    groups = opt.decomposition.groups
    assert sorted(itertools.chain(*groups)) == list(range(D))
    assert max(map(len, groups)) <= size


@pytest.mark.parametrize("beta", ["practical", "theorem", 0.0, 4])
@pytest.mark.parametrize("make", [exploring, lambda **s: GPUCB(n_init=5, **s)])
def test_every_beta_rule_works(make, beta):
    opt = told(Optimizer([(0.0, 1.0)] * 4, make(beta=beta), seed=0), 8, wavy)
    assert len({t.x.tobytes() for t in opt.trials}) == 8


@pytest.mark.parametrize("make", [AddGPUCB, GPUCB])
def test_more_beta_explores_more(make):
    def spread(beta):
        settings = {"n_init": 8, "beta": beta}
        opt = told(Optimizer([(0.0, 1.0)] * 2, make(**settings), seed=0), 20, lambda x: float(((x - 0.4) ** 2).sum()))
        return np.std([t.x for t in opt.trials[8:]], axis=0).sum()

    assert spread(100.0) > 2 * spread(0.01)


@pytest.mark.parametrize(
    "method", [AddGPUCB.paper(2), AddGPUCB.paper(groups=((0, 2), (1, 3))), GPUCB.paper(), GPEI.paper()]
)
@pytest.mark.parametrize("space", [[(0.0, 1.0)] * 4, MIXED], ids=["box", "mixed"])
def test_the_papers_settings(method, space):
    if space is MIXED and getattr(method, "groups", None):
        method = dataclasses.replace(method, groups=((0, 2), (1, 3, 4)))
    rng = np.random.default_rng(0)
    opt = Optimizer(space, method, seed=0)
    for _ in range(22):  # beyond random points, up to where the tiny lengthscale ends
        opt.observe(opt.space.from_unit(rng.random(opt.space.dim)), float(rng.normal()))
    for _ in range(5):
        opt.tell(opt.ask(), float(rng.normal()))
    assert all(inside(opt.space, t) for t in opt.trials)
    assert len({t.x.tobytes() for t in opt.trials}) == 27
    assert opt.model.n == 27


def test_the_papers_settings_are_what_the_paper_says():
    paper = AddGPUCB.paper(6)
    assert (paper.group_size, paper.kernel, paper.n_init, paper.n_cyc) == (6, "se", 10, 25)
    assert (paper.beta, paper.maximiser, paper.learn, paper.trials) == ("practical", "direct", "random", None)
    assert (paper.fit.ard, paper.fit.group_scales) == (False, False)
    assert GPUCB.paper().fit == GPEI.paper().fit == paper.fit


def test_the_first_points_are_random_and_the_next_are_not():
    method = exploring(groups=((0,), (1,)), n_init=6)
    a, b = (Optimizer([(0.0, 1.0)] * 2, method, seed=1) for _ in range(2))
    told(a, 8, wavy)
    told(b, 8, lambda x: -wavy(x))  # other values: the random points are the same, the chosen ones are not
    assert [t.x.tobytes() for t in a.trials[:6]] == [t.x.tobytes() for t in b.trials[:6]]
    assert a.trials[6].x.tobytes() != b.trials[6].x.tobytes()


# --- the sequential ones ------------------------------------------------------------------------------------


def changed(a, b):
    return {int(i) for i in np.flatnonzero(a.x != b.x)}


def test_cyclic_groups_moves_one_group_at_a_time():
    n_init = 5
    method = CyclicGroups(exploring(groups=GROUPS, n_init=n_init))
    opt = told(Optimizer([(0.0, 1.0)] * 6, method, seed=2), n_init + 9, wavy)
    moved = [changed(a, b) for a, b in itertools.pairwise(opt.trials[n_init:])]
    owner = {i: j for j, group in enumerate(GROUPS) for i in group}
    turns = [{owner[i] for i in dims} for dims in moved]
    assert all(len(turn) == 1 for turn in turns)
    order = [turn.pop() for turn in turns]
    assert set(order) == {0, 1, 2}
    assert order[:-3] == order[3:]  # in turn


def test_sequential_groups_holds_the_others():
    each = 5
    groups = ((1, 3), (0, 4), (2,))
    method = SequentialGroups(groups=groups, queries_per_group=each)
    opt = told(Optimizer([(0.0, 1.0)] * 5, method, seed=2), 3 * each + 4, wavy)
    phase = [min(t.number // each, 2) for t in opt.trials]  # the last group keeps what is left
    for a, b in itertools.pairwise(opt.trials):
        assert changed(a, b) <= set(groups[phase[b.number]])
    for j in range(3):
        points = {t.x[list(groups[j])].tobytes() for t, k in zip(opt.trials, phase, strict=True) if k == j}
        assert len(points) == phase.count(j)


@pytest.mark.parametrize("budget", [9, 12, 2])
def test_sequential_groups_shares_the_budget(budget):
    opt = Optimizer([(0.0, 1.0)] * 3, SequentialGroups(group_size=1), seed=2, budget=budget)
    told(opt, budget, lambda x: float(((x - 0.4) ** 2).sum()))  # a top inside, so that no face is asked for twice
    each = max(1, budget // 3)
    for a, b in itertools.pairwise(opt.trials[: 3 * each]):
        assert len(changed(a, b)) == 1
    first_moves = [changed(opt.trials[k * each - 1], opt.trials[k * each]) for k in range(1, min(3, budget // each))]
    assert len(set(map(frozenset, first_moves))) == len(first_moves)


# --- REMBO, DIRECT, random ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_rembo_stays_in_its_subspace(dim):
    D = 9
    opt = told(Optimizer([(-1.0, 1.0)] * D, REMBO(dim, GPEI(n_init=20)), seed=3), 26, wavy)
    X = np.array([t.x for t in opt.trials])
    free = np.abs(X) < 1.0  # what clipping did not touch is A z
    checked = 0
    for columns in itertools.combinations(range(D), dim + 1):
        rows = free[:, columns].all(axis=1)
        if rows.sum() > dim + 2:
            singular = np.linalg.svd(X[rows][:, columns], compute_uv=False)
            assert singular[dim] < 1e-9 * singular[0]
            checked += 1
    assert checked > 0


def test_rembo_takes_more_dimensions_than_there_are():
    assert len({t.x.tobytes() for t in told(Optimizer([(0.0, 1.0)] * 2, REMBO(6), seed=0), 13, wavy).trials}) == 13


def scipys_points(f, bounds, n):
    visited = []

    def recorded(x):
        visited.append(x.copy())
        return f(x)

    optimize.direct(recorded, bounds, maxfun=3 * n, locally_biased=False, vol_tol=0.0)
    return np.array(visited[:n])


@pytest.mark.parametrize(
    ("f", "bounds"),
    [
        (
            lambda x: float(((x - 0.7) ** 2).sum() + 0.3 * np.cos(9.0 * x).sum()),
            [(-5.0, 5.0), (0.0, 2.0), (-1.0, 3.0)],
        ),
        (lambda x: float(np.sin(x[0]) * x[1]), [(0.0, 10.0), (-1.0, 1.0)]),
    ],
)
def test_direct_visits_what_scipys_direct_visits(f, bounds):
    opt = told(Optimizer(bounds, "direct"), 35, f)
    np.testing.assert_allclose([t.x for t in opt.trials], scipys_points(f, bounds, 35), atol=1e-8)


def test_direct_begins_at_the_centre_in_either_direction():
    for direction in ("minimize", "maximize"):
        assert Optimizer([(0.0, 4.0), (-3.0, 3.0)], Direct(), direction).ask().x.tolist() == [2.0, 0.0]


def test_direct_maximises_the_negative_of_what_it_minimises():
    up = told(Optimizer([(0.0, 1.0)] * 2, "direct", "maximize"), 20, wavy)
    down = told(Optimizer([(0.0, 1.0)] * 2, "direct", "minimize"), 20, lambda x: -wavy(x))
    assert [t.x.tobytes() for t in up.trials] == [t.x.tobytes() for t in down.trials]


def test_random_is_uniform():
    opt = Optimizer([(0.0, 1.0)] * 2, Random(), seed=0)
    X = np.array([opt.ask().x for _ in range(400)])
    np.testing.assert_allclose(X.mean(axis=0), 0.5, atol=0.06)
    np.testing.assert_allclose(X.std(axis=0), np.sqrt(1 / 12), atol=0.03)


def test_auto_fills_the_space_first():
    opt = Optimizer([(0.0, 1.0)] * 3, Auto(), seed=0)
    X = np.array([trial.x for trial in opt.ask(8)])
    assert X[0].tolist() == [0.5, 0.5, 0.5]
    inner = (X[1:] - 0.2) / 0.6  # clear of the faces
    for i in range(3):  # a Sobol sequence: at most one point in each eighth
        assert len({*(inner[:, i] * 8).astype(int).tolist()} & {*range(8)}) == 7


def test_auto_begins_with_any_category_and_leaves_the_middle_when_all_fails():
    space = Space({"x": Float(0.0, 1.0), "c": Categorical(list("abcdefghij"))})
    opt = Optimizer(space, Auto(n_init=20), seed=0)
    first = opt.ask(20)
    assert len({trial.params["c"] for trial in first}) == 10
    for trial in first:
        assert 0.2 <= trial.params["x"] <= 0.8 or trial.number >= 10
        opt.tell(trial, failed=True)
    later = []
    for _ in range(20):
        later.append(opt.ask())
        opt.tell(later[-1], failed=True)
    assert min(trial.params["x"] for trial in later) < 0.1
    assert max(trial.params["x"] for trial in later) > 0.9


def modelled(f, lengthscale, n=60, seed=0):
    X = np.random.default_rng(seed).random((n, 3))
    y = np.array([f(x) for x in X])
    return AdditiveGP(Decomposition([(0, 1, 2)]), lengthscales=lengthscale, noise_variance=1e-8).condition(
        X, (y - y.mean()) / y.std()
    )


def seen_by(model):
    return Seen(model.X, model.y, np.ones(model.n, dtype=bool), np.arange(model.n))


def test_surprise_is_how_far_off_predictions_of_the_better_third_are():
    model = modelled(wavy, 0.4, n=33)
    squares = []
    for i in np.argsort(-model.y)[:11]:
        others = np.arange(model.n) != i
        mean, std = dataclasses.replace(model).condition(model.X[others], model.y[others]).posterior(model.X[[i]])
        squares.append((model.y[i] - mean[0]) ** 2 / (std[0] ** 2 + model.noise_variance))
    assert loo_calibration(model, seen_by(model)) == pytest.approx(np.sqrt((sum(squares) + 4) / (11 + 4)), rel=1e-6)


def test_surprise_of_draws_of_the_model_itself_is_one():
    truth = AdditiveGP(Decomposition([(0, 1, 2)]), lengthscales=0.5, noise_variance=1e-8)
    X = np.random.default_rng(1).random((60, 3))
    rng = np.random.default_rng(2)
    models = [truth.condition(X, truth.sample_path(rng)(X)) for _ in range(60)]
    found = [loo_calibration(model, seen_by(model)) for model in models]
    assert np.mean(found) == pytest.approx(1.0, abs=0.08)


def test_surprise_is_small_where_functions_are_smoother_than_the_model_and_bounded_where_they_are_rougher():
    smooth, rough = modelled(lambda x: -np.square(x - 0.4).sum(), 0.6), modelled(lambda x: np.sin(60 * x).sum(), 5.0)
    assert loo_calibration(smooth, seen_by(smooth)) < 0.5
    assert loo_calibration(rough, seen_by(rough)) == 2.0
    twice = modelled(lambda x: x[0], 0.5)
    twice = twice.append(twice.X[0], twice.y[0] + 1.0)  # nothing can explain that
    assert 0.25 <= loo_calibration(twice, seen_by(twice)) <= 2.0


def test_auto_trusts_predictions_near_the_best_while_values_are_few(monkeypatch):
    seen = []
    monkeypatch.setattr("sumbo.methods.auto.loo_calibration", lambda model, _: seen.append(model.n) or 0.5)
    told(Optimizer([(0.0, 1.0)] * 4, Auto(), seed=0), 13, lambda x: float(np.square(x).sum()))
    assert seen == [7, 8, 9]  # fewer than 2.5 for each parameter
    opt = told(Optimizer([(0.0, 1.0)] * 4, Auto(), seed=0), 8, lambda x: float(np.square(x).sum()))
    opt.ask(3)
    assert seen == [7, 8, 9, 7, 8]  # the second and third of the batch have others beside them


def test_auto_waits_for_four_values_while_others_run():
    opt = Optimizer([(0.0, 1.0)] * 3, Auto(), seed=0)
    trials = opt.ask(7)
    for trial in trials[:3]:
        opt.tell(trial, float(trial.x.sum()))
    assert np.all(np.abs(opt.ask().x - 0.5) <= 0.3)  # still of the first points
    opt.tell(trials[3], float(trials[3].x.sum()))
    assert opt.ask().x.min() < 0.2  # down the slope


def test_auto_looks_away_from_the_best_points_more_rarely_while_others_run(monkeypatch):
    boxes = []
    monkeypatch.setattr("sumbo.methods.auto.trust_region", lambda *given: boxes.append(given) or trust_region(*given))
    opt = told(Optimizer([(0.0, 1.0)] * 4, Auto(), seed=0), 16, lambda x: float(np.square(x).sum()))
    assert len(boxes) == 6  # numbers 7 to 15 but for 9, 12 and 15
    boxes.clear()
    opt.ask(12)
    assert len(boxes) == 10  # numbers 16 to 27 but for 18 and 24


def test_a_method_of_ones_own():
    @dataclasses.dataclass(frozen=True)
    class Corner(Method):
        name = "corner"

        def suggest(self, query):
            return Suggestion(np.zeros(query.D))

    opt = Optimizer([(2.0, 3.0)] * 2, Corner(), seed=0)
    assert opt.ask().x.tolist() == [2.0, 2.0]
    assert opt.ask().x.tolist() != [2.0, 2.0]
    assert opt.model is None
