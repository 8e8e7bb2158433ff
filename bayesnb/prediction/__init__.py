"""Predictions one can believe: what exact leave-one-out makes of class probabilities."""

from bayesnb.prediction.prevalence import Prevalence, estimate_prevalence
from bayesnb.prediction.terms import Terms, loo_terms, terms
from bayesnb.prediction.weighting import Weights

__all__ = ["Prevalence", "Terms", "Weights", "estimate_prevalence", "loo_terms", "terms"]
