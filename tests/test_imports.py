"""Imports point one way. Reads the source, so that nested imports and those for type checkers count too."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import sumbo

SOURCE = Path(sumbo.__file__).parent

# A module may import modules of strictly lower layers only. "" is the package itself, `import sumbo`.
LAYERS = {
    "errors": 0,
    "compiled": 1,
    "decomposition": 1,
    "parameters": 1,
    "regret": 1,
    "threads": 1,
    "space": 1.5,
    "knowledge": 2,
    "linalg": 2,
    "kernel_loops": 1.5,
    "kernels": 2,
    "maximise": 3,
    "evidence": 3,
    "exact": 4,
    "sparse": 4,
    "paths": 3,
    "acquisition": 3,
    "problems.base": 3,
    "problems.additive": 3.1,
    "problems.classic": 3.1,
    "problems.failing": 3.1,
    "problems.mixed": 3.1,
    "problems.astro": 3.1,
    "problems.cascade": 3.1,
    "problems.faces": 3.15,
    "problems": 3.2,
    "fit": 4,
    "gp": 5,
    "warmup": 6,
    "asking": 6,
    "feasibility": 6,
    "structure.rules": 5.1,
    "structure.order": 5.2,
    "structure.trials": 5.1,
    "structure.score": 5.2,
    "structure.relaxation": 5.3,
    "structure.walk": 5.3,
    "structure.even": 5.35,
    "structure.climb": 5.4,
    "structure.sampling": 5.5,
    "structure.spectral": 5.3,
    "structure.overlaps": 5.5,
    "structure": 6,
    "methods.base": 7.0,
    "methods.scales": 7.05,
    "methods.learning": 7.1,
    "methods.search": 7.2,
    "methods.paper": 7.2,
    "methods.full": 7.3,
    "methods.add_gp_ucb": 7.4,
    "methods.auto": 7.4,
    "methods.direct": 7.4,
    "methods.random": 7.4,
    "methods.cyclic_groups": 7.5,
    "methods.gp_ei": 7.5,
    "methods.gp_ucb": 7.5,
    "methods.rembo": 7.6,
    "methods.sequential_groups": 7.6,
    "methods": 7.9,
    "sensitivity": 6,
    "explain": 7.95,
    "executors": 1,
    "executors.answers": 1,
    "executors.ahead": 1,
    "executors.serving": 2,
    "executors.borrowed": 2,
    "executors.processes": 3,
    "optimizer": 8,
    "progress": 9,
    "replaying": 9,
    "run": 10,
    "": 10.5,
    "integrations": 11,
    "integrations.optuna.translation": 11.1,
    "integrations.optuna.records": 11.2,
    "integrations.optuna.sampler": 11.3,
    "integrations.optuna.replaying": 11.35,
    "integrations.optuna": 11.4,
    "integrations.ray": 11.1,
    "integrations.sklearn": 11.1,
    "views": 1,
    "views.units": 6,
    "views.leave_out": 6,
    "views.effects": 7,
    "views.pairs": 8.05,
    "views.view": 8.1,
    "plot.style": 8.1,
    "plot.search": 8.2,
    "plot.structure": 8.2,
    "plot.components": 8.2,
    "plot.trust": 8.2,
    "plot": 8.3,
    "report.markup": 8.4,
    "report.canvas": 8.5,
    "report.searching": 8.6,
    "report.learned": 8.6,
    "report.trusting": 8.6,
    "report.page": 8.7,
    "report.stored": 12.2,
    "report": 12.3,
    "demo": 11,
    "studies": 1,
    "studies.owners": 1,
    "studies.objectives": 1,
    "studies.rows": 1,
    "studies.tables": 1.1,
    "studies.programs": 2,
    "studies.file": 3,
    "studies.evaluating": 4,
    "studies.changes": 4,
    "studies.damage": 4,
    "studies.sheets": 4,
    "studies.method": 12,
    "studies.store": 12.1,
    "studies.loop": 12.2,
    "studies.replaying": 12.2,
    "studies.telling": 12.2,
    "reproduce": 1,
    "reproduce.tasks": 1,
    "reproduce.runs": 2,
    "reproduce.results": 2,
    "reproduce.compare": 11,
    "reproduce.rates": 11,
    "reproduce.claims": 11.1,
    "reproduce.theory": 11.2,
    "reproduce.plan": 11.2,
    "reproduce.figures": 11.3,
    "reproduce.page": 11.3,
    "cli.reproducing": 13,
    "cli.parser": 13,
    "cli.completion": 13,
    "cli.looking": 13,
    "cli.reporting": 13,
    "cli.commands": 13.1,
    "cli": 13.2,
    "__main__": 14,
}

# Some must not even look at everything below them.
ONLY = {
    "errors": set(),
    "compiled": {"errors"},
    "decomposition": {"errors"},
    "maximise": {"compiled"},
    "acquisition": {"errors", "kernels"},
    "problems.base": {"errors", "regret", "space"},
    "problems.additive": {"errors", "regret", "space", "problems.base"},
    "problems.classic": {"errors", "regret", "space", "problems.base"},
    "problems.failing": {"errors", "regret", "space", "problems.base"},
    "problems.mixed": {"errors", "regret", "space", "problems.base"},
    "problems.astro": {"errors", "regret", "space", "problems.base"},
    "problems.cascade": {"errors", "regret"},
    "problems.faces": {"errors", "regret", "space", "problems.base", "problems.cascade"},
    "problems": {f"problems.{name}" for name in ("base", "additive", "astro", "classic", "faces", "failing", "mixed")}
    | {"errors"},
}


def name_of(path):
    """src/sumbo/methods/base.py -> methods.base; a package by its own name."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(path): path for path in sorted(SOURCE.rglob("*.py"))}


def layer_of(module):
    """The layer of a module, or of the nearest package around it that has one and is not split up."""
    if module in LAYERS:
        return LAYERS[module]
    package = module.partition(".")[0]
    split = any(known.startswith(f"{package}.") for known in LAYERS)
    return None if split or "." not in module else LAYERS.get(package)


def imported(source, module, *, is_package=False):
    """The sumbo modules that a source imports, without the leading "sumbo."; "" is sumbo itself."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                here = ["sumbo", *filter(None, module.split("."))]
                here = here[: len(here) - node.level + is_package]
                base = ".".join([*here, *filter(None, [node.module])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                # `from sumbo import kernels` means the module, `from sumbo import minimize` the package
                found.add(inner if inner.removeprefix("sumbo.") in FILES else base)
    ours = {name for name in found if name == "sumbo" or name.startswith("sumbo.")}
    return {name.removeprefix("sumbo").removeprefix(".") for name in ours}


def wrong_arrows(module, targets):
    """Sentences about the imports of a module that are not allowed."""
    problems = []
    for target in sorted(targets - {module}):
        if layer_of(target) is None:
            problems.append(f"{module} imports {target}, which has no layer: add it to LAYERS in tests/test_imports.py")
        elif not layer_of(target) < layer_of(module):
            problems.append(
                f"{module} (layer {layer_of(module)}) imports {target} (layer {layer_of(target)}), "
                "which is not below it: move what both need down"
            )
        elif module in ONLY and target not in ONLY[module]:
            problems.append(f"{module} imports {target}; it may import only {sorted(ONLY[module]) or 'nothing'}")
    return problems


@pytest.mark.parametrize("module", FILES, ids=lambda module: module or "sumbo")
def test_imports_point_down(module):
    assert layer_of(module) is not None, f"{module} has no layer: add it to LAYERS in tests/test_imports.py"
    source = FILES[module].read_text(encoding="utf-8")
    problems = wrong_arrows(module, imported(source, module, is_package=FILES[module].name == "__init__.py"))
    assert not problems, "\n".join(problems)


# --- is the test itself awake? ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import sumbo.gp", {"gp"}),
        ("import sumbo.gp as g, os", {"gp"}),
        ("from sumbo.gp import AdditiveGP", {"gp"}),
        ("from sumbo import kernels, minimize", {"kernels", ""}),
        ("def f():\n    from sumbo.run import minimize", {"run"}),
        ("if TYPE_CHECKING:\n    from sumbo.optimizer import Trial", {"optimizer"}),
        ("try:\n    import sumbo\nexcept ImportError:\n    pass", {""}),
        ("from .base import Query", {"methods.base"}),
        ("from . import base", {"methods.base"}),
        ("from .. import gp", {"gp"}),
        ("from ..gp import AdditiveGP", {"gp"}),
        ("import numpy as np, sumbology", set()),
    ],
)
def test_every_way_to_import_is_seen(source, expected):
    assert imported(source, "methods.search") == expected


def test_relative_imports_of_a_package_itself():
    assert imported("from .base import Query", "methods", is_package=True) == {"methods.base"}


def test_wrong_arrows_are_reported():
    assert wrong_arrows("gp", {"kernels", "fit"}) == []
    assert "is not below it" in wrong_arrows("kernels", {"gp"})[0]
    assert "is not below it" in wrong_arrows("linalg", {"kernels"})[0]  # the same layer
    assert "may import only" in wrong_arrows("maximise", {"errors"})[0]
    assert "add it to LAYERS" in wrong_arrows("gp", {"brand_new"})[0]
    assert "is not below it" in wrong_arrows("optimizer", {""})[0]


def test_new_modules_need_a_layer():
    assert layer_of("brand_new") is None
    assert layer_of("methods.brand_new") is None
    assert layer_of("demo.part") == LAYERS["demo"]


# --- quick to import ----------------------------------------------------------------------------------------


def test_importing_sumbo_imports_nothing_heavy():
    code = "import sys, sumbo; print(*{'numpy', 'scipy', 'numba', 'rich', 'llvmlite'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == ""
    assert result.stderr == ""


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="module 'sumbo' has no attribute 'minimise'"):
        _ = sumbo.minimise
