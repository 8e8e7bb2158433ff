"""Leave-one-out under priors derived from the data, against refits that derive the prior again."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import bayesnb as bnb

RNG = np.random.default_rng(11)
N = 8
LABEL = np.array([0, 0, 0, 1, 1, 2, 2, 1])  # without one of its two rows class 2 has no variance
WEIGHT = np.array([1.0, 2.0, 0.5, 3.0, 1.0, 1.0, 2.0, 1.0])
REAL = RNG.normal(size=(N, 4)) * [1, 30, 0.1, 1] + LABEL[:, None] * [1, 50, 0, 0] + [0, 1e4, 0, 0]
REAL[:, 3] = 5.0
REAL[3, 3] = 4e4  # without its row the feature is constant, also where the others' mean is lost in rounding
GAPS = REAL.copy()
GAPS[[1, 4, 5], [0, 0, 2]] = np.nan
GAPS[:, 2] = np.where(np.arange(N) == 6, 0.7, np.nan)  # observed in one row
COUNTS = np.where(np.arange(N)[:, None] == 6, [1, 0, 4], RNG.poisson([2, 0, 0], (N, 3))).astype(float)
FRAME = pd.DataFrame({"a": list("uvuvwuwv"), "b": list("xxyyxyxy"), "r": REAL[:, 0], "s": REAL[:, 3]})


def log_proba_without_each(nb, X, y, weight, estimate="predictive"):
    """(N, C) of refits; classes and levels are declared."""
    rows = X.iloc if hasattr(X, "iloc") else X
    found = []
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        refit = clone(nb).partial_fit(rows[others], y[others], classes=np.unique(y), sample_weight=weight[others])
        found.append(refit.predict_log_proba(rows[[i]], estimate=estimate)[0])
    return np.array(found)


def structured(make, **options):
    return make(categories={"a": list("uvw"), "b": list("xy")}, **options)


OF_ONE = {1: bnb.NormalInverseGamma(loc=1e4, kappa=0.3, concentration=1.5, rate=500.0)}
BY_CLASS = {
    0: bnb.NormalInverseGamma(loc={0: 0.0, 1: 1.0, 2: 2.0}, kappa=2.0, concentration=[1.0, 2.0, 3.0], rate=1.0),
    2: "pooled",
}
PROBLEMS = {
    "within": (bnb.GaussianNB(), REAL),
    "within, one given": (bnb.GaussianNB(prior=OF_ONE), REAL),
    "by class, gaps": (bnb.GaussianNB(prior=BY_CLASS), GAPS),
    "rates, one given": (bnb.PoissonNB(prior={2: bnb.GammaPoisson(2.0, 0.5)}), COUNTS),
    "averaged, one given": (bnb.FeatureAveragedNB(bnb.GaussianNB(prior=OF_ONE)), GAPS),
    "pooled": (bnb.GaussianNB(prior="pooled"), REAL),
    "within, gaps": (bnb.GaussianNB(class_prior=[0.2, 0.3, 0.5]), GAPS),
    "pooled, gaps": (bnb.GaussianNB(prior="pooled"), GAPS),
    "rates": (bnb.PoissonNB(), COUNTS),
    "dispersions": (bnb.NegativeBinomialNB(), COUNTS),
    "known dispersions": (bnb.NegativeBinomialNB(dispersion=1.5), COUNTS),
    "averaged": (bnb.FeatureAveragedNB(bnb.GaussianNB()), GAPS),
    "averaged rates": (bnb.FeatureAveragedNB(bnb.PoissonNB()), COUNTS),
    "averaged dispersions": (bnb.FeatureAveragedNB(bnb.NegativeBinomialNB()), COUNTS),
    "mixed": (structured(bnb.MixedNB), FRAME),
    "network": (structured(bnb.NetworkNB, parents={"b": "a"}, gaussian=["r", "s"]), FRAME),
    "AODE": (structured(bnb.AODE, gaussian=["r", "s"]), FRAME),
}


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize("weight", [np.ones(N), WEIGHT], ids=["", "weighted"])
@pytest.mark.parametrize(
    "kind",
    [
        k if k in ("within, one given", "within, gaps", "rates") else pytest.param(k, marks=pytest.mark.slow)
        for k in PROBLEMS
    ],
)
def test_every_refit_derives_the_prior_without_the_row(kind, weight):
    """Slow ones compile kernels of their own."""
    nb, X = PROBLEMS[kind]
    fitted = clone(nb).partial_fit(X, LABEL, classes=np.unique(LABEL), sample_weight=weight)
    for estimate in ("predictive", "mean"):
        found = bnb.loo(fitted, X, LABEL, weight, estimate=estimate)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("bayesnb.fitted.state.warn", lambda *_: None)  # of undefined rows
            expected = log_proba_without_each(nb, X, LABEL, weight, estimate)
        # Means plugged in, the cell at 4e4 has scores of -8e8 in all classes, and differences of those are rounded so.
        scores = np.nan_to_num(abs(found.row_pointwise), nan=0.0, posinf=0.0)
        for mine, theirs, score in zip(found.log_proba, expected, scores, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-10 + 4 * np.finfo(float).eps * score)


@pytest.mark.slow("a second view of what quick tests see")
def test_a_prior_of_all_rows_would_tell_the_label_of_noise():
    """1,000 features of noise, six rows: the variance within classes, over all rows, knows whose residual is whose."""
    X, y = np.random.default_rng(0).normal(size=(6, 1000)), np.arange(6) % 2
    nb = bnb.GaussianNB().fit(X, y)
    refits = log_proba_without_each(bnb.GaussianNB(), X, y, np.ones(6))[np.arange(6), y].sum()
    assert refits < 50 * np.log(0.5)  # far worse than no features at all: noise is trusted
    assert bnb.loo(nb, X, y).elpd == pytest.approx(refits, rel=1e-10)
    assert bnb.loo(nb, X, y, prior="fixed").elpd > refits + 100
    with pytest.raises(ValueError, match="prior='refit' is unknown; use 'derived' or 'fixed'"):
        bnb.loo(nb, X, y, prior="refit")


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("prior", ["within", OF_ONE], ids=["within", "one given"])
def test_tuning_maximises_what_refits_score(prior):
    X, y = REAL[:, :3], LABEL
    nb = bnb.GaussianNB(prior=prior).fit(X, y, WEIGHT)
    tuned = bnb.tune_alpha(nb, X, y, sample_weight=WEIGHT, bounds=(0.01, 100.0))
    refits = log_proba_without_each(tuned.estimator, X, y, WEIGHT)[np.arange(N), y]
    assert tuned.objective == pytest.approx(WEIGHT @ refits, rel=1e-10)
    fixed = bnb.tune_alpha(nb, X, y, sample_weight=WEIGHT, bounds=(0.01, 100.0), prior="fixed")
    assert fixed.objective == pytest.approx(bnb.loo(fixed.estimator, X, y, WEIGHT).elpd, rel=1e-9)
    assert fixed.objective != pytest.approx(tuned.objective, rel=1e-3)
