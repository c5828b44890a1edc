"""What must hold of every case. Each property takes one drawn example and raises where it does not hold."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from fuzz.cases import CHEAP, COSTLY, Array, Case, cases, tell
from sumbo import AdditiveGP, Float, Optimizer, Space, structure
from sumbo.gp import threads

SECONDS, SECONDS_WIDE = 20.0, 60.0  # of one processor for one suggestion: far above what any of them needs
WIDE = 100  # parameters from which the longer time holds


def asks_go_on(case: Case) -> None:
    """Whatever was told, `ask` answers in bounded time with a point of the space that is new; and so it goes on.

    A study that was saved and read back goes on with the same points.
    """
    opt = case.optimizer()
    space = opt.space
    seen = {_key(t.params) for t in opt.trials}
    waiting = [_timed_ask(opt, case) for _ in range(case.pending)]
    twin = Optimizer.from_dict(json.loads(json.dumps(opt.to_dict())))
    following = [_timed_ask(opt, case)]
    assert twin.ask().params == following[0].params, "a saved study goes on elsewhere"
    for i in range(1, case.steps):
        tell(opt, opt.tell, following[-1], _answer(case, i))
        following.append(_timed_ask(opt, case))
    for trial in waiting + following:
        assert _key(space.from_array(space.array(trial.params))) == _key(trial.params), "not a point of the space"
        if _has_room(space, seen):
            assert _key(trial.params) not in seen, f"told before: {trial.params}"
        seen.add(_key(trial.params))
    assert opt.best is None or opt.best.value is not None
    _model_is_sane(opt)


def units_of_values_do_not_matter(case: Case, power: int) -> None:
    """Values times a power of two give the same suggestions, to the last bit: such a product is exact.

    Of other factors no more can be promised than that suggestions are close, because products are rounded.
    """
    _, y = case.history()
    exponents = np.frexp(y[np.isfinite(y) & (y != 0)])[1]
    assume(not len(exponents) or (exponents.min() > -970 and exponents.max() + power < 1024))
    assume(not len(exponents) or exponents.min() + power > -970)  # below that, digits are lost
    _same_asks(case.optimizer(y), case.optimizer(np.ldexp(y, power)))


def shifts_of_values_do_not_matter(case: Case, eighths: list[int], power: int) -> None:
    """Values plus a constant give the same suggestions, to the last bit, where no sum on the way is rounded.

    That holds where the values are few-digit multiples of 1/8, the constant is a power of two, and their number is one
    too, so that the mean is exact. Elsewhere the mean is rounded differently, and suggestions are merely close.
    """
    y = np.array(eighths) / 8.0
    case = replace(case, n=len(y))
    _same_asks(case.optimizer(y), case.optimizer(y + 2.0**power))


def threads_do_not_matter(case: Case) -> None:
    """One thread and two give the same suggestions, to the last bit."""
    try:
        threads.use(1)
        one = case.optimizer()
        expected = [one.ask().x.tobytes() for _ in range(2)]
        threads.use(2)
        two = case.optimizer()
        assert [two.ask().x.tobytes() for _ in range(2)] == expected
    finally:
        threads.use(1)


def labels_of_dimensions_do_not_matter(seed: int, sizes: list[int], order_seed: int) -> None:
    """Relabelled dimensions give relabelled groups, right or wrong, and the same model.

    A whole run cannot promise as much: its suggestions draw random numbers for places in the space, not for names.
    """
    rng, D = np.random.default_rng(seed), sum(sizes)
    truth = np.split(np.arange(D), np.cumsum(sizes)[:-1])
    X = rng.random((60 + 20 * D, D))
    y = _standard(sum(np.prod(np.cos(3.0 * X[:, g] + j), axis=1) for j, g in enumerate(truth)))
    order = np.random.default_rng(order_seed).permutation(D)  # the new dimension p was order[p]
    Z = np.ascontiguousarray(X[:, order])
    new_name = np.argsort(order)
    found = _groups(X, y, seed)
    assert {tuple(sorted(new_name[list(g)].tolist())) for g in found} == set(_groups(Z, y, seed))
    a = AdditiveGP(found).fit(X, y)
    b = AdditiveGP([tuple(new_name[list(g)].tolist()) for g in found]).fit(Z, y)
    # The fit adds up in another order, so it may stop elsewhere on the same flat top.
    np.testing.assert_allclose(b.log_marginal_likelihood(), a.log_marginal_likelihood(), rtol=1e-3, atol=1e-2)


def _groups(X: Array, y: Array, seed: int) -> list[tuple[int, ...]]:
    start = AdditiveGP([(i,) for i in range(X.shape[1])])
    found = structure.search(X, y, start, np.random.default_rng(seed), max_group_size=3, evaluations=300)
    return [tuple(sorted(group)) for group in found.groups]


def _standard(y: Array) -> Array:
    return (y - y.mean()) / y.std()


def _key(params: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(params.values())


def _has_room(space: Space, seen: set[Any]) -> bool:
    """Is it promised that the next point is new? In a continuous space always, else while half of it is untried."""
    return any(isinstance(p, Float) for p in space.parameters) or 2 * len(seen) < (space.size or 0)


def _timed_ask(opt: Optimizer, case: Case) -> Any:
    before = time.process_time()
    trial = opt.ask()
    spent = time.process_time() - before
    limit = SECONDS_WIDE if case.dim > WIDE else SECONDS
    assert spent < limit, f"{spent:.1f} s for one suggestion; at most {limit:g} s are allowed"
    return trial


def _answer(case: Case, i: int) -> float:
    """One more value of the kind that the case has."""
    y = case.history()[1]
    return float(y[i]) if i < len(y) else 1.0


def _model_is_sane(opt: Optimizer) -> None:
    model = opt.model
    if model is None or model.decomposition.dim > WIDE:
        return
    mean, std = model.posterior(np.vstack([np.full((1, opt.space.dim), 0.5), model.X[:3]]))
    assert np.isfinite(mean).all(), mean
    assert np.isfinite(std).all(), std
    assert (std >= 0).all(), std
    assert np.isfinite(model.log_marginal_likelihood())


def _same_asks(a: Optimizer, b: Optimizer) -> None:
    for _ in range(2):
        x, other = a.ask(), b.ask()
        assert x.x.tobytes() == other.x.tobytes(), (x.params, other.params)


@dataclass(frozen=True)
class Property:
    """A property with the examples it takes and how many: in the tests, and in the long run."""

    check: Callable[..., None]
    examples: dict[str, st.SearchStrategy[Any]]
    few: int
    many: int


_METHODS = CHEAP + COSTLY
_MODELLED = tuple(name for name in COSTLY if name != "seq-groups")
_EIGHTHS = st.lists(st.integers(-8000, 8000), min_size=1, max_size=32)

PROPERTIES = {
    "asks go on, cheap methods": Property(asks_go_on, {"case": cases(CHEAP, 20_000)}, 60, 11_000),
    "asks go on, models": Property(asks_go_on, {"case": cases(COSTLY, 2000)}, 50, 6000),
    "units of values": Property(
        units_of_values_do_not_matter, {"case": cases(_METHODS, 1000), "power": st.integers(-900, 900)}, 20, 2500
    ),
    "shifts of values": Property(
        shifts_of_values_do_not_matter,
        {
            "case": cases(_MODELLED, 1000, dim=st.integers(1, 12)),
            "eighths": _EIGHTHS,
            "power": st.integers(-3, 20),
        },
        20,
        1250,
    ),
    "threads": Property(
        threads_do_not_matter,
        {"case": cases(_MODELLED, 1000, dim=st.integers(1, 5), n=st.integers(150, 200))},
        5,
        150,
    ),
    "labels of dimensions": Property(
        labels_of_dimensions_do_not_matter,
        {
            "seed": st.integers(0, 10**6),
            "sizes": st.lists(st.integers(1, 3), min_size=2, max_size=4),
            "order_seed": st.integers(0, 10**6),
        },
        5,
        150,
    ),
}
