"""Bayesian naive Bayes: a model is a prior, counting data gives its posterior, all else is a function of it."""

from bayesnb.estimators import BernoulliNB, CategoricalNB, GaussianNB, MixedNB, MultinomialNB, PoissonNB
from bayesnb.families import Dirichlet, GammaPoisson, NormalInverseGamma
from bayesnb.model import NaiveBayes

__version__ = "0.1.0"

__all__ = [
    "BernoulliNB",
    "CategoricalNB",
    "Dirichlet",
    "GammaPoisson",
    "GaussianNB",
    "MixedNB",
    "MultinomialNB",
    "NaiveBayes",
    "NormalInverseGamma",
    "PoissonNB",
]
