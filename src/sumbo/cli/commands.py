"""What each command does, as `parser.py` says it: a function of its name, which returns the exit code."""

import argparse
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sumbo._files import write_whole
from sumbo.cli.parser import BY_HAND
from sumbo.cli.show import (
    as_csv,
    best_text,
    can_write,
    context_of,
    format_of,
    learned,
    opened,
    point_text,
    record,
    show_overview,
    write_report,
)
from sumbo.errors import SettingError, SheetError, SpaceError, StudyFileError
from sumbo.executors import EvaluationResult, complete
from sumbo.space.parameters import hinted, listed
from sumbo.study.files import sheets
from sumbo.study.files.cells import number_of
from sumbo.study.files.toml import StudyFile, load, method_of
from sumbo.study.ledger import Record
from sumbo.study.stored import StoredStudy

if TYPE_CHECKING:  # compiled code, which most commands do not need
    from sumbo.study.runner import Progress


def run(options: argparse.Namespace) -> int:
    from sumbo.study.run import checked_objective, run_stored
    from sumbo.study.runner import Progress

    study = load(options.study)
    budget = options.budget or study.budget
    if budget is None:
        raise StudyFileError(f"{study.path}: budget is missing; add it, or say --budget N")
    if study.space.context:
        names = " ".join(f"--context {name}=VALUE" for name in study.space.context)
        raise SettingError(
            f"{study.path}: sumbo run does not know the context {listed(study.space.context)}, which the world sets; "
            f"use sumbo ask {names} and sumbo tell"
        )
    # All that can be wrong with the file is said before there is a study.
    checked_objective(study)
    method_of(study)
    with opened(replace(study, budget=budget), create=True) as store:
        counts = store.counts()
        with Progress(budget, enabled=True, done=counts.finished, failed=counts.failed) as bar:
            for note in store.notes:
                bar.say(note)
            show = partial(_show_result, bar, store)
            ended = run_stored(store, budget, options.workers or study.workers, show, bar.say)
        store.ledger.refresh()
        counts = store.counts()
        if ended and counts.running + counts.waiting and counts.finished < budget:
            sys.stderr.write(f"sumbo: {counts.running} trials are being run elsewhere\n")
        if not ended:
            sys.stderr.write("sumbo: interrupted; run the same command to go on\n")
        data = _summary(store) | {"interrupted": not ended}
        failed = sorted((t for t in store.records if t.state == "failed"), key=lambda trial: trial.told or 0)
        code = 130 if not ended else 3 if failed and not counts.done else 0
        if code == 3:
            last = record(study, failed[-1])["reason"]
            said = f"none of {len(failed)} evaluations succeeded; the last failed: {last}"
            sys.stderr.write(f"sumbo: {said}\n")
            data |= {"error": said, "exit_code": code}
        return _answer(options, data, best_text(store), code=code)


def _show_result(bar: "Progress", store: StoredStudy, record: Record, result: EvaluationResult) -> bool:
    """Show it by the bar on a terminal; in a log, by a line for each trial."""
    best, failed = store.best(), result.value is None
    what = f"failed: {result.reason}" if failed else f"{result.value:.6g}"
    what += "" if failed or store.ledger.feasible(store.records[record.number]) else ", infeasible"
    text = f"trial {record.number}{'' if failed else ':'} {what}"
    if bar.on_terminal:
        if failed:
            bar.say(text)
        bar.update(best, failed=failed)
    else:
        least = "-" if best is None else f"{best.value:.6g}"
        bar.say(f"{text} (best {least}, {store.counts().finished}/{bar.budget})")
    return False  # it goes on


def ask(options: argparse.Namespace) -> int:
    study = load(options.study)
    if options.open and options.n is not None:
        raise SettingError("--open lists experiments handed out before, -n asks for new ones; give one of them")
    if (options.append or options.force) and not options.csv:
        raise SettingError("--append and --force say what becomes of a table that is there; name it with --csv FILE")
    if options.open and (options.context or options.fix):
        raise SettingError("--open lists experiments handed out before; --context and --fix are for new ones")
    context, fixed = ({}, {}) if options.open else _given(study, options.context, options.fix)
    target = Path(options.csv) if options.csv else None
    if target is not None:
        _check_table(study, target, options)
    if not options.open:
        method_of(study)
    with opened(study, create=not options.open) as store:
        if options.open:
            trials = [trial for trial in store.records if trial.state == "open"]
        else:
            for note in store.notes:
                sys.stderr.write(f"sumbo: {note}\n")
            trials = [store.hand_out(context, fixed) for _ in range(options.n or 1)]
        rows = [(trial.number, trial.params) for trial in trials]
        text = sheets.write_sheet(study, rows)
        if target is not None:
            added = options.append and _is_filled(target)
            _check_table(study, target, options)  # again: somebody may have saved it meanwhile
            _write(target, sheets.with_rows(study, target, rows) if added else text.encode("utf-8"))
    asked = [{"trial": n, "params": params, "context": context_of(study.space, params)} for n, params in rows]
    columns = ", ".join(repr(name) for name in (study.value_column, *study.measured))
    columns = f"columns {columns}" if study.constraints else f"column {columns}"
    message = f"{len(rows)} experiments in {options.csv}; fill in the {columns}, then: "
    message += f"sumbo tell {options.study} {options.csv}\n"
    answer = {"trials": asked, "csv": options.csv}
    return _answer(options, answer, lambda: sys.stdout.write(message) if options.csv else _write_out(text))


def tell(options: argparse.Namespace) -> int:
    study = load(options.study)
    _check_tell(options)
    # A table of one's own can begin a study.
    sheet = sheets.read_sheet(study, options.result, own=options.own) if options.trial is None else None
    notes: list[str] = []
    with opened(study, create=sheet is not None and all(row.number is None for row in sheet.rows)) as store:
        if sheet is not None:
            told = sheets.tell_sheet(store, sheet, options.result, replace=options.replace)
            notes += [f"{sheet.empty} rows have no result yet"] if sheet.empty else []
            notes += [f"columns left alone: {', '.join(sheet.ignored)}"] if sheet.ignored else []
        else:
            told = sheets.tell_one(store, options.trial, _result(study, options), replace=options.replace)
        data = asdict(told) | {"notes": notes, "counts": _counts_now(store)}
    text = f"{len(told.told)} told, {len(told.added)} of your own, {len(told.replaced)} corrected, {told.known} known\n"
    text += "".join(f"note: {note}\n" for note in notes)
    return _answer(options, data, text)


def cancel(options: argparse.Namespace) -> int:
    with opened(load(options.study)) as store:
        sheets.cancel(store, list(dict.fromkeys(options.trials)))
        data = {"cancelled": options.trials, "counts": _counts_now(store)}
    text = f"cancelled: {', '.join(map(str, options.trials))}\n"
    return _answer(options, data, text)


def best(options: argparse.Namespace) -> int:
    study = load(options.study)
    if options.context and not options.denoised:
        raise SettingError("best: --context is for --denoised; the best trial is that of all contexts")
    if options.denoised:
        return _denoised(study, options)
    with opened(study) as store:
        return _answer(options, _summary(store), best_text(store), code=0 if store.best() is not None else 1)


def _denoised(study: StudyFile, options: argparse.Namespace) -> int:
    context, _ = _given(study, options.context, [])
    with opened(study) as store:
        found = store.optimizer.recommend(context=context)
    data: dict[str, Any] = {"study": study.name, "goal": study.goal, "params": found.params, "context": context}
    data |= {"value": found.value, "std": found.std, "probability_feasible": found.probability_feasible}
    head = f"expected: {found.value:.6g}, plus or minus {found.std:.2g}"
    head += f"; feasible with probability {found.probability_feasible:.2g}"
    return _answer(options, data, point_text(head, study.space, found.params))


def show(options: argparse.Namespace) -> int:
    with opened(load(options.study)) as store:
        data = _summary(store) | {"trials": [record(store.file, trial) for trial in store.records[-options.n :]]}
        found = learned(store) if options.learned else None
        if found is not None:
            data["learned"] = found
        return _answer(options, data, lambda: show_overview(store, options.n, found))


def export(options: argparse.Namespace) -> int:
    study = load(options.study)
    target = Path(options.optuna or options.out or "")
    if options.optuna:
        from sumbo.integrations.optuna import as_optuna

        if os.path.lexists(target):
            raise SettingError(f"{options.optuna}: expected a new file, and it is there already; choose another")
    contents = None
    if options.optuna or options.out:
        _check_target(target)
        contents = as_optuna if options.optuna else format_of(target)
    with opened(study) as store:
        records = [record(study, trial) for trial in store.records]
    if contents is None:
        return _answer(options, {"trials": records}, lambda: _write_out(as_csv(study, records)))
    _check_told(study, target, records)
    _write(target, contents(study, records))
    text = f"{len(records)} trials in {target}\n"
    return _answer(options, {"trials": len(records), "out": str(target)}, text)


def report(options: argparse.Namespace) -> int:
    made = write_report(options)
    return _answer(options, made, f"{made['trials']} trials in {made['out']}\n")


def reproduce(options: argparse.Namespace) -> int:
    from sumbo.cli import reproducing

    return reproducing.reproduce(options)


def replay(options: argparse.Namespace) -> int:
    with opened(load(options.study)) as store:
        found = store.replay()
    return _answer(options, asdict(found) | {"exact": found.exact}, f"{found}\n", code=0 if found.exact else 1)


def demo(options: argparse.Namespace) -> int:
    from rich.console import Console

    from sumbo.cli import demo as demonstration

    console = Console(stderr=options.json)
    data, tables = demonstration.run(options.seed, options.budget, console)
    return _answer(options, data, lambda: console.print(tables))


def _counts_now(store: StoredStudy) -> dict[str, int]:
    store.ledger.refresh()
    return asdict(store.counts())


def _answer(options: argparse.Namespace, data: dict[str, Any], write: str | Callable[[], object], code: int = 0) -> int:
    """Print one JSON object, or what is for people; returns the exit code."""
    if options.json:
        sys.stdout.write(json.dumps(data) + "\n")
    elif isinstance(write, str):
        sys.stdout.write(write)
    else:
        write()
    return code


def _write_out(text: str) -> None:
    """A table is data: where standard output has no letters for it, it comes in UTF-8 all the same."""
    if can_write(text):
        sys.stdout.write(text)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8"))


def _summary(store: StoredStudy) -> dict[str, Any]:
    best = store.best()
    return {
        "study": store.file.name,
        "goal": store.file.goal,
        "trial": best and best.number,
        "value": best and best.value,
        "params": best and best.params,
        "context": best and context_of(store.file.space, best.params),
        "constraints": best and best.constraints,
        "std": best and best.std,
        "counts": asdict(store.counts()),
    }


def _check_tell(options: argparse.Namespace) -> None:
    if options.trial is None and (options.result is None or options.failed is not None):
        raise SettingError("tell: expected a table, or --trial N with a value or --failed; see sumbo tell --help")
    if options.trial is not None and (options.result is None) == (options.failed is None):
        raise SettingError("tell: with --trial, give either a value or --failed")
    if options.trial is None and (options.constraint or options.std is not None):
        raise SettingError("tell: --constraint and --std are for --trial; a table has columns for them")
    if options.failed is not None and (options.constraint or options.std is not None):
        raise SettingError("tell: --constraint and --std go with a value; leave them out with --failed")
    if options.trial is not None and options.own:
        raise SettingError("tell: --own is for tables; leave it out with --trial")
    if options.trial is None and not os.path.exists(options.result):
        raise SettingError(
            f"tell: expected a table, or --trial N with a value; there is no file {options.result!r}. A value alone "
            "does not say which trial it is of: sumbo tell STUDY.toml --trial N VALUE"
        )


def _result(study: StudyFile, options: argparse.Namespace) -> EvaluationResult:
    if options.failed is not None:
        return EvaluationResult(reason=options.failed.strip() or BY_HAND)
    pairs = _pairs("--constraint", options.constraint, study.measured)
    measured = {name: _finite(f"--constraint {name}", text) for name, text in pairs}
    std = None if options.std is None else _finite("--std", options.std)
    return complete(_finite("value", options.result), None, measured, std)


def _finite(place: str, text: str) -> float:
    number = number_of(place, text)
    if not math.isfinite(number):
        raise SheetError(f"{place}: expected a finite number, got {text!r}; use --failed if there is none")
    return number


def _given(study: StudyFile, context: list[str], fixed: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values that points are to have, as the command line says them."""
    space = study.space
    known = {"--context": space.context, "--fix": space.names}
    told, kept = (
        {name: sheets.value_of(f"{flag} {name}", space, name, text) for name, text in _pairs(flag, texts, known[flag])}
        for flag, texts in (("--context", context), ("--fix", fixed))
    )
    try:
        space.given(told, kept)
    except SpaceError as error:
        missing = " ".join(f"--context {name}=VALUE" for name in space.context if name not in told)
        raise SettingError(f"{error}" + (f"; here: {missing}" if missing else "")) from None
    return told, kept


def _pairs(flag: str, texts: list[str], known: Sequence[str]) -> list[tuple[str, str]]:
    """What an option that may be given several times says, as NAME=VALUE, by name."""
    found: dict[str, str] = {}
    for text in texts:
        # A name may hold a "=" as well.
        named = [name for name in known if text.startswith(f"{name}=")]
        name = max(named, key=len, default=text.partition("=")[0])
        if not named:
            names = f"name one of {listed(known)}" if known else "the study has none"
            raise SettingError(f"{flag}: expected NAME=VALUE, got {text!r}: unknown {hinted(name, known)}; {names}")
        if name in found:
            raise SettingError(f"{flag}: {name!r} is given twice; give it once")
        found[name] = text.removeprefix(f"{name}=").strip()
    return list(found.items())


def _check_target(path: Path) -> None:
    """Before trials are handed out: can the file be written?"""
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise SettingError(f"{path}: expected a file in a folder that exists; correct the path")
    if path.is_file() or not path.exists():  # no pipe or device
        try:
            tempfile.TemporaryFile(dir=os.path.dirname(os.path.realpath(path))).close()
        except OSError as error:
            raise SettingError(f"{path}: cannot be written: {error.strerror or error}; choose another path") from None


def _check_told(study: StudyFile, path: Path, records: list[dict[str, Any]]) -> None:
    """Before a table is written over: was everything told that was typed into it?"""
    if not _is_filled(path):
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


def _check_table(study: StudyFile, path: Path, options: argparse.Namespace) -> None:
    """Before trials are handed out: can the table be written, and nothing be lost that was typed into it?"""
    _check_target(path)
    if options.force or not _is_filled(path):
        return
    if not options.append:
        raise SettingError(
            f"{path}: there is such a file already, and results may have been typed into it; say --append to add rows "
            "to it, --force to write over it, or give another name"
        )
    sheets.with_rows(study, path, [])


def _write(path: Path, data: bytes) -> None:
    try:
        write_whole(path, data)
    except OSError as error:
        raise SettingError(
            f"{path}: cannot be written: {error.strerror or error}. Trials stay open: see sumbo ask --open"
        ) from None
