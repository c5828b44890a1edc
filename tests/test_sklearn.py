"""SumboSearchCV: scikit-learn's checks for estimators, and what it promises beyond them."""

import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris, make_regression
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import sumbo
from sumbo.errors import SettingError, SpaceError
from sumbo.integrations.sklearn import SumboSearchCV

IRIS = load_iris(return_X_y=True)
SVC_SPACE = {"C": sumbo.Float(1e-3, 1e3, log=True), "gamma": sumbo.Float(1e-5, 10.0, log=True)}


def as_scikit_learns_own(search):
    """Its own list for RandomizedSearchCV has this too: no warning that a column of targets became a vector."""
    return {"check_supervised_y_2d": "Ridge takes a column"} if isinstance(search.estimator, Ridge) else {}


@pytest.mark.filterwarnings("ignore")  # the checks provoke warnings of scikit-learn and NumPy
@parametrize_with_checks(
    [
        SumboSearchCV(Ridge(), {"alpha": sumbo.Float(0.1, 10.0, log=True)}, n_iter=2, cv=2, random_state=0),
        SumboSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, n_iter=2, cv=2, random_state=0, error_score="raise"),
    ],
    expected_failed_checks=as_scikit_learns_own,
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def fitted(**kwargs):
    options = {"n_iter": 15, "random_state": 0, "cv": 3} | kwargs
    return SumboSearchCV(SVC(), SVC_SPACE, **options).fit(*IRIS)


def test_it_finds_good_parameters_and_looks_like_any_other_search():
    search = fitted()
    other = RandomizedSearchCV(
        SVC(), {"C": stats.loguniform(1e-3, 1e3), "gamma": stats.loguniform(1e-5, 10)}, n_iter=15, cv=3, random_state=0
    ).fit(*IRIS)
    assert search.best_score_ > 0.96
    assert set(search.cv_results_) == set(other.cv_results_)
    assert len(search.cv_results_["params"]) == 15
    assert search.best_params_ == search.cv_results_["params"][search.best_index_]
    assert search.predict(IRIS[0]).shape == IRIS[1].shape
    best = search.optimizer_.best
    assert best.value == search.best_score_


def test_seeds_repeat_and_jobs_do_not_matter():
    first, again, parallel, other = fitted(), fitted(), fitted(n_jobs=2), fitted(random_state=1)
    assert first.cv_results_["params"] == again.cv_results_["params"] == parallel.cv_results_["params"]
    assert first.cv_results_["params"] != other.cv_results_["params"]


def test_all_kinds_of_parameters():
    pipeline = make_pipeline(StandardScaler(), SVC())
    scalers = [StandardScaler(), MinMaxScaler(), "passthrough"]  # objects, which no JSON could keep
    space = {
        "standardscaler": scalers,
        "svc__C": stats.loguniform(1e-2, 1e2),
        "svc__coef0": stats.uniform(0, 2),
        "svc__degree": stats.randint(2, 5),
        "svc__kernel": sumbo.Categorical(["rbf", "poly"]),
        "svc__shrinking": np.array([True, False]),
        "svc__max_iter": [-1],
    }
    search = SumboSearchCV(pipeline, space, n_iter=14, cv=2, random_state=0).fit(*IRIS)
    tried = search.cv_results_["params"]
    assert {type(params["standardscaler"]) for params in tried} > {StandardScaler}
    assert {params["svc__degree"] for params in tried} <= {2, 3, 4}
    assert all(1e-2 <= params["svc__C"] <= 1e2 and 0 <= params["svc__coef0"] <= 2 for params in tried)
    assert search.best_score_ > 0.9


def test_several_metrics_need_to_know_which_one_counts():
    scoring = ["r2", "neg_mean_absolute_error"]
    X, y = make_regression(60, 4, noise=1.0, random_state=0)
    search = SumboSearchCV(Ridge(), {"alpha": sumbo.Float(1e-3, 1e3, log=True)}, n_iter=12, random_state=0)
    chosen = clone(search).set_params(scoring=scoring, refit="neg_mean_absolute_error").fit(X, y)
    assert chosen.optimizer_.best.value == chosen.cv_results_["mean_test_neg_mean_absolute_error"].max()
    with pytest.raises(SettingError, match="refit must name the one to search for"):
        clone(search).set_params(scoring=scoring, refit=False).fit(X, y)


class Fragile(ClassifierMixin, BaseEstimator):
    """Cannot be fitted with a width above 0.6; best at the edge of that."""

    def __init__(self, width=0.0, depth=0.0):
        self.width = width
        self.depth = depth

    def fit(self, X, y):
        if self.width > 0.6:
            raise ValueError("too wide")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X))

    def score(self, X, y):
        return self.width - self.depth


def test_candidates_that_fail_are_avoided_and_remembered():
    space, found = {"width": sumbo.Float(0, 1), "depth": sumbo.Float(0, 1)}, []
    for seed in range(3):
        search = SumboSearchCV(Fragile(), space, n_iter=40, cv=2, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitFailedWarning)
            search.fit(*IRIS)
        failed = [trial for trial in search.optimizer_.trials if trial.state == "failed"]
        assert failed
        assert all("too wide" in trial.reason for trial in failed)
        assert len(search.cv_results_["params"]) == 40 - len(failed)
        found.append((search.best_score_, sum(trial.number >= 20 for trial in failed)))
    score, late = np.mean(found, axis=0)
    assert score > 0.5  # of 0.6 at the edge of what fails; chance finds 0.40
    assert late < 5  # of 20; chance: 8


def test_a_failing_candidate_warns():
    search = SumboSearchCV(Fragile(), {"width": [0.1, 0.9]}, n_iter=2, cv=2, random_state=0)
    with pytest.warns(FitFailedWarning, match="all fits failed with {'width': 0.9}"):
        search.fit(*IRIS)


def test_when_everything_fails_scikit_learn_says_why():
    search = SumboSearchCV(Fragile(), {"width": [0.8, 0.9]}, n_iter=2, cv=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitFailedWarning)
        with pytest.raises(ValueError, match="too wide"):
            search.fit(*IRIS)


@pytest.mark.parametrize(
    ("space", "options", "error", "message"),
    [
        ({}, {}, SpaceError, "expected a dict such as"),
        ([("C", 1)], {}, SpaceError, "expected a dict such as"),
        ({"C": (0.1)}, {}, SpaceError, "parameter 'C': expected a sumbo Float"),
        ({"C": []}, {}, SpaceError, "parameter 'C'"),
        ({"C": stats.norm(0, 1)}, {}, SpaceError, "uniform, loguniform"),
        ({"C": [1.0]}, {"n_iter": 0}, SettingError, "n_iter must be a whole number"),
        ({"C": [1.0]}, {"method": "autoo"}, SettingError, "Did you mean 'auto'"),
        ({"Q": [1.0]}, {}, ValueError, "Invalid parameter 'Q'"),
    ],
)
def test_mistakes_are_explained(space, options, error, message):
    with pytest.raises(error, match=message):
        SumboSearchCV(SVC(), space, **options).fit(*IRIS)
