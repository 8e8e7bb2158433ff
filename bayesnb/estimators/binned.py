"""Naive Bayes for numbers of any distribution: the average over all binnings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import jax
import numpy as np

from bayesnb._util.arguments import require_integer
from bayesnb._util.precision import float64
from bayesnb.encoding import CellColumns, Columns, Encoding, Levels, Rows, Table
from bayesnb.encoding.columns import check_edges
from bayesnb.encoding.table import read_labelled
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.estimators.defaults import CELLS, CLASS_ALPHA
from bayesnb.families import Binned, LevelCounts
from bayesnb.families.arrays import kernel
from bayesnb.fitted import counting
from bayesnb.model import Estimate

_MOST_CELLS = 256


@dataclass(eq=False, repr=False)
class BinnedNB(NaiveBayesClassifier):
    r"""Naive Bayes for numbers with densities of any shape: step functions, averaged over all binnings.

    Each feature is divided into G cells, and neighbouring cells are joined to bins: each of the G - 1 ends of cells is
    a cut or not, the same in all classes. A binning B has the bins b, and a cell g the probability

    .. math::

        & p(x_j \in g \mid c, B, \theta) = \theta_{cb} \frac{\alpha_g}{\alpha_b} \quad (g \in b), \\
        & \theta_c \mid B \sim \mathrm{Dirichlet}(\alpha_b), \quad \alpha_b = \sum_{g \in b} \alpha_g,

    with π ~ Dirichlet(`class_alpha`). Each end is a cut with prior odds 1/(G - 1), independently. Predictions average
    over all 2^(G - 1) binnings exactly, weighted by their posterior probabilities; see
    docs/derivations/binned.md, "All binnings".

    Parameters
    ----------
    cells : int, default 64
        Largest number of cells of a feature, 2 to 256. The ends of cells are quantiles of the rows that are counted
        first, between values that occur. `partial_fit` keeps these ends, and the outer cells extend to infinity.
    edges : dict or Series {column: edges}, or list with an entry per column, optional
        Ends of the cells, in place of quantiles, in the units of the column. A number on an edge belongs to the lower
        cell. Pass `edges_` of another classifier if the counts of both are to be added, as in streams and with dask.
    prior : "independent", IndependentCuts or NaiveBayes, default "independent"
        Prior of the cuts and of the probabilities of the bins, or a complete prior of the classifier. "independent" is
        `IndependentCuts(concentration=4.0, cuts=1.0)`: each of the G - 1 ends is a cut with the odds cuts/(G - 1), so
        that about one cut is expected, and each cell has α_g = concentration/G.
    class_alpha : scalar, (C,) array, or dict or Series by class, default 1
        Concentration of the Dirichlet prior of the class probabilities π: one number for all classes, or one per class.
        An array is in the order of `classes_`; a dict or Series names the classes.
    class_prior : (C,) array, dict or Series by class, or Dirichlet, optional
        Known class probabilities π, or a Dirichlet prior of π. Replaces `class_alpha`. An array is in the order of
        `classes_`; a dict or Series names the classes.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Estimate of the parameters that predictions use. "predictive" and "mean" are the average over all binnings.
        "map" takes the most probable cuts, and the mean of θ given these cuts, which is the mode in the softmax basis.
        "mle" is the histogram of the cells.

    Attributes
    ----------
    edges_ : dict {column: (G - 1,) array}
        Ends of the cells of each column, in the units of the column.
    time_units_ : dict {column name: unit}
        Units of the columns of dates ("days" since 1970, UTC) and of durations ("seconds"); only if there are any.
    classes_ : (C,) array
        Class labels, in the order of the class axis of every array.
    class_count_ : (C,) array
        Sum of the weights of the rows in each class.
    class_log_prior_ : (C,) array
        Logarithm of the posterior mean of each class probability.
    prior_, posterior_ : NaiveBayes
        Prior and posterior distribution of all parameters.
    statistics_ : Statistics
        Sum of the weights of the rows in each cell.
    log_evidence_ : float
        Log probability of the labels and of the *cells* of the numbers. It can be compared with other models of the
        same cells, not with densities.

    See Also
    --------
    GaussianNB : Normal densities.
    MixedNB : Normal or binned densities, chosen for each column.
    density_table : Posterior of the density of each feature.
    cut_table : Posterior probability of each cut.

    Notes
    -----
    NaN is a missing cell, which is marginalised. Densities are relative to that of the rows that are counted first:
    within a bin, all cells are equally probable. Quantiles do not depend on the labels, and a feature with no more
    values than cells has one cell per value. The cost grows with the square of the number of cells, and not with the
    number of rows.

    References
    ----------
    Endres & Földiák, *Bayesian bin distribution inference and mutual information*, IEEE Trans. Inf. Theory 51 (2005).
    Lustgarten et al., *Application of an efficient Bayesian discretization method to biomedical data*, BMC
    Bioinformatics 12 (2011).

    Examples
    --------
    >>> from bayesnb import BinnedNB
    >>> nb = BinnedNB().fit([[0.1], [0.3], [0.2], [5.1], [5.0], [5.2]], ["in", "in", "in", "out", "out", "out"])
    >>> nb.predict([[0.25], [7.0]])
    array(['in', 'out'], dtype='<U3')
    """

    _: KW_ONLY
    cells: int = CELLS
    edges: object = None
    prior: object = "independent"
    class_alpha: object = CLASS_ALPHA
    class_prior: object = None
    estimate: Estimate = "predictive"

    no_counts = (
        "A table of counts does not suffice, because the edges of the cells are learned from rows. Use fit(X, y) "
        "instead."
    )
    no_em = (
        "EM has no objective here, because the classifier averages densities with different numbers of bins. Pass "
        "GaussianNB(), or MixedNB(numbers='gaussian')."
    )

    def _columns(self, table: Table) -> tuple[Columns, ...]:
        """Return one block of binned columns; ends of cells are those of `edges`, or still to be learned."""
        return (cell_columns(table, range(len(table.names)), self.cells, self.edges),)

    @property
    def edges_(self) -> dict[str, np.ndarray]:
        """Ascending inner ends of the cells of each column, by name."""
        return cell_edges(self.encoding_.blocks)

    def _made_choices(self, encoding: Encoding) -> tuple[str, ...]:
        """Return the names of tuned hyperparameters, and of the cells if rows determined ends of cells."""
        return (*chosen_cells(self.edges, encoding), *super()._made_choices(encoding))

    _tags = ("allow_nan",)


def cell_columns(table: Table, index: Sequence[int], cells: int, edges: Any) -> CellColumns:
    """Make one block of binned columns at positions `index` of a table, with up to `cells` cells each.

    Ends of cells are `edges` where given; other columns learn quantiles from the first rows.
    """
    require_integer("cells", cells, least=2, most=_MOST_CELLS)
    given = check_edges(edges, table, index)
    widest = max((len(ends) + 1 for ends in given if ends is not None), default=0)
    if widest > _MOST_CELLS:
        raise ValueError(f"edges cut a column into {widest} cells (bins); at most {_MOST_CELLS} are allowed.")
    return CellColumns(*table.columns_at(index), given, cells)


@float64
def most_probable_cuts(
    classes: Levels, columns: CellColumns, rows: Rows, label: np.ndarray, weight: np.ndarray
) -> list[np.ndarray]:
    """Return for each column the edges that are cuts in its most probable binning, by the default prior."""
    counted = counting.count_rows(Encoding(classes, (columns,)), (rows,), label, weight)
    cut = np.asarray(_best_cuts(columns.prior("independent", "numbers", len(classes)), counted.blocks[0]))
    cuts_by_column = np.split(cut, columns.start()[1:])
    return [
        np.zeros(0) if edges is None else edges[is_cut[1:]]
        for edges, is_cut in zip(columns.edges, cuts_by_column, strict=True)
    ]


@kernel
def _best_cuts(prior: Binned, statistics: LevelCounts) -> jax.Array:
    """Return a (L,) mask of the cells, columns one after another, that begin a bin in the most probable binning."""
    return prior.update(statistics).best_cuts()


def cell_edges(blocks: tuple[Columns, ...]) -> dict[str, np.ndarray]:
    """Return the inner ends of the cells of each binned column, by name; empty for a column without observed cells."""
    binned: list[Any] = [columns for columns in blocks if columns.kind == "binned"]
    pairs = (pair for columns in binned for pair in zip(columns.names, columns.edges, strict=True))
    return {name: np.zeros(0) if edges is None else edges for name, edges in pairs}


def chosen_cells(edges: Any, encoding: Encoding) -> tuple[str, ...]:
    """Return ("the cells of numbers",) if rows, and not `edges`, gave the cells of some binned column; else ()."""
    named = read_labelled("edges", edges)
    given = sum(ends is not None for ends in (() if edges is None else edges)) if named is None else len(named)
    binned = sum(len(columns.names) for columns in encoding.blocks if columns.kind == "binned")
    return ("the cells of numbers",) if binned > given else ()


__all__ = ["BinnedNB", "cell_columns", "cell_edges", "chosen_cells", "most_probable_cuts"]
