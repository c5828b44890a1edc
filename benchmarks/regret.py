"""Regret of sumbo's default method beside other optimisers, on 17 problems.

    python benchmarks/regret.py                          # or `make regret`; goes on where it was stopped
    python benchmarks/regret.py --methods auto plain --budget 400
    python benchmarks/regret.py --ablation
    python benchmarks/regret.py --report                 # tables and plot from the runs that are there

Every run is a line of JSON in the --out file; a page and a plot are made beside it, with the same name in .md and .svg.
A run that failed is a line too. Runs are remembered by method, problem, seed and budget only: after a change of a
method, delete its lines.
"""

import argparse
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from peers import PEERS
from regret_report import report, write_page
from regret_runs import ABLATION, COMPARED, METHODS, PROBLEMS, WORK, Task, task_of, wanted
from runs import EVERY, Run, command, complete, default_jobs, read_lines

RUNS = Path(__file__).parents[1] / "docs" / "regret.jsonl"
INTRODUCTION = """# Regret

Made by `make regret`.
"""


def main(arguments: list[str] | None = None) -> int:
    options = parse_options(arguments)
    lost = 0
    with command(__file__):
        done = read_lines(options.out, task_of)
        if not options.report:
            lost = complete(WORK, tasks(options), done, options.out, options.jobs)
            done = read_lines(options.out, task_of)
        failed = sum("error" in run for run in done.values())
        if failed:
            print(f"{failed} runs in {options.out} failed; to try them again, delete their lines", file=sys.stderr)
        picture = options.out.with_suffix(".svg")
        plot(done, picture)
        shown = f"\n![Regret against evaluations]({picture.name})\n" if picture.exists() else ""
        write_page(options.out.with_suffix(".md"), report(done) + shown, INTRODUCTION)
    return 1 if lost else 0


def tasks(options: argparse.Namespace) -> list[Task]:
    """The runs that were asked for and can be done here."""
    chosen = []
    for method in options.methods:
        missing = PEERS[method].missing() if method in PEERS else []
        if missing:
            names = " and ".join(missing)
            print(f"{method} is left out: {names} not installed (pip install 'sumbo[peers]')", file=sys.stderr)
        else:
            chosen.append(method)
    return wanted(chosen, options.problems, options.budget, options.seeds)


def plot(runs: Mapping[Task, Run], path: Path) -> None:
    """Draw the curves, where there are some and matplotlib is there."""
    if find_spec("matplotlib") is None:
        print("there is no plot: matplotlib is not installed (pip install 'sumbo[plot]')", file=sys.stderr)
        return
    from regret_plot import save

    save(runs, path)


def parse_options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, metavar="NAME", help=f"of {', '.join(METHODS)} (default: {COMPARED})"
    )
    parser.add_argument("--ablation", action="store_true", help="instead, auto and its variants with a part changed")
    parser.add_argument(
        "--problems",
        nargs="+",
        choices=PROBLEMS,
        default=list(PROBLEMS),
        metavar="NAME",
        help=f"of {', '.join(PROBLEMS)} (default: all)",
    )
    parser.add_argument("--seeds", type=int, metavar="N", help="seeds 0 to N - 1 (default: 5 of ours, 3 of the peers)")
    parser.add_argument("--budget", type=int, default=200, help="evaluations of a run (default: 200)")
    parser.add_argument("--jobs", type=int, default=default_jobs(), help="runs at a time (default: number of cores)")
    parser.add_argument("--out", type=Path, default=RUNS, help="the runs (default: docs/regret.jsonl)")
    parser.add_argument("--report", action="store_true", help="run nothing, only report on what is there")
    options = parser.parse_args(arguments)
    if options.ablation and options.methods:
        parser.error("--ablation chooses the methods itself: leave out --methods")
    options.methods = options.methods or (["auto", *ABLATION] if options.ablation else COMPARED)
    if min(options.jobs, 1 if options.seeds is None else options.seeds) < 1 or options.budget < EVERY:
        parser.error(f"--seeds and --jobs must be at least 1, --budget at least {EVERY}")
    if options.out.suffix != ".jsonl":
        parser.error(f"--out must be named .jsonl, for .md and .svg are made beside it; got {options.out}")
    return options


if __name__ == "__main__":
    sys.exit(main())
