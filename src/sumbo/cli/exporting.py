"""All trials as a file: CSV, JSON, JSON lines, Parquet, or a workbook, by how its name ends."""

import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sumbo.errors import MissingPackageError, SettingError
from sumbo.executors.objectives import as_text
from sumbo.study.files.cells import plain, written
from sumbo.study.files.sheets import TRIAL
from sumbo.study.files.toml import StudyFile

Records = Sequence[dict[str, Any]]

_NOT_IN_XML = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def as_csv(study: StudyFile, records: Records) -> str:
    """A table that `sumbo tell --own` can read again."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    names = _columns(study)
    table.writerow([names[TRIAL], *map(written, study.space.names), *list(names.values())[1:]])
    for row in records:
        params = [row["params"][name] for name in study.space]
        failed = "failed" if row["state"] == "failed" else None
        value = failed if row["value"] is None else row["value"]
        cells = [row[TRIAL], *params, value, *(row[key] for key in _REST)]
        table.writerow(["" if cell is None else written(cell) for cell in cells])
    return out.getvalue()


def _as_parquet(study: StudyFile, records: Records) -> bytes:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        what = "Parquet needs pyarrow; pip install pyarrow, or give a file that ends in .csv"
        raise MissingPackageError(what) from None
    columns = _by_column(study, records)
    for name in study.space:
        values = columns[name]
        if len({type(value) for value in values if value is not None}) > 1:  # a column has one type
            columns[name] = [None if value is None else as_text(value) for value in values]
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), buffer)
    return buffer.getvalue()


def _as_workbook(study: StudyFile, records: Records) -> bytes:
    try:
        from openpyxl import Workbook
        from openpyxl.cell import WriteOnlyCell
    except ImportError:
        what = "a workbook needs openpyxl; pip install 'sumbo[xlsx]', or give a file that ends in .csv"
        raise MissingPackageError(what) from None
    book = Workbook(write_only=True)
    sheet = book.create_sheet("trials")

    def cell(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        made = WriteOnlyCell(sheet, _NOT_IN_XML.sub(lambda found: f"\\x{ord(found.group()):02x}", value))
        made.data_type, made.quotePrefix = "s", True  # text, also after somebody has edited it; never a formula
        return made

    columns = _by_column(study, records)
    sheet.append([cell(name) for name in columns])
    for row in zip(*columns.values(), strict=True):
        sheet.append([cell(value) for value in row])
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


_FORMATS: dict[str, Callable[[StudyFile, Records], bytes]] = {
    ".csv": lambda study, records: as_csv(study, records).encode(),
    ".json": lambda study, records: (json.dumps(list(records), indent=1) + "\n").encode(),
    ".jsonl": lambda study, records: "".join(json.dumps(row) + "\n" for row in records).encode(),
    ".parquet": _as_parquet,
    ".xlsx": _as_workbook,
}
_REST = ("state", "reason", "started", "seconds")


def format_of(path: Path) -> Callable[[StudyFile, Records], bytes]:
    """What makes the contents of such a file; a SettingError if its ending is not known."""
    ending = path.suffix.lower()
    if not ending and path.exists() and not path.is_file():  # a pipe or a device has no ending
        ending = ".csv"
    if ending not in _FORMATS:
        raise SettingError(f"{path}: expected a file that ends in one of {', '.join(_FORMATS)}; got {ending!r}")
    return _FORMATS[ending]


def _columns(study: StudyFile) -> dict[str, str]:
    """What the columns beside the parameters are called, by their keys: by these, unless a parameter is called so."""
    taken = {plain(name).lower() for name in study.space}
    names = {TRIAL: TRIAL, "value": study.value_column}
    for key in _REST:
        name = key
        while name in taken:
            name = f"trial {name}"
        names[key] = name
    return names


def _by_column(study: StudyFile, records: Records) -> dict[str, list[Any]]:
    names = _columns(study)
    columns = {TRIAL: [row[TRIAL] for row in records]}
    columns |= {name: [row["params"][name] for row in records] for name in study.space}
    return columns | {names[key]: [row[key] for row in records] for key in ("value", *_REST)}
