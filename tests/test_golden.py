"""The suggestions of every method are those on record, and the same wherever trials are kept and whoever runs them."""

import functools
import importlib
import json

import pytest
import sqlalchemy as sa
from golden import FILE, METHODS, SPACES, made_with, sequence

import sumbo
from sumbo import Categorical, Space
from sumbo.cli import main
from sumbo.methods import resolve
from sumbo.study import storage
from sumbo.study.files.toml import load
from sumbo.study.optimizer import Optimizer
from sumbo.study.stored import StoredStudy

ASKS = 25  # `python -m golden compare` does all 60
BUDGET = 16
RECORD = json.loads(FILE.read_text())
in_memory = functools.cache(functools.partial(sequence, asks=ASKS))


@pytest.mark.skipif(RECORD["made_with"] != made_with(), reason="on record with another processor or other libraries")
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("method", METHODS)
def test_suggestions_are_those_on_record(method, space):
    assert in_memory(method, space) == RECORD["sequences"][f"{method} {space}"][:ASKS]


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("method", ["auto", "seq-groups"])  # both leave a state, and a word beside each suggestion
def test_suggestions_of_a_stored_study_are_those_in_memory(method, space, tmp_path):
    def stored(space, method, direction, seed, budget):
        engine = storage.open_engine(f"sqlite:///{tmp_path}/study.db")
        row = {"name": "s", "version": storage.VERSION, "direction": direction, "space": "", "seed": "", "sequence": 0}
        with engine.begin() as connection:
            study_id = connection.execute(
                sa.insert(storage.studies).values(row).returning(storage.studies.c.id)
            ).scalar_one()
        return Optimizer._on(storage.SqlLedger(engine, study_id, space), resolve(method), direction, seed, budget)

    assert sequence(method, space, ASKS, stored) == in_memory(method, space)


OBJECTIVE = """
def f(params):
    numbers = [v if isinstance(v, (int, float)) else len(v) for v in params.values()]
    value = sum((v - 0.3 * i) ** 2 for i, v in enumerate(numbers)) + numbers[0] * numbers[-1]
    if str(value)[-1] == "3":
        raise ValueError("no such point")
    return value
"""


@pytest.mark.parametrize("name", SPACES)
def test_minimize_ask_and_tell_and_sumbo_run_propose_the_same(name, tmp_path, monkeypatch, capsys):
    (tmp_path / f"objective_{name}.py").write_text(OBJECTIVE)
    monkeypatch.syspath_prepend(tmp_path)
    f, space = importlib.import_module(f"objective_{name}").f, writable(SPACES[name])

    result = sumbo.minimize(f, space, BUDGET, seed=7, progress=False)
    found = [json.dumps(trial.params) for trial in result.trials]

    opt = Optimizer(space, seed=7, budget=BUDGET)
    for _ in range(BUDGET):
        trial = opt.ask()
        try:
            opt.tell(trial, f(trial.params))
        except ValueError:
            opt.tell(trial, failed=True)
    assert [json.dumps(trial.params) for trial in opt.trials] == found

    path = tmp_path / "study.toml"
    path.write_text(
        f'goal = "minimize"\nobjective = "objective_{name}:f"\nbudget = {BUDGET}\nseed = 7\n' + tables(space)
    )
    assert main(["run", str(path)]) == 0
    assert [json.dumps(record.params) for record in StoredStudy.open(load(path), create=False).records] == found


def writable(space):
    """The space without a None, which a study file has no word for."""

    def change(p):
        return Categorical(["none" if c is None else c for c in p.choices]) if isinstance(p, Categorical) else p

    return Space({name: change(space[name]) for name in space})


def tables(space):
    """The space in a study file."""
    lines = []
    for parameter in space.to_dict()["params"]:
        lines.append(f"[space.{parameter.pop('name')}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in parameter.items()]
    return "\n".join(lines)
