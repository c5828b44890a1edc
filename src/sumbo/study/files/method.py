"""The method that a study file names. Imports compiled code: only those who ask need it."""

import dataclasses

from sumbo.errors import StudyFileError, SumboError
from sumbo.methods import Method, method_class
from sumbo.space.parameters import closest
from sumbo.study.files.toml import StudyFile


def method_of(study: StudyFile) -> Method:
    """The method with its settings.

    Raises:
        StudyFileError: no such method, no such setting, or one that makes no sense.
    """
    try:
        kind = method_class(study.method)
        known = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]  # methods are dataclasses
        for key in study.settings:
            if key not in known:
                near = closest(key, known)
                advice = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known) or 'none'}"
                raise StudyFileError(f"{study.path}: method {study.method!r} has no setting {key!r}; {advice}")
        method = kind(**study.settings)
        method.check(study.space)
    except StudyFileError:
        raise
    except (SumboError, TypeError, ValueError) as error:
        raise StudyFileError(f"{study.path}: method: {error}") from None
    return method
