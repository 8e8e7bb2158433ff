"""State of a fitted classifier, which analyses read, and its rows left out one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple, Protocol, Self

import jax
import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from bayesnb import kernels
from bayesnb._util.arguments import bad_argument, require_choice, shown
from bayesnb._util.arrays import scatter_rows, to_pandas
from bayesnb._util.precision import float64, map_in_threads
from bayesnb._util.scikit_learn import BaseEstimator
from bayesnb._util.warnings import UndefinedProbabilityWarning, warn
from bayesnb.encoding import (
    Columns,
    Encoding,
    LevelColumns,
    NodeColumns,
    Rows,
    Table,
    Unknown,
    check_weights,
    priors,
    report_unknown,
    to_table,
)
from bayesnb.families import Dirichlet, Known, LevelCounts, offers
from bayesnb.families.arrays import Array, kernel, xp
from bayesnb.fitted import counting, scoring
from bayesnb.fitted.counting import Counted
from bayesnb.fitted.number_cells import NumberCells
from bayesnb.kernels import Output
from bayesnb.model import ESTIMATES, Estimate, JointLikelihood, NaiveBayes, Statistics, TermWeights

# == State of a fitted classifier, which predictions and analyses read: counts, prior and posterior

WEIGHTS = "weights of terms"
"""Name of fitted weights among the choices that a classifier has made on its rows."""
ScoreModel = Callable[["Fitted", tuple[Rows, ...], np.ndarray], np.ndarray]
"""Function of a model, encoded rows and a mask (N,) of their positions: scores (n, C, …)."""


class NotOfferedError(NotImplementedError, AttributeError):
    """Error of an attribute that a classifier does not offer, with the reason; `hasattr` is false then.

    Examples
    --------
    >>> from bayesnb import AODE
    >>> nb = AODE().fit([["sun", "dry"], ["rain", "wet"]], ["out", "in"])
    >>> hasattr(nb, "log_evidence_")
    False
    """


class Classifier(Protocol):
    """Interface of the classifiers of bayesnb for analyses: the state, and the public methods of `GaussianNB`."""

    @property
    def estimate(self) -> Estimate:
        """Estimate of the parameters in predictions."""

    @property
    def fitted_(self) -> Fitted:
        """Counts with prior and posterior, as set by `fit`, `partial_fit`, `forget`, `decay` or `load`."""

    @property
    def no_posterior(self) -> str | None:
        """Reason why there is no exact posterior, nor draws, intervals, evidence and leave-one-out scores, or None."""

    @property
    def no_evidence(self) -> str | None:
        """Reason why there is a posterior but no evidence, or None."""

    @property
    def classes_(self) -> np.ndarray:
        """(C,) labels of the classes."""

    def predict_proba(self, X: object) -> np.ndarray:
        """(N, C) probability of each class for each row."""


class Adaptable(Classifier, Protocol):
    """Classifier that is copied with other counts, rows or hyperparameters."""

    @property
    def unweighted(self) -> Tunable:
        """Classifier with the same counts and without weights of terms."""

    @property
    def log_evidence_(self) -> float:
        """Log evidence log p(X, y)."""

    @property
    def class_log_prior_(self) -> np.ndarray:
        """(C,) log class probabilities."""

    def predict_proba(self, X: object, *, estimate: Estimate | None = None, class_prior: object = None) -> np.ndarray:
        """(N, C) probability of each class for each row."""

    def predict_log_proba(
        self, X: object, *, estimate: Estimate | None = None, class_prior: object = None
    ) -> np.ndarray:
        """(N, C) log probability of each class for each row."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Hyperparameters by name."""

    def fit(self, X: object, y: object) -> object:
        """Fit to rows, and return the classifier."""

    def with_counts(self, counted: Counted) -> Self:
        """Copy with other counts."""

    def refit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Copy that is fitted to other rows, with the same levels."""


class Tunable(Adaptable, Protocol):
    """Classifier that is copied with other priors."""

    def with_priors(self, priors: Mapping[str, object], chosen: tuple[str, ...] = ()) -> Self:
        """Copy with the same counts under other hyperparameters."""


class WeightPosterior(Protocol):
    """Posterior distribution of class biases and weights of terms."""

    def draw_term_weights(self, fitted: Fitted, n: int, seed: int, *, of_likelihood: bool) -> TermWeights | None:
        """Draw n times for the terms of a classifier, see `Fitted.draw_weights`; None if that is not possible."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """State of a fitted classifier: the counts, and the posterior that follows from these.

    Prior and posterior are computed at their first use, and once.

    Parameters
    ----------
    owner : BaseEstimator
        Classifier without counts, which has the number, names and time units of the columns of `fit`.
    encoding : Encoding
        Meaning of the axes of the statistics: classes, and the columns with their levels.
    statistics : Statistics
        Sufficient statistics of the counted rows.
    empirical_prior : NaiveBayes
        Prior, in which blocks that are derived from the data are functions of the statistics; with the weights of
        terms, if any.
    prior_arguments : tuple of str
        Name of the hyperparameter that holds the prior of each block.
    estimate : {"predictive", "mean", "map", "mle"}
        Reading of the posterior in predictions.
    estimates : tuple of str
        Readings that the classifier takes for `estimate`.
    chosen : tuple of str
        Names of the choices besides the parameters that were made on the counted rows.
    no_posterior : str or None
        Reason why there is no exact posterior, or None. After EM `posterior` is that of the expected counts; for an
        average of models it belongs to none of them, and is not used.
    divides_alpha : bool
        Whether concentrations of a column are divided among the values of its parents.
    cells : NumberCells or None
        Counts of a sample of the rows in cells of their numbers, for tests of drift.
    weight_posterior : WeightPosterior or None
        Posterior of the weights of terms, if the prior has weights.
    """

    owner: BaseEstimator
    encoding: Encoding
    statistics: Statistics
    empirical_prior: NaiveBayes
    prior_arguments: tuple[str, ...]
    estimate: Estimate
    estimates: tuple[Estimate, ...]
    chosen: tuple[str, ...]
    no_posterior: str | None
    divides_alpha: bool
    cells: NumberCells | None
    weight_posterior: WeightPosterior | None = field(default=None, kw_only=True)

    def __getstate__(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # Cached values are computed again.

    @property
    def name(self) -> str:
        """Name of the type of the classifier, for messages."""
        return type(self.owner).__name__

    @property
    def member_names(self) -> Sequence[str] | None:
        """Names of the models whose probabilities the classifier averages; None if it is a single model."""
        return None

    @property
    def term_names(self) -> tuple[str, ...]:
        """(T,) names of the terms: columns, or the members of an average of models."""
        return self.encoding.term_map.names

    def with_block(self, columns: Columns) -> Self:
        """Return the state with one more block of columns, from which nothing is counted."""
        family = columns.family.of_classes(len(self.encoding.classes))
        statistics = replace(self.statistics, blocks=(*self.statistics.blocks, family.statistics(family.parameters)))
        return replace(
            self,
            encoding=replace(self.encoding, blocks=(*self.encoding.blocks, columns)),
            statistics=statistics,
            empirical_prior=replace(self.empirical_prior, blocks=(*self.empirical_prior.blocks, family)),
            prior_arguments=(*self.prior_arguments, columns.hyperparameter),
        )

    @cached_property
    def prior(self) -> NaiveBayes:
        """Prior with one entry per class and level; blocks derived from the data are those of the counted rows."""
        return self.empirical_prior.derive(self.statistics)

    @cached_property
    def posterior(self) -> NaiveBayes:
        """Posterior distribution of all parameters, `prior.update(statistics)`."""
        return kernels.update(self.prior, self.statistics)

    @cached_property
    def improper_posterior(self) -> NaiveBayes:
        """Posterior under the improper prior by which the posterior mean is the maximum likelihood estimate."""
        return kernels.update(self.prior.improper(), self.statistics)

    @property
    def counted(self) -> Counted:
        """Encoding, statistics and cells of numbers, which `counting.merge` takes."""
        return Counted(self.encoding, self.statistics, self.cells)

    def require_usable(self) -> None:
        """Raise ValueError if the numbers of a column are too large or too small, or the prior cannot be used.

        A classifier calls this method before it changes.
        """
        counting.check_scales(self.counted)
        self.prior if self.no_posterior else self.posterior  # noqa: B018  They are computed, and checked, at first use.

    def require_declared(self) -> None:
        """Raise ValueError if rows would determine anything but parameters, so that a model without rows is no prior.

        The message says what to declare.
        """
        undeclared = list(self.chosen)
        priors = zip(self.encoding.blocks, self.empirical_prior.blocks, self.prior_arguments, strict=True)
        for columns, family, argument in priors:
            if names := columns.base.unlearned:
                undeclared.append(f"the levels of column {shown(names[0])}{' and others' * (len(names) > 1)}")
            if callable(family):
                undeclared.append(f"the prior of {columns.kind} columns ({argument})")
        if undeclared:
            raise ValueError(
                f"X has no rows, and the model would be its prior, but rows determine {', '.join(undeclared)}. Declare "
                "levels in `categories`, edges in `edges`, kinds by name and priors by their parameters, or pass rows."
            )

    def require_no_experts(self, who: str, reason: str) -> None:
        """Raise NotOfferedError, with the `reason` that a caller `who` takes no experts, if some terms are experts'."""
        for columns in self.encoding.blocks:
            if columns.kind == "expert":
                names = f"the terms {shown(list(columns.term_names))} are those of experts, {reason}"
                raise NotOfferedError(f"{who}: {names} Or fit the {self.name} without experts.")

    @property
    def weights(self) -> TermWeights | None:
        """Weights of the terms of a row's log-likelihood, or None."""
        return self.empirical_prior.weights

    def draw_weights(self, n: int, seed: int, *, of_likelihood: bool = False) -> TermWeights | None:
        """Draw class biases and weights of terms n times; None without weights, and if their posterior is not known.

        With `of_likelihood` the draws are those of p(row | class), for class probabilities of another population.
        """
        if self.weight_posterior is None:
            return None
        return self.weight_posterior.draw_term_weights(self, n, seed, of_likelihood=of_likelihood)

    @cached_property
    def no_evidence(self) -> str | None:
        """Reason why there is a posterior but no evidence, or None."""
        if self.no_posterior is not None:
            return None
        if any(self.encoding.term_map.plus < 0):
            return (
                "the likelihood of numbers, a density times a ratio of tables of cells, has no evidence in closed form."
                " Use numbers='gaussian', which leaves numbers out of the structure."
            )
        missing = [
            name
            for columns, counted in zip(self.encoding.blocks, self.statistics.blocks, strict=True)
            for name in columns.features_missing_on_arcs(counted, self.statistics.class_count)
        ]
        if not missing:
            return None
        return (
            f"cells are missing on the arcs to {missing[:8]}, and the sum over their values has no closed form. Drop "
            "the rows with missing cells, or give missing cells a level of their own."
        )

    @cached_property
    def log_evidence(self) -> float:
        """Log evidence log p(X, y), with the parameters integrated out; NotOfferedError if it has no closed form."""
        if reason := self.no_posterior or self.no_evidence:
            raise NotOfferedError(f"log_evidence_: {reason}")
        return scoring.log_evidence(self.encoding, self.prior, self.statistics)

    @cached_property
    def class_log_prior(self) -> np.ndarray:
        """(C,) log of the posterior mean of each class probability, which cannot be overwritten."""
        log_prior = np.array(scoring.plug_in(self.posterior.class_prior).log_theta[0])
        log_prior.flags.writeable = False
        return log_prior

    def read(self, estimate: Estimate | None = None, class_prior: object = None) -> tuple[NaiveBayes, Estimate]:
        """Return the posterior that scores rows, and its reading: "mean", "map" or "predictive".

        The maximum likelihood estimate is the mean of the posterior under an improper prior. `class_prior` (C,)
        replaces the learned class probabilities.
        """
        estimate = self.estimate if estimate is None else estimate
        require_estimate(estimate)
        model = self.improper_posterior if estimate == "mle" else self.posterior
        if class_prior is not None:
            classes = priors.class_distribution(class_prior, 1.0, self.encoding.classes)
            model = replace(model, class_prior=classes)
        return model, "mean" if estimate == "mle" else estimate

    def prior_alone(self, columns: Columns, family: Any) -> Any:
        """Return the prior of P(feature | class) of a block from `family`, that of P(feature | parents, class)."""
        network = columns.network
        return family if network is None else network.prior_without_parents(family, divided=self.divides_alpha)

    def require_single_model(self, who: str) -> None:
        """Raise NotOfferedError, with the reason, if the classifier is an average of models; `who` is the caller."""

    def table(self, X: object) -> Table:
        """Return X as a table; raise ValueError if its columns are not those of `fit`."""
        return read_columns(self.owner, X)

    def encode(self, X: object) -> tuple[tuple[Rows, ...], int]:
        """Encode the rows of X, and warn of unknown values; return the rows of each block, and their number."""
        table = self.table(X)
        return self.rows(table), table.n_rows

    def rows(self, table: Table, *, alone: bool = False) -> tuple[Rows, ...]:
        """Encode the rows of a table, and warn of values that are not among the levels.

        Under handle_unknown="error" such values raise ValueError. With `alone` features are encoded without their
        parents.
        """
        blocks = tuple(block.base for block in self.encoding.blocks) if alone else self.encoding.blocks
        return replace(self.encoding, blocks=blocks).rows(table, self._report_unknown)

    def label_index(self, y: object, n_rows: int) -> np.ndarray:
        """Return (N,) the index of the class of each row; raise ValueError for labels that are not classes."""
        return self.encoding.label_index(y, n_rows, self.name)

    def log_proba(self, X: object) -> np.ndarray:
        """Compute (N, C) log P(class | row) by the reading `estimate`; warn of rows where it is NaN."""
        log_proba = self.score(*self.encode(X), scoring.log_proba)
        warn_undefined(np.isnan(log_proba[:, 0]))
        return log_proba

    def score(
        self,
        rows: tuple[Rows, ...],
        n: int,
        output: Output,
        estimate: Estimate | None = None,
        class_prior: object = None,
    ) -> np.ndarray:
        """Apply `output`, such as `scoring.log_proba`, to the (n, C) joint log probabilities of n encoded rows.

        The reading is `estimate`, by default that of the state. `class_prior` (C,), or a dict or Series by class,
        replaces the learned class probabilities.
        """
        if estimate is None:
            estimate = self.estimate
        else:
            require_estimate(estimate)
        encoding, likelihood = self.encoding, self._likelihood(estimate, class_prior)
        rows = rows if estimate == "predictive" else tuple(r.linear_rows() for r in rows)
        if estimate not in ("mle", "map") or all(columns.network is None for columns in encoding.blocks):
            kernel = partial(kernels.score, output=output)
            return scoring.map_rows(rows, n, kernel, reading=likelihood, cells=len(encoding.classes))
        scores = scoring.score(likelihood, rows, n, scoring.joint)
        if np.isnan(scores).any():
            model, reading = self.read(estimate, class_prior)
            # For a value of a parent that a class never had, there is no estimate for the child. The row is impossible,
            # not undefined, if another factor is zero, such as that of the parent.
            blocks = tuple(
                family if columns.network is None else fill_empty_tables(columns.network, family, reading)
                for columns, family in zip(encoding.blocks, model.blocks, strict=True)
            )
            likelihood = scoring.read(encoding, replace(model, blocks=blocks), reading)
            filled = scoring.score(likelihood, rows, n, scoring.joint)
            scores = np.where(np.isnan(scores) & np.isneginf(filled), -np.inf, scores)
        return scoring.apply(output, scores)

    def terms(self, rows: tuple[Rows, ...], n: int, estimate: Estimate | None = None) -> np.ndarray:
        """Compute (n, C, T) terms of log p(row | class) of n encoded rows, times the weights of terms if there are any.

        The reading is `estimate`, by default that of the state.
        """
        model, reading = self.read(estimate)
        model = self.by_blocks(model)
        terms = scoring.terms(self.encoding, scoring.read(self.encoding, model, reading), rows, n)
        return self.weigh_terms(terms, self.log_class(estimate))

    def by_blocks(self, model: NaiveBayes) -> NaiveBayes:
        """Return `model` for terms of blocks: without weights if `weigh_terms` applies them to combined terms later."""
        return model if self.encoding.term_map.is_identity else replace(model, weights=None)

    def weigh_terms(self, terms: np.ndarray, log_class: np.ndarray) -> np.ndarray:
        """Return (N, C, T) weighted terms of the classifier, from terms (N, C, R) of its blocks; see `by_blocks`.

        For an average of models they are made of log p(class, row) (N, C, M) by each member, and log P(class).
        """
        term_map = self.encoding.term_map
        if term_map.is_identity:
            return terms
        combined = term_map.combine(terms)
        if self.weights is None:
            return combined
        sizes = [len(columns.term_names) for columns in self.encoding.blocks]
        return combined * term_map.gather(self.weights.term_weights(sizes))

    def score_models(
        self, rows: tuple[Rows, ...], n: int, score: ScoreModel, *, less: np.ndarray | float = 0.0, each: bool = False
    ) -> np.ndarray:
        """Score n rows under the encoding of the classifier by `score`, a function of a model: (n, C, …).

        An average of models has log p(class, row) (n, C, T), which `weigh_terms` and `combine` take: that of `each`
        member, also if these have weights of their own, or that of the average. `less` (n,) is the weight to subtract
        from its counts, such as that of a row that is left out.
        """
        return score(self, rows, np.ones(n, bool))

    def combine(self, scores: np.ndarray, log_class: Callable[[], np.ndarray]) -> np.ndarray:
        """Return log p(class, row) (n, C) from `score_models`; for an average of models with weights if there are any.

        `log_class` computes log P(class), (C,) or (n, C).
        """
        return scores

    def _likelihood(self, estimate: Estimate, class_prior: object) -> JointLikelihood:
        """Return the joint likelihood of rows by a reading, cached, with `class_prior` (C,) if it is not None."""
        if estimate not in self._likelihoods:
            self._likelihoods[estimate] = scoring.read(self.encoding, *self.read(estimate))
        likelihood = self._likelihoods[estimate]
        if class_prior is None:
            return likelihood
        return replace(likelihood, log_class=scoring.log_class(*self.read(estimate, class_prior)))

    @cached_property
    def _likelihoods(self) -> dict[Estimate, JointLikelihood]:
        """Cache of the joint likelihood of rows by each reading, filled by `_likelihood`."""
        return {}

    def log_class(self, estimate: Estimate | None = None, class_prior: object = None) -> np.ndarray:
        """Compute (C,) log P(class) under a reading of the posterior, without the biases of weights."""
        model, reading = self.read(estimate, class_prior)
        return scoring.log_class(replace(model, weights=None), reading)

    def _report_unknown(self, columns: LevelColumns, unknown: list[Unknown]) -> None:
        """Warn of unknown values, with their effect on odds, or raise ValueError under handle_unknown="error"."""
        note = ""
        family = next(f for b, f in zip(self.encoding.blocks, self.prior.blocks, strict=True) if b.base is columns)
        if columns.unknown == "level" and self.no_posterior is None and offers(family, "mean"):
            # `columns` have no parents; in a structure the reserved level has a probability given each parent value.
            blocks: Any = self.encoding.blocks
            position = [block.base for block in blocks].index(columns)
            theta = np.exp(scoring.plug_in(self.posterior.blocks[position]).log_theta)
            tables = dict(zip(blocks[position].index, blocks[position].tables(theta), strict=True))
            features = [columns.index[u.feature] for u in unknown]
            probabilities = [tables[j][..., -1] for j in features if j in tables]
            odds = max(((p.max(axis=0) / p.min(axis=0)).max() for p in probabilities if p.min() > 0), default=np.inf)
            note = f"Each such cell multiplies the odds of one class against another by up to {odds:.3g}."
        report_unknown(columns, unknown, note)


@float64
def fill_empty_tables(columns: NodeColumns, family: Dirichlet, reading: Estimate) -> Dirichlet:
    """Return the posterior with uniform tables for values of parents whose mean or mode is undefined (NaN).

    The mode is looked at for the reading "map", else the mean. A posterior without such tables is returned unchanged.
    """
    log_theta = (family.mode() if reading == "map" else family.mean()).log_theta
    if not np.isnan(log_theta).any():
        return family
    has_parents = np.repeat([len(node) > 1 for node in columns.nodes], columns.sizes())
    return replace(family, concentration=np.where(has_parents & np.isnan(log_theta), 2.0, family.concentration))


def require_estimate(estimate: object, estimates: tuple[Estimate, ...] = ESTIMATES) -> None:
    """Raise ValueError unless `estimate` is one of the `estimates`; default: "mle", "map", "mean" and "predictive"."""
    if not isinstance(estimate, str) or estimate not in estimates:
        known = isinstance(estimate, str) and estimate in ESTIMATES
        reason = "is not available for an average of models" if known else "is unknown"
        raise ValueError(f"estimate={shown(estimate)} {reason}; use one of {estimates}.")


def score_new_rows(estimate: Estimate | None, class_prior: object = None) -> ScoreModel:
    """Return the function that computes log p(class, row) (n, C) of new rows by a reading of a model."""
    return lambda model, rows, which: model.score(rows, int(which.sum()), scoring.joint, estimate, class_prior)


def read_columns(nb: BaseEstimator, X: object, *, reset: bool = False, least_rows: int = 1) -> Table:
    """Return X as a table; raise ValueError if its columns are not those of `fit`, or with `reset` store them in `nb`.

    Stored are `n_features_in_` and, for names that are strings, `feature_names_in_`. X has at least `least_rows` rows.
    """
    X = to_pandas(X, "X")
    table, known = to_table(X, type(nb).__name__, least_rows=least_rows), vars(nb)
    names: Sequence[str] | None = known.get("feature_names_in_")
    unnamed = names is None and isinstance(X, np.ndarray)
    if reset or not unnamed or len(table.names) != known.get("n_features_in_"):
        validate_data(nb, X, reset=reset, skip_check_array=True)
        names = known.get("feature_names_in_")
    if names is not None:
        table = replace(table, names=tuple(names))
    return table if reset else replace(table, time_units=known.get("time_units_", {}))


def warn_undefined(undefined: np.ndarray) -> None:
    """Warn of rows without class probabilities, if the mask `undefined` (N,) has any."""
    if undefined.any():
        warn(
            f"{int(undefined.sum())} of {len(undefined)} rows have no class probabilities (first: row "
            f"{int(np.argmax(undefined))}): under this estimate those of every class are 0 or undefined. predict_proba "
            "is NaN, and predict returns the class with the highest prior probability. Set estimate='predictive'.",
            UndefinedProbabilityWarning,
        )


def require_classifier(nb: object, who: str) -> None:
    """Raise TypeError unless `nb` is a classifier of bayesnb, fitted or not; `who` is named as the caller."""
    if not hasattr(type(nb), "no_posterior"):
        kind = f"{type(nb).__module__}.{shown(nb)}"
        raise TypeError(f"{who} takes a classifier of bayesnb, such as GaussianNB(), and got {kind}.")


def require_fitted(nb: object, who: str) -> None:
    """Raise TypeError unless `nb` is a classifier of bayesnb, and scikit-learn's NotFittedError unless it is fitted."""
    require_classifier(nb, who)
    check_is_fitted(nb)


def current_state(nb: Classifier) -> Fitted:
    """Return `nb.fitted_`, with the present value of `nb.estimate` as its reading.

    `estimate` is no matter of fitting: set after `fit`, it holds at once. ValueError is raised if the classifier does
    not take it.
    """
    fitted = nb.fitted_
    if nb.estimate is fitted.estimate:
        return fitted
    require_estimate(nb.estimate, fitted.estimates)
    return replace(fitted, estimate=nb.estimate)


def require_posterior(nb: Classifier, who: str, draws: object = None, rows: object = None) -> Fitted:
    """Return the state of a fitted classifier; raise unless its parameters have an exact posterior.

    For a `NaiveBayesMixture`, which has none, `draws` can stand for it, as `sample_latent` returns them. Members of an
    average of models have one each, and the training `rows` say how these vary together.

    Raises
    ------
    NotFittedError
        If the classifier is not fitted.
    NotImplementedError
        If the classifier has no exact posterior, with the reason `nb.no_posterior`.
    TypeError
        If `nb` is not a classifier of bayesnb.
    """
    require_fitted(nb, who)
    if is_mixture(nb) and not (draws is None or isinstance(draws, int | np.integer)):
        mixture: Any = nb
        return mixture.estimator_.fitted_
    is_average = rows is not None and not is_mixture(nb) and nb.fitted_.member_names is not None
    if nb.no_posterior is not None and not is_average:
        raise NotImplementedError(f"{who}: {nb.no_posterior}")
    return current_state(nb)


def is_mixture(nb: object) -> bool:
    """Whether `nb` is a `NaiveBayesMixture`, whose parameters are those of `nb.estimator_`."""
    return hasattr(nb, "n_components")


def require_evidence(nb: Classifier, who: str) -> Fitted:
    """Return the state of a fitted classifier; raise unless log p(X, y) has a closed form, see `require_posterior`."""
    fitted = require_posterior(nb, who)
    if nb.no_evidence is not None:
        raise NotImplementedError(f"{who}: {nb.no_evidence}")
    return fitted


# == Scores of rows by the posterior of all other rows, exactly and without refits =================

PriorOf = Literal["derived", "fixed"]


class CountedRows(NamedTuple):
    """Rows that were counted.

    Parameters
    ----------
    rows : tuple of Rows
        Encoded rows, one object for each block.
    label : (N,) int array
        Index of the class of each row.
    weight : (N,) array
        Replication counts.
    """

    rows: tuple[Rows, ...]
    label: np.ndarray
    weight: np.ndarray

    def take(self, mask: np.ndarray) -> CountedRows:
        """Return the rows for which `mask` (N,) is true."""
        if mask.all():
            return self
        return CountedRows(tuple(r.take(mask) for r in self.rows), self.label[mask], self.weight[mask])


_MANY_ROWS = 5_000


def require_leave_one_out(nb: Classifier, who: str) -> Fitted:
    """Return the state of a classifier; raise NotImplementedError unless leaving rows out of it is exact."""
    require_fitted(nb, who)
    if is_mixture(nb) or (nb.no_posterior is not None and nb.fitted_.member_names is None):
        raise NotImplementedError(f"{who}: {nb.no_posterior}")
    return current_state(nb)


def require_average(estimate: Estimate) -> Estimate:
    """Return the estimate; raise ValueError unless it is "predictive" or "mean", which leave-one-out takes."""
    if not isinstance(estimate, str) or estimate not in ("predictive", "mean"):
        raise bad_argument("estimate", estimate, "'predictive' or 'mean': leave-one-out averages over the posterior")
    return estimate


def _group_rows(label: np.ndarray, weight: np.ndarray) -> Iterator[tuple[np.ndarray, int, float]]:
    """Yield a mask (N,), the class and the weight of rows of one class and weight: each leaves the same posterior."""
    for c in np.flatnonzero(np.bincount(label)):
        for w in np.unique(weight[label == c]):
            yield (label == c) & (weight == w), int(c), float(w)


def counted_rows(fitted: Fitted, X: object, y: object, sample_weight: object, who: str) -> CountedRows:
    """Encode the rows of X with labels and weights; raise ValueError if removing them would leave a negative count."""
    table = fitted.table(X)
    label = fitted.label_index(y, table.n_rows)
    weight = check_weights(sample_weight, table.n_rows)
    rows = fitted.encoding.rows(table)
    given = Counted(fitted.encoding, counting.count_rows(fitted.encoding, rows, label, weight))
    try:
        counting.remove(fitted.counted, given)
    except ValueError as error:
        raise ValueError(f"{who}: X, y and sample_weight must be rows that nb was fitted on. {error}") from None
    return CountedRows(rows, label, weight)


def choose_prior(fitted: Fitted, prior: PriorOf) -> NaiveBayes:
    """Return the prior for leave-one-out, which may be derived from the data.

    With "derived" such a prior is a function of the statistics, and derived anew without each row; with "fixed" it is
    the one derived from all rows. Raises ValueError for another value.
    """
    require_choice("prior", prior, ("derived", "fixed"))
    return fitted.prior if prior == "fixed" else fitted.empirical_prior


# Function of a joint likelihood and rows: `JointLikelihood.log_joint` (n, C), `.log_likelihood` or `.terms`.
Score = Callable[[JointLikelihood, tuple[object, ...]], jax.Array]


def leave_one_out(
    fitted: Fitted,
    counted: CountedRows,
    estimate: Estimate,
    prior: PriorOf,
    score: Score = JointLikelihood.log_joint,
) -> np.ndarray:
    """Compute (N, C, …) `score` of each row and class by the reading `estimate` of the posterior of the other rows.

    Factors that all classes share are left out. Where terms are weighted, weights and class biases are included.
    `prior` is "derived" or "fixed", see `choose_prior`. For `JointLikelihood.terms`, an average of models has
    log p(class, row) (N, C, M) by each member; both are for `Fitted.weigh_terms`.
    """
    (_, label, weight), each = counted, score is JointLikelihood.terms
    of_model = JointLikelihood.log_joint if fitted.member_names is not None else score

    def score_model(model: Fitted, rows: tuple[Rows, ...], which: np.ndarray) -> np.ndarray:
        return _leave_one_out(model, CountedRows(rows, label[which], weight[which]), estimate, prior, of_model)

    scores = fitted.score_models(counted.rows, len(label), score_model, less=weight, each=each)
    return scores if each else fitted.combine(scores, lambda: log_class_without(fitted, counted))


def _leave_one_out(
    fitted: Fitted, counted: CountedRows, estimate: Estimate, prior: PriorOf, score: Score
) -> np.ndarray:
    """Compute (N, C, …) `score` of each row of a single model, see `leave_one_out`."""
    encoding, n_classes = fitted.encoding, len(fitted.encoding.classes)
    posterior = scoring.update_for_removal(choose_prior(fitted, prior), fitted.statistics)
    is_shared = posterior.classes_share_parameters  # All classes change without the row.
    every = [] if is_shared else [scoring.read(encoding, posterior, estimate)]
    changed = np.eye(n_classes) if is_shared else np.ones((1, n_classes))
    left_out = _group_rows(counted.label if is_shared else np.zeros_like(counted.label), counted.weight)
    groups = [(mask, -w * changed[c], w) for mask, c, w in left_out]
    is_terms = score is JointLikelihood.terms
    bias = 0.0 if fitted.weights is None else fitted.weights.class_bias

    def score_group(group: tuple[np.ndarray, np.ndarray, float]) -> tuple[np.ndarray, np.ndarray]:
        mask, multiplicity, weight = group
        rows = counted.take(mask)
        log_class = _log_class_without(posterior.class_prior, n_classes, weight) + bias
        readings = [scoring.read(encoding, posterior, estimate, multiplicity), *every]
        prepared: list[JointLikelihood] = []

        def score_block(x: tuple[object, ...], label: np.ndarray) -> jax.Array:
            if not prepared:  # Terms are those of tables as they are.
                prepared.extend(readings if is_terms else [scoring.prepare(r, x) for r in readings])
            return _score_without(prepared, log_class, x, label, score)

        # Without the row, its numbers have parameters of their own in each class.
        cells = n_classes * (encoding.n_terms if is_terms else sum(r.width() for r in rows.rows))
        return mask, scoring.map_rows(rows.rows, len(rows.label), score_block, rows.label, cells=cells)

    # One group keeps one core busy; to start threads takes as long as scores of some thousand rows.
    return scatter_rows(list((map_in_threads if len(counted.label) > _MANY_ROWS else map)(score_group, groups)))


@kernel(static_argnames="score")
def _score_without(
    readings: list[JointLikelihood], log_class: jax.Array, x: tuple[object, ...], label: jax.Array, score: Score
) -> Array:
    """Compute (n, C, …) `score` of a piece of rows by the first of `readings`, with log π in the label's row (C, C).

    A second reading is that of the classes to which the row does not belong.
    """
    first, *others = (score(replace(reading, log_class=log_class[label]), x) for reading in readings)
    own = xp.expand_dims(label[:, None] == xp.arange(len(log_class)), tuple(range(2, first.ndim)))
    return xp.where(own, first, others[0]) if others else first


def log_class_without(fitted: Fitted, counted: CountedRows) -> np.ndarray:
    """Compute (N, C) log posterior mean class probabilities without each row."""
    count = fitted.statistics.class_count
    posterior = float64(fitted.prior.class_prior.update_keeping_prior)(LevelCounts(count[None]))
    log_class = np.empty((len(counted.label), len(count)))
    for weight in np.unique(counted.weight):
        rows = counted.weight == weight
        log_class[rows] = _log_class_without(posterior, len(count), weight)[counted.label[rows]]
    return log_class


@float64
def _log_class_without(class_posterior: Dirichlet | Known, n_classes: int, weight: float) -> np.ndarray:
    """Compute (C, C) log mean class probabilities; row c is that without `weight` rows of class c."""
    each = (LevelCounts(row[None]) for row in -weight * np.eye(n_classes))
    return np.concatenate([class_posterior.update(counts).mean().log_theta for counts in each])
