"""Tasks of next to no work for the benchmarks' runner, in a module that its processes import in a moment."""

import os
import signal
from typing import NamedTuple


class Sum(NamedTuple):
    """A task of next to no work."""

    a: int
    b: int


def add(task):
    if task.b < 0:
        raise ArithmeticError(f"cannot add {task.b}")
    return {**task._asdict(), "sum": task.a + task.b}


def nothing():
    """There is nothing to warm up."""


def sum_of(record):
    return Sum(record["a"], record["b"])


def environment(task):
    """What a worker sees of the limits on threads, and whether Ctrl-C would end it."""
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    threads = {name: value for name, value in os.environ.items() if name.endswith("_NUM_THREADS")}
    return {**task._asdict(), "sum": 0, "threads": threads, "ignored": ignored}
