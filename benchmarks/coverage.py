"""Coverage of 90% intervals of class probabilities: docs/_generated/coverage.csv and coverage.svg.

The truth is the class probability that the same estimator gives after all rows of the population. Intervals of the
posterior, whose columns are independent, stand beside those with the dependence of the training rows (`rows=`).

python -m benchmarks.coverage --out docs/_generated  # about two hours
python -m benchmarks.coverage --settings "levels, copied" "WeightedNB, car" --sizes 100 --sets 10

A run of some settings replaces their lines of coverage.csv, and keeps the others. Nothing is measured on tables whose
file is absent from the folder of `benchmarks.tables`.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import bayesnb as bnb
from benchmarks.tables import FOLDER, SOURCES, Table, adult, arff

SIZES, SETS, TEST_ROWS, POPULATION, DOCUMENTS = (30, 100, 300, 1_000), 40, 100, 50_000, 20_000
PROB, TOLERANCE, LARGEST_SHARE = 0.9, 0.005, 1 / 3
"""Probability of the intervals; and for real tables, the distance from an interval at which the truth counts as covered
and the largest share of the rows of a table in a sample of them."""


class Sample(NamedTuple):
    """Rows, labels, and the groups of the rows if they are not independent."""

    X: Any
    y: np.ndarray
    groups: np.ndarray | None = None


Population = Callable[[int], Sample]
"""Function that draws a number of rows from one population."""
Rng = np.random.Generator


def as_levels(codes: np.ndarray, n_levels: int = 2) -> pd.DataFrame:
    """Return categorical columns that declare all levels, so that a level without rows has a probability."""
    names = [str(level) for level in range(n_levels)]
    return pd.DataFrame(
        {f"l{j}": pd.Categorical.from_codes(column, names) for j, column in enumerate(codes.T.astype(int))}
    )


def as_numbers(values: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(values).rename(columns="x{}".format)


def independent_levels(rng: Rng, columns: int = 12, classes: int = 2, n_levels: int = 2) -> Population:
    """Naive Bayes with level probabilities from their uniform prior."""
    theta = rng.dirichlet(np.ones(n_levels), (columns, classes))

    def draw(n: int) -> Sample:
        y = rng.integers(0, classes, n)
        codes = [(rng.random((n, 1)) > np.cumsum(each, axis=1)[y, :-1]).sum(axis=1) for each in theta]
        return Sample(as_levels(np.column_stack(codes), n_levels), y)

    return draw


def noise(rng: Rng) -> Population:
    """Forty columns of four levels, independent of the class."""

    def draw(n: int) -> Sample:
        return Sample(as_levels(rng.integers(0, 4, (n, 40)), 4), rng.integers(0, 2, n))

    return draw


def copied_levels(rng: Rng) -> Population:
    """Three columns, each copied four times; a tenth of the cells are flipped."""

    def draw(n: int) -> Sample:
        y = rng.integers(0, 2, n)
        z = rng.random((n, 3)) < np.where(y[:, None], [0.7, 0.6, 0.55], [0.3, 0.4, 0.5])
        x = np.repeat(z, 4, axis=1)
        return Sample(as_levels(x ^ (rng.random(x.shape) < 0.1)), y)

    return draw


def paired_levels(rng: Rng, opposed: bool = False) -> Population:
    """Six pairs of columns, given the class as alike as their probabilities allow, or as unlike."""
    p = rng.uniform(size=(2, 2, 6))

    def draw(n: int) -> Sample:
        y, u = rng.integers(0, 2, n), rng.random((n, 6))
        return Sample(as_levels(np.hstack([u < p[0][y], (1 - u if opposed else u) < p[1][y]])), y)

    return draw


def grouped_levels(rng: Rng) -> Population:
    """Five rows a patient, whose twelve columns differ from the patient's by a flip of .15 of the cells."""

    def draw(n: int) -> Sample:
        y = rng.integers(0, 2, n // 5)
        x = np.repeat(rng.random((n // 5, 12)) < np.where(y[:, None], 0.6, 0.45), 5, axis=0)
        return Sample(as_levels(x ^ (rng.random(x.shape) < 0.15)), np.repeat(y, 5), np.repeat(np.arange(n // 5), 5))

    return draw


def independent_numbers(rng: Rng) -> Population:
    """Six normal columns; means and standard deviations differ between the classes by about half of one."""
    mean, sd = rng.normal(0, 0.4, (2, 6)), np.exp(rng.normal(0, 0.2, (2, 6)))

    def draw(n: int) -> Sample:
        y = rng.integers(0, 2, n)
        return Sample(as_numbers(mean[y] + sd[y] * rng.normal(size=(n, 6))), y)

    return draw


def copied_numbers(rng: Rng, heavy_tails: bool = False) -> Population:
    """Two columns, normal or Student-t with four degrees of freedom, each copied three times with noise."""

    def draw(n: int) -> Sample:
        y = rng.integers(0, 2, n)
        z = (rng.standard_t(4, (n, 2)) if heavy_tails else rng.normal(size=(n, 2))) + y[:, None] * [0.8, 0.5]
        return Sample(as_numbers(np.repeat(z, 3, axis=1) + 0.3 * rng.normal(size=(n, 6))), y)

    return draw


def copied_mixed(rng: Rng) -> Population:
    """One normal column, copied as six numbers with noise and as six levels."""

    def draw(n: int) -> Sample:
        y = rng.integers(0, 2, n)
        x = (rng.normal(size=n) + 0.8 * y)[:, None] + 0.3 * rng.normal(size=(n, 12))
        return Sample(as_numbers(x[:, :6]).join(as_levels(x[:, 6:] > 0.4)), y)

    return draw


def counts(rng: Rng, shape: float = np.inf) -> Population:
    """Six columns of counts with means about 20: Poisson, or negative binomial of a shape."""
    mean = 20 * np.exp(rng.normal(0, 0.1, (2, 6)))

    def draw(n: int) -> Sample:
        y = rng.integers(0, 2, n)
        rate = mean[y] * (1.0 if np.isinf(shape) else rng.gamma(shape, size=(n, 6)) / shape)
        return Sample(rng.poisson(rate), y)

    return draw


def documents(rng: Rng, bursts: bool = True) -> Population:
    """Documents of fifteen tokens of 100 words, three times on average in a row if words come in bursts."""
    frequency = 1 / np.arange(1, 101) * np.exp(rng.normal(0, 0.3, (2, 100)))

    def draw(n: int) -> Sample:
        y, X = rng.integers(0, 2, n), np.zeros((n, 100), int)
        for c in (0, 1):
            word = rng.choice(100, ((y == c).sum(), 15), p=frequency[c] / frequency[c].sum())
            np.add.at(X, (np.flatnonzero(y == c)[:, None], word), rng.geometric(1 / 3, word.shape) if bursts else 1)
        return Sample(X, y)

    return draw


def durations(rng: Rng, copies: int = 1) -> Population:
    """Six exponential columns, or two, each repeated three times with noise of a tenth."""
    mean = np.exp(rng.normal(0, 0.4, (2, 6 // copies)))

    def draw(n: int) -> Sample:
        y = rng.integers(0, 2, n)
        x = np.repeat(mean[y] * rng.exponential(size=(n, 6 // copies)), copies, axis=1)
        return Sample(x * (1.0 if copies == 1 else rng.uniform(0.9, 1.1, x.shape)), y)

    return draw


class Setting(NamedTuple):
    """Estimator, function that makes a population, and numbers of rows.

    `least` is the least coverage that is asked for by number of rows; or "default": that of the default on the same
    tables, to .02; or "nominal": the same, or .86 to .94.
    """

    family: str
    make: Callable[[], Any]
    population: Callable[[Rng], Population]
    least: Mapping[int, float] | str
    sizes: tuple[int, ...] = SIZES
    n_population: int = POPULATION


def _normal_or_levels() -> bnb.MixedNB:
    return bnb.MixedNB(numbers="gaussian")


SETTINGS = {
    "levels, naive Bayes true": Setting("levels", bnb.CategoricalNB, independent_levels, "default"),
    "levels, copied": Setting(
        "levels", bnb.CategoricalNB, copied_levels, {30: 0.84, 100: 0.87, 300: 0.87, 1_000: 0.88}
    ),
    "levels, pairs": Setting("levels", bnb.CategoricalNB, paired_levels, "nominal"),
    "levels, opposed pairs": Setting("levels", bnb.CategoricalNB, lambda rng: paired_levels(rng, True), "nominal"),
    "levels, noise": Setting("levels", bnb.CategoricalNB, noise, "nominal", (60,)),
    "levels, 3 classes": Setting(
        "levels", bnb.CategoricalNB, lambda rng: independent_levels(rng, classes=3, n_levels=3), "nominal"
    ),
    "levels, 10 classes": Setting(
        "levels", bnb.CategoricalNB, lambda rng: independent_levels(rng, classes=10, n_levels=3), "nominal"
    ),
    "levels, groups of five rows": Setting(
        "levels", bnb.CategoricalNB, grouped_levels, {30: 0.65, 100: 0.82, 300: 0.86, 1_000: 0.87}
    ),
    "numbers, naive Bayes true": Setting("numbers", bnb.GaussianNB, independent_numbers, "default"),
    "numbers, copied": Setting(
        "numbers", bnb.GaussianNB, copied_numbers, {30: 0.80, 100: 0.85, 300: 0.87, 1_000: 0.88}
    ),
    "numbers, copied, heavy tails": Setting(
        "numbers",
        bnb.GaussianNB,
        lambda rng: copied_numbers(rng, heavy_tails=True),
        {30: 0.76, 100: 0.80, 300: 0.80, 1_000: 0.84},
    ),
    "numbers and levels, copied": Setting("numbers", _normal_or_levels, copied_mixed, {60: 0.80, 300: 0.85}, (60, 300)),
    "counts, naive Bayes true": Setting("counts", bnb.PoissonNB, counts, "default"),
    "counts, overdispersed": Setting("counts", bnb.PoissonNB, lambda rng: counts(rng, shape=1.5), {100: 0.80}),
    "counts, overdispersed, NegativeBinomialNB": Setting(
        "counts", bnb.NegativeBinomialNB, lambda rng: counts(rng, shape=1.5), "default"
    ),
    "documents, naive Bayes true": Setting(
        "counts", bnb.MultinomialNB, lambda rng: documents(rng, bursts=False), "default", n_population=DOCUMENTS
    ),
    "documents, bursts of words": Setting("counts", bnb.MultinomialNB, documents, {}, n_population=DOCUMENTS),
    "durations, naive Bayes true": Setting("counts", bnb.ExponentialNB, durations, "default"),
    "durations, copied": Setting("counts", bnb.ExponentialNB, lambda rng: durations(rng, copies=3), {}),
}
TABLES: dict[str, Callable[[], Table]] = {
    "adult": lambda: adult(20_000),
    **{
        name: lambda name=name: Table(*arff(FOLDER / f"{name}.arff"))
        for name in ("mushroom", "kr.vs.kp", "car", "credit.g", "waveform5000", "vote")
    },
    "pima": SOURCES["pima"].read,
}
"""Tables of the UCI Machine Learning Repository, as ARFF files with the names of Weka's collection."""
ESTIMATORS: dict[str, Callable[[], Any]] = {
    "WeightedNB": bnb.WeightedNB,
    "AODE": bnb.AODE,
    "KDB": bnb.KDB,
    "experts": lambda: bnb.WeightedNB(experts="auto"),
}
OF_LEVELS = ("mushroom", "kr.vs.kp", "car", "vote")
"""Tables without numbers, which `AODE` would take for levels."""
TABLE_SETTINGS = {
    f"{estimator}, {table}": (table, estimator)
    for estimator in ESTIMATORS
    for table in (OF_LEVELS if estimator == "AODE" else TABLES)
}
TABLE_SIZES = (100, 300, 1_000)
LEAST_OF_A_TABLE, LEAST_OF_MEANS = {100: 0.58}, {100: 0.72, 300: 0.82, 1_000: 0.86}


def intervals_without_rows(nb: Any, X: Any, _: Sample) -> tuple[np.ndarray, np.ndarray]:
    return bnb.predict_interval(nb, X, PROB)


def intervals_with_rows(nb: Any, X: Any, rows: Sample) -> tuple[np.ndarray, np.ndarray]:
    return bnb.predict_interval(nb, X, PROB, rows=(rows.X, rows.y), groups=rows.groups)


INTERVALS = {"default": intervals_without_rows, "rows": intervals_with_rows}


def score(make: Callable[[], Any], rows: Sample, X: Any, truth: np.ndarray, tolerance: float = 0.0) -> dict[str, float]:
    """Return coverage, mean width and mean interval score over new rows and classes, for each kind of interval.

    The interval score of 90% is the width plus 20 times the distance of the truth from the interval. All are of
    probabilities, and coverage counts those up to ½ because a probability close to 1 is rounded and its complement is
    not. For two classes this is the coverage of the log odds.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # too few rows to weigh
        nb = make().fit(rows.X, rows.y)
    scores: dict[str, float] = {}
    for name, intervals in INTERVALS.items():
        try:
            lower, upper = intervals(nb, X, rows)
        except NotImplementedError:  # an average over structures has no posterior
            continue
        outside = np.maximum(np.maximum(lower - truth, truth - upper), 0)
        width = (upper - lower).mean()
        scores |= {
            f"{name}_coverage": (outside <= tolerance)[truth <= 0.5].mean(),
            f"{name}_width": width,
            f"{name}_score": width + 2 / (1 - PROB) * outside.mean(),
        }
    return scores


def measure(name: str, n_rows: int, n_sets: int = SETS) -> Iterator[dict[str, Any]]:
    """Yield the scores of intervals on several simulated tables, each with a population of its own."""
    setting = SETTINGS[name]
    for seed in range(n_sets):
        draw = setting.population(np.random.default_rng([seed, n_rows]))
        every, new, rows = draw(setting.n_population), draw(TEST_ROWS), draw(n_rows)
        whole = setting.make().fit(every.X, every.y)
        while not np.isin(whole.classes_, rows.y).all():
            rows = draw(n_rows)
        scores = score(setting.make, rows, new.X, whole.predict_proba(new.X))
        yield dict(family=setting.family, setting=name, rows=n_rows, seed=seed) | scores


def measure_table(name: str, estimator: str, sizes: Iterable[int], n_sets: int = SETS) -> Iterator[dict[str, Any]]:
    """Yield the scores of intervals on samples of a real table, all rows of which are the population."""
    table, make = TABLES[name](), ESTIMATORS[estimator]
    whole = make().fit(table.X, table.y)
    truth = whole.predict_proba(table.X)
    for n_rows, seed in product((n for n in sizes if n <= LARGEST_SHARE * len(table.y)), range(n_sets)):
        rng = np.random.default_rng([seed, n_rows])
        order = rng.permutation(len(table.y))
        while not np.isin(whole.classes_, table.y[order[:n_rows]]).all():
            order = rng.permutation(len(table.y))
        old, new = order[:n_rows], order[n_rows : n_rows + TEST_ROWS]
        rows = Sample(table.X.iloc[old].reset_index(drop=True), table.y[old])
        scores = score(make, rows, table.X.iloc[new].reset_index(drop=True), truth[new], TOLERANCE)
        yield dict(family=estimator, setting=f"{estimator}, {name}", rows=n_rows, seed=seed) | scores


def summarize(sets: pd.DataFrame) -> pd.DataFrame:
    """Return means over tables, and bounds.

    The columns `gain` and `loss` are the means of the coverage and of the interval score with rows, less those of the
    default. Columns that end in `_se` are standard errors over tables.
    """
    if {"default_score", "rows_score"} <= set(sets):
        gain = sets["rows_coverage"] - sets["default_coverage"]
        sets = sets.assign(gain=gain, loss=sets["rows_score"] - sets["default_score"])
    groups = sets.drop(columns="seed").groupby(["family", "setting", "rows"], sort=False)
    columns: dict[str, pd.Series] = {"sets": groups.size()}
    for name, mean in groups.mean().items():
        columns[str(name)] = mean
        if not str(name).endswith(("width", "score")):
            columns[f"{str(name).removesuffix('_coverage')}_se"] = groups[name].sem()
    summary = pd.DataFrame(columns).reset_index()
    bounds = [_bounds(row) for row in summary.to_dict("records")]
    return summary.assign(least=[low for low, _ in bounds], most=[high for _, high in bounds])


def _bounds(row: Mapping[Any, Any]) -> tuple[float, float]:
    """Return the least and the highest coverage that are asked for of the intervals with rows."""
    least = SETTINGS[row["setting"]].least if row["setting"] in SETTINGS else LEAST_OF_A_TABLE
    if not isinstance(least, str):
        return least.get(row["rows"], np.nan), np.nan
    low, high = row["default_coverage"] - 0.02, row["default_coverage"] + 0.02
    return (low, high) if least == "default" else (min(low, PROB - 0.04), max(high, PROB + 0.04))


def mean_over_tables(summary: pd.DataFrame) -> pd.DataFrame:
    """Return the means over the real tables by estimator and number of rows, with the standard errors over samples."""
    lines = []
    for (estimator, n_rows), part in summary[summary["family"].isin(ESTIMATORS)].groupby(
        ["family", "rows"], sort=False
    ):
        line = part.mean(numeric_only=True).to_dict()
        line |= {c: np.sqrt((part[c] ** 2).sum()) / len(part) for c in part if c.endswith("_se")}
        about = dict(family=estimator, setting=f"{estimator}, mean of {len(part)} tables", rows=n_rows)
        lines.append(
            about | line | dict(sets=part["sets"].sum(), least=LEAST_OF_MEANS.get(n_rows, np.nan), most=np.nan)
        )
    return pd.DataFrame(lines, columns=summary.columns)


def figure(summary: pd.DataFrame, path: Path) -> None:
    """Draw coverage against the number of rows, one panel a family: default intervals dashed, those with rows solid."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "bayesnb"
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter, ScalarFormatter

    means = summary["setting"].str.contains("mean of")
    simulated = summary[~summary["family"].isin(ESTIMATORS)]
    panels = {str(family): part for family, part in simulated.groupby("family", sort=False)}
    if means.any():
        panels["real tables, means"] = summary[means].assign(setting=summary["family"])
    fig, axes = plt.subplots(
        1, len(panels), figsize=(3.2 * len(panels), 4.2), sharey=True, layout="constrained", squeeze=False
    )
    colours = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#888888", "#000000")
    for ax, (family, panel) in zip(axes[0], panels.items(), strict=True):
        ax.axhline(PROB, color="black", lw=0.8)
        for colour, (setting, part) in zip(colours, panel.groupby("setting", sort=False), strict=False):
            for name, look in (("default", dict(ls="--", mfc="white", lw=1)), ("rows", dict(ls="-"))):
                if f"{name}_coverage" in part:
                    label = setting.removeprefix(f"{family}, ") if name == "rows" else None
                    height, error = part[f"{name}_coverage"], 2 * part[f"{name}_se"]
                    ax.errorbar(part["rows"], height, error, color=colour, marker="o", ms=4, label=label, **look)
        ax.set(xscale="log", xlabel="rows", title=family, xticks=sorted(panel["rows"].unique()), ylim=(0.2, 1))
        ax.xaxis.set_major_formatter(ScalarFormatter())
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize="x-small", loc="upper center", bbox_to_anchor=(0.5, -0.16))
    axes[0][0].set_ylabel("coverage of 90% intervals\n(dashed: without rows)")
    fig.savefig(path, metadata={"Date": None})
    plt.close(fig)


def write(summary: pd.DataFrame, folder: Path) -> None:
    """Write coverage.csv and coverage.svg; lines of coverage.csv that were not measured this time are kept."""
    path, keys = folder / "coverage.csv", ["setting", "rows"]
    if path.exists():
        summary = pd.concat([summary, pd.read_csv(path)]).drop_duplicates(keys)
    summary = summary[~summary["setting"].str.contains("mean of")]
    order = {name: i for i, name in enumerate([*SETTINGS, *TABLE_SETTINGS])}
    summary = summary.sort_values(keys, key=lambda c: c.map(order) if c.name == "setting" else c)
    summary = pd.concat([summary, mean_over_tables(summary)], ignore_index=True)
    summary.to_csv(path, index=False, float_format="%.4f")
    figure(summary, folder / "coverage.svg")


def main() -> None:
    settings = [*SETTINGS, *TABLE_SETTINGS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, help="folder of coverage.csv and coverage.svg; default: none")
    parser.add_argument(
        "--settings", nargs="+", default=settings, choices=settings, metavar="NAME", help="default: all"
    )
    parser.add_argument("--sizes", type=int, nargs="+", help="numbers of rows; default: all of the setting")
    parser.add_argument("--sets", type=int, default=SETS, help="number of tables for each setting and number of rows")
    options = parser.parse_args()
    for name in options.settings:
        if name in SETTINGS:
            runs = [measure(name, n_rows, options.sets) for n_rows in options.sizes or SETTINGS[name].sizes]
        else:
            runs = [measure_table(*TABLE_SETTINGS[name], options.sizes or TABLE_SIZES, options.sets)]
        try:
            sets = pd.DataFrame([found for run in runs for found in run])
        except FileNotFoundError as error:
            print(f"{name}: no file {error.filename}", flush=True)
            continue
        summary = summarize(sets)
        print(summary.drop(columns="family").round(3).to_string(index=False), flush=True)
        if options.out is not None:
            write(summary, options.out)


if __name__ == "__main__":
    main()
