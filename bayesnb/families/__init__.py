"""Conjugate families: pure mathematics on JAX arrays."""

from bayesnb.families.averaged import Averaged, AveragedCells, AveragedLevels
from bayesnb.families.cells import Complete
from bayesnb.families.dirichlet import Dirichlet, LevelCounts
from bayesnb.families.empirical import Empirical, EmpiricalAveraged, EmpiricalNormal, EmpiricalRate
from bayesnb.families.gamma_poisson import GammaPoisson, Totals
from bayesnb.families.known import Known
from bayesnb.families.moments import Moments
from bayesnb.families.normal_inverse_gamma import NormalInverseGamma
from bayesnb.families.protocol import Family, Likelihood, SufficientStatistics, pooled
from bayesnb.families.rows import OneHot
from bayesnb.families.sparse_rows import Counts, PairedCounts, Presence

__all__ = [
    "Averaged",
    "AveragedCells",
    "AveragedLevels",
    "Complete",
    "Counts",
    "Dirichlet",
    "Empirical",
    "EmpiricalAveraged",
    "EmpiricalNormal",
    "EmpiricalRate",
    "Family",
    "GammaPoisson",
    "Known",
    "LevelCounts",
    "Likelihood",
    "Moments",
    "NormalInverseGamma",
    "OneHot",
    "PairedCounts",
    "Presence",
    "SufficientStatistics",
    "Totals",
    "pooled",
]
