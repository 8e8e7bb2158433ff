"""Classifiers in which features depend on each other: TAN, SPODE, and networks that the user gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bayesnb._util.arguments import shown
from bayesnb.encoding import Encoding, Node, NodeColumns
from bayesnb.estimators.defaults import ALPHA, CLASS_ALPHA, DEPENDENCE_CELLS
from bayesnb.estimators.network_base import StructuredNB, position
from bayesnb.model import Estimate


class NetworkNB(StructuredNB):
    """Any acyclic network of the categorical features below the class.

    p(c, x) = π_c Π_j p(x_j | x_parents(j), c), with a Dirichlet for each value of the parents and the class.

    Parameters
    ----------
    parents : dict {column: parent, list of parents, or None}, optional
        By name or index. Columns that are not mentioned have the class alone as their parent, so that without any
        this is naive Bayes. `parents_` of another classifier can be given.
    alpha : scalar or (F,) array
        Concentration of each level of a column given each value of its parents: Laplace smoothing of each table. Or a
        list of F arrays, or a (C, L) array, over the levels of parents and column together, the column's varying
        fastest. It is taken as given; an array with each column's divided by its parents' number of values is the prior
        of `TAN("evidence")`, which compares tables of different sizes.
    class_alpha, class_prior, estimate, categories, handle_unknown, missing_values, prior
        As for `CategoricalNB`.
    gaussian : "auto", "dtype", list of columns, or None
        Columns of numbers. "auto": the float columns of a DataFrame; of an array, whose columns share one type, the
        columns of floats with some value that is not whole, as whole numbers are codes. "dtype": all columns of floats
        and integers, as in `MixedNB`. Columns of a list are Gaussian, beside the structure.
    gaussian_prior : {"within", "pooled"}, NormalInverseGamma or EmpiricalNormal, default "within"
        As `prior` of `GaussianNB`.
    numbers : {"gaussian", "binned"}
        What becomes of the columns that "auto" or "dtype" finds. "gaussian": they are Gaussian, beside the structure.
        "binned": they take part in the structure with cells, `edges_`, whose ends are quantiles and do not depend on
        labels. Where a number lies within its cell depends on the class alone, by a density that is normal or binned,
        as in `MixedNB(numbers="auto")`: its log-likelihood is log p(x_j | c) + log p(q_j | c, parents) - log p(q_j | c)
        for the cell q_j. What is said of the model is given the cells and the kinds of densities. There is no evidence
        of such a model, nor `given="row"`.
    cells : int, default 6
        At most how many cells a number has in the structure, 2 to 256.
    tables : {"full", "context"}
        "full": a Dirichlet for each value of the parents together. "context": of the parents, in their order, only as
        many count as the rows speak for, differently from value to value: the exact average over all prunings of the
        tree of contexts, each the last one with probability ½ a priori; `alpha` is then the concentration of all levels
        of a column together, in every context. A missing parent is one more of its values, so that nothing is summed
        out, and what is said is given which cells are missing. See `context_table`.

    Attributes
    ----------
    parents_ : dict {name: name, tuple of names, or None}
    classes_, class_count_, class_log_prior_, prior_, posterior_, statistics_, log_evidence_
        As for `CategoricalNB`.
    categories_ : list
        Levels of each column, None for a Gaussian one.

    Notes
    -----
    A cell counts where column and parents are observed; of a class that has no such row `fit` warns. A row scores with
    its missing cells summed out, exactly: it is the density of what is observed, if cells are missing at random, and
    `predict_proba` is `query` of the class. What θ | data, row says of such rows, `predict_interval` and its like, are
    draws. The evidence is refused where cells are missing on arcs: the sum over those of all rows has no closed form.
    All that is said of parameters and predictions is given the structure: intervals hold for the true one, and are too
    narrow for one that was learned from the same rows, see `TAN`.

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

    _needs_arcs = False

    def __init__(
        self,
        parents: Mapping[Any, Any] | None = None,
        *,
        alpha: Any = ALPHA,
        class_alpha: Any = CLASS_ALPHA,
        class_prior: Any = None,
        estimate: Estimate = "predictive",
        categories: Any = "auto",
        handle_unknown: str = "ignore",
        missing_values: Any = None,
        gaussian: Any = "auto",
        gaussian_prior: Any = "within",
        numbers: str = "gaussian",
        cells: int = DEPENDENCE_CELLS,
        tables: str = "full",
        prior: Any = None,
    ) -> None:
        self.parents = parents
        self.alpha = alpha
        self.class_alpha = class_alpha
        self.class_prior = class_prior
        self.estimate = estimate
        self.categories = categories
        self.handle_unknown = handle_unknown
        self.missing_values = missing_values
        self.gaussian = gaussian
        self.gaussian_prior = gaussian_prior
        self.numbers = numbers
        self.cells = cells
        self.tables = tables
        self.prior = prior

    def _arcs(
        self, encoding: Encoding, columns: NodeColumns, rows: Any, label: np.ndarray, weight: np.ndarray
    ) -> tuple[Node, ...]:
        names = columns.base.names
        if self.parents is not None and not isinstance(self.parents, Mapping):
            raise ValueError(
                f"parents={shown(self.parents)} must be a dict {{column: parent, list of parents, or None}}."
            )
        found: dict[int, list[int]] = {}
        named: set[int] = set()
        for column, own in (self.parents or {}).items():
            (at,), parents = encoding.positions([column], "parents"), _listed(own)
            if at in named:
                name = dict(zip(columns.base.index, names, strict=True)).get(at, column)
                raise ValueError(f"parents names column {shown(name)} twice, by name and by index.")
            named.add(at)
            if not parents:
                continue
            child = position(encoding, columns, column, "parents")
            found[child] = [position(encoding, columns, p, "parents") for p in parents]
            if len(set(found[child])) < len(parents):
                raise ValueError(f"parents names a parent of column {shown(names[child])} twice: {shown(own)}.")
        return tuple((j, *found.get(j, ())) for j in range(len(names)))

    def _check_nodes(self, columns: NodeColumns) -> None:
        super()._check_nodes(columns)
        given = self._arcs(self.encoding_, columns, None, np.zeros(0), np.zeros(0))
        self._require_order(replace(columns, nodes=given))


class SPODE(StructuredNB):
    """Superparent one-dependence estimator: one column is a parent of all others.

    p(c, x) = π_c p(x_p | c) Π_j p(x_j | x_p, c).

    Parameters
    ----------
    parent : column name or index, default the first that is categorical and has an observed cell
    alpha, class_alpha, class_prior, estimate, categories, handle_unknown, missing_values, prior
        As for `NetworkNB`.
    gaussian, gaussian_prior, numbers, cells, tables
        As for `NetworkNB`.

    Attributes
    ----------
    parents_, categories_, classes_, class_count_, class_log_prior_, prior_, posterior_, statistics_, log_evidence_
        As for `NetworkNB`.

    References
    ----------
    Keogh & Pazzani, *Learning augmented Bayesian classifiers*, AISTATS 1999. Webb, Boughton & Wang, *Not so naive
    Bayes: aggregating one-dependence estimators*, Machine Learning 58 (2005).

    Examples
    --------
    Which fruit is ripe depends on colour and size together: neither alone tells.

    >>> from bayesnb import CategoricalNB, SPODE
    >>> X = [["red", "big"], ["red", "small"], ["green", "big"], ["green", "small"]] * 3
    >>> y = ["ripe", "raw", "raw", "ripe"] * 3
    >>> CategoricalNB().fit(X, y).score(X, y), SPODE(parent=0).fit(X, y).score(X, y)
    (0.5, 1.0)
    >>> SPODE(parent=0).fit(X, y).parents_
    {'0': None, '1': '0'}
    """

    def __init__(
        self,
        parent: Any = None,
        *,
        alpha: Any = ALPHA,
        class_alpha: Any = CLASS_ALPHA,
        class_prior: Any = None,
        estimate: Estimate = "predictive",
        categories: Any = "auto",
        handle_unknown: str = "ignore",
        missing_values: Any = None,
        gaussian: Any = "auto",
        gaussian_prior: Any = "within",
        numbers: str = "gaussian",
        cells: int = DEPENDENCE_CELLS,
        tables: str = "full",
        prior: Any = None,
    ) -> None:
        self.parent = parent
        self.alpha = alpha
        self.class_alpha = class_alpha
        self.class_prior = class_prior
        self.estimate = estimate
        self.categories = categories
        self.handle_unknown = handle_unknown
        self.missing_values = missing_values
        self.gaussian = gaussian
        self.gaussian_prior = gaussian_prior
        self.numbers = numbers
        self.cells = cells
        self.tables = tables
        self.prior = prior

    def _arcs(
        self, encoding: Encoding, columns: NodeColumns, rows: Any, label: np.ndarray, weight: np.ndarray
    ) -> tuple[Node, ...]:
        if self.parent is not None:
            return columns.superparent_nodes(position(encoding, columns, self.parent, "parent"))
        return columns.superparent_nodes(int(np.argmax(columns.base.sizes() > 0)) if columns.nodes else 0)

    def _check_nodes(self, columns: NodeColumns) -> None:
        super()._check_nodes(columns)
        self._arcs(self.encoding_, columns, None, np.zeros(0), np.zeros(0))


def _listed(own: Any) -> tuple[Any, ...]:
    if own is None:
        return ()
    return tuple(own) if isinstance(own, Iterable) and not isinstance(own, str) else (own,)
