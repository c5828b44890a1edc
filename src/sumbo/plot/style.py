"""How figures look, and text that is safe in them.

Plotly reads a little HTML in labels, fills in templates, and notebooks may have MathJax: names are the user's, and are
shown as they are. Colours suit light and dark pages: one accent, and grey that is transparent black or white.
"""

import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from sumbo.errors import MissingPackageError
from sumbo.insights.analysis import StudyAnalysis, StudyLike, analysis_of

ACCENT = "#3d7bd9"
WARM = "#c9852b"  # what is worse, or went wrong
GREY = "rgba(128,128,128,0.75)"
FAINT = "rgba(128,128,128,0.2)"

_LONG = 28  # characters of a name on an axis
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;", '"': "&quot;", "'": "&#39;"}


def figures() -> Any:
    """Plotly's module of figures, if it is installed."""
    try:
        import plotly.graph_objects as go
    except ImportError:
        raise MissingPackageError(
            "figures and reports need plotly, which is not installed; run pip install 'sumbo[plot]'"
        ) from None
    return go


def analysed(study: StudyLike) -> StudyAnalysis:
    """What a figure is made of. Plotly is looked for first: to learn may take long."""
    figures()
    return analysis_of(study)


def plain(text: object) -> str:
    """The text on one line, without characters that control how others are shown."""
    return "".join(
        " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" if unicodedata.category(c).startswith("C") else c
        for c in str(text)
    )


def label(text: object, limit: int | None = None) -> str:
    """The text for a place of a figure, so that nothing in it is read as markup."""
    shown = plain(text)
    if limit is not None and len(shown) > limit:
        shown = shown[: limit - 1] + "…"
    return "".join(_ENTITIES.get(c, c) for c in shown)


def number(value: object) -> str:
    """A value of the user's for people: six digits are enough, but where all are wanted."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    return f"{value:.6g}" if isinstance(value, float | np.floating) else plain(value)


def group_name(names: Sequence[str]) -> str:
    """A group in one line."""
    return " \N{MULTIPLICATION SIGN} ".join(names)


def scatter(x: Any, y: Any, mode: str, hover: str | list[str] | None = None, **more: Any) -> dict[str, Any]:
    """A trace of lines, markers or text; as arrays, which travel as small numbers. `hover`: under the pointer."""
    pointer = {} if hover is None else {"hovertext": hover, "hoverinfo": "text"}
    return {"type": "scatter", "x": np.asarray(x), "y": np.asarray(y), "mode": mode, **pointer, **more}


def ticks(names: Sequence[object], limit: int = _LONG) -> dict[str, Any]:
    """An axis with a place for each name: by position, as names may be equal, or look like numbers and dates."""
    return {
        "tickmode": "array",
        "tickvals": list(range(len(names))),
        "ticktext": [label(number(name), limit) for name in names],
        "type": "linear",
    }


def figure(traces: Sequence[Any], *, x: dict[str, Any], y: dict[str, Any], height: int = 380, **layout: Any) -> Any:
    """A figure in the house's style."""
    axis = {"gridcolor": FAINT, "zeroline": False, "linecolor": FAINT, "ticks": "", "automargin": True}
    style = {
        "template": "none",
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, -apple-system, 'Segoe UI', sans-serif", "size": 13, "color": "#888"},
        "margin": {"l": 56, "r": 16, "t": 16, "b": 48},
        "height": height,
        "hovermode": "closest",
        "dragmode": False,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "xaxis": axis | x,
        "yaxis": axis | y,
    }
    return figures().Figure(data=list(traces), layout=style | layout)


def log_axis(low: float, high: float) -> dict[str, Any]:
    """A logarithmic axis for values from low to high, both above zero: ticks that can be read alone."""
    decades = float(np.log10(high / low))
    if decades > 2.0:
        return {"type": "log", "dtick": max(1, round(decades / 6)), "exponentformat": "power"}
    # Between powers of ten plotly writes a single digit, unless it is told the format.
    return {"type": "log", "tickformat": "~g"} | ({"dtick": "D2"} if decades > 0.7 else {})


def title(text: object) -> dict[str, Any]:
    """An axis title."""
    return {"title": {"text": label(text, 60), "standoff": 8, "font": {"size": 13}}}
