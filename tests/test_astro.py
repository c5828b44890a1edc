"""The likelihood of galaxy band powers: its optimum, where there is no universe, and the published data."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

import sumbo
from sumbo.errors import MissingPackageError, SettingError
from sumbo.problems import astro as make_astro
from sumbo.problems.astro import _camb, band_powers, published

PUBLISHED = os.environ.get("SUMBO_LRG_DATA")


@pytest.fixture(scope="module")
def problem():
    return make_astro(0)


def moved(problem, **changes):
    x = problem.optimiser.copy()
    for name, value in changes.items():
        x[problem.space.names.index(name)] = value
    return x


def test_the_optimum_is_the_universe_of_the_band_powers(problem):
    assert problem.dim == 20
    assert problem(problem.optimiser) == pytest.approx(problem.optimum, abs=1e-6)
    for name, value in (("tilt", 0.8), ("baryons", 0.04), ("omega_k", -0.2), ("nonlinear", 5.0), ("running", 0.1)):
        assert problem(moved(problem, **{name: value})) < -1.0, name


def test_what_is_idle_changes_nothing(problem):
    idle = {problem.space.names[i]: 0.9 for i in problem.irrelevant}
    assert len(idle) == 11
    assert problem(moved(problem, **idle)) == problem(problem.optimiser)


def test_no_matter_no_value(problem):
    assert np.isnan(problem(moved(problem, omega_k=0.3, omega_lambda=0.9)))
    assert np.isfinite(problem(moved(problem, omega_k=0.3, omega_lambda=0.5)))


def test_seeds_have_universes_and_places_of_their_own(problem):
    other = sumbo.problems.get("astro", seed=1)
    assert other.space.names != problem.space.names
    assert other(other.optimiser) == pytest.approx(0.0, abs=1e-6)


def test_failures_are_failed_trials(problem):
    opt = sumbo.Optimizer(problem.space, direction="maximize", seed=0)
    for x in (moved(problem, omega_k=0.3, omega_lambda=0.9), problem.optimiser):
        opt.tell(opt.ask(), problem(x))
    assert [trial.state for trial in opt.trials] == ["failed", "done"]


@pytest.mark.skipif(PUBLISHED is None, reason="SUMBO_LRG_DATA does not say where the published band powers are")
def test_the_published_band_powers_fit_a_flat_universe():
    bands, camb = published(Path(PUBLISHED)), _camb()
    flat = np.array([0.0, 0.76, 0.24 * 0.73**2 - 0.0223, 0.0223, 0.951, 2.1, 0.0, 1.0, 0.0])
    without = band_powers(camb, flat, bands.k, bands.windows)
    flat[-1] = 1.0
    each = band_powers(camb, flat, bands.k, bands.windows) - without
    # The powers are linear in b^2 and b^2 Q: the best of both is a least-squares fit.
    A = np.stack([without, each], axis=1) / bands.errors[:, None]
    (b2, b2Q), chi2, *_ = np.linalg.lstsq(A, bands.powers / bands.errors, rcond=None)
    assert float(chi2[0]) == pytest.approx(20.3, abs=0.4)
    assert np.sqrt(b2) == pytest.approx(2.18, abs=0.02)
    assert b2Q / b2 == pytest.approx(30.3, abs=0.5)
    problem = make_astro(0, data=PUBLISHED)
    assert problem(problem.optimiser) == pytest.approx(-0.5 * 20.6, abs=0.5)


def test_a_folder_without_the_survey_is_refused(tmp_path):
    with pytest.raises(SettingError, match=r"kbands\.txt: expected a table"):
        make_astro(data=tmp_path)
    (tmp_path / "sdss_lrgDR4_kbands.txt").write_text("1 2 3\n")
    with pytest.raises(SettingError, match=r"shape \(65,\), got \(3,\)"):
        make_astro(data=tmp_path)


def test_without_camb_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "camb", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'sumbo\[astro\]'"):
        sumbo.problems.get("astro")
