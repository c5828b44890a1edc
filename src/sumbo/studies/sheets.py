"""Results as a table for people: what comes back from a spreadsheet is read with care, and checked whole before any of
it is recorded.

Columns: `trial` (empty in a row of one's own), the parameters, and the value, or the word "failed" with a reason if
there is one. Order does not matter, and other columns are left alone.
"""

import csv
import difflib
import io
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sumbo.errors import SheetError, SpaceError
from sumbo.parameters import Categorical, Float, Parameter, listed, show
from sumbo.space import Space
from sumbo.studies.file import StudyFile
from sumbo.studies.objectives import Outcome
from sumbo.studies.programs import as_text

TRIAL = "trial"

_FAILED = re.compile(r"failed\b[\s:,;-]*(.*)", re.IGNORECASE | re.DOTALL)
_COMMA = re.compile(r"[-+]?\d*,\d+(e[-+]?\d+)?", re.IGNORECASE)
_UNIT = re.compile(r"[-+]?[\d.,]+(?:e[-+]?\d+)?\s*[^\d\s.,]", re.IGNORECASE)
_MAX_PROBLEMS = 10
_ROUNDING = 1e-6  # of the range, or of the value: what a spreadsheet may drop


@dataclass(frozen=True)
class Row:
    """One result.

    Attributes:
        line: where it is in the file.
        number: its trial's; None for a row of one's own.
        params: as far as the file has them; complete in a row of one's own.
        outcome: what is to be told.
    """

    line: int
    number: int | None
    params: dict[str, Any]
    outcome: Outcome


@dataclass(frozen=True)
class Sheet:
    """The results in a file, those rows that have none as yet, and columns that mean nothing here."""

    rows: list[Row]
    empty: int
    ignored: list[str]


def write_sheet(study: StudyFile, trials: Iterable[tuple[int, dict[str, Any]]]) -> str:
    """A table of trials to fill in."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow([TRIAL, *study.space.names, study.value_column])
    for number, params in trials:
        table.writerow([number, *(as_text(params[name]) for name in study.space), ""])
    return out.getvalue()


def read_sheet(study: StudyFile, path: str | Path, *, own: bool = False) -> Sheet:
    """Read a table that a person, or a spreadsheet, has filled in. With `own`, trial numbers are not looked at.

    Raises:
        SheetError: it cannot be read, or rows are wrong: all of them are listed, with line and column.
    """
    lines, comma = _lines(Path(path))
    columns = _Columns(study, path, lines[0][1])
    problems: list[str] = []
    rows: list[Row] = []
    empty = 0
    for line, cells in lines[1:]:
        try:
            row = columns.row(line, cells, comma=comma, own=own)
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
        names = [name.strip() for name in header]
        places = {name.lower(): i for i, name in reversed(list(enumerate(names))) if name}
        exact = {name: i for i, name in enumerate(names)}
        self._value_name = study.value_column
        self.trial = places.get(TRIAL)
        taken = {name.lower() for name in study.space}
        asked = [study.value_column, *(w for w in ("value", study.goal, "result") if w not in taken)]
        self.value = next((places[w] for w in asked if w in places), None)
        self.params = {n: exact.get(n, places.get(n.lower())) for n in study.space}
        used = {self.trial, self.value, *self.params.values()}
        self.ignored = [name for i, name in enumerate(names) if name and i not in used]
        self._check(path, names)

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
            raise SheetError(
                f"{path}: expected a column {missing[0]!r}{hint}; without trial numbers every parameter is needed"
            )

    def row(self, line: int, cells: list[str], *, comma: bool, own: bool) -> Row | None:
        """What a line says; None if it has no result."""
        place = f"line {line}"
        text = _cell(cells, self.value)
        if not text:
            return None
        number = None if own else _trial(place, _cell(cells, self.trial))
        outcome = _outcome(f"{place}, column {self._value_name!r}", text, comma=comma)
        params: dict[str, Any] = {}
        for name, column in self.params.items():
            given = _cell(cells, column)
            if given:
                params[name] = _value(place, name, self._space[name], given, comma=comma)
            elif number is None:
                raise SheetError(f"{place}: {name!r} is empty; a row of one's own needs every parameter")
        return Row(line, number, params, outcome)


def _lines(path: Path) -> tuple[list[tuple[int, list[str]]], bool]:
    """The file's cells by line, header first, and whether it has decimal commas."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SheetError(f"{path}: cannot be read: {error.strerror or error}; give a file that you may read") from None
    if data[:2] == b"PK":
        raise SheetError(f"{path}: this is a workbook, not a table of text; save it as CSV (File, Save As)")
    text = _decoded(data)
    first = text.partition("\n")[0]
    separator = max(";\t,", key=first.count)
    try:
        reader = csv.reader(io.StringIO(text.replace("\0", "")), delimiter=separator, strict=True)
        lines = [(reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)]
    except csv.Error as error:
        raise SheetError(f"{path}: expected CSV, got a line that is none ({error}); save it as CSV again") from None
    if not lines:
        raise SheetError(f"{path}: expected a table with a line of column names, got an empty file")
    # Where the decimal sign is a comma, spreadsheets separate columns by something else.
    return lines, separator != ","


def _decoded(data: bytes) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", errors="replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")  # older spreadsheets


def _cell(cells: list[str], column: int | None) -> str:
    return "" if column is None or column >= len(cells) else cells[column].strip()


def _trial(place: str, text: str) -> int | None:
    if not text:
        return None
    if not re.fullmatch(r"\d{1,15}(\.0*)?", text):
        raise SheetError(f"{place}: expected a trial number, got {text!r}; leave it empty in a row of your own")
    return int(float(text))


def _outcome(place: str, text: str, *, comma: bool) -> Outcome:
    failed = _FAILED.fullmatch(text)
    if failed:
        return Outcome(reason=failed.group(1).strip() or "failed, as told by hand")
    number = number_of(place, text, comma=comma)
    if not math.isfinite(number):
        raise SheetError(f"{place}: expected a number, got {text!r}; write the word failed if there is no result")
    return Outcome(number)


def number_of(place: str, text: str, *, comma: bool = False) -> float:
    """The number that a person wrote.

    Raises:
        SheetError: it is none; the message guesses why.
    """
    if _COMMA.fullmatch(text):
        if comma:
            return float(text.replace(",", "."))
        raise SheetError(f"{place}: expected a number, got {text!r}; write {text.replace(',', '.')!r} with a point")
    try:
        return float(text.replace("_", "x"))
    except ValueError:
        pass
    if _UNIT.match(text):
        raise SheetError(
            f"{place}: expected a number alone, got {text!r}; leave the unit out, and convert it if need be"
        )
    raise SheetError(f"{place}: expected a number, got {text!r}; correct it")


def _value(place: str, name: str, parameter: Parameter, text: str, *, comma: bool) -> Any:
    place = f"{place}, column {name!r}"
    if isinstance(parameter, Categorical):
        return _choice(place, parameter, text, comma=comma)
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


def _choice(place: str, parameter: Categorical, text: str, *, comma: bool) -> Any:
    texts = {as_text(choice): choice for choice in parameter.choices}
    if text in texts:
        return texts[text]
    folded = [t for t in texts if t.strip().casefold() == text.casefold()]
    if len(folded) == 1:
        return texts[folded[0]]
    try:
        number = number_of(place, text, comma=comma)
        return next(c for c in parameter.choices if type(c) in (int, float) and c == number)
    except (SheetError, StopIteration):
        pass
    near = difflib.get_close_matches(text, list(texts), n=1)
    advice = f"did you mean {near[0]!r}?" if near else "correct it"
    raise SheetError(f"{place}: expected one of {listed(parameter.choices)}, got {show(text)}; {advice}")
