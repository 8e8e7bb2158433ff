"""Groups of rows: which are read, and what users are told."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import bayesnb as bnb
from bayesnb.encoding.units import check_groups
from tests.raises import refused


@pytest.mark.parametrize(
    "groups",
    [
        ["b", "a", "b", "c"],
        [2, 1, 2, 3],
        np.array([0.5, 0.25, 0.5, 8.0]),
        pd.Series(["b", "a", "b", "c"], index=[3, 2, 1, 0], dtype="category"),
        pl.Series(["b", "a", "b", "c"]),
        np.array(["2021-02-01", "2021-01-01", "2021-02-01", "2022-01-01"], "M8[D]"),
        [("ann", 1), ("bob", 1), ("ann", 1), ("ann", 2)],
        ["b", 1, "b", True],
    ],
    ids=lambda groups: type(groups).__name__,
)
def test_groups_of_any_type_are_numbered_as_they_occur(groups):
    assert check_groups(groups, 4).tolist()[:3] == [0, 1, 0]


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ([1, 2, 1], r"groups has shape \(3,\), but X has 4 rows\. Pass an array of shape \(4,\)"),
        ([[1, 2]] * 4, r"groups has shape \(4, 2\), but X has 4 rows"),
        ("abcd", r"groups has shape \(\), but X has 4 rows"),
        ([1, 2, None, 3], "groups: the group of row 2 is missing. Give every row a group"),
        (np.array([1.0, np.nan, 1.0, 2.0]), "groups: the group of row 1 is missing"),
        (pd.Series([1, 2, 2, pd.NA], dtype="Int64"), "groups: the group of row 3 is missing"),
        (["ann"] * 4, "groups: all 4 rows are in one group, 'ann', but random halves of the rows need two groups"),
    ],
)
def test_unusable_groups_are_refused(groups, said):
    X, y = [[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1]
    for nb in (bnb.MixedNB(), bnb.WeightedNB(), bnb.KDB()):
        refused(said, nb.fit, X, y, groups=groups)
        assert not hasattr(nb, "classes_")


def test_classifiers_that_draw_no_halves_take_no_groups():
    for nb in (bnb.CategoricalNB(), bnb.GaussianNB(), bnb.BinnedNB(), bnb.AODE(), bnb.TreeAveragedNB()):
        refused("groups", nb.fit, [[1.0], [2.0]], [0, 1], groups=[0, 1], error=TypeError)
