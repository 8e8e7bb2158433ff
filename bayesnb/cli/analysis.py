"""The posterior analysis of a data set: the sections of its page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb import plots
from bayesnb.checking import check_independence, prior_predictive, prior_sensitivity
from bayesnb.cli import readable, weights
from bayesnb.cli.conclusion import STRONG
from bayesnb.cli.holdout import Fold
from bayesnb.cli.job import Outcome
from bayesnb.cli.readable import Columns, Table, amount, number, p_value, probability
from bayesnb.cli.tables import NUMBERS
from bayesnb.evaluation import reliability
from bayesnb.uncertainty import decompose_uncertainty, predict_interval

if TYPE_CHECKING:
    import pandas as pd

    from bayesnb.prediction.weights import Weighed

#: Of the sections that write files.
NAMES = ("comparison", "reliability", "weights", "prior", "parameters", "sensitivity", "rows", "pairs")
_OF_PREDICTIONS = ("sensitivity", "rows")
_SHOWN = 12
_DRAWN = 300
_PAIRS = 200  # of so many as are shown, if there are more than
_MANY_PAIRS = 2000
_MOST_PAIRS = 2_000_000  # more take minutes
_REPLICATES = 200  # behind a p-value
_STRENGTHS = (0.1, 10)
_SURE, _NEARLY_ALL = 1e-9, 0.9
_DPI = 150


@dataclass(frozen=True, eq=False)
class Section:
    """A part of the page.

    Parameters
    ----------
    title : str
    means : str
        What its numbers mean, or why there are none.
    name : str
        Of its files.
    table : DataFrame or None
        As it is written to a file.
    shown : list of rows
        What the page shows of it, the header first.
    figure : Figure or None
    """

    title: str
    means: str
    name: str = ""
    table: pd.DataFrame | None = None
    shown: Table = field(default_factory=list)
    figure: Any = None

    @cached_property
    def image(self) -> tuple[bytes, int]:
        """The figure as a PNG, and its width in pixels of a page."""
        buffer = BytesIO()
        self.figure.savefig(buffer, format="png", dpi=_DPI, bbox_inches="tight", facecolor="white")
        image = buffer.getvalue()
        return image, round(int.from_bytes(image[16:20]) * 96 / _DPI)


def analyse(outcome: Outcome, prob: float) -> list[Section]:
    """What the page shows of a data set, in order; where a section cannot be made it says why."""
    folds, percent = outcome.fits.folds, f"{100 * prob:g}%"
    parts: dict[str, Callable[[str], Section]] = {
        f"Scores ({outcome.fits.said})": partial(_comparison, outcome),
        "Stated confidence and observed accuracy": partial(_reliability, outcome),
    }
    if outcome.weighted is not None:
        parts["How much the evidence of each feature counts"] = partial(_weights, outcome.weighted.nb)
    parts |= {
        "What the prior says before any data": partial(_prior, outcome),
        f"Parameters that the prior moved most, {percent} intervals": partial(_parameters, outcome, prob),
        "Does the strength of the prior decide?": partial(_sensitivity, outcome, folds),
        f"The rows that are most uncertain, {percent} intervals": partial(_rows, folds, prob),
        "Do features depend on each other, given the class?": partial(_pairs, outcome),
    }
    made = [_or_why_not(title, part) for title, part in parts.items()]
    plain = " This is of naive Bayes without weights." * (outcome.weighted is not None)
    return [replace(own, means=own.means + plain) if own.name in _OF_PREDICTIONS else own for own in made]


def _or_why_not(title: str, part: Callable[[str], Section]) -> Section:
    # A refusal of the library, such as of an improper posterior, is not to cost the other sections.
    try:
        return part(title)
    except (ValueError, NotImplementedError) as error:
        return Section(title, f"Not here. {error}")


def _comparison(outcome: Outcome, title: str) -> Section:
    shared = ", and are too small where the fits that scored the rows share rows, as here"
    return Section(
        title,
        "Held-out rows speak about the model itself. Differences (± standard error) are from the first estimate, row "
        "by row; negative is better. Their standard errors say nothing of how another training set would have turned "
        f"out{shared * (len(outcome.fits.folds) > 2)}. The log evidence is that of all {outcome.data.n_rows:,} rows.",
        "comparison",
        outcome.comparison.reset_index(),
        readable.beside(readable.scores(outcome.comparison), readable.differences(outcome.comparison)),
    )


def _reliability(outcome: Outcome, title: str) -> Section:
    plain, mended = _bins(outcome.fits.folds), ""
    shown: pd.DataFrame | dict[str, pd.DataFrame] = plain
    said = f"the predictive estimate {_stated(plain)}"
    if outcome.weighted is not None:
        shown = {"predictive": plain, "weighted": _bins(outcome.weighted.folds)}
        said += f", the weighted one {_stated(shown['weighted'])}"
        mended = " Weights, found on the rows that were fitted, are to mend that."
    return Section(
        title,
        "Stated confidence against observed accuracy, on held-out rows: on the diagonal a model that says 80% is "
        "right 80% of the time. Naive Bayes counts dependent features twice, and so often says too "
        f"much.{mended} Here {said}.",
        "reliability",
        figure=plots.detach(plots.reliability(shown)),
    )


def _bins(folds: list[Fold]) -> pd.DataFrame:
    parts = [(fold.nb.predict_log_proba(fold.X), fold.y, fold.nb.predict(fold.X)) for fold in folds]
    log_proba, truth, predicted = map(np.concatenate, zip(*parts, strict=True))
    return reliability(log_proba, truth, folds[0].nb.classes_, predicted=predicted)


def _stated(bins: pd.DataFrame) -> str:
    said, right = (np.average(bins[name], weights=bins["count"]) for name in ("confidence", "accuracy"))
    return f"says {said:.3f} on average and is right in {right:.3f}"


def _weights(nb: Weighed, title: str) -> Section:
    table = weights.table(nb)
    shown = weights.ends(table, _SHOWN)
    ends = f" Of {len(table):,} the table shows the largest and the smallest." * (len(shown) < len(table))
    alike = table["weight"].nunique() == 1
    bias = ", and a bias of each class," * nb.weights_.biased
    company = (
        " A weight speaks of a feature in its company: of two that say the same either may have it, so that a small "
        "one does not make a feature irrelevant."
    )
    return Section(
        title,
        "Features depend on each other, and naive Bayes counts what they have in common as often as it is said. So the "
        "log probability of each given the class is multiplied by a weight: at 0 it does not count, and below 0 it "
        f"takes back what others have said too often. The weights{bias} maximize the log probability of "
        "the labels of one half of the rows by a fit to the other half, over three random splits, under a normal prior "
        "that draws them to a common value. "
        f"{weights.sentence(nb)}{(company + ends) * (not alike)}",
        "weights",
        None if alike else table,
        [] if alike else readable.columns(shown, _WEIGHTS),
    )


def _prior(outcome: Outcome, title: str) -> Section:
    values = prior_predictive(outcome.fits.nb)
    sure = float(np.mean(values > 1 - _SURE))
    one_bar = sure > _NEARLY_ALL
    kinds = set(outcome.data.kinds.values())
    seen = " Priors of numbers were set by the same rows: this is not quite before any data."
    seen *= bool(NUMBERS.keys() & kinds)
    labels = " Those of gaussian columns take their scale from the variance within classes, and so from the labels too."
    seen += labels * ("gaussian" in kinds)
    return Section(
        title,
        "Parameters are drawn from the prior, then a class and a row from these parameters, and Bayes' rule says how "
        f"probable that class is. {sure:.1%} of {len(values):,} draws lie within a billionth of 1"
        f"{', so that a figure would show a bar there and hardly anything else' * one_bar}. The average, "
        f"{probability(values.mean())}, is how sure of the true class the prior expects naive Bayes to be if it knew "
        "the parameters. Features that are independent given the class add up: where they are many, nearly all draws "
        "lie at 1 unless the prior is strong. This is what the model believes, not what was found; the scores above "
        "say how sure it may be."
        f"{seen}",
        "prior",
        figure=None if one_bar else plots.detach(plots.prior_predictive(values)),
    )


def _parameters(outcome: Outcome, prob: float, title: str) -> Section:
    if outcome.parameters is None:
        return Section(title, "Not here: there is no parameter table, for the reason given above.")
    moved = (outcome.parameters["mean"] - outcome.parameters["mle"]) / outcome.parameters["sd"]
    kinds = outcome.data.kinds
    asked = np.array([kinds.get(feature, "binned") != "binned" for feature in outcome.parameters["feature"]])
    moved = moved[np.isfinite(moved) & asked]
    if moved.empty:
        only = "" if "binned" not in kinds.values() else "; densities are averages over all binnings, and those smooth"
        why = f"Not here: no parameter has a maximum likelihood estimate to be held against{only}."
        return Section(title, why, "parameters", outcome.parameters)
    moved = moved.reindex(moved.abs().sort_values(ascending=False, kind="stable").index)
    kind = outcome.parameters.loc[moved.index, ["feature", "level"]].apply(tuple, axis=1)
    kind = kind.map(partial(_kind, kinds))
    chosen, others = kind.iloc[0], moved[kind != kind.iloc[0]].abs()
    rest = f" No parameter of another kind was moved by more than {others.max():.2g} sd." * bool(len(others))
    own, binned = moved[kind == chosen], "binned" in kinds.values()
    bins = " and the bins of binned columns" * (binned and chosen == "theta")
    unranked = f" Class probabilities{' and bins' * binned} are not ranked."
    by = [["moved (sd)"], *([f"{sd:+.2f}"] for sd in own[:_SHOWN])]
    table = outcome.parameters.loc[own.index[:_SHOWN]]
    return Section(
        title,
        "Where maximum likelihood (MLE) and the posterior mean differ most, in posterior standard deviations (sd): "
        "the prior speaks where the data say little. An interval says what the rows leave unknown about a parameter "
        f"if naive Bayes holds. The parameter that moved most is {_KINDS.get(chosen, chosen)}. The figure shows "
        f"all {len(own):,} of this kind{bins}{', each feature in its own unit' * (chosen != 'theta')}; the table"
        f"{', in the units of the data' * (chosen != 'theta')}, the {len(table)} that moved most.{rest}{unranked}",
        "parameters",
        outcome.parameters,
        readable.beside(readable.parameters(table, outcome.data.kinds, prob), by),
        plots.detach(plots.shrinkage(outcome.fits.nb, prob=prob, parameter=chosen)),
    )


def _kind(kinds: Mapping[str, str], of: tuple[str, Any]) -> str:
    """What `plots.shrinkage` calls a parameter: that of numbers by its name, all others are probabilities."""
    feature, level = of
    numbers = NUMBERS.get(kinds[feature])
    return str(level) if numbers is not None and numbers is not NUMBERS["binned"] else "theta"


def _sensitivity(outcome: Outcome, folds: list[Fold], title: str) -> Section:
    table = _held_out(folds, lambda fold: prior_sensitivity(fold.nb, fold.X, _STRENGTHS))
    width = table["upper"] - table["lower"]
    table = table.reindex(width.sort_values(ascending=False, kind="stable").index)
    shown = table.sort_values("label_changes", ascending=False, kind="stable")[:_SHOWN]
    kinds, (low, high) = set(outcome.data.kinds.values()), _STRENGTHS
    strength = ["the concentration alpha of levels and words"] * bool(kinds - NUMBERS.keys())
    strength += ["a factor on the rows that a prior of numbers counts for"] * bool(kinds & NUMBERS.keys())
    return Section(
        title,
        f"As the strength of the prior goes from {low:g} to {high:g}, {table['label_changes'].sum():,} of "
        f"{len(table):,} held-out rows get another label somewhere. Strength is {', and '.join(strength)}; the data "
        "and the prior of the classes are the same. Least and greatest are of P(prediction | row) on the way; rows "
        "whose label changes stand first, then those that move most. This says what the choice of the "
        "prior leaves open, not which strength is right.",
        "sensitivity",
        table,
        readable.columns(shown, _SENSITIVITY),
    )


def _rows(folds: list[Fold], prob: float, title: str) -> Section:
    table = _held_out(folds, partial(_uncertainty, prob))
    table = table.sort_values("epistemic", ascending=False, kind="stable")
    shown = table[:_SHOWN]
    drawn = slice(None, None, -(-len(folds[0].y) // _DRAWN))
    classes, of = folds[0].nb.classes_, "of the predicted class"
    if len(classes) == 2:
        of = f"of class “{classes[1]}”, predicted or not,"
    n = len(folds[0].y[drawn])
    parts = f"all {n:,} rows" if n == len(table) else f"{n:,} of {len(table):,} rows"
    parts += f", those held out of one of {len(folds)} fits" * (len(folds) > 1)
    figure = plots.prediction_intervals(folds[0].nb, folds[0].X[drawn], folds[0].y[drawn], prob=prob)
    return Section(
        title,
        "Held-out rows whose class probabilities depend most on parameters that the data leave unknown. The interval "
        "is of P(prediction | row) as the parameters vary over their posterior given the data and the row, if naive "
        "Bayes holds. The entropy of the class (nats) has two parts: what the row leaves open even were all parameters "
        "known (aleatoric), and what is due to parameters that are not (epistemic). p_top is the posterior "
        "probability, under the model, that this class is the most probable one. None of these is the probability that "
        f"the label is right. The figure shows the probability {of} in {parts}; the table, the {len(shown)} most "
        "uncertain of all.",
        "rows",
        table,
        readable.columns(shown, _ROWS),
        plots.detach(figure),
    )


def _pairs(outcome: Outcome, title: str) -> Section:
    fits, n = outcome.fits, len(outcome.data.kinds)
    every = n * (n - 1) // 2
    if every > _MOST_PAIRS:
        raise ValueError(
            f"{n:,} features make {every:,} pairs, which would take long. In Python, "
            "bayesnb.check_independence(nb, X, y, features=[...]) compares some of them."
        )
    table = check_independence(fits.nb, fits.X, fits.y, top=_PAIRS if every > _MANY_PAIRS else None, draws=_REPLICATES)
    strong = int((table["log_bayes_factor"] > STRONG).sum())
    sample = f"Asked of the {len(fits.y):,} held-out rows only. " if len(fits.y) < outcome.data.n_rows else ""
    few = f" The figure knows the {len(table)} strongest pairs only; all others are grey." * (len(table) < every)
    more = " or more" if strong == len(table) < every else ""
    return Section(
        title,
        f"{sample}Strong evidence of dependence (log Bayes factor above {STRONG} nats against independence) in "
        f"{strong:,}{more} of {every:,} pairs; the strongest stand first. Naive Bayes takes features for independent "
        "given the class; where they are not, it counts the same evidence twice, and its confidence is not to be "
        "trusted. p: how often independence would produce so much mutual information in a pair, in "
        f"{_REPLICATES} replicates, which tell no p below 1/{_REPLICATES + 1}: ≤ says that it is at most that. Of many "
        f"pairs some have a small p by chance.{few}",
        "pairs",
        table,
        readable.columns(table[:_SHOWN], _DEPENDENCE),
        plots.detach(plots.independence(table)),
    )


def _held_out(folds: list[Fold], describe: Callable[[Fold], pd.DataFrame]) -> pd.DataFrame:
    """One row a held-out row: its number, its label, and what is said of it."""
    import pandas as pd

    parts = [pd.DataFrame({"row": fold.rows, "truth": fold.y}).join(describe(fold)) for fold in folds]
    return pd.concat(parts, ignore_index=True)


def _uncertainty(prob: float, fold: Fold) -> pd.DataFrame:
    import pandas as pd

    proba = fold.nb.predict_proba(fold.X)
    lower, upper = predict_interval(fold.nb, fold.X, prob=prob)
    top = proba.argmax(axis=1)
    at = np.arange(len(top)), top
    frame = pd.DataFrame(
        {"prediction": fold.nb.classes_[top], "probability": proba[at], "lower": lower[at], "upper": upper[at]}
    )
    return frame.join(decompose_uncertainty(fold.nb, fold.X).reset_index(drop=True))


_KINDS = {"theta": "a probability of a level or word", "mu": "a mean", "sigma2": "a variance", "rate": "a rate"}
_PREDICTION: Columns = {
    "row": ("row (from 0)", str),
    "truth": ("true class", str),
    "prediction": ("prediction", str),
    "probability": ("P(prediction)", probability),
}
_SENSITIVITY: Columns = _PREDICTION | {
    "lower": ("least", probability),
    "upper": ("greatest", probability),
    "label_changes": ("label changes", lambda changes: "yes" if changes else "no"),
}
_ROWS: Columns = _PREDICTION | {
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
