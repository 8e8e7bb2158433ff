"""Densities of numeric columns are those of SciPy, and of binned columns those of their tables."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tests.raises import refused

pytest.importorskip("matplotlib")
from matplotlib.collections import LineCollection

import bayesnb as bnb
from bayesnb import plots
from tests.plots.figures import LONG, check, said

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
def test_bad_arguments():
    nb, X, _y = fitted(2)
    refused("X and y must be passed together", plots.density, nb, "size", X)
    refused("binned column.*estimate='predictive'", plots.density, nb, "size", estimate="mle")
    refused("estimate='best' is unknown", plots.density, nb, "size", estimate="best")
    levels = bnb.CategoricalNB().fit([["r"], ["g"]], ["a", "b"])
    refused("has levels or words.*plots.forest", plots.density, levels, 0)
    constant = bnb.BinnedNB().fit([[1.0], [1.0]], [0, 1])
    refused(r"was not cut \(it has one bin\)", plots.density, constant, 0)
