"""Conformal prediction: sets of labels with guaranteed coverage, by exact leave-one-out or by folds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, Self

import numpy as np
import pandas as pd

from bayesnb._util.arguments import require_choice, require_flag, require_probability, require_seed
from bayesnb._util.terminal import card, table
from bayesnb.encoding import check_labels
from bayesnb.fitted.state import WEIGHTS, Classifier, counted_rows, require_average, require_leave_one_out
from bayesnb.model import Estimate
from bayesnb.prediction.conformity import Ranking, average_ranking, full_ranking
from bayesnb.prediction.cross_conformal import GUARANTEE, cross_ranking

Ties = Literal["conservative", "random"]

_ROUNDING = 1e-12
_MEANING = (
    "If rows are exchangeable, sets contain the true label with at least the given probability, whether or not the "
    "model is right. This holds on average over data and rows, not for each row, nor given that a set has one label."
)


@dataclass(frozen=True, eq=False)
class PredictionSets:
    """Conformal sets of labels, one for each row.

    Attributes
    ----------
    members : (M, C) array of bool
        Whether a label is in the set of each row, that is, has a p-value above 1 - `coverage`.
    p_values : (M, C) array
        p-value of each label.
    classes : (C,) array
        Labels.
    coverage : float
        Least probability with which a set contains the true label, on average over data and rows.
    notes : tuple of str
        Reasons why `coverage` is approximate, as far as they are known.

    Examples
    --------
    >>> from bayesnb import GaussianNB, conformal
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> train, test = slice(0, None, 2), slice(1, None, 2)
    >>> sets = conformal(GaussianNB().fit(X[train], y[train]), X[train], y[train]).predict_set(X[test], coverage=0.95)
    >>> sets
    PredictionSets(75 rows, coverage 0.95: 0 with no label, 74 with one, 1 with several)
    >>> float(sets.covered(y[test]).mean().round(3)), sets.at(0.99).n_several
    (0.96, 75)
    >>> sets.to_frame().loc[[40]].round(2)
       labels  size  credibility  confidence
    40   (1,)     1         0.54        0.99
    """

    members: np.ndarray
    p_values: np.ndarray
    classes: np.ndarray
    coverage: float
    notes: tuple[str, ...] = ()

    @property
    def labels(self) -> list[np.ndarray]:
        """Labels in the set of each row, a list of M arrays."""
        return [self.classes[row] for row in self.members]

    @property
    def size(self) -> np.ndarray:
        """(M,) number of labels in each set."""
        return np.asarray(self.members.sum(axis=1))

    @property
    def n_empty(self) -> int:
        """Number of rows with an empty set: no label has a p-value above 1 - `coverage`."""
        return int((self.size == 0).sum())

    @property
    def n_single(self) -> int:
        """Number of rows with one label in the set."""
        return int((self.size == 1).sum())

    @property
    def n_several(self) -> int:
        """Number of rows with several labels in the set."""
        return int((self.size > 1).sum())

    @property
    def credibility(self) -> np.ndarray:
        """(M,) largest p-value: the set is empty where `coverage` is below 1 - `credibility`."""
        return np.asarray(self.p_values.max(axis=1))

    @property
    def confidence(self) -> np.ndarray:
        """(M,) 1 - the second largest p-value: up to this `coverage` there is at most one label in the set."""
        least = np.zeros((len(self.p_values), 1))
        return 1.0 - np.sort(np.concatenate([least, self.p_values], axis=1), axis=1)[:, -2]

    def at(self, coverage: float) -> Self:
        """Return a copy with the sets of the same rows for another coverage.

        Parameters
        ----------
        coverage : float
            Least probability with which a set contains the true label, in (0, 1).

        Returns
        -------
        PredictionSets
            Sets of the same rows.

        Raises
        ------
        ValueError
            If `coverage` is not between 0 and 1.
        """
        require_probability("coverage", coverage)
        members = self.p_values > 1.0 - coverage + _ROUNDING
        return replace(self, members=members, coverage=float(coverage))

    def covered(self, y: object) -> np.ndarray:
        """Return (M,) whether the set of each row contains the label `y` of the row; False for unknown labels.

        Parameters
        ----------
        y : array-like of shape (M,)
            True labels of the rows.

        Returns
        -------
        (M,) array of bool
            Whether each set contains the label.

        Raises
        ------
        ValueError
            If the number of labels is not that of the rows.
        """
        labels, label = check_labels(y, len(self.members), "covered")
        position = {value: c for c, value in enumerate(self.classes.tolist())}
        index = np.array([position.get(value, -1) for value in labels.values])[label]
        return np.where(index < 0, False, self.members[np.arange(len(index)), index])

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one line for each row: labels, size, credibility, confidence."""
        labels = [tuple(row_labels.tolist()) for row_labels in self.labels]
        columns = {"size": self.size, "credibility": self.credibility, "confidence": self.confidence}
        return pd.DataFrame({"labels": pd.Series(labels, dtype=object), **columns})

    def __repr__(self) -> str:
        sizes = f"{self.n_empty} with no label, {self.n_single} with one, {self.n_several} with several"
        head = f"PredictionSets({len(self.members)} rows, coverage {self.coverage:g}: {sizes})"
        return "\n".join((head, *self.notes))

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the numbers of sets by size, and the number of sets that hold each label."""
        labels = [(name, int(self.members[:, c].sum())) for c, name in enumerate(self.classes.tolist())]
        sizes = [("no label", self.n_empty), ("one", self.n_single), ("several", self.n_several)]
        about = f"{len(self.members)} rows, coverage {self.coverage:g}"
        tables = table(sizes, ("sets with", "rows")), table(labels, ("label", "in sets"))
        return card("PredictionSets", about, *tables, notes=(_MEANING, *self.notes))


@dataclass(frozen=True, eq=False)
class Conformal:
    """Conformal predictor, the result of `bayesnb.conformal`.

    Attributes
    ----------
    classes : (C,) array
        Labels.
    n_rows : (C,) array
        Number of rows that a candidate of each class is compared with.
    by_class : bool
        Whether candidates are compared with rows of their own class only.
    ties : {"conservative", "random"}
        Treatment of rows with the score of the candidate.
    seed : int
        Seed of random ties.
    notes : tuple of str
        Guaranteed coverage, where it is not the nominal one, and reasons why coverage is approximate.

    Examples
    --------
    >>> from bayesnb import GaussianNB, conformal
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> predictor = conformal(GaussianNB().fit(X[1:], y[1:]), X[1:], y[1:])
    >>> predictor
    Conformal(149 rows, 3 classes, ties conservative)
    >>> predictor.p_values(X[:1]).round(3)
    array([[0.94 , 0.007, 0.007]])
    >>> predictor.predict_set(X[:1], coverage=0.99).labels
    [array([0])]
    """

    classes: np.ndarray
    n_rows: np.ndarray
    by_class: bool
    ties: Ties
    seed: int
    notes: tuple[str, ...]
    _ranking: Ranking

    def p_values(self, X: object) -> np.ndarray:
        """Compute (M, C) p-values: the fraction of conformity scores no larger than the new row's, itself included.

        With `by_class` the scores are those of the rows of the candidate's class. With ties="random" equal scores,
        itself included, count by one uniform fraction per row, which `seed` determines.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (M, F)
            Rows that are exchangeable with the counted rows. A value that is not a level is treated as by `predict`.

        Returns
        -------
        (M, C) array
            p-values. For every ε the p-value of the true label is at most ε with a probability of at most ε.
        """
        at_most, less = self._ranking(X)
        if self.ties == "conservative":
            return np.asarray((at_most + 1.0) / (self.n_rows + 1.0))
        fraction = np.random.default_rng(self.seed).random((len(at_most), 1))
        return np.asarray((less + fraction * (at_most - less + 1.0)) / (self.n_rows + 1.0))

    def predict_set(self, X: object, coverage: float = 0.9) -> PredictionSets:
        """Return for each row the set of labels whose p-value is above 1 - coverage.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (M, F)
            Rows.
        coverage : float, default 0.9
            Least probability with which a set contains the true label, in (0, 1). Sets contain all labels if candidates
            are compared with fewer than coverage/(1 - coverage) rows.

        Returns
        -------
        PredictionSets
            Sets of the rows, with the p-values.

        Raises
        ------
        ValueError
            If `coverage` is not between 0 and 1.
        """
        require_probability("coverage", coverage)
        p_values = self.p_values(X)
        return PredictionSets(p_values > 0, p_values, self.classes, 0.0, self.notes).at(coverage)

    def __repr__(self) -> str:
        against = ", by class" if self.by_class else ""
        n_rows = self.n_rows.sum() if self.by_class else self.n_rows[0]
        head = f"Conformal({n_rows:g} rows, {len(self.classes)} classes{against}, ties {self.ties})"
        return "\n".join((head, *self.notes))

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the number of counted rows that each label is compared with."""
        rows = zip(self.classes.tolist(), self.n_rows.tolist(), strict=True)
        compared = table(rows, ("label", "rows it is compared with"))
        return card("Conformal", f"ties {self.ties}", compared, notes=(_MEANING, *self.notes))


def conformal(
    nb: Classifier,
    X: object,
    y: object,
    sample_weight: object = None,
    *,
    by_class: bool = False,
    ties: Ties = "conservative",
    seed: int = 0,
    estimate: Estimate | None = None,
) -> Conformal:
    """Calibrate sets of labels that contain the true label with a given probability, whether or not the model is right.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier with exact leave-one-out scores, see `loo`.
    X, y : array-likes
        Rows that `nb` has counted, all or some of them, and their labels. New rows must be exchangeable with these.
    sample_weight : (N,) array of whole numbers, optional
        Weights with which the rows were counted: a row of weight 2 is two rows.
    by_class : bool, default False
        Compare a candidate with the rows of its own class only: then rows of *each* class are covered with the given
        probability, and classes with few rows have larger sets (Mondrian conformal prediction).
    ties : {"conservative", "random"}
        How a counted row with the same score as the candidate contributes to the p-value. "conservative": like a row
        with a lower score; coverage is at least the nominal one, and above it if there are many ties, and the set of a
        row does not depend on other new rows. "random": by a fraction that is uniform on (0, 1); coverage is exact.
    seed : int, default 0
        Seed of these fractions, one for each row of X in turn, and of the folds of a weighted model. If new rows come
        in several calls, give each call another seed.
    estimate : {"predictive", "mean"}, optional
        Estimate of the parameters given the other rows: integrated out, or plugged in at the posterior mean. Default:
        `nb.estimate`.

    Returns
    -------
    Conformal
        Predictor with the methods `p_values(X)`, (M, C), and `predict_set(X, coverage=0.9)`.

    Raises
    ------
    NotImplementedError
        If leaving rows out of the classifier is not exact, as after `fit_em`.
    ValueError
        If the counts show that the rows were not counted; if a weight is not whole; if `estimate` is "map" or "mle".

    Notes
    -----
    A new row x is counted with each label y in turn. Every row of these N + 1 then has a score, the probability of its
    label given all *other* rows. The p-value is the fraction of scores that are no better than that of (x, y):

        p_y(x) = #{i <= N + 1: s_i <= s_(N+1)} / (N + 1),    s_i = P(y_i | x_i, D ∪ (x, y) without row i).

    If (x, y) is exchangeable with the N rows, each rank of its score is equally probable. So the set of all labels with
    p > ε misses the true label with a probability of at most ε. This probability is over the data and the new row; it
    does not hold for each row x, nor given that the set has one label. If features depend on each other, naive Bayes is
    overconfident; sets are then larger, and coverage still holds. If a model is wrong in a smaller fraction of rows
    than ε, the sets of the most uncertain rows are empty, and a higher coverage costs little. If rows depend on time,
    or come in groups, they are not exchangeable, and coverage is not guaranteed.

    Scores are those of refits to N rows under the same encoding, computed from counts: M candidates take O(M N C F)
    operations without a refit, in constant memory. Where classes share parameters, as under a Gaussian prior that is
    derived from the data (the default) or in `FeatureAveragedNB`, and in `AODE`, the whole model changes with each
    candidate: C times the work, or more. A row whose label has probability 0 has the lowest score. Scores are equal if
    they differ by less than 1e-9, relative to the log odds.

    Coverage is approximate if choices on the rows are not made anew with each candidate. `notes` lists such choices: a
    tree, densities and cells of numbers, the alpha of an estimator that `tune_alpha` has returned (unless the estimator
    is fitted again). Choices on other rows keep the guarantee, such as the weights of `WeightedNB(weights=weights)`.

    Weights that were fitted to the rows are fitted anew, structure included, without each of ten folds:
    *cross-conformal* prediction. Rows of a fold are compared with candidates by the fit without that fold, and the
    counts of the folds are added up. The set misses the label with a probability of at most 2ε, and of about ε in
    simulations. Levels that were listed from the rows make the guarantee approximate for a new row with a new level;
    declare levels by `categories`.

    References
    ----------
    Vovk, Gammerman & Shafer, *Algorithmic Learning in a Random World* (2005), ch. 2, and 4.5 for `by_class`. Vovk,
    *Cross-conformal predictors*, Ann. Math. Artif. Intell. 74 (2015).

    Examples
    --------
    >>> import numpy as np
    >>> from bayesnb import CategoricalNB, conformal
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 500)
    >>> x = np.where(rng.random(500) < 0.7, y, 1 - y)
    >>> X = np.column_stack([x, x, x])  # one witness, heard three times, who is wrong in 30% of all cases
    >>> nb = CategoricalNB().fit(X, y)
    >>> nb.predict_proba([[1, 1, 1]]).round(2)
    array([[0.06, 0.94]])
    >>> conformal(nb, X, y).predict_set([[1, 1, 1]], coverage=0.9).labels
    [array([0, 1])]
    """
    fitted = require_leave_one_out(nb, "conformal")
    estimate = require_average(fitted.estimate if estimate is None else estimate)
    require_choice("ties", ties, ("conservative", "random"))
    require_flag("by_class", by_class)
    require_seed(seed)
    counted = counted_rows(fitted, X, y, sample_weight, "conformal")
    if (counted.weight % 1 != 0).any():
        i = int(np.argmax(counted.weight % 1 != 0))
        raise ValueError(f"sample_weight of row {i} is {counted.weight[i]}, not a count. Pass whole weights.")
    positive = counted.take(counted.weight > 0)
    chosen, classes = " and ".join(fitted.chosen), fitted.encoding.classes.array()
    notes = (f"Coverage is approximate, because the same rows were used to choose {chosen}.",) if chosen else ()
    if WEIGHTS in fitted.chosen:
        ranking = cross_ranking(nb, X, y, counted, estimate, int(seed), by_class)
        notes = (GUARANTEE,)
    elif fitted.member_names is not None:
        # A copy, as `nb` may be fitted to other rows later.
        ranking = partial(average_ranking, nb.with_counts(fitted.counted), positive, estimate, by_class)
    else:
        ranking = full_ranking(fitted, positive, estimate, by_class)
    n_rows = np.bincount(counted.label, counted.weight, len(classes))
    n_rows = n_rows if by_class else np.full(len(classes), n_rows.sum())
    return Conformal(classes, n_rows, by_class, ties, int(seed), notes, ranking)
