"""Optuna studies with sumbo's suggestions: `optuna.create_study(sampler=SumboSampler(seed=0))`."""

try:
    import optuna  # noqa: F401
except ImportError as error:
    from sumbo.errors import MissingPackageError

    raise MissingPackageError(
        f"sumbo.integrations.optuna needs Optuna ({error}); install it with: pip install 'sumbo[optuna]'"
    ) from None

from sumbo.integrations.optuna.sampler import SumboSampler

__all__ = ["SumboSampler"]
