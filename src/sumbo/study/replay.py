"""Make the suggestions of a ledger again: the same must come out, to the last bit, however many workers there were.

A suggestion depends on the order in which trials were asked for and told, and with many workers that order depends on
their speed. It is on record: each trial knows which part of the ledger its suggestion had seen.
"""

import json
from dataclasses import dataclass
from typing import Any

from sumbo.errors import StateError
from sumbo.methods import randomness
from sumbo.study.ledger import Record
from sumbo.study.optimizer import Optimizer


@dataclass(frozen=True)
class Difference:
    """A suggestion that did not come out the same.

    Attributes:
        number: the trial's.
        recorded, recomputed: its parameters then and now; the same where only the method's state differs.
    """

    number: int
    recorded: dict[str, Any]
    recomputed: dict[str, Any]


@dataclass(frozen=True)
class Replay:
    """What came of a replay.

    Attributes:
        suggestions: how many were made again.
        agreed: how many of them are the same to the last bit.
        first: the first that is not; None if all are.
        others: trials that are no suggestions of this method in this space, such as points of the user's own.
    """

    suggestions: int
    agreed: int
    first: Difference | None
    others: int

    @property
    def exact(self) -> bool:
        """Did all come out the same?"""
        return self.agreed == self.suggestions

    def __str__(self) -> str:
        lines = [f"{self.agreed} of {self.suggestions} suggestions come out the same, bit for bit"]
        if self.others:
            lines.append(f"{self.others} trials have no such record and were left out")
        if self.first is not None:
            recorded, again = self.first.recorded, self.first.recomputed
            lines.append(f"the first that differs is trial {self.first.number}:")
            for name, value in recorded.items():
                if again.get(name) != value:
                    lines.append(f"  {name}: {value!r} on record, {again.get(name, 'nothing')!r} now")
            why = "Another version of sumbo, NumPy or SciPy, another seed, or another kind of processor explain it."
            lines.append(why)
        return "\n".join(lines)


def replay(optimizer: Optimizer) -> Replay:
    """Make all suggestions of an optimizer again, each from what it had seen, and compare.

    It takes as long as the suggestions took. Suggestions differ if they were asked with a deadline, on a machine with
    another kind of processor, or with another version of sumbo, NumPy or SciPy.

    Args:
        optimizer: as it is after a run, or as `Optimizer.from_dict` restored it.

    Raises:
        StateError: nothing is on record: the optimizer has points of the user's own only.

    Example:
        >>> run = sumbo.minimize(lambda x: float(sum(x**2)), [(-1, 1)] * 2, 15, seed=0, progress=False)
        >>> replay(run.optimizer).exact
        True
    """
    records = optimizer._ledger.records
    suggested = [r for r in records if r.seen is not None and r.signature == optimizer._signature]
    if not suggested:
        raise StateError(
            "no suggestions are on record: the trials are points of the user's own, or were suggested by another "
            "method or for another space"
        )
    found = [_difference(optimizer, record) for record in suggested]
    first = next((difference for difference in found if difference is not None), None)
    return Replay(len(found), found.count(None), first, len(records) - len(found))


def _difference(optimizer: Optimizer, record: Record) -> Difference | None:
    """None for a suggestion that agrees."""
    ledger, signature = optimizer._ledger, optimizer._signature
    assert record.seen is not None
    history = ledger.as_of(record.seen).history(signature)
    context = optimizer._context(history, record.budget, given=record.fixed)
    answer = optimizer._suggest(context)
    taken = ledger.as_of(record.asked - 1).taken
    params, _ = randomness.nearest_untried(context.region, answer.point, taken, context.rng)
    left = context.state if record.method_state is None else record.method_state
    if json.dumps(params) == record.text and json.dumps(answer.state) == json.dumps(left):
        return None
    return Difference(record.number, record.params, params)
