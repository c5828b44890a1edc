"""The sections of a page: the search, what its model learned, how far that can be trusted, and the time it took."""

import json
import pprint
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sumbo import plot
from sumbo._typing import Array
from sumbo.insights.analysis import StudyAnalysis
from sumbo.insights.constraints import BINDS
from sumbo.insights.tables import MOST, Importance, Importances
from sumbo.plot import parameters
from sumbo.plot.diagnostics import LEVELS
from sumbo.plot.style import group_name, number, plain
from sumbo.report.markup import Canvas, Markup, escaped, joined, table, tag
from sumbo.space import Linear

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
    reached = f"{_none(view)}." if best is None else f"The best is {number(best.value)}, trial {best.number}."
    marks = " Open circles broke a constraint, and the line leaves them out." if view.constraints else ""
    if _context(view):
        marks += f" What the world set ({', '.join(_context(view))}) differs between trials; the line is over all."
    figure = canvas.figure(
        plot.trials(view),
        f"Values of all trials over time and the best so far. {counts}. {reached}",
        "Every dot is a trial, the line is the best so far. Failed and unfinished trials stand along the bottom, where "
        f"they have no value; what is far worse than the rest is at the edge. The pointer shows parameters.{marks}",
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
    names = [c.name for c in view.constraints]
    rows = []
    for row in shown:
        state = "infeasible" if row.state == "done" and not view.feasible(row) else row.state
        measured = ((row.constraints or {}).get(name) for name in names)
        rows.append((row.number, state, row.value, *measured, rounded(row.seconds, 3), row.reason))
    return table(caption, ("trial", "state", "value", *names, "seconds", "reason"), rows)


def _none(view: StudyAnalysis) -> str:
    """Why there is no best trial."""
    return "No trial is feasible yet" if view.in_state("done") else "No trial has a value yet"


def best(view: StudyAnalysis, canvas: Canvas) -> Markup:
    """The best parameters: to read, and to copy as JSON and as code."""
    row, found = view.best, None if view.unavailable_reason else view.recommendation
    trusted = None if found is None else _recommended(view)
    if row is None:
        return joined([tag("p", f"{_none(view)}, so there are no best parameters."), trusted])
    native = str | int | float | bool | None
    params = {name: value if isinstance(value, native) else str(value) for name, value in row.params.items()}
    texts = (
        ("JSON", json.dumps(params, indent=2, default=str)),
        ("Python", f"best = {pprint.pformat(params, sort_dicts=False, width=88)}"),
    )
    columns = [params] if found is None else [params, found.params]
    rows = [
        (name, *(_value(view, name, column) for column in columns), _range(view, name))
        for name in dict.fromkeys([*view.names, *params])
    ]
    caption = f"Best parameters: trial {row.number}, value {number(row.value)}"
    caption += "" if found is None else f"; recommended: {number(rounded(found.value, 5))} ± {found.std:.2g}"
    head = ("parameter", "value", "recommended")[: 1 + len(columns)]
    lines = "\n".join(f"{name}\t{value!r}" for name, value in params.items())
    shown = table(caption, (*head, "range"), rows)
    parts = [trusted, tag("div", shown, _copier("table", lines), class_="copyable")]
    for kind, text in texts:
        code = Markup("\n".join(map(escaped, text.split("\n"))))  # lines stay lines
        parts.append(tag("details", tag("summary", f"As {kind}"), _copier(kind, text), tag("pre", tag("code", code))))
    return joined(parts)


def _recommended(view: StudyAnalysis) -> Markup:
    """The point to use beside the best trial, and whether the value of that is to be trusted."""
    found, trust = view.recommendation, view.best_value
    chance = f", feasible with probability {percent(found.probability_feasible)}" if _may_fail(view) else ""
    where = ", ".join(f"{name} = {number(_value(view, name, found.params))}" for name in _context(view))
    world = f" It is for {where}, as in the latest trial; the best trial had its own." if where else ""
    expected = f"{number(rounded(found.value, 5))} ± {found.std:.2g} is expected"
    text = f"The point to use, by all values, is the one recommended: {expected}{chance}.{world}"
    text += "" if view.tried(found) else " It has not been tried."
    return tag("p", *([] if trust is None else [f"{trust} "]), text, class_="lead")


def _may_fail(view: StudyAnalysis) -> bool:
    return bool(view.constraints or view.in_state("failed"))


def _context(view: StudyAnalysis) -> tuple[str, ...]:
    return () if view.space is None else view.space.context


def _value(view: StudyAnalysis, name: str, params: Mapping[str, Any]) -> object:
    """A parameter's value for a table; blank where it does not exist."""
    if name not in params:
        return None
    return "None" if params[name] is None else view.in_digits(name, params[name])


def percent(probability: float) -> str:
    """A probability for people, never quite sure."""
    return "<1%" if probability < 0.005 else ">99%" if probability > 0.995 else f"{probability:.0%}"


def constraints(view: StudyAnalysis, canvas: Canvas) -> Markup:
    """What limits the search: which constraints bind, and what is known beforehand."""
    parts: list[Markup] = []
    if view.constraints:
        done = view.in_state("done")
        kept = sum(map(view.feasible, done))
        words = [f"{kept} of {len(done)} trials with a value are feasible."]
        if view.unavailable_reason is None:
            sure = percent(view.recommendation.probability_feasible)
            words = [_binding(view), *words, f"The recommended point is feasible with probability {sure}."]
        parts.append(tag("p", " ".join(words), class_="lead"))
        head = ("constraint", "at the best trial", "trials that kept it", "holds at the recommended point", "binds")
        rows = []
        for row in view.constraint_rows:
            chances = (None if p is None else percent(p) for p in (row.holds, row.binds))
            rows.append((row.constraint, row.at_best, f"{row.kept:.0%}", *chances, rounded(row.without, 4)))
        parts.append(table("Constraints told with the values", (*head, "value expected without it"), rows))
        parts.append(tag("p", f"Binds: {BINDS}.", class_="note"))
    if view.space is not None and view.space.constraints:
        items = (tag("li", tag("code", str(constraint))) for constraint in view.space.constraints)
        known = (
            "Known beforehand, so every suggestion keeps them, and all averages on this page are over points that do:"
        )
        parts += [tag("p", known), tag("ul", *items)]
    return joined(parts)


def _binding(view: StudyAnalysis) -> str:
    """Which constraint binds, in words."""
    if view.best is None:
        return "No trial is feasible yet, so which constraint binds cannot be told."
    value, texts = number(rounded(view.recommendation.value, 4)), []
    for row in sorted(view.constraint_rows, key=lambda row: -(row.binds or 0.0)):
        if row.binds is not None and row.binds >= 0.5:
            without = number(rounded(row.without, 4))
            texts.append(
                f"{row.constraint} binds ({percent(row.binds)}): without it, {without} is expected, not {value}."
            )
    return " ".join(texts) or "No constraint is likely to bind."


def _copier(what: str, content: str) -> Markup:
    # The content travels as JSON within an attribute, so that its lines stay lines.
    return tag("button", f"Copy {what}", type="button", class_="copy", data_copy=json.dumps(content))


def _range(view: StudyAnalysis, name: str) -> str:
    """Where a parameter may be, in the user's words."""
    if name not in view.names:
        return "not modelled"
    axis = parameters.Axis(view, view.names.index(name), 2)
    values, nature = [number(value) for value in axis.values], _nature(view, name)
    if axis.is_category:
        between = " < " if not view.space.nominal[view.names.index(name)] else ", "  # type: ignore[union-attr]
        text = between.join(values[:6]) + (f"{between}… {len(values) - 6} more" if len(values) > 6 else "")
    else:
        step = view.space[name].step  # type: ignore[index]
        text = f"{values[0]} to {values[-1]}" + (", log" if axis.is_log else "")
        text += "" if step is None else f", in steps of {number(step)}"
    return f"{text}; {nature}" if nature else text


def _nature(view: StudyAnalysis, name: str) -> str:
    """What is special about a parameter: the world sets it, or it exists for some points only."""
    if view.space is None or name not in view.names:
        return ""
    if name in view.space.context:
        return "set by the world"
    needs = [f"{o} is {' or '.join(map(number, values))}" for o, values in view.space.needs(name).items()]
    return f"exists where {' and '.join(needs)}" if needs else ""


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
        cells = [(_noted(view, row.parameters), round(row.share, 4), round(row.std, 4)) for row in rows]
        return table(f"Shares of {kind}s", (kind, "share", "±"), cells)

    first, rest = importance.parameters[0], replace(importance.all_together, parameters=("all together",))
    left = canvas.figure(
        plot.shares(view),
        f"Shares of variance of parameters. The largest is {first.parameters[0]} with {first.share:.0%}.",
        f"How much of the variance over {_everywhere(view)} would go if the parameter were held fixed. Interactions "
        f"count for both sides, so these may add up to more than 1.{_limits(view)}",
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


def _noted(view: StudyAnalysis, names: Sequence[str]) -> str:
    """A group in one line, and what is special about a parameter that is alone in it."""
    nature = _nature(view, names[0]) if len(names) == 1 else ""
    return f"{group_name(names)} ({nature})" if nature else group_name(names)


def _everywhere(view: StudyAnalysis) -> str:
    return "the allowed points" if view.space is not None and view.space.constraints else "the whole space"


def _limits(view: StudyAnalysis) -> str:
    """What shares mean where parameters do not always exist, or cannot change alone."""
    assert view.space is not None
    words = " Where a parameter does not exist, it changes nothing." if view.space.conditional else ""
    if any(isinstance(c, Linear) and c.equality for c in view.space.constraints):
        words += " What a sum ties together cannot change alone: the others make up for it."
    return words


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
    space = "the allowed points" if view.space is not None and view.space.constraints else "the space"
    scale = (
        f"Effects are in the units of the value, as a difference from the average over {space}."
        if not view.warped
        else "The model compresses values that are worse than the median, because their differences say little about "
        "where the best ones are. A sum on that scale is no sum in the units of the value: effects are in standard "
        "deviations of the compressed values, with the same sign."
    )
    intro = f"{scale} Bands are two standard deviations wide on each side. Grey dots are trials.{more}"
    if view.space is not None and view.space.constraints:
        intro += " Where nothing allowed has such values, there is a gap."
    return joined([tag("p", intro, class_="note"), tag("div", *parts, class_="pair")])


def _component(view: StudyAnalysis, canvas: Canvas, row: Importance) -> Markup:
    j, heading = view.groups.index(row.parameters), group_name(row.parameters)
    caption = [tag("strong", heading), f": {row.share:.1%} of the variance."]
    natures = {name: nature for name in row.parameters if (nature := _nature(view, name))}
    caption += [
        f" {name}: {nature}." if len(row.parameters) > 1 else f" {nature.capitalize()}."
        for name, nature in natures.items()
    ]
    if not parameters.exists(view, j):
        return tag("figure", tag("figcaption", *caption, " They never exist together, so there is nothing to draw."))
    names = [view.names[i] for i in view.dims(j)]
    caption += [f" {name} follows from the others." for name in row.parameters if name not in names]
    if len(names) > 2:
        return _slices(view, canvas, j, joined([*caption, f" {_SLICE}"]))
    if len(names) == 1:
        figure, axis, mean = parameters.curve(view, j)
        shape, numbers = "Curve", _curve_table(heading, axis, mean)
    else:
        figure, x, y, mean = parameters.surface(view, j)
        across, down = _spread(x), _spread(y)
        head = ("{1} \\ {0}".format(*names), *(number(x.values[a]) for a in across))
        rows = [(number(y.values[b]), *(rounded(mean[b, a], 4) for a in across)) for b in down]
        shape, numbers = "Map", table(f"Effect of {heading}", head, rows)
        star = "; the star is the best trial" if len(figure.data) > 2 else ""
        caption.append(f" Blue is better, brown worse than average{star}.")
    extent = f"from {number(float(np.nanmin(mean)))} to {number(float(np.nanmax(mean)))}"
    return canvas.figure(figure, f"{shape} of the effect of {heading}, {extent}.", joined(caption), numbers)


def _slices(view: StudyAnalysis, canvas: Canvas, j: int, caption: Markup) -> Markup:
    names, (found, stops) = [view.names[i] for i in view.dims(j)], parameters.slices(view, j)
    where = ", ".join(f"{n} = {number(v[s])}" for n, (v, s) in zip(names[1:], stops[1:], strict=True))
    setting, (figure, axis, mean, _) = f"{names[0]} for {where}", found[0]
    numbers = _curve_table(setting, axis, mean[tuple(start for _, start in stops[1:])])
    place = canvas.figure(figure, _ALT.format(setting), caption, numbers)
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
    """A number with so many digits; None where there is none."""
    return None if value is None or value != value else float(f"{value:.{digits}g}")


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
