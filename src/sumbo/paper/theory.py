"""The claims that follow from the paper's theorems, or are about cost, judged by what `rates` measured."""

import math
import statistics
from collections.abc import Sequence

import numpy as np

from sumbo.paper.claims import HELD, MISSING, NOT, OPEN, Claim, Finding, unmeasured
from sumbo.paper.rates import COST, ETA2, GAIN, GROUP_SIZE, INTERVAL, KERNELS, PROOF, bound, gain_name
from sumbo.paper.results import Results

_DELTA = 0.1


def gains(results: Results, structure: str, kernel: str) -> dict[int, list[float]]:
    """gamma_t for t = 1 .. T of every D that was measured, the first seed's."""
    found = {}
    for method in results.methods("rates", GAIN):
        if method.startswith(f"{structure}, {kernel}, D = "):
            D = int(method.rpartition(" ")[2])
            found[D] = next(iter(results.lines("rates", GAIN, gain_name(structure, kernel, D)).values()))["gain"]
    return dict(sorted(found.items()))


def _by_dimension(results: Results, structure: str) -> Finding:
    """gamma_T against D: the slope of its logarithm, which is 1 for a linear dependence."""
    told, slopes = [], []
    for kernel in KERNELS:
        known = gains(results, structure, kernel)
        if len(known) < 2:
            return Finding("", MISSING)
        last = {D: gain[-1] for D, gain in known.items()}
        slopes.append(float(np.polyfit(np.log(list(last)), np.log(list(last.values())), 1)[0]))
        values = ", ".join(f"{gain:.0f} (D = {D})" for D, gain in last.items())
        told.append(f"{kernel}: gamma_T {values}, power of D {slopes[-1]:.2f}")
    if structure == "additive":
        return Finding("<br>".join(told), HELD if max(slopes) <= 1.0 else NOT)
    # However many dimensions, T observations have no more information than this: growth in D ends there.
    most = 0.5 * len(next(iter(known.values()))) * math.log1p(1.0 / ETA2)
    told.append(f"the most that T observations can have is {most:.0f}")
    return Finding("<br>".join(told), HELD if min(slopes) > 1.0 else OPEN)


def _easier(results: Results) -> Finding:
    ratios = []
    for kernel in KERNELS:
        alone, full = (gains(results, structure, kernel) for structure in ("additive", "full"))
        ratios += [(kernel, D, full[D][-1] / alone[D][-1]) for D in full if D in alone and D > GROUP_SIZE]
    if not ratios:
        return Finding("", MISSING)
    told = ", ".join(f"{ratio:.1f} ({kernel}, D = {D})" for kernel, D, ratio in ratios)
    return Finding(f"gamma_T, full over additive: {told}", HELD if min(r for *_, r in ratios) > 1.0 else NOT)


def _by_time(results: Results) -> Finding:
    """gamma_t over the theorem's rate must not grow with t, if the rate is right.

    That is for large t: as long as every observation tells something new, gamma_t is linear in t, and nothing is shown.
    """
    told, grows = [], False
    for kernel in KERNELS:
        for D, gain in gains(results, "additive", kernel).items():
            T = len(gain)
            early, late = (gain[t - 1] / bound("additive", kernel, D, t) for t in (T // 4, T))
            grows |= late > early
            told.append(f"{kernel}, D = {D}: {late / early:.2f}")
    if not told:
        return Finding("", MISSING)
    return Finding(f"gamma_t / rate, at T over at T / 4: {'; '.join(told)}", OPEN if grows else HELD)


def _interval(results: Results) -> Finding:
    lines = list(results.lines("rates", INTERVAL, "SE, 4 groups").values())
    if not lines:
        return Finding("", MISSING)
    inside = statistics.fmean(line["within_sum"] for line in lines)
    narrow = statistics.fmean(line["within_sigma"] for line in lines)
    used = max(line["used"] for line in lines)
    text = (
        f"f stayed inside at all points and times in {inside:.0%} of {len(lines)} simulations "
        f"(promised: {1 - _DELTA:.0%}), and used at most {used:.0%} of the width; "
        f"with sigma in place of the sum: {narrow:.0%}"
    )
    return Finding(text, HELD if inside >= 1.0 - _DELTA else NOT)


def _squares(results: Results) -> Finding:
    told, broken = [], False
    for method in results.methods("rates", PROOF):
        line = next(iter(results.lines("rates", PROOF, method).values()))
        broken |= line["squares"][-1] > 1.0
        told.append(
            f"{method}: sum_j sigma_j^2 / sigma^2 = {line['squares'][-1]:.1f} at new points; both ends of the "
            f"inequality, summed over t: {line['left']:.1f} and {line['right']:.1f}"
        )
    return Finding("<br>".join(told), NOT if broken else HELD) if told else Finding("", MISSING)


def _exploration(results: Results) -> Finding:
    told, ratios = [], []
    for method in results.methods("rates", PROOF):
        line = next(iter(results.lines("rates", PROOF, method).values()))
        ratios.append(line["seen"][-1])
        told.append(f"{method}: {line['sums'][-1]:.1f} at new points, {line['seen'][-1]:.1f} at points observed")
    if not told:
        return Finding("", MISSING)
    return Finding(f"sum_j sigma_j / sigma: {'; '.join(told)}", NOT if max(ratios) > 2.0 else OPEN)


def _cost(results: Results, pairs: Sequence[tuple[str, str]], most: float) -> Finding:
    """Is the first of each pair of times at most so many times the second?"""
    lines = list(results.lines("rates", COST, "D = 40").values())
    if not lines:
        return Finding("", MISSING)
    line = lines[0]
    told = [f"{a} {line[a]:.2g} s, {b} {line[b]:.2g} s" for a, b in pairs]
    return Finding("; ".join(told), HELD if all(line[a] <= most * line[b] for a, b in pairs) else NOT)


def _seconds(results: Results, experiment: str, least: float) -> Finding:
    runs = [
        line["seconds_per_evaluation"]
        for method in results.methods(experiment, experiment)
        for line in results.lines(experiment, experiment, method).values()
    ]
    if not runs:
        return Finding("", MISSING)
    median = statistics.median(runs)
    return Finding(f"{median:.2g} s (median of {len(runs)} runs)", HELD if median >= least else NOT)


THEORY = (
    Claim(
        "Theorem infGainBounds",
        "The additive kernel's gamma_T is at most linear in D.",
        lambda r: _by_dimension(r, "additive"),
    ),
    Claim(
        "Theorem infGainBounds",
        "The full kernel's gamma_T is exponential in D (here: grows faster than D).",
        lambda r: _by_dimension(r, "full"),
    ),
    Claim("4.3", "The problem is much easier with an additive kernel than with a full one.", _easier),
    Claim(
        "Theorem infGainBounds",
        "gamma_T grows no faster than D d^d (log T)^(d+1) (SE) and D 2^d T^p log T (Matern).",
        _by_time,
    ),
    Claim(
        "Lemma discBound", "The sum of sqrt(beta_t) sigma_j around the mean is a credible interval for f.", _interval
    ),
    Claim(
        "Equation varTermBound",
        "sum_j sigma_j^2 is bounded by sigma^2 on the way to the regret bound.",
        _squares,
        "Components are negatively correlated given the data, which fix their sum and not its parts: a constant can "
        "move from one to another. The paper says in its acknowledgements that this equation has an error.",
    ),
    Claim(
        "4.2",
        "sum_j sigma_j stands for the uncertainty of f (here: within a factor of 2 where f was observed).",
        _exploration,
        "Where f is known, sigma is the noise, and the sum stays: the acquisition pays for going where nothing is to "
        "be learned, which is why exact joint bounds and sampled paths are offered as well.",
    ),
    Claim(
        "Theorem addGPBthm",
        "Regret is O(sqrt(D gamma_T T log T)), linear in D.",
        unmeasured("it rests on the equation above, so no proof is left; the constants are far from any experiment"),
    ),
    Claim(
        "4.2",
        "The posterior of every f_j is only little more work than that of f (here: at most twice the time).",
        lambda r: _cost(r, [("factorise, additive", "factorise, full")], 2.0),
    ),
    Claim(
        "4.2",
        "One acquisition costs as much as the other (here: as many calls by DIRECT, at most twice the time).",
        lambda r: _cost(r, [("maximise, additive", "maximise, full")], 2.0),
    ),
    Claim(
        "5.1",
        "The inversion of the covariance dominates the cost, not the search for the acquisition's maximum.",
        lambda r: _cost(r, [("maximise, full", "factorise, full"), ("maximise, additive", "factorise, additive")], 1.0),
        "A row is added to the factor here, and LAPACK takes milliseconds for hundreds of observations; thousands of "
        "calls of the acquisition take longer.",
    ),
    Claim(
        "5.2",
        "Astro: a query takes 2 to 5 seconds.",
        lambda r: _seconds(r, "astro", 2.0),
        "CAMB computes the spectrum alone here, at reduced accuracy, on a newer machine.",
    ),
    Claim(
        "5.3",
        "Faces: a query takes 30 to 40 seconds.",
        lambda r: _seconds(r, "faces", 30.0),
        "What the stages sum up does not depend on the thresholds, so it is computed once.",
    ),
)
