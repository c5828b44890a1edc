"""The command line: parse, call, print. `sumbo --help` lists the exit codes."""

import argparse
import contextlib
import io
import json
import os
import sys
import traceback
from collections.abc import Sequence

from sumbo._redaction import safe
from sumbo.cli.parser import completion, parse
from sumbo.errors import ObjectiveError, SumboError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `sumbo`; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what a terminal has no letters for is shown by its code
            stream.reconfigure(errors="backslashreplace")
    options = parse(arguments)
    try:
        if options.command == "completion":
            command = completion
        else:
            from sumbo.cli import commands  # imports much: not for `--help`, and not for a shell that starts

            command = getattr(commands, options.command)
        code: int = command(options)
        sys.stdout.flush()  # here, where it can be said that the disk is full
        return code
    except SumboError as error:
        code = 3 if isinstance(error, ObjectiveError) else 1
        text = safe(error, *options.urls)  # what a file says is hidden where it is read
        sys.stderr.write(f"sumbo: {text}\n")
        if options.json:
            sys.stdout.write(json.dumps({"error": text, "exit_code": code}) + "\n")
        return code
    except KeyboardInterrupt:
        sys.stderr.write("sumbo: interrupted\n")
        return 130
    except BrokenPipeError:  # `sumbo export ... | head`
        sys.stderr.close()
        return 1
    except OSError as error:  # standard output on a full disk, above all
        place = error.filename or "standard output"
        text = f"sumbo: {place}: {error.strerror or error}; free some space, or write elsewhere\n"
        sys.stderr.write(safe(text, *_urls(options)))
        # What is left in the buffer goes nowhere: Python would try again at its end, and complain.
        with contextlib.suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        return 1
    except Exception:  # a mistake of ours: where it is helps, and a password does not
        sys.stderr.write(safe(traceback.format_exc(), *_urls(options)))
        return 1


def _urls(options: argparse.Namespace) -> list[str]:
    """What may hold a password, of the arguments and of the study files."""
    from sumbo.study.files.toml import urls_of

    paths = [getattr(options, "study", None), *getattr(options, "studies", ())]
    return [*options.urls, *(url for path in paths if path for url in urls_of(path))]
