"""Search for the groups with the highest evidence and prior.

It goes three ways to a good start, the present groups, a relaxation, and a random walk at falling temperature, and from
each uphill by moves, swaps, splits and merges, fitting the hyperparameters in between. With many points it does so on
some of them, and only the last climb sees all. Where there are evaluations enough, groups of one size are searched too.
"""

from dataclasses import replace

import numpy as np

from sumbo._typing import Array
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.decomposition import Decomposition
from sumbo.gp.kernels import family_index
from sumbo.gp.threads import on_one_thread
from sumbo.structure.canonical_order import Order
from sumbo.structure.equal_size import find_even, worth
from sumbo.structure.moves import PartitionMoves
from sumbo.structure.relaxation import Relaxation, joined
from sumbo.structure.rules import Group, Rules, Wishes
from sumbo.structure.score import QUICK, Fitted, Problem, Scorer, score_of

_HEAT = np.geomspace(3.0, 0.5, 8)  # temperatures of a walk, in nats
_FIT_EVERY = 4  # temperatures
_COARSE = 400  # points that are enough to explore with
_ON_SOME = 0.7  # share of the evaluations that is spent on these
_EVEN_FROM = 10_000  # evaluations; a climb for every size takes more than a thousand, and most get stuck
_EVEN = 0.5  # share of these that goes into groups of one size, which is also their share of the prior
_RELAXATION_WORK = 4e8  # D^2 N, multiplications of a step; beyond that, fewer points are used
_RELAXATION_POINTS = 60  # with fewer there is nothing to learn


@on_one_thread
def search(
    X: Array,
    y: Array,
    model: AdditiveGP,
    rng: np.random.Generator,
    *,
    max_group_size: int,
    evaluations: int = 500,
    together: Wishes = (),
    apart: Wishes = (),
) -> Decomposition:
    """The groups with the highest evidence and prior that are found, hyperparameters fitted to each candidate.

    Args:
        X, y: observations, values standardised.
        model: gives the present groups, the kernel and the categories.
        rng: decides orders and random steps.
        max_group_size: no group grows beyond this.
        evaluations: about so many evidence evaluations; score tests are not counted. From 10000 on, and where nothing
            is wished, half of them go into groups of one size, which then have half of the prior.
        together: sets of dimensions that share a group.
        apart: sets of dimensions of which no two share a group.

    Raises:
        DecompositionError: the wishes contradict each other, or the limit.
    """
    order, problem, present = sorted_problem(X, y, model, max_group_size, together, apart)
    rules, of_one_size = problem.rules, 0
    if len(y) < 2:
        return order.named(rules.decomposition(present))
    if evaluations >= _EVEN_FROM and not rules.wishes and min(X.shape[1], max_group_size) > 1:
        of_one_size = int(_EVEN * evaluations)
    found = find(problem, present, rng, evaluations - of_one_size)
    if of_one_size:
        found = max(found, _of_one_size(problem, rng, of_one_size), key=lambda at: worth(problem, at))
    return order.named(rules.decomposition(found.groups))


def sorted_problem(
    X: Array, y: Array, model: AdditiveGP, max_group_size: int, together: Wishes, apart: Wishes
) -> tuple[Order, Problem, list[Group]]:
    """The data's own order of dimensions, and in that order the problem and the present groups."""
    order = Order.of(X)
    rules, model = order.rules(max_group_size, together, apart), order.model(model)
    return order, problem_of(order.points(X), y, model, rules), rules.nearest(model.decomposition)


def problem_of(X: Array, y: Array, model: AdditiveGP, rules: Rules) -> Problem:
    return Problem(np.ascontiguousarray(X.T), y, model.categories > 0, family_index(model.kernel), rules)


def find(problem: Problem, present: list[Group], rng: np.random.Generator, evaluations: int) -> Fitted:
    """The best groups, with hyperparameters fitted to all points."""
    coarse = _on_some(problem, rng)
    if coarse is problem:
        return _explored(problem, present, rng, evaluations)
    rough = _explored(coarse, present, rng, int(_ON_SOME * evaluations))
    problem.spent += coarse.spent
    starts = [problem.fitted(rough.groups, rough.tied), problem.fitted(present)]
    left = evaluations - problem.spent
    return _uphill(problem, max(starts, key=score_of), rng, left)


def _on_some(problem: Problem, rng: np.random.Generator) -> Problem:
    """The same with as many of the points as are enough to explore with."""
    n = len(problem.y)
    if n <= _COARSE:
        return problem
    some = np.sort(rng.choice(n, _COARSE, replace=False))
    return replace(problem, XT=np.ascontiguousarray(problem.XT[:, some]), y=problem.y[some], spent=0)


def _of_one_size(problem: Problem, rng: np.random.Generator, evaluations: int) -> Fitted:
    coarse = _on_some(problem, rng)
    weights = _pair_weights(coarse, rng)
    D = len(problem.XT)
    found = find_even(coarse, np.zeros((D, D)) if weights is None else weights, rng, evaluations)
    return found if coarse is problem else problem.fitted(found.groups, found.tied)


def _explored(problem: Problem, present: list[Group], rng: np.random.Generator, evaluations: int) -> Fitted:
    best = _uphill(problem, problem.fitted(present), rng, evaluations // 3)
    relaxed = _relaxed_start(problem, rng)
    if relaxed is not None:
        best = max(best, _uphill(problem, relaxed, rng, evaluations - problem.spent), key=score_of)
    for extreme in problem.rules.extremes():
        best = max(best, problem.fitted(extreme, settings=QUICK), key=score_of)
    while evaluations - problem.spent > 10 * len(problem.rules.units):
        walked = _anneal(problem, best, rng, evaluations - problem.spent)
        best = max(best, _uphill(problem, walked, rng, evaluations - problem.spent), key=score_of)
    return best


def _uphill(problem: Problem, start: Fitted, rng: np.random.Generator, budget: int) -> Fitted:
    """Improve groups and hyperparameters in turn until neither changes or the budget is spent."""
    limit = problem.spent + budget
    at = start
    while problem.spent < limit:
        walk = PartitionMoves(Scorer(problem, at.tied), at.groups, rng)
        changed = walk.sweep(0.0, swaps=False, limit=limit)
        while problem.spent < limit and (more := walk.sweep(0.0, swaps=True, limit=limit)):
            changed += more
        if not changed:
            break
        found = problem.fitted(walk.groups, at.tied)
        if found.score <= at.score + 1e-6:
            break
        at = found
    return at


def _anneal(problem: Problem, start: Fitted, rng: np.random.Generator, budget: int) -> Fitted:
    """A random walk from good groups at falling temperature, hyperparameters following."""
    limit = problem.spent + budget // 2  # the other half is to climb again
    at = start
    walk = PartitionMoves(Scorer(problem, at.tied), at.groups, rng)
    for t, temperature in enumerate(_HEAT, start=1):
        walk.sweep(float(temperature), swaps=False, limit=limit)
        if t % _FIT_EVERY == 0:
            at = problem.fitted(walk.groups, at.tied, QUICK)
            walk = PartitionMoves(Scorer(problem, at.tied), at.groups, rng)
    return at


def _relaxed_start(problem: Problem, rng: np.random.Generator) -> Fitted | None:
    """Of the groups that appear when dimensions are joined by their weights in the relaxation, the best."""
    weights = _pair_weights(problem, rng)
    if weights is None:
        return None
    scorer = Scorer(problem, problem.first_guess())
    path = list(joined(weights, problem.rules))
    best = max(path, key=lambda groups: scorer.score(scorer.total(groups), len(groups)))
    return problem.fitted(best, settings=QUICK)


def _pair_weights(problem: Problem, rng: np.random.Generator) -> Array | None:
    """Weights of pairs in the relaxation, from some of the points where all would be too much work; None if too few."""
    D, n = problem.XT.shape
    m = min(n, int(np.sqrt(2.0 * _RELAXATION_WORK) / D))
    if m < min(n, _RELAXATION_POINTS) or D < 2:
        return None
    chosen = np.sort(rng.choice(n, m, replace=False)) if m < n else np.arange(n)
    relaxation = Relaxation(problem.XT[:, chosen], problem.y[chosen], problem.nominal, problem.family)
    weights = relaxation.weights()
    problem.spent += relaxation.evaluations
    return weights
