"""The model: an additive Gaussian process, its kernels, its fit, and draws from it."""

from functools import cache
from typing import Any


@cache
def loops() -> Any:
    """The compiled loops. Numba takes a third of a second to import, so the first call that does arithmetic does it."""
    from sumbo import _loops

    return _loops
