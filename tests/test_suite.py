"""The suite: its statistics against small examples, its order, its lines, its page and its command."""

import json
import math
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import suite
import suite_report
import suite_runs
import suite_stats
from regret_runs import ABLATION
from suite_report import AVERAGE, FINAL, Results
from suite_runs import PLANS, Task

VARIANT, OTHER_VARIANT = list(ABLATION)[:2]


@pytest.fixture(autouse=True)
def _small_problems(tmp_path_factory, monkeypatch):
    """The stand-in is found before the real problems, by worker processes too."""
    folder = tmp_path_factory.mktemp("problems")
    shutil.copy(Path(__file__).with_name("suite_stand_in.py"), folder / "suite_problems.py")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "suite_problems", raising=False)
    yield
    sys.modules.pop("suite_problems", None)


# --- statistics


def test_the_median_has_the_interval_of_its_bootstrap():
    middle, low, high = suite_stats.median_interval([3.0, 1.0, 2.0])
    assert (middle, low, high) == (2.0, 1.0, 3.0)  # all alike in 1 of 27 resamples: more than a fortieth
    assert suite_stats.median_interval([5.0]) == (5.0, 5.0, 5.0)
    values = np.random.default_rng(1).normal(size=25)
    reference = stats.bootstrap([values], np.median, method="percentile", n_resamples=20_000, rng=2)
    found = suite_stats.median_interval(values)
    assert found[1:] == pytest.approx(tuple(reference.confidence_interval), abs=0.1)
    assert found == suite_stats.median_interval(values)


def test_ratios_have_students_interval():
    logs = [math.log(2.0), math.log(8.0)]  # mean log 4, standard error log 2
    middle, low, high = suite_stats.ratio_interval(logs)
    half = stats.t.ppf(0.975, 1) * math.log(2.0)
    assert (middle, math.log(low), math.log(high)) == pytest.approx((4.0, math.log(4.0) - half, math.log(4.0) + half))
    assert suite_stats.ratio_interval([0.0]) == (1.0, 0.0, math.inf)


def test_ranks_are_shared_by_those_who_tie():
    losses = np.array([[1.0, 2.0, 3.0], [5.0, 5.0, 1.0]])
    assert suite_stats.mean_ranks(losses).tolist() == [1.75, 2.25, 2.0]


def test_friedmans_test_is_scipys():
    losses = np.random.default_rng(0).random((6, 4))
    assert suite_stats.friedman(losses) == stats.friedmanchisquare(*losses.T).pvalue
    # by hand: 4 problems that all have the same order of 3 methods, chi2 = 12 * 4 / 12 * (1 + 0 + 1) = 8
    assert suite_stats.friedman(np.tile([1.0, 2.0, 3.0], (4, 1))) == pytest.approx(stats.chi2.sf(8.0, 2))
    assert math.isnan(suite_stats.friedman(losses[:, :2]))
    assert math.isnan(suite_stats.friedman(np.ones((3, 3))))


def test_the_signed_rank_test():
    assert suite_stats.wilcoxon([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(2 / 2**5)  # all above 0
    assert suite_stats.wilcoxon([1.0, 0.0, 2.0, 3.0]) == pytest.approx(2 / 2**3)  # what ties is left out
    assert suite_stats.wilcoxon([0.0, 0.0]) == 1.0


def test_holms_correction():
    assert suite_stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert suite_stats.holm([0.5, 0.9]) == [1.0, 1.0]
    assert suite_stats.holm([]) == []


def test_standing_counts_ties_and_finds_the_worst_ratio():
    found = suite_stats.standing(np.array([1.0, 2.0, 3.0]), np.array([[2.0, 3.0], [2.0, 4.0], [9.0, 1.5]]))
    assert found == (2, 2.0, 2)


# --- what is run


def wanted(*arguments, **named):
    return suite_runs.wanted(suite_runs.sets()["development"], *arguments, **named)


def test_who_runs_on_what_and_how_often():
    tasks = wanted(PLANS, suite_runs.sets()["development"])
    assert len(tasks) == len(set(tasks))
    seeds = lambda *key: sum((t.method, t.problem, t.budget) == key for t in tasks)  # noqa: E731
    for method, count in {"auto": 10, "optuna-gp": 5, "msr": 3, "saasbo": 2}.items():
        assert seeds(method, "bowl", 20) == count
    assert seeds("turbo", "far", 20) == 10
    assert seeds("msr", "far", 20) == seeds("saasbo", "far", 20) == 0
    assert (seeds("auto", "bowl", 1000), seeds("optuna-gp", "bowl", 1000), seeds("msr", "bowl", 1000)) == (5, 2, 0)
    assert seeds("auto", "mixed", 1000) == 0


def test_the_slow_run_on_problems_of_all_sizes_half_of_them_real():
    kinds = {"s": (False, (40, 8, 30, 12, 200)), "r": (True, (9, 25, 101, 10, 99))}
    entries = {f"{k}{dim}": SimpleNamespace(dim=dim, real=real) for k, (real, dims) in kinds.items() for dim in dims}
    assert suite_runs.Plan(1, largest=100, problems=4).chosen(entries) == {"s8", "s40", "r9", "r99"}
    assert suite_runs.Plan(1, largest=100, problems=6).chosen(entries) == {"s8", "s30", "s40", "r9", "r25", "r99"}
    assert suite_runs.Plan(1, largest=100, problems=20).chosen(entries) == set(entries) - {"s200", "r101"}
    assert suite_runs.Plan(1).chosen(entries) == set(entries)


def test_work_goes_seed_by_seed_cheap_methods_first_and_many_evaluations_last():
    tasks = wanted(["msr", "auto"], ["bowl", "mixed"])
    keys = [(t.budget, t.seed, list(PLANS).index(t.method)) for t in tasks]
    assert keys == sorted(keys)
    assert [t.method for t in tasks[:4]] == ["auto", "auto", "msr", "msr"]
    assert wanted(["auto"], ["bowl"], seeds=2, budget=30) == [Task("auto", "bowl", 0, 30), Task("auto", "bowl", 1, 30)]


@pytest.mark.parametrize("method", ["random", "turbo"])
@pytest.mark.parametrize("problem", ["bowl", "noisy-bowl", "mixed"])
def test_a_run_is_a_line_that_is_found_again(method, problem):
    task = Task(method, problem, 0, 15)
    line = json.loads(json.dumps(suite_runs.run(task)))
    assert suite_runs.task_of(line) == task
    assert line["evaluations"] == [10, 15]
    assert line["optimum"] == (None if problem == "mixed" else 0.0)
    better = max if line["direction"] == "maximize" else min
    assert line["best"][1] == better(*line["best"], line["mean"])
    assert line["seconds_per_suggestion"] > 0.0
    assert "sumbo" in line["versions"]
    assert suite_runs.news(line).startswith("best ")


def test_noise_is_the_problem_seeds_and_only_methods_see_it():
    problem = suite_runs.entry("noisy-bowl").make(0)
    first, second, other = (suite_runs.Observed(problem, seed) for seed in (0, 0, 1))
    params = {f"x{i}": 0.2 for i in range(4)}
    seen = [first(params) for _ in range(50)]
    assert first.values == [0.0] * 50
    assert seen == [second(params) for _ in range(50)] != [other(params) for _ in range(50)]
    assert 7.0 < np.std(seen) < 13.0


def test_a_run_that_fails_counts_with_what_it_had(monkeypatch):
    def broken(f, space, direction, budget, seed):
        for u in (0.5, 0.2, 0.5):
            f(space.from_unit([u] * space.dim))
        raise FloatingPointError("not positive definite")

    monkeypatch.setitem(suite_runs.PEERS, "turbo", suite_runs.PEERS["turbo"]._replace(search=broken))
    line = suite_runs.run(Task("turbo", "bowl", 0, 20))
    assert "FloatingPointError: not positive definite" in line["error"]
    assert line["best"] == pytest.approx([0.0, 0.0])
    assert suite_runs.news(line).startswith("failed: ")
    assert suite_runs.figures([], None, 20, 0.0) == {}


# --- the report


def line(method, problem, seed, best, *, optimum=0.0, budget=20, mean=None, direction="minimize", seconds=0.1):
    task = Task(method, problem, seed, budget)
    figures = {"best": [best, best], "mean": 2 * best if mean is None else mean, "evaluations": [10, 20]}
    figures |= {"optimum": optimum, "direction": direction, "seconds_per_suggestion": seconds}
    return task, {**task._asdict(), **figures, "versions": {"sumbo": "1.2.3"}}


def row(text, name):
    """The cells of the first row of a name."""
    return [cell.strip() for cell in re.search(rf"^\| {re.escape(name)} \|(.*)\|$", text, re.M)[1].split("|")]


def test_an_unknown_optimum_is_the_best_of_any_run():
    runs = dict([
        line("auto", "mixed", 0, 5.0, optimum=None, direction="maximize", mean=1.0),
        line("random", "mixed", 0, 3.0, optimum=None, direction="maximize", mean=2.0),
        line("auto", "mixed", 0, 9.0, optimum=None, direction="maximize", budget=1000),
        line("auto", "mixed", 1, 4.0, optimum=None, direction="maximize"),
    ])  # fmt: skip
    results = Results(runs, ["mixed"], 20)
    assert results.of("mixed", "auto", FINAL) == {0: 4.0, 1: 0.0}
    assert results.of("mixed", "random", FINAL) == {0: 6.0}
    assert results.of("mixed", "auto", AVERAGE) == {0: 8.0, 1: -4.0}
    assert results.floor("mixed") == pytest.approx(0.06)


def test_methods_are_compared_on_the_seeds_that_all_have():
    runs = dict([
        *(line("auto", "bowl", seed, 1.0 + seed) for seed in range(4)),
        *(line("random", "bowl", seed, 8.0) for seed in (0, 2)),
    ])  # fmt: skip
    paired = Results(runs, ["bowl"], 20).paired("bowl", ["auto", "random"], FINAL, 10)
    assert {method: values.tolist() for method, values in paired.items()} == {"auto": [1.0, 3.0], "random": [8.0, 8.0]}
    found = Results(runs, ["bowl"], 20).paired("bowl", ["auto", "random"], FINAL, 1)
    assert found["auto"].tolist() == [1.0]


def test_what_is_found_is_found():
    runs = dict([line("auto", "bowl", 0, 1e-15), line("turbo", "bowl", 0, 1e-13), line("random", "bowl", 0, 1.0)])
    paired = Results(runs, ["bowl"], 20).paired("bowl", ["auto", "turbo"], FINAL, 1)
    assert paired["auto"] == paired["turbo"] == pytest.approx(1e-6)


def test_the_page_compares_ranks_and_tests():
    runs = dict([
        line(method, problem, seed, value * (1 + seed))
        for problem in ("bowl", "noisy-bowl")
        for seed in range(3)
        for method, value in {"auto": 2.0 if problem == "bowl" else 1.0, "turbo": 1.0, "msr": 3.0}.items()
    ])  # fmt: skip
    text = suite_report.report(runs)
    assert "## Development set, 20 evaluations" in text
    assert "## Test set" not in text
    assert "18 of " in text
    assert "Final simple regret of 2 methods on 2 problems, medians over 3 of 10 seeds." in text
    three = text[text.index("Final simple regret of 3 methods") :]
    assert "`auto` has the best median or ties with it on 1 of 2 (50%)" in three
    assert "its worst ratio to the best peer's is 2.00 (bowl)" in three
    assert row(three, "turbo") == ["1.25", "2 of 2", "0.71", "1"]
    assert row(three, "auto") == ["1.75", "1 of 2", "-", "-"]
    assert row(three, "msr")[:3] == ["3.00", "0 of 2", "2.12"]
    medians = text[text.index("Final simple regret, median") :]
    assert row(medians, "bowl") == ["4 (2 to 6; 3)", "**2** (1 to 3; 3)", "6 (3 to 9; 3)"]
    assert row(text[text.index("Seconds per suggestion") :], "all") == ["0.1", "0.1", "0.1"]
    assert "sumbo 1.2.3" in text


def test_the_ablation_is_paired_by_seed():
    runs = dict([
        *(line("auto", "bowl", seed, value) for seed, value in enumerate((1.0, 2.0, 4.0, 99.0))),
        *(line(VARIANT, "bowl", seed, value) for seed, value in enumerate((2.0, 4.0, 8.0))),
        *(line("auto", "noisy-bowl", seed, 4.0) for seed in range(3)),
        *(line(VARIANT, "noisy-bowl", seed, 2.0) for seed in range(3)),
        line(OTHER_VARIANT, "bowl", 0, 3.0),
    ])  # fmt: skip
    logs = suite_report.log_ratios(Results(runs, ["bowl", "noisy-bowl"], 20), VARIANT, FINAL)
    assert np.exp(logs["bowl"]) == pytest.approx([2.0, 2.0, 2.0])
    assert np.exp(logs["noisy-bowl"]) == pytest.approx([0.5, 0.5, 0.5])
    text = suite_report.report(runs)
    overall, pays, costs, lowest = row(text, VARIANT)
    assert overall.startswith("1.00 (0.00 to ")
    assert (pays, costs, lowest) == ("1 of 2", "1 of 2", "0.50 (noisy-bowl)")
    table = text[text.index(f"| problem | {VARIANT}") :]
    assert row(table, "bowl") == ["2.00 (2.00 to 2.00)", "3.00"]
    assert row(table, "noisy-bowl") == ["0.50 (0.50 to 0.50)", "-"]


def test_failed_runs_are_named_and_one_with_nothing_is_left_out():
    task, whole = line("turbo", "bowl", 0, 1.0)
    runs = dict([line("auto", "bowl", 0, 2.0), (task, {**whole, "error": "ValueError: no"})])
    empty = Task("random", "bowl", 0, 20)
    runs[empty] = {**empty._asdict(), "error": "ImportError: no"}
    text = suite_report.report(runs)
    assert "2 failed (random on bowl, turbo on bowl); they count with the best value that they had by then" in text
    assert row(text[text.index("Final simple regret, median") :], "bowl") == ["2 (1)", "**1** (1)"]


# --- the command


def test_the_command_runs_reports_and_resumes(tmp_path, capsys):
    out = tmp_path / "small.jsonl"
    arguments = ["--methods", "random", "auto", "--problems", "bowl", "far", "--seeds", "2", "--budget", "10"]
    arguments += ["--jobs", "1", "--out", str(out)]
    assert suite.main(arguments) == 0
    assert "far is left out: no_such_package not installed" in capsys.readouterr().err
    kept = out.read_text()
    assert [(r["method"], r["seed"]) for r in map(json.loads, kept.splitlines())] == [
        ("auto", 0), ("random", 0), ("auto", 1), ("random", 1),
    ]  # fmt: skip
    assert "## Development set, 10 evaluations" in out.with_suffix(".md").read_text()
    assert suite.main(arguments) == 0
    assert out.read_text() == kept
    assert "4 of 4 runs are in" in capsys.readouterr().err
    assert suite.main(["--report", "--out", str(tmp_path / "none.jsonl")]) == 0
    assert "There are no runs yet." in (tmp_path / "none.md").read_text()


def test_hebo_is_left_out_where_its_environment_is_not_given(capsys, monkeypatch):
    monkeypatch.delenv(suite.HEBO_PYTHON, raising=False)
    options = suite.parse_options(["--methods", "hebo", "random", "--problems", "bowl", "--seeds", "1"])
    assert {task.method for task in suite.tasks(options)} == {"random"}
    assert "hebo is left out: HEBO (--hebo, or $HEBO_PYTHON)" in capsys.readouterr().err
    monkeypatch.setenv(suite.HEBO_PYTHON, "")  # restored afterwards
    options = suite.parse_options(["--methods", "hebo", "--problems", "bowl", "--hebo", "/somewhere/python"])
    assert {task.method for task in suite.tasks(options)} == {"hebo"}


def test_the_ablation_chooses_its_methods():
    assert suite.parse_options(["--ablation"]).methods == ["auto", *ABLATION]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "magic"], "invalid choice: 'magic'"),
        (["--problems", "other-bowl"], "other-bowl not in the development set, which has bowl, noisy-bowl"),
        (["--ablation", "--methods", "auto"], "leave out --methods"),
        (["--seeds", "0"], "--seeds and --jobs must be at least 1"),
        (["--budget", "5"], "--budget at least 10"),
        (["--out", "runs.json"], "must be named .jsonl"),
    ],
)
def test_wrong_options_are_explained(arguments, message, capsys):
    with pytest.raises(SystemExit) as stop:
        suite.main([*arguments, "--report"])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_a_file_of_something_else_is_named(tmp_path):
    out = tmp_path / "other.jsonl"
    out.write_text('{"method": "auto"}\n')
    with pytest.raises(SystemExit, match=r"suite\.py: .*other\.jsonl, line 1 is not a run"):
        suite.main(["--report", "--out", str(out)])
