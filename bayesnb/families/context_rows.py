"""Context trees by rows: predictive probabilities of the levels of rows, without tables of all contexts.

A `ContextTree` has an entry for each level given each combination of the parents' values. Rows have few of these, and a
context without rows has evidence 1, so that sums over prunings need only the contexts that rows have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesnb.families.special import log_rising

_HALF = np.log(0.5)
_LARGEST_COUNT = 2**20


class Depth(NamedTuple):
    """Contexts of d parents of n rows, for the first G columns, which have d parents or more.

    Parameters
    ----------
    context, entry : (n, G) int arrays
        Number of the context of each row and column, and of its pair (context, level), among those that rows have.
    first_child : (X,) int array
        First of the contexts with one parent more within each of the first X contexts; none at the greatest depth.
    log_evidence : (X', C) array
        Log probability of the counted levels of each context.
    mean : (E, C) array
        Posterior mean probability of the level of each pair.
    """

    context: Int[np.ndarray, "n G"]
    entry: Int[np.ndarray, "n G"]
    first_child: Int[np.ndarray, "X"]
    log_evidence: Float[np.ndarray, "Y C"]
    mean: Float[np.ndarray, "E C"]


@dataclass(frozen=True, eq=False)
class ContextsOfRows:
    """Contexts of the cells of n rows, with the counts of other rows in them.

    Parameters
    ----------
    observed : (n, H) bool array
        Whether the cell of each column with parents is observed.
    depths : list of Depth
        Contexts of 0, 1, … parents.
    """

    observed: Bool[np.ndarray, "n H"]
    depths: list[Depth]

    @classmethod
    def from_rows(
        cls,
        level: Int[np.ndarray, "N G"],
        given: Sequence[Int[np.ndarray, "N H"]],
        sizes: Int[np.ndarray, "G"],
        values: Sequence[Int[np.ndarray, "H"]],
        alpha: Float[np.ndarray, "G"],
        label: Int[np.ndarray, "N"],
        weight: Float[np.ndarray, "N"],
        n_classes: int,
        rows: Int[np.ndarray, "n"],
    ) -> Self:
        """Number the contexts of N rows, and count the rows in them.

        Parameters
        ----------
        level : (N, G) int array
            Level of each column, -1 where it is missing. Columns are sorted by their number of parents, most first.
        given : sequence of (N, G_d) int arrays
            Values of the first, second, … parent of the columns that have so many parents.
        sizes : (G,) int array
            Number of levels of each column.
        values : sequence of (G_d,) int arrays
            Number of values of each parent, missing included.
        alpha : (G,) array
            Concentration of all levels of a column together, in each context.
        label, weight : (N,) arrays
            Index of the class of each row, and its replication count; 0 for a row that is not counted.
        n_classes : int
            Number of classes, C.
        rows : (n,) int array
            Positions of the rows whose contexts are kept.
        """
        column = np.arange(level.shape[1])
        context, depths = np.broadcast_to(column, level.shape), []
        for parent, n_values in zip([*given, None], [*values, None], strict=True):
            entry, of = _number(context, np.maximum(level[:, : context.shape[1]], 0), sizes[column])
            counted = (level[:, : context.shape[1]] >= 0) & (weight > 0)[:, None]
            cell = (entry * n_classes + label[:, None])[counted]
            count = np.bincount(cell, np.broadcast_to(weight[:, None], entry.shape)[counted], len(of) * n_classes)
            log_evidence, mean = _read(count.reshape(-1, n_classes), of, alpha[column], sizes[column])
            kept, first_child = context[rows], np.zeros(0, int)
            if parent is not None and n_values is not None:
                splits = column < parent.shape[1]
                context, above = _number(context[:, : parent.shape[1]], parent, n_values[column[splits]])
                first_child, column = np.searchsorted(above, np.arange(splits.sum())), column[above]
            depths.append(Depth(kept, entry[rows], first_child, log_evidence, mean))
        n_children = given[0].shape[1] if given else 0
        return cls(level[rows, :n_children] >= 0, depths)

    def log_dependences(self, index: Int[np.ndarray, "n"], most: int) -> list[Float[np.ndarray, "n C H"]]:
        """(n, C, H) log p(level | class, contexts) - log p(level | class) for up to 1, 2, … `most` parents.

        H columns have parents; the value is 0 where a level is missing. Probabilities are averages over all prunings of
        the trees of contexts, as those of a `ContextTree` with log odds 0 that has so many parents.
        """
        means = [depth.mean[depth.entry[index]] for depth in self.depths]  # (n, G, C)
        n, last = self.observed.shape[1], len(means) - 1
        alone, observed = np.log(means[0][:, :n]), self.observed[index, :, None]
        found = [np.log(self._mix(index, means[: d + 1])[:, :n]) - alone for d in range(1, min(most, last) + 1)]
        differences = [np.swapaxes(difference * observed, 1, 2) for difference in found]
        return [differences[min(d, last - 1)] for d in range(most)] if n else []

    def _mix(self, rows: np.ndarray, means: list[np.ndarray]) -> np.ndarray:
        """(n, G, C) averages of the means (n, G, C) in the contexts of 0, 1, … parents of each row."""
        depths = self.depths[: len(means)]
        log_sum, mean = depths[-1].log_evidence, means[-1]
        for depth, shorter in zip(depths[-2::-1], means[-2::-1], strict=True):
            n, n_contexts = mean.shape[1], len(depth.first_child)
            stop = _HALF + depth.log_evidence[:n_contexts]
            both = np.logaddexp(stop, _HALF + np.add.reduceat(log_sum, depth.first_child, axis=0))
            last = np.exp(stop - both)[depth.context[rows, :n]]
            log_sum = np.concatenate([both, depth.log_evidence[n_contexts:]])
            mean = np.concatenate([mean + last * (shorter[:, :n] - mean), shorter[:, n:]], axis=1)
        return mean


def _number(context: np.ndarray, value: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number the pairs (context, value) that occur, in their order; return these (N, G) and the context of each pair.

    `sizes` are the numbers of values in each context.
    """
    start = np.cumsum(sizes) - sizes
    pair = start[context] + value
    occurs = np.zeros(int(sizes.sum()), bool)
    occurs[pair] = True
    return (np.cumsum(occurs) - 1)[pair], np.repeat(np.arange(len(sizes)), sizes)[occurs]


def _read(
    count: np.ndarray, of: np.ndarray, alpha: np.ndarray, sizes: np.ndarray
) -> tuple[Float[np.ndarray, "X C"], Float[np.ndarray, "E C"]]:
    """Log evidence (X, C) of contexts, and means (E, C) of their entries, from counts (E, C); `of` are the contexts."""
    start, each = np.searchsorted(of, np.arange(len(alpha))), (alpha / sizes)[of]
    total = np.add.reduceat(count, start, axis=0)
    evidence = np.add.reduceat(_log_rising(each, count), start, axis=0) - _log_rising(alpha, total)
    return evidence, (count + each[:, None]) / (total + alpha[:, None])[of]


def _log_rising(alpha: np.ndarray, count: np.ndarray) -> Float[np.ndarray, "E C"]:
    """(E, C) log Γ(α + n)/Γ(α) for α (E,) and counts n (E, C); of whole counts from a table."""
    most = int(count.max(initial=0))
    if most > _LARGEST_COUNT or (count != np.round(count)).any():
        return np.asarray(log_rising(alpha[:, None], count))
    distinct, which = np.unique(alpha, return_inverse=True)
    table = np.zeros((len(distinct), most + 1))
    table[:, 1:] = np.cumsum(np.log(distinct[:, None] + np.arange(most)), axis=1)
    return np.asarray(table[which[:, None], count.astype(np.int64)])
