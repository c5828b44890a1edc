"""An Optuna study read as a ledger, and what the sampler keeps in the study's user attributes.

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from sumbo._typing import Array
from sumbo.integrations.optuna.translation import Translation
from sumbo.methods import Method, method_to_dict
from sumbo.regret import Direction
from sumbo.study.ledger import ENDED, History, Ledger, Record, State, Told, digest

REASON = "sumbo:reason"  # the attribute of a trial that says why it failed

_STATE, _POINT, _NOTE = "sumbo:state", "sumbo:point", "sumbo:note"
_STATES, _POINTS = 4, 64  # slots
_PIECE = 30_000  # characters; as JSON within JSON they take at most twice as many bytes

_RECORDED: dict[TrialState, State] = {
    TrialState.COMPLETE: "done",
    TrialState.FAIL: "failed",
    TrialState.PRUNED: "failed",
    TrialState.RUNNING: "running",
    TrialState.WAITING: "waiting",
}


class Attributes:
    """The user attributes of a study.

    Hyperband shows samplers a part of the study at a time, which has none: there a dict in memory must do.
    """

    def __init__(self, study: Study, spare: dict[str, Any]) -> None:
        self._study = study
        self._spare = spare
        self._write: Callable[[str, Any], None] = getattr(study, "set_user_attr", spare.__setitem__)
        self._known: Mapping[str, Any] = {}

    def refresh(self) -> "Attributes":
        """Look at what is there now."""
        self._known = getattr(self._study, "user_attrs", self._spare)
        return self

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

    @property
    def has_states(self) -> bool:
        """Did a sampler of sumbo leave anything?"""
        return any(key.startswith(_STATE) for key in self._known)


class StudyLedger(Ledger):
    """The trials of a study that are in one search space. Only what is new is translated at the next look.

    Records are as people see them. What a pruned trial is worth to a model depends on the others: `history` says it.
    The points of running trials are known from the moment at which they are suggested.
    """

    def __init__(self, translation: Translation, method: Method, direction: Direction) -> None:
        super().__init__(translation.space)
        self.translation = translation
        self.signature = translation.place + digest(method_to_dict(method))
        self._sign = 1.0 if direction == "maximize" else -1.0
        self.number = 0  # of the trial that a suggestion is for
        self._trials: Sequence[FrozenTrial] = []
        self._state: dict[str, Any] = {}  # what the method left
        self._pruned: dict[int, float] = {}  # last values
        self._running: dict[int, tuple[Array, Any]] = {}  # points and notes
        self._unplaced: set[int] = set()  # running trials whose parameters are not all stored, by number
        self._suggested: dict[int, Array] = {}  # their points

    # --- reading ---

    def continued_by(self, trials: Sequence[FrozenTrial]) -> bool:
        """Are these the trials that were read before, and more?"""
        known = zip(self.records, self._trials, trials, strict=False)
        return len(trials) >= len(self.records) and all(
            _is_same(record, before, now) for record, before, now in known if before is not now
        )

    def read(self, trials: Sequence[FrozenTrial], attributes: Attributes, own: int | None = None) -> None:
        """Take in what is new. The trial with the number `own` is about to get its point."""
        fresh = [*sorted(self._live), *range(len(self.records), len(trials))]
        self._trials, self._running = trials, {}
        self.number = len(trials) if own is None else own
        self._unplaced = {trials[i].number for i in fresh if self._lacks(trials[i])}
        self.read_points(attributes)
        last = [self.records[i] for i in self._told.numbers[-1:]]
        records = [self._record(i, trials[i], attributes) for i in fresh]
        self._apply(records)
        # Clocks of other machines are late, and trials may be copied from another study.
        if last and any(_when(record) < _when(last[0]) for record in records if record.told is not None):
            self._told = Told(self.space.dim)
            ended = [r for r in self.records if r.told is not None and r.unit is not None and r.state != "cancelled"]
            self._told.extend(sorted(ended, key=_when))
        self._state = self._latest_state(attributes)

    def _record(self, i: int, trial: FrozenTrial, attributes: Attributes) -> Record:
        record, point = record_of(i, trial), self.translation.point(trial.params)
        if record.state == "failed" and point is None:
            point = self.translation.point(self.translation.filled(trial.params, trial.number))
        if record.told is None:
            unit = self._suggested.get(trial.number) if self._lacks(trial) else None if point is None else point[1]
            if unit is not None and trial.number != self.number:
                self._running[i] = unit, self._note(trial.number, unit, attributes)
            return record
        if point is None:
            return record
        if trial.state == TrialState.PRUNED and (value := _value(trial)) is not None:
            self._pruned[i] = value
        numbers, unit = point
        note = self._note(trial.number, unit, attributes)
        return replace(record, text=json.dumps(numbers), unit=unit, metadata=note)

    def _lacks(self, trial: FrozenTrial) -> bool:
        """Is it running, and has it not asked for all parameters yet?"""
        return trial.state == TrialState.RUNNING and not self.translation.distributions.keys() <= trial.params.keys()

    def _note(self, number: int, unit: Array, attributes: Attributes) -> Any:
        """What the method wrote beside its suggestion, if the trial has that point."""
        kept = attributes.read(f"{_NOTE}:{number}")
        fits = kept is not None and (kept["signature"], kept["point"]) == (self.signature, digest(unit.tolist()))
        return kept["note"] if fits else None

    def _latest_state(self, attributes: Attributes) -> dict[str, Any]:
        """What the latest suggestion left; empty if there is none that goes with these trials."""
        kept = [attributes.read(f"{_STATE}:{slot}") for slot in range(_STATES)]
        # Trials told that became fewer, say because a range did, are not those that were learned from.
        told = len(self._told.numbers)
        fit = [s for s in kept if s is not None and s["signature"] == self.signature and s["told"] <= told]
        others = [s for s in fit if s["number"] != self.number]
        return max(others, key=lambda s: s["number"], default={"state": {}})["state"]

    def read_points(self, attributes: Attributes) -> None:
        """Take in the latest suggestions in this space, by any worker, for trials whose parameters are not stored."""
        kept = [attributes.read(f"{_POINT}:{slot}") for slot in range(_POINTS)]
        here = [p for p in kept if p is not None and p["place"] == self.translation.place]
        both = self._suggested | {p["number"]: np.array(p["unit"]) for p in here}
        last = self._trials[-1].number if self._trials else -1
        self._suggested = {n: unit for n, unit in both.items() if n in self._unplaced or n > last}

    def taken_by_others(self) -> set[bytes]:
        """The points of all trials but of the one that is about to get its own."""
        running = [unit for unit, _ in self._running.values()]
        suggested = [unit for number, unit in self._suggested.items() if number != self.number]
        return self.taken | {unit.tobytes() for unit in (*running, *suggested)}

    def history(self, signature: str | None) -> History:
        """The study as it is for the trial that a suggestion is for."""
        found = super().history(None)  # metadata of other methods or spaces were left out
        running = [self._running[i] for i in sorted(self._running)]
        return replace(
            found,
            y=self._with_pruned(found.y),
            pending=np.array([unit for unit, _ in running], dtype=float).reshape(len(running), self.space.dim),
            pending_metadata=[note for _, note in running],
            number=self.number,
            state=self._state,
        )

    def _with_pruned(self, y: Array) -> Array:
        """Values, with those of pruned trials.

        A pruned trial has its last intermediate value. Optuna's GPSampler ignores such trials and its TPESampler ranks
        them behind all others. Neither suits a model of values: the first asks again where pruning ended, and the
        intermediate value alone may flatter, for instance when a cost adds up over the steps. It was pruned because it
        did worse than others, so it counts as no better than the median of completed trials. Without any value it
        counts as failed.
        """
        complete = y[np.isfinite(y)]
        limit = float(np.median(self._sign * complete)) if len(complete) else math.inf
        for i, value in self._pruned.items():
            y[self._told.at[i]] = self._sign * min(self._sign * value, limit)
        return y

    # --- writing ---

    def keep_point(self, attributes: Attributes, unit: Array) -> None:
        """Let all workers know what is suggested."""
        self._suggested[self.number] = unit
        kept = {"place": self.translation.place, "number": self.number, "unit": unit.tolist()}
        attributes.write(f"{_POINT}:{self.number % _POINTS}", kept)

    def keep_note(self, attributes: Attributes, unit: Array, note: Any) -> None:
        kept = {"signature": self.signature, "point": digest(unit.tolist()), "note": note}
        attributes.write(f"{_NOTE}:{self.number}", kept)

    def keep_state(self, attributes: Attributes, state: dict[str, Any]) -> None:
        told = len(self._told.numbers)
        kept = {"signature": self.signature, "told": told, "number": self.number, "state": state}
        attributes.write(f"{_STATE}:{self.number % _STATES}", kept)


def direction_of(study: Study) -> Direction:
    return "maximize" if study.direction == StudyDirection.MAXIMIZE else "minimize"


def record_of(i: int, trial: FrozenTrial) -> Record:
    """The trial as people see it, without its point; pruned, infinite and infeasible ones failed."""
    state, reason = _RECORDED[trial.state], trial.user_attrs.get(REASON)
    value = _value(trial) if state == "done" else None
    if state == "done" and value is None:
        state = "failed"
        reason = f"value was {trial.value}" if _is_feasible(trial) else "breaks a constraint"
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
        reason=None if reason is None else str(reason),
        seconds=None if trial.duration is None else max(trial.duration.total_seconds(), 0.0),
    )


def _value(trial: FrozenTrial) -> float | None:
    """A value to learn from; None where it is not finite or breaks a constraint: the search is to keep away."""
    value = trial.value
    return value if value is not None and math.isfinite(value) and _is_feasible(trial) else None


def _is_feasible(trial: FrozenTrial) -> bool:
    if hasattr(trial, "constraints"):
        return all(constraint <= 0.0 for constraint in trial.constraints.values())
    return all(constraint <= 0.0 for constraint in trial.system_attrs.get("constraints") or ())  # before Optuna 5


def _is_same(record: Record, before: FrozenTrial, now: FrozenTrial) -> bool:
    """Is it the same trial? One that has ended does not change."""
    if record.state in ENDED:
        return before == now
    return before.number == now.number and before.datetime_start in (None, now.datetime_start)


def _when(record: Record) -> tuple[int, int]:
    """What the order of telling goes by: where two are told at the same moment, or MySQL drops fractions, by number."""
    assert record.told is not None
    return record.told, record.number
