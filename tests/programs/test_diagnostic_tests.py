"""Diagnostic tests without a gold standard: Hui and Walter's table, importance sampling, and simulations."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit

import bayesnb as bnb
from tests.refusals import refused

# Hui & Walter (1980), table 1, as the HARMONY training school (COST action CA18208, Larissa 2022) prints it.
PATTERNS = pd.DataFrame({"group": [1] * 4 + [2] * 4, "Mantoux": [1, 1, 0, 0] * 2, "Tine": [1, 0, 1, 0] * 2})
COUNT = np.array([14, 4, 9, 528, 887, 31, 37, 367])
PUBLISHED = [0.0268, 0.7168, 0.9661, 0.9688, 0.9933, 0.9841]
QUICK = {"draws": 400, "warmup": 200, "progress": False}


def probability(parameters, n_populations, population, results):
    """(S, N) P(results | population), by the formula of the docstring; NaN is a test that was not done."""
    prevalence, sensitivity, specificity = np.split(
        parameters, [n_populations, (parameters.shape[1] + n_populations) // 2], 1
    )
    of_class = []
    for share, positive in ((prevalence, sensitivity), (1 - prevalence, 1 - specificity)):
        own = share[:, population]
        for t, result in enumerate(results.T):
            own = own * np.where(result == 1, positive[:, [t]], np.where(result == 0, 1 - positive[:, [t]], 1.0))
        of_class.append(own)
    return of_class


def log_likelihood(parameters, n_populations, population, results, count):
    with np.errstate(divide="ignore"):
        return np.log(sum(probability(parameters, n_populations, population, results))) @ count


@pytest.fixture(scope="module")
def tuberculosis():
    return bnb.diagnostic_tests(PATTERNS, "group", sample_weight=COUNT, progress=False)


def test_hui_and_walters_table(tuberculosis):
    """Maximum likelihood by a general optimiser is as published, and the posterior is within a posterior sd of it."""
    population, results = PATTERNS["group"].to_numpy() - 1, PATTERNS[["Mantoux", "Tine"]].to_numpy()

    def loss(logits):
        return -log_likelihood(expit(logits)[None], 2, population, results, COUNT)[0]

    mle = expit(minimize(loss, [-2.0, 0.5, 2.0, 2.0, 3.0, 3.0], method="BFGS").x)
    np.testing.assert_allclose(mle, PUBLISHED, atol=5e-5)
    table = tuberculosis.table
    assert table["quantity"].tolist() == ["prevalence"] * 2 + ["sensitivity"] * 2 + ["specificity"] * 2
    assert table["name"].tolist() == [1, 2, "Mantoux", "Tine", "Mantoux", "Tine"]
    assert (abs(table["mean"] - mle) < table["sd"]).all()
    assert ((table["lower"] < mle) & (mle < table["upper"])).all()
    assert tuberculosis.note == ""


def test_predictions_are_bayes_theorem_averaged_over_the_draws(tuberculosis):
    rows = PATTERNS.assign(Tine=[1, 0, np.nan, 0, 1, 0, np.nan, 0])
    found = tuberculosis.predict(rows)
    posterior = tuberculosis.data["posterior"]
    names = ("prevalence", "sensitivity", "specificity")
    draws = np.concatenate([posterior[name].values.reshape(4000, -1) for name in names], axis=1)
    diseased, healthy = probability(draws, 2, rows["group"].to_numpy() - 1, rows[["Mantoux", "Tine"]].to_numpy())
    proba = diseased / (diseased + healthy)
    np.testing.assert_allclose(found["probability"], proba.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(found["lower"], np.quantile(proba, 0.05, axis=0), rtol=1e-9)
    np.testing.assert_allclose(found["upper"], np.quantile(proba, 0.95, axis=0), rtol=1e-9)
    named = tuberculosis.predict(rows.drop(columns="group")[::-1], rows["group"].tolist()[::-1])
    pd.testing.assert_frame_equal(named[::-1], found)


SMALL = pd.DataFrame({"A": [1, 1, 0, 0, 1, 0, 1], "B": [1, 0, 1, 0, np.nan, 1, 0], "C": [1, 1, 0, 0, 1, np.nan, 0]})
SMALL_COUNT = np.array([4, 1, 2, 6, 1, 1, 2])


@pytest.mark.slow("thousands of sweeps")
@pytest.mark.parametrize(
    ("populations", "prior"),
    [
        (None, {}),
        (list("pqpqpqq"), {}),
        (list("pqpqpqq"), {"sensitivity": {"B": (4, 1)}, "specificity": (3, 1), "prevalence": {"q": (1, 4)}}),
    ],
)
def test_the_posterior_is_that_of_importance_sampling(populations, prior):
    """Draws from the prior, restricted to tests that are better than chance, weighted by the likelihood."""
    found = bnb.diagnostic_tests(SMALL, populations, prior, draws=1500, sample_weight=SMALL_COUNT, progress=False).table
    names = ["all"] if populations is None else ["p", "q"]
    pairs = [prior.get("prevalence", {}).get(name, (1, 1)) for name in names]
    pairs += [prior.get("sensitivity", {}).get(test, (1, 1)) for test in SMALL]
    pairs += [prior.get("specificity", (1, 1)) for _ in SMALL]
    draws = np.random.default_rng(0).beta(*np.array(pairs, dtype=float).T, (400_000, len(pairs)))
    draws = draws[draws[:, -6:].sum(axis=1) > 3]
    population = np.zeros(7, int) if populations is None else np.array([names.index(p) for p in populations])
    log = log_likelihood(draws, len(names), population, SMALL.to_numpy(), SMALL_COUNT)
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    mean = weight @ draws
    sd = np.sqrt(weight @ (draws - mean) ** 2)
    np.testing.assert_allclose(found["mean"], mean, atol=0.015)
    np.testing.assert_allclose(found["sd"], sd, atol=0.012)
    for end, q in (("prior_lower", 0.05), ("prior_upper", 0.95)):
        np.testing.assert_allclose(found[end], np.quantile(draws, q, axis=0), atol=0.02)


def simulate(rng, n=(300, 300)):
    """True parameters drawn from the prior, tests better than chance on average, and a table of them."""
    while True:
        truth = rng.beta(1, 1, 6)
        if truth[2:].sum() > 2:
            break
    population = np.repeat([0, 1], n)
    ill = rng.random(len(population)) < truth[population]
    positive = np.where(ill[:, None], truth[2:4], 1 - truth[4:])
    table = pd.DataFrame((rng.random(positive.shape) < positive).astype(int), columns=["A", "B"])
    return truth, table.assign(population=population)


@pytest.mark.slow("40 tables")
@pytest.mark.filterwarnings("ignore:Gibbs")
def test_intervals_cover_the_truth():
    """Truths of the prior: 90% intervals cover 90% of them, of 240 quantities in 40 tables."""
    rng, covered = np.random.default_rng(0), []
    for _ in range(40):
        truth, table = simulate(rng)
        found = bnb.diagnostic_tests(table, "population", draws=1000, warmup=300, progress=False).table
        covered.append((found["lower"] < truth) & (truth < found["upper"]))
    assert 0.84 < np.mean(covered) < 0.96


@pytest.mark.filterwarnings("ignore:Gibbs")
def test_of_coins_the_note_says_that_they_may_be_no_better_than_chance():
    coins = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (400, 2)), columns=["A", "B"])
    found = bnb.diagnostic_tests(coins, np.repeat(["p", "q"], 200), **QUICK)
    assert "A may be no better than chance" in found.note
    assert "B may be no better than chance" in found.note
    assert "The data say little about: prevalence of p, prevalence of q" in found.note
    assert found.note in repr(found)
    assert found.note in found._repr_html_()


@pytest.mark.filterwarnings("ignore:Gibbs")
def test_one_population_and_two_tests_are_said_not_to_be_identified():
    """However many rows, the posterior depends on the prior: here of 55,500."""
    table, count = PATTERNS[:4].drop(columns="group"), 100 * COUNT[:4]
    uniform = bnb.diagnostic_tests(table, sample_weight=count, **QUICK)
    informed = bnb.diagnostic_tests(table, None, {"sensitivity": (40, 10)}, sample_weight=count, **QUICK)
    assert "5 parameters, but the table has only 3 free frequencies" in uniform.note
    assert uniform.populations == ("all",)
    sd = [found.table.set_index(["quantity", "name"])["sd"]["sensitivity", "Mantoux"] for found in (uniform, informed)]
    assert sd[0] > 1.5 * sd[1] > 0.03


@pytest.mark.slow("thousands of sweeps")
@pytest.mark.filterwarnings("ignore:Gibbs")
def test_levels_names_and_order_of_rows_do_not_matter(tuberculosis):
    words = PATTERNS.replace({"Mantoux": {1: "yes", 0: "no"}, "Tine": {1: "yes", 0: "no"}}).sample(
        frac=1, random_state=0
    )
    count = COUNT[words.index]
    named = bnb.diagnostic_tests(words, "group", sample_weight=count, positive="yes", **QUICK)
    plain = bnb.diagnostic_tests(PATTERNS, "group", sample_weight=COUNT, **QUICK)
    pd.testing.assert_frame_equal(named.table, plain.table)
    doubled = pd.concat([PATTERNS, PATTERNS], ignore_index=True)
    parts = np.concatenate([COUNT // 2, COUNT - COUNT // 2])
    pd.testing.assert_frame_equal(
        bnb.diagnostic_tests(doubled, "group", sample_weight=parts, **QUICK).table, plain.table
    )
    refused("'maybe', which is not one of", named.predict, words.assign(Tine="maybe"))


def test_what_it_refuses(tuberculosis):
    table = PATTERNS.drop(columns="group")
    refused("'Tine' has the levels", bnb.diagnostic_tests, table.assign(Tine=[0, 1, 2, 0] * 2))
    refused("Pass the positive level as positive=", bnb.diagnostic_tests, table.assign(Tine=[1, 2] * 4))
    refused("positive='no' is not a level", lambda: bnb.diagnostic_tests(table.astype(str), positive="no"))
    refused("'Tine' has no result", bnb.diagnostic_tests, table.assign(Tine=np.nan))
    empty = (COUNT * (PATTERNS["Tine"] == 1)).to_numpy()
    weightless = table.assign(Tine=PATTERNS["Tine"].where(empty == 0))
    refused("'Tine' has no result", lambda: bnb.diagnostic_tests(weightless, sample_weight=empty))
    refused("0.5 of row 0 is not an integer", lambda: bnb.diagnostic_tests(table, sample_weight=COUNT / COUNT * 0.5))
    refused("sample_weight", lambda: bnb.diagnostic_tests(table, sample_weight=0 * COUNT))
    refused("all rows have the same results", bnb.diagnostic_tests, table.iloc[[0, 0, 0]])
    refused("no column of a test", bnb.diagnostic_tests, PATTERNS[["group"]], "group")
    refused("'clinic' is not a column", bnb.diagnostic_tests, table, "clinic")
    refused("populations has shape", bnb.diagnostic_tests, table, [1, 2])
    refused("row 1 is missing", bnb.diagnostic_tests, table, [1, None] * 4)
    refused("worse than chance", bnb.diagnostic_tests, table, None, {"sensitivity": (1, 9)})
    refused("positive numbers", bnb.diagnostic_tests, table, None, {"sensitivity": {"Tine": (0, 1)}})
    refused("'Pirquet'", bnb.diagnostic_tests, table, None, {"sensitivity": {"Pirquet": (1, 1)}})
    refused("must be a dict", bnb.diagnostic_tests, table, None, {"youden": (1, 1)})
    refused("prob", lambda: bnb.diagnostic_tests(table, prob=2))
    refused("no column for the test 'Tine'", tuberculosis.predict, PATTERNS[["group", "Mantoux"]])
    refused("3 is not a population of the fitted table", tuberculosis.predict, PATTERNS, [3] * 8)
