"""Groups of one size: the prior against enumeration, the search against evidence from scratch and planted groups."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import partitions

from sumbo.gp.additive import AdditiveGP
from sumbo.gp.decomposition import Decomposition
from sumbo.structure import partition_search, search
from sumbo.structure.group_constraints import Rules
from sumbo.structure.score import PartitionMoves, Problem, Scorer, Tied, log_normaliser, log_prior, worth

TIED = Tied(lengthscale=0.4, variance=1.5, noise_variance=0.02)


def planted(groups, n, *, seed=0):
    """Points and standardised values of a function drawn from an additive GP."""
    rng = np.random.default_rng(seed)
    gp = AdditiveGP(groups, kernel="se", lengthscales=0.5)
    X = rng.random((n, gp.decomposition.dim))
    y = gp.sample_path(rng, features=2048)(X)
    return X, (y - y.mean()) / y.std()


def noise(D, n=15, *, largest=None):
    rng = np.random.default_rng(D)
    rules = Rules.of(D, largest or D)
    return Problem(rng.random((D, n)), rng.standard_normal(n), np.zeros(D, bool), 0, rules), rng


def within(W, groups):
    return sum(W[i, k] for group in groups for i, k in combinations(group, 2))


# --- the prior ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("D", "largest"), [(D, largest) for D in range(2, 7) for largest in range(2, D + 1)])
def test_prior_adds_up_to_one_and_half_of_it_belongs_to_groups_of_one_size(D, largest):
    allowed = [p for p in partitions(list(range(D))) if max(map(len, p)) <= largest]
    sizes = [sorted(map(len, p)) for p in allowed]
    p = np.array([np.exp(log_prior(s, largest)) for s in sizes])
    weights = np.array([D ** (-0.5 * (D - len(s))) for s in sizes])
    assert log_normaliser(D, largest) == pytest.approx(np.log(weights.sum()), rel=1e-12)
    assert p.sum() == pytest.approx(1.0, rel=1e-12)
    bonus = p - 0.5 * weights / weights.sum()
    for d in range(2, largest + 1):  # each size has the same share, and nothing else has any
        mine = [s == sorted([d] * (D // d) + [D % d] * (D % d > 0)) for s in sizes]
        assert bonus[mine].sum() == pytest.approx(0.5 / (largest - 1), rel=1e-9)


def test_worth_is_evidence_and_prior():
    problem, _ = noise(6, largest=4)
    for groups in ([(0, 1), (2, 3), (4, 5)], [(0, 1, 2), (3,), (4, 5)]):
        at = problem.fitted(groups)
        evidence = at.score + 0.5 * np.log(6) * (6 - len(groups))
        assert worth(problem, at) == pytest.approx(evidence + log_prior([*map(len, groups)], 4))


# --- the search -----------------------------------------------------------------------------------------------------


@given(st.integers(2, 9), st.integers(2, 9), st.integers(0, 10**6))
def test_by_weight_and_dealt_keep_to_the_sizes(D, d, seed):
    rng = np.random.default_rng(seed)
    W = np.triu(rng.random((D, D)), 1)
    sizes = sorted([min(d, D)] * (D // min(d, D)) + [D % min(d, D)] * (D % min(d, D) > 0))
    groups = partition_search.by_weight(W + W.T, min(d, D), rng)
    for candidate in (groups, partition_search.dealt(groups, rng)):
        assert Decomposition(candidate).dim == D  # disjoint and complete, or this raises
        assert sorted(map(len, candidate)) == sizes


@pytest.mark.parametrize(("D", "d"), [(6, 2), (6, 3), (7, 3), (8, 4), (5, 5)])
def test_by_weight_finds_the_most_weight(D, d):
    rng = np.random.default_rng(D * d)
    W = np.triu(rng.exponential(size=(D, D)), 1)
    W = W + W.T
    sizes = sorted([d] * (D // d) + [D % d] * (D % d > 0))
    most = max(within(W, p) for p in partitions(list(range(D))) if sorted(map(len, p)) == sizes)
    assert within(W, partition_search.by_weight(W, d, rng)) == pytest.approx(most)


def test_a_climb_ends_where_no_exchange_helps_and_its_score_is_that_from_scratch():
    problem, rng = noise(7)
    scorer = Scorer(problem, TIED)
    walk = PartitionMoves(scorer, [(0, 1, 2), (3, 4, 5), (6,)], rng)
    first = walk.score
    partition_search.climb(walk, range(7), 10**6)
    assert sorted(map(len, walk.groups)) == [1, 3, 3]
    assert walk.score == pytest.approx(scorer.score(scorer.total(walk.groups), 3), abs=1e-9)
    assert walk.score > first
    for i in range(7):
        assert not walk.step(walk.shortlisted(walk.exchanges(i)), 0.0)


def test_exchanges_are_all_pairs_of_other_groups():
    problem, rng = noise(6)
    walk = PartitionMoves(Scorer(problem, TIED), [(0, 1), (2, 3), (4, 5)], rng)
    after = {tuple(sorted([g for g in walk.groups if g not in gone] + list(come))) for gone, come in walk.exchanges(0)}
    assert after == {
        ((0, 3), (1, 2), (4, 5)),
        ((0, 2), (1, 3), (4, 5)),
        ((0, 5), (1, 4), (2, 3)),
        ((0, 4), (1, 5), (2, 3)),
    }


@pytest.mark.parametrize("weights", ["none", "misleading"])
def test_planted_groups_are_found_without_help_of_the_weights(weights):
    groups = [(0, 4, 8), (1, 5, 6), (2, 3, 7)]
    X, y = planted(groups, 150)
    problem = Problem(np.ascontiguousarray(X.T), y, np.zeros(9, bool), 0, Rules.of(9, 4))
    W = np.zeros((9, 9))
    if weights == "misleading":
        W[0, 1] = W[1, 0] = W[4, 5] = W[5, 4] = 1.0
    found = partition_search.climb_equal_sizes(problem, W, np.random.default_rng(0), 2000)
    assert sorted(found.groups) == groups
    assert problem.spent < 2100


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_last_group_may_be_smaller(seed):
    groups = [(0, 3, 5), (1, 4, 6), (2,)]
    X, y = planted(groups, 120, seed=seed)
    problem = Problem(np.ascontiguousarray(X.T), y, np.zeros(7, bool), 0, Rules.of(7, 4))
    found = partition_search.climb_equal_sizes(problem, np.zeros((7, 7)), np.random.default_rng(0), 1500)
    assert sorted(found.groups, key=min) == sorted(groups, key=min)


def test_with_many_evaluations_and_few_points_groups_of_one_size_are_believed_sooner():
    groups = ((0, 4, 8), (1, 5, 6), (2, 3, 7))
    X, y = planted(groups, 50)
    model = AdditiveGP(Decomposition.apart(9), kernel="se")
    few, many = (
        search(X, y, model, np.random.default_rng(0), max_group_size=4, evaluations=evaluations)
        for evaluations in (2000, partition_search._EVEN_FROM)
    )
    assert few.groups != groups
    assert many.groups == groups


def test_groups_of_several_sizes_are_still_found_with_many_evaluations():
    groups = ((0, 5), (1, 3, 6), (2,), (4, 7))
    X, y = planted(groups, 100)
    model = AdditiveGP(Decomposition.apart(8), kernel="se")
    found = search(X, y, model, np.random.default_rng(0), max_group_size=4, evaluations=partition_search._EVEN_FROM)
    assert found.groups == groups


@pytest.mark.parametrize("wishes", [{"together": [(0, 2)]}, {"apart": [(0, 1)]}])
def test_wishes_are_kept_with_many_evaluations(wishes, monkeypatch):
    monkeypatch.setattr(partition_search, "_EVEN_FROM", 300)
    X, y = planted([(0, 1), (2, 3)], 20)
    model = AdditiveGP(Decomposition.apart(4), kernel="se")
    labels = search(X, y, model, np.random.default_rng(0), max_group_size=2, evaluations=300, **wishes).labels
    assert (labels[0] == labels[2]) == ("together" in wishes)
    assert labels[0] != labels[1]


def test_many_evaluations_where_nothing_can_join(monkeypatch):
    monkeypatch.setattr(partition_search, "_EVEN_FROM", 50)
    X, y = planted([(0,), (1,)], 8)
    rng = np.random.default_rng(0)
    one = search(X[:, :1], y, AdditiveGP([(0,)]), rng, max_group_size=3, evaluations=50)
    assert one.groups == ((0,),)
    assert search(X, y, AdditiveGP([(0, 1)]), rng, max_group_size=1, evaluations=50) == Decomposition.apart(2)


@pytest.mark.parametrize("n", [2, 5, 450])
def test_many_evaluations_with_hardly_any_points_and_with_very_many(n, monkeypatch):
    monkeypatch.setattr(partition_search, "_EVEN_FROM", 200)
    groups = ((0, 2), (1, 3))
    X, y = planted(groups, n)
    model = AdditiveGP(Decomposition.apart(4), kernel="se")
    found = search(X, y, model, np.random.default_rng(0), max_group_size=3, evaluations=200)
    assert found.dim == 4
    assert n < 10 or found.groups == groups
