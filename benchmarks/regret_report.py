"""The tables of the regret benchmark, from its runs.

Means are over the runs that are there; what is missing or has failed is said beside them.
"""

import math
import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from regret_runs import ABLATION, COMPARED, PAPER, PROBLEMS, RIVAL_SEEDS, RIVALS, Task, wanted
from runs import Run, standard_error

BUDGET = 200  # that the page is about; others appear where `auto` is compared with `plain`
BEGIN, END = "<!-- regret: made by make regret, do not edit -->", "<!-- regret: end -->"
FINAL, AVERAGE = "final simple regret", "R_T / T"
NONE = "-"


# --- what the runs say ---


class Results:
    """The runs of one budget, by problem and method."""

    def __init__(self, runs: Mapping[Task, Run], budget: int, seeds: Iterable[int] | None = None) -> None:
        """Keep the runs of a budget, and of some seeds only where these are given."""
        chosen = None if seeds is None else set(seeds)
        self.budget = budget
        self.runs = {t: r for t, r in runs.items() if t.budget == budget and (chosen is None or t.seed in chosen)}

    def of(self, problem: str, method: str) -> list[Run]:
        """The runs that succeeded."""
        return [r for t, r in self.runs.items() if (t.problem, t.method) == (problem, method) and "error" not in r]

    def failed(self, problem: str, method: str) -> int:
        return sum(t[:2] == (method, problem) and "error" in r for t, r in self.runs.items())

    def values(self, problem: str, method: str, measure: str) -> list[float]:
        """One regret per run."""
        runs = self.of(problem, method)
        return [r["simple_regret"][-1] if measure == FINAL else r["average_regret"] for r in runs]

    def of_seeds_of(self, other: str, problem: str) -> "Results":
        """The runs on a problem with the seeds that a method has there: those of other seeds are harder or easier."""
        seeds = {t.seed for t, r in self.runs.items() if (t.problem, t.method) == (problem, other) and "error" not in r}
        return Results(self.runs, self.budget, seeds)

    def mean(self, problem: str, method: str, measure: str) -> float | None:
        """None where there is no run."""
        values = self.values(problem, method, measure)
        return statistics.fmean(values) if values else None

    def means(self, problem: str, methods: Iterable[str], measure: str) -> dict[str, float]:
        """The means that there are."""
        found = {method: self.mean(problem, method, measure) for method in methods}
        return {method: mean for method, mean in found.items() if mean is not None}

    def curve(self, problem: str, method: str) -> list[tuple[int, float]]:
        """Evaluations and the mean simple regret after them."""
        runs = self.of(problem, method)
        columns = zip(*(r["simple_regret"] for r in runs), strict=True)
        return [(t, statistics.fmean(column)) for t, column in zip(runs[0]["evaluations"], columns, strict=True)]


class Standing(NamedTuple):
    """`auto` beside others on one problem: its mean, and the lowest of theirs. Its failed runs count as lost."""

    problem: str
    mean: float
    best: float

    @property
    def ratio(self) -> float:
        """To the lowest of all means, its own among them: 1 or more."""
        return ratio(self.mean, min(self.mean, self.best))

    @property
    def lowest(self) -> bool:
        return self.mean <= self.best


def standings(results: Results, measure: str, others: Iterable[str], problems: Iterable[str]) -> list[Standing]:
    """`auto` against the best of the others, on the problems that both sides have runs of."""
    found = []
    for problem in problems:
        mine = results.mean(problem, "auto", measure)
        theirs = results.means(problem, others, measure)
        failed = results.failed(problem, "auto")
        if theirs and (failed or mine is not None):
            found.append(Standing(problem, math.inf if failed or mine is None else mine, min(theirs.values())))
    return found


def ratio(a: float, b: float) -> float:
    """a / b for regrets, of which both may be zero, or below it by rounding."""
    a, b = max(a, 0.0), max(b, 0.0)
    return a / b if b else (1.0 if a == 0.0 else math.inf)


class Reached(NamedTuple):
    """When `auto`'s mean simple regret was first as low as the best rival's at the end; None is never."""

    problem: str
    rival: str
    target: float
    after: int | None


def reached(results: Results, problems: Iterable[str]) -> list[Reached]:
    """For each problem with runs of `auto` and of a rival."""
    found = []
    for problem in problems:
        theirs = results.means(problem, RIVALS, FINAL)
        if not theirs or not results.of(problem, "auto"):
            continue
        rival = min(theirs, key=theirs.__getitem__)
        target = theirs[rival]
        after = next((t for t, regret in results.curve(problem, "auto") if regret <= target), None)
        found.append(Reached(problem, rival, target, after))
    return found


# --- the claims ---


def main_budget(runs: Mapping[Task, Run]) -> int:
    """The page's, or the least that there is, as after a first try with few evaluations."""
    budgets = {task.budget for task in runs} or {BUDGET}
    return BUDGET if BUDGET in budgets else min(budgets)


def claims(runs: Mapping[Task, Run], budget: int) -> list[str]:
    """What the default method is meant to reach, and what it did."""
    results = Results(runs, budget)
    everyone = COMPARED[1:]
    final = standings(results, FINAL, everyone, PROBLEMS)
    shared = standings(Results(runs, budget, range(RIVAL_SEEDS)), FINAL, everyone, PROBLEMS)
    average = standings(results, AVERAGE, RIVALS, PROBLEMS)
    quick = reached(results, [name for name, (D, _, _) in PAPER.items() if D <= 40])
    rows = [
        ("lowest mean final regret of all methods", "14 of 17", _count(final)),
        (f"the same on seeds 0 to {RIVAL_SEEDS - 1}, which all methods have", "", _count(shared)),
        ("worst ratio to the lowest", "at most 1.3", _worst(final)),
        ("R_T / T lower than every peer's", "14 of 17", _count(average)),
        ("the best peer's final mean reached, paper's configurations with D <= 40", "within 100", _slowest(quick)),
        ("worst ratio to `plain`", "at most 1.05", _worst(standings(results, FINAL, ["plain"], PROBLEMS))),
    ]
    small = [name for name, (_, d, _) in PAPER.items() if d <= 6]
    longer = standings(Results(runs, 2 * budget), FINAL, ["plain"], small)
    what = f"lower than `plain` on the paper's configurations with d <= 6, {2 * budget} evaluations"
    rows.append((what, f"{len(small)} of {len(small)}", _count(longer)))
    lines = [f"| {what} | {bar} | {found} |" for what, bar, found in rows]
    return ["| `auto` | wanted | found |", "|---|---:|---:|", *lines]


def _count(found: list[Standing]) -> str:
    return f"{sum(s.lowest for s in found)} of {len(found)}" if found else NONE


def _worst(found: list[Standing]) -> str:
    if not found:
        return NONE
    worst = max(found, key=lambda s: s.ratio)
    return f"{worst.ratio:.2f}" if worst.ratio == 1.0 else f"{worst.ratio:.2f} ({worst.problem})"


def _slowest(found: list[Reached]) -> str:
    if not found:
        return NONE
    slowest = max(found, key=lambda r: math.inf if r.after is None else r.after)
    in_time = sum(r.after is not None and r.after <= 100 for r in found)
    last = "not reached" if slowest.after is None else str(slowest.after)
    return f"{in_time} of {len(found)}; slowest {last} ({slowest.problem})"


# --- the tables ---


def report(runs: Mapping[Task, Run]) -> str:
    """All tables, as Markdown."""
    if not runs:
        return "There are no runs yet.\n"
    budget = main_budget(runs)
    results = Results(runs, budget)
    parts = [
        [_coverage(results)],
        claims(runs, budget),
        [f"Final simple regret after {budget} evaluations, mean ± standard error; the lowest mean is bold."],
        regret_table(results, FINAL, COMPARED),
        [f"Average cumulative regret R_T / T, T = {budget}."],
        regret_table(results, AVERAGE, COMPARED),
        ["Evaluations after which `auto`'s mean simple regret is no more than the best peer's at the end."],
        reached_table(results),
    ]
    for longer in sorted({task.budget for task in runs if task.method in ("auto", "plain")}):
        parts += [[f"`auto` beside `plain`, {longer} evaluations: final simple regret."]]
        parts += [plain_table(Results(runs, longer))]
    if any(results.of(name, method) for name in PROBLEMS for method in ABLATION):
        for measure in (FINAL, AVERAGE):
            parts += [[f"`auto` with one part changed: {measure}, and its ratio to that of `auto` on the same seeds."]]
            parts += [ablation_table(results, measure)]
    parts += [["Seconds per suggestion, median over all runs, one thread each."], seconds_table(results)]
    parts += [[_made_by(results)]]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def regret_table(results: Results, measure: str, methods: Iterable[str]) -> list[str]:
    """A row for each problem, a column for each method."""
    methods = list(methods)
    lines = [f"| problem | {' | '.join(methods)} |", "|---|" + "---:|" * len(methods)]
    for problem in PROBLEMS:
        means = results.means(problem, methods, measure)
        lowest = min(means.values(), default=None)
        cells = [_cell(results, problem, m, measure, bold=means.get(m, math.nan) == lowest) for m in methods]
        lines.append(f"| {problem} | {' | '.join(cells)} |")
    return lines


def _cell(results: Results, problem: str, method: str, measure: str, *, bold: bool = False) -> str:
    values = results.values(problem, method, measure)
    expected = len(wanted([method], [problem], results.budget))
    if not expected:
        return "not run"
    failed = results.failed(problem, method)
    text = short(statistics.fmean(values)) if values else NONE
    text = f"**{text}**" if bold else text
    if len(values) > 1:
        text += f" ± {short(standard_error(values), 2)}"
    missing = expected - len(values) - failed
    notes = [f"{failed} failed"] * (failed > 0) + [f"{missing} missing"] * (0 < missing < expected)
    return f"{text} ({', '.join(notes)})" if notes else text


def reached_table(results: Results) -> list[str]:
    lines = ["| problem | best peer | its final mean | `auto` is there after |", "|---|---|---:|---:|"]
    for problem, rival, target, after in reached(results, PROBLEMS):
        when = f"not in {results.budget}" if after is None else str(after)
        lines.append(f"| {problem} | {rival} | {short(target)} | {when} |")
    return lines


def plain_table(results: Results) -> list[str]:
    lines = ["| problem | auto | plain | ratio |", "|---|---:|---:|---:|"]
    for problem in PROBLEMS:
        mine, theirs = (results.mean(problem, method, FINAL) for method in ("auto", "plain"))
        if mine is not None and theirs is not None:
            cells = [_cell(results, problem, method, FINAL) for method in ("auto", "plain")]
            lines.append(f"| {problem} | {' | '.join(cells)} | {ratio(mine, theirs):.2f} |")
    return lines


def ablation_table(results: Results, measure: str) -> list[str]:
    """Variants in columns; in the last row the geometric mean of their ratios to `auto`, above 1 if the part pays."""
    names = [m for m in ABLATION if any(results.of(p, m) for p in PROBLEMS)]
    ratios: dict[str, list[float]] = {name: [] for name in names}
    lines = [f"| problem | auto | {' | '.join(names)} |", "|---|" + "---:|" * (1 + len(names))]
    for problem in PROBLEMS:
        means = results.means(problem, names, measure)
        mine = {name: results.of_seeds_of(name, problem).mean(problem, "auto", measure) for name in means}
        paired = {name: (means[name], own) for name, own in mine.items() if own is not None}
        if not paired:
            continue
        most = max(paired, key=lambda name: len(results.of(problem, name)))
        cells = [short(paired[most][1])]
        for name in names:
            if name in paired:
                ratios[name].append(ratio(*paired[name]))
            cells.append(f"{short(means[name])} ({ratios[name][-1]:.2f}x)" if name in paired else NONE)
        lines.append(f"| {problem} | {' | '.join(cells)} |")
    overall = [f"{geometric_mean(ratios[name]):.2f}x" if ratios[name] else NONE for name in names]
    return [*lines, f"| geometric mean | 1 | {' | '.join(overall)} |"]


def geometric_mean(ratios: list[float]) -> float:
    """0 or infinite as soon as one of them is."""
    if 0.0 in ratios or math.inf in ratios:
        return math.inf if math.inf in ratios else 0.0
    return statistics.geometric_mean(ratios)


def seconds_table(results: Results) -> list[str]:
    taken: dict[str, list[float]] = {method: [] for method in COMPARED}
    for task, run in results.runs.items():
        if task.method in taken and "error" not in run:
            taken[task.method].append(run["seconds_per_suggestion"])
    there = {method: statistics.median(seconds) for method, seconds in taken.items() if seconds}
    lines = [f"| {' | '.join(there)} |", "|" + "---:|" * len(there)]
    return [*lines, f"| {' | '.join(f'{seconds:.2g}' for seconds in there.values())} |"]


def _coverage(results: Results) -> str:
    tasks = wanted(COMPARED, PROBLEMS, results.budget)
    there = [task for task in tasks if task in results.runs]
    failed = [task for task in there if "error" in results.runs[task]]
    text = f"{len(there)} of {len(tasks)} runs are there"
    if failed:
        text += f", of which {len(failed)} failed ({_some(failed)})"
    return text + ("." if len(there) == len(tasks) else "; until all are, the counts below are provisional.")


def _some(tasks: list[Task]) -> str:
    names = sorted({f"{task.method} on {task.problem}" for task in tasks})
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _made_by(results: Results) -> str:
    versions = sorted({f"{name} {v}" for run in results.runs.values() for name, v in run.get("versions", {}).items()})
    return f"Made by `make regret` with {', '.join(versions)}."


def short(value: float, digits: int = 3) -> str:
    """A few digits, without a power of ten as long as the number is readable."""
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    if abs(value) >= 100.0:
        return f"{value:.0f}"
    return f"{value:.{digits}g}" if abs(value) >= 0.001 else f"{value:.1e}"


# --- the page ---


def write_page(path: Path, text: str, introduction: str, begin: str = BEGIN, end: str = END) -> None:
    """Put the text between the page's markers; a new page begins with the introduction.

    Raises:
        ValueError: The page is there, without the markers.
    """
    page = path.read_text(encoding="utf-8") if path.exists() else f"{introduction}\n{begin}\n{end}\n"
    before, begun, rest = page.partition(begin)
    _, ended, after = rest.partition(end)
    if not begun or not ended:
        raise ValueError(f"{path} must have the lines {begin!r} and {end!r}, between which the tables go")
    path.write_text(f"{before}{begin}\n\n{text}\n{end}{after}", encoding="utf-8")
