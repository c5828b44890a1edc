"""Sum-structured Bayesian optimisation of expensive black boxes with 10 to 1000 parameters."""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from sumbo import plot, problems, regret, report, structure
    from sumbo.errors import SumboError
    from sumbo.executors import Evaluation
    from sumbo.gp import threads
    from sumbo.gp.additive import AdditiveGP
    from sumbo.gp.decomposition import Decomposition
    from sumbo.gp.fit import FitSettings
    from sumbo.methods import GPEI, GPUCB, REMBO, AddGPUCB, Auto, CyclicGroups, Direct, Random, SequentialGroups
    from sumbo.space import Categorical, Float, Int, Known, Linear, Ordinal, Space, SumTo
    from sumbo.study.optimizer import Optimizer, Trial
    from sumbo.study.replay import replay
    from sumbo.study.run import Result, maximize, minimize

__all__ = ["Categorical", "Float", "Int", "Known", "Linear", "Ordinal", "Space", "SumTo"]
__all__ += ["Evaluation", "Optimizer", "Result", "SumboError", "Trial", "maximize", "minimize", "replay"]
__all__ += ["GPEI", "GPUCB", "REMBO", "AddGPUCB", "Auto", "CyclicGroups", "Direct", "Random", "SequentialGroups"]
__all__ += ["AdditiveGP", "Decomposition", "FitSettings"]
__all__ += ["plot", "problems", "regret", "report", "structure", "threads"]

# Where each name lives. Modules are imported when a name is first used, so that `import sumbo` is quick.
_HOMES = {
    "sumbo.errors": "SumboError",
    "sumbo.executors": "Evaluation",
    "sumbo.gp.additive": "AdditiveGP",
    "sumbo.gp.decomposition": "Decomposition",
    "sumbo.gp.fit": "FitSettings",
    "sumbo.methods": "GPEI GPUCB REMBO AddGPUCB Auto CyclicGroups Direct Random SequentialGroups",
    "sumbo.space": "Categorical Float Int Known Linear Ordinal Space SumTo",
    "sumbo.study.optimizer": "Optimizer Trial",
    "sumbo.study.replay": "replay",
    "sumbo.study.run": "Result maximize minimize",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}
_MODULES = {name: f"sumbo.{name}" for name in ("plot", "problems", "regret", "report", "structure")}
_MODULES["threads"] = "sumbo.gp.threads"


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name not in _HOME_OF:
        raise AttributeError(f"module 'sumbo' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
