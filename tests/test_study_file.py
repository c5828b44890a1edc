"""Study files: what they may say, and what is said of mistakes."""

import pytest
from studies import SPACE, write_study

import sumbo
from sumbo.errors import StudyFileError
from sumbo.executors.objectives import Function, Program
from sumbo.study.files.toml import load, method_of

A = '[space.a]\ntype = "float"\nlow = 0\nhigh = 1\n'


def read(folder, text):
    path = folder / "s.toml"
    path.write_text(text, encoding="utf-8")
    return load(path)


def test_a_whole_file(tmp_path):
    study = read(
        tmp_path,
        """
name = "wing"
goal = "maximize"
command = ["./sim", "--a={a}", "{n}{c}", "{{"]
value = "json:out.lift"
timeout = 60
retries = 2
budget = 300
seed = 1
method = {name = "add-gp-ucb", group_size = 4}
together = [["a", "n"]]
max_group_size = 2
storage = "sqlite:///data/wing.db"
workers = 4
"""
        + SPACE,
    )
    assert (study.name, study.goal, study.budget, study.seed, study.workers) == ("wing", "maximize", 300, 1, 4)
    assert study.objective == Program(
        ("./sim", "--a={a}", "{n}{c}", "{{"), "arguments", "json:out.lift", str(tmp_path), 60.0
    )
    assert (study.method, study.settings["group_size"], study.settings["together"]) == ("add-gp-ucb", 4, (("a", "n"),))
    assert (study.timeout, study.retries) == (60.0, 2)
    assert study.storage == f"sqlite:///{tmp_path}/data/wing.db"
    assert study.space["n"] == sumbo.Int(1, 9)
    assert study.space["c"].levels == 3
    assert study.value_column == "value to maximize"


def test_the_shortest_file(tmp_path):
    study = read(tmp_path, f'goal = "minimize"\n{A}')
    assert (study.name, study.budget, study.workers, study.objective) == ("s", None, None, None)
    assert (study.method, study.settings, study.retries) == ("auto", {}, 0)
    assert study.storage == f"sqlite:///{tmp_path}/s.db"
    assert study.space["a"] == sumbo.Float(0, 1)


WING = """
goal = "minimize"
context = ["wind"]
constraints = ["stress <= 250", "mass >= 12", "slack"]
known = ["angle + 2*`sweep back` <= 40", "0 <= angle"]
max_seconds = 86400
[space.angle]
type = "float"
low = 0
high = 15
step = 0.5
[space."sweep back"]
type = "int"
low = 0
high = 30
step = 5
[space.foil]
type = "categorical"
choices = ["naca0012", "naca2412", "flat"]
[space.flap]
type = "float"
low = 0.0
high = 1.0
when = {foil = ["naca2412", "flat"]}
[space.gap]
type = "float"
low = 2.5
high = 2.5
when = {foil = "flat", mesh = "fine"}
[space.mesh]
type = "ordinal"
choices = ["coarse", "fine"]
[space.wind]
type = "float"
low = 0.0
high = 30.0
"""


def test_steps_orders_conditions_contexts_and_constraints(tmp_path):
    study = read(tmp_path, WING)
    assert study.space == sumbo.Space(
        {
            "angle": sumbo.Float(0, 15, step=0.5),
            "sweep back": sumbo.Int(0, 30, step=5),
            "foil": sumbo.Categorical(["naca0012", "naca2412", "flat"]),
            "flap": sumbo.Float(0, 1, when={"foil": ["naca2412", "flat"]}),
            "gap": sumbo.Float(2.5, 2.5, when={"foil": "flat", "mesh": "fine"}),
            "mesh": sumbo.Ordinal(["coarse", "fine"]),
            "wind": sumbo.Float(0, 30),
        },
        context=["wind"],
        constraints=[sumbo.Linear({"angle": 1, "sweep back": 2}, upper=40), sumbo.Linear({"angle": 1}, lower=0)],
    )
    assert [str(constraint) for constraint in study.constraints] == ["stress <= 250", "mass >= 12", "slack <= 0"]
    assert study.measured == ("stress", "mass", "slack")
    assert study.max_seconds == 86400.0
    assert method_of(study).name == "auto"
    assert study.column("std") == "std"
    assert read(tmp_path, WING.replace('"slack"', '"Std"')).column("std") == "trial std"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("step = 0.5", "step = 0", ["space.angle", "above 0"]),
        ("step = 0.5", "step = 0.5\nlog = true", ["space.angle", "log"]),
        ("step = 0.5", "stepp = 0.5", ["'space.angle.stepp'", "did you mean 'step'"]),
        ("step = 5", "step = 2.5", ["space.sweep back", "whole number"]),
        ('choices = ["coarse", "fine"]', "low = 1", ["space.mesh.low", "choices"]),
        ('choices = ["coarse", "fine"]', "", ["space.mesh.choices is missing", "ordinal"]),
        ('["coarse", "fine"]', '["1", 1]', ["space.mesh.choices", "tell apart"]),
        ('{foil = ["naca2412", "flat"]}', '"flat"', ["space.flap", "when must be"]),
        ('{foil = ["naca2412", "flat"]}', "{foil = []}", ["space.flap", "its values"]),
        ('{foil = ["naca2412", "flat"]}', '{fool = "flat"}', ["space: parameter 'flap'", "did you mean 'foil'"]),
        ('{foil = ["naca2412", "flat"]}', '{foil = "flt"}', ["'flap'", "did you mean 'flat'"]),
        ('{foil = ["naca2412", "flat"]}', "{wind = 3}", ["'flap'", "cannot be counted"]),
        ('mesh = "fine"', "gap = 2.5", ["circle"]),
        ('["wind"]', '"wind"', ["context: expected a list of names"]),
        ('["wind"]', '["wnd"]', ["context: unknown 'wnd'", "did you mean 'wind'"]),
        ('["wind"]', '["flap"]', ["context: 'flap' has a condition"]),
        ('"slack"]', '"slack < 3"]', ["constraints: expected", "slack < 3"]),
        ('"slack"]', "3]", ["constraints: expected a list of texts", "stress <= 250"]),
        ('["stress <= 250", "mass >= 12", "slack"]', '"slack"', ["constraints: expected a list of texts"]),
        ('"slack"]', '"mass"]', ["constraints: 'mass' is there twice"]),
        ('"slack"]', '"Value to minimize"]', ["constraints", "rename"]),
        ('"slack"]', '"angle"]', ["constraints", "tell apart", "angle"]),
        ('"0 <= angle"', '"0 <= angel"', ["known[1]", "did you mean 'angle'"]),
        ('"0 <= angle"', '"angle*angle <= 3"', ["known[1]", "not linear"]),
        ('"0 <= angle"', "\"__import__('os').system('touch hacked') <= 3\"", ["known[1]", "only names, numbers"]),
        ('"0 <= angle"', "3", ["known: expected a list of texts"]),
        ('"0 <= angle"', '"mesh <= 1"', ["known: constraint", "'mesh', which is Ordinal"]),
        ("max_seconds = 86400", 'max_seconds = "1 d"', ["max_seconds", "seconds above 0"]),
        (
            'goal = "minimize"',
            'goal = "minimize"\ncommand = ["./sim"]\nparameters = "stdin"',
            ['value: expected "json:KEY", since there are constraints', "'stress', 'mass', 'slack'"],
        ),
    ],
)
def test_mistakes_in_them_are_named_too(old, new, words, tmp_path):
    assert WING.count(old) == 1
    test_mistakes_are_named_with_file_key_and_remedy(WING.replace(old, new), words, tmp_path)
    assert not (tmp_path / "hacked").exists()


def test_a_study_that_cannot_be_searched_is_refused_with_its_file(tmp_path):
    for old, new, words in (
        ('"0 <= angle"', '"angle >= 20"', "angle >= 20|20 <= angle"),
        ('goal = "minimize"', 'goal = "minimize"\nmethod = "gp-ei"', "s.toml: method: .*learns no constraints"),
        (
            'constraints = ["stress <= 250", "mass >= 12", "slack"]',
            'method = "direct"',
            "s.toml: method: .*searches plain boxes, and the space has context",
        ),
    ):
        study = read(tmp_path, WING.replace(old, new))
        with pytest.raises(StudyFileError, match=words):
            method_of(study)


def test_a_function_is_found_beside_the_file(tmp_path):
    study = read(tmp_path, f'goal = "minimize"\nobjective = "a.wing:drag"\n{A}')
    assert study.objective == Function("a.wing", "drag", str(tmp_path))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["goal is missing"]),
        ("goal = 3", ["goal", "in quotes", "got 3"]),
        ('goal = "minimise"', ["goal", "minimize or maximize", "did you mean 'minimize'"]),
        ('gaol = "minimize"', ["unknown key 'gaol'", "did you mean 'goal'"]),
        ('goal = "minimize"', ["space", "[space.angle]"]),
        ('goal = "minimize"\nspace = 3', ["space", "table"]),
        ('goal = "minimize"\n[space]\na = 3', ["space.a", "table"]),
        ('goal = "minimize"\n[space.a]\nlow = 0', ["space.a.type", "float"]),
        ('goal = "minimize"\n[space.a]\ntype = "flaot"', ["space.a.type", "did you mean 'float'"]),
        ('goal = "minimize"\n[space.a]\ntype = "float"\nlow = 0', ["space.a.high is missing"]),
        ('goal = "minimize"\n[space.a]\ntype = "float"\nlow = 0\nhihg = 1', ["'space.a.hihg'", "did you mean 'high'"]),
        ('goal = "minimize"\n[space.a]\ntype = "float"\nlow = 2\nhigh = 1', ["space.a", "swap"]),
        ('goal = "minimize"\n[space.a]\ntype = "int"\nlow = 1.5\nhigh = 2', ["space.a", "whole"]),
        ('goal = "minimize"\n[space.a]\ntype = "float"\nlow = 0\nhigh = 1\nlog = true', ["space.a", "low > 0"]),
        ('goal = "minimize"\n[space.a]\ntype = "categorical"\nchoices = "x"', ["space.a", "list"]),
        ('goal = "minimize"\n[space.a]\ntype = "categorical"', ["space.a.choices is missing"]),
        ('goal = "minimize"\n[space.Trial]\ntype = "float"\nlow = 0\nhigh = 1', ["space.Trial", "rename"]),
        ('goal = "minimize"\n[space." a"]\ntype = "float"\nlow = 0\nhigh = 1', ["space. a", "rename"]),
        (f'goal = "minimize"\nname = ""\n{A}', ["name", "quotes"]),
        (f'goal = "minimize"\nbudget = 0\n{A}', ["budget", "from 1 up", "got 0"]),
        (f'goal = "minimize"\nbudget = "many"\n{A}', ["budget", "whole number", "many"]),
        (f'goal = "minimize"\nbudget = true\n{A}', ["budget", "got True"]),
        (f'goal = "minimize"\nseed = -1\n{A}', ["seed", "from 0 up"]),
        (f'goal = "minimize"\nworkers = 2.5\n{A}', ["workers", "2.5"]),
        (f'goal = "minimize"\nretries = -1\n{A}', ["retries"]),
        (f'goal = "minimize"\ntimeout = 0\n{A}', ["timeout", "above 0"]),
        (f'goal = "minimize"\ntimeout = "1h"\n{A}', ["timeout", "seconds"]),
        (f'goal = "minimize"\nobjective = "wing"\n{A}', ["objective", "module:function"]),
        (f'goal = "minimize"\nobjective = "wing:drag(1)"\n{A}', ["objective", "module:function"]),
        (f'goal = "minimize"\nobjective = "w:d"\ncommand = ["x"]\n{A}', ["either objective or command"]),
        (f'goal = "minimize"\nobjective = "w:d"\nvalue = "last-line"\n{A}', ["value", "command only"]),
        (f'goal = "minimize"\ncommand = "./sim {{a}}"\n{A}', ["command", "list of strings"]),
        (f'goal = "minimize"\ncommand = []\n{A}', ["command", "list of strings"]),
        (f'goal = "minimize"\ncommand = ["s", "{{angel}}", "{{a}}"]\n{A}', ["command", "{angel}"]),
        (f'goal = "minimize"\ncommand = ["s", "{{}}", "{{a}}"]\n{A}', ["command", "{}"]),
        (f'goal = "minimize"\ncommand = ["s"]\n{A}', ["command", "no {a}", "environment"]),
        (f'goal = "minimize"\ncommand = ["s"]\nparameters = "env"\n{A}', ["parameters", "environment", "'env'"]),
        (f'goal = "minimize"\ncommand = ["s", "{{a}}"]\nvalue = "json"\n{A}', ["value", "json:KEY"]),
        (f'goal = "minimize"\ncommand = ["s", "{{a}}"]\nvalue = 3\n{A}', ["value", "last-line"]),
        (f'goal = "minimize"\nmethod = 3\n{A}', ["method", "name"]),
        (f'goal = "minimize"\nmethod = {{group_size = 3}}\n{A}', ["method", "name"]),
        (f'goal = "minimize"\ntogether = ["a"]\n{A}', ["together", "list of lists"]),
        (f'goal = "minimize"\ngroups = 3\n{A}', ["groups", "list of lists"]),
        (f'goal = "minimize"\napart = [["a", "b"]]\n{A}', ["apart", "'b'"]),
        (f'goal = "minimize"\nstorage = "mysql://me:secret@host/db"\n{A}', ["storage", "postgresql://"]),
        (f'goal = "minimize"\nstorage = "wing.db"\n{A}', ["storage", "sqlite:///"]),
        (f'goal = "minimize"\nstorage = "sqlite:///:memory:"\n{A}', ["storage", "file"]),
        (f'goal = "minimize"\nexecutor = "dask://me:secret@host"\n{A}', ["executor", "workers = N"]),
        (
            'goal = "minimize"\ncommand = ["s"]\nparameters = "environment"\n'
            '[space."a=b"]\ntype = "int"\nlow = 0\nhigh = 1',
            ["space.a=b", "environment variable", "rename"],
        ),
        (
            f'goal = "minimize"\nmethod = {{name = "auto", together = [["a"]]}}\ntogether = [["a"]]\n{A}',
            ["together", "said once", "remove one"],
        ),
        ("goal = minimize", ["TOML", "line 1"]),
        ('goal = "minimize"\ngoal = "maximize"', ["TOML"]),
    ],
)
def test_mistakes_are_named_with_file_key_and_remedy(text, words, tmp_path):
    with pytest.raises(StudyFileError) as caught:
        read(tmp_path, text)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 's.toml'}: ")
    for word in words:
        assert word in message
    assert "secret" not in message


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(StudyFileError, match="no such file"):
        load(tmp_path / "nothing.toml")
    with pytest.raises(StudyFileError, match="cannot be read"):
        load(tmp_path)
    (tmp_path / "latin.toml").write_bytes('goal = "\xe4"'.encode("latin-1"))
    with pytest.raises(StudyFileError, match="UTF-8"):
        load(tmp_path / "latin.toml")


@pytest.mark.parametrize(
    ("method", "text", "words"),
    [
        ('"autp"', "", ["Did you mean 'auto'"]),
        ('{name = "add-gp-ucb", group_sise = 4}', "", ["no setting 'group_sise'", "did you mean 'group_size'"]),
        ('{name = "add-gp-ucb", group_size = 0}', "", ["group_size", "from 1 up"]),
        ('{name = "add-gp-ucb", beta = "high"}', "", ["beta"]),
        ('"random"', 'together = [["a", "n"]]', ["no setting 'together'"]),
        ('"auto"', 'together = [["a", "n"]]\napart = [["n", "a"]]', ["apart"]),
    ],
)
def test_mistakes_of_the_method_are_named_too(method, text, words, tmp_path):
    study = load(write_study(tmp_path, text, method=method))
    with pytest.raises(StudyFileError) as caught:
        method_of(study)
    for word in ("study.toml", *words):
        assert word in str(caught.value)


def test_known_structure_reaches_the_method(tmp_path):
    study = load(write_study(tmp_path, 'together = [["a", "n"]]\nmax_group_size = 3', method='"auto"'))
    method = method_of(study)
    assert (method.together, method.max_group_size) == ((("a", "n"),), 3)
