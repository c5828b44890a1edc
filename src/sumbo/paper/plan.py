"""How much is run: in minutes, or as much as the paper did."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sumbo.errors import SettingError
from sumbo.paper import compare, rates
from sumbo.paper.compare import CONFIGURATIONS, method_names
from sumbo.paper.tasks import Line, Sources, Task

EXPERIMENTS = ("synthetic", "astro", "faces", "rates")
Configuration = tuple[int, int, int]


@dataclass(frozen=True)
class Size:
    """How much of everything.

    Attributes:
        configurations: (D, d', M') of the synthetic functions.
        runs: Of the synthetic, astro and faces experiments.
        budgets: Evaluations of a run, likewise.
        dimensions, observations: D and T of the information gain.
        simulations: Of the credible interval.
    """

    configurations: tuple[Configuration, ...]
    runs: dict[str, int]
    budgets: dict[str, int]
    dimensions: tuple[int, ...]
    observations: int
    simulations: int


QUICK = Size(
    ((10, 3, 3), (24, 11, 2), (40, 5, 8)),
    {"synthetic": 2, "astro": 2, "faces": 2},
    {"synthetic": 80, "astro": 80, "faces": 80},
    (2, 4, 8),
    100,
    20,
)
# Runs are the paper's. Its text tells the number of evaluations for the astrophysics only, 400; that is taken for all.
FULL = Size(
    CONFIGURATIONS,
    {"synthetic": 20, "astro": 20, "faces": 11},
    {"synthetic": 400, "astro": 400, "faces": 400},
    rates.DIMENSIONS,
    400,
    200,
)


def sized(
    size: Size,
    *,
    runs: Mapping[str, int] | None = None,
    budgets: Mapping[str, int] | None = None,
    configurations: Sequence[Configuration] | None = None,
) -> Size:
    """A size with some of it changed, for the experiments that are named.

    Raises:
        SettingError: The paper has no such configuration.
    """
    size = replace(size, runs=size.runs | dict(runs or {}), budgets=size.budgets | dict(budgets or {}))
    for configuration in configurations or ():
        if configuration not in CONFIGURATIONS:
            known = " ".join(",".join(map(str, c)) for c in CONFIGURATIONS)
            given = ",".join(map(str, configuration))
            raise SettingError(f"the paper has no configuration {given}; it has {known}")
    return replace(size, configurations=tuple(configurations)) if configurations else size


def plan(experiments: Sequence[str], size: Size, seed: int, sources: Sources) -> list[Task]:
    """What is to be run: everything with one seed before the next seed, so that what there is can be compared."""
    tasks = _rates(size, seed) if "rates" in experiments else []
    for i in range(max(size.runs.values())):
        for experiment in experiments:
            if i < size.runs.get(experiment, 0):
                tasks += _compared(experiment, size, seed + i, sources.of(experiment))
    return tasks


def _compared(experiment: str, size: Size, seed: int, sources: Sources) -> list[Task]:
    """All methods on all problems of an experiment."""
    real = {"astro": [("astro", 20)], "faces": [("faces", 22)]}
    names = real.get(experiment) or [("additive-{}-{}-{}".format(*c), c[0]) for c in size.configurations]
    return [
        Task(experiment, problem, method, seed, size.budgets[experiment], sources)
        for problem, D in names
        for method in method_names(experiment, D)
    ]


def _rates(size: Size, seed: int) -> list[Task]:
    T = size.observations
    measurements = [
        (rates.GAIN, rates.gain_name(structure, kernel, D), T)
        for structure in ("additive", "full")
        for kernel in rates.KERNELS
        for D in size.dimensions
    ]
    measurements += [(rates.PROOF, f"M = {M}", T) for M in (2, 5, 10)]
    measurements += [(rates.COST, "D = 40", T), (rates.MODES, "f_2", 1)]
    tasks = [Task("rates", problem, method, seed, budget) for problem, method, budget in measurements]
    return tasks + [Task("rates", rates.INTERVAL, "SE, 4 groups", seed + i, 30) for i in range(size.simulations)]


def run(task: Task) -> Line:
    """Do a task."""
    return rates.run(task) if task.experiment == "rates" else compare.run(task)
