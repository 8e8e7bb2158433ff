"""Conjugate families: pure mathematics on arrays of NumPy and JAX."""

from typing import Any

from bayesnb.families.averaged import Averaged, AveragedCells, AveragedLevels, EmpiricalAveraged, averaged
from bayesnb.families.binned import Binned, IndependentCuts
from bayesnb.families.contexts import ContextsOfRows, ContextTree
from bayesnb.families.dirichlet import Dirichlet, Known
from bayesnb.families.gamma import (
    Durations,
    EmpiricalDuration,
    EmpiricalRate,
    ExposedTotals,
    GammaExponential,
    GammaPoisson,
    Totals,
)
from bayesnb.families.negative_binomial import (
    BetaNegativeBinomial,
    EmpiricalCounts,
    KnownDispersion,
    Tails,
    with_dispersion,
)
from bayesnb.families.normal import EmpiricalNormal, Moments, NormalInverseGamma
from bayesnb.families.numbers import Complete, Empirical, EmpiricalPrior, Exposed, PriorByColumn
from bayesnb.families.protocol import Family, Likelihood, SufficientStatistics, offers, pooled, reason_for_lack
from bayesnb.families.rows import Counts, LevelCounts, OneHot, PackedCounts, Pairs, Presence, empty_counts
from bayesnb.families.structures import TreeAveraged

OF_NUMBERS: tuple[Any, ...] = (NormalInverseGamma, GammaPoisson, BetaNegativeBinomial, GammaExponential)
"""Families of numbers, one for each kind of columns."""

__all__ = [
    "OF_NUMBERS",
    "Averaged",
    "AveragedCells",
    "AveragedLevels",
    "BetaNegativeBinomial",
    "Binned",
    "Complete",
    "ContextTree",
    "ContextsOfRows",
    "Counts",
    "Dirichlet",
    "Durations",
    "Empirical",
    "EmpiricalAveraged",
    "EmpiricalCounts",
    "EmpiricalDuration",
    "EmpiricalNormal",
    "EmpiricalPrior",
    "EmpiricalRate",
    "Exposed",
    "ExposedTotals",
    "Family",
    "GammaExponential",
    "GammaPoisson",
    "IndependentCuts",
    "Known",
    "KnownDispersion",
    "LevelCounts",
    "Likelihood",
    "Moments",
    "NormalInverseGamma",
    "OneHot",
    "PackedCounts",
    "Pairs",
    "Presence",
    "PriorByColumn",
    "SufficientStatistics",
    "Tails",
    "Totals",
    "TreeAveraged",
    "averaged",
    "empty_counts",
    "offers",
    "pooled",
    "reason_for_lack",
    "with_dispersion",
]
