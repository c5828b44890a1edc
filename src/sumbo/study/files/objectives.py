"""What is evaluated, as plain data that a worker process can be sent."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Function:
    """A Python function of a dict of parameters.

    Attributes:
        module, name: where it is found.
        folder: added to the module search path, and the working directory.
    """

    module: str
    name: str
    folder: str


@dataclass(frozen=True)
class Program:
    """Any program.

    Attributes:
        command: its arguments, with {name} for a parameter's value.
        parameters: "arguments", "environment", or "stdin" (as JSON).
        value: "last-line" of its output, or "json:KEY".
        folder: the working directory.
        timeout: seconds after which it is killed with all its children; None for never.
    """

    command: tuple[str, ...]
    parameters: str
    value: str
    folder: str
    timeout: float | None


Objective = Function | Program


@dataclass(frozen=True)
class Job:
    """One evaluation."""

    study: str
    number: int
    params: dict[str, Any]
