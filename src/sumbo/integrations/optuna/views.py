"""Views of Optuna studies, whatever sampler made them."""

import contextlib
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

import numpy as np
import optuna
from optuna.study import Study
from optuna.trial import FrozenTrial

from sumbo._redaction import safe, shown
from sumbo.errors import SettingError, StoreError
from sumbo.insights.analysis import StudyAnalysis, presentable
from sumbo.integrations.optuna.ledger import Attributes, StudyLedger, direction_of, record_of
from sumbo.integrations.optuna.sampler import SumboSampler
from sumbo.integrations.optuna.translation import Translation, common_distributions
from sumbo.methods import resolve
from sumbo.study.ledger import Record
from sumbo.study.optimizer import Optimizer, Trial
from sumbo.study.stored import check_url


def from_optuna(
    study: Study, *, name: str | None = None, say: Callable[[str], None] = lambda text: None
) -> StudyAnalysis:
    """A view of an Optuna study, whatever sampler made it: for `write`, and for the figures of `sumbo.plot`.

    Args:
        study: with one objective.
        name: a heading other than the study's name.
        say: told what is being done when it takes long.

    Example:
        >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
        >>> study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), study_name="random")
        >>> study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
        >>> from_optuna(study).best.value == study.best_value
        True

    Raises:
        SettingError: it is no Optuna study, or has several objectives.
    """
    if not isinstance(study, Study):
        raise SettingError(f"expected an Optuna study; got {type(study).__name__}. Load one with optuna.load_study")
    if len(study.directions) > 1:
        raise SettingError(
            f"a report is about one objective, and this study has {len(study.directions)}; make one for each"
        )
    sampler, trials = study.sampler, study.get_trials(deepcopy=False)
    ours = sampler if isinstance(sampler, SumboSampler) else None
    method, seed = (ours.method, ours.seed) if ours else (resolve("auto"), 0)
    attributes = Attributes(study, {}).refresh()
    # A study that is merely loaded has a sampler that never sampled; what sumbo left in it tells.
    by = method.name if ours or attributes.has_states else "of another sampler"
    heading, direction = study.study_name if name is None else name, direction_of(study)
    common = common_distributions(trials)
    left = len({name for trial in trials for name in trial.distributions} - set(common))
    said = f"{left} parameters are left out of the model: not all trials have them, or they never change."
    notes = (said,) if left else ()
    translation = Translation.of(common)
    if translation is None:
        rows = tuple(_row(trial, record_of(trial.number, trial), common) for trial in trials)
        return StudyAnalysis(heading, direction, by, rows, None, None, method, lambda unit: {}, seed, notes, say)
    ledger = StudyLedger(translation, method, direction)
    ledger.read(trials, attributes)
    view = StudyAnalysis.of_optimizer(Optimizer._on(ledger, method, direction, seed, None), heading)
    rows = tuple(_row(trial, record, common) for trial, record in zip(trials, ledger.records, strict=True))
    return replace(view, method=by, rows=rows, decode=translation.params, notes=notes, say=say)


def _row(trial: FrozenTrial, record: Record, first: Collection[str]) -> Trial:
    """With Optuna's own values: the parameters that are modelled, then those that only some trials have."""
    names = [*(name for name in first if name in trial.params), *(name for name in trial.params if name not in first)]
    params = {name: trial.params[name] for name in names}
    result = (record.value, record.state, record.reason, record.seconds)
    return presentable(Trial(trial.number, params, np.empty(0), *result))


def open_view(url: str, name: str, say: Callable[[str], None]) -> StudyAnalysis:
    """A view of a study in an Optuna storage.

    Raises:
        StoreError: the storage cannot be read, or has no such study.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    file = Path(url.removeprefix("sqlite:///"))
    if url.startswith("sqlite:///") and not file.is_file():  # Optuna would make one
        came = f"{safe(file, url)}: expected a database that Optuna made, and there is no such file"
        raise StoreError(f"{came}; correct --storage")
    check_url(url)
    try:
        return from_optuna(optuna.load_study(study_name=name, storage=url), say=say)
    except SettingError:
        raise
    except Exception as error:  # whatever a driver raises; it may repeat the password
        if isinstance(error, KeyError):
            with contextlib.suppress(KeyError):  # of a template: Optuna takes braces in a URL for one
                known = ", ".join(optuna.get_all_study_names(url)) or "none"
                raise StoreError(f"storage {shown(url)} has no study {name!r}; it has: {known}") from None
        text = " ".join(str(error).split())
        raise StoreError(f"storage {shown(url)}: {safe(text, url):.500}") from None
