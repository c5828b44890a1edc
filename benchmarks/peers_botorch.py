"""Models of BoTorch's family that high-dimensional comparisons use, in the loop of `peers.botorch`.

Each has candidates around the best points (RAASP) among those that its search begins with.
"""

import math
import os
from functools import partial
from typing import Any

from peers import Objective, botorch, fitted

from sumbo.regret import Direction
from sumbo.space import Space

_RAASP = {"sample_around_best": True, "sample_around_best_sigma": 1e-3}
# Of a fit, for the sake of time: without a prior it can go on for thousands, half a minute with 100 parameters.
_STEPS = 200
_WARM_UP, _SAMPLES, _THINNING = 256, 128, 16  # of NUTS, as in BoTorch's tutorial


def botorch_raasp(f: Objective, space: Space, direction: Direction, budget: int, seed: int) -> None:
    """BoTorch's default, whose priors scale with the dimension."""
    botorch(f, space, direction, budget, seed, options=_RAASP)


def msr(f: Objective, space: Space, direction: Direction, budget: int, seed: int) -> None:
    """MSR of Papenmeier, Poloczek and Nardi (2025): lengthscales without a prior, which begin at sqrt(D) / 10."""
    botorch(f, space, direction, budget, seed, model=_msr_model, options=_RAASP)


def spherical_linear(f: Objective, space: Space, direction: Direction, budget: int, seed: int) -> None:
    """A linear kernel on the sphere, by Doumont and others (2025)."""
    botorch(f, space, direction, budget, seed, model=_spherical_model, options=_RAASP)


def orthogonal_additive(f: Objective, space: Space, direction: Direction, budget: int, seed: int) -> None:
    """BoTorch's OrthogonalAdditiveGP, with terms of two parameters."""
    botorch(f, space, direction, budget, seed, model=_additive_model, options=_RAASP)


def saasbo(f: Objective, space: Space, direction: Direction, budget: int, seed: int) -> None:
    """SAASBO: sparse axis-aligned subspaces, averaged over samples of the posterior of their lengthscales."""
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")  # read by the first computation
    botorch(f, space, direction, budget, seed, model=partial(_saas_model, seed), options=_RAASP)


def _msr_model(X: Any, Y: Any) -> Any:
    from botorch.models import SingleTaskGP
    from gpytorch.kernels import MaternKernel, ScaleKernel

    kernel = ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=X.shape[1]))
    kernel.base_kernel.lengthscale = math.sqrt(X.shape[1]) / 10.0
    return fitted(SingleTaskGP, X, Y, _STEPS, covar_module=kernel)


def _additive_model(X: Any, Y: Any) -> Any:
    from botorch.models.additive_gp import OrthogonalAdditiveGP

    return fitted(OrthogonalAdditiveGP, X, Y, _STEPS, second_order=True)


def _saas_model(seed: int, X: Any, Y: Any) -> Any:
    from botorch.fit import fit_fully_bayesian_model_nuts
    from botorch.models.fully_bayesian import SaasFullyBayesianSingleTaskGP
    from botorch.models.transforms import Standardize

    gp = SaasFullyBayesianSingleTaskGP(X, Y, outcome_transform=Standardize(1))
    fit_fully_bayesian_model_nuts(gp, 6, _WARM_UP, _SAMPLES, _THINNING, disable_progbar=True, seed=seed)
    return gp


def _spherical_model(X: Any, Y: Any) -> Any:
    """k(x, x') = b0 + b1 <P(z), P(z')>, b0 + b1 = 1: the linear kernel of points on a sphere.

    z = (x - 1/2) / (a l) with lengthscales l, P(z) = (2 z, |z|^2 - 1) / (|z|^2 + 1) is the inverse stereographic
    projection, and a^2 is a learned share of the largest |(x - 1/2) / l|^2 in the cube. That share and the prior are
    as in public implementations of the paper.
    """
    import torch
    from botorch.models import SingleTaskGP
    from gpytorch.constraints import GreaterThan
    from gpytorch.kernels import Kernel
    from gpytorch.priors import LogNormalPrior

    class SphericalLinear(Kernel):
        has_lengthscale = True

        def __init__(self, dim: int) -> None:
            # The prior is that of BoTorch without its scaling by the dimension, which a takes care of.
            prior = LogNormalPrior(math.sqrt(2.0), math.sqrt(3.0))
            low = GreaterThan(0.025, transform=None, initial_value=prior.mode)
            super().__init__(ard_num_dims=dim, lengthscale_prior=prior, lengthscale_constraint=low)
            self.register_parameter("raw_share", torch.nn.Parameter(torch.zeros(1)))
            self.register_parameter("raw_weight", torch.nn.Parameter(torch.zeros(1)))

        def forward(self, x1: Any, x2: Any, diag: bool = False, **_: Any) -> Any:
            weight = torch.sigmoid(self.raw_weight)
            p1, p2 = self._projected(x1), self._projected(x2)
            inner = (p1 * p2).sum(-1) if diag else p1 @ p2.transpose(-1, -2)
            return 1.0 - weight + weight * inner

        def _projected(self, x: Any) -> Any:
            farthest = (0.5 / self.lengthscale).square().sum(-1, keepdim=True)
            z = (x - 0.5) / self.lengthscale / (torch.sigmoid(self.raw_share) * farthest).sqrt()
            squared = z.square().sum(-1, keepdim=True)
            return torch.cat([2.0 * z, squared - 1.0], dim=-1) / (squared + 1.0)

    return fitted(SingleTaskGP, X, Y, _STEPS, covar_module=SphericalLinear(X.shape[1]))
