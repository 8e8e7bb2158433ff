"""Classifiers after scikit-learn's conventions: thin shells around one posterior."""

from bayesnb.estimators.aode import AODE
from bayesnb.estimators.binned import BinnedNB
from bayesnb.estimators.discrete import BernoulliNB, CategoricalNB, MultinomialNB
from bayesnb.estimators.feature_averaged import FeatureAveragedNB
from bayesnb.estimators.kdb import KDB
from bayesnb.estimators.mixed import MixedNB
from bayesnb.estimators.mixture import NaiveBayesMixture
from bayesnb.estimators.networks import SPODE, NetworkNB
from bayesnb.estimators.numbers import ExponentialNB, GaussianNB, PoissonNB
from bayesnb.estimators.tan import TAN
from bayesnb.estimators.tree_averaged import TreeAveragedNB
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
    "NetworkNB",
    "PoissonNB",
    "TreeAveragedNB",
    "WeightedNB",
]
