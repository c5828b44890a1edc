"""What a page collects while its sections are written: figures with their captions, tables and data."""

from collections.abc import Sequence
from typing import Any

from sumbo.report.markup import Markup, tag


class Canvas:
    """Figures of a page, in order."""

    def __init__(self) -> None:
        self.figures: list[str] = []  # JSON of plotly figures
        self.sliders: list[dict[str, Any]] = []

    def figure(
        self, figure: Any, alt: str, caption: object, data: Markup | None = None, *, wide: bool = True
    ) -> Markup:
        """The place of a figure: what it shows in words for who cannot see it, and its numbers behind it.

        Args:
            figure: a plotly figure.
            alt: what it shows.
            caption: how to read it.
            data: a table of its numbers.
            wide: over the whole width.
        """
        number = len(self.figures)
        self.figures.append(figure.to_json())
        waiting = tag("p", "This figure needs JavaScript. Its numbers are in the table below.", class_="waiting")
        height = int(figure.layout.height or 380)
        chart = tag(
            "div", waiting, class_="chart", role="img", aria_label=alt, data_figure=number, style=f"height:{height}px"
        )
        behind = None
        if data is not None:  # all text in it is escaped, so this counts its rows
            summary = tag("summary", "Numbers of this figure", data_rows=data.count("<tr>") - 1)
            behind = tag("details", summary, data)
        return tag("figure", chart, tag("figcaption", caption), behind, class_="wide" if wide else None)

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
            knob = tag(
                "input",
                type="range",
                id=key,
                min=0,
                max=len(texts) - 1,
                value=start,
                step=1,
                data_slider=number,
                data_k=k,
                aria_valuetext=texts[start],
            )
            shown = tag("output", texts[start], for_=key)
            knobs.append(tag("div", tag("label", name, for_=key), knob, shown, class_="knob", hidden=k == 0))
        return tag("div", tag("div", chosen, *knobs, class_="knobs"), figure, class_="sliding")
