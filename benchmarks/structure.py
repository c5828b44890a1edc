"""How well groups are learned from random points, beside the paper's random trials.

    python benchmarks/structure.py --out structure.jsonl --markdown table.md

Every finished run is a line of JSON in the --out file, and the same command goes on where it was stopped. Runs are
remembered by experiment, points and seed only: use a new file after a change of sumbo.

| symbol | shape        | meaning                                             |
|--------|--------------|-----------------------------------------------------|
| X, y   | (n, D), (n,) | random points in the unit cube, standardised values |
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import sumbo
from sumbo import kernels, structure
from sumbo.decomposition import Decomposition
from sumbo.fit import FitSettings
from sumbo.gp import AdditiveGP
from sumbo.methods.add_gp_ucb import PAPER_FIT

RUNS = Path(__file__).with_name("structure.jsonl")
TIED = FitSettings(ard=False, group_scales=False)
LARGEST = 8  # max_group_size everywhere
SURE = 0.9
EVALUATIONS = {200: 10000}  # of a search; with more points the data decide sooner
FEWER = 2000
SAMPLED = 20000  # evaluations of a posterior

Array = NDArray[np.float64]
Run = dict[str, Any]


class Data(NamedTuple):
    """Observations of a function whose groups are known."""

    X: Array
    y: Array
    groups: Decomposition
    kernel: str


class Task(NamedTuple):
    """One run to do; also the key under which a finished run is found again."""

    experiment: str
    n: int
    seed: int


# --- functions ---


def drawn(groups: Decomposition, n: int, rng: np.random.Generator, **model: Any) -> Data:
    """A function drawn from an additive GP."""
    gp = AdditiveGP(groups, **model)
    X = rng.random((n, groups.dim))
    K = kernels.gram(np.ascontiguousarray(X.T), gp.terms)
    K += np.tril(K, -1).T + 1e-6 * np.eye(n)
    return Data(X, standardised(np.linalg.cholesky(K) @ rng.standard_normal(n)), groups, gp.kernel)


def threes(kernel: str) -> Callable[[int, int], Data]:
    """Hidden groups of 3 of 24 dimensions, lengthscale 0.5."""

    def make(n: int, seed: int) -> Data:
        rng = np.random.default_rng(seed)
        return drawn(Decomposition.random(24, 3, rng), n, rng, kernel=kernel, lengthscales=0.5)

    return make


def paper_function(n: int, seed: int) -> Data:
    problem = sumbo.problems.additive(24, 6, 4, seed)
    X = np.random.default_rng(seed).random((n, 24))
    assert problem.groups is not None
    return Data(X, standardised(problem.values(2.0 * X - 1.0)), Decomposition(problem.groups), "matern52")


def anything(n: int, seed: int) -> Data:
    """Random dimension, groups of 1 to 5, kernel, lengthscale and scales; the model's kernel is Matern-5/2."""
    rng = np.random.default_rng(100 + seed)
    order = rng.permutation(int(rng.integers(10, 25))).tolist()
    groups = []
    while order:
        size = int(rng.integers(1, 6))
        groups.append(order[:size])
        order = order[size:]
    kernel = ("se", "matern32", "matern52")[seed % 3]
    lengthscale, scales = rng.uniform(0.3, 1.0), rng.uniform(0.5, 1.5, len(groups))
    data = drawn(Decomposition(groups), n, rng, kernel=kernel, lengthscales=lengthscale, scales=scales)
    return data._replace(kernel="matern52")


def standardised(y: Array) -> Array:
    return (y - y.mean()) / y.std()


# --- experiments ---


def compare(make: Callable[[int, int], Data]) -> Callable[[int, int], Run]:
    """Search and the paper's procedure, which is told the true size of the groups."""

    def run(n: int, seed: int) -> Run:
        data = make(n, seed)
        D, d = data.groups.dim, len(data.groups.groups[0])
        rng = np.random.default_rng(seed)
        apart = AdditiveGP(Decomposition.apart(D), kernel=data.kernel)
        start = time.process_time()
        found = structure.search(
            data.X, data.y, apart, rng, max_group_size=LARGEST, evaluations=EVALUATIONS.get(n, FEWER)
        )
        seconds = time.process_time() - start
        guess = AdditiveGP(Decomposition.random(D, d, rng), kernel=data.kernel)
        guess = guess.fit(data.X, data.y, settings=PAPER_FIT)
        paper = structure.random_trials(data.X, data.y, guess, rng, group_size=d, trials=D)
        truth = evidence(data, data.groups)
        return {
            "ari": adjusted_rand(found, data.groups),
            "gain": evidence(data, found) - truth,
            "paper_ari": adjusted_rand(paper, data.groups),
            "paper_gain": evidence(data, paper) - truth,
            "seconds": seconds,
        }

    return run


def calibrate(make: Callable[[int, int], Data]) -> Callable[[int, int], Run]:
    """How many pairs the posterior is sure of, and how many of these are right."""

    def run(n: int, seed: int) -> Run:
        data = make(n, seed)
        apart = AdditiveGP(Decomposition.apart(data.groups.dim), kernel=data.kernel)
        start = time.process_time()
        found = structure.posterior(
            data.X, data.y, apart, np.random.default_rng(seed), max_group_size=LARGEST, evaluations=SAMPLED
        )
        seconds = time.process_time() - start
        labels = data.groups.labels
        pairs = list(combinations(range(data.groups.dim), 2))
        sure = [pair for pair in pairs if found.together[pair] >= SURE]
        return {
            "true": sum(labels[i] == labels[k] for i, k in pairs),
            "sure": len(sure),
            "right": sum(labels[i] == labels[k] for i, k in sure),
            "seconds": seconds,
        }

    return run


def relearn(n: int, seed: int) -> Run:
    """The seconds of a search with default settings in 40 dimensions."""
    rng = np.random.default_rng(seed)
    data = drawn(Decomposition.random(40, 4, rng), n, rng, lengthscales=0.5)
    model = AdditiveGP(Decomposition.random(40, 4, rng))
    start = time.process_time()
    structure.search(data.X, data.y, model, rng, max_group_size=4)
    return {"seconds": time.process_time() - start}


COMPARED = {
    "GP draws, SE": (compare(threes("se")), (200, 400)),
    "GP draws, Matern-5/2": (compare(threes("matern52")), (200, 400)),
    "additive(24,6,4)": (compare(paper_function), (200, 400, 800)),
}
CALIBRATED = {
    "20 random additive functions": (calibrate(anything), (200,)),
    "additive(24,6,4), posterior": (calibrate(paper_function), (200,)),
}
TIMED = {"relearn, D=40": (relearn, (200,))}
EXPERIMENTS = {**COMPARED, **CALIBRATED, **TIMED}


def evidence(data: Data, groups: Decomposition) -> float:
    """Log evidence with tied hyperparameters fitted to these groups."""
    return AdditiveGP(groups, kernel=data.kernel).fit(data.X, data.y, settings=TIED).log_marginal_likelihood()


def adjusted_rand(a: Decomposition, b: Decomposition) -> float:
    """1 for equal groups, about 0 for random ones."""
    both = sum(comb(len({*g} & {*h}), 2) for g in a.groups for h in b.groups)
    in_a, in_b = (sum(comb(len(g), 2) for g in d.groups) for d in (a, b))
    by_chance = in_a * in_b / comb(a.dim, 2)
    most = 0.5 * (in_a + in_b)
    return 1.0 if most == by_chance else (both - by_chance) / (most - by_chance)


# --- runs and table ---


def read_runs(path: Path) -> dict[Task, Run]:
    """The finished runs of a file; a last line that was cut off is left out."""
    runs = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            record = json.loads(line)
        except ValueError:
            break
        runs[Task(record["experiment"], record["n"], record["seed"])] = record
    return runs


def run_all(tasks: list[Task], done: dict[Task, Run], out: Path) -> None:
    """Do the tasks one after the other and write each down as it ends."""
    kept = "".join(json.dumps(record) + "\n" for record in done.values())
    out.write_text(kept, encoding="utf-8")  # without what was cut off
    with out.open("a", encoding="utf-8") as file:
        for i, task in enumerate(tasks, start=1):
            record = {**task._asdict(), **EXPERIMENTS[task.experiment][0](task.n, task.seed)}
            done[task] = record
            file.write(json.dumps(record) + "\n")
            file.flush()
            print(f"[{i}/{len(tasks)}] {record}", file=sys.stderr, flush=True)


def table(runs: dict[Task, Run]) -> str:
    """All runs as Markdown."""
    rows = [
        "| groups recovered | points | ARI | paper's | evidence over the true groups' (least) | paper's | seconds |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, n, mine in chosen(runs, COMPARED):
        cells = [f"{mean(mine, 'ari'):.2f}", f"{mean(mine, 'paper_ari'):.2f}"]
        cells += [f"{mean(mine, gain):+.1f} ({min(r[gain] for r in mine):+.1f})" for gain in ("gain", "paper_gain")]
        rows.append(f"| {name} | {n} | {' | '.join(cells)} | {mean(mine, 'seconds'):.1f} |")
    rows += [
        "",
        f"| pairs given p >= {SURE} | points | of all true ones | right | seconds |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, n, mine in chosen(runs, CALIBRATED):
        true, sure, right = (sum(r[key] for r in mine) for key in ("true", "sure", "right"))
        share = f"{right} of {sure} ({right / max(1, sure):.0%})"
        rows.append(f"| {name} | {n} | {right / true:.0%} | {share} | {mean(mine, 'seconds'):.1f} |")
    for name, n, mine in chosen(runs, TIMED):
        slowest = max(r["seconds"] for r in mine)
        rows += ["", f"{name}, {n} points: {mean(mine, 'seconds'):.2f} s on one core, at most {slowest:.2f} s."]
    return "\n".join([*rows, ""])


def chosen(runs: dict[Task, Run], experiments: dict[str, Any]) -> list[tuple[str, int, list[Run]]]:
    rows = [(name, n) for name, (_, sizes) in experiments.items() for n in sizes]
    found = [(name, n, [r for t, r in runs.items() if t[:2] == (name, n)]) for name, n in rows]
    return [row for row in found if row[2]]


def mean(runs: list[Run], key: str) -> float:
    return statistics.fmean(run[key] for run in runs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="seeds 0 to N - 1 (default: 5)")
    parser.add_argument("--functions", type=int, default=20, help="random functions to calibrate on (default: 20)")
    parser.add_argument("--out", type=Path, default=RUNS, help=f"the runs (default: {RUNS.name} beside this script)")
    parser.add_argument("--markdown", type=Path, help="file to write the table to")
    options = parser.parse_args()
    done = read_runs(options.out)
    many = {"20 random additive functions": options.functions}
    wanted = [
        Task(name, n, seed)
        for name, (_, sizes) in EXPERIMENTS.items()
        for n in sizes
        for seed in range(many.get(name, options.seeds))
    ]
    relearn(50, 0)  # compile before any clock runs
    run_all([task for task in wanted if task not in done], done, options.out)
    text = table({task: done[task] for task in wanted})
    print(text)
    if options.markdown:
        options.markdown.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
