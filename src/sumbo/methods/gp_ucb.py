"""GP-UCB: upper confidence bounds with one model over all dimensions (the paper's algorithm with d = D)."""

from dataclasses import dataclass
from typing import ClassVar

from sumbo.acquisition import functions
from sumbo.gp.additive import AdditiveGP
from sumbo.methods.base import SuggestContext
from sumbo.methods.full import FullModelMethod
from sumbo.methods.paper import PAPER_FIT


@dataclass(frozen=True)
class GPUCB(FullModelMethod):
    """Maximise mu + sqrt(beta_t) sigma over the whole space.

    Attributes:
        beta: "practical" for 0.2 D log 2t, "theorem" for the schedule of the regret bound, or a constant.
        delta: probability of failure in the theorem's schedule.

    Example:
        >>> sumbo.Optimizer([(0, 1)] * 4, sumbo.GPUCB(beta=4.0, n_init=5), seed=0).ask().number
        0
    """

    beta: str | float = "practical"
    delta: float = 0.1

    name: ClassVar[str] = "gp-ucb"

    def __post_init__(self) -> None:
        super().__post_init__()
        functions.check_beta(self.beta)
        functions.check_delta(self.delta)

    @classmethod
    def paper(cls) -> "GPUCB":
        """The settings of the paper's experiments."""
        return cls("se", n_cyc=25, maximiser="direct", fit=PAPER_FIT, explore_until=25)

    def acquisition(self, gp: AdditiveGP, query: SuggestContext) -> functions.Acquisition:
        t = query.taken + 1
        if self.beta == "practical":
            return functions.ucb(functions.practical_beta(t, query.D))
        if self.beta == "theorem":
            return functions.ucb(functions.full_theorem_beta(t, D=query.D, delta=self.delta))
        return functions.ucb(float(self.beta))
