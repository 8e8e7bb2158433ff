"""The figure of weights shows the values of its table."""

import numpy as np
import pandas as pd
import pytest

from tests.raises import refused

pytest.importorskip("matplotlib")

from bayesnb import plots
from tests.plots.figures import LONG, check, said, segments


def table_of(n: int) -> pd.DataFrame:
    """A table like that of `weight_table`, with terms in random order."""
    rng = np.random.default_rng(n)
    weight, sd = rng.normal(0.6, 0.4, n), rng.uniform(0.05, 0.4, n)
    columns = {"term": [f"{LONG} {t:03d}" for t in range(n)], "weight": weight, "lower": weight - 1.64 * sd}
    table = pd.DataFrame({**columns, "upper": weight + 1.64 * sd, "sd": sd, "cost": 0.5 * (weight / sd) ** 2})
    table.attrs = {"temperature": 0.6, "shrinkage": 0.3, "prob": 0.9}
    return table


def dots(ax) -> pd.DataFrame:
    """Weights and heights of the dots, from above, and whether they are hollow."""
    drawn = [line for line in ax.lines if line.get_marker() == "o"]
    parts = [
        pd.DataFrame({"weight": d.get_xdata(), "y": d.get_ydata(), "hollow": d.get_markerfacecolor() == "white"})
        for d in drawn
    ]
    return pd.concat(parts).sort_values("y", ignore_index=True)


@pytest.mark.parametrize("n", [1, 200])
def test_nothing_overlaps(n):
    check(plots.weights(table_of(n)))


@pytest.mark.parametrize("n", [5, 200])
def test_the_dearest_terms_have_their_intervals_in_order_of_weight(n):
    table = table_of(n)
    ax = plots.weights(table)
    expected = table.nlargest(min(n, 40), "cost").sort_values("weight", ascending=False, ignore_index=True)
    found = dots(ax)
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
    np.testing.assert_array_equal(dots(ax)["weight"], expected["weight"])
    assert "temperature 0.6" in said(ax)
    assert dots(plots.weights(table, names=names[0]))["weight"].tolist() == [table["weight"][7]]
    refused(r"names=\['nothing'\] must be terms of the table", plots.weights, table, names=["nothing"])
    refused(r"names=\[\] must be terms of the table", plots.weights, table, names=[])


def test_what_it_is_of():
    refused("table has no column 'cost'", plots.weights, table_of(3).drop(columns="cost"))
    refused("table has no row; pass what bayesnb.weight_table returns", plots.weights, table_of(3)[:0])
    refused("table must be the result of bayesnb.weight_table", plots.weights, {"weight": 1.0}, error=TypeError)
