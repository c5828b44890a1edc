"""How often suggestions fail where a fifth of the box does: 200 evaluations, failures among the last 100.

    python benchmarks/failures.py --seeds 5

One line for every problem and seed, then the mean. Chance is 20; fewer than 5 are wanted.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
from statistics import mean

from sumbo import Optimizer, problems
from sumbo.problems import Problem

BUDGET = 200
KINDS = ["cosmology", *(f"{base}, {shape}" for base in ("levy", "ackley") for shape in ("corner", "band", "cells"))]


def problem_of(kind: str, seed: int) -> Problem:
    if kind == "cosmology":
        return problems.cosmology(12)
    base, shape = kind.split(", ")
    return problems.with_failures(
        {"levy": problems.levy, "ackley": problems.ackley}[base](12, shift_seed=seed), shape, seed
    )


def run(problem: Problem, seed: int, method: str) -> tuple[int, int, float]:
    """Failures among the first half and the second, and the regret."""
    opt = Optimizer(problem.space, method, problem.direction, seed=seed)
    for _ in range(BUDGET):
        trial = opt.ask()
        opt.tell(trial, problem(trial.x))
    failed = [trial.state == "failed" for trial in opt.trials]
    best = opt.best
    assert best is not None
    assert best.value is not None
    return sum(failed[: BUDGET // 2]), sum(failed[BUDGET // 2 :]), problem.regret(best.value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--only", choices=KINDS, nargs="*", default=KINDS)
    options = parser.parse_args()
    for kind in options.only:
        results = []
        for seed in range(options.seeds):
            results.append(run(problem_of(kind, seed), seed, options.method))
            first, last, regret = results[-1]
            print(
                f"{kind:16} seed {seed}: {first:3} of the first 100, {last:3} of the last; regret {regret:.4g}",
                flush=True,
            )
        print(
            f"{kind:16} mean: last {mean(r[1] for r in results):.1f}, regret {mean(r[2] for r in results):.4g}",
            flush=True,
        )


if __name__ == "__main__":
    main()
