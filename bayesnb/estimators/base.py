"""Base class of the classifiers: scikit-learn's conventions around one posterior."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import compress
from typing import Any, ClassVar, Self

import jax
import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from bayesnb._util.arguments import bad_argument, require_number, shown
from bayesnb._util.kinds import KINDS
from bayesnb._util.scikit_learn import BaseEstimator
from bayesnb.encoding import (
    Columns,
    Encoding,
    LevelColumns,
    Levels,
    Table,
    Unknown,
    check_labels,
    declare_levels,
    describe_unknown,
    ignore_unknown,
    numeric_columns,
    priors,
)
from bayesnb.encoding.levels import UNITS
from bayesnb.encoding.priors import BlockPrior
from bayesnb.estimators import classifier_state
from bayesnb.estimators.classifier_state import Batch, LabelledRows, Parts
from bayesnb.estimators.predictions import FittedClassifier, require_unnested
from bayesnb.families.arrays import same_structure
from bayesnb.fitted import counting
from bayesnb.fitted.counting import Counted
from bayesnb.fitted.state import Fitted, require_estimate
from bayesnb.model import ESTIMATES, Estimate, NaiveBayes


class NaiveBayesClassifier(FittedClassifier):
    """Base class of the classifiers: `fit` counts rows, and all else is a function of the posterior.

    A subclass makes its columns in `_columns`, and sets its hyperparameters in `__init__`.
    """

    alpha: object
    class_alpha: object
    class_prior: object
    prior: object
    tables: str  # hyperparameter of structures
    tuned_: tuple[str, ...]
    unlabeled_weight_: float
    _estimates: ClassVar[tuple[Estimate, ...]] = ESTIMATES  # readings that `estimate` may name
    _tags: ClassVar[tuple[str, ...]] = ()
    """Names of scikit-learn's input tags that hold, and "poor_score" of its classifier tags."""
    _counts_margins = False
    """Whether columns with parents are counted given the class alone too."""

    _has_context_trees = False
    """Whether halves for `WeightedNB` score rows by context trees without tables."""

    # -- fitting ---------------------------------------------------------------------------------

    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Fit the classifier to labelled rows; earlier counts are discarded.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F)
            Rows of features. A lazy table, such as polars' `LazyFrame` or a DuckDB relation, is collected.
        y : array-like of shape (N,)
            Labels of any hashable type.
        sample_weight : array-like of shape (N,), optional
            Replication counts; default: 1. A row of weight 2 counts as two rows. A row of weight zero adds its label to
            `classes_`, and nothing else.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data or a hyperparameter cannot be used; the estimator is left as it was.

        Warns
        -----
        SuspiciousColumnWarning
            If columns are probably not what they are treated as, such as identifiers, numbers written as text, numbers
            that mark missing cells, and copies; see `check_table`. If labels or levels of two types mean the same, such
            as "yes" and True. There is one warning for all.

        Examples
        --------
        >>> from bayesnb import CategoricalNB
        >>> nb = CategoricalNB().fit([["sun"], ["rain"]], ["out", "in"], sample_weight=[2, 1])
        >>> nb.classes_, nb.class_count_
        (array(['in', 'out'], dtype='<U3'), array([1., 2.]))
        """
        return self._fit_rows(X, y, sample_weight)

    def _fit_rows(self, X: object, y: object, sample_weight: object, groups: object = None) -> Self:
        """Fit the classifier to labelled rows, in groups that random halves keep together; see `fit`."""
        updated = classifier_state.copy_unfitted(self)
        encoded = updated._encode(classifier_state.read_batch(updated, X, y, sample_weight, groups=groups))
        self._commit(updated, encoded.count_levels())
        self._warn_of_columns()
        self.encoding_.warn_of_suspicious_columns(encoded.table, encoded.label)
        return self

    def partial_fit(self, X: object, y: object, classes: object = None, sample_weight: object = None) -> Self:
        """Count further rows; the posterior is that of one fit to all rows, however they are divided into batches.

        The rows that are counted first determine the kinds of columns that are not named, the ends of cells of numbers
        without `edges`, and the densities of numbers that are chosen. Later rows do not change these, so that the
        posterior of `BinnedNB`, `MixedNB` and structures with numbers may differ from that of one fit.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F)
            Rows of features. There may be none: after a first call without rows the model is its prior, for which
            levels, kinds of columns and priors must be declared; a later call without rows only adds classes.
        y : array-like of shape (N,)
            Labels of any hashable type.
        classes : array-like, optional
            All labels that may occur. Required at the first call; later calls may add labels. A class stays, with or
            without rows: one without rows has the class probability `class_alpha` / (rows + C `class_alpha`), and its
            cells have the probabilities of the prior.
        sample_weight : array-like of shape (N,), optional
            Replication counts of the rows; default: 1.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data or a hyperparameter cannot be used; if `classes` is missing at the first call; if a label was
            not declared; if a first call has no rows, and something is not declared. Nothing is changed.
        RuntimeError
            If another thread has changed the estimator since the call began; these rows were not counted.

        Examples
        --------
        >>> from bayesnb import CategoricalNB
        >>> nb = CategoricalNB().partial_fit([["sun"]], ["out"], classes=["in", "out"])
        >>> nb.partial_fit([["rain"], ["sun"]], ["in", "out"]).class_count_
        array([1., 2.])
        """
        before = vars(self).get("fitted_")
        if before is None and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit: all labels that may occur.")
        updated = classifier_state.copy_unfitted(self) if before is None else copy.copy(self)
        known = Levels(()) if before is None else before.encoding.classes
        if classes is not None:
            more, _ = check_labels(classes, None, type(self).__name__, "classes")
            known = Levels.from_values((*known.values, *more.values))
        counted = classifier_state.count_batch(updated, X, y, sample_weight, known)
        counted = counted._replace(encoding=counted.encoding.fix_levels(False))
        if before is not None:
            counted = counting.merge(counting.keep_uncounted(before.counted), counted)
        elif not counted.statistics.class_count.any():
            updated._state(counted).require_declared()
        self._commit(updated, counted, before)
        known_encoding = None if before is None else before.encoding
        if known_encoding is None:
            self.encoding_.warn_of_types()
        self.encoding_.warn_of_uncut_numbers(known_encoding)
        self._warn_of_columns(known_encoding)
        return self

    def forget(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Remove rows that were counted, the inverse of `partial_fit`.

        Levels that only `partial_fit` has brought leave with their last row, so that predictions are those of before
        the batch. Levels in the rows of `fit`, `fit_stream` or `distributed.fit`, levels that `categories` or `alpha`
        name, and all classes stay. A row that was never counted raises ValueError if a count would become negative;
        otherwise the row cannot be distinguished from a counted one, and is removed too.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F)
            Rows of features.
        y : array-like of shape (N,)
            Labels of the rows.
        sample_weight : array-like of shape (N,), optional
            Replication counts of the rows; default: 1.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a count would become negative, or a value was never counted; nothing is changed.
        RuntimeError
            If another thread has changed the estimator since the call began; nothing is changed.

        Examples
        --------
        >>> from bayesnb import CategoricalNB
        >>> nb = CategoricalNB().fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
        >>> nb.forget([["sun"]], ["out"]).category_count_  # in and out; rain and sun
        [array([[1., 0.],
               [0., 1.]])]
        """
        check_is_fitted(self)
        updated, before = copy.copy(self), self.fitted_
        batch = classifier_state.read_batch(updated, X, y, sample_weight, before.encoding.classes, least_rows=0)
        encoded = updated._encode(batch)
        try:
            left = counting.remove(before.counted, encoded.count_levels(before.cells))
        except ValueError:
            before.encoding.rows(encoded.table, refuse_unknown)  # raises ValueError with the row of a new level
            raise
        return self._commit(updated, left, before)

    def decay(self, factor: float) -> Self:
        """Multiply the weight of every counted row by a factor, in place, so that old data fade.

        Parameters
        ----------
        factor : float
            Factor in (0, 1].

        Returns
        -------
        self

        Examples
        --------
        >>> from bayesnb import CategoricalNB
        >>> nb = CategoricalNB().fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
        >>> nb.decay(0.5).class_count_
        array([0.5, 1. ])
        """
        check_is_fitted(self)
        require_number("factor", factor, "a number in (0, 1]", lambda value: 0 < value <= 1)
        before = self.fitted_
        return self._commit(copy.copy(self), counting.scale(before.counted, factor), before)

    def _encode(self, batch: Batch, columns: tuple[Columns, ...] | None = None) -> LabelledRows:
        """Encode the rows of positive weight of a batch, with arcs and densities if the classifier learns any.

        `columns` are those to learn from, where more rows than those of the batch choose them. Default: the columns of
        the fitted classifier, or those that an unfitted one makes of the table.
        """
        classes, table, label, weight, unit = batch.counted()
        fitted = vars(self).get("fitted_")
        if columns is None:
            columns = self._columns(table) if fitted is None else fitted.encoding.blocks
        table = replace(table, numeric=(numeric := numeric_columns(columns)))
        if fitted is None and (time_units := table.find_time_units(compress(range(len(numeric)), numeric))):
            self.time_units_ = time_units
        learned, rows = Encoding(classes, columns).learn(table, self._concentrations)
        return self._structured(LabelledRows(learned, rows, table, label, weight, unit))

    def _commit(self, updated: Self, counted: Counted, before: object = classifier_state.ANY_STATE) -> Self:
        """Fit `updated`, a copy of the classifier, to these counts, and take over its attributes; see `replace_state`.

        Raises ValueError, without a change, if numbers are too large or too small, or the prior cannot be used.
        """
        fitted = updated._state(counted)
        fitted.require_usable()
        updated.fitted_ = fitted
        return classifier_state.replace_state(self, updated, before)

    def _fit(self, every: Batch) -> LabelledRows:
        """Fit an unfitted classifier to checked rows, in place; return its encoded rows of positive weight."""
        batch = self._encode(every)
        self._commit(self, batch.count_levels())
        return batch

    def _refit(self, known: NaiveBayesClassifier, every: Batch) -> tuple[Self, LabelledRows]:
        """Fit a copy to other checked rows, with the levels of `known`; return the copy with its encoded rows.

        Structure, cells and densities are learned from these rows.
        """
        nb, batch = classifier_state.copy_unfitted(self), every.counted()
        learned = [block.learn(batch.table, ignore_unknown)[0] for block in nb._columns(batch.table)]
        encoded = nb._encode(batch, declare_levels(learned, known.fitted_.encoding.blocks))
        return classifier_state.fit_to_counts(nb, known, encoded.count_levels()), encoded

    # -- the posterior ---------------------------------------------------------------------------

    def _state(self, counted: Counted) -> Fitted:
        """Return the `Fitted` of these counts with the prior by the hyperparameters; the classifier is not changed."""
        counted = counting.keep_levels(counted, self._concentrations)
        return Fitted(
            owner=classifier_state.copy_owner(self, self),
            encoding=counted.encoding,
            statistics=counted.statistics,
            empirical_prior=self._empirical_prior(counted),
            prior_arguments=tuple(map(self._prior_argument, counted.encoding.blocks)),
            estimate=self.estimate,
            estimates=self._estimates,
            chosen=self._made_choices(counted.encoding),
            no_posterior=self.no_posterior,
            divides_alpha=self._divides_alpha,
            cells=counted.cells,
        )

    @property
    def no_posterior(self) -> str | None:
        """Reason why there is no exact posterior, nor draws, intervals, evidence and leave-one-out scores, or None."""
        if "unlabeled_weight_" in vars(self):
            return (
                "Rows without a label were counted by EM, with estimated class probabilities, so that there is no "
                "exact posterior. For a posterior, fit only rows with labels."
            )
        return None

    no_em: str | None = None
    """Reason why EM cannot count rows with responsibilities, or None."""

    no_counts: str | None = None
    """Reason why counts of the levels of each feature, and moments of numbers, do not suffice, or None."""

    @property
    def unweighted(self) -> NaiveBayesClassifier:
        """Classifier with the same counts and without weights of terms: the classifier itself."""
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        for name in self._tags:
            setattr(tags.classifier_tags if name == "poor_score" else tags.input_tags, name, True)
        return tags

    # -- for subclasses --------------------------------------------------------------------------

    def _columns(self, table: Table) -> tuple[Columns, ...]:
        """Return the blocks of columns that hyperparameters make of a table, with no levels but declared ones."""
        raise NotImplementedError

    def with_priors(self, priors: Mapping[str, object], chosen: tuple[str, ...] = ()) -> Self:
        """Return a copy with the same counts under other hyperparameters.

        The copy keeps the kinds of columns that `fit` has chosen, also in a later fit.

        Parameters
        ----------
        priors : dict {name: value}
            Values of hyperparameters.
        chosen : tuple of str
            Names of the hyperparameters that were chosen on the counted rows.

        Raises
        ------
        ValueError
            If a name is not a hyperparameter, or a value cannot be used.

        Examples
        --------
        >>> from bayesnb import CategoricalNB
        >>> nb = CategoricalNB().fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
        >>> [float(nb.with_priors({"alpha": a}).predict_proba([["sun"]])[0, 1].round(2)) for a in (0.1, 1, 10)]
        [0.94, 0.77, 0.63]
        """
        if unknown := sorted(priors.keys() - self.get_params(deep=False).keys()):
            names = ", ".join(unknown)
            raise ValueError(f"priors: {type(self).__name__} has no hyperparameter {names}. Use names of get_params().")
        changed = copy.copy(self)
        changed.__dict__.update(priors)
        if chosen:
            changed.tuned_ = chosen
        return changed.with_counts(self.fitted_.counted) if classifier_state.is_fitted(self) else changed

    def with_counts(self, counted: Counted) -> Self:
        """Return a copy with other counts, such as those of one more row, under the same hyperparameters.

        Parameters
        ----------
        counted : Counted
            Encoding and statistics of the same columns.

        Returns
        -------
        classifier
            Fitted copy; this classifier is not changed.

        Examples
        --------
        >>> from bayesnb import CategoricalNB
        >>> nb = CategoricalNB().fit([["sun"], ["rain"]], ["out", "in"])
        >>> twice = nb.fitted_.counted._replace(statistics=nb.statistics_.merge(nb.statistics_))
        >>> nb.with_counts(twice).class_count_
        array([2., 2.])
        """
        changed = copy.copy(self)
        changed.fitted_ = changed._state(counted)
        return changed

    def _structured(self, batch: LabelledRows) -> LabelledRows:
        """Return the batch with the arcs, cells or densities that its rows determine; default: unchanged."""
        return batch

    def _without_arcs(self, encoding: Encoding, table: Table) -> Encoding:
        """Return the encoding without what labels determine, except for densities; default: unchanged."""
        return encoding

    def _add_densities(self, batch: LabelledRows) -> LabelledRows:
        """Return encoded rows with densities of the numbers in a network; default: unchanged."""
        return batch

    def _with_arcs(self, batch: LabelledRows) -> LabelledRows:
        """Return encoded rows with the arcs that those of positive weight determine; default: unchanged."""
        return batch

    def _with_margins(self, batch: LabelledRows) -> LabelledRows:
        """Return encoded rows with blocks given the class alone beside a network; default: unchanged."""
        return batch

    def _warn_of_columns(self, before: Encoding | None = None) -> None:
        """Warn of columns that the counted rows do not determine, or that may be misread; default: dates.

        `before` is the encoding to which `partial_fit` has added rows; None: these rows are the first.
        """
        if before is None:
            classifier_state.warn_of_dates(self)

    def _with_chosen_hyperparameters(self) -> Self:
        """Return an unfitted copy with hyperparameters fixed at what `fit` chose by scores, such as k of `KDB`."""
        return classifier_state.copy_unfitted(self)

    def fit_parts(self, X: object, y: object, sample_weight: object = None, groups: object = None) -> Parts:
        """Encode rows once, and return a function that fits copies of the classifier to parts of them.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F)
            Rows of features.
        y : array-like of shape (N,)
            Labels of the rows.
        sample_weight : array-like of shape (N,), optional
            Replication counts; default: 1. Rows of weight zero belong to no part.
        groups : array-like of shape (N,), optional
            Groups of rows, which random halves keep together; see `WeightedNB.fit`. They matter to `WeightedNB` only.

        Returns
        -------
        callable
            Function of the weights of the rows, an (N,) array, which returns a copy of the classifier that is fitted to
            the rows with these weights. The copy has the levels, cells and densities of this classifier, and learns its
            own arcs.

        Examples
        --------
        >>> import numpy as np
        >>> from bayesnb import CategoricalNB
        >>> X, y = [["sun"], ["rain"], ["sun"]], ["out", "in", "out"]
        >>> fit = CategoricalNB().fit(X, y).fit_parts(X, y)
        >>> fit(np.array([1.0, 0.0, 0.0])).class_count_  # in, out
        array([0., 1.])
        """
        every = classifier_state.read_known_columns(self, X, y, sample_weight, groups)
        return Parts.from_rows(self._with_chosen_hyperparameters(), self, every)

    def refit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Return a copy that is fitted to other rows, with the levels of this classifier and the classes of `y`.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F)
            Rows of features.
        y : array-like of shape (N,)
            Labels of the rows.
        sample_weight : array-like of shape (N,), optional
            Replication counts of the rows; default: 1.

        Returns
        -------
        classifier
            Fitted copy; this classifier is not changed.

        Examples
        --------
        >>> from bayesnb import CategoricalNB
        >>> nb = CategoricalNB().fit([["sun"], ["rain"]], ["out", "in"])
        >>> nb.refit([["sun"]], ["out"]).categories_
        [array(['rain', 'sun'], dtype='<U4')]
        """
        every = classifier_state.read_known_columns(self, X, y, sample_weight)
        return self._with_chosen_hyperparameters()._refit(self, every)[0]

    def _simplest(self) -> Self:
        """Return an unfitted copy: the simplest model of which `WeightedNB` selects one by log loss."""
        return classifier_state.copy_unfitted(self)

    def _candidates(self, batch: LabelledRows, known: Self) -> list[Encoding]:
        """Return encodings with arcs, simplest first, of which `WeightedNB` selects one; default: that of `known`.

        `batch` has encoded rows without arcs, `known` is a fitted classifier.
        """
        return [replace(known.encoding_, classes=batch.encoding.classes)]

    def _block_prior(self, columns: Columns, classes: Levels) -> BlockPrior:
        """Return the prior of one block by its hyperparameter: a family, or a function of the statistics to one."""
        argument = self._prior_argument(columns)
        return columns.prior(getattr(self, argument), argument, classes)

    @property
    def _divides_alpha(self) -> bool:
        """Whether concentrations of a column are divided among the values of its parents; default: False."""
        return False

    @property
    def _concentrations(self) -> object:
        """Hyperparameter `alpha`; None if the classifier has none, or a complete prior in its place."""
        return None if isinstance(self.prior, NaiveBayes) or not self._has("alpha") else self.alpha

    def _prior_argument(self, columns: Columns) -> str:
        """Return the name of the hyperparameter that holds the prior of a block, such as "alpha"."""
        return columns.hyperparameter if self._has(columns.hyperparameter) else "prior"

    def _has(self, hyperparameter: str) -> bool:
        """Return whether the classifier has a hyperparameter, or a constant in its place."""
        return hasattr(type(self), hyperparameter)

    # -- shared machinery ------------------------------------------------------------------------

    def _made_choices(self, encoding: Encoding) -> tuple[str, ...]:
        """Return names of choices besides parameters that rows determined; default: the tuned hyperparameters."""
        return vars(self).get("tuned_", ())

    def _check(self) -> None:
        """Raise ValueError if the fitted state contradicts itself or the hyperparameters, for `save` and `load`.

        Hyperparameters pass the checks of `fit`: they make the columns and the prior.
        """
        counted = self.fitted_.counted
        counting.check(counted)
        check_features(self, self.encoding_)
        columns = self._columns(self.encoding_.blank(type(self).__name__))
        if not self._has_layout(columns):
            kinds = [[f"{len(block.index)} {block.kind}" for block in b] for b in (self.encoding_.blocks, columns)]
            raise ValueError(
                f"The fitted columns are {kinds[0]}, but the hyperparameters give {kinds[1]}, or give these kinds to "
                "other columns. Fit again after a change of hyperparameters."
            )
        prior = self._state(counted).prior
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(prior.blocks)):
            raise ValueError("The prior must be finite.")
        require_same_prior(prior, self.fitted_.prior)
        units = set(UNITS.values())
        checks: dict[str, tuple[object, Callable[[Any], bool], str]] = {
            "unlabeled_weight_": (0.0, lambda w: type(w) is float and 0 <= w < np.inf, "a finite float of at least 0"),
            "rows_counted_": (0, lambda n: type(n) is int and n >= 0, "an integer of at least 0"),
            "time_units_": ({}, lambda u: type(u) is dict and units.issuperset(u.values()), f"a dict of {units}"),
            "reading_": ({}, lambda r: type(r) is dict, "a dict that the command `fit` wrote"),
            "tuned_": ((), is_tuple_of_str, "a tuple of strings"),
            "first_rows_": ((), is_tuple_of_str, "a tuple of strings"),
        }
        for name, (default, holds, wanted) in checks.items():
            require_attribute(self, name, default, holds, wanted)

    def _has_layout(self, columns: tuple[Columns, ...]) -> bool:
        """Return whether the fitted blocks have the kinds and table columns of `columns`, by hyperparameters."""
        return same_layout(columns, self.encoding_.blocks)

    def _empirical_prior(self, counted: Counted) -> NaiveBayes:
        """Return the prior by the hyperparameters; blocks derived from data are functions of statistics to families.

        Raises
        ------
        ValueError
            If a hyperparameter of the prior, or `estimate`, cannot be used.
        """
        encoding, statistics, _ = counted
        require_estimate(self.estimate, self._estimates)
        if isinstance(self.prior, NaiveBayes):
            return priors.check_complete_prior(self.prior, encoding, statistics)
        if self.prior is not None and self._has("alpha"):
            wanted = "None or a bayesnb.NaiveBayes, such as prior_ of a fitted classifier; concentrations are `alpha`"
            raise bad_argument("prior", self.prior, wanted)
        encoding.require_concentrations(self._concentrations)
        for argument, kind in (("prior", None), *((f"{kind}_prior", kind) for kind in KINDS)):
            if self._has(argument):
                encoding.require_numbers(argument, getattr(self, argument), kind)
        classes = encoding.classes
        class_prior = priors.class_distribution(self.class_prior, self.class_alpha, classes)
        return NaiveBayes(class_prior, tuple(self._block_prior(columns, classes) for columns in encoding.blocks))

    def _unfitted_model(self, X: object) -> Self:
        """Return an unfitted copy by which batches of rows are counted; X matters for `WeightedNB` only."""
        return classifier_state.copy_unfitted(self)

    def _with_counts_of(self, model: Self) -> Self:
        """Return the classifier with the counts of `model`, a fitted result of `_unfitted_model`: the model itself."""
        return model

    def _restore(self, stored: dict[str, Any]) -> None:
        """Set the attributes in `stored`; "encoding_", "statistics_" and "number_cells_" become `fitted_`.

        Raises
        ------
        ValueError
            If the statistics cannot be those of rows under the encoding.
        """
        counted = Counted(stored.pop("encoding_"), stored.pop("statistics_"), stored.pop("number_cells_", None))
        counting.check(counted)
        if counting.keep_levels(counted, self._concentrations) is not counted:
            raise ValueError("alpha names levels that the fitted columns do not have. Fit again.")
        self.__dict__.update(stored)
        self.fitted_ = self._state(counted)
        self.fitted_.require_usable()


def refuse_unknown(columns: LevelColumns, unknown: list[Unknown]) -> None:
    """Raise ValueError if values of undeclared columns are unknown: rows with these were never counted."""
    if grown := [u for u in unknown if not columns.declared[u.feature]]:
        raise ValueError(
            f"forget: X has {describe_unknown(columns, grown)}. Rows with these levels were never counted. Pass only "
            "rows that were counted. Nothing was changed."
        )


class HalvesClassifier(NaiveBayesClassifier):
    """Base class of the classifiers that may choose densities or a structure on random halves of the rows."""

    def fit(self, X: object, y: object, sample_weight: object = None, groups: object = None) -> Self:
        """Fit the classifier to labelled rows; earlier counts are discarded.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F)
            Rows of features. A lazy table, such as polars' `LazyFrame` or a DuckDB relation, is collected.
        y : array-like of shape (N,)
            Labels of any hashable type.
        sample_weight : array-like of shape (N,), optional
            Replication counts; default: 1. A row of weight 2 counts as two rows, which are in the same random half. A
            row of weight zero adds its label to `classes_`, and nothing else.
        groups : array-like of shape (N,), optional
            Group of each row, such as a patient or a day. Rows of a group are in the same random half, where halves of
            the rows choose densities or a structure; counts do not depend on groups. Default: rows that are equal in
            every cell, one of them in a column of mostly distinct numbers, are a group, as copies of one row, and each
            other row is alone.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data, the groups or a hyperparameter cannot be used; the estimator is left as it was.

        Warns
        -----
        SuspiciousColumnWarning
            If columns are probably not what they are treated as, such as identifiers, numbers written as text, numbers
            that mark missing cells, and copies; see `check_table`. There is one warning for all columns.
        CopiedRowsWarning
            If halves of the rows are drawn without `groups`, and 1% of the rows of a class or more are copies.

        Examples
        --------
        >>> from bayesnb import MixedNB
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> MixedNB().fit(X, y, groups=[f"plant {i // 2}" for i in range(150)]).class_count_
        array([50., 50., 50.])
        """
        return self._fit_rows(X, y, sample_weight, groups)


def wrapped_estimator(nb: BaseEstimator, default: NaiveBayesClassifier) -> NaiveBayesClassifier:
    """Return the hyperparameter `estimator`, or the default if it is None; raise ValueError if it cannot be used."""
    require_unnested(nb)
    given: object = vars(nb)["estimator"]
    base = default if given is None else given
    if not isinstance(base, NaiveBayesClassifier):
        kind = "a class" if isinstance(base, type) else f"a {type(base).__module__}.{type(base).__name__}"
        wanted = f"a classifier of bayesnb without weights, such as MixedNB(); it is {kind}"
        raise bad_argument("estimator", base, wanted)
    return base


def require_same_prior(stated: NaiveBayes, used: NaiveBayes) -> None:
    """Raise ValueError unless the prior stated by hyperparameters and the one in use have equal arrays."""
    leaves, expected = jax.tree.leaves(stated), jax.tree.leaves(used)
    if not same_structure(stated, used) or not all(map(np.array_equal, leaves, expected)):
        raise ValueError("a hyperparameter was set after fit, and the fitted prior does not agree with it. Fit again.")


def check_features(nb: BaseEstimator, encoding: Encoding) -> None:
    """Raise ValueError unless `n_features_in_` and `feature_names_in_` are those of the columns of the encoding."""
    n, names = encoding.n_features, encoding.feature_names
    require_attribute(nb, "n_features_in_", None, lambda m: type(m) is int and m == n, f"{n}, as in `fit`")
    require_attribute(nb, "feature_names_in_", names, lambda given: list(given) == names, "the names of the columns")


def require_attribute(nb: object, name: str, default: object, holds: Callable[[Any], bool], wanted: str) -> None:
    """Raise ValueError unless a fitted attribute, if the classifier has it, `holds`; `wanted` is a right value."""
    value = getattr(nb, name, default)
    if not holds(value):
        raise ValueError(f"{name} is {shown(value)}; it must be {wanted}. Do not set it; fit again.")


def is_tuple_of_str(value: object) -> bool:
    """Return whether a value is a tuple of strings."""
    return type(value) is tuple and all(type(item) is str for item in value)


def same_layout(a: tuple[Columns, ...], b: tuple[Columns, ...]) -> bool:
    """Return whether two tuples of blocks have the same types, kinds and columns of the table, in order."""
    first, second = ([(type(block), block.kind, list(block.base.index)) for block in blocks] for blocks in (a, b))
    return first == second
