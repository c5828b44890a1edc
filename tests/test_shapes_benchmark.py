"""The benchmark of shapes: its order, its lines and its page."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import shape_report
import shape_runs
import shapes
from runs import read_lines
from shape_problems import DESIGNS, Contexts, system
from shape_runs import METHODS, PROBLEMS, Task, task_of, wanted


def test_every_method_of_a_problem_is_wanted_once_seed_by_seed_and_the_slowest_last():
    tasks = wanted(list(PROBLEMS), list(METHODS))
    assert len(tasks) == len(set(tasks)) == sum(len(kind.methods) * kind.seeds for kind in PROBLEMS.values())
    assert {task.method for task in tasks[-5 * len(DESIGNS) :]} == {"botorch"}
    designs = [task.seed for task in tasks if task.problem in DESIGNS and task.method == "optuna-gp"]
    assert designs == sorted(designs)
    assert wanted(["xy"], ["optuna-gp"], 2) == [Task("xy", "optuna-gp", 0), Task("xy", "optuna-gp", 1)]


def test_a_run_is_a_line_that_is_found_again(tmp_path):
    task = Task("mixture-8", "random", 0)
    line = shape_runs.run(task)
    assert line["trials"] == len(line["curve"]) == 60
    assert line["curve"] == sorted(line["curve"], reverse=True)
    assert line["final"] == pytest.approx(line["curve"][-1])
    assert line["final"] > line["optimum"]
    assert line["worst"] <= 1e-9
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(line) + "\n")
    assert read_lines(path, task_of) == {task: line}


def test_only_feasible_points_count():
    log = shape_runs.Log()
    for value, feasible in ((1.0, False), (3.0, True), (2.0, False), (4.0, True)):
        log.add(value, {"x": value}, feasible=feasible)
    assert log.curve == [float("inf"), 3.0, 3.0, 3.0]
    assert (log.best, log.params) == (3.0, {"x": 3.0})


def test_what_is_outside_of_a_system_is_seen():
    inside = {f"x{i}": 0.5 for i in range(12)} | {"n": 0, "kind": "p"}
    violation = system(1).violation
    assert violation({**inside, "x1": 1.5}) >= 0.5
    assert violation({**inside, "n": 8, "x0": 0.0}) >= 5.5
    assert violation({**inside, "n": 0.5}) == 1.0
    assert violation({**inside, "kind": "s"}) == 1.0


def test_perfect_predictions_have_an_r2_of_1():
    class Oracle:
        def predict(self, points):
            return [Contexts(0).value(p, p) for p in points], None

    assert shape_runs._r2(Contexts(0), Oracle(), 0) == pytest.approx(1.0)


def made_up(final):
    """A line of each run; `final` gives its value."""
    lines = {}
    for task in wanted(list(PROBLEMS), list(METHODS)):
        line = {**task._asdict(), "final": final(task), "trials": 60, "seconds": 1.0, "optimum": 1.0}
        line |= {"reported": line["final"], "suggestions": {"auto": 500}, "outside": 0, "worst": 0.0}
        line |= {"held_out_regret": 0.1, "at_least_seen": -2.0} | ({"r2": 0.9} if task.method == "sumbo" else {})
        lines[task] = line
    return lines


def best_by_sumbo(task):
    if task.problem == "noisy":
        return -2.9
    return (0.4 if task.problem == "contexts" else 1.001) if task.method in ("sumbo", "sumbo-optuna") else 2.0


def test_bars_are_met_missed_or_open():
    runs = made_up(best_by_sumbo)
    assert all(bar.met is True for bar in shape_report.bars(runs))
    assert all(bar.met is None for bar in shape_report.bars({}))
    worse = {task: {**run, "final": -run["final"], "outside": 1} for task, run in runs.items()}
    worse[Task("xy", "sumbo-optuna", 3)]["final"] = 8.02
    worse[Task("plant-25", "sumbo", 3)]["final"] = None
    worse[Task("mixture-8", "sumbo", 0)]["final"] = 1.02
    worse |= {task: {**run, "final": 1.0} for task, run in worse.items() if task.problem == "contexts"}
    assert all(bar.met is False for bar in shape_report.bars(worse))


def test_one_run_less_leaves_its_bars_open():
    runs = made_up(best_by_sumbo)
    for task in (Task("plant-25", "botorch", 4), Task("systems", "sumbo", 19), Task("noisy", "sumbo", 0)):
        del runs[task]
    assert [bar.met for bar in shape_report.bars(runs)].count(None) == 3


def test_the_page_keeps_what_people_wrote(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(json.dumps(run) + "\n" for run in made_up(best_by_sumbo).values()))
    page = path.with_suffix(".md")
    assert shapes.main(["--report", "--out", str(path)]) == 0
    page.write_text(page.read_text() + "after\n")
    assert shapes.main(["--report", "--out", str(path)]) == 0
    text = page.read_text()
    assert text.startswith(shape_report.INTRODUCTION)
    assert text.endswith(f"{shape_report.END}\nafter\n")
    assert text.count("| met |") == len(shape_report.bars({}))
    page.write_text("no marks")
    with pytest.raises(SystemExit, match="must have the lines"):
        shapes.main(["--report", "--out", str(path)])
