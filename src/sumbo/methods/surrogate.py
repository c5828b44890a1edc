"""How methods get their model: standardise, learn now and then, update in between.

The model is a function of (history, state), where the state holds hyperparameters, groups and the number of
observations at which they were learned. The covariance is factorised at that number and grows by a row for every later
one, so a model found in the cache and one rebuilt from a saved state are the same to the last bit.

| symbol | shape  | meaning                                                     |
|--------|--------|-------------------------------------------------------------|
| X, y   | (n, D), (n,) | observations, failed ones among them at the worst value |
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sumbo._typing import Array
from sumbo.errors import StateError
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.decomposition import Decomposition
from sumbo.gp.fit import FitSettings, Hyperparameters
from sumbo.gp.outcome_transforms import OutcomeTransform, observed_values
from sumbo.methods.base import Deadline, State, SuggestContext

_GROWTH = 1.3  # the scale of values and freedom of lengthscales are considered again with so many times more values
_LONG_DECIDED = 1000  # observations beyond which they are not: one more fit would keep people waiting
_AT_ONCE = 500  # observations up to which the scale is considered in one suggestion with learning; later, in the next
_PROMISING = 500  # observations, by value, among which the best posterior mean is looked for
_NEVER = Deadline()
_HURRIED = 50  # observations in a model made in a hurry, at least
_HURRIED_SHARE = 0.4  # of the time left, for the model

# Given points, standardised values, the present model, and randomness: the groups to use from now on.
ChooseGroups = Callable[[Array, Array, AdditiveGP, np.random.Generator], Decomposition]


@dataclass(frozen=True, slots=True)
class SurrogateSettings:
    """When and how a model is learned.

    Attributes:
        kernel: family of the kernel.
        settings: what is fitted, with which priors.
        start: groups to begin with.
        choose: finds groups from data; None keeps those of the start.
        due: learn hyperparameters again? given n and the n of the last time.
        decisive: take other groups only if the evidence for them is beyond luck, not as they are chosen.
        choose_due: where decisive, look for groups again? likewise; elsewhere that is done at every learning.
        full_order: add a term over all dimensions.
        freer: settings for lengthscales of their own, where the evidence, now and then, decides for them.
        compress: decide, now and then, whether bad values are compressed; see `OutcomeTransform` and `is_better`.
        explore_until: as long as there are fewer observations, use this tiny lengthscale instead of learning.
    """

    kernel: str
    settings: FitSettings
    start: Decomposition
    choose: ChooseGroups | None
    due: Callable[[int, int], bool]
    decisive: bool = False
    choose_due: Callable[[int, int], bool] = lambda n, chosen_at: True
    full_order: bool = False
    freer: FitSettings | None = None
    compress: bool = False
    explore_until: int = 0
    explore_lengthscale: float = 1e-5


def update_surrogate(query: SuggestContext, learning: SurrogateSettings) -> tuple[AdditiveGP, State]:
    """The model of all observations, learned anew where that is due, and the state to keep."""
    X, scales, state = query.X, OutcomeTransform(observed_values(query.y)), query.state
    y, _ = scales.on(_is_compressed(state))
    n = len(y)
    rescale = learning.compress and _is_grown(n, state.get("scaled_at", 0))
    free = learning.freer is not None and _is_grown(n, state.get("freed_at", 0))
    blank = AdditiveGP(
        learning.start, kernel=learning.kernel, categories=query.categories, full_order=learning.full_order
    )
    if n < learning.explore_until:
        model = replace(blank, lengthscales=learning.explore_lengthscale, noise_variance=learning.settings.noise)
        return model.condition(X, y), {}
    known = _read_model(state, blank)
    if _too_late(query, n):
        return _hurried_model(query, known, blank, X, y), state
    if known is not None and learning.decisive and learning.choose is not None:
        # A search for groups in one suggestion, the fit of what it found in the next: nobody waits for both.
        if "candidate" in state:
            return _decided(scales, known, learning, query)
        if learning.choose_due(n, state["chosen_at"]):
            return _searched(scales, known, learning.choose, query)
    if known is None or learning.due(n, state["learned_at"]):
        learned = _learn(X, y, known, blank, replace(learning, settings=_settings(learning, state)), query.rng)
        fresh = state | _write_model(learned, n, state.get("chosen_at", 0))
        return _rescaled(X, scales, learned, fresh, learning) if rescale and n <= _AT_ONCE else (learned, fresh)
    present = _up_to_date(known, X, y, state["learned_at"], query.cache)
    if rescale and n > _AT_ONCE:
        return _rescaled(X, scales, present, state, learning)
    return _freed(X, y, present, state, learning) if free else (present, state)


def _is_grown(n: int, considered_at: int) -> bool:
    """Are there enough more values to consider a choice again?"""
    return _GROWTH * considered_at <= n <= _LONG_DECIDED


def _settings(learning: SurrogateSettings, state: State) -> FitSettings:
    return learning.freer if learning.freer is not None and state.get("free", False) else learning.settings


def _freed(
    X: Array, y: Array, model: AdditiveGP, state: State, learning: SurrogateSettings
) -> tuple[AdditiveGP, State]:
    """The model with lengthscales shrunk to a common one, or with ones of their own where the evidence pays for them.

    Free parameters raise the evidence by half a nat each on average when they are good for nothing (Wilks), and are
    worth having from one nat each on (Akaike).
    """
    now = bool(state.get("free", False))
    state = state | {"freed_at": len(y)}
    other_state = state | {"free": not now}
    other = model.fit(X, y, settings=_settings(learning, other_state), warm=True)
    gain = other.log_marginal_likelihood() - model.log_marginal_likelihood()
    charge = float(len(model.lengthscales))
    if gain > (-charge if now else charge):
        return other, other_state | _write_model(other, len(y), state["chosen_at"])
    return model, state


def _is_compressed(state: State) -> bool:
    return bool(state.get("compressed", False))


def _rescaled(
    X: Array, scales: OutcomeTransform, model: AdditiveGP, state: State, learning: SurrogateSettings
) -> tuple[AdditiveGP, State]:
    """The model on the scale that it has or on the other one, whichever is better."""
    now = _is_compressed(state)
    y, _ = scales.on(not now)
    state = state | {"scaled_at": len(y)}
    other = model.fit(X, y, settings=_settings(learning, state), warm=True)
    if not is_better(other, not now, model, now, scales):
        return model, state
    return other, state | _write_model(other, len(y), state["chosen_at"]) | {"compressed": not now}


def _searched(
    scales: OutcomeTransform, known: AdditiveGP, choose: ChooseGroups, query: SuggestContext
) -> tuple[AdditiveGP, State]:
    """The present model, and in the state other groups that may be better.

    A compressed sum is no sum any more: with compressed values, every other search looks at them as they are.
    """
    state, now = query.state, _is_compressed(query.state)
    present = _up_to_date(known, query.X, scales.on(now)[0], state["learned_at"], query.cache)
    scale = now and bool(state.get("looked_at_plain", False))
    groups = choose(query.X, scales.on(scale)[0], present, query.rng)
    state = state | {"chosen_at": len(query.X), "looked_at_plain": not scale}
    if groups == present.decomposition:
        return present, state
    return present, state | {"candidate": [list(group) for group in groups.groups], "candidate_compressed": scale}


def _decided(
    scales: OutcomeTransform, known: AdditiveGP, learning: SurrogateSettings, query: SuggestContext
) -> tuple[AdditiveGP, State]:
    """The present model or one with the candidate's groups and scale, whichever is better."""
    state = {name: value for name, value in query.state.items() if not name.startswith("candidate")}
    now, then = _is_compressed(state), bool(query.state.get("candidate_compressed", False))
    (y, _), (other_y, _) = scales.on(now), scales.on(then)
    present = _up_to_date(known, query.X, y, state["learned_at"], query.cache)
    groups = Decomposition(query.state["candidate"])
    other = regrouped(known, groups).with_hyperparameters(_carried_over(known, groups))
    other = other.fit(query.X, other_y, settings=_settings(learning, state), warm=True)
    if is_better(other, then, present, now, scales):
        return other, state | _write_model(other, len(y), state["chosen_at"]) | {"compressed": then}
    return present, state


def is_better(other: AdditiveGP, then: bool, present: AdditiveGP, now: bool, scales: OutcomeTransform) -> bool:
    """Is the other model better than the present one? Each is on the scale, compressed or not, of its own.

    For the evidence, the worse half of the values counts as much as the better one. So values are compressed only as
    long as the better half, which is the same on both scales, is predicted better that way as well.
    """
    speaks_for_it = has_more_evidence(other, then, present, now, scales)
    if then == now or len(scales.plain) > _LONG_DECIDED:
        return speaks_for_it
    error, present_error = (
        scales.error_above(model.leave_one_out()[0], scale) for model, scale in ((other, then), (present, now))
    )
    predicts_better = error < present_error
    return speaks_for_it and predicts_better if then else speaks_for_it or predicts_better


def has_more_evidence(other: AdditiveGP, then: bool, present: AdditiveGP, now: bool, scales: OutcomeTransform) -> bool:
    """Does the evidence speak for the other model, beyond what luck and compressing are charged for?"""
    return _worth(other) + scales.on(then)[1] > _worth(present) + scales.on(now)[1]


def best_seen(model: AdditiveGP, deadline: Deadline = _NEVER) -> float:
    """The best posterior mean at a point seen. The mean, not the value: a lucky draw of the noise is no improvement."""
    promising = np.argsort(-model.y, kind="stable")[:_PROMISING]
    return float(deadline.evaluated(lambda Z: model.posterior(Z)[0], model.X[promising], 0.1).max())


def with_pending(model: AdditiveGP, query: SuggestContext) -> AdditiveGP:
    """The model with running points hallucinated."""
    return model.hallucinate(query.pending) if len(query.pending) else model


def _learn(
    X: Array,
    y: Array,
    known: AdditiveGP | None,
    blank: AdditiveGP,
    learning: SurrogateSettings,
    rng: np.random.Generator,
) -> AdditiveGP:
    if learning.choose is None or learning.decisive:
        return (known or blank).fit(X, y, settings=learning.settings, warm=known is not None)
    model = known or blank.fit(X, y, settings=learning.settings)
    groups = learning.choose(X, y, model, rng)
    if groups != model.decomposition:
        return regrouped(blank, groups).fit(X, y, settings=learning.settings)
    return model.fit(X, y, settings=learning.settings, warm=known is not None)


def _carried_over(model: AdditiveGP, groups: Decomposition) -> Hyperparameters:
    """Hyperparameters for other groups that say the same of each dimension, to start a fit from."""
    lengthscale, variance = np.empty(groups.dim), np.empty(groups.dim)  # per dimension, as if it were alone
    parts = np.split(model.lengthscales, model.terms.offsets[1:-1])
    for group, lengthscales, scale in zip(model.decomposition.groups, parts, model.scales, strict=False):
        lengthscale[list(group)] = lengthscales / np.sqrt(len(group))
        variance[list(group)] = scale**2 / len(group)
    of_groups = [lengthscale[list(g)] * np.sqrt(len(g)) for g in groups.groups]
    scales = [np.sqrt(variance[list(g)].sum()) for g in groups.groups]
    if model.full_order:
        of_groups.append(parts[-1])
        scales.append(model.scales[-1])
    return Hyperparameters(np.concatenate(of_groups), np.array(scales), model.noise_variance)


def _worth(model: AdditiveGP) -> float:
    """Evidence less log D for every dimension that joins another.

    Of the many ways to join dimensions, some explain a few values well by luck: groups are taken when the evidence is
    beyond that. Until then the full-order term, where there is one, does what they would do.
    """
    joined = sum(len(group) - 1 for group in model.decomposition.groups)
    return model.log_marginal_likelihood() - joined * float(np.log(model.decomposition.dim))


def _up_to_date(known: AdditiveGP, X: Array, y: Array, learned_at: int, cache: AdditiveGP | None) -> AdditiveGP:
    """`known` with all observations: factorised at `learned_at`, then row by row, from the cache where it fits."""
    model = cache
    if model is None or not _is_prefix(model, known, X, learned_at):
        model = known.condition(X[:learned_at], y[:learned_at])
    for i in range(model.n, len(y)):
        model = model.append(X[i], y[i])
    return model.with_values(y) if len(y) else model


def _is_prefix(cache: AdditiveGP, known: AdditiveGP, X: Array, learned_at: int) -> bool:
    same = cache.decomposition == known.decomposition and cache.noise_variance == known.noise_variance
    return (
        same
        and learned_at <= cache.n <= len(X)
        and np.array_equal(cache.lengthscales, known.lengthscales)
        and np.array_equal(cache.scales, known.scales)
        and np.array_equal(cache.X, X[: cache.n])
    )


def _write_model(model: AdditiveGP, n: int, chosen_at: int) -> State:
    return {
        "learned_at": n,
        "chosen_at": chosen_at,
        "groups": [list(group) for group in model.decomposition.groups],
        "lengthscales": model.lengthscales.tolist(),
        "scales": model.scales.tolist(),
        "noise_variance": model.noise_variance,
    }


def _read_model(state: State, blank: AdditiveGP) -> AdditiveGP | None:
    if "groups" not in state:
        return None
    try:
        h = Hyperparameters(np.array(state["lengthscales"]), np.array(state["scales"]), float(state["noise_variance"]))
        known = regrouped(blank, Decomposition(state["groups"])).with_hyperparameters(h)
        if known.decomposition.dim != blank.decomposition.dim or state["learned_at"] < 0 or state["chosen_at"] < 0:
            raise ValueError("it is of another space")
    except (KeyError, TypeError, ValueError) as error:
        raise StateError(
            f'the saved model cannot be read ({error!r}); set the state\'s "state" to {{}} to learn it anew'
        ) from None
    return known


def regrouped(model: AdditiveGP, groups: Decomposition) -> AdditiveGP:
    """A model of the same kind over other groups, with default hyperparameters and no data."""
    return AdditiveGP(groups, kernel=model.kernel, categories=model.categories, full_order=model.full_order)


def _too_late(query: SuggestContext, n: int) -> bool:
    """Would learning miss the deadline? Some fifty evidence evaluations at a few billion operations a second."""
    return query.deadline.left < 50 * (n**3 + 20 * n**2 * query.D) / 5e9 + 2e-3


def _hurried_model(
    query: SuggestContext, known: AdditiveGP | None, blank: AdditiveGP, X: Array, y: Array
) -> AdditiveGP:
    """The best model that can be had before the deadline: nothing is learned, and perhaps not all points are used."""
    if known is None or query.state["learned_at"] > len(y):
        sizes = np.array([len(group) for group in blank.groups])
        lengthscales, scales = 0.5 * np.sqrt(np.repeat(sizes, sizes)), np.sqrt(sizes / sizes.sum())
        known = blank.with_hyperparameters(Hyperparameters(lengthscales, scales, 1e-3))
    # The best points are those worth knowing well. How many can be had in time only a smaller model tells.
    best, until = np.argsort(-y, kind="stable"), (1.0 - _HURRIED_SHARE) * query.deadline.left
    size = _HURRIED
    while size < len(y):
        began = time.monotonic()
        some = np.sort(best[:size])
        model = known.condition(X[some], y[some])
        model.posterior(model.X[:1])  # what all predictions share
        size *= 2
        if query.deadline.left - 8.0 * (time.monotonic() - began) < until:  # O(n^3)
            return model
    cache = query.cache
    if cache is not None and len(y) - cache.n < _HURRIED and _is_prefix(cache, known, X, 0):
        return _up_to_date(known, X, y, 0, cache)
    return known.condition(X, y)


def learned_every(cycle: int) -> Callable[[int, int], bool]:
    """Learn again once `cycle` more observations have come."""
    return lambda n, learned_at: n - learned_at >= cycle


def learned_geometrically(share: float, least: int = 1) -> Callable[[int, int], bool]:
    """Learn again once the data have grown by a share: often at first, rarely when it costs much and brings little."""
    return lambda n, learned_at: n - learned_at >= max(least, int(share * learned_at))
