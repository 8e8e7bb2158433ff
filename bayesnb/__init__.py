"""Bayesian naive Bayes: a model is a prior, counting data gives its posterior, all else is a function of it."""

from bayesnb import datasets
from bayesnb.estimators import BernoulliNB, CategoricalNB, GaussianNB, MixedNB, MultinomialNB, PoissonNB
from bayesnb.evaluation import compare_estimates
from bayesnb.families import Dirichlet, GammaPoisson, NormalInverseGamma
from bayesnb.model import NaiveBayes
from bayesnb.uncertainty import (
    ImproperPosteriorError,
    decompose_uncertainty,
    log_odds_moments,
    parameter_table,
    posterior_draws,
    predict_interval,
)

__version__ = "0.1.0"

__all__ = [
    "BernoulliNB",
    "CategoricalNB",
    "Dirichlet",
    "GammaPoisson",
    "GaussianNB",
    "ImproperPosteriorError",
    "MixedNB",
    "MultinomialNB",
    "NaiveBayes",
    "NormalInverseGamma",
    "PoissonNB",
    "compare_estimates",
    "datasets",
    "decompose_uncertainty",
    "log_odds_moments",
    "parameter_table",
    "posterior_draws",
    "predict_interval",
]
