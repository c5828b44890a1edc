"""Decompositions: every valid one is accepted and kept, every other says what is wrong with it."""

import copy
import pickle
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sumbo.errors import DecompositionError
from sumbo.gp.decomposition import Decomposition


@st.composite
def partitions(draw):
    order = draw(st.permutations(range(draw(st.integers(1, 12)))))
    cuts = draw(st.lists(st.booleans(), min_size=len(order) - 1, max_size=len(order) - 1))
    groups = [[order[0]]]
    for i, cut in zip(order[1:], cuts, strict=True):
        if cut:
            groups.append([i])
        else:
            groups[-1].append(i)
    return groups


@given(partitions())
def test_groups_are_kept_in_their_order(groups):
    d = Decomposition(groups)
    assert d.groups == tuple(map(tuple, groups))
    assert len(d) == len(groups)
    assert d.dim == sum(map(len, groups))
    assert d.disjoint
    assert all(type(i) is int for group in d.groups for i in group)


@given(partitions())
def test_labels_name_the_group_of_each_dimension(groups):
    d = Decomposition(groups)
    assert len(d.labels) == d.dim
    for i, j in enumerate(d.labels):
        assert i in d.groups[j]


@given(partitions(), st.randoms(use_true_random=False))
def test_canonical_forgets_order_and_nothing_else(groups, random):
    d = Decomposition(groups)
    shuffled = [random.sample(group, len(group)) for group in random.sample(groups, len(groups))]
    canonical = d.canonical()
    assert canonical == Decomposition(shuffled).canonical() == canonical.canonical()
    assert {frozenset(g) for g in canonical.groups} == {frozenset(g) for g in groups}
    assert list(canonical.groups) == sorted(tuple(sorted(g)) for g in groups)


@given(partitions())
def test_is_a_value(groups):
    d, same = Decomposition(groups), Decomposition(tuple(map(tuple, groups)))
    assert d == same
    assert hash(d) == hash(same)
    assert {d: 1}[same] == 1
    assert d != Decomposition([*groups, [d.dim]])
    assert copy.deepcopy(d) == pickle.loads(pickle.dumps(d)) == d


@st.composite
def covers(draw):
    """Different groups that share dimensions and leave none out."""
    D = draw(st.integers(1, 8))
    dims = st.sets(st.integers(0, D - 1), min_size=1)
    groups = draw(st.sets(dims.map(frozenset), max_size=6))
    left = set(range(D)) - set().union(*groups)
    return D, [sorted(group) for group in groups] + [[i] for i in sorted(left)]


@given(covers())
def test_groups_may_overlap(cover):
    D, groups = cover
    d = Decomposition(groups)
    assert d.groups == tuple(map(tuple, groups))
    assert (d.dim, len(d)) == (D, len(groups))
    assert d.disjoint == (sum(map(len, groups)) == D)
    assert d.canonical().groups == tuple(sorted(map(tuple, groups)))
    assert Decomposition([list(group) for group in d.groups]) == d
    if not d.disjoint:
        with pytest.raises(DecompositionError, match="in several groups"):
            _ = d.labels


def test_the_shared_dimensions_are_named():
    with pytest.raises(DecompositionError, match=r"dimension\(s\) 1, 3 are in several groups"):
        _ = Decomposition([(0, 1), (1, 2, 3), (3,)]).labels


def test_order_of_groups_is_part_of_the_value():
    assert Decomposition([(0,), (1,)]) != Decomposition([(1,), (0,)])


def test_is_frozen():
    d = Decomposition([(0,)])
    with pytest.raises(AttributeError):
        d.groups = ((0, 1),)


def test_takes_any_iterable_of_integers():
    expected = Decomposition([(0, 2), (1,)])
    assert Decomposition([np.array([0, 2]), np.array([1])]) == expected
    assert Decomposition(iter([iter([0, 2]), iter([1])])) == expected
    assert Decomposition([{0, 2}, range(1, 2)]) == expected
    assert all(type(i) is int for group in Decomposition(np.array([[1], [0]])).groups for i in group)


def test_later_changes_of_the_argument_do_not_matter():
    groups = [[0, 1], [2]]
    d = Decomposition(groups)
    groups[0].append(3)
    assert d.groups == ((0, 1), (2,))


@given(st.integers(1, 40), st.integers(1, 45), st.integers(0, 1000))
@settings(deadline=None)
def test_random_covers_all_dimensions_in_groups_of_the_size_asked_for(D, group_size, seed):
    d = Decomposition.random(D, group_size, np.random.default_rng(seed))
    assert sorted(i for group in d.groups for i in group) == list(range(D))
    sizes = sorted(map(len, d.groups), reverse=True)
    expected = [group_size] * (D // group_size) + [D % group_size] * (D % group_size > 0)
    assert sizes == expected
    assert d == d.canonical()
    assert d == Decomposition.random(D, group_size, np.random.default_rng(seed))


def test_random_reaches_every_partition():
    rng = np.random.default_rng(0)
    assert len({Decomposition.random(4, 2, rng) for _ in range(100)}) == 3
    assert len({Decomposition.random(5, 2, rng) for _ in range(400)}) == 15


@pytest.mark.parametrize(("D", "group_size"), [(0, 1), (3, 0), (-1, 2), (4, -1)])
def test_random_without_dimensions(D, group_size):
    with pytest.raises(DecompositionError, match=f"at least 1; got D={D}, group_size={group_size}"):
        Decomposition.random(D, group_size, np.random.default_rng(0))


def test_apart_and_whole():
    assert Decomposition.apart(3).groups == ((0,), (1,), (2,))
    assert Decomposition.whole(3).groups == ((0, 1, 2),)
    assert Decomposition.apart(1) == Decomposition.whole(1)
    assert Decomposition.apart(3).labels == (0, 1, 2)
    assert Decomposition.whole(3).labels == (0, 0, 0)


@pytest.mark.parametrize("make", [Decomposition.apart, Decomposition.whole])
def test_no_dimensions(make):
    with pytest.raises(DecompositionError, match="at least one dimension"):
        make(0)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([], "every group needs at least one dimension"),
        ([()], "every group needs at least one dimension"),
        ([(0,), ()], "every group needs at least one dimension"),
        ([(0, 1), (2, 1), (1, 0)], r"group \(0, 1\) is given more than once"),
        ([(0, 0)], r"group \(0, 0\) has dimension\(s\) 0 more than once"),
        ([(0, 1), (2, 1, 2)], r"group \(2, 1, 2\) has dimension\(s\) 2 more than once"),
        ([(0, 1), (1, 3)], r"dimension\(s\) 2 of 0 to 3 are in no group"),
        ([(-1, 0)], "numbered from 0; got -1"),
        ([(0,), (2,)], r"dimension\(s\) 1 of 0 to 2 are in no group"),
        ([(1,)], r"dimension\(s\) 0 of 0 to 1 are in no group"),
        ([(0, 20)], r"dimension\(s\) 1, 2, 3, 4, 5, 6, 7, 8, \.\.\. of 0 to 20 are in no group"),
        ([(0, 1.5)], r"groups must be lists of dimension numbers, such as"),
        ([("0",)], "groups must be lists of dimension numbers"),
        (["01"], "groups must be lists of dimension numbers"),
        ([0, 1], "groups must be lists of dimension numbers"),
        (5, "groups must be lists of dimension numbers"),
        (None, "groups must be lists of dimension numbers"),
        ([(0, None)], "groups must be lists of dimension numbers"),
    ],
)
def test_what_is_wrong_is_said(groups, message):
    with pytest.raises(DecompositionError, match=message):
        Decomposition(groups)


@pytest.mark.parametrize("largest", [10**6, 10**12, 10**30])
def test_a_huge_number_is_refused_at_once(largest):
    start = time.perf_counter()
    with pytest.raises(DecompositionError, match="in no group") as caught:
        Decomposition([(0, largest)])
    assert time.perf_counter() - start < 1
    assert "-1" not in str(caught.value)  # names a dimension that is missing, not a placeholder


def test_a_million_dimensions_are_many_but_allowed():
    assert Decomposition.whole(10**6 + 1).dim == 10**6 + 1
