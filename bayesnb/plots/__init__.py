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

from bayesnb.plots.features import density, independence, predictive_check, structure
from bayesnb.plots.parameters import estimates, forest, latent_profiles, prior_posterior, shrinkage
from bayesnb.plots.predictions import explain, prediction_intervals, prior_predictive, reliability, weights
from bayesnb.plots.style import detach

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
