"""Classifiers whose features have Dirichlet priors: categorical, Bernoulli and multinomial."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from bayesnb._util.arguments import bad_argument, require_choice, require_number, shown
from bayesnb.encoding import (
    BinaryColumns,
    Columns,
    CountColumns,
    LevelColumns,
    Levels,
    Table,
    declared_categories,
)
from bayesnb.encoding.table import is_labelled, match_columns, named_levels
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.estimators.defaults import ALPHA, CLASS_ALPHA
from bayesnb.fitted import scoring
from bayesnb.model import Estimate

HANDLE_UNKNOWN = ("ignore", "error", "level")


@dataclass(eq=False, repr=False)
class CategoricalNB(NaiveBayesClassifier):
    r"""Naive Bayes for categorical features, with a Dirichlet prior of the level probabilities.

    Each feature has a finite set of levels. Given the class, the features are independent:

    .. math::

        & p(c, x \mid \pi, \theta) = \pi_c \prod_{j=1}^F \theta_{cj x_j}, \\
        & \pi \sim \mathrm{Dirichlet}(\mathtt{class\_alpha}), \quad \theta_{cj} \sim \mathrm{Dirichlet}(\alpha),

    where θ_cjl is the probability of level l of feature j in class c. With counts n_cj of the levels, the posterior of
    θ_cj is Dirichlet(α + n_cj); see docs/derivations/conjugate.md, "Dirichlet probabilities".

    Parameters
    ----------
    alpha : scalar, (F,) array, list of F arrays, (C, L) array, Dirichlet, or dict or Series by column, default 1
        Concentration α of the Dirichlet prior of the levels: one number for all levels, one per feature, one per level,
        or one per class and level, with L the number of levels of all features together. Levels are sorted, as in
        `categories_`. The posterior mean under alpha is Laplace smoothing with λ = alpha. A dict or Series is matched
        by name, such as `{"colour": {"green": 2.0}, "root": 0.5}`. Concentrations that it does not name are 1; a level
        that it names is declared.
    class_alpha : scalar, (C,) array, or dict or Series by class, default 1
        Concentration of the Dirichlet prior of the class probabilities π: one number for all classes, or one per class.
        An array is in the order of `classes_`; a dict or Series names the classes.
    class_prior : (C,) array, dict or Series by class, or Dirichlet, optional
        Known class probabilities π, or a Dirichlet prior of π. Replaces `class_alpha`. An array is in the order of
        `classes_`; a dict or Series names the classes.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Estimate of the parameters that predictions use. "predictive" integrates the parameters out (the posterior
        predictive distribution). "mean", "map" and "mle" plug in the posterior mean, the posterior mode and the maximum
        likelihood estimate. For categorical features "predictive" and "mean" agree.
    categories : "auto", list of F lists, or dict {feature: list}, default "auto"
        Levels of each categorical column. "auto": the levels that occur in the rows; `partial_fit` adds new ones. A
        pandas categorical column has the categories of its dtype. Declared levels belong to the model whether or not
        they occur in the rows, and `partial_fit` adds none to them.
    handle_unknown : {"ignore", "error", "level"}, default "ignore"
        Treatment of a value that is not among the levels. "ignore": the cell counts as missing, with a warning.
        "error": ValueError is raised. "level": all such values share one reserved level.
    missing_values : value or list of values, optional
        Values that mark a missing cell, such as "?", besides None, NaN and pd.NA. Missing cells are marginalised, on
        the assumption that they are missing at random.
    prior : NaiveBayes, optional
        Complete prior of the classifier, such as `prior_` of another one. Replaces `alpha`, `class_alpha` and
        `class_prior`.

    Attributes
    ----------
    categories_ : list of arrays
        Levels of each feature, in the order of the level axes.
    category_count_ : list of (C, L_j) arrays
        Sum of the weights of the rows with each level of each feature.
    feature_log_prob_ : list of (C, L_j) arrays
        Logarithm of the posterior mean of each θ_cjl.
    classes_ : (C,) array
        Class labels, in the order of the class axis of every array.
    class_count_ : (C,) array
        Sum of the weights of the rows in each class.
    class_log_prior_ : (C,) array
        Logarithm of the posterior mean of each class probability.
    prior_, posterior_ : NaiveBayes
        Prior and posterior distribution of all parameters.
    statistics_ : Statistics
        Sufficient statistics of the counted rows.
    log_evidence_ : float
        Log evidence log p(X, y): the parameters are integrated out.
    n_parameters_ : int
        Number of free parameters.
    n_features_in_ : int
        Number of columns of X.

    See Also
    --------
    BernoulliNB : Features with two values, also sparse.
    MixedNB : Tables with categorical and numeric columns.
    WeightedNB : Calibrated class probabilities.
    parameter_table : Posterior intervals of the level probabilities.

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
        """Sum of the weights of the rows with each level, one (C, L_j) array per feature."""
        return self._split_by_feature(self.statistics_.blocks[0].count)

    @property
    def feature_log_prob_(self) -> list[np.ndarray]:
        """Logarithm of the posterior mean of P(level | class), one (C, L_j) array per feature."""
        return self._split_by_feature(scoring.plug_in(self.posterior_.blocks[0]).log_theta)

    def _split_by_feature(self, flat: np.ndarray) -> list[np.ndarray]:
        """Split a (C, L) array over the concatenated levels of all features into (C, L_j) arrays, one per feature."""
        columns: Any = self.encoding_.blocks[0]
        return np.split(flat, columns.start()[1:], axis=1)

    _tags = ("categorical", "allow_nan", "poor_score")


@dataclass(eq=False, repr=False)
class BernoulliNB(NaiveBayesClassifier):
    r"""Naive Bayes for features that are absent or present, with a Beta prior of each probability.

    Each feature is x_j = 1 (present) or 0 (absent). Given the class, the features are independent:

    .. math::

        & p(c, x \mid \pi, \theta) = \pi_c \prod_{j=1}^F \theta_{cj}^{x_j} (1 - \theta_{cj})^{1 - x_j}, \\
        & \pi \sim \mathrm{Dirichlet}(\mathtt{class\_alpha}), \quad \theta_{cj} \sim \mathrm{Beta}(\alpha, \alpha),

    where θ_cj is the probability that feature j is present in class c. The posterior of θ_cj is a Beta distribution,
    which is a Dirichlet of two levels; see docs/derivations/conjugate.md, "Dirichlet probabilities".

    Parameters
    ----------
    alpha : scalar, (F,) array, list of F pairs, (C, 2F) array, Dirichlet, or dict or Series by column, default 1
        Concentrations of the Beta prior: one number for all features, one per feature, one pair (absent, present) per
        feature, or one pair per class and feature. A dict or Series is matched by name, such as
        `{"rain": {"present": 2.0}, "wind": 0.5}`; concentrations that it does not name are 1.
    class_alpha : scalar, (C,) array, or dict or Series by class, default 1
        Concentration of the Dirichlet prior of the class probabilities π: one number for all classes, or one per class.
        An array is in the order of `classes_`; a dict or Series names the classes.
    class_prior : (C,) array, dict or Series by class, or Dirichlet, optional
        Known class probabilities π, or a Dirichlet prior of π. Replaces `class_alpha`. An array is in the order of
        `classes_`; a dict or Series names the classes.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Estimate of the parameters that predictions use. "predictive" integrates the parameters out (the posterior
        predictive distribution). "mean", "map" and "mle" plug in the posterior mean, the posterior mode and the maximum
        likelihood estimate. For Bernoulli features "predictive" and "mean" agree.
    binarize : float or None, default 0
        A feature is present if its cell exceeds this threshold. None: cells are 0 or 1 already. NaN in a dense array is
        a missing cell, whatever the threshold.
    prior : NaiveBayes, optional
        Complete prior of the classifier, such as `prior_` of another one. Replaces `alpha`, `class_alpha` and
        `class_prior`.

    Attributes
    ----------
    feature_count_ : (C, F) array
        Sum of the weights of the rows in which each feature is present.
    feature_log_prob_ : (C, F) array
        Logarithm of the posterior mean of each θ_cj.
    classes_ : (C,) array
        Class labels, in the order of the class axis of every array.
    class_count_ : (C,) array
        Sum of the weights of the rows in each class.
    class_log_prior_ : (C,) array
        Logarithm of the posterior mean of each class probability.
    prior_, posterior_ : NaiveBayes
        Prior and posterior distribution of all parameters.
    statistics_ : Statistics
        Sufficient statistics of the counted rows.
    log_evidence_ : float
        Log evidence log p(X, y): the parameters are integrated out.

    See Also
    --------
    MultinomialNB : Counts of words instead of their presence.
    CategoricalNB : Features with more than two levels.
    text.BagOfWords : Matrix of words from documents.
    top_words : Words that indicate each class.

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
        return (binary_columns(table, range(len(table.names)), self.binarize),)

    @property
    def feature_count_(self) -> np.ndarray:
        """Sum of the weights of the rows in which each feature is present, (C, F)."""
        return np.asarray(self.statistics_.blocks[0].count[:, 1::2])

    @property
    def feature_log_prob_(self) -> np.ndarray:
        """Logarithm of the posterior mean of P(present | class), (C, F)."""
        return np.asarray(scoring.plug_in(self.posterior_.blocks[0]).log_theta[:, 1::2])

    _tags = ("sparse", "allow_nan", "poor_score")


@dataclass(eq=False, repr=False)
class MultinomialNB(NaiveBayesClassifier):
    r"""Naive Bayes for vectors of counts, such as bags of words, with a Dirichlet prior.

    A row holds the counts x_j of F words, with total t. Given the class, the words are independent draws:

    .. math::

        & p(c, x \mid \pi, \theta) = \pi_c \frac{t!}{\prod_j x_j!} \prod_{j=1}^F \theta_{cj}^{x_j}, \\
        & \pi \sim \mathrm{Dirichlet}(\mathtt{class\_alpha}), \quad \theta_c \sim \mathrm{Dirichlet}(\alpha),

    where θ_cj is the probability of word j in class c. With counts n_c of the words in the class, the posterior of θ_c
    is Dirichlet(α + n_c); see docs/derivations/conjugate.md, "Dirichlet probabilities".

    Parameters
    ----------
    alpha : scalar, (F,) array, (C, F) array, Dirichlet, or dict or Series by column, default 1
        Concentration α of the Dirichlet prior of the words: one number for all words, one per word, or one per class
        and word. A dict or Series is matched by name; words that it does not name have 1.
    class_alpha : scalar, (C,) array, or dict or Series by class, default 1
        Concentration of the Dirichlet prior of the class probabilities π: one number for all classes, or one per class.
        An array is in the order of `classes_`; a dict or Series names the classes.
    class_prior : (C,) array, dict or Series by class, or Dirichlet, optional
        Known class probabilities π, or a Dirichlet prior of π. Replaces `class_alpha`. An array is in the order of
        `classes_`; a dict or Series names the classes.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Estimate of the parameters that predictions use. "predictive" integrates the parameters out (the posterior
        predictive distribution). "mean", "map" and "mle" plug in the posterior mean, the posterior mode and the maximum
        likelihood estimate. Here "predictive" is the Dirichlet-multinomial distribution, under which a word that has
        occurred once in a row is more probable the second time; it differs from "mean".
    prior : NaiveBayes, optional
        Complete prior of the classifier, such as `prior_` of another one. Replaces `alpha`, `class_alpha` and
        `class_prior`.

    Attributes
    ----------
    feature_count_ : (C, F) array
        Count of each word in each class, with each row multiplied by its weight.
    feature_log_prob_ : (C, F) array
        Logarithm of the posterior mean of each θ_cj.
    classes_ : (C,) array
        Class labels, in the order of the class axis of every array.
    class_count_ : (C,) array
        Sum of the weights of the rows in each class.
    class_log_prior_ : (C,) array
        Logarithm of the posterior mean of each class probability.
    prior_, posterior_ : NaiveBayes
        Prior and posterior distribution of all parameters.
    statistics_ : Statistics
        Sufficient statistics of the counted rows.
    log_evidence_ : float
        Log evidence log p(X, y): the parameters are integrated out.

    See Also
    --------
    BernoulliNB : Presence of words instead of counts.
    PoissonNB : Independent counts without a common total.
    text.BagOfWords : Matrix of words from documents.
    top_words : Words that indicate each class.

    Notes
    -----
    Fractional counts such as tf-idf are accepted, as in scikit-learn. The evidence is then that of a pseudo-likelihood,
    with gamma functions in place of the factorials.

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
        return (CountColumns(*table.columns_at(range(len(table.names)))),)

    @property
    def feature_count_(self) -> np.ndarray:
        """Count of each word in each class, with each row multiplied by its weight, (C, F)."""
        return np.asarray(self.statistics_.blocks[0].count)

    @property
    def feature_log_prob_(self) -> np.ndarray:
        """Logarithm of the posterior mean of the probability of each word, (C, F)."""
        return np.asarray(scoring.plug_in(self.posterior_.blocks[0]).log_theta)

    _tags = ("sparse", "positive_only", "poor_score")


def binary_columns(table: Table, index: Sequence[int], binarize: float | None) -> BinaryColumns:
    """Make one block of Bernoulli columns of a table, at positions `index`: present where a cell exceeds `binarize`."""
    if binarize is not None:
        require_number("binarize", binarize, "a finite number, or None if all cells are 0 or 1", lambda _: True)
    return BinaryColumns(*table.columns_at(index), binarize)


def level_columns(
    table: Table, index: Sequence[int], categories: object, handle_unknown: str, missing_values: object
) -> LevelColumns:
    """Make one block of categorical columns of a table, at positions `index`, with the levels declared for them.

    Levels are declared by `categories`, or where that is "auto" by the type of the column (pandas categorical, polars
    enumeration); other columns have no level yet. Values in `missing_values` are not levels. Raises ValueError for
    unusable options.
    """
    require_choice("handle_unknown", handle_unknown, HANDLE_UNKNOWN)
    is_list = isinstance(missing_values, Iterable) and not isinstance(missing_values, str | bytes)
    given_marks: Any = missing_values if is_list else [] if missing_values is None else [missing_values]
    marks = tuple(mark for mark in given_marks if type(mark).__name__ != "NAType")  # pd.NA is missing anyway
    if not all(isinstance(mark, Hashable) for mark in marks):
        raise bad_argument("missing_values", missing_values, "a hashable cell or a list of these")
    marked, known, declared = Levels.from_values(marks), [], []
    for j, given in zip(index, _read_categories(table, index, categories), strict=True):
        where = f"feature {shown(table.names[j])}"
        if given is None or (isinstance(given, str) and given == "auto"):
            given = None if table.is_sparse else declared_categories(table.column(j))
        elif isinstance(given, str | bytes) or not isinstance(given, Iterable):
            raise ValueError(f"categories: the levels of {where} must be a list; they are {shown(given)}.")
        known.append(Levels.from_values(v for v in (() if given is None else given) if v not in marked))
        declared.append(given is not None)
        if declared[-1] and not len(known[-1]):
            raise ValueError(f"categories: no level is declared for {where}. Declare at least one.")
    unknown: Any = handle_unknown
    return LevelColumns(*table.columns_at(index), tuple(known), tuple(declared), unknown, marks)


def declared_columns(table: Table, categories: object, alpha: object) -> set[int]:
    """Return the positions of the columns whose levels are declared by column, in `categories` or by names in `alpha`.

    A list of categories is for the categorical columns, whatever these are, and declares none of them so.
    """
    by_column = {} if isinstance(categories, list | tuple) or not is_labelled(categories) else categories
    named = match_columns("alpha", alpha, table.names) if is_labelled(alpha) else {}
    declared = {j for j, entry in named.items() if named_levels(entry)}
    return declared | match_columns("categories", by_column, table.names).keys()


def _read_categories(table: Table, index: Sequence[int], categories: object) -> list[Any]:
    """Return the levels that `categories` gives for each column of `index`; None for "auto" or no entry.

    Raises
    ------
    ValueError
        If `categories` is neither "auto", a dict nor a list with an entry for each column.
    """
    if isinstance(categories, str) and categories == "auto":
        return [None] * len(index)
    if not isinstance(categories, list | tuple) and is_labelled(categories):
        by_column = match_columns("categories", categories, table.names)
        return [by_column.get(j) for j in index]
    levels: Any = categories
    is_list = isinstance(levels, Sequence | np.ndarray) and not isinstance(levels, str)
    if not is_list or len(levels) != len(index):
        raise bad_argument(
            "categories", categories, f"'auto', a dict {{feature: levels}}, or a list of {len(index)} lists"
        )
    return list(levels)
