"""What a value looks like in a cell of a table, and which value a cell stands for.

Spreadsheets trim blanks, change the ends of lines, write TRUE for true, and run a text that begins like a formula. So
such a text is written with an apostrophe before it, as spreadsheets themselves mark text, and blanks do not count when
it is read. Values that are the same then cannot be told apart in a table: `alike` finds them.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress

from sumbo.errors import SheetError
from sumbo.executors.objectives import as_text
from sumbo.space.parameters import Choice

# What begins a formula, in wide letters too; blanks, which may be lost with the cell; and the apostrophe itself.
_MARKED = re.compile("[\\s=+\\-@'\uff1d\uff0b\uff0d\uff20]|$")
_COMMA = re.compile(r"[-+]?\d*,\d+(e[-+]?\d+)?", re.IGNORECASE)
_UNIT = re.compile(r"[-+]?[\d.,]+(?:e[-+]?\d+)?\s*[^\d\s.,]", re.IGNORECASE)


def written(value: Choice) -> str:
    """A value for a cell of a table.

    Example:
        >>> [written(value) for value in ("epoxy", "=A1", "'tis", "-1", -1, True)]
        ['epoxy', "'=A1", "''tis", "'-1", '-1', 'true']
    """
    if not isinstance(value, str):
        return as_text(value)
    text = re.sub("\r\n?", "\n", value.replace("\0", ""))
    return f"'{text}" if _MARKED.match(text) else text


def plain(text: str) -> str:
    """A cell without what does not count."""
    return " ".join(text.replace("\0", "").split())


def forms(value: Choice) -> tuple[str, ...]:
    """The plain texts that stand for a value: as it was written, or typed by somebody without the apostrophe."""
    return tuple(dict.fromkeys((plain(written(value)), plain(as_text(value)))))


def alike(values: Iterable[Choice]) -> tuple[Choice, Choice] | None:
    """Two values that a table cannot tell apart; None if there are no such.

    Example:
        >>> alike(["1", 1]), alike(["a", " a"]), alike(["a", "A", 1, "1 a"])
        (('1', 1), ('a', ' a'), None)
    """
    values = list(values)
    kinds = {_taken_for(as_text(value)): value for value in values if not isinstance(value, str)}
    seen: dict[str, Choice] = {}
    for value in values:
        kind = _taken_for(value) if isinstance(value, str) else None
        if kind is not None and kind in kinds:
            return value, kinds[kind]
        for form in forms(value):
            if form in seen:
                return seen[form], value
        seen |= dict.fromkeys(forms(value), value)
    return None


def by_form(choices: Iterable[Choice]) -> dict[str, Choice]:
    """Choices by the plain texts that stand for them."""
    return {form: choice for choice in choices for form in forms(choice)}


def choices_of(text: str, said: Mapping[str, Choice], *, comma: bool) -> list[Choice]:
    """The choices, of those in `by_form`, that a cell may stand for."""
    text = plain(text)
    if text in said:
        return [said[text]]
    kind = _taken_for(text, comma=comma)
    same_words = {choice for form, choice in said.items() if form.casefold() == text.casefold()}
    same_number = {choice for form, choice in said.items() if kind is not None and _taken_for(form) == kind}
    return list(same_words or same_number)


def _taken_for(text: str, *, comma: bool = True) -> tuple[type, float] | None:
    """What a spreadsheet takes a text for: a boolean, a number, or neither."""
    text = plain(text)
    if text.casefold() in ("true", "false"):
        return bool, text.casefold() == "true"
    try:
        return float, number_of("", text, comma=comma)
    except SheetError:
        return None


def number_of(place: str, text: str, *, comma: bool = False) -> float:
    """The number that a person wrote; if it is none, a SheetError guesses why."""
    if _COMMA.fullmatch(text):
        if comma:
            return float(text.replace(",", "."))
        raise SheetError(f"{place}: expected a number, got {text!r}; write {text.replace(',', '.')!r} with a point")
    with suppress(ValueError):
        return float(text.replace("_", "x"))
    if _UNIT.match(text):
        raise SheetError(f"{place}: expected a number alone, got {text!r}; leave the unit out (convert it if need be)")
    raise SheetError(f"{place}: expected a number, got {text!r}; correct it")
