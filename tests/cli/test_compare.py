"""The command line: printed text and written files against independent calculations; bad files and flags."""

import html
import re
import subprocess
import sys
import unicodedata

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.linear_model import LogisticRegression

from bayesnb import GaussianNB, __version__
from bayesnb.__main__ import main
from bayesnb._util import table_files
from bayesnb._util.terminal import shorten
from bayesnb.cli import labelled_data, tables
from bayesnb.cli.document import fill, grid
from bayesnb.cli.labelled_data import Settings, split
from bayesnb.cli.reading import Marks, Reading
from bayesnb.cli.report import probability
from tests.data import path_of
from tests.strategies import thorough, variants


def run(capsys, *args):
    """Exit code, stdout and stderr."""
    code = main([str(a) for a in args])
    return code, *capsys.readouterr()


def refused_run(capsys, message, *args):
    """One line of error, and nothing else."""
    code, out, err = run(capsys, *args)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert err.startswith("bayesnb: error: "), err
    assert message in err, err
    return err


def load(path, target="play", missing=(), kinds=None, default=None, drop=(), values=(), within=None):
    """The data set of a file, as the command `compare` reads it."""
    marks = Marks(frozenset(missing), {name: frozenset(of) for name, of in (within or {}).items()}, frozenset(values))
    options = target, Reading(marks), kinds or {}, default, list(drop)
    return labelled_data.count_levels(labelled_data.load(tables.open_csv(path), *options, whole=True), kinds or {})


def columns_of(line):
    """Width in a terminal."""
    return sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in line)


def section(page, title):
    """The part of a page below a heading."""
    return re.split(rf"<h3[^>]*>{re.escape(title)}</h3>", page)[1].partition("<h")[0]


def cells(part):
    """The rows of its table, the header first, as lists of texts."""
    rows = re.findall("<tr>(.*?)</tr>", part)
    return [[html.unescape(cell) for cell in re.findall("<t[hd][^>]*>(.*?)</t[hd]>", row)] for row in rows]


def weather(n=60, seed=0):
    """A small table: levels, a flag, a number, an id, and labels that depend on them."""
    rng = np.random.default_rng(seed)
    play = rng.choice(["no", "yes"], size=n)
    yes = play == "yes"
    return pd.DataFrame(
        {
            "id": [f"row {i}" for i in range(n)],
            "sky": np.where(rng.random(n) < np.where(yes, 0.8, 0.3), "sun", rng.choice(["rain", "cloud"], n)),
            "windy": rng.integers(0, 2, n),
            "heat": np.round(20 + 4 * yes + 5 * rng.normal(size=n), 2),
            "play": play,
        }
    )


@pytest.mark.slow("the demo, which the check run starts from the wheel")
def test_without_a_file_it_runs_on_the_embedded_data(capsys):
    code, out, err = run(capsys, "compare")
    assert (code, err) == (0, "")
    said = "breast_cancer: diagnosis by GaussianNB on 569 rows, 30 features, 2 classes (benign: 357, malignant: 212)"
    assert said in " ".join(out.split())
    assert "watermelon: ripe by MixedNB on 17 rows, 8 features, 2 classes (no: 9, yes: 8)" in out
    assert "5-fold cross-validation" in out
    assert "not the probability that a prediction is right" in re.sub(r"\s+", " ", out)
    assert max(columns_of(line) for line in out.splitlines() if not line.startswith("wrote ")) <= 100


@pytest.mark.slow("a second view of what quick tests see")
def test_of_the_embedded_data_a_folder_of_files(capsys, tmp_path):
    code, out, err = run(capsys, "compare", "--out", tmp_path / "new" / "folder")
    assert (code, err) == (0, "")
    assert max(columns_of(line) for line in out.splitlines() if not line.startswith("wrote ")) <= 100
    names = [p.name for p in sorted((tmp_path / "new" / "folder").iterdir())]
    tables = ("comparison", "pairs", "parameters", "rows", "sensitivity")
    figures = ("pairs", "parameters", "prior", "reliability", "rows")
    assert set(names) == {
        "report.html",
        *(f"{d}-posterior.nc" for d in ("breast_cancer", "watermelon")),
        *(f"{d}-{t}.csv" for d in ("breast_cancer", "watermelon") for t in tables),
        *(f"breast_cancer-weights.{suffix}" for suffix in ("csv", "png")),  # the other has too few rows
        *(f"{d}-{f}.png" for d in ("breast_cancer", "watermelon") for f in figures),
    }
    page = (tmp_path / "new" / "folder" / "report.html").read_text(encoding="utf-8")
    assert page.count('<img alt="') == page.count('src="data:image/png;base64,') == 11
    assert not re.search(r"https?://|<script|<link|<iframe|@import|url\(", page)  # nothing to load from elsewhere
    assert set(re.findall(r'(?:href|src)="(#|data:)?', page)) == {"#", "data:"}


@pytest.mark.slow("compiles kernels of its own")
def test_a_file(capsys, table, tmp_path):
    code, out, err = run(capsys, "compare", "--csv", table, "--target", "play", "--out", tmp_path)
    assert (code, err) == (0, "")
    assert "weather: play by MixedNB on 60 rows, 3 features, 2 classes" in out
    assert re.search(r"categorical: sky \(3 levels\), windy \(2 levels\)\n", out)
    assert re.search(r"gaussian: heat\n", out)
    assert re.search(r"left out: id, every value is different", out)
    parameters = pd.read_csv(tmp_path / "weather-parameters.csv")
    data = weather()
    for label, rows in data.groupby("play"):
        mine = parameters[parameters["class"] == label].set_index(["feature", "level"])
        assert mine.loc[("sky", "sun"), "count"] == (rows["sky"] == "sun").sum()
        assert mine.loc[("sky", "sun"), "mean"] == pytest.approx(((rows["sky"] == "sun").sum() + 1) / (len(rows) + 3))
        assert mine.loc[("heat", "mu"), "mle"] == pytest.approx(rows["heat"].mean())
        assert mine.loc[("heat", "sigma2"), "mle"] == pytest.approx(rows["heat"].var(ddof=0))


@pytest.mark.slow("a second report", but="text")
@pytest.mark.parametrize("to", ["text", "markdown"])
def test_suspicious_columns_are_named_above_the_scores(capsys, tmp_path, to):
    rng = np.random.default_rng(0)
    data = weather().assign(price=[f"${price:,.0f}" for price in rng.integers(500, 1500, 60)])
    data["visits"] = np.where(rng.random(60) < 0.2, -999, rng.poisson(30, 60))
    data["warmth"], data["answer"] = data["heat"], data["play"]
    data.to_csv(tmp_path / "export.csv", index=False)
    flags = ["--weights", "none", "--numbers", "gaussian", "--format", to]
    code, out, err = run(capsys, "compare", "--csv", tmp_path / "export.csv", "--target", "play", *flags)
    assert (code, err) == (0, "")
    above, _, _ = re.sub(r"[\s\\]+", " ", out).partition("Scores (")
    for name, remark in {
        "price": "The cells are numbers written as text",
        "visits": "One value (-999) is on many rows",
        "warmth": "The column is equal to column 'heat'",
        "answer": "The column is equal to the label",
    }.items():
        assert above.count(f"{name}: {remark}") == 1
    assert out.count("The column is equal to the label") == 1


@pytest.mark.slow("compiles kernels of its own")
def test_flags_override_the_guess(capsys, table):
    flags = ["--poisson", "windy", "--categorical", "id,heat", "--drop", "sky"]
    code, out, _ = run(capsys, "compare", "--csv", table, "--target", "play", *flags)
    assert code == 0
    assert re.search(r"categorical: id \(60 levels\), heat \(\d+ levels\)\n- poisson: windy\n", out)
    assert re.findall(r".*sky.*", out) == ["- left out: sky, by --drop"]


ONE_KIND = {
    "gaussian": "GaussianNB",
    "poisson": "PoissonNB",
    "counts": "NegativeBinomialNB",
    "exponential": "ExponentialNB",
    "bernoulli": "BernoulliNB",
    "multinomial": "MultinomialNB",
    "categorical": "CategoricalNB",
    "mixed": "MixedNB",
}


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("kind", thorough(ONE_KIND, ["bernoulli"]))
def test_one_estimator_for_all_columns(capsys, table, kind):
    code, out, _ = run(capsys, "compare", "--csv", table, "--target", "play", "--drop", "id,sky", "--estimator", kind)
    assert code == 0
    assert f"weather: play by {ONE_KIND[kind]} on 60 rows, 2 features" in out


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("separator", [";", "\t"])
def test_other_separators_decimal_commas_and_a_byte_order_mark(capsys, tmp_path, separator):
    path = tmp_path / "excel.csv"
    frame = weather()
    frame.to_csv(path, index=False, sep=separator, decimal=",", encoding="utf-8-sig", lineterminator="\r\n")
    path.write_bytes(path.read_bytes() + b"\r\n")
    code, out, _ = run(capsys, "compare", "--csv", path, "--target", "play")
    assert code == 0
    assert re.search(r"gaussian: heat\n", out)
    assert "60 rows" in out


BAD = {
    "empty": (b"", "empty"),
    "blank": (b"\n\n", "first line is blank"),
    "header only": (b"a,b,y\n", "no rows"),
    "too few cells": (b"a,b,y\n" + b"1,p,x\n2,q,z\n" * 20 + b"1,p\n", "row 42: 2 cells, but the first line has 3"),
    "too many cells": (b"a,b,y\n1,2,x\n3,4,x,9\n", "row 3: 4 cells, but the first line has 3"),
    "no such column": (b"a,b\n1,2\n3,4\n", "no column 'y'. Its columns are a, b"),
    "one class": (b"a,y\n1,x\n2,x\n", "only one class, 'x'"),
    "label missing": (b"a,y\n" + b"1,x\n" * 40 + b"2,\n", "row 42, column 'y': the label is missing (1 of 41 rows)"),
    "not UTF-8": (b"a,y\n1,x\n2,\xff\n", "row 3, column 'y': the text is not UTF-8"),
    "UTF-16": ("a,y\n1,x\n2,z\n".encode("utf-16"), "the first line: the text has a NUL character or is not UTF-8"),
    "open quote": (b"a,y\n" + b"1,x\n2,z\n" * 20 + b'"1,x\n', "line 42: the quote that opens here is not closed"),
    "column twice": (b"a,a,y\n1,2,x\n3,4,z\n", "names the column 'a' twice"),
    "target alone": (b"y\nx\nz\nx\nz\n", "no column is left"),
    "target a number": (b"a,y\n" + b"".join(b"%d,%d.5\n" % (i % 3, i) for i in range(50)), "50 distinct values"),
    "NUL in a label": (b"a,y\n1,x\n2,z\0\n3,x\n", "line 3: the text has a NUL character"),
    "NUL in a cell": (b"a,y\n1,x\n2\0,z\n3,x\n", "line 3: the text has a NUL character"),
    "NUL in a name": (b"a\0,y\n1,x\n2,z\n3,x\n", "the first line: the text has a NUL character"),
    "other separator": (b"a|y\n1|x\n2|z\n", "separated by commas, semicolons or tabs"),
    "many columns": (
        b",".join([b"y", *(b"c%d" % i for i in range(10_000))]) + b"\n",
        "10,001 columns, and this command",
    ),
    "many classes": (
        b"a,y\n" + b"".join(b"1,c%d\n" % i for i in range(1001)) * 2,
        "more than 1,000 distinct values in 2002 rows",
    ),
    "infinity": (b"a,y\n" + b"1.5,x\n2.5,z\n" * 9 + b"inf,x\n", "row 20, column 'a': 'inf' is not a finite number"),
    "infinity among integers": (
        b"a,y\n" + b"1,x\n2,z\n" * 9 + b"inf,x\n",
        "row 20, column 'a': 'inf' is not a finite number",
    ),
}


@pytest.mark.slow("commands share a reader", but="fit")
@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("memory", ["whole", "pieces"])
@pytest.mark.parametrize("command", ["fit", "compare"])
def test_bad_files(capsys, monkeypatch, tmp_path, command, memory, name):
    if memory == "pieces":
        monkeypatch.setattr(tables, "available_memory", lambda: 0)
        monkeypatch.setattr(tables, "_BATCH_ROWS", 7)
        monkeypatch.setattr(table_files, "_CSV_PIECE", 64)
    content, message = BAD[name]
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    flags = ["--model", tmp_path / "m"] if command == "fit" else []
    refused_run(capsys, message, command, "--csv", path, "--target", "y", *flags)
    assert [file.name for file in tmp_path.iterdir()] == ["bad.csv"]


@variants(
    ("flags", "message"),
    [
        (["--csv", "{tmp}/none.csv", "--target", "play"], "none.csv cannot be read: No such file"),
        (["--csv", "{tmp}", "--target", "play"], "Is a directory"),
        (["--csv", "{csv}"], "--target"),
        (["--target", "play"], "--csv"),
        (["--gaussian", "heat"], "--csv"),
        (["--csv", "{csv}", "--target", "play", "--gaussian", "nope"], "no column 'nope'"),
        (["--csv", "{csv}", "--target", "play", "--gaussian", "heat", "--poisson", "heat"], "'heat' is named by two"),
        (["--csv", "{csv}", "--target", "play", "--gaussian", "play"], "'play' is named by two"),
        (["--csv", "{csv}", "--target", "play", "--gaussian", "sky"], "row 2, column 'sky'"),
        (["--csv", "{csv}", "--target", "play", "--drop", "id,sky,windy,heat"], "no column is left"),
        (["--csv", "{csv}", "--target", "play", "--test-size", "0.001"], "held out"),
        (["--csv", "{csv}", "--target", "play", "--out", "{csv}"], "--out"),
        (["--csv", "{csv}", "--target", "play", "--out", "{csv}/below"], "--out"),
        (["--csv", "{csv}", "--target", "play", "--out", "{tmp}/" + 300 * "x"], "File name too long"),
        (["--csv", "{csv}", "--target", "play", "--out", "{tmp}/new/" + 300 * "x"], "File name too long"),
        (["--csv", "{tmp}/" + 300 * "x", "--target", "play"], "File name too long"),
        (["--csv", "{csv}", "--target", "play", "--drop", "id,play"], "named by two flags, --target and --drop"),
    ],
)
def test_bad_flags(capsys, table, tmp_path, flags, message):
    args = [flag.format(tmp=tmp_path, csv=table) for flag in flags]
    refused_run(capsys, message, "compare", *args)


@pytest.mark.parametrize(
    "flags", [["--alpha", "-1"], ["--prob", "1"], ["--test-size", "x"], ["--seed", "x"], ["--out", ""], ["--nonsense"]]
)
def test_argparse_refuses_with_code_2(capsys, flags):
    refused_run(capsys, flags[0], "compare", *flags)


def test_version_and_help(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out.strip() == f"bayesnb {__version__}"
    with pytest.raises(SystemExit):
        main([])
    assert "compare" in capsys.readouterr().out


def test_help_states_the_defaults(capsys):
    with pytest.raises(SystemExit):
        main(["compare", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for flag in ("--alpha", "--class-alpha", "--prob", "--seed"):
        stated = re.search(rf" {flag} [A-Z_]+ [^()]*\(default (\S+)\)", text)[1]
        assert float(stated) == getattr(Settings(), flag[2:].replace("-", "_"))


@pytest.mark.slow("starts processes that import JAX")
def test_as_a_process(table):
    command = [sys.executable, "-m", "bayesnb", "compare", "--csv", str(table), "--target", "play"]
    result = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
    assert "weather: play by MixedNB" in result.stdout
    assert result.stderr == ""
    bad = subprocess.run([*command[:-1], "nope"], capture_output=True, encoding="utf-8", check=False)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert "Traceback" not in bad.stderr


@variants(
    ("cells", "kind"),
    [
        (["1.5", "2", "-3e2"] * 4, "numbers"),
        (["0", "1"] * 5, "categorical"),
        (["0", "1"] * 4, "numbers"),
        ([str(i) for i in range(10)] * 5, "numbers"),
        (["yes", "no"] * 3, "categorical"),
        (["true", "False"] * 3, "categorical"),
        (["0.5", "1.5"] * 50, "categorical"),
        (["0.5", "1.5", "2.5"] * 50, "numbers"),
        (["0.5", "1.5"] * 4, "numbers"),
        ([f"name {i}" for i in range(9)], None),
        ([str(i) for i in range(17)], None),
        ([str(3 * i) for i in range(17)], "numbers"),
        ([""] * 9, None),
        (["2", "3", "4", "5more"] * 9, "categorical"),
        (["1_000", "2_000"] * 9, "categorical"),
        (["007", "8", "9"] * 9, "categorical"),
        (["2024-01-31", "2023-12-31", "2024-02-29"] * 9, "numbers"),
        (["2024-01-31", "2023-02-29"] * 9, "categorical"),
        (["12:30", "13:30"] * 9, "categorical"),
    ],
)
def test_kinds_of_columns_follow_their_values(tmp_path, cells, kind):
    path = tmp_path / "cells.csv"
    path.write_text("x,z,y\n" + "".join(f"{cell},{i / 7},{'ab'[i % 2]}\n" for i, cell in enumerate(cells)))
    assert load(path, "y").kinds.get("x") == kind


@variants(("n", "settings", "parts"), [(60, Settings(), 5), (60, Settings(seed=2**70), 5), (1200, Settings(), 1)])
def test_held_out_rows_are_stratified_and_never_fitted(n, settings, parts):
    y = np.random.default_rng(0).choice(["a", "b", "c"], size=n, p=[0.6, 0.3, 0.1])
    folds, _ = split(y, settings)
    assert len(folds) == parts
    for train, test in folds:
        assert sorted([*train, *test]) == list(range(n))
        share = len(test) / n
        for c in "abc":
            assert abs((y[test] == c).sum() - share * (y == c).sum()) <= 1
    if parts > 1:
        assert sorted(np.concatenate([test for _, test in folds])) == list(range(n))


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize("test_size", [None, 0.3, 0.99])
@pytest.mark.parametrize("counts", [(2, 1), (2, 2), (5, 2, 1), (7, 3, 2, 2), (3, 3, 3)])
def test_every_fit_knows_every_class(counts, test_size):
    y = np.random.default_rng(0).permutation(np.repeat(range(len(counts)), counts))
    for train, _ in split(y, Settings(test_size=test_size))[0]:
        assert set(y[train]) == set(y)


def test_tables_align_wide_characters():
    text = grid(["name", "n"], [["西瓜", "1"], ["melon", "1,000"], ["半角ab", "x"]])
    assert {columns_of(line) for line in text.splitlines()} == {5 + 2 + 6}
    assert shorten("西瓜西瓜", 5) == "西瓜…"
    assert all(columns_of(line) <= 100 for line in fill("词 " * 90, "  ").splitlines())
    assert fill("a b", "- ") == "- a b"


@pytest.mark.slow("folds of real tables")
def test_published_evidence_of_vote(capsys, tmp_path):
    lines = [line for line in path_of("vote.arff").read_text().splitlines() if line.strip()]
    names = [re.split(r"\s+", line)[1].strip("'") for line in lines if line.lower().startswith("@attribute")]
    rows = [line.replace("'", "") for line in lines if line[0] not in "%@"]
    path = tmp_path / "vote.csv"
    path.write_text("\n".join([",".join(names), *rows]))
    flags = ["--csv", path, "--target", names[-1], "--missing", "?", "--out", tmp_path]
    code, _, _ = run(capsys, "compare", *flags)
    assert code == 0
    comparison = pd.read_csv(tmp_path / "vote-comparison.csv", index_col="estimate")
    assert comparison.loc["mean = predictive", "log_evidence"] == pytest.approx(-3576.655346689, abs=1e-8)


@pytest.mark.slow("compiles kernels of its own")
def test_scores_are_those_of_the_estimator(capsys, table, tmp_path):
    """One split, made and scored by hand."""
    flags = ["--drop", "id,sky,windy", "--test-size", "0.4", "--out", tmp_path]
    run(capsys, "compare", "--csv", table, "--target", "play", *flags)
    comparison = pd.read_csv(tmp_path / "weather-comparison.csv", index_col="estimate")
    data = weather()
    y = data["play"].to_numpy()
    ((train, test),), _ = split(y, Settings(test_size=0.4))
    nb = GaussianNB().fit(data[["heat"]].iloc[train], y[train])
    proba = nb.predict_proba(data[["heat"]].iloc[test])
    assert comparison.loc["predictive", "log_loss"] == pytest.approx(metrics.log_loss(y[test], proba))
    assert comparison.loc["predictive", "log_evidence"] == pytest.approx(
        GaussianNB().fit(data[["heat"]], y).log_evidence_
    )


@pytest.mark.slow("compiles kernels of its own")
def test_numbers_of_the_page_are_those_of_the_files(capsys, table, tmp_path):
    run(capsys, "compare", "--csv", table, "--target", "play", "--out", tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    titles = re.findall("<h3 id.*?>(.*?)</h3>", page)
    assert len(titles) == len(set(titles)) == 8
    scores = pd.read_csv(tmp_path / "weather-comparison.csv")
    header, *rows = cells(section(page, titles[0]))
    assert [row[0] for row in rows] == scores["estimate"].tolist()
    assert [float(row[header.index("brier")]) for row in rows] == pytest.approx(scores["brier"], abs=5e-5)
    for row, (_, expected) in zip(rows[1:], list(scores.iterrows())[1:], strict=True):
        mean, se = map(float, row[header.index("brier difference")].split(" ± "))
        assert se == pytest.approx(expected["brier_difference_se"], rel=0.051)
        assert abs(mean - expected["brier_difference"]) <= 0.051 * se
    for title, name, column, heading, rounding in (
        ("Most uncertain rows, 90% intervals", "rows", "epistemic", "epistemic", 5e-5),
        ("Dependence of features given the class", "pairs", "log_bayes_factor", "log Bayes factor", 0.05),
    ):
        expected = pd.read_csv(tmp_path / f"weather-{name}.csv")[column].sort_values(ascending=False)[:12]
        header, *rows = cells(section(page, title))
        assert [float(row[header.index(heading)]) for row in rows] == pytest.approx(list(expected), abs=1.01 * rounding)


@pytest.mark.slow("compiles kernels of its own")
def test_logistic_regression_is_that_of_scikit_learn(capsys, tmp_path):
    """Encoded by pandas and standardized by hand, on the same splits."""
    data = weather().drop(columns="id")
    data.loc[::9, "heat"] = np.nan
    data.loc[4::11, "sky"] = None
    data.to_csv(tmp_path / "weather.csv", index=False)
    code, _, _ = run(capsys, "compare", "--csv", tmp_path / "weather.csv", "--target", "play", "--out", tmp_path)
    assert code == 0
    comparison = pd.read_csv(tmp_path / "weather-comparison.csv", index_col="estimate")
    levels, y = pd.get_dummies(data[["sky", "windy"]].fillna("missing").astype(str)), data["play"].to_numpy()
    proba = np.empty((len(y), 2))
    for train, test in split(y, Settings())[0]:
        heat = data["heat"].fillna(data["heat"].iloc[train].mean())
        X = levels.assign(heat=(heat - heat.iloc[train].mean()) / heat.iloc[train].std(ddof=0)).to_numpy(float)
        proba[test] = LogisticRegression(max_iter=1000).fit(X[train], y[train]).predict_proba(X[test])
    row, right = comparison.loc["logistic regression"], (proba[:, 1] > 0.5) == (y == "yes")
    assert row["log_loss"] == pytest.approx(metrics.log_loss(y, proba), rel=1e-4)
    assert row["accuracy"] == right.mean()
    assert row["brier"] == pytest.approx(2 * metrics.brier_score_loss(y == "yes", proba[:, 1]), rel=1e-4)
    top, edges = proba.max(axis=1), np.linspace(0, 1, 16)[1:-1]
    gaps = pd.DataFrame({"gap": right - top}).groupby(np.searchsorted(edges, top))["gap"].sum()
    assert row["ece"] == pytest.approx(gaps.abs().sum() / len(y), rel=1e-4)


@pytest.mark.slow("compiles kernels of its own")
def test_what_the_prior_moved_less_than_the_rows_leave_uncertain_is_not_listed(capsys, tmp_path):
    """A level without rows in a class moves by more than one sd; a prior of 60 rows decides nothing else."""
    data = weather().drop(columns="id")
    data["sky"] = data["sky"].where((data["play"] == "yes") | (data["sky"] != "rain"), "cloud")
    data.to_csv(tmp_path / "weather.csv", index=False)
    run(capsys, "compare", "--csv", tmp_path / "weather.csv", "--target", "play", "--out", tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    _, *rows = cells(section(page, "Parameters that depend most on the prior, 90% intervals"))
    assert [row[0] for row in rows] == ["P(sky=rain | no)"]
    part = section(page, "Sensitivity to the strength of the prior")
    rows = cells(part)[1:]
    table = pd.read_csv(tmp_path / "weather-sensitivity.csv", index_col="row")
    interval = pd.read_csv(tmp_path / "weather-rows.csv", index_col="row").loc[table.index]
    width = table["upper"] - table["lower"]
    wide = (width > interval["upper"] - interval["lower"]) & (width > 0.001)
    listed = table.index[table["label_changes"] | wide]
    assert {int(row[0]) for row in rows} == set(listed[:12])
    assert f"{len(table) - len(listed):,} rows are not listed" in part


def test_a_probability_that_is_shown_is_never_0_or_1():
    assert [probability(p) for p in (0.0, 1e-9, 0.0006, 0.5, 0.9994, 1 - 1e-12, 1.0, np.nan)] == [
        *("<0.001", "<0.001", "0.001", "0.500", "0.999", ">0.999", ">0.999", "-")
    ]


def test_held_out_share_and_rare_classes():
    y = np.array(["a"] * 90 + ["b"] * 9 + ["c"])
    ((train, test),), said = split(y, Settings(test_size=0.2))
    assert [int((y[test] == c).sum()) for c in "abc"] == [18, 2, 0]
    assert set(y[train]) == {"a", "b", "c"}
    assert "20 rows held out" in said
