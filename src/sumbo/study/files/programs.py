"""A program as objective: its arguments, its environment, its input; its value from its output. Never a shell."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from sumbo.errors import StudyFileError
from sumbo.executors.offspring import kill_group
from sumbo.executors.results import EvaluationResult, result_of, too_long
from sumbo.study.files.objectives import Job, Program

# "{{" and "}}" stand for single braces, as in Python's format strings; anything else in braces is a parameter.
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_TAIL_LINES, _TAIL_BYTES = 10, 4000
_MAX_OUTPUT = 2**24


def placeholders(argument: str) -> list[str]:
    """The names in braces of one argument."""
    found = (match.group(1) for match in _PLACEHOLDER.finditer(argument))
    return [name for name in found if name is not None]


def filled(argument: str, params: dict[str, Any]) -> str:
    """The argument with values in place of names."""

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        return match.group(0)[0] if name is None else as_text(params[name])

    return _PLACEHOLDER.sub(value, argument)


def as_text(value: Any) -> str:
    """A parameter's value as a program or a sheet sees it: every digit of a number, booleans as in JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def check_program(program: Program) -> None:
    """Raise a StudyFileError if the program cannot be started, before a trial is spent on finding out."""
    name = program.command[0]
    if os.sep not in name:
        found = shutil.which(name) is not None
    else:
        path = Path(program.folder, name)
        found = path.is_file() and os.access(path, os.X_OK)
    if not found:
        raise StudyFileError(
            f"command: expected a program that can be run, got {name!r}; looked for it from {program.folder}. "
            "Give its path from the study file, and make it executable (chmod +x)"
        )


class Group:
    """The process group of the program that runs, if one does, for another thread to end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid: int | None = None

    def start(self, popen: Callable[[], "subprocess.Popen[bytes]"]) -> "subprocess.Popen[bytes]":
        """Start a program. Under the lock, so that none is running that `end` does not know of."""
        with self._lock:
            process = popen()
            self._pid = process.pid
            return process

    def forget(self) -> None:
        """The program has ended; its number may soon be another's."""
        with self._lock:
            self._pid = None

    def end(self) -> None:
        """End the program, and let no other start: the lock stays taken."""
        self._lock.acquire()
        if self._pid is not None:
            kill_group(self._pid)


def run_program(program: Program, job: Job, group: Group | None = None) -> EvaluationResult:
    """Run it once; another thread can end it through its group."""
    group = group or Group()
    arguments = [filled(a, job.params) if program.parameters == "arguments" else a for a in program.command]
    environment = os.environ | {"SUMBO_STUDY": job.study, "SUMBO_TRIAL": str(job.number)}
    if program.parameters == "environment":
        environment |= {name: as_text(value) for name, value in job.params.items()}
    # Files, not pipes: a child that the program leaves behind cannot keep us waiting, nor fill our memory.
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        if program.parameters == "stdin":
            stdin.write(json.dumps(job.params).encode())
            stdin.seek(0)
        try:
            process = group.start(
                lambda: subprocess.Popen(
                    arguments,
                    stdin=stdin,
                    stdout=out,
                    stderr=err,
                    env=environment,
                    cwd=program.folder,
                    start_new_session=True,
                )
            )
        except (OSError, ValueError) as error:  # not found, not executable, a NUL in an argument
            return EvaluationResult(reason=f"the program could not be started: {error}", kind="not started")
        try:
            code = process.wait(program.timeout)
            group.forget()
        except subprocess.TimeoutExpired:
            kill_group(process.pid)
            process.wait()
            group.forget()
            return EvaluationResult(reason=too_long(program.timeout or 0.0), detail=_tail(err))
        if code != 0:
            return EvaluationResult(reason=_ending(code), detail=_tail(err))
        outcome = read_value(_read(out, _MAX_OUTPUT), program.value)
        return outcome if outcome.reason is None else replace(outcome, detail=_tail(err))


def read_value(text: str, where: str) -> EvaluationResult:
    """The value that a program's output holds.

    Example:
        >>> read_value("warming up\\n0.25\\n", "last-line").value
        0.25
        >>> read_value('{"loss": {"test": 0.5}}', "json:loss.test").value
        0.5
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
    data = _parsed(text, lines[-1])
    for key in path.split("."):
        if not isinstance(data, dict) or key not in data:
            problem = f"the output must be JSON with the key {path!r}; its last line was {lines[-1]!r:.100}"
            return EvaluationResult(reason=problem, kind="no key")
        data = data[key]
    return result_of(data)


def _parsed(*texts: str) -> Any:
    """The first text that is JSON: the whole output, or its last line after other talk."""
    for text in texts:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            continue
    return None


def _ending(code: int) -> str:
    if code > 0:
        return f"exit code {code}"
    try:
        return f"ended by signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"ended by signal {-code}"


def _tail(file: IO[bytes]) -> str:
    return last_lines(_read(file, _TAIL_BYTES).splitlines())


def last_lines(lines: Iterable[str]) -> str:
    """The end of what was said, without blank lines at its end."""
    return "\n".join("\n".join(lines).rstrip().splitlines()[-_TAIL_LINES:])


def _read(file: IO[bytes], limit: int) -> str:
    """The last `limit` bytes of a file that a program wrote."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - limit, 0))
    return file.read().decode("utf-8", errors="replace")
