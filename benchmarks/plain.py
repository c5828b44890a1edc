"""The baseline that structure must beat: a plain full GP with shrunk lengthscales."""

from dataclasses import dataclass
from typing import ClassVar

from scipy.stats import qmc

from sumbo._typing import Array
from sumbo.acquisition.functions import log_expected_improvement
from sumbo.gp.decomposition import Decomposition
from sumbo.gp.fit import FitSettings
from sumbo.methods.base import Method, SuggestContext, Suggestion
from sumbo.methods.candidates import Seen, best_seen, maximise_joint
from sumbo.methods.surrogate import SurrogateSettings, learned_every, update_surrogate

# The common lengthscale is learned around 0.5 sqrt(D), each dimension's is shrunk hard to it, and noise is held down.
FIT = FitSettings(lengthscale=0.5, deviation_sd=0.3, noise=1e-4, noise_sd=2.0)


@dataclass(frozen=True)
class Plain(Method):
    """Log expected improvement of one Matern-5/2 model over all dimensions, refitted every two points.

    It stands still while `Auto` changes: its start is its own, and its settings are spelled out where they matter.
    """

    n_init: int = 10
    cycle: int = 2

    name: ClassVar[str] = "plain"

    def suggest(self, context: SuggestContext) -> Suggestion:
        if context.taken < self.n_init or not context.has_values:
            return Suggestion(sobol_point(context), context.state)
        whole = Decomposition([tuple(range(context.D))])
        learning = SurrogateSettings("matern52", FIT, whole, None, fit_due=learned_every(self.cycle))
        model, state = update_surrogate(context, learning)
        gp = model.hallucinate(context.pending)
        best = best_seen(gp, Seen.of(gp, context), context.deadline)
        point = maximise_joint(gp, log_expected_improvement(best), context, Seen.of(model, context).best(1))
        return Suggestion(point, state, model)


def sobol_point(context: SuggestContext) -> Array:
    """The next point of the study's scrambled Sobol sequence over the whole cube."""
    sequence = qmc.Sobol(context.D, scramble=True, rng=context.study_rng)
    if context.number:  # SciPy does not take 0
        sequence.fast_forward(context.number)
    return context.space.snap(sequence.random(1)[0])
