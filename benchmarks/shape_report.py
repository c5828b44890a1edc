"""The page of the benchmark of shapes, from its runs.

Medians and means are over the runs that are there; a bar with runs still missing is open.
"""

import math
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import regret_report
from runs import Run
from shape_problems import DESIGNS
from shape_runs import HELD_OUT, PAIRS, PROBLEMS, SEEDS, SYSTEMS, TOLERANCE, Task, wanted

BEGIN, END = "<!-- shapes: made by `make shapes`, do not edit -->", "<!-- shapes: end -->"
INTRODUCTION = """# Problems of all shapes

Constraints, mixtures, conditions, contexts and noise, beside other optimisers. The problems and their sources are in
`benchmarks/shape_problems.py`; all are minimised, and a point is feasible if every constraint is at most 0, exactly.
"""
NONE = "-"
RIVALS = ("optuna-gp", "botorch")
TPES = ("optuna-tpe", "optuna-tpe-group")
PLAINS = ("sumbo-by-class", "sumbo-no-context")

XY_BAR, SHARE_BAR, REGRET_BAR, NOISE_BAR, ENOUGH = 8.01, 0.01, 0.5, 0.3, 4

Runs = Mapping[Task, Run]


class Bar(NamedTuple):
    """What is wanted, what was found, and whether it is met: None as long as runs are missing."""

    name: str
    wanted: str
    found: str
    met: bool | None


# --- what the runs say ---


def values(runs: Runs, problem: str, method: str, field: str = "final") -> list[float]:
    """A figure of all seeds that there are, in their order; infinity where nothing feasible was found."""
    found = []
    for seed in range(PROBLEMS[problem].seeds):
        run = runs.get(Task(problem, method, seed))
        if run is not None and field in run:
            found.append(math.inf if run[field] is None else float(run[field]))
    return found


def median(runs: Runs, problem: str, method: str) -> float:
    """NaN where there is no run."""
    found = values(runs, problem, method)
    return statistics.median(found) if found else math.nan


def _bar(runs: Runs, problem: str, methods: tuple[str, ...], name: str, wish: str, found: str, met: bool) -> Bar:
    """Met or not, if all runs that it is about are there."""
    tasks = wanted([problem], list(methods))
    done = sum(task in runs for task in tasks)
    if done < len(tasks):
        return Bar(name, wish, f"{done} of {len(tasks)} runs so far; {found}", None)
    return Bar(name, wish, found, met)


def bars(runs: Runs) -> list[Bar]:
    found = [xy(runs), *designs(runs), known(runs), mixture(runs), models(runs)]
    found += [svm(runs, problem) for problem in ("svm-breast-cancer", "svm-diabetes")]
    return [*found, contexts(runs), noise(runs)]


def xy(runs: Runs) -> Bar:
    each = values(runs, "xy", "sumbo-optuna")
    met = all(value <= XY_BAR for value in each)
    text = "found: " + listed(each)
    wish = f"at most {XY_BAR:g} on {SEEDS} of {SEEDS} seeds"
    return _bar(runs, "xy", ("sumbo-optuna",), "x² + y² with xy ≥ 4, through Optuna", wish, text, met)


def designs(runs: Runs) -> list[Bar]:
    """Never infeasible at the end; as good as others on most."""
    own = [runs[task] for task in wanted(list(DESIGNS), ["sumbo"]) if task in runs]
    # What the library itself calls the best is the least feasible value that was told, or it is wrong.
    bad = sum(run["final"] is None or run["reported"] != run["final"] for run in own)
    met = bad == 0 if len(own) == len(DESIGNS) * SEEDS else None
    answers = [Bar("five designs: runs without a feasible best", "0", f"{bad} of {len(own)}", met)]
    medians = {p: {m: median(runs, p, m) for m in ("sumbo", *RIVALS)} for p in DESIGNS}
    good = [p for p, row in medians.items() if all(row["sumbo"] <= row[rival] for rival in RIVALS)]
    tasks = wanted(list(DESIGNS), ["sumbo", *RIVALS])
    met = len(good) >= ENOUGH if all(task in runs for task in tasks) else None
    wish = f"at most those of GPSampler and BoTorch on {ENOUGH} of {len(DESIGNS)}"
    text = f"{len(good)} of {len(DESIGNS)}" + (f": {', '.join(good)}" if good else "")
    return [*answers, Bar("five designs: median of the best feasible values", wish, text, met)]


def known(runs: Runs) -> Bar:
    lines = [run for task, run in runs.items() if task.problem == "systems"]
    counts: dict[str, int] = {}
    for run in lines:
        for kind, count in run["suggestions"].items():
            counts[kind] = counts.get(kind, 0) + count
    outside = sum(run["outside"] for run in lines)
    text = f"{outside:,} of {sum(counts.values()):,}"
    if counts:
        kinds = "; ".join(f"{count:,} by {kind}" for kind, count in counts.items())
        text += f" (worst violation {max(run['worst'] for run in lines):.1g}; {kinds})"
    name = f"suggestions outside of {SYSTEMS} systems of known constraints, by more than {TOLERANCE:g}"
    return _bar(runs, "systems", ("sumbo",), name, "0 of 10,000", text, outside == 0)


def mixture(runs: Runs) -> Bar:
    gaps = {method: gap(runs, method) for method in PROBLEMS["mixture-8"].methods}
    text = "; ".join(f"{method} {', '.join(f'{g:.2%}' for g in row)}" for method, row in gaps.items() if row)
    wish = f"at most {SHARE_BAR:.0%} on {SEEDS} of {SEEDS} seeds"
    met = all(g <= SHARE_BAR for g in gaps["sumbo"])
    return _bar(
        runs, "mixture-8", ("sumbo",), "mixture of 8: gap to the optimum, over its absolute value", wish, text, met
    )


def gap(runs: Runs, method: str) -> list[float]:
    lines = [runs[task] for task in wanted(["mixture-8"], [method]) if task in runs]
    return [
        (math.inf if run["final"] is None else run["final"] - run["optimum"]) / abs(run["optimum"]) for run in lines
    ]


def models(runs: Runs) -> Bar:
    means = {}
    for method in PROBLEMS["three-models"].methods:
        found = values(runs, "three-models", method)
        if found:
            means[method] = statistics.fmean(found)
    met = all(means.get("sumbo", math.inf) < means.get(tpe, -math.inf) for tpe in TPES)
    text = ", ".join(f"{method} {mean:.4f}" for method, mean in means.items())
    name = "three models with parameters of their own: mean of the best values"
    return _bar(runs, "three-models", ("sumbo", *TPES), name, "below TPE's, grouped or not", text, met)


def svm(runs: Runs, problem: str) -> Bar:
    """Seed by seed, for its folds are the seed's."""
    wins = {}
    for tpe in TPES:
        pairs = [[runs.get(Task(problem, method, seed)) for method in ("sumbo", tpe)] for seed in range(SEEDS)]
        wins[tpe] = sum(own["final"] <= other["final"] for own, other in pairs if own and other)
    text = ", ".join(f"{count} of {SEEDS} against {tpe}" for tpe, count in wins.items())
    wish = f"no worse than TPE's on {ENOUGH} of {SEEDS} seeds"
    return _bar(runs, problem, ("sumbo", *TPES), f"{problem}: best value", wish, text, min(wins.values()) >= ENOUGH)


def contexts(runs: Runs) -> Bar:
    """The means of R_T over the seeds."""
    means = {}
    for method in ("sumbo", *PLAINS):
        found = values(runs, "contexts", method)
        means[method] = statistics.fmean(found) if found else math.nan
    ratios = [means["sumbo"] / means[plain] for plain in PLAINS]
    plains = ("an optimizer for each of 12 classes", "one that ignores contexts")
    parts = [f"{ratio:.2f} of {plain}" for ratio, plain in zip(ratios, plains, strict=True) if not math.isnan(ratio)]
    text = ", ".join(parts) or "nothing yet"
    met = all(ratio <= REGRET_BAR for ratio in ratios)
    wish = f"at most {REGRET_BAR:g} of both"
    return _bar(runs, "contexts", ("sumbo", *PLAINS), "contexts, 200 rounds: mean R_T, as a share", wish, text, met)


def noise(runs: Runs) -> Bar:
    distances = [value + 3.0 for value in values(runs, "noisy", "sumbo")]
    good = sum(distance <= NOISE_BAR for distance in distances)
    name = "noise of deviation 1: true value of what is recommended, above the optimum"
    wish = f"at most {NOISE_BAR:g} on {SEEDS} of {SEEDS} seeds"
    return _bar(runs, "noisy", ("sumbo",), name, wish, "found: " + listed(distances), good == SEEDS)


# --- the page ---


def listed(found: list[float]) -> str:
    return ", ".join(f"{value:.4g}" for value in found) or "nothing yet"


def report(runs: Runs) -> str:
    return "\n".join([*bars_table(runs), "", *finals_table(runs), "", *contexts_table(runs), "", *noise_table(runs)])


def bars_table(runs: Runs) -> list[str]:
    words = {None: "open", True: "met", False: "**missed**"}
    lines = ["| | wanted | found | |", "|---|---|---|---|"]
    return lines + [f"| {bar.name} | {bar.wanted} | {bar.found} | {words[bar.met]} |" for bar in bars(runs)]


def finals_table(runs: Runs) -> list[str]:
    problems = [name for name in PROBLEMS if name not in ("systems", "contexts", "noisy")]
    methods = ("sumbo", "sumbo-optuna", "optuna-gp", "botorch", *TPES, "random")
    lines = [
        f"Best value, the median of {SEEDS} seeds, and the worst of them; processor seconds of a run's suggestions:"
    ]
    lines += ["", f"| problem | trials | best known | {' | '.join(methods)} |", f"|---|{'---:|' * (2 + len(methods))}"]
    for problem in problems:
        line = next((run for task, run in runs.items() if task.problem == problem), None)
        optimum = number(line["optimum"]) if line is not None and "optimum" in line else NONE
        trials = line["trials"] if line is not None else NONE
        cells = [cell(runs, problem, method) for method in methods]
        lines.append(f"| {problem} | {trials} | {optimum} | {' | '.join(cells)} |")
    return lines


def cell(runs: Runs, problem: str, method: str) -> str:
    """Median, worst, and seconds; of how many seeds, where that is not all."""
    if method not in PROBLEMS[problem].methods or not (found := values(runs, problem, method)):
        return NONE
    seconds = statistics.median(values(runs, problem, method, "seconds"))
    seeds = "" if len(found) == PROBLEMS[problem].seeds else f", of {len(found)}"
    return f"{number(statistics.median(found))}, {number(max(found))} ({seconds:.0f} s{seeds})"


def number(value: float) -> str:
    return "infeasible" if math.isinf(value) else f"{value:.6g}"


def contexts_table(runs: Runs) -> list[str]:
    lines = [
        f"Contexts, means over seeds: R_T, the regret of what is recommended in {HELD_OUT} contexts not seen before,",
        f"and R² of predictions for {PAIRS} random actions in such contexts:",
        "",
        "| | seeds | R_T | regret of recommendations | R² |",
        "|---|---:|---:|---:|---:|",
    ]
    for method in ("sumbo", *PLAINS):
        figures = [values(runs, "contexts", method, field) for field in ("final", "held_out_regret", "r2")]
        cells = [f"{statistics.fmean(found):.3g}" if found else NONE for found in figures]
        lines.append(f"| {method} | {len(figures[0])} | {' | '.join(cells)} |")
    return lines


def noise_table(runs: Runs) -> list[str]:
    lines = [
        "Noise: true values (the least is -3) at what each method recommends, seed by seed, and where its least value",
        "was seen; `sumbo-std` was told the deviation of the noise:",
        "",
        "| | recommended | least value seen |",
        "|---|---|---|",
    ]
    for method in PROBLEMS["noisy"].methods:
        answers, seen = (values(runs, "noisy", method, field) for field in ("final", "at_least_seen"))
        # A peer has no other answer than its least value.
        shown = listed(answers) if method.startswith("sumbo") else NONE
        lines.append(f"| {method} | {shown} | {listed(seen)} |")
    return lines


def write_page(runs: Runs, path: Path) -> None:
    """Put the tables between the page's marks; a ValueError if it is there without them."""
    regret_report.write_page(path, report(runs) + "\n", INTRODUCTION, BEGIN, END)
