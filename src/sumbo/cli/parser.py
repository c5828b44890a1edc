"""Commands and their options."""

import argparse
import re
from collections.abc import Sequence
from typing import TypeAlias

from sumbo import __version__

_EXAMPLES = """\
examples:
  sumbo run wing.toml                     evaluate until the budget is spent; again to resume
  sumbo ask wing.toml -n 8 --csv b.csv    eight experiments to do by hand, as a table
  sumbo tell wing.toml b.csv              record the table with its results filled in
  sumbo best wing.toml                    the best parameters so far
  sumbo demo                              see it work

exit codes:
  0 done · 1 it cannot be done; standard error says why · 2 the arguments make no sense
  3 the objective fails wherever it is evaluated · 130 interrupted
"""


def make_parser() -> argparse.ArgumentParser:
    """The parser of `sumbo`."""
    parser = argparse.ArgumentParser(
        prog="sumbo",
        description="Optimise expensive black boxes with many parameters.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"sumbo {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _run(commands)
    _ask(commands)
    _tell(commands)
    _looking(commands)
    _others(commands)
    return parser


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; wrong ones end the program with exit code 2."""
    parser = make_parser()
    options, rest = parser.parse_known_args(arguments)
    # argparse takes an optional argument for left out if an option stands before it: `tell s.toml --trial 3 0.31`.
    if len(rest) == 1 and getattr(options, "result", "") is None and re.fullmatch(r"[^-].*|-[\d.].*", rest[0]):
        options.result, rest = rest[0], []
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return options


Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def _command(commands: Commands, name: str, summary: str, description: str, examples: str) -> argparse.ArgumentParser:
    command = commands.add_parser(
        name,
        help=summary,
        description=description,
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("--json", action="store_true", help="answer with one JSON object on standard output")
    return command


def _study(command: argparse.ArgumentParser) -> None:
    command.add_argument("study", metavar="STUDY.toml", help="the study file")


def _run(commands: Commands) -> None:
    command = _command(
        commands,
        "run",
        "evaluate until the budget is spent; again to resume",
        "Evaluate the study's objective until its budget is spent. What is stored goes on where it stopped, and\n"
        "several `sumbo run` can share a study. Ctrl-C finishes the trials that run; a second one stops them.",
        "  sumbo run wing.toml\n  sumbo run wing.toml --budget 500 --workers 8",
    )
    _study(command)
    command.add_argument("--budget", type=_count, metavar="N", help="evaluations in all, instead of the file's")
    command.add_argument("--workers", type=_count, metavar="N", help="evaluations at a time, instead of the file's")


def _ask(commands: Commands) -> None:
    command = _command(
        commands,
        "ask",
        "parameters for experiments to do by hand",
        "Choose the next experiments. They stay open until you tell their results, however long that takes.",
        "  sumbo ask wing.toml\n  sumbo ask wing.toml -n 8 --csv batch.csv\n"
        "  sumbo ask wing.toml --open --csv again.csv",
    )
    _study(command)
    command.add_argument("-n", type=_count, metavar="N", help="how many (default 1)")
    command.add_argument("--csv", metavar="FILE", help="write them as a table with an empty column for the results")
    command.add_argument("--open", action="store_true", help="no new ones: those handed out before and not yet told")


def _tell(commands: Commands) -> None:
    command = _command(
        commands,
        "tell",
        "record results of experiments done by hand",
        "Record results: a table, or one trial. In a table, rows without a result are left for later, the word\n"
        "failed (and a reason) stands for an experiment that gave none, and a row without a trial number is an\n"
        "experiment of your own. Nothing is recorded unless all rows are right.",
        "  sumbo tell wing.toml batch.csv\n  sumbo tell wing.toml --trial 3 0.31\n"
        '  sumbo tell wing.toml --trial 4 --failed "the glue came off"',
    )
    _study(command)
    command.add_argument("result", metavar="FILE.csv | VALUE", nargs="?", help="the table; with --trial, the value")
    command.add_argument("--trial", type=_number, metavar="N", help="the trial that the value is of")
    command.add_argument(
        "--failed", nargs="?", const="failed, as told by hand", metavar="REASON", help="the trial gave no value"
    )
    command.add_argument("--replace", action="store_true", help="correct results that were told before")
    command.add_argument("--own", action="store_true", help="take all rows for experiments of your own")


def _looking(commands: Commands) -> None:
    best = _command(
        commands,
        "best",
        "the best parameters so far",
        "Show the best trial. Exits with 1 if no trial has a value yet.",
        "  sumbo best wing.toml\n  sumbo best wing.toml --json | jq .params",
    )
    _study(best)
    show = _command(
        commands,
        "show",
        "how the study stands",
        "Show how many trials are done, failed, running and open, why trials failed, and the last few.",
        "  sumbo show wing.toml\n  sumbo show wing.toml -n 50",
    )
    _study(show)
    show.add_argument("-n", type=_count, metavar="N", default=10, help="how many of the last trials (default 10)")
    export = _command(
        commands,
        "export",
        "all trials as a table",
        "Write all trials as CSV, or as Parquet if the file is called so and pyarrow is installed.",
        "  sumbo export wing.toml > wing.csv\n  sumbo export wing.toml --out wing.parquet",
    )
    _study(export)
    export.add_argument("--out", metavar="FILE", help="where to (default: standard output, as CSV)")


def _others(commands: Commands) -> None:
    demo = _command(
        commands,
        "demo",
        "optimise a 20-dimensional problem with hidden groups",
        "Maximise a function of 20 parameters that is a sum of functions of hidden groups, show the groups that were\n"
        "learned beside the true ones, and what random search finds with the same budget.",
        "  sumbo demo\n  sumbo demo --seed 2",
    )
    demo.add_argument("--seed", type=int, default=0, help="which problem, and which run of it (default 0)")
    demo.add_argument("--budget", type=int, default=400, help="number of evaluations (default 400)")
    completion = _command(
        commands,
        "completion",
        "let the shell complete sumbo's commands",
        "Print a script that teaches a shell to complete commands, options and study files.",
        "  sumbo completion bash > ~/.local/share/bash-completion/completions/sumbo\n"
        "  sumbo completion zsh > ~/.zfunc/_sumbo        (with fpath+=~/.zfunc before compinit)\n"
        "  sumbo completion fish > ~/.config/fish/completions/sumbo.fish",
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))


def _count(text: str) -> int:
    return _whole(text, 1)


def _number(text: str) -> int:
    return _whole(text, 0)


def _whole(text: str, least: int) -> int:
    if not text.isdecimal() or not least <= int(text) < 2**63:
        raise argparse.ArgumentTypeError(f"expected a whole number from {least} up, got {text!r}")
    return int(text)
