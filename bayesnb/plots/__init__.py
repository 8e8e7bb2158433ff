"""Figures of a posterior, of predictions, of scores and of choices between models.

The only package here that knows matplotlib, which it imports when a figure is drawn. Each function takes the
`Axes` to draw into and returns it; without one it makes a figure with `matplotlib.pyplot`, laid out so that nothing
is cut off (save it with `ax.figure.savefig`, and close it with `pyplot.close(ax.figure)`). Axes of your own want a
figure made with `layout="constrained"`: captions and legends stand above the axes, which lose the lines of their
frame above and on the right.

Classes have the same colour and mark in every figure: the palette of Okabe & Ito, *Color Universal Design* (2008),
safe for colour-blind readers. Names that are too long are shortened in the middle. Where the font lacks
characters, another that is installed is added; what none has is drawn as boxes, with a warning, and different names
never become the same label.
"""

from bayesnb.plots.alpha import alpha_path
from bayesnb.plots.contexts import contexts
from bayesnb.plots.densities import density
from bayesnb.plots.pairs import arcs, independence
from bayesnb.plots.parameters import forest, shrinkage
from bayesnb.plots.plane import uncertainty_map
from bayesnb.plots.predictions import prediction_intervals, prior_predictive
from bayesnb.plots.reasons import explain
from bayesnb.plots.scores import learning_curve, reliability
from bayesnb.plots.selection import inclusion, pointwise_loo, prequential
from bayesnb.plots.sets import set_sizes
from bayesnb.plots.shares import prevalence
from bayesnb.plots.structure import structure
from bayesnb.plots.style import detach
from bayesnb.plots.weights import weights

__all__ = [
    "alpha_path",
    "arcs",
    "contexts",
    "density",
    "detach",
    "explain",
    "forest",
    "inclusion",
    "independence",
    "learning_curve",
    "pointwise_loo",
    "prediction_intervals",
    "prequential",
    "prevalence",
    "prior_predictive",
    "reliability",
    "set_sizes",
    "shrinkage",
    "structure",
    "uncertainty_map",
    "weights",
]
