"""Leave-one-out in one pass against refits without each row, published sums, and ArviZ's ranking."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesnb as bnb
from tests.data import arff
from tests.raises import refused
from tests.strategies import CLASSES, KINDS, Problem, problems, thorough, variants, with_prior_of
from tests.tables import LABEL, LEVELS, N, declared, of_levels

ESTIMATES = ("predictive", "mean")


def refits(problem: Problem, nb, estimate: str) -> tuple[np.ndarray, np.ndarray]:
    """(N, C) log P(class | x_i, D₋ᵢ), and (N,) log p(x_i, y_i | D₋ᵢ) as a difference of two evidences.

    A prior that is derived from the data is derived from the others; the evidences are given that one.
    """
    log_proba, row = [], []
    for i in range(len(problem)):
        others = problem.take(np.delete(np.arange(len(problem)), i)).fit(nb)
        one = problem.take([i])
        log_proba.append(others.predict_log_proba(one.X, estimate=estimate)[0])
        others.set_params(prior=others.prior_)
        before = others.log_evidence_
        row.append(others.partial_fit(one.X, one.y).log_evidence_ - before)
    return np.array(log_proba), np.array(row)


@pytest.mark.slow("other variants compile kernels of their own", but="categorical")
@pytest.mark.parametrize("kind", thorough(KINDS))
@settings(max_examples=5)
@given(data=st.data())
def test_it_equals_refits_without_each_row(kind, data):
    problem = declared(data.draw(problems(kind, min_rows=2, max_rows=6)))
    whole = problem.fit()
    estimate = data.draw(st.sampled_from(ESTIMATES))
    prior = data.draw(st.sampled_from(["derived", "fixed"]))
    found = bnb.loo(whole, problem.X, problem.y, problem.weight, estimate=estimate, prior=prior)
    same_levels = with_prior_of(problem.nb, whole)
    refit = same_levels if prior == "fixed" else same_levels.set_params(prior=problem.nb.prior)
    log_proba, row = refits(problem, refit, estimate)
    np.testing.assert_allclose(found.log_proba, log_proba, rtol=1e-10, atol=1e-10)
    own = np.array([CLASSES.index(label) for label in problem.y])
    np.testing.assert_array_equal(found.pointwise, found.log_proba[np.arange(len(own)), own])
    np.testing.assert_allclose(found.elpd, problem.weight @ found.pointwise)
    if estimate == "predictive":
        np.testing.assert_allclose(found.row_pointwise, row, rtol=1e-10, atol=1e-10)


PUBLISHED = {
    "car": (-573.004822894, 0.856481),
    "vote": (-269.691321192, 0.901149),
    "breast.cancer": (-183.033553980, 0.727273),
}


def fitted(name: str):
    data = arff(name)
    X = np.where(data.X == "?", None, data.X)
    return bnb.CategoricalNB(categories=data.levels).fit(X, data.y), X, data.y


@variants("name", PUBLISHED)
def test_published_sums(name):
    nb, X, y = fitted(name)
    found = bnb.loo(nb, X, y)
    elpd, accuracy = PUBLISHED[name]
    assert found.elpd == pytest.approx(elpd, abs=1e-6)
    assert found.accuracy == pytest.approx(accuracy, abs=1e-6)


@pytest.mark.slow("compiles kernels of its own")
def test_an_outlier_far_out():
    """Reference: SciPy's Student's t for the outlier and for the other rows."""
    from scipy import stats

    x = np.array([0.1, -0.2, 0.3, 1e4])
    prior = bnb.NormalInverseGamma(0.0, 1.0, 2.0, 1.0)
    nb = bnb.GaussianNB(prior=prior, class_prior=[1.0]).fit(x[:, None], np.zeros(4))
    found = bnb.loo(nb, x[:, None], np.zeros(4)).row_pointwise
    for i in range(4):
        rest = np.delete(x, i)
        kappa, a, m = 4.0, 3.5, rest.sum() / 4
        b = 1.0 + 0.5 * (np.sum((rest - rest.mean()) ** 2) + 3 * rest.mean() ** 2 / 4)
        t = stats.t(2 * a, m, np.sqrt(b * (kappa + 1) / (a * kappa)))
        # The sum of squares is all the outlier's but for 1e-8 of it.
        assert found[i] == pytest.approx(t.logpdf(x[i]), rel=1e-7)


@pytest.mark.slow("compiles kernels of its own")
def test_its_standard_error_is_that_of_a_sum():
    nb, X, y = fitted("vote")
    found = bnb.loo(nb, X, y)
    assert found.se == pytest.approx(np.sqrt(len(y) * np.var(found.pointwise)))
    # A row that counts twice is two rows, but for being left out whole.
    assert bnb.loo(nb.fit(X, y, np.full(len(y), 2.0)), X, y, np.full(len(y), 2.0)).weight.sum() == 2 * len(y)


@pytest.mark.slow("compiles kernels of its own")
def test_arviz_ranks_it():
    import arviz as az

    nb, X, y = fitted("vote")
    averaged = bnb.FeatureAveragedNB(nb).fit(X, y)
    found = {"naive": bnb.loo(nb, X, y), "averaged": bnb.loo(averaged, X, y)}
    for kind in ("label", "row"):
        totals = {name: (loo.pointwise if kind == "label" else loo.row_pointwise).sum() for name, loo in found.items()}
        options = {} if "InferenceData" in vars(az) else {"round_to": "none"}  # 1.x rounds by the error
        table = az.compare({name: loo.to_elpd(kind) for name, loo in found.items()}, **options)
        assert list(table.index) == sorted(totals, key=totals.get, reverse=True)
        column = next(c for c in table.columns if c.startswith("elpd") and "diff" not in c)
        np.testing.assert_allclose(table[column].to_numpy(float), sorted(totals.values(), reverse=True), rtol=1e-9)


def test_rows_that_were_not_counted_are_refused_and_nothing_changes():
    nb = of_levels()
    before = nb.statistics_.blocks[0].count.copy()
    refused(r"^loo: X, y and sample_weight must be rows .*class 'elm'", bnb.loo, nb, LEVELS, ["elm"] * N)
    said = "must be rows that nb was fitted on"
    refused(said, bnb.loo, nb, LEVELS, LABEL, sample_weight=1.0 + (np.arange(N) == 5))
    message = "estimate='map' must be 'predictive' or 'mean': leave-one-out averages over the posterior"
    refused(message, bnb.loo, nb, LEVELS[:1], LABEL[:1], estimate="map")
    np.testing.assert_array_equal(nb.statistics_.blocks[0].count, before)
    assert "LeaveOneOut(60 rows, elpd" in repr(bnb.loo(nb, LEVELS, LABEL))


def test_rows_without_class_probabilities_are_no_hits():
    """Under α = 0 a level that no other row has is impossible in every class: no label is the most probable one."""
    X, y = [["a"], ["b"], ["c"], ["c"]], ["p", "p", "q", "q"]
    scores = bnb.loo(bnb.CategoricalNB(alpha=0).fit(X, y), X, y)
    assert np.isnan(scores.log_proba[:2]).all()
    assert scores.accuracy == 0.5
