"""Posteriors given draws of hyperparameters: blocks without any keep their own, however many the draws are."""

import inspect
import warnings
from typing import Any

import jax
import numpy as np
import pytest
from numpyro import distributions as dist
from scipy import stats
from scipy.special import logsumexp

import bayesnb as bnb
from bayesnb import families
from bayesnb._util.precision import float64
from bayesnb.families.protocol import Family
from bayesnb.fitted import counting, scoring
from bayesnb.sampling import nuts
from bayesnb.sampling.programs import Hierarchy
from bayesnb.uncertainty import site_names
from bayesnb.uncertainty.class_probabilities import choose_sampler
from bayesnb.uncertainty.draws import ParameterDraws, origin
from bayesnb.uncertainty.given_draws import hyperparameter_sites, prior_given, sampled_hyperparameters
from tests.sampling.models import GROUP, MODELS, POOLED, WEIGHT, Y, fitted

KINDS = ("symmetric", "pooled")
HEAD = slice(0, 12)
RUNS = [(name, kind) for kind in KINDS for name in MODELS] + [(name, "grouped") for name in POOLED]


def prior_of(nb: Any, kind: Any) -> Any:
    """Prior whose hyperparameters are sampled; groups of rows share a dispersion that is not known."""
    prior = nb.fitted_.prior
    return prior.for_groups() if kind == "grouped" else prior


def values_of(nb: Any, kind: Any, n: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Values of the hyperparameters that come from no chain, (n, …) by site."""
    state, rng, values = nb.fitted_, np.random.default_rng(seed), {}
    for part in sampled_hyperparameters(prior_of(nb, kind), kind, site_names(state.encoding, state.prior)):
        for site, parameter in part.items():
            drawn = rng.lognormal(0.0, 0.7, (n, *parameter.shape))
            to_weights = parameter.of_weights
            values[site] = drawn if to_weights is None else np.stack([to_weights(v) for v in drawn])
    return values


def hyperparameters(nb: Any, kind: Any, n: int, seed: int = 0) -> ParameterDraws:
    """These values in the form of draws of the posterior of `nb`."""
    return ParameterDraws(values_of(nb, kind, n, seed), origin(nb.fitted_, kind))


def run_with(values: dict[str, np.ndarray], monkeypatch: Any, nb: Any, kind: Any, **rows: Any) -> Any:
    """Result of `run_nuts` whose chain has these values of the hyperparameters."""
    n = len(next(iter(values.values())))
    fields = ("diverging", "acceptance_rate", "n_steps", "energy", "lp")
    chain = {site: v[None] for site, v in values.items()}, {field: np.zeros((1, n)) for field in fields}
    monkeypatch.setattr(nuts, "_sample", lambda *_, **__: chain)
    return bnb.run_nuts(nb, None if kind == "grouped" else kind, draws=n, chains=1, **rows)


@float64
def joint_given_one(nb: Any, X: Any, kind: Any, values: dict[str, np.ndarray], statistics: Any) -> np.ndarray:
    """(N, C) log p(class, row) of the single model that has these hyperparameters, and the statistics of some rows."""
    state = nb.fitted_
    prior = prior_of(nb, kind)
    names = hyperparameter_sites(prior, kind, site_names(state.encoding, state.prior))
    model = prior_given(prior.unit(), names, values).update(statistics)
    rows, n = state.encode(X)
    return scoring.score(scoring.read(state.encoding, model, "predictive"), rows, n, scoring.joint)


def statistics_of_rows(nb: Any, X: Any, which: np.ndarray) -> Any:
    """Statistics of the rows `which` (N,) of bool; zeros if there is none."""
    if not which.any():
        return jax.tree.map(np.zeros_like, nb.statistics_)
    state = nb.fitted_
    rows, n = state.encode(X[which])
    return counting.count_rows(state.encoding, rows, state.label_index(Y[which], n), WEIGHT[which])


@pytest.mark.slow("as many kernels as classifiers", but="pooled")
@pytest.mark.parametrize(("name", "kind"), RUNS)
def test_predictions_are_averages_over_the_single_models_of_the_draws(name, kind, monkeypatch):
    """With missing cells and weights, in each group of rows, and however many draws there are.

    What has no hyperparameters, such as binned densities, whose cuts all classes share, is the same in all draws.
    """
    nb, X = fitted(name)
    values = values_of(nb, kind, 9)
    grouped: dict[str, Any] = {"X": X, "y": Y, "sample_weight": WEIGHT, "groups": GROUP} if kind == "grouped" else {}
    for group in ("north", "south", "elsewhere") if grouped else ("all",):
        statistics = statistics_of_rows(nb, X, (group == GROUP) | (group == "all"))
        each = [{site: v[s] for site, v in values.items()} for s in range(9)]
        joints = np.array([joint_given_one(nb, X[HEAD], kind, one, statistics) for one in each])
        for n in (1, 2, 9):
            data = run_with({site: v[:n] for site, v in values.items()}, monkeypatch, nb, kind, **grouped)
            expected = logsumexp(joints[:n], axis=0)
            expected -= logsumexp(expected, axis=1, keepdims=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # few draws
                found = nb.predict_log_proba(X[HEAD], draws=data, groups=[group] * 12 if grouped else None)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def blocks_without_hyperparameters(name: str) -> list[int]:
    return [b for b, family in enumerate(fitted(name)[0].prior_.blocks) if not family.hyperprior("pooled")]


FIXED = [name for name in MODELS if blocks_without_hyperparameters(name)]


def draw_parameters(nb: Any, n: int, seed: int) -> dict[str, np.ndarray]:
    """Draws of the parameters, each given other hyperparameters."""
    state = nb.fitted_
    target = Hierarchy(state.prior, "pooled", dist.LogNormal(-1.0, 1.5), site_names(state.encoding, state.prior))
    masks = [np.ones(len(columns.axis()[0]), bool) for columns in state.encoding.blocks]
    return target.finish(hyperparameters(nb, "pooled", n, seed), state.statistics, masks, seed)[0]


@pytest.mark.slow("draws of every classifier", but="BinnedNB")
@pytest.mark.parametrize("name", FIXED)
def test_parameters_without_hyperparameters_have_the_draws_of_the_exact_posterior(name):
    """Whether they are drawn five by five, or all at once."""
    nb, _ = fitted(name)
    sites = site_names(nb.encoding_, nb.prior_)
    exact, at_once = bnb.posterior_draws(nb, 1000, seed=1), draw_parameters(nb, 1000, 2)
    by_fives = [draw_parameters(nb, 5, seed) for seed in range(60)]
    for site in (site for b in blocks_without_hyperparameters(name) for site in sites[b].values()):
        for drawn in (at_once[site], np.concatenate([run[site] for run in by_fives])):
            for power in (1, 2):
                assert (abs(difference(drawn**power, exact[site] ** power)) <= 5).all(), (site, power)


def difference(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Difference of the means over the leading axes in its standard errors; 0 where both are constant."""
    error = np.sqrt(first.var(axis=0) / len(first) + second.var(axis=0) / len(second))
    return (first.mean(axis=0) - second.mean(axis=0)) / np.where(error > 0, error, 1e-12)


def own_hyperparameters(nb: Any, n: int) -> ParameterDraws:
    """Those of the prior of `nb` itself, n times: 1 for levels and classes, and the derived loc and rate of numbers."""
    state = nb.fitted_
    values = {site: np.ones_like(v) for site, v in hyperparameters(nb, "symmetric", n).items()}
    names = hyperparameter_sites(state.prior, "symmetric", site_names(state.encoding, state.prior))
    for family, own in zip(state.prior.blocks, names, strict=True):
        derived = {site: getattr(family, name)[:1] for name, site in own.items() if name != "alpha"}
        values |= {site: np.repeat(value, n, axis=0) for site, value in derived.items()}
    return ParameterDraws(values, origin(state, "symmetric"))


def test_moments_given_a_long_row_are_those_in_closed_form_under_equal_hyperparameters():
    """The class of the row has fewer words than the row: each draw of θ has variates of its own for the row, too."""
    nb = bnb.MultinomialNB().fit([[1, 0, 0], [20, 70, 300], [30, 50, 300]], ["ash", "elm", "elm"])
    (mean, sd), (found, spread) = (
        bnb.log_odds_moments(nb, [[20, 9, 4]], given="row", draws=draws)
        for draws in (None, own_hyperparameters(nb, 500))
    )
    assert (abs(found - mean) <= 5 * sd / np.sqrt(500)).all()
    np.testing.assert_allclose(spread, sd, rtol=0.15)


@pytest.mark.slow("draws of every classifier")
@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("TAN, binned", "KDB")])  # no density of rows
def test_draws_given_the_row_are_those_of_the_exact_posterior_under_equal_hyperparameters(name):
    """Each draw has variates of its own, also those of the row: Kolmogorov and Smirnov's test of P(class | row, θ)."""
    nb, X = fitted(name)
    X = X.iloc[:4]
    found, exact = (
        choose_sampler(nb.fitted_, "row", "draws", draws, 3).map(nb.fitted_, X, lambda p, _: p.transpose(1, 2, 0))
        for draws in (own_hyperparameters(nb, 800), 4000)
    )
    p_values = [stats.ks_2samp(*pair).pvalue for pair in zip(found.reshape(12, -1), exact.reshape(12, -1), strict=True)]
    assert min(p_values) > 1e-5


def test_no_family_whose_classes_share_parameters_has_hyperparameters():
    """Posteriors under several draws are side by side as classes, which then must share nothing."""
    every = [c for c in vars(families).values() if inspect.isclass(c) and issubclass(c, Family)]
    shared = {c for c in every if c.classes_share_parameters and not inspect.isabstract(c)}
    found = {type(f): f for name in MODELS for f in fitted(name)[0].prior_.blocks if f.classes_share_parameters}
    assert set(found) == shared
    assert not any(family.hyperprior(kind) for family in found.values() for kind in KINDS)


@pytest.mark.slow("NUTS compiles for seconds")
@pytest.mark.parametrize("name", ["BinnedNB", "TreeAveragedNB"])
def test_a_run_of_few_draws_predicts_what_a_run_of_many_does(name):
    """The classes alone have a hyperparameter here, and it matters little."""
    nb, X = fitted(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few draws
        for draws in (5, 200):
            data = bnb.run_nuts(nb, "symmetric", draws=draws, warmup=200, chains=1, progress=False)
            assert abs(nb.predict_proba(X, draws=data) - nb.predict_proba(X)).max() < 0.03
