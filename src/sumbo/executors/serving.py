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
from collections.abc import Callable
from typing import IO, Any

from sumbo.executors.answers import Answer, called, described

BEGUN = b"begun"  # the frame that says: the function is called now

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


def main(prints: int) -> None:
    """Serve until the parent closes our standard input, which it also does by dying.

    Args:
        prints: the file descriptor where what the objective prints is to go.
    """
    jobs, answers = _private_streams(prints)
    if not hasattr(os, "setsid"):  # elsewhere the parent has put us into a session that Ctrl-C does not reach
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    arrived: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    listener = threading.Thread(target=_listen, args=(jobs, arrived), daemon=True)
    listener.start()
    function = _function(arrived.get())
    with contextlib.suppress(BrokenPipeError):  # the parent died: nobody wants an answer, or a word about that
        while True:
            data = arrived.get()
            send(answers, BEGUN)
            send(answers, _answer(function, data))
    listener.join(_FAREWELL)  # it sees that too, and ends the process in its own way
    os._exit(1)


def _private_streams(prints: int) -> tuple[IO[bytes], IO[bytes]]:
    """Our end of the pipes, out of the objective's reach: it reads nothing, and prints elsewhere."""
    jobs, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(prints, 1)
    return jobs, answers


def _listen(jobs: IO[bytes], arrived: "queue.SimpleQueue[bytes]") -> None:
    with contextlib.suppress(OSError):
        while (data := receive(jobs)) is not None:
            arrived.put(data)
    for step in at_end:
        step()
    os._exit(1)


def _function(data: bytes) -> Callable[[Any], Any]:
    try:
        return pickle.loads(data)
    except Exception as error:  # a module that is not there, or that raises when imported
        problem = error

    def fail(_: Any) -> Any:
        raise problem

    return fail


def _answer(function: Callable[[Any], Any], data: bytes) -> bytes:
    answer = called(function, pickle.loads(data))
    sys.stdout.flush()
    try:
        return pickle.dumps(answer)
    except Exception as error:  # pickling runs the user's code, which may raise anything
        what = f"the objective's answer, of type {type(answer.value).__name__}, cannot be sent back"
        return pickle.dumps(Answer(reason=f"{what} ({described(error)}); return a number"))
