"""Ctrl-C and SIGTERM wait while sumbo computes, and are acted upon between two steps.

Python acts upon a signal between any two of its instructions: also while compiled code hands over what it found, which
makes a SystemError of it, or between two lists that belong together. So while sumbo computes a signal is noted only.
Its handler, whoever's that is, is called between two steps, and at once while the user's own code runs or workers are
waited for.

Only the main thread gets signals: in others all of this does nothing. Signals without a handler written in Python stay
as they are.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_PATIENCE = 10.0  # seconds after which a signal that comes again is acted upon wherever we are

_holding = False
_handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}  # by signal, those in whose place ours is
_noted: dict[int, float] = {}  # by signal, when it came; those that were not acted upon yet


def held() -> "_Switch":
    """Signals wait inside, as far as nobody polls. May be nested. The last one out acts upon those that came."""
    return _Switch(hold=True)


def let_in() -> "_Switch":
    """Around the user's code, in the midst of `held`: signals do there what they always do."""
    return _Switch(hold=False)


def poll() -> None:
    """Act upon what was noted: here nothing is lost if a handler raises."""
    while _noted and _in_main_thread():
        number, _ = _noted.popitem()
        _handlers[number](number, sys._getframe())


def taken(queue: "SimpleQueue[T]", seconds: float | None) -> list[T]:
    """All that is in the queue; if nothing is, wait that long for it, or without end. A signal ends the waiting.

    A queue of this kind can be left by an exception at any moment; the locks of `concurrent.futures.wait` would stay
    locked. What was taken then is gone: whoever put it there must know it by other means too.
    """
    found = []
    with let_in():
        try:
            found.append(queue.get(timeout=seconds))
        except Empty:
            return []
    while not queue.empty():
        found.append(queue.get())
    return found


class _Switch:
    """A context manager; not made of a generator, which could be left half-way and finished at any later time."""

    def __init__(self, *, hold: bool) -> None:
        self._hold = hold
        self._switched = False

    def __enter__(self) -> None:
        if _holding == self._hold or not _in_main_thread():
            return
        self._switched = True
        try:
            _switch(self._hold)
        except BaseException:
            _switch(not self._hold)
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._switched:
            _switch(not self._hold)
        # What compiled code of the user's makes of a Ctrl-C.
        cause = error.__cause__ if isinstance(error, SystemError) else None
        if isinstance(cause, KeyboardInterrupt):
            raise cause


def _switch(hold: bool) -> None:
    global _holding
    _holding = hold  # before all else: should a handler raise below, ours does the right thing wherever it is left
    for number in _SIGNALS:
        present = signal.getsignal(number)
        if hold and callable(present) and present is not _note:
            _handlers[number] = present
            signal.signal(number, _note)
        elif not hold and present is _note:
            signal.signal(number, _handlers[number])
    if not hold:
        poll()


def _note(number: int, frame: FrameType | None) -> None:
    now = time.monotonic()
    if not _holding or now - _noted.setdefault(number, now) > _PATIENCE:
        _noted.pop(number, None)
        _handlers[number](number, frame)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _forget() -> None:
    """A forked process is a worker of somebody's, who expects that signals do what they always do."""
    _noted.clear()
    _switch(hold=False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
