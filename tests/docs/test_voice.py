"""Docstrings in plain words: a summary line has a head noun or a verb, and needs no other sentence to be understood."""

import ast
import re
from pathlib import Path

import bayesnb as bnb

HOME = Path(bnb.__file__).parent
START = re.compile(r"(Of|As|What|The same|Those|These|This|It|There|All)\b")
ALONE = re.compile(r"^\s+As (for|of) `[\w.]+`\.?$", re.MULTILINE)


def test_summary_lines_have_a_head_noun_or_a_verb_and_no_parameter_is_documented_elsewhere():
    for path in sorted(HOME.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
                place = f"{path.relative_to(HOME)}, {getattr(node, 'name', 'module')}"
                assert not START.match(text), f"{place}: {text.splitlines()[0]}"
                assert place.rpartition(" ")[2][0] == "_" or not ALONE.search(text), f"{place}: {ALONE.search(text)[0]}"
