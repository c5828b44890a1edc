"""What is stored, for people and for tables."""

import csv
import io
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from sumbo.errors import NotFittedError, SettingError
from sumbo.studies.file import StudyFile
from sumbo.studies.programs import as_text
from sumbo.studies.store import DETAIL, REASON, Store, is_open, shown

_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDTH = 60  # of a line of blocks
_ROWS = 12  # of a table of what was learned

_STATES = {
    TrialState.COMPLETE: "done",
    TrialState.FAIL: "failed",
    TrialState.PRUNED: "failed",
    TrialState.RUNNING: "running",
    TrialState.WAITING: "waiting",
}


def record(study: StudyFile, trial: FrozenTrial) -> dict[str, Any]:
    """A trial as plain data."""
    ended, started = trial.datetime_complete, trial.datetime_start
    return {
        "trial": trial.number,
        "params": {name: trial.params.get(name) for name in study.space},
        "value": trial.value if trial.state == TrialState.COMPLETE else None,
        "state": "open" if is_open(trial) else _STATES[trial.state],
        "reason": trial.user_attrs.get(REASON),
        "detail": trial.user_attrs.get(DETAIL),
        "started": None if started is None else started.isoformat(timespec="seconds"),
        "seconds": None if ended is None or started is None else (ended - started).total_seconds(),
    }


def best_text(store: Store) -> str:
    """The best trial, a line for each parameter."""
    trial = store.best()
    if trial is None:
        return "no trial has a value yet\n"
    width = max(len(name) for name in store.study.space)
    lines = [f"trial {trial.number}: {trial.value!r}"]
    lines += [f"  {name:<{width}} = {as_text(trial.params.get(name))}" for name in store.study.space]
    return "\n".join(lines) + "\n"


def overview(store: Store, last: int) -> str:
    """How the study stands."""
    study, counts, trials = store.study, store.counts(), store.trials()
    lines = [
        f"{study.name}: {study.goal}, {study.space.dim} parameters, method {study.method}",
        f"stored in {shown(study.storage)}",
        f"{counts.finished} of {study.budget or 'any number of'} trials finished: {counts.done} done, "
        f"{counts.failed} failed; {counts.running} running, {counts.open} open (by hand), {counts.waiting} waiting",
        "",
        f"best {best_text(store)}".rstrip(),
    ]
    curve = sparkline(trials, study.goal)
    if curve and _can_write(curve):
        lines += [
            "",
            f"best so far, the lower the better: {curve}" if study.goal == "minimize" else f"best so far: {curve}",
        ]
    reasons = Counter(t.user_attrs.get(REASON) or "no reason on record" for t in trials if t.state == TrialState.FAIL)
    if reasons:
        lines += ["", "failures:", *(f"  {n} x {reason}" for reason, n in reasons.most_common(5))]
    opened = [str(trial.number) for trial in trials if is_open(trial)]
    if opened:
        lines += ["", f"open, to be told: {', '.join(opened)}"]
    lines += ["", f"last {min(last, len(trials))} trials:", *(_line(record(study, t)) for t in trials[-last:])]
    return "\n".join(lines) + "\n"


def _can_write(text: str) -> bool:
    """Not every terminal has blocks."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def sparkline(trials: Sequence[FrozenTrial], goal: str) -> str:
    """The best value so far as a line of blocks, from the first value to the last; empty where it never changed."""
    sign, best = (1.0 if goal == "maximize" else -1.0), list[float]()
    for trial in trials:
        if trial.state == TrialState.COMPLETE and trial.value is not None:
            value = sign * trial.value
            best.append(max(value, best[-1]) if best else value)
    if not best or best[-1] == best[0]:
        return ""
    some = best if len(best) <= _WIDTH else [best[round(k * (len(best) - 1) / (_WIDTH - 1))] for k in range(_WIDTH)]
    low, high = sorted((sign * best[0], sign * best[-1]))
    return "".join(_BLOCKS[round((sign * value - low) / (high - low) * (len(_BLOCKS) - 1))] for value in some)


@dataclass(frozen=True)
class Learned:
    """What a study says of its parameters; or why it says nothing."""

    silence: str | None
    shares: tuple[tuple[str, float, float], ...] = ()
    groups: tuple[tuple[str, float, float], ...] = ()
    pairs: tuple[tuple[str, str, float], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"silence": self.silence, "shares": self.shares, "groups": self.groups, "interactions": self.pairs}


def learned(store: Store) -> Learned:
    """Shares of variance and interactions, as the report has them."""
    from sumbo.report.stored import from_store  # compiled code, which other commands do not need

    view = from_store(store)
    if view.silence is not None:
        return Learned(view.silence)
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


def show_overview(store: Store, last: int, found: Learned | None) -> None:
    """Print how the study stands and, where it was asked for, what was learned."""
    sys.stdout.write(overview(store, last))
    if found is None:
        return
    if found.silence is not None:
        sys.stdout.write(f"\nlearned: {found.silence}\n")
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
    why = f" ({row['reason']})" if row["reason"] else ""
    return f"  {row['trial']:>5}  {what}{why}"


def as_csv(study: StudyFile, records: Sequence[dict[str, Any]]) -> str:
    """All trials as a table that `sumbo tell --own` can read again."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    rest = ("state", "reason", "started", "seconds")
    table.writerow(["trial", *study.space.names, study.value_column, *rest])
    for row in records:
        params = ["" if row["params"][name] is None else as_text(row["params"][name]) for name in study.space]
        failed = "failed" if row["state"] == "failed" else ""
        value = failed if row["value"] is None else repr(row["value"])
        table.writerow([row["trial"], *params, value, *("" if row[key] is None else row[key] for key in rest)])
    return out.getvalue()


def as_parquet(study: StudyFile, records: Sequence[dict[str, Any]]) -> bytes:
    """The same as Parquet, with types.

    Raises:
        SettingError: pyarrow is not installed.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise SettingError("Parquet needs pyarrow; pip install pyarrow, or give a file that ends in .csv") from None
    columns: dict[str, list[Any]] = {"trial": [row["trial"] for row in records]}
    for name in study.space:
        values = [row["params"][name] for row in records]
        mixed = len({type(value) for value in values if value is not None}) > 1
        columns[name] = [None if v is None else as_text(v) for v in values] if mixed else values
    columns[study.value_column] = [row["value"] for row in records]
    for key in ("state", "reason", "started", "seconds"):
        columns[key] = [row[key] for row in records]
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), buffer)
    return buffer.getvalue()
