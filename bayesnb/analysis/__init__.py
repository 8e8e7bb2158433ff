"""Analyses of fitted classifiers: selection, checks, dependence, drift, conformal sets, explanations, prevalence."""

from lazy_loader import attach

_MODULES = ["conformal", "dependence", "drift", "explanation", "predictive", "prevalence", "selection"]
__getattr__, __dir__, __all__ = attach(__name__, _MODULES)
