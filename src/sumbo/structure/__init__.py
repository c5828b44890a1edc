"""Decompositions from data: which groups explain the values best, and how sure that is."""

from sumbo.structure.climb import search
from sumbo.structure.overlaps import search_overlapping
from sumbo.structure.sampling import StructurePosterior, posterior
from sumbo.structure.trials import random_trials

__all__ = ["StructurePosterior", "posterior", "random_trials", "search", "search_overlapping"]
