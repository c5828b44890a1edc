"""Suggestions of a stored study made again, each from what its record says it depended on."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial

from sumbo.integrations.optuna import records
from sumbo.integrations.optuna.sampler import SumboSampler, _sign, new_point
from sumbo.integrations.optuna.translation import Translation
from sumbo.replaying import Difference, Replay
from sumbo.threads import one_thread


def replay(study: Study, sampler: SumboSampler, distributions: Mapping[str, BaseDistribution]) -> Replay:
    """Make the suggestions of a study again and compare them, with the states that the method left.

    Trials without a record count as others: those that nobody asked for, and those of version 0.1.0 or of another
    search space or method than the present one.
    """
    translation = Translation.of(distributions, sampler.method)
    trials = study.get_trials(deepcopy=False)
    if translation is None:
        return Replay(0, 0, None, len(trials))
    reader = records.Reader(translation)
    with one_thread():
        found = [result for trial in trials for result in _again(study, trials, trial, sampler, reader)]
    first = next((difference for difference in found if difference is not None), None)
    return Replay(len(found), sum(f is None for f in found), first, len(trials) - len(found))


def _again(
    study: Study, trials: list[FrozenTrial], trial: FrozenTrial, sampler: SumboSampler, reader: records.Reader
) -> Iterator[Difference | None]:
    """Nothing for a trial with no record; None for a suggestion that agrees."""
    translation = reader.translation
    record = records.read(trial, records.POINT, translation.place)
    if record is None or record.get("by") != translation.signature or "basis" not in record:
        return
    basis, recorded = record["basis"], _params(translation, record["x"])
    told, running = records.from_ranges(basis["told"]), records.from_ranges(basis["running"])
    history = reader.history_as_of(trials, told, running, basis["moves"], _sign(study))
    state = _state(trials, basis["state"], translation.signature)
    if history is None or state is None:  # the record speaks of trials that are not what they were
        yield Difference(trial.number, recorded, {})
        return
    # Records of version 0.1.0 know of no budget.
    query, answer = sampler._asked(trial.number, translation, history, state, basis.get("budget"))
    seen = {point.tobytes() for point in (*history.X, *history.pending)}
    fixed = trial.system_attrs.get("fixed_params", {})
    unit = new_point(translation, answer.point, seen, query.rng, fixed)
    for _ in record["earlier"]:  # others had chosen the same point at the same moment
        seen.add(unit.tobytes())
        unit = new_point(translation, answer.point, seen, query.rng, fixed)
    left = records.read(trial, records.STATE, translation.signature)
    same_state = json.loads(json.dumps(answer.state)) == (state if left is None else left["state"])
    if same_state and translation.numbers(unit) == record["x"]:
        yield None
    else:
        yield Difference(trial.number, recorded, translation.params(unit))


def _state(trials: list[FrozenTrial], source: int | None, signature: str) -> dict[str, Any] | None:
    if source is None:
        return {}
    kept = records.read(trials[source], records.STATE, signature) if source < len(trials) else None
    return None if kept is None else dict(kept["state"])


def _params(translation: Translation, x: list[float]) -> dict[str, Any]:
    unit = translation.from_numbers(x)
    return {} if unit is None else translation.params(unit)
