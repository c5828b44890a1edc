"""What the user knows about allowed inputs: linear conditions, mixtures, and cheap functions.

    Linear     lower <= sum_i c_i x_i <= upper, in the user's units
    SumTo      the same with c_i = 1 and lower = upper: shares of a mixture
    Known      g(params) <= 0

`sumbo.space.region` finds the points that they allow.
"""

from __future__ import annotations

import ast
import contextlib
import keyword
import math
import re
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from sumbo.errors import SpaceError
from sumbo.space.parameters import Choice, Float, Int, _number, closest, listed, show

if TYPE_CHECKING:
    from sumbo.space.space import Space

_LONGEST = 20_000  # characters of a condition in a study file


@dataclass(frozen=True, eq=True)
class Linear:
    """A known condition: lower <= sum of coefficients times parameters <= upper, in the user's units.

    With `lower == upper` it is an equality. Parameters are Floats and Ints.

    Raises:
        SpaceError: No coefficient other than zero, a number that is not finite, no bound, or lower > upper.

    Example:
        >>> print(sumbo.Linear({"a": 1, "b": 2}, upper=1.5))
        a + 2*b <= 1.5
    """

    coefficients: Mapping[str, float]
    lower: float | None = field(default=None, kw_only=True)
    upper: float | None = field(default=None, kw_only=True)
    name: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        given = self.coefficients
        if not isinstance(given, Mapping) or not given:
            raise SpaceError(f'Linear: expected a dict such as {{"a": 1, "b": 2}} with an entry, got {show(given)}')
        numbers: dict[str, float] = {}
        for name, value in given.items():
            if not isinstance(name, str) or not name:
                raise SpaceError(f"Linear: names must be non-empty strings, got {show(name)}; use those of the space")
            if (c := _number(value)) is None:
                raise SpaceError(f"Linear: the coefficient of {name!r} must be a finite number, got {show(value)}")
            numbers[name] = float(c)
        if not any(numbers.values()):
            raise SpaceError(f"Linear: all coefficients of {listed(tuple(numbers))} are 0; give one that is not")
        for side in ("lower", "upper"):
            value = getattr(self, side)
            if value is None:
                continue
            if (bound := _number(value)) is None:
                raise SpaceError(f"Linear: {side} must be a finite number or None, got {show(value)}; leave it out")
            object.__setattr__(self, side, float(bound) + 0.0)
        if self.lower is None and self.upper is None:
            raise SpaceError("Linear: neither lower nor upper was given; give one of them or both")
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise SpaceError(f"Linear: lower must not be above upper, got {self.lower} and {self.upper}; swap them")
        if self.name is not None and (not isinstance(self.name, str) or not self.name):
            raise SpaceError(f"Linear: name must be a non-empty string, got {show(self.name)}; leave it out")
        object.__setattr__(self, "coefficients", _Frozen(numbers))

    @property
    def equality(self) -> bool:
        """Does it leave one value to the sum?"""
        return self.lower == self.upper

    def __str__(self) -> str:
        terms = ""
        for name, c in self.coefficients.items():
            plain = name if name.isidentifier() and not keyword.iskeyword(name) else f"`{name}`"
            size = "" if abs(c) == 1.0 else f"{_plain(abs(c))}*"
            sign = ("-" if c < 0 else "") if not terms else (" - " if c < 0 else " + ")
            terms += f"{sign}{size}{plain}"
        if self.equality:
            return f"{terms} == {_plain(self.lower)}"
        left = "" if self.lower is None else f"{_plain(self.lower)} <= "
        return f"{left}{terms}" + ("" if self.upper is None else f" <= {_plain(self.upper)}")

    def to_dict(self) -> dict[str, Any]:
        """A description that JSON can keep and `from_dict` reads back."""
        bounds = {"lower": self.lower, "upper": self.upper, "name": self.name}
        return {"type": "linear", "coefficients": dict(self.coefficients), **bounds}


class _Frozen(dict[str, float]):
    """A dict that cannot be changed, but can be hashed, copied and pickled."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return _Frozen, (dict(self),)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("the coefficients of a Linear cannot be changed; make another Linear")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse


def SumTo(names: Sequence[str], total: float, *, name: str | None = None) -> Linear:
    """A mixture: these parameters add up to `total`, in the user's units.

    Raises:
        SpaceError: Not a list of different names, or a total that is not a finite number.

    Example:
        >>> print(sumbo.SumTo(["a", "b", "c"], 1.0))
        a + b + c == 1
    """
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise SpaceError(f"SumTo: expected a list of names with an entry, got {show(names)}")
    if not all(isinstance(n, str) for n in names) or len(set(names)) < len(names):
        raise SpaceError(f"SumTo: expected different names, got {listed(names)}; give each parameter once")
    if _number(total) is None:
        raise SpaceError(f"SumTo: total must be a finite number, got {show(total)}")
    return Linear(dict.fromkeys(names, 1.0), lower=total, upper=total, name=name)


@dataclass(frozen=True)
class Known:
    """A known condition: a cheap function of the params (a dict) that is at most 0 where a point is allowed.

    Raises:
        SpaceError: Not a function, or no name. When called: the function raised or returned no number.

    Example:
        >>> heat = sumbo.Known(lambda p: p["temp"] - 10 * p["layers"], name="heat")
        >>> heat({"temp": 20.0, "layers": 3})
        -10.0
    """

    function: Callable[[dict[str, Choice]], float]
    name: str = field(kw_only=True)

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise SpaceError(f"Known: expected a function of a dict of params, got {show(self.function)}")
        if not isinstance(self.name, str) or not self.name:
            raise SpaceError(f"Known: name must be a non-empty string, got {show(self.name)}; messages use it")

    def __call__(self, params: dict[str, Choice]) -> float:
        try:
            value = self.function(dict(params))  # a copy: what it does to it stays with it
        except Exception as error:  # the user's function raises anything
            raise self._failed(params, f"{type(error).__name__}: {error}") from error
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if math.isnan(number):
            raise self._failed(params, show(value))
        return number

    def _failed(self, params: dict[str, Choice], got: str) -> SpaceError:
        where = f"known constraint {self.name!r} at {show(params, 300)}"
        return SpaceError(f"{where}: expected a number, got {got}; correct the function")

    def __str__(self) -> str:
        return f"{self.name} <= 0"

    def to_dict(self) -> dict[str, Any]:
        """A description that JSON can keep; the function has to be given again when it is read."""
        return {"type": "known", "name": self.name}


Constraint: TypeAlias = Linear | Known

_COMPARISON = re.compile(r"\s*(.+?)\s*(<=|>=)\s*(\S+)\s*")


@dataclass(frozen=True)
class OutcomeConstraint:
    """A constraint that only an evaluation tells: what is measured under this name is at most, or at least, a limit."""

    name: str
    limit: float = 0.0
    at_least: bool = False

    @classmethod
    def parse(cls, text: object) -> OutcomeConstraint:
        """From "stress", which is at most 0 where a point is feasible, or "stress <= 250".

        Raises:
            SpaceError: neither of these.
        """
        if isinstance(text, cls):
            return text
        form = "a name, at most 0 where a point is feasible, or a comparison such as 'stress <= 250'"
        if not isinstance(text, str) or not text.strip():
            raise SpaceError(f"constraints: expected {form}, got {show(text)}")
        if not re.search("[<>=]", text):
            return cls(text.strip())
        if (match := _COMPARISON.fullmatch(text)) and not re.search("[<>=]", match[1]):
            with contextlib.suppress(ValueError):
                if math.isfinite(limit := float(match[3])):
                    return cls(match[1], limit, match[2] == ">=")
        raise SpaceError(f"constraints: expected {form}, got {show(text)}")

    def amount(self, measured: float) -> float:
        """By how much it is broken; at most 0 where it holds."""
        return self.limit - measured if self.at_least else measured - self.limit

    def __str__(self) -> str:
        return f"{self.name} {'>=' if self.at_least else '<='} {_plain(self.limit)}"


def parse_outcomes(constraints: object) -> tuple[OutcomeConstraint, ...]:
    """The constraints that evaluations tell, from a list of names and comparisons.

    Raises:
        SpaceError: something else, or a name twice.
    """
    if isinstance(constraints, str) or not isinstance(constraints, Sequence):
        raise SpaceError(f"constraints: expected a list such as ['stress'], got {show(constraints)}")
    found = tuple(map(OutcomeConstraint.parse, constraints))
    for i, constraint in enumerate(found):
        if constraint.name in [other.name for other in found[:i]]:
            raise SpaceError(f"constraints: {constraint.name!r} is there twice; measure it under two names")
    return found


def from_dict(data: object, functions: Mapping[str, Callable[..., float]] | None = None) -> Constraint:
    """The constraint that `to_dict` described; the functions of Known ones, by name.

    Raises:
        SpaceError: Anything but such a description, or a Known whose function is missing.
    """
    kind = data.get("type") if isinstance(data, Mapping) else None
    if not isinstance(data, Mapping) or kind not in ("linear", "known"):
        raise SpaceError(f'saved constraint: expected a dict with "type" linear or known, got {show(data)}')
    keys = ("type", "coefficients", "lower", "upper", "name") if kind == "linear" else ("type", "name")
    needed = keys[1:2]
    if not set(needed) <= set(data) <= set(keys):
        raise SpaceError(f"saved constraint: the keys of {kind} are {listed(keys)}, got {listed(tuple(data))}")
    if kind == "linear":
        return Linear(data["coefficients"], lower=data.get("lower"), upper=data.get("upper"), name=data.get("name"))
    name = data["name"]
    if not isinstance(name, str) or name not in (functions or {}):
        raise SpaceError(
            f"saved constraint: the function of the known constraint {show(name)} is needed; give it again"
        )
    return Known((functions or {})[name], name=name)


def constraints_from_dicts(data: object, known: Iterable[Known] = ()) -> list[Constraint]:
    """The constraints that `to_dict` described; functions are not saved, and are given again.

    Raises:
        SpaceError: Anything but such a list, or a Known that is missing.
    """
    if not isinstance(data, list | tuple):
        raise SpaceError(f"saved constraints: expected a list, got {show(data)}")
    functions = {constraint.name: constraint.function for constraint in known}
    return [from_dict(entry, functions) for entry in data]


def check_constraints(space: Space, constraints: Iterable[object]) -> tuple[Constraint, ...]:
    """The constraints, if they fit the space.

    Raises:
        SpaceError: Something else than a constraint, a name that the space does not have or that two Known share, a
            Linear of something else than Floats and Ints, or numbers too large to add.
    """
    checked: list[Constraint] = []
    for constraint in constraints:
        if not isinstance(constraint, Linear | Known):
            raise SpaceError(f"constraints: expected Linear, SumTo or Known, got {show(constraint)}")
        if isinstance(constraint, Known):
            if any(isinstance(c, Known) and c.name == constraint.name for c in checked):
                raise SpaceError(f"constraints: two Known are named {constraint.name!r}; rename one")
        else:
            for name in constraint.coefficients:
                if name not in space.names:
                    raise SpaceError(f"constraint {show_constraint(constraint)}: {_unknown(name, space.names)}")
                parameter = space[name]
                if constraint.equality and parameter.when:
                    problem = f"an equality cannot hold with {name!r}, which exists for some points only"
                    raise SpaceError(f"constraint {show_constraint(constraint)}: {problem}; allow a range")
                if not isinstance(parameter, Float | Int):
                    problem = f"expected Float or Int parameters, got {name!r}, which is {type(parameter).__name__}"
                    raise SpaceError(f"constraint {show_constraint(constraint)}: {problem}; use Known for it")
            terms = [abs(c) * (space[n].high / 4 - space[n].low / 4) for n, c in constraint.coefficients.items()]
            if not sum(terms) < 1e300:
                raise SpaceError(f"constraint {show_constraint(constraint)}: its sums overflow; use narrower ranges")
        checked.append(constraint)
    return tuple(checked)


def conditional(space: Space, constraint: Linear) -> Known:
    """A Linear of parameters that exist for some points only, as a function: those that do not count as 0."""
    size = sum(abs(c) * max(abs(space[n].low), abs(space[n].high)) for n, c in constraint.coefficients.items()) or 1.0

    def excess(params: dict[str, Choice]) -> float:
        there = {name: value for name, value in params.items() if isinstance(value, int | float)}
        total = sum(c * there.get(name, 0.0) for name, c in constraint.coefficients.items())
        below = -math.inf if constraint.lower is None else constraint.lower - total
        return max(below, -math.inf if constraint.upper is None else total - constraint.upper) / size

    return Known(excess, name=constraint.name or str(constraint))


def show_constraint(constraint: Constraint) -> str:
    """For a message: its name, if it has one, and what it says."""
    text = str(constraint) if len(str(constraint)) <= 200 else f"{str(constraint)[:200]}..."
    return f"{constraint.name!r} ({text})" if constraint.name else f"({text})"


def parse_linear(text: str, names: Sequence[str]) -> Linear:
    """The condition that a study file states, such as "a + 2*b <= 1", "0.5 <= a - b <= 1" or "a + b + c == 1".

    Names that Python could not read stand in backquotes. The text is never run as code.

    Raises:
        SpaceError: Anything that is not a linear condition on these parameters.
    """
    if not isinstance(text, str):
        raise SpaceError(f"condition: expected text such as 'a + 2*b <= 1', got {show(text)}")
    if len(text) > _LONGEST:
        raise SpaceError(f"condition {show(text)}: expected at most {_LONGEST} characters, got {len(text)}; shorten it")
    quoted: dict[str, str] = {}

    def unquote(match: re.Match[str]) -> str:
        return f" {quoted.setdefault(match[1], _stand_in(len(quoted), text))} "

    plain = re.sub(r"(?<![<>=!:])=(?!=)", "==", re.sub("`([^`]+)`", unquote, text))
    try:
        with warnings.catch_warnings(action="ignore"):  # Python's own, about text that is refused below
            tree = ast.parse(" ".join(plain.split()), mode="eval").body
        return _Reader(text, names, {v: k for k, v in quoted.items()}).condition(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        if isinstance(error, SpaceError):
            raise
        problem = "it cannot be read" if isinstance(error, SyntaxError | ValueError) else "it is too deep or large"
        advice = "write it like 'a + 2*b <= 1', other names than Python's in backquotes"
        raise SpaceError(f"condition {show(text)}: {problem}; {advice}") from None


_SIGNS = {ast.LtE: -1, ast.GtE: 1, ast.Eq: 0}


@dataclass(frozen=True)
class _Reader:
    """Walks a parsed text and adds up coefficients. The key None holds the constant."""

    text: str
    names: Sequence[str]
    quoted: Mapping[str, str]

    def condition(self, node: ast.expr) -> Linear:
        if not isinstance(node, ast.Compare):
            self.refuse("expected a comparison with <=, >= or ==")
        signs = [_SIGNS[type(op)] for op in node.ops if type(op) in _SIGNS]
        if len(signs) < len(node.ops):
            self.refuse("compare with <=, >= or ==")
        sides = [self.terms(side) for side in (node.left, *node.comparators)]
        if len(sides) == 2:
            sign = signs[0]
            if set(sides[0]) <= {None}:  # 1 >= a: kept as it was written, with a on the left
                sides, sign = sides[::-1], -sign
            difference = _added(sides[0], sides[1], -1.0)
            bound = 0.0 - difference.pop(None, 0.0)
            lower, upper = (bound if sign >= 0 else None), (bound if sign <= 0 else None)
        else:
            ends = [set(side) <= {None} for side in sides]
            if len(sides) != 3 or signs not in ([-1, -1], [1, 1]) or ends != [True, False, True]:
                self.refuse("of two comparisons, write them as low <= expression <= high")
            difference = sides[1]
            shift = difference.pop(None, 0.0)
            lower, upper = (sides[k].get(None, 0.0) - shift for k in ((0, 2) if signs[0] == -1 else (2, 0)))
        coefficients = {str(name): c for name, c in difference.items() if c != 0.0}
        if not coefficients:
            self.refuse("there is no parameter left in it")
        try:
            return Linear(coefficients, lower=lower, upper=upper)
        except SpaceError as error:
            self.refuse(str(error))

    def terms(self, node: ast.expr) -> dict[str | None, float]:
        if isinstance(node, ast.Constant):
            if (number := _number(node.value)) is None:
                self.refuse(f"expected a finite number, got {show(node.value)}")
            return {None: float(number)}
        if isinstance(node, ast.Name):
            name = self.quoted.get(node.id, node.id)
            if name not in self.names:  # Python normalises what it reads
                same = [n for n in self.names if unicodedata.normalize("NFKC", n) == name]
                name = same[0] if same else self.refuse(_unknown(name, self.names))
            return {name: 1.0}
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            return _scaled(self.terms(node.operand), -1.0 if isinstance(node.op, ast.USub) else 1.0)
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
            self.refuse("only names, numbers, + - * / and brackets are allowed")
        if isinstance(node.op, ast.Add | ast.Sub):
            return self.total(node)
        left, right = self.terms(node.left), self.terms(node.right)
        if isinstance(node.op, ast.Div):
            if set(right) != {None} or not right[None]:
                self.refuse("division is by numbers other than 0 only")
            return {name: c / right[None] for name, c in left.items()}
        if set(left) != {None} and set(right) != {None}:
            self.refuse("a product of parameters is not linear; use Known in Python for it")
        return _scaled(right, left[None]) if set(left) == {None} else _scaled(left, right[None])

    def total(self, node: ast.expr) -> dict[str | None, float]:
        """A long sum nests to the left: read without a call for each term."""
        parts: list[tuple[ast.expr, float]] = []
        while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            parts.append((node.right, 1.0 if isinstance(node.op, ast.Add) else -1.0))
            node = node.left
        terms = dict(self.terms(node))
        for part, sign in reversed(parts):
            terms = _added(terms, self.terms(part), sign)
        return terms

    def refuse(self, problem: str) -> NoReturn:
        raise SpaceError(f"condition {show(self.text)}: {problem}")


def _added(a: dict[str | None, float], b: dict[str | None, float], sign: float) -> dict[str | None, float]:
    return {**a, **{name: a.get(name, 0.0) + sign * c for name, c in b.items()}}


def _scaled(terms: dict[str | None, float], factor: float) -> dict[str | None, float]:
    return {name: factor * c for name, c in terms.items()}


def _stand_in(number: int, text: str) -> str:
    """An identifier that the text does not hold."""
    name = f"quoted_{number}"
    while name in text:
        name += "_"
    return name


def _unknown(name: str, names: Sequence[str]) -> str:
    near = closest(name, names)
    hint = f"did you mean {near[0]!r}?" if near else f"the space has {listed(names)}"
    return f"no parameter {show(name)}; {hint}"


def _plain(number: float | None) -> str:
    return f"{number:g}" if number is not None and float(f"{number:g}") == number else repr(number)
