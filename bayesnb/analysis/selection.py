"""Model selection: leave-one-out, permuted labels, evidence, prequential scores, and the strength of a prior."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise
from numbers import Real
from typing import Any, Literal

import jax
import numpy as np
import pandas as pd
from sklearn.utils import shuffle

from bayesnb._util.arguments import (
    Seed,
    bad_argument,
    read_seed,
    require_choice,
    require_integer,
    require_interval,
    shown,
)
from bayesnb._util.arrays import MOST_NUMBERS, require_memory
from bayesnb._util.html import card, table
from bayesnb._util.precision import float64
from bayesnb._util.terminal import progress
from bayesnb._util.warnings import warn
from bayesnb.encoding.units import describe_copies, find_copies
from bayesnb.families.arrays import kernel
from bayesnb.fitted import counting, scoring
from bayesnb.fitted.state import (
    WEIGHTS,
    Adaptable,
    Classifier,
    CountedRows,
    Fitted,
    PriorOf,
    Tunable,
    choose_prior,
    counted_rows,
    leave_one_out,
    require_average,
    require_evidence,
    require_leave_one_out,
    require_posterior,
)
from bayesnb.model import Estimate, NaiveBayes, Statistics

# == Exact leave-one-out: each row scored by the posterior of all other rows, without refits =======

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
        Choices on these rows that the scores are conditional on, as far as they are known, and copies among the rows.

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
        from bayesnb.uncertainty.arviz import elpd_data

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

    Leave-one-out assumes exchangeable rows. Scores are too good if rows are copies of others, as in an oversampled
    class, because the copies of a row remain when it is left out; `notes` say so. Count each row once then, with its
    `sample_weight`, which is left out as a whole. Scores are too good, too, if rows come in groups or depend on time:
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
    n_classes = len(fitted.encoding.classes)
    what = f"Scores of {len(label):,} rows in {n_classes:,} classes"
    require_memory(4 * len(label) * n_classes, what, "Score with fewer classes, or by cross-validation.", MOST_NUMBERS)
    index, row = np.arange(len(label)), np.full(len(label), np.nan)
    joint = leave_one_out(fitted, counted, estimate, prior)
    if fitted.member_names is None and fitted.prior.weights is None:
        row = joint[index, label] + scoring.log_base(rows, len(label))
    log_proba = scoring.apply(scoring.log_proba, joint)
    chosen, classes = " and ".join(fitted.chosen), fitted.encoding.classes.array()
    note = f"The same rows were used to choose {chosen}, so that these scores are optimistic; see `permutation_null`."
    notes = (note,) if chosen else ()
    if copies := describe_copies(find_copies(fitted.table(X)), label):
        notes = (*notes, f"{copies}, and remain when a row is left out, so that these scores are optimistic.")
    return LeaveOneOut(log_proba[index, label], row, log_proba, weight, label, classes, notes)


def _standard_error(weight: np.ndarray, pointwise: np.ndarray) -> float:
    """Compute √(Σ_i w_i (s_i - mean)²), the standard error of Σ_i w_i s_i for independent scores s (N,)."""
    mean = np.average(pointwise, weights=weight)
    return float(np.sqrt(weight @ (pointwise - mean) ** 2))


# == Null distribution of a score over permutations of the labels ==================================


@dataclass(frozen=True, eq=False)
class PermutationNull:
    """A statistic of labelled rows, and its distribution over permutations of the labels.

    Attributes
    ----------
    observed : float
        Score of the observed labels.
    null : (P,) array
        Scores of permuted labels.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> X, y = [["a"], ["b"], ["a"], ["b"]] * 3, ["p", "q", "p", "q"] * 3
    >>> bnb.permutation_null(lambda y: bnb.CategoricalNB().fit(X, y).log_evidence_, y, permutations=19)
    PermutationNull(observed -13.285; 19 permutations: median -18.702, 90% within [-19.277, -18.518]; p = 0.05)
    """

    observed: float
    null: np.ndarray

    @property
    def p_value(self) -> float:
        """(1 + number of permutations that reach `observed`) / (1 + P): valid for any number P, and never 0.

        An undefined score, NaN, counts as one that reaches `observed`.
        """
        return float((1 + np.sum(~(self.null < self.observed))) / (1 + len(self.null)))

    def __repr__(self) -> str:
        low, middle, high = np.quantile(self.null, [0.05, 0.5, 0.95])
        return (
            f"PermutationNull(observed {self.observed:.3f}; {len(self.null)} permutations: median {middle:.3f}, 90% "
            f"within [{low:.3f}, {high:.3f}]; p = {self.p_value:.3g})"
        )


def permutation_null(
    procedure: Callable[[object], float], y: object, permutations: int = 99, seed: Seed = 0
) -> PermutationNull:
    """Compute the distribution of a score over permuted labels, with every choice on the rows made anew.

    Parameters
    ----------
    procedure : function of labels
        The whole computation of the score, such as a log Bayes factor, an elpd or a difference of two, including the
        choice of structures, strengths of priors and features from the labels that are passed.
    y : array-like of shape (N,)
        Labels.
    permutations : int, default 99
        Number of permutations, P.
    seed : int, JAX key, RandomState or Generator
        Seed of the permutations.

    Returns
    -------
    PermutationNull
        Score of the observed labels, scores of the permuted ones, and the p-value.

    Notes
    -----
    The evidence and `loo` of a model with a structure or an α that was chosen on the same rows are too good, and no
    formula tells by how much. Permuted labels do not depend on the columns, so that the scores show the effect of the
    choice alone. Columns keep their dependence on each other: for a null hypothesis of independent columns see
    `check_independence`.

    References
    ----------
    Phipson & Smyth, *Permutation p-values should never be zero*, Stat. Appl. Genet. Mol. Biol. 9 (2010).

    Examples
    --------
    >>> import bayesnb as bnb
    >>> X, y = [["a", "u"], ["b", "u"], ["a", "v"], ["b", "v"]] * 3, ["p", "p", "q", "q"] * 3
    >>> def elpd(y):
    ...     return bnb.loo(bnb.TAN("evidence").fit(X, y), X, y).elpd
    >>> bnb.permutation_null(elpd, y, permutations=19).p_value
    0.05
    """
    require_integer("permutations", permutations)
    seed = read_seed(seed)
    if not callable(procedure):
        raise TypeError(f"procedure must be callable as procedure(y), and return a score; it is {shown(procedure)}.")
    random = np.random.RandomState(np.random.MT19937(seed))
    null = []
    with progress("permutations", permutations) as tick:
        for _ in range(permutations):
            null.append(float(procedure(shuffle(y, random_state=random))))
            tick()
    return PermutationNull(float(procedure(y)), np.array(null))


# == Bayes factors of two models of the same data ==================================================


@dataclass(frozen=True)
class BayesFactor:
    """Bayes factor: ratio of the probability of the data under the first model to that under the second.

    Attributes
    ----------
    log : float
        log p(X, y | first) - log p(X, y | second), in nats.
    notes : tuple of str
        Choices on the data that the Bayes factor is conditional on.

    Examples
    --------
    >>> from bayesnb import CategoricalNB, bayes_factor
    >>> X, y = [["red"], ["green"]] * 4, ["ripe", "raw"] * 4
    >>> factor = bayes_factor(CategoricalNB(alpha=1).fit(X, y), CategoricalNB(alpha=10).fit(X, y))
    >>> round(factor.log, 2), round(factor.value, 1), factor.notes
    (1.81, 6.1, ())
    """

    log: float
    notes: tuple[str, ...]

    @property
    def value(self) -> float:
        """Bayes factor on the natural scale; inf if it exceeds 1e308."""
        with np.errstate(over="ignore"):
            return float(np.exp(self.log))

    def __repr__(self) -> str:
        preferred = "first" if self.log > 0 else "second"
        odds = f"10^{abs(self.log) / np.log(10):.3g} for the {preferred}"
        return "\n".join((f"BayesFactor(log = {self.log:.3f} nats, {odds})", *self.notes))


def bayes_factor(nb1: Classifier, nb2: Classifier) -> BayesFactor:
    """Compute the Bayes factor p(X, y | first model) / p(X, y | second model) of two models of the same rows.

    Parameters
    ----------
    nb1, nb2 : fitted classifiers of bayesnb
        Classifiers fitted to the same rows and columns, encoded in the same way.

    Returns
    -------
    BayesFactor
        Log Bayes factor, and the choices on the data that it is conditional on.

    Raises
    ------
    ValueError
        If rows, columns or encodings differ: densities of numbers, and probabilities of levels, of counts and of
        presence, cannot be compared. If both evidences are zero.

    Notes
    -----
    The function compares sufficient statistics: if these are equal, it assumes that the rows are the same. A Bayes
    factor depends on the priors of the parameters, however many rows are given, and does not show whether either model
    is right; see `loo` and `check_independence`. A structure (of `TAN`, for example) or a strength of the prior (by
    `tune_alpha`) that was chosen on the same rows makes the Bayes factor too favourable: `notes` say where that is so,
    and `permutation_null` shows the same choice for permuted labels.

    References
    ----------
    Kass & Raftery, *Bayes factors*, JASA 90 (1995).

    Examples
    --------
    Does the second column depend on the first, once the class is known?

    >>> from bayesnb import NetworkNB, bayes_factor
    >>> X, y = [["a", "u"], ["a", "u"], ["b", "v"], ["b", "v"]] * 3, ["p", "q", "p", "q"] * 3
    >>> bayes_factor(NetworkNB({1: 0}).fit(X, y), NetworkNB({}).fit(X, y))
    BayesFactor(log = 4.338 nats, 10^1.88 for the first)
    """
    models = [require_evidence(nb, "bayes_factor") for nb in (nb1, nb2)]
    _require_same(*models)
    first, second = (fitted.log_evidence for fitted in models)
    if np.isneginf(first) and np.isneginf(second):
        raise ValueError("bayes_factor: both evidences are zero, because of zero concentrations. Use proper priors.")
    notes = []
    for which, fitted in zip(("first", "second"), models, strict=True):
        if any(callable(block) for block in fitted.empirical_prior.blocks):
            notes.append(f"The prior of the {which} model was derived from these data.")
        if chosen := " and ".join(fitted.chosen):
            note = f"The same rows were used to choose {chosen} of the {which} model, which favours it"
            notes.append(f"{note}; see `permutation_null`.")
    weights = models[0].statistics.class_count
    if (weights != np.round(weights)).any():
        notes.append("Weights of rows are fractional, so that the evidences are pseudo-evidences.")
    return BayesFactor(first - second, tuple(notes))


def _require_same(first: Fitted, second: Fitted) -> None:
    """Raise ValueError unless two models have the same classes, columns, levels and sufficient statistics."""
    for (what, value), (_, other) in zip(_contents(first), _contents(second), strict=True):
        if isinstance(value, list) and value != other:
            raise ValueError(
                f"bayes_factor: the {what} differ between the models: {shown(value)} and {shown(other)}. "
                "Evidences of differently encoded data are not comparable. Fit both to the same kinds of columns."
            )
        leaves = () if isinstance(value, list) else zip(*map(jax.tree.leaves, (value, other)), strict=True)
        if not all(np.allclose(a, b, rtol=1e-9, atol=1e-12) for a, b in leaves):
            differ = f"The statistics of their {what} differ: {shown(value)} and {shown(other)}."
            raise ValueError(f"bayes_factor: both models must be fitted on the same rows. {differ}")


def _contents(fitted: Fitted) -> list[tuple[str, object]]:
    """Return (name, list) of the encoding, then (name, statistics) of classes and of each block, without parents."""
    bases = [block.base for block in fitted.encoding.blocks]
    columns = [(j, f"{name} ({base.kind})") for base in bases for j, name in zip(base.index, base.names, strict=True)]
    contents: list[tuple[str, object]] = [("classes", list(fitted.encoding.classes.values))]
    contents += [("columns", [name for _, name in sorted(columns)])]
    contents += [("blocks of columns", [base.kind for base in bases])]
    contents += [("levels", [list(base.axis()[1] or ()) for base in bases]), ("classes", fitted.statistics.class_count)]
    for block, counts in zip(fitted.encoding.blocks, fitted.statistics.blocks, strict=True):
        contents.append((f"{block.base.kind} columns", block.counts_without_parents(counts)))
    return contents


# == Evidence as a learning curve: each row is predicted from the rows before it ===================


@dataclass(frozen=True, eq=False)
class Prequential:
    """Log evidence of the first rows, for increasing numbers of rows, in nats.

    Attributes
    ----------
    sizes : (K,) int array
        Numbers of rows, from 0 to N.
    log_evidence : (K,) array
        log p(x_1, y_1, …, x_n, y_n), each row replicated by its weight: from 0 to `estimator.log_evidence_`.
    label : (N,) int array
        Index of the class of each row.
    weight : (N,) array
        Replication count of each row.
    estimator : classifier
        The classifier that was passed.

    Examples
    --------
    The loss of a row falls from batch to batch, as more rows have been seen before it:

    >>> import numpy as np
    >>> from bayesnb import CategoricalNB, prequential
    >>> X, y = [["red"], ["green"]] * 6, ["ripe", "raw"] * 6
    >>> curve = prequential(CategoricalNB().fit(X, y), X, y, points=4)
    >>> (-np.diff(curve.log_evidence) / np.diff(curve.sizes)).round(2)
    array([1.43, 1.15, 0.94, 0.92])
    """

    sizes: np.ndarray
    log_evidence: np.ndarray
    label: np.ndarray
    weight: np.ndarray
    estimator: Classifier

    def __repr__(self) -> str:
        name = type(self.estimator).__name__
        return f"Prequential({name}, {len(self.label)} rows, log evidence {self.log_evidence[-1]:.3f} nats)"


def prequential(nb: Classifier, X: object, y: object, sample_weight: object = None, *, points: int = 50) -> Prequential:
    """Compute the log evidence of the first rows for increasing numbers of rows, a learning curve by the chain rule.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier with an exact evidence.
    X, y, sample_weight : array-likes
        All rows that `nb` was fitted on, with their labels and weights.
    points : int, default 50
        Number of points of the curve, evenly spaced up to N rows; all numbers of rows if N is smaller.

    Returns
    -------
    Prequential
        Log evidence for each number of rows.

    Raises
    ------
    ValueError
        If the counts show that the rows are not those that were counted; if `points` is not a positive integer.

    Notes
    -----
    With the prior fixed at `nb.prior_`, also where it was derived from all rows, the evidence is the product of the
    predictions of each row from the rows before it:

        log p(D) = Σ_n log p(x_n, y_n | x_1, y_1, …, x_{n-1}, y_{n-1}).

    So the difference of the curves of two models ends at their log Bayes factor. The curve
    depends on the order of the rows, its end does not; shuffle the rows where their order has no meaning, above all
    where they are sorted by class.

    References
    ----------
    Dawid, *Statistical theory: the prequential approach*, J. R. Stat. Soc. A 147 (1984).

    Examples
    --------
    >>> from bayesnb import CategoricalNB, prequential
    >>> X, y = [["red"], ["green"]] * 6, ["ripe", "raw"] * 6
    >>> curve = prequential(CategoricalNB().fit(X, y), X, y, points=4)
    >>> curve.sizes, curve.log_evidence.round(2)
    (array([ 0,  3,  6,  9, 12]), array([  0.  ,  -4.28,  -7.71, -10.54, -13.29]))
    """
    fitted = require_evidence(nb, "prequential")
    require_integer("points", points)
    counted = counted_rows(fitted, X, y, sample_weight, "prequential")
    row = np.arange(len(counted.label))
    sizes = np.unique(np.linspace(0, len(row), points + 1).round().astype(int))
    encoding, total, log_evidence = fitted.encoding, fitted.statistics, [0.0]
    parts = (counted.take((start <= row) & (row < stop)) for start, stop in pairwise(sizes))
    counts = (counting.count_rows(encoding, part.rows, part.label, part.weight) for part in parts)
    with progress("evidence", len(sizes) - 1) as tick:
        for total in accumulate(counts, Statistics.merge):
            log_evidence.append(float(scoring.log_evidence(encoding, fitted.prior, total)))
            tick()
    _require_all(fitted.statistics, total)
    return Prequential(sizes, np.array(log_evidence), counted.label, counted.weight, copy(nb))


def _require_all(counted: Statistics, given: Statistics) -> None:
    """Raise ValueError unless the statistics `given` have all rows, and all cells, of the statistics `counted`."""
    pairs = [(counted.class_count, given.class_count)]
    pairs += [(a.count, b.count) for a, b in zip(counted.blocks, given.blocks, strict=True)]
    if not all(np.allclose(a, b, rtol=1e-9, atol=1e-12) for a, b in pairs):
        problem = "Cells that the classifier has counted are missing in X."
        if not np.allclose(*pairs[0], rtol=1e-9, atol=1e-12):
            problem = f"Only {given.class_count.sum():g} of {counted.class_count.sum():g} rows were passed."
        raise ValueError(f"prequential: X, y and sample_weight must be all rows that nb was fitted on. {problem}")


# == Choice of the prior's strength by leave-one-out or by evidence ================================

NAMES = ("alpha", "class_alpha", "kappa", "a")
_CONCENTRATIONS = {"alpha", "class_alpha"}  # hyperparameters of the classifier itself
_BOUNDS = (1e-4, 1e4)
_STEP = 1e-6  # of a difference of logarithms; rounding of an objective of 1e6 nats moves the optimum by less
_TUNED_MEANING = (
    "Chosen on these rows: scores of the tuned classifier on the same rows are too good, so score other rows. If a "
    "value is at an end of the interval, the optimum may lie outside: widen `bounds`."
)


@dataclass(frozen=True, eq=False)
class Tuned:
    """Strength of the prior with the largest leave-one-out score or evidence.

    Attributes
    ----------
    estimator : classifier
        Fitted copy of the classifier that was passed, with `values`; its `tuned_` names them, until it is fitted anew.
    values : dict {name: number}
        Hyperparameters that were chosen.
    path : DataFrame
        One row for each evaluation, in order: the hyperparameters and "objective", in nats.
    boundary : tuple of names
        Hyperparameters whose optimum is at an end of the interval that was searched.
    by : {"loo", "evidence"}
        Objective that was maximised.

    Examples
    --------
    >>> from bayesnb import CategoricalNB, tune_alpha
    >>> X, y = [["red"], ["red"], ["red"], ["green"]] * 5, ["ripe", "ripe", "raw", "raw"] * 5
    >>> tuned = tune_alpha(CategoricalNB().fit(X, y), X, y, by="evidence")
    >>> round(tuned.alpha, 2), tuned.values == {"alpha": tuned.alpha}, tuned.boundary
    (0.39, True, ())
    >>> tuned.path.sort_values("objective").tail(2).round(3)  # near the optimum
        alpha  objective
    15  0.392    -25.223
    14  0.392    -25.223
    """

    estimator: Any
    values: dict[str, float]
    path: pd.DataFrame
    boundary: tuple[str, ...]
    by: str

    @property
    def alpha(self) -> float:
        """Tuned concentration of levels.

        Raises
        ------
        KeyError
            If `alpha` was not tuned.
        """
        return self.values["alpha"]

    @property
    def objective(self) -> float:
        """Largest objective: Σ log p(y_i | x_i, D₋ᵢ), or log p(X, y)."""
        return float(self.path["objective"].max())

    def __repr__(self) -> str:
        values = ", ".join(f"{name} = {value:.4g}" for name, value in self.values.items())
        end = f"; at the end of the interval: {', '.join(self.boundary)}" if self.boundary else ""
        return f"Tuned({values} by {self.by}: {self.objective:.3f} after {len(self.path)} evaluations{end})"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: tuned hyperparameters and the objective."""
        reached = "Σ log p(label | row, the others)" if self.by == "loo" else "log p(X, y)"
        rows = [(name, value, "end of the interval" * (name in self.boundary)) for name, value in self.values.items()]
        about = f"by {self.by}, {len(self.path)} evaluations"
        return card("Tuned", about, table([*rows, (f"{reached}, nats", self.objective, "")]), notes=[_TUNED_MEANING])


def tune_alpha(
    nb: Tunable,
    X: object,
    y: object,
    by: Literal["loo", "evidence"] = "loo",
    tune: Sequence[str] | None = None,
    sample_weight: object = None,
    bounds: tuple[float, float] = _BOUNDS,
    prior: PriorOf = "derived",
) -> Tuned:
    """Choose the hyperparameters of the prior's strength with the largest leave-one-out score or evidence.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        A classifier fitted on X, y; `by="evidence"` uses its statistics only.
    X, y, sample_weight : array-likes
        Rows that `nb` was fitted to, with their labels and weights.
    by : {"loo", "evidence"}
        Objective. "loo": Σ w log p(y_i | x_i, D₋ᵢ) under `nb.estimate`, the prediction of each label from the other
        rows; "evidence": log p(X, y), the prediction of rows *and* labels, one after the other.
    tune : list of {"alpha", "class_alpha", "kappa", "a"}, optional
        Hyperparameters to tune. "alpha" is the concentration of levels, "class_alpha" that of classes; "kappa" is the
        prior sample size of μ, in rows; "a" is the concentration of gamma priors, of precisions 1/σ² and of rates, with
        a constant a/b. Each is one number for all blocks. Default: all hyperparameters of `nb` but "class_alpha".
    bounds : (lower, upper)
        Interval for each hyperparameter.
    prior : {"derived", "fixed"}
        Whether location and scale of a Gaussian prior are derived from the other rows, or from all rows, see `loo`.

    Returns
    -------
    Tuned
        Tuned classifier, and the values that were tried.

    Raises
    ------
    ValueError
        If `tune` names a hyperparameter that `nb` does not have, or `alpha` is not one number; if the rows were not
        counted.

    Warns
    -----
    UserWarning
        If an optimum is at an end of the interval.

    Notes
    -----
    The two objectives answer different questions, and their optima may differ much: `examples/choose_prior.py` prints
    both for four of the 20 Newsgroups.

    Copies of a row remain when `by="loo"` leaves the row out, as `loo` explains: pass each row once, with its weight.

    SciPy's L-BFGS-B maximizes over the logarithms, with gradients by differences, and starts at the best of six
    strengths. The result is itself learned from the rows: `loo` and `bayes_factor` of the tuned estimator are
    conditional on it, and their notes say so; `permutation_null` shows such a choice for permuted labels.

    Examples
    --------
    >>> from bayesnb import CategoricalNB, tune_alpha
    >>> X, y = [["red"], ["red"], ["red"], ["green"]] * 5, ["ripe", "ripe", "raw", "raw"] * 5
    >>> tuned = tune_alpha(CategoricalNB().fit(X, y), X, y, by="evidence")
    >>> tuned
    Tuned(alpha = 0.3918 by evidence: -25.223 after 16 evaluations)
    >>> tuned.estimator.alpha == tuned.alpha
    True
    """
    from scipy.optimize import minimize

    require_choice("by", by, ("loo", "evidence"))
    require_choice("prior", prior, ("derived", "fixed"))
    fitted = (require_posterior if by == "loo" else require_evidence)(nb, "tune_alpha")
    limits = require_interval("bounds", bounds, str(_BOUNDS))
    low, high = np.log(limits)
    names = _tuned_names(nb, fitted, tune)
    # Concentrations may be proportional to α: those at α = 1 are multiplied by each value.
    source = choose_prior(fitted, prior) if by == "loo" else fitted.prior
    unit = float64(_prior_with)(source, {n: 1.0 / getattr(nb, n) for n in names if n in _CONCENTRATIONS})
    score: Callable[[dict[str, object]], object]
    if by == "loo":
        require_average(fitted.estimate)
        counted = counted_rows(fitted, X, y, sample_weight, "tune_alpha")
        counted = counted.take(counted.weight > 0)
        score = partial(_loo_score, unit=unit, fitted=fitted, counted=counted)
    else:
        statistics = fitted.statistics
        if "alpha" in names:
            unit, statistics = unit.condensed(), unit.condense(statistics)
        score = partial(float64(_log_evidence), prior=unit, statistics=statistics)
    path: list[np.ndarray] = []
    current = [float(getattr(nb, n)) if n in _CONCENTRATIONS else _median_value(fitted.prior, n) for n in names]
    starts = [np.log(np.clip(current, *limits)), *(np.full(len(names), v) for v in np.linspace(low, high, 7)[1:-1])]
    with progress("tune_alpha", None, "evaluations") as tick:

        def loss(log_values: np.ndarray) -> float:
            """Return minus the objective at log hyperparameters; append the evaluation to `path`."""
            value = float(score(dict(zip(names, np.exp(log_values), strict=True))))
            path.append(np.append(np.exp(log_values), value))
            tick()
            return -value

        losses = [loss(start) for start in starts]
        if not np.isfinite(losses).any():
            raise ValueError(
                f"tune_alpha: the score by {by} is not finite for any strength of {', '.join(names)}. Give "
                f"{type(nb).__name__} a proper prior, such as one whose concentration and rate are positive."
            )
        best, options = starts[int(np.nanargmin(losses))], {"eps": _STEP}
        optimum = minimize(loss, best, method="L-BFGS-B", bounds=[(low, high)] * len(names), options=options)
    chosen = dict(zip(names, np.exp(optimum.x).tolist(), strict=True))
    at_end = np.minimum(optimum.x - low, high - optimum.x) < 0.01
    boundary = tuple(name for name, end in zip(names, at_end, strict=True) if end)
    if boundary:
        reached = ", ".join(f"{name} = {chosen[name]:.3g}" for name in boundary)
        warn(
            f"tune_alpha: the optimum by {by} is at an end of bounds={bounds}: {reached}. Widen `bounds`. If the "
            "optimum is still at an end, the data do not determine it; choose a value yourself."
        )
    estimator = _refit(nb, fitted, chosen, choose_prior(fitted, prior))
    return Tuned(estimator, chosen, pd.DataFrame(path, columns=[*names, "objective"]), boundary, by)


def _tuned_names(nb: Adaptable, fitted: Fitted, tune: Sequence[str] | None) -> tuple[str, ...]:
    """Return the hyperparameters to tune, by default all but `class_alpha`; raise ValueError if `nb` lacks one."""
    prior = fitted.prior
    if any(f.classes_share_parameters and not f.tunable for f in prior.blocks) or nb.unweighted is not nb:
        raise NotImplementedError(
            f"tune_alpha: {type(nb).__name__} takes its prior from its estimator. Tune that estimator first, or "
            "compare models by `loo` and `log_evidence_`."
        )
    tunable = {name for family in prior.blocks for name in family.tunable}
    if prior.class_prior.tunable and getattr(nb, "class_prior", None) is None:
        tunable.add("class_alpha")
    offered = [*(name for name in NAMES if name in tunable), *sorted(tunable - set(NAMES))]
    chosen = [name for name in offered if name != "class_alpha"] if tune is None else tune
    names = [chosen] if isinstance(chosen, str) else list(chosen)
    if not names or len(set(names)) < len(names) or not set(names) <= set(offered):
        expected = f"one or more of {offered}, the hyperparameters of {type(nb).__name__}, each once"
        raise bad_argument("tune", tune, expected)
    if isinstance(getattr(nb, "prior", None), NaiveBayes):
        raise ValueError("tune_alpha: the estimator has a complete prior=, which leaves nothing to tune. Set `alpha`.")
    for name in _CONCENTRATIONS & set(names):
        value = getattr(nb, name)
        if not isinstance(value, Real) or value <= 0:
            raise bad_argument(name, value, "one positive number, because the search starts there")
    return tuple(names)


def _median_value(prior: NaiveBayes, name: str) -> float:
    """Return the median over the features of a hyperparameter, in the first block whose family has it."""
    family = next(f for f in prior.blocks if name in f.tunable)
    return float(np.median(getattr(family, family.tunable[name])))


def _prior_with(prior: NaiveBayes, values: dict[str, Any]) -> NaiveBayes:
    """Return the prior with hyperparameters set to `values`; concentrations are multiplied by their values."""
    of_classes = {"alpha": values["class_alpha"]} if "class_alpha" in values else {}
    blocks = tuple(family.with_hyperparameters(values) for family in prior.blocks)
    return replace(prior, class_prior=prior.class_prior.with_hyperparameters(of_classes), blocks=blocks)


@kernel
def _log_evidence(values: dict[str, object], prior: NaiveBayes, statistics: Statistics) -> jax.Array:
    """Compute log p(X, y) at hyperparameters."""
    return _prior_with(prior, values).log_evidence(statistics)


def _loo_score(values: dict[str, object], unit: NaiveBayes, fitted: Fitted, counted: CountedRows) -> float:
    """Compute Σ w log p(y | x, the other rows) at hyperparameters."""
    state = replace(fitted, empirical_prior=float64(_prior_with)(unit, values))
    joint = leave_one_out(state, counted, fitted.estimate, "derived")
    log_proba = scoring.apply(scoring.log_proba, joint)
    return float(counted.weight @ log_proba[np.arange(len(joint)), counted.label])


def _refit(nb: Tunable, fitted: Fitted, values: dict[str, float], source: NaiveBayes) -> Tunable:
    """Return a copy of `nb` with the same counts under the tuned prior; tuned names are added to its `chosen`."""
    arguments: dict[str, object] = {name: values[name] for name in _CONCENTRATIONS & set(values)}
    others = {name: value for name, value in values.items() if name not in _CONCENTRATIONS}
    for argument, family in zip(fitted.prior_arguments, float64(_prior_with)(source, others).blocks, strict=True):
        if others.keys() & family.tunable.keys():
            arguments[argument] = family
    # Choices that the copy knows as hyperparameters were made on these rows, too, and stay named.
    known = nb.with_priors(arguments).fitted_.chosen
    named = [choice for choice in nb.fitted_.chosen if choice not in known]
    return nb.with_priors(arguments, (*named, *values))
