"""Commands and their options, and scripts by which shells complete them."""

import argparse
import json
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, NoReturn, TypeAlias

from sumbo import __version__
from sumbo._redaction import may_hold_secret, safe

BY_HAND = "failed, as told by hand"  # the reason where none was given
_OPTIMISED = ("synthetic", "astro", "faces")  # experiments of `reproduce` that have runs and budgets

_EXAMPLES = """\
examples:
  sumbo run wing.toml                     evaluate until the budget is spent; again to resume
  sumbo ask wing.toml -n 8 --csv b.csv    eight experiments to do by hand, as a table
  sumbo tell wing.toml b.csv              record the table with its results filled in
  sumbo best wing.toml                    the best parameters so far
  sumbo demo                              see it work

exit codes:
  0 done; 1 it cannot be done, and standard error says why; 2 the arguments make no sense;
  3 no evaluation succeeded; 130 interrupted
"""


class _Parser(argparse.ArgumentParser):
    """Repeats no password of an argument that makes no sense; its commands are of the same class."""

    urls: ClassVar[list[str]] = []

    def error(self, message: str) -> NoReturn:
        super().error(safe(message, *self.urls))


def make_parser() -> argparse.ArgumentParser:
    """The parser of `sumbo`."""
    parser = _Parser(
        prog="sumbo",
        description="Optimise expensive black boxes with many parameters.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"sumbo {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for some in (_run, _ask_and_tell, _looking, _reproduce, _others):
        some(partial(_command, commands))
    return parser


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; wrong ones end the program with exit code 2."""
    parser = make_parser()
    given = sys.argv[1:] if arguments is None else arguments
    _Parser.urls = [text for text in given if may_hold_secret(text)]
    options, rest = parser.parse_known_args(given)
    # argparse takes an optional argument for left out if an option stands before it: `tell s.toml --trial 3 0.31`.
    if len(rest) == 1 and getattr(options, "result", "") is None and re.fullmatch(r"(?!-).*|-[\d.].*", rest[0]):
        options.result, rest = rest[0], []
    if rest and options.command == "tell" and not rest[0].startswith("--"):
        parser.error(f"tell: expected a table, or --trial N with one value; {' '.join(rest)} is too much")
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    options.urls = _Parser.urls
    return options


Commands: TypeAlias = "argparse._SubParsersAction[_Parser]"
Add = Callable[..., argparse.ArgumentParser]


def _command(
    commands: Commands, name: str, summary: str, description: str, examples: str, *, study: bool = True
) -> argparse.ArgumentParser:
    command = commands.add_parser(
        name,
        help=summary,
        description=description,
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _flag(command, "--json", "answer with one JSON object on standard output")
    if study:
        command.add_argument("study", metavar="STUDY.toml", help="the study file")
    return command


def _flag(command: argparse._ActionsContainer, name: str, text: str) -> None:
    command.add_argument(name, action="store_true", help=text)


def _values(command: argparse._ActionsContainer, name: str, text: str) -> None:
    command.add_argument(
        name, action="append", default=[], metavar="NAME=VALUE", help=f"{text}; may be given several times"
    )


def _run(add: Add) -> None:
    command = add(
        "run",
        "evaluate until the budget is spent; again to resume",
        "Evaluate the study's objective until its budget is spent. What is stored goes on where it stopped, and\n"
        "several `sumbo run` can share a study. Ctrl-C finishes the trials that run; a second one stops them.",
        "  sumbo run wing.toml\n  sumbo run wing.toml --budget 500 --workers 8",
    )
    command.add_argument("--budget", type=_count, metavar="N", help="evaluations in all, instead of the file's")
    command.add_argument("--workers", type=_count, metavar="N", help="evaluations at a time, instead of the file's")


def _ask_and_tell(add: Add) -> None:
    ask = add(
        "ask",
        "parameters for experiments to do by hand",
        "Choose the next experiments. They stay open until you tell their results, however long that takes.\n"
        "A table that is there already is not written over unless you say so.",
        "  sumbo ask wing.toml\n  sumbo ask wing.toml -n 8 --csv batch.csv\n"
        "  sumbo ask wing.toml --context wind=12 --fix angle=3\n"
        "  sumbo ask wing.toml -n 8 --csv batch.csv --append\n  sumbo ask wing.toml --open --csv again.csv",
    )
    ask.add_argument("-n", type=_count, metavar="N", help="how many (default 1)")
    _values(ask, "--context", "what the world sets, for all of them; every parameter that the file names so")
    _values(ask, "--fix", "a value that they are to have, whatever is searched")
    ask.add_argument("--csv", metavar="FILE", help="write them as a table with an empty column for the results")
    there = ask.add_mutually_exclusive_group()
    _flag(there, "--append", "add rows to the table, which keeps what was typed in")
    _flag(there, "--force", "write over the table, whatever was typed into it")
    _flag(ask, "--open", "no new ones: those handed out before and not yet told")
    tell = add(
        "tell",
        "record results of experiments done by hand",
        "Record results: a table, or one trial. In a table, rows without a result are left for later, the word\n"
        "failed (and a reason) stands for an experiment that gave none, and a row without a trial number is an\n"
        "experiment of your own. Nothing is recorded unless all rows are right.",
        "  sumbo tell wing.toml batch.csv\n  sumbo tell wing.toml --trial 3 0.31\n"
        "  sumbo tell wing.toml --trial 3 0.31 --constraint stress=240 --std 0.05\n"
        '  sumbo tell wing.toml --trial 4 --failed "the glue came off"',
    )
    tell.add_argument("result", metavar="FILE.csv | VALUE", nargs="?", help="the table; with --trial, the value")
    tell.add_argument("--trial", type=_number, metavar="N", help="the trial that the value is of")
    tell.add_argument("--failed", nargs="?", const=BY_HAND, metavar="REASON", help="the trial gave no value")
    _values(tell, "--constraint", "with --trial, what was measured for a constraint; in a table it has a column")
    tell.add_argument("--std", metavar="STD", help="with --trial, the known standard deviation of the value's noise")
    _flag(tell, "--replace", "correct results that were told before")
    _flag(tell, "--own", "take all rows for experiments of your own")
    cancel = add(
        "cancel",
        "take experiments back that will not be done",
        "Take trials back that were handed out, or wait for a process. They count neither as a result nor as a\n"
        "failure, and their points may be suggested again.",
        "  sumbo cancel wing.toml 12\n  sumbo cancel wing.toml 12 13 14",
    )
    cancel.add_argument("trials", type=_number, metavar="N", nargs="+", help="their numbers")


def _looking(add: Add) -> None:
    best = add(
        "best",
        "the best parameters so far",
        "Show the best trial that keeps all constraints. Exits with 1 if there is none yet. With --denoised, the\n"
        "point where the expected value is best, by all that was told: where values have noise, the best one told may\n"
        "be a lucky draw.",
        "  sumbo best wing.toml\n  sumbo best wing.toml --json | jq .params\n"
        "  sumbo best wing.toml --denoised --context wind=12",
    )
    _flag(best, "--denoised", "the point to use, with what is expected there (takes some seconds)")
    _values(best, "--context", "with --denoised, what the world sets")
    show = add(
        "show",
        "how the study stands",
        "Show how many trials are done, failed, running and open, why trials failed, and the last few.",
        "  sumbo show wing.toml\n  sumbo show wing.toml -n 50\n  sumbo show wing.toml --learned",
    )
    show.add_argument("-n", type=_count, metavar="N", default=10, help="how many of the last trials (default 10)")
    _flag(show, "--learned", "what interacts and what matters, too (takes some seconds)")
    export = add(
        "export",
        "all trials as a table",
        "Write all trials to a file, as its name ends: .csv, .json, .jsonl (a line for each trial), .parquet (needs\n"
        "pip install 'sumbo[parquet]') or .xlsx (needs pip install 'sumbo[xlsx]'). With --optuna, as a study that\n"
        "optuna-dashboard shows (needs pip install 'sumbo[optuna]').",
        "  sumbo export wing.toml > wing.csv\n  sumbo export wing.toml --out wing.xlsx\n"
        "  sumbo export wing.toml --optuna wing_optuna.db",
    )
    where = export.add_mutually_exclusive_group()
    where.add_argument("--out", metavar="FILE", help="where to (default: standard output, as CSV)")
    where.add_argument("--optuna", metavar="FILE.db", help="write an Optuna study to this new SQLite file instead")
    report = add(
        "report",
        "a page that shows what the search learned",
        "Write one HTML page that needs nothing else: the search, which parameters interact, what each does, and how\n"
        "far to trust that. Several studies are compared. With --storage, studies of any Optuna storage by name.",
        "  sumbo report wing.toml -o wing.html\n  sumbo report wing.toml glider.toml -o both.html\n"
        "  sumbo report wing.toml -o wing.html --watch\n  sumbo report --storage sqlite:///tuning.db tuning -o t.html",
        study=False,
    )
    report.add_argument("studies", metavar="STUDY.toml", nargs="+", help="study files; with --storage, names")
    report.add_argument("-o", "--out", metavar="FILE", default="report.html", help="where to (default: report.html)")
    report.add_argument("--storage", metavar="URL", help="take studies from this Optuna storage (needs Optuna)")
    _flag(report, "--watch", "make the page again whenever there is something new")


def _reproduce(add: Add) -> None:
    command = add(
        "reproduce",
        "the experiments of the Add-GP-UCB paper, and what became of its claims",
        "Run the paper's experiments and write figures, the runs, and a page with every claim, what was measured and\n"
        "whether it held. Finished runs are kept: stop it with Ctrl-C, and the same command goes on. astro and faces\n"
        "need packages of their own: pip install 'sumbo[plot,astro,faces]'.",
        "  sumbo reproduce all --quick\n  sumbo reproduce synthetic --full --runs 10 --configuration 24,6,4\n"
        "  sumbo reproduce astro --lrg-data sdss_lrg_dr4",
        study=False,
    )
    command.add_argument(
        "experiment", choices=(*_OPTIMISED, "rates", "all"), nargs="?", default="all", help="which one (default all)"
    )
    size = command.add_mutually_exclusive_group()
    _flag(size, "--quick", "a few runs, in minutes (default)")
    _flag(size, "--full", "the paper's sizes and numbers of runs: days on one core")
    command.add_argument("--out", metavar="DIR", default="reproduced", help="where to (default reproduced)")
    command.add_argument("--jobs", type=_count, metavar="N", help="runs at a time (default: number of cores)")
    for name, metavar, what in (("runs", "N", "runs of each method"), ("budget", "T", "evaluations of each run")):
        command.add_argument(
            f"--{name}",
            type=_of_experiment,
            action="append",
            metavar=metavar,
            help=f"{what}, instead of the size's; astro={metavar} for one experiment, may be given several times",
        )
    command.add_argument("--seed", type=_number, metavar="S", default=0, help="of the first run (default 0)")
    command.add_argument(
        "--configuration",
        type=_configuration,
        action="append",
        metavar="D,d,M",
        help="of the synthetic functions, instead of the size's; may be given several times",
    )
    command.add_argument("--lrg-data", metavar="DIR", help="folder with the published band powers, for astro")
    command.add_argument("--faces", metavar="DIR", help="folder with pictures of faces of your own")
    command.add_argument("--nonfaces", metavar="DIR", help="folder with pictures of your own that show none")
    command.add_argument("--cascade", metavar="FILE", help="another cascade file of OpenCV's")


def _others(add: Add) -> None:
    add(
        "replay",
        "prove that the search can be repeated",
        "Make every suggestion of the study again, each from what was known when it was made, and compare it with the\n"
        "one on record, bit for bit, however many workers and machines there were. Evaluates nothing, changes\n"
        "nothing, and takes as long as the suggestions took. Exits with 1 if one differs.",
        "  sumbo replay wing.toml",
    )
    demo = add(
        "demo",
        "optimise a 20-dimensional problem with hidden groups",
        "Maximise a function of 20 parameters that is a sum of functions of hidden groups, show the groups that were\n"
        "learned beside the true ones, and what random search finds with the same budget.",
        "  sumbo demo\n  sumbo demo --seed 2",
        study=False,
    )
    demo.add_argument("--seed", type=int, default=0, help="which problem, and which run of it (default 0)")
    demo.add_argument("--budget", type=int, default=400, help="number of evaluations (default 400)")
    completion = add(
        "completion",
        "let the shell complete sumbo's commands",
        "Print a script that teaches a shell to complete commands, options and study files.",
        "  sumbo completion bash > ~/.local/share/bash-completion/completions/sumbo\n"
        "  sumbo completion zsh > ~/.zfunc/_sumbo        (with fpath+=~/.zfunc before compinit)\n"
        "  sumbo completion fish > ~/.config/fish/completions/sumbo.fish",
        study=False,
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))


def _whole(text: str, least: int) -> int:
    if not text.isdecimal() or not least <= int(text) < 2**63:
        raise argparse.ArgumentTypeError(f"expected a whole number from {least} up, got {text!r}")
    return int(text)


_count, _number = partial(_whole, least=1), partial(_whole, least=0)


def _configuration(text: str) -> tuple[int, ...]:
    sizes = tuple(_count(word) for word in text.split(","))
    if len(sizes) != 3:
        raise argparse.ArgumentTypeError(f"expected three numbers as in 24,6,4, got {text!r}")
    return sizes


def _of_experiment(text: str) -> tuple[str, int]:
    """A number for an experiment, as in astro=300, or for all of them, under an empty name."""
    name, _, number = text.rpartition("=")
    if "=" in text and name not in _OPTIMISED:
        raise argparse.ArgumentTypeError(f"expected 300 or, of {', '.join(_OPTIMISED)}, astro=300; got {text!r}")
    return name, _count(number)


Options = list[tuple[str, str]]  # with their help


def completion(options: argparse.Namespace) -> int:
    """Print the script for bash, zsh or fish, made from the parser, so that it cannot fall behind."""
    from importlib import resources

    subparsers = next(a for a in make_parser()._actions if isinstance(a, argparse._SubParsersAction))
    entry = {"bash": _bash, "zsh": _zsh, "fish": _fish}[options.shell]
    names, cases = [], []
    for about, command in zip(subparsers._choices_actions, subparsers.choices.values(), strict=True):
        flags = [(o, a.help or "") for a in command._actions for o in a.option_strings]
        name, case = entry(about.dest, about.help or "", flags)
        names.append(name)
        cases.append(case)
    script = resources.files("sumbo.cli").joinpath(f"completion.{options.shell}").read_text(encoding="utf-8")
    script = script.replace("@NAMES@", " ".join(names)).replace("@CASES@", "\n".join(cases))
    sys.stdout.write(json.dumps({"shell": options.shell, "script": script}) + "\n" if options.json else script)
    return 0


def _bash(name: str, summary: str, options: Options) -> tuple[str, str]:
    return name, f'        {name}) words="{" ".join(option for option, _ in options)}" ;;'


def _zsh(name: str, summary: str, options: Options) -> tuple[str, str]:
    shown = " ".join(_quoted(f"{option}[{text}]".replace(":", " ")) for option, text in options)
    return _quoted(f"{name}:{summary}"), f"        {name}) options=({shown}) ;;"


def _fish(name: str, summary: str, options: Options) -> tuple[str, str]:
    lines = [f"complete -c sumbo -n __fish_use_subcommand -a {name} -d {_quoted(summary)}"]
    here = f"complete -c sumbo -n '__fish_seen_subcommand_from {name}'"
    for option, text in options:
        flag = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
        lines.append(f"{here} {flag} -d {_quoted(text)}")
    lines.append(f"{here} -a 'bash zsh fish'" if name == "completion" else f"{here} -F")
    return name, "\n".join(lines)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "") + "'"
