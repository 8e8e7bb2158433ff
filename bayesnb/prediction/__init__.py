"""Predictions one can believe: what exact leave-one-out makes of class probabilities."""

from bayesnb.prediction.terms import Terms, loo_terms, terms
from bayesnb.prediction.weighting import Weights

__all__ = ["Terms", "Weights", "loo_terms", "terms"]
