"""Rows to class probabilities: what every classifier reads off its posterior."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from bayesnb import scoring
from bayesnb.arguments import shown
from bayesnb.encoding import LevelColumns, Rows, Unknown, check_labels, check_weights, report_unknown
from bayesnb.estimators import priors
from bayesnb.lazy import computed, lazily
from bayesnb.model import Estimate, NaiveBayes
from bayesnb.reporting import warn
from bayesnb.uncertainty.given_draws import read_draws, score_draws

_ESTIMATES = ("mle", "map", "mean", "predictive")


def require_estimate(estimate: Any) -> None:
    """Raise ValueError unless it is a reading of the posterior."""
    if not isinstance(estimate, str) or estimate not in _ESTIMATES:
        raise ValueError(f"estimate={shown(estimate)} is unknown; use one of {_ESTIMATES}.")


def _labels(nb: Any, no_rows: Any) -> np.ndarray:
    return _scores(nb, no_rows)[:, 0].astype(nb.classes_.dtype)


def _indices(nb: Any, no_rows: Any) -> np.ndarray:
    return _scores(nb, no_rows)[:, 0].astype(np.int64)


def _scores(nb: Any, no_rows: Any) -> np.ndarray:
    """What is given for a table of no rows, whose columns are checked."""
    check_is_fitted(nb)
    validate_data(nb, no_rows, reset=False, skip_check_array=True)
    return np.empty((0, len(nb.classes_)))


class Predictions:
    """The predicting half of `NaiveBayesClassifier`, which has the state: an encoding, and a posterior of counts."""

    estimate: Estimate
    encoding_: Any
    statistics_: Any
    prior_: Any
    posterior_: Any
    classes_: Any
    class_log_prior_: Any
    _no_posterior: Any
    _table: Callable[..., Any]

    @lazily(_labels)
    def predict(
        self, X: Any, *, estimate: Estimate | None = None, class_prior: Any = None, draws: Any = None
    ) -> np.ndarray:
        """Most probable class of each row; the most probable a priori where that is undefined.

        Of dask arrays and dataframes, see `predict_proba`.
        """
        choice = self._choose(X, estimate, class_prior, draws)
        return self.classes_[choice]

    @lazily(_scores)
    def predict_log_proba(
        self, X: Any, *, estimate: Estimate | None = None, class_prior: Any = None, draws: Any = None
    ) -> np.ndarray:
        """(N, C) log P(class | row); as `predict_proba`."""
        log_proba = self._score(X, estimate, class_prior, scoring.log_proba, draws)
        self._warn_undefined(np.isnan(log_proba[:, 0]))
        return log_proba

    @lazily(_scores)
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
        warning says so.

        Of a dask array or dataframe this is a dask array, whose rows are chunked as those of X, and nothing is computed
        yet. Warnings of unknown levels and undefined rows come a block at a time, where it is computed.
        """
        log_proba = self.predict_log_proba(X, estimate=estimate, class_prior=class_prior, draws=draws)
        return np.exp(log_proba, out=log_proba)

    @lazily(_scores)
    def predict_joint_log_proba(
        self, X: Any, *, estimate: Estimate | None = None, class_prior: Any = None
    ) -> np.ndarray:
        """(N, C) log p(class, row), without what no class changes (coefficients, -log x!)."""
        return self._score(X, estimate, class_prior, scoring.joint)

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        estimate: Estimate | None = None,
        class_prior: Any = None,
    ) -> float:
        """Accuracy of `predict` on labelled rows; of dask collections it is computed at once."""
        choice, y, sample_weight = map(computed, (self._choose(X, estimate, class_prior), y, sample_weight))
        found, label = check_labels(y, len(choice), type(self).__name__)
        correct = self.encoding_.classes.index(found.values)[label] == choice
        return float(np.average(correct, weights=check_weights(sample_weight, len(choice))))

    # -- shared machinery ------------------------------------------------------------------------

    def _score(
        self, X: Any, estimate: Estimate | None, class_prior: Any, output: Callable, draws: Any = None
    ) -> np.ndarray:
        check_is_fitted(self)
        if draws is not None and estimate is not None:
            raise ValueError(f"estimate={estimate!r} reads the posterior, and draws= stand for it: pass one of them.")
        if draws is not None:
            drawn = read_draws(self, draws)
            if class_prior is not None:
                known = priors.class_distribution(class_prior, 1.0, len(self.encoding_.classes))
                drawn = drawn.known_classes(np.exp(scoring.plug_in(known).log_theta[0]))
            return score_draws(self, X, drawn, output)
        return self._read(*self._encode(X), estimate, class_prior, output)

    def _read(
        self, rows: tuple[Rows, ...], n: int, estimate: Estimate | None, class_prior: Any, output: Callable
    ) -> np.ndarray:
        """Apply `output` to the joint log probabilities of n encoded rows."""
        model, reading = self._model(estimate, class_prior)
        return scoring.score_rows(self.encoding_, model, rows, n, reading, output)

    def _model(self, estimate: Estimate | None, class_prior: Any) -> tuple[NaiveBayes, Estimate]:
        """What scores rows, and how it is read."""
        estimate = self.estimate if estimate is None else estimate
        require_estimate(estimate)
        prior = self.prior_.limit() if estimate == "mle" else self.prior_
        model = scoring.update(prior, self.statistics_)
        if class_prior is not None:
            model = NaiveBayes(priors.class_distribution(class_prior, 1.0, len(self.encoding_.classes)), model.blocks)
        return model, "mean" if estimate == "mle" else estimate

    def _encode(self, X: Any) -> tuple[tuple[Rows, ...], int]:
        """Rows of X under the fitted encoding, and how many they are."""
        check_is_fitted(self)
        table = self._table(X)
        return self.encoding_.rows(table, self._report_unknown), table.n_rows

    @lazily(_indices)
    def _choose(self, X: Any, estimate: Estimate | None, class_prior: Any, draws: Any = None) -> np.ndarray:
        """Index of the class that `predict` returns."""
        choice = self._score(X, estimate, class_prior, scoring.decision, draws)
        undefined = choice < 0
        self._warn_undefined(undefined)
        a_priori = self.class_log_prior_ if class_prior is None and undefined.any() else class_prior
        return np.where(undefined, int(np.argmax(a_priori)), choice) if undefined.any() else choice

    def _report_unknown(self, columns: LevelColumns, unknown: list[Unknown]) -> None:
        note = ""
        if columns.unknown == "level" and self._no_posterior is None:
            # Of a structure the columns are those without parents, and a level has a share given each of their values.
            blocks: Any = self.encoding_.blocks
            own = [getattr(block, "base", block) for block in blocks].index(columns)
            tables = blocks[own].tables(self.posterior_.blocks[own].concentration)
            shares = [tables[u.feature][..., -1] / tables[u.feature].sum(axis=-1) for u in unknown]
            odds = max(((s.max(axis=0) / s.min(axis=0)).max() for s in shares if s.min() > 0), default=np.inf)
            note = f" (each multiplies the odds of some class against another by up to {odds:.3g})"
        report_unknown(columns, unknown, note)

    def _warn_undefined(self, undefined: np.ndarray) -> None:
        if undefined.any():
            warn(
                f"{int(undefined.sum())} of {len(undefined)} rows have no class probabilities: under this estimate "
                f"every class is impossible or undefined (first: row {int(np.argmax(undefined))}). predict_proba is "
                "NaN there and predict returns the class most probable a priori; estimate='predictive' is defined."
            )
