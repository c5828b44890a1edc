"""The tables of the suite, from its runs.

The regret of a run is the distance of its best noise-free value from the optimum; where that is unknown, from the best
value of any run on the same problem and seed. Methods are compared on the seeds that all of them have.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping

import numpy as np
from regret_report import NONE, short
from regret_runs import ABLATION, Task
from runs import Run
from suite_runs import LONG_BUDGET, PLANS, sets, wanted
from suite_stats import Interval, friedman, holm, mean_ranks, median_interval, ratio_interval, standing, wilcoxon

from sumbo._typing import Array

BEGIN, END = "<!-- suite: made by make suite, do not edit -->", "<!-- suite: end -->"
FINAL, AVERAGE = "Final simple regret", "R_T / T"
# A regret below this share of what random search leaves counts as that much in ranks and ratios: the optimum is found.
# Where the optimum is unknown the best run has a regret of 0, which is more than is known.
_FOUND_KNOWN, _FOUND_UNKNOWN = 1e-6, 1e-2
_TINY = 1e-12  # the same, where random search was not run


# --- what the runs say ---


class Results:
    """The regrets of the runs on some problems with one budget: by measure, problem, method and seed."""

    def __init__(self, runs: Mapping[Task, Run], problems: Iterable[str], budget: int) -> None:
        self.budget, self.problems = budget, list(problems)
        self.runs = {t: r for t, r in runs.items() if t.budget == budget and t.problem in self.problems and "best" in r}
        self.references = references(runs)
        self._by_seed: dict[tuple[str, str], dict[int, Run]] = defaultdict(dict)
        for task, run in sorted(self.runs.items(), key=lambda item: item[0]):
            self._by_seed[task.problem, task.method][task.seed] = run
        self.methods = [m for m in (*PLANS, *ABLATION) if any(m == method for _, method in self._by_seed)]

    def of(self, problem: str, method: str, measure: str) -> dict[int, float]:
        """One regret per seed."""
        found = {}
        for seed, run in self._by_seed.get((problem, method), {}).items():
            sign = 1.0 if run["direction"] == "minimize" else -1.0
            value = run["best"][-1] if measure == FINAL else run["mean"]
            found[seed] = sign * (value - self.references[problem, seed])
        return found

    def floor(self, problem: str) -> float:
        """The regret below which there is nothing to tell apart."""
        left = list(self.of(problem, "random", FINAL).values())
        known = all(run["optimum"] is not None for run in self._by_seed.get((problem, "random"), {}).values())
        share = _FOUND_KNOWN if known else _FOUND_UNKNOWN
        return max(_TINY, share * statistics.median(left)) if left else _TINY

    def paired(self, problem: str, methods: Iterable[str], measure: str, seeds: int) -> dict[str, Array]:
        """The regrets of methods on the first seeds that all of them have, no lower than the floor."""
        found = {method: self.of(problem, method, measure) for method in methods}
        common = sorted(set(range(seeds)).intersection(*found.values()))
        floor = self.floor(problem)
        return {m: np.array([max(regrets[seed], floor) for seed in common]) for m, regrets in found.items()}


def references(runs: Mapping[Task, Run]) -> dict[tuple[str, int], float]:
    """For each problem and seed its optimum, or the best value of any run."""
    found: dict[tuple[str, int], float] = {}
    for task, run in runs.items():
        if "best" not in run:
            continue
        key, value = (task.problem, task.seed), run["best"][-1]
        if run["optimum"] is not None:
            found[key] = run["optimum"]
        elif key in found:
            found[key] = (min if run["direction"] == "minimize" else max)(found[key], value)
        else:
            found[key] = value
    return found


# --- the page ---


def report(runs: Mapping[Task, Run]) -> str:
    """All tables, as Markdown."""
    parts = [part for name, entries in sets().items() for part in _of_set(name, entries, runs)]
    if not parts:
        return "There are no runs yet.\n"
    versions = sorted({f"{name} {v}" for run in runs.values() for name, v in run.get("versions", {}).items()})
    return "\n\n".join([*parts, f"Made by `make suite` with {', '.join(versions)}."]) + "\n"


def _of_set(name: str, entries: Mapping[str, object], runs: Mapping[Task, Run]) -> list[str]:
    """The sections of a set, one for each budget."""
    own = {task: run for task, run in runs.items() if task.problem in entries}
    parts = []
    for budget in sorted({task.budget for task in own}):
        results = Results(own, entries, budget)
        methods = [m for m in PLANS if m in results.methods]
        parts += [f"## {name.capitalize()} set, {budget} evaluations", _coverage(entries, own, budget)]
        for level, compared in levels(methods, budget):
            parts += [comparison(results, compared, level, measure) for measure in (FINAL, AVERAGE)]
        for measure in (FINAL, AVERAGE):
            parts += [f"{measure}, median, its 95% interval and the number of seeds; the lowest is bold."]
            parts += [median_table(results, methods, measure)]
        parts += ["Seconds per suggestion, median over runs, one thread each.", seconds_table(results, methods)]
        if variants := [m for m in ABLATION if m in results.methods]:
            for measure in (FINAL, AVERAGE):
                parts += [f"`auto` with one part changed: {measure}, its ratio to that of `auto`, paired by seed."]
                parts += [ablation_overall(results, variants, measure), ablation_table(results, variants, measure)]
    return parts


def levels(methods: Iterable[str], budget: int) -> list[tuple[int, list[str]]]:
    """Numbers of seeds, from many to few, and the methods that are run with as many; each has more than the last."""
    planned = {m: PLANS[m].long if budget == LONG_BUDGET else PLANS[m].seeds for m in methods}
    found: list[tuple[int, list[str]]] = []
    for level in sorted(set(planned.values()), reverse=True):
        compared = [method for method, seeds in planned.items() if seeds >= level]
        if "auto" in compared and len(compared) > 1:
            found.append((level, compared))
    return found


def comparison(results: Results, methods: list[str], seeds: int, measure: str) -> str:
    """Ranks and tests of methods, on the problems that all of them have a seed of."""
    paired = {problem: results.paired(problem, methods, measure, seeds) for problem in results.problems}
    problems = [problem for problem, regrets in paired.items() if len(regrets["auto"])]
    if not problems:
        return f"No problem has runs of all of {', '.join(methods)} yet."
    losses = np.array([[np.median(paired[problem][method]) for method in methods] for problem in problems])
    mine, others = methods.index("auto"), [k for k, method in enumerate(methods) if method != "auto"]
    ratios = np.log(losses[:, others] / losses[:, [mine]])
    adjusted = dict(zip(others, holm([wilcoxon(column) for column in ratios.T]), strict=True))
    typical = dict(zip(others, np.exp(np.median(ratios, axis=0)), strict=True))
    ranks = mean_ranks(losses)
    rows = []
    for k in np.argsort(ranks, kind="stable"):
        best = int(np.sum(losses[:, k] <= losses.min(axis=1)))
        cells = [f"{typical[k]:.2f}", f"{adjusted[k]:.2g}"] if k != mine else [NONE, NONE]
        rows.append([methods[k], f"{ranks[k]:.2f}", f"{best} of {len(problems)}", *cells])
    stand = standing(losses[:, mine], losses[:, others])
    counts = {len(paired[problem]["auto"]) for problem in problems}
    common = f"{min(counts)} to {max(counts)}" if len(counts) > 1 else str(max(counts))
    text = f"{measure} of {len(methods)} methods on {len(problems)} problems, medians over {common} of {seeds} seeds. "
    text += f"Friedman's test: p = {friedman(losses):.2g}. `auto` has the best median or ties with it on "
    text += (
        f"{stand.best} of {len(problems)} ({stand.best / len(problems):.0%}); its worst ratio to the best peer's is "
    )
    text += f"{stand.worst_ratio:.2f} ({problems[stand.worst_problem]})."
    header = ["method", "mean rank", "best or tied", "median ratio to `auto`", "p against `auto` (Wilcoxon, Holm)"]
    return f"{text}\n\n{markdown(header, rows)}"


def median_table(results: Results, methods: list[str], measure: str) -> str:
    """A row for each problem, a column for each method."""
    rows = []
    for problem in results.problems:
        found = {method: list(results.of(problem, method, measure).values()) for method in methods}
        medians = {method: median_interval(values) for method, values in found.items() if values}
        if medians:
            lowest = min(interval.middle for interval in medians.values())
            cells = [_median_cell(medians.get(m), len(found[m]), lowest) for m in methods]
            rows.append([problem, *cells])
    return markdown(["problem", *methods], rows)


def _median_cell(interval: Interval | None, seeds: int, lowest: float) -> str:
    if interval is None:
        return NONE
    text = f"**{short(interval.middle)}**" if interval.middle == lowest else short(interval.middle)
    spread = f"{short(interval.low, 2)} to {short(interval.high, 2)}; " if seeds > 1 else ""
    return f"{text} ({spread}{seeds})"


def seconds_table(results: Results, methods: list[str]) -> str:
    """A row for each problem, a column for each method."""
    taken: dict[tuple[str, str], list[float]] = defaultdict(list)
    for task, run in results.runs.items():
        taken[task.problem, task.method].append(run["seconds_per_suggestion"])
        taken["all", task.method].append(run["seconds_per_suggestion"])
    rows = []
    for problem in [*results.problems, "all"]:
        there = [taken.get((problem, method)) for method in methods]
        if any(there):
            rows.append([problem, *(f"{statistics.median(seconds):.2g}" if seconds else NONE for seconds in there)])
    return markdown(["problem", *methods], rows)


# --- the ablation ---


def log_ratios(results: Results, variant: str, measure: str) -> dict[str, Array]:
    """For each problem the logs of a variant's regrets over those of `auto`, seed by seed."""
    found = {}
    for problem in results.problems:
        paired = results.paired(problem, ("auto", variant), measure, PLANS["auto"].seeds)
        if len(paired["auto"]):
            found[problem] = np.log(paired[variant] / paired["auto"])
    return found


def ablation_overall(results: Results, variants: list[str], measure: str) -> str:
    """Over problems, each of which counts once. A part pays where the whole interval is above 1, and costs below."""
    rows = []
    for variant in variants:
        ratios = log_ratios(results, variant, measure)
        if not ratios:
            continue
        each = {problem: ratio_interval(list(logs)) for problem, logs in ratios.items()}
        pays, costs = sum(i.low > 1.0 for i in each.values()), sum(i.high < 1.0 for i in each.values())
        worst = min(each, key=lambda problem: each[problem].middle)
        overall = ratio_interval([float(np.mean(logs)) for logs in ratios.values()])
        last = f"{each[worst].middle:.2f} ({worst})"
        rows.append([variant, _ratio_cell(overall), f"{pays} of {len(each)}", f"{costs} of {len(each)}", last])
    return markdown(["without", "overall (95%)", "the part pays", "it costs", "lowest ratio"], rows)


def ablation_table(results: Results, variants: list[str], measure: str) -> str:
    """A row for each problem, a column for each variant."""
    ratios = {variant: log_ratios(results, variant, measure) for variant in variants}
    rows = []
    for problem in results.problems:
        there = [ratios[variant].get(problem) for variant in variants]
        if any(logs is not None for logs in there):
            rows.append(
                [problem, *(NONE if logs is None else _ratio_cell(ratio_interval(list(logs))) for logs in there)]
            )
    return markdown(["problem", *variants], rows)


def _ratio_cell(interval: Interval) -> str:
    if math.isinf(interval.high):  # of a single seed
        return f"{interval.middle:.2f}"
    return f"{interval.middle:.2f} ({interval.low:.2f} to {interval.high:.2f})"


# --- in words ---


def _coverage(entries: Mapping[str, object], runs: Mapping[Task, Run], budget: int) -> str:
    """How many of the planned runs are there, and which have failed."""
    tasks = [task for task in wanted(entries, PLANS, entries) if task.budget == budget]
    there = [task for task in tasks if task in runs]
    failed = [task for task in runs if task.budget == budget and "error" in runs[task]]
    text = f"{len(there)} of {len(tasks)} planned runs are there." if tasks else "No run is planned with this budget."
    if failed:
        names = ", ".join(sorted({f"{task.method} on {task.problem}" for task in failed}))
        text += f" {len(failed)} failed ({names}); they count with the best value that they had by then."
    return text


def markdown(header: list[str], rows: Iterable[list[str]]) -> str:
    """A table; all but its first column are figures."""
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
