"""Every Python block of the README and of docs/ runs, and the examples of docstrings print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import bayesnb

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("**/*.md"))
BLOCK = re.compile(r"^(?P<indent> *)```python[^\n]*\n(?P<code>.*?)^(?P=indent)```", re.MULTILINE | re.DOTALL)
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def blocks(page: Path) -> list[tuple[int, str]]:
    """Line number and text of each ```python block; the lines before are kept blank, for tracebacks."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in BLOCK.finditer(text):
        line = text[: match.start("code")].count("\n")
        code = re.sub(f"^{match['indent']}", "", match["code"], flags=re.MULTILINE)
        found.append((line, code))
    return found


def test_the_readme_runs(tmp_path, monkeypatch):
    run_in_order(ROOT / "README.md", tmp_path, monkeypatch)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_run(page, tmp_path, monkeypatch):
    run_in_order(page, tmp_path, monkeypatch)


def run_in_order(page, tmp_path, monkeypatch):
    """In one namespace a page, in an empty folder; a block with prompts is a doctest."""
    code = blocks(page)
    if not code:
        pytest.skip(f"{page.name} has no Python block")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    namespace: dict[str, object] = {"__name__": "__main__"}
    for line, text in code:
        if ">>>" in text:
            test = doctest.DocTestParser().get_doctest(text, namespace, page.name, str(page), line)
            runner = doctest.DocTestRunner(optionflags=OPTIONS)
            report: list[str] = []
            runner.run(test, out=report.append, clear_globs=False)
            assert not runner.failures, "".join(report)
            namespace.update(test.globs)
        else:
            exec(compile("\n" * line + text, str(page), "exec"), namespace)


def modules() -> list[str]:
    names = [module.name for module in pkgutil.walk_packages(bayesnb.__path__, "bayesnb.")]
    return ["bayesnb", *(name for name in names if not name.endswith("__main__"))]


@pytest.mark.parametrize("name", modules())
def test_examples_of_docstrings(name):
    try:
        module = importlib.import_module(name)
    except ImportError as error:  # an optional dependency
        pytest.skip(str(error))
    result = doctest.testmod(module, optionflags=OPTIONS)
    assert not result.failed
