"""Sum-structured Bayesian optimisation of expensive black boxes with 10 to 1000 parameters."""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from sumbo import problems, regret, structure
    from sumbo.decomposition import Decomposition
    from sumbo.errors import SumboError
    from sumbo.fit import FitSettings
    from sumbo.gp import AdditiveGP
    from sumbo.methods import (
        GPEI,
        GPUCB,
        REMBO,
        AddGPUCB,
        Auto,
        CyclicGroups,
        Direct,
        Random,
        SequentialGroups,
    )
    from sumbo.optimizer import Optimizer, Trial
    from sumbo.replaying import replay
    from sumbo.run import Result, maximize, minimize
    from sumbo.space import Categorical, Float, Int, Space

# Where each name lives. Modules are imported when a name is first used, so that `import sumbo` is quick.
_HOMES = {
    "sumbo.space": ("Float", "Int", "Categorical", "Space"),
    "sumbo.decomposition": ("Decomposition",),
    "sumbo.errors": ("SumboError",),
    "sumbo.fit": ("FitSettings",),
    "sumbo.gp": ("AdditiveGP",),
    "sumbo.optimizer": ("Optimizer", "Trial"),
    "sumbo.run": ("minimize", "maximize", "Result"),
    "sumbo.replaying": ("replay",),
    "sumbo.methods": (
        "Auto",
        "AddGPUCB",
        "GPUCB",
        "GPEI",
        "REMBO",
        "SequentialGroups",
        "CyclicGroups",
        "Direct",
        "Random",
    ),
}
_MODULES = ("plot", "problems", "regret", "report", "structure")
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "GPEI",
    "GPUCB",
    "REMBO",
    "AddGPUCB",
    "AdditiveGP",
    "Auto",
    "Categorical",
    "CyclicGroups",
    "Decomposition",
    "Direct",
    "FitSettings",
    "Float",
    "Int",
    "Optimizer",
    "Random",
    "Result",
    "SequentialGroups",
    "Space",
    "SumboError",
    "Trial",
    "maximize",
    "minimize",
    "problems",
    "regret",
    "replay",
    "structure",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"sumbo.{name}")
    if name in _HOME_OF:
        value = getattr(importlib.import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'sumbo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
