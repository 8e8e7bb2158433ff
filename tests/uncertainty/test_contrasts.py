"""Contrasts of two classes against closed forms, SciPy's quadrature, characteristic functions, and draws."""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats
from scipy.integrate import quad

import bayesnb as bnb
from tests.raises import refused

COLUMNS = ["class", "against", "feature", "level", "kind", "estimate", "sd", "lower", "upper", "prob_greater"]
KINDS = ("difference", "ratio", "log_odds")
ACCURACY = 1e-8


def levels(first, second):
    """A classifier of one column, "x", whose level "on" has the posteriors Beta(*first) in class a, *second in b."""
    on, off = zip(first, second, strict=True)
    alpha = pd.DataFrame({"on": on, "off": off}, index=["a", "b"])
    return bnb.CategoricalNB(alpha={"x": alpha}, class_prior=[0.5, 0.5]).fit(
        pd.DataFrame({"x": [None] * 2}), ["a", "b"]
    )


def rates(first, second, estimator=bnb.PoissonNB, family=bnb.GammaPoisson):
    """The same of rates, with Gamma(concentration, rate) posteriors."""
    (a, b), (c, d) = first, second
    prior = family({"a": a, "b": c}, {"a": b, "b": d})
    return estimator(prior={"x": prior}).fit(pd.DataFrame({"x": [np.nan] * 2}), ["a", "b"])


def numbers(first, second):
    """The same of means and variances, with normal-inverse-gamma posteriors (loc, kappa, concentration, rate)."""
    fields = ({"a": u, "b": v} for u, v in zip(first, second, strict=True))
    prior = bnb.NormalInverseGamma(*fields)
    return bnb.GaussianNB(prior={"x": prior}).fit(pd.DataFrame({"x": [np.nan] * 2}), ["a", "b"])


def compare(nb, level, kind, prob=0.9):
    """Contrast of a against b, as one row."""
    return bnb.contrast(nb, "x", level, ("a", "b"), kind, prob).iloc[0]


def shifted(kind, y, t):
    """The number whose contrast with y is t."""
    return {"difference": y + t, "ratio": y * t, "log_odds": special.expit(special.logit(y) + t)}[kind]


class Law(NamedTuple):
    """Distribution function and quantiles, by special functions, which are far quicker than frozen distributions."""

    cdf: Callable[[float], float]
    ppf: Callable[[float], float]


def beta(a, b):
    return Law(lambda x: special.betainc(a, b, min(max(x, 0.0), 1.0)), lambda u: special.betaincinv(a, b, u))


def gamma(a, b):
    return Law(lambda x: special.gammainc(a, b * max(x, 0.0)), lambda u: special.gammaincinv(a, u) / b)


def student(loc, kappa, a, b):
    scale = np.sqrt(b / (a * kappa))
    return Law(lambda x: special.stdtr(2 * a, (x - loc) / scale), lambda u: loc + scale * special.stdtrit(2 * a, u))


def cdf_by_quadrature(x, y, kind, t):
    """P(contrast <= t) of two laws, by adaptive quadrature over the quantiles of y."""
    value, _ = quad(lambda u: x.cdf(shifted(kind, y.ppf(u), t)), 0, 1, epsabs=1e-11, epsrel=0, limit=2000)
    return value


def assert_quantiles(found, cdf, prob=0.9):
    for end, q in (("lower", (1 - prob) / 2), ("upper", (1 + prob) / 2)):
        assert cdf(found[end]) == pytest.approx(q, abs=ACCURACY)


# -- probabilities of levels ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("first", "second"), [((3, 5), (2, 9)), ((0.5, 0.5), (40, 2.5)), ((1, 1), (1, 1)), ((300, 700), (2900, 7100))]
)
def test_levels(kind, first, second):
    x, y, found = beta(*first), beta(*second), compare(levels(first, second), "on", kind)
    assert_quantiles(found, lambda t: cdf_by_quadrature(x, y, kind, t))


def shapes(low, high, *, whole=False):
    """Concentrations (2, 12) of the levels of one column in two classes, and those of all other levels."""
    rng = np.random.default_rng(7)
    first = np.exp(rng.uniform(np.log(low), np.log(high), (2, 12)))
    first = np.ceil(first) if whole else first
    return first, first.sum(axis=1, keepdims=True) - first


def many(kind, first):
    alpha = pd.DataFrame(first, index=["a", "b"], columns=[f"{i:02d}" for i in range(first.shape[1])])
    nb = bnb.CategoricalNB(alpha={"x": alpha}).fit(pd.DataFrame({"x": [None] * 2}), ["a", "b"])
    return bnb.contrast(nb, "x", classes=("a", "b"), kind=kind)


def test_the_probability_that_a_level_is_more_probable():
    """By the sum of Beta functions for integers (Miller 2015)."""
    first, rest = shapes(1, 40, whole=True)
    expected = []
    for a, b, c, d in zip(first[0], rest[0], first[1], rest[1], strict=True):
        i = np.arange(a)
        terms = special.betaln(c + i, b + d) - np.log(b + i) - special.betaln(1 + i, b) - special.betaln(c, d)
        expected.append(np.exp(terms).sum())
    for kind in KINDS:
        np.testing.assert_allclose(many(kind, first)["prob_greater"], expected, rtol=0, atol=ACCURACY)


def test_moments():
    """Of log odds ratios by polygammas, of products by the moments of the Beta distribution and of its reciprocal."""
    first, rest = shapes(2.5, 60)
    (a, c), (b, d) = first, rest
    x, y = stats.beta(a, b), stats.beta(c, d)
    psi, psi1 = special.digamma, lambda v: special.polygamma(1, v)
    second = (x.var() + x.mean() ** 2) * special.beta(c - 2, d) / special.beta(c, d)
    mean = x.mean() * special.beta(c - 1, d) / special.beta(c, d)
    expected = {
        "difference": (x.mean() - y.mean(), x.var() + y.var()),
        "ratio": (mean, second - mean**2),
        "log_odds": (psi(a) - psi(b) - psi(c) + psi(d), psi1(a) + psi1(b) + psi1(c) + psi1(d)),
    }
    for kind, (mean, variance) in expected.items():
        found = many(kind, first)
        np.testing.assert_allclose(found["estimate"], mean, rtol=1e-9)
        np.testing.assert_allclose(found["sd"], np.sqrt(variance), rtol=1e-7)


def test_a_ratio_without_moments():
    found = compare(levels((3, 5), (1.5, 4)), "on", "ratio")
    assert np.isfinite(found["estimate"])
    assert found["sd"] == np.inf
    found = compare(levels((3, 5), (0.5, 4)), "on", "ratio")
    assert (found["estimate"], found["sd"]) == (np.inf, np.inf)
    assert 0 < found["lower"] < found["upper"] < np.inf


def log_odds_cdf(a, b, c, d, t):
    """By Gil-Pelaez' inversion of the characteristic function, four gamma functions of complex numbers."""
    at_0 = special.gammaln([a, b, c, d]).sum()

    def integrand(s):
        log = special.loggamma(a + 1j * s) + special.loggamma(b - 1j * s)
        log += special.loggamma(c - 1j * s) + special.loggamma(d + 1j * s) - at_0
        return np.imag(np.exp(log - 1j * s * t)) / s

    slowest = min(a, b, c, d)
    ends = [0.0, *(slowest * 2.0 ** np.arange(-8, 12)), 60.0 + 10 * slowest]
    return 0.5 - sum(quad(integrand, *pair, epsabs=1e-12, limit=500)[0] for pair in pairwise(sorted(ends))) / np.pi


@pytest.mark.parametrize(
    ("first", "second"), [((0.01, 0.02), (0.01, 3.0)), ((0.01, 40.0), (20.0, 0.3)), ((200.0, 0.01), (150.0, 0.01))]
)
def test_tiny_concentrations(first, second):
    found = compare(levels(first, second), "on", "log_odds")
    assert_quantiles(found, lambda t: log_odds_cdf(*first, *second, t))
    greater = 1 - log_odds_cdf(*first, *second, 0.0)
    for kind in KINDS:
        assert compare(levels(first, second), "on", kind)["prob_greater"] == pytest.approx(greater, abs=ACCURACY)


def test_ratios_of_powers_of_uniform_numbers():
    """Beta(a, 1) is a power of a uniform number, so that the log ratio has a Laplace distribution."""
    a, b = 0.01, 0.03
    found = compare(levels((a, 1), (b, 1)), "on", "ratio")

    def cdf(ratio):
        t = np.log(ratio)
        return b / (a + b) * np.exp(a * t) if t < 0 else 1 - a / (a + b) * np.exp(-b * t)

    assert_quantiles(found, cdf)
    assert found["prob_greater"] == pytest.approx(1 - cdf(1.0), abs=ACCURACY)


@pytest.mark.parametrize(("first", "second"), [((0.01, 3.0), (0.02, 2.0)), ((0.01, 500.0), (0.3, 20.0))])
def test_differences_of_tiny_concentrations(first, second):
    x, y, found = beta(*first), beta(*second), compare(levels(first, second), "on", "difference")
    assert_quantiles(found, lambda t: cdf_by_quadrature(x, y, "difference", t))


def cornish_fisher(mean, variance, third, q):
    z, skew = stats.norm.ppf(q), third / variance**1.5
    return mean + np.sqrt(variance) * (z + (z**2 - 1) * skew / 6 - (2 * z**3 - 5 * z) * skew**2 / 36)


def test_counts_of_a_hundred_million():
    """Log odds ratios by their cumulants, whose fourth is negligible."""
    first, second = (1e8, 3e7), (1e8 + 2e4, 3e7 + 3e4)
    found = compare(levels(first, second), "on", "log_odds", 0.95)
    (a, b), (c, d) = first, second
    psi = [special.polygamma(k, np.array([a, b, c, d])) for k in range(3)]
    mean, variance, third = psi[0] @ [1, -1, -1, 1], psi[1].sum(), psi[2] @ [1, -1, -1, 1]
    for end, q in (("lower", 0.025), ("upper", 0.975)):
        assert abs(found[end] - cornish_fisher(mean, variance, third, q)) < 1e-7 * np.sqrt(variance)
    z = -mean / np.sqrt(variance)
    below = stats.norm.cdf(z) - third / variance**1.5 / 6 * (z**2 - 1) * stats.norm.pdf(z)
    assert found["prob_greater"] == pytest.approx(1 - below, abs=ACCURACY)
    ratio = compare(levels(first, second), "on", "ratio", 0.95)
    assert ratio["prob_greater"] == pytest.approx(1 - below, abs=ACCURACY)


# -- numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second"),
    [((3.0, 2.0), (5.0, 1.0)), ((0.01, 1.0), (0.01, 3.0)), ((1e8, 1e8), (1.0001e8, 1e8)), ((0.01, 2.0), (1e8, 1e7))],
)
@pytest.mark.parametrize("family", [bnb.GammaPoisson, bnb.GammaExponential])
def test_ratios_of_rates(first, second, family):
    """A ratio of gamma variates is beta prime."""
    estimator = bnb.PoissonNB if family is bnb.GammaPoisson else bnb.ExponentialNB
    found = compare(rates(first, second, estimator, family), "rate", "ratio")
    (a, b), (c, d) = first, second

    def cdf(ratio):
        odds = ratio * b / d
        below, above = special.betainc(a, c, odds / (1 + odds)), special.betainc(c, a, 1 / (1 + odds))
        return below if below < above else 1 - above

    assert_quantiles(found, cdf)
    assert found["prob_greater"] == pytest.approx(1 - cdf(1.0), abs=ACCURACY)
    if c > 2:
        prime = stats.betaprime(a, c, scale=d / b)
        assert found["estimate"] == pytest.approx(prime.mean(), rel=1e-9)
        assert found["sd"] == pytest.approx(a**0.5 * (a + c - 1) ** 0.5 / ((c - 2) ** 0.5 * (c - 1)) * d / b, rel=1e-9)


@pytest.mark.parametrize(("first", "second"), [((3.0, 2.0), (5.0, 1.0)), ((0.3, 1.0), (40.0, 8.0))])
def test_differences_of_rates(first, second):
    found = compare(rates(first, second), "rate", "difference")
    assert_quantiles(found, lambda t: cdf_by_quadrature(gamma(*first), gamma(*second), "difference", t))
    x, y = (stats.gamma(a, scale=1 / b) for a, b in (first, second))
    assert found["estimate"] == pytest.approx(x.mean() - y.mean())
    assert found["sd"] == pytest.approx(np.sqrt(x.var() + y.var()))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((1.0, 2.0, 3.0, 4.0), (0.0, 1.0, 2.5, 1.0)),
        ((0.0, 0.1, 1.0, 1.0), (5.0, 1e4, 5e3, 5e3)),
        ((0.0, 1.0, 0.2, 1.0), (1.0, 2.0, 0.4, 1.0)),
        ((20.0, 1e8, 5e7, 2e8), (20.0, 1e8, 5e7, 3e8)),
    ],
)
def test_means_and_variances(first, second):
    """Of means Behrens' problem, by quadrature; of variances Fisher's F distribution."""
    nb = numbers(first, second)
    x, y = student(*first), student(*second)
    assert_quantiles(compare(nb, "mu", "difference"), lambda t: cdf_by_quadrature(x, y, "difference", t))
    ratio = compare(nb, "sigma2", "ratio")
    (a, b), (c, d) = first[2:], second[2:]
    expected = stats.f(2 * c, 2 * a, scale=(b / a) / (d / c))
    assert_quantiles(ratio, expected.cdf)
    assert ratio["prob_greater"] == pytest.approx(expected.sf(1.0), abs=ACCURACY)
    if a > 2:
        assert ratio["estimate"] == pytest.approx(expected.mean(), rel=1e-8)
        assert ratio["sd"] == pytest.approx(expected.std(), rel=1e-6)


# -- laws ----------------------------------------------------------------------------------------

_RNG = np.random.default_rng(0)
Y = _RNG.choice(["ash", "elm", "oak"], 80)
X = pd.DataFrame(
    {
        "leaf": np.where(_RNG.random(80) < 0.6, Y, _RNG.choice(["ash", "elm", "oak"], 80)),
        "bark": _RNG.choice(["rough", "smooth"], 80),
        "height": _RNG.normal(20, 4, 80) + 3 * (Y == "oak"),
    }
)
EVERY = {
    "CategoricalNB": (lambda: bnb.CategoricalNB(), X[["leaf", "bark"]], ["leaf", "bark"]),
    "BernoulliNB": (lambda: bnb.BernoulliNB(), X["height"].gt(20).to_frame().astype(int), ["height"]),
    "MultinomialNB": (lambda: bnb.MultinomialNB(), X[["height"]].round().abs().assign(more=3), ["height"]),
    "GaussianNB": (lambda: bnb.GaussianNB(), X[["height"]], ["height"]),
    "PoissonNB": (lambda: bnb.PoissonNB(), X[["height"]].round().abs(), ["height"]),
    "ExponentialNB": (lambda: bnb.ExponentialNB(), X[["height"]].abs(), ["height"]),
    "MixedNB": (lambda: bnb.MixedNB(numbers="gaussian"), X, list(X)),
    "TAN": (lambda: bnb.TAN(), X[["leaf", "bark"]], ["leaf", "bark"]),
    "KDB": (lambda: bnb.NetworkNB({"bark": "leaf"}, tables="context"), X[["leaf", "bark"]], ["leaf", "bark"]),
    "WeightedNB": (lambda: bnb.WeightedNB(bnb.CategoricalNB()), X[["leaf", "bark"]], ["leaf", "bark"]),
}
every_estimator = pytest.mark.parametrize(
    "name",
    [n if n == "MixedNB" else pytest.param(n, marks=pytest.mark.slow("compiles kernels of its own")) for n in EVERY],
)


@every_estimator
def test_draws_agree(name):
    make, rows, features = EVERY[name]
    nb = make().fit(rows, Y)
    draws = bnb.posterior_draws(nb, 20_000, seed=1)
    for feature in features:
        is_number = {"mu", "sigma2", "rate"} & set(bnb.contrast(nb, feature)["level"])
        for kind in KINDS[:2] if is_number else KINDS:
            exact = bnb.contrast(nb, feature, kind=kind)
            drawn = bnb.contrast(nb, feature, kind=kind, draws=draws)
            drawn = drawn[drawn["level"].map(str).isin(exact["level"].map(str))].reset_index(drop=True)
            assert list(exact.columns) == list(drawn.columns) == COLUMNS
            pd.testing.assert_frame_equal(exact[COLUMNS[:5]], drawn[COLUMNS[:5]])
            near = {"atol": 0.02, "rtol": 0.05}
            np.testing.assert_allclose(exact["prob_greater"], drawn["prob_greater"], atol=0.02)
            if kind == "ratio":
                ends = [np.log(table[["lower", "upper"]]) for table in (exact, drawn)]
            else:
                ends = [table[["lower", "upper"]] for table in (exact, drawn)]
                np.testing.assert_allclose(exact["sd"], drawn["sd"], **near)
            assert abs(ends[0] - ends[1]).lt(0.06 * (ends[0]["upper"] - ends[0]["lower"]), axis=0).all(axis=None)


@pytest.mark.parametrize("kind", KINDS)
def test_exchanging_the_classes(kind):
    nb = bnb.CategoricalNB().fit(X[["leaf", "bark"]], Y)
    one = bnb.contrast(nb, "leaf", classes=("oak", "ash"), kind=kind)
    other = bnb.contrast(nb, "leaf", classes=["ash", "oak"], kind=kind)
    np.testing.assert_allclose(one["prob_greater"], 1 - other["prob_greater"], atol=1e-12)
    lower, upper = (1 / other["upper"], 1 / other["lower"]) if kind == "ratio" else (-other["upper"], -other["lower"])
    np.testing.assert_allclose(one["lower"], lower, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(one["upper"], upper, rtol=1e-9, atol=1e-12)


def test_classes_levels_and_order():
    nb = bnb.CategoricalNB().fit(X[["leaf", "bark"]], Y)
    table = bnb.contrast(nb, 0)
    assert table["class"].tolist() == ["elm"] * 3 + ["oak"] * 3
    assert table["against"].tolist() == ["ash"] * 6
    assert table["level"].tolist() == ["ash", "elm", "oak"] * 2
    named = bnb.contrast(nb, "leaf", "oak", ("oak", "ash"))
    pd.testing.assert_frame_equal(named, table.iloc[[5]].reset_index(drop=True))
    means = bnb.parameter_table(nb, features=["leaf"]).pivot(index="level", columns="class", values="mean")
    np.testing.assert_allclose(named["estimate"], means.loc["oak", "oak"] - means.loc["oak", "ash"], rtol=1e-12)
    two = bnb.CategoricalNB().fit(X[["leaf"]], Y == "oak")
    assert (bnb.contrast(two, 0, "oak")[["class", "against"]].iloc[0] == [True, False]).all()


def test_levels_given_parents():
    nb = bnb.NetworkNB({"bark": "leaf"}).fit(X[["leaf", "bark"]], Y)
    table = bnb.contrast(nb, "bark", classes=("oak", "ash"))
    assert len(table) == 6
    rough = bnb.contrast(nb, "bark", "rough", ("oak", "ash"))
    assert [str(level) for level in rough["level"]] == [f"rough | leaf={leaf}" for leaf in ("ash", "elm", "oak")]
    alone = bnb.contrast(nb, "bark", "rough | leaf=elm", ("oak", "ash"))
    pd.testing.assert_frame_equal(alone, rough.iloc[[1]].reset_index(drop=True))


def test_parameters_of_numbers():
    nb = bnb.GaussianNB().fit(X[["height"]], Y)
    assert bnb.contrast(nb, "height")["level"].tolist() == ["mu", "sigma2"] * 2
    assert bnb.contrast(nb, "height", kind="ratio")["level"].tolist() == ["sigma2"] * 2


def test_parameters_that_are_known():
    nb = bnb.CategoricalNB().fit([["a"], ["a"]], [0, 1])
    row = bnb.contrast(nb, 0).iloc[0]
    assert (row["estimate"], row["sd"], row["lower"], row["upper"], row["prob_greater"]) == (0, 0, 0, 0, 0)
    assert bnb.contrast(nb, 0, kind="ratio")["estimate"].tolist() == [1.0]


def test_levels_are_computed_some_at_a_time(monkeypatch):
    first, _ = shapes(0.5, 40)
    every = many("difference", first)
    monkeypatch.setattr("bayesnb.uncertainty.contrasts._MOST_ROWS", 7)
    pd.testing.assert_frame_equal(many("difference", first), every, rtol=1e-12)


@pytest.mark.calibration
def test_intervals_cover_as_they_say():
    """90% intervals of 200 features, with parameters from the prior: between .88 and .92, and two standard errors."""
    rng, n, features = np.random.default_rng(5), 30, 200
    theta, y = rng.beta(1, 1, (2, features)), np.arange(2 * n) % 2
    nb = bnb.BernoulliNB().fit((rng.random((2 * n, features)) < theta[y]).astype(int), y)
    truth = {
        "difference": theta[1] - theta[0],
        "ratio": theta[1] / theta[0],
        "log_odds": special.logit(theta[1]) - special.logit(theta[0]),
    }
    for kind, values in truth.items():
        table = pd.concat([bnb.contrast(nb, j, "present", kind=kind) for j in range(features)])
        covered = ((table["lower"] <= values) & (values <= table["upper"])).mean()
        assert abs(covered - 0.9) < 0.02 + 2 * np.sqrt(0.09 / features)


# -- messages ------------------------------------------------------------------------------------


def test_what_is_refused():
    nb = bnb.MixedNB(numbers="gaussian").fit(X, Y)
    for options, message in (
        ({"feature": "root"}, "feature: there is no column 'root'"),
        ({"feature": "leaf", "level": "fir"}, r"level='fir': column 'leaf' has no such level .* it has \['ash', 'elm'"),
        (
            {"feature": "height", "level": "theta"},
            r"level='theta': column 'height' has no .* it has \['mu', 'sigma2'\]",
        ),
        ({"feature": "height", "level": "mu", "kind": "ratio"}, r"level='mu': .* with a ratio; it has \['sigma2'\]"),
        ({"feature": "height", "kind": "log_odds"}, "kind='log_odds' is not defined for the parameters of column 'hei"),
        ({"feature": "leaf", "kind": "odds"}, "kind='odds' is unknown; use 'difference' or 'ratio' or 'log_odds'"),
        ({"feature": "leaf", "classes": ("oak", "fir")}, "classes='fir' is not a class"),
        ({"feature": "leaf", "classes": ("oak", "oak")}, "classes=.* must be two different classes"),
        ({"feature": "leaf", "classes": "oak"}, "classes='oak' must be two of the classes"),
        ({"feature": "leaf", "classes": ["oak"]}, "classes=.* must be two of the classes"),
        ({"feature": "leaf", "prob": 1.0}, "prob=1.0"),
    ):
        refused(message, bnb.contrast, nb, **options)
    one = bnb.CategoricalNB().fit([["a"]], [0])
    refused("contrast compares two classes, and the classifier has one, 0", bnb.contrast, one, 0)
    improper = bnb.CategoricalNB(alpha=0).fit(X[["leaf"]], np.where(X["leaf"] == "oak", "a", "b"))
    refused("is improper", bnb.contrast, improper, 0, error=bnb.ImproperPosteriorError)
    draws = bnb.posterior_draws(nb, 50)
    refused("outside", bnb.contrast, nb, "height", "mu", kind="log_odds", draws=draws)


@pytest.mark.slow("compiles kernels of its own", but="first")
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: bnb.FeatureAveragedNB(), "the classes of FeatureAveragedNB share parameters"),
        (lambda: bnb.BinnedNB(), "the classes of BinnedNB share parameters"),
        (lambda: bnb.TreeAveragedNB(), "the classes of TreeAveragedNB share parameters"),
    ],
)
def test_posteriors_without_independent_marginals_need_draws(make, reason):
    rows = X[["height"]] if isinstance(make(), bnb.BinnedNB) else X[["leaf", "bark"]]
    nb = make().fit(rows, Y)
    refused(rf"contrast: .*{reason}.* Pass draws=", bnb.contrast, nb, 0, error=NotImplementedError)
    table = bnb.contrast(nb, 0, classes=("oak", "ash"), draws=bnb.posterior_draws(nb, 200))
    assert table["prob_greater"].between(0, 1).all()
    refused("contrast: ", bnb.contrast, bnb.AODE().fit(X[["leaf", "bark"]], Y), 0, error=NotImplementedError)
