"""How sure the groups are: decompositions drawn from their posterior.

Gibbs sampling takes one unit at a time out of its group and puts it back, alone or into any group, with the probability
that evidence and prior give to each place. Its modes lie so far apart that one chain sees one of them, however many
there are. So many chains are run, each heated until it forgets where it came from, and cooled to temperature 1 before
anything is recorded. Where the data decide, all end in the same groups; where they do not, they differ. A chain that
is stuck below the others counts for less, but not for as little as its score says: it stands for many more like it.

All that trusts the model. Values that no such Gaussian process would draw, of a steep function above all, surprise
every decomposition, and the one that happens to be surprised least wins by many nats. So the evidence counts as far as
the model's own predictions justify it (`Scorer.justified_trust`): in full where the model is right.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sumbo._typing import Array
from sumbo.errors import SettingError
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.decomposition import Decomposition
from sumbo.gp.threads import on_one_thread
from sumbo.structure.group_constraints import Group, Wishes
from sumbo.structure.partition_search import find
from sumbo.structure.score import PartitionMoves, Problem, Scorer, Tied, sorted_problem

_HEAT = np.geomspace(5.0, 1.0, 10)  # temperatures before a chain is recorded
_SKIPPED = 1  # sweeps at temperature 1 before that
_SWEEPS = 3  # that are recorded
_SOFTENED = 10.0  # nats by which the average score of a chain must fall for its weight to fall by e
_SEARCH = 0.2  # share of the evaluations that goes into a good start


@dataclass(frozen=True)
class StructurePosterior:
    """What the data say about groups.

    Attributes:
        together: (D, D), the probability that two dimensions share a group; 1 on the diagonal.
        sizes: (D, D), the probability that dimension i is in a group of d dimensions, at [i, d - 1].
        decompositions: those drawn, most frequent first.
        weights: their frequencies, which add up to 1.
        best: the decomposition with the highest posterior density that was met.
    """

    together: Array
    sizes: Array
    decompositions: tuple[Decomposition, ...]
    weights: Array
    best: Decomposition


@on_one_thread
def posterior(
    X: Array,
    y: Array,
    model: AdditiveGP,
    rng: np.random.Generator,
    *,
    max_group_size: int,
    evaluations: int = 20000,
    together: Wishes = (),
    apart: Wishes = (),
    known_variance: Array | None = None,
) -> StructurePosterior:
    """Probabilities of groups, under tied hyperparameters and the prior of the search.

    Args:
        X, y: observations, values standardised.
        model: gives the present groups, the kernel and the categories.
        rng: for search and sampling.
        max_group_size: no group grows beyond this.
        evaluations: about so many evidence evaluations.
        together, apart: sets of dimensions that share a group, or of which no two do.
        known_variance: what each value is known to vary by beside the noise, (n,), in the units of y squared.

    Raises:
        DecompositionError: the wishes contradict each other, or the limit.
        SettingError: fewer than two observations.
    """
    if len(y) < 2:
        raise SettingError(f"a posterior needs at least 2 observations; got {len(y)}")
    named, problem, present = sorted_problem(X, y, model, max_group_size, together, apart, known_variance)
    start = find(problem, present, rng, int(_SEARCH * evaluations))
    drawn = sample(problem, start.tied, start.groups, rng, evaluations - problem.spent)
    best = named(map(problem.rules.dims, start.groups))
    return summarise([(named(decomposition.groups), weight) for decomposition, weight in drawn], best)


def sample(
    problem: Problem, tied: Tied, start: Sequence[Group], rng: np.random.Generator, evaluations: int
) -> list[tuple[Decomposition, float]]:
    """Decompositions with weights, some from each of as many chains as the evaluations allow."""
    limit = problem.spent + evaluations
    scorer = Scorer(problem, tied)
    scorer.trust = scorer.justified_trust(start)
    chains: list[list[tuple[Decomposition, float]]] = []
    while problem.spent < limit or not chains:
        walk = PartitionMoves(scorer, start, rng)
        for T in _HEAT if chains else ():  # the first stays where the search ended
            walk.sweep(float(T), swaps=False, limit=limit)
        chain = []
        for sweep in range(-_SKIPPED, _SWEEPS):
            gibbs_sweep(walk)
            if sweep >= 0:
                chain.append((problem.rules.decomposition(walk.groups), walk.score))
        chains.append(chain)
    return weighted(chains)


def weighted(chains: Sequence[Sequence[tuple[Decomposition, float]]]) -> list[tuple[Decomposition, float]]:
    """Every draw with its share: equal within a chain; among chains by average score, softened."""
    averages = np.array([np.mean([score for _, score in chain]) for chain in chains])
    weights = np.exp((averages - averages.max()) / _SOFTENED)
    weights /= weights.sum()
    return [(d, float(w) / len(chain)) for w, chain in zip(weights, chains, strict=True) for d, _ in chain]


def gibbs_sweep(walk: PartitionMoves, temperature: float = 1.0) -> None:
    """Every unit once, in random order: exact conditional probabilities, so all its places are evaluated."""
    for u in walk.rng.permutation(len(walk.rules.units)).tolist():
        walk.step(walk.places(u), temperature)


def summarise(drawn: Sequence[tuple[Decomposition, float]], best: Decomposition) -> StructurePosterior:
    """Probabilities of pairs, sizes and whole decompositions, from draws with weights."""
    D = best.dim
    together, sizes = np.zeros((D, D)), np.zeros((D, D))
    shares: dict[Decomposition, float] = defaultdict(float)
    for decomposition, weight in drawn:
        labels = np.array(decomposition.labels)
        together += weight * (labels[:, None] == labels)
        sizes[np.arange(D), np.bincount(labels)[labels] - 1] += weight
        shares[decomposition] += weight
    ranked = sorted(shares.items(), key=lambda item: -item[1])
    weights = np.array([weight for _, weight in ranked])
    return StructurePosterior(together, sizes, tuple(d for d, _ in ranked), weights / weights.sum(), best)
