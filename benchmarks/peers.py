"""Other optimisers behind one call: spend a budget on an objective of a space.

Each is used as its own documentation has it, with its default settings. Optuna is given the parameters as they are;
BoTorch and CMA-ES search the unit cube, and `Space.from_unit` rounds what must be whole. They are installed by
`pip install 'sumbo[peers]'`.
"""

from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from sumbo.regret import Direction
from sumbo.space import Parameter, Space

Objective = Callable[[Mapping[str, Any]], float]
Search = Callable[[Objective, Space, Direction, int, int], None]  # objective, space, direction, budget, seed

_CMA_STEP = 0.25  # a quarter of the cube's width, from its centre: the usual rule of thumb
_INITIAL, _RESTARTS, _RAW_SAMPLES = 10, 4, 256  # of BoTorch


class Peer(NamedTuple):
    """An optimiser, the packages it needs, and the dimension above which it is too slow to be run."""

    search: Search
    needs: tuple[str, ...]
    largest: int | None = None

    def missing(self) -> list[str]:
        """What it needs and is not installed."""
        return lacking(self.needs)

    def versions(self) -> dict[str, str]:
        """Of what it needs."""
        return {package: version(package) for package in self.needs}


def lacking(packages: Iterable[str]) -> list[str]:
    """Those that are not installed."""
    return [package for package in packages if find_spec(package) is None]


def optuna_gp(
    f: Objective, space: Space, direction: Direction, budget: int, seed: int, deterministic: bool = False
) -> None:
    """Optuna's GPSampler, which may be told that there is no noise."""
    import optuna

    sampler = optuna.samplers.GPSampler(seed=seed, deterministic_objective=deterministic)
    _optimise(f, space, direction, budget, sampler)


def optuna_tpe(f: Objective, space: Space, direction: Direction, budget: int, seed: int) -> None:
    """Optuna's tree-structured Parzen estimator, multivariate."""
    import optuna

    _optimise(f, space, direction, budget, optuna.samplers.TPESampler(seed=seed, multivariate=True))


def _optimise(f: Objective, space: Space, direction: Direction, budget: int, sampler: Any) -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=sampler, direction=direction)
    named = list(zip(space.names, space.parameters, strict=True))
    study.optimize(lambda trial: f({name: _suggested(trial, name, p) for name, p in named}), n_trials=budget)


def _suggested(trial: Any, name: str, parameter: Parameter) -> Any:
    if parameter.choices:
        return trial.suggest_categorical(name, parameter.choices)
    suggest = trial.suggest_float if parameter.kind == "float" else trial.suggest_int
    return suggest(name, parameter.low, parameter.high, log=parameter.log)


def botorch(
    f: Objective,
    space: Space,
    direction: Direction,
    budget: int,
    seed: int,
    model: Callable[[Any, Any], Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> None:
    """BoTorch's default: SingleTaskGP and log expected improvement, after a Sobol start.

    Other models of points and values may be given, and options of how the acquisition is maximised.
    """
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.optim import optimize_acqf

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    sign, D = (1.0 if direction == "maximize" else -1.0), space.dim
    cube = torch.stack([torch.zeros(D), torch.ones(D)]).double()

    def evaluated(points: Any) -> tuple[Any, Any]:
        """The points as they were evaluated, after rounding, and their values; larger is better."""
        snapped = space.snap(points.numpy())
        return torch.tensor(snapped), torch.tensor([[sign * f(space.from_unit(u))] for u in snapped]).double()

    start = torch.quasirandom.SobolEngine(D, scramble=True, seed=seed).draw(min(_INITIAL, budget)).double()
    X, Y = evaluated(start)
    for _ in range(budget - len(X)):
        acquisition = LogExpectedImprovement((model or _single_task)(X, Y), Y.max())
        x, _ = optimize_acqf(
            acquisition, cube, q=1, num_restarts=_RESTARTS, raw_samples=_RAW_SAMPLES, options=dict(options or {})
        )
        x, y = evaluated(x)
        X, Y = torch.cat([X, x]), torch.cat([Y, y])


def _single_task(X: Any, Y: Any) -> Any:
    from botorch.models import SingleTaskGP

    return fitted(SingleTaskGP, X, Y)


def fitted(kind: Callable[..., Any], X: Any, Y: Any, steps: int | None = None, **settings: Any) -> Any:
    """A model of BoTorch of standardised values, its parameters the most likely ones that some steps find."""
    from botorch.fit import fit_gpytorch_mll
    from botorch.models.transforms import Standardize
    from gpytorch.mlls import ExactMarginalLogLikelihood

    gp = kind(X, Y, outcome_transform=Standardize(1), **settings)
    limit = {} if steps is None else {"optimizer_kwargs": {"options": {"maxiter": steps}}}
    fit_gpytorch_mll(ExactMarginalLogLikelihood(gp.likelihood, gp), **limit)
    return gp


def cma_es(f: Objective, space: Space, direction: Direction, budget: int, seed: int) -> None:
    """CMA-ES within bounds, from the centre of the cube."""
    import cma

    sign = 1.0 if direction == "minimize" else -1.0
    # 0 would have it take the seed from the clock.
    settings = {"bounds": [0, 1], "seed": seed + 1, "verbose": -9, "maxfevals": budget}
    strategy = cma.CMAEvolutionStrategy(np.full(space.dim, 0.5), _CMA_STEP, settings)
    left = budget
    while left:
        population = strategy.ask()[:left]
        left -= len(population)
        losses = [sign * f(space.from_unit(u)) for u in population]
        if left:  # of a last generation that was cut short nothing is learned
            strategy.tell(population, losses)


PEERS = {
    "optuna-gp": Peer(optuna_gp, ("optuna", "torch")),
    "botorch": Peer(botorch, ("botorch", "torch"), largest=40),
    "optuna-tpe": Peer(optuna_tpe, ("optuna",)),
    "cma-es": Peer(cma_es, ("cma",)),
}
