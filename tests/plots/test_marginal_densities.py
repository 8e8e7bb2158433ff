"""Densities of parameters and of numeric columns are those of the parameter table, of SciPy and of posterior draws."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.exceptions import NotFittedError

from tests.raises import refused

pytest.importorskip("matplotlib")

from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

import bayesnb as bnb
from bayesnb import plots
from tests.plots.figures import LONG, check, said

RNG = np.random.default_rng(3)
Y = np.repeat(["calm", "rush"], [9, 14])
LEVELS = pd.DataFrame({"colour": RNG.choice([*"rgb"], 23, p=[0.6, 0.3, 0.1]), "size": RNG.choice([*"sl"], 23)})
COUNTS = pd.DataFrame({"calls": RNG.poisson(np.where(Y == "calm", 1, 4)), "mails": RNG.poisson(20, 23)}).astype(float)
NUMBERS = pd.DataFrame({"cm": RNG.normal(170, 9, 23), "kg": RNG.normal(70, 4, 23)})


def curves(ax, linestyle="-"):
    """(x, height above the row) of each density, rows from top to bottom."""
    lines = [line for line in ax.lines if line.get_linestyle() == linestyle and line.get_marker() in ("None", "")]
    return [(line.get_xdata(), i - line.get_ydata()) for i, line in enumerate(lines)]


def marks(ax) -> list[dict[str, tuple[float, float]]]:
    """Value and height of each estimate, by row."""
    n = len(ax.get_yticks())
    rows = [{} for _ in range(n)]
    for line in ax.lines:
        if " " not in line.get_label()[:1] and not line.get_label().startswith("_"):
            for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True):
                i = int(np.ceil(y - 1e-12))
                for name in line.get_label().split(" = "):
                    rows[i][name] = (x, i - y)
    return rows


def rows_of(nb, ax, parameter: str | None = None) -> pd.DataFrame:
    """Rows of the parameter table in the order of the figure, which its row names have."""
    table = bnb.parameter_table(nb, features=list(nb.feature_names_in_))
    table = table if parameter is None else table[table["level"] == parameter]
    middle = "" if parameter else " = " + table["level"].astype(str)
    names = table["feature"] + middle + " | " + table["class"]
    return table.assign(name=names).set_index("name").loc[[text.get_text() for text in ax.get_yticklabels()]]


def same_shape(x, height, density):
    """The height is the density times one factor of the row, up to the top of the row."""
    below = height < height.max() * (1 - 1e-9)
    expected = density(x)
    factor = height[below].sum() / expected[below].sum()
    np.testing.assert_allclose(height[below], factor * expected[below], rtol=1e-9, atol=1e-12 * height.max())
    return factor


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
def test_probabilities_of_levels_have_beta_densities_with_the_estimates_of_the_table(alpha):
    nb = bnb.CategoricalNB(alpha=alpha).fit(LEVELS, Y)
    ax = check(plots.estimates(nb, top=4))
    rows = rows_of(nb, ax)
    every = bnb.parameter_table(nb, features=list(LEVELS))
    largest = (every["mle"] - every["mean"]).abs().nlargest(4)
    np.testing.assert_allclose((rows["mle"] - rows["mean"]).abs(), largest)
    for (x, height), of_row, (_, row) in zip(curves(ax), marks(ax), rows.iterrows(), strict=True):
        cells = LEVELS.loc[row["class"] == Y, row["feature"]]
        n, levels = (cells == row["level"]).sum(), LEVELS[row["feature"]].nunique()
        beta = stats.beta(alpha + n, alpha * (levels - 1) + len(cells) - n)
        factor = same_shape(x, height, beta.pdf)
        expected = {"MLE": n / len(cells), "mean": beta.mean(), "predictive": beta.mean(), "MAP": row["map"]}
        assert set(of_row) == {name for name, value in expected.items() if np.isfinite(value)}
        for name, (value, mark) in of_row.items():
            assert value == pytest.approx(expected[name])
            assert mark == pytest.approx(min(factor * beta.pdf(value), height.max()), abs=1e-9)
    assert ("the MAP is the MLE. Set alpha=2" in said(ax)) == (alpha == 1)
    assert ("MLE = MAP" in said(ax)) == (alpha == 1)
    assert "mean = predictive" in said(ax)
    assert "4 of 10 parameters" in said(ax)
    assert ("No MAP" in said(ax)) == rows["map"].isna().any()


@pytest.mark.parametrize("parameter", ["mu", "sigma2"])
def test_means_and_variances_have_student_and_inverse_gamma_densities(parameter):
    nb = bnb.GaussianNB().fit(NUMBERS, Y)
    ax = check(plots.estimates(nb, parameter=parameter))
    p, rows = nb.posterior_.blocks[0], rows_of(nb, ax, parameter)
    for (x, height), of_row, (_, row) in zip(curves(ax), marks(ax), rows.iterrows(), strict=True):
        column = NUMBERS[row["feature"]]
        at = list(nb.classes_).index(row["class"]), list(NUMBERS).index(row["feature"])
        m, kappa, a, b = (np.broadcast_to(v, (2, 2))[at] for v in (p.loc, p.kappa, p.concentration, p.rate))
        origin, size = (column.mean(), column.std(ddof=0)) if parameter == "mu" else (0.0, column.var(ddof=0))
        marginal = {"mu": stats.t(2 * a, m, np.sqrt(b / (a * kappa))), "sigma2": stats.invgamma(a, scale=b)}[parameter]
        same_shape(x, height, lambda x, f=marginal, o=origin, s=size: f.pdf(o + s * x))
        cell = stats.t(2 * a, m, np.sqrt(b * (kappa + 1) / (a * kappa)))
        predictive = cell.mean() if parameter == "mu" else cell.var()
        expected = {"MLE": row["mle"], "MAP": row["map"], "mean": row["mean"], "predictive": predictive}
        assert {name: value for name, (value, _) in of_row.items()} == pytest.approx(
            {name: (value - origin) / size for name, value in expected.items()}
        )
    assert ("MAP = mean = predictive" in said(ax)) == (parameter == "mu")


@pytest.mark.parametrize("cls", [bnb.PoissonNB, bnb.ExponentialNB])
def test_rates_have_gamma_densities(cls):
    X = COUNTS if cls is bnb.PoissonNB else COUNTS + 0.5
    nb = cls().fit(X, Y)
    ax = check(plots.estimates(nb))
    p, rows = nb.posterior_.blocks[0], rows_of(nb, ax, "rate")
    for (x, height), of_row, (_, row) in zip(curves(ax), marks(ax), rows.iterrows(), strict=True):
        at = list(nb.classes_).index(row["class"]), list(X).index(row["feature"])
        a, b = (np.broadcast_to(v, (2, 2))[at] for v in (p.concentration, p.rate))
        size = X[row["feature"]].mean() ** (1 if cls is bnb.PoissonNB else -1)
        same_shape(x, height, lambda x, a=a, b=b, s=size: stats.gamma(a, scale=1 / b).pdf(s * x))
        predictive = stats.nbinom(a, b / (b + 1)).mean() if cls is bnb.PoissonNB else 1 / stats.lomax(a, scale=b).mean()
        expected = {"MLE": row["mle"], "MAP": (a - 1) / b, "mean": a / b, "predictive": predictive}
        assert {name: value * size for name, (value, _) in of_row.items()} == pytest.approx(expected)


@pytest.mark.slow("fits averages of models")
@pytest.mark.parametrize(
    ("nb", "X"),
    [
        (bnb.FeatureAveragedNB(bnb.GaussianNB()), NUMBERS),
        (bnb.FeatureAveragedNB(bnb.CategoricalNB(alpha=2)), LEVELS),
        (bnb.NetworkNB({"size": "colour"}, alpha=8, tables="context"), LEVELS),
    ],
)
def test_averages_have_the_densities_of_their_draws(nb, X):
    """Areas under the curves, between the deciles of the draws, are a tenth of the whole."""
    nb.fit(X, Y)
    ax = plots.estimates(nb, top=4)
    exact, rows = bnb.parameter_table(nb, features=list(X)), rows_of(nb, ax, "mu" if X is NUMBERS else None)
    drawn = bnb.posterior_draws(nb, 4000)
    for (x, height), (_, row) in zip(curves(ax), rows.iterrows(), strict=True):
        c = list(nb.classes_).index(row["class"])
        same = exact[(exact["class"] == row["class"]) & (exact["level"].isin(["mu"]) if X is NUMBERS else True)]
        k = [*zip(same["feature"], same["level"], strict=True)].index((row["feature"], row["level"]))
        values = drawn["mu" if X is NUMBERS else "theta"][:, c, k]
        if X is NUMBERS:
            values = (values - X[row["feature"]].mean()) / X[row["feature"]].std(ddof=0)
        area = np.concatenate([[0], np.cumsum(np.diff(x) * (height[1:] + height[:-1]))])
        at = np.interp(np.quantile(values, np.linspace(0.2, 0.8, 7)), x, area)
        between = (area <= at[-1]) & (area >= at[0])
        assert between.sum() > 30
        np.testing.assert_allclose(np.diff(at), (at[-1] - at[0]) / 6, rtol=0.25)


def test_prior_and_posterior_have_one_scale():
    nb = bnb.CategoricalNB(alpha=2).fit(LEVELS, Y)
    ax = check(plots.prior_posterior(nb, ["colour"]))
    rows = rows_of(nb, ax)
    for prior, posterior, (_, row) in zip(curves(ax, "--"), curves(ax), rows.iterrows(), strict=True):
        n, total = row["count"], (row["class"] == Y).sum()
        factors = [
            same_shape(*prior, stats.beta(2, 4).pdf),
            same_shape(*posterior, stats.beta(2 + n, 4 + total - n).pdf),
        ]
        assert factors[0] == pytest.approx(factors[1])
    assert "derived" not in said(ax)


def test_a_prior_of_variances_that_is_derived_from_the_data():
    nb = bnb.GaussianNB().fit(NUMBERS, Y)
    ax = check(plots.prior_posterior(nb, ["kg"], parameter="sigma2"))
    assert "The prior is derived from the data" in said(ax)
    prior, size = nb.prior_.blocks[0], NUMBERS["kg"].var(ddof=0)
    for x, height in curves(ax, "--"):
        a, b = prior.concentration[0, 1], prior.rate[0, 1]
        same_shape(x, height, lambda x, a=a, b=b: stats.invgamma(a, scale=b).pdf(size * x))


@pytest.mark.parametrize("draw", [plots.estimates, plots.prior_posterior])
class TestBoth:
    def test_of_hundreds_of_parameters_some_are_drawn_and_the_number_is_said(self, draw):
        X = np.random.default_rng(0).poisson(1.0, (23, 300))
        words = pd.DataFrame(X, columns=[f"{LONG} {j:03d}" for j in range(300)])
        nb = bnb.MultinomialNB().fit(words, Y)
        ax = check(draw(nb))
        assert len(ax.get_yticks()) == 6
        assert "6 of 600 parameters" in said(ax)
        assert "features=, top=" in said(ax)
        chosen = check(draw(nb, features=list(words)[:2]))
        assert len(chosen.get_yticks()) == 4

    def test_in_given_axes(self, draw):
        nb = bnb.GaussianNB().fit(NUMBERS, Y)
        figure = Figure(figsize=(6.4, 4), layout="constrained")
        ax = figure.add_subplot()
        assert draw(nb, ax=ax) is ax
        check(ax)
        assert len(ax.get_yticks()) < 4

    def test_bad_arguments(self, draw):
        nb = bnb.CategoricalNB().fit(LEVELS, Y)
        refused(r"parameter='mu' is unknown; use 'theta'", draw, nb, parameter="mu")
        refused("weight", draw, nb, features=["weight"])
        refused("top", draw, nb, top=0)
        refused("top=61 is too large.*at most 60", draw, nb, top=61)
        one = bnb.CategoricalNB().fit([["red"], ["red"]], ["a", "b"])
        refused("known exactly", draw, one)
        improper = bnb.CategoricalNB(alpha=0).fit([["r"], ["g"]], ["a", "b"])
        refused("improper.*Choose a proper prior", draw, improper, error=bnb.ImproperPosteriorError)
        refused("not fitted", draw, bnb.CategoricalNB(), error=NotFittedError)


def test_an_improper_prior_has_no_density():
    nb = bnb.CategoricalNB(alpha=0).fit([["r"], ["g"]] * 2, [*"aabb"])
    refused(
        "the prior is improper.*alpha=0.5.*plots.estimates", plots.prior_posterior, nb, error=bnb.ImproperPosteriorError
    )
    check(plots.estimates(nb))


def test_marks_are_seen_on_a_dark_background():
    with plt.style.context("dark_background"):
        ax = plots.estimates(bnb.CategoricalNB(alpha=2).fit(LEVELS, Y))
    assert {line.get_color() for line in ax.lines if line.get_marker() not in ("None", "")} == {"white"}


slow = pytest.mark.slow("compiles kernels of its own")


def fitted(n_classes: int, name: str = "size") -> tuple[bnb.BinnedNB, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n_classes)
    y = np.repeat(np.arange(n_classes), 30)
    X = pd.DataFrame({name: rng.gamma(2.0 + y), "other": rng.normal(size=len(y))})
    names = np.array([f"{LONG} {c:03d}" for c in range(n_classes)])
    return bnb.BinnedNB().fit(X, names[y]), X, names[y]


@slow
@pytest.mark.parametrize("n_classes", [1, 2, 9])
def test_nothing_overlaps(n_classes):
    nb, X, y = fitted(n_classes, LONG)
    check(plots.density(nb, LONG, X, y))
    check(plots.density(nb, LONG))


@slow
def test_heights_are_those_of_the_table_and_cuts_hang_as_long_as_they_are_probable():
    nb, X, y = fitted(2)
    ax = plots.density(nb, "size", X, y)
    table = bnb.density_table(nb, ["size"], bars=40)
    solid = [line for line in ax.lines if line.get_linestyle() == "-"]
    for line, label in zip(solid, nb.classes_, strict=True):
        own = table[table["class"] == label]
        edges, heights = np.append(line.get_xdata()[::2], line.get_xdata()[-1]), line.get_ydata()[::2]
        np.testing.assert_array_equal(line.get_ydata()[1::2], heights)
        np.testing.assert_array_equal(line.get_xdata()[1::2], edges[1:])
        np.testing.assert_allclose(heights[1:-1], own["density"].to_numpy()[1:-1], rtol=1e-12)
        np.testing.assert_allclose(edges[1:-1], own["high"].to_numpy()[:-1])
        assert (heights * np.diff(edges)).sum() == pytest.approx(1.0)
    (cuts,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    lengths = [segment[1, 1] - segment[0, 1] for segment in cuts.get_segments()]
    np.testing.assert_allclose(lengths, 0.25 * bnb.cut_table(nb, ["size"])["probability"], rtol=1e-9)
    assert "90% intervals" in said(ax)
    assert "normal density" in said(ax)


def numbers(kind: str) -> tuple[pd.DataFrame, np.ndarray]:
    rng, y = np.random.default_rng(5), np.repeat([*"ab"], [8, 20])
    mean = np.where(y == "a", 2.0, 6.0)
    draw = {"gaussian": rng.normal, "poisson": rng.poisson, "exponential": rng.exponential}[kind]
    return pd.DataFrame({LONG: draw(mean).astype(float), "other": rng.poisson(3, 28) + 1.0}), y


FITS = {"gaussian": bnb.GaussianNB(), "poisson": bnb.PoissonNB(), "exponential": bnb.ExponentialNB()}


def predictive(kind, a, b, m, kappa):
    return {
        "gaussian": lambda: stats.t(2 * a, m, np.sqrt(b * (kappa + 1) / (a * kappa))).pdf,
        "poisson": lambda: stats.nbinom(a, b / (b + 1)).pmf,
        "exponential": lambda: stats.lomax(a, scale=b).pdf,
    }[kind]()


def plugged_in(kind, cells):
    return {
        "gaussian": lambda: stats.norm(cells.mean(), cells.std(ddof=0)).pdf,
        "poisson": lambda: stats.poisson(cells.mean()).pmf,
        "exponential": lambda: stats.expon(scale=cells.mean()).pdf,
    }[kind]()


@pytest.mark.parametrize("kind", FITS)
def test_curves_of_numbers_are_predictive_or_maximum_likelihood(kind):
    X, y = numbers(kind)
    nb = FITS[kind].fit(X, y)
    of = nb.posterior_.blocks[0]
    ax, mle = check(plots.density(nb, LONG, X, y)), check(plots.density(nb, LONG, estimate="mle"))
    for c, label in enumerate("ab"):
        a, b, m, kappa = (
            np.broadcast_to(getattr(of, name, 0.0), (2, 2))[c, 0] for name in ("concentration", "rate", "loc", "kappa")
        )
        x, height = solid(ax)[c]
        np.testing.assert_allclose(height, predictive(kind, a, b, m, kappa)(x), rtol=1e-9, atol=1e-300)
        x, height = solid(mle)[c]
        np.testing.assert_allclose(height, plugged_in(kind, X.loc[y == label, LONG])(x), rtol=1e-9, atol=1e-300)
        if kind == "poisson":
            np.testing.assert_array_equal(x, np.round(x))
    assert "maximum likelihood" in said(mle)
    assert ax.get_ylabel() == ("probability" if kind == "poisson" else "density")


def test_the_band_has_the_quantiles_of_the_density():
    """The density of an exponential at 0 is the rate, which has a gamma posterior."""
    X, y = numbers("exponential")
    nb = bnb.ExponentialNB().fit(X - X.min(), y)
    ax = plots.density(nb, LONG, X - X.min(), y, prob=0.8)
    bands = [c.get_paths()[0].vertices for c in ax.collections]
    of = nb.posterior_.blocks[0]
    for c, band in enumerate(bands):
        at_0 = band[np.abs(band[:, 0]) < 1e-12, 1]
        expected = stats.gamma(of.concentration[c, 0], scale=1 / of.rate[c, 0]).ppf([0.1, 0.9])
        np.testing.assert_allclose([at_0.min(), at_0.max()], expected, rtol=0.05)


def test_a_narrow_class_beside_a_wide_one_has_its_peak():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1000, 40), rng.normal(5, 0.1, 40)])[:, None]
    nb = bnb.GaussianNB(prior=bnb.NormalInverseGamma(0.0, 1e-3, 2.0, 0.01)).fit(X, np.repeat([0, 1], 40))
    _x, height = solid(plots.density(nb, 0))[1]
    a, b, kappa = (
        np.ravel(v[1])[0] for v in (getattr(nb.posterior_.blocks[0], n) for n in ("concentration", "rate", "kappa"))
    )
    peak = stats.t(2 * a, 0, np.sqrt(b * (kappa + 1) / (a * kappa))).pdf(0)
    assert height.max() > 0.98 * peak


def test_classes_without_a_density_are_named():
    X, y = [[1.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    ax = check(plots.density(bnb.GaussianNB().fit(X, y), 0, X, y, estimate="mle"))
    assert "No density, or a variance of 0: a" in said(ax)
    averaged = bnb.FeatureAveragedNB(bnb.GaussianNB()).fit(X, y)
    assert "No density" not in said(plots.density(averaged, 0))


def solid(ax):
    lines = [line for line in ax.lines if line.get_linestyle() == "-"]
    return [(line.get_xdata(), line.get_ydata()) for line in lines]


@slow
def test_bad_arguments_of_densities():
    nb, X, _y = fitted(2)
    refused("X and y must be passed together", plots.density, nb, "size", X)
    refused("binned column.*estimate='predictive'", plots.density, nb, "size", estimate="mle")
    refused("estimate='best' is unknown", plots.density, nb, "size", estimate="best")
    levels = bnb.CategoricalNB().fit([["r"], ["g"]], ["a", "b"])
    refused("has levels or words.*plots.forest", plots.density, levels, 0)
    constant = bnb.BinnedNB().fit([[1.0], [1.0]], [0, 1])
    refused(r"was not cut \(it has one bin\)", plots.density, constant, 0)
