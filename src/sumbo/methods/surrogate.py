"""The surrogate: the model that methods search with, learned now and then and updated in between.

The model is a function of (history, `ModelState`). The covariance is factorised at the number of observations at which
hyperparameters were learned, and grows by a row for every later one, so a model found in the cache and one rebuilt from
a saved state are the same to the last bit. Where standard deviations of values are known, it is factorised every time:
on the model's scale, which every new value changes, they are all new.

| symbol | shape  | meaning                                                     |
|--------|--------|-------------------------------------------------------------|
| X      | (n, D) | observations, failed ones among them at the worst value     |
| z      | (n,)   | their values on the model's scale                           |
| v      | (n,)   | variances of these that are known, where any are            |
"""

import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from sumbo._typing import Array
from sumbo.errors import StateError
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.decomposition import Decomposition
from sumbo.gp.fit import FitSettings, Hyperparameters
from sumbo.gp.kernels import FAMILIES
from sumbo.gp.outcome_transforms import OutcomeTransform
from sumbo.methods.base import Method, State, SuggestContext, check_choice, check_count
from sumbo.space import Space

_GROWTH = 1.3  # warping and freedom of lengthscales are considered again with so many times more values
_LONG_DECIDED = 1000  # observations beyond which they are not: one more fit would keep people waiting
_AT_ONCE = 500  # observations up to which warping is considered in one suggestion with learning; later, in the next
_TINY = 1e-5  # lengthscale with which the paper spreads its first points
_LEARNED = ("groups", "lengthscales", "scales", "noise_variance", "learned_at")  # of a state, by every fit
_HURRIED = 50  # observations in a model made in a hurry, at least
_HURRIED_SHARE = 0.4  # of the time left, for the model

# Given X, z, v, the present model, and randomness: the groups to use from now on.
ChooseGroups = Callable[[Array, Array, Array | None, AdditiveGP, np.random.Generator], Decomposition]
Due = Callable[[int, int], bool]  # given n and the n of the last time: again?


@dataclass(frozen=True, slots=True)
class SurrogateSettings:
    """When and how a model is learned.

    Attributes:
        kernel: family of the kernel.
        fit: what is fitted, with which priors.
        start: groups to begin with.
        choose: finds groups from data; None keeps those of the start.
        fit_due: when hyperparameters are learned again.
        decisive: take other groups only if the evidence for them is beyond luck, not as they are chosen.
        search_due: where decisive, when groups are searched for again; elsewhere that is done at every learning.
        full_order: add a term over all dimensions.
        free_fit: settings for lengthscales of their own, where the evidence, now and then, decides for them.
        warp: decide, now and then, whether the worse values are warped; see `OutcomeTransform` and `is_better`.
        explore_until: as long as there are fewer observations, use a tiny lengthscale instead of learning.
    """

    kernel: str
    fit: FitSettings
    start: Decomposition
    choose: ChooseGroups | None
    fit_due: Due
    decisive: bool = False
    search_due: Due = lambda n, searched_at: True
    full_order: bool = False
    free_fit: FitSettings | None = None
    warp: bool = False
    explore_until: int = 0


@dataclass(frozen=True, slots=True)
class ModelState:
    """What is kept of a model from one suggestion to the next. All of it is JSON.

    Attributes:
        groups, lengthscales, scales, noise_variance: the model without its data.
        learned_at: number of observations from which hyperparameters were learned.
        searched_at: the same for the last search for groups.
        warped, warp_considered_at: are the worse values warped, and when was that considered?
        free, free_considered_at: has each lengthscale a wide prior of its own, and when was that considered?
        candidate: groups found by the last search, which the next suggestion fits and judges.
        candidate_warped: on which scale they were found.
        searched_plain: did the last search see the values as they are?
    """

    groups: list[list[int]]
    lengthscales: list[float]
    scales: list[float]
    noise_variance: float
    learned_at: int
    searched_at: int = 0
    warped: bool = False
    warp_considered_at: int = 0
    free: bool = False
    free_considered_at: int = 0
    candidate: list[list[int]] | None = None
    candidate_warped: bool = False
    searched_plain: bool = False

    @classmethod
    def from_dict(cls, data: State, blank: AdditiveGP) -> "ModelState":
        """The state of a model of this kind, read back; a StateError if it was edited, or is of another space."""
        try:
            state = cls(**data)
            dims = [Decomposition(g).dim for g in (state.groups, state.candidate) if g is not None]
            if set(dims) != {blank.decomposition.dim} or state.model(blank).n != 0:
                raise ValueError("it is of another space")
            if min(state.learned_at, state.searched_at, state.warp_considered_at, state.free_considered_at) < 0:
                raise ValueError("a number of observations is negative")
        except (TypeError, ValueError) as error:
            advice = 'set each "method_state" to null, and it learns anew'
            raise StateError(f"the saved model cannot be read ({error!r}); {advice}") from None
        return state

    def model(self, blank: AdditiveGP) -> AdditiveGP:
        """The model, without data."""
        h = Hyperparameters(np.array(self.lengthscales), np.array(self.scales), float(self.noise_variance))
        return regrouped(blank, Decomposition(self.groups)).with_hyperparameters(h)


class SurrogateMethod(Method):
    """Abstract: a method with one model of all parameters."""

    @abstractmethod
    def surrogate(self, space: Space) -> SurrogateSettings:
        """How its model is learned."""

    def update(self, context: SuggestContext) -> tuple[AdditiveGP, State]:
        """The model of all observations, and the state to keep."""
        return update_surrogate(context, self.surrogate(context.space))

    def model(self, context: SuggestContext) -> AdditiveGP | None:
        return self.update(context)[0] if context.has_values else None


def check_settings(method: Any) -> None:
    """Raise a SettingError unless the settings that the paper's methods share make sense."""
    check_choice("maximiser", method.maximiser, ("gradient", "direct"))
    check_choice("kernel", method.kernel, FAMILIES)
    check_count("n_init", method.n_init)
    check_count("n_cyc", method.n_cyc)
    check_count("explore_until", method.explore_until, 0)
    if method.direct_evaluations is not None:
        check_count("direct_evaluations", method.direct_evaluations)


def update_surrogate(context: SuggestContext, settings: SurrogateSettings) -> tuple[AdditiveGP, State]:
    """The model of all observations, learned anew where that is due, and the state to keep."""
    model, state = _Update(context, settings).made()
    return model, {} if state is None else asdict(state)


class _Update:
    """One update. Each step of it returns the model and the state to keep."""

    def __init__(self, context: SuggestContext, settings: SurrogateSettings) -> None:
        self.context, self.settings, self.X, self.n = context, settings, context.X, len(context.y)
        categories, full_order = context.categories, settings.full_order
        self.blank = AdditiveGP(settings.start, kernel=settings.kernel, categories=categories, full_order=full_order)
        self.state = ModelState.from_dict(context.state, self.blank) if context.state else None
        self.known = None if self.state is None else self.state.model(self.blank)
        warped = self.state is not None and self.state.warped
        self.transform = OutcomeTransform.of(context.y, context.std, warped=warped)

    def made(self) -> tuple[AdditiveGP, ModelState | None]:
        state, settings, n = self.state, self.settings, self.n
        if n < settings.explore_until:
            tiny = replace(self.blank, lengthscales=_TINY, noise_variance=settings.fit.noise)
            return self._scaled(self._conditioned(tiny)), None
        if self._too_late():
            return self._scaled(self._hurried()), state
        if state is None or self.known is None:
            return self._learn()
        if settings.decisive and settings.choose is not None:
            # A search for groups in one suggestion, the fit of what it found in the next: nobody waits for both.
            if state.candidate is not None:
                return self._judge(state, self.known, state.candidate)
            if settings.search_due(n, state.searched_at):
                return self._search(state, settings.choose)
        if settings.fit_due(n, state.learned_at):
            return self._learn()
        if self._warp_due() and n > _AT_ONCE:
            return self._consider_warp(self._present(), state)
        if settings.free_fit is not None and _is_grown(n, state.free_considered_at):
            return self._consider_freedom(self._present(), state)
        return self._present(), state

    def _learn(self) -> tuple[AdditiveGP, ModelState]:
        """Learn hyperparameters, and groups where these are taken as they are chosen."""
        settings, known, groups = self.settings, self.known, None
        if settings.choose is not None and not settings.decisive:
            known = known or self._fitted(self.blank, self.state)
            groups = self._chosen(settings.choose, known, self.transform)
        if groups is not None and known is not None and groups != known.decomposition:
            model = self._fitted(regrouped(self.blank, groups), self.state)
        else:
            model = self._fitted(known or self.blank, self.state, warm=self.known is not None)
        state = self._kept(model, self.state)
        if self._warp_due() and self.n <= _AT_ONCE:
            return self._consider_warp(model, state)
        return model, state

    def _consider_warp(self, model: AdditiveGP, state: ModelState) -> tuple[AdditiveGP, ModelState]:
        """The model on the scale that it has or on the other one, whichever is better."""
        state = replace(state, warp_considered_at=self.n)
        transform = replace(self.transform, warped=not state.warped)
        other = self._fitted(model, state, transform, warm=True)
        if not is_better(other, model):
            return model, state
        return other, replace(self._kept(other, state), warped=transform.warped)

    def _consider_freedom(self, model: AdditiveGP, state: ModelState) -> tuple[AdditiveGP, ModelState]:
        """The model with lengthscales shrunk to a common one, or free where the evidence pays for it.

        Free parameters raise the evidence by half a nat each on average when they are good for nothing (Wilks), and
        are worth having from one nat each on (Akaike).
        """
        state = replace(state, free_considered_at=self.n)
        other_state = replace(state, free=not state.free)
        other = self._fitted(model, other_state, warm=True)
        gain = other.log_marginal_likelihood() - model.log_marginal_likelihood()
        charge = float(len(model.lengthscales))
        if gain > (-charge if state.free else charge):
            return other, self._kept(other, other_state)
        return model, state

    def _search(self, state: ModelState, choose: ChooseGroups) -> tuple[AdditiveGP, ModelState]:
        """The present model, and in the state other groups that may be better.

        A warped sum is no sum any more: with warped values, every other search looks at them as they are.
        """
        present, warped = self._present(), state.warped and state.searched_plain
        groups = self._chosen(choose, present, replace(self.transform, warped=warped))
        state = replace(state, searched_at=self.n, searched_plain=not warped)
        if groups == present.decomposition:
            return present, state
        return present, replace(state, candidate=list(map(list, groups.groups)), candidate_warped=warped)

    def _judge(self, state: ModelState, known: AdditiveGP, candidate: list[list[int]]) -> tuple[AdditiveGP, ModelState]:
        """The present model or one with the candidate's groups and scale, whichever is better."""
        present, groups = self._present(), Decomposition(candidate)
        transform = replace(self.transform, warped=state.candidate_warped)
        state = replace(state, candidate=None, candidate_warped=False)
        other = regrouped(known, groups).with_hyperparameters(_carried_over(known, groups))
        other = self._fitted(other, state, transform, warm=True)
        if is_better(other, present):
            return other, replace(self._kept(other, state), warped=transform.warped)
        return present, state

    def _scaled(self, model: AdditiveGP, transform: OutcomeTransform | None = None) -> AdditiveGP:
        return replace(model, outcome_transform=transform or self.transform)

    def _chosen(self, choose: ChooseGroups, model: AdditiveGP, transform: OutcomeTransform) -> Decomposition:
        return choose(self.X, transform.z, transform.known_variance, model, self.context.rng)

    def _fitted(
        self,
        model: AdditiveGP,
        state: ModelState | None,
        transform: OutcomeTransform | None = None,
        *,
        warm: bool = False,
    ) -> AdditiveGP:
        """The model with hyperparameters learned from all values, as freely as the state says."""
        free = self.settings.free_fit if state is not None and state.free else None
        fit, scale = free or self.settings.fit, transform or self.transform
        return self._scaled(
            model.fit(self.X, scale.z, settings=fit, warm=warm, known_variance=scale.known_variance), scale
        )

    def _conditioned(self, model: AdditiveGP, some: Any = slice(None)) -> AdditiveGP:
        """The model with some of the observations."""
        z, v = self.transform.z, self.transform.known_variance
        return model.condition(self.X[some], z[some], known_variance=None if v is None else v[some])

    def _warp_due(self) -> bool:
        return self.settings.warp and _is_grown(self.n, 0 if self.state is None else self.state.warp_considered_at)

    def _kept(self, model: AdditiveGP, state: ModelState | None) -> ModelState:
        """The state with this model, learned now."""
        h, groups = model.hyperparameters, list(map(list, model.decomposition.groups))
        learned = ModelState(groups, h.lengthscales.tolist(), h.scales.tolist(), h.noise_variance, self.n)
        return learned if state is None else replace(state, **{name: getattr(learned, name) for name in _LEARNED})

    def _present(self) -> AdditiveGP:
        """The known model with all observations."""
        assert self.state is not None
        assert self.known is not None
        return self._scaled(self._up_to_date(self.known, self.state.learned_at))

    def _too_late(self) -> bool:
        """Would learning miss the deadline? Some fifty evidence evaluations at a few billion operations a second."""
        return self.context.deadline.left < 50 * (self.n**3 + 20 * self.n**2 * self.context.D) / 5e9 + 2e-3

    def _hurried(self) -> AdditiveGP:
        """The best model that can be had before the deadline: nothing is learned, perhaps not all points are used."""
        known, deadline = self.known, self.context.deadline
        if known is None or self.state is None or self.state.learned_at > self.n:
            sizes = np.array([len(group) for group in self.blank.groups])
            lengthscales, scales = 0.5 * np.sqrt(np.repeat(sizes, sizes)), np.sqrt(sizes / sizes.sum())
            known = self.blank.with_hyperparameters(Hyperparameters(lengthscales, scales, 1e-3))
        # The best points are those worth knowing well. How many can be had in time only a smaller model tells.
        best, until = np.argsort(-self.transform.z, kind="stable"), (1.0 - _HURRIED_SHARE) * deadline.left
        size = _HURRIED
        while size < self.n:
            began = time.monotonic()
            model = self._conditioned(known, np.sort(best[:size]))
            model.posterior(model.X[:1])  # what all predictions share
            size *= 2
            if deadline.left - 8.0 * (time.monotonic() - began) < until:  # O(n^3)
                return model
        cached = self._cached(known, 0)
        slow = cached is None or self.n - cached.n >= _HURRIED
        return self._conditioned(known) if slow else self._up_to_date(known, 0)

    def _up_to_date(self, known: AdditiveGP, learned_at: int) -> AdditiveGP:
        """`known` with all observations: factorised at `learned_at`, then row by row, from the cache where it fits."""
        X, z = self.X, self.transform.z
        at_once = learned_at if self.transform.known_variance is None else self.n
        model = self._cached(known, at_once) or self._conditioned(known, slice(at_once))
        for i in range(model.n, self.n):
            model = model.append(X[i], z[i])
        return model.with_values(z) if self.n else model

    def _cached(self, known: AdditiveGP, learned_at: int) -> AdditiveGP | None:
        """The model in the cache, if it is `known` with the first observations."""
        cache = self.context.cache
        if cache is None or not learned_at <= cache.n <= self.n or cache.decomposition != known.decomposition:
            return None
        names = ("lengthscales", "scales", "noise_variance")
        pairs: list[Any] = [(getattr(cache, name), getattr(known, name)) for name in names]
        pairs += [(cache.X, self.X[: cache.n]), (cache.known_variance, self.transform.known_variance)]
        return cache if all(np.array_equal(a, b) for a, b in pairs) else None


def _is_grown(n: int, considered_at: int) -> bool:
    """Are there enough more values to consider a choice again?"""
    return _GROWTH * considered_at <= n <= _LONG_DECIDED


def is_better(other: AdditiveGP, present: AdditiveGP) -> bool:
    """Is the other model better than the present one? Each may have its own scale.

    For the evidence, the worse half of the values counts as much as the better one. So values are warped only as long
    as the better half, which is the same on both scales, is predicted better that way as well.
    """
    speaks_for_it, warped = worth(other) > worth(present), other.outcome_transform.warped
    if warped == present.outcome_transform.warped or other.n > _LONG_DECIDED:
        return speaks_for_it
    error, present_error = (m.outcome_transform.error_above_median(m.leave_one_out()[0]) for m in (other, present))
    predicts_better = error < present_error
    return speaks_for_it and predicts_better if warped else speaks_for_it or predicts_better


def worth(model: AdditiveGP) -> float:
    """Evidence, on a scale that all models share, less log D for every dimension that joins another.

    Of the many ways to join dimensions, some explain a few values well by luck: groups are taken when the evidence is
    beyond that. Until then the full-order term, where there is one, does what they would do.
    """
    joined = sum(len(group) - 1 for group in model.decomposition.groups)
    charge = joined * float(np.log(model.decomposition.dim))
    return model.log_marginal_likelihood() - charge + model.outcome_transform.log_slope


def regrouped(model: AdditiveGP, groups: Decomposition) -> AdditiveGP:
    """A model of the same kind over other groups, with default hyperparameters and no data."""
    return AdditiveGP(groups, kernel=model.kernel, categories=model.categories, full_order=model.full_order)


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


def learned_every(cycle: int) -> Due:
    """Learn again once `cycle` more observations have come."""
    return lambda n, learned_at: n - learned_at >= cycle


def learned_geometrically(share: float, least: int = 1) -> Due:
    """Learn again once the data have grown by a share: often at first, rarely when it costs much and brings little."""
    return lambda n, learned_at: n - learned_at >= max(least, int(share * learned_at))
