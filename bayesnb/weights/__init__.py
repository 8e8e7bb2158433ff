"""Weights of the terms of a log-likelihood, found by cross-fitting."""

from lazy_loader import attach

__getattr__, __dir__, __all__ = attach(__name__, ["cross_fitting", "optimum", "terms"])
