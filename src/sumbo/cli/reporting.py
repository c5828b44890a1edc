"""`sumbo report`: the page of one study or several, once or again and again."""

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sumbo.insights.analysis import StudyAnalysis

_LOOK = 3.0  # seconds between two looks at a study that is being watched
_REST = 2.0  # a page is made again after so many times as long as it took


def report(options: argparse.Namespace) -> dict[str, Any]:
    """Write the page; with --watch until the studies are done or Ctrl-C.

    Raises:
        SumboError: a study cannot be read, or the page not written.
    """
    from sumbo.report.page import write

    sources = _stored(options) if options.storage else _files(options)
    target, say = Path(options.out), _Line()
    started = time.monotonic()
    views = [source(say) for source in sources]
    write(views, target, watching=options.watch and not _over(views, options))
    say.done()
    if options.watch:
        _watch(sources, views, target, options, say, time.monotonic() - started)
    size = target.stat().st_size
    return {"out": str(target), "bytes": size, "trials": sum(len(view.rows) for view in views)}


Source = Callable[[Callable[[str], None]], "StudyAnalysis"]


def _files(options: argparse.Namespace) -> list[Source]:
    from sumbo.insights.analysis import StudyAnalysis
    from sumbo.study.files.toml import load
    from sumbo.study.stored import StoredStudy, storage_errors

    def source(path: str) -> Source:
        study = load(path)

        def look(say: Callable[[str], None]) -> "StudyAnalysis":
            with storage_errors(study):
                return StudyAnalysis.of_stored(StoredStudy.open(study, create=False), say=say)

        return look

    return [source(path) for path in options.studies]


def _stored(options: argparse.Namespace) -> list[Source]:
    """Studies of any Optuna storage, by name."""
    from sumbo.integrations.optuna.studies import open_view  # Optuna takes a second to import

    return [partial(open_view, options.storage, name) for name in options.studies]


# --- watching ----------------------------------------------------------------------------------------------


def _watch(
    sources: list[Source],
    views: "list[StudyAnalysis]",
    target: Path,
    options: argparse.Namespace,
    say: "_Line",
    took: float,
) -> None:
    """Make the page again when there is something new, until all is done."""
    from sumbo.report.page import write

    try:
        sys.stderr.write(f"sumbo: watching; open {target} in a browser, Ctrl-C ends\n")
        while not _over(views, options):
            time.sleep(max(_LOOK, _REST * took))
            fresh = [source(say) for source in sources]
            if [_outline(view) for view in fresh] != [_outline(view) for view in views]:
                started = time.monotonic()
                write(fresh, target, watching=not _over(fresh, options))
                took, views[:] = time.monotonic() - started, fresh
                say.done()
    except KeyboardInterrupt:
        write(views, target)  # a page that nobody refreshes any more shall not look again
        say.done()


def _outline(view: "StudyAnalysis") -> tuple[Any, ...]:
    return tuple((row.number, row.state, row.value) for row in view.rows)


def _over(views: "list[StudyAnalysis]", options: argparse.Namespace) -> bool:
    """Have all studies spent their budgets?"""
    budgets = _budgets(options)
    return all(
        budget is not None and len(view.in_state("done")) + len(view.in_state("failed")) >= budget
        for view, budget in zip(views, budgets, strict=True)
    )


def _budgets(options: argparse.Namespace) -> list[int | None]:
    from sumbo.study.files.toml import load

    return [None if options.storage else load(path).budget for path in options.studies]


class _Line:
    """What is being done, on a line of a terminal that changes; in a log, nothing."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()

    def __call__(self, text: str) -> None:
        if self._terminal:
            sys.stderr.write(f"\r\x1b[Ksumbo: {text}")
            sys.stderr.flush()

    def done(self) -> None:
        """Leave no trace."""
        if self._terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
