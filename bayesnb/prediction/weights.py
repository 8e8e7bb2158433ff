"""Weights of the terms of a classifier, the evidence for them, and draws of them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Protocol

import numpy as np

from bayesnb import kernels
from bayesnb._util.arguments import GREATEST, shown
from bayesnb.encoding import Encoding, Levels
from bayesnb.fitted import scoring
from bayesnb.fitted.counting import require_numbers
from bayesnb.fitted.state import Classifier, Fitted, require_fitted, score_new_rows
from bayesnb.kernels import Output
from bayesnb.model import Estimate, TermWeights
from bayesnb.prediction.terms import AVERAGE
from bayesnb.uncertainty.given_draws import read_sites, require_sites

CLASS_BIAS, WEIGHT = "class_bias", "weight"
TEMPERATURES = "temperature", "dependence_temperature"
_NUMBERS = (
    "temperature", "shrinkage", "exponent", "log_length", "log_loss", "plain_log_loss",
    "dependence_temperature", "dependence_shrinkage",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class WeightPath:
    """Weights of terms under each τ that was compared.

    Attributes
    ----------
    log_evidence : (K,) array
        Laplace's evidence for each τ.
    shrinkage : (K, G) array
        τ of each group of terms: of margins, and of dependences if there are any.
    temperature, temperature_sd : (K, G) arrays
        Temperatures T of each group, and their posterior standard deviations.
    weight, sd : (K, T) arrays
        Weights T + τ d of rows of typical length, and their posterior standard deviations.
    """

    shrinkage: np.ndarray
    log_evidence: np.ndarray
    temperature: np.ndarray
    temperature_sd: np.ndarray
    weight: np.ndarray
    sd: np.ndarray

    def __post_init__(self) -> None:
        for name in ("shrinkage", "temperature", "temperature_sd"):
            if np.ndim(values := getattr(self, name)) == 1:  # in files of versions that had one group
                object.__setattr__(self, name, values[:, None])

    def check(self, n_terms: int, has_dependence: bool) -> None:
        """Raise ValueError unless the arrays have consistent shapes and no standard deviation is negative."""
        n, n_groups = np.size(self.log_evidence), 1 + has_dependence
        shapes = {"log_evidence": (n,), "weight": (n, n_terms), "sd": (n, n_terms)}
        for name in (each.name for each in fields(self)):
            require_numbers(f"weights_.path.{name}", getattr(self, name), shapes.get(name, (n, n_groups)))
        if n == 0 or (self.sd < 0).any() or (self.temperature_sd < 0).any():
            raise ValueError("weights_.path must have at least one shrinkage τ, and no negative standard deviation.")

    def probability(self) -> np.ndarray:
        """Return (K,) posterior probabilities of the K values of τ, under equal prior probabilities."""
        odds = np.exp(self.log_evidence - self.log_evidence.max())
        return np.asarray(odds / odds.sum())


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of the terms of a classifier, and the bias of its classes.

    Attributes
    ----------
    names : tuple of str
        Name of each term: a column, a dependence of a column on its parents, or a member of an average.
    weight : (T,) array
        Weight of each term.
    classes : Levels
        Classes of `class_bias`.
    class_bias : (C,) array
        Bias of each class, in nats.
    temperature : float
        Common mean of the weights of margins, or of all terms where none is a dependence.
    shrinkage : float
        τ: how far these weights may be from the temperature; 0 is temperature scaling.
    of_draws : (T,) array of bool
        Whether a term is of word counts: the weight is then `weight` · (t + 1)^-`exponent` for a row of t words.
    exponent : float
        Exponent β of the length.
    log_length : float
        Mean of log(t + 1) over the rows that the weights were fitted to; 0 without such terms.
    n_rows : int
        Number of rows that the weights were fitted to.
    log_loss, plain_log_loss : float
        Expected log loss of new rows, in nats: with the weights, corrected for overfitting, and without weights. Both
        come from fits to half of the rows, and are therefore rather too high.
    path : WeightPath or None
        The weights under each τ that was compared; None in files of older versions.
    dependence : (T,) array of bool
        Whether a term is the dependence of a column on its parents; default: none.
    dependence_temperature, dependence_shrinkage : float
        Temperature and τ of the dependences.

    Examples
    --------
    Weights that were fitted on other rows:

    >>> from bayesnb import GaussianNB, WeightedNB
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> weights = WeightedNB(GaussianNB()).fit(X[::2], y[::2]).weights_
    >>> weights
    Weights(4 terms around 0.679, by halves of 75 rows)
    >>> WeightedNB(GaussianNB(), weights=weights).fit(X[1::2], y[1::2]).weights_ is weights
    True
    """

    names: tuple[str, ...]
    weight: np.ndarray
    classes: Levels
    class_bias: np.ndarray
    temperature: float
    shrinkage: float
    of_draws: np.ndarray
    exponent: float
    log_length: float
    n_rows: int
    log_loss: float
    plain_log_loss: float
    path: WeightPath | None = None
    dependence: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))
    dependence_temperature: float = 0.0
    dependence_shrinkage: float = 0.0

    def __post_init__(self) -> None:
        if not len(self.dependence):
            object.__setattr__(self, "dependence", np.zeros(len(self.names), bool))

    def __repr__(self) -> str:
        n = len(self.names)
        return f"Weights({n} term{'s' * (n != 1)} around {self.temperature:.3g}, by halves of {self.n_rows} rows)"

    def check(self) -> None:
        """Raise ValueError unless the numbers and the shapes of all arrays agree with the names and classes."""
        self.classes.check()
        n_terms = len(self.names)
        require_numbers("weights_.weight", self.weight, (n_terms,))
        require_numbers("weights_.class_bias", self.class_bias, (len(self.classes),))
        for name in ("of_draws", "dependence"):
            if (mask := getattr(self, name)).dtype != bool or mask.shape != (n_terms,):
                kind = f"{mask.dtype} {mask.shape}"
                raise ValueError(f"weights_.{name} must be bool of shape ({n_terms},); it is {kind}.")
        for name in _NUMBERS:
            require_numbers(f"weights_.{name}", np.float64(getattr(self, name)), ())
        for name in ("weight", "class_bias", *_NUMBERS):
            if (np.abs(getattr(self, name)) > GREATEST).any():
                raise ValueError(f"weights_.{name} must have values between -{GREATEST:g} and {GREATEST:g}.")
        if self.path is not None:
            self.path.check(n_terms, bool(self.dependence.any()))

    @property
    def biased(self) -> bool:
        """Whether classes have a bias, or `shrinkage` is above 0, so that weights may differ from the temperature."""
        return bool(self.shrinkage) or bool(self.class_bias.any())

    @property
    def typical(self) -> np.ndarray:
        """(T,) factor that makes `weight` the weight T + τ d of a row of typical length, e^`log_length` - 1 draws.

        It is e^(-`exponent` · `log_length`) for terms of count rows, and 1 for others.
        """
        return np.where(self.of_draws, np.exp(-self.exponent * self.log_length), 1.0)

    def align_bias(self, classes: Levels, bias: np.ndarray) -> np.ndarray:
        """Return biases (…, C') of the given classes from `bias` (…, C) of the weights' classes; 0 of new classes.

        Raises
        ------
        ValueError
            If the weights have biases, and all of the given classes are new.
        """
        position = self.classes.index(classes.values)
        if self.class_bias.any() and (position < 0).all():
            fitted, present = (shown(list(levels.values)[:8]) for levels in (self.classes, classes))
            raise ValueError(
                f"weights were fitted for the classes {fitted}, none of which the classifier has; its classes are "
                f"{present}. Pass weights for the same labels; 1 and '1' are different labels."
            )
        return np.where(position < 0, 0.0, bias[..., np.maximum(position, 0)])

    def to_term_weights(self, fitted: Fitted) -> TermWeights:
        """Return the `TermWeights` for the model of a classifier; classes that these weights do not know have bias 0.

        Raises
        ------
        ValueError
            If the classifier has other terms.
        """
        encoding, is_average = fitted.encoding, fitted.member_names is not None
        names = self.names if is_average and self.names == (AVERAGE,) else fitted.term_names
        if names != self.names:
            different = [shown(a) for a, b in zip(names, self.names, strict=False) if a != b]
            first = f", and the first different term is {different[0]}" if different else ""
            raise ValueError(
                f"weights were fitted for {len(self.names)} terms, {self.names[:6]}, but the terms of the classifier "
                f"differ: it has {len(names)} term{'s' * (len(names) != 1)}{first}. Pass weights for the same columns "
                "and structure."
            )
        bias = self.align_bias(encoding.classes, self.class_bias)
        if is_average:
            return TermWeights(bias, (self.weight if names != (AVERAGE,) else self.weight[0],), (None,))
        return self.split(encoding, bias, encoding.term_map.spread(self.weight))

    def split(self, encoding: Encoding, bias: np.ndarray, weight: np.ndarray) -> TermWeights:
        """Return `TermWeights` of class biases (C,) and of the weights (R,) of an encoding's terms, split by block."""
        sizes = [len(columns.term_names) for columns in encoding.blocks]
        exponents = [self.exponent if columns.one_simplex else None for columns in encoding.blocks]
        return TermWeights.split(bias, weight, sizes, exponents)


@dataclass(frozen=True, eq=False)
class WeightDraws:
    """S draws of the weights of terms.

    Parameters
    ----------
    weights : Weights
        Weights that were fitted, with the names of terms and classes.
    class_bias : (S, C) array
        Draws of the biases.
    weight : (S, T) array
        Draws of T + τ d: weights of a row of typical length, where rows are several draws from one simplex.
    """

    weights: Weights
    class_bias: np.ndarray
    weight: np.ndarray

    def score(
        self, fitted: Fitted, X: object, output: Output, estimate: Estimate | None = None, class_prior: object = None
    ) -> np.ndarray:
        """Apply `output` to log P(class | row) (N, C), averaged over the draws of the weights, for the rows of X.

        P(c | x) = 1/S Σ_s softmax(b_s + log π + Σ_t w_st ℓ_t(x))_c.
        """
        encoding, bias = fitted.encoding, self.weights.align_bias(fitted.encoding.classes, self.class_bias)
        is_common = (self.weight == self.weight[:, :1]).all()
        weight = self.weight[:, :1] if is_common else self.weight
        (rows, n), log_class = fitted.encode(X), fitted.log_class(estimate, class_prior)
        average = partial(scoring.average_over_weights, log_class=log_class, bias=bias, output=output)
        if fitted.member_names is not None:
            joint = fitted.score_models(rows, n, score_new_rows(estimate, class_prior))
            return average((), n, lambda _, terms: terms, joint - log_class[:, None], weight=weight)
        of_draws = np.repeat([b.one_simplex for b in encoding.blocks], [len(b.term_names) for b in encoding.blocks])
        typical = np.where(of_draws, 1 / self.weights.typical.min(), 1)
        units = self.weights.split(encoding, np.zeros(len(encoding.classes)), typical)
        if not encoding.term_map.is_identity:
            weight = encoding.term_map.spread(self.weight)
        model, reading = fitted.read(estimate, class_prior)
        likelihood = scoring.read(encoding, replace(model, weights=units), reading)
        terms = kernels.terms if weight.shape[1] > 1 else kernels.sum_of_terms
        return average(rows, n, partial(terms, likelihood), weight=weight)


def read_weight_draws(weights: Weights, draws: object) -> WeightDraws | None:
    """Read draws of weights, chains one after the other; None if the draws are of parameters.

    Parameters
    ----------
    weights : Weights
        Weights that were fitted.
    draws : ArviZ data or dict
        Draws by `run_nuts` of a `WeightedNB`, or a dict of its sites "class_bias" (S, C) and "weight" (S, T).

    Raises
    ------
    ValueError
        If the draws are of other terms or classes.
    """
    sites = read_sites(draws)
    if WEIGHT not in sites:
        return None
    shapes = {CLASS_BIAS: (len(weights.classes),), WEIGHT: (len(weights.names),)}
    values = require_sites(sites, shapes)
    return WeightDraws(weights, values[CLASS_BIAS], values[WEIGHT])


class Weighed(Classifier, Protocol):
    """Classifier whose terms are weighted, around a classifier without weights."""

    weights_: Weights
    weight_: np.ndarray
    term_names_: tuple[str, ...]
    max_rows: int
    seed: int
    model_: Classifier
    """Fitted classifier whose terms are weighted; columns with parents have a margin and a dependence."""
    estimator_: Classifier
    """Fitted classifier without weights."""


def require_weights(nb: Classifier, who: str) -> Weights:
    """Return the weights of a `WeightedNB`; `who` is the name of the caller, for messages.

    Raises
    ------
    NotFittedError
        If `nb` is not fitted.
    ValueError
        If `nb` is not a `WeightedNB`, or has no weights yet.
    """
    require_fitted(nb, who)
    if not hasattr(nb, "weigh"):
        raise ValueError(f"{who}: {type(nb).__name__} has no weights of terms; pass a fitted WeightedNB.")
    if (weights := getattr(nb, "weights_", None)) is None:
        raise ValueError(
            f"{who}: all weights of this {type(nb).__name__} are 1, because none were fitted: partial_fit and "
            "fit_stream fit none, and fit needs enough rows. Call nb.weigh(X, y) with rows that were counted."
        )
    return weights
