"""Changing a classifier: rows are counted on a draft, whose state it takes over once nothing can fail any more."""

from __future__ import annotations

import copy
from collections.abc import Callable
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
    index_of_labels,
)
from bayesnb.model import NaiveBayes, Statistics

_commits = Lock()


class Counting(Protocol):
    """A classifier whose state is an encoding and statistics, and how it reads rows."""

    encoding_: Encoding
    statistics_: Statistics

    def _table(self, X: Any, reset: bool = False) -> Table: ...

    def _columns(self, table: Table) -> tuple[Columns, ...]: ...

    def _structured(
        self, encoding: Encoding, table: Table, rows: tuple[Rows, ...], label: np.ndarray, weight: np.ndarray
    ) -> tuple[Encoding, tuple[Rows, ...]]: ...

    def _count_rows(
        self, encoding: Encoding, rows: tuple[Rows, ...], label: np.ndarray, weight: np.ndarray
    ) -> Statistics: ...

    def _empirical_prior(self, counted: Counted) -> NaiveBayes: ...


class Checked(Protocol):
    """A classifier that knows what belongs together in its state."""

    def _check(self) -> None: ...


NB = TypeVar("NB", bound=Counting)


def is_fitted(nb: Counting) -> bool:
    """Whether anything was counted."""
    return "statistics_" in vars(nb)


def counted_by(nb: Counting) -> Counted:
    """What a fitted classifier has counted."""
    return Counted(nb.encoding_, nb.statistics_)


def derived_prior(nb: Counting, counted: Counted) -> NaiveBayes:
    """The prior that the hyperparameters say, where this was counted; raises where they cannot be used."""
    return nb._empirical_prior(counted).derive(counted.statistics)


def check(nb: Checked) -> None:
    """Raise ValueError unless what was fitted fits together: what `save` asks of a classifier, and `load` of a file."""
    nb._check()


def blank(nb: NB) -> NB:
    """A copy without what was fitted."""
    draft = copy.copy(nb)
    fitted = [name for name in vars(draft) if name.endswith("_") and not name.startswith("_")]
    for name in fitted:
        delattr(draft, name)
    return draft


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
        columns = nb.encoding_.blocks if is_fitted(nb) else nb._columns(table)
    keep = weight > 0
    if not keep.all():
        table, label, weight = table.take(keep), label[keep], weight[keep]
    learned, rows = Encoding(classes, columns).learn(table)
    encoding, rows = nb._structured(learned, table, rows, label, weight)
    return counting.prune(Counted(encoding, nb._count_rows(encoding, rows, label, weight)))


def parts(nb: NB, like: NB, X: Any, y: Any, sample_weight: Any) -> Callable[[np.ndarray], NB]:
    """Return a function that fits copies of a classifier to some of these rows, by weights (N,) of them.

    The copies have the levels of the fitted classifier `like`, and cells of numbers between quantiles of all rows, as
    neither depends on labels. Structure and densities are found anew.
    """
    table = like._table(X)
    weight = check_weights(sample_weight, table.n_rows)
    classes, label = check_labels(y, table.n_rows, type(nb).__name__)
    counted = table if (weight > 0).all() else table.take(weight > 0)
    levels = {j: own for block in like.encoding_.blocks for j, own in block.known_levels().items()}
    columns = tuple(block.learn(block.open(counted)).with_levels(levels) for block in blank(nb)._columns(counted))
    known = {name: value for name, value in vars(like).items() if name in ("n_features_in_", "feature_names_in_")}

    def fit(weight: np.ndarray) -> NB:
        part = blank(nb)
        vars(part).update(known)
        part.encoding_, part.statistics_ = count_table(part, classes, table, label, weight, columns)
        return part

    return fit


def commit(nb: NB, draft: NB, counted: Counted, *, on_top: bool = False) -> NB:
    """Take over the draft's state, once everything in it is known to be good.

    A draft that counts `on_top` of a copy is refused if that is no longer what is there.
    """
    derived_prior(draft, counted)
    with _commits:
        if on_top and vars(nb).get("statistics_") is not vars(draft).get("statistics_"):
            raise RuntimeError(
                f"This {type(nb).__name__} was changed by another thread meanwhile, and what that has counted "
                "would be lost: nothing was changed by this call. Take a lock around the calls, or let each thread "
                "fit an estimator of its own (bayesnb.distributed.fit merges such counts)."
            )
        draft.encoding_, draft.statistics_ = counted
        for name in set(vars(nb)) - set(vars(draft)):
            delattr(nb, name)
        vars(nb).update(vars(draft))
    return nb


def add(nb: NB, draft: NB, X: Any, y: Any, sample_weight: Any, classes: Levels, *, grow: bool) -> NB:
    """Count rows on top of what the draft has, and become it."""
    own = count_batch(draft, X, y, sample_weight, classes, grow=grow)
    return commit(nb, draft, counting.merge(counted_by(draft), own) if is_fitted(draft) else own, on_top=True)
