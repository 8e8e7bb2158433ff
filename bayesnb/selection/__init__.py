"""Which model, which prior: evidence, leave-one-out, and what they choose."""

from bayesnb.selection.evidence import BayesFactor, bayes_factor
from bayesnb.selection.loo import LeaveOneOut, loo
from bayesnb.selection.prequential import Prequential, prequential
from bayesnb.selection.tune import Tuned, tune_alpha

__all__ = ["BayesFactor", "LeaveOneOut", "Prequential", "Tuned", "bayes_factor", "loo", "prequential", "tune_alpha"]
