"""What every classifier shares: scikit-learn's conventions around one posterior."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, Self

import jax
import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesnb import counting
from bayesnb._util.arguments import require_number, shown
from bayesnb.counting import Counted
from bayesnb.encoding import (
    Columns,
    Encoding,
    LevelColumns,
    Levels,
    Rows,
    Table,
    Unknown,
    check_labels,
    check_weights,
    describe_unknown,
    priors,
    report_unknown,
)
from bayesnb.estimators import drafts
from bayesnb.estimators.predictions import FittedClassifier
from bayesnb.fitted import Average, Fitted, require_estimate
from bayesnb.model import NaiveBayes


class NaiveBayesClassifier(FittedClassifier):
    """Base of the classifiers; `fit` counts, all else is a function of the posterior.

    A subclass says which columns it reads, `_columns`, and has its hyperparameters in `__init__`.
    """

    alpha: Any
    class_alpha: Any
    class_prior: Any
    prior: Any
    _counts_margins = False  # whether columns that have parents are counted by themselves, too

    # -- fitting ---------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Count the rows of X.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F)
        y : array-like of shape (N,)
            Labels of any hashable type.
        sample_weight : array-like of shape (N,), optional
            Replication counts: a row of weight 2 is that row twice. Rows of weight zero leave their
            class and nothing else.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data or a hyperparameter cannot be used; the estimator is left as it was.

        Examples
        --------
        >>> from bayesnb import CategoricalNB
        >>> nb = CategoricalNB().fit([["sun"], ["rain"]], ["out", "in"], sample_weight=[2, 1])
        >>> nb.classes_, nb.class_count_
        (array(['in', 'out'], dtype='<U3'), array([1., 2.]))
        """
        draft = drafts.fit(drafts.blank(self), X, y, sample_weight)
        drafts.take_over(self, draft)
        self._warn_of_counts()
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Count further rows; any chunking of the data gives the posterior of the whole.

        Parameters
        ----------
        classes : array-like, optional
            All labels that may come; required at the first call. Later calls may declare more.
        X, y, sample_weight
            As for `fit`.

        Raises
        ------
        ValueError
            As `fit`; if `classes` is missing at the first call; if a label was not declared.
        RuntimeError
            If another thread has changed the estimator since the call began; these rows were not counted.

        Examples
        --------
        >>> from bayesnb import CategoricalNB
        >>> nb = CategoricalNB().partial_fit([["sun"]], ["out"], classes=["in", "out"])
        >>> nb.partial_fit([["rain"], ["sun"]], ["in", "out"]).class_count_
        array([1., 2.])
        """
        first = not self.__sklearn_is_fitted__()
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        draft = drafts.blank(self) if first else copy.copy(self)
        known = Levels(()) if first else draft.encoding_.classes
        if classes is not None:
            known = known.union(check_labels(classes, None, type(self).__name__, "classes")[0])
        return drafts.add(self, draft, X, y, sample_weight, known, grow=False)

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Remove rows that were counted: the inverse of `partial_fit`.

        Levels and classes stay. A row that was never counted is refused if a count would become
        negative; otherwise it cannot be told from a counted one, and is removed too.

        Raises
        ------
        ValueError
            If a count would become negative, or a value was never counted; nothing is changed.
        RuntimeError
            As `partial_fit`.

        Examples
        --------
        >>> from bayesnb import CategoricalNB
        >>> nb = CategoricalNB().fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
        >>> nb.forget([["sun"]], ["out"]).category_count_  # in and out; rain and sun
        [array([[1., 0.],
               [0., 1.]])]
        """
        check_is_fitted(self)
        draft = copy.copy(self)
        table, encoding = draft._table(X), draft.encoding_
        label = encoding.label_index(y, table.n_rows, type(self).__name__)
        weight = check_weights(sample_weight, table.n_rows)
        keep = weight > 0
        table, label, weight = table.take(keep), label[keep], weight[keep]

        def policy(columns: LevelColumns, unknown: list[Unknown]) -> None:
            grown = [u for u in unknown if not columns.declared[u.feature]]
            if grown:
                found = describe_unknown(columns, grown)
                raise ValueError(f"forget: {found}; rows with them were never counted. Nothing was changed.")
            report_unknown(columns, unknown)

        counted = Counted(encoding, counting.count_rows(encoding, encoding.rows(table, policy), label, weight))
        return drafts.commit(self, draft, counting.remove(draft.fitted_.counted, counted), on_top=True)

    def decay(self, factor: float) -> Self:
        """Let every counted row weigh `factor` times as much, 0 < factor <= 1: old data fade.

        Examples
        --------
        >>> from bayesnb import CategoricalNB
        >>> nb = CategoricalNB().fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
        >>> nb.decay(0.5).class_count_
        array([0.5, 1. ])
        """
        check_is_fitted(self)
        require_number("factor", factor, "a number in (0, 1]", lambda value: 0 < value <= 1)
        draft = copy.copy(self)
        return drafts.commit(self, draft, Counted(draft.encoding_, draft.statistics_.scale(factor)), on_top=True)

    # -- the posterior ---------------------------------------------------------------------------

    def _state(self, counted: Counted) -> Fitted:
        """Return what is fitted if rows have left these counts."""
        unfitted = drafts.without_state(self)
        return Fitted(
            name=type(self).__name__,
            encoding=counted.encoding,
            statistics=counted.statistics,
            empirical_prior=self._empirical_prior(counted),
            prior_arguments=tuple(map(self._prior_argument, counted.encoding.blocks)),
            estimate=self.estimate,
            chosen=self._made_choices(counted.encoding),
            no_posterior=self.no_posterior,
            no_evidence_as_such=None,
            table=unfitted._table,
            prior_alone=unfitted._prior_alone,
            average_of=unfitted._average,
        )

    def _average(self, counted: Counted) -> Average | None:
        """Return the models whose probabilities a classifier averages."""
        return None

    @property
    def no_posterior(self) -> str | None:
        """Why there are no draws, intervals, evidence or leave-one-out scores, where there are none."""
        if "unlabeled_weight_" in vars(self):
            return "rows without a label were counted in shares by EM, and such counts give no exact posterior."
        return None

    #: Why the rows cannot be counted with responsibilities, as EM does, where that is so.
    no_em: str | None = None

    #: Why counts of the levels of each feature, and moments of numbers, do not suffice, where that is so.
    no_counts: str | None = None

    @property
    def unweighted(self) -> NaiveBayesClassifier:
        """The classifier whose terms these are, with the same counts: itself, where they have no weights."""
        return self

    # -- for subclasses --------------------------------------------------------------------------

    def _columns(self, table: Table) -> tuple[Columns, ...]:
        """Blocks of columns, with declared levels only."""
        raise NotImplementedError

    def with_priors(self, priors: Mapping[str, Any], chosen: tuple[str, ...] = ()) -> Self:
        """Return a copy with the same counts, under other hyperparameters, by their names.

        What the classifier has chosen of the columns is named in the copy, so that a later fit chooses no other.

        Parameters
        ----------
        priors : dict {name: value}
        chosen : tuple of str
            What of these was chosen on the rows that were counted.

        Examples
        --------
        >>> from bayesnb import CategoricalNB
        >>> nb = CategoricalNB().fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
        >>> [float(nb.with_priors({"alpha": a}).predict_proba([["sun"]])[0, 1].round(2)) for a in (0.1, 1, 10)]
        [0.94, 0.77, 0.63]
        """
        other = copy.copy(self)
        for name, value in priors.items():
            setattr(other, name, value)
        if chosen:
            other.tuned_ = chosen
        return other.with_counts(self.fitted_.counted) if drafts.is_fitted(self) else other

    def with_counts(self, counted: Counted) -> Self:
        """Return a copy that has other counts, such as those of one more row, under the same hyperparameters.

        Parameters
        ----------
        counted : Counted
            Encoding and statistics, of the same columns.

        Examples
        --------
        >>> from bayesnb import CategoricalNB
        >>> nb = CategoricalNB().fit([["sun"], ["rain"]], ["out", "in"])
        >>> twice = nb.fitted_.counted._replace(statistics=nb.statistics_.merge(nb.statistics_))
        >>> nb.with_counts(twice).class_count_
        array([2., 2.])
        """
        other = copy.copy(self)
        other.fitted_ = other._state(counted)
        return other

    def _structured(
        self, encoding: Encoding, table: Table, rows: tuple[Rows, ...], label: np.ndarray, weight: np.ndarray
    ) -> tuple[Encoding, tuple[Rows, ...]]:
        """The encoding and its rows once more, with what else labelled rows say of it."""
        return encoding, rows

    def _warn_of_counts(self) -> None:
        """Warn of what the counted rows do not tell; default: nothing."""

    def _settled(self) -> Self:
        """Return an unfitted copy, whose hyperparameters say what `fit` has chosen by scores, such as k of `KDB`."""
        return drafts.blank(self)

    def fit_parts(self, X: Any, y: Any, sample_weight: Any = None) -> Callable[[np.ndarray], Self]:
        """Return a function that fits copies to some of these rows, for halves and folds.

        Parameters
        ----------
        X, y, sample_weight
            Rows. Rows of weight zero take no part in any copy.

        Returns
        -------
        function of weights (N,) of the rows
            Returns a copy that is fitted to them. Levels are those that this classifier knows; structure, cells and
            densities are found anew.

        Examples
        --------
        >>> import numpy as np
        >>> from bayesnb import CategoricalNB
        >>> X, y = [["sun"], ["rain"], ["sun"]], ["out", "in", "out"]
        >>> fit = CategoricalNB().fit(X, y).fit_parts(X, y)
        >>> fit(np.array([1.0, 0.0, 0.0])).class_count_  # in, out
        array([0., 1.])
        """
        return drafts.parts(self._settled(), self, X, y, sample_weight)

    def refit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Return a copy that is fitted to other rows, with the levels that this classifier knows.

        Examples
        --------
        >>> from bayesnb import CategoricalNB
        >>> nb = CategoricalNB().fit([["sun"], ["rain"]], ["out", "in"])
        >>> nb.refit([["sun"]], ["out"]).categories_
        [array(['rain', 'sun'], dtype='<U4')]
        """
        return self.fit_parts(X, y, sample_weight)(check_weights(sample_weight, len(y)))

    def _candidates(self) -> list[Self]:
        """Return the unfitted classifiers that `WeightedNB` chooses from by their expected loss, simplest first."""
        return [drafts.blank(self)]

    def _prior_alone(self, columns: Columns, family: Any) -> Any:
        """The prior of the features of a block given the class alone, from the one given their parents too."""
        return family if columns.network is None else columns.network.prior_without_parents(family)

    def _block_prior(self, columns: Columns, n_classes: int) -> Any:
        """Prior of one block, or a function of the statistics to it."""
        argument = self._prior_argument(columns)
        return columns.prior(getattr(self, argument), argument, n_classes)

    def _prior_argument(self, columns: Columns) -> str:
        """The hyperparameter that has the prior of a block."""
        return columns.hyperparameter if hasattr(self, columns.hyperparameter) else "prior"

    # -- shared machinery ------------------------------------------------------------------------

    def _made_choices(self, encoding: Encoding) -> tuple[str, ...]:
        """Return what beside the parameters was chosen on the rows that were counted, such as by `tune_alpha`."""
        return getattr(self, "tuned_", ())

    def _check(self) -> None:
        """Raise ValueError unless what was fitted fits together: what `save` asks of a model, and `load` of a file.

        Hyperparameters pass the checks of `fit`: they make the columns, and the prior.
        """
        counted = self.fitted_.counted
        counting.check(counted)
        check_features(self, self.encoding_)
        columns = self._columns(self.encoding_.blank(type(self).__name__))
        if not self._has_layout(columns):
            kinds = [[f"{len(block.index)} {block.kind}" for block in b] for b in (self.encoding_.blocks, columns)]
            raise ValueError(f"its columns are {kinds[0]}, and by its hyperparameters {kinds[1]}, or others of these.")
        prior = self._state(counted).prior
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(prior.blocks)):
            raise ValueError("its prior is not finite.")
        require_same_prior(prior, self.fitted_.prior)
        weight = getattr(self, "unlabeled_weight_", 0.0)
        if type(weight) is not float or not 0 <= weight < np.inf:
            raise ValueError(f"unlabeled_weight_ is {shown(weight)}.")
        rows, texts = getattr(self, "rows_counted_", 0), [getattr(self, name, ()) for name in ("tuned_", "first_rows_")]
        if type(rows) is not int or rows < 0:
            raise ValueError(f"rows_counted_ is {shown(rows)}.")
        if not all(type(own) is tuple and all(type(text) is str for text in own) for own in texts):
            raise ValueError("tuned_ or first_rows_ is no tuple of texts.")

    def _has_layout(self, columns: tuple[Columns, ...]) -> bool:
        """Return whether what was fitted has such columns, as they are before anything is learned."""
        return same_layout(columns, self.encoding_.blocks)

    def _empirical_prior(self, counted: Counted) -> NaiveBayes:
        """The prior, in which blocks that are derived from the data are functions of the statistics."""
        encoding, statistics = counted
        require_estimate(self.estimate)
        if isinstance(self.prior, NaiveBayes):
            return priors.check_complete_prior(self.prior, encoding, statistics)
        if self.prior is not None and hasattr(self, "alpha"):
            raise ValueError(f"prior={shown(self.prior)} must be a bayesnb.NaiveBayes or None; see also `alpha`.")
        n_classes = len(encoding.classes)
        class_prior = priors.class_distribution(self.class_prior, self.class_alpha, n_classes)
        return NaiveBayes(class_prior, tuple(self._block_prior(columns, n_classes) for columns in encoding.blocks))

    def _counter(self, X: Any) -> Self:
        return drafts.blank(self)

    def _with_counter(self, model: Self) -> Self:
        return model

    def _count_on(self, X: Any, y: Any, sample_weight: Any, classes: Levels) -> None:
        drafts.add(self, copy.copy(self), X, y, sample_weight, classes, grow=True)

    def _stored(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if name.endswith("_")}
        if (fitted := state.pop("fitted_", None)) is not None:
            state |= {"encoding_": fitted.encoding, "statistics_": fitted.statistics}
        return state

    def _restore(self, stored: dict[str, Any]) -> None:
        for name, value in stored.items():
            if name not in ("encoding_", "statistics_"):
                setattr(self, name, value)
        counted = Counted(stored["encoding_"], stored["statistics_"])
        counting.check(counted)
        self.fitted_ = self._state(counted)


def require_same_prior(said: NaiveBayes, used: NaiveBayes) -> None:
    """Raise ValueError if the hyperparameters say another prior than the one that predictions use."""
    leaves, expected = jax.tree.leaves(said), jax.tree.leaves(used)
    if len(leaves) != len(expected) or not all(map(np.array_equal, leaves, expected)):
        raise ValueError("a hyperparameter was set after fit, and says another prior: fit again.")


def check_features(nb: NaiveBayesClassifier, encoding: Encoding) -> None:
    """Raise ValueError unless scikit-learn's attributes are those of the columns."""
    if type(nb.n_features_in_) is not int or nb.n_features_in_ != encoding.n_features:
        raise ValueError(f"n_features_in_ is {shown(nb.n_features_in_)}, and there are {encoding.n_features} columns.")
    names = getattr(nb, "feature_names_in_", None)
    if names is not None and list(names) != list(encoding.blank("").names):
        raise ValueError("feature_names_in_ are not the names of the columns.")


def same_layout(a: tuple[Columns, ...], b: tuple[Columns, ...]) -> bool:
    """Whether the blocks are of the same kinds, and have the same columns of the table."""

    def alike(one: Any, other: Any) -> bool:
        mine, theirs = one.base.index, other.base.index
        same = type(one) is type(other) and one.kind == other.kind
        return same and (mine == theirs or list(mine) == list(theirs))

    return len(a) == len(b) and all(map(alike, a, b))
