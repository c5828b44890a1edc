"""The command line: parse, call, print."""

import argparse
import sys
import time
from collections.abc import Sequence

from sumbo import __version__
from sumbo.errors import SumboError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `sumbo`; returns the exit code: 0 done, 1 it failed, 2 the arguments make no sense, 130 interrupted."""
    parser = argparse.ArgumentParser(prog="sumbo", description="Optimise expensive black boxes with many parameters.")
    parser.add_argument("--version", action="version", version=f"sumbo {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser(
        "demo",
        help="optimise a 20-dimensional problem with hidden groups",
        description="Maximise a function of 20 parameters that is a sum of functions of hidden groups, show the groups "
        "that were learned beside the true ones, and what random search finds with the same budget.",
    )
    demo.add_argument("--seed", type=int, default=0, help="which problem, and which run of it (default 0)")
    demo.add_argument("--budget", type=int, default=400, help="number of evaluations (default 400)")
    options = parser.parse_args(arguments)
    try:
        return _demo(options.seed, options.budget)
    except SumboError as error:
        sys.stderr.write(f"sumbo: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("sumbo: interrupted\n")
        return 130


def _demo(seed: int, budget: int) -> int:
    # Imported here, so that `sumbo --help` answers at once.
    from rich.console import Console

    from sumbo import demo

    console = Console()
    console.print(demo.introduction(seed))
    started = time.monotonic()
    outcome = demo.run(seed, budget)
    console.print(demo.summary(outcome, time.monotonic() - started))
    return 0
