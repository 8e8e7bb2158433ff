"""Bayes factors of dependence against chains of predictives, integrals and brute force; bad input."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import linalg, stats
from scipy.special import gammaln
from sklearn.metrics import mutual_info_score

from bayesnb import (
    BernoulliNB,
    CategoricalNB,
    GammaExponential,
    GammaPoisson,
    GaussianNB,
    MixedNB,
    MultinomialNB,
    NormalInverseGamma,
)
from bayesnb.analysis.dependence import check_independence
from bayesnb.uncertainty import ImproperPosteriorError
from tests.raises import refused
from tests.strategies import variants

COLUMNS = ["feature_1", "feature_2", "rows", "log_bayes_factor", "mutual_information", "p_value"]
N = 24
RNG = np.random.default_rng(3)
Y = np.arange(N) % 2
KAPPA, A = 0.4, 1.7


def log_table(codes, alpha):
    """Chain rule of the Dirichlet: one predictive probability a row."""
    counts, total = np.array(alpha, float), 0.0
    for code in codes:
        total += np.log(counts[code] / counts.sum())
        counts[code] += 1
    return total


def log_contrasts(x, b, codes=None):
    """Multivariate t of the n - 1 contrasts of the rows; with codes, the levels' means vary by σ²n/(κ n_l)."""
    helmert = linalg.helmert(len(x))
    hot = np.zeros((len(x), 1)) if codes is None else codes[:, None] == np.unique(codes)
    means = hot / np.maximum(hot.sum(axis=0), 1) @ hot.T
    shape = b / A * helmert @ (np.eye(len(x)) + len(x) / KAPPA * means) @ helmert.T
    return stats.multivariate_t.logpdf(helmert @ x, shape=shape, df=2 * A)


def log_contrast_pairs(x, y, b):
    """Chain rule of the inverse Wishart: one bivariate Student-t a contrast."""
    nu, scale, total = 2 * A + 1, np.diag(2 * np.array(b)), 0.0
    for pair in linalg.helmert(len(x)) @ np.stack([x, y], axis=1):
        total += stats.multivariate_t.logpdf(pair, shape=scale / (nu - 1), df=nu - 1)
        scale, nu = scale + np.outer(pair, pair), nu + 1
    return total


def log_poisson(x, a, b):
    """Chain rule of the gamma: one negative binomial a row."""
    total = 0.0
    for value in x:
        total += stats.nbinom.logpmf(value, a, b / (b + 1))
        a, b = a + value, b + 1
    return total


def by_class(seen, evidence):
    """Σ over classes of a function of the indices of the rows that have both."""
    return sum(evidence(np.flatnonzero(seen & (c == Y))) for c in (0, 1))


def gaussian_gain(codes, x, b):
    return lambda i: log_contrasts(x[i], b, codes[i]) - log_contrasts(x[i], b)


def poisson_gain(codes, x, a, b):
    """Rates of the levels, each with its share of the prior's counts and rows, against one."""

    def gain(i):
        groups = [x[i][codes[i] == level] for level in np.unique(codes[i])]
        shares = [len(group) / len(i) for group in groups]
        return sum(log_poisson(g, a * s, b * s) for g, s in zip(groups, shares, strict=True)) - log_poisson(x[i], a, b)

    return gain


def one_class(nb, X):
    """Labels that put all rows into the first class; the second class has none."""
    return nb.partial_fit(X, np.zeros(len(X), int), classes=[0, 1])


def only(table):
    assert list(table.columns) == COLUMNS
    assert len(table) == 1
    return table.iloc[0]


@variants("alpha", [1.0, 0.3, ([0.5, 2.0], [1.5, 0.2, 1.0])])
def test_levels_against_the_chain_rule(alpha):
    a, b = (np.full(n, alpha) for n in (2, 3)) if isinstance(alpha, float) else map(np.array, alpha)
    first, second = RNG.integers(0, 2, N), RNG.integers(0, 3, N)
    first[[1, 5]], second[[5, 8]] = -1, -1
    X = np.array([first, second], dtype=object).T
    X[X == -1] = None
    nb = CategoricalNB(categories=[[0, 1], [0, 1, 2]], alpha=alpha if isinstance(alpha, float) else [a, b]).fit(X, Y)
    found = only(check_independence(nb, X, Y))
    joint = np.outer(a, b) / np.sqrt(a.sum() * b.sum())
    seen = (first >= 0) & (second >= 0)
    expected = by_class(
        seen,
        lambda i: (
            log_table(3 * first[i] + second[i], joint.ravel())
            - log_table(first[i], joint.sum(axis=1))
            - log_table(second[i], joint.sum(axis=0))
        ),
    )
    assert found["rows"] == seen.sum()
    assert found["log_bayes_factor"] == pytest.approx(expected, abs=1e-10)
    information = sum(
        (c == Y[seen]).mean() * mutual_info_score(first[seen & (c == Y)], second[seen & (c == Y)]) for c in (0, 1)
    )
    assert found["mutual_information"] == pytest.approx(information, abs=1e-12)


def normal_table():
    X = RNG.normal([2.0, -1.0], [1.0, 3.0], (N, 2))
    X[:, 1] += 2 * X[:, 0] + 40 * Y
    X[[0, 7], 0] = np.nan
    X[[7, 9, 10], 1] = np.nan
    return X


@pytest.mark.slow("a second view of what quick tests see")
def test_gaussian_pairs_against_the_chain_rule():
    X = normal_table()
    loc, b = [1.0, -2.0], [0.8, 5.0]
    nb = GaussianNB(prior=NormalInverseGamma(np.array(loc), KAPPA, A, np.array(b))).fit(X, Y)
    found = only(check_independence(nb, X, Y))
    seen = ~np.isnan(X).any(axis=1)
    x, y = X.T
    expected = by_class(
        seen, lambda i: log_contrast_pairs(x[i], y[i], b) - log_contrasts(x[i], b[0]) - log_contrasts(y[i], b[1])
    )
    assert found["log_bayes_factor"] == pytest.approx(expected, abs=1e-9)
    assert found["rows"] == seen.sum() == N - 4
    r = [np.corrcoef(X[seen & (c == Y)].T)[0, 1] for c in (0, 1)]
    share = [(c == Y[seen]).mean() for c in (0, 1)]
    assert found["mutual_information"] == pytest.approx(-0.5 * np.dot(share, np.log1p(-np.square(r))), rel=1e-10)


@pytest.mark.slow("other variants compile kernels of their own", but="gaussian")
@pytest.mark.parametrize("kind", ["gaussian", "poisson"])
def test_levels_and_numbers_against_the_chain_rule(kind):
    codes = RNG.integers(0, 5, N)
    x = RNG.poisson(3 + 2 * codes + 4 * Y).astype(float)
    x[4] = np.nan
    frame = pd.DataFrame({"level": np.array(list("abcde"))[codes].astype(object), "x": x})
    frame.loc[6, "level"] = None
    if kind == "gaussian":
        nb = MixedNB(numbers="gaussian", gaussian_prior=NormalInverseGamma(4.0, KAPPA, A, 2.5)).fit(frame, Y)
    else:
        nb = MixedNB(numbers="gaussian", poisson="x", poisson_prior=GammaPoisson(1.3, 0.4)).fit(frame, Y)
    found = only(check_independence(nb, frame, Y))
    seen = np.arange(N)[:, None] != [4, 6]
    seen = seen.all(axis=1)
    gain = gaussian_gain(codes, x, 2.5) if kind == "gaussian" else poisson_gain(codes, x, 1.3, 0.4)
    assert found["log_bayes_factor"] == pytest.approx(by_class(seen, gain), abs=1e-9)
    assert found["rows"] == N - 2
    explained = []
    for c in (0, 1):
        mine = seen & (c == Y)
        means = pd.Series(x[mine]).groupby(codes[mine]).transform("mean")
        explained.append(mine.sum() / seen.sum() * -0.5 * np.log(((x[mine] - means) ** 2).mean() / x[mine].var()))
    assert found["mutual_information"] == pytest.approx(sum(explained), rel=1e-10)


def test_words_are_their_presence():
    X = RNG.poisson(0.7, (N, 6))
    words = check_independence(MultinomialNB(alpha=0.01).fit(X, Y), X, Y)
    binary = check_independence(BernoulliNB(alpha=1.0).fit(X > 0, Y), X > 0, Y)
    pd.testing.assert_frame_equal(words, binary)
    for make in (MultinomialNB, BernoulliNB):
        nb = make().fit(sp.csr_array(X), Y)
        pd.testing.assert_frame_equal(check_independence(nb, sp.csc_array(X), Y), binary)


def many_kinds():
    frame = pd.DataFrame(
        {
            "colour": np.array(["red", "green", "blue", None], dtype=object)[RNG.integers(0, 4, N)],
            "size": np.array(["S", "M"], dtype=object)[RNG.integers(0, 2, N)],
            "length": RNG.normal(size=N),
            "weight": RNG.normal(5, 2, N),
            "visits": RNG.poisson(4, N).astype(float),
            "calls": RNG.poisson(2, N).astype(float),
            "flag": RNG.integers(0, 2, N).astype(float),
            "sun": RNG.poisson(1, N),
            "rain": RNG.poisson(1, N),
        }
    )
    frame.loc[3, ["length", "flag"]] = np.nan
    frame.loc[5, ["visits", "colour"]] = [np.nan, None]
    return frame, MixedNB(
        numbers="gaussian", bernoulli="flag", poisson=["visits", "calls"], multinomial=["sun", "rain"]
    )


def factors(nb, frame, y):
    table = check_independence(nb.fit(frame, y), frame, y, draws=1)
    return {frozenset(r[:2]): (r[2], r[3]) for r in table.itertuples(index=False)}


@pytest.mark.slow("a second view of what quick tests see")
@pytest.mark.parametrize("how", ["rows", "features", "classes", "levels"])
def test_order_and_names_do_not_matter(how):
    frame, nb = many_kinds()
    before = factors(nb, frame, Y)
    assert len(before) == 36
    y = Y
    if how == "rows":
        order = RNG.permutation(N)
        frame, y = frame.iloc[order], Y[order]
    elif how == "features":
        frame = frame[frame.columns[::-1]]
    elif how == "classes":
        y = np.array(["z", "a"])[Y]
    else:
        frame = frame.replace({"colour": {"red": "x", "green": "b", "blue": "m"}, "size": {"S": "A"}})
    after = factors(nb, frame, y)
    assert before.keys() == after.keys()
    for pair, (rows, log_factor) in before.items():
        assert after[pair][0] == rows
        assert after[pair][1] == pytest.approx(log_factor, abs=1e-9)


@pytest.mark.slow("compiles kernels of its own")
def test_blocks_of_columns_agree_with_pairs_alone(monkeypatch):
    monkeypatch.setattr("bayesnb.analysis.dependence._LEVELS", 40)  # blocks of twenty
    X = (RNG.random((40, 50)) < 0.3).astype(int)
    y = np.arange(40) % 3
    nb = BernoulliNB().fit(X, y)
    found = check_independence(nb, sp.csr_array(X), y, top=5)
    for row in found.itertuples():
        pair = [int(row.feature_1), int(row.feature_2)]
        alone = only(check_independence(nb, X, y, features=pair))
        assert alone["log_bayes_factor"] == pytest.approx(row.log_bayes_factor, abs=1e-9)
    dense = check_independence(nb, X, y, draws=1)
    assert len(dense) == 50 * 49 / 2
    assert not dense.duplicated(["feature_1", "feature_2"]).any()
    np.testing.assert_allclose(dense["log_bayes_factor"][:5], found["log_bayes_factor"], rtol=1e-12)


def noisy_copies(rng, n, n_levels, columns=3):
    """Independent uniform columns, then copies of the same in which one cell of twenty is drawn anew."""
    X = rng.integers(0, n_levels, (n, columns))
    return np.hstack([X, np.where(rng.random(X.shape) < 0.95, X, rng.integers(0, n_levels, X.shape))])


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize("alpha", [0.01, 0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("n_levels", [2, 10])
def test_sign_is_right_at_every_alpha(n_levels, alpha):
    X = noisy_copies(np.random.default_rng(2), 1000, n_levels)
    y = np.arange(1000) % 2
    table = check_independence(CategoricalNB(alpha=alpha).fit(X, y), X, y, draws=1)
    first, second = (table[name].astype(int) for name in ("feature_1", "feature_2"))
    copies = second - first == 3
    assert table.loc[copies, "log_bayes_factor"].min() > 20
    assert table.loc[~copies, "log_bayes_factor"].mean() < 0
    if alpha <= 1:
        assert table.loc[~copies, "log_bayes_factor"].max() < 0


def test_identical_columns_with_a_rare_level():
    """A strong prior of the joint table that is not one of the margins said -93 at α = 30, and +59 at α = 1."""
    x = np.repeat([0, 1], [180, 20])
    X = np.stack([x, x], axis=1)

    def factor(alpha):
        nb = one_class(BernoulliNB(alpha=alpha), X)
        return only(check_independence(nb, X, np.zeros(200), draws=1))["log_bayes_factor"]

    assert factor(1.0) == pytest.approx(log_table(3 * x, np.full(4, 0.5)) - 2 * log_table(x, np.ones(2)), abs=1e-9)
    assert min(factor(alpha) for alpha in (0.01, 0.1, 1.0, 10.0, 30.0, 100.0)) > 20


def test_independent_columns_of_ten_levels():
    """Fifty rows a class: the joint prior with more rows than its margins took them for dependent."""
    X, y = np.random.default_rng(0).integers(0, 10, (150, 2)), np.arange(150) % 3
    found = only(check_independence(CategoricalNB().fit(X, y), X, y))
    assert found["log_bayes_factor"] < -20
    assert found["p_value"] > 0.05


@pytest.mark.slow("a second view of what quick tests see")
def test_where_a_class_lies_says_nothing_of_dependence():
    """A prior far from a class is no evidence that its columns depend on each other, nor that they do not."""
    rng = np.random.default_rng(4)
    level = rng.integers(0, 4, 60)
    x = rng.normal(size=60) + level
    frame = pd.DataFrame(
        {"level": level.astype(str), "x": x, "less": -x + rng.normal(size=60), "z": rng.normal(size=60)}
    )
    y = np.arange(60) % 2
    nb = MixedNB(numbers="gaussian", gaussian_prior=NormalInverseGamma(0.0, 1.0, 1.0, 1.0))
    shifted = frame.assign(**{name: frame[name] + 30.0 * y for name in ("x", "less", "z")})
    near, far = (factors(nb, table, y) for table in (frame, shifted))
    for pair, (_, log_factor) in near.items():
        assert far[pair][1] == pytest.approx(log_factor, abs=1e-9)
        assert (log_factor > 0) == ("z" not in pair)


def test_one_wild_number_is_no_dependence():
    """A variance of each level would let the level with the outlier have it alone."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"level": rng.integers(0, 5, 200).astype(str), "x": rng.standard_cauchy(200)})
    nb = one_class(MixedNB(numbers="gaussian"), frame)
    assert only(check_independence(nb, frame, np.zeros(200)))["log_bayes_factor"] < 0


def test_levels_that_occur_once_say_nothing():
    """Every order of the rows gives the same mutual information: p is one, rounding or not."""
    X = np.stack([np.arange(80), RNG.integers(0, 3, 80)], axis=1)
    found = only(check_independence(CategoricalNB().fit(X, np.arange(80) % 2), X, np.arange(80) % 2))
    assert found["p_value"] == 1.0
    assert found["mutual_information"] > 1


def test_seed():
    X = RNG.integers(0, 2, (N, 6))
    nb = BernoulliNB().fit(X, Y)
    first, again, other = (check_independence(nb, X, Y, seed=seed) for seed in (4, 4, 5))
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)


@pytest.mark.slow("a second view of what quick tests see")
def test_constant_collinear_and_empty_columns():
    x = RNG.normal(size=N)
    X = np.stack([x, 2 * x + 1e6, np.full(N, 0.1), np.where(np.arange(N) < 2, x, np.nan)], axis=1)
    table = check_independence(GaussianNB().fit(X, Y), X, Y).set_index(["feature_1", "feature_2"])
    assert np.isfinite(table["log_bayes_factor"]).all()
    # Equal but for rounding.
    assert table.loc[("0", "1"), "mutual_information"] > 8
    assert table.loc[("0", "1"), "p_value"] < 0.01
    assert table.loc[("0", "1"), "log_bayes_factor"] == table["log_bayes_factor"].max()
    for pair in (("0", "2"), ("2", "3"), ("1", "3")):
        assert table.loc[pair, "mutual_information"] == 0
        assert table.loc[pair, "p_value"] == 1
    nothing = pd.DataFrame({"a": [None] * N, "b": ["u", "v"] * (N // 2), "x": x}, dtype=object).astype({"x": float})
    with_nothing = check_independence(MixedNB(numbers="gaussian").fit(nothing, Y), nothing, Y).set_index(
        ["feature_1", "feature_2"]
    )
    assert with_nothing.loc[("a", "b"), "rows"] == with_nothing.loc[("a", "x"), "rows"] == 0
    assert with_nothing.loc[("a", "b"), "log_bayes_factor"] == with_nothing.loc[("a", "x"), "log_bayes_factor"] == 0


X0 = np.tile([[0, 1, 1], [1, 0, 1], [1, 1, 0], [0, 0, 0]], (1, 2))
Y0 = [0, 1, 0, 1]


@variants(
    ("options", "message"),
    [
        ({"top": 0}, "top=0"),
        ({"top": 1.5}, "top"),
        ({"draws": 0}, "draws=0"),
        ({"draws": None}, "draws=None"),
        ({"features": ["weight"]}, "weight"),
        ({"features": [0]}, "two columns"),
        ({"features": [0, 7]}, "7"),
    ],
)
def test_bad_arguments(options, message):
    refused(message, check_independence, CategoricalNB().fit(X0, Y0), X0, Y0, **options)


def test_bad_data_and_priors():
    nb = CategoricalNB().fit(X0, Y0)
    refused("label", check_independence, nb, X0, [0, 1, 0, 9])
    refused("labels", check_independence, nb, X0, [0, 1])
    refused("features", check_independence, nb, X0[:, :2], Y0)
    refused("'0'", check_independence, CategoricalNB(alpha=0.0).fit(X0, Y0), X0, Y0, error=ImproperPosteriorError)
    X, different = normal_table(), GaussianNB(prior=NormalInverseGamma(0.0, 1.0, np.array([1.0, 2.0]), 1.0))
    refused("concentration", check_independence, different.fit(X, Y), X, Y, error=NotImplementedError)
    refused("not fitted", check_independence, CategoricalNB(), X0, Y0, error=Exception)


@pytest.mark.slow("compiles kernels of its own")
def test_too_many_pairs_and_levels():
    X = sp.csr_array((np.ones(4), ([0, 1, 2, 3], [0, 1, 2500, 2999])), (4, 3000))
    nb = MultinomialNB().fit(X, Y0)
    refused(r"4,498,500 pairs.*GB.*top=.*features=", check_independence, nb, X, Y0)
    wide = np.stack([np.arange(6000), np.arange(6000)], axis=1).astype(str)
    many = CategoricalNB().fit(wide, np.arange(6000) % 2)
    refused("6000 levels", check_independence, many, wide, np.arange(6000) % 2)


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("scale", [1e-22, 1e30])
def test_the_scale_of_numbers_changes_nothing(scale):
    """Checks double precision, including the test for a proper prior."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 40)
    X = rng.normal(y[:, None], 1.0, (40, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [check_independence(GaussianNB().fit(x, y), x, y, draws=5) for x in (X, X * scale)]
    np.testing.assert_allclose(found[1]["log_bayes_factor"], found[0]["log_bayes_factor"], rtol=1e-9)


@pytest.mark.slow("a second view of what quick tests see")
def test_levels_and_durations_of_all_lengths_by_their_sums():
    rng = np.random.default_rng(3)
    level, y = rng.integers(0, 2, 40), np.repeat(["u", "v"], 20)
    x = np.where(level == 1, 10.0 ** rng.integers(6, 17), 1e-3) * rng.exponential(1.0, 40)
    a, b, nats = 1.0, 1e-3, 0.0

    def log_evidence(own, share=1.0):
        after = share * a + len(own)
        of_prior = share * a * np.log(share * b) - gammaln(share * a)
        return gammaln(after) - after * np.log(share * b + own.sum()) + of_prior

    for c in ("u", "v"):
        own = [x[(y == c) & (level == k)] for k in (0, 1)]
        whole = np.concatenate(own)
        nats += sum(log_evidence(part, len(part) / len(whole)) for part in own) - log_evidence(whole)
    table = pd.DataFrame({"level": level.astype(str), "x": x})
    nb = MixedNB(numbers="gaussian", exponential="x", exponential_prior=GammaExponential(a, b)).fit(table, y)
    found = check_independence(nb, table, y, draws=5)["log_bayes_factor"]
    np.testing.assert_allclose(found, nats, rtol=1e-9)


def above(x):
    """Above the median of its class."""
    return sum((c == Y) & (x > np.median(x[c == Y])) for c in (0, 1)).astype(int)


def test_poisson_and_gaussian():
    frame = pd.DataFrame({"x": RNG.normal(size=N), "count": RNG.poisson(5, N)})
    prior = NormalInverseGamma(0.3, KAPPA, A, 1.1)
    found = only(
        check_independence(MixedNB(numbers="gaussian", poisson="count", gaussian_prior=prior).fit(frame, Y), frame, Y)
    )
    gain = gaussian_gain(above(frame["count"].to_numpy()), frame["x"].to_numpy(), 1.1)
    assert found["log_bayes_factor"] == pytest.approx(by_class(np.ones(N, bool), gain), abs=1e-9)
    assert (found["feature_1"], found["feature_2"]) == ("x", "count")
