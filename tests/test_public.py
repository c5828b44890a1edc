"""The public names: they are there, they are explained, and their examples run."""

import dataclasses
import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys

import numpy as np
import pytest

import sumbo

# `sumbo.cli` would be `__main__` in disguise; integrations need packages that a core install lacks.
MODULES = sorted(
    info.name
    for info in pkgutil.walk_packages(sumbo.__path__, "sumbo.")
    if not info.name.startswith(("sumbo.integrations", "sumbo.__main__"))
)


@pytest.mark.parametrize("name", sumbo.__all__)
def test_public_names_resolve_and_are_explained(name):
    value = getattr(sumbo, name)
    text = inspect.getdoc(value)
    assert text, f"sumbo.{name} has no docstring"
    assert text.splitlines()[0].strip().endswith((".", ":")), f"sumbo.{name}: the first line is no sentence"
    if dataclasses.is_dataclass(value):
        assert not text.startswith(f"{name}("), f"sumbo.{name} has only the docstring that dataclass makes"


def public_members(cls):
    for name, member in vars(cls).items():
        if isinstance(member, staticmethod | classmethod):
            member = member.__func__
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
            yield name, member


@pytest.mark.parametrize("name", [n for n in sumbo.__all__ if inspect.isclass(getattr(sumbo, n))])
def test_public_members_are_explained(name):
    cls = getattr(sumbo, name)
    # a method that implements an explained abstract one inherits its explanation
    mute = [member for member, _ in public_members(cls) if not inspect.getdoc(getattr(cls, member))]
    assert not mute, f"without a docstring: {mute}"


@pytest.mark.parametrize("name", MODULES)
def test_modules_say_what_they_are_for(name):
    assert importlib.import_module(name).__doc__


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    module = importlib.import_module(name)
    outcome = doctest.testmod(module, extraglobs={"np": np, "sumbo": sumbo})
    assert outcome.failed == 0


@pytest.mark.parametrize("name", sumbo.__all__)
def test_public_names_have_examples(name):
    # That they run is tested above, module by module.
    assert ">>> " in (inspect.getdoc(getattr(sumbo, name)) or "")


def test_names_are_sorted_listed_and_not_repeated():
    assert len(set(sumbo.__all__)) == len(sumbo.__all__)
    assert set(sumbo.__all__) == {*sumbo._HOME_OF, *sumbo._MODULES}
    assert set(sumbo.__all__) <= set(dir(sumbo))


def test_the_names_of_the_design_are_public():
    wanted = """minimize maximize Optimizer Trial Result Space Float Int Categorical AdditiveGP Decomposition
        Auto AddGPUCB GPUCB GPEI REMBO SequentialGroups CyclicGroups Direct Random problems regret plot report"""
    assert set(wanted.split()) <= set(sumbo.__all__)


def test_version():
    assert sumbo.__version__.count(".") == 2


def test_every_error_is_a_sumbo_error_and_an_ordinary_one():
    errors = [e for e in vars(importlib.import_module("sumbo.errors")).values() if inspect.isclass(e)]
    for error in errors:
        assert issubclass(error, sumbo.SumboError)
        if error is not sumbo.SumboError:
            assert issubclass(error, ValueError | RuntimeError)


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="module 'sumbo' has no attribute 'minimise'"):
        _ = sumbo.minimise


# --- quick to import ------------------------------------------------------------------------------------------------

HEAVY = {"numpy", "scipy", "numba", "llvmlite", "sqlalchemy", "optuna", "plotly", "matplotlib", "pandas", "rich"}


@pytest.mark.parametrize(
    ("code", "allowed"),
    [
        ("import sumbo", ""),
        ("import sumbo.cli", ""),
        ("import sumbo.executors.worker", ""),  # in every worker process
        ("import sumbo; sumbo.Space({'x': sumbo.Float(0, 1)})", "numpy"),
        ("import sumbo.study.stored", "numpy sqlalchemy"),  # what looks at stored studies
        ("import sumbo; sumbo.Optimizer, sumbo.minimize, sumbo.AdditiveGP", "numpy scipy"),
        ("import sumbo.plot, sumbo.report", "numpy scipy sqlalchemy"),
    ],
)
def test_importing_a_part_imports_what_it_needs(code, allowed):
    assert imported(code) <= set(allowed.split())


def test_drawing_a_figure_needs_no_compiled_code():
    code = """import sumbo.plot
opt = sumbo.Optimizer([(0, 1)] * 2, "random", seed=0)
for _ in range(3):
    opt.tell(opt.ask(), 1.0)
sumbo.plot.trials(opt), sumbo.plot.times(opt), sumbo.plot.compare([opt, opt])"""
    assert not {"numba", "llvmlite", "optuna"} & imported(code)


def imported(code):
    """The heavy packages that code imports, in a process of its own."""
    code += f"\nimport sys; print(*{HEAVY} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())
