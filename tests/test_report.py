"""The page as text: complete, well-formed, safe, of bounded size, asked for in all ways. In a browser: see e2e/."""

import functools
import html
import json
import os
import re
import signal
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import optuna
import pytest
from reports import HOSTILE, evaluated, view_of_case
from studies import call, command, start, until, write_study

import sumbo
from sumbo import plot
from sumbo.cli import main, show
from sumbo.errors import SettingError
from sumbo.insights.analysis import StudyAnalysis
from sumbo.report.markup import script_safe, tag
from sumbo.report.page import page, write
from sumbo.report.sections import percent

EMPTY_ELEMENTS = {"meta", "input", "br", "link"}
SECTIONS = ["search", "best", "structure", "effects", "trust", "time"]


class Reader(HTMLParser):
    """A page's elements, ids and texts; complains of elements that are not closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.text = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, name, attributes):
        self.elements.append((name, dict(attributes)))
        if name not in EMPTY_ELEMENTS:
            self.open.append(name)

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.text.append(data)

    def all(self, name):
        return [attributes for element, attributes in self.elements if element == name]

    @property
    def ids(self):
        return [a["id"] for _, a in self.elements if "id" in a]


LIMITS = ["constrained", "conditional", "contextual", "mixture"]
CHEAP = ["empty", "one_trial", "all_failed", "constant", "categories", "hostile"]


@pytest.fixture(scope="module")
def pages():
    made = {}

    def page_of(name):
        if name not in made:
            made[name] = page([view_of_case(name)])
        return made[name]

    return page_of


# --- every page ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ordinary", *CHEAP, *LIMITS])
def test_pages_are_well_formed_and_complete(pages, name):
    text = pages(name)
    reader = Reader(text)
    assert len(reader.ids) == len(set(reader.ids))
    assert set(SECTIONS) <= set(reader.ids)
    targets = [a["href"][1:] for a in reader.all("a")]
    assert set(targets) <= set(reader.ids), "links lead to places of the page only"
    assert [a["lang"] for a in reader.all("html")] == ["en"]
    assert {"header", "nav", "main", "footer"} <= {element for element, _ in reader.elements}
    assert len(reader.all("h1")) == 1
    assert len(reader.all("caption")) == len(reader.all("table"))
    charts = [a for a in reader.all("div") if "data-figure" in a]
    assert all(a["role"] == "img" and a["aria-label"] for a in charts)
    fields = {a["id"] for a in reader.all("input") + reader.all("select")}
    assert fields <= {a["for"] for a in reader.all("label")}


@pytest.mark.parametrize("name", ["ordinary", *CHEAP])
def test_pages_fetch_nothing(pages, name):
    reader = Reader(pages(name))
    for element, attributes in reader.elements:
        assert not {"src", "srcset", "action", "onload", "onerror", "onclick"} & attributes.keys(), (
            element,
            attributes,
        )
    policy = next(a["content"] for a in reader.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    scripts = [a for a in reader.all("script") if "type" not in a]
    assert all(f"'nonce-{a['nonce']}'" in policy for a in scripts)


@pytest.mark.parametrize("name", ["study.toml", "study.db", "table.csv"])
def test_a_page_takes_the_place_of_nothing_but_a_page(name, tmp_path):
    """A slip of `--out` would lose all that was told."""
    study = write_study(tmp_path)
    call("ask", study, "--csv", tmp_path / "table.csv")
    before = (tmp_path / name).read_bytes()
    error = call("report", study, "--out", tmp_path / name, code=1)["error"]
    assert "there is such a file already, and it is no HTML page" in error
    assert (tmp_path / name).read_bytes() == before


def test_nonces_are_never_used_twice():
    texts = [page([view_of_case("empty")]) for _ in range(2)]
    nonces = [re.search("nonce-([^']+)'", text).group(1) for text in texts]
    assert nonces[0] != nonces[1]
    assert min(map(len, nonces)) >= 24


def test_data_in_the_page_are_json(pages):
    for name in ("ordinary", "hostile"):
        for key in ("figures", "sliders"):
            inside = re.search(rf'id="{key}">(.*?)</script>', pages(name), re.DOTALL).group(1)
            assert isinstance(json.loads(inside), list)
            assert len(inside) > 2 or (name, key) == ("hostile", "sliders")


# --- what it says ------------------------------------------------------------------------------------------------


def said(text):
    return " ".join(" ".join(Reader(text).text).split())


def test_ordinary_page_tells_the_story_without_figures(pages):
    text = said(pages("ordinary"))
    best = max(view_of_case("ordinary").in_state("done"), key=lambda row: -row.value)
    assert f"trial {best.number}, value {best.value:.6g}" in text
    assert "lr and batch (1.00)" in text
    assert "it melted" in text
    assert "running or waiting" in text
    assert "8 to 512, log" in text
    assert "in the units of the value" in text


@pytest.mark.parametrize("name", LIMITS)
def test_pages_of_problems_as_they_are_have_no_holes(pages, name):
    """What does not exist or is not allowed is blank, in tables and in what scripts read."""
    assert not re.search(r"\b(nan|inf)\b", said(pages(name)), re.IGNORECASE)
    for key in ("figures", "sliders"):
        inside = re.search(rf'id="{key}">(.*?)</script>', pages(name), re.DOTALL).group(1)
        json.loads(inside, parse_constant=pytest.fail)


def test_a_page_says_which_constraint_binds(pages):
    text, view = said(pages("constrained")), view_of_case("constrained")
    stress, _ = view.constraint_rows
    assert f"stress <= 1 binds ({percent(stress.binds)}): without it, {stress.without:.4g} is expected, not" in text
    assert "mass >= 0.2 binds" not in text
    assert f"stress <= 1 {view.best.constraints['stress']:.6g} {stress.kept:.0%} {percent(stress.holds)}" in text
    feasible = [row for row in view.in_state("done") if row.constraints["stress"] <= 1]
    assert f"{len(feasible)} of 40 trials with a value are feasible." in text
    assert f"Best parameters: trial {view.best.number}" in text
    assert view.best.value == min(row.value for row in feasible) > min(row.value for row in view.in_state("done"))
    assert str(view.best_value) in text
    assert f"probability {percent(view.recommendation.probability_feasible)}" in text
    states = re.findall(r'<th scope="row">\d+</th><td>(\w+)</td>', pages("constrained"))
    assert (states.count("done"), states.count("infeasible")) == (len(feasible), 40 - len(feasible))


def test_a_page_says_when_a_parameter_exists_who_sets_it_and_what_is_known(pages):
    text = said(pages("conditional"))
    assert "2 to 5; exists where kernel is poly" in text
    assert "exists where kernel is rbf or poly" in text
    assert "coarse < fine < extra fine" in text
    assert "20.000 to 80.000, in steps of 0.125" in text  # as many digits as the step needs
    assert "Where a parameter does not exist, it changes nothing." in text
    text = said(pages("contextual"))
    assert "0 to 40; set by the world" in text
    assert "ambient (set by the world)" in text
    assert "as in the latest trial" in text
    text = said(pages("mixture"))
    for known in ("cement + sand + water == 1", "cement + sand <= 0.8", "melts <= 0"):
        assert known in text
    assert "average over the allowed points" in text
    assert "water follows from the others." in text


def test_parameters_that_do_not_exist_in_the_best_trial_are_blank():
    view = view_of_case("conditional")
    rows = [replace(row, value=0.0 if row.params["kernel"] == "tree" else row.value) for row in view.rows]
    text = page([replace(view, rows=tuple(rows))]).partition("<caption>Best parameters")[2].partition("</table>")[0]
    assert '<th scope="row">degree</th><td></td>' in text


def test_without_a_feasible_trial_nothing_is_best():
    opt = sumbo.Optimizer([(0, 1)] * 2, seed=0, constraints=["c"])
    for x in np.random.default_rng(0).random((12, 2)):
        opt.observe(x, x[0], constraints={"c": 1 + x[1]})
    view = sumbo.report.view(opt)
    text = said(page([view]))
    assert view.best is None
    assert "No trial is feasible yet, so there are no best parameters." in text
    assert "which constraint binds cannot be told" in text
    assert "none feasible" in text


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("empty", "There are no trials yet."),
        ("one_trial", "There are 1 values so far, and at least 10 are needed"),
        ("all_failed", "No trial has a value yet, so there are no best parameters."),
        ("all_failed", "There are 0 values so far"),
        ("constant", "All values are the same, so there is nothing to explain."),
    ],
)
def test_pages_with_little_to_say_say_so(pages, name, expected):
    assert expected in said(pages(name))


def test_best_parameters_can_be_copied_as_json_and_as_code(pages):
    reader = Reader(pages("ordinary"))
    best = view_of_case("ordinary").best
    copies = [json.loads(a["data-copy"]) for a in reader.all("button") if "data-copy" in a]
    assert json.loads(copies[1]) == dict(best.params)
    found = {}
    exec(copies[2], found)
    assert found["best"] == dict(best.params)
    shown = [html.unescape(text) for text in re.findall(r"<pre><code>(.*?)</code></pre>", pages("ordinary"), re.DOTALL)]
    assert shown == copies[1:]


def test_a_search_without_a_model_is_explained_all_the_same():
    opt = sumbo.Optimizer([(0, 1)] * 2, "random", seed=0)
    for _ in range(12):
        trial = opt.ask()
        opt.tell(trial, float(trial.x[0]))
    text = said(page([sumbo.report.view(opt)]))
    assert "The search was random. What follows is a model that sumbo made of its trials afterwards." in text


def test_compressed_values_are_said_to_be():
    rng = np.random.default_rng(0)
    opt = sumbo.Optimizer([(0, 1)] * 2, seed=0)
    for _ in range(40):
        x = rng.random(2)
        opt.observe(x, float(np.exp(12 * np.abs(x - 0.4).sum())))
    view = sumbo.report.view(opt)
    assert view.warped
    text = said(page([view]))
    assert "The model compresses values that are worse than the median" in text
    assert "standard deviations of the compressed values" in text


def test_the_table_behind_a_curve_has_its_numbers():
    """On a log scale, neighbouring places of a curve are the same whole number: it has fewer than were asked for."""
    opt = evaluated({"n": sumbo.Int(1, 200, log=True)}, lambda p: float(np.log(p["n"])), 15)
    view = sumbo.report.view(opt)
    text = page([view])
    behind = text.partition("<caption>Effect of n</caption>")[2].partition("</table>")[0]
    rows = re.findall(r'<th scope="row">(.*?)</th><td class="n">(.*?)</td>', behind)
    line = plot.component(view, "n").data[-1]
    drawn = dict(zip(line.x.tolist(), line.y.tolist(), strict=True))
    assert [float(n) for n, _ in rows][::6] == [1, 200]
    assert [float(effect) for _, effect in rows] == pytest.approx([drawn[float(n)] for n, _ in rows], rel=1e-3)
    assert "Values that surprise the model most" in text


# --- nothing in a name is code -----------------------------------------------------------------------------------


def test_hostile_names_are_text(pages):
    reader = Reader(pages("hostile"))
    assert {element for element, _ in reader.elements}.isdisjoint({"img", "svg", "b"})
    assert not [a for a in reader.all("a") if not a["href"].startswith("#")]
    assert HOSTILE[0] in said(pages("hostile"))
    assert all("nonce" in a or a["type"] in ("application/json", "text/plain") for a in reader.all("script"))


def test_labels_of_figures_have_no_markup_of_users(pages):
    inside = re.search(r'id="figures">(.*?)</script>', pages("hostile"), re.DOTALL).group(1)

    def strings(data):
        if isinstance(data, str):
            yield data
        elif isinstance(data, dict | list):
            for item in data.values() if isinstance(data, dict) else data:
                yield from strings(item)

    texts = list(strings(json.loads(inside)))
    assert any("&lt;img" in text for text in texts)
    for text in texts:
        assert not re.search(r"<(?!br>)", text), text
        assert "$" not in text
        assert "\u202e" not in text


def test_json_cannot_end_its_script():
    text = script_safe(json.dumps({"a": "</script><!--\u2028\u2029&"}, ensure_ascii=False))
    assert not re.search("[<>&\u2028\u2029]", text)
    assert json.loads(text) == {"a": "</script><!--\u2028\u2029&"}


def test_elements_escape_text_and_attributes():
    assert tag("p", "<b>", title='"x" <y>') == '<p title="&quot;x&quot; &lt;y&gt;">&lt;b&gt;</p>'


# --- writing -----------------------------------------------------------------------------------------------------


def test_result_writes_its_report(tmp_path):
    result = sumbo.minimize(lambda x: float(x[0]), [(0, 1)], 3, seed=0, progress=False)
    path = result.report(tmp_path / "report.html")
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def bowl(x, power=2):
    return float(x[0] ** power)


class Bowl:
    def __call__(self, x):
        return bowl(x)


@pytest.mark.parametrize(
    ("objective", "expected"),
    [
        (bowl, "bowl"),
        (functools.partial(bowl, power=4), "bowl"),
        (Bowl(), "Bowl"),
        (lambda x: bowl(x), "Search over x0, x1, x2, x3 and 1 more"),
    ],
)
def test_pages_are_called_by_their_objective(tmp_path, objective, expected):
    result = sumbo.maximize(objective, [(0, 1)] * 5, 2, seed=0, progress=False)

    def headings(path):
        found = re.search(r"<title>(.*?) · sumbo report</title>.*<h1>(.*?)</h1>", path.read_text("utf-8"), re.DOTALL)
        return {html.unescape(text) for text in found.groups()}

    path = tmp_path / "report.html"
    assert headings(result.report(path)) == {expected}
    assert headings(result.report(path, title=HOSTILE[0])) == {HOSTILE[0]}
    assert headings(sumbo.report.write(result.optimizer, path)) == {"Search over x0, x1, x2, x3 and 1 more"}
    assert headings(sumbo.report.write([result, result], path, title="Both")) == {"Both"}
    assert plot.compare([result]).data[0].name == expected


@pytest.mark.parametrize("place", ["nowhere/report.html", "."])
def test_places_that_cannot_be_are_refused(tmp_path, place):
    with pytest.raises(SettingError, match="expected a file in a folder that exists"):
        write(view_of_case("empty"), tmp_path / place)


def test_what_is_no_study_is_refused(tmp_path):
    with pytest.raises(SettingError, match="from_optuna"):
        write(42, tmp_path / "r.html")
    with pytest.raises(SettingError, match="at least one study"):
        page([])


def test_several_studies_are_compared():
    text = page([view_of_case("one_trial"), view_of_case("all_failed")])
    reader = Reader(text)
    assert len(reader.ids) == len(set(reader.ids))
    assert "Comparison" in said(text)
    assert {f"s{k}-{key}" for k in (1, 2) for key in SECTIONS} <= set(reader.ids)


def test_two_thousand_trials_of_twenty_parameters_are_below_five_megabytes():
    opt = sumbo.Optimizer([(0, 1)] * 20, "random", seed=0)
    rng = np.random.default_rng(0)
    for n in range(2000):
        opt.observe(rng.random(20), float(n % 7), failed=False)
    view = sumbo.report.view(opt)
    object.__setattr__(view, "unavailable_reason", "what was learned has a bounded size")
    text = page([view])
    assert len(text.encode()) < 3_500_000
    assert "All 2000 trials" in text


# --- Optuna --------------------------------------------------------------------------------------------------------


@pytest.fixture
def quiet_optuna():
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield
    optuna.logging.set_verbosity(before)


def objective(trial):
    a = trial.suggest_float("a", 0, 1, step=0.25)
    b = trial.suggest_categorical("b", ["x", ("y", 1)])
    c = trial.suggest_float("c", 1e-3, 1, log=True)
    if a == 1.0:
        raise optuna.TrialPruned
    return a + (b == "x") + abs(np.log10(c) + 1)


@pytest.mark.filterwarnings("ignore::UserWarning")  # Optuna dislikes categories that are no plain values
def test_optuna_study_of_another_sampler(quiet_optuna):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), study_name="theirs")
    study.optimize(objective, n_trials=30)
    study.enqueue_trial({"a": 0.5, "b": "x", "c": 0.1})
    study.ask()
    view = sumbo.report.from_optuna(study)
    assert view.best.value == study.best_value
    assert dict(view.best.params) == study.best_params
    assert [row.reason for row in view.in_state("failed")] == ["pruned"] * len(view.in_state("failed"))
    assert len(view.in_state("running")) == 1
    assert view.axis(view.space.names.index("a"), 9)[1] == [0, 0.25, 0.5, 0.75, 1]
    assert view.axis(view.space.names.index("b"), 9)[1] == ["x", ("y", 1)]
    text = said(page([view]))
    assert "The search was of another sampler." in text
    assert "0.001 to 1, log" in text


def test_optuna_studies_that_cannot_be_reported(quiet_optuna):
    with pytest.raises(SettingError, match="one objective, and this study has 2"):
        sumbo.report.from_optuna(optuna.create_study(directions=["minimize", "maximize"]))
    with pytest.raises(SettingError, match="expected an Optuna study; got int"):
        sumbo.report.from_optuna(3)


def test_constraints_and_infinite_values_are_failures(quiet_optuna):
    study = optuna.create_study()
    space = {"x": optuna.distributions.FloatDistribution(0, 1)}
    study.add_trial(optuna.trial.create_trial(value=float("inf"), params={"x": 0.1}, distributions=space))
    study.add_trial(optuna.trial.create_trial(value=2.0, params={"x": 0.2}, distributions=space))
    view = sumbo.report.from_optuna(study)
    assert [row.state for row in view.rows] == ["failed", "done"]
    assert view.rows[0].reason == "value was inf"


def branching(trial):
    if trial.suggest_categorical("kind", ["p", "q"]) == "p":
        return abs(trial.suggest_float("rate", 1e-3, 1, log=True) - 0.1)
    return 0.5 + len(trial.suggest_categorical("words", ["", "a", "bb"]))


def test_parameters_that_only_some_trials_of_an_optuna_study_have(quiet_optuna):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(branching, n_trials=40)
    view = sumbo.report.from_optuna(study)
    assert [dict(row.params) for row in view.rows] == [trial.params for trial in study.trials]
    assert view.notes == ()
    assert view.axis(view.names.index("words"), 9)[1] == ["", "a", "bb"]  # as Optuna's user says it
    assert view.axis(view.names.index("rate"), 2)[1] == [1e-3, 1.0]
    assert "0.001 to 1, log" in said(page([view]))


@pytest.mark.skipif(not hasattr(optuna.trial.FrozenTrial, "constraints"), reason="of Optuna 5")
def test_the_best_of_an_optuna_study_keeps_its_constraints(quiet_optuna):
    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        trial.set_constraint("least", 0.5 - x)
        return x

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=30)
    view = sumbo.report.from_optuna(study)
    assert view.best.value == study.best_value >= 0.5
    assert view.best.constraints == {"least": 0.5 - view.best.value}
    assert "infeasible" in said(page([view]))


# --- the command -----------------------------------------------------------------------------------------------------


def stored(tmp_path, name="study.toml", **more):
    path = write_study(tmp_path, 'command = ["echo", "{a}", "{n}", "{c}", "\\n", "1.5"]\nbudget = 3', name=name, **more)
    call("run", path)
    return path


def test_command_writes_a_page_and_answers(tmp_path):
    study, out = stored(tmp_path, "wing.toml"), tmp_path / "r.html"
    answer = call("report", study, "-o", out)
    assert answer == {"out": str(out), "bytes": out.stat().st_size, "trials": 3}
    text = out.read_text(encoding="utf-8")
    assert "1.5" in said(text)
    assert "<h1>wing</h1>" in text


def test_command_compares_and_takes_any_optuna_storage(tmp_path):
    first, second = stored(tmp_path), stored(tmp_path, "other.toml")
    out = tmp_path / "r.html"
    assert call("report", first, second, "-o", out)["trials"] == 6
    call("export", first, "--optuna", tmp_path / "optuna.db")
    answer = call("report", "--storage", f"sqlite:///{tmp_path}/optuna.db", "study", "-o", out)
    assert answer["trials"] == 3


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nothing.toml"], "there is no such file"),
        (["--storage", "sqlite:///nothing.db", "x"], "there is no such file; correct --storage"),
        (["--storage", "postgresql://me:s3cret@127.0.0.1:1/db", "x"], r"postgresql://me:\*\*\*@127"),
        (["--storage", "nonsense", "x"], r"storage \*{3}: expected sqlite:"),
    ],
)
def test_command_says_what_is_wrong(tmp_path, monkeypatch, capsys, arguments, expected):
    monkeypatch.chdir(tmp_path)
    assert main(["report", *arguments]) == 1
    error = capsys.readouterr().err
    assert re.search(expected, error)
    assert "s3cret" not in error
    assert list(tmp_path.iterdir()) == []


def test_show_tells_what_was_learned(tmp_path):
    study = write_study(
        tmp_path, 'command = ["sh", "-c", "echo {a}", "{n}", "{c}"]\nbudget = 12', method='"random"', name="s.toml"
    )
    call("run", study)
    learned = call("show", study, "--learned")["learned"]
    assert learned["unavailable_reason"] is None
    assert learned["shares"][0][0] == "a"
    assert learned["shares"][0][1] > 0.8
    assert len(learned["interactions"]) == 3
    assert learned["recommendation"]["params"].keys() == {"a", "n", "c"}
    assert learned["constraints"] == []
    assert "learned" not in call("show", study)


def test_show_and_the_page_have_the_same_numbers(monkeypatch, capsys):
    view = view_of_case("constrained")
    monkeypatch.setattr(StudyAnalysis, "of_stored", classmethod(lambda cls, study: view))
    found = show.learned(None)
    assert found["constraints"] == [vars(row) for row in view.constraint_rows]
    point = view.recommendation
    assert (found["recommendation"]["value"], found["recommendation"]["params"]) == (point.value, point.params)
    monkeypatch.setattr(show, "_overview", lambda study, last: "")
    show.show_overview(None, 5, found)
    printed = " ".join(capsys.readouterr().out.split())
    stress = view.constraint_rows[0]
    assert f"stress <= 1 {stress.at_best:.4g} {stress.kept:.4g} {stress.holds:.4g} {stress.binds:.4g}" in printed
    assert f"recommended: {point.value:.5g} +- {point.std:.2g}" in printed


def test_show_draws_the_best_so_far_and_survives_plain_terminals(tmp_path):
    study = stored(tmp_path)
    plain = subprocess.run(
        command("show", study, "--learned"),
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )
    assert plain.returncode == 0
    assert "learned: There are 3 values so far" in plain.stdout


def test_watching_ends_with_the_budget_and_leaves_a_page_that_rests(tmp_path):
    study, out = stored(tmp_path), tmp_path / "r.html"
    call("report", study, "-o", out, "--watch")
    assert "data-watch" not in out.read_text(encoding="utf-8").partition("<head>")[0]


def test_ctrl_c_ends_watching_with_a_page_that_rests(tmp_path):
    study, out = stored(tmp_path), tmp_path / "r.html"
    study.write_text(study.read_text().replace("budget = 3", "budget = 4"))
    process = start("report", study, "-o", out, "--watch")
    until(lambda: "watching" in process.stderr.readline(), 60)
    assert 'data-watch="10"' in out.read_text(encoding="utf-8").partition("<head>")[0]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert "data-watch" not in out.read_text(encoding="utf-8").partition("<head>")[0]
    assert not list(tmp_path.glob("*.tmp"))
