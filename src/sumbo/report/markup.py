"""HTML that is safe by construction: text is escaped unless it was made here. And the places of figures in it."""

import html
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from sumbo.plot.style import number, plain


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def escaped(text: object) -> str:
    """Any text as HTML; markup stays what it is."""
    return text if isinstance(text, Markup) else html.escape(plain(text))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """An element. None and False are left out; `class_` and `aria_label` become class and aria-label."""
    given = ""
    for key, value in attributes.items():
        if value is not None and value is not False:
            given += f" {key.rstrip('_').replace('_', '-')}"
            given += "" if value is True else f'="{html.escape(plain(value))}"'
    if name == "input":  # which is never closed
        return Markup(f"<{name}{given}>")
    return Markup(f"<{name}{given}>{joined(children)}</{name}>")


def joined(parts: Iterable[object]) -> Markup:
    """Parts one after the other."""
    return Markup("".join(escaped(part) for part in parts if part is not None))


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    """A table whose first column names the rows; numbers to the right."""
    body, rows = [], list(rows)
    for row in rows:
        cells = [tag("th", _cell(row[0]), scope="row")]
        cells += [tag("td", _cell(cell), class_="n" if _is_number(cell) else None) for cell in row[1:]]
        body.append(tag("tr", *cells))
    right = ["n" if k and any(_is_number(row[k]) for row in rows) else None for k in range(len(head))]
    names = (tag("th", text, scope="col", class_=side) for text, side in zip(head, right, strict=True))
    inner = tag("table", tag("caption", caption), tag("thead", tag("tr", *names)), tag("tbody", *body))
    return tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption)


class Canvas:
    """What a page collects while its sections are written: figures in order, as JSON, and data of sliders."""

    def __init__(self) -> None:
        self.figures: list[str] = []
        self.sliders: list[dict[str, Any]] = []

    def figure(self, figure: Any, alt: str, caption: object, data: Markup | None = None) -> Markup:
        """The place of a plotly figure: what it shows in words, how to read it, a table of its numbers behind it."""
        number = len(self.figures)
        self.figures.append(figure.to_json())
        waiting = tag("p", "This figure needs JavaScript. Its numbers are in the table below.", class_="waiting")
        style = f"height:{int(figure.layout.height)}px"
        chart = tag("div", waiting, class_="chart", role="img", aria_label=alt, data_figure=number, style=style)
        parts = [chart, tag("figcaption", caption)]
        if data is not None:  # all text in it is escaped, so this counts its rows
            summary = tag("summary", "Numbers of this figure", data_rows=data.count("<tr>") - 1)
            parts.append(tag("details", summary, data))
        return tag("figure", *parts)

    def sliding(self, figure: Markup, names: Sequence[str], slider: dict[str, Any]) -> Markup:
        """A figure with a choice of what to vary and a slider for every other parameter."""
        number = len(self.sliders)
        self.sliders.append(slider | {"figure": len(self.figures) - 1})
        choice = f"along{number}"
        options = [tag("option", name, value=k) for k, name in enumerate(names)]
        chosen = tag("div", tag("label", "Vary", for_=choice), tag("select", *options, id=choice, data_along=number))
        knobs = []
        for k, name in enumerate(names):
            texts, start = slider["stops"][k]
            key = f"slide{number}-{k}"
            ends = {"min": 0, "max": len(texts) - 1, "value": start, "step": 1}
            data = {"data_slider": number, "data_k": k, "aria_valuetext": texts[start]}
            knob = tag("input", type="range", id=key, **ends, **data)
            shown = tag("output", texts[start], for_=key)
            knobs.append(tag("div", tag("label", name, for_=key), knob, shown, class_="knob", hidden=k == 0))
        return tag("div", tag("div", chosen, *knobs, class_="knobs"), figure, class_="sliding")


def script_safe(text: str) -> Markup:
    """JSON for inside a script element: nothing in it can end the element, whatever a browser takes for its end.

    What HTML and JavaScript could stumble over is written as escapes, which mean the same.
    """
    return Markup(text.translate({ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}))


def _cell(value: object) -> object:
    return "" if value is None else value if isinstance(value, Markup) else number(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)
