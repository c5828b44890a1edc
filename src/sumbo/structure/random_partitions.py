"""The paper's way to groups: try some at random."""

from collections.abc import Callable

import numpy as np

from sumbo._typing import Array
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.decomposition import Decomposition
from sumbo.gp.evidence import log_evidence
from sumbo.gp.kernels import Terms, family_index


def random_trials(
    X: Array,
    y: Array,
    model: AdditiveGP,
    rng: np.random.Generator,
    *,
    group_size: int,
    trials: int,
    draw: Callable[[np.random.Generator], Decomposition] | None = None,
) -> Decomposition:
    """The paper's partial maximisation: of the present groups and some random ones, those with the highest evidence.

    Every decomposition is judged with one common lengthscale, scale and noise, those of the present model. `draw` gives
    random groups where not all are allowed; by default any of the given size.
    """
    XT = np.ascontiguousarray(X.T)
    common_l = float(np.exp(np.mean(np.log(model.lengthscales))))
    total = float(np.square(model.scales).sum())

    def evidence(groups: Decomposition) -> float:
        terms = Terms.build(
            groups.groups,
            np.full(sum(map(len, groups.groups)), common_l),
            np.full(len(groups), total / len(groups)),
            nominal=model.categories > 0,
            family=family_index(model.kernel),
        )
        return log_evidence(XT, y, terms, model.noise_variance)

    tried = [model.decomposition]
    tried += [draw(rng) if draw else Decomposition.random(X.shape[1], group_size, rng) for _ in range(trials)]
    return max(tried, key=evidence)
