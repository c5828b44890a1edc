"""A PostgreSQL server of one's own, which can be killed and started again."""

import getpass
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

PASSWORD = "correct horse"
_READY = "ready to accept connections"
_TIME = 120.0  # seconds in which a server must start or end


def tool(name: str) -> str | None:
    """A program of PostgreSQL, which Debian keeps out of the path."""
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)
    return shutil.which(name) or (str(places[0]) if places else None)


def server_user() -> str | None:
    """Whom the server runs as: it refuses to be root."""
    if os.geteuid() != 0:
        return getpass.getuser()
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    return None


def is_installed() -> bool:
    return tool("initdb") is not None and tool("postgres") is not None and server_user() is not None


class Server:
    """A server on a free port, with its data in a folder that everybody may enter.

    Args:
        folder: where to keep everything; a new one.
        settings: settings of the server, such as "fsync=off", which is quicker and forgets when the machine stops.
    """

    def __init__(self, folder: Path, *settings: str) -> None:
        initdb, postgres, user = tool("initdb"), tool("postgres"), server_user()
        assert initdb is not None
        assert postgres is not None
        assert user is not None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"postgresql://sumbo:{quote(PASSWORD)}@127.0.0.1:{port}/postgres"
        self._as_user: dict[str, Any] = {"user": user} if os.geteuid() == 0 else {}
        self._log = folder / "log"
        folder.joinpath("password").write_text(PASSWORD)
        folder.chmod(0o755)
        data = folder / "data"
        data.mkdir(mode=0o700)
        if self._as_user:
            shutil.chown(data, user)
        make = [initdb, "-D", data, "-U", "sumbo", "-A", "scram-sha-256", f"--pwfile={folder / 'password'}", "-N"]
        subprocess.run(make, check=True, capture_output=True, cwd="/", **self._as_user)
        options = [f"port={port}", "listen_addresses=127.0.0.1", f"unix_socket_directories={data}", *settings]
        self._command = [postgres, "-D", str(data), *(part for option in options for part in ("-c", option))]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and wait until it answers. What a killed one left behind may have to end first."""
        deadline = time.monotonic() + _TIME
        while time.monotonic() < deadline:
            with self._log.open("w") as log:
                self._process = subprocess.Popen(self._command, stdout=log, stderr=log, cwd="/", **self._as_user)
            while self._process.poll() is None and time.monotonic() < deadline:
                if _READY in self._log.read_text():
                    return
                time.sleep(0.05)
            time.sleep(0.2)
        raise RuntimeError(f"PostgreSQL did not start: {self._log.read_text()}")

    def end(self, how: signal.Signals) -> None:
        """End it. SIGINT: without waiting for clients; SIGQUIT: as `pg_ctl -m immediate`; SIGKILL: by force."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(_TIME)
            self._process = None

    def kill_connection(self, pick: float) -> bool:
        """Kill the server's part of one connection, of all at `pick` between 0 and 1; False if there is none.

        The server then ends all others too, and recovers from its log.
        """
        assert self._process is not None
        found = [pid for pid in children(self._process.pid) if b"sumbo" in _title(pid)]
        if found:
            os.kill(found[int(pick * len(found))], signal.SIGKILL)
        return bool(found)


def children(pid: int) -> list[int]:
    """The processes that this one has started, through whichever of its threads."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(word) for word in path.read_text().split()]
        except OSError:  # it ended this moment
            continue
    return found


def _title(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
