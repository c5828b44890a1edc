"""Statistics of methods over problems and seeds. Losses are regrets: lower is better."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from sumbo._typing import Array

CONFIDENCE = 0.95
_RESAMPLES = 2000


class Interval(NamedTuple):
    """An estimate, and where it may be."""

    middle: float
    low: float
    high: float


def median_interval(values: Sequence[float]) -> Interval:
    """The median, with the percentile interval of its bootstrap; the same values have the same interval."""
    found = np.asarray(values, dtype=float)
    again = np.random.default_rng(0).choice(found, (_RESAMPLES, found.size))
    low, high = np.quantile(np.median(again, axis=1), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(float(np.median(found)), float(low), float(high))


def ratio_interval(log_ratios: Sequence[float]) -> Interval:
    """The geometric mean of ratios, with Student's interval of their logs; from 0 to infinity for a single one."""
    mean, n = float(np.mean(log_ratios)), len(log_ratios)
    if n < 2:
        return Interval(math.exp(mean), 0.0, math.inf)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * np.std(log_ratios, ddof=1) / math.sqrt(n))
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def mean_ranks(losses: Array) -> Array:
    """Ranks of methods (columns), 1 is best, averaged over problems (rows); those who tie share their ranks."""
    return stats.rankdata(losses, axis=1).mean(axis=0)


def friedman(losses: Array) -> float:
    """How likely ranks differ as much by chance, if all methods (columns) are alike; NaN where it cannot be told."""
    problems, methods = losses.shape
    if methods < 3 or problems < 2 or np.all(losses == losses[:, :1]):
        return math.nan
    return float(stats.friedmanchisquare(*losses.T).pvalue)


def wilcoxon(log_ratios: Sequence[float]) -> float:
    """How likely ratios over problems are as far from 1 by chance: the signed-rank test, two-sided."""
    differing = np.asarray([ratio for ratio in log_ratios if ratio != 0.0])
    return float(stats.wilcoxon(differing).pvalue) if differing.size else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction for testing several hypotheses: each p-value at most 1, and none below one that was smaller."""
    adjusted, reached = [0.0] * len(p_values), 0.0
    for k, i in enumerate(np.argsort(p_values, kind="stable")):
        reached = max(reached, min(1.0, (len(p_values) - k) * p_values[i]))
        adjusted[i] = reached
    return adjusted


class Standing(NamedTuple):
    """A method beside the best of the others, over problems: on how many it is no worse, and where it is worst."""

    best: int
    worst_ratio: float
    worst_problem: int


def standing(mine: Array, others: Array) -> Standing:
    """From one positive loss of a method for each problem, and those of the others (columns)."""
    ratios = mine / others.min(axis=1)
    return Standing(int(np.sum(ratios <= 1.0)), float(ratios.max()), int(ratios.argmax()))
