"""Figures show the values of their tables, and no label overlaps or leaves the canvas."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import beta, norm

from tests.raises import refused

pytest.importorskip("matplotlib")
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import bayesnb
from bayesnb import CategoricalNB, GaussianNB, parameter_table, plots
from bayesnb._util.terminal import count_columns
from bayesnb.plots.style import labels
from tests.plots.figures import LONG, check, dots, said, segments, shown_texts
from tests.strategies import variants


@pytest.fixture(scope="module", params=[2, 20, 200])
def gaussian(request):
    """Two classes of 30 rows in features of very different units, with long names."""
    rng = np.random.default_rng(request.param)
    y = np.repeat(["healthy", "ill"], 30)
    X = rng.normal(size=(60, request.param)) * np.exp(3 * rng.normal(size=request.param))
    return GaussianNB().fit(pd.DataFrame(X, columns=[f"{LONG} {j:03d}, log" for j in range(request.param)]), y)


@pytest.fixture(scope="module")
def melons():
    return CategoricalNB().fit(
        [["green", "curled"], ["black", "curled"], ["green", "stiff"], ["white", "slack"]], ["yes", "yes", "no", "no"]
    )


def rows(values) -> np.ndarray:
    """Points in sorted order, so that sets of points can be compared."""
    values = np.asarray(values, float).reshape(len(values), -1)
    return values[np.lexsort(values.round(9).T)]


def standardised(nb, parameter: str, frame: pd.DataFrame) -> pd.DataFrame:
    """The parameter table, in units computed from the rows."""
    table = parameter_table(nb).query("level == @parameter")
    centre = table["feature"].map(frame.mean() if parameter == "mu" else dict.fromkeys(frame, 0.0))
    unit = table["feature"].map({"mu": frame.std(ddof=0), "sigma2": frame.var(ddof=0), "rate": frame.mean()}[parameter])
    columns = ["mle", "mean", "lower", "upper"]
    return pd.concat([table.drop(columns=columns), table[columns].sub(centre, axis=0).div(unit, axis=0)], axis=1)


def pairs_table(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = [(f"{LONG} {a:03d}", f"{LONG} {b:03d}", 60) for a, b in combinations(range(n), 2)]
    table = pd.DataFrame(rows, columns=["feature_1", "feature_2", "rows"])
    return table.assign(log_bayes_factor=10 * rng.standard_t(2, len(rows)), mutual_information=0.1, p_value=0.5)


class TestNothingOverlaps:
    @pytest.mark.slow("other variants compile kernels of their own", but="first")
    def test_parameters(self, gaussian):
        check(plots.shrinkage(gaussian))
        check(plots.forest(gaussian))

    @pytest.mark.slow("other variants compile kernels of their own", but="first")
    def test_forest_in_low_axes_shows_fewer_rows(self, gaussian):
        figure = Figure(figsize=(6, 2.6), layout="constrained")
        ax = figure.add_subplot()
        assert plots.forest(gaussian, ax=ax) is ax
        check(ax)

    @variants("n", [2, 3, 20, 200])
    def test_independence(self, n):
        ax = check(plots.independence(pairs_table(n)))
        assert ("strongest" in said(ax)) == (n > 20)

    @variants("n", [2, 20, 200])
    def test_rows(self, n, monkeypatch):
        nb, X, y = stub_rows(n, 3, monkeypatch)
        check(plots.prediction_intervals(nb, X, y))

    @pytest.mark.slow("compiles kernels of its own")
    def test_a_hundred_classes(self):
        rng = np.random.default_rng(0)
        nb = CategoricalNB().fit(rng.integers(0, 5, (300, 3)), [f"{LONG} {i % 100}" for i in range(300)])
        # More classes than there are colours: no list of some of them, in colours that others have too.
        assert "100 classes, all in one colour" in said(check(plots.shrinkage(nb)))
        check(plots.forest(nb))

    @pytest.mark.slow("compiles kernels of its own")
    def test_in_a_grid_of_axes(self, melons):
        axes = Figure(figsize=(11, 9), layout="constrained").subplots(2, 2)
        for draw, ax in zip((plots.shrinkage, plots.forest), axes[0], strict=True):
            assert draw(melons, ax=ax) is ax
        table = reliability_table()
        assert plots.reliability(table, ax=axes[1, 0]) is axes[1, 0]
        assert plots.independence(pairs_table(9), ax=axes[1, 1]) is axes[1, 1]
        check(axes[0, 0])


class TestAxes:
    def test_no_figure_of_pyplot_for_axes_of_ones_own(self, melons):
        ax = Figure(layout="constrained").add_subplot()
        values = np.linspace(0, 1, 50)
        assert plots.prior_predictive(values, ax=ax) is ax
        assert plots.forest(melons, ax=Figure().add_subplot()).get_legend() is not None
        assert not plt.get_fignums()


class TestShrinkage:
    def test_positions_are_those_of_the_table(self, melons):
        ax = check(plots.shrinkage(melons, prob=0.8))
        table = parameter_table(melons, 0.8).iloc[2:]
        np.testing.assert_allclose(rows(dots(ax)), rows(table[["mle", "mean"]]))
        ends = segments(ax)
        np.testing.assert_allclose(rows(ends[:, :, 1]), rows(table[["lower", "upper"]]))
        assert "80% intervals" in said(ax)

    def test_means_in_standard_deviations_of_the_feature(self):
        rng = np.random.default_rng(1)
        frame = pd.DataFrame(rng.normal([0, 500], [1e-3, 90], (40, 2)), columns=["small", "large"])
        nb = GaussianNB().fit(frame, rng.integers(0, 2, 40))
        for parameter in ("mu", "sigma2"):
            ax = check(plots.shrinkage(nb, parameter=parameter))
            expected = standardised(nb, parameter, frame)
            np.testing.assert_allclose(rows(dots(ax)), rows(expected[["mle", "mean"]]), rtol=1e-9, atol=1e-9)
        assert "Not in this figure: 4 mu" in said(ax)

    def test_parameters_without_an_estimate_are_counted(self):
        nb = CategoricalNB().partial_fit([["a", "u"], ["b", "v"], ["c", "w"]], [0, 0, 0], classes=[0, 1])
        ax = check(plots.shrinkage(nb))
        assert len(dots(ax)) == 6
        assert "6 have no maximum likelihood estimate" in said(ax)


class TestForest:
    def test_features_of_the_widest_first_each_with_its_levels_and_classes(self, melons):
        ax = check(plots.forest(melons))
        table = parameter_table(melons).iloc[2:]
        lines = [line.get_xdata() for line in ax.lines]
        ends, means, mles = np.array(lines[::3]), np.array(lines[1::3])[:, 0], np.array(lines[2::3])[:, 0]
        width = (table["upper"] - table["lower"]).groupby(table["feature"]).transform("max")
        parts = [own for _, own in table.assign(width=-width).groupby(["width", "feature"])]
        level = [{value: i for i, value in enumerate(own["level"].unique())} for own in parts]
        expected = pd.concat(
            own.assign(place=own["level"].map(of), of=own["class"].map(list(melons.classes_).index)).sort_values(
                ["place", "of"]
            )
            for own, of in zip(parts, level, strict=True)
        )
        np.testing.assert_allclose(ends, expected[["lower", "upper"]])
        np.testing.assert_allclose(means, expected["mean"])
        np.testing.assert_allclose(mles, expected["mle"])
        names = [tick.get_text() for tick in ax.get_yticklabels()]
        parts = expected.assign(feature="x" + expected["feature"].astype(str))[["feature", "level", "class"]]
        assert [n.replace(" = ", "|").replace(" | ", "|") for n in names] == [
            "|".join(map(str, row)).removeprefix("x") for row in parts.to_numpy()
        ]

    @pytest.mark.slow("other variants compile kernels of their own", but="first")
    def test_says_how_many_are_left_out(self, gaussian):
        n = 2 * gaussian.n_features_in_
        ax = plots.forest(gaussian)
        assert len(ax.get_yticks()) == min(n, 30)
        assert (f"30 of {n} intervals, widest features first; {n - 30} left out" in said(ax)) == (n > 30)


class Stub:
    """A classifier of rows whose probabilities are those in X."""

    def __init__(self, n_classes):
        self.classes_ = np.array([f"class {i}" for i in range(n_classes)])

    def predict_proba(self, X, estimate):
        assert estimate == "predictive"
        return X


def stub_rows(n, n_classes, monkeypatch):
    rng = np.random.default_rng(n)
    proba = rng.dirichlet(np.ones(n_classes), n)

    def predict_interval(nb, X, prob, rows, groups):
        return X * (1 - prob / 2), X + prob / 2 * (1 - X)

    monkeypatch.setattr(bayesnb.uncertainty, "predict_interval", predict_interval)
    nb = Stub(n_classes)
    return nb, proba, rng.choice(nb.classes_, n)


def band(ax):
    """Lower and upper ends of each row of the band, from its outline."""
    (collection,) = [c for c in ax.collections if type(c).__name__ == "FillBetweenPolyCollection"]
    return collection.get_paths()[0].vertices


class TestPredictionIntervals:
    @pytest.mark.parametrize("label", [None, "class 0"])
    def test_ordered_with_the_ends_of_the_intervals(self, label, monkeypatch):
        nb, X, y = stub_rows(40, 2, monkeypatch)
        ax = check(plots.prediction_intervals(nb, X, y, label=label, prob=0.5))
        p = X[:, 1 if label is None else 0]
        np.testing.assert_allclose(ax.lines[0].get_ydata(), np.sort(p))
        outline = band(ax)
        for i, value in enumerate(np.sort(p)):
            distance = np.abs(outline[:, 0] - i)
            ends = outline[distance < 1e-8 if i in (0, 39) else distance == 0.5, 1]
            assert np.isclose(ends, 0.75 * value).any()
            assert np.isclose(ends, value + 0.25 * (1 - value)).any()
        wrong = nb.classes_[X.argmax(axis=1)] != y
        np.testing.assert_allclose(np.sort(dots(ax)[:, 1]), np.sort(p[wrong]))
        assert f"predicted label wrong: {wrong.sum()} of 40" in said(ax)
        assert "50% interval" in said(ax)

    def test_undefined_rows_are_counted(self, monkeypatch):
        nb, X, y = stub_rows(9, 2, monkeypatch)
        X[3] = np.nan
        ax = check(plots.prediction_intervals(nb, X, y))
        assert len(ax.lines[0].get_ydata()) == 8
        assert "1 rows have no probabilities" in said(ax)

    def test_rows_beyond_the_axis_are_drawn_at_its_end_and_counted(self, monkeypatch):
        nb, _, _ = stub_rows(4, 2, monkeypatch)
        p = np.array([0.0, 1e-30, 0.3, 1.0])
        ax = check(plots.prediction_intervals(nb, np.stack([1 - p, p], axis=1), ["class 1"] * 4))
        low, high = ax.get_ylim()
        drawn = ax.lines[0].get_ydata()
        assert (drawn > low).all()
        assert (drawn < high).all()
        assert "3 rows lie beyond the axis" in said(ax)
        assert (dots(ax)[:, 1] > low).all()


class TestPriorPredictive:
    @pytest.mark.parametrize("nines", [0, 9])
    def test_where_nearly_all_is_next_to_one_the_bins_tell_it_apart(self, nines):
        p = expit(np.random.default_rng(nines).normal(np.log(10) * nines, 1.5, 5_000))
        ax = check(plots.prior_predictive(p))
        share, edges, _ = ax.patches[0].get_data()
        assert share.sum() == pytest.approx(1)
        assert share.max() < 0.3
        assert (share > 0).sum() > 10
        # Half of the draws lie left of the middle of all.
        assert np.interp(np.median(p), edges, np.append(0, share.cumsum())) == pytest.approx(0.5, abs=0.05)
        assert f"{np.mean(p > 0.99):.1%} above .99".replace(".0%", "%") in said(ax)

    def test_shares_are_those_of_the_distribution(self):
        n = 20_000
        draws = beta(0.5, 2).rvs(n, random_state=0)
        ax = check(plots.prior_predictive(draws))
        share, edges, _ = ax.patches[0].get_data()
        expected = np.diff(beta(0.5, 2).cdf(edges))
        assert share.sum() == pytest.approx(1)
        assert np.all(np.abs(share - expected) < 5 * np.sqrt(expected * (1 - expected) / n) + 1e-12)

    @pytest.mark.parametrize("values", [[1.5], [-0.1, 0.5], [np.nan], [], {"a": [0.1], "b": [7.0]}, {}])
    def test_bad_values(self, values):
        refused("values", plots.prior_predictive, values)


def reliability_table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "lower": [0.0, 0.25, 0.5, 0.75],
            "upper": [0.25, 0.5, 0.75, 1.0],
            "count": [0, 4, 10, 200],
            "confidence": [np.nan, 0.4, 0.62, 0.97],
            "accuracy": [np.nan, 0.0, 0.7, 0.9],
        }
    )


class TestReliability:
    def test_dots_and_intervals(self):
        table = reliability_table().iloc[1:]
        ax = check(plots.reliability(reliability_table()))
        np.testing.assert_allclose(dots(ax), table[["confidence", "accuracy"]])
        # Wilson's interval from its formula.
        n, p, z = table["count"].to_numpy(), table["accuracy"].to_numpy(), norm.ppf(0.975)
        centre, half = p + z**2 / (2 * n), z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
        expected = np.stack([centre - half, centre + half], axis=1) / (1 + z**2 / n)[:, None]
        np.testing.assert_allclose(segments(ax)[:, :, 1], expected, atol=1e-12)
        assert said(ax).startswith("214 rows")

    @pytest.mark.parametrize(("counts", "line"), [([40, 41], "40 to 41 rows"), ([7, 7], "7 rows"), ([1, 1], "1 row")])
    def test_equal_numbers_of_rows_are_said_once(self, counts, line):
        table = reliability_table().iloc[2:].assign(count=counts)
        assert said(check(plots.reliability(table))).endswith(f"each dot: {line}")
        assert said(check(plots.reliability({"a": table, "b": table}))).endswith(f"each dot: {line}\na\nb")


class TestIndependence:
    def test_cells_are_those_of_the_table(self):
        table = pairs_table(6)
        ax = check(plots.independence(table))
        names = [t.get_text() for t in ax.get_yticklabels()]
        assert names == [t.get_text() for t in ax.get_xticklabels()]
        place = {name[-3:]: i for i, name in enumerate(names)}
        cells = ax.collections[0].get_array().reshape(6, 6)
        for row in table.itertuples():
            i, j = place[row.feature_1[-3:]], place[row.feature_2[-3:]]
            assert cells[i, j] == cells[j, i] == row.log_bayes_factor
        assert np.ma.getmaskarray(cells).sum() == 6
        norm_ = ax.collections[0].norm
        assert norm_(0.0) == pytest.approx(0.5)
        assert norm_(3.0) - 0.5 == pytest.approx(0.5 - norm_(-3.0))

    def test_the_features_of_the_strongest_pairs(self):
        table = pairs_table(30)
        table.loc[[100, 200], "log_bayes_factor"] = [1e4, 1e3]
        ax = check(plots.independence(table, top=4))
        expected = table.loc[[100, 200], ["feature_1", "feature_2"]].to_numpy().ravel()
        assert [t.get_text()[-3:] for t in ax.get_yticklabels()] == [name[-3:] for name in expected]
        assert "4 of 30 features" in said(ax)


def test_what_cannot_be_drawn(melons, monkeypatch):
    stub, proba, labels = stub_rows(9, 2, monkeypatch)
    table, pairs = reliability_table(), pairs_table(3)
    refused(r"parameter='mu' is unknown; use 'theta'", plots.shrinkage, melons, parameter="mu")
    for make in WITHOUT_ROWS.values():
        said = "no parameter has a maximum likelihood estimate, as no row .* Fit .* by plots.forest"
        refused(said, plots.shrinkage, make())
    refused("label='nobody' is not a class", plots.prediction_intervals, stub, proba, label="nobody")
    refused(r"y has shape \(8,\); X has 9 rows", plots.prediction_intervals, stub, proba, labels[:8])
    refused("no column 'accuracy'", plots.reliability, table.drop(columns="accuracy"))
    refused("all bins are empty", plots.reliability, table.iloc[:1])
    refused(r"table\['b'\]: all bins are empty", plots.reliability, {"a": table, "b": table.iloc[:1]})
    refused(r"table\['b'\] has no column 'accuracy'", plots.reliability, {"b": table.drop(columns="accuracy")})
    said = r"table\['b'\] must be the result of bayesnb.evaluation.reliability"
    refused(said, plots.reliability, {"b": 3}, error=TypeError)
    refused("table is an empty dict", plots.reliability, {})

    refused("top=1", plots.independence, pairs, top=1)
    refused("no column 'log_bayes_factor'", plots.independence, pairs.drop(columns="log_bayes_factor"))
    refused("no row", plots.independence, pairs.iloc[:0])


FRUIT = np.array([["green", "curled"], ["black", "stiff"], ["green", "stiff"], ["black", "curled"]] * 3, object)
RIPE = ["yes", "no", "no", "yes"] * 3
FRUIT_LEVELS = [["green", "black"], ["curled", "stiff"]]
SIZES = np.random.default_rng(0).normal(size=(12, 2))
WITHOUT_ROWS = {
    "levels": lambda: CategoricalNB().fit(FRUIT, RIPE).forget(FRUIT, RIPE),
    "numbers": lambda: GaussianNB().fit(SIZES, RIPE).forget(SIZES, RIPE),
    "words": lambda: bayesnb.MultinomialNB().fit(abs(SIZES).round(), RIPE).forget(abs(SIZES).round(), RIPE),
    "network": lambda: bayesnb.NetworkNB({1: 0}).fit(FRUIT, RIPE).forget(FRUIT, RIPE),
    "never": lambda: CategoricalNB(categories=FRUIT_LEVELS).partial_fit(FRUIT[:0], [], ["no", "yes"]),
}


@pytest.mark.slow("draws five figures of each kind")
@pytest.mark.parametrize("name", WITHOUT_ROWS)
def test_figures_of_a_posterior_without_rows(name):
    nb = WITHOUT_ROWS[name]()
    X = SIZES if name == "numbers" else abs(SIZES).round() if name == "words" else FRUIT
    for ax in (
        plots.forest(nb),
        plots.prior_posterior(nb, features=[0]),
        plots.estimates(nb, features=[0]),
        plots.prediction_intervals(nb, X[:2]),
        plots.explain(bayesnb.explain(nb, X[:2]), 0),
        *([plots.density(nb, 0)] if name == "numbers" else []),
    ):
        check(ax)
    if name == "network":
        plots.structure(nb).figure.canvas.draw()


def test_parameters_of_a_column_that_the_structure_has_left_out():
    rng = np.random.default_rng(0)
    label = rng.choice(["a", "b"], 30)
    nb = bayesnb.KDB(max_features=1).fit(
        np.column_stack([rng.choice(["u", "v"], 30), np.append("b", label[1:])]), label
    )
    (absent,) = set(nb.encoding_.feature_names) - set(nb.parents_)
    said = rf"features: '{absent}' has no parameters, as the structure has left it out"
    refused(said, parameter_table, nb, features=[absent])


class TestNames:
    @pytest.mark.parametrize("width", [8, 12, 24])
    def test_long_names_are_told_apart(self, width):
        names = [f"{LONG} {i} of the array" for i in range(150)] + [f"{'x' * i}y" for i in range(40)]
        short = labels(names, width)
        assert len(set(short.values())) == len(names)
        assert max(count_columns(s) for s in short.values()) <= width + len(" #189")

    def test_dollars_are_no_formulas(self, melons):
        frame = pd.DataFrame({"$x_1$": ["$5", "$6", "$7"], "_hidden": list("abc")})
        nb = CategoricalNB().fit(frame, ["_a", "$b$", "$b$"])
        ax = check(plots.forest(nb))
        drawn = " ".join(name for name, _ in shown_texts(ax.figure))
        assert r"\$x_1\$" in drawn
        assert "_a" in said(check(plots.shrinkage(nb)))


def test_a_number_in_a_structure_is_counted_once():
    """Its bins and its density have rows of their own in the table."""
    rng = np.random.default_rng(3)
    X, y = pd.DataFrame(rng.normal(size=(23, 2)), columns=["cm", "kg"]), np.repeat(["calm", "rush"], [9, 14])
    nb = bayesnb.TAN(numbers="binned").fit(X, y)
    n_levels = (~parameter_table(nb, features=["cm", "kg"])["level"].isin(["mu", "sigma2"])).sum()
    ax = plots.forest(nb)
    assert "Not in this figure: 4 mu, 4 sigma2" in said(ax)
    assert f"of {n_levels} intervals" in said(ax) or len(ax.get_yticks()) == n_levels
