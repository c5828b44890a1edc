"""From an acquisition to a point: the maximisers of the paper and of this library, for one model.

| symbol | shape  | meaning                                            |
|--------|--------|----------------------------------------------------|
| Z      | (m, D) | candidate points of the unit cube                  |
| a      | (m,) or (M, m) | acquisition, of the sum or of each component |
"""

import numpy as np

from sumbo import maximise
from sumbo.acquisition import Acquisition
from sumbo.gp import AdditiveGP
from sumbo.kernels import Array
from sumbo.methods.base import Query

_CANDIDATES = 1024  # random points from which starts are chosen
_GROUP_CANDIDATES = 256  # the same for groups: fewer dimensions need fewer
_STARTS = 8  # drawn in proportion to their acquisition, beside the best and the incumbent
_MOST_ALTERNATIVES = 32  # values tried for one discrete coordinate


def maximise_joint(model: AdditiveGP, acquisition: Acquisition, query: Query, extra: Array | None = None) -> Array:
    """Where the acquisition of the sum is largest: many starts over the whole cube, each climbed.

    Args:
        model: the model.
        acquisition: of mean and variance of the sum.
        query: gives the space, randomness and the deadline.
        extra: further starts, (k, D), such as the incumbent or a group-wise maximiser.
    """
    space, stop = query.space, query.deadline.passed

    def value(Z: Array) -> Array:
        moments = model.moments(Z)
        return acquisition(moments.mean, moments.variance)[0]

    def value_and_gradient(Z: Array) -> tuple[Array, Array]:
        moments = model.moments(Z)
        a, by_mean, by_variance = acquisition(moments.mean, moments.variance)
        return a, moments.gradient(by_mean, by_variance)

    Z, values = _screened(value, query, _CANDIDATES)
    starts = Z[spread_starts(values, _STARTS, query.rng)]
    if extra is not None:
        starts = np.vstack([starts, extra])
    points, _ = maximise.ascend(value_and_gradient, starts, stop=stop)
    best, _ = maximise.best_of(value, np.vstack([space.snap(points), starts]))
    return best if stop() else maximise.polish(value, best, alternatives(query))


def _screened(value: maximise.Value, query: Query, count: int) -> tuple[Array, Array]:
    """Random points and their values; with a deadline, as many as half of the time allows."""
    Z = query.uniform(count)
    if query.deadline.moment is None:
        return Z, value(Z)
    half, size, values = query.deadline.left / 2.0, max(count // 16, 1), []
    for a in range(0, count, size):
        values.append(value(Z[a : a + size]))
        if query.deadline.left < half:
            break
    found = np.concatenate(values)
    return Z[: len(found)], found


def group_starts(model: AdditiveGP, query: Query, count: int = 3) -> Array:
    """Points put together from what looks best in each group: the k-th takes every group's k-th best, (count, D).

    No single evaluation may have come near such a point; to know it is what the groups are for.
    """
    parts = model.decomposition.groups
    Z = np.vstack([query.uniform(_GROUP_CANDIDATES), incumbents(model, 10)])
    return _combine(Z, model.group_means(Z)[: len(parts)], parts, count)


def incumbents(model: AdditiveGP, count: int) -> Array:
    """The points with the best values seen, (count, D)."""
    return model.X[np.argsort(-model.y, kind="stable")[:count]]


def maximise_groups(model: AdditiveGP, acquisition: Acquisition, query: Query) -> Array:
    """Line 1 of Algorithm 1 for all groups at once: each component's acquisition, climbed from its best candidates.

    The sum over groups is climbed from points that combine every group's k-th best candidate; being a sum over separate
    coordinates, it moves each group up its own acquisition. Then every group takes the best of its own.
    """
    space, stop = query.space, query.deadline.passed

    def values(Z: Array) -> Array:  # (M, m)
        moments = model.group_moments(Z)
        return acquisition(moments.mean, moments.variance)[0]

    def sum_and_gradient(Z: Array) -> tuple[Array, Array]:
        moments = model.group_moments(Z)
        a, by_mean, by_variance = acquisition(moments.mean, moments.variance)
        return a.sum(axis=0), moments.gradient(by_mean, by_variance)

    Z = np.vstack([query.uniform(_GROUP_CANDIDATES), incumbents(model, 10)])
    starts = _combine(Z, values(Z), model.groups, 4)
    points, _ = maximise.ascend(sum_and_gradient, starts, rounds=40, stop=stop)
    finalists = np.vstack([space.snap(points), starts])
    best = _combine(finalists, values(finalists), model.groups, 1)[0]
    return maximise.polish(lambda Z: values(Z).sum(axis=0), best, alternatives(query))


def maximise_groups_by_direct(model: AdditiveGP, acquisition: Acquisition, query: Query, budget: int) -> Array:
    """Line 1 of Algorithm 1 as the paper did it: DIRECT on each group, the budget shared between them."""
    x = np.empty(query.D)
    for j, group in enumerate(model.groups):
        indices = list(group)

        def value(Z_j: Array, j: int = j) -> Array:
            mean, std = model.group_posterior(j, Z_j)
            return acquisition(mean, np.square(std))[0]

        x[indices], _ = maximise.direct(
            value, len(group), max(1, budget // len(model.groups)), stop=query.deadline.passed
        )
    return query.space.snap(x)


def maximise_joint_by_direct(model: AdditiveGP, acquisition: Acquisition, query: Query, budget: int) -> Array:
    """DIRECT on all dimensions at once, as the paper did for GP-UCB and GP-EI."""

    def value(Z: Array) -> Array:
        moments = model.moments(Z)
        return acquisition(moments.mean, moments.variance)[0]

    return query.space.snap(maximise.direct(value, query.D, budget, stop=query.deadline.passed)[0])


def direct_budget(D: int) -> int:
    """The paper's number of acquisition evaluations for full-dimensional methods; additive ones get 90% of it."""
    return min(5000, 100 * D)


def spread_starts(values: Array, count: int, rng: np.random.Generator) -> Array:
    """Indices of the best candidate and of others drawn in proportion to exp(standardised value), all different."""
    order = np.argsort(-values, kind="stable")
    spread = float(values.std())
    weights = np.exp((values - values.max()) / spread) if spread > 0.0 else np.ones(len(values))
    weights[order[0]] = 0.0
    others = np.flatnonzero(weights)
    count = min(count - 1, len(others))
    drawn = rng.choice(others, size=count, replace=False, p=weights[others] / weights[others].sum())
    return np.append(order[:1], drawn)


def alternatives(query: Query) -> list[tuple[int, Array]]:
    """For each discrete dimension the values that a last polish may try: all of a few, random ones of many."""
    choices = []
    for i in np.flatnonzero(query.space.levels > 1):
        count = min(int(query.space.levels[i]), _MOST_ALTERNATIVES)
        grid = (np.arange(count) + 0.5) / count
        points = np.full((count, query.D), 0.5)
        points[:, i] = grid
        choices.append((int(i), np.unique(query.space.snap(points)[:, i])))
    return choices


def _combine(Z: Array, values: Array, groups: tuple[tuple[int, ...], ...], count: int) -> Array:
    """Points whose k-th row takes every group's coordinates from its k-th best candidate, (count, D)."""
    best = np.argsort(-values, axis=1, kind="stable")[:, :count]  # (M, count)
    combined = Z[best[0]].copy()
    for j, group in enumerate(groups):
        combined[:, list(group)] = Z[best[j]][:, list(group)]
    return combined
