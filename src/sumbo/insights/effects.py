"""The function of a group's own parameters: what they do to the value, whatever the others are.

For f = sum_j f_j + f_D, with one term f_D of all dimensions, and the other dimensions averaged out:

    e_g(z) = f_g(z) + E[f_D | x_g = z] - (its mean over the space)

The expectations are means over S points b_s of the space. So e_g is a linear functional of a Gaussian process, and its
posterior is exact: with c the same functional of the kernel,

    mean(z)     = c(z, X) alpha
    variance(z) = c(z, z) - c(z, X) K^-1 c(X, z)

These are the functions whose variances are the groups' shares (`sensitivity.py`). The mean is taken off because the
level of a single component cannot be told from that of the others; what is left is its shape.

Distances add up over dimensions, so those of the averaged ones are found once: O(S G n), whatever D.

| symbol | shape  | meaning                                             |
|--------|--------|-----------------------------------------------------|
| Z      | (G, d) | points of the group's dimensions                    |
| B      | (S, D) | points of the space to average over                 |
| X      | (n, D) | observations, or the support that stands for them   |
"""

from dataclasses import dataclass, field

import numpy as np

from sumbo._typing import Array
from sumbo.gp.additive import AdditiveGP
from sumbo.gp.kernels import Terms
from sumbo.gp.threads import on_one_thread
from sumbo.insights.sensitivity import radial
from sumbo.space import Space

_AVERAGED = 16  # S, a power of two
_BLOCK = 1000  # points at a time, to bound memory


def background(space: Space, rng: np.random.Generator) -> Array:
    """B: points spread evenly over the space."""
    from scipy.stats import qmc  # half a second to import

    return space.snap(qmc.Sobol(space.dim, scramble=True, rng=rng).random(_AVERAGED))


@dataclass(frozen=True)
class Effect:
    """e_g of one group: call it with points of the group's dimensions."""

    model: AdditiveGP
    j: int
    B: Array
    _own: "_Term" = field(init=False, repr=False)
    _full: "_Term | None" = field(init=False, repr=False)

    def __post_init__(self) -> None:
        group = self.model.decomposition.groups[self.j]
        full = _Term.of(self.model, len(self.model.groups) - 1, group, self.B) if self.model.full_order else None
        object.__setattr__(self, "_own", _Term.of(self.model, self.j, group, self.B))
        object.__setattr__(self, "_full", full)

    @on_one_thread
    def __call__(self, Z: Array) -> tuple[Array, Array]:
        """Mean and standard deviation at each row of Z (G, d), on the model's scale."""
        data = self.model._observed()
        group = list(self.model.decomposition.groups[self.j])
        X, at = data.XT[group].T, self.B[:, group]
        centre = self._cross(at, X).mean(axis=0)
        level = self._prior(at, at).mean()
        means, variances = [], []
        for a in range(0, len(Z), _BLOCK):
            block = Z[a : a + _BLOCK]
            c = self._cross(block, X) - centre
            V = c @ data.L_inv.T
            prior = self._variance() - 2.0 * self._prior(block, at).mean(axis=1) + level
            means.append(c @ data.alpha)
            variances.append(np.maximum(prior - np.einsum("gq,gq->g", V, V), 0.0))
        return np.concatenate(means), np.sqrt(np.concatenate(variances))

    def _cross(self, Z: Array, X: Array) -> Array:
        """c(z, x) before the mean is taken off, (G, n)."""
        return self._own.averaged(Z, X, None) + (0.0 if self._full is None else self._full.averaged(Z, X, "data"))

    def _prior(self, Z: Array, W: Array) -> Array:
        """The same between points of the group, both sides averaged, (G, R)."""
        return self._own.averaged(Z, W, None) + (0.0 if self._full is None else self._full.averaged(Z, W, "both"))

    def _variance(self) -> float:
        """c(z, z) before the mean is taken off: the same everywhere."""
        one = self.B[:1, list(self.model.decomposition.groups[self.j])]
        return float(self._prior(one, one)[0, 0])


@dataclass(frozen=True)
class _Term:
    """A term of the model as a function of the group's dimensions, its other dimensions averaged out."""

    terms: Terms
    inverse_squares: Array  # 1 / l^2 of the group's dimensions, (d,)
    nominal: Array  # which of them are categories, (d,)
    to_data: Array  # (S, n): squared distances of the other dimensions from B to X
    between: Array  # (S, S): the same from B to B

    @classmethod
    def of(cls, model: AdditiveGP, j: int, group: tuple[int, ...], B: Array) -> "_Term":
        terms, members = model.terms.only(j), model.groups[j]
        weight = dict(zip(members, terms.inv_l2, strict=True))
        rest = [i for i in members if i not in group]
        X, nominal = model._observed().XT.T, model.categories > 0
        inverse = np.array([weight[i] for i in rest])
        mine = list(group)
        return cls(
            terms,
            np.array([weight[i] for i in group]),
            nominal[mine],
            _squared(B[:, rest], X[:, rest], inverse, nominal[rest]),
            _squared(B[:, rest], B[:, rest], inverse, nominal[rest]),
        )

    def averaged(self, Z: Array, W: Array, over: str | None) -> Array:
        """The kernel of rows of Z and W, (G, R); the other dimensions B's against the data's, or B's on both sides."""
        r2 = _squared(Z, W, self.inverse_squares, self.nominal)
        if over is None:
            return radial(r2, self.terms)
        rows = self.to_data if over == "data" else self.between.reshape(-1, 1)
        total = np.zeros_like(r2)
        for row in rows:
            total += radial(r2 + row, self.terms)
        return total / len(rows)


def _squared(Z: Array, W: Array, inverse: Array, nominal: Array) -> Array:
    """Squared scaled distances between rows, (m, p)."""
    r2 = np.zeros((len(Z), len(W)))
    for i, factor in enumerate(inverse):
        difference = Z[:, i, None] - W[:, i]
        r2 += factor * (difference != 0.0 if nominal[i] else np.square(difference))
    return r2
