"""Test functions that give no value in a part of their box, as simulators do: NaN stands for a failed evaluation.

`cosmology` imitates a code such as CAMB: a smooth likelihood over many orders of magnitude that cannot be computed
where the matter density comes out negative. `with_failures` makes such holes in any other problem.

| symbol | shape  | meaning                                                                 |
|--------|--------|-------------------------------------------------------------------------|
| X, U   | (n, D) | points in the user's units; in the unit cube                            |
| z, k   | (m,)   | redshifts of the distances, wave numbers of the spectrum                |
| E2     | (n, m) | squared expansion rate, in units of today's                             |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sumbo.errors import SettingError
from sumbo.problems.base import Problem, whole_number
from sumbo.regret import FloatArray
from sumbo.space import Float, Space

# name, low, high, truth
_COSMOLOGY = (
    ("hubble", 50.0, 90.0, 68.0),
    ("omega_lambda", 0.0, 1.225, 0.7),
    ("omega_curvature", -0.4, 0.4, 0.02),
    ("dark_energy_w", -1.6, -0.4, -1.05),
    ("baryons", 0.01, 0.05, 0.023),
    ("tilt", 0.7, 1.3, 0.96),
    ("log_amplitude", 2.0, 4.0, 3.1),
    ("neutrino_mass", 0.0, 1.0, 0.15),
)
_REDSHIFTS = np.linspace(0.1, 1.5, 15)
_WAVE_NUMBERS = np.geomspace(0.01, 0.3, 15)
_DISTANCE_ERROR, _SPECTRUM_ERROR, _NUISANCE_ERROR = 0.02, 0.02, 0.1  # of a log distance, log power, and a prior
_QUADRATURE = np.polynomial.legendre.leggauss(8)

_SHARE = 0.2  # of the box that fails
_CELLS = 60
_CORNER = 3.0 - (6.0 * _SHARE) ** (1.0 / 3.0)  # three uniform numbers have a larger sum with probability _SHARE

Mask = NDArray[np.bool_]
Which = NDArray[np.int64]
Fails = Callable[[FloatArray], Mask]


def cosmology(D: int = 12) -> Problem:
    """The log-likelihood of made-up distances and a made-up spectrum, to be maximised; NaN in 20% of the box.

    Eight parameters of a universe and D - 8 nuisance parameters, each of which shifts a part of the data. The value is
    -chi^2 / 2, from 0 at the truth to below -100,000. Where Omega_m = 1 - Omega_Lambda - Omega_k is not positive, there
    is no universe to compute.

    Args:
        D: Number of dimensions.

    Raises:
        SettingError: If D is not a whole number >= 8.
    """
    D = whole_number("D", D, at_least=len(_COSMOLOGY))
    nuisance = range(D - len(_COSMOLOGY))
    names = [name for name, *_ in _COSMOLOGY] + [f"nuisance_{i}" for i in nuisance]
    lows = [low for _, low, *_ in _COSMOLOGY] + [-1.0 for _ in nuisance]
    highs = [high for *_, high, _ in _COSMOLOGY] + [1.0 for _ in nuisance]
    truth = np.array([true for *_, true in _COSMOLOGY] + [0.5 * np.sin(1.0 + 2.0 * i) for i in nuisance])
    space = Space({name: Float(low, high) for name, low, high in zip(names, lows, highs, strict=True)})
    return Problem(
        name=f"cosmology-{D}",
        space=space,
        direction="maximize",
        optimum=0.0,
        optimiser=truth,
        evaluate=partial(_log_likelihood, truth=truth),
    )


def with_failures(problem: Problem, shape: str, seed: int = 0) -> Problem:
    """The problem with 20% of its box cut out, never its optimum.

    Args:
        problem: Any problem of float parameters.
        shape: "corner": where three parameters are large together. "band": a slab across the box next to the
            optimum. "cells": patches all over the box, a fifth of those around 60 random centres.
        seed: Fixes which parameters, or where the cells are.

    Raises:
        SettingError: If there is no such shape.
    """
    makers = {"corner": _corner, "band": _band, "cells": _cells}
    if shape not in makers:
        raise SettingError(f"shape must be one of {', '.join(makers)}; got {shape!r}")
    lows, highs = (np.array([getattr(p, end) for p in problem.space.parameters]) for end in ("low", "high"))
    best = (problem.optimiser - lows) / (highs - lows)
    fails = makers[shape](best, np.random.default_rng(whole_number("seed", seed, at_least=0)))
    cut = partial(_with_holes, evaluate=problem.evaluate, fails=fails, lows=lows, widths=highs - lows)
    return replace(problem, name=f"{problem.name}, {shape} fails", evaluate=cut, groups=None, irrelevant=())


# --- cosmology -----------------------------------------------------------------------------------------------


def _log_likelihood(X: FloatArray, truth: FloatArray) -> FloatArray:
    matter = 1.0 - X[:, 1] - X[:, 2]
    values = np.full(len(X), np.nan)
    possible = matter > 0.0
    residuals = _data(X[possible]) - _data(truth[None, :])
    prior = (X[possible, len(_COSMOLOGY) :] - truth[len(_COSMOLOGY) :]) / _NUISANCE_ERROR
    values[possible] = -0.5 * (np.square(residuals).sum(axis=1) + np.square(prior).sum(axis=1))
    return values


def _data(X: FloatArray) -> FloatArray:
    """What would be measured in the universes X, in units of its error, (n, 30)."""
    hubble, _, _, _, baryons, tilt, amplitude, neutrinos = X[:, : len(_COSMOLOGY)].T
    h, matter = hubble / 100.0, 1.0 - X[:, 1] - X[:, 2]
    distances = np.log(_comoving_distance(X, matter) / hubble[:, None])
    k = np.log(_WAVE_NUMBERS / 0.05)[None, :]
    horizon = matter * h * np.exp(-2.0 * baryons)  # where the spectrum turns over
    turn = -np.log1p(np.square(_WAVE_NUMBERS[None, :] / (0.3 * horizon[:, None] + 0.01)))
    wiggles = 8.0 * baryons[:, None] * np.sin(10.0 * (k + horizon[:, None]))
    damping = -neutrinos[:, None] * (1.0 + k / 6.0)
    spectrum = amplitude[:, None] + (tilt[:, None] - 1.0) * k + turn + wiggles + damping
    data = np.hstack([distances / _DISTANCE_ERROR, spectrum / _SPECTRUM_ERROR])
    for i, shift in enumerate(X[:, len(_COSMOLOGY) :].T):
        data[:, i % 5 :: 5] += shift[:, None] * np.cos(1.0 + i)  # a calibration common to every fifth datum
    return data


def _comoving_distance(X: FloatArray, matter: FloatArray) -> FloatArray:
    """The integral of dz / E(z) to each redshift, (n, m), by Gauss-Legendre quadrature."""
    nodes, weights = _QUADRATURE
    z = 0.5 * _REDSHIFTS[:, None] * (nodes + 1.0)[None, :]  # (m, q)
    a = 1.0 + z[None, :, :]
    lam, curvature, w = (X[:, i][:, None, None] for i in (1, 2, 3))
    E2 = matter[:, None, None] * a**3 + curvature * a**2 + lam * a ** (3.0 * (1.0 + w))
    rate = np.sqrt(np.maximum(E2, 1e-2))  # a bounce: no such universe is near the truth
    return (weights / rate).sum(axis=2) * 0.5 * _REDSHIFTS[None, :]


# --- holes in other problems ---------------------------------------------------------------------------------


def _with_holes(
    X: FloatArray,
    evaluate: Callable[[FloatArray], FloatArray],
    fails: Fails,
    lows: FloatArray,
    widths: FloatArray,
) -> FloatArray:
    return np.where(fails((X - lows) / widths), np.nan, evaluate(X))


def _corner(best: FloatArray, rng: np.random.Generator) -> Fails:
    dims = rng.choice(len(best), size=3, replace=False)
    return partial(_in_corner, dims=dims, flipped=best[dims] > 0.5)


def _in_corner(U: FloatArray, dims: Which, flipped: Mask) -> Mask:
    return np.where(flipped, 1.0 - U[:, dims], U[:, dims]).sum(axis=1) > _CORNER


def _band(best: FloatArray, rng: np.random.Generator) -> Fails:
    i = int(rng.integers(len(best)))
    start = best[i] + 0.05 if best[i] < 0.5 else best[i] - 0.05 - _SHARE
    return partial(_in_band, i=i, start=float(start))


def _in_band(U: FloatArray, i: int, start: float) -> Mask:
    return (start < U[:, i]) & (U[:, i] < start + _SHARE)


def _cells(best: FloatArray, rng: np.random.Generator) -> Fails:
    centres = rng.random((_CELLS, len(best)))
    # Cells differ in size, and the optimum's own must not fail: add others until they are a fifth of the box.
    share = np.bincount(_nearest(rng.random((20_000, len(best))), centres), minlength=_CELLS) / 20_000
    order = rng.permutation(_CELLS)
    order = order[order != _nearest(best[None, :], centres)[0]]
    return partial(_in_cells, centres=centres, failing=order[: np.searchsorted(np.cumsum(share[order]), _SHARE) + 1])


def _in_cells(U: FloatArray, centres: FloatArray, failing: Which) -> Mask:
    return np.isin(_nearest(U, centres), failing)


def _nearest(U: FloatArray, centres: FloatArray) -> Which:
    return (np.square(centres).sum(axis=1)[None, :] - 2.0 * U @ centres.T).argmin(axis=1)
