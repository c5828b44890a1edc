"""Which errors of sumbo no test has raised: `make coverage` ends with this list.

A message that nobody has seen may hold a mistake of its own, and then a user meets a traceback in its place.
"""

import ast
import sys
from pathlib import Path

import sumbo
from sumbo import errors

HOME = Path(sumbo.__file__).parent
OURS = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.SumboError)}

# What no test can bring about on a machine that has all packages and is in good health: (file, part of the message).
# Each has its reason.
OUT_OF_REACH: dict[tuple[str, str], str] = {}


def raised(source: str) -> list[tuple[int, str]]:
    """The line and the text of every error of ours that a source raises, also by a function that makes it."""
    tree = ast.parse(source)
    makers = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and isinstance(node.returns, ast.Name) and node.returns.id in OURS
    }
    return sorted(
        (node.lineno, ast.unparse(node.exc))
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and isinstance(node.exc.func, ast.Name)
        and node.exc.func.id in OURS | makers
    )


def all_raised() -> dict[tuple[str, int], str]:
    """The same for all of sumbo, by file and line."""
    found = {}
    for path in sorted(HOME.rglob("*.py")):
        for line, text in raised(path.read_text()):
            found[path.relative_to(HOME).as_posix(), line] = text
    return found


def main() -> int:
    """Compare with the lines that coverage has seen."""
    from coverage import CoverageData

    data = CoverageData()
    data.read()
    lines = {path: set(data.lines(path) or ()) for path in data.measured_files()}
    nearest_untried = {
        (file, line): text
        for (file, line), text in all_raised().items()
        if line not in lines.get(str(HOME / file), set())
        and not any(file == where and part in text for where, part in OUT_OF_REACH)
    }
    for (file, line), text in nearest_untried.items():
        sys.stdout.write(f"src/sumbo/{file}:{line}: no test raises {text:.150}\n")
    sys.stdout.write(f"{len(all_raised())} errors, {len(nearest_untried)} that no test raises\n")
    return 1 if nearest_untried else 0


if __name__ == "__main__":
    sys.exit(main())
