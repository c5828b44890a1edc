"""Decompositions from data: which groups explain the values best.

Decompositions are compared by their evidence under hyperparameters that are tied across groups: a common lengthscale
l sqrt(d_j), a total variance split in proportion to d_j, one noise. (Free ones would let a wrong decomposition win by
fitting the data harder.) A prior charges half of log D for every dimension that is not the first of its group, for
there are that many more ways to join dimensions than to leave them alone.

The search goes three ways to a good start, the present groups, a relaxation and a random walk at falling temperature,
and from each uphill by moves, swaps, splits and merges, fitting the hyperparameters in between.

| symbol | shape        | meaning                                                                          |
|--------|--------------|----------------------------------------------------------------------------------|
| X, y   | (n, D), (n,) | observations, values standardised                                                |
| N      |              | n (n + 1) / 2, the elements of a lower half, row after row in one vector         |
| k      | (N,)         | covariance of one group or of the sum, without noise                             |
| w      | (N,)         | slopes: w @ dk is the first-order change of the log evidence when k changes by dk |
| A      | (D, N)       | one-dimensional kernels                                                          |
| Theta  | (D, D)       | weights of products of two of them, upper half; on the diagonal, of single ones  |
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from sumbo import linalg
from sumbo.compiled import loops
from sumbo.decomposition import Decomposition
from sumbo.errors import DecompositionError
from sumbo.evidence import log_evidence
from sumbo.fit import FitSettings, Hyperparameters, fit_hyperparameters
from sumbo.gp import AdditiveGP
from sumbo.kernels import Array, Terms, _add_phi, _squared_distances, family_index
from sumbo.threads import on_one_thread

Group = tuple[int, ...]
Pairs = Iterable[Sequence[int]]

TIED = FitSettings(ard=False, group_scales=False, starts=1, evaluations=30)
_QUICK = replace(TIED, starts=0, evaluations=10)  # on the way, from the last hyperparameters
_FINAL = replace(TIED, starts=0, evaluations=30)

_SHORTLIST = 4  # moves whose evidence is computed, of those that the score test ranks highest
_FAR = 64  # groups that one dimension is tried in; more are drawn from at random
_SPLITS = 64  # ways to split a group that are tried; more are drawn from at random
_KEPT = 250e6  # bytes of kernels kept
_HEAT = np.geomspace(3.0, 0.5, 8)  # temperatures of a walk, in nats
_FIT_EVERY = 4  # temperatures
_RELAXATION_STEPS = 40
_RELAXATION_WORK = 4e8  # D^2 N, multiplications of a step; beyond that, fewer points are used
_RELAXATION_POINTS = 60  # with fewer there is nothing to learn


def random_trials(
    X: Array, y: Array, model: AdditiveGP, rng: np.random.Generator, *, group_size: int, trials: int
) -> Decomposition:
    """The paper's partial maximisation: of the present groups and some random ones, those with the highest evidence.

    Every decomposition is judged with one common lengthscale, scale and noise, those of the present model.
    """
    XT = np.ascontiguousarray(X.T)
    common_l = float(np.exp(np.mean(np.log(model.lengthscales))))
    total = float(np.square(model.scales).sum())

    def evidence(groups: Decomposition) -> float:
        terms = Terms.build(
            groups.groups,
            np.full(groups.dim, common_l),
            np.full(len(groups), total / len(groups)),
            nominal=model.categories > 0,
            family=family_index(model.kernel),
        )
        return log_evidence(XT, y, terms, model.noise_variance)

    tried = [model.decomposition]
    tried += [Decomposition.random(X.shape[1], group_size, rng) for _ in range(trials)]
    return max(tried, key=evidence)


@on_one_thread
def search(
    X: Array,
    y: Array,
    model: AdditiveGP,
    rng: np.random.Generator,
    *,
    max_group_size: int,
    evaluations: int = 800,
    together: Pairs = (),
    apart: Pairs = (),
) -> Decomposition:
    """The groups with the highest evidence and prior that are found, hyperparameters fitted to each candidate.

    Args:
        X, y: observations, values standardised.
        model: gives the present groups, the kernel and the categories.
        rng: decides orders and random steps.
        max_group_size: no group grows beyond this.
        evaluations: about so many evidence evaluations; more of them never end at a lower score.
        together: sets of dimensions that share a group.
        apart: sets of dimensions of which no two share a group.

    Raises:
        DecompositionError: the wishes contradict each other, or the limit.
    """
    rules = Rules.of(X.shape[1], max_group_size, together, apart)
    present = rules.nearest(model.decomposition)
    if len(y) < 2:
        return rules.decomposition(present)
    problem = Problem(np.ascontiguousarray(X.T), y, model.categories > 0, family_index(model.kernel), rules)
    best = _uphill(problem, problem.fitted(present), rng, evaluations // 3)
    relaxed = _relaxed_start(problem, rng)
    if relaxed is not None:
        best = max(best, _uphill(problem, relaxed, rng, evaluations - problem.spent), key=_score)
    for extreme in rules.extremes():
        best = max(best, problem.fitted(extreme, settings=_QUICK), key=_score)
    while evaluations - problem.spent > 10 * len(rules.units):
        walked = _anneal(problem, best, rng, evaluations - problem.spent)
        best = max(best, _uphill(problem, walked, rng, evaluations - problem.spent), key=_score)
    return rules.decomposition(best.groups)


# --- what is allowed -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rules:
    """Which groups are allowed. Dimensions that must stay together form a unit; groups are sorted tuples of units."""

    units: tuple[Group, ...]
    apart: frozenset[tuple[int, int]]  # pairs of units, both ways round
    max_group_size: int

    @classmethod
    def of(cls, D: int, max_group_size: int, together: Pairs = (), apart: Pairs = ()) -> "Rules":
        linked = [_known(D, wish, "together") for wish in together]
        label = list(range(D))
        for wish in linked:
            old = {label[i] for i in wish}
            label = [min(old) if own in old else own for own in label]
        units = tuple(tuple(i for i in range(D) if label[i] == own) for own in sorted(set(label)))
        for unit in units:
            if len(unit) > max(1, max_group_size):
                raise DecompositionError(
                    f"dimensions {unit} are to be together, but no group may have more than {max_group_size}: "
                    "raise max_group_size or drop a wish"
                )
        number = {i: u for u, unit in enumerate(units) for i in unit}
        banned = set()
        for wish in (_known(D, wish, "apart") for wish in apart):
            for i, k in itertools.permutations(wish, 2):
                if number[i] == number[k]:
                    raise DecompositionError(
                        f"dimensions {i} and {k} are to be apart, and together by {units[number[i]]}: drop one wish"
                    )
                banned.add((number[i], number[k]))
        return cls(units, frozenset(banned), max(1, max_group_size))

    def allows(self, group: Group) -> bool:
        if sum(len(self.units[u]) for u in group) > self.max_group_size:
            return False
        return not self.apart or not any(pair in self.apart for pair in itertools.combinations(group, 2))

    def dims(self, group: Group) -> Group:
        return tuple(sorted(i for u in group for i in self.units[u]))

    def decomposition(self, groups: Iterable[Group]) -> Decomposition:
        return Decomposition(self.dims(group) for group in groups).canonical()

    def nearest(self, decomposition: Decomposition) -> list[Group]:
        """The allowed groups of a decomposition; the units of all others stand alone."""
        label = decomposition.labels
        whole = [{label[i] for i in unit} for unit in self.units]
        groups: list[Group] = []
        for j in range(len(decomposition)):
            group = tuple(u for u in range(len(self.units)) if whole[u] == {j})
            groups += [group] if group and self.allows(group) else [(u,) for u in group]
        return groups + [(u,) for u in range(len(self.units)) if len(whole[u]) > 1]

    def extremes(self) -> list[list[Group]]:
        """All apart, and all in one where that is allowed."""
        one = tuple(range(len(self.units)))
        apart: list[Group] = [(u,) for u in one]
        return [apart, [one]] if self.allows(one) and len(one) > 1 else [apart]


def _known(D: int, wish: Sequence[int], name: str) -> Sequence[int]:
    wrong = [i for i in wish if not 0 <= i < D]
    if wrong:
        raise DecompositionError(f"{name}={tuple(wish)}: dimensions go from 0 to {D - 1}; got {wrong[0]}")
    return wish


# --- what groups are worth -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tied:
    """Hyperparameters common to all groups."""

    lengthscale: float  # of a group of one; a group of d has sqrt(d) times that
    variance: float  # of the sum
    noise_variance: float

    @classmethod
    def of(cls, h: Hyperparameters, groups: Sequence[Group]) -> "Tied":
        lengthscale = float(h.lengthscales[0] / np.sqrt(len(groups[0])))
        return cls(lengthscale, float(np.square(h.scales).sum()), h.noise_variance)

    def spread(self, groups: Sequence[Group]) -> Hyperparameters:
        """The same written out for every group."""
        sizes = np.array([len(group) for group in groups])
        lengthscales = self.lengthscale * np.sqrt(np.repeat(sizes, sizes))
        return Hyperparameters(lengthscales, np.sqrt(self.variance * sizes / sizes.sum()), self.noise_variance)


@dataclass(frozen=True)
class Fitted:
    """Groups with hyperparameters of their own, and what both together are worth."""

    groups: list[Group]
    tied: Tied
    score: float


def _score(fitted: Fitted) -> float:
    return fitted.score


@dataclass
class Problem:
    """The data, the rules, and how many evidence evaluations were spent on them."""

    XT: Array
    y: Array
    nominal: NDArray[np.bool_]
    family: int
    rules: Rules
    spent: int = 0

    def log_prior(self, M: int) -> float:
        return -0.5 * float(np.log(len(self.XT))) * (len(self.rules.units) - M)

    def first_guess(self) -> Tied:
        """Little noise, short lengthscales: fitted with all apart, interactions would pass for noise."""
        scale = float(np.mean(np.square(self.y))) or 1.0
        return Tied(0.35, 1.8 * scale, 1e-4 * scale)

    def fitted(self, groups: list[Group], tied: Tied | None = None, settings: FitSettings = _FINAL) -> Fitted:
        dims = [self.rules.dims(group) for group in groups]
        found = fit_hyperparameters(
            self.XT,
            self.y,
            dims,
            settings,
            nominal=self.nominal,
            family=self.family,
            previous=(tied or self.first_guess()).spread(dims),
        )
        self.spent += found.evaluations
        score = found.log_posterior + self.log_prior(len(groups))
        return Fitted(groups, Tied.of(found.hyperparameters, dims), score)


@dataclass
class Scorer:
    """Evidence and prior of groups under tied hyperparameters. Keeps the kernels of groups it has met."""

    problem: Problem
    tied: Tied
    _kernels: dict[Group, Array] = field(default_factory=dict)

    def kernel(self, group: Group) -> Array:
        """k of one group."""
        k = self._kernels.get(group)
        if k is None:
            p, dims = self.problem, np.array(self.problem.rules.dims(group), dtype=np.int64)
            inv_l2 = np.full(len(dims), 1.0 / (self.tied.lengthscale**2 * len(dims)))
            s2 = self.tied.variance * len(dims) / len(p.XT)
            k = self._kernels[group] = packed_kernel(p.XT, p.nominal, dims, inv_l2, s2, p.family)
            if len(self._kernels) * k.nbytes > _KEPT:
                del self._kernels[next(iter(self._kernels))]  # the oldest
        return k

    def total(self, groups: Iterable[Group]) -> Array:
        n = len(self.problem.y)
        k = np.zeros(n * (n + 1) // 2)
        for group in groups:
            k += self.kernel(group)
        return k

    def factor(self, k: Array) -> Array:
        L, _ = linalg.cholesky_in_place(unpacked(k, len(self.problem.y), self.tied.noise_variance))
        return L

    def score(self, k: Array, M: int) -> float:
        """Log evidence, but for its constant, plus log prior of M groups whose kernels add up to k."""
        self.problem.spent += 1
        y, L = self.problem.y, self.factor(k)
        quadratic = float(y @ linalg.solve_factored(L, y))
        return -0.5 * quadratic - float(np.log(L.diagonal()).sum()) + self.problem.log_prior(M)

    def slopes(self, k: Array) -> Array:
        L = self.factor(k)
        alpha = linalg.solve_factored(L, self.problem.y)
        return packed_slopes(alpha, linalg.inverse_in_place(L))


@loops
def packed_kernel(XT: Any, nominal: Any, dims: Any, inv_l2: Any, s2: float, family: int) -> Any:
    n = XT.shape[1]
    k = np.zeros(n * (n + 1) // 2)
    r2 = np.empty(n)
    x = np.empty(XT.shape[0])
    start = 0
    for p in range(n):
        x[:] = XT[:, p]
        _squared_distances(XT, x, nominal, dims, inv_l2, p + 1, r2)
        _add_phi(r2, p + 1, s2, family, k[start : start + p + 1])
        start += p + 1
    return k


@loops
def unpacked(k: Any, n: int, noise: float) -> Any:
    """The matrix, lower half, with noise on its diagonal."""
    K = np.zeros((n, n))
    start = 0
    for p in range(n):
        for q in range(p + 1):
            K[p, q] = k[start + q]
        K[p, p] += noise
        start += p + 1
    return K


@loops
def packed_slopes(alpha: Any, K_inv: Any) -> Any:
    """w of the evidence: an element below the diagonal stands for two, which cancels the 1/2 of the trace."""
    n = alpha.shape[0]
    w = np.empty(n * (n + 1) // 2)
    start = 0
    for p in range(n):
        for q in range(p):
            w[start + q] = alpha[p] * alpha[q] - K_inv[p, q]
        w[start + p] = 0.5 * (alpha[p] * alpha[p] - K_inv[p, p])
        start += p + 1
    return w


# --- from groups to better groups ------------------------------------------------------------------------------------


Change = tuple[tuple[Group, ...], tuple[Group, ...]]  # groups that go, groups that come


class Walk:
    """Groups that change step by step, with their covariance and score."""

    def __init__(self, scorer: Scorer, groups: Iterable[Group], rng: np.random.Generator) -> None:
        self.scorer, self.rules, self.rng = scorer, scorer.problem.rules, rng
        self.groups = list(groups)
        self.k = scorer.total(self.groups)
        self.score = scorer.score(self.k, len(self.groups))
        self._slopes: Array | None = None
        self._first_order: dict[Group, float] = {}  # of adding one group's kernel

    def sweep(self, temperature: float, *, swaps: bool, limit: int) -> int:
        """Try every unit, every split and the merges once; the number of changes made."""
        changes = 0
        for candidates in self._neighbours(swaps):
            if self.scorer.problem.spent >= limit:
                break
            changes += self.step(candidates, temperature)
        return changes

    def _neighbours(self, swaps: bool) -> Iterator[list[Change]]:
        """Candidates of a kind, made only when it is their turn: earlier steps change them."""
        for u in self.rng.permutation(len(self.rules.units)).tolist():
            yield self.moves(u, swaps)
        for group in list(self.groups):
            yield self.splits(group)
        yield self.merges()

    def step(self, candidates: list[Change], temperature: float) -> bool:
        """Go to one of the candidates or stay: to the best at temperature 0, else drawn by score / temperature."""
        tried = []
        for gone, come in self.shortlisted(candidates):
            k = self.k.copy()
            for group in come:
                k += self.scorer.kernel(group)
            for group in gone:
                k -= self.scorer.kernel(group)
            tried.append((self.scorer.score(k, len(self.groups) + len(come) - len(gone)), k, gone, come))
        scores = np.array([self.score + 1e-6] + [entry[0] for entry in tried])
        chosen = int(np.argmax(scores + temperature * self.rng.gumbel(size=len(scores)) if temperature else scores))
        if chosen == 0:
            return False
        self.score, self.k, gone, come = tried[chosen - 1]
        self.groups = [group for group in self.groups if group not in gone] + list(come)
        self._slopes, self._first_order = None, {}
        return True

    def shortlisted(self, candidates: list[Change]) -> list[Change]:
        """The few of largest first-order change.

        It is comparable within a kind only: the more a candidate changes, the more it promises.
        """
        if len(candidates) <= _SHORTLIST:
            return candidates
        return sorted(candidates, key=self.first_order, reverse=True)[:_SHORTLIST]

    def first_order(self, change: Change) -> float:
        """The score test: change of score to first order, O(n^2) for each group not met before."""
        if self._slopes is None:
            self._slopes = self.scorer.slopes(self.k)
        for group in itertools.chain(*change):
            if group not in self._first_order:
                self._first_order[group] = float(self._slopes @ self.scorer.kernel(group))
        gone, come = change
        prior = self.scorer.problem.log_prior(len(come)) - self.scorer.problem.log_prior(len(gone))
        return sum(self._first_order[g] for g in come) - sum(self._first_order[g] for g in gone) + prior

    def moves(self, u: int, swaps: bool) -> list[Change]:
        """Unit u alone, in another group, or in the place of a unit there."""
        own = next(group for group in self.groups if u in group)
        rest = _without(own, u)
        left = (rest,) if rest else ()
        changes: list[Change] = [((own,), (rest, (u,)))] if rest else []
        for other in self._some([group for group in self.groups if group != own], _FAR):
            changes.append(((own, other), (*left, _with(other, u))))
            if swaps and rest and len(other) > 1:
                changes += [((own, other), (_with(rest, v), _with(_without(other, v), u))) for v in other]
        return self._allowed(changes)

    def splits(self, group: Group) -> list[Change]:
        """Ways to cut a group in two, single units aside."""
        if group not in self.groups:  # an earlier step of the sweep took it apart
            return []
        if 2 ** (len(group) - 1) <= 4 * _SPLITS:
            first, others = group[0], group[1:]
            sizes = range(1, len(others) - 1)
            parts = [(first, *c) for size in sizes for c in itertools.combinations(others, size)]
        else:
            parts = [tuple(u for u in group if self.rng.random() < 0.5) for _ in range(_SPLITS)]
        changes: list[Change] = []
        for part in self._some(parts, _SPLITS):
            rest = tuple(u for u in group if u not in part)
            if part and rest:
                changes.append(((group,), (part, rest)))
        return self._allowed(changes)

    def merges(self) -> list[Change]:
        """Pairs of groups of several units; single units join by `moves`."""
        several = [group for group in self.groups if len(group) > 1]
        pairs = self._some(list(itertools.combinations(several, 2)), _FAR)
        return self._allowed([((g, h), (tuple(sorted(g + h)),)) for g, h in pairs])

    def _some(self, items: list[Any], limit: int) -> list[Any]:
        if len(items) <= limit:
            return items
        return [items[j] for j in self.rng.choice(len(items), limit, replace=False).tolist()]

    def _allowed(self, changes: list[Change]) -> list[Change]:
        return [change for change in changes if all(self.rules.allows(group) for group in change[1])]


def _with(group: Group, u: int) -> Group:
    return tuple(sorted((*group, u)))


def _without(group: Group, u: int) -> Group:
    return tuple(v for v in group if v != u)


def _uphill(problem: Problem, start: Fitted, rng: np.random.Generator, budget: int) -> Fitted:
    """Improve groups and hyperparameters in turn until neither changes or the budget is spent."""
    limit = problem.spent + budget
    at = start
    while problem.spent < limit:
        walk = Walk(Scorer(problem, at.tied), at.groups, rng)
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
    walk = Walk(Scorer(problem, at.tied), at.groups, rng)
    for t, temperature in enumerate(_HEAT, start=1):
        walk.sweep(float(temperature), swaps=False, limit=limit)
        if t % _FIT_EVERY == 0:
            at = problem.fitted(walk.groups, at.tied, _QUICK)
            walk = Walk(Scorer(problem, at.tied), at.groups, rng)
    return at


# --- the relaxation --------------------------------------------------------------------------------------------------


def _relaxed_start(problem: Problem, rng: np.random.Generator) -> Fitted | None:
    """Of the groups that appear when dimensions are joined by their weights in the relaxation, the best."""
    D, n = problem.XT.shape
    m = min(n, int(np.sqrt(2.0 * _RELAXATION_WORK) / D))
    if m < min(n, _RELAXATION_POINTS) or D < 2:
        return None
    chosen = np.sort(rng.choice(n, m, replace=False)) if m < n else np.arange(n)
    relaxation = Relaxation(problem.XT[:, chosen], problem.y[chosen], problem.nominal, problem.family)
    weights = relaxation.weights()
    problem.spent += relaxation.evaluations
    scorer = Scorer(problem, problem.first_guess())
    path = list(joined(weights, problem.rules))
    best = max(path, key=lambda groups: scorer.score(scorer.total(groups), len(groups)))
    return problem.fitted(best, settings=_QUICK)


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

        K = sum_i theta_ii k_i + sum_{i<k} theta_ik k_i k_k + noise I

    Smooth in all D (D + 1) / 2 weights, and two matrix products give its value and whole gradient.
    """

    def __init__(self, XT: Array, y: Array, nominal: NDArray[np.bool_], family: int, lengthscale: float = 0.5) -> None:
        self.y, self.D = y, len(XT)
        one = np.array([1.0 / lengthscale**2])
        XT = np.ascontiguousarray(XT)
        self.A = np.array([packed_kernel(XT, nominal, np.array([i]), one, 1.0, family) for i in range(self.D)])
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
        A, Theta = self.A, np.zeros((self.D, self.D))
        Theta[self.upper] = np.where(self.single, 0.0, theta)
        k = np.einsum("ip,ip->p", A, Theta @ A) + theta[self.single] @ A
        L, _ = linalg.cholesky_in_place(unpacked(k, len(self.y), noise))
        alpha = linalg.solve_factored(L, self.y)
        excess = (log_theta[-1] - np.log(1e-3 * self.scale)) / 1.5
        value = float(-0.5 * self.y @ alpha - np.log(L.diagonal()).sum() - 0.5 * excess**2)
        K_inv = linalg.inverse_in_place(L)
        w = packed_slopes(alpha, K_inv)
        by_pair = ((A * w) @ A.T)[self.upper]
        by_pair[self.single] = A @ w
        by_noise = 0.5 * noise * float(alpha @ alpha - K_inv.trace()) - excess / 1.5
        return value, np.append(by_pair * theta, by_noise)

    def weights(self) -> Array:
        """Theta after some steps uphill, symmetric, zero on the diagonal.

        Stopped early on purpose: from equal weights, the first steps raise those that matter.
        """

        def negative(log_theta: Array) -> tuple[float, Array]:
            value, gradient = self.evidence(log_theta)
            return -value, -gradient

        start = self.start()
        low, high = np.log(self.scale) - 25.0, np.log(self.scale) + 8.0
        bounds = [(low, high)] * (len(start) - 1) + [(np.log(1e-6 * self.scale), np.log(self.scale))]
        options = {"maxiter": _RELAXATION_STEPS, "maxfun": _RELAXATION_STEPS + 20}
        found = minimize(negative, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        Theta = np.zeros((self.D, self.D))
        Theta[self.upper] = np.where(self.single, 0.0, np.exp(found.x[:-1]))
        return Theta + Theta.T
