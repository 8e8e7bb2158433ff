"""The gallery shows every figure once, and its index links to each page."""

import ast
import re
from pathlib import Path

from bayesnb import plots

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"
PAGES = sorted(page for page in GALLERY.glob("*.md") if page.name not in ("index.md", "one_line.md"))
CELL = re.compile(r"^```\{code-cell\} python\n(.*?)^```", re.MULTILINE | re.DOTALL)
CARD = (
    r"^:::\{grid-item-card\} (\w+)\n:img-top: \.\./_generated/thumbnails/\1\.svg\n:img-alt: \1\n"
    r":link: ([\w-]+)\n:link-type: ref\n\w"
)
FIGURES = set(plots.__all__) - {"detach"}


def drawn(page: Path) -> list[str]:
    """Functions of `bnb.plots` that the cells of a page call."""
    found = []
    for code in CELL.findall(page.read_text(encoding="utf-8")):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("bnb.plots."):
                found.append(node.func.attr)
    return found


def test_every_figure_is_in_the_gallery_and_nothing_else():
    assert {name for page in PAGES for name in drawn(page)} == FIGURES


def test_each_figure_has_a_heading_over_its_code_and_words_between():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        sections = {part.split("\n", 1)[0]: part for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]}
        assert set(sections) == set(drawn(page)), page.name
        for name, section in sections.items():
            words, _, code = section.partition("```{code-cell}")
            assert f"bnb.plots.{name}(" in code
            assert len(words.split()) > 10, f"{name}: how is it read?"


def test_the_index_leads_to_each_page_and_figure():
    index = (GALLERY / "index.md").read_text(encoding="utf-8")
    (tree,) = re.findall(r"^```\{toctree\}\n(.*?)^```", index, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"^\w+$", tree, re.MULTILINE)) == {*(page.stem for page in PAGES), "one_line"}
    sections = re.split(r"^## \[[^]]+\]\((\w+)\.md\)$", index, flags=re.MULTILINE)[1:]
    links = {
        (name, page, anchor)
        for page, section in zip(sections[::2], sections[1::2], strict=True)
        for name, anchor in re.findall(CARD, section, re.MULTILINE)
    }
    assert links == {(name, page.stem, name.replace("_", "-")) for page in PAGES for name in drawn(page)}


def test_every_figure_has_a_thumbnail():
    assert {path.stem for path in (GALLERY.parent / "_generated" / "thumbnails").glob("*.svg")} == FIGURES
