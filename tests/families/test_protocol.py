"""Interfaces of families: a small core, optional methods, and one definition of each method."""

import inspect
from typing import Any

import numpy as np
import pytest

from bayesnb.families import (
    Dirichlet,
    GammaExponential,
    GammaPoisson,
    IndependentCuts,
    Known,
    NormalInverseGamma,
    TreeAveraged,
    averaged,
    offers,
    protocol,
)
from bayesnb.families.contexts import ContextTree
from examples.new_family import BetaGeometric, Failures
from tests.raises import refused

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
WITH_TABLES = TABLES | AVERAGES | {"binned", "contexts"}
HAVE: dict[str, set[str]] = {
    "mean": WITH_TABLES,
    "mode": WITH_TABLES,
    "improper": WITH_TABLES,
    "variance": WITH_TABLES,
    "pseudo_count": WITH_TABLES,
    "marginals": TABLES | {"binned"},
    "penalized_mle": TABLES,
    "log_penalty": TABLES,
    "predictive_distribution": NUMBERS,
    "restrict": NUMBERS | {"averaged cells", "dirichlet"},
    "restrict_with_counts": {"dirichlet"},
    "pad": {"dirichlet", "contexts", "trees", "averaged levels"},
    "rows": {"dirichlet"} | STRUCTURES,
    "log_likelihood_cumulants": NUMBERS | {"dirichlet", "contexts"},
    "cumulants_of_terms": NUMBERS | {"dirichlet", "contexts"},
    "log_odds_of_terms": NUMBERS | AVERAGES | {"dirichlet", "contexts", "binned"},
    "simulate": NUMBERS | AVERAGES | {"dirichlet", "contexts", "binned"},
    "program": NUMBERS | {"dirichlet"},
    "log_bayes_factor_of_pairs": {"normal"},
}
REPLACE: dict[str, set[str]] = {
    "components": AVERAGES | {"contexts"},
    "log_base": AVERAGES | STRUCTURES | {"dirichlet"},
    "update_keeping_prior": {"dirichlet", "averaged levels"},
    "hyperprior": {"normal", "geometric", "dirichlet", "poisson", "exponential"},
    "unit": {"dirichlet"},
    "condensed": {"dirichlet"},
    "condense": {"dirichlet"},
    "pairs_refusal": {"normal"},
    "draws_refusal": {"trees"},
    "groups_refusal": STRUCTURES | AVERAGES,
    "for_groups": set(),
    "to_sites": {"dirichlet"},
    "from_sites": {"dirichlet"},
}


def methods(cls: type) -> dict[str, Any]:
    return {name: value for name, value in vars(cls).items() if name[0] != "_" and inspect.isroutine(value)}


CORE = methods(protocol.Prior) | methods(protocol.Family)


@pytest.mark.parametrize("method", HAVE)
def test_an_optional_method_is_what_these_families_have(method):
    assert {name for name, family in FAMILIES.items() if offers(family, method)} == HAVE[method]


@pytest.mark.parametrize("method", REPLACE)
def test_a_default_is_replaced_by_these_families(method):
    replaced = {name for name, family in FAMILIES.items() if getattr(type(family), method, None) is not CORE[method]}
    assert replaced - {"known"} == REPLACE[method]


def test_no_method_is_left_out():
    assert {name for name, value in CORE.items() if hasattr(value, "reason")} == set(HAVE)
    assert {name for name, value in CORE.items() if hasattr(value, "overridable")} == set(HAVE) | set(REPLACE)


def test_the_core_has_at_most_twelve_methods():
    assert len([name for name, value in CORE.items() if not hasattr(value, "overridable")]) <= 12


@pytest.mark.parametrize("name", FAMILIES)
def test_a_method_is_abstract_optional_or_final(name):
    """Each public method has one definition; a method that is overridden must be abstract, optional or a default."""
    bases = type(FAMILIES[name]).__mro__
    for method in set().union(*map(methods, bases)):
        definitions = [vars(base)[method] for base in bases if method in methods(base)]
        assert not getattr(definitions[0], "__isabstractmethod__", False)
        marked = [hasattr(other, "__isabstractmethod__") or hasattr(other, "overridable") for other in definitions[1:]]
        assert all(marked), method


def test_a_family_that_gives_no_reason_is_refused_all_the_same():
    trees, levels = FAMILIES["trees"], FAMILIES["averaged levels"]
    refused("TreeAveraged does not define the method `restrict`", trees.restrict, error=NotImplementedError)
    refused("AveragedLevels does not define the method `marginals`", levels.marginals, error=NotImplementedError)
    refused("Whether a feature depends on the class is discrete", levels.program, error=NotImplementedError)
    assert not offers(Failures(ONES, ONES), "units")


def test_a_class_that_defines_a_final_method_again_is_refused():
    def define(**methods: Any) -> type:
        return type("Mine", (GammaPoisson,), methods)

    define(describe=lambda self: "a method of its own")
    refused("Mine.update: Gamma defines this method", define, update=lambda self, statistics: self, error=TypeError)
