"""One small fitted classifier of each kind, with rows to predict."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bayesnb as bnb
from bayesnb.datasets import load_watermelon

FIXTURES = Path(__file__).parents[1] / "fixtures"
RNG = np.random.default_rng(0)
LEVELS = RNG.integers(0, 4, (40, 3))
NUMBERS = RNG.normal(size=(40, 3))
LABELS = RNG.choice(["ash", "elm", "oak"], 40)
WEIGHT = RNG.choice([0.5, 1.0, 3.0], 40)
MELONS = load_watermelon()


def strange() -> np.ndarray:
    """Levels of several types, and missing cells."""
    X = LEVELS.astype(object)
    X[X == 0], X[X == 1], X[X == 2] = 0.5, None, "é 瓜"
    return X


def fitted(name: str) -> tuple[Any, Any]:
    """The classifier, and rows."""
    make, X = MODELS[name]
    nb = make()
    if isinstance(nb, bnb.NaiveBayesMixture):
        return nb.fit(X), X
    y = MELONS.target if X is MELONS.data else LABELS
    return nb.fit(X, y, sample_weight=None if X is MELONS.data else WEIGHT), X


def semi_supervised() -> Any:
    """Fit by EM; rows 20 … 39 have no label, whatever labels are given."""

    class Fitted:
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            return bnb.fit_em(bnb.GaussianNB(), X[:20], y[:20], X[20:]).estimator

    return Fitted()


PRIOR = bnb.NormalInverseGamma(0.0, 0.1, 1.0, np.array([1.0, 2.0, 3.0]))
MODELS: dict[str, tuple[Any, Any]] = {
    "categorical": (lambda: bnb.CategoricalNB(alpha=np.array([0.5, 1.0, 2.0])), strange()),
    "reserved level": (lambda: bnb.CategoricalNB(handle_unknown="level", categories={0: range(6)}), LEVELS),
    "improper": (lambda: bnb.CategoricalNB(alpha=0, class_prior=[0.2, 0.3, 0.5]), LEVELS),
    "Bernoulli": (lambda: bnb.BernoulliNB(binarize=1), LEVELS),
    "multinomial": (lambda: bnb.MultinomialNB(alpha=0.1), LEVELS),
    "Gaussian": (lambda: bnb.GaussianNB(prior="within"), NUMBERS),
    "Gaussian, own prior": (lambda: bnb.GaussianNB(prior=PRIOR), NUMBERS),
    "Poisson": (lambda: bnb.PoissonNB(estimate="mean"), LEVELS),
    "negative binomial": (lambda: bnb.NegativeBinomialNB(dispersion=[0.5, 2.0, 8.0]), LEVELS),
    "exponential": (lambda: bnb.ExponentialNB(estimate="map"), LEVELS),
    "binned": (lambda: bnb.BinnedNB(cells=4), NUMBERS),
    "TAN of numbers": (lambda: bnb.TAN(numbers="binned", cells=4), NUMBERS),
    "mixed": (lambda: bnb.MixedNB(categories={"色泽": ["乌黑", "浅白", "青绿", "红"]}), MELONS.data),
    "TAN": (bnb.TAN, MELONS.data),
    "TAN by evidence": (lambda: bnb.TAN("evidence", root=1), LEVELS),
    "SPODE": (lambda: bnb.SPODE(2), LEVELS),
    "network": (lambda: bnb.NetworkNB({0: [1, 2], 1: 2}), LEVELS),
    "AODE": (lambda: bnb.AODE(class_alpha="levels"), LEVELS),
    "averaged": (lambda: bnb.FeatureAveragedNB(bnb.MixedNB(), inclusion=0.3), MELONS.data),
    "mixture": (lambda: bnb.NaiveBayesMixture(2, estimator=bnb.GaussianNB(), n_init=1), NUMBERS),
    "EM": (semi_supervised, NUMBERS),
    "frame": (bnb.CategoricalNB, pd.DataFrame(LEVELS, columns=["a", "b", "c"])),
    "trees": (lambda: bnb.TreeAveragedNB(0.5), strange()),
    "contexts": (lambda: bnb.NetworkNB({0: [1, 2], 1: 2}, tables="context"), strange()),
    "KDB": (lambda: bnb.KDB(2, 2), strange()),
    "weighted": (lambda: bnb.WeightedNB(bnb.GaussianNB(), "feature"), NUMBERS),
}
