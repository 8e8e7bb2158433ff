"""Verdict, caveats and suggested commands for one analysed data set: rules that turn its numbers into sentences."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import pandas as pd

from bayesnb.cli.document import fill_list, fill_template
from bayesnb.evaluation import WEIGHTED

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
    density_open: bool = False
    moved: tuple[int, int] = (0, 0)
    dependent: tuple[int, int] = (0, 0)
    weighting: tuple[float, float] | None = None
    over_logistic: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    target: str = "y"
    left_out: tuple[str, ...] = ()

    @cached_property
    def scores(self) -> dict[Any, dict[Hashable, float]]:
        """Scores by estimate; estimates that agree share a name such as "mean = predictive"."""
        return self.comparison.drop(index=LOGISTIC, errors="ignore").rename(index=str).to_dict("index")

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
    >>> from bayesnb.cli.conclusion import Base, Findings, conclude
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
        yield Step(f"Weights {why}: predict with weights.", f"bayesnb.WeightedNB({f.model}).fit(X, y)")
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
    if "multinomial" not in kinds:
        numbers = "" if sum(kind in _LEVELS for kind in kinds) > 1 else ', numbers="binned"'
        code = "bayesnb.WeightedNB()" if weighted else f'bayesnb.TAN("evidence"{numbers})'
        yield Step(f"{why}let features have other features as parents.", f"{code}.fit(X, y)")
        why = "The densities may also be wrong: "
    if f.density_open:
        yield Step(f"{why}let each column of numbers have a density of its own shape.", "--numbers auto")
