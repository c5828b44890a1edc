"""Figures of how far a model can be trusted."""

from typing import Any

import numpy as np

from sumbo.insights.analysis import Viewed, view_of
from sumbo.plot.style import ACCENT, FAINT, GREY, WARM, figure, figures, log_axis, title

_BARS = 300  # points up to which each shows its interval
LEVELS = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])


def predictions(study: Viewed) -> Any:
    """Every value against what the model predicts for it without having seen it, with intervals of 95%."""
    go, view = figures(), view_of(study)
    found, units = view.left_out, view.units
    predicted, observed = units.values(found.mean), view.values[found.index]
    ends = [units.values(found.mean + side * 1.96 * found.std) for side in (-1.0, 1.0)]
    low, high = np.minimum(*ends), np.maximum(*ends)
    bars: dict[str, Any] = {"type": "data", "array": high - predicted, "arrayminus": predicted - low}
    bars |= {"color": FAINT, "thickness": 1, "width": 0, "symmetric": False, "visible": len(predicted) <= _BARS}
    both = np.concatenate([predicted, observed])
    diagonal = np.array([both.min(), both.max()])
    line = go.Scatter(
        x=diagonal, y=diagonal, mode="lines", name="exact", line={"color": GREY, "dash": "dot", "width": 1}
    )
    dots = go.Scatter(
        x=predicted,
        y=observed,
        error_x=bars,
        mode="markers",
        name="trials",
        marker={"size": 6, "color": ACCENT, "opacity": 0.6},
        hovertext=[
            f"predicted {p:.5g}, from {a:.5g} to {b:.5g}<br>observed {o:.5g}"
            for p, o, a, b in zip(predicted, observed, low, high, strict=True)
        ],
        hoverinfo="text",
    )
    return figure([line, dots], x=title("predicted, without having seen it"), y=title("observed"), showlegend=False)


def calibration(study: Viewed) -> Any:
    """How many values lie inside intervals that should hold so many."""
    go, view = figures(), view_of(study)
    inside = view.left_out.coverage(LEVELS)
    ends = np.array([0.0, 1.0])
    line = go.Scatter(x=ends, y=ends, mode="lines", line={"color": GREY, "dash": "dot", "width": 1}, hoverinfo="skip")
    curve = go.Scatter(
        x=LEVELS,
        y=inside,
        mode="lines+markers",
        line={"color": ACCENT, "width": 2},
        hovertext=[f"{level:.0%} intervals hold {share:.0%}" for level, share in zip(LEVELS, inside, strict=True)],
        hoverinfo="text",
    )
    percent = {"tickformat": ".0%", "range": [0.0, 1.02]}
    x, y = title("intervals that should hold") | percent, title("hold in fact") | percent
    return figure([line, curve], x=x, y=y, showlegend=False)


def hyperparameters(study: Viewed) -> Any:
    """Lengthscale, scales and noise learned from the first values only, for more and more of them."""
    go, view = figures(), view_of(study)
    moments = view.moments
    n = np.array([moment.n for moment in moments])
    series: dict[str, tuple[list[Any], str, str]] = {
        "typical lengthscale": ([m.lengthscale for m in moments], GREY, "dot"),
        "groups": ([m.groups for m in moments], ACCENT, "solid"),
        "all together": ([m.together for m in moments], ACCENT, "dash"),
        "noise": ([m.noise for m in moments], WARM, "solid"),
    }
    lines = [
        go.Scatter(
            x=n,
            y=np.array(values, dtype=float),
            name=name,
            mode="lines+markers",
            line={"color": colour, "dash": dash, "width": 2},
        )
        for name, (values, colour, dash) in series.items()
        if None not in values
    ]
    drawn = np.concatenate([line.y[line.y > 0.0] for line in lines])
    x = title("values seen") | log_axis(n[0], n[-1])
    return figure(
        lines,
        x=x,
        y=title("on the model's scale") | log_axis(drawn.min(), drawn.max()),
        height=300,
        showlegend=True,
    )
