"""Conjugate families: pure mathematics on JAX arrays."""

from typing import Any

from bayesnb.families.averaged import Averaged, AveragedCells, AveragedLevels, EmpiricalAveraged, averaged
from bayesnb.families.binned import Binned, IndependentCuts
from bayesnb.families.context_rows import ContextsOfRows
from bayesnb.families.context_tree import ContextTree
from bayesnb.families.dirichlet import Dirichlet
from bayesnb.families.empirical import Empirical, EmpiricalPrior
from bayesnb.families.gamma_exponential import Durations, EmpiricalDuration, GammaExponential
from bayesnb.families.gamma_poisson import EmpiricalRate, GammaPoisson, Totals
from bayesnb.families.known import Known
from bayesnb.families.moments import Moments
from bayesnb.families.multinomial import LevelCounts
from bayesnb.families.normal_inverse_gamma import EmpiricalNormal, NormalInverseGamma
from bayesnb.families.number_rows import Complete
from bayesnb.families.one_hot import OneHot, PackedCounts, empty_counts
from bayesnb.families.protocol import Family, Likelihood, SufficientStatistics, offers, reason_for_lack
from bayesnb.families.sparse_counts import Counts, Pairs, Presence
from bayesnb.families.statistics import pooled
from bayesnb.families.tree_averaged import TreeAveraged

OF_NUMBERS: tuple[Any, ...] = (NormalInverseGamma, GammaPoisson, GammaExponential)
"""Families of numbers, one for each kind of columns."""

__all__ = [
    "OF_NUMBERS",
    "Averaged",
    "AveragedCells",
    "AveragedLevels",
    "Binned",
    "Complete",
    "ContextTree",
    "ContextsOfRows",
    "Counts",
    "Dirichlet",
    "Durations",
    "Empirical",
    "EmpiricalAveraged",
    "EmpiricalDuration",
    "EmpiricalNormal",
    "EmpiricalPrior",
    "EmpiricalRate",
    "Family",
    "GammaExponential",
    "GammaPoisson",
    "IndependentCuts",
    "Known",
    "LevelCounts",
    "Likelihood",
    "Moments",
    "NormalInverseGamma",
    "OneHot",
    "PackedCounts",
    "Pairs",
    "Presence",
    "SufficientStatistics",
    "Totals",
    "TreeAveraged",
    "averaged",
    "empty_counts",
    "offers",
    "pooled",
    "reason_for_lack",
]
