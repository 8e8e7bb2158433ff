"""Which model, which prior: evidence, leave-one-out, and what they choose."""

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
