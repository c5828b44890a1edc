"""Likelihoods of a universe: that of galaxy clustering, by CAMB, and an imitation that needs no package.

`astro`: the log-likelihood of 20 band powers over 9 cosmological parameters, hidden among 20. The matter
spectrum comes from CAMB. Band powers are, by default, those of a universe that the seed draws, without scatter: then
the likelihood's maximum, 0, is at that universe. The published ones of the SDSS luminous red galaxies (DR4) are read
from a folder.

log L = -1/2 sum_i ((p_i - (W P)_i) / s_i)^2,   P(k) = b^2 P_lin(a k) / a^3 (1 + Q k^2) / (1 + 1.4 k)

`cosmology`: a smooth likelihood over many orders of magnitude that cannot be computed where the matter density comes
out negative.

| symbol | shape    | meaning                                                                        |
|--------|----------|--------------------------------------------------------------------------------|
| k      | (m,)     | wave numbers in h/Mpc                                                          |
| W      | (20, m)  | windows: how much each wave number contributes to each band                    |
| p, s   | (20,)    | band powers and their errors                                                   |
| a      |          | how much longer distances are than in the universe that the survey was measured in |
| X      | (n, D)   | points in the user's units                                                     |
| E2     | (n, m, q) | squared expansion rate, in units of today's, on the way to each of m redshifts  |
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sumbo.errors import MissingPackageError, SettingError
from sumbo.problems.base import Problem, whole_number
from sumbo.regret import FloatArray
from sumbo.space import Float, Space

_BANDS = 20
_REDSHIFT = 0.35
_LIGHT = 299_792.458  # km/s
_SURVEY_DISTANCE = 94_874.81  # H0 D_V(0.35) of the cosmology in which positions were turned into distances, km/s
_DAMPING = 1.4  # Mpc/h
_VOLUME, _DENSITY = 0.72e9, 6.0e-5  # of the survey, (Mpc/h)^3; galaxies in one of these
_WAVE_NUMBERS = np.geomspace(1e-4, 1.0, 65)


class _Range(NamedTuple):
    """A parameter, and its value in the usual universe."""

    name: str
    low: float
    high: float
    usual: float
    log: bool = False


def _space(ranges: Iterable[_Range]) -> Space:
    return Space({r.name: Float(r.low, r.high, log=r.log) for r in ranges})


# Wide on purpose: matter comes out negative in a tenth of it, and CAMB refuses.
_RANGES = (
    _Range("omega_k", -0.4, 0.4, 0.0),
    _Range("omega_lambda", 0.0, 1.0, 0.74),
    _Range("cold_matter", 0.02, 0.3, 0.11),
    _Range("baryons", 0.005, 0.05, 0.0225),
    _Range("tilt", 0.7, 1.3, 0.96),
    _Range("amplitude", 0.5, 5.0, 2.1, log=True),  # 1e9 A_s
    _Range("running", -0.2, 0.2, 0.0),
    _Range("bias", 0.5, 5.0, 2.0, log=True),
    _Range("nonlinear", 0.0, 60.0, 28.0),
)
_SPREAD = 0.05  # of a range: how far a seed moves its universe from the usual one, at most
_IDLE = 11


def astro(seed: int = 0, *, data: str | Path | None = None) -> Problem:
    """The log-likelihood of galaxy band powers, to be maximised; NaN where CAMB finds no universe.

    Nine of 20 parameters matter: curvature, dark energy, densities of cold matter and baryons, tilt, amplitude and
    running of the primordial spectrum, bias of the galaxies and a correction for non-linear growth. An evaluation
    takes about 0.2 seconds.

    Args:
        seed: Fixes the universe that the band powers are of, and which of the 20 dimensions matter.
        data: Folder with the published band powers of the luminous red galaxies (`sdss_lrgDR4_measurements.txt`,
            `_windows.txt` and `_kbands.txt`). The best value is then not known: `optimum` is 0, a bound, and
            `optimiser` a flat universe that fits.

    Raises:
        MissingPackageError: CAMB is not installed.
        SettingError: The folder cannot be used.
    """
    camb = _camb()
    rng = np.random.default_rng(whole_number("seed", seed, at_least=0))
    D = len(_RANGES) + _IDLE
    active = np.sort(rng.permutation(D)[: len(_RANGES)])
    usual, lows, highs = (np.array([getattr(r, key) for r in _RANGES]) for key in ("usual", "low", "high"))
    if data is None:
        truth = usual + _SPREAD * rng.uniform(-1.0, 1.0, len(_RANGES)) * (highs - lows)
        bands = _made(camb, truth)
    else:
        # Flat, Omega_m 0.24 and tilt 0.951, as in the survey's own paper.
        truth = np.array([0.0, 0.76, 0.24 * 0.73**2 - 0.0223, 0.0223, 0.951, 2.1, 0.0, 2.18, 30.3])
        bands = published(Path(data))
    optimiser = np.full(D, 0.5)
    optimiser[active] = truth
    ranges = dict(zip(active.tolist(), _RANGES, strict=True))
    idle = {i: _Range(f"idle_{i}", 0.0, 1.0, 0.5) for i in range(D) if i not in ranges}
    return Problem(
        name="astro",
        space=_space(r for _, r in sorted((ranges | idle).items())),
        direction="maximize",
        optimum=0.0,
        optimiser=optimiser,
        evaluate=partial(_log_likelihoods, bands=bands, active=active),
        irrelevant=tuple(idle),
    )


class Bands(NamedTuple):
    """Band powers: what was measured, how well, and of which wave numbers; k, W, p, s of the table above."""

    k: FloatArray
    windows: FloatArray
    powers: FloatArray
    errors: FloatArray


def _log_likelihoods(X: FloatArray, *, bands: Bands, active: Any) -> FloatArray:
    camb = _camb()
    found = (band_powers(camb, x[active], bands.k, bands.windows) for x in X)
    errors = ((bands.powers - (np.nan if powers is None else powers)) / bands.errors for powers in found)
    return np.array([-0.5 * np.square(error).sum() for error in errors])


def band_powers(camb: Any, x: FloatArray, k: FloatArray, windows: FloatArray) -> FloatArray | None:
    """The band powers of a universe, (20,); None where CAMB refuses it."""
    omega_k, omega_lambda, cold, baryons, tilt, amplitude, running, bias, nonlinear = (float(v) for v in x)
    matter = 1.0 - omega_k - omega_lambda
    if matter <= 0.0:
        return None
    H0 = 100.0 * np.sqrt((cold + baryons) / matter)
    try:
        setting = camb.CAMBparams(WantCls=False, WantTransfer=True)
        setting.set_accuracy(AccuracyBoost=0.5)  # within 0.4%, twice as fast
        setting.set_cosmology(H0=H0, ombh2=baryons, omch2=cold, omk=omega_k, mnu=0.0, tau=0.08)
        setting.InitPower.set_params(As=1e-9 * amplitude, ns=tilt, nrun=running)
        setting.set_matter_power(redshifts=[_REDSHIFT], kmax=2.0, silent=True)
        setting.NonLinear = camb.model.NonLinear_none
        results = camb.get_results(setting)
        angular, rate = results.angular_diameter_distance(_REDSHIFT), results.hubble_parameter(_REDSHIFT)
        volume_distance = (np.square((1.0 + _REDSHIFT) * angular) * _LIGHT * _REDSHIFT / rate) ** (1.0 / 3.0)
        a = _SURVEY_DISTANCE / (H0 * volume_distance)
        known_k, _, P = results.get_linear_matter_power_spectrum(hubble_units=True, k_hunit=True)
    except (camb.CAMBError, ValueError, ArithmeticError):
        return None
    from scipy.interpolate import CubicSpline  # a quarter of a second to import, and used here only

    linear = np.exp(CubicSpline(np.log(known_k), np.log(P[0]))(np.log(a * k)))
    spectrum = bias**2 * linear / a**3 * (1.0 + nonlinear * k**2) / (1.0 + _DAMPING * k)
    powers = windows @ spectrum
    return powers if np.isfinite(powers).all() else None


def _made(camb: Any, truth: FloatArray) -> Bands:
    """Band powers of a given universe, with the errors that counting modes in a survey gives."""
    edges = np.geomspace(0.01, 0.22, _BANDS + 1)
    centres, widths = np.sqrt(edges[1:] * edges[:-1]), np.diff(edges)
    weights = np.exp(-0.5 * np.square(np.log(_WAVE_NUMBERS / centres[:, None]) / np.log(edges[1] / edges[0])))
    windows = weights / weights.sum(axis=1, keepdims=True)
    powers = band_powers(camb, truth, _WAVE_NUMBERS, windows)
    assert powers is not None, "universes near the usual one can be computed"
    modes = _VOLUME * 4.0 * np.pi * centres**2 * widths / (2.0 * (2.0 * np.pi) ** 3)  # independent ones
    return Bands(_WAVE_NUMBERS, windows, powers, powers * (1.0 + 1.0 / (_DENSITY * powers)) / np.sqrt(modes))


def published(folder: Path) -> Bands:
    """The band powers of the luminous red galaxies, from the files of the survey."""
    tables = {}
    for name, shape in (("kbands", (65,)), ("windows", (_BANDS, 65)), ("measurements", (_BANDS, 6))):
        path = folder / f"sdss_lrgDR4_{name}.txt"
        try:
            table = np.loadtxt(path)
        except (OSError, ValueError) as error:
            raise SettingError(f"{path}: expected a table of the survey's band powers; {error}") from None
        if table.shape != shape:
            raise SettingError(f"{path}: expected a table of shape {shape}, got {table.shape}")
        tables[name] = table
    measured = tables["measurements"]
    return Bands(tables["kbands"], tables["windows"], measured[:, 3], measured[:, 4])


def _camb() -> Any:
    try:
        import camb
    except ImportError:
        raise MissingPackageError("CAMB is not installed: pip install 'sumbo[astro]'") from None
    return camb


_COSMOLOGY = (
    _Range("hubble", 50.0, 90.0, 68.0),
    _Range("omega_lambda", 0.0, 1.225, 0.7),
    _Range("omega_curvature", -0.4, 0.4, 0.02),
    _Range("dark_energy_w", -1.6, -0.4, -1.05),
    _Range("baryons", 0.01, 0.05, 0.023),
    _Range("tilt", 0.7, 1.3, 0.96),
    _Range("log_amplitude", 2.0, 4.0, 3.1),
    _Range("neutrino_mass", 0.0, 1.0, 0.15),
)
_REDSHIFTS = np.linspace(0.1, 1.5, 15)
_SPECTRUM_AT = np.geomspace(0.01, 0.3, 15)
_DISTANCE_ERROR, _SPECTRUM_ERROR, _NUISANCE_ERROR = 0.02, 0.02, 0.1  # of a log distance, log power, and a prior
_QUADRATURE = np.polynomial.legendre.leggauss(8)


def cosmology(D: int = 12) -> Problem:
    """The log-likelihood of made-up distances and a made-up spectrum, to be maximised; NaN in 20% of the box.

    Eight parameters of a universe and D - 8 nuisance parameters, each of which shifts a part of the data. The value is
    -chi^2 / 2, from 0 at the truth to below -100,000. Where Omega_m = 1 - Omega_Lambda - Omega_k is not positive, there
    is no universe to compute.
    """
    D = whole_number("D", D, at_least=len(_COSMOLOGY))
    nuisance = [_Range(f"nuisance_{i}", -1.0, 1.0, 0.5 * np.sin(1.0 + 2.0 * i)) for i in range(D - len(_COSMOLOGY))]
    ranges = [*_COSMOLOGY, *nuisance]
    truth = np.array([r.usual for r in ranges])
    return Problem(
        name=f"cosmology-{D}",
        space=_space(ranges),
        direction="maximize",
        optimum=0.0,
        optimiser=truth,
        evaluate=partial(_imitated, truth=truth),
    )


def _imitated(X: FloatArray, truth: FloatArray) -> FloatArray:
    residuals = _data(X) - _data(truth[None, :])
    prior = (X[:, len(_COSMOLOGY) :] - truth[len(_COSMOLOGY) :]) / _NUISANCE_ERROR
    values = -0.5 * (np.square(residuals).sum(axis=1) + np.square(prior).sum(axis=1))
    return np.where(1.0 - X[:, 1] - X[:, 2] > 0.0, values, np.nan)


def _data(X: FloatArray) -> FloatArray:
    """What would be measured in the universes X, in units of its error, (n, 30)."""
    hubble, _, _, _, baryons, tilt, amplitude, neutrinos = X[:, : len(_COSMOLOGY)].T
    h, matter = hubble / 100.0, 1.0 - X[:, 1] - X[:, 2]
    # The integral of dz / E(z) to each redshift, (n, m), by Gauss-Legendre quadrature.
    nodes, weights = _QUADRATURE
    a = 1.0 + 0.5 * _REDSHIFTS[:, None] * (nodes + 1.0)  # (m, q)
    lam, curvature, w = (X[:, i][:, None, None] for i in (1, 2, 3))
    E2 = matter[:, None, None] * a**3 + curvature * a**2 + lam * a ** (3.0 * (1.0 + w))
    rate = np.sqrt(np.maximum(E2, 1e-2))  # a bounce: no such universe is near the truth
    distances = np.log((weights / rate).sum(axis=2) * 0.5 * _REDSHIFTS / hubble[:, None])
    k = np.log(_SPECTRUM_AT / 0.05)[None, :]
    horizon = matter * h * np.exp(-2.0 * baryons)  # where the spectrum turns over
    turn = -np.log1p(np.square(_SPECTRUM_AT[None, :] / (0.3 * horizon[:, None] + 0.01)))
    wiggles = 8.0 * baryons[:, None] * np.sin(10.0 * (k + horizon[:, None]))
    damping = -neutrinos[:, None] * (1.0 + k / 6.0)
    spectrum = amplitude[:, None] + (tilt[:, None] - 1.0) * k + turn + wiggles + damping
    data = np.hstack([distances / _DISTANCE_ERROR, spectrum / _SPECTRUM_ERROR])
    for i, shift in enumerate(X[:, len(_COSMOLOGY) :].T):
        data[:, i % 5 :: 5] += shift[:, None] * np.cos(1.0 + i)  # a calibration common to every fifth datum
    return data
