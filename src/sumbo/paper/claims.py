"""Every claim that the paper makes about its experiments, what was measured, and whether it held.

Methods are compared by the mean difference of their regrets over the seeds that both have; a difference that is not
larger than its standard error decides nothing. `auto` is no method of the paper and takes no part.
"""

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from sumbo.paper.compare import (
    AUTO,
    CONFIGURATIONS,
    FIXED,
    LARGE_BETA,
    NEW_GROUPS,
    SMALL_BETA,
    STAR,
    add_name,
    group_sizes,
    is_variant,
    variant,
)
from sumbo.paper.results import Results, advantage, mean_and_error

HELD, NOT, OPEN, MISSING = "held", "did not hold", "cannot be told", "not measured"

Check = Callable[[Results], "Finding"]


class Finding(NamedTuple):
    """What was measured, and one of the four verdicts above."""

    measured: str
    verdict: str


class Claim(NamedTuple):
    """One statement of the paper in our words.

    Attributes:
        where: Section or theorem.
        text: The statement.
        check: Judges it by the runs.
        why: What we think is the reason, told where it did not hold.
    """

    where: str
    text: str
    check: Check
    why: str = ""


# --- ways to judge ---


def _verdict(signs: Iterable[int | None], *, most: bool = False) -> str:
    """Of comparisons that should all come out as 1, or three quarters of them."""
    known = [sign for sign in signs if sign is not None]
    if not known:
        return MISSING
    share = 0.75 if most else 1.0
    if sum(sign == 1 for sign in known) >= share * len(known):
        return HELD
    if sum(sign == -1 for sign in known) > (1.0 - share) * len(known):
        return NOT
    return OPEN


def better(
    experiment: str,
    problem: str,
    mine: Sequence[str],
    others: Sequence[str],
    *,
    most: bool = False,
    average: bool = False,
) -> Check:
    """Each of `mine` has less regret than each of `others`; with `most`, three quarters of these comparisons."""

    def check(results: Results) -> Finding:
        regret = results.average if average else results.simple
        known = {name: regret(experiment, problem, name) for name in (*mine, *others)}
        signs = [advantage(known[a], known[b]) for a in mine for b in others if a != b]
        told = [f"{name} {mean_and_error(values.values())}" for name, values in known.items() if values]
        verdict = _verdict(signs, most=most)
        # One run of each was made, which decides nothing.
        return Finding("; ".join(told), OPEN if verdict == MISSING and all(known.values()) else verdict)

    return check


def best(experiment: str, problem: str, mine: str) -> Check:
    """Less regret than every other method of the paper."""

    def check(results: Results) -> Finding:
        names = results.methods(experiment, problem)
        others = [name for name in names if name not in (mine, AUTO) and not is_variant(name)]
        known = {name: results.simple(experiment, problem, name) for name in (mine, *others)}
        verdict = _verdict(advantage(known[mine], known[name]) for name in others)
        if not others or not known[mine]:
            return Finding("", MISSING)
        first = min(others, key=lambda name: statistics.fmean(known[name].values()))
        own, rival = (mean_and_error(known[name].values()) for name in (mine, first))
        told = f"{mine} {own}; best of the others: {first} {rival}"
        return Finding(told, OPEN if verdict == MISSING else verdict)

    return check


def joined(checks: Sequence[tuple[str, Check]], *, some: bool = False) -> Check:
    """Several problems at once: held if it held on all that decide, or with `some` on at least one."""

    def check(results: Results) -> Finding:
        found = [(name, one(results)) for name, one in checks]
        verdicts = [finding.verdict for _, finding in found if finding.verdict != MISSING]
        told = [f"{name}: {finding.measured} ({finding.verdict})" for name, finding in found if finding.measured]
        if not verdicts:
            return Finding("", MISSING)
        if HELD in verdicts and (some or NOT not in verdicts):
            return Finding("<br>".join(told), HELD)
        return Finding("<br>".join(told), NOT if NOT in verdicts else OPEN)

    return check


def unmeasured(reason: str) -> Check:
    """A statement that these experiments do not test."""
    return lambda results: Finding(reason, MISSING)


# --- the paper's ---


def name_of(configuration: tuple[int, int, int]) -> str:
    """The problem of a configuration."""
    return "additive-{}-{}-{}".format(*configuration)


def adds(experiment: str, D: int) -> list[str]:
    """The methods Add-d/M on D dimensions."""
    return [add_name(D, d) for d in group_sizes(experiment, D)]


def _on(configurations: Sequence[tuple[int, int, int]], make: Callable[[str, int], Check]) -> list[tuple[str, Check]]:
    return [(str(c), make(name_of(c), c[0])) for c in configurations]


def _as_the_paper(*changes: str) -> Check:
    """Add-d/M does better as the paper has it than with each of these changes."""
    return joined(
        _on(
            CONFIGURATIONS,
            lambda problem, D: better("synthetic", problem, [variant(D)], [variant(D, change) for change in changes]),
        )
    )


SMALL_GROUPS = ((24, 6, 4), (40, 5, 8), (96, 5, 19))
LARGE_GROUPS = ((24, 11, 2), (40, 18, 2), (40, 35, 1), (96, 29, 3), (120, 55, 2))
LARGE_D = tuple(c for c in CONFIGURATIONS if c[0] >= 40)
_TEN = "additive-10-3-3"

_EXPLORES = (
    "Sums of sigma_j exceed sigma (see below), so Add-* explores longer; with so few evaluations that still costs."
)
_SYNTHETIC = (
    Claim("5.1", "f_d' has three modes, so f has 3^M'.", lambda results: _modes(results)),
    Claim("5.1", "(10,3,3): Add-* does best.", best("synthetic", _TEN, STAR), _EXPLORES),
    Claim(
        "5.1",
        "(10,3,3): Add-3/4 and Add-5/2 do well and beat GP-UCB.",
        better("synthetic", _TEN, ["Add-3/4", "Add-5/2"], ["GP-UCB"]),
    ),
    Claim(
        "5.1",
        "(10,3,3): Add-1/10 does poorly, its model being too simple.",
        better("synthetic", _TEN, [STAR, "Add-3/4", "Add-5/2"], ["Add-1/10"]),
        "With few evaluations a model without interactions is enough to find the neighbourhood of a mode.",
    ),
    Claim(
        "5.1",
        "Large d' ((24,11,2), (40,18,2), (40,35,1), (96,29,3), (120,55,2)): Add-* beats GP-UCB.",
        joined(_on(LARGE_GROUPS, lambda problem, D: better("synthetic", problem, [STAR], ["GP-UCB"]))),
    ),
    Claim(
        "5.1",
        "There, Add-* cannot compete with Add-d/M of small d.",
        joined(_on(LARGE_GROUPS, lambda problem, D: better("synthetic", problem, adds("", D)[1:2], [STAR]))),
    ),
    Claim(
        "5.1",
        "So an additive kernel helps even if the groups are not known or there are none: there, small d beats GP-UCB.",
        joined(_on(LARGE_GROUPS, lambda problem, D: better("synthetic", problem, adds("", D)[1:2], ["GP-UCB"]))),
    ),
    Claim(
        "5.1",
        "Small d' ((24,6,4), (40,5,8), (96,5,19)): Add-* does best.",
        joined(_on(SMALL_GROUPS, lambda problem, D: best("synthetic", problem, STAR))),
        _EXPLORES,
    ),
    Claim(
        "5.1",
        "There, almost all Add-d/M beat GP-UCB.",
        joined(_on(SMALL_GROUPS, lambda problem, D: better("synthetic", problem, adds("", D), ["GP-UCB"], most=True))),
    ),
    Claim(
        "5.1",
        "For large D, GP-UCB and Add-d/M of large d do worse than DIRECT.",
        joined(_on(LARGE_D, lambda problem, D: better("synthetic", problem, ["DIRECT"], ["GP-UCB", adds("", D)[-1]]))),
    ),
    Claim(
        "5.1",
        "For small D they do not.",
        joined(
            _on(
                [(10, 3, 3), (24, 6, 4), (24, 11, 2)],
                lambda problem, D: better("synthetic", problem, ["GP-UCB", adds("", D)[-1]], ["DIRECT"]),
            )
        ),
    ),
    Claim(
        "5.1",
        "For some large D, cumulative regret is lower for GP-UCB and large d than for small d, which still explores.",
        joined(
            _on(
                LARGE_D,
                lambda problem, D: better(
                    "synthetic", problem, ["GP-UCB", adds("", D)[-1]], adds("", D)[1:2], average=True
                ),
            ),
            some=True,
        ),
    ),
    Claim(
        "4.4",
        "Choosing groups by evidence among random ones does slightly better than keeping random ones.",
        _as_the_paper(FIXED),
    ),
    Claim("4.4", "... and than new random ones at each step.", _as_the_paper(NEW_GROUPS)),
    Claim(
        "4.4",
        "The procedure is robust for reasonable d: those tried beat GP-UCB whatever d, 1 left out.",
        joined(_on(CONFIGURATIONS, lambda problem, D: better("synthetic", problem, adds("", D)[1:], ["GP-UCB"]))),
    ),
    Claim("6", "d between 3 and 12 is reasonable: no other d does better.", lambda results: _reasonable(results)),
    Claim("4.4", "The theorem's beta_t is too cautious in practice.", _as_the_paper(LARGE_BETA)),
    Claim(
        "4.4",
        "beta_t = 0.2 d log 2t is a good compromise (here: better than the theorem's, which is larger, and than 0.1).",
        _as_the_paper(LARGE_BETA, SMALL_BETA),
    ),
    Claim(
        "6",
        "Known groups, if they are small, give the best results.",
        joined(_on(((10, 3, 3), *SMALL_GROUPS), lambda problem, D: best("synthetic", problem, STAR))),
        _EXPLORES,
    ),
)
_ASTRO, _FACES = adds("astro", 20), adds("faces", 22)
_REAL = (
    Claim("5.2", "Astro: RAND beats DIRECT.", better("astro", "astro", ["RAND"], ["DIRECT"])),
    Claim(
        "5.2",
        "Astro: all methods with a model beat RAND.",
        better("astro", "astro", [*_ASTRO, "GP-UCB", "GP-EI", "REMBO"], ["RAND"]),
    ),
    Claim("5.2", "Astro: all Add-d/M beat GP-UCB.", better("astro", "astro", _ASTRO, ["GP-UCB"])),
    Claim("5.2", "Astro: all Add-d/M beat GP-EI.", better("astro", "astro", _ASTRO, ["GP-EI"])),
    Claim(
        "5.2",
        "Astro: REMBO, although given the right dimension 9, cannot compete with Add-d/M.",
        better("astro", "astro", _ASTRO, ["REMBO"]),
    ),
    Claim("5.2", "Astro: Add-5/4 does slightly better than the rest.", best("astro", "astro", "Add-5/4")),
    Claim(
        "5.3",
        "Faces: REMBO does worst.",
        better("faces", "faces", [*_FACES, "GP-UCB", "GP-EI", "RAND", "DIRECT"], ["REMBO"]),
    ),
    Claim(
        "5.3",
        "Faces: but for Add-1/22, all Add-d/M beat GP-UCB and GP-EI.",
        better("faces", "faces", _FACES[1:], ["GP-UCB", "GP-EI"]),
    ),
    Claim("5.3", "Faces: Add-6/4 does best.", best("faces", "faces", "Add-6/4")),
    Claim("5.3", "Faces: thresholds are found that beat OpenCV's.", lambda results: _beats_opencv(results)),
    Claim(
        "5",
        "Upper confidence bounds do better than expected improvement: GP-UCB beats GP-EI.",
        joined([(name, better(name, name, ["GP-UCB"], ["GP-EI"])) for name in ("astro", "faces")]),
    ),
    Claim(
        "2",
        "Methods that search a subspace do poorly on real problems.",
        joined([(name, better(name, name, ["GP-UCB"], ["REMBO"])) for name in ("astro", "faces")]),
    ),
    Claim(
        "1",
        "Add-GP-UCB beats plain Bayesian optimisation on all three experiments.",
        joined(
            [
                *_on(CONFIGURATIONS, lambda problem, D: better("synthetic", problem, adds("", D)[1:2], ["GP-UCB"])),
                ("astro", better("astro", "astro", ["Add-5/4"], ["GP-UCB", "GP-EI"])),
                ("faces", better("faces", "faces", ["Add-6/4"], ["GP-UCB", "GP-EI"])),
            ]
        ),
    ),
)
EXPERIMENTS = (*_SYNTHETIC, *_REAL)


# --- checks of their own ---


def _modes(results: Results) -> Finding:
    lines = results.lines("rates", "modes", "f_2")
    if not lines:
        return Finding("", MISSING)
    count = next(iter(lines.values()))["modes"]
    return Finding(f"{count} local maxima of f_2 on a grid of 401 x 401", HELD if count == 3 else NOT)


def _reasonable(results: Results) -> Finding:
    told, signs = [], []
    for c in CONFIGURATIONS:
        known = {
            d: results.simple("synthetic", name_of(c), add_name(c[0], d))
            for d in group_sizes("synthetic", c[0])
            if results.lines("synthetic", name_of(c), add_name(c[0], d))
        }
        inside = [d for d in known if 3 <= d <= 12]
        if len(known) < 2 or not inside:
            continue
        first = min(known, key=lambda d: statistics.fmean(known[d].values()))
        told.append(f"{c}: best d = {first}")
        own = min(inside, key=lambda d: statistics.fmean(known[d].values()))
        signs.append(1 if own == first else advantage(known[own], known[first]))
    return Finding("; ".join(told), _verdict(signs))


def _beats_opencv(results: Results) -> Finding:
    """In how many runs is the accuracy found higher than OpenCV's?"""
    told, any_better = [], False
    for name in results.methods("faces", "faces"):
        runs = results.lines("faces", "faces", name).values()
        wins = [sum(max(v for v in run["values"] if v is not None) > run["opencv"][0] for run in runs)]
        wins.append(sum((run["held_out"] or 0.0) > run["opencv"][1] for run in runs))
        any_better |= wins[0] > len(runs) / 2 and name != AUTO
        told.append(f"{name} {wins[0]} and {wins[1]} of {len(runs)}")
    if not told:
        return Finding("", MISSING)
    return Finding(f"runs above OpenCV in training and held out: {'; '.join(told)}", HELD if any_better else NOT)
