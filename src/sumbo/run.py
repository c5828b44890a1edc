"""minimize and maximize: the loop that asks, evaluates and tells."""

import math
import os
import time
import warnings
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sumbo.errors import ObjectiveError, SettingError
from sumbo.executors.ahead import Ahead
from sumbo.executors.answers import Answer, Place, called
from sumbo.executors.borrowed import Borrowed, ExecutorGoneError
from sumbo.executors.processes import Processes, portable
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
        interrupted: the run was stopped before its budget was spent: by Ctrl-C, by the callback, or because the
            executor took no more work.

    Example:
        >>> result = minimize(lambda x: float(x[0] ** 2), [(-1, 1)], 12, seed=0, progress=False)
        >>> result.value == result.params["x0"] ** 2
        True
        >>> len(result.trials), result.interrupted
        (12, False)
    """

    value: float | None
    params: dict[str, Any] | None
    x: Array | None
    trials: tuple[Trial, ...]
    optimizer: Optimizer
    interrupted: bool

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write one HTML page that shows what was found and learned; it opens from disk and needs nothing else.

        Takes some seconds, with many trials or parameters a minute or two.

        Raises:
            SettingError: the file cannot be written.
            MissingPackageError: plotly is not installed; pip install 'sumbo[plot]'.
        """
        from sumbo.report.page import write  # plotly, which few need

        return write(self, path)


def minimize(
    f: Objective,
    space: SpaceLike,
    budget: int,
    *,
    method: str | Method = "auto",
    seed: int | None = None,
    workers: int = 1,
    executor: Executor | None = None,
    timeout: float | None = None,
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
        workers: evaluations at a time, each in a process of its own. A worker that ends gets its next point at once,
            while the others run. One that dies takes no more than its own trial with it, which counts as failed.
        executor: any `concurrent.futures.Executor` to evaluate in instead, such as Dask's `Client.get_executor()`;
            `workers` says how many evaluations it gets at a time.
        timeout: seconds after which an evaluation counts as failed. Its process is killed; an executor is asked to
            cancel it.
        callback: called with the optimizer and each finished trial; the run ends early if it returns True.
        progress: show best value, trial and time left on standard error.

    Returns:
        What was found; also after Ctrl-C.

    Raises:
        SpaceError, SettingError: an argument makes no sense, or the objective cannot be sent to other processes.
        ObjectiveError: the first ten evaluations all raised the same error; says which.

    Example:
        >>> result = minimize(lambda x: (x[0] - 0.3) ** 2, [(0, 1)], 15, seed=0, progress=False)
        >>> result.value < 0.01
        True
    """
    return _run(f, space, budget, "minimize", method, seed, workers, executor, timeout, callback, progress)


def maximize(
    f: Objective,
    space: SpaceLike,
    budget: int,
    *,
    method: str | Method = "auto",
    seed: int | None = None,
    workers: int = 1,
    executor: Executor | None = None,
    timeout: float | None = None,
    callback: Callback | None = None,
    progress: bool = True,
) -> Result:
    """Find where f is large in `budget` evaluations; everything else as in `minimize`.

    Example:
        >>> a, b = sumbo.Int(0, 3), sumbo.Int(0, 3)
        >>> maximize(lambda p: p["a"] - p["b"], {"a": a, "b": b}, 16, seed=0, progress=False).params
        {'a': 3, 'b': 0}
    """
    return _run(f, space, budget, "maximize", method, seed, workers, executor, timeout, callback, progress)


def _run(
    f: Objective,
    space: SpaceLike,
    budget: int,
    direction: Direction,
    method: str | Method,
    seed: int | None,
    workers: int,
    executor: Executor | None,
    timeout: float | None,
    callback: Callback | None,
    progress: bool,
) -> Result:
    budget, workers = check_count("budget", budget), check_count("workers", workers)
    _check_timeout(timeout)
    if not callable(f):
        raise SettingError(f"the objective must be a function; got {f!r}")
    by_name = isinstance(space, Space | Mapping)
    opt = Optimizer(space, method, direction, seed, budget=budget)
    stopped = False
    with (
        Progress(budget, enabled=progress) as bar,
        closing(_place(f, workers, executor, timeout)) as place,
        closing(_evaluated(opt, budget, place, workers, by_name=by_name)) as trials,
    ):
        try:
            for trial in trials:
                bar.update(opt.best, trial)
                _give_up_if_hopeless(opt)
                if callback is not None and callback(opt, trial) is True:
                    stopped = len(opt.trials) < budget
                    break
        except KeyboardInterrupt:
            stopped = True
        except ExecutorGoneError as error:
            stopped = True
            warnings.warn(f"the run ends early: the executor takes no more work ({error})", RuntimeWarning, 3)
    best = opt.best
    if best is None:
        return Result(None, None, None, opt.trials, opt, stopped)
    return Result(best.value, best.params, best.x, opt.trials, opt, stopped)


def _check_timeout(timeout: Any) -> None:
    number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if timeout is not None and not (number and 0.0 < timeout < math.inf):
        raise SettingError(f"timeout must be a number of seconds above 0, or None for no limit; got {timeout!r}")


def _place(f: Objective, workers: int, executor: Executor | None, timeout: float | None) -> Place:
    """Where evaluations run: in the user's executor, in processes of our own, or, one at a time, right here."""
    if executor is not None:
        if not callable(getattr(executor, "submit", None)):
            raise SettingError(
                f"executor must be a concurrent.futures.Executor, such as ThreadPoolExecutor(8); got {executor!r}"
            )
        return Borrowed(executor, f, workers, timeout)
    if workers > 1 or timeout is not None:
        return Processes(portable(f), workers, timeout)
    return _Here(f)


class _Here:
    """Evaluates in the calling thread, at once."""

    def __init__(self, f: Objective) -> None:
        self._f = f

    def submit(self, argument: Any) -> "Future[Answer]":
        future: Future[Answer] = Future()
        future.set_result(called(self._f, argument, errors=(Exception,)))  # sys.exit() is meant for this process
        return future

    def close(self) -> None:
        pass


def _evaluated(
    opt: Optimizer, budget: int, place: Place, workers: int, *, by_name: bool
) -> Generator[Trial, None, None]:
    """Trials as they finish. What has finished is told before the next point is asked for, and before all ends."""
    ahead = Ahead(workers)
    running: dict[Future[Answer], Trial] = {}
    asked = 0
    try:
        while running or asked < budget:
            more = asked < budget and len(running) < workers + ahead.wanted
            ended = wait(running, 0 if more else None, FIRST_COMPLETED).done
            for future in sorted(ended, key=lambda future: running[future].number):
                answer = future.result()
                ahead.evaluated(answer.seconds)
                trial = _told(opt, running[future], answer)
                del running[future]  # only now: Ctrl-C may have come before it was told
                yield trial
            if more:
                began = time.monotonic()
                trial, asked = opt.ask(), asked + 1
                ahead.suggested(time.monotonic() - began)
                running[place.submit(_argument(trial, by_name))] = trial
    finally:
        for future, trial in running.items():
            if future.done() and future.exception() is None and opt.trials[trial.number].state == "running":
                _told(opt, trial, future.result())


def _argument(trial: Trial, by_name: bool) -> Any:
    """What the objective is called with: its own copy, to do with as it likes."""
    return dict(trial.params) if by_name else trial.x.copy()


def _told(opt: Optimizer, trial: Trial, answer: Answer) -> Trial:
    try:
        if answer.reason is None:
            opt.tell(trial, answer.value)
        else:
            opt.tell(trial, failed=True, reason=answer.reason)
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
