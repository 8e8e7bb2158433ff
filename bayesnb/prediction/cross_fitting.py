"""Cross-fitting for weights of terms: each random half of the rows is fitted, and scores the rows of the other half.

Terms of a row by fits that know its label, or by leave-one-out, promise too much: the label is in the tables of all
other rows, and what is chance looks like evidence. Given the rows of one half, the labels of the other half are
independent, so that their log score is a log-likelihood whose evidence can be compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from bayesnb import scoring
from bayesnb._util.arguments import shown
from bayesnb._util.precision import float64
from bayesnb._util.progress import progress
from bayesnb._util.rows import take_rows
from bayesnb._util.warnings import warn
from bayesnb.encoding import Levels, Table, check_labels, check_weights
from bayesnb.encoding.priors import class_distribution
from bayesnb.families import LevelCounts
from bayesnb.fitted import Classifier, Fitted
from bayesnb.model import JointLikelihood, TermWeights
from bayesnb.prediction.dense_terms import MOST_TERMS, DenseTerms
from bayesnb.prediction.sparse_terms import SparseTerms
from bayesnb.prediction.terms import AVERAGE, term_names, terms
from bayesnb.prediction.weight_optimum import CrossTerms, Groups, Prior, TermBlock, optimize_weights
from bayesnb.prediction.weights import WeightPath, Weights
from bayesnb.selection.leave_one_out import FEWEST_EVENTS

Kind = Literal["feature", "temperature", "auto"]

N_SPLITS, _MOST_SPLITS, _MANY_ROWS = 3, 6, 3_000
NEGLIGIBLE = 1e-3
"""Difference between mean losses, in nats, below which the simpler model is taken."""
_MOST_CELLS = 2**27
_CELLS_AT_ONCE = 2**24


class TooFewRowsError(ValueError):
    """Error raised if the rows are too few to fit weights to."""


class RowSample(NamedTuple):
    """Rows that weights are fitted to.

    Parameters
    ----------
    position : (N,) int array
        Positions of the rows among the user's rows.
    label, weight : (N,) arrays
        Index of the class, and replication count, of each of the N rows.
    has_rows : (C,) array of bool
        Whether the rows of a class take part; classes with a single row do not.
    """

    position: np.ndarray
    label: np.ndarray
    weight: np.ndarray
    has_rows: np.ndarray


def random_halves(label: np.ndarray, n_splits: int, seed: int) -> np.ndarray:
    """Draw random splits of N rows into halves, stratified by class.

    Parameters
    ----------
    label : (N,) int array
        Index of the class of each row.
    n_splits, seed : int
        Number of splits S, and seed of the random numbers.

    Returns
    -------
    (S, N) array of bool
        Whether each row is in the first half of each split.

    Examples
    --------
    >>> import numpy as np
    >>> halves = random_halves(np.array([0, 0, 0, 0, 1, 1]), n_splits=2, seed=0)
    >>> halves[:, :4].sum(axis=1), halves[:, 4:].sum(axis=1)
    (array([2, 2]), array([1, 1]))
    """
    rng, first_halves = np.random.default_rng(seed), np.zeros((n_splits, len(label)), bool)
    for half in first_halves:
        order = rng.permutation(len(label))
        half[order[np.argsort(label[order], kind="stable")][::2]] = True
    return first_halves


def sample_rows(
    classes: Levels, label: np.ndarray, weight: np.ndarray, max_rows: int, seed: int, name: str
) -> RowSample:
    """Choose the rows that weights are fitted to: all, or a stratified sample of `max_rows`.

    Parameters
    ----------
    classes : Levels
        Classes of the labels.
    label, weight : (N,) arrays
        Index of the class, and replication count, of each row.
    max_rows, seed : int
        Most rows to choose, and seed of the sample.
    name : str
        Name of the classifier, for messages.

    Raises
    ------
    TooFewRowsError
        If fewer than ten rows are outside the largest class.

    Warns
    -----
    UserWarning
        If a class has one row only, which does not take part: one of two halves would lack the class.
    """
    n_classes, is_usable = len(classes), weight > 0
    rows_per_class = np.bincount(label[is_usable], minlength=n_classes)
    has_rows = rows_per_class > 1
    is_usable &= has_rows[label]
    index = np.flatnonzero(is_usable)
    if len(index) > max_rows:
        order = np.random.default_rng(seed).permutation(index)
        order = order[np.argsort(label[order], kind="stable")]
        index = np.sort(order[np.linspace(0, len(order) - 1, max_rows).astype(int)])
    counts = np.bincount(label[index], weight[index], minlength=n_classes)
    if (events := counts.sum() - counts.max(initial=0.0)) < FEWEST_EVENTS:
        raise TooFewRowsError(
            f"only {events:g} rows are outside the largest class, and weights take {FEWEST_EVENTS} or more (rows alone "
            "in their class do not count)."
        )
    if single := [classes.values[c] for c in np.flatnonzero(rows_per_class == 1)][:8]:
        warn(
            f"{name}: of classes {single} there is one row here, and halves would lack it: it does not enter the "
            "weights, and these classes have no bias."
        )
    return RowSample(index, label[index], weight[index], has_rows)


class CrossFit(NamedTuple):
    """Cross-fitted terms of rows, ready to be weighted.

    Parameters
    ----------
    names : (T,) tuple of str
        Names of the classifier's terms.
    column : (T,) int array
        Which of the T' columns of `terms` each of the T terms is added to.
    terms : CrossTerms
        Columns of terms of each row, by the fits to halves without the row.
    groups : Groups
        Groups of columns that share a temperature.
    biased : bool
        Whether classes have a bias.
    averaged : bool
        Whether terms are models whose probabilities are averaged where they have no weights.
    log_length : float
        Mean of log(t + 1) over rows of t draws from one simplex; 0 where there is no simplex.
    """

    names: tuple[str, ...]
    column: np.ndarray
    terms: CrossTerms
    groups: Groups
    biased: bool
    averaged: bool
    log_length: float

    @property
    def row_weight(self) -> np.ndarray:
        """(N,) replication counts of the rows."""
        return np.bincount(self.terms.row, self.terms.weight)

    @property
    def grid(self) -> Sequence[Sequence[float]]:
        """Values of τ to compare, from those that shrink most to those that shrink least."""
        return self.groups.grid if self.biased else self.groups.grid[:1]

    def terms_under(self, exponent: float, shrinkage: Sequence[float]) -> tuple[CrossTerms, Groups]:
        """Return the terms scaled by the exponent β of the length, with their groups; under τ = 0 a sum per group."""
        scaled = self.terms.with_exponent(exponent, self.groups.of_draws)
        return (scaled, self.groups) if any(shrinkage) else (scaled.sum_groups(self.groups), self.groups.collapse())


def cross_fit(
    fit: Classifier, X: object, y: object, sample_weight: object, kind: Kind, max_rows: int, seed: int
) -> tuple[Levels, CrossFit]:
    """Fit random halves of the rows, and compute the terms of the rows of the other halves.

    Parameters
    ----------
    fit : classifier
        Classifier whose terms are to be weighted, fitted to all rows.
    X, y, sample_weight
        Rows, labels and replication counts.
    kind : {"feature", "temperature", "auto"}
        Whether each term has a weight and each class a bias; under "temperature" each group of terms has a weight.
    max_rows : int
        Most rows to compute the terms of.
    seed : int
        Seed of the splits, and of the sample of rows.

    Returns
    -------
    classes : Levels
        Classes of `y`.
    crossed : CrossFit

    Raises
    ------
    TooFewRowsError
        If fewer than ten rows are outside the largest class.
    ValueError
        If a term is infinite.
    """
    name, table = fit.fitted_.name, fit.fitted_.table(X)
    classes, label = check_labels(y, table.n_rows, name)
    weight = check_weights(sample_weight, table.n_rows)
    columns = _TermColumns.from_fitted(fit.fitted_, kind)
    representation: type[DenseTerms] | type[SparseTerms]
    representation = SparseTerms if len(columns) > MOST_TERMS and fit.fitted_.average is None else DenseTerms
    cells = len(classes) * representation.cells_per_row(len(columns), _n_deviating_cells(table))
    sample = sample_rows(classes, label, weight, min(max_rows, max(1, _MOST_CELLS // cells)), seed, name)
    n_rows = len(sample.position)
    n_splits = max(N_SPLITS, min(_MOST_SPLITS, _MANY_ROWS // n_rows))
    n_splits = n_splits if n_splits * n_rows * cells <= _MOST_CELLS else 1
    first_halves = np.zeros((n_splits, len(label)), bool)
    first_halves[:, weight > 0] = random_halves(label[weight > 0], n_splits, seed)
    log_length = _log_lengths(fit.fitted_, table)[sample.position]
    typical = float(np.average(log_length, weights=sample.weight))
    crossed = representation.from_blocks(
        _cross_blocks(fit, X, y, weight, first_halves, sample, columns, classes),
        columns.groups,
        len(classes),
        log_length=np.tile(log_length - typical, n_splits),
        label=np.tile(sample.label, n_splits),
        weight=np.tile(sample.weight / n_splits, n_splits),
        row=np.tile(np.arange(n_rows), n_splits),
        fit=(2 * np.arange(n_splits)[:, None] + first_halves[:, sample.position]).ravel(),
    )
    return classes, CrossFit(
        names=columns.names,
        column=columns.column,
        terms=crossed,
        groups=columns.groups,
        biased=columns.biased,
        averaged=fit.fitted_.average is not None,
        log_length=typical if columns.groups.of_draws.any() else 0.0,
    )


def _cross_blocks(
    fit: Classifier,
    X: object,
    y: object,
    weight: np.ndarray,
    first_halves: np.ndarray,
    sample: RowSample,
    columns: _TermColumns,
    classes: Levels,
) -> Iterator[TermBlock]:
    """Fit both halves of each split in turn, and yield the terms of the sampled rows of the other half, in blocks.

    Fit 2s is to the first half of split s, fit 2s + 1 to the second; `first_halves` is (S, N).
    """
    n_rows, size = len(sample.position), max(1, _CELLS_AT_ONCE // (len(classes) * len(columns)))
    fit_part = fit.fit_parts(X, y, weight)
    with progress("weights", 2 * len(first_halves)) as tick:
        for k in range(2 * len(first_halves)):
            split, is_second = divmod(k, 2)
            half = first_halves[split] != is_second
            others = np.flatnonzero(~half[sample.position])
            with _no_user_warnings():
                fitted = fit_part(weight * half)
                log_class = np.where(sample.has_rows, _log_class(fitted.fitted_), -np.inf)
            for start in range(0, len(others), size):
                rows = others[start : start + size]
                with _no_user_warnings():
                    values = columns.compute(fitted, take_rows(X, sample.position[rows]))
                _require_finite(values, sample.position[rows], columns, classes)
                yield TermBlock(split * n_rows + rows, k, log_class, values)
            tick()


@contextmanager
def _no_user_warnings() -> Iterator[None]:
    """Hide warnings that the fit to all rows has given already."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def weigh_cross_fit(crossed: CrossFit, classes: Levels) -> tuple[Weights, np.ndarray]:
    """Fit weights to cross-fitted terms.

    Parameters
    ----------
    crossed : CrossFit
        Terms of N rows.
    classes : Levels
        Classes on the axis of classes of the terms.

    Returns
    -------
    weights : Weights
    losses : (N,) array
        Expected log loss of each row on which weights are fitted to other rows, in nats.
    """
    groups, column, crossed_terms = crossed.groups, crossed.column, crossed.terms
    optima, chosen, exponent = optimize_weights(crossed_terms, groups, crossed.grid, biased=crossed.biased)
    best, of_draws = optima[chosen], groups.of_draws[column]
    scaled = crossed_terms.with_exponent(exponent, groups.of_draws)
    if crossed.averaged and isinstance(crossed_terms, DenseTerms):
        plain_losses = crossed_terms.averaged().log_losses(np.zeros(len(classes)), np.ones(1))
    else:
        plain_losses = crossed_terms.log_losses(np.zeros(len(classes)), np.ones(len(groups.index)))
    prior = Prior.from_groups(groups, best.shrinkage, len(classes), biased=crossed.biased)
    weight, losses = crossed.row_weight, scaled.held_out_log_losses(prior, (best.bias, best.weight))
    dependence = groups.index[column] == 1
    weights = Weights(
        names=crossed.names,
        weight=best.weight[column] * np.where(of_draws, np.exp(exponent * crossed.log_length), 1.0),
        classes=classes,
        class_bias=best.bias,
        temperature=float(best.temperature[0]),
        shrinkage=float(best.shrinkage[0]),
        of_draws=of_draws,
        exponent=exponent,
        log_length=crossed.log_length,
        n_rows=len(weight),
        log_loss=float(np.average(losses, weights=weight)),
        plain_log_loss=float(np.average(plain_losses, weights=weight)),
        path=WeightPath(
            shrinkage=np.array([optimum.shrinkage for optimum in optima]),
            log_evidence=np.array([optimum.log_evidence for optimum in optima]),
            temperature=np.array([optimum.temperature for optimum in optima]),
            temperature_sd=np.array([optimum.temperature_sd for optimum in optima]),
            weight=np.array([optimum.weight[column] for optimum in optima]),
            sd=np.array([optimum.sd[column] for optimum in optima]),
        ),
        dependence=dependence,
        dependence_temperature=float(best.temperature[1]) if dependence.any() else 0.0,
        dependence_shrinkage=float(best.shrinkage[1]) if dependence.any() else 0.0,
    )
    return weights, losses


def choose_simplest(losses: Sequence[np.ndarray], weight: np.ndarray) -> int:
    """Choose among models, from the simplest on, the first whose loss is not clearly above the least.

    Parameters
    ----------
    losses : sequence of (N,) arrays
        Losses of the same rows under each model.
    weight : (N,) array
        Replication counts of the rows.

    Returns
    -------
    int
        Index of the first model whose mean loss exceeds the least by .001 nats, or by one standard error of the
        difference, or less (Breiman et al., *Classification and Regression Trees*, 1984, section 3.4.3).
    """
    means = [np.average(loss, weights=weight) for loss in losses]
    best = int(np.argmin(means))
    for k, loss in enumerate(losses):
        excess = loss - losses[best]
        mean = means[k] - means[best]
        error = np.sqrt(np.average((excess - mean) ** 2, weights=weight) / weight.sum())
        if mean <= max(error, NEGLIGIBLE):
            return k
    return best


@dataclass(frozen=True, eq=False)
class _TermColumns:
    """Columns of the array of terms: one for each term, or one for each set of terms with a common weight.

    Parameters
    ----------
    names : (T,) tuple of str
        Names of the classifier's terms.
    column : (T,) int array
        Which of the T' columns each term is added to.
    groups : Groups
        Groups of the T' columns.
    biased : bool
        Whether classes have a bias, and terms weights of their own.
    """

    names: tuple[str, ...]
    column: np.ndarray
    groups: Groups
    biased: bool

    @classmethod
    def from_fitted(cls, fitted: Fitted, kind: Kind) -> _TermColumns:
        """Return the columns of a classifier's terms for this kind of weights."""
        names = term_names(fitted)
        has_common_weight = kind == "temperature" or len(names) == 1
        if fitted.average is not None:
            names = (AVERAGE,) if has_common_weight else names
            of_draws = dependence = np.zeros(len(names), bool)
        else:
            term_map, blocks = fitted.encoding.term_map, fitted.encoding.blocks
            of_draws = term_map.gather(np.repeat([b.one_simplex for b in blocks], [len(b.term_names) for b in blocks]))
            of_draws, dependence = of_draws.astype(bool), term_map.dependence
        column = np.arange(len(names))
        if has_common_weight:
            # The weight of rows of several draws from one simplex depends on their length, so that they have a column.
            (of_draws, dependence), column = np.unique([of_draws, dependence], axis=1, return_inverse=True)
        return cls(names, column, Groups.from_dependence(dependence, of_draws), not has_common_weight)

    def __len__(self) -> int:
        """Return the number of columns, T'."""
        return len(self.groups.index)

    def compute(self, half: Any, rows: Any) -> np.ndarray:
        """Compute (n, C, T') terms of rows by the fit to a half; 0 of terms that the half does not have."""
        if self.names == (AVERAGE,):
            log_class = scoring.log_class(*half.fitted_.read())
            return np.asarray(half.predict_joint_log_proba(rows) - log_class)[..., None]
        if self.biased:
            half_terms = terms(half, rows)
            position = {name: t for t, name in enumerate(half_terms.names)}
            index = np.array([position.get(name, -1) for name in self.names])
            return np.where(index < 0, 0.0, half_terms.values[..., index])
        fitted: Fitted = half.fitted_
        half_columns, blocks = _TermColumns.from_fitted(fitted, "temperature"), fitted.encoding.blocks
        model, reading = fitted.read()
        encoded, n_rows = fitted.encode(rows)
        sizes = [len(b.term_names) for b in blocks]
        values = np.zeros((n_rows, model.n_classes, len(self)))
        for t, (of_draws, group) in enumerate(zip(self.groups.of_draws, self.groups.index, strict=True)):
            is_added = (half_columns.groups.of_draws == of_draws) & (half_columns.groups.index == group)
            weight = fitted.encoding.term_map.spread(is_added[half_columns.column].astype(float))
            weighted = replace(model, weights=TermWeights.split(np.zeros(model.n_classes), weight, sizes))
            values[..., t] = scoring.terms_of_rows(
                fitted.encoding, weighted, encoded, n_rows, reading, function=JointLikelihood.block_log_likelihoods
            ).sum(axis=-1)
        return values


def _n_deviating_cells(table: Table) -> int:
    """Return how many cells of a row differ from what most rows have, on average: those that a sparse matrix stores."""
    return 1 + int(table.data.nnz) // max(1, table.n_rows) if table.is_sparse else len(table.names)


@float64
def _log_class(fitted: Fitted) -> np.ndarray:
    """Return (C,) log P(class) by the counts of rows, also where predictions take a class prior that is given.

    Biases that were fitted under another class prior than the rows have would undo it.
    """
    class_prior: Any = fitted.prior.class_prior
    if class_prior.fixed:
        class_prior = class_distribution(None, 1.0, len(fitted.encoding.classes))
    posterior = class_prior.update(LevelCounts(fitted.statistics.class_count[None]))
    return np.asarray(scoring.plug_in(posterior).log_theta[0])


def _log_lengths(fitted: Fitted, table: Table) -> np.ndarray:
    """Return (N,) log(t + 1) of rows of t draws from one simplex; 0 where there is no simplex."""
    for columns in fitted.encoding.blocks:
        if columns.one_simplex:
            rows: Any = columns.rows(table)
            return np.asarray(np.log1p(rows.length()))
    return np.zeros(table.n_rows)


def _require_finite(values: np.ndarray, rows: np.ndarray, columns: _TermColumns, classes: Levels) -> None:
    """Raise ValueError if a term is infinite or NaN."""
    if np.isfinite(values).all():
        return
    i, c, t = (int(v[0]) for v in np.nonzero(~np.isfinite(values)))
    names = [name for name, column in zip(columns.names, columns.column, strict=True) if column == t]
    raise ValueError(
        f"weights: by a half of the rows without row {rows[i]} the term of {shown(', '.join(names))} in class "
        f"{classes.values[c]!r} is {values[i, c, t]}, and no weight makes that a probability. A prior with positive "
        "concentrations has finite terms: alpha > 0, estimate='predictive'."
    )
