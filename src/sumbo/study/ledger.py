"""The ledger: what was asked and told, in order. Everything else about a study is made from it.

Every event takes the next sequence number: asked, told, cancelled, corrected. A trial's record keeps the numbers of its
own, so the study as it was at any moment can be made again: told are the trials with `told` up to that number, in this
order, and pending are those asked and not ended by then. A suggestion writes down which number it had seen. That, the
seed and the method are all it depends on.

| symbol  | shape  | meaning                                                        |
|---------|--------|----------------------------------------------------------------|
| X       | (n, D) | points told, in the order of telling                           |
| y       | (n,)   | their values in the user's units, NaN where one failed         |
| pending | (p, D) | points asked that have not ended                               |
"""

import copy
import hashlib
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from sumbo._typing import Array
from sumbo.executors import EvaluationResult
from sumbo.space import Space
from sumbo.space.constraints import OutcomeConstraint
from sumbo.space.parameters import hinted, listed, show

# Running: by a program; open: by a person; waiting: for whoever comes.
State = Literal["running", "open", "waiting", "done", "failed", "cancelled"]
FINISHED, ENDED = ("done", "failed"), ("done", "failed", "cancelled")
_UNCOUNTED = ("open", "cancelled")  # no budget pays for these
# What a ledger as JSON keeps of a record, beside the params.
_KEPT = (
    *("state", "value", "constraints", "std", "reason", "detail", "asked", "seen", "told", "fixed", "budget"),
    *("metadata", "method_state", "earlier"),
    *("seconds", "suggest_seconds", "started", "ended"),
)


Earlier: TypeAlias = tuple[int, float | None, str | None, dict[str, float] | None, float | None]


@dataclass(slots=True, eq=False)
class Record:
    """One trial in the ledger. Never changed in place: `replace` makes the next version."""

    number: int  # 0, 1, 2, ... in the order of asking
    text: str  # the params as JSON
    unit: Array | None  # the point in the unit cube; None if it is not in the present space
    asked: int  # sequence number of the ask
    # Names the space, and the method of a suggestion: what a method left behind is for its like alone.
    signature: str | None = None
    metadata: Any = None  # what the method wrote beside its suggestion
    method_state: dict[str, Any] | None = None  # the state that the suggestion left, where it changed it
    # (Sequence number, value, reason, constraints, std) of results that were corrected, oldest first.
    earlier: tuple[Earlier, ...] = ()
    fixed: dict[str, Any] | None = None  # values that the ask gave, those of the context among them
    constraints: dict[str, float] | None = None  # as measured, by name
    seen: int | None = None  # the last sequence number that its suggestion knew of; None for a point of the user's own
    budget: int | None = None  # how many evaluations there were to be, as the suggestion knew
    state: State = "running"
    told: int | None = None  # sequence number of the tell or the cancelling
    value: float | None = None
    std: float | None = None  # known noise of the value
    reason: str | None = None
    detail: str | None = None
    lease: int | None = None  # who evaluates it, where several processes share a study
    lost: int = 0  # how many processes died evaluating it
    suggest_seconds: float | None = None
    seconds: float | None = None  # from asking to telling, or in the objective
    started: float | None = None  # when, for people; order goes by sequence numbers
    ended: float | None = None

    @property
    def params(self) -> dict[str, Any]:
        """A dict of the caller's own."""
        return json.loads(self.text)

    def as_of(self, sequence: int) -> "Record":
        """The version of that time: a trial that had not ended, or its value before corrections that came later."""
        if self.told is not None and self.told > sequence:
            return replace(self, state="running", told=None, value=None, constraints=None, std=None)
        later = [before for before in self.earlier if before[0] > sequence]
        if not later:
            return self
        _, value, _, constraints, std = later[0]
        return replace(self, value=value, constraints=constraints, std=std)


class Told:
    """The points that were told, in order, in arrays that grow: with 100,000 of them no ask can go through all."""

    def __init__(self, dim: int, outcomes: Sequence[OutcomeConstraint]) -> None:
        self.at: dict[int, int] = {}  # by a trial's number, its place among them
        self._outcomes = outcomes
        # Of them, and room for more: points; values, standard deviations and by how much each constraint is broken.
        self._X, self._told = np.empty((16, dim)), np.empty((16, 2 + len(outcomes)))

    @property
    def X(self) -> Array:
        view = self._X[: len(self.at)]
        view.flags.writeable = False
        return view

    @property
    def y(self) -> Array:
        return self._told[: len(self.at), 0].copy()  # corrections change it in place

    @property
    def std(self) -> Array | None:
        """None where no noise is known."""
        std = self._told[: len(self.at), 1]
        return std.copy() if std.any() else None

    @property
    def constraints(self) -> Array | None:
        """None where the study has none."""
        return self._told[: len(self.at), 2:].copy() if self._outcomes else None

    def extend(self, records: Sequence[Record]) -> None:
        """Trials have ended, in this order."""
        n, total = len(self.at), len(self.at) + len(records)
        if total > len(self._X):
            size = max(2 * len(self._X), total)
            self._X = np.resize(self._X, (size, self._X.shape[1]))
            self._told = np.resize(self._told, (size, self._told.shape[1]))
        self._X[n:total] = np.concatenate([record.unit for record in records]).reshape(len(records), -1)
        self._told[n:total] = [self._row(record) for record in records]
        self.at.update((record.number, n + i) for i, record in enumerate(records))

    def correct(self, record: Record) -> None:
        """What a trial was told has changed."""
        self._told[self.at[record.number]] = self._row(record)

    def _row(self, record: Record) -> tuple[float, ...]:
        value = math.nan if record.value is None else record.value
        return (
            (value, record.std or 0.0, *amounts(record, self._outcomes))
            if self._outcomes
            else (value, record.std or 0.0)
        )


class Ledger:
    """A ledger in memory; with a subclass, one that is kept elsewhere too and shared with other processes."""

    def __init__(self, space: Space, outcomes: Sequence[OutcomeConstraint] = ()) -> None:
        self.space = space
        self.outcomes = tuple(outcomes)  # constraints that are told with the values
        self.sequence = 0
        self.records: list[Record] = []
        self.taken: set[bytes] = set()  # points in the unit cube, to tell whether one is new
        self._told = Told(space.dim, self.outcomes)
        self._live: dict[int, Record] = {}  # asked and not ended, by number
        self._states: dict[str | None, dict[str, Any]] = {}  # the latest of each signature
        self._with_metadata: set[str | None] = set()  # signatures
        self.counted = 0  # how many a budget pays for: not those in people's hands, nor cancelled ones

    def refresh(self) -> None:
        """Take in what other processes wrote."""

    def best(self, sign: float) -> Record | None:
        """The feasible trial with the largest sign * value; of equals the first."""
        done = [record for record in self.records if record.value is not None and self.feasible(record)]
        return max(done, key=lambda record: sign * (record.value or 0.0), default=None)

    def feasible(self, record: Record) -> bool:
        """Did it keep all constraints?"""
        return is_feasible(record, self.outcomes)

    @property
    def live(self) -> list[Record]:
        """Trials that have not ended, by number."""
        return sorted(self._live.values(), key=lambda record: record.number)

    def history(self, signature: str | None) -> dict[str, Any]:
        """The study as it is now: fields of a method's context, but for the sign of values."""
        pending = [record for record in self.live if record.unit is not None]
        units, metadata = [record.unit for record in pending], [None] * len(self._told.at)
        if signature in self._with_metadata:  # with 100,000 trials told no ask can go through all
            metadata = [_metadata(self.records[i], signature) for i in self._told.at]
        return {
            "X": self._told.X,
            "y": self._told.y,
            "std": self._told.std,
            "constraints": self._told.constraints,
            "candidate_metadata": metadata,
            "pending": np.array(units, dtype=float).reshape(len(units), self.space.dim),
            "pending_metadata": [_metadata(record, signature) for record in pending],
            "number": len(self.records),
            "state": self._states.get(signature, {}),
        }

    def as_of(self, sequence: int) -> "Ledger":
        """The ledger as it was when it had grown to this number."""
        past = Ledger(self.space, self.outcomes)
        past._apply([record.as_of(sequence) for record in self.records if record.asked <= sequence])
        past.sequence = sequence
        return past

    @contextmanager
    def writing(self) -> Iterator[int]:
        """Nobody else writes inside, and what others wrote is known. Gives the sequence number of the event."""
        yield self.sequence + 1

    def put(self, record: Record, sequence: int) -> None:
        """Append an event: a new trial, or the next version of one."""
        self._apply([record])
        self.sequence = sequence

    def tell(self, number: int, result: EvaluationResult, lease: int | None = None) -> bool:
        """Record what came of a trial that has not ended; False if it has, or is another process's by now."""
        with self.writing() as sequence:
            record = self.records[number]
            if record.state in ENDED or record.lease != lease:
                return False
            self.put(told(record, result, sequence), sequence)
        return True

    def observe(self, params: Mapping[str, Any], result: EvaluationResult) -> Record:
        """Add a finished trial that nobody asked for.

        Raises:
            SpaceError: the point is not in the space. Nothing changes.
        """
        with self.writing() as sequence:
            record = told(self._own(params, sequence), result, sequence)
            self.put(record, sequence)
        return record

    def enqueue(self, params: Mapping[str, Any]) -> None:
        """Add a point of the user's own that waits to be evaluated. A SpaceError if it is not in the space."""
        with self.writing() as sequence:
            self.put(replace(self._own(params, sequence), state="waiting", started=time.time()), sequence)

    def _own(self, params: Mapping[str, Any], sequence: int) -> Record:
        """A new trial at a point of the user's own."""
        x = self.space.array(params)
        # Through the array: plain Python types in the space's order, digits unchanged.
        text, unit = json.dumps(self.space.from_array(x)), self.space.encode(x)
        return Record(len(self.records), text, unit, sequence, signature=digest(self.space.to_dict()))

    def cancel(self, number: int) -> bool:
        """A trial will not be evaluated, and its point is free again; False if it has ended."""
        with self.writing() as sequence:
            record = self.records[number]
            if record.state in ENDED:
                return False
            self.put(replace(record, state="cancelled", told=sequence, ended=time.time(), lease=None), sequence)
        return True

    def correct(self, number: int, result: EvaluationResult) -> None:
        """A finished trial was told wrongly. What it was told before stays on record."""
        with self.writing() as sequence:
            record = self.records[number]
            before = (sequence, record.value, record.reason, record.constraints, record.std)
            seconds = result.seconds if result.seconds is not None else record.seconds
            fresh = told(record, replace(result, seconds=seconds), sequence)
            self.put(replace(fresh, told=record.told, ended=record.ended, earlier=(*record.earlier, before)), sequence)

    def to_list(self) -> list[dict[str, Any]]:
        """All trials, as `restore` takes them."""
        return [{"params": r.params} | {key: copy.deepcopy(getattr(r, key)) for key in _KEPT} for r in self.records]

    def restore(self, entries: Sequence[dict[str, Any]], signature: str) -> None:
        """Take in what `to_list` gave, in an empty ledger; suggestions have this signature.

        Raises:
            ValueError and the like: they contradict themselves.
        """
        records, last, taken = list[Record](), 0, set[int]()
        for number, entry in enumerate(entries):
            x, kept = self.space.array(entry["params"]), copy.deepcopy({key: entry[key] for key in _KEPT})
            kept["earlier"] = tuple((int(at), *before) for at, *before in kept["earlier"])
            kept["signature"] = signature[:8] if kept["seen"] is None else signature
            record = Record(number, json.dumps(self.space.from_array(x)), self.space.encode(x), **kept)
            check_record(record, ("running", "waiting", *ENDED))
            events = {record.asked} if record.told is None else {record.asked, record.told}
            if record.asked <= last or record.asked > max(events) or taken & events:
                raise ValueError(f"trial {number}: the order of asks and tells makes no sense")
            last = record.asked
            taken |= events
            records.append(record if record.value is None else replace(record, value=float(record.value)))
        self._apply(records)
        self.sequence = max([0, *taken, *(before[0] for record in records for before in record.earlier)])

    def claim(self, limit: int | None) -> Record | None:
        """Make a waiting trial this process's own; None if there is none, or programs have as many as the limit."""
        if not any(record.state == "waiting" for record in self._live.values()):
            return None
        lease = self.lease
        with self.writing() as sequence:
            waiting = [record for record in self.live if record.state == "waiting"]
            if not waiting or (limit is not None and self.counted - len(waiting) >= limit):
                return None
            record = replace(waiting[0], state="running", lease=lease)
            self.put(record, sequence)
        return record

    def release(self, number: int) -> None:
        """Let a running trial of this process wait for another."""

    def withdraw(self, number: int) -> None:
        """A trial of this process that has not begun will not be evaluated by it."""
        self.cancel(number)

    def maintain(self) -> list[int]:
        """Show that this process lives; let trials of dead ones wait for another. Returns their numbers."""
        return []

    @property
    def lease(self) -> int | None:
        """Under which this process holds its trials."""
        return None

    def _apply(self, records: Sequence[Record]) -> None:
        """Take in versions of trials, new ones by number."""
        ended: list[Record] = []
        for record in records:
            number, state = record.number, record.state
            before = self.records[number].state if number < len(self.records) else None
            if before is None:
                assert number == len(self.records), "trials are numbered without gaps"
                self.records.append(record)
                if record.method_state is not None:
                    self._states[record.signature] = record.method_state
            else:
                self.records[number] = record
                self.counted -= before not in _UNCOUNTED
            self.counted += state not in _UNCOUNTED
            if record.metadata is not None:
                self._with_metadata.add(record.signature)
            if record.unit is not None:
                (self.taken.discard if state == "cancelled" else self.taken.add)(record.unit.tobytes())
            if state not in ENDED:
                self._live[number] = record
                continue
            self._live.pop(number, None)
            if before in ENDED and number in self._told.at:
                self._told.correct(record)
            elif record.unit is not None and state != "cancelled":
                ended.append(record)
        if ended:
            self._told.extend(sorted(ended, key=lambda record: record.told or 0))


def check_record(record: Record, states: Sequence[str] = get_args(State)) -> None:
    """Raise a ValueError if a record could be read but cannot be as it is."""
    state, value, problem = record.state, record.value, ""
    is_number = type(value) in (int, float) and abs(value or 0) <= sys.float_info.max
    if state not in states or (state == "done") != is_number or (value is not None and not is_number):
        problem = f"state {show(state)} does not go with value {show(value)}"
    elif record.asked is None or (record.told is None) == (state in ENDED):
        problem = f"state {show(state)} does not go with its place in the order"
    elif record.method_state is not None and not isinstance(record.method_state, dict):
        problem = "method_state must be an object or null"
    elif not _measures(record):
        problem = (
            f"expected constraints as numbers and std from 0 up, got {show(record.constraints)}, {show(record.std)}"
        )
    elif record.fixed is not None and not isinstance(record.fixed, dict):
        problem = "fixed must be an object or null"
    for key in ("asked", "seen", "told"):
        at = getattr(record, key)
        if not problem and at is not None and (type(at) is not int or at < 0):
            problem = f"{key} must be a whole number; got {show(at)}"
    for seconds in (record.started, record.seconds):
        if not problem and not isinstance(seconds, float | int | None):
            problem = f"expected times in seconds, got {show(seconds)}"
    if problem:
        raise ValueError(f"trial {record.number}: {problem}")


def told(record: Record, result: EvaluationResult, sequence: int) -> Record:
    """The next version of a trial that has ended."""
    return replace(
        record,
        state="failed" if result.value is None else "done",
        told=sequence,
        value=result.value,
        constraints=result.constraints,
        std=result.std,
        reason=result.reason,
        detail=result.detail or None,
        seconds=result.seconds,
        ended=time.time(),
        lease=None,
    )


def amounts(record: Record, outcomes: Sequence[OutcomeConstraint]) -> list[float]:
    """By how much each constraint is broken, NaN where that was not told."""
    told = record.constraints or {}
    return [outcome.amount(told[outcome.name]) if outcome.name in told else math.nan for outcome in outcomes]


def is_feasible(record: Record, outcomes: Sequence[OutcomeConstraint]) -> bool:
    """Did it keep all constraints? One that was not told was not kept."""
    return all(amount <= 0.0 for amount in amounts(record, outcomes))


def misreported(result: EvaluationResult, outcomes: Sequence[OutcomeConstraint]) -> str:
    """What is wrong with the constraints of a result; empty if nothing is."""
    names, told = [outcome.name for outcome in outcomes], result.constraints or {}
    if result.value is None:
        return ""
    unknown = [hinted(name, names) for name in told if name not in names]
    missing = [repr(name) for name in names if name not in told]
    if not unknown and not missing:
        return ""
    problems = [f"unknown {', '.join(unknown)}"] if unknown else []
    problems += [f"missing {', '.join(missing)}"] if missing else []
    known = f"every value comes with {listed(names)}" if names else "the study has none; name them when it begins"
    return f"constraints: {' and '.join(problems)}; {known}"


def _measures(record: Record) -> bool:
    """Are constraints and noise such as can be told?"""
    measured = record.constraints
    if measured is not None and not isinstance(measured, dict):
        return False
    numbers = [*(measured or {}).values(), *([] if record.std is None else [record.std])]
    finite = all(type(number) in (int, float) and abs(number) <= sys.float_info.max for number in numbers)
    return finite and (record.std is None or record.std >= 0.0)


def digest(data: Any) -> str:
    """A short name for JSON data."""
    return hashlib.sha256(json.dumps(data, default=str).encode()).hexdigest()[:8]


def _metadata(record: Record, signature: str | None) -> Any:
    return record.metadata if record.signature == signature else None
