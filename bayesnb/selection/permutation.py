"""Null distribution of a score over permutations of the labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import shuffle

from bayesnb._util.arguments import require_integer, require_seed, shown
from bayesnb._util.terminal import progress


@dataclass(frozen=True, eq=False)
class PermutationNull:
    """A statistic of labelled rows, and its distribution over permutations of the labels.

    Attributes
    ----------
    observed : float
        Score of the observed labels.
    null : (P,) array
        Scores of permuted labels.

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
        """(1 + number of permutations that reach `observed`) / (1 + P): valid for any number P, and never 0.

        An undefined score, NaN, counts as one that reaches `observed`.
        """
        return float((1 + np.sum(~(self.null < self.observed))) / (1 + len(self.null)))

    def __repr__(self) -> str:
        low, middle, high = np.quantile(self.null, [0.05, 0.5, 0.95])
        return (
            f"PermutationNull(observed {self.observed:.3f}; {len(self.null)} permutations: median {middle:.3f}, 90% "
            f"within [{low:.3f}, {high:.3f}]; p = {self.p_value:.3g})"
        )


def permutation_null(
    procedure: Callable[[Any], float], y: object, permutations: int = 99, seed: int = 0
) -> PermutationNull:
    """Compute the distribution of a score over permuted labels, with every choice on the rows made anew.

    Parameters
    ----------
    procedure : function of labels
        The whole computation of the score, such as a log Bayes factor, an elpd or a difference of two, including the
        choice of structures, strengths of priors and features from the labels that are passed.
    y : array-like of shape (N,)
        Labels.
    permutations : int, default 99
        Number of permutations, P.
    seed : int
        Seed of the permutations.

    Returns
    -------
    PermutationNull
        Score of the observed labels, scores of the permuted ones, and the p-value.

    Notes
    -----
    The evidence and `loo` of a model with a structure or an α that was chosen on the same rows are too good, and no
    formula tells by how much. Permuted labels do not depend on the columns, so that the scores show the effect of the
    choice alone. Columns keep their dependence on each other: for a null hypothesis of independent columns see
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
        raise TypeError(f"procedure must be callable as procedure(y), and return a score; it is {shown(procedure)}.")
    random = np.random.RandomState(np.random.MT19937(seed))
    null = []
    with progress("permutations", permutations) as tick:
        for _ in range(permutations):
            null.append(float(procedure(shuffle(y, random_state=random))))
            tick()
    return PermutationNull(float(procedure(y)), np.array(null))
