"""State of a fitted classifier, which predictions and analyses read: counts, prior and posterior."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Protocol

import jax
import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesnb import counting, kernels, scoring
from bayesnb._util.arguments import shown
from bayesnb._util.precision import float64
from bayesnb._util.progress import progress
from bayesnb._util.warnings import UndefinedProbabilityWarning, warn
from bayesnb.counting import Counted
from bayesnb.encoding import (
    Columns,
    Encoding,
    LevelColumns,
    NodeColumns,
    Rows,
    Table,
    Unknown,
    ignore_unknown,
    priors,
    report_unknown,
)
from bayesnb.families import Dirichlet, offers
from bayesnb.model import Estimate, JointLikelihood, NaiveBayes, Statistics, TermWeights

ESTIMATES: tuple[Estimate, ...] = ("mle", "map", "mean", "predictive")
"""Readings of a posterior."""
_ROUNDING = 1e-9
"""Relative rounding error of sums of fractional weights."""

Output = Callable[[jax.Array], jax.Array]
"""Function of joint log probabilities (n, C), such as `scoring.log_proba`."""


class NotOfferedError(NotImplementedError, AttributeError):
    """Error of an attribute that a classifier does not offer, with the reason; `hasattr` is false then."""


class Classifier(Protocol):
    """Interface of the classifiers of bayesnb for analyses."""

    estimate: Estimate

    @property
    def fitted_(self) -> Fitted:
        """Counts with prior and posterior, as set by `fit`, `partial_fit`, `forget`, `decay` or `load`."""
        ...

    @property
    def no_posterior(self) -> str | None:
        """Reason why there is no exact posterior, nor draws, intervals, evidence and leave-one-out scores, or None."""
        ...

    @property
    def no_evidence(self) -> str | None:
        """Reason why there is a posterior but no evidence, or None."""
        ...

    @property
    def unweighted(self) -> Classifier:
        """Classifier with the same counts and without weights of terms; the classifier itself if it has none."""
        ...

    @property
    def classes_(self) -> np.ndarray:
        """(C,) class labels."""
        ...

    @property
    def class_log_prior_(self) -> np.ndarray:
        """(C,) log posterior mean of each class probability."""
        ...

    @property
    def log_evidence_(self) -> float:
        """Log evidence log p(X, y), with the parameters integrated out."""
        ...

    def with_priors(self, priors: Mapping[str, Any], chosen: tuple[str, ...] = ()) -> Any:
        """Return a copy with the same counts, under the hyperparameters `priors` {name: value}.

        Those that are named in `chosen` were chosen on the counted rows.
        """
        ...

    def with_counts(self, counted: Counted) -> Any:
        """Return a copy with other counts, under the same hyperparameters and weights of terms."""
        ...

    def fit(self, X: object, y: object, sample_weight: object = None) -> Any:
        """Replace all counts by those of the rows of X with labels y, and return the classifier."""
        ...

    def fit_parts(self, X: object, y: object, sample_weight: object = None) -> Any:
        """Encode rows once; return a function that fits a copy to them under other row weights (N,)."""
        ...

    def refit(self, X: object, y: object, sample_weight: object = None) -> Any:
        """Return a copy fitted to other rows, weights of terms included, with the levels of this classifier."""
        ...

    def predict(self, X: object) -> np.ndarray:
        """Return the (N,) most probable class of each row, by the reading `estimate`."""
        ...

    def predict_proba(self, X: object, *, estimate: Estimate | None = None) -> np.ndarray:
        """Compute (N, C) P(class | row) by a reading of the posterior, by default the hyperparameter `estimate`."""
        ...

    def predict_log_proba(self, X: object, *, class_prior: object = None) -> np.ndarray:
        """Compute (N, C) log P(class | row), with `class_prior` (C,) in place of the learned class probabilities."""
        ...

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the hyperparameters by name; with `deep` also those of nested classifiers."""
        ...


@dataclass(frozen=True, eq=False)
class Fitted:
    """State of a fitted classifier: the counts, and the posterior that follows from these.

    Prior and posterior are computed at their first use, and once.

    Parameters
    ----------
    name : str
        Name of the type of the classifier, for messages.
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
    no_evidence_as_such : str or None
        Reason why classifiers of this type have no evidence, whatever was counted, or None.
    table : function of X
        Returns X as a `Table`; raises ValueError if its columns are not those of `fit`.
    prior_alone : function of columns with parents and of their family
        Returns the prior of the same features given the class alone.
    average_of : function of Counted
        Returns the models whose probabilities the classifier averages, in place of the posterior, or None.
    """

    name: str
    encoding: Encoding
    statistics: Statistics
    empirical_prior: NaiveBayes
    prior_arguments: tuple[str, ...]
    estimate: Estimate
    estimates: tuple[Estimate, ...]
    chosen: tuple[str, ...]
    no_posterior: str | None
    no_evidence_as_such: str | None
    table: Callable[[Any], Table]
    prior_alone: Callable[[Columns, Any], Any]
    average_of: Callable[[Counted], Average | None]

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # Cached values are computed again.

    @cached_property
    def average(self) -> Average | None:
        """Models whose joint probabilities are averaged, in place of the posterior, or None; computed once."""
        return self.average_of(self.counted)

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
        """Pair of encoding and statistics, which `counting.merge` takes."""
        return Counted(self.encoding, self.statistics)

    def require_usable(self) -> None:
        """Raise ValueError if the numbers of a column are too large or too small, or the prior cannot be used.

        A classifier calls this method before it changes.
        """
        counting.check_scales(self.counted)
        self.prior if self.no_posterior else self.posterior  # noqa: B018  They are computed, and checked, at first use.

    @property
    def weights(self) -> TermWeights | None:
        """Weights of the terms of a row's log-likelihood, or None."""
        return self.empirical_prior.weights

    @cached_property
    def no_evidence(self) -> str | None:
        """Reason why there is a posterior but no evidence, or None."""
        if self.no_posterior is not None or self.no_evidence_as_such is not None:
            return self.no_evidence_as_such
        if any(self.encoding.term_map.plus < 0):
            return (
                "the likelihood of numbers is a density times a ratio of tables of their cells, and this product has "
                "no evidence in closed form. Use numbers='gaussian', which leaves numbers out of the structure."
            )
        missing = [
            name
            for columns, counted in zip(self.encoding.blocks, self.statistics.blocks, strict=True)
            if columns.network is not None
            for name in columns.network.features_missing_on_arcs(counted, self.statistics.class_count)
        ]
        if not missing:
            return None
        return (
            f"cells are missing on the arcs to {missing[:8]} (in a column or its parents), and the sum over their "
            "values has no closed form. Drop the rows with missing cells, or give missing cells a level of their own."
        )

    @cached_property
    def log_evidence(self) -> float:
        """Log evidence log p(X, y), with the parameters integrated out; NotOfferedError if it has no closed form."""
        if reason := self.no_posterior or self.no_evidence:
            raise NotOfferedError(f"log_evidence_: {reason}")
        return float(scoring.log_evidence(self.encoding, self.prior, self.statistics))

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
        log_proba = self.score(X, scoring.log_proba)
        warn_undefined(np.isnan(log_proba[:, 0]))
        return log_proba

    def score(
        self, X: object, output: Output, estimate: Estimate | None = None, class_prior: object = None
    ) -> np.ndarray:
        """Apply `output`, a function of `scoring`, to the (N, C) joint log probabilities of the rows of X.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F)
            Rows of features.
        output : function of joint log probabilities (n, C)
            Function of `scoring`, such as `scoring.log_proba`.
        estimate : {"predictive", "mean", "map", "mle"}, optional
            Reading of the posterior; default: `estimate` of the state.
        class_prior : (C,) array, or dict or Series by class, optional
            Class probabilities in place of the learned ones.
        """
        if self.average is None:
            table = self.table(X)
            return self.score_rows(self.rows(table), table.n_rows, output, estimate, class_prior)
        weights_per_member = self.weights is not None and self.weights.has_members
        joint = self.score_members(X, estimate, class_prior, each=weights_per_member)
        if self.weights is not None:
            joint = self.weights.average_scores(joint, self.log_class(estimate, class_prior))
        return scoring.read_scores(joint, output)

    def score_rows(
        self,
        rows: tuple[Rows, ...],
        n: int,
        output: Output,
        estimate: Estimate | None = None,
        class_prior: object = None,
    ) -> np.ndarray:
        """Apply `output` to the (n, C) joint log probabilities of n encoded rows.

        The reading is `estimate`, by default that of the state. `class_prior` (C,) replaces the learned class
        probabilities.
        """
        if estimate is None:
            estimate = self.estimate
        else:
            require_estimate(estimate)
        encoding = self.encoding
        likelihood = self._likelihood(estimate, class_prior)
        rows = rows if estimate == "predictive" else tuple(r.linear_rows() for r in rows)
        if estimate not in ("mle", "map") or all(columns.network is None for columns in encoding.blocks):
            return scoring.score_by(likelihood, rows, n, output)
        scores = scoring.score_by(likelihood, rows, n, scoring.joint)
        if np.isnan(scores).any():
            model, reading = self.read(estimate, class_prior)
            # For a value of a parent that a class never had, there is no estimate for the child. The row is impossible,
            # not undefined, if another factor is zero, such as that of the parent.
            blocks = tuple(
                family if columns.network is None else fill_empty_tables(columns.network, family, reading)
                for columns, family in zip(encoding.blocks, model.blocks, strict=True)
            )
            filled = scoring.score_rows(encoding, replace(model, blocks=blocks), rows, n, reading, scoring.joint)
            scores = np.where(np.isnan(scores) & np.isneginf(filled), -np.inf, scores)
        return scoring.read_scores(scores, output)

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

    def score_members(
        self, X: object, estimate: Estimate | None = None, class_prior: object = None, *, each: bool
    ) -> np.ndarray:
        """Compute log p(class, row) of an average (N, C), or with `each` that of its members (N, C, M)."""
        table, average = self.table(X), self.average
        assert average is not None
        rows = self.rows(table) if average.members else ()
        return self.score_rows_of_members(table, rows, estimate, class_prior, each=each)

    def score_rows_of_members(
        self,
        table: Table,
        rows: tuple[Rows, ...],
        estimate: Estimate | None = None,
        class_prior: object = None,
        *,
        each: bool,
    ) -> np.ndarray:
        """Compute the scores of `score_members` for rows that are encoded already."""
        average = self.average
        assert average is not None

        def joint(member: Fitted, rows: tuple[Rows, ...], which: np.ndarray) -> np.ndarray:
            """Compute (n, C) log p(class, row) of encoded rows by one member; `which` (N,) marks the rows."""
            return member.score_rows(rows, int(which.sum()), scoring.joint, estimate, class_prior)

        return average.each(table, rows, joint) if each else average.mean(table, rows, joint)

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


Joint = Callable[[Fitted, tuple[Rows, ...], np.ndarray], np.ndarray]
"""Function of a member, encoded rows and a mask (N,) of their positions in the table: log p(class, row) (n, C)."""


@dataclass(frozen=True, eq=False)
class Average:
    """Average of models with one parent for all columns, over the members that vote on each row.

    Parameters
    ----------
    names : (M,) tuple of str
        Name of the parent of each member.
    members : (M,) tuple of Fitted
        State of each member.
    occurrences : (M,) tuple of (L + 1,) arrays
        Weight of the rows with each value of the parent of a member; the last entry, for a missing cell, is -inf.
    min_count : float
        A member votes on a row if the value of its parent in the row occurred in rows of at least this weight.
    without_members : Fitted
        Naive Bayes, for rows on which no member votes.
    """

    names: tuple[str, ...]
    members: tuple[Fitted, ...]
    occurrences: tuple[np.ndarray, ...]
    min_count: float
    without_members: Fitted

    def mean(self, table: Table, rows: tuple[Rows, ...], joint: Joint, less: np.ndarray | float = 0.0) -> np.ndarray:
        """Compute (N, C) log of the mean over the voting members of p(class, row); naive Bayes where none votes.

        Parameters
        ----------
        table : Table
            Rows as given.
        rows : tuple of Rows
            Rows under the encoding of the average.
        joint : Joint
            Function that scores rows by a member.
        less : (N,) array, optional
            Weight to subtract from the occurrences of the values of a row, such as that of a row that is left out.
        """
        shape = table.n_rows, len(self.without_members.encoding.classes)
        total, votes = np.full(shape, -np.inf), np.zeros(table.n_rows)
        for vote, scores in self._votes(table, rows, joint, less):
            if scores is not None:
                total = scoring.log_add(total, scores, vote)
                votes += vote
        none = votes == 0
        if none.any():
            total[none], votes[none] = self._score_by_naive_bayes(table, joint, none), 1
        return total - np.log(votes)[:, None]

    def each(self, table: Table, rows: tuple[Rows, ...], joint: Joint, less: np.ndarray | float = 0.0) -> np.ndarray:
        """Compute (N, C, M) log p(class, row) by each member; without a vote, the mean of the voting members' logs.

        Where no member votes all M entries are those of naive Bayes; without members M is 1. `less` (N,) is the weight
        to subtract from the occurrences of the values of a row.
        """
        all_rows = np.ones(table.n_rows, bool)
        if not self.members:
            return self._score_by_naive_bayes(table, joint, all_rows)[..., None]
        votes, scores = zip(*self._votes(table, rows, joint, less), strict=True)
        vote: np.ndarray = np.stack(votes, axis=-1)
        nothing = np.zeros((table.n_rows, len(self.without_members.encoding.classes)))
        joints = np.stack([nothing if member is None else member for member in scores], axis=-1)
        none = np.logical_not(vote.any(axis=1))
        if none.any():
            joints[none], vote[none] = self._score_by_naive_bayes(table, joint, none)[..., None], True
        vote = vote[:, None]
        mean = np.where(vote, joints, 0.0).sum(axis=2, keepdims=True) / vote.sum(axis=2, keepdims=True)
        return np.where(vote, joints, mean)

    def _score_by_naive_bayes(self, table: Table, joint: Joint, none: np.ndarray) -> np.ndarray:
        """Compute (n, C) log p(class, row) by naive Bayes, for the n rows in the mask `none` (N,)."""
        naive = self.without_members
        return joint(naive, naive.encoding.rows(table.take(none), ignore_unknown), none)

    def _votes(
        self, table: Table, rows: tuple[Rows, ...], joint: Joint, less: np.ndarray | float
    ) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """Yield the mask (N,) of rows on which each member votes, and the member's log p(class, row) (N, C) or None."""
        if not self.members:
            return
        cells: Any
        cells, *rest = rows
        base, all_rows = cells.base.stored(), np.ones(table.n_rows, bool)
        with progress("AODE", len(self.members), "members") as tick:
            for p, (member, occurrences) in enumerate(zip(self.members, self.occurrences, strict=True)):
                columns: Any = member.encoding.blocks[0]
                seen = occurrences[base.factors.raw[:, p]]
                vote = seen - less >= self.min_count - _ROUNDING * np.maximum(seen, 0.0)
                yield vote, joint(member, (columns.counting_rows(base), *rest), all_rows) if vote.any() else None
                tick()


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


def warn_undefined(undefined: np.ndarray) -> None:
    """Warn of rows without class probabilities, if the mask `undefined` (N,) has any."""
    if undefined.any():
        warn(
            f"{int(undefined.sum())} of {len(undefined)} rows have no class probabilities: under this estimate "
            f"the probability of every class is 0 or undefined (first: row {int(np.argmax(undefined))}). For these "
            "rows predict_proba is NaN, and predict returns the class with the highest prior probability. Set "
            "estimate='predictive', under which these rows have probabilities.",
            UndefinedProbabilityWarning,
        )


def require_classifier(nb: object, who: str) -> None:
    """Raise TypeError unless `nb` is a classifier of bayesnb, fitted or not; `who` is named as the caller."""
    if not hasattr(type(nb), "no_posterior"):
        raise TypeError(
            f"{who} takes a classifier of bayesnb, such as GaussianNB(), and got {type(nb).__module__}.{shown(nb)}."
        )


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


def require_posterior(nb: Classifier, who: str, draws: object = None) -> Fitted:
    """Return the state of a fitted classifier; raise unless its parameters have an exact posterior.

    For a `NaiveBayesMixture`, which has none, `draws` can stand for it, as `sample_latent` returns them.

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
        of_mixture: Fitted = mixture.estimator_.fitted_
        return of_mixture
    if nb.no_posterior is not None:
        raise NotImplementedError(f"{who}: {nb.no_posterior}")
    return current_state(nb)


def is_mixture(nb: object) -> bool:
    """Whether `nb` is a `NaiveBayesMixture`, whose parameters are those of `nb.estimator_`."""
    return hasattr(nb, "n_components")


def require_evidence(nb: Classifier, who: str) -> Fitted:
    """Return the state of a fitted classifier; raise unless log p(X, y) has a closed form, see `require_posterior`."""
    fitted = require_posterior(nb, who)
    if fitted.no_evidence is not None:
        raise NotImplementedError(f"{who}: {fitted.no_evidence}")
    return fitted
