"""Results as a table for people: what comes back from a spreadsheet is read with care, and checked whole before any of
it is recorded.

Columns: `trial` (empty in a row of one's own), the parameters, and the value, or the word "failed" with a reason if
there is one. Order does not matter, and other columns are left alone. `sumbo.study.files.cells` says what a cell means.
"""

import csv
import difflib
import io
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sumbo.errors import SheetError, SpaceError
from sumbo.executors.results import EvaluationResult
from sumbo.space import Space
from sumbo.space.parameters import Categorical, Float, Int, Parameter, listed, show
from sumbo.study.files.cells import by_form, choice_of, forms, number_of, plain, written
from sumbo.study.files.toml import StudyFile

Trial = tuple[int, dict[str, Any]]  # its number and its parameters

TRIAL = "trial"

_FAILED = re.compile(r"failed\b[\s:,;-]*(.*)", re.IGNORECASE | re.DOTALL)
_MAX_PROBLEMS = 10
_ROUNDING = 1e-6  # of the range, or of the value: what a spreadsheet may drop


@dataclass(frozen=True)
class Row:
    """One result.

    Attributes:
        line: where it is in the file.
        number: its trial's; None for a row of one's own.
        params: as far as the file has them; complete in a row of one's own.
        result: what is to be told.
    """

    line: int
    number: int | None
    params: dict[str, Any]
    result: EvaluationResult


@dataclass(frozen=True)
class Sheet:
    """The results in a file, those rows that have none as yet, and columns that mean nothing here."""

    rows: list[Row]
    empty: int
    ignored: list[str]


def write_sheet(study: StudyFile, trials: Iterable[Trial]) -> str:
    """A table of trials to fill in."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow([TRIAL, *map(written, study.space.names), study.value_column])
    for number, params in trials:
        table.writerow([number, *(written(params[name]) for name in study.space), ""])
    return out.getvalue()


def with_rows(study: StudyFile, path: str | Path, trials: Iterable[Trial]) -> bytes:
    """A table that is there, with rows for those trials that it does not have; all else stays as it was typed.

    Raises:
        SheetError: it cannot be read, or lacks a column that the new rows need.
    """
    data, table = _table(study, Path(path))
    columns = _Columns(study, path, table.lines[0][1])
    columns.check_whole(path)
    there = {_number_in(cells, columns) for _, cells in table.lines[1:]}
    comma = table.comma and any("," in _cell(cells, i) for _, cells in table.lines[1:] for i in columns.floats)
    out = io.StringIO()
    end = "\r\n" if "\r\n" in table.text else "\n"
    writer = csv.writer(out, delimiter=table.separator, lineterminator=end)
    for number, params in trials:
        if str(number) not in there:
            writer.writerow(columns.cells(number, params, comma=comma))
    rows = out.getvalue() if table.text.endswith("\n") else end + out.getvalue()
    try:
        for parameter in study.space.parameters:  # before there is a trial that needs it
            "".join(map(written, getattr(parameter, "choices", ()))).encode(table.encoding)
        return data + rows.encode(table.encoding)
    except UnicodeEncodeError as error:
        letter = error.object[error.start]
        raise SheetError(f"{path}: its encoding has no {letter!r}; save it as CSV in UTF-8, then append") from None


def filled_trials(study: StudyFile, path: str | Path) -> set[str]:
    """The trials for which something is in the column of results, whether it makes sense or not.

    Raises:
        SheetError: it is no table of the study's.
    """
    _, table = _table(study, Path(path))
    columns = _Columns(study, path, table.lines[0][1])
    return {_number_in(cells, columns) for _, cells in table.lines[1:] if _cell(cells, columns.value)}


def read_sheet(study: StudyFile, path: str | Path, *, own: bool = False) -> Sheet:
    """Read a table that a person, or a spreadsheet, has filled in. With `own`, trial numbers are not looked at.

    Raises:
        SheetError: it cannot be read, or rows are wrong: all of them are listed, with line and column.
    """
    _, table = _table(study, Path(path))
    columns = _Columns(study, path, table.lines[0][1])
    problems: list[str] = []
    rows: list[Row] = []
    empty = 0
    for line, cells in table.lines[1:]:
        try:
            row = columns.row(line, cells, comma=table.comma, own=own)
        except SheetError as error:
            problems.append(str(error))
            continue
        if row is None:
            empty += any(cell.strip() for cell in cells)
        else:
            rows.append(row)
    numbers = [row.number for row in rows if row.number is not None]
    for number in sorted({n for n in numbers if numbers.count(n) > 1}):
        problems.append(f"trial {number} is in more than one row; keep one")
    raise_problems(path, problems)
    return Sheet(rows, empty, columns.ignored)


def raise_problems(path: str | Path, problems: list[str]) -> None:
    """Raise a SheetError with all problems, if there are any."""
    if problems:
        more = [f"... and {len(problems) - _MAX_PROBLEMS} more"] if len(problems) > _MAX_PROBLEMS else []
        text = "\n  ".join(problems[:_MAX_PROBLEMS] + more)
        raise SheetError(f"{path}: nothing was recorded, because of\n  {text}")


def same_value(parameter: Parameter, a: Any, b: Any) -> bool:
    """Are two values of a parameter the same, but for digits that a spreadsheet dropped?"""
    if isinstance(parameter, Float):
        return math.isclose(a, b, rel_tol=_ROUNDING, abs_tol=0.0 if parameter.log else _ROUNDING * _width(parameter))
    return bool(a == b)


def _width(parameter: Float) -> float:
    return parameter.high - parameter.low


class _Columns:
    """Which column is what."""

    def __init__(self, study: StudyFile, path: str | Path, header: list[str]) -> None:
        self._space: Space = study.space
        self._width = len(header)
        names = [plain(name) for name in header]
        places = {name.lower(): i for i, name in reversed(list(enumerate(names))) if name}
        exact = {name: i for i, name in enumerate(names)}
        self._value_name = study.value_column
        self.trial = places.get(TRIAL)
        self.value = next((places[w] for w in _value_names(study) if w in places), None)
        self.params = {n: next((exact[form] for form in forms(n) if form in exact), None) for n in study.space}
        for name, place in self.params.items():
            if place is None:
                found = next((places[w] for form in forms(name) if (w := form.lower()) in places), None)
                self.params[name] = None if found in self.params.values() else found
        self._choices = {n: by_form(p.choices) for n in study.space if isinstance(p := study.space[n], Categorical)}
        used = {self.trial, self.value, *self.params.values()}
        self.ignored = [name for i, name in enumerate(names) if name and i not in used]
        self._check(path, names)

    @property
    def floats(self) -> list[int | None]:
        """The columns where a decimal comma may be."""
        return [self.value, *(i for n, i in self.params.items() if isinstance(self._space[n], Float))]

    def check_whole(self, path: str | Path) -> None:
        """Raise a SheetError unless rows with a trial, all parameters and a value can be added."""
        missing = [TRIAL] if self.trial is None else [name for name, i in self.params.items() if i is None]
        if missing:
            raise SheetError(f"{path}: rows cannot be appended, it has no column {missing[0]!r}; put it back")

    def cells(self, number: int, params: dict[str, Any], *, comma: bool) -> list[str]:
        """A row for a trial, without its value."""
        row = [""] * self._width
        for place, value in ((self.trial, number), *((i, params[name]) for name, i in self.params.items())):
            assert place is not None  # check_whole
            text = written(value)
            row[place] = text.replace(".", ",") if comma and isinstance(value, float) else text
        return row

    def _check(self, path: str | Path, names: list[str]) -> None:
        twice = {name for name in names if name and names.count(name) > 1}
        missing = [name for name, place in self.params.items() if place is None]
        if twice:
            raise SheetError(f"{path}: two columns are called {sorted(twice)[0]!r}; rename or remove one")
        if self.value is None:
            near = difflib.get_close_matches(self._value_name, names, n=1)
            found = f"; is it {near[0]!r}?" if near else f"; the columns are {listed(names)}"
            raise SheetError(f"{path}: expected a column {self._value_name!r} with the results{found}")
        if missing and self.trial is None:
            near = difflib.get_close_matches(missing[0], self.ignored, n=1)
            hint = f"; is it {near[0]!r}?" if near else ""
            why = "without trial numbers every parameter is needed"
            raise SheetError(f"{path}: expected a column {missing[0]!r}, since {why}{hint}")

    def row(self, line: int, cells: list[str], *, comma: bool, own: bool) -> Row | None:
        """What a line says; None if it has no result."""
        place = f"line {line}"
        text = _cell(cells, self.value)
        if not text:
            return None
        number = None if own else _trial(place, _cell(cells, self.trial))
        result = _result(f"{place}, column {self._value_name!r}", text, comma=comma)
        params: dict[str, Any] = {}
        for name, column in self.params.items():
            given = _cell(cells, column)
            if given:
                params[name] = self._param(place, name, given, comma=comma)
            elif number is None:
                raise SheetError(f"{place}: {name!r} is empty; a row of one's own needs every parameter")
        return Row(line, number, params, result)

    def _param(self, place: str, name: str, text: str, *, comma: bool) -> Any:
        parameter = self._space[name]
        place = f"{place}, column {name!r}"
        if not isinstance(parameter, Categorical):
            return _number(place, name, parameter, text, comma=comma)
        said = self._choices[name]
        found = choice_of(text, said, comma=comma)
        if found is not None:
            return found[0]
        near = difflib.get_close_matches(text, list(said), n=1)
        advice = f"did you mean {near[0]!r}?" if near else "correct it"
        raise SheetError(f"{place}: expected one of {listed(parameter.choices)}, got {show(text)}; {advice}")


def _value_names(study: StudyFile) -> list[str]:
    """What the column of results may be called, in small letters."""
    taken = {plain(name).lower() for name in study.space}
    return [study.value_column, *(word for word in ("value", study.goal, "result") if word not in taken)]


@dataclass(frozen=True)
class _Table:
    """A file as text: how it is written, and its cells by line, header first."""

    text: str
    encoding: str
    separator: str
    lines: list[tuple[int, list[str]]]

    @property
    def comma(self) -> bool:
        """May it have decimal commas? Where it has, spreadsheets separate columns by something else."""
        return self.separator != ","


def _table(study: StudyFile, path: Path) -> tuple[bytes, _Table]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SheetError(f"{path}: cannot be read: {error.strerror or error}; give a file that you may read") from None
    if data.startswith(b"PK\3\4"):
        raise SheetError(f"{path}: this is a workbook, not a table of text; save it as CSV (File, Save As)")
    text, encoding = _decoded(data)
    separator = _separator(study, text)
    try:
        lines = list(_filled(text, separator))
    except csv.Error as error:
        raise SheetError(f"{path}: expected CSV, got a line that is none ({error}); save it as CSV again") from None
    if not lines:
        raise SheetError(f"{path}: expected a table with a line of column names, got an empty file")
    return data, _Table(text, encoding, separator, lines)


def _filled(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The lines that have something in them."""
    # Whatever ends a line: blanks, and so ends of lines within a cell, do not count.
    reader = csv.reader(io.StringIO(text.replace("\0", ""), newline=None), delimiter=separator, strict=True)
    return ((reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells))


def _separator(study: StudyFile, text: str) -> str:
    """What separates columns: that by which most of their names are known, since names may hold the others."""
    known = [{TRIAL}, set(_value_names(study)), *({form.lower() for form in forms(name)} for name in study.space)]

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


def _number_in(cells: list[str], columns: _Columns) -> str:
    """The trial's number as text, however a spreadsheet wrote it."""
    return _cell(cells, columns.trial).partition(".")[0]


def _trial(place: str, text: str) -> int | None:
    if not text:
        return None
    if not re.fullmatch(r"\d{1,15}(\.0*)?", text):
        raise SheetError(f"{place}: expected a trial number, got {text!r}; leave it empty in a row of your own")
    return int(float(text))


def _result(place: str, text: str, *, comma: bool) -> EvaluationResult:
    failed = _FAILED.fullmatch(text)
    if failed:
        return EvaluationResult(reason=failed.group(1).strip() or "failed, as told by hand")
    number = number_of(place, text, comma=comma)
    if not math.isfinite(number):
        raise SheetError(f"{place}: expected a number, got {text!r}; write the word failed if there is no result")
    return EvaluationResult(number)


def _number(place: str, name: str, parameter: Float | Int, text: str, *, comma: bool) -> Any:
    number = number_of(place, text, comma=comma)
    if not parameter.low <= number <= parameter.high:
        near = next((b for b in (parameter.low, parameter.high) if same_value_number(number, b)), None)
        if near is None:
            what = f"a number from {parameter.low} to {parameter.high}"
            raise SheetError(f"{place}: expected {what}, got {text!r}; is it in other units, or a typing error?")
        number = near
    try:
        return parameter._value(parameter._check(name, number))
    except SpaceError as error:
        raise SheetError(f"{place}: {error}") from None


def same_value_number(a: float, b: float) -> bool:
    """Equal but for dropped digits."""
    return math.isclose(a, b, rel_tol=_ROUNDING)
