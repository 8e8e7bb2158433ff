"""Hyperparameters against brute-force formulas, one cell at a time."""

import datetime
import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from scipy.special import gammaln
from scipy.stats import nbinom, norm, poisson, t

import bayesnb as bnb
from tests.estimators.cases import CASES, N, each, mixed_frame
from tests.raises import refused
from tests.strategies import variants

NAN = float("nan")


def log_beta(alpha):
    return gammaln(alpha).sum(axis=-1) - gammaln(alpha.sum(axis=-1))


def class_index(nb, y):
    return np.array([list(nb.classes_).index(label) for label in y])


def class_counts(y, classes):
    return np.array([np.sum(np.asarray(y) == c) for c in classes], float)


def brute_categorical(X, y, alpha, rows, class_alpha=1.0):
    """Joint (rows, C) and evidence of categorical features; `alpha[j]` is (L_j,) or (C, L_j), levels 0, 1, …"""
    classes = np.unique(y)
    posterior = class_counts(y, classes) + class_alpha
    prior = np.broadcast_to(class_alpha, posterior.shape).astype(float)
    joint = np.tile(np.log(posterior / posterior.sum()), (len(rows), 1))
    evidence = log_beta(posterior) - log_beta(prior)
    for j, a in enumerate(alpha):
        a = np.broadcast_to(a, (len(classes), np.shape(a)[-1])).astype(float)
        count = np.array([[np.sum(X[y == c, j] == level) for level in range(a.shape[1])] for c in classes])
        theta = (a + count) / (a + count).sum(axis=1, keepdims=True)
        evidence += np.sum(log_beta(a + count) - log_beta(a))
        for i, row in enumerate(rows):
            if not np.isnan(row[j]):
                joint[i] += np.log(theta[:, int(row[j])])
    return joint, evidence


def assert_model(nb, rows, joint, evidence):
    np.testing.assert_allclose(nb.predict_joint_log_proba(rows), joint, rtol=1e-12, atol=1e-12)
    assert nb.log_evidence_ == pytest.approx(evidence, rel=1e-12)


# -- shapes of alpha ---------------------------------------------------------------------------------

# Levels of four columns: as many in all as kernels make room for where there are five in each, as in the other tests.
SIZES = (2, 4, 5, 5)
RAGGED = [[0.5, 1.5], [1.0, 2.0, 3.0, 0.1], [0.2, 0.3, 0.4, 0.5, 0.6], [1.0, 1.1, 1.2, 0.7, 0.8]]


def flat(*alpha):
    return [np.full(n, a) for n, a in zip(SIZES, alpha, strict=True)]


def ragged_table():
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.integers(0, n, N) for n in SIZES])
    X[:5] = np.column_stack([np.arange(5) % n for n in SIZES])  # every level occurs
    return X, CASES["CategoricalNB"].y


def per_class(parts):
    """Another alpha for each of the three classes, flat (3, L)."""
    return np.concatenate(parts) * np.array([[1.0], [2.0], [0.25]])


def split(alpha, sizes=SIZES):
    return np.split(alpha, np.cumsum(sizes)[:-1], axis=1)


def groups(sizes):
    return np.repeat(np.arange(len(sizes)), sizes)


@variants(
    ("alpha", "meaning"),
    [
        (0.7, flat(*[0.7] * 4)),
        ([0.5, 2, 3, 1.5], flat(0.5, 2, 3, 1.5)),
        (np.array([0.5, 2, 3, 1.5]), flat(0.5, 2, 3, 1.5)),
        (RAGGED, RAGGED),
        ([np.array(a) for a in RAGGED], RAGGED),
        ([RAGGED[0], 2.0, *RAGGED[2:]], [RAGGED[0], np.full(4, 2.0), *RAGGED[2:]]),
        (per_class(RAGGED), split(per_class(RAGGED))),
        (bnb.Dirichlet(per_class(RAGGED), groups(SIZES), 4), split(per_class(RAGGED))),
        (bnb.Dirichlet(np.concatenate(RAGGED)[None], groups(SIZES), 4), RAGGED),
    ],
    ids=["scalar", "(F,) list", "(F,)", "lists", "arrays", "mixed list", "(C, L)", "Dirichlet", "Dirichlet (1, L)"],
)
def test_alpha_of_categories(alpha, meaning):
    X, y = ragged_table()
    nb = bnb.CategoricalNB(alpha=alpha).fit(X, y)
    assert_model(nb, X, *brute_categorical(X, y, meaning, X))
    expected = np.concatenate([np.broadcast_to(np.asarray(m, float), (3, np.shape(m)[-1])) for m in meaning], axis=1)
    np.testing.assert_allclose(nb.prior_.blocks[0].concentration, expected)


PAIRS = [[0.5, 1.5], [1.0, 2.0], [3.0, 0.1], [1.0, 1.0]]


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize(
    ("alpha", "meaning"),
    [
        (0.7, [np.full(2, 0.7)] * 4),
        ([0.5, 1, 2, 3], [np.full(2, a) for a in (0.5, 1, 2, 3)]),
        (PAIRS, PAIRS),
        (per_class(PAIRS), split(per_class(PAIRS), [2] * 4)),
        (bnb.Dirichlet(per_class(PAIRS), groups([2] * 4), 4), split(per_class(PAIRS), [2] * 4)),
    ],
    ids=["scalar", "(F,)", "pairs", "(C, L)", "Dirichlet"],
)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_alpha_of_binary_features(alpha, meaning, form):
    """Levels are ordered absent, present."""
    X, y = CASES["BernoulliNB"].X, CASES["BernoulliNB"].y
    nb = bnb.BernoulliNB(alpha=alpha).fit(form(X), y)
    assert_model(nb, form(X), *brute_categorical(X, y, meaning, X))


@pytest.mark.slow("compiles kernels of its own")
def test_alpha_of_mixed_columns_has_an_entry_a_column_of_the_table():
    """One entry a column, those of real columns without a meaning; a list may give arrays."""
    X, y = ragged_table()
    binary, words = CASES["BernoulliNB"].X[:, :1], CASES["MultinomialNB"].X[:, :2]
    table = np.column_stack([CASES["GaussianNB"].X[:, 0], X, binary, words])
    nb = bnb.MixedNB(
        gaussian=[0],
        categorical=[1, 2, 3, 4],
        bernoulli=[5],
        multinomial=[6, 7],
        alpha=[1.0, *RAGGED, [0.5, 2.5], 0.3, 0.6],
    ).fit(table, y)
    categorical, gaussian, bernoulli, multinomial = nb.prior_.blocks
    np.testing.assert_array_equal(categorical.concentration, np.tile(np.concatenate(RAGGED), (3, 1)))
    np.testing.assert_array_equal(bernoulli.concentration, np.tile([0.5, 2.5], (3, 1)))
    np.testing.assert_array_equal(multinomial.concentration, np.tile([0.3, 0.6], (3, 1)))
    assert isinstance(gaussian, bnb.NormalInverseGamma)
    nb.set_params(alpha=[1, 2, 3, 4, 5, 6, 7, 8]).fit(table, y)
    categorical, _, bernoulli, multinomial = nb.prior_.blocks
    np.testing.assert_array_equal(categorical.concentration[0], np.repeat([2, 3, 4, 5], SIZES))
    np.testing.assert_array_equal(bernoulli.concentration[0], [6, 6])
    np.testing.assert_array_equal(multinomial.concentration[0], [7, 8])


@pytest.mark.slow("compiles kernels of its own")
def test_mixed_columns_are_the_product_of_their_parts():
    """log p(class, row) and the evidence add up over blocks, the class counted once."""
    y = CASES["MixedNB"].y
    parts = {
        "gaussian": (bnb.GaussianNB, CASES["GaussianNB"].X),
        "categorical": (bnb.CategoricalNB, CASES["CategoricalNB"].X),
        "bernoulli": (bnb.BernoulliNB, CASES["BernoulliNB"].X),
        "poisson": (bnb.PoissonNB, CASES["PoissonNB"].X),
        "multinomial": (bnb.MultinomialNB, CASES["MultinomialNB"].X),
    }
    table = np.column_stack([X for _, X in parts.values()])
    columns = {kind: list(range(4 * i, 4 * i + 4)) for i, kind in enumerate(parts)}
    for estimate in ("mle", "mean", "predictive"):
        mixed = bnb.MixedNB(**columns, estimate=estimate).fit(table, y)
        single = [make(estimate=estimate).fit(X, y) for make, X in parts.values()]
        joint = sum(nb.predict_joint_log_proba(X) for nb, (_, X) in zip(single, parts.values(), strict=True))
        log_class = single[0].class_log_prior_ if estimate != "mle" else np.log(single[0].class_count_ / N)
        np.testing.assert_allclose(mixed.predict_joint_log_proba(table), joint - 4 * log_class, rtol=1e-11)
    class_evidence = log_beta(single[0].class_count_ + 1) - log_beta(np.ones(3))
    total = sum(nb.log_evidence_ for nb in single) - 4 * class_evidence
    assert mixed.log_evidence_ == pytest.approx(total, rel=1e-12)
    assert mixed.n_parameters_ == sum(nb.n_parameters_ - 2 for nb in single) + 2


# -- the four readings -------------------------------------------------------------------------------


def test_readings_of_categories():
    """α = 2 throughout: mode (n + 1)/(N + L), mean (n + 2)/(N + 2L), MLE n/N."""
    X, y = ragged_table()
    nb = bnb.CategoricalNB(alpha=2, class_alpha=2).fit(X, y)
    n_c = nb.class_count_
    for estimate, add in (("mle", 0), ("map", 1), ("mean", 2), ("predictive", 2)):
        expected = np.tile(np.log((n_c + add) / (N + 3 * add)), (N, 1))
        for j, count in enumerate(nb.category_count_):
            theta = (count + add) / (n_c[:, None] + add * count.shape[1])
            with np.errstate(divide="ignore"):
                expected += np.log(theta[:, X[:, j]].T)
        np.testing.assert_allclose(nb.predict_joint_log_proba(X, estimate=estimate), expected, rtol=1e-12)


def test_readings_of_gaussian_features():
    X, y = CASES["GaussianNB"].X, CASES["GaussianNB"].y
    m, kappa, a, b = 0.3, 0.5, 3.0, 2.0
    prior = bnb.NormalInverseGamma(loc=m, kappa=kappa, concentration=a, rate=b)
    nb = bnb.GaussianNB(prior=prior, class_alpha=2).fit(X, y)
    scores = {name: np.zeros((N, 3)) for name in ("mle", "map", "mean", "predictive")}
    for c, label in enumerate(nb.classes_):
        own = X[y == label]
        n, mean, m2 = len(own), own.mean(axis=0), len(own) * own.var(axis=0)
        k, loc = kappa + n, (kappa * m + n * mean) / (kappa + n)
        shape, rate = a + n / 2, b + m2 / 2 + kappa * n * (mean - m) ** 2 / (2 * (kappa + n))
        density = {
            "mle": norm(mean, np.sqrt(m2 / n)),
            "map": norm(loc, np.sqrt(rate / (shape + 1.5))),
            "mean": norm(loc, np.sqrt(rate / (shape - 1))),
            "predictive": t(2 * shape, loc, np.sqrt(rate * (k + 1) / (shape * k))),
        }
        prob = {"mle": n / N, "map": (n + 1) / (N + 3), "mean": (n + 2) / (N + 6), "predictive": (n + 2) / (N + 6)}
        for name in scores:
            scores[name][:, c] = np.log(prob[name]) + density[name].logpdf(X).sum(axis=1)
        np.testing.assert_allclose(nb.theta_[c], loc, rtol=1e-12)
        np.testing.assert_allclose(nb.var_[c], rate / (shape - 1), rtol=1e-12)
    for name, expected in scores.items():
        np.testing.assert_allclose(nb.predict_joint_log_proba(X, estimate=name), expected, rtol=1e-11)


def test_readings_of_poisson_features():
    X, y = CASES["PoissonNB"].X, CASES["PoissonNB"].y
    a, b = 2.5, 0.5
    nb = bnb.PoissonNB(prior=bnb.GammaPoisson(a, b), class_alpha=2).fit(X, y)
    base = gammaln(X + 1).sum(axis=1)  # log x! is left out
    for name, add in (("mle", 0), ("map", 1), ("mean", 2), ("predictive", 2)):
        expected = np.empty((N, 3))
        for c, label in enumerate(nb.classes_):
            own = X[y == label]
            n, total = len(own), own.sum(axis=0)
            density = {
                "mle": poisson(total / n),
                "map": poisson((a + total - 1) / (b + n)),
                "mean": poisson((a + total) / (b + n)),
                "predictive": nbinom(a + total, (b + n) / (b + n + 1)),
            }[name]
            expected[:, c] = np.log((n + add) / (N + 3 * add)) + density.logpmf(X).sum(axis=1) + base
        np.testing.assert_allclose(nb.predict_joint_log_proba(X, estimate=name), expected, rtol=1e-10)


@each
@pytest.mark.parametrize("estimate", ["mle", "map", "mean", "predictive"])
def test_estimate_of_a_prediction_overrides_the_constructors(case, estimate):
    options = {"alpha": 2.0} if "alpha" in case.make().get_params() else {}
    given = case.make(estimate=estimate, **options).fit(case.X, case.y)
    for other in ("mean", "mle"):
        nb = case.make(estimate=other, **options).fit(case.X, case.y)
        for method in ("predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba"):
            np.testing.assert_array_equal(
                getattr(nb, method)(case.X, estimate=estimate), getattr(given, method)(case.X)
            )
        assert nb.score(case.X, case.y, estimate=estimate) == given.score(case.X, case.y)
        assert nb.estimate == other


@each
def test_probabilities_are_normalised_joints(case):
    nb = case.fit()
    joint = nb.predict_joint_log_proba(case.X)
    expected = joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)
    np.testing.assert_allclose(nb.predict_log_proba(case.X), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(nb.predict_proba(case.X).sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_array_equal(nb.predict(case.X), nb.classes_[joint.argmax(axis=1)])
    assert nb.score(case.X, case.y) == np.mean(nb.predict(case.X) == case.y)


# -- class probabilities -----------------------------------------------------------------------------


@each
def test_class_alpha(case):
    for class_alpha in (0.0, 0.5, [1.0, 2.0, 3.0]):
        nb = case.make(class_alpha=class_alpha).fit(case.X, case.y)
        posterior = nb.class_count_ + class_alpha
        np.testing.assert_allclose(np.exp(nb.class_log_prior_), posterior / posterior.sum(), rtol=1e-14)


@each
def test_known_class_probabilities_do_not_learn(case):
    prior = np.array([0.2, 0.3, 0.5])
    nb = case.make(class_prior=prior).fit(case.X, case.y)
    np.testing.assert_allclose(nb.class_log_prior_, np.log(prior), rtol=1e-15)
    free = case.fit()
    for estimate in ("mle", "mean", "predictive"):
        log_class = np.log(free.class_count_ / N) if estimate == "mle" else free.class_log_prior_
        learned = free.predict_joint_log_proba(case.X, estimate=estimate)
        given = nb.predict_joint_log_proba(case.X, estimate=estimate)
        np.testing.assert_allclose(given, learned - log_class + np.log(prior), rtol=1e-12)
    # The evidence is that of labels with known probabilities.
    learned = log_beta(free.class_count_ + 1) - log_beta(np.ones(3))
    known = nb.class_count_ @ np.log(prior)
    assert nb.log_evidence_ == pytest.approx(free.log_evidence_ - learned + known, rel=1e-12)
    nb.partial_fit(case.X, case.y)
    np.testing.assert_allclose(nb.class_log_prior_, np.log(prior), rtol=1e-15)


@each
def test_class_prior_as_a_distribution_is_class_alpha(case):
    prior = bnb.Dirichlet(np.array([[0.5, 2.0, 3.0]]), np.zeros(3, int), 1)
    nb = case.make(class_prior=prior).fit(case.X, case.y)
    same = case.make(class_alpha=[0.5, 2.0, 3.0]).fit(case.X, case.y)
    np.testing.assert_array_equal(nb.predict_log_proba(case.X), same.predict_log_proba(case.X))
    assert nb.log_evidence_ == same.log_evidence_


@each
@pytest.mark.parametrize("estimate", ["mle", "mean", "predictive"])
def test_class_prior_of_a_prediction_is_a_shifted_prevalence(case, estimate):
    """P'(c | x) ∝ P(c | x) · new_c / old_c, and the fitted class prior stays."""
    nb = case.fit()
    shifted = np.array([0.7, 0.2, 0.1])
    old = nb.class_count_ / N if estimate == "mle" else np.exp(nb.class_log_prior_)
    expected = nb.predict_proba(case.X, estimate=estimate) * shifted / old
    expected /= expected.sum(axis=1, keepdims=True)
    proba = nb.predict_proba(case.X, estimate=estimate, class_prior=shifted)
    np.testing.assert_allclose(proba, expected, rtol=1e-9, atol=1e-14)
    chosen = class_index(nb, nb.predict(case.X, estimate=estimate, class_prior=shifted))
    np.testing.assert_allclose(expected[np.arange(N), chosen], expected.max(axis=1), rtol=1e-12)  # ties
    np.testing.assert_allclose(np.exp(nb.class_log_prior_).sum(), 1)
    without = nb.predict_proba(case.X, estimate=estimate, class_prior=[0.5, 0.5, 0])
    assert not without[:, 2].any()
    np.testing.assert_allclose(without.sum(axis=1), 1)


# -- priors ------------------------------------------------------------------------------------------


@each
def test_prior_of_another_model(case):
    """The posterior of the first half as the prior of the second gives the posterior of the whole."""
    first, second = slice(0, N // 2), slice(N // 2, N)
    options = {"categories": [range(5)] * 4} if case.make is bnb.CategoricalNB else {}
    whole = case.make(**options).fit(case.X, case.y)
    half = case.make(prior=whole.prior_, **options).fit(case.X[first], case.y[first])
    rest = case.make(prior=half.posterior_, **options).fit(case.X[second], case.y[second])
    np.testing.assert_allclose(rest.predict_log_proba(case.X), whole.predict_log_proba(case.X), rtol=1e-9, atol=1e-12)
    assert half.log_evidence_ + rest.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-11)


@pytest.mark.parametrize("shape", ["scalar", "(F,)", "(C, F)"])
def test_shapes_of_priors(shape):
    rng = np.random.default_rng(0)
    size = {"scalar": (), "(F,)": (4,), "(C, F)": (3, 4)}[shape]
    fields = {name: rng.uniform(0.5, 2, size) for name in ("loc", "kappa", "concentration", "rate")}
    normal, gamma = bnb.NormalInverseGamma(**fields), bnb.GammaPoisson(fields["concentration"], fields["rate"])
    for name, options in (
        ("GaussianNB", {"prior": normal}),
        ("MixedNB", {"gaussian_prior": normal, "numbers": "gaussian"}),
        ("PoissonNB", {"prior": gamma}),
    ):
        block = CASES[name].fit(**options).prior_.blocks[0]
        for field in vars(gamma if name == "PoissonNB" else normal):
            np.testing.assert_array_equal(getattr(block, field), np.broadcast_to(fields[field], (3, 4)))


def gaps_and_constants():
    """Real columns: a huge one with gaps, one constant, one constant up to rounding, one never observed."""
    X, y = CASES["GaussianNB"].X.copy(), CASES["GaussianNB"].y
    X[:, 0] *= 1e6
    X[::7, 0] = NAN
    X[:, 1] = 3.25
    X[:, 2] = 1e8 + 1e-6 * np.arange(N) / N
    X[:, 3] = NAN
    return X, y, np.random.default_rng(0).integers(1, 4, N).astype(float)


@pytest.mark.parametrize("prior", ["pooled", "within"])
@pytest.mark.parametrize("weighted", [False, True])
def test_derived_prior_of_gaussian_features(prior, weighted):
    X, y, weight = gaps_and_constants()
    nb = bnb.GaussianNB(prior=prior).fit(X, y, sample_weight=weight if weighted else None)
    rows = np.repeat(np.arange(N), weight.astype(int)) if weighted else np.arange(N)
    X, y = X[rows], y[rows]
    seen = ~np.isnan(X[:, 0])
    cell, label = X[seen, 0], y[seen]
    centred = cell - (cell.mean() if prior == "pooled" else np.array([cell[label == c].mean() for c in label]))
    expected_loc, expected_rate = [*np.nanmean(X[:, :3], axis=0), 0.0], [np.mean(centred**2), 1.0, 1.0, 1.0]
    block = nb.prior_.blocks[0]
    for c in range(3):
        np.testing.assert_allclose(block.loc[c], expected_loc, rtol=1e-10)
        np.testing.assert_allclose(block.rate[c], expected_rate, rtol=1e-10)
    assert (block.kappa == 0.1).all()
    assert (block.concentration == 1).all()


def test_derived_prior_of_poisson_features():
    X = CASES["PoissonNB"].X.astype(float)
    X[::5, 0] = NAN
    X[:, 1] = 0
    X[:, 2] = NAN
    block = bnb.PoissonNB().fit(X, CASES["PoissonNB"].y).prior_.blocks[0]
    mean = [np.nanmean(X[:, 0]), 1.0, 1.0, X[:, 3].mean()]
    np.testing.assert_allclose(block.rate, np.tile(1 / np.array(mean), (3, 1)), rtol=1e-13)
    assert (block.concentration == 1).all()


# -- missing cells -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", [None, NAN, pd.NA, pd.NaT, "?", -1], ids=repr)
def test_missing_categories_are_marginalised(mark):
    X, y = ragged_table()
    holes = np.random.default_rng(5).uniform(size=X.shape) < 0.2
    numbers = np.where(holes, NAN, X)
    table = X.astype(object)
    table[holes] = mark
    options = {"missing_values": mark} if isinstance(mark, str | int) else {}
    joint, evidence = brute_categorical(numbers, y, flat(1, 1, 1, 1), numbers)
    for form in (table, pd.DataFrame(table, columns=list("abcd"))):
        nb = bnb.CategoricalNB(**options).fit(form, y)
        assert [len(levels) for levels in nb.categories_] == list(SIZES)
        assert_model(nb, form, joint, evidence)
        mixed = bnb.MixedNB(categorical=[0, 1, 2, 3], **options).fit(form, y)
        assert_model(mixed, form, joint, evidence)


def test_missing_values_reach_data_frames_of_integers():
    X, y = ragged_table()
    X[3, 1] = 5
    frame = pd.DataFrame(X, columns=list("abcd"))
    for form in (frame, pl.from_pandas(frame)):
        nb = bnb.CategoricalNB(missing_values=5).fit(form, y)
        assert [levels.tolist() for levels in nb.categories_] == [list(range(n)) for n in SIZES]
        assert nb.category_count_[1].sum() == N - 1


# -- levels ------------------------------------------------------------------------------------------


def test_equal_values_of_two_types_are_one_level():
    X, y = ragged_table()
    nb = bnb.CategoricalNB().fit(X, y)
    expected = nb.predict_log_proba(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dtype in (float, np.int8, object, np.float32):
            np.testing.assert_array_equal(nb.predict_log_proba(X.astype(dtype)), expected)


def growing():
    """Two chunks, the second with levels that the first does not have."""
    return [["b"], ["c"], ["b"]], list("xyx"), [["a"], ["d"], ["b"]], list("yxy")


@pytest.mark.parametrize(
    "categories",
    [[["a", "b", "c"]], {0: ["a", "b", "c"]}, (("c", "b", "a"),), [np.array(["b", "a", "c"])]],
    ids=["list", "dict", "tuple", "array"],
)
def test_declared_levels_belong_to_the_model_and_do_not_grow(categories):
    X1, y1, X2, y2 = growing()
    nb = bnb.CategoricalNB(categories=categories).fit(X1, y1)
    assert nb.categories_[0].tolist() == ["a", "b", "c"]
    assert nb.category_count_[0].tolist() == [[0, 2, 0], [0, 0, 1]]
    np.testing.assert_allclose(np.exp(nb.feature_log_prob_[0]), [[1 / 5, 3 / 5, 1 / 5], [1 / 4, 1 / 4, 2 / 4]])
    with pytest.warns(UserWarning, match="'d'"):
        nb.partial_fit(X2, y2)
    assert nb.categories_[0].tolist() == ["a", "b", "c"]
    assert nb.category_count_[0].tolist() == [[0, 2, 0], [1, 1, 1]]  # the cell "d" is missing
    assert nb.class_count_.tolist() == [3, 3]
    with pytest.warns(UserWarning, match="'d'"):
        nb.forget(X2, y2)
    assert nb.category_count_[0].tolist() == [[0, 2, 0], [0, 0, 1]]


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_categories_of_a_data_frame_are_declared(container):
    X1, y1, X2, y2 = growing()
    if container == "pandas":
        cells = [row[0] for row in X1], [row[0] if row[0] != "d" else None for row in X2]
        first, second = (pd.DataFrame({"f": pd.Categorical(column, list("cba"))}) for column in cells)
    else:
        first = pl.DataFrame({"f": [r[0] for r in X1]}, schema={"f": pl.Enum(list("cba"))})
        second = pl.DataFrame({"f": [r[0] for r in X2]})
    nb = bnb.CategoricalNB().fit(first, y1)
    assert nb.categories_[0].tolist() == ["a", "b", "c"]
    assert nb.category_count_[0].tolist() == [[0, 2, 0], [0, 0, 1]]
    if container == "pandas":  # a frame cannot hold what is no category
        nb.partial_fit(second, y2)
    else:
        with pytest.warns(UserWarning, match="'d'"):
            nb.partial_fit(second, y2)
    assert nb.category_count_[0].tolist() == [[0, 2, 0], [1, 1, 1]]
    wider = pd.DataFrame({"f": pd.Categorical(["d", "b"], list("abcd"))})
    with pytest.warns(UserWarning, match="'d'"):
        nb.partial_fit(wider, ["x", "y"])
    assert nb.categories_[0].tolist() == ["a", "b", "c"]


def test_codes_of_a_categorical_are_not_mistaken_for_levels():
    """Later frames may have other categories, or the same in another order."""
    nb = bnb.CategoricalNB().fit(pd.DataFrame({"f": pd.Categorical(["b", "c", "b"], list("abc"))}), list("xyz"))
    expected = nb.predict_log_proba(pd.DataFrame({"f": ["c", "b"]}))
    for categories in (list("cba"), list("bc"), list("xbc")):
        frame = pd.DataFrame({"f": pd.Categorical(["c", "b"], categories)})
        np.testing.assert_array_equal(nb.predict_log_proba(frame), expected)


@pytest.mark.slow("compiles kernels of its own")
def test_categories_by_name_leave_the_rest_automatic():
    frame = pd.DataFrame({"size": ["S", "M", "S"], "colour": ["red", "blue", "red"]})
    sizes = ["S", "M", "XL"]
    for categories in ({"size": sizes}, {0: sizes}, [sizes, "auto"], [sizes, None]):
        nb = bnb.CategoricalNB(categories=categories).fit(frame, list("aba"))
        assert [levels.tolist() for levels in nb.categories_] == [["M", "S", "XL"], ["blue", "red"]]
        assert nb.n_parameters_ == 1 + 2 * (2 + 1)
    mixed = bnb.MixedNB(categories={"size": sizes}).fit(frame.assign(length=[1.0, 2.0, 4.0]), list("aba"))
    assert mixed.n_parameters_ == 1 + 2 * (2 + 1) + 2 * 2


# -- unknown levels ----------------------------------------------------------------------------------


UNKNOWN = np.array(list("xxxxyyz") * 8 + list("xxxx"))
CELLS = [(1, 0), (3, 0), (4, 0)]


def unknown_setting(mode):
    """A model, and rows of which three have a level that it does not know."""
    X = CASES["CategoricalNB"].X.astype(object)
    nb = bnb.CategoricalNB(handle_unknown=mode).fit(X, UNKNOWN)
    return nb, marked(X, "zwz")


def marked(X, marks):
    X = X.copy()
    X[tuple(zip(*CELLS, strict=True))] = list(marks)
    return X


def test_unknown_levels_are_ignored_with_one_warning():
    nb, rows = unknown_setting("ignore")
    with pytest.warns(UserWarning, match="levels that the model does not know") as caught:
        joint = nb.predict_joint_log_proba(rows)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert all(word in message for word in ("3 cells", "column '0'", "'z'", "row 1", "missing"))
    np.testing.assert_array_equal(joint, nb.predict_joint_log_proba(marked(rows, [None] * 3)))
    rows[:2, 3] = "o"  # in several columns
    for method in ("predict", "predict_proba", "predict_log_proba"):
        with pytest.warns(UserWarning, match="does not know") as caught:
            getattr(nb, method)(rows)
        assert len(caught) == 1, method


def test_unknown_levels_are_an_error():
    nb, rows = unknown_setting("error")
    nb.predict(marked(rows, [0, 1, 2]))
    for method in ("predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba"):
        refused(r"3 cells of column '0'.*'z' at row 1.*handle_unknown", getattr(nb, method), rows)
    declared = bnb.CategoricalNB(handle_unknown="error", categories=[["a"], ["p", "q"]])
    refused(r"column '0'.*'b' at row 1.*categories", declared.fit, [["a", "p"], ["b", "q"]], ["x", "y"])
    grown = nb.partial_fit(rows, UNKNOWN)  # automatic levels grow: there it is not unknown
    assert grown.categories_[0].tolist() == [0, 1, 2, 3, 4, "w", "z"]


def test_unknown_levels_have_a_level_of_their_own():
    nb, rows = unknown_setting("level")
    plain, _ = unknown_setting("ignore")
    assert [levels.tolist() for levels in nb.categories_] == [[0, 1, 2, 3, 4, "<unknown>"]] * 4
    assert nb.n_parameters_ == 2 + 3 * 4 * 5
    asked = marked(rows, [5, 5, 5]).astype(float)
    joint, evidence = brute_categorical(CASES["CategoricalNB"].X, UNKNOWN, [np.ones(6)] * 4, asked)
    with pytest.warns(UserWarning, match="does not know") as caught:
        np.testing.assert_allclose(nb.predict_joint_log_proba(rows), joint, rtol=1e-13)
    assert nb.log_evidence_ == pytest.approx(evidence, rel=1e-13)
    assert nb.log_evidence_ != plain.log_evidence_
    # It favours the class with few rows: 1/(8 + 6) against 1/(36 + 6).
    assert len(caught) == 1
    message = str(caught[0].message)
    assert all(word in message for word in ("3 cells", "column '0'", "'z'", "row 1", "<unknown>", f"{42 / 14:.3g}"))


def test_undeclared_values_are_counted_at_the_reserved_level():
    nb = bnb.CategoricalNB(handle_unknown="level", categories=[["a", "b"]])
    with pytest.warns(UserWarning, match="2 cells"):
        nb.fit([["a"], ["z"], ["y"], ["b"]], list("xxyy"))
    assert nb.category_count_[0].tolist() == [[1, 0, 1], [0, 1, 1]]
    with pytest.warns(UserWarning, match="1 cell"):
        nb.partial_fit([["q"]], ["x"])
    assert nb.category_count_[0].tolist() == [[1, 0, 2], [0, 1, 1]]
    with pytest.warns(UserWarning, match="1 cell"):
        nb.forget([["q"]], ["x"])
    assert nb.category_count_[0].tolist() == [[1, 0, 1], [0, 1, 1]]


def test_the_reserved_level_keeps_its_place_as_levels_grow():
    X1, y1, X2, y2 = growing()
    nb = bnb.CategoricalNB(handle_unknown="level").partial_fit(X1, y1, classes=["x", "y"]).partial_fit(X2, y2)
    assert nb.categories_[0].tolist() == ["a", "b", "c", "d", "<unknown>"]
    assert nb.category_count_[0].tolist() == [[0, 2, 0, 1, 0], [1, 1, 1, 0, 0]]
    alpha = [[1.0, 1.0, 1.0, 1.0, 0.25]]  # "one ordinary reserved level with its own α"
    assert nb.with_priors({"alpha": alpha}).prior_.blocks[0].concentration.tolist() == [alpha[0]] * 2


# -- binarize ----------------------------------------------------------------------------------------


@variants("threshold", [0.0, 1.0, 1.5, 2])
def test_a_cell_is_present_where_it_exceeds_the_threshold(threshold):
    X, y = CASES["MultinomialNB"].X.copy(), CASES["MultinomialNB"].y
    X[::5] *= -1  # so that a sparse matrix has cells below zero
    present = np.greater(X, threshold)
    expected = bnb.BernoulliNB(binarize=None).fit(present, y)
    for form in (np.asarray, sp.csr_matrix, np.asfortranarray, pd.DataFrame):
        nb = bnb.BernoulliNB(binarize=threshold).fit(form(X), y)
        np.testing.assert_array_equal(nb.feature_count_, expected.feature_count_)
        joint = expected.predict_joint_log_proba(present)
        np.testing.assert_allclose(nb.predict_joint_log_proba(form(X)), joint, rtol=1e-12, atol=1e-12)


def test_a_negative_threshold():
    X = np.array([[-2.0, 0.0], [-0.5, -3.0], [1.0, 0.0]])
    nb = bnb.BernoulliNB(binarize=-1.0).fit(X, list("aab"))
    assert nb.feature_count_.tolist() == [[1, 1], [1, 1]]
    refused(r"binarize=-1\.0.*sparse", bnb.BernoulliNB(binarize=-1.0).fit, sp.csr_matrix(X), list("aab"))


@pytest.mark.parametrize("binarize", [None, 0.0, 0.5])
def test_missing_is_looked_at_before_the_threshold(binarize):
    X, y = CASES["BernoulliNB"].X.astype(float), CASES["BernoulliNB"].y
    X[np.random.default_rng(1).uniform(size=X.shape) < 0.2] = NAN
    nb = bnb.BernoulliNB(binarize=binarize).fit(X, y)
    assert_model(nb, X, *brute_categorical(X, y, [np.ones(2)] * 4, X))
    mixed = bnb.MixedNB(bernoulli=range(4), binarize=binarize).fit(X, y)
    assert_model(mixed, X, *brute_categorical(X, y, [np.ones(2)] * 4, X))


# -- kinds of columns --------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
def test_kinds_from_the_dtypes_of_pandas():
    frame = mixed_frame().assign(
        small=np.arange(N, dtype=np.int8),
        single=np.arange(N, dtype=np.float32),
        nullable=pd.array([None, *range(N - 1)], dtype="Int64"),
        nullable_float=pd.array([None, *range(N - 1)], dtype="Float64"),
        nullable_bool=pd.array([None, *[True] * (N - 1)], dtype="boolean"),
        text=pd.array(["x"] * N, dtype="string"),
        things=pd.Series([(1, 2)] * N, dtype=object),
    )
    nb = bnb.MixedNB(numbers="gaussian").fit(frame, CASES["MixedNB"].y)
    gaussian = {"length", "age", "small", "single", "nullable", "nullable_float"}
    assert nb.kinds_ == {name: "gaussian" if name in gaussian else "categorical" for name in frame}
    assert list(nb.kinds_) == list(frame)
    assert np.isfinite(nb.predict_log_proba(frame)).all()


@pytest.mark.slow("compiles kernels of its own")
def test_kinds_from_the_dtypes_of_polars():
    frame = pl.DataFrame(
        {
            "length": CASES["GaussianNB"].X[:, 0],
            "age": CASES["PoissonNB"].X[:, 0],
            "colour": np.array(["red", "green", "blue"])[CASES["PoissonNB"].X[:, 1] % 3].tolist(),
            "ripe": CASES["PoissonNB"].X[:, 2] > 1,
        }
    ).with_columns(
        size=pl.col("colour").cast(pl.Categorical), grade=pl.col("colour").cast(pl.Enum(["red", "green", "blue", "no"]))
    )
    nb = bnb.MixedNB().fit(frame, CASES["MixedNB"].y)
    kinds = {"length": "gaussian", "age": "gaussian"}
    assert nb.kinds_ == kinds | dict.fromkeys(["colour", "ripe", "size", "grade"], "categorical")
    pandas = pd.DataFrame({name: frame[name].to_list() for name in frame.columns})
    pandas["grade"] = pd.Categorical(pandas["grade"], ["red", "green", "blue", "no"])
    expected = bnb.MixedNB().fit(pandas, CASES["MixedNB"].y)
    np.testing.assert_allclose(nb.predict_log_proba(frame), expected.predict_log_proba(pandas), rtol=1e-12)
    assert nb.log_evidence_ == pytest.approx(expected.log_evidence_, rel=1e-12)


@pytest.mark.slow("compiles kernels of its own")
def test_kinds_from_the_values_of_arrays():
    X, y = CASES["BernoulliNB"].X, CASES["MixedNB"].y
    more = X + np.arange(len(X))[:, None] % 3
    for dtype in (float, np.float32, int, np.uint8, object):
        for kind in ("gaussian", "binned"):
            assert bnb.MixedNB(numbers=kind).fit(more.astype(dtype), y).kinds_ == dict.fromkeys("0123", kind)
    for table in (X.astype(bool), X.astype(object), X.astype(float), more.astype(str), more.astype(str).tolist()):
        assert bnb.MixedNB().fit(table, y).kinds_ == dict.fromkeys("0123", "categorical")


@pytest.mark.slow("compiles kernels of its own")
def test_columns_by_name_and_by_position():
    frame, y = mixed_frame(), CASES["MixedNB"].y
    by_name = bnb.MixedNB(poisson=["age"], categorical=["ripe"]).fit(frame, y)
    kinds = {"length": "gaussian", "age": "poisson"}
    assert by_name.kinds_ == kinds | dict.fromkeys(["colour", "ripe", "size"], "categorical")
    for age in ([1], "age", 1, [-4], ("age",), np.array([1])):
        nb = bnb.MixedNB(poisson=age).fit(frame, y)
        assert nb.kinds_ == by_name.kinds_
        np.testing.assert_array_equal(nb.predict_log_proba(frame), by_name.predict_log_proba(frame))


# -- weights -----------------------------------------------------------------------------------------


@each
def test_a_row_of_weight_zero_is_not_even_looked_at(case):
    bad = np.vstack([case.X, case.X[:1]]).astype(object if case.make is bnb.CategoricalNB else float)
    bad[-1, 0] = np.inf
    nb = case.make().fit(bad, np.append(case.y, "zero"), sample_weight=[1] * N + [0])
    assert nb.classes_.tolist() == ["high", "low", "mid", "zero"]
    assert nb.class_count_.tolist() == [20, 20, 20, 0]


# -- number of parameters ----------------------------------------------------------------------------


FREE = {
    "CategoricalNB": 16,
    "BernoulliNB": 4,
    "MultinomialNB": 3,
    "GaussianNB": 8,
    "PoissonNB": 4,
    "NegativeBinomialNB": 8,
}
FREE |= {"MixedNB": 8}


@pytest.mark.slow("other variants compile kernels of their own", but="CategoricalNB")
@pytest.mark.parametrize(("name", "features"), FREE.items())
def test_number_of_free_parameters(name, features):
    case = CASES[name]
    assert case.fit().n_parameters_ == 2 + 3 * features
    assert case.fit(class_prior=[0.2, 0.3, 0.5]).n_parameters_ == 3 * features
    assert isinstance(case.fit().n_parameters_, int)


# -- labels ------------------------------------------------------------------------------------------

A, B, C = (1, 2), (0, 5), (3,)
EVE, DAY = datetime.date(2019, 12, 31), datetime.date(2020, 1, 1)


def objects(*values):
    array = np.empty(len(values), object)
    array[:] = values
    return array


LABELS = {
    "text": (np.array(["b", "a", "b", "c"]), ["a", "b", "c"]),
    "list": (["b", "a", "b", "c"], ["a", "b", "c"]),
    "objects": (objects("b", "a", "b", "c"), ["a", "b", "c"]),
    "bool": (np.array([True, False, True, True]), [False, True]),
    "int": ([3, -1, 3, 7], [-1, 3, 7]),
    "uint8": (np.array([3, 1, 3, 200], np.uint8), [1, 3, 200]),
    "large": (np.array([2**62, 5, 5, -(2**62)]), [-(2**62), 5, 2**62]),
    "float": ([2.0, 1.0, 2.0, 5.0], [1.0, 2.0, 5.0]),
    "tuples": (objects(A, B, A, C), [B, A, C]),
    "tuple-list": ([A, B, A, C], [B, A, C]),
    "tuple-series": (pd.Series([A, B, A, C]), [B, A, C]),
    "mixed": (objects("b", 1, "b", 2.0), [2.0, 1, "b"]),
    "more-mixed": (objects("b", True, 3, (1,)), [True, 3, "b", (1,)]),
    "bytes": (objects(b"b", b"a", b"b", b"c"), [b"a", b"b", b"c"]),
    "category": (pd.Series(["b", "a", "b", "c"], dtype="category"), ["a", "b", "c"]),
    "Int64": (pd.Series([3, 1, 3, 7], dtype="Int64"), [1, 3, 7]),
    "boolean": (pd.Series([True, False, True, True], dtype="boolean"), [False, True]),
    "string": (pd.Series(["b", "a", "b", "c"], dtype="string"), ["a", "b", "c"]),
    "instants": (pd.Series(pd.to_datetime(["2021", "2020"] * 2)), [pd.Timestamp("2020"), pd.Timestamp("2021")]),
    "column": (np.array([["b"], ["a"], ["b"], ["c"]]), ["a", "b", "c"]),
    "uint64": (np.array([2**63 + 5, 2**63, 2**63, 2**63 + 1], np.uint64), [2**63, 2**63 + 1, 2**63 + 5]),
    "beyond": ([2**70, 1, 1, 2**70], [1, 2**70]),
    "equal": (["a", 1, "a", True], [True, "a"]),
    "polars": (pl.Series(["b", "a", "b", "c"]), ["a", "b", "c"]),
    "polars-int": (pl.Series([3, 1, 3, 7]), [1, 3, 7]),
    "dates": (objects(DAY, EVE, DAY, EVE), [EVE, DAY]),
}


@pytest.mark.slow("other variants compile kernels of their own", but="CategoricalNB-text")
@pytest.mark.parametrize(("y", "classes"), LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("name", ["GaussianNB", "CategoricalNB"])
@pytest.mark.filterwarnings("ignore:.*column-vector")
def test_labels_of_any_type(name, y, classes):
    X = [[0.0], [10.0], [0.5], [30.0]]
    flat = list(y.ravel() if isinstance(y, np.ndarray) else y)
    make = partial(getattr(bnb, name), **({"alpha": 0.01} if name == "CategoricalNB" else {}))
    nb = make().fit(X, y)
    assert nb.classes_.tolist() == classes
    assert [type(c) for c in nb.classes_.tolist()] == [type(c) for c in classes]
    np.testing.assert_array_equal(nb.class_count_, [sum(label == c for label in flat) for c in classes])
    predicted = nb.predict(X)
    assert predicted.dtype == nb.classes_.dtype
    assert nb.score(X, y) == np.mean([a == b for a, b in zip(predicted, flat, strict=True)])
    if name == "CategoricalNB":  # each row has a level of its own
        assert predicted.tolist() == flat
    for declared in (nb.classes_, classes):
        streamed = make().partial_fit(X, y, classes=declared)
        np.testing.assert_array_equal(streamed.predict_log_proba(X), nb.predict_log_proba(X))
    nb.partial_fit(X, y).forget(X, y)
    np.testing.assert_allclose(nb.predict_log_proba(X), streamed.predict_log_proba(X), rtol=1e-9, atol=1e-12)


@each
def test_fit_starts_anew(case):
    nb = case.make().fit(case.X[:30], np.arange(30) % 2)
    nb.fit(case.X, case.y)
    assert nb.classes_.tolist() == ["high", "low", "mid"]
    np.testing.assert_array_equal(nb.predict_log_proba(case.X), case.fit().predict_log_proba(case.X))
    nb.fit(pd.DataFrame(case.X[:, :3], columns=["a", "b", "c"]), case.y)
    nb.fit(case.X, case.y)
    assert nb.n_features_in_ == 4
    assert not hasattr(nb, "feature_names_in_")
