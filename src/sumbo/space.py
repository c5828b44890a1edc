"""The search space: what the user calls a point, and where it lies in the unit cube.

A point has three forms: params (a dict of plain Python values), numbers (an array in the user's units, a
category as its index), and a point u of the unit cube, where every parameter takes one dimension:

    Float         u = (x - low) / (high - low)
    Float, log    u = log(x / low) / log(high / low)
    Int           u = (x - low + 1/2) / n, the centre of one of n = high - low + 1 equal bins
    Int, log      u = log(x / (low - 1/2)) / log((high + 1/2) / (low - 1/2)), bins ending halfway in x
    Categorical   u = (i + 1/2) / k, for choice i of k
"""

from __future__ import annotations

import difflib
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
            _misfit(name, value, f"a whole number from {self.low} to {self.high}", "round it")
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
    """

    choices: Sequence[Choice]

    kind: ClassVar[str] = "categorical"

    def __post_init__(self) -> None:
        if not isinstance(self.choices, list | tuple) or not self.choices:
            raise SpaceError(
                f"Categorical: expected a list of one or more choices, got {_show(self.choices)}"
            )
        seen: dict[Choice, Choice] = {}
        for choice in map(_checked_choice, self.choices):
            if choice in seen:
                pair = f"{_show(seen[choice])} and {_show(choice)}"
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
        by_text = {_show(c).strip("'"): c for c in self.choices}
        near = difflib.get_close_matches(_show(plain).strip("'"), by_text, n=1)
        advice = f"did you mean {by_text[near[0]]!r}?" if near else "give a choice as it was written"
        return _misfit(name, value, f"one of {_listed(self.choices)}", advice)

    def _value(self, number: float) -> Choice:
        return self.choices[int(number)]

    def _indices(self) -> Int:
        return Int(0, self.levels - 1)

    def _encode(self, x: FloatArray) -> FloatArray:
        return self._indices()._encode(x)

    def _decode(self, u: FloatArray) -> FloatArray:
        return self._indices()._decode(u)


Parameter: TypeAlias = Float | Int | Categorical
Bounds: TypeAlias = Sequence[Sequence[float]] | NDArray[Any]
SpaceLike: TypeAlias = "Space | Mapping[str, Parameter] | Bounds"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Space:
    """An ordered, immutable set of named parameters, and the maps between their values and the unit cube.

    Raises:
        SpaceError: No parameters, a name that is not a non-empty string, or a value that is no parameter.
    """

    names: tuple[str, ...]
    parameters: tuple[Parameter, ...]

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        if not isinstance(parameters, Mapping) or not parameters:
            got = _show(parameters)
            raise SpaceError(f'Space: expected a dict such as {{"x": Float(0, 1)}} with an entry, got {got}')
        for name, parameter in parameters.items():
            if not isinstance(name, str) or not name:
                raise SpaceError(f"Space: names must be non-empty strings, got {_show(name)}; rename it")
            if not isinstance(parameter, Parameter):
                _misfit(name, parameter, "a Float, Int or Categorical", "write for example Float(low, high)")
        object.__setattr__(self, "names", tuple(parameters))
        object.__setattr__(self, "parameters", tuple(parameters.values()))

    @classmethod
    def from_bounds(cls, bounds: Bounds) -> Space:
        """Floats named x0, x1, ... from a list of (low, high) pairs or an array of shape (D, 2).

        Raises:
            SpaceError: Not such a list, or a pair that makes no Float; the message names the dimension.
        """
        pairs = _sequence(bounds)
        if not pairs:
            raise SpaceError(f"bounds: expected a list of (low, high) pairs, got {_show(bounds)}")
        return cls({f"x{i}": _float_from_pair(f"bounds[{i}]", pair) for i, pair in enumerate(pairs)})

    @classmethod
    def coerce(cls, space: SpaceLike) -> Space:
        """A Space from a Space, a dict of parameters, or bounds as in `from_bounds`."""
        if isinstance(space, Space):
            return space
        return cls(space) if isinstance(space, Mapping) else cls.from_bounds(space)

    @property
    def dim(self) -> int:
        """How many parameters there are, and so dimensions of the cube."""
        return len(self.names)

    @property
    def nominal(self) -> NDArray[np.bool_]:
        """Which dimensions are categories, shape (D,)."""
        return np.array([isinstance(p, Categorical) for p in self.parameters])

    @property
    def levels(self) -> NDArray[np.int64]:
        """How many different values each dimension has, 0 for a Float; shape (D,)."""
        return np.array([p.levels for p in self.parameters], dtype=np.int64)

    @property
    def size(self) -> int | None:
        """How many different points there are; None when a Float makes them uncountable."""
        return math.prod(p.levels for p in self.parameters) or None

    def __len__(self) -> int:
        return self.dim

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __getitem__(self, name: str) -> Parameter:
        if name not in self.names:
            raise SpaceError(f"no parameter {_hint(name, self.names)}; the space has {_listed(self.names)}")
        return self.parameters[self.names.index(name)]

    def __repr__(self) -> str:
        return f"Space({dict(self._items())!r})"

    def array(self, params: Mapping[str, object]) -> FloatArray:
        """The point as numbers in the user's units, a category as its index; shape (D,).

        Raises:
            SpaceError: Unknown or missing names, or a value of the wrong type or out of its range.
        """
        self._check_names(params)
        return np.array([p._check(name, params[name]) for name, p in self._items()], dtype=float)

    def from_array(self, x: ArrayLike) -> dict[str, Choice]:
        """The params of an array such as `array` returns.

        Raises:
            SpaceError: Not D finite numbers, or one out of its range or not whole where it must be.
        """
        numbers = self._floats(x, ndims=(1,)).tolist()
        for (name, p), number in zip(self._items(), numbers, strict=True):
            (p._indices() if isinstance(p, Categorical) else p)._check(name, number)
        return self._params(numbers)

    def to_unit(self, params: Mapping[str, object]) -> FloatArray:
        """The point of the unit cube that stands for `params`, shape (D,).

        Raises:
            SpaceError: As for `array`.
        """
        x = self.array(params)
        return np.concatenate([p._encode(x[i : i + 1]) for i, p in enumerate(self.parameters)])

    def from_unit(self, u: ArrayLike) -> dict[str, Choice]:
        """The params, as plain Python values, whose place in the cube is nearest to `u`, shape (D,).

        Coordinates outside [0, 1] count as 0 or 1, which give exactly `low` and `high`.

        Raises:
            SpaceError: Not D finite numbers.
        """
        u = np.clip(self._floats(u, ndims=(1,)), 0.0, 1.0)
        return self._params([p._decode(u[i : i + 1])[0] for i, p in enumerate(self.parameters)])

    def snap(self, u: ArrayLike) -> FloatArray:
        """The nearest points of the cube that stand for some params; shape (D,) or (n, D), as given.

        Raises:
            SpaceError: Another shape, or numbers that are not finite.
        """
        points = np.clip(self._floats(u, ndims=(1, 2)), 0.0, 1.0, order="C")
        rows = points.reshape(-1, self.dim)  # a view, so that one point and many go the same way
        for i in np.flatnonzero(self.levels):
            # Contiguous, as in from_unit: NumPy may round a strided exp differently.
            column = np.ascontiguousarray(rows[:, i])
            rows[:, i] = self.parameters[i]._encode(self.parameters[i]._decode(column))
        return points

    def to_dict(self) -> dict[str, Any]:
        """A description that JSON can keep and `from_dict` reads back."""
        return {"params": [_entry(name, p) for name, p in self._items()]}

    @classmethod
    def from_dict(cls, data: object) -> Space:
        """The space that `to_dict` described.

        Raises:
            SpaceError: Anything but such a description; the message names the place.
        """
        entries = data.get("params") if isinstance(data, Mapping) else None
        if not isinstance(entries, list | tuple) or not entries:
            raise SpaceError(f'saved space: expected {{"params": [...]}} with an entry, got {_show(data)}')
        parameters: dict[str, Parameter] = {}
        for i, entry in enumerate(entries):
            name, parameter = _parse_entry(f"saved space, params[{i}]", entry)
            if name in parameters:
                raise SpaceError(f"saved space, params[{i}]: the name {name!r} is taken; rename one")
            parameters[name] = parameter
        return cls(parameters)

    def _items(self) -> Iterator[tuple[str, Parameter]]:
        return zip(self.names, self.parameters, strict=True)

    def _params(self, numbers: Iterable[float]) -> dict[str, Choice]:
        return {name: p._value(x) for (name, p), x in zip(self._items(), numbers, strict=True)}

    def _check_names(self, params: Mapping[str, object]) -> None:
        if not isinstance(params, Mapping):
            raise SpaceError(f"params: expected a dict of {_listed(self.names)}, got {_show(params)}")
        if params.keys() == set(self.names):
            return
        problems = [f"unknown {_hint(name, self.names)}" for name in params if name not in self.names]
        problems += [f"missing {name!r}" for name in self.names if name not in params]
        raise SpaceError(f"params: {', '.join(problems)}; give exactly {_listed(self.names)}")

    def _floats(self, values: ArrayLike, *, ndims: tuple[int, ...]) -> FloatArray:
        """The values as a new float array whose last axis has length D."""
        shapes = " or ".join(("", f"({self.dim},)", f"(n, {self.dim})")[n] for n in ndims)
        try:
            array = np.asarray(values)
        except ValueError:  # rows of different lengths
            array = np.array(None)
        if array.dtype.kind not in "fiu" or array.ndim not in ndims or array.shape[-1] != self.dim:
            got = f"shape {array.shape}" if array.dtype.kind in "fiu" else _show(values)
            raise SpaceError(f"point: expected an array of numbers of shape {shapes}, got {got}")
        bad = np.unique(np.argwhere(~np.isfinite(array))[:, -1])
        if bad.size:
            where = _listed([self.names[i] for i in bad])
            raise SpaceError(f"point: expected finite numbers, got NaN or infinity in {where}; correct it")
        return array.astype(np.float64)


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
        _reject(parameter, f"log must be True or False, got {_show(parameter.log)}")
    if parameter.log and low < sys.float_info.min:
        _reject(parameter, "log=True needs low > 0 (2.3e-308 or more); raise low, or leave log out")
    return low, high


def _checked_choice(choice: object) -> Choice:
    plain = _plain(choice)
    if (
        plain is None
        or type(plain) in (str, bool)
        or (type(plain) in (int, float) and _number(plain) is not None)
    ):
        return plain  # type: ignore[return-value]  # mypy does not narrow by type(...) in (...)
    raise SpaceError(
        f"Categorical: a choice must be a string, finite number, boolean or None, got {_show(choice)}; "
        "use a string that names it"
    )


def _within(name: str, value: object, low: float, high: float, what: str) -> int | float:
    number = _number(value)
    if number is None or not low <= number <= high:
        advice = "give a plain number" if number is None else "move it inside, or widen the range"
        _misfit(name, value, f"{what} from {low} to {high}", advice)
    return number


def _sequence(value: object) -> Sequence[object]:
    """A list, tuple or array as a sequence of Python values; anything else as an empty one."""
    value = value.tolist() if isinstance(value, np.ndarray) else value
    return value if isinstance(value, Sequence) and not isinstance(value, str | bytes) else ()


def _float_from_pair(place: str, pair: object) -> Float:
    ends: Sequence[Any] = _sequence(pair)
    if len(ends) != 2:
        raise SpaceError(
            f"{place}: expected a (low, high) pair (or a row of a (D, 2) array), got {_show(pair)}"
        )
    try:
        return Float(ends[0], ends[1])
    except SpaceError as error:
        raise SpaceError(f"{place}: {error}") from error


def _entry(name: str, parameter: Parameter) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": name, "type": parameter.kind}
    if isinstance(parameter, Categorical):
        return {**entry, "choices": list(parameter.choices)}
    return {**entry, "low": parameter.low, "high": parameter.high, "log": parameter.log}


def _parse_entry(place: str, entry: object) -> tuple[str, Parameter]:
    if not isinstance(entry, Mapping):
        raise SpaceError(f"{place}: expected a dict, got {_show(entry)}")
    makers = {"float": Float, "int": Int, "categorical": Categorical}
    name, kind = entry.get("name"), entry.get("type")
    if not isinstance(name, str) or not name:
        raise SpaceError(f'{place}: expected a non-empty string as "name", got {_show(name)}')
    if not isinstance(kind, str) or kind not in makers:
        raise SpaceError(f'{place}: expected one of {_listed(tuple(makers))} as "type", got {_show(kind)}')
    required = ("choices",) if kind == "categorical" else ("low", "high")
    allowed = ("name", "type", *required) + ("log",) * (kind != "categorical")
    wrong = [f"missing {k!r}" for k in required if k not in entry]
    wrong += [f"unknown {_hint(k, allowed)}" for k in entry if k not in allowed]
    if wrong:
        raise SpaceError(f"{place} ({name!r}): {', '.join(wrong)}; the keys of {kind} are {_listed(allowed)}")
    try:
        return name, makers[kind](**{k: v for k, v in entry.items() if k not in ("name", "type")})
    except SpaceError as error:
        raise SpaceError(f"{place} ({name!r}): {error}") from error


def _reject(parameter: Float | Int, problem: str) -> NoReturn:
    kind = type(parameter).__name__
    raise SpaceError(f"{kind}({_show(parameter.low)}, {_show(parameter.high)}): {problem}")


def _misfit(name: str, value: object, expected: str, advice: str) -> NoReturn:
    got = f"{_show(value)} ({type(value).__name__})"
    raise SpaceError(f"parameter {name!r}: expected {expected}, got {got}; {advice}")


def _hint(name: object, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(_show(name).strip("'"), known, n=1)
    return f"{_show(name)} (did you mean {near[0]!r}?)" if near else _show(name)


def _show(value: object, limit: int = 80) -> str:
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python refuses to print integers of thousands of digits
        text = f"a very long {type(value).__name__}"
    return text if len(text) <= limit else f"{text[:limit]}..."


def _listed(items: Sequence[object], limit: int = 10) -> str:
    text = ", ".join(_show(item) for item in items[:limit])
    return f"[{text}]" if len(items) <= limit else f"[{text}, ... {len(items) - limit} more]"
