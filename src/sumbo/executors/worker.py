"""The worker's side of `processes.py`: one function, one argument at a time, in a process of its own.

The worker reads from its standard input and answers on its standard output, both in frames: eight bytes of length, then
a pickle. The first frame is the function. It is a plain `python -c`, not a copy of the parent: nothing of the parent's
threads and locks comes along, and the user's script is not run again, so that it needs no `if __name__ == "__main__"`.

A worker leads a process group of its own, which is ended with it, on every POSIX system. On Linux, what has left the
group is found by a mark in its environment, which children inherit; also after the worker has died, when nothing else
tells whose they were.
"""

import contextlib
import os
import pickle
import queue
import signal
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import IO, Any

from sumbo.executors import evaluate

BEGUN = b"begun"  # the frame that says: the function is evaluate now
FAREWELL = b""  # the frame that says: end now; I see to what you started

at_end: list[Callable[[], None]] = []  # what to do before the worker ends because its parent wants so, or died

SIGNALS = {number.value: number.name for number in signal.Signals}
MARK = "SUMBO_WORKER"  # the variable that holds the marks of the workers above, innermost last

_LENGTH = struct.Struct("!Q")
_FAREWELL = 60.0  # seconds that what is to be done `at_end` may take
_GRACE = 1.0  # seconds from being asked to end to being killed
_LISTED = os.path.exists("/proc/self/environ")  # can processes be found by their mark?


def send(stream: IO[bytes], data: bytes) -> None:
    """Write one frame."""
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes | None:
    """Read one frame; None at the end of the stream."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    return data if len(data) == length else None


def main(prints: int, mark: str) -> None:
    """Serve until the parent says farewell, or closes our standard input, which it also does by dying.

    What the objective prints goes to the file descriptor `prints`; the environment of all that it starts holds `mark`.
    """
    # Our end of the pipes, out of the objective's reach: it reads nothing, and prints elsewhere.
    jobs, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(prints, 1)
    streams = {name: (number, os.dup(number)) for number, name in ((1, "stdout"), (2, "stderr"))}
    if not hasattr(os, "setsid"):  # elsewhere the parent has put us into a session that Ctrl-C does not reach
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    arrived: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    listener = threading.Thread(target=_listen, args=(jobs, arrived, mark), daemon=True)
    listener.start()
    function = _function(arrived.get())
    with contextlib.suppress(BrokenPipeError):  # the parent died: nobody wants an answer, or a word about that
        while True:
            data = arrived.get()
            send(answers, BEGUN)
            answer = pickle.dumps(evaluate(function, pickle.loads(data), (BaseException,)))
            _mend(streams)
            send(answers, answer)
    listener.join(_FAREWELL)  # it sees that too, and ends the process in its own way
    os._exit(1)


def _mend(streams: dict[str, tuple[int, int]]) -> None:
    """What was printed goes out, and what the objective closed is open again for the next evaluation."""
    for name, (number, copy) in streams.items():
        try:
            os.fstat(number)
        except OSError:
            os.dup2(copy, number)
        with contextlib.suppress(Exception):  # the objective may have put anything there, None too
            stream = getattr(sys, name)
            if stream.closed:
                setattr(sys, name, os.fdopen(number, "w", errors="backslashreplace", closefd=False))
            else:
                stream.flush()


def _listen(jobs: IO[bytes], arrived: "queue.SimpleQueue[bytes]", mark: str) -> None:
    data = None
    with contextlib.suppress(OSError):
        while data := receive(jobs):
            arrived.put(data)
    for step in at_end:
        step()
    if data != FAREWELL and hasattr(os, "getpgrp") and os.getpgrp() == os.getpid():  # nobody else can do it
        kill_marked(os.getpgrp(), mark)
    os._exit(1)


def _function(data: bytes) -> Callable[[Any], Any]:
    """The function that was sent, but for children that it forks and that come back from it: they answer nothing."""
    own, problem = os.getpid(), None
    try:
        function: Callable[[Any], Any] = pickle.loads(data)
    except Exception as error:  # a module that is not there, or that raises when imported
        problem = error

    def call(argument: Any) -> Any:
        if problem is not None:
            raise problem
        try:
            return function(argument)
        finally:
            if os.getpid() != own:
                _end_fork(sys.exception())

    return call


def _end_fork(error: BaseException | None) -> None:
    """As the interpreter ends."""
    code = error.code if isinstance(error, SystemExit) else error is not None
    with contextlib.suppress(Exception):
        if not isinstance(error, SystemExit | None):
            traceback.print_exception(error)
        sys.stdout.flush()
    os._exit(code & 0xFF if isinstance(code, int) else code is not None)


def end_marked(group: int, mark: str) -> None:
    """End what is left of a worker that is gone: ask first, since what it shared with others may need to be removed."""
    if os.name != "posix":
        return
    until = time.monotonic() + _GRACE
    left = _signal(os.killpg, group, signal.SIGTERM)
    for pid in _marked(mark):
        left |= _signal(os.kill, pid, signal.SIGTERM)
    while left and time.monotonic() < until:
        time.sleep(0.01)
        left = bool(_marked(mark)) if _LISTED else _signal(os.killpg, group, 0)
    kill_marked(group, mark)


def kill_marked(group: int, mark: str) -> None:
    """End everything at once, but for this process where it is not in that group."""
    if os.name != "posix":
        return
    until = time.monotonic() + _GRACE
    while (left := [pid for pid in _marked(mark) if pid != os.getpid()]) and time.monotonic() < until:
        for pid in left:
            _signal(os.kill, pid, signal.SIGKILL)
        time.sleep(0.001)
    kill_group(group)


def kill_group(pid: int) -> None:
    """End a process that leads a group of its own, and everything in that group."""
    _signal(os.killpg, pid, signal.SIGKILL)


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


def _signal(send: Callable[[int, int], None], pid: int, number: int) -> bool:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # gone already; or (macOS) waits to be collected
        send(pid, number)
        return True
    return False
