"""Partial pooling: the density of the hyperparameters, draws and predictions for groups of rows."""

import warnings
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpyro import distributions as dist
from numpyro.infer.util import log_density
from scipy import stats
from scipy.special import betaln, gammaln, logsumexp

import bayesnb as bnb
from bayesnb._util.precision import float64
from bayesnb.families.negative_binomial import DISPERSIONS
from bayesnb.sampling.nuts import count_groups, read_target
from bayesnb.sampling.programs import Hierarchy
from bayesnb.uncertainty import site_names
from bayesnb.uncertainty.draws import parameter_shapes
from examples.new_family import BetaGeometric
from tests.raises import refused
from tests.sampling import models

SITES = np.array(["north", "south", "west"])
RNG = np.random.default_rng(4)
GROUP = SITES[RNG.integers(0, 3, 60)]
Y = np.array(["ill", "well"])[RNG.integers(0, 2, 60)]
X = pd.DataFrame({"fever": RNG.choice(["high", "none", "some"], 60), "cough": RNG.choice(["no", "yes"], 60)})
X["age"] = RNG.normal(50 + 5 * (GROUP == "west"), 10.0)
X.loc[3, "fever"], X.loc[5, "age"] = None, np.nan
CONCENTRATION = stats.lognorm(2.0, scale=np.exp(1.0))


@cache
def fitted() -> Any:
    return bnb.MixedNB(numbers="gaussian").fit(X, Y)


@cache
def sampled() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bnb.run_nuts(fitted(), X=X, y=Y, groups=GROUP, draws=400, warmup=300, chains=1, progress=False)


def log_evidence_of_levels(count: np.ndarray, alpha: np.ndarray) -> float:
    """log B(α + n) - log B(α) of one simplex."""
    return float(
        (gammaln(alpha + count) - gammaln(alpha)).sum() + gammaln(alpha.sum()) - gammaln(alpha.sum() + count.sum())
    )


def log_evidence_of_numbers(x: np.ndarray, loc: float, kappa: float, a: float, b: float) -> float:
    """Log density of numbers one after the other, each a Student t given those before."""
    total = 0.0
    for value in x:
        total += stats.t.logpdf(value, 2 * a, loc, np.sqrt(b * (kappa + 1) / (a * kappa)))
        distance = value - loc
        b += kappa * distance**2 / (2 * (kappa + 1))
        loc, kappa, a = loc + distance / (kappa + 1), kappa + 1, a + 0.5
    return total


def test_the_density_of_the_hyperparameters_is_their_prior_times_the_evidence_of_each_group():
    """Every term by SciPy, from rows and not from statistics."""
    nb = fitted()
    state, prior = nb.fitted_, nb.prior_
    _, statistics = count_groups(state, X, Y, None, GROUP)
    target = Hierarchy(prior, "grouped", dist.LogNormal(1.0, 2.0), site_names(state.encoding, prior))
    rng = np.random.default_rng(0)
    weight, class_weight = rng.exponential(size=(2, 5)), rng.exponential(size=(1, 2))
    values = {
        "class_total": np.array([2.6]),
        "class_prob_mean_weight": class_weight,
        "total": np.array([1.8, 0.9]),
        "theta_mean_weight": weight,
        "kappa": np.array([2.5]),
        "a": np.array([1.7]),
        "loc": np.array([[48.0], [53.0]]),
        "variance": np.array([[90.0], [140.0]]),
    }
    found = float64(lambda: log_density(target.collapsed, (statistics,), {}, values)[0])()
    expected = CONCENTRATION.logpdf([2.6, 1.8, 0.9, 2.5, 1.7]).sum() - weight.sum() - class_weight.sum()
    for simplexes in (class_weight, weight[:, :3], weight[:, 3:]):
        expected += 10.0 * simplexes.shape[1] * np.log(simplexes.sum(axis=1)).sum()
    numbers = next(f for f in prior.blocks if hasattr(f, "kappa"))
    m, kappa, a, b = (
        float(np.asarray(v)[0, 0]) for v in (numbers.loc, numbers.kappa, numbers.concentration, numbers.rate)
    )
    expected += stats.norm.logpdf(values["loc"], m, np.sqrt(b / (a * kappa))).sum()
    expected += stats.lognorm.logpdf(values["variance"], 1.0, scale=b / a).sum()
    for site in SITES:
        here = site == GROUP
        count = np.array([(Y[here] == c).sum() for c in ("ill", "well")])
        expected += log_evidence_of_levels(count, 2.6 * class_weight[0] / class_weight.sum())
        for c, label in enumerate(("ill", "well")):
            rows = X[here & (label == Y)]
            for name, levels, at, total in (
                ("fever", ["high", "none", "some"], [0, 1, 2], 1.8),
                ("cough", ["no", "yes"], [3, 4], 0.9),
            ):
                count = np.array([(rows[name] == level).sum() for level in levels])
                base = weight[c, at] / weight[c, at].sum()
                expected += log_evidence_of_levels(count, total * base)
            age = rows["age"].dropna().to_numpy()
            expected += log_evidence_of_numbers(age, values["loc"][c, 0], 2.5, 1.7, 1.7 * values["variance"][c, 0])
    assert float(found) == pytest.approx(expected, rel=1e-10)


CALLS = pd.DataFrame({"calls": RNG.poisson(2.0 + 3.0 * (GROUP == "west")), "visits": RNG.poisson(0.2, 60)})
CALLS.loc[7, "calls"] = np.nan
HOURS = pd.DataFrame({"wait": RNG.exponential(4.0, 60), "call": RNG.exponential(0.1, 60)})
RATES: dict[str, tuple[Any, pd.DataFrame]] = {
    "poisson": (bnb.PoissonNB, CALLS),
    "negative binomial": (bnb.NegativeBinomialNB, CALLS),
    "exponential": (bnb.ExponentialNB, HOURS),
}


def log_integral(x: np.ndarray, kind: str, a: float, mean: float, r: float) -> float:
    """Log probability of cells, of which a rate from its distribution of mean `mean` is integrated out numerically."""
    log_rate, step = np.linspace(-30.0, 12.0, 40_001, retstep=True)
    rate = np.exp(log_rate)
    if kind == "negative binomial":
        log_density = stats.betaprime.logpdf(rate, a, 1 + r * a / mean, scale=r) + log_rate
    else:
        log_density = stats.gamma.logpdf(rate, a, scale=mean / a) + log_rate
    for value in x:
        log_density += {
            "poisson": stats.poisson.logpmf(value, rate),
            "negative binomial": stats.nbinom.logpmf(value, r, r / (r + rate)),
            "exponential": log_rate - rate * value,
        }[kind]
    return float(np.log(step) + logsumexp(log_density))


@pytest.mark.parametrize("kind", RATES)
def test_the_density_of_hyperparameters_of_rates_is_their_prior_times_integrals_over_rates(kind):
    """Bayes' identity, from rows and not from statistics, and by quadrature."""
    make, table = RATES[kind]
    nb = make(class_prior=[0.3, 0.7]).fit(table, Y)
    _, statistics = count_groups(nb.fitted_, table, Y, None, GROUP)
    target = read_target(nb.fitted_, None, grouped=True)
    ratio, mean = np.array([0.8, 2.5]), np.array([[2.4, 0.3], [3.9, 0.1]])
    r = np.array([[0.4, 3.0], [1.7, 20.0]])
    values = {"a": np.array(1.6), "a_ratio": ratio, "rate_mean": mean, "common_dispersion": r}
    found = float(float64(lambda: log_density(target.collapsed, (statistics,), {}, values)[0])())
    prior = nb.prior_.blocks[0]
    expected = CONCENTRATION.logpdf(1.6) + stats.lognorm.logpdf(ratio, 1.0).sum()
    expected += np.log([0.3, 0.7]) @ [(Y == "ill").sum(), (Y == "well").sum()]
    expected += stats.gamma.logpdf(mean, prior.concentration, scale=1 / np.asarray(prior.rate)).sum()
    if kind == "negative binomial":
        share, log_r = np.exp(prior.log_prob()), np.log(DISPERSIONS)
        centre = share @ log_r
        sd = np.sqrt(share @ log_r**2 - centre**2)
        expected += stats.lognorm.logpdf(r, sd, scale=np.exp(centre)).sum()
    if kind != "exponential":  # The program leaves out x!.
        expected += gammaln(table.stack() + 1.0).sum()
    for site, (c, label), (j, column) in product(SITES, enumerate(("ill", "well")), enumerate(table)):
        cells = table.loc[(site == GROUP) & (label == Y), column].dropna().to_numpy()
        expected += log_integral(cells, kind, 1.6 * ratio[j], mean[c, j], r[c, j])
    assert found == pytest.approx(expected, rel=1e-9)


def test_groups_that_do_not_differ_have_the_evidence_of_one_group():
    """In the limit a → ∞ the mean rates are the rates: their density, times the evidence, is that without groups."""
    nb = bnb.PoissonNB(class_prior=[0.3, 0.7]).fit(CALLS, Y)
    _, statistics = count_groups(nb.fitted_, CALLS, Y, None, GROUP)
    target = read_target(nb.fitted_, None, grouped=True)
    rate = np.array([[2.4, 0.3], [3.9, 0.1]])

    def log_evidence(a: float) -> float:
        values = {"a": np.array(a), "a_ratio": np.ones(2), "rate_mean": rate}
        log_joint = float64(lambda: log_density(target.collapsed, (statistics,), {}, values)[0])()
        return float(log_joint) - CONCENTRATION.logpdf(a) - 2 * stats.lognorm.logpdf(1.0, 1.0)

    likelihood = nb.prior_.blocks[0].likelihood(rate).log_likelihood(nb.statistics_.blocks[0]).sum()
    expected = likelihood + np.log([0.3, 0.7]) @ [(Y == "ill").sum(), (Y == "well").sum()]
    prior = nb.prior_.blocks[0]
    expected += stats.gamma.logpdf(rate, prior.concentration, scale=1 / np.asarray(prior.rate)).sum()
    assert log_evidence(1e9) == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.slow("NUTS compiles for seconds")
@pytest.mark.parametrize("kind", RATES)
def test_predictions_by_rates_are_averages_over_the_hyperparameters_of_closed_forms(kind):
    """By hand and SciPy, for known groups and a new one; and the rates have their distribution given these."""
    make, table = RATES[kind]
    nb = make().fit(table, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = bnb.run_nuts(nb, X=table, y=Y, groups=GROUP, draws=100, warmup=200, chains=1, progress=False)
    drawn = {site: v.to_numpy()[0] for site, v in data["posterior"].data_vars.items()}
    rows, where = table.iloc[[0, 8, 9]], ["north", "west", "elsewhere"]
    found = nb.predict_proba(rows, draws=data, groups=where)
    for i, site in enumerate(where):
        joint = np.zeros((100, 2))
        for c, label in enumerate(("ill", "well")):
            joint[:, c] = (
                drawn["class_total"][:, 0] * drawn["class_prob_mean"][:, c] + ((site == GROUP) & (label == Y)).sum()
            )
        joint /= joint.sum(axis=1, keepdims=True)
        for (c, label), (j, column) in product(enumerate(("ill", "well")), enumerate(table)):
            cells = table.loc[(site == GROUP) & (label == Y), column].dropna()
            a = drawn["a"] * drawn["a_ratio"][:, j]
            b = a / drawn["rate_mean"][:, c, j]
            more = (len(cells), cells.sum()) if kind == "exponential" else (cells.sum(), len(cells))
            a, b, x = a + more[0], b + more[1], rows[column].iloc[i]
            uniform = stats.gamma(a, scale=1 / b).cdf
            if kind == "negative binomial":
                r = drawn["common_dispersion"][:, c, j]
                log_ratio = betaln(1 + b * r + r, a + x) - betaln(1 + b * r, a)
                joint[:, c] *= np.exp(log_ratio - betaln(r, x + 1) - np.log(r + x))
                uniform = stats.betaprime(a, 1 + b * r, scale=r).cdf
            elif kind == "poisson":
                joint[:, c] *= stats.nbinom.pmf(x, a, b / (b + 1))
            else:
                joint[:, c] *= stats.lomax.pdf(x, a, scale=b)
            name = site if site in SITES else "(new)"
            at = list(data["posterior"]["group"].to_numpy()).index(name)
            assert stats.kstest(uniform(drawn["rate"][:, at, c, j]), "uniform").pvalue > 1e-4
        np.testing.assert_allclose(found[i], joint.mean(axis=0) / joint.mean(axis=0).sum(), rtol=1e-9)


def test_hyperparameters_of_several_kinds_of_columns_have_names_of_their_own():
    table = pd.concat([CALLS, HOURS, X[["age"]]], axis=1)
    nb = bnb.MixedNB(poisson=["calls", "visits"], exponential=["wait", "call"], numbers="gaussian").fit(table, Y)
    names = [site for part in read_target(nb.fitted_, None, grouped=True).hyperparameters() for site in part]
    assert len(set(names)) == len(names)
    assert {"a_poisson", "rate_mean_poisson", "a_exponential", "rate_mean_exponential", "a", "variance"} < set(names)
    one = bnb.MixedNB(poisson=["calls"], numbers="gaussian").fit(table[["calls", "age"]], Y)
    names = [site for part in read_target(one.fitted_, None, grouped=True).hyperparameters() for site in part]
    assert {"a_of_rate", "rate_mean", "a_of_sigma2", "kappa", "loc", "variance"} < set(names)


@pytest.mark.slow("NUTS compiles for seconds")
def test_draws_name_their_groups_and_a_new_one():
    posterior = sampled()["posterior"]
    refused("pass groups=", fitted().predict_proba, X, draws=sampled())
    assert list(posterior["group"].to_numpy()) == ["north", "south", "west", "(new)"]
    assert posterior["theta"].dims == ("chain", "draw", "group", "class", "level")
    assert posterior["class_prob"].shape == (1, 400, 4, 2)
    np.testing.assert_allclose(posterior["class_prob"].sum("class"), 1.0)
    assert posterior["theta_mean"].dims == ("chain", "draw", "class", "level")
    assert bnb.run_nuts.__doc__ is not None
    # What is known of a site's parameters is more than what is known of those of a new site.
    spread = posterior["mu"].std(("chain", "draw"))
    assert (spread.sel(group="(new)") > 1.2 * spread.sel(group=list(SITES)).max("group")).all()


@pytest.mark.slow("NUTS compiles for seconds")
def test_predictions_are_averages_of_the_closed_form_of_the_group_over_the_hyperparameters():
    """By hand, for rows of levels: Σ_s Π (n + α)/(N + α₀) of the group's counts, over all classes."""
    levels = X[["fever", "cough"]]
    nb = bnb.CategoricalNB().fit(levels, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = bnb.run_nuts(nb, X=levels, y=Y, groups=GROUP, draws=100, warmup=200, chains=1, progress=False)
    drawn = {site: v.to_numpy()[0] for site, v in data["posterior"].data_vars.items()}
    rows, where = levels.iloc[[0, 8, 9]], ["north", "west", "elsewhere"]
    found = nb.predict_proba(rows, draws=data, groups=where)
    for i, site in enumerate(where):
        joint = np.zeros((100, 2))
        for s in range(100):
            here = site == GROUP
            alpha = drawn["class_total"][s] * drawn["class_prob_mean"][s]
            count = np.array([(Y[here] == c).sum() for c in ("ill", "well")]) + alpha
            joint[s] = count / count.sum()
            for c, label in enumerate(("ill", "well")):
                data_of_class = levels[here & (label == Y)]
                for simplex, (name, known, at) in enumerate(
                    (("fever", ["high", "none", "some"], slice(0, 3)), ("cough", ["no", "yes"], slice(3, 5)))
                ):
                    base = drawn["theta_mean"][s, c, at]
                    concentration = drawn["total"][s, simplex] * base
                    count = np.array([(data_of_class[name] == level).sum() for level in known]) + concentration
                    joint[s, c] *= (count / count.sum())[known.index(rows.iloc[i][name])]
        expected = joint.mean(axis=0) / joint.mean(axis=0).sum()
        np.testing.assert_allclose(found[i], expected, rtol=1e-9)
    one_prior = nb.predict_proba(rows, draws=data, groups=where, class_prior=[0.5, 0.5])
    assert np.abs(one_prior - found).max() > 1e-3
    assert list(nb.predict(rows, draws=data, groups=where)) == [nb.classes_[c] for c in found.argmax(axis=1)]


def test_bad_groups_are_refused():
    nb = fitted()
    refused("X has 60 rows, y has 59|59", bnb.run_nuts, nb, X=X, y=Y, groups=GROUP[1:])
    refused("Pass X and y, the rows and labels", bnb.run_nuts, nb, groups=GROUP)
    refused("by strings or integers", bnb.run_nuts, nb, X=X, y=Y, groups=np.linspace(0.0, 1.0, 60))
    refused("has the reserved name", bnb.run_nuts, nb, X=X, y=Y, groups=["(new)", *GROUP[1:]])
    refused("do not add up", bnb.run_nuts, nb, X=X[1:], y=Y[1:], groups=GROUP[1:])
    refused("cannot be used with groups=", bnb.run_nuts, nb, "symmetric", X=X, y=Y, groups=GROUP)
    refused("only with draws that were made with groups", nb.predict_proba, X, groups=GROUP)
    refused("must be the result of run_nuts", nb.predict_proba, X, draws=bnb.to_arviz(nb, draws=10), groups=GROUP)


# The first columns that cannot be pooled, where these are not the first of all.
NOT_POOLED = {"MixedNB, binned": "height", "KDB": "height", "BinnedNB": "height"}


@pytest.mark.parametrize("name", models.MODELS)
def test_groups_pool_every_column_or_are_refused_with_the_columns(name):
    """Of counts the class shares alone were pooled: 80 sites in 10 regions, log loss 3.25, and 1.44 without groups."""
    nb, X = models.fitted(name)
    if name in models.POOLED:
        for family in nb.prior_.for_groups().blocks:
            unknown = set(parameter_shapes(family)) - {"dispersion"}  # which is given, or a hyperparameter itself
            assert {h.parameter for h in family.hyperprior("grouped").values()} == unknown
        assert read_target(nb.fitted_, None, grouped=True).kind == "grouped"
        return
    column = NOT_POOLED.get(name, X.columns[0])
    refused(
        rf"run_nuts: groups= cannot pool the parameters of columns \['{column}'.*\]: .*\. (Leave|Use|To pool)",
        bnb.run_nuts,
        nb,
        X=X,
        y=models.Y,
        sample_weight=models.WEIGHT,
        groups=models.GROUP,
        error=NotImplementedError,
    )


def test_a_new_family_is_pooled_if_it_has_a_hyperprior_of_groups(monkeypatch):
    family = BetaGeometric(np.ones((2, 1)), np.ones((2, 1)))
    assert family.groups_refusal() is None
    monkeypatch.setattr(BetaGeometric, "hyperprior", lambda self, kind: {})
    assert "no distribution that groups share" in str(family.groups_refusal())


def simulate(rng: np.random.Generator, n_groups: int, alpha: float, kappa: float, sd: float) -> Callable[[int], Any]:
    """Function that draws rows of groups, given parameters from the model: 4 columns of levels, 2 of numbers."""
    base = rng.dirichlet(np.ones(3), (4, 2)) * 0.5 + rng.dirichlet(np.ones(3), (4, 1)) * 0.5
    theta = np.array([[[rng.dirichlet(alpha * 3 * m) for m in row] for row in base] for _ in range(n_groups)])
    mean = rng.normal(0, sd, (2, 2)) + rng.normal(0, 1 / np.sqrt(kappa), (n_groups, 2, 2))

    def rows(per_group: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
        group = np.repeat(np.arange(n_groups), per_group)
        label = rng.integers(0, 2, len(group))
        cumulative = theta.cumsum(axis=-1)[group, :, label]
        levels = (rng.random((len(group), 4, 1)) > cumulative).sum(axis=-1)
        table = pd.DataFrame(levels.clip(0, 2), columns=list("abcd")).astype(pd.CategoricalDtype([0, 1, 2]))
        table[["u", "v"]] = rng.normal(mean[group, label], 1.0)
        return table, label, group

    return rows


@pytest.mark.slow("NUTS of several tables")
def test_partial_pooling_predicts_better_than_no_and_complete_pooling():
    """Simulated groups of 15 rows; the mean log loss of new rows of the same groups, over four tables."""
    losses = []
    for seed in range(4):
        rows = simulate(np.random.default_rng(seed), 12, 2.0, 4.0, 0.4)
        (X, y, g), (Z, t, h) = rows(15), rows(100)
        nb = bnb.MixedNB(numbers="gaussian").fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = bnb.run_nuts(nb, X=X, y=y, groups=g, draws=200, warmup=200, chains=2, progress=False)
        alone = np.zeros((len(Z), 2))
        for k in range(12):
            known = bnb.MixedNB(numbers="gaussian").partial_fit(X[g == k], y[g == k], [0, 1])
            alone[h == k] = known.predict_proba(Z[h == k])
        each = nb.predict_proba(Z, draws=data, groups=h), nb.predict_proba(Z), alone
        losses.append([-np.log(p[np.arange(len(t)), t]).mean() for p in each])
    partial, complete, none = np.mean(losses, axis=0)
    assert partial < complete - 0.05
    assert partial < none - 0.02


@pytest.mark.calibration
def test_ranks_of_the_hyperparameters_are_uniform():
    """Simulation-based calibration: tables from the model with hyperparameters from their priors."""
    names = ("class_total", "total", "kappa", "a")
    ranks = np.array([ranks_of_one(np.random.default_rng([7, seed])) for seed in range(200)])
    for i, name in enumerate(names):
        count = np.bincount((ranks[:, i] * 10).astype(int).clip(0, 9), minlength=10)
        assert stats.chisquare(count).pvalue > 1e-3, (name, count)


@pytest.mark.calibration
def test_ranks_of_rates_and_their_hyperparameters_are_uniform():
    """Simulation-based calibration of Poisson rates: tables of six groups, with hyperparameters from their priors."""
    ranks = pd.DataFrame([ranks_of_rates(np.random.default_rng([8, seed])) for seed in range(200)])
    for name in ranks:
        count = np.bincount((ranks[name] * 10).astype(int).clip(0, 9), minlength=10)
        assert stats.chisquare(count).pvalue > 1e-3, (name, count)


def ranks_of_rates(rng: np.random.Generator) -> dict[str, float]:
    """Share of posterior draws below the true rates and hyperparameters, of one simulated table."""
    a, ratio, mean = CONCENTRATION.rvs(random_state=rng), rng.lognormal(size=3), rng.gamma(2.0, 1.0, (2, 3))
    # Gamma variates of tiny shapes are 0 in floating point, with which counts are 0.
    rate = rng.gamma(a * ratio, mean / (a * ratio), (6, 2, 3))
    group, y = np.repeat(np.arange(6), 12), rng.integers(0, 2, 72)
    X = rng.poisson(rate[group, y]).astype(float)
    nb = bnb.PoissonNB(prior=bnb.GammaPoisson(2.0, 1.0), class_prior=[0.5, 0.5]).partial_fit(X, y, [0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = bnb.run_nuts(nb, X=X, y=y, groups=group, draws=500, warmup=500, chains=2, progress=False)
    thin = {name: v.to_numpy()[:, ::10].reshape(100, *v.shape[2:]) for name, v in data["posterior"].data_vars.items()}
    drawn = {
        "a": (thin["a"], a),
        "a_ratio": (thin["a_ratio"][:, 0], ratio[0]),
        "rate_mean": (thin["rate_mean"][:, 1, 0], mean[1, 0]),
        "rate": (thin["rate"][:, 2, 0, 1], rate[2, 0, 1]),
        "rate of a new group": (thin["rate"][:, 6, 0, 1], rng.gamma(a * ratio[1], mean[0, 1] / (a * ratio[1]))),
    }
    return {name: float((values < truth).mean()) for name, (values, truth) in drawn.items()}


def ranks_of_one(rng: np.random.Generator) -> list[float]:
    """Share of posterior draws below the true hyperparameters, of one simulated table."""
    first = bnb.MixedNB(numbers="gaussian", gaussian_prior=bnb.NormalInverseGamma(0.0, 0.5, 3.0, 2.0))
    class_total, kappa, a, *total = CONCENTRATION.rvs(6, random_state=rng)
    base, class_base = rng.dirichlet(np.ones(3), (3, 2)), rng.dirichlet(np.ones(2))
    loc, variance = rng.normal(0.0, np.sqrt(2.0 / (3.0 * 0.5)), 2), 2.0 / 3.0 * rng.lognormal(size=2)
    parts = []
    for g in range(6):
        log_prob = dirichlet(rng, class_total * class_base)
        label = rng.choice(2, 20, p=log_prob)
        cells = {"x": np.empty(20)}
        for j in range(3):
            theta = [dirichlet(rng, total[j] * base[j, c]) for c in range(2)]
            cells[f"level {j}"] = np.array([rng.choice(3, p=theta[c]) for c in label]).astype(str)
        # Gamma variates of tiny shapes are 0 in floating point: the largest variance is one that a sum of squares has.
        sigma2 = np.minimum(a * variance / np.maximum(rng.gamma(a, size=2), 1e-300), 1e30)
        mu = rng.normal(loc, np.sqrt(sigma2 / kappa))
        cells["x"] = rng.normal(mu[label], np.sqrt(sigma2[label]))
        parts.append(pd.DataFrame(cells).assign(label=label, group=g))
    table = pd.concat(parts, ignore_index=True)
    X, y = table.drop(columns=["label", "group"]), table["label"]
    categories = {name: pd.CategoricalDtype(["0", "1", "2"]) for name in X if name != "x"}
    X = X.astype(categories)
    nb = first.partial_fit(X, y, [0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = bnb.run_nuts(nb, X=X, y=y, groups=table["group"], draws=500, warmup=500, chains=2, progress=False)
    truth = {"class_total": class_total, "total": total[0], "kappa": kappa, "a": a}
    drawn = {name: data["posterior"][name].to_numpy()[:, ::10].reshape(100, -1)[:, 0] for name in truth}
    return [float((drawn[name] < value).mean()) for name, value in truth.items()]


def dirichlet(rng: np.random.Generator, alpha: np.ndarray) -> np.ndarray:
    """Dirichlet variate, also of tiny concentrations, by gamma variates in log space."""
    log_gamma = np.log(rng.gamma(alpha + 1.0)) + np.log(rng.random(len(alpha))) / alpha
    weight = np.exp(log_gamma - log_gamma.max())
    return weight / weight.sum()
