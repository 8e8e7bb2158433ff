"""Mutation test: what share of small mistakes in the code do the quick tests notice? `make mutants`.

Each mutant is the package with one operator or number changed. The quick tests of the mutated file's part run on a
copy of the checkout until one fails. A mutant that no test notices is printed with its place: either a test is missing,
or the change has no effect that matters (a block size, a starting value).
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib
import json
import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[1]
PARTS = {
    "families": ["tests/families", "tests/laws", "tests/oracles", "tests/structures"],
    "encoding": [
        "tests/test_encoding.py",
        "tests/estimators",
        "tests/structures",
        "tests/test_counting.py",
        "tests/laws",
    ],
    "counting.py": ["tests/test_counting.py", "tests/laws", "tests/estimators", "tests/test_streaming.py"],
    "scoring.py": ["tests/test_counting.py", "tests/laws", "tests/oracles", "tests/estimators"],
    "selection": ["tests/selection", "tests/structures"],
    "prediction": ["tests/prediction"],
}
"""Files and folders of the package, and the tests of each."""

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.BitAnd: ast.BitOr},
    **{ast.BitOr: ast.BitAnd, ast.USub: ast.UAdd, ast.Not: ast.UAdd, ast.Mod: ast.FloorDiv, ast.FloorDiv: ast.Mod},
}


@dataclass(frozen=True)
class Mutant:
    """One change: the n-th place of a file where something can be changed."""

    path: str
    place: int
    line: int
    change: str
    key: str
    """Path, function and change: the same as long as the function does not change, wherever it stands."""

    def source(self) -> str:
        """Text of the file with the change."""
        tree = ast.parse((ROOT / self.path).read_text(encoding="utf-8"))
        for place, (node, field, _, _) in enumerate(_places(tree)):
            if place == self.place:
                _change(node, field)
        return ast.unparse(tree)


def mutants(count: int, seed: int) -> list[Mutant]:
    """Draw mutants of all parts, each place with the same probability."""
    found = [m for part in PARTS for path in _files(part) for m in _mutants_of(path)]
    return sorted(found, key=lambda m: hashlib.sha256(f"{seed} {m.key}".encode()).digest())[:count]


def _files(part: str) -> list[Path]:
    place = ROOT / "bayesnb" / part
    return sorted(place.rglob("*.py")) if place.is_dir() else [place]


def _mutants_of(path: Path) -> Iterator[Mutant]:
    name = path.relative_to(ROOT).as_posix()
    seen: dict[str, int] = {}
    for place, (node, field, function, line) in enumerate(_places(ast.parse(path.read_text(encoding="utf-8")))):
        before = ast.unparse(node)
        after = _changed_text(node, field)
        change = f"{before} -> {after}".replace("\n", " ")
        key = f"{name} {function} {change}"
        seen[key] = seen.get(key, 0) + 1
        yield Mutant(name, place, line, change, f"{key} {seen[key]}")


def _places(tree: ast.AST, function: str = "", line: int = 0) -> Iterator[tuple[ast.AST, str, str, int]]:
    """Nodes with the field to change, the function that holds them and their line.

    Left out are annotations, decorators, messages of errors, and constants of modules (sizes and tolerances).
    """
    line = getattr(tree, "lineno", line)
    if isinstance(tree, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
        return
    if isinstance(tree, ast.FunctionDef | ast.ClassDef):
        function = f"{function}.{tree.name}"
    elif function == "" and isinstance(tree, ast.Assign | ast.AnnAssign):
        return
    for field in ("op", "ops", "value"):
        if field == "value" and not (isinstance(tree, ast.Constant) and type(tree.value) in (int, float, bool)):
            continue
        held = getattr(tree, field, None)
        operator = held[0] if isinstance(held, list) and held else held
        if field == "value" or type(operator) in SWAPS:
            yield tree, field, function, line
    for name, child in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "bases"):
            continue
        for node in child if isinstance(child, list) else [child]:
            if isinstance(node, ast.AST):
                yield from _places(node, function, line)


def _change(node: ast.AST, field: str) -> None:
    held = getattr(node, field)
    if isinstance(held, bool):
        node.value = not held
    elif isinstance(held, int | float):
        node.value = held + 1
    elif isinstance(held, list):
        held[0] = SWAPS[type(held[0])]()
    else:
        setattr(node, field, SWAPS[type(held)]())


def _changed_text(node: ast.AST, field: str) -> str:
    copy = ast.parse(ast.unparse(node), mode="eval").body if not isinstance(node, ast.AugAssign) else None
    if copy is None or type(copy) is not type(node):
        return f"({field} changed)"
    _change(copy, field)
    return ast.unparse(copy)


class Failures:
    """A pytest plugin that writes down the first test that fails."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def pytest_runtest_logreport(self, report) -> None:
        if report.failed and not self.path.exists():
            self.path.write_text(report.nodeid, encoding="utf-8")

    def pytest_collectreport(self, report) -> None:
        self.pytest_runtest_logreport(report)


@dataclass(frozen=True)
class Copy:
    """A copy of the checkout in which mutants live one after the other."""

    folder: Path

    def run(self, tests: list[str], limit: int) -> str | None:
        """Run tests in a fork of this process; return the test that failed first, None if none did within the limit."""
        verdict = self.folder / "failed.txt"
        verdict.unlink(missing_ok=True)
        if (child := os.fork()) == 0:
            self._pytest(tests, verdict, limit)
        os.waitpid(child, 0)
        return verdict.read_text(encoding="utf-8") if verdict.exists() else None

    def _pytest(self, tests: list[str], verdict: Path, limit: int) -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        os.chdir(self.folder)
        sys.path.insert(0, str(self.folder))
        os.environ["PYTHONPATH"] = str(self.folder)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        import pytest

        code = 70
        try:
            code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests], [Failures(verdict)])
        finally:
            if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) and not verdict.exists():
                verdict.write_text(f"pytest left with {int(code)}", encoding="utf-8")
            os._exit(0)


def _tests(path: str) -> list[str]:
    """Tests of a file's part, those first whose names share a word with its name."""
    part = next(p for p in PARTS if path.startswith(f"bayesnb/{p}"))
    files = [
        f for t in PARTS[part] for f in (sorted((ROOT / t).rglob("test_*.py")) if (ROOT / t).is_dir() else [ROOT / t])
    ]
    words = {w.rstrip("s") for w in Path(path).stem.split("_")}
    files.sort(key=lambda f: -len(words & {w.rstrip("s") for w in f.stem.split("_")}))
    return [f.relative_to(ROOT).as_posix() for f in files]


def _preload() -> None:
    """Import what the tests import, but the package itself, so that forks start with it."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        importlib.import_module("bayesnb")
        os.write(writer, "\n".join(m for m in sys.modules if not m.startswith(("bayesnb", "__main__"))).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as names:
        for name in names.read().split():
            try:
                importlib.import_module(name)
            except ImportError:
                continue
    for name in ("hypothesis", "pytest", "jaxtyping", "hypothesis.extra.numpy"):
        importlib.import_module(name)


def main() -> int:
    """Print what each mutant met, and the share that was noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="mutants to draw (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw (default: %(default)s)")
    parser.add_argument(
        "--limit", type=int, default=90, help="CPU seconds after which a mutant is not noticed (default: %(default)s)"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants at a time (default: %(default)s)")
    parser.add_argument("--record", type=Path, default=ROOT / ".mutants.json", help="which test noticed which mutant")
    args = parser.parse_args()
    drawn = mutants(args.count, args.seed)
    record: dict[str, str] = json.loads(args.record.read_text(encoding="utf-8")) if args.record.exists() else {}
    _preload()
    with tempfile.TemporaryDirectory() as scratch:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for job in range(args.jobs):
            folder = Path(scratch) / str(job)
            skip = shutil.ignore_patterns(".git", ".venv*", ".jax_cache", "site", "docs", "__pycache__", ".*_cache")
            shutil.copytree(ROOT, folder, ignore=skip)
            copies.put(Copy(folder))

        def verdict(mutant: Mutant) -> tuple[Mutant, str | None]:
            copy = copies.get()
            file = copy.folder / mutant.path
            before = file.read_text(encoding="utf-8")
            try:
                file.write_text(mutant.source(), encoding="utf-8")
                noticed = copy.run([record[mutant.key]], args.limit) if "::" in record.get(mutant.key, "") else None
                noticed = noticed or copy.run(_tests(mutant.path), args.limit)
            finally:
                file.write_text(before, encoding="utf-8")
                copies.put(copy)
            return mutant, noticed

        killed = 0
        with ThreadPoolExecutor(args.jobs) as pool:
            for n, done in enumerate(as_completed([pool.submit(verdict, mutant) for mutant in drawn]), 1):
                mutant, noticed = done.result()
                killed += noticed is not None
                record.update({mutant.key: noticed} if noticed else {})
                print(
                    f"{killed}/{n} {mutant.path}:{mutant.line}: {mutant.change}: {noticed or 'NOT NOTICED'}", flush=True
                )
                args.record.write_text(json.dumps(record, indent=1, ensure_ascii=False), encoding="utf-8")
    print(f"{killed} of {len(drawn)} mutants are noticed by the quick tests: {killed / len(drawn):.1%}.")
    return int(killed < 0.9 * len(drawn))


if __name__ == "__main__":
    sys.exit(main())
