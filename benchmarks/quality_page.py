"""Results of benchmarks.quality in docs/quality.md, docs/structures.md and README.md: tables and a dot plot."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.methods import METHODS, OF_STRUCTURES
from benchmarks.tables import FAMILIAR, SMALL, SOURCES, UNTUNED

BEGIN = "<!-- figures: written by python -m benchmarks.quality -->"
END = "<!-- end of figures -->"
REFERENCE, PEER = "naive", "boosting"
"""Methods whose losses divide those of the others in the figure and in the summaries."""
OURS = ("default", "experts")
IN_README = {
    "naive": "naive Bayes",
    "default": "`WeightedNB()`",
    "experts": '`WeightedNB(experts="auto")`',
    "logistic": "logistic regression",
    "forest": "random forest",
    "boosting": "gradient boosting",
}
README_TABLES = ("vote", "breast.cancer", "car", "digits", "pima", "adult")

BLUE, ORANGE, GREEN, GREY, BLACK = "#0072B2", "#D55E00", "#009E73", "#888888", "#000000"
LOOK = {
    "default": (BLUE, "H"),
    "experts": (ORANGE, "D"),
    "logistic": (BLACK, "|"),
    "forest": (GREEN, "^"),
    "boosting": (BLACK, "1"),
    "slower": (GREY, "x"),
    "lightgbm": (BLACK, "2"),
}
"""Colour and mark of a method."""
STROKES = "x+|123"
NOT_YET = "not run yet"
NUMERIC = ("log_loss", "se", "clipped_log_loss", "brier", "error", "seconds")
TICKS = (0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10)


def write(rows: pd.DataFrame, folder: Path) -> None:
    """Write quality.csv and quality.svg in `_generated`, and the figures of the pages that exist.

    `rows` has the columns of `quality.Row`. Rows of tables that `rows` lacks are taken from an earlier quality.csv.
    """
    generated = folder / "_generated"
    generated.mkdir(parents=True, exist_ok=True)
    stored = generated / "quality.csv"
    if stored.exists():
        earlier = read(stored)
        rows = pd.concat([rows, earlier[~earlier["table"].isin(rows["table"])]])
    orders = {"table": list(SOURCES), "method": [*METHODS, *OF_STRUCTURES]}
    rows = rows[rows["table"].isin(SOURCES)].sort_values(
        ["table", "method"], key=lambda names: names.map(orders[str(names.name)].index)
    )
    rows.to_csv(stored, index=False, float_format="%.6g")
    rows = read(stored)  # the pages have the digits of the file
    figure(rows, generated / "quality.svg")
    for name, contents in PAGES.items():
        if (page := folder / name).exists():
            before, _, after = split(page)
            page.write_text(f"{before}{BEGIN}\n{contents(rows)}\n{END}{after}", encoding="utf-8")


def read(path: Path) -> pd.DataFrame:
    """Read quality.csv."""
    return pd.read_csv(path, keep_default_na=False, na_values={name: "" for name in NUMERIC})


def split(page: Path) -> tuple[str, str, str]:
    """Return the text of a page before, between and after the marks of its figures."""
    text = page.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        raise ValueError(f"{page} has no place for figures: it needs the lines {BEGIN!r} and {END!r}.")
    before, _, rest = text.partition(BEGIN)
    between, _, after = rest.partition(END)
    return before, between, after


def figures(rows: pd.DataFrame) -> str:
    """Return the results of all methods but structures in Markdown."""
    rows = rows[rows["method"].isin(METHODS)]
    samples = rows[rows["table"].isin(SMALL)]
    parts = [
        _runs(rows),
        "![Ratio of the held-out log loss of each method to that of plain naive Bayes, one row per table]"
        "(_generated/quality.svg)",
        "### Tables that nobody tuned on",
        *_results(rows[rows["table"].isin(UNTUNED)]),
        "### Tables that this project has looked at for years",
        *_results(rows[rows["table"].isin(FAMILIAR)]),
        *(_few_rows(samples) if len(samples) else ()),
        "### Clipped log loss",
        "**Clipped log loss** (probabilities of at least 1e-15), where it is more than .001 lower than the log loss:",
        _clipped(rows),
        _left_out(rows),
    ]
    return "\n\n".join(part for part in parts if part)


def _results(rows: pd.DataFrame) -> list[str]:
    """Return the summary and all scores of a list of tables."""
    return [
        _comparison(rows),
        "**Log loss**:",
        _scores(rows, "log_loss"),
        "**Standard error** of the log loss over rows:",
        _scores(rows, "se", bold=False),
        "**Brier score**:",
        _scores(rows, "brier", bold=False),
        "**Error rate**:",
        _scores(rows, "error", bold=False),
        "**Seconds** to fit and predict:",
        _scores(rows, "seconds", bold=False),
    ]


def _few_rows(rows: pd.DataFrame) -> list[str]:
    return [
        "### Few training rows",
        "**Log loss** with as many training rows as the number after the slash: mean over five stratified samples, "
        "scored on up to 2,000 other rows:",
        _scores(rows, "log_loss"),
    ]


def structures(rows: pd.DataFrame) -> str:
    """Return the log losses of structures in Markdown."""
    compared = [*OF_STRUCTURES, "default", "naive", "logistic", "boosting"]
    measured = rows["table"].map(rows[rows["method"].isin(OF_STRUCTURES)].groupby("table")["log_loss"].count()) > 0
    rows = rows[rows["method"].isin(compared) & measured]
    return f"{_runs(rows)}\n\n{_scores(rows, 'log_loss', bold=False)}"


def summary(rows: pd.DataFrame) -> str:
    """Return log losses with standard errors on some tables in Markdown, and ratios to boosting over untuned tables."""
    shown = rows[rows["table"].isin(README_TABLES) & rows["log_loss"].notna()]
    keys = [key for key in IN_README if key in shown["method"].to_numpy()]
    body = []
    for table in (name for name in README_TABLES if name in shown["table"].to_numpy()):
        scores = rows[rows["table"] == table].set_index("method")
        losses = scores.reindex(keys)[["log_loss", "se"]]
        cells = {
            key: "–" if np.isnan(loss) else f"{_number(loss)} ± {_number(se)}" for key, loss, se in losses.itertuples()
        }
        if (best := _clear_best(scores[scores.index.isin(keys)])) is not None:
            cells[best] = f"**{cells[best]}**"
        body.append([f"{table}, {scores['rows'].iloc[0]:,}", *cells.values()])
    wide = _wide(rows[rows["table"].isin(UNTUNED)], "log_loss")[keys].dropna()
    ratios = _geometric_means(wide.div(wide[PEER], axis="index"))
    last = f"loss / that of boosting, {len(wide)} other tables"
    body.append([last, *(_number(ratios[key], "{:.2f}") for key in keys)])
    return _markdown(["table, rows", *(IN_README[key] for key in keys)], body)


PAGES: dict[str, Callable[[pd.DataFrame], str]] = {
    "quality.md": figures,
    "structures.md": structures,
    "../README.md": summary,
}
"""What is written between the marks of a page, by its path from the folder docs."""


def _geometric_means(ratios: pd.DataFrame) -> pd.Series:
    return np.exp(np.log(ratios).mean())


def _runs(rows: pd.DataFrame) -> str:
    """Return the date, machine and versions of each run, with its methods and tables."""
    measured = rows[rows["run"] != ""]
    runs = [(run, part["method"].unique(), part["table"].unique()) for run, part in measured.groupby("run", sort=False)]
    if len(runs) == 1:
        return f"{runs[0][0]}."
    n_tables = measured["table"].nunique()
    lines = [
        f"- {', '.join(f'`{method}`' for method in methods)} on "
        f"{'all tables' if len(tables) == n_tables else ', '.join(tables)}: {run}."
        for run, methods, tables in runs
    ]
    return "\n".join(lines)


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


def _clear_best(scores: pd.DataFrame) -> str | None:
    """Return the method whose log loss on a table is clearly below that of every other method, if all were measured."""
    if scores["left_out"].eq(NOT_YET).any():
        return None
    measured = scores.dropna(subset="log_loss")
    best = str(measured["log_loss"].idxmin())
    others = measured["clearly_above"].drop(best)
    return best if all(best in names.split() for names in others) else None


def _scores(rows: pd.DataFrame, score: str, bold: bool = True) -> str:
    """Return a score of each method on each table; the clearly lowest log loss of a table may be bold."""
    wide, body = _wide(rows, score), []
    for name, values in wide.T.items():
        scores = rows[rows["table"] == name].set_index("method")
        best = _clear_best(scores) if bold else None
        cells = (f"**{_number(value)}**" if key == best else _number(value) for key, value in values.items())
        body.append([f"{name}, {scores['rows'].iloc[0]:,}", *cells])
    return _markdown(["table, rows", *wide.columns], body)


def _comparison(rows: pd.DataFrame) -> str:
    """Return ratios of log losses to those of boosting, and numbers of tables with clearly better and worse losses."""
    wide, body = _wide(rows, "log_loss"), []
    ratios = wide.div(wide[PEER], axis="index")
    means, above = _geometric_means(ratios), rows.set_index(["method", "table"])["clearly_above"].str.split()
    ours = [name for name in OURS if name in wide]
    for method in wide:
        cells = [str(method), str(ratios[method].count()), _number(means[method], "{:.2f}")]
        for name in ours:
            better = sum(name in names for names in above[method])
            worse = sum(method in names for names in above[name])
            cells.append("–" if name == method else f"{better} / {worse}")
        body.append(cells)
    header = ["method", "tables", f"ratio to `{PEER}`", *(f"`{name}` clearly better / worse" for name in ours)]
    return _markdown(header, body)


def _clipped(rows: pd.DataFrame) -> str:
    higher = rows[rows["log_loss"] > rows["clipped_log_loss"] + 1e-3]
    losses = higher["clipped_log_loss"].map(_number), higher["log_loss"].map(_number)
    body = list(zip(higher["table"], higher["method"], *losses, strict=True))
    return _markdown(["table", "method", "clipped log loss", "log loss"], body) if body else "None."


def _left_out(rows: pd.DataFrame) -> str:
    """Return which methods were not run, on which tables, and why."""
    tables: dict[tuple[str, str], list[str]] = {}
    for row in rows[rows["left_out"] != ""].itertuples():
        tables.setdefault((row.left_out, row.method), []).append(row.table)
    lines = [f"- `{method}` on {', '.join(names)}: {reason}" for (reason, method), names in tables.items()]
    if absent := [name for name in SOURCES if name not in rows["table"].to_numpy()]:
        lines.append(f"- all methods on {', '.join(absent)}: {NOT_YET}")
    return "\n".join(["Not run:", "", *lines]) if lines else ""


def figure(rows: pd.DataFrame, path: Path) -> None:
    """Draw ratios of log loss to the reference: one row per table, one mark per method; untuned tables first."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "bayesnb"
    import matplotlib.pyplot as plt

    wide = _wide(rows[rows["method"].isin([*LOOK, REFERENCE])], "log_loss")
    wide = wide.loc[[name for name in (*UNTUNED, *FAMILIAR) if name in wide.index]]
    ratio = wide.drop(columns=REFERENCE).div(wide[REFERENCE], axis="index")
    place = np.arange(len(ratio))[::-1]
    offsets = np.linspace(0.32, -0.32, ratio.shape[1] + 2)[1:-1]
    fig, ax = plt.subplots(figsize=(9.0, 1.2 + 0.42 * len(ratio)), layout="constrained")
    for y in place[::2]:
        ax.axhspan(y - 0.5, y + 0.5, color="0.96", lw=0)
    ax.axvline(1, color="0.5", lw=1)
    ax.axhline(len(ratio) - 0.5 - sum(name in UNTUNED for name in ratio.index), color="0.5", lw=1)
    for offset, (method, values) in zip(offsets, ratio.items(), strict=True):
        colour, mark = LOOK[str(method)]
        ax.plot(
            values,
            place + offset,
            ls="none",
            marker=mark,
            ms=7 if mark in STROKES else 6,
            mew=1.3,
            color=colour,
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
