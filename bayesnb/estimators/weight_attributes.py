"""Fitted attributes of weighted naive Bayes."""

from __future__ import annotations

import warnings
from typing import Any, NoReturn

import numpy as np

from bayesnb.estimators import classifier_state
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.estimators.predictions import FittedClassifier
from bayesnb.fitted.state import NotOfferedError
from bayesnb.weights.terms import Weights


class WeightAttributes(FittedClassifier):
    """Base class of `WeightedNB`: the weights as attributes, and the classifier whose terms have these weights."""

    weights_: Weights | None
    model_: NaiveBayesClassifier
    """Fitted estimator, with the margins of columns that have parents."""

    no_evidence = (
        "WeightedNB has no evidence, because weighted terms are not a joint distribution of rows and labels. For the "
        "evidence of the model without weights, use estimator_.log_evidence_."
    )

    @property
    def log_evidence_(self) -> NoReturn:
        """Raise NotOfferedError, with the reason `no_evidence`."""
        raise NotOfferedError(f"log_evidence_: {self.no_evidence}")

    def _base(self, X: object = None) -> NaiveBayesClassifier:
        """Return the unfitted estimator; by default one that suits X, which is a table of rows or an encoding."""
        raise NotImplementedError

    @property
    def _inner(self) -> NaiveBayesClassifier:
        """Classifier whose terms are weighted, fitted if the `WeightedNB` is."""
        return self.model_ if classifier_state.is_fitted(self) else self._base()

    @property
    def estimate(self) -> Any:  # type: ignore[override]  # Completion by jedi cannot read a Literal, `Estimate`.
        """Estimate of the parameters that predictions use: the hyperparameter `estimate` of the estimator."""
        return self._inner.estimate

    @property
    def no_posterior(self) -> str | None:
        """Reason why the estimator has no exact posterior, or None."""
        return self._inner.no_posterior

    @property
    def estimator_(self) -> NaiveBayesClassifier:
        """Fitted estimator, without the weights."""
        return classifier_state.without_margins(self.model_)

    @property
    def unweighted(self) -> NaiveBayesClassifier:
        """Estimator without the weights, fitted or not."""
        return self.estimator_ if classifier_state.is_fitted(self) else classifier_state.copy_unfitted(self._base())

    @property
    def weight_(self) -> np.ndarray:
        """Weight of the log likelihood of each term, (T,); ones if no weights are fitted."""
        return np.ones(len(self.term_names_)) if self.weights_ is None else self.weights_.weight

    @property
    def term_names_(self) -> tuple[str, ...]:
        """Name of each term, a tuple of T str."""
        return self.fitted_.term_names if self.weights_ is None else self.weights_.names

    @property
    def class_bias_(self) -> np.ndarray:
        """Bias that is added to the log probability of each class, (C,), in nats; zeros without weights."""
        weights, classes = self.weights_, self.fitted_.encoding.classes
        return np.zeros(len(classes)) if weights is None else weights.align_bias(classes, weights.class_bias)

    @property
    def temperature_(self) -> float:
        """Common mean to which weights of margins, or of all terms without structure, are shrunk; 1 if unweighted."""
        return 1.0 if self.weights_ is None else self.weights_.temperature

    @property
    def shrinkage_(self) -> float:
        """Prior standard deviation τ of the weights around `temperature_`; 0 if all weights are equal."""
        return 0.0 if self.weights_ is None else self.weights_.shrinkage

    @property
    def dependence_temperature_(self) -> float:
        """Common mean of the weights of dependences on parents; 0 without such terms, and if no weights are fitted."""
        return 0.0 if self.weights_ is None else self.weights_.dependence_temperature

    @property
    def dependence_shrinkage_(self) -> float:
        """Prior standard deviation of the weights of dependences around their temperature; 0 without dependences."""
        return 0.0 if self.weights_ is None else self.weights_.dependence_shrinkage

    @property
    def length_exponent_(self) -> float:
        """Exponent β by which the weight of a row of t words falls, as (t + 1)^-β; 0 without count rows."""
        return 0.0 if self.weights_ is None else self.weights_.exponent

    @property
    def expected_log_loss_(self) -> float:
        """Expected log loss of the label of a new row, in nats; NaN without weights.

        It is pessimistic if a class has few rows, and leaves out the rows of classes with a single row.
        """
        return np.nan if self.weights_ is None else self.weights_.log_loss

    @property
    def loo_log_loss_(self) -> float:
        """Deprecated name of `expected_log_loss_`."""
        warnings.warn("loo_log_loss_ has been renamed; use expected_log_loss_.", FutureWarning, stacklevel=2)
        return self.expected_log_loss_
