"""Analyses of a fitted data set for the report: explanation, table and figure of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb import plots
from bayesnb.checking import check_independence, prior_predictive, prior_sensitivity
from bayesnb.cli.comparison import Outcome
from bayesnb.cli.conclusion import STRONG
from bayesnb.cli.document import fill_template
from bayesnb.cli.fitting import Fold
from bayesnb.cli.formatting import (
    format_columns,
    format_differences,
    format_parameters,
    format_scores,
    p_value,
    probability,
)
from bayesnb.cli.labelled_data import NUMBERS
from bayesnb.evaluation import reliability
from bayesnb.uncertainty import decompose_uncertainty, predict_interval

if TYPE_CHECKING:
    import pandas as pd

    from bayesnb.prediction.weights import Weighed

NAMES = ("comparison", "reliability", "weights", "prior", "parameters", "sensitivity", "rows", "pairs")
"""Analyses that may have files: a table, a figure, or both."""
DPI = 150
_PREDICTION = ("row", "truth", "prediction", "probability", "lower", "upper")
_OF_PREDICTIONS = ("sensitivity", "rows")
_ROWS_SHOWN = 12
_ROWS_DRAWN = 300
_MANY_PAIRS = 2000
_PAIRS_LISTED = 200  # if there are more than _MANY_PAIRS
_MOST_PAIRS = 2_000_000  # More pairs take minutes.
_REPLICATES = 200  # behind a p-value
_STRENGTHS = (0.1, 10)
_SURE, _NEARLY_ALL = 1e-9, 0.9
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
        """The figure as an image."""
        buffer = BytesIO()
        self.figure.savefig(buffer, format="png", dpi=DPI, bbox_inches="tight", facecolor="white")
        return buffer.getvalue()


def analyse(outcome: Outcome, prob: float) -> dict[str, Analysis]:
    """Analyses by title, in the order of the report; one that cannot be made says why."""
    folds, percent = outcome.fits.folds, f"{100 * prob:g}%"
    makers: dict[str, Callable[[], Analysis]] = {
        f"Scores ({outcome.fits.description})": partial(_comparison, outcome),
        "Stated confidence and observed accuracy": partial(_reliability, outcome),
    }
    if outcome.weighted is not None:
        makers["How much the evidence of each feature counts"] = partial(_weights, outcome.weighted.nb)
    makers |= {
        "What the prior says before any data": partial(_prior, outcome),
        f"Parameters that the prior moved most, {percent} intervals": partial(_parameters, outcome, prob),
        "Does the strength of the prior decide?": partial(_sensitivity, outcome),
        f"The rows that are most uncertain, {percent} intervals": partial(_rows, folds, prob),
        "Do features depend on each other, given the class?": partial(_pairs, outcome),
    }
    analyses = {title: _or_reason(make) for title, make in makers.items()}
    if outcome.weighted is None:
        return analyses
    plain = " This is of naive Bayes without weights."
    return {
        title: replace(part, explanation=part.explanation + plain) if part.name in _OF_PREDICTIONS else part
        for title, part in analyses.items()
    }


def _or_reason(make: Callable[[], Analysis]) -> Analysis:
    # An analysis that the library refuses, as of an improper posterior, must not cost the other ones.
    try:
        return make()
    except (ValueError, NotImplementedError) as error:
        return Analysis(f"Not here. {error}")


def _comparison(outcome: Outcome) -> Analysis:
    shown = format_scores(outcome.comparison).join(format_differences(outcome.comparison))
    text = _explain("comparison", outcome=outcome)
    return Analysis(text, "comparison", outcome.comparison.reset_index(), shown)


def _reliability(outcome: Outcome) -> Analysis:
    bins = {"predictive": _bins(outcome.fits.folds)}
    if outcome.weighted is not None:
        bins["weighted"] = _bins(outcome.weighted.folds)
    averages = {
        name: [np.average(table[column], weights=table["count"]) for column in ("confidence", "accuracy")]
        for name, table in bins.items()
    }
    text = _explain("reliability", plain=averages["predictive"], weighted=averages.get("weighted"))
    figure = plots.reliability(bins if len(bins) > 1 else bins["predictive"])
    return Analysis(text, "reliability", figure=plots.detach(figure))


def _bins(folds: list[Fold]) -> pd.DataFrame:
    parts = [(fold.nb.predict_log_proba(fold.X), fold.y, fold.nb.predict(fold.X)) for fold in folds]
    log_proba, truth, predicted = map(np.concatenate, zip(*parts, strict=True))
    return reliability(log_proba, truth, folds[0].nb.classes_, predicted=predicted)


def weight_table(nb: Weighed) -> pd.DataFrame:
    """Terms and weights, the largest weight first; a weight that falls with the length of a row is of a typical row."""
    import pandas as pd

    frame = pd.DataFrame({"term": nb.term_names_, "weight": nb.weight_ * nb.weights_.typical})
    return frame.sort_values("weight", ascending=False, kind="stable", ignore_index=True)


def summarize_weights(nb: Weighed) -> str:
    """Sentences on the fitted weights and on the log loss to expect with and without them."""
    fitted = nb.weights_
    typical_count = np.exp(fitted.log_length)
    return _explain("weights_summary", fitted=fitted, table=weight_table(nb), typical_count=typical_count)


def _weights(nb: Weighed) -> Analysis:
    table = weight_table(nb)
    at, half = np.arange(len(table)), _ROWS_SHOWN // 2
    ends = table[(at < _ROWS_SHOWN - half) | (at >= len(table) - half)]
    differ = table["weight"].nunique() > 1
    text = _explain("weights", nb=nb, summary=summarize_weights(nb), table=table, shown=ends, differ=differ)
    return (
        Analysis(text, "weights", table, format_columns(ends, ["term", "weight"]))
        if differ
        else Analysis(text, "weights")
    )


def _prior(outcome: Outcome) -> Analysis:
    values = prior_predictive(outcome.fits.nb)
    sure = np.mean(values > 1 - _SURE)
    one_bar, mean = sure > _NEARLY_ALL, probability(values.mean())
    kinds = set(outcome.data.kinds.values())
    numbers, gaussian = bool(NUMBERS.keys() & kinds), "gaussian" in kinds
    text = _explain("prior", values=values, sure=sure, one_bar=one_bar, mean=mean, numbers=numbers, gaussian=gaussian)
    figure = None if one_bar else plots.detach(plots.prior_predictive(values))
    return Analysis(text, "prior", figure=figure)


def _parameters(outcome: Outcome, prob: float) -> Analysis:
    table, kinds = outcome.parameters, outcome.data.kinds
    if table is None:
        return Analysis("Not here: there is no parameter table, for the reason given above.")
    binned = "binned" in kinds.values()
    ranked = table[[kinds.get(feature, "binned") != "binned" for feature in table["feature"]]]
    moved = ((ranked["mean"] - ranked["mle"]) / ranked["sd"]).replace([np.inf, -np.inf], np.nan).dropna()
    if moved.empty:
        return Analysis(_explain("no_parameters", binned=binned), "parameters", table)
    moved = moved.reindex(moved.abs().sort_values(ascending=False, kind="stable").index)
    kind = table.loc[moved.index].apply(partial(_plotted_parameter, kinds), axis=1)
    first = kind.iloc[0]
    alike, others = moved[kind == first], moved[kind != first].abs()
    top = alike[:_ROWS_SHOWN]
    text = _explain("parameters", kind=first, alike=alike, others=others, shown=top, binned=binned)
    shown = format_parameters(table.loc[top.index], kinds, prob).assign(**{"moved (sd)": [f"{sd:+.2f}" for sd in top]})
    figure = plots.shrinkage(outcome.fits.nb, prob=prob, parameter=first)
    return Analysis(text, "parameters", table, shown, plots.detach(figure))


def _plotted_parameter(kinds: Mapping[str, str], row: pd.Series) -> str:
    """Name of a parameter in `plots.shrinkage`: probabilities of all families are "theta"."""
    family = NUMBERS.get(kinds[row["feature"]])
    return "theta" if family is None or family is NUMBERS["binned"] else str(row["level"])


def _sensitivity(outcome: Outcome) -> Analysis:
    table = _describe_held_out(outcome.fits.folds, lambda fold: prior_sensitivity(fold.nb, fold.X, _STRENGTHS))
    range_ = (table["upper"] - table["lower"]).sort_values(ascending=False, kind="stable")
    table = table.reindex(range_.index)
    shown = table.sort_values("label_changes", ascending=False, kind="stable")[:_ROWS_SHOWN]
    kinds = set(outcome.data.kinds.values())
    concentrations, numbers = kinds - NUMBERS.keys(), kinds & NUMBERS.keys()
    text = _explain("sensitivity", table=table, strengths=_STRENGTHS, concentrations=concentrations, numbers=numbers)
    return Analysis(text, "sensitivity", table, format_columns(shown, [*_PREDICTION, "label_changes"]))


def _rows(folds: list[Fold], prob: float) -> Analysis:
    table = _describe_held_out(folds, partial(_describe_uncertainty, prob))
    table = table.sort_values("epistemic", ascending=False, kind="stable")
    shown = table[:_ROWS_SHOWN]
    first = folds[0]
    drawn = slice(None, None, -(-len(first.y) // _ROWS_DRAWN))
    figure = plots.prediction_intervals(first.nb, first.X[drawn], first.y[drawn], prob=prob)
    n_drawn, classes = len(first.y[drawn]), first.nb.classes_
    text = _explain("rows", table=table, shown=shown, n_drawn=n_drawn, n_fits=len(folds), classes=classes)
    columns = [*_PREDICTION, "total", "aleatoric", "epistemic", "p_top"]
    return Analysis(text, "rows", table, format_columns(shown, columns), plots.detach(figure))


def _pairs(outcome: Outcome) -> Analysis:
    fits, n = outcome.fits, len(outcome.data.kinds)
    n_pairs = n * (n - 1) // 2
    if n_pairs > _MOST_PAIRS:
        raise ValueError(
            f"{n:,} features make {n_pairs:,} pairs, which would take long. In Python, "
            "bayesnb.check_independence(nb, X, y, features=[...]) compares some of them."
        )
    top = _PAIRS_LISTED if n_pairs > _MANY_PAIRS else None
    table = check_independence(fits.nb, fits.X, fits.y, top=top, draws=_REPLICATES)
    text = _explain("pairs", outcome=outcome, table=table, n_pairs=n_pairs, threshold=STRONG, replicates=_REPLICATES)
    names = ["feature_1", "feature_2", "rows", "log_bayes_factor", "mutual_information"]
    shown = format_columns(table[:_ROWS_SHOWN], names)
    shown["p"] = table["p_value"][:_ROWS_SHOWN].map(p_value(1 / (_REPLICATES + 1)))
    return Analysis(text, "pairs", table, shown, plots.detach(plots.independence(table)))


def _describe_held_out(folds: list[Fold], describe: Callable[[Fold], pd.DataFrame]) -> pd.DataFrame:
    """Number, label and description of each held-out row."""
    import pandas as pd

    parts = [pd.DataFrame({"row": fold.rows, "truth": fold.y}).join(describe(fold)) for fold in folds]
    return pd.concat(parts, ignore_index=True)


def _describe_uncertainty(prob: float, fold: Fold) -> pd.DataFrame:
    """Prediction, its probability and interval, and the parts of the entropy, of each row held out."""
    import pandas as pd

    proba = fold.nb.predict_proba(fold.X)
    lower, upper = predict_interval(fold.nb, fold.X, prob=prob)
    top = proba.argmax(axis=1)
    at = np.arange(len(top)), top
    frame = pd.DataFrame(
        {"prediction": fold.nb.classes_[top], "probability": proba[at], "lower": lower[at], "upper": upper[at]}
    )
    return frame.join(decompose_uncertainty(fold.nb, fold.X).reset_index(drop=True))
