"""Interfaces of families: a small core, optional capabilities, and one definition of each method."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from bayesnb.capabilities import require_capability
from bayesnb.families import (
    AveragedCells,
    AveragedLevels,
    Dirichlet,
    GammaExponential,
    GammaPoisson,
    IndependentCuts,
    Known,
    NormalInverseGamma,
    TreeAveraged,
    averaged,
    protocol,
    supports,
)
from bayesnb.families.context_tree import ContextTree
from tests.laws.geometric import BetaGeometric, Failures
from tests.refusals import refused

ONES = np.ones((2, 3))
LEVELS = Dirichlet(np.ones((2, 4)), np.array([0, 0, 1, 1]), 2)
FAMILIES: dict[str, Any] = {
    "normal": NormalInverseGamma(ONES, ONES, ONES, ONES),
    "poisson": GammaPoisson(ONES, ONES),
    "exponential": GammaExponential(ONES, ONES),
    "geometric": BetaGeometric(ONES, ONES),
    "dirichlet": LEVELS,
    "known": Known(np.log([[0.5, 0.5]])),
    "binned": IndependentCuts().prior(2, np.array([3, 4])),
    "contexts": ContextTree.from_shapes([(2, 2), (2,)], np.ones((2, 2))),
    "trees": TreeAveraged.from_sizes([2, 3], 2, 1.0),
    "averaged cells": averaged(GammaPoisson(ONES, ONES), np.zeros(3)),
    "averaged levels": averaged(LEVELS, np.zeros(2)),
}
NUMBERS = {"normal", "poisson", "exponential", "geometric"}
TABLES = NUMBERS | {"dirichlet", "known"}
AVERAGES = {"averaged cells", "averaged levels"}
STRUCTURES = {"binned", "contexts", "trees"}
HAVE: dict[str, set[str]] = {
    "MeanReading": TABLES | AVERAGES | {"binned", "contexts"},
    "Parametric": TABLES | AVERAGES | {"binned", "contexts"},
    "Marginals": TABLES | {"binned"},
    "FiniteMixture": AVERAGES | {"contexts"},
    "PredictiveDistribution": NUMBERS,
    "PenalizedLikelihood": TABLES,
    "RowRemoval": {"dirichlet", "averaged levels"},
    "Restrictable": NUMBERS | {"averaged cells", "dirichlet"},
    "Padded": {"dirichlet", "contexts", "trees", "averaged levels"},
    "CodedRows": {"dirichlet"} | STRUCTURES,
    "LogLikelihoodCumulants": NUMBERS | {"dirichlet", "contexts"},
    "LogOddsCumulants": NUMBERS | AVERAGES | {"dirichlet", "contexts", "binned"},
    "Simulation": NUMBERS | AVERAGES | {"dirichlet", "contexts", "binned"},
    "Program": NUMBERS | {"dirichlet"},
    "Hierarchical": {"normal", "geometric", "dirichlet"},
    "Condensable": {"dirichlet"},
    "LevelDependence": {"normal"},
    "PairDependence": {"normal"},
    "ConditionalDraws": {"trees"},
}


def methods(cls: type) -> set[str]:
    return {name for name, value in vars(cls).items() if not name.startswith("_") and inspect.isroutine(value)}


@pytest.mark.parametrize("capability", HAVE)
def test_a_capability_is_what_these_families_have(capability):
    having = {name for name, family in FAMILIES.items() if supports(family, getattr(protocol, capability))}
    assert having == HAVE[capability]


def test_no_capability_is_left_out_and_all_are_small():
    described = {name for name, value in vars(protocol).items() if (value.__doc__ or "").startswith("Capability")}
    assert described - {"FeatureUnits"} == set(HAVE)
    assert all(1 <= len(methods(getattr(protocol, name))) <= 4 for name in described)


def test_the_core_has_at_most_twelve_methods():
    assert len(methods(protocol.Prior) | methods(protocol.Family)) <= 12


@pytest.mark.parametrize("name", FAMILIES)
def test_a_method_is_abstract_or_final(name):
    """Each public method has one definition; a method that is overridden must be abstract."""
    bases = type(FAMILIES[name]).__mro__
    for method in set().union(*map(methods, bases)):
        definitions = [vars(base)[method] for base in bases if method in methods(base)]
        assert not getattr(definitions[0], "__isabstractmethod__", False)
        assert all(getattr(other, "__isabstractmethod__", False) for other in definitions[1:]), method


def test_a_family_that_gives_no_reason_is_refused_all_the_same():
    cells, levels = (FAMILIES[name] for name in sorted(AVERAGES))
    assert isinstance(cells, AveragedCells)
    assert isinstance(levels, AveragedLevels)
    refused(
        "AveragedCells has no NumPyro program", require_capability, cells, protocol.Program, error=NotImplementedError
    )
    refused(
        "AveragedLevels does not define", require_capability, levels, protocol.Condensable, error=NotImplementedError
    )
    assert not supports(Failures(ONES, ONES), protocol.FeatureUnits)


def test_a_class_that_defines_a_final_method_again_is_refused():
    def define(**methods: Any) -> type:
        return type("Mine", (GammaPoisson,), methods)

    define(describe=lambda self: "a method of its own")
    refused("Mine.update: Gamma defines this method", define, update=lambda self, statistics: self, error=TypeError)
