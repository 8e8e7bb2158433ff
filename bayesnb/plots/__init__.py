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

from typing import NoReturn

from bayesnb.plots.binned_density import density
from bayesnb.plots.class_probabilities import prediction_intervals, prior_predictive
from bayesnb.plots.feature_dependence import independence, structure
from bayesnb.plots.parameter_intervals import forest, shrinkage
from bayesnb.plots.reliability_diagram import reliability
from bayesnb.plots.style import detach
from bayesnb.plots.waterfall import explain
from bayesnb.plots.weight_intervals import weights

_REPLACEMENTS = {
    "alpha_path": 'tuned.path.sort_values("alpha").plot(x="alpha", y="objective", logx=True)',
    "arcs": "pyplot.pcolormesh(arcs.columns, arcs.index, arcs)",
    "contexts": 'table.eval("n = rows * last").pivot_table("n", "feature", "parents", "sum").plot.barh(stacked=True)',
    "inclusion": "pd.Series(nb.inclusion_probability_, nb.feature_names_in_).sort_values().plot.barh()",
    "learning_curve": 'curve.pivot(index="size", columns="estimate", values="brier").plot(logx=True)',
    "pointwise_loo": "pd.Series(first.pointwise - second.pointwise).sort_values(ignore_index=True).plot()",
    "prequential": "pd.Series(first.log_evidence - second.log_evidence, first.sizes).plot()",
    "prevalence": "pd.DataFrame(result.draws, columns=result.classes).plot.box()",
    "set_sizes": "pd.Series(sets.size).value_counts(normalize=True).sort_index().plot.bar()",
    "uncertainty_map": "DecisionBoundaryDisplay.from_estimator(nb, X)",
}
"""Lines of pandas, matplotlib and scikit-learn that draw the figures of earlier versions."""


def __getattr__(name: str) -> NoReturn:
    """Raise AttributeError, which says what to use instead of a figure of an earlier version."""
    instead = f"; use {_REPLACEMENTS[name]}" if name in _REPLACEMENTS else ""
    raise AttributeError(f"module 'bayesnb.plots' has no attribute {name!r}{instead}")


__all__ = [
    "density",
    "detach",
    "explain",
    "forest",
    "independence",
    "prediction_intervals",
    "prior_predictive",
    "reliability",
    "shrinkage",
    "structure",
    "weights",
]
