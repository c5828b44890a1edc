"""The part of a page about the structure: which parameters interact, what each group does, what does not matter."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sumbo import plot
from sumbo.errors import NotFittedError
from sumbo.insights.analysis import StudyAnalysis
from sumbo.insights.tables import Importances
from sumbo.plot import components, structure
from sumbo.plot.style import group_name, number, plain
from sumbo.report.canvas import Canvas
from sumbo.report.markup import Markup, joined, table, tag

_DRAWN = 12  # groups whose function is drawn
_FEWER_WITH = 100  # parameters, from which fewer are
_LEAST = 0.002  # share of variance below which a group is not drawn
_PAIRS = 30  # rows of the table of pairs
_NAMED = 60  # parameters named as not mattering
_SLICE = "A slice: choose what to vary; the others are where their sliders stand, at first near the best trial."
_ALT = "Curve of the effect of {}; sliders change these."
_CELLS = 7  # numbers of a curve, or of a side of a map, in a table


def structure_of(view: StudyAnalysis, canvas: Canvas) -> Markup:
    """What interacts with what, and how much each matters."""
    if view.unavailable_reason is not None:
        return tag("p", view.unavailable_reason)
    try:
        importance = view.importance
    except NotFittedError as error:
        return tag("p", f"{str(error).capitalize()}.")
    view.say("drawing")
    return joined([_borrowed(view), _interactions(view, canvas), _shares(view, canvas, importance)])


def components_of(view: StudyAnalysis, canvas: Canvas) -> Markup:
    """The function of each group that matters."""
    try:
        importance = view.importance if view.unavailable_reason is None else None
    except NotFittedError:
        importance = None
    if importance is None:
        return tag("p", "There is nothing to draw yet.")
    assert view.space is not None
    order = _by_share(view, importance)
    most = _DRAWN if view.space.dim < _FEWER_WITH else _DRAWN // 2
    drawn = [j for j, share in order if share >= _LEAST][:most]
    parts: list[Markup] = []
    for j in drawn:
        view.say(f"what the groups do: {len(parts) + 1} of {len(drawn)}")
        parts.append(_component(view, canvas, j, dict(order)[j]))
    left = len(order) - len(drawn)
    more = f" Groups with smaller shares are not drawn ({left})." if left else ""
    scale = (
        "Effects are in the units of the value, as a difference from the average over the space."
        if view.units.straight
        else "The model compresses values that are worse than the median, because their differences say little about "
        "where the best ones are. A sum on that scale is no sum in the units of the value: effects are in standard "
        "deviations of the compressed values, with the same sign."
    )
    intro = f"{scale} Bands are two standard deviations wide on each side. Grey dots are trials.{more}"
    return joined([tag("p", intro, class_="note"), tag("div", *parts, class_="pair")])


def _borrowed(view: StudyAnalysis) -> Markup | None:
    assert view.query is not None
    texts = []
    if view.borrowed:
        texts.append(f"The search was {view.method}. What follows is a model that sumbo made of its trials afterwards.")
    if view.model.n < len(view.query.y):
        texts.append(f"It was learned from {view.model.n} of {len(view.query.y)} trials: the best, and some over time.")
    return tag("p", " ".join(texts), class_="note") if texts else None


def _interactions(view: StudyAnalysis, canvas: Canvas) -> Markup:
    assert view.space is not None
    D = view.space.dim
    if D < 2:
        return tag("p", "There is a single parameter, so nothing can interact.")
    pairs = list(view.interactions)
    likely = [row for row in pairs if row.probability >= 0.5]
    words = "; ".join(f"{r.first} and {r.second} ({r.probability:.2f})" for r in likely[:8])
    summary = f"Likely to interact: {words}." if likely else "No two parameters are likely to interact."
    rows = [(f"{r.first}, {r.second}", round(r.probability, 3)) for r in pairs[:_PAIRS]]
    caption = f"Pairs by probability: {len(rows)} of {len(pairs)}"
    numbers = table(caption, ("parameters", "probability"), rows)
    some = f" Of {D} parameters, {structure.SHOWN} of the most important are looked at." if D > structure.SHOWN else ""
    left = "pairs below 0.1 are left out, grey parameters have none" if D <= structure.ALL else "others are left out"
    graph = canvas.figure(
        plot.interaction_graph(view),
        f"Graph of parameters that interact. {summary}",
        "A line joins two parameters whose effects depend on each other, with the probability that they do (of "
        f"many lines, only likely ones have it written); {left}.{some}",
        numbers,
        wide=False,
    )
    matrix = canvas.figure(
        plot.interaction_matrix(view),
        f"Matrix of pairs of parameters with probabilities. {summary}",
        f"The same for all pairs.{some}",
        wide=False,
    )
    return joined([tag("p", summary, class_="lead"), tag("div", graph, matrix, class_="pair")])


def _shares(view: StudyAnalysis, canvas: Canvas, importance: Importances) -> Markup:
    singles = [(row.parameters[0], round(row.share, 4), round(row.std, 4)) for row in importance.parameters]
    groups = [(group_name(row.parameters), round(row.share, 4), round(row.std, 4)) for row in importance.groups]
    rest = ("all together", round(importance.all_together.share, 4), round(importance.all_together.std, 4))
    first, head = importance.parameters[0], ("share", "±")
    left = canvas.figure(
        plot.shares(view),
        f"Shares of variance of parameters. The largest is {first.parameters[0]} with {first.share:.0%}.",
        "How much of the variance over the whole space would go if the parameter were held fixed. Interactions count "
        "for both sides, so these may add up to more than 1.",
        table("Shares of parameters", ("parameter", *head), singles),
        wide=False,
    )
    right = canvas.figure(
        plot.group_shares(view),
        f"Shares of variance of groups. All together: {importance.all_together.share:.0%}.",
        "What a function of the group's parameters alone explains; “all together” is what no sum over groups can.",
        table("Shares of groups", ("group", *head), [rest, *groups]),
        wide=False,
    )
    useless = [row.parameters[0] for row in importance.parameters if row.share + 2 * row.std < 0.01]
    words: object = "None: every parameter may have some effect."
    if useless:
        words = joined(["below 1% of the variance, doubt included: ", _names(useless)])
    return joined([tag("div", left, right, class_="pair"), tag("p", tag("strong", "What does not matter: "), words)])


def _names(names: Sequence[str]) -> Markup:
    shown = joined(joined([", " if k else "", tag("code", name)]) for k, name in enumerate(names[:_NAMED]))
    more = len(names) - _NAMED
    return joined([shown, f" and {more} more." if more > 0 else "."])


def _by_share(view: StudyAnalysis, importance: Importances) -> list[tuple[int, float]]:
    """The model's groups with their shares, the largest first."""
    assert view.space is not None
    share = {row.parameters: row.share for row in importance.groups}
    groups = [tuple(view.space.names[i] for i in group) for group in view.model.decomposition.groups]
    return sorted(((j, share[names]) for j, names in enumerate(groups)), key=lambda pair: -pair[1])


def _component(view: StudyAnalysis, canvas: Canvas, j: int, share: float) -> Markup:
    assert view.space is not None
    names = [view.space.names[i] for i in view.model.decomposition.groups[j]]
    heading = group_name(names)
    if len(names) > 2:
        return _slices(view, canvas, j, names, share)
    if len(names) == 1:
        figure = components.curve(view, j)
        line = figure.data[-1]
        i = view.model.decomposition.groups[j][0]
        numbers = _curve_table(view, heading, i, np.asarray(line.y), view.axis(i, len(line.y))[1])
        alt = f"Curve of the effect of {heading}, {_extent(np.asarray(line.y))}."
    else:
        figure = components.surface(view, j)
        heat = figure.data[0]
        numbers = _map_table(view, j, heading, np.asarray(heat.z))
        alt = f"Map of the effect of {heading}, {_extent(np.asarray(heat.z))}."
    colours = "" if len(names) == 1 else " Blue is better, brown worse than average; the star is the best trial."
    caption = joined([tag("strong", heading), f": {share:.1%} of the variance.{colours}"])
    return canvas.figure(figure, alt, caption, numbers, wide=False)


def _extent(values: Any) -> str:
    return f"from {number(float(values.min()))} to {number(float(values.max()))}"


def _curve_table(view: StudyAnalysis, heading: str, i: int, mean: Any, values: Sequence[Any]) -> Markup:
    rows = [(number(values[k]), float(f"{mean[k]:.4g}")) for k in _cells(view, i, values)]
    return table(f"Effect of {heading}", ("value", "effect"), rows)


def _cells(view: StudyAnalysis, i: int, values: Sequence[Any]) -> list[int]:
    """Which points of a curve its table has."""
    if view.is_category(i):
        return list(range(len(values)))
    return np.unique(np.linspace(0, len(values) - 1, _CELLS).astype(int)).tolist()


def _map_table(view: StudyAnalysis, j: int, heading: str, mean: Any) -> Markup:
    i, k = view.model.decomposition.groups[j]
    (xs, ys) = (view.axis(d, size)[1] for d, size in ((i, components.MAP), (k, components.MAP)))
    across, down = (np.unique(np.linspace(0, len(v) - 1, _CELLS).astype(int)) for v in (xs, ys))
    assert view.space is not None
    corner = f"{view.space.names[k]} \\ {view.space.names[i]}"
    rows = [(number(ys[b]), *(float(f"{mean[b, a]:.4g}") for a in across)) for b in down]
    return table(f"Effect of {heading}", (corner, *(number(xs[a]) for a in across)), rows)


def _slices(view: StudyAnalysis, canvas: Canvas, j: int, names: Sequence[str], share: float) -> Markup:
    found = components.slices(view, j)
    heading = group_name(names)
    figure = found.figure(view)
    at = tuple(start for _, start in found.stops[1:])
    values, mean, _ = found.curves[0]
    where = ", ".join(f"{n} = {number(v[s])}" for n, (v, s) in zip(names[1:], found.stops[1:], strict=True))
    setting = f"{names[0]} for {where}"
    place = canvas.figure(
        figure,
        _ALT.format(setting),
        joined([tag("strong", heading), f": {share:.1%} of the variance. {_SLICE}"]),
        _curve_table(view, setting, found.dims[0], mean[at], values),
        wide=False,
    )
    slider = {
        "alt": _ALT,
        "names": [plain(name) for name in names],
        "stops": [([number(v) for v in stops], start) for stops, start in found.stops],
        "axes": [_axis(view, found, k) for k in range(len(names))],
    }
    return canvas.sliding(place, names, slider)


def _axis(view: StudyAnalysis, found: components.Slices, k: int) -> dict[str, Any]:
    """The curves along one parameter, for the script."""
    figure = found.figure(view, k)
    values, mean, std = found.curves[k]
    return {
        "x": np.asarray(figure.data[-1].x, dtype=float).tolist(),
        "xaxis": figure.layout.xaxis.to_plotly_json(),
        "cells": [(n, number(values[n])) for n in _cells(view, found.dims[k], values)],
        "mean": _digits(mean),
        "std": _digits(std),
        "range": list(figure.layout.yaxis.range),
        "data": _digits(figure.data[0].x),
        "floor": float(f"{figure.data[0].y[0]:.4g}"),
    }


def _digits(values: Any) -> list[float]:
    return [float(f"{v:.4g}") for v in np.asarray(values).ravel()]
