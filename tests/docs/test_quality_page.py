"""The results of benchmarks.quality on the pages are those of quality.csv, and its rules hold on small examples."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks import quality, quality_page
from benchmarks.methods import Prediction
from benchmarks.tables import FAMILIAR, SMALL, SOURCES, UNTUNED, Table

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", quality_page.PAGES)
def test_a_page_has_the_results_of_the_file(page):
    rows = quality_page.read(DOCS / "_generated" / "quality.csv")
    assert quality_page.split(DOCS / page)[1].strip() == quality_page.PAGES[page](rows).strip()


def test_every_table_is_in_one_list():
    assert len(SOURCES) == len(FAMILIAR) + len(UNTUNED) + len(SMALL)
    assert set(quality_page.read(DOCS / "_generated" / "quality.csv")["table"]) <= set(SOURCES)


def scores(losses):
    return quality.Scores(np.tile(losses, (4, 1)), np.ones(3), np.array("a run"))


def test_clearly_above_is_two_paired_standard_errors():
    one = scores(np.zeros(100))
    noise = np.where(np.arange(100) % 2, 1.0, -1.0)
    se = noise.std(ddof=1) / 10
    assert scores(noise + 2.01 * se).is_clearly_above(one)
    assert not scores(noise + 1.99 * se).is_clearly_above(one)
    assert not one.is_clearly_above(one)
    infinite = scores(np.array([math.inf] + [0.0] * 99))
    assert infinite.is_clearly_above(one)
    assert not one.is_clearly_above(infinite)
    assert not infinite.is_clearly_above(infinite)


def test_a_row_counts_once(tmp_path):
    """Ten seeds predict each row of a small table. What is kept in a file is not measured again."""
    y = np.repeat(["a", "b"], 15)
    table = Table(pd.DataFrame({"x": np.arange(30.0)}), y)
    calls = []

    def guess(table, fold):
        calls.append(fold)
        return Prediction(np.full((len(fold.y_test), 2), -math.log(2)), np.array(["a", "b"]), float(len(calls)))

    first = quality.judge_once(table, guess, tmp_path / "one.npz")
    again = quality.judge_once(table, guess, tmp_path / "one.npz")
    assert len(calls) == 30  # ten seeds of three folds
    assert first.scores.shape == again.scores.shape == (4, 30)
    row = again.row("table", 30, "guess")
    assert row.log_loss == pytest.approx(math.log(2))
    assert (row.se, row.seconds) == (pytest.approx(0, abs=1e-12), 15.5)
