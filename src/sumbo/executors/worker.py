"""The worker's side of `processes.py`: one function, one argument at a time, in a process of its own.

The worker reads from its standard input and answers on its standard output, both in frames: eight bytes of length, then
a pickle. The first frame is the function. It is a plain `python -c`, not a copy of the parent: nothing of the parent's
threads and locks comes along, and the user's script is not run again, so that it needs no `if __name__ == "__main__"`.
"""

import contextlib
import os
import pickle
import queue
import signal
import struct
import sys
import threading
import traceback
from collections.abc import Callable
from typing import IO, Any

from sumbo.executors import offspring
from sumbo.executors.results import evaluate

BEGUN = b"begun"  # the frame that says: the function is evaluate now
FAREWELL = b""  # the frame that says: end now; I see to what you started

at_end: list[Callable[[], None]] = []  # what to do before the worker ends because its parent wants so, or died

_LENGTH = struct.Struct("!Q")
_FAREWELL = 60.0  # seconds that what is to be done `at_end` may take


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

    Args:
        prints: the file descriptor where what the objective prints is to go.
        mark: what the environment of all that the objective starts holds, unless it is changed.
    """
    jobs, answers = _private_streams(prints)
    streams = {name: (number, os.dup(number)) for number, name in ((1, "stdout"), (2, "stderr"))}
    if not hasattr(os, "setsid"):  # elsewhere the parent has put us into a session that Ctrl-C does not reach
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    arrived: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    listener = threading.Thread(target=_listen, args=(jobs, arrived, mark), daemon=True)
    listener.start()
    function = _for_this_process(_function(arrived.get()))
    with contextlib.suppress(BrokenPipeError):  # the parent died: nobody wants an answer, or a word about that
        while True:
            data = arrived.get()
            send(answers, BEGUN)
            answer = _answer(function, data)
            _mend(streams)
            send(answers, answer)
    listener.join(_FAREWELL)  # it sees that too, and ends the process in its own way
    os._exit(1)


def _private_streams(prints: int) -> tuple[IO[bytes], IO[bytes]]:
    """Our end of the pipes, out of the objective's reach: it reads nothing, and prints elsewhere."""
    jobs, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(prints, 1)
    return jobs, answers


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
        offspring.kill(os.getpgrp(), mark)
    os._exit(1)


def _function(data: bytes) -> Callable[[Any], Any]:
    try:
        return pickle.loads(data)
    except Exception as error:  # a module that is not there, or that raises when imported
        problem = error

    def fail(_: Any) -> Any:
        raise problem

    return fail


def _for_this_process(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function, but for children that it forks and that come back from it: they end, and answer nothing."""
    own = os.getpid()

    def call(argument: Any) -> Any:
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


def _answer(function: Callable[[Any], Any], data: bytes) -> bytes:
    return pickle.dumps(evaluate(function, pickle.loads(data), (BaseException,)))
