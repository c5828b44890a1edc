"""Sum-structured Bayesian optimisation of expensive black boxes with 10 to 1000 parameters."""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from sumbo import problems, regret, structure
    from sumbo.errors import SumboError
    from sumbo.gp import threads
    from sumbo.gp.additive import AdditiveGP
    from sumbo.gp.decomposition import Decomposition
    from sumbo.gp.fit import FitSettings
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
    from sumbo.space import Categorical, Float, Int, Space
    from sumbo.study.optimizer import Optimizer, Trial
    from sumbo.study.replay import replay
    from sumbo.study.run import Result, maximize, minimize

# Where each name lives. Modules are imported when a name is first used, so that `import sumbo` is quick.
_HOMES = {
    "sumbo.space": ("Float", "Int", "Categorical", "Space"),
    "sumbo.gp.decomposition": ("Decomposition",),
    "sumbo.errors": ("SumboError",),
    "sumbo.gp.fit": ("FitSettings",),
    "sumbo.gp.additive": ("AdditiveGP",),
    "sumbo.study.optimizer": ("Optimizer", "Trial"),
    "sumbo.study.run": ("minimize", "maximize", "Result"),
    "sumbo.study.replay": ("replay",),
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
_MODULES = {name: f"sumbo.{name}" for name in ("plot", "problems", "regret", "report", "structure")}
_MODULES["threads"] = "sumbo.gp.threads"
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
    "threads",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name in _HOME_OF:
        value = getattr(importlib.import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'sumbo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
