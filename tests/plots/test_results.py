"""Figures of the results of analyses show the rows of their tables."""

import numpy as np
import pandas as pd
import pytest

from tests.raises import refused

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

import bayesnb as bnb
from bayesnb import plots
from tests.plots.figures import LONG, check, said, segments

pytestmark = pytest.mark.filterwarnings("ignore:Monte Carlo", "ignore:Gibbs", "ignore:sample_latent", "ignore:EM")

TREES = np.array(["ash", "elm", "oak"] * 12)
LEAVES = pd.DataFrame({"leaf": np.roll(TREES, 5), "bark": np.array(["rough", "smooth"])[np.arange(36) % 5 % 2]})


@pytest.fixture(scope="module")
def nb():
    return bnb.CategoricalNB().fit(LEAVES, TREES)


@pytest.mark.parametrize(("kind", "null"), [("difference", 0.0), ("ratio", 1.0), ("log_odds", 0.0)])
def test_contrasts_have_estimates_and_intervals(nb, kind, null):
    table = pd.concat([bnb.contrast(nb, feature, kind=kind) for feature in LEAVES])
    ax = check(plots.forest(table))
    rows = [text.get_text() for text in ax.get_yticklabels()]
    table.index = [f"{f} = {v} | {c}" for f, v, c in table[["feature", "level", "class"]].itertuples(index=False)]
    assert sorted(rows) == sorted(table.index)
    ordered = table.loc[rows]
    means = [line.get_xdata()[0] for line in ax.lines if line.get_markersize() == 4.5]
    ends = [line.get_xdata() for line in ax.lines if len(line.get_xdata()) == 2 and line.get_linestyle() == "-"]
    np.testing.assert_allclose(means, ordered["estimate"])
    np.testing.assert_allclose(ends, ordered[["lower", "upper"]])
    assert [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == "--"] == [null]
    assert ax.get_xscale() == ("log" if kind == "ratio" else "linear")
    assert ax.get_xlabel() == f"{kind.replace('_odds', ' odds ratio')}, against ash"
    assert "no difference" in said(ax)


def test_contrasts_of_pairs_features_and_levels(nb):
    tables = [bnb.contrast(nb, "leaf", classes=pair) for pair in (("oak", "ash"), ("oak", "elm"))]
    ax = check(plots.forest(pd.concat(tables), parameter="ash"))
    assert [text.get_text() for text in ax.get_yticklabels()] == ["leaf = ash | oak : ash", "leaf = ash | oak : elm"]
    both = pd.concat([bnb.contrast(nb, feature) for feature in LEAVES])
    assert all(text.get_text().startswith("bark") for text in plots.forest(both, ["bark"]).get_yticklabels())


def test_contrasts_that_are_none(nb):
    table = bnb.contrast(nb, "leaf")
    refused(r"Use contrast\(prob=\)", plots.forest, table, prob=0.5)
    refused("name no contrasts of", plots.forest, table, features=["bark"])
    refused("name no contrasts of", plots.forest, table, parameter="fir")
    mixed = pd.concat([table, bnb.contrast(nb, "leaf", kind="ratio")])
    refused("nb has contrasts of the kinds .* Pass those of one kind", plots.forest, mixed)
    said = "nb has no column 'against'.*pass what bayesnb.contrast returns"
    refused(said, plots.forest, LEAVES.rename(columns={"leaf": "class"}))


@pytest.fixture(scope="module")
def diagnosed():
    """Two tests in two populations (Hui & Walter 1980, table 1)."""
    pattern = {LONG: [1, 1, 0, 0] * 2, "Tine": [1, 0, 1, 0] * 2, "group": ["1"] * 4 + ["2"] * 4}
    count = [14, 4, 9, 528, 887, 31, 37, 367]
    return bnb.diagnostic_tests(pd.DataFrame(pattern), "group", sample_weight=count, draws=50, progress=False)


def test_diagnostic_tests_have_means_and_both_intervals(diagnosed):
    ax, table = check(plots.forest(diagnosed)), diagnosed.table
    labels = [tuple(text.get_text().split(" | ")) for text in ax.get_yticklabels()]
    short = dict(
        zip([LONG, "Tine", "1", "2"], [next(n for _, n in labels if n[:2] == LONG[:2]), "Tine", "1", "2"], strict=True)
    )
    by_row = table.assign(name=table["name"].map(short)).set_index(["quantity", "name"])
    assert set(labels) == set(by_row.index)
    table = by_row.loc[labels]
    prior = np.array(ax.collections[0].get_segments())[:, :, 0]
    np.testing.assert_allclose(prior, table[["prior_lower", "prior_upper"]])
    means = [line.get_xdata()[0] for line in ax.lines if line.get_markersize() == 4.5]
    ends = [line.get_xdata() for line in ax.lines if len(line.get_xdata()) == 2]
    np.testing.assert_allclose(means, table["mean"])
    np.testing.assert_allclose(ends, table[["lower", "upper"]])
    assert ax.get_ylabel() == "quantity | test or population"
    assert "90% interval" in said(ax)
    assert "prior only" not in said(ax)
    assert "interval of the prior" in said(ax)
    names = [text.get_text() for text in plots.forest(diagnosed, ["Tine"], parameter="sensitivity").get_yticklabels()]
    assert names == ["sensitivity | Tine"]


def test_what_the_prior_alone_identifies_is_said():
    table = pd.DataFrame({"A": [1, 1, 0, 0], "B": [1, 0, 1, 0]})
    diagnosed = bnb.diagnostic_tests(table, sample_weight=[30, 5, 5, 100], draws=50, progress=False)
    assert "Identified by the prior only: 5 of 5" in said(check(plots.forest(diagnosed)))


def test_profiles_have_the_rates_of_positive_results(diagnosed):
    ax = check(plots.latent_profiles(diagnosed))
    mean = diagnosed.table.set_index(["quantity", "name"])["mean"]
    healthy, diseased = (line.get_xdata() for line in ax.lines)
    np.testing.assert_allclose(healthy, 1 - mean["specificity"])
    np.testing.assert_allclose(diseased, mean["sensitivity"])
    sensitivity = diagnosed.table.query("quantity == 'sensitivity'")
    ends = np.array(ax.collections[1].get_segments())[:, :, 0]
    np.testing.assert_allclose(ends, sensitivity[["lower", "upper"]])
    assert f"diseased: prevalence {mean['prevalence', '1']:.1%} to {mean['prevalence', '2']:.1%}" in said(ax)


def test_bad_arguments_of_diagnostic_tests(diagnosed):
    refused("'PCR' is no test or population", plots.forest, diagnosed, ["PCR"])
    refused("parameter='theta' is unknown; use .*'prevalence'", plots.forest, diagnosed, parameter="theta")
    refused(r"Use diagnostic_tests\(prob=\)", plots.forest, diagnosed, prob=0.5)
    refused(r"Use diagnostic_tests\(prob=\)", plots.latent_profiles, diagnosed, prob=0.5)
    refused("Leave out data=", plots.latent_profiles, diagnosed, diagnosed.data)
    refused("have no sensitivity", plots.latent_profiles, diagnosed, features=["1"])
    refused("a result of diagnostic_tests", plots.latent_profiles, bnb.CategoricalNB(), error=TypeError)


def table_of(n: int) -> pd.DataFrame:
    """A table like that of `weight_table`, with terms in random order."""
    rng = np.random.default_rng(n)
    weight, sd = rng.normal(0.6, 0.4, n), rng.uniform(0.05, 0.4, n)
    columns = {"term": [f"{LONG} {t:03d}" for t in range(n)], "weight": weight, "lower": weight - 1.64 * sd}
    table = pd.DataFrame({**columns, "upper": weight + 1.64 * sd, "sd": sd, "cost": 0.5 * (weight / sd) ** 2})
    table.attrs = {"temperature": 0.6, "shrinkage": 0.3, "prob": 0.9}
    return table


def dots_of_weights(ax) -> pd.DataFrame:
    """Weights and heights of the dots_of_weights, from above, and whether they are hollow."""
    drawn = [line for line in ax.lines if line.get_marker() == "o"]
    parts = [
        pd.DataFrame({"weight": d.get_xdata(), "y": d.get_ydata(), "hollow": d.get_markerfacecolor() == "white"})
        for d in drawn
    ]
    return pd.concat(parts).sort_values("y", ignore_index=True)


@pytest.mark.parametrize("n", [1, 200])
def test_nothing_overlaps_of_weights(n):
    check(plots.weights(table_of(n)))


@pytest.mark.parametrize("n", [5, 200])
def test_the_dearest_terms_have_their_intervals_in_order_of_weight(n):
    table = table_of(n)
    ax = plots.weights(table)
    expected = table.nlargest(min(n, 40), "cost").sort_values("weight", ascending=False, ignore_index=True)
    found = dots_of_weights(ax)
    np.testing.assert_array_equal(found["weight"], expected["weight"])
    np.testing.assert_array_equal(found["hollow"], (expected["lower"] <= 0) & (expected["upper"] >= 0))
    np.testing.assert_array_equal(segments(ax)[:, :, 0], expected[["lower", "upper"]])
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert [name[-3:] for name in names] == [term[-3:] for term in expected["term"]]
    assert ("The 40 that cost most to leave out … and 160 more" in said(ax)) == (n == 200)
    upright = {line.get_xdata()[0] for line in ax.lines if line.get_marker() != "o"}
    assert upright == {0.0, 1.0, 0.6}
    assert "weight, 90% interval" in said(ax)
    assert "temperature 0.6" in said(ax)


def test_terms_by_name():
    table = table_of(30)
    names = [table["term"][7], table["term"][2]]
    ax = check(plots.weights(table, names=names))
    expected = table[table["term"].isin(names)].sort_values("weight", ascending=False)
    np.testing.assert_array_equal(dots_of_weights(ax)["weight"], expected["weight"])
    assert "temperature 0.6" in said(ax)
    assert dots_of_weights(plots.weights(table, names=names[0]))["weight"].tolist() == [table["weight"][7]]
    refused(r"names=\['nothing'\] must be terms of the table", plots.weights, table, names=["nothing"])
    refused(r"names=\[\] must be terms of the table", plots.weights, table, names=[])


def test_what_is_no_table_of_weights():
    refused("table has no column 'cost'", plots.weights, table_of(3).drop(columns="cost"))
    refused("table has no row; pass what bayesnb.weight_table returns", plots.weights, table_of(3)[:0])
    refused("table must be the result of bayesnb.weight_table", plots.weights, {"weight": 1.0}, error=TypeError)


def reasons(n: int, row: object = 0, seed: int = 0) -> pd.DataFrame:
    """A table like that of `explain`: the class term, then n features by decreasing size."""
    rng = np.random.default_rng(seed)
    size = np.sort(rng.exponential(size=n))[::-1] * rng.choice([-1, 1], n)
    return pd.DataFrame(
        {
            "row": [row] * (n + 1),
            "feature": ["(class)", *(f"{LONG} {j:03d}" for j in range(n))],
            "value": pd.Series([None, *rng.normal(size=n)], dtype=object),
            "of": "spam",
            "against": "ham",
            "contribution": [-1.8, *size],
            "sd": rng.uniform(0.05, 0.5, n + 1),
        }
    )


def bars(ax) -> np.ndarray:
    """(n, 2) where each begins and ends."""
    return np.array([[bar.get_x(), bar.get_x() + bar.get_width()] for bar in ax.patches])


def intervals(ax) -> np.ndarray:
    lines = segments(ax)
    return lines[lines[:, 0, 1] == lines[:, 1, 1]][:, :, 0]


@pytest.mark.parametrize("n", [1, 13, 14, 200])
def test_bars_lead_from_the_classes_to_the_log_odds(n):
    frame = reasons(n)
    ax = check(plots.explain(frame))
    drawn, total = bars(ax), frame["contribution"].sum()
    shown = n if n <= 13 else 12
    assert len(drawn) == 1 + shown + (n > 13) + 1
    steps = np.diff(drawn, axis=1)[:, 0]
    np.testing.assert_allclose(steps[: shown + 1], frame["contribution"][: shown + 1], rtol=1e-12)
    np.testing.assert_allclose(drawn[1:-1, 0], drawn[:-2, 1], rtol=1e-9)
    np.testing.assert_allclose([drawn[0, 0], *drawn[-1]], [0.0, 0.0, total], atol=1e-12)
    assert drawn[-2, 1] == pytest.approx(total)
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    assert names[0] == "classes"
    assert names[-1] == "log odds"
    assert (f"… and {n - 12} more" in names) == (n > 13)
    ends = intervals(ax)
    np.testing.assert_allclose(ends.mean(axis=1), drawn[:, 1], atol=1e-9)
    np.testing.assert_allclose(np.diff(ends)[: shown + 1, 0], 2 * 1.6449 * frame["sd"][: shown + 1], rtol=1e-9)
    assert np.diff(ends)[-1, 0] == pytest.approx(2 * 1.6449 * np.linalg.norm(frame["sd"]))
    assert "spam against ham" in said(ax)


def test_one_row_of_several_in_any_order_of_its_lines():
    frame = pd.concat([reasons(3, "a"), reasons(5, "b", 1)]).sample(frac=1.0, random_state=0)
    ax = check(plots.explain(frame, row="b"))
    np.testing.assert_allclose(np.diff(bars(ax))[:-1, 0], reasons(5, "b", 1)["contribution"], rtol=1e-9)
    assert "row b" in said(ax)
    refused("frame has 2 rows of X; choose one, such as row=", plots.explain, frame)
    refused("row='c' is not a row of X in frame", plots.explain, frame, row="c")
    refused(r"frame has 2 lines with the feature '\(class\)' for row 'a'", plots.explain, frame.assign(row="a"))


def test_what_is_no_waterfall_is_refused():
    refused("frame must be the result of bayesnb.explain", plots.explain, [1], error=TypeError)
    refused("frame has no column 'sd'", plots.explain, reasons(2).drop(columns="sd"))
    infinite = reasons(2)
    infinite.loc[1, "contribution"] = -np.inf
    refused(r"the contribution of .* is -inf", plots.explain, infinite)


RNG = np.random.default_rng(0)
Y = np.array([f"{LONG} {c}" for c in "ab"])[RNG.integers(0, 2, 60)]


def result(columns, statistic="association"):
    X = RNG.normal(size=(60, columns))
    X[:, 1] += 2 * X[:, 0]
    return bnb.posterior_predictive_check(bnb.GaussianNB().fit(X, Y), X, Y, statistic, draws=30)


@pytest.mark.parametrize("columns", [2, 9])
def test_nothing_overlaps_of_checks(columns):
    for statistic in ("association", "frequency", lambda table, labels: table.iloc[:, 0].max()):
        check(plots.predictive_check(result(columns, statistic)))


def test_lines_and_marks_are_those_of_the_table():
    found = result(5)
    ax = plots.predictive_check(found, top=6)
    drawn = [tuple(segment[:, 0]) for lines in ax.collections for segment in lines.get_segments()]
    table = found.table.iloc[:6]
    assert drawn == list(zip(table["lower"], table["upper"], strict=True))
    inside, outside = (line.get_xdata().tolist() for line in ax.get_lines())
    beyond = (table["observed"] > table["upper"]) | (table["observed"] < table["lower"])
    assert inside == table["observed"][~beyond].tolist()
    assert outside == table["observed"][beyond].tolist()
    assert ax.get_yticklabels()[0].get_text().startswith("0, 1 | ")
    assert "6 largest; 14 left out" in said(ax)
    assert f"p = {found.p:.3g}" in said(ax)


def test_checks_that_find_no_room_are_counted():
    ax = check(plots.predictive_check(result(9), ax=Figure(figsize=(6, 3), layout="constrained").subplots()))
    assert f"{len(ax.get_yticks())} largest" in said(ax)


def test_what_is_no_result_of_a_check():
    refused("posterior_predictive_check", plots.predictive_check, result(2).table, error=TypeError)
    refused("top", plots.predictive_check, result(2), 0)


def fitted(columns, levels=3, classes=2):
    rng = np.random.default_rng(columns)
    kind = rng.integers(0, classes, 80)
    cells = np.where(rng.random((80, columns)) < 0.7, kind[:, None] % levels, rng.integers(0, levels, (80, columns)))
    X = pd.DataFrame(cells, columns=[f"{LONG} {j}" for j in range(columns)]).map(lambda v: f"level {v}")
    mixture = bnb.NaiveBayesMixture(classes, estimator=bnb.CategoricalNB(), n_init=2).fit(X)
    return mixture, bnb.sample_latent(mixture, X, draws=50, warmup=50, chains=2, progress=False)


@pytest.fixture(scope="module")
def drawn():
    return fitted(3)


def test_nothing_overlaps_of_classes(drawn):
    check(plots.latent_profiles(*drawn))
    check(plots.latent_profiles(drawn[0]))


@pytest.mark.slow("more shapes", but=["12"])
@pytest.mark.parametrize(("columns", "classes"), [(1, 5), (12, 3)])
def test_nothing_overlaps_of_many(columns, classes):
    ax = check(plots.latent_profiles(*fitted(columns, classes=classes)))
    assert len(ax.get_yticks()) == min(30, 3 * columns)
    assert ("30 levels that differ most between classes; 6 left out" in said(ax)) == (columns == 12)


def test_marks_and_lines_are_means_and_quantiles_of_the_draws(drawn):
    mixture, data = drawn
    ax = plots.latent_profiles(mixture, data, prob=0.8)
    theta = data["posterior"]["theta"].values.reshape(100, 2, 9)
    for c, (line, interval) in enumerate(zip(ax.get_lines(), ax.collections, strict=True)):
        np.testing.assert_allclose(line.get_xdata(), theta[:, c].mean(axis=0))
        ends = np.array(interval.get_segments())[:, :, 0]
        np.testing.assert_allclose(ends, np.quantile(theta[:, c], [0.1, 0.9], axis=0).T)
    share = data["posterior"]["class_prob"].values.reshape(100, 2).mean(axis=0)
    assert f"class 1: {100 * share[1].round(3):.6g}%" in said(ax)
    assert ax.get_yticklabels()[1].get_text().endswith("0 = level 1")


def test_without_draws_the_marks_are_where_em_ended(drawn):
    mixture = drawn[0]
    ax = plots.latent_profiles(mixture)
    expected = np.exp(np.concatenate(mixture.estimator_.feature_log_prob_, axis=1))
    for c, line in enumerate(ax.get_lines()):
        np.testing.assert_allclose(line.get_xdata(), expected[c], rtol=1e-6)
    assert "At the end of EM" in said(ax)


def test_of_two_levels_the_second_and_columns_by_name():
    X = pd.DataFrame({"a": [0, 1] * 20, "b": [1, 0] * 20, "weight": np.arange(40.0)})
    mixed = bnb.MixedNB(bernoulli=["a", "b"], gaussian=["weight"])
    ax = plots.latent_profiles(bnb.NaiveBayesMixture(2, estimator=mixed, n_init=2).fit(X), features=["b"])
    assert [text.get_text() for text in ax.get_yticklabels()] == ["b = present"]
    ax = plots.latent_profiles(bnb.NaiveBayesMixture(2, estimator=mixed, n_init=2).fit(X))
    assert "Columns without levels, not drawn: 1" in said(ax)


def test_rows_that_find_no_room_are_counted():
    ax = Figure(figsize=(7, 4), layout="constrained").subplots()
    assert "left out" in said(check(plots.latent_profiles(*fitted(5), ax=ax)))


def test_what_is_no_mixture(drawn):
    mixture, data = drawn
    refused("NaiveBayesMixture", plots.latent_profiles, bnb.CategoricalNB(), error=TypeError)
    refused("sample_latent returns", plots.latent_profiles, mixture, {"posterior": {}})
    refused("for this mixture", plots.latent_profiles, fitted(2)[0], data)
    refused("prob", lambda: plots.latent_profiles(mixture, prob=1))
    refused("no column has levels", plots.latent_profiles, bnb.NaiveBayesMixture(1).fit([[0.5], [1.5], [2.5]]))
