"""Posterior predictive checks: does the model replicate what the table shows?"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd

from bayesnb._util.arguments import require_integer, require_seed, shown
from bayesnb._util.terminal import progress
from bayesnb.checking.cells import require_pair
from bayesnb.checking.discrepancies import STATISTICS, Statistic, Tables
from bayesnb.encoding import Encoding
from bayesnb.encoding.levels import to_python
from bayesnb.fitted.state import Classifier, require_posterior
from bayesnb.uncertainty.draws import draw_posterior
from bayesnb.uncertainty.replicates import CellBlock, read_cell_blocks, reason_against_replicates, replicate_rows

_MOST_VALUES = 2**25
_TIE = 1e-9


@dataclass(frozen=True, eq=False)
class PredictiveCheck:
    """Quantities of a table beside those of tables that the fitted model replicates.

    Attributes
    ----------
    table : DataFrame
        One row for each quantity, largest discrepancy first.

        statistic : name of the quantity, such as "correlation"
        class : label of the class; None for a user's function
        feature_1, feature_2 : names of the columns, or None
        observed : value in the table
        mean, sd : mean and standard deviation over the replicates
        lower, upper : 5% and 95% quantiles of the replicates
        discrepancy : (observed - mean) / sd, both over all tables; of the surprise for "association" (see the notes of
        `posterior_predictive_check`)
        p : P(replicate > observed) + P(replicate = observed) / 2, a position among the replicates
    p : float
        P(largest discrepancy of a table >= that of the observed table), whichever quantity has it: no correction for
        many quantities is needed.
    statistic : str
        Argument of `posterior_predictive_check`, or the name of the user's function.
    draws : int
        Number of replicates.
    excluded : int
        Number of quantities that are undefined in the observed table and in all replicates, and left out.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> X, y = [["sun", "hot"], ["rain", "cold"]] * 20, ["out", "in"] * 10 + ["in", "out"] * 10
    >>> check = bnb.posterior_predictive_check(bnb.CategoricalNB().fit(X, y), X, y)
    >>> check.p < 0.01, check.table["observed"].tolist()
    (True, [1.0, 1.0])
    """

    table: pd.DataFrame
    p: float
    statistic: str
    draws: int
    excluded: int = 0

    def __repr__(self) -> str:
        first = self.table.iloc[0]
        features = [shown(first[name]) for name in ("feature_1", "feature_2") if first[name] is not None]
        where = f" of {' and '.join(features)}" if features else ""
        where += f" in class {shown(to_python(first['class']))}" if features else ""
        excluded = f"; {self.excluded} undefined and left out" if self.excluded else ""
        return (
            f"PredictiveCheck({self.statistic}: p = {self.p:.3g}, largest of {len(self.table)} discrepancies: "
            f"{first['statistic']}{where}; {self.draws} draws{excluded})"
        )


def posterior_predictive_check(
    nb: Classifier,
    X: object,
    y: object,
    statistic: str | Callable[[pd.DataFrame, np.ndarray], Any] = "association",
    draws: int = 500,
    seed: int = 0,
    features: Iterable[object] | None = None,
) -> PredictiveCheck:
    """Compare a statistic of a labelled table with its values in tables that the fitted model replicates.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier with a proper posterior whose rows can be drawn.
    X : array-like, sparse matrix or DataFrame of shape (N, F)
        Rows, usually those that `nb` was fitted to. Each has the weight 1.
    y : array-like of shape (N,)
        Labels of the rows.
    statistic : {"association", "frequency", "extremes"} or function
        Statistic that is compared.

        "association"
            Dependence of each pair of features in each class, from 0 to 1: absolute correlation of two numbers,
            Cramér's V of two features of levels, correlation ratio η of a number at the levels of the other. The
            check of the assumption of naive Bayes, or of the structure of a `TAN`.
        "frequency"
            Proportion of each level, mean and standard deviation of numbers, in each class.
        "extremes"
            Least and greatest number, and number of rows with the rarest level, in each class. Here, and in
            "association", a binned number is the position of its cell.
        function f(table, labels)
            Function that returns a number, or a sequence or dict of numbers, the same ones for each table. `table` is a
            DataFrame with levels as categoricals, present as 1 and absent as 0, NaN where missing; `labels` is an
            array.
    draws : int
        Number of replicates, S. The overall p is at least 1 / (S + 1).
    seed : int
        The same seed gives the same result.
    features : iterable of column names or indices, optional
        Features that are compared; default: all. Those that a `KDB` leaves out are not compared.

    Returns
    -------
    PredictiveCheck
        With `table`, one row for each quantity, and the overall `p`.

    Raises
    ------
    ImproperPosteriorError
        If the posterior is improper.
    NotImplementedError
        If `nb` has no posterior (`AODE`), has weighted terms (`WeightedNB`), or its rows cannot be drawn.
    TypeError, ValueError
        If X and y do not match, an argument is unknown, no quantity is defined, there are too many of them, or the
        function returns something else than finite numbers.

    Notes
    -----
    For each draw θ from the posterior a table is drawn, x_i ~ p(x | y_i, θ), with the labels, the missing cells and the
    numbers of words of the observed rows. With T a quantity,

        p = P(T(X_rep) > T(X)) + P(T(X_rep) = T(X)) / 2,

    a mid-p, in which the observed table counts as one of the replicates. If p is near 0, the model seldom replicates a
    value as large as the observed one. For "frequency" and "extremes", p near 1 is evidence against the model as well.
    Of many quantities some have a p near 0 or 1 by chance.

    The overall p tests the model. It is P(D(X_rep) ≥ D(X)), D the largest discrepancy of a table, in standard
    deviations: positive discrepancies for "association", absolute values for the other statistics. It is valid for any
    number of quantities, because the observed table and the replicates are treated alike: labels and missing cells
    alone decide which quantities a table has, one that is undefined in some tables counts as 0 in these, and mean and
    standard deviation include all tables.

    For "association" the discrepancy is that of the surprise -log P(dependence ≥ observed one | cells of both features
    in random order), which is large for two equal columns, and small for two rare levels that meet in one row, though
    the dependence is 1 in both cases. The probability is that of the gamma distribution with the exact mean and
    variance of the squared dependence. If features are independent, the surprise has about an exponential distribution
    with standard deviation 1; smaller standard deviations count as 1. Where a feature is constant, there is no
    dependence to measure, and both dependence and surprise count as 0. A pair is left out, and counted in `excluded`,
    if fewer than three rows have values of both features, or one is constant in all tables.

    These are posterior predictive p-values: the data are used twice, for θ and for D. If prior and model hold,
    P(p ≤ α) ≤ 2α for any statistic, and in general p is conservative, because replicates differ from each other by the
    uncertainty of θ, too, while θ is fitted to the observed table. "association" depends little on the parameters of
    naive Bayes, and its p is nearly uniform: of 200 tables each with parameters from the prior, p < .05 in 4.5% (30
    rows × 20 binary columns, θ ~ Beta(.3, .3)), 5% (60 × 50 such columns), 5.5% (30 × 6 columns of three levels, 30% of
    the cells missing), 3.5% (30 × 4 Poisson columns) and 6% (30 × 50 normal columns). The parameters are fitted to
    "frequency": there the overall p is close to 1 where the model holds, and detected are priors that contradict the
    data, and standard deviations that the model does not fit, such as those of overdispersed counts under `PoissonNB`.
    "extremes" lies between these two. A structure that was chosen on the same rows makes p larger. A small p means that
    class probabilities are overconfident, or wrong for some rows, not that the predicted labels are wrong.

    References
    ----------
    Rubin, *Bayesianly justifiable and relevant frequency calculations*, Ann. Stat. 12 (1984). Meng, *Posterior
    predictive p-values*, Ann. Stat. 22 (1994). Gelman, Meng & Stern, *Posterior predictive assessment of model fitness
    via realized discrepancies*, Stat. Sinica 6 (1996). Robins, van der Vaart & Ventura, *Asymptotic distribution of P
    values in composite null models*, JASA 95 (2000). Kazi-Aoual, Hitier, Sabatier & Lebreton, *Refined approximations
    to permutation tests for multivariate inference*, Comput. Stat. Data Anal. 20 (1995).

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> check = bnb.posterior_predictive_check(bnb.GaussianNB().fit(X, y), X, y)
    >>> check.table[["class", "feature_1", "feature_2", "observed", "upper"]].head(2).round(2)
       class          feature_1          feature_2  observed  upper
    0      2  sepal length (cm)  petal length (cm)      0.86   0.29
    1      1  petal length (cm)   petal width (cm)      0.79   0.29
    """
    fitted = require_posterior(nb, "posterior_predictive_check")
    require_integer("draws", draws)
    require_seed(seed)
    if not callable(statistic) and (not isinstance(statistic, str) or statistic not in STATISTICS):
        raise ValueError(
            f"statistic={shown(statistic)} is unknown; use {', '.join(map(repr, STATISTICS))} or a function."
        )
    if reason := reason_against_replicates(fitted):
        raise NotImplementedError(f"posterior_predictive_check: {reason}")
    encoding = fitted.encoding
    chosen = set(range(encoding.n_features)) if features is None else encoding.positions(features)
    table = fitted.table(X)
    label = fitted.label_index(y, table.n_rows)
    blocks = read_cell_blocks(encoding, fitted.rows(table, alone=True))
    if callable(statistic):
        name = str(getattr(statistic, "__name__", "function"))
        known = _of_function(name, statistic, encoding)
    else:
        name, known = statistic, STATISTICS[statistic]

    def select(values: Sequence[np.ndarray]) -> Tables:
        """Return the chosen features of tables, from arrays (S, N, F) for each block."""
        return _select_features(blocks, values, label, chosen, by_position=name in ("association", "extremes"))

    def measure(tables: Tables) -> np.ndarray:
        """Compute (2, S, T) values and scores of the quantities of each class, or of a user's function."""
        measured = map(known.measure, [tables] if callable(statistic) else tables.split_by_class())
        return np.concatenate([np.broadcast_to(part, (2, *part.shape[-2:])) for part in measured], axis=2)

    observed = select([block.values[None] for block in blocks])
    _require_quantities(name, observed, draws)
    measured = [measure(observed)]
    classes = [None] if callable(statistic) else [encoding.classes.values[c] for c in observed.classes]
    quantities = [(c, *quantity) for c in classes for quantity in known.quantities(observed)]
    drawn = draw_posterior(fitted, int(draws), seed)
    rng = np.random.default_rng([seed, 1])
    with progress("Replicates", draws) as tick:
        for part, values in replicate_rows(fitted, drawn, label, blocks, rng):
            measured.append(measure(select(values)))
            tick(part.stop - part.start)
    value, score = np.concatenate(measured, axis=1)
    defined = ~np.isnan(value).all(axis=0)
    if not defined.any():
        raise ValueError(
            f"statistic={name!r} is undefined in every class. In each pair of features, one feature is constant, or "
            "fewer than three rows have values of both. Pass more rows, or other features."
        )
    value, score = (np.nan_to_num(array[:, defined], nan=0.0) for array in (value, score))
    compared, p = _compare(value, score, known)
    labels, names, *pairs = map(list, zip(*compress(quantities, defined), strict=True))
    pairs = [[None if j is None else encoding.feature_names[j] for j in positions] for positions in pairs]
    columns = dict(zip(("statistic", "class", "feature_1", "feature_2"), (names, labels, *pairs), strict=True))
    frame = pd.DataFrame(columns).join(compared)
    size = frame["discrepancy"] if known.one_sided else frame["discrepancy"].abs()
    frame = frame.iloc[np.argsort(-size.to_numpy(), kind="stable")].reset_index(drop=True)
    return PredictiveCheck(frame, p, name, int(draws), int((~defined).sum()))


def _compare(value: np.ndarray, score: np.ndarray, known: Statistic) -> tuple[pd.DataFrame, float]:
    """Return the table of T quantities, and the overall p, of values and scores (S + 1, T), the observed ones first.

    The p of a quantity is the fraction of the S + 1 values above the first, and half of those that are equal to it.
    """
    sd = score.std(axis=0)
    varies = sd > _TIE * np.abs(score).max(axis=0)
    z = np.where(varies, (score - score.mean(axis=0)) / np.where(varies, np.maximum(sd, known.least_sd), 1.0), 0.0)
    largest = (z if known.one_sided else np.abs(z)).max(axis=1)
    difference, replicated = value - value[0], value[1:]
    equal = np.abs(difference) <= _TIE * (1.0 + np.abs(value[0]))
    table = pd.DataFrame({"observed": value[0], "mean": replicated.mean(axis=0), "sd": replicated.std(axis=0)})
    table["lower"], table["upper"] = np.quantile(replicated, [0.05, 0.95], axis=0)
    table["discrepancy"] = z[0]
    table["p"] = ((difference > 0) & ~equal).mean(axis=0) + equal.mean(axis=0) / 2
    return table, float((largest >= largest[0] - _TIE * (1.0 + largest[0])).mean())


def _select_features(
    blocks: Sequence[CellBlock], values: Sequence[np.ndarray], label: np.ndarray, chosen: set[int], *, by_position: bool
) -> Tables:
    """Return the chosen features of S tables, from arrays (S, N, F) for each block of columns.

    With `by_position` cells of binned numbers are numbers, their positions.
    """
    numbers: dict[int, np.ndarray] = {}
    codes: dict[int, np.ndarray] = {}
    levels: list[Sequence[Hashable]] = []
    for block, table in zip(blocks, values, strict=True):
        for f, j in ((f, int(j)) for f, j in enumerate(block.index) if j in chosen):
            cells = table[:, :, f]
            if block.levels is None:
                numbers[j] = cells
            elif by_position and block.ordered[f]:
                numbers[j] = np.where(cells < 0, np.nan, cells)
            else:
                codes[j] = cells
                levels.append(block.levels[f])
    shape = len(values[0]), len(label), 0
    x, code = (np.stack([*part.values()], axis=2) if part else np.zeros(shape, int) for part in (numbers, codes))
    return Tables(label, x, code, np.array([*numbers], int), np.array([*codes], int), tuple(levels))


def _require_quantities(name: str, tables: Tables, draws: int) -> None:
    """Raise ValueError if a known statistic has no quantity, or S replicates of all of them are more than 2^25."""
    n_rows, n_features = len(tables.label), len(tables.index)
    if not n_rows or not n_features:
        raise ValueError(f"X has {n_rows} rows and {n_features} features; a check needs one or more of each.")
    if name == "association":
        require_pair(n_features)
    n_pairs, n_levels = n_features * (n_features - 1) // 2, sum(map(len, tables.levels))
    counts = {"association": n_pairs, "frequency": 2 * n_features + n_levels, "extremes": 2 * n_features}
    needed = counts.get(name, 0) * len(tables.classes) * draws
    if needed > _MOST_VALUES:
        raise ValueError(
            f"features: {n_features:,} columns make {needed:,} values in {draws:,} replicates; the limit is "
            f"{_MOST_VALUES:,}. Name some columns in features=, or set fewer draws."
        )


# -- functions of users --------------------------------------------------------------------------


def _of_function(name: str, function: Callable[[pd.DataFrame, np.ndarray], Any], encoding: Encoding) -> Statistic:
    """Return a user's function of a table and labels as a statistic."""
    names: list[str] = []  # Known from the observed table, which is measured first.

    def measure(tables: Tables) -> np.ndarray:
        """(S, T) results of the function; the first call names the quantities."""
        labels = encoding.classes.array()[tables.label]
        results = []
        for i in range(len(tables)):
            result = _read_result(name, function(_to_frame(tables, i, encoding), labels.copy()))
            names.extend(() if names else result)
            if result.keys() != set(names):
                raise ValueError(
                    f"statistic: the function returned {shown(list(result))} for a replicate, but {shown(names)} for "
                    "the observed table. Return the same numbers, under the same names, for each table."
                )
            results.append([result[name] for name in names])
        return np.array(results)

    return Statistic(lambda _: [(name, None, None) for name in names], measure)


def _read_result(name: str, result: Any) -> dict[str, float]:
    """Return the numbers, by name, that a user's function returned; raise TypeError or ValueError for no numbers."""
    if isinstance(result, dict | pd.Series):
        keys, cells = list(map(str, result.keys())), list(result.values()) if isinstance(result, dict) else result
    else:
        cells = result
        keys = [name] if np.ndim(result) == 0 else [f"{name}[{i}]" for i in range(len(result))]
    try:
        numbers = np.array(cells, float).ravel()
    except (TypeError, ValueError):
        numbers = np.zeros(0)
    if len(numbers) != len(set(keys)) or not len(numbers):
        raise TypeError(f"statistic: the function returned {shown(result)}; return a number, or several by name.")
    if not np.isfinite(numbers).all():
        raise ValueError(f"statistic: the function returned {shown(result)}, not finite. Return 0 where undefined.")
    return dict(zip(keys, numbers.tolist(), strict=True))


def _to_frame(tables: Tables, i: int, encoding: Encoding) -> pd.DataFrame:
    """Return table i as a DataFrame with the names of the columns, and levels as categoricals."""
    names = encoding.feature_names
    binary = {int(j) for block in encoding.blocks if block.kind == "bernoulli" for j in block.index}
    columns: dict[int, Any] = dict(zip(map(int, tables.number_index), tables.numbers[i].T, strict=True))
    for j, codes, levels in zip(map(int, tables.level_index), tables.codes[i].T, tables.levels, strict=True):
        categories = pd.Index(list(levels), tupleize_cols=False)
        is_binary = j in binary
        columns[j] = np.where(codes < 0, np.nan, codes) if is_binary else pd.Categorical.from_codes(codes, categories)
    return pd.DataFrame({names[j]: columns[j] for j in sorted(columns)})
