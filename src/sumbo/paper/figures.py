"""Figures like the paper's: regret against evaluations with error bars, as SVG and PNG."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sumbo.errors import MissingPackageError
from sumbo.paper.compare import AUTO, STAR, is_variant
from sumbo.paper.rates import KERNELS, PROOF, bound
from sumbo.paper.results import Results, average_curve, curve, simple_curve
from sumbo.paper.tasks import Line
from sumbo.paper.theory import gains
from sumbo.regret import FloatArray

# Told apart also by the colour-blind; greys for what has no model.
_FIXED = {
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
    """Write a figure for every experiment that has runs; the SVG files.

    Raises:
        MissingPackageError: Matplotlib is not installed.
    """
    mpl = matplotlib()
    written = []
    with mpl.rc_context(_STYLE):
        for name, make in (("synthetic", _synthetic), ("astro", _astro), ("faces", _faces), ("rates", _rates)):
            if not results.problems(name):
                continue
            figure = make(results)
            for ending in ("svg", "png"):
                path = folder / f"paper-{name}.{ending}"
                figure.savefig(path, dpi=150, metadata={"Date": None} if ending == "svg" else None)
            written.append(folder / f"paper-{name}.svg")
    return written


def matplotlib() -> Any:
    """The package.

    Raises:
        MissingPackageError: It is not installed.
    """
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
        title = f"({problem.removeprefix('additive-').replace('-', ', ')})"
        row, column = divmod(i, columns)
        for ax, label, of in zip(
            axes[2 * row : 2 * row + 2, column], ("$S_T$", "$R_T/T$"), (simple_curve, average_curve), strict=True
        ):
            _curves(ax, results, "synthetic", problem, of)
            ax.set_title(f"{label}, {title}")
            ax.set_yscale("log")
        _legend(ax)
    for ax in axes.flat:
        ax.set_visible(ax.has_data())
    return figure


def _legend(ax: Any) -> None:
    """Below the axes: among ten curves there is no free place."""
    ax.legend(fontsize=6, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.16), frameon=False)


def _astro(results: Results) -> Any:
    axes, figure = _axes(1, 2)
    for ax, (label, of) in zip(axes[0], (("$S_T$", simple_curve), ("$R_T/T$", average_curve)), strict=True):
        _curves(ax, results, "astro", "astro", of)
        ax.set_title(f"{label} of the log-likelihood")
        ax.set_yscale("log")
        _legend(ax)
    return figure


def _faces(results: Results) -> Any:
    """Training accuracy along the runs, and held-out accuracy of what they found."""
    axes, figure = _axes(1, 2)
    left, right = axes[0]
    _curves(left, results, "faces", "faces", lambda line: 1.0 - simple_curve(line))
    left.set_title("best accuracy in training")
    methods = results.methods("faces", "faces")
    own = np.array([line["opencv"] for name in methods for line in results.lines("faces", "faces", name).values()])
    for ax, value in ((left, own[:, 0].mean()), (right, own[:, 1].mean())):
        ax.axhline(value, color="#0969da", ls="--", lw=1.0, label="OpenCV's thresholds")
    for i, name in enumerate(methods):
        runs = results.lines("faces", "faces", name).values()
        right.plot(
            [i] * len(runs), [line["held_out"] for line in runs], _MARKERS[i], color=_colour(name, methods), ms=4
        )
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
    for method in results.methods("rates", PROOF):
        line = next(iter(results.lines("rates", PROOF, method).values()))
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


def _curves(ax: Any, results: Results, experiment: str, problem: str, of: Callable[[Line], FloatArray]) -> None:
    """The mean of every method with error bars here and there, moved apart so that they do not hide each other."""
    methods = [name for name in results.methods(experiment, problem) if not is_variant(name)]
    for i, name in enumerate(methods):
        found = curve(of(line) for line in results.lines(experiment, problem, name).values())
        t = np.arange(1, len(found.mean) + 1)
        colour = _colour(name, methods)
        ax.plot(t, found.mean, color=colour, lw=1.6 if name == AUTO else 0.9)
        some = np.unique(np.linspace(i, len(t) - 1, _BARS).astype(int).clip(0, len(t) - 1))
        ax.errorbar(
            t[some], found.mean[some], found.error[some],
            fmt=_MARKERS[i % len(_MARKERS)], color=colour, ms=3, lw=0.7, capsize=1.5, label=name,
        )  # fmt: skip
    ax.set_xlabel("evaluations")


def _colour(name: str, methods: list[str]) -> str:
    if name in _FIXED:
        return _FIXED[name]
    adds = [method for method in methods if method not in _FIXED]
    return _ADDS[adds.index(name) % len(_ADDS)]
