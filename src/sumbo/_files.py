"""Files that are there whole or not at all."""

import contextlib
import os
import secrets
import shutil
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Write a file at once: whatever happens meanwhile, what was there before is there, or all that is new.

    Raises:
        OSError: it cannot be written.
    """
    if path.exists() and not path.is_file():  # a pipe or a device
        path.write_bytes(data)
        return
    target = Path(os.path.realpath(path))  # a link stays one
    beside = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with beside.open("xb") as file:  # as private as the umask asks for
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, beside)
        beside.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
