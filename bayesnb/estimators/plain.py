"""Classifiers of columns of one kind: levels, presence, words, numbers and binned numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import jax
import numpy as np

from bayesnb._util.arguments import bad_argument, require_choice, require_integer, require_number, shown
from bayesnb._util.precision import float64
from bayesnb.encoding import (
    BinaryColumns,
    CellColumns,
    Columns,
    CountColumns,
    Encoding,
    ExposedColumns,
    LevelColumns,
    Levels,
    RealColumns,
    Rows,
    Table,
    declared_categories,
)
from bayesnb.encoding.edges import check_edges
from bayesnb.encoding.priors import BlockPrior, read_dispersion
from bayesnb.encoding.table import as_list, is_labelled, match_columns, match_index, named_levels, read_labelled
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.estimators.classifier_state import ALPHA, CELLS, CLASS_ALPHA, Batch, LabelledRows
from bayesnb.families import (
    BetaNegativeBinomial,
    Binned,
    GammaExponential,
    GammaPoisson,
    LevelCounts,
    NormalInverseGamma,
    with_dispersion,
)
from bayesnb.families.arrays import kernel
from bayesnb.fitted import counting, scoring
from bayesnb.model import Estimate

# == Classifiers whose features have Dirichlet priors: categorical, Bernoulli and multinomial ======

HANDLE_UNKNOWN = ("ignore", "error", "level")


@dataclass(eq=False, repr=False)
class DirichletNB(NaiveBayesClassifier):
    """Naive Bayes for levels or words of one kind, whose probabilities have Dirichlet priors."""

    _: KW_ONLY
    alpha: object = ALPHA
    class_alpha: object = CLASS_ALPHA
    class_prior: object = None
    estimate: Estimate = "predictive"
    prior: object = None


@dataclass(eq=False, repr=False)
class CategoricalNB(DirichletNB):
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
        that it names is declared. The entry of a column is a number, an array by level, a dict or Series by level, or
        differs between classes: an array (classes, levels), a DataFrame with a row for each class, or a dict or Series
        by class, such as `{"colour": {"ripe": {"green": 2.0}, "raw": 1.0}}`.
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
    categories: object = "auto"
    handle_unknown: str = "ignore"
    missing_values: object = None

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
        columns: Columns = self.encoding_.blocks[0]
        return np.split(flat, columns.start()[1:], axis=1)

    _tags = ("categorical", "allow_nan", "poor_score")


@dataclass(eq=False, repr=False)
class BernoulliNB(DirichletNB):
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
        `{"rain": {"present": 2.0}, "wind": 0.5}`; concentrations that it does not name are 1. An entry may name the
        classes, such as `{"rain": {"spring": {"present": 2.0}, "autumn": 1.0}}`, also as a DataFrame with a row for
        each class, or be an array (classes, 2).
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
    binarize: float | None = 0.0

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


class MultinomialNB(DirichletNB):
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
        and word. A dict or Series is matched by name; words that it does not name have 1. The entry of a word may be a
        dict or Series by class.
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
    marks = tuple(mark for mark in as_list(missing_values) if type(mark).__name__ != "NAType")  # missing anyway
    if not all(isinstance(mark, Hashable) for mark in marks):
        raise bad_argument("missing_values", missing_values, "a hashable cell or a list of these")
    marked, known, declared = Levels.from_values(marks), [], []
    by_column = {} if isinstance(categories, str) and categories == "auto" else categories
    wanted = f"'auto', a dict {{feature: levels}}, or a list of {len(index)} lists"
    levels = match_index("categories", by_column, table.names, index, wanted)
    for j, given in zip(index, levels, strict=True):
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

    A list of categories is for the categorical columns, whatever these are, and declares none of them so. Texts, which
    may be classes, do not declare levels of a column of numbers.
    """
    declared = set(match_columns("categories", categories, table.names)) if is_labelled(categories) else set[int]()
    for j, entry in match_columns("alpha", alpha, table.names).items():
        labels = named_levels("alpha", entry, Levels(()))
        if labels and not (table.is_numeric(j, whole=True) and all(isinstance(label, str) for label in labels)):
            declared.add(j)
    return declared


# == Classifiers for numbers: Gaussian, Poisson and exponential features ===========================


@dataclass(eq=False, repr=False)
class NumbersNB(NaiveBayesClassifier):
    """Naive Bayes for numbers of one conjugate family, the class attribute `family` of a subclass."""

    _: KW_ONLY
    prior: object = "pooled"
    class_alpha: object = CLASS_ALPHA
    class_prior: object = None
    estimate: Estimate = "predictive"

    family: ClassVar[Any]

    def _columns(self, table: Table) -> tuple[Columns, ...]:
        """Return one block of all columns of a table, with the conjugate family of the classifier."""
        return (RealColumns(*table.columns_at(range(len(table.names))), self.family),)

    @property
    def _tags(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of scikit-learn's tags that hold; "positive_only" and "poor_score" for non-negative families."""
        signs = ("positive_only", "poor_score") if self.family.nonnegative else ()
        return ("allow_nan", *signs, *(["sparse"] if self.family.sparse else []))


@dataclass(eq=False, repr=False)
class GaussianNB(NumbersNB):
    r"""Naive Bayes for features that are normally distributed given the class, with unknown means and variances.

    Given the class, the features are independent and normal:

    .. math::

        & p(c, x \mid \pi, \mu, \sigma^2) = \pi_c \prod_{j=1}^F N(x_j \mid \mu_{cj}, \sigma^2_{cj}), \\
        & \sigma^2_{cj} \sim \mathrm{InverseGamma}(a, b), \quad
        \mu_{cj} \mid \sigma^2_{cj} \sim N(m, \sigma^2_{cj}/\kappa),

    with π ~ Dirichlet(`class_alpha`). The posterior of each (μ_cj, σ²_cj) is normal-inverse-gamma again; see
    docs/derivations/conjugate.md, "Normal observations".

    Parameters
    ----------
    prior : {"within", "pooled"}, NormalInverseGamma, EmpiricalNormal, dict by column, or NaiveBayes, default "within"
        Prior of the mean and variance of each feature, or a complete prior of the classifier. "within": empirical
        Bayes, with m the mean of the feature over all rows, which counts as a tenth of a row (κ = 0.1), and b its
        variance within the classes, which counts as two rows (a = 1). "pooled": the same, with b the variance over all
        rows; see the notes. `bayesnb.families.EmpiricalNormal` takes other κ and a. A NormalInverseGamma is used as
        given; its fields are scalars, (F,) or (C, F). A dict by column gives the prior of some columns, such as
        `{"age": NormalInverseGamma(...)}`, whose fields may also be dicts by class; the other columns have the default
        prior, or that of the entry `None`.
    class_alpha : scalar, (C,) array, or dict or Series by class, default 1
        Concentration of the Dirichlet prior of the class probabilities π: one number for all classes, or one per class.
        An array is in the order of `classes_`; a dict or Series names the classes.
    class_prior : (C,) array, dict or Series by class, or Dirichlet, optional
        Known class probabilities π, or a Dirichlet prior of π. Replaces `class_alpha`. An array is in the order of
        `classes_`; a dict or Series names the classes.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Estimate of the parameters that predictions use. "predictive" integrates the parameters out (the posterior
        predictive distribution). "mean", "map" and "mle" plug in the posterior mean, the posterior mode and the maximum
        likelihood estimate. Here "predictive" is Student's t distribution.

    Attributes
    ----------
    theta_ : (C, F) array
        Posterior mean of each mean μ_cj.
    var_ : (C, F) array
        Posterior mean of each variance σ²_cj.
    time_units_ : dict {column name: unit}
        Units of the columns of dates ("days" since 1970, UTC) and of durations ("seconds"); only if there are any.
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
        Log evidence log p(X, y): the parameters are integrated out. Under a prior that is derived from the data, the
        evidence is conditional on that prior.

    See Also
    --------
    BinnedNB : Densities of any shape.
    MixedNB : Normal or binned densities, chosen for each column, and categorical columns.
    NormalInverseGamma : Prior of means and variances.
    parameter_table : Posterior intervals of means and variances.

    Notes
    -----
    NaN is a missing cell and contributes nothing, on the assumption that cells are missing at random.

    The variance over all rows, `prior="pooled"`, is too large if the classes lie far apart. In simulations with class
    means six standard deviations apart, 90% intervals of class probabilities covered the truth in .03 of the data sets;
    on iris the log evidence is 80 nats lower. With few rows, the log loss under "pooled" may still be lower than under
    "within", because inflated variances undo some of the overconfidence of naive Bayes (docs/priors.md).

    Examples
    --------
    >>> from bayesnb import GaussianNB
    >>> nb = GaussianNB().fit([[1.0], [1.2], [3.0], [3.1]], ["low", "low", "high", "high"])
    >>> nb.predict([[2.9]])
    array(['high'], dtype='<U4')
    """

    _: KW_ONLY
    prior: object = "within"

    family = NormalInverseGamma

    @property
    def theta_(self) -> np.ndarray:
        """Posterior mean of each mean μ, (C, F), in the units of the features."""
        return np.asarray(scoring.plug_in(self.posterior_.blocks[0]).mu)

    @property
    def var_(self) -> np.ndarray:
        """Posterior mean of each variance σ², (C, F), in squared units of the features."""
        return np.asarray(scoring.plug_in(self.posterior_.blocks[0]).sigma2)


class RatesNB(NumbersNB):
    """Naive Bayes for counts or durations, whose distribution in a class has a rate."""

    @property
    def rate_(self) -> np.ndarray:
        """Posterior mean of each rate λ, (C, F): counts per row, or per unit of exposure; one over a duration."""
        return np.asarray(scoring.plug_in(self.posterior_.blocks[0]).rate)


@dataclass(eq=False, repr=False)
class PoissonNB(RatesNB):
    r"""Naive Bayes for counts that are Poisson distributed given the class, with a gamma prior of the rates.

    Given the class, the features are independent counts:

    .. math::

        & p(c, x \mid \pi, \lambda) = \pi_c \prod_{j=1}^F \frac{\lambda_{cj}^{x_j} e^{-\lambda_{cj}}}{x_j!}, \\
        & \pi \sim \mathrm{Dirichlet}(\mathtt{class\_alpha}), \quad \lambda_{cj} \sim \mathrm{Gamma}(a, b),

    where λ_cj is the expected count of feature j in a row of class c, and b is a rate. The posterior of λ_cj is Gamma(a
    + Σx, b + n), with Σx the sum of the counts and n the weight of the rows; see
    docs/derivations/conjugate.md, "Poisson counts". With `exposure`, the expected count in a row of exposure t is
    λ_cj t, and the posterior Gamma(a + Σx, b + Σt).

    Parameters
    ----------
    prior : "pooled", GammaPoisson, EmpiricalRate, dict by column, or NaiveBayes, default "pooled"
        Prior of the rate of each feature, or a complete prior of the classifier. "pooled": empirical Bayes, with a = 1
        and b = 1/mean, for the mean of the feature over all rows (with `exposure` that per unit, Σx/Σt). A GammaPoisson
        is used as given; its fields are scalars, (F,) or (C, F). A dict by column gives the prior of some columns, such
        as `{"visits": GammaPoisson(...)}`, whose fields may also be dicts by class; the other columns have the default
        prior, or that of the entry `None`.
    class_alpha : scalar, (C,) array, or dict or Series by class, default 1
        Concentration of the Dirichlet prior of the class probabilities π: one number for all classes, or one per class.
        An array is in the order of `classes_`; a dict or Series names the classes.
    class_prior : (C,) array, dict or Series by class, or Dirichlet, optional
        Known class probabilities π, or a Dirichlet prior of π. Replaces `class_alpha`. An array is in the order of
        `classes_`; a dict or Series names the classes.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Estimate of the parameters that predictions use. "predictive" integrates the parameters out (the posterior
        predictive distribution). "mean", "map" and "mle" plug in the posterior mean, the posterior mode and the maximum
        likelihood estimate. Here "predictive" is the negative binomial distribution.
    exposure : str or int, optional
        Name or position of the column of X with the exposure of each row, a positive number such as hours of
        observation, trap nights, or reads of a sample. Counts are proportional to it; it is no feature itself, and says
        nothing of the class. A row without exposure raises ValueError. Default: all rows have the same exposure.

    Attributes
    ----------
    feature_count_ : (C, F) array
        Sum of the counts of each feature in each class. F does not include the column `exposure`.
    rate_ : (C, F) array
        Posterior mean of each rate λ_cj, in counts per row, or per unit of exposure.
    time_units_ : dict {column name: unit}
        Units of the columns of dates ("days" since 1970, UTC) and of durations ("seconds"); only if there are any.
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
        Log evidence log p(X, y): the parameters are integrated out. Under a prior that is derived from the data, the
        evidence is conditional on that prior.

    See Also
    --------
    MultinomialNB : Counts that share a total, such as words of a document.
    ExponentialNB : Durations.
    GammaPoisson : Prior of the rates.
    posterior_predictive_check : Test of whether the counts are Poisson distributed.

    Notes
    -----
    NaN is a missing cell, which contributes nothing. Non-negative numbers that are not whole are accepted; the evidence
    is then that of a pseudo-likelihood.

    X may be a sparse matrix, whose absent cells are counts of 0 and which may have no NaN. Its rows become dense a
    piece at a time: memory grows with the stored entries, but time with all cells, as a count of 0 is evidence too.
    With thousands of words, predictions are many times as fast with `estimate="mean"`.

    Examples
    --------
    >>> from bayesnb import PoissonNB
    >>> nb = PoissonNB().fit([[0], [1], [5], [7]], ["quiet", "quiet", "busy", "busy"])
    >>> nb.classes_, nb.rate_.round(2)
    (array(['busy', 'quiet'], dtype='<U5'), array([[5.63],
           [0.87]]))
    >>> nb.predict_proba([[3]]).round(2)
    array([[0.68, 0.32]])

    Calls in one hour and in five: three calls are many in one hour, and few in five.

    >>> import pandas as pd
    >>> X = pd.DataFrame({"calls": [0, 3, 4, 33], "hours": [1, 5, 1, 5]})
    >>> nb = PoissonNB(exposure="hours").fit(X, ["quiet", "quiet", "busy", "busy"])
    >>> nb.rate_.round(2)  # calls an hour
    array([[6.03],
           [0.63]])
    >>> nb.predict_proba(pd.DataFrame({"calls": [3, 3], "hours": [1, 5]})).round(2)
    array([[0.77, 0.23],
           [0.  , 1.  ]])
    """

    _: KW_ONLY
    exposure: object = None

    family = GammaPoisson

    def _columns(self, table: Table) -> tuple[Columns, ...]:
        """Return one block of all columns of a table, but for that of exposures."""
        if self.exposure is None:
            return super()._columns(table)
        return (ExposedColumns.from_table(table, self.family, self.exposure),)

    def _encode(self, batch: Batch, columns: tuple[Columns, ...] | None = None) -> LabelledRows:
        """Encode the rows of positive weight of a batch, whose other rows must have exposures too."""
        if self.exposure is not None:
            ExposedColumns.from_table(batch.table, self.family, self.exposure).read_exposure(batch.table)
        return super()._encode(batch, columns)

    @property
    def feature_count_(self) -> np.ndarray:
        """Sum of the counts of each feature in each class, (C, F)."""
        return np.asarray(self.statistics_.blocks[0].total)


@dataclass(eq=False, repr=False)
class NegativeBinomialNB(RatesNB):
    r"""Naive Bayes for overdispersed counts: negative binomial given the class, averaged over the dispersions.

    Given the class, the features are independent counts with the variance λ + λ²/r:

    .. math::

        & p(c, x \mid \pi, \lambda, r) = \pi_c \prod_{j=1}^F \frac{\Gamma(x_j + r_{cj})}{\Gamma(r_{cj})\, x_j!}
            \left(\frac{\lambda_{cj}}{r_{cj} + \lambda_{cj}}\right)^{x_j}
            \left(\frac{r_{cj}}{r_{cj} + \lambda_{cj}}\right)^{r_{cj}}, \\
        & \pi \sim \mathrm{Dirichlet}(\mathtt{class\_alpha}), \quad
          \frac{r_{cj}}{r_{cj} + \lambda_{cj}} \sim \mathrm{Beta}(1 + b r_{cj}, a),

    where λ_cj is the expected count of feature j in a row of class c. The prior mean of λ is a/b whatever r is; as r
    grows the model becomes that of `PoissonNB` with λ ~ Gamma(a, b). Each class and feature has a dispersion r of its
    own, one of 29 values from 1/16 to 1024. All results are averages over these values, weighted by their posterior
    probabilities, which are exact; see docs/derivations/counts.md.

    Parameters
    ----------
    dispersion : "evidence", float, (F,) array, or dict or Series by column, default "evidence"
        Dispersions r, positive numbers. "evidence": averages over 29 values. A number, or one per column, is used as
        given. A small r is a large variance: in ecology r is the dispersion parameter k, in R's `glm.nb` it is `theta`;
        edgeR and DESeq2 call 1/r the dispersion.
    exposure : None
        Not supported: the effort of rows, such as hours, by which `PoissonNB` multiplies rates, raises
        NotImplementedError with the reason.
    prior : "pooled", BetaNegativeBinomial, EmpiricalCounts, dict by column, or NaiveBayes, default "pooled"
        Prior of the rate and dispersion of each feature, or a complete prior of the classifier. "pooled": empirical
        Bayes, with a = 1 and b = 1/mean, for the mean of the feature over all rows, and with probabilities of the 29
        dispersions that all classes and features share, estimated by EM. The fields `concentration` a and `rate` b of a
        BetaNegativeBinomial are used as given, with a half-Cauchy distribution of 1/√r; they are scalars, (F,) or (C,
        F). A dict by column gives the prior of
        some columns, such as `{"visits": BetaNegativeBinomial(...)}`, whose fields may also be dicts by class; the
        other columns have the default prior, or that of the entry `None`.
    class_alpha : scalar, (C,) array, or dict or Series by class, default 1
        Concentration of the Dirichlet prior of the class probabilities π: one number for all classes, or one per class.
        An array is in the order of `classes_`; a dict or Series names the classes.
    class_prior : (C,) array, dict or Series by class, or Dirichlet, optional
        Known class probabilities π, or a Dirichlet prior of π. Replaces `class_alpha`. An array is in the order of
        `classes_`; a dict or Series names the classes.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Estimate of the parameters that predictions use. "predictive" integrates the parameters out (the posterior
        predictive distribution). "mean", "map" and "mle" plug in the posterior mean, the posterior mode and the maximum
        likelihood estimate, with the most likely of the dispersions.

    Attributes
    ----------
    feature_count_ : (C, F) array
        Sum of the counts of each feature in each class.
    rate_ : (C, F) array
        Posterior mean of each rate λ_cj, in counts per row.
    dispersion_ : (C, F) array
        Posterior mean of each dispersion r_cj.
    time_units_ : dict {column name: unit}
        Units of the columns of dates ("days" since 1970, UTC) and of durations ("seconds"); only if there are any.
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
        Log evidence log p(X, y): the parameters are integrated out. Under a prior that is derived from the data, the
        evidence is conditional on that prior.

    See Also
    --------
    PoissonNB : Counts whose variance is their mean; compare `log_evidence_`.
    MultinomialNB : Counts that share a total, such as words of a document.
    posterior_predictive_check : Test of whether counts vary as the model says.

    Notes
    -----
    NaN is a missing cell, which contributes nothing. A number between two whole ones counts as a share of each of them;
    the evidence is then that of a pseudo-likelihood.

    The sufficient statistics are the numbers of cells above 0, 1, 2, … (`statistics_.blocks[0].tail`). Memory grows
    with the largest count: (C, F, K) numbers, K the power of two above it. X may be a sparse matrix, whose absent cells
    are counts of 0 and which may have no NaN.

    The posterior variance of a rate is infinite if b' r <= 1 for a possible r, as with fewer than 16 rows in a class.
    Intervals are finite.

    References
    ----------
    Johnson, Kemp & Kotz, *Univariate Discrete Distributions* (2005), chapter 5.

    Examples
    --------
    >>> from bayesnb import NegativeBinomialNB, PoissonNB
    >>> X, y = [[0], [0], [9], [1], [30], [2], [14], [3]], ["few"] * 4 + ["many"] * 4
    >>> nb = NegativeBinomialNB().fit(X, y)
    >>> nb.rate_.round(2), nb.dispersion_.round(1)
    (array([[ 2.66],
           [12.09]]), array([[0.8],
           [1.2]]))
    >>> nb.predict_proba([[30]]).round(2), PoissonNB().fit(X, y).predict_proba([[30]]).round(2)
    (array([[0.07, 0.93]]), array([[0., 1.]]))
    """

    _: KW_ONLY
    dispersion: object = "evidence"
    exposure: object = None

    family = BetaNegativeBinomial

    def _columns(self, table: Table) -> tuple[Columns, ...]:
        """Return one block of all columns of a table; raise NotImplementedError for an exposure."""
        if self.exposure is not None:
            raise NotImplementedError(
                "NegativeBinomialNB has no exposure: with the same dispersion in all rows the posterior of a rate has "
                "no closed form, and with one that grows with the exposure its intervals are too narrow. Use PoissonNB "
                "with exposure=, and rows= for intervals that include overdispersion."
            )
        return super()._columns(table)

    def _block_prior(self, columns: Columns, classes: Levels) -> BlockPrior:
        """Return the prior of the counts by the hyperparameters, with known dispersions if these are given."""
        prior = super()._block_prior(columns, classes)
        if isinstance(self.dispersion, str) and self.dispersion == "evidence":
            return prior
        return with_dispersion(prior, read_dispersion(self.dispersion, columns))

    @property
    def feature_count_(self) -> np.ndarray:
        """Sum of the counts of each feature in each class, (C, F)."""
        return np.asarray(self.statistics_.blocks[0].total)

    @property
    def dispersion_(self) -> np.ndarray:
        """Posterior mean of each dispersion r, (C, F)."""
        return np.asarray(scoring.plug_in(self.posterior_.blocks[0]).dispersion)


class ExponentialNB(RatesNB):
    r"""Naive Bayes for durations that are exponentially distributed given the class, with a gamma prior of the rates.

    Given the class, the features are independent durations x_j ≥ 0:

    .. math::

        & p(c, x \mid \pi, \lambda) = \pi_c \prod_{j=1}^F \lambda_{cj} e^{-\lambda_{cj} x_j}, \\
        & \pi \sim \mathrm{Dirichlet}(\mathtt{class\_alpha}), \quad \lambda_{cj} \sim \mathrm{Gamma}(a, b),

    where b is a rate. The posterior of λ_cj is Gamma(a + n, b + Σx), with n the weight of the rows and Σx the sum of
    the durations.

    Parameters
    ----------
    prior : "pooled", GammaExponential, EmpiricalDuration, dict by column, or NaiveBayes, default "pooled"
        Prior of the rate of each feature, or a complete prior of the classifier. "pooled": empirical Bayes, with a = 1
        and b the mean of the feature over all rows, which counts as one row. `bayesnb.families.EmpiricalDuration` takes
        other strengths. A GammaExponential is used as given; its fields are scalars, (F,) or (C, F). A dict by column
        gives the prior of some columns, such as `{"wait": GammaExponential(...)}`, whose fields may also be dicts by
        class; the other columns have the default prior, or that of the entry `None`.
    class_alpha : scalar, (C,) array, or dict or Series by class, default 1
        Concentration of the Dirichlet prior of the class probabilities π: one number for all classes, or one per class.
        An array is in the order of `classes_`; a dict or Series names the classes.
    class_prior : (C,) array, dict or Series by class, or Dirichlet, optional
        Known class probabilities π, or a Dirichlet prior of π. Replaces `class_alpha`. An array is in the order of
        `classes_`; a dict or Series names the classes.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Estimate of the parameters that predictions use. "predictive" integrates the parameters out (the posterior
        predictive distribution). "mean", "map" and "mle" plug in the posterior mean, the posterior mode and the maximum
        likelihood estimate. Here "predictive" is the Lomax distribution.

    Attributes
    ----------
    rate_ : (C, F) array
        Posterior mean of each rate λ_cj, in units of one over the unit of X.
    time_units_ : dict {column name: unit}
        Units of the columns of dates ("days" since 1970, UTC) and of durations ("seconds"); only if there are any.
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
        Log evidence log p(X, y): the parameters are integrated out. Under a prior that is derived from the data, the
        evidence is conditional on that prior.

    See Also
    --------
    GaussianNB : Numbers that may be negative.
    PoissonNB : Counts.
    BinnedNB : Densities of any shape.
    GammaExponential : Prior of the rates.

    Notes
    -----
    NaN is a missing cell, which contributes nothing. A censored duration can only be given as a missing cell.

    References
    ----------
    Bernardo & Smith, *Bayesian Theory* (1994), appendix A.

    Examples
    --------
    >>> from bayesnb import ExponentialNB
    >>> nb = ExponentialNB().fit([[0.1], [0.3], [4.0], [2.0]], ["fast", "fast", "slow", "slow"])
    >>> nb.predict([[0.2], [5.0]])
    array(['fast', 'slow'], dtype='<U4')
    """

    family = GammaExponential


OF_KIND: dict[str, type[NumbersNB]] = {
    cls.family.kind: cls for cls in (GaussianNB, PoissonNB, NegativeBinomialNB, ExponentialNB)
}
"""Classifiers by the kind of numbers in their columns."""


# == Naive Bayes for numbers of any distribution: the average over all binnings ====================

_MOST_CELLS = 256


@dataclass(eq=False, repr=False)
class BinnedNB(NaiveBayesClassifier):
    r"""Naive Bayes for numbers with densities of any shape: step functions, averaged over all binnings.

    Each feature is divided into G cells, and neighbouring cells are joined to bins: each of the G - 1 ends of cells is
    a cut or not, the same in all classes. A binning B has the bins b, and a cell g the probability

    .. math::

        & p(x_j \in g \mid c, B, \theta) = \theta_{cb} \frac{\alpha_g}{\alpha_b} \quad (g \in b), \\
        & \theta_c \mid B \sim \mathrm{Dirichlet}(\alpha_b), \quad \alpha_b = \sum_{g \in b} \alpha_g,

    with π ~ Dirichlet(`class_alpha`). Each end is a cut with prior odds 1/(G - 1), independently. Predictions average
    over all 2^(G - 1) binnings exactly, weighted by their posterior probabilities; see
    docs/derivations/binned.md, "All binnings".

    Parameters
    ----------
    cells : int, default 64
        Largest number of cells of a feature, 2 to 256. The ends of cells are quantiles of the rows that are counted
        first, between values that occur. `partial_fit` keeps these ends, and the outer cells extend to infinity.
    edges : dict or Series {column: edges}, or list with an entry per column, optional
        Ends of the cells, in place of quantiles, in the units of the column. A number on an edge belongs to the lower
        cell. Pass `edges_` of another classifier if the counts of both are to be added, as in streams and with dask.
    prior : "independent", IndependentCuts or NaiveBayes, default "independent"
        Prior of the cuts and of the probabilities of the bins, or a complete prior of the classifier. "independent" is
        `IndependentCuts(concentration=4.0, cuts=1.0)`: each of the G - 1 ends is a cut with the odds cuts/(G - 1), so
        that about one cut is expected, and each cell has α_g = concentration/G.
    class_alpha : scalar, (C,) array, or dict or Series by class, default 1
        Concentration of the Dirichlet prior of the class probabilities π: one number for all classes, or one per class.
        An array is in the order of `classes_`; a dict or Series names the classes.
    class_prior : (C,) array, dict or Series by class, or Dirichlet, optional
        Known class probabilities π, or a Dirichlet prior of π. Replaces `class_alpha`. An array is in the order of
        `classes_`; a dict or Series names the classes.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Estimate of the parameters that predictions use. "predictive" and "mean" are the average over all binnings.
        "map" takes the most probable cuts, and the mean of θ given these cuts, which is the mode in the softmax basis.
        "mle" is the histogram of the cells.

    Attributes
    ----------
    edges_ : dict {column: (G - 1,) array}
        Ends of the cells of each column, in the units of the column.
    time_units_ : dict {column name: unit}
        Units of the columns of dates ("days" since 1970, UTC) and of durations ("seconds"); only if there are any.
    classes_ : (C,) array
        Class labels, in the order of the class axis of every array.
    class_count_ : (C,) array
        Sum of the weights of the rows in each class.
    class_log_prior_ : (C,) array
        Logarithm of the posterior mean of each class probability.
    prior_, posterior_ : NaiveBayes
        Prior and posterior distribution of all parameters.
    statistics_ : Statistics
        Sum of the weights of the rows in each cell.
    log_evidence_ : float
        Log probability of the labels and of the *cells* of the numbers. It can be compared with other models of the
        same cells, not with densities.

    See Also
    --------
    GaussianNB : Normal densities.
    MixedNB : Normal or binned densities, chosen for each column.
    density_table : Posterior of the density of each feature.
    cut_table : Posterior probability of each cut.

    Notes
    -----
    NaN is a missing cell, which is marginalised. Densities are relative to that of the rows that are counted first:
    within a bin, all cells are equally probable. Quantiles do not depend on the labels, and a feature with no more
    values than cells has one cell per value. The cost grows with the square of the number of cells, and not with the
    number of rows.

    References
    ----------
    Endres & Földiák, *Bayesian bin distribution inference and mutual information*, IEEE Trans. Inf. Theory 51 (2005).
    Lustgarten et al., *Application of an efficient Bayesian discretization method to biomedical data*, BMC
    Bioinformatics 12 (2011).

    Examples
    --------
    >>> from bayesnb import BinnedNB
    >>> nb = BinnedNB().fit([[0.1], [0.3], [0.2], [5.1], [5.0], [5.2]], ["in", "in", "in", "out", "out", "out"])
    >>> nb.predict([[0.25], [7.0]])
    array(['in', 'out'], dtype='<U3')
    """

    _: KW_ONLY
    cells: int = CELLS
    edges: object = None
    prior: object = "independent"
    class_alpha: object = CLASS_ALPHA
    class_prior: object = None
    estimate: Estimate = "predictive"

    no_counts = (
        "A table of counts does not suffice, because the edges of the cells are learned from rows. Use fit(X, y) "
        "instead."
    )
    no_em = (
        "EM has no objective here, because the classifier averages densities with different numbers of bins. Pass "
        "GaussianNB(), or MixedNB(numbers='gaussian')."
    )

    def _columns(self, table: Table) -> tuple[Columns, ...]:
        """Return one block of binned columns; ends of cells are those of `edges`, or still to be learned."""
        return (cell_columns(table, range(len(table.names)), self.cells, self.edges),)

    @property
    def edges_(self) -> dict[str, np.ndarray]:
        """Ascending inner ends of the cells of each column, by name."""
        return cell_edges(self.encoding_.blocks)

    def _made_choices(self, encoding: Encoding) -> tuple[str, ...]:
        """Return the names of tuned hyperparameters, and of the cells if rows determined ends of cells."""
        return (*chosen_cells(self.edges, encoding), *super()._made_choices(encoding))

    _tags = ("allow_nan",)


def cell_columns(table: Table, index: Sequence[int], cells: int, edges: Any, others: Iterable[int] = ()) -> CellColumns:
    """Make one block of binned columns at positions `index` of a table, with up to `cells` cells each.

    Ends of cells are `edges` where given; other columns learn quantiles from the first rows. `edges` may name columns
    at `others`, too.
    """
    require_integer("cells", cells, least=2, most=_MOST_CELLS)
    given = check_edges(edges, table, index, others)
    widest = max((len(ends) + 1 for ends in given if ends is not None), default=0)
    if widest > _MOST_CELLS:
        raise ValueError(f"edges cut a column into {widest} cells (bins); at most {_MOST_CELLS} are allowed.")
    return CellColumns(*table.columns_at(index), given, cells, tuple(ends is not None for ends in given))


@float64
def most_probable_cuts(
    classes: Levels, columns: CellColumns, rows: Rows, label: np.ndarray, weight: np.ndarray
) -> list[np.ndarray]:
    """Return for each column the edges that are cuts in its most probable binning, by the default prior."""
    counted = counting.count_rows(Encoding(classes, (columns,)), (rows,), label, weight)
    cut = np.asarray(_best_cuts(columns.prior("independent", "numbers", classes), counted.blocks[0]))
    cuts_by_column = np.split(cut, columns.start()[1:])
    return [
        np.zeros(0) if edges is None else edges[is_cut[1:]]
        for edges, is_cut in zip(columns.edges, cuts_by_column, strict=True)
    ]


@kernel
def _best_cuts(prior: Binned, statistics: LevelCounts) -> jax.Array:
    """Return a (L,) mask of the cells, columns one after another, that begin a bin in the most probable binning."""
    return prior.update(statistics).best_cuts()


def cell_edges(blocks: tuple[Columns, ...]) -> dict[str, np.ndarray]:
    """Return the inner ends of the cells of each binned column, by name; empty for a column without observed cells."""
    binned = [columns.base for columns in blocks if columns.kind == "binned"]
    pairs = (pair for columns in binned for pair in zip(columns.names, columns.edges, strict=True))
    return {name: np.zeros(0) if edges is None else edges for name, edges in pairs}


def chosen_cells(edges: Any, encoding: Encoding) -> tuple[str, ...]:
    """Return ("the cells of numbers",) if rows, and not `edges`, gave the cells of some binned column; else ()."""
    named = read_labelled("edges", edges)
    given = sum(ends is not None for ends in (() if edges is None else edges)) if named is None else len(named)
    binned = sum(len(columns.names) for columns in encoding.blocks if columns.kind == "binned")
    return ("the cells of numbers",) if binned > given else ()
