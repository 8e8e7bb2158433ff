"""Checks of a model: independence of features, drift, sensitivity to the prior, prior and posterior predictive."""

from bayesnb.checking.drift import DriftStatistics, check_drift
from bayesnb.checking.independence import check_independence
from bayesnb.checking.predictive import PredictiveCheck, posterior_predictive_check
from bayesnb.checking.prior import prior_predictive
from bayesnb.checking.sensitivity import prior_sensitivity

__all__ = [
    "DriftStatistics",
    "PredictiveCheck",
    "check_drift",
    "check_independence",
    "posterior_predictive_check",
    "prior_predictive",
    "prior_sensitivity",
]
