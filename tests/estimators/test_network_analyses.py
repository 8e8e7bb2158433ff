"""Posterior analyses of classifiers with structure, against definitions and refits."""

import itertools
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar
from scipy.special import digamma, polygamma
from sklearn.base import clone

import bayesnb as bnb
from bayesnb.encoding import Conditional
from bayesnb.uncertainty import site_names
from tests.estimators.networks import brute_of, log_proba, table
from tests.raises import refused
from tests.strategies import thorough

X, Y = table(60, 0)
MAKE = {
    "tan": lambda **options: bnb.TAN(**options),
    "spode": lambda **options: bnb.SPODE(1, **options),
    "network": lambda **options: bnb.NetworkNB({1: [0, 2], 3: [1, 0]}, **options),
}
each = pytest.mark.parametrize("nb", list(MAKE), indirect=True)


@cache
def fitted(name):
    return MAKE[name]().fit(X, Y)


@pytest.fixture
def nb(request):
    return fitted(request.param)


def simplexes(nb, row=None, label=None):
    """Posterior concentrations by loops: of the classes, and of each class, column and values of its parents."""
    brute = brute_of(nb)
    rows, labels = (X, Y) if row is None else (np.vstack([X, row]), np.append(Y, label))
    counts = brute.count(rows, labels, np.ones(len(rows)))
    found = {
        (c, j, given): np.array([counts.get((c, j, (*given, v)), 0.0) + 1 for v in own])
        for c in brute.classes
        for j, own in enumerate(brute.levels)
        for given in itertools.product(*(brute.levels[p] for p in brute.parents.get(j, ())))
    }
    return np.array([counts.get((c,), 0.0) + 1 for c in brute.classes]), found


def cells(nb, row):
    """Column, values of its parents, and position of its own value, of each cell."""
    brute = brute_of(nb)
    return [
        (j, tuple(row[p] for p in brute.parents.get(j, ())), own.index(row[j])) for j, own in enumerate(brute.levels)
    ]


def drawn_scores(nb, row, size, seed, label=None):
    """(size, C) log p(class, row | θ) of draws of θ given the data and, if it has a `label`, the row."""
    rng = np.random.default_rng(seed)
    of_class, others = simplexes(nb) if label is None else simplexes(nb, row[None], label)
    scores = np.log(rng.dirichlet(of_class, size))
    for i, c in enumerate(nb.classes_):
        for j, given, at in cells(nb, row):
            scores[:, i] += np.log(rng.dirichlet(others[c, j, given], size)[:, at])
    return scores


def drawn_given_row(nb, row, size, seed):
    """(size, C) P(class | row, θ) of draws of θ given the data and the row, whose class is unknown."""
    weight = nb.predict_proba(row[None])[0]
    parts = [drawn_scores(nb, row, round(size * w), seed + i, nb.classes_[i]) for i, w in enumerate(weight)]
    return np.exp(log_proba(np.concatenate(parts)))


# -- parameters --------------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
@each
def test_every_parameter_has_its_beta_distribution(nb):
    found = bnb.parameter_table(nb, prob=0.8)
    _, others = simplexes(nb)
    assert len(found) == 2 + sum(map(len, others.values()))
    brute = brute_of(nb)
    for _, row in found[found["feature"] != "(class)"].iterrows():
        j = int(row["feature"])
        parents = brute.parents.get(j, ())
        if parents:
            assert isinstance(row["level"], Conditional)
            assert [name for name, _ in row["level"].given] == [str(p) for p in parents]
            given, level = tuple(value for _, value in row["level"].given), row["level"].level
            assert str(row["level"]) == f"{level} | " + ", ".join(f"{p}={v}" for p, v in row["level"].given)
        else:
            given, level = (), row["level"]
        alpha = others[row["class"], j, given]
        own = alpha[brute.levels[j].index(level)]
        beta = stats.beta(own, alpha.sum() - own)
        assert row["count"] == own - 1
        expected = [beta.mean(), beta.std(), *beta.ppf([0.1, 0.9]), len(alpha) / alpha.sum()]
        np.testing.assert_allclose(list(row[["mean", "sd", "lower", "upper", "prior_weight"]]), expected, rtol=1e-9)
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(row["mle"], np.divide(own - 1, alpha.sum() - len(alpha)), rtol=1e-12)


def test_draws_of_some_columns():
    whole = bnb.posterior_draws(fitted("network"), 5, features=["3"])["theta"]
    assert whole.shape == (5, 2, 2 * 3 * 3)
    np.testing.assert_allclose(whole.reshape(5, 2, 6, 3).sum(axis=3), 1)


# -- rows --------------------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
@each
@pytest.mark.parametrize("method", thorough(["moments", "draws"], ["moments"]))
def test_intervals_are_quantiles_of_the_posterior_given_the_row(nb, method):
    lower, upper = bnb.predict_interval(nb, X[:4], prob=0.8, method=method, draws=4000, seed=2)
    for i, row in enumerate(X[:4]):
        expected = np.quantile(drawn_given_row(nb, row, 20_000, i)[:, 1], [0.1, 0.9])
        np.testing.assert_allclose([lower[i, 1], upper[i, 1]], expected, rtol=0, atol=0.03)
        np.testing.assert_allclose(lower[i, 0], 1 - upper[i, 1], rtol=0, atol=1e-9)


@pytest.mark.slow("a second view of what quick tests see")
@each
def test_entropy_is_split_as_the_draws_split_it(nb):
    found = bnb.decompose_uncertainty(nb, X[:4])
    proba = nb.predict_proba(X[:4])
    np.testing.assert_allclose(found["total"], stats.entropy(proba, axis=1), rtol=0, atol=5e-3)
    np.testing.assert_allclose(found["total"], found["aleatoric"] + found["epistemic"], rtol=1e-10)
    for i, row in enumerate(X[:4]):
        drawn = drawn_given_row(nb, row, 20_000, i)
        assert found["aleatoric"][i] == pytest.approx(stats.entropy(drawn, axis=1).mean(), abs=0.01)
        top = proba[i].argmax()
        assert found["p_top"][i] == pytest.approx((drawn.argmax(axis=1) == top).mean(), abs=0.03)


@pytest.mark.slow("compiles kernels of its own")
@each
def test_log_odds_have_the_moments_of_log_probabilities(nb):
    mean, sd = bnb.log_odds_moments(nb, X[:4], against="elm")
    of_class, others = simplexes(nb)
    for i, row in enumerate(X[:4]):
        centre, spread = digamma(of_class[0]) - digamma(of_class[1]), polygamma(1, of_class).sum()
        for sign, c in ((1, "ash"), (-1, "elm")):
            for j, given, at in cells(nb, row):
                alpha = others[c, j, given]
                centre += sign * (digamma(alpha[at]) - digamma(alpha.sum()))
                spread += polygamma(1, alpha[at]) - polygamma(1, alpha.sum())
        np.testing.assert_allclose([mean[i, 0], sd[i, 0]], [centre, np.sqrt(spread)], rtol=1e-10)
    assert (mean[:, 1] == 0).all()


# -- the prior, and other models -----------------------------------------------------------------------


@pytest.mark.slow("a second view of what quick tests see")
@each
def test_strength_by_evidence_is_the_best_one(nb):
    found = bnb.tune_alpha(nb, X, Y, by="evidence")
    fixed = bnb.NetworkNB(nb.parents_)

    def loss(log_alpha):
        brute = brute_of(nb, float(np.exp(log_alpha)))
        return -brute.evidence(brute.count(X, Y, np.ones(60)))

    best = minimize_scalar(loss, bounds=(-3, 6), method="bounded", options={"xatol": 1e-8})
    assert found.objective == pytest.approx(-best.fun, abs=1e-6)
    assert np.log(found.alpha) == pytest.approx(best.x, abs=1e-2)
    assert found.estimator.parents_ == nb.parents_
    expected = fixed.set_params(alpha=found.alpha).fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(found.estimator.predict_proba(X), expected, rtol=1e-10)


@pytest.mark.slow("compiles kernels of its own")
@each
def test_bayes_factor_against_naive_bayes(nb):
    naive = bnb.CategoricalNB().fit(X, Y)
    found = bnb.bayes_factor(nb, naive)
    expected = [brute_of(m).evidence(brute_of(m).count(X, Y, np.ones(60))) for m in (nb, bnb.NetworkNB().fit(X, Y))]
    assert found.log == pytest.approx(expected[0] - expected[1], abs=1e-9)
    assert len(found.notes) == isinstance(nb, bnb.TAN)  # which chose its tree on these rows
    assert bnb.bayes_factor(naive, nb).log == -found.log
    refused("same rows", bnb.bayes_factor, nb, bnb.CategoricalNB().fit(X, np.roll(Y, 1)))
    refused("levels", bnb.bayes_factor, nb, bnb.CategoricalNB(categories=[["q", "u", "v", "w"]] * 4).fit(X, Y))


@pytest.mark.slow("compiles kernels of its own")
def test_sensitivity_is_that_of_refits():
    found = bnb.prior_sensitivity(fitted("network"), X[:10], alpha=(0.2, 5), steps=5)
    proba = fitted("network").predict_proba(X[:10])
    top = proba.argmax(axis=1)
    each_alpha = [MAKE["network"](alpha=a).fit(X, Y).predict_proba(X[:10]) for a in (*np.geomspace(0.2, 5, 5), 1.0)]
    own = np.stack([p[np.arange(10), top] for p in each_alpha])
    np.testing.assert_allclose(found["lower"], own.min(axis=0), rtol=1e-10)
    np.testing.assert_allclose(found["upper"], own.max(axis=0), rtol=1e-10)
    changes = (np.stack([p.argmax(axis=1) for p in each_alpha]) != top).any(axis=0)
    np.testing.assert_array_equal(found["label_changes"], changes)
    h = 1e-4
    ends = [MAKE["network"](alpha=np.exp(s * h)).fit(X, Y).predict_proba(X[:10])[np.arange(10), top] for s in (-1, 1)]
    slope = np.diff([np.log(p / (1 - p)) for p in ends], axis=0)[0] / (2 * h)
    np.testing.assert_allclose(found["d_logit_d_log_alpha"], slope, rtol=0, atol=1e-6)


@pytest.mark.slow("other variants compile kernels of their own", but="network")
@each
def test_prior_predictive_draws_rows_from_the_network(nb):
    """Reference: ancestral sampling in loops."""
    nb, size, rng = bnb.NetworkNB(nb.parents_, alpha=0.4).fit(X, Y), 1500, np.random.default_rng(0)
    brute = brute_of(nb)
    order = sorted(range(4), key=lambda j: depth(brute, j))
    expected = []
    for _ in range(size):
        prob = rng.dirichlet(np.ones(2))
        truth = int(rng.random() < prob[1])
        scores, row = np.log(prob), {}
        for j in order:
            theta = rng.dirichlet(np.full(len(brute.levels[j]), 0.4), 2)
            row[j] = rng.choice(len(theta[0]), p=theta[truth])
            scores = scores + np.log(theta[:, row[j]])
        expected.append(np.exp(log_proba(scores[None]))[0, truth])
    found = bnb.prior_predictive(nb, 4000, seed=1)
    error = np.hypot(np.std(expected) / np.sqrt(size), found.std() / np.sqrt(4000))
    assert abs(found.mean() - np.mean(expected)) < 4 * error
    assert stats.ks_2samp(found, expected).pvalue > 1e-4


def depth(brute, j):
    return 1 + max((depth(brute, p) for p in brute.parents.get(j, ())), default=0)


# -- others' objects ---------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
def test_arviz():
    data = bnb.to_arviz(fitted("network"), X[:6], Y[:6], draws=30, chains=2, seed=3, likelihood="row")
    theta = data["posterior"]["theta"]
    names = theta.coords["level"].values.tolist()
    assert names[:2] == ["0=u", "0=v"]
    assert "3=w | 1=v, 0=u" in names
    assert len(set(names)) == len(names) == theta.shape[-1]
    drawn = bnb.posterior_draws(fitted("network"), 60, seed=3)
    np.testing.assert_array_equal(theta.values.reshape(60, 2, -1), drawn["theta"])
    brute = brute_of(fitted("network"))
    for i, row in enumerate(X[:6]):
        c = int(Y[i] == "elm")
        expected = np.log(drawn["class_prob"][:, c])
        for j in range(4):
            given = ", ".join(f"{p}={row[p]}" for p in brute.parents.get(j, ()))
            at = names.index(f"{j}={row[j]} | {given}" if given else f"{j}={row[j]}")
            expected = expected + np.log(drawn["theta"][:, c, at])
        found = data["log_likelihood"]["row"].values.reshape(60, 6)[:, i]
        np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.slow("NumPyro compiles for seconds")
def test_nuts_agrees_with_the_closed_form():
    data = bnb.run_nuts(fitted("network"), draws=500, warmup=300, chains=2, seed=0, progress=False)
    found = data["posterior"]["theta"].values.reshape(1000, 2, -1)
    table_ = bnb.parameter_table(fitted("network"))
    table_ = table_[table_["feature"] != "(class)"]
    mean = table_["mean"].to_numpy().reshape(2, -1)
    sd = table_["sd"].to_numpy().reshape(2, -1)
    assert (abs(found.mean(axis=0) - mean) < 6 * sd / np.sqrt(400)).all()


# -- numbers beside ----------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("named", [False, True])
def test_gaussian_columns_are_a_factor(named):
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(60, 2)) + (Y == "elm")[:, None]
    frame = pd.DataFrame({"a": X[:, 0], "s": numbers[:, 0], "b": X[:, 1], "c": X[:, 2], "t": numbers[:, 1]})
    parents = {"b": "a", "c": ["a", "b"]}
    if named:
        rows = frame.to_numpy(dtype=object)
        nb = bnb.NetworkNB({2: 0, 3: [0, 2]}, gaussian=[1, 4]).fit(rows, Y)
        assert nb.parents_ == {"0": None, "1": None, "2": "0", "3": ("0", "2"), "4": None}
    else:
        rows = frame
        nb = bnb.NetworkNB(parents).fit(rows, Y)
        assert nb.parents_ == {"a": None, "s": None, "b": "a", "c": ("a", "b"), "t": None}
    network, gaussian = bnb.NetworkNB(parents).fit(frame[list("abc")], Y), bnb.GaussianNB().fit(numbers, Y)
    expected = network.predict_joint_log_proba(frame[list("abc")]) + gaussian.predict_joint_log_proba(numbers)
    expected = expected - nb.class_log_prior_
    np.testing.assert_allclose(nb.predict_joint_log_proba(rows), expected, rtol=0, atol=1e-10)
    of_class = bnb.CategoricalNB().fit(np.full((60, 1), "u"), Y).log_evidence_
    parts = network.log_evidence_ + gaussian.log_evidence_ - of_class
    assert nb.log_evidence_ == pytest.approx(parts, abs=1e-9)
    assert nb.n_parameters_ == network.n_parameters_ + gaussian.n_parameters_ - 1
    assert [own is None for own in nb.categories_] == [False, True, False, False, True]


EVERY = {
    "network": bnb.NetworkNB({"b": "a"}),
    "tree": bnb.TAN(),
    "superparent": bnb.SPODE("b"),
    "aode": bnb.AODE(),
    "all trees": bnb.TreeAveragedNB(),
    "contexts": bnb.NetworkNB({"b": "a"}, tables="context"),
    "kdb": bnb.KDB(1, None),
}


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("blank", EVERY.values(), ids=EVERY)
def test_the_rows_of_any_structure_with_numbers_are_those_without_times_their_densities(blank):
    levels, numbers = pd.DataFrame(X, columns=list("abcd")), np.random.default_rng(0).normal(size=(60, 2))
    numbers += (Y == "elm")[:, None]
    frame = levels.assign(s=numbers[:, 0], t=numbers[:, 1])
    nb = clone(blank).set_params(numbers="gaussian").fit(frame, Y)
    parts = clone(blank).fit(levels, Y), bnb.GaussianNB().fit(numbers, Y)
    expected = parts[0].predict_joint_log_proba(levels) + parts[1].predict_joint_log_proba(numbers)
    np.testing.assert_allclose(nb.predict_joint_log_proba(frame), expected - nb.class_log_prior_, rtol=0, atol=1e-10)
    found, others = bnb.loo(nb, frame, Y), np.arange(60) != 5
    refit = clone(nb).fit(frame[others], Y[others])  # which derives the prior of the numbers anew
    if blank.__class__ in (bnb.NetworkNB, bnb.SPODE, bnb.AODE, bnb.TreeAveragedNB):
        np.testing.assert_allclose(found.log_proba[5:6], refit.predict_log_proba(frame[5:6]), rtol=0, atol=1e-9)


@pytest.mark.parametrize("blank", [bnb.WeightedNB(bnb.TAN()), bnb.WeightedNB(bnb.KDB(1, None))], ids=["tan", "kdb"])
def test_each_block_has_draws_of_its_own_where_several_are_of_one_kind(blank):
    """Margins are further categorical blocks: draws that share a name would be those of the last block."""
    nb = blank.fit(X, Y)
    fitted, drawn = nb.fitted_, dict(bnb.posterior_draws(nb, 2000))
    assert [columns.kind for columns in fitted.encoding.blocks].count("categorical") > 1
    sites = [block["theta"] for block in site_names(fitted.encoding, fitted.posterior)]
    assert sites[:2] == ["theta_categorical", "theta_categorical_2"]
    assert set(drawn) == {"class_prob", *sites}
    for family, site in zip(fitted.posterior.blocks, sites, strict=True):
        error = np.sqrt(family.variance()["theta"] / 2000)
        assert (abs(drawn[site].mean(axis=0) - family.mean().theta) <= 5.0 * error + 1e-12).all()
    inference = bnb.to_arviz(nb, draws=3, chains=2)
    assert set(inference["posterior"].data_vars) == {"class_prob", *sites}
    # A share of rows that are all labelled rows: far from theirs only if the scores of draws are of other parameters.
    shares = bnb.estimate_prevalence(nb, np.repeat(X, 10, axis=0), draws=200)
    assert abs(shares.mean - np.exp(nb.class_log_prior_)).max() < 0.2
