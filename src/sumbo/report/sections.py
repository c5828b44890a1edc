"""The sections of a page: the search, what its model learned, how far that can be trusted, and the time it took."""

import json
import pprint
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sumbo import plot
from sumbo._typing import Array
from sumbo.insights.analysis import StudyAnalysis
from sumbo.insights.tables import MOST, Importance, Importances
from sumbo.plot import parameters
from sumbo.plot.diagnostics import LEVELS
from sumbo.plot.style import group_name, number, plain
from sumbo.report.markup import Canvas, Markup, escaped, joined, table, tag

_TRIALS = 2000  # rows of the table of trials
_DRAWN = 12  # groups whose function is drawn
_FEWER_WITH = 100  # parameters, from which fewer are
_LEAST = 0.002  # share of variance below which a group is not drawn
_PAIRS = 30  # rows of the table of pairs
_NAMED = 60  # parameters named as not mattering
_CELLS = 7  # numbers of a curve, or of a side of a map, in a table
_SURPRISES = 10  # trials that the model understands least
_SLICE = "A slice: choose what to vary; the others are where their sliders stand, at first near the best trial."
_ALT = "Curve of the effect of {}; sliders change these."


def search(view: StudyAnalysis, canvas: Canvas) -> Markup:
    """What was tried and what came of it."""
    if not view.rows:
        return tag("p", "There are no trials yet.")
    counts = ", ".join(f"{len(view.in_state(state))} {state}" for state in ("done", "failed", "running", "waiting"))
    best = view.best
    reached = "No trial has a value yet." if best is None else f"The best is {number(best.value)}, trial {best.number}."
    figure = canvas.figure(
        plot.trials(view),
        f"Values of all trials over time and the best so far. {counts}. {reached}",
        "Every dot is a trial, the line is the best so far. Failed and unfinished trials stand along the bottom, where "
        "they have no value; what is far worse than the rest is at the edge. The pointer shows parameters.",
        _trials(view),
    )
    reasons = Counter(row.reason or "no reason on record" for row in view.in_state("failed"))
    if not reasons:
        return figure
    failures = [(reason[:300], n) for reason, n in reasons.most_common(8)]
    return joined([figure, table("Why trials failed, the most frequent reasons", ("reason", "trials"), failures)])


def _trials(view: StudyAnalysis) -> Markup:
    shown, caption = list(view.rows), f"All {len(view.rows)} trials"
    if len(shown) > _TRIALS:
        some = [*view.by_value()[: _TRIALS // 2], *shown[-_TRIALS // 2 :]]
        shown = sorted({row.number: row for row in some}.values(), key=lambda row: row.number)
        caption = f"{len(shown)} of {len(view.rows)} trials: the best and the latest"
    rows = ((row.number, row.state, row.value, rounded(row.seconds, 3), row.reason) for row in shown)
    return table(caption, ("trial", "state", "value", "seconds", "reason"), rows)


def best(view: StudyAnalysis, canvas: Canvas) -> Markup:
    """The best parameters: to read, and to copy as JSON and as code."""
    row = view.best
    if row is None:
        return tag("p", "No trial has a value yet, so there are no best parameters.")
    native = str | int | float | bool | None
    params = {name: value if isinstance(value, native) else str(value) for name, value in row.params.items()}
    texts = (
        ("JSON", json.dumps(params, indent=2, default=str)),
        ("Python", f"best = {pprint.pformat(params, sort_dicts=False, width=88)}"),
    )
    rows = [(name, value, _range(view, name)) for name, value in params.items()]
    caption = f"Best parameters: trial {row.number}, value {number(row.value)}"
    lines = "\n".join(f"{name}\t{value!r}" for name, value in params.items())
    shown = table(caption, ("parameter", "value", "range"), rows)
    parts = [tag("div", shown, _copier("table", lines), class_="copyable")]
    for kind, text in texts:
        code = Markup("\n".join(map(escaped, text.split("\n"))))  # lines stay lines
        parts.append(tag("details", tag("summary", f"As {kind}"), _copier(kind, text), tag("pre", tag("code", code))))
    return joined(parts)


def _copier(what: str, content: str) -> Markup:
    # The content travels as JSON within an attribute, so that its lines stay lines.
    return tag("button", f"Copy {what}", type="button", class_="copy", data_copy=json.dumps(content))


def _range(view: StudyAnalysis, name: str) -> str:
    """Where a parameter may be, in the user's words."""
    if name not in view.names:
        return "not modelled"
    axis = parameters.Axis(view, view.names.index(name), 2)
    values = [number(value) for value in axis.values]
    if axis.is_category:
        return ", ".join(values[:6]) + (f", … {len(values) - 6} more" if len(values) > 6 else "")
    return f"{values[0]} to {values[-1]}" + (", log" if axis.is_log else "")


def structure(view: StudyAnalysis, canvas: Canvas) -> Markup:
    """What interacts with what, and how much each matters."""
    found = view.importance_or_reason
    if isinstance(found, str):
        return tag("p", f"{found[0].upper()}{found[1:].rstrip('.')}.")
    view.say("drawing")
    assert view.context is not None
    told, texts = len(view.context.y), []
    if view.post_hoc:
        texts.append(f"The search was {view.method}. What follows is a model that sumbo made of its trials afterwards.")
    if view.model.n < told:
        texts.append(f"It was learned from {view.model.n} of {told} trials: the best, and some over time.")
    origin = tag("p", " ".join(texts), class_="note") if texts else None
    return joined([origin, _interactions(view, canvas), _shares(view, canvas, found)])


def _interactions(view: StudyAnalysis, canvas: Canvas) -> Markup:
    D = len(view.names)
    if D < 2:
        return tag("p", "There is a single parameter, so nothing can interact.")
    pairs = view.interactions.rows
    likely = [row for row in pairs if row.probability >= 0.5]
    words = "; ".join(f"{r.first} and {r.second} ({r.probability:.2f})" for r in likely[:8])
    summary = f"Likely to interact: {words}." if likely else "No two parameters are likely to interact."
    rows = [(f"{r.first}, {r.second}", round(r.probability, 3)) for r in pairs[:_PAIRS]]
    some = f" Of {D} parameters, {MOST} of the most important are looked at." if D > MOST else ""
    left = "pairs below 0.1 are left out, grey parameters have none" if D <= parameters.ALL else "others are left out"
    graph = canvas.figure(
        plot.interaction_graph(view),
        f"Graph of parameters that interact. {summary}",
        "A line joins two parameters whose effects depend on each other, with the probability that they do (of "
        f"many lines, only likely ones have it written); {left}.{some}",
        table(f"Pairs by probability: {len(rows)} of {len(pairs)}", ("parameters", "probability"), rows),
    )
    alt = f"Matrix of pairs of parameters with probabilities. {summary}"
    matrix = canvas.figure(plot.interaction_matrix(view), alt, f"The same for all pairs.{some}")
    return joined([tag("p", summary, class_="lead"), tag("div", graph, matrix, class_="pair")])


def _shares(view: StudyAnalysis, canvas: Canvas, importance: Importances) -> Markup:
    def share_table(kind: str, rows: Sequence[Importance]) -> Markup:
        cells = [(group_name(row.parameters), round(row.share, 4), round(row.std, 4)) for row in rows]
        return table(f"Shares of {kind}s", (kind, "share", "±"), cells)

    first, rest = importance.parameters[0], replace(importance.all_together, parameters=("all together",))
    left = canvas.figure(
        plot.shares(view),
        f"Shares of variance of parameters. The largest is {first.parameters[0]} with {first.share:.0%}.",
        "How much of the variance over the whole space would go if the parameter were held fixed. Interactions count "
        "for both sides, so these may add up to more than 1.",
        share_table("parameter", importance.parameters),
    )
    right = canvas.figure(
        plot.group_shares(view),
        f"Shares of variance of groups. All together: {rest.share:.0%}.",
        "What a function of the group's parameters alone explains; “all together” is what no sum over groups can.",
        share_table("group", [rest, *importance.groups]),
    )
    useless = [row.parameters[0] for row in importance.parameters if row.share + 2 * row.std < 0.01]
    words: list[object] = ["None: every parameter may have some effect."]
    if useless:
        named = Markup(", ".join(tag("code", name) for name in useless[:_NAMED]))
        more = f" and {len(useless) - _NAMED} more." if len(useless) > _NAMED else "."
        words = ["below 1% of the variance, doubt included: ", named, more]
    verdict = tag("p", tag("strong", "What does not matter: "), *words)
    return joined([tag("div", left, right, class_="pair"), verdict])


def effects(view: StudyAnalysis, canvas: Canvas) -> Markup:
    """The function of each group that matters."""
    found = view.importance_or_reason
    if isinstance(found, str):
        return tag("p", "There is nothing to draw yet.")
    most = _DRAWN if len(view.names) < _FEWER_WITH else _DRAWN // 2
    drawn = [row for row in found.groups if row.share >= _LEAST][:most]
    parts: list[Markup] = []
    for row in drawn:
        view.say(f"what the groups do: {len(parts) + 1} of {len(drawn)}")
        parts.append(_component(view, canvas, row))
    left = len(found.groups) - len(drawn)
    more = f" Groups with smaller shares are not drawn ({left})." if left else ""
    scale = (
        "Effects are in the units of the value, as a difference from the average over the space."
        if not view.warped
        else "The model compresses values that are worse than the median, because their differences say little about "
        "where the best ones are. A sum on that scale is no sum in the units of the value: effects are in standard "
        "deviations of the compressed values, with the same sign."
    )
    intro = f"{scale} Bands are two standard deviations wide on each side. Grey dots are trials.{more}"
    return joined([tag("p", intro, class_="note"), tag("div", *parts, class_="pair")])


def _component(view: StudyAnalysis, canvas: Canvas, row: Importance) -> Markup:
    j, heading = view.groups.index(row.parameters), group_name(row.parameters)
    caption = [tag("strong", heading), f": {row.share:.1%} of the variance."]
    if len(row.parameters) > 2:
        return _slices(view, canvas, j, joined([*caption, f" {_SLICE}"]))
    if len(row.parameters) == 1:
        figure, axis, mean = parameters.curve(view, j)
        shape, numbers = "Curve", _curve_table(heading, axis, mean)
    else:
        figure, x, y, mean = parameters.surface(view, j)
        across, down = _spread(x), _spread(y)
        head = ("{1} \\ {0}".format(*row.parameters), *(number(x.values[a]) for a in across))
        rows = [(number(y.values[b]), *(rounded(mean[b, a], 4) for a in across)) for b in down]
        shape, numbers = "Map", table(f"Effect of {heading}", head, rows)
        caption.append(" Blue is better, brown worse than average; the star is the best trial.")
    extent = f"from {number(float(mean.min()))} to {number(float(mean.max()))}"
    return canvas.figure(figure, f"{shape} of the effect of {heading}, {extent}.", joined(caption), numbers)


def _slices(view: StudyAnalysis, canvas: Canvas, j: int, caption: Markup) -> Markup:
    names, (found, stops) = view.groups[j], parameters.slices(view, j)
    where = ", ".join(f"{n} = {number(v[s])}" for n, (v, s) in zip(names[1:], stops[1:], strict=True))
    setting, (figure, axis, *_) = f"{names[0]} for {where}", found[0]
    place = canvas.figure(figure, _ALT.format(setting), caption, _curve_table(setting, axis, figure.data[-1].y))
    slider = {
        "alt": _ALT,
        "names": [plain(name) for name in names],
        "stops": [([number(v) for v in values], start) for values, start in stops],
        "axes": [_slider_axis(*along) for along in found],
    }
    return canvas.sliding(place, names, slider)


def _slider_axis(figure: Any, axis: parameters.Axis, mean: Array, std: Array) -> dict[str, Any]:
    """The curves along one parameter, for the script."""
    rug, numbers = figure.data[0], {}
    for key, values in (("mean", mean), ("std", std), ("data", rug.x)):
        numbers[key] = [rounded(v, 4) for v in values.ravel()]
    return numbers | {
        "x": axis.places.tolist(),
        "xaxis": figure.layout.xaxis.to_plotly_json(),
        "cells": [(n, number(axis.values[n])) for n in _cells(axis)],
        "range": list(figure.layout.yaxis.range),
        "floor": rounded(rug.y[0], 4),
    }


def _curve_table(heading: str, axis: parameters.Axis, mean: Any) -> Markup:
    rows = [(number(axis.values[k]), rounded(mean[k], 4)) for k in _cells(axis)]
    return table(f"Effect of {heading}", ("value", "effect"), rows)


def _cells(axis: parameters.Axis) -> list[int]:
    """Which points of a curve its table has."""
    return list(range(len(axis.values))) if axis.is_category else _spread(axis)


def _spread(axis: parameters.Axis) -> list[int]:
    return np.unique(np.linspace(0, len(axis.values) - 1, _CELLS).astype(int)).tolist()


def rounded(value: float | None, digits: int) -> float | None:
    """A number with so many digits."""
    return None if value is None else float(f"{value:.{digits}g}")


def trust(view: StudyAnalysis, canvas: Canvas) -> Markup:
    """How far to believe the rest of the page."""
    if view.unavailable_reason is not None:
        return tag("p", view.unavailable_reason)
    verdict, predictions, counts = _verdict(view), _predictions(view, canvas), view.snapshots["values seen"]
    rows = [(n, *(rounded(v, 3) for v in others)) for n, *others in zip(*view.snapshots.values(), strict=True)]
    over_time = canvas.figure(
        plot.hyperparameters(view),
        "Hyperparameters against the number of values seen.",
        f"Learned again, with the present groups, from the first {counts[0]} to {counts[-1]} values, not as they "
        "were during the search. Lines that have become level have been learned. Lengthscales are shares of a range; "
        "scales and noise are standard deviations of the model's values.",
        table("Hyperparameters over time", list(view.snapshots), rows),
    )
    return joined([verdict, predictions, over_time])


def _verdict(view: StudyAnalysis) -> Markup:
    """The short answer, in words."""
    found, noise, shares = view.left_out, view.model.noise_variance**0.5, view.importance_or_reason
    is_sum = "cannot be told"
    if not isinstance(shares, str):
        share, std = shares.all_together.share, shares.all_together.std
        is_sum = f"{1 - share:.0%} of the variance is a sum over the groups; {share:.0%} ± {std:.0%} is not"
    in_units = (
        f"{number(rounded(abs(view.effect_unit) * noise, 3))} in the units of the value"
        if not view.warped
        else f"{noise:.2g} standard deviations of the compressed values"
    )
    inside = found.coverage(np.array([0.95]))[0]
    items = (
        ("Predicts what it has not seen", f"{found.explained:.0%} of the variance of values (leave-one-out R²)"),
        ("Is calibrated", f"{inside:.0%} of values are inside their 95% intervals"),
        ("Is it a sum?", is_sum),
        ("Noise found", in_units),
    )
    return facts(items, "facts")


def facts(items: Sequence[tuple[str, object]], class_: str) -> Markup:
    """Terms, each with what there is to say of it."""
    return tag("dl", *(tag("div", tag("dt", term), tag("dd", text)) for term, text in items), class_=class_)


def _predictions(view: StudyAnalysis, canvas: Canvas) -> Markup:
    found = view.left_out
    predicted, observed = view.untransform(found.mean), view.values[found.index]
    off = np.abs(found.errors)
    rows = [
        (f"value {found.index[k] + 1}", rounded(observed[k], 5), rounded(predicted[k], 5), round(off[k], 1))
        for k in np.argsort(-off)[:_SURPRISES]
    ]
    head = ("", "observed", "predicted", "standard deviations off")
    some = "" if len(found.index) == view.model.n else f" {len(found.index)} of {view.model.n} are shown."
    left = canvas.figure(
        plot.predictions(view),
        "Observed values against predictions made without them.",
        "Leave-one-out: every value against what the model says of it without having seen it (its hyperparameters "
        f"have). Bars are 95% intervals; good models lie on the line.{some}",
        table("Values that surprise the model most, by order of arrival", head, rows),
    )
    shares = [(f"{a:.0%}", f"{b:.0%}") for a, b in zip(LEVELS, found.coverage(LEVELS), strict=True)]
    right = canvas.figure(
        plot.calibration(view),
        "Share of values inside intervals of each level.",
        "Below the dotted line the model is too sure of itself, above it too careful.",
        table("Calibration", ("intervals that should hold", "hold in fact"), shares),
    )
    return tag("div", left, right, class_="pair")


def time_spent(view: StudyAnalysis, canvas: Canvas) -> Markup:
    """Where the time went."""
    rows = []
    for name, attribute in (("objective", "seconds"), ("optimiser", "suggest_seconds")):
        seconds = [getattr(row, attribute) for row in view.rows if getattr(row, attribute) is not None]
        if seconds:
            rows.append((name, len(seconds), *(round(f(seconds), 3) for f in (np.sum, np.median, np.max))))
    if not rows:
        return tag("p", "No times are on record.")
    numbers = table("Seconds", ("spent in", "trials", "in all", "median", "most"), rows)
    missing = "" if rows[-1][0] == "optimiser" else " How long the suggestions took is not on record."
    words = "; ".join(f"{name} {number(float(total))} s in all" for name, _, total, *_ in rows)
    caption = f"Seconds of each trial, on a logarithmic scale: {words}.{missing}"
    return canvas.figure(plot.times(view), f"Seconds spent in each trial. {words}.", caption, numbers)
