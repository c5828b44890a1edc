"""Worker processes of our own: each evaluates one point at a time, can be killed alone, and dies with its parent.

`concurrent.futures` has process pools, but there one killed or hanging worker ends the whole pool with all that runs in
it, and workers whose parent was killed wait for ever.

A thread for each worker hands it the next point as soon as it is free, whatever the rest of the program is doing. Both
are started when there is a point for them: of very many workers no more than can be of use.
"""

import contextlib
import json
import os
import pickle
import queue
import secrets
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from typing import IO, Any

from sumbo.errors import SettingError
from sumbo.executors import EvaluationResult, described, too_long, worker

_FAREWELL = 2.0  # seconds in which a worker can end what it started before it is killed
_SPARE_FILES = 64  # for all but the workers' pipes, of which each worker has two
_TICK = 0.5  # seconds after which we look whether a worker still lives, should its pipe not tell
_START = """\
import json, sys
path, prints, mark = json.loads(sys.argv.pop())
sys.path[:] = path
from sumbo.executors.worker import main
main(prints, mark)
"""
STDOUT, STDERR = 1, 2


def portable(f: Callable[[Any], Any]) -> bytes:
    """The function as bytes that another process can read; lambdas, closures and functions of notebooks too."""
    import cloudpickle  # not needed before there are workers

    script = sys.modules.get("__mp_main__")  # what `__main__` is evaluate where multiprocessing started this process
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
    """So many of them at most, for one function. Once closed, neither they nor what they started is left.

    Args:
        f: the function of one argument, as `portable` made it.
        workers: how many.
        timeout: seconds that one call may take; None for no limit. A worker that takes longer is killed and replaced.
        prints: where what the function prints is to go: STDOUT or STDERR of this process.
    """

    def __init__(self, f: bytes, workers: int, timeout: float | None, *, prints: int = STDOUT) -> None:
        _check_files(workers)
        self._waiting: queue.SimpleQueue[tuple[Future[EvaluationResult], bytes] | None] = queue.SimpleQueue()
        self._hiring = f, timeout, prints
        self._most = workers
        self._workers: dict[_Worker, threading.Thread] = {}
        self._lock = threading.Lock()
        self._idle = threading.Semaphore(0)
        self._closed = False

    def submit(self, argument: Any) -> "Future[EvaluationResult]":
        """Call the function with this argument in the next worker that is free."""
        future: Future[EvaluationResult] = Future()
        self._waiting.put((future, pickle.dumps(argument)))
        if not self._idle.acquire(blocking=False) and len(self._workers) < self._most:
            worker = _Worker(*self._hiring)
            thread = threading.Thread(target=self._serve, args=(worker,), daemon=True)
            with self._lock:
                try:
                    thread.start()
                    self._workers[worker] = thread
                except RuntimeError as error:
                    if not self._workers:
                        raise _refused(error) from None
                    self._make_do(error)
        return future

    def close(self) -> None:
        """End all workers, with what they run."""
        self._closed = True
        with self._lock:
            workers = dict(self._workers)
        try:
            for _ in workers:
                self._waiting.put(None)
            for worker in workers:
                worker.dismiss()
            for thread in workers.values():
                thread.join()
        except BaseException:  # Ctrl-C: this process may end before the threads have seen to it
            for worker in workers:
                worker.kill()
            raise

    def _serve(self, worker: "_Worker") -> None:
        while (job := self._next()) is not None and not self._closed:
            future, argument = job
            try:
                worker.hire()
            except (OSError, RuntimeError) as error:
                with self._lock:
                    if len(self._workers) > 1:
                        del self._workers[worker]
                        self._waiting.put(job)
                        self._make_do(error)
                        return
                if future.set_running_or_notify_cancel():
                    future.set_exception(_refused(error))
                continue
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(worker.answer(argument))
                except BaseException as error:  # such as no memory: whoever waits is to know
                    future.set_exception(error)
        worker.bury()

    def _next(self) -> tuple["Future[EvaluationResult]", bytes] | None:
        try:
            return self._waiting.get_nowait()
        except queue.Empty:
            self._idle.release()
            return self._waiting.get()

    def _make_do(self, error: Exception) -> None:
        """Go on with the workers that there are: the system refuses another."""
        self._most = len(self._workers)
        warnings.warn(
            f"the system refuses another worker ({error}); the run goes on with as many as there are, {self._most}",
            RuntimeWarning,
            stacklevel=3,
        )


def _refused(error: Exception) -> SettingError:
    return SettingError(
        f"the system refuses to start a worker process: {error}. End other programs, or raise its limits on processes, "
        "memory and open files (ulimit -a shows them)"
    )


def _check_files(workers: int) -> None:
    """Refuse what cannot work before anything is evaluated; with no file left, all else would fail too."""
    if os.name != "posix":
        return
    import resource

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    most = max((limit - _SPARE_FILES) // 2, 1)
    if workers > most and limit != resource.RLIM_INFINITY:
        raise SettingError(
            f"{workers} workers at a time need {2 * workers} open files, and this process may have {limit}; say "
            f"workers = {most} or fewer, or raise the limit (ulimit -n)"
        )


class _Worker:
    """A place for one process, which is started when first needed and replaced when it is gone."""

    def __init__(self, f: bytes, timeout: float | None, prints: int) -> None:
        self._f = f
        self._timeout = timeout
        self._prints = prints
        self._process: subprocess.Popen[bytes] | None = None
        self._mark = ""
        self._frames: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._dismissed = False

    def hire(self) -> None:
        """See to it that there is a process."""
        if self._process is not None and self._process.poll() is None:
            return
        self.bury()
        self._mark = secrets.token_hex(8)
        # Workers fill the machine, so each keeps to one thread.
        marks = f"{os.environ.get(worker.MARK, '')} {self._mark}".strip()
        environment = os.environ | {"SUMBO_THREADS": "1", worker.MARK: marks}
        with _inheritable(self._prints) as prints:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START, json.dumps([sys.path, prints, self._mark])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                start_new_session=True,
                pass_fds=() if prints == STDERR else (prints,),
            )
        self._frames = queue.SimpleQueue()
        try:
            threading.Thread(target=_listen, args=(self._process.stdout, self._frames), daemon=True).start()
        except RuntimeError:
            self.bury()
            raise
        _say(self._process, self._f)

    def answer(self, argument: bytes) -> EvaluationResult:
        process = self._process
        assert process is not None
        began = time.monotonic()
        _say(process, argument)
        # The time that a new process takes to start is not the objective's.
        frame = self._frame(float("inf"))
        if frame == worker.BEGUN:
            began = time.monotonic()
            frame = self._frame(began + (float("inf") if self._timeout is None else self._timeout))
        seconds = time.monotonic() - began
        if frame is not None:
            return replace(_read(frame), seconds=seconds)
        late = self._timeout is not None and process.poll() is None and not self._dismissed
        self.bury()
        died = f"the worker process died ({_ending(process.returncode)})"
        return EvaluationResult(reason=too_long(self._timeout or 0.0) if late else died, seconds=seconds)

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

    def dismiss(self) -> None:
        """Ask it to end, with what it runs, and let it not be replaced."""
        self._dismissed = True
        if self._process is not None:
            _say_farewell(self._process)

    def bury(self) -> None:
        """See to it that it has ended, and all that it started."""
        process = self._process
        if process is None:
            return
        _say_farewell(process)
        try:
            process.wait(_FAREWELL)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        worker.end_marked(process.pid, self._mark)
        self._process = None

    def kill(self) -> None:
        """End it and all that it started, at once."""
        process = self._process
        if process is not None:
            process.kill()
            worker.kill_marked(process.pid, self._mark)


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
        while (frame := worker.receive(stream)) is not None:
            frames.put(frame)
    frames.put(None)


def _say(process: "subprocess.Popen[bytes]", data: bytes) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError, ValueError):  # it died or was dismissed this moment: `_frame` finds out
        worker.send(process.stdin, data)


def _say_farewell(process: "subprocess.Popen[bytes]") -> None:
    _say(process, worker.FAREWELL)
    assert process.stdin is not None
    with contextlib.suppress(OSError, ValueError):  # its thread may be writing or closing it at this moment
        process.stdin.close()


def _read(frame: bytes) -> EvaluationResult:
    try:
        answer = pickle.loads(frame)
    except Exception as error:  # unpickling runs the user's code, which may raise anything
        return EvaluationResult(reason=f"the objective's answer cannot be read ({described(error)}); return a number")
    assert isinstance(answer, EvaluationResult)
    return answer


def _ending(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit code {code}"
    name = worker.SIGNALS.get(-code)
    return f"signal {-code}" + (f", {name}" if name else "")
