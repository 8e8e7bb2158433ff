"""Classifiers after scikit-learn's conventions: thin shells around one posterior."""

from bayesnb.estimators.aode import AODE
from bayesnb.estimators.averaged import FeatureAveragedNB
from bayesnb.estimators.discrete import BernoulliNB, CategoricalNB, MultinomialNB
from bayesnb.estimators.mixed import MixedNB
from bayesnb.estimators.mixture import NaiveBayesMixture
from bayesnb.estimators.polya import PolyaNB
from bayesnb.estimators.real import ExponentialNB, GaussianNB, PoissonNB
from bayesnb.estimators.structures import SPODE, TAN, NetworkNB

__all__ = [
    "AODE",
    "SPODE",
    "TAN",
    "BernoulliNB",
    "CategoricalNB",
    "ExponentialNB",
    "FeatureAveragedNB",
    "GaussianNB",
    "MixedNB",
    "MultinomialNB",
    "NaiveBayesMixture",
    "NetworkNB",
    "PoissonNB",
    "PolyaNB",
]
