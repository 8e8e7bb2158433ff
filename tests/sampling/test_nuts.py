"""`run_nuts` against exact posteriors and integrals; its warnings, refusals and result."""

import re
import warnings
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
from numpyro import distributions as dist
from scipy import stats
from scipy.special import betaln, logsumexp
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

import bayesnb as bnb
from bayesnb.sampling import nuts, programs
from bayesnb.uncertainty import site_names
from tests.data import arff
from tests.raises import refused
from tests.sampling.monte_carlo import Exact, assert_exact, errors, quiet
from tests.sampling.problem import one_more

pytestmark = pytest.mark.slow("NumPyro compiles for seconds")


def exact_posterior(nb: Any, prior: Any = None) -> Exact:
    """SciPy's distribution of each parameter."""
    model = (prior or nb.prior_).update(nb.statistics_)
    found = {}
    if isinstance(model.class_prior, bnb.Dirichlet):
        alpha = model.class_prior.concentration[0]
        found["class_prob"] = stats.beta(alpha, alpha.sum() - alpha)
    for family, own in zip(model.blocks, site_names(nb.encoding_, model), strict=True):
        if isinstance(family, bnb.Dirichlet):
            alpha, group = family.concentration, np.asarray(family.group)
            total = np.stack([np.bincount(group, weights=a)[group] for a in alpha])
            found[own["theta"]] = stats.beta(alpha, total - alpha)
        elif isinstance(family, bnb.GammaPoisson):
            found[own["rate"]] = stats.gamma(family.concentration, scale=1 / family.rate)
        else:
            a, b, scale = family.concentration, family.rate, family.rate / (family.concentration * family.kappa)
            found[own["mu"]] = stats.t(2 * a, family.loc, np.sqrt(scale))
            found[own["sigma2"]] = stats.invgamma(a, scale=b)
    return found


# -- where the posterior is known ------------------------------------------------------------------


def fitted_iris() -> Any:
    iris = load_iris()
    return bnb.GaussianNB().fit(iris.data, iris.target)


def fitted_arff(name: str) -> Any:
    data = arff(name)
    X = np.where(data.X == "?", None, data.X)  # missing
    return bnb.CategoricalNB(categories=data.levels).fit(X, data.y)


@pytest.mark.parametrize(
    "name", ["iris", *(pytest.param(name, marks=pytest.mark.calibration) for name in ("car", "vote"))]
)
def test_tables_against_the_exact_posterior(name):
    nb = fitted_iris() if name == "iris" else fitted_arff(name)
    data = quiet(nb, seed=3)
    assert_exact(data, exact_posterior(nb))
    # A concentration that is off by one would be seen.
    wrong = replace(nb.prior_, blocks=tuple(map(one_more, nb.prior_.blocks)))
    with pytest.raises(AssertionError):
        assert_exact(data, exact_posterior(nb, wrong))


@cache
def mixed() -> Any:
    """Features of every kind, missing cells, weights, and class probabilities that are known."""
    rng = np.random.default_rng(4)
    y = np.array(["no", "yes", "maybe"])[np.arange(24) % 3]
    X = pd.DataFrame(
        {
            "size": rng.normal(np.arange(24) % 3, 1.0) * 1000.0,
            "colour": np.array(["red", "green", "blue"], dtype=object)[rng.integers(0, 3, 24)],
            "ripe": rng.integers(0, 2, 24).astype(float),
            "spots": rng.poisson(1.0 + np.arange(24) % 3).astype(float),
            "u": rng.poisson(1.0, 24),
            "v": rng.poisson(2.0, 24),
        }
    )
    X.loc[2, "size"], X.loc[4, "colour"], X.loc[7, "ripe"], X.loc[9, "spots"] = np.nan, None, np.nan, np.nan
    nb = bnb.MixedNB(
        bernoulli=["ripe"], poisson=["spots"], multinomial=["u", "v"], numbers="gaussian", class_prior=[0.2, 0.3, 0.5]
    )
    return nb.fit(X, y, sample_weight=1.0 + np.arange(24) % 2)


def test_mixed_features_weights_missing_cells_and_known_class_probabilities():
    before = jax.config.jax_enable_x64
    nb = mixed()
    data = quiet(nb, seed=3)
    assert jax.config.jax_enable_x64 == before
    assert_exact(data, exact_posterior(nb))
    posterior = data["posterior"]
    np.testing.assert_allclose(posterior["class_prob"], np.broadcast_to([0.5, 0.2, 0.3], (4, 1000, 3))[..., [1, 2, 0]])
    assert set(posterior.data_vars) == set(bnb.posterior_draws(nb, 1))
    assert {str(v.dtype) for v in posterior.data_vars.values()} == {"float64"}
    assert {type(v.values) for v in posterior.data_vars.values()} == {np.ndarray}


# -- where it is an integral -----------------------------------------------------------------------


@cache
def coins() -> tuple[Any, np.ndarray]:
    """Sixty coins, a feature each, thrown ten times; and their heads."""
    rng = np.random.default_rng(3)
    heads = rng.binomial(10, rng.beta(0.8, 0.8, 60))
    X = (np.arange(10)[:, None] < heads).astype(float)
    return bnb.BernoulliNB(class_prior=[1.0]).fit(X, np.zeros(10)), heads


COIN_PRIOR = dist.Gamma(2.0, 1.5)


@cache
def coin_draws() -> Any:
    return quiet(coins()[0], COIN_PRIOR, seed=3)


def test_alpha_against_its_integral():
    """log p(α | D) on a grid, from SciPy: Beta-binomial evidences of the coins, and the hyperprior."""
    (_, heads), data = coins(), coin_draws()
    log_alpha = np.linspace(-8, 6, 20_001)
    grid = np.exp(log_alpha)[:, None]
    log_density = (betaln(grid + heads, grid + 10 - heads) - betaln(grid, grid)).sum(axis=1)
    log_density += stats.gamma.logpdf(grid[:, 0], 2.0, scale=1 / 1.5) + log_alpha
    weight = np.exp(log_density - logsumexp(log_density))
    mean = weight @ log_alpha
    sd = np.sqrt(weight @ (log_alpha - mean) ** 2)
    found = np.log(data["posterior"]["alpha"].to_numpy()) - mean
    assert abs(errors(found)) < 4
    assert abs(errors(found**2 - sd**2)) < 4
    # Given α each coin has the mean (α + heads) / (2α + 10).
    theta = data["posterior"]["theta"].to_numpy()[:, :, 0, 1::2]
    exact = weight @ ((grid + heads) / (2 * grid + 10))
    assert np.abs(errors(theta - exact)).max() < 4


def test_a_distribution_alone_is_symmetric_and_a_dictionary_names_the_kind():
    nb, _ = coins()
    target, same = (
        nuts.read_target(nb.fitted_, dist.Gamma(2.0, 1.5)),
        nuts.read_target(nb.fitted_, {"symmetric": dist.Gamma(2.0, 1.5)}),
    )
    assert target.kind == same.kind == "symmetric"
    assert nuts.read_target(nb.fitted_, {"pooled": dist.Gamma(2.0, 1.5)}).kind == "pooled"
    for kind in ("symmetric", "pooled"):
        alpha = nuts.read_target(nb.fitted_, kind).alpha
        x = np.array([0.1, 1.0, 30.0])
        np.testing.assert_allclose(alpha.log_prob(x), stats.lognorm.logpdf(x, 1.5, scale=np.exp(-1.0)), rtol=1e-5)


# -- what is returned ------------------------------------------------------------------------------


@cache
def pooled(warmup: int = 1) -> tuple[Any, list[warnings.WarningMessage]]:
    """A run that is too short, and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = bnb.run_nuts(mixed(), "pooled", draws=50, warmup=warmup, chains=2, progress=False)
    return data, caught


def test_arviz_reads_it(tmp_path):
    import arviz as az

    data, _ = pooled()
    assert set(data["sample_stats"].data_vars) == {"diverging", "acceptance_rate", "n_steps", "energy", "lp"}
    assert {v.dims for v in data["sample_stats"].data_vars.values()} == {("chain", "draw")}
    assert data["sample_stats"]["diverging"].dtype == bool
    # E = -log p + kinetic energy
    assert (data["sample_stats"]["energy"] + data["sample_stats"]["lp"] >= -1e-9).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of chains that stand still
        table = az.summary(data, var_names=["alpha", "loc", "theta"], filter_vars="like")
    assert {"alpha_categorical", "loc[size]", "theta_categorical[no, colour=red]"} <= set(table.index)
    data.to_netcdf(str(tmp_path / "draws.nc"))
    read = az.from_netcdf(str(tmp_path / "draws.nc"))
    np.testing.assert_array_equal(read["posterior"]["mu"].values, data["posterior"]["mu"].values)
    assert read["posterior"].attrs["estimator"].startswith("MixedNB(")


def test_seeds_and_kept_features():
    """Equal seeds give equal draws, with or without a progress bar and for any kept features."""
    nb, _ = coins()
    all_, again = coin_draws()["posterior"], bnb.run_nuts(nb, COIN_PRIOR, seed=3, features=[7, 2])["posterior"]
    np.testing.assert_array_equal(again["alpha"].values, all_["alpha"].values)
    assert again["level"].values.tolist() == ["2=absent", "2=present", "7=absent", "7=present"]
    assert again["theta"].shape == (4, 1000, 1, 4)
    other = quiet(nb, COIN_PRIOR, seed=4, features=[])["posterior"]
    assert set(other.data_vars) == {"alpha", "class_prob"}
    assert not (other["alpha"].values == all_["alpha"].values).any()


@pytest.mark.filterwarnings("ignore:NUTS")
def test_draws_do_not_depend_on_how_often_progress_is_told(monkeypatch):
    """Calls of one transition each, as where one takes a second, give the draws of calls of a hundred."""
    nb, _ = coins()
    options = {"draws": 120, "warmup": 30, "chains": 2, "features": []}
    told: list[int] = []

    @contextmanager
    def progress(title: str, total: int):
        yield told.append
        assert sum(told) == total

    monkeypatch.setattr(programs, "progress", progress)
    monkeypatch.setattr(programs, "_SECONDS", 1e9)
    seldom = bnb.run_nuts(nb, COIN_PRIOR, **options)["posterior"]["alpha"].to_numpy()
    assert max(told) > 1
    assert told[0] == 0, "the first call compiles"
    told.clear()
    monkeypatch.setattr(programs, "_SECONDS", 1e-9)
    often = bnb.run_nuts(nb, COIN_PRIOR, **options)["posterior"]["alpha"].to_numpy()
    assert told == [0, *[1] * 150]
    np.testing.assert_array_equal(often, seldom)


# -- warnings --------------------------------------------------------------------------------------


def raised(samples: dict[str, np.ndarray], diverging: np.ndarray) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        nuts._diagnose(samples, diverging)
    assert all(w.category is UserWarning for w in caught)
    return [str(w.message) for w in caught]


def quantiles(draws: int, seed: int = 0) -> np.ndarray:
    """Four chains, each half of which has the quantiles of a normal distribution in random order."""
    rng = np.random.default_rng(seed)
    half = stats.norm.ppf((np.arange(draws // 2) + 0.5) / (draws // 2))
    return np.stack([np.concatenate([rng.permutation(half) for _ in range(2)]) for _ in range(4)])


def test_good_draws_are_not_warned_of():
    samples = {"alpha": quantiles(1000), "theta": np.stack([quantiles(1000, 1), np.ones((4, 1000))], axis=2)}
    assert raised(samples, np.zeros((4, 1000), bool)) == []


@pytest.mark.parametrize(
    ("samples", "diverging", "message"),
    [
        ({"alpha": quantiles(1000)}, 3, r"^NUTS: 3 of 4000 transitions diverged: .* longer warmup\.$"),
        (
            {"theta": quantiles(10_000), "alpha": quantiles(10_000) + 0.3 * np.arange(4)[:, None]},
            0,
            r"^NUTS: R-hat of 'alpha' is 1\.\d+: the chains disagree\. Raise warmup and draws\.$",
        ),
        (
            {"theta": quantiles(1000), "alpha": quantiles(100)[:, np.repeat(np.arange(100), 10)]},
            0,
            r"^NUTS: the effective sample size of 'alpha' is \d+, below 400.* Raise draws\.$",
        ),
    ],
    ids=["divergences", "R-hat", "ESS"],
)
def test_each_warning(samples, diverging, message):
    n = samples["alpha"].shape[1]
    found = raised(samples, np.arange(4 * n).reshape(4, n) < diverging)
    # Chains that disagree have few effective draws too.
    assert any(re.match(message, text) for text in found)
    assert len(found) == 1 + ("R-hat" in message)


def test_a_size_that_is_estimated_to_be_negative_is_no_size():
    """NumPyro estimates -41 for eight alternating draws."""
    draws = np.array([2.0, 2, 0, 2, 1, 2, 0, 2])
    (found,) = (text for text in raised({"alpha": draws[None]}, np.zeros((1, 8), bool)) if "effective" in text)
    assert re.match(
        r"NUTS: the effective sample size of 'alpha' cannot be estimated.*too few.*Raise warmup and draws", found
    )


def test_warnings_of_a_run_that_is_too_short_point_here():
    # Steps that were not adapted are rejected; after few of them the chains are still on their way.
    caught = [*pooled(warmup=1)[1], *pooled(warmup=5)[1]]
    messages = [str(w.message) for w in caught]
    for part in ("transitions diverged", "R-hat of ", "effective sample size of "):
        assert sum(part in message for message in messages) == 1
    assert {w.filename for w in caught if str(w.message).startswith("NUTS: ")} == {__file__}


# -- what is refused -------------------------------------------------------------------------------


FLAT = dist.ImproperUniform(dist.constraints.positive, (), ())


@pytest.mark.parametrize("hyperprior", [FLAT, {"pooled": FLAT}, dist.HalfNormal(1.0).mask(False)])
def test_flat_hyperpriors_are_refused_with_the_reason(hyperprior):
    with pytest.raises(
        ValueError,
        match=r"is improper, and the posterior would be improper as well, because the evidence",
    ):
        bnb.run_nuts(coins()[0], hyperprior)


@pytest.mark.parametrize(
    ("hyperprior", "message"),
    [
        ("flat", r"hyperprior='flat' must be None, 'symmetric', 'pooled', a NumPyro distribution"),
        (1.0, r"hyperprior=1\.0 must be None"),
        (stats.gamma(1.0), r"must be None, 'symmetric', 'pooled', a NumPyro distribution"),
        ({}, r"hyperprior=\{\} must be None"),
        ({"flat": dist.Gamma(1.0, 1.0)}, r"must be None"),
        ({"pooled": "Gamma"}, r"must be None"),
        ({"symmetric": dist.Gamma(1.0, 1.0), "pooled": dist.Gamma(1.0, 1.0)}, r"must be None"),
        (dist.LogNormal(np.zeros(2), 1.0), r"must be the distribution of one number"),
        (dist.Dirichlet(np.ones(3)), r"must be the distribution of one number"),
        (dist.Normal(0.0, 1.0), r"must be a continuous distribution of positive numbers"),
        (dist.Normal(50.0, 1.0), r"must be a continuous distribution of positive numbers"),
        (dist.Uniform(-3.0, -1.0), r"must be a continuous distribution of positive numbers"),
        (dist.Poisson(50.0), r"must be a continuous distribution of positive numbers"),
    ],
)
def test_hyperpriors_that_are_refused(hyperprior, message):
    refused(message, bnb.run_nuts, coins()[0], hyperprior)


@pytest.mark.slow("compiles kernels of its own")
def test_chains_do_not_start_where_the_density_is_not_finite():
    beyond = dist.LogNormal(800.0, 1.0)
    refused(r"the density is not finite at the starting point", bnb.run_nuts, coins()[0], beyond, progress=False)


@pytest.mark.parametrize(
    "hyperprior",
    [dist.Uniform(0.0, 3.0), dist.HalfCauchy(1.0), dist.TruncatedNormal(1.0, 2.0, low=0.0), dist.Pareto(0.1, 2.0)],
)
def test_hyperpriors_of_positive_numbers_are_taken(hyperprior):
    assert nuts.read_target(coins()[0].fitted_, hyperprior).alpha is hyperprior


@pytest.mark.filterwarnings("ignore:NUTS")
def test_a_vocabulary_too_large_for_pooled_is_refused_and_symmetric_samples_it():
    rng = np.random.default_rng(0)
    X, y = rng.poisson(1 / (1 + np.arange(10_685)), (40, 10_685)), np.arange(40) % 2
    nb = bnb.MultinomialNB().fit(X, y)
    refused(r"10,685 entries.*at most 4,096.*'symmetric'.*min_df=", bnb.run_nuts, nb, "pooled")
    groups = np.arange(40) % 3
    refused(r"21,372 entries.*minutes. Fit to fewer words", bnb.run_nuts, nb, X=X, y=y, groups=groups)
    data = bnb.run_nuts(nb, "symmetric", draws=20, warmup=20, chains=1, features=[])
    assert data["posterior"]["alpha"].shape == (1, 20)


def test_models_that_are_refused():
    nb = bnb.CategoricalNB(alpha=0.0)
    with pytest.raises(NotFittedError):
        bnb.run_nuts(nb)
    with pytest.raises(bnb.ImproperPosteriorError):
        bnb.run_nuts(nb.fit([["u"], ["v"]], ["a", "b"]))
    # The posterior is proper, and can be drawn from; but no density of a prior is there to start from.
    nb = nb.fit([["u"], ["v"], ["u"], ["v"]], ["a", "a", "b", "b"])
    assert bnb.posterior_draws(nb, 2)["theta"].shape == (2, 2, 2)
    refused(r"The prior is improper.*: alpha has a zero. Pass positive numbers", bnb.run_nuts, nb)
    assert nuts.read_target(nb.fitted_, "symmetric").kind == "symmetric"
    rates = bnb.PoissonNB(class_prior=[0.5, 0.5]).fit([[1.0], [2.0]], ["a", "b"])
    refused(r"applies to no hyperparameter of this classifier", bnb.run_nuts, rates, "pooled")
    rates.set_params(prior=bnb.GammaPoisson(0.0, 0.0), class_prior=None).fit([[1.0], [2.0]], ["a", "b"])
    refused(r"The prior is improper.*: prior has a zero", bnb.run_nuts, rates, "pooled")
    trees = bnb.TreeAveragedNB().fit([["u", "k"], ["v", None]] * 4, ["a", "b"] * 4)
    for hyperprior in (None, "symmetric"):
        refused(r"posterior draws: cells were missing", bnb.run_nuts, trees, hyperprior, error=NotImplementedError)


@pytest.mark.parametrize("options", [{"draws": 0}, {"warmup": 1.5}, {"chains": -1}])
def test_numbers_that_are_refused(options):
    ((name, value),) = options.items()
    refused(f"{name}={value}", bnb.run_nuts, coins()[0], **options)
