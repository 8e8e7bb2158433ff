"""Rows without labels: EM, semi-supervised fits and latent classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import reduce
from typing import Any, Self

import jax
import numpy as np
from sklearn.base import clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from bayesnb._util.arguments import Seed, read_seed, require_integer, require_number, shown
from bayesnb._util.html import card, table
from bayesnb._util.precision import float64
from bayesnb._util.scikit_learn import DensityMixin
from bayesnb._util.terminal import progress
from bayesnb._util.warnings import warn
from bayesnb.encoding import Columns, Encoding, Levels, Rows, Table, check_partial_labels, check_weights, ignore_unknown
from bayesnb.encoding.table import is_labelled
from bayesnb.estimators import classifier_state
from bayesnb.estimators.base import NaiveBayesClassifier, check_features, require_attribute, wrapped_estimator
from bayesnb.estimators.classifier_state import Batch
from bayesnb.estimators.mixed import MixedNB
from bayesnb.estimators.predictions import DisplayedEstimator, require_unnested
from bayesnb.families import OF_NUMBERS
from bayesnb.families.arrays import kernel, xp
from bayesnb.fitted import counting, scoring
from bayesnb.fitted.counting import Counted, require_numbers
from bayesnb.fitted.state import Fitted, read_columns, require_classifier
from bayesnb.kernels import Output
from bayesnb.model import JointLikelihood, NaiveBayes, Statistics, kernel_log_base
from bayesnb.uncertainty.class_probabilities import score_draws
from bayesnb.uncertainty.given_draws import read_parameters

# == EM: starts, iterations and options ============================================================

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
        pieces = counting.counting_pieces(argument.rows, argument.weight)
        batches.append([jax.device_put((x, weight, log_base)) for _, x, (weight,), log_base in pieces])
    least = tol * (labeled.class_count.sum() + sum(rows.weight.sum() for rows in unlabeled))
    padded, padded_labeled = scoring.pad(encoding, prior), scoring.pad_statistics(encoding, labeled)
    widths = [n_classes, *(s.count.shape[1] for s in labeled.blocks)]

    def iterate(statistics: Statistics) -> tuple[float, Statistics]:
        """Do one iteration: return the objective at the parameters of these statistics, and the next statistics."""
        padded_counts = scoring.pad_statistics(encoding, statistics)
        parameters, log_labeled, penalties = _maximize(padded, padded_labeled, padded_counts)
        value = float(log_labeled)
        value += sum(float(np.asarray(p)[..., :width].sum()) for p, width in zip(penalties, widths, strict=True))
        statistics, where = labeled, ""
        for argument, row_batches in zip(unlabeled, batches, strict=True):
            total, log_rows = counting.empty(argument.rows, n_classes), []
            for batch in row_batches:
                total, log_row = _add_expected_counts(total, parameters, *batch)
                log_rows.append(log_row)
            expected, log_row = counting.finish(encoding, total), np.concatenate(log_rows)[: len(argument.weight)]
            value += argument.weight @ log_row + float(expected.log_base)
            if not where and not (is_finite := np.isfinite(log_row)).all():
                i = int(np.argmin(is_finite))
                where = f" (row {argument.index[i]} of {argument.name} has log p(row) = {log_row[i]})"
            statistics = statistics.merge(expected)
        if not np.isfinite(value):
            raise ValueError(
                f"EM: the objective is {value}{where}. Under an improper prior (alpha = 0, rate = 0) a value that does "
                "not occur in a class is impossible in the class, a variance may become zero, and a parameter without "
                "observed cells is undefined. Use a proper prior."
            )
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


def read_options(max_iter: object, tol: object, seed: object) -> int:
    """Return the seed as an integer; raise ValueError unless the options of EM are a positive integer and a number."""
    require_integer("max_iter", max_iter)
    require_number("tol", tol, "a number of at least 0, in nats per row", lambda t: t >= 0)
    return read_seed(seed)


@kernel
def _maximize(
    prior: NaiveBayes, labeled: Statistics, statistics: Statistics
) -> tuple[JointLikelihood, jax.Array, tuple[jax.Array, ...]]:
    """Do the M-step: return the parameters θ, log p(labelled rows | θ) and the terms of log penalty(θ)."""
    parameters = prior.update(statistics).penalized_mle()
    return parameters, parameters.log_prob(labeled), prior.log_penalty(parameters)


@kernel(donate_argnums=0)
def _add_expected_counts(
    total: Statistics, parameters: JointLikelihood, x: tuple[object, ...], weight: jax.Array, log_base: jax.Array
) -> tuple[Statistics, jax.Array]:
    """Do the E-step for one block: return `total` plus expected counts and `log_base` (N,), and (N,) log p(row | θ)."""
    joint = parameters.log_joint(x)
    log_row = scoring.row(joint)
    responsibility = xp.exp(joint - log_row[:, None])
    expected = weight[:, None] * xp.where(responsibility > _NEGLIGIBLE, responsibility, 0.0)
    return total.observe_responsibilities(x, expected, log_base + kernel_log_base(total.blocks, x)), log_row


# == Semi-supervised fits by EM =====================================================================

_MEANING = (
    "EM ends at a local maximum. The model itself estimates the classes of rows without a label: if the model is "
    "wrong, these rows may make it worse. `estimator` has no intervals, evidence or leave-one-out scores. Score it on "
    "labelled rows."
)


@dataclass(frozen=True, eq=False)
class EM:
    """Result of `fit_em`: the fitted classifier, and the objective of each iteration.

    Attributes
    ----------
    estimator : classifier
        Copy of the classifier, fitted to the labelled rows and to the expected counts of the unlabelled ones. It
        predicts, but has no exact posterior.
    objective : (n,) array
        Penalised log likelihood at the parameters at the start of each iteration; it never falls.
    converged : bool
        Whether the last iteration raised the objective by no more than `tol` per row.
    starts : (1 + restarts,) array
        Last objective of each start; `estimator` is that of the best start.

    Examples
    --------
    >>> from bayesnb import CategoricalNB, fit_em
    >>> em = fit_em(CategoricalNB(), [["red"], ["green"]], ["ripe", "raw"], [["red"], ["green"]])
    >>> em.converged, em.objective.round(3), em.starts.round(3)
    (True, array([-7.978, -7.978]), array([-7.978]))
    """

    estimator: NaiveBayesClassifier
    objective: np.ndarray
    converged: bool
    starts: np.ndarray

    def __repr__(self) -> str:
        end = "converged" if self.converged else "not converged"
        name, n = type(self.estimator).__name__, len(self.objective)
        return f"EM({name}, objective {self.objective[-1]:.3f}, {end} after {n} iteration{'s' * (n > 1)})"

    def _repr_html_(self) -> str:
        """Return objective, iterations and starts as an HTML card for notebooks."""
        rows = [
            ("objective, nats", self.objective[-1]),
            ("at its start", self.objective[0]),
            ("iterations", len(self.objective)),
            ("converged", "yes" if self.converged else "no"),
            ("starts", len(self.starts)),
            ("of which reached the best", int(np.isclose(self.starts, self.starts.max(), rtol=1e-6).sum())),
        ]
        return card("EM", type(self.estimator).__name__, table(rows), notes=[_MEANING])


def fit_em(
    nb: NaiveBayesClassifier,
    X: object,
    y: object,
    X_unlabeled: object = None,
    weight: float = 1.0,
    *,
    sample_weight: object = None,
    max_iter: int = 100,
    tol: float = 1e-5,
    restarts: int = 0,
    seed: Seed = 0,
) -> EM:
    """Fit a classifier to labelled rows and to rows without a label, by EM.

    Parameters
    ----------
    nb : classifier of bayesnb
        Classifier whose columns, options and priors are used; it is not changed.
    X : array-like, sparse matrix or DataFrame of shape (N, F)
        Rows of features.
    y : array-like of shape (N,)
        Labels. Rows without a label have -1, None, NaN, NaT or pd.NA. An array of strings and such marks must have
        dtype object.
    X_unlabeled : array-like, sparse matrix or DataFrame of shape (M, F), optional
        More rows without a label.
    weight : float, default 1
        Weight of an unlabelled row, where a labelled one has weight 1. A smaller weight helps if the classes that
        describe the unlabelled rows best differ from those of the labels.
    sample_weight : array-like of shape (N,), optional
        Replication counts of the rows of X.
    max_iter : int, default 100
        Largest number of iterations of a start.
    tol : float, default 1e-5
        A start has converged if an iteration raises the objective per row by no more than `tol`, in nats.
    restarts : int, default 0
        Number of further starts, from unlabelled rows drawn at random in place of the labelled ones alone.
    seed : int, JAX key, RandomState or Generator, default 0
        Seed of these draws.

    Returns
    -------
    EM
        The fitted classifier, with the objective of each iteration.

    Raises
    ------
    ValueError
        If no row is labelled, or all labels are of one class; if under an improper prior the likelihood has no maximum,
        or a row is impossible.
    NotImplementedError
        If `nb` is an average of models, or has no conjugate prior.

    Warns
    -----
    UserWarning
        If `max_iter` iterations were not enough.

    See Also
    --------
    sample_latent : Posterior draws from rows with and without labels, `y=`, and so intervals.
    NaiveBayesMixture : Latent classes of rows without labels.

    Notes
    -----
    With L the labelled rows and U the others, EM finds a local maximum over the parameters θ of

        Σ_L log p(x, y | θ) + weight · Σ_U log Σ_c p(x, c | θ) + log penalty(θ).

    The penalty is the log density of the prior up to a constant: of class probabilities and levels in the softmax
    basis, Σ α log θ, of a Poisson rate that of its logarithm, a log λ - b λ, of a Gaussian feature that of (μ, σ²). So
    θ is the posterior mean given the expected counts for the first two, for every proper prior, and the joint mode for
    the third. The responsibilities are P(class | row, θ). The returned estimator predicts from its expected counts,
    with `nb.estimate`. In a network a row counts by those cells whose parents are all observed; predictions sum missing
    cells out.

    A prior derived from the data is that of all rows, labelled or not, in every iteration. As the classes of some rows
    are unknown, "pooled", the variance over all rows, replaces "within", also in the returned estimator. A posterior
    given expected counts would be too narrow, so that draws, intervals, evidence and leave-one-out scores are not
    offered. If every row is labelled, or `weight` is 0, the result is that of `nb.fit`, which offers them.

    References
    ----------
    Nigam, McCallum, Thrun & Mitchell, *Text classification from labeled and unlabeled documents using EM*, Machine
    Learning 39 (2000). Dempster, Laird & Rubin, *Maximum likelihood from incomplete data via the EM algorithm*, JRSS B
    39 (1977).

    Examples
    --------
    Eight rows without a label tell which values go together.

    >>> from bayesnb import CategoricalNB, fit_em
    >>> X, y = [["red", "?"], ["green", "?"]], ["ripe", "raw"]
    >>> unlabeled = [["red", "sweet"]] * 4 + [["green", "sour"]] * 4
    >>> em = fit_em(CategoricalNB(missing_values="?"), X, y, unlabeled)
    >>> em
    EM(CategoricalNB, objective -19.148, converged after 10 iterations)
    >>> em.estimator.classes_, em.estimator.predict_proba([["?", "sweet"]]).round(2)
    (array(['raw', 'ripe'], dtype='<U4'), array([[0.2, 0.8]]))
    """
    seed = read_options(max_iter, tol, seed)
    require_integer("restarts", restarts, 0)
    weight = require_number("weight", weight, "a number of at least 0, for a row without a label", lambda w: w >= 0)
    model = clone_for_em(nb, "fit_em")
    table = read_columns(model, X, reset=True)
    classes, label = check_partial_labels(y, table.n_rows, type(nb).__name__)
    weights = check_weights(sample_weight, table.n_rows)
    known = (label >= 0) & (weights > 0)
    arguments = [("X", table, np.where(label < 0, weight * weights, 0.0))]
    if X_unlabeled is not None:
        # X tells the units, once its rows are counted.
        more = replace(read_columns(model, X_unlabeled), time_units=None)
        arguments.append(("X_unlabeled", more, np.full(more.n_rows, weight)))
    arguments = [(name, rows, w) for name, rows, w in arguments if w.any()]
    if not known.any():
        raise ValueError(
            "y: no row has a label and positive weight; -1, None and NaN mark rows without a label. Without any "
            "labels use NaiveBayesMixture."
        )
    if arguments and len(classes) < 2:
        raise ValueError(
            f"y: the only label is {shown(classes.values[0])}. Pass labelled rows of two or more classes. -1 marks a "
            "row without a label; if -1 is the name of a class, rename that class."
        )
    if arguments:
        use_pooled_priors(model)

    labeled = table.take(known)
    columns = model._columns(table if (weights > 0).all() else table.take(weights > 0))
    batch = Batch(classes, labeled, label[known], weights[known])
    counted = model._encode(batch, columns).count_levels()
    # The rows without a label are read with the columns, and the structure, of the labelled ones.
    model._commit(model, counted)
    counted = model.fitted_.counted  # With the levels that `alpha` names.
    classifier_state.warn_of_dates(model)
    time_units = vars(model).get("time_units_", {})
    arguments = [(name, replace(rows, time_units=time_units), w) for name, rows, w in arguments]
    for _, rows, w in arguments:
        counted = counting.merge(counted, count_in_first_class(model, classes, model.fitted_.encoding.blocks, rows, w))
    encoding, prior = counted.encoding, model._empirical_prior(counted).derive(counted.statistics)
    unlabeled = [encode_unlabeled(encoding, *argument) for argument in arguments]
    encoded = encoding.rows(labeled, ignore_unknown)
    statistics = counting.count_rows(encoding, encoded, label[known], weights[known])

    starts = [statistics]
    if unlabeled:
        rng = np.random.default_rng(seed)
        starts += [statistics.merge(random_start(encoding, unlabeled, rng)) for _ in range(restarts)]
        model.unlabeled_weight_ = weight
    runs = run_starts(encoding, prior, statistics, unlabeled, starts, len(starts), max_iter, tol)
    best = fit_to_best_run(model, counted, runs, max_iter, tol)
    return EM(model, best.objective, best.converged, np.array([run.objective[-1] for run in runs]))


def fit_to_best_run(nb: NaiveBayesClassifier, counted: Counted, runs: Sequence[Run], max_iter: int, tol: float) -> Run:
    """Fit `nb` in place to the expected counts of the run with the best objective, and return this run.

    `counted` has the encoding of the rows, and their cells of numbers.

    Warns
    -----
    UserWarning
        If the run has not converged.
    """
    best = max(runs, key=lambda run: float(run.objective[-1]))
    if not best.converged:
        warn(f"EM has not converged after max_iter={max_iter} iterations. Raise max_iter, or raise tol={tol}.")
    nb._commit(nb, counted._replace(statistics=best.statistics))
    return best


def clone_for_em(nb: NaiveBayesClassifier, who: str) -> NaiveBayesClassifier:
    """Return an unfitted clone of a classifier, with numbers="gaussian" in place of "auto", which chooses by labels.

    Raises
    ------
    NotImplementedError
        If the parameters of the classifier are not functions of counts, so that EM does not apply.
    """
    require_classifier(nb, who)
    model: NaiveBayesClassifier = clone(nb)
    if getattr(model, "numbers", None) == "auto":
        model.set_params(numbers="gaussian")  # "auto" chooses by labels
    if model.no_posterior is not None:
        raise NotImplementedError(f"{who} needs a classifier with an exact posterior. {model.no_posterior}")
    if model.no_em is not None:
        raise NotImplementedError(f"{who}: {model.no_em}")
    return model


def count_in_first_class(
    nb: NaiveBayesClassifier, classes: Levels, columns: tuple[Columns, ...], table: Table, weight: np.ndarray
) -> Counted:
    """Return counts of unlabelled rows in the first class: priors derived from all rows ignore the class.

    Cells of numbers are counted in the class None.
    """
    batch = Batch(classes, table, np.zeros(table.n_rows, np.int32), weight)
    known = nb.fitted_.cells if classifier_state.is_fitted(nb) else None
    counted = nb._encode(batch, columns).count_levels(known)
    counted = counting.keep_levels(counted, nb._concentrations)
    return counted._replace(cells=counted.cells and counted.cells.pooled())


def use_pooled_priors(nb: NaiveBayesClassifier) -> None:
    """Replace priors with the variance within classes by those with the variance over all rows, in place.

    The classes change from one iteration of EM to the next, and the variance within them would change the prior.
    """
    for name, family in {"prior": getattr(nb, "family", None), **{f"{f.kind}_prior": f for f in OF_NUMBERS}}.items():
        if hasattr(nb, name):
            nb.set_params(**{name: _pool(getattr(nb, name), getattr(family, "empirical", {}))})


def _pool(prior: Any, empirical: Mapping[str, object]) -> Any:
    """Return a prior of numbers, or priors by column, that can be derived without classes; `empirical` are by name.

    For normal columns that is the variance over all rows in place of that in classes.
    """
    if not is_labelled(prior):
        if isinstance(prior, str) and "within" in empirical:
            return "pooled"
        named = empirical.get(prior, prior) if isinstance(prior, str) else prior
        return named.of_unknown_classes() if hasattr(named, "of_unknown_classes") else prior
    entries = {None: next(iter(empirical)), **dict(prior.items())}
    return {column: _pool(entry, empirical) for column, entry in entries.items()}


# == Latent class models: mixtures of naive Bayes components, fitted by EM =========================


@dataclass(eq=False, repr=False)
class NaiveBayesMixture(DensityMixin, DisplayedEstimator):
    r"""Latent class model: a mixture of K components within which features are independent, fitted by EM.

    The component k of a row is not observed, and the features are independent given the component:

    .. math::

        p(x \mid \pi, \theta) = \sum_{k=1}^K \pi_k \prod_{j=1}^F p(x_j \mid \theta_{kj}),

    where the distributions p(x_j | θ_kj) and the priors of π and θ are those of `estimator`. EM maximises the log
    likelihood plus the log density of the priors, from several random starts; see
    docs/derivations/unlabelled_rows.md, "EM".

    Parameters
    ----------
    n_components : int, default 1
        Number of components, K.
    estimator : classifier of bayesnb, optional
        Classifier whose columns, options and priors are used. Default: `MixedNB()`, for which numbers are Gaussian, as
        in `GaussianMixture` with diagonal covariances, and strings are categorical. Integers that are codes need
        `CategoricalNB`; words need `MultinomialNB` or `BernoulliNB`, which take sparse matrices. The prior "within" of
        numbers becomes "pooled" in `estimator_`, as the classes are unknown.
    tol : float, default 1e-5
        A start has converged if an iteration raises the objective per row by no more than `tol`, in nats.
    max_iter : int, default 200
        Largest number of iterations of a start.
    n_init : int, default 10
        Number of random starts, of which the best is kept. In each start half of the weight of a component is on one
        row drawn at random, and half on all rows, in random proportions.
    seed : int, JAX key, RandomState or Generator, default 0
        Seed of the random starts.
    random_state : int, JAX key, RandomState, Generator or None, default None
        Seed in place of `seed`, under scikit-learn's name; a generator of NumPy gives each fit another one.

    Attributes
    ----------
    weights_ : (K,) array
        Probability π_k of each component.
    estimator_ : classifier
        Copy of `estimator`, fitted to the expected counts of the rows in the classes 0 … K - 1, which are the
        components. It has no exact posterior.
    converged_ : bool
        Whether the best start has converged.
    n_iter_ : int
        Number of iterations of the best start.
    lower_bound_, lower_bounds_ : float, list
        (log likelihood + log penalty) / N of the best start: at the end, and at each iteration. It never falls.
    n_parameters_ : int
        Number of free parameters.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : (F,) array
        Names of the columns of X, if these are strings.

    See Also
    --------
    sample_latent : Posterior draws of latent classes, by Gibbs sampling.
    fit_em : EM with some labelled rows.
    plots.latent_profiles : Figure of the components.

    Notes
    -----
    EM finds a local maximum of Σ log Σ_k p(x, k | θ) + log penalty(θ), with the penalty of `fit_em`: the log density of
    the prior, in a basis in which it has a maximum. All methods use the parameters θ of this maximum. The order of the
    components has no meaning. Missing cells are marginalised, on the assumption that they are missing at random. `bic`
    and `aic` take θ for the maximum likelihood estimate. With `TAN` as `estimator` one tree is learned for all
    components, from all rows.

    References
    ----------
    Lazarsfeld & Henry, *Latent structure analysis* (1968). Dempster, Laird & Rubin, *Maximum likelihood from incomplete
    data via the EM algorithm*, JRSS B 39 (1977).

    Examples
    --------
    >>> from bayesnb import NaiveBayesMixture
    >>> X = [["sun", "dry"], ["sun", "dry"], ["sun", "dry"], ["rain", "wet"], ["rain", "wet"], ["rain", "wet"]]
    >>> label = NaiveBayesMixture(2).fit_predict(X)
    >>> bool(label[0] == label[1] != label[3] == label[4])
    True

    Two components describe many such rows better than one does, by about log 2 nats per row.

    >>> one, two = (NaiveBayesMixture(k, n_init=2).fit(X * 10) for k in (1, 2))
    >>> round(two.score(X) - one.score(X), 2), two.aic(X * 10) < one.aic(X * 10)
    (0.63, True)
    >>> two.score_samples([["sun", "dry"], ["sun", "wet"]]).round(1)
    array([-0.8, -3.5])
    >>> two.predict(X[:1]) == two.predict_proba(X[:1]).argmax(axis=1)
    array([ True])
    """

    n_components: int = 1
    _: KW_ONLY
    estimator: object = None
    tol: float = 1e-5
    max_iter: int = 200
    n_init: int = 10
    seed: Seed = 0
    random_state: object = None

    no_posterior = (
        "NaiveBayesMixture has point estimates of its parameters, by EM, but no posterior in closed form, and "
        "therefore no intervals, evidence or leave-one-out scores. To a function with the argument `draws`, pass the "
        "result of `sample_latent`."
    )

    def __post_init__(self) -> None:
        require_unnested(self)

    def fit(self, X: object, y: object = None, sample_weight: object = None) -> Self:
        """Fit the components to the rows of X by EM from `n_init` random starts, and keep the best.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F)
            Rows of features.
        y : object
            Ignored.
        sample_weight : array-like of shape (N,), optional
            Replication counts of the rows, such as the frequencies of patterns; default: 1.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If there are fewer rows than components; if under an improper prior the likelihood has no maximum, or a
            row is impossible. The estimator is left as it was.

        Warns
        -----
        UserWarning
            If the best start has not converged.
        """
        self._check_hyperparameters()
        nb = clone_for_em(self._base(), "NaiveBayesMixture")
        use_pooled_priors(nb)
        table = read_columns(nb, X, reset=True)
        weight = check_weights(sample_weight, table.n_rows)
        if (weight > 0).sum() < self.n_components:
            raise ValueError(
                f"n_components={self.n_components}, but X has {(weight > 0).sum()} row(s) of positive weight. Each "
                "component needs one: choose fewer components, or pass more rows."
            )
        classes, some = Levels(tuple(range(self.n_components))), table if (weight > 0).all() else table.take(weight > 0)
        counted = count_in_first_class(nb, classes, nb._columns(some), table, weight)
        classifier_state.warn_of_dates(nb)
        encoding, prior = counted.encoding, nb._empirical_prior(counted).derive(counted.statistics)
        rows = [encode_unlabeled(encoding, "X", table, weight)]
        nothing = jax.tree.map(np.zeros_like, counted.statistics)
        rng = np.random.default_rng(read_seed(self.seed, self.random_state))
        starts = (random_start(encoding, rows, rng) for _ in range(self.n_init))
        runs = run_starts(encoding, prior, nothing, rows, starts, self.n_init, self.max_iter, self.tol)
        nb.unlabeled_weight_ = 1.0
        best = fit_to_best_run(nb, counted, runs, self.max_iter, self.tol)
        self.estimator_ = nb
        self.converged_ = best.converged
        self.n_iter_ = len(best.objective)
        self.lower_bounds_ = (best.objective / weight.sum()).tolist()
        self.lower_bound_ = self.lower_bounds_[-1]
        self.weights_ = np.exp(nb.class_log_prior_)
        self.__dict__.pop("feature_names_in_", None)
        classifier_state.copy_features(self, nb)
        return self

    def fit_predict(self, X: object, y: object = None, sample_weight: object = None) -> np.ndarray:
        """Fit the components, and return the most probable component of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F)
            Rows of features.
        y : object
            Ignored.
        sample_weight : array-like of shape (N,), optional
            Replication counts of the rows; default: 1.

        Returns
        -------
        (N,) int array
            Component of each row, 0 … K - 1.
        """
        return self.fit(X, y, sample_weight).predict(X)

    # -- rows ------------------------------------------------------------------------------------

    def predict(self, X: object) -> np.ndarray:
        """Predict the most probable component of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F)
            Rows of features.

        Returns
        -------
        (N,) int array
            Component of each row, 0 … K - 1. A row that is impossible in every component gets the one that is most
            probable a priori.
        """
        choice = self._score(X, scoring.most_probable).astype(np.int64)
        if (choice < 0).any():
            warn(
                f"{int((choice < 0).sum())} of {len(choice)} rows have probability 0 in every component (first: row "
                f"{int(np.argmax(choice < 0))}), and get the component with the largest of weights_. Choose priors "
                "with positive concentrations for positive probabilities."
            )
        return np.asarray(np.where(choice < 0, int(np.argmax(self.weights_)), choice))

    def predict_proba(self, X: object, *, draws: object = None) -> np.ndarray:
        """Predict the probability of each component for each row.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F)
            Rows of features.
        draws : result of `sample_latent`, optional
            Draws of θ over which p(component, row | θ) is averaged. Default: θ at the maximum that EM found.

        Returns
        -------
        (N, K) array
            P(component | row); NaN for rows that are impossible in every component.
        """
        if draws is None:
            return np.asarray(np.exp(self._score(X, scoring.log_proba)))
        check_is_fitted(self)
        fitted: Fitted = self.estimator_.fitted_
        drawn = read_parameters(fitted, draws)
        return np.exp(score_draws(fitted, X, lambda n: [(np.ones(n, bool), drawn)], scoring.log_proba))

    def score_samples(self, X: object) -> np.ndarray:
        """Compute the log likelihood log p(row | θ) of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F)
            Rows of features.

        Returns
        -------
        (N,) array
            Log likelihoods in nats, all constants included (multinomial coefficients, -½ log 2π, -log x!).
        """
        return self._score(X, scoring.row)

    def score(self, X: object, y: object = None, sample_weight: object = None) -> float:
        """Compute the mean log likelihood of the rows.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F)
            Rows of features.
        y : object
            Ignored.
        sample_weight : array-like of shape (N,), optional
            Replication counts of the rows; default: 1.

        Returns
        -------
        float
            Weighted mean of `score_samples`, in nats.
        """
        log_prob = self.score_samples(X)
        return float(np.average(log_prob, weights=check_weights(sample_weight, len(log_prob))))

    def bic(self, X: object, sample_weight: object = None) -> float:
        """Compute the Bayesian information criterion, -2 log p(X | θ) + `n_parameters_` log N; lower is better.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F)
            Rows of features.
        sample_weight : array-like of shape (N,), optional
            Replication counts of the rows; default: 1. N is the sum of the counts.

        Returns
        -------
        float
            Criterion, in nats.

        Examples
        --------
        >>> from bayesnb import CategoricalNB, NaiveBayesMixture
        >>> X = [["red", "sweet"]] * 20 + [["green", "sour"]] * 20
        >>> [round(NaiveBayesMixture(k, estimator=CategoricalNB(), n_init=2).fit(X).bic(X)) for k in (1, 2)]
        [118, 82]
        """
        return self._information_criterion(X, sample_weight, np.log)

    def aic(self, X: object, sample_weight: object = None) -> float:
        """Compute the Akaike information criterion, -2 log p(X | θ) + 2 `n_parameters_`; lower is better.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F)
            Rows of features.
        sample_weight : array-like of shape (N,), optional
            Replication counts of the rows; default: 1.

        Returns
        -------
        float
            Criterion, in nats.
        """
        return self._information_criterion(X, sample_weight, lambda _: 2.0)

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters: K - 1 of the components unless they are known, and those of each feature."""
        return int(self.estimator_.n_parameters_)

    def _check_hyperparameters(self) -> None:
        """Raise ValueError if a hyperparameter cannot be used."""
        require_integer("n_components", self.n_components)
        require_integer("n_init", self.n_init)
        read_options(self.max_iter, self.tol, read_seed(self.seed, self.random_state))
        self._base()

    def _restore(self, stored: dict[str, object]) -> None:
        """Set the attributes of a file, unchecked; `_check` examines them."""
        self.__dict__.update(stored)

    def _check(self) -> None:
        """Raise ValueError if the fitted state contradicts itself or the hyperparameters."""
        self._check_hyperparameters()
        nb = self.estimator_
        nb._check()
        n_classes = len(nb.encoding_.classes)
        check_features(self, nb.encoding_)
        require_numbers("weights_", self.weights_, (n_classes,))
        bounds = np.array(self.lower_bounds_, dtype=np.float64)
        require_numbers("lower_bounds_", bounds, (self.n_iter_,))
        if nb.encoding_.classes.values != tuple(range(n_classes)):
            classes = shown(list(nb.encoding_.classes.values))
            raise ValueError(f"The classes of estimator_ must be 0 to n_components - 1; they are {classes}. Fit again.")
        if not np.allclose(self.weights_, np.exp(nb.class_log_prior_)):
            raise ValueError("weights_ must be the class probabilities of estimator_.")
        require_attribute(self, "converged_", None, lambda value: type(value) is bool, "True or False")
        last = self.lower_bounds_[-1]
        require_attribute(self, "lower_bound_", None, lambda value: value == last, f"the last of lower_bounds_, {last}")

    def _information_criterion(self, X: object, sample_weight: object, price: Callable[[float], float]) -> float:
        """Compute -2 log p(X | θ) + `price`(total weight of the rows) · `n_parameters_`."""
        log_prob = self.score_samples(X)
        weight = check_weights(sample_weight, len(log_prob))
        return float(-2.0 * (weight @ log_prob) + self.n_parameters_ * price(weight.sum()))

    def _score(self, X: object, output: Output) -> np.ndarray:
        """Apply `output` to (N, K) log p(component, row | θ); `scoring.row` includes base measures, as -log x!."""
        check_is_fitted(self)
        fitted: Fitted = self.estimator_.fitted_
        rows, n = fitted.encode(X)
        likelihood = scoring.read(fitted.encoding, fitted.posterior, "penalized_mle")
        scores = scoring.score(likelihood, tuple(r.linear_rows() for r in rows), n, output)
        return scores + scoring.log_base(rows, n) if output is scoring.row else scores

    def _base(self) -> NaiveBayesClassifier:
        """Return the hyperparameter `estimator`, by default `MixedNB()`; raise ValueError if it is unusable."""
        return wrapped_estimator(self, MixedNB())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if self.estimator is None or isinstance(self.estimator, NaiveBayesClassifier):
            tags.input_tags = self._base().__sklearn_tags__().input_tags
        return tags
