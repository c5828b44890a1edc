"""Constraints, conditions, contexts and noise: sumbo beside other optimisers.

    python benchmarks/shapes.py                          # or `make shapes`; goes on where it was stopped
    python benchmarks/shapes.py --methods sumbo --problems xy mixture-8
    python benchmarks/shapes.py --report                 # the page from the runs that are there

Every run is a line of JSON in the --out file; the page is made beside it, with the same name in .md. Runs are
remembered by problem, method and seed only: after a change of a method, delete its lines.
"""

import argparse
import sys
from pathlib import Path

from runs import command, complete, default_jobs, read_lines
from shape_report import write_page
from shape_runs import METHODS, PROBLEMS, SEEDS, SYSTEMS, WORK, Task, missing, task_of, wanted

RUNS = Path(__file__).parents[1] / "docs" / "shapes.jsonl"


def main(arguments: list[str] | None = None) -> int:
    options = parse_options(arguments)
    lost = 0
    with command(__file__):
        if not options.report:
            done = read_lines(options.out, task_of)
            lost = complete(WORK, tasks(options), done, options.out, options.jobs)
        write_page(read_lines(options.out, task_of), options.out.with_suffix(".md"))
    return 1 if lost else 0


def tasks(options: argparse.Namespace) -> list[Task]:
    """The runs that were asked for and can be done here."""
    chosen = []
    for method in options.methods:
        if lacking := " and ".join(missing(method)):
            print(f"{method} is left out: {lacking} not installed (pip install 'sumbo[peers]')", file=sys.stderr)
        else:
            chosen.append(method)
    return wanted(options.problems, chosen, options.seeds)


def parse_options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, choices in (("methods", METHODS), ("problems", PROBLEMS)):
        text = f"of {', '.join(choices)} (default: all)"
        parser.add_argument(
            f"--{name}", nargs="+", choices=list(choices), default=list(choices), metavar="NAME", help=text
        )
    parser.add_argument(
        "--seeds", type=int, metavar="N", help=f"seeds 0 to N - 1 (default: {SEEDS}, and all {SYSTEMS} systems)"
    )
    parser.add_argument("--jobs", type=int, default=default_jobs(), help="runs at a time (default: number of cores)")
    parser.add_argument("--out", type=Path, default=RUNS, help="the runs (default: docs/shapes.jsonl)")
    parser.add_argument("--report", action="store_true", help="run nothing, only report on what is there")
    options = parser.parse_args(arguments)
    if min(options.jobs, 1 if options.seeds is None else options.seeds) < 1:
        parser.error("--seeds and --jobs must be at least 1")
    if options.out.suffix != ".jsonl":
        parser.error(f"--out must be named .jsonl, for the page is made beside it; got {options.out}")
    return options


if __name__ == "__main__":
    sys.exit(main())
