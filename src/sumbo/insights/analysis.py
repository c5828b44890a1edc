"""A study as a report sees it: its trials, and on demand what a model makes of them. Knows nothing of pages.

Everything learned is computed when it is first asked for and kept. Costs are bounded; what the bounds leave out is said
where it is shown.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sumbo._redaction import safe
from sumbo._typing import Array
from sumbo.acquisition.functions import Satisfied
from sumbo.errors import NotFittedError, SettingError
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.solvers import Exact, chosen
from sumbo.gp.threads import on_one_thread, one_thread
from sumbo.insights import tables
from sumbo.insights.constraints import ConstraintRow, binding
from sumbo.insights.effects import Effect, EffectWithin, Pool, background
from sumbo.insights.tables import Importances, Interactions
from sumbo.methods import Method, SuggestContext, randomness, resolve
from sumbo.methods.candidates import recommended
from sumbo.regret import Direction
from sumbo.space import Linear, Space
from sumbo.space.constraints import OutcomeConstraint
from sumbo.space.region import Region
from sumbo.study.ledger import State
from sumbo.study.optimizer import Optimizer, Recommendation, Trial
from sumbo.study.run import Result
from sumbo.study.stored import StoredStudy

_LEAST = 10  # values; with fewer there is nothing to explain
_NAMED = 4  # parameters in the name of a study that has no name
_STEPS = 8  # times at which hyperparameters are learned again
_STEP_POINTS = 500  # observations at the last of them, at most
_AT_ONCE = 500  # values from which a model is learned afterwards
_MOST = 1000  # observations that stand for all where the model is not exact
_NO_NOISE = 1e-3  # of the spread of values; with less noise than that there is none
_SETTLING = 4  # suggestions after which a study of another optimiser has had its groups looked for


@dataclass(frozen=True)
class LeftOut:
    """Predictions of some values from all others, hyperparameters and groups kept (R&W, equation 5.12).

    Attributes:
        index: which observations of the model.
        y, mean, std: the value, and its prediction with noise, on the model's scale.
    """

    index: NDArray[np.int64]
    y: Array
    mean: Array
    std: Array

    @property
    def errors(self) -> Array:
        """How many standard deviations each value is off."""
        return (self.y - self.mean) / self.std

    @property
    def explained(self) -> float:
        """The share of the variance of values that is predicted, R^2; 0 where there is none."""
        return max(1.0 - float(np.mean((self.y - self.mean) ** 2)) / max(float(np.var(self.y)), 1e-300), 0.0)

    def coverage(self, levels: Array) -> Array:
        """The share of values inside the central interval of each level: the level, if the model is calibrated."""
        from scipy.special import ndtr

        distance = np.abs(2.0 * ndtr(self.errors) - 1.0)
        return np.array([np.mean(distance <= level) for level in levels])


@on_one_thread
def leave_one_out(model: AdditiveGP) -> LeftOut:
    """Predictions of every value from the others; past 2000 observations, of a thousand from each other."""
    index: NDArray[np.int64] = np.arange(model.n)
    if not isinstance(model._observed(), Exact):
        index = chosen(model.y, _MOST).astype(np.int64)
        v = model.known_variance
        model = model.condition(model.X[index], model.y[index], known_variance=None if v is None else v[index])
    return LeftOut(index, model.y.copy(), *model.leave_one_out())


@dataclass(frozen=True)
class BestValue:
    """The best value told against what the model expects at its point, all in the user's units.

    Attributes:
        value: as told.
        mean, std: what is expected there without noise.
        noise: standard deviation of the noise of a single value: as told with it, or as the model found it.
        spread: standard deviation of all values.
    """

    value: float
    mean: float
    std: float
    noise: float
    spread: float

    @property
    def trusted(self) -> bool:
        """Is it no farther from what is expected than noise takes a value on average? Without noise it always is."""
        return self.noise <= _NO_NOISE * self.spread or abs(self.value - self.mean) <= self.noise

    def __str__(self) -> str:
        if self.noise <= _NO_NOISE * self.spread:
            return f"The best value, {self.value:.5g}, can be trusted: values have next to no noise."
        expected = f"The model expects {self.mean:.5g} ± {self.std:.2g} at the best trial, which has {self.value:.5g}"
        noise = f"the noise of a single value, {self.noise:.2g}"
        if self.trusted:
            return f"{expected}: the difference is below {noise}, so the best value can be trusted to within that."
        return f"{expected}: the difference is above {noise}, so the best value is luck, and not to be counted on."


@dataclass(frozen=True)
class StudyAnalysis:
    """A study and what can be said of it.

    The model, and all that comes from it, raise NotFittedError where there is nothing to say yet; shares of variance
    also where the model sees no difference between points.

    Attributes:
        name: for headings.
        direction: "minimize" or "maximize".
        method: the name of what chose the points.
        rows: all trials, by number; what people have in their hands counts as running.
        space: the parameters that are modelled; None where there are none.
        context: the same trials as a method sees them; None where there is nothing to model.
        model_by: the method whose model explains them.
        decode: params in the user's words for a point of the unit cube.
        seed: for what is drawn at random here.
        notes: what a reader should know of how this was made.
        constraints: what is told with the values and limits them.
        say: told what is being done when it takes long.
    """

    name: str
    direction: Direction
    method: str
    rows: tuple[Trial, ...]
    space: Space | None
    context: SuggestContext | None
    model_by: Method
    decode: Callable[[Array], Mapping[str, Any]]
    seed: int = 0
    notes: tuple[str, ...] = ()
    say: Callable[[str], None] = field(default=lambda text: None, repr=False)
    constraints: tuple[OutcomeConstraint, ...] = ()

    @classmethod
    def of_optimizer(cls, opt: Optimizer, name: str | None = None) -> "StudyAnalysis":
        """From an optimizer in memory; one without a name is called by its parameters."""
        names = opt.space.names
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        return cls(
            name or f"Search over {', '.join(names[:_NAMED])}{more}",
            opt.direction,
            opt.method.name,
            tuple(map(presentable, opt.trials)),
            opt.space,
            opt._context_now(),
            opt.method,
            opt.space.from_unit,
            opt.seed,
            constraints=opt.constraints,
        )

    @classmethod
    def of_stored(cls, study: StoredStudy, *, say: Callable[[str], None] = lambda text: None) -> "StudyAnalysis":
        """From a study that is stored."""
        view = cls.of_optimizer(study.optimizer, study.file.name)
        rows = tuple(presentable(row, study.file.storage) for row in view.rows)
        return replace(view, rows=rows, notes=tuple(study.notes), say=say)

    @property
    def sign(self) -> float:
        return 1.0 if self.direction == "maximize" else -1.0

    def in_state(self, *states: State) -> list[Trial]:
        """The trials in one of these states, state by state."""
        return [row for state in states for row in self.rows if row.state == state]

    @property
    def best(self) -> Trial | None:
        """The best feasible trial; of equals the first."""
        return next(filter(self.feasible, self.by_value()), None)

    def by_value(self) -> list[Trial]:
        """Trials that are done, the best first: feasible ones before others."""
        return sorted(self.in_state("done"), key=lambda row: (not self.feasible(row), -self.sign * (row.value or 0.0)))

    def feasible(self, row: Trial) -> bool:
        """Did a trial keep all constraints told with its value?"""
        told = row.constraints or {}
        return all(c.name in told and c.amount(told[c.name]) <= 0.0 for c in self.constraints)

    @cached_property
    def unavailable_reason(self) -> str | None:
        """Why nothing can be said about the parameters; None where something can."""
        if self.space is None or self.context is None:
            return "The trials have no parameters in common that could be modelled."
        values = self.context.y[np.isfinite(self.context.y)]
        if len(values) < _LEAST:
            return f"There are {len(values)} values so far, and at least {_LEAST} are needed before anything is said."
        if np.ptp(values) == 0.0:
            return "All values are the same, so there is nothing to explain."
        return None

    @property
    def post_hoc(self) -> bool:
        """Is the model shown not that of the search? It had none, or was another program's."""
        return self.method != self.model_by.name or not self._has_model

    @property
    def _has_model(self) -> bool:
        return type(self.model_by).model is not Method.model

    @cached_property
    def _explained(self) -> tuple[Method, SuggestContext]:
        """The method whose model is shown, and the study as it sees it."""
        assert self.context is not None
        method, context = (self.model_by if self._has_model else resolve("auto")), replace(self.context, cache=None)
        if self._has_model and context.state:
            return method, context
        self.say("learning groups from the trials")
        context = replace(context, state={})
        if len(context.y) > _AT_ONCE:  # to learn everything at once from thousands of values would take minutes
            some = chosen(np.where(context.feasible, context.y, -np.inf), _AT_ONCE)
            context = replace(context, X=context.X[some], y=context.y[some], candidate_metadata=[None] * len(some))
            constraints, std = (None if told is None else told[some] for told in (context.constraints, context.std))
            context = replace(context, constraints=constraints, std=std)
            context = replace(context, pending=context.pending[:0], pending_metadata=[])
        # Groups are looked for when points are suggested: where none have been, a few are, and thrown away.
        with one_thread():
            for _ in range(_SETTLING):
                answer = method.suggest(context)
                settled = answer.state == context.state
                context = replace(context, state=answer.state, cache=answer.cache)
                if settled:
                    break
        return method, context

    @cached_property
    def model(self) -> AdditiveGP:
        """The model of all values: on the unit cube, standardised, larger is better."""
        if self.unavailable_reason is not None:
            raise NotFittedError(self.unavailable_reason)
        method, context = self._explained
        self.say("fitting the model")
        with one_thread():
            model = method.model(context)
        assert model is not None  # there are values
        return model

    @cached_property
    def values(self) -> Array:
        """Told values in the user's units, in the model's order; NaN where a trial failed."""
        return self.sign * self._explained[1].y

    @property
    def warped(self) -> bool:
        """Is a sum on the model's scale no sum in the user's units?"""
        return self.model.outcome_transform.warped

    def untransform(self, z: Array) -> Array:
        """From the model's scale to the user's units."""
        return self.sign * self.model.untransform(z)

    @property
    def effect_unit(self) -> float:
        """What to multiply a component by: the user's unit where the model is a sum in it, and the user's sign."""
        return self.sign * (1.0 if self.warped else self.model.outcome_transform.unit)

    @cached_property
    def interactions(self) -> Interactions:
        """Probabilities of pairs; of more than 30 parameters, among those with the largest shares."""
        return self.find_interactions()

    def find_interactions(self, evaluations: int | None = None) -> Interactions:
        """The same, with so many evaluations of the evidence, about; by default enough for some seconds."""
        model, (method, context) = self.model, self._explained
        known, among = method.group_constraints(context.space), context.space.names
        if known.groups is None and len(among) > tables.MOST:
            # A parameter with a small total effect can have no large interaction.
            among = tuple(row.parameters[0] for row in self.importance.parameters[: tables.MOST])
        self.say("which parameters interact (some seconds, up to a minute with many)")
        found = tables.interactions(context, model, known, self._rng(0), among=among, evaluations=evaluations)
        if not context.space.conditional:
            return found
        rows = [row if self._meet(row.first, row.second) else replace(row, probability=0.0) for row in found]
        return replace(found, rows=tuple(sorted(rows, key=lambda row: -row.probability)))

    def _meet(self, first: str, second: str) -> bool:
        """Can two parameters exist together?"""
        assert self.space is not None
        one, other = self.space.needs(first), self.space.needs(second)
        return all(set(one[name]) & set(other[name]) for name in one.keys() & other.keys())

    @cached_property
    def importance(self) -> Importances:
        """Shares of variance."""
        model = self.model
        self.say("shares of variance")
        return tables.importance(model, self._explained[1].space, self._rng(0))

    @cached_property
    def importance_or_reason(self) -> Importances | str:
        """Shares of variance, or why there are none."""
        try:
            return self.unavailable_reason or self.importance
        except NotFittedError as error:
            return str(error)

    @cached_property
    def left_out(self) -> LeftOut:
        """Leave-one-out predictions of trials that have a value."""
        found = leave_one_out(self.model)
        known = np.isfinite(self.values[found.index])
        return LeftOut(found.index[known], found.y[known], found.mean[known], found.std[known])

    def effect(self, j: int) -> Effect | EffectWithin:
        """The function of group j of the model, of its `dims`; NaN where nothing allowed has the values."""
        space = self._explained[1].space
        if space.conditional or space.constraints:
            return EffectWithin(self.model, j, self._pool, self.dims(j))
        return Effect(self.model, j, background(space, self._rng(3)))

    def dims(self, j: int) -> list[int]:
        """Along what group j is drawn: all its dimensions, but for one where their sum is given."""
        dims = list(self.model.decomposition.groups[j])
        for constraint in self._explained[1].space.constraints:
            if isinstance(constraint, Linear) and constraint.equality:
                tied = [self.names.index(name) for name in constraint.coefficients]
                if len(dims) > 1 and set(tied) <= set(dims):
                    dims.remove(tied[-1])
        return dims

    @cached_property
    def _pool(self) -> Pool:
        return Pool(self._explained[1].space, self._rng(3))

    @cached_property
    def _recommended(self) -> tuple[SuggestContext, list[Satisfied], Array, float]:
        """The study with the context of its latest trial, models of constraints, the point to use, and its chance."""
        model, (method, context) = self.model, self._explained
        self.say("which point to use")
        space = context.space
        latest = {space.names.index(name): context.X[-1, space.names.index(name)] for name in space.context}
        if latest:
            context = replace(context, region=Region(space, space.constraints, latest))
        with one_thread():
            satisfied = method.constraint_models(context)
            return context, satisfied, *recommended(model, satisfied, context)

    @cached_property
    def recommendation(self) -> Recommendation:
        """The point to use, as `Optimizer.recommend` has it; with a context, that of the latest trial."""
        context, _, u, probability = self._recommended
        (mean,), (std,) = self.predicted(u[None])
        x = context.space.array(context.space.from_unit(u))
        return Recommendation(dict(self.decode(u)), x, float(mean), float(std), probability)

    def tried(self, point: Recommendation) -> bool:
        """Was the point evaluated?"""
        return any(row.params == point.params for row in self.in_state("done"))

    def predicted(self, U: Array) -> tuple[Array, Array]:
        """Means and standard deviations without noise at points of the cube, in the user's units."""
        with one_thread():
            mean, std = self.model.posterior(U)
        return self.untransform(mean), self._width(mean, std)

    def _width(self, mean: Array, std: Array) -> Array:
        """Standard deviations on the model's scale, in the user's units."""
        return np.abs(self.untransform(mean + std) / 2.0 - self.untransform(mean - std) / 2.0)

    @cached_property
    def best_value(self) -> BestValue | None:
        """How far the best value can be trusted; None where no trial is feasible."""
        i, row = self.best_observation, self.best
        value = None if row is None else row.value
        if i is None or row is None or value is None or value != self.values[i]:
            return None  # the best may be of a range that is no longer searched
        mean, std = self.predicted(self.model.X[[i]])
        noise = self._width(self.model.posterior(self.model.X[[i]])[0], np.sqrt([self.model.noise_variance]))[0]
        known = row.std if row.std is not None else float(noise)
        return BestValue(value, float(mean[0]), float(std[0]), known, float(np.nanstd(self.values)))

    @cached_property
    def best_observation(self) -> int | None:
        """Which of the model's observations is the best feasible one."""
        feasible = self._explained[1].feasible
        return int(np.argmax(np.where(feasible, self.model.y, -np.inf))) if feasible.any() else None

    @cached_property
    def constraint_rows(self) -> tuple[ConstraintRow, ...]:
        """Of each constraint told with the values, how often it was kept, and how sure it is that it binds."""
        told = [row.constraints or {} for row in self.in_state("done")]
        at_best, rows = (self.best.constraints or {}) if self.best else {}, list[ConstraintRow]()
        for c in self.constraints:
            kept = [c.amount(measured[c.name]) <= 0.0 for measured in told if c.name in measured]
            rows.append(ConstraintRow(str(c), at_best.get(c.name), sum(kept) / max(len(kept), 1)))
        if not rows or self.unavailable_reason is not None:
            return tuple(rows)
        context, satisfied, u, _ = self._recommended
        self.say("which constraint binds")
        with one_thread():
            found = binding(self.model, satisfied, context, u)
        for k, (holds, binds, free) in enumerate(found):
            rows[k] = replace(rows[k], holds=holds)
            if self.best is not None:
                rows[k] = replace(rows[k], binds=binds, without=float(self.predicted(free[None])[0][0]))
        return tuple(rows)

    @cached_property
    def snapshots(self) -> dict[str, list[Any]]:
        """Hyperparameters over time, by name: the present groups, learned again from the first values only."""
        model = self.model
        self.say("hyperparameters over time")
        counts = np.unique(np.geomspace(_LEAST, min(model.n, _STEP_POINTS), _STEPS).round().astype(int)).tolist()
        models: list[AdditiveGP] = []
        for n in counts:
            y, v = self.model.y[:n], self.model.known_variance
            v = None if v is None else v[:n]
            model = model.fit(self.model.X[:n], y - y.mean(), warm=bool(models), known_variance=v)
            models.append(model)
        return {
            "values seen": counts,
            "typical lengthscale": [float(np.exp(np.log(m.lengthscales).mean())) for m in models],
            "groups": [float(np.linalg.norm(m.scales[: len(m.decomposition)])) for m in models],
            "all together": [float(m.scales[-1]) if m.full_order else None for m in models],
            "noise": [float(np.sqrt(m.noise_variance)) for m in models],
        }

    def _rng(self, purpose: int) -> np.random.Generator:
        assert self.context is not None
        return randomness.trial_rng(self.seed, len(self.context.y), 0, purpose)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the parameters that are modelled."""
        return () if self.space is None else self.space.names

    @cached_property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The model's groups, by name."""
        return tuple(tuple(self.names[i] for i in group) for group in self.model.decomposition.groups)

    def axis(self, i: int, points: int) -> tuple[Array, list[Any]]:
        """Places in [0, 1] along dimension i, and the user's values there; whole numbers and categories each once."""
        assert self.space is not None
        levels = int(self.space.levels[i])
        whole = self.is_category(i) or 0 < levels <= points
        line = np.full((levels if whole else points, self.space.dim), 0.5)
        for name, values in self.space.needs(self.names[i]).items():  # where the parameter exists
            line[:, self.names.index(name)] = self.space.unit(name, values[0])
        line[:, i] = (np.arange(levels) + 0.5) / levels if whole else np.linspace(0.0, 1.0, points)
        line = self.space.snap(line)
        u, first = np.unique(line[:, i], return_index=True)
        return u, [self.decode(line[k])[self.names[i]] for k in first]

    def is_category(self, i: int) -> bool:
        """Are its values listed, with an order or without?"""
        return self.space is not None and len(self.space.parameters[i].choices) > 0

    def in_digits(self, name: str, value: Any) -> Any:
        """A value for people: of a parameter with a step, with as many digits as the step needs."""
        step = self.space[name].step if self.space is not None and name in self.space.names else None
        if step is None or not isinstance(value, float):
            return value
        exponents = [Decimal(repr(part)).normalize().as_tuple().exponent for part in (step, self.space[name].low)]  # type: ignore[index]
        return Decimal(f"{value:.{max(0, *(-int(e) for e in exponents))}f}")

    def is_log(self, i: int) -> bool:
        return self.space is not None and self.space.parameters[i].log


def presentable(trial: Trial, *urls: str) -> Trial:
    """A trial for people: no password in its reason, be it as old as it may or in somebody's words."""
    state: State = "running" if trial.state == "open" else trial.state
    return replace(trial, state=state, reason=None if trial.reason is None else safe(trial.reason, *urls))


StudyLike = StudyAnalysis | Optimizer | Result


def analysis_of(study: StudyLike) -> StudyAnalysis:
    """A view of a view, an optimizer, or the result of a run.

    Raises:
        SettingError: it is none of these.
    """
    if isinstance(study, StudyAnalysis):
        return study
    opt = getattr(study, "optimizer", study)
    if not isinstance(opt, Optimizer):
        raise SettingError(
            f"expected the result of a run, an Optimizer or a report; got {type(study).__name__}. "
            "For an Optuna study give sumbo.report.from_optuna(study)"
        )
    return StudyAnalysis.of_optimizer(opt, getattr(study, "name", None))
