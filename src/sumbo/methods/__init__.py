"""The methods by name, and their settings as JSON."""

import dataclasses
import difflib
from typing import Any

from sumbo.errors import SettingError, StateError, SumboError
from sumbo.fit import FitSettings
from sumbo.methods.add_gp_ucb import AddGPUCB
from sumbo.methods.auto import Auto
from sumbo.methods.base import Deadline, Method, Query, Suggestion, check_count
from sumbo.methods.cyclic_groups import CyclicGroups
from sumbo.methods.direct import Direct
from sumbo.methods.gp_ei import GPEI
from sumbo.methods.gp_ucb import GPUCB
from sumbo.methods.random import Random
from sumbo.methods.rembo import REMBO
from sumbo.methods.sequential_groups import SequentialGroups

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (Auto, AddGPUCB, GPUCB, GPEI, REMBO, SequentialGroups, CyclicGroups, Direct, Random)
}
_SETTINGS: dict[str, Any] = {method.__name__: method for method in METHODS.values()} | {"FitSettings": FitSettings}


def resolve(method: str | Method) -> Method:
    """A method from its short name, or the method itself.

    Raises:
        SettingError: no such method; the message names the nearest.
    """
    if isinstance(method, Method):
        return method
    if isinstance(method, str) and method in METHODS:
        return METHODS[method]()
    near = difflib.get_close_matches(str(method), METHODS, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise SettingError(f"method must be one of {', '.join(METHODS)}, or a method object; got {method!r}.{hint}")


def method_to_dict(method: Any) -> dict[str, Any]:
    """Settings as JSON, nested ones included."""
    fields: dict[str, Any] = {"type": type(method).__name__}
    for field in dataclasses.fields(method):
        value = getattr(method, field.name)
        fields[field.name] = method_to_dict(value) if dataclasses.is_dataclass(value) else value
    return fields


def method_from_dict(data: Any) -> Any:
    """The settings that `method_to_dict` wrote.

    Raises:
        StateError: an unknown type or setting, or a value that it refuses.
    """
    if not isinstance(data, dict) or data.get("type") not in _SETTINGS:
        raise StateError(f"method: expected settings of one of {', '.join(_SETTINGS)}; got {data!r:.200}")
    kind = _SETTINGS[data["type"]]
    known = {field.name for field in dataclasses.fields(kind)}
    unknown = sorted(set(data) - known - {"type"})
    if unknown:
        raise StateError(
            f"method: {data['type']} has no setting {', '.join(map(str, unknown))}; was it saved by a newer sumbo?"
        )
    values = {name: _setting(data[name]) for name in known & set(data)}
    try:
        return kind(**values)
    except (SumboError, TypeError, ValueError) as error:
        raise StateError(f"method: {data['type']} cannot be restored: {error}") from None


def _setting(value: Any) -> Any:
    if isinstance(value, dict):
        return method_from_dict(value)
    return _tuples(value)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value


__all__ = [
    "GPEI",
    "GPUCB",
    "METHODS",
    "REMBO",
    "AddGPUCB",
    "Auto",
    "CyclicGroups",
    "Deadline",
    "Direct",
    "Method",
    "Query",
    "Random",
    "SequentialGroups",
    "Suggestion",
    "check_count",
    "method_from_dict",
    "method_to_dict",
    "resolve",
]
