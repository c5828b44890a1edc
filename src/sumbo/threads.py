"""One thread for linear algebra while sumbo computes, and threads for the kernel loops where the user wants them.

Matrices here are small: OpenBLAS's threads cost more than they bring, fight each other when several workers share a
machine, and make sums depend on how many there are. A run must not.

The kernel loops can be shared among threads without that harm. They are one by default, so that many workers never
oversubscribe a machine; `use(4)` or the environment's SUMBO_THREADS=4 is for a single search with cores to spare.
"""

import ctypes
import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy
import scipy

from sumbo.errors import SettingError

F = TypeVar("F", bound=Callable[..., Any])

_lock = threading.Lock()
_depth = 0
_before: list[int] = []


@functools.cache
def _libraries() -> tuple[tuple[Callable[[], int], Callable[[int], Any]], ...]:
    """How to read and set the number of threads of each OpenBLAS that NumPy and SciPy brought along."""
    found = []
    for package in (numpy, scipy):
        home = Path(str(package.__file__)).parent
        for folder in (home.parent / f"{package.__name__}.libs", home / ".dylibs"):
            for path in sorted(folder.glob("*openblas*")):
                library = ctypes.CDLL(str(path))
                for form in (
                    "scipy_openblas_{}_num_threads64_",
                    "scipy_openblas_{}_num_threads",
                    "openblas_{}_num_threads",
                ):
                    if hasattr(library, form.format("set")):
                        found.append((getattr(library, form.format("get")), getattr(library, form.format("set"))))
                        break
    return tuple(found)


@contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra on one thread inside; as it was afterwards. May be nested, and used from several threads."""
    global _depth, _before
    with _lock:
        if _depth == 0:
            _before = [get() for get, _ in _libraries()]
            for _, set_threads in _libraries():
                set_threads(1)
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                for (_, set_threads), count in zip(_libraries(), _before, strict=True):
                    set_threads(count)


def on_one_thread(function: F) -> F:
    """Decorator: run the function under `one_thread`."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with one_thread():
            return function(*args, **kwargs)

    return wrapped  # type: ignore[return-value]


_LEAST = 150  # rows of a kernel matrix below which threads cost more than they bring

_count: int | None = None  # None: as the environment says
_pool: ThreadPoolExecutor | None = None


def use(count: int) -> None:
    """Share the kernel loops among so many threads, in this process. Changes the speed, no result.

    Raises:
        SettingError: it is not a whole number from 1 up.
    """
    global _count, _pool
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise SettingError(f"the number of threads must be a whole number from 1 up; got {count!r}")
    with _lock:
        _count, _pool = count, None


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
    global _pool
    if len(bounds) == 2:
        return [work(bounds[0], bounds[1])]
    threads = count()
    with _lock:
        _pool = _pool or ThreadPoolExecutor(threads, thread_name_prefix="sumbo")
        pool = _pool
    return list(pool.map(work, bounds[:-1], bounds[1:]))


def _forget_pool() -> None:
    """A forked process has none of its parent's threads."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
