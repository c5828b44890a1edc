"""An Optuna study read as a ledger: its trials as records, its attributes as a memory.

| attribute           | what it keeps                                                                             |
|---------------------|-------------------------------------------------------------------------------------------|
| sumbo:state:SLOT    | what the method left at one of its latest suggestions                                     |
| sumbo:point:SLOT    | a latest suggestion, for workers that suggest before its parameters are stored            |
| sumbo:note:NUMBER   | what the method wrote beside a suggestion; few methods do                                 |

Each is JSON text in pieces: an attribute holds 65,535 bytes in MySQL, and the model of a thousand parameters is larger.
Trials take the slots in turn, so that no two that are made at the same time write the same, and that there are few.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any

import numpy as np
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from sumbo._typing import Array
from sumbo.integrations.optuna.translation import Translation
from sumbo.methods import Method, method_to_dict, randomness
from sumbo.regret import Direction
from sumbo.space.constraints import OutcomeConstraint
from sumbo.space.region import Region
from sumbo.study.ledger import ENDED, Ledger, Record, State, Told, digest

REASON = "sumbo:reason"  # the attribute of a trial that says why it failed
STATE, _POINT, _NOTE = "sumbo:state", "sumbo:point", "sumbo:note"

_STATES, _POINTS = 4, 64  # slots
_ROUNDS = 20  # at finding a point that no other worker took at the same moment
_PIECE = 30_000  # characters; as JSON within JSON they take at most twice as many bytes

_RECORDED: dict[str, State] = {"COMPLETE": "done", "RUNNING": "running", "WAITING": "waiting"}  # others failed

# What the order of telling goes by: where two are told at the same moment, or MySQL drops fractions, by number.
_when = attrgetter("told", "number")


def constraints_of(trial: FrozenTrial) -> dict[str, float]:
    """What was recorded of a trial's constraints, by name; those without one are c0, c1, ..."""
    if hasattr(trial, "constraints"):
        found = trial.constraints
    else:  # before Optuna 5
        found = {str(i): value for i, value in enumerate(trial.system_attrs.get("constraints") or ())}
    unnamed = {name: f"c{name}" for name in found if name.isdigit() and f"c{name}" not in found}
    return {unnamed.get(name, name): float(value) for name, value in found.items()}


def outcomes_of(trials: Sequence[FrozenTrial], method: Method) -> tuple[OutcomeConstraint, ...]:
    """The constraints that trials have, if the method learns them.

    Where trials differ, those that most have together: whoever breaks another counts as failed.
    """
    if not method.models_constraints:
        return ()
    sets = Counter(tuple(sorted(_amounts(trial))) for trial in trials)
    names, _ = max(sets.items(), key=lambda item: (bool(item[0]), item[1]), default=((), 0))
    return tuple(map(OutcomeConstraint, names))


def _amounts(trial: FrozenTrial) -> dict[str, float]:
    """The constraints that can be learned from."""
    return {name: amount for name, amount in constraints_of(trial).items() if math.isfinite(amount)}


class Attributes:
    """The user attributes of a study.

    Hyperband shows samplers a part of the study at a time, which has none: there a dict in memory must do.
    """

    def __init__(self, study: Study, spare: dict[str, Any]) -> None:
        self._study = study
        self._spare = spare
        self._write: Callable[[str, Any], None] = getattr(study, "set_user_attr", spare.__setitem__)
        self.refresh()

    def refresh(self) -> None:
        """Look at what is there now."""
        self._known: Mapping[str, Any] = getattr(self._study, "user_attrs", self._spare)

    def write(self, key: str, data: Any) -> None:
        """Keep data under names that begin with the key."""
        text = json.dumps(data)
        pieces = [text[i : i + _PIECE] for i in range(0, len(text), _PIECE)]
        for i, piece in enumerate(pieces):
            self._write(f"{key}:{i}", [digest(text), len(pieces), piece])

    def read(self, key: str) -> Any:
        """What was kept; None if nothing was, or if another worker was writing it at that moment."""
        try:
            name, count, _ = self._known[f"{key}:0"]
            text = "".join(self._known[f"{key}:{i}"][2] for i in range(count))
            return json.loads(text) if digest(text) == name else None
        except (KeyError, IndexError, TypeError, ValueError):
            return None

    def read_slots(self, key: str, slots: int, **wanted: Any) -> list[dict[str, Any]]:
        """What was kept in slots, where it has these entries."""
        kept = [self.read(f"{key}:{slot}") for slot in range(slots)]
        return [data for data in kept if data is not None and wanted.items() <= data.items()]


class StudyLedger(Ledger):
    """The trials of a study that are in one search space. Only what is new is translated at the next look.

    Records are as people see them, but for their params, which are the study's. What a pruned trial is worth to a model
    depends on the others: `history` says it. The points of running trials are known from the moment at which they are
    suggested.
    """

    def __init__(
        self,
        translation: Translation,
        method: Method,
        direction: Direction,
        outcomes: Sequence[OutcomeConstraint] = (),
    ) -> None:
        super().__init__(translation.space, outcomes)
        self.translation = translation
        self._learned = {outcome.name for outcome in outcomes}
        self.signature = translation.place + digest(method_to_dict(method))
        if outcomes:
            self.signature += digest(list(map(str, outcomes)))[:4]
        self._sign = 1.0 if direction == "maximize" else -1.0
        self.number = 0  # of the trial that a suggestion is for
        self._trials: Sequence[FrozenTrial] = []
        self._attributes: Attributes  # of the last look
        self._state: dict[str, Any] = {}  # what the method left
        self._pruned: dict[int, float] = {}  # last values
        self._running: dict[int, tuple[Array, Any]] = {}  # points and notes
        self._unplaced: set[int] = set()  # running trials whose parameters are not all stored, by number
        self._suggested: dict[int, Array] = {}  # their points

    def continued_by(self, trials: Sequence[FrozenTrial]) -> bool:
        """Are these the trials that were read before, and more?"""
        known = zip(self.records, self._trials, trials, strict=False)
        return len(trials) >= len(self.records) and all(
            _is_same(record, before, now) for record, before, now in known if before is not now
        )

    def read(self, trials: Sequence[FrozenTrial], attributes: Attributes, own: int | None = None) -> None:
        """Take in what is new. The trial with the number `own` is about to get its point."""
        fresh = [*sorted(self._live), *range(len(self.records), len(trials))]
        self._trials, self._attributes, self._running = trials, attributes, {}
        self.number = len(trials) if own is None else own
        self._unplaced = {trials[i].number for i in fresh if self._lacks(trials[i])}
        self._read_points()
        last = [self.records[i] for i in list(self._told.at)[-1:]]
        units = self.translation.units([trials[i].params for i in fresh])
        records = [self._record(i, trials[i], unit) for i, unit in zip(fresh, units, strict=True)]
        self._apply(records)
        # Clocks of other machines are late, and trials may be copied from another study.
        if last and any(_when(record) < _when(last[0]) for record in records if record.told is not None):
            self._told = Told(self.space.dim, self.outcomes)
            self._told.extend(sorted((r for r in self.records if r.told is not None and r.unit is not None), key=_when))
        # Trials told that became fewer, say because a range did, are not those that were learned from.
        kept = attributes.read_slots(STATE, _STATES, signature=self.signature)
        fit = [s for s in kept if s["told"] <= len(self._told.at) and s["number"] != self.number]
        self._state = max(fit, key=lambda s: s["number"], default={"state": {}})["state"]

    def _record(self, i: int, trial: FrozenTrial, unit: Array | None) -> Record:
        record = record_of(i, trial, self._learned)
        if unit is None and record.state == "failed" and not trial.params.keys().isdisjoint(self.space.names):
            # It ended before it asked for all: what came of it does not depend on the others, so any values are right.
            others = np.random.default_rng(trial.number).random(self.space.dim)
            unit = self.translation.completed(trial.params, others)
        unit = self._suggested.get(trial.number, unit) if self._lacks(trial) else unit
        if unit is None:
            return record
        # What the method wrote beside its suggestion, if the trial has that point.
        kept = self._attributes.read(f"{_NOTE}:{trial.number}")
        fits = kept is not None and (kept["signature"], kept["point"]) == (self.signature, digest(unit.tolist()))
        note = kept["note"] if fits else None
        if record.told is None:
            if trial.number != self.number:
                self._running[i] = unit, note
            return record
        if trial.state == TrialState.PRUNED and (value := _value(trial, self._learned)) is not None:
            self._pruned[i] = value
        return replace(record, unit=unit, metadata=note)

    def _lacks(self, trial: FrozenTrial) -> bool:
        """Is it running, and has it not asked for all parameters yet?"""
        return trial.state == TrialState.RUNNING and not self.translation.distributions.keys() <= trial.params.keys()

    def _read_points(self) -> None:
        """Take in the latest suggestions in this space, by any worker, for trials whose parameters are not stored."""
        kept = self._attributes.read_slots(_POINT, _POINTS, place=self.translation.place)
        both = self._suggested | {p["number"]: np.array(p["unit"]) for p in kept}
        last = self._trials[-1].number if self._trials else -1
        self._suggested = {n: unit for n, unit in both.items() if n in self._unplaced or n > last}

    def taken_by_others(self) -> set[bytes]:
        """The points of all trials but of the one that is about to get its own."""
        running = [unit for unit, _ in self._running.values()]
        suggested = [unit for number, unit in self._suggested.items() if number != self.number]
        return self.taken | {unit.tobytes() for unit in (*running, *suggested)}

    def history(self, signature: str | None) -> dict[str, Any]:
        """The study as it is for the trial that a suggestion is for."""
        found = super().history(None)  # metadata of other methods or spaces were left out
        running = [self._running[i] for i in sorted(self._running)]
        told = found["constraints"]
        if told is not None and not np.isfinite(told).all(axis=1).any():
            found["constraints"] = None  # those that have them still run, or are out of the present ranges
        return found | {
            "y": self._with_pruned(found["y"]),
            "pending": np.array([unit for unit, _ in running], dtype=float).reshape(len(running), self.space.dim),
            "pending_metadata": [note for _, note in running],
            "number": self.number,
            "state": self._state,
        }

    def _with_pruned(self, y: Array) -> Array:
        """Values, with those of pruned trials: the last intermediate one, no better than the median of completed ones.

        An intermediate value alone may flatter, for instance when a cost adds up over the steps, and a trial is pruned
        because it did worse than others. Left out, it would be asked for again. Without any value it counts as failed.
        """
        complete = y[np.isfinite(y)]
        limit = float(np.median(self._sign * complete)) if len(complete) else math.inf
        for i, value in self._pruned.items():
            y[self._told.at[i]] = self._sign * min(self._sign * value, limit)
        return y

    def expect(self, numbers: Sequence[int], unit: Array) -> None:
        """Running trials that have not asked for anything yet are likely to get this point."""
        self._suggested |= dict.fromkeys(numbers, unit)

    def claimed(self, point: Array, region: Region, rng: np.random.Generator) -> Array:
        """A point that is this trial's alone, near the one suggested, in the region.

        It is written where all workers see it, and then looked for among theirs: of two that write the same point at
        the same moment, at least one finds the other's and moves on.
        """
        taken = self.taken_by_others()
        for _ in range(_ROUNDS):
            _, unit = randomness.nearest_untried(region, point, taken, rng)
            self._suggested[self.number] = unit
            kept = {"place": self.translation.place, "number": self.number, "unit": unit.tolist()}
            self._attributes.write(f"{_POINT}:{self.number % _POINTS}", kept)
            self._attributes.refresh()
            self._read_points()
            taken = self.taken_by_others()
            used_up = self.space.size is not None and len(taken) >= self.space.size
            if unit.tobytes() not in taken or region.fixed or used_up:
                break
        return unit

    def keep_note(self, unit: Array, note: Any) -> None:
        kept = {"signature": self.signature, "point": digest(unit.tolist()), "note": note}
        self._attributes.write(f"{_NOTE}:{self.number}", kept)

    def keep_state(self, state: dict[str, Any]) -> None:
        kept = {"signature": self.signature, "told": len(self._told.at), "number": self.number, "state": state}
        self._attributes.write(f"{STATE}:{self.number % _STATES}", kept)


def direction_of(study: Study) -> Direction:
    return "maximize" if study.direction == StudyDirection.MAXIMIZE else "minimize"


def record_of(i: int, trial: FrozenTrial, learned: Collection[str] = ()) -> Record:
    """The trial as people see it, without its point; pruned and infinite ones failed.

    So did those that break a constraint, but for constraints that are learned on their own.
    """
    state, reason = _RECORDED.get(trial.state.name, "failed"), trial.user_attrs.get(REASON)
    value = _value(trial, learned) if state == "done" else None
    if state == "done" and value is None:
        state = "failed"
        reason = "breaks a constraint" if _is_finite(trial) else f"value was {trial.value}"
    elif trial.state == TrialState.PRUNED:
        reason = reason or "pruned"
    ended = trial.datetime_complete
    return Record(
        i,
        "{}",
        None,
        asked=i,
        state=state,
        told=None if ended is None else (ended - datetime(1970, 1, 1)) // timedelta(microseconds=1),
        value=value,
        constraints=_amounts(trial) or None,
        reason=None if reason is None else str(reason),
        seconds=None if trial.duration is None else max(trial.duration.total_seconds(), 0.0),
    )


def _value(trial: FrozenTrial, learned: Collection[str]) -> float | None:
    """A value to learn from; None where it is not finite, or breaks a constraint that is not learned on its own."""
    feasible = all(amount <= 0.0 or name in learned for name, amount in constraints_of(trial).items())
    return trial.value if feasible and _is_finite(trial) else None


def _is_finite(trial: FrozenTrial) -> bool:
    return trial.value is not None and math.isfinite(trial.value)


def _is_same(record: Record, before: FrozenTrial, now: FrozenTrial) -> bool:
    """Is it the same trial? One that has ended does not change."""
    if record.state in ENDED:
        return before == now
    return before.number == now.number and before.datetime_start in (None, now.datetime_start)
