"""Optuna studies with sumbo's suggestions: `optuna.create_study(sampler=SumboSampler(seed=0))`."""

from sumbo.integrations.optuna.sampler import SumboSampler

__all__ = ["SumboSampler"]
