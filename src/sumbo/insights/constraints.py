"""What constraints that are told with the values cost: which of them binds, and how sure that is.

A constraint **binds** if a better point is forbidden by it alone. The probability of that is read at one point u', the
one that would be recommended without the constraint, all others kept, against the point u that is recommended:

    P(binds) = P(f(u') > f(u) + d) P(c(u') is broken)

with d a thousandth of the spread of values: where the objective is flat, a point beyond the limit is no better.

Two constraints that forbid the same point bind neither alone: to drop one of them would bring nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from sumbo._typing import Array
from sumbo.acquisition.functions import Satisfied
from sumbo.gp.additive import AdditiveGP
from sumbo.insights.effects import weighted_sum
from sumbo.methods import SuggestContext
from sumbo.methods.candidates import recommended

BINDS = "the probability that the point recommended without this constraint is clearly better, and breaks it"
_CLEARLY = 1e-3  # better by so many standard deviations of all values, on the model's scale


@dataclass(frozen=True)
class ConstraintRow:
    """One constraint, as the report and `sumbo show --learned` have it.

    Attributes:
        constraint: as a comparison, such as "stress <= 250".
        at_best: what was measured at the best feasible trial; None if there is none.
        kept: the share of trials with a value that kept it.
        holds: the probability that it holds at the recommended point; None, as the rest, where there is no model.
        binds: the probability that the point recommended without this constraint is clearly better, and breaks it;
            None, as the rest, also where no trial is feasible.
        without: the value expected at that point.
    """

    constraint: str
    at_best: float | None
    kept: float
    holds: float | None = None
    binds: float | None = None
    without: float | None = None


def binding(
    model: AdditiveGP, satisfied: Sequence[Satisfied], context: SuggestContext, u: Array
) -> list[tuple[float, float, Array]]:
    """Of each constraint the probabilities that it holds at the recommended point u and that it binds, and u'."""
    found, told = [], context.constraints
    assert told is not None  # there are models of them
    for k, constraint in enumerate(satisfied):
        others = [*satisfied[:k], *satisfied[k + 1 :]]
        kept = np.delete(told, k, axis=1) if others else None
        free = recommended(model, others, replace(context, constraints=kept))[0]
        gain, std = weighted_sum(model, np.stack([free, u]), np.array([1.0, -1.0]))
        better = float(ndtr((gain - _CLEARLY) / std)) if std > 0.0 else float(gain > _CLEARLY)
        at_u, at_free = np.exp(constraint.value(np.stack([u, free])))
        found.append((float(at_u), better * float(1.0 - at_free), free))
    return found
