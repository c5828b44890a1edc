"""Golden sequences: the suggestions of every method on six spaces, to tell whether a change moves a single bit.

    python -m golden write      # from tests/, by code that is trusted
    python -m golden compare    # after a change that must not matter

A sequence is 60 asks among tells, failures, points that stay pending and points of the user's own. The file has a
digest for each suggestion. Bits depend on the processor and on the versions of the libraries below, so the file says
what it was made with, and is compared on the same only. `tests/test_golden.py` compares how each sequence begins.
"""

import hashlib
import json
import platform
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from threadpoolctl import threadpool_info

import sumbo
import sumbo.methods
from sumbo import Categorical, Float, Int, Space

FILE = Path(__file__).parent / "sequences.json"
ASKS = 60

METHODS = tuple(sumbo.methods.METHODS)
SPACES = {
    "floats": Space.from_bounds([(-1.0, 1.0)] * 6),
    "logarithmic": Space({"lr": Float(1e-5, 1e-1, log=True), "decay": Float(1e-8, 1.0, log=True), "p": Float(0, 1)}),
    "integers": Space({"n": Int(1, 8), "m": Int(1, 1000, log=True), "k": Int(-3, 3), "x": Float(0, 1)}),
    "categories": Space(
        {"act": Categorical(["relu", "gelu", None]), "flag": Categorical([True, False]), "x": Float(0, 1)}
    ),
    "mixed": Space(
        {
            "lr": Float(1e-4, 1.0, log=True),
            "layers": Int(1, 6),
            "act": Categorical(["relu", "gelu"]),
            **{f"x{i}": Float(-2, 3) for i in range(4)},
        }
    ),
    "small": Space({"a": Int(0, 4), "b": Categorical(["p", "q", "r"]), "c": Int(1, 30, log=True)}),
}


def made_with() -> dict[str, str]:
    """What the bits depend on, beside sumbo."""
    import numba
    from llvmlite.binding import get_host_cpu_name

    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    blas = sorted({f"{pool['internal_api']} {pool.get('architecture', '')}" for pool in pools})
    versions = {module.__name__: module.__version__ for module in (np, scipy, numba)}
    return {
        "machine": platform.machine(),
        "cpu": numba.config.CPU_NAME or get_host_cpu_name(),
        "blas": ", ".join(blas),
        **versions,
    }


def objective(space: Space, params: dict[str, Any]) -> float | None:
    """A smooth value with an interaction; None where evaluations fail."""
    u = space.to_unit(params)
    if u[0] > 0.9 and u[-1] < 0.3:
        return None
    return float(np.square(u - 0.4).sum() + 0.5 * u[0] * u[-1])


def steps(seed: str) -> Iterator[str]:
    """What the user does next: ask, tell the oldest or the newest, observe."""
    rng = random.Random(seed)
    while True:
        yield rng.choices(("ask", "oldest", "newest", "observe"), (10, 6, 3, 1))[0]


def drive(opt: Any, space: Space, seed: str, asks: int = ASKS) -> list[dict[str, Any]]:
    """The points that an optimizer suggests on the way through the steps."""
    rng, waiting, asked = np.random.default_rng(len(seed)), [], []
    for step in steps(seed):
        if step == "ask" and len(waiting) < 5:
            waiting.append(opt.ask())
            asked.append(dict(waiting[-1].params))
            if len(asked) == asks:
                return asked
        elif step == "observe":
            params = space.from_unit(rng.random(space.dim))
            value = objective(space, params)
            opt.observe(params, value, failed=value is None)
        elif waiting and step != "ask":
            trial = waiting.pop(0 if step == "oldest" else -1)
            value = objective(space, trial.params)
            opt.tell(trial, value, failed=value is None)
    raise AssertionError("steps do not end")


def digest(params: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(params).encode()).hexdigest()[:8]


def sequence(method: str, space: str, asks: int = ASKS, make: Callable[..., Any] = sumbo.Optimizer) -> list[str]:
    """Digests of the suggestions of one method on one space; empty where the method refuses the space."""
    try:
        opt = make(SPACES[space], method, "minimize", seed=7, budget=200)
    except sumbo.SumboError:
        return []
    return [digest(params) for params in drive(opt, SPACES[space], f"{method} {space}", asks)]
