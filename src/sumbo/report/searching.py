"""The part of a page about the search: values over time, the best parameters, all trials."""

import json
import pprint
from collections import Counter
from typing import Any

from sumbo import plot
from sumbo.insights.analysis import Row, StudyAnalysis
from sumbo.plot.style import number
from sumbo.report.canvas import Canvas
from sumbo.report.markup import Markup, joined, preformatted, table, tag

_TRIALS = 2000  # rows of the table of trials


def search(view: StudyAnalysis, canvas: Canvas) -> Markup:
    """What was tried and what came of it."""
    if not view.rows:
        return tag("p", "There are no trials yet.")
    counts = [f"{len(view.in_state(state))} {state}" for state in ("done", "failed", "running", "waiting")]
    best = view.best
    reached = "No trial has a value yet." if best is None else f"The best is {number(best.value)}, trial {best.number}."
    figure = canvas.figure(
        plot.trials(view),
        f"Values of all trials over time and the best so far. {', '.join(counts)}. {reached}",
        "Every dot is a trial, the line is the best so far. Failed and unfinished trials stand along the bottom, where "
        "they have no value; what is far worse than the rest is at the edge. The pointer shows parameters.",
        _trials(view),
    )
    return joined([figure, _failures(view)])


def best(view: StudyAnalysis) -> Markup:
    """The best parameters: to read, and to copy as JSON and as code."""
    row = view.best
    if row is None:
        return tag("p", "No trial has a value yet, so there are no best parameters.")
    params = {name: _native(value) for name, value in row.params.items()}
    as_json = json.dumps(params, indent=2, default=str)
    as_code = f"best = {pprint.pformat(params, sort_dicts=False, width=88)}"
    rows = [(name, value, _range(view, name)) for name, value in params.items()]
    shown = table(
        f"Best parameters: trial {row.number}, value {number(row.value)}", ("parameter", "value", "range"), rows
    )
    plain_text = "\n".join(f"{name}\t{value!r}" for name, value in params.items())
    return joined(
        [
            tag("div", shown, _copier("Copy table", plain_text), class_="copyable"),
            tag("details", tag("summary", "As JSON"), _copier("Copy JSON", as_json), preformatted(as_json)),
            tag("details", tag("summary", "As Python"), _copier("Copy Python", as_code), preformatted(as_code)),
        ]
    )


def _copier(text: str, content: str) -> Markup:
    # The content travels as JSON within an attribute, so that its lines stay lines.
    return tag("button", text, type="button", class_="copy", data_copy=json.dumps(content))


def _native(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def _range(view: StudyAnalysis, name: str) -> str:
    """Where a parameter may be, in the user's words."""
    if view.space is None or name not in view.space.names:
        return "not modelled"
    i = view.space.names.index(name)
    _, values = view.axis(i, 2)
    if view.is_category(i):
        texts = [number(value) for value in values[:6]]
        return ", ".join(texts) + (f", … {len(values) - 6} more" if len(values) > 6 else "")
    return f"{number(values[0])} to {number(values[-1])}" + (", log" if view.is_log(i) else "")


def _trials(view: StudyAnalysis) -> Markup:
    rows = list(view.rows)
    caption = f"All {len(rows)} trials"
    if len(rows) > _TRIALS:
        first = sorted(view.in_state("done"), key=lambda row: -view.sign * (row.value or 0.0))[: _TRIALS // 2]
        rows = sorted({r.number: r for r in [*first, *rows[-_TRIALS // 2 :]]}.values(), key=lambda r: r.number)
        caption = f"{len(rows)} of {len(view.rows)} trials: the best and the latest"
    return table(caption, ("trial", "state", "value", "seconds", "reason"), map(_line, rows))


def _line(row: Row) -> tuple[object, ...]:
    seconds = None if row.seconds is None else float(f"{row.seconds:.3g}")
    return row.number, row.state, row.value, seconds, row.reason


def _failures(view: StudyAnalysis) -> Markup | None:
    reasons = Counter(row.reason or "no reason on record" for row in view.in_state("failed"))
    if not reasons:
        return None
    rows = [(reason[:300], n) for reason, n in reasons.most_common(8)]
    return table("Why trials failed, the most frequent reasons", ("reason", "trials"), rows)
