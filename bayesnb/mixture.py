"""Expectation–maximisation: rows whose class is not known have a share in every class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import clone

from bayesnb import counting, scoring
from bayesnb.arguments import require_classifier, require_integer, require_number, require_seed
from bayesnb.counting import Counted
from bayesnb.encoding import Encoding, Levels, Rows, Table, check_labels, check_weights
from bayesnb.families import EmpiricalNormal
from bayesnb.model import NaiveBayes, Reading, Statistics
from bayesnb.precision import float64
from bayesnb.reporting import warn

UNLABELED = -1
_NO_SHARE = 1e-100  # adds nothing to any sum, and its reciprocal is still a number


@dataclass(frozen=True, eq=False)
class EM:
    """What EM came to.

    Attributes
    ----------
    estimator : classifier
        As the one that was given, fitted to the labelled rows, and to the others in shares. It predicts; it has no
        exact posterior.
    objective : (n,) array
        The penalised log likelihood, at the parameters that each iteration started from; it never falls.
    converged : bool
        Whether the last iteration raised it by less than `tol` a row.
    starts : (1 + restarts,) array
        What each start came to; the best was taken.
    """

    estimator: Any
    objective: np.ndarray
    converged: bool
    starts: np.ndarray

    def __repr__(self) -> str:
        end = "converged" if self.converged else "not converged"
        name, n = type(self.estimator).__name__, len(self.objective)
        return f"EM({name}, objective {self.objective[-1]:.3f}, {end} after {n} iteration{'s' * (n > 1)})"


def fit_em(
    nb: Any,
    X: Any,
    y: Any,
    X_unlabeled: Any = None,
    weight: Any = 1.0,
    *,
    sample_weight: Any = None,
    max_iter: int = 100,
    tol: Any = 1e-5,
    restarts: int = 0,
    seed: int = 0,
) -> EM:
    """Learn from labelled rows, and from rows without a label too.

    Parameters
    ----------
    nb : classifier of bayesnb
        Its columns, options and priors; it is not changed.
    X : array-like, sparse matrix or DataFrame of shape (N, F)
    y : array-like of shape (N,)
        Labels. Rows labelled -1 are unlabelled. An array of strings and -1 must have dtype object.
    X_unlabeled : as X, optional
        More rows without a label.
    weight : float, default 1
        What an unlabelled row counts for, against 1 of a labelled one. Where the classes that would describe the
        unlabelled rows best are not those of the labels, less is more.
    sample_weight : array-like of shape (N,), optional
        Replication counts of the rows of X.
    max_iter : int
        Most iterations of a start.
    tol : float
        A start has converged when an iteration raises the objective by no more than this for each row, in nats.
    restarts : int, default 0
        Further starts, from unlabelled rows drawn at random in place of the labelled ones alone.
    seed : int

    Returns
    -------
    EM

    Raises
    ------
    ValueError
        If no row is labelled, or but one class; if under a prior of no weight the likelihood has no maximum, or a row
        is impossible.
    NotImplementedError
        If `nb` is an average of models, or has no conjugate prior.

    Warns
    -----
    UserWarning
        If `max_iter` iterations were not enough.

    Notes
    -----
    With L the labelled rows and U the others, EM climbs to a local maximum over the parameters θ of

        Σ_L log p(x, y | θ) + weight · Σ_U log Σ_c p(x, c | θ) + log penalty(θ).

    The penalty is the log density of the prior up to a constant: of class probabilities and levels in the softmax
    basis, Σ α log θ, of a Poisson rate that of its logarithm, a log λ - b λ, of a Gaussian feature that of (μ, σ²). So
    θ is the posterior mean of the counts in shares for the first two, for every prior of positive weight, and the
    joint mode for the third. Shares are P(class | row, θ). The estimator that is returned predicts from its counts as
    `nb.estimate` says. Of a network a row enters with those cells of which all parents are observed, as cells count;
    its predictions sum missing ones out.

    A prior derived from the data is that of all rows, labelled or not, from the first iteration to the last. As classes
    are not known, "pooled", the variance over all rows, stands for "within", also in the estimator that is returned.
    Counts in shares are no data: the posterior
    would be too sure, and draws, intervals, evidence and leave-one-out are refused. If every row is labelled, or
    `weight` is 0, this is `nb.fit`, and they are not.

    References
    ----------
    Nigam, McCallum, Thrun & Mitchell, *Text classification from labeled and unlabeled documents using EM*, Machine
    Learning 39 (2000). Dempster, Laird & Rubin, *Maximum likelihood from incomplete data via the EM algorithm*, JRSS B
    39 (1977).
    """
    check_climb(max_iter, tol, seed)
    require_integer("restarts", restarts, 0)
    weight = require_number(
        "weight", weight, "a number of at least 0: what an unlabelled row counts for", lambda w: w >= 0
    )
    draft = template(nb, "fit_em")
    table = draft._table(X, reset=True)
    classes, label = _split(y, table.n_rows, type(nb).__name__)
    weights = check_weights(sample_weight, table.n_rows)
    known = (label >= 0) & (weights > 0)
    given = [("X", table, np.where(label < 0, weight * weights, 0.0))]
    if X_unlabeled is not None:
        more = draft._table(X_unlabeled)
        given.append(("X_unlabeled", more, np.full(more.n_rows, weight)))
    some_unlabeled = any(w.any() for _, _, w in given)
    _require_classes(classes, known, some_unlabeled)
    draft = of_unknown_classes(draft) if some_unlabeled else draft

    labeled = table.take(known)
    counted = draft._count(classes, draft._columns(table), labeled, label[known], weights[known])
    draft._commit(draft, counted)  # from here on its columns, and a structure that labelled rows gave them, are known
    for _, part, w in given:
        if w.any():
            counted = counting.merge(counted, in_first_class(draft, classes, draft.encoding_.blocks, part, w))
    encoding, prior = counted.encoding, draft._prior(counted)
    unlabeled = [Unlabeled.of(encoding, *part) for part in given if part[2].any()]
    statistics = counting.count_rows(encoding, encoding.rows(labeled, _told_already), label[known], weights[known])

    starts = [statistics]
    if unlabeled:
        rng = np.random.default_rng(seed)
        starts += [statistics.merge(random_start(encoding, unlabeled, rng)) for _ in range(restarts)]
        draft.unlabeled_weight_ = weight
    climbs = [climb(encoding, prior, statistics, unlabeled, start, max_iter, tol) for start in starts]
    best = max(climbs, key=lambda found: found.objective[-1])
    if not best.converged:
        warn(f"EM has not converged after max_iter={max_iter} iterations; let it have more, or raise tol={tol}.")
    draft._commit(draft, Counted(encoding, best.statistics))
    return EM(draft, best.objective, best.converged, np.array([found.objective[-1] for found in climbs]))


# -- the climb, which `NaiveBayesMixture` shares -----------------------------------------------------------------------


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
        return cls(name, encoding.rows(table.take(some), _told_already), weight[some], np.flatnonzero(some))


@dataclass(frozen=True, eq=False)
class Climb:
    """Statistics of the labelled rows and the others' shares, and the objective of each iteration."""

    statistics: Statistics
    objective: np.ndarray
    converged: bool


@float64
def climb(
    encoding: Encoding,
    prior: NaiveBayes,
    labeled: Statistics,
    unlabeled: Sequence[Unlabeled],
    start: Statistics,
    max_iter: int,
    tol: float,
) -> Climb:
    """EM from the parameters that fit the statistics `start` best."""
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
        if objective[-1] - objective[-2] <= least:
            return Climb(statistics, np.array(objective[1:]), True)
    return Climb(statistics, np.array(objective[1:]), False)


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
        counting.count_soft(encoding, part.rows, own)
        for part, own in zip(unlabeled, np.split(share, bounds), strict=True)
    ]
    total = counted[0]
    for statistics in counted[1:]:
        total = total.merge(statistics)
    return total


def template(nb: Any, who: str) -> Any:
    """A copy of `nb` that is not fitted.

    Raises
    ------
    NotImplementedError
        If its parameters are not functions of counts, and EM is of no use.
    """
    require_classifier(nb, who)
    draft = clone(nb)
    if draft._no_posterior is not None:
        raise NotImplementedError(f"{who} counts rows in shares, and cannot: {draft._no_posterior}")
    return draft


def in_first_class(nb: Any, classes: Levels, columns: Any, table: Table, weight: np.ndarray) -> Counted:
    """Rows without a label counted in the first class: what a prior derived from all rows asks for is the same."""
    return nb._count(classes, columns, table, np.zeros(table.n_rows, np.int32), weight)


def of_unknown_classes(nb: Any) -> Any:
    """The same, with the variance over all rows where a prior would have that within classes.

    EM is looking for the classes still: of theirs, each iteration would have another prior.
    """
    for name in ("prior", "gaussian_prior"):
        value = getattr(nb, name, None)
        if isinstance(value, EmpiricalNormal):
            nb.set_params(**{name: replace(value, variance="pooled")})
        elif isinstance(value, str) and value == "within":
            nb.set_params(**{name: "pooled"})
    return nb


def check_climb(max_iter: Any, tol: Any, seed: Any) -> None:
    """Raise ValueError unless these can be used."""
    require_integer("max_iter", max_iter)
    require_seed(seed)
    require_number("tol", tol, "a number of at least 0, in nats for each row", lambda t: t >= 0)


@jax.jit
def _maximize(
    prior: NaiveBayes, labeled: Statistics, statistics: Statistics
) -> tuple[Reading, jax.Array, tuple[jax.Array, ...]]:
    """The M-step; with log p(labelled rows | θ) and the terms of log penalty(θ)."""
    reading = prior.update(statistics).peak()
    return reading, reading.log_prob(labeled), prior.log_penalty(reading)


def _shares(encoding: Encoding, part: Unlabeled, blocks: list[Any], reading: Reading) -> tuple[Statistics, np.ndarray]:
    """The E-step: statistics of the rows' shares in each class, and (N,) log p(row | θ) without base measure."""
    total, found = counting.empty(part.rows, len(encoding.classes)), []
    for block in blocks:
        total, log_row = _share(total, reading, *block)
        found.append(log_row)
    return counting.finish(encoding, total), np.concatenate(found)[: len(part.weight)]


@jax.jit(donate_argnums=0)
def _share(
    total: Statistics, reading: Reading, x: tuple[Any, ...], weight: jax.Array, log_base: jax.Array
) -> tuple[Statistics, jax.Array]:
    joint = reading.log_joint(x)
    log_row = scoring.row(joint)
    share = jnp.exp(joint - log_row[:, None])
    own = weight[:, None] * jnp.where(share > _NO_SHARE, share, 0.0)
    return total.observe_shares(x, own, log_base + counting.kernel_log_base(total, x)), log_row


def _blocks(part: Unlabeled) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
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


def _split(y: Any, n_rows: int, owner: str) -> tuple[Levels, np.ndarray]:
    """Classes, and the index of each row's class, -1 where it has no label."""
    try:
        found, index = check_labels(y, n_rows, owner)
    except ValueError as error:
        if "NaN" in str(error):
            raise ValueError(f"{error} The mark of a row without a label is -1.") from None
        raise
    if str(UNLABELED) in found.values and len(found) > 1:
        raise ValueError(
            f"y has labels {str(UNLABELED)!r}, a string. An array of strings made it of the number -1, the mark of a "
            "row without a label: give y dtype=object. A class of that name needs another one."
        )
    classes = Levels(tuple(v for v in found.values if v != UNLABELED))
    return classes, classes.index(found.values).clip(min=-1).astype(np.int32)[index]


def _require_classes(classes: Levels, known: np.ndarray, some_unlabeled: bool) -> None:
    if not known.any():
        raise ValueError(
            "y: no row has a label and positive weight; -1 means that there is none. NaiveBayesMixture is for rows "
            "without any."
        )
    if some_unlabeled and len(classes) < 2:
        raise ValueError(
            f"y: the only label is {classes.values[0]!r}, so that every unlabelled row is of that class; -1 means that "
            "there is no label. If it is the name of a class, give that another name."
        )


def _told_already(columns: Any, unknown: Any) -> None:
    """Of values that are no level the count has warned."""


__all__ = [
    "EM",
    "Climb",
    "Unlabeled",
    "check_climb",
    "climb",
    "fit_em",
    "in_first_class",
    "of_unknown_classes",
    "random_start",
    "template",
]
