"""SumboSearch in a real local Ray."""

import pytest

pytest.importorskip("ray.tune", reason="Ray Tune is not installed (pip install 'sumbo[ray]')")

import ray
from ray import tune

import sumbo
from sumbo import replay
from sumbo.errors import SettingError, SpaceError, StateError
from sumbo.integrations.ray import SumboSearch, translated

pytestmark = pytest.mark.filterwarnings("default")  # what Ray says of itself is not ours to answer for

SPACE = {
    "lr": tune.loguniform(1e-4, 1e-1),
    "net": {"layers": tune.randint(1, 5), "act": tune.choice(["relu", ("a", "tuple")])},
    "drop": tune.uniform(0, 1),
    "fixed": 7,
}


def loss(config):
    return abs(config["drop"] - 0.3) + config["net"]["layers"] + (config["net"]["act"] == "relu")


@pytest.fixture(scope="module")
def local_ray():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


def test_a_search_in_ray_fails_and_is_restored(local_ray, tmp_path):
    def train(config):  # in here, so that Ray sends it as it is: its workers cannot import this module
        if config["drop"] > 0.9:
            raise ValueError("diverged")
        layers, act = config["net"]["layers"], config["net"]["act"]
        tune.report({"loss": abs(config["drop"] - 0.3) + layers + (act == "relu") + config["fixed"]})

    search = SumboSearch(seed=1)
    settings = tune.TuneConfig(metric="loss", mode="min", search_alg=search, num_samples=12, reuse_actors=True)
    run = tune.RunConfig(name="first", storage_path=str(tmp_path), verbose=0)
    results = tune.Tuner(train, param_space=SPACE, tune_config=settings, run_config=run).fit()
    trials = search.optimizer.trials
    assert len(trials) == 12
    assert sorted(t.value for t in trials if t.value is not None) == sorted(
        r.metrics["loss"] for r in results if r.error is None
    )
    assert {t.state for t in trials if t.params["drop"] > 0.9} <= {"failed"}
    assert replay(search.optimizer).exact

    again = SumboSearch(seed=99)
    assert again.set_search_properties("loss", "min", SPACE)
    again.restore_from_dir(str(tmp_path / "first"))
    assert [t.params for t in again.optimizer.trials] == [t.params for t in trials]
    assert again.suggest("next") == search.suggest("next")


def test_saved_and_restored_with_trials_running(tmp_path):
    search = SumboSearch(SPACE, metric="loss", mode="max", seed=3)
    configs = {f"t{i}": search.suggest(f"t{i}") for i in range(14)}
    for i in range(12):
        search.on_trial_complete(f"t{i}", {"loss": loss(configs[f"t{i}"])})
    search.save(str(tmp_path / "state"))
    again = SumboSearch(SPACE, seed=4)
    again.restore(str(tmp_path / "state"))
    for each in (search, again):
        each.on_trial_complete("t12", error=True)
        each.on_trial_complete("t13", {"other": 1.0})
        each.on_trial_complete("unknown", {"loss": 1.0})
    assert again.suggest("t14") == search.suggest("t14")
    last = again.optimizer.trials[12:14]
    assert last[0].reason == "the trial ended with an error"
    assert last[1].reason.startswith("loss: tell needs a value")
    assert again.optimizer.direction == "maximize"


def test_spaces_are_translated():
    space, choices = translated(SPACE)
    assert list(space) == ["lr", "net/layers", "net/act", "drop"] or set(space) == {
        "lr",
        "net/layers",
        "net/act",
        "drop",
    }
    assert space["lr"] == sumbo.Float(1e-4, 1e-1, log=True)
    assert space["net/layers"] == sumbo.Int(1, 4)
    assert choices == {"net/act": ["relu", ("a", "tuple")]}
    own = SumboSearch({"a": sumbo.Float(0, 1)}, metric="m", mode="min", seed=0)
    assert 0 <= own.suggest("x")["a"] <= 1


@pytest.mark.parametrize(
    ("space", "words"),
    [
        ({"a": tune.quniform(0, 1, 0.1)}, "a: sumbo searches tune.uniform"),
        ({"a": tune.randn(0, 1)}, "a: sumbo searches tune.uniform"),
        ({"a": tune.grid_search([1, 2])}, "grid_search at a"),
        ({"a": 3}, "nothing to search"),
    ],
)
def test_what_cannot_be_searched_is_said(space, words):
    with pytest.raises(SpaceError, match=words):
        SumboSearch(space)


def test_mistakes_are_said(tmp_path):
    with pytest.raises(SettingError, match="mode must be"):
        SumboSearch(mode="minimize")
    with pytest.raises(SettingError, match="needs a space, a metric and a mode"):
        SumboSearch().suggest("a")
    search = SumboSearch({"a": tune.uniform(0, 1)}, metric="m", mode="min", seed=0)
    assert search.set_search_properties("m", "min", {"b": tune.uniform(0, 1)}) is False
    search.save(str(tmp_path / "state"))
    with pytest.raises(StateError, match="of another space"):
        SumboSearch(SPACE, metric="m", mode="min").restore(str(tmp_path / "state"))
    (tmp_path / "state").write_text("{}")
    with pytest.raises(StateError, match=r"expected a file of SumboSearch\.save"):
        search.restore(str(tmp_path / "state"))
