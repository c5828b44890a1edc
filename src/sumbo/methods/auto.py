"""The default method: no settings needed.

The model is a sum of functions of groups of parameters, each parameter alone at first, and one function of all of them.
How much each term counts is learned, and which parameters belong together is searched for as the data grow: as long as
they cannot tell, the function of all parameters and the single ones carry the search.

Each constraint that is told with the values has such a model of its own.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from sumbo import structure
from sumbo._typing import Array
from sumbo.acquisition.functions import Feasibility, LogProbability, Satisfied, log_expected_improvement, nothing, ucb
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.decomposition import Decomposition
from sumbo.gp.fit import FitSettings
from sumbo.gp.solvers import chosen
from sumbo.methods.base import State, SuggestContext, Suggestion, check_count
from sumbo.methods.candidates import (
    Seen,
    best_seen,
    group_starts,
    loo_calibration,
    maximise_draw,
    maximise_joint,
    trust_region,
)
from sumbo.methods.surrogate import SurrogateMethod, SurrogateSettings, learned_geometrically, update_surrogate
from sumbo.space import Space
from sumbo.structure.group_constraints import GroupConstraints, Named, freeze

_INSET = 0.6  # share of each range, around its middle, that the first points fill
_INSIDE = 10  # so many of them; where more are wanted, or these all failed, the others fill the whole cube

# Most objectives have no noise, and what is taken for noise hides the last steps to the optimum; others have much.
_FIT = FitSettings(noise=1e-6, noise_sd=3.0, noise_bounds=(1e-12, 1.0))
_FREE_FIT = replace(_FIT, deviation_sd=1.0)

_AWAY = 3  # one point in so many is looked for in the whole cube
_AWAY_FROM_OTHERS = 6  # the same while others run: these are spread already

_SPREAD = 256  # points of a constrained region among which the first ones are chosen
_CERTAIN = 30.0  # standard deviations of a constraint's values
_FIRST_MODEL = 4  # evaluations that are waited for while others run; a model of one or two leads them astray

_SCARCE = 2.5  # values for each parameter; with fewer, no more is explored than predictions near the best call for

_NOISY = 0.05  # share of noise in the variance of values from which on it blurs where the best is

_LAST = 0.05  # share of a known budget, at its end, in which there is nothing left to explore for

_FIRST_SEARCH = 30  # observations with which groups are looked for the first time
_SEARCH_POINTS = 250  # observations that such a search looks at, at most: it must not keep anyone waiting
_SEARCH_WORK = 40_000  # its evidence evaluations, times observations
_FULL_WORK = 200  # observations up to which it may take all of these; with more, each evaluation costs more too


@dataclass(frozen=True)
class Auto(SurrogateMethod):
    """Expected improvement with groups that are learned.

    Attributes:
        n_init: how many space-filling points come first.
        max_group_size: no group of parameters that is learned grows beyond this.
        groups: known groups, by parameter name or dimension number; parameters in none of them stand alone, and no
            groups are learned.
        together: sets of parameters that share a group, from the first model on.
        apart: sets of parameters of which no two share a group.

    Example:
        >>> sumbo.Optimizer([(0, 1)] * 4, sumbo.Auto(together=[("x0", "x1")]), seed=0).ask().number
        0
    """

    n_init: int = 7
    max_group_size: int = 6
    groups: Named | None = None
    together: Named = ()
    apart: Named = ()

    name: ClassVar[str] = "auto"
    models_constraints: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count("n_init", self.n_init)
        check_count("max_group_size", self.max_group_size)
        freeze(self)

    def group_constraints(self, space: Space) -> GroupConstraints:
        return GroupConstraints.of(space, self.groups, self.together, self.apart, max_group_size=self.max_group_size)

    def suggest(self, context: SuggestContext) -> Suggestion:
        among_others = len(context.pending) > 0
        too_early = among_others and len(context.y) < _FIRST_MODEL
        if context.taken < self.n_init or not context.has_values or too_early:
            return Suggestion(space_filling(context, _INSET if context.taken < _INSIDE else 1.0), context.state)
        model, state = self.update(context)
        gp = model.hallucinate(context.pending)
        satisfied, state = self._constraints(context, state)
        seen = Seen.of(model, context, satisfied)
        starts = np.vstack([seen.best(2), group_starts(model, context, seen)])
        # Two points of three are looked for near the best ones; the rest keep the search from being locked in there.
        away = _AWAY_FROM_OTHERS if among_others else _AWAY
        # What known constraints leave is small already, and may have arms that are far from each other.
        local = context.region.trivial and context.number % away != 0
        box = trust_region(seen, context.space) if local else None
        # A model made in a hurry knows the best points only, not all those that failed.
        success = Feasibility.of(model, ~np.isfinite(context.y)) if model.n == len(context.y) else None
        chances: list[LogProbability] = [*satisfied, *([] if success is None else [success])]
        best = best_seen(gp, Seen.of(gp, context) if context.region.open and not satisfied else seen, context.deadline)
        if best == -np.inf:  # first of all, something feasible
            return Suggestion(
                maximise_joint(gp, nothing, context, starts, box=box, probabilities=chances), state, model
            )
        if context.budget is not None and context.number >= (1.0 - _LAST) * context.budget:
            # With failures, an even chance to succeed costs 0.7 standard deviations of the values.
            near = trust_region(seen, context.space)
            x_t = maximise_joint(gp, ucb(0.0), context, starts, box=near, probabilities=chances)
            if gp.posterior(x_t[None])[0][0] > best:
                return Suggestion(x_t, state, model)
        if box is not None and not chances and _noise(model) > _NOISY:
            # Noise blurs where the best is. Draws of the model go to all places where it may be, and tell them apart;
            # the expected improvement goes back to one place until it is sure of the value there.
            path = gp.sample_path(context.rng, features=512)
            return Suggestion(maximise_draw(path, context, starts, box), state, model)
        # While others run, the model's own deviations keep points apart.
        calibrated = model.n < _SCARCE * context.D and not among_others
        improvement = log_expected_improvement(best, loo_calibration(model, seen) if calibrated else 1.0)
        x_t = maximise_joint(gp, improvement, context, starts, box=box, probabilities=chances)
        return Suggestion(x_t, state, model)

    def update(self, context: SuggestContext) -> tuple[AdditiveGP, State]:
        own = {key: value for key, value in context.state.items() if key != "constraints"}
        return update_surrogate(replace(context, state=own), self.surrogate(context.space))

    def constraint_models(self, context: SuggestContext) -> list[Satisfied]:
        return self._constraints(context, {})[0]

    def _constraints(self, context: SuggestContext, state: State) -> tuple[list[Satisfied], State]:
        """What is known of each constraint that is told with the values, and the state with what to keep of it."""
        if context.constraints is None or not context.has_values:
            return [], state
        told = np.isfinite(context.constraints).all(axis=1)
        known: list[Any] = context.state.get("constraints", [])
        found, kept = list[Satisfied](), list[State]()
        settings = self.surrogate(context.space)
        for k, amounts in enumerate(context.constraints[told].T):
            own = {} if len(known) <= k else known[k]
            part = replace(context, X=context.X[told], y=-amounts, std=None, constraints=None, state=own, cache=None)
            model, model_state = update_surrogate(part, settings)
            # Of a constraint that never changed it is certain, as far as one knows, on which side it is.
            limit = float(np.clip(model.outcome_transform.transform(0.0), -_CERTAIN, _CERTAIN))
            found.append(Satisfied(model, limit))
            kept.append(model_state)
        return found, state | {"constraints": kept}

    def surrogate(self, space: Space) -> SurrogateSettings:
        known = self.group_constraints(space)
        fixed = known.groups is not None or self.max_group_size == 1
        return SurrogateSettings(
            "matern52",
            _FIT,
            known.start,
            None if fixed else partial(_searched, known),
            fit_due=learned_geometrically(0.05, 2),
            search_due=lambda n, searched_at: n >= max(_FIRST_SEARCH, 1.3 * searched_at),
            decisive=True,
            full_order=space.dim > 1,
            free_fit=_FREE_FIT,
            warp=True,
        )


def _noise(model: AdditiveGP) -> float:
    """The variance of a typical value's noise, on the model's scale."""
    known = model.known_variance
    return model.noise_variance + (0.0 if known is None else float(np.median(known)))


def _searched(
    known: GroupConstraints, X: Array, y: Array, v: Array | None, model: AdditiveGP, rng: np.random.Generator
) -> Decomposition:
    some = chosen(y, min(_SEARCH_POINTS, len(y)))
    return structure.search(
        X[some],
        y[some],
        model,
        rng,
        max_group_size=known.max_group_size,
        evaluations=int(_SEARCH_WORK / len(some) * min(1.0, _FULL_WORK / len(some))),
        together=known.together,
        apart=known.apart,
        known_variance=None if v is None else v[some],
    )


def space_filling(context: SuggestContext, share: float) -> Array:
    """The next point of a scrambled Sobol sequence, which is the study's own, in the inner share of each range.

    Few points in many dimensions say most about the whole when they stay clear of its faces: nearly all of a uniform
    sample is close to some of them, where values are extreme and far from each other. The search goes to the faces by
    itself where the model points there. The very first point is the middle: ranges are often drawn around what is known
    to work, and nowhere else may anything work at all. Categories have no middle and are drawn from all.
    """
    if not context.region.trivial:
        return _apart(context)
    from scipy.stats import qmc  # half a second to import, and used for the first few points only

    sequence = qmc.Sobol(context.D, scramble=True, rng=context.study_rng)
    if context.number:  # SciPy does not take 0
        sequence.fast_forward(context.number)
    point = sequence.random(1)[0]
    share = share if context.taken else 0.0
    return context.region.snap(np.where(context.space.nominal, point, 0.5 + share * (point - 0.5)))


def _apart(context: SuggestContext) -> Array:
    """Of random points of a constrained region the one farthest from all taken; the first is in its middle."""
    Z = context.uniform(_SPREAD)
    taken = np.vstack([context.X, context.pending])
    if not len(taken):
        return context.region.nearest(np.where(context.space.nominal, Z[0], Z.mean(axis=0)))
    return Z[np.argmax(np.square(Z[:, None] - taken).sum(axis=2).min(axis=1))]
