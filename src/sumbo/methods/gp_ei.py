"""GP-EI: expected improvement with one model over all dimensions."""

from dataclasses import dataclass
from typing import ClassVar

from sumbo.acquisition.functions import Acquisition, log_expected_improvement
from sumbo.gp.additive import AdditiveGP
from sumbo.methods.base import SuggestContext
from sumbo.methods.gp_ucb import FullModelMethod
from sumbo.methods.surrogate import best_seen


@dataclass(frozen=True)
class GPEI(FullModelMethod):
    """Maximise the log of the expected improvement on the best posterior mean at a point seen.

    Example:
        >>> sumbo.Optimizer([(0, 1)] * 3, sumbo.GPEI(n_init=5), seed=0).ask().number
        0
    """

    name: ClassVar[str] = "gp-ei"

    def acquisition(self, gp: AdditiveGP, context: SuggestContext) -> Acquisition:
        return log_expected_improvement(best_seen(gp, context.deadline))
