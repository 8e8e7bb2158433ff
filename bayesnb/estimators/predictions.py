"""Classifiers with a posterior: its attributes, and class probabilities of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from bayesnb import scoring
from bayesnb._util.arguments import shown
from bayesnb._util.dask_rows import accept_dask, compute_dask
from bayesnb.encoding import Encoding, Table, check_labels, check_table, check_weights, priors
from bayesnb.estimators.display import Displayed
from bayesnb.fitted import Fitted, Output, warn_undefined
from bayesnb.model import Estimate, NaiveBayes, Statistics
from bayesnb.uncertainty.given_draws import read_draws
from bayesnb.uncertainty.row_draws import score_draws


def _labels(nb: FittedClassifier, no_rows: Any) -> np.ndarray:
    return _scores(nb, no_rows)[:, 0].astype(nb.classes_.dtype)


def _indices(nb: FittedClassifier, no_rows: Any) -> np.ndarray:
    return _scores(nb, no_rows)[:, 0].astype(np.int64)


def _scores(nb: FittedClassifier, no_rows: Any) -> np.ndarray:
    """What is given for a table of no rows, whose columns are checked."""
    check_is_fitted(nb)
    validate_data(nb, no_rows, reset=False, skip_check_array=True)
    return np.empty((0, len(nb.classes_)))


class FittedClassifier(ClassifierMixin, Displayed):
    """Base of what predicts from a state, `fitted_`: the posterior as attributes, and class probabilities of rows."""

    estimate: Estimate
    fitted_: Fitted
    n_features_in_: int
    _no_evidence: str | None = None  # why there is none, whatever was counted

    @property
    def encoding_(self) -> Encoding:
        """Meaning of the axes of `statistics_`: classes, and the columns with their levels."""
        return self._state_of("encoding_").encoding

    @property
    def statistics_(self) -> Statistics:
        """Sufficient statistics of the rows that were counted."""
        return self._state_of("statistics_").statistics

    @property
    def prior_(self) -> NaiveBayes:
        """Prior with one entry a class and level; "within" and "pooled" ones as the data have them."""
        return self._state_of("prior_").prior

    @property
    def posterior_(self) -> NaiveBayes:
        """`prior_.update(statistics_)`."""
        return self._state_of("posterior_").posterior

    @property
    def log_evidence_(self) -> float:
        """log p(X, y), parameters integrated out, multinomial coefficients and -log x! included.

        -inf under a prior with a zero concentration. Under a prior derived from the data this is the
        evidence given that prior; with fractional weights it is a pseudo-evidence.

        Raises
        ------
        NotOfferedError
            Where there is no exact posterior, and so no evidence in closed form: a NotImplementedError, and an
            AttributeError, as there is no such attribute then.
        """
        return self._state_of("log_evidence_").log_evidence

    @property
    def no_evidence(self) -> str | None:
        """Why there is a posterior but no evidence, where that is so."""
        return self.fitted_.no_evidence if self.__sklearn_is_fitted__() else self._no_evidence

    @property
    def classes_(self) -> np.ndarray:
        """Class labels, in the order of every array's class axis."""
        return self._state_of("classes_").encoding.classes.array()

    @property
    def n_parameters_(self) -> int:
        """Free parameters: C - 1 for the classes unless they are known, and those of each block."""
        model = self._state_of("n_parameters_").prior
        return model.class_prior.n_free() + sum(block.n_free() for block in model.blocks)

    @property
    def class_count_(self) -> np.ndarray:
        """(C,) weight of the rows of each class."""
        return self._state_of("class_count_").statistics.class_count

    @property
    def class_log_prior_(self) -> np.ndarray:
        """(C,) log of the posterior mean of each class probability."""
        return self._state_of("class_log_prior_").class_log_prior

    @accept_dask(_labels)
    def predict(
        self, X: Any, *, estimate: Estimate | None = None, class_prior: Any = None, draws: Any = None
    ) -> np.ndarray:
        """Most probable class of each row; the most probable a priori where that is undefined.

        Of dask arrays and dataframes, see `predict_proba`.

        Examples
        --------
        >>> from bayesnb import GaussianNB
        >>> nb = GaussianNB().fit([[1.0], [1.2], [3.0], [3.1]], ["low", "low", "high", "high"])
        >>> nb.predict([[2.9], [0.7]])
        array(['high', 'low'], dtype='<U4')
        """
        choice = self._choose(X, estimate, class_prior, draws)
        return self.classes_[choice]

    @accept_dask(_scores)
    def predict_log_proba(
        self, X: Any, *, estimate: Estimate | None = None, class_prior: Any = None, draws: Any = None
    ) -> np.ndarray:
        """(N, C) log P(class | row); as `predict_proba`.

        Examples
        --------
        >>> from bayesnb import GaussianNB
        >>> nb = GaussianNB().fit([[1.0], [1.5], [3.0], [2.5]], ["low", "low", "high", "high"])
        >>> nb.predict_log_proba([[2.1], [9e9]]).round(2)  # Student's t is certain of nothing far away
        array([[-0.39, -1.13],
               [-0.69, -0.69]])
        """
        log_proba = self._score(X, scoring.log_proba, estimate, class_prior, draws)
        warn_undefined(np.isnan(log_proba[:, 0]))
        return log_proba

    @accept_dask(_scores)
    def predict_proba(
        self, X: Any, *, estimate: Estimate | None = None, class_prior: Any = None, draws: Any = None
    ) -> np.ndarray:
        """(N, C) P(class | row), if naive Bayes holds; NaN in rows where it is undefined.

        Parameters
        ----------
        estimate : {"mle", "map", "mean", "predictive"}, optional
            Reading of the posterior; default: the constructor's.
        class_prior : (C,) array, optional
            Class probabilities in place of the learned ones, for a shifted prevalence.
        draws : what `posterior_draws`, `to_arviz` or `run_nuts` returns, optional
            Average over them in place of reading the posterior: see the notes.

        Warns
        -----
        UserWarning
            If the average over `draws` rests on few of them, with the number of rows and the least effective sample
            size.

        Notes
        -----
        Draws of the posterior of this very model leave hyperparameters φ to average over, and nothing else: given φ the
        parameters are integrated out in closed form,

            p(class, row | D) = 1/S Σ_s p(class, row | D, φ_s),

        and where there are none (`posterior_draws`, `to_arviz`, `run_nuts` without a hyperprior) this is the
        `"predictive"` estimate itself. They say so by their `attrs`. Of all others, be it `dict(draws)`,
        p(class, row | θ) is averaged over the draws of θ: in many dimensions few of them make the average, and the
        warning says so. Draws of the weights of a `WeightedNB`, by `run_nuts`, are told by their sites, and
        P(class | row) is averaged over them.

        Of a dask array or dataframe this is a dask array, whose rows are chunked as those of X, and nothing is computed
        yet. Warnings of unknown levels and undefined rows come a block at a time, where it is computed.

        Examples
        --------
        >>> from bayesnb import GaussianNB
        >>> nb = GaussianNB().fit([[1.0], [1.5], [3.0], [2.5]], ["low", "low", "high", "high"])
        >>> nb.predict_proba([[2.1]]).round(3)
        array([[0.678, 0.322]])
        >>> nb.predict_proba([[2.1]], estimate="mle").round(3)
        array([[0.917, 0.083]])
        >>> nb.predict_proba([[2.1]], class_prior=[0.1, 0.9]).round(3)  # where nine in ten are low
        array([[0.189, 0.811]])
        """
        log_proba = self.predict_log_proba(X, estimate=estimate, class_prior=class_prior, draws=draws)
        return np.exp(log_proba, out=log_proba)

    @accept_dask(_scores)
    def predict_joint_log_proba(
        self, X: Any, *, estimate: Estimate | None = None, class_prior: Any = None
    ) -> np.ndarray:
        """(N, C) log p(class, row), without what no class changes (coefficients, -log x!).

        Examples
        --------
        >>> import numpy as np
        >>> from bayesnb import CategoricalNB
        >>> nb = CategoricalNB(alpha=1, class_alpha=1).fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
        >>> np.exp(nb.predict_joint_log_proba([["rain"], ["sun"]])).round(2)  # these are all cells: they sum to one
        array([[0.27, 0.15],
               [0.13, 0.45]])
        """
        return self._score(X, scoring.joint, estimate, class_prior)

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        estimate: Estimate | None = None,
        class_prior: Any = None,
    ) -> float:
        """Accuracy of `predict` on labelled rows; of dask collections it is computed at once.

        Examples
        --------
        >>> from bayesnb import GaussianNB
        >>> nb = GaussianNB().fit([[1.0], [1.2], [3.0], [3.1]], ["low", "low", "high", "high"])
        >>> nb.score([[0.9], [2.9], [2.7]], ["low", "high", "low"], sample_weight=[1, 2, 1])
        0.75
        """
        choice, y, sample_weight = map(compute_dask, (self._choose(X, estimate, class_prior), y, sample_weight))
        found, label = check_labels(y, len(choice), type(self).__name__)
        correct = self.encoding_.classes.index(found.values)[label] == choice
        return float(np.average(correct, weights=check_weights(sample_weight, len(choice))))

    # -- shared machinery ------------------------------------------------------------------------

    def _score(
        self, X: Any, output: Output, estimate: Estimate | None, class_prior: Any, draws: Any = None
    ) -> np.ndarray:
        """Apply `output`, a function of `scoring`, to the joint log probabilities of the rows of X."""
        check_is_fitted(self)
        if draws is None:
            return self.fitted_.score(X, output, estimate, class_prior)
        return self._score_draws(draws, X, output, estimate, class_prior)

    def _score_draws(
        self, draws: Any, X: Any, output: Output, estimate: Estimate | None, class_prior: Any
    ) -> np.ndarray:
        """Apply `output` to log of the average of p(class, row) over draws of the parameters."""
        fitted = self.fitted_
        if fitted.average is not None:
            raise NotImplementedError(f"draws: {fitted.no_posterior}")
        if estimate is not None:
            raise ValueError(
                f"estimate={shown(estimate)} reads the posterior, and draws= stand for it: pass one of them."
            )
        drawn = read_draws(fitted, draws)
        if class_prior is not None:
            known = priors.class_distribution(class_prior, 1.0, len(fitted.encoding.classes))
            drawn = drawn.known_classes(np.exp(scoring.plug_in(known).log_theta[0]))
        return score_draws(fitted, X, drawn, output)

    @accept_dask(_indices)
    def _choose(self, X: Any, estimate: Estimate | None, class_prior: Any, draws: Any = None) -> np.ndarray:
        """Index of the class that `predict` returns."""
        choice = self._score(X, scoring.decision, estimate, class_prior, draws)
        undefined = choice < 0
        warn_undefined(undefined)
        a_priori = self.fitted_.class_log_prior if class_prior is None and undefined.any() else class_prior
        return np.where(undefined, int(np.argmax(a_priori)), choice) if undefined.any() else choice

    def _table(self, X: Any, reset: bool = False) -> Table:
        """Return X as a table; refuse other columns than those of `fit`, or where this is `fit`, `reset` them."""
        table = check_table(X, type(self).__name__)
        validate_data(self, X, reset=reset, skip_check_array=True)
        names = getattr(self, "feature_names_in_", None)
        return table if names is None else Table(table.data, tuple(names), table.n_rows, table.owner)

    def _state_of(self, name: str) -> Fitted:
        """Return what was fitted; raise AttributeError where attribute `name` is asked for before."""
        self._require_fitted(name)
        return self.fitted_

    def _require_fitted(self, name: str) -> None:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {shown(name)} before fit.")

    def __sklearn_is_fitted__(self) -> bool:
        return "fitted_" in vars(self)
