"""The part of a page about trust: predictions of values not seen, additivity, noise, hyperparameters, time."""

import numpy as np

from sumbo import plot
from sumbo.errors import NotFittedError
from sumbo.insights.analysis import StudyAnalysis
from sumbo.plot.style import number
from sumbo.plot.trust import LEVELS
from sumbo.report.canvas import Canvas
from sumbo.report.markup import Markup, joined, table, tag

_SURPRISES = 10  # trials that the model understands least


def trust(view: StudyAnalysis, canvas: Canvas) -> Markup:
    """How far to believe the rest of the page."""
    if view.unavailable_reason is not None:
        return tag("p", view.unavailable_reason)
    return joined([_verdict(view), _predictions(view, canvas), _over_time(view, canvas)])


def time_spent(view: StudyAnalysis, canvas: Canvas) -> Markup:
    """Where the time went."""
    objective = [row.seconds for row in view.rows if row.seconds is not None]
    suggest_seconds = [row.suggest_seconds for row in view.rows if row.suggest_seconds is not None]
    if not objective and not suggest_seconds:
        return tag("p", "No times are on record.")
    rows = [
        (name, len(seconds), *(round(f(seconds), 3) for f in (np.sum, np.median, np.max)))
        for name, seconds in (("objective", objective), ("optimiser", suggest_seconds))
        if seconds
    ]
    numbers = table("Seconds", ("spent in", "trials", "in all", "median", "most"), rows)
    missing = "" if suggest_seconds else " How long the suggestions took is not on record."
    words = "; ".join(f"{name} {number(float(total))} s in all" for name, _, total, *_ in rows)
    caption = f"Seconds of each trial, on a logarithmic scale: {words}.{missing}"
    return canvas.figure(plot.times(view), f"Seconds spent in each trial. {words}.", caption, numbers)


def _verdict(view: StudyAnalysis) -> Markup:
    """The short answer, in words."""
    found, noise = view.left_out, view.model.noise_variance**0.5
    error = found.y - found.mean
    explained = 1.0 - float(np.mean(error**2)) / max(float(np.var(found.y)), 1e-300)
    inside = float(found.coverage(np.array([0.95]))[0])
    in_units = (
        f"{number(float(f'{abs(view.units.slope) * noise:.3g}'))} in the units of the value"
        if view.units.straight
        else f"{noise:.2g} standard deviations of the compressed values"
    )
    items = [
        ("Predicts what it has not seen", f"{max(explained, 0.0):.0%} of the variance of values (leave-one-out R²)"),
        ("Is calibrated", f"{inside:.0%} of values are inside their 95% intervals"),
        ("Is it a sum?", _additive(view)),
        ("Noise found", in_units),
    ]
    words = [joined([tag("dt", term), tag("dd", text)]) for term, text in items]
    return tag("dl", *(tag("div", item) for item in words), class_="facts")


def _additive(view: StudyAnalysis) -> str:
    try:
        rest = view.importance.all_together
    except NotFittedError:
        return "cannot be told"
    return f"{1 - rest.share:.0%} of the variance is a sum over the groups; {rest.share:.0%} ± {rest.std:.0%} is not"


def _predictions(view: StudyAnalysis, canvas: Canvas) -> Markup:
    found, units = view.left_out, view.units
    assert view.query is not None
    predicted, observed = units.values(found.mean), view.values[found.index]
    off = (found.y - found.mean) / found.std
    most = np.argsort(-np.abs(off))[:_SURPRISES]
    rows = [
        (
            f"value {found.index[k] + 1}",
            float(f"{observed[k]:.5g}"),
            float(f"{predicted[k]:.5g}"),
            round(abs(off[k]), 1),
        )
        for k in most
    ]
    surprises = table(
        "Values that loo_calibration the model most, by order of arrival",
        ("", "observed", "predicted", "standard deviations off"),
        rows,
    )
    some = "" if len(found.index) == view.model.n else f" {len(found.index)} of {view.model.n} are shown."
    left = canvas.figure(
        plot.predictions(view),
        "Observed values against predictions made without them.",
        "Leave-one-out: every value against what the model says of it without having seen it (its hyperparameters "
        f"have). Bars are 95% intervals; good models lie on the line.{some}",
        surprises,
        wide=False,
    )
    shares = [(f"{a:.0%}", f"{b:.0%}") for a, b in zip(LEVELS, found.coverage(LEVELS), strict=True)]
    right = canvas.figure(
        plot.calibration(view),
        "Share of values inside intervals of each level.",
        "Below the dotted line the model is too sure of itself, above it too careful.",
        table("Calibration", ("intervals that should hold", "hold in fact"), shares),
        wide=False,
    )
    return tag("div", left, right, class_="pair")


def _over_time(view: StudyAnalysis, canvas: Canvas) -> Markup:
    moments = view.moments
    rows = [tuple(float(f"{v:.3g}") if v is not None else None for v in _numbers(m)) for m in moments]
    head = ("values seen", "typical lengthscale", "groups", "all together", "noise")
    return canvas.figure(
        plot.hyperparameters(view),
        "Hyperparameters against the number of values seen.",
        f"Learned again, with the present groups, from the first {moments[0].n} to {moments[-1].n} values, not as they "
        "were during the search. Lines that have become level have been learned. Lengthscales are shares of a range; "
        "scales and noise are standard deviations of the model's values.",
        table("Hyperparameters over time", head, [(int(row[0] or 0), *row[1:]) for row in rows]),
    )


def _numbers(m: object) -> tuple[float | None, ...]:
    return tuple(getattr(m, name) for name in ("n", "lengthscale", "groups", "together", "noise"))
