"""Drift: sizes by enumeration and simulation, powers, laws of counting, and bad input."""

import itertools
import warnings

import jax
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import bayesnb as bnb
from bayesnb import sql
from bayesnb.analysis.drift import DriftStatistics, _chi2_moments, _normal_deviates, _ranks, compare_levels
from benchmarks import drift
from tests.persistence.models import FIXTURES
from tests.raises import refused

RARE = 1 / np.arange(1, 41) ** 1.5
RARE /= RARE.sum()
COLUMNS = {"colour": str, "doors": int, "length": float}


def cars(rng, n, make=("ash", "oak")):
    y = rng.choice(make, n)
    frame = pd.DataFrame(
        {
            "colour": rng.choice(np.array(["red", "blue", "green"], object), n),
            "doors": rng.integers(2, 5, n),
            "length": rng.normal(size=n) + (y == make[0]),
        }
    )
    frame.loc[rng.random(n) < 0.1, "colour"] = None
    frame.loc[rng.random(n) < 0.1, "length"] = np.nan
    return frame, y


def mixed(X, y):
    return bnb.MixedNB(numbers="gaussian", categorical=["colour", "doors"]).fit(X, y)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X, y = cars(rng, 400)
    return mixed(X, y), *cars(rng, 60)


def assert_same(ours, theirs, rtol=1e-9):
    pd.testing.assert_frame_equal(ours, theirs, rtol=rtol, atol=1e-12)


# -- one test at a time --------------------------------------------------------------------------------


def tables(m, both):
    """Every table of a batch of m rows and of the other rows, given the sums of both, and its probability."""
    both = np.array(both)
    for batch in itertools.product(*(range(t + 1) for t in both)):
        if sum(batch) == m:
            yield both - batch, np.array(batch), stats.multivariate_hypergeom.pmf(batch, both, m)


MARGINS = [(5, (3, 4, 8)), (3, (1, 1, 6, 2)), (6, (5, 9)), (2, (1, 2, 2)), (20, (30, 20, 10)), (30, (60, 30))]


@pytest.mark.parametrize(("m", "both"), MARGINS)
def test_moments_of_chi_squared_are_those_of_all_tables(m, both):
    chi2, p = [], []
    for train, batch, probability in tables(m, both):
        chi2.append(stats.chi2_contingency([train, batch], correction=False).statistic)
        p.append(probability)
    mean = np.dot(p, chi2)
    inverse = np.array([np.sum(1 / np.array(both))])
    found = _chi2_moments(np.array([sum(both) - m]), np.array([m]), np.array([len(both)]), inverse)
    np.testing.assert_allclose(found, [mean, np.dot(p, (np.array(chi2) - mean) ** 2)], rtol=1e-9)


@pytest.mark.parametrize(
    ("m", "both"), [*MARGINS, (15, (60, 20, 8, 3)), (10, (40, 1, 1, 8)), (25, (40, 20, 6, 3, 1)), (12, (300, 20, 3))]
)
def test_p_values_of_small_tables_are_valid_given_both_margins(m, both):
    names = list(map(str, range(len(both))))
    found = [(compare_levels(a[None] * 1.0, b[None] * 1.0, names, [""]).p, p) for a, b, p in tables(m, both)]
    p, probability = np.array(found).T
    for alpha in (0.01, 0.05, 0.2):
        assert probability[p <= alpha].sum() <= alpha


RARE_MARGINS = [(12, (3, 300, 3)), (30, (970, 10, 10, 10)), (40, (1, 2, 90, 2, 1)), (100, (990, 10)), (8, (5,) * 6)]


@pytest.mark.parametrize("power", [1, 2], ids=["location", "spread"])
@pytest.mark.parametrize(("m", "both"), [*MARGINS, *RARE_MARGINS, (25, (40, 20, 6, 3, 1))])
def test_rank_tests_of_small_tables_are_valid_given_both_margins(m, both, power):
    """Also far in the tails: with 20 columns, q ≤ .05 needs p ≤ .0025."""
    batch, probability = zip(*((b, p) for _, b, p in tables(m, both)), strict=True)
    all_rows = np.broadcast_to(np.array(both, float), (len(batch), len(both)))
    z = _normal_deviates(all_rows, np.array(batch, float), (_ranks(all_rows) - 0.5) ** power)
    p, probability = 2 * stats.norm.sf(np.nan_to_num(abs(z))), np.array(probability)
    for alpha in (0.001, 0.01, 0.05, 0.2):
        assert probability[p <= alpha].sum() <= alpha


def test_many_ranks_have_the_p_values_of_mann_and_whitney_and_of_mood():
    rng = np.random.default_rng(0)
    for shift, scale in ((0.15, 1.0), (-0.1, 1.15), (0.0, 0.9)):
        old, new = rng.normal(size=2000), shift + scale * rng.normal(size=800)
        counts = [np.isin(np.sort(np.concatenate([old, new])), x).astype(float) for x in (old, new)]
        both = counts[0] + counts[1]
        location, spread = (_normal_deviates(both, counts[1], (_ranks(both) - 0.5) ** power) for power in (1, 2))
        expected = stats.mannwhitneyu(new, old, method="asymptotic", use_continuity=False)
        assert abs(location) == pytest.approx(stats.norm.isf(expected.pvalue / 2), abs=0.02)
        assert spread == pytest.approx(stats.mood(new, old).statistic, abs=0.02)


def test_many_rows_have_the_p_value_of_pearson():
    train, batch = np.array([5000.0, 3000.0, 2000.0]), np.array([560.0, 270.0, 170.0])
    found = compare_levels(train[None], batch[None], ["a", "b", "c"], [""])
    expected = stats.chi2_contingency([train, batch], correction=False)
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-12)
    assert found.p == pytest.approx(2 * expected.pvalue, rel=0.02)  # Levels are also tested one by one.
    assert (found.effect, found.change) == (pytest.approx(0.06), "a 0.5 -> 0.56")


def test_a_new_level_has_the_probability_that_chance_puts_its_rows_into_the_batch():
    train, batch = np.append(np.full(50, 100.0), 0.0), np.append(np.full(50, 2.0), 4.0)
    found = compare_levels(train[None], batch[None], list(map(str, range(51))), [""])
    exact = stats.hypergeom.sf(3, 5104, 4, 104)
    assert found.change == "50 0 -> 0.0385"
    assert 4 * 51 * exact <= found.p <= 4 * 51 * exact * 1.1


# -- sizes and powers ----------------------------------------------------------------------------------


def rejected(p, alpha=0.05):
    """Fraction of p-values of at most alpha; the bound is alpha and two standard errors."""
    assert np.mean(p <= alpha) <= alpha + 2 * np.sqrt(alpha * (1 - alpha) / len(p))


def p_values(nb, X, y=None):
    return bnb.check_drift(nb, X, y)["p"].iloc[:-1].to_numpy()


DRAW = {
    "normal": lambda rng, n, k: rng.normal(size=(n, k)),
    "exponential": lambda rng, n, k: rng.exponential(size=(n, k)),
    "uniform": lambda rng, n, k: rng.random((n, k)),
    "zeros": lambda rng, n, k: drift.STATIONARY["97% zeros"](rng, (n, k)),
}


@pytest.mark.parametrize("labelled", [False, True], ids=["unlabelled", "labelled"])
@pytest.mark.parametrize("name", DRAW)
def test_stationary_numbers_are_seldom_significant(name, labelled):
    """Each column is a replicate; a normal density of exponential numbers is wrong, and does not matter."""
    rng = np.random.default_rng(2)  # Of the uniform numbers of the seed 1, Mann and Whitney's p is ≤ .05 in 8%.
    for n, sizes in ((2000, (30, 50, 1000)), (60, (30, 1000)), (300, (6000,))):
        nb = bnb.GaussianNB().fit(DRAW[name](rng, n, 400), rng.integers(0, 3, n))
        for m in sizes:
            y = rng.integers(0, 3, m) if labelled else None
            rejected(p_values(nb, DRAW[name](rng, m, 400), y))


@pytest.mark.parametrize("n_classes", [2, 20])
def test_stationary_levels_are_seldom_significant(n_classes):
    rng = np.random.default_rng(2)

    def draw(n):
        return rng.choice(40, (n, 200), p=RARE), rng.integers(0, n_classes, n)

    for n in (3000, 60):
        nb = bnb.CategoricalNB().fit(*draw(n))
        for m in (30, 50, 1000):
            X, y = draw(m)
            rejected(p_values(nb, X))
            rejected(p_values(nb, X, y))


@pytest.mark.parametrize("estimator", [bnb.PoissonNB, bnb.ExponentialNB, bnb.MultinomialNB])
def test_stationary_columns_without_variances_are_seldom_significant_if_overdispersed(estimator):
    rng = np.random.default_rng(3)

    def draw(n):
        mean = rng.exponential(size=(n, 800)) * np.where(np.arange(800) < 400, 3.0, 0.1)
        return mean if estimator is bnb.ExponentialNB else rng.poisson(mean)

    for n in (3000, 60):
        nb = estimator().fit(draw(n), rng.integers(0, 2, n))
        for m in (100, 1000):
            p = p_values(nb, draw(m))
            rejected(p[:400])
            rejected(p[400:])


@pytest.mark.slow("simulates 400 batches of 20 columns of each distribution")
@pytest.mark.parametrize(("n_rows", "batch"), [(60, 1000), (1000, 30)])
@pytest.mark.parametrize("name", drift.STATIONARY)
def test_stationary_batches_seldom_alarm_in_any_of_twenty_columns(name, n_rows, batch):
    found = drift.false_alarms(name, n_rows, batch)
    for level, bound, n in (("p ≤ 0.05", 0.05, 8000), ("p ≤ 0.001", 0.001, 8000), ("some q ≤ .05", 0.05, 400)):
        assert found[level] <= bound + 2 * np.sqrt(bound * (1 - bound) / n)


UNSEEN = ["sd 1 → .6", "two peaks", "stuck sensor", "10% stuck", "rounded", "10% positive → none", "constant 7 → 8"]


@pytest.mark.parametrize("name", UNSEEN)
def test_changes_that_leave_means_or_most_ranks_are_found_in_200_rows(name):
    """A mean and a variance do not show these, or rare numbers have most of the variance."""
    found = drift.power(name, 200, 20, n_rows=1000)
    assert found["check_drift"] >= max(found[test] for test in ("Fisher", "χ²", "Mann–Whitney")) - 0.1


@pytest.mark.slow("simulates 400 batches of each change")
@pytest.mark.parametrize("batch", [200, 1000])
@pytest.mark.parametrize("name", drift.CHANGED)
def test_power_is_near_that_of_the_best_test_of_scipy(name, batch):
    """The tests of a column divide the level of significance, which costs up to .25 of the power in 200 rows."""
    found = drift.power(name, batch, 100)
    best = max(found[test] for test in ("Fisher", "χ²", "Mann–Whitney"))
    assert round(100 * (best - found["check_drift"])) <= (25 if batch == 200 else 15)


@pytest.mark.parametrize("make", [bnb.BinnedNB, bnb.MixedNB, bnb.WeightedNB, bnb.GaussianNB, bnb.PoissonNB])
def test_a_number_that_is_no_longer_positive_is_found_by_every_classifier(make):
    """Capital gain is positive in a tenth of the rows: a tail that equal cells put together with 0."""
    rng = np.random.default_rng(0)
    gain = np.where(rng.random(2000) < 0.1, np.ceil(rng.lognormal(8, 1, 2000)), 0.0)
    X = pd.DataFrame({"gain": gain, "age": np.floor(rng.gamma(8, 5, 2000))})
    y = rng.random(2000) < 0.2 + 0.5 * (gain > 0)
    nb = make().fit(X, y)
    for n in (300, 1000):
        for labels in (None, y[:n]):
            found = bnb.check_drift(nb, X[:n].assign(gain=0.0), labels)
            assert found.loc["gain", "q"] < 1e-6
            assert found.loc["age", "q"] > 0.1
    assert "0 0.90" in found.loc["gain", "change"] or "(0, inf) 0." in found.loc["gain", "change"]


@pytest.mark.parametrize("first", ["other numbers", "zeros"])
def test_shifts_are_found_beyond_the_numbers_of_the_first_rows(first):
    """Prices, dates, and a sensor that reads 0 at first: cells of the first rows tell nothing of the later ones."""
    rng = np.random.default_rng(0)
    X, y = np.zeros((300, 1)) if first == "zeros" else rng.normal(20, 2, (300, 1)), rng.choice(["x", "y"], 3_000)
    nb = bnb.GaussianNB().partial_fit(X, y[:300], ["x", "y"]).partial_fit(rng.normal(40, 2, (3_000, 1)), y)
    nb.forget(X, y[:300])
    for labels in (None, y[:500]):
        same, moved = (bnb.check_drift(nb, rng.normal(mean, 2, (500, 1)), labels)["p"].iloc[0] for mean in (40, 42))
        assert same > 1e-3
        assert moved < 1e-9


@pytest.mark.parametrize("n", [16_000, 40_000])
def test_rows_that_are_forgotten_in_other_portions_leave_no_alarm(n):
    """Of more than 16,384 rows a sample is counted, which depends on the portions."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(20, 2, (n, 20)), rng.choice(["x", "y"], n)
    nb = bnb.GaussianNB().fit(X, y)
    for part in np.array_split(np.arange(n - 1_000), 3):
        nb.forget(X[part], y[part])
    assert bnb.check_drift(nb, rng.normal(20, 2, (1_000, 20)))["p"].min() > 1e-4
    assert bnb.check_drift(nb, rng.normal(21, 2, (1_000, 20)))["p"].iloc[:-1].max() < 1e-9


def test_a_column_that_is_empty_in_the_first_block_is_compared_by_cells():
    """Each later block of dask takes edges of its own, and those of more rows stay."""
    import dask

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"sensor": rng.normal(20, 2, 1500), "size": rng.gamma(2.0, size=1500)})
    X.loc[:299, "sensor"], y = np.nan, rng.choice(["x", "y"], 1500)
    blocks = [dask.delayed((X[i : i + 300], y[i : i + 300])) for i in range(0, 1500, 300)]
    with dask.config.set(scheduler="synchronous"):
        nb = bnb.distributed.fit(bnb.GaussianNB(), blocks)
    found = bnb.check_drift(nb, X[600:1200].assign(sensor=20.0))["p"]
    assert found["sensor"] < 1e-9
    assert found["size"] > 0.01


def test_effects_are_those_of_normal_numbers():
    """Shifts in standard deviations and logs of their ratios, whatever increasing function the numbers went through."""
    rng = np.random.default_rng(1)
    old, new = rng.normal(size=(20_000, 2)), rng.normal(size=(10_000, 2)) * [1.0, 1.2] + [0.3, 0.0]
    for change in (np.array, np.exp):
        found = bnb.check_drift(bnb.GaussianNB().fit(change(old), np.arange(20_000) % 2), change(new))
        np.testing.assert_allclose(found["effect"][:2], [0.3, np.log(1.2)], atol=0.03)
    median, quartiles = found["change"][:2]
    assert [float(x) for x in median.removeprefix("median ").split(" -> ")] == pytest.approx([1, np.exp(0.3)], rel=0.04)
    assert quartiles.startswith("quartiles 0.")


def test_numbers_outside_the_range_of_training_are_found():
    """Six of 300 rows are a sentinel: no test of ranks notices."""
    rng = np.random.default_rng(2)
    nb = bnb.GaussianNB().fit(rng.normal(size=(3000, 1)), rng.integers(0, 2, 3000))
    X = rng.normal(size=(300, 1))
    X[:6] = -999
    found = bnb.check_drift(nb, X).loc["0"]
    assert found["p"] < 1e-4
    assert found["change"].startswith("outside -3.")
    assert found["effect"] == pytest.approx(0.02, abs=0.005)


def test_moved_means_shares_and_spreads_are_found():
    """A mean by .2 sd in 1,000 rows, a share by .05 in 2,000 rows, a spread by a quarter in 1,000 rows."""
    rng = np.random.default_rng(4)
    numbers = bnb.GaussianNB().fit(rng.normal(size=(5000, 100)), rng.integers(0, 2, 5000))
    assert np.mean(p_values(numbers, rng.normal(size=(1000, 100)) + 0.2) <= 0.05) >= 0.9
    assert np.mean(p_values(numbers, rng.normal(size=(1000, 100)) * 1.25) <= 0.05) >= 0.9
    shares = np.array([0.2, 0.3, 0.5])
    levels = bnb.CategoricalNB().fit(rng.choice(3, (5000, 100), p=shares), rng.integers(0, 2, 5000))
    assert np.mean(p_values(levels, rng.choice(3, (2000, 100), p=[0.25, 0.3, 0.45])) <= 0.05) >= 0.9


def test_changed_shares_of_classes_are_separate_from_changes_within_classes():
    rng = np.random.default_rng(5)

    def draw(n, share):
        y = np.where(rng.random(n) < share, "ripe", "raw")
        return np.where(rng.random((n, 40)) < np.where(y == "ripe", 0.8, 0.2)[:, None], "red", "green"), y

    nb = bnb.CategoricalNB().fit(*draw(4000, 0.5))
    X, y = draw(1000, 0.7)
    merged, within = bnb.check_drift(nb, X), bnb.check_drift(nb, X, y)
    assert (merged["p"].iloc[:-1] < 1e-4).all()
    rejected(within["p"].iloc[:-1])
    assert within.loc["labels", "p"] < 1e-9
    assert within.loc["labels", "effect"] == pytest.approx(
        np.mean(y == "raw") - np.mean(nb.classes_ == "raw"), abs=0.05
    )


def test_reference_rows_show_changed_dependence_and_changed_predictions():
    rng = np.random.default_rng(6)

    def draw(n, *, copied=True, red=0.5):
        x = rng.random((n, 2)) < red
        x[:, 1] = np.where((rng.random(n) < 0.9) & copied, x[:, 0], x[:, 1])
        return np.where(x, "red", "green")

    X = draw(2000)
    nb = bnb.CategoricalNB().fit(X, np.where(rng.random(2000) < 0.9, X[:, 0], "green"))
    same = bnb.check_drift(nb, draw(300), reference=draw(2000))
    broken = bnb.check_drift(nb, draw(300, copied=False), reference=draw(2000))
    moved = bnb.check_drift(nb, draw(300, red=0.7), reference=draw(2000))
    assert list(same.index) == ["0", "1", "labels", "joint"]
    assert (same["p"] > 0.01).all()
    assert broken.loc["joint", "p"] < 1e-4 < 0.01 < broken["p"].iloc[:2].min()
    assert moved.loc["labels", "p"] < 1e-4


@pytest.mark.slow("simulates many data sets or draws")
def test_stationary_rows_beside_reference_rows_are_seldom_significant():
    rng, p = np.random.default_rng(7), []
    X, y = cars(rng, 1000)
    nb = mixed(X, y)
    for _ in range(80):
        found = bnb.check_drift(nb, cars(rng, 50)[0], reference=cars(rng, 400)[0])["p"]
        p.append(found[["labels", "joint"]])
    for column in np.array(p, float).T:
        rejected(column)


# -- laws of counting ----------------------------------------------------------------------------------


@given(cuts=st.lists(st.integers(1, 59), max_size=3), seed=st.integers(0, 9), labelled=st.booleans())
def test_merged_batches_are_the_whole_and_order_does_not_matter(rows, cuts, seed, labelled):
    nb, X, y = rows
    order, ends = np.random.default_rng(seed).permutation(60), [0, *sorted(set(cuts)), 60]
    merged = None
    for start, stop in itertools.pairwise(ends):
        part = order[start:stop]
        counted = DriftStatistics.from_rows(nb, X.iloc[part], y[part] if labelled else None)
        merged = counted if merged is None else merged.merge(counted)
    assert_same(merged.compare(nb), bnb.check_drift(nb, X, y if labelled else None))


def test_names_of_levels_do_not_matter(rows):
    _, X, y = rows
    rng = np.random.default_rng(8)
    train, label = cars(rng, 300)
    names = {"red": "zinc", "blue": "amber", "green": "mint"}
    found = bnb.check_drift(mixed(train, label), X, y)
    renamed = bnb.check_drift(mixed(train.replace({"colour": names}), label), X.replace({"colour": names}), y)
    numbers = ["statistic", "effect", "p", "q"]
    assert_same(renamed[numbers].abs(), found[numbers].abs())


@pytest.mark.parametrize("target", [None, "make"])
def test_counts_of_a_database_are_those_of_its_rows(rows, ask, target):
    """Databases have no cells of numbers, whose means are compared, as if the model had no cells."""
    nb, X, y = rows
    without_cells = nb.with_counts(nb.fitted_.counted._replace(cells=None))
    frame = X.assign(make=y)
    counts = pd.DataFrame(ask(frame, sql.counts("cars", target, dict(reversed(COLUMNS.items())))))
    counts = counts.set_axis(["class", "feature", "type", "level", "count", "mean", "m2"], axis=1)
    found = bnb.check_drift(nb, counts)
    assert_same(found, bnb.check_drift(without_cells, X, y if target else None))
    expected = bnb.check_drift(nb, X, y if target else None).drop(index="length")
    assert_same(found.drop(index="length").iloc[:, :4], expected.iloc[:, :4])
    assert "mean" in found.loc["length", "change"] or "missing" in found.loc["length", "change"]
    refused("check_drift of counts", bnb.check_drift, bnb.TAN().fit(X, y), counts, error=NotImplementedError)
    refused(r"yet now missing:\s*- doors", bnb.check_drift, nb, counts[counts["feature"] != "doors"])
    refused("neither y nor reference", bnb.check_drift, nb, counts, y)


@pytest.mark.parametrize("labelled", [False, True])
def test_columns_of_structures_are_compared_without_their_parents(labelled):
    rng = np.random.default_rng(9)

    def draw(n):
        X = rng.choice(np.array(["a", "b", "c"], object), (n, 4))
        X[:, 1] = np.where(rng.random(n) < 0.7, X[:, 0], X[:, 1])
        return pd.DataFrame(X, columns=list("pqrs")), np.where(rng.random(n) < 0.7, X[:, 0], "c")

    (X, y), (new, label) = draw(500), draw(80)
    new.loc[:9, "r"], new.loc[3:5, "s"] = "new", None
    label = label if labelled else None
    expected = bnb.check_drift(bnb.CategoricalNB().fit(X, y), new, label)
    network = bnb.NetworkNB(parents={"q": ["p"], "r": ["q"]})
    for nb in (bnb.SPODE("s"), bnb.TreeAveragedNB(), network, bnb.WeightedNB()):
        if isinstance(nb, bnb.SPODE):  # Cells whose parent is missing are not counted: only the parent is the same.
            found = bnb.check_drift(nb.fit(X, y), new, label)
            assert_same(found.loc[["s", "labels"], ["p"]], expected.loc[["s", "labels"], ["p"]])
        else:
            found = bnb.check_drift(nb.fit(X, y), new, label)
            assert_same(found.iloc[:, :4], expected.iloc[:, :4])


def test_sparse_rows_are_those_of_dense_ones():
    rng = np.random.default_rng(10)
    X, new, y = rng.poisson(0.4, (100, 6)), rng.poisson(0.6, (40, 6)), rng.integers(0, 2, 100)
    for nb in (bnb.MultinomialNB(), bnb.BernoulliNB()):
        nb.fit(X, y)
        assert_same(bnb.check_drift(nb, sp.csr_array(new), y[:40]), bnb.check_drift(nb, new, y[:40]))


def test_arrow_tables_are_those_of_pandas():
    pa = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"length": rng.normal(size=60), "colour": rng.choice(["red", "green"], 60)})
    nb = bnb.MixedNB(numbers="gaussian").fit(rows, rng.choice(["ripe", "raw"], 60))
    found = bnb.check_drift(nb, rows[:30])
    for table in (pa.Table.from_pandas(rows[:30]), pa.RecordBatch.from_pandas(rows[:30])):
        pd.testing.assert_frame_equal(bnb.check_drift(nb, table), found)


def test_new_rows_may_be_sparse_beside_dense_reference_rows():
    rng = np.random.default_rng(12)
    X, y = rng.poisson(0.5, (200, 4)), rng.integers(0, 2, 200)
    nb = bnb.MultinomialNB().fit(X, y)
    expected = bnb.check_drift(nb, X[:50], reference=X)
    assert_same(bnb.check_drift(nb, sp.csr_array(X[:50]), reference=X), expected)
    assert_same(bnb.check_drift(nb, X[:50], reference=sp.csr_array(X)), expected)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_rows_without_probabilities_leave_the_row_of_labels_empty():
    X = pd.DataFrame({"a": ["p", "p", "q", "q"] * 5, "b": ["u", "u", "v", "v"] * 5})
    nb = bnb.CategoricalNB(estimate="mle").fit(X, [0, 0, 1, 1] * 5)
    impossible = pd.DataFrame({"a": ["p"] * 8, "b": ["v"] * 8})
    with pytest.warns(UserWarning, match="8 of 8 rows have no class probabilities"):
        assert np.isnan(bnb.check_drift(nb, impossible, reference=X).loc["labels", "p"])


def test_the_classes_of_a_mixture_are_merged():
    rng = np.random.default_rng(11)
    X, new = rng.normal(size=(200, 2)), rng.normal(size=(50, 2)) + 1.0
    mixture = bnb.NaiveBayesMixture(2, estimator=bnb.GaussianNB()).fit(X)
    found, expected = bnb.check_drift(mixture, new), bnb.check_drift(bnb.GaussianNB().fit(X, [0] * 199 + [1]), new)
    assert_same(found.iloc[:, :4], expected.iloc[:, :4], rtol=1e-6)
    refused("y was passed", bnb.check_drift, mixture, new, [0] * 50)


# -- what is new, and what cannot be used --------------------------------------------------------------


def test_new_levels_missing_cells_and_new_classes_are_found_without_a_warning(rows):
    nb, X, y = rows
    before = [np.array(leaf) for leaf in jax.tree.leaves(nb.statistics_)]
    X = X.assign(colour=X["colour"].where(np.arange(60) >= 6, "pink"), length=X["length"].where(np.arange(60) % 2 == 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = bnb.check_drift(nb, X, np.where(np.arange(60) < 9, "elm", y))
        merged = bnb.check_drift(nb, X, reference=X[6:])
    assert merged.loc["colour", "change"].startswith("'pink' 0 -> ")
    assert merged.loc["length", "change"].startswith("missing 0.")
    assert found.loc["labels", "change"] == "'elm' 0 -> 0.15"
    assert (merged["p"].loc[["colour", "length"]] < 1e-3).all()
    assert found.loc["labels", "p"] < 1e-4
    for leaf, known in zip(jax.tree.leaves(nb.statistics_), before, strict=True):
        np.testing.assert_array_equal(leaf, known)


def test_constant_columns_and_classes_without_rows():
    X = np.column_stack([np.full(60, 3.0), np.arange(60.0)])
    nb = bnb.GaussianNB().fit(X, np.arange(60) % 2)
    same = bnb.check_drift(nb, X[:30])
    assert same.loc["0", "p"] == 1
    changed = X[:30].copy()
    changed[:, 0] = 4.0
    assert bnb.check_drift(nb, changed).loc["0", "p"] < 1e-6
    for number in (np.nextafter(3.0, 4), np.nextafter(3.0, 2), -3.0):
        changed[:10, 0] = number
        assert bnb.check_drift(nb, changed).loc["0", "p"] < 1e-3
    for value in (7.0, 0.0, 1e300):
        constant = bnb.BinnedNB().fit(np.full((60, 1), value), np.arange(60) % 2)
        assert bnb.check_drift(constant, np.full((30, 1), value)).loc["0", "p"] == 1
        assert bnb.check_drift(constant, np.full((30, 1), value + value + 1)).loc["0", "p"] < 1e-6
    unknown = bnb.check_drift(nb, X[:30], ["new"] * 30)
    assert unknown["p"].iloc[:-1].isna().all()
    assert unknown.loc["labels", "p"] < 1e-6


def test_q_values_are_those_of_benjamini_and_hochberg(rows):
    nb, X, y = rows
    found = bnb.check_drift(nb, X, y)
    np.testing.assert_allclose(found["q"], stats.false_discovery_control(found["p"]))
    assert np.isnan(bnb.check_drift(nb, X).loc["labels", "q"])


def test_declared_levels_do_not_grow():
    nb = bnb.CategoricalNB(categories=[["a", "b"]], handle_unknown="error").fit([["a"], ["b"]] * 30, [0, 1] * 30)
    found = bnb.check_drift(nb, [["a"], ["b"], ["c"]] * 10)
    assert found.loc["0", "change"] == "missing 0 -> 0.333"


def counts_of_length(X):
    frame = X["length"].dropna()
    moments = [len(frame), frame.mean(), frame.var(ddof=0) * len(frame)]
    rows = [(None, None, None, None, len(X), None, None), (None, "length", "float", None, *moments)]
    return pd.DataFrame(rows, columns=["class", "feature", "type", "level", "count", "mean", "m2"])


BAD = {
    "unfitted": (lambda nb, X, y: bnb.check_drift(bnb.GaussianNB(), X), "not fitted"),
    "no rows": (lambda nb, X, y: bnb.check_drift(nb, X[:0]), r"0 sample\(s\)"),
    "column missing": (lambda nb, X, y: bnb.check_drift(nb, X.drop(columns="doors")), r"missing:\s*- doors"),
    "column unknown": (lambda nb, X, y: bnb.check_drift(nb, X.assign(wheels=4)), r"unseen at fit time:\s*- wheels"),
    "text": (lambda nb, X, y: bnb.check_drift(nb, X.assign(length="long")), r"column 'length'.*'long' at row 0"),
    "infinite": (lambda nb, X, y: bnb.check_drift(nb, X.assign(length=np.inf)), "column 'length'"),
    "few labels": (lambda nb, X, y: bnb.check_drift(nb, X, y[:7]), "60 rows, y has 7 labels"),
    "missing label": (lambda nb, X, y: bnb.check_drift(nb, X, [None, *y[1:]]), "label of row 0 is missing"),
    "counts without classes": (
        lambda nb, X, y: DriftStatistics.from_counts(nb, pd.DataFrame({"count": [1]})),
        "one column 'class'",
    ),
    "counts without names": (
        lambda nb, X, y: bnb.check_drift(
            bnb.GaussianNB().fit(X[["length"]].fillna(0.0).to_numpy(), y), counts_of_length(X)
        ),
        "fitted to columns without names",
    ),
    "another classifier": (
        lambda nb, X, y: DriftStatistics.from_rows(nb, X).compare(bnb.GaussianNB().fit(X[["length"]], y)),
        r"length \(gaussian\).* as \['length \(gaussian\)'\]",
    ),
    "batches of two classifiers": (
        lambda nb, X, y: DriftStatistics.from_rows(nb, X).merge(
            DriftStatistics.from_rows(bnb.CategoricalNB().fit(X, y), X)
        ),
        "length \\(categorical\\)",
    ),
    "cells of another fit": (
        lambda nb, X, y: DriftStatistics.from_rows(nb, X).compare(mixed(X, y)),
        "cells of numbers that are not those of the others",
    ),
    "labels of one batch": (
        lambda nb, X, y: DriftStatistics.from_rows(nb, X).merge(DriftStatistics.from_rows(nb, X, y)),
        "One batch has labels",
    ),
}


@pytest.mark.parametrize(("call", "text"), BAD.values(), ids=BAD)
def test_what_cannot_be_compared_is_refused(rows, call, text):
    refused(text, call, *rows)


# -- models without cells of numbers -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["model-1-Gaussian", "model-1-Poisson", "model-2-exponential", "model-2-mixed"])
def test_older_files_are_compared_by_moments(name):
    nb = bnb.load(FIXTURES / f"{name}.safetensors")
    columns = nb.encoding_.feature_names
    X = pd.DataFrame(np.full((30, len(columns)), 9.0), columns=columns)
    X = X if hasattr(nb, "feature_names_in_") else X.to_numpy()
    for labels in (None, np.resize(nb.classes_, 30)):
        found = bnb.check_drift(nb, X, labels)
        assert found["change"].str.contains("mean").any()
        assert (found["p"].iloc[:-1] < 0.01).any()


def test_after_em_only_rows_without_labels_are_compared_by_cells():
    rng = np.random.default_rng(13)
    X, y = rng.normal(size=(400, 2)), rng.integers(0, 2, 400)
    nb = bnb.fit_em(bnb.GaussianNB(), X[:100], y[:100], X[100:]).estimator
    np.testing.assert_array_equal(nb.fitted_.cells.count.sum(axis=(0, 2)), 400)
    stuck = np.column_stack([np.full(60, 0.5), rng.normal(size=60)])
    found = bnb.check_drift(nb, stuck)
    assert found.loc["0", "p"] < 1e-9
    assert "mean" in bnb.check_drift(nb, stuck, y[:60]).loc["0", "change"]
    labelled = bnb.fit_em(bnb.GaussianNB(), X, y).estimator
    assert_same(bnb.check_drift(labelled, stuck, y[:60]), bnb.check_drift(bnb.GaussianNB().fit(X, y), stuck, y[:60]))
