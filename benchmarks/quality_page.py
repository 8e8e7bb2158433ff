"""Tables in Markdown and a dot plot of the results of benchmarks.quality, for docs/quality.md."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.tables import FEW_ROWS

BEGIN = "<!-- figures: written by python -m benchmarks.quality -->"
END = "<!-- end of figures -->"
REFERENCE = "naive"

BLUE, SKY, ORANGE, GREEN, PINK, GREY, BLACK = (
    "#0072B2",
    "#56B4E9",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#888888",
    "#000000",
)
LOOK = {
    "default": (BLUE, "H"),
    "naive": (BLUE, "o"),
    "binned": (SKY, "p"),
    "auto": (SKY, "o"),
    "TAN": (GREEN, "^"),
    "AODE": (ORANGE, "s"),
    "KDB": (PINK, "D"),
    "trees": (GREEN, "v"),
    "sklearn": (GREY, "x"),
    "calibrated": (GREY, "+"),
    "logistic": (BLACK, "|"),
    "boosting": (BLACK, "1"),
    "lightgbm": (BLACK, "2"),
    "ebm": (BLACK, "3"),
    "khiops": (BLACK, "*"),
}
"""Colour and mark of a method."""
OURS = ("naive", "binned", "auto", "TAN", "AODE", "KDB", "trees")
"""Methods of bayesnb, whose marks are filled with weights and hollow without."""
STROKES = "x+|123"
TICKS = (0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10)


def write(rows: pd.DataFrame, machine: str, folder: Path) -> None:
    """Write quality.md, and quality.csv and quality.svg in `_generated`; between the marks of an existing page.

    `rows` has the columns of `quality.Row`, and must include the reference method.
    """
    generated = folder / "_generated"
    generated.mkdir(parents=True, exist_ok=True)
    rows.to_csv(generated / "quality.csv", index=False, float_format="%.6g")
    page = folder / "quality.md"
    before, after = "# Quality\n\n", ""
    if page.exists():
        text = page.read_text(encoding="utf-8")
        if BEGIN not in text or END not in text:
            raise ValueError(f"{page} has no place for figures: it needs the lines {BEGIN!r} and {END!r}.")
        before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    figure(rows[~rows["table"].str.contains("/")], generated / "quality.svg")
    page.write_text(f"{before}{BEGIN}\n{figures(rows, machine)}\n{END}{after or chr(10)}", encoding="utf-8")


def figures(rows: pd.DataFrame, machine: str) -> str:
    """Return all results in Markdown."""
    of_sample = rows["table"].str.contains("/")
    every, samples, rows = rows, rows[of_sample], rows[~of_sample]
    parts = [
        machine,
        "![Ratio of the held-out log loss of each method to that of plain naive Bayes, one row per table]"
        "(_generated/quality.svg)",
        "**Log loss**, with probabilities clipped at 1e-15; the lowest loss of each table is bold:",
        _scores(rows, "clipped"),
        f"Ratio of the log loss of each method to that of `{REFERENCE}`, over the tables on which both ran, "
        "so each line may be for other tables:",
        _ratios(rows),
        "**Log loss with few training rows** (the number after the slash): mean over five stratified samples, "
        "scored on the other rows:",
        _scores(samples, "clipped") if len(samples) else "",
        "**Standard errors** of the log loss over rows, for tables of fewer than 200 rows:",
        _scores(rows[rows["rows"] < FEW_ROWS], "se", best=False),
        "**Log loss without clipping**, where it is more than .001 higher:",
        _strict(rows),
        "**Brier score**:",
        _scores(rows, "brier"),
        "**Error rate**:",
        _scores(rows, "error"),
        "**Seconds**:",
        _scores(rows, "seconds", best=False),
        _left_out(every),
    ]
    return "\n\n".join(part for part in parts if part)


def _wide(rows: pd.DataFrame, score: str) -> pd.DataFrame:
    """Pivot a score: one row per table, one column per method, in the order of measurement."""
    wide = rows.pivot(index="table", columns="method", values=score)
    return wide.loc[rows["table"].unique(), rows["method"].unique()].dropna(axis="columns", how="all")


def _markdown(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|", *(f"| {' | '.join(cells)} |" for cells in body)]
    return "\n".join(lines)


def _number(value: float, pattern: str = "{:,.3f}") -> str:
    """Format a number without the zero before the decimal point."""
    if np.isnan(value):
        return "–"
    text = re.sub(r"^([+-]?)0\.", r"\1.", pattern.format(value))
    return "∞" if np.isposinf(value) else text.replace("-", "−")


def _scores(rows: pd.DataFrame, score: str, best: bool = True) -> str:
    wide, size = _wide(rows, score), dict(zip(rows["table"], rows["rows"], strict=True))
    body = []
    for name, values in wide.T.items():
        least = _number(values.min())
        cells = [_number(value) for value in values]
        body.append([f"{name}, {size[name]:,}", *(f"**{cell}**" if best and cell == least else cell for cell in cells)])
    return _markdown(["table, rows", *wide.columns], body)


def _to_reference(rows: pd.DataFrame) -> pd.DataFrame:
    wide = _wide(rows, "clipped")
    return wide.drop(columns=REFERENCE).div(wide[REFERENCE], axis="index")


def _ratios(rows: pd.DataFrame) -> str:
    wide, body = _wide(rows, "clipped"), []
    for method, ratio in _to_reference(rows).items():
        difference = wide[method] - wide[REFERENCE]
        body.append(
            [
                str(method),
                _number(np.exp(np.log(ratio).mean()), "{:.2f}"),
                _number(float(ratio.median()), "{:.2f}"),
                f"{(ratio < 1).sum()} of {ratio.count()}",
                f"{_number(float(difference.max()), '{:+.3f}')} ({difference.idxmax()})",
            ]
        )
    return _markdown(["method", "geometric mean", "median", "below 1", "worst difference"], body)


def _strict(rows: pd.DataFrame) -> str:
    higher = rows[rows["log_loss"] > rows["clipped"] + 1e-3]
    columns = (higher["table"], higher["method"], higher["clipped"].map(_number), higher["log_loss"].map(_number))
    body = list(zip(*columns, strict=True))
    return _markdown(["table", "method", "clipped", "not clipped"], body) if body else "None."


def _left_out(rows: pd.DataFrame) -> str:
    reasons = rows[rows["left_out"] != ""].groupby("left_out", sort=False)["method"].unique()
    lines = [f"- {', '.join(f'`{method}`' for method in methods)}: {reason}" for reason, methods in reasons.items()]
    return "\n".join(["Not run:", "", *lines]) if lines else ""


def figure(rows: pd.DataFrame, path: Path) -> None:
    """Draw ratios of log loss to the reference: one row per table, one mark per method."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "bayesnb"
    import matplotlib.pyplot as plt

    ratio = _to_reference(rows)
    place = np.arange(len(ratio))[::-1]
    offsets = np.linspace(0.32, -0.32, ratio.shape[1] + 2)[1:-1]
    fig, ax = plt.subplots(figsize=(9.0, 1.2 + 0.42 * len(ratio)), layout="constrained")
    for y in place[::2]:
        ax.axhspan(y - 0.5, y + 0.5, color="0.96", lw=0)
    ax.axvline(1, color="0.5", lw=1)
    for offset, (method, values) in zip(offsets, ratio.items(), strict=True):
        name = str(method).removesuffix("+w")
        colour, mark = LOOK[name]
        hollow = name in OURS and name == method  # unweighted
        ax.plot(
            values,
            place + offset,
            ls="none",
            marker=mark,
            ms=7 if mark in STROKES else 6,
            mew=1.3,
            color=colour,
            mfc="white" if hollow else colour,
            label=method,
        )
    # A square-root scale shows ratios near 0 and separates ratios near 1.
    ax.set_xscale("function", functions=(lambda x: np.sqrt(np.maximum(x, 0)), np.square))
    top = 1.05 * max(1.0, np.nanmax(ratio.to_numpy()))
    ax.set(xlim=(0, top), ylim=(-0.5, len(ratio) - 0.5))
    ticks = [tick for tick in TICKS if tick <= top]
    ax.set_xticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    ax.set_xlabel("held-out log loss divided by that of plain naive Bayes (square-root scale)")
    ax.set_yticks(place, labels=ratio.index)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", alpha=0.3)
    ax.spines[["top", "right", "left"]].set_visible(False)
    fig.legend(loc="outside upper center", ncols=6, frameon=False, fontsize="small", handletextpad=0.2)
    fig.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(fig)
