"""Comparison of estimates: fit naive Bayes, score its estimates on held-out rows, tabulate its parameters."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from bayesnb._util.kinds import KINDS
from bayesnb._util.warnings import NoWeightsWarning, internal_fits
from bayesnb.cli.column_types import Label, describe_columns
from bayesnb.cli.conclusion import LOGISTIC, Base, Findings
from bayesnb.cli.fitting import Fits, Fold, Settings, Streamed
from bayesnb.cli.held_out_rates import HeldOut
from bayesnb.cli.labelled_data import NUMBERS, UNDECIDED, Dataset, read_losses
from bayesnb.cli.terminal import InputError
from bayesnb.encoding import check_table
from bayesnb.estimators import BernoulliNB, BinnedNB, CategoricalNB, MixedNB, MultinomialNB, WeightedNB
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.estimators.plain import OF_KIND
from bayesnb.evaluation import WEIGHTED, Scored, score_fitted, standard_error
from bayesnb.families import offers
from bayesnb.fitted.state import FEWEST_EVENTS
from bayesnb.uncertainty import CLASS, decompose_uncertainty, parameter_table, predict_interval

_MANY_CLASSES = 100
_LONG = 300
_MOST_CELLS = 20_000_000
_OF_LEVELS = {"categorical": CategoricalNB, "bernoulli": BernoulliNB, "multinomial": MultinomialNB}
_OF_ONE_KIND: dict[str, type[NaiveBayesClassifier]] = {**_OF_LEVELS, **OF_KIND, "binned": BinnedNB}


@dataclass(frozen=True, eq=False)
class Outcome:
    """Fits and scores of one data set.

    Parameters
    ----------
    data : Dataset
    settings : Settings
    fits : Fits
        Fits to all rows, and to the rows that are not held out.
    weighted : Fits or None
        The same fits with weights of terms, if there are weights.
    findings : Findings
        Scores of the estimates, and what else a conclusion rests on.
    held_out : HeldOut
        Labels and class probabilities of the held-out rows, weighted if there are weights.
    parameters : DataFrame or None
        Table of `bayesnb.uncertainty.parameter_table`; None if the posterior is improper.
    notes : list of str
    """

    data: Dataset
    settings: Settings
    fits: Fits
    weighted: Fits | None
    findings: Findings
    held_out: HeldOut
    parameters: pd.DataFrame | None
    notes: Sequence[str]

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """Predictions of the held-out rows, their probability with interval, and the parts of their entropy."""

        def describe(fold: Fold) -> pd.DataFrame:
            nb, X, proba = fold.nb, fold.X, fold.nb.predict_proba(fold.X)
            top = np.arange(len(X)), proba.argmax(axis=1)
            lower, upper = predict_interval(nb, X, prob=self.settings.prob)
            columns = {"probability": proba[top], "lower": lower[top], "upper": upper[top]}
            frame = pd.DataFrame({"prediction": nb.classes_[top[1]], **columns})
            return frame.join(decompose_uncertainty(nb, X).reset_index(drop=True))

        return describe_held_out(self.fits, describe)


def describe_held_out(fits: Fits, describe: Callable[[Fold], pd.DataFrame]) -> pd.DataFrame:
    """Return one table of all folds' held-out rows: row number, true label, and the columns of `describe(fold)`."""
    parts = [pd.DataFrame({"row": fold.rows, "truth": fold.y}).join(describe(fold)) for fold in fits.folds]
    return pd.concat(parts, ignore_index=True)


def run(data: Dataset, settings: Settings) -> Outcome:
    """Fit one data set, score all estimates on held-out rows, and tabulate the parameters.

    Raises
    ------
    InputError
        If the classifier cannot use the data.
    """
    losses = None if settings.loss is None else read_losses(settings.loss, np.array(list(data.class_count)))
    single = [label for label, n in data.class_count.items() if n == 1]
    notes = describe_columns(data.notes)
    notes += [f"class {label} has only one row, which is never held out" for label in single]

    def attempt(what: str, make: Callable[[], Any]) -> Any:
        """Return `make()`; None, with a note that has the reason, if the library refuses."""
        try:
            return make()
        except ValueError as error:
            notes.append(f"No {what}. {error}")
            return None

    kinds = _decided_kinds(data, settings)
    density_open = UNDECIDED in data.kinds.values() and settings.numbers == "gaussian"
    try:
        has_weights = settings.weights != "none"
        weighted = attempt("weights", lambda: _fit_weighted(data, settings, notes)) if has_weights else None
        with internal_fits():
            fits = (weighted or data.rows.fit(classifier(data, settings), settings, data.name)).unweighted
        notes += describe_columns(check_table(fits.X, fits.y)["remarks"])
        data = replace(data, kinds=fits.nb.kinds_ if UNDECIDED in kinds.values() else kinds)
        priors = {f"alpha={a:g}": a for a in (1.0, 0.5) if a != settings.alpha}  # Laplace's and Jeffreys's
        has_levels = not NUMBERS.keys() >= set(data.kinds.values())
        parts = [(fold.nb, fold.X, fold.y) for fold in (weighted or fits).folds]
        logistic = attempt(LOGISTIC, lambda: {LOGISTIC: _fit_logistic(data, fits)})
        scored = score_fitted((weighted or fits).nb, parts, priors if has_levels else {}, data.name, logistic)
    except (ValueError, TypeError) as error:
        raise InputError(f"{data.name}: {' '.join(str(error).split())}") from None
    parameters = attempt("parameter table", lambda: parameter_table(fits.nb, settings.prob))
    y, names = np.concatenate([fold.y for fold in fits.folds]), scored.joined_names
    findings = Findings(
        merge_equal(scored.table(), names),
        len(y),
        len(fits.folds),
        base_scores(scored, data.class_count, y),
        _expression(fits.nb),
        data.kinds,
        weights=has_weights,
        density_open=density_open,
        weighting=scored.difference(WEIGHTED, "predictive") if WEIGHTED in scored.rows else None,
        over_logistic={name: scored.difference(first, LOGISTIC) for first, name in names.items() if logistic},
        target=data.target,
        left_out=tuple(data.left_out),
    )
    held_out = HeldOut.from_fits(weighted or fits, list(data.class_count), losses)
    return Outcome(data, settings, fits, weighted, findings, held_out, parameters, notes)


def merge_equal(comparison: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """Return the comparison with one row for all estimates that agree, under joined `names`, with their evidence."""
    first = comparison["same_as"].where(comparison["same_as"] != "", comparison.index)
    evidence = comparison["log_evidence"].groupby(first, sort=False).first()
    table = comparison.loc[list(names)].drop(columns="same_as").assign(log_evidence=evidence)
    return table.rename(index=names)


def base_scores(scored: Scored, class_count: Mapping[Label, int], y: np.ndarray) -> Base:
    """Score predictions without features: accuracy of the most frequent class, Brier of shares, and gains of estimates.

    Parameters
    ----------
    scored : Scored
        Scores of the estimates, row by row.
    class_count : dict
        Number of rows of each class, from which the shares are.
    y : (N,) array
        Labels of the rows that were scored, in their order.
    """
    n = sum(class_count.values())
    share = np.array([class_count[label] / n for label in y.tolist()])
    brier = 1 - 2 * share + sum((count / n) ** 2 for count in class_count.values())
    label = max(class_count, key=lambda c: class_count[c])
    differences = {names: scored.rows[first].brier - brier for first, names in scored.joined_names.items()}
    gains = {name: (float(d.mean()), standard_error(d)) for name, d in differences.items()}
    return Base(str(label), float(np.mean(y == label)), float(brier.mean()), gains)


def _fit_weighted(data: Dataset, settings: Settings, notes: list[str]) -> Fits:
    """Return fits with weights; append a note if some fits have none.

    Raises
    ------
    ValueError
        If fewer than ten rows are outside the largest class, or under weights="auto" there are more than 100 classes.
    """
    if settings.weights == "auto" and len(data.class_count) > _MANY_CLASSES:
        raise ValueError(
            f"For more than {_MANY_CLASSES} classes they take minutes; to fit them, add --weights feature."
        )
    nb = WeightedNB(classifier(data, settings), settings.weights, seed=settings.seed)
    with warnings.catch_warnings(), internal_fits():
        warnings.simplefilter("ignore", NoWeightsWarning)  # issued by each fold
        fits = data.rows.fit(nb, settings, data.name)
    plain = [fitted.weights_ is None for fitted in (fits.nb, *(fold.nb for fold in fits.folds))]
    if plain[0]:
        raise ValueError(f"Weights need at least {FEWEST_EVENTS} rows outside the largest class.")
    if any(plain):
        few = f"{sum(plain)} of {len(plain)} fits have too few rows for weights, and predict without them."
        notes.append(f"weighted: {few}")
    return fits


def classifier(data: Dataset, settings: Settings) -> NaiveBayesClassifier:
    """Make the unfitted classifier for the kinds of columns: `MixedNB`, or that of the kind if there is only one.

    It is `MixedNB`, too, by `settings.estimator`, or if the density of numbers is still to be chosen.
    """
    kinds = _decided_kinds(data, settings)
    kind, *others = {*kinds.values()}
    is_mixed = others or kind == UNDECIDED or settings.estimator == "mixed"
    nb = MixedNB() if is_mixed else _OF_ONE_KIND[kind]()
    options: dict[str, Any] = {kind: [name for name, k in kinds.items() if k == kind] or None for kind in KINDS}
    options |= {"alpha": settings.alpha, "class_alpha": settings.class_alpha, "numbers": settings.numbers}
    options["categories"] = dict(data.levels) or "auto"
    return nb.set_params(**{name: options[name] for name in nb.get_params(deep=False).keys() & options.keys()})


def _decided_kinds(data: Dataset, settings: Settings) -> dict[str, str]:
    """Return {column: kind}, undecided numbers replaced by the density in the settings unless that is "auto"."""
    numbers = UNDECIDED if settings.numbers == "auto" else settings.numbers
    return {name: numbers if kind == UNDECIDED else kind for name, kind in data.kinds.items()}


def _fit_logistic(data: Dataset, fits: Fits) -> list[Pipeline]:
    """Fit logistic regression to the training rows of each fold: standardized numbers, and indicators of levels.

    Missing numbers become the mean of their column, and missing levels have an indicator.

    Raises
    ------
    ValueError
        If the rows are not in memory, cells times classes are more than 20 million, or scikit-learn refuses the rows.
    """
    if isinstance(data.rows, Streamed):
        raise ValueError("The rows do not fit into memory.")
    X, y = data.rows.X, data.rows.y
    if (cells := X.size * len(np.unique(y))) > _MOST_CELLS:
        raise ValueError(f"Rows × features × classes are {cells:,}; the limit is {_MOST_CELLS:,}.")
    levels = [name for name, kind in data.kinds.items() if kind == "categorical"]
    numbers = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())
    columns = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), levels), remainder=numbers)
    trained = (np.setdiff1d(np.arange(len(y)), fold.rows) for fold in fits.folds)
    model = make_pipeline(columns, LogisticRegression(max_iter=1000))
    return [clone(model).fit(X.iloc[train], y[train]) for train in trained]


def _expression(nb: NaiveBayesClassifier) -> str:
    """Write the Python call that makes the classifier: arguments that are not defaults, without columns if too long."""
    default = type(nb)().get_params(deep=False)
    arguments = {name: value for name, value in nb.get_params(deep=False).items() if value != default[name]}
    arguments.pop("categories", None)
    if len(str(arguments)) > _LONG:
        arguments = {name: value for name, value in arguments.items() if name not in KINDS}
    return f"bayesnb.{type(nb).__name__}({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"


def most_uncertain(
    parameters: pd.DataFrame, nb: NaiveBayesClassifier, kinds: Mapping[str, str], n: int = 8
) -> pd.DataFrame:
    """Rows of a parameter table with the largest posterior sd.

    Probabilities are ranked by their sd, locations of numbers by their sd in a unit of their family, such as the
    feature's sd over all rows; variances are not ranked. At most one row a class and feature, since the levels of a
    feature share their uncertainty, and one row of the class probabilities.
    """
    location = {name: NUMBERS[kind].location for name, kind in kinds.items() if kind in NUMBERS}
    cells = zip(parameters["feature"], parameters["level"], strict=True)
    ranked = parameters[[location.get(feature, "") in ("", level) for feature, level in cells]]
    unit = {CLASS: 1.0}
    for columns, statistics in zip(nb.fitted_.encoding.blocks, nb.fitted_.statistics.blocks, strict=True):
        if offers(statistics, "spread"):
            unit |= dict(zip(columns.names, statistics.spread().tolist(), strict=True))
    relative = ranked["sd"] / ranked["feature"].map(unit).fillna(1.0).replace(0.0, 1.0)
    group = ranked["class"].astype(str).where(ranked["feature"] != CLASS, "")
    ranked = ranked.assign(relative=relative.astype(float), group=group)
    ranked = ranked.sort_values("relative", ascending=False, kind="stable").drop_duplicates(["group", "feature"])
    return ranked.head(n).drop(columns=["group", "relative"])
