"""Averaged one-dependence estimators."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from numbers import Number
from typing import Any, NoReturn

import numpy as np

from bayesnb import scoring
from bayesnb._util.arguments import require_integer, shown
from bayesnb._util.progress import progress
from bayesnb.counting import Counted
from bayesnb.encoding import Encoding, Node, NodeColumns, Rows, Table
from bayesnb.estimators.defaults import ALPHA, CELLS, CLASS_ALPHA
from bayesnb.estimators.network_base import StructuredNB
from bayesnb.estimators.networks import SPODE, NetworkNB
from bayesnb.estimators.pair_counted import PairCounted
from bayesnb.families import LevelCounts
from bayesnb.fitted import Fitted, Members, NotOfferedError, Request
from bayesnb.model import Estimate, NaiveBayes

_LEVELS = "levels"
_ROUNDING = 1e-9  # of sums of fractional weights

Joint = Callable[[Any, tuple[Rows, ...], np.ndarray], np.ndarray]


class AODE(PairCounted):
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
        columns = self._nodes
        return [] if columns is None else [self._member(columns, p) for p in range(len(columns.base.index))]

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

    def _average(
        self, table: Table, encoded: tuple[Rows, ...], joint: Joint, less: np.ndarray | float = 0.0
    ) -> np.ndarray:
        """(N, C) log of the mean over the members of p(class, row); arguments as for `_votes`."""
        total, votes = np.full((table.n_rows, len(self.encoding_.classes)), -np.inf), np.zeros(table.n_rows)
        for vote, scores in self._votes(table, encoded, joint, less):
            if vote.any():
                total = scoring.log_add(total, scores, vote)
                votes += vote
        none = votes == 0
        if none.any():
            total[none], votes[none] = self._without_members(table, joint, none), 1
        return total - np.log(votes)[:, None]

    def _each(
        self, table: Table, encoded: tuple[Rows, ...], joint: Joint, less: np.ndarray | float = 0.0
    ) -> np.ndarray:
        """(N, C, M) log p(class, row) of each member; of one that does not vote the mean of those that do."""
        if self._nodes is None:
            return self._without_members(table, joint, np.ones(table.n_rows, bool))[..., None]
        found = list(self._votes(table, encoded, joint, less))
        scores, votes = (np.stack(parts, axis=-1) for parts in ([s for _, s in found], [v for v, _ in found]))
        none = np.asarray(~votes.any(axis=1))
        if none.any():
            scores[none], votes[none] = self._without_members(table, joint, none)[..., None], True
        votes = votes[:, None]
        mean = np.where(votes, scores, 0.0).sum(axis=2, keepdims=True) / votes.sum(axis=2, keepdims=True)
        return np.where(votes, scores, mean)

    def _without_members(self, table: Table, joint: Joint, none: np.ndarray) -> np.ndarray:
        """log p(class, row) of naive Bayes, of the rows in which no column may be a parent."""
        naive = self._naive()
        rows = naive.encoding_.rows(table.take(none), lambda columns, unknown: None)
        return joint(naive, rows, none)

    def _votes(
        self, table: Table, encoded: tuple[Rows, ...], joint: Joint, less: np.ndarray | float
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Of each member which rows it votes on (N,), and log p(class, row) (N, C) if it votes on any.

        Parameters
        ----------
        table, encoded
            The rows, as they are and under the encoding.
        joint : function of a member, encoded rows, and which rows of the table those are (N,)
            Of log p(class, row) of that member.
        less : (N,) array
            What to take off the counts of a row's values before they are held against `min_count`.
        """
        everyone = np.ones(table.n_rows, bool)
        columns = self._nodes
        if columns is not None:
            cells: Any
            cells, *rest = encoded
            base = cells.base.coded(table.n_rows)
            members = self.members_
            with progress("AODE", len(members), "members") as tick:
                for p, member in enumerate(members):
                    own: Any = member.encoding_.blocks[0]
                    # A missing cell has code -1, the last entry.
                    seen = np.append(self._counts_of(columns, p).sum(axis=0), -np.inf)[base.factors.raw[:, p]]
                    vote = seen - less >= self.min_count - _ROUNDING * np.maximum(seen, 0.0)
                    rows = own.coded(base), *rest
                    nothing = np.zeros((table.n_rows, len(self.encoding_.classes)))
                    yield vote, joint(member, rows, everyone) if vote.any() else nothing
                    tick()

    def _score(self, fitted: Fitted, X: Any, request: Request) -> np.ndarray:
        if request.draws is not None:
            raise NotImplementedError(f"draws: {self.no_posterior}")
        joint = self._over_members(self._average, fitted, X, request.estimate, request.class_prior)
        return scoring.read_scores(joint, request.output)

    def _over_members(
        self, of_members: Callable[..., np.ndarray], fitted: Fitted, X: Any, estimate: Estimate | None, class_prior: Any
    ) -> np.ndarray:
        """`_average` or `_each` of the rows of X."""

        def joint(member: StructuredNB, rows: tuple[Rows, ...], which: np.ndarray) -> np.ndarray:
            return member._read(member.fitted_, rows, int(which.sum()), Request(scoring.joint, estimate, class_prior))

        table = fitted.table(X)
        return of_members(table, () if self._nodes is None else fitted.rows(table), joint)

    @property
    def _members(self) -> Members:  # type: ignore[override]
        names = ("naive Bayes",) if self._nodes is None else tuple(self._nodes.base.names)
        return Members(names, self._average, self._each, partial(self._over_members, self._each))

    def _arcs(
        self, encoding: Encoding, columns: NodeColumns, rows: Any, label: np.ndarray, weight: np.ndarray
    ) -> tuple[Node, ...]:
        """Each column given each other one, and alone: what the members need."""
        return tuple(node for p in range(len(columns.base.index)) for node in columns.one_parent(p))

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

    def _counts_of(self, columns: NodeColumns, p: int) -> np.ndarray:
        """(C, levels) of a column alone."""
        at = columns.start()[p * (len(columns.base.index) + 1)]
        return self.statistics_.blocks[0].count[:, at : at + columns.base.sizes()[p]]

    def _member(self, columns: NodeColumns, p: int) -> SPODE:
        n, bounds = len(columns.base.index), np.append(columns.start(), columns.sizes().sum())
        member = SPODE(columns.base.names[p], **self._shared(int(columns.base.sizes()[p])))
        own = slice(bounds[p * n], bounds[(p + 1) * n])
        return self._fitted(member, replace(columns, nodes=columns.nodes[p * n : (p + 1) * n]), own)

    def _naive(self) -> NetworkNB:
        """What is left where no column may be a parent."""
        naive, columns = NetworkNB(**self._shared(1)), self._nodes
        if columns is None:
            naive.encoding_, naive.statistics_ = self.encoding_, self.statistics_
            return naive
        n, bounds = len(columns.base.index), np.append(columns.start(), columns.sizes().sum())
        alone = [np.arange(bounds[i], bounds[i + 1]) for i in range(0, n * n, n + 1)]
        return self._fitted(naive, self._of_tables.without_parents(columns.base), np.concatenate(alone))

    def _shared(self, n_levels: int) -> dict[str, Any]:
        """Hyperparameters of a member whose parent has so many levels."""
        own = {name: value for name, value in self.get_params(deep=False).items() if name != "min_count"}
        return own | ({"class_alpha": float(n_levels)} if isinstance(self.class_alpha, str) else {})

    def _fitted(self, member: Any, columns: NodeColumns, own: Any) -> Any:
        """A member with its part of the statistics."""
        first, *rest = self.statistics_.blocks
        member.encoding_ = replace(self.encoding_, blocks=(columns, *self.encoding_.blocks[1:]))
        member.statistics_ = replace(self.statistics_, blocks=(LevelCounts(first.count[:, own]), *rest))
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(member, name, getattr(self, name))
        return member
