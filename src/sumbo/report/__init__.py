"""One self-contained page that shows what a search learned.

`write` makes it, of what `minimize` returned, an `Optimizer`, or a view; `view` and `from_optuna` make views, which
keep what was computed for further figures by `sumbo.plot`.

>>> result = sumbo.minimize(lambda x: x[0] ** 2, [(-1, 1)], 5, method="random", seed=0)
>>> view(result).best.value == result.value
True
"""

from typing import Any

from sumbo.insights.analysis import StudyAnalysis
from sumbo.insights.analysis import analysis_of as view
from sumbo.report.page import write

__all__ = ["StudyAnalysis", "from_optuna", "view", "write"]


def from_optuna(study: Any, *, name: str | None = None) -> StudyAnalysis:
    """A view of an Optuna study, whatever sampler made it: for `write`, and for the figures of `sumbo.plot`.

    Args:
        study: with one objective.
        name: a heading other than the study's name.

    Raises:
        SettingError: it is no Optuna study, or has several objectives.
        MissingPackageError: Optuna is not installed; pip install 'sumbo[optuna]'.
    """
    from sumbo.integrations.optuna import from_optuna as viewed  # Optuna takes a second to import

    return viewed(study, name=name)
