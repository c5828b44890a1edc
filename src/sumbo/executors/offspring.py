"""What evaluations started, and how to end it. Imports nothing heavy: every worker does.

A worker leads a process group of its own, which is ended with it, on every POSIX system. On Linux, what has left the
group is found by a mark in its environment, which children inherit; also after the worker has died, when nothing else
tells whose they were.
"""

import contextlib
import os
import signal
import time

MARK = "SUMBO_WORKER"  # the variable that holds the marks of the workers above, innermost last

_GRACE = 1.0  # seconds from being asked to end to being killed


def kill_group(pid: int) -> None:
    """End a process that leads a group of its own, and everything in that group."""
    _signal_group(pid, signal.SIGKILL)


def end(group: int, mark: str) -> None:
    """End what is left of a worker that is gone: ask first, since what it shared with others may need to be removed."""
    if os.name != "posix":
        return
    until = time.monotonic() + _GRACE
    left = _signal_group(group, signal.SIGTERM)
    for pid in _marked(mark):
        left |= _signal(pid, signal.SIGTERM)
    while left and time.monotonic() < until:
        time.sleep(0.01)
        left = bool(_marked(mark)) if _LISTED else _signal_group(group, 0)
    kill(group, mark)


def kill(group: int, mark: str) -> None:
    """End everything at once, but for this process where it is not in that group."""
    if os.name != "posix":
        return
    until = time.monotonic() + _GRACE
    while (left := [pid for pid in _marked(mark) if pid != os.getpid()]) and time.monotonic() < until:
        for pid in left:
            _signal(pid, signal.SIGKILL)
        time.sleep(0.001)
    kill_group(group)


_LISTED = os.path.exists("/proc/self/environ")


def _marked(mark: str) -> list[int]:
    """Processes with the mark; not those that merely wait to be collected, whose environment is gone."""
    assert len(mark) > 8, "would be found everywhere"
    found: list[int] = []
    with contextlib.suppress(OSError):  # no file left to open
        for name in filter(str.isdecimal, os.listdir("/proc") if _LISTED else []):
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as environment:  # gone, or another's
                if mark.encode() in environment.read():
                    found.append(int(name))
    return found


def _signal_group(group: int, number: int) -> bool:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # gone already; or (macOS) waits to be collected
        os.killpg(group, number)
        return True
    return False


def _signal(pid: int, number: int) -> bool:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
        return True
    return False
