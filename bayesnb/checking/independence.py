"""Pairs of features that depend on each other given the class."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd

from bayesnb._util.arguments import require_integer, require_seed
from bayesnb._util.terminal import progress
from bayesnb.checking.cells import Cells, NumberCells, read_cells, require_memory, require_pair
from bayesnb.checking.dependence import compare
from bayesnb.fitted.state import Classifier, require_posterior

_MOST_PAIRS, _BYTES_A_PAIR = 2_000_000, 64
_LEVELS, _NUMBERS = 512, 128


def check_independence(
    nb: Classifier,
    X: object,
    y: object,
    *,
    features: Iterable[object] | None = None,
    top: int | None = None,
    draws: int = 200,
    seed: int = 0,
) -> pd.DataFrame:
    """Compare dependence and independence given the class for each pair of features.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        A classifier whose levels and prior are used.
    X : array-like, sparse matrix or DataFrame of shape (N, F)
        Rows, usually those that `nb` was fitted to.
    y : array-like of shape (N,)
        Labels of the rows.
    features : iterable of column names or indices, optional
        Features to compare; default: all.
    top : int, optional
        Number of pairs to return, those with the largest Bayes factors; all pairs are compared. Default: all.
    draws : int
        Number of replicates for each p-value, which is never below 1/(draws + 1).
    seed : int
        The same seed gives the same p-values.

    Returns
    -------
    DataFrame
        One row for each pair, sorted by log_bayes_factor, largest first; feature_1 precedes feature_2 in X.

        feature_1, feature_2
            names of the features
        rows
            number of rows in which both features are observed; only these rows are used.
        log_bayes_factor
            log p(both | class, dependent) - log p(both | class, independent), in nats.
        mutual_information
            estimate of the mutual information given the class, in nats.
        p_value
            probability, under independence, of at least this mutual information; for levels, over all permutations of
            the rows within each class, so that P(p_value ≤ u) ≤ u for any frequencies and any number of rows.

    Raises
    ------
    ValueError
        If there are fewer than two features, or more than two million pairs and no `top`; if the data cannot be
        used.
    ImproperPosteriorError
        If the prior of a feature is improper: it has no Bayes factors.
    NotImplementedError
        For Gaussian features whose priors differ in a; for classifiers without an exact posterior, whose prior is
        not that of one model.

    Notes
    -----
    Every row has the weight 1. Each feature by itself has the same prior under both hypotheses (numbers beside levels:
    their mean over the rows, and their variance), so the Bayes factor measures dependence alone:

    - *Levels and levels*: a Dirichlet over the table of each class with concentrations A_lm = α_l α'_m / α₀, against
      the product of the Dirichlets that are its marginals, Σ_c log B(A + n)/B(A) - log B(A₁ + n₁)/B(A₁) -
      log B(A₂ + n₂)/B(A₂). Where α and α' have one total, α₀, the marginals are the prior of `nb`, A₁ = α and A₂ = α'.
      No Dirichlet over pairs has marginals of two totals: then α₀ is their geometric mean, for both hypotheses. Mutual
      information: that of the observed tables, which is positive even under independence; p-values from random tables
      with the margins of each class.
    - *Gaussian and Gaussian*: an inverse Wishart with ν = 2a + 1 and Ψ = diag(2b, 2b') (Geiger & Heckerman 2002),
      against the two inverse gammas that are its marginals, of the deviations from the mean of the class (n_c - 1
      contrasts): the location of the class carries no information. Mutual information: Σ_c n_c/n · (-½ log(1 - r_c²));
      r² ~ Beta(½, (n_c - 2)/2) under independence, exactly.
    - *Levels and Gaussian*: analysis of variance: means of the levels, N(μ, σ² n_c/(κ n_cl)) with one σ² (the g-prior
      with g = n_c/κ; Liang et al. 2008), against one mean, of the same contrasts. Mutual information: -½ log(1 - η²),
      η² the share of the squares between levels; η² ~ Beta((L - 1)/2, (n_c - L)/2), exactly if Gaussian.
    - *Levels and Poisson*: rates Gamma(a s, b s) of levels that have the share s = n_cl/n_c of the rows, whose mean
      over the rows is Gamma(a, b), against one rate with this prior. Mutual information as for Gaussian features.
    - *Poisson and Gaussian*: the Poisson feature becomes a level, above its median in the class or not.
    - *Poisson and Poisson*: either may become the level; both alternatives have probability ½. The mutual information
      of Poisson features is that of the correlation, and their p-values are approximate where counts are small.
    - *Binned columns*: their cells are the levels. There are many, so the Bayes factor detects strong dependence only;
      `MixedNB(gaussian=...)` compares such columns as numbers.
    - *Words* (multinomial features): whether each occurs in a row, as two levels with concentration 1. Words of a row
      share its length, and this too makes them dependent.

    The check detects means, rates and correlations that depend on the other feature, but not variances that do.
    Overdispersed counts (variance above the Poisson variance) seem to depend on any other feature.

    A Bayes factor compares these two hypotheses only. Strong evidence of dependence means that P(class | row) is
    overconfident, not that the predicted labels are wrong.

    References
    ----------
    Gunel & Dickey, *Bayes factors for independence in contingency tables*, Biometrika 61 (1974). Geiger & Heckerman,
    *Parameter priors for directed acyclic graphical models*, Ann. Stat. 30 (2002). Liang et al., *Mixtures of g priors
    for Bayesian variable selection*, JASA 103 (2008). Patefield, *An efficient method of generating random R × C tables
    with given row and column totals*, Appl. Stat. 30 (1981).

    Examples
    --------
    >>> from bayesnb import CategoricalNB
    >>> from bayesnb.checking import check_independence
    >>> X, y = [["sun", "hot"], ["rain", "cold"]] * 20, ["out", "in"] * 10 + ["in", "out"] * 10
    >>> check_independence(CategoricalNB().fit(X, y), X, y)[["feature_1", "feature_2", "log_bayes_factor"]].round(1)
      feature_1 feature_2  log_bayes_factor
    0         0         1              23.4
    """
    fitted = require_posterior(nb, "check_independence")
    if top is not None:
        require_integer("top", top)
    require_integer("draws", draws)
    require_seed(seed)
    names = fitted.encoding.feature_names
    chosen = set(range(len(names))) if features is None else fitted.encoding.positions(features)
    n_features = len(chosen)
    require_pair(n_features)
    n_pairs = n_features * (n_features - 1) // 2
    if top is None and n_pairs > _MOST_PAIRS:
        raise ValueError(
            f"{n_features:,} features make {n_pairs:,} pairs, a table of {n_pairs * _BYTES_A_PAIR / 1e9:.1f} GB. "
            "Set top=1000 for the strongest pairs, or name some columns in features=."
        )
    cells, bounds = read_cells(fitted, X, y, chosen)
    require_memory(cells, len(bounds) - 1, names)
    for group in cells:
        if isinstance(group, NumberCells) and (
            refusal := group.prior.pairs_refusal([names[int(j)] for j in group.index])
        ):
            raise NotImplementedError(refusal)
    rng = np.random.default_rng(seed)
    parts: list[pd.DataFrame] = []
    with progress("Pairs of features", n_pairs) as tick:
        for first, second, mask in _pair_blocks(cells):
            evidence = compare(first, second, bounds)
            i, j = np.nonzero(mask)
            lower, upper = np.sort([first.index[i], second.index[j]], axis=0)
            part = pd.DataFrame({"first": lower, "second": upper, "rows": evidence.rows[mask].astype(np.int64)})
            part["log_bayes_factor"] = evidence.log_bayes_factor[mask]
            if top is None:
                part["mutual_information"], part["p_value"] = evidence.examine(mask, draws, rng)
            parts = [*parts, part] if top is None else [_strongest(pd.concat([*parts, part]), top)]
            tick(len(part))
    table = _strongest(pd.concat(parts), top)
    if top is not None:
        table["mutual_information"], table["p_value"] = _examine(cells, bounds, table, draws, rng)
    pairs = [[names[j] for j in table.pop(column)] for column in ("first", "second")]
    return pd.DataFrame({"feature_1": pairs[0], "feature_2": pairs[1]}).join(table)


def _strongest(pairs: pd.DataFrame, top: int | None) -> pd.DataFrame:
    """Return the `top` pairs with the largest Bayes factors, sorted by these; None: all pairs, sorted."""
    order = np.lexsort((pairs["second"], pairs["first"], -pairs["log_bayes_factor"]))
    return pairs.iloc[order[:top]].reset_index(drop=True)


def _examine(
    cells: list[Cells], bounds: np.ndarray, pairs: pd.DataFrame, draws: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Compute (P,) mutual information in nats, and p-values by `draws` replicates, of P pairs of columns.

    `bounds` (C + 1,) are the first row of each class, and the number of rows.
    """
    position = {int(j): (group, at) for group, c in enumerate(cells) for at, j in enumerate(c.index)}
    information, p_value = np.empty(len(pairs)), np.empty(len(pairs))
    with progress("Replicates", len(pairs)) as tick:
        for row, pair in enumerate(zip(pairs["first"], pairs["second"], strict=True)):
            (g, a), (h, b) = sorted(position[j] for j in pair)
            evidence = compare(cells[g].take(np.array([a])), cells[h].take(np.array([b])), bounds)
            information[row : row + 1], p_value[row : row + 1] = evidence.examine(np.ones((1, 1), bool), draws, rng)
            tick()
    return information, p_value


def _pair_blocks(cells: list[Cells]) -> Iterator[tuple[Cells, Cells, np.ndarray]]:
    """Yield blocks (first, second, mask (F₁, F₂)) of features; each pair of features is once in a mask."""
    blocks = []
    for group in cells:
        size = _NUMBERS if isinstance(group, NumberCells) else max(1, _LEVELS // max(1, group.alpha.shape[2]))
        blocks += [(group, at) for at in np.split(np.arange(len(group.index)), range(size, len(group.index), size))]
    for a, (group, at) in enumerate(blocks):
        first = group.take(at)
        for b, (other, positions) in enumerate(blocks[a:], a):
            mask = np.ones((len(at), len(positions)), bool)
            mask = np.triu(mask, 1) if a == b else mask
            if mask.any():
                yield first, other.take(positions), mask
