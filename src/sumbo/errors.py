"""What can go wrong, by kind. Every error says what was expected, what came and what to do."""

from sumbo._redaction import safe


class SumboError(Exception):
    """Base of every error that sumbo raises on purpose.

    Example:
        >>> try:
        ...     sumbo.Float(1, 0)
        ... except sumbo.SumboError as error:
        ...     print(error)
        Float(1, 0): low must not be above high; swap them
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(safe(message))  # what came may be a URL with a password


class SpaceError(SumboError, ValueError):
    """A parameter, its bounds or a point does not fit the search space."""


class DecompositionError(SumboError, ValueError):
    """Groups of dimensions that do not form a valid decomposition."""


class TellError(SumboError, ValueError):
    """A result that cannot be recorded: unknown trial, told twice, not a number."""


class SettingError(SumboError, ValueError):
    """A method, model or run option out of its range."""


class DataError(SumboError, ValueError):
    """Arrays given to the model have the wrong shape or are not finite."""


class NotFittedError(SumboError, RuntimeError):
    """The model is asked for something that needs data first."""


class StateError(SumboError, ValueError):
    """A saved state that cannot be read back."""


class ObjectiveError(SumboError, RuntimeError):
    """The user's objective fails wherever it is evaluated."""


class StudyFileError(SumboError, ValueError):
    """A study file that cannot be read, or says something that makes no sense."""


class SheetError(SumboError, ValueError):
    """A table of results with a row that cannot be recorded."""


class StoreError(SumboError, RuntimeError):
    """Stored trials that cannot be reached, or that do not fit the study file."""


class MissingPackageError(SumboError, RuntimeError):
    """An optional package that is not installed."""
