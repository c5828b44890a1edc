"""One thread for linear algebra while sumbo computes.

Matrices here are small: OpenBLAS's threads cost more than they bring, fight each other when several workers share a
machine, and make sums depend on how many there are. A run must not.
"""

import ctypes
import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy
import scipy

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
