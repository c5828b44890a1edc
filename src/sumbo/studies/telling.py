"""Results that people tell: every row is checked against the study before the first is recorded."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from sumbo.errors import TellError
from sumbo.studies import owners
from sumbo.studies.objectives import Outcome
from sumbo.studies.sheets import Row, Sheet, raise_problems, same_value
from sumbo.studies.store import REASON, Store, owner_of


@dataclass
class Told:
    """Which trials were told, added as rows of one's own, corrected; and how many rows were there already."""

    told: list[int] = field(default_factory=list)
    added: list[int] = field(default_factory=list)
    replaced: list[int] = field(default_factory=list)
    known: int = 0


def tell_sheet(store: Store, sheet: Sheet, path: str | Path, *, replace: bool) -> Told:
    """Record a table of results.

    Raises:
        SheetError: rows do not fit the study; all are listed, and nothing was recorded.
    """
    trials = {trial.number: trial for trial in store.trials()}
    known = Counter(_key(t.params, _outcome(t)) for t in trials.values() if t.state.is_finished() and not owner_of(t))
    done = Told()
    problems: list[str] = []
    steps: list[Callable[[], None]] = []
    for row in sheet.rows:
        try:
            step = _own(store, row, known, done) if row.number is None else _step(store, row, trials, done, replace)
        except TellError as error:
            problems.append(f"line {row.line}: {error}")
            continue
        steps.append(step)
    raise_problems(path, problems)
    for step in steps:
        step()
    return done


def tell_one(store: Store, number: int, outcome: Outcome, *, replace: bool) -> Told:
    """Record one result.

    Raises:
        TellError: there is no such trial, or it is not to be told.
    """
    done = Told()
    _step(store, Row(0, number, {}, outcome), {t.number: t for t in store.trials()}, done, replace)()
    return done


def _step(store: Store, row: Row, trials: dict[int, FrozenTrial], done: Told, replace: bool) -> Callable[[], None]:
    number, outcome = row.number, row.outcome
    assert number is not None
    trial = trials.get(number)
    if trial is None:
        has = f"trials 0 to {len(trials) - 1}" if trials else "no trials"
        raise TellError(f"there is no trial {number}; the study has {has}. Leave the number empty in a row of your own")
    _check_params(store, row, trial)
    if trial.state.is_finished():
        return _finished(store, trial, outcome, done, replace)
    owner = owner_of(trial)
    if trial.state == TrialState.WAITING or not trial.params:
        raise TellError(f"trial {number} has not been handed out; sumbo run will evaluate it")
    if owner is not None and owner.get("by") == owners.RUN and not owners.is_gone(owner):
        raise TellError(f"trial {number} is being evaluated by {owners.described(owner)}; wait for it")

    def tell() -> None:
        store.tell(number, trial.params, outcome)
        done.told.append(number)

    return tell


def _finished(store: Store, trial: FrozenTrial, outcome: Outcome, done: Told, replace: bool) -> Callable[[], None]:
    def pass_over() -> None:
        done.known += 1

    def correct() -> None:
        store.replace(trial, outcome)
        done.replaced.append(trial.number)

    old = _outcome(trial)
    if old.value == outcome.value or _close(old.value, outcome.value):
        return pass_over
    if not replace:
        was = f"the value {old.value!r}" if old.value is not None else f"failed ({old.reason})"
        new = repr(outcome.value) if outcome.value is not None else "failed"
        raise TellError(f"trial {trial.number} was told before as {was}, now {new}; to correct it, use --replace")
    return correct


def _own(store: Store, row: Row, known: "Counter[Any]", done: Told) -> Callable[[], None]:
    key = _key(row.params, row.outcome)
    if known[key] > 0:  # the same file told again
        known[key] -= 1

        def pass_over() -> None:
            done.known += 1

        return pass_over

    def add() -> None:
        done.added.append(store.observe(row.params, row.outcome))

    return add


def _check_params(store: Store, row: Row, trial: FrozenTrial) -> None:
    for name, value in row.params.items():
        asked = trial.params.get(name)
        if asked is not None and not same_value(store.study.space[name], asked, value):
            raise TellError(
                f"trial {trial.number} was to have {name} = {asked!r}, the table has {value!r}; put it back, or, if "
                "the experiment was done so, empty the trial number, which makes it a row of your own"
            )


def _outcome(trial: FrozenTrial) -> Outcome:
    if trial.state == TrialState.COMPLETE:
        return Outcome(trial.value)
    return Outcome(reason=trial.user_attrs.get(REASON) or "no reason on record")


def _close(a: float | None, b: float | None) -> bool:
    return a is not None and b is not None and math.isclose(a, b, rel_tol=1e-12)


def _key(params: dict[str, Any], outcome: Outcome) -> Any:
    return (tuple(sorted((name, repr(value)) for name, value in params.items())), outcome.value)
