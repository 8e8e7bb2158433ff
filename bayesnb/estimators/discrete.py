"""Classifiers whose features have Dirichlet priors: categorical, Bernoulli and multinomial."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, cast

import numpy as np

from bayesnb import scoring
from bayesnb._util.arguments import require_choice, require_number, shown
from bayesnb.encoding import (
    BinaryColumns,
    Columns,
    CountColumns,
    LevelColumns,
    Levels,
    Table,
    declared_categories,
)
from bayesnb.encoding.level_columns import HandleUnknown
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.estimators.defaults import ALPHA, CLASS_ALPHA
from bayesnb.model import Estimate

HANDLE_UNKNOWN = ("ignore", "error", "level")


@dataclass(eq=False, repr=False)
class CategoricalNB(NaiveBayesClassifier):
    """Naive Bayes for categorical features: θ_cj ~ Dirichlet(α) over the levels of feature j.

    Parameters
    ----------
    alpha : scalar, (F,) array, list of F arrays, (C, L) array or Dirichlet, default 1
        Dirichlet concentration of the levels: one number for all, one per feature, one per level, or one per class and
        level of the concatenated levels. The posterior mean under alpha is Laplace smoothing with λ = alpha. Levels are
        sorted, see `categories_`.
    class_alpha : scalar or (C,) array, default 1
        Dirichlet concentration of the class probabilities.
    class_prior : (C,) array or Dirichlet, optional
        Known class probabilities, or a Dirichlet prior of them, in place of `class_alpha`.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Reading of the posterior in predictions. "predictive" integrates the parameters out; "mean", "map" and "mle"
        plug in the posterior mean, the posterior mode and the maximum likelihood estimate. Here "predictive" and "mean"
        are the same.
    categories : "auto", list of F lists, or dict {feature: list}, default "auto"
        Levels of each categorical column. "auto": the levels that occur, to which `partial_fit` adds new ones; of a
        pandas categorical its own categories. Declared levels belong to the model whether or not they occur, and do not
        grow.
    handle_unknown : {"ignore", "error", "level"}, default "ignore"
        Treatment of a value that is not among the levels. "ignore": as a missing cell, with a warning. "error": as an
        error. "level": as one reserved level, which all such values share.
    missing_values : value or list of values, optional
        Marks of a missing cell such as "?", besides None, NaN and pd.NA. Missing cells are marginalised: this assumes
        that they are missing at random.
    prior : NaiveBayes, optional
        Complete prior, such as `prior_` of another classifier, in place of `alpha`, `class_alpha` and `class_prior`.

    Attributes
    ----------
    categories_ : list of arrays
        Levels of each feature.
    category_count_ : list of (C, L_j) arrays
        Weight of the rows with each level of each feature.
    feature_log_prob_ : list of (C, L_j) arrays
        Log posterior mean of the probability of each level.
    classes_ : (C,) array
        Class labels, in the order of the class axis of every array.
    class_count_ : (C,) array
        Weight of the rows of each class.
    class_log_prior_ : (C,) array
        Log posterior mean of each class probability.
    prior_, posterior_ : NaiveBayes
        Prior and posterior distribution of all parameters.
    statistics_ : Statistics
        Sufficient statistics of the counted rows.
    log_evidence_ : float
        log p(X, y), with the parameters integrated out.
    n_parameters_ : int
        Number of free parameters.
    n_features_in_ : int
        Number of columns of X.

    Examples
    --------
    >>> from bayesnb import CategoricalNB
    >>> nb = CategoricalNB().fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
    >>> nb.predict([["rain"]])
    array(['in'], dtype='<U3')
    """

    _: KW_ONLY
    alpha: object = ALPHA
    class_alpha: object = CLASS_ALPHA
    class_prior: object = None
    estimate: Estimate = "predictive"
    categories: object = "auto"
    handle_unknown: str = "ignore"
    missing_values: object = None
    prior: object = None

    def _columns(self, table: Table) -> tuple[Columns, ...]:
        """Return one block of all columns of a table as categorical, with declared levels only."""
        index = range(len(table.names))
        return (level_columns(table, index, self.categories, self.handle_unknown, self.missing_values),)

    @property
    def categories_(self) -> list[np.ndarray]:
        """Levels of each feature, in the order of the level axes."""
        columns: Any = self.encoding_.blocks[0]
        return [Levels(tuple(columns.level_names(j))).array() for j in range(len(columns.index))]

    @property
    def category_count_(self) -> list[np.ndarray]:
        """(C, L_j) weight of the rows with each level, one array per feature."""
        return self._split_by_feature(self.statistics_.blocks[0].count)

    @property
    def feature_log_prob_(self) -> list[np.ndarray]:
        """(C, L_j) log posterior mean of P(level | class), one array per feature."""
        return self._split_by_feature(scoring.plug_in(self.posterior_.blocks[0]).log_theta)

    def _split_by_feature(self, flat: np.ndarray) -> list[np.ndarray]:
        """Split a (C, L) array over the concatenated levels of all features into (C, L_j) arrays, one per feature."""
        columns: Any = self.encoding_.blocks[0]
        return np.split(flat, columns.start()[1:], axis=1)

    _tags = ("categorical", "allow_nan", "poor_score")


@dataclass(eq=False, repr=False)
class BernoulliNB(NaiveBayesClassifier):
    """Naive Bayes for features that are absent or present: θ_cj ~ Beta(α, α).

    Parameters
    ----------
    alpha : scalar, (F,) array, list of F pairs, (C, 2F) array or Dirichlet, default 1
        Beta concentrations of each feature; a pair is (absent, present).
    class_alpha : scalar or (C,) array, default 1
        Dirichlet concentration of the class probabilities.
    class_prior : (C,) array or Dirichlet, optional
        Known class probabilities, or a Dirichlet prior of them, in place of `class_alpha`.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Reading of the posterior in predictions. "predictive" integrates the parameters out; "mean", "map" and "mle"
        plug in the posterior mean, the posterior mode and the maximum likelihood estimate. Here "predictive" and "mean"
        are the same.
    binarize : float or None, default 0
        A feature is present where its cell exceeds this threshold. None: cells are 0 or 1 already. NaN in a dense array
        is a missing cell, whatever the threshold.
    prior : NaiveBayes, optional
        Complete prior, such as `prior_` of another classifier, in place of `alpha`, `class_alpha` and `class_prior`.

    Attributes
    ----------
    feature_count_ : (C, F) array
        Weight of the rows in which each feature is present.
    feature_log_prob_ : (C, F) array
        Log posterior mean of P(present | class).
    classes_ : (C,) array
        Class labels, in the order of the class axis of every array.
    class_count_ : (C,) array
        Weight of the rows of each class.
    class_log_prior_ : (C,) array
        Log posterior mean of each class probability.
    prior_, posterior_ : NaiveBayes
        Prior and posterior distribution of all parameters.
    statistics_ : Statistics
        Sufficient statistics of the counted rows.
    log_evidence_ : float
        log p(X, y), with the parameters integrated out.

    Examples
    --------
    >>> from bayesnb import BernoulliNB
    >>> nb = BernoulliNB().fit([[1, 0], [1, 1], [0, 1]], ["spam", "spam", "ham"])
    >>> nb.predict_proba([[1, 0]]).round(2)
    array([[0.16, 0.84]])
    >>> nb.predict_proba([[1, float("nan")]]).round(2)  # the second cell is missing
    array([[0.23, 0.77]])
    """

    _: KW_ONLY
    alpha: object = ALPHA
    class_alpha: object = CLASS_ALPHA
    class_prior: object = None
    estimate: Estimate = "predictive"
    binarize: float | None = 0.0
    prior: object = None

    def _columns(self, table: Table) -> tuple[Columns, ...]:
        """Return one block of all columns of a table as Bernoulli columns."""
        n = len(table.names)
        return (binary_columns(table, range(n), self.binarize),)

    @property
    def feature_count_(self) -> np.ndarray:
        """(C, F) weight of the rows in which the feature is present."""
        return np.asarray(self.statistics_.blocks[0].count[:, 1::2])

    @property
    def feature_log_prob_(self) -> np.ndarray:
        """(C, F) log posterior mean of P(present | class)."""
        return np.asarray(scoring.plug_in(self.posterior_.blocks[0]).log_theta[:, 1::2])

    _tags = ("sparse", "allow_nan", "poor_score")


@dataclass(eq=False, repr=False)
class MultinomialNB(NaiveBayesClassifier):
    """Naive Bayes for counts over one simplex, such as a bag of words: θ_c ~ Dirichlet(α).

    Parameters
    ----------
    alpha : scalar, (F,) array, (C, F) array or Dirichlet, default 1
        Dirichlet concentration of each word.
    class_alpha : scalar or (C,) array, default 1
        Dirichlet concentration of the class probabilities.
    class_prior : (C,) array or Dirichlet, optional
        Known class probabilities, or a Dirichlet prior of them, in place of `class_alpha`.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Reading of the posterior in predictions. "predictive" integrates the parameters out; "mean", "map" and "mle"
        plug in the posterior mean, the posterior mode and the maximum likelihood estimate. Here "predictive" is the
        Dirichlet-multinomial: parameters are integrated out per row, so that a word that occurred once in a row is more
        probable the second time.
    prior : NaiveBayes, optional
        Complete prior, such as `prior_` of another classifier, in place of `alpha`, `class_alpha` and `class_prior`.

    Attributes
    ----------
    feature_count_ : (C, F) array
        Count of each word in each class.
    feature_log_prob_ : (C, F) array
        Log posterior mean of the probability of each word.
    classes_ : (C,) array
        Class labels, in the order of the class axis of every array.
    class_count_ : (C,) array
        Weight of the rows of each class.
    class_log_prior_ : (C,) array
        Log posterior mean of each class probability.
    prior_, posterior_ : NaiveBayes
        Prior and posterior distribution of all parameters.
    statistics_ : Statistics
        Sufficient statistics of the counted rows.
    log_evidence_ : float
        log p(X, y), with the parameters integrated out.

    Notes
    -----
    Fractional counts (tf-idf) are accepted, as in scikit-learn; the evidence is then that of a pseudo-likelihood, with
    gamma functions for factorials.

    Examples
    --------
    >>> from bayesnb import MultinomialNB
    >>> nb = MultinomialNB(alpha=1.0).fit([[2, 1, 0], [1, 0, 3]], ["sport", "science"])
    >>> nb.predict_proba([[1, 0, 1]]).round(2)
    array([[0.67, 0.33]])
    >>> nb.predict_proba([[1, 0, 1]], estimate="mean").round(2)  # scikit-learn's
    array([[0.66, 0.34]])
    """

    _: KW_ONLY
    alpha: object = ALPHA
    class_alpha: object = CLASS_ALPHA
    class_prior: object = None
    estimate: Estimate = "predictive"
    prior: object = None

    def _columns(self, table: Table) -> tuple[Columns, ...]:
        """Return one block of all columns of a table as counts over one simplex."""
        n = len(table.names)
        return (CountColumns(range(n), table.names, n),)

    @property
    def feature_count_(self) -> np.ndarray:
        """(C, F) count of each word in each class, each row's counts multiplied by its weight."""
        return np.asarray(self.statistics_.blocks[0].count)

    @property
    def feature_log_prob_(self) -> np.ndarray:
        """(C, F) log posterior mean of the probability of each word."""
        return np.asarray(scoring.plug_in(self.posterior_.blocks[0]).log_theta)

    _tags = ("sparse", "positive_only", "poor_score")


def binary_columns(table: Table, index: Sequence[int], binarize: float | None) -> BinaryColumns:
    """Make one block of Bernoulli columns of a table, at positions `index`: present where a cell exceeds `binarize`."""
    if binarize is not None:
        require_number("binarize", binarize, "a finite number, or None where cells are 0 or 1", lambda _: True)
    names = table.names if len(index) == len(table.names) else tuple(table.names[j] for j in index)
    return BinaryColumns(index, names, len(table.names), binarize)


def level_columns(
    table: Table, index: Sequence[int], categories: object, handle_unknown: str, missing_values: object
) -> LevelColumns:
    """Make one block of categorical columns of a table, at positions `index`, with the levels declared for them.

    Levels are declared by `categories`, or where that is "auto" by the type of the column (pandas categorical, polars
    enumeration); other columns have no level yet. Values in `missing_values` are no levels. Raises ValueError for
    unusable options.
    """
    require_choice("handle_unknown", handle_unknown, HANDLE_UNKNOWN)
    is_list = isinstance(missing_values, Iterable) and not isinstance(missing_values, str | bytes)
    given_marks: Any = missing_values if is_list else [] if missing_values is None else [missing_values]
    marks = tuple(mark for mark in given_marks if type(mark).__name__ != "NAType")  # pd.NA is missing anyway
    if not all(isinstance(mark, Hashable) for mark in marks):
        raise ValueError(
            f"missing_values={shown(missing_values)} holds an unhashable value, which cannot be a cell. Pass a "
            "hashable value or a list of hashable values."
        )
    marked, known, declared = Levels.from_values(marks), [], []
    for j, given in zip(index, _read_categories(table, index, categories), strict=True):
        if given is None or (isinstance(given, str) and given == "auto"):
            given = None if table.is_sparse else declared_categories(table.column(j))
        elif isinstance(given, str | bytes) or not isinstance(given, Iterable):
            raise ValueError(
                f"categories: the levels of feature {shown(table.names[j])} must be a list, and are {shown(given)}."
            )
        known.append(Levels.from_values(v for v in (() if given is None else given) if v not in marked))
        declared.append(given is not None)
        if declared[-1] and not len(known[-1]):
            raise ValueError(
                f"categories: no level is declared for feature {shown(table.names[j])}. Declare at least one."
            )
    names, unknown = tuple(table.names[j] for j in index), cast(HandleUnknown, handle_unknown)
    return LevelColumns(index, names, len(table.names), tuple(known), tuple(declared), unknown, marks)


def _read_categories(table: Table, index: Sequence[int], categories: object) -> list[Any]:
    """Return the levels that `categories` gives for each column of `index`; None for "auto" or no entry.

    Raises
    ------
    ValueError
        If `categories` is neither "auto", a dict nor a list with an entry for each column.
    """
    if isinstance(categories, str) and categories == "auto":
        return [None] * len(index)
    if isinstance(categories, Mapping):
        by_column = {table.position(key, "categories"): levels for key, levels in categories.items()}
        return [by_column.get(j) for j in index]
    levels: Any = categories
    is_list = isinstance(levels, Sequence | np.ndarray) and not isinstance(levels, str)
    if not is_list or len(levels) != len(index):
        raise ValueError(
            f"categories={shown(categories)} must be 'auto', a list with the levels of each of the {len(index)} "
            "categorical features, or a dict {feature: levels}."
        )
    return list(levels)
