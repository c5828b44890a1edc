"""What the values told so far say about the parameters: which interact, and how much each matters."""

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sumbo import structure
from sumbo._typing import Array
from sumbo.errors import MissingPackageError, NotFittedError
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.decomposition import Decomposition
from sumbo.gp.outcome_transforms import OutcomeTransform
from sumbo.gp.solvers import chosen
from sumbo.insights import effects
from sumbo.methods import SuggestContext
from sumbo.space import Space
from sumbo.structure.group_constraints import GroupConstraints

MOST = 30  # parameters whose pairs are looked at
_POINTS = 250  # observations that a posterior over groups looks at
_SHOWN = 20  # rows that are printed
_CHAINS = 5  # of the sampler, about, that the default budget pays for


@dataclass(frozen=True)
class Interaction:
    """Two parameters and the probability that they share a group, which is that neither acts by itself."""

    first: str
    second: str
    probability: float


@dataclass(frozen=True)
class Interactions:
    """All pairs of parameters, the most probable first. Iterate over it, print it, or take `to_frame()`.

    Attributes:
        rows: the pairs.
        observations: how many values this was learned from.
    """

    rows: tuple[Interaction, ...]
    observations: int

    def __iter__(self) -> Iterator[Interaction]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        # The first in any case; pairs that would show as 0.00 say no more than their number does.
        shown = [row for k, row in enumerate(self.rows[:_SHOWN]) if k == 0 or row.probability >= 0.005]
        body = [(f"{row.first}, {row.second}", f"{row.probability:.2f}") for row in shown]
        return _table(("interacting", "probability"), body, len(self.rows))

    def to_frame(self) -> Any:
        """The rows as a pandas DataFrame; `MissingPackageError` where pandas is not installed."""
        return _frame([(row.first, row.second, row.probability) for row in self], ("first", "second", "probability"))


@dataclass(frozen=True)
class Importance:
    """What some parameters account for.

    Attributes:
        parameters: their names; none for the noise.
        share: a share of the variance, between 0 and 1.
        std: how far off that may be: the root mean square difference of functions drawn from the posterior.
    """

    parameters: tuple[str, ...]
    share: float
    std: float


@dataclass(frozen=True)
class Importances:
    """How much parameters and groups matter, over the whole space. Iterate over all rows, print it, or `to_frame()`.

    Attributes:
        parameters: each with the share of variance that would be lost if it were held fixed (Sobol's total effect); an
            interaction counts for both sides, so these add up to more than 1 where there are any.
        groups: the groups in use, each with the share that a function of its parameters alone explains.
        all_together: what no sum over these groups can express; with the groups it adds up to 1.
        noise: the noise in a single value, as a share of the variance of values.
        observations: how many values this was learned from.
    """

    parameters: tuple[Importance, ...]
    groups: tuple[Importance, ...]
    all_together: Importance
    noise: Importance
    observations: int

    def __iter__(self) -> Iterator[Importance]:
        return iter((*self.parameters, *self.groups, self.all_together, self.noise))

    def __len__(self) -> int:
        return len(self.parameters) + len(self.groups) + 2

    def __str__(self) -> str:
        single, groups = self.parameters[:_SHOWN], self.groups[:_SHOWN]
        first = _table(("parameter", "share", ""), map(_line, single), len(self.parameters))
        rows = [("all together", *_line(self.all_together)[1:]), *map(_line, groups)]
        second = _table(("group", "share", ""), rows, len(self.groups) + 1)
        return f"{first}\n\n{second}\n\nnoise: {self.noise.share:.3f} of the variance of values"

    def to_frame(self) -> Any:
        """The rows as a pandas DataFrame, with a column for their kind; as that of `Interactions`, it needs pandas."""
        kinds = ["parameter"] * len(self.parameters) + ["group"] * len(self.groups) + ["all together", "noise"]
        rows = [(kind, row.parameters, row.share, row.std) for kind, row in zip(kinds, self, strict=True)]
        return _frame(rows, ("kind", "parameters", "share", "std"))


def interactions(
    context: SuggestContext,
    model: AdditiveGP,
    known: GroupConstraints,
    rng: np.random.Generator,
    *,
    among: Collection[str],
    evaluations: int | None = None,
) -> Interactions:
    """Probabilities that pairs of the parameters `among` share a group, from the posterior over groups.

    They depend on the values, on what the user declared, which is kept to, and on `rng`, not on the groups in use: a
    study that was restored or asked for more points gives the same answer. Time goes with the square of the number of
    parameters; to these, the others are noise. By default there are evaluations of the evidence enough for several
    independent chains, because one alone would be sure of whatever it ran into.
    """
    names = context.space.names
    kept = [i for i, name in enumerate(names) if name in among]
    new = {i: k for k, i in enumerate(kept)}

    def inside(sets: Sequence[Sequence[int]], least: int) -> list[tuple[int, ...]]:
        found = (tuple(new[i] for i in group if i in new) for group in sets)
        return [group for group in found if len(group) >= least]

    start = inside(known.start.groups, 1)
    if known.groups is None and len(kept) > 1 and known.max_group_size > 1:
        # Not the model's transform, which may be warped: a warped sum is no sum any more.
        plain = OutcomeTransform.of(context.y, context.std)
        y, v = plain.s, plain.known_variance
        some = chosen(y, min(_POINTS, len(y)))
        # A chain goes through the units some twenty times, and evaluates up to all places of each in four of these.
        enough = max(20_000, _CHAINS * 5 * min(len(known.units), len(kept)) ** 2)
        together = structure.posterior(
            context.X[some][:, kept],
            y[some],
            AdditiveGP(Decomposition(start), kernel=model.kernel, categories=model.categories[kept]),
            rng,
            max_group_size=known.max_group_size,
            evaluations=evaluations or enough,
            together=inside(known.together, 2),
            apart=inside(known.apart, 2),
            known_variance=None if v is None else v[some],
        ).together
    else:
        together = np.eye(len(kept))
        for group in start:
            together[np.ix_(group, group)] = 1.0
    probability = np.clip(together, 0.0, 1.0).round(9)  # weights add up to 1 but for rounding
    pairs = itertools.combinations(range(len(kept)), 2)
    rows = [Interaction(names[kept[i]], names[kept[k]], float(probability[i, k])) for i, k in pairs]
    return Interactions(tuple(sorted(rows, key=lambda row: -row.probability)), model.n)


def importance(model: AdditiveGP, space: Space, rng: np.random.Generator) -> Importances:
    """Shares of the variance of the model's mean, and how far functions drawn from the model differ from them."""
    found = effects.shares(model, space, rng)
    if not found.variance[0] > 1e-12:
        raise NotFittedError(
            "the model sees no difference between points yet, so there is nothing to explain; tell more values, and "
            "check that the objective depends on its parameters"
        )
    names, groups, known = space.names, model.decomposition.groups, model.known_variance
    noise = model.noise_variance + (0.0 if known is None else float(known.mean()))
    return Importances(
        _sorted(_row((name,), found.parameters[:, i]) for i, name in enumerate(names)),
        _sorted(_row(tuple(names[i] for i in group), found.groups[:, j]) for j, group in enumerate(groups)),
        _row(names, found.rest),
        _row((), noise / (noise + found.variance)),
        model.n,
    )


def _row(parameters: tuple[str, ...], shares: Array) -> Importance:
    std = np.sqrt(np.mean(np.square(shares[1:] - shares[0])))
    return Importance(parameters, float(shares[0]), float(std))


def _sorted(rows: Iterable[Importance]) -> tuple[Importance, ...]:
    return tuple(sorted(rows, key=lambda row: -row.share))


def _line(row: Importance) -> tuple[str, str, str]:
    return ", ".join(row.parameters), f"{row.share:.3f}", f"± {row.std:.3f}"


def _table(head: tuple[str, ...], body: Iterable[tuple[str, ...]], count: int) -> str:
    """Columns side by side, the first to the left and the others to the right; a last line for what is left out."""
    rows = [head, *body]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    layout = "  ".join(f"{{:{'>' if k else '<'}{width}}}" for k, width in enumerate(widths))
    lines = [layout.format(*row).rstrip() for row in rows]
    more = count - (len(rows) - 1)
    return "\n".join([*lines, f"... and {more} more"] if more > 0 else lines)


def _frame(rows: list[tuple[Any, ...]], columns: tuple[str, ...]) -> Any:
    try:
        import pandas
    except ImportError:
        raise MissingPackageError(
            "to_frame needs pandas, which is not installed; run pip install pandas, or iterate over the rows"
        ) from None
    return pandas.DataFrame(rows, columns=list(columns))
