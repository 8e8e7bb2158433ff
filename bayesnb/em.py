"""Expectation–maximisation: rows whose class is not known have a share in every class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bayesnb import counting, scoring
from bayesnb._util.arguments import require_integer, require_number, require_seed
from bayesnb._util.precision import float64
from bayesnb._util.progress import progress
from bayesnb.encoding import Encoding, Rows, Table
from bayesnb.model import JointLikelihood, NaiveBayes, Statistics, kernel_log_base

_NO_SHARE = 1e-100  # adds nothing to any sum, and its reciprocal is still a number


@dataclass(frozen=True, eq=False)
class Unlabeled:
    """Rows without a label, encoded: `weight` (N,) of each, and `index` (N,), which rows of the argument `name`."""

    name: str
    rows: tuple[Rows, ...]
    weight: np.ndarray
    index: np.ndarray

    @classmethod
    def of(cls, encoding: Encoding, name: str, table: Table, weight: np.ndarray) -> Unlabeled:
        """The rows of positive weight, under an encoding that knows their levels."""
        some = weight > 0
        return cls(name, encoding.rows(table.take(some), told_already), weight[some], np.flatnonzero(some))


@dataclass(frozen=True, eq=False)
class Run:
    """Statistics of the labelled rows with the others' expected counts, and the objective of each iteration."""

    statistics: Statistics
    objective: np.ndarray
    converged: bool


def runs(
    encoding: Encoding,
    prior: NaiveBayes,
    labeled: Statistics,
    unlabeled: Sequence[Unlabeled],
    starts: Iterable[Statistics],
    n_starts: int,
    max_iter: int,
    tol: float,
) -> list[Run]:
    """EM from the parameters that fit each of the statistics `starts` best."""
    found = []
    with progress("EM: iterations", n_starts * max_iter) as tick:
        for start in starts:
            found.append(_run(encoding, prior, labeled, unlabeled, start, max_iter, tol, tick))
            tick(max_iter - len(found[-1].objective))  # that were not needed
    return found


@float64
def _run(
    encoding: Encoding,
    prior: NaiveBayes,
    labeled: Statistics,
    unlabeled: Sequence[Unlabeled],
    start: Statistics,
    max_iter: int,
    tol: float,
    tick: Callable[..., object],
) -> Run:
    parts = [list(map(jax.device_put, _blocks(part))) for part in unlabeled]
    least = tol * (labeled.class_count.sum() + sum(part.weight.sum() for part in unlabeled))
    padded, padded_labeled = scoring.pad(encoding, prior), scoring.pad_statistics(encoding, labeled)
    widths = [len(encoding.classes), *(s.count.shape[1] for s in labeled.blocks)]
    statistics, objective = start, [-np.inf]
    while len(objective) <= max_iter:
        reading, own, penalties = _maximize(padded, padded_labeled, scoring.pad_statistics(encoding, statistics))
        value = float(own) + sum(
            float(np.asarray(penalty)[..., :width].sum()) for penalty, width in zip(penalties, widths, strict=True)
        )
        statistics = labeled
        for part, blocks in zip(unlabeled, parts, strict=True):
            shares, log_row = _shares(encoding, part, blocks, reading)
            value += part.weight @ log_row + float(shares.log_base)
            _require_finite(value, part, log_row)
            statistics = statistics.merge(shares)
        _require_finite(value)
        objective.append(value)
        tick()
        if objective[-1] - objective[-2] <= least:
            return Run(statistics, np.array(objective[1:]), True)
    return Run(statistics, np.array(objective[1:]), False)


def random_start(encoding: Encoding, unlabeled: Sequence[Unlabeled], rng: np.random.Generator) -> Statistics:
    """Each class has its part of the rows' weight, half of it on one row drawn at random.

    The other half is on all rows, in random shares, so that no level is without a count and no two classes are alike.
    """
    n_classes = len(encoding.classes)
    weight = np.concatenate([part.weight for part in unlabeled])
    seeds = rng.choice(len(weight), n_classes, replace=len(weight) < n_classes)
    share = rng.exponential(size=(len(weight), n_classes)) * weight[:, None]
    share = share / share.sum(axis=0)
    share[seeds, np.arange(n_classes)] += 1.0
    share *= weight.sum() / (2 * n_classes)
    bounds = np.cumsum([len(part.weight) for part in unlabeled])[:-1]
    counted = [
        counting.expected_counts(encoding, part.rows, own)
        for part, own in zip(unlabeled, np.split(share, bounds), strict=True)
    ]
    total = counted[0]
    for statistics in counted[1:]:
        total = total.merge(statistics)
    return total


def check_options(max_iter: Any, tol: Any, seed: Any) -> None:
    """Raise ValueError unless these can be used."""
    require_integer("max_iter", max_iter)
    require_seed(seed)
    require_number("tol", tol, "a number of at least 0, in nats for each row", lambda t: t >= 0)


@jax.jit
def _maximize(
    prior: NaiveBayes, labeled: Statistics, statistics: Statistics
) -> tuple[JointLikelihood, jax.Array, tuple[jax.Array, ...]]:
    """The M-step; with log p(labelled rows | θ) and the terms of log penalty(θ)."""
    reading = prior.update(statistics).penalized_mle()
    return reading, reading.log_prob(labeled), prior.log_penalty(reading)


def _shares(
    encoding: Encoding, part: Unlabeled, blocks: list[Any], reading: JointLikelihood
) -> tuple[Statistics, np.ndarray]:
    """The E-step: statistics of the rows' shares in each class, and (N,) log p(row | θ) without base measure."""
    total, found = counting.empty(part.rows, len(encoding.classes)), []
    for block in blocks:
        total, log_row = _share(total, reading, *block)
        found.append(log_row)
    return counting.finish(encoding, total), np.concatenate(found)[: len(part.weight)]


@jax.jit(donate_argnums=0)
def _share(
    total: Statistics, reading: JointLikelihood, x: tuple[Any, ...], weight: jax.Array, log_base: jax.Array
) -> tuple[Statistics, jax.Array]:
    joint = reading.log_joint(x)
    log_row = scoring.row(joint)
    share = jnp.exp(joint - log_row[:, None])
    own = weight[:, None] * jnp.where(share > _NO_SHARE, share, 0.0)
    return total.observe_responsibilities(x, own, log_base + kernel_log_base(total.blocks, x)), log_row


def _blocks(part: Unlabeled) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
    for rows in part.rows:
        rows.require_finite()
    for _, x, (weight,), log_base in counting.row_blocks(part.rows, part.weight):
        yield x, weight, log_base


def _require_finite(value: float, part: Unlabeled | None = None, log_row: np.ndarray | None = None) -> None:
    if np.isfinite(value):
        return
    where = ""
    if part is not None and log_row is not None and not np.isfinite(log_row).all():
        i = int(np.argmax(~np.isfinite(log_row)))
        where = f" (row {part.index[i]} of {part.name} has log p(row) = {log_row[i]})"
    raise ValueError(
        f"EM: the objective is {value}{where}. Under a prior of no weight (alpha = 0, rate = 0) what no row of a class "
        "has is impossible there, a variance may become zero, and a parameter without observed cells does not exist; "
        "use a prior of positive weight."
    )


def told_already(columns: Any, unknown: Any) -> None:
    """Of values that are no level the count has warned."""
