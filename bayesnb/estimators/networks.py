"""Classifiers with given arcs between features: any network, and one parent of all others (SPODE)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from bayesnb._util.arguments import bad_argument, shown
from bayesnb.encoding import Encoding, Node, NodeColumns
from bayesnb.estimators.mixed import as_list
from bayesnb.estimators.network_base import StructuredNB, position
from bayesnb.model import Estimate


@dataclass(eq=False, repr=False)
class NetworkNB(StructuredNB):
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
        a level that it names is declared.
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
    gaussian_prior : {"within", "pooled"}, NormalInverseGamma or EmpiricalNormal, default "within"
        Prior of the mean and variance of the Gaussian columns. "within": empirical Bayes, with m the mean of the column
        over all rows, κ = 0.1, a = 1, and b the variance of the column within the classes. "pooled": the same, with b
        the variance over all rows. A NormalInverseGamma is used as given.
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

    parents: Mapping[Any, object] | None = None
    _: KW_ONLY
    estimate: Estimate = "predictive"
    tables: str = "full"
    prior: object = None

    _needs_arcs = False

    def _arcs(self, encoding: Encoding, columns: NodeColumns, counts: np.ndarray | None) -> tuple[Node, ...]:
        """Return a node (child, *parents) for each column by `parents`; ValueError for unknown or double names."""
        named: Any = {} if self.parents is None else self.parents
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
class SPODE(StructuredNB):
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
        is declared.
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
    gaussian_prior : {"within", "pooled"}, NormalInverseGamma or EmpiricalNormal, default "within"
        Prior of the mean and variance of the Gaussian columns. "within": empirical Bayes, with m the mean of the column
        over all rows, κ = 0.1, a = 1, and b the variance of the column within the classes. "pooled": the same, with b
        the variance over all rows. A NormalInverseGamma is used as given.
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
    estimate: Estimate = "predictive"
    tables: str = "full"
    prior: object = None

    def _arcs(self, encoding: Encoding, columns: NodeColumns, counts: np.ndarray | None) -> tuple[Node, ...]:
        """Return (j, p) for all columns j but the parent p, and (p,); ValueError for an unusable `parent`."""
        if self.parent is not None:
            return columns.superparent_nodes(position(encoding, columns, self.parent, "parent"))
        return columns.superparent_nodes(int(np.argmax(columns.base.sizes() > 0)) if columns.nodes else 0)

    def _check_nodes(self, columns: NodeColumns) -> None:
        """Raise ValueError unless each column is a child once, without a cycle, and `parent` is categorical."""
        super()._check_nodes(columns)
        self._arcs(self.encoding_, columns, None)
