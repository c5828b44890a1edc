"""What each command does."""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sumbo.errors import SettingError, SheetError, StudyFileError

if TYPE_CHECKING:
    from sumbo.executors.results import EvaluationResult
    from sumbo.study.files.toml import StudyFile
    from sumbo.study.ledger import Record
    from sumbo.study.stored import StoredStudy


def run(options: argparse.Namespace) -> int:
    """Evaluate until the budget is spent."""
    from sumbo.study import stored_run
    from sumbo.study.files.method import method_of
    from sumbo.study.files.toml import load
    from sumbo.study.stored import StoredStudy, storage_errors

    study = load(options.study)
    if options.budget:
        study = replace(study, budget=options.budget)
    budget = study.budget
    if budget is None:
        raise StudyFileError(f"{study.path}: budget is missing; add it, or say --budget N")
    # All that can be wrong with the file is said before there is a study.
    stored_run.checked_objective(study)
    method_of(study)
    with storage_errors(study):
        store = StoredStudy.open(study, create=True)
        with _Shown(store, budget) as shown:
            for note in store.notes:
                shown.say(note)
            ended = stored_run.run(store, budget, options.workers or study.workers, shown.ended, shown.say)
        store.ledger.refresh()
        counts = store.counts()
        if ended and counts.running + counts.waiting and counts.finished < budget:
            sys.stderr.write(f"sumbo: {counts.running} trials are being run elsewhere\n")
        if not ended:
            sys.stderr.write("sumbo: interrupted; run the same command to go on\n")
        data = _summary(store) | {"interrupted": not ended}
        failed = sorted((t for t in store.records if t.state == "failed"), key=lambda trial: trial.told or 0)
        code = 130 if not ended else 3 if failed and store.best() is None else 0
        if code == 3:
            last = _record(store, failed[-1])["reason"]
            said = f"none of {len(failed)} evaluations succeeded; the last failed: {last}"
            sys.stderr.write(f"sumbo: {said}\n")
            data |= {"error": said, "exit_code": code}
        _answer(options, data, lambda: _print_best(store))
    return code


def ask(options: argparse.Namespace) -> int:
    """Hand out experiments."""
    from sumbo.study.files import sheets
    from sumbo.study.files.method import method_of
    from sumbo.study.files.toml import load
    from sumbo.study.stored import StoredStudy, storage_errors

    study = load(options.study)
    if options.open and options.n is not None:
        raise SettingError("--open lists experiments handed out before, -n asks for new ones; give one of them")
    if (options.append or options.force) and not options.csv:
        raise SettingError("--append and --force say what becomes of a table that is there; name it with --csv FILE")
    target = Path(options.csv) if options.csv else None
    _check_table(study, target, options)
    if not options.open:
        method_of(study)
    with storage_errors(study):
        store = StoredStudy.open(study, create=not options.open)
        if options.open:
            trials = [trial for trial in store.records if trial.state == "open"]
        else:
            trials = [store.hand_out() for _ in range(options.n or 1)]
        rows = [(trial.number, trial.params) for trial in trials]
        text = sheets.write_sheet(study, rows)
        if target is not None:
            added = options.append and _is_filled(target)
            _check_table(study, target, options)  # again: somebody may have saved it meanwhile
            _write(target, sheets.with_rows(study, target, rows) if added else text.encode("utf-8"))
    asked = [{"trial": number, "params": params} for number, params in rows]
    message = f"{len(rows)} experiments in {options.csv}; fill in the column {study.value_column!r}, then: "
    message += f"sumbo tell {options.study} {options.csv}\n"
    _answer(
        options,
        {"trials": asked, "csv": options.csv},
        lambda: sys.stdout.write(message) if options.csv else _write_out(text),
    )
    return 0


def tell(options: argparse.Namespace) -> int:
    """Record results."""
    from sumbo.cli.parser import BY_HAND
    from sumbo.executors.results import EvaluationResult
    from sumbo.study.files import sheets, telling
    from sumbo.study.files.toml import load
    from sumbo.study.stored import StoredStudy, storage_errors

    study = load(options.study)
    _check_tell(options)
    notes: list[str] = []
    with storage_errors(study):
        if options.trial is None:
            sheet = sheets.read_sheet(study, options.result, own=options.own)
            # A table of one's own can begin a study.
            store = StoredStudy.open(study, create=all(row.number is None for row in sheet.rows))
            told = telling.tell_sheet(store, sheet, options.result, replace=options.replace)
            if sheet.empty:
                notes.append(f"{sheet.empty} rows have no result yet")
            if sheet.ignored:
                notes.append(f"columns left alone: {', '.join(sheet.ignored)}")
        else:
            store = StoredStudy.open(study, create=False)
            why = options.failed
            result = _value(options.result) if why is None else EvaluationResult(reason=why.strip() or BY_HAND)
            told = telling.tell_one(store, options.trial, result, replace=options.replace)
        store.ledger.refresh()
        counts = store.counts()
    text = f"{len(told.told)} told, {len(told.added)} of your own, {len(told.replaced)} corrected, {told.known} known\n"
    text += "".join(f"note: {note}\n" for note in notes)
    _answer(options, asdict(told) | {"notes": notes, "counts": asdict(counts)}, lambda: sys.stdout.write(text))
    return 0


def cancel(options: argparse.Namespace) -> int:
    """Take trials back."""
    from sumbo.study.files import telling
    from sumbo.study.files.toml import load
    from sumbo.study.stored import StoredStudy, storage_errors

    study = load(options.study)
    with storage_errors(study):
        store = StoredStudy.open(study, create=False)
        telling.cancel(store, list(dict.fromkeys(options.trials)))
        store.ledger.refresh()
    text = f"cancelled: {', '.join(map(str, options.trials))}\n"
    _answer(options, {"cancelled": options.trials, "counts": asdict(store.counts())}, lambda: sys.stdout.write(text))
    return 0


def best(options: argparse.Namespace) -> int:
    """Show the best trial."""
    from sumbo.study.files.toml import load
    from sumbo.study.stored import StoredStudy, storage_errors

    study = load(options.study)
    with storage_errors(study):
        store = StoredStudy.open(study, create=False)
        found = store.best()
        _answer(options, _summary(store), lambda: _print_best(store))
    return 0 if found is not None else 1


def show(options: argparse.Namespace) -> int:
    """Show how the study stands."""
    from sumbo.cli.looking import learned, show_overview
    from sumbo.study.files.toml import load
    from sumbo.study.stored import StoredStudy, storage_errors

    study = load(options.study)
    with storage_errors(study):
        store = StoredStudy.open(study, create=False)
        trials = store.records
        data = _summary(store) | {"trials": [_record(store, trial) for trial in trials[-options.n :]]}
        found = learned(store) if options.learned else None
        if found is not None:
            data["learned"] = found.as_dict()
        _answer(options, data, lambda: show_overview(store, options.n, found))
    return 0


def export(options: argparse.Namespace) -> int:
    """Write all trials."""
    from sumbo.cli.exporting import as_csv, format_of
    from sumbo.study.files.toml import load
    from sumbo.study.stored import StoredStudy, storage_errors

    study = load(options.study)
    target = Path(options.optuna or options.out) if options.optuna or options.out else None
    if options.optuna:
        from sumbo.integrations.optuna.export import as_optuna

        if os.path.lexists(options.optuna):
            raise SettingError(
                f"{options.optuna}: expected a new file, and there is such a file already; choose another"
            )
    _check_target(target)
    contents = None if target is None else as_optuna if options.optuna else format_of(target)
    with storage_errors(study):
        store = StoredStudy.open(study, create=False)
        records = [_record(store, trial) for trial in store.records]
    _check_told(study, target, records)
    if target is None or contents is None:
        _answer(options, {"trials": records}, lambda: _write_out(as_csv(study, records)))
        return 0
    _write(target, contents(study, records))
    text = f"{len(records)} trials in {target}\n"
    _answer(options, {"trials": len(records), "out": str(target)}, lambda: sys.stdout.write(text))
    return 0


def report(options: argparse.Namespace) -> int:
    """Write the page that shows what was learned."""
    from sumbo.cli import reporting

    made = reporting.report(options)
    _answer(options, made, lambda: sys.stdout.write(f"{made['trials']} trials in {made['out']}\n"))
    return 0


def reproduce(options: argparse.Namespace) -> int:
    """Do the paper's experiments again."""
    from sumbo.cli import reproducing

    return reproducing.reproduce(options)


def replay(options: argparse.Namespace) -> int:
    """Make the suggestions of a study again."""
    from sumbo.study.files.toml import load
    from sumbo.study.stored import StoredStudy, storage_errors

    study = load(options.study)
    with storage_errors(study):
        found = StoredStudy.open(study, create=False).replay()
    _answer(options, asdict(found) | {"exact": found.exact}, lambda: sys.stdout.write(f"{found}\n"))
    return 0 if found.exact else 1


def demo(options: argparse.Namespace) -> int:
    """Show sumbo at work."""
    from rich.console import Console

    from sumbo.cli import demo as demonstration

    console = Console(stderr=options.json)
    console.print(demonstration.introduction(options.seed))
    started = time.monotonic()
    outcome = demonstration.run(options.seed, options.budget)
    groups = [list(group) for group in outcome.learned.groups]
    data = {"best": outcome.best, "at_random": outcome.at_random, "optimum": outcome.problem.optimum, "groups": groups}
    table = demonstration.summary(outcome, time.monotonic() - started)
    _answer(options, data, lambda: console.print(table))
    return 0


def completion(options: argparse.Namespace) -> int:
    """Print a completion script."""
    from sumbo.cli.completion import script
    from sumbo.cli.parser import make_parser

    text = script(options.shell, make_parser())
    _answer(options, {"shell": options.shell, "script": text}, lambda: sys.stdout.write(text))
    return 0


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    command.__name__: command
    for command in (run, ask, tell, cancel, best, show, export, report, replay, reproduce, demo, completion)
}


# --- answers -----------------------------------------------------------------------------------------------


def _answer(options: argparse.Namespace, data: dict[str, Any], write: Callable[[], object]) -> None:
    if options.json:
        sys.stdout.write(json.dumps(data) + "\n")
    else:
        write()


def _write_out(text: str) -> None:
    """A table is data: where standard output has no letters for it, it comes in UTF-8 all the same."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8"))
    else:
        sys.stdout.write(text)


def _record(store: "StoredStudy", trial: "Record") -> dict[str, Any]:
    from sumbo.cli.looking import record

    return record(store.file, trial)


def _summary(store: "StoredStudy") -> dict[str, Any]:
    found = store.best()
    return {
        "study": store.file.name,
        "goal": store.file.goal,
        "trial": None if found is None else found.number,
        "value": None if found is None else found.value,
        "params": None if found is None else found.params,
        "counts": asdict(store.counts()),
    }


def _print_best(store: "StoredStudy") -> None:
    from sumbo.cli.looking import best_text

    sys.stdout.write(best_text(store))


@dataclass(frozen=True)
class _Line:
    """A trial for the progress bar."""

    value: float | None
    state: str


class _Shown:
    """A bar on a terminal; in a log, a line for each trial."""

    def __init__(self, store: "StoredStudy", budget: int) -> None:
        from sumbo.study.progress import Progress

        counts = store.counts()
        self._store = store
        self._budget = budget
        self._terminal = sys.stderr.isatty()
        self._bar = Progress(budget, enabled=True, done=counts.finished, failed=counts.failed)
        self.say = self._bar.say

    def __enter__(self) -> "_Shown":
        self._bar.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._bar.__exit__(*error)

    def ended(self, record: "Record", result: "EvaluationResult") -> None:
        """One more trial."""
        best, failed = self._store.best(), result.value is None
        text = (
            f"trial {record.number} failed: {result.reason}" if failed else f"trial {record.number}: {result.value:.6g}"
        )
        if self._terminal:
            if failed:
                self.say(text)
            value = None if best is None else _Line(best.value, "done")
            self._bar.update(value, _Line(result.value, "failed" if failed else "done"))
            return
        least = "-" if best is None else f"{best.value:.6g}"
        self.say(f"{text} (best {least}, {self._store.counts().finished}/{self._budget})")


# --- arguments ---------------------------------------------------------------------------------------------


def _check_tell(options: argparse.Namespace) -> None:
    if options.trial is None and (options.result is None or options.failed is not None):
        raise SettingError("tell: expected a table, or --trial N with a value or --failed; see sumbo tell --help")
    if options.trial is not None and (options.result is None) == (options.failed is None):
        raise SettingError("tell: with --trial, give either a value or --failed")
    if options.trial is not None and options.own:
        raise SettingError("tell: --own is for tables; leave it out with --trial")
    if options.trial is None and not os.path.exists(options.result):
        raise SettingError(
            f"tell: expected a table, or --trial N with a value; there is no file {options.result!r}. A value alone "
            "does not say which trial it is of: sumbo tell STUDY.toml --trial N VALUE"
        )


def _value(text: str) -> Any:
    from sumbo.executors.results import result_of
    from sumbo.study.files.cells import number_of

    result = result_of(number_of("value", text))
    if result.value is None:
        raise SheetError(f"value: expected a finite number, got {text!r}; use --failed if there is none")
    return result


def _check_target(path: Path | None) -> None:
    """Before trials are handed out: can the file be written?"""
    if path is None:
        return
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise SettingError(f"{path}: expected a file in a folder that exists; correct the path")
    if path.is_file() or not path.exists():  # no pipe or device
        try:
            tempfile.TemporaryFile(dir=os.path.dirname(os.path.realpath(path))).close()
        except OSError as error:
            raise SettingError(f"{path}: cannot be written: {error.strerror or error}; choose another path") from None


def _check_told(study: "StudyFile", path: Path | None, records: list[dict[str, Any]]) -> None:
    """Before a table is written over: was everything told that was typed into it?"""
    from sumbo.study.files import sheets

    if path is None or not _is_filled(path):
        return
    try:
        filled = sheets.filled_trials(study, path)
    except SheetError:  # no table of this study
        return
    if any(record["state"] == "open" and str(record["trial"]) in filled for record in records):
        raise SettingError(
            f"{path}: results were typed into it that have not been told; tell them first (sumbo tell {study.path} "
            f"{path}), or give another name"
        )


def _is_filled(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def _check_table(study: "StudyFile", path: Path | None, options: argparse.Namespace) -> None:
    """Before trials are handed out: can the table be written, and nothing be lost that was typed into it?"""
    from sumbo.study.files import sheets

    _check_target(path)
    if path is None or options.force or not _is_filled(path):
        return
    if not options.append:
        raise SettingError(
            f"{path}: there is such a file already, and results may have been typed into it; say --append to add rows "
            "to it, --force to write over it, or give another name"
        )
    sheets.with_rows(study, path, [])


def _write(path: Path, data: bytes) -> None:
    from sumbo._files import write_whole

    try:
        write_whole(path, data)
    except OSError as error:
        raise SettingError(
            f"{path}: cannot be written: {error.strerror or error}. Trials stay open: see sumbo ask --open"
        ) from None
