"""The parameters of a search space: which values they take, and where in [0, 1] each value lies.

    Float         u = (x - low) / (high - low)
    Float, log    u = log(x / low) / log(high / low)
    Int           u = (x - low + 1/2) / n, the centre of one of n = high - low + 1 equal bins
    Int, log      u = log(x / (low - 1/2)) / log((high + 1/2) / (low - 1/2)), bins ending halfway in x
    Categorical   u = (i + 1/2) / k, for choice i of k

A new kind is a child of `Parameter` in `KINDS`. The methods with an underscore are for `Space` and study files alone.
"""

from __future__ import annotations

import difflib
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn, TypeAlias

import numpy as np

from sumbo._redaction import safe
from sumbo._typing import Array
from sumbo.errors import SpaceError

Choice: TypeAlias = str | int | float | bool | None

# Beyond these, neighbouring integers would share one double, in the unit interval or in the user's units.
_MAX_LEVELS = 2**50
_MAX_INT = 2**53
_MAX_LOG_INT = 10**13

_NEIGHBOURS = 8  # doubles on either side of a formula's result that may be nearer to the truth
_PLAIN = ((np.bool_, bool), (np.integer, int), (np.floating, float), (np.str_, str))


class Parameter(ABC):
    """One parameter. Its values have two forms: the user's, and numbers, where a choice is its index.

    What stands here is for whole numbers in equal bins; a kind says what is different with it.

    Attributes:
        kind: its name in files.
        low, high: the ends of its numbers.
        log: does the cube measure ratios?
        choices: the values, where the user lists them; else empty.
        nominal: are the values without an order?
    """

    __slots__ = ()
    kind: ClassVar[str]
    nominal: ClassVar[bool] = False
    low: float
    high: float
    log: bool = False
    choices: Sequence[Choice] = ()

    @property
    def levels(self) -> int:
        """How many different values there are; 0 where they cannot be counted."""
        return int(self.high) - int(self.low) + 1

    def _check(self, name: str, value: object) -> float:
        """The number of a user's value."""
        return self._check_number(name, value)

    def _check_number(self, name: str, value: object) -> float:
        """The number, if it is one of the parameter's."""
        number = _number(value)
        if number is None:
            advice = "give a plain number"
        elif not self.low <= number <= self.high:
            advice = "move it inside, or widen the range"
        elif self.levels and number != int(number):
            advice = "round it"
        else:
            return float(number)
        kind = "a whole number" if self.levels else "a number"
        return misfit(name, value, f"{kind} from {self.low} to {self.high}", advice)

    @abstractmethod
    def _value(self, number: float) -> Choice:
        """The user's value for a number."""

    def _encode(self, x: Array) -> Array:
        """Numbers to [0, 1]."""
        return (x - self.low + 0.5) / self.levels

    def _decode(self, u: Array) -> Array:
        """The numbers nearest to places in [0, 1]."""
        return np.clip(np.floor(u * self.levels) + self.low, self.low, self.high)

    def _to_dict(self) -> dict[str, Any]:
        """The arguments that make it, for JSON."""
        return {"low": self.low, "high": self.high, "log": self.log}


@dataclass(frozen=True, slots=True)
class _Range(Parameter):
    """Numbers from low to high."""

    low: float
    high: float
    log: bool = field(default=False, kw_only=True)

    def _checked_bounds(self) -> tuple[int | float, int | float]:
        low, high = _number(self.low), _number(self.high)
        if low is None or high is None:
            self._reject("bounds must be finite numbers; give the ends of the range to search")
        if low > high:
            self._reject("low must not be above high; swap them")
        if not isinstance(self.log, bool):
            self._reject(f"log must be True or False, got {show(self.log)}")
        if self.log and low < sys.float_info.min:
            self._reject("log=True needs low > 0 (2.3e-308 or more); raise low, or leave log out")
        return low, high

    def _reject(self, problem: str) -> NoReturn:
        raise SpaceError(f"{type(self).__name__}({show(self.low)}, {show(self.high)}): {problem}")


@dataclass(frozen=True, slots=True)
class Float(_Range):
    """A real number from `low` to `high`, both included.

    With `log=True` the cube measures ratios: each factor of ten takes the same length.

    Raises:
        SpaceError: The bounds are not finite numbers, or not low < high, or not positive with `log=True`.

    Example:
        >>> Float(1e-5, 1e-1, log=True)
        Float(low=1e-05, high=0.1, log=True)
    """

    kind: ClassVar[str] = "float"
    levels: ClassVar[int] = 0

    def __post_init__(self) -> None:
        low, high = (float(b) for b in self._checked_bounds())
        if low == high:
            self._reject("low must be below high; widen the range, or leave a constant out of the space")
        object.__setattr__(self, "low", low + 0.0)  # + 0.0: -0.0 becomes 0.0
        object.__setattr__(self, "high", high + 0.0)

    def _value(self, number: float) -> float:
        return float(number)

    def _encode(self, x: Array) -> Array:
        if math.isinf(self.high - self.low):  # the widest ranges are measured in halves
            return Float(self.low / 2.0, self.high / 2.0)._encode(x / 2.0)
        return np.array([self._to_unit(v) for v in x.tolist()])

    def _decode(self, u: Array) -> Array:
        if math.isinf(self.high - self.low):
            return 2.0 * Float(self.low / 2.0, self.high / 2.0)._decode(u)
        return np.array([self._from_unit(v) for v in u.tolist()])

    def _to_unit(self, x: float) -> float:
        """The u that `_from_unit` takes back to x, exactly where some u does: the formula may be some roundings off."""
        if x in (self.low, self.high):
            return float(x == self.high)
        from_low, from_high = self._distance(x, self.low), self._distance(x, self.high)
        is_low = x / self.low <= self.high / x if self.log else from_low <= -from_high
        width = self._distance(self.high, self.low)
        best = below = above = from_low / width if is_low else 1.0 + from_high / width
        error = abs(self._from_unit(best) - x)
        for _ in range(_NEIGHBOURS):
            if error == 0.0:
                break
            below, above = math.nextafter(below, 0.0), math.nextafter(above, 1.0)
            for u in (below, above):
                if (e := abs(self._from_unit(u) - x)) < error:
                    best, error = u, e
        return best

    def _from_unit(self, u: float) -> float:
        if u <= 0.0 or u >= 1.0:
            return self.low if u <= 0.0 else self.high
        end, t = (self.low, u) if u <= 0.5 else (self.high, u - 1.0)  # the nearer one, so that both ends are exact
        t *= self._distance(self.high, self.low)
        if not self.log:
            x = end + t
        elif abs(t) < 0.5:
            x = end + end * math.expm1(t)  # keeps the digits of a small step
        else:
            x = end * math.exp(t)  # keeps those of a small result
        return min(max(x, self.low), self.high)

    def _distance(self, a: float, b: float) -> float:
        """From b to a, as the cube measures it: a - b, or log(a / b), also where that is next to 0 or overflows."""
        if not self.log:
            return a - b
        excess = (a - b) / b
        if abs(excess) < 0.5:
            return math.log1p(excess)
        return math.log(a / b) if 1e-300 < a / b < 1e300 else math.log(a) - math.log(b)


@dataclass(frozen=True, slots=True)
class Int(_Range):
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

    kind: ClassVar[str] = "int"

    def __post_init__(self) -> None:
        bounds = self._checked_bounds()
        low, high = (int(b) for b in bounds)
        if (low, high) != bounds:
            self._reject("bounds must be whole numbers; round them, or use Float")
        if max(-low, high) > _MAX_INT or high - low >= _MAX_LEVELS:
            self._reject("at most 2**50 values within +-2**53 can be told apart; use Float and round")
        if self.log and high > _MAX_LOG_INT:
            self._reject("with log=True integers can be told apart up to 10**13; use Float and round")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def _value(self, number: float) -> int:
        return int(number)

    def _encode(self, x: Array) -> Array:
        if not self.log:
            return Parameter._encode(self, x)
        start, end = math.log(self.low - 0.5), math.log(self.high + 0.5)
        return (np.log(x) - start) / (end - start)

    def _decode(self, u: Array) -> Array:
        if not self.log:
            return Parameter._decode(self, u)
        start, end = math.log(self.low - 0.5), math.log(self.high + 0.5)
        return np.clip(np.rint(np.exp(start + u * (end - start))), self.low, self.high)


@dataclass(frozen=True, slots=True)
class Categorical(Parameter):
    """One of several choices without an order: strings, numbers, booleans or None.

    Raises:
        SpaceError: No choices, or one that JSON cannot keep, or two that compare equal (1, 1.0 and True do).

    Example:
        >>> Categorical(["relu", "gelu", None]).levels
        3
    """

    choices: Sequence[Choice] = field()  # needed: not by default what Parameter says
    low: int = field(default=0, init=False, repr=False)
    high: int = field(init=False, repr=False)
    _types: tuple[type, ...] = field(init=False, repr=False)  # else the choices (0, 1) would equal (False, True)

    kind: ClassVar[str] = "categorical"
    nominal: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.choices, list | tuple) or not self.choices:
            raise SpaceError(f"Categorical: expected a list of one or more choices, got {show(self.choices)}")
        seen: dict[Choice, Choice] = {}
        for given in self.choices:
            choice: Any = _plain(given)
            is_number = type(choice) in (int, float) and _number(choice) is not None
            if not is_number and choice is not None and type(choice) not in (str, bool):
                expected = "a choice must be a string, finite number, boolean or None"
                raise SpaceError(f"Categorical: {expected}, got {show(given)}; use a string that names it")
            if choice in seen:
                pair = f"{show(seen[choice])} and {show(choice)}"
                raise SpaceError(f"Categorical: choices must differ, got {pair}; drop one or use strings")
            seen[choice] = choice
        object.__setattr__(self, "choices", tuple(seen))
        object.__setattr__(self, "high", len(seen) - 1)
        object.__setattr__(self, "_types", tuple(type(choice) for choice in seen))

    def _check(self, name: str, value: object) -> int:
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

    def _to_dict(self) -> dict[str, Any]:
        return {"choices": list(self.choices)}


KINDS: dict[str, type[Parameter]] = {kind.kind: kind for kind in (Float, Int, Categorical)}


def _plain(value: object) -> object:
    """NumPy scalars as the Python values they stand for."""
    if not isinstance(value, np.generic):
        return value
    return next((to(value) for kind, to in _PLAIN if isinstance(value, kind)), value)


def _number(value: object) -> int | float | None:
    """The value as a Python number, or None where it is not a finite one."""
    plain = _plain(value)
    if isinstance(plain, bool) or not isinstance(plain, int | float):
        return None
    return plain if abs(plain) <= sys.float_info.max else None  # also tells NaN and ints like 10**400


def misfit(name: str, value: object, expected: str, advice: str) -> NoReturn:
    """Raise what a value that does not fit its parameter deserves."""
    got = f"{show(value)} ({type(value).__name__})"
    raise SpaceError(f"parameter {name!r}: expected {expected}, got {got}; {advice}")


def closest(value: object, texts: Iterable[str]) -> list[str]:
    """The text most like the value, for a hint; empty if none is like it."""
    return difflib.get_close_matches(show(value).strip("'"), list(texts), n=1)


def hinted(name: object, known: Iterable[str]) -> str:
    """A name that is not known for a message, with the known one that is most like it."""
    near = closest(name, known)
    return f"{show(name)} (did you mean {near[0]!r}?)" if near else show(name)


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
