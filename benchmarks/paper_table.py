"""sumbo's Add-GP-UCB beside the paper's methods, on the paper's synthetic family.

    python benchmarks/paper_table.py --out runs.jsonl --markdown table.md

Every finished run is a line of JSON in the --out file, and the same command goes on where it was stopped.
Runs are remembered by method, seed, budget and configuration only: use a new file after a change of sumbo.
"""

import argparse
import json
import math
import multiprocessing
import os
import shlex
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import sumbo
from sumbo.methods import Method
from sumbo.problems import Problem

RUNS = Path(__file__).with_name("paper_table.jsonl")
EVERY = 10  # evaluations between two points of a regret curve
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL", "NUMBA")}

Run = dict[str, Any]  # a line of the file


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
    simple = sumbo.regret.simple_regret(values, problem.optimum, direction=problem.direction)
    average = sumbo.regret.average_regret(values, problem.optimum, direction=problem.direction)
    evaluations = checkpoints(task.budget)
    return {
        **task._asdict(),
        "evaluations": evaluations,
        "simple_regret": [float(simple[t - 1]) for t in evaluations],
        "average_regret": float(average[-1]),
        "seconds_per_suggestion": seconds / task.budget,
    }


class Timed:
    """An objective that counts the seconds spent in it."""

    def __init__(self, f: Callable[[Any], float]) -> None:
        self.f = f
        self.seconds = 0.0

    def __call__(self, point: Any) -> float:
        start = time.perf_counter()
        value = self.f(point)
        self.seconds += time.perf_counter() - start
        return value


def warm_up() -> None:
    """Import and compile what the methods use, so that no run's clock counts it."""
    for method in ("auto", sumbo.AddGPUCB(2), sumbo.AddGPUCB.paper(2), sumbo.GPUCB.paper()):
        sumbo.maximize(sum, [(0.0, 1.0)] * 4, 28, method=method, seed=0, progress=False)


def checkpoints(budget: int) -> list[int]:
    """The numbers of evaluations at which a curve has a point."""
    return sorted({*range(EVERY, budget + 1, EVERY), budget})


# --- all runs ---


def run_all(tasks: list[Task], out: Path, jobs: int) -> int:
    """Do the tasks in parallel and append each to the file as it ends; the number that failed."""
    failed = 0
    with out.open("a", encoding="utf-8") as file, started(tasks, jobs) as futures:
        for i, future in enumerate(as_completed(futures), start=1):
            task = futures[future]
            try:
                result = future.result()
            except BrokenProcessPool:  # a worker was killed, and with it all that is left
                raise
            except Exception as error:
                failed += 1
                news = f"failed with {type(error).__name__}: {error}\n{error.__cause__ or ''}"
            else:
                file.write(json.dumps(result) + "\n")
                file.flush()
                news = (
                    f"simple regret {result['simple_regret'][-1]:.3g}, "
                    f"{result['seconds_per_suggestion']:.2g} s per suggestion"
                )
            print(f"[{i}/{len(tasks)}] {task.method}, seed {task.seed}: {news}", file=sys.stderr, flush=True)
    return failed


@contextmanager
def started(tasks: list[Task], jobs: int) -> Iterator[dict[Future[Run], Task]]:
    """The tasks, running in processes of one thread each, which end with the block."""
    # Fresh interpreters inherit both: the variables must be there before NumPy is imported, and Ctrl-C be
    # ignored from the first moment, for `sumbo.maximize` would take it as the wish for an early result.
    os.environ.update(ONE_THREAD)
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(min(jobs, len(tasks)), context, initializer=warm_up)
        futures = {pool.submit(run, task): task for task in tasks}
    finally:
        signal.signal(signal.SIGINT, handler)
    try:
        yield futures
    except BaseException:
        for worker in multiprocessing.active_children():
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def read_runs(path: Path) -> dict[Task, Run]:
    """The finished runs of a file. A last line that was cut off, as by a crash, is left out.

    Raises:
        ValueError: Another line is not a run; the message says which.
    """
    runs = {}
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    for number, line in enumerate(lines, start=1):
        if cut_off(line):
            break
        try:
            record = json.loads(line)
            D, d, M = record["configuration"]
            runs[Task(record["method"], record["seed"], record["budget"], (D, d, M))] = record
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path}, line {number} is not a run of this benchmark: {line[:60]!r}") from error
    return runs


def mend(path: Path) -> None:
    """End the file after its last whole line, so that the next one starts on a line of its own."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    if lines and cut_off(lines[-1]):
        os.truncate(path, sum(len(line.encode()) for line in lines[:-1]))
    elif lines and not lines[-1].endswith("\n"):
        with path.open("a", encoding="utf-8") as file:
            file.write("\n")


def cut_off(line: str) -> bool:
    """Is this the beginning of a line that was never finished?"""
    if line.endswith("\n") or not line.startswith("{"):
        return False
    try:
        json.loads(line)
    except ValueError:
        return True
    return False


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
    return f"{mean:.1f} ± {statistics.stdev(values) / len(values) ** 0.5:.1f}"


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
    left = [task for task in wanted if task not in done]
    print(f"{len(wanted) - len(left)} of {len(wanted)} runs are in {options.out}", file=sys.stderr)
    if left:
        mend(options.out)
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that `kill` takes the workers along
        try:
            failed = run_all(left, options.out, options.jobs)
        except KeyboardInterrupt:
            print(f"stopped; finished runs are in {options.out}, the same command goes on", file=sys.stderr)
            return 130
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
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="runs at a time (default: number of cores)"
    )
    parser.add_argument("--out", type=Path, default=RUNS, help=f"the runs (default: {RUNS.name} beside this script)")
    parser.add_argument("--markdown", type=Path, help="file to write the table to")
    options = parser.parse_args()
    if min(options.seeds, options.jobs) < 1 or options.budget < 2 * EVERY:
        parser.error(f"--seeds and --jobs must be at least 1, --budget at least {2 * EVERY}")
    return options


if __name__ == "__main__":
    sys.exit(main())
