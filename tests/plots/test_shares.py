"""The figure of prevalence: what is drawn is what the result says."""

from __future__ import annotations

import numpy as np
import pytest

from tests.refusals import refused

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

import bayesnb as bnb
from bayesnb import plots
from tests.plots.figures import LONG, check, said

pytestmark = pytest.mark.slow("compiles kernels of its own")


def result(n_classes: int, n_rows: int = 300) -> bnb.prediction.prevalence.Prevalence:
    """Some of the classes have no row any more."""
    rng = np.random.default_rng(n_classes)
    y, names = np.repeat(np.arange(n_classes), 10), np.array([f"{LONG} {c:03d}" for c in range(n_classes)])
    nb = bnb.GaussianNB().fit(rng.normal(5.0 * y)[:, None], names[y])
    label = rng.integers(0, (n_classes + 1) // 2, n_rows)
    return bnb.estimate_prevalence(nb, rng.normal(5.0 * label)[:, None], draws=200)


@pytest.mark.parametrize("n_classes", [1, 2, 5, 40])
def test_nothing_overlaps(n_classes):
    check(plots.prevalence(result(n_classes)))


def test_means_intervals_and_training_shares_are_where_they_are():
    found = result(3)
    ax = plots.prevalence(found)
    drawn = [line.get_xdata().tolist() for line in ax.lines]
    for c in range(3):
        ends, mean, training = drawn[3 * c : 3 * c + 3]
        assert (ends, mean, training) == ([found.lower[c], found.upper[c]], [found.mean[c]], [found.training[c]])
    assert "90% interval" in said(ax)
    assert "300 rows without labels" in said(ax)


def test_classes_that_find_no_room_are_counted():
    ax = plots.prevalence(result(40), ax=Figure(figsize=(6, 4), layout="constrained").subplots())
    shown = len(ax.get_yticks())
    assert shown < 30
    assert f"{shown} largest of 40 classes; {40 - shown} left out" in said(ax)


def test_what_it_is_of():
    refused("estimate_prevalence returns", plots.prevalence, {"a": 0.5}, error=TypeError)
