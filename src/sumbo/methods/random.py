"""RAND: points drawn uniformly from the space."""

from dataclasses import dataclass
from typing import ClassVar

from sumbo.methods.base import Method, SuggestContext, Suggestion


@dataclass(frozen=True)
class Random(Method):
    """Draw every point at random.

    Example:
        >>> 0 <= sumbo.Optimizer([(0, 1)], Random(), seed=0).ask().params["x0"] <= 1
        True
    """

    name: ClassVar[str] = "random"

    def suggest(self, context: SuggestContext) -> Suggestion:
        return Suggestion(context.uniform(1)[0])
