"""The figure of a posterior predictive check: what is drawn is what the table says."""

import numpy as np
import pytest

from tests.raises import refused

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

import bayesnb as bnb
from bayesnb import plots
from tests.plots.figures import LONG, check, said

RNG = np.random.default_rng(0)
Y = np.array([f"{LONG} {c}" for c in "ab"])[RNG.integers(0, 2, 60)]


def result(columns, statistic="association"):
    X = RNG.normal(size=(60, columns))
    X[:, 1] += 2 * X[:, 0]
    return bnb.posterior_predictive_check(bnb.GaussianNB().fit(X, Y), X, Y, statistic, draws=30)


@pytest.mark.parametrize("columns", [2, 9])
def test_nothing_overlaps(columns):
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


def test_rows_that_find_no_room_are_counted():
    ax = check(plots.predictive_check(result(9), ax=Figure(figsize=(6, 3), layout="constrained").subplots()))
    assert f"{len(ax.get_yticks())} largest" in said(ax)


def test_what_is_no_result():
    refused("posterior_predictive_check", plots.predictive_check, result(2).table, error=TypeError)
    refused("top", plots.predictive_check, result(2), 0)
