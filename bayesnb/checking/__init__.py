"""Checks of a model: independence of features, sensitivity to the prior, prior predictive."""

from bayesnb.checking.independence import check_independence
from bayesnb.checking.prior import prior_predictive
from bayesnb.checking.sensitivity import prior_sensitivity

__all__ = ["check_independence", "prior_predictive", "prior_sensitivity"]
