"""What a study file has evaluated: a function by name, or any program. Plain data that a worker process can be sent.

A program gets its parameters as arguments, in its environment or on its input; its value is in its output. Never a
shell.
"""

import contextlib
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import IO, Any

from sumbo._redaction import safe
from sumbo.errors import StudyFileError
from sumbo.executors import Evaluation, EvaluationResult, result_of, too_long, worker

# "{{" and "}}" stand for single braces, as in Python's format strings; anything else in braces is a parameter.
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_TAIL_LINES, _TAIL_BYTES = 10, 4000
_MAX_OUTPUT = 2**24
_NOTHING = object()


@dataclass(frozen=True)
class Function:
    """A Python function of a dict of parameters."""

    module: str
    name: str
    folder: str  # added to the module search path, and the working directory


@dataclass(frozen=True)
class Program:
    """Any program."""

    command: tuple[str, ...]  # its arguments, with {name} for a parameter's value
    parameters: str  # "arguments", "environment", or "stdin" (as JSON)
    value: str  # "last-line" of its output, or "json:KEY"
    folder: str  # the working directory
    timeout: float | None  # seconds after which it is killed with all its children; None for never
    constraints: tuple[str, ...] = ()  # what it reports beside its value, by name
    conditional: tuple[str, ...] = ()  # parameters that exist for some trials only


Objective = Function | Program


@dataclass(frozen=True)
class Job:
    """One evaluation."""

    study: str
    number: int
    params: dict[str, Any]


def evaluate(objective: Objective, job: Job) -> EvaluationResult:
    """Evaluate one job. An exception of the objective is the worker's to report."""
    if isinstance(objective, Function):
        folder = objective.folder
        if sys.path[0] != folder and os.path.isdir(folder):  # another machine may have it installed
            sys.path.insert(0, folder)
            os.chdir(folder)
        # Imported at the first call, so that a mistake in its module is a failed trial with a reason.
        function = getattr(importlib.import_module(objective.module), objective.name)
        return result_of(function(dict(job.params)))
    result = run_program(objective, job)
    # With what the program printed.
    return result if result.reason is None else replace(result, reason=safe(result.reason), detail=safe(result.detail))


def placeholders(argument: str) -> list[str]:
    """The names in braces of one argument."""
    found = (match.group(1) for match in _PLACEHOLDER.finditer(argument))
    return [name for name in found if name is not None]


def filled(argument: str, params: dict[str, Any]) -> str:
    """The argument with values in place of names; nothing in that of a parameter that does not exist here."""

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        return match.group(0)[0] if name is None else as_text(params.get(name, ""))

    return _PLACEHOLDER.sub(value, argument)


def as_text(value: Any) -> str:
    """A parameter's value as a program or a sheet sees it: every digit of a number, booleans as in JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def check_program(program: Program) -> None:
    """Raise a StudyFileError if the program cannot be started, before a trial is spent on finding out."""
    name = program.command[0]
    if shutil.which(os.path.join(program.folder, name) if os.sep in name else name) is None:
        raise StudyFileError(
            f"command: expected a program that can be run, got {name!r}; looked for it from {program.folder}. "
            "Give its path from the study file, and make it executable (chmod +x)"
        )


def run_program(program: Program, job: Job) -> EvaluationResult:
    """Run it once. A worker process of our own ends it when it must end itself."""
    lock = threading.Lock()
    running: list[int] = []  # the leader of its process group

    def end() -> None:
        """End the program, and let no other start: the lock stays taken."""
        lock.acquire()
        for pid in running:
            worker.kill_group(pid)

    worker.at_end[:] = [end]
    arguments = [filled(a, job.params) if program.parameters == "arguments" else a for a in program.command]
    environment = os.environ | {"SUMBO_STUDY": job.study, "SUMBO_TRIAL": str(job.number)}
    if program.parameters == "environment":
        # A variable that happens to be there is not a parameter that does not exist.
        environment = {name: text for name, text in environment.items() if name not in program.conditional}
        environment |= {name: as_text(value) for name, value in job.params.items()}
    # Files, not pipes: a child that the program leaves behind cannot keep us waiting, nor fill our memory.
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        if program.parameters == "stdin":
            stdin.write(json.dumps(job.params).encode())
            stdin.seek(0)
        try:
            streams: dict[str, Any] = {"stdin": stdin, "stdout": out, "stderr": err}
            with lock:  # so that none is running that `end` does not know of
                process = subprocess.Popen(
                    arguments, **streams, env=environment, cwd=program.folder, start_new_session=True
                )
                running.append(process.pid)
        except (OSError, ValueError) as error:  # not found, not executable, a NUL in an argument
            return EvaluationResult(reason=f"the program could not be started: {error}", kind="not started")
        try:
            code = process.wait(program.timeout)
        except subprocess.TimeoutExpired:
            worker.kill_group(process.pid)
            process.wait()
            return EvaluationResult(reason=too_long(program.timeout or 0.0), detail=_tail(err))
        finally:
            with lock:  # it has ended, and its number may soon be another's
                running.clear()
        if code != 0:
            return EvaluationResult(reason=_ending(code), detail=_tail(err))
        outcome = read_value(_read(out, _MAX_OUTPUT), program.value, program.constraints)
        return outcome if outcome.reason is None else replace(outcome, detail=_tail(err))


def read_value(text: str, where: str, constraints: Sequence[str] = ()) -> EvaluationResult:
    """The value that a program's output holds; of JSON, also what it measured for constraints, and "std".

    Example:
        >>> read_value("warming up\\n0.25\\n", "last-line").value
        0.25
        >>> read_value('{"loss": {"test": 0.5}}', "json:loss.test").value
        0.5
        >>> read_value('{"loss": 0.5, "stress": 240, "std": 0.1}', "json:loss", ["stress"]).constraints
        {'stress': 240.0}
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return EvaluationResult(reason="the program printed nothing; its last line must be the value")
    if where == "last-line":
        try:
            return result_of(float(lines[-1]))
        except ValueError:
            problem = f"the last line of the output must be a number; got {lines[-1]!r:.100}"
            return EvaluationResult(reason=problem, kind="no number")
    path = where.removeprefix("json:")
    data = None
    for part in (lines[-1], text):  # all of the output if that is JSON, else its last line, after other talk
        with contextlib.suppress(ValueError, RecursionError):
            data = json.loads(part)
    found = {name: _under(data, name) for name in (path, *constraints)}
    missing = [name for name, values in found.items() if not values]
    if missing:
        problem = f"the output must be JSON with the key {missing[0]!r}; its last line was {lines[-1]!r:.100}"
        return EvaluationResult(reason=problem, kind="no key")
    value, std = found[path][0], None if "std" in found else _under(data, "std")
    return result_of(Evaluation(value, constraints={n: found[n][0] for n in constraints}, std=std[0] if std else None))


def _under(data: Any, path: str) -> list[Any]:
    """What JSON has under this key, or this path of keys; empty if it has not."""
    for keys in ([path], path.split(".")):
        part = data
        for key in keys:
            part = part.get(key, _NOTHING) if isinstance(part, dict) else _NOTHING
        if part is not _NOTHING:
            return [part]
    return []


def _ending(code: int) -> str:
    if code > 0:
        return f"exit code {code}"
    name = worker.SIGNALS.get(-code)
    return f"ended by signal {-code}" + (f" ({name})" if name else "")


def _tail(file: IO[bytes]) -> str:
    """The end of what was said, without blank lines at its end."""
    return "\n".join(_read(file, _TAIL_BYTES).rstrip().splitlines()[-_TAIL_LINES:])


def _read(file: IO[bytes], limit: int) -> str:
    """The last `limit` bytes of a file that a program wrote."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - limit, 0))
    return file.read().decode("utf-8", errors="replace")
