"""Averaged one-dependence estimators."""

from __future__ import annotations

import copy
from dataclasses import replace
from numbers import Number
from typing import Any, NoReturn

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesnb._util.arguments import require_integer, shown
from bayesnb.counting import Counted
from bayesnb.encoding import CellColumns, Encoding, Node, NodeColumns, Rows
from bayesnb.estimators import drafts
from bayesnb.estimators.binned import most_probable_cuts
from bayesnb.estimators.defaults import ALPHA, CELLS, CLASS_ALPHA
from bayesnb.estimators.network_base import StructuredNB
from bayesnb.estimators.networks import SPODE, NetworkNB
from bayesnb.estimators.pair_counts import pair_counts
from bayesnb.families import LevelCounts
from bayesnb.fitted import Average, NotOfferedError
from bayesnb.model import Estimate, NaiveBayes

_LEVELS = "levels"


class AODE(StructuredNB):
    """Averaged one-dependence estimators: each column in turn is the parent of all others, and the members vote.

    P(c, x) ∝ Σ_p p_p(c, x), over the members p (a `SPODE` each) whose parent's value occurred in `min_count` rows;
    where there is none, naive Bayes.

    Parameters
    ----------
    min_count : int, default 1
        Weight of the rows that must have had a row's value of a column for that column to be a parent.
    alpha : scalar or (F,) array
        As for `NetworkNB`: of each level of a column given each value of a member's parent, as in Weka.
    class_alpha : scalar, (C,) array or "levels"
        Concentration of the class probabilities of each member. "levels": the number of levels of its parent, so that
        P(class, x_p) = (n + 1)/(N + C · levels) at alpha = 1, as in Weka.
    class_prior, estimate, categories, handle_unknown, missing_values
        As for `NetworkNB`.
    gaussian, gaussian_prior, numbers, cells, tables
        As for `NetworkNB`.

    Attributes
    ----------
    members_ : list of SPODE
        One for each categorical column as the parent: fitted classifiers, with posteriors, tables and draws.
    categories_, classes_, class_count_, class_log_prior_, statistics_, n_parameters_
        As for `NetworkNB`; the statistics are those of all pairs of columns, so that members share them, and what they
        share is counted once. `class_log_prior_` takes "levels" for 1.

    Notes
    -----
    Weights are equal. Weights by evidence would fall to one member as rows come (the joint evidences differ by
    hundreds of nats), and the average would be lost. The average has no posterior of its own: draws, intervals and
    evidence are those of members. `loo` has labels only. A row leaves out the members whose parent is missing there:
    that is an omission, not a sum over what the cell may be, and which members vote differs from row to row.

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

    prior = None  # of each member
    _has_margins = False

    def __init__(
        self,
        min_count: int = 1,
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
        cells: int = CELLS,
        tables: str = "full",
    ) -> None:
        self.min_count = min_count
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

    @property
    def members_(self) -> list[SPODE]:
        """A fitted classifier for each categorical column as the parent of all others."""
        self._require_fitted("members_")
        n = 0 if self._nodes is None else len(self._nodes.base.index)
        return [self._member(self.fitted_.counted, p) for p in range(n)]

    def pair_counts(self) -> tuple[NodeColumns, np.ndarray]:
        """Return the categorical columns, and (C, L, L) weight of the rows of each class with both of two levels.

        Examples
        --------
        >>> from bayesnb import AODE
        >>> X = [["sun", "dry"], ["sun", "wet"], ["rain", "wet"]]
        >>> columns, counts = AODE().fit(X, ["out", "out", "out"]).pair_counts()
        >>> [levels.values for levels in columns.base.levels]
        [('rain', 'sun'), ('dry', 'wet')]
        >>> counts[0]  # rows and columns are these levels
        array([[1., 0., 0., 1.],
               [0., 2., 1., 1.],
               [0., 1., 1., 0.],
               [1., 1., 0., 2.]])
        """
        check_is_fitted(self)
        return pair_counts(self.fitted_)

    @property
    def parents_(self) -> NoReturn:
        self._refuse("parents_")

    @property
    def prior_(self) -> NoReturn:
        self._refuse("prior_")

    @property
    def posterior_(self) -> NoReturn:
        self._refuse("posterior_")

    # -- shared machinery ------------------------------------------------------------------------

    def _refuse(self, name: str) -> NoReturn:
        self._require_fitted(name)
        raise NotOfferedError(f"{name}: {self.no_posterior}")

    @property
    def no_posterior(self) -> str | None:
        return (
            "AODE averages several classifiers, each of which has a posterior of its own, and the average has none; "
            "ask its members_, or use TAN or SPODE."
        )

    def _cuts(
        self, encoding: Encoding, numbers: CellColumns, rows: Rows, label: np.ndarray, weight: np.ndarray
    ) -> list[np.ndarray]:
        return most_probable_cuts(encoding.classes, numbers, rows, label, weight)

    def _average(self, counted: Counted) -> Average:
        columns = next((c.network for c in counted.encoding.blocks if c.network is not None), None)
        n = 0 if columns is None else len(columns.base.index)
        return Average(
            names=("naive Bayes",) if columns is None else tuple(columns.base.names),
            members=tuple(self._member(counted, p).fitted_ for p in range(n)),
            occurrences=tuple(np.append(_counts_of(counted, p).sum(axis=0), -np.inf) for p in range(n)),
            min_count=self.min_count,
            without_members=self._naive(counted).fitted_,
        )

    def _arcs(
        self, encoding: Encoding, columns: NodeColumns, rows: Any, label: np.ndarray, weight: np.ndarray
    ) -> tuple[Node, ...]:
        """Each column given each other one, and alone: what the members need."""
        return tuple(node for p in range(len(columns.base.index)) for node in columns.superparent_nodes(p))

    def _warn_of_counts(self) -> None:
        """Nothing: other members know of a class what one of them does not."""

    def _check_nodes(self, columns: NodeColumns) -> None:
        nothing = np.zeros(0)
        if columns.nodes != self._arcs(self.encoding_, columns, None, nothing, nothing):
            raise ValueError("its network is not that of all pairs of columns.")

    def _empirical_prior(self, counted: Counted) -> NaiveBayes:
        require_integer("min_count", self.min_count, least=0)
        n_features = counted.encoding.blocks[0].n_features
        if not isinstance(self.alpha, Number) and np.shape(self.alpha) not in ((), (n_features,)):
            raise ValueError(
                f"alpha={shown(self.alpha)} must be a number, or one a feature: the levels of parent and feature "
                "together are others for each member."
            )
        if not isinstance(self.class_alpha, str):
            return super()._empirical_prior(counted)
        if self.class_alpha != _LEVELS:
            raise ValueError(f"class_alpha={shown(self.class_alpha)} is unknown; use a concentration, or 'levels'.")
        own = copy.copy(self)
        own.class_alpha = 1.0
        return super(AODE, own)._empirical_prior(counted)

    def _member(self, counted: Counted, p: int) -> SPODE:
        """Return the member whose parent is column p of the network."""
        columns: Any = counted.encoding.blocks[0].network
        n, bounds = len(columns.base.index), np.append(columns.start(), columns.sizes().sum())
        member = SPODE(columns.base.names[p], **self._shared(int(columns.base.sizes()[p])))
        nodes = replace(columns, nodes=columns.nodes[p * n : (p + 1) * n])
        return self._fitted(member, counted, nodes, slice(bounds[p * n], bounds[(p + 1) * n]))

    def _naive(self, counted: Counted) -> NetworkNB:
        """Return what is left where no column may be a parent."""
        naive, columns = NetworkNB(**self._shared(1)), counted.encoding.blocks[0].network
        if columns is None:
            return self._with_features(naive, counted)
        n, bounds = len(columns.base.index), np.append(columns.start(), columns.sizes().sum())
        alone = [np.arange(bounds[i], bounds[i + 1]) for i in range(0, n * n, n + 1)]
        return self._fitted(naive, counted, self._of_tables.from_base(columns.base), np.concatenate(alone))

    def _shared(self, n_levels: int) -> dict[str, Any]:
        """Hyperparameters of a member whose parent has so many levels."""
        own = {name: value for name, value in self.get_params(deep=False).items() if name != "min_count"}
        return own | ({"class_alpha": float(n_levels)} if isinstance(self.class_alpha, str) else {})

    def _fitted(self, member: Any, counted: Counted, columns: NodeColumns, levels: Any) -> Any:
        """Return a member with its part of the counts, those of these `levels` of the pairs."""
        encoding, (pairs, *rest) = counted.encoding, counted.statistics.blocks
        blocks = LevelCounts(pairs.count[:, levels]), *rest
        statistics = replace(counted.statistics, blocks=blocks)
        return self._with_features(
            member, Counted(replace(encoding, blocks=(columns, *encoding.blocks[1:])), statistics)
        )

    def _with_features(self, member: Any, counted: Counted) -> Any:
        drafts.copy_features(member, self)
        member.fitted_ = member._state(counted)
        return member


def _counts_of(counted: Counted, p: int) -> np.ndarray:
    """Return (C, L) counts of the levels of a column alone."""
    columns: Any = counted.encoding.blocks[0].network
    at = columns.start()[p * (len(columns.base.index) + 1)]
    return counted.statistics.blocks[0].count[:, at : at + columns.base.sizes()[p]]
