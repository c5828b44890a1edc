"""Ask for points, tell their values: a space, a method and a ledger. The sign of values flips here alone."""

import json
import math
import numbers
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from sumbo import _interrupts, acquisition, methods
from sumbo._typing import Array
from sumbo.errors import NotFittedError, SettingError, StateError, SumboError, TellError
from sumbo.executors import EvaluationResult, complete, measured
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.decomposition import Decomposition
from sumbo.gp.threads import one_thread
from sumbo.methods import Deadline, Method, SuggestContext, Suggestion, check_count, randomness
from sumbo.methods.candidates import recommended
from sumbo.regret import Direction, check_direction
from sumbo.space import Known, Space, SpaceLike
from sumbo.space.constraints import parse_outcomes
from sumbo.space.parameters import show
from sumbo.space.region import Region
from sumbo.study.ledger import FINISHED, Ledger, Record, State, digest, misreported

if TYPE_CHECKING:
    from sumbo.insights.analysis import StudyAnalysis
    from sumbo.insights.tables import Importances, Interactions
    from sumbo.study.run import Result

Values = Mapping[str, Any] | None
_Table = TypeVar("_Table", "Interactions", "Importances")

FORMAT = 3  # of `to_dict`; raised when a reader of older sumbo would misunderstand
_REGIONS = 8  # by the values that were fixed, the latest; to make one may take a while
_UNEDITED = "give a state as Optimizer.to_dict returned it"
_DEEPEST = 20  # levels of a saved state; ours have no more than ten
_QUICK = 0.05  # seconds; a suggestion that takes less is made while the ledger is ours, so that it knows of all others
_TRIES = 3  # at a suggestion that knows of all others, where that takes longer


@dataclass(frozen=True)
class Trial:
    """One point and what became of it.

    Attributes:
        number: 0, 1, 2, ... in the order of asking.
        params: the point by parameter name.
        x: the point as a read-only array in the space's order and units; a category as its index.
        value: what was told, None as long as nothing was or if it failed.
        state: "running", "done", "failed" or "cancelled"; in a stored study also "open", in somebody's hands, and
            "waiting", for a process that takes it over.
        constraints: what was measured for each of the study's constraints, by name; None if nothing was told.
        std: known standard deviation of the value's noise.
        reason: why it failed, in words.
        seconds: in the objective, where that is known, or from asking to telling; None for points of the user's own.
        suggest_seconds: how long the suggestion took; None likewise.

    Example:
        >>> trial = Optimizer([(0, 1)], seed=0).ask()
        >>> trial.number, trial.state, list(trial.params)
        (0, 'running', ['x0'])
    """

    number: int
    params: dict[str, Any]
    x: Array = field(compare=False)
    value: float | None = None
    state: State = "running"
    reason: str | None = None
    seconds: float | None = None
    suggest_seconds: float | None = None
    constraints: dict[str, float] | None = None
    std: float | None = None


@dataclass(frozen=True)
class Recommendation:
    """The point to use, by all that was told: what is expected there, not what a lucky draw of the noise gave.

    Attributes:
        params, x: the point, as in a `Trial`. It may be one that was never evaluated.
        value: the expected value there.
        std: how far the value without noise may be from that; a standard deviation.
        probability_feasible: that an evaluation there succeeds and keeps all constraints told with the values.
    """

    params: dict[str, Any]
    x: Array = field(compare=False)
    value: float
    std: float
    probability_feasible: float


class Optimizer:
    """Suggests points of a space and learns from their values.

    Args:
        space: a `Space`, a dict of parameters, or a list of (low, high) bounds.
        method: a name such as "auto" or "add-gp-ucb", or a method object with settings.
        direction: "minimize" or "maximize".
        seed: an integer for a run that can be repeated exactly.
        budget: how many evaluations there will be, if known; few methods ask.
        constraints: what is measured beside the value and limits it: "stress", feasible up to 0, or "stress <= 250".
            Every `tell` says what was measured.

    Example:
        >>> opt = Optimizer([(0, 1)] * 3, seed=0)
        >>> for _ in range(12):
        ...     trial = opt.ask()
        ...     opt.tell(trial, float(np.sum(trial.x**2)))
        >>> opt.best.value < 2
        True

    Raises:
        SpaceError, SettingError: an argument makes no sense; the message says which and why.
    """

    def __init__(
        self,
        space: SpaceLike,
        method: str | Method = "auto",
        direction: Direction = "minimize",
        seed: int | None = None,
        *,
        budget: int | None = None,
        constraints: Sequence[str] = (),
    ) -> None:
        check_direction(direction)
        self.space = Space.coerce(space)
        self.method = methods.resolve(method)
        self.method.check(self.space)
        self.constraints = parse_outcomes(constraints)
        self._check_method()
        self._regions: dict[str, Region] = {}
        Region(self.space, self.space.constraints).check(np.random.default_rng(0))
        self.direction: Direction = direction
        self.budget = None if budget is None else check_count("budget", budget)
        self.seed = randomness.checked_seed(seed)
        self._by_name = isinstance(space, Space | Mapping)
        self._ledger = Ledger(self.space, self.constraints)
        self._signature = digest(self.space.to_dict()) + digest(methods.method_to_dict(self.method))
        if self.constraints:
            self._signature += digest(list(map(str, self.constraints)))[:4]
        self._asked_at: dict[int, float] = {}
        self._last_seconds = math.inf  # of a suggestion
        self._read_back = False  # is the method's state one from a file, which people can edit?
        self._cache: AdditiveGP | None = None
        self._answers: dict[str, tuple[Any, Any]] = {}  # the last tables of what was learned, with what they depend on

    @classmethod
    def _on(cls, ledger: Ledger, method: Method, direction: Direction, seed: int, budget: int | None) -> "Optimizer":
        """One that goes on with a ledger."""
        opt = cls(ledger.space, method, direction, seed, budget=budget, constraints=ledger.outcomes)  # type: ignore[arg-type]
        opt._ledger = ledger
        return opt

    def _check_method(self) -> None:
        """Raise a SettingError if the method cannot search such a problem."""
        name, space = self.method.name, self.space
        if self.constraints and not self.method.models_constraints:
            raise SettingError(f'method "{name}" learns no constraints; use method="auto", or leave constraints out')
        if self.method.only_boxes and (space.context or space.constraints or space.conditional):
            what = "context" if space.context else "known constraints" if space.constraints else "conditions (when=)"
            raise SettingError(f'method "{name}" searches plain boxes, and the space has {what}; use method="auto"')

    # --- asking ------------------------------------------------------------------------------------------------

    @overload
    def ask(
        self, n: None = None, *, deadline: float | None = None, context: Values = None, fixed: Values = None
    ) -> Trial: ...
    @overload
    def ask(
        self, n: int, *, deadline: float | None = None, context: Values = None, fixed: Values = None
    ) -> list[Trial]: ...
    def ask(
        self, n: int | None = None, *, deadline: float | None = None, context: Values = None, fixed: Values = None
    ) -> Trial | list[Trial]:
        """The next point to evaluate, or a list of n different ones to evaluate together.

        Args:
            n: how many; None for a single trial.
            deadline: seconds within which to answer, with the best found by then. Such an answer depends on the speed
                of the machine; without a deadline the same history always gives the same answer.
            context: the values that the world sets, by name: all that the space names so.
            fixed: values that the point is to have, by name; the others are searched.

        Raises:
            SpaceError: a context is missing, or values are not in the space, or no allowed point has them.
        """
        if deadline is not None and not is_seconds(deadline):
            raise SettingError(f"deadline must be a positive number of seconds; got {deadline!r}")
        given = self._given(context, fixed)
        if n is None:
            return self._trial(self._asked(Deadline.after(deadline), given=given))
        n, until = check_count("n", n), Deadline.after(deadline)
        each = (Deadline.after(until.left / (n - i) if deadline else None) for i in range(n))
        return [self._trial(self._asked(deadline, given=given)) for deadline in each]

    def _given(self, context: Values, fixed: Values) -> dict[str, Any] | None:
        """The values that a point is to have, checked; None if there are none."""
        given = self.space.given(context, fixed)
        if given and self.method.only_boxes:
            raise SettingError(f'method "{self.method.name}" cannot keep values fixed; use method="auto"')
        if given and len(given) < self.space.dim:
            with warnings.catch_warnings(action="ignore"):  # that the region is thin was said of the whole
                self._region(given).check(np.random.default_rng(0))
        return given or None

    def _region(self, given: Mapping[str, Any] | None) -> Region:
        """Where suggestions may lie that have these values."""
        key = json.dumps(given)
        if key not in self._regions:
            if len(self._regions) >= _REGIONS:
                self._regions.pop(next(iter(self._regions)))
            names, u = self.space.names, dict[int, float]()
            for name, value in (given or {}).items():
                u[names.index(name)] = self.space.unit(name, value)
            self._regions[key] = Region(self.space, self.space.constraints, u)
        return self._regions[key]

    def _asked(self, deadline: Deadline, state: State = "running", given: dict[str, Any] | None = None) -> Record:
        record = self._ask(deadline, state=state, given=given)
        assert record is not None  # there is no limit
        return record

    def _ask(
        self,
        deadline: Deadline,
        *,
        state: State = "running",
        lease: int | None = None,
        limit: int | None = None,
        given: dict[str, Any] | None = None,
    ) -> Record | None:
        """Put the next suggestion into the ledger; None if programs have as many trials as the limit allows.

        Others may write meanwhile. A quick suggestion is made while nobody can; a slow one is made again if others
        have asked since, and at last moved off their points.
        """
        proposal = None
        for attempt in range(_TRIES):
            if proposal is not None or self._last_seconds >= _QUICK:
                self._ledger.refresh()
                proposal = self._proposed(deadline, given)
            with self._ledger.writing() as sequence:
                if limit is not None and self._ledger.counted >= limit:
                    return None
                known = proposal is not None and proposal[0].number == len(self._ledger.records)
                if not known and self._last_seconds < _QUICK:
                    proposal, known = self._proposed(deadline, given), True
                if proposal is not None and (known or attempt == _TRIES - 1):
                    return self._put(*proposal, sequence, state, lease, given)
        assert False, "the last attempt returns"  # noqa: B011, PT015

    def _proposed(self, deadline: Deadline, given: dict[str, Any] | None) -> tuple[SuggestContext, Suggestion, int]:
        """A suggestion that is not in the ledger yet, from what it was made, and the last event that this knew of."""
        began = time.monotonic()
        history, seen = self._ledger.history(self._signature), self._ledger.sequence
        sooner = deadline.sooner(time.monotonic() - began)  # what follows the suggestion takes as long again
        context = self._context(history, self.budget, sooner, given)
        if deadline.moment is not None and not acquisition.ready():
            answer = Suggestion(context.uniform(1)[0], context.state)
        else:
            answer = self._suggest(context)
        self._last_seconds = time.monotonic() - began
        return context, answer, seen

    def _suggest(self, context: SuggestContext) -> Suggestion:
        with one_thread(), self._edits_explained():
            answer = self.method.suggest(context)
        self._cache = answer.cache if answer.cache is not None else self._cache
        return answer

    def _put(
        self,
        context: SuggestContext,
        answer: Suggestion,
        seen: int,
        sequence: int,
        state: State,
        lease: int | None,
        given: dict[str, Any] | None,
    ) -> Record:
        with self._edits_explained():
            params, unit = randomness.nearest_untried(context.region, answer.point, self._ledger.taken, context.rng)
        _interrupts.poll()  # the last moment at which nothing has changed
        record = Record(
            len(self._ledger.records),
            json.dumps(params),
            unit,
            sequence,
            seen=seen,
            signature=self._signature,
            budget=self.budget,
            metadata=answer.candidate_metadata,
            method_state=None if answer.state == context.state else answer.state,
            state=state,
            lease=lease,
            fixed=given,
            suggest_seconds=self._last_seconds,
            started=time.time(),
        )
        self._ledger.put(record, sequence)
        self._asked_at[record.number] = time.monotonic()
        return record

    # --- telling -----------------------------------------------------------------------------------------------

    def tell(
        self,
        trial: Trial | int,
        value: float | None = None,
        *,
        failed: bool = False,
        reason: str | None = None,
        constraints: Mapping[str, float] | None = None,
        std: float | None = None,
    ) -> None:
        """Record the value of a trial. NaN, infinity and a masked value are recorded as a failure.

        Args:
            trial: what `ask` returned, or its number.
            value: the value of the objective: a number, or an array of one.
            failed: the evaluation gave no value.
            reason: why, for whoever reads the history.
            constraints: what was measured for each of the study's constraints, by name.
            std: the standard deviation of the value's noise, where that is known.

        Raises:
            TellError: the trial is unknown or told already, the value is not a single real number, a constraint is
                missing or not one of the study's, or std is negative. Nothing changes.
        """
        number = self._checked_number(trial)
        result = self._outcome(value, failed, reason, constraints, std)
        with _interrupts.held():
            self._tell(number, result)

    def _tell(self, number: int, result: EvaluationResult, lease: int | None = None) -> bool:
        asked = self._asked_at.pop(number, None)
        if result.seconds is None and asked is not None:
            result = replace(result, seconds=time.monotonic() - asked)
        return self._ledger.tell(number, result, lease)

    def cancel(self, trial: Trial | int) -> None:
        """Take a trial back that will not be evaluated: neither a value nor a failure, and its point is free again.

        Raises:
            TellError: the trial is unknown, or has ended. Nothing changes.
        """
        number = self._checked_number(trial)
        self._ledger.cancel(number)
        self._asked_at.pop(number, None)

    def observe(
        self,
        params: Any,
        value: float | None = None,
        *,
        failed: bool = False,
        reason: str | None = None,
        constraints: Mapping[str, float] | None = None,
        std: float | None = None,
    ) -> Trial:
        """Record a point of one's own: params by name, or an array in the space's order.

        Raises:
            SpaceError: the point is not in the space. Nothing is changed.
            TellError: the value is not a single real number, or as for `tell`. Nothing is changed.
        """
        own = params if isinstance(params, Mapping) else self.space.from_array(params)
        result = self._outcome(value, failed, reason, constraints, std)
        with _interrupts.held():
            return self._trial(self._ledger.observe(own, result))

    def _outcome(self, value: Any, failed: bool, reason: str | None, constraints: Any, std: Any) -> EvaluationResult:
        if failed:
            if value is not None:
                raise TellError(f"a failed trial has no value; got failed=True with {show(value)}")
            return EvaluationResult(reason=reason or "failed")
        if value is None:
            raise TellError("tell needs a value, or failed=True if there is none")
        number, problem = measured(value, "a value must be")
        result = complete(number, reason or problem, constraints, std)
        if problem := self._misreported(result):
            raise TellError(problem)
        return result

    def _misreported(self, result: EvaluationResult) -> str:
        return misreported(result, self.constraints)

    def _checked_number(self, trial: Trial | int) -> int:
        number = trial.number if isinstance(trial, Trial) else trial
        records = self._ledger.records
        if isinstance(number, bool) or not isinstance(number, numbers.Integral):
            raise TellError(f"tell takes a trial or its number; got {trial!r}")
        if not 0 <= number < len(records):
            known = f"0 to {len(records) - 1}" if records else "none yet"
            raise TellError(f"there is no trial {number} (known: {known}); use observe for points of your own")
        record = records[int(number)]
        if isinstance(trial, Trial) and trial.params != record.params:
            raise TellError(f"trial {number} here has other parameters: it was asked of another optimizer")
        if record.state == "cancelled":
            raise TellError(f"trial {number} was cancelled; use observe to record a value for its point")
        if record.state in FINISHED:
            raise TellError(f"trial {number} has been told already; use observe to add another value for its point")
        return int(number)

    # --- running -----------------------------------------------------------------------------------------------

    def run(
        self,
        f: Callable[[Any], Any],
        budget: int | None = None,
        *,
        workers: int = 1,
        executor: Executor | None = None,
        timeout: float | None = None,
        max_seconds: float | None = None,
        initial: Sequence[Any] = (),
        observed: Sequence[tuple[Any, Any]] = (),
        stop: "Callable[[Optimizer, Trial], Any] | None" = None,
        callback: "Callable[[Optimizer, Trial], Any] | None" = None,
        progress: bool = True,
    ) -> "Result":
        """Evaluate f so many times more, and learn from it. `sumbo.minimize` says what the arguments mean.

        Returns:
            What was found, in this run and before; also after Ctrl-C.

        Raises:
            SettingError: an argument makes no sense, or the objective cannot be sent to other processes.
            ObjectiveError: the first ten evaluations all failed alike; says how and where.
        """
        from sumbo.study.run import run  # which knows of optimizers

        ending = (max_seconds, initial, observed, stop, callback)
        return run(self, f, budget, workers, executor, timeout, *ending, progress)

    def _argument(self, record: Record) -> Any:
        """What an objective is called with: params by name, or an array where the space was given as bounds."""
        return record.params if self._by_name else self.space.array(record.params)

    # --- what is known -----------------------------------------------------------------------------------------

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials by number: running, done, failed and cancelled ones."""
        return tuple(map(self._trial, self._ledger.records))

    def _trial(self, record: Record) -> Trial:
        params = record.params
        x = np.full(self.space.dim, math.nan) if record.unit is None else self.space.array(params)
        x.flags.writeable = False
        return Trial(
            *(record.number, params, x, record.value, record.state, record.reason),
            *(record.seconds, record.suggest_seconds, record.constraints, record.std),
        )

    @property
    def best(self) -> Trial | None:
        """The feasible trial with the best value told so far, of equals the first; None before the first."""
        return None if self._best is None else self._trial(self._best)

    @property
    def _best(self) -> Record | None:
        return self._ledger.best(self._sign)

    @property
    def model(self) -> AdditiveGP | None:
        """The model of all values told, if there is one: on the unit cube, values standardised, larger is better."""
        with one_thread(), self._edits_explained():
            return self.method.model(self._context_now())

    @property
    def decomposition(self) -> Decomposition | None:
        """The groups in use; None before there is a model."""
        return None if (model := self.model) is None else model.decomposition

    def recommend(self, *, context: Values = None, fixed: Values = None) -> Recommendation:
        """The point to use, by all that was told: where the expected value is best, and constraints very likely hold.

        Where values have no noise that is the best trial, or a point that is expected to be better still; with noise,
        the best value told may be a lucky draw, and this is not.

        Args:
            context: the values that the world sets, by name: all that the space names so.
            fixed: values that the point is to have, by name.

        Raises:
            NotFittedError: no value was told yet.
            SpaceError: as for `ask`.
        """
        given = self._given(context, fixed)
        model, asked = self._fitted(given)
        with one_thread(), self._edits_explained():
            constraints = self.method.constraint_models(asked)
            u, probability = recommended(model, constraints, asked)
        mean, std = self._in_units(model, u[None])
        params = self.space.from_unit(u)
        return Recommendation(params, self.space.array(params), float(mean[0]), float(std[0]), probability)

    def predict(self, points: Any) -> tuple[Array, Array]:
        """What is expected at points, in the user's units: means and standard deviations (n,), without noise.

        Args:
            points: a list of params by name, or arrays in the space's order.

        Raises:
            NotFittedError: no value was told yet.
            SpaceError: a point is not in the space.
        """
        rows = [p if isinstance(p, Mapping) else self.space.from_array(p) for p in points]
        U = np.array([self.space.to_unit(row) for row in rows]).reshape(-1, self.space.dim)
        return self._in_units(self._fitted(None)[0], U)

    def _fitted(self, given: Mapping[str, Any] | None) -> tuple[AdditiveGP, SuggestContext]:
        """The model of all values told, with what it was made from; that of "auto" where the method has none."""
        context = self._context(self._ledger.history(self._signature), self.budget, given=given)
        if not context.has_values:
            raise NotFittedError("no value was told yet; tell some first")
        with one_thread(), self._edits_explained():
            model = self.method.model(context)
            return (methods.resolve("auto").model(replace(context, state={})) if model is None else model), context  # type: ignore[return-value]

    def _in_units(self, model: AdditiveGP, U: Array) -> tuple[Array, Array]:
        """Means and standard deviations in the user's units."""
        with one_thread():
            mean, std = model.posterior(U)
        high, low = (model.outcome_transform.untransform(mean + sign * std) for sign in (1.0, -1.0))
        return self._sign * model.outcome_transform.untransform(mean), np.abs(high / 2.0 - low / 2.0)

    def interactions(self, *, evaluations: int | None = None) -> "Interactions":
        """Which parameters interact: every pair with the probability that both belong to one group.

        What the user declared is kept to. Asked again with no new values, the answer is the same and comes at once.

        Args:
            evaluations: about so many evaluations of the evidence; more take longer and are surer. By default enough
                for some seconds.

        Raises:
            NotFittedError: fewer than 10 values were told, or they do not differ.
            SettingError: evaluations is not a whole number from 1 up.
        """
        budget = None if evaluations is None else check_count("evaluations", evaluations)
        key = ("interactions", self._count_told, budget)
        return self._explained(key, lambda view: view.find_interactions(budget))

    def importance(self) -> "Importances":
        """How much of the objective's variance over the space each parameter and each group accounts for.

        Raises:
            NotFittedError: fewer than 10 values were told, or they do not differ.
        """
        # The groups in use may change when points are asked for, too.
        key = ("importance", self._count_told, len(self._ledger.records))
        return self._explained(key, lambda view: view.importance)

    def _explained(self, key: tuple[Any, ...], answer: "Callable[[StudyAnalysis], _Table]") -> _Table:
        """What the report says too: there is one analysis."""
        from sumbo.insights.analysis import StudyAnalysis  # which knows of optimizers

        if self._answers.get(key[0], (None,))[0] != key:
            with self._edits_explained(NotFittedError):
                self._answers[key[0]] = key, answer(StudyAnalysis.of_optimizer(self))
        return self._answers[key[0]][1]

    @property
    def _count_told(self) -> int:
        """How many results there are, corrections counted as well."""
        return sum((record.state in FINISHED) + len(record.earlier) for record in self._ledger.records)

    @property
    def _sign(self) -> float:
        return 1.0 if self.direction == "maximize" else -1.0

    def _context_now(self) -> SuggestContext:
        return self._context(self._ledger.history(self._signature), self.budget)

    def _context(
        self,
        history: dict[str, Any],
        budget: int | None,
        deadline: Deadline | None = None,
        given: Mapping[str, Any] | None = None,
    ) -> SuggestContext:
        return SuggestContext(
            **history | {"y": self._sign * history["y"]},
            space=self.space,
            region=self._region(given),
            rng=randomness.trial_rng(self.seed, history["number"]),
            study_rng=randomness.study_rng(self.seed),
            cache=self._cache,
            deadline=deadline or Deadline(),
            budget=budget,
        )

    # --- saving ------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The ledger as JSON: `from_dict` goes on with identical suggestions; `sumbo.replay` repeats those made."""
        return {
            "sumbo": FORMAT,
            "space": self.space.to_dict(),
            "method": methods.method_to_dict(self.method),
            "direction": self.direction,
            "seed": self.seed,
            "budget": self.budget,
            "constraints": list(map(str, self.constraints)),
            "by_name": self._by_name,
            "trials": self._ledger.to_list(),
        }

    @classmethod
    def from_dict(cls, data: Any, *, known: Sequence[Known] = ()) -> "Optimizer":
        """The optimizer that `to_dict` described.

        Args:
            data: what it returned.
            known: the space's `Known` constraints, again: functions are not saved.

        Raises:
            StateError: the data are of another version, incomplete or contradict themselves; the message says where.
        """
        version = data.get("sumbo") if isinstance(data, Mapping) else None
        if version != FORMAT:
            raise StateError(
                f"expected a state of format {FORMAT} made by Optimizer.to_dict; got format {version!r:.80}. Give what "
                "to_dict returned; a state of another format needs the sumbo that made it"
            )
        try:
            _check_depth(data)
            space, method = Space.from_dict(data["space"], known), methods.method_from_dict(data["method"])
            if not isinstance(method, Method):
                raise StateError(f"method: {data['method']['type']} is not a method; {_UNEDITED}")
            told = data["constraints"]
            opt = cls(space, method, data["direction"], data["seed"], budget=data["budget"], constraints=told)
            opt._read_back, opt._by_name = True, bool(data["by_name"])
            opt._ledger.restore(data["trials"], opt._signature)
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, StateError):
                raise
            what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise StateError(f"the saved state cannot be read: {what}; {_UNEDITED}") from None
        return opt

    @contextmanager
    def _edits_explained(self, *meant: type[SumboError]) -> Iterator[None]:
        """Around a method's look at a state that was read back: only the method knows what it should be like.

        Not at its first look only: some of a state is for later.
        """
        try:
            yield
        except Exception as error:  # nonsense may end in any
            if not self._read_back or isinstance(error, (StateError, MemoryError, *meant)):
                raise
            what = f"the saved state of the method makes no sense to it ({type(error).__name__}: {error!s:.100})"
            raise StateError(f'{what}; set each "method_state" to null, and it learns anew') from error


def _check_depth(data: Any, left: int = _DEEPEST) -> None:
    """Refuse what is nested so deep that copying or writing it may exhaust the stack."""
    if left == 0:
        raise StateError(f"the saved state is nested more than {_DEEPEST} deep; {_UNEDITED}")
    for part in data.values() if isinstance(data, Mapping) else data:
        if isinstance(part, Mapping | list | tuple):
            _check_depth(part, left - 1)


def is_seconds(value: Any) -> bool:
    """A positive, finite number?"""
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return number and 0.0 < value <= sys.float_info.max
