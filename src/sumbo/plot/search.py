"""Figures of the search itself: values over time, one study or several."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sumbo.insights.analysis import Row, StudyAnalysis, Viewed, view_of
from sumbo.plot.style import ACCENT, FAINT, GREY, WARM, figure, figures, label, log_axis, number, title, trial_axis

_NAMED = 8  # parameters in the text under the pointer
_MOST = 4000  # trials drawn; of more, the best and some spread evenly
_LINES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def trials(study: Viewed) -> Any:
    """Every trial's value and the best so far; failed ones along the bottom, running ones marked.

    Args:
        study: a `Result`, an `Optimizer`, or what `sumbo.report.from_optuna` returns.

    Returns:
        A plotly figure.
    """
    go, view = figures(), view_of(study)
    done, failed = _some(view.in_state("done"), view.sign), view.in_state("failed")[-_MOST:]
    running = view.in_state("running") + view.in_state("waiting")
    values = np.array([row.value for row in done], dtype=float)
    ends, bottom = _ends(values, view.sign)
    beyond = (values < ends[0]) | (values > ends[1])
    inside = [row for row, out in zip(done, beyond, strict=True) if not out]
    outside = [row for row, out in zip(done, beyond, strict=True) if out]
    edge = ends[1] if view.sign < 0 else ends[0] + 0.5 * (bottom - ends[0])
    parts = [_dots(go, inside, values[~beyond], "trial", ACCENT, "circle", 0.45)]
    if outside:
        symbol = "triangle-up" if view.sign < 0 else "triangle-down"
        parts.append(_dots(go, outside, np.full(len(outside), edge), "beyond the axis", GREY, symbol, 0.8))
    parts.append(_best_line(go, view, "best so far"))
    if failed:
        parts.append(_dots(go, failed, np.full(len(failed), bottom), "failed", WARM, "x", 0.9))
    if running:
        parts.append(_dots(go, running, np.full(len(running), bottom), "running or waiting", GREY, "circle-open", 1.0))
    room = 0.04 * (ends[1] - ends[0])
    y = title(f"value to {view.direction}") | {"range": [ends[0] - room, ends[1] + room]}
    return figure(parts, x=trial_axis([row.number for row in view.rows]), y=y, showlegend=True)


def compare(studies: Sequence[Viewed]) -> Any:
    """The best value so far of several studies."""
    go = figures()
    views = [view_of(study) for study in studies]
    lines = [
        _best_line(go, view, label(view.name, 40), dash=_LINES[k % len(_LINES)], colour=ACCENT if k % 2 == 0 else WARM)
        for k, view in enumerate(views)
    ]
    numbers = [row.number for view in views for row in view.rows]
    return figure(lines, x=trial_axis(numbers), y=title("best value so far"), showlegend=True)


def times(study: Viewed) -> Any:
    """Seconds in the objective and in the optimiser, trial by trial; zero time is not drawn."""
    go, view = figures(), view_of(study)
    parts, numbers, drawn = [], list[int](), list[float]()
    for name, colour, seconds in (
        ("objective", GREY, [(row.number, row.seconds) for row in view.rows]),
        ("optimiser", ACCENT, [(row.number, row.suggest_seconds) for row in view.rows]),
    ):
        known = [(n, s) for n, s in seconds if s is not None and s > 0.0]
        if known:
            x, y = zip(*known, strict=True)
            numbers += x
            drawn += y
            marker = {"size": 5, "color": colour, "opacity": 0.7}
            parts.append(go.Scatter(x=np.array(x), y=np.array(y), mode="markers", name=name, marker=marker))
    return figure(
        parts,
        x=trial_axis(numbers),
        y=title("seconds") | log_axis(min(drawn, default=1.0), max(drawn, default=1.0)),
        height=280,
        showlegend=True,
    )


def best_so_far(view: StudyAnalysis) -> tuple[list[int], list[float]]:
    """Trial numbers at which the best value changed, and the values; the last trial too, where the line ends."""
    numbers: list[int] = []
    values: list[float] = []
    for row in view.in_state("done"):
        assert row.value is not None
        if not values or view.sign * row.value > view.sign * values[-1]:
            numbers.append(row.number)
            values.append(row.value)
    if values and view.rows[-1].number > numbers[-1]:
        numbers.append(view.rows[-1].number)
        values.append(values[-1])
    return numbers, values


def _best_line(go: Any, view: StudyAnalysis, name: str, dash: str = "solid", colour: str = ACCENT) -> Any:
    numbers, values = best_so_far(view)
    return go.Scatter(
        x=np.array(numbers),
        y=np.array(values),
        mode="lines",
        name=name,
        line={"shape": "hv", "width": 2, "color": colour, "dash": dash},
        hoverinfo="skip" if name == "best so far" else "all",
    )


def _dots(go: Any, rows: Sequence[Row], y: Any, name: str, colour: str, symbol: str, opacity: float) -> Any:
    return go.Scatter(
        x=np.array([row.number for row in rows]),
        y=y,
        mode="markers",
        name=name,
        marker={"size": 6, "color": colour, "symbol": symbol, "opacity": opacity, "line": {"width": 1, "color": FAINT}},
        hovertext=[_described(row) for row in rows],
        hoverinfo="text",
    )


def _described(row: Row) -> str:
    lines = [f"trial {row.number}: {number(row.value) if row.value is not None else row.state}"]
    if row.reason:
        lines.append(label(row.reason, 80))
    names = list(row.params)[:_NAMED]
    lines += [f"{label(name, 24)} = {label(number(row.params[name]), 24)}" for name in names]
    if len(row.params) > _NAMED:
        lines.append(f"… and {len(row.params) - _NAMED} more")
    return "<br>".join(lines)


def _some(rows: list[Row], sign: float) -> list[Row]:
    if len(rows) <= _MOST:
        return rows
    by_value = sorted(rows, key=lambda row: -sign * (row.value or 0.0))[: _MOST // 2]
    spread = rows[:: 1 + len(rows) // (_MOST // 2)]
    return sorted({row.number: row for row in by_value + spread}.values(), key=lambda row: row.number)


def _ends(values: Any, sign: float) -> tuple[tuple[float, float], float]:
    """The ends of the value axis, and the place near the lower one for trials without a value.

    A few very bad values shall not flatten all others: the axis ends where the bad half is five times as far from the
    median as the best is, but never leaves out more than one in twenty.
    """
    if len(values) == 0:
        return (-1.0, 1.0), 0.0
    low, high, median = float(values.min()), float(values.max()), float(np.median(values))
    if sign < 0 and median > low:
        high = min(high, max(median + 5.0 * (median - low), float(np.percentile(values, 95, method="lower"))))
    elif sign > 0 and high > median:
        low = max(low, min(median - 5.0 * (high - median), float(np.percentile(values, 5, method="higher"))))
    room = 0.1 * (high - low) or 0.1 * abs(high) or 0.1
    return (low - 1.5 * room, high), low - room
