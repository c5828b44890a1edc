"""Figures of a study, for notebooks: every function takes a study and returns a plotly figure.

A study is what `minimize` and `maximize` return, an `Optimizer`, or what `sumbo.report.from_optuna` returns. Where
several figures are wanted of a large study, make one view for all: `view = sumbo.report.view(result)`.

>>> result = sumbo.minimize(lambda x: x[0] ** 2, [(-1, 1)], 5, method="random", seed=0)
>>> figure = trials(result)  # figure.show() opens it, figure.write_html("trials.html") keeps it
>>> figure.data[-1].name
'best so far'
"""

from sumbo.plot.diagnostics import calibration, compare, hyperparameters, predictions, times, trials
from sumbo.plot.parameters import component, group_shares, interaction_graph, interaction_matrix, shares

__all__ = ["calibration", "compare", "hyperparameters", "predictions", "times", "trials"]
__all__ += ["component", "group_shares", "interaction_graph", "interaction_matrix", "shares"]
