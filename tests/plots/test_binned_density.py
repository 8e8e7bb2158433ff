"""The figure of a binned density shows the values of its tables."""

from __future__ import annotations

import numpy as np
import pytest

from tests.refusals import refused

pytest.importorskip("matplotlib")
import bayesnb as bnb
from bayesnb import plots
from tests.plots.figures import LONG, check, said

pytestmark = pytest.mark.slow("compiles kernels of its own")


def fitted(n_classes: int, name: str = "size") -> tuple[bnb.BinnedNB, np.ndarray, np.ndarray]:
    import pandas as pd

    rng = np.random.default_rng(n_classes)
    y = np.repeat(np.arange(n_classes), 30)
    X = pd.DataFrame({name: rng.gamma(2.0 + y), "other": rng.normal(size=len(y))})
    names = np.array([f"{LONG} {c:03d}" for c in range(n_classes)])
    return bnb.BinnedNB().fit(X, names[y]), X, names[y]


@pytest.mark.parametrize("n_classes", [1, 2, 9])
def test_nothing_overlaps(n_classes):
    nb, X, y = fitted(n_classes, LONG)
    check(plots.density(nb, LONG, X, y))
    check(plots.density(nb, LONG))


def test_heights_are_those_of_the_table_and_cuts_hang_as_long_as_they_are_probable():
    nb, X, y = fitted(2)
    ax = plots.density(nb, "size", X, y)
    table = bnb.density_table(nb, ["size"], bars=40)
    steps = [patch.get_data() for patch in ax.patches]
    for (heights, edges, _), label in zip(steps, nb.classes_, strict=True):
        own = table[table["class"] == label]
        np.testing.assert_allclose(heights[1:-1], own["density"].to_numpy()[1:-1], rtol=1e-12)
        np.testing.assert_allclose(edges[1:-1], own["high"].to_numpy()[:-1])
        assert (heights * np.diff(edges)).sum() == pytest.approx(1.0)
    (cuts,) = [c for c in ax.collections if hasattr(c, "get_segments")]
    lengths = [segment[1, 1] - segment[0, 1] for segment in cuts.get_segments()]
    np.testing.assert_allclose(lengths, 0.25 * bnb.cut_table(nb, ["size"])["probability"], rtol=1e-9)
    assert "90% intervals" in said(ax)
    assert "normal density" in said(ax)


def test_bad_arguments():
    nb, X, y = fitted(2)
    refused("X and y must be passed together", plots.density, nb, "size", X)
    refused("is not binned", plots.density, bnb.MixedNB(gaussian=["size"], binned=["other"]).fit(X, y), "size")
    constant = bnb.BinnedNB().fit([[1.0], [1.0]], [0, 1])
    refused(r"was not cut \(it has one bin\)", plots.density, constant, 0)
