"""Figures of a study, for notebooks: every function takes a study and returns a plotly figure.

A study is what `minimize` and `maximize` return, an `Optimizer`, or what `sumbo.report.from_optuna` returns. Where
several figures are wanted of a large study, make one view for all: `view = sumbo.report.view(result)`.

>>> result = sumbo.minimize(lambda x: x[0] ** 2, [(-1, 1)], 5, method="random", seed=0)
>>> figure = trials(result)  # figure.show() opens it, figure.write_html("trials.html") keeps it
>>> figure.data[-1].name
'best so far'
"""

from sumbo.plot.components import component
from sumbo.plot.search import compare, times, trials
from sumbo.plot.structure import group_shares, interaction_graph, interaction_matrix, shares
from sumbo.plot.trust import calibration, hyperparameters, predictions

__all__ = [
    "calibration",
    "compare",
    "component",
    "group_shares",
    "hyperparameters",
    "interaction_graph",
    "interaction_matrix",
    "predictions",
    "shares",
    "times",
    "trials",
]
