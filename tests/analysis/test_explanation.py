"""Contributions against rows with fewer cells; the value of information against every possible answer."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import entr, gammaln, polygamma
from scipy.stats import t
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

import bayesnb as bnb
from tests.raises import refused
from tests.strategies import thorough
from tests.tables import (
    ASKED,
    CODE,
    COUNTS,
    LABEL,
    LEVELS,
    NUMBERS,
    N,
    holed,
    in_shares,
    of_levels,
    of_numbers,
)

SOME = [0, 3, 11]
NETWORK = bnb.NetworkNB({1: 0, 2: (0, 1)}, gaussian=None)
CASES = {
    "categorical": (bnb.CategoricalNB(alpha=0.7), LEVELS),
    "bernoulli": (bnb.BernoulliNB(), LEVELS),
    "gaussian": (bnb.GaussianNB(), NUMBERS),
    "poisson": (bnb.PoissonNB(class_prior=[0.2, 0.5, 0.3]), COUNTS),
    "negative binomial": (bnb.NegativeBinomialNB(), COUNTS),
    "exponential": (bnb.ExponentialNB(), abs(NUMBERS)),
    "mixed": (
        bnb.MixedNB(gaussian=[0, 1], poisson=[2], categorical=[3]),
        np.column_stack([NUMBERS[:, :2], COUNTS[:, 2], LEVELS[:, 3]]),
    ),
    "tree": (bnb.TAN(gaussian=None), LEVELS),
    "network": (NETWORK, LEVELS),
    "weighted": (bnb.WeightedNB(bnb.GaussianNB(), "feature"), NUMBERS),
    "weighted network": (bnb.WeightedNB(NETWORK, "feature"), LEVELS),
}
QUICK = ("categorical", "network", "weighted")


def fitted(kind: str):
    nb, X = CASES[kind]
    return nb.fit(holed(X) if kind in ("categorical", "gaussian", "mixed") else X, LABEL), X


def parents_first(nb) -> list[int]:
    """Columns in an order in which parents come before their children."""
    parents = getattr(getattr(nb, "estimator_", nb), "parents_", {})
    names, order = list(nb.encoding_.blank("").names), list[int]()
    while len(order) < len(names):
        for j, name in enumerate(names):
            above = parents.get(name) or ()
            above = (above,) if isinstance(above, str) else above
            if j not in order and all(names.index(p) in order for p in above):
                order.append(j)
    return order


# -- contributions -------------------------------------------------------------------------------


@pytest.mark.slow("other variants compile kernels of their own", but="categorical")
@pytest.mark.parametrize("kind", thorough(CASES, QUICK))
def test_a_contribution_is_what_the_cell_adds_to_the_log_odds(kind):
    """Reference: `predict_proba` and `log_odds_moments` of rows with one cell more."""
    nb, X = fitted(kind)
    elm, oak = (list(nb.classes_).index(label) for label in ("elm", "oak"))
    found = bnb.explain(nb, X[SOME], of="elm", against="oak")
    rows, before = np.full((len(SOME), X.shape[1]), np.nan), (0.0, 0.0)
    for j in [None, *parents_first(nb)]:
        if j is not None:
            rows[:, j] = X[SOME, j]
        log_proba = nb.predict_log_proba(rows)
        odds, sd = log_proba[:, elm] - log_proba[:, oak], bnb.log_odds_moments(nb, rows, against="oak")[1][:, elm]
        own = found[found["feature"] == ("(class)" if j is None else str(j))]
        assert own["row"].tolist() == [0, 1, 2]
        np.testing.assert_allclose(own["contribution"], odds - before[0], rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(own["sd"] ** 2, sd**2 - before[1], rtol=1e-9, atol=1e-10)
        before = odds, sd**2


WHOLE = CASES | {
    "words": (bnb.MultinomialNB(alpha=0.5), COUNTS),
    "weighted words": (bnb.WeightedNB(bnb.MultinomialNB()), COUNTS),
    "words beside numbers": (
        bnb.MixedNB(gaussian=[0], multinomial=[1, 2, 3]),
        np.column_stack([NUMBERS[:, :1], COUNTS[:, 1:]]),
    ),
    "binned": (bnb.BinnedNB(), NUMBERS),
    "features averaged": (bnb.FeatureAveragedNB(bnb.GaussianNB()), NUMBERS),
    "weighted numbers": (bnb.WeightedNB(bnb.MixedNB()), NUMBERS),
    "tempered": (bnb.WeightedNB(bnb.BernoulliNB(), "temperature"), LEVELS),
}
AVERAGES = ("weighted", "tempered", "averaged")  # of these there is neither mode nor MLE


@pytest.mark.parametrize("kind", thorough(WHOLE, ("weighted", "words")))
def test_contributions_add_up_to_the_log_odds_that_are_stated(kind):
    """Checks every estimate of `predict_proba`."""
    nb, X = WHOLE[kind]
    inner = nb.estimator if isinstance(nb, bnb.WeightedNB) else nb
    readings = ["predictive", "mean"] + ["map"] * (not any(name in kind for name in AVERAGES))
    name = "estimate" if inner is nb else "estimator__estimate"
    for estimate in readings:
        chosen = clone(nb).set_params(**{name: estimate}).fit(X, LABEL)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of rows that are impossible in every class under a mode
            found, log_proba = bnb.explain(chosen, X, of="elm", against="oak"), chosen.predict_log_proba(X)
        with np.errstate(invalid="ignore"):
            odds = log_proba[:, 1] - log_proba[:, 2]
        some = np.isfinite(odds)
        assert some.any() or estimate == "map"
        sums = found.groupby("row")["contribution"].sum().to_numpy()
        np.testing.assert_allclose(sums[some], odds[some], rtol=0, atol=1e-9)


def test_reasons_are_for_the_class_that_is_predicted():
    """Twelve wines, P(0) = .84: the posterior mean of the log odds of 0 against 1 is -9.9, and of no use here."""
    X, y = load_wine(return_X_y=True)
    X, X_test, y, _ = train_test_split(X[:, [0, 3, 5, 6]], y, train_size=12, stratify=y, random_state=0)
    nb = bnb.GaussianNB().fit(X, y)
    proba = nb.predict_proba(X_test[:1])[0]
    found = bnb.explain(nb, X_test[:1], of=0, against=1)
    assert proba[0] == pytest.approx(0.844, abs=0.005)
    assert found["contribution"].sum() == pytest.approx(np.log(proba[0] / proba[1]), abs=1e-9)
    # Each by SciPy: κ = .1 of the pooled mean, a = 1, b = the variance within classes.
    within = sum(len(X[y == c]) * X[y == c].var(axis=0) for c in range(3)) / len(X)
    log_density = []
    for c in (0, 1):
        own, kappa, a = X[y == c], 0.1 + (y == c).sum(), 1 + (y == c).sum() / 2
        gap = own.mean(axis=0) - X.mean(axis=0)
        b = within + len(own) * own.var(axis=0) / 2 + 0.1 * len(own) * gap**2 / (2 * kappa)
        loc = (0.1 * X.mean(axis=0) + own.sum(axis=0)) / kappa
        log_density.append(t.logpdf(X_test[0], 2 * a, loc, np.sqrt(b * (kappa + 1) / (a * kappa))))
    of_features = found.set_index("feature").loc[list("0123"), "contribution"]
    np.testing.assert_allclose(of_features, log_density[0] - log_density[1], rtol=1e-9, atol=1e-12)


def test_levels_by_their_counts():
    found = bnb.explain(of_levels(alpha=0.7), LEVELS[:1], of="ash", against="elm").set_index("feature")
    alpha = {c: 0.7 + sum((LEVELS[c == LABEL, 0] == LEVELS[0, 0]).astype(float)) for c in ("ash", "elm")}
    total = {c: 3 * 0.7 + (c == LABEL).sum() for c in ("ash", "elm")}
    theta = {c: alpha[c] / total[c] for c in alpha}
    variance = sum(polygamma(1, alpha[c]) - polygamma(1, total[c]) for c in alpha)
    assert found.loc["0", "contribution"] == pytest.approx(np.log(theta["ash"] / theta["elm"]), abs=1e-12)
    assert found.loc["0", "sd"] == pytest.approx(variance**0.5, rel=1e-12)
    assert found.loc["(class)", "contribution"] == 0.0
    assert found.loc["(class)", "sd"] == pytest.approx(polygamma(1, 21.0) ** 0.5 * 2**0.5, rel=1e-12)


WORDS = ["the", "of", "free", "to"]


def of_words(sparse: bool, weighted: bool, estimate: str = "predictive"):
    X = sp.csr_matrix(COUNTS) if sparse else COUNTS
    nb = bnb.MultinomialNB(alpha=0.5, estimate=estimate)
    return (bnb.WeightedNB(nb) if weighted else nb).fit(X, LABEL), X[SOME]


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize(("sparse", "weighted"), [(False, False), (True, True)])
@pytest.mark.parametrize("estimate", ["predictive", "mean"])
def test_words(sparse, weighted, estimate):
    """One line a word that the row has."""
    nb, rows = of_words(sparse, weighted, estimate)
    found = bnb.explain(nb, rows, of="oak", against="ash", names=WORDS)
    assert np.ptp(np.log(found["sd"][found["feature"] != "(class)"])) > 0
    alpha = {c: 0.5 + COUNTS[c == LABEL].sum(axis=0) for c in ("oak", "ash")}

    def log_prob(j: int, x: float, length: float, c: str) -> float:
        if estimate == "mean":
            return x * np.log(alpha[c][j] / alpha[c].sum())
        every = gammaln(alpha[c].sum() + length) - gammaln(alpha[c].sum())
        return gammaln(alpha[c][j] + x) - gammaln(alpha[c][j]) - x / length * every

    for row, i in enumerate(SOME):
        own = found[found["row"] == row].set_index("feature")
        length = COUNTS[i].sum()
        w = nb.weight_[0] * (length + 1) ** -nb.length_exponent_ if weighted else 1.0
        for j, word in enumerate(WORDS):
            if not (x := COUNTS[i, j]):
                assert word not in own.index
                continue
            line, odds = own.loc[word], log_prob(j, x, length, "oak") - log_prob(j, x, length, "ash")
            variance = sum(polygamma(1, a[j]) - polygamma(1, a.sum()) for a in alpha.values())
            assert line["value"] == x
            assert line["contribution"] == pytest.approx(w * odds, abs=1e-10)
            assert line["sd"] == pytest.approx(abs(w) * x * variance**0.5, rel=1e-10)


@pytest.mark.slow("other variants compile kernels of their own")
@pytest.mark.parametrize("kind", thorough(("gaussian", "bernoulli"), ("bernoulli",)))
def test_features_that_may_not_matter_have_moments_of_a_mixture(kind):
    """Reference: draws; the log odds are γ d with P(γ = 1) = ρ."""
    nb, X = CASES[kind]
    nb = bnb.FeatureAveragedNB(nb).fit(X, LABEL)
    draws = bnb.posterior_draws(nb, draws=4000, seed=1)
    sd = bnb.log_odds_moments(nb, X[SOME], against="ash", draws=draws)[1][:, 1]
    found = bnb.explain(nb, X[SOME], of="elm", against="ash")
    np.testing.assert_allclose(found["sd"].pow(2).groupby(found["row"]).sum() ** 0.5, sd, rtol=0.08)


# -- which classes, which cells ------------------------------------------------------------------


def test_classes_are_the_likeliest_ones_that_are_not_named():
    nb, rows = of_numbers(), NUMBERS[ASKED]
    order = np.argsort(-nb.predict_proba(rows), axis=1)
    first, second, _ = nb.classes_[order].T

    def classes(**named):
        lines = bnb.explain(nb, rows, **named).drop_duplicates("row")
        return lines["of"].tolist(), lines["against"].tolist()

    assert set(first) == set(nb.classes_)
    assert classes() == (first.tolist(), second.tolist())
    assert classes(of="elm")[1] == np.where(first == "elm", second, first).tolist()
    assert classes(against="elm")[0] == np.where(first == "elm", second, first).tolist()
    assert set(classes(against="elm", of="oak")[0]) == {"oak"}


def test_the_largest_come_first_and_rows_keep_their_labels():
    X = pd.DataFrame(LEVELS[:5], index=list("zebra"), columns=["0", "1", "2", "3"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that the classifier does not know
        found = bnb.explain(of_levels(), X)
    assert found["row"].drop_duplicates().tolist() == list("zebra")
    for _, lines in found.groupby("row"):
        assert lines["feature"].iloc[0] == "(class)"
        assert (abs(lines["contribution"].iloc[1:]).diff().dropna() <= 0).all()
    assert list(found) == ["row", "feature", "value", "of", "against", "contribution", "sd"]


@pytest.mark.slow("compiles kernels of its own")
def test_cells_that_count_as_missing_say_so_and_nothing_else():
    X = pd.DataFrame({"colour": ["red", "blue", "?", None], "day": pd.date_range("2020-01-01", periods=4), "n": 4})
    X["day"] = X["day"].where(X["day"].dt.day != 2)
    nb = bnb.MixedNB(categorical=["colour", "day", "n"], missing_values=["?"]).fit(X, ["a", "b", "a", "b"])
    X.loc[0, "colour"] = "green"
    with pytest.warns(UserWarning, match="'green'"):
        found = bnb.explain(nb, X, of="a")
    values = found.pivot(index="row", columns="feature", values="value")
    assert values["colour"].tolist() == [None, "blue", None, None]
    assert values["day"].tolist() == [pd.Timestamp("2020-01-01"), None, *pd.date_range("2020-01-03", periods=2)]
    assert values["n"].tolist() == [4, 4, 4, 4]
    nothing = found[found["value"].isna() & (found["feature"] != "(class)")]
    assert len(nothing) == 4
    assert (nothing[["contribution", "sd"]] == 0).all(axis=None)


@pytest.mark.slow("compiles kernels of its own")
def test_columns_with_parents_name_them():
    X = pd.DataFrame(LEVELS, columns=["a", "b", "c", "d"])
    nb = bnb.NetworkNB({"b": "a", "c": ("a", "b")}, gaussian=None).fit(X, LABEL)
    value = bnb.explain(nb, X[:1]).set_index("feature")["value"]
    a, b, c, d = LEVELS[0]
    assert [str(value[name]) for name in "abcd"] == [str(a), f"{b} | a={a}", f"{c} | a={a}, b={b}", str(d)]
    X.loc[0, "c"] = np.nan
    assert bnb.explain(nb, X[:1]).set_index("feature").loc["c", ["value", "contribution"]].tolist() == [None, 0.0]


@pytest.mark.slow("compiles kernels of its own")
def test_what_has_no_parts_is_refused():
    explain, not_offered = bnb.explain, {"error": NotImplementedError}
    nb = of_levels()
    refused("of='yew' is not a class", explain, nb, LEVELS, of="yew")
    refused("against='yew' is not a class", explain, nb, LEVELS, against="yew")
    refused("of='ash' and against='ash' are the same class", explain, nb, LEVELS, "ash", "ash")
    refused("names has 2 entries, but X has 4 columns", explain, nb, LEVELS, names=["a", "b"])
    refused("names='abcd'", explain, nb, LEVELS, names="abcd", error=TypeError)
    said = "explain compares classes, but .* has only the class"
    refused(said, explain, bnb.CategoricalNB().fit(LEVELS, np.full(N, "ash")), LEVELS)
    refused("explain: AODE averages", explain, bnb.AODE(gaussian=None).fit(LEVELS, LABEL), LEVELS, **not_offered)
    refused("explain: .*counted by EM", explain, in_shares(), COUNTS, **not_offered)
    network = bnb.NetworkNB({1: 0}, gaussian=None).fit(LEVELS, LABEL)
    X = LEVELS[:4].copy()
    X[2, 0] = np.nan
    refused("row 2 has a missing cell in a column with a parent or a child", explain, network, X, **not_offered)
    improper = bnb.CategoricalNB(alpha=0.0).fit(LEVELS[ASKED], LABEL[ASKED])
    refused("improper", explain, improper, LEVELS, error=bnb.ImproperPosteriorError)


# -- the value of an answer ----------------------------------------------------------------------

QUESTIONS = {
    "categorical": (bnb.CategoricalNB(alpha=0.7), LEVELS),
    "bernoulli": (bnb.BernoulliNB(), LEVELS),
    "averaged": (bnb.FeatureAveragedNB(), LEVELS),
    "tree": (bnb.TAN(gaussian=None), LEVELS),
    "network": (NETWORK, LEVELS),
    "beside numbers": (bnb.SPODE(0, gaussian=[2, 3]), np.column_stack([LEVELS[:, :2], NUMBERS[:, :2]])),
    "weighted": (bnb.WeightedNB(bnb.CategoricalNB(), "feature"), LEVELS),
}


def by_hand(nb, row: np.ndarray, j: int, answers: np.ndarray, log_measure: np.ndarray) -> float:
    """H(class | row) - Σ_v P(v | row) H(class | row, v), every answer filled in."""
    plain = getattr(nb, "estimator_", nb)
    rows = np.repeat(row[None], len(answers), axis=0)
    rows[:, j] = answers
    before = nb.predict_proba(row[None], estimate="predictive")[0]
    given = plain.predict_joint_log_proba(rows, estimate="predictive")
    given = given - plain.predict_joint_log_proba(row[None], estimate="predictive") + log_measure[:, None]
    share = np.exp(given) @ before
    assert share.sum() == pytest.approx(1.0, abs=1e-4)
    after = entr(nb.predict_proba(rows, estimate="predictive")).sum(axis=1)
    return entr(before).sum() - share @ after


@pytest.mark.slow("other variants compile kernels of their own", but="categorical")
@pytest.mark.parametrize("kind", thorough(QUESTIONS, ("categorical", "network", "weighted")))
def test_levels_are_summed_over(kind):
    nb, X = QUESTIONS[kind]
    nb.fit(X, LABEL)
    rows = holed(X, 0.5)[:6]
    found = bnb.value_of_information(nb, rows)
    levels = [0.0, 1.0] if kind == "bernoulli" else [0.0, 1.0, 2.0]
    features = ["0", "1"] if kind == "beside numbers" else list("0123")
    asked = found[found["feature"].isin(features)]
    assert len(found) == np.isnan(rows).sum()
    for line in asked.itertuples():
        expected = by_hand(nb, rows[line.row], int(line.feature), np.array(levels), np.zeros(len(levels)))
        assert line.value == pytest.approx(expected, abs=1e-12)
    entropy = entr(nb.predict_proba(rows, estimate="predictive")).sum(axis=1)
    np.testing.assert_allclose(found["share"], found["value"] / entropy[found["row"]])
    if not hasattr(nb, "estimator_"):
        assert (found["value"] > -1e-12).all()
        assert (found["share"] < 1).all()


def test_of_margins_and_dependences_it_is_refused():
    nb = bnb.WeightedNB(NETWORK, "temperature").fit(LEVELS, LABEL)
    refused("margin and a dependence", bnb.value_of_information, nb, LEVELS[:2], error=NotImplementedError)


COUNTING = np.arange(400.0)
LOGARITHMIC = np.linspace(-14, 14, 20_001)
EVEN = np.linspace(-300, 300, 200_001)
NUMBERS_ASKED = {
    "gaussian": (bnb.GaussianNB(), NUMBERS, EVEN, np.full(len(EVEN), np.log(EVEN[1] - EVEN[0]))),
    "weighted gaussian": (
        bnb.WeightedNB(bnb.GaussianNB(), "feature"),
        NUMBERS,
        EVEN,
        np.full(len(EVEN), np.log(EVEN[1] - EVEN[0])),
    ),
    "poisson": (bnb.PoissonNB(), COUNTS, COUNTING, -gammaln(COUNTING + 1)),
    "large counts": (bnb.PoissonNB(), COUNTS * 40, np.arange(3000.0), -gammaln(np.arange(3000.0) + 1)),
    "exponential": (
        bnb.ExponentialNB(),
        abs(NUMBERS),
        np.exp(LOGARITHMIC),
        LOGARITHMIC + np.log(LOGARITHMIC[1] - LOGARITHMIC[0]),
    ),
    "averaged": (bnb.FeatureAveragedNB(bnb.GaussianNB()), NUMBERS, EVEN, np.full(len(EVEN), np.log(EVEN[1] - EVEN[0]))),
}


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("kind", thorough(NUMBERS_ASKED, ("gaussian", "poisson")))
def test_numbers_are_integrated_over(kind):
    nb, X, answers, log_measure = NUMBERS_ASKED[kind]
    nb.fit(X, LABEL)
    rows = holed(X, 0.5)[:2]
    found = bnb.value_of_information(nb, rows)
    assert len(found) == np.isnan(rows).sum() > 1
    for line in found.itertuples():
        expected = by_hand(nb, rows[line.row], int(line.feature), answers, log_measure)
        assert line.value == pytest.approx(expected, abs=1e-7 if kind == "poisson" else 1e-4)


def test_an_answer_is_worth_what_it_says():
    X = np.column_stack([CODE, np.zeros(N, int), CODE, np.zeros(N, int)]).astype(object)
    nb = bnb.CategoricalNB().fit(X, CODE, np.full(N, 2.0))
    found = bnb.value_of_information(nb, [[None] * 4, [0, 0, 0, 0], [None, None, 1, 0]])
    first = found[found["row"] == 0].set_index("feature")["share"]
    assert first["0"] == first["2"] > 0.7  # each by itself, though the second will say nothing new
    assert first["1"] == pytest.approx(0.0, abs=1e-12)
    assert found[found["row"] == 2].set_index("feature").loc["0", "value"] < 0.25 * np.log(3) * first["0"]
    assert 1 not in found["row"].tolist()


def test_what_can_be_asked_and_what_an_answer_can_be():
    X = pd.DataFrame({"a": list("xyxxyy"), "b": [None] * 6, "c": list("uuvvuv"), "d": list("uvvuuv")})
    y = list("pqrpqr")
    nb = bnb.CategoricalNB(handle_unknown="level").fit(X, y)
    rows = pd.DataFrame({"a": [None, "x"], "b": None, "c": None, "d": "u"}, index=["one", "two"])
    found = bnb.value_of_information(nb, rows)
    assert found["row"].tolist() == ["one"] * 3 + ["two"] * 2
    assert found.groupby("row", sort=False)["value"].apply(lambda v: v.is_monotonic_decreasing).all()
    before = nb.predict_proba(rows)[0]
    theta = np.exp(nb.feature_log_prob_[0])  # x, y and whatever is neither
    after = before[:, None] * theta
    expected = entr(before).sum() - (after.sum(axis=0) * entr(after / after.sum(axis=0)).sum(axis=0)).sum()
    assert found.set_index(["row", "feature"]).loc[("one", "a"), "value"] == pytest.approx(expected, abs=1e-12)
    assert bnb.value_of_information(nb, rows, features=["a"])["row"].tolist() == ["one"]
    assert bnb.value_of_information(nb, rows, features=2)["feature"].tolist() == ["c", "c"]
    nothing = bnb.value_of_information(nb, X, features="a")
    assert nothing.empty
    assert list(nothing) == ["row", "feature", "value", "share"]
    # Where no level is known, no answer would be understood.
    alone = bnb.value_of_information(bnb.CategoricalNB().fit(X, y), rows, features="b")
    np.testing.assert_allclose(alone["value"], 0.0, atol=1e-15)


def test_what_is_no_distribution_of_answers_is_refused():
    ask = bnb.value_of_information
    refused("features: there is no column 'z'", ask, of_levels(), LEVELS, features=["z"])
    refused("value_of_information: .*counted by EM", ask, in_shares(), COUNTS, error=NotImplementedError)
    improper = bnb.CategoricalNB(alpha=0.0).fit(LEVELS[ASKED], LABEL[ASKED])
    refused("improper", ask, improper, LEVELS, error=bnb.ImproperPosteriorError)
