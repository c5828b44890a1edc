"""The demonstration: a sum of functions of hidden pairs of 20 parameters."""

import math
import time
from dataclasses import dataclass

from rich.console import Group
from rich.table import Column, Table
from rich.text import Text

from sumbo.gp.decomposition import Decomposition
from sumbo.methods import Auto
from sumbo.problems import Problem, additive
from sumbo.study.run import maximize

_D, _SIZE, _COUNT = 20, 2, 9  # nine hidden pairs among 20 parameters, two of which do nothing


@dataclass(frozen=True)
class Outcome:
    """What the demonstration found."""

    problem: Problem
    best: float
    at_random: float
    learned: Decomposition
    evaluations: int
    seconds: float


def introduction(seed: int) -> Text:
    """What is about to happen."""
    problem = additive(_D, _SIZE, _COUNT, seed)
    return Text(
        f"Maximising {problem.name}: {_D} parameters, {_COUNT} hidden groups of {_SIZE}, "
        f"{3**_COUNT} local maxima, the best value is {problem.optimum:.2f}."
    )


def run(seed: int, budget: int) -> Outcome:
    """Optimise, and search at random for comparison."""
    problem = additive(_D, _SIZE, _COUNT, seed)
    started = time.monotonic()
    # A fifth of the budget to look around: groups are learned from points that differ.
    method = Auto(n_init=max(budget // 5, 1), max_group_size=4)
    found = maximize(problem, problem.space, budget, seed=seed, method=method)
    chance = maximize(problem, problem.space, budget, seed=seed, method="random", progress=False)
    learned = found.optimizer.decomposition or Decomposition.apart(_D)
    # None after Ctrl-C before the first value.
    best, at_random = (math.nan if result.value is None else result.value for result in (found, chance))
    return Outcome(problem, best, at_random, learned, len(found.trials), time.monotonic() - started)


def summary(outcome: Outcome) -> Group:
    """Best values and groups, side by side."""
    values = Table("", Column("best value", justify="right"))
    values.title = f"{outcome.evaluations} evaluations, {outcome.seconds:.0f} s"
    values.add_row("the true maximum", f"{outcome.problem.optimum:.2f}")
    values.add_row("sumbo", f"{outcome.best:.2f}", style="bold")
    values.add_row("random search", f"{outcome.at_random:.2f}")
    true = {tuple(sorted(group)) for group in outcome.problem.groups or ()}
    groups = Table("true", "learned", "", title="hidden groups, and those that sumbo learned")
    rest = [group for group in outcome.learned.groups if group not in true and len(group) > 1]
    for group in sorted(true):
        hit = group in outcome.learned.groups
        groups.add_row(str(group), str(group) if hit else "", "found" if hit else "missed")
    for group in rest:
        groups.add_row("", str(group), "not a true group")
    return Group(values, groups)
