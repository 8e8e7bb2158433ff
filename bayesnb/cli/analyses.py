"""Analyses of a fitted data set for the report: explanation, table and figure of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd

from bayesnb import plots
from bayesnb.analysis.dependence import check_independence
from bayesnb.analysis.predictive import prior_predictive, prior_sensitivity
from bayesnb.cli import formatting
from bayesnb.cli.comparison import Outcome, describe_held_out
from bayesnb.cli.conclusion import STRONG
from bayesnb.cli.document import fill_template
from bayesnb.cli.fitting import Fits
from bayesnb.cli.labelled_data import NUMBERS
from bayesnb.evaluation import reliability
from bayesnb.weights.terms import Weighed, weight_table

DPI = 150
_PREDICTION = ("row", "truth", "prediction", "probability", "lower", "upper")
_ROWS_SHOWN = 12
_ROWS_DRAWN = 300
_MANY_PAIRS = 2000
_PAIRS_LISTED = 200  # if there are more than _MANY_PAIRS
_MOST_PAIRS = 2_000_000  # More pairs take minutes.
_REPLICATES = 200  # behind a p-value
_STRENGTHS = (0.1, 10)
_SMALLEST = 0.001  # as probabilities are shown with three decimals
_explain = partial(fill_template, "explanations.txt")


@dataclass(frozen=True, eq=False)
class Analysis:
    """Result of one analysis.

    Parameters
    ----------
    explanation : str
        What the numbers mean, or why there are none.
    name : str
        Stem of the files.
    table : DataFrame or None
        Numbers as they are written to a file.
    shown : DataFrame or None
        Strings that the report shows of `table`.
    figure : matplotlib Figure or None
    """

    explanation: str
    name: str = ""
    table: pd.DataFrame | None = None
    shown: pd.DataFrame | None = None
    figure: Any = None

    @cached_property
    def png(self) -> bytes:
        """Figure as the bytes of a PNG image, drawn at the first use."""
        buffer = BytesIO()
        self.figure.savefig(buffer, format="png", dpi=DPI, bbox_inches="tight", facecolor="white")
        return buffer.getvalue()


def analyse(outcome: Outcome) -> dict[str, Analysis]:
    """Return the analyses of the report by title; one that the library refuses has the reason as its explanation."""
    intervals = f"{100 * outcome.settings.prob:g}% intervals"
    makers = {
        f"Scores ({outcome.fits.description})": _comparison,
        "Stated confidence and observed accuracy": _reliability,
        "Weights of the features": _weights,
        "Class probabilities before any data": _prior,
        f"Parameters that depend most on the prior, {intervals}": _parameters,
        "Sensitivity to the strength of the prior": _sensitivity,
        f"Most uncertain rows, {intervals}": _rows,
        "Dependence of features given the class": _pairs,
    }
    analyses = {}
    for title, make in makers.items():
        if make is not _weights or outcome.weighted is not None:
            # An analysis that the library refuses, as of an improper posterior, must not cost the other ones.
            try:
                analyses[title] = make(outcome)
            except (ValueError, NotImplementedError) as error:
                analyses[title] = Analysis(f"Not available. {error}")
    return analyses


def _comparison(outcome: Outcome) -> Analysis:
    """Return the table of held-out scores of each estimate, with differences from maximum likelihood."""
    scores = outcome.findings.comparison
    shown = formatting.format_scores(scores).join(formatting.format_differences(scores))
    return Analysis(_explain("comparison", outcome=outcome), "comparison", scores.reset_index(), shown)


def _reliability(outcome: Outcome) -> Analysis:
    """Return the reliability diagram of held-out rows, for the predictive estimate and for weights if there are any."""
    bins = _reliability_bins(outcome.fits)
    weighted = outcome.weighted and {"predictive": bins, "weighted": _reliability_bins(outcome.weighted)}
    figure = plots.reliability(weighted or bins)
    return Analysis(_explain("reliability", outcome=outcome), "reliability", figure=plots.detach(figure))


def _reliability_bins(fits: Fits) -> pd.DataFrame:
    """Tabulate stated confidence and observed accuracy of the held-out rows of all folds, bin by bin."""
    parts = [(fold.nb.predict_log_proba(fold.X), fold.y, fold.nb.predict(fold.X)) for fold in fits.folds]
    log_proba, truth, predicted = map(np.concatenate, zip(*parts, strict=True))
    return reliability(log_proba, truth, fits.nb.classes_, predicted=predicted)


def summarize_weights(nb: Weighed) -> str:
    """Write sentences on the fitted weights, and on the log loss to expect with and without them."""
    table, typical_count = weight_table(nb).sort_values("weight", kind="stable"), np.exp(nb.weights_.log_length)
    return _explain("weights_summary", fitted=nb.weights_, table=table, typical_count=typical_count)


def _weights(outcome: Outcome) -> Analysis:
    """Return the table and the figure of the weights of terms; a single temperature has an explanation only."""
    assert outcome.weighted is not None
    nb, half = outcome.weighted.nb, _ROWS_SHOWN // 2
    table = weight_table(nb, outcome.settings.prob)
    table = table.sort_values("weight", ascending=False, kind="stable", ignore_index=True)
    text = _explain("weights", nb=nb, summary=summarize_weights(nb), table=table, most=_ROWS_SHOWN)
    if len(table) == 1:  # the temperature
        return Analysis(text, "weights")
    ends = table.drop(index=table.index[half:-half]) if len(table) > _ROWS_SHOWN else table
    shown = formatting.format_columns(ends, ["term", "weight"])
    return Analysis(text, "weights", table, shown, plots.detach(plots.weights(table)))


def _prior(outcome: Outcome) -> Analysis:
    """Return the figure of class probabilities that are drawn from the prior alone."""
    values, kinds = prior_predictive(outcome.fits.nb), set(outcome.data.kinds.values())
    facts = {"mean": formatting.probability(values.mean()), "kinds": kinds, "numbers": NUMBERS.keys() & kinds}
    figure = plots.detach(plots.prior_predictive(values))
    return Analysis(_explain("prior", values=values, **facts), "prior", figure=figure)


def _parameters(outcome: Outcome) -> Analysis:
    """Return the table of parameters, and the 12 with the largest |mean - MLE|/sd of at least 1 to show, with a figure.

    Class probabilities and bins are not ranked. There is no figure if no parameter can be ranked.
    """
    table, kinds, prob = outcome.parameters, outcome.data.kinds, outcome.settings.prob
    if table is None:
        return Analysis("Not available: there is no parameter table, for the reason given above.")
    # Neither class probabilities nor bins are ranked: densities of bins are averages, and those smooth.
    ranked = table[[kinds.get(feature, "binned") != "binned" for feature in table["feature"]]]
    moved = ((ranked["mean"] - ranked["mle"]) / ranked["sd"]).replace([np.inf, -np.inf], np.nan).dropna()
    large = moved[moved.abs() >= 1].sort_values(key=lambda sd: -sd.abs(), kind="stable")
    top = large[:_ROWS_SHOWN]
    text = _explain("parameters", outcome=outcome, n_ranked=len(moved), n_moved=len(large), n_shown=len(top))
    if moved.empty:
        return Analysis(text, "parameters", table)
    shown = formatting.format_parameters(table.loc[top.index], kinds, prob)
    shown["moved (sd)"] = [f"{sd:+.2f}" for sd in top]
    figure = plots.detach(plots.shrinkage(outcome.fits.nb, prob=prob))
    return Analysis(text, "parameters", table, None if shown.empty else shown, figure)


def _sensitivity(outcome: Outcome) -> Analysis:
    """Return the table of held-out rows under 0.1 to 10 times the prior's strength, widest ranges of P first.

    Rows to show are those whose label changes, or whose range of P is wider than 0.001 and than its posterior interval.
    """
    table = describe_held_out(outcome.fits, lambda fold: prior_sensitivity(fold.nb, fold.X, _STRENGTHS))
    width, interval = (t["upper"] - t["lower"] for t in (table, outcome.predictions))
    order = (-width).sort_values(kind="stable").index
    moved = (table["label_changes"] | (width > interval.clip(_SMALLEST))).loc[order]
    table = table.loc[order]
    large = table[moved].sort_values("label_changes", ascending=False, kind="stable")
    top, kinds = large[:_ROWS_SHOWN], set(outcome.data.kinds.values())
    facts = {"n_moved": len(large), "n_shown": len(top), "prob": f"{100 * outcome.settings.prob:g}%"}
    facts |= {"concentrations": kinds - NUMBERS.keys(), "numbers": kinds & NUMBERS.keys(), "strengths": _STRENGTHS}
    shown = None if top.empty else formatting.format_columns(top, [*_PREDICTION, "label_changes"])
    return Analysis(_explain("sensitivity", outcome=outcome, table=table, **facts), "sensitivity", table, shown)


def _rows(outcome: Outcome) -> Analysis:
    """Return the table of held-out predictions with intervals and entropies, the most uncertain rows first."""
    table, first = outcome.predictions.sort_values("epistemic", ascending=False, kind="stable"), outcome.fits.folds[0]
    drawn = slice(None, None, -(-len(first.y) // _ROWS_DRAWN))
    figure = plots.prediction_intervals(first.nb, first.X[drawn], first.y[drawn], prob=outcome.settings.prob)
    shown = formatting.format_columns(table[:_ROWS_SHOWN], [*_PREDICTION, "total", "aleatoric", "epistemic", "p_top"])
    text = _explain("rows", outcome=outcome, table=table, shown=shown, n_drawn=len(first.y[drawn]))
    return Analysis(text, "rows", table, shown, plots.detach(figure))


def _pairs(outcome: Outcome) -> Analysis:
    """Return the table of pairs of features with log Bayes factors of dependence given the class, and a figure.

    Of more than 2,000 pairs the table has the 200 with the largest factors. Raises ValueError for more than 2 million.
    """
    fits, n = outcome.fits, len(outcome.data.kinds)
    n_pairs = n * (n - 1) // 2
    if n_pairs > _MOST_PAIRS:
        some = "bayesnb.check_independence(nb, X, y, features=[...]) compares some of them"
        raise ValueError(f"{n:,} features make {n_pairs:,} pairs, which would take too long. In Python, {some}.")
    top = _PAIRS_LISTED if n_pairs > _MANY_PAIRS else None
    table = check_independence(fits.nb, fits.X, fits.y, top=top, draws=_REPLICATES)
    text = _explain("pairs", outcome=outcome, table=table, n_pairs=n_pairs, threshold=STRONG, replicates=_REPLICATES)
    names = ["feature_1", "feature_2", "rows", "log_bayes_factor", "mutual_information"]
    shown = formatting.format_columns(table[:_ROWS_SHOWN], names)
    shown["p"] = table["p_value"][:_ROWS_SHOWN].map(formatting.p_value(1 / (_REPLICATES + 1)))
    return Analysis(text, "pairs", table, shown, plots.detach(plots.independence(table)))
