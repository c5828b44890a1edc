"""Studies that a report must get right, each made in a moment."""

import numpy as np

import sumbo
from sumbo.insights.analysis import StudyAnalysis

HOSTILE = (
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 2'>",
    '"><svg onload="window.hacked = 3">',
    '<a href="javascript:window.hacked=4">click</a>',
    "%{x} $\\alpha$ \u2028\u202e\x07 <b>bold</b>",
    "2020-01-01",
)


def evaluated(space, f, n, *, method="auto", direction="minimize", pending=0):
    """An optimizer that saw n random points of the space, the same every time; None from f is a failure."""
    opt = sumbo.Optimizer(space, method, direction, seed=0)
    rng = np.random.default_rng(0)
    for _ in range(n):
        params = opt.space.from_unit(rng.random(opt.space.dim))
        value = f(params)
        if value is None:
            opt.observe(params, failed=True, reason="it melted")
        else:
            opt.observe(params, float(value))
    for _ in range(pending):
        opt.ask()
    return opt


def ordinary():
    """A map, a slice with sliders, a curve, categories, whole numbers, a log scale, failures, two trials running."""
    space = {
        "lr": sumbo.Float(1e-5, 1e-1, log=True),
        "batch": sumbo.Int(8, 512, log=True),
        "act": sumbo.Categorical(["relu", "gelu", "tanh"]),
        "dropout": sumbo.Float(0.0, 0.5),
        "u": sumbo.Float(0, 1),
        "v": sumbo.Int(1, 5),
        "w": sumbo.Float(-1, 1),
    }

    def f(p):
        if p["lr"] > 0.05:
            return None
        off = np.log10(p["lr"]) + 3 - 0.8 * (np.log2(p["batch"]) - 6)
        act = {"relu": 0.6, "gelu": 0.0, "tanh": 1.2}[p["act"]]
        return off**2 / 4 + act + 6 * (p["dropout"] - 0.2) ** 2 + p["u"] * p["v"] * p["w"]

    method = sumbo.Auto(groups=[("lr", "batch"), ("u", "v", "w")])
    return evaluated(space, f, 60, method=method, pending=2)


def empty():
    return evaluated([(0, 1)] * 2, lambda p: 0.0, 0)


def one_trial():
    return evaluated([(0, 1)] * 2, lambda p: 1.5, 1)


def all_failed():
    return evaluated([(0, 1)] * 2, lambda p: None, 12)


def many_trials():
    return evaluated([(0, 1)] * 3, lambda p: None if p["x0"] > 0.9 else p["x0"] + p["x1"] ** 2, 2000, method="random")


def many_parameters():
    return evaluated(
        [(0, 1)] * 100, lambda p: p["x0"] + p["x1"] * p["x2"], 40, method=sumbo.Auto(groups=[("x1", "x2")])
    )


def constant():
    return evaluated([(0, 1)] * 2, lambda p: 7.0, 12)


def categories():
    space = {"a": sumbo.Categorical(["x", "y"]), "b": sumbo.Categorical([1, 2.5, None, "1"])}
    return evaluated(space, lambda p: (p["a"] == "x") + (p["b"] == 2.5), 14)


def hostile():
    """Names, categories and reasons that would be code, links or markup if anything took them for that."""
    space = {name: sumbo.Float(0, 1) for name in HOSTILE[:5]} | {HOSTILE[5]: sumbo.Categorical(list(HOSTILE))}
    opt = evaluated(space, lambda p: sum(p[n] * (k + 1) for k, n in enumerate(HOSTILE[:5])), 16)
    opt.observe(opt.space.from_unit(np.full(6, 0.5)), failed=True, reason=HOSTILE[1])
    return opt


def long():
    """Much to print, little to compute."""
    return evaluated({f"p{i}": sumbo.Float(0, 1) for i in range(45)}, lambda p: 7.0, 250)


def unsure():
    """Probabilities of all sizes, in a matrix that has them written in it."""
    noise = np.random.default_rng(1)
    return evaluated([(0, 1)] * 5, lambda p: p["x0"] * p["x1"] + p["x2"] * p["x3"] + noise.normal(0, 0.1), 20)


def log_slices():
    """A group of three whose axes are logarithmic: seven decades, two, and less than one."""
    space = {name: sumbo.Float(*ends, log=True) for name, ends in LOG_ENDS.items()}
    product = lambda p: float(np.prod([np.log(value) for value in p.values()]))  # noqa: E731
    return evaluated(space, product, 12, method=sumbo.Auto(groups=[tuple(space)]))


def constrained(n=40):
    """Two constraints told with the values: stress forbids the best points, mass nothing that matters; some noise."""
    opt, noise = sumbo.Optimizer(BEAM, seed=0, constraints=["stress <= 1", "mass >= 0.2"]), np.random.default_rng(0)
    for _ in range(n):
        trial = opt.ask()
        p = trial.params
        value = (p["width"] - 0.9) ** 2 + (p["height"] - 0.9) ** 2 + noise.normal(0, 0.01)
        opt.tell(trial, value, constraints={"stress": p["width"] + p["height"], "mass": p["width"] + 0.5})
    return opt


def conditional():
    """Parameters that exist for some points only, one of them of one that does; an order; steps."""
    space = {
        "kernel": sumbo.Categorical(["rbf", "poly", "tree"]),
        "degree": sumbo.Int(2, 5, when={"kernel": "poly"}),
        "gamma": sumbo.Float(1e-3, 1, log=True, when={"kernel": ["rbf", "poly"]}),
        "grade": sumbo.Ordinal(["coarse", "fine", "extra fine"]),
        "temp": sumbo.Float(20, 80, step=0.125),
    }

    def f(p):
        by_kernel = {"rbf": 0.5, "poly": 0.2 * (p.get("degree", 3) - 3) ** 2, "tree": 1.0}[p["kernel"]]
        by_gamma = 0.2 * (np.log10(p["gamma"]) + 1.5) ** 2 if "gamma" in p else 0.0
        return (
            by_kernel + by_gamma + {"coarse": 0.6, "fine": 0.3, "extra fine": 0.0}[p["grade"]] + (p["temp"] - 50) / 100
        )

    return evaluated(space, f, 60, method=sumbo.Auto(groups=[("kernel", "degree")]))


def contextual(n=30):
    """What is best depends on what the world does."""
    names = {"ambient": sumbo.Float(0, 40), "power": sumbo.Float(0, 1), "fan": sumbo.Float(0, 1)}
    opt = sumbo.Optimizer(sumbo.Space(names, context=["ambient"]), seed=0)
    world = np.random.default_rng(0)
    for _ in range(n):
        trial = opt.ask(context={"ambient": float(world.uniform(0, 40))})
        p = trial.params
        opt.tell(trial, (p["power"] - p["ambient"] / 40) ** 2 + 0.3 * (p["fan"] - 0.5) ** 2)
    return opt


def mixture(n=30):
    """Three shares that add up to one, two of them at most 0.8, and something beside them."""
    names = {name: sumbo.Float(0, 1) for name in ("cement", "sand", "water", "heat")}
    known = [sumbo.SumTo(["cement", "sand", "water"], 1.0), sumbo.Linear({"cement": 1, "sand": 1}, upper=0.8)]
    known.append(sumbo.Known(lambda p: p["heat"] - 0.9, name="melts"))
    opt = sumbo.Optimizer(
        sumbo.Space(names, constraints=known), sumbo.Auto(groups=[("cement", "sand", "water")]), "maximize", seed=0
    )
    for _ in range(n):
        trial = opt.ask()
        p = trial.params
        opt.tell(trial, 3 * p["cement"] * p["water"] + p["sand"] + 0.3 * p["heat"])
    return opt


BEAM = {"width": sumbo.Float(0, 1), "height": sumbo.Float(0, 1), "colour": sumbo.Categorical(["red", "blue"])}
LOG_ENDS = {"seven": (1e-6, 10), "two": (20, 2000), "less": (30, 60)}
CASES = {
    f.__name__: f
    for f in (ordinary, empty, one_trial, all_failed, many_trials, many_parameters, constant, categories, hostile)
}
LIMITED = {f.__name__: f for f in (constrained, conditional, contextual, mixture)}


class Hasty(StudyAnalysis):
    """How sure it is of pairs is tested elsewhere: a page looks the same after a tenth of the evaluations."""

    def find_interactions(self, evaluations=2000):
        return super().find_interactions(evaluations)


def view_of_case(name):
    """The case as a report sees it; the hostile one has a hostile name, too."""
    return Hasty.of_optimizer((CASES | LIMITED)[name](), HOSTILE[0] if name == "hostile" else name)
