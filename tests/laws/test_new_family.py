"""A new conjugate family is one new file, and every analysis works with it."""

import inspect
import re
import warnings
from functools import partial
from pathlib import Path

import dask.array as da
import jax
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpyro.infer.util import log_density
from scipy import stats
from scipy.special import betaln
from sklearn.base import clone

import bayesnb as bnb
from bayesnb._util.kinds import KINDS
from bayesnb.analysis.dependence import check_independence
from bayesnb.analysis.predictive import prior_predictive
from bayesnb.distributed import fit as fit_blocks
from bayesnb.estimators.plain import OF_KIND, NumbersNB
from bayesnb.families import Family, SufficientStatistics
from bayesnb.sampling import programs
from bayesnb.streaming import fit_stream
from bayesnb.uncertainty import site_names
from examples.new_family import BetaGeometric, Failures
from tests.analysis.test_conformal import assert_p_values, by_refits
from tests.analysis.test_derived_priors import log_proba_without_each
from tests.raises import refused
from tests.sampling.problem import values_by_column

CLASSES = ["calm", "rush"]
SUCCESSES, FAILURES = 2.0, 3.0
PRIOR = BetaGeometric(SUCCESSES, FAILURES)


class GeometricNB(NumbersNB):
    """Minimal estimator of the new family."""

    family = BetaGeometric


failures = st.one_of(st.integers(0, 30).map(float), st.just(np.nan))


@st.composite
def cells(draw):
    n = draw(st.integers(5, 8))  # of one size to the kernels
    label = draw(arrays(int, n, elements=st.integers(0, 1)))
    return draw(arrays(float, (n, 3), elements=failures)), np.array(CLASSES)[label]


def fit(X, y, prior=PRIOR, **parameters):
    return GeometricNB(prior=prior, **parameters).partial_fit(X, y, CLASSES)


def some_rows(of_a_class: int = 20, columns: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Rows in the order of their classes; 8 of a class and 3 columns are of the size of `cells` to the kernels."""
    rng = np.random.default_rng(1)
    y = np.repeat(CLASSES, of_a_class)
    X = rng.geometric(np.where(y == "calm", 0.2, 0.6)[:, None], (len(y), columns)) - 1.0
    X[3, 1] = np.nan
    return X, y


def log_predictive(x, a, b):
    return betaln(a + 1, b + x) - betaln(a, b)


def log_evidence(x, a=SUCCESSES, b=FAILURES) -> float:
    """Log evidence of the cells of one class, from the definition."""
    return betaln(a + len(x), b + x.sum()) - betaln(a, b)


def by_hand(nb, x, c: int) -> float:
    """log p(class, row | data)."""
    a, b = nb.posterior_.blocks[0].successes[c], nb.posterior_.blocks[0].failures[c]
    alpha = 1.0 + nb.class_count_
    return np.log(alpha[c] / alpha.sum()) + np.nansum(log_predictive(x, a, b))


def same_bits(one, other) -> None:
    for mine, theirs in zip(jax.tree.leaves(one.statistics_), jax.tree.leaves(other.statistics_), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_nothing_asks_for_a_family_by_type_outside_the_families():
    """Nor for statistics or columns: a family that nobody wired up would be taken for another."""
    home = Path(bnb.__file__).parent
    families = {name for name in bnb.families.__all__ if name[:1].isupper()} - {"Complete"}
    families |= {name for name in bnb.encoding.__all__ if name.endswith("Columns")}
    asked = re.compile(rf"isinstance\([^()]*(\([^()]*\))?[^()]*\b({'|'.join(sorted(families))})\b")
    found = [
        f"{path.relative_to(home)}: {line.strip()}"
        for path in home.rglob("*.py")
        if path.parent.name != "families" and path.name != "__init__.py"
        for line in path.read_text(encoding="utf-8").splitlines()
        if asked.search(line)
    ]
    # What users pass for a hyperparameter may be a Dirichlet, or numbers; or a prior of cuts, or its name.
    asked = ["class_prior, Dirichlet", "alpha, Dirichlet", "given, IndependentCuts"]
    expected = [f"encoding/priors.py: if isinstance({what}):" for what in asked]
    assert sorted(found) == sorted([*expected, "encoding/priors.py: if not isinstance(given, Binned):"])


def test_every_kind_of_numbers_is_wired_up():
    """A kind that `MixedNB` does not know would be left out of its blocks without a word."""
    kinds = {family.kind for family in bnb.families.OF_NUMBERS}
    assert kinds | {"binned"} <= set(KINDS) == set(bnb.MixedNB().get_params()) & set(KINDS)
    assert kinds == set(OF_KIND)
    assert {f"{kind}_prior" for kind in kinds | {"binned"}} <= set(bnb.MixedNB().get_params())
    assert {cls.__name__ for cls in OF_KIND.values()} <= set(bnb.estimators.__all__)


def test_it_offers_what_the_protocol_says_a_family_offers():
    assert issubclass(BetaGeometric, Family)
    assert not inspect.isabstract(BetaGeometric)
    promised = {name for name in vars(SufficientStatistics) if not name.startswith("_")}
    assert promised <= set(dir(Failures))


@given(data=cells())
def test_fit_counts_and_predict_scores(data):
    X, y = data
    nb = fit(X, y)
    for c, label in enumerate(CLASSES):
        np.testing.assert_array_equal(nb.posterior_.blocks[0].successes[c], 2 + (~np.isnan(X[y == label])).sum(axis=0))
        np.testing.assert_array_equal(nb.posterior_.blocks[0].failures[c], 3 + np.nansum(X[y == label], axis=0))
    expected = np.array([[by_hand(nb, x, c) for c in (0, 1)] for x in X])
    np.testing.assert_allclose(nb.predict_joint_log_proba(X), expected, rtol=1e-11)


@given(data=cells(), i=st.integers(1, 7))
def test_partial_fit_and_forget_are_inverse_and_any_chunking_is_the_whole(data, i):
    X, y = data
    i = min(i, len(X) - 1)
    whole, first = fit(X, y), fit(X[:i], y[:i])
    same_bits(clone(whole).partial_fit(X[:i], y[:i], CLASSES).partial_fit(X[i:], y[i:]), whole)
    same_bits(fit(X, y).forget(X[i:], y[i:]), first)


@pytest.mark.slow("a second view of what quick tests see")
def test_em_climbs():
    X, truth = some_rows()
    y = truth.astype(object)
    y[np.arange(40) % 3 > 0] = -1
    em = bnb.fit_em(GeometricNB(), X, y)
    assert (np.diff(em.objective) >= 0).all()
    assert np.mean(em.estimator.predict(X) == truth) > 0.75
    mixture = bnb.NaiveBayesMixture(2, estimator=GeometricNB(), n_init=2).fit(X)
    assert np.isfinite(mixture.bic(X))


@given(data=cells())
def test_chain_rule_and_evidence(data):
    X, y = data
    nb = None
    total = 0.0
    for x, label in zip(X, y, strict=True):
        if nb is None:
            nb = fit(x[None], [label]).forget(x[None], [label])
            assert nb.log_evidence_ == 0
        total += by_hand(nb, x, CLASSES.index(label))
        nb.partial_fit(x[None], [label])
    assert abs(total - fit(X, y).log_evidence_) <= 1e-9 * max(1.0, abs(total))


@pytest.mark.slow("a second view of what quick tests see")
@pytest.mark.parametrize("prior", [PRIOR, "pooled"], ids=["given", "derived"])
def test_leave_one_out_is_that_of_refits(prior):
    X, y = some_rows(8, 3)
    for nb in (GeometricNB(prior=prior), bnb.FeatureAveragedNB(GeometricNB(prior=prior))):
        expected = log_proba_without_each(nb, X, y, np.ones(len(y)))
        np.testing.assert_allclose(bnb.loo(nb.fit(X, y), X, y).log_proba, expected, rtol=1e-10)


@pytest.mark.slow("a second view of what quick tests see")
@pytest.mark.parametrize("prior", [PRIOR, "pooled"], ids=["given", "derived"])
def test_conformal_p_values_are_those_of_refits(prior):
    X, new = np.array([[1.0, 2.0], [3.0, np.nan], [0.0, 9.0], [4.0, 4.0], [7.0, 0.0]]), np.array([[2.0, 5.0]])
    blank, rows = GeometricNB(prior=prior), (X, np.array(["ash", "elm", "oak", "ash", "elm"]), np.ones(5))
    assert_p_values(by_refits(blank, *rows, new), clone(blank).fit(*rows), rows, new)


@pytest.mark.parametrize("estimate", ["mle", "map", "mean", "predictive"])
def test_all_four_estimates_are_read_from_it(estimate):
    X, y = np.array([[1.0, 2.0, 0.0], [3.0, 4.0, 1.0], [0.0, 9.0, 2.0]]), ["calm", "calm", "rush"]
    nb, new = fit(X, y, estimate=estimate), np.full((5, 3), np.nan)
    new[:4, 0], new[2:, 1:] = [1.0, 2.0, 0.0, 2.0], [[1.0, 3.0], [9.0, 0.0], [0.0, 0.0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        joint = nb.predict_joint_log_proba(new)
    assert np.isfinite(joint).any(axis=1).all()
    assert not np.isnan(joint).any()
    prob = {"mle": 2 / 6, "map": (4 - 1) / (4 + 7 - 2), "mean": 4 / 11}.get(estimate)
    if prob is not None:
        assert abs(joint[1, 0] - joint[0, 0] - np.log1p(-prob)) < 1e-14


def test_intervals_of_rows_with_and_without_missing_cells_agree():
    """A row without a missing cell among rows without any, and among rows with some."""
    X = np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 9.0], [2.0, 2.0]])
    nb = fit(X, ["calm", "calm", "rush", "rush"])
    alone, beside = (bnb.predict_interval(nb, rows) for rows in (X[:1], [*X[:1], [np.nan, 1.0]]))
    np.testing.assert_allclose(np.array(beside)[:, :1], alone, rtol=1e-9)


def test_weights_a_known_class_prior_decay_and_the_number_of_parameters_work_too():
    X, y = np.array([[1.0, 0.0, 4.0], [2.0, 0.0, 0.0]]), ["calm", "rush"]
    nb = GeometricNB(class_prior=[0.25, 0.75]).fit(X, y, sample_weight=[2, 1]).decay(0.5)
    np.testing.assert_array_equal(nb.statistics_.blocks[0].total, [[1.0, 0.0, 4.0], [1.0, 0.0, 0.0]])
    joint = nb.predict_joint_log_proba(np.full((5, 3), np.nan))
    np.testing.assert_allclose(np.exp(joint), [[0.25, 0.75]] * 5)
    assert nb.n_parameters_ == 6
    refused("negative", nb.forget, [[50.0, 0.0, 0.0]], ["calm"])


@pytest.mark.parametrize(
    ("prior", "says"),
    [
        ("within", r"prior='within' is unknown; use 'pooled' or a bayesnb\.BetaGeometric"),
        (bnb.GammaPoisson(1.0, 1.0), "use 'pooled' or a bayesnb.BetaGeometric"),
        (BetaGeometric(-1.0, 1.0), r"prior\.successes is -1\.0; it must be finite and at least 0"),
    ],
)
def test_a_prior_that_is_none_of_its_own_is_refused(prior, says):
    refused(says, fit, [[1.0]], ["calm"], prior)


@pytest.mark.slow("simulates many data sets or draws")
def test_the_posterior_analysis_works_on_it():
    X, y = some_rows()
    nb = fit(X, y)
    table = bnb.parameter_table(nb).query("feature == '0' and level == 'prob'")
    beta = stats.beta(2 + 20, 3 + X[y == "calm", 0].sum())
    np.testing.assert_allclose(table[["lower", "upper"]].iloc[0], beta.ppf([0.05, 0.95]))
    drawn = bnb.posterior_draws(nb, draws=4000)["prob"]
    assert stats.kstest(drawn[:, 0, 0], beta.cdf).pvalue > 1e-4
    for informed in ("row", "data"):
        moments = bnb.predict_interval(nb, X[:5], given=informed)
        draws = bnb.predict_interval(nb, X[:5], given=informed, method="draws", draws=4000)
        np.testing.assert_allclose(moments, draws, atol=0.05)
        mean, sd = bnb.log_odds_moments(nb, X[:5], given=informed)
        assert np.isfinite(mean).all()
        assert (sd[:, 1] > 0).all()
    assert (bnb.decompose_uncertainty(nb, X)["epistemic"] >= -1e-12).all()
    contrast = bnb.contrast(nb, 0, "prob", kind="log_odds")
    drawn = bnb.contrast(nb, 0, "prob", kind="log_odds", draws=bnb.posterior_draws(nb, 2000))
    np.testing.assert_allclose(contrast["estimate"], drawn["estimate"], atol=0.1 * contrast["sd"].max())
    sensitivity = bnb.prior_sensitivity(nb, X[:5], steps=3)
    assert (sensitivity["lower"] <= sensitivity["upper"]).all()
    assert len(bnb.decide(nb, X[:5], [[0.0, 1.0], [5.0, 0.0]]).action) == 5


@pytest.mark.slow("a second view of what quick tests see")
def test_it_gives_reasons_and_asks_for_what_is_missing(monkeypatch):
    nb = fit(*some_rows())
    found = bnb.explain(nb, [[3.0, np.nan]], of="rush", against="calm")
    stated = np.subtract(*nb.predict_log_proba([[3.0, np.nan]])[0, ::-1])
    sd = bnb.log_odds_moments(nb, [[3.0, np.nan]], against="calm")[1][0, 1]
    assert (found["contribution"].sum(), np.linalg.norm(found["sd"])) == pytest.approx((stated, sd), rel=1e-10)
    asked = bnb.value_of_information(nb, [[3.0, np.nan]])["value"].item()
    answers = np.column_stack([np.full(500, 3.0), np.arange(500.0)])
    joint = np.stack([[by_hand(nb, row, c) for c in (0, 1)] for row in answers])
    share = np.exp(joint - np.logaddexp(*(by_hand(nb, np.array([3.0, np.nan]), c) for c in (0, 1))))
    after = stats.entropy(share, axis=1)
    assert asked == pytest.approx(stats.entropy(share.sum(axis=0)) - share.sum(axis=1) @ after, abs=1e-4)
    monkeypatch.delattr(BetaGeometric, "predictive_distribution")
    with pytest.raises(NotImplementedError, match="BetaGeometric does not define the method `predictive_distribution`"):
        bnb.value_of_information(nb, [[3.0, np.nan]])


@pytest.mark.slow("a second view of what quick tests see")
def test_tuning_finds_the_strength_that_leave_one_out_and_evidence_prefer():
    X, y = some_rows()

    def with_strength(a: float):
        return fit(X, y, BetaGeometric(a, FAILURES / SUCCESSES * a))

    for by, score in (("evidence", lambda nb: nb.log_evidence_), ("loo", lambda nb: bnb.loo(nb, X, y).elpd)):
        tuned = bnb.tune_alpha(fit(X, y), X, y, by=by, bounds=(0.5, 10))
        assert list(tuned.values) == ["a"]
        assert abs(tuned.objective - score(with_strength(tuned.values["a"]))) < 1e-8
        assert abs(tuned.objective - score(tuned.estimator)) < 1e-8
        assert all(tuned.objective >= score(with_strength(a)) - 1e-6 for a in np.geomspace(0.5, 10, 7))
    derived = bnb.tune_alpha(fit(X, y, "pooled"), X, y, bounds=(0.5, 10))
    np.testing.assert_allclose(derived.objective, bnb.loo(derived.estimator, X, y).elpd, atol=1e-8)


@pytest.mark.slow("compiles kernels of its own")
def test_dependence_is_told_by_its_own_evidence():
    """Numbers are split at the median of the other feature, in both directions."""
    X, y = some_rows()
    X, nats = X[:, [0, 0]], 0.0
    for c in CLASSES:
        x = X[y == c, 0]
        high = x > np.median(x)
        shares = [(part, len(part) / len(x)) for part in (x[high], x[~high])]
        nats += sum(log_evidence(part, SUCCESSES * s, FAILURES * s) for part, s in shares) - log_evidence(x)
    found = check_independence(fit(X, y), X, y, draws=10)
    np.testing.assert_allclose(found["log_bayes_factor"], nats, rtol=1e-9)


@pytest.mark.slow("a second view of what quick tests see")
def test_figures_and_comparisons_are_made_of_it():
    X, y = some_rows()
    nb = fit(X, y)
    assert bnb.plots.forest(nb).get_xlabel() == "prob"
    bnb.plots.shrinkage(nb)
    bnb.plots.prediction_intervals(nb, X, y)
    plt.close("all")
    table = bnb.compare_estimates(GeometricNB(), X, y, X, y)
    assert np.isfinite(table["log_loss"]).any()
    assert bnb.learning_curve(GeometricNB(), X, y, [10, 15], repeats=2, progress=None)["brier"].notna().all()


def test_its_prior_predictive_is_that_of_a_simulation():
    nb = fit(*some_rows(8, 3), class_prior=[0.5, 0.5])
    found = prior_predictive(nb, draws=4000)
    rng = np.random.default_rng(5)
    prob = rng.beta(SUCCESSES, FAILURES, (4000, 2, 3))
    x = rng.geometric(prob[:, 0])  # classes are alike before any data
    density = stats.geom.pmf(x[:, None], prob).prod(axis=2)
    expected = density[:, 0] / density.sum(axis=1)
    assert abs(found.mean() - expected.mean()) < 4 * np.hypot(found.std(), expected.std()) / np.sqrt(4000)


def test_a_file_a_checkpoint_and_blocks_hold_it(tmp_path):
    X, y = some_rows(8, 3)
    nb, path = GeometricNB().fit(X, y), tmp_path / "model"
    bnb.save(nb, path)
    same_bits(bnb.load(path, [GeometricNB]), nb)
    with pytest.raises(
        bnb.CorruptModelError, match=r"'GeometricNB', which is not a type of bayesnb.*load\(path, estimators="
    ):
        bnb.load(path)
    with pytest.raises(TypeError, match=r"has the name of .*Rename one of the two"):
        bnb.load(path, [type("GaussianNB", (GeometricNB,), {})])
    derived = bnb.FeatureAveragedNB(GeometricNB(prior=BetaGeometric(1.0, 2.0))).fit(X, y)
    bnb.save(derived, path)
    loaded = bnb.load(path, [GeometricNB])
    same_bits(loaded, derived)
    assert repr(loaded) == repr(derived)

    def batches(stop):
        yield from ((X[i : i + 8], y[i : i + 8]) for i in range(0, stop, 8))

    checkpoint = tmp_path / "checkpoint"
    fit_stream(GeometricNB(), batches(8), CLASSES, checkpoint, progress=False, every=8)
    same_bits(fit_stream(GeometricNB(), batches(16), CLASSES, checkpoint, progress=False, every=8), nb)
    same_bits(fit_blocks(GeometricNB(), da.from_array(X, chunks=(9, 3)), da.from_array(y, chunks=9)), nb)


def test_arviz_has_its_draws_and_likelihoods():
    X, y = some_rows(8, 3)
    data = bnb.to_arviz(fit(X, y), X, y, draws=3, chains=2, likelihood="row")
    drawn = {name: data["posterior"][name].to_numpy()[0, 0] for name in ("prob", "class_prob")}
    label = np.array([CLASSES.index(c) for c in y])
    expected = np.nansum(stats.geom.logpmf(X + 1, drawn["prob"][label]), axis=1) + np.log(drawn["class_prob"][label])
    np.testing.assert_allclose(data["log_likelihood"]["row"].to_numpy()[0, 0], expected, rtol=1e-11)


@pytest.mark.slow("NumPyro compiles for seconds")
@given(data=cells())
@settings(max_examples=5)
def test_law_2_holds_for_its_numpyro_program(data):
    """For rows and for their statistics; and SciPy says the same of the likelihood."""
    X, y = data
    nb = fit(X, y)
    sites, drawn = site_names(nb.encoding_, nb.prior_), bnb.posterior_draws(nb, 20)
    label = np.array([CLASSES.index(c) for c in y])
    forms = (
        partial(bnb.numpyro_model(nb), X, y),
        partial(programs.naive_bayes_of_statistics, nb.prior_, nb.statistics_, sites=sites),
        partial(programs.sample_all_parameters, nb.prior_, sites),
        partial(programs.sample_all_parameters, nb.posterior_, sites),
    )
    with jax.enable_x64(True):
        of_one = jax.vmap(lambda theta: [log_density(form, (), {}, theta)[0] for form in forms])
        row, counted, prior, posterior = map(np.asarray, jax.jit(of_one)({**drawn, **values_by_column(nb, drawn)}))
    scale = max(1.0, abs(nb.log_evidence_))
    np.testing.assert_allclose(row - posterior, nb.log_evidence_, rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(counted, row, rtol=0, atol=1e-9 * scale)
    by_scipy = np.log(drawn["class_prob"][:, label]).sum(axis=1)
    by_scipy += np.nansum(stats.geom.logpmf(X + 1, drawn["prob"][:, label]), axis=(1, 2))
    np.testing.assert_allclose(row - prior, by_scipy, rtol=1e-9, atol=1e-9)


@pytest.mark.slow("NumPyro compiles for seconds")
@pytest.mark.parametrize("kind", ["symmetric", "pooled"])
def test_its_hyperprior_is_sampled_and_the_rest_is_exact_given_it(kind):
    X, y = some_rows()
    nb = fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = bnb.run_nuts(nb, kind, draws=500, warmup=300, chains=1, progress=False)
    drawn = {name: values.to_numpy()[0] for name, values in data["posterior"].data_vars.items()}
    assert set(drawn) == {"class_alpha", "class_prob", "prob", "failures"}
    count, total = nb.statistics_.blocks[0].count, nb.statistics_.blocks[0].total
    uniform = stats.beta.cdf(drawn["prob"], SUCCESSES + count, drawn["failures"][:, None] + total)
    for c, j in np.ndindex(2, 2):
        assert stats.kstest(uniform[:, c, j], "uniform").pvalue > 1e-4
    averaged = nb.predict_proba(X[:5], draws=data)
    assert np.abs(averaged - nb.predict_proba(X[:5])).max() < 0.2
    np.testing.assert_allclose(averaged.sum(axis=1), 1.0)


@pytest.mark.slow("a second view of what quick tests see")
def test_a_kind_of_numbers_is_a_column_beside_others():
    """`MixedNB` has an argument for each kind that there is; its blocks are made the same way."""
    table = pd.DataFrame({"colour": ["r", "g", "r", "g"], "wait": [0.5, 2.0, 0.25, 4.0], "size": [1.0, 2.0, 1.5, 2.5]})
    y = ["calm", "rush", "calm", "rush"]
    nb = bnb.MixedNB(exponential="wait").fit(table, y)
    assert nb.kinds_ == {"colour": "categorical", "wait": "exponential", "size": "gaussian"}
    alone = bnb.ExponentialNB().fit(table[["wait"]], y)
    np.testing.assert_array_equal(nb.statistics_.blocks[2].total, alone.statistics_.blocks[0].total)
    missing = table.assign(colour=pd.Series([None] * 4, dtype=object), size=np.nan)
    np.testing.assert_allclose(nb.predict_proba(missing), alone.predict_proba(table[["wait"]]), rtol=1e-12)
