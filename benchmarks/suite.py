"""sumbo's default method beside other optimisers, on problems of two sets: one to make choices on, one to test them.

    python benchmarks/suite.py                           # or `make suite`; goes on where it was stopped
    python benchmarks/suite.py --set test
    python benchmarks/suite.py --methods auto random --problems NAME --seeds 3 --budget 100
    python benchmarks/suite.py --ablation                # auto, and auto with a part changed
    python benchmarks/suite.py --report                  # the page from the runs that are there

Every run is a line of JSON in the --out file. The page is docs/benchmarks.md, or beside another --out file, with the
same name in .md. Runs are remembered by method, problem, seed and budget only: after a change of a method, delete its
lines. HEBO needs an environment of its own (NumPy below 2): --hebo names its Python.
"""

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peers import lacking
from regret_report import write_page
from regret_runs import ABLATION, Task
from runs import EVERY, command, complete, default_jobs, read_lines
from suite_peers import HEBO_PYTHON, PEERS
from suite_report import BEGIN, END, report
from suite_runs import PLAN_OF, PLANS, WORK, sets, task_of, wanted

RUNS = Path(__file__).parents[1] / "docs" / "suite.jsonl"
PAGE = "benchmarks.md"
INTRODUCTION = "# `auto` beside other optimisers\n"


def main(arguments: list[str] | None = None) -> int:
    options = parse_options(arguments)
    lost = 0
    with command(__file__):
        if not options.report:
            done = read_lines(options.out, task_of)
            lost = complete(WORK, tasks(options), done, options.out, options.jobs)
        page = RUNS.with_name(PAGE) if options.out.resolve() == RUNS else options.out.with_suffix(".md")
        write_page(page, report(read_lines(options.out, task_of)), INTRODUCTION, BEGIN, END)
    return 1 if lost else 0


def tasks(options: argparse.Namespace) -> list[Task]:
    """The runs that were asked for and can be done here."""
    entries = sets()[options.set]
    methods = {m: PEERS[m].missing() if m in PEERS else [] for m in options.methods}
    problems = {name: lacking(entries[name].needs) for name in options.problems}
    return wanted(entries, _there(methods), _there(problems), options.seeds, options.budget)


def _there(missing: Mapping[str, list[str]]) -> list[str]:
    """The names that lack nothing; of the others it is said."""
    for name, packages in missing.items():
        if packages:
            print(f"{name} is left out: {' and '.join(packages)} not installed", file=sys.stderr)
    return [name for name, packages in missing.items() if not packages]


def parse_options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=("development", "test"), default="development", help="(default: development)")
    text = f"of {', '.join(PLANS)}, or a variant of the ablation (default: all the former)"
    parser.add_argument("--methods", nargs="+", choices=list(PLAN_OF), metavar="NAME", help=text)
    parser.add_argument("--ablation", action="store_true", help="instead, auto and its variants with a part changed")
    parser.add_argument("--problems", nargs="+", metavar="NAME", help="of the set (default: all)")
    parser.add_argument("--seeds", type=int, metavar="N", help="seeds 0 to N - 1 (default: as many as a method has)")
    parser.add_argument("--budget", type=int, metavar="N", help="evaluations of a run (default: the problem's own)")
    parser.add_argument("--jobs", type=int, default=default_jobs(), help="runs at a time (default: number of cores)")
    parser.add_argument("--out", type=Path, default=RUNS, help="the runs (default: docs/suite.jsonl)")
    parser.add_argument("--report", action="store_true", help="run nothing, only report on what is there")
    parser.add_argument("--hebo", metavar="PYTHON", help=f"the Python of HEBO's environment (default: ${HEBO_PYTHON})")
    options = parser.parse_args(arguments)
    _check(parser, options, sets()[options.set])
    return options


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace, entries: Mapping[str, Any]) -> None:
    """Fill in what was not given, and say what cannot be."""
    if options.ablation and options.methods:
        parser.error("--ablation chooses the methods itself: leave out --methods")
    options.methods = options.methods or (["auto", *ABLATION] if options.ablation else list(PLANS))
    options.problems = options.problems or list(entries)
    if unknown := [name for name in options.problems if name not in entries]:
        parser.error(f"--problems: {', '.join(unknown)} not in the {options.set} set, which has {', '.join(entries)}")
    if min(options.jobs, 1 if options.seeds is None else options.seeds) < 1 or (
        options.budget is not None and options.budget < EVERY
    ):
        parser.error(f"--seeds and --jobs must be at least 1, --budget at least {EVERY}")
    if options.out.suffix != ".jsonl":
        parser.error(f"--out must be named .jsonl, for the page is made beside it; got {options.out}")
    if options.hebo:
        os.environ[HEBO_PYTHON] = options.hebo  # workers inherit it


if __name__ == "__main__":
    sys.exit(main())
