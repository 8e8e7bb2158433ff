"""The figure of a network: arcs as given, one row a feature."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib")
from matplotlib.patches import FancyArrowPatch

import bayesnb as bnb

RNG = np.random.default_rng(0)
Y = RNG.choice(["in", "out"], 200)
A = RNG.integers(0, 3, 200)
TABLE = pd.DataFrame(
    {"a": A, "b": (A + (RNG.random(200) < 0.1)) % 3, "$c": RNG.integers(0, 2, 200), "size": RNG.normal(size=200)}
)


@pytest.fixture
def network():
    return bnb.NetworkNB({"b": "a", "$c": ["a", "b"]}).fit(TABLE, Y)


def arrows(ax):
    return [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]


def test_as_many_arrows_as_arcs_and_as_many_names_as_categorical_features(network):
    ax = bnb.plots.structure(network)
    figure = bnb.plots.detach(ax)
    figure.canvas.draw()
    assert len(arrows(ax)) == 3
    assert [text.get_text() for text in ax.texts] == ["a", "b", r"\$c"]
    heights = [line.get_ydata()[0] for line in ax.lines]
    assert len(set(heights)) == 3
    assert "3 arcs between 3 features" in ax.get_legend().get_title().get_text()


def test_the_width_is_the_information_of_the_training_rows():
    nb = bnb.NetworkNB({"b": "a", "$c": "a"}).fit(TABLE, Y)
    ax = bnb.plots.structure(nb)
    bnb.plots.detach(ax)

    def information(x, z):
        total = 0.0
        for label in np.unique(Y):
            table = pd.crosstab(x[label == Y], z[label == Y]).to_numpy()
            joint = table / len(Y)
            rest = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0) / joint.sum()
            seen = joint > 0
            total += (joint[seen] * np.log(joint[seen] / rest[seen])).sum()
        return total

    nats = [information(TABLE["a"], TABLE[name]) for name in ("b", "$c")]
    widths = sorted(patch.get_linewidth() for patch in arrows(ax))
    assert (widths[0] - 0.4) / (widths[1] - 0.4) == pytest.approx(min(nats) / max(nats))


def test_without_arcs_and_in_axes_of_ones_own():
    from matplotlib import pyplot

    figure, ax = pyplot.subplots()
    assert bnb.plots.structure(bnb.NetworkNB().fit(TABLE, Y), ax=ax) is ax
    pyplot.close(figure)
    assert not arrows(ax)


def test_it_takes_a_member_but_not_the_average():
    nb = bnb.AODE().fit(TABLE, Y)
    bnb.plots.detach(bnb.plots.structure(nb.members_[1]))
    with pytest.raises(ValueError, match="AODE is no single network"):
        bnb.plots.structure(nb)
    with pytest.raises(ValueError, match="GaussianNB is no single network"):
        bnb.plots.structure(bnb.GaussianNB().fit(TABLE[["size"]], Y))
