"""The default method: no settings needed."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sumbo.acquisition import log_expected_improvement
from sumbo.decomposition import Decomposition
from sumbo.fit import FitSettings
from sumbo.gp import AdditiveGP
from sumbo.kernels import Array
from sumbo.methods.base import Method, Query, Suggestion, check_count
from sumbo.methods.learning import Learning, best_seen, current_model, learned_geometrically, with_pending
from sumbo.methods.search import maximise_joint


@dataclass(frozen=True)
class Auto(Method):
    """Expected improvement with a model whose lengthscales are shrunk to a common, learned value.

    Attributes:
        n_init: how many space-filling points come first.
    """

    n_init: int = 10

    name: ClassVar[str] = "auto"

    def __post_init__(self) -> None:
        check_count("n_init", self.n_init)

    def suggest(self, query: Query) -> Suggestion:
        if query.taken < self.n_init or not query.has_values:
            return Suggestion(space_filling(query), query.state)
        model, state = current_model(query, self._learning(query.D))
        gp = with_pending(model, query)
        acquisition = log_expected_improvement(best_seen(gp))
        incumbents = model.X[np.argsort(-model.y, kind="stable")[:2]]
        return Suggestion(maximise_joint(gp, acquisition, query, incumbents), state, model)

    def model(self, query: Query) -> AdditiveGP | None:
        return current_model(query, self._learning(query.D))[0] if query.has_values else None

    def _learning(self, D: int) -> Learning:
        return Learning("matern52", FitSettings(), Decomposition.whole(D), None, learned_geometrically(0.05, 2))


def space_filling(query: Query) -> Array:
    """The next point of a scrambled Sobol sequence, which is the study's own."""
    from scipy.stats import qmc  # half a second to import, and used for the first few points only

    sequence = qmc.Sobol(query.D, scramble=True, rng=query.study_rng)
    if query.number:  # SciPy does not take 0
        sequence.fast_forward(query.number)
    return query.space.snap(sequence.random(1)[0])
