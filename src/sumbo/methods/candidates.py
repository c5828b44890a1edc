"""From an acquisition to a point: the maximisers of the paper and of this library, for one model.

| symbol | shape  | meaning                                            |
|--------|--------|----------------------------------------------------|
| Z      | (m, D) | candidate points of the unit cube                  |
| a      | (m,) or (M, m) | acquisition, of the sum or of each component |
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sumbo._typing import Array
from sumbo.acquisition import optimize
from sumbo.acquisition.functions import Acquisition, Feasibility, LogProbability, Satisfied, nothing, ucb
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.sample_paths import SamplePath
from sumbo.methods.base import Deadline, SuggestContext
from sumbo.space import Space

_CANDIDATES = 1024  # random points from which starts are chosen
_GROUP_CANDIDATES = 256  # the same for groups: fewer dimensions need fewer
_LEAST_PROMISING = 10  # observations that a promising box surrounds, at least
_SURPRISE_BOUNDS = (0.25, 2.0)
_UNSURPRISING = 4  # values that are taken to be just as far off as expected, beside those seen
_CHANGED = 20  # coordinates in which a candidate near the incumbent differs from it, on average
_STARTS = 8  # drawn in proportion to their acquisition, beside the best and the incumbent
_NEIGHBOURS = 6  # of the incumbent, with another category each, are climbed too
_CLIMBED = 6  # starts, the best of all, where known constraints make a climb slow
_SURE = 0.95  # probability with which a point that is recommended untried is feasible
_FEW = 3  # of the better points at which a parameter exists say nothing about where it is good
_PROMISING = 500  # points seen, by worth, among which the best posterior mean is looked for
_COMPARED = 500  # points seen whose mean is predicted, where other values are fixed than they had
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


@dataclass(frozen=True)
class Seen:
    """Points that were evaluated, as far as they say where to go on: allowed ones, with what each is worth.

    Attributes:
        X, score: the points (k, D), with fixed values put in, and their worth (k,), larger is better.
        feasible: which of them keep all constraints, as far as is known, (k,).
        rows: which observations of the model they are, (k,).
    """

    X: Array
    score: Array
    feasible: NDArray[np.bool_]
    rows: NDArray[np.intp]

    @classmethod
    def of(cls, model: AdditiveGP, context: SuggestContext, satisfied: Sequence[Satisfied] = ()) -> "Seen":
        """From a model of all that was told, or of the best of it where there was no time for more.

        Where values are fixed that the points did not have, worth and constraints are as the models expect them.
        """
        region, rows, X = context.region, np.arange(model.n), model.X
        all_there = model.n == len(context.y)
        if region.open and not (satisfied and all_there):
            return cls(X, model.y, np.ones(model.n, dtype=bool), rows)
        if region.fixed:
            rows = rows[:: max(1, model.n // _COMPARED)]
        X = region.snap(X[rows])
        if not region.trivial:
            rows, X = rows[kept := region.contains(X)], X[kept]
        told = not region.fixed and len(rows) > 0
        if not len(rows):  # what was told is all elsewhere
            X = region.sample(_LEAST_PROMISING, context.rng)
        score = model.y[rows] if told else model.posterior(X)[0]
        if not satisfied or not (told and all_there):
            short = sum((constraint.shortfall(X) for constraint in satisfied), np.zeros(len(X)))
        else:
            amounts = context.constraints[rows]  # type: ignore[index]  # there are models of them
            typical = np.nanmedian(np.abs(context.constraints), axis=0)  # type: ignore[arg-type]
            short = np.nan_to_num(np.maximum(amounts, 0.0), nan=np.inf) / np.where(typical > 0.0, typical, 1.0)
            short = np.minimum(short.sum(axis=1), 1e300)
        # What is feasible comes first; of the rest, what is nearly so.
        feasible = short == 0.0
        if satisfied:
            score = np.where(feasible, score, score.min() - 1.0 - short)
        return cls(X, score, feasible, rows)

    @property
    def order(self) -> NDArray[np.intp]:
        """The best first."""
        return np.argsort(-self.score, kind="stable")

    def best(self, count: int) -> Array:
        """The best of the points, (at most count, D)."""
        return self.X[self.order[:count]]

    @property
    def promising(self) -> NDArray[np.intp]:
        """The better third."""
        return self.order[: max(_LEAST_PROMISING, len(self.X) // 3)]


def best_seen(model: AdditiveGP, seen: Seen, deadline: Deadline) -> float:
    """The best posterior mean at a feasible point seen; minus infinity where there is none.

    The mean, not the value: a lucky draw of the noise is no improvement.
    """
    X = seen.X[[i for i in seen.order[:_PROMISING] if seen.feasible[i]]]
    return float(deadline.evaluated(lambda Z: model.posterior(Z)[0], X, 0.1).max()) if len(X) else -np.inf


def trust_region(seen: Seen, space: Space) -> Box:
    """Around the better third of the points seen, half as wide again, so that it can move and grow.

    In many dimensions most of the cube is far from every point, where improvement is expected only because nothing is
    known. Here it is expected because of what is known. Categories have no neighbourhood and stay free, and so do
    parameters that do not exist at the better points.
    """
    best = seen.X[seen.promising]
    low, high = best.min(axis=0), best.max(axis=0)
    if space.conditional:
        exists = space.active(best)
        low, high = np.where(exists, best, 1.0).min(axis=0), np.where(exists, best, 0.0).max(axis=0)
        few = exists.sum(axis=0) < _FEW
        low, high = np.where(few, 0.0, low), np.where(few, 1.0, high)
    step = np.where(space.levels > 1, 1.0 / np.maximum(space.levels, 1), 0.0)  # room for the next whole number
    margin = 0.25 * (high - low) + np.maximum(0.02, step)
    low, high = np.maximum(low - margin, 0.0), np.minimum(high + margin, 1.0)
    return Box(np.where(space.nominal, 0.0, low), np.where(space.nominal, 1.0, high))


def loo_calibration(model: AdditiveGP, seen: Seen) -> float:
    """How far the better third of the values is from what all others predict, in predicted standard deviations.

    Hyperparameters are those of the whole cube. Near the best points functions are often far smoother than that, and
    what the model does not know there is less than it says.
    """
    some = seen.rows[seen.promising[: len(seen.rows)]]
    mean, std = model.leave_one_out()
    squares = float(np.square((model.y[some] - mean[some]) / std[some]).sum())
    if not np.isfinite(squares):  # two points are one but for rounding
        return 1.0
    return float(np.clip(np.sqrt((squares + _UNSURPRISING) / (len(some) + _UNSURPRISING)), *_SURPRISE_BOUNDS))


def maximise_joint(
    model: AdditiveGP,
    acquisition: Acquisition,
    context: SuggestContext,
    extra: Array,
    *,
    box: Box | None = None,
    probabilities: Sequence[LogProbability] = (),
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
        probabilities: that an evaluation succeeds, and keeps constraints. Their logs are added: the acquisition should
            be a logarithm too, or on a scale where that is a fair price.
        direct: so many evaluations of DIRECT on all dimensions at once instead, as the paper did for GP-UCB and GP-EI.
    """
    region, deadline = context.region, context.deadline
    local, box = box is not None, box or Box(np.zeros(context.D), np.ones(context.D))

    def value(Z: Array) -> Array:
        moments = model.moments(Z)
        a = acquisition(moments.mean, moments.variance)[0]
        for probability in probabilities:
            a = a + probability.value(Z)
        return a

    if direct is not None:
        return region.snap(optimize.direct(value, context.D, direct, stop=deadline.passed)[0])

    def value_and_gradient(Z: Array) -> tuple[Array, Array]:
        moments = model.moments(Z)
        a, by_mean, by_variance = acquisition(moments.mean, moments.variance)
        gradient = moments.gradient(by_mean, by_variance)
        for probability in probabilities:
            log_p, by_point = probability.value_and_gradient(Z)
            a, gradient = a + log_p, gradient + by_point
        return a, gradient if region.plain else np.where(region.moving(Z), gradient, 0.0)

    def in_box(V: Array) -> tuple[Array, Array]:
        a, gradient = value_and_gradient(box.inside(V))
        return a, (box.high - box.low) * gradient

    Z = _candidates(box, extra[0] if local else None, context)
    drawn = spread_starts(deadline.evaluated(value, Z, 0.5), _STARTS, context.rng)
    starts = np.vstack([Z[drawn], _best_neighbours(value, extra[0], context), extra])
    stop = deadline.stops()
    if region.trivial:
        points = region.snap(box.inside(optimize.ascend(in_box, box.within(starts), stop=stop)[0]))
    else:
        starts = starts[np.argsort(-value(starts), kind="stable")[:_CLIMBED]]
        points, _ = region.climb(value_and_gradient, starts, box.low, box.high, stop=stop)
    best, _ = optimize.best_of(value, np.vstack([points, starts]))
    return best if stop() else _polished(value, best, context, stop)


def maximise_draw(path: SamplePath, context: SuggestContext, starts: Array, box: Box) -> Array:
    """Where a function drawn from a model is largest in the box. The region must be without constraints."""
    region, stop = context.region, context.deadline.stops()

    def in_box(V: Array) -> tuple[Array, Array]:
        value, gradient = path.with_gradient(box.inside(V))
        gradient = gradient if region.plain else np.where(region.moving(box.inside(V)), gradient, 0.0)
        return value, (box.high - box.low) * gradient

    Z = _candidates(box, starts[0], context)
    best = np.argsort(-context.deadline.evaluated(path, Z, 0.5), kind="stable")[:_STARTS]
    first = np.vstack([Z[best], starts])
    points = region.snap(box.inside(optimize.ascend(in_box, box.within(first), stop=stop)[0]))
    return _polished(path, optimize.best_of(path, np.vstack([points, first]))[0], context, stop)


def _candidates(box: Box, incumbent: Array | None, context: SuggestContext) -> Array:
    """Random points of the box, (m, D); with an incumbent, half of them differ from it in some coordinates only."""
    region, rng, D = context.region, context.rng, context.D
    if region.trivial:
        U = box.inside(rng.random((_CANDIDATES, D)))
        if incumbent is not None:
            kept = rng.random(U[::2].shape) >= _CHANGED / D
            if context.space.conditional:  # what does not exist there is open here
                kept &= context.space.active(incumbent[None])
            U[::2] = np.where(kept, incumbent, U[::2])
        return region.snap(U)
    Z = context.uniform(_CANDIDATES)
    if incumbent is None:
        return Z
    # On the way from the incumbent to points of the region, as far as the box goes: there constraints mostly hold.
    towards = Z - incumbent
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(towards > 0.0, box.high - incumbent, box.low - incumbent) / towards
    far = np.minimum(np.nan_to_num(room, nan=1.0, posinf=1.0).clip(0.0, 1.0).min(axis=1), 1.0)
    near = region.snap(incumbent + (far * rng.random(len(Z)))[:, None] * towards)
    return np.where(region.contains(near)[:, None], near, Z)


def _polished(value: optimize.Value, x: Array, context: SuggestContext, stop: optimize.Stop) -> Array:
    """The point with its discrete coordinates improved, one at a time, inside the region."""
    region = context.region
    if region.plain:
        return optimize.polish(value, x, alternatives(context), stop=stop)

    def allowed(Z: Array) -> Array:
        V = region.snap(Z)
        return np.where(region.contains(V), value(V), -np.inf)

    return region.snap(optimize.polish(allowed, x, alternatives(context), stop=stop))


def _best_neighbours(value: optimize.Value, x: Array, context: SuggestContext) -> Array:
    """The most promising points that differ from x in one category, (k, D).

    Another category may want other numbers with it: only a climb from there shows what it is worth.
    """
    Z = optimize.neighbours(x, [(i, values) for i, values in alternatives(context) if context.space.nominal[i]])
    if not context.region.plain and len(Z):
        Z = context.region.snap(Z)
        Z = Z[context.region.contains(Z)]
    return Z[np.argsort(-context.deadline.evaluated(value, Z, 0.1), kind="stable")[:_NEIGHBOURS]] if len(Z) else Z


def group_starts(model: AdditiveGP, context: SuggestContext, seen: Seen, count: int = 3) -> Array:
    """Points put together from what looks best in each group: the k-th takes every group's k-th best, (count, D).

    No single evaluation may have come near such a point; to know it is what the groups are for.
    """
    parts = model.decomposition.groups
    Z = np.vstack([context.uniform(_GROUP_CANDIDATES), seen.best(10)])
    combined = _combine(Z, context.deadline.evaluated(model.group_means, Z, 0.1)[: len(parts)], parts, count)
    if context.region.trivial:
        return combined if context.region.plain else context.region.snap(combined)
    return np.array([context.region.nearest(x) for x in combined])


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
    seen = Seen.of(model, context)
    if not model.decomposition.disjoint:
        starts = seen.best(2)
        if direct is None:
            starts = np.vstack([starts, group_starts(model, context, seen)])
        return maximise_joint(model, acquisition, context, starts, direct=direct)
    if direct is not None:
        each, x = max(1, direct // len(model.groups)), np.empty(context.D)
        for j, group in enumerate(model.groups):

            def value(Z_j: Array, j: int = j) -> Array:
                mean, std = model.group_posterior(j, Z_j)
                return acquisition(mean, np.square(std))[0]

            x[list(group)], _ = optimize.direct(value, len(group), each, stop=context.deadline.passed)
        return context.region.snap(x)

    def values(Z: Array) -> Array:  # (M, m)
        moments = model.group_moments(Z)
        return acquisition(moments.mean, moments.variance)[0]

    def sum_and_gradient(Z: Array) -> tuple[Array, Array]:
        moments = model.group_moments(Z)
        a, by_mean, by_variance = acquisition(moments.mean, moments.variance)
        return a.sum(axis=0), moments.gradient(by_mean, by_variance)

    Z = np.vstack([context.uniform(_GROUP_CANDIDATES), seen.best(10)])
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
    finalists = np.vstack([context.region.snap(points), first])
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
    discrete = np.flatnonzero((context.space.levels > 1) & ~context.region.is_fixed)
    return [(int(i), context.space.places(int(i), _MOST_ALTERNATIVES)) for i in discrete]


def recommended(model: AdditiveGP, satisfied: Sequence[Satisfied], context: SuggestContext) -> tuple[Array, float]:
    """The point to use, (D,), and the probability that it is feasible.

    That is the feasible point seen with the best posterior mean, or a point whose mean is better still and that is
    feasible almost surely; where nothing is feasible yet, the most promising of all.
    """
    success = Feasibility.of(model, ~np.isfinite(context.y)) if model.n == len(context.y) else None
    chances: list[LogProbability] = [*satisfied, *([] if success is None else [success])]
    seen = Seen.of(model, context, satisfied)
    known = seen.X[seen.feasible]
    means = model.posterior(known)[0]
    worth = ucb(0.0) if len(known) else nothing
    box = trust_region(seen, context.space)
    u = maximise_joint(model, worth, context, seen.best(_STARTS), box=box, probabilities=chances)

    def probability(u: Array) -> float:
        return float(np.exp(sum(float(chance.value(u[None])[0]) for chance in chances)))

    if len(known) and (model.posterior(u[None])[0][0] <= means.max() or probability(u) < _SURE):
        u = known[np.argmax(means)]
    return u, probability(u)


def _combine(Z: Array, values: Array, groups: tuple[tuple[int, ...], ...], count: int) -> Array:
    """Points whose k-th row takes every group's coordinates from its k-th best candidate, (count, D)."""
    best = np.argsort(-values, axis=1, kind="stable")[:, :count]  # (M, count)
    combined = Z[best[0]].copy()
    for j, group in enumerate(groups):
        combined[:, list(group)] = Z[best[j]][:, list(group)]
    return combined
