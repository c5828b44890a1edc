"""Add-GP-UCB: Algorithms 1 and 2 of the paper.

| symbol   | meaning                                                                  |
|----------|--------------------------------------------------------------------------|
| d, M     | size of the largest group, number of groups                              |
| t        | number of the query, from 1                                              |
| beta_t   | weight of exploration                                                    |
| N_init, N_cyc | random points at the start; learn again after so many more          |
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sumbo import acquisition, structure
from sumbo.decomposition import Decomposition
from sumbo.fit import FitSettings
from sumbo.gp import AdditiveGP
from sumbo.kernels import FAMILIES, Array
from sumbo.methods.base import Method, Query, Suggestion, check_choice, check_count, check_groups
from sumbo.methods.learning import Learning, current_model, learned_every, with_pending
from sumbo.methods.search import direct_budget, maximise_groups, maximise_groups_by_direct
from sumbo.space import Space

# The paper's hyperparameters: one bandwidth and one scale for all groups, no priors, noise held fixed.
PAPER_FIT = FitSettings(
    ard=False,
    group_scales=False,
    dimension_scaled=False,
    lengthscale_sd=None,
    scale_sd=None,
    noise=1e-4,  # 1% of the standard deviation
    noise_sd=None,
    lengthscale_bounds=(1e-5, 5.0),
    variance_bounds=(0.03**2, 30.0**2),
    thrifty_from=None,
)


@dataclass(frozen=True)
class AddGPUCB(Method):
    """Maximise mu_j + sqrt(beta_t) sigma_j of each group by itself, and put the groups' maximisers together.

    Attributes:
        group_size: d, the size of groups that are learned: of all but the last with "random", at most with "search".
        groups: the decomposition, where it is known; nothing is then learned but hyperparameters.
        learn: "search" improves the groups dimension by dimension; "random" tries random decompositions (the paper's
            way); "none" keeps one random decomposition.
        trials: how many random decompositions are tried at each learning; None for D of them.
        beta: "practical" for 0.2 d log 2t, "theorem" for the schedule of the regret bound, or a constant.
        delta: probability of failure in the theorem's schedule.
        kernel: "matern52", "matern32" or "se".
        n_init: N_init, how many points are drawn at random first.
        n_cyc: N_cyc, after how many more observations hyperparameters and groups are learned again.
        maximiser: "gradient", or "direct" with the paper's budgets.
        fit: which hyperparameters are learned, with which priors.
        explore_until: number of observations below which the lengthscale is 1e-5, so that the search spreads out.
    """

    group_size: int = 6
    groups: tuple[tuple[int, ...], ...] | None = None
    learn: str = "random"
    trials: int | None = None
    beta: str | float = "practical"
    delta: float = 0.1
    kernel: str = "matern52"
    n_init: int = 10
    n_cyc: int = 10
    maximiser: str = "gradient"
    fit: FitSettings = FitSettings()
    explore_until: int = 0

    name: ClassVar[str] = "add-gp-ucb"

    def __post_init__(self) -> None:
        if self.groups is not None:
            object.__setattr__(self, "groups", Decomposition(self.groups).groups)
        check_choice("learn", self.learn, ("search", "random", "none"))
        check_choice("maximiser", self.maximiser, ("gradient", "direct"))
        check_choice("kernel", self.kernel, FAMILIES)
        for name in ("group_size", "n_init", "n_cyc"):
            check_count(name, getattr(self, name))
        check_count("explore_until", self.explore_until, 0)
        if self.trials is not None:
            check_count("trials", self.trials)
        acquisition.check_beta(self.beta)
        acquisition.check_delta(self.delta)

    def check(self, space: Space) -> None:
        check_groups(self.groups, space)

    @classmethod
    def paper(cls, group_size: int = 4, groups: tuple[tuple[int, ...], ...] | None = None) -> "AddGPUCB":
        """The settings of the paper's experiments."""
        return cls(
            group_size,
            groups,
            "random",
            kernel="se",
            n_cyc=25,
            maximiser="direct",
            fit=PAPER_FIT,
            explore_until=25,
        )

    def suggest(self, query: Query) -> Suggestion:
        # Algorithm 2: N_init random points, then learn every N_cyc.
        if query.taken < self.n_init or not query.has_values:
            return Suggestion(query.uniform(1)[0], query.state)
        model, state = current_model(query, self._learning(query.D))
        gp = with_pending(model, query)
        # Algorithm 1: in each group the maximiser of its own upper confidence bound (1), put together (2).
        ucb = acquisition.ucb(self._beta(query.taken + 1, gp))
        x_t = self._argmax(gp, ucb, query)
        # Querying f at x_t (3) and adding it to the data (4, 5) is the caller's part.
        return Suggestion(x_t, state, model)

    def model(self, query: Query) -> AdditiveGP | None:
        return current_model(query, self._learning(query.D))[0] if query.has_values else None

    def _argmax(self, gp: AdditiveGP, ucb: acquisition.Acquisition, query: Query) -> Array:
        if self.maximiser == "direct":
            return maximise_groups_by_direct(gp, ucb, query, int(0.9 * direct_budget(query.D)))
        return maximise_groups(gp, ucb, query)

    def _beta(self, t: int, gp: AdditiveGP) -> float:
        sizes = [len(group) for group in gp.groups]
        d, D, M = max(sizes), sum(sizes), len(sizes)
        if self.beta == "practical":
            return acquisition.practical_beta(t, d)
        if self.beta == "theorem":
            return acquisition.additive_theorem_beta(t, d=d, D=D, M=M, delta=self.delta)
        return float(self.beta)

    def _learning(self, D: int) -> Learning:
        def choose(X: Array, y: Array, model: AdditiveGP, rng: np.random.Generator) -> Decomposition:
            if self.learn == "search":
                return structure.search(X, y, model, rng, max_group_size=self.group_size)
            trials = D if self.trials is None else self.trials
            return structure.random_trials(X, y, model, rng, group_size=self.group_size, trials=trials)

        if self.groups is not None:
            start = Decomposition(self.groups)
        else:
            start = Decomposition.random(D, self.group_size, np.random.default_rng(0))
        fixed = self.groups is not None or self.learn == "none"
        due = learned_every(self.n_cyc)
        return Learning(self.kernel, self.fit, start, None if fixed else choose, due, explore_until=self.explore_until)
