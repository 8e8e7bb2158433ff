"""Comparison of estimates: fit naive Bayes, score its estimates on held-out rows, tabulate its parameters."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb.cli.conclusion import Base
from bayesnb.cli.csv_cells import InputError
from bayesnb.cli.fitting import Fits, Settings
from bayesnb.cli.labelled_data import NUMBERS, UNDECIDED, Dataset
from bayesnb.cli.terminal import enumerate_names
from bayesnb.estimators import BernoulliNB, BinnedNB, CategoricalNB, MixedNB, MultinomialNB, WeightedNB
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.estimators.mixed import KINDS
from bayesnb.estimators.numbers import OF_KIND
from bayesnb.evaluation.compare import Scored, score_fitted
from bayesnb.evaluation.estimates import WEIGHTED
from bayesnb.evaluation.resampling import standard_error
from bayesnb.families import supports
from bayesnb.families.protocol import FeatureUnits
from bayesnb.fitted import Fitted
from bayesnb.selection.leave_one_out import FEWEST_EVENTS
from bayesnb.uncertainty import CLASS, ImproperPosteriorError, parameter_table

if TYPE_CHECKING:
    import pandas as pd

_MANY_CLASSES = 100
_OF_ONE_KIND = {**OF_KIND, "binned": BinnedNB, "bernoulli": BernoulliNB, "multinomial": MultinomialNB}


@dataclass(frozen=True, eq=False)
class Outcome:
    """Fits and scores of one data set.

    Parameters
    ----------
    data : Dataset
    fits : Fits
        Fits to all rows, and to the rows that are not held out.
    weighted : Fits or None
        The same fits with weights of terms, if there are weights.
    comparison : DataFrame
        Scores; estimates that agree are one row.
    weighting : (float, float) or None
        Brier score with weights less the predictive one without, and the standard error; None without weights.
    base : Base
        Scores of predictions that ignore the row.
    parameters : DataFrame or None
        Table of `bayesnb.uncertainty.parameter_table`; None if the posterior is improper.
    uncertain : DataFrame or None
        Most uncertain rows of `parameters`.
    notes : list of str
    density_open : bool
        Whether there are columns whose density `--numbers` decides.
    """

    data: Dataset
    fits: Fits
    weighted: Fits | None
    comparison: pd.DataFrame
    weighting: tuple[float, float] | None
    base: Base
    parameters: pd.DataFrame | None
    uncertain: pd.DataFrame | None
    notes: Sequence[str]
    density_open: bool = False


def run(data: Dataset, settings: Settings) -> Outcome:
    """Compare the estimates on held-out rows and tabulate the parameters.

    Raises
    ------
    InputError
        If the classifier cannot use the data.
    """
    about: dict[str, list[str]] = {}
    for column, note in data.notes.items():
        about.setdefault(note, []).append(column)
    notes = [f"{enumerate_names(columns, 8)}: {note}" for note, columns in about.items()]
    rare = sorted(label for label, n in data.class_count.items() if n == 1)
    notes += [f"class {label} has one row, which is never held out" for label in rare]
    weighted, density_open = None, UNDECIDED in data.kinds.values()
    try:
        if settings.weights != "none":
            try:
                weighted, note = _fit_weighted(data, settings)
            except ValueError as error:
                note = f"No weights. {error}"
            notes += filter(None, [note])
        fits = weighted or data.rows.fit(classifier(data, settings), settings, data.name)
        kinds = _decided_kinds(data, settings)
        data = replace(data, kinds=fits.unweighted.nb.kinds_ if UNDECIDED in kinds.values() else kinds)
        priors = {f"alpha={a:g}": a for a in (1.0, 0.5) if a != settings.alpha}  # Laplace's and Jeffreys's
        has_levels = not NUMBERS.keys() >= set(data.kinds.values())
        parts = [(fold.nb, fold.X, fold.y) for fold in fits.folds]
        scored = score_fitted(fits.nb, parts, priors if has_levels else {}, progress=data.name)
    except (ValueError, TypeError) as error:
        raise InputError(f"{data.name}: {' '.join(str(error).split())}") from None
    fits = fits.unweighted
    parameters = uncertain = None
    try:
        parameters = parameter_table(fits.nb, settings.prob)
        uncertain = most_uncertain(parameters, fits.nb, data.kinds)
    except ImproperPosteriorError as error:
        notes.append(f"No parameter table. {error}")
    gain = scored.difference(WEIGHTED, "predictive") if WEIGHTED in scored.rows else None
    comparison = merge_equal(scored.table(), scored.joined_names)
    base = base_scores(scored, data.class_count, np.concatenate([fold.y for fold in fits.folds]))
    return Outcome(data, fits, weighted, comparison, gain, base, parameters, uncertain, notes, density_open)


def merge_equal(comparison: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """One row for all estimates that agree, under their joined `names`, with the log evidence that one of them has."""
    first = comparison["same_as"].where(comparison["same_as"] != "", comparison.index)
    evidence = comparison["log_evidence"].groupby(first, sort=False).first()
    table = comparison.loc[list(names)].drop(columns="same_as").assign(log_evidence=evidence)
    return table.rename(index=names)


def base_scores(scored: Scored, class_count: Mapping[Any, int], y: np.ndarray) -> Base:
    """Scores of always predicting a most frequent class, and of predicting the share of each class.

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


def _fit_weighted(data: Dataset, settings: Settings) -> tuple[Fits | None, str]:
    """Return the fits with weights, or None if the rows are too few or the classes too many, and a note."""
    if settings.weights == "auto" and len(data.class_count) > _MANY_CLASSES:
        reason = f"Weights for more than {_MANY_CLASSES} classes take minutes: --weights feature finds them."
        return None, f"No weights. {reason}"
    nb = WeightedNB(classifier(data, settings), settings.weights, seed=settings.seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* is not weighted")  # by each fold
        fits = data.rows.fit(nb, settings, data.name)
    fitted: list[Any] = [fits.nb, *(fold.nb for fold in fits.folds)]
    plain = sum(nb.weights_ is None for nb in fitted)
    if fitted[0].weights_ is None:
        return None, f"No weights. They take {FEWEST_EVENTS} rows or more outside the largest class."
    return fits, f"weighted: {plain} of {len(fitted)} fits have too few rows for weights, and are plain." * (plain > 0)


def classifier(data: Dataset, settings: Settings) -> Any:
    """Classifier for the kinds of columns: `MixedNB`, or the classifier of the kind if there is only one."""
    kinds = _decided_kinds(data, settings)
    kind = next(iter(kinds.values()))
    common: dict[str, Any] = {"class_alpha": settings.class_alpha}
    common |= (
        {} if set(kinds.values()) == {kind} and kind in NUMBERS and not settings.mixed else {"alpha": settings.alpha}
    )
    levels: dict[str, Any] = {"categories": dict(data.levels) or "auto"}
    if set(kinds.values()) != {kind} or kind == UNDECIDED or settings.mixed:
        columns: dict[str, Any] = {kind: [name for name, k in kinds.items() if k == kind] for kind in KINDS}
        return MixedNB(**common, **levels, **columns, numbers=settings.numbers)
    return CategoricalNB(**common, **levels) if kind == "categorical" else _OF_ONE_KIND[kind](**common)


def _decided_kinds(data: Dataset, settings: Settings) -> dict[str, str]:
    """Kinds of the columns, where numbers are what the settings say."""
    numbers = UNDECIDED if settings.numbers == "auto" else settings.numbers
    return {name: numbers if kind == UNDECIDED else kind for name, kind in data.kinds.items()}


def most_uncertain(
    parameters: pd.DataFrame, nb: NaiveBayesClassifier, kinds: Mapping[str, str], n: int = 8
) -> pd.DataFrame:
    """Rows of a parameter table with the largest posterior sd.

    Probabilities are ranked by their sd, locations of numbers by their sd in a unit of their family, such as the
    feature's sd over all rows; variances are not ranked. At most one row a class and feature, since the levels of a
    feature share their uncertainty, and one row of the class probabilities.
    """
    kinds_of_rows = parameters["feature"].map({**kinds, CLASS: "class"})
    ranked = parameters[
        [
            kind not in NUMBERS or NUMBERS[kind].location in ("", level)
            for kind, level in zip(kinds_of_rows, parameters["level"], strict=True)
        ]
    ]
    unit = ranked["feature"].map({**_spread(nb.fitted_), CLASS: 1.0}).fillna(1.0).replace(0.0, 1.0)
    group = ranked["class"].astype(str).where(ranked["feature"] != CLASS, "")
    ranked = ranked.assign(relative=(ranked["sd"] / unit).astype(float), group=group)
    ranked = ranked.sort_values("relative", ascending=False, kind="stable").drop_duplicates(["group", "feature"])
    return ranked.head(n).drop(columns=["group", "relative"])


def _spread(fitted: Fitted) -> dict[str, float]:
    """Unit of the sd of the location of each feature of numbers."""
    spread: dict[str, float] = {}
    for columns, statistics in zip(fitted.encoding.blocks, fitted.statistics.blocks, strict=True):
        if supports(statistics, FeatureUnits):
            spread |= dict(zip(columns.names, statistics.spread().tolist(), strict=True))
    return spread
