"""Ask for points, tell their values. The only mutable object: history, pending trials, method state, and the sign."""

import copy
import math
import numbers
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypeVar, overload

import numpy as np

from sumbo import asking, explain, methods, warmup
from sumbo.decomposition import Decomposition
from sumbo.errors import SettingError, StateError, SumboError, TellError
from sumbo.explain import Importances, Interactions
from sumbo.gp import AdditiveGP
from sumbo.kernels import Array
from sumbo.methods import Deadline, Method, Query, Suggestion, check_count
from sumbo.regret import Direction, check_direction
from sumbo.space import Space, SpaceLike
from sumbo.threads import on_one_thread, one_thread

_Table = TypeVar("_Table", Interactions, Importances)

FORMAT = 1  # of `to_dict`; raised when a reader of older sumbo would misunderstand
_UNEDITED = "give a state as Optimizer.to_dict returned it"


@dataclass(frozen=True)
class Trial:
    """One point and what became of it.

    Attributes:
        number: 0, 1, 2, ... in the order of asking.
        params: the point by parameter name.
        x: the point as a read-only array in the space's order and units; a category as its index.
        value: what was told, None as long as nothing was or if it failed.
        state: "running", "done" or "failed".
        reason: why it failed, in words.
        seconds: from asking to telling; None for points of the user's own.
        thinking: seconds that the suggestion took; None likewise.

    Example:
        >>> trial = Optimizer([(0, 1)], seed=0).ask()
        >>> trial.number, trial.state, list(trial.params)
        (0, 'running', ['x0'])
    """

    number: int
    params: dict[str, Any]
    x: Array = field(compare=False)
    value: float | None = None
    state: Literal["running", "done", "failed"] = "running"
    reason: str | None = None
    seconds: float | None = None
    thinking: float | None = None


class Optimizer:
    """Suggests points of a space and learns from their values.

    Args:
        space: a `Space`, a dict of parameters, or a list of (low, high) bounds.
        method: a name such as "auto" or "add-gp-ucb", or a method object with settings.
        direction: "minimize" or "maximize".
        seed: an integer for a run that can be repeated exactly.
        budget: how many evaluations there will be, if known; few methods ask.

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
    ) -> None:
        check_direction(direction)
        self.space = Space.coerce(space)
        self.method = methods.resolve(method)
        self.method.check(self.space)
        self.direction: Direction = direction
        self.budget = None if budget is None else check_count("budget", budget)
        self.seed = asking.checked_seed(seed)
        self._trials: list[Trial] = []
        self._units: list[Array] = []  # unit-cube points, by trial number
        self._notes: list[Any] = []  # what the method wrote beside its suggestions, by trial number
        self._asked_at: dict[int, float] = {}
        self._told: list[int] = []  # trial numbers in the order of telling
        self._seen: list[int | None] = []  # by trial number, how many were told when it was asked; None: not asked
        self._state: dict[str, Any] = {}
        self._read_back = False  # is that state one from a file, which people can edit?
        self._cache: AdditiveGP | None = None
        self._answers: dict[str, tuple[Any, Any]] = {}  # the last tables of what was learned, with what they depend on

    # --- asking ------------------------------------------------------------------------------------------------

    @overload
    def ask(self, n: None = None, *, deadline: float | None = None) -> Trial: ...
    @overload
    def ask(self, n: int, *, deadline: float | None = None) -> list[Trial]: ...
    def ask(self, n: int | None = None, *, deadline: float | None = None) -> Trial | list[Trial]:
        """The next point to evaluate, or a list of n different ones to evaluate together.

        Args:
            n: how many; None for a single trial.
            deadline: seconds within which to answer, with the best found by then. Such an answer depends on the speed
                of the machine; without a deadline the same history always gives the same answer.
        """
        if deadline is not None and not (_is_number(deadline) and deadline > 0):
            raise SettingError(f"deadline must be a positive number of seconds; got {deadline!r}")
        if n is None:
            return self._ask_one(Deadline.after(deadline))
        n, until = check_count("n", n), Deadline.after(deadline)
        return [self._ask_one(Deadline.after(until.left / (n - i) if deadline else None)) for i in range(n)]

    @on_one_thread
    def _ask_one(self, deadline: Deadline) -> Trial:
        began = time.monotonic()
        query = self._query(len(self._trials), deadline)
        if deadline.moment is not None and not warmup.ready():
            answer = Suggestion(query.uniform(1)[0], self._state)
        else:
            with self._edits_explained():
                answer = self.method.suggest(query)
        seen = {unit.tobytes() for unit in self._units}
        params, unit = asking.unseen(self.space, answer.point, seen, query.rng)
        self._state, self._read_back = answer.state, False
        self._cache = answer.cache if answer.cache is not None else self._cache
        trial = self._add(params, unit, answer.note, time.monotonic() - began, len(self._told))
        self._asked_at[trial.number] = time.monotonic()
        return _copy(trial)

    # --- telling -----------------------------------------------------------------------------------------------

    def tell(
        self,
        trial: Trial | int,
        value: float | None = None,
        *,
        failed: bool = False,
        reason: str | None = None,
    ) -> None:
        """Record the value of a trial. NaN and infinity are recorded as a failure.

        Args:
            trial: what `ask` returned, or its number.
            value: the value of the objective.
            failed: the evaluation gave no value.
            reason: why, for whoever reads the history.

        Raises:
            TellError: the trial is unknown or told already, or the value is not a single real number. Nothing changes.
        """
        number = self._checked_number(trial)
        self._record(number, *_outcome(value, failed, reason))

    def observe(
        self,
        params: Mapping[str, Any] | Any,
        value: float | None = None,
        *,
        failed: bool = False,
        reason: str | None = None,
    ) -> Trial:
        """Record a point of one's own: params by name, or an array in the space's order.

        Raises:
            SpaceError: the point is not in the space. Nothing is changed.
            TellError: the value is not a single real number. Nothing is changed.
        """
        own = params if isinstance(params, Mapping) else self.space.from_array(params)
        x = self.space.array(own)
        outcome = _outcome(value, failed, reason)
        # Through the array: plain Python types in the space's order, digits unchanged.
        trial = self._add(dict(self.space.from_array(x)), self.space.encode(x), None)
        self._record(trial.number, *outcome)
        return _copy(self._trials[trial.number])

    def _add(
        self,
        params: dict[str, Any],
        unit: Array,
        note: Any,
        thinking: float | None = None,
        seen: int | None = None,
    ) -> Trial:
        x = self.space.array(params)
        x.flags.writeable = False
        trial = Trial(len(self._trials), params, x, thinking=thinking)
        self._trials.append(trial)
        self._units.append(unit)
        self._notes.append(note)
        self._seen.append(seen)
        return trial

    def _record(self, number: int, value: float | None, reason: str | None) -> None:
        asked = self._asked_at.pop(number, None)
        seconds = None if asked is None else time.monotonic() - asked
        state: Literal["done", "failed"] = "failed" if value is None else "done"
        self._trials[number] = replace(self._trials[number], value=value, state=state, reason=reason, seconds=seconds)
        self._told.append(number)

    def _checked_number(self, trial: Trial | int) -> int:
        number = trial.number if isinstance(trial, Trial) else trial
        if isinstance(number, bool) or not isinstance(number, numbers.Integral):
            raise TellError(f"tell takes a trial or its number; got {trial!r}")
        if not 0 <= number < len(self._trials):
            known = f"0 to {len(self._trials) - 1}" if self._trials else "none yet"
            raise TellError(f"there is no trial {number} (known: {known}); use observe for points of your own")
        if isinstance(trial, Trial) and not np.array_equal(trial.x, self._trials[int(number)].x):
            raise TellError(f"trial {number} here has other parameters: it was asked of another optimizer")
        if self._trials[int(number)].state != "running":
            raise TellError(f"trial {number} has been told already; use observe to add another value for its point")
        return int(number)

    # --- what is known -----------------------------------------------------------------------------------------

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials by number: running, done and failed ones."""
        return tuple(map(_copy, self._trials))

    @property
    def best(self) -> Trial | None:
        """The trial with the best value told so far; None before the first."""
        done = [trial for trial in self._trials if trial.value is not None]
        if not done:
            return None
        return _copy(min(done, key=lambda trial: self._sign * -trial.value))  # type: ignore[operator]

    @property
    def model(self) -> AdditiveGP | None:
        """The model of all values told, if there is one: on the unit cube, values standardised, larger is better."""
        with one_thread(), self._edits_explained():
            return self.method.model(self._query(len(self._trials), Deadline()))

    @property
    def decomposition(self) -> Decomposition | None:
        """The groups in use; None before there is a model."""
        model = self.model
        return None if model is None else model.decomposition

    def interactions(self, *, evaluations: int | None = None) -> Interactions:
        """Which parameters interact: every pair with the probability that both belong to one group.

        What the user declared is kept to. Asked again with no new values, the answer is the same and comes at once.

        Args:
            evaluations: about so many evaluations of the evidence; more take longer and are surer. By default enough
                for some seconds.

        Raises:
            NotFittedError: the method has no model, or fewer than 10 values were told.
            SettingError: evaluations is not a whole number from 1 up.
        """
        budget = None if evaluations is None else check_count("evaluations", evaluations)
        answer = partial(explain.interactions, self.method, evaluations=budget)
        return self._explained(("interactions", len(self._told), budget), answer)

    def importance(self) -> Importances:
        """How much of the objective's variance over the space each parameter and each group accounts for.

        Raises:
            NotFittedError: the method has no model, fewer than 10 values were told, or they do not differ.
        """
        # The groups in use may change when points are asked for, too.
        key = ("importance", len(self._told), len(self._trials))
        return self._explained(key, partial(explain.importance, self.method))

    def _explained(self, key: tuple[Any, ...], answer: Callable[[Query, np.random.Generator], _Table]) -> _Table:
        if self._answers.get(key[0], (None,))[0] != key:
            rng = asking.trial_rng(self.seed, len(self._told), 0, 0)
            with one_thread():
                self._answers[key[0]] = key, answer(self._query(len(self._trials), Deadline()), rng)
        return self._answers[key[0]][1]

    @property
    def _sign(self) -> float:
        return 1.0 if self.direction == "maximize" else -1.0

    def _query(self, number: int, deadline: Deadline) -> Query:
        running = [trial.number for trial in self._trials if trial.state == "running"]
        values = [self._trials[i].value for i in self._told]
        return Query(
            space=self.space,
            X=self._points(self._told),
            y=self._sign * np.array([math.nan if v is None else v for v in values], dtype=float),
            pending=self._points(running),
            notes=[self._notes[i] for i in self._told],
            pending_notes=[self._notes[i] for i in running],
            number=number,
            rng=asking.trial_rng(self.seed, number),
            study_rng=asking.study_rng(self.seed),
            state=self._state,
            cache=self._cache,
            deadline=deadline,
            budget=self.budget,
        )

    def _points(self, numbers_: list[int]) -> Array:
        return np.array([self._units[i] for i in numbers_]).reshape(len(numbers_), self.space.dim)

    # --- saving ------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON: `from_dict` goes on with identical suggestions; `sumbo.replay` repeats those made."""
        return {
            "sumbo": FORMAT,
            "space": self.space.to_dict(),
            "method": methods.method_to_dict(self.method),
            "direction": self.direction,
            "seed": self.seed,
            "budget": self.budget,
            "state": copy.deepcopy(self._state),
            "told": list(self._told),
            "trials": [
                {
                    "params": dict(trial.params),
                    "value": trial.value,
                    "state": trial.state,
                    "reason": trial.reason,
                    "seconds": trial.seconds,
                    "thinking": trial.thinking,
                    "note": copy.deepcopy(note),
                    "seen": seen,
                }
                for trial, note, seen in zip(self._trials, self._notes, self._seen, strict=True)
            ],
        }

    @classmethod
    def from_dict(cls, data: Any) -> "Optimizer":
        """The optimizer that `to_dict` described.

        Raises:
            StateError: the data are of another version, incomplete or contradict themselves; the message says where.
        """
        version = data.get("sumbo") if isinstance(data, Mapping) else None
        if version != FORMAT or isinstance(version, bool):
            raise StateError(
                f"expected a state of format {FORMAT} made by Optimizer.to_dict; got format {version!r:.80}. Give what "
                "to_dict returned; a state of a later format needs the sumbo that made it"
            )
        try:
            space, method = Space.from_dict(data["space"]), methods.method_from_dict(data["method"])
            if not isinstance(method, Method):
                raise StateError(f"method: {data['method']['type']} is not a method; {_UNEDITED}")
            opt = cls(space, method, data["direction"], data["seed"], budget=data["budget"])
            opt._state, opt._read_back = copy.deepcopy(dict(data["state"])), True
            for i, entry in enumerate(data["trials"]):
                opt._restore(i, entry)
            opt._restore_order(list(data["told"]))
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, StateError):
                raise
            what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise StateError(f"the saved state cannot be read: {what}; {_UNEDITED}") from None
        return opt

    @contextmanager
    def _edits_explained(self) -> Iterator[None]:
        """Around a method's first look at a state that was read back: only the method knows what it should be like."""
        try:
            yield
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            if not self._read_back or isinstance(error, SumboError):
                raise
            what = f"the saved state of the method makes no sense to it ({type(error).__name__}: {error!s:.100})"
            raise StateError(f'{what}; set the key "state" to {{}}, and it learns anew') from error

    def _restore(self, i: int, entry: dict[str, Any]) -> None:
        x, value = self.space.array(entry["params"]), entry["value"]
        thinking = entry.get("thinking")  # states of version 0.1.0 have none
        seen = entry.get("seen")
        if seen is not None and (type(seen) is not int or seen < 0):
            raise StateError(
                f"trial {i}: seen must be a whole number from 0 up, or null; got {seen!r:.80}; {_UNEDITED}"
            )
        trial = self._add(dict(self.space.from_array(x)), self.space.encode(x), entry["note"], thinking, seen)
        state = entry["state"]
        if state not in ("running", "done", "failed") or (state == "done") != _is_number(value):
            raise StateError(f"trial {i}: state {state!r} does not go with value {value!r:.80}; {_UNEDITED}")
        value = float(value) if state == "done" else None
        self._trials[i] = replace(trial, value=value, state=state, reason=entry["reason"], seconds=entry["seconds"])

    def _restore_order(self, told: list[int]) -> None:
        finished = [trial.number for trial in self._trials if trial.state != "running"]
        if any(type(number) is not int for number in told) or sorted(told) != finished:
            raise StateError(f"the order of tells does not name every finished trial once; {_UNEDITED}")
        self._told = told


def _is_number(value: Any) -> bool:
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer too large for a float
        return False


def _copy(trial: Trial) -> Trial:
    """A trial to give away: whatever becomes of its dict, the history keeps its own."""
    return replace(trial, params=dict(trial.params))


def _outcome(value: Any, failed: bool, reason: str | None) -> tuple[float | None, str | None]:
    """The value and the reason to record."""
    if failed:
        if value is not None:
            raise TellError(f"a failed trial has no value; got failed=True with {value!r}")
        return None, reason or "failed"
    if value is None:
        raise TellError("tell needs a value, or failed=True if there is none")
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TellError(
            f"a value must be a single real number; got {type(value).__name__} {value!r:.80}. "
            "Convert it with float(...) first"
        )
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        return None, reason or f"value was {number}"
    return number, reason
