"""Which pairs interact, among the parameters that matter most.

The sampler of groups needs time with the square of the number of parameters; cut short, it would be sure of whatever it
ran into. A parameter with a small total effect can have no large interaction, so with many parameters those with the
largest effects are looked at, and to them the others are noise.
"""

import itertools
from collections.abc import Sequence

import numpy as np

from sumbo import structure
from sumbo.decomposition import Decomposition
from sumbo.explain import Importances, Interaction, Interactions
from sumbo.gp import AdditiveGP
from sumbo.knowledge import Knowledge
from sumbo.methods.base import Query
from sumbo.methods.scales import observed_values
from sumbo.sparse import chosen

MOST = 30  # parameters whose pairs are looked at
_POINTS = 250  # observations, as `Optimizer.interactions` takes


def evaluations(parameters: int) -> int:
    """How many of the evidence give some five chains of the sampler or more, in some ten seconds at most."""
    return int(np.clip(60 * parameters**2, 2000, 25 * MOST**2))


def of_the_largest(
    query: Query, model: AdditiveGP, known: Knowledge, importance: Importances, rng: np.random.Generator
) -> Interactions:
    """Probabilities of the pairs among the parameters with the largest shares; what the user declared is kept to."""
    names, y = query.space.names, observed_values(query)
    largest = {row.parameters[0] for row in importance.parameters[:MOST]}
    kept = [i for i, name in enumerate(names) if name in largest]
    new = {i: k for k, i in enumerate(kept)}

    def inside(sets: Sequence[Sequence[int]], least: int) -> list[tuple[int, ...]]:
        found = (tuple(new[i] for i in group if i in new) for group in sets)
        return [group for group in found if len(group) >= least]

    some = chosen(y, min(_POINTS, len(y)))
    groups = Decomposition(inside(known.start.groups, 1))
    blank = AdditiveGP(groups, kernel=model.kernel, categories=model.categories[kept])
    together = structure.posterior(
        query.X[some][:, kept],
        y[some],
        blank,
        rng,
        max_group_size=known.max_group_size,
        evaluations=evaluations(len(kept)),
        together=inside(known.together, 2),
        apart=inside(known.apart, 2),
    ).together
    probability = np.clip(together, 0.0, 1.0).round(9)
    pairs = itertools.combinations(range(len(kept)), 2)
    rows = [Interaction(names[kept[i]], names[kept[k]], float(probability[i, k])) for i, k in pairs]
    return Interactions(tuple(sorted(rows, key=lambda row: -row.probability)), model.n)
