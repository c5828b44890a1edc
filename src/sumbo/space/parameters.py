"""The parameters of a search space: which values they take, and where in [0, 1] each value lies.

    Float         u = (x - low) / (high - low)
    Float, log    u = log(x / low) / log(high / low)
    Int           u = (x - low + 1/2) / n, the centre of one of n = high - low + 1 equal bins
    Int, log      u = log(x / (low - 1/2)) / log((high + 1/2) / (low - 1/2)), bins ending halfway in x
    with a step   u = (k + 1/2) / n, for value low + k * step of n
    Categorical, Ordinal    u = (i + 1/2) / k, for choice i of k

A new kind is a child of `Parameter` in `KINDS`. The methods with an underscore are for `Space` and study files alone.
"""

from __future__ import annotations

import difflib
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar, NoReturn, TypeAlias

import numpy as np

from sumbo._redaction import safe
from sumbo._typing import Array
from sumbo.errors import SpaceError

Choice: TypeAlias = str | int | float | bool | None
# On which values of other parameters a parameter exists: {name: value} or {name: [values]} as users write it.
Conditions: TypeAlias = tuple[tuple[str, tuple[Choice, ...]], ...]
When: TypeAlias = Mapping[str, Any] | Conditions | None

# Beyond these, neighbouring integers would share one double, in the unit interval or in the user's units.
_MAX_LEVELS = 2**50
_MAX_INT = 2**53
_MAX_LOG_INT = 10**13

_ROUNDING = 1e-9  # of a step, by which a value may be off and still be meant

_NEIGHBOURS = 8  # doubles on either side of a formula's result that may be nearer to the truth
_PLAIN = ((np.bool_, bool), (np.integer, int), (np.floating, float), (np.str_, str))


class Parameter(ABC):
    """One parameter. Its values have two forms: the user's, and numbers, where a choice is its index.

    What stands here is for values in equal bins; a kind says what is different with it.

    Attributes:
        kind: its name in files.
        low, high: the ends of its numbers.
        log: does the cube measure ratios?
        step: from one number to the next, where they are counted.
        choices: the values, where the user lists them; else empty.
        nominal: are the values without an order?
        levels: how many different values there are; 0 where they cannot be counted.
        when: the parameters on which it depends, each with the values for which it exists; empty if it always does.
    """

    __slots__ = ()
    kind: ClassVar[str]
    nominal: ClassVar[bool] = False
    low: float
    high: float
    levels: int
    log: bool = False
    step: float | None = None
    choices: Sequence[Choice] = ()
    when: When = ()

    @property
    def conditions(self) -> Conditions:
        """`when` as it is kept: pairs of a name and the values allowed."""
        return tuple(self.when or ())  # type: ignore[arg-type]  # a mapping only while it is made

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self._arguments().items())})"

    def _arguments(self) -> dict[str, Any]:
        """What makes it, by name."""
        return {"when": {name: list(values) for name, values in self.conditions}} if self.when else {}

    def _to_dict(self) -> dict[str, Any]:
        """The arguments that make it, for JSON."""
        return self._arguments()

    def _set(self, **values: Any) -> None:
        """What a frozen dataclass sets while it is made."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

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
        elif not self.levels:
            return float(number)
        else:
            nearest = self._at(self._index(number))
            if abs(number - nearest) <= (_ROUNDING * self.step if self.step and self.kind == "float" else 0.0):
                return float(nearest)
            advice = "round it" if self.step is None else f"the nearest is {nearest}"
        kind = "a number" if self.kind == "float" else "a whole number"
        steps = "" if self.step is None else f" in steps of {self.step}"
        return misfit(name, value, f"{kind} from {self.low} to {self.high}{steps}", advice)

    @abstractmethod
    def _value(self, number: float) -> Choice:
        """The user's value for a number."""

    def _at(self, k: int) -> float:
        """The k-th of the numbers."""
        return self.low + k

    def _index(self, number: float) -> int:
        """Which of the numbers is the nearest."""
        return min(max(round(number - self.low), 0), self.levels - 1)

    def _encode(self, x: Array) -> Array:
        """Numbers to [0, 1]."""
        return (x - self.low + 0.5) / self.levels

    def _decode(self, u: Array) -> Array:
        """The numbers nearest to places in [0, 1]."""
        return np.clip(np.floor(u * self.levels) + self.low, self.low, self.high)

    def _snap(self, u: Array) -> Array:
        """The nearest places in [0, 1] that stand for a number."""
        return self._encode(self._decode(u))


@dataclass(frozen=True, slots=True, repr=False)
class _Range(Parameter):
    """Numbers from low to high."""

    low: float
    high: float
    log: bool = field(default=False, kw_only=True)
    step: float | None = field(default=None, kw_only=True)
    when: When = field(default=(), kw_only=True)
    levels: int = field(default=0, init=False, compare=False)

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
        if self.step is not None:
            self._check_step(high - low)
        self._set(when=_checked_when(type(self).__name__, self.when))
        return low, high

    def _check_step(self, width: float) -> None:
        step = _number(self.step)
        if step is None or step <= 0:
            self._reject(f"step must be a number above 0, got {show(self.step)}; say how far values are apart")
        if step > width:
            self._reject(f"step {show(self.step)} is larger than the range; widen the range, or make the step smaller")
        if self.log:
            self._reject("step and log=True do not go together; leave one out, or list the values: Ordinal([...])")

    def _reject(self, problem: str) -> NoReturn:
        raise SpaceError(f"{type(self).__name__}({show(self.low)}, {show(self.high)}): {problem}")

    def _arguments(self) -> dict[str, Any]:
        stepped = {} if self.step is None else {"step": self.step}
        return {"low": self.low, "high": self.high, "log": self.log} | stepped | Parameter._arguments(self)


@dataclass(frozen=True, slots=True, repr=False)
class Float(_Range):
    """A real number from `low` to `high`, both included; `low == high` is a constant.

    With `log=True` the cube measures ratios: each factor of ten takes the same length. With `step` the values are
    low, low + step, ... as one would write them, and `high` is the last of them.

    Raises:
        SpaceError: The bounds are not finite numbers, or low > high, or not positive with `log=True`, or the step does
            not fit them.

    Example:
        >>> Float(1e-5, 1e-1, log=True)
        Float(low=1e-05, high=0.1, log=True)
        >>> sumbo.Space({"temp": Float(20, 80, step=0.1)}).from_unit([0.005])
        {'temp': 20.3}
    """

    kind: ClassVar[str] = "float"

    def __post_init__(self) -> None:
        low, high = (float(b) + 0.0 for b in self._checked_bounds())  # + 0.0: -0.0 becomes 0.0
        self._set(low=low, high=high, levels=int(low == high))
        if self.step is not None:
            last = (_decimal(high) - _decimal(low)) / _decimal(self.step)
            if last >= _MAX_LEVELS:
                self._reject("at most 2**50 values can be told apart; make the step larger, or leave it out")
            self._set(step=float(self.step), levels=int(last + Decimal(_ROUNDING)) + 1)
            self._set(high=self._at(self.levels - 1))

    def _value(self, number: float) -> float:
        return float(number)

    def _at(self, k: int) -> float:
        return self.low if self.step is None else float(_decimal(self.low) + k * _decimal(self.step))

    def _index(self, number: float) -> int:
        return 0 if self.step is None else min(max(round((number - self.low) / self.step), 0), self.levels - 1)

    def _encode(self, x: Array) -> Array:
        if self.levels:
            k = np.rint((x - self.low) / (self.step or 1.0))
            return (np.clip(k, 0, self.levels - 1) + 0.5) / self.levels
        if math.isinf(self.high - self.low):  # the widest ranges are measured in halves
            return Float(self.low / 2.0, self.high / 2.0)._encode(x / 2.0)
        return np.array([self._to_unit(v) for v in x.tolist()])

    def _decode(self, u: Array) -> Array:
        if self.levels:
            k = np.clip(np.floor(u * self.levels), 0, self.levels - 1)
            return np.array([self._at(int(i)) for i in k.tolist()])
        if math.isinf(self.high - self.low):
            return 2.0 * Float(self.low / 2.0, self.high / 2.0)._decode(u)
        return np.array([self._from_unit(v) for v in u.tolist()])

    def _snap(self, u: Array) -> Array:
        return (np.clip(np.floor(u * self.levels), 0, self.levels - 1) + 0.5) / self.levels if self.levels else u

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


@dataclass(frozen=True, slots=True, repr=False)
class Int(_Range):
    """A whole number from `low` to `high`, both included; `low == high` is a constant.

    With `log=True` the cube measures ratios: 1 to 10 is as long as 10 to 100. With `step` the values are low, low +
    step, ..., and `high` is the last of them.

    Raises:
        SpaceError: The bounds or the step are not whole numbers, or low > high, or not positive with `log=True`, or
            the range is too long for each of its integers to have its own place in the unit interval.

    Example:
        >>> Int(1, 8).levels
        8
        >>> Int(0, 256, step=64).levels
        5
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
        if self.step is not None and self.step != int(self.step):
            self._reject(f"step must be a whole number, got {show(self.step)}; round it, or use Float")
        step = int(self.step or 1)
        levels = (high - low) // step + 1
        self._set(low=low, high=low + (levels - 1) * step, levels=levels, step=None if self.step is None else step)

    def _value(self, number: float) -> int:
        return int(number)

    def _at(self, k: int) -> int:
        return self.low + k * int(self.step or 1)

    def _index(self, number: float) -> int:
        return min(max(round((number - self.low) / (self.step or 1)), 0), self.levels - 1)

    def _encode(self, x: Array) -> Array:
        if self.step is not None:
            return ((x - self.low) / self.step + 0.5) / self.levels
        if not self.log:
            return Parameter._encode(self, x)
        start, end = math.log(self.low - 0.5), math.log(self.high + 0.5)
        return (np.log(x) - start) / (end - start)

    def _decode(self, u: Array) -> Array:
        if self.step is not None:
            return self.low + self.step * np.clip(np.floor(u * self.levels), 0, self.levels - 1)
        if not self.log:
            return Parameter._decode(self, u)
        start, end = math.log(self.low - 0.5), math.log(self.high + 0.5)
        return np.clip(np.rint(np.exp(start + u * (end - start))), self.low, self.high)


@dataclass(frozen=True, slots=True, repr=False)
class _Listed(Parameter):
    """One of the values that the user lists."""

    choices: Sequence[Choice] = field()  # needed: not by default what Parameter says
    when: When = field(default=(), kw_only=True)
    low: int = field(default=0, init=False)
    high: int = field(init=False)
    levels: int = field(init=False)
    _types: tuple[type, ...] = field(init=False)  # else the choices (0, 1) would equal (False, True)

    def __post_init__(self) -> None:
        kind = type(self).__name__
        if not isinstance(self.choices, list | tuple) or not self.choices:
            raise SpaceError(f"{kind}: expected a list of one or more choices, got {show(self.choices)}")
        seen: dict[Choice, Choice] = {}
        for choice in (_checked_choice(kind, choice) for choice in self.choices):
            if choice in seen:
                pair = f"{show(seen[choice])} and {show(choice)}"
                raise SpaceError(f"{kind}: choices must differ, got {pair}; drop one or use strings")
            seen[choice] = choice
        types = tuple(type(choice) for choice in seen)
        self._set(choices=tuple(seen), high=len(seen) - 1, levels=len(seen), _types=types)
        self._set(when=_checked_when(kind, self.when))

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

    def _arguments(self) -> dict[str, Any]:
        return {"choices": self.choices} | Parameter._arguments(self)

    def _to_dict(self) -> dict[str, Any]:
        return self._arguments() | {"choices": list(self.choices)}


@dataclass(frozen=True, slots=True, repr=False)
class Categorical(_Listed):
    """One of several choices without an order: strings, numbers, booleans or None.

    Raises:
        SpaceError: No choices, or one that JSON cannot keep, or two that compare equal (1, 1.0 and True do).

    Example:
        >>> Categorical(["relu", "gelu", None]).levels
        3
    """

    kind: ClassVar[str] = "categorical"
    nominal: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, repr=False)
class Ordinal(_Listed):
    """One of several choices in an order, each as far from the next: neighbours are expected to be alike.

    Raises:
        SpaceError: As for `Categorical`.

    Example:
        >>> Ordinal(["coarse", "fine", "extra fine"])
        Ordinal(choices=('coarse', 'fine', 'extra fine'))
    """

    kind: ClassVar[str] = "ordinal"


KINDS: dict[str, type[Parameter]] = {kind.kind: kind for kind in (Float, Int, Categorical, Ordinal)}


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


def _decimal(number: float) -> Decimal:
    """The number as one would write it: 0.1 is a tenth."""
    return Decimal(repr(number))


def _checked_when(kind: str, when: When) -> Conditions:
    """Conditions as pairs of a name and the values allowed; what they mean is the space's to check."""
    if not isinstance(when, Mapping):
        if when is None or when == ():
            return ()
        if not isinstance(when, tuple):
            raise SpaceError(f"{kind}: when must be a dict such as {{'kernel': 'poly'}}, got {show(when)}")
        when = dict(when)
    found = []
    for name, values in when.items():
        several = tuple(values) if isinstance(values, list | tuple | set | frozenset) else (values,)
        if not isinstance(name, str) or not several:
            raise SpaceError(f"{kind}: when needs a parameter's name and its values, got {show({name: values})}")
        found.append((name, tuple(_plain(value) for value in several)))
    return tuple(found)  # type: ignore[arg-type]  # values are checked by the parameter that they are of


def _checked_choice(kind: str, choice: object) -> Choice:
    plain = _plain(choice)
    is_number = type(plain) in (int, float) and _number(plain) is not None
    if is_number or plain is None or type(plain) in (str, bool):
        return plain  # type: ignore[return-value]  # mypy does not narrow by type(...) in (...)
    raise SpaceError(
        f"{kind}: a choice must be a string, finite number, boolean or None, got {show(choice)}; "
        "use a string that names it"
    )


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
