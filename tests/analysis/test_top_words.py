"""Words that speak for a class, against draws of the Dirichlet posterior by SciPy and known truth."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import stats
from scipy.special import digamma
from sklearn.exceptions import NotFittedError

import bayesnb as bnb
from bayesnb import top_words
from bayesnb.text import BagOfWords
from tests.data import sms
from tests.raises import refused

RNG = np.random.default_rng(5)
COUNTS = np.array([[6, 0, 1, 2], [4, 1, 1, 0], [0, 5, 1, 1], [1, 6, 2, 0], [2, 2, 8, 0], [0, 1, 9, 1], [1, 1, 4, 0]])
Y = np.array(["ham", "ham", "spam", "spam", "news", "news", "news"])
TWO = Y != "news"
DRAWS = 40_000


def by_simulation(X, y, class_, alpha, bernoulli=False):
    """(V, S) draws of the log odds ratio, of whole Dirichlet (or Beta) posteriors and class probabilities."""
    labels = sorted(set(y))
    pi = stats.dirichlet([1.0 + (y == label).sum() for label in labels]).rvs(DRAWS, random_state=1)
    theta = []
    for i, label in enumerate(labels):
        rows = X[y == label]
        if bernoulli:
            present = (rows > 0).sum(axis=0)
            a, b = alpha + present, alpha + len(rows) - present
            theta.append(stats.beta(a, b).rvs((DRAWS, X.shape[1]), random_state=10 + i))
        else:
            theta.append(stats.dirichlet(alpha + rows.sum(axis=0)).rvs(DRAWS, random_state=10 + i))
    c = labels.index(class_)
    others = [k for k in range(len(labels)) if k != c]
    rest = sum(pi[:, k, None] * theta[k] for k in others) / pi[:, others].sum(axis=1, keepdims=True)
    return (np.log(theta[c]) - np.log(rest)).T


def check(table, simulated, draws):
    """Means and ends of intervals agree up to 4.5 standard errors of both Monte Carlo estimates."""
    for _, row in table.iterrows():
        odds = simulated[int(row["word"])]
        error = np.sqrt(1 / draws + 1 / DRAWS)
        assert row["log_odds"] == pytest.approx(odds.mean(), abs=4.5 * odds.std() * error)
        for end, q in (("lower", 0.05), ("upper", 0.95)):
            # The standard error of a quantile is √(q(1 - q)/S) over the density there.
            near, far = np.quantile(odds, [q - 0.02, q + 0.02])
            assert row[end] == pytest.approx(
                np.quantile(odds, q), abs=4.5 * np.sqrt(q * (1 - q)) * error * (far - near) / 0.04
            )
    assert table["lower"].is_monotonic_decreasing


@pytest.mark.parametrize("class_", ["ham", "news"])
@pytest.mark.parametrize("rows", [TWO, slice(None)], ids=["two classes", "three classes"])
def test_ends_of_intervals_are_those_of_the_dirichlet_posterior(rows, class_):
    X, y = COUNTS[rows], Y[rows]
    class_ = class_ if class_ in y else "spam"
    table = top_words(bnb.MultinomialNB(alpha=0.5).fit(X, y), class_, draws=20_000)
    assert len(table) == 4
    check(table, by_simulation(X, y, class_, 0.5), 20_000)


def test_presence_of_words():
    table = top_words(bnb.BernoulliNB().fit(COUNTS, Y), "spam", draws=20_000)
    check(table, by_simulation(COUNTS, Y, "spam", 1.0, bernoulli=True), 20_000)


def test_the_mean_of_two_classes_is_a_difference_of_digammas():
    nb = bnb.MultinomialNB(alpha=0.3).fit(COUNTS[TWO], Y[TWO])
    table = top_words(nb, "spam", draws=2).set_index("word")
    spam, ham = (0.3 + COUNTS[label == Y].sum(axis=0) for label in ("spam", "ham"))
    expected = digamma(spam) - digamma(spam.sum()) - digamma(ham) + digamma(ham.sum())
    np.testing.assert_allclose(table["log_odds"][["0", "1", "2", "3"]], expected, rtol=1e-12)


def test_counts_names_and_rows_without_order():
    X = sp.csr_array(COUNTS)
    names = ["meet", "win", "vote", "the"]
    nb = bnb.MultinomialNB().fit(X, Y)
    table = top_words(nb, "news", n=2, names=names)
    assert table.columns.tolist() == ["word", "log_odds", "lower", "upper", "count", "count_elsewhere"]
    assert len(table) == 2
    assert table.loc[0, ["word", "count", "count_elsewhere"]].tolist() == ["vote", 21, 5]
    pd.testing.assert_frame_equal(table, top_words(bnb.MultinomialNB().fit(X[::-1], Y[::-1]), "news", 2, names=names))
    named = bnb.MultinomialNB().fit(pd.DataFrame(COUNTS, columns=names), Y)
    pd.testing.assert_frame_equal(table, top_words(named, "news", 2))


def test_levels_are_words_with_the_name_of_their_column():
    """P(x_j = v | ham)/P(x_j = v | others) by hand: Dirichlet(1, 1) and counts (3, 0) against (1, 2)."""
    X = pd.DataFrame({"sky": ["sun", "sun", "sun", "sun", "rain", "rain"]})
    table = top_words(bnb.CategoricalNB().fit(X, ["in"] * 3 + ["out"] * 3), "in").set_index("word")
    assert set(table.index) == {"sky = sun", "sky = rain"}
    assert table.loc["sky = sun", "log_odds"] == pytest.approx(digamma(4) - digamma(2), rel=1e-12)
    assert table.loc["sky = rain", ["count", "count_elsewhere"]].tolist() == [0, 2]


def test_a_column_of_one_level_tells_nothing():
    nb = bnb.CategoricalNB().fit([["sun", "a"], ["sun", "b"], ["sun", "b"]], ["in", "out", "out"])
    row = top_words(nb, "in").set_index("word").loc["0 = sun"]
    assert row[["log_odds", "lower", "upper"]].tolist() == [0, 0, 0]


def test_rare_words_with_large_ratios_do_not_fill_the_list():
    """Forty words occur twice, in spam only; one word 300 times there and 100 times elsewhere: its ratio is known."""
    X = np.zeros((20, 42), int)
    X[np.arange(40) % 10, np.arange(40)] = 2
    X[:10, 40], X[10:, 40], X[10:, 41] = 30, 10, 30
    table = top_words(bnb.MultinomialNB().fit(X, ["spam"] * 10 + ["ham"] * 10), "spam", n=42)
    assert table["word"][0] == "40"
    assert table["log_odds"].idxmax() > 0


def test_of_many_words_the_best_are_found():
    """The first ten of 1,500 have the greatest lower ends of all, by draws of every word."""
    theta = RNG.dirichlet(np.full(1500, 0.3), 4)
    y = np.repeat(list("abcd"), 10)
    X = np.array([RNG.multinomial(200, theta["abcd".index(label)]) for label in y])
    table = top_words(bnb.MultinomialNB().fit(X, y), "b")
    a, total = 1.0 + np.array([X[y == label].sum(axis=0) for label in "abcd"]), 1500 + 2000
    drawn = np.log(RNG.beta(a, total - a, (1500, 4, 1500)))
    lower = np.quantile(drawn[:, 1] - np.log(np.exp(drawn[:, [0, 2, 3]]).mean(axis=1)), 0.05, axis=0)
    # Class probabilities are uncertain, which the weights of one third neglect, and both ends are drawn.
    tenth = np.sort(lower)[-10]
    assert (lower[table["word"].astype(int)] > tenth - 0.15).all()
    np.testing.assert_allclose(table["lower"], lower[table["word"].astype(int)], atol=0.2)


def test_the_seed_decides():
    nb = bnb.MultinomialNB().fit(COUNTS, Y)
    pd.testing.assert_frame_equal(top_words(nb, "ham", seed=3), top_words(nb, "ham", seed=3))
    assert not top_words(nb, "ham", seed=3)["lower"].equals(top_words(nb, "ham", seed=4)["lower"])


@pytest.mark.parametrize("kind", ["multinomial", "bernoulli"])
def test_where_words_tell_nothing_intervals_of_all_words_cover_and_those_shown_do_not(kind):
    """The claim of the docstring: the words shown are the best of many, and their intervals nearly all exclude 0."""
    shown, all_words = [], []
    for seed in range(3):
        rng = np.random.default_rng(100 + seed)
        if kind == "bernoulli":
            nb = bnb.BernoulliNB().fit(rng.binomial(1, 0.1, (60, 500)), np.repeat(["a", "b"], 30))
        else:
            nb = bnb.MultinomialNB().fit(rng.multinomial(50, np.full(500, 1 / 500), 60), np.repeat(["a", "b"], 30))
        every = top_words(nb, "a", n=500, draws=500)
        all_words.append(((every["lower"] > 0) | (every["upper"] < 0)).mean())
        shown.append((top_words(nb, "a", draws=500)["lower"] > 0).mean())
    assert np.mean(all_words) < 0.12
    assert np.mean(shown) > 0.9


@pytest.mark.slow("reads 5,574 messages")
def test_words_of_spam():
    """Words that anyone would name are among the first twenty, and all twenty have the same sign on other rows."""
    messages, y = sms()
    bag = BagOfWords(min_df=2)
    X = bag.fit_transform(messages[::2])
    table = top_words(bnb.MultinomialNB().fit(X, y[::2]), "spam", n=20, names=bag.get_feature_names_out())
    assert {"claim", "prize", "txt"} <= set(table["word"])
    other, y_other = bag.transform(messages[1::2]), y[1::2]
    found = [bag.vocabulary_[word] for word in table["word"]]
    rates = [np.asarray(other[y_other == label].sum(axis=0)).ravel()[found] + 1 for label in ("spam", "ham")]
    totals = [other[y_other == label].sum() for label in ("spam", "ham")]
    assert (np.log(rates[0] / totals[0]) > np.log(rates[1] / totals[1])).all()


def test_refusals():
    nb = bnb.MultinomialNB().fit(COUNTS, Y)
    refused(r"class_='eggs' is not a class. The classes are \['ham', 'news', 'spam'\]", top_words, nb, "eggs")
    refused("class_=.* is not a class", top_words, nb, ["ham"])
    for n in (0, -1, 2.5, True):
        refused(f"n={n} must be a positive integer", top_words, nb, "ham", n)
    refused("prob=1 must be", top_words, nb, "ham", prob=1)
    refused("draws=0 must be", top_words, nb, "ham", draws=0)
    refused("seed=-1", top_words, nb, "ham", seed=-1)
    refused("names has 2 entries, but X has 4 columns", top_words, nb, "ham", names=["a", "b"])
    refused("MultinomialNB", top_words, bnb.MultinomialNB(), "ham", error=NotFittedError)
    refused("takes a classifier of bayesnb", top_words, "nb", "ham", error=TypeError)
    refused("has only the class 'ham'", top_words, bnb.MultinomialNB().fit(COUNTS, ["ham"] * 7), "ham")
    refused(
        "improper", top_words, bnb.MultinomialNB(alpha=0).fit(np.eye(7), Y), "ham", error=bnb.ImproperPosteriorError
    )
    certain = bnb.MultinomialNB(class_prior=[1.0, 0.0, 0.0]).fit(COUNTS, Y)
    refused("gives every class except 'ham' the probability 0", top_words, certain, "ham")
    assert len(top_words(nb, "ham", n=1000)) == 4


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (bnb.GaussianNB, "column '0' is gaussian, and has neither words"),
        (bnb.PoissonNB, "column '0' is poisson"),
        (bnb.BinnedNB, "column '0' is binned"),
        (bnb.TAN, "depend on parents"),
        (bnb.FeatureAveragedNB, "shared by classes"),
        (bnb.AODE, "top_words: "),
    ],
)
def test_columns_that_are_no_words(make, match):
    refused(match, top_words, make().fit(COUNTS, Y), "ham", error=NotImplementedError)
