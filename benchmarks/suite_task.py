"""What a problem of the suite is, apart from which there are."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import sumbo


@dataclass(frozen=True)
class Task:
    """A problem with its seed fixed.

    Attributes:
        value: What is reported, without noise; it raises nothing for any point of the space.
        optimum: The best value; None where it is not known.
        noise: Standard deviation of what the runner adds to what methods see.
        groups: The true groups of the parameters that matter, where they are known.
    """

    space: sumbo.Space
    value: Callable[[Mapping[str, Any]], float]
    direction: Literal["minimize", "maximize"]
    optimum: float | None
    noise: float = 0.0
    groups: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True)
class Entry:
    """How a problem is made.

    Attributes:
        make: By seed, which fixes where the optimum is, groups and splits of data.
        needs: Packages to import that sumbo itself does not need.
        budget: Evaluations.
    """

    make: Callable[[int], Task]
    dim: int
    real: bool
    needs: tuple[str, ...] = ()
    budget: int = 200
