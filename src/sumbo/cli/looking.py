"""What is stored, for people and for tables."""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from sumbo.errors import SettingError
from sumbo.studies.file import StudyFile
from sumbo.studies.programs import as_text
from sumbo.studies.store import DETAIL, REASON, Store, is_open, shown

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
    reasons = Counter(t.user_attrs.get(REASON) or "no reason on record" for t in trials if t.state == TrialState.FAIL)
    if reasons:
        lines += ["", "failures:", *(f"  {n} x {reason}" for reason, n in reasons.most_common(5))]
    opened = [str(trial.number) for trial in trials if is_open(trial)]
    if opened:
        lines += ["", f"open, to be told: {', '.join(opened)}"]
    lines += ["", f"last {min(last, len(trials))} trials:", *(_line(record(study, t)) for t in trials[-last:])]
    return "\n".join(lines) + "\n"


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
