"""Figures of how a search went, one or several, and of how far its model can be trusted."""

from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np

from sumbo._typing import Array
from sumbo.insights.analysis import StudyAnalysis, StudyLike
from sumbo.plot.style import ACCENT, FAINT, GREY, WARM, analysed, figure, label, log_axis, number, scatter, title
from sumbo.study.optimizer import Trial

_NAMED = 8  # parameters in the text under the pointer
_MOST = 4000  # trials drawn; of more, the best and some spread evenly
_LINES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_INTERVALS = 300  # points up to which each shows its interval
LEVELS = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])


def trials(study: StudyLike) -> Any:
    """Every trial's value and the best feasible one so far; failed ones along the bottom, running ones marked."""
    view = analysed(study)
    done = _some(view)
    values = np.array([row.value for row in done], dtype=float)
    ends, bottom = _ends(values, view.sign)
    beyond = (values < ends[0]) | (values > ends[1])
    inside, outside = list(compress(done, ~beyond)), list(compress(done, beyond))
    edge, worse = (ends[1], "up") if view.sign < 0 else (ends[0] + 0.5 * (bottom - ends[0]), "down")
    failed, running = view.in_state("failed")[-_MOST:], view.in_state("running", "waiting")
    broken = np.array([not view.feasible(row) for row in inside], dtype=bool)
    kept, y = list(compress(inside, ~broken)), values[~beyond]
    parts = [_marks(view, kept, y[~broken], "trial", ACCENT, "circle", 0.45)]
    if broken.any():
        parts.append(_marks(view, list(compress(inside, broken)), y[broken], "infeasible", WARM, "circle-open", 1.0))
    if outside:
        parts.append(_marks(view, outside, edge, "beyond the axis", GREY, f"triangle-{worse}", 0.8))
    parts.append(_best_line(view, "best so far", hoverinfo="skip"))
    if failed:
        parts.append(_marks(view, failed, bottom, "failed", WARM, "x", 0.9))
    if running:
        parts.append(_marks(view, running, bottom, "running or waiting", GREY, "circle-open", 1.0))
    room = 0.04 * (ends[1] - ends[0])
    y_axis = title(f"value to {view.direction}") | {"range": [ends[0] - room, ends[1] + room]}
    return figure(parts, x=_trial_axis([row.number for row in view.rows]), y=y_axis, showlegend=True)


def compare(studies: Sequence[StudyLike]) -> Any:
    """The best value so far of several studies."""
    views = [analysed(study) for study in studies]
    lines = [
        _best_line(view, label(view.name, 40), dash=_LINES[k % len(_LINES)], color=WARM if k % 2 else ACCENT)
        for k, view in enumerate(views)
    ]
    numbers = [row.number for view in views for row in view.rows]
    return figure(lines, x=_trial_axis(numbers), y=title("best value so far"), showlegend=True)


def times(study: StudyLike) -> Any:
    """Seconds in the objective and in the optimiser, trial by trial; zero time is not drawn."""
    view, parts = analysed(study), []
    for name, colour, attribute in (("objective", GREY, "seconds"), ("optimiser", ACCENT, "suggest_seconds")):
        known = [row for row in view.rows if (getattr(row, attribute) or 0.0) > 0.0]
        if known:
            x, y = [row.number for row in known], [getattr(row, attribute) for row in known]
            parts.append(scatter(x, y, "markers", name=name, marker={"size": 5, "color": colour, "opacity": 0.7}))
    numbers, drawn = ([value for part in parts for value in part[side]] for side in "xy")
    y_axis = title("seconds") | log_axis(min(drawn, default=1.0), max(drawn, default=1.0))
    return figure(parts, x=_trial_axis(numbers), y=y_axis, height=280, showlegend=True)


def _trial_axis(numbers: Sequence[int]) -> dict[str, Any]:
    """An axis of trials: where there are few, no halves between them."""
    return title("trial") | ({"dtick": 1} if max(numbers, default=0) - min(numbers, default=0) < 6 else {})


def _best_line(view: StudyAnalysis, name: str, hoverinfo: str = "all", **look: str) -> dict[str, Any]:
    """Steps where the best value changed; the line ends at the last trial."""
    steps: list[tuple[int, float]] = []
    for row in filter(view.feasible, view.in_state("done")):
        if row.value is not None and (not steps or view.sign * row.value > view.sign * steps[-1][1]):
            steps.append((row.number, row.value))
    if steps and view.rows[-1].number > steps[-1][0]:
        steps.append((view.rows[-1].number, steps[-1][1]))
    x, y = [n for n, _ in steps], [value for _, value in steps]
    line = {"shape": "hv", "width": 2, "color": ACCENT, "dash": "solid"} | look
    return scatter(x, y, "lines", name=name, line=line, hoverinfo=hoverinfo)


def _marks(
    view: StudyAnalysis, rows: Sequence[Trial], y: Any, name: str, colour: str, symbol: str, opacity: float
) -> dict[str, Any]:
    numbers, texts = [row.number for row in rows], [_described(view, row) for row in rows]
    marker = {"size": 6, "color": colour, "symbol": symbol, "opacity": opacity, "line": {"width": 1, "color": FAINT}}
    return scatter(numbers, np.full(len(rows), y), "markers", texts, name=name, marker=marker)


def _described(view: StudyAnalysis, row: Trial) -> str:
    lines = [f"trial {row.number}: {number(row.value) if row.value is not None else row.state}"]
    if row.reason:
        lines.append(label(row.reason, 80))
    lines += [
        f"{label(name, 24)}: {number(told)}{' (broken)' if c.amount(told) > 0.0 else ''}"
        for c in view.constraints
        if (told := (row.constraints or {}).get(name := c.name)) is not None
    ]
    shown = [(name, number(view.in_digits(name, value))) for name, value in list(row.params.items())[:_NAMED]]
    lines += [f"{label(name, 24)} = {label(value, 24)}" for name, value in shown]
    if len(row.params) > _NAMED:
        lines.append(f"… and {len(row.params) - _NAMED} more")
    return "<br>".join(lines)


def _some(view: StudyAnalysis) -> list[Trial]:
    """Trials that are done, or of many the best and some spread evenly."""
    rows = view.in_state("done")
    if len(rows) <= _MOST:
        return rows
    some = view.by_value()[: _MOST // 2] + rows[:: 1 + len(rows) // (_MOST // 2)]
    return sorted({row.number: row for row in some}.values(), key=lambda row: row.number)


def _ends(values: Array, sign: float) -> tuple[tuple[float, float], float]:
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


def predictions(study: StudyLike) -> Any:
    """Every value against what the model predicts for it without having seen it, with intervals of 95%."""
    view = analysed(study)
    found = view.left_out
    predicted, observed = view.untransform(found.mean), view.values[found.index]
    ends = [view.untransform(found.mean + side * 1.96 * found.std) for side in (-1.0, 1.0)]
    low, high = np.minimum(*ends), np.maximum(*ends)
    bars: dict[str, Any] = {"type": "data", "array": high - predicted, "arrayminus": predicted - low}
    bars |= {"color": FAINT, "thickness": 1, "width": 0, "symmetric": False, "visible": len(predicted) <= _INTERVALS}
    both = np.concatenate([predicted, observed])
    diagonal = [both.min(), both.max()]
    texts = [
        f"predicted {p:.5g}, from {a:.5g} to {b:.5g}<br>observed {o:.5g}"
        for p, o, a, b in zip(predicted, observed, low, high, strict=True)
    ]
    marker = {"size": 6, "color": ACCENT, "opacity": 0.6}
    dots = scatter(predicted, observed, "markers", texts, name="trials", error_x=bars, marker=marker)
    parts = [_dotted(diagonal, diagonal, name="exact"), dots]
    return figure(parts, x=title("predicted, without having seen it"), y=title("observed"), showlegend=False)


def _dotted(x: Any, y: Any, **more: Any) -> dict[str, Any]:
    """A thin line to compare with."""
    return scatter(x, y, "lines", line={"color": GREY, "dash": "dot", "width": 1}, **more)


def calibration(study: StudyLike) -> Any:
    """How many values lie inside intervals that should hold so many."""
    inside = analysed(study).left_out.coverage(LEVELS)
    texts = [f"{level:.0%} intervals hold {share:.0%}" for level, share in zip(LEVELS, inside, strict=True)]
    curve = scatter(LEVELS, inside, "lines+markers", texts, line={"color": ACCENT, "width": 2})
    percent = {"tickformat": ".0%", "range": [0.0, 1.02]}
    x, y = title("intervals that should hold") | percent, title("hold in fact") | percent
    return figure([_dotted([0.0, 1.0], [0.0, 1.0], hoverinfo="skip"), curve], x=x, y=y, showlegend=False)


def hyperparameters(study: StudyLike) -> Any:
    """Lengthscale, scales and noise learned from the first values only, for more and more of them."""
    snapshots = analysed(study).snapshots
    looks = {
        "typical lengthscale": {"color": GREY, "dash": "dot"},
        "groups": {"color": ACCENT, "dash": "solid"},
        "all together": {"color": ACCENT, "dash": "dash"},
        "noise": {"color": WARM, "dash": "solid"},
    }
    n = np.array(snapshots["values seen"])
    lines = [
        scatter(n, snapshots[name], "lines+markers", name=name, line=look | {"width": 2})
        for name, look in looks.items()
        if None not in snapshots[name]
    ]
    drawn = np.concatenate([line["y"][line["y"] > 0.0] for line in lines])
    x, y = title("values seen") | log_axis(n[0], n[-1]), log_axis(drawn.min(), drawn.max())
    return figure(lines, x=x, y=title("on the model's scale") | y, height=300, showlegend=True)
