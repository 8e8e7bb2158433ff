"""Classifiers after scikit-learn's conventions: thin shells around one posterior."""

from bayesnb.estimators.averaged import FeatureAveragedNB
from bayesnb.estimators.discrete import BernoulliNB, CategoricalNB, MultinomialNB
from bayesnb.estimators.mixed import MixedNB
from bayesnb.estimators.real import GaussianNB, PoissonNB

__all__ = [
    "BernoulliNB",
    "CategoricalNB",
    "FeatureAveragedNB",
    "GaussianNB",
    "MixedNB",
    "MultinomialNB",
    "PoissonNB",
]
