"""The methods without a model: RAND draws points uniformly from the space, DIRECT divides it.

DIRECT wants to call the objective, we want to be asked. Being deterministic, it can be run again from its beginning
with the values that are known, up to the first point whose value is not: that is the next suggestion.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sumbo._typing import Array
from sumbo.acquisition import optimize
from sumbo.methods.base import Method, SuggestContext, Suggestion


@dataclass(frozen=True)
class Random(Method):
    """Draw every point at random.

    Example:
        >>> 0 <= sumbo.Optimizer([(0, 1)], Random(), seed=0).ask().params["x0"] <= 1
        True
    """

    name: ClassVar[str] = "random"
    models_constraints: ClassVar[bool] = True  # it has no need to

    def suggest(self, context: SuggestContext) -> Suggestion:
        return Suggestion(context.uniform(1)[0])


@dataclass(frozen=True)
class Direct(Method):
    """Divide the space into rectangles and refine the promising ones.

    Example:
        >>> sumbo.Optimizer([(0, 1), (0, 4)], Direct()).ask().params
        {'x0': 0.5, 'x1': 2.0}
    """

    name: ClassVar[str] = "direct"
    only_boxes: ClassVar[bool] = True

    def suggest(self, context: SuggestContext) -> Suggestion:
        known = dict(zip(map(_key, context.X), context.y, strict=True))
        # A failed point counts as the worst, a running one as an ordinary one: DIRECT goes on beside it.
        finite = context.y[np.isfinite(context.y)]
        # Halves and twice: the sum of the two in the middle may be too large for a float.
        worst, usual = (float(finite.min()), 2.0 * float(np.median(finite / 2.0))) if len(finite) else (0.0, 0.0)
        running = {_key(x) for x in context.pending}
        wanted: list[Array] = []

        def value(Z: Array) -> Array:
            key = _key(context.space.snap(Z[0]))
            if key in known:
                return np.array([known[key] if np.isfinite(known[key]) else worst])
            if key not in running and not wanted:
                wanted.append(Z[0].copy())
            return np.array([usual])

        # In a discrete space DIRECT asks again for points that are known, so more calls may be needed than are known.
        for calls in (context.taken + 1, 20 * (context.taken + 10)):
            optimize.direct(value, context.D, calls, stop=lambda: bool(wanted))
            if wanted:
                return Suggestion(context.space.snap(wanted[0]))
        return Suggestion(context.uniform(1)[0])


def _key(x: Array) -> tuple[float, ...]:
    # Going through the user's units and back may change the last digits.
    return tuple(np.round(x, 9).tolist())
