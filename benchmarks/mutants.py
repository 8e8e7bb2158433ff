"""Mutation test: what share of small mistakes in the code do the tests notice? `make mutants`.

Each mutant is the package with one operator or number changed. The tests that execute the changed lines run on a copy
of the checkout until one fails: first the quick ones, then, for mutants that none of these notices, the slow ones. A
mutant that no test notices is printed with its place: either a test is missing, or the change has no effect that
matters (a block size, a starting value).
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
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

import jax
import pytest

ROOT = Path(__file__).resolve().parents[1]
_NETWORKS = ["aode", "context_tables", "kdb", "margins", "missing_cells", "network_analyses"]
_NETWORKS += ["network_input", "network_traps", "queries", "structures", "tree_averaged"]
STRUCTURES = ["tests/test_networks.py", *(f"tests/estimators/test_{name}.py" for name in _NETWORKS)]
PARTS = {
    "families": [
        "tests/families",
        "tests/laws",
        "tests/oracles",
        *STRUCTURES,
        "tests/sampling",
        "tests/uncertainty",
    ],
    "encoding": ["tests/encoding", "tests/estimators", "tests/fitted", "tests/laws"],
    "fitted": ["tests/fitted", "tests/laws", "tests/oracles", "tests/estimators", "tests/test_streaming.py"],
    "analysis": ["tests/analysis", "tests/estimators"],
    "weights": ["tests/weights"],
}
"""Files and folders of the package, and the tests of each."""

_SLOW = ["-m", "slow and not calibration"]

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
    lines: range
    """Those of the statement, up to the change."""
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
    for place, (node, field, function, lines) in enumerate(_places(ast.parse(path.read_text(encoding="utf-8")))):
        before = ast.unparse(node)
        after = _changed_text(node, field)
        change = f"{before} -> {after}".replace("\n", " ")
        key = f"{name} {function} {change}"
        seen[key] = seen.get(key, 0) + 1
        yield Mutant(name, place, lines, change, f"{key} {seen[key]}")


def _places(
    tree: ast.AST, function: str = "", first: int = 0, last: int = 0
) -> Iterator[tuple[ast.AST, str, str, range]]:
    """Nodes with the field to change, the function that holds them, and the lines from their statement to them.

    Left out are annotations, decorators, messages of errors, constants of modules (sizes and tolerances), and whether
    `zip` is strict.
    """
    first = tree.lineno if isinstance(tree, ast.stmt) else first
    last = getattr(tree, "lineno", last)
    if isinstance(tree, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
        return
    if isinstance(tree, ast.keyword) and tree.arg == "strict":
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
            yield tree, field, function, range(first, last + 1)
    for name, child in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "bases"):
            continue
        for node in child if isinstance(child, list) else [child]:
            if isinstance(node, ast.AST):
                yield from _places(node, function, first, last)


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


class Reached:
    """A pytest plugin that writes down which of some lines each test executes, and how long it takes."""

    def __init__(self, lines: set[tuple[str, int]], path: Path) -> None:
        self.lines, self.path = lines, path
        self.reached: set[tuple[str, int]] = set()
        events = sys.monitoring
        events.use_tool_id(events.COVERAGE_ID, "mutants")
        events.register_callback(events.COVERAGE_ID, events.events.LINE, self._line)
        events.set_events(events.COVERAGE_ID, events.events.LINE)

    def _line(self, code, line: int) -> object:
        if (code.co_filename, line) not in self.lines:
            return sys.monitoring.DISABLE
        self.reached.add((code.co_filename, line))
        return None

    def pytest_runtest_logstart(self) -> None:
        # A kernel that an earlier test has traced would not be traced again, and its lines not be seen.
        jax.clear_caches()
        self.reached.clear()
        self.start, self.passed = time.process_time(), True

    def pytest_runtest_logreport(self, report) -> None:
        self.passed &= not report.failed

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        seconds = time.process_time() - self.start
        with self.path.open("a", encoding="utf-8") as file:
            print(json.dumps([nodeid, self.passed, seconds, sorted(self.reached)]), file=file)


class Test(NamedTuple):
    """A test as it ran on the code without a mutant."""

    name: str
    passed: bool
    seconds: float
    reached: frozenset[tuple[str, int]]
    """Files and lines of mutants that it executes."""


@dataclass(frozen=True)
class Copy:
    """A copy of the checkout in which mutants live one after the other."""

    folder: Path

    def first_failure(self, tests: list[str], limit: int) -> str | None:
        """Run tests; return the one that failed first, None if none did within the limit of CPU seconds."""
        verdict = self.folder / "failed.txt"
        verdict.unlink(missing_ok=True)
        self.pytest(["-x", *tests], lambda: Failures(verdict), verdict, limit)
        return verdict.read_text(encoding="utf-8") if verdict.exists() else None

    def reached(self, drawn: list[Mutant], tests: list[str]) -> list[Test]:
        """Run tests on the code as it is."""
        lines = {(str(self.folder / m.path), line) for m in drawn for line in m.lines}
        path = self.folder / "reached.jsonl"
        path.unlink(missing_ok=True)
        self.pytest(tests, lambda: Reached(lines, path), None, 3 * 3600)
        names = {str(self.folder / m.path): m.path for m in drawn}
        found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return [Test(*test, frozenset((names[file], line) for file, line in hit)) for *test, hit in found]

    def pytest(self, arguments: list[str], plugin: Callable[[], object], verdict: Path | None, limit: int) -> None:
        """Run pytest in a fork of this process."""
        if (child := os.fork()) != 0:
            os.waitpid(child, 0)
            return
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        os.chdir(self.folder)
        sys.path.insert(0, str(self.folder))
        os.environ["PYTHONPATH"] = str(self.folder)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        code: int = 70
        try:
            code = pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments], [plugin()])
        finally:
            # Other codes: all passed, or a variant of a test has another name under the mutant.
            crashed = code in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR)
            if verdict and crashed and not verdict.exists():
                verdict.write_text(f"pytest left with {int(code)}", encoding="utf-8")
            os._exit(0)


def _tests(path: str) -> list[str]:
    """Tests of a file's part, those first whose names share a word with its name."""
    part = next(p for p in PARTS if path.startswith(f"bayesnb/{p}"))
    files = [
        f for t in PARTS[part] for f in (sorted((ROOT / t).rglob("test_*.py")) if (ROOT / t).is_dir() else [ROOT / t])
    ]
    return sorted((f.relative_to(ROOT).as_posix() for f in files), key=lambda f: -_likeness(path, f))


def _likeness(path: str, test: str) -> int:
    """Number of words that the names of a file and of a file of tests share."""
    return len(_words(path) & _words(test.partition("::")[0]))


def _words(path: str) -> set[str]:
    return {word.rstrip("s") for word in Path(path).stem.split("_")}


def _preload() -> None:
    """Import what the tests import, but the package itself, so that forks start with it."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        exec("from bayesnb import *", {})
        os.write(writer, "\n".join(m for m in sys.modules if not m.startswith(("bayesnb", "__main__"))).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as names:
        for name in names.read().split():
            try:
                importlib.import_module(name)
            except ImportError:
                continue
    for name in ("hypothesis", "jaxtyping", "hypothesis.extra.numpy"):
        importlib.import_module(name)


def main() -> int:
    """Print what each mutant met, and the share that was noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="mutants to draw (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw (default: %(default)s)")
    parser.add_argument(
        "--limit", type=int, default=60, help="CPU seconds for each series of tests (default: %(default)s)"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants at a time (default: %(default)s)")
    parser.add_argument("--record", type=Path, default=ROOT / ".mutants.json", help="which test noticed which mutant")
    args = parser.parse_args()
    drawn = mutants(args.count, args.seed)
    record: dict[str, str] = json.loads(args.record.read_text(encoding="utf-8")) if args.record.exists() else {}
    _preload()
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(args.jobs) as pool:
        copies = [Copy(Path(scratch).resolve() / str(job)) for job in range(args.jobs)]
        free: SimpleQueue[Copy] = SimpleQueue()
        for copy in copies:
            skip = shutil.ignore_patterns(".git", ".venv*", ".jax_cache", "site", "__pycache__", ".*_cache")
            shutil.copytree(ROOT, copy.folder, ignore=skip)
            free.put(copy)

        def verdict(mutant: Mutant, waves: Iterable[list[str]]) -> tuple[Mutant, str | None]:
            copy = free.get()
            file = copy.folder / mutant.path
            before = file.read_text(encoding="utf-8")
            try:
                file.write_text(mutant.source(), encoding="utf-8")
                failures = (copy.first_failure(wave, args.limit) for wave in waves)
                return mutant, next((test for test in failures if test), None)
            finally:
                file.write_text(before, encoding="utf-8")
                free.put(copy)

        def survivors(mutants: list[Mutant], waves: Callable[[Mutant], Iterable[list[str]]], kind: str) -> list[Mutant]:
            alive = []
            for done in as_completed([pool.submit(verdict, mutant, waves(mutant)) for mutant in mutants]):
                mutant, test = done.result()
                if test:
                    record[mutant.key] = test
                else:
                    alive.append(mutant)
                place = f"{mutant.path}:{mutant.lines[-1]}"
                print(f"{place}: {mutant.change}: {test or f'not noticed by {kind} tests'}", flush=True)
                args.record.write_text(json.dumps(record, indent=1, ensure_ascii=False), encoding="utf-8")
            print(f"{len(mutants) - len(alive)} of {len(mutants)} mutants are noticed by {kind} tests.", flush=True)
            return alive

        quick = _reaching(pool, copies, drawn, [])
        if failing := [test.name for test in quick if not test.passed]:
            print("Without any mutant these fail already:", *failing, sep="\n")
            return 2
        alive = survivors(drawn, lambda m: _waves(m, record, quick, []), "quick")
        slow = [test for test in _reaching(pool, copies, alive, _SLOW) if test.passed]
        alive = survivors(alive, lambda m: _waves(m, record, slow, _SLOW), "slow")
    killed = len(drawn) - len(alive)
    print(f"{killed} of {len(drawn)} mutants are noticed, {killed / len(drawn):.1%}.")
    return int(killed < 0.9 * len(drawn))


def _reaching(pool: ThreadPoolExecutor, copies: list[Copy], mutants: list[Mutant], options: list[str]) -> list[Test]:
    """Return the tests of the mutants' parts as they run without a mutant, with the changed lines that they execute.

    Python knows that from 3.12 on; before that the list is empty.
    """
    if not hasattr(sys, "monitoring"):
        return []
    files = sorted({file for mutant in mutants for file in _tests(mutant.path)})
    parts = [files[job :: len(copies)] for job in range(len(copies))]
    found = pool.map(lambda copy, part: copy.reached(mutants, [*options, *part]), copies, parts)
    return [test for tests in found for test in tests]


def _waves(mutant: Mutant, record: dict[str, str], tests: list[Test], options: list[str]) -> Iterator[list[str]]:
    """Yield series of tests: the one that noticed the mutant last time, those that execute its lines, their files.

    Other tests of those files may read what one of them has fitted.
    """
    if "::" in record.get(mutant.key, ""):
        yield [*options, record[mutant.key]]
    mine = {(mutant.path, line) for line in mutant.lines}
    reaching = sorted((-_likeness(mutant.path, t.name), t.seconds, t.name) for t in tests if t.reached & mine)
    names = [name for _, _, name in reaching]
    for wave in (names[:20], names[20:100], list(dict.fromkeys(name.partition("::")[0] for name in names))):
        if wave:
            yield [*options, *wave]
    if not tests:
        yield [*options, *_tests(mutant.path)]


if __name__ == "__main__":
    sys.exit(main())
