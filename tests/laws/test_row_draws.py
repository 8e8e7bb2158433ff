"""Law 12: draws with training rows keep conjugate marginals, and vary together as the rows do."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.sparse import csr_array

import bayesnb as bnb
from bayesnb import posterior_draws
from bayesnb.uncertainty import row_variates
from bayesnb.uncertainty.row_variates import TrainingRows, sum_rows_of_draws

RNG = np.random.default_rng(12)
N, DRAWS = 80, 4000
LABEL = np.array(["no", "yes"])[(RNG.random(N) < 0.4).astype(int)]
LEVELS = pd.DataFrame(
    {
        "a": RNG.choice(["x", "y", "z"], N),
        "b": RNG.choice(["p", "q"], N, p=[0.9, 0.1]),
        "c": RNG.choice(["x", "y", "z", "w"], N),
    }
)
LEVELS.loc[[3, 40, 41], "b"] = None  # missing cells
NUMBERS = pd.DataFrame(RNG.uniform(-1, 1, (N, 3)) + (LABEL == "yes")[:, None], columns=["u", "v", "w"])
WORDS = csr_array(RNG.random((N, 6)) < 0.3)
LEAST = 1e-5  # p-values of some hundred tests


def concentrations(nb: Any) -> tuple[np.ndarray, np.ndarray]:
    """Shapes a and b of the Beta marginals of all levels, (C, L) each."""
    ((_, marginal),) = nb.posterior_.blocks[0].marginals().values()
    return np.asarray(marginal["a"]), np.asarray(marginal["b"])


# -- marginals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nb", "X", "draws"),
    [
        (bnb.CategoricalNB(alpha=0.7), LEVELS, 20_000),
        (bnb.BernoulliNB(alpha=2.0), WORDS.toarray(), DRAWS),
        (bnb.BernoulliNB(), WORDS, DRAWS),
        (bnb.TAN(), LEVELS, DRAWS),
    ],
    ids=["categorical", "bernoulli", "sparse bernoulli", "tan"],
)
def test_each_probability_of_a_level_keeps_its_beta_distribution(nb, X, draws):
    nb = nb.fit(X, LABEL)
    drawn = posterior_draws(nb, draws, X=X, y=LABEL)
    a, b = concentrations(nb)
    for (c, level), shape in np.ndenumerate(a):
        if b[c, level] > 0:  # Groups of one level have probability 1.
            sample = drawn["theta"][:, c, level]
            assert stats.kstest(sample, stats.beta(shape, b[c, level]).cdf).pvalue > LEAST
            moments = stats.beta(shape, b[c, level]).stats("mv")
            assert sample.mean() == pytest.approx(moments[0], abs=5 * np.sqrt(moments[1] / draws))
            assert sample.var() == pytest.approx(moments[1], rel=8 / np.sqrt(draws) * 3)
    classes = nb.posterior_.class_prior.concentration[0]
    assert stats.kstest(drawn["class_prob"][:, 0], stats.beta(*classes).cdf).pvalue > LEAST


def test_weights_are_shapes_of_the_variates():
    weight = RNG.choice([0.0, 0.5, 1.0, 2.5], N)
    nb = bnb.CategoricalNB().fit(LEVELS, LABEL, sample_weight=weight)
    drawn = posterior_draws(nb, DRAWS, X=LEVELS, y=LABEL, sample_weight=weight)["theta"]
    a, b = concentrations(nb)
    for (c, level), shape in np.ndenumerate(a):
        assert stats.kstest(drawn[:, c, level], stats.beta(shape, b[c, level]).cdf).pvalue > LEAST


@pytest.mark.parametrize("weight", [None, RNG.choice([0.5, 2.0], N)], ids=["rows", "weighted rows"])
def test_numbers_without_tails_keep_their_distributions(weight):
    """Of uniform numbers Σ q² is below the model's for the variance, which then is not spread."""
    nb = bnb.GaussianNB().fit(NUMBERS, LABEL, sample_weight=weight)
    drawn = posterior_draws(nb, DRAWS, X=NUMBERS, y=LABEL, sample_weight=weight)
    for name, (distribution, arguments) in nb.posterior_.blocks[0].marginals().items():
        for c, f in np.ndindex(2, 3):
            marginal = getattr(stats, distribution)(**{k: np.asarray(v)[c, f] for k, v in arguments.items()})
            assert stats.kstest(drawn[name][:, c, f], marginal.cdf).pvalue > LEAST


def test_rows_of_a_group_are_one_row():
    """Five copies in a group are one observation: with a vanishing prior θ has the Beta of a fifth of the counts."""
    alone = bnb.CategoricalNB(alpha=1e-9).fit(LEVELS[["a"]], LABEL)
    X, y = LEVELS[["a"]].loc[np.repeat(np.arange(N), 5)], np.repeat(LABEL, 5)
    nb = bnb.CategoricalNB(alpha=1e-9).fit(X, y)
    drawn = posterior_draws(nb, DRAWS, X=X, y=y, groups=np.repeat(np.arange(N), 5))["theta"]
    a, b = concentrations(alone)
    for (c, level), shape in np.ndenumerate(a):
        assert stats.kstest(drawn[:, c, level], stats.beta(shape, b[c, level]).cdf).pvalue > LEAST


def test_groups_spread_means_by_the_correlation_in_groups():
    """Of n groups of m equal numbers the mean has the variance s²/n, not s²/(nm)."""
    x, y = RNG.normal(size=(400, 1)), np.arange(400) % 2
    X, label, groups = np.repeat(x, 4, axis=0), np.repeat(y, 4), np.repeat(np.arange(400), 4)
    nb = bnb.GaussianNB().fit(X, label)
    drawn = posterior_draws(nb, DRAWS, X=X, y=label, groups=groups)["mu"][:, :, 0]
    expected = [x[y == c].std() / np.sqrt(200) for c in (0, 1)]
    assert drawn.std(axis=0) == pytest.approx(expected, rel=0.1)  # shrunk by 20 of 220 units


def test_overdispersed_counts_spread_rates():
    """Where the variance of counts is v times their mean, so is that of the rate's draws."""
    x, y = RNG.negative_binomial(2, 0.2, (1000, 1)).astype(float), np.arange(1000) % 2  # variance 5 times the mean
    nb = bnb.PoissonNB().fit(x, y)
    drawn = posterior_draws(nb, DRAWS, X=x, y=y)["rate"][:, :, 0]
    assert drawn.mean(axis=0) == pytest.approx([x[y == c].mean() for c in (0, 1)], rel=0.01)
    assert drawn.std(axis=0) == pytest.approx([x[y == c].std() / np.sqrt(500) for c in (0, 1)], rel=0.06)


# -- rows ----------------------------------------------------------------------------------------------

ESTIMATORS: dict[str, tuple[Any, Any]] = {
    "multinomial": (bnb.MultinomialNB(), WORDS.toarray() * 2),
    "exponential": (bnb.ExponentialNB(), np.exp(NUMBERS)),
    "poisson": (bnb.PoissonNB(), WORDS.toarray() + 1.0),
    "negative binomial": (bnb.NegativeBinomialNB(dispersion=1.5), WORDS.toarray() + 1.0),
    "mixed": (bnb.MixedNB(), pd.concat([LEVELS, NUMBERS], axis=1)),
    "binned": (bnb.BinnedNB(), NUMBERS),
    "kdb": (bnb.KDB(), pd.concat([LEVELS, NUMBERS], axis=1)),
    "spode": (bnb.SPODE("a"), LEVELS),
    "trees": (bnb.TreeAveragedNB(), LEVELS.fillna("p")),
    "averaged": (bnb.FeatureAveragedNB(), pd.concat([LEVELS, NUMBERS], axis=1)),
    "weighted": (bnb.WeightedNB(), pd.concat([LEVELS, NUMBERS], axis=1)),
    "known classes": (bnb.CategoricalNB(class_prior=[0.3, 0.7]), LEVELS),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_draws_of_every_family_have_the_means_of_draws_without_rows(name):
    estimator, X = ESTIMATORS[name]
    nb = estimator.fit(X, LABEL)
    with_rows, without = (posterior_draws(nb, 1500, **rows) for rows in ({"X": X, "y": LABEL}, {}))
    assert with_rows.keys() == without.keys()
    for site, values in with_rows.items():
        assert values.shape == without[site].shape
        other = without[site]
        error = np.sqrt((values.var(axis=0) + other.var(axis=0)) / 1500)
        assert np.abs(values.mean(axis=0) - other.mean(axis=0)) == pytest.approx(0, abs=6 * error.max() + 1e-12)
    chosen = posterior_draws(nb, 40, features=[1], X=X, y=LABEL)
    assert {site: len(v) for site, v in chosen.items()} == dict.fromkeys(chosen, 40)
    assert sum(v[0].size for v in chosen.values()) < sum(v[0].size for v in with_rows.values())


def test_the_unit_of_word_counts_does_not_matter():
    """Counts times a factor, such as fractions of tf-idf, are as uncertain: the rows tell, not the model."""
    X = RNG.poisson(1.0, (N, 5)) * 1.0
    drawn = [
        posterior_draws(bnb.MultinomialNB(alpha=1e-9).fit(X * unit, LABEL), 100, X=X * unit, y=LABEL)["theta"]
        for unit in (1.0, 0.3)
    ]
    assert drawn[0] == pytest.approx(drawn[1], rel=1e-6)


def test_a_family_that_does_not_say_what_rows_add_is_refused():
    from tests.laws.test_new_family import PRIOR, GeometricNB

    nb = GeometricNB(prior=PRIOR).fit(WORDS.toarray() * 1.0, LABEL)
    assert posterior_draws(nb, 10).keys() == {"class_prob", "prob"}
    with pytest.raises(NotImplementedError, match="BetaGeometric does not say what rows have added"):
        posterior_draws(nb, 10, X=WORDS.toarray() * 1.0, y=LABEL)


def test_copied_columns_have_the_draws_of_the_original():
    X = pd.DataFrame({"a": LEVELS["a"], "again": LEVELS["a"], "u": NUMBERS["u"], "again u": NUMBERS["u"]})
    with pytest.warns(bnb.SuspiciousColumnWarning):
        nb = bnb.MixedNB(alpha=1e-6).fit(X, LABEL)
    drawn = posterior_draws(nb, 200, X=X, y=LABEL)
    theta = drawn["theta"]
    assert theta[..., :3] == pytest.approx(theta[..., 3:], abs=1e-4)  # but for the share of the prior
    for name in ("mu", "sigma2"):
        assert drawn[name][..., 0] == pytest.approx(drawn[name][..., 1], rel=1e-12)
    alone = posterior_draws(nb, 200)
    assert abs(np.corrcoef(alone["mu"][:, 0].T)[0, 1]) < 0.4


def test_order_and_multiplicity_of_rows_do_not_matter_in_distribution():
    """Covariances of log odds agree for permuted rows, and for weight 2 in place of two rows without a group."""

    def covariance(X: Any, y: Any, weight: Any = None) -> np.ndarray:
        nb = bnb.CategoricalNB().fit(X, y, sample_weight=weight)
        theta = posterior_draws(nb, DRAWS, X=X, y=y, sample_weight=weight)["theta"]
        return np.cov(np.log(theta.reshape(DRAWS, -1)).T)

    X = LEVELS.fillna("p")
    order, twice = RNG.permutation(N), np.repeat(np.arange(N), 2)
    first, permuted = covariance(X, LABEL), covariance(X.iloc[order], LABEL[order])
    assert permuted == pytest.approx(first, abs=0.15 * np.diag(first).max())
    doubled, weighted = covariance(X.iloc[twice], LABEL[twice]), covariance(X, LABEL, np.full(N, 2.0))
    assert weighted == pytest.approx(doubled, abs=0.15 * np.diag(doubled).max())
    assert np.trace(doubled) < 0.7 * np.trace(first)


@pytest.mark.parametrize("groups", [None, RNG.integers(0, 6000, 9000)], ids=["rows", "groups"])
def test_sums_over_blocks_of_rows_are_those_of_all_rows(groups):
    """Three blocks of rows, or two of groups, against sums over all rows with the same variates."""
    n, a_class = 9000, np.arange(9000) % 2
    X = pd.DataFrame({"a": RNG.choice(["x", "y", "z"], n), "u": RNG.standard_t(5, n)})
    fitted = bnb.MixedNB(categorical=["a"], gaussian=["u"]).fit(X, a_class).fitted_
    training = TrainingRows.read(fitted, X, a_class, None, groups, "test")
    rngs, draws = [np.random.default_rng(0)] * 3, slice(32, 72)
    variates = sum_rows_of_draws(fitted, training, 5, draws, rngs, [0, 1, 2])
    gamma, normal = (
        np.concatenate([getattr(piece, name) for piece in row_variates._pieces(training, 5, draws, with_normal=True)])
        for name in ("gamma", "normal")
    )
    unit = np.arange(n) if groups is None else pd.factorize(np.sort(pd.factorize(groups)[0]))[0]
    order = np.arange(n) if groups is None else np.argsort(pd.factorize(groups)[0], kind="stable")
    label, level, u = a_class[order], pd.factorize(X["a"], sort=True)[0][order], X["u"].to_numpy()[order]
    for columns, family, source in zip(
        fitted.encoding.blocks, fitted.posterior.blocks, [variates[1], variates[2]], strict=True
    ):
        if columns.kind == "categorical":
            expected = np.stack(
                [[gamma[unit[(label == c) & (level == k)]].sum(axis=0) for k in range(3)] for c in (0, 1)]
            )
            found = np.exp(source.log_gamma(family.concentration * 0.0, 40, lambda statistics: statistics.count))
            assert found == pytest.approx(np.moveaxis(expected, -1, 0), rel=1e-12)
            continue
        both = list(source._sums)
        for c, mean in enumerate(family.loc[:, 0]):
            scale = np.sqrt(family.concentration[c, 0] / family.rate[c, 0])
            z = np.where(label == c, (u - mean) * scale, 0.0)
            q = np.where(label == c, (1 - z**2) / 2, 0.0)
            for sums, added in zip(both, (q, z / np.sqrt(family.kappa[c, 0])), strict=True):
                of_units = np.bincount(unit, added)
                assert sums.total[:, c, 0] == pytest.approx(of_units @ normal, rel=1e-10)
                assert sums.square[c, 0] == pytest.approx(of_units @ of_units, rel=1e-10)
