"""Many workers: do they wait, what does working side by side cost, and what do a thousand of them do?

    python benchmarks/parallel.py

Writes docs/parallel.jsonl, the tables of docs/parallel.md (between its two marks) and docs/parallel.svg. Goes on where
it was stopped. Runs with a virtual clock evaluate at once and pretend that it took a random time: such a run is the
same on every machine. Only the runs that measure whether workers wait let time pass.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import hashlib
import heapq
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from runs import STOPPED, Run, Work, complete, measured, news, read_lines

import sumbo

DOCS = Path(__file__).parent.parent / "docs"
BEGIN, END = "<!-- tables: made by `make parallel` -->", "<!-- end of tables -->"

SIDE_BY_SIDE = ("additive-24-6-4", "additive-40-5-8")
WORKERS, SEEDS, BUDGET = 8, 5, 200
BAR = 1.25  # regret side by side, over regret one after the other

SLEEPY, SLEEPY_BUDGET, SHORTEST, LONGEST = "additive-40-5-8", 300, 2.0, 6.0

CROWD, CROWD_BUDGET, CROWD_SIZES = "additive-100-5-20", 1500, (1, 10, 100, 1000)


class Task(NamedTuple):
    """One run to do; also the key under which a finished run is found again. Clock: "virtual" or "real"."""

    clock: str
    problem: str
    workers: int
    seed: int
    budget: int


def wanted(crowd_budget: int) -> list[Task]:
    """All runs, the cheap ones first."""
    side = [
        Task("virtual", problem, workers, seed, BUDGET)
        for seed in range(SEEDS)
        for problem in SIDE_BY_SIDE
        for workers in (1, WORKERS)
    ]
    crowd = [Task("virtual", CROWD, workers, 0, crowd_budget) for workers in reversed(CROWD_SIZES)]
    return [Task("real", SLEEPY, WORKERS, 0, SLEEPY_BUDGET), *side, *crowd]


# --- one run ---


def run(task: Task) -> Run:
    line = {**task._asdict(), "version": sumbo.__version__}
    return {**line, **(virtual(task) if task.clock == "virtual" else real(task))}


def virtual(task: Task) -> Run:
    """Workers that take between half a unit and one and a half for an evaluation; suggestions take no time."""
    problem = sumbo.problems.get(task.problem, seed=task.seed)
    opt = sumbo.Optimizer(problem.space, direction=problem.direction, seed=task.seed, budget=task.budget)
    durations = np.random.default_rng([task.seed, 7]).uniform(0.5, 1.5, task.budget)
    running: list[tuple[float, int]] = []
    now, seconds, with_all_busy, values = 0.0, 0.0, [], []
    for number in range(task.budget):
        if len(running) == task.workers:
            now = end_one(opt, problem, running, values)
        began = time.process_time()  # of one thread: what else the machine does is left out
        opt.ask()
        took = time.process_time() - began
        seconds += took
        if len(running) == task.workers - 1 and number >= task.workers:
            with_all_busy.append(took)
        heapq.heappush(running, (now + durations[number], number))
    while running:
        now = end_one(opt, problem, running, values)
    busy = statistics.mean(with_all_busy[-100:]) if with_all_busy else None
    return {**measured(values, problem, seconds), "virtual_time": now, "late_seconds_per_suggestion": busy}


def end_one(opt: sumbo.Optimizer, problem: Any, running: list[tuple[float, int]], values: list[float]) -> float:
    """Tell the evaluation that ends first; when that is."""
    now, number = heapq.heappop(running)
    values.append(float(problem(opt.trials[number].x)))
    opt.tell(number, values[-1])
    return now


class Sleepy:
    """An objective that sleeps between two and six seconds, and counts them."""

    def __init__(self, name: str, seed: int) -> None:
        self.problem = sumbo.problems.get(name, seed=seed)

    @staticmethod
    def seconds(x: Any) -> float:
        share = int.from_bytes(hashlib.sha256(np.asarray(x).tobytes()).digest()[:4], "big") / 2**32
        return SHORTEST + (LONGEST - SHORTEST) * share

    def __call__(self, params: Mapping[str, Any]) -> float:
        x = self.problem.space.array(params)
        time.sleep(self.seconds(x))
        return float(self.problem(x))


def real(task: Task) -> Run:
    """How much of the time between the first moment and the last the workers spent evaluating."""
    f = Sleepy(task.problem, task.seed)
    optimise = sumbo.minimize if f.problem.direction == "minimize" else sumbo.maximize
    load, began = os.getloadavg()[0], time.perf_counter()
    result = optimise(f, f.problem.space, task.budget, seed=task.seed, workers=task.workers, progress=False)
    seconds = time.perf_counter() - began
    evaluating = sum(f.seconds(trial.x) for trial in result.trials)
    return {
        "seconds": seconds,
        "utilisation": evaluating / (task.workers * seconds),
        "load": [load, os.getloadavg()[0]],
        "cores": os.cpu_count(),
    }


def warm_up() -> None:
    """Import and compile, so that no run's clock counts it."""
    sumbo.maximize(sum, [(0.0, 1.0)] * 4, 34, seed=0, progress=False)


def task_of(record: Run) -> Task:
    return Task(*(record[name] for name in Task._fields))


def in_short(record: Run) -> str:
    if record["clock"] == "real":
        return f"{record['utilisation']:.1%} of the workers' time in {record['seconds']:.0f} s"
    return news(record)


def title(task: Task) -> str:
    return f"{task.problem}, {task.workers} workers, {task.clock} clock, seed {task.seed}"


WORK = Work(run, warm_up, task_of, title, in_short)


# --- the page ---


def tables(runs: Mapping[Task, Run]) -> str:
    return "\n".join([*waiting(runs), "", *side_by_side(runs), "", *crowd(runs)])


def waiting(runs: Mapping[Task, Run]) -> list[str]:
    lines = ["| problem | workers | evaluations | seconds each | time evaluating | load of the machine |"]
    lines += ["|---|---:|---:|---:|---:|---:|"]
    for task, record in runs.items():
        if task.clock == "real":
            load = " to ".join(f"{x:.1f}" for x in record["load"])
            cells = (task.problem, task.workers, task.budget, f"{SHORTEST:g} to {LONGEST:g}")
            lines.append(f"| {' | '.join(map(str, cells))} | {record['utilisation']:.1%} | {load} |")
    return lines


def side_by_side(runs: Mapping[Task, Run]) -> list[str]:
    lines = [f"| problem | seeds | | one worker | {WORKERS} workers | ratio | wanted |"]
    lines += ["|---|---:|---|---:|---:|---:|---:|"]
    for problem in SIDE_BY_SIDE:
        for name, figure, bar in (("simple regret", final_regret, f"at most {BAR}"), ("R_T / T", average_regret, "")):
            pairs = pairs_of(runs, problem, figure)
            if not pairs:
                continue
            alone, together = (statistics.mean(column) for column in zip(*pairs, strict=True))
            ratio = f"{together / alone:.2f}" if alone > 0 else "-"
            lines.append(f"| {problem} | {len(pairs)} | {name} | {alone:.3g} | {together:.3g} | {ratio} | {bar} |")
    lines += ["", "Simple regret seed by seed, one worker / eight:"]
    for problem in SIDE_BY_SIDE:
        each = ", ".join(f"{a:.3g} / {b:.3g}" for a, b in pairs_of(runs, problem, final_regret))
        lines.append(f"- {problem}: {each or 'no runs yet'}")
    return lines


def final_regret(record: Run) -> float:
    return float(record["simple_regret"][-1])


def average_regret(record: Run) -> float:
    return float(record["average_regret"])


def pairs_of(runs: Mapping[Task, Run], problem: str, figure: Callable[[Run], float]) -> list[tuple[float, float]]:
    """A figure with one worker and with several, for each seed that has both."""
    found = []
    for seed in range(SEEDS):
        both = [runs.get(Task("virtual", problem, workers, seed, BUDGET)) for workers in (1, WORKERS)]
        if both[0] is not None and both[1] is not None:
            found.append((figure(both[0]), figure(both[1])))
    return found


def crowd(runs: Mapping[Task, Run]) -> list[str]:
    lines = ["| workers | evaluations | regret | R_T / T | suggestions per second of processor time | virtual time |"]
    lines += ["|---:|---:|---:|---:|---:|---:|"]
    for task, record in crowd_runs(runs):
        late = record["late_seconds_per_suggestion"]
        cells = (
            task.workers,
            task.budget,
            f"{record['simple_regret'][-1]:.4g}",
            f"{record['average_regret']:.4g}",
            f"{1 / late:.1f}" if late else "-",
            f"{record['virtual_time']:.0f}",
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def crowd_runs(runs: Mapping[Task, Run]) -> list[tuple[Task, Run]]:
    found = [(task, record) for task, record in runs.items() if task.problem == CROWD]
    return sorted(found, key=lambda item: (item[0].budget, item[0].workers))


def plot(runs: Mapping[Task, Run], path: Path) -> None:
    from matplotlib.figure import Figure

    found = crowd_runs(runs)
    if not found:
        return
    budget = found[-1][0].budget
    found = [item for item in found if item[0].budget == budget]
    workers = [task.workers for task, _ in found]
    figure = Figure(figsize=(9, 3.2), facecolor="white", layout="constrained")
    speed, regret = figure.subplots(1, 2)
    speeds = [1 / (r["late_seconds_per_suggestion"] or np.nan) for _, r in found]
    speed.plot(workers, speeds, "o-", color="#0969da")
    speed.set(xscale="log", xlabel="workers", ylabel="suggestions per processor second")
    speed.set_ylim(0.0, 1.1 * np.nanmax(speeds))
    for (task, record), colour in zip(found, ("#57606a", "#1b7c83", "#bf8700", "#d1242f"), strict=False):
        label = f"{task.workers} worker{'s' if task.workers > 1 else ''}"
        regret.plot(record["evaluations"], record["simple_regret"], color=colour, label=label)
    regret.set(yscale="log", xlabel="evaluations", ylabel="simple regret")
    regret.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    for axis in (speed, regret):
        axis.grid(True, which="major", alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"{CROWD}: {budget} evaluations on a virtual clock", fontsize=10)
    figure.savefig(path, metadata={"Date": None})


def write_page(runs: Mapping[Task, Run], path: Path) -> None:
    """Put the tables between the page's marks; what people wrote around them stays."""
    text = path.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    path.write_text(f"{head}{BEGIN}\n\n{tables(runs)}\n\n{END}{tail}", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=DOCS / "parallel.jsonl")
    parser.add_argument("--crowd-budget", type=int, default=CROWD_BUDGET, help="evaluations of the large runs")
    parser.add_argument("--report-only", action="store_true", help="write the page from what there is")
    options = parser.parse_args()
    done = read_lines(options.out, task_of)
    failed = 0
    try:
        if not options.report_only:  # one at a time: a run that measures waiting must have the machine to itself
            failed = complete(WORK, wanted(options.crowd_budget), done, options.out, 1)
    except KeyboardInterrupt:
        return STOPPED
    finally:
        done = read_lines(options.out, task_of)
        write_page(done, DOCS / "parallel.md")
        plot(done, DOCS / "parallel.svg")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
