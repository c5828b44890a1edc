"""One self-contained page that shows what a search learned.

`write` makes it, of what `minimize` returned, an `Optimizer`, or a view; `view` and `from_optuna` make views, which
keep what was computed for further figures by `sumbo.plot`.
"""

from typing import Any

from sumbo.report.page import write
from sumbo.views.view import View
from sumbo.views.view import view_of as view

__all__ = ["View", "from_optuna", "view", "write"]


def from_optuna(study: Any, *, name: str | None = None) -> View:
    """A view of an Optuna study, whatever sampler made it: for `write`, and for the figures of `sumbo.plot`.

    Args:
        study: with one objective.
        name: a heading other than the study's name.

    Example:
        >>> import optuna
        >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
        >>> study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), study_name="random")
        >>> study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
        >>> from_optuna(study).best.value == study.best_value
        True

    Raises:
        SettingError: it is no Optuna study, or has several objectives.
    """
    from sumbo.report.stored import from_optuna as viewed  # Optuna takes a second to import

    return viewed(study, name=name)
