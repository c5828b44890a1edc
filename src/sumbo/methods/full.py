"""What GP-UCB and GP-EI share: one model over all dimensions, and one acquisition maximised over all of them."""

from abc import abstractmethod
from dataclasses import dataclass

from sumbo.acquisition.functions import Acquisition
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.decomposition import Decomposition
from sumbo.gp.fit import FitSettings
from sumbo.gp.kernels import FAMILIES
from sumbo.methods.base import Method, SuggestContext, Suggestion, check_choice, check_count
from sumbo.methods.candidates import direct_budget, incumbents, maximise_joint, maximise_joint_by_direct
from sumbo.methods.surrogate import SurrogateSettings, learned_every, update_surrogate, with_pending


@dataclass(frozen=True)
class FullModelMethod(Method):
    """Abstract. The settings mean what they mean for `AddGPUCB`."""

    kernel: str = "matern52"
    n_init: int = 10
    n_cyc: int = 10
    maximiser: str = "gradient"
    fit: FitSettings = FitSettings()
    explore_until: int = 0
    direct_evaluations: int | None = None

    def __post_init__(self) -> None:
        check_choice("maximiser", self.maximiser, ("gradient", "direct"))
        check_choice("kernel", self.kernel, FAMILIES)
        for name in ("n_init", "n_cyc"):
            check_count(name, getattr(self, name))
        check_count("explore_until", self.explore_until, 0)
        if self.direct_evaluations is not None:
            check_count("direct_evaluations", self.direct_evaluations)

    @abstractmethod
    def acquisition(self, gp: AdditiveGP, query: SuggestContext) -> Acquisition:
        """What a point is worth."""

    def suggest(self, query: SuggestContext) -> Suggestion:
        if query.taken < self.n_init or not query.has_values:
            return Suggestion(query.uniform(1)[0], query.state)
        model, state = update_surrogate(query, self._learning(query.D))
        gp = with_pending(model, query)
        acquisition = self.acquisition(gp, query)
        if self.maximiser == "direct":
            budget = self.direct_evaluations or direct_budget(query.D)
            point = maximise_joint_by_direct(gp, acquisition, query, budget)
        else:
            point = maximise_joint(gp, acquisition, query, incumbents(model, 2))
        return Suggestion(point, state, model)

    def model(self, query: SuggestContext) -> AdditiveGP | None:
        return update_surrogate(query, self._learning(query.D))[0] if query.has_values else None

    def _learning(self, D: int) -> SurrogateSettings:
        whole = Decomposition.whole(D)
        return SurrogateSettings(
            self.kernel, self.fit, whole, None, learned_every(self.n_cyc), explore_until=self.explore_until
        )
