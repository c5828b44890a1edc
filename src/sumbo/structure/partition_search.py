"""Search for the disjoint groups with the highest evidence and prior.

It goes three ways to a good start, the present groups, a relaxation, and a random walk at falling temperature, and from
each uphill by moves, swaps, splits and merges, fitting the hyperparameters in between. With many points it does so on
some of them, and only the last climb sees all.

Where there are evaluations enough, groups of one size are searched too. Exchanging two dimensions keeps the sizes, but
a climb by exchanges alone soon gets stuck. What helps is to deal the dimensions of a few groups anew and climb again,
many times: most of what was right stays.

The paper's way to groups, to try some at random, is `random_trials`.

| symbol | shape  | meaning                                                      |
|--------|--------|--------------------------------------------------------------|
| D      |        | number of dimensions                                         |
| d, M   |        | size of the groups, a smaller last one aside; their number   |
| A      | (D, N) | one-dimensional kernels, lower halves row after row          |
| Theta  | (D, D) | weights of products of two of them; on the diagonal, of one  |
| w      | (N,)   | slopes of the log evidence by the covariance's elements      |
| W      | (D, D) | weights of pairs, from the relaxation                        |
| label  | (D,)   | the group that a dimension is in                             |
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from sumbo._typing import Array
from sumbo.gp import linalg, loops
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.decomposition import Decomposition
from sumbo.gp.fit import log_evidence
from sumbo.gp.kernels import Terms
from sumbo.gp.threads import on_one_thread
from sumbo.structure.group_constraints import Group, Rules, Wishes
from sumbo.structure.score import QUICK, Fitted, PartitionMoves, Problem, Scorer, climbed, sorted_problem, worth

_HEAT = np.geomspace(3.0, 0.5, 8)  # temperatures of a walk, in nats
_FIT_EVERY = 4  # temperatures
_COARSE = 400  # points that are enough to explore with
_ON_SOME = 0.7  # share of the evaluations that is spent on these
_EVEN_FROM = 10_000  # evaluations; a climb for every size takes more than a thousand, and most get stuck
_EVEN = 0.5  # share of these that goes into groups of one size, which is also their share of the prior
_RESTARTS = 30  # of the search by weights alone, which costs next to nothing
_LOSS = 1.0  # nats that are given up on average to go on from other groups
_DEALT = 3  # groups, and dimensions of each, that are dealt anew
_RELAXATION_WORK = 4e8  # D^2 N, multiplications of a step; beyond that, fewer points are used
_RELAXATION_POINTS = 60  # with fewer there is nothing to learn
_STEPS, _LENGTHSCALE = 25, 0.5  # of the relaxation

score_of = attrgetter("score")


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
    known_variance: Array | None = None,
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
        known_variance: what each value is known to vary by beside the noise, (n,), in the units of y squared.

    Raises:
        DecompositionError: the wishes contradict each other, or the limit.
    """
    named, problem, present = sorted_problem(X, y, model, max_group_size, together, apart, known_variance)
    rules, of_one_size = problem.rules, 0
    if len(y) < 2:
        return named(map(rules.dims, present))
    wishes = rules.apart or len(rules.units) < X.shape[1]
    if evaluations >= _EVEN_FROM and not wishes and min(X.shape[1], max_group_size) > 1:
        of_one_size = int(_EVEN * evaluations)
    found = find(problem, present, rng, evaluations - of_one_size)
    if of_one_size:
        found = max(found, find_equal_sizes(problem, rng, of_one_size), key=lambda at: worth(problem, at))
    return named(map(rules.dims, found.groups))


def find(problem: Problem, present: list[Group], rng: np.random.Generator, evaluations: int) -> Fitted:
    """The best groups, with hyperparameters fitted to all points."""
    coarse = problem.on_some(_COARSE, rng)
    if coarse is problem:
        return _explored(problem, present, rng, evaluations)
    rough = _explored(coarse, present, rng, int(_ON_SOME * evaluations))
    problem.spent += coarse.spent
    starts = [problem.fitted(rough.groups, rough.tied), problem.fitted(present)]
    left = evaluations - problem.spent
    return _uphill(problem, max(starts, key=score_of), rng, left)


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


def _uphill(problem: Problem, at: Fitted, rng: np.random.Generator, budget: int) -> Fitted:
    """Improve groups and hyperparameters in turn until neither changes or the budget is spent."""
    limit = problem.spent + budget
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


def _anneal(problem: Problem, at: Fitted, rng: np.random.Generator, budget: int) -> Fitted:
    """A random walk from good groups at falling temperature, hyperparameters following."""
    limit = problem.spent + budget // 2  # the other half is to climb again
    walk = PartitionMoves(Scorer(problem, at.tied), at.groups, rng)
    for t, temperature in enumerate(_HEAT, start=1):
        walk.sweep(float(temperature), swaps=False, limit=limit)
        if t % _FIT_EVERY == 0:
            at = problem.fitted(walk.groups, at.tied, QUICK)
            walk = PartitionMoves(Scorer(problem, at.tied), at.groups, rng)
    return at


def _relaxed_start(problem: Problem, rng: np.random.Generator) -> Fitted | None:
    """The best groups of those that appear when dimensions are joined by their weights in the relaxation."""
    weights = _pair_weights(problem, rng)
    if weights is None:
        return None
    scorer = Scorer(problem, problem.first_guess())
    best = max(joined(weights, problem.rules), key=lambda groups: scorer.score(scorer.total(groups), len(groups)))
    return problem.fitted(best, settings=QUICK)


def _pair_weights(problem: Problem, rng: np.random.Generator) -> Array | None:
    """Weights of pairs in the relaxation, from some of the points where all would be too much work; None if too few."""
    D, n = problem.XT.shape
    m = min(n, int(np.sqrt(2.0 * _RELAXATION_WORK) / D))
    if m < min(n, _RELAXATION_POINTS) or D < 2:
        return None
    some = problem.on_some(m, rng)
    relaxation = Relaxation(some.XT, some.y, problem.nominal, problem.family, some.known_variance)
    weights = relaxation.weights()
    problem.spent += relaxation.evaluations
    return weights


def joined(weights: Array, rules: Rules) -> Iterator[list[Group]]:
    """From all apart, join the two groups with the largest average weight between them, as long as rules allow."""
    D, U = len(weights), len(rules.units)
    member = np.zeros((U, D))
    for u, unit in enumerate(rules.units):
        member[u, list(unit)] = 1.0
    groups: list[Group] = [(u,) for u in range(U)]
    banned = np.eye(U, dtype=bool)
    while True:
        yield list(groups)
        sizes = member.sum(axis=1)
        link = np.where(banned, -1.0, member @ weights @ member.T / np.outer(sizes, sizes))
        g, h = divmod(int(np.argmax(link)), len(groups))
        while link[g, h] >= 0.0 and not rules.allows(tuple(sorted(groups[g] + groups[h]))):
            link[g, h] = link[h, g] = -1.0
            banned[g, h] = banned[h, g] = True
            g, h = divmod(int(np.argmax(link)), len(groups))
        if link[g, h] < 0.0:
            return
        groups[g] = tuple(sorted(groups[g] + groups[h]))
        member[g] += member[h]
        banned[g] |= banned[h]
        banned[:, g] |= banned[:, h]
        del groups[h]
        member = np.delete(member, h, axis=0)
        banned = np.delete(np.delete(banned, h, axis=0), h, axis=1)


class Relaxation:
    """The evidence of a sum over all dimensions and all pairs of them, each with a weight of its own.

        K = sum_i theta_ii k_i + sum_{i<k} theta_ik k_i k_k + noise I + diag(v)

    Smooth in all D (D + 1) / 2 weights, and two matrix products give its value and whole gradient.
    """

    def __init__(
        self, XT: Array, y: Array, nominal: NDArray[np.bool_], family: int, known_variance: Array | None = None
    ) -> None:
        self.y, self.D, self.known_variance = y, len(XT), known_variance
        XT, one = np.ascontiguousarray(XT), np.array([1.0 / _LENGTHSCALE**2])
        self.A = np.array([loops().packed_kernel(XT, nominal, np.array([i]), one, 1.0, family) for i in range(self.D)])
        self.upper = np.triu_indices(self.D)
        self.single = self.upper[0] == self.upper[1]
        self.scale = float(np.mean(np.square(y))) or 1.0
        self.evaluations = 0

    def start(self) -> Array:
        """Logs of all weights, half of the variance on pairs, and of the noise variance."""
        D, pairs = self.D, max(1, self.D * (self.D - 1) // 2)
        theta = np.where(self.single, 0.5 / D, 0.5 / pairs)
        return np.log(self.scale * np.append(theta, 1e-3))

    def evidence(self, log_theta: Array) -> tuple[float, Array]:
        """log p(y | X), but for its constant, plus a prior on the noise; and the gradient."""
        self.evaluations += 1
        theta, noise = np.exp(log_theta[:-1]), float(np.exp(log_theta[-1]))
        A = self.A
        k = np.einsum("ip,ip->p", A, self._pairs(theta) @ A) + theta[self.single] @ A
        K = linalg.add_noise(loops().unpacked(k, len(self.y)), noise, self.known_variance)
        L, alpha, value = linalg.solved(K, self.y)
        excess = (log_theta[-1] - np.log(1e-3 * self.scale)) / 1.5
        K_inv = linalg.inverse_in_place(L)
        w = loops().packed_slopes(alpha, K_inv)
        by_pair = ((A * w) @ A.T)[self.upper]
        by_pair[self.single] = A @ w
        by_noise = 0.5 * noise * float(alpha @ alpha - K_inv.trace()) - excess / 1.5
        return value - 0.5 * excess**2, np.append(by_pair * theta, by_noise)

    def weights(self) -> Array:
        """Theta after some steps uphill, symmetric, zero on the diagonal.

        Stopped early on purpose: from equal weights, the first steps raise those that matter.
        """
        start = self.start()
        low, high = np.log(self.scale) - 25.0, np.log(self.scale) + 8.0
        bounds = [(low, high)] * (len(start) - 1) + [(np.log(1e-6 * self.scale), np.log(self.scale))]
        log_theta, _ = climbed(self.evidence, start, bounds, maxiter=_STEPS, maxfun=_STEPS + 20)
        Theta = self._pairs(np.exp(log_theta[:-1]))
        return Theta + Theta.T

    def _pairs(self, theta: Array) -> Array:
        """Theta but for its diagonal."""
        Theta = np.zeros((self.D, self.D))
        Theta[self.upper] = np.where(self.single, 0.0, theta)
        return Theta


def find_equal_sizes(problem: Problem, rng: np.random.Generator, evaluations: int) -> Fitted:
    """The best groups of one size, from as many of the points as are enough to explore with."""
    coarse = problem.on_some(_COARSE, rng)
    weights = _pair_weights(coarse, rng)
    D = len(problem.XT)
    found = climb_equal_sizes(coarse, np.zeros((D, D)) if weights is None else weights, rng, evaluations)
    return found if coarse is problem else problem.fitted(found.groups, found.tied)


def climb_equal_sizes(problem: Problem, W: Array, rng: np.random.Generator, evaluations: int) -> Fitted:
    """The best groups of one size: a climb for every size, then more and more for fewer and fewer sizes.

    Needs two dimensions or more, a limit that lets them join, and rules without wishes.
    """
    limit = problem.spent + evaluations
    sizes = range(2, min(len(W), problem.rules.max_group_size) + 1)
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


def random_trials(
    X: Array,
    y: Array,
    model: AdditiveGP,
    rng: np.random.Generator,
    *,
    group_size: int,
    trials: int,
    draw: Callable[[np.random.Generator], Decomposition] | None = None,
    known_variance: Array | None = None,
) -> Decomposition:
    """The paper's partial maximisation: of the present groups and some random ones, those with the highest evidence.

    Every decomposition is judged with one common lengthscale, scale and noise, those of the present model. `draw` gives
    random groups where not all are allowed; by default any of the given size. `known_variance`: see `search`.
    """
    XT = np.ascontiguousarray(X.T)
    common_l = float(np.exp(np.mean(np.log(model.lengthscales))))
    total, nominal, family = float(np.square(model.scales).sum()), model.terms.nominal, model.terms.family

    def evidence(groups: Decomposition) -> float:
        lengthscales = np.full(sum(map(len, groups.groups)), common_l)
        variances = np.full(len(groups), total / len(groups))
        terms = Terms.build(groups.groups, lengthscales, variances, nominal=nominal, family=family)
        return log_evidence(XT, y, terms, model.noise_variance, known_variance)

    tried = [model.decomposition]
    tried += [draw(rng) if draw else Decomposition.random(X.shape[1], group_size, rng) for _ in range(trials)]
    return max(tried, key=evidence)
