"""Size and structure of the package: code lines, interfaces, functions visited by a call, seconds of one row.

python -m benchmarks.house
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import time
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import sklearn.naive_bayes as sk
from sklearn.datasets import load_wine

import bayesnb as bnb
from bayesnb import estimators

PACKAGE = Path(bnb.__file__).parent
ROOT = PACKAGE.parent
_REPEATS, _CALLS = 7, 100


def code_lines(folder: Path) -> int:
    """Number of lines with code: without docstrings, comments and blank lines."""
    return sum(len(_code_lines_of(path.read_text(encoding="utf-8"))) for path in folder.rglob("*.py"))


def _code_lines_of(text: str) -> set[int]:
    lines: set[int] = set()
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    for start, end in _docstrings(ast.parse(text)):
        lines.difference_update(range(start, end + 1))
    return lines


def _docstrings(tree: ast.AST) -> Iterator[tuple[int, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                yield first.lineno, first.end_lineno or first.lineno


def occurrences(folder: Path, name: str) -> int:
    """Number of places in which code, docstrings aside, has a name."""
    return sum(
        token.type == tokenize.NAME and token.string == name
        for path in folder.rglob("*.py")
        for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
    )


def own_classes(cls: type) -> list[str]:
    """Names of bayesnb's classes in the method resolution order."""
    return [base.__name__ for base in cls.__mro__ if base.__module__.startswith("bayesnb.")]


def protocol_methods(protocol: type) -> int:
    """Number of public methods and properties that a protocol declares itself."""
    return sum(not name.startswith("_") for name in vars(protocol))


def visited(call: Callable[[], object]) -> tuple[int, int]:
    """Number of bayesnb's functions that a call enters, and of their files."""
    functions: set[tuple[str, int]] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and Path(code.co_filename).is_relative_to(PACKAGE) and not code.co_name.startswith("<"):
            functions.add((code.co_filename, code.co_firstlineno))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(functions), len({file for file, _ in functions})


def milliseconds(call: Callable[[], object]) -> float:
    """Least mean milliseconds of a warm call."""
    call()
    times = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        for _ in range(_CALLS):
            call()
        times.append((time.perf_counter() - start) / _CALLS * 1e3)
    return min(times)


def strict_errors() -> str:
    """Last line of `mypy --strict`."""
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "bayesnb"], cwd=ROOT, capture_output=True, text=True
    )
    return run.stdout.strip().splitlines()[-1] if run.stdout.strip() else run.stderr.strip()


def main() -> None:
    print(f"code lines: package {code_lines(PACKAGE):,}, tests {code_lines(ROOT / 'tests'):,}")
    deepest = max((own_classes(getattr(estimators, name)) for name in estimators.__all__), key=len)
    print(f"most of our classes in an estimator's order: {len(deepest)}, {' > '.join(deepest)}")
    from bayesnb.families import protocol

    print(f"methods of a family's core: {protocol_methods(protocol.Family)}")
    print(f"NotImplementedError in families/: {occurrences(PACKAGE / 'families', 'NotImplementedError')}")
    print(f"Any: {occurrences(PACKAGE, 'Any'):,}")
    print(f"mypy --strict: {strict_errors()}")
    X, y = load_wine(return_X_y=True)
    plain, weighted = bnb.GaussianNB().fit(X, y), bnb.WeightedNB(bnb.GaussianNB()).fit(X, y)
    peer = sk.GaussianNB().fit(X, y)
    calls = {
        "GaussianNB.predict_proba of a row": lambda: plain.predict_proba(X[:1]),
        "WeightedNB.predict_proba of a row": lambda: weighted.predict_proba(X[:1]),
        "WeightedNB.fit": lambda: bnb.WeightedNB(bnb.GaussianNB()).fit(X, y),
    }
    for name, call in calls.items():
        call()
        print("functions visited by {}: {} in {} files".format(name, *visited(call)))
    ours, theirs = (milliseconds(lambda nb=nb: nb.predict_proba(X[:1])) for nb in (plain, peer))
    with_weights = milliseconds(lambda: weighted.predict_proba(X[:1]))
    print(
        f"one row, milliseconds: scikit-learn {theirs:.2f}, GaussianNB {ours:.2f} ({ours / theirs:.2f} times), "
        f"WeightedNB {with_weights:.2f} ({with_weights / theirs:.2f} times)"
    )
    np.testing.assert_allclose(plain.predict_proba(X[:1]).sum(), 1.0)


if __name__ == "__main__":
    main()
