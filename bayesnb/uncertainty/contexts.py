"""What was learned of contexts: which values of the parents have a distribution of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from bayesnb._util.precision import float64
from bayesnb.fitted import Classifier, Fitted, require_posterior

if TYPE_CHECKING:
    import pandas as pd


def context_table(nb: Classifier, features: Iterable[Any] | None = None) -> pd.DataFrame:
    """Which contexts, values of a column's first few parents, have a distribution of their own.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        With context-tree tables: `KDB`, or `TAN`, `SPODE` and `NetworkNB` with `tables="context"`.
    features : column names or indices, optional
        Default: all columns that have parents.

    Returns
    -------
    DataFrame
        One row a class, feature and context that some rows of the class are in.

        class
            label
        feature
            str
        parents : int
            How many parents the context has values of: 0 is the class alone.
        context
            str
        rows : float
            Weight of the rows of the class in it that have the feature.
        reached : float
            Posterior probability that the feature's distribution depends on all these parents, here.
        last : float
            That it does, and on no further one: these rows share one distribution.

    Raises
    ------
    ValueError
        If there are no such tables, or `features` names another column.

    Notes
    -----
    Averages over all prunings of the trees of contexts, given the network.

    Examples
    --------
    >>> from bayesnb import NetworkNB, context_table
    >>> X = [["sun", "hot"], ["rain", "cold"]] * 5
    >>> nb = NetworkNB({1: 0}, tables="context").fit(X, ["in"] * 10)
    >>> context_table(nb)[["context", "rows", "last"]].round(2)
      context  rows  last
    0          10.0   0.0
    1  0=rain   5.0   1.0
    2   0=sun   5.0   1.0
    """
    import pandas as pd

    fitted = require_posterior(nb, "context_table")
    wanted = None if features is None else fitted.encoding.positions(features)
    parts = []
    for tree in _trees(fitted):
        if wanted is not None and tree.column not in wanted:
            continue
        for d in range(len(tree.parents) + 1):
            rows, last, reached = tree.at(d)
            label, context = np.nonzero(rows > 0)
            names = [", ".join(map("{}={}".format, tree.parents, values)) for values in product(*tree.values[:d])]
            parts.append(
                pd.DataFrame(
                    {
                        "class": fitted.encoding.classes.array()[label],
                        "feature": tree.feature,
                        "parents": d,
                        "context": np.array(names, object)[context],
                        "rows": rows[label, context],
                        "reached": reached[label, context],
                        "last": last[label, context],
                    }
                )
            )
    if not parts:
        raise ValueError(
            "context_table: there are no tables of contexts"
            + ("; pass a KDB, or a TAN, SPODE or NetworkNB with tables='context'." if wanted is None else " of these.")
        )
    table = pd.concat(parts, ignore_index=True)
    return table.sort_values(["feature", "class"], kind="stable", ignore_index=True)


class _Tree(NamedTuple):
    """The contexts of one feature: values of its parents, and of these and the feature (C, *q, L) and (D, C, *q, L)."""

    column: int
    feature: str
    parents: list[str]
    values: list[list[Any]]
    n: np.ndarray
    last: np.ndarray

    def at(self, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(C, G) rows in each context of the first d parents, P(it is the last), and P(it is reached)."""
        n_classes = len(self.n)
        behind = tuple(range(1 + d, self.n.ndim))
        first: Any = (..., *(0,) * len(behind))
        last = self.last[first].reshape(len(self.last), n_classes, -1)
        rows = self.n.sum(axis=behind).reshape(n_classes, -1)
        return rows, last[d], np.clip(last[d:].sum(axis=0), 0.0, 1.0)


def _trees(fitted: Fitted) -> Iterator[_Tree]:
    parts = zip(fitted.encoding.blocks, fitted.statistics.blocks, fitted.posterior.blocks, strict=True)
    for columns, statistics, family in parts:
        if not hasattr(family, "last_probability"):
            continue
        network, probability = columns.network, _last_probability(family)
        tables = [network.tables(own) for own in (statistics.count, *probability)]
        for g, (child, *parents) in enumerate(network.nodes):
            count, *last = (own[g] for own in tables)
            if parents and count.size:
                names, values = [network.base.names[p] for p in parents], [network.values_of(p) for p in parents]
                yield _Tree(network.base.index[child], network.names[g], names, values, count, np.stack(last))


@float64
@jax.jit
def _last_probability(family: Any) -> Any:
    return family.last_probability()


__all__ = ["context_table"]
