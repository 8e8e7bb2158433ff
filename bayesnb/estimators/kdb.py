"""k-dependence Bayes: features with up to k parents, where held-out labels choose k."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from bayesnb import networks as structure
from bayesnb._util.arguments import bad_argument, require_integer, shown
from bayesnb._util.arrays import MOST_COUNTS
from bayesnb._util.terminal import progress
from bayesnb.encoding import Encoding, Node, NodeColumns
from bayesnb.estimators import classifier_state
from bayesnb.estimators.classifier_state import LabelledRows
from bayesnb.estimators.network_base import StructuredNB
from bayesnb.estimators.parts import ContextHalf
from bayesnb.model import Estimate
from bayesnb.weights.cross_fitting import N_SPLITS, NEGLIGIBLE, random_halves

_MOST_PARENTS = 4
_MOST_CELLS = 2**16
_FEW_CELLS, _CELLS_A_ROW = 2**10, 8
_CHUNK = 2**24


@dataclass(eq=False, repr=False)
class KDB(StructuredNB):
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
        row.
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
    gaussian_prior : {"within", "pooled"}, NormalInverseGamma or EmpiricalNormal, default "within"
        Prior of the mean and variance of the Gaussian columns. "within": empirical Bayes, with m the mean of the column
        over all rows, κ = 0.1, a = 1, and b the variance of the column within the classes. "pooled": the same, with b
        the variance over all rows. A NormalInverseGamma is used as given.
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
    estimate: Estimate = "predictive"
    numbers: str = "binned"
    prior: object = None

    _learned = "the network"
    tables = "context"

    @property
    def k_(self) -> int:
        """Largest number of parents of a column in the network."""
        return 0 if self._network is None else max((len(node) - 1 for node in self._network.nodes), default=0)

    @property
    def order_(self) -> tuple[str, ...]:
        """Names of the columns of the network, the most informative about the class first."""
        return () if self._network is None else tuple(self._network.names)

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
        if not hasattr(pairs, "pair_counts"):
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
        """Return the nodes that pairs of levels determine, of `max_features` columns unless it is "auto"."""
        nodes = super()._learn_arcs(batch, network)
        return nodes if self._undecided()[1] else nodes[: self.max_features]

    def _choose_structure(self, batch: LabelledRows) -> LabelledRows:
        """Return the batch with the sub-network of least held-out log loss, if k or max_features is "auto"."""
        any_k, any_number = self._undecided()
        if not (any_k or any_number):
            return batch
        nodes, label, weight = batch.encoding.blocks[0].network.nodes, batch.label, batch.weight
        most = max((len(node) - 1 for node in nodes), default=0)
        full, limits = self._with_parents(most if any_k else self.k), range(0 if any_k else most, most + 1)
        losses = np.zeros((len(limits), len(nodes)))
        size = max(1, _CHUNK // (len(batch.encoding.classes) * len(nodes)))
        sides = [s for half in random_halves(label, N_SPLITS, seed=0) for s in (half, ~half)]
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
