"""Predictions and the display of fitted classifiers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import sklearn.base
from sklearn.utils.validation import check_is_fitted, validate_data

from bayesnb._util.arguments import shown
from bayesnb._util.arrays import accept_dask, compute_dask
from bayesnb._util.html import card, table
from bayesnb._util.scikit_learn import BaseEstimator, ClassifierMixin
from bayesnb.encoding import Encoding, check_labels, check_weights, priors
from bayesnb.estimators import classifier_state
from bayesnb.fitted import scoring
from bayesnb.fitted.state import Fitted, current_state, warn_undefined
from bayesnb.kernels import Output
from bayesnb.model import Estimate, NaiveBayes, Statistics
from bayesnb.uncertainty.class_probabilities import score_draws
from bayesnb.uncertainty.given_draws import Hyperparameters, Parameters, read_group_draws

# == HTML summary of a fitted classifier in a notebook, from its stored state and nothing else =====

_MOST_CLASSES = 12
_HOLDS = "The posterior follows from these rows. Class probabilities and their intervals hold only if the model does."


def summary(nb: BaseEstimator) -> str:
    """Return the summary of a classifier as an HTML card, without sections that fail; "" for an unfitted classifier."""
    sections = (_features_html, _classes_html, _weights_html, _iterations_html)
    title = "".join(_try_section(_describe_data, nb))
    tables = [html for section in sections for html in _try_section(section, nb)]
    return card(type(nb).__name__, title, *tables, notes=_try_section(_list_notes, nb)) if title else ""


def _try_section(section: Callable[[BaseEstimator], Iterator[str]], nb: BaseEstimator) -> Iterator[str]:
    """Yield the texts of a section, or none if it raises: a display must not fail, whatever was set after `fit`."""
    with suppress(Exception):
        yield from list(section(nb))


def _class_weights(nb: BaseEstimator) -> tuple[FittedClassifier, np.ndarray, str]:
    """Return the classifier that has the statistics, its (C,) class weights, and the word "class" or "component"."""
    counting: FittedClassifier = vars(nb).get("estimator_", nb)
    return counting, np.asarray(counting.class_count_, dtype=float), "class" if counting is nb else "component"


def _describe_data(nb: BaseEstimator) -> Iterator[str]:
    """Yield one sentence: the numbers of rows, features, and classes or components."""
    counting, count, word = _class_weights(nb)
    n, groups = counting.n_features_in_, word if len(count) == 1 else {"class": "classes"}.get(word, f"{word}s")
    yield f"fitted to {count.sum():.10g} rows of {n} feature{'s' * (n != 1)}, {len(count)} {groups}"


def _features_html(nb: BaseEstimator) -> Iterator[str]:
    """Yield an HTML table with kind, number of columns and stated prior of each block of features."""
    counting, _, _ = _class_weights(nb)
    base = getattr(counting, "unweighted", counting)
    base = base._base() if hasattr(base, "_base") else base
    rows = []
    for columns in counting.encoding_.blocks:
        name = "prior" if getattr(base, "prior", None) is not None else columns.hyperparameter
        value = getattr(base, name, None)
        text = f"array {value.shape}" if isinstance(value, np.ndarray) else shown(value)
        rows.append((columns.base.kind, len(columns.base.index), "" if value is None else f"{name} = {text}"))
    yield table(rows, ("features", "columns", "prior"))


def _classes_html(nb: BaseEstimator) -> Iterator[str]:
    """Yield an HTML table with weight and percentage of the rows of each class or component."""
    counting, count, word = _class_weights(nb)
    total, labels = count.sum() or 1.0, [v if isinstance(v, str) else shown(v) for v in counting.classes_.tolist()]
    if len(labels) > _MOST_CLASSES:
        labels = [*labels[:_MOST_CLASSES], f"{len(labels) - _MOST_CLASSES} more"]
        count = np.append(count[:_MOST_CLASSES], count[_MOST_CLASSES:].sum())
    rows = [(label, n, f"{100 * n / total:.3g}%") for label, n in zip(labels, count, strict=True)]
    yield table(rows, (word, "rows", "share"))


def _weights_html(nb: BaseEstimator) -> Iterator[str]:
    """Yield an HTML table of a `WeightedNB`: number and range of the weights, temperature, and log losses."""
    weights = vars(nb)["weights_"]
    rows = [("weights", len(weights.weight)), ("temperature", weights.temperature)]
    rows += [("least", float(weights.weight.min())), ("greatest", float(weights.weight.max()))]
    rows += [("expected log loss", weights.log_loss), ("without weights", weights.plain_log_loss)]
    yield table([*rows, ("experts", str(weights.gain))] if hasattr(weights, "gain") else rows)


def _iterations_html(nb: BaseEstimator) -> Iterator[str]:
    """Yield an HTML table of a mixture: whether EM converged, and the number of iterations."""
    fitted = vars(nb)
    yield table([("converged", "yes" if fitted["converged_"] else "no"), ("iterations", fitted["n_iter_"])])


def _list_notes(nb: BaseEstimator) -> Iterator[str]:
    """Yield sentences about the posterior: why it is not exact, or what it assumes and what the same rows chose."""
    if (reason := getattr(nb, "no_posterior", None)) is not None:
        yield f"No exact posterior: {reason}"
        return
    yield _HOLDS
    if chosen := vars(nb)["fitted_"].chosen:
        yield f"The same rows were used to choose {' and '.join(chosen)}."


# == Displays of estimators that do not compute properties, such as the posterior ==================


def require_unnested(nb: BaseEstimator) -> None:
    """Raise ValueError if a classifier wraps another one of its class, at any depth.

    The time of scikit-learn's `repr` doubles with each level of nesting.
    """
    inner: object = nb
    while isinstance(inner := getattr(inner, "estimator", None), BaseEstimator):
        if isinstance(inner, type(nb)) or isinstance(nb, type(inner)):
            name = type(nb).__name__
            raise ValueError(
                f"estimator: a {name} cannot wrap another {name}. Pass the classifier that the inner {name} wraps."
            )


def list_attributes(nb: object) -> list[str]:
    """Return the names of the attributes that exist; properties of a fitted classifier are listed without reading them.

    scikit-learn's list reads every attribute, and so computes the posterior. Left out are names that other classifiers
    have, and this one refuses.
    """
    names, fitted = object.__dir__(nb), "n_features_in_" in vars(nb)
    if not fitted:
        return [name for name in names if hasattr(nb, name)]
    members = {name: inspect.getattr_static(type(nb), name, None) for name in names}
    refused = {name for name, member in members.items() if name[0] != "_" and _is_refusal(member)}
    with suppress(Exception):  # Completion must not fail, whatever was set after `fit`.
        if any(getattr(nb, name, None) is not None for name in ("no_posterior", "no_evidence")):
            refused.add("log_evidence_")
    return [n for n in names if n not in refused and (isinstance(members[n], property) or hasattr(nb, n))]


def _is_refusal(member: object) -> bool:
    """Return whether a property or method is annotated with NoReturn: it always raises."""
    function = member.fget if isinstance(member, property) else member
    return getattr(function, "__annotations__", {}).get("return") == "NoReturn"


def show_html(nb: BaseEstimator) -> str:
    """Return HTML for notebooks: scikit-learn's diagram of the estimator, and the summary of a fitted classifier."""
    html: str = sklearn.base.BaseEstimator._repr_html_inner(nb)
    return html + summary(nb)


def show_mimebundle(nb: BaseEstimator, **kwargs: object) -> dict[str, str]:
    """Return scikit-learn's representations of the estimator by MIME type; the HTML includes the fitted summary."""
    bundle: dict[str, str] = sklearn.base.BaseEstimator._repr_mimebundle_(nb, **kwargs)
    if "text/html" in bundle:
        bundle["text/html"] += summary(nb)
    return bundle


def show_stored_attributes(nb: BaseEstimator, doc_link: str = "") -> object:
    """Return scikit-learn's HTML table of fitted attributes, without properties, which would be computed."""
    displayed = sklearn.base.BaseEstimator()
    for name in {*vars(nb), "classes_", "class_count_"} - {"fitted_", "model_"}:
        if hasattr(nb, name):
            setattr(displayed, name, getattr(nb, name))
    return sklearn.base.BaseEstimator._get_fitted_attr_html(displayed, doc_link)


# == Base class of fitted classifiers: the posterior as attributes, and class probabilities of rows


def _empty_labels(nb: FittedClassifier, no_rows: object) -> np.ndarray:
    """Return an empty array of the dtype of the labels, the result of `predict` for no rows; check columns."""
    return _empty_scores(nb, no_rows)[:, 0].astype(nb.classes_.dtype)


def _empty_scores(nb: FittedClassifier, no_rows: object) -> np.ndarray:
    """Return the (0, C) scores of a table without rows; raise if unfitted or if columns are not those of `fit`."""
    check_is_fitted(nb)
    validate_data(nb, no_rows, reset=False, skip_check_array=True)
    return np.empty((0, len(nb.classes_)))


class DisplayedEstimator(BaseEstimator):
    """Base class of estimators whose displays, and errors before `fit`, compute no property."""

    if not TYPE_CHECKING:  # or checkers would take any attribute for one
        __getattr__ = classifier_state.raise_missing
    __dir__ = list_attributes
    _repr_html_inner = show_html
    _repr_mimebundle_ = show_mimebundle
    _get_fitted_attr_html = show_stored_attributes


class FittedClassifier(ClassifierMixin, DisplayedEstimator):
    """Base class of classifiers with `fitted_`: posterior as attributes, class probabilities of rows."""

    estimate: Estimate
    fitted_: Fitted
    n_features_in_: int
    feature_names_in_: np.ndarray

    @property
    def no_posterior(self) -> str | None:
        """Reason why there is no exact posterior, nor draws, intervals, evidence and leave-one-out scores, or None."""
        return self.fitted_.no_posterior

    @property
    def encoding_(self) -> Encoding:
        """Meaning of the axes of `statistics_`: classes, and the columns with their levels."""
        return self.fitted_.encoding

    @property
    def statistics_(self) -> Statistics:
        """Sufficient statistics of the counted rows."""
        return self.fitted_.statistics

    @property
    def prior_(self) -> NaiveBayes:
        """Prior of all parameters; "within" and "pooled" priors are derived from the counted rows."""
        return self.fitted_.prior

    @property
    def posterior_(self) -> NaiveBayes:
        """Posterior distribution of all parameters, `prior_.update(statistics_)`."""
        return self.fitted_.posterior

    @property
    def log_evidence_(self) -> float:
        """Log evidence log p(X, y) with the parameters integrated out, including multinomial coefficients and -log x!.

        The evidence is -inf under a prior with a zero concentration. Under a prior derived from the data it is
        the evidence given that prior; with fractional weights it is a pseudo-evidence.

        Raises
        ------
        NotOfferedError
            If the evidence has no closed form. The error is an AttributeError too, so that `hasattr` returns False.
        """
        return self.fitted_.log_evidence

    @property
    def no_evidence(self) -> str | None:
        """Reason why there is a posterior but no evidence, or None."""
        return self.fitted_.no_evidence if self.__sklearn_is_fitted__() else None

    @property
    def classes_(self) -> np.ndarray:
        """Class labels, in the order of the class axis of every array."""
        return self.fitted_.encoding.classes.array()

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters: C - 1 for the classes unless `class_prior` is known, and those of each block."""
        model = self.fitted_.prior
        return int(model.class_prior.n_free() + sum(block.n_free() for block in model.blocks))

    @property
    def class_count_(self) -> np.ndarray:
        """Sum of the weights of the rows in each class, (C,)."""
        return np.asarray(self.fitted_.statistics.class_count)

    @property
    def class_log_prior_(self) -> np.ndarray:
        """Logarithm of the posterior mean of each class probability, (C,)."""
        return self.fitted_.class_log_prior

    @accept_dask(_empty_labels)
    def predict(
        self,
        X: object,
        *,
        estimate: Estimate | None = None,
        class_prior: object = None,
        draws: object = None,
        groups: object = None,
    ) -> np.ndarray:
        """Predict the most probable class of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F), or a dask array or dataframe
            Rows of features.
        estimate : {"mle", "map", "mean", "predictive"}, optional
            Estimate of the parameters: integrated out ("predictive"), or plugged in. Default: the hyperparameter
            `estimate`.
        class_prior : (C,) array, or dict or Series by class, optional
            Class probabilities that replace the learned ones, for rows with another prevalence. An array is in the
            order of `classes_`.
        draws : result of `posterior_draws`, `to_arviz` or `run_nuts`, optional
            Draws that probabilities are averaged over, in place of the exact posterior; see `predict_proba`.
        groups : (N,) array-like, optional
            Group of each row, for draws of `run_nuts(nb, X=X, y=y, groups=...)`.

        Returns
        -------
        (N,) array
            Labels. A row whose class probabilities are undefined, such as a row that is impossible in every class, gets
            the class that is most probable a priori, with a warning.

        Examples
        --------
        >>> from bayesnb import GaussianNB
        >>> nb = GaussianNB().fit([[1.0], [1.2], [3.0], [3.1]], ["low", "low", "high", "high"])
        >>> nb.predict([[2.9], [0.7]])
        array(['high', 'low'], dtype='<U4')
        """
        choice = self._score(X, scoring.most_probable, estimate, class_prior, draws, groups)
        if (undefined := choice < 0).any():
            warn_undefined(undefined)
            a_priori = self.fitted_.class_log_prior if class_prior is None else _log_prob(self.fitted_, class_prior)
            choice = np.where(undefined, int(np.argmax(a_priori)), choice)
        return np.asarray(self.classes_[choice])

    @accept_dask(_empty_scores)
    def predict_log_proba(
        self,
        X: object,
        *,
        estimate: Estimate | None = None,
        class_prior: object = None,
        draws: object = None,
        groups: object = None,
    ) -> np.ndarray:
        """Predict the log probability of each class for each row.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F), or a dask array or dataframe
            Rows of features.
        estimate : {"mle", "map", "mean", "predictive"}, optional
            Estimate of the parameters: integrated out ("predictive"), or plugged in. Default: the hyperparameter
            `estimate`.
        class_prior : (C,) array, or dict or Series by class, optional
            Class probabilities that replace the learned ones, for rows with another prevalence. An array is in the
            order of `classes_`.
        draws : result of `posterior_draws`, `to_arviz` or `run_nuts`, optional
            Draws that probabilities are averaged over, in place of the exact posterior; see `predict_proba`.
        groups : (N,) array-like, optional
            Group of each row, for draws of `run_nuts(nb, X=X, y=y, groups=...)`.

        Returns
        -------
        (N, C) array
            log P(class | row), classes in the order of `classes_`. A row whose class probabilities are undefined, such
            as a row that is impossible in every class, is NaN, with a warning.

        Examples
        --------
        >>> from bayesnb import GaussianNB
        >>> nb = GaussianNB().fit([[1.0], [1.5], [3.0], [2.5]], ["low", "low", "high", "high"])
        >>> nb.predict_log_proba([[2.1], [9e9]]).round(2)  # Student's t is certain of nothing far away
        array([[-0.39, -1.13],
               [-0.69, -0.69]])
        """
        log_proba = self._score(X, scoring.log_proba, estimate, class_prior, draws, groups)
        warn_undefined(np.isnan(log_proba[:, 0]))
        return log_proba

    @accept_dask(_empty_scores)
    def predict_proba(
        self,
        X: object,
        *,
        estimate: Estimate | None = None,
        class_prior: object = None,
        draws: object = None,
        groups: object = None,
    ) -> np.ndarray:
        """Predict the probability of each class for each row.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F), or a dask array or dataframe
            Rows of features.
        estimate : {"mle", "map", "mean", "predictive"}, optional
            Estimate of the parameters: integrated out ("predictive"), or plugged in. Default: the hyperparameter
            `estimate`.
        class_prior : (C,) array, or dict or Series by class, optional
            Class probabilities that replace the learned ones, for rows with another prevalence. An array is in the
            order of `classes_`.
        draws : result of `posterior_draws`, `to_arviz` or `run_nuts`, optional
            Draws that probabilities are averaged over, in place of the exact posterior; see the notes.
        groups : (N,) array-like, optional
            Group of each row, for draws of `run_nuts(nb, X=X, y=y, groups=...)`. Rows of a group without training rows
            are predicted by the common distribution of the parameters of the groups.

        Returns
        -------
        (N, C) array
            P(class | row), classes in the order of `classes_`. A row whose class probabilities are undefined, such as a
            row that is impossible in every class, is NaN, with a warning.

        Warns
        -----
        UserWarning
            If the average over `draws` depends on few of the draws. The message gives the number of such rows and the
            smallest effective sample size.

        Notes
        -----
        Draws of the posterior of the same model, recognised by their `attrs`, are averaged over the hyperparameters φ
        only: given φ the parameters are integrated out in closed form,

            p(class, row | D) = 1/S Σ_s p(class, row | D, φ_s).

        Without a hyperprior (`posterior_draws`, `to_arviz`, `run_nuts` by default) the result is the `"predictive"`
        estimate. For all other draws, such as `dict(draws)`, p(class, row | θ) is averaged over the draws of θ: in many
        dimensions the average depends on few of the draws, and a warning is given. A column of numbers in a structure
        has p(x_j | class) p(cell | class, parents) / p(cell | class). Its denominator is the mean over draws, and so
        averages tend to the quotient of predictives, the `"predictive"` estimate. Draws of the weights of a
        `WeightedNB`, by `run_nuts`, are recognised by their sites, and P(class | row) is averaged over the draws.

        For a dask array or dataframe the result is a dask array with the row chunks of X, which is computed lazily.
        Warnings of unknown levels and undefined rows are given for each block when the block is computed.

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
        proba = self._score(X, scoring.log_proba, estimate, class_prior, draws, groups)
        warn_undefined(np.isnan(proba[:, 0]))
        np.exp(proba, out=proba)
        return proba

    @accept_dask(_empty_scores)
    def predict_joint_log_proba(
        self, X: object, *, estimate: Estimate | None = None, class_prior: object = None
    ) -> np.ndarray:
        """Compute the joint log probability log p(class, row) of each class and row.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F), or a dask array or dataframe
            Rows of features.
        estimate : {"mle", "map", "mean", "predictive"}, optional
            Estimate of the parameters: integrated out ("predictive"), or plugged in. Default: the hyperparameter
            `estimate`.
        class_prior : (C,) array, or dict or Series by class, optional
            Class probabilities that replace the learned ones, for rows with another prevalence. An array is in the
            order of `classes_`.

        Returns
        -------
        (N, C) array
            log p(class, row), without the factors that all classes share (multinomial coefficients and 1/x!).

        Examples
        --------
        >>> import numpy as np
        >>> from bayesnb import CategoricalNB
        >>> nb = CategoricalNB(alpha=1, class_alpha=1).fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
        >>> np.exp(nb.predict_joint_log_proba([["rain"], ["sun"]])).round(2)  # all possible rows: the sum is one
        array([[0.27, 0.15],
               [0.13, 0.45]])
        """
        return self._score(X, scoring.joint, estimate, class_prior)

    def score(
        self,
        X: object,
        y: object,
        sample_weight: object = None,
        *,
        estimate: Estimate | None = None,
        class_prior: object = None,
    ) -> float:
        """Compute the accuracy of `predict` on labelled rows; a dask collection is computed at once.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F), or a dask array or dataframe
            Rows of features.
        y : array-like of shape (N,)
            Labels of the rows.
        sample_weight : array-like of shape (N,), optional
            Weights of the rows.
        estimate : {"mle", "map", "mean", "predictive"}, optional
            Estimate of the parameters: integrated out ("predictive"), or plugged in. Default: the hyperparameter
            `estimate`.
        class_prior : (C,) array, or dict or Series by class, optional
            Class probabilities that replace the learned ones, for rows with another prevalence. An array is in the
            order of `classes_`.

        Returns
        -------
        float
            Weighted fraction of the rows whose label is predicted.

        Examples
        --------
        >>> from bayesnb import GaussianNB
        >>> nb = GaussianNB().fit([[1.0], [1.2], [3.0], [3.1]], ["low", "low", "high", "high"])
        >>> nb.score([[0.9], [2.9], [2.7]], ["low", "high", "low"], sample_weight=[1, 2, 1])
        0.75
        """
        predicted = self.predict(X, estimate=estimate, class_prior=class_prior)
        predicted, y, sample_weight = map(compute_dask, (predicted, y, sample_weight))
        n, owner = len(predicted), type(self).__name__
        (labels, label), (classes, choice) = check_labels(y, n, owner), check_labels(predicted, n, owner)
        correct = classes.index(labels.values)[label] == choice
        return float(np.average(correct, weights=check_weights(sample_weight, n)))

    # -- shared machinery ------------------------------------------------------------------------

    def _score(
        self,
        X: object,
        output: Output,
        estimate: Estimate | None,
        class_prior: object,
        draws: object = None,
        groups: object = None,
    ) -> np.ndarray:
        """Apply `output` to the (N, C) joint log probabilities of the rows of X, by a reading or by draws."""
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)
        if draws is not None:
            return self._score_draws(draws, X, output, estimate, class_prior, groups)
        if groups is not None:
            raise ValueError(
                "groups: pass groups= only with draws that were made with groups, by run_nuts(groups=...)."
            )
        fitted = current_state(self)
        return fitted.score(*fitted.encode(X), output, estimate, class_prior)

    def _score_draws(
        self, draws: object, X: object, output: Output, estimate: Estimate | None, class_prior: object, groups: object
    ) -> np.ndarray:
        """Apply `output` to the (N, C) log of the average of p(class, row) over draws of the parameters."""
        fitted = current_state(self)
        fitted.require_single_model("draws")
        if estimate is not None:
            raise ValueError(f"estimate={shown(estimate)} and draws= exclude each other. Pass one of the two.")
        prob = None if class_prior is None else np.exp(_log_prob(fitted, class_prior))

        def of_groups(n_rows: int) -> Iterator[tuple[np.ndarray, Parameters | Hyperparameters]]:
            """Yield a mask (N,) of the rows of each group, and the draws for these."""
            for mask, drawn in read_group_draws(fitted, draws, groups, n_rows):
                yield mask, drawn if prob is None else drawn.known_classes(prob)

        return score_draws(fitted, X, of_groups, output)

    def __sklearn_is_fitted__(self) -> bool:
        return "fitted_" in vars(self)


def _log_prob(fitted: Fitted, class_prior: object) -> np.ndarray:
    """Return (C,) log probabilities of the classes by the argument `class_prior`; the mean of a Dirichlet."""
    known = priors.class_distribution(class_prior, 1.0, fitted.encoding.classes)
    return np.asarray(scoring.plug_in(known).log_theta[0])
