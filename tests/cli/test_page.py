"""The report page agrees with its tables and figures, in every format."""

import contextlib
import html
import re
import shlex

import numpy as np
import pandas as pd
import pytest

import bayesnb
from bayesnb.cli.document import Bullets, Code, Figure, Paragraph, Section, Table, render
from tests.cli.test_compare import cells, run, section, weather


def commands(page):
    """Code blocks of the page, as typed."""
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
    """Every format has the analyses, numbers and figures of the page."""
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
