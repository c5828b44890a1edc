"""Many processes on one study, many stored trials, many evaluations in one process: is it right, how fast, how large?

    python benchmarks/load.py                          # everything; hours on a busy machine
    python benchmarks/load.py --trials 1000 --stored 10000 --evaluations 500

Three parts. `shared`: 50 processes on PostgreSQL and 8 on SQLite ask and tell one study until its budget is spent, with
points at random and an objective that costs nothing, so that the storage is all there is to wait for. `stored`: a study
that is opened with so many trials in it. `long`: one `Optimizer` in one process. Writes docs/load.jsonl and the tables
in docs/reliability.md, and goes on where it was stopped.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import json
import multiprocessing
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pages import put_between
from postgresql import Server, is_installed
from runs import STOPPED, Run, Work, complete, read_lines

DOCS = Path(__file__).parent.parent / "docs"
BEGIN, END = "<!-- tables of load: made by `make load` -->", "<!-- end of the tables of load -->"

PROCESSES = {"postgresql": 50, "sqlite": 8}
TRIALS, STORED, EVALUATIONS = 5000, 100_000, 2000
DIM = 10
ASKS = 20  # measured at a study with many trials
SILENT = 600.0  # seconds without a sign of any process after which they count as standing still

STUDY = """name = "load"
goal = "minimize"
seed = 1
method = "{method}"
storage = "{storage}"
budget = {budget}
"""
PARAMETER = '[space.x{i}]\ntype = "float"\nlow = 0.0\nhigh = 1.0\n'


class Task(NamedTuple):
    """One measurement; also the key under which it is found again. Size: trials told, stored, or evaluated."""

    part: str
    storage: str
    processes: int
    size: int


def wanted(trials: int, stored: int, evaluations: int) -> list[Task]:
    kinds = [kind for kind in PROCESSES if kind == "sqlite" or is_installed()]
    shared = [Task("shared", kind, PROCESSES[kind], trials) for kind in kinds]
    return [*shared, Task("stored", "sqlite", 1, stored), Task("long", "memory", 1, evaluations)]


def run(task: Task) -> Run:
    """One measurement, in a process of its own where memory counts."""
    load = os.getloadavg()[0]
    if task.part == "shared":
        found = shared(task)
    else:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            found = pool.submit(stored if task.part == "stored" else long, task.size).result()
    return {**task._asdict(), **found, "load": round(load, 1), "cores": os.cpu_count()}


# --- many processes on one study ---


def shared(task: Task) -> Run:
    """Each process asks and tells until the budget is spent; then what they told is compared with what is stored."""
    from sumbo.study.files.toml import load
    from sumbo.study.stored import StoredStudy

    with place(task) as (path, server):
        study = StoredStudy.open(load(path), create=True)  # the tables are there
        assert study.optimizer.budget == task.size  # what it imports is loaded once for all of them
        study.ledger.engine.dispose()
        context = multiprocessing.get_context("fork")
        said: Any = context.Queue()
        began = time.perf_counter()
        processes = [context.Process(target=ask_and_tell, args=(path, said)) for _ in range(task.processes)]
        for process in processes:
            process.start()
        try:
            answers = [said.get(timeout=SILENT) for _ in processes]
        finally:
            for process in processes:
                process.kill() if sys.exc_info()[0] else process.join()
        seconds = time.perf_counter() - began
        study = StoredStudy.open(load(path), create=False)
        return {
            **compared(answers, study.records, task.size),
            **figures(answers, task, seconds),
            "deadlocks": deadlocks(server),
        }


def ask_and_tell(path: Path, said: Any) -> None:
    """One process: (number, value) of each trial that it told, seconds of each ask, and the error that ended it."""
    from sumbo.study.files.toml import load
    from sumbo.study.stored import StoredStudy

    told: list[tuple[int, float]] = []
    seconds: list[float] = []
    error = None
    try:
        study = StoredStudy.open(load(path), create=True)
        while True:
            began = time.perf_counter()
            record = ask(study)
            if record is None:
                break
            seconds.append(time.perf_counter() - began)
            value = sum(record.params.values())
            assert tell(study, record, value)
            told.append((record.number, value))
    except Exception as problem:
        error = f"{type(problem).__name__}: {problem}"[:500]
    said.put((told, seconds, error))


def ask(study: Any) -> Any:
    """The next trial, as `sumbo run` gets it; None if the budget is spent."""
    from sumbo.methods import Deadline

    budget = study.file.budget
    return study.ledger.claim(budget) or study.optimizer._ask(Deadline(), lease=study.ledger.lease, limit=budget)


def tell(study: Any, record: Any, value: float) -> bool:
    from sumbo.executors import EvaluationResult

    return study.ledger.tell(record.number, EvaluationResult(value), study.ledger.lease)


def compared(answers: list[Any], records: list[Any], size: int) -> Run:
    """How many told values are missing, twice there, or others than told."""
    told = [pair for pairs, _, _ in answers for pair in pairs]
    stored_ = {record.number: record for record in records}
    right = [n for n, value in told if n in stored_ and stored_[n].value == value == sum(stored_[n].params.values())]
    points = {record.text for record in records}
    return {
        "told": len(told),
        "lost": len(told) - len(right),
        "doubled": len(told) - len(dict(told)) + len(stored_) - len(points),
        "unfinished": sum(record.state not in ("done", "failed") for record in records),
        "beyond_budget": len(stored_) - size,
        "errors": [error for *_, error in answers if error],
    }


def figures(answers: list[Any], task: Task, seconds: float) -> Run:
    asks = [second for _, times, _ in answers for second in times]
    return {
        "seconds": round(seconds, 1),
        "trials_per_second": round(task.size / seconds, 2),
        "median_ask": round(statistics.median(asks), 3),
        "slowest_ask": round(max(asks), 2),
        "idle_processes": sum(not pairs for pairs, _, _ in answers),
    }


def deadlocks(server: Server | None) -> int:
    """How many the server had to resolve. SQLite has a single lock, and so none."""
    if server is None:
        return 0
    import psycopg

    with psycopg.connect(server.url) as connection:
        row = connection.execute("SELECT sum(deadlocks) FROM pg_stat_database").fetchone()
        return int(row[0]) if row else 0


@contextmanager
def place(task: Task) -> Iterator[tuple[Path, Server | None]]:
    """A study file, and the server that its storage needs."""
    with tempfile.TemporaryDirectory(prefix="sumbo-load-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.joinpath("server").mkdir()
        folder.chmod(0o755)
        server = Server(folder / "server", "max_connections=200") if task.storage == "postgresql" else None
        if server is not None:
            server.start()
        try:
            storage = f"sqlite:///{folder}/study.db" if server is None else server.url
            yield write_study(folder, storage, task.size), server
        finally:
            if server is not None:
                server.end(signal.SIGINT)


def write_study(folder: Path, storage: str, budget: int) -> Path:
    path = folder / "study.toml"
    space = "".join(PARAMETER.format(i=i) for i in range(DIM))
    path.write_text(STUDY.format(method="random", storage=storage, budget=budget) + space)
    return path


# --- many stored trials ---


def stored(size: int) -> Run:
    """Open a study with so many finished trials; ask and tell a few more. Seconds of processor time, megabytes."""
    from sumbo.study.files.toml import load
    from sumbo.study.stored import StoredStudy

    with tempfile.TemporaryDirectory(prefix="sumbo-load-", ignore_cleanup_errors=True) as name:
        path = write_study(Path(name), f"sqlite:///{name}/study.db", 10 * size)
        fill(StoredStudy.open(load(path), create=True), size)
        before, began = memory(), time.process_time()
        study = StoredStudy.open(load(path), create=True)
        opened = time.process_time() - began
        assert study.optimizer.budget == 10 * size  # imports compiled code, for a second
        seconds = []
        for _ in range(ASKS):
            began = time.process_time()
            record = ask(study)
            seconds.append(time.process_time() - began)
            assert record is not None
            assert tell(study, record, 1.0)
        return {
            "open": round(opened, 2),
            "first_ask": round(seconds[0], 6),
            "median_ask": round(statistics.median(seconds[1:]), 6),
            "slowest_ask": round(max(seconds[1:]), 6),
            "megabytes": round(memory() - before),
            "megabytes_of_file": round((Path(name) / "study.db").stat().st_size / 2**20),
        }


def fill(study: Any, size: int) -> None:
    """Finished trials, straight into the tables: telling them one by one would take the longest time of all."""
    import sqlalchemy

    from sumbo.study import storage

    rng, ledger, names = np.random.default_rng(0), study.ledger, list(study.file.space)
    same = {"study_id": ledger.study_id, "state": "done", "signature": study.optimizer._signature, "lost": 0}
    same |= {"suggest_seconds": 0.001, "seconds": 1.0, "started": time.time(), "ended": time.time()}
    for first in range(0, size, 5000):
        numbers = range(first, min(first + 5000, size))
        rows = [
            {
                **same,
                "number": n,
                "asked": 2 * n + 1,
                "seen": 2 * n,
                "told": 2 * n + 2,
                "changed": 2 * n + 2,
                "params": json.dumps(dict(zip(names, point.tolist(), strict=True))),
                "unit": point.tobytes(),
                "value": float(point.sum()),
            }
            for n, point in zip(numbers, rng.random((len(numbers), DIM)), strict=True)
        ]
        with ledger.engine.begin() as connection:
            connection.execute(sqlalchemy.insert(storage.trials), rows)
            connection.execute(sqlalchemy.update(storage.studies).values(sequence=2 * numbers[-1] + 2))


# --- many evaluations in one process ---


def long(size: int) -> Run:
    """Ask and tell so often; seconds of processor time of each ask, and memory at a quarter, half and the end."""
    import sumbo

    opt = sumbo.Optimizer([(0.0, 1.0)] * DIM, seed=0, budget=size)
    seconds, megabytes = [], {}
    for number in range(size):
        began = time.process_time()
        trial = opt.ask()
        seconds.append(time.process_time() - began)
        opt.tell(trial, float(np.sum((trial.x - 0.3) ** 2) + np.prod(np.sin(6.0 * trial.x[:2]))))
        if number + 1 in (size // 4, size // 2, size):
            megabytes[str(number + 1)] = round(memory())
    late = seconds[size // 4 :]  # by then the first compilations are over
    return {
        "megabytes": megabytes,
        "median_ask": round(statistics.median(seconds), 3),
        "late_median_ask": round(statistics.median(late), 3),
        "slowest_ask": round(max(seconds), 3),
        "slowest_at": int(np.argmax(seconds)),
        "late_slowest_ask": round(max(late), 3),
        "seconds": round(sum(seconds), 1),
    }


def memory() -> float:
    """Megabytes of this process that are in use."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1]) / 1024


# --- the tables ---


def tables(lines: list[Run]) -> str:
    """One for each part that was measured."""
    columns = {"shared": SHARED_COLUMNS, "stored": STORED_COLUMNS, "long": LONG_COLUMNS}
    by_part = {part: [line for line in lines if line["part"] == part] for part in columns}
    return "\n\n".join(markdown(found, columns[part]) for part, found in by_part.items() if found)


SHARED_COLUMNS = {
    "storage": "storage",
    "processes": "processes",
    "told": "told",
    "lost": "lost",
    "doubled": "doubled",
    "beyond_budget": "beyond the budget",
    "deadlocks": "deadlocks",
    "errors": "errors",
    "trials_per_second": "trials/s",
    "median_ask": "median ask, s",
    "slowest_ask": "slowest ask, s",
}
STORED_COLUMNS = {
    "size": "stored trials",
    "open": "opening, s",
    "first_ask": "first ask, s",
    "median_ask": "median ask, s",
    "slowest_ask": "slowest ask, s",
    "megabytes": "memory, MB",
    "megabytes_of_file": "file, MB",
}
LONG_COLUMNS = {
    "size": "evaluations",
    "megabytes": "memory at, MB",
    "median_ask": "median ask, s",
    "late_median_ask": "after the first quarter, s",
    "slowest_ask": "slowest ask, s",
    "slowest_at": "that was trial",
    "late_slowest_ask": "slowest after the first quarter, s",
}


def markdown(lines: list[Run], columns: dict[str, str]) -> str:
    rows = [f"| {' | '.join(columns.values())} |", f"|{'---|' * len(columns)}"]
    return "\n".join([*rows, *(f"| {' | '.join(cell(line[name]) for name in columns)} |" for line in lines)])


def cell(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {entry}" for key, entry in value.items())
    return str(len(value)) if isinstance(value, list) else str(value)


def in_short(line: Run) -> str:
    return ", ".join(f"{name} {cell(value)}" for name, value in line.items() if name not in Task._fields)


def warm_up() -> None:
    """Nothing: what is measured imports what it needs."""


def task_of(line: Run) -> Task:
    return Task(*(line[name] for name in Task._fields))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=TRIALS, help="of a study that processes share")
    parser.add_argument("--stored", type=int, default=STORED, help="trials of a study that is opened")
    parser.add_argument("--evaluations", type=int, default=EVALUATIONS, help="in one process")
    parser.add_argument(
        "--parts", nargs="+", choices=("shared", "stored", "long"), default=["shared", "stored", "long"]
    )
    parser.add_argument("--out", type=Path, default=DOCS / "load.jsonl")
    parser.add_argument("--page", type=Path, default=DOCS / "reliability.md")
    options = parser.parse_args()
    tasks = wanted(options.trials, options.stored, options.evaluations)
    tasks = [task for task in tasks if task.part in options.parts]
    work = Work(run, warm_up, task_of, lambda task: " ".join(map(str, task)), in_short)
    try:
        failed = complete(work, tasks, read_lines(options.out, task_of), options.out, 1)
    except KeyboardInterrupt:
        return STOPPED
    lines = list(read_lines(options.out, task_of).values())
    put_between(options.page, BEGIN, END, tables(lines))
    wrong = sum(line[name] for line in lines if line["part"] == "shared" for name in ("lost", "doubled", "deadlocks"))
    return 1 if failed or wrong or any(line.get("errors") for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
