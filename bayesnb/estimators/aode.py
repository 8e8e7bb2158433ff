"""Averaged one-dependence estimators (AODE)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from numbers import Number
from typing import Any, NoReturn, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesnb import kernels
from bayesnb._util.arguments import require_integer, shown
from bayesnb._util.terminal import progress
from bayesnb.encoding import Encoding, Node, NodeColumns, Rows
from bayesnb.encoding.table import is_labelled
from bayesnb.estimators import classifier_state
from bayesnb.estimators.defaults import CELLS
from bayesnb.estimators.network_base import StructuredNB, pair_counts
from bayesnb.estimators.networks import SPODE, NetworkNB
from bayesnb.families import LevelCounts
from bayesnb.fitted import scoring
from bayesnb.fitted.counting import Counted
from bayesnb.fitted.state import Fitted, NotOfferedError, ScoreModel, score_new_rows
from bayesnb.kernels import Output
from bayesnb.model import Estimate, NaiveBayes

NB = TypeVar("NB", bound=StructuredNB)
_LEVELS = "levels"
_ROUNDING = 1e-9
"""Relative rounding error of sums of fractional weights."""


@dataclass(eq=False, repr=False)
class AODE(StructuredNB):
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
        declared.
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
    gaussian_prior : {"within", "pooled"}, NormalInverseGamma or EmpiricalNormal, default "within"
        Prior of the mean and variance of the Gaussian columns. "within": empirical Bayes, with m the mean of the column
        over all rows, κ = 0.1, a = 1, and b the variance of the column within the classes. "pooled": the same, with b
        the variance over all rows. A NormalInverseGamma is used as given.
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
    cells: int = CELLS
    tables: str = "full"

    prior = None
    _has_margins = False

    @property
    def members_(self) -> list[SPODE]:
        """Fitted classifiers, one for each categorical column as the parent of all others."""
        return self._fit_members(self.fitted_.counted)[0]

    def pair_counts(self) -> tuple[NodeColumns, np.ndarray]:
        """Return the categorical columns, and the (C, L, L) weight of the rows of each class with both of two levels.

        Returns
        -------
        columns, counts : NodeColumns, (C, L, L) array
            Categorical columns with their levels, and the (C, L, L) array of weights over the L levels of all columns.

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
        by_position = not isinstance(self.alpha, Number) and not is_labelled(self.alpha)
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
        encoding, statistics = counted
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
        """Compute (n, C) log of the mean over the voting members of p(class, row); naive Bayes where none votes."""
        total, votes = np.full((n, len(self.encoding.classes)), -np.inf), np.zeros(n)
        for vote, scores in self._votes(rows, n, score, less):
            if scores is not None:
                total = scoring.map_rows((), n, lambda _, *block: kernels.log_add(*block), total, scores, vote)
                votes += vote
        if (none := votes == 0).any():
            total[none], votes[none] = self._score_by_naive_bayes(rows, score, none), 1
        return total - np.log(votes)[:, None]

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
        taken: tuple[Any, ...] = tuple(r.take(none) for r in rows)
        if (columns := naive.encoding.blocks[0].network) is not None:
            taken = columns.rows_of_base(taken[0].base).counting_rows(), *taken[1:]
        return score(naive, taken, none)
