"""Other optimisers on problems with constraints: each spends a budget on an evaluation and keeps nothing.

Each is used as its own documentation has it. Optuna is told the constraints by `constraints_func`; BoTorch models
objective and constraints by a Gaussian process each and searches the unit cube, `Space.from_unit` rounding what must be
whole. They are installed by `pip install 'sumbo[peers]'`.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from peers import _INITIAL, _RAW_SAMPLES, _RESTARTS, _suggested
from shape_problems import Constrained, Mixture

Evaluate = Callable[[Mapping[str, Any]], tuple[float, dict[str, float]]]  # the value, and the constraints by name


def optuna_study(
    ask: Callable[[Any], dict[str, Any]], f: Callable[[Mapping[str, Any]], float], budget: int, sampler: Any
) -> None:
    """Spend a budget on an objective without constraints."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: f(ask(trial)), n_trials=budget)


def optuna_constrained(problem: Constrained, evaluate: Evaluate, make: Callable[..., Any]) -> Any:
    """Optimise by a sampler that `make` makes with `constraints_func`; the study."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    named = list(zip(problem.space.names, problem.space.parameters, strict=True))

    def objective(trial: Any) -> float:
        value, constraints = evaluate({name: _suggested(trial, name, parameter) for name, parameter in named})
        trial.set_user_attr("constraints", list(constraints.values()))
        return value

    study = optuna.create_study(sampler=make(constraints_func=lambda trial: trial.user_attrs["constraints"]))
    study.optimize(objective, n_trials=problem.budget)
    return study


def optuna_gp(problem: Constrained, evaluate: Evaluate, seed: int) -> None:
    """Optuna's GPSampler with constraints."""
    import optuna

    optuna_constrained(problem, evaluate, lambda **settings: optuna.samplers.GPSampler(seed=seed, **settings))


def optuna_tpe(problem: Constrained, evaluate: Evaluate, seed: int) -> None:
    """Optuna's tree-structured Parzen estimator, multivariate, with constraints."""
    import optuna

    def make(**settings: Any) -> Any:
        return optuna.samplers.TPESampler(seed=seed, multivariate=True, **settings)

    optuna_constrained(problem, evaluate, make)


def _model(X: Any, Y: Any) -> Any:
    """A SingleTaskGP for each column, on standardised values, fitted."""
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.models.transforms import Standardize
    from gpytorch.mlls import ExactMarginalLogLikelihood

    models = []
    for column in range(Y.shape[1]):
        gp = SingleTaskGP(X, Y[:, column : column + 1], outcome_transform=Standardize(1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(gp.likelihood, gp))
        models.append(gp)
    return ModelListGP(*models)


def _cube(D: int) -> Any:
    import torch

    return torch.stack([torch.zeros(D), torch.ones(D)]).double()


def botorch(problem: Constrained, evaluate: Evaluate, seed: int) -> None:
    """BoTorch's log constrained expected improvement; the log probability of feasibility while nothing is feasible."""
    import torch
    from botorch.acquisition.analytic import LogConstrainedExpectedImprovement, LogProbabilityOfFeasibility
    from botorch.optim import optimize_acqf

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    space, D = problem.space, problem.space.dim
    bounds: dict[int, tuple[float | None, float | None]] = {i + 1: (None, 0.0) for i in range(len(problem.names))}

    def evaluated(points: Any) -> tuple[Any, Any]:
        """The points as they were evaluated, after rounding; value and constraints, a row each."""
        snapped = space.snap(points.numpy())
        rows = []
        for u in snapped:
            value, constraints = evaluate(space.from_unit(u))
            rows.append([value, *constraints.values()])
        return torch.tensor(snapped), torch.tensor(rows, dtype=torch.double)

    start = torch.quasirandom.SobolEngine(D, scramble=True, seed=seed).draw(_INITIAL).double()
    X, Y = evaluated(start)
    for _ in range(problem.budget - len(X)):
        model = _model(X, Y)
        feasible = (Y[:, 1:] <= 0).all(dim=1)
        acquisition: Any
        if feasible.any():
            best = Y[feasible, 0].min()
            acquisition = LogConstrainedExpectedImprovement(model, best, 0, bounds, maximize=False)
        else:
            acquisition = LogProbabilityOfFeasibility(model, bounds)
        x, _ = optimize_acqf(acquisition, _cube(D), q=1, num_restarts=_RESTARTS, raw_samples=_RAW_SAMPLES)
        x, y = evaluated(x)
        X, Y = torch.cat([X, x]), torch.cat([Y, y])


def _shares(problem: Mixture, rng: np.random.Generator) -> np.ndarray:
    """Shares within their bounds, uniformly, by rejection."""
    low, high = np.array(list(problem.bounds.values())).T
    while True:
        # Uniform on the simplex that is left above the lower bounds.
        x = low + (1 - low.sum()) * rng.dirichlet(np.ones(len(low)))
        if (x <= high).all():
            return x


def mixture_random(problem: Mixture, f: Callable[[Mapping[str, Any]], float], seed: int) -> None:
    """Random mixtures."""
    rng = np.random.default_rng(seed)
    for _ in range(problem.budget):
        f(dict(zip(problem.bounds, _shares(problem, rng).tolist(), strict=True)))


def mixture_botorch(problem: Mixture, f: Callable[[Mapping[str, Any]], float], seed: int) -> None:
    """BoTorch's log expected improvement with an equality constraint, after random mixtures."""
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.optim import optimize_acqf

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    rng, D = np.random.default_rng(seed), len(problem.bounds)
    bounds = torch.tensor(list(problem.bounds.values()), dtype=torch.double).T
    width = bounds[1] - bounds[0]
    # In the unit cube, where the model is, the weights of the sum are the ranges.
    sums_to_1 = [(torch.arange(D), width, float(1 - bounds[0].sum()))]

    def evaluated(X: Any) -> Any:
        values = [[-f(dict(zip(problem.bounds, x.tolist(), strict=True)))] for x in X]
        return torch.tensor(values, dtype=torch.double)  # at once: torch would round to single precision first

    X = torch.tensor(np.array([_shares(problem, rng) for _ in range(_INITIAL)]))
    Y = evaluated(X)
    for _ in range(problem.budget - len(X)):
        model = _model((X - bounds[0]) / width, Y).models[0]
        x, _ = optimize_acqf(
            LogExpectedImprovement(model, Y.max()),
            _cube(D),
            q=1,
            num_restarts=_RESTARTS,
            raw_samples=_RAW_SAMPLES,
            equality_constraints=sums_to_1,
        )
        x = bounds[0] + width * x
        X, Y = torch.cat([X, x]), torch.cat([Y, evaluated(x)])
