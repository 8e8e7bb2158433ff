"""Tree-augmented naive Bayes."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from bayesnb import networks as structure
from bayesnb._util.arguments import bad_argument, require_choice, shown
from bayesnb._util.warnings import warn
from bayesnb.encoding import Columns, Encoding, Node, NodeColumns
from bayesnb.estimators.network_base import StructuredNB, position
from bayesnb.model import Estimate

_FEWEST = 0.5
"""Smallest fraction of the rows with a column that must have its parent too, or else `fit` warns."""


class _Criterion:
    """Descriptor of `score`: set as the hyperparameter that scores arcs, read as scikit-learn's method, accuracy."""

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return StructuredNB.score if instance is None else StructuredNB.score.__get__(instance)

    def __set__(self, instance: object, value: object) -> None:
        vars(instance)["score"] = value


@dataclass(eq=False, repr=False)
class TAN(StructuredNB):
    r"""Tree-augmented naive Bayes: each column has at most one other column as a parent, learned from the rows.

    Each feature depends on the class and on at most one other feature, its parent in a tree or forest:

    .. math::

        & p(c, x \mid \pi, \theta) = \pi_c \prod_{j=1}^F p(x_j \mid x_{\mathrm{pa}(j)}, c), \\
        & \theta_{cju} \sim \mathrm{Dirichlet}(\alpha),

    where θ_cju are the probabilities of the levels of feature j in class c if its parent has level u, and π ~
    Dirichlet(`class_alpha`); see docs/derivations/structures.md, "Learned trees".

    Parameters
    ----------
    score : {"mi", "evidence"}, default "mi"
        Score of an arc. "mi": the mutual information of the two columns given the class, times the number of rows in
        which both are observed. The tree is the maximum spanning tree, with F - 1 arcs unless two columns were never
        observed together. "evidence": the log posterior odds of the arc against no arc. A priori a column has no other
        parent with probability ½, and each of the F - 1 others with probability 1/(2 (F - 1)). The arcs are the most
        probable forest, without the arcs that the rows do not support.
    root : column name or index, optional
        Root of the tree, from which the arcs lead away, for "mi". Default: the first categorical column. The root makes
        no difference to the maximum likelihood, and hardly any to the other estimates. With "evidence" the scores
        determine the directions of the arcs.
    alpha : scalar, (F,) array, list of F arrays, (C, L) array, or dict or Series by column, default 1
        Dirichlet concentration. With "mi": of each level of a column given each value of its parent. With "evidence":
        of each level of a column given the class alone. Given a parent, this concentration is divided by the number of
        values of the parent, in the scores of arcs and in the tables (see `prior_`): the prior of a column then counts
        as the same number of rows with a parent as without. Otherwise each arc would add shrinkage, and would be chosen
        for that reason. `alpha=[s / n for n in levels]` is the BDeu prior of equivalent sample size s per class, under
        which the score of an arc is the same in both directions. A dict or Series is matched by name, such as
        `{"colour": {"green": 2.0}, "root": 0.5}`. Concentrations that it does not name are 1; a level that it names is
        declared.
    class_alpha : scalar, (C,) array, or dict or Series by class, default 1
        Concentration of the Dirichlet prior of the class probabilities π: one number for all classes, or one per class.
        An array is in the order of `classes_`; a dict or Series names the classes.
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
        class, and take no part in the structure. "binned": they take part in the structure by their cells, `edges_`.
        With "binned", the column has two terms: its density given the class, normal or binned as
        `MixedNB(numbers="auto")` chooses, and the dependence of its cell q_j on the parents, log p(q_j | c, parents) -
        log p(q_j | c).
    cells : int, default 6
        Largest number of cells of a column of numbers, 2 to 256.
    tables : {"full", "context"}, default "full"
        Probability tables of a column given its parents. "full": one Dirichlet for each joint value of the parents.
        "context": the exact average over the number of parents that matter for each of their values (context trees:
        docs/derivations/structures.md, "Context trees"). `alpha` is then the concentration of all levels of a column
        together, and a missing parent counts as one more value.
    prior : NaiveBayes, optional
        Complete prior of the classifier, such as `prior_` of another one. Replaces `alpha`, `gaussian_prior`,
        `class_alpha` and `class_prior`.

    Attributes
    ----------
    parents_ : dict {name: name, tuple of names, or None}
        Parents of each column besides the class.
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
    TreeAveragedNB : Average over all trees instead of the best one.
    KDB : Up to k parents per column.
    NetworkNB : Network that you give.
    permutation_null : Scores of structures that are learned from permuted labels.

    Notes
    -----
    The tree is learned from the same rows as the parameters. All results (evidence, leave-one-out, intervals) are
    conditional on the tree, and do not include the uncertainty about the tree. Intervals of 90% for P(class | row, θ)
    covered 90 to 91% of 1,500 data sets given the true tree, with 0, 10 and 30% of the cells missing, and .85 to .89 if
    the tree was learned from the same rows. `loo` and `bayes_factor` are optimistic, and their `notes` say so;
    `permutation_null` refits the tree too.

    `partial_fit` counts further rows for the tree that `fit` has learned, and `tune_alpha` keeps the tree. `run_nuts`
    with a hyperprior gives each table a concentration, whatever `score` is. A cell whose parent is missing in a row
    does not count, so that columns that are mostly missing are poor parents, and `fit` warns of them. Columns of more
    than 1,000 levels, such as free texts, have no arcs.

    References
    ----------
    Friedman, Geiger & Goldszmidt, *Bayesian network classifiers*, Machine Learning 29 (1997). Heckerman, Geiger &
    Chickering, *Learning Bayesian networks*, Machine Learning 20 (1995), for "evidence".

    Examples
    --------
    >>> from bayesnb import TAN
    >>> X = [["sun", "hot"], ["sun", "hot"], ["rain", "cold"], ["rain", "cold"]] * 5
    >>> TAN().fit(X, ["out", "in"] * 10).parents_
    {'0': None, '1': '0'}
    """

    score: Any = "mi"
    root: object = None
    _: KW_ONLY
    estimate: Estimate = "predictive"
    tables: str = "full"
    prior: object = None

    _learned = "the tree"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the hyperparameters by name; `score` is the score of arcs.

        Parameters
        ----------
        deep : bool, default True
            Whether to include the hyperparameters of nested estimators.

        Returns
        -------
        dict
            Hyperparameters by name.
        """
        return super().get_params(deep) | {"score": self._criterion}

    def _arcs(self, encoding: Encoding, columns: NodeColumns, counts: np.ndarray | None) -> tuple[Node, ...]:
        """Return a node (child,) or (child, parent) per column: the maximum spanning tree, or best branching.

        The tree has the largest mutual information given the class (score="mi"), the branching the largest posterior
        odds (score="evidence"). Without `counts` there are no nodes. A warning names parents that are mostly missing.
        """
        root = self._checked_root(encoding, columns)
        if counts is None:
            return ()
        sizes, names = columns.base.sizes(), columns.base.names
        if self._criterion == "mi":
            n_both = structure.observed_pairs(counts, sizes)
            # An arc is scored by its gain in log likelihood, as few common rows have much information by chance.
            nodes = structure.maximum_spanning_tree(n_both * structure.mutual_information(counts, sizes), root)
            nodes = tuple(node[:1] if len(node) == 2 and not n_both[node] else node for node in nodes)
            arcs = [node for node in nodes if len(node) == 2]
            seldom = {names[child]: names[p] for child, p in arcs if n_both[child, p] < _FEWEST * n_both[child, child]}
            if seldom:
                warn(
                    "TAN: these columns have a parent that is missing in most of the rows where the column is "
                    f"observed, {{column: parent}}: {seldom}. These rows do not count for the column. Leave the "
                    "parents out of X, or replace missing cells by a level, such as 'missing'."
                )
            return nodes
        alpha = np.asarray(self._prior_given_class(columns, len(encoding.classes)).concentration)
        if not (alpha > 0).all():
            raise bad_argument("alpha", self.alpha, "positive, because score='evidence' needs a proper prior")
        # A priori a column has no other parent with probability ½, else each of the other columns equally probably.
        prior_odds = 1.0 / max(1, len(sizes) - 1)
        return structure.maximum_branching(structure.log_bayes_factors(counts, sizes, alpha) + np.log(prior_odds))

    @property
    def _criterion(self) -> str:
        """Hyperparameter `score`."""
        return vars(self).get("score", "mi")

    def _block_prior(self, columns: Columns, n_classes: int) -> Any:
        """Return the prior of one block; full tables under score="evidence" have the prior that scored arcs.

        That is the prior given the class alone, with concentrations divided by the number of values of the parent.
        """
        if self._criterion != "evidence" or type(columns) is not NodeColumns:
            return super()._block_prior(columns, n_classes)
        return structure.share_among_parents(self._prior_given_class(columns, n_classes), columns)

    @property
    def _divides_alpha(self) -> bool:
        """Whether the concentrations of a column are divided among the values of its parent."""
        return vars(self).get("score", "mi") == "evidence" and self.prior is None and self._table_type is NodeColumns

    def _checked_root(self, encoding: Encoding, columns: NodeColumns) -> int:
        """Return the position of `root`, by default 0; raise ValueError if `root` or `score` cannot be used."""
        require_choice("score", self._criterion, ("mi", "evidence"))
        return 0 if self.root is None else position(encoding, columns, self.root, "root")

    def _check_nodes(self, columns: NodeColumns) -> None:
        """Raise ValueError unless nodes are a forest of all columns, and `score` and `root` can be used."""
        super()._check_nodes(columns)
        self._checked_root(self.encoding_, columns)
        names = columns.base.names
        for child, *parents in columns.nodes:
            if len(parents) > 1:
                raise ValueError(
                    f"Column {shown(names[child])} has the parents {[names[p] for p in parents]}; in a tree a column "
                    "has at most one. Fit the classifier again, or use KDB or NetworkNB."
                )


TAN.score = _Criterion()  # The field gives the default of `__init__`.
