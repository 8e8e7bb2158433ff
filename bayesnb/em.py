"""Expectation–maximisation: rows without a label count for every class by their responsibilities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import jax
import numpy as np

from bayesnb._util.arguments import require_integer, require_number, require_seed
from bayesnb._util.precision import float64
from bayesnb._util.terminal import progress
from bayesnb.encoding import Encoding, Rows, Table, ignore_unknown
from bayesnb.families.arrays import kernel, xp
from bayesnb.fitted import counting, scoring
from bayesnb.model import JointLikelihood, NaiveBayes, Statistics, kernel_log_base

_NEGLIGIBLE = 1e-100
"""Responsibilities up to this are set to zero: they add nothing to any sum, and their reciprocals are finite."""


@dataclass(frozen=True, eq=False)
class Unlabeled:
    """Encoded rows without a label.

    Parameters
    ----------
    name : str
        Name of the argument that had the rows.
    rows : tuple of Rows
        One entry per block.
    weight : (N,) array
        Weight of each row.
    index : (N,) int array
        Position of each row in the argument.
    """

    name: str
    rows: tuple[Rows, ...]
    weight: np.ndarray
    index: np.ndarray


def encode_unlabeled(encoding: Encoding, name: str, table: Table, weight: np.ndarray) -> Unlabeled:
    """Encode the rows of positive weight (N,); values that are not levels of the encoding become missing cells."""
    positive = weight > 0
    rows = encoding.rows(table.take(positive), ignore_unknown)
    return Unlabeled(name, rows, weight[positive], np.flatnonzero(positive))


@dataclass(frozen=True, eq=False)
class Run:
    """Result of EM from one start.

    Parameters
    ----------
    statistics : Statistics
        Statistics of the labelled rows, and expected counts of the unlabelled ones.
    objective : (n,) array
        Penalised log likelihood at the start of each iteration.
    converged : bool
    """

    statistics: Statistics
    objective: np.ndarray
    converged: bool


@float64
def run_starts(
    encoding: Encoding,
    prior: NaiveBayes,
    labeled: Statistics,
    unlabeled: Sequence[Unlabeled],
    starts: Iterable[Statistics],
    n_starts: int,
    max_iter: int,
    tol: float,
) -> list[Run]:
    """Run EM from each of `starts`, statistics that give the first parameters; return one `Run` per start.

    `labeled` are the statistics of the labelled rows, and `tol` is the gain of the objective per row, in nats, at which
    a start has converged. `n_starts` is the number of starts, for the progress bar.
    """
    n_classes, batches = len(encoding.classes), []
    for argument in unlabeled:
        for rows in argument.rows:
            rows.require_finite()
        blocks = counting.row_blocks(argument.rows, argument.weight)
        batches.append([jax.device_put((x, weight, log_base)) for _, x, (weight,), log_base in blocks])
    least = tol * (labeled.class_count.sum() + sum(rows.weight.sum() for rows in unlabeled))
    padded, padded_labeled = scoring.pad(encoding, prior), scoring.pad_statistics(encoding, labeled)
    widths = [n_classes, *(s.count.shape[1] for s in labeled.blocks)]

    def iterate(statistics: Statistics) -> tuple[float, Statistics]:
        """Do one iteration: return the objective at the parameters of these statistics, and the next statistics."""
        parameters, log_labeled, penalties = _maximize(
            padded, padded_labeled, scoring.pad_statistics(encoding, statistics)
        )
        value = float(log_labeled)
        value += sum(float(np.asarray(p)[..., :width].sum()) for p, width in zip(penalties, widths, strict=True))
        statistics = labeled
        for argument, row_batches in zip(unlabeled, batches, strict=True):
            total, log_rows = counting.empty(argument.rows, n_classes), []
            for batch in row_batches:
                total, log_row = _add_expected_counts(total, parameters, *batch)
                log_rows.append(log_row)
            expected, log_row = counting.finish(encoding, total), np.concatenate(log_rows)[: len(argument.weight)]
            value += argument.weight @ log_row + float(expected.log_base)
            if not np.isfinite(log_row).all():
                i = int(np.argmin(np.isfinite(log_row)))
                raise _no_maximum_error(
                    value, f" (row {argument.index[i]} of {argument.name} has log p(row) = {log_row[i]})"
                )
            statistics = statistics.merge(expected)
        if not np.isfinite(value):
            raise _no_maximum_error(value)
        return value, statistics

    runs = []
    with progress("EM: iterations", n_starts * max_iter) as tick:
        for start in starts:
            statistics, objective, gain = start, list[float](), np.inf
            while gain > least and len(objective) < max_iter:
                value, statistics = iterate(statistics)
                gain = value - objective[-1] if objective else np.inf
                objective.append(value)
                tick()
            runs.append(Run(statistics, np.array(objective), bool(gain <= least)))
            tick(max_iter - len(objective))  # The bar counts iterations that were not needed as done.
    return runs


def random_start(encoding: Encoding, unlabeled: Sequence[Unlabeled], rng: np.random.Generator) -> Statistics:
    """Draw expected counts for a start of EM, in which all classes have the same weight.

    Half of the weight of a class is on one row drawn at random. The other half is on all rows, in random proportions,
    so that every observed level has a count and no two classes are the same.
    """
    n_classes = len(encoding.classes)
    weight = np.concatenate([rows.weight for rows in unlabeled])
    chosen = rng.choice(len(weight), n_classes, replace=len(weight) < n_classes)
    assigned = rng.exponential(size=(len(weight), n_classes)) * weight[:, None]
    assigned = assigned / assigned.sum(axis=0)
    assigned[chosen, np.arange(n_classes)] += 1.0
    assigned *= weight.sum() / (2 * n_classes)
    bounds = np.cumsum([len(rows.weight) for rows in unlabeled])[:-1]
    counted = [
        counting.expected_counts(encoding, rows.rows, weights)
        for rows, weights in zip(unlabeled, np.split(assigned, bounds), strict=True)
    ]
    return reduce(Statistics.merge, counted)


def check_options(max_iter: object, tol: object, seed: object) -> None:
    """Raise ValueError unless the options of EM are a positive integer, a number of at least 0 and a seed."""
    require_integer("max_iter", max_iter)
    require_seed(seed)
    require_number("tol", tol, "a number of at least 0, in nats per row", lambda t: t >= 0)


@kernel
def _maximize(
    prior: NaiveBayes, labeled: Statistics, statistics: Statistics
) -> tuple[JointLikelihood, jax.Array, tuple[jax.Array, ...]]:
    """Do the M-step: return the parameters θ, log p(labelled rows | θ) and the terms of log penalty(θ)."""
    parameters = prior.update(statistics).penalized_mle()
    return parameters, parameters.log_prob(labeled), prior.log_penalty(parameters)


@kernel(donate_argnums=0)
def _add_expected_counts(
    total: Statistics, parameters: JointLikelihood, x: tuple[Any, ...], weight: jax.Array, log_base: jax.Array
) -> tuple[Statistics, jax.Array]:
    """Do the E-step for one block: return `total` plus expected counts and `log_base` (N,), and (N,) log p(row | θ)."""
    joint = parameters.log_joint(x)
    log_row = scoring.row(joint)
    responsibility = xp.exp(joint - log_row[:, None])
    expected = weight[:, None] * xp.where(responsibility > _NEGLIGIBLE, responsibility, 0.0)
    return total.observe_responsibilities(x, expected, log_base + kernel_log_base(total.blocks, x)), log_row


def _no_maximum_error(objective: float, where: str = "") -> ValueError:
    """Return the ValueError for an objective that is not finite; `where` names the row that is impossible."""
    return ValueError(
        f"EM: the objective is {objective}{where}. Under an improper prior (alpha = 0, rate = 0) a value that does not "
        "occur in a class is impossible in the class, a variance may become zero, and a parameter without observed "
        "cells is undefined. Use a proper prior."
    )
