"""Comparison of models and priors by evidence and leave-one-out, and the choice of a prior's strength."""

from bayesnb.selection.evidence import BayesFactor, bayes_factor
from bayesnb.selection.loo import LeaveOneOut, loo
from bayesnb.selection.permutation import PermutationNull, permutation_null
from bayesnb.selection.prequential import Prequential, prequential
from bayesnb.selection.tune import Tuned, tune_alpha

__all__ = [
    "BayesFactor",
    "LeaveOneOut",
    "PermutationNull",
    "Prequential",
    "Tuned",
    "bayes_factor",
    "loo",
    "permutation_null",
    "prequential",
    "tune_alpha",
]
