"""A study as a report sees it: its trials, and on demand what a model makes of them. Knows nothing of pages.

Everything learned is computed when it is first asked for and kept. Costs are bounded; what the bounds leave out is said
where it is shown.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np

from sumbo import asking, explain
from sumbo.errors import DataError, NotFittedError, SettingError
from sumbo.explain import Importances, Interactions
from sumbo.gp import AdditiveGP
from sumbo.kernels import Array
from sumbo.methods import Deadline, Method, Query, resolve
from sumbo.optimizer import Optimizer
from sumbo.parameters import Categorical
from sumbo.regret import Direction
from sumbo.space import Space
from sumbo.sparse import chosen
from sumbo.threads import one_thread
from sumbo.views import pairs
from sumbo.views.effects import Effect, background
from sumbo.views.leave_out import LeftOut, leave_one_out
from sumbo.views.units import Units

State = Literal["done", "failed", "running", "waiting"]

_LEAST = 10  # values; with fewer there is nothing to explain
_PAIRS = "which parameters interact (some seconds, up to a minute with many)"
_STEPS = 8  # moments at which hyperparameters are learned again
_STEP_POINTS = 500  # observations at the last of them, at most
_AT_ONCE = 500  # values from which a model is learned afterwards
_SETTLING = 4  # suggestions after which a study of another optimiser has had its groups looked for


@dataclass(frozen=True)
class Row:
    """One trial.

    Attributes:
        number: as the study counts.
        params: by name, in the user's units; some may be missing.
        value: None unless it is done.
        state: done, failed, running or waiting.
        reason: why it failed.
        seconds: in the objective, where known.
        thinking: seconds in the optimiser, where known.
    """

    number: int
    params: Mapping[str, Any]
    value: float | None
    state: State
    reason: str | None = None
    seconds: float | None = None
    thinking: float | None = None


@dataclass(frozen=True)
class Moment:
    """Hyperparameters learned from the first n values: typical lengthscale, scale of all groups, of the rest, noise."""

    n: int
    lengthscale: float
    groups: float
    together: float | None
    noise: float

    @classmethod
    def of(cls, n: int, model: AdditiveGP) -> "Moment":
        return cls(
            n,
            float(np.exp(np.log(model.lengthscales).mean())),
            float(np.linalg.norm(model.scales[: len(model.decomposition)])),
            float(model.scales[-1]) if model.full_order else None,
            float(np.sqrt(model.noise_variance)),
        )


class HasOptimizer(Protocol):
    """Such as what `minimize` returns."""

    @property
    def optimizer(self) -> Optimizer: ...


@dataclass(frozen=True)
class View:
    """A study and what can be said of it.

    Attributes:
        name: for headings.
        direction: "minimize" or "maximize".
        method: the name of what chose the points.
        rows: all trials, by number.
        space: the parameters that are modelled; None where there are none.
        query: the same trials as a method sees them; None where there is nothing to model.
        model_by: the method whose model explains them.
        decode: params in the user's words for a point of the unit cube.
        seed: for what is drawn at random here.
        notes: what a reader should know of how this was made.
        say: told what is being done when it takes long.
    """

    name: str
    direction: Direction
    method: str
    rows: tuple[Row, ...]
    space: Space | None
    query: Query | None
    model_by: Method
    decode: Callable[[Array], Mapping[str, Any]]
    seed: int = 0
    notes: tuple[str, ...] = ()
    say: Callable[[str], None] = field(default=lambda text: None, repr=False)

    @classmethod
    def of_optimizer(cls, opt: Optimizer, name: str = "study") -> "View":
        """From an optimizer in memory."""
        rows = tuple(Row(t.number, t.params, t.value, t.state, t.reason, t.seconds, t.thinking) for t in opt.trials)
        query = opt._query(len(rows), Deadline())
        return cls(
            name, opt.direction, opt.method.name, rows, opt.space, query, opt.method, opt.space.from_unit, opt.seed
        )

    # --- the search --------------------------------------------------------------------------------------------

    @property
    def sign(self) -> float:
        return 1.0 if self.direction == "maximize" else -1.0

    def in_state(self, state: State) -> list[Row]:
        """The trials in this state."""
        return [row for row in self.rows if row.state == state]

    @property
    def best(self) -> Row | None:
        """The best trial; of equals the first."""
        return max(self.in_state("done"), key=lambda row: self.sign * (row.value or 0.0), default=None)

    # --- what was learned --------------------------------------------------------------------------------------

    @cached_property
    def silence(self) -> str | None:
        """Why nothing can be said about the parameters; None where something can."""
        if self.space is None or self.query is None:
            return "The trials have no parameters in common that could be modelled."
        values = self.query.y[np.isfinite(self.query.y)]
        if len(values) < _LEAST:
            return f"There are {len(values)} values so far, and at least {_LEAST} are needed before anything is said."
        if np.ptp(values) == 0.0:
            return "All values are the same, so there is nothing to explain."
        return None

    @property
    def borrowed(self) -> bool:
        """Is the model shown not that of the search? It had none, or was another program's."""
        return self.method != self.model_by.name or type(self.model_by).model is Method.model

    @cached_property
    def _explained(self) -> tuple[Method, Query]:
        """The method whose model is shown, and the study as it sees it.

        Groups are looked for when points are suggested: where none have been, a few are, and thrown away. To learn
        everything at once from thousands of values would take minutes, so it is done from some of them.
        """
        assert self.query is not None
        has_model = type(self.model_by).model is not Method.model
        method, query = (self.model_by if has_model else resolve("auto")), replace(self.query, cache=None)
        if has_model and query.state:
            return method, query
        self.say("learning groups from the trials")
        query = replace(_thinned(query), state={})
        with one_thread():
            for _ in range(_SETTLING):
                answer = method.suggest(query)
                settled = answer.state == query.state
                query = replace(query, state=answer.state, cache=answer.cache)
                if settled:
                    break
        return method, query

    @cached_property
    def model(self) -> AdditiveGP:
        """The model of all values: on the unit cube, standardised, larger is better.

        Raises:
            NotFittedError: there is nothing to say yet.
        """
        if self.silence is not None:
            raise NotFittedError(self.silence)
        method, query = self._explained
        self.say("fitting the model")
        with one_thread():
            model = method.model(query)
        assert model is not None  # there are values
        return model

    @cached_property
    def values(self) -> Array:
        """Told values in the user's units, in the model's order; NaN where a trial failed."""
        return self.sign * self._explained[1].y

    @cached_property
    def units(self) -> Units:
        """From the model's scale to the user's units."""
        known = np.isfinite(self.values)
        return Units.of(self.model.y[known], self.values[known], self.sign)

    @cached_property
    def interactions(self) -> Interactions:
        """Probabilities of pairs; of more than 30 parameters, among those with the largest shares.

        Raises:
            NotFittedError: there is nothing to say yet.
        """
        assert self.space is not None
        model, (method, query) = self.model, self._explained
        known = method.knowledge(self.space)
        if known.groups is None and self.space.dim > pairs.MOST:
            importance = self.importance
            self.say(_PAIRS)
            with one_thread():
                return pairs.of_the_largest(query, model, known, importance, self._rng(1))
        self.say(_PAIRS)
        with one_thread():
            return explain.interactions(method, query, self._rng(1), evaluations=pairs.evaluations(self.space.dim))

    @cached_property
    def importance(self) -> Importances:
        """Shares of variance.

        Raises:
            NotFittedError: there is nothing to say yet, or the model sees no difference between points.
        """
        _ = self.model
        self.say("shares of variance")
        with one_thread():
            return explain.importance(*self._explained, self._rng(2))

    @cached_property
    def left_out(self) -> LeftOut:
        """Leave-one-out predictions of trials that have a value."""
        found = leave_one_out(self.model)
        known = np.isfinite(self.values[found.index])
        return LeftOut(found.index[known], found.y[known], found.mean[known], found.std[known])

    def effect(self, j: int) -> Effect:
        """The function of group j of the model."""
        return Effect(self.model, j, self._background)

    @cached_property
    def _background(self) -> Array:
        assert self.space is not None
        return background(self.space, self._rng(3))

    @cached_property
    def moments(self) -> tuple[Moment, ...]:
        """Hyperparameters over time: the present groups, learned again from the first values only."""
        model = self.model
        self.say("hyperparameters over time")
        most = min(model.n, _STEP_POINTS)
        counts = np.unique(np.geomspace(min(_LEAST, most), most, _STEPS).round().astype(int))
        found: list[Moment] = []
        for n in counts:
            y = self.model.y[:n]
            model = model.fit(self.model.X[:n], y - y.mean(), warm=bool(found))
            found.append(Moment.of(int(n), model))
        return tuple(found)

    def _rng(self, purpose: int) -> np.random.Generator:
        return asking.trial_rng(self.seed, len(self.rows), 0, purpose)

    # --- parameters --------------------------------------------------------------------------------------------

    def axis(self, i: int, points: int) -> tuple[Array, list[Any]]:
        """Places in [0, 1] along dimension i, and the user's values there; whole numbers and categories each once."""
        assert self.space is not None
        levels = int(self.space.levels[i])
        if self.is_category(i) or 0 < levels <= points:
            u = (np.arange(levels) + 0.5) / levels
        else:
            u = np.linspace(0.0, 1.0, points)
        middle = np.full((len(u), self.space.dim), 0.5)
        middle[:, i] = u
        snapped = self.space.snap(middle)
        _, first = np.unique(snapped[:, i], return_index=True)
        name = self.space.names[i]
        return snapped[first, i], [self.decode(snapped[k])[name] for k in first]

    def is_category(self, i: int) -> bool:
        assert self.space is not None
        return isinstance(self.space.parameters[i], Categorical)

    def is_log(self, i: int) -> bool:
        assert self.space is not None
        return bool(getattr(self.space.parameters[i], "log", False))


def _thinned(query: Query) -> Query:
    if len(query.y) <= _AT_ONCE:
        return query
    some = chosen(np.where(np.isfinite(query.y), query.y, -np.inf), _AT_ONCE)
    nothing = query.pending[:0]
    return replace(query, X=query.X[some], y=query.y[some], notes=[None] * len(some), pending=nothing, pending_notes=[])


Viewed = View | Optimizer | HasOptimizer


def view_of(study: Any) -> View:
    """A view of a view, an optimizer, or the result of a run.

    Raises:
        SettingError: it is none of these.
    """
    if isinstance(study, View):
        return study
    opt = getattr(study, "optimizer", study)
    if not isinstance(opt, Optimizer):
        raise SettingError(
            f"expected the result of a run, an Optimizer or a report; got {type(study).__name__}. "
            "For an Optuna study give sumbo.report.from_optuna(study)"
        )
    return View.of_optimizer(opt)


def group_index(view: View, parameters: Any) -> int:
    """The number of the model's group that has just these parameters.

    Raises:
        DataError: there is no such group; the message lists those there are.
    """
    assert view.space is not None
    wanted = {parameters} if isinstance(parameters, str) else set(parameters)
    names = [tuple(view.space.names[i] for i in group) for group in view.model.decomposition.groups]
    for j, group in enumerate(names):
        if set(group) == wanted:
            return j
    known = "; ".join(", ".join(group) for group in names[:10])
    raise DataError(f"expected the parameters of one group, got {sorted(map(str, wanted))}; the groups are {known}")
