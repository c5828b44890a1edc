"""Which process holds a lease on trials, and whether it still lives.

A process is known by its machine's current boot, its process namespace, its id and its start time, so that neither a
restarted machine, nor a container beside this one, nor a reused id is mistaken for it.
"""

import os
import socket
from pathlib import Path
from typing import Any

_PROC = Path("/proc")


def me() -> dict[str, Any]:
    """This process."""
    return {
        "host": socket.gethostname(),
        "place": _place(),
        "pid": os.getpid(),
        "started": _started(os.getpid()),
    }


def is_gone(holder: dict[str, Any]) -> bool:
    """Has the process ended for certain? False also where this cannot be told: its heartbeat decides then."""
    pid = holder.get("pid")
    if holder.get("place") != _place() or not isinstance(pid, int) or os.name != "posix":
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # it is there, and somebody else's
        pass
    return holder.get("started") != _started(pid)


def described(holder: dict[str, Any]) -> str:
    """The process, for a message."""
    return f"process {holder.get('pid')} on {holder.get('host')}"


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
