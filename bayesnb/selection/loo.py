"""Exact leave-one-out: each row scored by the posterior of all other rows, without refits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bayesnb._util.arguments import require_choice
from bayesnb._util.terminal import card, table
from bayesnb.fitted import scoring
from bayesnb.fitted.state import (
    WEIGHTS,
    Classifier,
    PriorOf,
    counted_rows,
    leave_one_out,
    require_average,
    require_leave_one_out,
)
from bayesnb.model import Estimate

Kind = Literal["label", "row"]

_SHOWN = 3
_MEANING = (
    "Exact predictions of the label of each row from the other rows; below, the rows with the least probable labels. "
    "The standard error assumes independent rows; if two models differ by less than 4 nats, it is unreliable."
)


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Leave-one-out scores of each row in nats, valid if naive Bayes holds and rows are exchangeable.

    Attributes
    ----------
    pointwise : (N,) array
        log p(y_i | x_i, D₋ᵢ) of the label.
    row_pointwise : (N,) array
        log p(x_i, y_i | D₋ᵢ) of the row, multinomial coefficients and -log x! included. NaN for `AODE`, whose members
        change from row to row, and where terms are weighted, as weighted terms have no density of rows.
    log_proba : (N, C) array
        log P(class | x_i, D₋ᵢ), classes in the order of `classes`; NaN where it is undefined.
    weight : (N,) array
        Replication counts; all replications of a row are left out together, and the row is scored once.
    label : (N,) int array
        Index of the class of each row.
    classes : (C,) array
        Labels of the classes.
    notes : tuple of str
        Choices on these rows that the scores are conditional on, as far as they are known.

    Examples
    --------
    The rows whose labels are least probable given the other rows:

    >>> from bayesnb import GaussianNB, loo
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> scores = loo(GaussianNB().fit(X, y), X, y)
    >>> scores.pointwise.argsort()[:3], scores.pointwise.min().round(2)
    (array([106, 119,  77]), np.float64(-4.22))
    >>> round(-scores.elpd / 150, 3), round(scores.accuracy, 3)  # mean log loss of a label, accuracy
    (0.129, 0.953)
    """

    pointwise: np.ndarray
    row_pointwise: np.ndarray
    log_proba: np.ndarray
    weight: np.ndarray
    label: np.ndarray
    classes: np.ndarray
    notes: tuple[str, ...] = ()

    @property
    def elpd(self) -> float:
        """Expected log pointwise predictive density, Σ w_i log p(y_i | x_i, D₋ᵢ)."""
        return float(self.weight @ self.pointwise)

    @property
    def se(self) -> float:
        """Standard error of `elpd` if rows are independent, √(Σw · Var).

        The standard error ignores that the scores of different rows depend on the same data. If two models differ by
        less than 4, it is unreliable (Sivula, Magnusson & Vehtari, 2020).
        """
        return _standard_error(self.weight, self.pointwise)

    @property
    def accuracy(self) -> float:
        """Fraction of the rows whose label is the most probable one given the other rows; undefined rows are errors."""
        is_defined = ~np.isnan(self.log_proba).any(axis=1)
        return float(np.average(is_defined & (self.log_proba.argmax(axis=1) == self.label), weights=self.weight))

    def to_elpd(self, kind: Kind = "label") -> Any:
        """Convert to the input of `arviz.compare`: {"a": loo(a, X, y).to_elpd(), "b": loo(b, X, y).to_elpd()}.

        Parameters
        ----------
        kind : {"label", "row"}
            Whether `pointwise` or `row_pointwise` is compared, each times its weight.

        Returns
        -------
        arviz.ELPDData
            Exact scores, and so without Pareto k; `p`, the effective number of parameters, is NaN.

        Examples
        --------
        >>> from bayesnb import GaussianNB, loo
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> type(loo(GaussianNB().fit(X, y), X, y).to_elpd()).__name__
        'ELPDData...'
        """
        from bayesnb.inference_data import elpd_data

        require_choice("kind", kind, ("label", "row"))
        pointwise = self.pointwise if kind == "label" else self.row_pointwise
        if np.isnan(pointwise).any() and kind == "row":
            raise NotImplementedError("to_elpd: AODE and weighted terms have no density of rows. Pass kind='label'.")
        return elpd_data(self.weight * pointwise, _standard_error(self.weight, pointwise))

    @property
    def _rows(self) -> str:
        """Number of rows, or their total weight, as text such as "150 rows"."""
        return f"{self.weight.sum():g} rows" if (self.weight != 1).any() else f"{len(self.weight)} rows"

    def __repr__(self) -> str:
        scores = f"elpd {self.elpd:.3f} ± {self.se:.3f}, accuracy {self.accuracy:.4f}"
        return "\n".join((f"LeaveOneOut({self._rows}, {scores})", *self.notes))

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: elpd, log loss, accuracy, and the rows with the least probable labels."""
        elpd, loss = ("elpd, nats", self.elpd, f"± {self.se:.4g}"), -self.elpd / self.weight.sum()
        total = [elpd, ("log loss of a label", loss, ""), ("accuracy", self.accuracy, "")]
        worst = self.pointwise.argsort()[:_SHOWN]
        rows = [(i, self.classes[self.label[i]], float(np.exp(self.pointwise[i]))) for i in worst.tolist()]
        least = table(rows, ("row", "its label", "P(label | the others)"))
        return card("LeaveOneOut", self._rows, table(total), least, notes=(_MEANING, *self.notes))


def loo(
    nb: Classifier,
    X: object,
    y: object,
    sample_weight: object = None,
    *,
    estimate: Estimate | None = None,
    prior: PriorOf = "derived",
) -> LeaveOneOut:
    """Compute exact leave-one-out scores of the rows that `nb` was fitted on, in one pass.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier with a posterior, or an average of such classifiers.
    X, y, sample_weight : array-likes
        Rows that `nb` has counted, all or some of them, with the labels and weights with which they were counted.
    estimate : {"predictive", "mean"}, optional
        Estimate of the parameters given the other rows: integrated out, or plugged in at the posterior mean. Default:
        `nb.estimate`.
    prior : {"derived", "fixed"}
        Treatment of a prior that is derived from the data, such as the default priors of Gaussian and Poisson features:
        "derived" derives it from the other rows, as a refit does; "fixed" keeps `nb.prior_`, whose scale depends on the
        row and its label: with few rows and many features the scores are then too good.

    Returns
    -------
    LeaveOneOut
        Scores of each row, and their sums.

    Raises
    ------
    ValueError
        If the counts show that the rows were not counted; if `estimate` is "map" or "mle".
    NotImplementedError
        If `nb` is a `WeightedNB` whose weights were fitted to rows that it has counted: leave-one-out would keep them.

    Notes
    -----
    A row of class y and weight w is removed from the statistics of class y, so that with counts x the concentration is
    α'_y - w x; the other classes do not change:

        p(x | y, D₋ᵢ) = B(α'_y - w x + x) / B(α'_y - w x).

    A derived prior is a function of the statistics, so that the row is removed from it too, and then all classes
    change. These are the scores of N refits to the other rows *under the same encoding*: classes and levels are kept,
    also a level that no other row has, as if `classes` and `categories` had been declared.

    Leave-one-out assumes exchangeable rows. Scores are too good if rows have duplicates, or if rows depend on time:
    then score rows of other groups or later rows instead. Scores are conditional on the prior, and on every other
    choice on the rows: a tuned α, a tree, the densities that `MixedNB` chooses by the labels, the cells of `BinnedNB`,
    a vocabulary. Each may make the scores too good (for 30 rows of noise in 40 columns, the log loss of
    `TAN("evidence")` is 1.10 by leave-one-out and 2.01 on new rows); `notes` name all of these but the last, and
    `permutation_null` shows the same choice for permuted labels. Scores lose precision if one outlier makes up all but
    1e-10 of the sum of squares of its class.

    References
    ----------
    Vehtari, Gelman & Gabry, *Practical Bayesian model evaluation using leave-one-out cross-validation and WAIC*, Stat.
    Comput. 27 (2017).

    Examples
    --------
    Predictions of each label from the other rows; with the row among the data they are too good:

    >>> from bayesnb import GaussianNB, loo
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> nb = GaussianNB().fit(X, y)
    >>> loo(nb, X, y)
    LeaveOneOut(150 rows, elpd -19.357 ± 6.697, accuracy 0.9533)
    >>> float(nb.predict_log_proba(X)[range(150), y].sum().round(3))  # with each row among the data
    -16.446
    """
    fitted = require_leave_one_out(nb, "loo")
    if WEIGHTS in fitted.chosen:
        raise NotImplementedError(
            f"loo: the weights of {fitted.name} were fitted to these labels, and leave-one-out would keep them, so "
            "that the loss would be too low. Use nb.expected_log_loss_, loo(nb.estimator_, X, y) without weights, or "
            "scikit-learn's cross_val_predict(nb, X, y, method='predict_proba')."
        )
    estimate = require_average(fitted.estimate if estimate is None else estimate)
    counted = counted_rows(fitted, X, y, sample_weight, "loo")
    rows, label, weight = counted
    index, row = np.arange(len(label)), np.full(len(label), np.nan)
    joint = leave_one_out(fitted, counted, estimate, prior)
    if fitted.member_names is None and fitted.prior.weights is None:
        row = joint[index, label] + scoring.log_base(rows, len(label))
    log_proba = scoring.apply(scoring.log_proba, joint)
    chosen, classes = " and ".join(fitted.chosen), fitted.encoding.classes.array()
    note = f"The same rows were used to choose {chosen}, so that these scores are optimistic; see `permutation_null`."
    notes = (note,) if chosen else ()
    return LeaveOneOut(log_proba[index, label], row, log_proba, weight, label, classes, notes)


def _standard_error(weight: np.ndarray, pointwise: np.ndarray) -> float:
    """Compute √(Σ_i w_i (s_i - mean)²), the standard error of Σ_i w_i s_i for independent scores s (N,)."""
    mean = np.average(pointwise, weights=weight)
    return float(np.sqrt(weight @ (pointwise - mean) ** 2))
