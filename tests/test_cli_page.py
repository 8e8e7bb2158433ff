"""The page of the report: what it says of the run, and that its texts, tables and figures agree."""

import contextlib
import html
import re
import shlex
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

import bayesnb
from bayesnb.cli import analyses
from bayesnb.cli.analyses import _parameters, _prior
from bayesnb.cli.document import Bullets, Code, Figure, Paragraph, Section, Table, render
from bayesnb.cli.formatting import format_parameters, format_scores, p_value
from bayesnb.cli.terminal import grid
from tests.test_cli import cells, run, section, weather

TITLES = {
    "moved": "Parameters that the prior moved most, 90% intervals",
    "strength": "Does the strength of the prior decide?",
    "pairs": "Do features depend on each other, given the class?",
}


def commands(page):
    """What stands on the page as code, as typed."""
    return [html.unescape(re.sub("<.*?>", "", code)) for code in re.findall("<pre>(.*?)</pre>", page)]


@pytest.fixture
def made(capsys, tmp_path, monkeypatch):
    """Runs on the small table and returns the page, its folder and what was typed."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")

    def make(*flags, data=None, target="play"):
        path = tmp_path / "my weather.csv"
        (weather() if data is None else data).to_csv(path, index=False)
        typed = ["compare", "--csv", str(path), "--target", target, "--out", str(tmp_path / "out"), *flags]
        code, _, err = run(capsys, *typed)
        assert (code, err) == (0, "")
        return (tmp_path / "out" / "report.html").read_text(encoding="utf-8"), tmp_path / "out", typed

    return make


@pytest.mark.slow("compiles kernels of its own")
def test_of_the_run_and_reproducible(made):
    page, _, typed = made("--overwrite", "--weights", "none")
    assert f"bayesnb {bayesnb.__version__}, run on 2001-09-09 (UTC), seed 0:" in page
    assert commands(page)[0] == shlex.join(["python", "-m", "bayesnb", *typed])
    assert made("--overwrite", "--weights", "none")[0] == page
    assert "prefers-color-scheme: dark" in page


@pytest.mark.slow("compiles kernels of its own")
def test_what_it_advises_can_be_done(capsys, made):
    """Two columns that are one: dependent whatever the class."""
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 110)
    x = rng.normal(size=220) + (y == "b")
    data = pd.DataFrame({"x": x.round(3), "twin": (x + 0.1 * rng.normal(size=220)).round(3), "y": y})
    page, _, typed = made("--weights=none", data=data, target="y")
    advised = commands(section(page, "What to try next"))
    assert advised[0] == "--weights auto"
    for text in advised:
        if text.startswith("--"):
            assert run(capsys, *typed, *shlex.split(text), "--overwrite")[0] == 0
        else:
            eval(text, {"bayesnb": bayesnb, "X": data[["x", "twin"]], "y": y})


@pytest.fixture(scope="module")
def sky_and_heat():
    rng = np.random.default_rng(0)
    play = rng.choice(["no", "yes"], 60)
    heat = np.exp(rng.normal(size=60) + (play == "yes")).round(3)
    return pd.DataFrame({"heat": heat, "sky": rng.choice(["sun", "rain"], 60), "wind": rng.normal(size=60)}), play


def outcome(kinds, X, y):
    """What two sections read of an analysis."""
    columns = {kind: [name for name, k in kinds.items() if k == kind] for kind in set(kinds.values())}
    nb = bayesnb.MixedNB(**columns).fit(X[[*kinds]], y)
    return SimpleNamespace(
        fits=SimpleNamespace(nb=nb), data=SimpleNamespace(kinds=kinds), parameters=bayesnb.parameter_table(nb, 0.9)
    )


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize(
    ("kinds", "rows", "labels"),
    [
        ({"heat": "gaussian", "wind": "gaussian"}, True, True),
        ({"heat": "exponential"}, True, False),
        ({"sky": "categorical"}, False, False),
    ],
)
def test_what_priors_were_set_by(monkeypatch, sky_and_heat, kinds, rows, labels):
    monkeypatch.setattr(analyses, "prior_predictive", lambda nb: np.ones(9))  # which takes its time
    X, y = sky_and_heat
    said = _prior(outcome(kinds, X, y), 0.9).explanation
    assert ("Priors of numbers were set by the same rows" in said) == rows
    assert ("and so from the labels too" in said) == labels
    if labels:
        own, other = (outcome(kinds, X, of).fits.nb.prior_.blocks[0].rate for of in (y, y[::-1]))
        assert not np.allclose(own, other)


def test_pairs_of_very_many_features_are_not_compared(sky_and_heat, monkeypatch):
    X, y = sky_and_heat
    monkeypatch.setattr(analyses, "check_independence", lambda *_, **__: pytest.fail("compares them"))
    found = outcome({"sky": "categorical"}, X, y)
    found.data.kinds |= {f"x{i}": "categorical" for i in range(2000)}
    with pytest.raises(ValueError, match="2,001 features make 2,001,000 pairs, which would take long"):
        analyses._pairs(found, 0.9)


@pytest.mark.slow(reason="fits binned columns and draws a figure")
def test_bins_are_in_the_figure_and_in_no_ranking(sky_and_heat):
    X, y = sky_and_heat
    found = outcome({"heat": "binned", "sky": "categorical"}, X, y)
    section = _parameters(found, 0.9)
    assert section.explanation.endswith("Class probabilities and bins are not ranked.")
    bins = found.parameters["mle"].notna() & (found.parameters["feature"] == "heat")
    dots = sum(len(c.get_offsets()) for c in section.figure.axes[0].collections if hasattr(c, "get_sizes"))
    assert dots == 4 + bins.sum()


@pytest.mark.slow("compiles kernels of its own")
def test_rows_whose_label_changes_stand_first(made):
    page, folder, _ = made()
    table = pd.read_csv(folder / "my_weather-sensitivity.csv")
    said = [row[-1] for row in cells(section(page, TITLES["strength"]))[1:]]
    changed = int(table["label_changes"].sum())
    assert changed > 0
    assert said == ["yes"] * min(12, changed) + ["no"] * (12 - min(12, changed))


@pytest.mark.slow("compiles kernels of its own")
def test_the_least_p_value_is_named_as_a_bound(made):
    rng = np.random.default_rng(0)
    play = rng.choice(["no", "yes"], 120)
    first = rng.choice(["p", "q"], 120)
    data = pd.DataFrame({"a": first, "b": first, "c": rng.choice(["r", "s"], 120), "play": play})
    page, folder, _ = made(data=data)
    shown = {tuple(row[:2]): row[-1] for row in cells(section(page, TITLES["pairs"]))[1:]}
    table = pd.read_csv(folder / "my_weather-pairs.csv").set_index(["feature_1", "feature_2"])["p_value"]
    assert table["a", "b"] == pytest.approx(1 / 201)
    assert shown["a", "b"] == "≤0.005"
    assert shown["a", "c"] == f"{table['a', 'c']:.3f}"
    assert "no p below 1/201" in page


@pytest.mark.slow("compiles kernels of its own")
def test_columns_of_zeros_are_left_out():
    y = load_breast_cancer().target
    X = load_breast_cancer().data[:, :2]
    table = bayesnb.compare_estimates(bayesnb.GaussianNB(), X[::2], y[::2], X[1::2], y[1::2])
    assert "impossible" not in format_scores(table)
    assert "undefined" not in format_scores(table)
    table.loc["mle", "impossible_rows"] = 3
    assert "impossible" in format_scores(table)
    assert "undefined" not in format_scores(table)


def test_names_wrap_and_numbers_stay_to_the_right():
    question = "How satisfied are you overall with public transport in the town where you live?"
    row = (question, "short", "-1,234.5", "[0, 1]", "≤0.5")
    table = Table(("parameter", "and", "mean", "interval", "difference"), (row,))
    text = render(Section("", sections=(Section("", (table,)),)), "html")
    kinds = re.findall("<td(.*?)>", text)
    assert kinds == [' class="name long"', ' class="name"', "", "", ""]
    assert question in text


def test_names_in_the_terminal_differ_where_they_end():
    frame = pd.DataFrame(
        {
            "class": ["in favour of the present coalition", "in favour of the present opposition"],
            "feature": "How satisfied are you overall with public transport?",
            "level": "very satisfied",
            "count": 3.0,
            **dict.fromkeys(("mle", "mean", "lower", "upper"), 0.5),
            "sd": 0.1,
        }
    )
    kinds = {frame["feature"][0]: "categorical"}
    table = Table.from_frame(format_parameters(frame, kinds, 0.9))
    assert table.rows[0][0].endswith("| in favour of the present coalition)")
    header, *rows = grid(table.header, table.rows).splitlines()
    assert len(set(rows)) == 2
    assert {len(line) for line in (header, *rows)} == {100}


AWKWARD = "a_b *c* [d](e) <f> `g` | # h & \\ 1 ~ i"


def test_every_format_has_every_text_as_it_is():
    """Read back by parsers of their own: of HTML, and of Markdown."""
    markdown_it = pytest.importorskip("markdown_it")
    kinds = ("below", "noted", "item", "python --csv", "mle")
    below, noted, item, command, estimate = texts = [f"{kind} {AWKWARD}" for kind in kinds]
    table = Table(("estimate", AWKWARD), ((estimate, "0.5"), ("mean", "-")))
    blocks = (
        Paragraph(AWKWARD),
        Paragraph(noted, "note"),
        Bullets((item,)),
        Code(command),
        table,
        Figure("data-pairs.png", "Pairs", b"\x89PNG", 100),
    )
    document = Section("Title", sections=(Section(AWKWARD, sections=(Section(below, blocks),)),))
    markdown = markdown_it.MarkdownIt().enable("table").render(render(document, "markdown"))
    page = render(document, "html").partition("</style>")[2]
    for rendered in (markdown, page):
        shown = html.unescape(re.sub("<[/!a-z].*?>", "", rendered))
        assert [text for text in texts if text not in shown] == []
        assert cells(re.sub(r">\s+<", "><", rendered)) == [list(table.header), *map(list, table.rows)]
    assert '<img src="data-pairs.png" alt="Pairs"' in markdown
    plain = re.sub(r"\s+", " ", render(document, "text"))
    assert [text for text in (*texts, "data-pairs.png", "0.5") if text not in plain] == []


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize(("name", "suffix"), [("markdown", "md"), ("text", "txt"), ("html", "html")])
def test_the_report_in_a_format(made, name, suffix):
    """The same analyses, numbers and figures as on the page."""
    page, folder, _ = made()
    titles = re.findall("<h3 id.*?>(.*?)</h3>", page)
    (folder / "report.html").unlink()
    with contextlib.suppress(FileNotFoundError):
        made("--overwrite", "--format", name)
    assert {path.name for path in folder.glob("report.*")} == {f"report.{suffix}"}
    report = (folder / f"report.{suffix}").read_text(encoding="utf-8")
    text = html.unescape(report) if name == "html" else re.sub(r"\s+", " ", report).replace("\\", "")
    assert [title for title in map(html.unescape, titles) if title not in text] == []
    for brier in pd.read_csv(folder / "my_weather-comparison.csv")["brier"]:
        assert f"{brier:.4f}" in report
    linked = re.findall(r"!\[.*?\]\((.*?)\)|Figure: (.*)", report)
    figures = {path.name for path in folder.glob("*.png")}
    assert {first or second for first, second in linked} == (set() if name == "html" else figures)


@pytest.mark.parametrize("name", ["markdown", "html"])
def test_what_is_printed_in_a_format(capsys, tmp_path, name):
    weather().to_csv(tmp_path / "weather.csv", index=False)
    flags = ["compare", "--csv", tmp_path / "weather.csv", "--target", "play", "--weights", "none"]
    text = run(capsys, *flags)[1]
    code, out, err = run(capsys, *flags, "--format", name)
    assert (code, err) == (0, "")
    assert out.startswith({"markdown": "# Naive Bayes", "html": "<!doctype html>"}[name])
    rows = [line.split() for line in text.splitlines() if re.match(r"(mle|map|mean|predictive|P\(|mean\()", line)]
    assert len(rows) > 6
    # In the terminal | stands in names only.
    bare = re.sub(r"[\s\\|]+", "", html.unescape(re.sub("<[/!a-z].*?>", "", out)))
    assert [row for row in rows if "".join(row).replace("|", "") not in bare] == []


def test_p_values():
    assert [*map(p_value(1 / 201), [1 / 201, 0.2, np.nan])] == ["≤0.005", "0.200", "-"]


@pytest.mark.slow("compiles kernels of its own")
def test_what_x_is_in_python_is_said_where_python_is_advised(made):
    """Without the target, what was left out, and what the user dropped."""
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 60)
    x = rng.normal(size=120) + (y == "b")
    data = pd.DataFrame({"id": range(120), "x": x.round(3), "twin": x.round(2), "note": y, "y": y})
    page, *_ = made("--drop", "note", data=data, target="y")
    assert "y is the column y, and X the table without y, id, note: numbers as floats" in page
