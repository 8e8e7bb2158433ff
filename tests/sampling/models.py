"""One fitted classifier of each kind, and of each kind of column, on small tables with missing cells and weights."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import bayesnb as bnb

N = 48
RNG = np.random.default_rng(11)
Y = np.array(["ash", "elm", "oak"])[RNG.permutation(N) % 3]
GROUP = np.array(["north", "south"])[RNG.integers(0, 2, N)]
WEIGHT = 1.0 + np.arange(N) % 2
_CODE = (Y == "elm") + 2.0 * (Y == "oak")
LEVELS = pd.DataFrame(
    {
        "leaf": np.array(["long", "round", "lobed"], dtype=object)[((_CODE + RNG.integers(0, 2, N)) % 3).astype(int)],
        "bark": np.array(["rough", "smooth"], dtype=object)[RNG.integers(0, 2, N)],
        "bud": np.array(["black", "brown", "green"], dtype=object)[RNG.integers(0, 3, N)],
    }
)
NUMBERS = pd.DataFrame(RNG.normal(_CODE[:, None], 1.0, (N, 2)), columns=["height", "girth"])
COUNTS = pd.DataFrame(RNG.poisson(1.0 + _CODE[:, None], (N, 3)), columns=["seeds", "galls", "nests"]).astype(float)
GAPS = LEVELS.mask(RNG.random(LEVELS.shape) < 0.06, None)
HOLES = NUMBERS.mask(RNG.random(NUMBERS.shape) < 0.06)
MIXED = pd.concat([GAPS, HOLES, COUNTS], axis=1)
TABLE = pd.concat([GAPS, HOLES], axis=1)
NETWORK = {"bark": "leaf", "bud": ("leaf", "bark")}

MODELS: dict[str, tuple[Callable[[], Any], Any]] = {
    "CategoricalNB": (bnb.CategoricalNB, GAPS),
    "CategoricalNB, known classes": (lambda: bnb.CategoricalNB(class_prior=[0.2, 0.3, 0.5]), GAPS),
    "BernoulliNB": (lambda: bnb.BernoulliNB(binarize=1.0), COUNTS),
    "MultinomialNB": (bnb.MultinomialNB, COUNTS),
    "GaussianNB": (bnb.GaussianNB, HOLES),
    "PoissonNB": (bnb.PoissonNB, COUNTS),
    "NegativeBinomialNB": (bnb.NegativeBinomialNB, COUNTS),
    "NegativeBinomialNB, known": (lambda: bnb.NegativeBinomialNB(dispersion=[0.5, 1.0, 4.0]), COUNTS),
    "ExponentialNB": (bnb.ExponentialNB, COUNTS + 0.5),
    "BinnedNB": (bnb.BinnedNB, HOLES),
    "MixedNB": (bnb.MixedNB, TABLE),
    "MixedNB, binned": (lambda: bnb.MixedNB(numbers="binned"), TABLE),
    "MixedNB, counts": (
        lambda: bnb.MixedNB(
            numbers="gaussian",
            poisson=["seeds"],
            exponential=["galls"],
            bernoulli=["nests"],
            class_prior=[0.2, 0.3, 0.5],
        ),
        MIXED,
    ),
    "FeatureAveragedNB, levels": (lambda: bnb.FeatureAveragedNB(bnb.CategoricalNB()), GAPS),
    "FeatureAveragedNB, numbers": (lambda: bnb.FeatureAveragedNB(bnb.MixedNB(numbers="gaussian")), TABLE),
    "TAN": (bnb.TAN, TABLE),
    "TAN, binned": (lambda: bnb.TAN(numbers="binned"), TABLE),
    "TAN, contexts": (lambda: bnb.TAN(tables="context"), TABLE),
    "SPODE": (lambda: bnb.SPODE("leaf"), TABLE),
    "NetworkNB": (lambda: bnb.NetworkNB(NETWORK), GAPS),
    "KDB": (bnb.KDB, TABLE),
    "TreeAveragedNB": (bnb.TreeAveragedNB, pd.concat([LEVELS, NUMBERS], axis=1)),
}
"""By name: constructor, and table of the kind that the classifier is for; all have one posterior."""

POOLED = (
    "CategoricalNB",
    "CategoricalNB, known classes",
    "BernoulliNB",
    "MultinomialNB",
    "GaussianNB",
    "PoissonNB",
    "NegativeBinomialNB",
    "NegativeBinomialNB, known",
    "ExponentialNB",
    "MixedNB",
    "MixedNB, counts",
    "TAN",
    "TAN, binned",
    "SPODE",
    "NetworkNB",
)
"""Models whose every column can be pooled by groups of rows; both densities that `MixedNB` chooses here are normal."""

WITHOUT_POSTERIOR: dict[str, tuple[Callable[[], Any], Any]] = {
    "AODE": (bnb.AODE, LEVELS),
    "NaiveBayesMixture": (lambda: bnb.NaiveBayesMixture(2, estimator=bnb.CategoricalNB()), LEVELS),
    "WeightedNB": (bnb.WeightedNB, TABLE),
    "WeightedNB, levels": (lambda: bnb.WeightedNB(bnb.CategoricalNB()), GAPS),
}


@cache
def fitted(name: str) -> tuple[Any, Any]:
    """Classifier fitted with weights, and its table."""
    make, X = {**MODELS, **WITHOUT_POSTERIOR}[name]
    nb = make()
    return nb.fit(X) if name == "NaiveBayesMixture" else nb.fit(X, Y, sample_weight=WEIGHT), X
