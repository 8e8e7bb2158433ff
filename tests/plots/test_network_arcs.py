"""The figure of a network shows its arcs, with the width of what each arc contributes."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib")
from matplotlib.patches import FancyArrowPatch
from scipy.stats import entropy as entropy_of

import bayesnb as bnb
from tests.plots.figures import LONG, said, shown_texts
from tests.raises import refused

pytestmark = pytest.mark.slow("compiles kernels of its own")

RNG = np.random.default_rng(0)
Y = RNG.choice(["in", "out"], 200)
A = RNG.integers(0, 3, 200)
TABLE = pd.DataFrame(
    {"a": A, "b": (A + (RNG.random(200) < 0.1)) % 3, "$c": RNG.integers(0, 2, 200), "size": RNG.normal(size=200)}
)


def arrows(ax):
    return [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]


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
    refused("AODE is not a single network", bnb.plots.structure, nb)
    refused("GaussianNB is not a single network", bnb.plots.structure, bnb.GaussianNB().fit(TABLE[["size"]], Y))
