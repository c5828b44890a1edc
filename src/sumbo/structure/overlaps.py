"""Groups that may share dimensions: which pairs interact, and which of them belong to larger groups.

Pairs are found in a `Spectral` model, each worth its evidence less a charge for the choice among so many: first
those that pay at once, then, as long as that raises the score, several that may pay together. (Weak ones hide each
other: each is noise to the others.) A clique of pairs becomes one group where the evidence is for it.

| symbol | shape     | meaning                                                       |
|--------|-----------|---------------------------------------------------------------|
| phi    | (D, p, n) | one-dimensional functions at the points                       |
| F      | (f, n)    | all functions, of dimensions and then of pairs                |
| lam    | (f,)      | variances of their coefficients                               |
| theta  | (Q,)      | u (D,), t (p,), r (p - 1,), v (E,), s (E,), log noise         |
| L_inv  | (n, n)    | inverse of the Cholesky factor of K = F^T lam F + 1 + noise   |
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.polynomial.legendre import legvander
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from sumbo._typing import Array
from sumbo.gp import linalg
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.decomposition import Decomposition
from sumbo.gp.threads import on_one_thread
from sumbo.structure.group_constraints import Group, Rules, Wishes
from sumbo.structure.score import QUICK, Problem, climbed, sorted_problem

Pair = tuple[int, int]

_DEGREE = 6  # to begin with; lowered where the data need less
_POINTS = 500  # observations that are looked at, at most
_TOGETHER = (10, 20, 40)  # pairs that are tried at once when no single one pays
_DEPTH = 3  # how often in a row
_SMOOTH = -3.0  # their first s: weak terms are most likely simple ones
_GAIN = 0.5  # nats; less is no progress
_DECAY = 1.0  # expected fall of log variance for each degree
_SD_DIMENSION, _SD_DEGREE, _SD_PAIR, _SD_SLOPE, _SD_NOISE = 2.0, 4.0, 6.0, 3.0, 5.0  # log-sds of the priors
_NOISE = 1e-4  # expected
_LEAST_NOISE = 1e-9
_GRID = np.linspace(-14.0, 4.0, 19)  # log weights v that are tried for a new pair
_SLOPES = (0.0, -3.0)  # and its s: like the others, or smooth
_CHUNK = 64  # pairs looked at together


@on_one_thread
def search_overlapping(
    X: Array,
    y: Array,
    model: AdditiveGP,
    rng: np.random.Generator,
    *,
    max_group_size: int = 2,
    evaluations: int = 2000,
    together: Wishes = (),
    apart: Wishes = (),
    known_variance: Array | None = None,
) -> Decomposition:
    """Groups that may overlap: the pairs that interact, cliques of them, and every dimension that is in none alone.

    Args:
        X, y: observations, values standardised.
        model: gives the kernel and the categories.
        rng: chooses among observations where there are more than 500.
        max_group_size: no group grows beyond this.
        evaluations: about so many evidence evaluations, each O(n^2) a function and O(n^3).
        together: sets of dimensions that share a group.
        apart: sets of dimensions of which no two share a group.
        known_variance: what each value is known to vary by beside the noise, (n,), in the units of y squared.

    Raises:
        DecompositionError: the wishes contradict each other, or the limit.
    """
    named, problem, _ = sorted_problem(X, y, model, max_group_size, together, apart, known_variance)
    units = [unit for unit in problem.rules.units if len(unit) > 1]
    problem = problem.on_some(_POINTS, rng)
    groups: list[Group] = list(units)
    if len(problem.y) > 2 and max_group_size > 1:
        pairs = _Pairs(problem, evaluations).search()
        groups += [pair for pair in pairs if not any({*pair} <= {*unit} for unit in units)]
        groups = _with_cliques(problem, groups)
    return named(_with_the_rest(groups, X.shape[1]))


def _with_the_rest(groups: list[Group], D: int) -> list[Group]:
    """And every dimension that is in none of them alone."""
    covered = set(itertools.chain(*groups))
    return groups + [(i,) for i in range(D) if i not in covered]


@dataclass(frozen=True)
class State:
    """Pairs with the parameters fitted to them, and the log posterior density these reach."""

    pairs: tuple[Pair, ...]
    theta: Array
    value: float = -np.inf  # where they are still to be fitted


class Spectral:
    """Main effects and pairs of dimensions as sums of polynomials, whose decay with the degree is itself learned.

        y = c + sum_i sum_a w_ia phi_a(x_i) + sum_{pairs i,k} sum_{a,b} w_ikab phi_a(x_i) phi_b(x_k) + noise

    with phi_a of degree a, orthonormal over the points seen, so that pairs say nothing of main effects; a + b is at
    most p. All coefficients w are normal, with log variances

        log var w_ia   = u_i + t_a                               a dimension's own weight, a common decay
        log var w_ikab = v_ik + r_{a+b} + s_ik (a + b - 2)       a pair's own weight and own decay beside the common one

    A kernel of fixed family spends its freedom on all degrees; here what the data do not need is learned to be nothing.
    That shows terms a thousand times weaker than others: once the strong ones are exact, there is no noise.

    Counts its evidence evaluations; else unchanging.
    """

    def __init__(
        self, X: Array, y: Array, nominal: NDArray[np.bool_], degree: int, known_variance: Array | None = None
    ) -> None:
        (self.n, self.D), self.y, self.p, self.known_variance = X.shape, y, degree, known_variance
        self.phi = np.array([one_dimensional(x, bool(c), degree) for x, c in zip(X.T, nominal, strict=True)])
        products = [(a, total - a) for total in range(2, degree + 1) for a in range(1, total)]
        self.a, self.b = np.array(products).T - 1
        self.above = self.a + self.b  # the total degree less 2
        self.scale = float(np.mean(np.square(y))) or 1.0
        self.head = self.D + 2 * degree - 1
        self.evaluations = 0

    def start(self) -> Array:
        """Parameters of the model with no pairs, to begin a fit at: the priors' means, and much noise."""
        return np.append(self._prior(0)[0][:-1], np.log(0.1 * self.scale))

    def _prior(self, E: int) -> tuple[Array, Array]:
        """Means and standard deviations of theta."""
        degrees = np.concatenate([np.arange(self.p), np.arange(self.p - 1)])
        of_degree = np.log(0.5 * self.scale / self.D) - _DECAY * degrees
        mean = np.concatenate([np.zeros(self.D), of_degree, np.zeros(2 * E), [np.log(_NOISE * self.scale)]])
        sds = (_SD_DIMENSION, _SD_DEGREE, _SD_PAIR, _SD_SLOPE, _SD_NOISE)
        return mean, np.repeat(sds, (self.D, len(degrees), E, E, 1))

    def _variances(self, theta: Array, E: int) -> Array:
        u, t, r = np.split(theta[: self.head], (self.D, self.D + self.p))
        v, s = theta[self.head : self.head + E], theta[self.head + E : -1]
        of_pairs = v[:, None] + r[self.above] + s[:, None] * self.above
        return np.exp(np.concatenate([(u[:, None] + t).ravel(), of_pairs.ravel()]))

    def added(self, state: State, pairs: Sequence[Pair], v: Array, s: Array) -> State:
        """More pairs with these parameters."""
        end = self.head + len(state.pairs)
        theta = np.concatenate([state.theta[:end], v, state.theta[end:-1], s, state.theta[-1:]])
        return State((*state.pairs, *pairs), theta)

    def without(self, state: State, positions: Sequence[int]) -> State:
        """Without the pairs at these positions."""
        gone, E = np.array(positions) + self.head, len(state.pairs)
        pairs = tuple(pair for e, pair in enumerate(state.pairs) if e not in positions)
        return State(pairs, np.delete(state.theta, np.concatenate([gone, gone + E])))

    def of_lower_degree(self, state: State, p: int) -> State:
        """The same for a model of the lower degree p."""
        theta, end = state.theta, self.D + self.p
        kept = theta[: self.D + p], theta[end : end + p - 1], theta[self.head :]
        return State(state.pairs, np.concatenate(kept))

    def is_exact(self, state: State) -> bool:
        """Is the noise at its lower limit, so that there is nothing left to explain?"""
        return float(np.exp(state.theta[-1])) < 10.0 * _LEAST_NOISE * self.scale

    def functions(self, pairs: Sequence[Pair]) -> Array:
        """The products of all pairs, one pair after the other, (E m, n)."""
        first, second = np.array(pairs, dtype=int).reshape(-1, 2).T
        return (self.phi[first][:, self.a] * self.phi[second][:, self.b]).reshape(-1, self.n)

    def _all_functions(self, pairs: Sequence[Pair]) -> Array:
        return np.vstack([self.phi.reshape(-1, self.n), self.functions(pairs)])

    def _solved(self, F: Array, lam: Array, noise: float) -> tuple[Array, Array, float]:
        """alpha = K^-1 y, L^-1, and the log evidence but for its constant."""
        self.evaluations += 1
        K = linalg.add_noise((F.T * lam) @ F + self.scale, noise, self.known_variance)
        L, alpha, value = linalg.solved(K, self.y)
        return alpha, solve_triangular(L, np.eye(self.n), lower=True, check_finite=False), value

    def log_posterior(self, theta: Array, F: Array) -> tuple[float, Array]:
        """Log evidence but for its constant, plus log prior of theta; and the gradient."""
        E, noise = (len(theta) - self.head - 1) // 2, float(np.exp(theta[-1]))
        lam = self._variances(theta, E)
        alpha, L_inv, value = self._solved(F, lam, noise)
        W = L_inv @ F.T
        slopes = 0.5 * lam * (np.square(F @ alpha) - np.einsum("qf,qf->f", W, W))
        of_dims = slopes[: self.D * self.p].reshape(self.D, self.p)
        of_pairs = slopes[self.D * self.p :].reshape(E, len(self.above))
        by_r = np.bincount(self.above, of_pairs.sum(axis=0), self.p - 1)
        by_noise = 0.5 * noise * (alpha @ alpha - np.square(L_inv).sum())
        gradient = [of_dims.sum(axis=1), of_dims.sum(axis=0), by_r, of_pairs.sum(axis=1), of_pairs @ self.above]
        mean, sd = self._prior(E)
        z = (theta - mean) / sd
        return value - 0.5 * float(z @ z), np.append(np.concatenate(gradient), by_noise) - z / sd

    def fitted(self, state: State, steps: int) -> State:
        """Parameters after so many steps uphill."""
        F = self._all_functions(state.pairs)
        log_scale = float(np.log(self.scale))
        bounds = [(log_scale - 25.0, log_scale + 12.0)] * (len(state.theta) - 1)
        bounds += [(log_scale + np.log(_LEAST_NOISE), log_scale)]
        limits = {"maxiter": steps, "maxfun": 2 * steps}
        return State(state.pairs, *climbed(lambda theta: self.log_posterior(theta, F), state.theta, bounds, **limits))

    def gains(self, state: State, pairs: Sequence[Pair]) -> tuple[Array, Array, Array]:
        """For each pair, by how much the log posterior would rise with it, and its best v and s; all else kept.

        Exact, though nothing of size n x n is factorised for a pair: adding F^T F to K changes the evidence by

            1/2 q^T (1 + S)^-1 q - 1/2 log |1 + S|,    S = F K^-1 F^T,  q = F alpha
        """
        alpha, L_inv = self._at(state)
        r = state.theta[self.D + self.p : self.head][self.above]
        best = [np.empty((3, 0))]
        for a in range(0, len(pairs), _CHUNK):
            F = self.functions(pairs[a : a + _CHUNK])
            S, q = self._overlap(F, L_inv), (F @ alpha).reshape(-1, len(r))
            options = [self._best_weight(S, q, np.exp(0.5 * (r + s * self.above)), s) for s in _SLOPES]
            best.append(np.where(options[0][0] >= options[1][0], *options))
        gain, v, s = np.hstack(best)
        return gain, v, s

    def _best_weight(self, S: Array, q: Array, scales: Array, s: float) -> Array:
        """Gain, v and s of every pair, v the best of the grid."""
        eigenvalues, U = np.linalg.eigh(S * scales[:, None] * scales)
        squares = np.square(np.einsum("eij,ei->ej", U, q * scales))
        v = np.exp(_GRID)[:, None, None]
        shrunk = 1.0 + v * np.maximum(eigenvalues, 0.0)
        gain = 0.5 * (v * squares / shrunk - np.log(shrunk)).sum(axis=2)
        gain -= 0.5 * np.square(_GRID / _SD_PAIR)[:, None] + 0.5 * (s / _SD_SLOPE) ** 2
        k = gain.argmax(axis=0)
        return np.array([gain[k, np.arange(len(k))], _GRID[k], np.full(len(k), s)])

    def losses(self, state: State) -> Array:
        """By how much the log evidence would fall without each pair; all else kept."""
        E = len(state.pairs)
        if E == 0:
            return np.empty(0)
        alpha, L_inv = self._at(state)
        lam = self._variances(state.theta, E)[self.D * self.p :]
        F = self.functions(state.pairs) * np.sqrt(lam)[:, None]
        q = (F @ alpha).reshape(E, -1)
        left = np.eye(q.shape[1]) * (1.0 + 1e-12) - self._overlap(F, L_inv)
        quadratic = np.einsum("ei,ei->e", q, np.linalg.solve(left, q[:, :, None])[:, :, 0])
        return 0.5 * quadratic + 0.5 * np.linalg.slogdet(left)[1]

    def _at(self, state: State) -> tuple[Array, Array]:
        lam = self._variances(state.theta, len(state.pairs))
        return self._solved(self._all_functions(state.pairs), lam, float(np.exp(state.theta[-1])))[:2]

    def _overlap(self, F: Array, L_inv: Array) -> Array:
        """F_e K^-1 F_e^T of every pair e, (E, m, m)."""
        W = (L_inv @ F.T).reshape(self.n, -1, len(self.above))
        return np.matmul(W.transpose(1, 2, 0), W.transpose(1, 0, 2))


def one_dimensional(x: Array, nominal: bool, degree: int) -> Array:
    """phi of one dimension, (p, n): orthonormal over the points, and to the constant; zero where values are too few.

    Polynomials of numbers; of categories, the first contrasts.
    """
    values, code = np.unique(x, return_inverse=True)
    q = min(degree, len(values) - 1)
    if nominal:
        columns = np.column_stack([np.ones(len(x)), np.eye(len(values))[code][:, :q]])
    else:
        low, high = values[0], values[-1]
        columns = legvander(2.0 * (x - low) / (high - low) - 1.0, q) if q else np.ones((len(x), 1))
    Q = np.linalg.qr(columns)[0]
    phi = np.zeros((degree, len(x)))
    phi[:q] = np.sqrt(len(x)) * Q[:, 1 : q + 1].T
    return phi


class _Pairs:
    """The search for pairs. A pair costs the log of how many there are to choose from."""

    def __init__(self, problem: Problem, evaluations: int) -> None:
        self.problem, self.limit = problem, evaluations
        self.spent = 0  # by models of other degrees
        self.model = self._of_degree(_DEGREE)
        rules = problem.rules
        unit_of = {i: u for u, unit in enumerate(rules.units) for i in unit}
        pairs = list(itertools.combinations(range(self.model.D), 2))
        self.known = tuple(pair for pair in pairs if unit_of[pair[0]] == unit_of[pair[1]])
        others = [pair for pair in pairs if pair not in self.known]
        self.open = [(i, k) for i, k in others if rules.allows((unit_of[i], unit_of[k]))]
        self.charge = float(np.log(max(2, len(pairs))))

    def _of_degree(self, p: int) -> Spectral:
        at = self.problem
        return Spectral(at.XT.T, at.y, at.nominal, p, at.known_variance)

    def search(self) -> tuple[Pair, ...]:
        E = len(self.known)
        empty = State((), self.model.start())
        best = self._fitted(self.model.added(empty, self.known, np.zeros(E), np.zeros(E)), 60)
        best = self._simplest(self._one_by_one(best))
        while self._left and not self.model.is_exact(best):
            better = self._several(best)
            if better is None:
                break
            best = self._one_by_one(better)
        return best.pairs

    def score(self, state: State) -> float:
        return state.value - self.charge * len(state.pairs)

    @property
    def _left(self) -> int:
        """Evidence evaluations that may still be made."""
        return max(0, self.limit - self.spent - self.model.evaluations)

    def _fitted(self, state: State, steps: int) -> State:
        return self.model.fitted(state, max(1, min(steps, self._left // 2)))  # a step takes one or two

    def _candidates(self, state: State) -> tuple[list[Pair], Array, Array, Array]:
        """All pairs that are not there yet, the most promising first: gains, and first parameters."""
        missing = [pair for pair in self.open if pair not in set(state.pairs)]
        gain, v, s = self.model.gains(state, missing)
        order = np.argsort(-gain, kind="stable")
        return [missing[k] for k in order], gain[order], v[order], s[order]

    def _one_by_one(self, state: State) -> State:
        """Add what pays at once, a few at a time, and take out what no longer does, until the score rests."""
        while self._left:
            pairs, gain, v, s = self._candidates(state)
            bar = max(self.charge, 0.4 * gain[0]) if pairs else np.inf
            count = min(int((gain > bar).sum()), max(4, len(state.pairs) // 2))
            if count == 0:
                break
            more = self._fitted(self.model.added(state, pairs[:count], v[:count], s[:count]), 40)
            more = self._pruned(more, self.charge)
            if self.score(more) <= self.score(state) + _GAIN:
                break
            state = more
        return state

    def _several(self, state: State) -> State | None:
        """Add many at once, and as many again, before asking which of them pay; None where the score never rises.

        On the way half of the charge is enough: what is a little too weak to pay now may pay once others are there.
        """
        for count in _TOGETHER:
            at = state
            for _ in range(_DEPTH):
                pairs, _, v, _ = self._candidates(at)
                if not pairs or not self._left:
                    break
                first = v[:count]
                at = self.model.added(at, pairs[:count], first, np.full(len(first), _SMOOTH))
                at.theta[-1] -= np.log(10.0)  # with the noise of before, they would not be needed
                at = self._pruned(self._fitted(at, 60), 0.5 * self.charge)
                found = self._pruned(at, self.charge)
                if self.score(found) > self.score(state) + _GAIN:
                    return found
        return None

    def _pruned(self, state: State, charge: float) -> State:
        """Take out pairs that are not worth the charge, the least first, and fit again in between."""
        while True:
            losses = self.model.losses(state)
            removable = [e for e in np.argsort(losses).tolist() if state.pairs[e] not in self.known]
            gone = [e for e in removable[: max(1, len(removable) // 8)] if losses[e] < charge]
            if not gone:
                return state
            state = self._fitted(self.model.without(state, gone), 15)

    def _simplest(self, state: State) -> State:
        """The degree with the highest evidence for these pairs; the search goes on with it."""
        if not self._left:
            return state
        steps = max(1, min(40, self._left // 8))
        models = [self.model] + [self._of_degree(p) for p in range(2, _DEGREE)]
        states = [state] + [m.fitted(self.model.of_lower_degree(state, m.p), steps) for m in models[1:]]
        best = max(range(len(states)), key=lambda k: states[k].value)
        self.spent = sum(model.evaluations for model in models) - models[best].evaluations
        self.model = models[best]
        return states[best]


def _with_cliques(problem: Problem, groups: list[Group]) -> list[Group]:
    """Replace the pairs of a clique by one group, where that raises the evidence of the model's own kernel."""
    D, largest = len(problem.XT), problem.rules.max_group_size
    problem = replace(problem, rules=Rules.of(D, largest))

    def evidence(candidate: list[Group]) -> float:
        candidate = _with_the_rest(candidate, D)
        return problem.fitted(candidate, settings=QUICK).score - problem.log_prior(len(candidate))

    cliques = _cliques([set(group) for group in groups], D, largest)
    if not cliques:
        return groups
    value = evidence(groups)
    for clique in cliques:
        joined = [group for group in groups if not set(group) <= set(clique)] + [clique]
        if (found := evidence(joined)) > value:
            groups, value = joined, found
    return groups


def _cliques(groups: Sequence[set[int]], D: int, largest: int) -> list[Group]:
    """Sets of 3 to `largest` dimensions all of whose pairs are in some group, the largest first."""
    linked = np.zeros((D, D), dtype=bool)
    for group in groups:
        linked[np.ix_(list(group), list(group))] = True
    grown: list[Group] = [(i,) for i in range(D)]
    found: list[Group] = []
    for size in range(2, largest + 1):
        grown = [(*g, k) for g in grown for k in range(g[-1] + 1, D) if linked[list(g), k].all()]
        found = (grown if size > 2 else []) + found
    return [clique for clique in found if not any(set(clique) <= group for group in groups)]
