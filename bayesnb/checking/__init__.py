"""Does the model deserve belief: is it naive, does the prior decide, what does the prior say by itself."""

from bayesnb.checking.independence import check_independence
from bayesnb.checking.prior import prior_predictive
from bayesnb.checking.sensitivity import prior_sensitivity

__all__ = ["check_independence", "prior_predictive", "prior_sensitivity"]
