"""Problems as they are: with constraints, conditions, contexts and noise, and the best that there is.

Every problem is to be minimised, and a constraint is satisfied by a value of at most 0. Constraints of the engineering
designs are relative to what is allowed, so that 0.1 is a tenth too much; what is feasible is as in the literature.
The seeds of contexts, noise and systems fix the problem: all methods of a seed face the same one.
"""

import functools
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import sumbo

Array = NDArray[np.float64]
Params = Mapping[str, Any]


# --- constraints that only an evaluation tells ---


@dataclass(frozen=True)
class Constrained:
    """An objective with black-box constraints.

    Attributes:
        value, constraints: Functions of the parameters; the second has an entry for each of `names`.
        names: Of the constraints.
        best: The best known point, `optimum` its value.
    """

    space: sumbo.Space
    value: Callable[[Params], float]
    constraints: Callable[[Params], dict[str, float]]
    names: tuple[str, ...]
    best: Params
    optimum: float
    budget: int = 60


def xy() -> Constrained:
    """x^2 + y^2 with xy >= 4 on [0, 5]^2: 8 at (2, 2)."""
    space = sumbo.Space({"x": sumbo.Float(0, 5), "y": sumbo.Float(0, 5)})
    return Constrained(
        space,
        lambda p: p["x"] ** 2 + p["y"] ** 2,
        lambda p: {"product": 4 - p["x"] * p["y"]},
        ("product",),
        {"x": 2.0, "y": 2.0},
        8.0,
        budget=40,
    )


_LOAD, _LENGTH, _YOUNG, _SHEAR = 6000.0, 14.0, 30e6, 12e6  # of the beam: lb, in, psi, psi
_MOST_SHEAR, _MOST_STRESS, _MOST_DEFLECTION = 13600.0, 30000.0, 0.25


def _beam_cost(p: Params) -> float:
    h, long, t, b = (p[name] for name in ("weld", "length", "height", "width"))
    return 1.10471 * h**2 * long + 0.04811 * t * b * (14 + long)


def _beam_constraints(p: Params) -> dict[str, float]:
    h, long, t, b = (p[name] for name in ("weld", "length", "height", "width"))
    direct = _LOAD / (math.sqrt(2) * h * long)
    arm = math.sqrt(long**2 / 4 + ((h + t) / 2) ** 2)
    inertia = 2 * math.sqrt(2) * h * long * (long**2 / 12 + ((h + t) / 2) ** 2)
    bending = _LOAD * (_LENGTH + long / 2) * arm / inertia
    shear = math.sqrt(direct**2 + direct * bending * long / arm + bending**2)
    stress = 6 * _LOAD * _LENGTH / (b * t**2)
    deflection = 4 * _LOAD * _LENGTH**3 / (_YOUNG * t**3 * b)
    buckling = (
        4.013 * _YOUNG * math.sqrt(t**2 * b**6 / 36) / _LENGTH**2
        * (1 - t / (2 * _LENGTH) * math.sqrt(_YOUNG / (4 * _SHEAR)))
    )  # fmt: skip
    return {
        "shear": shear / _MOST_SHEAR - 1,
        "stress": stress / _MOST_STRESS - 1,
        "weld": h - b,
        "cost": (0.10471 * h**2 + 0.04811 * t * b * (14 + long)) / 5 - 1,
        "thickness": 0.125 - h,
        "deflection": deflection / _MOST_DEFLECTION - 1,
        "buckling": 1 - buckling / _LOAD,
    }


def welded_beam() -> Constrained:
    """The welded beam: 1.724852.

    Ragsdell and Phillips, "Optimal design of a class of welded structures using geometric programming", Journal of
    Engineering for Industry 98 (1976); formulas and bounds of Coello Coello, "Use of a self-adaptive penalty approach
    for engineering optimization problems", Computers in Industry 41 (2000); the best value of Mezura-Montes and
    Coello Coello, "Useful infeasible solutions in engineering optimization with evolutionary algorithms", MICAI (2005).
    """
    space = sumbo.Space(
        {
            "weld": sumbo.Float(0.1, 2.0),
            "length": sumbo.Float(0.1, 10.0),
            "height": sumbo.Float(0.1, 10.0),
            "width": sumbo.Float(0.1, 2.0),
        }
    )
    best = {"weld": 0.20572964, "length": 3.47048867, "height": 9.03662391, "width": 0.20572964}
    names = ("shear", "stress", "weld", "cost", "thickness", "deflection", "buckling")
    return Constrained(space, _beam_cost, _beam_constraints, names, best, 1.724852)


_SHEET = 0.0625  # inches: plates come in multiples of it
_VOLUME = 1_296_000.0  # cubic inches


def _vessel_cost(p: Params) -> float:
    shell, head, r, long = _SHEET * p["shell"], _SHEET * p["head"], p["radius"], p["length"]
    return 0.6224 * shell * r * long + 1.7781 * head * r**2 + 3.1661 * shell**2 * long + 19.84 * shell**2 * r


def _vessel_constraints(p: Params) -> dict[str, float]:
    shell, head, r, long = _SHEET * p["shell"], _SHEET * p["head"], p["radius"], p["length"]
    return {
        "shell": 0.0193 * r - shell,
        "head": 0.00954 * r - head,
        "volume": 1 - (math.pi * r**2 * long + 4 / 3 * math.pi * r**3) / _VOLUME,
    }


def pressure_vessel() -> Constrained:
    """The pressure vessel, its plates in sixteenths of an inch: 6059.714335.

    Kannan and Kramer, "An augmented Lagrange multiplier based method for mixed integer discrete continuous
    optimization", Journal of Mechanical Design 116 (1994); bounds of Coello Coello (2000), see the beam. A fourth
    constraint, a length of at most 240, is implied by the bounds. The best value is that of He and Wang (2007) and
    many others, proved by Yang, Huyck, Karamanoglu and Khan, "True global optimality of the pressure vessel design
    problem", International Journal of Bio-Inspired Computation 5 (2013).
    """
    space = sumbo.Space(
        {
            "shell": sumbo.Int(1, 99),
            "head": sumbo.Int(1, 99),
            "radius": sumbo.Float(10.0, 200.0),
            "length": sumbo.Float(10.0, 200.0),
        }
    )
    best = {"shell": 13, "head": 7, "radius": 42.0984455958, "length": 176.6365958424}
    return Constrained(space, _vessel_cost, _vessel_constraints, ("shell", "head", "volume"), best, 6059.714335)


def _gear(p: Params) -> tuple[float, ...]:
    return tuple(float(p[name]) for name in ("face", "module", "teeth", "length1", "length2", "shaft1", "shaft2"))


def _reducer_weight(p: Params) -> float:
    b, m, z, l1, l2, d1, d2 = _gear(p)
    return (
        0.7854 * b * m**2 * (3.3333 * z**2 + 14.9334 * z - 43.0934)
        - 1.508 * b * (d1**2 + d2**2)
        + 7.4777 * (d1**3 + d2**3)
        + 0.7854 * (l1 * d1**2 + l2 * d2**2)
    )


def _reducer_constraints(p: Params) -> dict[str, float]:
    b, m, z, l1, l2, d1, d2 = _gear(p)
    return {
        "bending": 27 / (b * m**2 * z) - 1,
        "contact": 397.5 / (b * m**2 * z**2) - 1,
        "deflection1": 1.93 * l1**3 / (m * z * d1**4) - 1,
        "deflection2": 1.93 * l2**3 / (m * z * d2**4) - 1,
        "stress1": math.sqrt((745 * l1 / (m * z)) ** 2 + 16.9e6) / (110 * d1**3) - 1,
        "stress2": math.sqrt((745 * l2 / (m * z)) ** 2 + 157.5e6) / (85 * d2**3) - 1,
        "pitch": m * z / 40 - 1,
        "narrow": 5 * m / b - 1,
        "wide": b / (12 * m) - 1,
        "bearing1": (1.5 * d1 + 1.9) / l1 - 1,
        "bearing2": (1.1 * d2 + 1.9) / l2 - 1,
    }


def speed_reducer() -> Constrained:
    """The speed reducer: 2994.471066.

    Golinski, "Optimal synthesis problems solved by means of nonlinear programming and random methods", Journal of
    Mechanisms 5 (1970); formulas and bounds, the second shaft from 7.3 on, of Mezura-Montes and Coello Coello
    (2005), see the beam; the best value of Zhang, Luo and Wang, "Differential evolution with dynamic stochastic
    selection for constrained optimization", Information Sciences 178 (2008).
    """
    space = sumbo.Space(
        {
            "face": sumbo.Float(2.6, 3.6),
            "module": sumbo.Float(0.7, 0.8),
            "teeth": sumbo.Int(17, 28),
            "length1": sumbo.Float(7.3, 8.3),
            "length2": sumbo.Float(7.3, 8.3),
            "shaft1": sumbo.Float(2.9, 3.9),
            "shaft2": sumbo.Float(5.0, 5.5),
        }
    )
    names = (
        "bending", "contact", "deflection1", "deflection2", "stress1", "stress2",
        "pitch", "narrow", "wide", "bearing1", "bearing2",
    )  # fmt: skip
    point = (3.5, 0.7, 17, 7.3, 7.7153199115, 3.3502146661, 5.2866544650)
    best = dict(zip(space.names, point, strict=True))
    return Constrained(space, _reducer_weight, _reducer_constraints, names, best, 2994.471066)


def _spring_weight(p: Params) -> float:
    return (p["coils"] + 2) * p["coil"] * p["wire"] ** 2


def _spring_constraints(p: Params) -> dict[str, float]:
    d, D, n = p["wire"], p["coil"], p["coils"]
    room = d**3 * (D - d)
    room = math.copysign(max(abs(room), 1e-9), room)  # a coil as wide as its wire is no number
    return {
        "deflection": 1 - D**3 * n / (71785 * d**4),
        "shear": (4 * D**2 - d * D) / (12566 * room) + 1 / (5108 * d**2) - 1,
        "surge": 1 - 140.45 * d / (D**2 * n),
        "outside": (D + d) / 1.5 - 1,
    }


def tension_spring() -> Constrained:
    """The tension and compression spring: 0.012665233.

    Arora, Introduction to Optimum Design (1989); Belegundu, A study of mathematical programming methods for
    structural optimization (1982); formulas and bounds of Coello Coello (2000), see the beam; the best value of
    Zhang, Luo and Wang (2008), see the speed reducer.
    """
    space = sumbo.Space(
        {"wire": sumbo.Float(0.05, 2.0), "coil": sumbo.Float(0.25, 1.3), "coils": sumbo.Float(2.0, 15.0)}
    )
    best = {"wire": 0.0516890614, "coil": 0.3567177469, "coils": 11.2889653382}
    names = ("deflection", "shear", "surge", "outside")
    return Constrained(space, _spring_weight, _spring_constraints, names, best, 0.012665233)


# 25 parameters in eight groups of three and one alone; each constraint has a third of them.
_D = 25
_CENTRES = 0.2 + 0.6 * ((np.arange(_D) * 0.618034) % 1.0)
_WEIGHTS = 1.0 + (np.arange(_D) * 0.414214) % 1.0


def _plant_value(x: Array) -> float:
    """Bowls around the centres, bent within each group of three, and a wave that makes them unequal."""
    z = x - _CENTRES
    first, second, third = z[0:24:3], z[1:24:3], z[2:24:3]
    bent = (second - 1.5 * first**2) ** 2 + (third - first * second) ** 2 + first**2
    waves = 0.05 * (1 - np.cos(2 * np.pi * z[:24].reshape(8, 3).sum(axis=1)))
    return float(10 * (_WEIGHTS[0:24:3] * bent + waves).sum() + 10 * _WEIGHTS[24] * z[24] ** 2)


def _plant_constraints(x: Array) -> Array:
    """Material, heat and yield, of which the unconstrained best has too much, too much and too little."""
    material = (_WEIGHTS[:9] * x[:9]).sum() - 0.85 * (_WEIGHTS[:9] * _CENTRES[:9]).sum()
    heat = np.log(np.exp(3 * x[8:17]).mean()) / 3 - 0.5
    out = x[16:25]
    made = 0.58 + 0.15 * (out[0] * out[1] - _CENTRES[16] * _CENTRES[17]) - out.mean()
    return np.array([material / 2, heat, made])


@functools.cache
def _plant_best() -> tuple[float, Array]:
    """By SLSQP from 10 starts, which all end at the same value."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(0)
    found = []
    for start in [_CENTRES, *rng.random((9, _D))]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of steps that end a rounding error outside of the cube
            answer = minimize(
                _plant_value,
                start,
                method="SLSQP",
                bounds=[(0, 1)] * _D,
                constraints={"type": "ineq", "fun": lambda x: -_plant_constraints(x)},
                options={"maxiter": 1000, "ftol": 1e-12},
            )
        if answer.success and _plant_constraints(answer.x).max() <= 1e-8:
            found.append((float(answer.fun), np.clip(answer.x, 0, 1)))
    return min(found, key=lambda pair: pair[0])


def plant() -> Constrained:
    """25 parameters and 3 constraints; the best value is found by SLSQP from many starts."""
    names = [f"x{i}" for i in range(_D)]
    constraints = ("material", "heat", "yield")

    def array(p: Params) -> Array:
        return np.array([p[name] for name in names])

    optimum, x = _plant_best()
    return Constrained(
        sumbo.Space({name: sumbo.Float(0, 1) for name in names}),
        lambda p: _plant_value(array(p)),
        lambda p: dict(zip(constraints, map(float, _plant_constraints(array(p))), strict=True)),
        constraints,
        dict(zip(names, map(float, x), strict=True)),
        optimum,
        budget=120,
    )


CONSTRAINED: dict[str, Callable[[], Constrained]] = {
    "xy": xy,
    "welded-beam": welded_beam,
    "pressure-vessel": pressure_vessel,
    "speed-reducer": speed_reducer,
    "tension-spring": tension_spring,
    "plant-25": plant,
}
DESIGNS = tuple(name for name in CONSTRAINED if name != "xy")


# --- constraints that are known beforehand ---


class System(NamedTuple):
    """A space with known constraints, and the largest violation of a point, bounds included, measured without sumbo."""

    space: Any
    violation: Callable[[Params], float]


def _linear(rng: np.random.Generator, names: list[str], inside: Params) -> tuple[Any, Callable[[Params], float]]:
    """A random half space that holds a point with little to spare."""
    chosen = rng.choice(names, size=rng.integers(2, len(names) + 1), replace=False).tolist()
    weights = dict(zip(chosen, rng.normal(size=len(chosen)).tolist(), strict=True))
    upper = sum(w * inside[name] for name, w in weights.items()) + float(rng.uniform(0.01, 0.1))
    return sumbo.Linear(weights, upper=upper), lambda p: sum(w * p[name] for name, w in weights.items()) - upper


def _ball(rng: np.random.Generator, names: list[str], inside: Params) -> tuple[Any, Callable[[Params], float]]:
    """A ball that holds the point, in some of the parameters."""
    chosen = rng.choice(names, size=rng.integers(2, len(names) + 1), replace=False).tolist()
    centre = {name: inside[name] + float(rng.normal(0, 0.05)) for name in chosen}
    radius2 = sum((inside[name] - centre[name]) ** 2 for name in chosen) + float(rng.uniform(0.05, 0.2))

    def excess(p: Params) -> float:
        return sum((p[name] - centre[name]) ** 2 for name in chosen) - radius2

    return sumbo.Known(excess, name="ball"), excess


def system(number: int) -> System:
    """A random system: 4 to 12 numbers, a whole number and a category, one to four half spaces, in every second one a
    mixture, in every third a ball. A point that keeps to all of it is drawn first, so that none is empty."""
    rng = np.random.default_rng([number, 20])
    D = int(rng.integers(4, 13))
    names = [f"x{i}" for i in range(D)]
    inside: dict[str, float] = dict(zip(names, rng.uniform(0.1, 0.9, size=D).tolist(), strict=True))
    constraints: list[Any] = []
    checks: list[Callable[[Params], float]] = []
    if number % 2 == 0:
        parts = names[: min(D - 1, 4)]
        total = sum(inside[name] for name in parts)
        constraints.append(sumbo.SumTo(parts, total))
        checks.append(lambda p: abs(sum(p[name] for name in parts) - total))
    makers = [_linear] * int(rng.integers(1, 5)) + [_ball] * (number % 3 == 0)
    for make in makers:
        constraint, check = make(rng, names, inside)
        constraints.append(constraint)
        checks.append(check)
    # A whole number that a half space ties to a parameter, of which 0 is always allowed, and a category that is free.
    constraints.append(sumbo.Linear({"n": 1.0, "x0": -5.0}, upper=2.5))
    checks.append(lambda p: p["n"] - 5 * p["x0"] - 2.5)
    parameters: dict[str, Any] = {name: sumbo.Float(0, 1) for name in names}
    parameters |= {"n": sumbo.Int(0, 8), "kind": sumbo.Categorical(["p", "q", "r"])}
    checks.append(lambda p: max(max(-p[name], p[name] - 1) for name in names))
    checks.append(lambda p: 0.0 if p["n"] in range(9) and p["kind"] in ("p", "q", "r") else 1.0)
    space: Any = sumbo.Space
    return System(space(parameters, constraints=constraints), lambda p: max(check(p) for check in checks))


COMPONENTS = ("resin", "hardener", "filler", "oil", "pigment", "wax", "solvent", "salt")
_BOUNDS = {"resin": (0.2, 1.0), "filler": (0.0, 0.25), "solvent": (0.05, 0.3)}
_PURE = np.array([4.0, 6.0, 3.5, 5.0, 7.0, 5.5, 4.5, 8.0])
_BLEND = (("resin", "hardener", -14.0), ("resin", "oil", -6.0), ("filler", "oil", -9.0), ("hardener", "solvent", 8.0),
          ("pigment", "wax", -10.0), ("oil", "solvent", -5.0), ("resin", "pigment", -7.0))  # fmt: skip


class Mixture(NamedTuple):
    """Shares of components that sum to 1, three of them with bounds; the value is smooth, and its least is known."""

    bounds: dict[str, tuple[float, float]]
    value: Callable[[Params], float]
    optimum: float
    budget: int = 60

    def space(self) -> Any:
        """As sumbo has it."""
        make: Any = sumbo.Space
        shares = {name: sumbo.Float(*bounds) for name, bounds in self.bounds.items()}
        return make(shares, constraints=[sumbo.SumTo(list(shares), 1.0)])


def _blended(x: Array) -> float:
    """Scheffe's quadratic blending model, with a term for a sharp taste of salt."""
    at = {name: i for i, name in enumerate(COMPONENTS)}
    pairs = sum(weight * x[at[a]] * x[at[b]] for a, b, weight in _BLEND)
    return float(_PURE @ x + pairs + 3 * (1 - math.exp(-8 * x[at["salt"]])) - 2 * math.sqrt(x[at["wax"]] + 0.01))


@functools.cache
def mixture() -> Mixture:
    """Eight components; the least value by SLSQP from 40 starts."""
    from scipy.optimize import minimize

    bounds = {name: _BOUNDS.get(name, (0.0, 1.0)) for name in COMPONENTS}
    rng = np.random.default_rng(0)
    found = []
    for start in rng.dirichlet(np.ones(len(COMPONENTS)), size=40):
        answer = minimize(
            _blended,
            np.clip(start, *np.array(list(bounds.values())).T),
            method="SLSQP",
            bounds=list(bounds.values()),
            constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
            options={"maxiter": 1000, "ftol": 1e-13},
        )
        if answer.success:
            found.append(float(answer.fun))
    return Mixture(bounds, lambda p: _blended(np.array([p[name] for name in COMPONENTS])), min(found))


# --- parameters that exist only under conditions ---


class Conditional(NamedTuple):
    """A choice and what depends on it.

    Attributes:
        space: As sumbo has it, with `when`.
        ask: The parameters of an Optuna trial.
        value: Of the parameters that exist.
    """

    space: Callable[[], Any]
    ask: Callable[[Any], dict[str, Any]]
    value: Callable[[Params], float]
    budget: int


_MODELS = {"a": (2, 0.6), "b": (3, 0.33), "c": (4, 0.07)}  # the more parameters, the better, once they are set right


def models(seed: int) -> Conditional:
    """The choice of one of three models with 2, 3 and 4 parameters: 0.07 with the last."""
    float_: Any = sumbo.Float

    def space() -> Any:
        parameters: dict[str, Any] = {"model": sumbo.Categorical(list(_MODELS))}
        for name, (size, _) in _MODELS.items():
            parameters |= {f"{name}{i}": float_(0, 1, when={"model": name}) for i in range(size)}
        return sumbo.Space(parameters)

    def ask(trial: Any) -> dict[str, Any]:
        model = trial.suggest_categorical("model", list(_MODELS))
        return {"model": model} | {
            f"{model}{i}": trial.suggest_float(f"{model}{i}", 0, 1) for i in range(_MODELS[model][0])
        }

    def value(p: Params) -> float:
        size, least = _MODELS[p["model"]]
        return least + sum(2.2 * (p[f"{p['model']}{i}"] - 0.2 - 0.15 * i) ** 2 for i in range(size))

    return Conditional(space, ask, value, budget=60)


_MOST_STEPS = 20_000  # of libsvm: large C with a high degree would go on for minutes


@functools.cache
def _folds(data: str, seed: int) -> tuple[Array, Array, Any]:
    from sklearn import datasets
    from sklearn.model_selection import KFold, StratifiedKFold
    from sklearn.preprocessing import StandardScaler

    X, y = getattr(datasets, f"load_{data}")(return_X_y=True)
    if data == "diabetes":
        y = (y - y.mean()) / y.std()
    kind = KFold if data == "diabetes" else StratifiedKFold
    return StandardScaler().fit_transform(X), y, kind(5, shuffle=True, random_state=seed)


def svm(data: str, seed: int) -> Conditional:
    """A support vector machine whose kernel has parameters of its own; five folds, which the seed draws.

    The share of wrong classes for breast_cancer, the squared error over the variance for diabetes.
    """
    int_: Any = sumbo.Int
    float_: Any = sumbo.Float

    def space() -> Any:
        return sumbo.Space(
            {
                "C": sumbo.Float(1e-2, 1e3, log=True),
                "kernel": sumbo.Categorical(["linear", "rbf", "poly"]),
                "gamma": float_(1e-4, 1e1, log=True, when={"kernel": ["rbf", "poly"]}),
                "degree": int_(2, 5, when={"kernel": "poly"}),
                "coef0": float_(0, 2, when={"kernel": "poly"}),
            }
        )

    def ask(trial: Any) -> dict[str, Any]:
        p = {
            "C": trial.suggest_float("C", 1e-2, 1e3, log=True),
            "kernel": trial.suggest_categorical("kernel", ["linear", "rbf", "poly"]),
        }
        if p["kernel"] != "linear":
            p["gamma"] = trial.suggest_float("gamma", 1e-4, 1e1, log=True)
        if p["kernel"] == "poly":
            p |= {"degree": trial.suggest_int("degree", 2, 5), "coef0": trial.suggest_float("coef0", 0, 2)}
        return p

    def value(p: Params) -> float:
        from sklearn.model_selection import cross_val_score
        from sklearn.svm import SVC, SVR

        X, y, folds = _folds(data, seed)
        model, score = (SVR, "neg_mean_squared_error") if data == "diabetes" else (SVC, "accuracy")
        scores = cross_val_score(model(**p, max_iter=_MOST_STEPS), X, y, cv=folds, scoring=score)
        return float(-scores.mean() if data == "diabetes" else 1 - scores.mean())

    return Conditional(space, ask, value, budget=40)


CONDITIONAL: dict[str, Callable[[int], Conditional]] = {
    "three-models": models,
    "svm-breast-cancer": functools.partial(svm, "breast_cancer"),
    "svm-diabetes": functools.partial(svm, "diabetes"),
}


# --- what the world sets ---

_SOILS = ("clay", "loam", "sand")
ACTIONS = tuple(f"x{i}" for i in range(10))
CONTEXT = ("wind", "heat", "soil")


class Contexts:
    """Ten parameters whose best values depend on a wind, a heat and a soil: R_T counts from the best of each context.

    Half of the parameters have their best place moved by a context; two neighbours of a context interact. The best
    value is 0 for the best action of every context, plus what the context costs by itself.
    """

    budget = 200

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([seed, 5])
        self.rng = np.random.default_rng([seed, 6])
        self.places = rng.uniform(0.3, 0.7, size=10)
        self.by_soil = rng.uniform(-0.2, 0.2, size=(3, 2))
        self.weights = rng.uniform(2.0, 6.0, size=10)

    def context(self) -> dict[str, Any]:
        """The next one that the world sets."""
        wind, heat = self.rng.uniform(0, 30), self.rng.uniform(-10, 40)
        return {"wind": float(wind), "heat": float(heat), "soil": _SOILS[self.rng.integers(3)]}

    @staticmethod
    def space(context: bool = True) -> Any:
        """The actions, with the contexts or without."""
        actions: dict[str, Any] = {name: sumbo.Float(0, 1) for name in ACTIONS}
        if not context:
            return sumbo.Space(actions)
        make: Any = sumbo.Space
        world = {"wind": sumbo.Float(0, 30), "heat": sumbo.Float(-10, 40), "soil": sumbo.Categorical(_SOILS)}
        return make(actions | world, context=list(CONTEXT))

    @staticmethod
    def context_class(context: Params) -> tuple[Any, ...]:
        """Little or much wind, cold or hot, and the soil: twelve classes."""
        return context["wind"] >= 15, context["heat"] >= 15, context["soil"]

    def best_action(self, context: Params) -> dict[str, float]:
        """Where the value is least in this context."""
        wind, heat = context["wind"] / 30 - 0.5, (context["heat"] + 10) / 50 - 0.5
        places = self.places.copy()
        places[0] += 0.5 * wind
        places[1] -= 0.4 * heat
        places[2:4] += self.by_soil[_SOILS.index(context["soil"])]
        places[4] += 0.5 * wind * heat
        return dict(zip(ACTIONS, np.clip(places, 0, 1).tolist(), strict=True))

    def best_value(self, context: Params) -> float:
        """Of the best action: what the context costs by itself."""
        return float(2 * math.sin(context["wind"] / 10) + 0.02 * context["heat"] + _SOILS.index(context["soil"]))

    def value(self, action: Params, context: Params) -> float:
        best = self.best_action(context)
        z = np.array([action[name] - best[name] for name in ACTIONS])
        return float((self.weights * z**2).sum() + 4 * (z[0::2] * z[1::2]).sum() ** 2) + self.best_value(context)


# --- noise ---


class Noisy:
    """A well of six parameters, 3 below its surroundings, in values with noise of standard deviation 1."""

    budget, std, optimum = 120, 1.0, -3.0

    def __init__(self, seed: int) -> None:
        self.centre = np.random.default_rng([seed, 7]).uniform(0.25, 0.75, size=6)
        self.rng = np.random.default_rng([seed, 8])
        self.space = sumbo.Space({f"x{i}": sumbo.Float(0, 1) for i in range(6)})

    def true(self, p: Params) -> float:
        """The value without noise."""
        z = np.array([p[name] for name in self.space.names]) - self.centre
        return float(-3 * math.exp(-(z**2).sum() / (2 * 0.4**2)))

    def __call__(self, p: Params) -> float:
        return self.true(p) + self.std * float(self.rng.normal())
