"""Experts: other classifiers as terms of a score, fitted to the halves of cross-fitting, and what they add.

The term of an expert is log q(c | x) - log P(c), with q by the fit to the half that lacks the row. With a weight per
term the score is a logarithmic opinion pool (Genest & Zidek, *Combining probability distributions*, Statistical Science
1, 1986; Hinton, *Training products of experts*, Neural Computation 14, 2002).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit, ndtri
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

from bayesnb._util.arguments import bad_argument, shown
from bayesnb._util.terminal import progress
from bayesnb._util.warnings import warn
from bayesnb.encoding.experts import ExpertColumns, class_probabilities, rows_of_experts
from bayesnb.weights.cross_fitting import CrossFit, add_posterior, weigh_cross_fit
from bayesnb.weights.halves import mean_of_units
from bayesnb.weights.terms import MOST_TERMS, WeightDraws, Weights

AUTO = "auto"
_OTHER_SEED = 2**32
PRIOR_ODDS = 10.0
"""Prior odds of the scores without experts against those with experts, those of strong evidence (Jeffreys)."""
_PROB, _DRAWS, _MOST_CATEGORIES, _MANY_ROWS = 0.9, 400, 255, 10_000

# == Classifiers that are given as experts =========================================================


def read_experts(experts: object, seed: int) -> dict[str, BaseEstimator]:
    """Return {name: unfitted copy} of the classifiers in an argument `experts`; those without a seed have `seed`.

    Raises
    ------
    ValueError
        If `experts` is neither "auto" nor a list of classifiers with `predict_proba`, or of (name, classifier) pairs.
    """
    if isinstance(experts, str) and experts == AUTO:
        experts = list(_default_experts().items())
    expected = "'auto', or a list of classifiers with predict_proba, or of (name, classifier) pairs"
    if isinstance(experts, str | Mapping) or hasattr(experts, "fit") or not np.iterable(experts):
        raise bad_argument("experts", experts, expected)
    pairs = [e if isinstance(e, tuple) and len(e) == 2 else (type(e).__name__.lower(), e) for e in experts]
    read = dict[str, BaseEstimator]()
    for name, expert in pairs:
        is_classifier = all(hasattr(expert, method) for method in ("fit", "predict_proba", "get_params"))
        if not isinstance(name, str) or isinstance(expert, type) or not is_classifier:
            raise bad_argument("experts", expert, expected)
        if name in read:
            raise ValueError(f"experts: {shown(name)} is the name of two experts. Pass (name, classifier) pairs.")
        read[name] = clone(expert)
        unseeded = (key for key, value in read[name].get_params().items() if value is None)
        seeds = {key: seed for key in unseeded if key.rpartition("__")[2] == "random_state"}
        read[name].set_params(**seeds)
    return read


def _default_experts() -> dict[str, BaseEstimator]:
    """Return {name: classifier}: boosting, a random forest and logistic regression for mixed tables of any kind."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

    def mixed(learner: object) -> BaseEstimator:
        numbers = make_pipeline(SimpleImputer(add_indicator=True, keep_empty_features=True), StandardScaler())
        levels, are_numbers = make_column_selector(dtype_include="category"), make_column_selector(dtype_include=float)
        return make_pipeline(
            make_column_transformer((OneHotEncoder(handle_unknown="ignore"), levels), (numbers, are_numbers)), learner
        )

    # Boosting has at most 255 categories of a column; the positions of more are numbers to it. It holds no rows out
    # for early stopping, as a class of one row cannot be divided.
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan, encoded_missing_value=np.nan)
    columns = make_column_transformer((codes, _columns_of_many_levels), ("passthrough", _other_columns))
    boosting = HistGradientBoostingClassifier(categorical_features="from_dtype", early_stopping=False)
    return {
        "boosting": make_pipeline(columns.set_output(transform="pandas"), boosting),
        "forest": mixed(RandomForestClassifier()),
        "logistic": mixed(LogisticRegression(max_iter=1_000)),
    }


def _columns_of_many_levels(X: Any) -> list[str]:
    """Return the names of the categorical columns of more categories than boosting takes."""
    levels = X.select_dtypes("category")
    return [name for name in levels if len(levels[name].cat.categories) > _MOST_CATEGORIES]


def _other_columns(X: Any) -> list[str]:
    """Return the names of the other columns, without columns all of whose cells are missing."""
    return [name for name in X.columns[X.notna().any()] if name not in _columns_of_many_levels(X)]


# == Fits of experts to halves of the rows, and to all rows ========================================


def _fit_expert(
    where: str, expert: object, rows: tuple[object, np.ndarray, np.ndarray | None], others: object, n_classes: int
) -> tuple[object, np.ndarray | None, list[tuple[Any, str]]]:
    """Fit a copy of an expert to (X, label, weight), and score `others`; return both, and (category, text) of warnings.

    Weights are None if all are 1. Raises RuntimeError with `where` if the expert fails.
    """
    X, label, weight = rows
    steps = getattr(expert, "steps", None)
    prefix, last = ("", expert) if steps is None else (f"{steps[-1][0]}__", steps[-1][1])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        options = {}
        if weight is not None and has_fit_parameter(last, "sample_weight"):
            options[f"{prefix}sample_weight"] = weight
        elif weight is not None:
            warnings.warn("takes no sample_weight, so that all rows count once", stacklevel=1)
        try:
            # Threads of a small fit wait for each other for longer than they work, most of all on busy cores.
            with threadpool_limits(1 if len(label) < _MANY_ROWS else None):
                fitted = clone(expert).fit(X, label, **options)
                proba = None if others is None else class_probabilities(fitted, others, n_classes)
        except Exception as error:
            raise RuntimeError(f"{where}: {type(error).__name__}: {error}") from error
    return fitted, proba, [(c.category, str(c.message)) for c in caught]


def cross_fit_experts(
    experts: Mapping[str, object], parts: Any, crossed: CrossFit, exponent: float, n_jobs: int | None
) -> tuple[ExpertColumns, CrossFit]:
    """Fit experts to all rows and to the halves of a cross-fit; return the former, and the cross-fit with their terms.

    Parameters
    ----------
    experts : dict {name: classifier}
        Classifiers to copy.
    parts : bayesnb.estimators.classifier_state.Parts
        Encoded rows.
    crossed : CrossFit
        Terms of the rows.
    exponent : float
        Exponent β of the length of rows of counts, which the terms that are returned include.
    n_jobs : int or None
        Number of fits at a time, as in scikit-learn.

    Raises
    ------
    RuntimeError
        If an expert fails; the message names the expert and the half.
    ValueError
        If there are more than 500 terms, or the classifier is an average of models.
    """
    from sklearn.utils.parallel import Parallel, delayed

    if crossed.columns.averaged or len(crossed.columns.names) > MOST_TERMS:
        allowed = f"take part beside the terms of a single model, at most {MOST_TERMS}"
        what = "is an average of models" if crossed.columns.averaged else f"has {len(crossed.columns.names):,} terms"
        raise ValueError(f"experts {allowed}. The classifier {what}. Pass another estimator, or no experts.")
    encoding, (label, weight), log_class = parts.known.fitted_.encoding, parts.batch[3:5], parts.log_class
    X, n_classes = rows_of_experts(encoding.blocks, parts.batch.table), len(crossed.classes)
    scored = np.isin(np.arange(len(label)), crossed.position)
    # Fit k of a cross-fit is to the half that does not score the rows of fit k.
    sides = [side for half in crossed.halves for side in (half, ~half)]
    tasks = []
    for k, counted in enumerate([*sides, np.ones(len(label), bool)]):
        is_half = k < len(sides)
        place = f"half {k + 1} of {len(sides)}" if is_half else "all rows"
        rows = _take(X, counted), label[counted], None if (weight == 1).all() else weight[counted]
        others = _take(X, scored & ~counted) if is_half else None
        tasks += [(f"expert {shown(name)}, in the fit to {place}", e, rows, others) for name, e in experts.items()]
    fits = []
    with progress("experts", len(tasks)) as tick:
        for fit in Parallel(n_jobs, return_as="generator")(delayed(_fit_expert)(*task, n_classes) for task in tasks):
            fits.append(fit)
            tick()
    first = dict[tuple[int, str], tuple[str, Any]]()  # the first of the fits in which an expert gave a warning
    for i, (where, *_) in enumerate(tasks):
        for category, text in fits[i][2]:
            first.setdefault((i % len(experts), text), (f"{where}: {text}", category))
    for text, category in first.values():
        warn(text, category)
    *of_halves, of_all = (fits[i : i + len(experts)] for i in range(0, len(fits), len(experts)))
    log_proba = np.empty((n_classes, len(crossed.terms.label), len(experts)))
    for k, of_half in enumerate(of_halves):
        log_proba[:, crossed.terms.fit == k] = np.log([proba for _, proba, _ in of_half]).transpose(2, 1, 0)
    fitted = {name: expert for name, (expert, *_) in zip(experts, of_all, strict=True)}
    columns = ExpertColumns((), (), encoding.n_features, fitted, encoding.blocks, log_class)
    return columns, crossed.with_experts(tuple(experts), log_proba, exponent)


def _take(X: Any, mask: np.ndarray) -> Any:
    """Return the rows of a DataFrame or a sparse matrix where `mask` (N,) is true."""
    return X.iloc[np.flatnonzero(mask)] if hasattr(X, "iloc") else X[np.flatnonzero(mask)]


# == Gain by experts, and weights under which scores with and without experts are averaged =========


@dataclass(frozen=True)
class Gain:
    """Fall of the expected log loss of a new row by experts, in nats: whether naive Bayes is enough.

    Attributes
    ----------
    gain : float
        Mean over rows of the loss without minus the loss with experts, each by fits to halves that lack the row.
    lower, upper : float
        Ends of its 90% interval over rows: `gain` ± 1.645 standard errors.
    share : float
        Share ω of the scores with experts in the predictions.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesnb import GaussianNB, WeightedNB
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = np.random.default_rng(0).standard_normal((400, 2))
    >>> y = X[:, 0] * X[:, 1] > 0  # no column tells anything alone
    >>> nb = WeightedNB(GaussianNB(), experts=[("tree", DecisionTreeClassifier(max_depth=4, random_state=0))]).fit(X, y)
    >>> nb.gain_.lower > 0.2
    True
    """

    gain: float
    lower: float
    upper: float
    share: float

    def __str__(self) -> str:
        verdict = "gain" if self.lower > 0 else "lose" if self.upper < 0 else "gain nothing certain:"
        interval = f"90% interval {self.lower:.3g} to {self.upper:.3g}"
        return f"Experts {verdict} {self.gain:.3g} nats a row, {interval}, with {self.share:.0%} of the score"


@dataclass(frozen=True, eq=False)
class ExpertWeights(Weights):
    """Weights of the terms of a classifier and, as the last ones, of experts: averages of weights without and with.

    Attributes
    ----------
    without, together : Weights
        Weights without experts, and those of all terms.
    gain : Gain
        Gain by the experts, with their share ω.
    """

    without: Weights = field(kw_only=True)
    together: Weights = field(kw_only=True)
    gain: Gain = field(kw_only=True)

    @classmethod
    def average(cls, without: Weights, together: Weights, gain: Gain) -> ExpertWeights:
        """Average weights without experts and weights of all terms, (1 - ω) w_without + ω w_together."""
        n_experts = len(together.names) - len(without.names)
        typical, pool = np.append(without.typical, np.ones(n_experts)), partial(_pool, gain.share)
        averaged = ("class_bias", "temperature", "dependence_temperature", "log_loss")
        return cls(
            **{name: pool(getattr(without, name), getattr(together, name)) for name in averaged},
            **{name: getattr(without, name) for name in ("exponent", "log_length", "plain_log_loss")},
            **{name: getattr(together, name) for name in ("names", "dependence", "shrinkage", "dependence_shrinkage")},
            classes=without.classes,
            n_rows=without.n_rows,
            weight=pool(np.append(without.weight, np.zeros(n_experts)), together.weight / typical),
            of_draws=np.append(without.of_draws, np.zeros(n_experts, bool)),
            without=without,
            together=together,
            gain=gain,
        )

    @property
    def has_posterior(self) -> bool:
        """Return True: weights without and with experts have posteriors."""
        return True

    def draw(self, n: int, seed: int) -> WeightDraws:
        """Draw biases and weights n times, from the posteriors without and with experts, and average the draws.

        Deviations from the average weights are larger by 1/√(ω² + (1 - ω)²), as the two depend on the same rows.
        """
        first, second = self.without.draw(n, seed), self.together.draw(n, seed + _OTHER_SEED)
        share, n_experts = self.gain.share, len(self.names) - len(self.without.names)
        scale, pool = 1 / np.hypot(share, 1 - share), partial(_pool, share)
        weight, center = np.hstack([first.weight, np.zeros((n, n_experts))]), self.weight * self.typical
        return WeightDraws(
            self,
            self.class_bias + scale * (pool(first.class_bias, second.class_bias) - self.class_bias),
            center + scale * (pool(weight, second.weight) - center),
            scale * pool(first.log_share, second.log_share),
        )

    def __repr__(self) -> str:
        return f"{super().__repr__()}, {len(self.names) - len(self.without.names)} of them experts. {self.gain}"


def _pool(share: float, without: Any, together: Any) -> Any:
    """Average values without and with experts, whose share is ω."""
    return (1 - share) * without + share * together


def pool_experts(crossed: CrossFit, without: Weights, losses: np.ndarray, seed: int) -> ExpertWeights:
    """Fit weights with experts, and average the scores with and without them, (1 - ω) s_without + ω s_with.

    ω is the posterior probability of the scores with experts, under prior odds of 1 to 10, by held-out losses L of
    rows. It is averaged over Bayesian bootstrap samples r ~ Dirichlet(1) of the N rows: with prior probabilities p,
    ω = E softmax(log p - N Σ_i r_i L_i). The loss of the average is not above the average of the losses (Hölder),
    which is its `log_loss`.

    Parameters
    ----------
    crossed : CrossFit
        Terms with those of experts as the last ones.
    without : Weights
        Weights of the other terms, without experts.
    losses : (N,) array
        Expected log loss of each row without experts.
    seed : int
        Seed of the bootstrap samples.

    References
    ----------
    Yao, Vehtari, Simpson & Gelman, *Using stacking to average Bayesian predictive distributions*, Bayesian Analysis 13
    (2018), section 3.4, for the weights of models, "pseudo-BMA+".
    """
    fitted, with_losses = weigh_cross_fit(crossed)
    fall, row_weight = losses - with_losses, crossed.row_weight
    mean, variance = mean_of_units(fall[:, None], row_weight, crossed.unit)
    of_unit = np.bincount(crossed.unit, row_weight * fall)
    sample = np.random.default_rng([seed, 5]).dirichlet(np.ones(len(of_unit)), _DRAWS)
    share = float(expit(len(of_unit) * sample @ of_unit - np.log(PRIOR_ODDS)).mean())
    half = float(ndtri((1 + _PROB) / 2) * np.sqrt(variance[0]))
    gain = Gain(float(mean[0]), float(mean[0]) - half, float(mean[0]) + half, share)
    return ExpertWeights.average(without, add_posterior(crossed, fitted), gain)
