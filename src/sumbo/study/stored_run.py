"""`sumbo run`: a stored study run until its budget is spent, in worker processes or in a Dask cluster.

Any number of these can share a study.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from types import FrameType
from typing import Any

from sumbo import _interrupts
from sumbo.errors import MissingPackageError, SettingError, StoreError, StudyFileError
from sumbo.executors import EvaluationResult, Evaluator, ExecutorAdapter, ExecutorGoneError
from sumbo.executors.objectives import Function, Job, Objective, Program, check_program, evaluate
from sumbo.executors.processes import STDERR, Processes, portable
from sumbo.study.files.toml import StudyFile
from sumbo.study.ledger import Record
from sumbo.study.runner import Runner
from sumbo.study.stored import StoredStudy

_EXTRA = 5.0  # seconds that a worker gets beyond a program's timeout, which it enforces itself
_REACH = 30.0  # seconds in which a cluster must answer


class _Stopping:
    """Ctrl-C once: no new trials. Twice, or SIGTERM: stop now."""

    def __init__(self) -> None:
        self.wanted = False

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        before = {number: signal.signal(number, self._handle) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if not self.wanted and number == signal.SIGINT:
            self.wanted = True
            # Not through Python's buffers, which may be in use at this moment.
            os.write(2, b"sumbo: finishing the trials that run; Ctrl-C again to stop now\n")
            return
        self.wanted = True
        raise KeyboardInterrupt


def run(
    study: StoredStudy,
    budget: int,
    workers: int | None,
    ended: Callable[[Record, EvaluationResult], bool],
    say: Callable[[str], None],
) -> bool:
    """Evaluate until so many trials of the study are finished; False if that was interrupted.

    Args:
        study: the study.
        budget: how many trials.
        workers: evaluations at a time; None for one, or as many as the study's executor has.
        ended: told of each trial that ended; the run ends early if it returns True.
        say: told of what else happens.
    """
    file, opt = study.file, study.optimizer
    objective, stopping = checked_objective(file), _Stopping()
    opt.budget = budget

    try:
        with stopping.on_signals(), _interrupts.held(), ExitStack() as stack:
            with _interrupts.let_in():  # a cluster may not answer for long
                evaluator, workers, afterwards = evaluator_of(file, objective, workers and min(workers, budget))
            runner = Runner(
                opt,
                evaluator,
                workers,
                budget,
                argument=lambda record: Job(file.name, record.number, record.params),
                ended=ended,
                say=say,
                winding_down=lambda: stopping.wanted,
                retries=file.retries,
            )
            stack.callback(runner.close)  # when the workers have ended
            stack.callback(afterwards)
            stack.enter_context(closing(evaluator))
            runner.run()
    except KeyboardInterrupt:
        stopping.wanted = True
    except ExecutorGoneError as error:
        raise StoreError(f"executor {file.executor} takes no more work: {error}; start it and run again") from None
    return not stopping.wanted


def evaluator_of(
    file: StudyFile, objective: Objective, workers: int | None
) -> tuple[Evaluator, int, Callable[[], None]]:
    """Where to evaluate, how many at a time, and what to call when all is over."""
    timeout = file.timeout
    if timeout is not None and not isinstance(objective, Function):
        timeout += _EXTRA
    if file.executor is None:
        return processes(objective, workers or 1, timeout), workers or 1, lambda: None
    client = _client(file)
    found = workers or sum(client.nthreads().values())
    if not found:
        client.close()
        raise StudyFileError(
            f"{file.path}: executor: the cluster at {file.executor} has no workers yet; say workers = N for as many "
            "evaluations at a time as it will have, or start its workers first"
        )
    return ExecutorAdapter(client.get_executor(), partial(evaluate, objective), found, timeout), found, client.close


def processes(objective: Objective, workers: int, timeout: float | None) -> Processes:
    """Worker processes of this machine. What objectives print goes to errors: standard output is for our answer."""
    return Processes(portable(partial(evaluate, objective)), workers, timeout, prints=STDERR)


def _client(file: StudyFile) -> Any:
    assert file.executor is not None
    try:
        from distributed import Client
    except ImportError:
        raise MissingPackageError(
            f"{file.path}: executor = {file.executor!r} needs Dask; pip install 'sumbo[dask]', or say workers = N"
        ) from None
    try:
        return Client(file.executor.replace("dask://", "tcp://", 1), timeout=_REACH, set_as_default=False)
    except (OSError, ValueError) as error:
        raise StudyFileError(
            f"{file.path}: executor: no Dask scheduler answers at {file.executor} ({error}); start it, or correct "
            "the address"
        ) from None


def checked_objective(study: StudyFile) -> Objective:
    """What is to be evaluated; an error if there is nothing, or a program that is not there."""
    if study.objective is None:
        raise SettingError(
            f'{study.path}: sumbo run needs objective = "module:function" or command = [...]; '
            "to run experiments by hand, use sumbo ask and sumbo tell"
        )
    if isinstance(study.objective, Program):
        check_program(study.objective)
    return study.objective
