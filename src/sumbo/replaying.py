"""Repeat a run from its record: the same suggestions must come out, to the last bit, however many workers there were.

A suggestion depends on the order in which trials were asked for and told, and with many workers that order depends on
their speed. It is on record: each trial knows how many had been told when it was asked for.
"""

from dataclasses import dataclass
from typing import Any

from sumbo.errors import StateError
from sumbo.optimizer import Optimizer


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
        others: trials that are no suggestions, such as points of the user's own, or that lack a record.
    """

    suggestions: int
    agreed: int
    first: Difference | None
    others: int

    @property
    def exact(self) -> bool:
        """Did all come out the same?"""
        return self.agreed == self.suggestions


def replay(optimizer: Optimizer) -> Replay:
    """Make all suggestions of an optimizer again, in the recorded order, and compare.

    It takes as long as the suggestions took. Where one differs, the search goes on from the recorded point, so that the
    later ones are compared as well. Suggestions differ if they were asked with a deadline, on a machine with another
    kind of processor, or with another version of sumbo, NumPy or SciPy.

    Args:
        optimizer: as it is after a run, or as `Optimizer.from_dict` restored it.

    Raises:
        StateError: nothing is on record: the optimizer was saved by a version that kept no order.

    Example:
        >>> run = sumbo.minimize(lambda x: float(sum(x**2)), [(-1, 1)] * 2, 15, seed=0, progress=False)
        >>> replay(run.optimizer).exact
        True
    """
    entries, told = optimizer.to_dict()["trials"], optimizer._told
    if all(entry["seen"] is None for entry in entries):
        raise StateError(
            "no suggestions are on record: this optimizer has points of the user's own only, or was saved by version "
            "0.1.0, which kept no order of asks and tells; runs of this version have one"
        )
    again = Optimizer(optimizer.space, optimizer.method, optimizer.direction, optimizer.seed, budget=optimizer.budget)
    differences: list[Difference] = []
    suggestions = 0
    for number, entry in enumerate(entries):
        if entry["seen"] is None:  # a point of the user's own: told before the next is asked for
            _place(again, number, entry)
            continue
        for earlier in told[len(again._told) : entry["seen"]]:
            value, reason = entries[earlier]["value"], entries[earlier]["reason"]
            again.tell(earlier, value, failed=value is None, reason=reason)
        suggestions += 1
        found = again.ask().params
        if found != entry["params"]:
            differences.append(Difference(number, entry["params"], found))
            for column in (again._trials, again._units, again._notes, again._seen):
                column.pop()
            _place(again, number, entry)
    first = differences[0] if differences else None
    return Replay(suggestions, suggestions - len(differences), first, len(entries) - suggestions)


def _place(again: Optimizer, number: int, entry: dict[str, Any]) -> None:
    """Put a recorded point where a suggestion would be; it runs until it is told."""
    again._restore(number, entry | {"state": "running", "value": None, "reason": None, "seconds": None})
