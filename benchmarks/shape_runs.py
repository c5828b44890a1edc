"""One run of the benchmark of shapes: a method spends a budget on a problem, and a line says what it found.

Every line has the best value so far after each evaluation (of feasible points, null as long as there is none), the
final one, and the processor seconds of the suggestions, those of the objective left out.
"""

import functools
import importlib
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import peers
import shape_peers
from runs import Run, Work
from shape_problems import CONDITIONAL, CONSTRAINED, CONTEXT, DESIGNS, Contexts, Noisy, mixture, system

import sumbo

SEEDS = 5
SYSTEMS = 20  # their numbers are the seeds of their runs
TOLERANCE = 1e-9  # of a known constraint
MIXED_TOLERANCE = 1e-6  # of a mixture that counts: peers have tolerances of their own
PAIRS, HELD_OUT = 200, 50  # random actions in random contexts; contexts to recommend for

# Of a system's 500 suggestions; all but the last kind are by "auto".
ALONE, WITH_DEADLINE, BATCHES, BATCH, RANDOM, RANDOM_BATCH = 60, 10, 10, 8, 350, 50
DEADLINE = 0.05

NEEDS = {
    "sumbo-optuna": ("optuna",),
    "optuna-gp": ("optuna", "torch"),
    "optuna-tpe": ("optuna",),
    "optuna-tpe-group": ("optuna",),
    "botorch": ("botorch", "torch"),
}


class Task(NamedTuple):
    """One run to do; also the key under which a finished run is found again."""

    problem: str
    method: str
    seed: int


class Log:
    """What a run has evaluated: the least feasible value so far, where it was, and the seconds in the objective."""

    def __init__(self) -> None:
        self.curve: list[float] = []
        self.best = math.inf
        self.params: dict[str, Any] | None = None
        self.seconds = 0.0

    @contextmanager
    def objective(self) -> Iterator[None]:
        """The objective's own time is not the method's."""
        began = time.process_time()
        yield
        self.seconds += time.process_time() - began

    def add(self, value: float, params: Mapping[str, Any], *, feasible: bool = True) -> None:
        if feasible and value < self.best:
            self.best, self.params = float(value), dict(params)
        self.curve.append(self.best)

    def of(self, f: Callable[[Mapping[str, Any]], float]) -> Callable[[Mapping[str, Any]], float]:
        """The function, with its values put on record."""

        def logged(params: Mapping[str, Any]) -> float:
            with self.objective():
                value = f(params)
            self.add(value, params)
            return value

        return logged


def _minimise(opt: Any, f: Callable[[Mapping[str, Any]], float], budget: int, **told: Any) -> None:
    for _ in range(budget):
        trial = opt.ask()
        opt.tell(trial, f(trial.params), **told)


# --- constraints that only an evaluation tells ---


def constrained(task: Task, log: Log) -> Run:
    with log.objective():  # some find their optimum first
        problem = CONSTRAINED[task.problem]()

    def evaluate(params: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
        with log.objective():
            value, constraints = problem.value(params), problem.constraints(params)
        log.add(value, params, feasible=max(constraints.values()) <= 0)
        return value, constraints

    answer: Run = {"optimum": problem.optimum}
    if task.method == "sumbo":
        make: Any = sumbo.Optimizer
        opt = make(problem.space, seed=task.seed, budget=problem.budget, constraints=list(problem.names))
        for _ in range(problem.budget):
            trial = opt.ask()
            value, constraints = evaluate(trial.params)
            opt.tell(trial, value, constraints=constraints)
        answer["reported"] = None if opt.best is None else opt.best.value
    elif task.method == "sumbo-optuna":
        from sumbo.integrations.optuna import SumboSampler

        def sampler(**settings: Any) -> Any:
            return SumboSampler(seed=task.seed, **settings)

        shape_peers.optuna_constrained(problem, evaluate, sampler)
    else:
        search = {
            "optuna-gp": shape_peers.optuna_gp,
            "optuna-tpe": shape_peers.optuna_tpe,
            "botorch": shape_peers.botorch,
        }[task.method]
        search(problem, evaluate, task.seed)
    return answer


# --- constraints that are known beforehand ---


def systems(task: Task, log: Log) -> Run:
    """Suggestions of every kind for a random system of known constraints, and how many are outside of it."""
    space, violation = system(task.seed)
    counts: dict[str, int] = {}
    outside, worst = 0, -math.inf

    def value(params: Mapping[str, Any]) -> float:
        numbers = [x for x in params.values() if not isinstance(x, str)]
        return float(sum((x - 0.3) ** 2 for x in numbers)) + 0.2 * "pqr".index(params["kind"])

    def take(kind: str, opt: sumbo.Optimizer, trials: list[sumbo.Trial]) -> None:
        nonlocal outside, worst
        for trial in trials:
            excess = violation(trial.params)
            worst = max(worst, excess)
            outside += not excess <= TOLERANCE
            log.add(value(trial.params), trial.params, feasible=excess <= TOLERANCE)
            opt.tell(trial, value(trial.params))
        counts[kind] = counts.get(kind, 0) + len(trials)

    auto = sumbo.Optimizer(space, seed=task.seed)
    for number in range(ALONE + WITH_DEADLINE):
        # One in seven is in a hurry.
        if number % 7 == 6:
            take(f"auto, within {DEADLINE:g} s", auto, [auto.ask(deadline=DEADLINE)])
        else:
            take("auto, one by one", auto, [auto.ask()])
    for _ in range(BATCHES):
        take(f"auto, {BATCH} at a time", auto, auto.ask(BATCH))
    random = sumbo.Optimizer(space, method="random", seed=task.seed)
    for _ in range(RANDOM // RANDOM_BATCH):
        take(f"random, {RANDOM_BATCH} at a time", random, random.ask(RANDOM_BATCH))
    return {"suggestions": counts, "outside": outside, "worst": worst}


def mixed(task: Task, log: Log) -> Run:
    with log.objective():
        problem = mixture()
    worst = 0.0

    def f(params: Mapping[str, Any]) -> float:
        nonlocal worst
        with log.objective():
            value = problem.value(params)
        beyond = [max(low - params[name], params[name] - high) for name, (low, high) in problem.bounds.items()]
        excess = max(abs(sum(params.values()) - 1), *beyond)
        worst = max(worst, excess)
        log.add(value, params, feasible=excess <= MIXED_TOLERANCE)
        return value

    if task.method == "sumbo":
        opt = sumbo.Optimizer(problem.space(), seed=task.seed, budget=problem.budget)
        _minimise(opt, f, problem.budget)
    else:
        search = {"random": shape_peers.mixture_random, "botorch": shape_peers.mixture_botorch}[task.method]
        search(problem, f, task.seed)
    return {"optimum": problem.optimum, "worst": worst}


# --- parameters that exist only under conditions ---


def conditional(task: Task, log: Log) -> Run:
    problem = CONDITIONAL[task.problem](task.seed)
    f = log.of(problem.value)
    if task.method == "sumbo":
        opt = sumbo.Optimizer(problem.space(), seed=task.seed, budget=problem.budget)
        _minimise(opt, f, problem.budget)
    else:
        shape_peers.optuna_study(problem.ask, f, problem.budget, _optuna_sampler(task.method, task.seed))
    return {}


def _optuna_sampler(method: str, seed: int) -> Any:
    """TPE with the settings that it has by itself, and with those that its manual advises for conditions."""
    from optuna.samplers import RandomSampler, TPESampler

    if method == "random":
        return RandomSampler(seed=seed)
    if method == "optuna-tpe":
        return TPESampler(seed=seed, warn_independent_sampling=False)
    return TPESampler(seed=seed, multivariate=True, group=True)


# --- what the world sets ---


def contexts(task: Task, log: Log) -> Run:
    """R_T: how much worse the actions were than the best ones of their contexts, in sum. The curve is of R_t."""
    problem = Contexts(task.seed)
    known = task.method == "sumbo"
    optimizers: dict[Any, Any] = {}

    def optimizer(context: Mapping[str, Any]) -> Any:
        """The one that sees this context."""
        by_class = task.method == "sumbo-by-class"
        key = problem.context_class(context) if by_class else None
        if key not in optimizers:
            budget = None if by_class else problem.budget  # how often a class comes up is not known beforehand
            optimizers[key] = sumbo.Optimizer(problem.space(context=known), seed=task.seed, budget=budget)
        return optimizers[key]

    def of(context: Mapping[str, Any]) -> dict[str, Any]:
        return {"context": context} if known else {}

    total = 0.0
    for _ in range(problem.budget):
        context = problem.context()
        opt = optimizer(context)
        trial = opt.ask(**of(context))
        value = problem.value(trial.params, context)
        opt.tell(trial, value)
        total += value - problem.best_value(context)
        log.curve.append(total)
    log.best = total

    held_out = [problem.context() for _ in range(HELD_OUT)]
    regrets = []
    for context in held_out:
        opt = optimizer(context)
        action = opt.recommend(**of(context)).params if opt.trials else opt.ask().params
        regrets.append(problem.value(action, context) - problem.best_value(context))
    answer: Run = {"held_out_regret": float(np.mean(regrets))}
    if known:
        answer["r2"] = _r2(problem, optimizers[None], task.seed)
    return answer


def _r2(problem: Contexts, opt: Any, seed: int) -> float:
    """Of predictions for random actions in contexts that were not seen."""
    rng = np.random.default_rng([seed, 9])
    actions = [problem.space(context=False).from_unit(u) for u in rng.random((PAIRS, 10))]
    pairs = [(action, problem.context()) for action in actions]
    truth = np.array([problem.value(action, context) for action, context in pairs])
    mean, _ = opt.predict([{**action, **{name: context[name] for name in CONTEXT}} for action, context in pairs])
    return float(1 - ((truth - mean) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())


# --- noise ---


def noisy(task: Task, log: Log) -> Run:
    """True values, where the least value was seen (as the curve has it) and, of sumbo, where it is believed to be."""
    problem = Noisy(task.seed)
    seen = Log()

    def f(params: Mapping[str, Any]) -> float:
        with log.objective():
            value = problem(params)
        seen.add(value, params)
        assert seen.params is not None
        log.curve.append(problem.true(seen.params))
        return value

    if task.method.startswith("sumbo"):
        opt: Any = sumbo.Optimizer(problem.space, seed=task.seed, budget=problem.budget)
        _minimise(opt, f, problem.budget, **({"std": problem.std} if task.method == "sumbo-std" else {}))
        log.params = dict(opt.recommend().params)
    else:
        search = {"optuna-gp": peers.optuna_gp, "optuna-tpe": peers.optuna_tpe}[task.method]
        search(f, problem.space, "minimize", problem.budget, task.seed)
        log.params = seen.params
    assert log.params is not None
    log.best = problem.true(log.params)
    return {"optimum": problem.optimum, "at_least_seen": log.curve[-1]}


# --- all of them ---


class Kind(NamedTuple):
    """How a problem is run, and by which methods."""

    run: Callable[[Task, Log], Run]
    methods: tuple[str, ...]
    seeds: int = SEEDS


DESIGN_METHODS = ("sumbo", "optuna-tpe", "optuna-gp", "botorch")
PROBLEMS = {
    "xy": Kind(constrained, ("sumbo-optuna", "sumbo", "optuna-tpe", "optuna-gp")),
    "systems": Kind(systems, ("sumbo",), SYSTEMS),
    "mixture-8": Kind(mixed, ("sumbo", "random", "botorch")),
    "three-models": Kind(conditional, ("sumbo", "random", "optuna-tpe", "optuna-tpe-group")),
    "svm-breast-cancer": Kind(conditional, ("sumbo", "optuna-tpe", "optuna-tpe-group")),
    "svm-diabetes": Kind(conditional, ("sumbo", "optuna-tpe", "optuna-tpe-group")),
    "noisy": Kind(noisy, ("sumbo", "sumbo-std", "optuna-tpe", "optuna-gp")),
    "contexts": Kind(contexts, ("sumbo", "sumbo-by-class", "sumbo-no-context")),
    **{name: Kind(constrained, DESIGN_METHODS) for name in DESIGNS},
}
METHODS = tuple(dict.fromkeys(method for kind in PROBLEMS.values() for method in kind.methods))


def wanted(problems: list[str], methods: list[str], seeds: int | None = None) -> list[Task]:
    """The tasks, the cheap ones first, and seed by seed, so that a part of them compares all methods."""
    tasks = [
        Task(problem, method, seed)
        for problem in problems
        for method in PROBLEMS[problem].methods
        if method in methods
        for seed in range(min(seeds or SYSTEMS, PROBLEMS[problem].seeds))
    ]
    return sorted(tasks, key=lambda task: (_stage(task), task.seed, METHODS.index(task.method)))


def _stage(task: Task) -> int:
    return 0 if task.problem not in DESIGNS else 2 if task.method == "botorch" else 1


def run(task: Task) -> Run:
    """Do the task. A peer that raises an error keeps what it had found; sumbo must raise none."""
    if task.method.startswith("sumbo"):
        compile_loops()
    log, error = Log(), None
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of peers, about numerics and settings to come
        try:
            answer = PROBLEMS[task.problem].run(task, log)
        except Exception as problem:
            if task.method.startswith("sumbo") or not log.curve:
                raise
            answer, error = {}, f"{type(problem).__name__}: {problem}"[:200]
    seconds = time.process_time() - began - log.seconds
    line: Run = {**task._asdict(), "final": _number(log.best), "trials": len(log.curve), "seconds": round(seconds, 2)}
    line |= {**answer, **({"error": error} if error else {}), "params": log.params}
    line["curve"] = [_number(value, digits=7) for value in log.curve] if task.problem != "systems" else []
    return {**line, "versions": _versions(task.method)}


def _number(value: float, digits: int | None = None) -> float | None:
    if not math.isfinite(value):
        return None
    return float(value) if digits is None else float(f"{value:.{digits}g}")


def _versions(method: str) -> dict[str, str]:
    own = {"sumbo": sumbo.__version__, "numpy": np.__version__}
    return own | {package: version(package) for package in NEEDS.get(method, ())}


def missing(method: str) -> list[str]:
    """What a method needs and is not installed."""
    return [package for package in NEEDS.get(method, ()) if find_spec(package) is None]


def warm_up() -> None:
    """Import the peers, so that no run's clock counts it."""
    for package in ("sklearn.svm", "optuna", "botorch.fit", "botorch.optim"):
        if find_spec(package.partition(".")[0]) is not None:
            importlib.import_module(package)


@functools.cache
def compile_loops() -> None:
    """Likewise for sumbo, in the processes that run it."""
    sumbo.minimize(sum, [(0.0, 1.0)] * 4, 34, seed=0, progress=False)


def task_of(record: Run) -> Task:
    return Task(*(record[name] for name in Task._fields))


def title(task: Task) -> str:
    return f"{task.problem}, {task.method}, seed {task.seed}"


def news(record: Run) -> str:
    failed = f", stopped by {record['error']}" if "error" in record else ""
    return f"{record['final']}, {record['seconds']:.0f} s{failed}"


WORK = Work(run, warm_up, task_of, title, news)
