"""What is stored, for people and for tables."""

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sumbo._redaction import safe, shown
from sumbo.errors import NotFittedError
from sumbo.executors.objectives import as_text
from sumbo.space import Space
from sumbo.study.files.toml import StudyFile
from sumbo.study.ledger import Record
from sumbo.study.stored import StoredStudy

_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDTH = 60  # of a line of blocks
_ROWS = 12  # of a table of what was learned


def record(file: StudyFile, trial: Record) -> dict[str, Any]:
    """A trial as plain data."""
    params, said = trial.params, {"reason": trial.reason, "detail": trial.detail}
    return {
        "trial": trial.number,
        "params": {name: params.get(name) for name in file.space},
        "value": trial.value,
        "state": trial.state,
        **{key: _encodable(text and safe(text, file.storage)) for key, text in said.items()},
        "started": None if trial.started is None else _moment(trial.started),
        "seconds": trial.seconds,
    }


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).isoformat(timespec="seconds")


def _encodable(text: str | None) -> str | None:
    """Words about a failure may hold bytes that were no text, such as those of a file name."""
    return None if text is None else text.encode("utf-8", "backslashreplace").decode("utf-8")


def one_line(text: str) -> str:
    """A text for a line on a terminal, which control characters would break, or worse."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def best_text(study: StoredStudy) -> str:
    """The best trial, a line for each parameter."""
    trial = study.best()
    if trial is None:
        return "no trial has a value yet\n"
    values = trial.params
    params = {one_line(name): one_line(as_text(values.get(name))) for name in study.file.space}
    width = max(map(len, params))
    lines = [f"trial {trial.number}: {trial.value!r}", *(f"  {name:<{width}} = {v}" for name, v in params.items())]
    return "\n".join(lines) + "\n"


def overview(study: StoredStudy, last: int) -> str:
    """How the study stands."""
    file, counts, trials = study.file, study.counts(), study.records
    cancelled = f", {counts.cancelled} cancelled" if counts.cancelled else ""
    lines = [
        f"{one_line(file.name)}: {file.goal}, {file.space.dim} parameters, method {file.method}",
        f"stored in {shown(file.storage)}",
        f"{counts.finished} of {file.budget or 'any number of'} trials finished: {counts.done} done, "
        f"{counts.failed} failed; {counts.running} running, {counts.open} open (by hand), {counts.waiting} waiting"
        + cancelled,
        "",
        f"best {best_text(study)}".rstrip(),
    ]
    curve = sparkline(trials, file.goal)
    if curve and _can_write(curve):
        lines += [
            "",
            f"best so far, the lower the better: {curve}" if file.goal == "minimize" else f"best so far: {curve}",
        ]
    failed = [record(file, trial) for trial in trials if trial.state == "failed"]
    reasons = Counter(row["reason"] or "no reason on record" for row in failed)
    if reasons:
        lines += ["", "failures:", *(f"  {n} x {one_line(reason)}" for reason, n in reasons.most_common(5))]
    opened = [str(trial.number) for trial in trials if trial.state == "open"]
    if opened:
        lines += ["", f"open, to be told: {', '.join(opened)}"]
    lines += ["", f"last {min(last, len(trials))} trials:", *(_line(record(file, t)) for t in trials[-last:])]
    return "\n".join(lines) + "\n"


def _can_write(text: str) -> bool:
    """Not every terminal has blocks."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def sparkline(trials: Sequence[Record], goal: str) -> str:
    """The best value so far as a line of blocks, from the first value to the last; empty where it never changed."""
    sign, best = (1.0 if goal == "maximize" else -1.0), list[float]()
    for trial in trials:
        if trial.value is not None:
            value = sign * trial.value
            best.append(max(value, best[-1]) if best else value)
    if not best or best[-1] == best[0]:
        return ""
    some = best if len(best) <= _WIDTH else [best[round(k * (len(best) - 1) / (_WIDTH - 1))] for k in range(_WIDTH)]
    # A space knows where a value lies between two others, however far apart they are.
    between = Space.from_bounds([sorted((sign * best[0], sign * best[-1]))])
    places = [between.to_unit({"x0": sign * value})[0] for value in some]
    return "".join(_BLOCKS[round(place * (len(_BLOCKS) - 1))] for place in places)


@dataclass(frozen=True)
class Learned:
    """What a study says of its parameters; or why it says nothing."""

    unavailable_reason: str | None
    shares: tuple[tuple[str, float, float], ...] = ()
    groups: tuple[tuple[str, float, float], ...] = ()
    pairs: tuple[tuple[str, str, float], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "unavailable_reason": self.unavailable_reason,
            "shares": self.shares,
            "groups": self.groups,
            "interactions": self.pairs,
        }


def learned(study: StoredStudy) -> Learned:
    """Shares of variance and interactions, as the report has them."""
    from sumbo.insights.analysis import StudyAnalysis  # compiled code, which other commands do not need

    view = StudyAnalysis.of_stored(study)
    if view.unavailable_reason is not None:
        return Learned(view.unavailable_reason)
    try:
        found = view.importance
    except NotFittedError as error:
        return Learned(str(error))
    groups = [(", ".join(row.parameters), row.share, row.std) for row in found.groups]
    return Learned(
        None,
        tuple((row.parameters[0], row.share, row.std) for row in found.parameters),
        (("all together", found.all_together.share, found.all_together.std), *groups),
        tuple((row.first, row.second, row.probability) for row in view.interactions),
    )


def show_overview(study: StoredStudy, last: int, found: Learned | None) -> None:
    """Print how the study stands and, where it was asked for, what was learned."""
    sys.stdout.write(overview(study, last))
    if found is None:
        return
    if found.unavailable_reason is not None:
        sys.stdout.write(f"\nlearned: {found.unavailable_reason}\n")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    for title, rows in (("parameter", found.shares), ("group", found.groups)):
        table = Table(title, "share of variance", "", "plus or minus", box=None, pad_edge=False)
        for name, share, std in rows[:_ROWS]:
            # As text: a name in brackets is no style.
            bar = _BLOCKS[-1] if _can_write(_BLOCKS) else "#"
            table.add_row(Text(name, overflow="fold"), bar * round(30 * share), f"{share:.3f}", f"{std:.3f}")
        console.print("", table, sep="\n")
    table = Table("interacting", "probability", box=None, pad_edge=False)
    for first, second, probability in found.pairs[:_ROWS]:
        if probability >= 0.05:
            table.add_row(Text(f"{first}, {second}", overflow="fold"), f"{probability:.2f}")
    if table.row_count:
        console.print("", table, sep="\n")
    else:
        console.print("\nno two parameters are likely to interact")


def _line(row: dict[str, Any]) -> str:
    what = f"{row['value']:.6g}" if row["state"] == "done" else row["state"]
    why = f" ({one_line(row['reason'])})" if row["reason"] else ""
    return f"  {row['trial']:>5}  {what}{why}"
