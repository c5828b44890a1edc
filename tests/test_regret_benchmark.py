"""The regret benchmark: its runner resumes, its report counts, and a peer that is not there is said to be missing."""

import json
import math
import os
import re
import signal
import sys
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from sums import Sum, add, environment, nothing, sum_of

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import regret
import regret_report
import regret_runs
import runs
from regret_report import FINAL, Results, reached, standings
from regret_runs import COMPARED, PROBLEMS, RIVALS, Task

import sumbo

# --- the runner


WORK = runs.Work(add, nothing, sum_of, str, lambda record: f"is {record['sum']}")


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_what_is_left_is_done_and_appended(tmp_path, capsys):
    out = tmp_path / "runs.jsonl"
    wanted = [Sum(i, 1) for i in range(5)]
    out.write_text("".join(json.dumps(add(task)) + "\n" for task in wanted[:2]))
    before = out.read_text()
    assert runs.complete(WORK, wanted, runs.read_lines(out, sum_of), out, jobs=2) == 0
    assert out.read_text().startswith(before)
    assert runs.read_lines(out, sum_of) == {task: add(task) for task in wanted}
    said = capsys.readouterr().err
    assert "2 of 5 runs are in" in said
    assert "[3/3]" in said
    assert runs.complete(WORK, wanted, runs.read_lines(out, sum_of), out, jobs=2) == 0
    assert len(lines_of(out)) == 5


def test_a_line_that_was_cut_off_is_done_again(tmp_path):
    out = tmp_path / "runs.jsonl"
    whole = json.dumps(add(Sum(0, 1))) + "\n"
    out.write_text(whole + json.dumps(add(Sum(1, 1)))[:-4])
    done = runs.read_lines(out, sum_of)
    assert list(done) == [Sum(0, 1)]
    runs.complete(WORK, [Sum(0, 1), Sum(1, 1)], done, out, jobs=1)
    assert lines_of(out) == [add(Sum(0, 1)), add(Sum(1, 1))]


def test_a_last_line_without_its_end_is_kept(tmp_path):
    out = tmp_path / "runs.jsonl"
    out.write_text(json.dumps(add(Sum(0, 1))))
    runs.complete(WORK, [Sum(0, 1), Sum(1, 1)], runs.read_lines(out, sum_of), out, jobs=1)
    assert lines_of(out) == [add(Sum(0, 1)), add(Sum(1, 1))]


def test_a_broken_line_is_named(tmp_path):
    out = tmp_path / "runs.jsonl"
    out.write_text('{"a": 1, "b": 1}\n{"b": 1}\n')
    with pytest.raises(ValueError, match="line 2 is not a run of this benchmark"):
        runs.read_lines(out, sum_of)


def test_a_task_that_raises_leaves_no_line_and_stops_no_other(tmp_path, capsys):
    out = tmp_path / "runs.jsonl"
    assert runs.complete(WORK, [Sum(0, -1), Sum(2, 1)], {}, out, jobs=1) == 1
    assert lines_of(out) == [add(Sum(2, 1))]
    assert "failed with ArithmeticError: cannot add -1" in capsys.readouterr().err


def test_workers_keep_to_one_thread_and_the_caller_keeps_its_settings(tmp_path):
    out = tmp_path / "runs.jsonl"
    before = os.environ.copy()
    handlers = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
    runs.complete(WORK._replace(run=environment), [Sum(0, 0), Sum(1, 0), Sum(2, 0)], {}, out, jobs=2)
    assert len(lines_of(out)) == 3
    assert all(line["threads"].items() >= runs.ONE_THREAD.items() and line["ignored"] for line in lines_of(out))
    assert os.environ == before
    assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)] == handlers


# --- what is run


def test_seventeen_problems_and_who_runs_on_them():
    assert len(PROBLEMS) == 17
    tasks = regret_runs.wanted(COMPARED, PROBLEMS, 200)
    seeds = {(t.method, t.problem): 0 for t in tasks}
    for task in tasks:
        seeds[task.method, task.problem] += 1
    for problem in PROBLEMS:
        dim = regret_runs.problem_of(problem, 0).dim
        assert seeds["auto", problem] == seeds["plain", problem] == 5
        assert seeds["random", problem] == seeds["optuna-gp", problem] == 3
        assert seeds.get(("botorch", problem), 0) == (3 if dim <= 40 else 0)
    assert {t.seed for t in regret_runs.wanted(["cma-es"], ["levy-30"], 20, seeds=4)} == {0, 1, 2, 3}


@pytest.mark.parametrize("method", ["random", "plain", "optuna-tpe"])
@pytest.mark.parametrize("problem", ["mixed-20", "levy-30-noisy"])
def test_a_run_is_a_line_with_noise_free_regrets(method, problem):
    line = json.loads(json.dumps(regret_runs.run(Task(method, problem, 0, 15))))
    assert regret_runs.task_of(line) == Task(method, problem, 0, 15)
    assert line["evaluations"] == [10, 15]
    first, last = line["simple_regret"]
    assert line["average_regret"] > first >= last > 0.0
    assert line["seconds_per_suggestion"] > 0.0
    assert "sumbo" in line["versions"]
    assert ("optuna" in line["versions"]) == (method == "optuna-tpe")


def test_noise_is_seen_by_the_method_and_not_by_the_regret():
    problem = regret_runs.problem_of("levy-30-noisy", 0)
    f = regret_runs.Observed(problem)
    params = problem.space.from_array(problem.optimiser)
    seen = [f(params) for _ in range(50)]
    assert f.values == pytest.approx([0.0] * 50, abs=1e-9)
    assert 3.0 < sum(value**2 for value in seen) / 50 < 50.0  # a variance of 25


def test_a_method_that_fails_is_a_line(monkeypatch):
    def broken(f, space, direction, budget, seed):
        f(space.from_unit([0.5] * space.dim))
        raise FloatingPointError("not positive definite")

    monkeypatch.setitem(regret_runs.PEERS, "cma-es", regret_runs.PEERS["cma-es"]._replace(search=broken, needs=()))
    line = regret_runs.run(Task("cma-es", "levy-30", 0, 10))
    assert "FloatingPointError: not positive definite" in line["error"]
    assert "after 1 evaluations" in line["error"]
    assert regret_runs.in_short(line).startswith("failed: ")


def test_the_papers_method_is_told_the_size_of_the_groups():
    sizes = {"additive-40-18-2": 18, "levy-30": 1, "powell-40": 4, "rosenbrock-log-30": 4, "mixed-20": 3}
    for name, size in sizes.items():
        method = regret_runs.method_of("add-gp-ucb-paper", regret_runs.problem_of(name, 0))
        assert method.group_size == size


# --- the report


def line(method, problem, seed, final, *, budget=200, curve=None):
    task = Task(method, problem, seed, budget)
    points = runs.checkpoints(budget)
    regrets = curve or [final] * len(points)
    figures = {"evaluations": points, "simple_regret": regrets, "average_regret": 2 * final}
    return task, {**task._asdict(), **figures, "seconds_per_suggestion": 0.1, "versions": {"sumbo": "1.2.3"}}


def failure(method, problem, seed):
    task = Task(method, problem, seed, 200)
    return task, {**task._asdict(), "error": "ValueError: no"}


def found(*lines):
    return dict(lines)


def row(text, name):
    """The cells of the first row of a name."""
    return [cell.strip() for cell in re.search(rf"^\| {re.escape(name)} \|(.*)\|$", text, re.M)[1].split("|")]


def test_standings_count_and_compare():
    results = Results(
        found(
            line("auto", "levy-30", 0, 1.0),
            line("auto", "levy-30", 1, 3.0),
            line("cma-es", "levy-30", 0, 2.5),
            line("random", "levy-30", 0, 9.0),
            line("auto", "powell-40", 0, 6.0),
            line("cma-es", "powell-40", 0, 4.0),
            line("auto", "mixed-20", 0, 5.0),  # nothing to compare it with
            line("random", "hartmann6-50", 0, 5.0),  # no run of ours
        ),
        200,
    )
    levy, powell = standings(results, FINAL, RIVALS, PROBLEMS)
    assert (levy.problem, levy.mean, levy.best, levy.lowest, levy.ratio) == ("levy-30", 2.0, 2.5, True, 1.0)
    assert (powell.problem, powell.lowest, powell.ratio) == ("powell-40", False, 1.5)


def test_a_failed_run_of_ours_loses_the_problem():
    results = Results(
        found(line("auto", "levy-30", 0, 1.0), failure("auto", "levy-30", 1), line("cma-es", "levy-30", 0, 2.0)), 200
    )
    (levy,) = standings(results, FINAL, RIVALS, PROBLEMS)
    assert not levy.lowest
    assert levy.ratio == math.inf


def test_seeds_and_budgets_are_kept_apart():
    runs_ = found(
        line("auto", "levy-30", 0, 1.0),
        line("auto", "levy-30", 4, 9.0),
        line("auto", "levy-30", 0, 0.1, budget=400),
    )
    assert Results(runs_, 200).mean("levy-30", "auto", FINAL) == 5.0
    assert Results(runs_, 200, range(3)).mean("levy-30", "auto", FINAL) == 1.0
    assert Results(runs_, 400).mean("levy-30", "auto", FINAL) == 0.1


def test_ratios_of_zero_regret():
    assert regret_report.ratio(0.0, 0.0) == 1.0
    assert regret_report.ratio(-1e-15, 0.0) == 1.0
    assert regret_report.ratio(0.5, 0.0) == math.inf
    assert regret_report.ratio(3.0, 2.0) == 1.5


def test_when_the_best_peers_end_is_reached():
    falling = [100.0 - 5.0 * k for k in range(20)]  # 100 after 10 evaluations, 5 after 200
    results = Results(
        found(
            line("auto", "levy-30", 0, 5.0, curve=falling),
            line("auto", "levy-30", 1, 5.0, curve=falling),
            line("cma-es", "levy-30", 0, 60.0),
            line("random", "levy-30", 0, 90.0),
            line("plain", "levy-30", 0, 1.0),  # no peer
            line("auto", "powell-40", 0, 5.0, curve=falling),
            line("cma-es", "powell-40", 0, 1.0),
        ),
        200,
    )
    levy, powell = reached(results, PROBLEMS)
    assert (levy.rival, levy.target, levy.after) == ("cma-es", 60.0, 90)
    assert powell.after is None


def test_the_report_tells_counts_missing_and_failed_runs():
    runs_ = found(
        *(line("auto", "additive-10-3-3", seed, 1.0 + seed) for seed in range(5)),
        *(line("plain", "additive-10-3-3", seed, 6.0) for seed in range(5)),
        *(line("cma-es", "additive-10-3-3", seed, 4.0) for seed in range(2)),
        line("optuna-gp", "additive-10-3-3", 0, 2.5),
        failure("optuna-gp", "additive-10-3-3", 1),
        *(line("auto", "additive-10-3-3", seed, 1.0, budget=400) for seed in range(5)),
        *(line("plain", "additive-10-3-3", seed, 0.5, budget=400) for seed in range(5)),
    )
    text = regret_report.report(runs_)
    assert "14 of 464 runs are there, of which 1 failed (optuna-gp on additive-10-3-3); until" in text
    assert row(text, "lowest mean final regret of all methods")[1] == "0 of 1"
    assert row(text, "the same on seeds 0 to 2, which all methods have")[1] == "1 of 1"
    assert row(text, "worst ratio to the lowest")[1] == "1.20 (additive-10-3-3)"
    assert row(text, "worst ratio to `plain`")[1] == "1.00"
    assert "400 evaluations | 4 of 4 | 0 of 1 |" in text
    auto, plain, gp, botorch, _, cma, *_ = row(text, "additive-10-3-3")
    assert auto == "3 ± 0.71"
    assert plain == "6 ± 0"
    assert gp == "**2.5** (1 failed, 1 missing)"
    assert botorch == "-"
    assert cma == "4 ± 0 (1 missing)"
    assert row(text, "additive-120-55-2")[3] == "not run"
    assert "sumbo 1.2.3" in text


# Where parts show: a smooth function with a parameter that hardly counts, a steep one, one with waves along a line.
FUNCTIONS = {
    "smooth": lambda x: math.sin(6 * x[0]) + x[1] + 0.1 * x[2],
    "steep": lambda x: math.exp(8 * abs(x[0] - 0.4) + 4 * abs(x[1] - 0.3)) + x[2],
    "waves": lambda x: math.sin(15 * x[0]) + 0.2 * x[1] * x[2],
}


class Differs(BaseException):
    """A value is not that of the other search; no `Exception`, which would be a failed evaluation."""


def search(method, function, seed, expected=None):
    """The values of a short search; as soon as one of them is not as expected, `Differs`."""
    problem = SimpleNamespace(space=sumbo.Space.from_bounds([(0.0, 1.0)] * 3), direction="minimize")
    values = []

    def f(params):
        values.append(FUNCTIONS[function](list(params.values())))
        if expected is not None and values[-1] != expected[len(values) - 1]:
            raise Differs
        return values[-1]

    regret_runs.search(Task(method, function, seed, 36), problem, f)  # groups are looked for with 30 values
    return values


of_auto = cache(partial(search, "auto"))


def differs(method, function, seed):
    try:
        search(method, function, seed, of_auto(function, seed))
    except Differs:
        return True
    return False


def test_a_search_is_no_other_than_itself():
    assert not differs("auto", "steep", 1)


@pytest.mark.parametrize("variant", regret_runs.ABLATION)
def test_every_changed_part_changes_the_search(variant):
    """Some search, as parts that the evidence decides for are not used in each."""
    assert any(differs(variant, function, seed) for seed in (1, 2, 3) for function in FUNCTIONS)


def test_ablation_has_its_own_table_with_costs():
    variant = next(iter(regret_runs.ABLATION))
    runs_ = found(
        line("auto", "levy-30", 1, 9.0),
        line("auto", "levy-30", 0, 2.0),
        line(variant, "levy-30", 0, 4.0),
        line("auto", "powell-40", 0, 2.0),
        line(variant, "powell-40", 0, 16.0),
    )
    assert row(regret_report.report(runs_), "geometric mean") == ["1", "4.00x"]  # on seed 0, which both have
    assert "geometric mean" not in regret_report.report(found(line("auto", "levy-30", 0, 2.0)))


def test_variants_with_fewer_seeds_are_compared_on_those():
    one, two = list(regret_runs.ABLATION)[:2]
    runs_ = found(
        line("auto", "levy-30", 0, 2.0),
        line("auto", "levy-30", 1, 6.0),
        line(one, "levy-30", 0, 4.0),
        line(one, "levy-30", 1, 4.0),
        line(two, "levy-30", 0, 4.0),
    )
    text = regret_report.report(runs_)
    assert row(text[text.index("one part changed") :], "levy-30") == ["4", "4 (1.00x)", "4 (2.00x)"]


def test_prose_around_the_tables_is_kept(tmp_path):
    page = tmp_path / "page.md"
    regret_report.write_page(page, "first\n", "# Title\n")
    page.write_text(page.read_text().replace("# Title", "# My title") + "\nMy words.\n")
    regret_report.write_page(page, "second\n", "# Title\n")
    text = page.read_text()
    assert text.startswith("# My title\n")
    assert text.endswith("\nMy words.\n")
    assert "second" in text
    assert "first" not in text
    page.write_text("no markers")
    with pytest.raises(ValueError, match=r"page\.md must have the lines"):
        regret_report.write_page(page, "third\n", "# Title\n")


# --- the command


def test_the_command_runs_reports_and_resumes(tmp_path, capsys):
    out = tmp_path / "small.jsonl"
    arguments = ["--methods", "random", "--problems", "levy-30", "mixed-20", "--seeds", "1", "--budget", "10"]
    arguments += ["--jobs", "1", "--out", str(out)]
    assert regret.main(arguments) == 0
    kept = out.read_text()
    assert {(r["problem"], len(r["simple_regret"])) for r in lines_of(out)} == {("levy-30", 1), ("mixed-20", 1)}
    page = out.with_suffix(".md").read_text()
    assert "2 of 464 runs are there" in page
    assert "(small.svg)" in page
    assert out.with_suffix(".svg").read_text().startswith("<?xml")
    assert regret.main(arguments) == 0
    assert out.read_text() == kept
    assert "2 of 2 runs are in" in capsys.readouterr().err


def test_a_peer_that_is_not_installed_is_left_out(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(regret.PEERS, "cma-es", regret.PEERS["cma-es"]._replace(needs=("no_such_package",)))
    out = tmp_path / "none.jsonl"
    assert regret.main(["--methods", "cma-es", "--problems", "levy-30", "--out", str(out)]) == 0
    assert "cma-es is left out: no_such_package not installed" in capsys.readouterr().err
    assert "There are no runs yet." in out.with_suffix(".md").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "magic"], "invalid choice: 'magic'"),
        (["--problems", "magic"], "invalid choice: 'magic'"),
        (["--ablation", "--methods", "auto"], "leave out --methods"),
        (["--seeds", "0"], "--seeds and --jobs must be at least 1"),
        (["--budget", "5"], "--budget at least 10"),
        (["--out", "runs.json"], "must be named .jsonl"),
    ],
)
def test_wrong_options_are_explained(arguments, message, capsys):
    with pytest.raises(SystemExit) as stop:
        regret.main([*arguments, "--report"])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_a_file_of_something_else_is_named(tmp_path):
    out = tmp_path / "other.jsonl"
    out.write_text('{"method": "auto"}\n')
    with pytest.raises(SystemExit, match=r"regret\.py: .*other\.jsonl, line 1 is not a run"):
        regret.main(["--report", "--out", str(out)])
