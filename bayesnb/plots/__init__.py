"""Figures of posteriors, of predictions, of scores and of structures.

Only this package knows matplotlib, and imports it when a figure is drawn. Each function takes the `Axes` to draw into
and returns them. Without `ax=` the function makes a figure with `matplotlib.pyplot` and lays it out so that nothing is
cut off; save the figure with `ax.figure.savefig` and close it with `pyplot.close(ax.figure)`. Make a figure for axes of
your own with `layout="constrained"`: captions and legends stand above the axes, and the upper and the right line of
the frame are removed.

A class has the same colour and mark in every figure. The colours are those of Okabe & Ito, *Color Universal Design*
(2008), which colour-blind readers can tell apart. Names that are too long are shortened in the middle. Where the
user's font lacks characters, an installed font that has them is added. Characters that no installed font has are drawn
as boxes, with a warning, and different names never become the same label.
"""

from bayesnb.plots.class_densities import density
from bayesnb.plots.class_probabilities import prediction_intervals, prior_predictive
from bayesnb.plots.feature_dependence import independence, structure
from bayesnb.plots.latent_profiles import latent_profiles
from bayesnb.plots.marginal_densities import estimates, prior_posterior
from bayesnb.plots.parameter_intervals import forest, shrinkage
from bayesnb.plots.predictive_check import predictive_check
from bayesnb.plots.reliability_diagram import reliability
from bayesnb.plots.style import detach
from bayesnb.plots.waterfall import explain
from bayesnb.plots.weight_intervals import weights

__all__ = [
    "density",
    "detach",
    "estimates",
    "explain",
    "forest",
    "independence",
    "latent_profiles",
    "prediction_intervals",
    "predictive_check",
    "prior_posterior",
    "prior_predictive",
    "reliability",
    "shrinkage",
    "structure",
    "weights",
]
