"""Defaults that several classifiers share."""

ALPHA = 1.0
"""Concentration of a level; 1 is Laplace smoothing."""
CLASS_ALPHA = 1.0
"""Concentration of a class."""
