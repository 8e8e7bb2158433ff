"""Naive Bayes averaged over all trees between the features."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import jax
import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesnb._util.arguments import require_integer, require_seed
from bayesnb._util.precision import float64
from bayesnb.encoding import Encoding, Node, NodeColumns, PairColumns
from bayesnb.estimators.defaults import ALPHA, CELLS
from bayesnb.estimators.network_base import StructuredNB, pair_counts
from bayesnb.families.arrays import kernel, xp
from bayesnb.families.protocol import Variates
from bayesnb.fitted.state import NotOfferedError
from bayesnb.uncertainty.draws import ask, run

if TYPE_CHECKING:
    import pandas as pd


@dataclass(eq=False, repr=False)
class TreeAveragedNB(StructuredNB):
    r"""Naive Bayes augmented by an unknown tree: the exact average over all trees between the columns.

    A priori all F^(F - 2) trees T are equally probable, and each arc is real with probability ½, so that naive Bayes
    and all forests are included. The average over all of these is

    .. math::

        p(c, x \mid D) = p(c \mid D) \prod_u p(x_u \mid c, D) \cdot
        \frac{\sum_T \prod_{uv \in T} (1 + B_{uv} r_{uv})}{\sum_T \prod_{uv \in T} (1 + B_{uv})},

    with B_uv the Bayes factor of dependence of u and v given the class, and r_uv the ratio of p(x_u, x_v | c, D) to
    p(x_u | c, D) p(x_v | c, D); see docs/derivations/structures.md, "All trees". The priors are π ~
    Dirichlet(`class_alpha`) and, for the levels of each pair of columns in each class, Dirichlet(S/(L_u L_v)).

    Parameters
    ----------
    alpha : float, default 1
        Equivalent sample size S of the prior, in rows per class: each of the L levels of a column has the Dirichlet
        concentration S/L, and each pair of levels of two columns S/(L_u L_v).
    class_alpha : scalar, (C,) array, or dict or Series by class, default 1
        Concentration of the Dirichlet prior of the class probabilities π: one number for all classes, or one per class.
        An array is in the order of `classes_`; a dict or Series names the classes.
    class_prior : (C,) array, dict or Series by class, or Dirichlet, optional
        Known class probabilities π, or a Dirichlet prior of π. Replaces `class_alpha`. An array is in the order of
        `classes_`; a dict or Series names the classes.
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
    numbers : {"gaussian", "binned"}, default "binned"
        Treatment of the columns that `gaussian="auto"` or `"dtype"` selects. "gaussian": they are normal given the
        class, and take no part in the structure. "binned": they take part in the structure by their cells, `edges_`. A
        number then counts as its cell. The ends of cells are the cuts of the most probable binning of the rows that are
        counted first, which depends on their labels.
    cells : int, default 64
        Largest number of cells of a column of numbers, 2 to 256.
    prior : NaiveBayes, optional
        Complete prior of the classifier, such as `prior_` of another one. Replaces `alpha`, `gaussian_prior`,
        `class_alpha` and `class_prior`.

    Attributes
    ----------
    arc_probability_ : (F, F) DataFrame
        Posterior probability that the arc between two columns, by name, is real.
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
        Logarithm of the posterior mean of each class probability.
    prior_, posterior_ : NaiveBayes
        Prior and posterior distribution of all parameters.
    statistics_ : Statistics
        Sufficient statistics of the counted rows.
    log_evidence_ : float
        Log evidence log p(X, y): the parameters are integrated out.

    See Also
    --------
    TAN : Best tree instead of the average.
    AODE : Average over networks with one common parent.
    posterior_draws : Draws of the parameters of a tree.
    KDB.parents_from : Network from the counts of pairs.

    Notes
    -----
    Intervals, the split of entropy, posterior draws and decisions include the uncertainty about the tree. If a column
    is missing in a row, the arcs of the column are left out for that row; the sum over the values of the missing cell,
    which would connect its neighbours, is not computed. Cells count for a pair of columns if both are observed. With
    missing cells there are no evidence, draws and intervals, as the tables of pairs and of columns do not agree.

    The parameters are those of a tree: `draw_trees` and `posterior_draws` draw them, and `parameter_table` and
    estimates other than "predictive" are not offered. There is one term per column, as in naive Bayes, and one for the
    contribution of all arcs. The score of a row takes F³/3 steps per class.

    References
    ----------
    Meilă & Jaakkola, *Tractable Bayesian learning of tree belief networks*, Stat. Comput. 16 (2006). Cerquides & López
    de Mántaras, *TAN classifiers based on decomposable distributions*, Machine Learning 59 (2005).

    Examples
    --------
    >>> from bayesnb import TreeAveragedNB
    >>> X = [["sun", "hot"], ["sun", "hot"], ["rain", "cold"], ["rain", "cold"]] * 5
    >>> TreeAveragedNB().fit(X, ["out", "in"] * 10).arc_probability_.loc["0", "1"].round(3)
    np.float64(1.0)
    """

    alpha: float = ALPHA
    _: KW_ONLY
    numbers: str = "binned"
    cells: int = CELLS
    prior: object = None

    estimate = "predictive"
    _has_margins = False

    @property
    def arc_probability_(self) -> pd.DataFrame:
        """Posterior probability that the arc between two columns is real, an (F, F) table; the diagonal is 0."""
        import pandas as pd

        names, tree_posterior = self._tree_posterior()
        matrix = np.zeros((len(names), len(names)))
        if len(names) > 1:
            matrix[np.triu_indices(len(names), 1)] = float64(_arc_probability)(tree_posterior)
        return pd.DataFrame(matrix + matrix.T, names, names)

    def draw_trees(self, draws: int = 1000, seed: int = 0) -> np.ndarray:
        """Draw S trees from their exact posterior, as parents (S, F) of the columns.

        Parameters
        ----------
        draws : int, default 1000
            Number of draws, S.
        seed : int, default 0
            Seed of the draws.

        Returns
        -------
        (S, F) int array
            Parent of each column, by its position in `arc_probability_`; -1 without a real arc to a parent. Arcs have
            no direction: any column may be the root.

        Examples
        --------
        >>> from bayesnb import TreeAveragedNB
        >>> X, y = [["a", "u"], ["b", "v"]] * 10, ["p"] * 10 + ["q"] * 10
        >>> trees = TreeAveragedNB().fit(X, y).draw_trees(1000)
        >>> trees.shape, trees[:2].tolist()
        ((1000, 2), [[1, -1], [1, -1]])
        """
        require_integer("draws", draws)
        require_seed(seed)
        names, tree_posterior = self._tree_posterior()
        if not names:
            return np.empty((draws, 0), int)
        variates = float64(ask)(_draw_trees, tree_posterior)
        return np.asarray(float64(run)(_draw_trees, variates, draws, np.random.default_rng(seed), tree_posterior))

    def pair_counts(self) -> tuple[NodeColumns, np.ndarray]:
        """Return the categorical columns, and the (C, L, L) weight of the rows of each class with both of two levels.

        Returns
        -------
        columns, counts : NodeColumns, (C, L, L) array
            Categorical columns with their levels, and the (C, L, L) array of weights over the L levels of all columns.

        Examples
        --------
        >>> from bayesnb import TreeAveragedNB
        >>> X = [["sun", "dry"], ["sun", "wet"], ["rain", "wet"]]
        >>> columns, counts = TreeAveragedNB().fit(X, ["out", "out", "out"]).pair_counts()
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
        """Raise NotOfferedError: trees are averaged, see `arc_probability_`."""
        raise NotOfferedError("parents_: TreeAveragedNB has no single tree. Use arc_probability_ or draw_trees.")

    def query(self, variables: object, given: object = None) -> NoReturn:
        """Raise NotImplementedError: an average of networks is not a network."""
        raise NotImplementedError("query: TreeAveragedNB is an average of networks. Query a TAN or NetworkNB.")

    # -- shared machinery ------------------------------------------------------------------------

    def _tree_posterior(self) -> tuple[list[str], Any]:
        """Return the names of the columns in the tree, and the posterior of trees; None if no column is."""
        network = self._network
        return ([], None) if network is None else (list(network.names), self.fitted_.posterior.blocks[0])

    @property
    def _table_type(self) -> type[NodeColumns]:
        """Type of the network's columns, `PairColumns`: all columns alone, and all pairs."""
        return PairColumns

    def _arcs(self, encoding: Encoding, columns: NodeColumns, counts: np.ndarray | None) -> tuple[Node, ...]:
        """Return the nodes that the columns have: each column alone, and each pair of columns once."""
        return columns.nodes

    def _check_nodes(self, columns: NodeColumns) -> None:
        """Raise ValueError unless the nodes are all columns alone, then all pairs of columns."""
        columns.check()


@kernel
def _arc_probability(family: Any) -> jax.Array:
    """Compute (F (F - 1)/2,) posterior probabilities of arcs, pairs in the order of `np.triu_indices(F, 1)`."""
    return xp.asarray(family.arc_probability())


def _draw_trees(variates: Variates, n: int, family: Any) -> Any:
    """Draw (n, F) parents of the columns from the posterior of trees, by the given variates; -1 for none."""
    return family.draw_trees(variates, n)
