"""Results as a table for people: what comes back from a spreadsheet is read with care, and checked whole before any of
it is recorded.

Columns: `trial` (empty in a row of one's own), the parameters, the value, or the word "failed" with a reason if there
is one, what was measured for each constraint, and `std`, the known noise of the value, which may be left out. Order
does not matter, and other columns are left alone. `sumbo.study.files.cells` says what a cell means.
"""

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from sumbo.errors import SheetError, SpaceError, TellError
from sumbo.executors import EvaluationResult, complete
from sumbo.space import Space
from sumbo.space.parameters import Choice, Parameter, closest, listed, show
from sumbo.study.files.cells import by_form, choices_of, forms, number_of, plain, written
from sumbo.study.files.toml import StudyFile, advice_on
from sumbo.study.ledger import FINISHED, Record, misreported
from sumbo.study.storage import is_gone
from sumbo.study.stored import StoredStudy

Trial = tuple[int, dict[str, Any]]  # its number and its parameters
Action = Literal["tell", "add", "replace", "pass over"]

TRIAL, STD = "trial", "std"

_FAILED = re.compile(r"failed\b[\s:,;-]*(.*)", re.IGNORECASE | re.DOTALL)
_MAX_PROBLEMS = 10
_ROUNDING = 1e-6  # of the range, or of the value: what a spreadsheet may drop


@dataclass(frozen=True)
class Row:
    """One result, and the line where it is in the file."""

    line: int
    number: int | None  # its trial's; None for a row of one's own
    params: dict[str, Any]  # as far as the file has them; complete in a row of one's own
    result: EvaluationResult


@dataclass(frozen=True)
class Sheet:
    """The results in a file, those rows that have none as yet, and columns that mean nothing here."""

    rows: list[Row]
    empty: int
    ignored: list[str]


def write_sheet(study: StudyFile, trials: Iterable[Trial]) -> str:
    """A table of trials to fill in."""
    header = [TRIAL, *map(written, study.space.names), study.value_column, *map(written, study.measured)]
    empty = [""] * (1 + len(study.measured))
    return csv_text([header, *([str(number), *_written(study, params), *empty] for number, params in trials)])


def _written(study: StudyFile, params: Mapping[str, Any]) -> list[str]:
    """The cells of parameters; nothing in those of parameters that do not exist there."""
    return [written(params[name]) if name in params else "" for name in study.space]


def csv_text(rows: Iterable[Iterable[str]], separator: str = ",", end: str = "\n") -> str:
    """Rows of cells as CSV."""
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator=end).writerows(rows)
    return out.getvalue()


def with_rows(study: StudyFile, path: str | Path, trials: Iterable[Trial]) -> bytes:
    """A table that is there, with rows for those trials that it does not have; all else stays as it was typed."""
    table = _Table(study, path)
    missing = [TRIAL] if table.trial is None else []
    missing += [name for name, i in (table.params | table.measured).items() if i is None]
    if missing:
        raise SheetError(f"{path}: rows cannot be appended, it has no column {missing[0]!r}; put it back")
    there = {table.trial_in(cells) for _, cells in table.lines}
    floats = [*table.results, *(i for name, i in table.params.items() if study.space[name].kind == "float")]
    comma = table.comma and any("," in _cell(cells, i) for _, cells in table.lines for i in floats)
    end = "\r\n" if "\r\n" in table.text else "\n"
    new = [table.cells(number, params, comma=comma) for number, params in trials if str(number) not in there]
    rows = ("" if table.text.endswith("\n") else end) + csv_text(new, table.separator, end)
    try:
        for parameter in study.space.parameters:  # before there is a trial that needs it
            "".join(map(written, getattr(parameter, "choices", ()))).encode(table.encoding)
        return table.data + rows.encode(table.encoding)
    except UnicodeEncodeError as error:
        letter = error.object[error.start]
        raise SheetError(f"{path}: its encoding has no {letter!r}; save it as CSV in UTF-8, then append") from None


def filled_trials(study: StudyFile, path: str | Path) -> set[str]:
    """The trials of a table of the study's for which something is in a column of results, sense or not."""
    table = _Table(study, path)
    return {table.trial_in(cells) for _, cells in table.lines if any(_cell(cells, i) for i in table.results)}


def read_sheet(study: StudyFile, path: str | Path, *, own: bool = False) -> Sheet:
    """Read a table that a person, or a spreadsheet, has filled in. With `own`, trial numbers are not looked at.

    Of rows that are wrong a SheetError lists all, with line and column.
    """
    table = _Table(study, path)
    problems: list[str] = []
    rows: list[Row] = []
    empty = 0
    for line, cells in table.lines:
        try:
            row = table.row(line, cells, own=own)
            rows += [] if row is None else [row]
            empty += row is None
        except SheetError as error:
            problems.append(str(error))
    numbers = Counter(row.number for row in rows if row.number is not None)
    problems += [f"trial {n} is in more than one row; keep one" for n in sorted(numbers) if numbers[n] > 1]
    _raise_problems(path, problems)
    return Sheet(rows, empty, table.ignored)


def _raise_problems(path: str | Path, problems: list[str]) -> None:
    """Raise a SheetError with all problems, if there are any."""
    if problems:
        more = [f"... and {len(problems) - _MAX_PROBLEMS} more"] if len(problems) > _MAX_PROBLEMS else []
        text = "\n  ".join(problems[:_MAX_PROBLEMS] + more)
        raise SheetError(f"{path}: nothing was recorded, because of\n  {text}")


def _same_value(parameter: Parameter, a: Any, b: Any) -> bool:
    """Are two values of a parameter the same, but for digits that a spreadsheet dropped?"""
    if parameter.kind == "float":
        least = 0.0 if parameter.log else _ROUNDING * (parameter.high - parameter.low)
        return math.isclose(a, b, rel_tol=_ROUNDING, abs_tol=least)
    return bool(a == b)


def _value_names(study: StudyFile) -> list[str]:
    """What the column of results may be called, in small letters."""
    taken = {plain(name).lower() for name in (*study.space, *study.measured)}
    return [study.value_column, *(word for word in ("value", study.goal, "result") if word not in taken)]


class _Table:
    """A file as text: how it is written, which column is what, and the cells by line."""

    def __init__(self, study: StudyFile, path: str | Path) -> None:
        self._path, self._study, self._space, self._value_name = path, study, study.space, study.value_column
        try:
            self.data = Path(path).read_bytes()
        except OSError as error:
            raise SheetError(
                f"{path}: cannot be read: {error.strerror or error}; give a file that you may read"
            ) from None
        if self.data.startswith(b"PK\3\4"):
            raise SheetError(f"{path}: this is a workbook, not a table of text; save it as CSV (File, Save As)")
        self.text, self.encoding = _decoded(self.data)
        self.separator = _separator(study, self.text)
        self.comma = self.separator != ","  # where spreadsheets write decimal commas, they separate by something else
        try:
            lines = list(_filled(self.text, self.separator))
        except csv.Error as error:
            raise SheetError(f"{path}: expected CSV, got a line that is none ({error}); save it as CSV again") from None
        if not lines:
            raise SheetError(f"{path}: expected a table with a line of column names, got an empty file")
        (_, header), *self.lines = lines
        self._width = len(header)
        self._choices = {n: by_form(p.choices) for n in study.space if (p := study.space[n]).choices}
        self._find_columns(_value_names(study), [plain(name) for name in header])

    def _find_columns(self, value_names: list[str], names: list[str]) -> None:
        places = {name.lower(): i for i, name in reversed(list(enumerate(names))) if name}
        exact = {name: i for i, name in enumerate(names)}
        self.trial = places.get(TRIAL)
        self.value = next((places[word] for word in value_names if word in places), None)
        self.std = places.get(self._study.column(STD))
        names_known = (*self._space, *self._study.measured)
        found = {n: next((exact[form] for form in forms(n) if form in exact), None) for n in names_known}
        for name, place in found.items():
            if place is None:
                alike = next((places[w] for form in forms(name) if (w := form.lower()) in places), None)
                found[name] = None if alike in found.values() else alike
        self.params = {name: found[name] for name in self._space}
        self.measured = {name: found[name] for name in self._study.measured}
        self.results = [self.value, *self.measured.values()]
        used = {self.trial, self.value, self.std, *found.values()}
        self.ignored = [name for i, name in enumerate(names) if name and i not in used]
        twice = sorted(name for name in names if name and names.count(name) > 1)
        missing = [name for name, place in self.params.items() if place is None]
        if twice:
            raise SheetError(f"{self._path}: two columns are called {twice[0]!r}; rename or remove one")
        if self.value is None:
            hint = _near(self._value_name, names) or f"; the columns are {listed(names)}"
            raise SheetError(f"{self._path}: expected a column {self._value_name!r} with the results{hint}")
        if missing and self.trial is None:
            why = "without trial numbers every parameter is needed"
            raise SheetError(
                f"{self._path}: expected a column {missing[0]!r}, since {why}{_near(missing[0], self.ignored)}"
            )

    def trial_in(self, cells: list[str]) -> str:
        """The trial's number as text, however a spreadsheet wrote it."""
        return _cell(cells, self.trial).partition(".")[0]

    def cells(self, number: int, params: dict[str, Any], *, comma: bool) -> list[str]:
        """A row for a trial, without its value."""
        row = [""] * self._width
        there = ((i, params[name]) for name, i in self.params.items() if name in params)
        for place, value in ((self.trial, number), *there):
            assert place is not None  # `with_rows` has looked
            text = written(value)
            row[place] = text.replace(".", ",") if comma and isinstance(value, float) else text
        return row

    def row(self, line: int, cells: list[str], *, own: bool) -> Row | None:
        """What a line says; None if it has no result."""
        place = f"line {line}"
        text, number = _cell(cells, self.value), None if own else _cell(cells, self.trial)
        if not text:
            return None
        if number and not re.fullmatch(r"\d{1,15}(\.0*)?", number):
            raise SheetError(f"{place}: expected a trial number, got {number!r}; leave it empty in a row of your own")
        result = self._result(place, text, cells)
        params: dict[str, Any] = {}
        for name, column in self.params.items():
            given = _cell(cells, column)
            if given:
                said = self._choices.get(name)
                params[name] = value_of(f"{place}, column {name!r}", self._space, name, given, said, comma=self.comma)
            elif not number and not self._space[name].when:
                raise SheetError(f"{place}: {name!r} is empty; a row of one's own needs every parameter")
        if not number:
            self._check_own(place, params)
        return Row(line, int(float(number)) if number else None, params, result)

    def _check_own(self, place: str, params: dict[str, Any]) -> None:
        """Has a row the parameters that exist with its values, and no others?"""
        try:
            missing = sorted(self._space._existing(params) - params.keys(), key=self._space.names.index)
        except SpaceError as error:
            raise SheetError(f"{place}: {error}") from None
        if missing:
            raise SheetError(f"{place}: {missing[0]!r} is empty; a row of one's own needs every parameter that exists")

    def _result(self, line: str, text: str, cells: list[str]) -> EvaluationResult:
        failed = _FAILED.fullmatch(text)
        if failed:
            return EvaluationResult(reason=failed.group(1).strip() or "failed, as told by hand")
        number = self._finite(f"{line}, column {self._value_name!r}", text)
        measured: dict[str, float] = {}
        for name, column in self.measured.items():
            if not (given := _cell(cells, column)):
                raise SheetError(f"{line}: {name!r} is empty; every value comes with what its constraints are on")
            measured[name] = self._finite(f"{line}, column {name!r}", given)
        std = _cell(cells, self.std)
        try:
            return complete(number, None, measured, self._finite(f"{line}, column {STD!r}", std) if std else None)
        except TellError as error:
            raise SheetError(f"{line}: {error}") from None

    def _finite(self, place: str, text: str) -> float:
        number = number_of(place, text, comma=self.comma)
        if not math.isfinite(number):
            advice = "write the word failed for the value if there is no result"
            raise SheetError(f"{place}: expected a number, got {text!r}; {advice}")
        return number


def value_of(
    place: str,
    space: Space,
    name: str,
    text: str,
    said: Mapping[str, Choice] | None = None,
    *,
    comma: bool = False,
) -> Choice:
    """The value of a parameter that a person wrote; `said` are its choices as `by_form` gives them."""
    parameter = space[name]
    if parameter.choices:
        said = by_form(parameter.choices) if said is None else said
        found = choices_of(text, said, comma=comma)
        if len(found) == 1:
            return found[0]
        advice = advice_on(text, said, "correct it")
        raise SheetError(f"{place}: expected one of {listed(parameter.choices)}, got {show(text)}; {advice}")
    number, low, high = number_of(place, text, comma=comma), parameter.low, parameter.high
    if not low <= number <= high:
        near_bounds = [bound for bound in (low, high) if math.isclose(number, bound, rel_tol=_ROUNDING)]
        if not near_bounds:
            what = f"a number from {low} to {high}"
            raise SheetError(f"{place}: expected {what}, got {text!r}; is it in other units, or a typing error?")
        number = near_bounds[0]
    if parameter.kind == "float" and parameter.step:
        nearest = parameter._at(parameter._index(number))
        number = nearest if math.isclose(number, nearest, rel_tol=_ROUNDING) else number
    try:
        return parameter._value(parameter._check(name, number))
    except SpaceError as error:
        raise SheetError(f"{place}: {error}") from None


def _near(name: str, names: list[str]) -> str:
    near = closest(name, names)
    return f"; is it {near[0]!r}?" if near else ""


def _filled(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The lines that have something in them."""
    # Whatever ends a line: blanks, and so ends of lines within a cell, do not count.
    reader = csv.reader(io.StringIO(text.replace("\0", ""), newline=None), delimiter=separator, strict=True)
    return ((reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells))


def _separator(study: StudyFile, text: str) -> str:
    """What separates columns: that by which most of their names are known, since names may hold the others."""
    columns = (*study.space, *study.measured)
    known = [{TRIAL}, set(_value_names(study)), *({form.lower() for form in forms(name)} for name in columns)]

    def fits(separator: str) -> tuple[int, int]:
        try:
            _, header = next(_filled(text, separator), (0, []))
        except csv.Error:
            return -1, 0
        names = {plain(name).lower() for name in header}
        return sum(not names.isdisjoint(words) for words in known), len(header)

    return max(",;\t", key=fits)


def _decoded(data: bytes) -> tuple[str, str]:
    """The text of a file, and in which encoding more can be added to it."""
    for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if data.startswith(mark):
            return data[2:].decode(encoding, errors="replace"), encoding
    try:
        return data.decode("utf-8-sig"), "utf-8"
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace"), "cp1252"  # older spreadsheets


def _cell(cells: list[str], column: int | None) -> str:
    return "" if column is None or column >= len(cells) else cells[column].strip()


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
    known = Counter(_key(record.params, record) for record in own)
    problems: list[str] = []
    actions: list[tuple[Row, Action]] = []
    for row in sheet.rows:
        try:
            actions.append((row, _action(study, row, known, replace)))
        except TellError as error:
            problems.append(f"line {row.line}: {error}")
    _raise_problems(path, problems)
    return _recorded(study, actions)


def tell_one(study: StoredStudy, number: int, result: EvaluationResult, *, replace: bool) -> Told:
    """Record one result; a TellError if there is no such trial, or if it is not to be told."""
    if problem := misreported(result, study.file.constraints):
        raise TellError(f"{problem}; say --constraint NAME=VALUE for each")
    row = Row(0, number, {}, result)
    return _recorded(study, [(row, _action(study, row, Counter(), replace))])


def cancel(study: StoredStudy, numbers: list[int]) -> None:
    """Take trials back that will not be evaluated, all of them or none: not what has ended, or what a process runs."""
    for number in numbers:
        _check_unended(study, _known(study, number))
    for number in numbers:
        if not study.ledger.cancel(number):
            raise TellError(f"trial {number} was told this moment by another process; see sumbo show")


def _action(study: StoredStudy, row: Row, known: Counter[Any], replace: bool) -> Action:
    """What is to be done with a row; `known` counts rows of one's own that are there and not seen in this table yet."""
    if row.number is None:
        key = _key(row.params, row.result)
        if known[key] > 0:  # the same file told again
            known[key] -= 1
            return "pass over"
        return "add"
    record = _known(study, row.number)
    for name, value in row.params.items():
        asked = record.params.get(name)
        if asked is None or not _same_value(study.file.space[name], asked, value):
            was = f"no {name}" if asked is None else f"{name} = {asked!r}"
            raise TellError(
                f"trial {record.number} was to have {was}, the table has {value!r}; put it back, or, if "
                "the experiment was done so, empty the trial number, which makes it a row of your own"
            )
    if record.state in FINISHED:
        if _same_result(record, row.result):
            return "pass over"
        if not replace:
            was = f"the value {_in_words(record)}" if record.value is not None else f"failed ({record.reason})"
            now = "failed" if row.result.value is None else _in_words(row.result)
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


def _key(params: dict[str, Any], told: Record | EvaluationResult) -> Any:
    point = tuple(sorted((name, repr(value)) for name, value in params.items()))
    return point, told.value, tuple(sorted((told.constraints or {}).items()))


def _same_result(record: Record, result: EvaluationResult) -> bool:
    """Was this told before, but for digits that were dropped? A table need not have the noise of its values."""
    old, new = ({"": t.value, **(t.constraints or {})} for t in (record, result))
    if old.keys() != new.keys() or result.std not in (None, record.std):
        return False
    return all(a == b or (a and b and math.isclose(a, b, rel_tol=1e-12)) for a, b in ((old[k], new[k]) for k in old))


def _in_words(told: Record | EvaluationResult) -> str:
    more = [f"{name} = {measure!r}" for name, measure in (told.constraints or {}).items()]
    more += [] if told.std is None else [f"{STD} = {told.std!r}"]
    return f"{told.value!r}" + (f" with {', '.join(more)}" if more else "")
