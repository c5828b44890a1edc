"""Searches that run until their budget is spent: `minimize`, `maximize`, and `sumbo run` for stored studies."""

import inspect
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from sumbo import _interrupts
from sumbo._typing import Array
from sumbo.errors import MissingPackageError, SettingError, StoreError, StudyFileError
from sumbo.executors import EvaluationResult, Evaluator, ExecutorAdapter, ExecutorGoneError, evaluate, objectives
from sumbo.executors.processes import STDERR, Processes, portable
from sumbo.methods import Method, check_count
from sumbo.space import SpaceLike
from sumbo.study.ledger import Record
from sumbo.study.optimizer import Optimizer, Trial, is_seconds
from sumbo.study.runner import Progress, Runner

if TYPE_CHECKING:
    from sumbo.study.files.toml import StudyFile
    from sumbo.study.stored import StoredStudy

Objective = Callable[[Any], float]
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
        ObjectiveError: the first ten evaluations all failed alike; says how and where.

    Example:
        >>> result = minimize(lambda x: (x[0] - 0.3) ** 2, [(0, 1)], 15, seed=0, progress=False)
        >>> result.value < 0.01
        True
    """
    return Optimizer(space, method, "minimize", seed, budget=budget).run(
        f, budget, workers=workers, executor=executor, timeout=timeout, callback=callback, progress=progress
    )


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
    return Optimizer(space, method, "maximize", seed, budget=budget).run(
        f, budget, workers=workers, executor=executor, timeout=timeout, callback=callback, progress=progress
    )


def run(
    opt: Optimizer,
    f: Objective,
    budget: int,
    workers: int,
    executor: Executor | None,
    timeout: float | None,
    callback: Callback | None,
    progress: bool,
) -> Result:
    """So many evaluations more; see `Optimizer.run`."""
    budget, workers = check_count("budget", budget), check_count("workers", workers)
    if timeout is not None and not is_seconds(timeout):
        raise SettingError(f"timeout must be a number of seconds above 0, or None for no limit; got {timeout!r}")
    if not callable(f):
        raise SettingError(f"the objective must be a function; got {f!r}")
    if callback is not None and not _takes_two(callback):
        raise SettingError(f"callback must be a function of the optimizer and a trial, or None; got {callback!r}")
    opt.budget = limit = opt._ledger.counted + budget
    stopped = True
    try:
        with _interrupts.held(), Progress(budget, enabled=progress) as bar:

            def ended(record: Record, result: EvaluationResult) -> bool:
                trial = opt._trial(opt._ledger.records[record.number])
                bar.update(opt._best, failed=trial.state == "failed")
                with _interrupts.let_in():
                    return callback is not None and callback(opt, trial) is True

            evaluator = _evaluator(f, min(workers, budget), executor, timeout)
            stopped = not Runner(opt, evaluator, workers, limit, argument=opt._argument, ended=ended).run()
    except KeyboardInterrupt:
        stopped = True  # also in the moment after the last evaluation
    except ExecutorGoneError as error:
        warn_user(f"the run ends early: the executor takes no more work ({error})")
    best, trials = opt.best, opt.trials
    failed = [trial.reason for trial in trials if trial.state == "failed"]
    if best is None and failed and not stopped:
        warn_user(f"none of {len(failed)} evaluations succeeded; the last failed: {failed[-1]}")
    value, params, x = (None, None, None) if best is None else (best.value, best.params, best.x)
    return Result(value, params, x, trials, opt, stopped, _name(f))


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
    opt.budget = budget

    def argument(record: Record) -> objectives.Job:
        return objectives.Job(file.name, record.number, record.params)

    try:
        with _signals() as signals, _interrupts.held(), ExitStack() as stack:
            with _interrupts.let_in():  # a cluster may not answer for long
                evaluator, workers, afterwards = evaluator_of(file, objective, workers and min(workers, budget))
            stack.callback(afterwards)
            runner = Runner(opt, evaluator, workers, budget, argument, ended, say, lambda: bool(signals), file.retries)
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
