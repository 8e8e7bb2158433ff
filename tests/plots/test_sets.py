"""The figure of set sizes: what is drawn is what the sets are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from tests.refusals import refused

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

from bayesnb import plots
from bayesnb.prediction import PredictionSets
from tests.plots.figures import check, dots, said, segments


def sets(n_rows: int, n_classes: int, power: float) -> tuple[PredictionSets, np.ndarray]:
    """p-values of the true labels are uniform, those of others smaller."""
    rng = np.random.default_rng(n_classes)
    y, p = rng.integers(0, n_classes, n_rows), rng.random((n_rows, n_classes)) ** power
    p[np.arange(n_rows), y] = rng.random(n_rows)
    return PredictionSets(p > 0, p, np.arange(n_classes), 0.0).at(0.9), y


@pytest.mark.parametrize(("n_rows", "n_classes", "power"), [(1, 2, 1.0), (30, 2, 9.0), (5_000, 60, 14.0)])
def test_nothing_overlaps(n_rows, n_classes, power):
    found, y = sets(n_rows, n_classes, power)
    check(plots.set_sizes(found))
    check(plots.set_sizes(found, y))


def test_in_axes_of_ones_own():
    found, y = sets(300, 3, 6.0)
    ax = Figure(figsize=(12, 6), layout="constrained").add_subplot()
    assert check(plots.set_sizes(found, y, ax=ax)) is ax


def test_bars_are_shares_of_sizes_and_marks_their_coverage():
    found, y = sets(300, 3, 6.0)
    ax = plots.set_sizes(found, y)
    count = np.bincount(found.size)
    assert len(count) == 4
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], count / 300)
    covered = found.members[np.arange(300), y]
    share = [covered[found.size == k].mean() for k in (1, 2, 3)]
    np.testing.assert_allclose(dots(ax), np.column_stack([[1, 2, 3], share]))
    wilson = [
        binomtest(int(covered[found.size == k].sum()), int(count[k])).proportion_ci(method="wilson") for k in (1, 2, 3)
    ]
    np.testing.assert_allclose(segments(ax)[:, :, 1], wilson)
    for text in (
        f"no label: {count[0]}",
        f"one: {count[1]}",
        f"several: {count[2:].sum()}",
        "300 rows",
        "90% coverage",
    ):
        assert text in said(ax)
    assert f"{100 * covered.mean():.4g}% of the sets" in said(ax)
    assert "true label" not in said(plots.set_sizes(found))


def test_what_it_is_of():
    found, y = sets(30, 2, 9.0)
    refused("predict_set of bayesnb.conformal returns", plots.set_sizes, found.members, error=TypeError)
    refused("X has 30 rows, y has 2 labels", plots.set_sizes, found, y[:2])
    none = PredictionSets(np.zeros((0, 2), bool), np.zeros((0, 2)), np.arange(2), 0.9)
    refused("there is no row", plots.set_sizes, none)
