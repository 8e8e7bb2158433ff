"""Classifiers after scikit-learn's conventions: thin shells around one posterior."""

from bayesnb.estimators.latent import NaiveBayesMixture
from bayesnb.estimators.mixed import FeatureAveragedNB, MixedNB
from bayesnb.estimators.plain import (
    BernoulliNB,
    BinnedNB,
    CategoricalNB,
    ExponentialNB,
    GaussianNB,
    MultinomialNB,
    NegativeBinomialNB,
    PoissonNB,
)
from bayesnb.estimators.structures import AODE, KDB, SPODE, TAN, NetworkNB, TreeAveragedNB
from bayesnb.estimators.weighted import WeightedNB

__all__ = [
    "AODE",
    "KDB",
    "SPODE",
    "TAN",
    "BernoulliNB",
    "BinnedNB",
    "CategoricalNB",
    "ExponentialNB",
    "FeatureAveragedNB",
    "GaussianNB",
    "MixedNB",
    "MultinomialNB",
    "NaiveBayesMixture",
    "NegativeBinomialNB",
    "NetworkNB",
    "PoissonNB",
    "TreeAveragedNB",
    "WeightedNB",
]
