"""Decompositions from data: which groups explain the values best, and how sure that is.

>>> rng = np.random.default_rng(0)
>>> X = rng.random((80, 3))
>>> y = np.sin(6 * X[:, 0] * X[:, 2]) + X[:, 1]
>>> start = sumbo.AdditiveGP([(0,), (1,), (2,)])
>>> found = search(X, (y - y.mean()) / y.std(), start, rng, max_group_size=2)
>>> sorted(map(sorted, found.groups))
[[0, 2], [1]]
"""

from sumbo.structure.overlaps import search_overlapping
from sumbo.structure.partition_search import random_trials, search
from sumbo.structure.sampling import StructurePosterior, posterior

__all__ = ["StructurePosterior", "posterior", "random_trials", "search", "search_overlapping"]
