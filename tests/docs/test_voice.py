"""Docstrings in plain words: a summary line has a head noun or a verb, and needs no other sentence to be understood."""

import ast
import re
from pathlib import Path

import pytest

import bayesnb as bnb

HOME = Path(bnb.__file__).parent
START = re.compile(r"(Of|As|What|The same|Those|These|This|It|There|All)\b")
FILES = sorted(HOME.rglob("*.py"))
of_each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HOME)))


def documented(path: Path) -> list[tuple[str, str]]:
    """Names and docstrings of the modules, classes and functions of a file."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef
    return [
        (getattr(n, "name", path.stem), text) for n in nodes if isinstance(n, kinds) and (text := ast.get_docstring(n))
    ]


@of_each_file
def test_a_summary_line_has_a_head_noun_or_a_verb(path):
    assert not [f"{name}: {text.splitlines()[0]}" for name, text in documented(path) if START.match(text)]


@of_each_file
def test_no_parameter_is_documented_by_another_page_alone(path):
    alone = re.compile(r"^\s+As (for|of) `[\w.]+`\.?$", re.MULTILINE)
    assert not [
        f"{name}: {alone.search(text)[0]}" for name, text in documented(path) if name[0] != "_" and alone.search(text)
    ]
