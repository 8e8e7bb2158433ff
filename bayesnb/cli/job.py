"""The main job: fit naive Bayes, score its estimates on held-out rows, read its posterior."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesnb import datasets
from bayesnb.cli.findings import Base
from bayesnb.cli.holdout import Fits, Settings
from bayesnb.cli.tables import KINDS, NUMBERS, UNDECIDED, Dataset, InputError, from_frame
from bayesnb.cli.text import enumerate_names
from bayesnb.estimators import BernoulliNB, BinnedNB, CategoricalNB, MixedNB, MultinomialNB, WeightedNB
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.estimators.numbers import OF_KIND
from bayesnb.evaluation.compare import Scored, score_fitted
from bayesnb.evaluation.estimates import WEIGHTED
from bayesnb.evaluation.resampling import standard_error
from bayesnb.families import supports
from bayesnb.families.protocol import FeatureUnits
from bayesnb.fitted import Fitted
from bayesnb.selection.left_out import FEWEST_EVENTS
from bayesnb.uncertainty import CLASS, ImproperPosteriorError, parameter_table

if TYPE_CHECKING:
    import pandas as pd

_MANY_CLASSES = 100


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came out for one data set.

    Parameters
    ----------
    fits : Fits
        To all rows, and to those that are not held out.
    weighted : Fits or None
        The same with weights of terms, where there are some.
    comparison : DataFrame
        One row for all estimates that say the same, see `merged`.
    weighting : (float, float) or None
        Brier score with weights less that without, "predictive", and the standard error; None without weights.
    base : Base
        What is right of the rows held out without looking at them.
    parameters : DataFrame or None
        See `bayesnb.uncertainty.parameter_table`; None where the posterior is improper.
    uncertain : DataFrame or None
        The most uncertain of them.
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


def embedded() -> list[Dataset]:
    """The data sets of a run without a file."""
    from sklearn.datasets import load_breast_cancer

    cancer, melon = load_breast_cancer(as_frame=True), datasets.load_watermelon(language="en")
    melon_kinds = {name: UNDECIDED if melon.data[name].dtype == float else "categorical" for name in melon.data}
    return [
        from_frame(
            "breast_cancer",
            cancer.data,
            cancer.target_names[cancer.target],
            dict.fromkeys(cancer.data, UNDECIDED),
            "diagnosis",
            "scikit-learn's copy of the Wisconsin diagnostic data",
        ),
        from_frame(
            "watermelon",
            melon.data,
            melon.target.to_numpy(),
            melon_kinds,
            "ripe",
            "Zhou Zhihua, Machine Learning (2016), table 4.3",
        ),
    ]


def run(data: Dataset, settings: Settings) -> Outcome:
    """Compare the estimates on held-out rows and tabulate the parameters.

    Raises
    ------
    InputError
        If the classifier cannot use the data.
    """
    notes = [*_together(data.notes), *_rare_classes(data)]
    weighted, density_open = None, UNDECIDED in data.kinds.values()
    try:
        if settings.weights != "none":
            try:
                weighted, said = _weighted(data, settings)
            except ValueError as error:
                said = f"No weights. {error}"
            notes += filter(None, [said])
        fits = data.rows.fit(classifier(data, settings), settings, data.name) if weighted is None else weighted
        parts = [(fold.nb, fold.X, fold.y) for fold in fits.folds]
        kinds = _kinds(data, settings)
        undecided = UNDECIDED in kinds.values()
        data = replace(data, kinds=fits.unweighted.nb.kinds_ if undecided else kinds)
        scored = score_fitted(fits.nb, parts, _priors(data, settings), progress=data.name)
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
    comparison = merged(scored.table(), scored.joined_names)
    base = base_rates(scored, data.class_count, np.concatenate([fold.y for fold in fits.folds]))
    return Outcome(data, fits, weighted, comparison, gain, base, parameters, uncertain, notes, density_open)


def merged(comparison: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """One row for all estimates that say the same, under all their `names`, with the log evidence of one of them."""
    first = comparison["same_as"].where(comparison["same_as"] != "", comparison.index)
    evidence = comparison["log_evidence"].groupby(first, sort=False).first()
    table = comparison.loc[list(names)].drop(columns="same_as").assign(log_evidence=evidence)
    return table.rename(index=names)


def base_rates(scored: Scored, class_count: Mapping[Any, int], y: np.ndarray) -> Base:
    """What always saying a most frequent class, or stating the share of each, is worth in the rows that were scored.

    Parameters
    ----------
    scored : Scored
    class_count : dict
        Rows of each class, of which the shares are.
    y : (N,) array
        Labels of the rows that were scored, in their order.
    """
    n = sum(class_count.values())
    share = np.array([class_count[label] / n for label in y.tolist()])
    brier = 1 - 2 * share + sum((count / n) ** 2 for count in class_count.values())
    label = max(class_count, key=lambda own: class_count[own])
    differences = {names: scored.rows[first].brier - brier for first, names in scored.joined_names.items()}
    gains = {name: (float(d.mean()), standard_error(d)) for name, d in differences.items()}
    return Base(str(label), float(np.mean(y == label)), float(brier.mean()), gains)


def _weighted(data: Dataset, settings: Settings) -> tuple[Fits | None, str]:
    """Return the fits with weights, or None if the rows are too few or the classes too many, and a note."""
    if settings.weights == "auto" and len(data.class_count) > _MANY_CLASSES:
        many = f"Weights for more than {_MANY_CLASSES} classes take minutes: --weights feature finds them."
        return None, f"No weights. {many}"
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
    """The classifier for the kinds of columns: of one kind its own, else `MixedNB`."""
    kinds = _kinds(data, settings)
    columns = {kind: [name for name, k in kinds.items() if k == kind] for kind in KINDS}
    used = [kind for kind in (*KINDS, UNDECIDED) if kind in kinds.values()]
    common: dict[str, Any] = {"class_alpha": settings.class_alpha}
    if len(used) == 1 and used[0] in NUMBERS and not settings.mixed:
        return (OF_KIND | {"binned": BinnedNB})[used[0]](**common)
    common |= {"alpha": settings.alpha}
    if len(used) == 1 and used[0] in ("bernoulli", "multinomial") and not settings.mixed:
        return {"bernoulli": BernoulliNB, "multinomial": MultinomialNB}[used[0]](**common)
    common |= {"categories": dict(data.levels) or "auto"}
    if used == ["categorical"] and not settings.mixed:
        return CategoricalNB(**common)
    common |= columns
    return MixedNB(**common, numbers=settings.numbers)


def _kinds(data: Dataset, settings: Settings) -> dict[str, str]:
    """Kinds of the columns, numbers as the settings say."""
    numbers = UNDECIDED if settings.numbers == "auto" else settings.numbers
    return {name: numbers if kind == UNDECIDED else kind for name, kind in data.kinds.items()}


def most_uncertain(
    parameters: pd.DataFrame, nb: NaiveBayesClassifier, kinds: Mapping[str, str], n: int = 8
) -> pd.DataFrame:
    """Rows of a parameter table with the largest posterior sd.

    That of a probability as it is, that of the location of numbers in a unit that their family knows, such as the
    feature's sd over all rows; variances are not ranked. At most one row a class and feature, since the levels of a
    feature share their uncertainty; of the class probabilities one.
    """
    spread = _spread(nb.fitted_)
    kind = parameters["feature"].map(kinds).where(parameters["feature"] != CLASS)
    location = [
        (NUMBERS[k].location or level) if k in NUMBERS else level
        for k, level in zip(kind, parameters["level"], strict=True)
    ]
    ranked = parameters[[own == level for own, level in zip(location, parameters["level"], strict=True)]]
    unit = ranked["feature"].map(spread).where(ranked["feature"] != CLASS).fillna(1.0)
    relative = (ranked["sd"] / unit.replace(0.0, 1.0)).astype(float)
    of = np.where(ranked["feature"] == CLASS, "", ranked["class"].astype(str))
    ranked = ranked.assign(relative=relative, of=of).sort_values("relative", ascending=False, kind="stable")
    return ranked.drop_duplicates(["of", "feature"]).head(n).drop(columns=["of", "relative"])


def _spread(fitted: Fitted) -> dict[str, float]:
    """Of each feature of numbers what the sd of its location is compared with."""
    found: dict[str, float] = {}
    for columns, statistics in zip(fitted.encoding.blocks, fitted.statistics.blocks, strict=True):
        if supports(statistics, FeatureUnits):
            found |= dict(zip(columns.names, statistics.spread().tolist(), strict=True))
    return found


def _priors(data: Dataset, settings: Settings) -> Mapping[str, float]:
    """Laplace's and Jeffreys's concentrations, where there is one to choose."""
    if not set(data.kinds.values()) - NUMBERS.keys():
        return {}
    return {f"alpha={a:g}": a for a in (1.0, 0.5) if a != settings.alpha}


def _together(notes: Mapping[str, str]) -> list[str]:
    """A line for each note, with the columns that it is about."""
    about: dict[str, list[str]] = {}
    for column, note in notes.items():
        about.setdefault(note, []).append(column)
    return [f"{enumerate_names(columns, 8)}: {note}" for note, columns in about.items()]


def _rare_classes(data: Dataset) -> list[str]:
    rare = sorted(label for label, n in data.class_count.items() if n == 1)
    return [f"class {label} has one row, which is never held out" for label in rare]
