"""A stored study, shown: as plain data, as text and tables, as a file, and as a page, once or again and again."""

import argparse
import io
import json
import math
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sumbo._redaction import safe, shown
from sumbo.errors import MissingPackageError, SettingError
from sumbo.executors.objectives import as_text
from sumbo.space import Space
from sumbo.space.parameters import Parameter
from sumbo.study.files.cells import written
from sumbo.study.files.sheets import TRIAL, csv_text
from sumbo.study.files.toml import StudyFile, load
from sumbo.study.ledger import Record, is_feasible
from sumbo.study.stored import StoredStudy, storage_errors

if TYPE_CHECKING:  # compiled code, which most commands do not need
    from sumbo.insights.analysis import StudyAnalysis

Records = Sequence[dict[str, Any]]

_NOT_IN_XML = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDTH = 60  # of a line of blocks
_CELL = 10  # of a column of numbers, at least
_DIGITS = 6  # of a value, as far as its range has them
_ROWS = 12  # of a table of what was learned
_LOOK = 3.0  # seconds between two looks at a study that is being watched
_REST = 2.0  # a page is made again after so many times as long as it took


@contextmanager
def opened(file: StudyFile, *, create: bool = False) -> Iterator[StoredStudy]:
    """The stored study; what its database raises inside, too, is a StoreError."""
    with storage_errors(file):
        yield StoredStudy.open(file, create=create)


def record(file: StudyFile, trial: Record) -> dict[str, Any]:
    """A trial as plain data."""

    def encodable(text: str | None) -> str | None:
        """Words about a failure may hold bytes that were no text, such as those of a file name."""
        return text and safe(text, file.storage).encode("utf-8", "backslashreplace").decode("utf-8")

    params, started = trial.params, trial.started
    return {
        "trial": trial.number,
        "params": {name: params[name] for name in file.space if name in params},
        "context": context_of(file.space, params),
        "value": trial.value,
        "constraints": trial.constraints,
        "std": trial.std,
        "feasible": None if trial.value is None else is_feasible(trial, file.constraints),
        "state": trial.state,
        "reason": encodable(trial.reason),
        "detail": encodable(trial.detail),
        "started": None if started is None else datetime.fromtimestamp(started).isoformat(timespec="seconds"),
        "seconds": trial.seconds,
    }


def context_of(space: Space, params: Mapping[str, Any]) -> dict[str, Any]:
    """The values that the world set."""
    return {name: params[name] for name in space.context if name in params}


def best_text(study: StoredStudy) -> str:
    """The best trial, a line for each parameter, and for each constraint."""
    trial, constraints = study.best(), study.file.constraints
    if trial is None and study.counts().done:
        return f"no trial keeps all constraints yet: {_one_line(', '.join(map(str, constraints)))}\n"
    if trial is None:
        return "no trial has a value yet\n"
    noise = "" if trial.std is None else f" (std {trial.std:.6g})"
    measured = {c.name: f"{(trial.constraints or {})[c.name]:.10g} ({c})" for c in constraints}
    return point_text(f"trial {trial.number}: {trial.value:.10g}{noise}", study.file.space, trial.params, measured)


def point_text(head: str, space: Space, params: Mapping[str, Any], measured: Mapping[str, str] = {}) -> str:
    """A point, a line for each parameter that it has and each thing that was measured."""
    shown = {name: for_people(space[name], params[name]) for name in space if name in params} | dict(measured)
    rows = {_one_line(name): _one_line(text) for name, text in shown.items()}
    width = max(map(len, rows))
    return "\n".join([head, *(f"  {name:<{width}} = {text}" for name, text in rows.items())]) + "\n"


def for_people(parameter: Parameter, value: Any) -> str:
    """A value with the digits that matter: to a millionth of the range; with a step, those of the step."""
    width = parameter.high - parameter.low
    if not isinstance(value, float) or parameter.choices or parameter.step or not 0.0 < width < math.inf:
        return as_text(value)
    digits = _DIGITS if parameter.log or not value else _DIGITS + math.ceil(math.log10(abs(value) / width))
    return f"{value:.{min(max(digits, 1), 17)}g}"


def _overview(study: StoredStudy, last: int) -> str:
    """How the study stands."""
    file, counts, trials = study.file, study.counts(), study.records
    feasible = [trial for trial in trials if study.ledger.feasible(trial)]
    done = sum(trial.value is not None for trial in feasible)
    kept = [f"{done} of {counts.done} keep {', '.join(map(str, file.constraints))}"] if file.constraints else []
    cancelled = f", {counts.cancelled} cancelled" if counts.cancelled else ""
    lines = [
        f"{_one_line(file.name)}: {file.goal}, {file.space.dim} parameters, method {file.method}",
        f"stored in {shown(file.storage)}",
        f"{counts.finished} of {file.budget or 'any number of'} trials finished: {counts.done} done, {counts.failed} "
        f"failed; {counts.running} running, {counts.open} open (by hand), {counts.waiting} waiting{cancelled}",
        *map(_one_line, kept),
        "",
        f"best {best_text(study)}".rstrip(),
    ]
    curve = _sparkline(feasible, file.goal)
    if curve and can_write(curve):
        lines += ["", f"best so far{', the lower the better' if file.goal == 'minimize' else ''}: {curve}"]
    rows = [record(file, trial) for trial in trials]
    reasons = Counter(row["reason"] or "no reason on record" for row in rows if row["state"] == "failed")
    if reasons:
        lines += ["", "failures:", *(f"  {n} x {_one_line(reason)}" for reason, n in reasons.most_common(5))]
    opened = [str(trial.number) for trial in trials if trial.state == "open"]
    if opened:
        lines += ["", f"open, to be told: {', '.join(opened)}"]
    lines += ["", f"last {min(last, len(trials))} trials:"]
    head = [f"{_one_line(name):>{_CELL}}" for name in ("value", *file.measured)]
    lines += ["  ".join(["  trial", *head])] if file.constraints else []
    for row in rows[-last:]:
        what = f"{row['value']:.6g}" if row["state"] == "done" else row["state"]
        why = f" ({_one_line(row['reason'])})" if row["reason"] else ""
        if file.constraints and row["state"] == "done":
            told = row["constraints"] or {}
            cells = [what, *(f"{told[name]:.6g}" if name in told else "not told" for name in file.measured)]
            what = "  ".join(cell.rjust(len(title)) for cell, title in zip(cells, head, strict=True))
            why = "" if row["feasible"] else "  infeasible"
        lines.append(f"  {row['trial']:>5}  {what}{why}")
    return "\n".join(lines) + "\n"


def _one_line(text: str) -> str:
    """A text for a line on a terminal, which control characters would break, or worse."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def can_write(text: str) -> bool:
    """Has standard output letters for it? Not every terminal has blocks."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _sparkline(trials: Sequence[Record], goal: str) -> str:
    """The best value so far as a line of blocks, from the first value to the last; empty where it never changed."""
    best = list(accumulate((t.value for t in trials if t.value is not None), max if goal == "maximize" else min))
    if not best or best[-1] == best[0]:
        return ""
    some = best if len(best) <= _WIDTH else [best[round(k * (len(best) - 1) / (_WIDTH - 1))] for k in range(_WIDTH)]
    # A space knows where a value lies between two others, however far apart they are.
    between = Space.from_bounds([sorted((best[0], best[-1]))])
    places = [between.to_unit({"x0": value})[0] for value in some]
    return "".join(_BLOCKS[round(place * (len(_BLOCKS) - 1))] for place in places)


def learned(study: StoredStudy) -> dict[str, Any]:
    """What the report says too: shares of variance, interactions, the point to use, constraints; or why not."""
    from sumbo.insights.analysis import StudyAnalysis

    view = StudyAnalysis.of_stored(study)
    found = view.importance_or_reason
    point = None if view.unavailable_reason else view.recommendation
    limits = {
        "recommendation": point and {key: value for key, value in vars(point).items() if key != "x"},
        "best_value": None if point is None or view.best_value is None else str(view.best_value),
        "constraints": [vars(row) for row in view.constraint_rows],
    }
    if isinstance(found, str):
        return {"unavailable_reason": found, "shares": (), "groups": (), "interactions": ()} | limits
    groups = [(", ".join(row.parameters), row.share, row.std) for row in found.groups]
    return {
        "unavailable_reason": None,
        "shares": [(row.parameters[0], row.share, row.std) for row in found.parameters],
        "groups": [("all together", found.all_together.share, found.all_together.std), *groups],
        "interactions": [(row.first, row.second, row.probability) for row in view.interactions],
    } | limits


def show_overview(study: StoredStudy, last: int, found: dict[str, Any] | None) -> None:
    """Print how the study stands and, where it was asked for, what was learned."""
    sys.stdout.write(_overview(study, last))
    if found is None:
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from sumbo.insights.constraints import BINDS

    console, block = Console(), _BLOCKS[-1] if can_write(_BLOCKS) else "#"
    if (point := found["recommendation"]) is not None:
        sure = f"{point['value']:.5g} +- {point['std']:.2g} is expected, feasible: {point['probability_feasible']:.3f}"
        params = (f"  {_one_line(name)} = {_one_line(as_text(value))}\n" for name, value in point["params"].items())
        trust = (found["best_value"] or "").replace("±", "+-")
        sys.stdout.write(f"\nrecommended: {sure}\n{''.join(params)}{trust}\n")
    if found["constraints"]:
        table = Table("constraint", "at best", "kept", "holds", "binds", "value without it", box=None, pad_edge=False)
        for row in found["constraints"]:
            name, *numbers = row.values()
            table.add_row(Text(name, overflow="fold"), *("" if x is None else f"{x:.4g}" for x in numbers))
        console.print("", table, f"binds: {BINDS}", sep="\n")
    if found["unavailable_reason"] is not None:
        sys.stdout.write(f"\nlearned: {found['unavailable_reason']}\n")
        return
    for title, rows in (("parameter", found["shares"]), ("group", found["groups"])):
        table = Table(title, "share of variance", "", "plus or minus", box=None, pad_edge=False)
        for name, share, std in rows[:_ROWS]:
            # As text: a name in brackets is no style.
            table.add_row(Text(name, overflow="fold"), block * round(30 * share), f"{share:.3f}", f"{std:.3f}")
        console.print("", table, sep="\n")
    table = Table("interacting", "probability", box=None, pad_edge=False)
    for first, second, probability in found["interactions"][:_ROWS]:
        if probability >= 0.05:
            table.add_row(Text(f"{first}, {second}", overflow="fold"), f"{probability:.2f}")
    if table.row_count:
        console.print("", table, sep="\n")
    else:
        console.print("\nno two parameters are likely to interact")


def as_csv(study: StudyFile, records: Records) -> str:
    """A table that `sumbo tell --own` can read again."""
    columns = _by_column(study, records)
    columns[study.value_column] = ["failed" if row["state"] == "failed" else row["value"] for row in records]
    rows = [columns, *zip(*columns.values(), strict=True)]
    return csv_text(["" if cell is None else written(cell) for cell in row] for row in rows)


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


def format_of(path: Path) -> Callable[[StudyFile, Records], bytes]:
    """What makes the contents of such a file; a SettingError if its ending is not known."""
    ending = path.suffix.lower()
    if not ending and path.exists() and not path.is_file():  # a pipe or a device has no ending
        ending = ".csv"
    if ending not in _FORMATS:
        raise SettingError(f"{path}: expected a file that ends in one of {', '.join(_FORMATS)}; got {ending!r}")
    return _FORMATS[ending]


def _by_column(study: StudyFile, records: Records) -> dict[str, list[Any]]:
    """The columns by name; those beside the parameters have another one where a parameter is called so."""
    columns = {TRIAL: [row[TRIAL] for row in records]}
    columns |= {name: [row["params"].get(name) for row in records] for name in study.space}
    columns[study.value_column] = [row["value"] for row in records]
    columns |= {name: [(row["constraints"] or {}).get(name) for row in records] for name in study.measured}
    noise = ("std",) if any(row["std"] is not None for row in records) else ()
    for key in (*noise, "state", "reason", "started", "seconds"):
        columns[study.column(key)] = [row[key] for row in records]
    return columns


def write_report(options: argparse.Namespace) -> dict[str, Any]:
    """Write the page; with --watch until the studies are done or Ctrl-C."""
    from sumbo.report.page import write

    if options.storage:  # studies of any Optuna storage, by name
        from sumbo.integrations.optuna import open_view  # Optuna takes a second to import

        sources = [partial(open_view, options.storage, name) for name in options.studies]
    else:
        sources = [partial(_analysed, load(path)) for path in options.studies]
    target, started = Path(options.out), time.monotonic()
    views = [source(_say) for source in sources]
    write(views, target, watching=options.watch and not _over(views, options))
    try:
        if options.watch:
            _say("")
            sys.stderr.write(f"sumbo: watching; open {target} in a browser, Ctrl-C ends\n")
        took = time.monotonic() - started
        while options.watch and not _over(views, options):
            _say("")
            time.sleep(max(_LOOK, _REST * took))
            fresh = [source(_say) for source in sources]
            if list(map(_outline, fresh)) != list(map(_outline, views)):
                started = time.monotonic()
                write(fresh, target, watching=not _over(fresh, options))
                took, views = time.monotonic() - started, fresh
    except KeyboardInterrupt:
        write(views, target)  # a page that nobody refreshes any more shall not look again
    _say("")
    return {"out": str(target), "bytes": target.stat().st_size, "trials": sum(len(view.rows) for view in views)}


def _analysed(file: StudyFile, say: Callable[[str], None]) -> "StudyAnalysis":
    from sumbo.insights.analysis import StudyAnalysis

    with opened(file) as study:
        return StudyAnalysis.of_stored(study, say=say)


def _outline(view: "StudyAnalysis") -> list[tuple[Any, ...]]:
    return [(row.number, row.state, row.value) for row in view.rows]


def _over(views: "Sequence[StudyAnalysis]", options: argparse.Namespace) -> bool:
    """Have all studies spent their budgets, as their files say now?"""
    budgets = [None if options.storage else load(path).budget for path in options.studies]
    finished = [len(view.in_state("done", "failed")) for view in views]
    return all(budget is not None and n >= budget for n, budget in zip(finished, budgets, strict=True))


def _say(text: str) -> None:
    """What is being done, on a line of a terminal that changes, and that no text clears; in a log, nothing."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[Ksumbo: {text}" if text else "\r\x1b[K")
        sys.stderr.flush()
