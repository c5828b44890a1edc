"""What the sampler writes beside a trial, and reads back in whatever process the study goes on.

Everything is in the trial's system attributes, as JSON text in pieces: `sumbo:point:0`, ... is where the trial is, for
workers that suggest before its parameters are stored; `sumbo:state:0`, ... is what the method left when it made the
suggestion, where that changed. An attribute holds 65,535 bytes in MySQL (in SQLite and PostgreSQL any number), and the
model of a thousand parameters is larger.
"""

import itertools
import json
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

from sumbo.integrations.optuna.translation import Translation
from sumbo.kernels import Array

_PIECE = 30_000  # characters; as JSON within JSON they take at most twice as many bytes

POINT, STATE = "sumbo:point", "sumbo:state"


def write(storage: BaseStorage, trial: FrozenTrial, key: str, data: Any) -> None:
    """Keep the data with the trial."""
    text = json.dumps(data)
    pieces = [text[i : i + _PIECE] for i in range(0, len(text), _PIECE)]
    for i, piece in enumerate(pieces):
        storage.set_trial_system_attr(trial._trial_id, f"{key}:{i}", [len(pieces), piece])


def read(trial: FrozenTrial, key: str, signature: str) -> Any:
    """What was kept with the trial under this signature; None if nothing was, or if it is incomplete."""
    attributes = trial.system_attrs
    if f"{key}:0" not in attributes:
        return None
    try:
        count, _ = attributes[f"{key}:0"]
        data = json.loads("".join(attributes[f"{key}:{i}"][1] for i in range(count)))
    except (KeyError, ValueError):  # another worker is writing the next piece at this moment
        return None
    return data if data.get("signature") == signature else None


def last_state(trials: Sequence[FrozenTrial], own: int, signature: str, told: int) -> dict[str, Any]:
    """The state that the latest suggestion left; empty if there is none that goes with this history."""
    return latest_state(trials, own, signature, told)[1]


def latest_state(
    trials: Sequence[FrozenTrial], own: int, signature: str, told: int
) -> tuple[int | None, dict[str, Any]]:
    """The same, with the number of the trial that has it."""
    for trial in reversed(trials):
        kept = None if trial.number == own else read(trial, STATE, signature)
        # A history that shrank, say because a range did, is not the one that was learned from.
        if kept is not None and kept["told"] <= told:
            return trial.number, dict(kept["state"])
    return None, {}


def ranges(numbers: Sequence[int]) -> str:
    """Trial numbers, ascending, in short: "0-12,14"."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(f"{a}-{b}" if b > a else str(a) for a, b in parts)


def from_ranges(text: str) -> list[int]:
    """The numbers that `ranges` wrote. Raises a ValueError where it did not."""
    pairs = [part.split("-") for part in text.split(",") if part]
    return [number for pair in pairs for number in range(int(pair[0]), int(pair[-1]) + 1)]


@dataclass(frozen=True, slots=True)
class History:
    """A study as a method wants to see it: `Query` says what most of these are.

    Attributes:
        told, running: numbers of the trials that X and `pending` are of, ascending.
        moves: how often each of those running had moved away from another's point by then.
    """

    X: Array
    y: Array
    notes: list[Any]
    pending: Array
    pending_notes: list[Any]
    told: list[int]
    running: list[int]
    moves: list[int]


@dataclass(frozen=True, slots=True)
class _Place:
    """A trial's point in the unit cube, None if it has none; what the method noted; what it is worth as it stands.

    `earlier` has the points that it moved away from, because another worker had chosen the same at the same moment.
    """

    trial: FrozenTrial
    point: Array | None
    note: Any
    value: float
    earlier: list[Any]


class Reader:
    """Reads a study's history in one search space. Remembers where trials are, which only saves time.

    The first trials up to one that has not finished are gone through once (`_settled`), as long as the storage hands
    out the same objects: with 100,000 of them a loop over all, several times for each suggestion, would take a second.
    """

    def __init__(self, translation: Translation) -> None:
        self.translation = translation
        self._known: dict[int, _Place] = {}
        self._running: dict[int, tuple[Any, _Place]] = {}
        self._forget()

    def _forget(self) -> None:
        self._settled: list[FrozenTrial] = []
        self._stateful: list[FrozenTrial] = []  # of those, the ones with a state of some method
        self._in_order: list[_Place] = []  # the places of those, in the order of telling
        self._points_in_order = self._points([])
        self._bytes: set[bytes] = set()

    def _settle(self, trials: Sequence[FrozenTrial]) -> int:
        """Go on with what has finished since; how many trials need no further look."""
        if len(trials) < len(self._settled) or not all(map(operator.is_, self._settled, trials)):
            self._forget()
        count = len(self._settled)
        fresh = list(
            itertools.takewhile(lambda trial: trial.state.is_finished(), itertools.islice(trials, count, None))
        )
        if fresh:
            places = [place for place in map(self._place, fresh) if place.point is not None]
            self._settled += fresh
            self._stateful += [trial for trial in fresh if f"{STATE}:0" in trial.system_attrs]
            self._bytes |= {place.point.tobytes() for place in places if place.point is not None}
            self._in_order, self._points_in_order = self._followed_by(places)
        return len(self._settled)

    def _followed_by(self, places: list[_Place]) -> tuple[list[_Place], Array]:
        """The settled places and these, and their points, in the order of telling."""
        # Where two are told at the same moment, or MySQL drops fractions, by number.
        places = sorted(places, key=_when)
        if not places:
            return self._in_order, self._points_in_order
        both = self._in_order + places
        if not self._in_order or _when(self._in_order[-1]) < _when(places[0]):
            return both, np.concatenate([self._points_in_order, self._points(places)])
        both.sort(key=_when)
        return both, self._points(both)

    def history(self, trials: Sequence[FrozenTrial], own: int, sign: float) -> History:
        """All trials but one's own. Those that are not in the present search space have no part in it."""
        count = self._settle(trials)
        places = self._places(trials if own < count else trials[count:], own)
        told = [place for place in places if place.trial.state.is_finished()]
        running = [place for place in places if not place.trial.state.is_finished()]
        if own < count:
            return self._history(told, running, sign)
        return self._ordered_history(*self._followed_by(told), running, sign)

    def stateful(self, trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        """The trials that may have a state of the method: most have none."""
        count = self._settle(trials)
        return [*self._stateful, *trials[count:]]

    def history_as_of(
        self,
        trials: Sequence[FrozenTrial],
        told: Sequence[int],
        running: Sequence[int],
        moves: Sequence[int],
        sign: float,
    ) -> History | None:
        """The history when these were told and those were running; None if not all of them are here now."""
        by_number = {trial.number: trial for trial in trials}
        if not all(number in by_number for number in (*told, *running)):
            return None
        told_ = [self._place(by_number[number]) for number in told]
        running_ = [
            self._before(self._place(by_number[number]), count) for number, count in zip(running, moves, strict=True)
        ]
        if any(place.point is None for place in (*told_, *running_)):
            return None
        if not all(place.trial.state.is_finished() for place in told_):
            return None
        return self._history(told_, running_, sign)

    def _history(self, told: list[_Place], running: list[_Place], sign: float) -> History:
        told = sorted(told, key=_when)
        return self._ordered_history(told, self._points(told), running, sign)

    def _ordered_history(self, told: list[_Place], X: Array, running: list[_Place], sign: float) -> History:
        return History(
            X=X,
            y=_values(told, sign),
            notes=[place.note for place in told],
            pending=self._points(running),
            pending_notes=[place.note for place in running],
            told=sorted(place.trial.number for place in told),
            running=[place.trial.number for place in running],
            moves=[len(place.earlier) for place in running],
        )

    def _before(self, place: _Place, moves: int) -> _Place:
        """The place when it had moved so many times."""
        if moves >= len(place.earlier):
            return place
        return replace(place, point=self.translation.from_numbers(place.earlier[moves]), earlier=place.earlier[:moves])

    def taken(self, trials: Sequence[FrozenTrial], own: int) -> set[bytes]:
        """The bytes of the points of all trials but one's own, to tell whether a point is new."""
        count = self._settle(trials)
        if own < count:
            return {place.point.tobytes() for place in self._places(trials, own) if place.point is not None}
        rest = self._places(trials[count:], own)
        return self._bytes | {place.point.tobytes() for place in rest if place.point is not None}

    def _points(self, places: Sequence[_Place]) -> Array:
        return np.array([place.point for place in places]).reshape(len(places), self.translation.space.dim)

    def _places(self, trials: Sequence[FrozenTrial], own: int) -> list[_Place]:
        others = [trial for trial in trials if trial.state != TrialState.WAITING and trial.number != own]
        return [place for place in map(self._place, others) if place.point is not None]

    def _place(self, trial: FrozenTrial) -> _Place:
        if not trial.state.is_finished():
            return self._running_place(trial)
        known = self._known.get(trial.number)
        # A finished trial does not change. Storages that hand out a new copy each time take a little longer.
        if known is not None and (known.trial is trial or known.trial == trial):
            return known
        self._running.pop(trial.number, None)
        point, note, earlier = self._located(trial)
        place = self._known[trial.number] = _Place(trial, point, note, _value(trial), earlier)
        return place

    def _running_place(self, trial: FrozenTrial) -> _Place:
        """The same for one that may change, even in place: what its place depends on is kept and compared."""
        basis = (dict(trial.params), {key: x for key, x in trial.system_attrs.items() if key.startswith(POINT)})
        before, known = self._running.get(trial.number, (None, None))
        if known is None or before != basis:
            point, note, earlier = self._located(trial)
            known = _Place(trial, point, note, _value(trial), earlier)
            self._running[trial.number] = (basis, known)
        return replace(known, trial=trial)

    def _located(self, trial: FrozenTrial) -> tuple[Array | None, Any, list[Any]]:
        point = self.translation.unit(trial.params)
        record = read(trial, POINT, self.translation.place)
        suggested = None if record is None else self.translation.from_numbers(record["x"])
        if suggested is None:
            return point, None, []
        earlier = record.get("earlier", [])
        note = record["note"] if record["by"] == self.translation.signature else None
        if not self.translation.distributions.keys() <= trial.params.keys():
            return suggested, note, earlier  # it has not asked for all of its parameters yet
        same = point is not None and np.array_equal(point, suggested)
        return (point, note, earlier) if same else (point, None, [])


def _when(place: _Place) -> Any:
    """What the order of telling goes by."""
    return place.trial.datetime_complete, place.trial.number


def _values(places: Sequence[_Place], sign: float) -> Array:
    """What trials are worth, larger is better; NaN for those that failed.

    A pruned trial has its last intermediate value. Optuna's GPSampler ignores such trials and its TPESampler ranks them
    behind all others. Neither suits a model of values: the first asks again where pruning ended, and the intermediate
    value alone may flatter, for instance when a cost adds up over the steps. It was pruned because it did worse than
    others, so it counts as no better than the median of completed trials. Without any value it counts as failed.
    """
    values = sign * np.array([place.value for place in places], dtype=float)
    pruned = np.array([place.trial.state == TrialState.PRUNED for place in places], dtype=bool)
    complete = values[~pruned & np.isfinite(values)]
    if pruned.any() and len(complete):
        values[pruned] = np.minimum(values[pruned], np.median(complete))
    return values


def _value(trial: FrozenTrial) -> float:
    """The trial's own value; NaN where it is not finite or breaks a constraint: the search is to keep away."""
    if trial.state not in (TrialState.COMPLETE, TrialState.PRUNED) or trial.value is None:
        return math.nan
    broken = any(constraint > 0.0 for constraint in trial.constraints.values())
    return math.nan if broken or not math.isfinite(trial.value) else trial.value
