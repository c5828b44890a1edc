"""The study file: what it may say, checked key by key, so that a typing error shows before a trial is spent on it."""

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from sumbo._redaction import may_hold_secret, safe, shown
from sumbo.errors import SpaceError, StudyFileError, SumboError
from sumbo.executors.objectives import Function, Objective, Program, placeholders
from sumbo.regret import Direction
from sumbo.space import Space
from sumbo.space.constraints import Linear, OutcomeConstraint, parse_linear, parse_outcomes
from sumbo.space.parameters import KINDS, Choice, Parameter, closest, listed, show
from sumbo.study.files.cells import alike, plain

if TYPE_CHECKING:
    from sumbo.methods import Method

GOALS = ("minimize", "maximize")
KNOWLEDGE = ("together", "apart", "groups", "max_group_size")

_KEYS = (
    *("name", "goal", "space", "objective", "command", "parameters", "value", "timeout", "retries", "budget", "seed"),
    *("method", "storage", "workers", "executor", "max_seconds", "context", "constraints", "known", *KNOWLEDGE),
)
# Of each type of parameter, the keys that it needs and those that it may have.
_SPACE_KEYS = {
    "float": (("low", "high"), ("log", "step", "when")),
    "int": (("low", "high"), ("log", "step", "when")),
    "ordinal": (("choices",), ("when",)),
    "categorical": (("choices",), ("when",)),
}
_PLACES = ("storage", "executor")
_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


@dataclass(frozen=True)
class StudyFile:
    """A study file, checked."""

    path: Path
    name: str  # the study's in its storage
    goal: Direction
    space: Space
    constraints: tuple[OutcomeConstraint, ...]  # on what is measured beside the value
    objective: Objective | None  # None for experiments by hand
    budget: int | None  # evaluations; None where the command line must say
    seed: int | None  # None where one is to be drawn when the study begins
    method: str
    settings: dict[str, Any]  # the method's, unchecked
    storage: str = field(repr=False)  # URL of the database, with paths made absolute
    workers: int | None  # evaluations at a time; None for one, or as many as the executor has
    executor: str | None = field(repr=False)  # "dask://HOST:PORT" for a cluster; None for processes of this machine
    timeout: float | None  # seconds for one evaluation; None for no limit
    retries: int  # how often a failed evaluation is tried again
    max_seconds: float | None  # after which a run begins no evaluation more; None for no limit

    @property
    def value_column(self) -> str:
        """What a sheet calls the value."""
        return f"value to {self.goal}"

    @property
    def measured(self) -> tuple[str, ...]:
        """What constraints are on, by name."""
        return tuple(constraint.name for constraint in self.constraints)

    def column(self, name: str) -> str:
        """What a sheet calls something beside parameters and constraints, which may be called so too."""
        taken = {plain(other).lower() for other in (*self.space, *self.measured)}
        while name in taken:
            name = f"trial {name}"
        return name


def load(path: str | Path) -> StudyFile:
    """Read and check a study file; a StudyFileError names the file and the key that is unknown, missing or wrong."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            data = tomllib.load(file)
    except FileNotFoundError:
        raise StudyFileError(f"{path}: there is no such file; give the path of a study file (TOML)") from None
    except OSError as error:
        what = f"cannot be read: {error.strerror or error}"
        raise StudyFileError(f"{path}: {what}; give a file that you may read") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StudyFileError(f"{path}: expected a TOML file in UTF-8, got: {error}; correct that place") from None
    return _Table(path, data).study()


def urls_of(path: str | Path) -> list[str]:
    """What in a file may hold a password, wherever it stands; nothing if it cannot be read."""
    try:
        return list(_urls(tomllib.loads(Path(path).read_text(encoding="utf-8"))))
    except (OSError, ValueError, RecursionError):
        return []


def method_of(study: StudyFile) -> "Method":
    """The method with its settings; a StudyFileError if there is none such, or it cannot search this study."""
    from sumbo.methods import method_class  # compiled code: only those who ask need it
    from sumbo.study.optimizer import Optimizer

    try:
        kind = method_class(study.method)
        known = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # methods are dataclasses
        unknown = [key for key in study.settings if key not in known]
        if not unknown:
            method = kind(**study.settings)
            Optimizer(study.space, method, constraints=study.constraints)  # type: ignore[arg-type]  # are parsed
            return method
    except SpaceError as error:  # known constraints that allow no point
        raise StudyFileError(f"{study.path}: {error}") from None
    except (SumboError, TypeError, ValueError) as error:
        raise StudyFileError(f"{study.path}: method: {error}") from None
    advice = advice_on(unknown[0], known, f"it has {', '.join(known) or 'none'}")
    raise StudyFileError(f"{study.path}: method {study.method!r} has no setting {unknown[0]!r}; {advice}")


class _Table:
    """The keys of a file, taken one at a time."""

    def __init__(self, path: Path, data: dict[str, Any]) -> None:
        self._path = path
        self._data = data
        self._urls = tuple(_urls(data))
        self._folder = path.resolve().parent

    def study(self) -> StudyFile:
        self._check_keys(self._data, _KEYS, "")
        goal = self._text("goal", None)
        if goal not in GOALS:
            self._wrong("goal", "minimize or maximize", goal, advice_on(goal, GOALS, "say what is wanted of the value"))
        name = self._text("name", self._path.stem)
        space = self._space(goal)
        constraints = self._constraints(goal, space)
        method, settings = self._method(space)
        timeout = self._positive("timeout")
        return StudyFile(
            path=self._path,
            name=name,
            goal="minimize" if goal == "minimize" else "maximize",
            space=space,
            constraints=constraints,
            objective=self._objective(space, constraints, timeout),
            budget=self._count("budget", None, 1),
            seed=self._count("seed", None, 0),
            method=method,
            settings=settings,
            storage=self._storage(name),
            workers=self._count("workers", None, 1),
            executor=self._executor(),
            timeout=timeout,
            retries=self._count("retries", 0, 0) or 0,
            max_seconds=self._positive("max_seconds"),
        )

    def _objective(
        self, space: Space, constraints: Sequence[OutcomeConstraint], timeout: float | None
    ) -> Objective | None:
        if "objective" in self._data and "command" in self._data:
            self._wrong("command", "either objective or command", "both", "remove one of them")
        if "command" in self._data:
            return self._program(space, [constraint.name for constraint in constraints], timeout)
        for key in ("parameters", "value"):
            if key in self._data:
                self._wrong(key, "this key with command only", self._data[key], "remove it, or give a command")
        if "objective" not in self._data:
            return None
        text = self._text("objective", None)
        if not _FUNCTION.fullmatch(text):
            advice = 'such as "wing:drag" for drag in wing.py beside this file'
            self._wrong("objective", '"module:function"', text, advice)
        module, _, function = text.partition(":")
        return Function(module, function, str(self._folder))

    def _program(self, space: Space, measured: list[str], timeout: float | None) -> Program:
        command = self._data["command"]
        if not isinstance(command, list) or not command or not all(isinstance(a, str) for a in command):
            self._wrong("command", "a list of strings", command, 'such as ["./sim", "--angle", "{angle}"]')
        ways = ("arguments", "environment", "stdin")
        parameters = self._one_of("parameters", self._data.get("parameters", "arguments"), ways)
        value = self._data.get("value", "last-line")
        if value != "last-line" and not (isinstance(value, str) and re.fullmatch("json:.+", value)):
            self._wrong("value", '"last-line" or "json:KEY"', value, "say where in the output the value is")
        if measured and value == "last-line":
            advice = f"print a JSON object with the value and {listed(measured)}, and name the value's key"
            self._wrong("value", '"json:KEY", since there are constraints', value, advice)
        if parameters == "arguments":
            self._check_placeholders(command, space)
        for name in space if parameters == "environment" else ():
            if not re.fullmatch(r"[^=\0]+", name):
                self._wrong(f"space.{name}", "a name for an environment variable", name, "rename it, without '='")
        conditional = tuple(name for name in space if space[name].when)
        return Program(tuple(command), parameters, value, str(self._folder), timeout, tuple(measured), conditional)

    def _check_placeholders(self, command: list[str], space: Space) -> None:
        used = [name for argument in command for name in placeholders(argument)]
        for name in used:
            if name not in space.names:
                advice = advice_on(name, space.names, "write {{ and }} for braces that are meant as they are")
                self._wrong("command", f"names in braces among {listed(space.names)}", f"{{{name}}}", advice)
        unused = [name for name in space.names if name not in used]
        if unused:
            advice = 'add it, or pass parameters = "environment" or "stdin"'
            self._wrong("command", "each parameter in braces somewhere", f"no {{{unused[0]}}}", advice)

    def _space(self, goal: str) -> Space:
        tables = self._data.get("space")
        if not isinstance(tables, dict) or not tables:
            self._wrong("space", "a table for each parameter", tables, "such as [space.angle] with type, low and high")
        taken = ("trial", f"value to {goal}")
        for name in tables:
            if plain(name).lower() in taken or name != name.strip() or not name:
                advice = f"rename it; {listed(taken)} are taken by sheets"
                self._wrong(f"space.{name}", "a name of its own without blanks around it", name, advice)
        self._check_apart("space", "names", tables)
        parameters = {name: self._parameter(f"space.{name}", table) for name, table in tables.items()}
        context = self._data.get("context", [])
        self._made("space", parameters)
        space = self._made("context", parameters, context=context)
        known = [self._known(f"known[{i}]", text, space) for i, text in enumerate(self._texts("known"))]
        return self._made("known", parameters, context=context, constraints=known) if known else space

    def _made(self, key: str, parameters: dict[str, Parameter], **more: Any) -> Space:
        """A space; what is wrong with it is so because of this key."""
        try:
            return Space(parameters, **more)
        except SpaceError as error:
            text = safe(error, *self._urls).removeprefix(f"{key}: ")
            raise StudyFileError(f"{self._path}: {key}: {text}") from None

    def _known(self, key: str, text: str, space: Space) -> Linear:
        try:
            return parse_linear(text, space.names)
        except SpaceError as error:
            raise StudyFileError(f"{self._path}: {key}: {safe(error, *self._urls)}") from None

    def _constraints(self, goal: str, space: Space) -> tuple[OutcomeConstraint, ...]:
        """The constraints that are told with values, which have columns of their own in sheets."""
        try:
            found = parse_outcomes(self._texts("constraints"))
        except SpaceError as error:
            raise StudyFileError(f"{self._path}: {safe(error, *self._urls)}") from None
        for name in (constraint.name for constraint in found):
            if plain(name).lower() in ("trial", f"value to {goal}"):
                self._wrong("constraints", "a name that sheets do not use", name, "rename it")
        self._check_apart("constraints", "names", [*space, *(constraint.name for constraint in found)])
        return found

    def _texts(self, key: str) -> list[str]:
        found = self._data.get(key, [])
        if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
            examples = {"known": "angle + 2*sweep <= 40", "constraints": "stress <= 250"}
            self._wrong(key, "a list of texts", found, f'such as ["{examples[key]}"]')
        return found

    def _parameter(self, key: str, table: Any) -> Parameter:
        if not isinstance(table, dict):
            advice = 'such as {type = "float", low = 0.0, high = 1.0}'
            self._wrong(key, "a table with type, low and high", table, advice)
        kind = self._one_of(f"{key}.type", table.get("type"), tuple(_SPACE_KEYS))
        needed, other = _SPACE_KEYS[kind]
        self._check_keys(table, ("type", *needed, *other), f"{key}.")
        missing = [name for name in needed if name not in table]
        if missing:
            raise StudyFileError(f"{self._path}: {key}.{missing[0]} is missing; a {kind} needs it")
        try:
            parameter = KINDS[kind](**{k: v for k, v in table.items() if k != "type"})
        except SpaceError as error:
            raise StudyFileError(f"{self._path}: {key}: {safe(error, *self._urls)}") from None
        self._check_apart(f"{key}.choices", "choices", parameter.choices)
        return parameter

    def _check_apart(self, key: str, what: str, values: Iterable[Choice]) -> None:
        """Results come back in tables, whatever else the study does: there, every value must be itself."""
        pair = alike(values)
        if pair is not None:
            got = " and ".join(f"{safe(repr(value), *self._urls):.80}" for value in pair)
            expected = f"{what} that a table of results can tell apart"
            raise StudyFileError(f"{self._path}: {key}: expected {expected}, got {got}; drop one, or rename it")

    def _method(self, space: Space) -> tuple[str, dict[str, Any]]:
        method = self._data.get("method", "auto")
        settings: dict[str, Any] = {}
        if isinstance(method, dict):
            settings = {key: _tuples(value) for key, value in method.items() if key != "name"}
            method = method.get("name")
        if not isinstance(method, str):
            expected = 'a name, or a table such as {name = "add-gp-ucb", group_size = 4}'
            self._wrong("method", expected, method, "name one")
        for key in KNOWLEDGE:
            if key in self._data:
                if key in settings:
                    self._wrong(key, "to be said once", "it and method." + key, "remove one of them")
                settings[key] = _tuples(self._data[key])
        for key in ("together", "apart", "groups"):
            self._check_named(key, settings.get(key, ()), space)
        return method, settings

    def _check_named(self, key: str, groups: Any, space: Space) -> None:
        """Lists of names, each of which the space has; what they mean together is the method's to check."""
        if not isinstance(groups, tuple) or not all(isinstance(group, tuple) for group in groups):
            self._wrong(key, "a list of lists of names", self._data.get(key), 'such as [["angle", "sweep"]]')
        for name in (name for group in groups for name in group):
            if name not in space.names:
                advice = advice_on(name, space.names, "name parameters of this study")
                self._wrong(key, f"names among {listed(space.names)}", name, advice)

    def _storage(self, name: str) -> str:
        file = re.sub(r"[^-.+ @,=~\w]", "_", name)
        url = self._text("storage", f"sqlite:///{file}.db")
        if url.startswith("sqlite:///"):
            database = url.removeprefix("sqlite:///")
            if not database or database == ":memory:":
                self._wrong("storage", "a file for SQLite", url, 'such as "sqlite:///wing.db": memory forgets')
            return f"sqlite:///{self._folder / database}"
        if not re.match(r"postgresql(\+\w+)?://.", url):
            self._wrong("storage", '"sqlite:///FILE.db" or "postgresql://USER@HOST/DATABASE"', url, "correct it")
        return url

    def _executor(self) -> str | None:
        if "executor" not in self._data:
            return None
        given = self._text("executor", None)
        if not re.fullmatch(r"dask://([\w.-]+|\[[\da-fA-F:.]+\]):[0-9]{1,5}", given):
            advice = "correct it; for processes of this machine, remove it and say workers = N"
            self._wrong("executor", '"dask://HOST:PORT", the address of a Dask scheduler', given, advice)
        return given

    def _one_of(self, key: str, value: Any, known: Sequence[str]) -> str:
        if value not in known:
            self._wrong(key, f"one of {listed(known)}", value, advice_on(value, known, "take one of them"))
        return str(value)

    def _text(self, key: str, default: str | None) -> str:
        if key not in self._data and default is None:
            raise StudyFileError(f"{self._path}: {key} is missing; every study needs it")
        value = self._data.get(key, default)
        if not isinstance(value, str) or not value.strip():
            self._wrong(key, "a text in quotes", value, "write it in quotes")
        return value

    def _count(self, key: str, default: int | None, least: int) -> int | None:
        value = self._data.get(key, default)
        if key in self._data and (isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**63):
            self._wrong(key, f"a whole number from {least} up", value, "correct it")
        return value

    def _positive(self, key: str) -> float | None:
        value = self._data.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= sys.float_info.max:
            self._wrong(key, "a number of seconds above 0", value, "leave it out for no limit")
        return float(value)

    def _check_keys(self, table: Mapping[str, Any], known: Sequence[str], prefix: str) -> None:
        for key in table:
            if key not in known:
                advice = advice_on(key, known, "remove it")
                name, names = show(prefix + key, urls=self._urls), f"the keys are {', '.join(known)}"
                raise StudyFileError(f"{self._path}: unknown key {name}; {names}; {advice}")

    def _wrong(self, key: str, expected: str, got: object, advice: str) -> NoReturn:
        text = show(got, urls=self._urls)
        if key in _PLACES and isinstance(got, str):  # a password may be all that it says
            text = repr(shown(got)) if "://" in got else "a text without ://"
        elif key in _PLACES:
            name = type(got).__name__
            text = {"dict": "a table", "list": "a list"}.get(name, f"a value of type {name}")
        raise StudyFileError(f"{self._path}: {key}: expected {expected}, got {text}; {advice}")


def _urls(data: dict[str, Any]) -> Iterator[str]:
    """Texts that look like URLs, and all that is said about storage and executor."""
    left: list[tuple[Any, bool]] = [(data, False)]
    while left:  # no recursion: dotted keys nest as deep as one likes
        found, known = left.pop()
        if isinstance(found, dict):
            left += [(key, False) for key in found]
            left += [(value, known or key.casefold() in _PLACES) for key, value in found.items()]
        elif isinstance(found, list):
            left += [(value, known) for value in found]
        elif isinstance(found, str) and (known or may_hold_secret(found)):
            yield found


def advice_on(given: object, known: Sequence[str] | Mapping[str, Any], otherwise: str) -> str:
    """A hint at what was meant, if something known is like it."""
    near = closest(given, known)
    return f"did you mean {near[0]!r}?" if near else otherwise


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
