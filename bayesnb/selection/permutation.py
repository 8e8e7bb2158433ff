"""What a comparison of models says where labels mean nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import shuffle

from bayesnb._util.arguments import require_integer, require_seed, shown
from bayesnb._util.progress import progress
from bayesnb.fitted import Fitted


@dataclass(frozen=True, eq=False)
class PermutationNull:
    """A statistic of labelled rows, and its distribution over permutations of the labels.

    Attributes
    ----------
    observed : float
        With the labels as they are.
    null : (P,) array
        With permuted ones.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> X, y = [["a"], ["b"], ["a"], ["b"]] * 3, ["p", "q", "p", "q"] * 3
    >>> bnb.permutation_null(lambda y: bnb.CategoricalNB().fit(X, y).log_evidence_, y, permutations=19)
    PermutationNull(observed -13.285; 19 permutations: median -18.702, 90% within [-19.277, -18.518]; p = 0.05)
    """

    observed: float
    null: np.ndarray

    @property
    def p_value(self) -> float:
        """(1 + number of permutations that reach `observed`) / (1 + P): valid however few there are, and never 0.

        A score that is not defined, NaN, is no evidence: it counts as reached.
        """
        return float((1 + np.sum(~(self.null < self.observed))) / (1 + len(self.null)))

    def __repr__(self) -> str:
        low, middle, high = np.quantile(self.null, [0.05, 0.5, 0.95])
        return (
            f"PermutationNull(observed {self.observed:.3f}; {len(self.null)} permutations: median {middle:.3f}, 90% "
            f"within [{low:.3f}, {high:.3f}]; p = {self.p_value:.3g})"
        )


def permutation_null(
    procedure: Callable[[Any], float], y: Any, permutations: int = 99, seed: int = 0
) -> PermutationNull:
    """The distribution of a score over permuted labels: what is chosen on the rows is chosen anew each time.

    Parameters
    ----------
    procedure : function of labels
        All that led to the number, with structures, strengths of priors and features chosen from the labels that it is
        given: a log Bayes factor, an elpd, a difference of two.
    y : array-like of shape (N,)
    permutations : int, default 99
    seed : int

    Returns
    -------
    PermutationNull

    Notes
    -----
    The evidence and `loo` of a model with a structure or an α that was chosen on the same rows are too good, and no
    formula says by how much. Here labels tell nothing of the columns, so that what the procedure finds is the work of
    choosing. Columns keep their dependence on each other: this is no null of independent columns, for which see
    `check_independence`.

    References
    ----------
    Phipson & Smyth, *Permutation p-values should never be zero*, Stat. Appl. Genet. Mol. Biol. 9 (2010).

    Examples
    --------
    >>> import bayesnb as bnb
    >>> X, y = [["a", "u"], ["b", "u"], ["a", "v"], ["b", "v"]] * 3, ["p", "p", "q", "q"] * 3
    >>> def elpd(y):
    ...     return bnb.loo(bnb.TAN("evidence").fit(X, y), X, y).elpd
    >>> bnb.permutation_null(elpd, y, permutations=19).p_value
    0.05
    """
    require_integer("permutations", permutations)
    require_seed(seed)
    if not callable(procedure):
        raise TypeError(f"procedure must be a function of the labels, and is {shown(procedure)}.")
    random = np.random.RandomState(np.random.MT19937(seed))
    null = []
    with progress("permutations", permutations) as tick:
        for _ in range(permutations):
            null.append(float(procedure(shuffle(y, random_state=random))))
            tick()
    return PermutationNull(float(procedure(y)), np.array(null))


def chosen_on_rows(fitted: Fitted) -> str | None:
    """What beside the parameters was chosen on the rows that were counted, in words."""
    return " and ".join(fitted.chosen) or None
