"""From a fitted classifier and rows that it has counted to the weights of its terms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from bayesnb._util.pair_counts import require_memory
from bayesnb._util.progress import rows_progress
from bayesnb._util.warnings import warn
from bayesnb.encoding import Encoding, Table
from bayesnb.encoding.priors import class_distribution
from bayesnb.encoding.row_blocks import pad_rows, padded_size
from bayesnb.fitted import Fitted
from bayesnb.prediction.terms import AVERAGE, Terms, loo_terms_of
from bayesnb.prediction.weight_optimum import SHRINKAGE, LeaveOneOutTerms, Source, fit_weights, log_score
from bayesnb.prediction.weights import Weights, term_names
from bayesnb.selection.left_out import (
    BLOCKS,
    FEWEST_EVENTS,
    TERMS,
    CountedRows,
    Quantity,
    log_class_without,
    of_the_others,
)

Kind = Literal["feature", "temperature", "auto"]

MOST_TERMS = 256
_KEPT = 2**26
_CHUNK = 2**23
_FEWEST = 1024
_MANY = 4 * _FEWEST


def weigh(
    fitted: Fitted, table: Table, label: np.ndarray, weight: np.ndarray, kind: Kind, max_rows: int, seed: int
) -> Weights | None:
    """The weights, by leave-one-out of counted rows, or a stratified sample of them; None, said, if they are too few.

    Parameters
    ----------
    fitted : Fitted
        Without weights.
    table, label, weight
        Rows that were counted, the index of the class of each, and the weights that they were counted with.
    kind : {"feature", "temperature", "auto"}
    max_rows, seed : int
    """
    try:
        sample = _sample(fitted, table, label, weight, max_rows, seed)
    except _TooFewRows as reason:
        warn(f"{fitted.name} is not weighted: {reason} Its predictions are those of the plain model.")
        return None
    encoding = fitted.encoding
    names = term_names(encoding, fitted.members)
    common = kind == "temperature" or len(names) == 1 or (kind == "auto" and len(names) > MOST_TERMS)
    names = (AVERAGE,) if common and fitted.members is not None else names
    groups = _groups(fitted, common)
    log_length = _log_lengths(encoding, sample.table)
    typical = float(np.average(log_length, weights=sample.weight))
    source = _source(fitted, groups, sample, log_length - typical)
    n_classes, n_groups = len(encoding.classes), len(groups.of_draws)
    shrinkage = (0.0,) if common else SHRINKAGE
    found = fit_weights(
        source, n_classes, n_groups, of_draws=bool(groups.of_draws.any()), shrinkage=shrinkage, biased=not common
    )
    plain = source if fitted.members is None else _source(fitted, _groups(fitted, True), sample, log_length)
    at_one = np.append(np.zeros(n_classes), np.ones(n_groups if fitted.members is None else 1))
    of_draws, total = groups.of_draws[groups.of_terms], sample.weight.sum()
    return Weights(
        names,
        found.weight[groups.of_terms] * np.where(of_draws, np.exp(found.exponent * typical), 1.0),
        encoding.classes,
        found.bias,
        found.temperature,
        found.shrinkage,
        of_draws,
        found.exponent,
        typical,
        found.precision,
        len(sample.at),
        -found.log_score / total,
        -log_score(plain, at_one, n_classes) / total,
    )


def scores_given(
    fitted: Fitted,
    weights: Weights,
    table: Table,
    label: np.ndarray,
    weight: np.ndarray,
    max_rows: int,
    seed: int,
    who: str,
) -> LeaveOneOutTerms:
    """The leave-one-out terms of the rows that `weigh` takes of those given, in one block; arguments as for it.

    Terms are those of rows of typical length, β being that of `weights`, so that w = T + τ d is what they are times;
    under τ = 0 there is one, their sum.

    Raises
    ------
    ValueError
        If the rows are too few, the classes are not those of `weights`, or the terms would not fit into memory.
    """
    now, then = list(fitted.encoding.classes.values), list(weights.classes.values)
    if now != then:
        raise ValueError(
            f"{who}: there are classes {now[:8]}, and the weights were found for {then[:8]}. nb.weigh(X, y) finds them "
            "anew."
        )
    try:
        sample = _sample(fitted, table, label, weight, max_rows, seed)
    except _TooFewRows as reason:
        raise ValueError(f"{who}: {reason}") from None
    groups = _groups(fitted, not weights.own)
    n_rows, n_classes, n_terms = len(sample.at), len(fitted.encoding.classes), len(groups.of_parts)
    require_memory(
        n_rows * n_classes * n_terms,
        f"{who}: leave-one-out terms of {n_rows:,} rows, {n_classes} classes and {n_terms:,} terms",
        "Lower max_rows.",
    )
    blocks = _source(fitted, groups, sample, _log_lengths(fitted.encoding, sample.table) - weights.log_length)()
    scores = jax.tree.map(lambda *parts: np.concatenate(parts), *blocks)
    terms = scores.terms * np.exp(-weights.exponent * scores.log_length)[:, None]
    if not weights.shrinkage:
        terms = terms.sum(axis=2, keepdims=True)
    return replace(scores, terms=terms, log_length=np.zeros((len(terms), terms.shape[2])))


class _Sample(NamedTuple):
    """Rows to weight on: table, index of the class (N,), weight (N,), and where they stand among those of the user."""

    table: Table
    label: np.ndarray
    weight: np.ndarray
    at: np.ndarray


class _Groups(NamedTuple):
    """Terms that have one weight.

    `of_terms` (T,) is the group of each term, `of_parts` that of each part of a row's log-likelihood that `quantity`
    has, and `of_draws` (G,) says which are of rows of several draws from one simplex.
    """

    quantity: Quantity
    of_parts: np.ndarray
    of_terms: np.ndarray
    of_draws: np.ndarray


def _groups(fitted: Fitted, common: bool) -> _Groups:
    """A term each; or, of a `common` weight, all together, but for rows of several draws."""
    if fitted.members is not None:
        each = np.zeros(1, int) if common else np.arange(len(fitted.members.names))
        return _Groups(BLOCKS if common else TERMS, each, each, np.zeros(len(each), bool))
    blocks = fitted.encoding.blocks
    block = np.repeat(np.arange(len(blocks)), [len(b.term_names) for b in blocks])
    of_draws = np.array([b.one_simplex for b in blocks])
    if not common:
        each = np.arange(len(block))
        return _Groups(TERMS, each, each, of_draws[block])
    distinct, of_blocks = np.unique(of_draws, return_inverse=True)
    return _Groups(BLOCKS, of_blocks, of_blocks[block], distinct)


def _source(fitted: Fitted, groups: _Groups, sample: _Sample, log_length: np.ndarray) -> Source:
    """Leave-one-out terms of a sample: kept, or found anew at each pass.

    log P(class) is that of these rows, also where predictions are to take a known one: biases are not to undo it. A
    class that has no row here is left out, or its bias would be that of a class which never comes.
    """
    table, label, weight, at = sample
    estimate, n_rows, n_groups = of_the_others(fitted.estimate), len(label), len(groups.of_draws)
    cells = len(fitted.encoding.classes) * max(1, len(groups.of_parts))
    size = _block_size(n_rows, -(-n_rows * cells // _CHUNK))
    alone = len(groups.of_parts) == n_groups
    class_prior = _learned(fitted)
    absent = np.bincount(label, minlength=len(fitted.encoding.classes)) == 0

    def scores() -> Iterator[LeaveOneOutTerms]:
        with rows_progress("leave-one-out", n_rows) as step:
            for start in range(0, n_rows, size):
                part = slice(start, start + size)
                own = table.take(_mask(part, n_rows))
                rows = fitted.encoding.rows(own, lambda columns, unknown: None)
                # A row of weight 2 is that row twice, of which one is left out.
                counted = CountedRows(own, rows, label[part], np.minimum(weight[part], 1.0))
                found = loo_terms_of(fitted, counted, estimate, quantity=groups.quantity)
                _require_finite(found, at[part])
                log_class = np.where(absent, -np.inf, log_class_without(fitted, counted, class_prior))
                sums = [found.values[..., groups.of_parts == g].sum(axis=2) for g in range(0 if alone else n_groups)]
                terms = found.values if alone else np.stack(sums, axis=2)
                arrays = log_class, terms, log_length[part, None] * groups.of_draws, label[part], weight[part]
                yield LeaveOneOutTerms(*(pad_rows(np.asarray(array), size) for array in arrays))
                step(len(counted.label))

    return partial(list, list(scores())) if n_rows * cells <= _KEPT else scores


def _block_size(n_rows: int, n_blocks: int) -> int:
    """Rows of a block, a multiple of 512: one of few sizes, of which not much is padding."""
    each = -(-n_rows // n_blocks)
    return padded_size(each, _FEWEST) if each <= 2 * _MANY else -(-each // _MANY) * _MANY


def _learned(fitted: Fitted) -> Any:
    """The prior of the class probabilities, Laplace's where they are known."""
    class_prior, n_classes = fitted.prior.class_prior, len(fitted.encoding.classes)
    return class_distribution(None, 1.0, n_classes) if class_prior.fixed else class_prior


def _mask(part: slice, n: int) -> np.ndarray:
    mask = np.zeros(n, bool)
    mask[part] = True
    return mask


def _log_lengths(encoding: Encoding, table: Table) -> np.ndarray:
    """(N,) log(t + 1) of rows of t draws from one simplex; 0 where there is none."""
    for columns in encoding.blocks:
        if columns.one_simplex:
            rows: Any = columns.rows(columns.open(table))
            return np.log1p(rows.length())
    return np.zeros(table.n_rows)


class _TooFewRows(ValueError):
    """Nothing to weight on."""


def _sample(fitted: Fitted, table: Table, label: np.ndarray, weight: np.ndarray, max_rows: int, seed: int) -> _Sample:
    """Of each class its share, of rows that others of the class are beside; raises `_TooFewRows`."""
    names, count = fitted.encoding.classes.values, fitted.statistics.class_count
    usable = (weight > 0) & (count[label] - np.minimum(weight, 1.0) > 1e-9 * count[label])
    of_class = np.bincount(label[usable], weight[usable], minlength=len(count))
    keep = usable
    if usable.sum() > max_rows:
        rng, keep = np.random.default_rng(seed), np.zeros(len(label), bool)
        share = max_rows / usable.sum()
        for c in np.unique(label[usable]):
            own = np.flatnonzero(usable & (label == c))
            keep[rng.permutation(own)[: max(2, round(share * len(own)))]] = True
        of_class = np.bincount(label[keep], weight[keep], minlength=len(count))
    if (events := of_class.sum() - of_class.max()) < FEWEST_EVENTS:
        raise _TooFewRows(
            f"only {events:g} rows are outside the largest class, and weights take {FEWEST_EVENTS} or more (rows alone "
            "in their class do not count)."
        )
    if (absent := (count > 0) & (of_class == 0)).any():
        warn(
            f"{fitted.name}: of classes {[names[c] for c in np.flatnonzero(absent)][:8]} there is no row here beside "
            "another one of the class: they do not enter the weights, and have no bias."
        )
    return _Sample(table.take(keep), label[keep], weight[keep], np.flatnonzero(keep))


def _require_finite(found: Terms, rows: np.ndarray) -> None:
    if np.isfinite(found.values).all():
        return
    i, c, t = (int(v[0]) for v in np.nonzero(~np.isfinite(found.values)))
    raise ValueError(
        f"weights: without row {rows[i]} the leave-one-out term of {found.names[t]!r} in class "
        f"{found.classes.tolist()[c]!r} is {found.values[i, c, t]}, and no weight makes that a probability. A prior "
        "with positive concentrations has finite terms: alpha > 0, estimate='predictive'."
    )
