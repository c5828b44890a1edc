"""Results that people tell: every row is checked against the study before the first is recorded."""

import math
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from sumbo.errors import TellError
from sumbo.executors import EvaluationResult
from sumbo.study.files.sheets import Row, Sheet, raise_problems, same_value
from sumbo.study.ledger import FINISHED, Record
from sumbo.study.storage import is_gone
from sumbo.study.stored import StoredStudy

Action = Literal["tell", "add", "replace", "pass over"]


@dataclass
class Told:
    """Which trials were told, added as rows of one's own, corrected; and how many rows were there already."""

    told: list[int] = field(default_factory=list)
    added: list[int] = field(default_factory=list)
    replaced: list[int] = field(default_factory=list)
    known: int = 0


def tell_sheet(study: StoredStudy, sheet: Sheet, path: str | Path, *, replace: bool) -> Told:
    """Record a table of results. If rows do not fit the study, a SheetError lists all, and nothing is recorded."""
    own = [record for record in study.records if record.state in FINISHED and record.seen is None]
    known = Counter(_key(record.params, record.value) for record in own)
    problems: list[str] = []
    actions: list[tuple[Row, Action]] = []
    for row in sheet.rows:
        try:
            actions.append((row, _action(study, row, known, replace)))
        except TellError as error:
            problems.append(f"line {row.line}: {error}")
    raise_problems(path, problems)
    return _recorded(study, actions)


def tell_one(study: StoredStudy, number: int, result: EvaluationResult, *, replace: bool) -> Told:
    """Record one result; a TellError if there is no such trial, or if it is not to be told."""
    row = Row(0, number, {}, result)
    return _recorded(study, [(row, _action(study, row, Counter(), replace))])


def cancel(study: StoredStudy, numbers: list[int]) -> None:
    """Take trials back that will not be evaluated, all of them or none: not what has ended, or what a process runs."""
    for number in numbers:
        _check_unended(study, _known(study, number))
    for number in numbers:
        if not study.ledger.cancel(number):
            raise TellError(f"trial {number} was told this moment by another process; see sumbo show")


def _action(study: StoredStudy, row: Row, known: "Counter[Any]", replace: bool) -> Action:
    """What is to be done with a row; `known` counts rows of one's own that are there and not seen in this table yet."""
    if row.number is None:
        key = _key(row.params, row.result.value)
        if known[key] > 0:  # the same file told again
            known[key] -= 1
            return "pass over"
        return "add"
    record, new = _known(study, row.number), row.result.value
    _check_params(study, row, record)
    if record.state in FINISHED:
        if record.value == new or (record.value and new and math.isclose(record.value, new, rel_tol=1e-12)):
            return "pass over"
        if not replace:
            was = f"the value {record.value!r}" if record.value is not None else f"failed ({record.reason})"
            now = "failed" if new is None else repr(new)
            raise TellError(f"trial {row.number} was told before as {was}, now {now}; to correct it, use --replace")
        return "replace"
    if record.state == "waiting":
        raise TellError(f"trial {row.number} has not been handed out; sumbo run will evaluate it")
    _check_unended(study, record)
    return "tell"


def _recorded(study: StoredStudy, actions: list[tuple[Row, Action]]) -> Told:
    done, ledger, before = Told(), study.ledger, list(study.records)
    for row, action in actions:
        if action == "pass over":
            done.known += 1
        elif row.number is None:
            done.added.append(ledger.observe(row.params, row.result).number)
        elif action == "replace":
            ledger.correct(row.number, row.result)
            done.replaced.append(row.number)
        else:
            record = before[row.number]  # as it was checked
            if not ledger.tell(row.number, row.result, record.lease):  # another process was faster
                ledger.observe(record.params, row.result)
            done.told.append(row.number)
    return done


def _known(study: StoredStudy, number: int) -> Record:
    count = len(study.records)
    if not number < count:
        has = f"trials 0 to {count - 1}" if count else "no trials"
        raise TellError(f"there is no trial {number}; the study has {has}. Leave the number empty in a row of your own")
    return study.records[number]


def _check_unended(study: StoredStudy, record: Record) -> None:
    if record.state in FINISHED:
        raise TellError(f"trial {record.number} was told before; to correct it, use sumbo tell --replace")
    if record.state == "cancelled":
        how = "empty the trial number, which makes it a row of your own"
        raise TellError(f"trial {record.number} was cancelled; {how}")
    holder = study.ledger.holder(record)
    if holder is not None and not is_gone(holder):
        who = f"process {holder.get('pid')} on {holder.get('host')}"
        raise TellError(f"trial {record.number} is being evaluated by {who}; wait for it")


def _check_params(study: StoredStudy, row: Row, record: Record) -> None:
    params = record.params
    for name, value in row.params.items():
        asked = params.get(name)
        if asked is not None and not same_value(study.file.space[name], asked, value):
            raise TellError(
                f"trial {record.number} was to have {name} = {asked!r}, the table has {value!r}; put it back, or, if "
                "the experiment was done so, empty the trial number, which makes it a row of your own"
            )


def _key(params: dict[str, Any], value: float | None) -> Any:
    return (tuple(sorted((name, repr(value)) for name, value in params.items())), value)
