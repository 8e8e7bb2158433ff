"""Classifiers with given arcs between features: any network, and one parent of all others (SPODE)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from bayesnb._util.arguments import shown
from bayesnb.encoding import Encoding, Node, NodeColumns
from bayesnb.estimators.mixed import as_list
from bayesnb.estimators.network_base import StructuredNB, position
from bayesnb.model import Estimate


@dataclass(eq=False, repr=False)
class NetworkNB(StructuredNB):
    """Naive Bayes augmented by a given acyclic network of the categorical features.

    p(c, x) = π_c Π_j p(x_j | x_parents(j), c), with a Dirichlet for each value of the parents and the class.

    Parameters
    ----------
    parents : dict {column: parent, list of parents, or None}, optional
        Parents of each column besides the class, by name or index. A column that is not mentioned has none, so that the
        default is naive Bayes. `parents_` of another classifier can be given.
    alpha : scalar, (F,) array, list of F arrays or (C, L) array, default 1
        Dirichlet concentration of each level of a column given each value of its parents: Laplace smoothing of each
        table. A list of F arrays, or a (C, L) array, is over the joint levels of parents and column, the levels of the
        column varying fastest. The concentration is taken as given; the prior of `TAN("evidence")`, which compares
        tables of different sizes, divides the concentration of each column by the number of values of its parents.
    class_alpha : scalar or (C,) array, default 1
        Dirichlet concentration of the class probabilities.
    class_prior : (C,) array or Dirichlet, optional
        Known class probabilities, or a Dirichlet prior of them, in place of `class_alpha`.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Reading of the posterior in predictions. "predictive" integrates the parameters out; "mean", "map" and "mle"
        plug in the posterior mean, the posterior mode and the maximum likelihood estimate.
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
    gaussian : "auto", "dtype", list of columns, or None, default "auto"
        Columns of numbers, by name or index; all others are categorical. "auto": the float columns of a DataFrame; of
        an array, whose columns share one type, the float columns with some value that is not whole, as whole numbers
        are codes. "dtype": all columns of floats and integers. Columns of a list are Gaussian, and take no part in the
        structure.
    gaussian_prior : {"within", "pooled"}, NormalInverseGamma or EmpiricalNormal, default "within"
        Prior of the Gaussian columns. "within": empirical Bayes with the mean of the column and its variance within the
        classes. "pooled": with its variance over all rows. See `GaussianNB` for the strength of these priors.
    numbers : {"gaussian", "binned"}, default "gaussian"
        Treatment of the columns that `gaussian="auto"` or `"dtype"` selects. "gaussian": they are Gaussian given the
        class, and take no part in the structure. "binned": they take part in the structure by their cells, `edges_`.
        The ends of cells are quantiles and do not depend on labels. The position of a number within its cell depends on
        the class alone, by a density that is normal or binned, as in `MixedNB(numbers="auto")`: the log-likelihood is
        log p(x_j | c) + log p(q_j | c, parents) - log p(q_j | c), with q_j the cell. Such a model has no evidence and
        no `given="row"`, and all results are conditional on the cells and on the kinds of densities.
    cells : int, default 6
        Largest number of cells of a column of numbers, 2 to 256.
    tables : {"full", "context"}, default "full"
        Probability tables of a column given its parents. "full": one Dirichlet for each joint value of the parents.
        "context": the exact average over all prunings of the tree of contexts, in which the parents are taken in their
        order and each context is the last one with probability ½ a priori; `alpha` is then the concentration of all
        levels of a column together, in every context. A missing parent is one more value, so that nothing is summed
        out, and results are conditional on which cells are missing. See `context_table`.
    prior : NaiveBayes, optional
        Complete prior, such as `prior_` of another classifier, in place of `alpha`, `gaussian_prior`, `class_alpha` and
        `class_prior`.

    Attributes
    ----------
    parents_ : dict {name: name, tuple of names, or None}
        Parents of each column besides the class.
    categories_ : list of arrays or None
        Levels of each column; None for a Gaussian one.
    edges_ : dict {name: array}
        Ends of the cells of each column of numbers in the structure.
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
    A cell counts where column and parents are observed; `fit` warns of classes without such rows. The score of a row
    sums its missing cells out exactly: it is the density of the observed cells, if cells are missing at random, and
    `predict_proba` is `query` of the class. Intervals of such rows given the row (`predict_interval`) are computed from
    draws. The evidence is refused where cells are missing on arcs: the sum over the missing cells of all rows has no
    closed form. Results about parameters and predictions are conditional on the structure: intervals hold for the true
    structure, and are too narrow for one that was learned from the same rows, see `TAN`.

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
        names = columns.base.names
        if self.parents is not None and not isinstance(self.parents, Mapping):
            raise ValueError(
                f"parents={shown(self.parents)} must be a dict {{column: parent, list of parents, or None}}."
            )
        parents_of: dict[int, list[int]] = {}
        named: set[int] = set()
        for column, value in (self.parents or {}).items():
            (index,), parents = encoding.positions([column], "parents"), as_list(value)
            if index in named:
                name = dict(zip(columns.base.index, names, strict=True)).get(index, column)
                raise ValueError(f"parents names column {shown(name)} twice, by name and by index.")
            named.add(index)
            if not parents:
                continue
            child = position(encoding, columns, column, "parents")
            parents_of[child] = [position(encoding, columns, p, "parents") for p in parents]
            if len(set(parents_of[child])) < len(parents):
                raise ValueError(f"parents names a parent of column {shown(names[child])} twice: {shown(value)}.")
        return tuple((j, *parents_of.get(j, ())) for j in range(len(names)))

    def _check_nodes(self, columns: NodeColumns) -> None:
        """Raise ValueError unless each column is a child once, and neither fitted nor stated arcs have a cycle."""
        super()._check_nodes(columns)
        given = self._arcs(self.encoding_, columns, None)
        self._require_order(replace(columns, nodes=given))


@dataclass(eq=False, repr=False)
class SPODE(StructuredNB):
    """Superparent one-dependence estimator: one column is the parent of all others.

    p(c, x) = π_c p(x_p | c) Π_j p(x_j | x_p, c).

    Parameters
    ----------
    parent : column name or index, optional
        Column that is the parent of all others. Default: the first categorical column with an observed cell.
    alpha : scalar or (F,) array, default 1
        Dirichlet concentration of each level of a column given each value of its parents, one for all columns or one
        per column: Laplace smoothing of each table.
    class_alpha : scalar or (C,) array, default 1
        Dirichlet concentration of the class probabilities.
    class_prior : (C,) array or Dirichlet, optional
        Known class probabilities, or a Dirichlet prior of them, in place of `class_alpha`.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Reading of the posterior in predictions. "predictive" integrates the parameters out; "mean", "map" and "mle"
        plug in the posterior mean, the posterior mode and the maximum likelihood estimate.
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
    gaussian : "auto", "dtype", list of columns, or None, default "auto"
        Columns of numbers, by name or index; all others are categorical. "auto": the float columns of a DataFrame; of
        an array, whose columns share one type, the float columns with some value that is not whole, as whole numbers
        are codes. "dtype": all columns of floats and integers. Columns of a list are Gaussian, and take no part in the
        structure.
    gaussian_prior : {"within", "pooled"}, NormalInverseGamma or EmpiricalNormal, default "within"
        Prior of the Gaussian columns. "within": empirical Bayes with the mean of the column and its variance within the
        classes. "pooled": with its variance over all rows. See `GaussianNB` for the strength of these priors.
    numbers : {"gaussian", "binned"}, default "gaussian"
        Treatment of the columns that `gaussian="auto"` or `"dtype"` selects. "gaussian": they are Gaussian given the
        class, and take no part in the structure. "binned": they take part in the structure by their cells, `edges_`.
        See `NetworkNB` for the density of such a number.
    cells : int, default 6
        Largest number of cells of a column of numbers, 2 to 256.
    tables : {"full", "context"}, default "full"
        Probability tables of a column given its parents. "full": one Dirichlet for each joint value of the parents.
        "context": the exact average over all prunings of the tree of contexts, with `alpha` as the concentration of all
        levels of a column together; a missing parent is one more value.
    prior : NaiveBayes, optional
        Complete prior, such as `prior_` of another classifier, in place of `alpha`, `gaussian_prior`, `class_alpha` and
        `class_prior`.

    Attributes
    ----------
    parents_ : dict {name: name, tuple of names, or None}
        Parents of each column besides the class.
    categories_ : list of arrays or None
        Levels of each column; None for a Gaussian one.
    edges_ : dict {name: array}
        Ends of the cells of each column of numbers in the structure.
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
