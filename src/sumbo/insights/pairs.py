"""Which pairs interact, among the parameters that matter most.

The sampler of groups needs time with the square of the number of parameters; cut short, it would be sure of whatever it
ran into. A parameter with a small total effect can have no large interaction, so with many parameters those with the
largest effects are looked at, and to them the others are noise.
"""

import itertools
from collections.abc import Sequence

import numpy as np

from sumbo import structure
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.decomposition import Decomposition
from sumbo.gp.outcome_transforms import OutcomeTransform
from sumbo.gp.solvers import chosen
from sumbo.insights.tables import Importances, Interaction, Interactions, default_evaluations
from sumbo.methods.base import SuggestContext
from sumbo.structure.group_constraints import GroupConstraints

MOST = 30  # parameters whose pairs are looked at
_POINTS = 250  # observations, as `Optimizer.interactions` takes


def of_the_largest(
    query: SuggestContext,
    model: AdditiveGP,
    known: GroupConstraints,
    importance: Importances,
    rng: np.random.Generator,
    evaluations: int | None = None,
) -> Interactions:
    """Probabilities of the pairs among the parameters with the largest shares; what the user declared is kept to."""
    names, y = query.space.names, OutcomeTransform.of(query.y).s
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
        evaluations=evaluations or default_evaluations(len(kept)),
        together=inside(known.together, 2),
        apart=inside(known.apart, 2),
    ).together
    probability = np.clip(together, 0.0, 1.0).round(9)
    pairs = itertools.combinations(range(len(kept)), 2)
    rows = [Interaction(names[kept[i]], names[kept[k]], float(probability[i, k])) for i, k in pairs]
    return Interactions(tuple(sorted(rows, key=lambda row: -row.probability)), model.n)
