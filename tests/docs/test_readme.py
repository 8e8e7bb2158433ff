"""Code blocks of the README, the documentation and docstrings run and print the output shown."""

import doctest
import importlib
import importlib.util
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import bayesnb

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(
    r"^(?P<indent> *)```(?:python|\{code-cell\} python)[^\n]*\n(?P<code>.*?)^(?P=indent)```"
    r"(?:\n+```text\n(?P<printed>.*?)^```)?",
    re.MULTILINE | re.DOTALL,
)
TAGS = re.compile(r"^:tags:.*$", re.MULTILINE)
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def blocks(page: Path) -> list[tuple[int, str, str | None]]:
    """Line number and text of each block of Python, and what a ```text block below says that it prints."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in BLOCK.finditer(text):
        line = text[: match.start("code")].count("\n")
        code = re.sub(f"^{match['indent']}", "", match["code"], flags=re.MULTILINE)
        found.append((line, TAGS.sub("", code), match["printed"]))
    return found


PAGES = sorted(page for page in (ROOT / "docs").glob("**/*.md") if blocks(page))


@pytest.mark.slow("a second view of what quick tests see")
def test_the_readme_runs(tmp_path, monkeypatch, capsys):
    run_in_order(ROOT / "README.md", tmp_path, monkeypatch, capsys)


def test_the_readme_is_one_that_is_read():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)]+)\)", text) if "://" not in target]
    assert [target for target in targets if target and not (ROOT / target).exists()] == []


@pytest.mark.slow("a second view of what quick tests see")
def test_its_pictures_are_those_of_the_script(tmp_path):
    """As many letters and marks as those that are committed, under the same names."""
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs" / "pictures.py")
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    names = {path.name for path in pictures.write(tmp_path)}
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert names == set(re.findall(r"docs/_generated/pictures/(\w+\.svg)", text))
    for name in names:
        drawn, committed = (
            (folder / name).read_text() for folder in (tmp_path, ROOT / "docs" / "_generated" / "pictures")
        )
        assert drawn.count("<use ") == committed.count("<use ") > 10, f"{name} is not what docs/pictures.py draws"


@pytest.mark.slow("a second view of what quick tests see")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_run(page, tmp_path, monkeypatch, capsys):
    run_in_order(page, tmp_path, monkeypatch, capsys)


def run_in_order(page, tmp_path, monkeypatch, capsys):
    """Run the blocks of a page in one namespace and an empty folder; blocks with prompts are doctests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    namespace: dict[str, object] = {"__name__": "__main__"}
    for line, text, printed in blocks(page):
        if ">>>" in text:
            test = doctest.DocTestParser().get_doctest(text, namespace, page.name, str(page), line)
            runner = doctest.DocTestRunner(optionflags=OPTIONS)
            report: list[str] = []
            runner.run(test, out=report.append, clear_globs=False)
            assert not runner.failures, "".join(report)
            namespace.update(test.globs)
        else:
            capsys.readouterr()
            exec(compile("\n" * line + text, str(page), "exec"), namespace)
            if printed is not None:
                assert capsys.readouterr().out.split() == printed.split(), f"{page.name}:{line}"
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def modules() -> list[str]:
    names = [module.name for module in pkgutil.walk_packages(bayesnb.__path__, "bayesnb.")]
    return ["bayesnb", *(name for name in names if not name.endswith("__main__"))]


@pytest.mark.slow("a second view of what quick tests see")
@pytest.mark.parametrize("name", modules())
def test_examples_of_docstrings(name):
    try:
        module = importlib.import_module(name)
    except ImportError as error:  # an optional dependency
        pytest.skip(str(error))
    result = doctest.testmod(module, optionflags=OPTIONS)
    assert not result.failed
