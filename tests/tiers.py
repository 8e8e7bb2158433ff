"""Two tiers of tests: `make test` runs the quick ones, `make test-all` all.

The quick ones are for whoever changes something: every capability and every law once, and the demo, within
four minutes on two cores where no kernel is compiled yet. Compiling takes most of the time, and each kind of estimator,
each number of classes and each number of columns has kernels of its own. So of a test with variants for several kinds
of estimators one representative kind is quick, and slow.toml names what else is left out, and why.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import pytest

KINDS = {
    *("categorical", "bernoulli", "multinomial", "gaussian", "poisson", "mixed", "exponential", "binned"),
    *("sparse bernoulli", "sparse multinomial"),
    *("CategoricalNB", "BernoulliNB", "MultinomialNB", "GaussianNB", "PoissonNB", "ExponentialNB", "MixedNB"),
    "BinnedNB",
    *("TAN", "SPODE", "AODE", "NetworkNB", "FeatureAveragedNB", "PolyaNB", "TreeAveragedNB", "KDB"),
}
QUICK_KINDS = {"categorical", "CategoricalNB"}
QUICK_KINDS_OF_LAWS = QUICK_KINDS | {"gaussian"}
FIRST_ONLY = "first variant only: the same code, of other kinds or options"


@cache
def slow() -> dict[str, set[str]]:
    """Names of tests, `file.py::test`, or of files, for each reason."""
    tables = tomllib.loads(Path(__file__).with_name("slow.toml").read_text(encoding="utf-8"))
    return {
        reason: {name for file, tests in files.items() for name in ([f"{file}::{t}" for t in tests] or [file])}
        for reason, files in tables.items()
    }


def mark(items: Sequence[pytest.Item]) -> None:
    """Give the slow tests their mark, with the reason."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("calibration") is None:  # a tier of its own, `make calibrate`
            tests.setdefault(_name(item), []).append(item)
    for name, variants in tests.items():
        reason = next((why for why, names in slow().items() if why != FIRST_ONLY and _is_among(name, names)), None)
        quick = [] if reason else _representative(name, variants)
        for item in variants:
            if item not in quick:
                item.add_marker(pytest.mark.slow(reason or FIRST_ONLY))


def without_tests(items: Iterable[pytest.Item]) -> set[str]:
    """What slow.toml names and no test is called, if these are all tests."""
    every = {_name(item) for item in items}
    return {name for names in slow().values() for name in names if not any(_is_among(test, {name}) for test in every)}


def _representative(name: str, variants: list[pytest.Item]) -> list[pytest.Item]:
    """The quick ones of all variants of a test."""
    kinds = [_kinds(item) for item in variants]
    wanted = QUICK_KINDS_OF_LAWS if name.startswith("laws/") else QUICK_KINDS
    if not any(own & wanted for own in kinds):
        wanted = next((own for own in kinds if own), wanted)
    chosen = [item for item, own in zip(variants, kinds, strict=True) if not own or own & wanted]
    return chosen[:1] if _is_among(name, slow()[FIRST_ONLY]) else chosen


def _name(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0].removeprefix("tests/")


def _kinds(item: pytest.Item) -> set[str]:
    """Kinds of estimators in the name of a variant."""
    variant = item.nodeid.partition("[")[2].removesuffix("]")
    return {part.partition("(")[0] for part in variant.split("-")} & KINDS


def _is_among(name: str, names: set[str]) -> bool:
    return any(name == other or name.startswith(f"{other}::") for other in names)
