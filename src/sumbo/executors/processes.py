"""Worker processes of our own: each evaluates one point at a time, can be killed alone, and dies with its parent.

`concurrent.futures` has process pools, but there one killed or hanging worker ends the whole pool with all that runs in
it, and workers whose parent was killed wait for ever.

A thread for each worker hands it the next point as soon as it is free, whatever the rest of the program is doing.
"""

import contextlib
import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from typing import IO, Any

from sumbo.errors import SettingError
from sumbo.executors import serving
from sumbo.executors.answers import Answer, described, too_long

_FAREWELL = 2.0  # seconds in which a worker can end what it started before it is killed
_TICK = 0.5  # seconds after which we look whether a worker still lives, should its pipe not tell
_START = """\
import json, sys
path, prints = json.loads(sys.argv.pop())
sys.path[:] = path
from sumbo.executors.serving import main
main(prints)
"""
STDOUT, STDERR = 1, 2


def portable(f: Callable[[Any], Any]) -> bytes:
    """The function as bytes that another process can read; lambdas, closures and functions of notebooks too.

    Raises:
        SettingError: it holds something that cannot leave this process.
    """
    import cloudpickle  # not needed before there are workers

    script = sys.modules.get("__mp_main__")  # what `__main__` is called where multiprocessing started this process
    if script is not None and script.__name__ == "__mp_main__":
        cloudpickle.register_pickle_by_value(script)
    try:
        return cloudpickle.dumps(f)
    except Exception as error:  # pickling runs the user's code, which may raise anything
        raise SettingError(
            f"the objective cannot be sent to worker processes: {described(error)}. Make inside of it what cannot be "
            "sent, such as locks, open files and connections; or evaluate in threads of this process with "
            "executor=concurrent.futures.ThreadPoolExecutor(N)"
        ) from None


class Processes:
    """A fixed number of them, for one function. Use as a context manager: none is left behind.

    Args:
        f: the function of one argument, as `portable` made it.
        workers: how many.
        timeout: seconds that one call may take; None for no limit. A worker that takes longer is killed and replaced.
        prints: where what the function prints is to go: STDOUT or STDERR of this process.
    """

    def __init__(self, f: bytes, workers: int, timeout: float | None, *, prints: int = STDOUT) -> None:
        self._waiting: queue.SimpleQueue[tuple[Future[Answer], bytes] | None] = queue.SimpleQueue()
        self._workers = [_Worker(f, timeout, prints) for _ in range(workers)]
        self._threads = [threading.Thread(target=self._serve, args=(w,), daemon=True) for w in self._workers]
        self._closed = False
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def submit(self, argument: Any) -> "Future[Answer]":
        """Call the function with this argument in the next worker that is free."""
        future: Future[Answer] = Future()
        self._waiting.put((future, pickle.dumps(argument)))
        return future

    def close(self) -> None:
        """End all workers, with what they run."""
        self._closed = True
        for _ in self._threads:
            self._waiting.put(None)
        for worker in self._workers:
            worker.dismiss()
        for thread in self._threads:
            thread.join()

    def _serve(self, worker: "_Worker") -> None:
        while (job := self._waiting.get()) is not None and not self._closed:
            future, argument = job
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(worker.answer(argument))
                except BaseException as error:  # such as no memory for another process: whoever waits is to know
                    future.set_exception(error)
        worker.bury()


class _Worker:
    """A place for one process, which is started when first needed and replaced when it is gone."""

    def __init__(self, f: bytes, timeout: float | None, prints: int) -> None:
        self._f = f
        self._timeout = timeout
        self._prints = prints
        self._process: subprocess.Popen[bytes] | None = None
        self._frames: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._dismissed = False

    def answer(self, argument: bytes) -> Answer:
        if self._process is None or self._process.poll() is not None:
            self._hire()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        began = time.monotonic()
        with contextlib.suppress(OSError, ValueError):  # it died or was dismissed this moment: `_frame` finds out
            serving.send(process.stdin, argument)
        # The time that a new process takes to start is not the objective's.
        frame = self._frame(float("inf"))
        if frame == serving.BEGUN:
            began = time.monotonic()
            frame = self._frame(began + (float("inf") if self._timeout is None else self._timeout))
        seconds = time.monotonic() - began
        if frame is not None:
            return replace(_read(frame), seconds=seconds)
        late = self._timeout is not None and process.poll() is None and not self._dismissed
        self.bury()
        died = f"the worker process died ({ending(process.returncode)})"
        return Answer(reason=too_long(self._timeout or 0.0) if late else died, seconds=seconds)

    def _frame(self, deadline: float) -> bytes | None:
        """The next thing that the process says; None if it is gone, or says nothing in time."""
        assert self._process is not None
        while not self._dismissed and (left := deadline - time.monotonic()) > 0.0:
            with contextlib.suppress(queue.Empty):
                frame = self._frames.get(timeout=min(left, _TICK))
                if frame is None:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        self._process.wait(_FAREWELL)
                return frame
            # A child of the objective may keep the pipe open when the worker is gone.
            if self._process.poll() is not None and self._frames.empty():
                return None
        return None

    def _hire(self) -> None:
        self.bury()
        # Workers fill the machine, so each keeps to one thread.
        environment = os.environ | {"SUMBO_THREADS": "1"}
        with _inheritable(self._prints) as prints:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START, json.dumps([sys.path, prints])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                start_new_session=True,
                pass_fds=() if prints == STDERR else (prints,),
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._frames = queue.SimpleQueue()
        threading.Thread(target=_listen, args=(self._process.stdout, self._frames), daemon=True).start()
        with contextlib.suppress(OSError, ValueError):
            serving.send(self._process.stdin, self._f)

    def dismiss(self) -> None:
        """Ask it to end, with what it runs, and let it not be replaced."""
        self._dismissed = True
        _close_input(self._process)

    def bury(self) -> None:
        """See to it that it has ended."""
        process, self._process = self._process, None
        if process is None:
            return
        _close_input(process)
        try:
            process.wait(_FAREWELL)
        except subprocess.TimeoutExpired:
            process.kill()
            if hasattr(os, "killpg"):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def _inheritable(prints: int) -> Iterator[int]:
    """A descriptor for a new process, which has other uses for the first two; its errors where there is none."""
    try:
        copy = os.dup(prints) if prints != STDERR and os.name == "posix" else STDERR
    except OSError:  # closed
        copy = STDERR
    try:
        yield copy
    finally:
        if copy != STDERR:
            os.close(copy)


def _listen(stream: IO[bytes], frames: "queue.SimpleQueue[bytes | None]") -> None:
    with contextlib.suppress(OSError, ValueError), stream:
        while (frame := serving.receive(stream)) is not None:
            frames.put(frame)
    frames.put(None)


def _close_input(process: "subprocess.Popen[bytes] | None") -> None:
    if process is not None and process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()


def _read(frame: bytes) -> Answer:
    try:
        answer = pickle.loads(frame)
    except Exception as error:  # unpickling runs the user's code, which may raise anything
        return Answer(reason=f"the objective's answer cannot be read ({described(error)}); return a number")
    assert isinstance(answer, Answer)
    return answer


def ending(code: int | None) -> str:
    """How a process ended, in words."""
    if code is None or code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {-code}, {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"
