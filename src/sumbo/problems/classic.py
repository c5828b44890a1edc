"""Classic test functions in D dimensions, all minimised, in their textbook form.

With `shift_seed` the function moves so that its optimum leaves its familiar place: every coordinate by a
uniform draw of at most a stated fraction of the box's width. The box itself stays, and so does the optimum's
value.

    x      textbook coordinates: the user's point minus the shift       (n, D)
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from sumbo.errors import SettingError
from sumbo.problems.base import Groups, Problem, canonical, others, whole_number
from sumbo.regret import FloatArray
from sumbo.space import Space

_STYBLINSKI_TANG_AT = -2.903534027771177  # the lowest root of the derivative 2 x^3 - 16 x + 2.5
_STYBLINSKI_TANG_BEST = -39.16616570377141  # per dimension

_HARTMANN_WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
_HARTMANN_RATES = np.array(
    [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ]
)
_HARTMANN_CENTRES = np.array(
    [
        [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
        [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
        [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
        [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
    ]
)
# From Newton's method on the formula: tables give six digits only.
_HARTMANN_AT = np.array([0.20168951, 0.15001069, 0.47687397, 0.27533243, 0.31165162, 0.65730053])
_HARTMANN_BEST = -3.322368011415515


def styblinski_tang(D: int, *, shift_seed: int | None = None) -> Problem:
    """Styblinski-Tang on [-5, 5]^D: 1/2 sum_i (x_i^4 - 16 x_i^2 + 5 x_i), a sum over single dimensions.

    Args:
        D: Number of dimensions.
        shift_seed: Moves the optimum by up to 10% of the box's width in every coordinate; None leaves it.

    Raises:
        SettingError: If D is not a whole number >= 1.
    """
    D = whole_number("D", D, at_least=1)
    return _problem(
        "styblinski-tang",
        _styblinski_tang,
        box=(-5.0, 5.0),
        at=np.full(D, _STYBLINSKI_TANG_AT),
        optimum=D * _STYBLINSKI_TANG_BEST,
        groups=_singletons(D),
        shift=_shift(D, shift_seed, width=10.0, fraction=0.1),
    )


def levy(D: int, *, shift_seed: int | None = None) -> Problem:
    """Levy on [-10, 10]^D, a sum over single dimensions, each with many local minima.

    With w_i = 1 + (x_i - 1) / 4: sin^2(pi w_1) + sum_{i<D} (w_i - 1)^2 (1 + 10 sin^2(pi w_i + 1))
    + (w_D - 1)^2 (1 + sin^2(2 pi w_D)).

    Args:
        D: Number of dimensions.
        shift_seed: Moves the optimum by up to 15% of the box's width in every coordinate; None leaves it.

    Raises:
        SettingError: If D is not a whole number >= 1.
    """
    D = whole_number("D", D, at_least=1)
    return _problem(
        "levy",
        _levy,
        box=(-10.0, 10.0),
        at=np.ones(D),
        groups=_singletons(D),
        shift=_shift(D, shift_seed, width=20.0, fraction=0.15),
    )


def rosenbrock(D: int, *, log: bool = False, shift_seed: int | None = None) -> Problem:
    """Rosenbrock on [-2, 2]^D: sum_{i<D} 100 (x_{i+1} - x_i^2)^2 + (1 - x_i)^2.

    Its terms chain neighbours into overlapping pairs, so it has no true groups. The box is the narrow one of
    those in use; the wide one, [-5, 10]^D, mostly shows how large x^4 can get.

    Args:
        D: Number of dimensions.
        log: Take log(1 + f) instead of f, which tames its range of several orders of magnitude.
        shift_seed: Moves the optimum by up to 10% of the box's width in every coordinate; None leaves it.

    Raises:
        SettingError: If D is not a whole number >= 2.
    """
    D = whole_number("D", D, at_least=2)
    return _problem(
        "rosenbrock-log" if log else "rosenbrock",
        _log_rosenbrock if log else _rosenbrock,
        box=(-2.0, 2.0),
        at=np.ones(D),
        groups=None,
        shift=_shift(D, shift_seed, width=4.0, fraction=0.1),
    )


def ackley(D: int, *, shift_seed: int | None = None) -> Problem:
    """Ackley on [-15, 15]^D: a funnel with many dents, of all coordinates at once.

    -20 exp(-0.2 sqrt(mean x_i^2)) - exp(mean cos(2 pi x_i)) + 20 + e. The box is narrower than the
    also usual [-32.768, 32.768]^D, whose outer part is all but flat.

    Args:
        D: Number of dimensions.
        shift_seed: Moves the optimum by up to 15% of the box's width in every coordinate; None leaves it.

    Raises:
        SettingError: If D is not a whole number >= 1.
    """
    D = whole_number("D", D, at_least=1)
    return _problem(
        "ackley",
        _ackley,
        box=(-15.0, 15.0),
        at=np.zeros(D),
        groups=None,
        shift=_shift(D, shift_seed, width=30.0, fraction=0.15),
    )


def powell(D: int, *, shift_seed: int | None = None) -> Problem:
    """Powell's singular function on [-4, 5]^D, a sum over groups of four.

    Per group (a, b, c, d): (a + 10 b)^2 + 5 (c - d)^2 + (b - 2 c)^4 + 10 (a - d)^4.

    Args:
        D: Number of dimensions, a multiple of four.
        shift_seed: Moves the optimum by up to 10% of the box's width in every coordinate, and puts random
            coordinates together; None leaves the optimum at zero and groups consecutive coordinates.

    Raises:
        SettingError: If D is not a positive multiple of four.
    """
    D = whole_number("D", D, at_least=4)
    if D % 4:
        raise SettingError(
            f"powell needs D to be a multiple of 4, for it sums over groups of four; got {D}, use {D - D % 4}"
        )
    shift = _shift(D, shift_seed, width=9.0, fraction=0.1)
    order = np.arange(D) if shift_seed is None else np.random.default_rng(5000 + shift_seed).permutation(D)
    order = order.reshape(-1, 4)
    return _problem(
        "powell",
        partial(_powell, order=order),
        box=(-4.0, 5.0),
        at=np.zeros(D),
        groups=canonical(order),
        shift=shift,
    )


def hartmann6(D: int, seed: int = 0) -> Problem:
    """Hartmann's six-dimensional function in [0, 1]^D, of which six coordinates matter.

    -sum_k a_k exp(-sum_i A_ki (x_i - P_ki)^2) with four terms k.

    Args:
        D: Number of dimensions.
        seed: Chooses the six coordinates and their order.

    Raises:
        SettingError: If D is not a whole number >= 6.
    """
    D = whole_number("D", D, at_least=6)
    active = np.random.default_rng(3000 + whole_number("seed", seed, at_least=0)).permutation(D)[:6]
    at = np.full(D, 0.5)
    at[active] = _HARTMANN_AT
    return _problem(
        "hartmann6",
        partial(_hartmann6, active=active),
        box=(0.0, 1.0),
        at=at,
        optimum=_HARTMANN_BEST,
        groups=canonical([active]),
        shift=np.zeros(D),
    )


def _problem(
    kind: str,
    function: Callable[[FloatArray], FloatArray],
    *,
    box: tuple[float, float],
    at: FloatArray,
    optimum: float = 0.0,
    groups: Groups | None,
    shift: FloatArray,
) -> Problem:
    D = len(at)
    return Problem(
        name=f"{kind}-{D}",
        space=Space.from_bounds([box] * D),
        direction="minimize",
        optimum=optimum,
        optimiser=at + shift,
        # partial, not a closure: a problem can then be pickled for worker processes.
        evaluate=partial(_shifted, function=function, shift=shift),
        groups=groups,
        irrelevant=() if groups is None else others(D, groups),
    )


def _shift(D: int, seed: int | None, *, width: float, fraction: float) -> FloatArray:
    if seed is None:
        return np.zeros(D)
    rng = np.random.default_rng(2000 + whole_number("shift_seed", seed, at_least=0))
    return width * rng.uniform(-fraction, fraction, D)


def _singletons(D: int) -> Groups:
    return tuple((i,) for i in range(D))


def _shifted(X: FloatArray, *, function: Callable[[FloatArray], FloatArray], shift: FloatArray) -> FloatArray:
    return function(X - shift)


def _styblinski_tang(x: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (x**4 - 16 * x**2 + 5 * x).sum(axis=1))


def _levy(x: FloatArray) -> FloatArray:
    w = 1 + (x - 1) / 4
    inner, last = w[:, :-1], w[:, -1]
    first = np.sin(np.pi * w[:, 0]) ** 2
    middle = ((inner - 1) ** 2 * (1 + 10 * np.sin(np.pi * inner + 1) ** 2)).sum(axis=1)
    return np.asarray(first + middle + (last - 1) ** 2 * (1 + np.sin(2 * np.pi * last) ** 2))


def _rosenbrock(x: FloatArray) -> FloatArray:
    here, following = x[:, :-1], x[:, 1:]
    return np.asarray((100 * (following - here**2) ** 2 + (1 - here) ** 2).sum(axis=1))


def _log_rosenbrock(x: FloatArray) -> FloatArray:
    return np.log1p(_rosenbrock(x))


def _ackley(x: FloatArray) -> FloatArray:
    funnel = 20 * (1 - np.exp(-0.2 * np.sqrt((x**2).mean(axis=1))))
    dents = np.e - np.exp(np.cos(2 * np.pi * x).mean(axis=1))
    return np.asarray(funnel + dents)


def _powell(x: FloatArray, *, order: npt.NDArray[np.intp]) -> FloatArray:
    a, b, c, d = (x[:, order[:, k]] for k in range(4))  # each (n, D / 4)
    terms = (a + 10 * b) ** 2 + 5 * (c - d) ** 2 + (b - 2 * c) ** 4 + 10 * (a - d) ** 4
    return np.asarray(terms.sum(axis=1))


def _hartmann6(x: FloatArray, *, active: npt.NDArray[np.intp]) -> FloatArray:
    offsets = x[:, None, active] - _HARTMANN_CENTRES  # (n, 4, 6)
    bumps = np.exp(-(_HARTMANN_RATES * offsets**2).sum(axis=2))
    return np.asarray(-(bumps @ _HARTMANN_WEIGHTS))
