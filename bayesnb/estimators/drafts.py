"""Changing a classifier: rows are counted on a draft, whose state it takes over once nothing can fail any more."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from itertools import compress
from threading import Lock
from typing import Any, Protocol, TypeVar

import numpy as np

from bayesnb import counting
from bayesnb.counting import Counted
from bayesnb.encoding import (
    Columns,
    Encoding,
    Levels,
    Rows,
    Table,
    check_labels,
    check_weights,
    declare_levels,
    index_of_labels,
)
from bayesnb.fitted import Fitted
from bayesnb.model import NaiveBayes

_commits = Lock()
_ANY = object()


class Counting(Protocol):
    """A classifier whose state is an encoding and statistics, and how it reads rows."""

    fitted_: Fitted
    _counts_margins: bool

    def _table(self, X: Any, reset: bool = False) -> Table: ...

    def _columns(self, table: Table) -> tuple[Columns, ...]: ...

    def _structured(
        self, encoding: Encoding, table: Table, rows: tuple[Rows, ...], label: np.ndarray, weight: np.ndarray
    ) -> tuple[Encoding, tuple[Rows, ...]]: ...

    def _empirical_prior(self, counted: Counted) -> NaiveBayes: ...

    def _state(self, counted: Counted) -> Fitted: ...


class Stored(Protocol):
    """A classifier whose state can be written to a file and read from one."""

    def _stored(self) -> dict[str, Any]: ...

    def _restore(self, stored: dict[str, Any]) -> None: ...

    def _check(self) -> None: ...


NB = TypeVar("NB", bound=Counting)


def is_fitted(nb: Counting) -> bool:
    """Return whether anything was counted."""
    return "fitted_" in vars(nb)


def derived_prior(nb: Counting, counted: Counted) -> NaiveBayes:
    """Return the prior that the hyperparameters say, where this was counted; raise where they cannot be used."""
    return nb._empirical_prior(counted).derive(counted.statistics)


def stored(nb: Stored) -> dict[str, Any]:
    """Return what a file has of a fitted classifier beside its hyperparameters, by name."""
    return nb._stored()


def restore(nb: Stored, values: dict[str, Any]) -> None:
    """Give a classifier the state of a file; raise ValueError unless its parts fit together."""
    nb._restore(values)
    nb._check()


def check(nb: Stored) -> None:
    """Raise ValueError unless what was fitted fits together: what `save` asks of a classifier."""
    nb._check()


def blank(nb: NB) -> NB:
    """A copy without what was fitted."""
    draft = copy.copy(nb)
    fitted = [name for name in vars(draft) if name.endswith("_") and not name.startswith("_")]
    for name in fitted:
        delattr(draft, name)
    return draft


def without_state(nb: NB) -> NB:
    """Return a copy that knows the columns of `fit`, and nothing of what was counted."""
    draft = copy.copy(nb)
    for name in ("fitted_", "model_"):
        vars(draft).pop(name, None)
    return draft


def copy_features(nb: Any, other: Any) -> None:
    """Give a classifier the number and names of the columns that another one was fitted to."""
    for name in ("n_features_in_", "feature_names_in_"):
        if name in vars(other):
            setattr(nb, name, vars(other)[name])


def with_counts_of(nb: NB, other: NB) -> NB:
    """Return a classifier with the columns and counts of another one of its type, under its own hyperparameters."""
    draft = copy.copy(nb)
    copy_features(draft, other)
    draft.fitted_ = draft._state(other.fitted_.counted)
    return draft


def with_margins(nb: NB) -> NB:
    """Return an unfitted classifier that counts columns which have parents by themselves, too."""
    nb._counts_margins = True
    return nb


def without_margins(nb: NB) -> NB:
    """Return a fitted classifier without the margins of levels that stand beside tables given parents."""
    if not nb._counts_margins:
        return nb
    plain, (encoding, statistics) = copy.copy(nb), nb.fitted_.counted
    plain._counts_margins = False
    keep = [columns.role is None or bool(getattr(columns, "cuts", ())) for columns in encoding.blocks]
    blocks, counts = tuple(compress(encoding.blocks, keep)), tuple(compress(statistics.blocks, keep))
    plain.fitted_ = plain._state(Counted(replace(encoding, blocks=blocks), replace(statistics, blocks=counts)))
    return plain


def fit(nb: NB, X: Any, y: Any, sample_weight: Any) -> NB:
    """Count rows with a classifier that is not fitted, and become fitted."""
    return commit(nb, nb, count_batch(nb, X, y, sample_weight, Levels(()), grow=True))


def checked(nb: Counting, X: Any) -> Table:
    """X as a table; before anything was counted it decides the columns, and later it must have them."""
    return nb._table(X, reset=not is_fitted(nb))


def count_batch(nb: Counting, X: Any, y: Any, sample_weight: Any, classes: Levels, *, grow: bool) -> Counted:
    """What rows count by themselves; labels beside `classes` are new ones if these may `grow`, or refused.

    Before anything was counted the rows decide the columns too.
    """
    table = checked(nb, X)
    found, label = check_labels(y, table.n_rows, type(nb).__name__)
    classes = classes.union(found) if grow else classes
    weight = check_weights(sample_weight, table.n_rows)
    return count_table(nb, classes, table, index_of_labels(classes, found, label), weight)


def count_table(
    nb: Counting, classes: Levels, table: Table, label: np.ndarray, weight: np.ndarray, columns: Any = None
) -> Counted:
    """The same of checked rows; `columns` are those of `table` where it has only some of the rows that decide them."""
    if columns is None:
        columns = nb.fitted_.encoding.blocks if is_fitted(nb) else nb._columns(table)
    keep = weight > 0
    if not keep.all():
        table, label, weight = table.take(keep), label[keep], weight[keep]
    learned, rows = Encoding(classes, columns).learn(table)
    encoding, rows = nb._structured(learned, table, rows, label, weight)
    return counting.prune(Counted(encoding, counting.count_rows(encoding, rows, label, weight)))


def parts(nb: NB, like: NB, X: Any, y: Any, sample_weight: Any) -> Callable[[np.ndarray], NB]:
    """Return a function that fits copies of a classifier to some of these rows, by weights (N,) of them.

    The copies have the levels of the fitted classifier `like`, and cells of numbers between quantiles of all rows, as
    neither depends on labels. Structure and densities are found anew.
    """
    table = like._table(X)
    weight = check_weights(sample_weight, table.n_rows)
    classes, label = check_labels(y, table.n_rows, type(nb).__name__)
    counted = table if (weight > 0).all() else table.take(weight > 0)
    learned = [block.learn(block.open(counted)) for block in blank(nb)._columns(counted)]
    columns = declare_levels(learned, like.fitted_.encoding.blocks)

    def fit(weight: np.ndarray) -> NB:
        part = blank(nb)
        copy_features(part, like)
        part.fitted_ = part._state(count_table(part, classes, table, label, weight, columns))
        return part

    return fit


def commit(nb: NB, draft: NB, counted: Counted, *, on_top: bool = False) -> NB:
    """Give a classifier the state of its draft, which has counted rows.

    A draft that counts `on_top` of a copy is refused if that is no longer what is there.
    """
    before, fitted = vars(draft).get("fitted_") if on_top else _ANY, draft._state(counted)
    fitted.prior  # noqa: B018  computed here, so that what cannot be used raises before anything is changed
    draft.fitted_ = fitted
    return take_over(nb, draft, before)


def take_over(nb: NB, draft: NB, before: Any = _ANY) -> NB:
    """Give a classifier the attributes of its fitted draft; refuse if its state is no longer the one `before`."""
    with _commits:
        if before is not _ANY and vars(nb).get("fitted_") is not before:
            raise RuntimeError(
                f"This {type(nb).__name__} was changed by another thread meanwhile, and what that has counted "
                "would be lost: nothing was changed by this call. Take a lock around the calls, or let each thread "
                "fit an estimator of its own (bayesnb.distributed.fit merges such counts)."
            )
        for name in set(vars(nb)) - set(vars(draft)):
            delattr(nb, name)
        vars(nb).update(vars(draft))
    return nb


def counter(nb: Any, X: Any) -> Any:
    """Return the unfitted classifier that counts rows such as X: a copy, or of a `WeightedNB` that of its estimator."""
    return nb._counter(X)


def commit_counter(nb: NB, draft: Any, model: Any) -> NB:
    """Give a classifier the counts of a fitted one, which `counter` has made of its draft."""
    fitted = draft._with_counter(model)
    fitted.fitted_.prior  # noqa: B018  as in `commit`
    return take_over(nb, fitted)


def count_on(nb: Any, X: Any, y: Any, sample_weight: Any, classes: Levels) -> None:
    """Count further rows, whose labels may be new ones."""
    nb._count_on(X, y, sample_weight, classes)


def add(nb: NB, draft: NB, X: Any, y: Any, sample_weight: Any, classes: Levels, *, grow: bool) -> NB:
    """Count rows on top of what the draft has, and become it."""
    batch = count_batch(draft, X, y, sample_weight, classes, grow=grow)
    first = not is_fitted(draft)
    return commit(nb, draft, batch if first else counting.merge(draft.fitted_.counted, batch), on_top=True)
