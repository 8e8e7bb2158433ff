"""Cross-fitting: each random half of the rows is fitted, and scores the rows of the other half.

Terms of a row by fits that know its label, or by leave-one-out, promise too much: the label is in the tables of all
other rows, and what is chance looks like evidence. Given the rows of one half, the labels of the other half are
independent, so that their log score is a log-likelihood whose evidence can be compared. It chooses weights of terms,
densities of columns of numbers, and candidates such as numbers of parents.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import tee
from operator import itemgetter
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesnb._util.arguments import shown
from bayesnb._util.precision import float64
from bayesnb._util.terminal import progress
from bayesnb._util.warnings import warn
from bayesnb.encoding import Encoding, Levels, Rows, Table
from bayesnb.fitted import scoring
from bayesnb.fitted.state import Fitted
from bayesnb.model import JointLikelihood, NaiveBayes
from bayesnb.weights.halves import (
    count_events,
    have_several_units,
    mean_of_units,
    number_of_splits,
    random_halves,
    sample_rows,
)
from bayesnb.weights.optimum import (
    Groups,
    Optimum,
    WeightPrior,
    approximate_posterior,
    held_out_log_losses,
    optimize_weights,
)
from bayesnb.weights.terms import AVERAGE, MOST_TERMS, CrossTerms, TermBlock, WeightPath, Weights, terms_of_rows

# == Comparison of two densities of columns of numbers by how well they predict the class, by fits to random halves

MOST_ROWS = 10_000
_MOST_TERMS = 2**25
_WORST = -1e3


class Density(NamedTuple):
    """Encoded rows of F columns in one block, and the posterior of their parameters by weights (N,) of the rows."""

    encoding: Encoding
    rows: Rows
    fit: Callable[[np.ndarray], NaiveBayes]

    def likelihoods(self, weights: list[np.ndarray]) -> list[JointLikelihood]:
        """Return the predictive likelihoods of the columns under each of K weights of the rows."""
        fits = [self.fit(weight) for weight in weights]
        family = fits[0].blocks[0]
        if not hasattr(family, "read_together"):
            return [float64(fit.read)("predictive") for fit in fits]
        together = float64(family.read_together)([fit.blocks[0] for fit in fits])
        log_class = [scoring.log_class(fit, "predictive") for fit in fits]
        return [JointLikelihood(v, (likelihood,)) for v, likelihood in zip(log_class, together, strict=True)]


class NumberTerms(NamedTuple):
    """Terms log p(x_j | class) of F columns of numbers, by fits to random halves of the rows without the row.

    Parameters
    ----------
    names : tuple of str
        Names of the columns.
    halves : (S, N) bool array
        Whether each row is in the first half of each split.
    rows : (n,) int array
        Positions of the rows that have terms, in ascending order.
    values : (S, n, C, F) array
        Terms of each row by the half of each split that lacks the row.
    """

    names: tuple[str, ...]
    halves: Bool[np.ndarray, "S N"]
    rows: Int[np.ndarray, "n"]
    values: Float[np.ndarray, "S n C F"]

    def of_half(self, counted: np.ndarray, rows: np.ndarray) -> Float[np.ndarray, "m C F"] | None:
        """Return the terms of `rows` (m,) by a fit to the rows in the mask `counted` (N,); None if there are none."""
        for half, values in zip(self.halves, self.values, strict=True):
            if np.array_equal(counted, half if counted[0] == half[0] else ~half) and np.isin(rows, self.rows).all():
                return np.asarray(values[np.searchsorted(self.rows, rows)])
        return None


def compare_densities(
    first: Density, second: Density, label: np.ndarray, weight: np.ndarray, unit: np.ndarray | None, seed: int
) -> tuple[Float[np.ndarray, "F"], Callable[[np.ndarray], NumberTerms] | None]:
    """Compute (F,) gains in log P(class) of each column's second density over its first, in nats per row.

    A function is returned, too, of a mask (F,) of the columns that have the second density, to their `NumberTerms`.

    The score of a density is log P(y | x_j), by that column alone, of each row by fits to halves without the row. The
    gains of the columns are shrunk to a common gain, so that few units give little reason to choose. Where fewer than
    ten units are outside the largest class the gains are 0, and there is no such function. Rows of classes with a
    single unit are not scored.

    Parameters
    ----------
    first, second : Density
        Densities of the same columns.
    label, weight : (N,) arrays
        Index of the class, and replication count, of each row.
    unit : (N,) int array or None
        Index of the unit of each row. None: each row is a unit.
    seed : int
        Seed of the halves.

    References
    ----------
    DerSimonian & Laird, *Meta-analysis in clinical trials*, Controlled Clinical Trials 7 (1986), for the shrinkage.
    """
    n_columns, n_classes = int(first.rows.width()), len(first.encoding.classes)
    unit = np.arange(len(label)) if unit is None else unit
    if count_events(label, weight, unit) < FEWEST_EVENTS:
        return np.zeros(n_columns), None
    rows = sample_rows(label, min(MOST_ROWS, max(1, _MOST_TERMS // (n_classes * n_columns))), seed, unit)
    halves = random_halves(label, number_of_splits(unit[rows]), seed, unit)
    sides = [half for first_half in halves for half in (first_half, ~first_half)]
    gain, terms = np.zeros((len(rows), n_columns)), np.zeros((2, len(halves), len(rows), n_classes, n_columns))
    for density, sign, of_density in ((first, -1, terms[0]), (second, 1, terms[1])):
        for k, likelihood in enumerate(density.likelihoods([weight * half for half in sides])):
            others = np.flatnonzero(~sides[k][rows])
            of_others = (density.rows.take(rows[others]),)
            values = scoring.terms(density.encoding, likelihood, of_others, len(others))
            of_density[k // 2, others] = values
            gain[others] += sign * _label_scores(values, likelihood.log_class, label[rows[others]])

    def choose(is_second: np.ndarray) -> NumberTerms:
        """Return the terms of the columns with the second density where the mask (F,) is true."""
        return NumberTerms(tuple(first.encoding.term_names), halves, rows, np.where(is_second, terms[1], terms[0]))

    return shrink(gain / len(halves), weight[rows], unit[rows]), choose


def shrink(gain: np.ndarray, weight: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Shrink the weighted column means of `gain` (N, F) to a common mean by normal empirical Bayes; return (F,).

    The variances of the means are those of means of units, `unit` (N,).
    """
    mean, variance = mean_of_units(gain, weight, unit)
    variance = np.maximum(variance, 1e-18)
    precision = 1.0 / variance
    common = precision @ mean / precision.sum()
    excess = precision @ (mean - common) ** 2 - (len(mean) - 1)
    spread = max(0.0, excess / max(precision.sum() - precision @ precision / precision.sum(), 1e-300))
    precision = 1.0 / (spread + variance)
    common = mean @ precision / precision.sum()
    return np.asarray(common + spread / (spread + variance) * (mean - common))


def _label_scores(terms: np.ndarray, log_class: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Compute (n, F) log P(label | x_j) from terms (n, C, F) of each column j alone, at least -1000 nats.

    A row that all classes exclude has -log C.
    """
    joint = terms + np.asarray(log_class)[:, None]
    of_label = np.take_along_axis(joint, label[:, None, None], axis=1)[:, 0]
    # A cell that is impossible in every class, or too far out for float64, leaves all classes equally probable.
    with np.errstate(invalid="ignore"):
        score = of_label - np.logaddexp.reduce(joint, axis=1)
    return np.asarray(np.maximum(np.where(np.isnan(score), -np.log(joint.shape[1]), score), _WORST))


# == Cross-fitting for weights of terms: each random half of the rows is fitted, and scores the rows of the other half

Kind = Literal["feature", "temperature", "auto"]

FEWEST_EVENTS = 10
"""Fewest units outside the largest class for which choices are made on halves (Peduzzi et al. 1996)."""
NEGLIGIBLE = 1e-3
"""Difference between mean losses, in nats, below which the simpler model is taken."""
_MOST_CELLS = 2**27
_CELLS_AT_ONCE = 2**24


class TooFewRowsError(ValueError):
    """Error raised if the rows are too few to fit weights to."""


def choose_rows(
    classes: Levels, label: np.ndarray, weight: np.ndarray, unit: np.ndarray, max_rows: int, seed: int, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Choose the rows that weights are fitted to: all, or a stratified sample of `max_rows`.

    Parameters
    ----------
    classes : Levels
        Classes of the labels.
    label, weight, unit : (N,) arrays
        Index of the class, positive replication count, and index of the unit, of each row.
    max_rows, seed : int
        Most rows to choose, and seed of the sample.
    name : str
        Name of the classifier, for messages.

    Returns
    -------
    position : (N',) int array
        Positions of the chosen rows, in ascending order.
    has_rows : (C,) array of bool
        Whether the rows of a class take part; those of a class with a single unit do not.

    Raises
    ------
    TooFewRowsError
        If fewer than ten units are outside the largest class.

    Warns
    -----
    UserWarning
        If a class has one unit only, which does not take part: one of two halves would lack the class.
    """
    n_classes = len(classes)
    has_rows = have_several_units(label, unit, n_classes)
    position = sample_rows(label, max_rows, seed, unit)
    if (events := count_events(label[position], weight[position], unit[position])) < FEWEST_EVENTS:
        raise TooFewRowsError(
            f"Weights need {FEWEST_EVENTS} or more rows outside the largest class, but there are only {events:g}, "
            "without classes of one row. A row counts at most once, whatever its weight, and so do the copies of a row "
            "and the rows of a group. Pass more rows."
        )
    if single := [classes.values[c] for c in np.setdiff1d(label, np.flatnonzero(has_rows))]:
        warn(
            f"{name}: the classes {single[:8]} have one row each, or copies of one row, or rows of one group. Weights "
            "need rows of each class in both halves of the rows. These rows are left out, and these classes have no "
            "bias. Pass two or more rows, or rows of two or more groups, of each class."
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
    def from_encoding(cls, encoding: Encoding, members: Sequence[str] | None, kind: Kind) -> TermColumns:
        """Choose the columns for weights of a `kind`: one for each term, or one for each set with a common weight.

        Sets are chosen for "temperature", and for a single term; there is then no bias. "auto" is otherwise "feature".
        `members` are the names of the members of an average of models; None: the terms are those of the encoding.
        """
        names = encoding.term_map.names if members is None else tuple(members)
        if (has_common_weight := kind == "temperature" or len(names) == 1) and members is not None:
            names = (AVERAGE,)
        column = np.arange(len(names))
        kinds = np.zeros((2, len(names)), bool) if members is not None else _term_kinds(encoding)
        if has_common_weight:
            # The weight of rows of several draws from one simplex depends on their length, so that they have a column.
            kinds, column = np.unique(kinds, axis=1, return_inverse=True)
        of_draws, dependence = kinds
        groups = Groups.from_dependence(dependence, of_draws)
        return cls(names, column, groups, not has_common_weight, members is not None)

    def __len__(self) -> int:
        """Return the number of columns, T'."""
        return len(self.groups.index)

    def compute(self, half: Fitted, rows: tuple[Rows, ...], n_rows: int) -> np.ndarray:
        """Compute (n, C, T') terms of encoded rows by the fit to a half; 0 of terms that the half does not have."""
        if self.names == (AVERAGE,):
            joint = half.score(rows, n_rows, scoring.joint)
            return np.asarray(joint - half.log_class())[..., None]
        n_classes, of_draws = len(half.encoding.classes), self.groups.of_draws
        if not self.biased and len(self) == 1 and not of_draws.any() and half.encoding.term_map.is_identity:
            # All terms have one weight, so that the sum over the terms is enough, and takes less time and memory.
            uniform = np.full(n_classes, 1 / n_classes)
            joint = half.score(rows, n_rows, scoring.joint, class_prior=uniform)
            return np.asarray(joint + np.log(n_classes))[..., None]
        half_terms = terms_of_rows(half, rows, n_rows)
        return self.arrange(half_terms.names, half_terms.values, _term_kinds(half.encoding))

    def arrange(self, names: Sequence[str], values: np.ndarray, kinds: np.ndarray) -> np.ndarray:
        """Return (n, C, T') columns of terms (n, C, T) of these names and kinds (2, T); 0 of other terms."""
        if self.biased:
            if self.names == tuple(names):
                return values
            position = {name: t for t, name in enumerate(names)}
            index = np.array([position.get(name, -1) for name in self.names])
            return np.where(index < 0, 0.0, values[..., index])
        columns = zip(self.groups.of_draws, self.groups.index, strict=True)
        added = [(kinds == np.array(kind)[:, None]).all(axis=0) for kind in columns]
        return np.stack([values[..., is_added].sum(axis=-1) for is_added in added], axis=-1)


def _term_kinds(encoding: Encoding) -> np.ndarray:
    """Return (2, T) masks: terms of count rows (several draws from one simplex), and terms of dependence on parents."""
    term_map, blocks = encoding.term_map, encoding.blocks
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
    classes : Levels
        Classes on the axis of classes of the terms.
    unit : (N,) int array
        Index of the unit of each row, from 0 on.
    position : (N,) int array
        Positions of the rows among the N' rows that were fitted.
    halves : (S, N') bool array
        Whether each fitted row is in the first half of each split.
    """

    columns: TermColumns
    terms: CrossTerms
    log_length: float
    classes: Levels
    unit: np.ndarray
    position: np.ndarray
    halves: np.ndarray

    @property
    def row_weight(self) -> np.ndarray:
        """(N,) replication counts of the rows."""
        return np.bincount(self.terms.row, self.terms.weight)

    def with_experts(self, names: tuple[str, ...], log_proba: Float[np.ndarray, "C A E"], exponent: float) -> CrossFit:
        """Return a copy with terms log q(class | row) - log P(class) of E experts as the last columns.

        The other terms are scaled for the lengths of rows, see `terms_under`; classes without rows have terms of 0.
        """
        columns, terms = self.columns, self.terms.with_exponent(exponent, self.columns.groups.of_draws)
        log_class, n = terms.log_class.T[..., None], len(names)
        values = np.where(np.isfinite(log_class), log_proba - np.where(np.isfinite(log_class), log_class, 0.0), 0.0)
        reference = np.pad(terms.reference, ((0, 0), (0, 0), (0, n)))
        column = np.append(columns.column, len(columns) + np.arange(n))
        columns = replace(columns, names=(*columns.names, *names), column=column, groups=columns.groups.with_experts(n))
        difference = np.concatenate([np.asarray(terms.difference), values], axis=-1)
        return self._replace(columns=columns, terms=replace(terms, difference=difference, reference=reference))

    def terms_under(self, exponent: float, shrinkage: Sequence[float]) -> tuple[CrossTerms, Groups]:
        """Return terms times ((t + 1)/(t₀ + 1))^-`exponent`, and their groups; summed in each group if all τ are 0.

        Only terms of count rows, of t draws from one simplex, get the factor; t₀ is the typical t. `shrinkage` are the
        τ.
        """
        groups = self.columns.groups
        scaled = self.terms.with_exponent(exponent, groups.of_draws)
        return (scaled, groups) if any(shrinkage) else (scaled.sum_groups(groups.index), groups.collapse())


def cross_fit(parts: Any, kind: Kind, max_rows: int, seed: int) -> list[CrossFit]:
    """Fit random halves of the rows, and compute the terms of the rows of the other halves by each candidate.

    The number of splits is 3,000 divided by the number of units, at least 3 and at most 6, or 1 where terms take too
    much memory.

    Parameters
    ----------
    parts : bayesnb.estimators.classifier_state.Parts
        Encoded rows of positive weight, candidates for a model of them, and fits to halves of the rows.
    kind : {"feature", "temperature", "auto"}
        "feature" and "auto": each term has a weight, and each class a bias. "temperature", and all kinds if there is
        one term: each group of terms (of draws or not, dependences or not) has a weight, and classes have no bias.
    max_rows : int
        Most rows to compute the terms of.
    seed : int
        Seed of the splits, and of the sample of rows.

    Raises
    ------
    TooFewRowsError
        If fewer than ten units are outside the largest class.
    ValueError
        If a term is infinite.
    """
    label, weight, unit, classes = parts.batch.label, parts.batch.weight, parts.unit, parts.encodings[0].classes
    members = parts.known.fitted_.member_names
    candidates = [TermColumns.from_encoding(encoding, members, kind) for encoding in parts.encodings]
    n_classes, most_terms = len(classes), max(map(len, candidates))
    is_sparse = most_terms > MOST_TERMS and members is None
    # Of sparse terms the cells that differ from what most rows have are stored.
    table = parts.batch.table
    stored = 1 + int(table.data.nnz) // max(1, table.n_rows) if table.is_sparse else len(table.names)
    cells_per_row = stored if is_sparse else sum(map(len, candidates))
    most_rows = min(max_rows, max(1, _MOST_CELLS // (n_classes * cells_per_row)))
    position, has_rows = choose_rows(classes, label, weight, unit, most_rows, seed, type(parts.nb).__name__)
    n_rows = len(position)
    n_splits = number_of_splits(unit[position])
    n_splits = n_splits if n_splits * n_rows * n_classes * cells_per_row <= _MOST_CELLS else 1
    first_halves = random_halves(label, n_splits, seed, unit)

    def blocks() -> Iterator[list[TermBlock]]:
        """Fit both halves of each split, fits 2s and 2s + 1, and yield terms of the other half by each candidate."""
        size = max(1, _CELLS_AT_ONCE // (n_classes * most_terms))
        with progress("weights", 2 * n_splits) as tick:
            for k in range(2 * n_splits):
                split, is_second = divmod(k, 2)
                is_counted = first_halves[split] != is_second
                others = np.flatnonzero(~is_counted[position])
                # The fit to all rows has given the same warnings.
                with warnings.catch_warnings(action="ignore", category=UserWarning):
                    half = parts.half(weight * is_counted, position[others])
                    log_class = np.where(has_rows, half.log_class, -np.inf)
                    for start in range(0, len(others), size):
                        rows = others[start : start + size]
                        found = half.terms(candidates, position[rows])
                        for columns, values in zip(candidates, found, strict=True):
                            _require_finite(values, parts.position[position[rows]], columns, classes)
                        yield [TermBlock(split * n_rows + rows, k, log_class, values) for values in found]
                tick()

    log_length = _log_lengths(parts.encodings[0], table)[position]
    typical = float(np.average(log_length, weights=weight[position]))
    fields_of_rows = {
        "log_length": np.tile(log_length - typical, n_splits),
        "label": np.tile(label[position], n_splits),
        "weight": np.tile(weight[position] / n_splits, n_splits),
        "row": np.tile(np.arange(n_rows), n_splits),
        "fit": (2 * np.arange(n_splits)[:, None] + first_halves[:, position]).ravel(),
    }
    crossed, unit = [], np.unique(unit[position], return_inverse=True)[1]
    for c, (columns, stream) in enumerate(zip(candidates, tee(blocks(), len(candidates)), strict=True)):
        of_draws, found = columns.groups.of_draws, map(itemgetter(c), stream)
        terms = CrossTerms.from_blocks(found, of_draws, n_classes, is_sparse=is_sparse, **fields_of_rows)
        log_length_of_rows = typical if of_draws.any() else 0.0
        crossed.append(CrossFit(columns, terms, log_length_of_rows, classes, unit, position, first_halves))
    return crossed


def choose_weights(crossed: Sequence[CrossFit]) -> tuple[int, Weights, np.ndarray]:
    """Choose the simplest candidate whose expected log loss is near the least; return position, weights and row losses.

    Near is within .001 nats, or one standard error of the difference. Candidates become more complex, and the search
    ends with the second in a row that is no better than the candidates before. Where terms are many, candidates from
    the third on are compared under the τ of the one before.
    """
    fits, losses = list[Weights](), list[np.ndarray]()
    for cross in crossed:
        near = fits[-1] if len(fits) > 1 else None
        weights, row_losses = weigh_cross_fit(cross, near, keep=near is not None and cross.terms.are_many)
        fits.append(weights)
        losses.append(row_losses)
        means = [w.log_loss for w in fits]
        if len(means) > 2 and min(means[-2:]) >= min(means[:-2]):
            break
    k = choose_simplest(losses, crossed[0].row_weight, crossed[0].unit)
    if k > 1 and crossed[k].terms.are_many:
        fits[k], losses[k] = weigh_cross_fit(crossed[k], fits[k])
    return k, add_posterior(crossed[k], fits[k]), losses[k]


def weigh_cross_fit(
    crossed: CrossFit, near: Weights | None = None, *, keep: bool = False
) -> tuple[Weights, np.ndarray]:
    """Fit weights to cross-fitted terms by penalised logistic regression, and estimate their log loss on new rows.

    Parameters
    ----------
    crossed : CrossFit
        Terms of N rows.
    near : Weights, optional
        Weights of the same terms, where the search begins.
    keep : bool, default False
        Whether to keep the τ of `near`.

    Returns
    -------
    weights : Weights
    losses : (N,) array
        Expected log loss of each row on which weights are fitted to other rows, in nats.
    """
    columns, crossed_terms, log_length, classes, unit, *_ = crossed
    groups, column = columns.groups, columns.column
    grid, start = groups.grid if columns.biased else groups.grid[:1], None
    if near is not None:
        at = grid.index((near.shrinkage, near.dependence_shrinkage))
        grid, at = (grid[at : at + 1], 0) if keep else (grid, at)
        start = near.class_bias, near.weight[np.unique(column, return_index=True)[1]], at
    optima, chosen, exponent = optimize_weights(crossed_terms, groups, grid, biased=columns.biased, start=start)
    best, of_draws, row_weight = optima[chosen], groups.of_draws[column], crossed.row_weight
    scaled = crossed_terms.with_exponent(exponent, groups.of_draws)
    prior = WeightPrior(groups, best.shrinkage, len(classes), columns.biased)
    losses = held_out_log_losses(scaled, prior, (best.bias, best.weight), unit)
    plain = crossed_terms.averaged() if columns.averaged else crossed_terms
    plain_losses = plain.log_losses(np.zeros(len(classes)), np.ones(plain.reference.shape[-1]))
    recorded = (field.name for field in fields(Optimum) if field.name != "covariance")
    path = {name: np.array([getattr(optimum, name) for optimum in optima]) for name in recorded}
    path |= {name: path[name][:, column] for name in ("weight", "sd")}
    path |= {name: path[name][:, : groups.n_groups] for name in ("shrinkage", "temperature", "temperature_sd")}
    # Without dependences there is one temperature.
    temperatures, shrinkages = ((*path[name][chosen].tolist(), 0.0) for name in ("temperature", "shrinkage"))
    weights = Weights(
        names=columns.names,
        weight=best.weight[column] * np.where(of_draws, np.exp(exponent * log_length), 1.0),
        classes=classes,
        class_bias=best.bias,
        temperature=temperatures[0],
        shrinkage=shrinkages[0],
        of_draws=of_draws,
        exponent=exponent,
        log_length=log_length,
        n_rows=len(row_weight),
        log_loss=float(np.average(losses, weights=row_weight)),
        plain_log_loss=float(np.average(plain_losses, weights=row_weight)),
        path=WeightPath(**{field.name: path[field.name] for field in fields(WeightPath) if field.name in path}),
        dependence=(groups.index[column] == 1) & (groups.n_groups > 1),
        dependence_temperature=temperatures[1],
        dependence_shrinkage=shrinkages[1],
    )
    return weights, losses


def add_posterior(crossed: CrossFit, weights: Weights) -> Weights:
    """Return a copy of fitted weights with the covariances of their posterior under each τ that is probable."""
    columns, path, n_classes = crossed.columns, weights.path, len(crossed.classes)
    assert path is not None
    groups, first = columns.groups, np.unique(columns.column, return_index=True)[1]
    terms = crossed.terms.with_exponent(weights.exponent, groups.of_draws)
    posteriors = []
    for k in path.probable:
        shrinkage = np.append(path.shrinkage[k], np.zeros(groups.n_experts))
        prior = WeightPrior(groups, shrinkage, n_classes, columns.biased)
        point = path.bias[k], path.weight[k, first]
        temperature = np.append(path.temperature[k], point[1][len(point[1]) - groups.n_experts :])
        posteriors.append(approximate_posterior(terms, prior, point, temperature))
    covariance, log_bound = map(np.array, zip(*posteriors, strict=True))
    if not columns.biased:  # All weights of a group are its temperature.
        of_group = columns.column if groups.n_experts else np.unique(groups.index, return_index=True)[1]
        correlated = np.append(np.arange(n_classes), n_classes + of_group)
        covariance = covariance[:, correlated[:, None], correlated]
    slope = np.zeros((n_classes, n_classes + len(weights.names)))
    into = np.append(np.arange(n_classes), n_classes + first)
    # Under another τ of some probability the rows have similar probabilities.
    k = path.probable[np.argmax(log_bound)]
    slope[:, into], of_shares = terms.log_shares(path.bias[k], path.weight[k, first], crossed.unit)
    posterior = {"covariance": covariance, "log_bound": log_bound}
    return replace(weights, path=replace(path, share_slope=slope, share_covariance=of_shares, **posterior))


def choose_simplest(losses: Sequence[np.ndarray], weight: np.ndarray, unit: np.ndarray) -> int:
    """Choose among models, from the simplest on, the first whose loss is not clearly above the least.

    Parameters
    ----------
    losses : sequence of (N,) arrays
        Losses of the same rows under each model.
    weight, unit : (N,) arrays
        Replication counts and units of the rows.

    Returns
    -------
    int
        Index of the first model whose mean loss exceeds the least by .001 nats, or by one standard error of the
        difference, or less (Breiman et al., *Classification and Regression Trees*, 1984, section 3.4.3).
    """
    best = int(np.argmin(np.average(losses, axis=1, weights=weight)))
    mean, variance = mean_of_units((np.asarray(losses) - losses[best]).T, weight, unit)
    return int(np.argmax(mean <= np.maximum(np.sqrt(variance), NEGLIGIBLE)))


def _log_lengths(encoding: Encoding, table: Table) -> np.ndarray:
    """Return (N,) log(t + 1) for count rows of t draws from one simplex; zeros where no block has a simplex."""
    for columns in encoding.blocks:
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
        f"{values[i, c, t]}, in the fit to the other half of the rows. Weights need finite terms: use a prior with "
        "alpha > 0 and estimate='predictive'."
    )
