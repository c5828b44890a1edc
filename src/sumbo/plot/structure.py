"""Figures of what was learned about parameters: which interact, how much each matters."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sumbo._typing import Array
from sumbo.insights.analysis import StudyAnalysis, Viewed, view_of
from sumbo.insights.tables import Importance
from sumbo.plot.style import ACCENT, CLEAR, GREY, figure, figures, group_name, label, ticks, title

SHOWN = 30  # parameters in a matrix or graph
_EDGE = 0.1  # probability from which a pair is drawn
_BARS = 25  # rows of shares
ALL = 20  # parameters up to which a graph shows those without partners too
_WRITTEN = 12  # parameters up to which a matrix has numbers in it
_SHORT = 14  # characters of a name beside a matrix
_HEIGHT = 440
_NUMBERED = 20  # lines of a graph that all have their number; of more, those that are likely
_SURE = "rgba(54,116,207,1)"  # white and black can both be read on it, and either on all paler cells of its own page


def interaction_matrix(study: Viewed) -> Any:
    """The probability of every pair to interact; of more than 30 parameters, some."""
    go, view = figures(), view_of(study)
    names, together = pairs(view)
    written = len(names) <= _WRITTEN
    text = [
        [f"{label(a, 40)} and {label(b, 40)}: {p:.2f}" if a != b else "" for b, p in zip(names, row, strict=True)]
        for a, row in zip(names, together, strict=True)
    ]
    heat = go.Heatmap(
        z=np.where(np.eye(len(names), dtype=bool), np.nan, together),
        zmin=0.0,
        zmax=1.0,
        colorscale=[[0.0, CLEAR], [1.0, _SURE]],
        hovertext=text,
        hoverinfo="text",
        xgap=1,
        ygap=1,
        text=[
            [f"{p:.2f}" if a != b and p >= 0.005 else "" for b, p in zip(names, row, strict=True)]
            for a, row in zip(names, together, strict=True)
        ],
        texttemplate="%{text}" if written else None,
        textfont={"size": 11, "color": "black"},
        showscale=False,
    )
    axis = ticks(names, _SHORT) | {"showgrid": False}
    edges = {"showline": True, "mirror": True}
    x, y = axis | edges | {"tickangle": -60}, axis | edges | {"autorange": "reversed"}
    # Numbers are black on white wherever the figure is shown; the report's page has both follow its theme.
    paper = {"plot_bgcolor": "white"} if written else {}
    return figure([heat], x=x, y=y, height=_HEIGHT if len(names) <= 25 else 560, **paper)


def interaction_graph(study: Viewed) -> Any:
    """Parameters on a circle, lines between those that may interact, with their probabilities."""
    go, view = figures(), view_of(study)
    names, together = pairs(view)
    edges = [
        (i, k, float(together[i, k]))
        for i in range(len(names))
        for k in range(i + 1, len(names))
        if together[i, k] >= _EDGE
    ]
    linked = sorted({i for edge in edges for i in edge[:2]})
    order = _around(linked, together)
    if len(names) <= ALL:
        order += [i for i in range(len(names)) if i not in linked]
    angle = {i: np.pi / 2 - 2 * np.pi * n / max(len(order), 1) for n, i in enumerate(order)}
    at = {i: (float(np.cos(a)), float(np.sin(a))) for i, a in angle.items()}
    parts = [
        _edge(go, at[i], at[k], p, f"{label(names[i], 40)} and {label(names[k], 40)}: {p:.2f}") for i, k, p in edges
    ]
    written = edges if len(edges) <= _NUMBERED else [edge for edge in edges if edge[2] >= 0.5]
    parts += [_edge_texts(go, at, written), _nodes(go, at, order, names, set(linked))]
    hidden = {"visible": False, "range": [-1.6, 1.6]}  # room for names
    return figure(parts, x=hidden, y=hidden | {"range": [-1.3, 1.3]}, height=_HEIGHT, showlegend=False)


def pairs(view: StudyAnalysis) -> tuple[list[str], Array]:
    """The parameters shown and their probabilities of interacting, (m, m), those with likely partners first kept."""
    assert view.space is not None
    looked_at = {name for row in view.interactions for name in (row.first, row.second)}
    names = [name for name in view.space.names if name in looked_at]
    index = {name: i for i, name in enumerate(names)}
    together = np.zeros((len(names), len(names)))
    for row in view.interactions:
        i, k = index[row.first], index[row.second]
        together[i, k] = together[k, i] = row.probability
    if len(names) > SHOWN:
        kept = np.sort(np.argsort(-together.max(axis=0), kind="stable")[:SHOWN])
        return [names[i] for i in kept], together[np.ix_(kept, kept)]
    return names, together


def shares(study: Viewed) -> Any:
    """Each parameter's share of the variance, with how far off it may be."""
    view = view_of(study)
    return _bars(view.importance.parameters, "share of variance (total effect)")


def group_shares(study: Viewed) -> Any:
    """Each group's share of the variance, and what only all parameters together explain."""
    view = view_of(study)
    found = view.importance
    rest = Importance(("all together",), found.all_together.share, found.all_together.std)
    # As many as are shown, the rest among them wherever it belongs.
    rows = sorted((*found.groups, rest), key=lambda row: -row.share)
    return _bars(rows, "share of variance")


def _bars(rows: Sequence[Importance], what: str) -> Any:
    go = figures()
    shown = [row for k, row in enumerate(rows[:_BARS]) if k < 8 or row.share >= 0.002]
    names = [group_name(row.parameters) for row in shown]
    bars = go.Bar(
        x=np.array([row.share for row in shown]),
        y=np.arange(len(shown)),
        orientation="h",
        marker={"color": ACCENT},
        width=0.62,
        error_x={
            "type": "data",
            "array": np.array([row.std for row in shown]),
            "color": GREY,
            "thickness": 1.2,
            "width": 3,
        },
        hovertext=[f"{label(n, 80)}: {r.share:.3f} ± {r.std:.3f}" for n, r in zip(names, shown, strict=True)],
        hoverinfo="text",
    )
    longest = max((row.share + row.std for row in shown), default=1.0)
    y = ticks(names) | {"autorange": "reversed", "showgrid": False}
    x = title(what) | {"range": [0.0, max(1.02 * longest, 0.1)]}
    return figure([bars], x=x, y=y, height=110 + 24 * max(len(shown), 2))


def _around(linked: Sequence[int], together: Array) -> list[int]:
    """An order on the circle in which likely partners are neighbours: from each to its likeliest unplaced one."""
    left, order = list(linked), list[int]()
    while left:
        last = order[-1] if order else left[0]
        following = left[0] if not order else max(left, key=lambda i: together[last, i])
        if order and together[last, following] < _EDGE:
            following = left[0]
        left.remove(following)
        order.append(following)
    return order


def _edge(go: Any, a: tuple[float, float], b: tuple[float, float], probability: float, text: str) -> Any:
    return go.Scatter(
        x=np.array([a[0], b[0]]),
        y=np.array([a[1], b[1]]),
        mode="lines",
        line={"width": 1 + 5 * probability, "color": f"rgba(61,123,217,{0.15 + 0.75 * probability:.2f})"},
        hovertext=text,
        hoverinfo="text",
    )


def _edge_texts(go: Any, at: dict[int, tuple[float, float]], edges: Sequence[tuple[int, int, float]]) -> Any:
    # Off the middle, where lines cross, and beside the line.
    x, y = [], []
    for i, k, _ in edges:
        (a, b), (c, d) = at[i], at[k]
        length = float(np.hypot(c - a, d - b))
        x.append(0.56 * a + 0.44 * c + 0.13 * (d - b) / length)
        y.append(0.56 * b + 0.44 * d - 0.09 * (c - a) / length)
    texts = [f"{p:.2f}" for _, _, p in edges]
    return go.Scatter(x=np.array(x), y=np.array(y), mode="text", text=texts, textfont={"size": 12}, hoverinfo="skip")


def _nodes(
    go: Any, at: dict[int, tuple[float, float]], order: Sequence[int], names: Sequence[str], linked: set[int]
) -> Any:
    sides = ["middle right" if at[i][0] > 0.3 else "middle left" if at[i][0] < -0.3 else None for i in order]
    return go.Scatter(
        x=np.array([at[i][0] for i in order]),
        y=np.array([at[i][1] for i in order]),
        mode="markers+text",
        marker={"size": 12, "color": [ACCENT if i in linked else GREY for i in order]},
        text=[label(names[i], 22) for i in order],
        textposition=[
            s or ("top center" if at[i][1] > 0 else "bottom center") for s, i in zip(sides, order, strict=True)
        ],
        hovertext=[label(names[i], 80) for i in order],
        hoverinfo="text",
    )
