"""Calibrated sets of labels, explanations, prevalence and weights, from exact leave-one-out and cross-fitted terms."""

from bayesnb.prediction.conformal import Conformal, PredictionSets, conformal
from bayesnb.prediction.explanation import explain
from bayesnb.prediction.information_value import value_of_information
from bayesnb.prediction.prevalence import Prevalence, estimate_prevalence
from bayesnb.prediction.terms import Terms, loo_terms, terms
from bayesnb.prediction.weight_table import weight_table
from bayesnb.prediction.weights import Weights
from bayesnb.prediction.word_evidence import top_words

__all__ = [
    "Conformal",
    "PredictionSets",
    "Prevalence",
    "Terms",
    "Weights",
    "conformal",
    "estimate_prevalence",
    "explain",
    "loo_terms",
    "terms",
    "top_words",
    "value_of_information",
    "weight_table",
]
