"""Analyses of fitted classifiers: model selection, checks, conformal sets, explanations, drift."""

from lazy_loader import attach

_MODULES = ["conformal", "dependence", "drift", "explanation", "predictive", "prevalence", "selection"]
__getattr__, __dir__, __all__ = attach(__name__, _MODULES)
