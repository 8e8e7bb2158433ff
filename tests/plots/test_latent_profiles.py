"""The figure of latent classes: what is drawn are the means and quantiles of the draws."""

import numpy as np
import pandas as pd
import pytest

from tests.raises import refused

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

import bayesnb as bnb
from bayesnb import plots
from tests.plots.figures import LONG, check, said

pytestmark = pytest.mark.filterwarnings("ignore:Gibbs", "ignore:sample_latent", "ignore:EM")


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


def test_nothing_overlaps(drawn):
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


def test_what_it_refuses(drawn):
    mixture, data = drawn
    refused("NaiveBayesMixture", plots.latent_profiles, bnb.CategoricalNB(), error=TypeError)
    refused("sample_latent returns", plots.latent_profiles, mixture, {"posterior": {}})
    refused("for this mixture", plots.latent_profiles, fitted(2)[0], data)
    refused("prob", lambda: plots.latent_profiles(mixture, prob=1))
    refused("no column has levels", plots.latent_profiles, bnb.NaiveBayesMixture(1).fit([[0.5], [1.5], [2.5]]))
