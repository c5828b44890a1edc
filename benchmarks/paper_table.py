"""sumbo's Add-GP-UCB beside the paper's methods, on the paper's synthetic family.

    python benchmarks/paper_table.py --out runs.jsonl --markdown table.md

Every finished run is a line of JSON in the --out file, and the same command goes on where it was stopped.
Runs are remembered by method, seed, budget and configuration only: use a new file after a change of sumbo.
"""

import argparse
import math
import shlex
import statistics
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from runs import (
    EVERY,
    STOPPED,
    Run,
    Timed,
    Work,
    checkpoints,
    complete,
    default_jobs,
    measured,
    news,
    read_lines,
    standard_error,
)

import sumbo
from sumbo.methods import Method
from sumbo.problems import Problem

RUNS = Path(__file__).parents[1] / "docs" / "paper_table.jsonl"


class Task(NamedTuple):
    """One run to do; also the key under which a finished run is found again."""

    method: str
    seed: int
    budget: int
    configuration: tuple[int, int, int]  # D, d, M


def methods(problem: Problem, d: int, M: int) -> dict[str, str | Method]:
    """What is compared, by the name it has in the table."""
    known = (*(problem.groups or ()), *((i,) for i in problem.irrelevant))
    return {
        "Add-GP-UCB, sumbo's settings": sumbo.AddGPUCB(),
        f"Add-{d}/{M}, paper's settings": sumbo.AddGPUCB.paper(d),
        "Add-*, groups known, paper's settings": sumbo.AddGPUCB.paper(d, groups=known),
        "GP-UCB, paper's settings": sumbo.GPUCB.paper(),
        "RAND": "random",
        "DIRECT": "direct",
        "auto": "auto",
    }


# --- one run, in a process of its own ---


def run(task: Task) -> Run:
    """The line of a finished run."""
    D, d, M = task.configuration
    problem = sumbo.problems.additive(D, d, M, task.seed)
    f = Timed(problem)
    method = methods(problem, d, M)[task.method]
    start = time.perf_counter()
    found = sumbo.maximize(f, problem.space, task.budget, method=method, seed=task.seed, progress=False)
    seconds = time.perf_counter() - start - f.seconds
    values = [math.nan if trial.value is None else trial.value for trial in found.trials]
    return {**task._asdict(), **measured(values, problem, seconds)}


def warm_up() -> None:
    """Import and compile what the methods use, so that no run's clock counts it."""
    for method in ("auto", sumbo.AddGPUCB(2), sumbo.AddGPUCB.paper(2), sumbo.GPUCB.paper()):
        sumbo.maximize(sum, [(0.0, 1.0)] * 4, 28, method=method, seed=0, progress=False)


# --- all runs ---


def task_of(record: Run) -> Task:
    """The task that a line is the result of."""
    D, d, M = record["configuration"]
    return Task(record["method"], record["seed"], record["budget"], (D, d, M))


def title(task: Task) -> str:
    return f"{task.method}, seed {task.seed}"


def read_runs(path: Path) -> dict[Task, Run]:
    """The finished runs of a file.

    Raises:
        ValueError: A line is not a run; the message says which.
    """
    return read_lines(path, task_of)


WORK = Work(run, warm_up, task_of, title, news)


# --- the table ---


def table(runs: Mapping[Task, Run], budget: int, caption: str) -> str:
    """The runs as Markdown, a row for each method."""
    half = max(t for t in checkpoints(budget) if 2 * t <= budget)
    rows = [
        f"| method | simple regret at {half} | at {budget} | R_T / T | seconds per suggestion |",
        "|---|---:|---:|---:|---:|",
    ]
    for name in dict.fromkeys(task.method for task in runs):
        mine = [record for task, record in runs.items() if task.method == name]
        cells = [mean_and_error([regret_at(record, t) for record in mine]) for t in (half, budget)]
        cells.append(mean_and_error([record["average_regret"] for record in mine]))
        cells.append(f"{statistics.median(record['seconds_per_suggestion'] for record in mine):.2g}")
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*rows, "", caption, ""])


def regret_at(record: Run, t: int) -> float:
    return float(record["simple_regret"][record["evaluations"].index(t)])


def mean_and_error(values: list[float]) -> str:
    """Mean and standard error; of a single value there is no error to tell."""
    mean = statistics.fmean(values)
    if len(values) == 1:
        return f"{mean:.1f}"
    return f"{mean:.1f} ± {standard_error(values):.1f}"


# --- command line ---


def main() -> int:
    options = parse_options()
    D, d, M = options.configuration
    try:
        names = list(methods(sumbo.problems.additive(D, d, M), d, M))
        done = read_runs(options.out)
    except ValueError as error:
        sys.exit(f"{Path(__file__).name}: {error}")
    seeds = range(options.seeds)
    wanted = [Task(name, seed, options.budget, (D, d, M)) for seed in seeds for name in names]
    try:
        failed = complete(WORK, wanted, done, options.out, options.jobs)
    except KeyboardInterrupt:
        return STOPPED
    if failed:
        print(f"{failed} runs failed, so there is no table", file=sys.stderr)
        return 1
    done = read_runs(options.out)
    over = "seed 0" if options.seeds == 1 else f"seeds 0 to {options.seeds - 1}"
    caption = (
        f"`additive({D}, {d}, {M})`, {options.budget} evaluations: mean ± standard error over {over}; "
        "seconds are the median, each run on one thread. "
        f"Made by `{shlex.join(['python', *sys.argv])}`."
    )
    text = table({task: done[task] for task in wanted}, options.budget, caption)
    print(text, end="")
    if options.markdown is not None:
        options.markdown.write_text(text, encoding="utf-8")
    return 0


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="seeds 0 to N - 1 (default: 5)")
    parser.add_argument("--budget", type=int, default=200, help="evaluations of a run (default: 200)")
    parser.add_argument(
        "--configuration",
        type=int,
        nargs=3,
        default=(24, 6, 4),
        metavar=("D", "d", "M"),
        help="dimensions, size and number of groups (default: 24 6 4)",
    )
    parser.add_argument("--jobs", type=int, default=default_jobs(), help="runs at a time (default: number of cores)")
    parser.add_argument("--out", type=Path, default=RUNS, help=f"the runs (default: docs/{RUNS.name})")
    parser.add_argument("--markdown", type=Path, help="file to write the table to")
    options = parser.parse_args()
    if min(options.seeds, options.jobs) < 1 or options.budget < 2 * EVERY:
        parser.error(f"--seeds and --jobs must be at least 1, --budget at least {2 * EVERY}")
    return options


if __name__ == "__main__":
    sys.exit(main())
