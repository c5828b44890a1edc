"""Is anything lost when processes are killed? `sumbo run` with two workers, killed by SIGKILL at random moments.

    python benchmarks/crash.py

Victims: the run itself, a worker, and the database: PostgreSQL's first process, one of its connections, or all of it by
an immediate shutdown. The run is started again, if it ended, and goes on with the same study, to be killed again; at
last it is let go on to its budget.

What counts: the objective writes each value to a file of its own before it returns it (evaluated). The run writes a
line for each trial after the storage has confirmed the value (told). A value between the two may be lost with its
process; a told one must be in the storage once, for ever. Writes docs/crash.jsonl and the table in docs/reliability.md,
and goes on where it was stopped.
"""

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pages import put_between
from postgresql import Server, children, is_installed
from runs import STOPPED, Run, Work, complete, read_lines

DOCS = Path(__file__).parent.parent / "docs"
BEGIN, END = "<!-- table of kills: made by `make crash` -->", "<!-- end of the table of kills -->"

RUN, WORKER = "the run", "a worker"
SERVER, CONNECTION, IMMEDIATE = "the server", "a connection", "immediate shutdown"
VICTIMS = {"sqlite": [RUN, RUN, WORKER], "postgresql": [RUN, RUN, WORKER, SERVER, CONNECTION, IMMEDIATE]}
ROUNDS, KILLS = 10, 10  # studies of each kind; kills in each
EVERY_MODEL = 5  # one study in so many is searched by a model, the others at random

STALLED = 120.0  # seconds without a told value, or without an end that is due, that count as standing still
AT_ONCE = 0.25  # share of kills at any moment after the start; the others once the run is at work
GO_ON = 10  # evaluations after the last kill

STUDY = """name = "crash"
goal = "minimize"
seed = {seed}
method = "{method}"
objective = "objective:f"
storage = "{storage}"
workers = 2
retries = 3
budget = 100000
[space.a]
type = "float"
low = 0.0
high = 1.0
[space.n]
type = "int"
low = 1
high = 9
"""
OBJECTIVE = """import os, time
def f(p):
    time.sleep(0.02 + 0.1 * p["a"])
    value = p["a"] * p["n"]
    file = os.open("evaluated", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{p['a']!r} {p['n']} {value!r}\\n".encode())
    os.fsync(file)
    os.close(file)
    return value
"""
TOLD = re.compile(r"sumbo: trial (\d+): (\S+) \(best .*/\d+\)")
FAULTS = ("lost", "doubled", "invented", "stuck", "stalled", "failed", "tracebacks", "left_behind")
COUNTED = ("told", "evaluated", *FAULTS)


class Task(NamedTuple):
    """A study to be killed so often; also the key under which a finished one is found again."""

    storage: str
    method: str
    seed: int
    kills: int


def wanted(rounds: int, kills: int) -> list[Task]:
    kinds = [kind for kind in VICTIMS if kind == "sqlite" or is_installed()]
    methods = ["auto" if seed % EVERY_MODEL == EVERY_MODEL - 1 else "random" for seed in range(rounds)]
    return [Task(kind, method, seed, kills) for seed, method in enumerate(methods) for kind in kinds]


# --- one study ---


def run(task: Task) -> Run:
    """Kill so often, then let it end; the line of the results. A process that is told to end leaves nothing running."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(STOPPED))
    try:
        return killed(task)
    except SystemExit:
        os._exit(STOPPED)  # a pool of processes would go on with the next task
    finally:
        signal.signal(signal.SIGTERM, before)


def killed(task: Task) -> Run:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sumbo-crash-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.joinpath("server").mkdir()
        folder.chmod(0o755)
        server = Server(folder / "server") if task.storage == "postgresql" else None
        if server is not None:
            server.start()
        crash = Crash(folder, task, server)
        try:
            crash.go()
        finally:
            crash.end()
            if server is not None:
                server.end(signal.SIGINT)
    found = {name: crash.counts[name] for name in COUNTED}
    seconds = round(time.monotonic() - began, 1)
    return {**task._asdict(), "victims": dict(crash.victims), **found, "seconds": seconds, "remarks": crash.remarks}


class Crash:
    """A study, the run that works on it, and what became of it."""

    def __init__(self, folder: Path, task: Task, server: Server | None) -> None:
        self.folder, self.task, self.server = folder, task, server
        self.rng = random.Random(f"{task}")
        self.victims: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.remarks: list[str] = []
        self.lives = 0
        self.process: subprocess.Popen[bytes] | None = None
        storage = server.url if server is not None else f"sqlite:///{folder}/study.db"
        self.path = folder / "study.toml"
        self.path.write_text(STUDY.format(seed=task.seed, method=task.method, storage=storage))
        folder.joinpath("objective.py").write_text(OBJECTIVE)

    def go(self) -> None:
        while self.victims.total() < self.task.kills - 1:
            self.kill(self.rng.choice(VICTIMS[self.task.storage]))
        self.begin()
        self.works()
        self.victims[RUN] += self.kill_run()
        self.finish()
        for log in self.logs():
            self.counts["tracebacks"] += log.read_text().count("Traceback")
        self.counts["told"], self.counts["evaluated"] = len(self.told()), len(self.evaluated())

    # --- the run ---

    def begin(self, *arguments: str) -> None:
        """See to it that a run is at work."""
        if self.process is not None and self.process.poll() is None:
            return
        self.end()
        self.lives += 1
        command = [sys.executable, "-m", "sumbo", "run", str(self.path), *arguments]
        with (self.folder / f"run-{self.lives:04}.log").open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def works(self) -> bool:
        """Wait until the run has told something more, or ended; afterwards no trial may be of a run before it."""
        before = len(self.told())
        if not self.until(lambda: len(self.told()) > before or self.has_ended(), "no value was told"):
            return False
        self.check(running=len(self.told()) > before)  # one that ended at once, for lack of a database, took none
        return not self.has_ended()

    def has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def until(self, condition: Callable[[], bool], what: str) -> bool:
        """Wait for something to be so. In vain: note where the run stands, and end it."""
        deadline = time.monotonic() + STALLED
        while not condition():
            if time.monotonic() > deadline:
                self.counts["stalled"] += 1
                self.remarks.append(f"{what} for {STALLED:.0f} s: {self.stacks()}")
                self.end()
                return False
            time.sleep(0.02)
        return True

    def stacks(self) -> str:
        """Where each thread of the run is, if py-spy is there to tell."""
        assert self.process is not None
        try:
            command = ["py-spy", "dump", "--pid", str(self.process.pid)]
            return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout[-3000:]
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    # --- killing ---

    def kill(self, victim: str) -> None:
        """Start a run if there is none, and kill the victim at a random moment."""
        fresh = self.has_ended()
        self.begin()
        if fresh and self.rng.random() < AT_ONCE:
            time.sleep(self.rng.uniform(0.0, 4.0))
        elif self.works():
            time.sleep(self.rng.uniform(0.0, 0.5))
        if self.has_ended() and victim in (RUN, WORKER):
            return
        hit = {RUN: self.kill_run, WORKER: self.kill_worker}.get(victim, lambda: self.kill_server(victim))()
        self.victims[victim] += hit

    def kill_run(self) -> bool:
        assert self.process is not None
        workers = children(self.process.pid)
        self.end()
        deadline = time.monotonic() + 20.0
        while any(map(is_running, workers)) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.counts["left_behind"] += sum(map(is_running, workers))
        self.check()
        return True

    def kill_worker(self) -> bool:
        assert self.process is not None
        workers = children(self.process.pid)
        if workers:
            os.kill(self.rng.choice(workers), signal.SIGKILL)
        return bool(workers)

    def kill_server(self, victim: str) -> bool:
        """The run may outlive it, if it was not just using it, or must end with an error."""
        assert self.server is not None
        if victim == CONNECTION:
            return self.server.kill_connection(self.rng.random())
        self.server.end(signal.SIGKILL if victim == SERVER else signal.SIGQUIT)
        time.sleep(self.rng.uniform(0.0, 1.0))
        self.server.start()
        self.check()
        return True

    # --- what is told, and what is there ---

    def logs(self) -> list[Path]:
        return sorted(self.folder.glob("run-*.log"))

    def told(self) -> list[tuple[int, float]]:
        """Each value that a run has said to be stored, as often as it was said."""
        lines = [line for log in self.logs() for line in log.read_text().splitlines()]
        return [(int(m[1]), float(m[2])) for line in lines if (m := TOLD.fullmatch(line.strip()))]

    def evaluated(self) -> list[tuple[float, ...]]:
        file = self.folder / "evaluated"
        lines = file.read_text().splitlines() if file.exists() else []
        return [tuple(map(float, line.split())) for line in lines]

    def check(self, *, running: bool = False) -> list[str]:
        """Compare what is stored with what was told and evaluated; the states of all trials.

        Args:
            running: the run at work has told a value: by now trials of earlier ones must be its own, or wait.
        """
        told = self.told()  # before the storage is read: what comes meanwhile is not missed
        stored = self.stored()
        evaluated = set(self.evaluated())
        done = {t["trial"]: t for t in stored if t["state"] == "done"}
        values = {number: float(f"{t['value']:.6g}") for number, t in done.items()}
        self.note("lost", [f"trial {number}" for number, value in told if values.get(number) != value])
        points = Counter(f"point {t['a']}, {t['n']}" for t in done.values())
        numbers = Counter(f"trial {number}" for number, _ in told)
        self.note("doubled", [name for name, times in (points + numbers).items() if times > 1])
        strange = [n for n, t in done.items() if (t["a"], t["n"], t["value"]) not in evaluated]
        self.note("invented", [f"trial {number}" for number in strange])
        self.counts["failed"] = sum(t["state"] == "failed" for t in stored)
        if running and self.process is not None:
            others = [t for t in stored if t["state"] == "running" and t["holder"] != self.process.pid]
            self.note("stuck", [f"trial {t['trial']} of {t['holder']}, run {self.lives}" for t in others])
        return [str(t["state"]) for t in stored]

    def note(self, kind: str, cases: list[str]) -> None:
        """Count each case once, however often it is seen."""
        fresh = [text for case in cases if (text := f"{kind}: {case}") not in self.remarks]
        self.counts[kind] += len(fresh)
        self.remarks += fresh

    def stored(self) -> list[Run]:
        """All trials, read by a process that has nothing to do with the run."""
        from sumbo.cli.show import record
        from sumbo.errors import StoreError
        from sumbo.study.files.toml import load
        from sumbo.study.stored import StoredStudy

        deadline = time.monotonic() + 60.0
        while True:
            try:
                study = StoredStudy.open(load(self.path), create=False)
                break
            except StoreError as error:
                if "has no trials yet" in str(error) or "no such study yet" in str(error):
                    return []
                if time.monotonic() > deadline:  # a server that recovers takes no connections for a while
                    raise
                time.sleep(0.2)
        held = [(record(study.file, trial), study.ledger.holder(trial)) for trial in study.records]
        return [{**line, **line["params"], "holder": (holder or {}).get("pid")} for line, holder in held]

    def finish(self) -> None:
        """Let the study come to its end: as many trials as there are, and some more."""
        budget = len(self.stored()) + GO_ON
        for _ in range(2):  # a server that was killed last may still be recovering
            self.begin("--budget", str(budget))
            if not self.until(self.has_ended, "the last run did not end"):
                continue
            assert self.process is not None
            if self.process.returncode == 0:
                break
        states = Counter(self.check())
        open_ = {state: count for state, count in states.items() if state not in ("done", "failed")}
        if open_ or states.total() != budget:
            self.note("stuck", [f"at the end {dict(states)}, with a budget of {budget}"])


def is_running(pid: int) -> bool:
    """Is there such a process, that is not merely waiting to be collected?"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# --- the table ---


def table(lines: list[Run]) -> str:
    """Sums over the studies of each storage."""
    heads = ["storage", "studies", "kills", "told", "evaluated", "lost", "doubled", "stuck", "standing still", "failed"]
    rows = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for storage in VICTIMS:
        of_it = [line for line in lines if line["storage"] == storage]
        victims: Counter[str] = sum((Counter(line["victims"]) for line in of_it), Counter())
        kills = f"{victims.total()}: " + ", ".join(f"{name} {victims[name]}" for name in sorted(victims))
        names = ("told", "evaluated", "lost", "doubled", "stuck", "stalled", "failed")
        sums = [str(sum(line[name] for line in of_it)) for name in names]
        if of_it:
            rows.append(f"| {storage} | {len(of_it)} | {kills} | {' | '.join(sums)} |")
    return "\n".join(rows)


def in_short(line: Run) -> str:
    return ", ".join(f"{line[name]} {name}" for name in COUNTED) + f" in {line['seconds']:.0f} s"


def warm_up() -> None:
    """Nothing to do: every run starts from nothing."""


def task_of(line: Run) -> Task:
    return Task(*(line[name] for name in Task._fields))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="studies of each storage")
    parser.add_argument("--kills", type=int, default=KILLS, help="kills in each study")
    parser.add_argument("--out", type=Path, default=DOCS / "crash.jsonl")
    parser.add_argument("--page", type=Path, default=DOCS / "reliability.md")
    options = parser.parse_args()
    tasks = wanted(options.rounds, options.kills)
    work = Work(run, warm_up, task_of, lambda task: " ".join(map(str, task)), in_short)
    try:
        failed = complete(work, tasks, read_lines(options.out, task_of), options.out, 1)
    except KeyboardInterrupt:
        return STOPPED
    lines = list(read_lines(options.out, task_of).values())
    put_between(options.page, BEGIN, END, table(lines))
    broken = sum(line[name] for line in lines for name in FAULTS)
    return 1 if failed or broken else 0


if __name__ == "__main__":
    sys.exit(main())
