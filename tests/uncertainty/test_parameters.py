"""Parameter tables against counting by hand, SciPy, scikit-learn, numerical draws and simulated coverage."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.naive_bayes import GaussianNB as ScikitGaussianNB

from bayesnb import (
    TAN,
    BernoulliNB,
    CategoricalNB,
    Dirichlet,
    GammaPoisson,
    GaussianNB,
    MixedNB,
    MultinomialNB,
    NormalInverseGamma,
    PoissonNB,
    plots,
)
from bayesnb.datasets import load_watermelon
from bayesnb.uncertainty import ImproperPosteriorError, parameter_table, tables
from tests.raises import refused
from tests.strategies import variants

COLUMNS = ["class", "feature", "level", "count", "mle", "map", "mean", "sd", "lower", "upper", "prior_weight"]
RNG = np.random.default_rng(7)
Y = np.array(["no", "yes", "no", "yes", "yes", "no", "no"])
REAL = RNG.normal(size=(7, 2)) * [1, 30] + [0, 5]
COUNTS = np.array([[3, 0, 1], [0, 2, 2], [1, 1, 0], [4, 0, 0], [0, 5, 1], [2, 2, 2], [0, 0, 1]])
LEVELS = np.array([["a", "u"], ["b", "u"], ["a", "v"], ["c", "u"], ["b", "w"], ["a", "w"], ["b", "u"]])


def row(table, label, feature, level):
    """The only row of a parameter."""
    found = table[(table["class"] == label) & (table["feature"] == feature)]
    found = found[[value == level and type(value) is type(level) for value in found["level"]]]
    assert len(found) == 1
    return found.iloc[0]


def check_beta(found, count, total, alpha, n_levels, prob):
    """Everything that a Dirichlet marginal says, from its counts."""
    a, b = alpha + count, (n_levels - 1) * alpha + total - count
    assert found["count"] == count
    np.testing.assert_allclose(found["mle"], count / total if total else np.nan)
    np.testing.assert_allclose(found["mean"], a / (a + b), rtol=1e-12)
    np.testing.assert_allclose(found["sd"], math.sqrt(a * b / (a + b) ** 2 / (a + b + 1)), rtol=1e-12)
    np.testing.assert_allclose([found["lower"], found["upper"]], stats.beta.interval(prob, a, b), rtol=1e-9)
    np.testing.assert_allclose(found["prior_weight"], n_levels * alpha / (n_levels * alpha + total), rtol=1e-12)


@variants("alpha", [0.5, 1.0, 3.0])
def test_categorical_from_counts(alpha):
    table = parameter_table(CategoricalNB(alpha=alpha, class_alpha=2.0).fit(LEVELS, Y), prob=0.8)
    assert list(table.columns) == COLUMNS
    assert len(table) == 2 + 2 * (3 + 3)
    for label in ("no", "yes"):
        mine = LEVELS[label == Y]
        check_beta(row(table, label, "(class)", label), len(mine), len(Y), 2.0, 2, 0.8)
        for j in range(2):
            levels = sorted(set(LEVELS[:, j].tolist()))
            for level in levels:
                count = int((mine[:, j] == level).sum())
                found = row(table, label, str(j), level)
                check_beta(found, count, len(mine), alpha, 3, 0.8)
                excess = 3 * (alpha - 1) + len(mine)
                exists = alpha >= 1 or all(alpha + (mine[:, j] == v).sum() >= 1 for v in levels)
                expected = (alpha - 1 + count) / excess if exists else np.nan
                np.testing.assert_allclose(found["map"], expected, rtol=1e-12)


def test_laplace_fractions_of_the_textbook():
    melon = load_watermelon()
    table = parameter_table(CategoricalNB().fit(melon.data[["色泽", "敲声"]], melon.target))
    fractions = {("是", "(class)", "是"): 9 / 19, ("是", "色泽", "青绿"): 4 / 11}
    fractions |= {("否", "色泽", "青绿"): 4 / 12, ("是", "敲声", "清脆"): 1 / 11}
    for key, expected in fractions.items():
        assert row(table, *key)["mean"] == pytest.approx(expected, rel=1e-12)
    assert row(table, "是", "敲声", "清脆")["mle"] == 0
    # The 90% interval of Beta(1, 10) in closed form: 1 - (1 - q)^(1/10).
    bounds = [1 - (1 - q) ** 0.1 for q in (0.05, 0.95)]
    found = row(table, "是", "敲声", "清脆")
    np.testing.assert_allclose([found["lower"], found["upper"]], bounds, rtol=1e-10)


def test_gaussian_by_hand():
    m, kappa, a, b = 0.5, 0.4, 2.5, 1.5
    nb = GaussianNB(prior=NormalInverseGamma(m, kappa, a, b)).fit(REAL, Y)
    table = parameter_table(nb, prob=0.95)
    reference = ScikitGaussianNB(var_smoothing=0).fit(REAL, Y)
    for c, label in enumerate(("no", "yes")):
        x = REAL[label == Y]
        n, mean = len(x), x.mean(axis=0)
        k, a1 = kappa + n, a + n / 2
        loc = (kappa * m + n * mean) / k
        b1 = b + ((x - mean) ** 2).sum(axis=0) / 2 + kappa * n * (mean - m) ** 2 / (2 * k)
        for j in range(2):
            mu, sigma2 = row(table, label, str(j), "mu"), row(table, label, str(j), "sigma2")
            np.testing.assert_allclose(mu["mle"], reference.theta_[c, j])
            np.testing.assert_allclose(sigma2["mle"], reference.var_[c, j])
            np.testing.assert_allclose([mu["map"], mu["mean"]], loc[j])
            np.testing.assert_allclose(sigma2["map"], b1[j] / (a1 + 1.5))
            np.testing.assert_allclose(sigma2["mean"], b1[j] / (a1 - 1))
            np.testing.assert_allclose(mu["sd"] ** 2, b1[j] / ((a1 - 1) * k))
            np.testing.assert_allclose(sigma2["sd"] ** 2, b1[j] ** 2 / ((a1 - 1) ** 2 * (a1 - 2)))
            # Twice the precision times the rate is chi-squared with 2a degrees of freedom.
            ends = 2 * b1[j] / stats.chi2.ppf([0.975, 0.025], 2 * a1)
            np.testing.assert_allclose([sigma2["lower"], sigma2["upper"]], ends, rtol=1e-9)
            half = stats.t.ppf(0.975, 2 * a1) * math.sqrt(b1[j] / (a1 * k))
            np.testing.assert_allclose([mu["lower"], mu["upper"]], [loc[j] - half, loc[j] + half], rtol=1e-9)
            assert (mu["count"], sigma2["count"]) == (n, n)
            np.testing.assert_allclose(mu["prior_weight"], kappa / (kappa + n))
            np.testing.assert_allclose(sigma2["prior_weight"], b / b1[j])


def test_prior_weight_mixes_prior_mean_and_mle():
    alpha = np.array([0.3, 2.0, 1.2])
    words = MultinomialNB(alpha=Dirichlet(alpha[None], np.zeros(3, int), 1)).fit(COUNTS, Y)
    rates = PoissonNB(prior=GammaPoisson(2.0, 0.5)).fit(COUNTS, Y)
    reals = GaussianNB(prior=NormalInverseGamma(0.5, 0.4, 2.0, 1.0)).fit(REAL, Y)
    for nb, prior_mean in ((words, dict(zip("012", alpha / alpha.sum(), strict=True))), (rates, 4.0), (reals, 0.5)):
        table = parameter_table(nb).query("feature != '(class)' and level != 'sigma2'")
        prior = table["feature"].map(prior_mean) if isinstance(prior_mean, dict) else prior_mean
        mixed = table["prior_weight"] * prior + (1 - table["prior_weight"]) * table["mle"]
        np.testing.assert_allclose(table["mean"], mixed, rtol=1e-12)


def test_estimates_that_do_not_exist_are_nan():
    x = np.tile([[np.nan], [np.nan], [1.0], [3.0]], (1, 2))
    y = ["empty", "empty", "full", "full"]
    weak = GaussianNB(prior=NormalInverseGamma(0.0, 1.0, 0.5, 1.0)).fit(x, y)
    table = parameter_table(weak)
    mu, sigma2 = row(table, "empty", "0", "mu"), row(table, "empty", "0", "sigma2")
    assert math.isnan(mu["mle"])
    assert math.isnan(sigma2["mle"])
    assert math.isnan(sigma2["mean"])
    assert mu["sd"] == sigma2["sd"] == math.inf
    # The marginal of mu is a Cauchy distribution with scale sqrt(b / (a kappa)) = sqrt(2).
    np.testing.assert_allclose(mu["upper"], math.sqrt(2) * math.tan(math.pi * 0.45), rtol=1e-9)
    assert mu["prior_weight"] == sigma2["prior_weight"] == 1.0
    assert row(table, "full", "0", "sigma2")["mle"] == 1.0

    X = [[None, None], ["a", "u"], ["b", "v"], ["c", "w"]]
    level = row(parameter_table(CategoricalNB().fit(X, [0, 1, 1, 1])), 0, "0", "a")
    assert math.isnan(level["mle"])
    assert math.isnan(level["map"])
    assert level["mean"] == 1 / 3


@pytest.mark.slow("compiles kernels of its own")
def test_improper_posteriors_name_class_and_feature():
    x = pd.DataFrame({"stem": ["long", "long", "short", "long"], "sound": ["dull", "crisp", "dull", "crisp"]})
    with pytest.raises(ImproperPosteriorError, match=r"class 'a', feature 'stem', 'short'"):
        parameter_table(CategoricalNB(alpha=0).fit(x, ["a", "a", "b", "b"]))
    nb = CategoricalNB(class_alpha=0).partial_fit(x, ["a", "a", "b", "b"], classes=["a", "b", "c"])
    refused(r"class 'c', feature '\(class\)'", parameter_table, nb, error=ImproperPosteriorError)
    with pytest.raises(ImproperPosteriorError, match=r"class 0, feature '2'"):
        parameter_table(MultinomialNB(alpha=[1.0, 1.0, 0.0]).fit([[1, 1, 0], [1, 1, 3]], [0, 1]))
    flat = GaussianNB(prior=NormalInverseGamma(0.0, 1.0, 1.0, 0.0))
    with pytest.raises(ImproperPosteriorError, match=r"class 1, feature '0'"):
        parameter_table(flat.fit([[1.0], [2.0], [0.0]], [0, 0, 1]))
    assert issubclass(ImproperPosteriorError, ValueError)


def test_zero_concentrations_that_data_make_up_for_are_proper():
    X = [["a", "u"], ["b", "v"], ["a", "w"], ["c", "u"]] * 2
    table = parameter_table(CategoricalNB(alpha=0, class_alpha=0).fit(X, np.arange(8) // 4))
    found = row(table, 0, "0", "a")
    np.testing.assert_allclose([found["lower"], found["upper"]], stats.beta.interval(0.9, 2, 2))
    assert found["prior_weight"] == 0


def test_certain_parameters_have_no_width():
    table = parameter_table(CategoricalNB(class_prior=[0.3, 0.7]).fit([["a"], ["a"]], [0, 1]))
    for key, value in (((0, "(class)", 0), 0.3), ((1, "(class)", 1), 0.7), ((1, "0", "a"), 1.0)):
        found = row(table, *key)
        assert found["sd"] == 0
        np.testing.assert_allclose(found[["mle", "map", "mean", "lower", "upper"]].astype(float), value)
    assert row(table, 0, "(class)", 0)["prior_weight"] == 1


@variants("prob", [0, 1, -0.1, 1.5, math.nan])
def test_prob_is_validated(prob):
    refused("prob", parameter_table, BernoulliNB().fit([[0], [1]], [0, 1]), prob=prob)


def test_labels_and_levels_keep_their_types():
    X = pd.DataFrame({"x": pd.Series([1, "1", (1, 2), 2.5], dtype=object), "b": [True, False, True, True]})
    table = parameter_table(CategoricalNB().fit(X, np.array([3, 3, 5, 5])))
    assert table["class"].dtype.kind == "i"
    assert {type(v) for v in table.loc[table["feature"] == "x", "level"]} == {int, str, tuple, float}
    assert {type(v) for v in table.loc[table["feature"] == "b", "level"]} == {bool}
    assert row(table, 5, "x", (1, 2))["count"] == 1


def test_reserved_level_has_its_rows():
    table = parameter_table(CategoricalNB(handle_unknown="level").fit([["a"], ["b"]], [0, 1]))
    assert row(table, 0, "0", "<unknown>")["mean"] == pytest.approx(1 / 4)


MIXED = pd.DataFrame({"leaf": LEVELS[:, 0], "height": REAL[:, 0], "bark": LEVELS[:, 1], "girth": REAL[:, 1]})


@variants(
    ("nb", "X", "features", "chosen"),
    [
        (CategoricalNB(), LEVELS, [1], ["1"]),
        (BernoulliNB(), COUNTS, ["2", 0], ["0", "2"]),
        (MultinomialNB(), COUNTS, np.array([2]), ["2"]),
        (GaussianNB(), REAL, "1", ["1"]),
        (MixedNB(numbers="gaussian"), MIXED, ["girth", "leaf"], ["leaf", "girth"]),
        (MixedNB(numbers="gaussian"), MIXED, 1, ["height"]),
        (TAN(), LEVELS, ["1"], ["1"]),
    ],
    ids=["levels", "presence", "words", "numbers", "mixed", "one index", "tree"],
)
def test_chosen_features_are_rows_of_the_whole_table(nb, X, features, chosen):
    nb = nb.fit(X, Y)
    whole = parameter_table(nb, 0.8)
    expected = whole[whole["feature"].isin(chosen)].reset_index(drop=True)
    assert expected["feature"].unique().tolist() == chosen
    pd.testing.assert_frame_equal(parameter_table(nb, 0.8, features=features), expected)


def test_quantiles_are_those_of_the_chosen_words_alone(monkeypatch):
    computed = []
    quantiles = tables._quantiles

    def counted(components, q):
        computed.append(len(components[0][0]))
        return quantiles(components, q)

    monkeypatch.setattr(tables, "_quantiles", counted)
    nb = MultinomialNB().fit(RNG.poisson(20.0, (20, 2000)), np.tile(["no", "yes"], 10))
    assert len(parameter_table(nb, features=[7, 40, 41])) == 6
    assert 0 < max(computed) <= 6
    plots.forest(nb, features=[7, 40, 41])
    assert max(computed) <= 6


def test_features_that_are_not_there():
    nb = MultinomialNB().fit(COUNTS, Y)
    for feature in ("size", 3, -1, 0.0, None, ["0"]):
        refused("features: there is no column", parameter_table, nb, features=[feature])
    refused("features names no column; pass one or more", parameter_table, nb, features=[])
    refused("features names no column; pass one or more", plots.forest, nb, features=[])
    refused("features=3 must be a list of columns", plots.forest, nb, features=3, error=TypeError)
