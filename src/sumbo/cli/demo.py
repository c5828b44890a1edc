"""The demonstration: a sum of functions of hidden pairs of 20 parameters."""

import math
import time
from typing import Any

from rich.console import Console, Group
from rich.table import Column, Table
from rich.text import Text

from sumbo.gp.decomposition import Decomposition
from sumbo.methods import Auto
from sumbo.problems import additive
from sumbo.study.run import maximize

_D, _SIZE, _COUNT = 20, 2, 9  # nine hidden pairs among 20 parameters, two of which do nothing


def run(seed: int, budget: int, console: Console) -> tuple[dict[str, Any], Group]:
    """Optimise, and search at random for comparison: what was found as plain data, and as tables."""
    problem = additive(_D, _SIZE, _COUNT, seed)
    about = f"{_D} parameters, {_COUNT} hidden groups of {_SIZE}, {3**_COUNT} local maxima"
    console.print(Text(f"Maximising {problem.name}: {about}, the best value is {problem.optimum:.2f}."))
    started = time.monotonic()
    # A fifth of the budget to look around: groups are learned from points that differ.
    method = Auto(n_init=max(budget // 5, 1), max_group_size=4)
    found = maximize(problem, problem.space, budget, seed=seed, method=method)
    chance = maximize(problem, problem.space, budget, seed=seed, method="random", progress=False)
    learned = (found.optimizer.decomposition or Decomposition.apart(_D)).groups
    # None after Ctrl-C before the first value.
    best, at_random = (math.nan if result.value is None else result.value for result in (found, chance))
    values = Table("", Column("best value", justify="right"))
    values.title = f"{len(found.trials)} evaluations, {time.monotonic() - started:.0f} s"
    values.add_row("the true maximum", f"{problem.optimum:.2f}")
    values.add_row("sumbo", f"{best:.2f}", style="bold")
    values.add_row("random search", f"{at_random:.2f}")
    true = {tuple(sorted(group)) for group in problem.groups or ()}
    groups = Table("true", "learned", "", title="hidden groups, and those that sumbo learned")
    for group in sorted(true):
        hit = group in learned
        groups.add_row(str(group), str(group) if hit else "", "found" if hit else "missed")
    for group in learned:
        if group not in true and len(group) > 1:
            groups.add_row("", str(group), "not a true group")
    data = {"best": best, "at_random": at_random, "optimum": problem.optimum, "groups": list(map(list, learned))}
    return data, Group(values, groups)
