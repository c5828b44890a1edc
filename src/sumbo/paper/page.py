"""The page: tables of what each method reached, figures, and every claim with its verdict."""

import statistics
from collections.abc import Sequence
from pathlib import Path

from sumbo.paper.claims import EXPERIMENTS, HELD, MISSING, NOT, OPEN, Claim, Finding
from sumbo.paper.results import Results, mean_and_error
from sumbo.paper.theory import THEORY

Judged = tuple[Claim, Finding]

_TITLES = {"synthetic": "Synthetic functions", "astro": "Astrophysics", "faces": "Face detection", "rates": "Rates"}
_NOTES = {
    "synthetic": (
        "Simple regret S_T and average regret R_T / T, smaller is better: mean ± standard error. The methods have the "
        "paper's settings and DIRECT budgets; `sumbo auto` has its own. Add-* knows the groups, and keeps the "
        "dimensions that do nothing in a group of their own. Each seed has groups of its own."
    ),
    "astro": (
        "Log-likelihood of 20 band powers over 9 parameters hidden among 20; the optimum is 0. The band powers are "
        "those of a universe that the seed draws, unless `--lrg-data` names the published ones. CAMB finds no universe "
        "in a tenth of the box: these are failed trials, and count as the worst value of their run in R_T / T. The "
        "paper tells neither its box nor its software's settings; those here are our own."
    ),
    "faces": (
        "Accuracy of OpenCV's cascade over the thresholds of its 22 stages, within 20% of its own; 500 pictures to "
        "train with, 500 others held out. Regret is the share of pictures called wrongly. OpenCV's own thresholds are "
        "the centre of the box, which DIRECT asks for first, and `auto` too: these begin there. The pictures are not "
        "the paper's."
    ),
    "rates": (
        "gamma_T is measured greedily among 2000 random points, with k(x, x) = 1, lengthscale 0.3, eta^2 = 0.01 and "
        "groups of two. Dashed lines are the theorem's rates, whose constants are unknown, moved to meet at the end."
    ),
}


def judge(results: Results) -> list[Judged]:
    """Every claim with what became of it."""
    return [(claim, claim.check(results)) for claim in (*EXPERIMENTS, *THEORY)]


def write(results: Results, judged: Sequence[Judged], figures: Sequence[Path], command: str, missing: int) -> str:
    """The page as Markdown; figures are beside it."""
    parts = ["# The paper's experiments, done again", f"Made by `{command}`."]
    if missing:
        parts.append(f"**{missing} runs are missing**: the tables show those there are.")
    parts += ["## Every claim, and whether it held", _summary(judged), _claims(judged)]
    for name, title in _TITLES.items():
        if results.problems(name):
            parts += [f"## {title}", _NOTES[name]]
            parts += [f"![{title}]({path.name})" for path in figures if path.stem == f"paper-{name}"]
            parts += [_table(results, name, problem) for problem in results.problems(name) if name != "rates"]
    return "\n\n".join(parts) + "\n"


def _summary(judged: Sequence[Judged]) -> str:
    counts = [f"{sum(f.verdict == v for _, f in judged)} {words}" for v, words in _WORDS.items()]
    return (
        f"Of {len(judged)} claims, {', '.join(counts)}. Numbers are simple regrets at the end of the runs unless said "
        "otherwise. A comparison is decided if the mean difference over common seeds exceeds its standard error."
    )


_WORDS = {HELD: "held", NOT: "did not hold", OPEN: "cannot be told from these runs", MISSING: "were not measured"}


def _claims(judged: Sequence[Judged]) -> str:
    rows = ["| where | claim | measured | verdict |", "|---|---|---|---|"]
    for claim, finding in judged:
        why = f"<br>{claim.why}" if finding.verdict == NOT and claim.why else ""
        rows.append(f"| {claim.where} | {claim.text} | {finding.measured or '-'} | **{finding.verdict}**{why} |")
    return "\n".join(rows)


def _table(results: Results, experiment: str, problem: str) -> str:
    methods = results.methods(experiment, problem)
    first = next(iter(results.lines(experiment, problem, methods[0]).values()))
    T = len(first["values"])
    extra = ["held-out accuracy", "above OpenCV"] if experiment == "faces" else []
    head = ["method", "runs", f"S_T, T = {T}", "R_T / T", "seconds per suggestion", *extra]
    rows = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    for method in methods:
        runs = list(results.lines(experiment, problem, method).values())
        cells = [method, str(len(runs))]
        for regret in (results.simple, results.average):
            cells.append(mean_and_error(regret(experiment, problem, method).values()))
        cells.append(f"{statistics.median(run['seconds_per_suggestion'] for run in runs):.2g}")
        if experiment == "faces":
            cells.append(mean_and_error(run["held_out"] for run in runs))
            cells.append(f"{sum(run['held_out'] > run['opencv'][1] for run in runs)} of {len(runs)}")
        rows.append(f"| {' | '.join(cells)} |")
    title = problem if experiment == "synthetic" else ""
    return "\n".join([*([f"### {title}", ""] if title else []), *rows])
