"""Hyperparameters of a scikit-learn estimator, searched by sumbo with cross-validation."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import check_random_state

from sumbo.errors import SettingError, SpaceError
from sumbo.methods import Method, check_count
from sumbo.space import Categorical, Float, Int, Parameter, Space
from sumbo.space.parameters import show
from sumbo.study.optimizer import Optimizer

# frozen scipy.stats distributions that are ranges, by the name of their family
_RANGES: dict[str, Callable[[Any, Any], Parameter]] = {
    "uniform": Float,
    "loguniform": partial(Float, log=True),
    "reciprocal": partial(Float, log=True),
    "randint": Int,
}
_HOPELESS = 10  # give up when none of so many candidates could be fitted


class SumboSearchCV(BaseSearchCV):  # type: ignore[misc]  # scikit-learn has no types
    """Search for hyperparameters, scored by cross-validation; each suggestion learns from all scores before it.

    Used as scikit-learn's own searches are: `fit`, then `best_params_`, `best_score_`, `cv_results_`, and `predict`
    with the best estimator. Candidates are tried one after the other, so `n_jobs` spreads the folds of one; results do
    not depend on it.

    A candidate whose fits fail, or whose score is NaN, teaches the search to keep away. Where all its fits fail it has
    no row in `cv_results_`; `optimizer_.trials` has it, with the reason.

    Args:
        estimator: what to tune; cloned for every fit.
        param_space: for each parameter a `sumbo.Float`, `Int` or `Categorical`, a list of choices, or a uniform,
            loguniform or randint of scipy.stats.
        n_iter: how many candidates to try.
        method: a name such as "auto" or "add-gp-ucb", or a method object with settings.
        scoring: as in `GridSearchCV`. With several metrics, `refit` names the one to search for.
        n_jobs: how many fits at a time.
        refit: fit the best candidate on all data; the name of a metric where there are several.
        cv: how to split.
        verbose: how much to print.
        pre_dispatch: how many fits to hand to joblib in advance.
        random_state: an integer for a search that can be repeated exactly.
        error_score: the score of a fit that fails, or "raise".
        return_train_score: also score on the training folds.

    Attributes:
        optimizer_: the `sumbo.Optimizer`, with its trials and its model.
        best_params_, best_score_, best_index_, best_estimator_, cv_results_, n_splits_, refit_time_, scorer_,
            multimetric_: as in `RandomizedSearchCV`.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> space = {"C": Float(1e-2, 1e3, log=True), "gamma": Float(1e-4, 1.0, log=True)}
        >>> search = SumboSearchCV(SVC(), space, n_iter=12, random_state=0)
        >>> bool(search.fit(*load_iris(return_X_y=True)).best_score_ > 0.95)
        True

    Raises:
        SettingError, SpaceError: when fitting, an argument makes no sense; the message says which and why.
        ValueError: from scikit-learn; among others, none of the first ten candidates could be fitted.
    """

    def __init__(
        self,
        estimator: Any,
        param_space: Mapping[str, Any],
        *,
        n_iter: int = 30,
        method: str | Method = "auto",
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        random_state: Any = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
    ) -> None:
        self.param_space = param_space
        self.n_iter = n_iter
        self.method = method
        self.random_state = random_state
        super().__init__(
            estimator=estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )

    def _run_search(self, evaluate_candidates: Callable[[list[dict[str, Any]]], dict[str, Any]]) -> None:
        """Ask, evaluate and tell, n_iter times. Called by `fit`."""
        n_iter = check_count("n_iter", self.n_iter)
        space, choices = _translated(self.param_space)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.optimizer_ = Optimizer(space, self.method, "maximize", seed, budget=n_iter)
        for i in range(n_iter):
            trial = self.optimizer_.ask()
            params = {name: choices[name][value] if name in choices else value for name, value in trial.params.items()}
            try:
                score = self._score(evaluate_candidates([params]))
            except ValueError as error:
                # This is how scikit-learn says that no fit of a call succeeded; here a call is one candidate.
                hopeless = self.optimizer_.best is None and i + 1 >= min(n_iter, _HOPELESS)
                if hopeless or "fits failed" not in str(error):
                    raise
                self.optimizer_.tell(trial, failed=True, reason=str(error).strip())
                warnings.warn(f"all fits failed with {params}; the search goes on", FitFailedWarning, stacklevel=3)
            else:
                self.optimizer_.tell(trial, score)

    def _score(self, results: Mapping[str, Any]) -> float:
        metric = "score" if "mean_test_score" in results else self.refit
        if not isinstance(metric, str):
            raise SettingError(
                f"with several metrics, refit must name the one to search for; got refit={self.refit!r}. "
                "Set it to one of the names in scoring"
            )
        return float(results[f"mean_test_{metric}"][-1])


def _translated(param_space: Any) -> tuple[Space, dict[str, Sequence[Any]]]:
    """The space, and the choices of parameters given as lists: objects of any kind, which the space knows by index."""
    if not isinstance(param_space, Mapping) or not param_space:
        raise SpaceError(f'param_space: expected a dict such as {{"C": sumbo.Float(0.1, 10)}}, got {show(param_space)}')
    parameters: dict[str, Parameter] = {}
    choices: dict[str, Sequence[Any]] = {}
    for name, given in param_space.items():
        family = getattr(getattr(given, "dist", None), "name", None)
        if isinstance(given, Parameter):
            parameters[name] = given
        elif isinstance(given, list | tuple | np.ndarray) and len(given):
            choices[name] = list(given)
            parameters[name] = Categorical(list(range(len(given))))
        elif family in _RANGES:
            parameters[name] = _RANGES[family](*given.support())
        else:
            raise SpaceError(
                f"parameter {name!r}: expected a sumbo Float, Int or Categorical, a list of choices, or a uniform, "
                f"loguniform or randint of scipy.stats; got {show(given)}"
            )
    return Space(parameters), choices
