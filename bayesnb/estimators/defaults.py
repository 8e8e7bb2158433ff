"""Defaults that several classifiers share."""

ALPHA = 1.0
"""Concentration of a level; 1 is Laplace smoothing."""
CLASS_ALPHA = 1.0
"""Concentration of a class."""
CELLS = 64
"""At most how many cells a column of numbers is cut into."""
DEPENDENCE_CELLS = 6
"""At most how many cells a number has where it depends on other columns, or they on it."""
