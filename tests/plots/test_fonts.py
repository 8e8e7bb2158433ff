"""Figures draw names in any script, or warn if no installed font has the characters."""

import warnings

import pandas as pd
import pytest

pytest.importorskip("matplotlib")

import bayesnb as bnb
from bayesnb import plots
from bayesnb.datasets import load_watermelon
from bayesnb.evaluation import reliability
from bayesnb.plots import style
from tests.plots.figures import shown_texts

pytestmark = pytest.mark.slow("draws every figure")


def figures():
    """Every figure that shows names, of data whose names are Chinese."""
    melons = load_watermelon()
    X, y, levels = melons.data, melons.target, melons.data.iloc[:, :6]
    nb, mixed = bnb.CategoricalNB().fit(levels, y), bnb.MixedNB(binned=["密度"], gaussian=["含糖率"]).fit(X, y)
    bins = reliability(nb.predict_log_proba(levels), y, nb.classes_)
    network = bnb.NetworkNB({"色泽": ["根蒂", "脐部"]}, tables="context").fit(levels, y)
    latent = bnb.NaiveBayesMixture(2, estimator=bnb.CategoricalNB(), n_init=1).fit(levels)
    terms = pd.DataFrame({"term": list(levels), "weight": 0.5, "lower": 0.1, "upper": 0.9, "cost": 1.0})
    return {
        "forest": lambda: plots.forest(nb),
        "shrinkage": lambda: plots.shrinkage(nb),
        "prediction_intervals": lambda: plots.prediction_intervals(nb, levels, y, label="是"),
        "estimates": lambda: plots.estimates(nb),
        "prior_posterior": lambda: plots.prior_posterior(nb),
        "prior_predictive": lambda: plots.prior_predictive({"弱": [0.3], "强": [0.6]}),
        "density": lambda: plots.density(mixed, "密度", X, y),
        "explain": lambda: plots.explain(bnb.explain(nb, levels[:1])),
        "independence": lambda: plots.independence(bnb.check_independence(nb, levels, y, draws=2)),
        "predictive_check": lambda: plots.predictive_check(bnb.posterior_predictive_check(nb, levels, y, draws=9)),
        "latent_profiles": lambda: plots.latent_profiles(latent),
        "structure": lambda: plots.structure(network),
        "weights": lambda: plots.weights(terms),
        "reliability": lambda: plots.reliability({"朴素": bins, "加权": bins}),
    }


@pytest.fixture(scope="module")
def drawing():
    return figures()


def test_of_every_figure(drawing):
    assert set(drawing) == set(plots.__all__) - {"detach"}


@pytest.mark.parametrize("name", sorted(set(plots.__all__) - {"detach"}))
def test_without_a_font_no_figure_is_silent(name, drawing, monkeypatch):
    monkeypatch.setattr(style, "_CJK", ())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("error", "Glyph")  # matplotlib's own, for what is drawn as an unnamed box
        ax = drawing[name]()
        drawn = "".join(name for name, _ in shown_texts(ax.figure))
    assert "□" in drawn
    assert {str(w.message) for w in caught if "No installed font" in str(w.message)}
    assert not any("\u4e00" <= c <= "\u9fff" for c in drawn)
