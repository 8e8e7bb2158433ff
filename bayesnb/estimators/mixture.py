"""Latent class models: mixtures of naive Bayes components, fitted by EM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import jax
import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from bayesnb import em
from bayesnb._util.arguments import require_integer, shown
from bayesnb._util.warnings import warn
from bayesnb.encoding import Levels, check_weights
from bayesnb.estimators import classifier_state, display
from bayesnb.estimators.base import NaiveBayesClassifier, check_features, require_attribute, wrapped_estimator
from bayesnb.estimators.display import require_unnested
from bayesnb.estimators.mixed import MixedNB
from bayesnb.estimators.semi_supervised import clone_for_em, count_in_first_class, fit_to_best_run, use_pooled_priors
from bayesnb.fitted import scoring
from bayesnb.fitted.counting import require_numbers
from bayesnb.fitted.state import Fitted, read_columns
from bayesnb.kernels import Output
from bayesnb.uncertainty.class_probabilities import read_parameters, score_draws


@dataclass(eq=False, repr=False)
class NaiveBayesMixture(DensityMixin, BaseEstimator):
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
    seed : int, default 0
        Seed of the random starts.

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
    estimator: Any = None
    tol: float = 1e-5
    max_iter: int = 200
    n_init: int = 10
    seed: int = 0

    __getattr__ = classifier_state.raise_missing
    __dir__ = display.list_attributes
    _repr_html_inner = display.show_html
    _repr_mimebundle_ = display.show_mimebundle
    _get_fitted_attr_html = display.show_stored_attributes

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
        rows = [em.encode_unlabeled(encoding, "X", table, weight)]
        nothing = jax.tree.map(np.zeros_like, counted.statistics)
        rng = np.random.default_rng(self.seed)
        starts = (em.random_start(encoding, rows, rng) for _ in range(self.n_init))
        runs = em.run_starts(encoding, prior, nothing, rows, starts, self.n_init, self.max_iter, self.tol)
        nb.unlabeled_weight_ = 1.0
        best = fit_to_best_run(nb, encoding, runs, self.max_iter, self.tol)
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
        choice = self._score(X, scoring.decision).astype(np.int64)
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
        em.check_options(self.max_iter, self.tol, self.seed)
        self._base()

    def _restore(self, stored: dict[str, Any]) -> None:
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is None or isinstance(self.estimator, NaiveBayesClassifier):
            tags.input_tags = self._base().__sklearn_tags__().input_tags
        return tags
