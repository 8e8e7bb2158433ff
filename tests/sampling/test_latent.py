"""Latent classes: Gibbs sampling beside the enumeration of all allocations, NUTS, calibration, and bad input."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
import numpyro
import pandas as pd
import pytest
from numpyro import distributions as dist
from numpyro.infer import MCMC, NUTS
from scipy import stats
from scipy.special import gammaln, softmax

import bayesnb as bnb
from bayesnb._util.precision import float64
from bayesnb.sampling import latent as latent_module
from tests.raises import refused
from tests.sampling.monte_carlo import errors


def mixture(X: Any, k: int = 2, nb: Any = None, **options: Any) -> Any:
    """A fitted mixture; EM from few starts, as its mode is only where chains start."""
    estimator = bnb.CategoricalNB() if nb is None else nb
    return bnb.NaiveBayesMixture(k, estimator=estimator, n_init=2, **options).fit(X)


def quiet(m: Any, X: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bnb.sample_latent(m, X, progress=False, **{"chains": 2, "warmup": 100} | options)


# -- enumeration -----------------------------------------------------------------------------------


def moments(alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First and second moments of Dirichlet variates with concentrations (…, L)."""
    total = alpha.sum(axis=-1, keepdims=True)
    return alpha / total, alpha * (alpha + 1) / (total * (total + 1))


def enumerated(X: np.ndarray, k: int, label: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Exact E[π], E[θ] and E[θ²] (K, L), and E[Σ_c π_c θ_c²] (L,), by a sum over the allocations of the rows.

    `label` (N,) is a class, or -1. All Dirichlet concentrations are 1.
    """
    levels = [(x, level) for x in X.T for level in sorted({v for v in x if v is not None})]
    column = np.cumsum([0, *(len({v for v in x if v is not None}) for x in X.T)])
    is_level = np.array([[v == level for v in x] for x, level in levels]).T
    log_weight, values = [], []
    for allocation in itertools.product(*[range(k) if c < 0 else [c] for c in label]):
        z = (np.array(allocation)[:, None] == np.arange(k)).astype(float)
        count, number = z.sum(axis=0) + 1.0, z.T @ is_level + 1.0
        tables = np.split(number, column[1:-1], axis=1)
        groups = [count[None], *tables]
        log_weight.append(sum((gammaln(g).sum(axis=1) - gammaln(g.sum(axis=1))).sum() for g in groups))
        pi, (theta, square) = moments(count)[0], (np.hstack(part) for part in zip(*map(moments, tables), strict=True))
        values.append(np.concatenate([pi, theta.ravel(), square.ravel(), pi @ square]))
    weight = np.exp(np.array(log_weight) - max(log_weight))
    mean = weight @ np.array(values) / weight.sum()
    n_levels = column[-1]
    pi, theta, square, symmetric = np.split(mean, np.cumsum([k, k * n_levels, k * n_levels]))
    return np.concatenate([pi, theta, square]), symmetric, theta


def small_table(seed: int) -> np.ndarray:
    """Rows of two or three levels in two columns, with a missing cell."""
    rng = np.random.default_rng(seed)
    X = np.array([["a", "b", "c"][v] for v in rng.integers(0, 3, 14)], dtype=object).reshape(7, 2)
    X[0] = ["a", "b"]
    X[1, 1] = None
    return X


SEEDS = [0, *(pytest.param(s, marks=pytest.mark.slow("further tables")) for s in (1, 2))]
SEEDS += [pytest.param(s, marks=pytest.mark.calibration) for s in range(3, 20)]


@pytest.mark.parametrize("seed", SEEDS)
def test_moments_are_those_of_the_sum_over_all_allocations(seed):
    """Of symmetric functions without labels, and of each parameter where one row of each class is labelled."""
    k = 2 + seed % 2
    X = small_table(seed)[: 8 - k]
    m = mixture(X, k)
    free = np.full(len(X), -1)
    labelled = np.where(np.arange(len(X)) < k, np.arange(len(X)), -1)
    drawn = parts(quiet(m, X, draws=1500, seed=seed))
    symmetric = np.einsum("...c,...cl->...l", drawn[0], drawn[1] ** 2)
    assert np.abs(errors(symmetric - enumerated(X, k, free)[1])).max() < 4.5
    pi, theta = parts(quiet(m, X, draws=1500, seed=seed, y=labelled))
    flat = np.concatenate([pi, *(v.reshape(*v.shape[:2], -1) for v in (theta, theta**2))], axis=2)
    assert np.abs(errors(flat - enumerated(X, k, labelled)[0])).max() < 4.5


def parts(data: Any) -> tuple[np.ndarray, np.ndarray]:
    return tuple(data["posterior"][site].to_numpy() for site in ("class_prob", "theta"))


@pytest.mark.slow("8,000 sweeps")
def test_memberships_are_the_posterior_probabilities_of_the_classes():
    """P(z_i = c | X) by enumeration, given a labelled row of each class."""
    X, k = small_table(5), 2
    label = np.array([0, 1, -1, -1, -1, -1, -1])
    data = quiet(mixture(X, k), X, draws=8000, y=label)
    found = data["constant_data"]["membership"].to_numpy()
    levels = [sorted({v for v in x if v is not None}) for x in X.T]
    weight, total = np.zeros(()), np.zeros((7, 2))
    for allocation in itertools.product(*[range(k) if c < 0 else [c] for c in label]):
        z = np.array(allocation)
        count = np.bincount(z, minlength=k) + 1.0
        log_weight = gammaln(count).sum() - gammaln(count.sum())
        for x, own in zip(X.T, levels, strict=True):
            n = np.array([[((x == level) & (z == c)).sum() for level in own] for c in range(k)]) + 1.0
            log_weight += (gammaln(n).sum(axis=1) - gammaln(n.sum(axis=1))).sum()
        weight = weight + np.exp(log_weight)
        total += np.exp(log_weight) * (z[:, None] == np.arange(k))
    np.testing.assert_allclose(found, total / weight, atol=0.015)  # five errors of the mean of 16,000 draws


@pytest.mark.slow("16,000 sweeps")
def test_arcs_give_a_column_other_probabilities_for_each_level_of_its_parent():
    """Posterior means of θ by enumeration: a test whose accuracy differs between populations, and one that has one."""
    X = np.array([["p", "q", "p", "q", "q", "p", "q"], list("abbabaa"), list("xyyxxyy")], dtype=object).T
    label = np.array([0, 1, -1, -1, -1, -1, -1])
    groups = [(0, None), (1, "p"), (1, "q"), (2, None)]
    total, mean = 0.0, np.zeros(16)
    for allocation in itertools.product(*[range(2) if c < 0 else [c] for c in label]):
        z, log_weight, means = np.array(allocation), 0.0, []
        for c, (j, population) in itertools.product(range(2), groups):
            rows = (z == c) & (True if population is None else X[:, 0] == population)
            count = np.array([(X[rows, j] == level).sum() for level in sorted(set(X[:, j]))]) + 1.0
            log_weight += gammaln(count).sum() - gammaln(count.sum())
            means.append(count / count.sum())
        classes = np.bincount(z) + 1.0
        weight = np.exp(log_weight + gammaln(classes).sum())
        total, mean = total + weight, mean + weight * np.concatenate(means)
    data = quiet(mixture(X, 2, bnb.NetworkNB(parents={1: 0})), X, draws=8000, y=label)
    theta = parts(data)[1]
    assert np.abs(errors(theta.reshape(*theta.shape[:2], 16) - mean / total)).max() < 4.5


@pytest.mark.parametrize("label", [[-1] * 7, [0, 1, -1, -1, 1, -1, 0]], ids=["unlabelled", "some labelled"])
def test_the_log_likelihood_of_a_row_sums_over_its_possible_classes(label):
    X = small_table(3)
    data = quiet(mixture(X), X, draws=5, chains=2, y=label)
    pi, theta = parts(data)
    levels = [str(v) for v in data["posterior"]["level"].to_numpy()]
    for i, row in enumerate(X):
        at = [levels.index(f"{j}={v}") for j, v in enumerate(row) if v is not None]
        classes = [0, 1] if label[i] < 0 else [label[i]]
        expected = np.log((pi * theta[..., at].prod(axis=-1))[..., classes].sum(axis=-1))
        np.testing.assert_allclose(data["log_likelihood"]["row"][..., i], expected, rtol=1e-12)


@pytest.mark.slow("6,000 sweeps")
def test_the_log_likelihood_of_labelled_rows_gives_leave_one_out_by_enumeration():
    """E[1 / p(row | θ)] over the posterior is p(others) / p(all): the identity by which ArviZ leaves rows out."""
    X = np.array([list("aababba"), list("xyxyyxx")], dtype=object).T
    label = np.array([0, 1, -1, -1, 1, -1, 0])

    def evidence(rows):
        total = 0.0
        for allocation in itertools.product(*[range(2) if c < 0 else [c] for c in label[rows]]):
            z = np.array(allocation)
            count = [np.bincount(z, minlength=2)]
            count += [np.array([((x == v) & (z == c)).sum() for v in set(x)]) for x in X[rows].T for c in range(2)]
            total += np.exp(sum(gammaln(n + 2.0).sum() - gammaln((n + 2.0).sum()) for n in count))
        return total

    data = quiet(mixture(X, 2, bnb.CategoricalNB(alpha=2.0, class_alpha=2.0)), X, draws=3000, y=label)
    everything = np.arange(7)
    for i in everything:
        expected = evidence(np.delete(everything, i)) / evidence(everything)
        inverse = np.exp(-data["log_likelihood"]["row"].to_numpy()[..., i])
        assert abs(errors((inverse / expected - 1.0)[..., None])).max() < 4.5, i


def test_patterns_stand_for_their_rows():
    """Rows that are repeated, and their frequencies as weights, have the same draws; a row of weight 0 is nothing."""
    X = np.array([["a", "x"], ["b", "y"], ["a", "y"]], dtype=object)
    times = np.array([30, 40, 0])
    m = mixture(np.repeat(X, times, axis=0))
    repeated = parts(quiet(m, np.repeat(X, times, axis=0), draws=20))
    weighted = quiet(m, X, draws=20, sample_weight=times)
    for one, other in zip(repeated, parts(weighted), strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.isnan(weighted["constant_data"]["membership"].to_numpy()[2]).all()
    assert weighted["log_likelihood"]["row"].shape == (2, 20, 70)


# -- NUTS ------------------------------------------------------------------------------------------


def normal() -> Any:
    sigma2 = numpyro.sample("sigma2", dist.InverseGamma(3.0, 2.0))
    return dist.Normal(numpyro.sample("mu", dist.Normal(0.0, (sigma2 / 0.5) ** 0.5)), sigma2**0.5)


def poisson() -> Any:
    return dist.Poisson(numpyro.sample("rate", dist.Gamma(2.0, 0.5)))


def bernoulli() -> Any:
    return dist.Bernoulli(numpyro.sample("theta", dist.Beta(1.0, 1.0)))


def latent(cell: Callable[[], Any], X: np.ndarray, y: np.ndarray) -> None:
    """Two latent classes of columns with a distribution, some rows of known classes; other classes are summed out."""
    pi = numpyro.sample("class_prob", dist.Dirichlet(np.ones(2)))
    with numpyro.plate("classes", 2, dim=-2), numpyro.plate("columns", X.shape[1]):
        distribution = cell()
    joint = jax.numpy.log(pi) + distribution.log_prob(X[:, None]).sum(axis=-1)
    known = (y[:, None] == np.arange(2)) | (y[:, None] < 0)
    numpyro.factor("rows", jax.nn.logsumexp(jax.numpy.where(known, joint, -jax.numpy.inf), axis=-1).sum())


@pytest.mark.slow("NUTS on the marginal likelihood")
@pytest.mark.parametrize(
    ("cell", "nb"),
    [
        (normal, bnb.GaussianNB(prior=bnb.NormalInverseGamma(0.0, 0.5, 3.0, 2.0))),
        (poisson, bnb.PoissonNB(prior=bnb.GammaPoisson(2.0, 0.5))),
        (bernoulli, bnb.BernoulliNB()),
    ],
)
def test_draws_agree_with_nuts_on_the_marginal_likelihood(cell, nb):
    rng, z = np.random.default_rng(0), np.arange(40) % 2
    y = np.where(np.arange(40) < 6, z, -1)
    X = {
        normal: rng.normal(z[:, None] * 2.0, 1.0, (40, 2)),
        poisson: rng.poisson(1.0 + 3.0 * z[:, None], (40, 2)).astype(float),
        bernoulli: (rng.random((40, 4)) < 0.2 + 0.6 * z[:, None]).astype(float),
    }[cell]
    data = quiet(mixture(X, 2, nb), X, draws=4000, chains=4, y=y)
    options = {"num_chains": 4, "chain_method": "vectorized", "progress_bar": False}
    sampler = MCMC(NUTS(partial(latent, cell)), num_warmup=500, num_samples=2000, **options)
    float64(sampler.run)(jax.random.key(0), X, y)
    for site, values in sampler.get_samples(group_by_chain=True).items():
        mine, theirs = data["posterior"][site].to_numpy(), np.asarray(values)
        mine = mine[..., 1::2] if site == "theta" else mine  # absent, present
        for power in (1, 2):
            a, b = mine**power, theirs**power
            error = np.hypot(a.mean(axis=(0, 1)) / errors(a), b.mean(axis=(0, 1)) / errors(b))
            assert (abs(a.mean(axis=(0, 1)) - b.mean(axis=(0, 1))) < 4.5 * error).all(), site


# -- calibration -----------------------------------------------------------------------------------


def separated() -> Any:
    """Priors that separate and name the classes: Beta(2, 8) of an item in one, Beta(8, 2) in the other."""
    levels = bnb.Dirichlet(np.array([[8.0, 2.0] * 5, [2.0, 8.0] * 5]), np.repeat(np.arange(5), 2), 5)
    return bnb.NaiveBayes(bnb.Dirichlet(np.ones((1, 2)), np.zeros(2, int), 1), (levels,))


CASES = {
    "classes named by the prior": bnb.BernoulliNB(prior=separated()),
    "classes of ten rows are known": bnb.BernoulliNB(),
    "exchangeable classes, relabelled": bnb.BernoulliNB(),
}


def memberships(pi: np.ndarray, theta: np.ndarray, X: np.ndarray) -> np.ndarray:
    """(N, K) P(class | row, π, θ) of rows of zeros and ones."""
    joint = np.log(pi) + X @ np.log(theta.T) + (1 - X) @ np.log1p(-theta.T)
    return np.asarray(softmax(joint, axis=1))


@pytest.mark.calibration
@pytest.mark.parametrize("case", CASES)
def test_ranks_are_uniform_and_intervals_cover(case):
    """500 tables with parameters from the prior: the ranks of these among the draws.

    Relabelling is a function of a draw and of the table, so that ranks are uniform if it is applied to the truth, too.
    """
    rng, ranks, covered = np.random.default_rng(3), [], []
    for seed in range(500):
        pi = rng.dirichlet(np.ones(2))
        theta = rng.beta([[2], [8]], [[8], [2]], (2, 5)) if "prior" in case else rng.beta(1, 1, (2, 5))
        z = rng.choice(2, 60, p=pi)
        X = (rng.random((60, 5)) < theta[z]).astype(float)
        m = bnb.NaiveBayesMixture(2, estimator=CASES[case], n_init=1).fit(X)
        labels = {"y": np.where(np.arange(60) < 10, z, -1)} if "known" in case else {}
        data = quiet(m, X, draws=50, chains=16, seed=seed, **labels)
        order = np.arange(2)
        if "relabelled" in case:
            overlap = memberships(pi, theta, X).T @ m.predict_proba(X)
            order = order if np.trace(overlap) >= np.trace(overlap[::-1]) else order[::-1]
        truth = np.array([*theta[order].flat, pi[order][0]])
        pis, thetas = parts(data)
        draws = np.concatenate([thetas[..., 1::2].reshape(800, 10), pis.reshape(800, 2)[:, :1]], axis=1)
        ranks.append((draws[::8] < truth).mean(axis=0))
        lower, upper = np.quantile(draws, [0.05, 0.95], axis=0)
        covered.append((lower <= truth) & (truth <= upper))
    for rank in (np.array(ranks).T * 10).astype(int).clip(0, 9):
        assert stats.chisquare(np.bincount(rank, minlength=10)).pvalue > 1e-4
    assert 0.87 < np.mean(covered) < 0.93


# -- what is said ----------------------------------------------------------------------------------


def test_bad_input_is_refused_and_what_is_not_identified_is_said():
    X = np.repeat(np.array([["a", "x"], ["b", "y"], ["a", "y"]], dtype=object), 10, axis=0)
    m = mixture(X)
    sample = bnb.sample_latent
    refused("not an integer.*pass frequencies", sample, m, X, sample_weight=np.full(30, 0.5))
    refused(r"y has more classes.*\[0, 1, 2\].*2 components", sample, m, X, y=[0, 1, 2, *[-1] * 27])
    refused(r"y has more classes.*\['a', 'b', 'c'\]", sample, m, X, y=["a", "b", "c", *[None] * 27])
    refused("X has 30 rows, y has 29 labels", sample, m, X, y=np.full(29, -1))
    refused("takes a NaiveBayesMixture", sample, bnb.CategoricalNB().fit(X, X[:, 0]), X, error=TypeError)
    refused("improper", sample, mixture(X, nb=bnb.CategoricalNB(alpha=[[1.0, 0.0], [1.0, 1.0]])), X)
    with pytest.warns(UserWarning, match="frequencies of the 4 possible rows of X do not identify 5 parameters"):
        sample(m, X, draws=100, warmup=50, progress=False)
    many = mixture(X, 4)
    with pytest.warns(UserWarning, match="do not identify"):
        sample(many, X, draws=20, warmup=20, progress=False)


def test_priors_and_labels_name_the_classes():
    """Classes are permuted only where nothing but their order tells them apart."""
    X = np.repeat(np.array([["a", "x"], ["b", "y"]], dtype=object), 20, axis=0)
    symmetric = quiet(mixture(X), X, draws=50)
    informative = mixture(X, nb=bnb.CategoricalNB(prior=prior_of_two_classes()))
    assert float(symmetric["posterior"].attrs["relabelled"]) >= 0.0
    assert float(quiet(informative, X, draws=50)["posterior"].attrs["relabelled"]) == 0.0
    labelled = quiet(mixture(X), X, draws=50, y=np.where(np.arange(40) == 0, 1, -1))
    assert float(labelled["posterior"].attrs["relabelled"]) == 0.0
    assert labelled["constant_data"]["membership"].to_numpy()[1, 1] > 0.5
    for missing in (None, np.nan, pd.NA):
        unknown = quiet(mixture(X), X, draws=50, y=[1, *[missing] * 39])
        for group, name in (("posterior", "theta"), ("constant_data", "membership")):
            np.testing.assert_array_equal(unknown[group][name], labelled[group][name])


class Site:
    """A label that is no number and no text."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __lt__(self, other: Site) -> bool:
        return self.name < other.name

    def __repr__(self) -> str:
        return self.name


@pytest.mark.parametrize(
    ("low", "high", "missing", "names"),
    [
        (False, True, None, [0, 1]),
        (0.0, 1.0, np.nan, [0, 1]),
        (1, 2, -1, [1, 2]),
        ("absent", "present", pd.NA, ["absent", "present"]),
        (Site("A"), Site("B"), None, ["A", "B"]),
        (pd.Timestamp("2020"), pd.Timestamp("2021"), pd.NaT, None),
    ],
)
def test_labels_of_any_type_are_the_classes_in_sorted_order(low, high, missing, names):
    """The same draws as with the numbers of the classes, under the names of the labels."""
    X = np.repeat(np.array([["a", "x"], ["b", "y"]], dtype=object), 20, axis=0)
    m = mixture(X)
    options = {"draws": 10, "warmup": 5, "chains": 1}
    rows = [1, *[-1] * 19, 0, *[-1] * 19]
    expected = quiet(m, X, y=rows, **options)
    labels = pd.Series([{0: low, 1: high, -1: missing}[v] for v in rows], dtype=object)
    data = quiet(m, X, y=labels, **options)
    for group, name in (("posterior", "theta"), ("posterior", "class_prob"), ("constant_data", "membership")):
        np.testing.assert_array_equal(data[group][name], expected[group][name])
    assert names is None or data["posterior"]["class"].to_numpy().tolist() == names
    np.testing.assert_array_equal(data["constant_data"]["class"], data["posterior"]["class"])
    np.testing.assert_array_equal(m.predict_proba(X, draws=data), m.predict_proba(X, draws=expected))


def test_classes_without_a_label_have_their_number():
    X = np.repeat(np.array([["a", "x"], ["b", "y"], ["a", "y"]], dtype=object), 20, axis=0)
    data = quiet(mixture(X, 3), X, draws=5, y=["yes", *[None] * 19, "no", *[None] * 39])
    assert data["posterior"]["class"].to_numpy().tolist() == ["no", "yes", "(class 2)"]
    assert data["constant_data"]["membership"].to_numpy()[[0, 20]].argmax(axis=1).tolist() == [1, 0]


def prior_of_two_classes() -> Any:
    concentration = np.array([[5.0, 1.0, 5.0, 1.0], [1.0, 5.0, 1.0, 5.0]])
    levels = bnb.Dirichlet(concentration, np.array([0, 0, 1, 1]), 2)
    return bnb.NaiveBayes(bnb.Dirichlet(np.ones((1, 2)), np.zeros(2, int), 1), (levels,))


def test_arviz_chooses_the_number_of_classes():
    """Two separated classes of five columns: one class is far worse, by PSIS of rows."""
    import arviz as az

    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 200)
    X = pd.DataFrame((rng.random((200, 5)) < np.where(z, 0.9, 0.1)[:, None]).astype(int), columns=list("abcde"))
    data = {str(k): quiet(mixture(X, k), X, draws=200, chains=2) for k in (1, 2)}
    table = az.compare(data)
    assert table.index[0] == "2"


# -- readings --------------------------------------------------------------------------------------


def test_tables_intervals_and_decisions_take_the_draws():
    """All of them are means and quantiles over the draws, here by hand."""
    X = np.repeat(np.array([["a", "x"], ["b", "y"], ["a", "y"]], dtype=object), 10, axis=0)
    m = mixture(X)
    data = quiet(m, X, draws=200, y=np.where(np.arange(30) == 0, 0, np.where(np.arange(30) == 10, 1, -1)))
    pi, theta = (v.reshape(-1, *v.shape[2:]) for v in parts(data))
    table = bnb.parameter_table(m, 0.8, draws=data)
    assert list(table) == ["class", "feature", "level", "mean", "sd", "lower", "upper"]
    np.testing.assert_allclose(table["mean"], np.r_[pi.mean(axis=0), theta.mean(axis=0).ravel()])
    np.testing.assert_allclose(table["upper"][2:], np.quantile(theta, 0.9, axis=0).ravel())
    joint = pi[:, None] * np.stack([theta[:, :, 0] * theta[:, :, 2], theta[:, :, 1] * theta[:, :, 3]], axis=1)
    proba = joint / joint.sum(axis=2, keepdims=True)
    rows = X[[0, 10]]
    expected = joint.mean(axis=0) / joint.mean(axis=0).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(m.predict_proba(rows, draws=data), expected)
    lower, upper = bnb.predict_interval(m, rows, given="data", draws=data)
    np.testing.assert_allclose((lower, upper), np.quantile(proba, [0.05, 0.95], axis=0))
    loss = pd.DataFrame([[0.0, 5.0], [1.0, 0.0]], index=["wait", "treat"], columns=[0, 1])
    np.testing.assert_allclose(
        bnb.decide(m, rows, loss, draws=data, given="data").risk, (expected @ loss.T).min(axis=1)
    )
    refused("has point estimates of its parameters", bnb.parameter_table, m, error=NotImplementedError)
    refused("has point estimates of its parameters", bnb.predict_interval, m, rows, error=NotImplementedError)


def test_unlabelled_classes_are_named_by_the_mode_beside_labelled_ones():
    """Three classes, of which one has a labelled row: the other two may be permuted, and only these."""
    patterns = latent_module.Patterns((), np.array([5, 7, 9]), np.full(3, -1), np.arange(3))
    mode = np.array([[0.9, 0.1, 0.0], [0.0, 0.8, 0.2], [0.1, 0.0, 0.9]])
    sampler = latent_module.Gibbs(None, None, (), patterns, mode, np.array([1, 2]))
    turned = mode[:, [2, 0, 1]]  # class 0 of the mode is class 1 of this draw, and so on
    orders = sampler._orders(np.stack([mode, mode[:, [0, 2, 1]], turned], axis=1))
    assert orders.tolist()[:2] == [[0, 1, 2], [0, 2, 1]]
    assert orders[2, 0] == 0
    assert sorted(orders[2, 1:]) == [1, 2]


def test_values_that_are_no_level_are_reported_once():
    X = np.repeat(np.array([["a", "x"], ["b", "y"]], dtype=object), 10, axis=0)
    m = mixture(X)
    strange = np.vstack([X, [["c", "x"]]])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bnb.sample_latent(m, strange, draws=20, warmup=5, chains=1, progress=False)
    assert sum("does not know" in str(w.message) for w in caught) == 1
