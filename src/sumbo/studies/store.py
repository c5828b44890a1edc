"""A study in its database: opened or resumed, asked, told. Optuna keeps it.

Trials carry a record of who evaluates them. Those of a process that has died wait for the next one that asks, with the
number and the parameters that they have; nothing is learned from them, because nothing went wrong at that point. Only a
trial that was lost ten times counts as failed: it may be what ends its process.
"""

import re
import secrets
import time
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, OperationalError, ProgrammingError, SQLAlchemyError

from sumbo.errors import StoreError
from sumbo.parameters import Categorical, Int, show
from sumbo.space import Space
from sumbo.studies import owners, tables
from sumbo.studies.changes import check_changes
from sumbo.studies.damage import check_trials, reading, remedy
from sumbo.studies.file import StudyFile
from sumbo.studies.objectives import Outcome

REASON, DETAIL, LOST, OLD_VALUES = "sumbo:reason", "sumbo:detail", "sumbo:lost", "sumbo:replaced"

HEARTBEAT = 30.0  # seconds between two signs of life
_GRACE = 300.0  # seconds of silence after which a process of another machine counts as dead
_MAX_LOST = 10  # an objective that crashes ends its worker only; but one may bring the machine down, again and again

_STUDY = "sumbo:study"
_VERSION = 1  # of what is kept there; raised when an older sumbo would misunderstand the study

_PASSWORD = re.compile(r"(://[^:/@]*:)(.*)(@)")
_IN_QUERY = re.compile(r"(password=)([^&]*)")


@dataclass(frozen=True)
class Asked:
    """A trial to evaluate."""

    number: int
    trial_id: int
    params: dict[str, Any]


@dataclass(frozen=True)
class Counts:
    """How many trials there are of each kind. Running: by programs; open: handed out to people."""

    done: int
    failed: int
    running: int
    open: int
    waiting: int

    @property
    def finished(self) -> int:
        return self.done + self.failed


class Store:
    """One study. Every change is on the disk when the call that makes it returns."""

    def __init__(self, study: StudyFile, rdb: optuna.storages.RDBStorage, storage: optuna.storages.BaseStorage) -> None:
        self.study = study
        self.notes: list[str] = []
        self._rdb = rdb
        self._storage = storage
        self._sampler: BaseSampler | None = None
        self._plain = RandomSampler()
        self._distributions = distributions_of(study.space)
        self._id = storage.get_study_id_from_name(study.name)
        weakref.finalize(self, rdb.engine.dispose)  # connections are closed with the study

    @classmethod
    def open(cls, study: StudyFile, *, create: bool) -> "Store":
        """The study as stored, begun if `create` says so.

        Raises:
            StoreError: there is none, it cannot be reached, or it does not fit the file.
        """
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        with storage_errors(study), _reading(study) as place:
            _check_place(study, create)
            rdb = _opened(study.storage)
            begun = study.name in optuna.get_all_study_names(rdb)
            if not begun and not create:
                what = f"study {study.name!r} has no trials yet"
                raise StoreError(f"{place}: {what}; `sumbo run` or `sumbo ask` begins it")
            made = optuna.create_study(
                storage=rdb, sampler=RandomSampler(), study_name=study.name, direction=study.goal, load_if_exists=True
            )
            store = cls(study, rdb, made._storage)
            store._check(made, place, write=create)
            return store

    def _check(self, made: optuna.Study, place: str, *, write: bool) -> None:
        if len(made.directions) != 1:
            aims = f"{len(made.directions)} objectives, and sumbo optimises one"
            raise StoreError(f"study {self.study.name!r} has {aims}; give the study file another name")
        kept = made.user_attrs.get(_STUDY)
        kept = kept if isinstance(kept, dict) else {}
        if kept.get("version", _VERSION) != _VERSION:
            came = f"expected a study of version {_VERSION}, got {show(kept['version'])}"
            raise StoreError(f"{place}: {came}; go on with the sumbo that began it, or give the study another name")
        self.notes = check_changes(self.study, made.direction.name.lower(), kept.get("space"))
        check_trials(place, self.study.space, self.trials())
        seed = self.study.seed if self.study.seed is not None else kept.get("seed")
        self.seed = seed if isinstance(seed, int) else secrets.randbelow(2**31)
        now = {"version": _VERSION, "space": self.study.space.to_dict(), "seed": self.seed}
        if write and now != kept:
            made.set_user_attr(_STUDY, now)

    # --- asking ---

    def prepare(self) -> None:
        """Make the sampler, so that a mistake in the method's settings shows before there is a trial."""
        from sumbo.studies.method import sampler_of  # compiled code, which only those who ask need

        self._sampler = sampler_of(self.study, self.seed)

    def ask(self, by: str, budget: int | None = None) -> Asked | None:
        """The next trial, which is now this process's; None if others have taken all that the budget allows."""
        owner = owners.me(by)
        trial = self._claimed(owner, budget) if by == owners.RUN else None
        if trial is None:
            trial = tables.create(self._rdb, self._id, owner, budget)
        if trial is None:
            return None
        try:
            return Asked(trial.number, trial._trial_id, self._params(trial))
        except BaseException:
            tables.release(self._rdb, trial._trial_id, owner, {})
            raise

    def _claimed(self, owner: dict[str, Any], budget: int | None) -> FrozenTrial | None:
        for trial_id in tables.waiting(self._rdb, self._id):
            if tables.claim(self._rdb, trial_id, owner, study_id=self._id, budget=budget):
                return self._storage.get_trial(trial_id)
        return None

    def _params(self, trial: FrozenTrial) -> dict[str, Any]:
        if self._sampler is None:
            self.prepare()
        assert self._sampler is not None
        params = trial.params | trial.system_attrs.get("fixed_params", {})
        if any(name not in params for name in self._distributions):
            study = self.as_optuna(self._sampler)
            self._sampler.before_trial(study, trial)
            found = self._sampler.sample_relative(study, trial, self._distributions)
            for name, distribution in self._distributions.items():
                if name not in params and name not in found:
                    found[name] = self._sampler.sample_independent(study, trial, name, distribution)
                params.setdefault(name, found.get(name))
        fresh = {name: params[name] for name in self._distributions if name not in trial.params}
        if fresh:
            tables.write_params(self._rdb, trial._trial_id, fresh, self._distributions)
        return {name: params[name] for name in self._distributions}

    def as_optuna(self, sampler: BaseSampler) -> optuna.Study:
        """A fresh one: Optuna's Study remembers trials of its own asks and tells only."""
        return optuna.Study(self.study.name, self._storage, sampler)

    # --- telling ---

    def tell(self, number: int, params: dict[str, Any], outcome: Outcome) -> None:
        """Record what came of a trial that this process has asked for, or a person has finished.

        If another process took the trial over meanwhile, because this one seemed dead, the value is kept as a trial of
        its own: it is true all the same.
        """
        trial_id = self._storage.get_trial_id_from_study_id_trial_number(self._id, number)
        said = {key: text for key, text in ((REASON, outcome.reason), (DETAIL, outcome.detail)) if text}
        if not tables.finish(self._rdb, trial_id, outcome.value, said):
            self.observe(params, outcome)

    def observe(self, params: dict[str, Any], outcome: Outcome) -> int:
        """Add a finished trial that nobody asked for; returns its number."""
        trial = optuna.trial.create_trial(
            state=TrialState.FAIL if outcome.value is None else TrialState.COMPLETE,
            value=outcome.value,
            params=params,
            distributions=self._distributions,
            user_attrs={REASON: outcome.reason} if outcome.reason else {},
        )
        return self._storage.get_trial(self._storage.create_new_trial(self._id, trial)).number

    def replace(self, trial: FrozenTrial, outcome: Outcome) -> None:
        """Correct a finished trial. The old value stays on record."""
        old = trial.value if trial.state == TrialState.COMPLETE else trial.user_attrs.get(REASON)
        attributes = {OLD_VALUES: [*trial.user_attrs.get(OLD_VALUES, []), old], REASON: outcome.reason}
        tables.replace(self._rdb, trial._trial_id, outcome.value, attributes)
        self._forget()

    def _forget(self) -> None:
        """Optuna takes finished trials for unchangeable and does not read them twice."""
        self._storage = optuna.create_study(
            storage=self._rdb,
            sampler=self._plain,
            study_name=self.study.name,
            load_if_exists=True,
            direction=self.study.goal,
        )._storage

    # --- trials of processes that are no more ---

    def beat(self, trial_ids: list[int]) -> None:
        """Tell other machines that these trials are being evaluated still."""
        for trial_id in trial_ids:
            self._storage.record_heartbeat(trial_id)  # type: ignore[attr-defined]

    def recover(self) -> list[int]:
        """Let trials of dead processes be taken by others; returns their numbers."""
        with _reading(self.study):
            silence = tables.silent_for(self._rdb)
        found = []
        for trial in self.trials():
            owner = owner_of(trial)
            if trial.state != TrialState.RUNNING or owner is None:
                continue
            handed_out = owner.get("by") == owners.HAND and bool(trial.params)
            if not handed_out and (owners.is_gone(owner) or _silent(trial, silence)) and self._give_back(trial, owner):
                found.append(trial.number)
        return found

    def _give_back(self, trial: FrozenTrial, owner: dict[str, Any]) -> bool:
        lost = trial.user_attrs.get(LOST, 0) + bool(trial.params)
        if not tables.release(self._rdb, trial._trial_id, owner, {LOST: lost}):
            return False
        if lost >= _MAX_LOST and tables.claim(self._rdb, trial._trial_id, owners.me(owners.RUN)):
            reason = f"its process died {lost} times while evaluating it, at last {owners.described(owner)}"
            self.tell(trial.number, trial.params, Outcome(reason=reason))
        return True

    def release(self, asked: Asked) -> None:
        """Let a trial of this process be taken by others."""
        tables.release(self._rdb, asked.trial_id, owners.me(owners.RUN), {})

    # --- looking ---

    def trials(self) -> list[FrozenTrial]:
        """All trials as they are now, by number. They are shared: read only."""
        return self._storage.get_all_trials(self._id, deepcopy=False)

    def counts(self) -> Counts:
        return count(self.trials())

    def best(self) -> FrozenTrial | None:
        """The best trial; of equals the first."""
        done = [trial for trial in self.trials() if trial.state == TrialState.COMPLETE and trial.value is not None]
        sign = 1 if self.study.goal == "minimize" else -1
        return min(done, key=lambda trial: (sign * (trial.value or 0.0), trial.number), default=None)


def count(trials: list[FrozenTrial]) -> Counts:
    """How many trials there are of each kind."""
    states = [trial.state for trial in trials]
    opened = sum(map(is_open, trials))
    return Counts(
        done=states.count(TrialState.COMPLETE),
        failed=states.count(TrialState.FAIL) + states.count(TrialState.PRUNED),
        running=states.count(TrialState.RUNNING) - opened,
        open=opened,
        waiting=states.count(TrialState.WAITING),
    )


def owner_of(trial: FrozenTrial) -> dict[str, Any] | None:
    """Who evaluates the trial; None if an Optuna script does, which keeps no such record."""
    owner = trial.user_attrs.get(tables.OWNER)
    return owner if isinstance(owner, dict) else None


def is_open(trial: FrozenTrial) -> bool:
    """Was it handed out to a person, who has not told yet? Such a trial may take for ever."""
    return trial.state == TrialState.RUNNING and (owner_of(trial) or {}).get("by") == owners.HAND


def _silent(trial: FrozenTrial, silence: dict[int, float]) -> bool:
    if trial._trial_id in silence:
        return silence[trial._trial_id] > _GRACE
    started = trial.datetime_start
    return started is not None and datetime.now() - started > timedelta(seconds=_GRACE)


def distributions_of(space: Space) -> dict[str, BaseDistribution]:
    """The space in Optuna's words."""
    found: dict[str, BaseDistribution] = {}
    for name in space:
        parameter = space[name]
        if isinstance(parameter, Categorical):
            found[name] = CategoricalDistribution(parameter.choices)
        elif isinstance(parameter, Int):
            found[name] = IntDistribution(parameter.low, parameter.high, log=parameter.log)
        else:
            found[name] = FloatDistribution(parameter.low, parameter.high, log=parameter.log)
    return found


def shown(url: str) -> str:
    """A storage URL without its password, even where it is so written that the database library misreads it."""
    return _IN_QUERY.sub(r"\1***", _PASSWORD.sub(r"\1***\3", url))


@contextmanager
def storage_errors(study: StudyFile) -> Iterator[None]:
    """Turn what databases raise into a StoreError that names the place and never the password."""
    try:
        yield
    except (SQLAlchemyError, optuna.exceptions.OptunaError) as error:
        cause = error.__cause__ if isinstance(error, optuna.exceptions.StorageInternalError) else error
        text = " ".join(str(getattr(cause, "orig", None) or cause).split())
        text = f"{redacted(text, study.storage):.500}{remedy(text)}"
        raise StoreError(f"storage {shown(study.storage)}: {text}") from None


def _reading(study: StudyFile) -> AbstractContextManager[str]:
    return reading(f"storage {shown(study.storage)}", partial(redacted, url=study.storage))


def redacted(text: str, url: str) -> str:
    """What a database said, without the password, should it repeat it."""
    secrets_ = [match.group(2) for pattern in (_PASSWORD, _IN_QUERY) for match in pattern.finditer(url)]
    for secret in sorted({*secrets_, *map(unquote, secrets_)} - {""}, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def _opened(url: str) -> optuna.storages.RDBStorage:
    """The tables; of several processes that make them at the same moment all but one must look again."""
    for _ in range(5):
        try:
            return tables.open_tables(url)
        except (OperationalError, ProgrammingError, IntegrityError) as error:
            if not re.search("already exists|unique|duplicate", str(error), re.IGNORECASE):
                raise
            time.sleep(0.2)
        except (ImportError, RuntimeError) as error:  # no driver for this database; tables of another Optuna
            advice = "use the versions of sumbo and Optuna that made it, or later ones"
            advice = "pip install 'sumbo[postgresql]'" if isinstance(error, ImportError) else advice
            raise StoreError(f"storage {shown(url)}: {redacted(str(error), url).rstrip('.')}; {advice}") from None
    return tables.open_tables(url)


def _check_place(study: StudyFile, create: bool) -> None:
    try:
        make_url(study.storage)
    except (ArgumentError, ValueError):
        form = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with %40 for an @ in the password"
        raise StoreError(f"storage {shown(study.storage)}: expected {form}; correct it") from None
    if not study.storage.startswith("sqlite"):
        return
    file = Path(study.storage.removeprefix("sqlite:///"))
    if not file.exists() and not create:
        raise StoreError(f"{file}: there is no such study yet; `sumbo run` or `sumbo ask` begins it")
    if not file.parent.is_dir():
        raise StoreError(f"{file.parent}: expected a folder for the study's database; make it, or correct storage")
