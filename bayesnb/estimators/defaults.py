"""Defaults that several classifiers share."""

ALPHA = 1.0
"""Concentration of a level: Laplace smoothing."""
