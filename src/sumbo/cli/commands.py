"""What each command does."""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sumbo.errors import SettingError, SheetError, StudyFileError

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from sumbo.studies.store import Store


def run(options: argparse.Namespace) -> int:
    """Evaluate until the budget is spent."""
    from sumbo.studies import loop
    from sumbo.studies.file import load
    from sumbo.studies.method import method_of
    from sumbo.studies.store import Store, storage_errors

    study = load(options.study)
    if options.budget:
        study = replace(study, budget=options.budget)
    budget = study.budget
    if budget is None:
        raise StudyFileError(f"{study.path}: budget is missing; add it, or say --budget N")
    # All that can be wrong with the file is said before there is a study.
    loop.checked_objective(study)
    method_of(study)
    with storage_errors(study):
        store = Store.open(study, create=True)
        with _Shown(store, budget) as shown:
            for note in store.notes:
                shown.say(note)
            workers = options.workers or study.workers
            ended = loop.run(study, store, budget, workers, loop.Listener(shown.ended, shown.say))
        counts = store.counts()
        if ended and counts.running + counts.waiting and counts.finished < budget:
            sys.stderr.write(f"sumbo: {counts.running} trials are being run elsewhere\n")
        if not ended:
            sys.stderr.write("sumbo: interrupted; run the same command to go on\n")
        _answer(options, _summary(store) | {"interrupted": not ended}, lambda: _print_best(store))
    return 0 if ended else 130


def ask(options: argparse.Namespace) -> int:
    """Hand out experiments."""
    from sumbo.studies import owners, sheets
    from sumbo.studies.file import load
    from sumbo.studies.method import method_of
    from sumbo.studies.store import Store, is_open, storage_errors

    study = load(options.study)
    if options.open and options.n is not None:
        raise SettingError("--open lists experiments handed out before, -n asks for new ones; give one of them")
    _check_target(Path(options.csv) if options.csv else None)
    if not options.open:
        method_of(study)
    with storage_errors(study):
        store = Store.open(study, create=not options.open)
        if options.open:
            rows = [(t.number, t.params) for t in store.trials() if is_open(t) and t.params]
        else:
            store.recover()
            store.prepare()
            asked = [store.ask(owners.HAND) for _ in range(options.n or 1)]
            rows = [(trial.number, trial.params) for trial in asked if trial is not None]
        text = sheets.write_sheet(study, rows)
        if options.csv:
            _write(Path(options.csv), text.encode("utf-8"))
    trials = [{"trial": number, "params": params} for number, params in rows]
    message = f"{len(rows)} experiments in {options.csv}; fill in the column {study.value_column!r}, then: "
    message += f"sumbo tell {options.study} {options.csv}\n"
    _answer(options, {"trials": trials, "csv": options.csv}, lambda: sys.stdout.write(message if options.csv else text))
    return 0


def tell(options: argparse.Namespace) -> int:
    """Record results."""
    from sumbo.studies import sheets, telling
    from sumbo.studies.file import load
    from sumbo.studies.objectives import Outcome
    from sumbo.studies.store import Store, storage_errors

    study = load(options.study)
    _check_tell(options)
    notes: list[str] = []
    with storage_errors(study):
        if options.trial is None:
            sheet = sheets.read_sheet(study, options.result, own=options.own)
            # A table of one's own can begin a study.
            store = Store.open(study, create=all(row.number is None for row in sheet.rows))
            told = telling.tell_sheet(store, sheet, options.result, replace=options.replace)
            if sheet.empty:
                notes.append(f"{sheet.empty} rows have no result yet")
            if sheet.ignored:
                notes.append(f"columns left alone: {', '.join(sheet.ignored)}")
        else:
            store = Store.open(study, create=False)
            outcome = Outcome(reason=options.failed) if options.failed else _value(options.result)
            told = telling.tell_one(store, options.trial, outcome, replace=options.replace)
        counts = store.counts()
    text = f"{len(told.told)} told, {len(told.added)} of your own, {len(told.replaced)} corrected, {told.known} known\n"
    text += "".join(f"note: {note}\n" for note in notes)
    _answer(options, asdict(told) | {"notes": notes, "counts": asdict(counts)}, lambda: sys.stdout.write(text))
    return 0


def best(options: argparse.Namespace) -> int:
    """Show the best trial."""
    from sumbo.studies.file import load
    from sumbo.studies.store import Store, storage_errors

    study = load(options.study)
    with storage_errors(study):
        store = Store.open(study, create=False)
        found = store.best()
        _answer(options, _summary(store), lambda: _print_best(store))
    return 0 if found is not None else 1


def show(options: argparse.Namespace) -> int:
    """Show how the study stands."""
    from sumbo.cli.looking import learned, show_overview
    from sumbo.studies.file import load
    from sumbo.studies.store import Store, storage_errors

    study = load(options.study)
    with storage_errors(study):
        store = Store.open(study, create=False)
        trials = store.trials()
        data = _summary(store) | {"trials": [_record(store, trial) for trial in trials[-options.n :]]}
        found = learned(store) if options.learned else None
        if found is not None:
            data["learned"] = found.as_dict()
        _answer(options, data, lambda: show_overview(store, options.n, found))
    return 0


def export(options: argparse.Namespace) -> int:
    """Write all trials."""
    from sumbo.cli.looking import as_csv, as_parquet
    from sumbo.studies.file import load
    from sumbo.studies.store import Store, storage_errors

    study = load(options.study)
    target = Path(options.out) if options.out else None
    _check_target(target)
    with storage_errors(study):
        store = Store.open(study, create=False)
        records = [_record(store, trial) for trial in store.trials()]
    if target is None:
        _answer(options, {"trials": records}, lambda: sys.stdout.write(as_csv(study, records)))
        return 0
    parquet = target.suffix.lower() == ".parquet"
    _write(target, as_parquet(study, records) if parquet else as_csv(study, records).encode("utf-8"))
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
    from sumbo.studies.file import load
    from sumbo.studies.replaying import in_words, replayed
    from sumbo.studies.store import Store, storage_errors

    study = load(options.study)
    with storage_errors(study):
        found = replayed(Store.open(study, create=False))
    _answer(options, asdict(found) | {"exact": found.exact}, lambda: sys.stdout.write(in_words(found)))
    return 0 if found.exact else 1


def demo(options: argparse.Namespace) -> int:
    """Show sumbo at work."""
    from rich.console import Console

    from sumbo import demo as demonstration

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
    for command in (run, ask, tell, best, show, export, report, replay, reproduce, demo, completion)
}


# --- answers -----------------------------------------------------------------------------------------------


def _answer(options: argparse.Namespace, data: dict[str, Any], write: Callable[[], object]) -> None:
    if options.json:
        sys.stdout.write(json.dumps(data) + "\n")
    else:
        write()


def _record(store: "Store", trial: "FrozenTrial") -> dict[str, Any]:
    from sumbo.cli.looking import record

    return record(store.study, trial)


def _summary(store: "Store") -> dict[str, Any]:
    found = store.best()
    return {
        "study": store.study.name,
        "goal": store.study.goal,
        "trial": None if found is None else found.number,
        "value": None if found is None else found.value,
        "params": None if found is None else found.params,
        "counts": asdict(store.counts()),
    }


def _print_best(store: "Store") -> None:
    from sumbo.cli.looking import best_text

    sys.stdout.write(best_text(store))


@dataclass(frozen=True)
class _Line:
    """A trial for the progress bar."""

    value: float | None
    state: str


class _Shown:
    """A bar on a terminal; in a log, a line for each trial."""

    def __init__(self, store: "Store", budget: int) -> None:
        from sumbo.progress import Progress

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

    def ended(self, ended: Any) -> None:
        """One more trial."""
        best, outcome = self._store.best(), ended.outcome
        failed = outcome.reason is not None
        text = (
            f"trial {ended.number} failed: {outcome.reason}" if failed else f"trial {ended.number}: {outcome.value:.6g}"
        )
        if self._terminal:
            if failed:
                self.say(text)
            value = None if best is None else _Line(best.value, "done")
            self._bar.update(value, _Line(outcome.value, "failed" if failed else "done"))
            return
        least = "-" if best is None else f"{best.value:.6g}"
        self.say(f"{text} (best {least}, {self._store.counts().finished}/{self._budget})")


# --- arguments ---------------------------------------------------------------------------------------------


def _check_tell(options: argparse.Namespace) -> None:
    if options.trial is None and (options.result is None or options.failed):
        raise SettingError("tell: expected a table, or --trial N with a value or --failed; see sumbo tell --help")
    if options.trial is not None and (options.result is None) == (options.failed is None):
        raise SettingError("tell: with --trial, give either a value or --failed")
    if options.trial is not None and options.own:
        raise SettingError("tell: --own is for tables; leave it out with --trial")


def _value(text: str) -> Any:
    from sumbo.studies.objectives import outcome_of
    from sumbo.studies.sheets import number_of

    outcome = outcome_of(number_of("value", text))
    if outcome.value is None:
        raise SheetError(f"value: expected a finite number, got {text!r}; use --failed if there is none")
    return outcome


def _check_target(path: Path | None) -> None:
    """Before trials are handed out: can the file be written?"""
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise SettingError(f"{path}: expected a file in a folder that exists; correct the path")


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise SettingError(
            f"{path}: cannot be written: {error.strerror or error}. Trials stay open: see sumbo ask --open"
        ) from None
