"""The page: sections, figures, style and script in one file that needs nothing else.

Nothing is fetched: a Content-Security-Policy forbids it. plotly.js comes compressed inside the page and is unpacked by
the browser. Scripts run only with the nonce that is drawn for each page, so none can come in with a name.
"""

import base64
import gzip
import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from sumbo import plot
from sumbo._files import write_whole
from sumbo.errors import NotFittedError, SettingError
from sumbo.insights.analysis import StudyAnalysis, Viewed, view_of
from sumbo.plot.style import figures, plain
from sumbo.report.canvas import Canvas
from sumbo.report.learned import components_of, structure_of
from sumbo.report.markup import Markup, joined, json_text, script_safe, table, tag
from sumbo.report.searching import best, search
from sumbo.report.trusting import time_spent, trust

REFRESH = 10  # seconds after which a page that is being watched looks again

Section = Callable[[StudyAnalysis, Canvas], Markup]
_SECTIONS: tuple[tuple[str, str, Section], ...] = (
    ("search", "The search", search),
    ("best", "Best parameters", lambda view, canvas: best(view)),
    ("structure", "The structure", structure_of),
    ("effects", "What the groups do", components_of),
    ("trust", "How far to trust it", trust),
    ("time", "Time", time_spent),
)


def write(
    studies: Viewed | Sequence[Viewed],
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    watching: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> Path:
    """Write a report to a file, which is replaced at once or not at all.

    Args:
        studies: one or several.
        path: an HTML file.
        title: the page's heading; else the study's name.
        watching: the page looks again by itself.
        say: told what is being done.

    Raises:
        SettingError: there is no such folder, the file cannot be written, or it is there and no page.
        MissingPackageError: plotly is not installed.
    """
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        raise SettingError(f"{target}: expected a file in a folder that exists; make the folder, or correct the path")
    _check_replaceable(target)
    figures()
    given = studies if isinstance(studies, Sequence) else [studies]
    # A view that comes as one may know much already.
    views = [study if isinstance(study, StudyAnalysis) else replace(view_of(study), say=say) for study in given]
    text = page(views, title=title, watching=watching)
    try:
        write_whole(target, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise SettingError(
            f"{target}: cannot be written: {error.strerror or error}; choose another path, or make room"
        ) from None
    return target


def _check_replaceable(target: Path) -> None:
    """A page may take another's place, not that of a study, its database or a table: a slip would lose all of it."""
    if not target.is_file():
        return
    try:
        with target.open("rb") as file:
            begin = file.read(100).lstrip(b"\xef\xbb\xbf \t\r\n")
    except OSError:
        return  # whether it can be written is seen later
    if begin and not begin.startswith(b"<"):
        raise SettingError(f"{target}: there is such a file already, and it is no HTML page; choose another name")


def page(views: Sequence[StudyAnalysis], *, title: str | None = None, watching: bool = False) -> str:
    """The page as text."""
    if not views:
        raise SettingError("a report needs at least one study, and got none; give one")
    canvas, nonce = Canvas(), secrets.token_urlsafe(18)
    title = title or (views[0].name if len(views) == 1 else f"{len(views)} studies")
    main = [_alone(views[0], canvas)] if len(views) == 1 else _several(views, canvas)
    shown = [view for view in views if view.rows]
    head = _head(title, nonce)
    body = tag(
        "body",
        tag("a", "Skip to the content", href="#main", class_="skip"),
        _header(title, views),
        tag("main", *main, id="main", tabindex="-1"),
        tag("footer", f"Made by sumbo from {sum(len(v.rows) for v in shown)} trials. This page fetches nothing."),
        tag("div", role="status", aria_live="polite", class_="quiet", id="status"),
        *_scripts(canvas, nonce),
    )
    attributes: dict[str, Any] = {"lang": "en", "data_watch": REFRESH if watching else None}
    return "<!DOCTYPE html>\n" + tag("html", head, body, **attributes)


def _head(title: str, nonce: str) -> Markup:
    policy = (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{plain(title)} · sumbo report"),
        tag("style", Markup(_asset("page.css"))),
        tag("script", Markup(_asset("theme.js")), nonce=nonce),
    )


def _header(title: str, views: Sequence[StudyAnalysis]) -> Markup:
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    first = views[0]
    about = f"{first.direction} · {len(first.rows)} trials · method {first.method}" if len(views) == 1 else "compared"
    buttons = tag(
        "div",
        tag("button", "Pause refreshing", type="button", id="pause", hidden=True, aria_pressed="false"),
        tag("button", "Theme: automatic", type="button", id="theme"),
        class_="tools",
    )
    return tag("header", tag("div", tag("h1", title), tag("p", f"{about} · {made}")), buttons)


def _scripts(canvas: Canvas, nonce: str) -> list[Markup]:
    # Figures are JSON already; the page's own script reads them as data.
    data = script_safe(f"[{','.join(canvas.figures)}]")
    return [
        tag("script", data, type="application/json", id="figures"),
        tag("script", json_text(canvas.sliders), type="application/json", id="sliders"),
        tag("script", Markup(_plotly()), type="text/plain", id="plotly"),
        tag("script", Markup(_asset("page.js")), nonce=nonce),
    ]


@cache
def _plotly() -> str:
    """plotly.js, compressed, as text."""
    from plotly.offline import get_plotlyjs

    return base64.b64encode(gzip.compress(get_plotlyjs().encode("utf-8"), 9, mtime=0)).decode("ascii")


def _asset(name: str) -> str:
    return resources.files("sumbo.report").joinpath(name).read_text(encoding="utf-8")


# --- the parts ---------------------------------------------------------------------------------------------


def _alone(view: StudyAnalysis, canvas: Canvas) -> Markup:
    return joined([_contents([("", view)]), _tiles(view), _notes(view), *_sections(view, canvas, "", "h2")])


def _several(views: Sequence[StudyAnalysis], canvas: Canvas) -> list[Markup]:
    named = [(f"s{k + 1}-", view) for k, view in enumerate(views)]
    parts = [_contents(named), _comparison(views, canvas)]
    for prefix, view in named:
        heading = tag("h2", view.name, id=f"{prefix}top")
        inner = [_tiles(view), _notes(view), *_sections(view, canvas, prefix, "h3")]
        parts.append(tag("article", heading, *inner, class_="study", aria_labelledby=f"{prefix}top"))
    return parts


def _sections(view: StudyAnalysis, canvas: Canvas, prefix: str, level: str) -> list[Markup]:
    return [
        tag(
            "section",
            tag(level, heading, id=f"{prefix}{key}"),
            make(view, canvas),
            aria_labelledby=f"{prefix}{key}",
        )
        for key, heading, make in _SECTIONS
    ]


def _contents(named: Sequence[tuple[str, StudyAnalysis]]) -> Markup:
    if len(named) == 1:
        links = [tag("li", tag("a", heading, href=f"#{key}")) for key, heading, _ in _SECTIONS]
    else:
        links = [tag("li", tag("a", "Comparison", href="#comparison"))]
        links += [tag("li", tag("a", view.name, href=f"#{prefix}top")) for prefix, view in named]
    return tag("nav", tag("ul", *links), aria_label="On this page")


def _tiles(view: StudyAnalysis) -> Markup:
    """The few numbers that a reader looks for first."""
    top = view.best
    failed, open_ = len(view.in_state("failed")), len(view.in_state("running")) + len(view.in_state("waiting"))
    tiles = [
        ("best value", "none yet" if top is None else f"{top.value:.5g}"),
        ("trials done", f"{len(view.in_state('done'))}"),
        ("failed", f"{failed}"),
        ("running or waiting", f"{open_}"),
        ("parameters", f"{view.space.dim if view.space else 0}"),
    ]
    if view.unavailable_reason is None:
        with suppress(NotFittedError):
            tiles.append(("sum over groups", f"{1 - view.importance.all_together.share:.0%}"))
    return tag("dl", *(tag("div", tag("dt", term), tag("dd", text)) for term, text in tiles), class_="tiles")


def _notes(view: StudyAnalysis) -> Markup | None:
    return tag("div", *(tag("p", note, class_="note") for note in view.notes)) if view.notes else None


def _comparison(views: Sequence[StudyAnalysis], canvas: Canvas) -> Markup:
    rows = []
    for view in views:
        top = view.best
        spent = sum(row.seconds for row in view.rows if row.seconds is not None)
        rows.append(
            (
                view.name,
                view.method,
                view.direction,
                len(view.in_state("done")),
                len(view.in_state("failed")),
                None if top is None else top.value,
                None if top is None else top.number,
                float(f"{spent:.3g}"),
            )
        )
    head = ("study", "method", "goal", "done", "failed", "best value", "at trial", "seconds")
    mixed = len({view.direction for view in views}) > 1
    other = len({view.space.names if view.space else () for view in views}) > 1
    notes = "Some studies maximise and others minimise: their values cannot be compared. " if mixed else ""
    notes += "The studies have different parameters. " if other else ""
    figure = canvas.figure(
        plot.compare(views),
        "Best value so far of each study over its trials.",
        f"{notes}The best value so far, trial by trial.",
        None,
    )
    heading = tag("h2", "Comparison", id="comparison")
    return tag("section", heading, table("Studies", head, rows), figure, aria_labelledby="comparison")
