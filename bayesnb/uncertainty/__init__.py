"""How sure: of the parameters, and of the class probabilities of a row."""

from bayesnb.uncertainty.draws import draw_parameters, posterior_draws, site_names
from bayesnb.uncertainty.parameters import parameter_table
from bayesnb.uncertainty.proper import CLASS, ImproperPosteriorError, require_proper

__all__ = [
    "CLASS",
    "ImproperPosteriorError",
    "draw_parameters",
    "parameter_table",
    "posterior_draws",
    "require_proper",
    "site_names",
]
