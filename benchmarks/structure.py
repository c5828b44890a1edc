"""How well groups are learned from random points, beside the paper's random trials.

    python benchmarks/structure.py --out structure.jsonl --markdown table.md

Every finished run is a line of JSON in the --out file, and the same command goes on where it was stopped. Runs are
remembered by experiment, points and seed only: use a new file after a change of sumbo.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from math import comb
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from structure_data import (
    Data,
    anything,
    chain,
    drawn,
    graph,
    observed,
    pairs_of,
    paper_function,
    powell,
    steep,
    threes,
)

import sumbo
from sumbo import structure
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.decomposition import Decomposition
from sumbo.gp.fit import FitSettings

RUNS = Path(__file__).with_name("structure.jsonl")
TIED = FitSettings(ard=False, group_scales=False)
LARGEST = 8  # max_group_size everywhere
SURE = 0.9
# Of a search; from 10,000 on, half of them for one size. With more points the data decide sooner.
EVALUATIONS = {200: 40_000, 400: 4000, 800: 4000}
FEWER = 2000  # where groups are no end in themselves
SAMPLED = 20000  # evaluations of a posterior

TESTED = 1000  # points that held-out likelihoods are measured at
Run = dict[str, Any]


class Task(NamedTuple):
    """One run to do; also the key under which a finished run is found again."""

    experiment: str
    n: int
    seed: int


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
        guess = guess.fit(data.X, data.y, settings=FitSettings.paper())
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
        sure = {(i, k) for i, k in np.argwhere(np.triu(found.together >= SURE, 1)).tolist()}
        return {
            "true": len(data.pairs),
            "sure": len(sure),
            "right": len(sure & data.pairs),
            "seconds": seconds,
        }

    return run


def overlap(make: Callable[[int, int], Data]) -> Callable[[int, int], Run]:
    """Interacting pairs found where groups may overlap, and by the paper's procedure with groups of four."""

    def run(n: int, seed: int) -> Run:
        data = make(n, seed)
        D, rng = data.groups.dim, np.random.default_rng(seed)
        apart = AdditiveGP(Decomposition.apart(D), kernel=data.kernel)
        start = time.process_time()
        found = pairs_of(structure.search_overlapping(data.X, data.y, apart, rng))
        seconds = time.process_time() - start
        guess = AdditiveGP(Decomposition.random(D, 4, rng), kernel=data.kernel)
        guess = guess.fit(data.X, data.y, settings=FitSettings.paper())
        paper = pairs_of(structure.random_trials(data.X, data.y, guess, rng, group_size=4, trials=D))
        return {
            "true": len(data.pairs),
            "found": len(found),
            "right": len(found & data.pairs),
            "paper_found": len(paper),
            "paper_right": len(paper & data.pairs),
            "seconds": seconds,
        }

    return run


def hold_out(name: str) -> Callable[[int, int], Run]:
    """Log-likelihood of an unseen value under learned groups with a full-order term, and under one group of all.

    Also the share that irrelevant dimensions have of the variance which the groups explain.
    """

    def run(n: int, seed: int) -> Run:
        problem = sumbo.problems.get(name, seed=seed)
        X, y = observed(problem, n + TESTED, seed)
        y = (y - y[:n].mean()) / y[:n].std()
        plain = AdditiveGP(Decomposition.whole(problem.dim)).fit(X[:n], y[:n])
        apart = Decomposition.apart(problem.dim)
        found = structure.search(
            X[:n], y[:n], AdditiveGP(apart), np.random.default_rng(seed), max_group_size=LARGEST, evaluations=FEWER
        )
        model = max((AdditiveGP(groups, full_order=True).fit(X[:n], y[:n]) for groups in (apart, found)), key=worth)
        variances = model.group_means(X[n:])[:-1].var(axis=1)
        of_dims = {i: v / len(g) for g, v in zip(model.groups, variances, strict=False) for i in g}
        return {
            "learned": likelihood(model, X[n:], y[n:]),
            "plain": likelihood(plain, X[n:], y[n:]),
            "joined": model.decomposition != apart,
            "irrelevant": float(sum(of_dims[i] for i in problem.irrelevant) / variances.sum()),
        }

    return run


def worth(model: AdditiveGP) -> float:
    """Evidence less log D for every dimension that joins another: the rule by which `auto` takes other groups."""
    D, M = model.decomposition.dim, len(model.decomposition)
    return model.log_marginal_likelihood() - (D - M) * float(np.log(D))


def likelihood(model: AdditiveGP, X: Any, y: Any) -> float:
    """Mean log-likelihood of a value."""
    mean, std = model.posterior(X)
    variance = np.square(std) + model.noise_variance
    return float(np.mean(-0.5 * np.square(y - mean) / variance - 0.5 * np.log(2.0 * np.pi * variance)))


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
    "20 sums of steep terms, points of a search": (calibrate(steep), (40, 100)),
}
OVERLAPPING = {
    "Powell-40": (overlap(powell), (400,)),
    "Rosenbrock-20": (overlap(chain), (400,)),
    "15 random pairs, SE": (overlap(graph("se")), (400,)),
    "15 random pairs, Matern-5/2": (overlap(graph("matern52")), (400,)),
}
HELD_OUT = {
    name: (hold_out(name), (200, 400))
    for name in ("ackley-20", "rosenbrock-20", "additive-24-6-4", "additive-20-4-5", "hartmann6-50")
}
TIMED = {"relearn, D=40": (relearn, (200,))}
EXPERIMENTS = {**COMPARED, **CALIBRATED, **OVERLAPPING, **HELD_OUT, **TIMED}


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
    parts = [compared(runs), calibrated(runs), overlapping(runs), held_out(runs)]
    for name, n, mine in chosen(runs, TIMED):
        slowest = max(r["seconds"] for r in mine)
        parts.append([f"{name}, {n} points: {mean(mine, 'seconds'):.2f} s on one core, at most {slowest:.2f} s."])
    return "\n\n".join("\n".join(rows) for rows in parts) + "\n"


def compared(runs: dict[Task, Run]) -> list[str]:
    rows = [
        "| groups recovered | points | ARI | paper's | evidence over the true groups' (least) | paper's | seconds |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, n, mine in chosen(runs, COMPARED):
        cells = [f"{mean(mine, 'ari'):.2f}", f"{mean(mine, 'paper_ari'):.2f}"]
        cells += [f"{mean(mine, gain):+.1f} ({min(r[gain] for r in mine):+.1f})" for gain in ("gain", "paper_gain")]
        rows.append(f"| {name} | {n} | {' | '.join(cells)} | {mean(mine, 'seconds'):.1f} |")
    return rows


def calibrated(runs: dict[Task, Run]) -> list[str]:
    rows = [f"| pairs given p >= {SURE} | points | of all true ones | right | seconds |", "|---|---:|---:|---:|---:|"]
    for name, n, mine in chosen(runs, CALIBRATED):
        true, sure, right = (sum(r[key] for r in mine) for key in ("true", "sure", "right"))
        share = f"{right} of {sure}" + (f" ({right / sure:.0%})" if sure else "")
        rows.append(f"| {name} | {n} | {right / true:.0%} | {share} | {mean(mine, 'seconds'):.1f} |")
    return rows


def overlapping(runs: dict[Task, Run]) -> list[str]:
    rows = [
        "| pairs, overlaps allowed | points | true ones found (least) | wrong among those found (most) "
        "| paper's: found, wrong | seconds |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, n, mine in chosen(runs, OVERLAPPING):
        cells = []
        for prefix in ("", "paper_"):
            found = [r[f"{prefix}right"] / r["true"] for r in mine]
            wrong = [1.0 - r[f"{prefix}right"] / max(1, r[f"{prefix}found"]) for r in mine]
            cells.append([statistics.fmean(found), min(found), statistics.fmean(wrong), max(wrong)])
        (found_, least, wrong_, most), paper = cells
        rows.append(
            f"| {name} | {n} | {found_:.0%} ({least:.0%}) | {wrong_:.0%} ({most:.0%}) "
            f"| {paper[0]:.0%}, {paper[2]:.0%} | {mean(mine, 'seconds'):.0f} |"
        )
    return rows


def held_out(runs: dict[Task, Run]) -> list[str]:
    rows = [
        "| log-likelihood of nearest_untried values | points | learned groups and full order | one group of all "
        "| difference (least) | groups taken | variance of irrelevant dimensions |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, n, mine in chosen(runs, HELD_OUT):
        difference = [r["learned"] - r["plain"] for r in mine]
        irrelevant = f"{mean(mine, 'irrelevant'):.1%}" if name.startswith("hartmann") else ""
        rows.append(
            f"| {name} | {n} | {mean(mine, 'learned'):.3f} | {mean(mine, 'plain'):.3f} "
            f"| {statistics.fmean(difference):+.3f} ({min(difference):+.3f}) "
            f"| {sum(r['joined'] for r in mine)} of {len(mine)} | {irrelevant} |"
        )
    return rows


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
    many = {name: options.functions for name in CALIBRATED if name.startswith("20 ")}
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
