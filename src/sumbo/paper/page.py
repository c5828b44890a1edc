"""The page: tables of what each method reached, every claim with its verdict, and figures like the paper's."""

import math
import statistics
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from sumbo.errors import MissingPackageError
from sumbo.paper import runs
from sumbo.paper.claims import CLAIMS, Claim
from sumbo.paper.experiments import AUTO, STAR, is_variant
from sumbo.paper.rates import KERNELS, PROOF, bound, gains
from sumbo.paper.runs import HELD, MISSING, NOT, OPEN, Curve, Finding, Results

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
_WORDS = {HELD: "held", NOT: "did not hold", OPEN: "cannot be told from these runs", MISSING: "were not measured"}


def judge(results: Results) -> list[Judged]:
    """Every claim with what became of it."""
    return [(claim, claim.check(results)) for claim in CLAIMS]


def write(results: Results, judged: Sequence[Judged], figures: Sequence[Path], command: str, missing: int) -> str:
    """The page as Markdown; figures are beside it."""
    parts = ["# The paper's experiments, done again", f"Made by `{command}`."]
    if missing:
        parts.append(f"**{missing} runs are missing**: the tables show those there are.")
    verdicts = [finding.verdict for _, finding in judged]
    counts = [f"{verdicts.count(verdict)} {words}" for verdict, words in _WORDS.items()]
    rows = ["| where | claim | measured | verdict |", "|---|---|---|---|"]
    for claim, finding in judged:
        why = f"<br>{finding.why}" if finding.verdict == NOT and finding.why else ""
        rows.append(f"| {claim.where} | {claim.text} | {finding.measured or '-'} | **{finding.verdict}**{why} |")
    parts += [
        "## Every claim, and whether it held",
        f"Of {len(judged)} claims, {', '.join(counts)}. Numbers are simple regrets at the end of the runs unless said "
        "otherwise. A comparison is decided if the mean difference over common seeds exceeds its standard error.",
        "\n".join(rows),
    ]
    for name, title in _TITLES.items():
        if results.problems(name):
            parts += [f"## {title}", _NOTES[name]]
            parts += [f"![{title}]({path.name})" for path in figures if path.stem == f"paper-{name}"]
            parts += [_table(results, problem) for problem in results.problems(name) if name != "rates"]
    return "\n\n".join(parts) + "\n"


def _table(results: Results, problem: str) -> str:
    """What each method reached on a problem."""
    T = len(results.all(problem)[0]["values"])
    extra = ["held-out accuracy", "above OpenCV"] if problem == "faces" else []
    head = ["method", "runs", f"S_T, T = {T}", "R_T / T", "seconds per suggestion", *extra]
    rows = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    for method, by_seed in results.of(problem).items():
        lines = by_seed.values()
        cells = [method, str(len(lines))]
        for curve in (runs.simple_curve, runs.average_curve):
            cells.append(runs.mean_and_error(results.last(problem, method, curve).values()))
        cells.append(f"{statistics.median(line['seconds_per_suggestion'] for line in lines):.2g}")
        if problem == "faces":
            cells.append(runs.mean_and_error(line["held_out"] for line in lines))
            cells.append(f"{sum(line['held_out'] > line['opencv'][1] for line in lines)} of {len(lines)}")
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join([*([f"### {problem}", ""] if problem.startswith("additive") else []), *rows])


# Told apart also by the colour-blind; greys for what has no model.
_COLOURS = {
    STAR: "#1b7c83", "GP-UCB": "#9a6700", "GP-EI": "#d4a72c", "REMBO": "#bf3989",
    "RAND": "#8c959f", "DIRECT": "#57606a", AUTO: "#d1242f",
}  # fmt: skip
_ADDS = ("#a5d6ff", "#54aeff", "#0969da", "#0a3069", "#6639ba")
_MARKERS = "osD^vPX*<>hp"
_STYLE: dict[str, Any] = {"font.size": 8, "svg.hashsalt": "sumbo", "axes.grid": True, "grid.color": "#d8dee4"}
_KINDS = ("#54aeff", "#0a3069", "#d4a72c", "#bf3989")
_BARS = 8  # error bars along a curve
_FIRST = 10  # observations from which on a rate is drawn: it is about large T


def draw(results: Results, folder: Path) -> list[Path]:
    """Write a figure for every experiment that has runs, as SVG and PNG; the SVG files."""
    mpl = matplotlib()
    makers = {"synthetic": _synthetic, "astro": _astro, "faces": _faces, "rates": _rates}
    paths = {name: folder / f"paper-{name}.svg" for name in makers if results.problems(name)}
    with mpl.rc_context(_STYLE):
        for name, path in paths.items():
            figure = makers[name](results)
            figure.savefig(path, metadata={"Date": None})
            figure.savefig(path.with_suffix(".png"), dpi=150)
    return list(paths.values())


def matplotlib() -> Any:
    """The package, or the advice to install it."""
    try:
        import matplotlib as mpl
        import matplotlib.figure
    except ImportError:
        raise MissingPackageError("Matplotlib is not installed: pip install 'sumbo[plot]'") from None
    return mpl


def _synthetic(results: Results) -> Any:
    """S_T above R_T / T, a column for each configuration: up to four in one row, more in rows of three."""
    problems = results.problems("synthetic")
    columns = len(problems) if len(problems) <= 4 else 3
    axes, figure = _axes(2 * -(-len(problems) // columns), columns)
    for i, problem in enumerate(problems):
        row, column = divmod(i, columns)
        pair = axes[2 * row : 2 * row + 2, column]
        _regrets(pair, results, problem, f"({problem.removeprefix('additive-').replace('-', ', ')})", comma=",")
        _legend(pair[1])
    for ax in axes.flat:
        ax.set_visible(ax.has_data())
    return figure


def _regrets(axes: Any, results: Results, problem: str, title: str, comma: str = "") -> None:
    """Simple and average regret, each on axes of its own."""
    for ax, label, of in zip(axes, ("$S_T$", "$R_T/T$"), (runs.simple_curve, runs.average_curve), strict=True):
        _curves(ax, results, problem, of)
        ax.set_title(f"{label}{comma} {title}")
        ax.set_yscale("log")


def _legend(ax: Any) -> None:
    """Below the axes: among ten curves there is no free place."""
    ax.legend(fontsize=6, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.16), frameon=False)


def _astro(results: Results) -> Any:
    axes, figure = _axes(1, 2)
    _regrets(axes[0], results, "astro", "of the log-likelihood")
    _legend(axes[0, 0])
    _legend(axes[0, 1])
    return figure


def _faces(results: Results) -> Any:
    """Training accuracy along the runs, and held-out accuracy of what they found."""
    axes, figure = _axes(1, 2)
    left, right = axes[0]
    _curves(left, results, "faces", lambda line: 1.0 - runs.simple_curve(line))
    left.set_title("best accuracy in training")
    methods = list(results.of("faces"))
    own = np.array([line["opencv"] for line in results.all("faces")])
    for ax, value in ((left, own[:, 0].mean()), (right, own[:, 1].mean())):
        ax.axhline(value, color="#0969da", ls="--", lw=1.0, label="OpenCV's thresholds")
    for i, name in enumerate(methods):
        found = [line["held_out"] for line in results.of("faces")[name].values()]
        right.plot([i] * len(found), found, _MARKERS[i], color=_colours(methods)[name], ms=4)
    right.set_xticks(range(len(methods)), methods, rotation=60)
    right.set_title("accuracy on held-out pictures, each run")
    _legend(left)
    return figure


def _rates(results: Results) -> Any:
    """Information gain against T and D, the theorem's rates scaled to meet it at the end, and sums of variances."""
    axes, figure = _axes(1, 3)
    by_time, by_dimension, proof = axes[0]
    for i, kernel in enumerate(KERNELS):
        for structure, marker in (("additive", "o"), ("full", "s")):
            known = gains(results, structure, kernel)
            if not known:
                continue
            colour, name = _KINDS[2 * i + (structure == "full")], f"{structure} {kernel}"
            D = max(known)
            t = np.arange(_FIRST, len(known[D]) + 1)
            rate = np.array([bound(structure, kernel, D, int(T)) for T in t])
            by_time.plot(t, known[D][_FIRST - 1 :], color=colour, label=f"{name}, D = {D}")
            by_time.plot(t, rate / rate[-1] * known[D][-1], color=colour, ls="--", lw=0.8)
            last = [gain[-1] for gain in known.values()]
            by_dimension.plot(list(known), last, marker, ls="-", color=colour, label=name)
    for method, line in results.first(PROOF).items():
        proof.plot(line["squares"], label=rf"$\sum_j\sigma_j^2/\sigma^2$, {method}")
    by_time.set(title=r"$\gamma_T$ (dashed: the theorem's rate)", xlabel="T", xscale="log", yscale="log")
    by_dimension.set(title=r"$\gamma_T$ at the last T", xlabel="D", yscale="log")
    proof.set(title="at random points", xlabel="observations", yscale="log")
    for ax in axes[0]:
        ax.legend(fontsize=6)
    return figure


def _axes(rows: int, columns: int) -> tuple[Any, Any]:
    figure = matplotlib().figure.Figure(figsize=(4.0 * columns, 3.2 * rows), layout="constrained")
    return figure.subplots(rows, columns, squeeze=False), figure


def _curves(ax: Any, results: Results, problem: str, of: Curve) -> None:
    """The mean of every method with error bars here and there, moved apart so that they do not hide each other."""
    methods = [name for name in results.of(problem) if not is_variant(name)]
    colours = _colours(methods)
    for i, name in enumerate(methods):
        rows = np.array([of(line) for line in results.of(problem)[name].values()])
        mean = rows.mean(axis=0)
        error = rows.std(axis=0, ddof=1) / math.sqrt(len(rows)) if len(rows) > 1 else np.zeros_like(mean)
        t = np.arange(1, len(mean) + 1)
        ax.plot(t, mean, color=colours[name], lw=1.6 if name == AUTO else 0.9)
        some = np.unique(np.linspace(i, len(t) - 1, _BARS).astype(int).clip(0, len(t) - 1))
        ax.errorbar(
            t[some], mean[some], error[some],
            fmt=_MARKERS[i % len(_MARKERS)], color=colours[name], ms=3, lw=0.7, capsize=1.5, label=name,
        )  # fmt: skip
    ax.set_xlabel("evaluations")


def _colours(methods: list[str]) -> dict[str, str]:
    return _COLOURS | dict(zip([name for name in methods if name not in _COLOURS], cycle(_ADDS), strict=False))
