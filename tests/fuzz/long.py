"""`make fuzz`: every property on many examples, in rounds, so that a run that was stopped goes on where it was.

A round is known by its number, which seeds it: a failure is found again by running that round alone, and rounds that
are done are not done twice. Failures are written down with the smallest example that hypothesis found.
"""

import argparse
import contextlib
import json
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from fuzz.properties import PROPERTIES, Property

ROUND = 250  # examples


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("fuzz.jsonl"), help="what was done; read when going on")
    parser.add_argument("--share", type=float, default=1.0, help="of the full number of examples")
    parser.add_argument("--only", default="", help="properties whose name contains this")
    parser.add_argument("--markdown", type=Path, help="write the table here as well")
    options = parser.parse_args()
    warnings.simplefilter("error")
    chosen = {name: p for name, p in PROPERTIES.items() if options.only in name}
    done = _read(options.out)
    for name, number, examples in _rounds(chosen, options.share):
        if (name, number) not in done:
            row = _run(chosen[name], number, examples) | {"property": name, "round": number}
            done[name, number] = row
            with options.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
            sys.stdout.write(f"{name}, round {number}: {row['examples']} examples, {row['seconds']:.0f} s\n")
            sys.stdout.flush()
    rows = [row for (name, _), row in done.items() if name in chosen]
    table = _table(rows)
    sys.stdout.write(table)
    if options.markdown:
        options.markdown.write_text(table)
    failures = [row for row in rows if row["failure"]]
    for row in failures:
        sys.stderr.write(f"\n{row['property']}, round {row['round']}:\n{row['failure']}\n")
    return 1 if failures else 0


def _rounds(chosen: dict[str, Property], share: float) -> Iterator[tuple[str, int, int]]:
    """All rounds, property by property in turn, so that a run cut short has seen something of each."""
    left = {name: max(1, round(share * p.many)) for name, p in chosen.items()}
    number = 0
    while any(left.values()):
        for name in chosen:
            if left[name]:
                examples = min(left[name], ROUND)
                left[name] -= examples
                yield name, number, examples
        number += 1


def _run(property_: Property, number: int, examples: int) -> dict[str, Any]:
    count = 0

    def counted(**example: Any) -> None:
        nonlocal count
        count += 1
        property_.check(**example)

    test = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )(seed(number)(given(**property_.examples)(counted)))
    started, failure = time.monotonic(), ""
    try:
        test()
    except Exception:
        failure = traceback.format_exc(limit=-6)
    return {"examples": count, "failure": failure, "seconds": round(time.monotonic() - started, 1)}


def _read(path: Path) -> dict[tuple[str, int], dict[str, Any]]:
    if not path.exists():
        return {}
    rows = []
    for line in path.read_text().splitlines():
        with contextlib.suppress(ValueError):  # cut off when it was stopped: that round is run again
            rows.append(json.loads(line))
    return {(row["property"], row["round"]): row for row in rows}


def _table(rows: list[dict[str, Any]]) -> str:
    lines = ["| property | examples | rounds with a failure | seconds |", "|---|---|---|---|"]
    names = list(dict.fromkeys(row["property"] for row in rows))
    for name, mine in [(n, [r for r in rows if r["property"] == n]) for n in names] + [("all", rows)]:
        examples, seconds = sum(r["examples"] for r in mine), sum(r["seconds"] for r in mine)
        lines.append(f"| {name} | {examples} | {sum(bool(r['failure']) for r in mine)} | {seconds:.0f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
