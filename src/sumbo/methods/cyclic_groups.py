"""Only change one group per query: the second sequential approach of the paper's appendix (`seqgpbalgo2`)."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from sumbo.gp.additive import AdditiveGP
from sumbo.methods.add_gp_ucb import AddGPUCB
from sumbo.methods.base import Method, SuggestContext, Suggestion
from sumbo.space import Space
from sumbo.structure.group_constraints import GroupConstraints


@dataclass(frozen=True)
class CyclicGroups(Method):
    """Add-GP-UCB in which query t moves group t mod M only; the others stay where the last query had them.

    Attributes:
        inner: settings of the underlying Add-GP-UCB, its groups among them.

    Example:
        >>> sumbo.Optimizer([(0, 1)] * 4, sumbo.CyclicGroups(), seed=0).ask().number
        0
    """

    inner: AddGPUCB = AddGPUCB()

    name: ClassVar[str] = "cyclic-groups"

    def check(self, space: Space) -> None:
        self.inner.check(space)

    def knowledge(self, space: Space) -> GroupConstraints:
        return self.inner.knowledge(space)

    def suggest(self, query: SuggestContext) -> Suggestion:
        answer = self.inner.suggest(replace(query, state=query.state.get("inner", {})))
        x_t = answer.point
        if answer.cache is not None and "previous" in query.state:
            k = query.number % len(answer.cache.groups)
            moved = list(answer.cache.groups[k])
            x_t = np.array(query.state["previous"])
            x_t[moved] = answer.point[moved]
        return Suggestion(x_t, {"inner": answer.state, "previous": x_t.tolist()}, answer.cache)

    def model(self, query: SuggestContext) -> AdditiveGP | None:
        return self.inner.model(replace(query, state=query.state.get("inner", {})))
