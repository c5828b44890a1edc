"""GP-UCB and GP-EI: one model over all dimensions (the paper's algorithm with d = D), and its two acquisitions."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

from sumbo.acquisition.functions import Acquisition, check_beta, full_beta, log_expected_improvement, ucb
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.decomposition import Decomposition
from sumbo.gp.fit import FitSettings
from sumbo.methods.base import SuggestContext, Suggestion
from sumbo.methods.candidates import Seen, best_seen, direct_budget, maximise_joint
from sumbo.methods.surrogate import SurrogateMethod, SurrogateSettings, check_settings, learned_every
from sumbo.space import Space


@dataclass(frozen=True)
class FullModelMethod(SurrogateMethod):
    """Abstract: one model over all dimensions, and one acquisition. The settings mean what they mean for `AddGPUCB`."""

    kernel: str = "matern52"
    n_init: int = 10
    n_cyc: int = 10
    maximiser: str = "gradient"
    fit: FitSettings = FitSettings()
    explore_until: int = 0
    direct_evaluations: int | None = None

    def __post_init__(self) -> None:
        check_settings(self)

    @classmethod
    def paper(cls) -> Self:
        """The settings of the paper's experiments."""
        return cls("se", n_cyc=25, maximiser="direct", fit=FitSettings.paper(), explore_until=25)

    @abstractmethod
    def acquisition(self, gp: AdditiveGP, context: SuggestContext) -> Acquisition:
        """What a point is worth."""

    def suggest(self, context: SuggestContext) -> Suggestion:
        if context.taken < self.n_init or not context.has_values:
            return Suggestion(context.uniform(1)[0], context.state)
        model, state = self.update(context)
        gp = model.hallucinate(context.pending)
        direct = self.direct_evaluations or direct_budget(context.D) if self.maximiser == "direct" else None
        point = maximise_joint(
            gp, self.acquisition(gp, context), context, Seen.of(model, context).best(2), direct=direct
        )
        return Suggestion(point, state, model)

    def surrogate(self, space: Space) -> SurrogateSettings:
        whole, due = Decomposition.whole(space.dim), learned_every(self.n_cyc)
        return SurrogateSettings(self.kernel, self.fit, whole, None, due, explore_until=self.explore_until)


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
        check_beta(self.beta, self.delta)

    def acquisition(self, gp: AdditiveGP, context: SuggestContext) -> Acquisition:
        return ucb(full_beta(self.beta, context.taken + 1, context.D, self.delta))


@dataclass(frozen=True)
class GPEI(FullModelMethod):
    """Maximise the log of the expected improvement on the best posterior mean at a point seen.

    Example:
        >>> sumbo.Optimizer([(0, 1)] * 3, sumbo.GPEI(n_init=5), seed=0).ask().number
        0
    """

    name: ClassVar[str] = "gp-ei"

    def acquisition(self, gp: AdditiveGP, context: SuggestContext) -> Acquisition:
        return log_expected_improvement(best_seen(gp, Seen.of(gp, context), context.deadline))
