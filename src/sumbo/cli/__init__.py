"""The command line: parse, call, print.

Exit codes: 0 done; 1 it cannot be done, and why is on standard error; 2 the arguments make no sense; 3 the objective
fails wherever it is evaluated; 130 interrupted.
"""

import json
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

        return commands.COMMANDS[options.command](options)
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
