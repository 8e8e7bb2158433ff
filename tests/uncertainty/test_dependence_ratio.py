"""Ratio of the sds of log odds with and without the dependence of columns."""

import numpy as np
import pytest

import bayesnb as bnb


def test_dependence_ratio_is_one_for_independent_columns_and_the_root_of_copies_of_one_column():
    rng = np.random.default_rng(2)
    label = rng.integers(0, 2, 400)
    alone = rng.normal(size=(400, 4))
    same = np.repeat(alone[:, :1], 4, axis=1) + 1e-3 * alone
    for numbers, expected in ((alone, 1.0), (same, 2.0)):
        nb = bnb.GaussianNB().fit(numbers, label)
        ratio = bnb.dependence_ratio(nb, numbers, rows=(numbers, label))
        assert np.median(ratio) == pytest.approx(expected, rel=0.15)
