"""HTML that is safe by construction: text is escaped unless it was made here."""

import html
import json
from collections.abc import Iterable, Sequence
from typing import Any

from sumbo.plot.style import number, plain

_EMPTY = {"meta", "input", "link", "br"}


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def escaped(text: object) -> Markup:
    """Any text as HTML; markup stays what it is."""
    return text if isinstance(text, Markup) else Markup(html.escape(plain(text)))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """An element. None children and attributes are left out; `class_` and `aria_label` become class and aria-label."""
    given = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    if name in _EMPTY:
        return Markup(f"<{name}{given}>")
    inside = "".join(escaped(child) for child in children if child is not None)
    return Markup(f"<{name}{given}>{inside}</{name}>")


def joined(parts: Iterable[object]) -> Markup:
    """Parts one after the other."""
    return Markup("".join(escaped(part) for part in parts if part is not None))


def preformatted(text: str) -> Markup:
    """Lines that stay lines."""
    return tag("pre", tag("code", Markup("\n".join(escaped(line) for line in text.split("\n")))))


def table(
    caption: str, head: Sequence[str], rows: Iterable[Sequence[object]], *, hidden_caption: bool = False
) -> Markup:
    """A table whose first column names the rows; numbers to the right."""
    body, rows = [], list(rows)
    for row in rows:
        cells = [tag("th", _cell(row[0]), scope="row")]
        cells += [tag("td", _cell(cell), class_="n" if _is_number(cell) else None) for cell in row[1:]]
        body.append(tag("tr", *cells))
    right = ["n" if k and any(_is_number(row[k]) for row in rows) else None for k in range(len(head))]
    names = (tag("th", text, scope="col", class_=side) for text, side in zip(head, right, strict=True))
    header = tag("thead", tag("tr", *names))
    shown = tag("caption", caption, class_="quiet" if hidden_caption else None)
    inner = tag("table", shown, header, tag("tbody", *body))
    return tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption)


def json_text(data: Any) -> Markup:
    """JSON for inside a script element: nothing in it can end the element, whatever a browser takes for its end."""
    return script_safe(json.dumps(data, allow_nan=False))


def script_safe(text: str) -> Markup:
    """JSON text with what HTML and JavaScript could stumble over written as escapes, which mean the same."""
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _attribute(key: str, value: object) -> str:
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else "" if value is False else f' {name}="{html.escape(plain(value))}"'


def _cell(value: object) -> object:
    return "" if value is None else value if isinstance(value, Markup) else number(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
