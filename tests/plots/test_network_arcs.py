"""The figure of a network: arcs as given, one row a feature."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib")
from matplotlib.patches import FancyArrowPatch
from scipy.stats import entropy as entropy_of

import bayesnb as bnb
from tests.plots.figures import LONG, said, shown_texts

pytestmark = pytest.mark.slow("compiles kernels of its own")

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


def test_of_several_parents_each_arc_is_as_wide_as_what_only_it_says():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 600)
    strong, weak = rng.integers(0, 2, (2, 600))
    child = np.where(rng.random(600) < 0.7, strong, np.where(rng.random(600) < 0.5, weak, rng.integers(0, 2, 600)))
    table = pd.DataFrame({"strong": strong, "weak": weak, "child": child})
    ax = bnb.plots.structure(bnb.NetworkNB({"child": ["strong", "weak"]}).fit(table, y))
    bnb.plots.detach(ax)

    def entropy(*columns):
        return entropy_of(pd.DataFrame(dict(enumerate(columns))).value_counts().to_numpy())

    # I(child; parent | class, other) from entropies.
    nats = {
        name: entropy(table[name], other, y)
        + entropy(child, other, y)
        - entropy(table[name], child, other, y)
        - entropy(other, y)
        for name, other in (("strong", weak), ("weak", strong))
    }
    assert nats["strong"] > 2 * nats["weak"]
    width = dict(zip(("strong", "weak"), (patch.get_linewidth() - 0.4 for patch in arrows(ax)), strict=True))
    assert width["weak"] / width["strong"] == pytest.approx(nats["weak"] / nats["strong"])
    assert f"{nats['strong']:.2g} nats lost without it" in said(ax)


def network_of(n_features, arcs):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 2, (50, n_features)), columns=[f"{LONG} {j:03d}" for j in range(n_features)])
    names = list(table)
    return bnb.NetworkNB({names[c]: [names[p] for p in own] for c, own in arcs.items()}).fit(table, np.arange(50) % 2)


@pytest.mark.parametrize("n", [2, 30, 200])
def test_names_do_not_overlap_nor_leave_the_canvas(n):
    nb = network_of(n, {j: [(j - 1) // 2] for j in range(1, n)})
    ax = bnb.plots.structure(nb)
    boxes = [box for name, box in shown_texts(ax.figure) if LONG[-5:] in name or "…" in name]
    assert len(ax.texts) == min(n, 40)
    assert ("Shown are 40 of 200 features; 1" in said(ax)) == (n == 200)
    for a, b in combinations(boxes, 2):
        assert not a.overlaps(b)
    for box in boxes:
        assert box.x1 <= ax.figure.bbox.x1 + 1


def test_it_takes_a_member_but_not_the_average():
    nb = bnb.AODE().fit(TABLE, Y)
    bnb.plots.detach(bnb.plots.structure(nb.members_[1]))
    with pytest.raises(ValueError, match="AODE is no single network"):
        bnb.plots.structure(nb)
    with pytest.raises(ValueError, match="GaussianNB is no single network"):
        bnb.plots.structure(bnb.GaussianNB().fit(TABLE[["size"]], Y))
