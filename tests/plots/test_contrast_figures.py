"""The figure of contrasts shows the rows of their table, and the value at which classes do not differ."""

import numpy as np
import pandas as pd
import pytest

from tests.raises import refused

pytest.importorskip("matplotlib")
import bayesnb as bnb
from bayesnb import plots
from tests.plots.figures import check, said

Y = np.array(["ash", "elm", "oak"] * 12)
X = pd.DataFrame({"leaf": np.roll(Y, 5), "bark": np.array(["rough", "smooth"])[np.arange(36) % 5 % 2]})


@pytest.fixture(scope="module")
def nb():
    return bnb.CategoricalNB().fit(X, Y)


@pytest.mark.parametrize(("kind", "null"), [("difference", 0.0), ("ratio", 1.0), ("log_odds", 0.0)])
def test_forest_has_estimates_and_intervals(nb, kind, null):
    table = pd.concat([bnb.contrast(nb, feature, kind=kind) for feature in X])
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


def test_pairs_features_and_levels(nb):
    tables = [bnb.contrast(nb, "leaf", classes=pair) for pair in (("oak", "ash"), ("oak", "elm"))]
    ax = check(plots.forest(pd.concat(tables), parameter="ash"))
    assert [text.get_text() for text in ax.get_yticklabels()] == ["leaf = ash | oak : ash", "leaf = ash | oak : elm"]
    both = pd.concat([bnb.contrast(nb, feature) for feature in X])
    assert all(text.get_text().startswith("bark") for text in plots.forest(both, ["bark"]).get_yticklabels())


def test_bad_arguments(nb):
    table = bnb.contrast(nb, "leaf")
    refused(r"Use contrast\(prob=\)", plots.forest, table, prob=0.5)
    refused("name no contrasts of", plots.forest, table, features=["bark"])
    refused("name no contrasts of", plots.forest, table, parameter="fir")
    mixed = pd.concat([table, bnb.contrast(nb, "leaf", kind="ratio")])
    refused("nb has contrasts of the kinds .* Pass those of one kind", plots.forest, mixed)
    refused(
        "nb has no column 'against'.*pass what bayesnb.contrast returns",
        plots.forest,
        X.rename(columns={"leaf": "class"}),
    )
