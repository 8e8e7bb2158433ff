"""Cross-fitting for weights of terms: each random half of the rows is fitted, and scores the rows of the other half.

Terms of a row by fits that know its label, or by leave-one-out, promise too much: the label is in the tables of all
other rows, and what is chance looks like evidence. Given the rows of one half, the labels of the other half are
independent, so that their log score is a log-likelihood whose evidence can be compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
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
from bayesnb.prediction.cross_terms import MOST_TERMS, CrossTerms, TermBlock
from bayesnb.prediction.terms import AVERAGE, term_names, terms
from bayesnb.prediction.weight_optimum import Groups, Optimum, Prior, held_out_log_losses, optimize_weights
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
) -> tuple[np.ndarray, np.ndarray]:
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

    Returns
    -------
    position : (N',) int array
        Positions of the chosen rows.
    has_rows : (C,) array of bool
        Whether the rows of a class take part; classes with a single row do not.

    Raises
    ------
    TooFewRowsError
        If fewer than ten rows are outside the largest class.

    Warns
    -----
    UserWarning
        If a class has one row only, which does not take part: one of two halves would lack the class.
    """
    n_classes = len(classes)
    rows_per_class = np.bincount(label[weight > 0], minlength=n_classes)
    has_rows = rows_per_class > 1
    position = np.flatnonzero((weight > 0) & has_rows[label])
    if len(position) > max_rows:
        order = np.random.default_rng(seed).permutation(position)
        order = order[np.argsort(label[order], kind="stable")]
        position = np.sort(order[np.linspace(0, len(order) - 1, max_rows).astype(int)])
    counts = np.bincount(label[position], weight[position], minlength=n_classes)
    if (events := counts.sum() - counts.max(initial=0.0)) < FEWEST_EVENTS:
        raise TooFewRowsError(
            f"Weights need {FEWEST_EVENTS} or more rows outside the largest class, but there are only {events:g}, not "
            "counting classes of one row. Pass more rows."
        )
    if single := [classes.values[c] for c in np.flatnonzero(rows_per_class == 1)][:8]:
        warn(
            f"{name}: the classes {single} have one row each, but cross-fitting needs a row of each class in both "
            "halves of the data. The weights are fitted without these rows, and these classes have no bias "
            "term. To fit bias terms for them, pass two or more rows of each class."
        )
    return position, has_rows


@dataclass(frozen=True, eq=False)
class TermColumns:
    """Columns of the array of terms: one for each term, or one for each set of terms with a common weight.

    Parameters
    ----------
    names : (T,) tuple of str
        Names of the classifier's terms.
    column : (T,) int array
        Which of the T' columns each term is added to.
    groups : Groups
        Groups of columns that share a temperature.
    biased : bool
        Whether classes have a bias, and terms weights of their own.
    averaged : bool
        Whether terms are models whose probabilities are averaged where they have no weights.
    """

    names: tuple[str, ...]
    column: np.ndarray
    groups: Groups
    biased: bool
    averaged: bool

    @classmethod
    def from_fitted(cls, fitted: Fitted, kind: Kind) -> TermColumns:
        """Choose the columns for weights of a `kind`: one for each term, or one for each set with a common weight.

        Sets are chosen for "temperature", and for a single term; there is then no bias. "auto" is otherwise "feature".
        """
        names, averaged = term_names(fitted), fitted.average is not None
        has_common_weight = kind == "temperature" or len(names) == 1
        if averaged and has_common_weight:
            names = (AVERAGE,)
        column, kinds = np.arange(len(names)), np.zeros((2, len(names)), bool) if averaged else _term_kinds(fitted)
        if has_common_weight:
            # The weight of rows of several draws from one simplex depends on their length, so that they have a column.
            kinds, column = np.unique(kinds, axis=1, return_inverse=True)
        of_draws, dependence = kinds
        return cls(names, column, Groups.from_dependence(dependence, of_draws), not has_common_weight, averaged)

    def __len__(self) -> int:
        """Return the number of columns, T'."""
        return len(self.groups.index)

    def compute(self, half: Classifier, rows: object) -> np.ndarray:
        """Compute (n, C, T') terms of rows by the fit to a half; 0 of terms that the half does not have."""
        if self.names == (AVERAGE,):
            joint, log_class = half.fitted_.score(rows, scoring.joint), scoring.log_class(*half.fitted_.read())
            return np.asarray(joint - log_class)[..., None]
        n_classes, of_draws = len(half.classes_), self.groups.of_draws
        if not self.biased and len(self) == 1 and not of_draws.any() and half.fitted_.encoding.term_map.is_identity:
            # All terms have one weight, so that the sum over the terms is enough, and takes less time and memory.
            joint = half.fitted_.score(rows, scoring.joint, class_prior=np.full(n_classes, 1 / n_classes))
            return np.asarray(joint + np.log(n_classes))[..., None]
        half_terms = terms(half, rows)
        if self.biased:
            position = {name: t for t, name in enumerate(half_terms.names)}
            index = np.array([position.get(name, -1) for name in self.names])
            return np.where(index < 0, 0.0, half_terms.values[..., index])
        kinds = _term_kinds(half.fitted_)
        columns = zip(self.groups.of_draws, self.groups.index, strict=True)
        added = [(kinds == np.array(kind)[:, None]).all(axis=0) for kind in columns]
        return np.stack([half_terms.values[..., is_added].sum(axis=-1) for is_added in added], axis=-1)


def _term_kinds(fitted: Fitted) -> np.ndarray:
    """Return (2, T) masks: terms of count rows (several draws from one simplex), and terms of dependence on parents."""
    term_map, blocks = fitted.encoding.term_map, fitted.encoding.blocks
    of_draws = np.repeat([b.one_simplex for b in blocks], [len(b.term_names) for b in blocks])
    return np.array([term_map.gather(of_draws).astype(bool), term_map.dependence])


class CrossFit(NamedTuple):
    """Cross-fitted terms of rows, ready to be weighted.

    Parameters
    ----------
    columns : TermColumns
        Columns of the terms.
    terms : CrossTerms
        Columns of terms of each row, by the fits to halves without the row.
    log_length : float
        Mean of log(t + 1) over rows of t draws from one simplex; 0 where there is no simplex.
    """

    columns: TermColumns
    terms: CrossTerms
    log_length: float

    @property
    def row_weight(self) -> np.ndarray:
        """(N,) replication counts of the rows."""
        return np.bincount(self.terms.row, self.terms.weight)

    def terms_under(self, exponent: float, shrinkage: Sequence[float]) -> tuple[CrossTerms, Groups]:
        """Return terms times ((t + 1)/(t₀ + 1))^-`exponent`, and their groups; summed in each group if all τ are 0.

        Only terms of count rows, of t draws from one simplex, get the factor; t₀ is the typical t. `shrinkage` are the
        τ.
        """
        groups = self.columns.groups
        scaled = self.terms.with_exponent(exponent, groups.of_draws)
        return (scaled, groups) if any(shrinkage) else (scaled.sum_groups(groups.index), groups.collapse())


def cross_fit(
    fit: Classifier, X: object, y: object, sample_weight: object, kind: Kind, max_rows: int, seed: int
) -> tuple[Levels, CrossFit]:
    """Fit random halves of the rows, and compute the terms of the rows of the other halves.

    The number of splits is 3,000 divided by the number of rows, at least 3 and at most 6, or 1 where terms take too
    much memory.

    Parameters
    ----------
    fit : classifier
        Classifier whose terms are to be weighted, fitted to all rows.
    X, y, sample_weight
        Rows, labels and replication counts.
    kind : {"feature", "temperature", "auto"}
        "feature" and "auto": each term has a weight, and each class a bias. "temperature", and all kinds if there is
        one term: each group of terms (of draws or not, dependences or not) has a weight, and classes have no bias.
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
    columns, n_classes = TermColumns.from_fitted(fit.fitted_, kind), len(classes)
    is_sparse, cells_per_row = len(columns) > MOST_TERMS and not columns.averaged, len(columns)
    if is_sparse:  # Cells that differ from what most rows have are stored.
        cells_per_row = 1 + int(table.data.nnz) // max(1, table.n_rows) if table.is_sparse else len(table.names)
    most_rows = min(max_rows, max(1, _MOST_CELLS // (n_classes * cells_per_row)))
    position, has_rows = sample_rows(classes, label, weight, most_rows, seed, name)
    n_rows = len(position)
    n_splits = max(N_SPLITS, min(_MOST_SPLITS, _MANY_ROWS // n_rows))
    n_splits = n_splits if n_splits * n_rows * n_classes * cells_per_row <= _MOST_CELLS else 1
    first_halves = np.zeros((n_splits, len(label)), bool)
    first_halves[:, weight > 0] = random_halves(label[weight > 0], n_splits, seed)

    def blocks() -> Iterator[TermBlock]:
        """Fit both halves of each split in turn, fits 2s and 2s + 1, and yield terms of the rows of the other half."""
        fit_part, size = fit.fit_parts(X, y, weight), max(1, _CELLS_AT_ONCE // (n_classes * len(columns.names)))
        with progress("weights", 2 * n_splits) as tick:
            for k in range(2 * n_splits):
                split, is_second = divmod(k, 2)
                half = first_halves[split] != is_second
                others = np.flatnonzero(~half[position])
                # The fit to all rows has given the same warnings.
                with warnings.catch_warnings(action="ignore", category=UserWarning):
                    fitted = fit_part(weight * half)
                    log_class = np.where(has_rows, _log_class(fitted.fitted_), -np.inf)
                for start in range(0, len(others), size):
                    rows = others[start : start + size]
                    with warnings.catch_warnings(action="ignore", category=UserWarning):
                        values = columns.compute(fitted, take_rows(X, position[rows]))
                    _require_finite(values, position[rows], columns, classes)
                    yield TermBlock(split * n_rows + rows, k, log_class, values)
                tick()

    log_length = _log_lengths(fit.fitted_, table)[position]
    typical = float(np.average(log_length, weights=weight[position]))
    crossed = CrossTerms.from_blocks(
        blocks(),
        columns.groups.of_draws,
        n_classes,
        is_sparse=is_sparse,
        log_length=np.tile(log_length - typical, n_splits),
        label=np.tile(label[position], n_splits),
        weight=np.tile(weight[position] / n_splits, n_splits),
        row=np.tile(np.arange(n_rows), n_splits),
        fit=(2 * np.arange(n_splits)[:, None] + first_halves[:, position]).ravel(),
    )
    return classes, CrossFit(columns, crossed, typical if columns.groups.of_draws.any() else 0.0)


def weigh_cross_fit(crossed: CrossFit, classes: Levels) -> tuple[Weights, np.ndarray]:
    """Fit weights to cross-fitted terms by penalised logistic regression, and estimate their log loss on new rows.

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
    columns, crossed_terms, log_length = crossed
    groups, column = columns.groups, columns.column
    grid = groups.grid if columns.biased else groups.grid[:1]
    optima, chosen, exponent = optimize_weights(crossed_terms, groups, grid, biased=columns.biased)
    best, of_draws, row_weight = optima[chosen], groups.of_draws[column], crossed.row_weight
    scaled = crossed_terms.with_exponent(exponent, groups.of_draws)
    prior = Prior(groups, best.shrinkage, len(classes), columns.biased)
    losses = held_out_log_losses(scaled, prior, (best.bias, best.weight))
    plain = crossed_terms.averaged() if columns.averaged else crossed_terms
    plain_losses = plain.log_losses(np.zeros(len(classes)), np.ones(plain.reference.shape[-1]))
    path = {field.name: np.array([getattr(optimum, field.name) for optimum in optima]) for field in fields(Optimum)}
    path |= {name: path[name][:, column] for name in ("weight", "sd")}
    # Without dependences there is one temperature.
    temperature, dependence_temperature = (*best.temperature.tolist(), 0.0)[:2]
    shrinkage, dependence_shrinkage = (*best.shrinkage.tolist(), 0.0)[:2]
    weights = Weights(
        names=columns.names,
        weight=best.weight[column] * np.where(of_draws, np.exp(exponent * log_length), 1.0),
        classes=classes,
        class_bias=best.bias,
        temperature=temperature,
        shrinkage=shrinkage,
        of_draws=of_draws,
        exponent=exponent,
        log_length=log_length,
        n_rows=len(row_weight),
        log_loss=float(np.average(losses, weights=row_weight)),
        plain_log_loss=float(np.average(plain_losses, weights=row_weight)),
        path=WeightPath(**{field.name: path[field.name] for field in fields(WeightPath)}),
        dependence=groups.index[column] == 1,
        dependence_temperature=dependence_temperature,
        dependence_shrinkage=dependence_shrinkage,
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
    means = np.average(losses, axis=1, weights=weight)
    best = int(np.argmin(means))
    excess, mean_excess = np.asarray(losses) - losses[best], means - means[best]
    variance = np.average((excess - mean_excess[:, None]) ** 2, axis=1, weights=weight)
    return int(np.argmax(mean_excess <= np.maximum(np.sqrt(variance / weight.sum()), NEGLIGIBLE)))


def _log_class(fitted: Fitted) -> np.ndarray:
    """Return (C,) log posterior mean class probabilities; a fixed class prior is replaced by Dirichlet(1).

    Biases that were fitted under another class prior than the rows have would undo it.
    """
    if not fitted.prior.class_prior.fixed:
        return fitted.class_log_prior
    uniform = class_distribution(None, 1.0, fitted.encoding.classes)
    posterior = float64(uniform.update)(LevelCounts(fitted.statistics.class_count[None]))
    return np.asarray(scoring.plug_in(posterior).log_theta[0])


def _log_lengths(fitted: Fitted, table: Table) -> np.ndarray:
    """Return (N,) log(t + 1) for count rows of t draws from one simplex; zeros where no block has a simplex."""
    for columns in fitted.encoding.blocks:
        if columns.one_simplex:
            rows: Any = columns.rows(table)
            return np.asarray(np.log1p(rows.length()))
    return np.zeros(table.n_rows)


def _require_finite(values: np.ndarray, rows: np.ndarray, columns: TermColumns, classes: Levels) -> None:
    """Raise ValueError, naming row, term and class, if any of the terms `values` (n, C, T') is infinite or NaN."""
    if np.isfinite(values).all():
        return
    i, c, t = (int(v[0]) for v in np.nonzero(~np.isfinite(values)))
    names = [name for name, column in zip(columns.names, columns.column, strict=True) if column == t]
    raise ValueError(
        f"weights: for row {rows[i]} the term of {shown(', '.join(names))} in class {classes.values[c]!r} is "
        f"{values[i, c, t]}, in the fit to the other half of the rows. Weights need finite terms. Use a prior with "
        "positive concentrations (alpha > 0) and estimate='predictive', which together give finite terms."
    )
