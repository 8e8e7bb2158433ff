"""Size and shape of the package: lines, modules, rooms, floors, and the functions that a fit and a prediction visit.

python -m benchmarks.structure
"""

from __future__ import annotations

import ast
import io
import os
import re
import sys
import tokenize
from collections import Counter
from pathlib import Path

import numpy as np

import bayesnb as bnb

HOME = Path(bnb.__file__).parent
CASES = {
    "kind ==": r"\bkind\s*(==|!=|in\b)",
    "isinstance": r"\bisinstance\(",
    "network is None": r"network is (not )?None",
    "average is": r"average is (not )?None",
    "weights is": r"weights is (not )?None",
    "one_simplex": r"\bone_simplex\b",
    "classes_share_parameters": r"\bclasses_share_parameters\b",
    "offers(": r"\boffers\(",
    "hasattr": r"\bhasattr\(",
}


def code_lines(source: str) -> set[int]:
    """Numbers of the lines with code: neither blank, nor comment, nor docstring."""
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node, clean=False):
            lines.difference_update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return lines


def is_message(node: ast.AST) -> bool:
    """Whether a node is a raise statement or a warning."""
    return isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and ast.unparse(node.func).endswith("warn"))


def is_import(node: ast.AST) -> bool:
    """Whether a node is an import, or the list of a module's names."""
    names = [ast.unparse(target) for target in node.targets] if isinstance(node, ast.Assign) else []
    return isinstance(node, ast.Import | ast.ImportFrom) or "__all__" in names


def count_lines(folder: Path) -> tuple[Counter[str], Counter[str]]:
    """Lines of code by room, and figures of the whole: lines of imports and of messages, `Any`."""
    rooms: Counter[str] = Counter()
    figures: Counter[str] = Counter()
    for path in sorted(folder.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        n = len(code_lines(source))
        rooms[path.relative_to(folder).parts[0]] += n
        figures.update(lines=n, modules=1)
        for node in ast.walk(ast.parse(source)):
            if is_message(node) or is_import(node):
                figures["messages" if is_message(node) else "imports and __all__"] += node.end_lineno - node.lineno + 1
            figures["Any"] += isinstance(node, ast.Name) and node.id == "Any"
    return rooms, figures


def functions_of(call) -> tuple[list[str], int]:
    """Functions of the package that a call visits, as "file:function" in the order of their first call; their depth."""
    visited: dict[str, None] = {}
    depth = deepest = 0

    def note(frame, event, _):
        nonlocal depth, deepest
        code = frame.f_code
        if code.co_filename.startswith(str(HOME)) and not code.co_name.startswith("<"):
            depth += {"call": 1, "return": -1}.get(event, 0)
            deepest = max(deepest, depth)
            if event == "call":
                visited[f"{os.path.relpath(code.co_filename, HOME)}:{code.co_qualname}"] = None

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(visited), deepest


def main() -> None:
    """Print all figures; `-v` prints the functions, too."""
    rooms, figures = count_lines(HOME)
    print(*(f"{n:6,} {room}" for room, n in rooms.most_common()), sep="\n")
    print("package:", ", ".join(f"{n:,} {name}" for name, n in figures.items()), f"{len(rooms)} rooms", sep=" ")
    tests = count_lines(HOME.parent / "tests")[1]
    print(f"tests: {tests['lines']:,} lines in {tests['modules']} modules")
    config = (HOME.parent / "pyproject.toml").read_text(encoding="utf-8")
    layers = re.search(r"^layers = \[(.*?)^\]", config, re.DOTALL | re.MULTILINE)
    print("floors:", len(re.findall(r'^\s*"', layers.group(1), re.MULTILINE)) if layers else "?")
    sources = [path.read_text(encoding="utf-8") for path in HOME.rglob("*.py")]
    print("cases:", ", ".join(f"{sum(len(re.findall(p, s)) for s in sources)} {name}" for name, p in CASES.items()))
    X, y = [["sun", "a"], ["rain", "b"], ["sun", "b"]], ["out", "in", "out"]
    Z = np.random.default_rng(0).normal(size=(30, 4))
    normal = bnb.GaussianNB().fit(Z, Z[:, 0] > 0)
    calls = {
        "CategoricalNB.fit of three rows": bnb.CategoricalNB().fit,
        "GaussianNB.predict_proba": lambda *_: normal.predict_proba(Z),
    }
    for name, call in calls.items():
        call(X, y)  # once, for imports and caches
        visited, depth = functions_of(lambda call=call: call(X, y))
        print(f"{name}: {len(visited)} functions in {len({v.split(':')[0] for v in visited})} files, {depth} deep")
        if "-v" in sys.argv:
            print(*visited, sep="\n")


if __name__ == "__main__":
    main()
