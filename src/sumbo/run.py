"""minimize and maximize: the loop that asks, evaluates and tells."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from sumbo import threads
from sumbo.errors import ObjectiveError, SettingError
from sumbo.kernels import Array
from sumbo.methods import Method, check_count
from sumbo.optimizer import Optimizer, Trial
from sumbo.progress import Progress
from sumbo.regret import Direction
from sumbo.space import Space, SpaceLike

Objective = Callable[[Any], float]
Callback = Callable[[Optimizer, Trial], Any]

_HOPELESS = 10  # give up when so many evaluations failed alike and none has succeeded


@dataclass(frozen=True)
class Result:
    """What a run found.

    Attributes:
        value, params, x: the best trial's; None if every evaluation failed.
        trials: all trials.
        optimizer: to go on with, to look at the model, or to save.
        interrupted: the run was stopped by Ctrl-C or by the callback before its budget was spent.
    """

    value: float | None
    params: dict[str, Any] | None
    x: Array | None
    trials: tuple[Trial, ...]
    optimizer: Optimizer
    interrupted: bool


def minimize(
    f: Objective,
    space: SpaceLike,
    budget: int,
    *,
    method: str | Method = "auto",
    seed: int | None = None,
    workers: int = 1,
    executor: Executor | None = None,
    callback: Callback | None = None,
    progress: bool = True,
) -> Result:
    """Find where f is small in `budget` evaluations.

    Args:
        f: takes a dict of parameters, or an array where `space` is a list of bounds. An exception or a value that is
            not finite makes a failed trial, which the search learns to avoid.
        space: a `Space`, a dict of parameters, or a list of (low, high) bounds.
        budget: number of evaluations.
        method: a name or a method object; see `sumbo.Optimizer`.
        seed: an integer for a run that can be repeated exactly.
        workers: evaluations at a time, each in a process of its own; f must then be importable.
        executor: any `concurrent.futures.Executor` to evaluate in, instead.
        callback: called with the optimizer and each finished trial; the run ends early if it returns True.
        progress: show best value, trial and time left on standard error.

    Returns:
        What was found; also after Ctrl-C.

    Raises:
        SpaceError, SettingError: an argument makes no sense.
        ObjectiveError: the first ten evaluations all raised the same error; says which.

    Example:
        >>> result = minimize(lambda x: (x[0] - 0.3) ** 2, [(0, 1)], 15, seed=0, progress=False)
        >>> result.value < 0.01
        True
    """
    return _run(f, space, budget, "minimize", method, seed, workers, executor, callback, progress)


def maximize(
    f: Objective,
    space: SpaceLike,
    budget: int,
    *,
    method: str | Method = "auto",
    seed: int | None = None,
    workers: int = 1,
    executor: Executor | None = None,
    callback: Callback | None = None,
    progress: bool = True,
) -> Result:
    """Find where f is large in `budget` evaluations; everything else as in `minimize`."""
    return _run(f, space, budget, "maximize", method, seed, workers, executor, callback, progress)


def _run(
    f: Objective,
    space: SpaceLike,
    budget: int,
    direction: Direction,
    method: str | Method,
    seed: int | None,
    workers: int,
    executor: Executor | None,
    callback: Callback | None,
    progress: bool,
) -> Result:
    budget, workers = check_count("budget", budget), check_count("workers", workers)
    if not callable(f):
        raise SettingError(f"the objective must be a function; got {f!r}")
    by_name = isinstance(space, Space | Mapping)
    opt = Optimizer(space, method, direction, seed, budget=budget)
    stopped = False
    with Progress(budget, enabled=progress) as bar, _Pool(executor, workers) as pool:
        try:
            for trial in _evaluated(f, opt, budget, pool, by_name=by_name):
                bar.update(opt.best, trial)
                _give_up_if_hopeless(opt)
                if callback is not None and callback(opt, trial) is True:
                    stopped = len(opt.trials) < budget
                    break
        except KeyboardInterrupt:
            stopped = True
            pool.abandon()
    best = opt.best
    if best is None:
        return Result(None, None, None, opt.trials, opt, stopped)
    return Result(best.value, best.params, best.x, opt.trials, opt, stopped)


class _Pool:
    """Where evaluations run: here, in our own processes, replaced when they die, or in the user's executor."""

    def __init__(self, executor: Executor | None, workers: int) -> None:
        self.workers = workers
        self.inline = executor is None and workers == 1
        self._given = executor
        self._own: ProcessPoolExecutor | None = None

    def __enter__(self) -> "_Pool":
        return self

    def __exit__(self, *error: object) -> None:
        if self._own is not None:
            self._own.shutdown(cancel_futures=True)

    def submit(self, f: Objective, point: Any) -> Future[Any]:
        if self._given is not None:
            return self._given.submit(_call, f, point)
        if self._own is None:
            self._own = self._processes()
        try:
            return self._own.submit(_call, f, point)
        except BrokenExecutor:  # a worker was killed, which ends its pool
            self._own.shutdown(wait=False)
            self._own = self._processes()
            return self._own.submit(_call, f, point)

    def _processes(self) -> ProcessPoolExecutor:
        # An objective may itself use sumbo: workers fill the machine, so each keeps to one thread.
        return ProcessPoolExecutor(self.workers, initializer=threads.use, initargs=(1,))

    def abandon(self) -> None:
        """Do not wait for what still runs."""
        if self._own is not None:
            self._own.shutdown(wait=False, cancel_futures=True)
            self._own = None


def _evaluated(f: Objective, opt: Optimizer, budget: int, pool: _Pool, *, by_name: bool) -> Iterator[Trial]:
    """Trials as they finish. A worker that is free gets its next point while the others still run."""
    if pool.inline:
        for _ in range(budget):
            trial = opt.ask()
            yield _told(opt, trial, *_call(f, _argument(trial, by_name)))
        return
    running: dict[Future[Any], Trial] = {}
    while len(opt.trials) < budget or running:
        while len(running) < pool.workers and len(opt.trials) < budget:
            trial = opt.ask()
            running[pool.submit(f, _argument(trial, by_name))] = trial
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            trial = running.pop(future)
            error = future.exception()
            yield _told(opt, trial, *(future.result() if error is None else (None, _described(error))))


def _argument(trial: Trial, by_name: bool) -> Any:
    """What the objective is called with: its own copy, to do with as it likes."""
    return dict(trial.params) if by_name else trial.x.copy()


def _call(f: Objective, point: Any) -> tuple[Any, str | None]:
    """The value, or why there is none. Runs in the worker."""
    try:
        return f(point), None
    except Exception as error:  # whatever the user's code raises is a failed evaluation, not the end of the search
        return None, _described(error)


def _described(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _told(opt: Optimizer, trial: Trial, value: Any, reason: str | None) -> Trial:
    try:
        if reason is None:
            opt.tell(trial, value)
        else:
            opt.tell(trial, failed=True, reason=reason)
    except ValueError as error:  # the objective returned something that is not a number
        opt.tell(trial, failed=True, reason=str(error))
    return opt.trials[trial.number]


def _give_up_if_hopeless(opt: Optimizer) -> None:
    """The same error everywhere is a bug of the objective; different ones, and NaN, are a hard problem: go on."""
    failed = [trial for trial in opt.trials if trial.state == "failed"]
    if len(failed) != _HOPELESS or opt.best is not None or len({trial.reason for trial in failed}) > 1:
        return
    if not (failed[-1].reason or "").startswith("value was"):
        raise ObjectiveError(
            f"the first {_HOPELESS} evaluations all failed with: {failed[-1].reason}. "
            f"Try the objective by hand at {failed[-1].params}"
        )
