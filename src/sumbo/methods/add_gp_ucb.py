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

from sumbo import structure
from sumbo._typing import Array
from sumbo.acquisition.functions import additive_beta, check_beta, log_expected_improvement, ucb
from sumbo.errors import SettingError
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.decomposition import Decomposition
from sumbo.gp.fit import FitSettings
from sumbo.methods.base import SuggestContext, Suggestion, check_choice, check_count
from sumbo.methods.candidates import Seen, best_seen, direct_budget, maximise_groups, maximise_joint, maximise_path
from sumbo.methods.surrogate import SurrogateMethod, SurrogateSettings, check_settings, learned_every
from sumbo.space import Space
from sumbo.structure.group_constraints import GroupConstraints, Named, freeze


@dataclass(frozen=True)
class AddGPUCB(SurrogateMethod):
    """Maximise mu_j + sqrt(beta_t) sigma_j of each group by itself, and put the groups' maximisers together.

    Attributes:
        group_size: d, the size of groups that are learned: of all but the last with "random", at most with "search".
        groups: known groups, by parameter name or dimension number; parameters in none of them stand alone, and
            nothing is learned but hyperparameters.
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
        together, apart: sets of parameters that share a group from the first model on, or of which no two do.
        acquisition: "ucb" for the paper's, group by group; "joint-ucb" and "log-ei" for the exact upper confidence
            bound and log expected improvement of the sum, climbed from the paper's point and others; "thompson" for
            the top of a function drawn from the posterior, which splits by group exactly.
        direct_evaluations: of maximiser "direct", shared by the groups; None for 90% of min(5000, 100 D).

    Example:
        >>> sumbo.Optimizer([(0, 1)] * 4, sumbo.AddGPUCB(group_size=2), seed=0).ask().number
        0
    """

    group_size: int = 6
    groups: Named | None = None
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
    together: Named = ()
    apart: Named = ()
    acquisition: str = "ucb"
    direct_evaluations: int | None = None

    name: ClassVar[str] = "add-gp-ucb"

    def __post_init__(self) -> None:
        freeze(self)
        check_settings(self)
        check_choice("learn", self.learn, ("search", "random", "none"))
        check_choice("acquisition", self.acquisition, ("ucb", "joint-ucb", "log-ei", "thompson"))
        if self.maximiser == "direct" and self.acquisition != "ucb":
            raise SettingError(f'maximiser "direct" goes with acquisition "ucb" only; got {self.acquisition!r}')
        check_count("group_size", self.group_size)
        if self.trials is not None:
            check_count("trials", self.trials)
        check_beta(self.beta, self.delta)

    def group_constraints(self, space: Space) -> GroupConstraints:
        most, limit = self.group_size, "group_size"
        return GroupConstraints.of(space, self.groups, self.together, self.apart, max_group_size=most, limit=limit)

    @classmethod
    def paper(cls, group_size: int = 4, groups: Named | None = None) -> "AddGPUCB":
        """The settings of the paper's experiments."""
        fit = FitSettings.paper()
        return cls(group_size, groups, kernel="se", n_cyc=25, maximiser="direct", fit=fit, explore_until=25)

    def suggest(self, context: SuggestContext) -> Suggestion:
        # Algorithm 2: N_init random points, then learn every N_cyc.
        if context.taken < self.n_init or not context.has_values:
            return Suggestion(context.uniform(1)[0], context.state)
        model, state = self.update(context)
        seen = Seen.of(model, context)
        if self.acquisition == "thompson":
            path = model.sample_path(context.rng, features=512)
            return Suggestion(maximise_path(path, context, seen.best(10)), state, model)
        gp = model.hallucinate(context.pending)
        # Algorithm 1: in each group the maximiser of its own upper confidence bound (1), put together (2).
        bound = ucb(additive_beta(self.beta, context.taken + 1, list(map(len, gp.groups)), self.delta))
        direct = self.direct_evaluations or int(0.9 * direct_budget(context.D)) if self.maximiser == "direct" else None
        x_t = maximise_groups(gp, bound, context, direct)
        if self.acquisition != "ucb":
            joint = bound
            if self.acquisition != "joint-ucb":
                joint = log_expected_improvement(best_seen(gp, Seen.of(gp, context), context.deadline))
            x_t = maximise_joint(gp, joint, context, np.vstack([x_t, seen.best(2)]))
        # Querying f at x_t (3) and adding it to the data (4, 5) is the caller's part.
        return Suggestion(x_t, state, model)

    def surrogate(self, space: Space) -> SurrogateSettings:
        known, d = self.group_constraints(space), self.group_size

        def choose(X: Array, y: Array, v: Array | None, model: AdditiveGP, rng: np.random.Generator) -> Decomposition:
            if self.learn == "search":
                together, apart = known.together, known.apart
                return structure.search(
                    X, y, model, rng, max_group_size=d, together=together, apart=apart, known_variance=v
                )
            trials = space.dim if self.trials is None else self.trials
            return structure.random_trials(
                X, y, model, rng, group_size=d, trials=trials, draw=known.random, known_variance=v
            )

        start = known.random(np.random.default_rng(0)) if known.groups is None else known.groups
        learned = None if known.groups is not None or self.learn == "none" else choose
        due = learned_every(self.n_cyc)
        return SurrogateSettings(self.kernel, self.fit, start, learned, due, explore_until=self.explore_until)
