"""From an acquisition to a point: the maximisers of the paper and of this library, for one model.

| symbol | shape  | meaning                                            |
|--------|--------|----------------------------------------------------|
| Z      | (m, D) | candidate points of the unit cube                  |
| a      | (m,) or (M, m) | acquisition, of the sum or of each component |
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sumbo._typing import Array
from sumbo.acquisition import optimize
from sumbo.acquisition.functions import Acquisition, Feasibility
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.sample_paths import SamplePath
from sumbo.methods.base import SuggestContext
from sumbo.space import Space

_CANDIDATES = 1024  # random points from which starts are chosen
_GROUP_CANDIDATES = 256  # the same for groups: fewer dimensions need fewer
_LEAST_PROMISING = 10  # observations that a promising box surrounds, at least
_SURPRISE_BOUNDS = (0.25, 2.0)
_UNSURPRISING = 4  # values that are taken to be just as far off as expected, beside those seen
_CHANGED = 20  # coordinates in which a candidate near the incumbent differs from it, on average
_STARTS = 8  # drawn in proportion to their acquisition, beside the best and the incumbent
_NEIGHBOURS = 6  # of the incumbent, with another category each, are climbed too
_MOST_ALTERNATIVES = 32  # values tried for one discrete coordinate


@dataclass(frozen=True)
class Box:
    """A part of the cube, by its corners (D,)."""

    low: Array
    high: Array

    def inside(self, V: Array) -> Array:
        """Points of the box from points of a cube of its own."""
        return self.low + (self.high - self.low) * V

    def within(self, Z: Array) -> Array:
        """Where points lie in the box's own cube, those outside moved to its faces."""
        return np.clip((Z - self.low) / (self.high - self.low), 0.0, 1.0)


def trust_region(model: AdditiveGP, space: Space) -> Box:
    """Around the better third of the points seen, half as wide again, so that it can move and grow.

    In many dimensions most of the cube is far from every point, where improvement is expected only because nothing is
    known. Here it is expected because of what is known. Categories have no neighbourhood and stay free.
    """
    best = model.X[_promising(model)]
    low, high = best.min(axis=0), best.max(axis=0)
    step = np.where(space.levels > 1, 1.0 / np.maximum(space.levels, 1), 0.0)  # room for the next whole number
    margin = 0.25 * (high - low) + np.maximum(0.02, step)
    low, high = np.maximum(low - margin, 0.0), np.minimum(high + margin, 1.0)
    return Box(np.where(space.nominal, 0.0, low), np.where(space.nominal, 1.0, high))


def loo_calibration(model: AdditiveGP) -> float:
    """How far the better third of the values is from what all others predict, in predicted standard deviations.

    Hyperparameters are those of the whole cube. Near the best points functions are often far smoother than that, and
    what the model does not know there is less than it says.
    """
    some = _promising(model)
    mean, std = model.leave_one_out()
    squares = float(np.square((model.y[some] - mean[some]) / std[some]).sum())
    if not np.isfinite(squares):  # two points are one but for rounding
        return 1.0
    return float(np.clip(np.sqrt((squares + _UNSURPRISING) / (len(some) + _UNSURPRISING)), *_SURPRISE_BOUNDS))


def _promising(model: AdditiveGP) -> NDArray[np.intp]:
    """Which of the points seen are the better third."""
    return np.argsort(-model.y, kind="stable")[: max(_LEAST_PROMISING, model.n // 3)]


def maximise_joint(
    model: AdditiveGP,
    acquisition: Acquisition,
    context: SuggestContext,
    extra: Array,
    *,
    box: Box | None = None,
    feasibility: Feasibility | None = None,
    direct: int | None = None,
) -> Array:
    """Where the acquisition of the sum is largest: many starts over the whole cube, each climbed.

    Args:
        model, acquisition: the sum, and what a point is worth by its mean and variance.
        context: gives the space, randomness and the deadline.
        extra: further starts, (k, D), such as the incumbent or a group-wise maximiser; of the first, neighbours with
            another category are tried as well.
        box: look in there only. Half of the first candidates then differ from the first extra start in some
            coordinates only, for the same reason for which there is a box.
        feasibility: where evaluations succeed. The log of the probability is added: the acquisition should be a
            logarithm too, or on a scale where that is a fair price.
        direct: so many evaluations of DIRECT on all dimensions at once instead, as the paper did for GP-UCB and GP-EI.
    """
    space, deadline = context.space, context.deadline
    local, box = box is not None, box or Box(np.zeros(context.D), np.ones(context.D))

    def value(Z: Array) -> Array:
        moments = model.moments(Z)
        a = acquisition(moments.mean, moments.variance)[0]
        return a if feasibility is None else a + feasibility.value(Z)

    if direct is not None:
        return space.snap(optimize.direct(value, context.D, direct, stop=deadline.passed)[0])

    def value_and_gradient(V: Array) -> tuple[Array, Array]:
        Z = box.inside(V)
        moments = model.moments(Z)
        a, by_mean, by_variance = acquisition(moments.mean, moments.variance)
        gradient = moments.gradient(by_mean, by_variance)
        if feasibility is not None:
            success, by_point = feasibility.value_and_gradient(Z)
            a, gradient = a + success, gradient + by_point
        return a, (box.high - box.low) * gradient

    Z = space.snap(box.inside(context.rng.random((_CANDIDATES, context.D))))
    if local:
        kept = context.rng.random(Z[::2].shape) >= _CHANGED / context.D
        Z[::2] = np.where(kept, extra[0], Z[::2])
    drawn = spread_starts(deadline.evaluated(value, Z, 0.5), _STARTS, context.rng)
    starts = np.vstack([Z[drawn], _best_neighbours(value, extra[0], context), extra])
    stop = deadline.stops()
    points, _ = optimize.ascend(value_and_gradient, box.within(starts), stop=stop)
    best, _ = optimize.best_of(value, np.vstack([space.snap(box.inside(points)), starts]))
    return best if stop() else optimize.polish(value, best, alternatives(context), stop=stop)


def _best_neighbours(value: optimize.Value, x: Array, context: SuggestContext) -> Array:
    """The most promising points that differ from x in one category, (k, D).

    Another category may want other numbers with it: only a climb from there shows what it is worth.
    """
    Z = optimize.neighbours(x, [(i, values) for i, values in alternatives(context) if context.space.nominal[i]])
    return Z[np.argsort(-context.deadline.evaluated(value, Z, 0.1), kind="stable")[:_NEIGHBOURS]] if len(Z) else Z


def group_starts(model: AdditiveGP, context: SuggestContext, count: int = 3) -> Array:
    """Points put together from what looks best in each group: the k-th takes every group's k-th best, (count, D).

    No single evaluation may have come near such a point; to know it is what the groups are for.
    """
    parts = model.decomposition.groups
    Z = np.vstack([context.uniform(_GROUP_CANDIDATES), incumbents(model, 10)])
    return _combine(Z, context.deadline.evaluated(model.group_means, Z, 0.1)[: len(parts)], parts, count)


def incumbents(model: AdditiveGP, count: int) -> Array:
    """The points with the best values seen, (count, D)."""
    return model.X[np.argsort(-model.y, kind="stable")[:count]]


def maximise_groups(
    model: AdditiveGP, acquisition: Acquisition, context: SuggestContext, direct: int | None = None
) -> Array:
    """Line 1 of Algorithm 1 for all groups at once: each component's acquisition, climbed from its best candidates.

    The sum over groups is climbed from points that combine every group's k-th best candidate; being a sum over separate
    coordinates, it moves each group up its own acquisition. Then every group takes the best of its own.

    Groups that overlap cannot each have their own best: there the exact acquisition of the sum is maximised instead,
    from what the groups suggest. With `direct`, so many evaluations of DIRECT are shared between the groups, as the
    paper did it.
    """
    if not model.decomposition.disjoint:
        starts = incumbents(model, 2)
        if direct is None:
            starts = np.vstack([starts, group_starts(model, context)])
        return maximise_joint(model, acquisition, context, starts, direct=direct)
    if direct is not None:
        each, x = max(1, direct // len(model.groups)), np.empty(context.D)
        for j, group in enumerate(model.groups):

            def value(Z_j: Array, j: int = j) -> Array:
                mean, std = model.group_posterior(j, Z_j)
                return acquisition(mean, np.square(std))[0]

            x[list(group)], _ = optimize.direct(value, len(group), each, stop=context.deadline.passed)
        return context.space.snap(x)

    def values(Z: Array) -> Array:  # (M, m)
        moments = model.group_moments(Z)
        return acquisition(moments.mean, moments.variance)[0]

    def sum_and_gradient(Z: Array) -> tuple[Array, Array]:
        moments = model.group_moments(Z)
        a, by_mean, by_variance = acquisition(moments.mean, moments.variance)
        return a.sum(axis=0), moments.gradient(by_mean, by_variance)

    Z = np.vstack([context.uniform(_GROUP_CANDIDATES), incumbents(model, 10)])
    return _climbed_by_group(values, sum_and_gradient, Z, model.groups, context, starts=4, rounds=40)


def maximise_path(path: SamplePath, context: SuggestContext, extra: Array) -> Array:
    """Where a function drawn from a model is largest: every group at the top of its own part, where they are separate.

    The path is a sum of functions of the groups, exactly, so that its maximum is the sum of theirs. The extra points,
    (k, D), such as the incumbents, are candidates too.
    """
    # A draw has more tops than a bound, and there is no exploration to make up for a missed one.
    Z = np.vstack([context.uniform(_CANDIDATES), extra])
    return _climbed_by_group(path.parts, path.with_gradient, Z, path.groups, context, starts=_STARTS, rounds=60)


def _climbed_by_group(
    values: optimize.Value,
    sum_and_gradient: optimize.ValueAndGradient,
    Z: Array,
    groups: tuple[tuple[int, ...], ...],
    context: SuggestContext,
    *,
    starts: int,
    rounds: int,
) -> Array:
    """The point that takes from every group its best, given the groups' values (M, m), and their sum to climb."""
    first = _combine(Z, context.deadline.evaluated(values, Z, 0.5), groups, starts)
    stop = context.deadline.stops()
    points, _ = optimize.ascend(sum_and_gradient, first, rounds=rounds, stop=stop)
    finalists = np.vstack([context.space.snap(points), first])
    best = _combine(finalists, values(finalists), groups, 1)
    # Of groups that overlap, the last has its way in `best`, and a finalist may be better as a whole.
    candidates = np.vstack([best, finalists])
    best_of_all = candidates[int(np.argmax(values(candidates).sum(axis=0)))]
    return optimize.polish(lambda Z: values(Z).sum(axis=0), best_of_all, alternatives(context), stop=stop)


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


def alternatives(context: SuggestContext) -> list[tuple[int, Array]]:
    """For each discrete dimension the values that a last polish may try: all of a few, random ones of many."""
    discrete = np.flatnonzero(context.space.levels > 1)
    counts = np.minimum(context.space.levels, _MOST_ALTERNATIVES)
    # All dimensions in one matrix: to snap one for each would be D^2 conversions.
    points = np.full((int(counts.max()), context.D), 0.5)
    for i in discrete:
        points[: counts[i], i] = (np.arange(counts[i]) + 0.5) / counts[i]
    snapped = context.space.snap(points)
    return [(int(i), np.unique(snapped[: counts[i], i])) for i in discrete]


def _combine(Z: Array, values: Array, groups: tuple[tuple[int, ...], ...], count: int) -> Array:
    """Points whose k-th row takes every group's coordinates from its k-th best candidate, (count, D)."""
    best = np.argsort(-values, axis=1, kind="stable")[:, :count]  # (M, count)
    combined = Z[best[0]].copy()
    for j, group in enumerate(groups):
        combined[:, list(group)] = Z[best[j]][:, list(group)]
    return combined
