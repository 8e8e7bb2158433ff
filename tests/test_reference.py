"""docs/reference lists every public name, and each has an example; conf.py makes its pages."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import typing
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import pytest
from sklearn.base import BaseEstimator

import bayesnb

PAGES = Path(__file__).parents[1] / "docs" / "reference"
BLOCK = re.compile(r"^\.\. currentmodule:: (\S+)$(.*?)^```", re.MULTILINE | re.DOTALL)

# Beyond `__all__` of bayesnb and of the modules in it: what these return, and what their arguments take.
RESULTS = """
    selection.LeaveOneOut selection.Tuned selection.BayesFactor selection.Prequential selection.PermutationNull
    prediction.Conformal prediction.PredictionSets prediction.Prevalence prediction.Terms prediction.Weights
    estimators.semi_supervised.EM model.Statistics streaming.read_table
    families.EmpiricalNormal families.EmpiricalRate families.EmpiricalDuration families.IndependentCuts
""".split()  # noqa: SIM905

# Whose methods are for the package itself, and documented where their protocol is.
INNER = ("bayesnb.families", "bayesnb.model", "bayesnb.prediction.weights")


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
    """What a name of the reference is: as autosummary finds it."""
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
    """Of its own docstring, or of its class's."""
    owner = found(name)
    shown = {n: ">>>" in (inspect.getdoc(getattr(owner, n)) or "") for n in methods(name)}
    used = inspect.getdoc(owner) or ""
    assert [n for n, own in shown.items() if not own and not re.search(rf"\.{n}\(", used)] == []


def functions(name: str) -> Iterator[Callable[..., Any]]:
    """A public function, or `__init__` and the public methods of a public class, where they are the package's."""
    owner = found(name)
    members = inspect.getmembers_static(owner) if inspect.isclass(owner) else [("", owner)]
    for key, member in members:
        function = inspect.unwrap(getattr(member, "__func__", member))
        own = inspect.isfunction(function) and function.__module__.startswith("bayesnb")
        if own and (key == "__init__" or key[:1] != "_"):
            yield function


@cache
def names_of(module: str) -> dict[str, Any]:
    """Names of a module, with those that it imports for type checkers only."""
    names = vars(importlib.import_module(module)).copy()
    for node in ast.parse(Path(names["__file__"]).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            exec(compile(ast.Module(node.body, []), names["__file__"], "exec"), names)
    return names


def parameters() -> Iterator[tuple[str, inspect.Parameter, Any, dict[str, Any]]]:
    """Every parameter of the public signatures: where it is, itself, its annotation resolved, and by which names."""
    for function in {function for name in NAMES for function in functions(name)}:
        names = names_of(function.__module__)
        hints = typing.get_type_hints(function, names)
        for key, parameter in inspect.signature(function).parameters.items():
            yield f"{function.__module__}.{function.__qualname__}({key})", parameter, hints.get(key), names


@pytest.fixture(scope="module")
def signatures():
    for module in ("matplotlib", "numpyro"):  # whose types are in them
        pytest.importorskip(module)
    return list(parameters())


def test_a_name_in_a_signature_is_that_of_one_thing(signatures):
    """`help` shows annotations as they are written: an alias with the name of a class tells of the wrong one."""
    sources = [path.read_text(encoding="utf-8") for path in Path(bayesnb.__file__).parent.rglob("*.py")]
    classes = {name for source in sources for name in re.findall(r"^ *class (\w+)", source, re.MULTILINE)}
    wrong = [
        (where, word)
        for where, parameter, _, names in signatures
        for word in set(re.findall(r"\w+", str(parameter.annotation))) & classes
        if not inspect.isclass(names.get(word))
    ]
    assert wrong == []


def test_a_default_is_among_the_choices_of_a_signature(signatures):
    """And `given`, where it is a word and not the values that `query` takes, has the choices that are documented."""
    words = [(where, p, hint) for where, p, hint, _ in signatures if isinstance(p.default, str)]
    choices = {where: (p, typing.get_args(hint)) for where, p, hint in words if typing.get_origin(hint) is Literal}
    assert [where for where, (p, values) in choices.items() if p.default not in values] == []
    given = {where: str(hint) for where, p, hint, _ in signatures if p.name == "given" and "Literal" in str(hint)}
    prevalence = "bayesnb.prediction.prevalence.estimate_prevalence(given)"
    assert given.pop(prevalence) == "typing.Literal['data', 'scores']"
    assert len(given) >= 4
    assert {hint.removesuffix(" | None").removeprefix("typing.Optional[").rstrip("]") for hint in given.values()} == {
        "typing.Literal['row', 'data'"
    }


def test_constants_are_told_in_words():
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES.glob("*.md"))
    constants = {name for name in bayesnb.decision.__all__ if not callable(getattr(bayesnb.decision, name))}
    assert constants == {"REJECT"}
    assert all(f"decision.{name}" in text for name in constants)
    assert "__version__" in text


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
