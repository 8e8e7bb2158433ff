"""Figures of earlier versions: the error names a line that draws the same numbers, and the line is in the gallery."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib")
from matplotlib import pyplot
from sklearn.datasets import load_iris
from sklearn.inspection import DecisionBoundaryDisplay

import bayesnb as bnb

pytestmark = pytest.mark.slow("compiles kernels of its own")

PAGE = Path(__file__).parents[2] / "docs" / "gallery" / "one_line.md"
IRIS = load_iris(as_frame=True)
X, Y = IRIS.data, IRIS.target_names[IRIS.target]
LEVELS = X.round().astype(int)


def replacement(name: str) -> str:
    """The line that the error about a figure names."""
    with pytest.raises(AttributeError) as error:
        getattr(bnb.plots, name)
    return re.fullmatch(rf"module 'bayesnb.plots' has no attribute '{name}'; use (.*)", str(error.value))[1]


def draw(name: str, **variables):
    """Evaluate the line that replaces a figure; `pandas` is imported as pd in the line."""
    result = eval(replacement(name), {"pd": pd, "pyplot": pyplot, **variables})
    return getattr(result, "ax_", result)


def lines(ax) -> np.ndarray:
    return np.concatenate([line.get_xydata() for line in ax.lines])


def widths(ax) -> list[float]:
    return [bar.get_width() for bar in ax.patches]


def test_alpha_path_has_every_evaluation():
    tuned = bnb.tune_alpha(bnb.CategoricalNB().fit(LEVELS, Y), LEVELS, Y, by="evidence")
    ax = draw("alpha_path", tuned=tuned)
    np.testing.assert_allclose(lines(ax), tuned.path.sort_values("alpha")[["alpha", "objective"]])
    assert ax.get_xscale() == "log"


def test_differences_of_two_models():
    models = [nb.fit(LEVELS, Y) for nb in (bnb.CategoricalNB(), bnb.FeatureAveragedNB(bnb.CategoricalNB()))]
    first, second = (bnb.loo(nb, LEVELS, Y) for nb in models)
    difference = lines(draw("pointwise_loo", first=first, second=second))
    np.testing.assert_allclose(difference[:, 1], np.sort(first.pointwise - second.pointwise))
    pyplot.close("all")
    first, second = (bnb.prequential(nb, LEVELS, Y) for nb in models)
    way = lines(draw("prequential", first=first, second=second))
    np.testing.assert_allclose(way, np.stack([first.sizes, first.log_evidence - second.log_evidence], axis=1))


def test_inclusion_has_a_bar_for_each_feature():
    nb = bnb.FeatureAveragedNB(bnb.GaussianNB()).fit(X[::10], Y[::10])
    np.testing.assert_allclose(widths(draw("inclusion", nb=nb)), np.sort(nb.inclusion_probability_))


def test_structures():
    arcs = bnb.TreeAveragedNB().fit(LEVELS, Y).arc_probability_
    np.testing.assert_allclose(np.ravel(draw("arcs", arcs=arcs).get_array()), np.ravel(arcs))
    parents = {"sepal length (cm)": ["petal length (cm)", "petal width (cm)"]}
    table = bnb.context_table(bnb.NetworkNB(parents, tables="context").fit(LEVELS, Y))
    assert sum(widths(draw("contexts", table=table))) == pytest.approx(len(Y))


def test_predictions():
    nb = bnb.GaussianNB().fit(X[::2], Y[::2])
    sets = bnb.conformal(nb, X[::2], Y[::2]).predict_set(X[1::2])
    heights = [bar.get_height() for bar in draw("set_sizes", sets=sets).patches]
    np.testing.assert_allclose(heights, np.unique(sets.size, return_counts=True)[1] / len(sets.size))
    result = bnb.estimate_prevalence(nb, X[40:], draws=200)
    pyplot.close("all")
    names = [tick.get_text() for tick in draw("prevalence", result=result).get_xticklabels()]
    assert names == list(IRIS.target_names)


def test_learning_curve_has_a_line_for_each_estimate():
    curve = bnb.learning_curve(bnb.GaussianNB(), X, Y, sizes=[3, 10], repeats=3, progress=None)
    drawn = {line.get_label(): line.get_ydata() for line in draw("learning_curve", curve=curve).lines}
    for estimate, rows in curve.groupby("estimate"):
        np.testing.assert_allclose(drawn[estimate], rows["brier"])


def test_uncertainty_map_is_a_display_of_scikit_learn():
    nb = bnb.GaussianNB().fit(X.iloc[:, 2:], Y)
    ax = draw("uncertainty_map", nb=nb, X=X.iloc[:, 2:], DecisionBoundaryDisplay=DecisionBoundaryDisplay)
    assert ax.get_xlabel() == X.columns[2]


GONE = (
    *("alpha_path", "arcs", "contexts", "inclusion", "learning_curve", "pointwise_loo", "prequential", "prevalence"),
    *("set_sizes", "uncertainty_map"),
)


@pytest.mark.parametrize("name", GONE)
def test_the_gallery_has_the_line(name):
    code = PAGE.read_text(encoding="utf-8")
    line = replacement(name).replace("(nb, X)", "(nb, petal)")
    assert f"**{name}**" in code
    assert re.sub(r"\s", "", line) in re.sub(r"\s", "", code)


def test_other_names_are_only_absent():
    with pytest.raises(AttributeError, match=r"has no attribute 'histogram'$"):
        bnb.plots.histogram  # noqa: B018
