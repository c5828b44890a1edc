"""Results that people tell: every row is checked against the study before the first is recorded."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sumbo.errors import TellError
from sumbo.executors.results import EvaluationResult
from sumbo.study.files.sheets import Row, Sheet, raise_problems, same_value
from sumbo.study.ledger import FINISHED, Record
from sumbo.study.storage import holders
from sumbo.study.stored import StoredStudy


@dataclass
class Told:
    """Which trials were told, added as rows of one's own, corrected; and how many rows were there already."""

    told: list[int] = field(default_factory=list)
    added: list[int] = field(default_factory=list)
    replaced: list[int] = field(default_factory=list)
    known: int = 0


def tell_sheet(study: StoredStudy, sheet: Sheet, path: str | Path, *, replace: bool) -> Told:
    """Record a table of results.

    Raises:
        SheetError: rows do not fit the study; all are listed, and nothing was recorded.
    """
    own = [record for record in study.records if record.state in FINISHED and record.seen is None]
    known = Counter(_key(record.params, record.value) for record in own)
    done = Told()
    problems: list[str] = []
    steps: list[Callable[[], None]] = []
    for row in sheet.rows:
        try:
            step = _own(study, row, known, done) if row.number is None else _step(study, row, done, replace)
        except TellError as error:
            problems.append(f"line {row.line}: {error}")
            continue
        steps.append(step)
    raise_problems(path, problems)
    for step in steps:
        step()
    return done


def tell_one(study: StoredStudy, number: int, result: EvaluationResult, *, replace: bool) -> Told:
    """Record one result.

    Raises:
        TellError: there is no such trial, or it is not to be told.
    """
    done = Told()
    _step(study, Row(0, number, {}, result), done, replace)()
    return done


def cancel(study: StoredStudy, numbers: list[int]) -> None:
    """Take trials back that will not be evaluated, all of them or none.

    Raises:
        TellError: there is no such trial, or it has ended, or is being evaluated by a process that lives.
    """
    records = [_unended(study, number) for number in numbers]
    for record in records:
        if not study.ledger.cancel(record.number):
            raise TellError(f"trial {record.number} was told this moment by another process; see sumbo show")


def _known(study: StoredStudy, number: int) -> Record:
    count = len(study.records)
    if not number < count:
        has = f"trials 0 to {count - 1}" if count else "no trials"
        raise TellError(f"there is no trial {number}; the study has {has}. Leave the number empty in a row of your own")
    return study.records[number]


def _unended(study: StoredStudy, number: int) -> Record:
    record = _known(study, number)
    if record.state in FINISHED:
        raise TellError(f"trial {number} was told before; to correct it, use sumbo tell --replace")
    if record.state == "cancelled":
        raise TellError(f"trial {number} was cancelled; empty the trial number, which makes it a row of your own")
    holder = study.ledger.holder(record)
    if holder is not None and not holders.is_gone(holder):
        raise TellError(f"trial {number} is being evaluated by {holders.described(holder)}; wait for it")
    return record


def _step(study: StoredStudy, row: Row, done: Told, replace: bool) -> Callable[[], None]:
    number, result = row.number, row.result
    assert number is not None
    record = _known(study, number)
    _check_params(study, row, record)
    if record.state in FINISHED:
        return _finished(study, record, result, done, replace)
    if record.state == "waiting":
        raise TellError(f"trial {number} has not been handed out; sumbo run will evaluate it")
    _unended(study, number)

    def tell() -> None:
        if not study.ledger.tell(number, result, record.lease):  # another process was faster
            study.ledger.observe(record.params, result)
        done.told.append(number)

    return tell


def _finished(
    study: StoredStudy, record: Record, result: EvaluationResult, done: Told, replace: bool
) -> Callable[[], None]:
    def pass_over() -> None:
        done.known += 1

    def correct() -> None:
        study.ledger.correct(record.number, result)
        done.replaced.append(record.number)

    if record.value == result.value or _close(record.value, result.value):
        return pass_over
    if not replace:
        was = f"the value {record.value!r}" if record.value is not None else f"failed ({record.reason})"
        new = repr(result.value) if result.value is not None else "failed"
        raise TellError(f"trial {record.number} was told before as {was}, now {new}; to correct it, use --replace")
    return correct


def _own(study: StoredStudy, row: Row, known: "Counter[Any]", done: Told) -> Callable[[], None]:
    key = _key(row.params, row.result.value)
    if known[key] > 0:  # the same file told again
        known[key] -= 1

        def pass_over() -> None:
            done.known += 1

        return pass_over

    def add() -> None:
        done.added.append(study.ledger.observe(row.params, row.result).number)

    return add


def _check_params(study: StoredStudy, row: Row, record: Record) -> None:
    params = record.params
    for name, value in row.params.items():
        asked = params.get(name)
        if asked is not None and not same_value(study.file.space[name], asked, value):
            raise TellError(
                f"trial {record.number} was to have {name} = {asked!r}, the table has {value!r}; put it back, or, if "
                "the experiment was done so, empty the trial number, which makes it a row of your own"
            )


def _close(a: float | None, b: float | None) -> bool:
    return a is not None and b is not None and math.isclose(a, b, rel_tol=1e-12)


def _key(params: dict[str, Any], value: float | None) -> Any:
    return (tuple(sorted((name, repr(value)) for name, value in params.items())), value)
