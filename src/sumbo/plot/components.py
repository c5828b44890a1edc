"""Figures of what the parameters of a group do to the value: a curve, a map, or slices.

In the user's units, as a difference from the average. Where the model compresses bad values, a sum on its scale is no
sum in those units: then the effect is in standard deviations, with the user's sign.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sumbo._typing import Array
from sumbo.insights.analysis import StudyAnalysis, Viewed, group_index, view_of
from sumbo.plot.style import ACCENT, BAND, CLEAR, FULL, GREY, STAR, figure, figures, log_axis, ticks, title

CURVE, MAP = 49, 25  # points of a curve, and of each side of a map
_SLICE = 17  # points of a curve with sliders
_STOPS = {3: 7, 4: 4, 5: 3}  # of each slider, by the number of parameters; more parameters: 2
_DOTS = 400  # observations drawn
_WARM = "rgba(190,130,50,1)"


def component(study: Viewed, parameters: str | Sequence[str]) -> Any:
    """What one group does to the value: a curve with its band, a map, or for three and more parameters a slice.

    Args:
        study: a `Result`, an `Optimizer`, or what `sumbo.report.from_optuna` returns.
        parameters: the names of the group's parameters; one of `decomposition.groups`.

    Returns:
        A plotly figure. A slice varies the first parameter, the others as in the best trial; sliders are in the report.

    Raises:
        NotFittedError: there are too few values.
        DataError: no group has just these parameters.
    """
    view = view_of(study)
    j = group_index(view, parameters)
    size = len(view.model.decomposition.groups[j])
    if size == 1:
        return curve(view, j)
    return surface(view, j) if size == 2 else slices(view, j).figure(view)


def effect_title(view: StudyAnalysis) -> str:
    """What the axis of an effect measures."""
    return "effect on the value" if view.units.straight else "effect, standard deviations"


def curve(view: StudyAnalysis, j: int) -> Any:
    """A group of one parameter: mean, a band of two standard deviations, and the data."""
    (i,) = view.model.decomposition.groups[j]
    go = figures()
    u, values = view.axis(i, CURVE)
    mean, std = _effect(view, j, u[:, None])
    places, x = _axis(view, i, values)
    where, dots = _data(view, j)
    if view.is_category(i):
        middle = go.Scatter(
            x=places,
            y=mean,
            mode="markers",
            marker={"size": 9, "color": ACCENT},
            error_y={"type": "data", "array": 2 * std, "color": ACCENT, "thickness": 1.5, "width": 6},
            hoverinfo="y",
        )
        parts = [middle]
    else:
        parts = [*_band(go, places, mean, std), _line(go, places, mean)]
    at = _place(view, i, view.model.X[where, i], values, u)
    parts.insert(0, _dots(go, at, dots))
    return figure(parts, x=x, y=title(effect_title(view)), height=260, showlegend=False)


def surface(view: StudyAnalysis, j: int) -> Any:
    """A group of two parameters: a map of its mean, with the points evaluated; uncertainty under the pointer."""
    i, k = view.model.decomposition.groups[j]
    go = figures()
    (u, xs), (v, ys) = view.axis(i, MAP), view.axis(k, MAP)
    Z = np.array([(a, b) for b in v for a in u])
    mean, std = (part.reshape(len(v), len(u)) for part in _effect(view, j, Z))
    (x_places, x), (y_places, y) = _axis(view, i, xs), _axis(view, k, ys)
    heat = go.Heatmap(
        x=x_places,
        y=y_places,
        z=mean,
        colorscale=_better_to_worse(view, float(mean.min()), float(mean.max())),
        hovertext=[
            [f"{m:.4g} ± {2 * s:.2g}" for m, s in zip(mean_row, std_row, strict=True)]
            for mean_row, std_row in zip(mean, std, strict=True)
        ],
        hoverinfo="x+y+text",
        colorbar={"thickness": 10, "outlinewidth": 0, "title": {"text": ""}},
    )
    where, _ = _data(view, j)
    X = view.model.X[where]
    dots = _dots(go, _place(view, i, X[:, i], xs, u), _place(view, k, X[:, k], ys, v))
    best = int(np.argmax(view.model.y))
    star = go.Scatter(
        x=_place(view, i, view.model.X[[best], i], xs, u),
        y=_place(view, k, view.model.X[[best], k], ys, v),
        mode="markers",
        marker={"size": 13, "symbol": "star", "color": STAR, "line": {"width": 1, "color": "white"}},
        hovertext="best trial",
        hoverinfo="text",
    )
    return figure(
        [heat, dots, star], x=x | {"showgrid": False}, y=y | {"showgrid": False}, height=360, showlegend=False
    )


@dataclass(frozen=True)
class Slices:
    """Curves along each parameter of a group, for every setting of the others on a grid.

    Attributes:
        dims: the group's dimensions.
        stops: for each dimension the user's values that its slider stops at, and which is nearest to the best trial.
        curves: for each dimension, values along it; mean and std (stops of the others in order ..., points).
        data: for each dimension, where the observations are along it.
    """

    j: int
    dims: tuple[int, ...]
    stops: tuple[tuple[list[Any], int], ...]
    curves: tuple[tuple[list[Any], Array, Array], ...]
    data: tuple[Array, ...]

    def figure(self, view: StudyAnalysis, axis: int = 0) -> Any:
        """The curve along one dimension, the others as in the best trial."""
        go = figures()
        values, mean, std = self.curves[axis]
        at = tuple(start for n, (_, start) in enumerate(self.stops) if n != axis)
        places, x = _axis(view, self.dims[axis], values)
        low, high = float((mean - 2 * std).min()), float((mean + 2 * std).max())
        rug = _dots(go, self.data[axis], np.full(len(self.data[axis]), low - 0.04 * (high - low)))
        parts = [rug, *_band(go, places, mean[at], std[at]), _line(go, places, mean[at])]
        y = title(effect_title(view)) | {"range": [low - 0.1 * (high - low), high]}
        return figure(parts, x=x, y=y, height=260, showlegend=False)


def slices(view: StudyAnalysis, j: int) -> Slices:
    """A group of three and more parameters, on grids."""
    dims = view.model.decomposition.groups[j]
    count = _STOPS.get(len(dims), 2)
    stops = [view.axis(i, count) for i in dims]
    best = view.model.X[int(np.argmax(view.model.y))]
    starts = [int(np.argmin(np.abs(u - best[i]))) for i, (u, _) in zip(dims, stops, strict=True)]
    curves, data = [], []
    X = view.model.X[_some(view)]
    for n, i in enumerate(dims):
        u, values = view.axis(i, _SLICE)
        sides = [stops[m][0] for m in range(len(dims)) if m != n]
        grids = np.meshgrid(*sides, u, indexing="ij")
        columns = list(grids[:-1])
        columns.insert(n, grids[-1])
        mean, std = _effect(view, j, np.stack([c.ravel() for c in columns], axis=1))
        curves.append((values, mean.reshape(grids[0].shape), std.reshape(grids[0].shape)))
        data.append(_place(view, i, X[:, i], values, u))
    shown = tuple((values, start) for (_, values), start in zip(stops, starts, strict=True))
    return Slices(j, dims, shown, tuple(curves), tuple(data))


def _effect(view: StudyAnalysis, j: int, Z: Array) -> tuple[Array, Array]:
    mean, std = view.effect(j)(Z)
    return view.units.effect * mean, abs(view.units.effect) * std


def _data(view: StudyAnalysis, j: int) -> tuple[Any, Array]:
    """Some observations that have a value, and the effect there with what the model leaves unexplained."""
    some = _some(view)
    X, y = view.model.X[some], view.model.y[some]
    left = y - view.model.posterior(X)[0]
    group = list(view.model.decomposition.groups[j])
    return some, view.units.effect * (view.effect(j)(X[:, group])[0] + left)


def _some(view: StudyAnalysis) -> Any:
    """Observations that are drawn: some of those that have a value."""
    known = np.flatnonzero(np.isfinite(view.values))
    return known[np.linspace(0, len(known) - 1, min(len(known), _DOTS)).astype(int)]


def _axis(view: StudyAnalysis, i: int, values: Sequence[Any]) -> tuple[Array, dict[str, Any]]:
    """Places of values along an axis, and the axis."""
    assert view.space is not None
    named = title(view.space.names[i])
    if view.is_category(i):
        return np.arange(len(values), dtype=float), named | ticks(values) | {"range": [-0.5, len(values) - 0.5]}
    numbers = np.array(values, dtype=float)
    scale = log_axis(numbers[0], numbers[-1]) if view.is_log(i) else {"type": "linear"}
    return numbers, named | scale


def _place(view: StudyAnalysis, i: int, units: Array, values: Sequence[Any], u: Array) -> Array:
    """Where observations are on the axis whose places u have these values."""
    assert view.space is not None
    if view.is_category(i):  # side by side, or one would hide all others
        spread = 0.3 * (np.arange(len(units)) * 0.618 % 1.0 - 0.5)
        return np.floor(units * len(values)) + spread
    numbers = np.array(values, dtype=float)
    if view.is_log(i):
        return np.exp(np.interp(units, u, np.log(numbers)))
    return np.interp(units, u, numbers)


def _band(go: Any, x: Array, mean: Array, std: Array) -> list[Any]:
    hidden = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
    lower = go.Scatter(x=x, y=mean - 2 * std, **hidden)
    return [lower, go.Scatter(x=x, y=mean + 2 * std, fill="tonexty", fillcolor=BAND, **hidden)]


def _line(go: Any, x: Array, mean: Array) -> Any:
    return go.Scatter(x=x, y=mean, mode="lines", line={"color": ACCENT, "width": 2}, hoverinfo="x+y")


def _dots(go: Any, x: Array, y: Array) -> Any:
    return go.Scatter(x=x, y=y, mode="markers", marker={"size": 4, "color": GREY, "opacity": 0.5}, hoverinfo="skip")


def _better_to_worse(view: StudyAnalysis, least: float, most: float) -> list[list[Any]]:
    """Colours that are clear at zero, each side as strong as its own extent allows."""
    low, high = (FULL, _WARM) if view.sign < 0 else (_WARM, FULL)
    zero = -least / (most - least) if least < 0.0 < most else 0.5
    return [[0.0, low], [zero, CLEAR], [1.0, high]]
