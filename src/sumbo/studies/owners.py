"""Who is evaluating a trial, and whether that process still lives.

A process is known by its machine's current boot, its process namespace, its id and its start time, so that neither a
restarted machine, nor a container beside this one, nor a reused id is mistaken for it.
"""

import os
import socket
from pathlib import Path
from typing import Any

RUN, HAND = "run", "hand"

_PROC = Path("/proc")


def me(by: str) -> dict[str, Any]:
    """The record that a trial of this process carries; `by` is RUN, or HAND for one that a person evaluates."""
    return {
        "by": by,
        "host": socket.gethostname(),
        "place": _place(),
        "pid": os.getpid(),
        "started": _started(os.getpid()),
    }


def is_gone(owner: dict[str, Any]) -> bool:
    """Has the owner ended for certain? False also where this cannot be told: its heartbeat decides then."""
    pid = owner.get("pid")
    if owner.get("place") != _place() or not isinstance(pid, int) or os.name != "posix":
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # it is there, and somebody else's
        pass
    return owner.get("started") != _started(pid)


def described(owner: dict[str, Any]) -> str:
    """The owner, for a message."""
    return f"process {owner.get('pid')} on {owner.get('host')}"


def _place() -> str:
    """Where process ids mean the same as here."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink(_PROC / 'self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _started(pid: int) -> str | None:
    """When the process started, in the machine's own count; None where the machine does not say.

    None too for one that has ended and waits to be collected by its parent, which in a container may be never.
    """
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # from field 3 on; the name, field 2, may hold blanks and brackets
    return None if fields[0] in "ZX" else fields[19]
