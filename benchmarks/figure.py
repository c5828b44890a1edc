"""The figure of the README, from the runs of paper_table.py.

    python benchmarks/figure.py docs/figure.svg --runs runs.jsonl

A name that ends in .png gives both a PNG and, beside it, the SVG.
"""

import argparse
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from paper_table import RUNS, Task, read_runs
from runs import Run

INK, PALE = "#24292f", "#6e7781"
# Strong colours, told apart also by the colour-blind, for what has a model; greys for the others.
COLOURS = {
    "Add-GP-UCB": "#d1242f",
    "auto": "#8250df",
    "Add-*": "#1b7c83",
    "GP-UCB": "#9a6700",
    "RAND": "#8c959f",
    "DIRECT": "#57606a",
}
ANOTHER = "#0969da"  # Add-d/M, whose name depends on the configuration
OURS = ("Add-GP-UCB, sumbo's settings", "auto")
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.edgecolor": PALE,
    "axes.labelcolor": INK,
    "xtick.color": PALE,
    "ytick.color": PALE,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "svg.hashsalt": "sumbo",  # the same runs give the same file
}


class Curve:
    """Mean simple regret of one method over its seeds, with its standard error."""

    def __init__(self, records: list[Run]) -> None:
        regrets = np.array([record["simple_regret"] for record in records])  # (seeds, points)
        self.t = np.array(records[0]["evaluations"])
        self.mean = regrets.mean(axis=0)
        n = len(regrets)
        self.error = regrets.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.zeros_like(self.mean)


def draw(runs: Mapping[Task, Run]) -> Figure:
    """Mean simple regret against evaluations, one line for each method."""
    by_method: dict[str, list[Run]] = {}
    for task, record in runs.items():
        by_method.setdefault(task.method, []).append(record)
    curves = {name: Curve(records) for name, records in by_method.items()}
    # 7.3 inches are 700 pixels of a browser.
    figure = Figure(figsize=(7.3, 4.1), facecolor="white")
    ax = figure.add_axes((0.085, 0.125, 0.62, 0.775), facecolor="white")
    for name, curve in curves.items():
        strong = name in OURS
        ax.plot(curve.t, curve.mean, color=colour(name), lw=2.4 if strong else 1.4, zorder=3 + strong)
        ax.fill_between(
            curve.t, curve.mean - curve.error, curve.mean + curve.error, color=colour(name), alpha=0.12, lw=0
        )
    dress(ax, curves)
    label_ends(ax, curves)
    seeds = sorted({len(records) for records in by_method.values()})
    count = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    D, d, M = next(iter(runs)).configuration
    title = f"Simple regret on additive({D}, {d}, {M}), lower is better"
    figure.text(0.012, 0.945, title, color=INK, fontsize=10.5, weight="bold")
    unit = "one seed" if seeds == [1] else f"mean of {count} seeds, band: one standard error"
    figure.text(0.985, 0.945, unit, color=PALE, fontsize=8, ha="right")
    return figure


def colour(name: str) -> str:
    return COLOURS.get(name.partition(", ")[0], ANOTHER)


def dress(ax: Axes, curves: Mapping[str, Curve]) -> None:
    """Scales, grid and frame."""
    # The limits come from the means: a band that reaches zero leaves the picture instead of stretching it.
    positive = np.concatenate([curve.mean[curve.mean > 0] for curve in curves.values()])
    highest = max(float((curve.mean + curve.error).max()) for curve in curves.values())
    last = max(curve.t[-1] for curve in curves.values())
    ax.set_yscale("log", nonpositive="clip")
    ax.set_ylim(positive.min() / 1.35, highest * 1.15)
    ax.set_xlim(min(curve.t[0] for curve in curves.values()), last)
    ax.set_xlabel("evaluations")
    ax.xaxis.set_major_locator(mpl.ticker.MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    ax.yaxis.set_major_locator(mpl.ticker.LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_locator(mpl.ticker.NullLocator())
    ax.grid(axis="y", color="#d8dee4", lw=0.7)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)


def label_ends(ax: Axes, curves: Mapping[str, Curve]) -> None:
    """Each method's name at the end of its line, moved apart where lines end close together."""
    low, high = np.log(ax.get_ylim())
    ends = {name: float(np.log(max(curve.mean[-1], np.exp(low)))) for name, curve in curves.items()}
    order = sorted(ends, key=ends.__getitem__)
    wanted = [(ends[name] - low) / (high - low) for name in order]
    heights = spread(wanted, gap=0.092)
    for name, start, height in zip(order, wanted, heights, strict=True):
        head, _, rest = name.partition(", ")
        ax.plot([1.005, 1.03], [start, height], color=colour(name), lw=0.8, transform=ax.transAxes, clip_on=False)
        weight = "bold" if name in OURS else "normal"
        ax.annotate(
            head, (1.04, height), xycoords="axes fraction", color=colour(name), weight=weight,
            va="bottom" if rest else "center", xytext=(0, -1 if rest else 0), textcoords="offset points",
        )  # fmt: skip
        if rest:
            ax.annotate(
                rest, (1.04, height), xycoords="axes fraction", color=PALE, fontsize=7.5,
                va="top", xytext=(0, -1), textcoords="offset points",
            )  # fmt: skip


def spread(wanted: list[float], gap: float) -> list[float]:
    """Ascending heights in [0, 1], at least a gap apart, each near the one wanted.

    Labels that would overlap become a block around the mean of their places, and blocks that meet are joined.
    """
    blocks: list[list[float]] = []

    def bottom(block: list[float]) -> float:
        length = gap * (len(block) - 1)
        return min(max(statistics.fmean(block) - length / 2, gap / 2), max(1 - gap / 2 - length, gap / 2))

    for height in wanted:
        blocks.append([height])
        while len(blocks) > 1 and bottom(blocks[-1]) - gap < bottom(blocks[-2]) + gap * (len(blocks[-2]) - 1):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    return [bottom(block) + gap * i for block in blocks for i in range(len(block))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="the figure: .svg, or .png for both")
    parser.add_argument("--runs", type=Path, default=RUNS, help=f"from paper_table.py (default: docs/{RUNS.name})")
    options = parser.parse_args()
    if options.file.suffix not in (".svg", ".png"):
        parser.error(f"the figure must be named .svg or .png, got {options.file}")
    try:
        runs = read_runs(options.runs)
    except ValueError as error:
        parser.error(str(error))
    kinds = {(task.configuration, task.budget) for task in runs}
    if len(kinds) != 1:
        parser.error(f"{options.runs} must hold runs of one configuration and budget, it has {len(kinds)}")
    with mpl.rc_context(STYLE):
        figure = draw(runs)
        figure.savefig(options.file.with_suffix(".svg"), metadata={"Date": None})
        if options.file.suffix == ".png":
            figure.savefig(options.file, dpi=192)
    return 0


if __name__ == "__main__":
    sys.exit(main())
