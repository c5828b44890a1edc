"""Groups of one size: far fewer than groups of any sizes, so less evidence is enough to believe in them.

Half of the prior belongs to decompositions into groups of one size d, the paper's own family, every d from 2 to the
limit as likely as the others; where d does not divide D, one group is smaller. The other half belongs to all
decompositions, each with the weight that `score` gives it. Here both halves add up to one, so results of either kind
can be compared.

Exchanging two dimensions keeps the sizes, but a climb by exchanges alone soon gets stuck. What helps is to deal the
dimensions of a few groups anew and climb again, many times: most of what was right stays.

| symbol | shape  | meaning                                                      |
|--------|--------|--------------------------------------------------------------|
| D      |        | number of dimensions                                         |
| d, M   |        | size of the groups, a smaller last one aside; their number   |
| W      | (D, D) | weights of pairs, from the relaxation                        |
| label  | (D,)   | the group that a dimension is in                             |
"""

from collections.abc import Iterable, Sequence
from math import lgamma, log

import numpy as np

from sumbo._typing import Array
from sumbo.structure.moves import PartitionMoves
from sumbo.structure.rules import Group
from sumbo.structure.score import Fitted, Problem, Scorer

_RESTARTS = 30  # of the search by weights alone, which costs next to nothing
_LOSS = 1.0  # nats that are given up on average to go on from other groups
_DEALT = 3  # groups, and dimensions of each, that are dealt anew


def log_prior(sizes: Sequence[int], largest: int) -> float:
    """Log probability of one decomposition into groups of these sizes, where none may be larger than `largest`."""
    D, M, d = sum(sizes), len(sizes), max(sizes)
    any_sizes = -0.5 * log(D) * (D - M) - log_normaliser(D, largest)
    if d == 1 or any(size < d for size in sorted(sizes)[1:]):
        return any_sizes - log(2.0)
    full, rest = divmod(D, d)
    log_count = lgamma(D + 1) - full * lgamma(d + 1) - lgamma(full + 1) - lgamma(rest + 1)
    one_size = -log(len(_sizes(D, largest))) - log_count
    return float(np.logaddexp(any_sizes, one_size)) - log(2.0)


def log_normaliser(D: int, largest: int) -> float:
    """Log of the sum of D^(-(D - M) / 2) over all decompositions, which is what `score` takes them to weigh."""
    logs = [0.0]
    for n in range(1, D + 1):
        # The group of the last of n dimensions has j - 1 of the n - 1 others; what is left is a smaller case.
        sizes = range(1, min(n, largest) + 1)
        terms = [lgamma(n) - lgamma(j) - lgamma(n - j + 1) - 0.5 * log(D) * (j - 1) + logs[n - j] for j in sizes]
        logs.append(float(np.logaddexp.reduce(terms)))
    return logs[D]


def worth(problem: Problem, at: Fitted) -> float:
    """Evidence and `log_prior`, in place of the prior that favours no sizes."""
    prior = log_prior([len(group) for group in at.groups], problem.rules.max_group_size)
    return at.score - problem.log_prior(len(at.groups)) + prior


def find_even(problem: Problem, W: Array, rng: np.random.Generator, evaluations: int) -> Fitted:
    """The best groups of one size: a climb for every size, then more and more for fewer and fewer sizes.

    Needs two dimensions or more, a limit that lets them join, and rules without wishes.
    """
    limit = problem.spent + evaluations
    sizes = _sizes(len(W), problem.rules.max_group_size)
    first = evaluations // 2 // len(sizes)
    found = [_climbed(problem, by_weight(W, d, rng), rng, first) for d in sizes]
    for left in range((len(sizes) + 1) // 2, 0, -1):  # sizes, and rounds
        found = sorted(found, key=lambda at: worth(problem, at), reverse=True)[:left]
        share = max(0, limit - problem.spent) // left // left
        found = [_dealt_and_climbed(problem, at, rng, share) for at in found]
    return found[0]


def by_weight(W: Array, d: int, rng: np.random.Generator) -> list[Group]:
    """Groups of size d with much weight inside them: the best of some random ones, each improved by exchanges."""
    rows = np.arange(len(W))
    best, most = rows // d, -np.inf
    for _ in range(_RESTARTS):
        label = rng.permutation(rows // d)
        while True:
            to = W @ (label[:, None] == np.arange(label.max() + 1))  # (D, M)
            own = to[rows, label]
            gain = to[:, label] + to[:, label].T - own[:, None] - own - 2.0 * W
            gain[label[:, None] == label] = 0.0
            i, k = divmod(int(gain.argmax()), len(W))
            if gain[i, k] <= 1e-9 * W.max():
                break
            label[[i, k]] = label[[k, i]]
        if own.sum() > most:
            best, most = label, float(own.sum())
    return [tuple(np.flatnonzero(best == j).tolist()) for j in range(best.max() + 1)]


def climb(walk: PartitionMoves, dims: Iterable[int], limit: int) -> None:
    """Exchange these dimensions for others as long as that raises the score, and those of groups that change."""
    waiting: list[int] = walk.rng.permutation(list(dims)).tolist()
    while waiting and walk.scorer.problem.spent < limit:
        before, i = walk.groups, waiting.pop()
        if walk.step(walk.shortlisted(walk.exchanges(i)), 0.0):
            again = [k for k in _changed(before, walk.groups) if k not in waiting]
            waiting = walk.rng.permutation(again).tolist() + waiting


def dealt(groups: Sequence[Group], rng: np.random.Generator) -> list[Group]:
    """A few dimensions of a few groups dealt anew, sizes kept."""
    after = [list(group) for group in groups]
    chosen = rng.choice(len(groups), min(_DEALT, len(groups)), replace=False).tolist()
    sizes = [len(groups[j]) for j in chosen]
    places = [(j, a) for j, d in zip(chosen, sizes, strict=True) for a in rng.permutation(d)[:_DEALT].tolist()]
    dims = rng.permutation([groups[j][a] for j, a in places]).tolist()
    for (j, a), i in zip(places, dims, strict=True):
        after[j][a] = i
    return [tuple(sorted(group)) for group in after]


def _climbed(problem: Problem, groups: list[Group], rng: np.random.Generator, budget: int) -> Fitted:
    """Groups improved before hyperparameters are fitted to them: fitted to bad ones, these would see noise only."""
    walk = PartitionMoves(Scorer(problem, problem.first_guess()), groups, rng)
    climb(walk, range(len(problem.XT)), problem.spent + budget)
    return problem.fitted(walk.groups)


def _dealt_and_climbed(problem: Problem, start: Fitted, rng: np.random.Generator, budget: int) -> Fitted:
    """Deal and climb again and again, going on from what is better or a little worse; the best, fitted."""
    limit, scorer = problem.spent + budget, Scorer(problem, start.tied)
    at = best = PartitionMoves(scorer, start.groups, rng)
    while problem.spent < limit and len(start.groups) > 1:
        walk = PartitionMoves(scorer, dealt(at.groups, rng), rng)
        climb(walk, _changed(at.groups, walk.groups), limit)
        at = walk if walk.score > at.score - _LOSS * rng.exponential() else at
        best = max(best, at, key=lambda walk: walk.score)
    return problem.fitted(best.groups, start.tied)


def _changed(before: Sequence[Group], after: Sequence[Group]) -> list[int]:
    """Dimensions whose group is new."""
    return [i for group in after if group not in before for i in group]


def _sizes(D: int, largest: int) -> range:
    return range(2, min(D, largest) + 1)
