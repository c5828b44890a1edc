"""Searches that run until their budget is spent: `minimize`, `maximize`, and `sumbo run` for stored studies."""

import inspect
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from sumbo import _interrupts
from sumbo._typing import Array
from sumbo.errors import MissingPackageError, SettingError, SpaceError, StoreError, StudyFileError
from sumbo.executors import (
    EvaluationResult,
    Evaluator,
    ExecutorAdapter,
    ExecutorGoneError,
    evaluate,
    objectives,
    result_of,
)
from sumbo.executors.processes import STDERR, Processes, portable
from sumbo.methods import Deadline, Method, check_count
from sumbo.space import SpaceLike
from sumbo.study.ledger import Record
from sumbo.study.optimizer import Optimizer, Trial, is_seconds
from sumbo.study.runner import Progress, Runner

if TYPE_CHECKING:
    from sumbo.study.files.toml import StudyFile
    from sumbo.study.stored import StoredStudy

Objective = Callable[[Any], Any]
Callback = Callable[[Optimizer, Trial], Any]

_EXTRA = 5.0  # seconds that a worker gets beyond a program's timeout, which it enforces itself
_REACH = 30.0  # seconds in which a cluster must answer


@dataclass(frozen=True)
class Result:
    """What a run found.

    Attributes:
        value, params, x: the best trial's; None if every evaluation failed.
        trials: all trials.
        optimizer: to go on with, to look at the model, or to save.
        interrupted: the run was stopped before its budget was spent: by Ctrl-C, by the callback, or because the
            executor took no more work.
        name: of the objective; None where it has none, as a lambda.

    Example:
        >>> result = minimize(lambda x: float(x[0] ** 2), [(-1, 1)], 12, seed=0, progress=False)
        >>> result.value == result.params["x0"] ** 2
        True
        >>> len(result.trials), result.interrupted
        (12, False)
        >>> more = result.optimizer.run(lambda x: float(x[0] ** 2), 3, progress=False)
        >>> len(more.trials)
        15
    """

    value: float | None
    params: dict[str, Any] | None
    x: Array | None
    trials: tuple[Trial, ...]
    optimizer: Optimizer
    interrupted: bool
    name: str | None = None

    def report(self, path: str | os.PathLike[str], *, title: str | None = None) -> Path:
        """Write one HTML page that shows what was found and learned; it opens from disk and needs nothing else.

        Takes some seconds, with many trials or parameters a minute or two.

        Args:
            path: an HTML file.
            title: the page's heading; else the objective's name, or where it has none, the parameters'.

        Raises:
            SettingError: the file cannot be written.
            MissingPackageError: plotly is not installed; pip install 'sumbo[plot]'.
        """
        from sumbo.report.page import write  # plotly, which few need

        return write(self, path, title=title)


def minimize(
    f: Objective,
    space: SpaceLike,
    budget: int | None = None,
    *,
    method: str | Method = "auto",
    seed: int | None = None,
    workers: int = 1,
    executor: Executor | None = None,
    timeout: float | None = None,
    max_seconds: float | None = None,
    initial: Sequence[Any] = (),
    observed: Sequence[tuple[Any, Any]] = (),
    constraints: Sequence[str] = (),
    stop: Callback | None = None,
    callback: Callback | None = None,
    progress: bool = True,
) -> Result:
    """Find where f is small in `budget` evaluations.

    Args:
        f: takes a dict of parameters, or an array where `space` is a list of bounds, and returns a number or a
            `sumbo.Evaluation`. An exception or a value that is not finite makes a failed trial, which the search learns
            to avoid.
        space: a `Space`, a dict of parameters, or a list of (low, high) bounds.
        budget: number of evaluations; None for as many as `max_seconds` allows.
        method: a name or a method object; see `sumbo.Optimizer`.
        seed: an integer for a run that can be repeated exactly.
        workers: evaluations at a time, each in a process of its own. A worker that ends gets its next point at once,
            while the others run. One that dies takes no more than its own trial with it, which counts as failed.
        executor: any `concurrent.futures.Executor` to evaluate in instead, such as Dask's `Client.get_executor()`;
            `workers` says how many evaluations it gets at a time.
        timeout: seconds after which an evaluation counts as failed. Its process is killed; an executor is asked to
            cancel it.
        max_seconds: after so many seconds no evaluation begins; those that run are waited for. Methods that spend the
            end of a budget differently take that for the end.
        initial: points to evaluate first, in this order, such as what is in use today. They count in the budget.
        observed: pairs of a point and its value (or `sumbo.Evaluation`) that are known already, and cost nothing.
        constraints: names of what f measures beside its value and what limits it: "stress", feasible up to 0, or
            "stress <= 250"; f then returns `sumbo.Evaluation(value, constraints={...})`.
        stop: called with the optimizer and each finished trial; the run is complete once it returns True.
        callback: called likewise; the run is interrupted if it returns True.
        progress: show best value, trial and time left on standard error.

    Returns:
        What was found; also after Ctrl-C.

    Raises:
        SpaceError, SettingError: an argument makes no sense, or the objective cannot be sent to other processes.
        ObjectiveError: the first ten evaluations all failed alike; says how and where.

    Example:
        >>> result = minimize(lambda x: (x[0] - 0.3) ** 2, [(0, 1)], 15, seed=0, progress=False)
        >>> result.value < 0.01
        True
    """
    opt = Optimizer(space, method, "minimize", seed, budget=budget, constraints=constraints)
    ending = (max_seconds, initial, observed, stop, callback)
    return run(opt, f, budget, workers, executor, timeout, *ending, progress)


def maximize(
    f: Objective,
    space: SpaceLike,
    budget: int | None = None,
    *,
    method: str | Method = "auto",
    seed: int | None = None,
    workers: int = 1,
    executor: Executor | None = None,
    timeout: float | None = None,
    max_seconds: float | None = None,
    initial: Sequence[Any] = (),
    observed: Sequence[tuple[Any, Any]] = (),
    constraints: Sequence[str] = (),
    stop: Callback | None = None,
    callback: Callback | None = None,
    progress: bool = True,
) -> Result:
    """Find where f is large in `budget` evaluations; everything else as in `minimize`.

    Example:
        >>> a, b = sumbo.Int(0, 3), sumbo.Int(0, 3)
        >>> maximize(lambda p: p["a"] - p["b"], {"a": a, "b": b}, 16, seed=0, progress=False).params
        {'a': 3, 'b': 0}
    """
    opt = Optimizer(space, method, "maximize", seed, budget=budget, constraints=constraints)
    ending = (max_seconds, initial, observed, stop, callback)
    return run(opt, f, budget, workers, executor, timeout, *ending, progress)


def run(
    opt: Optimizer,
    f: Objective,
    budget: int | None,
    workers: int,
    executor: Executor | None,
    timeout: float | None,
    max_seconds: float | None,
    initial: Sequence[Any],
    observed: Sequence[tuple[Any, Any]],
    stop: Callback | None,
    callback: Callback | None,
    progress: bool,
) -> Result:
    """So many evaluations more; see `Optimizer.run`."""
    budget, workers = None if budget is None else check_count("budget", budget), check_count("workers", workers)
    for name, seconds in (("timeout", timeout), ("max_seconds", max_seconds)):
        if seconds is not None and not is_seconds(seconds):
            raise SettingError(f"{name} must be a number of seconds above 0, or None for no limit; got {seconds!r}")
    if budget is None and max_seconds is None:
        raise SettingError("say how long to go on: budget= for a number of evaluations, or max_seconds=")
    if opt.space.context:
        raise SettingError(
            "a space with a context is not run by itself: only the world knows it; use ask(context=), tell"
        )
    if not callable(f):
        raise SettingError(f"the objective must be a function; got {f!r}")
    for name, function in (("callback", callback), ("stop", stop)):
        if function is not None and not _takes_two(function):
            raise SettingError(f"{name} must be a function of the optimizer and a trial, or None; got {function!r}")
    _begin(opt, initial, observed, budget)
    waiting = sum(record.state == "waiting" for record in opt._ledger.live)
    opt.budget = limit = sys.maxsize if budget is None else opt._ledger.counted - waiting + budget
    stopped, complete = True, False
    try:
        with _interrupts.held(), Progress(budget, enabled=progress) as bar:

            def ended(record: Record, result: EvaluationResult) -> bool:
                trial = opt._trial(opt._ledger.records[record.number])
                bar.update(opt._best, failed=trial.state == "failed")
                nonlocal complete
                with _interrupts.let_in():
                    interrupted = callback is not None and callback(opt, trial) is True
                    complete = stop is not None and stop(opt, trial) is True
                return interrupted or complete

            evaluator = _evaluator(f, min(workers, budget or workers), executor, timeout)
            runner = Runner(opt, evaluator, workers, limit, argument=opt._argument, ended=ended)
            runner.until = Deadline.after(max_seconds)
            stopped = not runner.run() and not complete
    except KeyboardInterrupt:
        stopped = True  # also in the moment after the last evaluation
    except ExecutorGoneError as error:
        warn_user(f"the run ends early: the executor takes no more work ({error})")
    if budget is None:
        opt.budget = None
    best, trials = opt.best, opt.trials
    failed = [trial.reason for trial in trials if trial.state == "failed"]
    if best is None and failed and not stopped:
        warn_user(f"none of {len(failed)} evaluations succeeded; the last failed: {failed[-1]}")
    value, params, x = (None, None, None) if best is None else (best.value, best.params, best.x)
    return Result(value, params, x, trials, opt, stopped, _name(f))


def _begin(opt: Optimizer, initial: Sequence[Any], observed: Sequence[tuple[Any, Any]], budget: int | None) -> None:
    """Take in what is known and what is to be evaluated first; all of it is checked before any of it is taken in."""
    if budget is not None and len(initial) > budget:
        raise SettingError(f"initial has {len(initial)} points, and the budget is {budget}; raise the budget")
    first = [_placed(opt, f"initial[{i}]", point) for i, point in enumerate(initial)]
    for i, params in enumerate(first):
        if not opt._region(None).contains(opt.space.to_unit(params)[None])[0]:
            raise SettingError(f"initial[{i}]: the point breaks a known constraint of the space; move it inside")
    known = []
    for i, pair in enumerate(observed):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise SettingError(f"observed[{i}]: expected a pair of a point and its value, got {pair!r:.80}")
        point, result = _placed(opt, f"observed[{i}]", pair[0]), result_of(pair[1])
        if problem := opt._misreported(result) or (result.kind and result.reason):
            raise SettingError(f"observed[{i}]: {problem}")
        known.append((point, result))
    for params, result in known:
        opt._ledger.observe(params, result)
    for params in first:
        opt._ledger.enqueue(params)


def _placed(opt: Optimizer, place: str, point: Any) -> dict[str, Any]:
    """The point as params, if it is in the space."""
    try:
        return opt.space.from_array(opt.space.array(point) if isinstance(point, Mapping) else point)
    except SpaceError as error:
        raise SpaceError(f"{place}: {error}") from None


def _takes_two(callback: Any) -> bool:
    """Can it be called with two arguments, as far as one can tell without calling it?"""
    try:
        inspect.signature(callback).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # some that are written in C do not say
        pass
    return True


def warn_user(text: str) -> None:
    """At the line of the user's that called us, through however many of ours."""
    modules = [str(frame.frame.f_globals.get("__name__")) for frame in inspect.stack(0)]
    level = next((i for i, name in enumerate(modules, 1) if name.partition(".")[0] != "sumbo"), 1)
    warnings.warn(text, RuntimeWarning, level)


def _name(f: Objective) -> str | None:
    while isinstance(f, partial):
        f = f.func
    name = getattr(f, "__name__", None) or type(f).__name__
    return None if name == "<lambda>" else name


def _evaluator(f: Objective, workers: int, executor: Executor | None, timeout: float | None) -> Evaluator:
    """Where evaluations run: in the user's executor, in processes of our own, or, one at a time, right here."""
    if executor is not None:
        if not callable(getattr(executor, "submit", None)):
            raise SettingError(
                f"executor must be a concurrent.futures.Executor, such as ThreadPoolExecutor(8); got {executor!r}"
            )
        return ExecutorAdapter(executor, f, workers, timeout)
    if workers > 1 or timeout is not None:
        return Processes(portable(f), workers, timeout)
    return _Here(f)


@dataclass(frozen=True)
class _Here:
    """Evaluates in the calling thread, at once."""

    f: Objective

    def submit(self, argument: Any) -> "Future[EvaluationResult]":
        future: Future[EvaluationResult] = Future()
        future.set_result(evaluate(self._evaluate, argument, (Exception,)))  # sys.exit() is meant for this process
        return future

    def _evaluate(self, argument: Any) -> Any:
        with _interrupts.let_in():
            return self.f(argument)

    def close(self) -> None:
        pass


def run_stored(
    study: "StoredStudy",
    budget: int,
    workers: int | None,
    ended: Callable[[Record, EvaluationResult], bool],
    say: Callable[[str], None],
) -> bool:
    """Evaluate until so many trials of the study are finished; False if that was interrupted.

    With `workers` None one at a time, or as many as the study's executor has; `ended` and `say` are the Runner's.
    """
    file, opt = study.file, study.optimizer
    objective = checked_objective(file)
    if file.space.context:
        raise SettingError(f"{file.path}: the space has a context, which only the world knows; use sumbo ask --context")
    opt.budget = budget

    def argument(record: Record) -> objectives.Job:
        return objectives.Job(file.name, record.number, record.params)

    try:
        with _signals() as signals, _interrupts.held(), ExitStack() as stack:
            with _interrupts.let_in():  # a cluster may not answer for long
                evaluator, workers, afterwards = evaluator_of(file, objective, workers and min(workers, budget))
            stack.callback(afterwards)
            until = Deadline.after(file.max_seconds)
            over = partial(bool, signals)
            runner = Runner(opt, evaluator, workers, budget, argument, ended, say, over, file.retries, until)
            runner.run()
        return not signals
    except KeyboardInterrupt:
        return False
    except ExecutorGoneError as error:
        raise StoreError(f"executor {file.executor} takes no more work: {error}; start it and run again") from None


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Ctrl-C once: no new trials. Twice, or SIGTERM: stop now. Gives a list of what came."""
    came: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        came.append(number)
        if came != [signal.SIGINT]:
            raise KeyboardInterrupt
        # Not through Python's buffers, which may be in use at this moment.
        os.write(2, b"sumbo: finishing the trials that run; Ctrl-C again to stop now\n")

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def evaluator_of(
    file: "StudyFile", objective: objectives.Objective, workers: int | None
) -> tuple[Evaluator, int, Callable[[], None]]:
    """Where to evaluate, how many at a time, and what to call when all is over."""
    timeout = file.timeout
    if timeout is not None and not isinstance(objective, objectives.Function):
        timeout += _EXTRA
    if file.executor is None:
        return processes(objective, workers or 1, timeout), workers or 1, lambda: None
    try:
        from distributed import Client
    except ImportError:
        raise MissingPackageError(
            f"{file.path}: executor = {file.executor!r} needs Dask; pip install 'sumbo[dask]', or say workers = N"
        ) from None
    try:
        client = Client(file.executor.replace("dask://", "tcp://", 1), timeout=_REACH, set_as_default=False)
    except (OSError, ValueError) as error:
        raise StudyFileError(
            f"{file.path}: executor: no Dask scheduler answers at {file.executor} ({error}); start it, or correct "
            "the address"
        ) from None
    found = workers or sum(client.nthreads().values())
    if not found:
        client.close()
        raise StudyFileError(
            f"{file.path}: executor: the cluster at {file.executor} has no workers yet; say workers = N for as many "
            "evaluations at a time as it will have, or start its workers first"
        )
    f = partial(objectives.evaluate, objective)
    return ExecutorAdapter(client.get_executor(), f, found, timeout), found, client.close


def processes(objective: objectives.Objective, workers: int, timeout: float | None) -> Processes:
    """Worker processes of this machine. What objectives print goes to errors: standard output is for our answer."""
    return Processes(portable(partial(objectives.evaluate, objective)), workers, timeout, prints=STDERR)


def checked_objective(study: "StudyFile") -> objectives.Objective:
    """What is to be evaluated; an error if there is nothing, or a program that is not there."""
    if study.objective is None:
        raise SettingError(
            f'{study.path}: sumbo run needs objective = "module:function" or command = [...]; '
            "to run experiments by hand, use sumbo ask and sumbo tell"
        )
    if isinstance(study.objective, objectives.Program):
        objectives.check_program(study.objective)
    return study.objective
