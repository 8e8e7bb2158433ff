"""The contract between classifiers and analyses: what was fitted, computed from once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesnb import scoring
from bayesnb._util.arguments import shown
from bayesnb._util.warnings import warn
from bayesnb.counting import Counted
from bayesnb.encoding import Columns, Encoding, LevelColumns, Rows, Table, Unknown, priors, report_unknown
from bayesnb.families import supports
from bayesnb.families.protocol import MeanReading
from bayesnb.model import Estimate, NaiveBayes, Statistics

_ESTIMATES = ("mle", "map", "mean", "predictive")


class NotOfferedError(NotImplementedError, AttributeError):
    """An attribute that other classifiers have and this one does not, with the reason: to `hasattr` it is not there."""


class Classifier(Protocol):
    """What analyses ask of a classifier of bayesnb."""

    estimate: Estimate

    @property
    def fitted_(self) -> Fitted:
        """What was fitted, made at each call."""
        ...

    @property
    def no_posterior(self) -> str | None:
        """Why there are no draws, intervals, evidence or leave-one-out scores, where there are none."""
        ...

    @property
    def no_evidence(self) -> str | None:
        """Why there is a posterior but no evidence, where that is so."""
        ...

    @property
    def unweighted(self) -> Classifier:
        """The classifier whose terms these are, with the same counts: itself, where they have no weights."""
        ...

    @property
    def classes_(self) -> np.ndarray: ...

    @property
    def class_log_prior_(self) -> np.ndarray: ...

    @property
    def log_evidence_(self) -> float: ...

    def with_priors(self, priors: Mapping[str, Any]) -> Any:
        """A copy with the same counts, under other hyperparameters."""
        ...

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any: ...

    def predict(self, X: Any) -> np.ndarray: ...

    def predict_proba(self, X: Any, *, estimate: Estimate | None = None) -> np.ndarray: ...

    def predict_log_proba(self, X: Any, *, class_prior: Any = None) -> np.ndarray: ...

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...


class Request(NamedTuple):
    """What is asked of rows: an output of log p(class, row), and how the posterior is read for it.

    Parameters
    ----------
    output : function of joint scores (n, C)
    estimate : {"predictive", "mean", "map", "mle"}, optional
        Default: the classifier's.
    class_prior : (C,) array, optional
        Class probabilities in place of the learned ones.
    draws : optional
        To average over in place of reading the posterior.
    """

    output: Callable[[jax.Array], jax.Array]
    estimate: Estimate | None = None
    class_prior: Any = None
    draws: Any = None


class Members(NamedTuple):
    """The classifiers that another one averages.

    `names` (M,) tell them apart; `average` is log p(class, row) of the average, (N, C), and `each` that of each member,
    (N, C, M): functions of a table, its rows, and the joint scores of one member. `scores` is `each` of the rows of X:
    a function of what was fitted, X, the estimate and class probabilities in place of the learned ones.
    """

    names: tuple[str, ...]
    average: Callable[..., np.ndarray]
    each: Callable[..., np.ndarray]
    scores: Callable[[Fitted, Any, Estimate | None, Any], np.ndarray]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted classifier as analyses read it; `nb.fitted_` makes it, once a call.

    Prior and posterior are computed when they are first asked for, and once.

    Parameters
    ----------
    name : str
        Of the classifier's type, for messages.
    encoding, statistics
        What was counted, and what its axes mean.
    prior_of : function of what was counted
        The prior, in which blocks that are derived from the data are functions of the statistics.
    prior_arguments : tuple of str
        For each block the hyperparameter of the classifier that has its prior.
    estimate : {"predictive", "mean", "map", "mle"}
        How predictions read the posterior.
    chosen : tuple of str
        What beside the parameters was chosen on the rows that were counted.
    no_posterior : str or None
        The reason, where there is none. `posterior` is then what predictions read: of EM that of expected counts, of an
        average of models nothing that any of them has.
    why_no_evidence : function
        Of the reason, where there is a posterior and no evidence, and else None.
    table : function of X
        X as a `Table`; refuses one whose columns are not those of `fit`.
    count_rows : function of an encoding, its rows, labels (N,) and weights (N,)
        Statistics of these rows.
    prior_alone : function of columns with parents and of their family
        The prior of the same features given the class alone.
    score : function of a `Fitted`, X and a `Request`
        What predictions say of X.
    parts : function of X, y and weights (N,)
        A function of other weights of the same rows, which returns a classifier fitted to them, without weights of
        terms. Levels are those of this classifier; structure, cells and densities are found anew.
    refit : function of X, y and weights (N,)
        A classifier that is fitted to these rows, weights of terms included, with the levels of this classifier.
    members : Members, optional
        Of a classifier that averages others: those.
    """

    name: str
    encoding: Encoding
    statistics: Statistics
    prior_of: Callable[[Counted], NaiveBayes]
    prior_arguments: tuple[str, ...]
    estimate: Estimate
    chosen: tuple[str, ...]
    no_posterior: str | None
    why_no_evidence: Callable[[], str | None]
    table: Callable[[Any], Table]
    count_rows: Callable[[Encoding, tuple[Rows, ...], np.ndarray, np.ndarray], Statistics]
    prior_alone: Callable[[Columns, Any], Any]
    score: Callable[..., np.ndarray]
    parts: Callable[[Any, Any, Any], Callable[[np.ndarray], Classifier]]
    refit: Callable[[Any, Any, Any], Classifier]
    members: Members | None = None

    @cached_property
    def empirical_prior(self) -> NaiveBayes:
        """The prior, in which blocks that are derived from the data are functions of the statistics."""
        return self.prior_of(self.counted)

    @cached_property
    def prior(self) -> NaiveBayes:
        """With one entry a class and level; priors derived from the data as these have them."""
        return self.empirical_prior.derive(self.statistics)

    @cached_property
    def posterior(self) -> NaiveBayes:
        """`prior.update(statistics)`."""
        return scoring.update(self.prior, self.statistics)

    @property
    def counted(self) -> Counted:
        """Encoding and statistics, as what merges."""
        return Counted(self.encoding, self.statistics)

    @property
    def log_evidence(self) -> float:
        """log p(X, y), parameters integrated out; a `NotOfferedError` where there is none in closed form."""
        if reason := self.no_posterior or self.why_no_evidence():
            raise NotOfferedError(f"log_evidence_: {reason}")
        return float(scoring.log_evidence(self.encoding, self.prior, self.statistics))

    @property
    def class_log_prior(self) -> np.ndarray:
        """(C,) log of the posterior mean of each class probability."""
        return np.asarray(scoring.plug_in(self.posterior.class_prior).log_theta[0])

    def read(self, estimate: Estimate | None = None, class_prior: Any = None) -> tuple[NaiveBayes, Estimate]:
        """What scores rows, and how it is read; `class_prior` (C,) in place of the learned one."""
        estimate = self.estimate if estimate is None else estimate
        require_estimate(estimate)
        model = scoring.update(self.prior.improper(), self.statistics) if estimate == "mle" else self.posterior
        if class_prior is not None:
            classes = priors.class_distribution(class_prior, 1.0, len(self.encoding.classes))
            model = replace(model, class_prior=classes)
        return model, "mean" if estimate == "mle" else estimate

    def encode(self, X: Any) -> tuple[tuple[Rows, ...], int]:
        """The rows of X, and how many they are."""
        table = self.table(X)
        return self.rows(table), table.n_rows

    def rows(self, table: Table, *, alone: bool = False) -> tuple[Rows, ...]:
        """The rows of a table under the encoding; values that are no level are told.

        `alone` are features without their parents.
        """
        blocks = tuple(block.base for block in self.encoding.blocks) if alone else self.encoding.blocks
        return replace(self.encoding, blocks=blocks).rows(table, self._report_unknown)

    def label_index(self, y: Any, n_rows: int) -> np.ndarray:
        """(N,) index of the class of each row; refuses labels that are no class."""
        return self.encoding.label_index(y, n_rows, self.name)

    def log_proba(self, X: Any) -> np.ndarray:
        """(N, C) log P(class | row), as `predict_log_proba` has it."""
        found = self.score(self, X, Request(scoring.log_proba))
        warn_undefined(np.isnan(found[:, 0]))
        return found

    def _report_unknown(self, columns: LevelColumns, unknown: list[Unknown]) -> None:
        note = ""
        family = next(f for b, f in zip(self.encoding.blocks, self.prior.blocks, strict=True) if b.base is columns)
        if columns.unknown == "level" and self.no_posterior is None and supports(family, MeanReading):
            # Of a structure the columns are those without parents, and a level has a share given each of their values.
            blocks: Any = self.encoding.blocks
            own = [block.base for block in blocks].index(columns)
            theta = np.exp(scoring.plug_in(self.posterior.blocks[own]).log_theta)
            of = dict(zip(blocks[own].index, blocks[own].tables(theta), strict=True))
            at = [columns.index[u.feature] for u in unknown]
            shares = [of[j][..., -1] for j in at if j in of]
            odds = max(((s.max(axis=0) / s.min(axis=0)).max() for s in shares if s.min() > 0), default=np.inf)
            note = f" (each multiplies the odds of some class against another by up to {odds:.3g})"
        report_unknown(columns, unknown, note)


def require_estimate(estimate: Any) -> None:
    """Raise ValueError unless it is a reading of the posterior."""
    if not isinstance(estimate, str) or estimate not in _ESTIMATES:
        raise ValueError(f"estimate={shown(estimate)} is unknown; use one of {_ESTIMATES}.")


def warn_undefined(undefined: np.ndarray) -> None:
    """Tell of rows (N,) without class probabilities."""
    if undefined.any():
        warn(
            f"{int(undefined.sum())} of {len(undefined)} rows have no class probabilities: under this estimate "
            f"every class is impossible or undefined (first: row {int(np.argmax(undefined))}). predict_proba is "
            "NaN there and predict returns the class most probable a priori; estimate='predictive' is defined."
        )


def require_classifier(nb: object, who: str) -> None:
    """Raise TypeError unless `nb` is a classifier of bayesnb, fitted or not."""
    if not hasattr(type(nb), "no_posterior"):
        raise TypeError(
            f"{who} takes a classifier of bayesnb, such as GaussianNB(), and got {type(nb).__module__}.{shown(nb)}."
        )


def require_fitted(nb: object, who: str) -> None:
    """As `require_classifier`; raise scikit-learn's NotFittedError unless it is fitted."""
    require_classifier(nb, who)
    check_is_fitted(nb)


def require_posterior(nb: Classifier, who: str) -> Fitted:
    """What was fitted; raise unless its parameters have an exact posterior.

    Raises
    ------
    NotFittedError
        If nothing was fitted.
    NotImplementedError
        With the reason that the classifier gives, `nb.no_posterior`.
    TypeError
        If it is no classifier of bayesnb.
    """
    require_fitted(nb, who)
    if nb.no_posterior is not None:
        raise NotImplementedError(f"{who}: {nb.no_posterior}")
    return nb.fitted_


def require_evidence(nb: Classifier, who: str) -> Fitted:
    """As `require_posterior`, where log p(X, y) is needed in closed form too."""
    fitted = require_posterior(nb, who)
    if (reason := fitted.why_no_evidence()) is not None:
        raise NotImplementedError(f"{who}: {reason}")
    return fitted
