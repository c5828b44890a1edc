"""The search space: what the user calls a point, and where it lies in the unit cube.

A point has three forms: params (a dict of plain Python values), numbers (an array in the user's units, a
category as its index), and a point u of the unit cube, where every parameter takes one dimension.
`sumbo.space.parameters` has the formulas.

A parameter may exist only for some values of others. Where it does not, it is not among the params, its number is NaN
and its place in the cube the middle: a model of groups then has the same from it everywhere.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sumbo._typing import Array
from sumbo.errors import SpaceError
from sumbo.space.constraints import Constraint, Known, check_constraints, constraints_from_dicts
from sumbo.space.parameters import KINDS, Choice, Float, Parameter, hinted, listed, misfit, show

Bounds: TypeAlias = Sequence[Sequence[float]] | NDArray[Any]
SpaceLike: TypeAlias = "Space | Mapping[str, Parameter] | Bounds"

_NOWHERE = 0.5  # the place in the cube of a parameter that does not exist


class _Condition(NamedTuple):
    """A parameter that exists where each of some others has one of some numbers."""

    dim: int
    needs: tuple[tuple[int, Array], ...]


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Space:
    """An ordered, immutable set of named parameters, and the maps between their values and the unit cube.

    Args:
        parameters: by name, in the order of arrays.
        context: names of those that the world sets: every ask says their values.
        constraints: what is known of the points allowed: `Linear`, `SumTo`, `Known`.

    Raises:
        SpaceError: No parameters, a name that is not a non-empty string, a value that is no parameter, a condition,
            context or constraint on what is not there, or conditions in a circle.

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
    context: tuple[str, ...]
    constraints: tuple[Constraint, ...]
    _conditions: tuple[_Condition, ...] = field(compare=False)  # follow from the parameters

    def __init__(
        self,
        parameters: Mapping[str, Parameter],
        *,
        context: Sequence[str] = (),
        constraints: Sequence[Constraint] = (),
    ) -> None:
        if not isinstance(parameters, Mapping) or not parameters:
            got = show(parameters)
            raise SpaceError(f'Space: expected a dict such as {{"x": Float(0, 1)}} with an entry, got {got}')
        for name, parameter in parameters.items():
            if not isinstance(name, str) or not name:
                raise SpaceError(f"Space: names must be non-empty strings, got {show(name)}; rename it")
            if not isinstance(parameter, Parameter):
                misfit(name, parameter, "a Float, Int, Ordinal or Categorical", "write for example Float(low, high)")
        object.__setattr__(self, "names", tuple(parameters))
        object.__setattr__(self, "parameters", tuple(parameters.values()))
        object.__setattr__(self, "_conditions", _conditions(self))
        object.__setattr__(self, "context", _checked_context(self, context))
        object.__setattr__(self, "constraints", check_constraints(self, constraints))

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
        """How many different points there are, at most; None when a Float makes them uncountable."""
        return math.prod(p.levels for p in self.parameters) or None

    @property
    def conditional(self) -> bool:
        """Do some parameters exist for some points only?"""
        return len(self._conditions) > 0

    def active(self, u: Array) -> NDArray[np.bool_]:
        """Which parameters exist at points of the cube, shape (n, D)."""
        exists = np.ones(u.shape, dtype=bool)
        for i, needs in self._conditions:
            for j, numbers in needs:
                value = self.parameters[j]._decode(np.ascontiguousarray(u[:, j]))
                exists[:, i] &= exists[:, j] & np.isin(value, numbers)
        return exists

    def needs(self, name: str) -> dict[str, tuple[Choice, ...]]:
        """The values of others for which a parameter exists, those on which these depend included."""
        found: dict[str, tuple[Choice, ...]] = {}
        for other, values in self[name].conditions:
            found |= {other: values} | self.needs(other)
        return found

    def __len__(self) -> int:
        return self.dim

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __getitem__(self, name: str) -> Parameter:
        if name not in self.names:
            raise SpaceError(f"no parameter {hinted(name, self.names)}; the space has {listed(self.names)}")
        return self.parameters[self.names.index(name)]

    def __repr__(self) -> str:
        more = f", context={list(self.context)!r}" if self.context else ""
        more += f", constraints={list(self.constraints)!r}" if self.constraints else ""
        return f"Space({dict(self._items())!r}{more})"

    def array(self, params: Mapping[str, object]) -> Array:
        """The point as numbers in the user's units, a category as its index; shape (D,).

        Raises:
            SpaceError: Unknown or missing names, or a value of the wrong type or out of its range.
        """
        if not isinstance(params, Mapping):
            raise SpaceError(f"params: expected a dict of {listed(self.names)}, got {show(params)}")
        given = self._existing(params) if self._conditions else params
        wanted = [name for name in self.names if name in given] if self._conditions else self.names
        if params.keys() != set(wanted):
            problems = [f"unknown {hinted(name, self.names)}" for name in params if name not in self.names]
            problems += [f"missing {name!r}" for name in wanted if name not in params]
            if problems:
                raise SpaceError(f"params: {', '.join(problems)}; give exactly {listed(wanted)}")
        numbers = [p._check(name, params[name]) if name in given else math.nan for name, p in self._items()]
        return np.array(numbers, dtype=float)

    def _existing(self, params: Mapping[str, object]) -> set[str]:
        """The names of the parameters that exist with these values of others.

        Raises:
            SpaceError: A value is given for one that does not.
        """
        names = set(self.names)
        for i, needs in self._conditions:
            for j, numbers in needs:
                other = self.names[j]
                there = other in names and other in params
                if there and self.parameters[j]._check(other, params[other]) in numbers:
                    continue
                name = self.names[i]
                names.discard(name)
                if params.get(name) is not None:
                    where = f"{other} is {show(params[other])}" if there else f"{other} does not"
                    raise SpaceError(f"params: {name!r} does not exist where {where}; leave it out")
        return names

    def from_array(self, x: ArrayLike) -> dict[str, Choice]:
        """The params of an array such as `array` returns.

        Raises:
            SpaceError: Not D finite numbers, or one out of its range or not whole where it must be.
        """
        found: dict[str, Choice] = {}
        for (name, p), number in zip(self._items(), self._floats(x, ndims=(1,), absent=self.conditional), strict=True):
            if not math.isnan(number):
                found[name] = p._value(p._check_number(name, float(number)))
        if self._conditions:
            self.array(found)  # raises where one is missing, or does not exist
        return found

    def to_unit(self, params: Mapping[str, object]) -> Array:
        """The point of the unit cube that stands for `params`, shape (D,). Raises what `array` does."""
        return self.encode(self.array(params))

    def encode(self, x: Array) -> Array:
        """The points of the unit cube for arrays that `array` returned; shape (D,) or (n, D), as given."""
        absent = np.isnan(x) if self._conditions else None
        x = x if absent is None else np.where(absent, self._lows, x)
        columns = np.ascontiguousarray(x.reshape(-1, self.dim).T)
        encoded = np.concatenate([p._encode(column) for p, column in zip(self.parameters, columns, strict=True)])
        u = np.ascontiguousarray(encoded.reshape(columns.shape).T).reshape(x.shape)
        return u if absent is None else np.where(absent, _NOWHERE, u)

    @property
    def _lows(self) -> Array:
        return np.array([p.low for p in self.parameters], dtype=float)

    def from_unit(self, u: ArrayLike) -> dict[str, Choice]:
        """The params, as plain Python values, whose place in the cube is nearest to `u`, shape (D,).

        Coordinates outside [0, 1] count as 0 or 1, which give exactly `low` and `high`.

        Raises:
            SpaceError: Not D finite numbers.
        """
        u = np.clip(self._floats(u, ndims=(1,)), 0.0, 1.0)
        params = self._params([p._decode(u[i : i + 1])[0] for i, p in enumerate(self.parameters)])
        if not self._conditions:
            return params
        exists = self.active(u[None])[0]
        return {name: params[name] for name, there in zip(self.names, exists, strict=True) if there}

    def snap(self, u: ArrayLike) -> Array:
        """The nearest points of the cube that stand for some params; shape (D,) or (n, D), as given.

        Raises:
            SpaceError: Another shape, or numbers that are not finite.
        """
        points = np.clip(self._floats(u, ndims=(1, 2)), 0.0, 1.0, order="C")
        rows = points.reshape(-1, self.dim)  # a view, so that one point and many go the same way
        for i in np.flatnonzero(self.levels):
            # Contiguous, as in from_unit: NumPy may round a strided exp differently.
            rows[:, i] = self.parameters[i]._snap(np.ascontiguousarray(rows[:, i]))
        if self._conditions:
            rows[~self.active(rows)] = _NOWHERE
        return points

    def grid(self) -> Array:
        """The cube's points that stand for some params, all of them, shape (size, D); of a space without Floats."""
        axes = [p._encode(np.array([p._at(k) for k in range(p.levels)], dtype=float)) for p in self.parameters]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, self.dim)
        return np.unique(self.snap(points), axis=0) if self._conditions else points

    def given(self, context: Mapping[str, object] | None, fixed: Mapping[str, object] | None) -> dict[str, Choice]:
        """The values that a point is to have, checked: those of the context, and others; and what these imply.

        A parameter that is fixed must exist, so what it depends on is fixed too, where one value allows it.

        Raises:
            SpaceError: A name that does not belong there, a context that is missing, or values that do not go together.
        """
        for what, values, names in (("context", context, self.context), ("fixed", fixed, self.names)):
            if values is not None and not isinstance(values, Mapping):
                raise SpaceError(f"{what}: expected a dict of values by name, got {show(values)}")
            for name in values or {}:
                if name not in names:
                    there = listed(names) if names else "none; name it in Space(context=)"
                    raise SpaceError(f"{what}: unknown {hinted(name, names)}; the space has {there}")
                if what == "fixed" and name in self.context:
                    raise SpaceError(f"fixed: {name!r} is of the context; say context={{{name!r}: ...}}")
        missing = [name for name in self.context if name not in (context or {})]
        if missing:
            raise SpaceError(f"context: missing {listed(missing)}; every ask says its value: context={{...}}")
        wanted = {**(fixed or {}), **(context or {})}
        found = {name: p._value(p._check(name, wanted[name])) for name, p in self._items() if name in wanted}
        for name in list(found):
            for other, allowed in self.needs(name).items():
                if other in found and found[other] not in allowed:
                    where = f"{other!r} is {show(found[other])}"
                    raise SpaceError(f"fixed: {name!r} does not exist where {where}; leave one of them out")
                if other not in found and len(allowed) > 1:
                    raise SpaceError(
                        f"fixed: {name!r} exists for {other!r} in {listed(allowed)}; fix {other!r} as well"
                    )
                found.setdefault(other, allowed[0])
        return found

    def unit(self, name: str, value: object) -> float:
        """Where a parameter's value lies in [0, 1]."""
        parameter = self[name]
        return float(parameter._encode(np.array([parameter._check(name, value)], dtype=float))[0])

    def places(self, i: int, most: int) -> Array:
        """Where values of a dimension lie: all of them, or `most` that are spread evenly."""
        count = min(self.parameters[i].levels, most)
        return np.unique(self.parameters[i]._snap((np.arange(count) + 0.5) / count))

    def part(self, dims: Sequence[int]) -> Space:
        """Some of the parameters as a space of their own, without what they have to do with others."""
        return Space({self.names[i]: replace(self.parameters[i], when=()) for i in dims})  # type: ignore[type-var]

    def to_dict(self) -> dict[str, Any]:
        """A description that JSON can keep and `from_dict` reads back."""
        data: dict[str, Any] = {"params": [{"name": name, "type": p.kind, **p._to_dict()} for name, p in self._items()]}
        if self.context:
            data["context"] = list(self.context)
        if self.constraints:
            data["constraints"] = [constraint.to_dict() for constraint in self.constraints]
        return data

    @classmethod
    def from_dict(cls, data: object, known: Sequence[Known] = ()) -> Space:
        """The space that `to_dict` described.

        Args:
            data: what it returned.
            known: the `Known` constraints of the space, again: functions are not saved.

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
        assert isinstance(data, Mapping)
        constraints = constraints_from_dicts(data.get("constraints", []), known)
        return cls(parameters, context=data.get("context", ()), constraints=constraints)

    def _items(self) -> Iterator[tuple[str, Parameter]]:
        return zip(self.names, self.parameters, strict=True)

    def _params(self, numbers: Iterable[float]) -> dict[str, Choice]:
        return {name: p._value(x) for (name, p), x in zip(self._items(), numbers, strict=True)}

    def _floats(self, values: ArrayLike, *, ndims: tuple[int, ...], absent: bool = False) -> Array:
        """The values as a new float array whose last axis has length D; NaN stands where `absent` allows it."""
        shapes = " or ".join(("", f"({self.dim},)", f"(n, {self.dim})")[n] for n in ndims)
        try:
            array = np.asarray(values)
        except ValueError:  # rows of different lengths
            array = np.array(None)
        if array.dtype.kind not in "fiu" or array.ndim not in ndims or array.shape[-1] != self.dim:
            got = f"shape {array.shape}" if array.dtype.kind in "fiu" else show(values)
            raise SpaceError(f"point: expected an array of numbers of shape {shapes}, got {got}")
        missing = ~np.isfinite(array) & ~(np.isnan(array) & absent)
        bad = np.unique(np.argwhere(missing | np.ma.getmaskarray(values))[:, -1])  # type: ignore[arg-type]
        if bad.size:
            where = listed([self.names[i] for i in bad])
            raise SpaceError(f"point: expected finite numbers, got NaN, infinity or a mask in {where}; correct it")
        return array.astype(np.float64)


def _conditions(space: Space) -> tuple[_Condition, ...]:
    """The conditions, each after those on which it depends.

    Raises:
        SpaceError: One is on an unknown parameter or value, on one whose values cannot be counted, or they are in a
            circle.
    """
    found: dict[str, _Condition] = {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            circle = " -> ".join([*above[above.index(name) :], name])
            raise SpaceError(f"when: conditions in a circle, {circle}; leave one of them out")
        needs = []
        for other, values in space[name].conditions if name not in found else ():
            if other not in space.names:
                known = f"the space has {listed(space.names)}"
                raise SpaceError(f"parameter {name!r}: when is on an unknown {hinted(other, space.names)}; {known}")
            parameter = space[other]
            if not parameter.levels:
                advice = "give it a step, or depend on an Int, Ordinal or Categorical"
                raise SpaceError(f"parameter {name!r}: when is on {other!r}, whose values cannot be counted; {advice}")
            visit(other, (*above, name))
            try:
                numbers = np.array([parameter._check(other, value) for value in values], dtype=float)
            except SpaceError as error:
                raise SpaceError(f"parameter {name!r}: when: {error}") from None
            needs.append((space.names.index(other), numbers))
        if needs:
            found[name] = _Condition(space.names.index(name), tuple(needs))

    for name in space.names:
        visit(name, ())
    return tuple(found.values())


def _checked_context(space: Space, context: Sequence[str]) -> tuple[str, ...]:
    if not isinstance(context, list | tuple):
        raise SpaceError(f"context: expected a list of names, got {show(context)}")
    for name in context:
        if name not in space.names:
            raise SpaceError(f"context: unknown {hinted(name, space.names)}; name some of {listed(space.names)}")
        if space[name].when:
            raise SpaceError(f"context: {name!r} has a condition, and the world sets it always; leave out its when")
    if len(set(context)) == space.dim:
        raise SpaceError("context: names every parameter, and nothing is left to search; leave out those you set")
    return tuple(dict.fromkeys(context))


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
