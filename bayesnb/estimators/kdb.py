"""k-dependence: each feature given up to k others, as many as predict the labels of other rows best."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from bayesnb import scoring
from bayesnb._util.arguments import require_integer, shown
from bayesnb._util.level_pair_counts import MOST_COUNTS
from bayesnb._util.progress import progress
from bayesnb.encoding import Encoding, Node, NodeColumns, Rows, Table, declare_levels
from bayesnb.estimators import drafts
from bayesnb.estimators.defaults import ALPHA, CLASS_ALPHA, DEPENDENCE_CELLS
from bayesnb.estimators.network_base import StructuredNB
from bayesnb.fitted import Fitted
from bayesnb.model import Estimate, NaiveBayes
from bayesnb.networks import learning as structure
from bayesnb.prediction.halves import N_SPLITS, NEGLIGIBLE, random_halves

_MOST_PARENTS = 4
_MOST_CELLS = 2**16
_FEW_CELLS, _CELLS_A_ROW = 2**10, 8
_CHUNK = 2**24


class KDB(StructuredNB):
    """k-dependence Bayes: each column may have up to k others as parents, and the rows say which and how many.

    Columns are put in the order of what they say of the class, I(x_j; c), and have as parents those up to k before
    them that say most of them given the class, I(x_j; x_p | c). How many parents, k, and how many columns, the first n
    of them, is what predicts the labels best of rows that were not counted.

    Parameters
    ----------
    k : "auto" or int, default "auto"
        Most parents of a column. "auto": of 0 to 4 that with the least loss of the labels of one half of the rows, by
        networks that were found in the other half, in three random splits; within a `WeightedNB` the fewest whose
        expected loss is within a standard error of the least. A parent is passed over with which a table would have
        more than 65,536 cells a class, or more than 1,024 and eight a row.
    max_features : "auto", int or None, default "auto"
        Number of columns that the network has. "auto": as `k`, within a `WeightedNB` all of them. None: all.
    alpha : scalar or (F,) array
        As for `NetworkNB`.
    class_alpha, class_prior, estimate, categories, handle_unknown, missing_values
        As for `NetworkNB`.
    gaussian, gaussian_prior, numbers, cells
        As for `NetworkNB`; by default numbers take part, with cells and densities.

    Attributes
    ----------
    k_ : int
        Most parents that a column may have.
    order_ : tuple of str
        Names of the columns of the network, what says most of the class first.
    parents_, categories_, classes_, class_count_, class_log_prior_, prior_, posterior_, statistics_, log_evidence_
        As for `NetworkNB`. Columns that are left out have no parents, and no part in the evidence either.

    Notes
    -----
    Counts of all pairs of levels give the order and the parents, one more pass the tables; those of fewer parents are
    sums of theirs. What is said of parameters and predictions is given the network, as for `TAN`. Gaussian columns
    are beside the network, and are never left out.

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

    _learned = "the network"
    tables = "context"

    def __init__(
        self,
        k: Any = "auto",
        max_features: Any = "auto",
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
        numbers: str = "binned",
        cells: int = DEPENDENCE_CELLS,
        prior: Any = None,
    ) -> None:
        self.k = k
        self.max_features = max_features
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
        self.prior = prior

    @property
    def k_(self) -> int:
        """Most parents of a column."""
        self._require_fitted("k_")
        return 0 if self._nodes is None else max((len(node) - 1 for node in self._nodes.nodes), default=0)

    @property
    def order_(self) -> tuple[str, ...]:
        """Names of the columns of the network, what says most of the class first."""
        self._require_fitted("order_")
        return () if self._nodes is None else tuple(self._nodes.names)

    @staticmethod
    def parents_from(pairs: Any, k: int = 2) -> dict[str, tuple[str, ...]]:
        """The parents that a `KDB` would give the columns, from counts of all pairs of them.

        `AODE` and `TreeAveragedNB` count pairs in one pass over any stream, or with dask; what this returns is for
        another pass, as `parents` of `NetworkNB(parents, tables="context")`.

        Parameters
        ----------
        pairs : fitted AODE or TreeAveragedNB
        k : int, default 2
            Most parents of a column.

        Returns
        -------
        dict {name: tuple of names}
            The columns, what says most of the class first, with their parents.

        Raises
        ------
        TypeError
            If `pairs` is another classifier.
        ValueError
            If `k` is no integer of at least 0.

        Examples
        --------
        >>> import numpy as np
        >>> from bayesnb import KDB, TreeAveragedNB
        >>> X = np.random.default_rng(0).integers(0, 2, (200, 3))
        >>> KDB.parents_from(TreeAveragedNB().fit(X, X[:, 0] ^ X[:, 1]), k=1)["1"]
        ('0',)
        """
        if not hasattr(pairs, "pair_counts"):
            raise TypeError(
                f"parents_from takes a fitted AODE or TreeAveragedNB, which count pairs; got {shown(pairs)}."
            )
        require_integer("k", k, least=0)
        columns, counts = pairs.pair_counts()
        names = columns.base.names
        found = _network(counts, columns.base.sizes(), k) if columns.nodes else ()
        return {names[child]: tuple(names[p] for p in parents) for child, *parents in found}

    def _undecided(self) -> tuple[bool, bool]:
        """Whether the number of parents, and that of columns, is to be chosen; refuses what is no number."""
        chosen = []
        for name, value, least in (("k", self.k, 0), ("max_features", self.max_features, 1)):
            chosen.append(isinstance(value, str) and value == "auto")
            if not chosen[-1] and (value is not None or name == "k"):
                require_integer(name, value, least=least)
        return chosen[0], chosen[1]

    def _arcs(
        self, encoding: Encoding, columns: NodeColumns, rows: Any, label: np.ndarray, weight: np.ndarray
    ) -> tuple[Node, ...]:
        any_k, any_number = self._undecided()
        if not columns.nodes:
            return ()
        n_classes, sizes = len(encoding.classes), columns.base.sizes()
        counts = structure.count_level_pairs(columns.base, rows.base, label, weight, n_classes)
        nodes = _network(counts, sizes, _MOST_PARENTS if any_k else self.k)
        return nodes if any_number else nodes[: self.max_features]

    def _chosen_structure(
        self, encoding: Encoding, table: Table, rows: tuple[Rows, ...], label: np.ndarray, weight: np.ndarray
    ) -> tuple[Encoding, tuple[Rows, ...]]:
        any_k, any_number = self._undecided()
        if not (any_k or any_number):
            return encoding, rows
        columns: Any
        columns, *others = encoding.blocks
        most = max((len(node) - 1 for node in columns.nodes), default=0)
        full = drafts.blank(self)
        full.k, full.max_features = most if any_k else self.k, None if any_number else self.max_features
        fresh = declare_levels([block.learn(block.open(table)) for block in self._columns(table)], [columns])
        losses = np.zeros(())
        sides = [s for half in random_halves(label, N_SPLITS, seed=0) for s in (half, ~half)]
        with progress("halves of networks", len(sides)) as tick, warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the fit to all rows tells
            for side in sides:
                part = copy.copy(full)
                part.fitted_ = part._state(
                    drafts.count_table(part, encoding.classes, table, label, weight * side, fresh)
                )
                of_limits = range(most + 1) if any_k else [most]
                losses = losses + _losses(part.fitted_, of_limits, table.take(~side), label[~side], weight[~side])
                tick()
        if not any_number:
            losses = losses[:, -1:]
        least = losses.min(axis=1)
        best = int(np.argmax(least <= least.min() + NEGLIGIBLE * N_SPLITS * weight.sum()))
        n = int(np.argmin(losses[best]))
        nodes = columns.nodes[: n + 1] if any_number else columns.nodes
        columns = replace(columns, nodes=tuple(node[: 1 + best] for node in nodes) if any_k else nodes)
        cells: Any = replace(rows[0], nodes=columns.nodes, capacity=columns.capacity)  # type: ignore[type-var]
        return replace(encoding, blocks=(columns, *others)), (cells, *rows[1:])

    def _settled(self) -> Self:
        copied = drafts.blank(self)
        if self.k == "auto":
            copied.k, copied.max_features = self.k_, None if self.max_features == "auto" else self.max_features
        return copied

    def _candidates(self) -> list[Self]:
        any_k, any_number = self._undecided()
        found = []
        for k in range(1 + _MOST_PARENTS) if any_k else [self.k]:
            candidate = drafts.blank(self)
            candidate.k, candidate.max_features = k, None if any_number else self.max_features
            found.append(candidate)
        return found

    def _check_nodes(self, columns: NodeColumns) -> None:
        self._undecided()
        if len({child for child, *_ in columns.nodes}) < len(columns.nodes):
            raise ValueError("its network has a column twice.")
        before: set[int] = set()
        for child, *parents in columns.nodes:
            if not before.issuperset(parents):
                raise ValueError("its network has a parent behind its child.")
            before.add(child)


def _network(counts: np.ndarray, sizes: np.ndarray, k: int) -> tuple[Node, ...]:
    """The nodes of up to k parents, from (C, L, L) counts of pairs of levels; with a missing parent for a value."""
    n_classes = len(counts)
    together = structure.observed_pairs(counts, sizes)
    # What is there by chance alone, half the degrees of freedom, is no reason for an arc.
    free = np.maximum(sizes - 1, 0)
    relevance = np.diag(together) * structure.class_information(counts, sizes) - free * (n_classes - 1) / 2
    dependence = together * structure.mutual_information(counts, sizes) - n_classes * np.outer(free, free) / 2
    n_rows = float(np.diag(together).max(initial=0.0))
    most = min(_MOST_CELLS, MOST_COUNTS // (n_classes * len(sizes)), max(_FEW_CELLS, int(_CELLS_A_ROW * n_rows)))
    return structure.k_dependence(relevance, dependence, sizes + 1, k, most)


def _losses(fitted: Fitted, most: Sequence[int], table: Table, label: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Compute (K, F) losses of the labels of rows that were not counted, in nats, of parts of a network.

    `most` (K,) are numbers of parents; of columns they are 1, 2, … F. The counts of all parents serve them all.
    """
    encoding = fitted.encoding
    nodes = list(encoding.blocks[0].index)
    of_term = np.concatenate([np.asarray(columns.index) for columns in encoding.blocks])
    sizes = [len(columns.index) for columns in encoding.blocks]
    total = np.zeros((len(most), len(nodes)))
    size = max(1, _CHUNK // (len(encoding.classes) * encoding.n_terms))
    limited = [replace(fitted, empirical_prior=_limited(fitted.empirical_prior, k)).posterior for k in most]
    for start in range(0, len(label), size):
        part = np.zeros(len(label), bool)
        part[start : start + size] = True
        rows, own = encoding.rows(table.take(part), lambda columns, unknown: None), label[part, None]
        for loss, model in zip(total, limited, strict=True):
            weights = np.ones(len(of_term)) if model.weights is None else model.weights.term_weights(sizes)
            plain = replace(model, weights=None)
            terms = scoring.terms_of_rows(encoding, plain, rows, len(own), "predictive") * weights
            each = np.stack([terms[..., of_term == j].sum(axis=-1) for j in nodes], axis=-1)
            beside = scoring.log_class(plain, "predictive") + terms[..., ~np.isin(of_term, nodes)].sum(axis=-1)
            joint = beside[..., None] + np.cumsum(each, axis=-1)
            of_label = np.take_along_axis(joint, own[..., None], axis=1)[:, 0]
            # A label that is impossible by its class prior is so in all networks, and does not tell them apart.
            possible = np.isfinite(np.take_along_axis(beside, own, axis=1)[:, 0])
            loss += weight[part][possible] @ (np.logaddexp.reduce(joint, axis=1) - of_label)[possible]
    return np.where(np.isnan(total), np.inf, total)


def _limited(prior: NaiveBayes, most: int) -> NaiveBayes:
    """Return the prior under which no feature of the network has more than `most` parents."""
    tree, *others = prior.blocks
    return replace(prior, blocks=(tree.limit(most), *others))


__all__ = ["KDB"]
