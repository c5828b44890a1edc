"""The command line: parse, call, print.

Exit codes: 0 done; 1 it cannot be done, and why is on standard error; 2 the arguments make no sense; 3 the objective
fails wherever it is evaluated; 130 interrupted.
"""

import contextlib
import json
import os
import sys
from collections.abc import Sequence

from sumbo.cli.parser import parse
from sumbo.errors import ObjectiveError, SumboError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `sumbo`; returns the exit code."""
    options = parse(arguments)
    as_json = getattr(options, "json", False)
    try:
        from sumbo.cli import commands  # what a command needs it imports itself, so that `--help` answers at once

        code = commands.COMMANDS[options.command](options)
        sys.stdout.flush()  # here, where it can be said that the disk is full
        return code
    except SumboError as error:
        code = 3 if isinstance(error, ObjectiveError) else 1
        sys.stderr.write(f"sumbo: {error}\n")
        if as_json:
            sys.stdout.write(json.dumps({"error": str(error), "exit_code": code}) + "\n")
        return code
    except KeyboardInterrupt:
        sys.stderr.write("sumbo: interrupted\n")
        return 130
    except BrokenPipeError:  # `sumbo export ... | head`
        sys.stderr.close()
        return 1
    except OSError as error:  # standard output on a full disk, above all
        place = error.filename or "standard output"
        sys.stderr.write(f"sumbo: {place}: {error.strerror or error}; free some space, or write elsewhere\n")
        _give_up_output()
        return 1


def _give_up_output() -> None:
    """What is left in the buffer goes nowhere: Python would try again at its end, and complain."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
