"""Three small problems in the place of `benchmarks/suite_problems.py`."""

from functools import partial

from suite_task import Entry as SuiteEntry
from suite_task import Task

import sumbo

Entry = partial(SuiteEntry, budget=20)


def _bowl(dim, noise=0.0):
    def make(seed):
        centre = 0.2 + 0.05 * (seed % 3)
        value = lambda params: sum((x - centre) ** 2 for x in params.values())  # noqa: E731
        return Task(sumbo.Space.from_bounds([(0.0, 1.0)] * dim), value, "minimize", 0.0, noise)

    return make


def _mixed(seed):
    space = sumbo.Space({
        "rate": sumbo.Float(1e-4, 1.0, log=True), "depth": sumbo.Int(1, 9), "width": sumbo.Int(1, 512, log=True),
        "kind": sumbo.Categorical(["a", "b", "c"]), "share": sumbo.Float(0.0, 1.0),
    })  # fmt: skip
    return Task(space, lambda p: (p["kind"] == "b") - abs(p["depth"] - 3) - p["share"], "maximize", None)


DEVELOPMENT = {
    "bowl": Entry(_bowl(5), 5, real=False),
    "noisy-bowl": Entry(_bowl(4, noise=10.0), 4, real=False),
    "mixed": Entry(_mixed, 5, real=True),
    "far": Entry(_bowl(120), 120, real=False, needs=("no_such_package",)),
}
TEST = {"other-bowl": Entry(_bowl(6), 6, real=False)}
LONG = ("bowl",)
