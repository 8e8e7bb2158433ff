"""Uncertainty of the parameters, and of the class probabilities of a row."""

from bayesnb.uncertainty.class_probabilities import decompose_uncertainty, log_odds_moments, predict_interval
from bayesnb.uncertainty.contrasts import contrast
from bayesnb.uncertainty.dependence_ratio import dependence_ratio
from bayesnb.uncertainty.draws import (
    CLASS,
    ImproperPosteriorError,
    draw_parameters,
    posterior_draws,
    require_proper,
    site_names,
)
from bayesnb.uncertainty.tables import context_table, cut_table, density_table, parameter_table

__all__ = [
    "CLASS",
    "ImproperPosteriorError",
    "context_table",
    "contrast",
    "cut_table",
    "decompose_uncertainty",
    "density_table",
    "dependence_ratio",
    "draw_parameters",
    "log_odds_moments",
    "parameter_table",
    "posterior_draws",
    "predict_interval",
    "require_proper",
    "site_names",
]
