"""The search space: what the user calls a point, and where it lies in the unit cube.

A point has three forms: params (a dict of plain Python values), numbers (an array in the user's units, a
category as its index), and a point u of the unit cube, where every parameter takes one dimension.
`sumbo.space.parameters` has the formulas.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sumbo._typing import Array
from sumbo.errors import SpaceError
from sumbo.space.parameters import KINDS, Choice, Float, Parameter, hinted, listed, misfit, show

Bounds: TypeAlias = Sequence[Sequence[float]] | NDArray[Any]
SpaceLike: TypeAlias = "Space | Mapping[str, Parameter] | Bounds"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Space:
    """An ordered, immutable set of named parameters, and the maps between their values and the unit cube.

    Raises:
        SpaceError: No parameters, a name that is not a non-empty string, or a value that is no parameter.

    Example:
        >>> act = sumbo.Categorical(["relu", "gelu"])
        >>> space = Space({"lr": sumbo.Float(1e-4, 1.0, log=True), "layers": sumbo.Int(1, 8), "act": act})
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
        parameters = {}
        for i, pair in enumerate(pairs):
            ends: Sequence[Any] = _sequence(pair)
            if len(ends) != 2:
                expected = "expected a (low, high) pair (or a row of a (D, 2) array)"
                raise SpaceError(f"bounds[{i}]: {expected}, got {show(pair)}")
            try:
                parameters[f"x{i}"] = Float(ends[0], ends[1])
            except SpaceError as error:
                raise SpaceError(f"bounds[{i}]: {error}") from error
        return cls(parameters)

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
        return np.array([p.nominal for p in self.parameters])

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
            raise SpaceError(f"no parameter {hinted(name, self.names)}; the space has {listed(self.names)}")
        return self.parameters[self.names.index(name)]

    def __repr__(self) -> str:
        return f"Space({dict(self._items())!r})"

    def array(self, params: Mapping[str, object]) -> Array:
        """The point as numbers in the user's units, a category as its index; shape (D,).

        Raises:
            SpaceError: Unknown or missing names, or a value of the wrong type or out of its range.
        """
        if not isinstance(params, Mapping):
            raise SpaceError(f"params: expected a dict of {listed(self.names)}, got {show(params)}")
        if params.keys() != set(self.names):
            problems = [f"unknown {hinted(name, self.names)}" for name in params if name not in self.names]
            problems += [f"missing {name!r}" for name in self.names if name not in params]
            raise SpaceError(f"params: {', '.join(problems)}; give exactly {listed(self.names)}")
        return np.array([p._check(name, params[name]) for name, p in self._items()], dtype=float)

    def from_array(self, x: ArrayLike) -> dict[str, Choice]:
        """The params of an array such as `array` returns.

        Raises:
            SpaceError: Not D finite numbers, or one out of its range or not whole where it must be.
        """
        numbers = self._floats(x, ndims=(1,)).tolist()
        for (name, p), number in zip(self._items(), numbers, strict=True):
            p._check_number(name, number)
        return self._params(numbers)

    def to_unit(self, params: Mapping[str, object]) -> Array:
        """The point of the unit cube that stands for `params`, shape (D,). Raises what `array` does."""
        return self.encode(self.array(params))

    def encode(self, x: Array) -> Array:
        """The points of the unit cube for arrays that `array` returned; shape (D,) or (n, D), as given."""
        columns = np.ascontiguousarray(x.reshape(-1, self.dim).T)
        encoded = np.concatenate([p._encode(column) for p, column in zip(self.parameters, columns, strict=True)])
        return np.ascontiguousarray(encoded.reshape(columns.shape).T).reshape(x.shape)

    def from_unit(self, u: ArrayLike) -> dict[str, Choice]:
        """The params, as plain Python values, whose place in the cube is nearest to `u`, shape (D,).

        Coordinates outside [0, 1] count as 0 or 1, which give exactly `low` and `high`.

        Raises:
            SpaceError: Not D finite numbers.
        """
        u = np.clip(self._floats(u, ndims=(1,)), 0.0, 1.0)
        return self._params([p._decode(u[i : i + 1])[0] for i, p in enumerate(self.parameters)])

    def snap(self, u: ArrayLike) -> Array:
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

    def grid(self) -> Array:
        """The cube's points that stand for some params, all of them, shape (size, D); of a space without Floats."""
        axes = [p._encode(np.arange(p.low, p.high + 1, dtype=np.float64)) for p in self.parameters]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, self.dim)

    def to_dict(self) -> dict[str, Any]:
        """A description that JSON can keep and `from_dict` reads back."""
        return {"params": [{"name": name, "type": p.kind, **p._to_dict()} for name, p in self._items()]}

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

    def _floats(self, values: ArrayLike, *, ndims: tuple[int, ...]) -> Array:
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


def _parse_entry(place: str, entry: object) -> tuple[str, Parameter]:
    if not isinstance(entry, Mapping):
        raise SpaceError(f"{place}: expected a dict, got {show(entry)}")
    arguments = dict(entry)
    name, kind = arguments.pop("name", None), arguments.pop("type", None)
    if not isinstance(name, str) or not name:
        raise SpaceError(f'{place}: expected a non-empty string as "name", got {show(name)}')
    if not isinstance(kind, str) or kind not in KINDS:
        raise SpaceError(f'{place}: expected one of {listed(tuple(KINDS))} as "type", got {show(kind)}')
    known = inspect.signature(KINDS[kind]).parameters
    allowed = ("name", "type", *known)
    wrong = [f"missing {k!r}" for k, p in known.items() if p.default is p.empty and k not in entry]
    wrong += [f"unknown {hinted(k, allowed)}" for k in arguments if k not in known]
    if wrong:
        raise SpaceError(f"{place} ({name!r}): {', '.join(wrong)}; the keys of {kind} are {listed(allowed)}")
    try:
        return name, KINDS[kind](**arguments)
    except SpaceError as error:
        raise SpaceError(f"{place} ({name!r}): {error}") from error
