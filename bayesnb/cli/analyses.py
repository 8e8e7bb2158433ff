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
from bayesnb.cli.document import explain
from bayesnb.cli.fitting import Fold
from bayesnb.cli.formatting import (
    Columns,
    amount,
    format_columns,
    format_differences,
    format_parameters,
    format_scores,
    number,
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
_OF_PREDICTIONS = ("sensitivity", "rows")
_ROWS_SHOWN = 12
_ROWS_DRAWN = 300
_MANY_PAIRS = 2000
_PAIRS_LISTED = 200  # if there are more than _MANY_PAIRS
_MOST_PAIRS = 2_000_000  # More pairs take minutes.
_REPLICATES = 200  # behind a p-value
_STRENGTHS = (0.1, 10)
_SURE, _NEARLY_ALL = 1e-9, 0.9


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
    text = explain("comparison", cross_validated=len(outcome.fits.folds) > 2, n_rows=outcome.data.n_rows)
    return Analysis(text, "comparison", outcome.comparison.reset_index(), shown)


def _reliability(outcome: Outcome) -> Analysis:
    bins = {"predictive": _bins(outcome.fits.folds)}
    if outcome.weighted is not None:
        bins["weighted"] = _bins(outcome.weighted.folds)
    averages = {
        name: [np.average(table[column], weights=table["count"]) for column in ("confidence", "accuracy")]
        for name, table in bins.items()
    }
    text = explain("reliability", plain=averages["predictive"], weighted=averages.get("weighted"))
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
    terms = [f"{weight:.3g} ({term})" for term, weight in weight_table(nb).to_numpy()]
    return explain(
        "weights_summary",
        temperature=fitted.temperature,
        individual=bool(fitted.shrinkage),
        largest=terms[0],
        smallest=terms[-1],
        exponent=fitted.exponent,
        typical_count=np.exp(fitted.log_length),
        plain_loss=fitted.plain_log_loss,
        loss=fitted.log_loss,
        n_rows=fitted.n_rows,
    )


def _weights(nb: Weighed) -> Analysis:
    table = weight_table(nb)
    at, half = np.arange(len(table)), _ROWS_SHOWN // 2
    ends = table[(at < _ROWS_SHOWN - half) | (at >= len(table) - half)]
    differ = table["weight"].nunique() > 1
    text = explain(
        "weights",
        summary=summarize_weights(nb),
        n_terms=len(table),
        n_shown=len(ends),
        differ=differ,
        biased=nb.weights_.biased,
    )
    return Analysis(text, "weights", table, format_columns(ends, _WEIGHTS)) if differ else Analysis(text, "weights")


def _prior(outcome: Outcome) -> Analysis:
    values = prior_predictive(outcome.fits.nb)
    sure = float(np.mean(values > 1 - _SURE))
    kinds = set(outcome.data.kinds.values())
    text = explain(
        "prior",
        sure=sure,
        n_draws=len(values),
        one_bar=sure > _NEARLY_ALL,
        mean=probability(values.mean()),
        numbers=bool(NUMBERS.keys() & kinds),
        gaussian="gaussian" in kinds,
    )
    figure = None if sure > _NEARLY_ALL else plots.detach(plots.prior_predictive(values))
    return Analysis(text, "prior", figure=figure)


def _parameters(outcome: Outcome, prob: float) -> Analysis:
    table, kinds = outcome.parameters, outcome.data.kinds
    if table is None:
        return Analysis("Not here: there is no parameter table, for the reason given above.")
    binned = "binned" in kinds.values()
    ranked = table[[kinds.get(feature, "binned") != "binned" for feature in table["feature"]]]
    moved = ((ranked["mean"] - ranked["mle"]) / ranked["sd"]).replace([np.inf, -np.inf], np.nan).dropna()
    if moved.empty:
        return Analysis(explain("no_parameters", binned=binned), "parameters", table)
    moved = moved.reindex(moved.abs().sort_values(ascending=False, kind="stable").index)
    kind = table.loc[moved.index].apply(partial(_plotted_parameter, kinds), axis=1)
    first = kind.iloc[0]
    alike, others = moved[kind == first], moved[kind != first].abs()
    top = alike[:_ROWS_SHOWN]
    text = explain(
        "parameters",
        kind=first,
        n_moved=len(alike),
        n_shown=len(top),
        largest_other=others.max() if len(others) else None,
        binned=binned,
    )
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
    text = explain(
        "sensitivity",
        low=_STRENGTHS[0],
        high=_STRENGTHS[1],
        changes=table["label_changes"].sum(),
        n_rows=len(table),
        concentrations=bool(kinds - NUMBERS.keys()),
        numbers=bool(kinds & NUMBERS.keys()),
    )
    return Analysis(text, "sensitivity", table, format_columns(shown, _SENSITIVITY))


def _rows(folds: list[Fold], prob: float) -> Analysis:
    table = _describe_held_out(folds, partial(_describe_uncertainty, prob))
    table = table.sort_values("epistemic", ascending=False, kind="stable")
    shown = table[:_ROWS_SHOWN]
    first, classes = folds[0], folds[0].nb.classes_
    drawn = slice(None, None, -(-len(first.y) // _ROWS_DRAWN))
    figure = plots.prediction_intervals(first.nb, first.X[drawn], first.y[drawn], prob=prob)
    text = explain(
        "rows",
        label=classes[1] if len(classes) == 2 else None,
        n_drawn=len(first.y[drawn]),
        n_rows=len(table),
        n_fits=len(folds),
        n_shown=len(shown),
    )
    return Analysis(text, "rows", table, format_columns(shown, _ROWS), plots.detach(figure))


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
    text = explain(
        "pairs",
        n_sampled=len(fits.y) if len(fits.y) < outcome.data.n_rows else None,
        threshold=STRONG,
        strong=int((table["log_bayes_factor"] > STRONG).sum()),
        n_pairs=n_pairs,
        n_listed=len(table),
        replicates=_REPLICATES,
    )
    shown = format_columns(table[:_ROWS_SHOWN], _DEPENDENCE)
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


_PREDICTION: Columns = {
    "row": ("row (from 0)", str),
    "truth": ("true class", str),
    "prediction": ("prediction", str),
    "probability": ("P(prediction)", probability),
}
_SENSITIVITY: Columns = {
    **_PREDICTION,
    "lower": ("least", probability),
    "upper": ("greatest", probability),
    "label_changes": ("label changes", lambda changes: "yes" if changes else "no"),
}
_ROWS: Columns = {
    **_PREDICTION,
    "lower": ("lower", probability),
    "upper": ("upper", probability),
    "total": ("entropy", amount),
    "aleatoric": ("aleatoric", amount),
    "epistemic": ("epistemic", amount),
    "p_top": ("p_top", probability),
}
_WEIGHTS: Columns = {"term": ("feature", str), "weight": ("weight", number("{:.3f}"))}
_DEPENDENCE: Columns = {
    "feature_1": ("feature", str),
    "feature_2": ("and feature", str),
    "rows": ("rows", number("{:,d}")),
    "log_bayes_factor": ("log Bayes factor", number("{:,.1f}")),
    "mutual_information": ("mutual information", number("{:.3f}")),
    "p_value": ("p", p_value(1 / (_REPLICATES + 1))),
}
