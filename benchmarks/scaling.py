"""How the cost of a suggestion grows with observations and parameters.

    python benchmarks/scaling.py --out docs/scaling.jsonl --markdown docs/scaling.md --plot docs/scaling.svg

One process per case, one thread each, so that memory is the case's own. Goes on where it was stopped.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from bench import ask_times, told

OVER_N = [(n, 50) for n in (100, 200, 500, 1000, 2000, 5000)]
OVER_D = [(500, D) for D in (10, 20, 50, 100, 200, 500, 1000)]


def measure(n: int, D: int) -> dict[str, Any]:
    """Median seconds of a suggestion between refits, seconds of a refit, and peak memory."""
    opt = told(D, n)
    opt.ask()  # learns for the first time
    before = len(opt.trials)
    asks = statistics.median(ask_times(opt, 5))
    model = opt.model
    assert model is not None
    started = time.perf_counter()
    model.fit(np.array(model.X), np.array(model.y), warm=True)
    fit = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    return {"n": n, "D": D, "ask": asks, "fit": fit, "megabytes": peak, "trials": before}


def slope(rows: list[dict[str, Any]], by: str, what: str, least: int) -> float:
    """Log-log slope by least squares over the larger cases: the small ones cost their overhead."""
    rows = [row for row in rows if row[by] >= least]
    return float(np.polyfit(np.log([r[by] for r in rows]), np.log([r[what] for r in rows]), 1)[0])


def report(rows: list[dict[str, Any]], command: str) -> str:
    over_n = sorted((r for r in rows if (r["n"], r["D"]) in OVER_N), key=lambda r: r["n"])
    over_d = sorted((r for r in rows if (r["n"], r["D"]) in OVER_D), key=lambda r: r["D"])
    lines = ["| observations | parameters | ask (s) | refit (s) | memory (MB) |", "|---:|---:|---:|---:|---:|"]
    for r in over_n + [r for r in over_d if r not in over_n]:
        lines.append(f"| {r['n']} | {r['D']} | {r['ask']:.3f} | {r['fit']:.3f} | {r['megabytes']:.0f} |")
    lines.append("")
    lines.append(
        f"Log-log slopes: ask in D at n=500, from 50 up, {slope(over_d, 'D', 'ask', 50):.2f}; refit in D "
        f"{slope(over_d, 'D', 'fit', 50):.2f}; ask in n at D=50, from 200 up, {slope(over_n, 'n', 'ask', 200):.2f}; "
        f"refit in n {slope(over_n, 'n', 'fit', 200):.2f}. Made by `{command}`."
    )
    return "\n".join(lines) + "\n"


def plot(rows: list[dict[str, Any]], path: str) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(8, 3.2), sharey=True)
    for axis, by, cases in ((axes[0], "n", OVER_N), (axes[1], "D", OVER_D)):
        chosen = sorted((r for r in rows if (r["n"], r["D"]) in cases), key=lambda r: r[by])
        for what, colour in (("ask", "tab:red"), ("fit", "tab:blue")):
            axis.loglog([r[by] for r in chosen], [r[what] for r in chosen], "o-", color=colour, label=what)
        axis.grid(True, which="major", alpha=0.3)
    axes[0].set(xlabel="observations (50 parameters)", ylabel="seconds")
    axes[1].set(xlabel="parameters (500 observations)")
    axes[0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, facecolor="white")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="docs/scaling.jsonl")
    parser.add_argument("--markdown")
    parser.add_argument("--plot")
    parser.add_argument("--case", nargs=2, type=int, metavar=("N", "D"), help="measure one case and print it")
    options = parser.parse_args()
    if options.case:
        print(json.dumps(measure(*options.case)))
        return 0
    out = Path(options.out)
    rows = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    for n, D in dict.fromkeys(OVER_N + OVER_D):
        if any((r["n"], r["D"]) == (n, D) for r in rows):
            continue
        command = [sys.executable, __file__, "--case", str(n), str(D)]
        line = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        rows.append(json.loads(line))
        with out.open("a") as file:
            file.write(line + "\n")
        sys.stderr.write(line + "\n")
    if options.markdown:
        Path(options.markdown).write_text(report(rows, "python " + " ".join(sys.argv)))
    if options.plot:
        plot(rows, options.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
