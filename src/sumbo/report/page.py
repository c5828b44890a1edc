"""The page: sections, figures, style and script in one file that needs nothing else.

Nothing is fetched: a Content-Security-Policy forbids it. plotly.js comes compressed inside the page and is unpacked by
the browser. Scripts run only with the nonce that is drawn for each page, so none can come in with a name.
"""

import base64
import contextlib
import gzip
import json
import os
import secrets
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from pathlib import Path
from string import Template
from typing import TypeAlias

from sumbo import plot
from sumbo._files import write_whole
from sumbo.errors import SettingError
from sumbo.insights.analysis import StudyAnalysis, StudyLike, analysis_of
from sumbo.plot.style import figures
from sumbo.report import sections
from sumbo.report.markup import Canvas, Markup, escaped, joined, script_safe, table, tag

_REFRESH = 10  # seconds after which a page that is being watched looks again

_Section: TypeAlias = tuple[str, str, Callable[[StudyAnalysis, Canvas], Markup]]
_SECTIONS: tuple[_Section, ...] = (
    ("search", "The search", sections.search),
    ("best", "Best parameters", sections.best),
    ("constraints", "The constraints", sections.constraints),
    ("structure", "The structure", sections.structure),
    ("effects", "What the groups do", sections.effects),
    ("trust", "How far to trust it", sections.trust),
    ("time", "Time", sections.time_spent),
)


def write(
    studies: StudyLike | Sequence[StudyLike],
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    watching: bool = False,
) -> Path:
    """Write a report to a file, which is replaced at once or not at all.

    Args:
        studies: one or several.
        path: an HTML file.
        title: the page's heading; else the study's name.
        watching: the page looks again by itself.

    Raises:
        SettingError: there is no such folder, the file cannot be written, or it is there and no page.
        MissingPackageError: plotly is not installed.
    """
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        raise SettingError(f"{target}: expected a file in a folder that exists; make the folder, or correct the path")
    begin = b""
    if target.is_file():
        with contextlib.suppress(OSError), target.open("rb") as file:  # whether it can be written is seen later
            begin = file.read(100).lstrip(b"\xef\xbb\xbf \t\r\n")
    # A page may take another's place, not that of a study, its database or a table: a slip would lose all of it.
    if begin and not begin.startswith(b"<"):
        raise SettingError(f"{target}: there is such a file already, and it is no HTML page; choose another name")
    figures()
    given = studies if isinstance(studies, Sequence) else [studies]
    text = page([analysis_of(study) for study in given], title=title, watching=watching)
    try:
        write_whole(target, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise SettingError(
            f"{target}: cannot be written: {error.strerror or error}; choose another path, or make room"
        ) from None
    return target


def page(views: Sequence[StudyAnalysis], *, title: str | None = None, watching: bool = False) -> str:
    """The page as text."""
    if not views:
        raise SettingError("a report needs at least one study, and got none; give one")
    canvas, nonce = Canvas(), secrets.token_urlsafe(18)
    title = title or (views[0].name if len(views) == 1 else f"{len(views)} studies")
    if len(views) == 1:
        (view,) = views
        links, main = {key: text for key, text, _ in _sections(view)}, _study(view, canvas, "", "h2")
        about = f"{view.direction} · {len(view.rows)} trials · method {view.method}"
    else:
        tops = {f"s{k}-top": view.name for k, view in enumerate(views, 1)}
        links, main, about = {"comparison": "Comparison"} | tops, [_comparison(views, canvas)], "compared"
        for k, (top, view) in enumerate(zip(tops, views, strict=True), 1):
            inner = tag("h2", view.name, id=top), *_study(view, canvas, f"s{k}-", "h3")
            main.append(tag("article", *inner, class_="study", aria_labelledby=top))
    items = (tag("li", tag("a", text, href=f"#{key}")) for key, text in links.items())
    parts = {
        "watch": Markup(f' data-watch="{_REFRESH}"' if watching else ""),
        "nonce": nonce,
        "title": title,
        "style": _asset("page.css"),
        "theme": _asset("theme.js"),
        "about": about,
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "main": joined([tag("nav", tag("ul", *items), aria_label="On this page"), *main]),
        "trials": sum(len(view.rows) for view in views),
        # Figures are JSON already; the page's own script reads them as data.
        "figures": script_safe(f"[{','.join(canvas.figures)}]"),
        "sliders": script_safe(json.dumps(canvas.sliders, allow_nan=False)),
        "plotly": Markup(_plotly()),
        "script": _asset("page.js"),
    }
    return Template(_asset("page.html")).substitute({key: escaped(part) for key, part in parts.items()})


@cache
def _plotly() -> str:
    """plotly.js, compressed, as text."""
    from plotly.offline import get_plotlyjs

    return base64.b64encode(gzip.compress(get_plotlyjs().encode("utf-8"), 9, mtime=0)).decode("ascii")


def _asset(name: str) -> Markup:
    return Markup(resources.files("sumbo.report").joinpath(name).read_text(encoding="utf-8"))


def _sections(view: StudyAnalysis) -> list[_Section]:
    limited = view.constraints or (view.space is not None and view.space.constraints)
    return [section for section in _SECTIONS if limited or section[0] != "constraints"]


def _study(view: StudyAnalysis, canvas: Canvas, prefix: str, level: str) -> list[Markup]:
    top, shares, done = view.best, view.importance_or_reason, view.in_state("done")
    tiles: list[tuple[str, object]] = [
        ("best value", ("none feasible" if done else "none yet") if top is None else f"{top.value:.5g}"),
        ("trials done", len(done)),
        ("failed", len(view.in_state("failed"))),
        ("running or waiting", len(view.in_state("running", "waiting"))),
        ("parameters", len(view.names)),
    ]
    if view.constraints:
        tiles.insert(2, ("of these feasible", sum(map(view.feasible, done))))
    if not isinstance(shares, str):
        tiles.append(("sum over groups", f"{1 - shares.all_together.share:.0%}"))
    parts = [sections.facts(tiles, "tiles")]
    if view.notes:
        parts.append(tag("div", *(tag("p", note, class_="note") for note in view.notes)))
    for name, heading, make in _sections(view):
        key = f"{prefix}{name}"
        parts.append(tag("section", tag(level, heading, id=key), make(view, canvas), aria_labelledby=key))
    return parts


def _comparison(views: Sequence[StudyAnalysis], canvas: Canvas) -> Markup:
    rows = []
    for view in views:
        counts = len(view.in_state("done")), len(view.in_state("failed"))
        found = (None, None) if view.best is None else (view.best.value, view.best.number)
        spent = sections.rounded(sum(row.seconds or 0.0 for row in view.rows), 3)
        rows.append((view.name, view.method, view.direction, *counts, *found, spent))
    head = ("study", "method", "goal", "done", "failed", "best value", "at trial", "seconds")
    caption = "The best value so far, trial by trial."
    if len({view.names for view in views}) > 1:
        caption = f"The studies have different parameters. {caption}"
    if len({view.direction for view in views}) > 1:
        caption = f"Some studies maximise and others minimise: their values cannot be compared. {caption}"
    figure = canvas.figure(plot.compare(views), "Best value so far of each study over its trials.", caption)
    heading = tag("h2", "Comparison", id="comparison")
    return tag("section", heading, table("Studies", head, rows), figure, aria_labelledby="comparison")
