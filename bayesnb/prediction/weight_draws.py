"""Draws of the weights of terms, and class probabilities averaged over them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesnb import scoring
from bayesnb.fitted import Fitted, Output
from bayesnb.model import Estimate
from bayesnb.prediction.weights import Weights
from bayesnb.uncertainty.given_draws import read_sites, require_sites

CLASS_BIAS, WEIGHT = "class_bias", "weight"
TEMPERATURES = "temperature", "dependence_temperature"


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
        """Apply `output` to (N, C) logarithms of the average of P(class | row) over the draws, for the rows of X.

        P(c | x) = 1/S Σ_s softmax(b_s + log π + Σ_t w_st ℓ_t(x))_c.
        """
        encoding, bias = fitted.encoding, self.weights.align_bias(fitted.encoding.classes, self.class_bias)
        is_common = (self.weight == self.weight[:, :1]).all()
        weight = self.weight[:, :1] if is_common else self.weight
        if fitted.average is not None:
            each = fitted.weights is not None and fitted.weights.has_members
            joint = fitted.score_members(X, estimate, class_prior, each=each)
            log_class = fitted.log_class(estimate, class_prior)
            values = joint.reshape(*joint.shape[:2], -1) - log_class[:, None]
            return scoring.average_of_terms(values, log_class, bias, weight, output)
        model, reading = fitted.read(estimate, class_prior)
        of_draws = np.repeat([b.one_simplex for b in encoding.blocks], [len(b.term_names) for b in encoding.blocks])
        typical = np.where(of_draws, 1 / self.weights.typical.min(), 1)
        units = self.weights.split(encoding, np.zeros(len(encoding.classes)), typical)
        if not encoding.term_map.is_identity:
            weight = encoding.term_map.spread(self.weight)
        rows, n = fitted.encode(X)
        model = replace(model, weights=units)
        return scoring.average_over_weights(encoding, model, rows, n, reading, bias, weight, output)


def read_weight_draws(weights: Weights, draws: Any) -> WeightDraws | None:
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
