"""The hyperparameters of the paper's experiments, which its methods share."""

from sumbo.gp.fit import FitSettings

# One bandwidth and one scale for all groups, no priors, noise held fixed.
PAPER_FIT = FitSettings(
    ard=False,
    group_scales=False,
    dimension_scaled=False,
    lengthscale_sd=None,
    scale_sd=None,
    noise=1e-4,  # 1% of the standard deviation
    noise_sd=None,
    lengthscale_bounds=(1e-5, 5.0),
    variance_bounds=(0.03**2, 30.0**2),
    thrifty_from=None,
)
