"""The default method: no settings needed.

The model is a sum of functions of groups of parameters, each parameter alone at first, and one function of all of them.
How much each term counts is learned, and which parameters belong together is searched for as the data grow: as long as
they cannot tell, the function of all parameters and the single ones carry the search.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sumbo import structure
from sumbo.acquisition import log_expected_improvement
from sumbo.decomposition import Decomposition
from sumbo.fit import FitSettings
from sumbo.gp import AdditiveGP
from sumbo.kernels import Array
from sumbo.methods.base import Method, Query, Suggestion, check_count
from sumbo.methods.learning import Learning, best_seen, current_model, learned_geometrically, with_pending
from sumbo.methods.search import group_starts, incumbents, maximise_joint
from sumbo.sparse import chosen

# Variances may differ by orders of magnitude between terms: those that do not matter must be able to vanish.
_FIT = FitSettings(scale_sd=3.0)

_FIRST_SEARCH = 30  # observations with which groups are looked for the first time
_SEARCH_POINTS = 250  # observations that such a search looks at, at most: it must not keep anyone waiting
_SEARCH_WORK = 40_000  # its evidence evaluations, times observations


@dataclass(frozen=True)
class Auto(Method):
    """Expected improvement with groups that are learned.

    Attributes:
        n_init: how many space-filling points come first.
        max_group_size: no group of parameters grows beyond this.
    """

    n_init: int = 10
    max_group_size: int = 6

    name: ClassVar[str] = "auto"

    def __post_init__(self) -> None:
        check_count("n_init", self.n_init)
        check_count("max_group_size", self.max_group_size)

    def suggest(self, query: Query) -> Suggestion:
        if query.taken < self.n_init or not query.has_values:
            return Suggestion(space_filling(query), query.state)
        model, state = current_model(query, self._learning(query.D))
        gp = with_pending(model, query)
        starts = np.vstack([incumbents(model, 2), group_starts(model, query)])
        return Suggestion(maximise_joint(gp, log_expected_improvement(best_seen(gp)), query, starts), state, model)

    def model(self, query: Query) -> AdditiveGP | None:
        return current_model(query, self._learning(query.D))[0] if query.has_values else None

    def _learning(self, D: int) -> Learning:
        return Learning(
            "matern52",
            _FIT,
            Decomposition.apart(D),
            self._groups if self.max_group_size > 1 else None,
            due=learned_geometrically(0.05, 2),
            choose_due=lambda n, chosen_at: n >= max(_FIRST_SEARCH, 1.3 * chosen_at),
            decisive=True,
            full_order=D > 1,
        )

    def _groups(self, X: Array, y: Array, model: AdditiveGP, rng: np.random.Generator) -> Decomposition:
        some = chosen(y, min(_SEARCH_POINTS, len(y)))
        work = _SEARCH_WORK // len(some)
        return structure.search(X[some], y[some], model, rng, max_group_size=self.max_group_size, evaluations=work)


def space_filling(query: Query) -> Array:
    """The next point of a scrambled Sobol sequence, which is the study's own."""
    from scipy.stats import qmc  # half a second to import, and used for the first few points only

    sequence = qmc.Sobol(query.D, scramble=True, rng=query.study_rng)
    if query.number:  # SciPy does not take 0
        sequence.fast_forward(query.number)
    return query.space.snap(sequence.random(1)[0])
