"""Which features break the assumption of naive Bayes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesnb._util.arguments import require_integer, require_seed
from bayesnb._util.progress import progress
from bayesnb.checking.cells import Cells, NumberCells, read_cells, require_memory, take
from bayesnb.checking.dependence import compare
from bayesnb.families import supports
from bayesnb.families.protocol import PairDependence
from bayesnb.fitted import Classifier, require_posterior

if TYPE_CHECKING:
    import pandas as pd

_MOST_PAIRS = 2_000_000
_BYTES_A_PAIR = 64
_LEVELS = 512
_NUMBERS = 128


def check_independence(
    nb: Classifier,
    X: Any,
    y: Any,
    *,
    features: Iterable[Any] | None = None,
    top: int | None = None,
    draws: int = 200,
    seed: int = 0,
) -> pd.DataFrame:
    """Are the features independent given the class, as naive Bayes assumes? One row a pair of features.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Its levels and its prior are used.
    X : array-like, sparse matrix or DataFrame of shape (N, F)
        Usually the rows that `nb` was fitted to.
    y : array-like of shape (N,)
    features : iterable of column names or indices, optional
        Compare these only; default: all.
    top : int, optional
        Return the strongest pairs only. All are compared all the same.
    draws : int
        Replicates behind each p-value, which is never below 1/(draws + 1).
    seed : int
        The same seed gives the same p-values.

    Returns
    -------
    DataFrame
        Sorted by log_bayes_factor, largest first; feature_1 stands before feature_2 in X.

        feature_1, feature_2
            names
        rows
            number of rows in which both are observed; only these are used.
        log_bayes_factor
            log p(both | class, dependent) - log p(both | class, independent), in nats.
        mutual_information
            estimate of the mutual information given the class, in nats.
        p_value
            probability, under independence, of as much mutual information: for levels among all orders of the
            rows of each class, so that P(p_value ≤ u) ≤ u whatever the levels' frequencies and however few the rows.

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
    Every row weighs one. Both hypotheses give either feature alone the same prior (numbers beside levels: their mean
    over the rows, and their variance), so that the Bayes factor is that of dependence and of nothing else:

    - *Levels and levels*: a Dirichlet over the table of each class with concentrations A_lm = α_l α'_m / α₀, against
      the product of the Dirichlets that are its marginals, Σ_c log B(A + n)/B(A) - log B(A₁ + n₁)/B(A₁) -
      log B(A₂ + n₂)/B(A₂). Where α and α' have one total, α₀, the marginals are the prior of `nb`, A₁ = α and A₂ = α'.
      No Dirichlet over pairs has marginals of two totals: then α₀ is their geometric mean, for both hypotheses. Mutual
      information: that of the observed tables, which is positive even under independence; p-values from random tables
      with the margins of each class.
    - *Gaussian and Gaussian*: an inverse Wishart with ν = 2a + 1 and Ψ = diag(2b, 2b') (Geiger & Heckerman 2002),
      against the two inverse gammas that are its marginals, of the deviations from the mean of the class (n_c - 1
      contrasts): where the class lies says nothing. Mutual information: Σ_c n_c/n · (-½ log(1 - r_c²));
      r² ~ Beta(½, (n_c - 2)/2) under independence, exactly.
    - *Levels and Gaussian*: analysis of variance: means of the levels, N(μ, σ² n_c/(κ n_cl)) with one σ² (the g-prior
      with g = n_c/κ; Liang et al. 2008), against one mean, of the same contrasts. Mutual information: -½ log(1 - η²),
      η² the share of the squares between levels; η² ~ Beta((L - 1)/2, (n_c - L)/2), exactly if Gaussian.
    - *Levels and Poisson*: rates Gamma(a s, b s) of levels that have the share s = n_cl/n_c of the rows, whose mean
      over the rows is Gamma(a, b), against one rate with this prior. Mutual information as for Gaussian features.
    - *Poisson and Gaussian*: the Poisson feature becomes a level, above its median in the class or not.
    - *Poisson and Poisson*: either may become the level; both alternatives have probability ½. The mutual information
      of Poisson features is that of the correlation, and their p-values are approximate where counts are small.
    - *Binned columns*: as levels, their cells. These are many, so that the Bayes factor sees strong dependence only;
      `MixedNB(gaussian=...)` compares such columns as numbers.
    - *Words* (multinomial features): whether each occurs in a row, as two levels with concentration 1. Words of a row
      share its length, and this too makes them dependent.

    Means, rates and correlations that depend on the other feature are looked for; variances that do are not. Counts
    that vary more than Poisson ones do look dependent on whatever splits them.

    A Bayes factor compares these two hypotheses only. Strong evidence of dependence says that P(class | row) is too
    sure of itself, not that its labels are wrong.

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
    chosen = None if features is None else fitted.encoding.positions(features)
    n_features = len(names) if chosen is None else len(chosen)
    n_pairs = n_features * (n_features - 1) // 2
    if not n_pairs:
        raise ValueError(f"features: a pair needs two columns, and there is {n_features}.")
    if top is None and n_pairs > _MOST_PAIRS:
        raise ValueError(
            f"{n_features:,} features make {n_pairs:,} pairs, a table of {n_pairs * _BYTES_A_PAIR / 1e9:.1f} GB in "
            "memory. Set top=1000 for the strongest pairs, or name some columns in features=."
        )
    cells, bounds = read_cells(fitted, X, y, chosen)
    require_memory(cells, len(bounds) - 1, names)
    _require_pairs(cells, names)
    rng = np.random.default_rng(seed)
    found = _every_pair(cells, bounds, n_pairs, draws, rng) if top is None else _strongest(cells, bounds, n_pairs, top)
    order = np.lexsort((found.second, found.first, -found.log_bayes_factor))
    found = _Pairs(*(column[order] for column in found))
    if top is not None:
        found = _examined(cells, bounds, found, draws, rng)
    return _frame(found, names)


class _Pairs(NamedTuple):
    """Columns of the result; `first` < `second` are columns of X."""

    first: np.ndarray
    second: np.ndarray
    rows: np.ndarray
    log_bayes_factor: np.ndarray
    mutual_information: np.ndarray
    p_value: np.ndarray


def _every_pair(cells: list[Cells], bounds: np.ndarray, n_pairs: int, draws: int, rng: np.random.Generator) -> _Pairs:
    parts = []
    with progress("Pairs of features", n_pairs) as tick:
        for first, second, pick in _blocks(cells):
            evidence = compare(first, second, bounds)
            parts.append(_pick(first, second, pick, evidence, *evidence.examine(pick, draws, rng)))
            tick(int(pick.sum()))
    return _Pairs(*map(np.concatenate, zip(*parts, strict=True)))


def _strongest(cells: list[Cells], bounds: np.ndarray, n_pairs: int, top: int) -> _Pairs:
    """The pairs with the largest Bayes factors, not examined further."""
    kept: _Pairs | None = None
    with progress("Pairs of features", n_pairs) as tick:
        for first, second, pick in _blocks(cells):
            nothing = np.full(int(pick.sum()), np.nan)
            part = _pick(first, second, pick, compare(first, second, bounds), nothing, nothing)
            kept = part if kept is None else _Pairs(*(np.concatenate(pair) for pair in zip(kept, part, strict=True)))
            if len(kept.first) > top:
                best = np.lexsort((kept.second, kept.first, -kept.log_bayes_factor))[:top]
                kept = _Pairs(*(column[best] for column in kept))
            tick(len(nothing))
    assert kept is not None
    return kept


def _examined(cells: list[Cells], bounds: np.ndarray, pairs: _Pairs, draws: int, rng: np.random.Generator) -> _Pairs:
    """The same pairs with mutual information and p-value."""
    where = {int(j): (group, at) for group, c in enumerate(cells) for at, j in enumerate(c.index)}
    information, p_value = np.empty(len(pairs.first)), np.empty(len(pairs.first))
    with progress("Replicates", len(pairs.first)) as tick:
        for row, pair in enumerate(zip(pairs.first, pairs.second, strict=True)):
            (g, a), (h, b) = sorted(where[int(j)] for j in pair)
            evidence = compare(take(cells[g], np.array([a])), take(cells[h], np.array([b])), bounds)
            information[row : row + 1], p_value[row : row + 1] = evidence.examine(np.ones((1, 1), bool), draws, rng)
            tick()
    return pairs._replace(mutual_information=information, p_value=p_value)


def _blocks(cells: list[Cells]) -> Iterator[tuple[Cells, Cells, np.ndarray]]:
    """Every pair once, in blocks: features of the one, of the other, and which of the pairs."""
    blocks = []
    for group in cells:
        size = _NUMBERS if isinstance(group, NumberCells) else max(1, _LEVELS // max(1, group.alpha.shape[2]))
        starts = range(0, len(group.index), size)
        blocks += [take(group, np.arange(s, min(s + size, len(group.index)))) for s in starts]
    for a, first in enumerate(blocks):
        for b, second in enumerate(blocks[a:], a):
            pick = np.ones((len(first.index), len(second.index)), bool)
            pick = np.triu(pick, 1) if a == b else pick
            if pick.any():
                yield first, second, pick


def _pick(
    first: Cells, second: Cells, pick: np.ndarray, evidence: Any, information: np.ndarray, p_value: np.ndarray
) -> _Pairs:
    i, j = np.nonzero(pick)
    one, other = first.index[i], second.index[j]
    rows = evidence.rows[pick].astype(np.int64)
    return _Pairs(
        np.minimum(one, other), np.maximum(one, other), rows, evidence.log_bayes_factor[pick], information, p_value
    )


def _require_pairs(cells: list[Cells], names: Sequence[str]) -> None:
    for group in cells:
        prior: Any = group.prior if isinstance(group, NumberCells) else None
        if supports(prior, PairDependence):
            refusal = prior.pairs_refusal([names[int(j)] for j in group.index])
            if refusal is not None:
                raise NotImplementedError(refusal)


def _frame(pairs: _Pairs, names: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    columns = pairs._asdict()
    first, second = ([names[int(j)] for j in columns.pop(name)] for name in ("first", "second"))
    return pd.DataFrame({"feature_1": first, "feature_2": second, **columns})
