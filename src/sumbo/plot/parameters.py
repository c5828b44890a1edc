"""Figures of what was learned about parameters: which interact, how much each matters, what each group does.

What a group does, its effect, is in the user's units, as a difference from the average. Where the model compresses bad
values, a sum on its scale is no sum in those units: then it is in standard deviations, with the user's sign.
"""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sumbo._typing import Array
from sumbo.errors import DataError
from sumbo.insights.analysis import StudyAnalysis, StudyLike
from sumbo.insights.effects import Effect
from sumbo.insights.tables import MOST, Importance
from sumbo.plot.style import ACCENT, GREY, analysed, figure, group_name, label, log_axis, scatter, ticks, title

_EDGE = 0.1  # probability from which a pair is drawn
_BARS = 25  # rows of shares
ALL = 20  # parameters up to which a graph shows those without partners too
_WRITTEN = 12  # parameters up to which a matrix has numbers in it
_SHORT = 14  # characters of a name beside a matrix
_HEIGHT = 440
_NUMBERED = 20  # lines of a graph that all have their number; of more, those that are likely
_CURVE, _MAP = 49, 25  # points of a curve, and of each side of a map
_SLICE = 17  # points of a curve with sliders
_STOPS = {3: 7, 4: 4, 5: 3}  # of each slider, by the number of parameters; more parameters: 2
_SLOW_MAP, _SLOW_SLICE, _SLOW_STOPS = (
    17,
    9,
    {3: 5, 4: 3},
)  # where each value takes a search
_DOTS = 400  # observations drawn

_SURE = "rgba(54,116,207,1)"  # white and black can both be read on it, and either on all paler cells of its own page
_CLEAR, _BETTER, _WORSE = "rgba(61,123,217,0)", "rgba(61,123,217,1)", "rgba(190,130,50,1)"
_BAND = "rgba(61,123,217,0.18)"
_STAR = {"size": 13, "symbol": "star", "color": "#d4572a", "line": {"width": 1, "color": "white"}}


def interaction_matrix(study: StudyLike) -> Any:
    """The probability of every pair to interact; of more than 30 parameters, some."""
    names, together = _pairs(analysed(study))
    written = len(names) <= _WRITTEN
    pairs = [[(a, b, p) for b, p in zip(names, row, strict=True)] for a, row in zip(names, together, strict=True)]
    heat: dict[str, Any] = {
        "type": "heatmap",
        "z": np.where(np.eye(len(names), dtype=bool), np.nan, together),
        "colorscale": [[0.0, _CLEAR], [1.0, _SURE]],
        "hovertext": [[_pair_text(a, b, p) if a != b else "" for a, b, p in row] for row in pairs],
        "hoverinfo": "text",
        "text": [[f"{p:.2f}" if a != b and p >= 0.005 else "" for a, b, p in row] for row in pairs],
        "texttemplate": "%{text}" if written else None,
        "textfont": {"size": 11, "color": "black"},
    }
    heat |= {"zmin": 0.0, "zmax": 1.0, "xgap": 1, "ygap": 1, "showscale": False}
    axis = ticks(names, _SHORT) | {"showgrid": False, "showline": True, "mirror": True}
    # Numbers are black on white wherever the figure is shown; the report's page has both follow its theme.
    paper = {"plot_bgcolor": "white"} if written else {}
    height = _HEIGHT if len(names) <= 25 else 560
    return figure([heat], x=axis | {"tickangle": -60}, y=axis | {"autorange": "reversed"}, height=height, **paper)


def interaction_graph(study: StudyLike) -> Any:
    """Parameters on a circle, lines between those that may interact, with their probabilities."""
    names, together = _pairs(analysed(study))
    pairs = itertools.combinations(range(len(names)), 2)
    edges = [(i, k, float(together[i, k])) for i, k in pairs if together[i, k] >= _EDGE]
    linked = sorted({i for edge in edges for i in edge[:2]})
    order = _around(linked, together)
    if len(names) <= ALL:
        order += [i for i in range(len(names)) if i not in linked]
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(order)) / max(len(order), 1)
    at = np.zeros((2, len(names)))
    at[:, order] = np.cos(angles), np.sin(angles)
    parts, numbers = [], []
    for i, k, p in edges:
        line = {"width": 1 + 5 * p, "color": f"rgba(61,123,217,{0.15 + 0.75 * p:.2f})"}
        x, y = at[:, [i, k]]
        parts.append(scatter(x, y, "lines", _pair_text(names[i], names[k], p), line=line))
        if len(edges) <= _NUMBERED or p >= 0.5:
            # Off the middle, where lines cross, and beside the line.
            along = at[:, k] - at[:, i]
            beside = np.array([0.13, -0.09]) * along[::-1] / np.hypot(*along)
            numbers.append((*(0.56 * at[:, i] + 0.44 * at[:, k] + beside), f"{p:.2f}"))
    texts_x, texts_y, texts = ([number[column] for number in numbers] for column in range(3))
    parts.append(scatter(texts_x, texts_y, "text", text=texts, textfont={"size": 12}, hoverinfo="skip"))
    x, y = at[:, order]
    across, up = np.where(x > 0, "middle right", "middle left"), np.where(y > 0, "top center", "bottom center")
    marker = {"size": 12, "color": [ACCENT if i in linked else GREY for i in order]}
    shown, whole = ([label(names[i], limit) for i in order] for limit in (22, 80))
    outwards = np.where(abs(x) > 0.3, across, up).tolist()  # names lead away from the circle
    nodes = scatter(x, y, "markers+text", whole, marker=marker, text=shown, textposition=outwards)
    hidden = {"visible": False, "range": [-1.6, 1.6]}  # room for names
    return figure([*parts, nodes], x=hidden, y=hidden | {"range": [-1.3, 1.3]}, height=_HEIGHT, showlegend=False)


def _pairs(view: StudyAnalysis) -> tuple[list[str], Array]:
    """The parameters shown and their probabilities of interacting, (m, m), those with likely partners first kept."""
    pairs = {frozenset((row.first, row.second)): row.probability for row in view.interactions}
    looked_at = frozenset[str]().union(*pairs)
    names = [name for name in view.names if name in looked_at]
    rows = [[pairs.get(frozenset((a, b)), 0.0) for b in names] for a in names]
    together = np.array(rows).reshape(len(names), len(names))
    kept = np.sort(np.argsort(-together.max(axis=0, initial=0.0), kind="stable")[:MOST])
    return [names[i] for i in kept], together[np.ix_(kept, kept)]


def _pair_text(first: str, second: str, probability: float) -> str:
    return f"{label(first, 40)} and {label(second, 40)}: {probability:.2f}"


def _around(linked: Sequence[int], together: Array) -> list[int]:
    """An order on the circle in which likely partners are neighbours: from each to its likeliest unplaced one."""
    left, order = list(linked), list[int]()
    while left:
        probability = together[order[-1]] if order else np.zeros(len(together))
        partners = (i for i in left if probability[i] >= _EDGE)
        order.append(max(partners, key=lambda i: probability[i], default=left[0]))
        left.remove(order[-1])
    return order


def shares(study: StudyLike) -> Any:
    """Each parameter's share of the variance, with how far off it may be."""
    return _bars(analysed(study).importance.parameters, "share of variance (total effect)")


def group_shares(study: StudyLike) -> Any:
    """Each group's share of the variance, and what only all parameters together explain."""
    found = analysed(study).importance
    rest = replace(found.all_together, parameters=("all together",))
    # As many as are shown, the rest among them wherever it belongs.
    return _bars(sorted((*found.groups, rest), key=lambda row: -row.share), "share of variance")


def _bars(rows: Sequence[Importance], what: str) -> Any:
    shown = [row for k, row in enumerate(rows[:_BARS]) if k < 8 or row.share >= 0.002]
    names = [group_name(row.parameters) for row in shown]
    stds = np.array([row.std for row in shown])
    bars = {
        "type": "bar",
        "x": np.array([row.share for row in shown]),
        "y": np.arange(len(shown)),
        "orientation": "h",
        "marker": {"color": ACCENT},
        "width": 0.62,
        "error_x": {"type": "data", "array": stds, "color": GREY, "thickness": 1.2, "width": 3},
        "hovertext": [f"{label(n, 80)}: {r.share:.3f} ± {r.std:.3f}" for n, r in zip(names, shown, strict=True)],
        "hoverinfo": "text",
    }
    longest = max((row.share + row.std for row in shown), default=1.0)
    y = ticks(names) | {"autorange": "reversed", "showgrid": False}
    x = title(what) | {"range": [0.0, max(1.02 * longest, 0.1)]}
    return figure([bars], x=x, y=y, height=110 + 24 * max(len(shown), 2))


def component(study: StudyLike, parameters: str | Sequence[str]) -> Any:
    """What one group does to the value: a curve with its band, a map, or for three and more parameters a slice.

    Args:
        study: as for all figures.
        parameters: the names of the group's parameters; one of `decomposition.groups`.

    Returns:
        A plotly figure. A slice varies the first parameter, the others as in the best trial; sliders are in the report.

    Raises:
        NotFittedError: there are too few values.
        DataError: no group has just these parameters.
    """
    view = analysed(study)
    wanted = {parameters} if isinstance(parameters, str) else set(parameters)
    for j, group in enumerate(view.groups):
        if set(group) == wanted:
            if not exists(view, j):
                raise DataError(
                    f"{', '.join(group)} never exist together, so there is nothing to draw; give another group"
                )
            if len(view.dims(j)) > 2:
                return slices(view, j)[0][0][0]
            return (curve if len(view.dims(j)) == 1 else surface)(view, j)[0]
    known = "; ".join(", ".join(group) for group in view.groups[:10])
    raise DataError(f"expected the parameters of one group, got {sorted(map(str, wanted))}; the groups are {known}")


def exists(view: StudyAnalysis, j: int) -> bool:
    """Are there points that have all parameters of group j?"""
    effect = view.effect(j)
    return isinstance(effect, Effect) or effect.exists


class Axis:
    """Dimension i in a figure: u along it in [0, 1], the user's values there, and places where these are drawn."""

    def __init__(self, view: StudyAnalysis, i: int, points: int) -> None:
        self.is_category, self.is_log = view.is_category(i), view.is_log(i)
        self.u, values = view.axis(i, points)
        self.values = [view.in_digits(view.names[i], value) for value in values]
        self.layout = title(view.names[i])
        if self.is_category:
            self.places = np.arange(len(self.values), dtype=float)
            self.layout |= ticks(self.values) | {"range": [-0.5, len(self.values) - 0.5]}
        else:
            self.places = np.array(self.values, dtype=float)
            self.layout |= log_axis(self.places[0], self.places[-1]) if self.is_log else {"type": "linear"}

    def at(self, units: Array) -> Array:
        """Where observations are drawn that are at these places in [0, 1]."""
        if self.is_category:  # side by side, or one would hide all others
            return np.floor(units * len(self.values)) + 0.3 * (np.arange(len(units)) * 0.618 % 1.0 - 0.5)
        if self.is_log:
            return np.exp(np.interp(units, self.u, np.log(self.places)))
        return np.interp(units, self.u, self.places)


def curve(view: StudyAnalysis, j: int) -> tuple[Any, Axis, Array]:
    """A group of one parameter: mean, a band of two standard deviations, and the data; its axis and the mean, too."""
    (i,) = view.dims(j)
    axis = Axis(view, i, _CURVE)
    mean, std = _effect(view, j, axis.u[:, None])
    # Observations at the effect there, with what the model leaves unexplained.
    some = _some(view, [i])
    X, y = view.model.X[some], view.model.y[some]
    effect, known = view.effect(j), np.isfinite(mean)
    if isinstance(effect, Effect):
        there = effect(X[:, [i]])[0]
    else:  # every value of it costs time
        there = np.interp(X[:, i], axis.u[known], mean[known]) / view.effect_unit
    seen = view.effect_unit * (there + (y - view.model.posterior(X)[0]))
    parts = [_dots(axis.at(X[:, i]), seen)]
    if axis.is_category:
        bars = {"type": "data", "array": 2 * std, "color": ACCENT, "thickness": 1.5, "width": 6}
        marker = {"size": 9, "color": ACCENT}
        parts.append(scatter(axis.places, mean, "markers", marker=marker, error_y=bars, hoverinfo="y"))
    else:
        parts += _band(axis.places, mean, std)
    return figure(parts, x=axis.layout, y=title(_effect_title(view)), height=260, showlegend=False), axis, mean


def surface(view: StudyAnalysis, j: int) -> tuple[Any, Axis, Axis, Array]:
    """A group of two parameters: a map of its mean, with the points evaluated; its axes and the mean, too."""
    i, k = view.dims(j)
    points = _SLOW_MAP if _slow(view) else _MAP
    x, y = Axis(view, i, points), Axis(view, k, points)
    Z = np.array([(a, b) for b in y.u for a in x.u])
    mean, std = (part.reshape(len(y.u), len(x.u)) for part in _effect(view, j, Z))
    # Colours are clear at zero, each side as strong as its own extent allows.
    least, most = float(np.nanmin(mean)), float(np.nanmax(mean))
    zero = -least / (most - least) if least < 0.0 < most else 0.5
    low, high = (_BETTER, _WORSE) if view.sign < 0 else (_WORSE, _BETTER)
    heat = {
        "type": "heatmap",
        "x": x.places,
        "y": y.places,
        "z": mean,
        "colorscale": [[0.0, low], [zero, _CLEAR], [1.0, high]],
        "hovertext": [
            [f"{m:.4g} ± {2 * s:.2g}" if m == m else "not allowed" for m, s in zip(*rows, strict=True)]
            for rows in zip(mean, std, strict=True)
        ],
        "hoverinfo": "x+y+text",
        "colorbar": {"thickness": 10, "outlinewidth": 0, "title": {"text": ""}},
    }
    X = view.model.X[_some(view, [i, k])]
    parts, no_grid = [heat, _dots(x.at(X[:, i]), y.at(X[:, k]))], {"showgrid": False}
    best = [] if view.best_observation is None else [view.best_observation]
    if len(best := view.model.X[best][_exists(view, view.model.X[best], [i, k])]):
        parts.append(scatter(x.at(best[:, i]), y.at(best[:, k]), "markers", "best trial", marker=_STAR))
    return figure(parts, x=x.layout | no_grid, y=y.layout | no_grid, height=360, showlegend=False), x, y, mean


def slices(view: StudyAnalysis, j: int) -> tuple[list[tuple[Any, Axis, Array, Array]], list[tuple[list[Any], int]]]:
    """A group of three and more parameters: curves along each of them, and the stops of its slider.

    Curves come as a figure, the others as in the best trial, its axis, and means and standard deviations for every
    setting of the others, (stops of these in order ..., points). Stops are the user's values, and the number of that
    which is nearest to the best trial.
    """
    dims = view.dims(j)
    best = view.model.X[int(np.argmax(view.model.y)) if view.best_observation is None else view.best_observation]
    points, most = (_SLOW_SLICE, _SLOW_STOPS) if _slow(view) else (_SLICE, _STOPS)
    stops = [Axis(view, i, most.get(len(dims), 2)) for i in dims]
    starts = [int(np.argmin(np.abs(stop.u - best[i]))) for i, stop in zip(dims, stops, strict=True)]
    found = []
    for n, i in enumerate(dims):
        axis = Axis(view, i, points)
        *columns, along = np.meshgrid(*(stop.u for stop in stops if stop is not stops[n]), axis.u, indexing="ij")
        columns.insert(n, along)
        Z = np.stack([column.ravel() for column in columns], axis=1)
        mean, std = (part.reshape(along.shape) for part in _effect(view, j, Z))
        low, high = float(np.nanmin(mean - 2 * std)), float(np.nanmax(mean + 2 * std))
        X = view.model.X[_some(view, [i])]
        rug = _dots(axis.at(X[:, i]), np.full(len(X), low - 0.04 * (high - low)))
        at = (*starts[:n], *starts[n + 1 :])
        y = title(_effect_title(view)) | {"range": [low - 0.1 * (high - low), high]}
        parts = [rug, *_band(axis.places, mean[at], std[at])]
        found.append((figure(parts, x=axis.layout, y=y, height=260, showlegend=False), axis, mean, std))
    return found, [(stop.values, start) for stop, start in zip(stops, starts, strict=True)]


def _slow(view: StudyAnalysis) -> bool:
    return view.space is not None and len(view.space.constraints) > 0


def _effect_title(view: StudyAnalysis) -> str:
    return "effect, standard deviations" if view.warped else "effect on the value"


def _effect(view: StudyAnalysis, j: int, Z: Array) -> tuple[Array, Array]:
    mean, std = view.effect(j)(Z)
    return view.effect_unit * mean, abs(view.effect_unit) * std


def _some(view: StudyAnalysis, dims: Sequence[int]) -> Array:
    """Observations that are drawn: some of those that have a value, where these parameters exist."""
    known = np.flatnonzero(np.isfinite(view.values) & _exists(view, view.model.X, dims))
    return known[np.linspace(0, len(known) - 1, min(len(known), _DOTS)).astype(int)]


def _exists(view: StudyAnalysis, X: Array, dims: Sequence[int]) -> Any:
    """At which points these parameters exist."""
    assert view.space is not None
    return view.space.active(X)[:, list(dims)].all(axis=1)


def _band(x: Array, mean: Array, std: Array) -> list[dict[str, Any]]:
    """A line, and two standard deviations on each side of it, where it exists."""
    x, mean, std = (part[np.isfinite(mean)] for part in (x, mean, std))
    hidden: dict[str, Any] = {"line": {"width": 0}, "hoverinfo": "skip"}
    return [
        scatter(x, mean - 2 * std, "lines", **hidden),
        scatter(x, mean + 2 * std, "lines", fill="tonexty", fillcolor=_BAND, **hidden),
        scatter(x, mean, "lines", line={"color": ACCENT, "width": 2}, hoverinfo="x+y"),
    ]


def _dots(x: Array, y: Array) -> dict[str, Any]:
    return scatter(x, y, "markers", marker={"size": 4, "color": GREY, "opacity": 0.5}, hoverinfo="skip")
