"""One thread for linear algebra while sumbo computes, and threads for the kernel loops where the user wants them.

Matrices here are small: BLAS's threads cost more than they bring, fight each other when several workers share a
machine, and make sums depend on how many there are. A run must not.

The kernel loops can be shared among threads without that harm. They are one by default, so that many workers never
oversubscribe a machine; `use(4)` or the environment's SUMBO_THREADS=4 is for a single search with cores to spare.

Example:
    >>> sumbo.threads.use(1)
    >>> sumbo.threads.count()
    1
"""

import functools
import importlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from threadpoolctl import LibController, OpenBLASController, ThreadpoolController

from sumbo import _interrupts
from sumbo.errors import SettingError

_lock = threading.Lock()
_depth = 0
_before: list[int] = []


@functools.cache
def _libraries() -> list[LibController]:
    """Every BLAS that is loaded, found once: that takes milliseconds, and every ask comes here."""
    importlib.import_module("scipy.linalg")  # brings a BLAS of its own
    return ThreadpoolController().select(user_api="blas").lib_controllers


def _limit(counts: list[int]) -> None:
    """So many threads for each library.

    Newer threadpoolctl lets one thread of the program set limits, and others do nothing without a word. Here any may
    be the first to come or the last to leave.
    """
    _let_any_thread(force=True)
    for library, count in zip(_libraries(), counts, strict=True):
        library.set_num_threads(count)
    _let_any_thread(force=True)


_let_any_thread = getattr(OpenBLASController, "clear_controlling_thread", lambda force: None)


@contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra on one thread inside; as it was afterwards. May be nested, and used from several threads.

    Signals are held: this is where sumbo computes.
    """
    global _depth, _before
    with _interrupts.held():
        with _lock:
            if _depth == 0:
                _before = [library.get_num_threads() for library in _libraries()]
                _limit([1] * len(_before))
            _depth += 1
        try:
            yield
        finally:
            with _lock:
                _depth -= 1
                if _depth == 0:
                    _limit(_before)


on_one_thread = one_thread()  # as a decorator


_LEAST = 150  # rows of a kernel matrix below which threads cost more than they bring

_count: int | None = None  # None: as the environment says


def use(count: int) -> None:
    """Share the kernel loops among so many threads, in this process. Changes the speed, no result.

    Raises:
        SettingError: it is not a whole number from 1 up.
    """
    global _count
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise SettingError(f"the number of threads must be a whole number from 1 up; got {count!r}")
    _count = count


def count() -> int:
    """How many threads the kernel loops use."""
    if _count is None:
        given = os.environ.get("SUMBO_THREADS", "1")
        if not given.isdecimal() or int(given) < 1:
            raise SettingError(f"SUMBO_THREADS must be a whole number from 1 up; got {given!r}")
        use(int(given))
    return _count or 1


def pieces(rows: int) -> int:
    """Into how many pieces to cut the work on a matrix of so many rows."""
    return count() if rows >= _LEAST else 1


def spread(work: Callable[[int, int], Any], bounds: Sequence[int]) -> list[Any]:
    """work(a, b) for consecutive bounds, each piece on a thread of its own."""
    if len(bounds) == 2:
        return [work(bounds[0], bounds[1])]
    return list(_pool(count()).map(work, bounds[:-1], bounds[1:]))


@functools.lru_cache(maxsize=1)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="sumbo")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked process has none of its parent's threads
