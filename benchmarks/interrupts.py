"""Ctrl-C and SIGTERM at random moments: does every run give what it found?

    python benchmarks/interrupts.py --tries 300

`minimize` is sent SIGINT that many times, at a moment drawn evenly from the first seconds of a run, in which nearly all
the time goes into suggestions: fits, searches for groups, maximisers. A third of the runs evaluates in this process, at
once, a third there with 30 ms for each evaluation, a third in two worker processes. A run passes if `minimize` returns
with `interrupted`, holds every value that its callback saw and, where evaluations run in the same process, every value
that the objective returned, and if its optimizer can be saved, read back and asked.

`sumbo run` with two workers is sent SIGTERM a third as often. A run passes if it ends with exit code 130 and no
traceback, and the database holds all values of evaluations that had ended: those that ended in the last 50 ms may be on
their way from the worker.

One line for each kind of run: tries, how many passed, and seconds from the signal to the end (median, largest).
Everything that did not pass is printed, and the exit code is then 1.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import json
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

D = 8
MOMENTS = 3.0  # seconds after the first evaluation in which the signal comes
RUNS = 25  # interrupted in one process
KINDS = {"at once": (0.0, 1), "slow evaluations": (0.03, 1), "workers": (0.01, 2)}
ON_THE_WAY = 0.05  # seconds from a worker to the process that stores

STUDY = """
goal = "minimize"
objective = "objective:f"
budget = 1000
workers = 2
seed = {seed}
"""
PARAMETER = """
[space.x{i}]
type = "float"
low = 0.0
high = 1.0
"""
OBJECTIVE = """
import os, time

def f(p):
    value = sum((p[f"x{i}"] - 0.1 * i) ** 2 for i in range(8)) + p["x0"] * p["x1"]
    with open("evaluated", "a") as file:
        file.write(f"{time.time()} {value!r}\\n")
    return value
"""


# --- minimize, in a process of its own ------------------------------------------------------------------------


def interrupted_runs(kind: str, seed: int) -> None:
    """Call `minimize` again and again, each time until Ctrl-C. Says when a run began and, in JSON, what it gave."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where this was started in the background
    import numpy as np

    import sumbo

    seconds, workers = KINDS[kind]

    def value(x: Any) -> float:
        return float(np.cos(5.0 * x).sum() + 3.0 * x[0] * x[1] - 2.0 * x[2] * x[5])

    for number in range(RUNS):
        returned: list[float] = []
        seen: list[float] = []

        def f(x: Any, returned: list[float] = returned) -> float:
            time.sleep(seconds)
            returned.append(value(x))
            return returned[-1]

        def callback(opt: Any, trial: Any, seen: list[float] = seen) -> None:
            if not seen:
                print("began", flush=True)
            seen.append(trial.value)

        problems = []
        try:
            result = sumbo.minimize(
                f if workers == 1 else SlowCosines(seconds),
                [(0.0, 1.0)] * D,
                10_000,
                seed=seed * RUNS + number,
                workers=workers,
                callback=callback,
                progress=False,
            )
            print("ended", flush=True)
            done = [t.value for t in result.trials if t.state == "done"]
            if not result.interrupted:
                problems.append("not marked as interrupted")
            if not set(seen) <= set(done):
                problems.append(f"{len(seen)} values told, {len(done)} kept")
            # The signal may come between the objective's last line and its return.
            if workers == 1 and (missing := set(returned[:-1]) - set(done)):
                problems.append(f"{len(missing)} values returned by the objective are gone")
            if result.value != min(done):
                problems.append("the best value is not the best")
            again = sumbo.Optimizer.from_dict(json.loads(json.dumps(result.optimizer.to_dict())))
            if again.ask().x.tobytes() != result.optimizer.ask().x.tobytes():
                problems.append("read back, it goes on differently")
            hit = "evaluation" if any(t.state == "running" for t in result.trials) else "suggestion"
        except BaseException as error:
            hit = "?"
            problems.append(f"{type(error).__name__}: {error}")
        print(json.dumps({"problems": problems, "hit": hit, "told": len(seen)}), flush=True)


class SlowCosines:
    """An objective that workers can be sent."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __call__(self, x: Any) -> float:
        import math
        import time

        time.sleep(self._seconds)
        return sum(math.cos(5.0 * v) for v in x) + 3.0 * x[0] * x[1] - 2.0 * x[2] * x[5]


def interrupt(kind: str, tries: int, rng: random.Random) -> Iterator[dict[str, Any]]:
    for seed in range(-(-tries // RUNS)):
        process = subprocess.Popen(
            [sys.executable, __file__, "--child", kind, str(seed)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        try:
            for _ in range(min(RUNS, tries - seed * RUNS)):
                if process.stdout.readline() != "began\n":
                    yield {"problems": [f"the process ended, {process.wait(60)}"], "seconds": 0.0, "hit": "?"}
                    break
                time.sleep(rng.uniform(0.0, MOMENTS))
                process.send_signal(signal.SIGINT)
                since = time.monotonic()
                answer = process.stdout.readline()
                seconds = time.monotonic() - since
                answer = process.stdout.readline() if answer == "ended\n" else answer
                found = json.loads(answer) if answer else {"problems": ["no answer"], "hit": "?"}
                yield found | {"seconds": seconds}
        finally:
            process.kill()
            process.communicate()


# --- sumbo run ---------------------------------------------------------------------------------------------------


def terminate(tries: int, rng: random.Random) -> Iterator[dict[str, Any]]:
    for seed in range(tries):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "objective.py").write_text(OBJECTIVE)
            space = "".join(PARAMETER.format(i=i) for i in range(D))
            (folder / "study.toml").write_text(STUDY.format(seed=seed) + space)
            yield _terminated(folder, rng.uniform(0.0, MOMENTS))


def _terminated(folder: Path, seconds: float) -> dict[str, Any]:
    process = subprocess.Popen(
        [sys.executable, "-m", "sumbo", "run", "study.toml"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    log = folder / "evaluated"
    while process.poll() is None and not (log.exists() and log.read_text()):
        time.sleep(0.02)
    time.sleep(seconds)
    process.send_signal(signal.SIGTERM)
    sent, since = time.time(), time.monotonic()
    _, errors = process.communicate(timeout=120)
    if not log.exists():
        return {"problems": [f"nothing was evaluated: {errors}"], "seconds": 0.0, "hit": "?"}
    ended = [(float(when), float(value)) for when, value in map(str.split, log.read_text().splitlines())]
    with sqlite3.connect(folder / "study.db") as database:
        stored = {value for (value,) in database.execute("SELECT value FROM sumbo_trials")}
        running = database.execute("SELECT count(*) FROM sumbo_trials WHERE state = 'running'").fetchone()[0]
    lost = [value for when, value in ended if value not in stored and when < sent - ON_THE_WAY]
    late = sum(value not in stored for _, value in ended) - len(lost)
    problems = [f"{len(lost)} values are lost"] * bool(lost) + [f"{running} trials left running"] * bool(running)
    if process.returncode != 130 or "Traceback" in errors:
        problems.append(f"exit code {process.returncode}: {errors[-2000:]}")
    return {"problems": problems, "seconds": time.monotonic() - since, "hit": "on the way" if late else "-"}


# --- both --------------------------------------------------------------------------------------------------------


def summed_up(name: str, found: list[dict[str, Any]]) -> bool:
    failed = [one for one in found if one["problems"]]
    seconds = [one["seconds"] for one in found]
    hits = [one["hit"] for one in found]
    print(
        f"{name:28} {len(found):4} tries, {len(found) - len(failed):4} passed; seconds to the end: "
        f"{median(seconds):.2f}, {max(seconds):.2f}; " + ", ".join(f"{h} {hits.count(h)}" for h in sorted(set(hits))),
        flush=True,
    )
    for one in failed:
        print(f"    {'; '.join(one['problems'])}", flush=True)
    return not failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=300)
    parser.add_argument("--parts", choices=[*KINDS, "sumbo run"], nargs="*", default=[*KINDS, "sumbo run"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        interrupted_runs(options.child[0], int(options.child[1]))
        return
    rng, each = random.Random(options.seed), max(options.tries // len(KINDS), 1)
    fine = True
    for part in options.parts:
        found = list(terminate(each, rng) if part == "sumbo run" else interrupt(part, each, rng))
        fine &= summed_up(f"SIGTERM, {part}" if part == "sumbo run" else f"SIGINT, {part}", found)
    sys.exit(not fine)


if __name__ == "__main__":
    main()
