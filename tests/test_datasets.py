"""The embedded data against the textbook and the file."""

import csv

import pandas as pd
import pytest

from bayesnb.datasets import load_watermelon
from tests.data import path_of


def test_columns_and_classes():
    melon = load_watermelon()
    assert melon.feature_names == ["色泽", "根蒂", "敲声", "纹理", "脐部", "触感", "密度", "含糖率"]
    assert list(melon.data.columns) == melon.feature_names
    assert melon.data.shape == (17, 8)
    assert melon.target.name == "好瓜"
    assert melon.target.value_counts().to_dict() == {"否": 9, "是": 8}
    assert [melon.data[name].dtype for name in ("密度", "含糖率")] == [float, float]
    assert "Zhou" in melon.DESCR
    assert "4.3" in melon.DESCR


@pytest.mark.parametrize(
    ("column", "label", "mean", "sd"),
    [
        ("密度", "是", 0.574, 0.129),
        ("密度", "否", 0.496, 0.195),
        ("含糖率", "是", 0.279, 0.101),
        ("含糖率", "否", 0.154, 0.108),
    ],
)
def test_moments_printed_in_the_book(column, label, mean, sd):
    melon = load_watermelon()
    values = melon.data.loc[melon.target == label, column]
    assert values.mean() == pytest.approx(mean, abs=5e-4)
    assert values.std(ddof=1) == pytest.approx(sd, abs=5e-4)


def test_same_as_the_file():
    with path_of("watermelon3.csv").open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    melon = load_watermelon()
    ours = pd.concat([melon.data, melon.target], axis=1).to_numpy().tolist()
    assert ours == [[*row[1:7], float(row[7]), float(row[8]), row[9]] for row in rows]


def test_a_new_copy_each_time():
    melon = load_watermelon()
    melon.data.loc[0, "密度"] = -1.0
    assert load_watermelon().data.loc[0, "密度"] == 0.697


def test_english_is_the_same_table():
    """Every distinct value has one name, and rows stay where they are."""
    melon, english = load_watermelon(), load_watermelon(language="en")
    assert english.feature_names == ["colour", "root", "sound", "texture", "umbilicus", "touch", "density", "sugar"]
    assert english.target.name == "ripe"
    assert english.target.value_counts().to_dict() == {"no": 9, "yes": 8}
    for ours, theirs in zip([*melon.feature_names], english.feature_names, strict=True):
        assert (pd.factorize(english.data[theirs])[0] == pd.factorize(melon.data[ours])[0]).all()
    words = english.data.to_numpy().astype(str).ravel().tolist()
    assert all(word.isascii() for word in [*words, *english.data.columns, *english.target])
    assert english.data["density"].tolist() == melon.data["密度"].tolist()
    with pytest.raises(ValueError, match="language='fr' is unknown; use 'zh' or 'en'"):
        load_watermelon(language="fr")
