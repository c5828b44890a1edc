"""Where a study's objective is evaluated: in worker processes of this machine, or in a Dask cluster."""

import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from sumbo._redaction import safe
from sumbo.errors import MissingPackageError, StudyFileError
from sumbo.executors import worker
from sumbo.executors.adapter import ExecutorAdapter
from sumbo.executors.processes import STDERR, Processes, portable
from sumbo.executors.results import EvaluationResult, Evaluator, result_of
from sumbo.study.files.objectives import Function, Job, Objective
from sumbo.study.files.programs import Group, run_program
from sumbo.study.files.toml import StudyFile

_EXTRA = 5.0  # seconds that a worker gets beyond a program's timeout, which it enforces itself
_REACH = 30.0  # seconds in which a cluster must answer


def evaluator_of(
    study: StudyFile, objective: Objective, workers: int | None
) -> tuple[Evaluator, int, Callable[[], None]]:
    """Where to evaluate, how many at a time, and what to call when all is over.

    Args:
        study: says which executor.
        objective: what is evaluated.
        workers: evaluations at a time; None for one, or as many as a cluster has threads.

    Raises:
        MissingPackageError, StudyFileError: the cluster cannot be used; the message says why.
    """
    timeout = study.timeout
    if timeout is not None and not isinstance(objective, Function):
        timeout += _EXTRA
    if study.executor is None:
        return processes(objective, workers or 1, timeout), workers or 1, lambda: None
    client = _client(study)
    found = workers or sum(client.nthreads().values())
    if not found:
        client.close()
        raise StudyFileError(
            f"{study.path}: executor: the cluster at {study.executor} has no workers yet; say workers = N for as many "
            "evaluations at a time as it will have, or start its workers first"
        )
    return ExecutorAdapter(client.get_executor(), partial(evaluate, objective), found, timeout), found, client.close


def processes(objective: Objective, workers: int, timeout: float | None) -> Processes:
    """Worker processes of this machine. What objectives print goes to errors: standard output is for our answer."""
    return Processes(portable(partial(evaluate_here, objective)), workers, timeout, prints=STDERR)


def _client(study: StudyFile) -> Any:
    assert study.executor is not None
    try:
        from distributed import Client
    except ImportError:
        raise MissingPackageError(
            f"{study.path}: executor = {study.executor!r} needs Dask; pip install 'sumbo[dask]', or say workers = N"
        ) from None
    try:
        return Client(study.executor.replace("dask://", "tcp://", 1), timeout=_REACH, set_as_default=False)
    except (OSError, ValueError) as error:
        raise StudyFileError(
            f"{study.path}: executor: no Dask scheduler answers at {study.executor} ({error}); start it, or correct "
            "the address"
        ) from None


# --- in the worker -----------------------------------------------------------------------------------------


def evaluate(objective: Objective, job: Job, group: Group | None = None) -> EvaluationResult:
    """Evaluate one job. An exception of the objective is the worker's to report."""
    if isinstance(objective, Function):
        return result_of(_found(objective)(dict(job.params)))
    result = run_program(objective, job, group)
    # With what the program printed.
    return result if result.reason is None else replace(result, reason=safe(result.reason), detail=safe(result.detail))


def evaluate_here(objective: Objective, job: Job) -> EvaluationResult:
    """The same in a worker process of our own, which ends the program when it must end itself."""
    group = Group()
    worker.at_end[:] = [group.end]
    return evaluate(objective, job, group)


def _found(function: Function) -> Any:
    """The function; imported at the first call, so that a mistake in its module is a failed trial with a reason."""
    if sys.path[0] != function.folder and os.path.isdir(function.folder):  # another machine may have it installed
        sys.path.insert(0, function.folder)
        os.chdir(function.folder)
    return getattr(importlib.import_module(function.module), function.name)
