"""Posterior predictive checks against SciPy, recorded replicates, and simulation where the model holds and does not."""

from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.stats.contingency import association
from sklearn.base import clone

import bayesnb as bnb
from bayesnb import posterior_predictive_check
from bayesnb.analysis.predictive import Tables, associations
from tests.raises import refused

RNG = np.random.default_rng(3)
N = 90
Y = np.array(["no", "yes", "maybe"])[np.arange(N) % 3]
FRAME = pd.DataFrame(
    {
        "colour": RNG.choice(["red", "green", "blue"], N),
        "length": RNG.normal(3.0, 2.0, N),
        "leaf": RNG.choice(["long", "round"], N),
        "spots": RNG.poisson(2.0, N).astype(float),
        "ripe": RNG.random(N) < 0.4,
    }
)
FRAME.loc[RNG.random(N) < 0.2, "length"] = np.nan
FRAME.loc[RNG.random(N) < 0.2, "colour"] = None
NUMBERS = ["length", "spots"]
MIXED = bnb.MixedNB(bernoulli=["ripe"], poisson=["spots"], numbers="gaussian")


@pytest.fixture(scope="module")
def nb():
    return MIXED.fit(FRAME, Y)


def expected_association(rows, first, second):
    """Association of two columns by SciPy and loops, in the rows that have both."""
    rows = rows[[first, second]].dropna()
    if first in NUMBERS and second in NUMBERS:
        return abs(stats.pearsonr(rows[first], rows[second]).statistic)
    if first not in NUMBERS and second not in NUMBERS:
        return association(pd.crosstab(rows[first], rows[second]).to_numpy(), method="cramer")
    number, level = (first, second) if first in NUMBERS else (second, first)
    between = sum(
        len(part) * (part.mean() - rows[number].mean()) ** 2 for _, part in rows.groupby(level, observed=True)[number]
    )
    return np.sqrt(between / ((rows[number] - rows[number].mean()) ** 2).sum())


def test_associations_are_those_of_scipy(nb):
    check = posterior_predictive_check(nb, FRAME, Y, draws=5)
    assert len(check.table) == 3 * 10
    assert check.excluded == 0
    for row in check.table.to_dict("records"):
        expected = expected_association(FRAME[row["class"] == Y], row["feature_1"], row["feature_2"])
        assert row["observed"] == pytest.approx(expected, rel=1e-9), row
        assert list(FRAME).index(row["feature_1"]) < list(FRAME).index(row["feature_2"])
    names = {(row.feature_1, row.feature_2): row.statistic for row in check.table.itertuples()}
    assert names["colour", "leaf"] == "Cramér's V"
    assert names["length", "spots"] == "correlation"
    assert names["colour", "length"] == "correlation ratio"


def test_frequencies_and_extremes_are_those_of_pandas(nb):
    frequency = posterior_predictive_check(nb, FRAME, Y, "frequency", draws=5).table
    extremes = posterior_predictive_check(nb, FRAME, Y, "extremes", draws=5).table
    for row in [*frequency.to_dict("records"), *extremes.to_dict("records")]:
        column = FRAME[row["class"] == Y][row["feature_1"]].dropna()
        match row["statistic"].split():
            case ["proportion", "of", level]:
                value = {"present": True, "absent": False}.get(level, level)
                expected = (column == value).mean()
            case ["rows", *_]:
                expected = column.value_counts().reindex(FRAME[row["feature_1"]].dropna().unique()).fillna(0).min()
            case ["sd"]:
                expected = column.std()
            case [name]:
                expected = getattr(column, name)()
        assert row["observed"] == pytest.approx(expected, rel=1e-9), row
    assert len(frequency) == 3 * (3 + 2 + 2 + 2 * 2)
    assert len(extremes) == 3 * (3 + 2 * 2)


def test_p_values_are_those_of_the_replicates(nb):
    """A function sees the observed table, then each replicate: the p-values are computed from what it saw."""
    seen = []

    def count(table, labels):
        assert labels.tolist() == Y.tolist()
        assert (table.isna() == FRAME.isna()).all(axis=None)
        assert table.dtypes["colour"] == "category"
        seen.append([(table["colour"] == "red").sum(), table["spots"].max(), round(table["length"].mean(), 1)])
        return dict(zip(["red", "most", "mean"], seen[-1], strict=True))

    check = posterior_predictive_check(nb, FRAME, Y, count, draws=60, seed=2)
    assert seen[0] == [(FRAME["colour"] == "red").sum(), FRAME["spots"].max(), round(FRAME["length"].mean(), 1)]
    values = np.array(seen, float)
    assert len(values) == 61
    for k, name in enumerate(["red", "most", "mean"]):
        row = check.table[check.table["statistic"] == name].iloc[0]
        replicates = values[1:, k]
        p = ((replicates > values[0, k]).sum() + 0.5 * (1 + (replicates == values[0, k]).sum())) / 61
        assert row["p"] == pytest.approx(p)
        assert row["mean"] == pytest.approx(replicates.mean())
        assert row["sd"] == pytest.approx(replicates.std())
        assert [row["lower"], row["upper"]] == pytest.approx(np.quantile(replicates, [0.05, 0.95]))
        assert row["discrepancy"] == pytest.approx((values[0, k] - values[:, k].mean()) / values[:, k].std())
    largest = np.abs((values - values.mean(axis=0)) / values.std(axis=0)).max(axis=1)
    above, equal = (largest[1:] > largest[0] + 1e-9).sum(), np.isclose(largest[1:], largest[0], rtol=1e-9).sum()
    assert check.p == pytest.approx((above + 1 + equal) / 61)
    assert check.statistic == "count"


def test_a_function_gives_what_the_known_statistic_gives(nb):
    def mean(table, labels):
        return [table.loc[labels == c, "length"].mean() for c in nb.classes_]

    by_function = posterior_predictive_check(nb, FRAME, Y, mean, draws=40, features=["length"])
    known = posterior_predictive_check(nb, FRAME, Y, "frequency", draws=40, features=["length"]).table
    known = known[known["statistic"] == "mean"]
    columns = ["observed", "mean", "sd", "lower", "upper", "discrepancy", "p"]
    for k, label in enumerate(nb.classes_):
        row = by_function.table[by_function.table["statistic"] == f"mean[{k}]"][columns].iloc[0]
        np.testing.assert_allclose(row, known[known["class"] == label][columns].iloc[0], rtol=1e-9, atol=1e-12)


def test_a_copied_column_is_found_and_is_first():
    found = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = rng.integers(0, 3, (80, 4)), rng.integers(0, 2, 80)
        X[:, 3] = np.where(rng.random(80) < 0.1, rng.integers(0, 3, 80), X[:, 0])
        check = posterior_predictive_check(bnb.CategoricalNB().fit(X, y), X, y, draws=100)
        found += check.p < 0.05
        assert check.table.loc[0, ["feature_1", "feature_2"]].tolist() == ["0", "3"]
    assert found == 10
    # A structure that has the arc replicates the dependence.
    tree = bnb.NetworkNB({"3": "0"}).fit(X, y)
    assert posterior_predictive_check(tree, X, y, draws=100).p > 0.05


@pytest.mark.parametrize("missing", [0.0, 0.25])
def test_surprises_have_the_moments_of_all_permutations(missing):
    """One column of each pair is put into all orders of seven rows; the tail is that of SciPy's gamma distribution."""
    rng = np.random.default_rng(4)
    seen = rng.random((7, 4)) >= missing
    numbers = np.where(seen[:, :2], np.column_stack([rng.poisson(1.0, 7), rng.normal(size=7)]), np.nan)
    codes = np.where(seen[:, 2:], np.column_stack([[0, 0, 1, 1, 2, 2, 2], rng.permutation([0, 0, 0, 1, 1, 1, 1])]), -1)

    def measure(numbers, codes):
        tables = Tables(np.zeros(7, int), numbers, codes, np.array([0, 1]), np.array([2, 3]), ((0, 1, 2), (0, 1)))
        return associations(tables)

    (value,), (surprise,) = measure(numbers[None], codes[None])
    for pair, (i, j) in enumerate(combinations(range(4), 2)):
        both = np.flatnonzero(seen[:, i] & seen[:, j])
        orders = np.array(list(permutations(both)))
        moved = np.tile(np.arange(7), (len(orders), 1))
        moved[:, both] = orders
        cells = np.tile(numbers, (len(orders), 1, 1)), np.tile(codes, (len(orders), 1, 1))
        (cells[0] if j < 2 else cells[1])[:, :, j % 2] = (numbers if j < 2 else codes)[:, j % 2][moved]
        levels = [len(set(codes[both, k - 2])) if k >= 2 else 2 for k in (i, j)]
        square = (min(levels) - 1) * measure(*cells)[0][:, pair] ** 2
        shape = square.mean() ** 2 / square.var()
        observed = (min(levels) - 1) * value[pair] ** 2
        expected = -stats.gamma.logsf(observed, shape, scale=square.mean() / shape)
        assert surprise[pair] == pytest.approx(expected, rel=1e-7), (i, j)


def test_two_equal_columns_are_more_surprising_than_two_rare_levels_that_meet():
    first, rare = np.arange(30) % 2, np.arange(30) == 0
    codes = np.column_stack([first, first, rare, rare])[None].astype(int)
    tables = Tables(np.zeros(30, int), np.zeros((1, 30, 0)), codes, np.array([], int), np.arange(4), ((0, 1),) * 4)
    (value,), (surprise,) = associations(tables)
    assert value[[0, 5]].tolist() == [1.0, 1.0]
    exact = [-np.log(stats.fisher_exact(pd.crosstab(codes[0, :, i], codes[0, :, i]))[1]) for i in (0, 2)]
    assert min(surprise[0], exact[0]) > 15
    assert max(surprise[5], exact[1]) < 6


def test_a_rare_event_is_not_flagged_more_often_than_its_level():
    """A statistic of two values: the event of probability .09 may not be significant at .05."""
    y = np.repeat([0, 1], 10)
    nb = bnb.BernoulliNB(alpha=1e6).fit(np.tile([[0], [1]], (10, 1)), y)  # present with probability ½, known

    def is_rare(table, labels):
        return float(table.iloc[:7, 0].sum() <= 1)  # 8 of 128

    X = np.zeros((20, 1), int)
    assert posterior_predictive_check(nb, X, y, is_rare, draws=1000).p == pytest.approx(8 / 128, abs=0.02)


@pytest.mark.slow("fits a hundred tables", but="bernoulli")
@pytest.mark.parametrize("kind", ["bernoulli", "poisson"])
def test_rare_levels_and_counts_of_a_true_model_are_seldom_flagged(kind):
    """Pairs with a constant feature count as 0 in the observed table, as they do in replicates."""
    p_values = []
    for seed in range(40):
        rng = np.random.default_rng([seed, 7])
        y = np.arange(30) % 2
        if kind == "bernoulli":
            theta = rng.beta(0.3, 0.3, (2, 20))
            X, nb = (rng.random((30, 20)) < theta[y]).astype(int), bnb.BernoulliNB(alpha=0.3)
        else:
            prior = bnb.GammaPoisson(*(np.full((2, 20), value) for value in (0.3, 1.0)))
            X, nb = rng.poisson(rng.gamma(0.3, 1.0, (2, 20))[y]), bnb.PoissonNB(prior=prior)
        p_values.append(posterior_predictive_check(nb.fit(X, y), X, y, draws=60, seed=seed).p)
    assert stats.binomtest(int(np.sum(np.array(p_values) <= 0.1)), 40, 0.1, alternative="greater").pvalue > 0.01


@pytest.mark.slow("fits a hundred tables")
def test_noise_is_seldom_flagged():
    flagged = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(60, 20)), rng.integers(0, 2, 60)
        flagged += posterior_predictive_check(bnb.GaussianNB().fit(X, y), X, y, draws=100, seed=seed).p < 0.05
    assert stats.binomtest(int(flagged), 100, 0.05, alternative="greater").pvalue > 1e-3


@pytest.mark.slow("fits three hundred tables")
@pytest.mark.parametrize("kind", ["categorical", "gaussian"])
def test_p_of_association_is_uniform_where_prior_and_model_hold(kind):
    rng, p_values = np.random.default_rng(1), []
    prior = bnb.NormalInverseGamma(*(np.full((2, 4), value) for value in (0.0, 0.1, 2.0, 2.0)))
    for seed in range(150):
        y = np.zeros(60, int)
        while len(np.unique(y)) < 2:
            y = rng.choice(2, 60, p=rng.dirichlet([1.0, 1.0]))
        if kind == "categorical":
            theta = rng.dirichlet(np.ones(3), (2, 4))
            X = (rng.random((60, 4, 1)) > theta[y].cumsum(axis=2)[:, :, :2]).sum(axis=2)
            nb = bnb.CategoricalNB(alpha=1.0, class_alpha=1.0, categories=[[0, 1, 2]] * 4)
        else:
            sigma2 = 1 / rng.gamma(2.0, 1 / 2.0, (2, 4))
            X = rng.normal(rng.normal(0.0, np.sqrt(sigma2 / 0.1))[y], np.sqrt(sigma2[y]))
            nb = bnb.GaussianNB(prior=prior, class_alpha=1.0)
        p_values.append(posterior_predictive_check(nb.fit(X, y), X, y, draws=100, seed=seed).p)
    assert stats.kstest(p_values, "uniform").pvalue > 0.01


def test_what_is_undefined_is_left_out_and_counted():
    X = pd.DataFrame({"a": RNG.normal(size=21), "b": 1.5, "c": RNG.normal(size=21)})
    y = ["one"] * 10 + ["two"] * 10 + ["three"]
    prior = bnb.NormalInverseGamma(*(np.full((3, 3), value) for value in (0.0, 0.1, 2.0, 2.0)))
    check = posterior_predictive_check(bnb.GaussianNB(prior=prior).fit(X, y), X, y, draws=20)
    assert len(check.table) == 6  # the classes of ten rows; b is constant in the observed table only
    assert check.excluded == 3
    assert "3 undefined" in repr(check)
    assert (check.table.loc[(check.table[["feature_1", "feature_2"]] == "b").any(axis=1), "observed"] == 0).all()
    assert check.table.notna().all(axis=None)
    frequency = posterior_predictive_check(bnb.GaussianNB(prior=prior).fit(X, y), X, y, "frequency", draws=20)
    assert frequency.excluded == 3  # standard deviations in the class of one row
    constant = pd.DataFrame({"a": ["u"] * 6, "b": list("uvuvuv")})
    nb = bnb.CategoricalNB().fit(constant, [0, 0, 0, 1, 1, 1])
    refused("undefined in every class", posterior_predictive_check, nb, constant, [0, 0, 0, 1, 1, 1])


def test_words_keep_the_length_of_their_rows():
    X, y = RNG.poisson(2.0, (30, 4)), [0, 1] * 15
    totals = []
    posterior_predictive_check(
        bnb.MultinomialNB().fit(X, y), X, y, lambda t, labels: totals.append(t.sum(axis=1)) or 0.0, draws=5
    )
    assert all((total == X.sum(axis=1)).all() for total in totals)
    check = posterior_predictive_check(bnb.MultinomialNB().fit(X, y), X, y, draws=20)
    assert set(check.table["statistic"]) == {"correlation"}


@pytest.mark.slow("draws of binned densities compile for seconds")
def test_binned_numbers_count_by_the_position_of_their_cell():
    X, y = RNG.normal(size=(60, 2)), [0, 1] * 30
    nb = bnb.BinnedNB().fit(X, y)
    assert set(posterior_predictive_check(nb, X, y, draws=5).table["statistic"]) == {"correlation"}
    near = posterior_predictive_check(nb.fit(X[:, [0, 0]] + 0.1 * X, y), X[:, [0, 0]] + 0.1 * X, y, draws=50)
    assert near.p < 0.05


def test_the_seed_decides_and_the_features_choose(nb):
    first, again, other = (posterior_predictive_check(nb, FRAME, Y, draws=20, seed=s) for s in (1, 1, 2))
    pd.testing.assert_frame_equal(first.table, again.table)
    assert not first.table.equals(other.table)
    some = posterior_predictive_check(nb, FRAME, Y, draws=20, features=["leaf", "length"])
    assert set(some.table["feature_1"]) == {"length"}
    assert set(some.table["feature_2"]) == {"leaf"}


def test_numbers_of_a_function_are_matched_by_name():
    """`value_counts` orders levels by frequency, which differs between tables."""

    def by_frequency(table, labels):
        return table["leaf"].value_counts()

    def by_level(table, labels):
        return {level: int((table["leaf"] == level).sum()) for level in sorted(set(FRAME["leaf"].dropna()))}

    nb = clone(MIXED).fit(FRAME, Y)
    first, second = (posterior_predictive_check(nb, FRAME, Y, f, draws=40).table for f in (by_frequency, by_level))
    columns = ["statistic", "observed", "mean", "p"]
    pd.testing.assert_frame_equal(
        *(t[columns].sort_values("statistic", ignore_index=True) for t in (first, second)), check_dtype=False
    )


def test_what_it_refuses(nb):
    def check(*args, **keywords):
        return posterior_predictive_check(nb, *args, **{"draws": 3, **keywords})

    refused("90", check, FRAME, Y[:-1])
    refused("The label 'never'", check, FRAME, np.where(Y == "no", "never", Y))
    refused("statistic='chi2' is unknown", check, FRAME, Y, "chi2")
    refused("statistic=3 is unknown", check, FRAME, Y, 3)
    refused("no column 'size'", check, FRAME, Y, features=["size"])
    refused("a pair needs two columns", check, FRAME, Y, features=["leaf"])
    refused("not finite", check, FRAME, Y, lambda table, labels: np.nan)
    refused("return a number", check, FRAME, Y, lambda table, labels: "many", error=TypeError)
    refused("return a number", check, FRAME, Y, lambda table, labels: [[1.0, 2.0]], error=TypeError)
    sizes = iter([1, 2, 2, 2])
    refused("same numbers, under the same names", check, FRAME, Y, lambda table, labels: [0.0] * next(sizes))
    refused("5 columns would take 0.5 GB; the limit is 0.3 GB", check, FRAME, Y, draws=2**21)


def test_models_whose_rows_are_not_drawn():
    X, y = RNG.integers(0, 2, (40, 3)), RNG.integers(0, 2, 40)
    for model, reason in (
        (bnb.AODE(), "AODE averages"),
        (bnb.WeightedNB(bnb.CategoricalNB()), "Weighted terms are not a distribution from which rows can be drawn"),
        (bnb.TreeAveragedNB(), "average over trees cannot be simulated"),
    ):
        refused(reason, posterior_predictive_check, model.fit(X, y), X, y, error=NotImplementedError)


def test_levels_called_absent_and_present_are_levels():
    """Only Bernoulli columns are 0 and 1 in the table that a function gets."""
    seen = []

    def statistic(table, labels):
        seen.append(table)
        return float(len(labels))

    words, y = np.array([["absent"], ["present"]] * 6, dtype=object), np.repeat(["a", "b"], 6)
    bnb.posterior_predictive_check(bnb.CategoricalNB().fit(words, y), words, y, statistic, draws=2)
    assert list(seen[0].iloc[:, 0]) == words[:, 0].tolist()
    bnb.posterior_predictive_check(
        bnb.BernoulliNB().fit(words == "present", y), words == "present", y, statistic, draws=2
    )
    assert seen[-1].iloc[:, 0].isin([0, 1]).all()


# -- advice for counts -----------------------------------------------------------------------------


def advice(seed: int, shape: float | None, n: int = 40, n_columns: int = 4, draws: int = 200) -> str:
    """Note of a check of counts with mean rates that differ between two classes; `shape` None: Poisson counts."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    rate = rng.gamma(2.0, 2.0, (2, n_columns))[y]
    X = rng.poisson(rate if shape is None else rng.gamma(shape, rate / shape))
    return bnb.posterior_predictive_check(bnb.PoissonNB().fit(X, y), X, y, "frequency", draws, seed).note


def test_overdispersed_counts_are_named_with_the_model_to_try():
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    table = pd.DataFrame(
        {
            "poisson": rng.poisson(3.0 + y),
            "bursts": rng.poisson(rng.gamma(0.5, 6.0 + y)),
            "normal": rng.standard_t(1.5, 80),
            "regular": 3.0 + (np.arange(80) // 2) % 2,
        }
    )
    nb = bnb.MixedNB(poisson=["poisson", "bursts", "regular"], gaussian=["normal"]).fit(table, y)
    check = bnb.posterior_predictive_check(nb, table, y, "frequency")
    assert check.note.startswith("Counts of ['bursts'] vary more")
    assert "NegativeBinomialNB" in check.note
    assert repr(check).endswith(check.note)
    without = bnb.posterior_predictive_check(nb, table, y, "frequency", features=["poisson", "normal", "regular"])
    assert without.note == ""
    assert "NegativeBinomialNB" not in repr(without)
    assert bnb.posterior_predictive_check(nb, table, y, "association").note == ""


@pytest.mark.slow("600 checks")
def test_advice_is_frequent_for_overdispersed_counts_and_seldom_for_poisson_counts():
    assert sum(map(bool, (advice(seed, 1.5) for seed in range(100)))) >= 95
    for n, n_columns in ((40, 4), (20, 30)):
        found = sum(map(bool, (advice(seed, None, n, n_columns, 100) for seed in range(250))))
        assert stats.binomtest(found, 250, 0.05, alternative="greater").pvalue > 0.01
