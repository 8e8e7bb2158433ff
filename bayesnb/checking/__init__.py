"""Checks of a model: independence of features, sensitivity to the prior, prior and posterior predictive."""

from bayesnb.checking.independence import check_independence
from bayesnb.checking.predictive import PredictiveCheck, posterior_predictive_check
from bayesnb.checking.prior import prior_predictive
from bayesnb.checking.sensitivity import prior_sensitivity

__all__ = [
    "PredictiveCheck",
    "check_independence",
    "posterior_predictive_check",
    "prior_predictive",
    "prior_sensitivity",
]
