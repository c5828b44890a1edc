"""Groups from data: every shortcut of the search against the dense formula it stands for."""

import numpy as np
import pytest
from oracles import Additive, central_differences, partitions, random_points

from sumbo.errors import DecompositionError, SettingError
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.decomposition import Decomposition
from sumbo.gp.kernels import FAMILIES
from sumbo.structure import posterior, random_trials, sampling, search, search_overlapping
from sumbo.structure import score as score_module
from sumbo.structure.group_constraints import Rules
from sumbo.structure.partition_search import Relaxation, joined
from sumbo.structure.sampling import gibbs_sweep, sample, summarise
from sumbo.structure.score import SHORTLIST, PartitionMoves, Problem, Scorer, Tied

D = 6
TIED = Tied(lengthscale=0.4, variance=1.5, noise_variance=0.02)


def random_problem(rng, n=25, *, rules=None, family=2, nominal=False):
    categories = rng.integers(2, 5, size=D) * (rng.random(D) < 0.5) if nominal else np.zeros(D, int)
    X = random_points(rng, n, categories)
    y = rng.standard_normal(n)
    rules = rules or Rules.of(D, D)
    return Problem(np.ascontiguousarray(X.T), y, categories > 0, family, rules), categories


def dense(problem, categories, tied, groups):
    """The model that groups stand for, written out."""
    h = tied.spread(groups)
    return Additive(
        list(FAMILIES)[problem.family], tuple(groups), h.lengthscales, h.scales, categories, h.noise_variance
    )


def draw(groups, n, *, seed=0, kernel="se", D=None):
    """Points and standardised values of a function drawn from an additive GP."""
    rng = np.random.default_rng(seed)
    gp = AdditiveGP(groups, kernel=kernel, lengthscales=0.5)
    X = rng.random((n, gp.decomposition.dim))
    y = gp.sample_path(rng, features=2048)(X)
    return X, (y - y.mean()) / y.std()


def constant(problem):
    return 0.5 * len(problem.y) * np.log(2 * np.pi)


# --- scores ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", range(3))
@pytest.mark.parametrize("nominal", [False, True])
def test_score_is_evidence_of_the_dense_model_plus_prior(family, nominal):
    rng = np.random.default_rng(family)
    problem, categories = random_problem(rng, family=family, nominal=nominal)
    groups = [(0, 3), (1,), (2, 4, 5)]
    scorer = Scorer(problem, TIED)
    model = dense(problem, categories, TIED, groups)
    expected = model.log_evidence(problem.XT.T, problem.y) + constant(problem) - 0.5 * np.log(D) * 3
    assert scorer.score(scorer.total(groups), len(groups)) == pytest.approx(expected, rel=1e-10)


def test_units_are_scored_as_their_dimensions():
    rng = np.random.default_rng(1)
    tied_up = Rules.of(D, D, together=[(0, 3), (3, 5)])
    assert tied_up.units == ((0, 3, 5), (1,), (2,), (4,))
    problem, categories = random_problem(rng, rules=tied_up)
    scorer = Scorer(problem, TIED)
    model = dense(problem, categories, TIED, [(0, 2, 3, 5), (1,), (4,)])
    expected = model.log_evidence(problem.XT.T, problem.y) + constant(problem) - 0.5 * np.log(D)
    assert scorer.score(scorer.total([(0, 2), (1,), (3,)]), 3) == pytest.approx(expected, rel=1e-10)


def test_slopes_are_the_derivative_of_the_evidence():
    rng = np.random.default_rng(2)
    problem, _ = random_problem(rng)
    scorer = Scorer(problem, TIED)
    k, dk = scorer.total([(0, 1), (2, 3), (4, 5)]), scorer.kernel((1, 4, 5))
    ahead, behind = (scorer.score(k + step * dk, 3) for step in (1e-5, -1e-5))
    assert scorer.slopes(k) @ dk == pytest.approx((ahead - behind) / 2e-5, rel=1e-6)


def test_first_order_change_is_the_limit_of_small_changes():
    rng = np.random.default_rng(3)
    problem, _ = random_problem(rng)
    scorer = Scorer(problem, TIED)
    walk = PartitionMoves(scorer, [(0, 1, 2), (3, 4), (5,)], rng)
    change = (((0, 1, 2), (5,)), ((0, 1), (2, 5)))
    dk = sum(map(scorer.kernel, change[1])) - sum(map(scorer.kernel, change[0]))
    ahead, behind = (scorer.score(walk.k + step * dk, 3) for step in (1e-5, -1e-5))
    assert walk.first_order(change) == pytest.approx((ahead - behind) / 2e-5, rel=1e-6)


def test_few_kernels_are_kept(monkeypatch):
    rng = np.random.default_rng(4)
    problem, _ = random_problem(rng)
    monkeypatch.setattr(score_module, "_KEPT", 3 * 8 * 25 * 26 // 2)
    scorer = Scorer(problem, TIED)
    for i in range(D):
        scorer.kernel((i,))
    assert len(scorer._kernels) == 3


# --- walks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [0.0, 1.0, 20.0])
def test_a_walk_keeps_its_books(temperature):
    rng = np.random.default_rng(5)
    problem, _ = random_problem(rng, rules=Rules.of(D, 4, apart=[(0, 1)]))
    scorer = Scorer(problem, TIED)
    walk = PartitionMoves(scorer, [(u,) for u in range(D)], rng)
    for _ in range(5):
        before = walk.score
        walk.sweep(temperature, swaps=True, limit=10**6)
        Decomposition(walk.groups)  # disjoint and complete, or this raises
        assert all(problem.rules.allows(group) for group in walk.groups)
        np.testing.assert_allclose(walk.k, scorer.total(walk.groups), atol=1e-12)
        assert walk.score == pytest.approx(scorer.score(scorer.total(walk.groups), len(walk.groups)), abs=1e-8)
        if temperature == 0.0:
            assert walk.score >= before


def test_every_neighbour_is_a_decomposition():
    rng = np.random.default_rng(6)
    problem, _ = random_problem(rng)
    walk = PartitionMoves(Scorer(problem, TIED), [(0, 1, 2, 3), (4, 5)], rng)
    for candidates in walk._neighbours(swaps=True):
        for gone, come in candidates:
            after = Decomposition([g for g in walk.groups if g not in gone] + list(come))
            assert after.canonical() != Decomposition(walk.groups).canonical()
    assert len(walk.splits((0, 1, 2, 3))) == 3
    assert walk.merges() == [(((0, 1, 2, 3), (4, 5)), ((0, 1, 2, 3, 4, 5),))]
    assert walk.splits((0, 1)) == []


def test_large_groups_are_split_at_random():
    rng = np.random.default_rng(7)
    problem = Problem(rng.random((30, 10)), rng.standard_normal(10), np.zeros(30, bool), 0, Rules.of(30, 30))
    walk = PartitionMoves(Scorer(problem, TIED), [tuple(range(30))], rng)
    changes = walk.splits(tuple(range(30)))
    assert 32 <= len(changes) <= 64
    assert all(sorted(a + b) == list(range(30)) for _, (a, b) in changes)


def test_no_more_evaluations_than_given():
    rng = np.random.default_rng(8)
    problem, _ = random_problem(rng)
    walk = PartitionMoves(Scorer(problem, TIED), [(u,) for u in range(D)], rng)
    limit = problem.spent + 7
    walk.sweep(0.0, swaps=True, limit=limit)
    assert limit <= problem.spent < limit + SHORTLIST


# --- the relaxation -------------------------------------------------------------------------------------------------


def random_relaxation(rng, family=2):
    problem, categories = random_problem(rng, 12, family=family, nominal=True)
    relaxation = Relaxation(problem.XT, problem.y, problem.nominal, family)
    log_theta = relaxation.start() + rng.standard_normal(D * (D + 1) // 2 + 1)
    return relaxation, log_theta, problem, categories


@pytest.mark.parametrize("family", range(3))
def test_relaxation_is_the_evidence_of_weighted_products(family):
    rng = np.random.default_rng(family)
    relaxation, log_theta, problem, categories = random_relaxation(rng, family)
    X, y = problem.XT.T, problem.y
    one = Additive(list(FAMILIES)[family], tuple((i,) for i in range(D)), np.full(D, 0.5), np.ones(D), categories, 1.0)
    k = [one.k_group(i, X, X) for i in range(D)]
    K = np.exp(log_theta[-1]) * np.eye(len(y))
    for theta, i, j in zip(np.exp(log_theta), *np.triu_indices(D), strict=False):
        K += theta * (k[i] if i == j else k[i] * k[j])
    prior = -0.5 * ((log_theta[-1] - np.log(1e-3 * np.mean(y**2))) / 1.5) ** 2
    expected = -0.5 * y @ np.linalg.solve(K, y) - 0.5 * np.linalg.slogdet(K)[1] + prior
    assert relaxation.evidence(log_theta)[0] == pytest.approx(expected, rel=1e-8)


def test_relaxation_gradient():
    relaxation, log_theta, *_ = random_relaxation(np.random.default_rng(9))
    numeric = central_differences(lambda t: relaxation.evidence(t)[0], log_theta)
    np.testing.assert_allclose(relaxation.evidence(log_theta)[1], numeric, rtol=1e-5, atol=1e-7)


def test_weights_are_large_for_pairs_that_interact():
    X, y = draw([(0, 1), (2, 3), (4,), (5,)], 150)
    weights = Relaxation(X.T, y, np.zeros(D, bool), 0).weights()
    np.testing.assert_array_equal(weights, weights.T)
    order = np.argsort(weights[np.triu_indices(D, 1)])[::-1]
    assert {tuple(np.array(np.triu_indices(D, 1))[:, j].tolist()) for j in order[:2]} == {(0, 1), (2, 3)}


def test_joining_by_weight():
    weights = np.zeros((5, 5))
    for i, k, weight in [(0, 1, 9.0), (2, 3, 8.0), (1, 4, 6.0), (0, 4, 1.0)]:
        weights[i, k] = weights[k, i] = weight
    path = list(joined(weights, Rules.of(5, 5)))
    assert path[:4] == [
        [(0,), (1,), (2,), (3,), (4,)],
        [(0, 1), (2,), (3,), (4,)],
        [(0, 1), (2, 3), (4,)],
        [(0, 1, 4), (2, 3)],
    ]
    assert path[-1] == [(0, 1, 2, 3, 4)]
    assert list(joined(weights, Rules.of(5, 2)))[-1] == [(0, 1), (2, 3), (4,)]
    assert list(joined(weights, Rules.of(5, 5, apart=[(0, 1, 4), (2, 3)])))[1] == [(0, 2), (1,), (3,), (4,)]


# --- rules ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        (
            {"together": [(0, 1), (1, 2)], "apart": [(0, 2)]},
            r"0 and 2 are to be apart .* together=\(0, 1\) and together=\(1, 2\)",
        ),
        ({"together": [(0, 1), (1, 2), (2, 3)]}, "0, 1, 2, 3 are together by .* group of 4, but max_group_size is 3"),
        ({"together": [(0, 7)]}, r"together=\(0, 7\): dimensions go from 0 to 5; got 7"),
        ({"apart": [(-1, 2)]}, r"apart=\(-1, 2\): dimensions go from 0 to 5; got -1"),
    ],
)
def test_contradictions_are_named(wishes, words):
    with pytest.raises(DecompositionError, match=words):
        Rules.of(D, 3, **wishes)


def test_nearest_keeps_what_is_allowed():
    rules = Rules.of(D, 2, together=[(0, 1)], apart=[(4, 5)])
    near = rules.decomposition(rules.nearest(Decomposition([(0, 2), (1,), (3,), (4, 5)])))
    assert near == Decomposition([(0, 1), (2,), (3,), (4,), (5,)])
    assert rules.decomposition(rules.nearest(Decomposition([(0, 1), (2, 4), (3, 5)]))).groups == (
        (0, 1),
        (2, 4),
        (3, 5),
    )


# --- search ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["se", "matern52"])
def test_search_finds_the_groups(kernel):
    groups = ((0, 5), (1, 3, 6), (2,), (4, 7))
    X, y = draw(groups, 150, kernel=kernel)
    model = AdditiveGP(Decomposition.apart(8), kernel=kernel)
    assert search(X, y, model, np.random.default_rng(0), max_group_size=4).groups == groups


@pytest.mark.parametrize("truth", [Decomposition.apart(4), Decomposition.whole(4)])
def test_search_finds_the_extremes(truth):
    X, y = draw(truth, 120, seed=1)
    model = AdditiveGP([(0, 1), (2, 3)], kernel="se")
    assert search(X, y, model, np.random.default_rng(0), max_group_size=4) == truth


def relabelled(groups, new_name):
    return Decomposition([new_name[i] for i in group] for group in groups.groups).canonical()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("values", ["a sum", "noise"])
def test_parameters_listed_in_another_order_are_found_in_the_same_groups(seed, values):
    rng = np.random.default_rng(seed)
    categories = np.array([0, 0, 3, 0, 0, 4, 0, 0])
    X = rng.random((70, 8))
    X[:, 2], X[:, 5] = rng.integers(3, size=70) / 3, rng.integers(4, size=70) / 4
    X[0] = 0.5  # a first point that tells the dimensions apart by nothing
    y = np.cos(5 * X[:, 0] * X[:, 1]) + X[:, 2] * np.sin(6 * X[:, 3]) * X[:, 4] if values == "a sum" else rng.random(70)
    y = (y - y.mean()) / y.std()
    order = rng.permutation(8)
    new_name = np.argsort(order).tolist()

    def found(find, dims, evaluations):
        """With the parameters listed in the order of dims."""
        place = np.argsort(dims).tolist()
        groups = [[place[i] for i in group] for group in [(0, 6), (7, 1), (2,), (3,), (4,), (5,)]]
        return find(
            np.ascontiguousarray(X[:, dims]),
            y,
            AdditiveGP(groups, categories=categories[dims]),
            np.random.default_rng(seed),
            max_group_size=3,
            evaluations=evaluations,
            together=[(place[6], place[7])],
            apart=[(place[0], place[7]), (place[2], place[1])],
        )

    for find in (search, search_overlapping):
        groups = found(find, np.arange(8), 200)
        assert found(find, order, 200) == relabelled(groups, new_name)
    a, b = found(posterior, np.arange(8), 400), found(posterior, order, 400)
    assert (b.together[np.ix_(new_name, new_name)] == a.together).all()
    assert (b.sizes[new_name] == a.sizes).all()
    assert b.best == relabelled(a.best, new_name)
    assert set(b.decompositions) == {relabelled(d, new_name) for d in a.decompositions}


def test_search_honours_wishes():
    X, y = draw([(0, 1, 2), (3, 4), (5,)], 80)
    found = search(
        X, y, AdditiveGP(Decomposition.whole(D)), np.random.default_rng(0),
        max_group_size=3, together=[(0, 5)], apart=[(1, 2), (3, 4)],
    ).labels  # fmt: skip
    assert found[0] == found[5]
    assert found[1] != found[2]
    assert found[3] != found[4]
    assert max(np.bincount(found)) <= 3


def test_search_repeats_exactly_and_leaves_its_input_alone():
    X, y = draw([(0, 1, 2), (3, 4), (5,)], 40)
    model = AdditiveGP(Decomposition.apart(D))
    kept = X.copy(), y.copy()
    runs = [search(X, y, model, np.random.default_rng(3), max_group_size=3) for _ in range(2)]
    assert runs[0] == runs[1]
    np.testing.assert_array_equal(X, kept[0])
    np.testing.assert_array_equal(y, kept[1])


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_search_with_hardly_any_data(n):
    X = np.random.default_rng(0).random((n, D))
    found = search(X, np.zeros(n), AdditiveGP(Decomposition.whole(D)), np.random.default_rng(0), max_group_size=2)
    assert found.dim == D
    assert max(len(group) for group in found.groups) <= 2


def test_search_with_repeated_points_and_categories():
    rng = np.random.default_rng(0)
    X = random_points(rng, 30, [0, 3, 0, 2, 0, 0])
    X[10:20] = X[:10]
    y = X[:, 0] * (X[:, 1] > 0.5) + X[:, 2]
    model = AdditiveGP(Decomposition.apart(D), categories=[0, 3, 0, 2, 0, 0])
    assert search(X, y - y.mean(), model, rng, max_group_size=3).dim == D


def test_search_in_one_dimension():
    X, y = draw([(0,)], 10)
    assert search(X, y, AdditiveGP([(0,)]), np.random.default_rng(0), max_group_size=3).groups == ((0,),)


def test_search_on_many_points_explores_on_some():
    groups = ((0, 1), (2, 3), (4,), (5,))
    X, y = draw(groups, 450)
    model = AdditiveGP(Decomposition.apart(D), kernel="se")
    assert search(X, y, model, np.random.default_rng(0), max_group_size=3).groups == groups


def test_random_trials_return_the_present_groups_or_better():
    X, y = draw([(0, 1), (2, 3), (4, 5)], 100)
    truth = AdditiveGP([(0, 1), (2, 3), (4, 5)], kernel="se").fit(X, y)
    assert random_trials(X, y, truth, np.random.default_rng(0), group_size=2, trials=5) == truth.decomposition
    wrong = AdditiveGP([(0, 2), (1, 4), (3, 5)], kernel="se").fit(X, y)
    found = random_trials(X, y, wrong, np.random.default_rng(0), group_size=2, trials=50)
    assert found != wrong.decomposition
    assert [len(group) for group in found.groups] == [2, 2, 2]


@pytest.mark.parametrize("power", [1, 3, 5])
def test_justified_trust_by_leaving_out_every_value(power):
    rng = np.random.default_rng(power)
    problem, categories = random_problem(rng, n=40, nominal=True)
    problem.y[:] = problem.y**power  # the higher, the more surprising a few of them
    groups, tied = [(0, 3), (1,), (2, 4, 5)], Tied(lengthscale=0.4, variance=1.5, noise_variance=2.0)
    model, X, y = dense(problem, categories, tied, groups), problem.XT.T, problem.y
    z = []
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        mean, covariance = model.posterior(X[others], y[others], X[i : i + 1])
        z.append((y[i] - mean[0]) / np.sqrt(covariance[0, 0] + tied.noise_variance))
    wanted = 2.0 * np.mean(np.square(z)) / np.var(np.square(z))
    assert (wanted < 0.5) == (power > 1)
    assert Scorer(problem, tied).justified_trust(groups) == pytest.approx(min(1.0, wanted), rel=1e-6)


@pytest.mark.parametrize(("kernel", "family"), [("se", 0), ("matern52", 2)])
def test_scores_of_a_right_model_are_believed(kernel, family):
    found, groups = [], [(0, 1), (2, 3)]
    for seed in range(10):
        X, y = draw(groups, 100, seed=seed, kernel=kernel)
        y += 0.03 * np.random.default_rng(seed).standard_normal(len(y))
        problem = Problem(np.ascontiguousarray(X.T), y, np.zeros(4, bool), family, Rules.of(4, 4))
        found.append(Scorer(problem, problem.fitted(groups).tied).justified_trust(groups))
    assert np.median(found) > 0.9


def test_trust_weighs_the_evidence_and_not_the_prior():
    problem, _ = random_problem(np.random.default_rng(0))
    for groups in ([(u,) for u in range(D)], [(0, 3), (1,), (2, 4, 5)]):
        full, half, none = (Scorer(problem, TIED, trust) for trust in (1.0, 0.5, 0.0))
        k, M = full.total(groups), len(groups)
        assert none.score(k, M) == problem.log_prior(M)
        assert half.score(k, M) == pytest.approx((full.score(k, M) + problem.log_prior(M)) / 2.0)
        np.testing.assert_allclose(half.slopes(k), 0.5 * full.slopes(k))


def test_constant_values_are_trusted():
    problem = Problem(np.random.default_rng(0).random((3, 9)), np.zeros(9), np.zeros(3, bool), 0, Rules.of(3, 3))
    assert Scorer(problem, TIED).justified_trust([(0,), (1, 2)]) == 1.0


# --- the posterior --------------------------------------------------------------------------------------------------


def exact_posterior(problem, tied, temperature=1.0, trust=1.0):
    """Probability of every allowed decomposition, by enumeration."""
    scorer = Scorer(problem, tied, trust)
    allowed = [p for p in partitions(list(range(len(problem.rules.units)))) if all(map(problem.rules.allows, p))]
    scores = np.array([scorer.score(scorer.total(groups), len(groups)) for groups in allowed]) / temperature
    p = np.exp(scores - scores.max())
    return {problem.rules.decomposition(g): float(v) for g, v in zip(allowed, p / p.sum(), strict=True)}


def four_dimensions(seed, **wishes):
    """A little problem with many plausible answers."""
    X, y = draw([(0, 1), (2, 3)], 12, seed=seed)
    return Problem(np.ascontiguousarray(X.T), y, np.zeros(4, bool), 0, Rules.of(4, 4, **wishes))


def test_there_are_fifteen_partitions_of_four():
    assert len(exact_posterior(four_dimensions(0), TIED)) == 15


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_gibbs_sweeps_leave_the_exact_posterior_as_it_is(temperature):
    rng = np.random.default_rng(0)
    problem = four_dimensions(1)
    exact = exact_posterior(problem, TIED, temperature)
    walk = PartitionMoves(Scorer(problem, TIED), [(u,) for u in range(4)], rng)
    counts = dict.fromkeys(exact, 0)
    for _ in range(4000):
        gibbs_sweep(walk, temperature)
        counts[problem.rules.decomposition(walk.groups)] += 1
    assert max(exact.values()) < 0.9  # else this test would be too easy
    for decomposition, p in exact.items():
        assert counts[decomposition] / 4000 == pytest.approx(p, abs=0.03)


@pytest.mark.parametrize("wishes", [{}, {"together": [(0, 3)]}, {"apart": [(0, 1, 2)]}])
def test_samples_follow_the_exact_posterior(wishes, monkeypatch):
    monkeypatch.setattr(sampling, "_SOFTENED", np.inf)  # where chains mix, they all count the same
    rng = np.random.default_rng(0)
    problem = four_dimensions(2, **wishes)
    start = problem.rules.extremes()[0]
    exact = exact_posterior(problem, TIED, trust=Scorer(problem, TIED).justified_trust(start))
    found = dict.fromkeys(exact, 0.0)
    for decomposition, weight in sample(problem, TIED, start, rng, 40000):
        found[decomposition] += weight
    assert max(exact.values()) < 0.9
    for decomposition, p in exact.items():
        assert found[decomposition] == pytest.approx(p, abs=0.05)


def test_weights_of_chains():
    a, b = Decomposition([(0, 1)]), Decomposition([(0,), (1,)])
    shares = sampling.weighted([[(a, 10.0), (b, 12.0)], [(b, 11.0 - sampling._SOFTENED * np.log(3.0))] * 2])
    assert shares == [(a, pytest.approx(0.375)), (b, pytest.approx(0.375)), *[(b, pytest.approx(0.125))] * 2]


def test_summary_counts():
    a, b = Decomposition([(0, 1), (2,)]), Decomposition([(0,), (1,), (2,)])
    found = summarise([(a, 0.25), (b, 0.25), (a, 0.5)], a)
    assert found.decompositions == (a, b)
    assert found.weights.tolist() == [0.75, 0.25]
    assert found.together.tolist() == [[1, 0.75, 0], [0.75, 1, 0], [0, 0, 1]]
    assert found.sizes.tolist() == [[0.25, 0.75, 0], [0.25, 0.75, 0], [1, 0, 0]]
    assert found.best == a


def test_posterior_is_sure_with_many_points_and_unsure_with_few():
    groups = [(0, 1), (2, 3), (4,), (5,)]
    model = AdditiveGP(Decomposition.apart(D), kernel="se")
    options = {"max_group_size": 3, "evaluations": 3000}
    X, y = draw(groups, 150)
    sure = posterior(X, y, model, np.random.default_rng(0), **options)
    unsure = posterior(X[:15], y[:15], model, np.random.default_rng(0), **options)
    assert min(sure.together[0, 1], sure.together[2, 3]) > 0.95
    assert sure.best == sure.decompositions[0] == Decomposition(groups)
    off_diagonal = unsure.together[np.triu_indices(D, 1)]
    assert off_diagonal.max() < 0.9
    assert len(unsure.decompositions) > len(sure.decompositions)
    for found in (sure, unsure):
        np.testing.assert_allclose(found.sizes.sum(axis=1), 1.0)
        assert found.weights.sum() == pytest.approx(1.0)


def test_posterior_repeats_exactly_and_honours_wishes():
    X, y = draw([(0, 1, 2), (3, 4), (5,)], 30)
    model = AdditiveGP(Decomposition.whole(D))
    options = {"max_group_size": 3, "evaluations": 600, "together": [(0, 5)], "apart": [(3, 4)]}
    one, two = (posterior(X, y, model, np.random.default_rng(1), **options) for _ in range(2))
    np.testing.assert_array_equal(one.together, two.together)
    assert one.decompositions == two.decompositions
    assert one.together[0, 5] == pytest.approx(1.0)
    assert one.together[3, 4] == 0.0
    assert one.sizes[:, 3:].sum() == 0.0


def test_posterior_needs_data():
    with pytest.raises(SettingError, match="at least 2 observations; got 1"):
        posterior(np.zeros((1, 2)), np.zeros(1), AdditiveGP([(0, 1)]), np.random.default_rng(0), max_group_size=2)
