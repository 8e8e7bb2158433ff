"""PoissonNB(exposure=...) against SciPy, refits, the program, and the model without exposure."""

import sqlite3
from contextlib import closing

import jax
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpyro.infer import Predictive
from numpyro.infer.util import log_density
from scipy import stats

import bayesnb as bnb
from bayesnb.families import Exposed, ExposedTotals
from tests.raises import refused

RNG = np.random.default_rng(0)
N, NAMES, RATE = 40, ["owls", "bats", "mice"], np.array([[1.0, 3.0, 0.5], [2.0, 1.0, 0.6]])
Y, HOURS = np.arange(N) % 2, np.exp(RNG.normal(size=N))
COUNTS = RNG.poisson(RATE[Y] * HOURS[:, None]).astype(float)
FULL = pd.DataFrame(COUNTS, columns=NAMES)
FULL.insert(1, "hours", HOURS)
X = FULL.copy()
X.iloc[3, 0] = X.iloc[8, 3] = np.nan
OF_CLASS = np.eye(2)[Y].T
WEIGHT = np.where(np.arange(N) % 5 == 0, 2.0, 1.0)


def fit(x=X, y=Y, weight=None, **arguments):
    return bnb.PoissonNB(exposure="hours", **arguments).fit(x, y, weight)


NB, WHOLE = fit(), fit(FULL)


# -- the model --------------------------------------------------------------------------------------


def posterior(weight):
    """Parameters a' and b' by the textbook, (C, F) each, under "pooled"."""
    cells, hours = X[NAMES].to_numpy(), HOURS[:, None]
    total, exposure = np.nan_to_num(cells) * weight[:, None], ~np.isnan(cells) * hours * weight[:, None]
    return 1.0 + OF_CLASS @ total, exposure.sum(axis=0) / total.sum(axis=0) + OF_CLASS @ exposure


@pytest.mark.parametrize("weight", [np.ones(N), WEIGHT])
def test_posterior_and_predictive_are_the_textbooks(weight):
    nb = fit(weight=weight)
    a, b = posterior(weight)
    np.testing.assert_allclose(nb.rate_, a / b, rtol=1e-12)
    cells, hours = X[NAMES].to_numpy()[:, None], HOURS[:, None, None]
    terms = np.where(np.isnan(cells), 0.0, stats.nbinom.logpmf(np.nan_to_num(cells), a, b / (b + hours))).sum(axis=2)
    joint = terms + np.log(np.bincount(Y, weight) + 1) - np.log(weight.sum() + 2)
    proba = np.exp(joint - np.logaddexp(*joint.T)[:, None])
    np.testing.assert_allclose(nb.predict_proba(X), proba, rtol=1e-9)


def test_the_mle_is_the_sum_of_counts_over_that_of_exposures():
    flat = fit(FULL, prior=bnb.GammaPoisson(0.0, 0.0))
    np.testing.assert_allclose(flat.rate_, OF_CLASS @ COUNTS / (OF_CLASS @ HOURS)[:, None], rtol=1e-12)


def test_exposures_of_one_are_the_model_without():
    ones, plain = X.assign(hours=1), X[NAMES]
    nb, without = fit(ones), bnb.PoissonNB().fit(plain, Y)
    np.testing.assert_array_equal(nb.rate_, without.rate_)
    assert nb.log_evidence_ == without.log_evidence_
    np.testing.assert_array_equal(nb.predict_proba(ones), without.predict_proba(plain))
    np.testing.assert_array_equal(bnb.loo(nb, ones, Y).pointwise, bnb.loo(without, plain, Y).pointwise)
    np.testing.assert_array_equal(bnb.predict_interval(nb, ones), bnb.predict_interval(without, plain))
    drawn, expected = (bnb.posterior_draws(m, 5, X=x, y=Y) for m, x in ((nb, ones), (without, plain)))
    np.testing.assert_array_equal(drawn["rate"], expected["rate"])
    check, other = (bnb.posterior_predictive_check(m, x, Y, draws=20) for m, x in ((nb, ones), (without, plain)))
    pd.testing.assert_frame_equal(check.table, other.table)


@pytest.mark.parametrize("zero", [False, True])
def test_a_unit_of_half_the_size_halves_the_rates_and_nothing_else(zero):
    x = X.assign(owls=0.0) if zero else X  # whose prior has no rate to be derived from
    nb, half = fit(x), fit(x.assign(hours=2 * HOURS))
    np.testing.assert_allclose(half.rate_, nb.rate_ / 2, rtol=1e-12)
    np.testing.assert_allclose(half.predict_proba(x.assign(hours=2 * HOURS)), nb.predict_proba(x), rtol=1e-9)
    assert half.log_evidence_ == pytest.approx(nb.log_evidence_, rel=1e-12)
    for statistic in ("spread", "mean"):
        by_hour, by_half = (getattr(m.statistics_.blocks[0], statistic)() for m in (nb, half))
        np.testing.assert_allclose(by_half, by_hour / 2, rtol=1e-12)


def test_chain_rule():
    prior = bnb.GammaPoisson(2.0, 0.7)
    before, after = fit(X[:-1], Y[:-1], prior=prior), fit(prior=prior)
    a, b, hours = np.full(3, 2.0), np.full(3, 0.7), HOURS[-1]
    of_class = (Y[:-1] == Y[-1])[:, None]
    seen = ~np.isnan(X[NAMES].to_numpy()[:-1]) & of_class
    a, b = a + np.nansum(X[NAMES].to_numpy()[:-1] * seen, axis=0), b + (seen * HOURS[:-1, None]).sum(axis=0)
    row = stats.nbinom.logpmf(COUNTS[-1], a, b / (b + hours)).sum() + np.log((of_class.sum() + 1) / (N + 1))
    assert after.log_evidence_ - before.log_evidence_ == pytest.approx(row, rel=1e-9)
    assert bnb.loo(after, X, Y).row_pointwise[-1] == pytest.approx(row, rel=1e-9)


def test_bayes_identity_with_the_program():
    model, a = bnb.numpyro_model(WHOLE), WHOLE.posterior_.blocks[0]
    theta = {"class_prob": np.array([0.4, 0.6])}
    theta |= {f"rate_{name}": np.array([1.1, 0.7]) * (j + 1) for j, name in enumerate(NAMES)}
    with jax.enable_x64(True):
        joint = float(log_density(model, (model.encode(FULL, Y),), {}, theta)[0])
    of_classes = stats.dirichlet.logpdf([0.4, 0.6], WHOLE.posterior_.class_prior.concentration[0])
    rates = np.stack([theta[f"rate_{name}"] for name in NAMES], axis=1)
    of_rates = stats.gamma.logpdf(rates, np.asarray(a.concentration), scale=1 / np.asarray(a.rate)).sum()
    assert joint - of_classes - of_rates == pytest.approx(WHOLE.log_evidence_, rel=1e-9)


def test_the_program_simulates_at_given_exposures_and_refuses_rows_without():
    model = bnb.numpyro_model(WHOLE)
    simulated = Predictive(model, num_samples=200)(jax.random.key(0), {"hours": np.full(3, 1e4)})
    of_class = np.asarray(simulated["rate_owls"])[np.arange(200)[:, None], np.asarray(simulated["label"])]
    np.testing.assert_allclose(np.asarray(simulated["owls"]) / 1e4, of_class, rtol=0.5, atol=0.05)
    refused("no exposure", model.encode, FULL.assign(hours=0.0))


# -- statistics ---------------------------------------------------------------------------------------


def test_leave_one_out_is_refits():
    scores = bnb.loo(NB, X, Y).pointwise
    for i in (0, 3, 17):
        others = np.arange(N) != i
        left = fit(X[others], Y[others])
        assert scores[i] == pytest.approx(np.log(left.predict_proba(X[i : i + 1])[0, Y[i]]), rel=1e-9)


def test_batches_are_merged_and_forgotten():
    first = bnb.PoissonNB(exposure="hours").partial_fit(X[:25], Y[:25], classes=[0, 1])
    before = first.predict_proba(X)
    first.partial_fit(X[25:], Y[25:])
    np.testing.assert_allclose(first.predict_proba(X), NB.predict_proba(X), rtol=1e-12)
    np.testing.assert_allclose(first.forget(X[25:], Y[25:]).predict_proba(X), before, rtol=1e-12)
    stream = bnb.fit_stream(bnb.PoissonNB(exposure="hours"), ((X[i : i + 9], Y[i : i + 9]) for i in range(0, N, 9)))
    np.testing.assert_allclose(stream.predict_proba(X), NB.predict_proba(X), rtol=1e-12)


def test_counts_of_a_database_are_the_rows():
    with closing(sqlite3.connect(":memory:")) as database:
        FULL.assign(site=Y).to_sql("sites", database, index=False)
        columns = dict.fromkeys(["owls", "hours", *NAMES[1:]], float)
        table = database.execute(bnb.sql.counts("sites", "site", columns)).fetchall()
        unfitted, log_base = bnb.PoissonNB(exposure="hours"), float(WHOLE.statistics_.log_base)
        refused("x log t -log x!", bnb.from_counts, unfitted, table)
        nb = bnb.from_counts(unfitted, table, log_base=log_base)
        np.testing.assert_allclose(nb.rate_, WHOLE.rate_, rtol=1e-12)
        assert nb.log_evidence_ == pytest.approx(WHOLE.log_evidence_, rel=1e-12)
        parts = [f"(SELECT * FROM sites WHERE owls {how})" for how in ("> 2", "<= 2")]
        halves = [row for part in parts for row in database.execute(bnb.sql.counts(part, "site", columns))]
        np.testing.assert_allclose(bnb.from_counts(unfitted, halves, log_base=0.0).rate_, WHOLE.rate_, rtol=1e-12)
        X.assign(site=Y).to_sql("gaps", database, index=False)
        table = database.execute(bnb.sql.counts("gaps", "site", columns)).fetchall()
        refused("'owls' and 'hours' differ", bnb.from_counts, unfitted, table, log_base=0.0)


def test_the_query_scores_rows_at_their_exposures():
    with closing(sqlite3.connect(":memory:")) as database:
        rows = X.assign(id=range(N))
        rows.loc[5, "hours"], rows.loc[6, "hours"] = np.nan, 0.0
        rows.to_sql("sites", database, index=False)
        query = bnb.sql.score(NB, "sites", keep=["id"], estimate="mean")
        scored = np.array(sorted(database.execute(query).fetchall()), float)[:, 1:]
        assert np.flatnonzero(np.isnan(scored).any(axis=1)).tolist() == [5, 6]
        kept = ~np.isnan(scored[:, 0])
        np.testing.assert_allclose(scored[kept], NB.predict_proba(X, estimate="mean")[kept], atol=1e-12)


def test_files(tmp_path):
    bnb.save(NB, tmp_path / "model.bnb")
    loaded = bnb.load(tmp_path / "model.bnb")
    np.testing.assert_array_equal(loaded.predict_proba(X), NB.predict_proba(X))
    loaded.exposure = "owls"
    refused("hyperparameters give", bnb.save, loaded, tmp_path / "other.bnb")


def test_containers_are_the_frame():
    matrix = FULL.to_numpy()
    expected = WHOLE.predict_proba(FULL)
    for x in (matrix, sp.csr_array(matrix), matrix.tolist()):
        for exposure in (1, -3):
            nb = bnb.PoissonNB(exposure=exposure).fit(x, Y)
            np.testing.assert_allclose(nb.predict_proba(x), expected, rtol=1e-12)
    assert (NB.n_features_in_, NB.rate_.shape) == (4, (2, 3))
    assert NB.feature_names_in_.tolist() == ["owls", "hours", "bats", "mice"]


def test_kernels_count_exposed_rows():
    rows, zeros = Exposed(COUNTS, HOURS[:, None]), np.zeros((2, 3))
    totals = ExposedTotals(zeros, zeros, zeros).observe(rows, Y, np.ones(N))
    np.testing.assert_allclose(totals.exposure[:, 0], OF_CLASS @ HOURS, rtol=1e-6)


# -- analyses ---------------------------------------------------------------------------------------


def test_the_exposure_is_no_feature():
    assert "hours" not in set(bnb.parameter_table(NB)["feature"]) | set(bnb.explain(NB, X)["feature"])
    assert bnb.check_drift(NB, X.assign(hours=10 * HOURS)).loc["hours", "p"] < 1e-6
    refused("'hours' has no parameters", bnb.parameter_table, NB, features=["hours"])
    refused("whose kind is exposure", fit, prior={"hours": bnb.GammaPoisson(1.0, 1.0)})
    prior = {"bats": bnb.GammaPoisson(1.0, 9.0)}
    np.testing.assert_allclose(fit(prior=prior).prior_.blocks[0].rate[:, 1], 9.0)


def test_explanations_and_moments_are_of_rows_at_their_exposures():
    long = pd.DataFrame({"owls": [4.0], "hours": [3.0], "bats": [np.nan], "mice": [np.nan]})
    sd = bnb.explain(NB, long).set_index("feature")["sd"]["owls"]
    draws = bnb.posterior_draws(NB, 20_000)["rate"][:, :, 0]
    term = 4.0 * np.log(draws) - 3.0 * draws
    assert sd == pytest.approx((term[:, 1] - term[:, 0]).std(), rel=0.03)
    low, high = bnb.predict_interval(NB, X[:4])
    by_draws = bnb.predict_interval(NB, X[:4], method="draws", draws=4000)
    np.testing.assert_allclose((low, high), by_draws, atol=0.03)


def test_replicates_have_the_exposures_of_the_rows():
    heavy = X.assign(hours=np.where(np.arange(N) == 3, 1e6, HOURS))
    check = bnb.posterior_predictive_check(NB, heavy, Y, statistic=lambda x, y: x["bats"].idxmax(), draws=30)
    assert (check.table["mean"] == 3).all()
    assert bnb.prior_predictive(NB, 50).mean() > 0.5


def test_weights_and_members():
    weighted = bnb.WeightedNB(bnb.PoissonNB(exposure="hours")).fit(X, Y)
    proba = weighted.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    twice = bnb.WeightedNB(bnb.PoissonNB(exposure="hours")).fit(X.assign(hours=2 * HOURS), Y)
    np.testing.assert_allclose(twice.predict_proba(X.assign(hours=2 * HOURS)), proba, rtol=1e-6)


def test_what_is_refused():
    refused("exposures", bnb.check_independence, NB, X, Y, error=NotImplementedError)
    refused("exposure", bnb.value_of_information, NB, X, error=NotImplementedError)


# -- input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", [np.nan, 0.0, -1.0, np.inf, 1e-300])
def test_a_row_without_exposure_is_an_error_that_names_it(cell):
    bad, weight = X.copy(), np.ones(N)
    bad.loc[7, "hours"] = cell
    weight[[2, 7]] = 0.0
    unfitted = bnb.PoissonNB(exposure="hours")
    for call in (NB.predict, lambda x: fit(x), lambda x: fit(x, Y, weight), lambda x: bnb.loo(NB, x, Y),
                 lambda x: unfitted.partial_fit(x, Y, [0, 1], weight)):  # fmt: skip
        refused("'hours': the exposure of row 7", call, bad)
    sparse = sp.csr_array(FULL.assign(hours=np.where(np.arange(N) == 7, 0.0, HOURS)).to_numpy())
    refused("the exposure of row 7 is 0", bnb.PoissonNB(exposure=1).fit, sparse, Y)


def test_bad_arguments():
    refused("there is no column 'days'", bnb.PoissonNB(exposure="days").fit, X, Y)
    refused("no column besides the exposure", bnb.PoissonNB(exposure="hours").fit, X[["hours"]], Y)
    refused("not a number|number", bnb.PoissonNB(exposure="hours").fit, X.assign(hours="long"), Y)


@pytest.mark.slow("a simulation of 200 fits")
@pytest.mark.parametrize("n", [40, 300])
def test_intervals_cover_where_effort_varies(n):
    """90% intervals of P(class | row) for fresh rows, and of rates, with sd of log exposure 1."""
    rng, covered, of_rates = np.random.default_rng(1), [], []
    for _ in range(100):
        rate = rng.gamma(1.0, 1.0, (2, 3))
        y, hours = np.arange(n + 20) % 2, np.exp(rng.normal(size=n + 20))
        x = np.column_stack([rng.poisson(rate[y] * hours[:, None]), hours])
        log_p = stats.poisson.logpmf(x[n:, None, :3], rate * hours[n:, None, None]).sum(axis=2)
        truth = 1 / (1 + np.exp(log_p[:, 0] - log_p[:, 1]))
        nb = bnb.PoissonNB(exposure=-1, class_prior=[0.5, 0.5]).fit(x[:n], y[:n])
        low, high = bnb.predict_interval(nb, x[n:])
        covered.append(((low[:, 1] <= truth) & (truth <= high[:, 1])).mean())
        ends = bnb.parameter_table(nb, prob=0.9).query("level == 'rate'")
        of_rates.append(((ends["lower"] <= rate.ravel()) & (rate.ravel() <= ends["upper"])).mean())
    assert 0.86 <= np.mean(covered) <= 0.94
    assert 0.86 <= np.mean(of_rates) <= 0.94
