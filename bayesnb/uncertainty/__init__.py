"""How sure: of the parameters, and of the class probabilities of a row."""

from bayesnb.uncertainty.class_probabilities import decompose_uncertainty, log_odds_moments, predict_interval
from bayesnb.uncertainty.contexts import context_table
from bayesnb.uncertainty.densities import cut_table, density_table
from bayesnb.uncertainty.draws import draw_parameters, posterior_draws, site_names
from bayesnb.uncertainty.parameters import parameter_table
from bayesnb.uncertainty.proper import CLASS, ImproperPosteriorError, require_proper

__all__ = [
    "CLASS",
    "ImproperPosteriorError",
    "context_table",
    "cut_table",
    "decompose_uncertainty",
    "density_table",
    "draw_parameters",
    "log_odds_moments",
    "parameter_table",
    "posterior_draws",
    "predict_interval",
    "require_proper",
    "site_names",
]
