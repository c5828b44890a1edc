"""What the user knows: by name, free of contradictions, and kept to from the first model to the last."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from saved import latest_state

from sumbo import AddGPUCB, Auto, Categorical, CyclicGroups, Decomposition, FitSettings, Float, Int, Optimizer, Space
from sumbo.errors import DecompositionError
from sumbo.gp.additive import AdditiveGP
from sumbo.structure import search
from sumbo.structure.group_constraints import GroupConstraints

SPACE = Space(
    {
        "lr": Float(1e-5, 1e-1, log=True),
        "batch": Int(8, 512, log=True),
        "layers": Int(1, 8),
        "act": Categorical(["relu", "gelu", "tanh"]),
        "dropout": Float(0, 0.5),
    }
)
METHODS = [Auto, AddGPUCB]


def groups_of(**wishes):
    return GroupConstraints.of(SPACE, **wishes).start.groups


# --- names to numbers ----------------------------------------------------------------------------------------


def test_names_and_numbers_mean_the_same():
    assert groups_of(groups=(("act", "lr"), ("batch",))) == groups_of(groups=((3, 0), (1,)))
    assert GroupConstraints.of(SPACE, together=(("lr", 3),)) == GroupConstraints.of(SPACE, together=((0, "act"),))


def test_parameters_in_no_group_stand_alone():
    assert groups_of(groups=(("layers", "act"),)) == ((2, 3), (0,), (1,), (4,))


def test_those_together_form_the_first_groups_and_the_rest_is_apart():
    assert groups_of(together=(("lr", "act"), ("act", "dropout"))) == ((0, 3, 4), (1,), (2,))
    assert groups_of() == ((0,), (1,), (2,), (3,), (4,))


@pytest.mark.parametrize("make", METHODS)
def test_lists_become_tuples_and_numbers_plain(make):
    method = make(together=[["lr", np.int64(1)]], apart=iter([["lr", "act"]]), groups=None)
    assert method.together == (("lr", 1),)
    assert type(method.together[0][1]) is int
    assert method.apart == (("lr", "act"),)
    hash(method)


# --- what is refused -----------------------------------------------------------------------------------------

REFUSED = [
    ({"together": [("lr", "bach")]}, r"together: there is no parameter 'bach' \(did you mean 'batch'\?\)"),
    ({"apart": [("lr", "zzz")]}, r"apart: there is no parameter 'zzz'; the space has \['lr', 'batch'"),
    ({"groups": [("lr", 5)]}, "groups: dimensions go from 0 to 4; got 5"),
    ({"groups": [("lr", -1)]}, "groups: dimensions are numbered from 0; got -1"),
    ({"groups": [("lr", True)]}, "groups: expected parameter names or dimension numbers; got True"),
    ({"together": [("lr", "lr")]}, r"together: 'lr' is there more than once in \('lr', 'lr'\); name it once"),
    ({"together": [("lr", 0)]}, r"together: 'lr' is there more than once in \('lr', 0\); name it once"),
    ({"apart": [("lr",)]}, r"apart: a wish needs two parameters or more; got \('lr',\)"),
    ({"together": ("lr", "batch")}, "got 'lr', which is not in a list of its own"),
    ({"together": "lr"}, r'such as \[\("lr", "batch"\)\]; got \'lr\''),
    ({"together": 7}, "expected lists of parameter names or dimension numbers.*got 7"),
    ({"groups": []}, "groups: expected at least one group; leave it out"),
    ({"groups": [("lr",), ()]}, "groups: every entry needs at least one parameter"),
    (
        {"groups": [("lr", "batch"), ("batch", "lr")]},
        "is given more than once: groups may overlap, but not be the same",
    ),
    (
        {"together": [("lr", "act")], "apart": [("batch", "act", "lr")]},
        r"'act' and 'lr' are to be apart by apart=\('batch', 'act', 'lr'\), and together by together=\('lr', 'act'\); "
        "remove one of these",
    ),
    (
        {"together": [("lr", "batch"), ("layers", "act"), ("act", "batch")], "apart": [("lr", "act")]},
        r"'lr' and 'act' are to be apart by apart=\('lr', 'act'\), and together by together=\('lr', 'batch'\) and "
        r"together=\('act', 'batch'\); remove one of these",
    ),
    (
        {"groups": [("lr", "batch")], "together": [("batch", "act")]},
        r"'batch' and 'act' are together by together=\('batch', 'act'\), but groups has them in \('lr', 'batch'\) and "
        r"\('act',\); remove the wish or join these groups",
    ),
    (
        {"groups": [("lr", "batch", "act")], "apart": [("lr", "act")]},
        r"'lr' and 'act' are apart by apart=\('lr', 'act'\), but groups has both in \('lr', 'batch', 'act'\); remove",
    ),
]


@pytest.mark.parametrize("make", METHODS)
@pytest.mark.parametrize(("wishes", "match"), REFUSED)
def test_contradictions_are_named(make, wishes, match):
    with pytest.raises(DecompositionError, match=match):
        Optimizer(SPACE, make(**wishes))


@pytest.mark.parametrize(("make", "limit"), [(Auto, "max_group_size"), (AddGPUCB, "group_size")])
def test_a_limit_that_is_too_small_is_named(make, limit):
    method = make(together=[("lr", "batch"), ("batch", "act")], **{limit: 2})
    with pytest.raises(
        DecompositionError,
        match=f"'lr', 'batch', 'act' are together by .*group of 3, but {limit} is 2; raise {limit} to 3 or remove",
    ):
        Optimizer(SPACE, method)
    make(together=[("lr", "batch"), ("batch", "act")], **{limit: 3}).check(SPACE)


def test_known_groups_may_be_larger_than_learned_ones():
    assert Optimizer(SPACE, Auto(groups=[("lr", "batch", "act")], max_group_size=2))


def test_wishes_of_an_inner_method_are_checked_too():
    with pytest.raises(DecompositionError, match="there is no parameter 'rate'"):
        Optimizer(SPACE, CyclicGroups(AddGPUCB(together=[("rate", "lr")])))


# --- always kept to ------------------------------------------------------------------------------------------

D = 6
PAIRS = st.lists(st.tuples(st.integers(0, D - 1), st.integers(0, D - 1)).filter(lambda p: p[0] != p[1]), max_size=4)


def linked(together):
    """Which dimensions are connected, by powers of the adjacency matrix."""
    adjacent = np.eye(D, dtype=int)
    for a, b in together:
        adjacent[a, b] = adjacent[b, a] = 1
    return np.linalg.matrix_power(adjacent, D) > 0


def keeps(decomposition, together, apart, most):
    labels = decomposition.labels
    return (
        all(labels[a] == labels[b] for a, b in together)
        and all(labels[a] != labels[b] for a, b in apart)
        and max(map(len, decomposition.groups)) <= most
    )


@given(PAIRS, PAIRS, st.integers(1, D), st.integers(0, 2**32 - 1))
@settings(max_examples=150, deadline=None)
def test_wishes_are_refused_or_kept(together, apart, most, seed):
    space = Space.from_bounds([(0, 1)] * D)
    link = linked(together)
    possible = not any(link[a, b] for a, b in apart) and link.sum(axis=1).max() <= most
    if not possible:
        with pytest.raises(DecompositionError, match="remove"):
            GroupConstraints.of(space, together=tuple(together), apart=tuple(apart), max_group_size=most)
        return
    known = GroupConstraints.of(space, together=tuple(together), apart=tuple(apart), max_group_size=most)
    rng = np.random.default_rng(seed)
    assert keeps(known.start, together, apart, most)
    assert all(keeps(known.random(rng), together, apart, most) for _ in range(10))


@given(PAIRS, PAIRS, st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_learned_groups_keep_to_the_wishes(together, apart, seed):
    link = linked(together)
    apart = [pair for pair in apart if not link[pair]]
    known = GroupConstraints.of(Space.from_bounds([(0, 1)] * D), together=tuple(together), apart=tuple(apart))
    rng = np.random.default_rng(seed)
    X = rng.random((25, D))
    # Values that ask for what is forbidden: products of those apart.
    y = sum((np.sin(9 * X[:, a] * X[:, b]) for a, b in [*apart, (0, 1)]), np.zeros(25))
    y = (y - y.mean()) / y.std()
    found = search(
        X,
        y,
        AdditiveGP(known.start),
        rng,
        max_group_size=D,
        evaluations=150,
        together=known.together,
        apart=known.apart,
    )
    assert keeps(found, together, apart, D)


@pytest.mark.parametrize("size", [1, 2, 4, 9])
def test_with_nothing_known_random_groups_are_the_ordinary_ones(size):
    known = GroupConstraints.of(Space.from_bounds([(0, 1)] * 9), max_group_size=size)
    for seed in range(5):
        ordinary = Decomposition.random(9, size, np.random.default_rng(seed))
        assert known.random(np.random.default_rng(seed)) == ordinary


QUICK = {"n_init": 4, "n_cyc": 3, "fit": FitSettings(starts=1, evaluations=20)}


@pytest.mark.parametrize(
    "method",
    [
        Auto(n_init=4, together=[("lr", "act")], apart=[("batch", "layers")]),
        *(
            AddGPUCB(learn=learn, together=[("lr", "act")], apart=[("batch", "layers")], **QUICK)
            for learn in ("search", "random", "none")
        ),
    ],
    ids=["auto", "search", "random", "none"],
)
def test_a_mixed_study_keeps_to_the_wishes_from_the_first_model_on(method):
    opt = Optimizer(SPACE, method, seed=0)

    def value(p):  # the forbidden pair interacts, the wanted one does not
        return float(np.sin(p["batch"] / 99 * p["layers"]) + np.log10(p["lr"]) ** 2 / 9)

    models = 0
    for _ in range(45 if isinstance(method, Auto) else 15):
        trial = opt.ask()
        opt.tell(trial, value(trial.params))
        labels = opt.decomposition.labels
        models += 1
        assert labels[0] == labels[3]
        assert labels[1] != labels[2]
    assert models > 10


def test_known_groups_are_those_of_the_model_and_nothing_is_searched():
    opt = Optimizer(SPACE, Auto(n_init=5, groups=[("lr", "batch")]), seed=0)
    rng = np.random.default_rng(0)
    for _ in range(40):
        params = SPACE.from_unit(rng.random(5))
        opt.observe(params, float(params["layers"] * params["dropout"]))
    for _ in range(3):
        opt.tell(opt.ask(), 0.0)
    assert opt.decomposition.groups == ((0, 1), (2,), (3,), (4,))
    assert latest_state(opt.to_dict())["searched_at"] == 0


def test_wishes_survive_saving():
    opt = Optimizer(SPACE, Auto(together=[("lr", 3)], apart=[("lr", "batch")]), seed=0)
    again = Optimizer.from_dict(json.loads(json.dumps(opt.to_dict())))
    assert again.method == opt.method
    assert again.method.group_constraints(SPACE) == opt.method.group_constraints(SPACE)


def test_every_pair_of_a_wish_counts():
    known = GroupConstraints.of(SPACE, apart=(("lr", "batch", "act"),), max_group_size=5)
    for seed in range(20):
        labels = known.random(np.random.default_rng(seed)).labels
        assert all(labels[a] != labels[b] for a, b in itertools.combinations((0, 1, 3), 2))
