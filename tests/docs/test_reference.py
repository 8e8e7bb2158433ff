"""The reference documents every public name, each with an example."""

import ast
import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest
from sklearn.base import BaseEstimator

import bayesnb
import bayesnb as bnb

PAGES = Path(__file__).parents[2] / "docs" / "reference"
BLOCK = re.compile(r"^\.\. currentmodule:: (\S+)$(.*?)^```", re.MULTILINE | re.DOTALL)

# Beyond `__all__` of bayesnb and of the modules in it: what these return, and what their arguments take.
RESULTS = """
    analysis.selection.LeaveOneOut analysis.selection.Tuned analysis.selection.BayesFactor
    analysis.selection.Prequential analysis.selection.PermutationNull analysis.conformal.Conformal
    analysis.conformal.PredictionSets analysis.prevalence.Prevalence weights.terms.Terms weights.terms.Weights
    analysis.drift.DriftStatistics analysis.predictive.PredictiveCheck estimators.latent.EM streaming.read_table
    streaming.read_arrays sampling.diagnostic_tests.DiagnosticTests encoding.priors.IntervalPrior
    families.EmpiricalNormal families.EmpiricalRate families.EmpiricalCounts
    families.EmpiricalDuration families.IndependentCuts
""".split()  # noqa: SIM905

# Whose methods are for the package itself, and documented where their protocol is.
INNER = ("bayesnb.families", "bayesnb.model", "bayesnb.weights.terms")


def public() -> set[str]:
    """Names as they follow `bayesnb.`; what a module has of the package itself goes by the shorter one."""
    top = {name: getattr(bayesnb, name) for name in bayesnb.__all__}
    modules = {name: module for name, module in top.items() if isinstance(module, ModuleType)}
    modules["evaluation"] = importlib.import_module("bayesnb.evaluation")
    own = {name for name, value in top.items() if callable(value)}
    parts = {
        f"{module}.{name}"
        for module, value in modules.items()
        for name in value.__all__
        if callable(getattr(value, name)) and getattr(value, name) is not top.get(name)
    }
    return own | parts | set(RESULTS)


def listed(page: Path) -> list[str]:
    found = []
    for module, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        prefix = f"{module}.".removeprefix("bayesnb.")
        found += [prefix + name for name in re.findall(r"^   (\w[\w.]*)$", block, re.MULTILINE)]
    return found


def found(name: str) -> object:
    """The object of a reference entry, as autosummary finds it."""
    *path, last = f"bayesnb.{name}".split(".")
    owner = importlib.import_module(path[0])
    for n in range(1, len(path)):
        try:
            owner = importlib.import_module(".".join(path[: n + 1]))
        except ModuleNotFoundError:
            owner = getattr(owner, path[n])
    return getattr(owner, last)


NAMES = sorted({name for page in PAGES.glob("*.md") for name in listed(page)})


def test_the_reference_lists_every_public_name_once():
    every = [name for page in sorted(PAGES.glob("*.md")) for name in listed(page)]
    assert len(every) == len(set(every)), sorted(name for name in every if every.count(name) > 1)
    assert set(every) == public()


@pytest.mark.parametrize("name", NAMES)
def test_each_has_an_example(name):
    assert ">>>" in (inspect.getdoc(found(name)) or ""), f"bayesnb.{name} has no example in its docstring"


def methods(name: str) -> list[str]:
    """Public methods of a class that are the package's, and return; those of families are the protocol's business."""
    owner = found(name)
    if not inspect.isclass(owner) or owner.__module__.startswith(INNER):
        return []
    own = [(n, inspect.unwrap(m)) for n, m in inspect.getmembers(owner, callable) if n[0] != "_"]
    return [
        n
        for n, m in own
        if getattr(m, "__module__", "").startswith("bayesnb")
        and m.__annotations__.get("return") != "NoReturn"
        and n not in dir(BaseEstimator)
    ]


@pytest.mark.parametrize("name", [name for name in NAMES if methods(name)])
def test_each_method_is_in_an_example(name):
    """The example is in the docstring of the method or of its class."""
    owner = found(name)
    shown = {n: ">>>" in (inspect.getdoc(getattr(owner, n)) or "") for n in methods(name)}
    used = inspect.getdoc(owner) or ""
    assert [n for n, own in shown.items() if not own and not re.search(rf"\.{n}\(", used)] == []


def test_every_topic_is_on_the_index():
    text = (PAGES / "index.md").read_text(encoding="utf-8")
    topics = {page.stem for page in PAGES.glob("*.md")} - {"index"}
    assert topics == set(re.findall(r"\]\((\w+)\.md\)", text))
    toctree = re.search(r"```\{toctree\}(.*?)```", text, re.DOTALL)
    assert toctree is not None
    assert topics == set(re.findall(r"^(\w+)$", toctree[1], re.MULTILINE))


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_a_topic_opens_with_what_to_take(page):
    if page.stem != "index":
        opening = page.read_text(encoding="utf-8").split("\n", 2)[2].split("```")[0].split("##")[0]
        assert 2 <= len(re.findall(r"[.?](?:\s|$)", opening)) <= 6


DERIVATIONS = {
    page.stem: page.read_text(encoding="utf-8").partition("\n## References\n")
    for page in sorted((PAGES.parent / "derivations").glob("*.md"))
    if page.stem != "index"
}
TITLES = {(page, title) for page, (text, _, _) in DERIVATIONS.items() for title in re.findall(r"^## (.+)$", text, re.M)}


def test_each_section_of_the_derivations_names_its_source_and_tests_that_exist():
    """A name such as `::test_x` alone belongs to the file named before it."""
    root = PAGES.parents[1]
    sections = [section for text, _, _ in DERIVATIONS.values() for section in text.split("\n## ")[1:]]
    assert len(sections) == len(TITLES) >= 26
    missing, path = [], ""
    for section in sections:
        last = section.strip().split("\n\n")[-1]
        assert last.startswith("Source: "), section.splitlines()[0]
        named = re.findall(r"`((?:tests/[\w/]+\.py)?)::(\w+)`", last.partition("Checked by:")[2])
        assert named, section.splitlines()[0]
        for file, name in named:
            path = file or path
            if not re.search(rf"^(def|class) {name}\b", (root / path).read_text(encoding="utf-8"), re.MULTILINE):
                missing.append(f"{path}::{name}")
    assert missing == []


@pytest.mark.parametrize(("text", "_", "references"), DERIVATIONS.values(), ids=DERIVATIONS)
def test_a_page_of_derivations_has_its_references_and_is_short_enough_to_read(text, _, references):
    assert len(text.split()) + len(references.split()) <= 2500
    listed = re.findall(r"^- \[([^]]+)\] ", references, re.MULTILINE)
    cited = {key for keys in re.findall(r"\[((?:[A-Z][\w–]*(?:, )?)+)\](?!\()", text) for key in keys.split(", ")}
    assert len(listed) == len(set(listed))
    assert cited == set(listed)


def test_docstrings_name_pages_and_sections_of_derivations_that_exist():
    files = (PAGES.parents[1] / "bayesnb").rglob("*.py")
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    named = re.findall(r'docs/derivations/(\w+)\.md(?:`?, "([^"]+)")?', text)
    assert len(named) == text.count("docs/derivations") > 20
    assert {page for page, title in named if not title} <= DERIVATIONS.keys()
    assert {(page, title) for page, title in named if title} <= TITLES


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
