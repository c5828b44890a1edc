"""Decompositions from data: which groups explain the values best.

Decompositions are compared by their evidence under hyperparameters that are tied across groups: a common lengthscale
l sqrt(d_j), a total variance split in proportion to d_j, one noise. (Free ones would let a wrong decomposition win by
fitting the data harder.) A prior charges log D for every dimension that is not alone or the first of its group: what
it takes to say which group it joins. Without it, the luckiest of very many decompositions beats the true one.

| symbol | shape  | meaning                                                                       |
|--------|--------|-------------------------------------------------------------------------------|
| X, y   | (n, D), (n,) | observations, values standardised                                       |
| K      | (n, n) | covariance of the decomposition at hand, lower half                           |
| W      | (n, n) | weights with sum(W * dK) = d log evidence for a small change dK of K          |
"""

from dataclasses import dataclass, field

import numpy as np

from sumbo import kernels, linalg
from sumbo.decomposition import Decomposition
from sumbo.evidence import log_evidence
from sumbo.fit import FitSettings, Hyperparameters, fit_hyperparameters
from sumbo.gp import AdditiveGP
from sumbo.kernels import Array, Terms, family_index

Group = tuple[int, ...]

_ROUNDS = 5  # of fitting hyperparameters and improving groups

TIED = FitSettings(ard=False, group_scales=False, starts=1, evaluations=30)


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


def search(
    X: Array,
    y: Array,
    model: AdditiveGP,
    rng: np.random.Generator,
    *,
    max_group_size: int,
    evaluations: int = 2000,
) -> Decomposition:
    """Local search by evidence and prior, from the present groups and from all apart.

    Hyperparameters are fitted to each start, the groups improved under them, and both once more.

    Args:
        X, y: observations, values standardised.
        model: gives the present groups, the kernel and the categories.
        rng: decides the order in which dimensions are tried.
        max_group_size: no group grows beyond this.
        evaluations: at most so many evidence evaluations, shared by the starts.
    """
    starts = list(dict.fromkeys([model.decomposition.canonical(), Decomposition.apart(X.shape[1])]))
    XT, nominal, family = np.ascontiguousarray(X.T), model.categories > 0, family_index(model.kernel)
    best, best_score = starts[0], -np.inf
    for start in starts:
        groups: Decomposition = start
        tied: Tied | None = None
        for _ in range(_ROUNDS):
            previous: Hyperparameters | None = None if tied is None else tied.spread(groups)
            h = fit_hyperparameters(
                XT, y, groups.groups, TIED, nominal=nominal, family=family, previous=previous
            ).hyperparameters
            tied = Tied.of(h, groups)
            scorer = Scorer(XT, y, tied, nominal, family)
            improved, score = improve(
                scorer,
                groups,
                rng,
                max_group_size=max_group_size,
                evaluations=evaluations // (_ROUNDS * len(starts)),
            )
            if improved == groups:
                break
            groups = improved
        if score > best_score:
            best, best_score = groups, score
    return best


@dataclass(frozen=True, slots=True)
class Tied:
    """Hyperparameters common to all groups."""

    lengthscale: float  # of a group of one; a group of d has sqrt(d) times that
    variance: float  # of the sum
    noise_variance: float

    @classmethod
    def of(cls, h: Hyperparameters, groups: Decomposition) -> "Tied":
        lengthscale = float(h.lengthscales[0] / np.sqrt(len(groups.groups[0])))
        return cls(lengthscale, float(np.square(h.scales).sum()), h.noise_variance)

    def spread(self, groups: Decomposition) -> Hyperparameters:
        """The same written out for every group."""
        sizes = np.array([len(group) for group in groups.groups])
        lengthscales = self.lengthscale * np.sqrt(np.repeat(sizes, sizes))
        return Hyperparameters(lengthscales, np.sqrt(self.variance * sizes / sizes.sum()), self.noise_variance)


@dataclass
class Scorer:
    """Evidence and prior of decompositions under tied hyperparameters. Keeps the kernels of groups it has met."""

    XT: Array
    y: Array
    tied: Tied
    nominal: np.typing.NDArray[np.bool_]
    family: int
    evaluations: int = 0
    _kernels: dict[Group, Array] = field(default_factory=dict)

    def kernel(self, group: Group) -> Array:
        """The covariance of one group's component; zero for no group."""
        if group not in self._kernels:
            n, d, D = len(self.y), len(group), len(self.XT)
            if d == 0:
                self._kernels[group] = np.zeros((n, n))
            else:
                lengthscales = np.full(d, self.tied.lengthscale * np.sqrt(d))
                s2 = np.array([self.tied.variance * d / D])
                terms = Terms.build([group], lengthscales, s2, nominal=self.nominal, family=self.family)
                self._kernels[group] = kernels.gram(self.XT, terms)
        return self._kernels[group]

    def covariance(self, groups: Decomposition) -> Array:
        K = np.zeros((len(self.y), len(self.y)))
        for group in groups.groups:
            K += self.kernel(group)
        K.flat[:: len(K) + 1] += self.tied.noise_variance
        return K

    def evaluate(self, K: Array, M: int) -> "Scored":
        """The score of a covariance made of M groups."""
        self.evaluations += 1
        L, _ = linalg.cholesky_in_place(K.copy())
        alpha = linalg.solve_factored(L, self.y)
        evidence = float(-0.5 * (self.y @ alpha) - np.log(L.diagonal()).sum())
        return Scored(K, L, alpha, M, evidence + self.log_prior(M))

    def log_prior(self, M: int) -> float:
        D = len(self.XT)
        return -(D - M) * float(np.log(D))


@dataclass(frozen=True)
class Scored:
    """A covariance with its factor and score."""

    K: Array
    L: Array
    alpha: Array
    M: int
    score: float

    def slopes(self) -> Array:
        """W: the derivative of the log evidence by each element of the lower half of K."""
        K_inv = linalg.inverse_in_place(self.L.copy())
        W = np.tril(np.outer(self.alpha, self.alpha) - K_inv)
        W.flat[:: len(W) + 1] *= 0.5
        return W


@dataclass(frozen=True)
class _Move:
    """Replace some groups by others."""

    removed: tuple[Group, ...]
    added: tuple[Group, ...]

    def change(self, scorer: Scorer) -> Array:
        dK = sum((scorer.kernel(g) for g in self.added), start=np.zeros_like(scorer.kernel(())))
        for g in self.removed:
            dK = dK - scorer.kernel(g)
        return np.asarray(dK)

    def apply(self, groups: list[Group]) -> list[Group]:
        return [g for g in groups if g not in self.removed] + [g for g in self.added if g]


def improve(
    scorer: Scorer,
    start: Decomposition,
    rng: np.random.Generator,
    *,
    max_group_size: int,
    evaluations: int,
    shortlist: int = 2,
) -> tuple[Decomposition, float]:
    """Move, swap, merge and split for as long as the score rises, or until the evaluations are spent.

    For each dimension in turn all moves are ranked by a score test, the first-order change of evidence and prior, which
    costs O(n^2) and no factorisation; the evidence itself is computed for the few best.
    """
    groups = [tuple(sorted(group)) for group in start.groups]
    at = scorer.evaluate(scorer.covariance(start), len(groups))
    limit = scorer.evaluations + evaluations
    improved = True
    while improved:
        improved = False
        for i in rng.permutation(len(scorer.XT)).tolist():
            W = at.slopes()
            for moves in _moves_of(i, groups, max_group_size):
                if scorer.evaluations + shortlist > limit:
                    return Decomposition(groups).canonical(), at.score
                ranked = _ranked(moves, at, W, scorer)[:shortlist]
                tried = [(scorer.evaluate(at.K + dK, M), move) for _, move, dK, M in ranked]
                found = max(tried, key=lambda t: t[0].score, default=None)
                if found is not None and found[0].score > at.score + 1e-6:
                    at, groups, improved = found[0], found[1].apply(groups), True
                    break
    return Decomposition(groups).canonical(), at.score


def _moves_of(i: int, groups: list[Group], max_group_size: int) -> tuple[list[_Move], ...]:
    """What dimension i can do, by kind: go to another group or be alone; swap places; merge its whole group.

    First-order changes are comparable within a kind only: they promise the more, the more a move changes.
    """
    g = next(group for group in groups if i in group)
    rest = tuple(k for k in g if k != i)
    moves = [_Move((g,), (rest, (i,)))] if rest else []
    swaps, merges = [], []
    for h in groups:
        if h == g:
            continue
        if len(h) < max_group_size:
            moves.append(_Move((g, h), (rest, tuple(sorted((*h, i))))))
        if rest and len(h) > 1 and len(g) + len(h) <= max_group_size:
            merges.append(_Move((g, h), (tuple(sorted(g + h)),)))
        if rest and len(h) > 1:
            for k in h:
                others = tuple(q for q in h if q != k)
                swaps.append(_Move((g, h), (tuple(sorted((*rest, k))), tuple(sorted((*others, i))))))
    return moves, swaps, merges


def _ranked(moves: list[_Move], at: Scored, W: Array, scorer: Scorer) -> list[tuple[float, _Move, Array, int]]:
    """Moves with their first-order change, covariance change and new number of groups; best first."""
    ranked = []
    for move in moves:
        dK = move.change(scorer)
        M = at.M - len(move.removed) + sum(bool(g) for g in move.added)
        ranked.append((float(np.vdot(W, dK)) + scorer.log_prior(M), move, dK, M))
    return sorted(ranked, key=lambda entry: -entry[0])
