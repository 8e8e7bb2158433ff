"""Classifiers with a structure: given networks, learned trees and k-dependence, and averages over structures."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from numbers import Number
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

import jax
import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesnb import kernels
from bayesnb import networks as structure
from bayesnb._util.arguments import Seed, bad_argument, read_seed, require_choice, require_integer, shown
from bayesnb._util.arrays import MOST_COUNTS, TooManyNumbersError, require_draws
from bayesnb._util.precision import float64
from bayesnb._util.terminal import progress
from bayesnb._util.warnings import warn
from bayesnb.encoding import Columns, Encoding, Levels, Node, NodeColumns, PairColumns, Rows
from bayesnb.encoding.encoded_rows import NodeRows
from bayesnb.encoding.priors import BlockPrior
from bayesnb.encoding.table import as_list, is_labelled
from bayesnb.estimators import classifier_state
from bayesnb.estimators.base import HalvesClassifier
from bayesnb.estimators.classifier_state import ALPHA, CELLS, ContextHalf, LabelledRows
from bayesnb.estimators.structured import NO_COLUMNS, StructuredNB, position
from bayesnb.families import LevelCounts, TreeAveraged
from bayesnb.families.arrays import kernel, xp
from bayesnb.families.protocol import Variates
from bayesnb.fitted import scoring
from bayesnb.fitted.counting import Counted
from bayesnb.fitted.state import Fitted, NotOfferedError, ScoreModel, score_new_rows
from bayesnb.kernels import Output
from bayesnb.model import Estimate, NaiveBayes
from bayesnb.uncertainty.variates import ask, run
from bayesnb.weights.cross_fitting import NEGLIGIBLE
from bayesnb.weights.halves import N_SPLITS, random_halves

if TYPE_CHECKING:
    import pandas as pd


@dataclass(eq=False, repr=False)
class OneNetworkNB(HalvesClassifier, StructuredNB):
    """Base class of the classifiers with one network, whose densities halves of the rows may choose."""

    _: KW_ONLY
    estimate: Estimate = "predictive"
    prior: object = None
    random_state: object = None


# == Classifiers with given arcs between features: any network, and one parent of all others (SPODE)


@dataclass(eq=False, repr=False)
class NetworkNB(OneNetworkNB):
    r"""Naive Bayes augmented by an acyclic network between the categorical features, which you give.

    Each feature depends on the class and on its parents among the features:

    .. math::

        & p(c, x \mid \pi, \theta) = \pi_c \prod_{j=1}^F p(x_j \mid x_{\mathrm{pa}(j)}, c), \\
        & \theta_{cju} \sim \mathrm{Dirichlet}(\alpha),

    where θ_cju are the probabilities of the levels of feature j in class c if its parents have the joint value u, and π
    ~ Dirichlet(`class_alpha`). The posterior of each θ_cju is Dirichlet again; see
    docs/derivations/structures.md, "Networks".

    Parameters
    ----------
    parents : dict {column: parent, list of parents, or None}, optional
        Parents of each column besides the class, by name or index. A column that you do not mention has none, so that
        the default is naive Bayes. `parents_` of another classifier can be given.
    alpha : scalar, (F,) array, list of F arrays, (C, L) array, or dict or Series by column, default 1
        Dirichlet concentration of each level of a column given each value of its parents: one number for all columns,
        or one per column. A list of F arrays, or a (C, L) array, is over the joint levels of parents and column; the
        levels of the column vary fastest. A posterior mean is Laplace smoothing of each table. A dict or Series is
        matched by name, such as `{"colour": {"green": 2.0}, "root": 0.5}`. Concentrations that it does not name are 1;
        a level that it names is declared. An entry may differ between classes: see `CategoricalNB`.
    class_alpha : scalar, (C,) array, or dict or Series by class, default 1
        Concentration of the Dirichlet prior of the class probabilities π: one number for all classes, or one per class.
        An array is in the order of `classes_`; a dict or Series names the classes.
    class_prior : (C,) array, dict or Series by class, or Dirichlet, optional
        Known class probabilities π, or a Dirichlet prior of π. Replaces `class_alpha`. An array is in the order of
        `classes_`; a dict or Series names the classes.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Estimate of the parameters that predictions use. "predictive" integrates the parameters out (the posterior
        predictive distribution). "mean", "map" and "mle" plug in the posterior mean, the posterior mode and the maximum
        likelihood estimate.
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
    gaussian : "auto", "dtype", list of columns, or None, default "auto"
        Columns of numbers, by name or index; all other columns are categorical. "auto": the columns with a
        number that is not whole (whole numbers up to 2^53 may be codes of levels), dates, in days since 1970 (UTC), and
        durations, in seconds. "dtype": whole numbers, too. Columns with at most two distinct numbers in ten or more
        present cells are categorical. The values decide, not the container or its type. None: no column. The columns
        of a list are Gaussian given the class, and take no part in the structure.
    gaussian_prior : {"within", "pooled"}, NormalInverseGamma, EmpiricalNormal or dict by column, default "within"
        Prior of the mean and variance of the Gaussian columns. "within": empirical Bayes, with m the mean of the column
        over all rows, κ = 0.1, a = 1, and b the variance of the column within the classes. "pooled": the same, with b
        the variance over all rows. A NormalInverseGamma is used as given. A dict gives the prior of some columns, such
        as `{"age": NormalInverseGamma(...)}`; the others have the default prior, or that of the entry `None`.
    numbers : {"gaussian", "binned"}, default "gaussian"
        Treatment of the columns that `gaussian="auto"` or `"dtype"` selects. "gaussian": they are normal given the
        class, and take no part in the structure. "binned": they take part in the structure by their cells, `edges_`.
        With "binned", the column has two terms: its density given the class, normal or binned as
        `MixedNB(numbers="auto")` chooses, and the dependence of its cell q_j on the parents, log p(q_j | c, parents) -
        log p(q_j | c). The ends of cells are quantiles, which do not depend on the labels. Such a model has no evidence
        and no `given="row"`, and all results are conditional on the cells and on the kinds of densities.
    cells : int, default 6
        Largest number of cells of a column of numbers, 2 to 256.
    tables : {"full", "context"}, default "full"
        Probability tables of a column given its parents. "full": one Dirichlet for each joint value of the parents.
        "context": the exact average over the number of parents that matter for each of their values (context trees:
        docs/derivations/structures.md, "Context trees"). `alpha` is then the concentration of all levels of a column
        together, and a missing parent counts as one more value. A priori each context is the last one that matters with
        probability ½; the parents are taken in their order. Nothing is summed out, and results are conditional on which
        cells are missing.
    prior : NaiveBayes, optional
        Complete prior of the classifier, such as `prior_` of another one. Replaces `alpha`, `gaussian_prior`,
        `class_alpha` and `class_prior`.
    random_state : int, JAX key, RandomState, Generator or None, default None
        Seed of the random halves of the rows that choose the densities under ``numbers="binned"``.
        `BaggingClassifier` of scikit-learn gives each member another one. None: 0, so that fits are reproducible.

    Attributes
    ----------
    parents_ : dict {name: name, tuple of names, or None}
        Parents of each column besides the class.
    categories_ : list of arrays or None
        Levels of each column; None for a Gaussian column.
    edges_ : dict {name: array}
        Ends of the cells of each column of numbers in the structure, in the units of the column.
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
        Log evidence log p(X, y): the parameters are integrated out.

    See Also
    --------
    TAN : Tree that is learned from the rows.
    KDB : Network with up to k parents per column, learned from the rows.
    SPODE : Network in which one column is the parent of all others.
    context_table : Values of the parents that matter.

    Notes
    -----
    A cell counts if the column and its parents are observed; `fit` warns of classes without such rows. The score of a
    row sums its missing cells out exactly: the score is the density of the observed cells, if cells are missing at
    random, and `predict_proba` is `query` of the class. Intervals of such rows given the row (`predict_interval`) are
    computed from draws. `log_evidence_` is not offered if cells are missing on arcs, because the sum over the missing
    cells of all rows has no closed form. Results about parameters and predictions are conditional on the structure:
    intervals hold for the true structure, and are too narrow for a structure that was learned from the same rows.

    `alpha` is used as given. The prior of `TAN("evidence")`, which compares tables of different sizes, divides the
    concentration of each column by the number of values of its parents.

    References
    ----------
    Friedman, Geiger & Goldszmidt, *Bayesian network classifiers*, Machine Learning 29 (1997). Willems, Shtarkov &
    Tjalkens, *The context-tree weighting method*, IEEE Trans. Inf. Theory 41 (1995), for tables="context".

    Examples
    --------
    >>> from bayesnb import NetworkNB
    >>> X = [["rain", "wet"], ["rain", "wet"], ["sun", "dry"], ["sun", "wet"]]
    >>> nb = NetworkNB({1: 0}).fit(X, ["in", "in", "out", "in"])
    >>> nb.parents_
    {'0': None, '1': '0'}
    """

    parents: Mapping[Hashable, object] | None = None
    _: KW_ONLY
    tables: str = "full"

    _needs_arcs = False

    def _arcs(self, encoding: Encoding, columns: NodeColumns, counts: np.ndarray | None) -> tuple[Node, ...]:
        """Return a node (child, *parents) for each column by `parents`; ValueError for unknown or double names."""
        named: object = {} if self.parents is None else self.parents
        if not isinstance(named, Mapping):
            raise bad_argument("parents", named, "a dict {column: parent, list of parents, or None}")
        parents: dict[int, list[int]] = {}
        for column, value in named.items():
            (index,), of_column = encoding.positions([column], "parents"), as_list(value)
            name = shown(encoding.feature_names[index])
            if index in parents:
                raise ValueError(f"parents names column {name} twice, by name and by index. Name it once.")
            if of_column:
                position(encoding, columns, column, "parents")  # Raises an error for a column without arcs.
            parents[index] = [position(encoding, columns, p, "parents") for p in of_column]
            if len(set(parents[index])) < len(of_column):
                raise ValueError(f"parents names a parent of column {name} twice: {shown(value)}. Name it once.")
        return tuple((j, *parents.get(index, ())) for j, index in enumerate(columns.base.index))

    def _check_nodes(self, columns: NodeColumns) -> None:
        """Raise ValueError unless each column is a child once, and neither fitted nor stated arcs have a cycle."""
        super()._check_nodes(columns)
        self._require_order(replace(columns, nodes=self._arcs(self.encoding_, columns, None)))


@dataclass(eq=False, repr=False)
class SPODE(OneNetworkNB):
    r"""Superparent one-dependence estimator: one column is a parent of all others.

    Each feature depends on the class and on the superparent x_p:

    .. math::

        & p(c, x \mid \pi, \theta) = \pi_c\, p(x_p \mid c) \prod_{j \ne p} p(x_j \mid x_p, c), \\
        & \theta_{cju} \sim \mathrm{Dirichlet}(\alpha),

    where θ_cju are the probabilities of the levels of feature j in class c if the superparent has level u, and π ~
    Dirichlet(`class_alpha`); see docs/derivations/structures.md, "Networks".

    Parameters
    ----------
    parent : column name or index, optional
        Column that is the parent of all others. Default: the first categorical column with an observed cell.
    alpha : scalar, (F,) array, or dict or Series by column, default 1
        Dirichlet concentration of each level of a column given each value of its parent: one number for all columns, or
        one per column. A posterior mean is Laplace smoothing of each table. A dict or Series is matched by name, such
        as `{"colour": {"green": 2.0}, "root": 0.5}`. Concentrations that it does not name are 1; a level that it names
        is declared. An entry may differ between classes: see `CategoricalNB`.
    class_alpha : scalar, (C,) array, or dict or Series by class, default 1
        Concentration of the Dirichlet prior of the class probabilities π: one number for all classes, or one per class.
        An array is in the order of `classes_`; a dict or Series names the classes.
    class_prior : (C,) array, dict or Series by class, or Dirichlet, optional
        Known class probabilities π, or a Dirichlet prior of π. Replaces `class_alpha`. An array is in the order of
        `classes_`; a dict or Series names the classes.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Estimate of the parameters that predictions use. "predictive" integrates the parameters out (the posterior
        predictive distribution). "mean", "map" and "mle" plug in the posterior mean, the posterior mode and the maximum
        likelihood estimate.
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
    gaussian : "auto", "dtype", list of columns, or None, default "auto"
        Columns of numbers, by name or index; all other columns are categorical. "auto": the columns with a
        number that is not whole (whole numbers up to 2^53 may be codes of levels), dates, in days since 1970 (UTC), and
        durations, in seconds. "dtype": whole numbers, too. Columns with at most two distinct numbers in ten or more
        present cells are categorical. The values decide, not the container or its type. None: no column. The columns
        of a list are Gaussian given the class, and take no part in the structure.
    gaussian_prior : {"within", "pooled"}, NormalInverseGamma, EmpiricalNormal or dict by column, default "within"
        Prior of the mean and variance of the Gaussian columns. "within": empirical Bayes, with m the mean of the column
        over all rows, κ = 0.1, a = 1, and b the variance of the column within the classes. "pooled": the same, with b
        the variance over all rows. A NormalInverseGamma is used as given. A dict gives the prior of some columns, such
        as `{"age": NormalInverseGamma(...)}`; the others have the default prior, or that of the entry `None`.
    numbers : {"gaussian", "binned"}, default "gaussian"
        Treatment of the columns that `gaussian="auto"` or `"dtype"` selects. "gaussian": they are normal given the
        class, and take no part in the structure. "binned": they take part in the structure by their cells, `edges_`.
        With "binned", the column has two terms: its density given the class, normal or binned as
        `MixedNB(numbers="auto")` chooses, and the dependence of its cell q_j on the parents, log p(q_j | c, parents) -
        log p(q_j | c).
    cells : int, default 6
        Largest number of cells of a column of numbers, 2 to 256.
    tables : {"full", "context"}, default "full"
        Probability tables of a column given its parents. "full": one Dirichlet for each joint value of the parents.
        "context": the exact average over the number of parents that matter for each of their values (context trees:
        docs/derivations/structures.md, "Context trees"). `alpha` is then the concentration of all levels of a column
        together, and a missing parent counts as one more value.
    prior : NaiveBayes, optional
        Complete prior of the classifier, such as `prior_` of another one. Replaces `alpha`, `gaussian_prior`,
        `class_alpha` and `class_prior`.
    random_state : int, JAX key, RandomState, Generator or None, default None
        Seed of the random halves of the rows that choose the densities under ``numbers="binned"``.
        `BaggingClassifier` of scikit-learn gives each member another one. None: 0, so that fits are reproducible.

    Attributes
    ----------
    parents_ : dict {name: name, tuple of names, or None}
        Parents of each column besides the class.
    categories_ : list of arrays or None
        Levels of each column; None for a Gaussian column.
    edges_ : dict {name: array}
        Ends of the cells of each column of numbers in the structure, in the units of the column.
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
        Log evidence log p(X, y): the parameters are integrated out.

    See Also
    --------
    AODE : Average over all superparents.
    TAN : Tree that is learned from the rows.
    NetworkNB : Any network that you give.

    References
    ----------
    Keogh & Pazzani, *Learning augmented Bayesian classifiers*, AISTATS 1999. Webb, Boughton & Wang, *Not so naive
    Bayes: aggregating one-dependence estimators*, Machine Learning 58 (2005).

    Examples
    --------
    Ripeness depends on colour and size jointly; neither alone predicts it.

    >>> from bayesnb import CategoricalNB, SPODE
    >>> X = [["red", "big"], ["red", "small"], ["green", "big"], ["green", "small"]] * 3
    >>> y = ["ripe", "raw", "raw", "ripe"] * 3
    >>> CategoricalNB().fit(X, y).score(X, y), SPODE(parent=0).fit(X, y).score(X, y)
    (0.5, 1.0)
    >>> SPODE(parent=0).fit(X, y).parents_
    {'0': None, '1': '0'}
    """

    parent: object = None
    _: KW_ONLY
    tables: str = "full"

    def _arcs(self, encoding: Encoding, columns: NodeColumns, counts: np.ndarray | None) -> tuple[Node, ...]:
        """Return (j, p) for all columns j but the parent p, and (p,); ValueError for an unusable `parent`."""
        if self.parent is not None:
            return columns.superparent_nodes(position(encoding, columns, self.parent, "parent"))
        return columns.superparent_nodes(int(np.argmax(columns.base.sizes() > 0)) if columns.nodes else 0)

    def _check_nodes(self, columns: NodeColumns) -> None:
        """Raise ValueError unless each column is a child once, without a cycle, and `parent` is categorical."""
        super()._check_nodes(columns)
        self._arcs(self.encoding_, columns, None)


# == Tree-augmented naive Bayes ====================================================================

_FEWEST = 0.5
"""Smallest fraction of the rows with a column that must have its parent too, or else `fit` warns."""


class _Criterion:
    """Descriptor of `score`: set as the hyperparameter that scores arcs, read as scikit-learn's method, accuracy."""

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return StructuredNB.score if instance is None else StructuredNB.score.__get__(instance)

    def __set__(self, instance: object, value: object) -> None:
        vars(instance)["score"] = value


@dataclass(eq=False, repr=False)
class TAN(OneNetworkNB):
    r"""Tree-augmented naive Bayes: each column has at most one other column as a parent, learned from the rows.

    Each feature depends on the class and on at most one other feature, its parent in a tree or forest:

    .. math::

        & p(c, x \mid \pi, \theta) = \pi_c \prod_{j=1}^F p(x_j \mid x_{\mathrm{pa}(j)}, c), \\
        & \theta_{cju} \sim \mathrm{Dirichlet}(\alpha),

    where θ_cju are the probabilities of the levels of feature j in class c if its parent has level u, and π ~
    Dirichlet(`class_alpha`); see docs/derivations/structures.md, "Learned trees".

    Parameters
    ----------
    score : {"mi", "evidence"}, default "mi"
        Score of an arc. "mi": the mutual information of the two columns given the class, times the number of rows in
        which both are observed. The tree is the maximum spanning tree, with F - 1 arcs unless two columns were never
        observed together. "evidence": the log posterior odds of the arc against no arc. A priori a column has no other
        parent with probability ½, and each of the F - 1 others with probability 1/(2 (F - 1)). The arcs are the most
        probable forest, without the arcs that the rows do not support.
    root : column name or index, optional
        Root of the tree, from which the arcs lead away, for "mi". Default: the first categorical column. The root makes
        no difference to the maximum likelihood, and hardly any to the other estimates. With "evidence" the scores
        determine the directions of the arcs.
    alpha : scalar, (F,) array, list of F arrays, (C, L) array, or dict or Series by column, default 1
        Dirichlet concentration. With "mi": of each level of a column given each value of its parent. With "evidence":
        of each level of a column given the class alone. Given a parent, this concentration is divided by the number of
        values of the parent, in the scores of arcs and in the tables (see `prior_`): the prior of a column then counts
        as the same number of rows with a parent as without. Otherwise each arc would add shrinkage, and would be chosen
        for that reason. `alpha=[s / n for n in levels]` is the BDeu prior of equivalent sample size s per class, under
        which the score of an arc is the same in both directions. A dict or Series is matched by name, such as
        `{"colour": {"green": 2.0}, "root": 0.5}`. Concentrations that it does not name are 1; a level that it names is
        declared. An entry may differ between classes: see `CategoricalNB`.
    class_alpha : scalar, (C,) array, or dict or Series by class, default 1
        Concentration of the Dirichlet prior of the class probabilities π: one number for all classes, or one per class.
        An array is in the order of `classes_`; a dict or Series names the classes.
    class_prior : (C,) array, dict or Series by class, or Dirichlet, optional
        Known class probabilities π, or a Dirichlet prior of π. Replaces `class_alpha`. An array is in the order of
        `classes_`; a dict or Series names the classes.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Estimate of the parameters that predictions use. "predictive" integrates the parameters out (the posterior
        predictive distribution). "mean", "map" and "mle" plug in the posterior mean, the posterior mode and the maximum
        likelihood estimate.
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
    gaussian : "auto", "dtype", list of columns, or None, default "auto"
        Columns of numbers, by name or index; all other columns are categorical. "auto": the columns with a
        number that is not whole (whole numbers up to 2^53 may be codes of levels), dates, in days since 1970 (UTC), and
        durations, in seconds. "dtype": whole numbers, too. Columns with at most two distinct numbers in ten or more
        present cells are categorical. The values decide, not the container or its type. None: no column. The columns
        of a list are Gaussian given the class, and take no part in the structure.
    gaussian_prior : {"within", "pooled"}, NormalInverseGamma, EmpiricalNormal or dict by column, default "within"
        Prior of the mean and variance of the Gaussian columns. "within": empirical Bayes, with m the mean of the column
        over all rows, κ = 0.1, a = 1, and b the variance of the column within the classes. "pooled": the same, with b
        the variance over all rows. A NormalInverseGamma is used as given. A dict gives the prior of some columns, such
        as `{"age": NormalInverseGamma(...)}`; the others have the default prior, or that of the entry `None`.
    numbers : {"gaussian", "binned"}, default "gaussian"
        Treatment of the columns that `gaussian="auto"` or `"dtype"` selects. "gaussian": they are normal given the
        class, and take no part in the structure. "binned": they take part in the structure by their cells, `edges_`.
        With "binned", the column has two terms: its density given the class, normal or binned as
        `MixedNB(numbers="auto")` chooses, and the dependence of its cell q_j on the parents, log p(q_j | c, parents) -
        log p(q_j | c).
    cells : int, default 6
        Largest number of cells of a column of numbers, 2 to 256.
    tables : {"full", "context"}, default "full"
        Probability tables of a column given its parents. "full": one Dirichlet for each joint value of the parents.
        "context": the exact average over the number of parents that matter for each of their values (context trees:
        docs/derivations/structures.md, "Context trees"). `alpha` is then the concentration of all levels of a column
        together, and a missing parent counts as one more value.
    prior : NaiveBayes, optional
        Complete prior of the classifier, such as `prior_` of another one. Replaces `alpha`, `gaussian_prior`,
        `class_alpha` and `class_prior`.
    random_state : int, JAX key, RandomState, Generator or None, default None
        Seed of the random halves of the rows that choose the densities under ``numbers="binned"``.
        `BaggingClassifier` of scikit-learn gives each member another one. None: 0, so that fits are reproducible.

    Attributes
    ----------
    parents_ : dict {name: name, tuple of names, or None}
        Parents of each column besides the class.
    categories_ : list of arrays or None
        Levels of each column; None for a Gaussian column.
    edges_ : dict {name: array}
        Ends of the cells of each column of numbers in the structure, in the units of the column.
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
        Log evidence log p(X, y): the parameters are integrated out.

    See Also
    --------
    TreeAveragedNB : Average over all trees instead of the best one.
    KDB : Up to k parents per column.
    NetworkNB : Network that you give.
    permutation_null : Scores of structures that are learned from permuted labels.

    Notes
    -----
    The tree is learned from the same rows as the parameters. All results (evidence, leave-one-out, intervals) are
    conditional on the tree, and do not include the uncertainty about the tree. Intervals of 90% for P(class | row, θ)
    covered 90 to 91% of 1,500 data sets given the true tree, with 0, 10 and 30% of the cells missing, and .85 to .89 if
    the tree was learned from the same rows. `loo` and `bayes_factor` are optimistic, and their `notes` say so;
    `permutation_null` refits the tree too.

    `partial_fit` counts further rows for the tree that `fit` has learned, and `tune_alpha` keeps the tree. `run_nuts`
    with a hyperprior gives each table a concentration, whatever `score` is. A cell whose parent is missing in a row
    does not count, so that columns that are mostly missing are poor parents, and `fit` warns of them. Columns of more
    than 1,000 levels, such as free texts, have no arcs.

    References
    ----------
    Friedman, Geiger & Goldszmidt, *Bayesian network classifiers*, Machine Learning 29 (1997). Heckerman, Geiger &
    Chickering, *Learning Bayesian networks*, Machine Learning 20 (1995), for "evidence".

    Examples
    --------
    >>> from bayesnb import TAN
    >>> X = [["sun", "hot"], ["sun", "hot"], ["rain", "cold"], ["rain", "cold"]] * 5
    >>> TAN().fit(X, ["out", "in"] * 10).parents_
    {'0': None, '1': '0'}
    """

    score: Any = "mi"
    root: object = None
    _: KW_ONLY
    tables: str = "full"

    _learned = "the tree"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the hyperparameters by name; `score` is the score of arcs.

        Parameters
        ----------
        deep : bool, default True
            Whether to include the hyperparameters of nested estimators.

        Returns
        -------
        dict
            Hyperparameters by name.
        """
        return super().get_params(deep) | {"score": self._criterion}

    def _arcs(self, encoding: Encoding, columns: NodeColumns, counts: np.ndarray | None) -> tuple[Node, ...]:
        """Return a node (child,) or (child, parent) per column: the maximum spanning tree, or best branching.

        The tree has the largest mutual information given the class (score="mi"), the branching the largest posterior
        odds (score="evidence"). Without `counts` there are no nodes. A warning names parents that are mostly missing.
        """
        root = self._checked_root(encoding, columns)
        if counts is None:
            return ()
        sizes, names = columns.base.sizes(), columns.base.names
        if self._criterion == "mi":
            n_both = structure.observed_pairs(counts, sizes)
            # An arc is scored by its gain in log likelihood, as few common rows have much information by chance.
            nodes = structure.maximum_spanning_tree(n_both * structure.mutual_information(counts, sizes), root)
            nodes = tuple(node[:1] if len(node) == 2 and not n_both[node] else node for node in nodes)
            arcs = [node for node in nodes if len(node) == 2]
            seldom = {names[child]: names[p] for child, p in arcs if n_both[child, p] < _FEWEST * n_both[child, child]}
            if seldom:
                warn(
                    "TAN: these columns have a parent that is missing in most of the rows where the column is "
                    f"observed, {{column: parent}}: {seldom}. These rows do not count for the column. Leave the "
                    "parents out of X, or replace missing cells by a level, such as 'missing'."
                )
            return nodes
        alpha = np.asarray(self._prior_given_class(columns, encoding.classes).concentration)
        if not (alpha > 0).all():
            raise bad_argument("alpha", self.alpha, "positive, because score='evidence' needs a proper prior")
        # A priori a column has no other parent with probability ½, else each of the other columns equally probably.
        prior_odds = 1.0 / max(1, len(sizes) - 1)
        return structure.maximum_branching(structure.log_bayes_factors(counts, sizes, alpha) + np.log(prior_odds))

    @property
    def _criterion(self) -> str:
        """Hyperparameter `score`."""
        return vars(self).get("score", "mi")

    def _block_prior(self, columns: Columns, classes: Levels) -> BlockPrior:
        """Return the prior of one block; full tables under score="evidence" have the prior that scored arcs.

        That is the prior given the class alone, with concentrations divided by the number of values of the parent.
        """
        if self._criterion != "evidence" or type(columns) is not NodeColumns:
            return super()._block_prior(columns, classes)
        return structure.share_among_parents(self._prior_given_class(columns, classes), columns)

    @property
    def _divides_alpha(self) -> bool:
        """Whether the concentrations of a column are divided among the values of its parent."""
        return self._criterion == "evidence" and self.prior is None and self._table_type is NodeColumns

    def _checked_root(self, encoding: Encoding, columns: NodeColumns) -> int:
        """Return the position of `root`, by default 0; raise ValueError if `root` or `score` cannot be used."""
        require_choice("score", self._criterion, ("mi", "evidence"))
        return 0 if self.root is None else position(encoding, columns, self.root, "root")

    def _check_nodes(self, columns: NodeColumns) -> None:
        """Raise ValueError unless nodes are a forest of all columns, and `score` and `root` can be used."""
        super()._check_nodes(columns)
        self._checked_root(self.encoding_, columns)
        names = columns.base.names
        for child, *parents in columns.nodes:
            if len(parents) > 1:
                raise ValueError(
                    f"Column {shown(names[child])} has the parents {[names[p] for p in parents]}; in a tree a column "
                    "has at most one. Fit the classifier again, or use KDB or NetworkNB."
                )


TAN.score = _Criterion()  # The field gives the default of `__init__`.


# -- k-dependence Bayes: features with up to k parents, where held-out labels choose k -------------

_MOST_PARENTS = 4
_MOST_CELLS = 2**16
_FEW_CELLS, _CELLS_A_ROW = 2**10, 8
_CHUNK = 2**24


@dataclass(eq=False, repr=False)
class KDB(OneNetworkNB):
    r"""k-dependence Bayes: each column has up to k other columns as parents, learned from the rows.

    Each feature depends on the class and on its parents among the features:

    .. math::

        & p(c, x \mid \pi, \theta) = \pi_c \prod_{j=1}^F p(x_j \mid x_{\mathrm{pa}(j)}, c), \\
        & |\mathrm{pa}(j)| \le k,

    with π ~ Dirichlet(`class_alpha`) and context-tree tables, which average over the number of parents that matter for
    each of their values (docs/derivations/structures.md, "Context trees").

    Columns are sorted by their mutual information with the class, I(x_j; c). The parents of a column are the up to k
    columns before it with the largest conditional mutual information I(x_j; x_p | c). By default, held-out labels
    determine the number of parents, k, and the number of columns.

    Parameters
    ----------
    k : "auto" or int, default "auto"
        Largest number of parents of a column. "auto": the number from 0 to 4 with the smallest log loss of the labels
        of one half of the rows, by networks that are learned from the other half, in three random splits. Within a
        `WeightedNB`, "auto" is the smallest number whose expected loss is within a standard error of the least. A
        parent is left out if the table would have more than 65,536 cells per class, or more than 1,024 and eight per
        row. "auto" is 0, with a warning, where counts of all pairs of levels would take more than 1.1 GB.
    max_features : "auto", int or None, default "auto"
        Number of columns in the network, the most informative ones first. "auto": chosen together with `k`; within a
        `WeightedNB` all columns. None: all columns.
    alpha : scalar, (F,) array, or dict or Series by column, default 1
        Dirichlet concentration of all levels of a column together, in each context of its parents: one number for all
        columns, or one per column. A dict or Series is matched by name; columns that it does not name have 1.
    class_alpha : scalar, (C,) array, or dict or Series by class, default 1
        Concentration of the Dirichlet prior of the class probabilities π: one number for all classes, or one per class.
        An array is in the order of `classes_`; a dict or Series names the classes.
    class_prior : (C,) array, dict or Series by class, or Dirichlet, optional
        Known class probabilities π, or a Dirichlet prior of π. Replaces `class_alpha`. An array is in the order of
        `classes_`; a dict or Series names the classes.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Estimate of the parameters that predictions use. "predictive" integrates the parameters out (the posterior
        predictive distribution). "mean", "map" and "mle" plug in the posterior mean, the posterior mode and the maximum
        likelihood estimate.
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
    gaussian : "auto", "dtype", list of columns, or None, default "auto"
        Columns of numbers, by name or index; all other columns are categorical. "auto": the columns with a
        number that is not whole (whole numbers up to 2^53 may be codes of levels), dates, in days since 1970 (UTC), and
        durations, in seconds. "dtype": whole numbers, too. Columns with at most two distinct numbers in ten or more
        present cells are categorical. The values decide, not the container or its type. None: no column. The columns
        of a list are Gaussian given the class, and take no part in the structure.
    gaussian_prior : {"within", "pooled"}, NormalInverseGamma, EmpiricalNormal or dict by column, default "within"
        Prior of the mean and variance of the Gaussian columns. "within": empirical Bayes, with m the mean of the column
        over all rows, κ = 0.1, a = 1, and b the variance of the column within the classes. "pooled": the same, with b
        the variance over all rows. A NormalInverseGamma is used as given. A dict gives the prior of some columns, such
        as `{"age": NormalInverseGamma(...)}`; the others have the default prior, or that of the entry `None`.
    numbers : {"gaussian", "binned"}, default "binned"
        Treatment of the columns that `gaussian="auto"` or `"dtype"` selects. "gaussian": they are normal given the
        class, and take no part in the structure. "binned": they take part in the structure by their cells, `edges_`.
        With "binned", the column has two terms: its density given the class, normal or binned as
        `MixedNB(numbers="auto")` chooses, and the dependence of its cell q_j on the parents, log p(q_j | c, parents) -
        log p(q_j | c).
    cells : int, default 6
        Largest number of cells of a column of numbers, 2 to 256.
    prior : NaiveBayes, optional
        Complete prior of the classifier, such as `prior_` of another one. Replaces `alpha`, `gaussian_prior`,
        `class_alpha` and `class_prior`.
    random_state : int, JAX key, RandomState, Generator or None, default None
        Seed of the random halves of the rows that choose `k`, `max_features` and densities.
        `BaggingClassifier` of scikit-learn gives each member another one. None: 0, so that fits are reproducible.

    Attributes
    ----------
    k_ : int
        Largest number of parents of a column in the network.
    order_ : tuple of str
        Names of the columns of the network, the most informative about the class first.
    parents_ : dict {name: name, tuple of names, or None}
        Parents of each column besides the class; a column that is left out of the network has none.
    categories_ : list of arrays or None
        Levels of each column; None for a Gaussian column.
    edges_ : dict {name: array}
        Ends of the cells of each column of numbers in the structure, in the units of the column.
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
        Log evidence log p(X, y) of the columns in the network and the Gaussian ones: the parameters are integrated out.

    See Also
    --------
    WeightedNB : Calibrated class probabilities; its default estimator is a KDB.
    TAN : One parent per column.
    NetworkNB : Network that you give, such as `KDB.parents_from` of a first pass.
    context_table : Values of the parents that matter.

    Notes
    -----
    Counts of all pairs of levels determine the order and the parents; columns of more than 1,000 levels, such as free
    texts, are last in the order and have no arcs. One more pass counts the tables; the tables of fewer parents are sums
    of these. Results about parameters and predictions are conditional on the network, and do not
    include the uncertainty about it. Gaussian columns are outside the network, and are never left out.

    References
    ----------
    Sahami, *Learning limited dependence Bayesian classifiers*, KDD 1996. Martínez, Webb, Chen & Zaidi, *Scalable
    learning of Bayesian network classifiers*, JMLR 17 (2016).

    Examples
    --------
    >>> import numpy as np
    >>> from bayesnb import KDB
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (200, 3))
    >>> KDB().fit(X, X[:, 0] ^ X[:, 1]).k_
    1
    """

    k: Any = "auto"
    max_features: Any = "auto"
    _: KW_ONLY
    numbers: str = "binned"

    _learned = "the network"
    tables = "context"

    @property
    def k_(self) -> int:
        """Largest number of parents of a column in the network."""
        return max((len(node) - 1 for node in self._network.nodes), default=0)

    @property
    def order_(self) -> tuple[str, ...]:
        """Names of the columns of the network, the most informative about the class first."""
        return tuple(self._network.names)

    @staticmethod
    def parents_from(pairs: object, k: int = 2) -> dict[str, tuple[str, ...]]:
        """Return the parents that a `KDB` would learn, from counts of all pairs of columns.

        `AODE` and `TreeAveragedNB` count pairs in one pass over any stream, or with dask. A second pass can then count
        the tables of `NetworkNB(parents, tables="context")`.

        Parameters
        ----------
        pairs : fitted AODE or TreeAveragedNB
            Classifier that has counted pairs of columns.
        k : int, default 2
            Largest number of parents of a column.

        Returns
        -------
        dict {name: tuple of names}
            Parents of each column, the columns most informative about the class first.

        Raises
        ------
        TypeError
            If `pairs` is another classifier.
        ValueError
            If `k` is not an integer of at least 0.

        Examples
        --------
        >>> import numpy as np
        >>> from bayesnb import KDB, TreeAveragedNB
        >>> X = np.random.default_rng(0).integers(0, 2, (200, 3))
        >>> KDB.parents_from(TreeAveragedNB().fit(X, X[:, 0] ^ X[:, 1]), k=1)["1"]
        ('0',)
        """
        if not isinstance(pairs, PairsNB):
            raise bad_argument("pairs", pairs, "a fitted AODE or TreeAveragedNB, which count pairs", TypeError)
        require_integer("k", k, least=0)
        columns, counts = pairs.pair_counts()
        names = columns.base.names
        nodes = _learn_network(counts, columns.base.sizes(), k) if columns.nodes else ()
        return {names[child]: tuple(names[p] for p in parents) for child, *parents in nodes}

    def _undecided(self) -> tuple[bool, bool]:
        """Return whether `k` and whether `max_features` is "auto"; raise ValueError for unusable values."""
        any_k, any_number = (isinstance(value, str) and value == "auto" for value in (self.k, self.max_features))
        if not any_k:
            require_integer("k", self.k, least=0)
        if not any_number and self.max_features is not None:
            require_integer("max_features", self.max_features)
        return any_k, any_number

    def _arcs(self, encoding: Encoding, columns: NodeColumns, counts: np.ndarray | None) -> tuple[Node, ...]:
        """Return nodes (child, *parents) of the k-dependence network, most informative columns first."""
        k = _MOST_PARENTS if self._undecided()[0] else self.k
        return () if counts is None else _learn_network(counts, columns.base.sizes(), k)

    def _learn_arcs(self, batch: LabelledRows, network: NodeColumns) -> tuple[Node, ...]:
        """Return the nodes that pairs of levels determine, of `max_features` columns unless it is "auto".

        Where counts of all pairs would take too much memory, k="auto" is 0.
        """
        try:
            nodes = super()._learn_arcs(batch, network)
        except TooManyNumbersError as error:
            if self.k not in ("auto", 0) or isinstance(self.max_features, int):
                raise
            if self.k == "auto":
                warn(f"KDB: k='auto' is 0, so that no column has parents. {error} To silence, pass k=0.")
            nodes = tuple((j,) for j in range(len(network.base.index)))
        return nodes if self._undecided()[1] else nodes[: self.max_features]

    def _choose_structure(self, batch: LabelledRows) -> LabelledRows:
        """Return the batch with the sub-network of least held-out log loss, if k or max_features is "auto"."""
        any_k, any_number = self._undecided()
        if not (any_k or any_number):
            return batch
        batch = batch.with_units()
        nodes, label, weight = batch.encoding.blocks[0].network.nodes, batch.label, batch.weight
        most = max((len(node) - 1 for node in nodes), default=0)
        full, limits = self._with_parents(most if any_k else self.k), range(0 if any_k else most, most + 1)
        losses = np.zeros((len(limits), len(nodes)))
        size = max(1, _CHUNK // (len(batch.encoding.classes) * len(nodes)))
        halves = random_halves(label, N_SPLITS, read_seed(0, self.random_state), batch.unit)
        sides = [s for half in halves for s in (half, ~half)]
        as_for_all_rows = warnings.catch_warnings(action="ignore", category=UserWarning)
        with progress("halves of networks", len(sides)) as tick, as_for_all_rows:
            for side in sides:
                others, arcs = np.flatnonzero(~side), full._with_arcs(batch._replace(weight=weight * side))
                half = ContextHalf(full, arcs, limits, others)
                for start in range(0, len(others), size):
                    rows = others[start : start + size]
                    losses += _log_losses(half.nested_joints(rows), label[rows], weight[rows])
                tick()
        if not any_number:
            losses = losses[:, -1:]
        least = losses.min(axis=1)
        best = int(np.argmax(least <= least.min() + NEGLIGIBLE * N_SPLITS * weight.sum()))
        nodes = nodes[: int(np.argmin(losses[best])) + 1] if any_number else nodes
        return batch.with_nodes(tuple(node[: 1 + best] for node in nodes) if any_k else nodes)

    def _with_parents(self, k: int) -> Self:
        """Return an unfitted copy with `k` as given, and with max_features=None in place of "auto"."""
        copied = classifier_state.copy_unfitted(self)
        copied.k, copied.max_features = k, None if self._undecided()[1] else self.max_features
        return copied

    def _with_chosen_hyperparameters(self) -> Self:
        """Return an unfitted copy; if `k` is "auto", with k = `k_`, and with max_features=None for "auto"."""
        return self._with_parents(self.k_) if self._undecided()[0] else classifier_state.copy_unfitted(self)

    def _simplest(self) -> Self:
        """Return an unfitted copy with k = 0 if `k` is "auto", else with the given k."""
        return self._with_parents(0 if self._undecided()[0] else self.k)

    def _candidates(self, batch: LabelledRows, known: Self) -> list[Encoding]:
        """Return encodings with up to 0, 1, … parents of each column if `k` is "auto", else that of `known`."""
        if not self._undecided()[0] or batch.encoding.blocks[0].network is None:
            return super()._candidates(batch, known)
        nodes = self._with_arcs(batch).encoding.blocks[0].network.nodes
        nested = [tuple(node[: 1 + k] for node in nodes) for k in range(max(map(len, nodes), default=1))]
        return [self._with_margins(batch.with_nodes(nodes_of_k)).encoding for nodes_of_k in nested]

    def _check_nodes(self, columns: NodeColumns) -> None:
        """Raise ValueError unless each column is the child of one node at most, and follows its parents."""
        self._undecided()
        if len({child for child, *_ in columns.nodes}) < len(columns.nodes):
            raise ValueError("The network must have one node at most for each column. Fit again.")
        before: set[int] = set()
        for child, *parents in columns.nodes:
            if not before.issuperset(parents):
                name = shown(columns.base.names[child])
                raise ValueError(f"The network lists column {name} before a parent; parents must be first. Fit again.")
            before.add(child)


def _learn_network(counts: np.ndarray, sizes: np.ndarray, k: int) -> tuple[Node, ...]:
    """Learn nodes (child, *parents) with up to k parents from (C, L, L) counts of pairs of levels, best children first.

    `sizes` (F,) are the numbers of levels of the columns; a missing parent is one more value.
    """
    n_classes = len(counts)
    n_both = structure.observed_pairs(counts, sizes)
    # Half the degrees of freedom is the information expected by chance, which is no reason for an arc.
    free = np.maximum(sizes - 1, 0)
    relevance = np.diag(n_both) * structure.class_information(counts, sizes) - free * (n_classes - 1) / 2
    dependence = n_both * structure.mutual_information(counts, sizes) - n_classes * np.outer(free, free) / 2
    n_rows = float(np.diag(n_both).max(initial=0.0))
    most = min(_MOST_CELLS, MOST_COUNTS // (n_classes * len(sizes)), max(_FEW_CELLS, int(_CELLS_A_ROW * n_rows)))
    return structure.k_dependence(relevance, dependence, sizes + 1, k, most)


def _log_losses(joints: Iterable[np.ndarray], label: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Compute (K, F) sums of the log losses of labels, in nats, by K nested networks of the first 1, 2, … F columns.

    `joints` are (n, C, 1 + F) log p(class, cells), first of the columns outside the network alone.
    """
    total = []
    for joint in joints:
        of_label = np.take_along_axis(joint, label[:, None, None], axis=1)[:, 0]
        # A label that is impossible by its class prior is impossible in all networks, and would not compare them.
        possible = np.isfinite(of_label[:, 0])
        total.append(weight[possible] @ (np.logaddexp.reduce(joint, axis=1) - of_label)[possible, 1:])
    return np.where(np.isnan(total), np.inf, total)


# == Classifiers that count all pairs of columns: the averages over all trees, and over superparents


@dataclass(eq=False, repr=False)
class PairsNB(StructuredNB):
    """Base class of the classifiers that count every pair of categorical columns."""

    _: KW_ONLY
    cells: int = CELLS

    _has_margins = False

    def pair_counts(self) -> tuple[NodeColumns, np.ndarray]:
        """Return the categorical columns, and the (C, L, L) weight of the rows of each class with both of two levels.

        Returns
        -------
        columns, counts : NodeColumns, (C, L, L) array
            Categorical columns with their levels, and the (C, L, L) array of weights over the L levels of all columns.

        Examples
        --------
        >>> from bayesnb import TreeAveragedNB
        >>> X = [["sun", "dry"], ["sun", "wet"], ["rain", "wet"]]
        >>> columns, counts = TreeAveragedNB().fit(X, ["out", "out", "out"]).pair_counts()
        >>> [levels.values for levels in columns.base.levels]
        [('rain', 'sun'), ('dry', 'wet')]
        >>> counts[0]  # rows and columns are these levels
        array([[1., 0., 0., 1.],
               [0., 2., 1., 1.],
               [0., 1., 1., 0.],
               [1., 1., 0., 2.]])
        """
        check_is_fitted(self)
        columns, statistics = self.fitted_.encoding.blocks[0].network, self.statistics_
        if columns is None:
            return NO_COLUMNS, np.zeros((len(statistics.class_count), 0, 0))
        sizes = columns.base.sizes()
        levels = np.split(np.arange(int(sizes.sum())), columns.base.start()[1:])
        counts = np.zeros((len(statistics.class_count), int(sizes.sum()), int(sizes.sum())))
        for (child, *parents), table in zip(columns.nodes, columns.tables(statistics.blocks[0].count), strict=True):
            if not parents:
                counts[:, levels[child], levels[child]] = table
            for p in parents:
                pair = table[:, : sizes[p]]
                counts[:, levels[p][:, None], levels[child]] = pair
                counts[:, levels[child][:, None], levels[p]] = pair.swapaxes(1, 2)
        return columns, counts


# -- Naive Bayes averaged over all trees between the features --------------------------------------


@dataclass(eq=False, repr=False)
class TreeAveragedNB(PairsNB):
    r"""Naive Bayes augmented by an unknown tree: the exact average over all trees between the columns.

    A priori all F^(F - 2) trees T are equally probable, and each arc is real with probability ½, so that naive Bayes
    and all forests are included. The average over all of these is

    .. math::

        p(c, x \mid D) = p(c \mid D) \prod_u p(x_u \mid c, D) \cdot
        \frac{\sum_T \prod_{uv \in T} (1 + B_{uv} r_{uv})}{\sum_T \prod_{uv \in T} (1 + B_{uv})},

    with B_uv the Bayes factor of dependence of u and v given the class, and r_uv the ratio of p(x_u, x_v | c, D) to
    p(x_u | c, D) p(x_v | c, D); see docs/derivations/structures.md, "All trees". The priors are π ~
    Dirichlet(`class_alpha`) and, for the levels of each pair of columns in each class, Dirichlet(S/(L_u L_v)).

    Parameters
    ----------
    alpha : float, default 1
        Equivalent sample size S of the prior, in rows per class: each of the L levels of a column has the Dirichlet
        concentration S/L, and each pair of levels of two columns S/(L_u L_v).
    class_alpha : scalar, (C,) array, or dict or Series by class, default 1
        Concentration of the Dirichlet prior of the class probabilities π: one number for all classes, or one per class.
        An array is in the order of `classes_`; a dict or Series names the classes.
    class_prior : (C,) array, dict or Series by class, or Dirichlet, optional
        Known class probabilities π, or a Dirichlet prior of π. Replaces `class_alpha`. An array is in the order of
        `classes_`; a dict or Series names the classes.
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
    gaussian : "auto", "dtype", list of columns, or None, default "auto"
        Columns of numbers, by name or index; all other columns are categorical. "auto": the columns with a
        number that is not whole (whole numbers up to 2^53 may be codes of levels), dates, in days since 1970 (UTC), and
        durations, in seconds. "dtype": whole numbers, too. Columns with at most two distinct numbers in ten or more
        present cells are categorical. The values decide, not the container or its type. None: no column. The columns
        of a list are Gaussian given the class, and take no part in the structure.
    gaussian_prior : {"within", "pooled"}, NormalInverseGamma, EmpiricalNormal or dict by column, default "within"
        Prior of the mean and variance of the Gaussian columns. "within": empirical Bayes, with m the mean of the column
        over all rows, κ = 0.1, a = 1, and b the variance of the column within the classes. "pooled": the same, with b
        the variance over all rows. A NormalInverseGamma is used as given. A dict gives the prior of some columns, such
        as `{"age": NormalInverseGamma(...)}`; the others have the default prior, or that of the entry `None`.
    numbers : {"gaussian", "binned"}, default "binned"
        Treatment of the columns that `gaussian="auto"` or `"dtype"` selects. "gaussian": they are normal given the
        class, and take no part in the structure. "binned": they take part in the structure by their cells, `edges_`. A
        number then counts as its cell. The ends of cells are the cuts of the most probable binning of the rows that are
        counted first, which depends on their labels.
    cells : int, default 64
        Largest number of cells of a column of numbers, 2 to 256.
    prior : NaiveBayes, optional
        Complete prior of the classifier, such as `prior_` of another one. Replaces `alpha`, `gaussian_prior`,
        `class_alpha` and `class_prior`.

    Attributes
    ----------
    arc_probability_ : (F, F) DataFrame
        Posterior probability that the arc between two columns, by name, is real.
    categories_ : list of arrays or None
        Levels of each column; None for a Gaussian column.
    edges_ : dict {name: array}
        Ends of the cells of each column of numbers in the structure, in the units of the column.
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
        Log evidence log p(X, y): the parameters are integrated out.

    See Also
    --------
    TAN : Best tree instead of the average.
    AODE : Average over networks with one common parent.
    posterior_draws : Draws of the parameters of a tree.
    KDB.parents_from : Network from the counts of pairs.

    Notes
    -----
    Intervals, the split of entropy, posterior draws and decisions include the uncertainty about the tree. If a column
    is missing in a row, the arcs of the column are left out for that row; the sum over the values of the missing cell,
    which would connect its neighbours, is not computed. Cells count for a pair of columns if both are observed. With
    missing cells there are no evidence, draws and intervals, as the tables of pairs and of columns do not agree.

    The parameters are those of a tree: `draw_trees` and `posterior_draws` draw them, and `parameter_table` and
    estimates other than "predictive" are not offered. There is one term per column, as in naive Bayes, and one for the
    contribution of all arcs. The score of a row takes F³/3 steps per class.

    References
    ----------
    Meilă & Jaakkola, *Tractable Bayesian learning of tree belief networks*, Stat. Comput. 16 (2006). Cerquides & López
    de Mántaras, *TAN classifiers based on decomposable distributions*, Machine Learning 59 (2005).

    Examples
    --------
    >>> from bayesnb import TreeAveragedNB
    >>> X = [["sun", "hot"], ["sun", "hot"], ["rain", "cold"], ["rain", "cold"]] * 5
    >>> TreeAveragedNB().fit(X, ["out", "in"] * 10).arc_probability_.loc["0", "1"].round(3)
    np.float64(1.0)
    """

    alpha: float = ALPHA
    _: KW_ONLY
    numbers: str = "binned"
    prior: object = None

    estimate = "predictive"

    @property
    def arc_probability_(self) -> pd.DataFrame:
        """Posterior probability that the arc between two columns is real, an (F, F) table; the diagonal is 0."""
        import pandas as pd

        names = list(self._network.names)
        matrix = np.zeros((len(names), len(names)))
        if len(names) > 1:
            matrix[np.triu_indices(len(names), 1)] = float64(_arc_probability)(self.posterior_.blocks[0])
        return pd.DataFrame(matrix + matrix.T, names, names)

    def draw_trees(self, draws: int = 1000, seed: Seed = 0) -> np.ndarray:
        """Draw S trees from their exact posterior, as parents (S, F) of the columns.

        Parameters
        ----------
        draws : int, default 1000
            Number of draws, S.
        seed : int, JAX key, RandomState or Generator, default 0
            Seed of the draws.

        Returns
        -------
        (S, F) int array
            Parent of each column, by its position in `arc_probability_`; -1 without a real arc to a parent. Arcs have
            no direction: any column may be the root.

        Examples
        --------
        >>> from bayesnb import TreeAveragedNB
        >>> X, y = [["a", "u"], ["b", "v"]] * 10, ["p"] * 10 + ["q"] * 10
        >>> trees = TreeAveragedNB().fit(X, y).draw_trees(1000)
        >>> trees.shape, trees[:2].tolist()
        ((1000, 2), [[1, -1], [1, -1]])
        """
        seed = read_seed(seed)
        n = len(self._network.names)
        require_draws(draws, 4 * n + n**2 / 8, f"a tree of {n} columns")
        if not n:
            return np.empty((draws, 0), int)
        trees = self.posterior_.blocks[0]
        variates = float64(ask)(_draw_trees, trees)
        return np.asarray(float64(run)(_draw_trees, variates, draws, np.random.default_rng(seed), trees))

    @property
    def parents_(self) -> NoReturn:
        """Raise NotOfferedError: trees are averaged, see `arc_probability_`."""
        raise NotOfferedError("parents_: TreeAveragedNB has no single tree. Use arc_probability_ or draw_trees.")

    def query(self, variables: object, given: object = None) -> NoReturn:
        """Raise NotImplementedError: an average of networks is not a network."""
        raise NotImplementedError("query: TreeAveragedNB is an average of networks. Query a TAN or NetworkNB.")

    # -- shared machinery ------------------------------------------------------------------------

    @property
    def _table_type(self) -> type[NodeColumns]:
        """Type of the network's columns, `PairColumns`: all columns alone, and all pairs."""
        return PairColumns

    def _arcs(self, encoding: Encoding, columns: NodeColumns, counts: np.ndarray | None) -> tuple[Node, ...]:
        """Return the nodes that the columns have: each column alone, and each pair of columns once."""
        return columns.nodes

    def _check_nodes(self, columns: NodeColumns) -> None:
        """Raise ValueError unless the nodes are all columns alone, then all pairs of columns."""
        columns.check()


@kernel
def _arc_probability(family: TreeAveraged) -> jax.Array:
    """Compute (F (F - 1)/2,) posterior probabilities of arcs, pairs in the order of `np.triu_indices(F, 1)`."""
    return xp.asarray(family.arc_probability())


def _draw_trees(variates: Variates, n: int, family: TreeAveraged) -> Any:
    """Draw (n, F) parents of the columns from the posterior of trees, by the given variates; -1 for none."""
    return family.draw_trees(variates, n)


# == Averaged one-dependence estimators (AODE) =====================================================

NB = TypeVar("NB", bound=StructuredNB)
_LEVELS = "levels"
_ROUNDING = 1e-9
"""Relative rounding error of sums of fractional weights."""


@dataclass(eq=False, repr=False)
class AODE(PairsNB):
    r"""Averaged one-dependence estimators: the average over networks in which one column is a parent of all others.

    Each member p is a `SPODE` in which column p is the parent of all other columns. The members are averaged with equal
    weights:

    .. math::

        p(c, x \mid D) = \frac{1}{|M(x)|} \sum_{p \in M(x)} p_p(c, x \mid D),

    where M(x) are the members whose parent has a value in the row that occurred in at least `min_count` rows. Rows
    without such a member are predicted by naive Bayes. See
    docs/derivations/structures.md, "Averaged one-dependence estimators".

    Parameters
    ----------
    min_count : int, default 1
        A column is a parent in a row if rows with a total weight of at least `min_count` share its value in that row.
    alpha : scalar, (F,) array, or dict or Series by column, default 1
        Dirichlet concentration of each level of a column given each value of the parent of a member, as in Weka: one
        number for all columns, or one per column. A dict or Series is matched by name, such as
        `{"colour": {"green": 2.0}, "root": 0.5}`. Concentrations that it does not name are 1; a level that it names is
        declared. An entry may differ between classes: see `CategoricalNB`.
    class_alpha : scalar, (C,) array, dict or Series by class, or "levels", default 1
        Concentration of the Dirichlet prior of the class probabilities of each member. "levels": the number of levels
        of the parent of the member, so that P(class, x_p) = (n + 1)/(N + C · levels) at alpha = 1, as in Weka.
    class_prior : (C,) array, dict or Series by class, or Dirichlet, optional
        Known class probabilities π, or a Dirichlet prior of π. Replaces `class_alpha`. An array is in the order of
        `classes_`; a dict or Series names the classes.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Estimate of the parameters that predictions use. "predictive" integrates the parameters out (the posterior
        predictive distribution). "mean", "map" and "mle" plug in the posterior mean, the posterior mode and the maximum
        likelihood estimate.
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
    gaussian : "auto", "dtype", list of columns, or None, default "auto"
        Columns of numbers, by name or index; all other columns are categorical. "auto": the columns with a
        number that is not whole (whole numbers up to 2^53 may be codes of levels), dates, in days since 1970 (UTC), and
        durations, in seconds. "dtype": whole numbers, too. Columns with at most two distinct numbers in ten or more
        present cells are categorical. The values decide, not the container or its type. None: no column. The columns
        of a list are Gaussian given the class, and take no part in the structure.
    gaussian_prior : {"within", "pooled"}, NormalInverseGamma, EmpiricalNormal or dict by column, default "within"
        Prior of the mean and variance of the Gaussian columns. "within": empirical Bayes, with m the mean of the column
        over all rows, κ = 0.1, a = 1, and b the variance of the column within the classes. "pooled": the same, with b
        the variance over all rows. A NormalInverseGamma is used as given. A dict gives the prior of some columns, such
        as `{"age": NormalInverseGamma(...)}`; the others have the default prior, or that of the entry `None`.
    numbers : {"gaussian", "binned"}, default "gaussian"
        Treatment of the columns that `gaussian="auto"` or `"dtype"` selects. "gaussian": they are normal given the
        class, and take no part in the structure. "binned": they take part in the structure by their cells, `edges_`. A
        number then counts as its cell. The ends of cells are the cuts of the most probable binning of the rows that are
        counted first, which depends on their labels.
    cells : int, default 64
        Largest number of cells of a column of numbers, 2 to 256.
    tables : {"full", "context"}, default "full"
        Probability tables of a column given its parents. "full": one Dirichlet for each joint value of the parents.
        "context": the exact average over the number of parents that matter for each of their values (context trees:
        docs/derivations/structures.md, "Context trees"). `alpha` is then the concentration of all levels of a column
        together, and a missing parent counts as one more value.

    Attributes
    ----------
    members_ : list of SPODE
        Fitted classifiers, one for each categorical column as the parent, with posteriors, tables and draws.
    categories_ : list of arrays or None
        Levels of each column; None for a Gaussian column.
    edges_ : dict {name: array}
        Ends of the cells of each column of numbers in the structure, in the units of the column.
    time_units_ : dict {column name: unit}
        Units of the columns of dates ("days" since 1970, UTC) and of durations ("seconds"); only if there are any.
    classes_ : (C,) array
        Class labels, in the order of the class axis of every array.
    class_count_ : (C,) array
        Sum of the weights of the rows in each class.
    class_log_prior_ : (C,) array
        Logarithm of the posterior mean of each class probability; `class_alpha="levels"` counts as 1 here.
    statistics_ : Statistics
        Counts of all pairs of columns, each pair once. All members share these counts.
    n_parameters_ : int
        Number of free parameters.

    See Also
    --------
    SPODE : One member.
    TreeAveragedNB : Average over all trees, which has a posterior.
    TAN : Best tree.
    KDB.parents_from : Network from the counts of pairs.

    Notes
    -----
    The weights of the members are equal. Weights by evidence would concentrate on one member as the number of rows
    grows (the joint evidences differ by hundreds of nats), and the average would be lost. The average has no posterior:
    draws, intervals and evidence are those of the members. `loo` has labels only. A member whose parent is missing in a
    row is left out of the average for that row; the values of the missing cell are not summed over, so that the members
    of the average differ from row to row.

    References
    ----------
    Webb, Boughton & Wang, *Not so naive Bayes: aggregating one-dependence estimators*, Machine Learning 58 (2005).

    Examples
    --------
    >>> from bayesnb import AODE
    >>> X = [["sun", "hot"], ["sun", "cold"], ["rain", "cold"], ["rain", "hot"]] * 5
    >>> AODE().fit(X, ["out", "in", "out", "in"] * 5).predict([["sun", "hot"]])
    array(['out'], dtype='<U3')
    """

    min_count: int = 1
    _: KW_ONLY
    estimate: Estimate = "predictive"
    tables: str = "full"

    prior = None

    @property
    def members_(self) -> list[SPODE]:
        """Fitted classifiers, one for each categorical column as the parent of all others."""
        return self._fit_members(self.fitted_.counted)[0]

    @property
    def parents_(self) -> NoReturn:
        """Raise NotOfferedError: each member has parents of its columns, and the average has none."""
        self._refuse("parents_")

    @property
    def prior_(self) -> NoReturn:
        """Raise NotOfferedError: each member has a prior, and the average has none."""
        self._refuse("prior_")

    @property
    def posterior_(self) -> NoReturn:
        """Raise NotOfferedError: each member has a posterior, and the average has none."""
        self._refuse("posterior_")

    # -- shared machinery ------------------------------------------------------------------------

    def _refuse(self, name: str) -> NoReturn:
        """Raise NotOfferedError for the attribute `name`, with the reason `no_posterior`."""
        raise NotOfferedError(f"{name}: {self.no_posterior}")

    @property
    def no_posterior(self) -> str | None:
        """Reason why the average of classifiers has no posterior of parameters."""
        return (
            "AODE averages several classifiers. Each classifier has a posterior, but the average has none. "
            "Use one of the classifiers in members_, or fit a TAN or a SPODE."
        )

    def _state(self, counted: Counted) -> Fitted:
        """Return the state of these counts, which averages members."""
        state = vars(super()._state(counted))
        return FittedAverage(**state, model=state["owner"])

    def _arcs(self, encoding: Encoding, columns: NodeColumns, counts: np.ndarray | None) -> tuple[Node, ...]:
        """Return the nodes of all members: (j, p) for each pair of columns in both orders, and each (p,)."""
        return tuple(node for p in range(len(columns.base.index)) for node in columns.superparent_nodes(p))

    def _check_nodes(self, columns: NodeColumns) -> None:
        """Raise ValueError unless the nodes are all pairs of columns and all columns alone, as `_arcs` lists them."""
        if columns.nodes != self._arcs(self.encoding_, columns, None):
            raise ValueError(
                "The nodes of AODE must be each column, alone and with each other column as its parent; they are "
                f"{shown(columns.nodes)}. Fit again."
            )

    def _empirical_prior(self, counted: Counted) -> NaiveBayes:
        """Return the prior of the shared counts of pairs, with class_alpha=1 for "levels".

        Raises
        ------
        ValueError
            If `min_count`, `alpha` or `class_alpha` cannot be used.
        """
        require_integer("min_count", self.min_count, least=0)
        n_features = counted.encoding.blocks[0].n_features
        by_position = not (isinstance(self.alpha, Number) or any(map(is_labelled, (self.alpha, *as_list(self.alpha)))))
        if by_position and np.asarray(self.alpha).shape not in ((), (n_features,)):
            raise ValueError(
                f"alpha={shown(self.alpha)} must be a number, or a list of {n_features} numbers, one for each feature: "
                "concentrations of levels would depend on the parent. Name levels in a dict {column: {level: number}}."
            )
        if not isinstance(self.class_alpha, str):
            return super()._empirical_prior(counted)
        if self.class_alpha != _LEVELS:
            wanted = "use positive numbers, or 'levels' (the number of levels of the parent of each network)"
            raise ValueError(f"class_alpha={shown(self.class_alpha)} is unknown; {wanted}.")
        with_alpha = copy.copy(self)
        with_alpha.class_alpha = 1.0
        return super(AODE, with_alpha)._empirical_prior(counted)

    def _fit_members(self, counted: Counted) -> tuple[list[SPODE], NetworkNB]:
        """Return fitted `SPODE`s, with each network column in turn as the parent, and fitted naive Bayes."""
        columns, params = counted.encoding.blocks[0].network, self.get_params(deep=False)
        del params["min_count"]
        levels_prior = isinstance(self.class_alpha, str)
        naive = NetworkNB(**params | ({"class_alpha": 1.0} if levels_prior else {}))
        if columns is None:
            return [], self._fit_member(naive, counted)
        members, n, count = [], len(columns.base.index), counted.statistics.blocks[0].count
        bounds = np.append(columns.start(), columns.sizes().sum())
        for p, (name, n_levels) in enumerate(zip(columns.base.names, columns.base.sizes().tolist(), strict=True)):
            member = SPODE(name, **params | ({"class_alpha": float(n_levels)} if levels_prior else {}))
            nodes = replace(columns, nodes=columns.nodes[p * n : (p + 1) * n])
            pairs = count[:, bounds[p * n] : bounds[(p + 1) * n]]
            members.append(self._fit_member(member, counted, nodes, pairs))
        alone = np.concatenate([count[:, bounds[i] : bounds[i + 1]] for i in range(0, n * n, n + 1)], axis=1)
        return members, self._fit_member(naive, counted, self._table_type.from_base(columns.base), alone)

    def _fit_member(
        self, member: NB, counted: Counted, columns: NodeColumns | None = None, count: np.ndarray | None = None
    ) -> NB:
        """Return a copy of `member` fitted to (C, L) counts of the nodes of `columns`, and to the counts of numbers."""
        encoding, statistics, _ = counted
        if columns is not None:
            encoding = replace(encoding, blocks=(columns, *encoding.blocks[1:]))
            statistics = replace(statistics, blocks=(LevelCounts(count), *statistics.blocks[1:]))
        return classifier_state.fit_to_counts(member, self, Counted(encoding, statistics))


@dataclass(frozen=True, eq=False)
class FittedAverage(Fitted):
    """State of an average of models with one parent for all columns, over the members that vote on each row.

    A member votes on a row if the value of its parent in the row occurred in rows of a weight of at least `min_count`.
    Rows on which no member votes are scored by naive Bayes. Members are fitted at their first use, and once.

    Parameters
    ----------
    model : AODE
        Hyperparameters of the members.
    """

    model: AODE

    @cached_property
    def _models(self) -> tuple[list[Fitted], Fitted]:
        """States of the members, and that of naive Bayes for rows without a member."""
        members, naive = self.model._fit_members(self.counted)
        return [member.fitted_ for member in members], naive.fitted_

    @property
    def member_names(self) -> Sequence[str]:
        """(M,) names of the parents of the members."""
        columns = self.encoding.blocks[0].network
        return ("naive Bayes",) if columns is None else tuple(columns.base.names)

    @property
    def term_names(self) -> tuple[str, ...]:
        """(M,) names of the terms, which are those of the members."""
        return tuple(self.member_names)

    def require_single_model(self, who: str) -> None:
        """Raise NotOfferedError, with the reason."""
        raise NotOfferedError(f"{who}: {self.no_posterior}")

    def score(
        self,
        rows: tuple[Rows, ...],
        n: int,
        output: Output,
        estimate: Estimate | None = None,
        class_prior: object = None,
    ) -> np.ndarray:
        """Apply `output` to the (n, C) log of the average of p(class, row), or to its weighted score."""
        estimate = self.estimate if estimate is None else estimate
        scores = self.score_models(rows, n, score_new_rows(estimate, class_prior))
        return scoring.apply(output, self.combine(scores, lambda: self.log_class(estimate, class_prior)))

    def terms(self, rows: tuple[Rows, ...], n: int, estimate: Estimate | None = None) -> np.ndarray:
        """Compute (n, C, M) log p(row | class) by each member, times the weights of members if there are any."""
        estimate = self.estimate if estimate is None else estimate
        scores = self.score_models(rows, n, score_new_rows(estimate), each=True)
        return self.weigh_terms(scores, self.log_class(estimate))

    def weigh_terms(self, terms: np.ndarray, log_class: np.ndarray) -> np.ndarray:
        """Return (n, C, M) weighted log p(row | class) from log p(class, row) by each member."""
        values = terms - log_class[..., None]
        return values if self.weights is None else values * self.weights.blocks[0]

    def combine(self, scores: np.ndarray, log_class: Callable[[], np.ndarray]) -> np.ndarray:
        """Return (n, C) log p(class, row) of the average, or its weighted score."""
        if self.weights is None:
            return scores[..., 0]
        prior = log_class()
        terms = scores - prior[..., None]
        return prior + self.weights.class_bias + terms @ np.atleast_1d(self.weights.blocks[0])

    def score_models(
        self, rows: tuple[Rows, ...], n: int, score: ScoreModel, *, less: np.ndarray | float = 0.0, each: bool = False
    ) -> np.ndarray:
        """Compute log p(class, row) by each member (n, C, M), or by their average (n, C, 1); see `Fitted`."""
        each = each or (self.weights is not None and np.ndim(self.weights.blocks[0]) > 0)
        return self._each(rows, n, score, less) if each else self._mean(rows, n, score, less)[..., None]

    def _mean(self, rows: tuple[Rows, ...], n: int, score: ScoreModel, less: np.ndarray | float) -> np.ndarray:
        """Compute (n, C, …) log of the mean over the voting members of p(class, row); naive Bayes where none votes."""
        total, votes = None, np.zeros(n)
        for vote, scores in self._votes(rows, n, score, less):
            if scores is not None:
                total = np.full(scores.shape, -np.inf) if total is None else total
                total = scoring.map_rows((), n, lambda _, *block: kernels.log_add(*block), total, scores, vote)
                votes += vote
        if (none := votes == 0).any():
            of_naive = self._score_by_naive_bayes(rows, score, none)
            total = np.full((n, *of_naive.shape[1:]), -np.inf) if total is None else total
            total[none], votes[none] = of_naive, 1
        mean: np.ndarray = np.asarray(total)
        return mean - np.log(votes).reshape(-1, *(1,) * (mean.ndim - 1))

    def _each(self, rows: tuple[Rows, ...], n: int, score: ScoreModel, less: np.ndarray | float) -> np.ndarray:
        """Compute (n, C, M) log p(class, row) by each member; without a vote, the mean of the voting members' logs.

        Where no member votes all M entries are those of naive Bayes; without members M is 1.
        """
        if not self._models[0]:
            return self._score_by_naive_bayes(rows, score, np.ones(n, bool))[..., None]
        votes, scores = zip(*self._votes(rows, n, score, less), strict=True)
        vote: np.ndarray = np.stack(votes, axis=-1)
        nothing = np.zeros((n, len(self.encoding.classes)))
        joints = np.stack([nothing if member is None else member for member in scores], axis=-1)
        none = np.logical_not(vote.any(axis=1))
        if none.any():
            joints[none], vote[none] = self._score_by_naive_bayes(rows, score, none)[..., None], True
        vote = vote[:, None]
        mean = np.where(vote, joints, 0.0).sum(axis=2, keepdims=True) / vote.sum(axis=2, keepdims=True)
        return np.where(vote, joints, mean)

    def _votes(
        self, rows: tuple[Rows, ...], n: int, score: ScoreModel, less: np.ndarray | float
    ) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """Yield the mask (n,) of rows on which each member votes, and the member's log p(class, row) (n, C) or None.

        `less` (n,) is the weight to subtract from the occurrences of the values of a row.
        """
        (members, naive), columns = self._models, self.encoding.blocks[0].network
        if columns is None:
            return
        cells: Any = rows[0]
        base, count = cells.base, naive.statistics.blocks[0].count
        with progress("AODE", len(members), "members") as tick:
            for p, (member, table) in enumerate(zip(members, columns.base.tables(count), strict=True)):
                # Weight of the rows with each value of the parent; a missing parent has no vote.
                seen = np.append(table.sum(axis=0), -np.inf)[base.codes[:, p]]
                vote = seen - less >= self.model.min_count - _ROUNDING * np.maximum(seen, 0.0)
                of_member = member.encoding.blocks[0].network.rows_of_base(base).counting_rows(), *rows[1:]
                yield vote, score(member, of_member, np.ones(n, bool)) if vote.any() else None
                tick()

    def _score_by_naive_bayes(self, rows: tuple[Rows, ...], score: ScoreModel, none: np.ndarray) -> np.ndarray:
        """Compute (m, C) log p(class, row) by naive Bayes, for the m rows in the mask `none` (n,)."""
        naive = self._models[1]
        taken = tuple(r.take(none) for r in rows)
        if isinstance(taken[0], NodeRows):
            network = naive.encoding.blocks[0].network
            taken = network.rows_of_base(taken[0].base).counting_rows(), *taken[1:]
        return score(naive, taken, none)
