"""Bars of a waterfall are the contributions, each starting where the previous one ended."""

import numpy as np
import pandas as pd
import pytest

from tests.raises import refused

pytest.importorskip("matplotlib")

from bayesnb import plots
from tests.plots.figures import LONG, check, said, segments


def reasons(n: int, row: object = 0, seed: int = 0) -> pd.DataFrame:
    """A table like that of `explain`: the class term, then n features by decreasing size."""
    rng = np.random.default_rng(seed)
    size = np.sort(rng.exponential(size=n))[::-1] * rng.choice([-1, 1], n)
    return pd.DataFrame(
        {
            "row": [row] * (n + 1),
            "feature": ["(class)", *(f"{LONG} {j:03d}" for j in range(n))],
            "value": pd.Series([None, *rng.normal(size=n)], dtype=object),
            "of": "spam",
            "against": "ham",
            "contribution": [-1.8, *size],
            "sd": rng.uniform(0.05, 0.5, n + 1),
        }
    )


def bars(ax) -> np.ndarray:
    """(n, 2) where each begins and ends."""
    return np.array([[bar.get_x(), bar.get_x() + bar.get_width()] for bar in ax.patches])


def intervals(ax) -> np.ndarray:
    lines = segments(ax)
    return lines[lines[:, 0, 1] == lines[:, 1, 1]][:, :, 0]


@pytest.mark.parametrize("n", [1, 13, 14, 200])
def test_bars_lead_from_the_classes_to_the_log_odds(n):
    frame = reasons(n)
    ax = check(plots.explain(frame))
    drawn, total = bars(ax), frame["contribution"].sum()
    shown = n if n <= 13 else 12
    assert len(drawn) == 1 + shown + (n > 13) + 1
    steps = np.diff(drawn, axis=1)[:, 0]
    np.testing.assert_allclose(steps[: shown + 1], frame["contribution"][: shown + 1], rtol=1e-12)
    np.testing.assert_allclose(drawn[1:-1, 0], drawn[:-2, 1], rtol=1e-9)
    np.testing.assert_allclose([drawn[0, 0], *drawn[-1]], [0.0, 0.0, total], atol=1e-12)
    assert drawn[-2, 1] == pytest.approx(total)
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    assert names[0] == "classes"
    assert names[-1] == "log odds"
    assert (f"… and {n - 12} more" in names) == (n > 13)
    ends = intervals(ax)
    np.testing.assert_allclose(ends.mean(axis=1), drawn[:, 1], atol=1e-9)
    np.testing.assert_allclose(np.diff(ends)[: shown + 1, 0], 2 * 1.6449 * frame["sd"][: shown + 1], rtol=1e-9)
    assert np.diff(ends)[-1, 0] == pytest.approx(2 * 1.6449 * np.linalg.norm(frame["sd"]))
    assert "spam against ham" in said(ax)


def test_one_row_of_several_in_any_order_of_its_lines():
    frame = pd.concat([reasons(3, "a"), reasons(5, "b", 1)]).sample(frac=1.0, random_state=0)
    ax = check(plots.explain(frame, row="b"))
    np.testing.assert_allclose(np.diff(bars(ax))[:-1, 0], reasons(5, "b", 1)["contribution"], rtol=1e-9)
    assert "row b" in said(ax)
    refused("frame has 2 rows of X; choose one, such as row=", plots.explain, frame)
    refused("row='c' is not a row of X in frame", plots.explain, frame, row="c")
    refused(r"frame has 2 lines with the feature '\(class\)' for row 'a'", plots.explain, frame.assign(row="a"))


def test_what_is_no_waterfall_is_refused():
    refused("frame must be the result of bayesnb.explain", plots.explain, [1], error=TypeError)
    refused("frame has no column 'sd'", plots.explain, reasons(2).drop(columns="sd"))
    infinite = reasons(2)
    infinite.loc[1, "contribution"] = -np.inf
    refused(r"the contribution of .* is -inf", plots.explain, infinite)
