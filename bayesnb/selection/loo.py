"""Exact leave-one-out: each row judged by the posterior of all others, without refits."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayesnb import counting, scoring
from bayesnb._util.arguments import require_choice
from bayesnb._util.precision import float64
from bayesnb.counting import Counted
from bayesnb.encoding import Encoding, Table, check_weights
from bayesnb.families import LevelCounts
from bayesnb.fitted import Classifier, Fitted, require_fitted
from bayesnb.model import Estimate, JointLikelihood, NaiveBayes, log_normalize, plus
from bayesnb.selection.permutation import chosen_on_rows

Kind = Literal["label", "row"]
PriorOf = Literal["derived", "fixed"]


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """What the other rows say of each row; in nats, if naive Bayes holds and rows are exchangeable.

    Attributes
    ----------
    pointwise : (N,) array
        log p(y_i | x_i, D₋ᵢ): the label.
    row_pointwise : (N,) array
        log p(x_i, y_i | D₋ᵢ): the row, multinomial coefficients and -log x! included. NaN for `AODE`, whose members
        are other ones from row to row, and where terms are weighted, which leaves no density of rows.
    log_proba : (N, C) array
        log P(class | x_i, D₋ᵢ), classes in the order of `classes`; NaN where it is undefined.
    weight : (N,) array
        Replication counts: each row was left out whole, and is scored once.
    label : (N,) int array
        Index of the class of each row.
    classes : (C,) array
    notes : tuple of str
        What it is conditional on that was chosen on these rows, as far as is known.
    """

    pointwise: np.ndarray
    row_pointwise: np.ndarray
    log_proba: np.ndarray
    weight: np.ndarray
    label: np.ndarray
    classes: np.ndarray
    notes: tuple[str, ...] = ()

    @property
    def elpd(self) -> float:
        """Σ w_i log p(y_i | x_i, D₋ᵢ)."""
        return float(self.weight @ self.pointwise)

    @property
    def se(self) -> float:
        """Standard error of `elpd`, the rows taken for independent: √(Σw · Var).

        It leaves out that all rows share their data. Of a difference below 4 between two models it misleads
        (Sivula, Magnusson & Vehtari, 2020).
        """
        return _standard_error(self.weight, self.pointwise)

    @property
    def accuracy(self) -> float:
        """Share of the rows whose label is the most probable one given the others."""
        return float(np.average(self.log_proba.argmax(axis=1) == self.label, weights=self.weight))

    def to_elpd(self, kind: Kind = "label") -> Any:
        """What `arviz.compare` ranks: {"a model": loo(a, X, y).to_elpd(), "another": loo(b, X, y).to_elpd()}.

        Parameters
        ----------
        kind : {"label", "row"}
            Whether `pointwise` or `row_pointwise` is compared, each times its weight.

        Returns
        -------
        arviz.ELPDData
            Exact, so without Pareto k; `p`, the effective number of parameters, is NaN.
        """
        from bayesnb.inference_data import elpd_data

        require_choice("kind", kind, ("label", "row"))
        pointwise = self.pointwise if kind == "label" else self.row_pointwise
        if np.isnan(pointwise).any() and kind == "row":
            raise NotImplementedError("to_elpd: of averages and weighted terms there are labels only, kind='label'.")
        return elpd_data(self.weight * pointwise, _standard_error(self.weight, pointwise))

    def __repr__(self) -> str:
        n = f"{self.weight.sum():g} rows" if (self.weight != 1).any() else f"{len(self.weight)} rows"
        notes = "".join(f"\n{note}" for note in self.notes)
        return f"LeaveOneOut({n}, elpd {self.elpd:.3f} ± {self.se:.3f}, accuracy {self.accuracy:.4f}){notes}"


def loo(
    nb: Classifier,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    estimate: Estimate | None = None,
    prior: PriorOf = "derived",
) -> LeaveOneOut:
    """Exact leave-one-out scores of the rows that `nb` was fitted on, in one pass.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
    X, y, sample_weight
        Rows that `nb` has counted, with the labels and weights that they were counted with: all, or some of them.
    estimate : {"predictive", "mean"}, optional
        How the posterior of the others is read; default: the estimator's.
    prior : {"derived", "fixed"}
        Where the prior is derived from the data, as Gaussian and Poisson ones are by default: "derived" derives it from
        the other rows, as a refit does; "fixed" holds it at `nb.prior_`, in whose scale the row and its label have a
        part: with few rows and many features that tells the label.

    Returns
    -------
    LeaveOneOut

    Raises
    ------
    ValueError
        If the rows were not counted, as far as counts tell; if the reading is a mode or the MLE.

    Notes
    -----
    A row of class y and weight w is taken out of the statistics of class y: with counts x, α'_y - w x; the other
    classes are not touched:

        p(x | y, D₋ᵢ) = B(α'_y - w x + x) / B(α'_y - w x).

    A derived prior is a function of the statistics, so that the row is taken out of it too, and then all classes
    change. So these are the scores of N refits to the other rows *under the same encoding*: classes and levels stay,
    also a level that no other row has, as if `classes` and `categories` had been declared.

    Leave-one-out takes rows for exchangeable: duplicates of a row vouch for one another, and where time matters the
    future is asked about the past. It is conditional on the prior, and on whatever else was chosen on the rows: a tuned
    α, a tree, a vocabulary. Each makes it too good; `notes` say so of the first two, and `permutation_null` tells what
    the same choice gives for permuted labels. An outlier so far out that it makes up all but 1e-10 of its class's sum
    of squares costs digits.

    References
    ----------
    Vehtari, Gelman & Gabry, *Practical Bayesian model evaluation using leave-one-out cross-validation and WAIC*, Stat.
    Comput. 27 (2017).
    """
    fitted = require_leave_one_out(nb, "loo")
    estimate = of_the_others(fitted.estimate if estimate is None else estimate)
    require_choice("prior", prior, ("derived", "fixed"))
    table, rows, label, weight = counted_rows(fitted, X, y, sample_weight, "loo")
    each = np.arange(table.n_rows)
    if fitted.average is not None:
        joint = joint_of_average(fitted, table, rows, label, weight, estimate, prior)
        log_proba = scoring.read_scores(joint, scoring.log_proba)
        row = np.full(table.n_rows, np.nan)
    else:
        found = left_out(fitted, table, rows, label, weight, estimate, prior, SCORES)
        joint, log_proba = found.swapaxes(0, 1)
        row = joint[each, label] + scoring.log_base(rows, table.n_rows)
        if fitted.prior.weights is not None:
            row = np.full(table.n_rows, np.nan)
    chosen = chosen_on_rows(fitted)
    notes = (f"Given {chosen}, chosen on these rows too; see `permutation_null`.",) if chosen else ()
    return LeaveOneOut(log_proba[each, label], row, log_proba, weight, label, fitted.encoding.classes.array(), notes)


def require_leave_one_out(nb: Classifier, who: str) -> Fitted:
    """What was fitted: of an average of models too, as leaving out is exact in each of them."""
    require_fitted(nb, who)
    fitted = getattr(nb, "fitted_", None)  # PolyaNB has none
    if fitted is None or (nb.no_posterior is not None and fitted.average is None):
        raise NotImplementedError(f"{who}: {nb.no_posterior}")
    return fitted


def of_the_others(estimate: Estimate) -> Estimate:
    """The estimate, if it reads a posterior without the row."""
    if estimate not in ("predictive", "mean"):
        raise ValueError(
            f"estimate={estimate!r} is no average over the posterior of the other rows; leave-one-out takes "
            "'predictive' or 'mean'."
        )
    return estimate


def alike(label: np.ndarray, weight: np.ndarray) -> Iterator[tuple[int, float]]:
    """Class and weight of rows: one posterior without a row serves all that have them in common."""
    for c in np.flatnonzero(np.bincount(label)):
        for w in np.unique(weight[label == c]):
            yield int(c), float(w)


def counted_rows(
    fitted: Fitted, X: Any, y: Any, sample_weight: Any, who: str
) -> tuple[Table, tuple[Any, ...], np.ndarray, np.ndarray]:
    """Rows of X, encoded too, with index of class and weight; refused if some count without them would be negative."""
    table = fitted.table(X)
    label = fitted.label_index(y, table.n_rows)
    weight = check_weights(sample_weight, table.n_rows)
    rows = fitted.encoding.rows(table)
    given = Counted(fitted.encoding, fitted.weighted_counts(fitted.encoding, rows, label, weight))
    try:
        counting.remove(fitted.counted, given)
    except ValueError as error:
        raise ValueError(
            f"{who}: X, y and sample_weight must be rows that the classifier was fitted on, and these are not. "
            + str(error).replace("forget would leave", "Without them there would be")
        ) from None
    return table, rows, label, weight


def prior_of(fitted: Fitted, prior: PriorOf) -> NaiveBayes:
    """The prior of the other rows: a function of their statistics, or as it is of all rows."""
    return fitted.prior if prior == "fixed" else fitted.empirical_prior


class Asked(NamedTuple):
    """What is asked of rows that are left out.

    `of_own` is the answer for a block of rows by the likelihoods with and without a row, `prepare`d, and by
    log P(class) (n, C) without it; `shared`, as `scoring.score_rows`, that of rows of one class and weight, whose
    `multiplicity` says how they are left out of all classes.
    """

    prepare: Callable[[JointLikelihood, tuple[Any, ...]], JointLikelihood]
    of_own: Callable[[JointLikelihood, JointLikelihood, jax.Array, jax.Array, tuple[Any, ...]], jax.Array]
    shared: Callable[..., np.ndarray]


def left_out(
    fitted: Fitted,
    table: Table,
    rows: tuple[Any, ...],
    label: np.ndarray,
    weight: np.ndarray,
    estimate: Estimate,
    prior: PriorOf,
    asked: Asked,
) -> np.ndarray:
    """(N, …) of rows of a table, encoded too, each by the posterior of the other rows.

    `SCORES` are (N, 2, C) log p(class, row | the other rows), and log P(class | row, the other rows); `TERMS` the
    (N, C, T) terms of log p(row | class, the other rows), and `BLOCKS` their sums over each block.
    """
    encoding, n_classes = fitted.encoding, len(fitted.encoding.classes)
    posterior = scoring.update_apart(prior_of(fitted, prior), fitted.statistics)
    model, weights = scoring.pad(encoding, posterior), np.unique(weight)
    apart, parts = not posterior.classes_share_parameters, []
    if apart and len(weights) == 1:
        return _own_class_without(model, encoding, rows, label, float(weights[0]), estimate, asked)
    if apart:
        for w in weights:
            mask = weight == w
            own = encoding.rows(table.take(mask))
            parts.append((mask, _own_class_without(model, encoding, own, label[mask], float(w), estimate, asked)))
        return _in_place(parts)

    device = getattr(jax.config, "jax_default_device", None)  # JAX's scopes are those of a thread

    def of_group(group: tuple[int, float]) -> tuple[np.ndarray, np.ndarray]:
        c, w = group
        mask, multiplicity = (label == c) & (weight == w), -w * np.eye(n_classes)[c]
        own, n = encoding.rows(table.take(mask), lambda columns, unknown: None), int(mask.sum())
        with jax.default_device(device):
            return mask, asked.shared(encoding, posterior, own, n, estimate, multiplicity=multiplicity)

    # Classes share parameters: without the row all of them change, number by number, which keeps one core busy.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return _in_place(list(pool.map(of_group, alike(label, weight))))  # raises what they raise


def average_left_out(
    of_members: Callable[..., np.ndarray],
    fitted: Fitted,
    table: Table,
    rows: tuple[Any, ...],
    label: np.ndarray,
    weight: np.ndarray,
    estimate: Estimate,
    prior: PriorOf,
) -> np.ndarray:
    """Log p(class, row | the other rows) of an average of models, (N, C), or of each of its members, (N, C, M)."""

    def joint_of(member: Classifier, rows: tuple[Any, ...], which: np.ndarray) -> np.ndarray:
        own = table.take(which), rows, label[which], weight[which]
        return left_out(member.fitted_, *own, estimate, prior, SCORES)[:, 0]

    return of_members(table, rows, joint_of, less=weight)


def joint_of_average(
    fitted: Fitted,
    table: Table,
    rows: tuple[Any, ...],
    label: np.ndarray,
    weight: np.ndarray,
    estimate: Estimate,
    prior: PriorOf,
) -> np.ndarray:
    """(N, C) scores of an average of models, its terms weighted, each row by the posteriors of the other rows."""
    weights, average = fitted.prior.weights, fitted.average
    if weights is not None and weights.of_members:
        average = fitted.members.each  # type: ignore[union-attr]
    assert average is not None
    joint = average_left_out(average, fitted, table, rows, label, weight, estimate, prior)
    return joint if weights is None else weights.of_average(joint, log_class_without(fitted, label, weight))


def log_class_without(fitted: Fitted, label: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """(N, C) log P(class | the other rows)."""
    count = fitted.statistics.class_count
    posterior: Any = float64(fitted.prior.class_prior.update_apart)(LevelCounts(count[None]))
    found = np.empty((len(label), len(count)))
    for c, w in alike(label, weight):
        without = float64(posterior.update)(LevelCounts(-w * np.eye(len(count))[c][None]))
        found[(label == c) & (weight == w)] = scoring.plug_in(without).log_theta[0]
    return found


def _in_place(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """What was found for some of N rows, `mask` (N,), and for others, in one array."""
    found = np.empty((len(parts[0][0]), *parts[0][1].shape[1:]))
    for mask, part in parts:
        found[mask] = part
    return found


def _own_class_without(
    model: NaiveBayes,
    encoding: Encoding,
    rows: tuple[Any, ...],
    label: np.ndarray,
    weight: float,
    estimate: Estimate,
    asked: Asked,
) -> np.ndarray:
    """As `left_out`, where only the parameters of a row's own class know it: those of the others are as they are."""
    readings: list[Any] = []

    def answer(x: tuple[Any, ...], label: np.ndarray) -> jax.Array:
        if not readings:
            readings.append(_readings(model, x, weight, estimate, asked.prepare))
        return _answer(*readings[0], x, label, asked.of_own)

    cells = model.n_classes * encoding.n_terms if asked is TERMS else 0.0
    return scoring.map_rows(rows, len(label), answer, label, cells=cells)


@jax.jit(static_argnames=("estimate", "prepare"))
def _readings(
    model: NaiveBayes, x: tuple[Any, ...], weight: Any, estimate: Estimate, prepare: Callable[..., JointLikelihood]
) -> tuple[JointLikelihood, JointLikelihood, jax.Array]:
    """With every row, without this row, and (C, C) log P(class) without a row of each class; ready for rows like x."""
    without = model.read(estimate, jnp.full(model.n_classes, -weight))
    each = -weight * jnp.eye(model.n_classes)
    log_class = jax.vmap(lambda multiplicity: model.read(estimate, multiplicity).log_class)(each)
    return prepare(model.read(estimate), x), prepare(without, x), log_class


@jax.jit(static_argnames="of_own")
def _answer(
    every: JointLikelihood,
    without: JointLikelihood,
    log_class: jax.Array,
    x: tuple[Any, ...],
    label: jax.Array,
    of_own: Callable[..., jax.Array],
) -> jax.Array:
    own = label[:, None] == jnp.arange(log_class.shape[1])
    return of_own(every, without, log_class[label], own, x)


def _with_log_proba(joint: jax.Array) -> jax.Array:
    return jnp.stack([joint, log_normalize(joint)], axis=1)


def _scores_of_own(
    every: JointLikelihood, without: JointLikelihood, log_class: jax.Array, own: jax.Array, x: tuple[Any, ...]
) -> jax.Array:
    likelihood = jnp.where(own, without.log_likelihood(x), every.log_likelihood(x))
    return _with_log_proba(plus(likelihood, log_class))


def _parts_of_own(
    parts: scoring.Parts,
    every: JointLikelihood,
    without: JointLikelihood,
    log_class: jax.Array,
    own: jax.Array,
    x: tuple[Any, ...],
) -> jax.Array:
    return jnp.where(own[..., None], parts(without, x), parts(every, x))


SCORES = Asked(JointLikelihood.prepare, _scores_of_own, partial(scoring.score_rows, output=_with_log_proba))
TERMS = Asked(lambda reading, x: reading, partial(_parts_of_own, JointLikelihood.terms), scoring.terms_of_rows)
BLOCKS = Asked(
    JointLikelihood.prepare,
    partial(_parts_of_own, JointLikelihood.by_block),
    partial(scoring.terms_of_rows, parts=JointLikelihood.by_block),
)


def _standard_error(weight: np.ndarray, pointwise: np.ndarray) -> float:
    mean = np.average(pointwise, weights=weight)
    return float(np.sqrt(weight @ (pointwise - mean) ** 2))
