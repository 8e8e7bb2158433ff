"""Diagnostic tests without a gold standard: Hui and Walter's table, importance sampling, and simulations."""

import importlib
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import beta, multinomial, power_divergence

import bayesnb as bnb
from bayesnb.sampling.hui_walter import HuiWalter, Margins
from tests.raises import refused

# Hui & Walter (1980), table 1, as the HARMONY training school (COST action CA18208, Larissa 2022) prints it.
PATTERNS = pd.DataFrame({"group": [1] * 4 + [2] * 4, "Mantoux": [1, 1, 0, 0] * 2, "Tine": [1, 0, 1, 0] * 2})
COUNT = np.array([14, 4, 9, 528, 887, 31, 37, 367])
PUBLISHED = [0.0268, 0.7168, 0.9661, 0.9688, 0.9933, 0.9841]
QUICK = {"draws": 400, "warmup": 5, "progress": False}


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


@pytest.mark.slow("a million weighted draws", but="None")
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
    found = bnb.diagnostic_tests(SMALL, populations, prior, sample_weight=SMALL_COUNT, progress=False).table
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
@pytest.mark.filterwarnings("ignore:Monte Carlo")
def test_intervals_cover_the_truth():
    """Truths of the prior: 90% intervals cover 90% of them, of 240 quantities in 40 tables."""
    rng, covered = np.random.default_rng(0), []
    for _ in range(40):
        truth, table = simulate(rng)
        found = bnb.diagnostic_tests(table, "population", draws=400, progress=False).table
        covered.append((found["lower"] < truth) & (truth < found["upper"]))
    assert 0.84 < np.mean(covered) < 0.96


@pytest.mark.filterwarnings("ignore:Monte Carlo")
def test_of_coins_the_note_says_that_they_may_be_no_better_than_chance():
    coins = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (400, 2)), columns=["A", "B"])
    found = bnb.diagnostic_tests(coins, np.repeat(["p", "q"], 200), **QUICK)
    assert "A may be no better than chance" in found.note
    assert "B may be no better than chance" in found.note
    assert "The data add little to the prior of: prevalence of p, prevalence of q" in found.note
    assert found.note in repr(found)
    assert found.note in found._repr_html_()


@pytest.mark.filterwarnings("ignore:Monte Carlo")
def test_one_population_and_two_tests_are_said_not_to_be_identified():
    """However many rows, the posterior depends on the prior: here of 55,500."""
    table, count = PATTERNS[:4].drop(columns="group"), 100 * COUNT[:4]
    uniform = bnb.diagnostic_tests(table, sample_weight=count, **QUICK)
    informed = bnb.diagnostic_tests(table, None, {"sensitivity": (40, 10)}, sample_weight=count, **QUICK)
    for found in (uniform, informed):
        assert "5 parameters, and the tests that were done in each population determine only 3" in found.note
        assert set(found.table["identified"]) == {"by prior only"}
    assert uniform.populations == ("all",)
    sd = [found.table.set_index(["quantity", "name"])["sd"]["sensitivity", "Mantoux"] for found in (uniform, informed)]
    assert sd[0] > 1.5 * sd[1] > 0.03


@pytest.mark.slow("four posteriors")
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


@pytest.mark.filterwarnings("ignore:Monte Carlo")
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
    refused("not a pair of two tests", lambda: bnb.diagnostic_tests(table, dependent=[("Tine", "Tine")]))
    refused("not a pair of two tests", lambda: bnb.diagnostic_tests(table, dependent=["Tine"]))
    refused("'Pirquet' is not a test", lambda: bnb.diagnostic_tests(table, dependent=[("Pirquet", "Tine")]))
    pairs = [("Mantoux", "Tine"), ("Tine", "Mantoux")]
    refused("in two pairs", lambda: bnb.diagnostic_tests(table, dependent=pairs))
    three = table.assign(Pirquet=table["Tine"])
    cycle = [("Mantoux", "Tine"), ("Tine", "Pirquet"), ("Pirquet", "Mantoux")]
    refused("the pairs form a cycle, .* → .* → .* → ", lambda: bnb.diagnostic_tests(three, dependent=cycle))
    lopsided = {"prevalence": (1, 99)}
    arguments = 1 - table, PATTERNS["group"], lopsided
    refused("tests are worse than chance", lambda: bnb.diagnostic_tests(*arguments, sample_weight=COUNT, **QUICK))
    refused("no column for the test 'Tine'", tuberculosis.predict, PATTERNS[["group", "Mantoux"]])
    refused("3 is not a population of the fitted table", tuberculosis.predict, PATTERNS, [3] * 8)


# -- priors --------------------------------------------------------------------------------------


def test_a_prior_from_an_interval_is_its_pair():
    prior = bnb.prior_from_interval(0.75, 0.92)
    table = PATTERNS.drop(columns="group")
    asked = {"sensitivity": {"Tine": prior}, "specificity": bnb.prior_from_interval(0.9, 0.99)}
    plain = {"sensitivity": {"Tine": prior.parameters}, "specificity": tuple(asked["specificity"])}
    found = [
        bnb.diagnostic_tests(table, PATTERNS["group"], p, sample_weight=COUNT, **QUICK).table for p in (asked, plain)
    ]
    pd.testing.assert_frame_equal(*found)
    ends = found[0].set_index(["quantity", "name"]).loc[("sensitivity", "Tine"), ["prior_lower", "prior_upper"]]
    np.testing.assert_allclose(ends.astype(float), prior.distribution.ppf([0.05, 0.95]), atol=0.005)
    normal = {"sensitivity": bnb.prior_from_interval(0.75, 0.92, family="normal")}
    refused("is Normal.*with family='beta'", bnb.diagnostic_tests, table, None, normal)


@pytest.mark.filterwarnings("ignore:Monte Carlo")
def test_prior_sensitivity_is_that_of_refits_and_of_weighted_draws():
    """Weights are the ratios of SciPy's Beta densities; the draws are those of the uniform prior."""
    table, count = PATTERNS, COUNT // 10
    found = bnb.diagnostic_tests(table, "group", sample_weight=count, progress=False)
    priors = {"none": None, "good": {"sensitivity": (8, 2), "prevalence": {2: (3, 2)}}}
    compared = found.prior_sensitivity(priors, progress=False)
    assert compared["prior"].tolist() == ["fitted", "none", "good"] * 6
    for name, expected in (
        ("fitted", found),
        ("none", found),
        ("good", bnb.diagnostic_tests(table, "group", priors["good"], sample_weight=count, progress=False)),
    ):
        own = compared[compared["prior"] == name].drop(columns="prior").reset_index(drop=True)
        pd.testing.assert_frame_equal(own, expected.table)
    posterior = found.data["posterior"]
    names = ("prevalence", "sensitivity", "specificity")
    draws = np.concatenate([posterior[name].values.reshape(4000, -1) for name in names], axis=1)
    weight = beta(3, 2).pdf(draws[:, 1]) * beta(8, 2).pdf(draws[:, 2:4]).prod(axis=1)
    mean = weight @ draws / weight.sum()
    good = compared[compared["prior"] == "good"]
    assert (abs(good["mean"] - mean) < 0.1 * good["sd"]).all()


def test_priors_that_are_refused_have_their_names(tuberculosis):
    refused("must be a dict", tuberculosis.prior_sensitivity, [None], error=TypeError)
    bad = {"bad": {"sensitivity": {"Tine": (0, 1)}}}
    refused(r"priors\['bad'\]: prior: sensitivity of 'Tine'", tuberculosis.prior_sensitivity, bad, False)
    refused("priors has the name 'fitted'", tuberculosis.prior_sensitivity, {"fitted": None}, False)


# -- what the design identifies ------------------------------------------------------------------


def margin_probabilities(parameters, n_populations, design):
    """Probabilities of all results of the tests done together, for each (population, tests done), by enumeration."""
    n_tests = (len(parameters) - n_populations) // 2
    probs = []
    for population, done in design:
        results = np.full((2 ** len(done), n_tests), np.nan)
        results[:, done] = list(product((0, 1), repeat=len(done)))
        probs.append(sum(probability(parameters[None], n_populations, np.full(len(results), population), results))[0])
    return np.concatenate(probs)


def numerical_rank(n_populations, n_tests, design):
    """Largest rank of central differences of the margins at several random parameters."""
    ranks = []
    for at in np.random.default_rng(1).uniform(0.2, 0.8, (4, n_populations + 2 * n_tests)):
        steps = 1e-4 * np.eye(len(at))
        ends = [
            (margin_probabilities(at + h, n_populations, design), margin_probabilities(at - h, n_populations, design))
            for h in steps
        ]
        slope = np.stack([(above - below) / 2e-4 for above, below in ends])
        ranks.append(np.linalg.matrix_rank(slope, tol=1e-7))
    return max(ranks)


DESIGNS = {
    "one population, two tests": (1, 2, [(0, [0, 1])]),
    "two populations, two tests": (2, 2, [(0, [0, 1]), (1, [0, 1])]),
    "two of three tests in each row": (1, 3, [(0, [0, 1]), (0, [0, 2]), (0, [1, 2])]),
    "a test in one population only": (2, 2, [(0, [0, 1]), (1, [0])]),
    "three tests, one of them in one population": (2, 3, [(0, [0, 1, 2]), (1, [0, 1])]),
    "three tests": (1, 3, [(0, [0, 1, 2])]),
    "single tests": (3, 2, [(0, [0]), (1, [1]), (2, [0])]),
    "a chain of four tests": (1, 4, [(0, [0, 1]), (0, [1, 2]), (0, [2, 3])]),
    "two of three tests in two populations": (2, 3, [(p, d) for p in (0, 1) for d in ([0, 1], [0, 2], [1, 2])]),
}


@pytest.mark.parametrize(("n_populations", "n_tests", "design"), DESIGNS.values(), ids=DESIGNS)
def test_the_rank_is_that_of_enumerated_margins(n_populations, n_tests, design):
    code = np.array([population for population, _ in design])
    result = np.full((len(design), n_tests), np.nan)
    for row, (_, done) in zip(result, design, strict=True):
        row[done] = 1.0
    model = HuiWalter(n_populations, ((),) * n_tests)
    rank, is_determined = Margins.from_cells(model, code, result, np.ones(len(design))).rank()
    assert rank == numerical_rank(n_populations, n_tests, design)
    assert is_determined.all() == (rank == model.n_parameters)


def test_single_quantities_are_determined_where_others_are_not():
    """The third population has test C only, which is the only one that is determined by no other population."""
    model = HuiWalter(3, ((),) * 3)
    result = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, np.nan], [np.nan, np.nan, 1.0]])
    rank, is_determined = Margins.from_cells(model, np.arange(3), result, np.ones(3)).rank()
    assert rank == model.n_parameters
    assert is_determined.all()
    result[0, 2] = np.nan
    rank, is_determined = Margins.from_cells(model, np.arange(3), result, np.ones(3)).rank()
    assert rank == model.n_parameters - 2
    np.testing.assert_array_equal(is_determined, [True, True, False, True, True, False, True, True, False])


@pytest.mark.parametrize(
    ("tests", "n_free", "n"), [(2, 3, 7), (3, 7, 9)], ids=["two dependent tests", "two dependent tests and a third"]
)
def test_the_rank_counts_the_parameters_of_arcs(tests, n_free, n):
    """A pair of dependent tests has three parameters in each class; one population has too few frequencies."""
    model = HuiWalter(1, ((), (0,), ())[:tests])
    rank, is_determined = Margins.from_cells(model, np.zeros(1, int), np.ones((1, tests)), np.ones(1)).rank()
    assert model.n_parameters == n
    assert rank <= n_free
    assert not is_determined.all()


def results_of_design(rng, prevalence, sensitivity, specificity, design, n_rows):
    """Rows of a design [(population, tests done)] of equal size: results with NaN, and "population"."""
    parts = []
    for population, done in design:
        ill = rng.random(n_rows // len(design)) < prevalence[population]
        positive = np.where(ill[:, None], sensitivity, 1 - np.array(specificity))
        results = (rng.random(positive.shape) < positive).astype(float)
        results[:, np.setdiff1d(np.arange(len(sensitivity)), done)] = np.nan
        parts.append(pd.DataFrame(results, columns=list("ABC")[: len(sensitivity)]).assign(population=population))
    return pd.concat(parts, ignore_index=True)


TWO, THREE = ((0.9, 0.8), (0.95, 0.9)), ((0.9, 0.8, 0.85), (0.95, 0.9, 0.92))
UNIDENTIFIED = {
    "two of three tests": ((0.3,), *THREE, DESIGNS["two of three tests in each row"][2], "by prior only"),
    "a test in one population": ((0.1, 0.4), *TWO, DESIGNS["a test in one population only"][2], "by prior only"),
    "equal prevalences": ((0.3, 0.3), *TWO, DESIGNS["two populations, two tests"][2], "weakly"),
    "nearly equal prevalences": ((0.3, 0.305), *TWO, DESIGNS["two populations, two tests"][2], "weakly"),
}


@pytest.mark.slow("ridges of 100,000 rows", but="1000-")
@pytest.mark.parametrize("n_rows", [1000, 100_000], ids=["1000-rows", "many"])
@pytest.mark.parametrize("name", UNIDENTIFIED)
@pytest.mark.filterwarnings("ignore:Monte Carlo")
def test_unidentified_designs_are_marked(name, n_rows):
    """In note, repr and table, for any number of rows."""
    *truth, design, mark = UNIDENTIFIED[name]
    table = results_of_design(np.random.default_rng(0), *truth, design, n_rows)
    found = bnb.diagnostic_tests(table, "population", draws=200, chains=2, progress=False)
    assert (found.table["identified"] == mark).sum() >= 4
    sentence = "Not identified by the data" if mark == "by prior only" else "Weakly identified"
    assert sentence in found.note
    assert found.note in repr(found)
    assert mark in repr(found)


@pytest.mark.filterwarnings("ignore:Monte Carlo")
def test_an_informative_prior_does_not_identify_a_design():
    priors = {"sensitivity": (400, 40), "specificity": (400, 20)}
    table = PATTERNS[:4].drop(columns="group")
    found = bnb.diagnostic_tests(table, None, priors, sample_weight=COUNT[:4], **QUICK)
    assert set(found.table["identified"]) == {"by prior only"}
    assert "Identified by the prior only" in found.note


@pytest.mark.slow("a ridge of 200,000 rows")
def test_the_sampler_follows_the_ridge_of_one_population_and_two_tests():
    """Given all three frequencies, the posterior has a density on the prevalence and a difference of rates d.

    With frequencies a and b of positive results, and their covariance v, the rates of test A are a + (1 - π) d and
    a - π d, those of test B have the difference e = v / (π (1 - π) d), and the density is 1 / (π (1 - π) d).
    """
    prevalence, (sensitivity, specificity) = 0.3, TWO
    cells = np.array([[1, 1], [1, 0], [0, 1], [0, 0]])
    truth = np.array([[prevalence, *sensitivity, *specificity]])
    count = np.round(200_000 * sum(probability(truth, 1, np.zeros(4, int), cells))[0]).astype(int)
    p = count / count.sum()
    a, b = p[0] + p[1], p[0] + p[2]
    pi, d = np.meshgrid(*[np.linspace(0, 1, 2002)[1:-1]] * 2)
    e = (p[0] - a * b) / (pi * (1 - pi) * d)
    rate = np.stack([a + (1 - pi) * d, a - pi * d, b + (1 - pi) * e, b - pi * e])
    density = ((rate > 0) & (rate < 1)).all(axis=0) / (pi * (1 - pi) * d)
    found = bnb.diagnostic_tests(pd.DataFrame(cells, columns=["A", "B"]), sample_weight=count, progress=False).table
    for row, values in enumerate((pi, rate[0], rate[2], 1 - rate[1], 1 - rate[3])):
        order = np.argsort(values, axis=None)
        weight = np.cumsum(density.ravel()[order]) / density.sum()
        for end, q in (("lower", 0.05), ("upper", 0.95)):
            exact = values.ravel()[order][np.searchsorted(weight, q)]
            assert abs(found[end][row] - exact) < 0.012


@pytest.mark.slow("four posteriors of 4,000 draws")
@pytest.mark.parametrize("name", ["first", "three tests", "three populations", "a test in one of two populations"])
def test_default_draws_are_enough_for_identified_tables(name):
    """No warning, which pytest would raise, and nothing to say."""
    designs = {
        "first": ((0.05, 0.6), *TWO, DESIGNS["two populations, two tests"][2]),
        "three tests": ((0.3,), *THREE, DESIGNS["three tests"][2]),
        "three populations": ((0.1, 0.3, 0.6), *THREE, [(p, [0, 1, 2]) for p in range(3)]),
        "a test in one of two populations": ((0.1, 0.6), *THREE, [(0, [0, 1, 2]), (1, [0, 1])]),
    }
    table = results_of_design(np.random.default_rng(3), *designs[name], 4000)
    found = bnb.diagnostic_tests(table, "population", progress=False)
    assert found.note == ""
    assert set(found.table["identified"]) == {"by data"}


def test_a_failure_of_the_sampler_is_not_mended_by_draws_if_the_design_is_the_cause(monkeypatch):
    module = importlib.import_module("bayesnb.sampling.diagnostic_tests")

    def disagree(posterior, chains, draws, *others):
        logits = posterior.draw_prior(chains * draws, np.random.default_rng(0)).reshape(chains, draws, -1)
        return np.sort(logits, axis=1)

    monkeypatch.setattr(module, "draw_posterior", disagree)
    with pytest.warns(UserWarning, match="Monte Carlo: .* The sampler failed, because") as caught:
        bnb.diagnostic_tests(PATTERNS[:4].drop(columns="group"), sample_weight=COUNT[:4], **QUICK)
    assert not any("Raise" in str(warning.message) for warning in caught)


# -- fit and dependence --------------------------------------------------------------------------


def joint(first, second, correlation):
    """Probabilities of (1, 1), (1, 0), (0, 1), (0, 0) of two tests with given rates and correlation."""
    covariance = correlation * np.sqrt(first * (1 - first) * second * (1 - second))
    both = first * second + covariance
    return np.array([both, first - both, second - both, 1 - first - second + both])


def draw_table(rng, prevalence, pair, third, n):
    """n rows in each population of tests A, B with joint probabilities `pair` (class, 4), and C with rates `third`."""
    population = np.repeat(np.arange(len(prevalence)), n)
    ill = (rng.random(len(population)) < prevalence[population]).astype(int)
    cell = (rng.random((len(ill), 1)) > np.cumsum(pair, axis=1)[ill]).sum(axis=1).clip(0, 3)
    columns = {"A": cell < 2, "B": cell % 2 == 0, "C": rng.random(len(ill)) < third[ill]}
    return pd.DataFrame(columns).astype(int).assign(population=population)


def correlated(seed, correlation):
    """Three tests in three populations, A and B correlated among the diseased: G² is about 80 for correlation .7."""
    pair = np.array([joint(0.1, 0.05, 0.0), joint(0.8, 0.85, correlation)])
    return draw_table(np.random.default_rng(seed), np.array([0.1, 0.3, 0.6]), pair, np.array([0.05, 0.9]), 1000)


FEW = {"draws": 200, "chains": 2, "warmup": 5, "progress": False}


@pytest.mark.slow("two posteriors")
@pytest.mark.filterwarnings("ignore:Monte Carlo")
def test_dependent_tests_are_said_not_to_fit_and_fit_with_an_arc():
    table = correlated(0, 0.7)
    independent = bnb.diagnostic_tests(table, "population", **FEW)
    assert independent.fit_p < 0.05
    assert "The model does not fit the table" in independent.note
    assert "tests are not independent given the disease" in repr(independent)
    arc = bnb.diagnostic_tests(table, "population", dependent=[("A", "B")], **FEW)
    assert arc.fit_p > 0.05
    assert "does not fit" not in arc.note
    assert arc.dependent == (("A", "B"),)
    assert "independent except A and B" in repr(arc)
    truth = [0.1, 0.3, 0.6, 0.8, 0.85, 0.9, 0.9, 0.95, 0.95]
    assert (abs(arc.table["mean"] - truth) < 4 * arc.table["sd"]).all()


@pytest.mark.slow("a thousand tables of SciPy's")
@pytest.mark.filterwarnings("ignore:Monte Carlo")
def test_the_fit_is_that_of_scipys_statistic():
    """Replicated tables of SciPy's multinomial, G² of `power_divergence`: the same p, up to Monte Carlo error."""
    table = correlated(1, 0.1)
    found = bnb.diagnostic_tests(table, "population", **FEW)
    posterior = found.data["posterior"]
    names = ("prevalence", "sensitivity", "specificity")
    draws = np.concatenate([posterior[name].values.reshape(400, -1) for name in names], axis=1)
    cells = np.array(list(product((0, 1), repeat=3)))
    observed, replicated = np.zeros(400), np.zeros(400)
    for p in range(3):
        rows = table[table["population"] == p][["A", "B", "C"]]
        count = (rows.to_numpy()[:, None] == cells).all(axis=2).sum(axis=0)
        prob = sum(probability(draws, 3, np.full(8, p), cells))
        for s, own in enumerate(prob):
            drawn = multinomial(len(rows), own / own.sum(), seed=s).rvs()[0]
            for total, frequencies in ((observed, count), (replicated, drawn)):
                total[s] += power_divergence(frequencies, own / own.sum() * len(rows), lambda_=0).statistic
    assert abs(found.fit_p - (replicated >= observed).mean()) < 0.15


def test_without_surplus_frequencies_there_is_no_fit(tuberculosis):
    assert np.isnan(tuberculosis.fit_p)
    assert "fit_p" not in repr(tuberculosis)


@pytest.mark.slow("a million weighted draws")
def test_the_posterior_with_an_arc_is_that_of_importance_sampling():
    """A and B have any joint table in each class, uniform as Dirichlet(½, ½, ½, ½): their rates are uniform."""
    found = bnb.diagnostic_tests(SMALL, None, dependent=[("B", "A")], sample_weight=SMALL_COUNT, progress=False).table
    rng, n = np.random.default_rng(0), 400_000
    prevalence, pair, third = rng.random(n), rng.dirichlet([0.5] * 4, (2, n)), rng.random((2, n))
    rates = np.stack([pair[..., 0] + pair[..., 1], pair[..., 0] + pair[..., 2], third], axis=-1)  # (class, n, test)
    log = np.zeros(n)
    for (a, b, c), count in zip(SMALL.to_numpy(), SMALL_COUNT, strict=True):
        matches = [(i, j) for i in (1, 0) for j in (1, 0)]
        kept = [(np.isnan(a) or a == i) and (np.isnan(b) or b == j) for i, j in matches]
        of_third = 1.0 if np.isnan(c) else np.where(c == 1, third, 1 - third)
        of_class = pair[..., kept].sum(axis=-1) * of_third
        log += count * np.log((1 - prevalence) * of_class[0] + prevalence * of_class[1])
    weight = np.exp(log - log.max()) * (rates[1].sum(axis=1) > rates[0].sum(axis=1))
    values = np.column_stack([prevalence, rates[1], 1 - rates[0]])
    mean = weight @ values / weight.sum()
    np.testing.assert_allclose(found["mean"], mean, atol=0.015)
    np.testing.assert_allclose(found["sd"], np.sqrt(weight @ (values - mean) ** 2 / weight.sum()), atol=0.012)


@pytest.mark.filterwarnings("ignore:Monte Carlo")
def test_predictions_with_an_arc_are_bayes_theorem_with_the_joint_table():
    found = bnb.diagnostic_tests(SMALL, None, dependent=[("A", "B")], sample_weight=SMALL_COUNT, **QUICK)
    posterior = found.data["posterior"]
    rate = posterior["positive_rate"].sel(rate=[f"A | {c}" for c in ("healthy", "diseased")]).values.reshape(-1, 2)
    given = posterior["positive_rate"].sel(rate=[f"B | {c}, A = 1" for c in ("healthy", "diseased")])
    both = rate * given.values.reshape(-1, 2)
    prevalence = posterior["prevalence"].values.ravel()
    rows = pd.DataFrame({"A": [1, np.nan], "B": [1, 1], "C": [np.nan, np.nan]})
    expected = prevalence * both[:, 1] / (prevalence * both[:, 1] + (1 - prevalence) * both[:, 0])
    np.testing.assert_allclose(found.predict(rows)["probability"][0], expected.mean(), rtol=1e-9)
    sensitivity, specificity = (posterior[name].values[..., 1].ravel() for name in ("sensitivity", "specificity"))
    expected = prevalence * sensitivity
    expected = expected / (expected + (1 - prevalence) * (1 - specificity))
    np.testing.assert_allclose(found.predict(rows)["probability"][1], expected.mean(), rtol=1e-9)


@pytest.mark.calibration
@pytest.mark.filterwarnings("ignore:Monte Carlo")
@pytest.mark.parametrize(("correlation", "least", "most"), [(0.7, 95, 100), (0.0, 0, 7)])
def test_fit_finds_dependent_tests_and_seldom_independent_ones(correlation, least, most):
    """Of 100 tables each, the number of those that the note says do not fit."""
    flagged = sum(
        bnb.diagnostic_tests(correlated(seed, correlation), "population", **FEW).fit_p < 0.05 for seed in range(100)
    )
    assert least <= flagged <= most


@pytest.mark.calibration
@pytest.mark.filterwarnings("ignore:Monte Carlo")
def test_intervals_with_an_arc_cover_the_truth():
    """Truths of the prior, 400 tables of two populations with 300 rows: 90% intervals of eight quantities."""
    covered = []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        rates = np.zeros((2, 3))
        while rates[1].sum() <= rates[0].sum():
            prevalence, pair, third = rng.random(2), rng.dirichlet([0.5] * 4, 2), rng.random(2)
            rates = np.column_stack([pair[:, 0] + pair[:, 1], pair[:, 0] + pair[:, 2], third])
        truth = np.concatenate([prevalence, rates[1], 1 - rates[0]])
        table = draw_table(rng, prevalence, pair, third, 300)
        found = bnb.diagnostic_tests(
            table, "population", dependent=[("A", "B")], **(FEW | {"draws": 300, "warmup": 12})
        ).table
        covered.append((found["lower"] < truth) & (truth < found["upper"]))
    assert 0.87 < np.mean(covered) < 0.93


# -- tables of other libraries -------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Monte Carlo")
@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_names_of_polars_and_arrow_tables_are_kept(library):
    module = pytest.importorskip(library)
    frame = PATTERNS.assign(Tine=PATTERNS["Tine"].astype(object).where(PATTERNS.index > 0, None))
    make = module.table if library == "pyarrow" else module.DataFrame
    table = make({name: frame[name].tolist() for name in frame})
    found = bnb.diagnostic_tests(table, "group", sample_weight=COUNT, **FEW)
    pd.testing.assert_frame_equal(found.table, bnb.diagnostic_tests(frame, "group", sample_weight=COUNT, **FEW).table)
    assert found.tests == ("Mantoux", "Tine")
    np.testing.assert_allclose(found.predict(table), found.predict(frame))


@pytest.mark.parametrize("times", [1, 10_000])
def test_empty_cells_are_information(times):
    """The tests never disagree in some ways: cells without rows say as much as the others."""
    table = pd.DataFrame({"A": [1, 1, 0, 0], "B": [1, 0, 1, 0], "C": [1, 1, 0, 0]})
    found = bnb.diagnostic_tests(table, sample_weight=np.array([90, 10, 10, 390]) * times, draws=200, progress=False)
    assert set(found.table["identified"]) == {"by data"}
    assert found.note == ""


def test_rows_of_weight_zero_need_no_population():
    table = pd.DataFrame({"A": [1, 1, 0, 0], "B": [1, 0, 0, 1], "g": ["a", "a", "b", None]})
    found = bnb.diagnostic_tests(table, "g", sample_weight=[30, 5, 60, 0], draws=50, progress=False)
    assert found.populations == ("a", "b")
