"""The figures, one by one: they are plotly figures, and they show what the study says."""

import builtins
import subprocess
import sys

import numpy as np
import plotly.graph_objects as go
import pytest
from reports import all_failed, conditional, constrained, empty, evaluated, mixture, ordinary

import sumbo
from sumbo import plot
from sumbo.errors import DataError, MissingPackageError, NotFittedError, SettingError
from sumbo.plot.style import label

EVERYWHERE = ("trials", "times")
LEARNED = (
    "interaction_graph",
    "interaction_matrix",
    "shares",
    "group_shares",
    "predictions",
    "calibration",
    "hyperparameters",
)


@pytest.fixture(scope="module")
def view():
    return sumbo.report.view(ordinary())


def named(figure, name):
    return next(trace for trace in figure.data if trace.name == name)


@pytest.mark.parametrize("name", [*EVERYWHERE, *LEARNED])
def test_figures_are_plotlys(view, name):
    assert isinstance(getattr(plot, name)(view), go.Figure)


@pytest.mark.parametrize("name", LEARNED)
def test_figures_that_need_values_say_so(name):
    with pytest.raises(NotFittedError, match="at least 10 are needed"):
        getattr(plot, name)(all_failed())


@pytest.mark.parametrize("name", EVERYWHERE)
def test_a_study_without_trials_has_figures_all_the_same(name):
    assert isinstance(getattr(plot, name)(empty()), go.Figure)


def test_trials_are_all_there(view):
    figure = plot.trials(view)
    done = {row.number: row.value for row in view.in_state("done")}
    shown = named(figure, "trial")
    beyond = [trace for trace in figure.data if trace.name == "beyond the axis"]
    assert len(shown.x) + sum(len(trace.x) for trace in beyond) == len(done)
    assert all(done[n] == y for n, y in zip(shown.x, shown.y, strict=True))
    assert len(named(figure, "failed").x) == len(view.in_state("failed")) > 0
    assert list(named(figure, "running or waiting").x) == [60, 61]
    best = named(figure, "best so far")
    assert best.y[-1] == view.best.value
    assert (np.diff(best.y) <= 0).all()


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_terrible_values_do_not_flatten_the_others(direction):
    sign = 1 if direction == "minimize" else -1
    opt = evaluated([(0, 1)], lambda p: sign * (1e9 if p["x0"] > 0.98 else p["x0"]), 100, direction=direction)
    figure = plot.trials(opt)
    low, high = figure.layout.yaxis.range
    assert high - low < 20
    assert len(named(figure, "beyond the axis").x) == sum(abs(t.value) > 1e6 for t in opt.trials)
    assert named(figure, "best so far").y[-1] == opt.best.value


def test_infeasible_trials_are_marked_and_never_the_best():
    view = sumbo.report.view(constrained())
    figure = plot.trials(view)
    broken = {row.number for row in view.in_state("done") if row.constraints["stress"] > 1}
    assert set(named(figure, "infeasible").x) == broken
    assert not set(named(figure, "trial").x) & broken
    best = named(figure, "best so far")
    assert best.y[-1] == view.best.value > min(row.value for row in view.in_state("done"))
    assert not set(best.x[:-1]) & broken
    assert plot.compare([view]).data[0].y[-1] == view.best.value
    assert any("stress" in text and "(broken)" in text for text in named(figure, "infeasible").hovertext)


def test_axes_of_parameters_with_an_order_a_step_or_a_condition():
    view = sumbo.report.view(conditional())
    grade = plot.component(view, "grade")
    assert list(grade.layout.xaxis.ticktext) == ["coarse", "fine", "extra fine"]
    assert (np.diff(grade.data[-1].y) < 0).all()
    gamma = plot.component(view, "gamma")
    assert (min(gamma.data[-1].x), max(gamma.data[-1].x)) == (1e-3, 1.0)
    drawn = [row for row in view.in_state("done") if "gamma" in row.params]
    assert len(gamma.data[0].x) == len(drawn) < len(view.rows)
    assert np.isfinite(gamma.data[0].y).all()
    kernel = plot.component(view, ["kernel", "degree"]).data[0]
    assert list(kernel.y) == [2, 3, 4, 5]
    columns = np.array(kernel.z).T  # rbf, poly, tree
    assert np.ptp(columns[0]) == np.ptp(columns[2]) == 0.0  # whatever the degree, there is none
    assert np.ptp(columns[1]) > 0.5


def test_parameters_that_never_meet_are_not_drawn_together_and_do_not_interact():
    space = {
        "k": sumbo.Categorical(["a", "b"]),
        "x": sumbo.Float(0, 1, when={"k": "a"}),
        "y": sumbo.Float(0, 1, when={"k": "b"}),
    }
    groups = sumbo.Auto(groups=[("x", "y")])
    view = sumbo.report.view(evaluated(space, lambda p: p.get("x", 0.0) + p.get("y", 0.0), 20, method=groups))
    with pytest.raises(DataError, match="x, y never exist together"):
        plot.component(view, ["x", "y"])
    assert {row.probability for row in view.interactions if {row.first, row.second} == {"x", "y"}} == {0.0}


def test_a_mixture_is_drawn_where_it_is_allowed():
    view = sumbo.report.view(mixture())
    figure = plot.component(view, ["cement", "sand", "water"])
    heat = figure.data[0]
    shown = np.isfinite(np.array(heat.z, dtype=float))
    allowed = np.add.outer(heat.y, heat.x) <= 0.8 + 1e-9
    assert np.array_equal(shown, allowed)
    names = (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text)
    assert names == ("cement", "sand")  # water is what is left
    assert max(plot.component(view, "heat").data[-1].x) <= 0.9


def test_matrix_and_graph_show_the_probabilities(view):
    matrix = plot.interaction_matrix(view).data[0]
    names = list(view.space.names)
    for row in view.interactions:
        assert matrix.z[names.index(row.first)][names.index(row.second)] == row.probability
    texts = [text for trace in plot.interaction_graph(view).data if trace.mode == "text" for text in trace.text]
    assert texts == ["1.00"] * 4  # lr with batch, and u, v, w with each other


def test_numbers_of_the_matrix_can_be_read_wherever_it_is_shown(view):
    """A notebook may be light or dark: what is behind the numbers is the figure's own, and far from their colour."""
    figure = plot.interaction_matrix(view)
    matrix = figure.data[0]
    assert (matrix.textfont.color, figure.layout.plot_bgcolor) == ("black", "white")
    (_, clear), (_, full) = (
        (place, np.array([float(part) for part in colour[5:-1].split(",")])) for place, colour in matrix.colorscale
    )
    for p in np.linspace(0.0, 1.0, 51):
        *cell, opacity = clear + p * (full - clear)
        parts = (opacity * np.array(cell) + (1 - opacity) * 255) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        assert (linear @ [0.2126, 0.7152, 0.0722] + 0.05) / 0.05 >= 4.5  # by WCAG, against black


def test_a_crowded_graph_has_numbers_at_likely_pairs_only():
    noise = np.random.default_rng(1)
    study = evaluated([(0, 1)] * 12, lambda p: 3 * p["x0"] * p["x1"] + noise.normal(0, 0.1), 30)
    figure = plot.interaction_graph(study)
    lines = [trace for trace in figure.data if trace.mode == "lines"]
    written = next(trace for trace in figure.data if trace.mode == "text").text
    assert len(lines) > 20
    assert all(float(text) >= 0.5 for text in written)


def test_few_trials_have_whole_numbers():
    assert plot.trials(evaluated([(0, 1)], lambda p: p["x0"], 3)).layout.xaxis.dtick == 1
    assert plot.trials(evaluated([(0, 1)], lambda p: p["x0"], 30)).layout.xaxis.dtick is None


def test_shares_are_those_of_the_table(view):
    bars = plot.shares(view).data[0]
    assert list(bars.x) == [row.share for row in view.importance.parameters][: len(bars.x)]
    groups = plot.group_shares(view).data[0]
    assert sum(groups.x) == pytest.approx(1.0, abs=0.01)


def test_components_of_each_size(view):
    curve = plot.component(view, "dropout")
    assert curve.layout.xaxis.title.text == "dropout"
    surface = plot.component(view, ["batch", "lr"])
    assert surface.data[0].type == "heatmap"
    assert surface.layout.xaxis.type == "log"
    assert surface.layout.yaxis.type == "log"
    # 8 to 512 on the axis, not 0 to 1, and not beyond
    assert (min(surface.data[0].y), max(surface.data[0].y)) == (8, 512)
    slice_ = plot.component(view, ("u", "v", "w"))
    assert slice_.layout.xaxis.title.text == "u"
    categories = plot.component(view, "act")
    assert list(categories.layout.xaxis.ticktext) == ["relu", "gelu", "tanh"]
    # tanh costs 1.2 more than gelu
    points = categories.data[-1].y
    assert points[2] - points[1] == pytest.approx(1.2, abs=0.5)


def test_components_that_are_none_are_refused(view):
    with pytest.raises(DataError, match="the groups are lr, batch; u, v, w; act; dropout"):
        plot.component(view, ["lr", "act"])


def test_results_optimizers_and_views_are_studies_and_others_are_not(view):
    result = sumbo.minimize(lambda x: float(x[0]), [(0, 1)], 3, seed=0, progress=False)
    for study in (result, result.optimizer, sumbo.report.view(result)):
        assert len(named(plot.trials(study), "trial").x) == 3
    with pytest.raises(SettingError, match="got list"):
        plot.trials([1, 2])


def test_studies_are_compared():
    figure = plot.compare([ordinary(), all_failed()])
    assert len(figure.data) == 2
    assert len(figure.data[1].x) == 0


def test_predictions_are_of_trials_with_a_value(view):
    dots = named(plot.predictions(view), "trials")
    assert len(dots.x) == len(view.in_state("done"))
    assert sorted(dots.y) == pytest.approx(sorted(row.value for row in view.in_state("done")))


def test_labels_are_shown_as_they_are_written():
    assert label("<b>x</b> & $y$") == "&lt;b&gt;x&lt;/b&gt; &amp; &#36;y&#36;"
    assert label("a\nb\u202ec") == "a b\N{REPLACEMENT CHARACTER}c"
    assert label("x" * 50, 10) == "x" * 9 + "…"


def test_without_plotly_the_error_says_what_to_install(monkeypatch, view, tmp_path):
    real = builtins.__import__

    def missing(name, *rest, **more):
        if name.startswith("plotly"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingPackageError, match=r"pip install 'sumbo\[plot\]'"):
        plot.trials(view)
    with pytest.raises(MissingPackageError, match=r"pip install 'sumbo\[plot\]'"):
        sumbo.report.write(view, tmp_path / "r.html")
    assert list(tmp_path.iterdir()) == []


def test_figures_travel_as_small_numbers(view):
    """Arrays go into JSON as base64, which is what keeps pages small."""
    data = plot.trials(view).to_json()
    assert "bdata" in data


@pytest.mark.parametrize("names", ["plot, sumbo.report", "report, sumbo.plot"])
def test_either_can_be_imported_first(names):
    subprocess.run([sys.executable, "-c", f"import sumbo; sumbo.{names}"], check=True)
