"""Weights of terms, fitted to random halves of the rows: each half is fitted, and the other half's labels predicted.

Terms of a row by fits that know its label, or by leave-one-out, promise too much: the label is in the tables of all
other rows, and what is chance looks like evidence. Given one half, the labels of the other are independent, so that
their log score is a likelihood, and its evidence means what it says.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
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
from bayesnb.prediction.dense_terms import MOST_TERMS, DenseCollector, DenseTerms
from bayesnb.prediction.sparse_terms import SparseCollector
from bayesnb.prediction.terms import AVERAGE, term_names, terms
from bayesnb.prediction.weight_optimum import CrossTerms, Groups, Prior, fit_weights
from bayesnb.prediction.weights import WeightPath, Weights
from bayesnb.selection.left_out import FEWEST_EVENTS

Kind = Literal["feature", "temperature", "auto"]

N_SPLITS, _MOST_SPLITS, _MANY_ROWS = 3, 6, 3_000
NEGLIGIBLE = 1e-3
"""Difference between mean losses, in nats, for which no model is made more complex."""
_MOST_CELLS = 2**27
_CELLS_AT_ONCE = 2**24


class TooFewRowsError(ValueError):
    """Error raised if the rows are too few to fit weights to."""


class Scored(NamedTuple):
    """Rows that weights are fitted to.

    `rows` (N,) are indices of the user's rows, `label` and `weight` (N,) those of these rows, and `classes` (C,) says
    which classes take part.
    """

    rows: np.ndarray
    label: np.ndarray
    weight: np.ndarray
    classes: np.ndarray


def random_halves(label: np.ndarray, n_splits: int, seed: int) -> np.ndarray:
    """Draw (S, N) Booleans: which rows are in the first half of each split, stratified by class.

    Examples
    --------
    >>> import numpy as np
    >>> halves = random_halves(np.array([0, 0, 0, 0, 1, 1]), n_splits=2, seed=0)
    >>> halves[:, :4].sum(axis=1), halves[:, 4:].sum(axis=1)
    (array([2, 2]), array([1, 1]))
    """
    rng, first = np.random.default_rng(seed), np.zeros((n_splits, len(label)), bool)
    for half in first:
        order = rng.permutation(len(label))
        half[order[np.argsort(label[order], kind="stable")][::2]] = True
    return first


def scored_rows(classes: Levels, label: np.ndarray, weight: np.ndarray, max_rows: int, seed: int, name: str) -> Scored:
    """Choose the rows that weights are fitted to: all, or a stratified sample of `max_rows`.

    Parameters
    ----------
    classes : Levels
    label, weight : (N,) arrays
        Index of the class, and replication count, of each row.
    max_rows, seed : int
    name : str
        Of the classifier, for messages.

    Raises
    ------
    TooFewRowsError
        If fewer than ten rows are outside the largest class.

    Warns
    -----
    UserWarning
        Of classes with one row, which do not take part: a half would not have them.
    """
    n_classes, usable = len(classes), weight > 0
    of_class = np.bincount(label[usable], minlength=n_classes)
    part = of_class > 1
    usable &= part[label]
    rows = np.flatnonzero(usable)
    if len(rows) > max_rows:
        order = np.random.default_rng(seed).permutation(rows)
        order = order[np.argsort(label[order], kind="stable")]
        rows = np.sort(order[np.linspace(0, len(order) - 1, max_rows).astype(int)])
    counts = np.bincount(label[rows], weight[rows], minlength=n_classes)
    if (events := counts.sum() - counts.max(initial=0.0)) < FEWEST_EVENTS:
        raise TooFewRowsError(
            f"only {events:g} rows are outside the largest class, and weights take {FEWEST_EVENTS} or more (rows alone "
            "in their class do not count)."
        )
    if few := [classes.values[c] for c in np.flatnonzero(of_class == 1)][:8]:
        warn(
            f"{name}: of classes {few} there is one row here, and halves would lack it: it does not enter the weights, "
            "and these classes have no bias."
        )
    return Scored(rows, label[rows], weight[rows], part)


class CrossFit(NamedTuple):
    """Terms of rows by fits to halves of the others, ready to be weighted.

    `names` (T,) are those of the terms, `column` (T,) says which of the T' columns of `terms` each is part of, and
    `groups` which of these share a temperature. `biased` is whether classes have a bias, `averaged` whether terms are
    models whose probabilities are averaged where they have no weights, and `log_length` the mean of log(t + 1) over
    rows that are t draws from one simplex.
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

    def at(self, exponent: float, shrinkage: Sequence[float]) -> tuple[CrossTerms, Groups]:
        """Return the terms of rows of typical length, for a given β; sums of them where all have the same weight."""
        scaled = self.terms.with_exponent(exponent, self.groups.of_draws)
        return (scaled, self.groups) if any(shrinkage) else (scaled.sum_groups(self.groups), self.groups.summed())


def cross_fit(
    fit: Classifier, X: Any, y: Any, sample_weight: Any, kind: Kind, max_rows: int, seed: int
) -> tuple[Levels, CrossFit]:
    """Fit halves of the rows, and find the terms of the rows of the other halves.

    Parameters
    ----------
    fit : classifier
        Fitted to all rows: its terms are wanted.
    X, y, sample_weight
        Rows.
    kind : {"feature", "temperature", "auto"}
    max_rows : int
        Most rows to find the terms of.
    seed : int

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
    name, n_all = fit.fitted_.name, fit.fitted_.table(X).n_rows
    classes, label = check_labels(y, n_all, name)
    weight = check_weights(sample_weight, n_all)
    layout = _Layout.of(fit.fitted_, kind)
    is_sparse = layout.n_columns > MOST_TERMS and fit.fitted_.average is None
    cells = len(classes) * (_mean_cells(fit.fitted_.table(X)) if is_sparse else layout.n_columns)
    scored = scored_rows(classes, label, weight, min(max_rows, max(1, _MOST_CELLS // cells)), seed, name)
    n_splits = max(N_SPLITS, min(_MOST_SPLITS, _MANY_ROWS // len(scored.rows)))
    n_splits = n_splits if n_splits * len(scored.rows) * cells <= _MOST_CELLS else 1
    n_rows, n_classes = len(scored.rows), len(classes)
    collector: DenseCollector | SparseCollector = (
        SparseCollector(2 * n_splits, layout.groups.of_draws)
        if is_sparse
        else DenseCollector((n_splits * n_rows, n_classes, layout.n_columns))
    )
    log_class, fit_of = np.empty((n_splits * n_rows, n_classes)), np.empty(n_splits * n_rows, int)
    counted, at_once = weight > 0, max(1, _CELLS_AT_ONCE // (n_classes * layout.n_columns))
    part = fit.fit_parts(X, y, weight)
    with progress("weights", 2 * n_splits) as tick:
        for split, half in enumerate(random_halves(label[counted], n_splits, seed)):
            for direction, one in enumerate((half, ~half)):
                side = np.zeros(n_all, bool)
                side[counted] = one
                others, k = np.flatnonzero(~side[scored.rows]), 2 * split + direction
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)  # the fit to all rows has told
                    fitted = part(weight * side)
                    for start in range(0, len(others), at_once):
                        rows = others[start : start + at_once]
                        values = layout.values(fitted, take_rows(X, scored.rows[rows]))
                        _require_finite(values, scored.rows[rows], layout, classes)
                        collector.add(split * n_rows + rows, k, values)
                log_class[split * n_rows + others] = np.where(scored.classes, _log_class(fitted.fitted_), -np.inf)
                fit_of[split * n_rows + others] = k
                tick()
    log_length = _log_lengths(fit.fitted_, X)[scored.rows]
    typical = float(np.average(log_length, weights=scored.weight))
    return classes, CrossFit(
        layout.names,
        layout.column,
        collector.finish(
            log_class=log_class,
            log_length=np.tile(log_length - typical, n_splits),
            label=np.tile(scored.label, n_splits),
            weight=np.tile(scored.weight / n_splits, n_splits),
            row=np.tile(np.arange(n_rows), n_splits),
            fit=fit_of,
        ),
        layout.groups,
        layout.biased,
        fit.fitted_.average is not None,
        typical if layout.groups.of_draws.any() else 0.0,
    )


def weigh_cross_fit(found: CrossFit, classes: Levels) -> tuple[Weights, np.ndarray]:
    """Fit weights to the terms of a cross-fit, whose axis of classes has these; return the (N,) expected losses too."""
    optima, chosen, exponent = fit_weights(found.terms, found.groups, found.grid, biased=found.biased)
    best, of_draws = optima[chosen], found.groups.of_draws[found.column]
    scaled = found.terms.with_exponent(exponent, found.groups.of_draws)
    if found.averaged and isinstance(found.terms, DenseTerms):
        plain_losses = found.terms.averaged().log_losses(np.zeros(len(classes)), np.ones(1))
    else:
        plain_losses = found.terms.log_losses(np.zeros(len(classes)), np.ones(len(found.groups.of_terms)))
    prior = Prior.of(found.groups, best.shrinkage, len(classes), biased=found.biased)
    weight, losses = found.row_weight, scaled.held_out_log_losses(prior, (best.bias, best.weight))
    dependence = found.groups.of_terms[found.column] == 1
    weights = Weights(
        names=found.names,
        weight=best.weight[found.column] * np.where(of_draws, np.exp(exponent * found.log_length), 1.0),
        classes=classes,
        class_bias=best.bias,
        temperature=float(best.temperature[0]),
        shrinkage=float(best.shrinkage[0]),
        of_draws=of_draws,
        exponent=exponent,
        log_length=found.log_length,
        n_rows=len(weight),
        log_loss=float(np.average(losses, weights=weight)),
        plain_log_loss=float(np.average(plain_losses, weights=weight)),
        path=WeightPath(
            shrinkage=np.array([one.shrinkage for one in optima]),
            log_evidence=np.array([one.log_evidence for one in optima]),
            temperature=np.array([one.temperature for one in optima]),
            temperature_sd=np.array([one.temperature_sd for one in optima]),
            weight=np.array([one.weight[found.column] for one in optima]),
            sd=np.array([one.sd[found.column] for one in optima]),
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
class _Layout:
    """Terms of a classifier, and the T' columns of those that share one weight.

    `column` (T,) is the column of each term: its own, or under a common weight one for all, but that rows of several
    draws from one simplex have theirs.
    """

    names: tuple[str, ...]
    column: np.ndarray
    groups: Groups
    biased: bool

    @classmethod
    def of(cls, fitted: Fitted, kind: Kind) -> _Layout:
        names = term_names(fitted)
        common = kind == "temperature" or len(names) == 1
        if fitted.average is not None:
            names = (AVERAGE,) if common else names
            of_draws = dependence = np.zeros(len(names), bool)
        else:
            of_terms = fitted.encoding.term_map
            blocks = fitted.encoding.blocks
            of_draws = of_terms.gather(np.repeat([b.one_simplex for b in blocks], [len(b.term_names) for b in blocks]))
            of_draws, dependence = of_draws.astype(bool), of_terms.dependence
        column = np.arange(len(names))
        if common:
            (of_draws, dependence), column = np.unique([of_draws, dependence], axis=1, return_inverse=True)
        return cls(names, column, Groups.of(dependence, of_draws), not common)

    @property
    def n_columns(self) -> int:
        """Number of columns, T'."""
        return len(self.groups.of_terms)

    def values(self, half: Any, rows: Any) -> np.ndarray:
        """Compute (n, C, T') terms of rows by the fit to a half; 0 where it has no such term."""
        if self.names == (AVERAGE,):
            log_class = scoring.log_class(*half.fitted_.read())
            return (half.predict_joint_log_proba(rows) - log_class)[..., None]
        if self.biased:
            found = terms(half, rows)
            position = {name: t for t, name in enumerate(found.names)}
            at = np.array([position.get(name, -1) for name in self.names])
            return np.where(at < 0, 0.0, found.values[..., at])
        fitted: Fitted = half.fitted_
        own, blocks = _Layout.of(fitted, "temperature"), fitted.encoding.blocks
        model, reading = fitted.read()
        encoded, n_rows = fitted.encode(rows)
        parts, sizes = JointLikelihood.block_log_likelihoods, [len(b.term_names) for b in blocks]
        values = np.zeros((n_rows, model.n_classes, self.n_columns))
        for t, (draws, group) in enumerate(zip(self.groups.of_draws, self.groups.of_terms, strict=True)):
            wanted = (own.groups.of_draws == draws) & (own.groups.of_terms == group)
            weight = fitted.encoding.term_map.spread(wanted[own.column].astype(float))
            weighted = replace(model, weights=TermWeights.split(np.zeros(model.n_classes), weight, sizes))
            values[..., t] = scoring.terms_of_rows(
                fitted.encoding, weighted, encoded, n_rows, reading, function=parts
            ).sum(axis=-1)
        return values


def _mean_cells(table: Table) -> int:
    """Return how many cells of a row differ from what most rows have: of a sparse matrix those that are stored."""
    return 1 + table.data.nnz // max(1, table.n_rows) if table.is_sparse else len(table.names)


@float64
def _log_class(fitted: Fitted) -> np.ndarray:
    """Return (C,) log P(class) as rows tell, even if predictions are to take a known one: biases must not undo it."""
    class_prior: Any = fitted.prior.class_prior
    if class_prior.fixed:
        class_prior = class_distribution(None, 1.0, len(fitted.encoding.classes))
    return scoring.plug_in(class_prior.update(LevelCounts(fitted.statistics.class_count[None]))).log_theta[0]


def _log_lengths(fitted: Fitted, X: Any) -> np.ndarray:
    """Return (N,) log(t + 1) of rows of t draws from one simplex; 0 where there is none."""
    table = fitted.table(X)
    for columns in fitted.encoding.blocks:
        if columns.one_simplex:
            rows: Any = columns.rows(columns.open(table))
            return np.log1p(rows.length())
    return np.zeros(table.n_rows)


def _require_finite(values: np.ndarray, rows: np.ndarray, layout: _Layout, classes: Levels) -> None:
    if np.isfinite(values).all():
        return
    i, c, t = (int(v[0]) for v in np.nonzero(~np.isfinite(values)))
    names = [name for name, column in zip(layout.names, layout.column, strict=True) if column == t]
    raise ValueError(
        f"weights: by a half of the rows without row {rows[i]} the term of {shown(', '.join(names))} in class "
        f"{classes.values[c]!r} is {values[i, c, t]}, and no weight makes that a probability. A prior with positive "
        "concentrations has finite terms: alpha > 0, estimate='predictive'."
    )
