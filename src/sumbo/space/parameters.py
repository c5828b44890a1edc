"""The parameters of a search space: which values they take, and where in [0, 1] each value lies.

    Float         u = (x - low) / (high - low)
    Float, log    u = log(x / low) / log(high / low)
    Int           u = (x - low + 1/2) / n, the centre of one of n = high - low + 1 equal bins
    Int, log      u = log(x / (low - 1/2)) / log((high + 1/2) / (low - 1/2)), bins ending halfway in x
    Categorical   u = (i + 1/2) / k, for choice i of k

Every parameter has the same four methods, which are for `Space` alone: `_check` turns a user's value into a
number (a category into its index), `_value` turns that back; `_encode` takes such numbers to [0, 1], and
`_decode` takes them back.
"""

from __future__ import annotations

import difflib
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sumbo._redaction import safe
from sumbo.errors import SpaceError

Choice: TypeAlias = str | int | float | bool | None
FloatArray: TypeAlias = NDArray[np.float64]

# Beyond these, neighbouring integers would share one double, in the unit interval or in the user's units.
_MAX_LEVELS = 2**50
_MAX_INT = 2**53
_MAX_LOG_INT = 10**13


@dataclass(frozen=True, slots=True)
class Float:
    """A real number from `low` to `high`, both included.

    With `log=True` the cube measures ratios: each factor of ten takes the same length.

    Raises:
        SpaceError: The bounds are not finite numbers, or not low < high, or not positive with `log=True`.

    Example:
        >>> Float(1e-5, 1e-1, log=True)
        Float(low=1e-05, high=0.1, log=True)
    """

    low: float
    high: float
    log: bool = field(default=False, kw_only=True)

    kind: ClassVar[str] = "float"
    levels: ClassVar[int] = 0

    def __post_init__(self) -> None:
        low, high = (float(b) for b in _checked_bounds(self))
        if low == high:
            _reject(self, "low must be below high; widen the range, or leave a constant out of the space")
        object.__setattr__(self, "low", low + 0.0)  # + 0.0: -0.0 becomes 0.0
        object.__setattr__(self, "high", high + 0.0)

    def _check(self, name: str, value: object) -> float:
        return float(_within(name, value, self.low, self.high, "a number"))

    def _value(self, number: float) -> float:
        return float(number)

    def _encode(self, x: FloatArray) -> FloatArray:
        return np.array([self._to_unit(v) for v in x.tolist()])

    def _decode(self, u: FloatArray) -> FloatArray:
        return np.array([self._from_unit(v) for v in u.tolist()])

    def _to_unit(self, x: float) -> float:
        """The u that `_from_unit` takes back to x, exactly where some u does.

        The formula alone can be a few roundings off, so its neighbours are tried as well.
        """
        if x in (self.low, self.high):
            return float(x == self.high)
        best = (_log_fraction if self.log else _fraction)(self.low, self.high, x)
        error = abs(self._from_unit(best) - x)
        if error > 0.0:
            for u in _neighbours(best):
                if (e := abs(self._from_unit(u) - x)) < error:
                    best, error = u, e
        return best

    def _from_unit(self, u: float) -> float:
        if u <= 0.0 or u >= 1.0:
            return self.low if u <= 0.0 else self.high
        x = (_log_blend if self.log else _blend)(self.low, self.high, u)
        return min(max(x, self.low), self.high)


@dataclass(frozen=True, slots=True)
class Int:
    """A whole number from `low` to `high`, both included; `low == high` is a constant.

    With `log=True` the cube measures ratios: 1 to 10 is as long as 10 to 100.

    Raises:
        SpaceError: The bounds are not whole numbers, or low > high, or not positive with `log=True`, or the
            range is too long for each of its integers to have its own place in the unit interval.

    Example:
        >>> Int(1, 8).levels
        8
    """

    low: int
    high: int
    log: bool = field(default=False, kw_only=True)

    kind: ClassVar[str] = "int"

    def __post_init__(self) -> None:
        bounds = _checked_bounds(self)
        low, high = (int(b) for b in bounds)
        if (low, high) != bounds:
            _reject(self, "bounds must be whole numbers; round them, or use Float")
        if max(-low, high) > _MAX_INT or high - low >= _MAX_LEVELS:
            _reject(self, "at most 2**50 values within +-2**53 can be told apart; use Float and round")
        if self.log and high > _MAX_LOG_INT:
            _reject(self, "with log=True integers can be told apart up to 10**13; use Float and round")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def levels(self) -> int:
        """How many different values there are."""
        return self.high - self.low + 1

    def _check(self, name: str, value: object) -> int:
        number = _within(name, value, self.low, self.high, "a whole number")
        if number != int(number):
            misfit(name, value, f"a whole number from {self.low} to {self.high}", "round it")
        return int(number)

    def _value(self, number: float) -> int:
        return int(number)

    def _encode(self, x: FloatArray) -> FloatArray:
        if not self.log:
            return (x - self.low + 0.5) / self.levels
        start, width = self._log_edges()
        return (np.log(x) - start) / width

    def _decode(self, u: FloatArray) -> FloatArray:
        if self.log:
            start, width = self._log_edges()
            x = np.rint(np.exp(start + u * width))
        else:
            x = np.floor(u * self.levels) + self.low
        return np.clip(x, self.low, self.high)

    def _log_edges(self) -> tuple[float, float]:
        start = math.log(self.low - 0.5)
        return start, math.log(self.high + 0.5) - start


@dataclass(frozen=True, slots=True, eq=False)
class Categorical:
    """One of several choices without an order: strings, numbers, booleans or None.

    Raises:
        SpaceError: No choices, or one that JSON cannot keep, or two that compare equal (1, 1.0 and True do).

    Example:
        >>> Categorical(["relu", "gelu", None]).levels
        3
    """

    choices: Sequence[Choice]

    kind: ClassVar[str] = "categorical"

    def __post_init__(self) -> None:
        if not isinstance(self.choices, list | tuple) or not self.choices:
            raise SpaceError(f"Categorical: expected a list of one or more choices, got {show(self.choices)}")
        seen: dict[Choice, Choice] = {}
        for choice in map(_checked_choice, self.choices):
            if choice in seen:
                pair = f"{show(seen[choice])} and {show(choice)}"
                raise SpaceError(f"Categorical: choices must differ, got {pair}; drop one or use strings")
            seen[choice] = choice
        object.__setattr__(self, "choices", tuple(seen))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Categorical) and self._typed() == other._typed()

    def __hash__(self) -> int:
        return hash(self._typed())

    def _typed(self) -> tuple[tuple[type, Choice], ...]:
        # Bare tuples would call the choices (0, 1) and (False, True) the same.
        return tuple((type(c), c) for c in self.choices)

    @property
    def levels(self) -> int:
        """How many choices there are."""
        return len(self.choices)

    def _check(self, name: str, value: object) -> int:
        """The index of the choice that `value` is."""
        plain = _plain(value)
        if isinstance(plain, str | int | float | None) and plain in self.choices:
            index = self.choices.index(plain)
            if isinstance(self.choices[index], bool) == isinstance(plain, bool):  # True is not the choice 1
                return index
        by_text = {show(c).strip("'"): c for c in self.choices}
        near = closest(plain, by_text)
        advice = f"did you mean {by_text[near[0]]!r}?" if near else "give a choice as it was written"
        return misfit(name, value, f"one of {listed(self.choices)}", advice)

    def _value(self, number: float) -> Choice:
        return self.choices[int(number)]

    def _indices(self) -> Int:
        return Int(0, self.levels - 1)

    def _encode(self, x: FloatArray) -> FloatArray:
        return self._indices()._encode(x)

    def _decode(self, u: FloatArray) -> FloatArray:
        return self._indices()._decode(u)


Parameter: TypeAlias = Float | Int | Categorical


def _blend(low: float, high: float, u: float) -> float:
    """low + u (high - low), measured from the nearer end so that both ends are exact."""
    width = high - low
    if math.isinf(width):
        return 2.0 * _blend(low / 2.0, high / 2.0, u)
    return low + u * width if u <= 0.5 else high - (1.0 - u) * width


def _fraction(low: float, high: float, x: float) -> float:
    """The inverse of `_blend`."""
    width = high - low
    if math.isinf(width):
        return _fraction(low / 2.0, high / 2.0, x / 2.0)
    return (x - low) / width if x - low <= high - x else 1.0 - (high - x) / width


def _log_blend(low: float, high: float, u: float) -> float:
    """low (high / low)^u, measured from the nearer end so that both ends are exact."""
    width = _log_ratio(high, low)
    base, t = (low, u * width) if u <= 0.5 else (high, (u - 1.0) * width)
    # expm1 keeps the digits of a small step, exp those of a small result.
    return base + base * math.expm1(t) if abs(t) < 0.5 else base * math.exp(t)


def _log_fraction(low: float, high: float, x: float) -> float:
    """The inverse of `_log_blend`."""
    width = _log_ratio(high, low)
    if x / low <= high / x:
        return _log_ratio(x, low) / width
    return 1.0 + _log_ratio(x, high) / width


def _log_ratio(x: float, base: float) -> float:
    """log(x / base), also where that ratio is next to 1 or overflows."""
    excess = (x - base) / base
    if abs(excess) < 0.5:
        return math.log1p(excess)
    return math.log(x / base) if 1e-300 < x / base < 1e300 else math.log(x) - math.log(base)


def _neighbours(u: float, reach: int = 8) -> Iterator[float]:
    below = above = u
    for _ in range(reach):
        below, above = math.nextafter(below, 0.0), math.nextafter(above, 1.0)
        yield from (below, above)


def _plain(value: object) -> object:
    """NumPy scalars as the Python values they stand for."""
    for numpy_type, python_type in (
        (np.bool_, bool),
        (np.integer, int),
        (np.floating, float),
        (np.str_, str),
    ):
        if isinstance(value, numpy_type):
            return python_type(value)
    return value


def _number(value: object) -> int | float | None:
    """The value as a Python number, or None where it is not a finite one."""
    plain = _plain(value)
    if isinstance(plain, bool) or not isinstance(plain, int | float):
        return None
    return plain if abs(plain) <= sys.float_info.max else None  # also tells NaN and ints like 10**400


def _checked_bounds(parameter: Float | Int) -> tuple[int | float, int | float]:
    low, high = _number(parameter.low), _number(parameter.high)
    if low is None or high is None:
        _reject(parameter, "bounds must be finite numbers; give the ends of the range to search")
    if low > high:
        _reject(parameter, "low must not be above high; swap them")
    if not isinstance(parameter.log, bool):
        _reject(parameter, f"log must be True or False, got {show(parameter.log)}")
    if parameter.log and low < sys.float_info.min:
        _reject(parameter, "log=True needs low > 0 (2.3e-308 or more); raise low, or leave log out")
    return low, high


def _checked_choice(choice: object) -> Choice:
    plain = _plain(choice)
    is_number = type(plain) in (int, float) and _number(plain) is not None
    if is_number or plain is None or type(plain) in (str, bool):
        return plain  # type: ignore[return-value]  # mypy does not narrow by type(...) in (...)
    raise SpaceError(
        f"Categorical: a choice must be a string, finite number, boolean or None, got {show(choice)}; "
        "use a string that names it"
    )


def _within(name: str, value: object, low: float, high: float, what: str) -> int | float:
    number = _number(value)
    if number is None or not low <= number <= high:
        advice = "give a plain number" if number is None else "move it inside, or widen the range"
        misfit(name, value, f"{what} from {low} to {high}", advice)
    return number


def _reject(parameter: Float | Int, problem: str) -> NoReturn:
    kind = type(parameter).__name__
    raise SpaceError(f"{kind}({show(parameter.low)}, {show(parameter.high)}): {problem}")


def misfit(name: str, value: object, expected: str, advice: str) -> NoReturn:
    """Raise what a value that does not fit its parameter deserves."""
    got = f"{show(value)} ({type(value).__name__})"
    raise SpaceError(f"parameter {name!r}: expected {expected}, got {got}; {advice}")


def closest(value: object, texts: Iterable[str]) -> list[str]:
    """The text most like the value, for a hint; empty if none is like it."""
    return difflib.get_close_matches(show(value).strip("'"), list(texts), n=1)


def show(value: object, limit: int = 80, urls: Iterable[str] = ()) -> str:
    """The value for a message, on one line, of bounded length, and without the secrets of these URLs."""
    try:
        text = safe(" ".join(repr(value).split()), *urls)  # before it is cut, which may leave half a password
    except Exception:  # Python refuses to print integers of thousands of digits; types of the user's raise anything
        text = f"a very long {type(value).__name__}" if isinstance(value, int) else f"<{type(value).__name__}>"
    return text if len(text) <= limit else f"{text[:limit]}..."


def listed(items: Sequence[object], limit: int = 10) -> str:
    """The first few items for a message, and how many more there are."""
    text = ", ".join(show(item) for item in items[:limit])
    return f"[{text}]" if len(items) <= limit else f"[{text}, ... {len(items) - limit} more]"
