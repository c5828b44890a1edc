"""Methods of other packages: named by a string, saved and restored, as ours are."""

import json

import pytest
from studies import write_study

from sumbo import Optimizer, minimize
from sumbo.errors import SettingError, StateError
from sumbo.methods import method_class, method_from_dict, method_to_dict, resolve
from sumbo.study.files.toml import load, method_of

MODULE = """
from dataclasses import dataclass, field
from sumbo import FitSettings, GPEI
from sumbo.methods import Method, Suggestion

@dataclass(frozen=True)
class Steps(Method):
    name = "steps"
    size: float = 0.1
    corners: tuple[int, ...] = (0, 1)
    fit: FitSettings = FitSettings()
    inner: Method = field(default_factory=GPEI)

    def suggest(self, query):
        taken = query.state.get("taken", 0)
        return Suggestion(query.uniform(1)[0] * 0.0 + self.size * taken, {"taken": taken + 1})

class NoMethod:
    name = "nothing"
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a package: modules by name, and what its metadata say."""

    def installed(package, modules, entries):
        folder = tmp_path / package
        for name, source in modules.items():
            folder.mkdir(exist_ok=True)
            (folder / f"{package}_{name}.py").write_text(source)
        info = folder / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name} = {package}_{value}" for name, value in entries.items()]
        (info / "entry_points.txt").write_text("\n".join(["[sumbo.methods]", *lines]))
        monkeypatch.syspath_prepend(folder)

    return installed


@pytest.fixture
def steps(install):
    install("acme", {"search": MODULE}, {"steps": "search:Steps", "nothing": "search:NoMethod"})


def test_a_string_names_it(steps):
    result = minimize(lambda x: float(x[0]), [(0, 1)] * 2, 4, method="steps", progress=False)
    assert [trial.params["x1"] for trial in result.trials] == pytest.approx([0.0, 0.1, 0.2, 0.3])


def test_it_is_restored_from_a_saved_state(steps):
    def advanced(opt, asks):
        for _ in range(asks):
            opt.tell(opt.ask(), 1.0)
        return opt

    method = method_class("steps")(size=0.07, corners=(2, 3))
    opt = advanced(Optimizer([(0, 1)] * 2, method, seed=0), 3)
    again = Optimizer.from_dict(json.loads(json.dumps(opt.to_dict())))
    assert again.method == method
    assert again.trials == opt.trials
    assert [t.params for t in advanced(again, 3).trials] == [t.params for t in advanced(opt, 3).trials]


def test_a_study_file_names_it_with_settings(steps, tmp_path):
    file = load(write_study(tmp_path, method='{name = "steps", size = 0.5, corners = [4]}'))
    assert method_of(file) == method_class("steps")(size=0.5, corners=(4,))


def test_the_nearest_name_may_be_one_of_them(steps):
    with pytest.raises(SettingError, match=r"one of auto, .*, nothing, steps, .*got 'step'. Did you mean 'steps'\?"):
        resolve("step")


def test_what_is_no_method_is_refused(steps):
    with pytest.raises(
        SettingError, match=r"expected a dataclass that is a sumbo.methods.Method with name = 'nothing'"
    ):
        resolve("nothing")


def test_a_package_that_cannot_be_imported_is_named(install):
    install("broken", {"search": "1 / 0"}, {"halves": "search:Halves"})
    with pytest.raises(SettingError, match=r"cannot be imported from broken_search:Halves .ZeroDivisionError"):
        resolve("halves")


def test_two_packages_with_one_name_are_refused(steps, install):
    install("other", {"place": MODULE}, {"steps": "place:Steps"})
    with pytest.raises(SettingError, match="several packages: acme_search:Steps, other_place:Steps"):
        resolve("steps")


def test_ours_keep_their_names(install):
    install("bold", {"search": MODULE}, {"auto": "search:Steps"})
    assert type(resolve("auto")).__module__ == "sumbo.methods.auto"


def test_a_state_whose_package_is_gone_says_so(steps):
    data = method_to_dict(resolve("steps")) | {"type": "leaps"}
    with pytest.raises(StateError, match=r"a method of an installed package; got .*leaps.* Install the package"):
        method_from_dict(data)
