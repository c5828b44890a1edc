"""How fast sumbo is, as ratios measured side by side in one run on one thread.

    python benchmarks/bench.py [--only NAME ...]

Prints one JSON line per figure: name, ratio (or seconds, or megabytes), bar, and whether it holds; exits with 1 if
one does not. Peers that are not installed are skipped with a word.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import json
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.linalg import lapack

import sumbo
from sumbo.gp import kernels, linalg
from sumbo.gp.fit import evidence_with_gradient

Figure = tuple[str, float, float, dict[str, Any]]  # name, measured, bar, details


def seconds(function: Callable[[], Any], repeats: int = 7) -> float:
    """The least of several timings: noise only ever adds."""
    function()
    taken = []
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        taken.append(time.perf_counter() - started)
    return min(taken)


def side_by_side(a: Callable[[], Any], b: Callable[[], Any], rounds: int = 5) -> tuple[float, float]:
    """Timings of two functions, taken in turns so that both meet the same machine."""
    pairs = [(seconds(a, 2), seconds(b, 2)) for _ in range(rounds)]
    return min(p[0] for p in pairs), min(p[1] for p in pairs)


def model_of(n: int, D: int, group_size: int) -> tuple[sumbo.AdditiveGP, Any, Any]:
    rng = np.random.default_rng(0)
    groups = [range(a, min(a + group_size, D)) for a in range(0, D, group_size)]
    gp = sumbo.AdditiveGP(groups, lengthscales=0.5 * np.sqrt(group_size), noise_variance=1e-2)
    return gp, rng.random((n, D)), rng.standard_normal(n)


def evidence() -> Iterator[Figure]:
    """Evidence and gradient against LAPACK's potrf + potri on the same matrix."""
    for n, D, size, bar in ((1000, 100, 4, 3.0), (1000, 100, 1, 8.0), (200, 40, 4, 4.0)):
        gp, X, y = model_of(n, D, size)
        XT = np.ascontiguousarray(X.T)
        K = kernels.gram(XT, gp.terms)
        K.flat[:: n + 1] += gp.noise_variance

        def factorise(K: Any = K) -> None:
            U, _ = lapack.dpotrf(K.T, lower=0)
            lapack.dpotri(U, lower=0)

        def ours(XT: Any = XT, y: Any = y, gp: sumbo.AdditiveGP = gp) -> None:
            evidence_with_gradient(XT, y, gp.terms, gp.noise_variance)

        mine, lapacks = side_by_side(ours, factorise)
        yield (
            f"evidence and gradient / potrf + potri, n={n} D={D} groups of {size}",
            mine / lapacks,
            bar,
            {"seconds": mine},
        )


def append() -> Iterator[Figure]:
    """One more observation and the posterior's weights, against a factorisation of the same size."""
    gp, X, y = model_of(1001, 100, 4)
    known = gp.condition(X[:-1], y[:-1]).append(X[-1], y[-1])  # the buffer has room now, as in a run
    K = kernels.gram(np.ascontiguousarray(X.T), gp.terms)
    K.flat[:: len(K) + 1] += gp.noise_variance
    x, value = np.full(100, 0.5), 0.3

    mine, full = side_by_side(lambda: known.append(x, value).weights, lambda: linalg.cholesky(K))
    yield "append and update / factorisation, n=1000 D=100", mine / full, 0.15, {"seconds": mine}


def told(D: int, n: int, method: str = "auto") -> sumbo.Optimizer:
    """An optimizer that has been told n values of a function of D parameters."""
    problem = sumbo.problems.get(f"levy-{D}")
    opt = sumbo.Optimizer(problem.space, method, seed=0)
    rng = np.random.default_rng(0)
    low, high = (np.array([getattr(p, end) for p in problem.space.parameters]) for end in ("low", "high"))
    for _ in range(n):
        x = low + rng.random(D) * (high - low)
        opt.observe(x, problem(x))
    return opt


def ask_times(opt: sumbo.Optimizer, count: int) -> list[float]:
    problem = sumbo.problems.get(f"levy-{opt.space.dim}")
    taken = []
    for _ in range(count):
        started = time.perf_counter()
        trial = opt.ask()
        taken.append(time.perf_counter() - started)
        opt.tell(trial, problem(trial.x))
    return taken


def ask() -> Iterator[Figure]:
    """A suggestion of the default method at n=200, D=40, refits included pro rata, against the peers'."""
    # The mean of 20 holds the refits at their due share; the median of several such means is robust to noise.
    opt = told(40, 200)
    opt.ask()
    mine = statistics.mean(ask_times(opt, 20))
    for name, bar, peer in (("Optuna GPSampler", 0.33, optuna_ask), ("BoTorch SingleTaskGP LogEI", 0.1, botorch_ask)):
        try:
            theirs = peer(40, 200)
        except ImportError as error:
            sys.stderr.write(f"{name} is left out: {error.name} is not installed (pip install 'sumbo[bench]')\n")
            continue
        yield f"ask / {name}, n=200 D=40", mine / theirs, bar, {"seconds": mine, "peer_seconds": theirs}


def optuna_ask(D: int, n: int, count: int = 20) -> float:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    problem, rng = sumbo.problems.get(f"levy-{D}"), np.random.default_rng(0)
    study = optuna.create_study(sampler=optuna.samplers.GPSampler(seed=0))
    ranges = {name: (p.low, p.high) for name, p in zip(problem.space.names, problem.space.parameters, strict=True)}
    for _ in range(n):
        params = {name: rng.uniform(*ends) for name, ends in ranges.items()}
        distributions = {name: optuna.distributions.FloatDistribution(*ends) for name, ends in ranges.items()}
        study.add_trial(optuna.create_trial(params=params, distributions=distributions, value=problem(params)))
    taken = []
    for _ in range(count):
        started = time.perf_counter()
        trial = study.ask()
        params = {name: trial.suggest_float(name, *ends) for name, ends in ranges.items()}
        taken.append(time.perf_counter() - started)
        study.tell(trial, problem(params))
    return statistics.median(taken[1:])


def botorch_ask(D: int, n: int, count: int = 5) -> float:
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.models.transforms import Standardize
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.set_num_threads(1)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    problem, rng = sumbo.problems.get(f"levy-{D}"), np.random.default_rng(0)
    low, high = (np.array([getattr(p, end) for p in problem.space.parameters]) for end in ("low", "high"))
    U = rng.random((n, D))
    X, Y = torch.tensor(U), -torch.tensor(problem.values(low + U * (high - low)))[:, None]
    cube = torch.stack([torch.zeros(D), torch.ones(D)]).double()
    taken = []
    for _ in range(count):
        started = time.perf_counter()
        gp = SingleTaskGP(X, Y, outcome_transform=Standardize(1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(gp.likelihood, gp))
        x, _ = optimize_acqf(LogExpectedImprovement(gp, Y.max()), cube, q=1, num_restarts=4, raw_samples=256)
        taken.append(time.perf_counter() - started)
        value = -problem(low + x[0].numpy() * (high - low))
        X, Y = torch.cat([X, x]), torch.cat([Y, torch.tensor([[value]]).double()])
    return statistics.median(taken)


def stalls() -> Iterator[Figure]:
    """The slowest suggestion of a run of 500 against the median one."""
    told(20, 12).ask()  # loads or compiles the kernels, which has a figure of its own
    taken = ask_times(told(20, 0), 500)[10:]  # the space-filling start is no suggestion of the model's
    yield (
        "slowest ask / median ask, 500 evaluations D=20",
        max(taken) / statistics.median(taken),
        10.0,
        {"median": statistics.median(taken), "slowest": max(taken)},
    )


def start_up() -> Iterator[Figure]:
    """`import sumbo`, and the first suggestion of a model in a fresh process, in seconds."""
    code = "import time; t = time.perf_counter(); import sumbo; print(time.perf_counter() - t)"
    yield "import sumbo (s)", min(_fresh(code) for _ in range(3)), 0.5, {}
    code = (
        "import time; t = time.perf_counter(); import sumbo\n"
        "opt = sumbo.Optimizer([(0, 1)] * 10, seed=0)\n"
        "for i in range(12): opt.observe([(i * k % 12) / 12 for k in range(1, 11)], float(i % 5))\n"
        "opt.ask(); print(time.perf_counter() - t)"
    )
    _fresh(code)  # compiles and stores the kernels, if they are not there
    yield "first ask in a fresh process (s)", min(_fresh(code) for _ in range(3)), 3.0, {}


def _fresh(code: str) -> float:
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def many() -> Iterator[Figure]:
    """A suggestion with 20,000 observations of 100 parameters: seconds and megabytes."""
    code = (
        "import time, resource, numpy as np, sumbo\n"
        "rng = np.random.default_rng(0); opt = sumbo.Optimizer([(0, 1)] * 100, seed=0)\n"
        "for x in rng.random((20000, 100)): opt.observe(x, float(np.sin(6 * x).sum() + x[0] * x[1]))\n"
        "first = time.perf_counter(); opt.tell(opt.ask(), 0.0); first = time.perf_counter() - first\n"
        "t = time.perf_counter(); opt.ask(); t = time.perf_counter() - t\n"
        "print(max(first, t), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000)"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    yield "ask, n=20000 D=100 (s)", float(out[0]), 5.0, {}
    yield "memory, n=20000 D=100 (MB)", float(out[1]), 2000.0, {}


FIGURES = {f.__name__: f for f in (evidence, append, ask, stalls, start_up, many)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=FIGURES, default=list(FIGURES))
    failed = 0
    for name in parser.parse_args().only:
        for figure, measured, bar, details in FIGURES[name]():
            holds = measured <= bar
            failed += not holds
            line = {"figure": figure, "measured": measured, "bar": bar, "holds": holds, **details}
            print(json.dumps({k: round(v, 6) if isinstance(v, float) else v for k, v in line.items()}), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
