"""The methods by name, and their settings as JSON.

A package of somebody else's adds methods by entry points, a name and a class for each:

    [project.entry-points."sumbo.methods"]
    "annealing" = "acme.search:Annealing"

The class is a frozen dataclass, a `Method` whose `name` is that name. Its settings are JSON, `FitSettings` or methods.
"""

import dataclasses
from importlib.metadata import entry_points
from typing import Any

from sumbo.errors import SettingError, StateError, SumboError
from sumbo.gp.fit import FitSettings
from sumbo.methods.add_gp_ucb import AddGPUCB
from sumbo.methods.auto import Auto
from sumbo.methods.base import Deadline, Method, SuggestContext, Suggestion, check_count
from sumbo.methods.full_gp import GPEI, GPUCB
from sumbo.methods.model_free import Direct, Random
from sumbo.methods.nested import REMBO, CyclicGroups, SequentialGroups
from sumbo.space.parameters import closest

__all__ = ["GPEI", "GPUCB", "REMBO", "AddGPUCB", "Auto", "CyclicGroups", "Direct", "Random", "SequentialGroups"]
__all__ += ["Deadline", "Method", "SuggestContext", "Suggestion", "check_count"]
__all__ += ["METHODS", "method_class", "method_from_dict", "method_to_dict", "resolve"]

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (Auto, AddGPUCB, GPUCB, GPEI, REMBO, SequentialGroups, CyclicGroups, Direct, Random)
}
_SETTINGS: dict[str, Any] = {method.__name__: method for method in METHODS.values()} | {"FitSettings": FitSettings}


def resolve(method: str | Method) -> Method:
    """A method from its short name, or the method itself; a SettingError if there is none, which names the nearest."""
    return method if isinstance(method, Method) else method_class(method)()


def method_class(name: Any) -> type[Method]:
    """The class of a method, ours or an installed package's; a SettingError says why there is none to be used."""
    if isinstance(name, str) and name in METHODS:
        return METHODS[name]
    installed = entry_points(group="sumbo.methods")
    found = installed.select(name=name) if isinstance(name, str) else ()
    homes = {entry.value: entry for entry in found}
    if not homes:
        names = [*METHODS, *sorted(installed.names - set(METHODS))]
        near = closest(name, names)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise SettingError(f"method must be one of {', '.join(names)}, or a method object; got {name!r}.{hint}")
    if len(homes) > 1:
        raise SettingError(f"method {name!r} is in several packages: {', '.join(sorted(homes))}; uninstall all but one")
    ((home, entry),) = homes.items()
    try:
        kind = entry.load()
    except Exception as error:  # a module may raise anything when imported
        what = f"{type(error).__name__}: {error}"
        raise SettingError(f"method {name!r} cannot be imported from {home} ({what}); install it again") from error
    is_method = isinstance(kind, type) and issubclass(kind, Method) and dataclasses.is_dataclass(kind)
    if not is_method or kind.name != name:
        expected = f"expected a dataclass that is a sumbo.methods.Method with name = {name!r}"
        raise SettingError(f"method {name!r}: {expected}, got {home}; correct it there")
    return kind


def method_to_dict(method: Any) -> dict[str, Any]:
    """Settings as JSON, nested ones included."""
    kind = type(method).__name__
    ours = _SETTINGS.get(kind) is type(method)
    fields: dict[str, Any] = {"type": method.name if isinstance(method, Method) and not ours else kind}
    for field in dataclasses.fields(method):
        value = getattr(method, field.name)
        fields[field.name] = method_to_dict(value) if dataclasses.is_dataclass(value) else value
    return fields


def method_from_dict(data: Any) -> Any:
    """The settings that `method_to_dict` wrote; a StateError for an unknown type or setting, or a value refused."""
    name = data.get("type") if isinstance(data, dict) else None
    try:
        kind: Any = _SETTINGS[name] if name in _SETTINGS else method_class(name)
    except (SettingError, TypeError) as error:
        what = f"expected settings of one of {', '.join(_SETTINGS)}, or of a method of an installed package"
        raise StateError(f"method: {what}; got {data!r:.200}. Install the package that has it") from error
    known = {field.name for field in dataclasses.fields(kind)}
    unknown = sorted(set(data) - known - {"type"})
    if unknown:
        names = ", ".join(map(str, unknown))
        raise StateError(f"method: {name} has no setting {names}; was it saved by a newer sumbo?")
    given = {key: data[key] for key in known & set(data)}
    values = {key: method_from_dict(v) if isinstance(v, dict) else _tuples(v) for key, v in given.items()}
    try:
        return kind(**values)
    except (SumboError, TypeError, ValueError) as error:
        raise StateError(f"method: {name} cannot be restored: {error}") from None


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
