"""Comparison of estimates: fit naive Bayes, score its estimates on held-out rows, tabulate its parameters."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from bayesnb._util.kinds import KINDS
from bayesnb._util.warnings import NoWeightsWarning, internal_fits
from bayesnb.cli.baseline import LOGISTIC, fit_logistic
from bayesnb.cli.column_types import Label, describe_suspicious
from bayesnb.cli.conclusion import Base, Findings
from bayesnb.cli.csv_cells import InputError
from bayesnb.cli.fitting import Fits, Settings
from bayesnb.cli.held_out_rates import HeldOut
from bayesnb.cli.labelled_data import NUMBERS, UNDECIDED, Dataset
from bayesnb.cli.losses import read_losses
from bayesnb.cli.terminal import enumerate_names
from bayesnb.estimators import BernoulliNB, BinnedNB, CategoricalNB, MixedNB, MultinomialNB, WeightedNB
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.estimators.numbers import OF_KIND
from bayesnb.evaluation.compare import Scored, score_fitted
from bayesnb.evaluation.estimates import WEIGHTED
from bayesnb.evaluation.resampling import standard_error
from bayesnb.families import offers
from bayesnb.selection.leave_one_out import FEWEST_EVENTS
from bayesnb.uncertainty import CLASS, ImproperPosteriorError, parameter_table

_MANY_CLASSES = 100
_LONG = 300
_OF_LEVELS = {"categorical": CategoricalNB, "bernoulli": BernoulliNB, "multinomial": MultinomialNB}
_OF_ONE_KIND: dict[str, type[NaiveBayesClassifier]] = {**_OF_LEVELS, **OF_KIND, "binned": BinnedNB}


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
    findings : Findings
        Scores of the estimates, and what else a conclusion rests on.
    held_out : HeldOut
        Labels and class probabilities of the held-out rows, weighted if there are weights.
    parameters : DataFrame or None
        Table of `bayesnb.uncertainty.parameter_table`; None if the posterior is improper.
    notes : list of str
    """

    data: Dataset
    fits: Fits
    weighted: Fits | None
    findings: Findings
    held_out: HeldOut
    parameters: pd.DataFrame | None
    notes: Sequence[str]


def run(data: Dataset, settings: Settings) -> Outcome:
    """Fit one data set, score all estimates on held-out rows, and tabulate the parameters.

    Raises
    ------
    InputError
        If the classifier cannot use the data.
    """
    losses = None if settings.loss is None else read_losses(settings.loss, np.array(list(data.class_count)))
    about: dict[str, list[str]] = {}
    for column, note in data.notes.items():
        about.setdefault(note, []).append(column)
    notes = [f"{enumerate_names(columns, 8)}: {note}" for note, columns in about.items()]
    notes += [
        f"class {label} has only one row, which is never held out" for label, n in data.class_count.items() if n == 1
    ]
    weighted, density_open = None, UNDECIDED in data.kinds.values()
    try:
        if settings.weights != "none":
            try:
                weighted, note = _fit_weighted(data, settings)
            except ValueError as error:
                note = f"No weights. {error}"
            notes += filter(None, [note])
        with internal_fits():
            fits = (weighted or data.rows.fit(classifier(data, settings), settings, data.name)).unweighted
        notes += describe_suspicious(fits.X, fits.y)
        kinds = _decided_kinds(data, settings)
        data = replace(data, kinds=fits.nb.kinds_ if UNDECIDED in kinds.values() else kinds)
        priors = {f"alpha={a:g}": a for a in (1.0, 0.5) if a != settings.alpha}  # Laplace's and Jeffreys's
        has_levels = not NUMBERS.keys() >= set(data.kinds.values())
        parts = [(fold.nb, fold.X, fold.y) for fold in (weighted or fits).folds]
        logistic, note = fit_logistic(data.rows, fits.folds, data.kinds)
        notes += filter(None, [note])
        scored = score_fitted((weighted or fits).nb, parts, priors if has_levels else {}, data.name, logistic)
    except (ValueError, TypeError) as error:
        raise InputError(f"{data.name}: {' '.join(str(error).split())}") from None
    try:
        parameters = parameter_table(fits.nb, settings.prob)
    except ImproperPosteriorError as error:
        parameters = None
        notes.append(f"No parameter table. {error}")
    y = np.concatenate([fold.y for fold in fits.folds])
    findings = Findings(
        merge_equal(scored.table(), scored.joined_names),
        len(y),
        len(fits.folds),
        base_scores(scored, data.class_count, y),
        _expression(fits.nb),
        data.kinds,
        weights=settings.weights != "none",
        density_open=density_open and settings.numbers == "gaussian",
        weighting=scored.difference(WEIGHTED, "predictive") if WEIGHTED in scored.rows else None,
        over_logistic={
            name: scored.difference(first, LOGISTIC) for first, name in scored.joined_names.items() if logistic
        },
        target=data.target,
        left_out=tuple(data.left_out),
    )
    held_out = HeldOut.from_fits(weighted or fits, list(data.class_count), losses)
    return Outcome(data, fits, weighted, findings, held_out, parameters, notes)


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


def _fit_weighted(data: Dataset, settings: Settings) -> tuple[Fits | None, str]:
    """Return fits with weights and a note; None and the reason if rows are too few, or classes too many.

    Too few are fewer than ten rows outside the largest class; too many, under weights="auto", are more than 100
    classes.
    """
    if settings.weights == "auto" and len(data.class_count) > _MANY_CLASSES:
        reason = (
            f"Fitting weights for more than {_MANY_CLASSES} classes takes minutes; to fit them, add --weights feature."
        )
        return None, f"No weights. {reason}"
    nb = WeightedNB(classifier(data, settings), settings.weights, seed=settings.seed)
    with warnings.catch_warnings(), internal_fits():
        warnings.simplefilter("ignore", NoWeightsWarning)  # issued by each fold
        fits = data.rows.fit(nb, settings, data.name)
    is_plain = [fitted.weights_ is None for fitted in (fits.nb, *(fold.nb for fold in fits.folds))]
    if is_plain[0]:
        return None, f"No weights. Weights need at least {FEWEST_EVENTS} rows outside the largest class."
    note = f"weighted: {sum(is_plain)} of {len(is_plain)} fits have too few rows for weights, and predict without them."
    return fits, note * any(is_plain)


def classifier(data: Dataset, settings: Settings) -> NaiveBayesClassifier:
    """Make the unfitted classifier for the kinds of columns: `MixedNB`, or that of the kind if there is only one.

    It is `MixedNB`, too, if `settings.mixed`, or if the density of numbers is still to be chosen.
    """
    kinds = _decided_kinds(data, settings)
    kind, *others = {*kinds.values()}
    of_kind = MixedNB if others or kind == UNDECIDED or settings.mixed else _OF_ONE_KIND[kind]
    options: dict[str, Any] = {kind: [name for name, k in kinds.items() if k == kind] or None for kind in KINDS}
    options |= {"alpha": settings.alpha, "class_alpha": settings.class_alpha, "numbers": settings.numbers}
    options["categories"] = dict(data.levels) or "auto"
    known = of_kind().get_params(deep=False)
    return of_kind(**{name: value for name, value in options.items() if name in known})


def _decided_kinds(data: Dataset, settings: Settings) -> dict[str, str]:
    """Return {column: kind}, undecided numbers replaced by the density in the settings unless that is "auto"."""
    numbers = UNDECIDED if settings.numbers == "auto" else settings.numbers
    return {name: numbers if kind == UNDECIDED else kind for name, kind in data.kinds.items()}


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
    ranked = parameters[
        [location.get(f, "") in ("", v) for f, v in zip(parameters["feature"], parameters["level"], strict=True)]
    ]
    unit = {CLASS: 1.0}
    for columns, statistics in zip(nb.fitted_.encoding.blocks, nb.fitted_.statistics.blocks, strict=True):
        if offers(statistics, "spread"):
            unit |= dict(zip(columns.names, statistics.spread().tolist(), strict=True))
    relative = ranked["sd"] / ranked["feature"].map(unit).fillna(1.0).replace(0.0, 1.0)
    group = ranked["class"].astype(str).where(ranked["feature"] != CLASS, "")
    ranked = ranked.assign(relative=relative.astype(float), group=group)
    ranked = ranked.sort_values("relative", ascending=False, kind="stable").drop_duplicates(["group", "feature"])
    return ranked.head(n).drop(columns=["group", "relative"])
