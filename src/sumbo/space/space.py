"""The search space: what the user calls a point, and where it lies in the unit cube.

A point has three forms: params (a dict of plain Python values), numbers (an array in the user's units, a
category as its index), and a point u of the unit cube, where every parameter takes one dimension.
`sumbo.space.parameters` has the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sumbo.errors import SpaceError
from sumbo.space.parameters import Categorical, Choice, Float, FloatArray, Int, Parameter, closest, listed, misfit, show

Bounds: TypeAlias = Sequence[Sequence[float]] | NDArray[Any]
SpaceLike: TypeAlias = "Space | Mapping[str, Parameter] | Bounds"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Space:
    """An ordered, immutable set of named parameters, and the maps between their values and the unit cube.

    Raises:
        SpaceError: No parameters, a name that is not a non-empty string, or a value that is no parameter.

    Example:
        >>> act = Categorical(["relu", "gelu"])
        >>> space = Space({"lr": Float(1e-4, 1.0, log=True), "layers": Int(1, 8), "act": act})
        >>> space.to_unit({"lr": 0.01, "layers": 1, "act": "gelu"})
        array([0.5   , 0.0625, 0.75  ])
        >>> space.from_unit([1.0, 0.5, 0.0])
        {'lr': 1.0, 'layers': 5, 'act': 'relu'}
    """

    names: tuple[str, ...]
    parameters: tuple[Parameter, ...]

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        if not isinstance(parameters, Mapping) or not parameters:
            got = show(parameters)
            raise SpaceError(f'Space: expected a dict such as {{"x": Float(0, 1)}} with an entry, got {got}')
        for name, parameter in parameters.items():
            if not isinstance(name, str) or not name:
                raise SpaceError(f"Space: names must be non-empty strings, got {show(name)}; rename it")
            if not isinstance(parameter, Parameter):
                misfit(name, parameter, "a Float, Int or Categorical", "write for example Float(low, high)")
        object.__setattr__(self, "names", tuple(parameters))
        object.__setattr__(self, "parameters", tuple(parameters.values()))

    @classmethod
    def from_bounds(cls, bounds: Bounds) -> Space:
        """Floats named x0, x1, ... from a list of (low, high) pairs or an array of shape (D, 2).

        Raises:
            SpaceError: Not such a list, or a pair that makes no Float; the message names the dimension.

        Example:
            >>> Space.from_bounds([(0, 1), (-5, 5)])
            Space({'x0': Float(low=0.0, high=1.0, log=False), 'x1': Float(low=-5.0, high=5.0, log=False)})
        """
        pairs = _sequence(bounds)
        if not pairs:
            raise SpaceError(f"bounds: expected a list of (low, high) pairs, got {show(bounds)}")
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
            raise SpaceError(f"no parameter {_hint(name, self.names)}; the space has {listed(self.names)}")
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
        return self.encode(self.array(params))

    def encode(self, x: FloatArray) -> FloatArray:
        """The point of the unit cube for an array that `array` returned, shape (D,)."""
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

    def grid(self) -> FloatArray:
        """The cube's points that stand for some params, all of them, shape (size, D); of a space without Floats."""
        numbers = [(p if isinstance(p, Int) else Int(0, p.levels - 1)) for p in self.parameters]
        axes = [n._encode(np.arange(n.low, n.high + 1, dtype=np.float64)) for n in numbers]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, self.dim)

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
            raise SpaceError(f'saved space: expected {{"params": [...]}} with an entry, got {show(data)}')
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
            raise SpaceError(f"params: expected a dict of {listed(self.names)}, got {show(params)}")
        if params.keys() == set(self.names):
            return
        problems = [f"unknown {_hint(name, self.names)}" for name in params if name not in self.names]
        problems += [f"missing {name!r}" for name in self.names if name not in params]
        raise SpaceError(f"params: {', '.join(problems)}; give exactly {listed(self.names)}")

    def _floats(self, values: ArrayLike, *, ndims: tuple[int, ...]) -> FloatArray:
        """The values as a new float array whose last axis has length D."""
        shapes = " or ".join(("", f"({self.dim},)", f"(n, {self.dim})")[n] for n in ndims)
        try:
            array = np.asarray(values)
        except ValueError:  # rows of different lengths
            array = np.array(None)
        if array.dtype.kind not in "fiu" or array.ndim not in ndims or array.shape[-1] != self.dim:
            got = f"shape {array.shape}" if array.dtype.kind in "fiu" else show(values)
            raise SpaceError(f"point: expected an array of numbers of shape {shapes}, got {got}")
        bad = np.unique(np.argwhere(~np.isfinite(array) | np.ma.getmaskarray(values))[:, -1])  # type: ignore[arg-type]
        if bad.size:
            where = listed([self.names[i] for i in bad])
            raise SpaceError(f"point: expected finite numbers, got NaN, infinity or a mask in {where}; correct it")
        return array.astype(np.float64)


def _sequence(value: object) -> Sequence[object]:
    """A list, tuple or array as a sequence of Python values; anything else as an empty one."""
    value = value.tolist() if isinstance(value, np.ndarray) else value
    return value if isinstance(value, Sequence) and not isinstance(value, str | bytes) else ()


def _float_from_pair(place: str, pair: object) -> Float:
    ends: Sequence[Any] = _sequence(pair)
    if len(ends) != 2:
        raise SpaceError(f"{place}: expected a (low, high) pair (or a row of a (D, 2) array), got {show(pair)}")
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
        raise SpaceError(f"{place}: expected a dict, got {show(entry)}")
    makers = {"float": Float, "int": Int, "categorical": Categorical}
    name, kind = entry.get("name"), entry.get("type")
    if not isinstance(name, str) or not name:
        raise SpaceError(f'{place}: expected a non-empty string as "name", got {show(name)}')
    if not isinstance(kind, str) or kind not in makers:
        raise SpaceError(f'{place}: expected one of {listed(tuple(makers))} as "type", got {show(kind)}')
    required = ("choices",) if kind == "categorical" else ("low", "high")
    allowed = ("name", "type", *required) + ("log",) * (kind != "categorical")
    wrong = [f"missing {k!r}" for k in required if k not in entry]
    wrong += [f"unknown {_hint(k, allowed)}" for k in entry if k not in allowed]
    if wrong:
        raise SpaceError(f"{place} ({name!r}): {', '.join(wrong)}; the keys of {kind} are {listed(allowed)}")
    try:
        return name, makers[kind](**{k: v for k, v in entry.items() if k not in ("name", "type")})
    except SpaceError as error:
        raise SpaceError(f"{place} ({name!r}): {error}") from error


def _hint(name: object, known: Sequence[str]) -> str:
    near = closest(name, known)
    return f"{show(name)} (did you mean {near[0]!r}?)" if near else show(name)
