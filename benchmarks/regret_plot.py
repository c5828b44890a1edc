"""The plot of the regret benchmark: a small panel for each problem, a line for each method."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from figure import INK, PALE, STYLE, Curve
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from regret_report import Results, main_budget
from regret_runs import COMPARED, PROBLEMS, Task
from runs import Run

COLUMNS = 3
# Told apart also by the colour-blind; ours are strong, what is not a contender is grey.
LINES: dict[str, dict[str, Any]] = {
    "auto": {"color": "#d1242f", "lw": 2.2},
    "plain": {"color": "#8250df", "lw": 1.4, "ls": (0, (4, 1.5))},
    "optuna-gp": {"color": "#0969da", "lw": 1.4},
    "botorch": {"color": "#bf8700", "lw": 1.4},
    "optuna-tpe": {"color": "#54aeff", "lw": 1.2},
    "cma-es": {"color": "#1b7c83", "lw": 1.2},
    "add-gp-ucb-paper": {"color": "#57606a", "lw": 1.2, "ls": (0, (1, 1))},
    "random": {"color": "#afb8c1", "lw": 1.2},
}


def save(runs: Mapping[Task, Run], path: Path) -> None:
    """Draw what there is of the page's budget; nothing where there are no runs."""
    results = Results(runs, main_budget(runs))
    problems = [p for p in PROBLEMS if any(results.of(p, method) for method in COMPARED)]
    if problems:
        with mpl.rc_context(STYLE | {"font.size": 8}):
            draw(results, problems).savefig(path, metadata={"Date": None})


def draw(results: Results, problems: list[str]) -> Figure:
    """Mean simple regret against evaluations, with a band of one standard error."""
    rows = math.ceil((len(problems) + 1) / COLUMNS)  # the last panel is the legend's
    figure = Figure(figsize=(9.0, 0.5 + 2.0 * rows), facecolor="white", layout="constrained")
    figure.suptitle("Mean simple regret against evaluations, lower is better; band: one standard error", fontsize=10)
    axes = list(figure.subplots(rows, COLUMNS, squeeze=False).flat)
    shown: set[str] = set()
    for ax, problem in zip(axes, problems, strict=False):
        shown |= panel(ax, results, problem)
    for ax in axes[len(problems) :]:
        ax.axis("off")
    handles = [Line2D([], [], label=method, **LINES[method]) for method in COMPARED if method in shown]
    axes[-1].legend(handles=handles, loc="center", frameon=False, ncols=2 if len(handles) > 4 else 1)
    return figure


def panel(ax: Axes, results: Results, problem: str) -> set[str]:
    """One problem; the methods that have a line in it."""
    curves = {method: Curve(results.of(problem, method)) for method in COMPARED if results.of(problem, method)}
    for method, curve in curves.items():
        line = LINES[method]
        ax.plot(curve.t, curve.mean, zorder=4 if method == "auto" else 3, **line)
        ax.fill_between(
            curve.t, curve.mean - curve.error, curve.mean + curve.error, color=line["color"], alpha=0.12, lw=0
        )
    ax.set_title(problem, fontsize=8.5, color=INK, loc="left", pad=3)
    dress(ax, curves.values())
    return set(curves)


def dress(ax: Axes, curves: Iterable[Curve]) -> None:
    """Scales, grid and frame; the limits come from the means, so that no band stretches the picture."""
    means = np.concatenate([curve.mean for curve in curves])
    positive = means[means > 0]
    ax.set_yscale("log", nonpositive="clip")
    if len(positive):
        ax.set_ylim(positive.min() / 1.3, positive.max() * 1.3)
    decades = float(np.log10(positive.max() / positive.min())) if len(positive) else 0.0
    subs = (1, 2, 5) if decades < 1.5 else (1,)
    ax.yaxis.set_major_locator(mpl.ticker.LogLocator(subs=subs, numticks=7))
    ax.yaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_locator(mpl.ticker.NullLocator())
    ax.xaxis.set_major_locator(mpl.ticker.MaxNLocator(nbins=5, integer=True))
    ax.grid(axis="y", color="#d8dee4", lw=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set_color(PALE)
    ax.tick_params(axis="y", length=0)
