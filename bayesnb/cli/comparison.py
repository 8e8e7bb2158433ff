"""Comparison of the estimates on held-out rows, and what a decision rests on."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import sqrt
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix, roc_auc_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from bayesnb._util.kinds import KINDS
from bayesnb._util.warnings import NoWeightsWarning, internal_fits
from bayesnb.cli.document import Paragraph, Section, Table, fill_list, fill_template
from bayesnb.cli.labelled_data import (
    NB,
    NUMBERS,
    UNDECIDED,
    Dataset,
    Fits,
    Fold,
    Label,
    Settings,
    describe_columns,
    fit_folds,
    read_losses,
)
from bayesnb.cli.tables import blamed_on
from bayesnb.estimators import BernoulliNB, BinnedNB, CategoricalNB, MixedNB, MultinomialNB, WeightedNB
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.estimators.plain import OF_KIND
from bayesnb.evaluation import WEIGHTED, Scored, score_fitted, standard_error
from bayesnb.families import offers
from bayesnb.uncertainty import CLASS, decompose_uncertainty, parameter_table, predict_interval
from bayesnb.weights.cross_fitting import FEWEST_EVENTS

# == Rates of the classes on held-out rows, and how many rows of a class are found: what a decision rests on

_THRESHOLDS = (0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
_N_THRESHOLDS = 5
_MOST_CLASSES = 12
_TOP = 0.1
_explain = partial(fill_template, "decision.txt")


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out rows: labels, and class probabilities of fits that have not seen the rows.

    Parameters
    ----------
    classes : list of str
    label : (N,) int array
        Index of the class of each row.
    proba : (N, C) array
        Rows without class probabilities have 1/C.
    losses : DataFrame or None
        Losses, actions × classes, of a decision about each row.
    """

    classes: Sequence[str]
    label: np.ndarray
    proba: np.ndarray
    losses: pd.DataFrame | None = None

    @classmethod
    def from_fits(cls, fits: Fits[Any], classes: Sequence[Label], losses: pd.DataFrame | None) -> HeldOut:
        """Return the labels and probabilities of the held-out rows of all folds."""
        parts = [pd.DataFrame(fold.nb.predict_proba(fold.X), columns=fold.nb.classes_) for fold in fits.folds]
        proba = pd.concat(parts).reindex(columns=list(classes), fill_value=0.0).fillna(1.0 / len(classes))
        label = pd.Index(classes).get_indexer(pd.Index(np.concatenate([fold.y for fold in fits.folds])))
        return cls([str(c) for c in classes], label, proba.to_numpy(float), losses)

    def section(self, estimate: str) -> Section:
        """Return the section of the report; `estimate` names the estimate that the probabilities are from."""
        count = np.bincount(self.label, minlength=len(self.classes))
        most = int(np.argmax(count))
        has_rare = len(self.classes) == 2 and count.min() > 0
        about, table = self._rare_class(1 - most, estimate) if has_rare else self._each_class(estimate)
        text = _explain("majority", name=self.classes[most], share=count[most] / len(self.label), n=len(self.label))
        costs = [] if self.losses is None else [Paragraph(self._describe_costs(estimate))]
        return Section("What a decision rests on", (Paragraph(f"{text}{about}"), Table.from_frame(table), *costs))

    def _describe_costs(self, estimate: str) -> str:
        """Return a text on the cost of decisions by the probabilities, beside that of one action for all rows."""
        assert self.losses is not None
        loss, actions = self.losses.to_numpy(float), list(map(str, self.losses.index))
        risk = self.proba @ loss.T
        chosen, constant = risk.argmin(axis=1), loss[:, self.label].mean(axis=1)
        count = np.bincount(chosen, minlength=len(actions))
        taken = [f"“{name}” for {n:,} rows" for name, n in zip(actions, count, strict=True) if n]
        facts = {"taken": taken, "cost": loss[chosen, self.label].mean(), "expected": risk.min(axis=1).mean()}
        return _explain("costs", **facts, estimate=estimate, best=actions[constant.argmin()], least=constant.min())

    def _optimal_threshold(self, c: int) -> list[float]:
        """Return P(class c) from which the better of two actions changes, none without such losses of two classes."""
        if self.losses is None or self.losses.shape != (2, 2):
            return []
        # Loss of the first action less that of the second, if the row is of the class, and if it is not.
        of_class, of_other = (float(np.diff(self.losses.to_numpy(float)[::-1, k])[0]) for k in (c, 1 - c))
        return [of_other / (of_other - of_class)] if of_class * of_other < 0 else []

    def _rare_class(self, c: int, estimate: str) -> tuple[str, pd.DataFrame]:
        """Return a text on class `c`, the rarer of two, and its recall and precision at several thresholds."""
        name, is_class, p = self.classes[c], self.label == c, self.proba[:, c]
        n, found, rate = len(p), int(is_class.sum()), float(is_class.mean())
        # Standard error of the area if the probabilities say nothing (Mann and Whitney 1947).
        area = Difference(roc_auc_score(is_class, p) - 0.5, sqrt((n + 1) / (12.0 * found * (n - found))), NOISE)
        top = is_class[np.argsort(-p, kind="stable")[: max(1, round(_TOP * n))]]
        rows, optimal = [], self._optimal_threshold(c)
        thresholds = [t for t in _THRESHOLDS if t == 0.5 or t >= rate / 5][:_N_THRESHOLDS]
        for t in sorted({*thresholds, *optimal}, reverse=True):
            flagged = p >= t
            right = f"{is_class[flagged].mean():.3f}" if flagged.any() else "-"
            shown = f"{t:.3g} (least loss)" if t in optimal else f"{t:g}"
            rows.append([shown, f"{flagged.sum():,}", f"{is_class[flagged].sum() / found:.3f}", right])
        header = [f"P({name}) at least", "rows", f"of all {name}, found", f"of these rows, {name}"]
        facts = {"estimate": estimate, "found": found, "rate": rate, "mean": p.mean(), "gap": _gap(p - is_class)}
        return _explain("rare_class", name=name, area=area, top=top, **facts), pd.DataFrame(rows, columns=header)

    def _each_class(self, estimate: str) -> tuple[str, pd.DataFrame]:
        """Return a text on the accuracy, and recall and precision of each class, the most frequent ones first."""
        choice, confidence = self.proba.argmax(axis=1), self.proba.max(axis=1)
        confusion = confusion_matrix(self.label, choice, labels=range(len(self.classes)))
        count, chosen, hits = confusion.sum(axis=1), confusion.sum(axis=0), confusion.diagonal()
        rows = []
        for c in np.argsort(-count, kind="stable")[:_MOST_CLASSES]:
            shares = [f"{hits[c] / total:.3f}" if total else "-" for total in (count[c], chosen[c])]
            rows.append([self.classes[c], f"{count[c]:,}", f"{count[c] / len(choice):.3f}", f"{chosen[c]:,}", *shares])
        right = choice == self.label
        never = [name for name, n, k in zip(self.classes, count, chosen, strict=True) if n and not k]
        facts = {"estimate": estimate, "accuracy": right.mean(), "confidence": confidence.mean(), "never": never}
        text = _explain("each_class", **facts, gap=_gap(confidence - right), n=len(count), most=_MOST_CLASSES)
        return text, pd.DataFrame(rows, columns=["class", "rows", "rate", "predicted", "found", "right"])


def _gap(differences: np.ndarray) -> Difference:
    """Return the mean of stated less observed, row by row, with its standard error."""
    return Difference(float(differences.mean()), float(np.std(differences) / sqrt(len(differences))), NOISE)


# == Verdict, caveats and suggested commands for one analysed data set: rules that turn its numbers into sentences

NOISE, NOISE_OF_FOLDS = 2.0, 3.0
"""Standard errors from which a difference is more than noise; cross-validated standard errors are too small."""
LOGISTIC = "logistic regression"
"""Name of the baseline among the estimates."""
STRONG = 5
"""Log Bayes factor, in nats, from which the evidence of dependence is called strong."""
_MANY_CHANGES = 0.02
_LEVELS = ("categorical", "bernoulli")


@dataclass(frozen=True, eq=False)
class Difference:
    """Mean difference of a loss, its standard error, and how many standard errors are noise."""

    mean: float
    se: float
    noise: float

    @property
    def sign(self) -> int:
        """Sign of a difference beyond noise: -1 is better, 1 is worse; 0 within noise."""
        beyond = math.isfinite(self.se) and abs(self.mean) > self.noise * self.se
        return (-1 if self.mean < 0 else 1) if beyond else 0

    @property
    def text(self) -> str:
        """Mean and standard error, with two digits of the standard error."""
        if not math.isfinite(self.se):
            return f"{self.mean:+.2g}, with too few rows for a standard error"
        digits = decimals(self.se)
        return f"{self.mean:+.{digits}f} ± {self.se:.{digits}f}"


def decimals(sd: float) -> int:
    """Number of decimals that show two digits of a standard deviation; 4 if it is not positive and finite."""
    if not (math.isfinite(sd) and sd > 0):
        return 4
    return min(12, max(0, 1 - math.floor(math.log10(sd))))


@dataclass(frozen=True, eq=False)
class Base:
    """Scores of predictions that ignore the row.

    Parameters
    ----------
    label : str
        A most frequent class.
    accuracy : float
        Accuracy of always predicting `label`.
    brier : float
        Brier score of predicting the share of each class.
    gains : dict {str: (float, float)}
        Brier score of each estimate less `brier`, row by row, and the standard error of that difference.
    """

    label: str
    accuracy: float
    brier: float
    gains: Mapping[str, tuple[float, float]]


@dataclass(frozen=True, eq=False)
class Findings:
    """Numbers of an analysed data set on which the conclusion rests.

    Parameters
    ----------
    comparison : DataFrame
        Scores of `bayesnb.evaluation.compare_estimates`; its first row is maximum likelihood.
    rows, fits : int
        Number of rows that were scored, and of fits that scored them; several fits are cross-validation.
    base : Base
        Scores of predictions that ignore the row.
    model : str
        The classifier as a Python expression.
    kinds : dict
        Kind of each column.
    weights : bool
        Whether the user asked for weights.
    saved_by_fit : bool
        Whether the weighted classifier is `WeightedNB()`, as the command `fit` saves it, and not one around `model`.
    density_open : bool
        Whether `--numbers` would decide another density of some columns.
    moved : (int, int)
        Number of held-out rows whose label depends on the strength of the prior, and of all held-out rows; (0, 0) if
        this was not computed.
    dependent : (int, int)
        Number of pairs of features that were found to depend on each other given the class by strong evidence, and of
        all pairs; (0, 0) if this was not computed.
    weighting : (float, float) or None
        Brier score with weights less the score without weights, row by row, and the standard error.
    over_logistic : dict {str: (float, float)}
        Brier score of each estimate less that of logistic regression, row by row, and the standard error; empty if
        there is no logistic regression. Its row in `comparison` is not an estimate, and does not decide the verdict.
    target : str
        Name of the column of labels.
    left_out : tuple of str
        Columns that the model does not use.
    """

    comparison: pd.DataFrame
    rows: int
    fits: int
    base: Base
    model: str
    kinds: Mapping[str, str]
    weights: bool = True
    saved_by_fit: bool = False
    density_open: bool = False
    moved: tuple[int, int] = (0, 0)
    dependent: tuple[int, int] = (0, 0)
    weighting: tuple[float, float] | None = None
    over_logistic: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    target: str = "y"
    left_out: tuple[str, ...] = ()

    @cached_property
    def scores(self) -> dict[str, dict[Hashable, float]]:
        """Scores by estimate; estimates that agree share a name such as "mean = predictive"."""
        estimates = self.comparison.drop(index=LOGISTIC, errors="ignore").to_dict("index")
        return {str(name): scores for name, scores in estimates.items()}

    @property
    def first(self) -> str:
        """Name of maximum likelihood, the first estimate, to which all others are compared."""
        return next(iter(self.scores))

    @property
    def predictive(self) -> str:
        """Name of the predictive estimate, or the last estimate."""
        return self.named("predictive") or next(reversed(self.scores))

    @property
    def lowest(self) -> str:
        """Name of the estimate with the lowest Brier score."""
        return min(self.scores, key=lambda name: self.scores[name]["brier"])

    @property
    def winner(self) -> str | None:
        """Estimate with the lowest Brier score of all that beat maximum likelihood beyond noise; None if none does."""
        better = [name for name in self.scores if name != self.first and self.loss(name).sign < 0]
        return min(better, key=lambda name: self.scores[name]["brier"], default=None)

    @property
    def subject(self) -> str:
        """Estimate that the conclusion is about: the winner; else predictive, or the lowest if predictive is worse."""
        return self.winner or (self.lowest if self.loss(self.predictive).sign > 0 else self.predictive)

    @property
    def weighted_leads(self) -> bool:
        """Whether the winner, or else the lowest score, is weighted, and weights are better than none beyond noise."""
        return self.named(WEIGHTED) == (self.winner or self.lowest) and self.gain_by_weights.sign < 0

    @property
    def gain_by_weights(self) -> Difference:
        """Brier score with weights less the score without; NaN if there are no weights."""
        return self.difference(*(self.weighting or (math.nan, math.nan)))

    @property
    def noise(self) -> float:
        """Number of standard errors from which a difference is more than noise: 2, or 3 after several fits."""
        return NOISE_OF_FOLDS if self.fits > 1 else NOISE

    def difference(self, mean: float, se: float) -> Difference:
        """Return the difference of this mean and standard error, with this data set's threshold of noise."""
        return Difference(mean, se, self.noise)

    def named(self, estimate: str) -> str | None:
        """Return the name, such as "mean = predictive", that includes an estimate; None if the scores lack it."""
        return next((name for name in self.scores if estimate in name.split(" = ")), None)

    def loss(self, name: str, score: str = "brier") -> Difference:
        """Return the difference in Brier score, or "log_loss", between an estimate and maximum likelihood."""
        row = self.scores[name]
        return self.difference(row[f"{score}_difference"], row[f"{score}_difference_se"])

    def overconfidence(self, name: str) -> Difference:
        """Return stated confidence minus observed accuracy, with the standard error of a share of as many rows.

        It is √(s (1 - s)/n) for n rows, s = (accuracy · n + 1)/(n + 2), and so above 0 for an accuracy of 1.
        """
        row, rows = self.scores[name], self.rows
        share = (row["accuracy"] * rows + 1) / (rows + 2)  # An accuracy of 1 has a standard error, too.
        return self.difference(row["confidence"] - row["accuracy"], math.sqrt(share * (1 - share) / rows))


@dataclass(frozen=True)
class Step:
    """Suggestion and its reason, and what to type: options to add to the command, or an expression in Python."""

    why: str
    code: str


@dataclass(frozen=True)
class Conclusion:
    """Verdict on the estimates, their confidence against their accuracy, caveats, and what to try next.

    `about` says what X and y are in the Python expressions of `steps`.
    """

    verdict: str
    confidence: tuple[str, ...]
    details: tuple[str, ...]
    steps: tuple[Step, ...]
    about: str


def conclude(findings: Findings) -> Conclusion:
    """Verdict, caveats and suggested commands for one analysed data set.

    The Brier score decides. An estimate wins if it is better than maximum likelihood by more than two standard errors
    of their paired difference (three if cross-validated), and has the lowest score of all such estimates.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bayesnb import GaussianNB, compare_estimates
    >>> from bayesnb.cli.comparison import Base, Findings, conclude
    >>> X, y = load_iris(return_X_y=True)
    >>> table = compare_estimates(GaussianNB(), X[::2], y[::2], X[1::2], y[1::2])
    >>> conclude(Findings(table, 75, 1, Base("0", 1 / 3, 2 / 3, {}), "GaussianNB()", {})).verdict[:20]
    'No estimate beats ma'
    """
    fill = partial(fill_template, "conclusion.txt", f=findings)
    estimates = dict.fromkeys([findings.subject, findings.predictive])
    confidence = tuple(fill("confidence", estimate=name) for name in estimates)
    details = fill_list("conclusion.txt", "details", f=findings)
    return Conclusion(fill("verdict"), confidence, details, tuple(_steps(findings)), fill("about"))


def _steps(f: Findings) -> Iterator[Step]:
    """Yield suggestions on weights, on the prior's strength, and on structures or densities for dependent features."""
    kinds, weighted, several = list(f.kinds.values()), f.named(WEIGHTED), len(f.kinds) > 1
    if not f.weights and several:
        why = "You switched weights off. Naive Bayes counts evidence more than once if several features carry it; "
        yield Step(f"{why}weights can correct that.", "--weights auto")
    if f.weighted_leads:
        why = "won" if f.winner else "have the lowest score, and are better than no weights by more than noise"
        model = "" if f.saved_by_fit else f.model
        yield Step(f"Weights {why}: predict with weights.", f"bayesnb.WeightedNB({model}).fit(X, y)")
    alpha = next((part[6:] for part in (f.winner or "").split(" = ") if part.startswith("alpha=")), None)
    moved, rows = f.moved
    if alpha is not None:
        yield Step(f"The prior alpha={alpha} won: use it in the model.", f"--alpha {alpha}")
    elif moved > max(1, _MANY_CHANGES * rows):
        why = f"The predicted label of {moved:,} of {rows:,} held-out rows depends on the strength of the prior: "
        tuned = f"bayesnb.tune_alpha({f.model}.fit(X, y), X, y).estimator"
        code = f"bayesnb.WeightedNB({tuned}).fit(X, y)" if f.weighted_leads and "binned" not in kinds else tuned
        yield Step(f"{why}choose the strength by leave-one-out.", code)
    # Structures and densities are suggested if features depend on each other and weights have not corrected that.
    helped, (strong, pairs) = f.gain_by_weights.sign < 0, f.dependent
    corrected = helped and weighted is not None and f.overconfidence(weighted).sign <= 0
    if not (f.weights and several and strong) or corrected:
        return
    because = "are not better than no weights by more than noise" if weighted else "were not fitted"
    evidence = f"at least {strong:,} of {pairs:,} pairs of features depend on each other given the class"
    why = f"There is strong evidence that {evidence}, and weights {'are still overconfident' if helped else because}: "
    if "multinomial" not in kinds and not (weighted and f.saved_by_fit):
        numbers = "" if sum(kind in _LEVELS for kind in kinds) > 1 else ', numbers="binned"'
        code = "bayesnb.WeightedNB()" if weighted else f'bayesnb.TAN("evidence"{numbers})'
        yield Step(f"{why}let features have other features as parents.", f"{code}.fit(X, y)")
        why = "The densities may also be wrong: "
    if f.density_open:
        yield Step(f"{why}let each column of numbers have a density of its own shape.", "--numbers auto")


# == Comparison of estimates: fit naive Bayes, score its estimates on held-out rows, tabulate its parameters

Made = TypeVar("Made")
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
    fits: Fits[NaiveBayesClassifier]
    weighted: Fits[WeightedNB] | None
    findings: Findings
    held_out: HeldOut
    parameters: pd.DataFrame | None
    notes: Sequence[str]

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """Predictions of the held-out rows, their probability with interval, and the parts of their entropy."""

        def describe(fold: Fold[NaiveBayesClassifier]) -> pd.DataFrame:
            nb, X, proba = fold.nb, fold.X, fold.nb.predict_proba(fold.X)
            top = np.arange(len(X)), proba.argmax(axis=1)
            lower, upper = predict_interval(nb, X, prob=self.settings.prob)
            columns = {"probability": proba[top], "lower": lower[top], "upper": upper[top]}
            frame = pd.DataFrame({"prediction": nb.classes_[top[1]], **columns})
            return frame.join(decompose_uncertainty(nb, X).reset_index(drop=True))

        return describe_held_out(self.fits, describe)


def describe_held_out(fits: Fits[NB], describe: Callable[[Fold[NB]], pd.DataFrame]) -> pd.DataFrame:
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

    def attempt(what: str, make: Callable[[], Made]) -> Made | None:
        """Return `make()`; None, with a note that has the reason, if the library refuses."""
        try:
            return make()
        except ValueError as error:
            notes.append(f"No {what}. {error}")
            return None

    kinds = _decided_kinds(data, settings)
    density_open = UNDECIDED in data.kinds.values() and settings.numbers == "gaussian"
    with blamed_on(data.name, (ValueError, TypeError)):
        has_weights = settings.weights != "none"
        weighted = attempt("weights", lambda: _fit_weighted(data, settings, notes)) if has_weights else None
        with internal_fits():
            fits = fit_folds(classifier(data, settings), data, settings)
        data = replace(data, kinds=cast(MixedNB, fits.nb).kinds_ if UNDECIDED in kinds.values() else kinds)
        priors = {f"alpha={a:g}": a for a in (1.0, 0.5) if a != settings.alpha}  # Laplace's and Jeffreys's
        has_levels = not NUMBERS.keys() >= set(data.kinds.values())
        parts = [(fold.nb, fold.X, fold.y) for fold in fits.folds]
        others = {} if weighted is None else {WEIGHTED: [fold.nb for fold in weighted.folds]}
        others |= attempt(LOGISTIC, lambda: {LOGISTIC: _fit_logistic(data, fits)}) or {}
        scored = score_fitted(fits.nb, parts, priors if has_levels else {}, data.name, others)
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
        saved_by_fit=_is_saved_by_fit(data, settings),
        density_open=density_open,
        weighting=scored.difference(WEIGHTED, "predictive") if WEIGHTED in scored.rows else None,
        over_logistic={name: scored.difference(first, LOGISTIC) for first, name in names.items() if LOGISTIC in others},
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


def _fit_weighted(data: Dataset, settings: Settings, notes: list[str]) -> Fits[WeightedNB]:
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
    model = None if _is_saved_by_fit(data, settings) else classifier(data, settings)
    nb = WeightedNB(model, settings.weights, seed=settings.seed)
    with warnings.catch_warnings(), internal_fits():
        warnings.simplefilter("ignore", NoWeightsWarning)  # issued by each fold
        fits = fit_folds(nb, data, settings)
    plain = [fitted.weights_ is None for fitted in (fits.nb, *(fold.nb for fold in fits.folds))]
    if plain[0]:
        raise ValueError(f"Weights need at least {FEWEST_EVENTS} rows outside the largest class.")
    if any(plain):
        few = f"{sum(plain)} of {len(plain)} fits have too few rows for weights, and predict without them."
        notes.append(f"weighted: {few}")
    return fits


def _is_saved_by_fit(data: Dataset, settings: Settings) -> bool:
    """Return whether weights are those of `WeightedNB()`: the values decide on kinds, and no option on the model."""
    options = settings.alpha, settings.class_alpha, settings.numbers, settings.estimator
    return data.by_value and options == (1.0, 1.0, "gaussian", "auto")


def classifier(data: Dataset, settings: Settings) -> NaiveBayesClassifier:
    """Make the unfitted classifier for the kinds of columns: `MixedNB`, or that of the kind if there is only one.

    It is `MixedNB`, too, by `settings.estimator`, or if the density of numbers is still to be chosen.
    """
    kinds = _decided_kinds(data, settings)
    kind, *others = {*kinds.values()}
    is_mixed = others or kind == UNDECIDED or settings.estimator == "mixed"
    nb = MixedNB() if is_mixed else _OF_ONE_KIND[kind]()
    options: dict[str, object] = {kind: [name for name, k in kinds.items() if k == kind] or None for kind in KINDS}
    options |= {"alpha": settings.alpha, "class_alpha": settings.class_alpha, "numbers": settings.numbers}
    options["categories"] = dict(data.levels) or "auto"
    return nb.set_params(**{name: options[name] for name in nb.get_params(deep=False).keys() & options.keys()})


def _decided_kinds(data: Dataset, settings: Settings) -> dict[str, str]:
    """Return {column: kind}, undecided numbers replaced by the density in the settings unless that is "auto"."""
    numbers = UNDECIDED if settings.numbers == "auto" else settings.numbers
    return {name: numbers if kind == UNDECIDED else kind for name, kind in data.kinds.items()}


def _fit_logistic(data: Dataset, fits: Fits[NaiveBayesClassifier]) -> list[Pipeline]:
    """Fit logistic regression to the training rows of each fold: standardized numbers, and indicators of levels.

    Missing numbers become the mean of their column, and missing levels have an indicator.

    Raises
    ------
    ValueError
        If the rows are not in memory, cells times classes are more than 20 million, or scikit-learn refuses the rows.
    """
    if len(data.rows.y) < data.n_rows:
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
