"""Classifiers whose features have Dirichlet priors: categorical, Bernoulli, multinomial."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

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
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.estimators.defaults import ALPHA, CLASS_ALPHA
from bayesnb.model import Estimate

HANDLE_UNKNOWN = ("ignore", "error", "level")


class CategoricalNB(NaiveBayesClassifier):
    """Naive Bayes for categorical features: θ_cj ~ Dirichlet(α) over the levels of feature j.

    Parameters
    ----------
    alpha : scalar, (F,) array, list of F arrays, (C, L) array or Dirichlet
        Concentration. The posterior mean under α is Laplace smoothing with λ = α. Levels stand in
        sorted order, see `categories_`.
    class_alpha : scalar or (C,) array
        Concentration of the class probabilities.
    class_prior : (C,) array or Dirichlet, optional
        Known class probabilities, or their prior.
    estimate : {"predictive", "mean", "map", "mle"}
        Reading of the posterior that predictions use. Here "predictive" and "mean" are the same.
    categories : "auto", list of F lists, or dict {feature: list}
        Declared levels belong to the model whether or not they occur, and do not grow. "auto" levels
        are those seen, and grow in `partial_fit`; so do a pandas categorical's not.
    handle_unknown : {"ignore", "error", "level"}
        What an unseen value is: a missing cell (with a warning), an error, or one reserved level.
    missing_values : value or list of values, optional
        Marks of a missing cell such as "?", besides None, NaN and pd.NA. Missing cells are
        marginalised: they contribute nothing, which assumes them missing at random.
    prior : NaiveBayes, optional
        A complete prior, such as another model's `prior_`, in place of the above.

    Attributes
    ----------
    classes_, class_count_, class_log_prior_ : (C,) arrays
    categories_ : list of arrays
        Levels of each feature.
    category_count_, feature_log_prob_ : list of (C, L_j) arrays
        Counts, and log posterior means.
    prior_, posterior_ : NaiveBayes
    statistics_ : Statistics
    log_evidence_ : float
    n_parameters_, n_features_in_ : int

    Examples
    --------
    >>> from bayesnb import CategoricalNB
    >>> nb = CategoricalNB().fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
    >>> nb.predict([["rain"]])
    array(['in'], dtype='<U3')
    """

    def __init__(
        self,
        *,
        alpha: Any = ALPHA,
        class_alpha: Any = CLASS_ALPHA,
        class_prior: Any = None,
        estimate: Estimate = "predictive",
        categories: Any = "auto",
        handle_unknown: str = "ignore",
        missing_values: Any = None,
        prior: Any = None,
    ) -> None:
        self.alpha = alpha
        self.class_alpha = class_alpha
        self.class_prior = class_prior
        self.estimate = estimate
        self.categories = categories
        self.handle_unknown = handle_unknown
        self.missing_values = missing_values
        self.prior = prior

    def _columns(self, table: Table) -> tuple[Columns, ...]:
        index = range(len(table.names))
        return (level_columns(table, index, self.categories, self.handle_unknown, self.missing_values),)

    @property
    def categories_(self) -> list[np.ndarray]:
        """Levels of each feature, in the order of the level axes."""
        self._require_fitted("categories_")
        columns: Any = self.encoding_.blocks[0]
        return [Levels(tuple(columns.level_names(j))).array() for j in range(len(columns.index))]

    @property
    def category_count_(self) -> list[np.ndarray]:
        """For each feature (C, L_j) weight of the rows with each level."""
        self._require_fitted("category_count_")
        return self._by_feature(self.statistics_.blocks[0].count)

    @property
    def feature_log_prob_(self) -> list[np.ndarray]:
        """For each feature (C, L_j) log posterior mean of P(level | class)."""
        self._require_fitted("feature_log_prob_")
        return self._by_feature(scoring.plug_in(self.posterior_.blocks[0]).log_theta)

    def _by_feature(self, flat: np.ndarray) -> list[np.ndarray]:
        columns: Any = self.encoding_.blocks[0]
        return np.split(flat, columns.start()[1:], axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        tags.classifier_tags.poor_score = True
        return tags


class BernoulliNB(NaiveBayesClassifier):
    """Naive Bayes for features that are absent or present: θ_cj ~ Beta(α, α).

    Parameters
    ----------
    alpha : scalar, (F,) array, list of F pairs, (C, 2F) array or Dirichlet
        Concentration; a pair is (absent, present).
    class_alpha, class_prior, estimate, prior
        As for `CategoricalNB`.
    binarize : float or None, default 0
        A cell is present where it exceeds this; None: cells are 0 or 1 already. In a dense array NaN
        is a missing cell, looked at first.

    Attributes
    ----------
    feature_count_ : (C, F) array
        Weight of the rows in which the feature is present.
    feature_log_prob_ : (C, F) array
        Log posterior mean of P(present | class).
    classes_, class_count_, class_log_prior_, prior_, posterior_, statistics_, log_evidence_
        As for `CategoricalNB`.

    Examples
    --------
    >>> from bayesnb import BernoulliNB
    >>> nb = BernoulliNB().fit([[1, 0], [1, 1], [0, 1]], ["spam", "spam", "ham"])
    >>> nb.predict_proba([[1, 0]]).round(2)
    array([[0.16, 0.84]])
    >>> nb.predict_proba([[1, float("nan")]]).round(2)  # of the second cell nothing is known
    array([[0.23, 0.77]])
    """

    def __init__(
        self,
        *,
        alpha: Any = ALPHA,
        class_alpha: Any = CLASS_ALPHA,
        class_prior: Any = None,
        estimate: Estimate = "predictive",
        binarize: float | None = 0.0,
        prior: Any = None,
    ) -> None:
        self.alpha = alpha
        self.class_alpha = class_alpha
        self.class_prior = class_prior
        self.estimate = estimate
        self.binarize = binarize
        self.prior = prior

    def _columns(self, table: Table) -> tuple[Columns, ...]:
        n = len(table.names)
        return (binary_columns(table, range(n), self.binarize),)

    @property
    def feature_count_(self) -> np.ndarray:
        """(C, F) weight of the rows in which the feature is present."""
        self._require_fitted("feature_count_")
        return self.statistics_.blocks[0].count[:, 1::2]

    @property
    def feature_log_prob_(self) -> np.ndarray:
        """(C, F) log posterior mean of P(present | class)."""
        self._require_fitted("feature_log_prob_")
        return scoring.plug_in(self.posterior_.blocks[0]).log_theta[:, 1::2]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.classifier_tags.poor_score = True
        return tags


class MultinomialNB(NaiveBayesClassifier):
    """Naive Bayes for counts over one simplex, such as a bag of words: θ_c ~ Dirichlet(α).

    Parameters
    ----------
    alpha : scalar, (F,) array, (C, F) array or Dirichlet
        Concentration of each word.
    class_alpha, class_prior, estimate, prior
        As for `CategoricalNB`. "predictive" is the Dirichlet-multinomial: a word that occurred once in
        a row makes itself more probable the second time, as parameters are integrated out per row.

    Attributes
    ----------
    feature_count_ : (C, F) array
        Counts of each word in each class.
    feature_log_prob_ : (C, F) array
        Log posterior mean of each word's probability.
    classes_, class_count_, class_log_prior_, prior_, posterior_, statistics_, log_evidence_
        As for `CategoricalNB`.

    Notes
    -----
    Fractional counts (tf-idf) are accepted as scikit-learn's are; the evidence is then that of a
    pseudo-likelihood, factorials read as gamma functions.

    Examples
    --------
    >>> from bayesnb import MultinomialNB
    >>> nb = MultinomialNB(alpha=1.0).fit([[2, 1, 0], [1, 0, 3]], ["sport", "science"])
    >>> nb.predict_proba([[1, 0, 1]]).round(2)
    array([[0.67, 0.33]])
    >>> nb.predict_proba([[1, 0, 1]], estimate="mean").round(2)  # scikit-learn's
    array([[0.66, 0.34]])
    """

    def __init__(
        self,
        *,
        alpha: Any = ALPHA,
        class_alpha: Any = CLASS_ALPHA,
        class_prior: Any = None,
        estimate: Estimate = "predictive",
        prior: Any = None,
    ) -> None:
        self.alpha = alpha
        self.class_alpha = class_alpha
        self.class_prior = class_prior
        self.estimate = estimate
        self.prior = prior

    def _columns(self, table: Table) -> tuple[Columns, ...]:
        n = len(table.names)
        return (CountColumns(range(n), table.names, n),)

    @property
    def feature_count_(self) -> np.ndarray:
        """(C, F) count of each word."""
        self._require_fitted("feature_count_")
        return self.statistics_.blocks[0].count

    @property
    def feature_log_prob_(self) -> np.ndarray:
        """(C, F) log posterior mean of the probability of each word."""
        self._require_fitted("feature_log_prob_")
        return scoring.plug_in(self.posterior_.blocks[0]).log_theta

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True
        return tags


def binary_columns(table: Table, index: Sequence[int], binarize: Any) -> BinaryColumns:
    """Bernoulli columns of a table, cut at `binarize`."""
    if binarize is not None:
        require_number("binarize", binarize, "a finite number, or None where cells are 0 or 1", lambda _: True)
    names = table.names if len(index) == len(table.names) else tuple(table.names[j] for j in index)
    return BinaryColumns(index, names, len(table.names), binarize)


def level_columns(
    table: Table, index: Sequence[int], categories: Any, handle_unknown: str, missing_values: Any
) -> LevelColumns:
    """Categorical columns of a table with the levels that are declared for them."""
    require_choice("handle_unknown", handle_unknown, HANDLE_UNKNOWN)
    marks = () if missing_values is None else _as_tuple(missing_values)
    marks = tuple(mark for mark in marks if type(mark).__name__ != "NAType")  # pd.NA is missing, and equals nothing
    for mark in marks:
        if not isinstance(mark, Hashable):
            raise ValueError(
                f"missing_values: {shown(mark)} cannot be the value of a cell; use a value or a list of values."
            )
    marked, declared = Levels.from_values(marks), []
    if isinstance(categories, Mapping):
        features = {*table.names, *range(len(table.names))}
        strange = [key for key in categories if key not in features]
        if strange:
            raise ValueError(
                f"categories names a feature {shown(strange[0])} that X does not have: {list(table.names)}."
            )
    for position, j in enumerate(index):
        levels = _declared(categories, position, j, table, len(index))
        declared.append(declared_categories(table.column(j)) if levels is None and not table.is_sparse else levels)
    levels = tuple(Levels.from_values(v for v in (d if d is not None else ()) if v not in marked) for d in declared)
    for j, d, known in zip(index, declared, levels, strict=True):
        if d is not None and not len(known):
            raise ValueError(f"categories: no level is declared for feature {shown(table.names[j])}.")
    flags = tuple(d is not None for d in declared)
    names = tuple(table.names[j] for j in index)
    return LevelColumns(index, names, len(table.names), levels, flags, handle_unknown, marks)  # type: ignore[arg-type]


def _declared(categories: Any, position: int, j: int, table: Table, n: int) -> Any:
    if isinstance(categories, str):
        if categories != "auto":
            raise ValueError(f"categories={shown(categories)} is unknown; use 'auto' or the levels of each feature.")
        return None
    if isinstance(categories, Mapping):
        levels = categories.get(table.names[j], categories.get(j))
    else:
        if not isinstance(categories, Sequence | np.ndarray):
            raise ValueError(
                f"categories={shown(categories)} must be 'auto', a list with the levels of each feature, or a dict "
                "{feature: levels}."
            )
        if len(categories) != n:
            raise ValueError(f"categories has {len(categories)} entries, but there are {n} categorical features.")
        levels = categories[position]
    if levels is None or (isinstance(levels, str) and levels == "auto"):
        return None
    if isinstance(levels, str | bytes) or not isinstance(levels, Iterable):
        raise ValueError(
            f"categories: the levels of feature {shown(table.names[j])} are {shown(levels)}; give a list of them."
        )
    return levels


def _as_tuple(values: Any) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, Iterable) and not isinstance(values, str | bytes) else (values,)
