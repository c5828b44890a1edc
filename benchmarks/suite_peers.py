"""The optimisers of the suite: some of `peers.py`, those of BoTorch's family, TuRBO and HEBO."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from peers import PEERS as COMMON
from peers import Objective, Peer
from peers_botorch import botorch_raasp, msr, orthogonal_additive, saasbo, spherical_linear
from turbo import turbo

from sumbo.regret import Direction
from sumbo.space import Parameter, Space

HEBO_PYTHON = "HEBO_PYTHON"  # the variable with the path of the Python that has HEBO
_SERVER = Path(__file__).with_name("hebo_server.py")


class Hebo(Peer):
    """HEBO, in an environment of its own: it wants a NumPy below 2."""

    __slots__ = ()

    def missing(self) -> list[str]:
        return [] if os.environ.get(HEBO_PYTHON) else [f"HEBO (--hebo, or ${HEBO_PYTHON})"]

    def versions(self) -> dict[str, str]:
        script = "from importlib.metadata import version; print(version('HEBO'))"
        told = subprocess.run([os.environ[HEBO_PYTHON], "-c", script], capture_output=True, text=True, check=True)
        return {"HEBO": told.stdout.strip()}


def hebo(f: Objective, space: Space, direction: Direction, budget: int, seed: int) -> None:
    """HEBO, which is given the parameters as they are. A line of JSON each way: a point, its loss.

    Raises:
        RuntimeError: HEBO's process ended early.
    """
    sign = 1.0 if direction == "minimize" else -1.0
    named = zip(space.names, space.parameters, strict=True)
    task = {"parameters": [_hebo_parameter(name, p) for name, p in named], "seed": seed, "budget": budget}
    command = [os.environ[HEBO_PYTHON], "-W", "ignore", str(_SERVER)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        print(json.dumps(task), file=process.stdin)
        for _ in range(budget):
            if not (line := process.stdout.readline()):
                raise RuntimeError("HEBO's process ended early; what it said is above")
            point = dict(zip(space.names, json.loads(line), strict=True))
            params = {n: _ours(p, point[n]) for n, p in zip(space.names, space.parameters, strict=True)}
            print(sign * f(params), file=process.stdin)


def _hebo_parameter(name: str, parameter: Parameter) -> dict[str, Any]:
    """A parameter in HEBO's words; of choices their numbers."""
    if parameter.choices:
        return {"name": name, "type": "cat", "categories": list(range(len(parameter.choices)))}
    kind = {"float": ("num", "pow"), "int": ("int", "pow_int")}[parameter.kind][parameter.log]
    return {"name": name, "type": kind, "lb": parameter.low, "ub": parameter.high}


def _ours(parameter: Parameter, value: float) -> Any:
    if parameter.choices:
        return parameter.choices[int(value)]
    # A power of ten of a log may miss the bound by its last digit.
    return min(max(round(value) if parameter.kind == "int" else value, parameter.low), parameter.high)


_TORCH = ("botorch", "torch")
PEERS = {name: COMMON[name] for name in ("cma-es", "optuna-tpe", "optuna-gp")} | {
    "turbo": Peer(turbo, ()),
    "hebo": Hebo(hebo, ()),
    "botorch-raasp": Peer(botorch_raasp, _TORCH),
    "msr": Peer(msr, _TORCH),
    "spherical-linear": Peer(spherical_linear, _TORCH),
    "orthogonal-additive": Peer(orthogonal_additive, _TORCH),
    "saasbo": Peer(saasbo, (*_TORCH, "jax", "numpyro")),
}
