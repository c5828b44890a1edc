"""The allowed part of the cube: samples, nearest points and climbs lie inside, wherever inside is."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import optimize

from sumbo._typing import Array
from sumbo.errors import SpaceError
from sumbo.space import Categorical, Float, Int, Parameter, Space
from sumbo.space.constraints import Constraint, Known, Linear, SumTo
from sumbo.space.region import Region


def floats(D: int, low: float = 0.0, high: float = 1.0) -> Space:
    return Space({f"x{i}": Float(low, high) for i in range(D)})


def shares(D: int, total: float = 1.0) -> Linear:
    return SumTo([f"x{i}" for i in range(D)], total)


def random_system(seed: int) -> tuple[Space, list[Linear]]:
    """Constraints of all kinds around a point, as narrow as 1e-9."""
    rng = np.random.default_rng(seed)
    D, count = int(rng.integers(2, 31)), int(rng.integers(1, 6))
    low = rng.normal(size=D) * 10.0 ** rng.integers(-2, 4)
    high = low + 10.0 ** rng.uniform(-1, 3, size=D)
    space = Space({f"x{i}": Float(a, b) for i, (a, b) in enumerate(zip(low, high, strict=True))})
    x = low + (high - low) * rng.uniform(0.2, 0.8, size=D)
    constraints = []
    for _ in range(count):
        some = rng.choice(D, size=int(rng.integers(1, D + 1)), replace=False)
        c = rng.normal(size=len(some)) / (high - low)[some]
        width = 10.0 ** rng.uniform(-9, 0) if rng.random() < 0.7 else 0.0
        middle = float(c @ x[some])
        bounds: dict[str, Any] = {"lower": middle - width / 2, "upper": middle + width / 2}
        if width and rng.random() < 0.3:
            del bounds[str(rng.choice(["lower", "upper"]))]
        constraints.append(Linear({f"x{i}": v for i, v in zip(some, c, strict=True)}, **bounds))
    return space, constraints


def quadratic(target: Array) -> Any:
    return lambda U: (-np.square(U - target).sum(axis=1), -2.0 * (U - target))


def never() -> bool:
    return False


def distance(a: Array, b: Array) -> float:
    return float(np.linalg.norm(a - b))


def assert_whole_contract(region: Region, seed: int = 0, m: int = 64) -> Array:
    """What holds for every region that is not empty. Returns samples."""
    D = region.space.dim
    V = region.sample(m, np.random.default_rng(seed))
    assert V.shape == (m, D)
    assert region.contains(V).all()
    np.testing.assert_array_equal(region.snap(V), V)
    again = Region(region.space, region.constraints, dict(zip(region._fixed.tolist(), region._values, strict=True)))
    np.testing.assert_array_equal(again.sample(m, np.random.default_rng(seed)), V)
    np.testing.assert_array_equal(region.sample(m, np.random.default_rng(seed)), V)
    for u in np.random.default_rng(seed + 1).random((4, D)):
        v = region.nearest(u)
        assert region.contains(v[None]).all()
        np.testing.assert_array_equal(region.nearest(v), v)
        best = min(distance(w, region.snap(u)) for w in V)
        assert distance(v, region.snap(u)) <= 2.0 * best + 1e-9
    P, values = region.climb(quadratic(np.full(D, 0.7)), V[:3], np.zeros(D), np.ones(D), stop=never)
    assert region.contains(P).all()
    assert (values >= quadratic(np.full(D, 0.7))(V[:3])[0] - 1e-12).all()
    np.testing.assert_array_equal(P[:, region.space.nominal], V[:3, region.space.nominal])
    return V


@pytest.mark.parametrize("seed", range(40))
def test_random_linear_systems(seed: int) -> None:
    space, constraints = random_system(seed)
    region = Region(space, constraints)
    V = assert_whole_contract(region, seed)
    numbers = np.array([space.array(space.from_unit(v)) for v in V])
    for c in constraints:
        i = [space.names.index(name) for name in c.coefficients]
        coefficients = np.array(list(c.coefficients.values()))
        sums = numbers[:, i] @ coefficients
        size = sum(abs(k) * max(abs(space[n].low), abs(space[n].high)) for n, k in c.coefficients.items())
        assert c.lower is None or (sums >= c.lower - 1.01e-9 * size).all()
        assert c.upper is None or (sums <= c.upper + 1.01e-9 * size).all()


@pytest.mark.parametrize("seed", range(12))
def test_climb_and_nearest_find_what_scipy_finds(seed: int) -> None:
    space, constraints = random_system(100 + seed)
    region = Region(space, constraints)
    D = space.dim
    target = np.random.default_rng(seed).uniform(-0.5, 1.5, size=D)
    low, high = (np.array([getattr(p, end) for p in space.parameters]) for end in ("low", "high"))
    rows = np.zeros((len(constraints), D))
    ends = []
    for row, c in zip(rows, constraints, strict=True):
        for name, k in c.coefficients.items():
            i = space.names.index(name)
            row[i] = k * (high - low)[i]
        offset = sum(k * space[name].low for name, k in c.coefficients.items())
        ends.append(
            [(-np.inf if c.lower is None else c.lower) - offset, (np.inf if c.upper is None else c.upper) - offset]
        )
    lower, upper = np.array(ends).T
    oracle = optimize.minimize(
        lambda u: np.square(u - target).sum(),
        region.sample(1, np.random.default_rng(0))[0],
        jac=lambda u: 2.0 * (u - target),
        hess=lambda u: 2.0 * np.eye(D),
        bounds=[(0, 1)] * D,
        constraints=optimize.LinearConstraint(rows, lower, upper),
        method="trust-constr",
        options={"gtol": 1e-10, "xtol": 1e-12, "maxiter": 3000},
    )
    starts = region.sample(2, np.random.default_rng(1))
    P, values = region.climb(quadratic(target), starts, np.zeros(D), np.ones(D), stop=never)
    assert (-values <= oracle.fun + 1e-6).all()
    inside = np.clip(target, 0.0, 1.0)
    if (target == inside).all():
        assert distance(region.nearest(target), P[0]) < 1e-5


@pytest.mark.parametrize("D", [2, 3, 5, 12, 25])
def test_mixtures_are_sampled_evenly(D: int) -> None:
    region = Region(floats(D), [shares(D)])
    m = 6000
    V = region.sample(m, np.random.default_rng(D))
    np.testing.assert_allclose(V.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    mean, variance = 1.0 / D, (1.0 / D) * (1.0 - 1.0 / D) / (D + 1)  # Dirichlet(1, ..., 1)
    np.testing.assert_allclose(V.mean(axis=0), mean, atol=0.12 / D)
    np.testing.assert_allclose(V.var(axis=0), variance, rtol=0.3)
    assert V.var(axis=0).mean() == pytest.approx(variance, rel=0.1)
    largest = np.sum(1.0 / np.arange(1, D + 1)) / D
    assert V.max(axis=1).mean() == pytest.approx(largest, rel=0.05)


def test_a_thin_slab_is_sampled_along_its_length() -> None:
    space = floats(6)
    c = {"x0": 1.0, "x1": -1.0}
    region = Region(space, [Linear(c, lower=0.1, upper=0.1 + 1e-6)])
    V = assert_whole_contract(region, m=2000)
    assert V[:, 1].mean() == pytest.approx(0.45, abs=0.02)
    assert V[:, 1].std() == pytest.approx(0.9 / math.sqrt(12), rel=0.05)
    np.testing.assert_allclose(V[:, 2:].std(axis=0), 1 / math.sqrt(12), rtol=0.06)
    across = V[:, 0] - V[:, 1] - 0.1
    assert across.mean() == pytest.approx(0.5e-6, rel=0.1)
    assert across.std() == pytest.approx(1e-6 / math.sqrt(12), rel=0.15)


def test_inequalities_that_leave_a_face_only() -> None:
    """Together they are equalities, which none of them is."""
    total = {f"x{i}": 1.0 for i in range(4)}
    assert_whole_contract(Region(floats(4), [Linear(total, upper=1.0), Linear(total, lower=1.0)]))
    corner = Region(floats(4), [Linear(total, lower=4.0)])
    np.testing.assert_array_equal(assert_whole_contract(corner), 1.0)
    half = Region(floats(4), [Linear({"x0": 1, "x1": 1}, lower=2.0), Linear({"x2": 1, "x3": 1}, upper=1.0)])
    V = assert_whole_contract(half)
    assert V[:, 2].std() > 0.1


def test_redundant_equalities() -> None:
    region = Region(floats(4), [shares(4), Linear({f"x{i}": 2.0 for i in range(4)}, lower=2.0, upper=2.0)])
    assert_whole_contract(region)


def test_trivial_regions_are_plain_samples() -> None:
    space = Space({"a": Float(0, 1), "n": Int(0, 3), "c": Categorical(["u", "v"])})
    region = Region(space)
    assert region.trivial
    expected = space.snap(np.random.default_rng(5).random((50, 3)))
    np.testing.assert_array_equal(region.sample(50, np.random.default_rng(5)), expected)
    fixed = Region(space, fixed={1: 0.9})
    expected[:, 1] = 0.875
    np.testing.assert_array_equal(fixed.sample(50, np.random.default_rng(5)), expected)
    assert fixed.contains(expected).all()
    assert not fixed.contains(np.array([[0.5, 0.125, 0.25]])).any()
    fixed.check(np.random.default_rng(0))


@pytest.mark.parametrize("total", [0, 3, 12, 49, 50])
def test_integers_that_add_up(total: int) -> None:
    space = Space({f"x{i}": Int(0, 10) for i in range(5)})
    V = assert_whole_contract(Region(space, [shares(5, total)]), m=400)
    params = [space.from_unit(v) for v in V]
    assert all(sum(p.values()) == total for p in params)  # type: ignore[arg-type]
    np.testing.assert_allclose(np.mean([list(p.values()) for p in params], axis=0), total / 5, atol=0.5)  # type: ignore[arg-type]


def test_one_of_each_group() -> None:
    space = Space({f"x{i}": Int(0, 1) for i in range(40)})
    groups = [SumTo([f"x{i}" for i in range(g, g + 4)], 1) for g in range(0, 40, 4)]
    V = assert_whole_contract(Region(space, groups), m=500)
    np.testing.assert_allclose((V > 0.5).mean(axis=0), 0.25, atol=0.08)
    assert len(np.unique(V, axis=0)) > 450


def test_integers_that_only_a_search_finds() -> None:
    space = Space({"a": Int(0, 100), "b": Int(0, 100), "c": Int(0, 100)})
    region = Region(space, [Linear({"a": 12, "b": 15, "c": -20}, lower=1013, upper=1013)])
    for p in map(space.from_unit, assert_whole_contract(region)):
        assert 12 * p["a"] + 15 * p["b"] - 20 * p["c"] == 1013  # type: ignore[operator]


def test_whole_and_real_numbers_in_one_sum() -> None:
    space = Space({"n": Int(0, 5), "k": Int(1, 4), "a": Float(0, 1), "b": Float(-2, 2), "kind": Categorical([1, 2, 3])})
    constraints = [
        Linear({"n": 1, "a": 1, "b": 0.5}, lower=3.3, upper=3.3),
        Linear({"k": 1, "n": -1}, lower=0.0),
    ]
    V = assert_whole_contract(Region(space, constraints), m=300)
    assert len(np.unique(V[:, 4])) == 3


LOGS: dict[str, Parameter] = {
    "a": Float(1e-4, 1, log=True),
    "b": Float(1e-4, 1, log=True),
    "c": Float(0, 1),
    "n": Int(1, 100, log=True),
}


@pytest.mark.parametrize(
    "constraints",
    [
        [SumTo(["a", "b", "c"], 1.0)],
        [SumTo(["a", "b"], 1.0)],
        [SumTo(["a", "b"], 1.0), Linear({"a": 1, "n": 1}, upper=1.001)],
        [SumTo(["a", "b", "c"], 1.0), Linear({"c": 1, "b": -1}, lower=0, upper=0)],
        [Linear({"a": 1000, "b": 1}, upper=0.11)],
        [Linear({"a": 1, "n": 1}, lower=100.5)],
    ],
)
def test_log_scales_in_linear_constraints(constraints: list[Constraint]) -> None:
    assert_whole_contract(Region(Space(LOGS), constraints))


def test_log_scales_are_sampled_along_their_scale() -> None:
    V = Region(Space(LOGS), [SumTo(["a", "c"], 1.0)]).sample(2000, np.random.default_rng(0))
    np.testing.assert_allclose(V[:, [0, 1]].mean(axis=0), 0.5, atol=0.03)


def ring(p: dict[str, Any]) -> float:
    return abs(math.hypot(p["x"], p["y"]) - 0.8) - 0.01


def product(p: dict[str, Any]) -> float:
    return 4.0 - 16.0 * p["x"] * p["y"]


def islands(p: dict[str, Any]) -> float:
    return min(math.hypot(p["x"] - s * 0.7, p["y"] - s * 0.7) for s in (1, -1)) - 0.03


@pytest.mark.parametrize("function", [ring, product, islands])
def test_known_constraints(function: Any) -> None:
    space = Space({"x": Float(-1, 1), "y": Float(-1, 1), "kind": Categorical(["a", "b"])})
    V = assert_whole_contract(Region(space, [Known(function, name="k")]), m=500)
    np.testing.assert_allclose(V[:, :2].mean(axis=0), 0.5, atol=0.1)  # all three are symmetric
    assert 0.35 < (V[:, 2] > 0.5).mean() < 0.65
    assert all(function(space.from_unit(v)) <= 0.0 for v in V)


def test_a_climb_ends_on_the_boundary_of_a_known_constraint() -> None:
    region = Region(floats(2, -1, 1), [Known(lambda p: p["x0"] ** 2 + p["x1"] ** 2 - 0.25, name="disc")])
    starts = region.sample(5, np.random.default_rng(0))
    P, _ = region.climb(lambda U: (U.sum(axis=1), np.ones_like(U)), starts, np.zeros(2), np.ones(2), stop=never)
    np.testing.assert_allclose(P, 0.5 + 0.25 / math.sqrt(2), atol=1e-6)
    near = region.nearest(np.array([1.0, 1.0]))
    np.testing.assert_allclose(near, 0.5 + 0.25 / math.sqrt(2), atol=1e-5)


def test_known_with_everything_else() -> None:
    space = Space({**LOGS, "kind": Categorical(["a", "b"]), "m": Int(0, 9)})
    constraints = [
        SumTo(["a", "b", "c"], 1.0),
        Linear({"m": 1, "n": 1}, upper=12),
        Known(lambda p: p["a"] * p["m"] - (0.02 if p["kind"] == "a" else 0.1), name="dose"),
        Known(lambda p: 0.3 - math.sqrt(p["b"] * p["c"]), name="mean"),
    ]
    assert_whole_contract(Region(space, constraints))


def test_known_is_not_asked_where_linear_constraints_forbid() -> None:
    region = Region(
        floats(2),
        [
            Linear({"x0": 1, "x1": 1}, upper=1),
            Known(lambda p: -math.sqrt(1 - p["x0"] - p["x1"] + 1e-8) + 0.5, name="root"),
        ],
    )
    assert_whole_contract(region)


def test_a_known_that_is_infinite() -> None:
    region = Region(floats(2), [Known(lambda p: math.inf if p["x0"] > 0.3 else -math.inf, name="wall")])
    V = assert_whole_contract(region)
    assert (V[:, 0] <= 0.3).all()


def test_fixed_values() -> None:
    space = floats(5)
    region = Region(space, [shares(5)], fixed={0: 0.25, 3: 0.5})
    V = assert_whole_contract(region)
    assert (V[:, [0, 3]] == [0.25, 0.5]).all()
    np.testing.assert_allclose(V[:, [1, 2, 4]].sum(axis=1), 0.25, atol=1e-12)
    everything = Region(space, [shares(5)], fixed=dict.fromkeys(range(5), 0.2))
    np.testing.assert_array_equal(assert_whole_contract(everything), 0.2)
    region.check(np.random.default_rng(0))


def test_climb_stays_in_its_box_and_stops() -> None:
    region = Region(floats(4), [shares(4)])
    starts = np.full((3, 4), 0.25)
    low, high = np.full(4, 0.2), np.full(4, 0.3)
    P, _ = region.climb(lambda U: (U[:, 0].copy(), np.eye(4)[[0] * len(U)]), starts, low, high, stop=never)
    np.testing.assert_allclose(P[:, 0], 0.3, atol=1e-9)
    assert (P >= 0.2 - 1e-9).all()
    calls = []
    P, _ = region.climb(quadratic(np.zeros(4)), starts, low, high, stop=lambda: not calls.append(0))
    np.testing.assert_array_equal(P, starts)
    assert len(calls) == 3


def test_hundreds_of_parameters() -> None:
    D = 200
    rng = np.random.default_rng(0)
    c, x = rng.normal(size=(2, D)), rng.random(D)
    constraints = [Linear({f"x{i}": k for i, k in enumerate(row)}, lower=row @ x - 1e-4, upper=row @ x) for row in c]
    region = Region(floats(D), [*constraints, SumTo([f"x{i}" for i in range(0, D, 2)], 30.0)])
    V = region.sample(200, rng)
    assert region.contains(V).all()
    u = rng.random(D)
    assert region.contains(region.nearest(u)[None]).all()
    P, _ = region.climb(quadratic(u), V[:1], np.zeros(D), np.ones(D), stop=never)
    assert region.contains(P).all()
    assert distance(P[0], region.nearest(u)) < 1e-4


def test_violations_are_relative() -> None:
    region = Region(floats(2, 0, 100), [Linear({"x0": 1, "x1": 1}, upper=100), Linear({"x0": 1}, lower=10)])
    np.testing.assert_allclose(region.violations(np.array([[0.5, 0.5], [1.0, 1.0], [0.0, 0.5]])), [0.0, 0.5, 0.1])


SPACE = Space({"a": Float(0, 1), "b": Float(0, 1), "n": Int(0, 4), "m": Int(0, 4), "kind": Categorical(["u", "v"])})


@pytest.mark.parametrize(
    ("constraints", "fixed", "message"),
    [
        ([Linear({"a": 1}, lower=2)], {}, r"\(2 <= a\) cannot hold within the ranges"),
        (
            [
                Linear({"a": 1, "b": 1}, lower=1.35, name="much"),
                Linear({"b": 1}, upper=0.9),
                Linear({"a": 1}, upper=0.4),
            ],
            {},
            r"'much' \(1.35 <= a \+ b\) and \(b <= 0.9\) and \(a <= 0.4\) contradict",
        ),
        (
            [Linear({"n": 1}, upper=3), SumTo(["a", "b"], 1), SumTo(["a", "b"], 1.1)],
            {},
            r"no point is allowed: \(a \+ b == 1\) and",
        ),
        ([Linear({"n": 2, "m": 4}, lower=5, upper=5)], {}, "values that the parameters take"),
        ([Known(lambda p: 1.0 + p["a"], name="never")], {}, "no allowed point was found in .*never <= 0.*signs"),
        ([SumTo(["a", "b"], 1.5)], {0: 0.25}, r"no allowed point has the fixed values \{'a': 0.25\}"),
        ([Known(lambda p: p["kind"] == "u", name="v only")], {4: 0.25}, r"fixed values \{'kind': 'u'\}"),
        ([Linear({"a": 1}, lower=2)], {1: 0.5}, "cannot hold within the ranges"),
    ],
)
def test_empty_regions_are_named(constraints: list[Constraint], fixed: dict[int, float], message: str) -> None:
    region = Region(SPACE, constraints, fixed)
    with pytest.raises(SpaceError, match=message):
        region.check(np.random.default_rng(0))
    with pytest.raises(SpaceError, match=message):
        region.sample(3, np.random.default_rng(0))
    with pytest.raises(SpaceError, match=message):
        region.nearest(np.full(5, 0.3))


def test_thin_regions_are_named_but_mixtures_are_not_thin() -> None:
    rng = np.random.default_rng(0)
    with pytest.warns(RuntimeWarning, match=r"'slab'.*roughly [0-9]e-0[67] of the space"):
        Region(floats(3), [Linear({"x0": 1, "x1": 1}, lower=1, upper=1 + 1e-6, name="slab")]).check(rng)
    with pytest.warns(RuntimeWarning, match="'dot' .*roughly .e-1"):
        Region(floats(2), [Known(lambda p: math.hypot(p["x0"] - 0.3, p["x1"] - 0.3) - 1e-6, name="dot")]).check(rng)
    with warnings.catch_warnings(action="error"):
        Region(floats(20), [shares(20)]).check(rng)
        Region(floats(20), [shares(20), Linear({"x0": 1}, upper=0.1)]).check(rng)
        Region(floats(3), [Linear({"x0": 1, "x1": 1}, lower=1)]).check(rng)


def test_constraints_must_fit() -> None:
    with pytest.raises(SpaceError, match="did you mean 'a'"):
        Region(SPACE, [Linear({"aa": 1}, upper=1)])
    with pytest.raises(SpaceError, match=r"known constraint 'bad' at .*KeyError"):
        Region(SPACE, [Known(lambda p: p["z"], name="bad")]).check(np.random.default_rng(0))
